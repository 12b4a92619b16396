"""Pictures as vectors: by the name of a feature, by an encoder, or from a file."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import check_finite
from unshuffle._core.grids import check_images
from unshuffle._core.parameters import check_count, check_progress
from unshuffle._core.scalings import unit_rows
from unshuffle._files.paths import check_regular_file, load_array, split_kinds
from unshuffle._pictures.cache import PictureCache, picture_key
from unshuffle._pictures.decoding import decode, explain
from unshuffle._run.cluster import runs_elsewhere
from unshuffle._run.parallel import map_parallel
from unshuffle._run.types import Progress
from unshuffle.encoders import Encoder, is_encoder, load_encoder
from unshuffle.images._components import MANY, leading_components
from unshuffle.images._features import color_texture, lab_pixels
from unshuffle.images._reading import ImageCollection
from unshuffle.images._visual_words import visual_words

_NAMED = ("color", "texture", "words")
_KNOWN = (
    f"{', '.join(_NAMED)}, content, a .npy file with one row for each picture, or an encoder, "
    "such as model.onnx or timm:NAME; several joined by +"
)
Vectors = NDArray[np.floating]
# Pictures that are read before they are encoded, here or by a cluster.
_AT_A_TIME, _AT_A_TIME_ELSEWHERE = 128, 1024
_SENT = 256  # pictures of one call elsewhere; a multiple of those that features take at once
_STEPS = 1000  # of the progress of one kind among several
_WEIGHED = 2000  # pictures by which kinds are scaled to weigh alike


def describe(
    images: ArrayLike | ImageCollection,
    features: Any = "color",
    *,
    device: Any = None,
    cache: str | Path | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> tuple[Vectors, str]:
    """Pictures as vectors, and the kernel that suits them.

    Parameters
    ----------
    images : array of shape (n_images, height, width[, 3]), uint8, or ImageCollection
        RGB or gray pictures of one size. Encoders read the files of a collection again, at the
        size that they need.
    features : str, callable, transformer, Encoder, or list of these, default="color"
        "color" compares pixel by pixel and gives the most pleasant walls; "texture" compares
        colors and edges; "words" compares textures wherever they are and ignores color; "content"
        compares what the pictures show, by a small network (``pip install 'unshuffle[content]'``).
        Any other name that `unshuffle.encoders.load_encoder` knows, such as "model.onnx" or
        "timm:NAME"; a .npy file of vectors, as for `read_features`; a function from pictures to
        vectors; or a scikit-learn transformer of rows of pixels, which is fitted if it is not.
        Several are compared at once by a list, or names joined by "+": "color+content".
    device : str, torch.device or None, default=None
        Where encoders work, such as "cuda". None is the CPU.
    cache : str, Path or None, default=None
        Folder that keeps the vectors of encoders, such as `default_cache()`: the files of a
        collection are then encoded once. None keeps none.
    random_state : int, RandomState or None, default=None
        Seed for "words".
    n_jobs : int or None, default=None
        Number of threads that read files and count words. The result does not depend on it.
    on_progress : callable or None, default=None
        Called by "words" and encoders with the number of steps done and the total.

    Returns
    -------
    vectors : ndarray of shape (n_images, n_features)
        Counts for "words" alone; of length 1 for an encoder; for several kinds their vectors side
        by side, each centered and scaled so that the norm of its kernel is the same, with square
        roots of the shares of words. Of more than 10,000 pictures, square roots of the shares of
        words, and at most 256 columns, in float32: the leading principal components of 2,000 of
        the pictures. Vectors of your own that are described alone keep all columns.
    kernel : str
        "chi2" for "words" alone of at most 10,000 pictures, otherwise "linear".

    Notes
    -----
    Up to 10,000 pictures, memory is that of the vectors: for "color" 4 bytes for each of
    ``3 * height * width`` numbers, 192 MB for 10,000 pictures of 40 x 40 pixels. Beyond, vectors
    take at most 1 kB each, 100 MB for 100,000 pictures; encoders and own vectors take all their
    columns on the way, such as 500 MB for 100,000 pictures and 1,280 columns. On crops of
    photographs, layouts by 256 components were as good as by all pixels, and 86 to 96 % of the
    ten nearest pictures were the same.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import describe
    >>> images = np.random.default_rng(0).integers(256, size=(5, 8, 8, 3), dtype=np.uint8)
    >>> vectors, kernel = describe(images)
    >>> vectors.shape, kernel
    ((5, 192), 'linear')
    >>> def brightness(images):
    ...     return images.mean(axis=(1, 2, 3))[:, np.newaxis]
    >>> describe(images, ["color", brightness])[0].shape
    (5, 193)
    """
    check_progress(on_progress)
    kinds = _open_features(features, device)
    described = [
        _describe_by(
            kind,
            images,
            cache=cache,
            random_state=random_state,
            n_jobs=n_jobs,
            on_progress=_share_of_progress(on_progress, number, len(kinds)),
        )
        for number, kind in enumerate(kinds)
    ]
    if len(described) == 1:
        return described[0]
    parts = [_weigh_alike(*each) for each in described]

    def side_by_side(rows: Any) -> Vectors:
        return np.hstack([part(rows) for part in parts])

    n_images = len(described[0][0])
    if n_images <= MANY:
        return side_by_side(slice(None)), "linear"
    return leading_components(side_by_side, n_images, n_jobs=n_jobs), "linear"


def _open_features(features: Any, device: Any) -> list[Any]:
    """The kinds of features, checked, with encoders loaded."""
    kinds: Any = split_kinds(features) if isinstance(features, str) else features
    kinds = list(kinds) if isinstance(kinds, list | tuple) else [kinds]
    if not kinds:
        raise ValueError(f"`features` is empty. Give {_KNOWN}.")
    opened: list[Any] = []
    for kind in kinds:
        if isinstance(kind, type):
            raise ValueError(
                f"`features` holds the class {kind.__name__}. Give an instance of it."
            )
        if not isinstance(kind, str):
            if not (callable(kind) or hasattr(kind, "transform") or isinstance(kind, Encoder)):
                raise ValueError(f"`features` holds {kind!r}. Give {_KNOWN}.")
        elif kinds.count(kind) > 1:
            raise ValueError(f"`features` holds {kind} {kinds.count(kind)} times. Give it once.")
        elif is_encoder(kind):
            kind = load_encoder(kind, device)
            if kind.items != "images":
                raise ValueError(f"`features` {kind.name} describes {kind.items}, not pictures.")
        elif kind not in _NAMED and not kind.lower().endswith(".npy"):
            raise ValueError(f"`features` {kind} is not understood. Give {_KNOWN}.")
        opened.append(kind)
    return opened


def _describe_by(
    kind: Any,
    images: ArrayLike | ImageCollection,
    *,
    cache: str | Path | None,
    random_state: Any,
    n_jobs: int | None,
    on_progress: Progress | None,
) -> tuple[Vectors, str]:
    """Vectors and kernel of one kind of features."""
    arrays = images.arrays if isinstance(images, ImageCollection) else images
    if isinstance(kind, Encoder):
        return _encode(images, kind, cache, n_jobs, on_progress), "linear"
    if not isinstance(kind, str):
        return _by_own(kind, check_images(arrays)), "linear"
    if kind == "color":
        return _by_each(partial(lab_pixels, dtype=np.float32), arrays, n_jobs), "linear"
    if kind == "texture":
        return _by_each(color_texture, arrays, n_jobs), "linear"
    if kind == "words":
        counts = visual_words(
            arrays, random_state=random_state, n_jobs=n_jobs, on_progress=on_progress
        )
        if len(counts) <= MANY:
            return counts, "chi2"
        return _roots_of_shares(counts).astype(np.float32), "linear"
    names = images.names if isinstance(images, ImageCollection) else None
    return read_features(kind, len(check_images(arrays)), names=names), "linear"


def _by_each(function: Callable[[Any], Vectors], images: ArrayLike, n_jobs: int | None) -> Vectors:
    """Vectors by a function of each picture alone; of many, their leading components."""
    arrays = check_images(images)
    if len(arrays) > MANY:
        return leading_components(
            arrays.__getitem__, len(arrays), describe=function, n_jobs=n_jobs
        )
    if not runs_elsewhere(n_jobs):
        return function(arrays)
    blocks = [arrays[start : start + _SENT] for start in range(0, len(arrays), _SENT)]
    return np.concatenate(map_parallel(function, blocks, n_jobs=n_jobs, anywhere=True))


def _roots_of_shares(counts: Vectors) -> Vectors:
    # The distance between roots of shares is close to chi-squared.
    return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _by_own(kind: Any, images: NDArray[np.uint8]) -> Vectors:
    """Vectors by a function or a transformer of the user."""
    if hasattr(kind, "transform"):
        rows = images.reshape(len(images), -1)
        try:
            check_is_fitted(kind)
            found = kind.transform(rows)
        except NotFittedError:
            found = kind.fit_transform(rows)
    else:
        found = kind(images)
    vectors = np.asarray(found)
    if vectors.ndim != 2 or len(vectors) != len(images) or not vectors.shape[1]:
        raise ValueError(
            f"`features` made an array of shape {vectors.shape} of {len(images):,} pictures. It "
            "must return one row of numbers for each."
        )
    if vectors.dtype.kind not in "fiub":
        raise ValueError(f"`features` made an array of {vectors.dtype}. It must return numbers.")
    check_finite(vectors, "What `features` made")
    return vectors.astype(np.float32 if vectors.dtype == np.float32 else np.float64)


def _encode(
    images: ArrayLike | ImageCollection,
    encoder: Encoder,
    cache: str | Path | None,
    n_jobs: int | None,
    on_progress: Progress | None,
) -> NDArray[np.float32]:
    """Vectors of length 1 by an encoder; files of a collection are read at its size."""
    vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32]
    if isinstance(images, ImageCollection) and images.folder is not None:
        vectors = _encode_files(images, encoder, cache, n_jobs, on_progress)
    else:
        arrays = images.arrays if isinstance(images, ImageCollection) else images
        vectors = encoder.encode(check_images(arrays), on_progress=on_progress)
    if len(vectors) <= MANY:
        return unit_rows(np.asarray(vectors))
    return leading_components(
        lambda rows: unit_rows(np.stack([vectors[i] for i in rows])), len(vectors), n_jobs=n_jobs
    )


def _encode_files(
    pictures: ImageCollection,
    encoder: Encoder,
    cache: str | Path | None,
    n_jobs: int | None,
    on_progress: Progress | None,
) -> list[NDArray[np.float32]]:
    """Vectors of the files of a collection, those in the cache without reading them."""
    assert pictures.folder is not None
    assert encoder.side is not None
    paths = [pictures.folder / name for name in pictures.names]
    kept = None if cache is None else PictureCache(Path(cache))
    size = encoder.side, encoder.side
    vectors: list[NDArray[np.float32] | None] = [None] * len(paths)
    keys = [""] * len(paths)

    def find(i: int) -> None:
        if kept is not None and paths[i].is_file():
            keys[i] = picture_key(paths[i], *size, pictures.fit, encoder.key)
            vectors[i] = kept.find_vector(keys[i])

    def read(i: int) -> NDArray[np.uint8]:
        try:
            return decode(paths[i], size=size, fit=pictures.fit).pixels
        except Exception as error:  # decoders raise nearly anything on a damaged file
            raise ValueError(f"{paths[i]} cannot be read any more: {explain(error)}.") from error

    map_parallel(find, range(len(paths)), n_jobs=n_jobs)
    missing = [i for i, vector in enumerate(vectors) if vector is None]
    n_found = len(paths) - len(missing)
    at_a_time = _AT_A_TIME_ELSEWHERE if runs_elsewhere(n_jobs) else _AT_A_TIME
    for begin in range(0, len(missing), at_a_time):
        some = missing[begin : begin + at_a_time]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of decoders, about oddities in files
            arrays = np.stack(map_parallel(read, some, n_jobs=n_jobs))

        def report(done: int, total: int, before: int = n_found + begin) -> None:
            if on_progress is not None:
                on_progress(before + done, len(paths))

        for i, vector in zip(some, encoder.encode(arrays, on_progress=report), strict=True):
            vectors[i] = vector
            if kept is not None and keys[i]:
                kept.store_vector(keys[i], vector)
    if kept is not None and missing:
        kept.prune()
        if kept.problem is not None:
            warnings.warn(
                f"Vectors cannot be kept in {cache}: {kept.problem}. The pictures were encoded "
                "anyway; choose another `cache` to save the time next time.",
                stacklevel=4,
            )
    return [vector for vector in vectors if vector is not None]


def _weigh_alike(vectors: Vectors, kernel: str) -> Callable[[Any], NDArray[np.float32]]:
    """Rows that weigh as much as those of any other kind when they are put side by side."""
    if kernel == "chi2":
        vectors = _roots_of_shares(vectors)
    mean = vectors.mean(axis=0, dtype=np.float64)
    # As sums of kernels are weighed everywhere: by the norm of the centered kernel.
    some = vectors[:: max(1, len(vectors) // _WEIGHED)] - mean
    size = float(np.sqrt(np.linalg.norm(some @ some.T) / len(some)))

    def weighed(rows: Any) -> NDArray[np.float32]:
        return np.asarray((vectors[rows] - mean) / (size if size > 0 else 1.0), dtype=np.float32)

    return weighed


def _share_of_progress(on_progress: Progress | None, number: int, n_kinds: int) -> Progress | None:
    """Progress of one kind of features among several."""
    if on_progress is None or n_kinds == 1:
        return on_progress
    return partial(_report_share, on_progress, number, n_kinds)


def _report_share(
    on_progress: Callable[[int, int], object], number: int, n_kinds: int, done: int, total: int
) -> None:
    on_progress(number * _STEPS + _STEPS * done // max(total, 1), n_kinds * _STEPS)


def read_features(
    path: str | Path, n_items: int, *, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Read your own features of pictures from a .npy file.

    Parameters
    ----------
    path : str or Path
        File written by ``numpy.save``: a 2-D array of finite numbers, one row for each picture
        in natural order of the names. Pickles are never loaded, since they can run code.
    n_items : int
        Number of pictures.
    names : sequence of str or None, default=None
        Names of the pictures, for the error message if the numbers differ.

    Returns
    -------
    features : ndarray of shape (n_items, n_features)
        The features as float64.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from unshuffle.images import read_features
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "vectors.npy", np.eye(3))
    ...     read_features(Path(folder) / "vectors.npy", 3).shape
    (3, 3)
    """
    path = check_regular_file(path, "`path`")
    n_items = check_count(n_items, "n_items")
    array = load_array(path)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{path} has shape {array.shape}. Give a 2-D array with one row for each item and "
            "at least one column."
        )
    if len(array) != n_items:
        order = f", from {names[0]} to {names[-1]}" if names else ""
        raise ValueError(
            f"{path} has {len(array)} row(s), but there are {n_items} item(s). Give one row "
            f"for each item that was read, in natural order of the names{order}."
        )
    check_finite(array, str(path))
    return np.array(array, dtype=np.float64)
