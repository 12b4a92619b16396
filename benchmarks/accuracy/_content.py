"""Which features for which purpose: walls of labeled pictures, and halves of photos."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle import GridLayout, KernelizedSorting
from unshuffle.encoders import is_encoder
from unshuffle.images import color_histogram, describe, lab_pixels
from unshuffle.metrics import neighbor_distance

# Pictures, grid, labels and first picture used. Roots of the means of channels were chosen on the
# first half of the photos of ten kinds.
WALLS = (
    ("photos of ten kinds", "cifar10_1000", (25, 40), "labels", 0),
    ("the second half of them", "cifar10_1000", (20, 25), "labels", 500),
    ("12 objects turned around", "coil20_obj1to12", (27, 32), "object_id", 0),
    ("handwritten digits", "mnist3000", (50, 60), "labels", 0),
)
FEATURES = (
    *("color", "texture", "words", "content", "content:lite2"),
    *("color+content", "texture+content", "words+content", "color+content:lite2"),
    *("texture+content:lite2", "content+content:lite2"),
)
SEEDS = range(3)
SMOOTH = "flickr320", (16, 20)
HALVES = (("flickr320", slice(0, 320)), ("cifar10_1000", slice(0, 400)))
SUMS = (
    *("pixels", "pixels+color", "content", "pixels+content", "pixels+color+content"),
    *("content:lite2", "pixels+content:lite2", "pixels+color+content:lite2"),
)

Encoded = dict[str, NDArray[np.floating]]


def report(folder: Path) -> Iterator[str]:
    """Shares of touching cells with one label, distance of touching colors, right halves."""
    for title, name, shape, labels, first in WALLS:
        data = np.load(folder / f"{name}.npz")
        images, kinds = data["images"][first:], data[labels][first:]
        encoded: Encoded = {}
        for features in FEATURES:
            grids = _walls(images, features, shape, encoded)
            shares = [_touching(grid, kinds) for grid in grids]
            yield (
                f"{title}, {features}: {np.mean(shares):.3f} of touching cells alike "
                f"({min(shares):.3f} to {max(shares):.3f}, by chance {_by_chance(kinds):.3f})"
            )
    name, shape = SMOOTH
    images = np.load(folder / f"{name}.npz")["images"]
    colors = lab_pixels(images).reshape(len(images), -1, 3).mean(axis=1)
    orders = [np.random.RandomState(seed).permutation(len(images)) for seed in range(20)]
    apart = [neighbor_distance(colors, order.reshape(shape)) for order in orders]
    yield f"{name}, random order: mean colors of touching photos {np.mean(apart):.1f} apart"
    encoded = {}
    for features in FEATURES:
        grids = _walls(images, features, shape, encoded)
        apart = [neighbor_distance(colors, grid) for grid in grids]
        yield f"{name}, {features}: mean colors of touching photos {np.mean(apart):.1f} apart"
    for name, part in HALVES:
        yield from _halves(name, np.load(folder / f"{name}.npz")["images"][part])


def _walls(
    images: NDArray[np.uint8], features: str, shape: tuple[int, int], encoded: Encoded
) -> Iterator[NDArray[np.intp]]:
    kinds: list[Any] = features.split("+")
    for place, kind in enumerate(kinds):
        if is_encoder(kind):
            if kind not in encoded:  # slow, and part of several sums
                encoded[kind] = describe(images, kind)[0]
            kinds[place] = partial(_known, encoded[kind])
    vectors, kernel = describe(images, kinds, random_state=0)
    for seed in SEEDS:
        used = None if kernel == "linear" else kernel
        yield GridLayout(shape, kernel=used, random_state=seed).fit(vectors).grid_


def _known(vectors: NDArray[np.floating], images: NDArray[np.uint8]) -> NDArray[np.floating]:
    return vectors


def _touching(grid: NDArray[np.intp], labels: NDArray[np.integer]) -> float:
    """Share of the touching cells that hold items with the same label."""
    held = np.where(grid >= 0, labels[grid], -1)
    pairs = [(held[:, 1:], held[:, :-1]), (held[1:], held[:-1])]
    both = [(one[(one >= 0) & (two >= 0)], two[(one >= 0) & (two >= 0)]) for one, two in pairs]
    return float(np.mean(np.concatenate([one == two for one, two in both])))


def _by_chance(labels: NDArray[np.integer]) -> float:
    counts = np.unique(labels, return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (labels.size * (labels.size - 1)))


def _halves(name: str, images: NDArray[np.uint8]) -> Iterator[str]:
    """Left halves matched with shuffled right ones, by sums of kernels."""
    cut, rng = images.shape[2] // 2, np.random.RandomState(0)
    order = rng.permutation(len(images))
    sides = images[:, :, :cut], images[:, :, cut:][order]

    @cache
    def described(kind: str) -> tuple[NDArray[np.floating], ...]:
        own = {"pixels": lab_pixels, "color": color_histogram}
        return tuple(own[kind](side) if kind in own else describe(side, kind)[0] for side in sides)

    for names in SUMS:
        kinds = names.split("+")
        sorting = KernelizedSorting(["rbf"] * len(kinds), random_state=0)
        sorting.fit(*([described(kind)[side] for kind in kinds] for side in (0, 1)))
        n_right = int(np.sum(order[sorting.permutation_] == np.arange(len(images))))
        doubts = ", with a warning" if sorting.doubts_ else ""
        yield f"{name}, halves by {names}: {n_right} of {len(images)} right{doubts}"
