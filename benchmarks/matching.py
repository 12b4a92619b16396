"""Matching collections against Gromov-Wasserstein, the fast approximate QAP and the 2009 paper."""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from sklearn.metrics import pairwise_distances

from benchmarks._measure import Row, timed
from unshuffle import KernelizedSorting
from unshuffle.datasets import Paired, digits_views, make_paired_views, photo_halves
from unshuffle.images import lab_pixels
from unshuffle.kernels import rbf_kernel, zero_diagonal

TOPIC = "Matching two collections"
FLICKR = "flickr320.npz"
MANY = 2000

Matcher = Callable[[NDArray, NDArray], NDArray[np.intp]]


def rows(*, quick: bool) -> Iterator[Row]:
    """Refined kernelized sorting against each peer, with the number of right pairs."""
    refined = by_sorting("refined")
    peers: dict[str, Matcher] = {
        "kernelized sorting, classic": by_sorting("classic"),
        "POT Gromov-Wasserstein, distances": by_distances,
        "POT Gromov-Wasserstein, kernels": by_kernels,
        "scipy FAQ": by_faq,
    }
    for problem, data in problems(quick=quick):
        yield from against_peers(problem, data, refined, peers)
        yield checked(problem, data)
    if not quick:
        # Time on two cores. The other peers take too long for this.
        yield from against_peers(
            "synthetic views, n_jobs=2",
            make_paired_views(MANY, random_state=0),
            by_sorting("refined", n_jobs=2),
            {"kernelized sorting, classic": by_sorting("classic", n_jobs=2)},
        )


def against_peers(
    problem: str, data: Paired, refined: Matcher, peers: dict[str, Matcher]
) -> Iterator[Row]:
    """One row for each peer."""
    X, y = features(data.X), features(data.y)
    refined(X[:50], y[:50])  # compile before timing
    found, seconds = timed(partial(refined, X, y))
    for peer, match in peers.items():
        theirs, peer_seconds = timed(partial(match, X, y))
        yield Row(
            TOPIC,
            problem,
            "kernelized sorting, refined",
            seconds,
            peer,
            peer_seconds,
            {
                "items": len(X),
                "right": int((found == data.truth).sum()),
                "peer right": int((theirs == data.truth).sum()),
            },
        )


def checked(problem: str, data: Paired) -> Row:
    """The default call, which estimates how many pairs are right, beside the search alone."""
    X, y = features(data.X), features(data.y)
    sorting = KernelizedSorting(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sorting.fit(X[:50], y[:50])
        _, seconds = timed(partial(sorting.fit, X, y))
        _, alone = timed(partial(by_sorting("refined"), X, y))
    return Row(
        TOPIC,
        problem,
        "default, checked",
        seconds,
        "refined, unchecked",
        alone,
        {
            "items": len(X),
            "right": int((sorting.permutation_ == data.truth).sum()),
            "believed": round(sorting.expected_accuracy_ * len(X)),
        },
    )


def problems(*, quick: bool) -> Iterator[tuple[str, Paired]]:
    """Data shipped with scikit-learn or generated, and photographs if available."""
    n_items = 200 if quick else 400
    yield "synthetic views", make_paired_views(n_items, random_state=0)
    yield "halves of photo crops", photo_halves(min(n_items, 240))  # the most from two photos
    yield "halves of digits", digits_views(n_items)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("UNSHUFFLE_DATA", beside)) / FLICKR
    if path.exists():
        yield "halves of flickr320", halves(np.load(path)["images"])


def halves(images: NDArray) -> Paired:
    """Left halves, and right halves in a different order."""
    order = np.random.default_rng(0).permutation(len(images))
    middle = images.shape[2] // 2
    return Paired(images[:, :, :middle], images[order][:, :, middle:], np.argsort(order))


def features(items: NDArray) -> NDArray[np.float64]:
    """Lab pixels of color pictures, as in the 2009 paper; other items unchanged."""
    if items.dtype == np.uint8 and items.ndim == 4:
        return lab_pixels(items)
    return items.reshape(len(items), -1).astype(np.float64)


def by_sorting(method: str, *, n_jobs: int | None = None) -> Matcher:
    # Peers do not check their answers.
    sorting = KernelizedSorting("rbf", method=method, random_state=0, n_jobs=n_jobs, trust=False)

    def match(X: NDArray, y: NDArray) -> NDArray[np.intp]:
        with warnings.catch_warnings():
            # Ambiguity and early stops show in the number of right pairs.
            warnings.simplefilter("ignore", UserWarning)
            permutation: NDArray[np.intp] = sorting.fit(X, y).permutation_
        return permutation

    return match


def by_distances(X: NDArray, y: NDArray) -> NDArray[np.intp]:
    """Squared distances, on which this peer does better than on kernels or distances."""
    return by_plan(*(scaled(pairwise_distances(each, metric="sqeuclidean")) for each in (X, y)))


def scaled(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    return distances / np.median(distances)


def by_kernels(X: NDArray, y: NDArray) -> NDArray[np.intp]:
    return by_plan(rbf_kernel(X), rbf_kernel(y))


def by_plan(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.intp]:
    plan = ot.gromov.gromov_wasserstein(first, second, loss_fun="square_loss")
    return np.asarray(linear_sum_assignment(plan, maximize=True)[1])


def by_faq(X: NDArray, y: NDArray) -> NDArray[np.intp]:
    # uncentered: on centered kernels FAQ starts where its gradient is exactly zero
    K, L = zero_diagonal(rbf_kernel(X)), zero_diagonal(rbf_kernel(y))
    found = quadratic_assignment(K, L, method="faq", options={"maximize": True})
    return np.asarray(found.col_ind)
