"""The matrices that may be learned, as a linear space with coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MIRROR = {"general": 0.0, "diagonal": 0.0, "symmetric": 1.0, "skew": -1.0}


@dataclass(frozen=True)
class MatrixSpace:
    """Matrices of one structure, some entries of which are zero.

    Coordinates are taken in an orthonormal basis, so that lengths and angles of coordinates are
    those of the matrices as vectors of entries.

    Attributes
    ----------
    n_rows : int
        Rows, and columns, of a matrix.
    rows, columns : ndarray of shape (p,)
        Entry that each coordinate sets.
    mirror : float
        Sign with which it also sets the entry across the diagonal; 0 where it does not.
    """

    n_rows: int
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    mirror: float

    @classmethod
    def of(cls, d: int, structure: str, pattern: NDArray[np.bool_] | None) -> "MatrixSpace":
        """Space of d by d matrices of a structure, zero where `pattern` is False."""
        allowed = np.ones((d, d), dtype=bool) if pattern is None else pattern.copy()
        if structure == "diagonal":
            allowed &= np.eye(d, dtype=bool)
        elif structure in ("symmetric", "skew"):
            allowed &= np.triu(np.ones((d, d), dtype=bool), k=int(structure == "skew"))
        rows, columns = np.nonzero(allowed)
        return cls(d, rows, columns, _MIRROR[structure])

    @property
    def n_dimensions(self) -> int:
        """Coordinates of a matrix."""
        return self.rows.size

    @property
    def is_diagonal(self) -> bool:
        """Whether all matrices of the space are diagonal."""
        return bool(np.array_equal(self.rows, self.columns))

    def matrices(self, coordinates: Array) -> Array:
        """Matrices (n, d, d) of coordinates (n, p)."""
        result = np.zeros((len(coordinates), self.n_rows, self.n_rows))
        entries = coordinates * self._scale
        if self.mirror:
            result[:, self.columns, self.rows] = self.mirror * entries
        result[:, self.rows, self.columns] = entries
        return result

    def coordinates(self, matrices: Array) -> Array:
        """Coordinates (n, p) of the matrices of the space closest to those given."""
        entries = matrices[:, self.rows, self.columns]
        if self.mirror:
            across = self.mirror * matrices[:, self.columns, self.rows]
            entries = np.where(self.rows == self.columns, entries, entries + across)
        return np.asarray(entries * self._scale)

    def basis(self) -> Array:
        """The orthonormal basis, shape (p, d, d)."""
        return self.matrices(np.eye(self.n_dimensions))

    @property
    def _scale(self) -> Array:
        twice = (self.rows != self.columns) & (self.mirror != 0.0)
        return np.where(twice, np.sqrt(0.5), 1.0)
