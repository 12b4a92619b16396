"""Two made-up views of the same hidden things."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._parameters import check_count, check_memory, check_real, check_seed
from unshuffle.datasets._paired import Paired, shuffle_second


def make_paired_views(
    n: int = 200,
    *,
    n_latent: int = 5,
    n_features: tuple[int, int] = (20, 30),
    noise: float = 0.1,
    bend: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> Paired:
    """Two feature tables about the same hidden items, with nothing in common to compare.

    Each item is a point of a hidden space; each table sees it through a random smooth map
    of its own, plus noise. The rows of the second table are shuffled.

    Parameters
    ----------
    n : int, default=200
        Number of items.
    n_latent : int, default=5
        Dimension of the hidden space. Larger makes items easier to tell apart.
    n_features : (int, int), default=(20, 30)
        Number of columns of each table.
    noise : float, default=0.1
        Standard deviation of the noise, where each column's signal has about 1. Larger is
        harder.
    bend : float, default=0.5
        How far the maps are from linear: 0 is linear, 1 has no linear part.
    random_state : int, RandomState or None, default=None
        Draws the items, the maps, the noise and the order.

    Returns
    -------
    views : Paired
        `X` of shape (n, n_features[0]), `y` of shape (n, n_features[1]) and the truth.

    Notes
    -----
    How hard a draw is depends on the maps as much as on the noise, so try several.

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
    # Unequal spread and a long tail along each axis: a round cloud, or one that is its own
    # mirror image, has no shape to recognise it by.
    latent = (rng.exponential(size=(n, n_latent)) - 1) * np.linspace(1.5, 0.5, n_latent)
    X, y = (_view(latent, columns, bend, noise, rng) for columns in (first, second))
    return shuffle_second(X, y, rng)


def _view(
    latent: NDArray[np.float64],
    n_columns: int,
    bend: float,
    noise: float,
    rng: np.random.RandomState,
) -> NDArray[np.float64]:
    n_latent = latent.shape[1]
    linear = latent @ rng.randn(n_latent, n_columns) / np.sqrt(n_latent)
    # Random Fourier features: smooth, bounded, and curved on the scale of the cloud.
    phase = rng.uniform(0, 2 * np.pi, n_columns)
    waves = np.sqrt(2) * np.cos(latent @ rng.randn(n_latent, n_columns) / n_latent + phase)
    signal = np.sqrt(1 - bend) * linear + np.sqrt(bend) * waves
    return signal + noise * rng.randn(*signal.shape)
