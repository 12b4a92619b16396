"""Sets to classify: each task by a seed, split into what is learnt from and what is scored.

Every function gives a `Task`. Parameters are to be chosen on its training part alone.
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

N_PIXELS = 28  # of an MNIST image, each way


class Task(NamedTuple):
    """Sets and labels to learn from, and fresh ones to score.

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
    """Two digits as clouds of dark pixels: `n_train` of each to learn from, all others to score.

    The paper's clouds: pixels of the dark region drawn at random, none twice where there are
    enough. The seed draws pixels and decides which digits are learnt from. Any two digits will
    do: those that are not scored are for choosing what the training part cannot tell.
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
    """A thousand digits as sets of (x, y, intensity), 700 to learn from and 300 to score.

    Pixels above 191 of 255, coordinates and intensities from 0 to 1; 18 to 186 points. The seed
    splits. `first`, 0, 100 or 200, is the first of the hundred images taken of each digit, so that
    there are others on which to try things out.
    """
    images, labels = _thousand_images(folder, first)
    return _split([ink_tuples(image) for image in images], labels, 300, seed)


def mnist_images(folder: Path, seed: int, *, first: int = 0) -> Task:
    """The same digits and the same split as whole images, vectors of 784 numbers from 0 to 1."""
    images, labels = _thousand_images(folder, first)
    return _split([image.ravel() / 255.0 for image in images], labels, 300, seed)


def permuted_table(folder: Path, name: str, seed: int, *, n_test: int | float = 0.3) -> Task:
    """Rows of a table, the features of each in an order of its own: sets of single numbers.

    "ionosphere", "pima" or "heart". Features are brought to the range from 0 to 1 first (over the
    whole table, without its labels): of numbers in different units order would be all that is
    left.
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
    """Two objects as clouds of bright pixels: three views of each to learn from, nine to score.

    Consecutive views, 5 degrees apart, from an angle that the seed draws; each moved by up to
    `most_shift` pixels both ways, so that the position says nothing. Mugs are 259 and 262, dolls
    139 and 145.
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
    """What a method reached over several draws, in one line."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    return (
        f"{task}: {method} {100 * np.mean(scores):.1f} % (standard error {100 * error:.1f}, "
        f"{len(scores)} draws, worst {100 * min(scores):.1f})"
    )


def drawn_pixels(shown: NDArray[np.bool_], n_points: int, rng: np.random.Generator) -> Bag:
    """Pixels drawn from those that show something, none twice where there are enough: (x, y)."""
    rows, columns = np.nonzero(shown)
    chosen = rng.choice(rows.size, n_points, replace=rows.size < n_points)
    return np.stack([columns[chosen], shown.shape[0] - 1 - rows[chosen]], axis=1).astype(float)


def ink_tuples(image: NDArray[np.uint8], least: int = 192) -> Bag:
    """Dark pixels of an image as (x, y, intensity), all from 0 to 1."""
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
