"""Halves of photographs: complete, fewer on one side, or unmatched ones on both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from benchmarks.papers._kernelized_sorting import halves
from unshuffle import KernelizedSorting
from unshuffle.datasets import photo_halves
from unshuffle.images import color_histogram, lab_pixels
from unshuffle.kernels import combined_gram

N_DRAWS = 5


def report(folder: Path) -> Iterator[str]:
    flickr = np.load(folder / "flickr320.npz")["images"]
    cifar = np.load(folder / "cifar10_1000.npz")["images"]
    yield from _equal("flickr320, pixels + histogram", flickr, ["rbf", "rbf"])
    for first in (0, 400):
        images = cifar[first : first + 400]
        yield from _equal(f"cifar10 {first}..{first + 400}, two kernels", images, ["rbf", "rbf"])
    yield _frozen(flickr)
    for n_right in (300, 240, 160):
        yield _unequal(flickr, n_right)
    for unmatched_cost in (None, 0.3, 0.4, 0.5):
        yield _partial(flickr, unmatched_cost)


def weigh(folder: Path) -> Iterator[str]:
    """Right pairs by two and by four kernels: the best alone, their sum, equal and found weights.

    Edges and the means of rows are weak kernels.
    """
    flickr = np.load(folder / "flickr320.npz")["images"]
    cifar = np.load(folder / "cifar10_1000.npz")["images"]
    objects = np.load(folder / "aloi1000.npz")["images"]
    crops = photo_halves(240, random_state=0)
    problems = {"demo": (crops.X, crops.y[crops.truth]), "flickr320": halves(flickr)}
    for first in (0, 400, 700):
        problems[f"cifar10 {first}..{first + 300}"] = halves(cifar[first : first + 300])
        problems[f"aloi1000 {first}..{first + 300}"] = halves(objects[first : first + 300])
    for title, (left, right) in problems.items():
        order = np.random.RandomState(0).permutation(len(left))
        X, y = _four_features(left), _four_features(right[order])
        for n_kernels in (2, 4):
            first_views, second_views = X[:n_kernels], y[:n_kernels]
            names = ["rbf"] * n_kernels

            def right(fitted: KernelizedSorting, order: NDArray[Any] = order) -> NDArray[Any]:
                return np.asarray(order[fitted.permutation_] == np.arange(order.size))

            alone = [
                right(KernelizedSorting("rbf", trust=False).fit(*pair)).sum()
                for pair in zip(first_views, second_views, strict=True)
            ]
            grams = [combined_gram(views, names) for views in (first_views, second_views)]
            summed = right(KernelizedSorting("precomputed", trust=False).fit(*grams)).sum()
            even = KernelizedSorting(names, kernel_weights=np.ones(n_kernels), trust=False)
            equal = right(even.fit(first_views, second_views))
            open_ = KernelizedSorting(names, trust=False).fit(first_views, second_views)
            found = right(open_)
            # Under the null hypothesis, an item that only one of them gets right is a fair coin.
            won, lost = int((found & ~equal).sum()), int((equal & ~found).sum())
            p_value = binomtest(won, won + lost).pvalue if won + lost else 1.0
            yield (
                f"{title}, {n_kernels} kernels: alone {[int(each) for each in alone]}, one sum "
                f"{summed}, equal weights {equal.sum()}, weights found {found.sum()} of "
                f"{order.size} {open_.kernel_weights_.round(2).tolist()}; against equal "
                f"{won} won, {lost} lost (p = {p_value:.2f})"
            )


def _four_features(images: NDArray[np.uint8]) -> list[NDArray[Any]]:
    gray = images.astype(float).mean(axis=-1)
    edges = np.hypot(*np.gradient(gray, axis=(1, 2))).reshape(len(images), -1)
    rows = images.astype(float).mean(axis=2).reshape(len(images), -1)
    return [lab_pixels(images), color_histogram(images), edges, rows]


def _features(images: NDArray[np.uint8], n_kernels: int) -> list[NDArray[Any]]:
    return [lab_pixels(images), color_histogram(images)][:n_kernels]


def _fit(
    left: NDArray[np.uint8], right: NDArray[np.uint8], kernels: list[str], **options: Any
) -> KernelizedSorting:
    fit_options = {"frozen": options.pop("frozen", None)}
    X, y = _features(left, len(kernels)), _features(right, len(kernels))
    return KernelizedSorting(kernel=kernels, **options).fit(X, y, **fit_options)


def _equal(
    title: str, images: NDArray[np.uint8], kernels: list[str], **options: Any
) -> Iterator[str]:
    left, right = halves(images)
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(len(images))
        sorting = _fit(left, right[order], kernels, **options)
        good = order[sorting.permutation_] == np.arange(len(images))
        yield (
            f"{title}, shuffle {seed}: {good.sum()} of {good.size} right, "
            f"confidence {_auc(good, sorting.confidence_)}, ambiguity {sorting.ambiguity_:.3f}"
        )


def _frozen(images: NDArray[np.uint8]) -> str:
    left, right = halves(images)
    counts = []
    for seed in range(N_DRAWS):
        rng = np.random.RandomState(seed)
        order = rng.permutation(len(images))
        truth = np.argsort(order)
        known = rng.permutation(len(images))[:10]
        frozen = np.column_stack([known, truth[known]])
        without = _fit(left, right[order], ["rbf"]).permutation_
        with_known = _fit(left, right[order], ["rbf"], frozen=frozen).permutation_
        kept = bool(np.all(with_known[known] == truth[known]))
        counts.append((int((without == truth).sum()), int((with_known == truth).sum()), kept))
    return f"flickr320, pixels, 10 frozen (without, with, all kept): {counts}"


def _unequal(images: NDArray[np.uint8], n_right: int) -> str:
    left, right = halves(images)
    counts = []
    for seed in range(N_DRAWS):
        chosen = np.random.RandomState(seed).permutation(len(images))[:n_right]
        sorting = _fit(left, right[chosen], ["rbf", "rbf"])
        matched = sorting.pairs_
        counts.append(int((chosen[matched[:, 1]] == matched[:, 0]).sum()))
    return f"flickr320 against {n_right} right halves: {counts} right, mean {np.mean(counts):.1f}"


def _partial(images: NDArray[np.uint8], unmatched_cost: float | None) -> str:
    left, right = halves(images)
    lines = []
    for seed in range(2):
        rng = np.random.RandomState(seed)
        common, only_x, only_y = np.split(rng.permutation(320), [200, 260])
        first = rng.permutation(np.r_[common, only_x])
        second = rng.permutation(np.r_[common, only_y])
        options = {"unmatched_cost": unmatched_cost}
        sorting = _fit(left[first], right[second], ["rbf", "rbf"], **options)
        partner = np.where(sorting.permutation_ >= 0, second[sorting.permutation_], -1)
        good = partner == first
        stranger = np.isin(first, only_x)
        alone = sorting.permutation_ < 0
        lines.append(
            f"{good.sum()} of 200 right, {alone.sum()} alone ({(alone & stranger).sum()} of 60 "
            f"strangers), confidence {_auc(good, sorting.confidence_)} for right against rest"
        )
    return f"partial overlap, unmatched_cost={unmatched_cost}: " + "; ".join(lines)


def _auc(good: NDArray[np.bool_], confidence: NDArray[np.float64]) -> str:
    auc = roc_auc_score(good, confidence) if 0 < good.sum() < good.size else np.nan
    return f"{confidence.mean():.2f} on average (AUC {auc:.3f})"
