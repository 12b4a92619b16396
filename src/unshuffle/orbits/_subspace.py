"""The space that matrices act on: that of the vectors, or a few principal directions of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._middle import middle

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Subspace:
    """Coordinates along orthonormal directions about a centre.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        The centre, which no matrix moves.
    components : ndarray of shape (n_components, n_features)
        The directions.
    """

    mean: Array
    components: Array

    @classmethod
    def of(cls, X: Array, n_components: int) -> "Subspace":
        """The centre of the rows and the directions in which they vary most."""
        start = middle(X)
        near = X - start
        mean = near.mean(axis=0)
        directions = np.linalg.svd(near - mean, full_matrices=False)[2][:n_components]
        largest = np.abs(directions).argmax(axis=1)
        signs = np.sign(directions[np.arange(len(directions)), largest])
        return cls(start + mean, directions * signs[:, None])

    def inside(self, X: Array) -> Array:
        """Coordinates of rows."""
        return np.asarray((X - self.mean) @ self.components.T)

    def outside(self, X: Array) -> Array:
        """What of rows lies across the directions, and stays as it is under every motion."""
        return np.asarray(X - self.inside(X) @ self.components)

    def back(self, coordinates: Array) -> Array:
        """Vectors of coordinates, without the centre."""
        return np.asarray(coordinates @ self.components)
