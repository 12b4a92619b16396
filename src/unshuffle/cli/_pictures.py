"""Folders of pictures as layouts need them: to compare, to draw, and to look at closely."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle.cli._console import BadInput, list_skipped, progress_bar, say_read, warn
from unshuffle.cli._writing import not_ours
from unshuffle.images import ImageCollection, default_cache, read_folder

# One reading serves comparing and drawing: large enough for the tiles of a wall, and always the
# same, so that the layout does not depend on how large it is drawn.
SIDE = 64
# What pictures are compared at, as in the paper.
COMPARED_SIDE = 40
PREVIEW_SIDE = 320
MAX_PREVIEWS = 600


@dataclass(frozen=True)
class Source:
    """Which folder to read, and how.

    Attributes
    ----------
    path : Path
        The folder.
    recursive : bool
        Whether sub-folders are read too.
    use_cache : bool
        Whether thumbnails are kept for the next time.
    n_jobs : int or None
        Threads that decode.
    show : bool
        Whether progress and skipped files are shown.
    count : bool
        Whether it is said how many files were read.
    outputs : sequence of Path
        What will be written, perhaps into the same folder.
    """

    path: Path
    recursive: bool
    use_cache: bool
    n_jobs: int | None
    show: bool
    count: bool
    outputs: Sequence[Path]

    def read_first(self) -> ImageCollection:
        """Every picture at the size that serves comparing and drawing; says what was read."""
        pictures = self.read(side=SIDE, fit="crop", words="Reading")
        skipped = not_ours(pictures.skipped, self.path, self.outputs)
        if self.count:
            say_read(pictures.names, len(skipped), str(self.path))
        if self.show:
            list_skipped(skipped, str(self.path))
        return replace(pictures, skipped=skipped)

    def read(self, *, side: int, fit: str, words: str) -> ImageCollection:
        """Every picture at one size, with a progress bar."""
        if not self.recursive and _has_folders_only(self.path):
            raise BadInput(
                f"{self.path} holds sub-folders and no pictures. Leave out --no-recursive to "
                "read those in the sub-folders."
            )
        with (
            progress_bar(words, show=self.show) as advance,
            warnings.catch_warnings(record=True) as remarks,
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            pictures = read_folder(
                self.path,
                size=side,
                fit=fit,
                recursive=self.recursive,
                cache=default_cache() if self.use_cache else None,
                n_jobs=self.n_jobs,
                on_progress=lambda done, total: advance(done / max(total, 1), f"{done:,}"),
            )
        for remark in remarks if self.show and side == SIDE else ():
            # Said once: later readings of the same folder would say the same.
            warn(remark.message)
        return pictures


def _has_folders_only(path: Path) -> bool:
    entries = path.iterdir() if path.is_dir() else ()
    shown = [each for each in entries if not each.name.startswith(".")]
    return bool(shown) and all(each.is_dir() for each in shown)


def compared(arrays: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pictures at the size they are compared at."""
    small = [
        Image.fromarray(each).resize((COMPARED_SIDE, COMPARED_SIDE), Image.Resampling.BOX)
        for each in arrays
    ]
    return np.stack([np.asarray(each) for each in small])


def drawn(source: Source, pictures: ImageCollection, tile: int) -> NDArray[np.uint8]:
    """The pictures at a size fit for tiles of `tile` pixels, read anew if that is large."""
    if tile <= SIDE:
        return pictures.arrays
    larger = source.read(side=tile, fit="crop", words="Reading")
    if larger.names != pictures.names:
        warn(f"{source.path} changed while it was laid out; pictures are drawn less sharp.")
        return pictures.arrays
    return larger.arrays


def previews(
    source: Source, pictures: ImageCollection, chosen: NDArray[np.intp]
) -> list[NDArray[np.uint8]] | None:
    """A larger picture of each chosen item in its own proportions, or None if they are many."""
    if len(pictures) > MAX_PREVIEWS or np.median(pictures.sizes.max(axis=1)) <= SIDE:
        return None
    larger = source.read(side=PREVIEW_SIDE, fit="stretch", words="Reading")
    if larger.names != pictures.names:
        return None
    return [_in_proportion(larger.arrays[i], larger.sizes[i]) for i in chosen]


def _in_proportion(pixels: NDArray[np.uint8], size: NDArray[np.intp]) -> NDArray[np.uint8]:
    height, width = (size * min(1.0, PREVIEW_SIDE / size.max())).round().astype(int).tolist()
    scaled = Image.fromarray(pixels).resize(
        (max(1, width), max(1, height)), Image.Resampling.BICUBIC
    )
    return np.asarray(scaled, dtype=np.uint8)
