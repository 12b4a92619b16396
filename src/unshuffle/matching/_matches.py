"""Matched pairs as a table that can be saved and loaded, and reordering of collections."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unshuffle._core.arrays import NAME_HEADINGS, check_length, check_plain, is_polars, is_text
from unshuffle._core.grams import check_permutation
from unshuffle._core.grids import check_names
from unshuffle._files.paths import as_path, check_output_path
from unshuffle._files.saving import (
    Record,
    csv_pieces,
    json_pieces,
    names_in_order,
    parquet_bytes,
    read_records,
    replace_file,
)
from unshuffle._run import device

SUFFIXES = (".csv", ".json", ".parquet")
# With their types in a Parquet file.
COLUMNS = {
    "index_x": "int64",
    "name_x": "string",
    "index_y": "int64",
    "name_y": "string",
    "confidence": "float64",
}


@dataclass(frozen=True, eq=False)
class Matches:
    """Matched pairs with names and confidences, as saved to CSV, JSON or Parquet.

    Attributes
    ----------
    permutation : ndarray of shape (n_x,)
        Item `permutation[i]` of the second collection is matched to item i of the first; -1 if
        unmatched.
    confidence : ndarray of shape (n_x,)
        Confidence of each pair, from 0 to 1.
    names_x : list of str
        Names of the first collection.
    names_y : list of str
        Names of the second collection.
    candidates : ndarray of shape (n_x, k) or None, default=None
        Best partners of each item of the first collection, the best first.
    expected_accuracy : float, default=nan
        Share of the pairs believed right; NaN if unknown.
    interval : array-like of shape (2,), default=(nan, nan)
        Range in which that share lies.
    doubts : sequence of str, default=()
        Reasons not to trust the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> matches = Matches(np.array([1, 0]), np.array([1.0, 0.5]), ["a", "b"], ["c", "d"])
    >>> matches.named_pairs()
    [('a', 'd'), ('b', 'c')]
    >>> print(matches)
    2 pairs of 2 and 2 items.
    How many are right was not estimated.
    """

    permutation: NDArray[np.intp]
    confidence: NDArray[np.float64]
    names_x: list[str]
    names_y: list[str]
    candidates: NDArray[np.intp] | None = None
    expected_accuracy: float = np.nan
    interval: ArrayLike = (np.nan, np.nan)
    doubts: Sequence[str] = ()

    def __post_init__(self) -> None:
        # Copies: the table must not change with the arguments.
        names_x = list(check_names(self.names_x, "names_x"))
        names_y = list(check_names(self.names_y, "names_y"))
        permutation = check_permutation(self.permutation, len(names_x), len(names_y))
        check_plain(self.confidence, "`confidence`")
        values = np.asarray(self.confidence)
        if values.shape != permutation.shape or values.dtype.kind not in "biuf":
            raise ValueError(
                f"`confidence` must be {permutation.size} numbers, one for each item of X, got "
                f"shape {values.shape} and dtype {values.dtype}."
            )
        if not np.all((values >= 0) & (values <= 1)):
            raise ValueError(
                f"`confidence` must be from 0 to 1, got {values.min():.6g} to {values.max():.6g}."
            )
        object.__setattr__(self, "names_x", names_x)
        object.__setattr__(self, "names_y", names_y)
        object.__setattr__(self, "permutation", permutation.copy())
        object.__setattr__(self, "confidence", values.astype(np.float64))
        if self.candidates is not None:
            chosen = _check_candidates(self.candidates, len(names_x), len(names_y))
            object.__setattr__(self, "candidates", chosen.copy())

    def __repr__(self) -> str:
        matched = self.permutation >= 0
        sure = float(self.confidence[matched].mean()) if matched.any() else 0.0
        best = "" if self.candidates is None else f", {self.candidates.shape[1]} candidates each"
        return (
            f"Matches({int(matched.sum()):,} matched of {len(self.names_x):,} and "
            f"{len(self.names_y):,} items, mean confidence {sure:.2f}{best})"
        )

    def __str__(self) -> str:
        n_matched = int((self.permutation >= 0).sum())
        lines = [
            f"{n_matched:,} pairs of {len(self.names_x):,} and {len(self.names_y):,} items.",
            self.describe_trust(),
        ]
        if self.doubts:
            lines.append(
                "Next: check some pairs by eye, and give those that are right as known pairs "
                "(30 help a lot), or compare other features."
            )
        elif n_matched and self.expected_accuracy < 0.995:
            worst = int(np.where(self.permutation >= 0, self.confidence, 2.0).argmin())
            lines.append(
                f"Next: check the pairs of low confidence, such as {self.names_x[worst]!r} "
                f"({self.confidence[worst]:.2f})."
            )
        return "\n".join(lines)

    def describe_trust(self) -> str:
        """How many pairs are believed right, and reasons for doubt, in a sentence."""
        believed = "How many are right was not estimated"
        if np.isfinite(self.expected_accuracy):
            low, high = np.asarray(self.interval)
            believed = (
                f"About {self.expected_accuracy:.0%} of the pairs are believed right "
                f"({low:.0%} to {high:.0%})"
            )
        return f"{believed}: {'; '.join(self.doubts)}." if self.doubts else f"{believed}."

    @property
    def pairs(self) -> NDArray[np.intp]:
        """Matched index pairs, shape (n_matched, 2)."""
        rows = np.flatnonzero(self.permutation >= 0)
        return np.column_stack([rows, self.permutation[rows]])

    def named_pairs(self) -> list[tuple[str, str]]:
        """Matched pairs by name."""
        return [(self.names_x[i], self.names_y[j]) for i, j in self.pairs]

    def rows(self) -> list[dict[str, Any]]:
        """Records of all items of the first collection, then of the unmatched of the second.

        Returns
        -------
        rows : list of dict
            Keys are index_x, name_x, index_y, name_y and confidence; None for a missing partner.
            With `candidates`, that key holds a list of index_y and name_y.
        """
        return list(self._records())

    def save(
        self,
        path: str | Path,
        *,
        details: Mapping[str, Any] | None = None,
        spreadsheet: bool = False,
    ) -> None:
        """Write the table to a .csv, .json or .parquet file, a few rows at a time.

        Parameters
        ----------
        path : str or Path
            The suffix chooses the format; Parquet needs pyarrow. An existing file is replaced at
            the end. Names that are not valid Unicode, as file names may be, are saved to CSV as
            their bytes.
        details : mapping or None, default=None
            Further entries of a JSON file, such as the objective. Ignored for the others.
        spreadsheet : bool, default=False
            Whether to put an apostrophe before names that begin with =, +, - or @ in a CSV file,
            so that spreadsheets do not run them as formulas. `load` keeps the apostrophes.
        """
        path = check_output_path(path, SUFFIXES)
        suffix, columns = path.suffix.lower(), self._columns
        if suffix == ".json":
            replace_file(path, json_pieces(details or {}, "pairs", self._records()))
        elif suffix == ".parquet":
            replace_file(path, parquet_bytes(columns, self._cells()))
        else:
            cells = csv_pieces(list(columns), self._cells(), spreadsheet=spreadsheet)
            replace_file(path, cells)

    @classmethod
    def load(cls, path: str | Path) -> "Matches":
        """Read a table written by `save`.

        Parameters
        ----------
        path : str or Path
            A .csv, .json or .parquet file.

        Returns
        -------
        matches : Matches
            The saved table, confidences rounded to six digits.

        Raises
        ------
        ValueError
            If a field is not what `save` writes. The message names the line or record.
        """
        records = read_records(as_path(path, "`path`"), "pairs", list(COLUMNS), SUFFIXES)
        first: dict[int, tuple[str, int, float, Record]] = {}
        found_x, found_y = [], []
        for record in records:
            x = record.item("index_x", "name_x")
            y = record.item("index_y", "name_y")
            confidence = record.share("confidence")
            if x is None and y is None:
                raise record.wrong(
                    "it names no item. Give index_x and name_x, or index_y and name_y."
                )
            if x is not None:
                found_x.append((*x, record))
                first.setdefault(x[0], (x[1], -1 if y is None else y[0], confidence, record))
            if y is not None:
                found_y.append((*y, record))
        names_x = names_in_order(found_x, "index_x", once=True)
        names_y = names_in_order(found_y, "index_y", once=True)
        ordered = [first[i] for i in range(len(first))]
        return cls(
            permutation=np.array([partner for _, partner, _, _ in ordered], dtype=np.intp),
            confidence=np.array([each for _, _, each, _ in ordered], dtype=np.float64),
            names_x=names_x,
            names_y=names_y,
            candidates=_read_candidates([record for *_, record in ordered], names_y),
        )

    @property
    def _columns(self) -> dict[str, str]:
        """Columns of a CSV or Parquet file, with their types."""
        n_candidates = 0 if self.candidates is None else self.candidates.shape[1]
        columns = dict(COLUMNS)
        for number in range(1, n_candidates + 1):
            columns |= zip(_candidate_columns(number), ("int64", "string"), strict=True)
        return columns

    def _pairs(self) -> Iterator[tuple[Any, ...]]:
        """Cells of all rows, without candidates: one by one, since there may be millions."""
        partners, confidence = self.permutation.tolist(), self.confidence.round(6).tolist()
        names_y = self.names_y
        items = zip(self.names_x, partners, confidence, strict=True)
        for i, (name, j, sure) in enumerate(items):
            yield (i, name, j, names_y[j], sure) if j >= 0 else (i, name, None, None, sure)
        alone = np.ones(len(names_y), dtype=bool)
        alone[self.permutation[self.permutation >= 0]] = False
        for j in np.flatnonzero(alone).tolist():
            yield (None, None, j, names_y[j], 0.0)

    def _records(self) -> Iterator[dict[str, Any]]:
        """Rows as they are in a JSON file."""
        for row in self._pairs():
            record = dict(zip(COLUMNS, row, strict=True))
            if self.candidates is not None:
                record["candidates"] = [
                    {"index_y": j, "name_y": self.names_y[j]} for j in self._best(row[0])
                ]
            yield record

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        """Rows as they are in a CSV or Parquet file."""
        if self.candidates is None:
            return self._pairs()
        missing = (None, None) * self.candidates.shape[1]

        def extended(row: tuple[Any, ...]) -> tuple[Any, ...]:
            best = [cell for j in self._best(row[0]) for cell in (j, self.names_y[j])]
            return *row, *(best or missing)

        return map(extended, self._pairs())

    def _best(self, item: int | None) -> list[int]:
        """Candidates of an item of the first collection; none for a row without one."""
        return [] if item is None or self.candidates is None else self.candidates[item].tolist()


def _check_candidates(candidates: Any, n_first: int, n_second: int) -> NDArray[np.intp]:
    """Indices in the second collection, a row for each item of the first."""
    check_plain(candidates, "`candidates`")
    chosen = np.asarray(candidates)
    whole = np.issubdtype(chosen.dtype, np.integer)
    if chosen.ndim != 2 or len(chosen) != n_first or chosen.shape[1] < 1 or not whole:
        raise ValueError(
            f"`candidates` must hold whole numbers, a row for each of {n_first} items of X, got "
            f"shape {chosen.shape} and dtype {chosen.dtype}."
        )
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_second):
        raise ValueError(
            f"`candidates` must be positions in y, from 0 to {n_second - 1}, got "
            f"{chosen.min()} to {chosen.max()}."
        )
    return chosen.astype(np.intp)


def _candidate_columns(number: int) -> tuple[str, str]:
    return f"candidate_{number}_index_y", f"candidate_{number}_name_y"


def _read_candidates(records: list[Record], names_y: list[str]) -> NDArray[np.intp] | None:
    """Best partners of each item of the first collection, or None if none were saved."""
    rows = [_candidates_of(record) for record in records]
    if not any(rows):
        return None
    for record, row in zip(records, rows, strict=True):
        if len(row) != len(rows[0]):
            raise record.wrong(
                f"it has {len(row)} candidates, where {records[0].place} has "
                f"{len(rows[0])}. Load the file as it was saved."
            )
        for index, name in row:
            if index >= len(names_y) or names_y[index] != name:
                raise record.wrong(
                    f"candidate {index} is called {name!r}, which is not an item of the second "
                    "collection. Load the file as it was saved."
                )
    return np.array([[index for index, _ in row] for row in rows], dtype=np.intp)


def _candidates_of(record: Record) -> list[tuple[int, str]]:
    if "candidates" not in record.cells:
        numbers = range(1, len(record.cells))
        keys = [_candidate_columns(number) for number in numbers]
        given = [pair for pair in keys if pair[0] in record.cells]
        if any(pair[1] not in record.cells for pair in given) or given != keys[: len(given)]:
            raise record.wrong(
                "its columns of candidates are not complete. Load the file as saved."
            )
        found = [record.item(*pair) for pair in given]
    else:
        listed = record.cells["candidates"]
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise record.wrong("candidates must be a list of objects with index_y and name_y.")
        parts = [
            Record(record.path, f"{record.place}, candidate {k}", each, False)
            for k, each in enumerate(listed)
        ]
        found = [part.item("index_y", "name_y") for part in parts]
    if any(each is None for each in found):
        raise record.wrong("a candidate is missing. Load the file as it was saved.")
    return [each for each in found if each is not None]


def take(collection: Any, indices: NDArray[np.intp], n_items: int, *, name: str = "y") -> Any:
    """Reorder a collection, keeping its type."""
    if hasattr(collection, "iloc"):
        check_length(len(collection), n_items, name=name)
        return collection.iloc[indices]
    if device.is_foreign(collection) and collection.ndim:
        check_length(collection.shape[0], n_items, name=name)
        return device.take(collection, indices)
    if sparse.issparse(collection):
        check_length(collection.shape[0], n_items, name=name)
        return collection.tocsr()[indices]
    if not isinstance(collection, Sequence) and getattr(collection, "shape", ()) == ():
        kind = type(collection).__name__
        raise TypeError(f"`{name}` must be a collection of {n_items} items, got {kind}.")
    check_length(len(collection), n_items, name=name)
    if hasattr(collection, "obs_names") or is_polars(collection):
        return collection[indices]
    if isinstance(collection, list | tuple):
        return type(collection)(collection[index] for index in indices)
    if device.is_tensor(collection):
        return device.take(collection, indices)
    # asanyarray keeps masked arrays
    return np.asanyarray(collection)[indices]


def item_names(collection: Any, n_items: int) -> list[str]:
    """Names of the items: an index, a first column of Polars, obs_names, or positions."""
    parts = [collection]
    if isinstance(collection, list | tuple) and not is_text(collection):
        parts = list(collection)  # one table for each kernel: use the first names
    for part in parts:
        names = part.index if hasattr(part, "iloc") else getattr(part, "obs_names", None)
        if _has_names(part):
            names = part[part.columns[0]]
        if names is not None and len(names) == n_items:
            return [str(name) for name in names]
    return [str(number) for number in range(n_items)]


def without_names(collection: Any) -> Any:
    """A frame of Polars, or each in a list, without its column of names; else unchanged."""
    if isinstance(collection, list | tuple) and any(map(_has_names, collection)):
        return [without_names(part) for part in collection]
    return collection.drop(collection.columns[0]) if _has_names(collection) else collection


def _has_names(table: Any) -> bool:
    """Whether the first column of a frame of Polars, which has no index, names its rows."""
    columns: Any = getattr(table, "columns", ()) if is_polars(table) else ()
    return len(columns) > 1 and columns[0].lower() in NAME_HEADINGS


def feature_names(collection: Any) -> dict[str, Any]:
    """Fitted attributes of a table: the number of columns, and their names if strings."""
    shape: Any = getattr(collection, "shape", None)
    if shape is None and not is_text(collection):
        with suppress(ValueError):  # one table for each kernel, not a table in lists
            shape = np.shape(collection)
    if shape is None or len(shape) != 2:
        return {}
    found: dict[str, Any] = {"n_features_in_": int(shape[1])}
    columns = getattr(collection, "columns", getattr(collection, "var_names", None))
    if columns is not None and all(isinstance(name, str) for name in columns):
        found["feature_names_in_"] = np.asarray(columns, dtype=object)
    return found
