"""Commutators of generators: structure constants, and completion to a Lie algebra."""

import numpy as np

from unshuffle._run.types import Floats
from unshuffle.orbits._problem import MatrixSpace

_COMMUTING = 1e-8  # norm of a commutator of unit matrices that counts as zero
_CLOSED = 0.05  # share of the commutators outside the span of an algebra, from noisy generators


def structure_constants(generators: Floats) -> tuple[Floats, float]:
    """Structure constants, and the share of the commutators outside the span of the generators.

    [V_i, V_j] = sum_c constants[i, j, c] V_c + rest. The share is 0 if the generators span a Lie
    algebra and 1 if no commutator has a component in their span.
    """
    brackets = _brackets(generators)
    constants = np.einsum("ijab,cab->ijc", brackets, generators)
    whole = float(np.linalg.norm(brackets))
    if whole <= _COMMUTING * len(generators):
        return constants, 0.0
    rest = brackets - np.einsum("ijc,cab->ijab", constants, generators)
    return constants, float(np.linalg.norm(rest)) / whole


def complete_algebra(space: MatrixSpace, generators: Floats, wanted: int) -> Floats | None:
    """Generators and their commutators, in coordinates, if these span an algebra of `wanted`.

    `generators` are orthonormal coordinates. None if they commute, if the algebra has another
    dimension, or if a commutator does not have the structure of the space.
    """
    while len(generators) < wanted:
        V = space.matrices(generators)
        brackets = _brackets(V)[np.triu_indices(len(V), k=1)]
        whole = np.linalg.norm(brackets)
        if whole <= _COMMUTING * len(V):
            return None
        inside = space.coordinates(brackets)
        if np.linalg.norm(brackets - space.matrices(inside)) > _CLOSED * whole:
            return None
        rest = inside - inside @ generators.T @ generators
        _, sizes, directions = np.linalg.svd(rest, full_matrices=False)
        new = directions[sizes > _CLOSED * whole]
        if not len(new):
            return None
        generators = np.concatenate([generators, new])
    closed = structure_constants(space.matrices(generators))[1] <= _CLOSED
    return generators if closed and len(generators) == wanted else None


def describe_open(n_determined: int, n_generators: int) -> str:
    """Warning that the data and commutators leave generators open."""
    return (
        f"The data determine {n_determined} of the {n_generators} generators asked for, and their "
        "commutators do not supply the others, which may lead away from the data. Pass "
        f"n_generators={n_determined}, or a `structure` that leaves less open."
    )


def _brackets(generators: Floats) -> Floats:
    products = generators[:, None] @ generators[None, :]
    return np.asarray(products - np.swapaxes(products, 0, 1))
