"""What `unshuffle layout` was asked for, and the items that it lays out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import check_n_items
from unshuffle.cli import _pictures
from unshuffle.cli._console import BadInput, count_folders, progress_bar
from unshuffle.cli._inputs import read_vectors
from unshuffle.cli._tables import Reading, Table
from unshuffle.images import FEATURES, ImageCollection, describe, read_features
from unshuffle.layout import summarize


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    path: Path
    outputs: list[Path]
    shape: str | None
    mask: Path | None
    invert: bool
    text: str | None
    wrap: bool
    features: str | None
    summary: int | None
    quality: str
    tile: int
    recursive: bool
    use_cache: bool
    frozen: Path | None
    reading: Reading
    spreadsheet: bool
    seed: int
    jobs: int
    as_json: bool
    quiet: bool

    @property
    def source(self) -> _pictures.Source:
        """The folder, and how it is read."""
        return _pictures.Source(
            self.path,
            self.recursive,
            self.use_cache,
            self.jobs,
            show=not self.quiet,
            count=not self.quiet and not self.as_json,
            outputs=self.outputs,
        )


@dataclass(frozen=True)
class Items:
    """What is laid out.

    Attributes
    ----------
    names : list of str
        A name for each item, "" where it has none.
    vectors : array of shape (n_items, n_features)
        What they are compared by.
    kernel : str
        How.
    pictures : ImageCollection or None
        Their folder, where they are pictures.
    chosen : ndarray of shape (n_items,)
        Which of the folder's pictures they are.
    n_read : int
        How many there were before a summary was made.
    captions : list of str or None
        What to say about each.
    table : Table or None
        What was read, where it is a table.
    """

    names: list[str]
    vectors: Any
    kernel: str
    pictures: ImageCollection | None
    chosen: NDArray[np.intp]
    n_read: int
    captions: list[str] | None = None
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_folders(self) -> int | None:
        """How many folders the pictures were in; None for a table."""
        if self.pictures is None:
            return None
        return count_folders(self.pictures.names)


def read_items(options: Options, kind: str) -> Items:
    """The collection, or what stands for it where a summary is asked for."""
    items = _read(options, kind)
    if options.summary is not None:
        items = _summarized(items, options.summary, options.seed)
    check_n_items(len(items), str(options.path))
    return items


def _read(options: Options, kind: str) -> Items:
    if kind != "images":
        read = read_vectors(options.path, options.reading)
        n = len(read)
        return Items(read.names, read.items, "linear", None, np.arange(n), n, table=read.table)
    pictures = options.source.read_first()
    vectors, kernel = _features(pictures, options)
    n = len(pictures)
    return Items(pictures.names, vectors, kernel, pictures, np.arange(n), n)


def _features(pictures: ImageCollection, options: Options) -> tuple[Any, str]:
    if options.features in (None, *FEATURES):
        with progress_bar("Comparing", show=not options.quiet) as advance:
            return describe(
                _pictures.compared(pictures.arrays),
                options.features or "color",
                random_state=options.seed,
                n_jobs=options.jobs,
                on_progress=lambda done, total: advance(done / max(total, 1), ""),
            )
    path = Path(options.features or "")
    return read_features(path, len(pictures), names=pictures.names), "linear"


def _summarized(items: Items, k: int, seed: int) -> Items:
    """The items that stand for all, with the number that each stands for."""
    if k > len(items):
        raise BadInput(
            f"--summary {k} asks for more than the {len(items):,} items there are. Give a smaller "
            "number, or leave it out."
        )
    summary = summarize(items.vectors, k, kernel=items.kernel, random_state=seed)
    # In the order of the folder, as without a summary.
    order = np.argsort(summary.indices)
    chosen, counts = summary.indices[order], summary.counts[order]
    return Items(
        names=[items.names[i] for i in chosen],
        vectors=items.vectors[chosen],
        kernel=items.kernel,
        pictures=items.pictures,
        chosen=chosen,
        n_read=items.n_read,
        captions=[f"stands for {count:,}" if count > 1 else "" for count in counts],
        table=items.table,
    )
