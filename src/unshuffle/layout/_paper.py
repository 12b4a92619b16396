"""The layout of the paper: repeated assignment with kernels of one width (sections 3 and 6.1)."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils import check_random_state

from unshuffle._core.parameters import check_memory
from unshuffle._quadratic.problem import QuadraticProblem, assign_free, climb
from unshuffle._run.parallel import eigh
from unshuffle._run.search import Search
from unshuffle._run.types import Floats, Permutation
from unshuffle.kernels import center, combined_gram, median_gamma
from unshuffle.layout._problem import Layout, LayoutProblem, count_checked
from unshuffle.layout._shape import Shape

# Matrices of n^2 numbers at the peak.
N_MATRICES = 9
N_RANDOM = 3
# Above so many rows SciPy takes a second or more for one eigenvector, and Ctrl-C has to wait.
LARGE = 1000
# Share of the first start in all the work.
START = 0.1


def solve_classic(problem: LayoutProblem, search: Search[Layout]) -> Layout:
    """Maximize the HSIC between items and cells from several starts.

    The paper starts from leading eigenvectors only. Every other time, one of the other starts
    ends higher. The first of them is an annealed layout, which is good at many widths.
    """
    n_items, cells = count_checked(problem.items), problem.cells
    open_cells = np.flatnonzero(cells.cells)
    if n_items > 1:
        check_memory(
            8 * N_MATRICES * max(n_items, open_cells.size) ** 2,
            what=f'quality="classic" on {n_items:,} items and {open_cells.size:,} cells',
            instead='Use quality="best", which needs no matrix of all pairs, or fewer items.',
        )
    from unshuffle.layout._cpu.anneal import solve_annealed  # numba is slow to load

    annealed = solve_annealed(problem, "balanced", search, share=START if n_items > 1 else 1.0)
    if n_items == 1:
        return annealed

    def report(done: float, value: float, permutation: Permutation) -> None:
        grid = np.full(cells.cells.size, -1)
        grid[open_cells[permutation]] = np.arange(n_items)
        search.offer(Layout(grid, annealed.vectors, value), rank=(1, value))
        best, fraction = search.best or annealed, START + (1 - START) * done
        search.step(best.objective / n_items**2, best.cells, stage="climbing", fraction=fraction)

    gram = combined_gram(problem.items, problem.kernel, gamma=problem.gamma, center=True)
    places = np.searchsorted(open_cells, problem.frozen[:, 1])
    frozen = np.stack([problem.frozen[:, 0], places], axis=1)
    distances = squared_distances(cells, open_cells)
    cell_gram = np.exp(-median_gamma(distances) * distances)
    objective = QuadraticProblem(center(gram), center(cell_gram), frozen=frozen)
    starts = [np.searchsorted(open_cells, annealed.cells)]
    if problem.start is None:  # else it would not be kept
        starts += [
            max(_by_components(objective, cells.positions(open_cells)), key=objective.value),
            *_by_leading_vectors(objective),
        ]
        random = check_random_state(problem.random_state)
        for _ in range(N_RANDOM):
            starts.append(objective.keep_frozen(random.permutation(open_cells.size)[:n_items]))
    for number, start in enumerate(starts):
        climbed = climb(objective, start, tol=1e-5, report=partial(report, number / len(starts)))
        # A start that cannot be improved has not been reported yet.
        report((number + 1) / len(starts), climbed.value, climbed.permutation)
    return search.best or annealed


def squared_distances(shape: Shape, cells: NDArray[np.intp]) -> Floats:
    """Squared distances between the listed cells, across the edges where these meet."""
    places = shape.positions(cells).astype(np.float64)
    total = np.zeros((cells.size, cells.size))
    for axis in (0, 1):
        apart = np.abs(places[:, np.newaxis, axis] - places[:, axis])
        if shape.wrap:
            apart = np.minimum(apart, shape.cells.shape[axis] - apart)
        total += apart**2
    return total


def _by_leading_vectors(problem: QuadraticProblem) -> Iterator[Permutation]:
    """Starts of the paper: items and cells in the order of their leading eigenvectors."""
    items, cells = _leading_vector(problem.K), _leading_vector(problem.L)
    for sign in (1.0, -1.0):
        yield assign_free(problem, sign * np.outer(items, cells))[0]


def _leading_vector(A: Floats) -> Floats:
    """Eigenvector of the largest eigenvalue; rounded, so that cells in a line stay equal."""
    last = len(A) - 1
    if last >= LARGE:
        vector = eigh(A)[1][:, -1]
    else:
        vector = linalg.eigh(A, subset_by_index=(last, last))[1][:, 0]
    return np.asarray(vector.round(9))


def _by_components(problem: QuadraticProblem, places: Floats) -> Iterator[Permutation]:
    """Starts with the two leading components along rows and columns, in any orientation."""
    values, vectors = eigh(problem.K)
    components = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0))
    if components.shape[1] < 2:
        components = np.hstack([components, np.zeros_like(components)])
    axes = places - places.mean(axis=0)
    for turned, *signs in product((False, True), (1.0, -1.0), (1.0, -1.0)):
        along = components[:, ::-1] if turned else components
        yield assign_free(problem, np.ascontiguousarray((along * signs) @ axes.T))[0]
