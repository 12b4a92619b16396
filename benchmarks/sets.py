"""Set kernels: Gram matrices against batched NumPy, mixtures against scikit-learn.

Times are processor time on one core, so other processes do not count.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._measure import Row
from unshuffle.datasets import digit_sets, mixture_sets
from unshuffle.kernels import BhattacharyyaKernel, ExpectedLikelihoodKernel, Mixture

TOPIC = "Kernels between sets, one core"
FORMATS = {"ns per pair": ".0f", "gap": ".0e", "likelihood": ".3f", "peer's ": ".3f"}
COMPONENTS = 5
REPEATS = 3
# Sets per NumPy block on either side, found by trial: larger blocks do not fit the cache.
BLOCK = 16

Array = NDArray[np.float64]
Stacked = tuple[Array, Array, Array]
Log = Callable[[Stacked, Stacked], Array]
Result = TypeVar("Result")


def rows(*, quick: bool) -> Iterator[Row]:
    """Gram matrices, then mixtures."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield from gram_rows(200 if quick else 1000)
        yield from fit_rows(30 if quick else 100)
        yield from feature_rows(100 if quick else 300)


def gram_rows(n: int) -> Iterator[Row]:
    """Normalized expected likelihood after fitting, against NumPy."""
    for d in (2, 5, 10):
        bags = mixture_sets(n, n_features=d).sets
        kernel = ExpectedLikelihoodKernel(COMPONENTS, random_state=0).fit(bags)
        ours, seconds = spent(partial(kernel._gram, kernel._fitted_sets), repeats=REPEATS)
        found = stacked(kernel.mixtures(bags))
        peers: dict[str, Log] = {
            "NumPy, LAPACK in batches": by_lapack,
            "NumPy, unrolled": unrolled,
        }
        for peer, log in peers.items():
            theirs, peer_seconds = spent(partial(numpy_gram, found, log))
            yield Row(
                TOPIC,
                f"Gram matrix of {n} sets, M={COMPONENTS}, d={d}",
                "ExpectedLikelihoodKernel",
                seconds,
                peer,
                peer_seconds,
                {
                    "ns per pair": 1e9 * seconds / (n * (n + 1) / 2 * COMPONENTS**2),
                    "gap": float(np.abs(ours - theirs).max()),
                    "likelihood": None,
                    "peer's ": None,
                },
            )


def fit_rows(n: int) -> Iterator[Row]:
    """One mixture per set: time and mean log-likelihood per point."""
    bags = mixture_sets(n).sets
    kernel = ExpectedLikelihoodKernel(COMPONENTS, regularization=1e-3, random_state=0)
    kernel.fit(bags[:2])
    _, seconds = spent(partial(kernel.fit, bags), repeats=REPEATS)
    ours = kernel.mixtures(bags)
    points = np.concatenate(bags)
    floor = 1e-3 * float(points.var(axis=0).mean())
    for starts in (1, kernel.n_init):
        peer = GaussianMixture(COMPONENTS, reg_covar=floor, n_init=starts, random_state=0)
        theirs, peer_seconds = spent(partial(all_mixtures, peer, bags))
        yield Row(
            TOPIC,
            f"Mixtures of {n} sets, M={COMPONENTS}, d=5",
            "ExpectedLikelihoodKernel",
            seconds,
            f"scikit-learn, {starts} start(s)",
            peer_seconds,
            {
                "ns per pair": None,
                "gap": None,
                "likelihood": mean_likelihood(bags, ours),
                "peer's ": mean_likelihood(bags, theirs),
            },
        )


def feature_rows(n: int) -> Iterator[Row]:
    """Gaussians in the feature space of an RBF kernel: fit and Gram matrix."""
    bags = digit_sets(n).sets
    for kernel in (
        ExpectedLikelihoodKernel(1, base_kernel="rbf", gamma=1.0, random_state=0),
        ExpectedLikelihoodKernel(3, base_kernel="rbf", gamma=1.0, random_state=0),
        BhattacharyyaKernel(base_kernel="rbf", gamma=1.0),
    ):
        kernel.fit_transform(bags[:2])
        _, seconds = spent(partial(kernel.fit_transform, bags))
        name = type(kernel).__name__
        M = getattr(kernel, "n_components", 1)
        details = dict.fromkeys(FORMATS)
        yield Row(
            TOPIC, f"{n} sets, feature space, {name}, M={M}", name, seconds, "-", None, details
        )


