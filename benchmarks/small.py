"""Small fits, where fixed costs count, and the time before the first answer."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, quadratic_assignment

from benchmarks._measure import Method, Problem
from unshuffle import GridLayout, KernelizedSorting, MinimumVolumePCA, OrbitLearner
from unshuffle import kernels as set_kernels
from unshuffle.datasets import Paired, digit_sets, make_paired_views
from unshuffle.kernels import rbf_kernel, zero_diagonal
from unshuffle.metrics import distance_preservation_quality
from unshuffle.svm import PermutationInvariantSVC, SetAligner

TITLE = "Small fits and first calls"
ABOUT = (
    "One core, warm calls. Set kernels are fitted to 83 sets of 5 points with 166 features, and "
    "to 300 sets of 20 points in the plane, beside the bare NumPy arithmetic of the mean map of "
    "the same sets: all pairs of points, their exponentials, and means. Matching is the default "
    "call, with its checks, beside SciPy's FAQ and POT's Gromov-Wasserstein on the same kernels. "
    "Imports and first calls are whole processes from start to end. First calls compile "
    "everything, as after an installation, beside the same process where that was done before. "
    "The difference, in units of the import, is what compilation costs."
)
SIZE = "items"
CORES = 1

Array = NDArray[np.float64]
Call = Callable[[], Any]
KERNELS: dict[str, Callable[[], Any]] = {
    "MeanMapKernel": set_kernels.MeanMapKernel,
    "MaxMapKernel": set_kernels.MaxMapKernel,
    "SlicedWassersteinKernel": lambda: set_kernels.SlicedWassersteinKernel(random_state=0),
    "BhattacharyyaKernel": set_kernels.BhattacharyyaKernel,
    "ExpectedLikelihoodKernel": lambda: set_kernels.ExpectedLikelihoodKernel(random_state=0),
    "FisherVectorKernel": lambda: set_kernels.FisherVectorKernel(random_state=0),
    "SetKernelSum": lambda: set_kernels.SetKernelSum(
        [("mean", set_kernels.MeanMapKernel()), ("max", set_kernels.MaxMapKernel())]
    ),
}
FIRST = "import numpy as np; X = np.random.default_rng(0).random((100, 3)); "
FIRST_CALLS = {
    "ExpectedLikelihoodKernel": "from unshuffle.kernels import ExpectedLikelihoodKernel; "
    "ExpectedLikelihoodKernel().fit_transform(X.reshape(20, 5, 3))",
    "GridLayout": "from unshuffle import GridLayout; GridLayout().fit(X)",
    "KernelizedSorting": "from unshuffle import KernelizedSorting; "
    "KernelizedSorting(random_state=0).fit(X, X + .01)",
    "MeanMapKernel": "from unshuffle.kernels import MeanMapKernel; "
    "MeanMapKernel().fit_transform(X.reshape(20, 5, 3))",
    "quadratic_assignment": "from unshuffle.assignment import quadratic_assignment; "
    "quadratic_assignment(X[:20] @ X[:20].T, X[20:40] @ X[20:40].T)",
    "solve_assignment": "from unshuffle.assignment import solve_assignment; "
    "solve_assignment(np.random.default_rng(0).random((500, 500)))",
}


class Sets(NamedTuple):
    """Sets of equally many points, and a kernel that is not fitted."""

    points: Array
    make: Callable[[], Any]


def problems() -> Iterator[Problem]:
    yield from mean_map_problems()
    for name, make in KERNELS.items():
        for shape in ((83, 5, 166), (300, 20, 2)):
            title = f"{name}, {shape[1]} points of {shape[2]} features"
            methods = (ours(gram), Method("NumPy", numpy_gram))
            # Five Gaussians in 166 dimensions take many seconds.
            quick = shape[2] < 100 or name != "ExpectedLikelihoodKernel"
            yield Problem(title, shape[0], partial(sets, shape, make), methods, quick=quick)
    yield Problem(
        "GridLayout, fast, 50 features",
        400,
        items,
        (ours(lay_out), Method("FLAS", flas, needs="vc_flas")),
        lambda X, grid: {"DPQ": float(distance_preservation_quality(X, grid))},
        quick=True,
    )
    matchers = (
        ours(match),
        Method("SciPy FAQ", by_faq),
        Method("POT Gromov-Wasserstein", by_pot, needs="ot"),
    )
    yield Problem("KernelizedSorting, rotated points", 100, rotated, matchers, right, quick=True)
    yield Problem("KernelizedSorting, two views", 100, paired, matchers, right, quick=True)
    yield Problem(
        "MinimumVolumePCA",
        20,
        lambda: np.asarray(digit_sets(20, n_points=30).sets),
        (ours(align), Method("pycpd, rigid", register, needs="pycpd")),
        quick=True,
    )
    yield Problem("OrbitLearner", 50, patch, (ours(learn),), quick=True)
    yield Problem("SetAligner", 40, labeled, (ours(order),), quick=True)
    classifiers = (ours(classify), Method("scikit-learn, SVC of sorted points", classify_sorted))
    yield Problem("PermutationInvariantSVC", 40, labeled, classifiers, quick=True)
    yield Problem(
        "import",
        1,
        lambda: "",
        (
            ours(lambda _: process("from unshuffle import GridLayout")),
            Method("scikit-learn", lambda _: process("from sklearn.cluster import KMeans")),
        ),
        quick=True,
        memory=False,
    )
    for name, code in FIRST_CALLS.items():
        empty, filled = (partial(each, FIRST + code) for each in (first_call, later_call))
        methods = ours(empty), Method("unshuffle, compiled before", filled)
        yield Problem(f"first call, {name}", 1, lambda: "", methods, memory=False)


def mean_map_problems() -> Iterator[Problem]:
    make = partial(sets, (83, 5, 166), set_kernels.MeanMapKernel)
    fit = (ours(lambda data: partial(data.make().fit, data.points)), Method("NumPy", lengths))
    yield Problem("MeanMapKernel, fit", 83, make, fit, pickled, quick=True)
    apply = (ours(transform), Method("NumPy", numpy_gram))
    yield Problem("MeanMapKernel, transform", 83, make, apply, difference, quick=True)


def ours(start: Callable[[Any], Call]) -> Method:
    """One process works on all problems."""
    return Method("unshuffle", start, "ours")


def sets(shape: tuple[int, int, int], make: Callable[[], Any]) -> Sets:
    return Sets(np.random.default_rng(0).normal(size=shape), make)


def gram(data: Sets) -> Call:
    kernel = data.make()
    return lambda: kernel.fit_transform(data.points)


def transform(data: Sets) -> Call:
    kernel = data.make().fit(data.points)
    return lambda: kernel.transform(data.points)


def numpy_gram(data: Sets) -> Call:
    """Normalized mean map of an RBF kernel of known width, in one block."""
    gamma = set_kernels.MeanMapKernel().fit(data.points).gamma_
    n, size, width = data.points.shape
    flat = data.points.reshape(-1, width)

    def compute() -> Array:
        K = pair_means(flat, gamma).reshape(n, size, n, size).mean(axis=(1, 3))
        norms = np.sqrt(np.diag(K))
        return np.asarray(K / norms / norms[:, np.newaxis])

    return compute


def pair_means(flat: Array, gamma: float) -> Array:
    squares = np.einsum("ij,ij->i", flat, flat)
    return np.asarray(np.exp(gamma * (2.0 * flat @ flat.T - squares - squares[:, np.newaxis])))


def lengths(data: Sets) -> Call:
    """The width from the median distance of all points, and the length of each mean map."""
    n, size, width = data.points.shape
    flat = data.points.reshape(-1, width)
    above = np.triu_indices(n * size, 1)

    def compute() -> Array:
        squares = np.einsum("ij,ij->i", flat, flat)
        apart = squares + squares[:, np.newaxis] - 2.0 * flat @ flat.T
        gamma = 1.0 / np.median(apart[above])
        inside = apart.reshape(n, size, n, size)[np.arange(n), :, np.arange(n)]
        return np.asarray(np.sqrt(np.exp(-gamma * inside).mean(axis=(1, 2))))

    return compute


def difference(data: Sets, K: Array) -> dict[str, float]:
    return {"differs from ours by": float(np.abs(K - gram(data)()).max())}


def pickled(data: Sets, found: Any) -> dict[str, float]:
    if isinstance(found, np.ndarray):
        return {}
    return {"pickle over the sets": len(pickle.dumps(found)) / data.points.nbytes}


def items() -> Array:
    return np.random.default_rng(0).random((400, 50)).astype(np.float32)


def lay_out(X: Array) -> Call:
    layout = GridLayout((20, 20), quality="fast", random_state=0)
    return lambda: layout.fit(X).grid_


def flas(X: Array) -> Call:
    import vc_flas

    order = np.random.default_rng(0).permutation(len(X))
    cells = np.ascontiguousarray(X[order].reshape(20, 20, -1))
    return lambda: order[np.asarray(vc_flas.flas(cells, seed=0).sorting)]


def rotated() -> Paired:
    rng = np.random.default_rng(0)
    X, turn = rng.normal(size=(100, 20)), np.linalg.qr(rng.normal(size=(20, 20)))[0]
    order = rng.permutation(100)
    y = X @ turn + 0.05 * rng.normal(size=X.shape)
    return Paired(X, y[order], np.argsort(order))


def paired() -> Paired:
    return make_paired_views(100, random_state=0)


def match(data: Any) -> Call:
    sorting = KernelizedSorting(random_state=0)
    return lambda: sorting.fit(data.X, data.y).permutation_


def by_faq(data: Any) -> Call:
    K, L = (zero_diagonal(rbf_kernel(each)) for each in (data.X, data.y))

    def solve() -> Any:
        options = {"maximize": True, "rng": np.random.default_rng(0)}
        return quadratic_assignment(K, L, method="faq", options=options).col_ind

    return solve


def by_pot(data: Any) -> Call:
    import ot

    K, L = rbf_kernel(data.X), rbf_kernel(data.y)

    def solve() -> Any:
        plan = ot.gromov.gromov_wasserstein(K, L)
        return linear_sum_assignment(plan, maximize=True)[1]

    return solve


def right(data: Any, permutation: Any) -> dict[str, float]:
    return {"right": float((permutation == data.truth).mean())}


def align(bags: Array) -> Call:
    return lambda: MinimumVolumePCA().fit(bags)


def register(bags: Array) -> Call:
    from pycpd import RigidRegistration

    return lambda: [RigidRegistration(X=bags[0], Y=bag).register() for bag in bags[1:]]


def patch() -> Array:
    rng = np.random.default_rng(0)
    a, e = np.radians(rng.uniform(20, 70, (2, 50)))
    return np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=1)


def learn(X: Array) -> Call:
    return lambda: OrbitLearner(2, random_state=0).fit(X)


def labeled() -> Any:
    return digit_sets(40, n_points=20)


def order(data: Any) -> Call:
    return lambda: SetAligner(random_state=0).fit(data.sets)


def classify(data: Any) -> Call:
    return lambda: PermutationInvariantSVC(random_state=0).fit(data.sets, data.labels)


def classify_sorted(data: Any) -> Call:
    from sklearn.svm import SVC

    def fit() -> Any:
        rows = [bag[np.lexsort(bag.T)].ravel() for bag in data.sets]
        return SVC(kernel="linear").fit(rows, data.labels)

    return fit


def process(code: str, **environment: str) -> Call:
    command = [sys.executable, "-c", code]
    return lambda: subprocess.run(command, check=True, env={**os.environ, **environment})


def later_call(code: str, _: Any) -> Call:
    """All that it compiles is found."""
    folder = tempfile.TemporaryDirectory()
    again = process(code, NUMBA_CACHE_DIR=folder.name)
    again()

    def run() -> None:
        assert os.path.isdir(folder.name)  # which lives as long as this function
        again()

    return run


def first_call(code: str, _: Any) -> Call:
    """Nothing that was compiled before is found."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            process(code, NUMBA_CACHE_DIR=folder)()

    return run
