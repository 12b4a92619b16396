"""The paper's layout: one width, one objective, repeated assignment (sections 3 and 6.1)."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from unshuffle import _validation as check
from unshuffle.assignment import QuadraticProblem, assign_free, climb
from unshuffle.kernels import center, median_gamma

Permutation = NDArray[np.intp]
Array = NDArray[np.float64]
Report = Callable[[float, Permutation], None]

# Matrices of n^2 numbers that are held at the peak.
N_MATRICES = 8
# Starts that are climbed from, of the eight ways to lay two components along two axes.
N_CLIMBED = 2


def check_classic_memory(n_items: int, n_cells: int) -> None:
    """Refuse kernels of items and cells that would not fit."""
    n = max(n_items, n_cells)
    check.check_kernel_memory(n, n, n_copies=N_MATRICES)


def solve_classic(
    K: Array, distances: Array, places: Array, frozen: NDArray[np.intp], report: Report
) -> Permutation:
    """Cell of each item: the largest HSIC between items and cells that was found.

    Parameters
    ----------
    K : ndarray of shape (n_items, n_items)
        Kernel of the items.
    distances : ndarray of shape (n_cells, n_cells)
        Squared distances between cells; their kernel is Gaussian with the median width.
    places : ndarray of shape (n_cells, 2)
        Row and column of each cell.
    frozen : ndarray of shape (n_frozen, 2)
        Items and the cells they stay in.
    report : callable
        Called with objective and cells after each step; may raise to stop.
    """
    L = center(np.exp(-median_gamma(distances) * distances))
    problem = QuadraticProblem(center(K), L, frozen=frozen)
    starts = sorted(_starts(problem, places), key=problem.value, reverse=True)
    climbed = [climb(problem, start, tol=1e-5, report=report) for start in starts[:N_CLIMBED]]
    return max(climbed, key=lambda each: each.value).permutation


def _starts(problem: QuadraticProblem, places: Array) -> Iterator[Permutation]:
    """The two leading components laid along rows and columns, in either order and direction."""
    values, vectors = np.linalg.eigh(problem.K)
    components = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    if components.shape[1] < 2:
        components = np.hstack([components, np.zeros_like(components)])
    axes = places - places.mean(axis=0)
    for turned, *signs in product((False, True), (1.0, -1.0), (1.0, -1.0)):
        along = components[:, ::-1] if turned else components
        yield assign_free(problem, np.ascontiguousarray((along * signs) @ axes.T))[0]
