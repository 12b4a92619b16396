"""Matching collections against Gromov-Wasserstein and the fast approximate QAP."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, quadratic_assignment

from benchmarks._measure import Method, Problem, data_folder
from benchmarks.scale import _problems
from benchmarks.scale._score import scores
from unshuffle import KernelizedSorting
from unshuffle.datasets import Paired, digits_views, photo_halves
from unshuffle.images import lab_pixels
from unshuffle.kernels import rbf_kernel, zero_diagonal

TITLE = "Matching two collections"
ABOUT = (
    "Rotated points: normal points in six dimensions, and the same points rotated, with noise .1. "
    "Halves: left halves of pictures and shuffled right ones (crops of scikit-learn's two "
    "photographs, its digits, and 320 photos if the data folder has them). The default call "
    "estimates how many of its pairs are right; peers do not check, so the search alone is shown "
    "too. Plans of peers become pairs by one exact assignment, beyond 5,000 items by the largest "
    "entry of each row, which is not counted in their time. Peers are stopped after two minutes "
    "or at 8 GB; one that takes so long at one size that the next is out of reach is not run "
    "there. Rank error is the share of the second collection that is nearer to the partner found "
    "than the right one is."
)
SIZE = "items"
CORES = None
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 100_000)
LARGEST_DENSE = 5000
QUICK_SIZES = (200,)
WARM_UP = 200
MOST_ASSIGNED = 5000
BLOCK = 256  # rows of a plan at a time

Array = NDArray[Any]
Call = Callable[[], Any]


def problems() -> Iterator[Problem]:
    for n_items in SIZES:
        compared = (*OURS, *ON_POINTS) if n_items <= LARGEST_DENSE else OURS[:1]
        yield Problem(
            "rotated points",
            n_items,
            partial(_problems.load, _problems.named("cloud", n_items, 0.1, 0)),
            (*compared, LOW_RANK),
            judge,
            quick=n_items in QUICK_SIZES,
        )
    halves = {
        "halves of photo crops": lambda: photo_halves(240),
        "halves of digits": lambda: digits_views(400),
    }
    folder = data_folder()
    if folder is not None:
        halves["halves of photos"] = lambda: halves_of(np.load(folder / "flickr320.npz")["images"])
    for (name, make), size in zip(halves.items(), (240, 400, 320), strict=False):
        yield Problem(name, size, partial(paired, make), (*OURS, *ON_PICTURES), judge, size == 240)


def paired(make: Callable[[], Paired]) -> _problems.Problem:
    data = make()
    return _problems.Problem(features(data.X), features(data.y), data.truth)


def halves_of(images: Array) -> Paired:
    """Left halves, and right halves in a different order."""
    order = np.random.default_rng(0).permutation(len(images))
    middle = images.shape[2] // 2
    return Paired(images[:, :, :middle], images[order][:, :, middle:], np.argsort(order))


def features(items: Array) -> NDArray[np.float64]:
    """Lab pixels of color pictures, as in the 2009 paper; other items unchanged."""
    if items.dtype == np.uint8 and items.ndim == 4:
        return np.asarray(lab_pixels(items))
    return items.reshape(len(items), -1).astype(np.float64)


def sort(problem: _problems.Problem, **options: Any) -> Call:
    sorting = KernelizedSorting(random_state=0, **options)
    # The default call takes either search; both are compiled.
    for method in ("refined", "low_rank"):
        warm = KernelizedSorting(random_state=0, **{"method": method, **options})
        warm.fit(problem.X[:WARM_UP], problem.y[:WARM_UP])
    return lambda: sorting.fit(problem.X, problem.y).permutation_


def classic(problem: _problems.Problem) -> Call:
    return sort(problem, kernel="rbf", method="classic", trust=False)


def by_pot(problem: _problems.Problem, *, kernels: bool = False) -> Call:
    """Gromov-Wasserstein by POT."""
    import ot

    def distances(points: Array) -> Array:
        apart = ot.dist(points.astype(float), metric="euclidean")
        return apart / np.median(apart)

    costs = rbf_kernel if kernels else distances
    return lambda: ot.gromov.gromov_wasserstein(costs(problem.X), costs(problem.y))


def by_faq(problem: _problems.Problem) -> Call:
    def match() -> Array:
        # Uncentered: on centered kernels FAQ starts where its gradient is exactly zero.
        K, L = (zero_diagonal(rbf_kernel(each)) for each in (problem.X, problem.y))
        options = {"maximize": True, "rng": np.random.default_rng(0)}
        return np.asarray(quadratic_assignment(K, L, method="faq", options=options).col_ind)

    return match


def by_ott(problem: _problems.Problem) -> Call:
    """Entropic Gromov-Wasserstein by ott-jax, compiled for these sizes."""
    import jax
    from ott.geometry.pointcloud import PointCloud
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn
    from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein

    solver = GromovWasserstein(Sinkhorn(), epsilon=0.001, max_iterations=20)

    def plan(X: Array, y: Array) -> Any:
        clouds = (PointCloud(points, scale_cost="mean") for points in (X, y))
        return solver(QuadraticProblem(*clouds)).matrix

    X, y = (each.astype(np.float32) for each in (problem.X, problem.y))
    compiled = jax.jit(plan).lower(X, y).compile()
    return lambda: np.asarray(compiled(X, y))


def by_low_rank_ott(problem: _problems.Problem) -> Call:
    """Low-rank Gromov-Wasserstein by ott-jax, compiled for these sizes."""
    import jax
    from ott.geometry.pointcloud import PointCloud
    from ott.problems.quadratic.quadratic_problem import QuadraticProblem
    from ott.solvers.quadratic.gromov_wasserstein_lr import LRGromovWasserstein

    solver = LRGromovWasserstein(
        rank=20,
        gamma=10.0,
        epsilon=0.01,
        inner_iterations=100,
        min_iterations=100,
        max_iterations=5000,
    )

    def factors(X: Array, y: Array) -> Any:
        clouds = (PointCloud(points, scale_cost="mean") for points in (X, y))
        output = solver(QuadraticProblem(*clouds))
        return output.q / output.g, output.r

    X, y = (each.astype(np.float32) for each in (problem.X, problem.y))
    compiled = jax.jit(factors).lower(X, y).compile()
    return lambda: tuple(np.asarray(each) for each in compiled(X, y))


def judge(problem: _problems.Problem, found: Any) -> dict[str, float]:
    """Scores of the pairs that a method found, or that its plan says."""
    scored = scores(problem, partners(found))
    return {name.replace("_", " "): value for name, value in scored.items() if value is not None}


def partners(found: Any) -> NDArray[np.intp]:
    """Partner of each item, from partners, a plan, or the factors of a plan."""
    if isinstance(found, tuple):
        left, right = found
        if len(left) <= MOST_ASSIGNED:
            return partners(left @ right.T)
        blocks = [left[i : i + BLOCK] for i in range(0, len(left), BLOCK)]
        return np.concatenate([(block @ right.T).argmax(axis=1) for block in blocks])
    if found.ndim == 1:
        return np.asarray(found)
    if len(found) > MOST_ASSIGNED:
        return np.asarray(found.argmax(axis=1))
    # A plan that is not finite has not converged: no pair of it is right.
    finite = np.nan_to_num(found, posinf=0.0, neginf=0.0)
    return np.asarray(linear_sum_assignment(finite, maximize=True)[1])


LOW_RANK = Method("ott-jax, rank 20", by_low_rank_ott, needs="ott", quick=False)
OURS = (
    Method("KernelizedSorting", sort, "ours"),
    Method("KernelizedSorting, not checked", partial(sort, trust=False), "ours"),
)
DENSE = (
    Method("SciPy FAQ, kernels", by_faq),
    Method("ott-jax, entropic", by_ott, needs="ott"),
)
# Each with the costs that it does better on.
ON_POINTS = (Method("POT, distances", by_pot, needs="ot"), *DENSE)
ON_PICTURES = (
    Method("KernelizedSorting, the paper's search", classic, "ours"),
    Method("POT, kernels", partial(by_pot, kernels=True), needs="ot"),
    *DENSE,
)
