"""Matched pairs as a table that can be saved and loaded."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation import check_match_file, check_output_path, check_suffix

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

        The partner's fields are None where there is none.
        """
        rows: list[dict[str, Any]] = []
        for i, j in enumerate(self.permutation.tolist()):
            partner = (j, self.names_y[j]) if j >= 0 else (None, None)
            values = (i, self.names_x[i], *partner, round(float(self.confidence[i]), 6))
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        for j in np.setdiff1d(np.arange(len(self.names_y)), self.permutation).tolist():
            values = (None, None, j, self.names_y[j], 0.0)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    def save(self, path: str | Path) -> None:
        """Write the table to a .csv or .json file.

        Parameters
        ----------
        path : str or Path
            Its suffix chooses the format. An existing file is replaced.
        """
        path = check_output_path(path, SUFFIXES)
        if path.suffix.lower() == ".json":
            path.write_text(json.dumps({"matches": self.rows()}, indent=1), encoding="utf-8")
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows())

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
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".json":
            rows = check_match_file(lambda: json.loads(text)["matches"], path, COLUMNS)
        else:
            rows = check_match_file(lambda: list(csv.DictReader(text.splitlines())), path, COLUMNS)
        names_x: dict[int, str] = {}
        names_y: dict[int, str] = {}
        partner: dict[int, tuple[int, float]] = {}
        for row in rows:
            i, j = (int(row[key]) if row[key] not in (None, "") else -1 for key in COLUMNS[0::2][:2])
            if i >= 0:
                names_x[i] = row["name_x"]
                partner[i] = (j, float(row["confidence"]))
            if j >= 0:
                names_y[j] = row["name_y"]
        return cls(
            permutation=np.array([partner[i][0] for i in range(len(partner))], dtype=np.intp),
            confidence=np.array([partner[i][1] for i in range(len(partner))]),
            names_x=[names_x[i] for i in range(len(names_x))],
            names_y=[names_y[j] for j in range(len(names_y))],
        )
