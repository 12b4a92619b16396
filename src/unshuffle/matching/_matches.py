"""Matched pairs as a table that can be saved and loaded."""

import csv
import io
import json
import operator
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._saving import csv_text, decode_text, encode_text, replace_file
from unshuffle._validation import (
    check_match_file,
    check_numbering,
    check_output_path,
    check_suffix,
)

COLUMNS = ("index_x", "name_x", "index_y", "name_y", "confidence")
SUFFIXES = (".csv", ".json")


@dataclass(frozen=True, eq=False)
class Matches:
    """Matched pairs with names and confidences, as saved to CSV or JSON.

    Attributes
    ----------
    permutation : ndarray of shape (n_x,)
        Item `permutation[i]` of the second collection belongs to item i of the first; -1 is
        unmatched.
    confidence : ndarray of shape (n_x,)
        How far to trust each pair, from 0 to 1.
    names_x : list of str
        Names of the first collection.
    names_y : list of str
        Names of the second.
    candidates : ndarray of shape (n_x, k) or None, default=None
        Best partners of each item of the first collection, the best first.

    Examples
    --------
    >>> import numpy as np
    >>> matches = Matches(np.array([1, 0]), np.array([1.0, 0.5]), ["a", "b"], ["c", "d"])
    >>> matches.named_pairs()
    [('a', 'd'), ('b', 'c')]
    """

    permutation: NDArray[np.intp]
    confidence: NDArray[np.float64]
    names_x: list[str]
    names_y: list[str]
    candidates: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        # Copies: a table must not change with the arrays and lists it was made from.
        for each in fields(self):
            object.__setattr__(self, each.name, deepcopy(getattr(self, each.name)))

    @property
    def pairs(self) -> NDArray[np.intp]:
        """Matched index pairs, shape (n_matched, 2)."""
        rows = np.flatnonzero(self.permutation >= 0)
        return np.column_stack([rows, self.permutation[rows]])

    def named_pairs(self) -> list[tuple[str, str]]:
        """Matched pairs by name."""
        return [(self.names_x[i], self.names_y[j]) for i, j in self.pairs]

    def rows(self) -> list[dict[str, Any]]:
        """One record for each item of the first collection, then for each unused of the second.

        Returns
        -------
        rows : list of dict
            With the keys index_x, name_x, index_y, name_y and confidence; those of the partner
            are None where there is none. With `candidates` also that key: a list of index_y and
            name_y.
        """
        rows: list[dict[str, Any]] = []
        for i, j in enumerate(self.permutation.tolist()):
            partner = (j, self.names_y[j]) if j >= 0 else (None, None)
            values = (i, self.names_x[i], *partner, round(float(self.confidence[i]), 6))
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        for j in np.setdiff1d(np.arange(len(self.names_y)), self.permutation).tolist():
            values = (None, None, j, self.names_y[j], 0.0)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        if self.candidates is not None:
            best = self.candidates.tolist()
            for row in rows:
                row["candidates"] = [
                    {"index_y": j, "name_y": self.names_y[j]}
                    for j in (best[row["index_x"]] if row["index_x"] is not None else ())
                ]
        return rows

    def save(self, path: str | Path, *, details: Mapping[str, Any] | None = None) -> None:
        """Write the table to a .csv or .json file.

        Parameters
        ----------
        path : str or Path
            Its suffix chooses the format. An existing file is replaced, once the new one is
            complete.
        details : mapping or None, default=None
            What else to say at the top of a JSON file, ahead of the list "pairs": the objective,
            for one. A CSV file has no room for it.

        Notes
        -----
        A name that is not valid Unicode, as file names may be, comes out of a CSV file as the
        bytes it was made from.
        """
        path = check_output_path(path, SUFFIXES)
        if path.suffix.lower() == ".json":
            text = json.dumps({**(details or {}), "pairs": self.rows()}, indent=1) + "\n"
        else:
            text = self._as_csv()
        replace_file(path, encode_text(text))

    @classmethod
    def load(cls, path: str | Path) -> "Matches":
        """Read a table written by `save`.

        Parameters
        ----------
        path : str or Path
            A .csv or .json file.

        Returns
        -------
        matches : Matches
            Equal to the one saved, confidences to six digits.
        """
        path = Path(path)
        check_suffix(path, SUFFIXES)
        text = decode_text(path.read_bytes())
        read = _from_json if path.suffix.lower() == ".json" else _from_csv
        rows = check_match_file(lambda: read(text), path, COLUMNS)
        first = {row["index_x"]: row for row in rows if row["index_x"] is not None}
        names_y = {row["index_y"]: row["name_y"] for row in rows if row["index_y"] is not None}
        # A file cut down by hand has lost items: what is left would be numbered anew.
        check_numbering([row["index_x"] for row in rows], path, "index_x")
        check_numbering([row["index_y"] for row in rows], path, "index_y")
        ordered = [first[i] for i in range(len(first))]
        partners = [-1 if row["index_y"] is None else row["index_y"] for row in ordered]
        candidates = None
        if ordered and all(row.get("candidates") for row in ordered):
            candidates = np.array(
                [[each["index_y"] for each in row["candidates"]] for row in ordered], dtype=np.intp
            )
        return cls(
            permutation=np.array(partners, dtype=np.intp),
            confidence=np.array([row["confidence"] for row in ordered], dtype=np.float64),
            names_x=[row["name_x"] for row in ordered],
            names_y=[names_y[j] for j in range(len(names_y))],
            candidates=candidates,
        )

    def _as_csv(self) -> str:
        n_candidates = 0 if self.candidates is None else self.candidates.shape[1]
        numbers = range(1, n_candidates + 1)
        extra = [key for number in numbers for key in _candidate_columns(number)]
        rows = self.rows()
        for row in rows:
            for number, each in enumerate(row.pop("candidates", ()), start=1):
                row.update(zip(_candidate_columns(number), each.values(), strict=True))
        return csv_text([*COLUMNS, *extra], rows)


def _candidate_columns(number: int) -> tuple[str, str]:
    return f"candidate_{number}_index_y", f"candidate_{number}_name_y"


def _from_json(text: str) -> Any:
    rows = json.loads(text)["pairs"]
    for row in rows:
        for key in ("index_x", "index_y"):
            row[key] = None if row[key] is None else operator.index(row[key])
        row["confidence"] = float(row["confidence"])
    return rows


def _from_csv(text: str) -> list[dict[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows: list[dict[str, Any]] = list(reader)
    columns = reader.fieldnames or []
    for row in rows:
        for key in ("index_x", "index_y"):
            row[key] = int(row[key]) if row[key] else None
        row["confidence"] = float(row["confidence"])
        found = []
        for number in range(1, len(columns)):
            index, name = _candidate_columns(number)
            if not row.get(index):
                break
            found.append({"index_y": int(row[index]), "name_y": row[name]})
        row["candidates"] = found
    return rows
