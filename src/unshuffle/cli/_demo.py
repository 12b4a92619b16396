"""`unshuffle demo`: two pictures that show what the library does, from data at hand."""

import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle.cli._console import BadInput, progress_bar, reporting, say

N_HALVES = 240
GRID = (20, 30)
PAPER = (250, 249, 246)
INKS = np.array(
    [
        (31, 119, 180),
        (60, 60, 60),
        (44, 140, 60),
        (200, 40, 45),
        (120, 80, 170),
        (200, 110, 0),
        (0, 140, 140),
        (190, 60, 140),
        (130, 90, 50),
        (110, 130, 20),
    ]
)


def demo(folder: Path, *, n_jobs: int | None = None) -> None:
    """Write the pictures and the pairs into `folder`, and say what to look at."""
    _make_folder(folder)
    start = time.perf_counter()
    say(
        f"Matching {N_HALVES} left halves of photo crops, each crop in a light of its own, to "
        "shuffled right halves ..."
    )
    n_right = _halves(folder, n_jobs)
    say(
        f"{n_right} of {N_HALVES} right, from similarities among left halves and among right "
        "halves alone; by chance it would be 1.",
        indent=2,
    )
    say(
        f"{folder / 'halves.png'}: each pair joined; thin green frame right, thick red wrong",
        indent=2,
    )
    say(f"{folder / 'pairs.csv'}: the pairs, and how sure each is", indent=2)
    rows, columns = GRID
    say(f"Sorting {rows * columns} handwritten digits onto a {rows} x {columns} grid ...")
    share = _digits(folder, n_jobs)
    say(
        f"{share:.0%} of neighbours show the same digit, though no label was used; "
        "in random order it would be about 10%.",
        indent=2,
    )
    say(
        f"{folder / 'digits.png'}: regions of like digits, coloured afterwards by what they are",
        indent=2,
    )
    say(f"Done in {time.perf_counter() - start:.0f} s. Next: unshuffle match --help")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"Cannot make the folder {folder}: {error.strerror or error}. Choose another with -o."
        ) from error


def _halves(folder: Path, n_jobs: int | None) -> int:
    from unshuffle import KernelizedSorting
    from unshuffle._validation import check_output_path
    from unshuffle.datasets import photo_halves
    from unshuffle.images import color_histogram, lab_pixels, matched_sheet
    from unshuffle.matching import Matches

    picture = check_output_path(folder / "halves.png", (".png",))
    left, right, truth = photo_halves(N_HALVES, random_state=0)
    with progress_bar("  Matching", show=True) as advance, warnings.catch_warnings():
        # The truth is known here: the sheet itself shows how far to trust the answer.
        warnings.simplefilter("ignore", UserWarning)
        sorting = KernelizedSorting(
            kernel=["rbf", "rbf"], random_state=0, n_jobs=n_jobs, callback=reporting(advance)
        ).fit(
            [lab_pixels(left), color_histogram(left)],
            [lab_pixels(right), color_histogram(right)],
        )
    correct = sorting.permutation_ == truth
    matched_sheet(left, right, sorting.permutation_, correct=correct, height=64).save(picture)
    names = [f"left-{i}" for i in range(len(left))], [f"right-{i}" for i in range(len(right))]
    Matches(sorting.permutation_, sorting.confidence_, *names).save(folder / "pairs.csv")
    return int(correct.sum())


def _digits(folder: Path, n_jobs: int | None) -> float:
    from unshuffle import KernelizedSorting
    from unshuffle._validation import check_output_path
    from unshuffle.datasets import grid_points, sample_digits
    from unshuffle.images import grid_sheet

    picture = check_output_path(folder / "digits.png", (".png",))
    images, labels = sample_digits(GRID[0] * GRID[1], random_state=0)
    with progress_bar("  Sorting", show=True) as advance, warnings.catch_warnings():
        # A grid looks the same from all sides, so equally good answers are no cause for alarm.
        warnings.simplefilter("ignore", UserWarning)
        sorting = KernelizedSorting(
            kernel="rbf", random_state=0, n_jobs=n_jobs, callback=reporting(advance)
        ).fit(images.reshape(len(images), -1) / 255.0, grid_points(*GRID))
    grid = np.empty(len(images), dtype=np.intp)
    grid[sorting.permutation_] = np.arange(len(images))
    grid = grid.reshape(GRID)
    grid_sheet(_in_ink(images, labels), grid, tile=40, gap=0).save(picture)
    return neighbour_agreement(labels[grid])


def _in_ink(images: NDArray[np.uint8], labels: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Digits with a margin, each kind in an ink of its own, to show what came together."""
    ink = np.pad(images, ((0, 0), (1, 1), (1, 1)))[..., np.newaxis] / 255.0
    paper = np.array(PAPER)
    return np.round(paper + ink * (INKS[labels][:, np.newaxis, np.newaxis] - paper)).astype(
        np.uint8
    )


def neighbour_agreement(labels: NDArray[np.intp]) -> float:
    """Share of cells side by side, or one above the other, that carry the same label."""
    across, down = labels[:, 1:] == labels[:, :-1], labels[1:] == labels[:-1]
    return float(np.concatenate([across.ravel(), down.ravel()]).mean())
