"""`unshuffle demo`: pictures that show what the library does, from data at hand."""

import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle.cli._console import BadInput, NotDelivered, progress_bar, reporting, say

N_HALVES = 240
GRID = (20, 30)
N_CROPS, CROP, COLLAGE = 3000, 16, (26, 39)
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


def demo(folder: Path, *, n_jobs: int | None = None) -> int:
    """Write the pictures and the pairs into `folder`, and say what to look at."""
    _make_folder(folder)
    try:
        _make_all(folder, n_jobs)
    except OSError as error:
        what = error.filename or folder
        raise NotDelivered(f"{what} could not be written: {error.strerror or error}.") from error
    return 0


def _make_all(folder: Path, n_jobs: int | None) -> None:
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
    say(f"Laying out {rows * columns} handwritten digits on a {rows} x {columns} grid ...")
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
    say(f"{folder / 'wall.html'}: the same to zoom and search, in any browser", indent=2)
    n_cells = COLLAGE[0] * COLLAGE[1]
    say(f"Drawing a flower with {n_cells:,} of {N_CROPS:,} crops of a photo of a temple ...")
    _flower(folder, n_jobs)
    say(f"{folder / 'collage.jpg'}: the photo, and the collage; no crop is used twice", indent=2)
    say(
        f"Done in {time.perf_counter() - start:.0f} s. Next: unshuffle match --help, or "
        "unshuffle layout FOLDER with pictures of your own"
    )


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
    from unshuffle.images import color_histogram, lab_pixels, matched_sheet, save_sheet
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
    sheet = matched_sheet(left, right, sorting.permutation_, correct=correct, height=64)
    save_sheet(sheet, picture)
    names = [f"left-{i}" for i in range(len(left))], [f"right-{i}" for i in range(len(right))]
    Matches(sorting.permutation_, sorting.confidence_, *names).save(folder / "pairs.csv")
    return int(correct.sum())


def _digits(folder: Path, n_jobs: int | None) -> float:
    from unshuffle import GridLayout
    from unshuffle._validation import check_output_path
    from unshuffle.datasets import sample_digits
    from unshuffle.images import grid_sheet, save_sheet, write_page

    picture = check_output_path(folder / "digits.png", (".png",))
    page = check_output_path(folder / "wall.html", (".html",))
    images, labels = sample_digits(GRID[0] * GRID[1], random_state=0)
    with progress_bar("  Laying out", show=True) as advance:
        layout = GridLayout(
            shape=GRID, quality="best", random_state=0, n_jobs=n_jobs, callback=reporting(advance)
        ).fit(images.reshape(len(images), -1) / 255.0)
    inked = _in_ink(images, labels)
    save_sheet(grid_sheet(inked, layout.grid_, tile=40, gap=0), picture)
    names = [f"digit {label}, number {i}" for i, label in enumerate(labels)]
    write_page(page, inked, layout.grid_, names, title="600 handwritten digits", tile=40)
    return neighbour_agreement(labels[layout.grid_])


def _flower(folder: Path, n_jobs: int | None) -> None:
    from PIL import Image
    from sklearn.datasets import load_sample_image

    from unshuffle import Collage
    from unshuffle._validation import check_output_path
    from unshuffle.images import save_sheet

    picture = check_output_path(folder / "collage.jpg", (".jpg",))
    temple, flower = (load_sample_image(name) for name in ("china.jpg", "flower.jpg"))
    flower = flower[: COLLAGE[0] * CROP, : COLLAGE[1] * CROP]
    highest = np.array(temple.shape[:2]) - CROP
    corners = np.random.default_rng(0).integers(0, highest, (N_CROPS, 2))
    crops = np.stack([temple[y : y + CROP, x : x + CROP] for y, x in corners])
    with progress_bar("  Drawing", show=True) as advance:
        collage = Collage(
            flower, COLLAGE, random_state=0, n_jobs=n_jobs, callback=reporting(advance)
        ).fit(crops)
    between = np.full((len(flower), CROP, 3), 255, dtype=np.uint8)
    both = np.concatenate([flower, between, collage.render(crops)], axis=1)
    save_sheet(Image.fromarray(both), picture)


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
