"""Classification tasks on sets, drawn by a seed."""

import csv
import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

Bag = NDArray[np.float64]

N_PIXELS = 28  # width and height of an MNIST image


class Task(NamedTuple):
    """Training and test sets with their labels.

    Attributes
    ----------
    train, test : list of ndarray of shape (n_i, n_features)
        Sets of points.
    y_train, y_test : ndarray
        Their labels.
    """

    train: list[Bag]
    y_train: NDArray[Any]
    test: list[Bag]
    y_test: NDArray[Any]


def digit_pairs(
    folder: Path, seed: int, *, n_train: int = 100, n_points: int = 70, images: bool = False
) -> Task:
    """3s and 9s as sets of dark pixels: `n_train` of each for training, all others for testing.

    As in the paper, pixels are drawn at random from the dark region, without repetition if there
    are enough. The seed determines the pixels and the split. With `images`, the same digits as
    vectors of pixels.
    """
    data = np.load(folder / "mnist3000.npz")
    rng = np.random.default_rng(seed)
    parts: list[tuple[list[Bag], list[Bag]]] = []
    for digit in (3, 9):
        found = data["images"][data["labels"] == digit]
        order = rng.permutation(len(found))
        clouds = [drawn_pixels(found[i] > 127, n_points, rng) / N_PIXELS for i in order]
        shown = [found[i].ravel() / 255.0 for i in order] if images else clouds
        parts.append((shown[:n_train], shown[n_train:]))
    train, test = ([each for part in parts for each in part[side]] for side in (0, 1))
    y_train, y_test = (np.repeat((3, 9), [len(part[side]) for part in parts]) for side in (0, 1))
    return Task(train, y_train, test, y_test)


def mnist_sets(folder: Path, seed: int, *, first: int = 0) -> Task:
    """A thousand digits as sets of (x, y, intensity), 700 for training and 300 for testing.

    The points are pixels above 191 of 255, 18 to 186 per set, with coordinates and intensities
    scaled to [0, 1]. The seed determines the split. `first` (0, 100 or 200) is the first of the
    hundred images of each digit, which leaves other images for experiments.
    """
    images, labels = _thousand_images(folder, first)
    return _split([ink_tuples(image) for image in images], labels, 300, seed)


def mnist_images(folder: Path, seed: int, *, first: int = 0) -> Task:
    """The same digits and split as whole images: vectors of 784 numbers in [0, 1]."""
    images, labels = _thousand_images(folder, first)
    return _split([image.ravel() / 255.0 for image in images], labels, 300, seed)


def permuted_table(
    folder: Path, name: str, seed: int | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows of a table as sets of single numbers, in random order, and their labels.

    `name` is "ionosphere", "pima" or "heart". Features are first scaled to [0, 1] over the whole
    table, without using labels, so that numbers of different features are comparable. Without a
    seed they stay in their order.
    """
    X, y = load_table(folder / "uci" / f"{name}.csv.gz")
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), np.finfo(float).tiny)
    if seed is not None:
        X = np.random.default_rng(seed).permuted(X, axis=1)
    return X[:, :, np.newaxis], y


class Views(NamedTuple):
    """Two objects: views as sets of bright pixels and as images, and which are for training."""

    sets: NDArray[np.float64]
    images: NDArray[np.float64]
    labels: NDArray[np.intp]
    trained: NDArray[np.bool_]


def object_views(
    folder: Path, objects: tuple[int, int], seed: int, *, halved: bool, n_points: int = 120
) -> Views:
    """Twelve views of two objects: three of each for training, nine for testing.

    Views are consecutive, 5 degrees apart, from a random starting angle. Each is moved by up to
    four pixels in both directions, so that position carries no information. `halved` images have
    36 x 48 pixels.
    """
    data = np.load(folder / "aloi_pairs.npz")
    rng = np.random.default_rng(seed)
    sets, images, labels, trained = [], [], [], []
    for label, each in enumerate(objects):
        shown = data["images"][data["object_id"] == each].mean(axis=3)
        if halved:
            shown = shown.reshape(len(shown), 36, 2, 48, 2).mean(axis=(2, 4))
        turned = (rng.integers(len(shown)) + np.arange(12)) % len(shown)
        for place, view in enumerate(rng.permutation(turned)):
            moved = rng.integers(-4, 5, size=2)
            bright = np.roll(shown[view] > 30, moved, axis=(0, 1))
            sets.append(drawn_pixels(bright, n_points, rng) / shown.shape[2])
            images.append(bright.ravel().astype(float))
            labels.append(label)
            trained.append(place < 3)
    return Views(np.array(sets), np.array(images), np.array(labels), np.array(trained))


def load_table(path: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Numbers of a table whose last column is the target, and that column."""
    with gzip.open(path, "rt", newline="") as file:
        records = list(csv.reader(file))[1:]
    X = np.array([record[:-1] for record in records], dtype=float)
    return X, np.array([record[-1] for record in records])


def drawn_pixels(shown: NDArray[np.bool_], n_points: int, rng: np.random.Generator) -> Bag:
    """Draw (x, y) of pixels where `shown`, without repetition if there are enough."""
    rows, columns = np.nonzero(shown)
    chosen = rng.choice(rows.size, n_points, replace=rows.size < n_points)
    return np.stack([columns[chosen], shown.shape[0] - 1 - rows[chosen]], axis=1).astype(float)


def ink_tuples(image: NDArray[np.uint8], least: int = 192) -> Bag:
    """Dark pixels of an image as (x, y, intensity), all in [0, 1]."""
    rows, columns = np.nonzero(image >= least)
    x, y = columns / image.shape[1], 1.0 - rows / image.shape[0]
    return np.stack([x, y, image[rows, columns] / 255.0], axis=1)


def _thousand_images(folder: Path, first: int) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    data = np.load(folder / "mnist3000.npz")
    chosen = np.concatenate(
        [np.flatnonzero(data["labels"] == digit)[first : first + 100] for digit in range(10)]
    )
    return data["images"][chosen], data["labels"][chosen]


def _split(bags: list[Bag], y: NDArray[Any], n_test: int | float, seed: int) -> Task:
    train, test = train_test_split(
        np.arange(len(bags)), test_size=n_test, random_state=seed, stratify=y
    )
    return Task([bags[i] for i in train], y[train], [bags[i] for i in test], y[test])
