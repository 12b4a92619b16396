"""Set kernels: Gram matrices against batched NumPy, mixtures against scikit-learn."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from benchmarks._measure import Method, Problem
from unshuffle.datasets import digit_sets, mixture_sets
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    MeanMapKernel,
    Mixture,
    SlicedWassersteinKernel,
)

TITLE = "Kernels between sets"
ABOUT = (
    "One core. Gram matrices by five full Gaussians of each set, after fitting, beside the same "
    "formula in NumPy, in blocks of 16 by 16 sets: with its batched decompositions, and with the "
    "elimination unrolled. Mixtures of all sets beside scikit-learn's `GaussianMixture` with one "
    "start and with as many as ours. Strokes are handwritten digits as sets of 70 points with "
    "four columns: all pairs of points, or 2,000 random features. Feature space is that of an RBF "
    "kernel."
)
SIZE = "sets"
CORES = 1
COMPONENTS = 5
# Sets per NumPy block on either side, found by trial: larger blocks do not fit the cache.
BLOCK = 16

Array = NDArray[np.float64]
Bags = list[Array]
Stacked = tuple[Array, Array, Array]
Log = Callable[[Stacked, Stacked], Array]


class Fitted(NamedTuple):
    """A kernel, and the sets that it is fitted to."""

    kernel: ExpectedLikelihoodKernel
    bags: Bags


def problems() -> Iterator[Problem]:
    for d in (2, 5, 10):
        for n in (50, 100, 200, 500, 1000) if d == 5 else (200,):
            yield Problem(
                f"Gram matrix, d = {d}",
                n,
                partial(fitted, n, d),
                (
                    Method("ExpectedLikelihoodKernel", our_gram, "ours"),
                    Method("NumPy, LAPACK in batches", partial(numpy_gram, log=by_lapack)),
                    Method("NumPy, unrolled", partial(numpy_gram, log=unrolled)),
                ),
                difference,
                quick=n == 200,
            )
    for n in (30, 100, 300):
        methods = (
            Method("ExpectedLikelihoodKernel", our_mixtures, "ours"),
            Method("scikit-learn, 1 start", partial(their_mixtures, starts=1)),
            Method("scikit-learn, as many starts", partial(their_mixtures, starts=None)),
        )
        yield Problem("mixtures, d = 5", n, partial(bags_of, n), methods, likelihood, n == 30)
    for n in (100, 300, 1000):
        methods = (
            Method("MeanMapKernel", partial(gram_of, MeanMapKernel(outer="rbf")), "ours"),
            Method(
                "MeanMapKernel, random features",
                partial(gram_of, MeanMapKernel(outer="rbf", n_features=2000, random_state=0)),
                "ours",
            ),
            Method(
                "SlicedWassersteinKernel",
                partial(gram_of, SlicedWassersteinKernel(random_state=0)),
                "ours",
            ),
        )
        yield Problem("strokes", n, partial(strokes, n), methods)
    for n in (100, 300):
        spaces = {
            "one Gaussian": ExpectedLikelihoodKernel(
                1, base_kernel="rbf", gamma=1.0, random_state=0
            ),
            "three Gaussians": ExpectedLikelihoodKernel(
                3, base_kernel="rbf", gamma=1.0, random_state=0
            ),
            "Bhattacharyya": BhattacharyyaKernel(base_kernel="rbf", gamma=1.0),
        }
        methods = tuple(
            Method(name, partial(gram_of, kernel), "ours") for name, kernel in spaces.items()
        )
        yield Problem("feature space", n, partial(digits, n), methods)


def fitted(n: int, d: int) -> Fitted:
    """Mixtures from few rounds: how good they are does not change the time of a Gram matrix."""
    bags = list(mixture_sets(n, n_features=d).sets)
    kernel = ExpectedLikelihoodKernel(COMPONENTS, random_state=0, n_init=1, max_iter=5)
    return Fitted(kernel.fit(bags), bags)


def bags_of(n: int) -> Bags:
    return list(mixture_sets(n).sets)


def digits(n: int) -> Bags:
    return list(digit_sets(n).sets)


def strokes(n: int) -> Bags:
    """Points of digits with the direction and the straightness of the stroke at each."""
    from unshuffle.preprocessing import NeighborhoodShape

    base = digit_sets(min(n, 300)).sets
    random = np.random.default_rng(0)
    # There are few digits: later ones are earlier ones with a little noise.
    bags = [base[i % len(base)] + 0.01 * random.normal(size=base[0].shape) for i in range(n)]
    return list(NeighborhoodShape().fit_transform(bags))


def gram_of(kernel: Any, bags: Bags) -> Callable[[], Any]:
    kernel.fit_transform(bags[:2])  # compile
    return lambda: kernel.fit_transform(bags)


def our_gram(data: Fitted) -> Callable[[], Array]:
    return lambda: data.kernel._gram(data.kernel._describe_fitted())


def numpy_gram(data: Fitted, *, log: Log) -> Callable[[], Array]:
    mixtures = stacked(data.kernel.mixtures(data.bags))
    return lambda: in_blocks(mixtures, log)


def difference(data: Fitted, K: Array) -> dict[str, float]:
    return {"differs from ours by": float(np.abs(K - our_gram(data)()).max())}


def our_mixtures(bags: Bags) -> Callable[[], ExpectedLikelihoodKernel]:
    kernel = ExpectedLikelihoodKernel(COMPONENTS, regularization=1e-3, random_state=0)
    kernel.fit(bags[:2])  # compile
    return lambda: kernel.fit(bags)


def their_mixtures(bags: Bags, *, starts: int | None) -> Callable[[], list[Mixture]]:
    floor = 1e-3 * float(np.concatenate(bags).var(axis=0).mean())
    starts = starts or ExpectedLikelihoodKernel().n_init
    model = GaussianMixture(COMPONENTS, reg_covar=floor, n_init=starts, random_state=0)

    def fit() -> list[Mixture]:
        found = (model.fit(bag) for bag in bags)
        return [Mixture(each.weights_, each.means_, each.covariances_) for each in found]

    return fit


def stacked(mixtures: list[Mixture]) -> Stacked:
    weights, means, covariances = (np.stack(each) for each in zip(*mixtures, strict=True))
    return np.log(weights), means, covariances


def in_blocks(mixtures: Stacked, log: Log) -> Array:
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


def likelihood(bags: Bags, fit: Any) -> dict[str, float]:
    """Mean log-likelihood per point under the mixture of its set."""
    mixtures = fit if isinstance(fit, list) else fit.mixtures(bags)
    found = [_likelihood(*each) for each in zip(bags, mixtures, strict=True)]
    return {"log-likelihood": float(np.mean(found))}


def _likelihood(points: Array, mixture: Mixture) -> float:
    gaps = points[:, np.newaxis] - mixture.means
    forms = np.einsum("nki,kij,nkj->nk", gaps, np.linalg.inv(mixture.covariances), gaps)
    dets = np.linalg.slogdet(2.0 * np.pi * mixture.covariances)[1]
    logs = np.log(mixture.weights) - 0.5 * (dets + forms)
    return float(np.logaddexp.reduce(logs, axis=1).mean())
