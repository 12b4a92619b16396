"""Pairs of collections with a known matching, digits, and the points of a grid."""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_sample_image

from unshuffle._core.parameters import check_count, check_memory, check_real, check_seed
from unshuffle._run.printing import short_repr
from unshuffle._run.types import Floats

Random = np.random.RandomState
Seed = int | Random | None


class Paired(NamedTuple):
    """Two collections of the same items, the second shuffled.

    Attributes
    ----------
    X : ndarray of shape (n, ...)
        First collection.
    y : ndarray of shape (n, ...)
        Second collection, shuffled.
    truth : ndarray of shape (n,)
        ``y[truth[i]]`` belongs to ``X[i]``.

    Examples
    --------
    >>> from unshuffle.datasets import make_paired_views
    >>> views = make_paired_views(50, random_state=0)
    >>> views.X.shape, views.y.shape, views.truth.shape
    ((50, 20), (50, 30), (50,))
    """

    X: NDArray
    y: NDArray
    truth: NDArray[np.intp]

    def __repr__(self) -> str:
        return short_repr(self)


def make_paired_views(
    n: int = 200,
    *,
    n_latent: int = 5,
    n_features: tuple[int, int] = (20, 30),
    noise: float = 0.1,
    bend: float = 0.5,
    random_state: Seed = 0,
) -> Paired:
    """Two feature tables of the same hidden items, without common features.

    Items are points in a hidden space; each table is its own random smooth map of them, plus
    noise. The rows of the second table are shuffled.

    Parameters
    ----------
    n : int, default=200
        Number of items.
    n_latent : int, default=5
        Dimension of the hidden space. Items are easier to match in more dimensions.
    n_features : (int, int), default=(20, 30)
        Number of columns of each table.
    noise : float, default=0.1
        Standard deviation of the noise; that of the signal is about 1. More noise is harder.
    bend : float, default=0.5
        Nonlinearity of the maps: 0 is linear, 1 has no linear part.
    random_state : int, RandomState or None, default=0
        Seed for the items, the maps, the noise and the order.

    Returns
    -------
    views : Paired
        `X` of shape (n, n_features[0]), `y` of shape (n, n_features[1]) and the truth.

    Notes
    -----
    The difficulty varies with the maps as much as with the noise, so try several seeds.

    Examples
    --------
    >>> from unshuffle.datasets import make_paired_views
    >>> X, y, truth = make_paired_views(50, random_state=0)
    >>> X.shape, y.shape
    ((50, 20), (50, 30))
    """
    n = check_count(n, "n", least=2)
    n_latent = check_count(n_latent, "n_latent")
    if not isinstance(n_features, tuple | list | np.ndarray) or len(n_features) != 2:
        raise ValueError(f"`n_features` must be two whole numbers, got {n_features!r}.")
    first, second = (check_count(each, "n_features") for each in n_features)
    bend = check_real(bend, "bend", least=0, most=1)
    noise = check_real(noise, "noise", least=0, most=1e100)
    check_memory(
        16 * (n + n_latent) * (n_latent + first + second),
        what=f"Two views of {n:,} items with {first:,} and {second:,} columns",
        instead="Pass a smaller `n`, `n_latent` or `n_features`.",
    )
    rng = check_seed(random_state)
    # Unequal spread and long tails: round or symmetric data have no shape to match by.
    latent = (rng.exponential(size=(n, n_latent)) - 1) * np.linspace(1.5, 0.5, n_latent)
    X, y = (_make_view(latent, columns, bend, noise, rng) for columns in (first, second))
    return _shuffle_second(X, y, rng)


def photo_halves(
    n: int = 240, *, size: int = 32, light: float = 1.0, random_state: Seed = 0
) -> Paired:
    """Left and right halves of crops of two photographs, the right ones shuffled.

    Parameters
    ----------
    n : int, default=240
        Number of crops, at most 260 at the default size.
    size : int, default=32
        Side of each square crop in pixels. Larger crops are fewer and harder to match, since
        their halves have less in common.
    light : float, default=1.0
        Variation of hue and exposure between crops, from 0 to 10, as between photographs of
        different scenes. Larger values are easier to match: about 87 % right at 1 and 35 % at 0,
        with pixels and color histograms.
    random_state : int, RandomState or None, default=0
        Seed for the crops, their lighting and the order.

    Returns
    -------
    halves : Paired
        `X` and `y` of shape (n, size, size // 2, 3), uint8: ``y[truth[i]]`` continues
        ``X[i]`` to the right.

    Notes
    -----
    Crops do not overlap. The half with the least detail (plain sky, blurred leaves) is left out.
    Many others look alike, so no method can match all of them.

    Examples
    --------
    >>> from unshuffle.datasets import photo_halves
    >>> halves = photo_halves(50)
    >>> halves.X.shape, halves.y.shape
    ((50, 32, 16, 3), (50, 32, 16, 3))
    """
    size = check_count(size, "size", least=4, most=400)
    photos = map(load_sample_image, ("china.jpg", "flower.jpg"))
    tiles = [sliding_window_view(photo, (size, size, 3))[::size, ::size] for photo in photos]
    crops = np.concatenate([tile.reshape(-1, size, size, 3) for tile in tiles])
    detail = crops.mean(axis=-1).std(axis=(1, 2))
    crops = crops[detail >= np.quantile(detail, 0.5)]
    n = check_count(n, "n", least=2, most=len(crops))
    light = check_real(light, "light", least=0, most=10)
    rng = check_seed(random_state)
    crops = crops[rng.permutation(len(crops))[:n]]
    if light:
        crops = np.stack([_change_light(crop, light, rng) for crop in crops])
    half = size // 2
    return _shuffle_second(crops[:, :, :half], crops[:, :, half : 2 * half], rng)


