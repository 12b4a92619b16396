"""What group the generators belong to, by their commutators."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def commutators(generators: Array) -> Array:
    """[V_i, V_j] = V_i V_j - V_j V_i, shape (k, k, d, d)."""
    products = generators[:, None] @ generators[None, :]
    return np.asarray(products - np.swapaxes(products, 0, 1))


def structure_constants(generators: Array) -> tuple[Array, float]:
    """Commutators in terms of the generators, and the share of them that is not.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        Orthonormal as vectors.

    Returns
    -------
    constants : ndarray of shape (k, k, k)
        [V_i, V_j] = sum_c constants[i, j, c] V_c + rest.
    outside : float
        Norm of all rests over the norm of all commutators: 0 where the generators span a Lie
        algebra (or commute), 1 where no commutator is in their span.
    """
    brackets = commutators(generators)
    constants = np.einsum("ijab,cab->ijc", brackets, generators)
    whole = float(np.linalg.norm(brackets))
    if whole <= 1e-8 * len(generators):  # of unit matrices: they commute up to rounding
        return constants, 0.0
    rest = brackets - np.einsum("ijc,cab->ijab", constants, generators)
    return constants, float(np.linalg.norm(rest)) / whole
