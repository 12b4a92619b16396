"""What learned generators do to vectors, whole ones or their coordinates in a subspace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle.orbits._checks import check_moved, check_reach
from unshuffle.orbits._coefficients import matrix_norms, moved_by
from unshuffle.orbits._subspace import Subspace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """Generators, and the space in which they act.

    Attributes
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices.
    subspace : Subspace or None
        Where the matrices act on d coordinates; None where they act on whole vectors.
    """

    generators: Array
    subspace: Subspace | None

    def moved(self, x: Array, coefficients: Array) -> Array:
        """exp(sum c V) x for each row c, shape (n, n_features); refused where rounding decides."""
        if self.subspace is None:
            places = moved_by(self.generators, coefficients, x)
        else:
            inside = self.subspace.inside(x[None])[0]
            places = self.subspace.back(moved_by(self.generators, coefficients, inside))
            places = places + self.subspace.outside(x[None])
        norms = matrix_norms(self.generators, coefficients)
        check_moved(places, norms)
        check_reach(norms)
        return places

    def flow(self, x: Array) -> Array:
        """V x for each generator, shape (k, n_features): the change of x per unit of c."""
        if self.subspace is None:
            return np.asarray(self.generators @ x)
        return self.subspace.back(self.generators @ self.subspace.inside(x[None])[0])