def digits_views(n: int = 400, *, random_state: Seed = 0) -> Paired:
    """Upper and lower halves of handwritten digits, the lower ones shuffled.

    Parameters
    ----------
    n : int, default=400
        Number of digits, up to 1,797.
    random_state : int, RandomState or None, default=0
        Seed for the choice of digits and the order.

    Returns
    -------
    halves : Paired
        `X` and `y` of shape (n, 32): ``y[truth[i]]`` is the lower half of the digit
        whose upper half is ``X[i]``.

    Notes
    -----
    This is hard: the halves of a digit depend only weakly on each other. Methods find the right
    class more often than the right digit.

    Examples
    --------
    >>> from unshuffle.datasets import digits_views
    >>> upper, lower, truth = digits_views(100)
    >>> upper.shape, lower.shape
    ((100, 32), (100, 32))
    """
    images, _ = sample_digits(n, random_state=random_state)
    flat = images.reshape(len(images), 64).astype(float)
    return _shuffle_second(flat[:, :32], flat[:, 32:], check_seed(random_state))


def sample_digits(
    n: int = 400, *, random_state: Seed = 0
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Pictures of handwritten digits, and their labels.

    Parameters
    ----------
    n : int, default=400
        Number of digits, up to 1,797.
    random_state : int, RandomState or None, default=0
        Seed for the choice of digits and their order.

    Returns
    -------
    images : ndarray of shape (n, 8, 8), uint8
        White ink (255) on black (0).
    labels : ndarray of shape (n,)
        The digit, 0 to 9.

    Examples
    --------
    >>> from unshuffle.datasets import sample_digits
    >>> images, labels = sample_digits(100)
    >>> len(images), len(labels)
    (100, 100)
    """
    digits = load_digits()
    n = check_count(n, "n", least=2, most=len(digits.target))
    chosen = check_seed(random_state).permutation(len(digits.target))[:n]
    ink = np.round(digits.images[chosen] * (255 / 16)).astype(np.uint8)
    return ink, digits.target[chosen].astype(np.intp)


def grid_points(rows: int, columns: int) -> Floats:
    """Row and column of each cell of a grid, to match other items with.

    Parameters
    ----------
    rows, columns : int
        Number of cells down and across.

    Returns
    -------
    points : ndarray of shape (rows * columns, 2)
        Cells in reading order.

    Examples
    --------
    >>> from unshuffle.datasets import grid_points
    >>> grid_points(2, 2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    rows, columns = check_count(rows, "rows"), check_count(columns, "columns")
    check_memory(
        40 * rows * columns,
        what=f"A grid of {rows:,} by {columns:,} cells",
        instead="Ask for fewer `rows` or `columns`.",
    )
    return np.stack(np.divmod(np.arange(rows * columns), columns), axis=1).astype(float)


def _shuffle_second(X: NDArray, y: NDArray, rng: Random) -> Paired:
    """Shuffle `y`, so far in the order of `X`, and keep the truth."""
    order = rng.permutation(len(y))
    return Paired(X, y[order], np.argsort(order))


def _make_view(latent: Floats, n_columns: int, bend: float, noise: float, rng: Random) -> Floats:
    """Smooth functions of the hidden coordinates, plus noise."""
    n_latent = latent.shape[1]
    linear = latent @ rng.randn(n_latent, n_columns) / np.sqrt(n_latent)
    # Random Fourier features: smooth, bounded, and curved on the scale of the data.
    phase = rng.uniform(0, 2 * np.pi, n_columns)
    waves = np.sqrt(2) * np.cos(latent @ rng.randn(n_latent, n_columns) / n_latent + phase)
    signal = np.sqrt(1 - bend) * linear + np.sqrt(bend) * waves
    return signal + noise * rng.randn(*signal.shape)


def _change_light(crop: np.ndarray, light: float, rng: Random) -> np.ndarray:
    """Rotate the hues about the gray axis by a random angle, and change the exposure."""
    angle = np.pi * light * rng.uniform(-1, 1)
    gamma = np.exp(0.3 * light * rng.randn())
    axis = np.full(3, 1 / np.sqrt(3))
    # Rodrigues' formula for the rotation about `axis`.
    turn = np.eye(3) * np.cos(angle) + np.sin(angle) * np.cross(np.eye(3), axis)
    turn += (1 - np.cos(angle)) * np.outer(axis, axis)
    exposed = (np.clip(crop / 255.0 @ turn, 0.0, 1.0)) ** gamma
    return np.round(255 * exposed).astype(np.uint8)
