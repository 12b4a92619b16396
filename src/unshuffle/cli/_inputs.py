"""The two collections that a user names: what kind they are, and what is compared."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import check_n_items
from unshuffle._files import check_folder, check_regular_file
from unshuffle._grams import check_gram
from unshuffle.cli import _tables
from unshuffle.cli._console import BadInput
from unshuffle.cli._tables import Reading, Table

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".org", ".log")
MAX_TEXT_BYTES = 64 * 2**20
KINDS = {
    "images": "a folder of pictures",
    "text": "a folder of text files",
    "table": "a table",
    "gram": "a Gram matrix",
}
# Kernels that can be summed, the most useful first.
KERNELS = {
    "images": ("rbf", "laplacian", "geodesic", "linear"),
    "text": ("text",),
    "table": ("rbf", "laplacian", "geodesic", "linear", "chi2"),
    "gram": (),
}


@dataclass(frozen=True)
class Collection:
    """One side of a match.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    names : list of str
        A name for each item, "" where it has none.
    items : object
        What the estimator is given.
    kernel : str or list of str
        Kernel that suits it, or kernels that are summed.
    kernels : list of str
        The same as they are named on the command line.
    skipped : list of (str, str)
        Files passed over, and why.
    aspect : float
        Width over height of a typical picture; 1 for other kinds.
    table : Table or None
        What was read, where it is a table.
    """

    kind: str
    names: list[str]
    items: Any
    kernel: str | list[str]
    kernels: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    aspect: float = 1.0
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.names)


def find_kind(path: Path, *, precomputed: bool = False, recursive: bool = True) -> str:
    """What `path` holds: "images", "text", "table" or "gram"."""
    if not path.exists():
        raise BadInput(f"There is no file or folder {path}. Check the name.")
    if precomputed:
        if path.suffix.lower() != ".npy" or path.is_dir():
            raise BadInput(f"{path} is no .npy file. With --precomputed give two Gram matrices.")
        check_regular_file(path, "an array")
        return "gram"
    if not path.is_dir():
        if path.suffix.lower() not in _tables.SUFFIXES:
            raise BadInput(
                f"{path} is of no kind that can be read. Give a folder of pictures or text files, "
                f"or a table ({', '.join(_tables.SUFFIXES)})."
            )
        check_regular_file(path, "a table")
        return "table"
    check_folder(path)
    from unshuffle._files import list_files
    from unshuffle.images import SUFFIXES

    listing = list_files(path, recursive=recursive)
    names = [name for name, _ in (*listing.files, *listing.skipped)]
    endings = [Path(name).suffix.lower() for name in names]
    n_text = sum(ending in TEXT_SUFFIXES for ending in endings)
    n_images = sum(ending in SUFFIXES for ending in endings)
    return "text" if n_text > n_images else "images"


def read_pair(
    path_a: Path,
    path_b: Path,
    *,
    precomputed: bool = False,
    kernels: Sequence[str] = (),
    readings: Sequence[Reading] = (Reading(), Reading()),
    n_jobs: int | None = None,
    recursive: bool = True,
    on_progress: Callable[[float], object] | None = None,
) -> tuple[Collection, Collection]:
    """Read both sides, once it is clear that they are of one kind."""
    kinds = [
        find_kind(path, precomputed=precomputed, recursive=recursive) for path in (path_a, path_b)
    ]
    if kinds[0] != kinds[1]:
        raise BadInput(
            f"{path_a} is {KINDS[kinds[0]]} and {path_b} is {KINDS[kinds[1]]}. "
            "Give two of the same kind."
        )
    _check_kernels(kernels, kinds[0], path_a)
    if recursive and path_a.is_dir() and path_b.is_dir():
        _check_not_nested(path_a, path_b)
    both = []
    for side, path in enumerate((path_a, path_b)):

        def advance(done: int, total: int, side: int = side) -> None:
            if on_progress is not None:
                on_progress((side + done / max(total, 1)) / 2)

        readers: dict[str, Callable[..., Collection]] = {
            "images": partial(_read_images, recursive=recursive),
            "text": partial(_read_texts, recursive=recursive),
            "gram": _read_gram,
        }
        if kinds[side] == "table":
            collection = _read_table(path, readings[side], kernels)
            advance(1, 1)
        else:
            readings[side].check_unused(path, KINDS[kinds[side]])
            collection = readers[kinds[side]](path, kernels, n_jobs, advance)
        if len(collection) < 2:
            check_n_items(len(collection), str(path))
        both.append(collection)
    return both[0], both[1]


def _check_not_nested(path_a: Path, path_b: Path) -> None:
    """Refuse a collection that is part of the other: its items would stand on both sides."""
    a, b = (Path(os.path.realpath(path)) for path in (path_a, path_b))
    for inner, outer, names in ((a, b, (path_a, path_b)), (b, a, (path_b, path_a))):
        if inner != outer and inner.is_relative_to(outer):
            raise BadInput(
                f"{names[0]} lies inside {names[1]}, whose sub-folders are read too. Give "
                "--no-recursive, or two folders that lie apart."
            )


Advance = Callable[[int, int], None]


def _check_kernels(kernels: Sequence[str], kind: str, path: Path) -> None:
    """Refuse kernels that do not compare this kind, or that are named twice."""
    if kernels and not KERNELS[kind]:
        raise BadInput(f"--kernel {kernels[0]} and --precomputed exclude each other. Drop one.")
    for kernel in kernels:
        if kernel not in KERNELS[kind]:
            known = ", ".join(KERNELS[kind])
            raise BadInput(
                f"--kernel {kernel} does not compare what {path} is, {KINDS[kind]}. Leave it out, "
                f"or choose from: {known}."
            )
        if kernels.count(kernel) > 1:
            raise BadInput(
                f"--kernel {kernel} is given {kernels.count(kernel)} times. Several kernels are "
                "summed; give each once."
            )


def _read_images(
    path: Path, kernels: Sequence[str], n_jobs: int | None, step: Advance, *, recursive: bool
) -> Collection:
    from unshuffle.images import color_histogram, lab_pixels, read_folder

    folder = read_folder(path, recursive=recursive, n_jobs=n_jobs, on_progress=step)
    named = list(kernels) or ["rbf"]
    return Collection(
        kind="images",
        names=folder.names,
        items=[lab_pixels(folder.arrays), color_histogram(folder.arrays)] * len(named),
        kernel=[kernel for kernel in named for _ in range(2)],
        kernels=named,
        skipped=folder.skipped,
        aspect=float(np.median(folder.sizes[:, 1] / folder.sizes[:, 0])),
    )


def _read_texts(
    path: Path, kernels: Sequence[str], n_jobs: int | None, step: Advance, *, recursive: bool
) -> Collection:
    from unshuffle._files import by_reason, list_files, path_key

    documents, names = [], []
    listing = list_files(path, recursive=recursive)
    skipped = listing.skipped
    for done, (name, file) in enumerate(listing.files, start=1):
        try:
            documents.append(_read_document(file))
            names.append(name)
        except (BadInput, ValueError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            skipped.append((name, why.lower()))
        step(done, len(listing.files))
    skipped.sort(key=lambda entry: path_key(entry[0]))
    if not documents:
        reasons = [f"{len(some):,} such as {some[0]}: {why}" for why, some in by_reason(skipped)]
        raise BadInput(
            f"{path} holds no text that can be read: {len(skipped):,} file(s) were skipped. "
            f"{'; '.join(reasons)}."
        )
    return Collection("text", names, documents, "text", ["text"], skipped)


def _read_document(path: Path) -> str:
    from unshuffle._decoding import file_size

    if path.suffix.lower() not in TEXT_SUFFIXES:
        raise BadInput("not a text file by its name")
    if file_size(path) > MAX_TEXT_BYTES:
        raise BadInput(f"larger than {MAX_TEXT_BYTES // 2**20} MB")
    try:
        text = _tables.read_text_file(path)
    except BadInput:
        raise BadInput("not text: it holds zero bytes") from None
    if not text.strip():
        raise BadInput("empty file")
    return text


def _read_table(path: Path, reading: Reading, kernels: Sequence[str]) -> Collection:
    table = _tables.read_table(path, reading)
    if len(table.values) > 1 and (table.values == table.values[0]).all():
        raise BadInput(
            f"All rows of {path} are equal, so nothing tells one from another. Check the file."
        )
    named = list(kernels) or ["rbf"]
    if "chi2" in named and table.values.min() < 0:
        raise BadInput(
            f"{path} holds {table.values.min():.6g}, and --kernel chi2 compares counts, which are "
            "never negative. Choose another kernel, such as rbf."
        )
    scaled = standardized(table.values)
    # chi2 compares counts, which are not to be shifted below zero.
    items = [table.values if kernel == "chi2" else scaled for kernel in named]
    single = len(named) == 1
    return Collection(
        kind="table",
        names=table.names,
        items=items[0] if single else items,
        kernel=named[0] if single else named,
        kernels=named,
        table=table,
    )


def read_vectors(path: Path, reading: Reading) -> Collection:
    """Names and standardized rows of a table."""
    return _read_table(path, reading, ["linear"])


def _read_gram(
    path: Path, kernels: Sequence[str], n_jobs: int | None, step: Advance
) -> Collection:
    gram = check_gram(_tables.read_array(path), str(path))
    step(1, 1)
    return Collection("gram", [""] * len(gram), gram, "precomputed", [])


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and variance 1, so that no unit of measurement outweighs another."""
    # Numbers below 1 first, by a power of two, which is exact: sums and squares of large ones
    # would overflow.
    _, exponents = np.frexp(np.abs(values).max(axis=0))
    scaled = np.ldexp(values, -exponents)
    centered = scaled - scaled.mean(axis=0)
    spread = centered.std(axis=0)
    # A constant column tells nothing apart; rounding must not blow it up.
    spread[spread <= 1e-12 * np.abs(scaled).max(axis=0)] = 1.0
    return centered / spread
