"""Folders of pictures, read with care: whatever is in the folder, nothing crashes."""

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from unshuffle._decoding import decode, explain
from unshuffle._files import as_path, by_reason, check_folder, list_files, natural_key, path_key
from unshuffle._parallel import map_parallel
from unshuffle._parameters import check_count, check_memory, check_option
from unshuffle._printing import short_repr
from unshuffle.images._cache import Thumbnail, ThumbnailCache, thumbnail_key

FITS = ("stretch", "crop")


Progress = Callable[[int, int], object]
Result = TypeVar("Result")
# Height and width of a picture in its file, or why it was not read.
Outcome = tuple[int, int] | str


class Counted:
    """Wraps functions so that each call, once it is done, counts one step of `total`.

    Safe with several threads: `on_progress` is called by one at a time, with counts that rise
    by one.
    """

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        if on_progress is not None and not callable(on_progress):
            raise ValueError(f"`on_progress` must be a function or None, got {on_progress!r}.")
        self.on_progress = on_progress
        self.total = total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, function: Callable[[Any], Result]) -> Callable[[Any], Result]:
        """`function`, counted."""

        def step(argument: Any) -> Result:
            result = function(argument)
            with self._lock:
                self._done += 1
                if self.on_progress is not None:
                    self.on_progress(self._done, self.total)
            return result

        return step


@dataclass(frozen=True)
class ImageCollection:
    """The readable pictures of a folder, all at one size.

    Attributes
    ----------
    names : list of str
        File names in natural order ("2.png" before "10.png"); for a picture in a sub-folder
        the path from the folder on, with ``/`` between its parts.
    arrays : ndarray of shape (n_images, height, width, 3), uint8
        The pictures in RGB, upright, transparent parts on white.
    sizes : ndarray of shape (n_images, 2)
        Height and width of each picture in its file, after it was turned upright.
    skipped : list of (str, str)
        Name of each file that was not read, and why.
    """

    names: list[str]
    arrays: NDArray[np.uint8]
    sizes: NDArray[np.intp]
    skipped: list[tuple[str, str]]

    def __repr__(self) -> str:
        return short_repr(self)

    def __len__(self) -> int:
        return len(self.names)