def spent(function: Callable[[], Result], *, repeats: int = 1) -> tuple[Result, float]:
    """Result of a call and its least processor time."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return result, best


def stacked(mixtures: list[Mixture]) -> Stacked:
    weights, means, covariances = (np.stack(each) for each in zip(*mixtures, strict=True))
    return np.log(weights), means, covariances


def numpy_gram(mixtures: Stacked, log: Log) -> Array:
    """Compute the upper triangle in blocks, mirror it and scale the diagonal to 1."""
    n = len(mixtures[0])
    K = np.zeros((n, n))
    parts = [
        (slice(i, i + BLOCK), tuple(each[i : i + BLOCK] for each in mixtures))
        for i in range(0, n, BLOCK)
    ]
    for i, (rows, a) in enumerate(parts):
        for columns, b in parts[i:]:
            terms = log(a, b)  # type: ignore[arg-type]
            largest = terms.max(axis=(1, 3), keepdims=True)
            total = np.exp(terms - largest).sum(axis=(1, 3))
            K[rows, columns] = largest[:, 0, :, 0] + np.log(total)
            K[columns, rows] = K[rows, columns].T
    half = 0.5 * np.diag(K)
    return np.asarray(np.exp(K - half[:, np.newaxis] - half))


def by_lapack(a: Stacked, b: Stacked) -> Array:
    """Log products of all pairs of components, with NumPy's decompositions."""
    C, gaps = _sums(a, b)
    factors = np.linalg.cholesky(C)
    z = np.linalg.solve(factors, gaps[..., np.newaxis])[..., 0]
    halves = np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.asarray(_weights(a, b) - halves - 0.5 * (z**2).sum(axis=-1))


def unrolled(a: Stacked, b: Stacked) -> Array:
    """The same with unrolled elimination, each step on all components of the block."""
    C, gaps = _sums(a, b)
    d = C.shape[-1]
    A = np.ascontiguousarray(np.moveaxis(C, (-2, -1), (0, 1)))
    z = np.ascontiguousarray(np.moveaxis(gaps, -1, 0))
    form, determinant = np.zeros(z.shape[1:]), np.ones(z.shape[1:])
    for k in range(d):
        inverse = 1.0 / A[k, k]
        determinant *= A[k, k]
        form += z[k] ** 2 * inverse
        for r in range(k + 1, d):
            ratio = A[r, k] * inverse
            z[r] -= ratio * z[k]
            for c in range(k + 1, r + 1):
                A[r, c] -= ratio * A[c, k]
    return np.asarray(_weights(a, b) - 0.5 * (np.log(determinant) + form))


def _sums(a: Stacked, b: Stacked) -> tuple[Array, Array]:
    C = a[2][:, :, np.newaxis, np.newaxis] + b[2]
    return C, a[1][:, :, np.newaxis, np.newaxis] - b[1]


def _weights(a: Stacked, b: Stacked) -> Array:
    return np.asarray(a[0][:, :, np.newaxis, np.newaxis] + b[0])


def all_mixtures(model: GaussianMixture, bags: list[Array]) -> list[Mixture]:
    found = (model.fit(bag) for bag in bags)
    return [Mixture(each.weights_, each.means_, each.covariances_) for each in found]


def mean_likelihood(bags: list[Array], mixtures: list[Mixture]) -> float:
    """Mean log-likelihood per point under the mixture of its set."""
    return float(np.mean([_likelihood(*each) for each in zip(bags, mixtures, strict=True)]))


def _likelihood(points: Array, mixture: Mixture) -> float:
    gaps = points[:, np.newaxis] - mixture.means
    forms = np.einsum("nki,kij,nkj->nk", gaps, np.linalg.inv(mixture.covariances), gaps)
    dets = np.linalg.slogdet(2.0 * np.pi * mixture.covariances)[1]
    logs = np.log(mixture.weights) - 0.5 * (dets + forms)
    return float(np.logaddexp.reduce(logs, axis=1).mean())
