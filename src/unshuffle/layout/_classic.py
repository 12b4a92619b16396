"""The paper's layout: one width, one objective, repeated assignment (sections 3 and 6.1)."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._parallel import eigh
from unshuffle._parameters import check_memory
from unshuffle.assignment import QuadraticProblem, assign_free, climb
from unshuffle.kernels import center, median_gamma

Permutation = NDArray[np.intp]
Array = NDArray[np.float64]
Report = Callable[[float, float, Permutation], None]

# Matrices of n^2 numbers that are held at the peak.
N_MATRICES = 9
N_RANDOM = 3
# From here on SciPy takes a second or more for one eigenvector, and keeps Ctrl-C out meanwhile.
LARGE = 1000


def check_classic_memory(n_items: int, n_cells: int) -> None:
    """Refuse kernels of items and cells that would not fit."""
    n = max(n_items, n_cells)
    check_memory(
        8 * N_MATRICES * n**2,
        what=f'quality="classic" on {n_items:,} items and {n_cells:,} cells',
        instead='Use quality="best", which needs no matrix of all pairs, or fewer items.',
    )


def solve_classic(
    K: Array,
    distances: Array,
    places: Array,
    frozen: NDArray[np.intp],
    *,
    start: Permutation,
    random_state: np.random.RandomState,
    report: Report,
) -> None:
    """Climb the HSIC between items and cells from several starts.

    The paper starts from leading eigenvectors alone; from there, other starts climb higher about
    every other time.

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
    start : ndarray of shape (n_items,)
        A layout that is good at many widths.
    random_state : RandomState
        For starts in random order.
    report : callable
        Called after each step with the share of the work that is done, the objective and the
        cells; may raise to stop.
    """
    L = center(np.exp(-median_gamma(distances) * distances))
    problem = QuadraticProblem(center(K), L, frozen=frozen)
    starts = [
        start,
        max(_by_components(problem, places), key=problem.value),
        *_by_leading_vectors(problem),
    ]
    n_items, n_cells = len(K), len(L)
    for _ in range(N_RANDOM):
        starts.append(problem.keep_frozen(random_state.permutation(n_cells)[:n_items]))
    for number, each in enumerate(starts):
        climbed = climb(problem, each, tol=1e-5, report=partial(report, number / len(starts)))
        # a start from which no step leads up is reported nowhere else
        report((number + 1) / len(starts), climbed.value, climbed.permutation)


def _by_leading_vectors(problem: QuadraticProblem) -> Iterator[Permutation]:
    """The paper's start: items and cells in the order of their leading eigenvectors."""
    items, cells = _leading_vector(problem.K), _leading_vector(problem.L)
    for sign in (1.0, -1.0):
        yield assign_free(problem, sign * np.outer(items, cells))[0]


def _leading_vector(A: Array) -> Array:
    """Eigenvector of the largest eigenvalue."""
    last = len(A) - 1
    if last >= LARGE:
        return np.asarray(eigh(A)[1][:, -1])
    return np.asarray(linalg.eigh(A, subset_by_index=(last, last))[1][:, 0])


def _by_components(problem: QuadraticProblem, places: Array) -> Iterator[Permutation]:
    """The two leading components laid along rows and columns, in either order and direction."""
    values, vectors = eigh(problem.K)
    components = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    if components.shape[1] < 2:
        components = np.hstack([components, np.zeros_like(components)])
    axes = places - places.mean(axis=0)
    for turned, *signs in product((False, True), (1.0, -1.0), (1.0, -1.0)):
        along = components[:, ::-1] if turned else components
        yield assign_free(problem, np.ascontiguousarray((along * signs) @ axes.T))[0]
