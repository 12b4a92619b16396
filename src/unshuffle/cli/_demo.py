"""`unshuffle demo`: pictures that show what the library does, from data at hand."""

import io
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._files import check_output_path
from unshuffle._saving import replace_file
from unshuffle.cli._app import BadInput, NotDelivered, progress_bar, reporting, say
from unshuffle.cli._options import DemoOptions

N_HALVES = 240
GRID = (20, 30)
# How many digits are learned from, turned by how many degrees, and which are turned afterwards.
N_TURNED, TURN, NEW = 200, 15, (1500, 1528, 1510)
N_CROPS, CROP, COLLAGE = 3000, 16, (26, 39)
PAPER = (250, 249, 246)
_INKS = "1f77b4 3c3c3c 2c8c3c c8282d 7850aa c86e00 008c8c be3c8c 825a32 6e8214"
INKS = np.array(list(bytes.fromhex(_INKS))).reshape(10, 3)


def demo(options: DemoOptions) -> int:
    """Write the pictures and the pairs into a folder, and say what to look at."""
    folder = options.output
    _make_folder(folder)
    try:
        _make_all(folder, options.jobs)
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
    _tell(
        f"{n_right} of {N_HALVES} right, from similarities among left halves and among right "
        "halves alone; by chance it would be 1."
    )
    _tell(f"{folder / 'halves.png'}: each pair joined; thin green frame right, thick red wrong")
    _tell(f"{folder / 'pairs.csv'}: the pairs, and how sure each is")
    rows, columns = GRID
    say(f"Laying out {rows * columns} handwritten digits on a {rows} x {columns} grid ...")
    share = _digits(folder, n_jobs)
    _tell(
        f"{share:.0%} of neighbours show the same digit, though no label was used; "
        "in random order it would be about 10%."
    )
    _tell(f"{folder / 'digits.png'}: regions of like digits, coloured afterwards by what they are")
    _tell(f"{folder / 'wall.html'}: the same to zoom and search, in any browser")
    n_cells = COLLAGE[0] * COLLAGE[1]
    say(f"Drawing a flower with {n_cells:,} of {N_CROPS:,} crops of a photo of a temple ...")
    _flower(folder, n_jobs)
    _tell(f"{folder / 'collage.jpg'}: the photo, and the collage; no crop is used twice")
    if _has_matplotlib():
        _make_figures(folder)
    else:
        say("Three more pictures need matplotlib: pip install 'unshuffle[plot]'")
    say(
        f"Done in {time.perf_counter() - start:.0f} s. Next: unshuffle match --help, or "
        "unshuffle layout FOLDER with pictures of your own"
    )


def _make_figures(folder: Path) -> None:
    say("Finding which point is which in 100 handwritten digits of 120 points each ...")
    _morph(folder)
    _tell(
        f"{folder / 'digit-morph.png'}: a 3 turning into a 9 in the order given, and in the "
        "common order"
    )
    say("Moving, scaling and straightening digits that lie anywhere ...")
    _upright(folder)
    _tell(f"{folder / 'set-upright.png'}: the same digits before and after")
    say(f"Learning to turn from {N_TURNED} digits, each beside itself at {TURN} degrees ...")
    _turned(folder)
    _tell(f"{folder / 'turned-digits.png'}: digits it never saw, all the way round")


def _tell(message: str) -> None:
    """Print one line about what was just done."""
    say(message, indent=2)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"Cannot make the folder {folder}: {error.strerror or error}. Choose another with -o."
        ) from error


def _halves(folder: Path, n_jobs: int | None) -> int:
    from unshuffle import KernelizedSorting
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


def _has_matplotlib() -> bool:
    return find_spec("matplotlib") is not None


def _figure(size: tuple[float, float]) -> Any:
    """Figure that no window system is asked for."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=100, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    out = io.BytesIO()
    figure.savefig(out, format="png")
    replace_file(path, out.getvalue())


def _morph(folder: Path) -> None:
    from unshuffle import MinimumVolumePCA
    from unshuffle.datasets import digit_clouds
    from unshuffle.plotting import AlignmentDisplay

    path = check_output_path(folder / "digit-morph.png", (".png",))
    bags, _ = digit_clouds(100, digits=(3, 9), n_points=120)
    aligned = MinimumVolumePCA(random_state=0).fit(bags)
    figure = _figure((8.8, 3.8))
    AlignmentDisplay.from_estimator(aligned, bags).plot_morph(12, 13, figure.add_subplot())
    _save(figure, path)


def _upright(folder: Path) -> None:
    from unshuffle.datasets import digit_clouds
    from unshuffle.preprocessing import SetNormalizer

    path = check_output_path(folder / "set-upright.png", (".png",))
    rng = np.random.default_rng(0)
    clouds, labels = digit_clouds(300, digits=(3, 9))
    put_down = []
    for points in clouds:
        slant = np.array([[1.0, rng.normal(0, 0.4)], [0.0, 1.0]])
        put_down.append(rng.uniform(0.6, 1.6) * points @ slant.T + rng.normal(0, 3, size=2))
    shown = rng.permutation(len(clouds))[:8]
    given = [put_down[i] for i in shown]
    rows = {"as given": given, "upright": SetNormalizer(shear=True).fit_transform(given)}
    figure = _figure((11, 3.4))
    axes = figure.subplots(2, len(given), sharex="row", sharey="row")
    for row, (name, sets) in zip(axes, rows.items(), strict=True):
        for ax, points, digit in zip(row, sets, labels[shown], strict=True):
            ax.scatter(*points.T, s=5, c="#0f6948" if digit == 3 else "#e07a1f")
            ax.set(aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_color("0.85")
        row[0].set_ylabel(name)
    _save(figure, path)


def _turned(folder: Path) -> None:
    from scipy.ndimage import gaussian_filter, rotate, zoom
    from sklearn.datasets import load_digits

    from unshuffle import OrbitLearner
    from unshuffle.plotting import OrbitDisplay

    path = check_output_path(folder / "turned-digits.png", (".png",))
    images = load_digits().images

    def turned(image: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
        large = np.pad(zoom(image, 2, order=1), 3)
        return gaussian_filter(rotate(large, degrees, reshape=False, order=1), 1.0).ravel()

    angles = np.random.default_rng(0).uniform(0, 360, N_TURNED)
    seen = list(zip(images[:N_TURNED], angles, strict=True))
    before = np.array([turned(image, degrees) for image, degrees in seen])
    after = np.array([turned(image, degrees + TURN) for image, degrees in seen])
    learner = OrbitLearner(
        1, structure="skew", n_components=30, n_init=1, tol=1e-4, random_state=0
    ).fit(before, after)
    degrees = np.arange(0, 361, 45)
    steps = learner.coefficients_.mean() * degrees / TURN
    side = 2 * images.shape[1] + 6
    figure = _figure((10, 3.7))
    display = OrbitDisplay.from_estimator(learner, before[:20])
    for ax, new in zip(figure.subplots(len(NEW), 1), images[list(NEW)], strict=True):
        display.plot_flow(turned(new, 0), ax, shape=(side, side), steps=steps)
        for title, angle in zip(ax.texts[2:], degrees, strict=True):
            title.set_text(f"{angle}°")
    _save(figure, path)


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