def read_folder(
    folder: str | Path,
    *,
    size: int | tuple[int, int] = 40,
    fit: str = "stretch",
    recursive: bool = False,
    cache: str | Path | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> ImageCollection:
    """Read every picture of a folder at one common size.

    Hidden files are left out. A file that is no picture, is damaged, is too large to be
    decoded safely, or is a link that leads out of the folder is skipped and listed with the
    reason.

    Parameters
    ----------
    folder : str or Path
        Where the pictures are: PNG, JPEG, GIF (its first frame), BMP, TIFF or WebP, and HEIC
        where ``unshuffle[images]`` is installed. The content decides, so a PNG named
        ``a.jpg`` is read.
    size : int or (int, int), default=40
        Side of the square, or height and width, that each picture is scaled to. Larger
        keeps more detail and takes more memory.
    fit : {"stretch", "crop"}, default="stretch"
        "stretch" keeps all of each picture and gives up its proportions; "crop" keeps its
        proportions, and of the picture the largest central part that fills the size.
    recursive : bool, default=False
        Also read sub-folders, but for hidden ones and what links lead to.
    cache : str, Path or None, default=None
        Folder to keep the scaled pictures in, such as `default_cache` gives, so that the next
        reading is much faster. It is made if missing and holds at most `MAX_CACHE_BYTES`; a
        file that changed is read anew. None keeps nothing.
    n_jobs : int or None, default=None
        Number of threads that decode; more use more cores. The result is the same.
    on_progress : callable or None, default=None
        Called with the number of files done and the number in all.

    Returns
    -------
    collection : ImageCollection
        Names, pixels, and what was skipped.

    Notes
    -----
    Time grows with the pixels in the files, memory with ``n_images * height * width * 3``
    bytes, plus one decoded picture for each thread.

    Examples
    --------
    The pictures are in `arrays`, ready for `describe`, `lab_pixels` and the others:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import describe, read_folder
    >>> with TemporaryDirectory() as folder:
    ...     for color in ("red", "blue"):
    ...         Image.new("RGB", (60, 40), color).save(Path(folder) / f"{color}.png")
    ...     _ = (Path(folder) / "notes.txt").write_text("no picture")
    ...     photos = read_folder(folder, size=8)
    >>> photos.arrays.shape
    (2, 8, 8, 3)
    >>> photos.names
    ['blue.png', 'red.png']
    >>> [name for name, reason in photos.skipped]
    ['notes.txt']
    >>> vectors, kernel = describe(photos.arrays)
    >>> vectors.shape
    (2, 192)
    """
    size = check_image_size(size)
    check_option(fit, "fit", FITS)
    folder = check_folder(folder)
    kept = None if cache is None else Path(cache)
    if kept is not None and os.path.realpath(kept) == os.path.realpath(folder):
        raise ValueError(
            f"`cache` is the folder of the pictures itself, {folder}. Give another one, such as "
            "unshuffle.images.default_cache()."
        )
    listing = list_files(folder, recursive=recursive, leave_out=kept)
    n_files = len(listing.files)
    check_memory(
        n_files * size[0] * size[1] * 3,
        what=f"Reading {n_files:,} pictures at {size[0]} x {size[1]} pixels",
        instead="Choose a smaller `size`.",
    )
    paths = [path for _, path in listing.files]
    arrays, outcomes = _read_all(paths, size, fit, kept, n_jobs, on_progress)
    good = [i for i, outcome in enumerate(outcomes) if not isinstance(outcome, str)]
    skipped = listing.skipped + [
        (name, outcome)
        for (name, _), outcome in zip(listing.files, outcomes, strict=True)
        if isinstance(outcome, str)
    ]
    skipped.sort(key=lambda entry: path_key(entry[0]))
    if not good:
        raise ValueError(_nothing_read(folder, skipped, recursive))
    for place, i in enumerate(good):
        arrays[place] = arrays[i]  # in place: a copy would take the memory twice
    return ImageCollection(
        names=[listing.files[i][0] for i in good],
        arrays=arrays[: len(good)],
        sizes=np.array([outcomes[i] for i in good], dtype=np.intp),
        skipped=skipped,
    )


def _read_all(
    paths: list[Path],
    size: tuple[int, int],
    fit: str,
    cache: Path | None,
    n_jobs: int | None,
    on_progress: Progress | None,
) -> tuple[NDArray[np.uint8], list[Outcome]]:
    """Pixels of each file, and its original size or why it has none."""
    thumbnails = None if cache is None else ThumbnailCache(cache)
    arrays = np.zeros((len(paths), *size, 3), dtype=np.uint8)

    def read_one(i: int) -> Outcome:
        try:
            arrays[i], original = _read_cached(paths[i], size, fit, thumbnails)
            return original
        except Exception as error:
            # Decoders fail in any way they like on damaged data: OSError, SyntaxError,
            # struct.error, zlib.error and more. One bad file must not cost the others.
            return explain(error)

    counted = Counted(on_progress, len(paths))
    with warnings.catch_warnings():
        # Decoders warn about what is odd in a file; what matters is listed in `skipped`.
        warnings.simplefilter("ignore")
        outcomes = map_parallel(counted(read_one), range(len(paths)), n_jobs=n_jobs)
    if thumbnails is not None:
        thumbnails.prune()
        if thumbnails.problem is not None:
            warnings.warn(
                f"Thumbnails cannot be kept in {cache}: {thumbnails.problem}. The pictures were "
                "read all the same; choose another `cache` to read them faster next time.",
                stacklevel=3,
            )
    return arrays, outcomes


def _read_cached(
    path: Path, size: tuple[int, int], fit: str, thumbnails: ThumbnailCache | None
) -> Thumbnail:
    """A picture at this size, from the cache where it is there."""
    if thumbnails is None or not os.path.isfile(path):
        return decode(path, size=size, fit=fit)
    # Taken before the file is read: should it change meanwhile, the next reading sees that.
    key = thumbnail_key(path, size, fit)
    found = thumbnails.find(key, size)
    if found is None:
        found = decode(path, size=size, fit=fit)
        thumbnails.store(key, *found)
    return found


def _nothing_read(folder: Path, skipped: list[tuple[str, str]], recursive: bool) -> str:
    """Why a folder gave no picture at all."""
    advice = "Give a folder of PNG, JPEG, GIF, BMP, TIFF or WebP files."
    if not skipped:
        where = "hidden ones" if recursive else "sub-folders and hidden files"
        return f"{folder} holds no picture: it has no files ({where} are not searched). {advice}"
    listed = by_reason(skipped)
    reasons = "; ".join(f"{len(names):,} such as {names[0]}: {why}" for why, names in listed)
    count = f"{len(skipped):,} file(s) were skipped"
    return f"{folder} holds no picture that can be read: {count}. {reasons}. {advice}"


def read_image(
    path: str | Path, *, size: tuple[int, int], fit: str = "stretch"
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Read one picture at the given size, upright and in RGB.

    Parameters
    ----------
    path : str or Path
        The file.
    size : (int, int)
        Height and width to scale it to, in pixels.
    fit : {"stretch", "crop"}, default="stretch"
        "stretch" scales the whole picture and changes its proportions; "crop" keeps its
        proportions and the largest central part that fills the size.

    Returns
    -------
    pixels : ndarray of shape (height, width, 3), uint8
        The picture.
    original : (int, int)
        Height and width in the file, after it was turned upright.

    Raises
    ------
    ValueError
        If the file is damaged, too large or not a picture; the message says which.
    """
    check_option(fit, "fit", FITS)
    file, size = as_path(path, "`path`"), check_image_size(size)
    try:
        return decode(file, size=size, fit=fit)
    except Exception as error:  # decoders raise nearly anything on a damaged file
        raise ValueError(f"{file} cannot be read as a picture: {explain(error)}.") from error


def check_image_size(size: Any) -> tuple[int, int]:
    """Height and width in pixels, from one number or two."""
    both = (size, size) if isinstance(size, Integral) else tuple(np.atleast_1d(size).tolist())
    if len(both) != 2:
        raise ValueError(
            f"`size` must be one number or (height, width), got {size!r}. "
            "Pass e.g. 40 or (40, 20)."
        )
    height, width = (check_count(each, "size", most=4096) for each in both)
    return height, width


def visible_files(folder: str | Path) -> list[Path]:
    """Files in `folder` in natural order, without sub-folders and hidden files."""
    entries = [
        path
        for path in check_folder(folder).iterdir()
        if not path.name.startswith(".") and not path.is_dir()
    ]
    return sorted(entries, key=lambda path: natural_key(path.name))
