"""Halves of small crops of the two photographs that ship with scikit-learn."""

import numpy as np
from sklearn.datasets import load_sample_image

from unshuffle._parameters import check_count, check_real, check_seed
from unshuffle.datasets._paired import Paired, shuffle_second

_PLAIN_SHARE = 0.5


def photo_halves(
    n: int = 240,
    *,
    size: int = 32,
    light: float = 1.0,
    random_state: int | np.random.RandomState | None = 0,
) -> Paired:
    """Left and right halves of crops of two photographs, the right ones shuffled.

    Parameters
    ----------
    n : int, default=240
        Number of crops, drawn without replacement (260 at the default size).
    size : int, default=32
        Side of each square crop in pixels. Larger crops are fewer, and harder to match:
        their halves have less in common.
    light : float, default=1.0
        How much each crop is given a light of its own, from 0 to 10: a random hue and exposure
        for both of its halves, as photographs of different scenes have. 0 leaves the crops as
        they are: all from two scenes, many alike, and much harder to match (with pixels and
        color histogram about 29 % right instead of 74 %, over eight seeds).
    random_state : int, RandomState or None, default=0
        Which crops are drawn, their order, and the order of the right halves.

    Returns
    -------
    halves : Paired
        `X` and `y` of shape (n, size, size // 2, 3), uint8: ``y[truth[i]]`` continues
        ``X[i]`` to the right.

    Notes
    -----
    Crops never overlap. Those that show next to nothing (plain sky, blurred leaves; half of
    them) are left out; of the rest many still look alike, so no method can be expected to get
    all of them right.

    Examples
    --------
    >>> from unshuffle.datasets import photo_halves
    >>> halves = photo_halves(50)
    >>> halves.X.shape, halves.y.shape
    ((50, 32, 16, 3), (50, 32, 16, 3))
    """
    size = check_count(size, "size", least=4, most=400)
    crops = np.concatenate(
        [_crops(load_sample_image(name), size) for name in ("china.jpg", "flower.jpg")]
    )
    detail = crops.mean(axis=-1).std(axis=(1, 2))
    crops = crops[detail >= np.quantile(detail, _PLAIN_SHARE)]
    n = check_count(n, "n", least=2, most=len(crops))
    light = check_real(light, "light", least=0, most=10)
    rng = check_seed(random_state)
    crops = crops[rng.permutation(len(crops))[:n]]
    if light:
        crops = np.stack([_relit(crop, light, rng) for crop in crops])
    half = size // 2
    return shuffle_second(crops[:, :, :half], crops[:, :, half : 2 * half], rng)


def _crops(photo: np.ndarray, size: int) -> np.ndarray:
    rows, columns = photo.shape[0] // size, photo.shape[1] // size
    tiled = photo[: rows * size, : columns * size].reshape(rows, size, columns, size, 3)
    return tiled.swapaxes(1, 2).reshape(rows * columns, size, size, 3)


def _relit(crop: np.ndarray, light: float, rng: np.random.RandomState) -> np.ndarray:
    """Turn the hues about the grey axis by a random angle, and change the exposure."""
    angle = np.pi * light * rng.uniform(-1, 1)
    gamma = np.exp(0.3 * light * rng.randn())
    axis = np.full(3, 1 / np.sqrt(3))
    cross = np.cross(np.eye(3), axis)
    # Rodrigues' formula for the rotation about `axis`.
    turn = np.eye(3) * np.cos(angle) + np.sin(angle) * cross
    turn += (1 - np.cos(angle)) * np.outer(axis, axis)
    exposed = (np.clip(crop / 255.0 @ turn, 0.0, 1.0)) ** gamma
    return np.round(255 * exposed).astype(np.uint8)
