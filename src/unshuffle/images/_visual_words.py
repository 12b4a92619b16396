"""Pictures as counts of visual words: the kinds of patches in them, wherever they are."""

from functools import partial
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import MiniBatchKMeans

from unshuffle._core.grids import check_images
from unshuffle._core.parameters import check_count, check_progress, check_seed
from unshuffle._run.parallel import map_parallel, step_counter
from unshuffle._run.types import Progress
from unshuffle.images._features import CHUNK, orientation_energy, working_lab

_DIRECTIONS = 8
# A patch has 4 x 4 bins of edges, as in SIFT; side of a bin in pixels, at two scales.
_BINS, _BIN_SIDES, _STEP = 4, (3, 5), 2
# Patches with a mean gradient below this (lightness from 0 to 100, per pixel) are flat.
_FLAT = 1.0
_SAMPLE_IMAGES, _SAMPLE_PATCHES = 1000, 50_000


def visual_words(
    images: ArrayLike,
    *,
    n_words: int = 200,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Each picture as counts of the kinds of patches in it, for the chi-squared kernel.

    Colors and positions are ignored.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or gray pictures of one size, first averaged down to 40 pixels on the shorter side.
    n_words : int, default=200
        Number of kinds of patches. More separate finer textures and need more pictures.
    random_state : int, RandomState or None, default=None
        Seed for the sample of patches and for k-means.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    on_progress : callable or None, default=None
        Called with the number of steps done and the total.

    Returns
    -------
    counts : ndarray of shape (n_images, n_words + 1)
        How often each word occurs in each picture; the last column counts patches without
        structure. All rows have the same sum. Columns are zero where the pictures hold fewer
        different patches than `n_words`.

    Notes
    -----
    Time grows with ``n_images * n_words``; memory is that of the counts. Patches are described
    by 4 x 4 histograms of 8 directions (dense SIFT) under the Hellinger distance; the words are
    the k-means centers of at most 50,000 of them.

    References
    ----------
    Csurka et al., "Visual categorization with bags of keypoints", ECCV workshop (2004).
    Arandjelovic, Zisserman, "Three things everyone should know to improve object retrieval",
    CVPR (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import visual_words
    >>> images = np.random.default_rng(0).integers(256, size=(4, 32, 32, 3), dtype=np.uint8)
    >>> len(visual_words(images, n_words=10, random_state=0))
    4
    """
    images = check_images(images)
    n_words = check_count(n_words, "n_words", most=10_000)
    rng = check_seed(random_state)
    n_drawn = min(len(images), _SAMPLE_IMAGES)
    drawn = images[np.sort(rng.choice(len(images), n_drawn, replace=False))]
    batches = [
        (drawn[start : start + CHUNK], int(rng.randint(2**31 - 1)))
        for start in range(0, n_drawn, CHUNK)
    ]
    chunks = [images[start : start + CHUNK] for start in range(0, len(images), CHUNK)]
    check_progress(on_progress)
    step = step_counter(on_progress, len(batches) + len(chunks))
    sample = partial(_sample_patches, per_image=ceil(_SAMPLE_PATCHES / n_drawn))
    sampled = map_parallel(sample, batches, n_jobs=n_jobs, anywhere=True, done=step)
    words = _learn_vocabulary(np.concatenate(sampled), n_words, rng)
    count = partial(_count_words, words=words, n_words=n_words)
    counts = map_parallel(count, chunks, n_jobs=n_jobs, anywhere=True, done=step)
    return np.concatenate(counts)


def patch_descriptors(
    images: NDArray[np.uint8],
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Descriptors of patches, (n_images, n_patches, 128), at two scales, and which are flat."""
    energy = orientation_energy(working_lab(images)[..., 0], _DIRECTIONS, signed=True)
    scales = [_describe_patches(energy, side) for side in _BIN_SIDES]
    bins = np.concatenate([each for each in scales if each.size], axis=1)
    total = bins.sum(axis=-1)
    flat = total < _FLAT * _BINS**2
    shares = bins / np.maximum(total, np.finfo(np.float32).tiny)[..., np.newaxis]
    return np.sqrt(shares), flat


def _describe_patches(energy: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Mean energy in each bin of each patch, bins `side` pixels wide."""
    n, height, width, _ = energy.shape
    means = _box_means(_box_means(energy, side, axis=1), side, axis=2)
    tops, starts = (_patch_starts(length, _BINS * side) for length in (height, width))
    offsets = side * np.arange(_BINS)
    rows_of_bins = (tops[:, np.newaxis] + offsets)[:, np.newaxis, :, np.newaxis]
    columns_of_bins = (starts[:, np.newaxis] + offsets)[np.newaxis, :, np.newaxis, :]
    found = means[:, rows_of_bins, columns_of_bins]
    return found.reshape(n, tops.size * starts.size, _BINS**2 * _DIRECTIONS)


def _box_means(values: NDArray[np.float32], side: int, *, axis: int) -> NDArray[np.float32]:
    """Means over `side` neighbors along an axis, without padding."""
    # Summed directly: differences of running sums would round below zero.
    windows = np.lib.stride_tricks.sliding_window_view(values, side, axis=axis)
    return windows.mean(axis=-1, dtype=np.float32)


def _patch_starts(length: int, patch: int) -> NDArray[np.intp]:
    """Starts of patches: every few pixels, centered between the edges."""
    room = length - patch
    return np.arange(room % _STEP // 2, room + 1, _STEP)


def _sample_patches(batch: tuple[NDArray[np.uint8], int], per_image: int) -> NDArray[np.float32]:
    images, seed = batch
    rng = np.random.RandomState(seed)
    descriptors, flat = patch_descriptors(images)
    chosen = []
    for own, useless in zip(descriptors, flat, strict=True):
        usable = np.flatnonzero(~useless)
        chosen.append(own[rng.permutation(usable)[:per_image]])
    return np.concatenate(chosen)


def _learn_vocabulary(
    sample: NDArray[np.float32], n_words: int, rng: np.random.RandomState
) -> NDArray[np.float32]:
    """Centers of the sample: `n_words`, or as many as there are different descriptors."""
    as_bytes = np.ascontiguousarray(sample).view(f"V{sample.shape[1] * sample.itemsize}")
    _, first = np.unique(as_bytes.ravel(), return_index=True)
    if first.size <= n_words:
        return sample[first]
    means = MiniBatchKMeans(
        n_words,
        batch_size=4096,
        max_iter=10,
        n_init=1,
        # Early stopping depends on a sum that rounds differently on several threads.
        max_no_improvement=None,
        random_state=rng,
    ).fit(sample)
    return np.asarray(means.cluster_centers_, dtype=np.float32)


def _count_words(
    images: NDArray[np.uint8], words: NDArray[np.float32], n_words: int
) -> NDArray[np.float64]:
    descriptors, flat = patch_descriptors(images)
    found = np.full(flat.shape, n_words)
    if len(words):
        # |d - w|^2 up to |d|^2, which is the same for all words.
        scores = descriptors[~flat] @ words.T - 0.5 * np.einsum("ij,ij->i", words, words)
        found[~flat] = scores.argmax(axis=1)
    cells = found + (n_words + 1) * np.arange(len(images))[:, np.newaxis]
    counts = np.bincount(cells.ravel(), minlength=len(images) * (n_words + 1))
    return counts.reshape(len(images), n_words + 1).astype(np.float64)
