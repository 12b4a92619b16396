"""One matching in a process of its own.

The process needs only NumPy, SciPy and the library it measures, so that a peer can run in another
environment. It writes the partner of each item to a file and prints the rest as one line of JSON:
seconds, megabytes above those held before, and what the library says of its answer.

Plans of peers become pairs by one exact assignment, beyond `MOST_ASSIGNED` items by the largest
entry of each row. This is not counted in their time and memory.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import with_memory
from benchmarks.scale._problems import Problem, load

WARM_UP = 200  # items matched first, so that imports and compilation are not measured
MOST_ASSIGNED = 5000
BLOCK = 256  # rows of a plan at a time

Array = NDArray[Any]
Found = tuple[NDArray[np.intp], dict[str, Any]]  # partners, and what the library says of them


class Steps(NamedTuple):
    """A matching: what is measured, and how partners are read from its result."""

    solve: Callable[[], Any]
    read: Callable[[Any], Found]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale._fit", description=__doc__)
    parser.add_argument("method", choices=[*OURS, *PEERS])
    parser.add_argument("problem")
    parser.add_argument("result", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--frozen", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    real = Path(os.environ["UNSHUFFLE_DATA"]) if "UNSHUFFLE_DATA" in os.environ else None
    problem = load(options.problem, options.folder, real)
    if options.method in OURS:
        frozen = known_pairs(problem, options.frozen)
        steps = ours(OURS[options.method], problem, frozen, options.jobs)
    else:
        steps = PEERS[options.method](problem.X, problem.y)
    start = time.perf_counter()
    result, megabytes, _ = with_memory(steps.solve)
    seconds = time.perf_counter() - start
    partner, said = steps.read(result)
    np.save(options.result, partner)
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, **said}))


def known_pairs(problem: Problem, n_pairs: int) -> NDArray[np.intp]:
    """Random right pairs (index in X, index in y)."""
    items = np.random.default_rng(0).permutation(problem.n_items)[:n_pairs]
    return np.column_stack([items, problem.partner[items]])


def ours(
    options: dict[str, str], problem: Problem, frozen: NDArray[np.intp], n_jobs: int | None
) -> Steps:
    from unshuffle import KernelizedSorting

    several = isinstance(problem.kernel, list)

    def first(collection: Any) -> Any:
        return [each[:WARM_UP] for each in collection] if several else collection[:WARM_UP]

    def fit(X: Any, y: Any, options: dict[str, str], **known: Any) -> KernelizedSorting:
        sorting = KernelizedSorting(problem.kernel, random_state=0, n_jobs=n_jobs, **options)
        return sorting.fit(X, y, **known)

    def solve() -> tuple[KernelizedSorting, list[str]]:
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            known = {"frozen": frozen} if len(frozen) else {}
            sorting = fit(problem.X, problem.y, options, **known)
        return sorting, sorted({each.category.__name__ for each in issued})

    def read(result: tuple[KernelizedSorting, list[str]]) -> Found:
        sorting, warned = result
        said = {"believed": sorting.expected_accuracy_, "warned": warned}
        return sorting.permutation_, said

    # The default call takes either method.
    searches = [options] if options else [OURS["refined"], OURS["low_rank"]]
    for each in searches if problem.n_items > WARM_UP else []:
        with warnings.catch_warnings(), suppress(ValueError):  # too few items for a method
            warnings.simplefilter("ignore")
            fit(first(problem.X), first(problem.y), each)
    return Steps(solve, read)


def pot(X: Array, y: Array, *, squared: bool = False, epsilon: float | None = None) -> Steps:
    """Gromov-Wasserstein by POT, entropic (proximal steps) if `epsilon` is given."""
    import ot

    def distances(points: Array) -> Array:
        apart = ot.dist(points, metric="sqeuclidean" if squared else "euclidean")
        return apart / np.median(apart)

    def solve() -> Array:
        first, second = distances(X.astype(float)), distances(y.astype(float))
        if epsilon is None:
            return np.asarray(ot.gromov.gromov_wasserstein(first, second))
        plan = ot.gromov.entropic_gromov_wasserstein(
            first, second, epsilon=epsilon, solver="PPA", max_iter=50
        )
        return np.asarray(plan)

    return Steps(solve, assigned)


def ott(X: Array, y: Array, *, rank: int, gamma: float, epsilon: float) -> Steps:
    """Low-rank Gromov-Wasserstein by ott-jax; compiled before time is taken."""
    import jax
    from ott.geometry.pointcloud import PointCloud
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.quadratic.gromov_wasserstein_lr import LRGromovWasserstein

    solver = LRGromovWasserstein(
        rank=rank,
        gamma=gamma,
        epsilon=epsilon,
        inner_iterations=100,
        min_iterations=100,
        max_iterations=5000,
    )

    def factors(X: Array, y: Array) -> Any:
        clouds = (PointCloud(points, scale_cost="mean") for points in (X, y))
        output = solver(QuadraticProblem(*clouds))
        return output.q / output.g, output.r

    compiled = jax.jit(factors).lower(X, y).compile()

    def read(result: tuple[Array, Array]) -> Found:
        left, right = result
        if len(left) <= MOST_ASSIGNED:
            return assigned(left @ right.T)
        blocks = [left[i : i + BLOCK] for i in range(0, len(left), BLOCK)]
        return np.concatenate([(block @ right.T).argmax(axis=1) for block in blocks]), {}

    return Steps(lambda: tuple(np.asarray(each) for each in compiled(X, y)), read)


def ott_entropic(X: Array, y: Array, *, epsilon: float) -> Steps:
    """Entropic Gromov-Wasserstein by ott-jax; compiled before time is taken."""
    import jax
    from ott.geometry.pointcloud import PointCloud
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn
    from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein

    solver = GromovWasserstein(Sinkhorn(), epsilon=epsilon, max_iterations=20)

    def plan(X: Array, y: Array) -> Any:
        clouds = (PointCloud(points, scale_cost="mean") for points in (X, y))
        return solver(QuadraticProblem(*clouds)).matrix

    compiled = jax.jit(plan).lower(X, y).compile()
    return Steps(lambda: np.asarray(compiled(X, y)), assigned)


def assigned(plan: Array) -> Found:
    from scipy.optimize import linear_sum_assignment

    if len(plan) > MOST_ASSIGNED:
        return np.asarray(plan.argmax(axis=1)), {}
    # A plan that is not finite has not converged: no pair of it is right.
    finite = np.nan_to_num(plan, posinf=0.0, neginf=0.0)
    return np.asarray(linear_sum_assignment(finite, maximize=True)[1]), {}


OURS: dict[str, dict[str, str]] = {
    "default": {},
    "refined": {"method": "refined"},
    "low_rank": {"method": "low_rank"},
}
PEERS: dict[str, Callable[[Array, Array], Steps]] = {
    "POT, distances": pot,
    "POT, squared distances": partial(pot, squared=True),
    "POT, entropic .05": partial(pot, epsilon=0.05),
    "POT, entropic .005": partial(pot, epsilon=0.005),
    "ott-jax, rank 20": partial(ott, rank=20, gamma=100.0, epsilon=0.0),
    "ott-jax, rank 20, entropic": partial(ott, rank=20, gamma=10.0, epsilon=0.01),
    "ott-jax, rank 100": partial(ott, rank=100, gamma=10.0, epsilon=0.0),
    "ott-jax, full rank, .01": partial(ott_entropic, epsilon=0.01),
    "ott-jax, full rank, .001": partial(ott_entropic, epsilon=0.001),
}

if __name__ == "__main__":
    main()
