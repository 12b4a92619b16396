"""The two collections that a user names: what kind they are, and what is compared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation import check_folder, check_gram, check_n_items
from unshuffle.cli import _tables
from unshuffle.cli._console import BadInput

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".org", ".log")
MAX_TEXT_BYTES = 64 * 2**20
KINDS = {
    "images": "a folder of pictures",
    "text": "a folder of text files",
    "table": "a table",
    "gram": "a Gram matrix",
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
        Kernel that suits it.
    skipped : list of (str, str)
        Files passed over, and why.
    aspect : float
        Width over height of a typical picture; 1 for other kinds.
    """

    kind: str
    names: list[str]
    items: Any
    kernel: str | list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    aspect: float = 1.0

    def __len__(self) -> int:
        return len(self.names)


def find_kind(path: Path, *, precomputed: bool = False) -> str:
    """What `path` holds: "images", "text", "table" or "gram"."""
    if not path.exists():
        raise BadInput(f"There is no file or folder {path}. Check the name.")
    if precomputed:
        if path.suffix.lower() != ".npy" or path.is_dir():
            raise BadInput(f"{path} is no .npy file. With --precomputed give two Gram matrices.")
        return "gram"
    if not path.is_dir():
        if path.suffix.lower() not in _tables.SUFFIXES:
            raise BadInput(
                f"{path} is of no kind that can be read. Give a folder of pictures or text files, "
                f"or a table ({', '.join(_tables.SUFFIXES)})."
            )
        return "table"
    check_folder(path)
    from unshuffle.images import SUFFIXES

    endings = [each.suffix.lower() for each in path.iterdir() if not each.name.startswith(".")]
    n_text = sum(ending in TEXT_SUFFIXES for ending in endings)
    n_images = sum(ending in SUFFIXES for ending in endings)
    return "text" if n_text > n_images else "images"


def read_pair(
    path_a: Path,
    path_b: Path,
    *,
    precomputed: bool = False,
    kernel: str | None = None,
    n_jobs: int | None = None,
    on_progress: Callable[[float], object] | None = None,
) -> tuple[Collection, Collection]:
    """Read both sides, once it is clear that they are of one kind."""
    kinds = [find_kind(path, precomputed=precomputed) for path in (path_a, path_b)]
    if kinds[0] != kinds[1]:
        raise BadInput(
            f"{path_a} is {KINDS[kinds[0]]} and {path_b} is {KINDS[kinds[1]]}. "
            "Give two of the same kind."
        )
    both = []
    for side, path in enumerate((path_a, path_b)):

        def advance(done: int, total: int, side: int = side) -> None:
            if on_progress is not None:
                on_progress((side + done / max(total, 1)) / 2)

        reader = {
            "images": _read_images,
            "text": _read_texts,
            "table": _read_table,
            "gram": _read_gram,
        }[kinds[side]]
        collection = reader(path, kernel, n_jobs, advance)
        if len(collection) < 2:
            check_n_items(len(collection), str(path))
        both.append(collection)
    return both[0], both[1]


Advance = Callable[[int, int], None]


def _read_images(path: Path, kernel: str | None, n_jobs: int | None, step: Advance) -> Collection:
    from unshuffle.images import color_histogram, lab_pixels, read_folder

    if kernel in ("text", "chi2"):
        raise BadInput(
            f"--kernel {kernel} does not compare pictures. Leave it out, or choose rbf, "
            "laplacian, linear or geodesic."
        )
    folder = read_folder(path, n_jobs=n_jobs, on_progress=step)
    return Collection(
        kind="images",
        names=folder.names,
        items=[lab_pixels(folder.arrays), color_histogram(folder.arrays)],
        kernel=[kernel or "rbf"] * 2,
        skipped=folder.skipped,
        aspect=float(np.median(folder.sizes[:, 1] / folder.sizes[:, 0])),
    )


def _read_texts(path: Path, kernel: str | None, n_jobs: int | None, step: Advance) -> Collection:
    from unshuffle.images import visible_files

    if kernel not in (None, "text"):
        raise BadInput(f"--kernel {kernel} compares numbers; {path} holds text. Leave it out.")
    documents, names, skipped = [], [], []
    files = visible_files(path)
    for done, file in enumerate(files, start=1):
        try:
            documents.append(_read_document(file))
            names.append(file.name)
        except (BadInput, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            skipped.append((file.name, why.lower()))
        step(done, len(files))
    if not documents:
        first = f", the first is {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise BadInput(
            f"{path} holds no text that can be read: {len(skipped)} file(s) were skipped{first}."
        )
    return Collection("text", names, documents, "text", skipped)


def _read_document(path: Path) -> str:
    if path.suffix.lower() not in TEXT_SUFFIXES:
        raise BadInput("not a text file by its name")
    if not path.is_file():
        raise BadInput("not a regular file")
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise BadInput(f"larger than {MAX_TEXT_BYTES // 2**20} MB")
    try:
        text = _tables.read_text_file(path)
    except BadInput:
        raise BadInput("not text: it holds zero bytes") from None
    if not text.strip():
        raise BadInput("empty file")
    return text


def _read_table(path: Path, kernel: str | None, n_jobs: int | None, step: Advance) -> Collection:
    if kernel == "text":
        raise BadInput(f"--kernel text compares documents; {path} is a table of numbers.")
    table = _tables.read_table(path)
    step(1, 1)
    if len(table.values) > 1 and not np.ptp(table.values, axis=0).any():
        raise BadInput(
            f"All rows of {path} are equal, so nothing tells one from another. Check the file."
        )
    # chi2 compares counts, which are not to be shifted below zero.
    values = table.values if kernel == "chi2" else standardized(table.values)
    return Collection("table", table.names, values, kernel or "rbf")


def read_vectors(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Names and standardized rows of a table."""
    table = _read_table(path, "linear", None, lambda done, total: None)
    return table.names, table.items


def _read_gram(path: Path, kernel: str | None, n_jobs: int | None, step: Advance) -> Collection:
    if kernel not in (None, "precomputed"):
        raise BadInput(f"--kernel {kernel} and --precomputed exclude each other. Drop one.")
    gram = check_gram(_tables.read_array(path), str(path))
    step(1, 1)
    return Collection("gram", [""] * len(gram), gram, "precomputed")


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and variance 1, so that no unit of measurement outweighs another."""
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    # A constant column tells nothing apart; rounding must not blow it up.
    spread[spread <= 1e-12 * np.maximum(np.abs(values).max(axis=0), 1e-300)] = 1.0
    return centred / spread
