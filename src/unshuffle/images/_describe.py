"""One way from pictures to what is compared, by name or from the user's own file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._files import check_regular_file
from unshuffle._parameters import check_count, check_option
from unshuffle.images._checks import check_feature_file
from unshuffle.images._counting import Progress
from unshuffle.images._features import lab_pixels
from unshuffle.images._texture import color_texture
from unshuffle.images._words import visual_words

FEATURES = ("color", "texture", "words")
"""What pictures can be compared by: `lab_pixels`, `color_texture`, `visual_words`."""


def describe(
    images: ArrayLike,
    features: str = "color",
    *,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> tuple[NDArray[np.floating], str]:
    """Pictures as vectors, and the kernel that compares them well.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or grey pictures of one size.
    features : {"color", "texture", "words"}, default="color"
        "color" compares pixel by pixel, the right choice for a wall that is pleasant to look
        at; "texture" compares colours and edges, and comes closer to what is shown; "words"
        compares textures wherever they are, without colour.
    random_state : int, RandomState or None, default=None
        Of use to "words".
    n_jobs : int or None, default=None
        Number of threads of "words"; more use more cores. The result is the same.
    on_progress : callable or None, default=None
        Called by "words" with the number of steps done and the number in all.

    Returns
    -------
    vectors : ndarray of shape (n_images, n_features)
        Float32 for "color" and "texture", counts for "words".
    kernel : str
        "linear" for "color" and "texture", "chi2" for "words".

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import describe
    >>> vectors, kernel = describe(np.zeros((2, 8, 8, 3), dtype=np.uint8))
    >>> vectors.shape, kernel
    ((2, 192), 'linear')
    """
    check_option(features, "features", FEATURES)
    if features == "color":
        return lab_pixels(images, dtype=np.float32), "linear"
    if features == "texture":
        return color_texture(images), "linear"
    counts = visual_words(
        images, random_state=random_state, n_jobs=n_jobs, on_progress=on_progress
    )
    return counts, "chi2"


def read_features(
    path: str | Path, n_items: int, *, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """The user's own features of the pictures, from a .npy file.

    Parameters
    ----------
    path : str or Path
        File written by ``numpy.save``: a 2-D array of finite numbers, one row for each
        picture in the order of their names. Never unpickled, which could run anything.
    n_items : int
        Number of pictures.
    names : sequence of str or None, default=None
        Names of the pictures, for the error message where the numbers differ.

    Returns
    -------
    features : ndarray of shape (n_items, n_features)
        As float64.
    """
    path = check_regular_file(path, "`path`")
    n_items = check_count(n_items, "n_items")
    return np.array(check_feature_file(path, n_items, names), dtype=np.float64)
