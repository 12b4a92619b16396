"""Classification tasks on sets, split by a seed into training and test parts.

Every function returns a `Task`. Choose parameters on its training part only.
"""

import csv
import gzip
from collections.abc import Sequence
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
    folder: Path,
    seed: int,
    *,
    digits: Sequence[int] = (3, 9),
    n_train: int = 100,
    n_points: int = 70,
) -> Task:
    """Two digits as sets of dark pixels: `n_train` of each for training, all others for testing.

    As in the paper, pixels are drawn at random from the dark region, without repetition if there
    are enough. The seed determines the pixels and the split. Pairs of digits other than the scored
    one can be used for choices that the training part cannot decide.
    """
    data = np.load(folder / "mnist3000.npz")
    rng = np.random.default_rng(seed)
    parts: list[tuple[list[Bag], list[Bag]]] = []
    for digit in digits:
        images = data["images"][data["labels"] == digit]
        order = rng.permutation(len(images))
        clouds = [drawn_pixels(images[i] > 127, n_points, rng) / N_PIXELS for i in order]
        parts.append((clouds[:n_train], clouds[n_train:]))
    train, test = ([each for part in parts for each in part[side]] for side in (0, 1))
    y_train, y_test = (np.repeat(digits, [len(part[side]) for part in parts]) for side in (0, 1))
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


def permuted_table(folder: Path, name: str, seed: int, *, n_test: int | float = 0.3) -> Task:
    """Rows of a table as sets of single numbers: the features of each row are permuted.

    `name` is "ionosphere", "pima" or "heart". Features are first scaled to [0, 1] over the whole
    table, without using labels, so that numbers of different features are comparable.
    """
    with gzip.open(folder / "uci" / f"{name}.csv.gz", "rt", newline="") as file:
        records = list(csv.reader(file))[1:]
    X = np.array([record[:-1] for record in records], dtype=float)
    y = np.array([record[-1] for record in records])
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), np.finfo(float).tiny)
    X = np.random.default_rng(seed).permuted(X, axis=1)
    return _split(list(X[:, :, np.newaxis]), y, n_test, seed)


def plane_dart(
    folder: Path,
    seed: int,
    *,
    objects: Sequence[int] = (411, 421),
    n_views: int = 12,
    n_train: int = 3,
    n_points: int = 120,
    most_shift: int = 4,
) -> Task:
    """Two objects as sets of bright pixels: three views of each for training, nine for testing.

    Views are consecutive, 5 degrees apart, from a random starting angle. Each is shifted by up to
    `most_shift` pixels in both directions, so that position carries no information. Mugs are 259
    and 262, dolls 139 and 145.
    """
    data = np.load(folder / "aloi_pairs.npz")
    rng = np.random.default_rng(seed)
    bags: dict[str, list[Bag]] = {"train": [], "test": []}
    for each in objects:
        views = data["images"][data["object_id"] == each].mean(axis=3)
        turned = (rng.integers(len(views)) + np.arange(n_views)) % len(views)
        for place, view in enumerate(rng.permutation(turned)):
            points = drawn_pixels(views[view] > 30, n_points, rng)
            points += rng.integers(-most_shift, most_shift + 1, size=2)
            bags["train" if place < n_train else "test"].append(points / views.shape[2])
    y_train, y_test = (np.repeat(objects, n) for n in (n_train, n_views - n_train))
    return Task(bags["train"], y_train, bags["test"], y_test)


def score_line(task: str, method: str, scores: Sequence[float]) -> str:
    """One line with the scores of a method over several draws."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return (
        f"{task}: {method} {100 * np.mean(scores):.1f} % (standard error {100 * error:.1f}, "
        f"{len(scores)} draws, worst {100 * min(scores):.1f})"
    )


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
