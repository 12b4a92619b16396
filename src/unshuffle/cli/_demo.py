"""`unshuffle demo`: pictures of what the library does, from data of scikit-learn."""

import time
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter, rotate, zoom
from sklearn.datasets import load_digits, load_sample_image

from unshuffle import Collage, GridLayout, KernelizedSorting, MinimumVolumePCA, OrbitLearner
from unshuffle._core.color import PAPER
from unshuffle._files.folders import MANIFEST, changed_files, list_files_in
from unshuffle._files.paths import BadInput, check_output_path
from unshuffle.cli._app import NotWritten, progress_bar, report_to, say
from unshuffle.cli._help import program_name
from unshuffle.cli._options import DemoOptions
from unshuffle.datasets import digit_sets, photo_halves, sample_digits
from unshuffle.images import (
    color_histogram,
    grid_sheet,
    lab_pixels,
    matched_sheet,
    save_sheet,
    write_page,
)
from unshuffle.matching import Matches
from unshuffle.plotting import AlignmentDisplay, OrbitDisplay
from unshuffle.preprocessing import SetNormalizer

N_HALVES = 240
N_BAGS = 60
GRID = (20, 30)
# Number of training digits, the angle in degrees, and the new digits to turn.
N_TURNED, TURN, NEW = 200, 15, (1500, 1528, 1510)
# Crops of both photos, of these sides, are shrunk or enlarged to tiles; a temple alone has too
# few colors of the flower, whose part in the box is drawn.
N_CROPS, CROP_SIDES, TILE, COLLAGE = 5000, (8, 32), 14, (30, 45)
FLOWER = (60, 70, 570, 410)
DIGIT_INKS = {3: "#0f6948", 9: "#e07a1f"}
OUTPUTS = (
    *("halves.png", "pairs.csv", "digits.png", "wall.html", "collage.jpg"),
    *("digit-morph.png", "set-upright.png", "turned-digits.png"),
)
_INKS = "1f77b4 3c3c3c 2c8c3c c8282d 7850aa c86e00 008c8c be3c8c 825a32 6e8214"
INKS = np.array(list(bytes.fromhex(_INKS))).reshape(10, 3)


def demo(options: DemoOptions) -> int:
    """Write pictures, a page and pairs into a folder, and print what they show."""
    folder = options.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"Cannot make the folder {folder}: {error.strerror or error}. Choose another with -o."
        ) from error
    for name in (*OUTPUTS, MANIFEST):
        check_output_path(folder / name, (Path(name).suffix,))
    changed = changed_files(folder, OUTPUTS)
    if changed:
        raise BadInput(
            f"{folder} holds files that the demo would replace and that may be yours: "
            f"{', '.join(changed)}. Choose another folder with -o, or move them away."
        )
    try:
        _make_all(folder, options.jobs)
    except OSError as error:
        what = error.filename or folder
        raise NotWritten(f"{what} could not be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            list_files_in(folder, OUTPUTS)
    return 0


def _make_all(folder: Path, n_jobs: int | None) -> None:
    start = time.perf_counter()
    rows, columns = GRID
    say(f"Laying out {rows * columns} handwritten digits on a {rows} x {columns} grid ...")
    say("(The first run compiles its loops on the way, later ones take half as long.)", indent=2)
    share = _lay_out_digits(folder, n_jobs)
    say(
        f"{share:.0%} of neighbors show the same digit, without labels; about 10% by chance",
        f"{folder / 'digits.png'}: regions of similar digits, colored by label afterwards",
        f"{folder / 'wall.html'}: the same to zoom and search in a browser",
        indent=2,
    )
    say(f"Matching {N_HALVES} left halves of photo crops with their shuffled right halves ...")
    n_right = _match_halves(folder, n_jobs)
    say(
        f"{n_right} of {N_HALVES} right, by similarities within each side only; about 1 by chance",
        f"{folder / 'halves.png'}: the pairs; thin green frames are right, thick red ones wrong",
        f"{folder / 'pairs.csv'}: the pairs and their confidences",
        indent=2,
    )
    n_cells = COLLAGE[0] * COLLAGE[1]
    say(f"Drawing a flower with {n_cells:,} of {N_CROPS:,} crops of photos of it and a temple ...")
    _draw_flower(folder, n_jobs)
    say(f"{folder / 'collage.jpg'}: the photo and the collage; no crop is used twice", indent=2)
    if _has_matplotlib():
        _make_figures(folder)
    else:
        say("Three more pictures need matplotlib: pip install 'unshuffle[plot]'")
    seconds = time.perf_counter() - start
    say(f"Done in {seconds:.0f} s. Next, with a folder of your own pictures, or to read more:")
    say(f"{program_name()} layout FOLDER", f"{program_name()} match --help", indent=2)


def _make_figures(folder: Path) -> None:
    say(f"Aligning the points of {N_BAGS} handwritten digits, 120 points each ...")
    _morph_digits(folder / "digit-morph.png")
    shown = "a 3 turning into a 9, in the given order and in the common order"
    say(f"{folder / 'digit-morph.png'}: {shown}", indent=2)
    say("Centering, scaling and straightening digits ...")
    _straighten_digits(folder / "set-upright.png")
    shown = "threes and nines before and after"
    say(f"{folder / 'set-upright.png'}: {shown}", indent=2)
    say(f"Learning rotation from {N_TURNED} digits and copies turned by {TURN} degrees ...")
    _rotate_digits(folder / "turned-digits.png")
    say(f"{folder / 'turned-digits.png'}: new digits, turned all the way round", indent=2)


def _match_halves(folder: Path, n_jobs: int | None) -> int:
    left, right, truth = photo_halves(N_HALVES, random_state=0)
    with progress_bar("  Matching", show=True) as advance, warnings.catch_warnings():
        # The sheet itself shows which pairs are wrong.
        warnings.simplefilter("ignore", UserWarning)
        sorting = KernelizedSorting(
            kernel=["rbf", "rbf"], random_state=0, n_jobs=n_jobs, callback=report_to(advance)
        ).fit(
            [lab_pixels(left), color_histogram(left)],
            [lab_pixels(right), color_histogram(right)],
        )
    correct = sorting.permutation_ == truth
    sheet = matched_sheet(left, right, sorting.permutation_, correct=correct, height=64)
    save_sheet(sheet, folder / "halves.png")
    names = [f"left-{i}" for i in range(len(left))], [f"right-{i}" for i in range(len(right))]
    Matches(sorting.permutation_, sorting.confidence_, *names).save(folder / "pairs.csv")
    return int(correct.sum())


def _lay_out_digits(folder: Path, n_jobs: int | None) -> float:
    images, labels = sample_digits(GRID[0] * GRID[1], random_state=0)
    with progress_bar("  Laying out", show=True) as advance:
        layout = GridLayout(
            shape=GRID, quality="best", random_state=0, n_jobs=n_jobs, callback=report_to(advance)
        ).fit(images.reshape(len(images), -1) / 255.0)
    colored = _color_by_label(images, labels)
    save_sheet(grid_sheet(colored, layout.grid_, tile=40, gap=0), folder / "digits.png")
    names = [f"digit {label}, number {i}" for i, label in enumerate(labels)]
    title = "600 handwritten digits"
    write_page(
        folder / "wall.html",
        colored,
        layout.grid_,
        names,
        title=title,
        columns={"digit": [str(label) for label in labels]},
        labels="digit",
    )
    return neighbor_agreement(labels[layout.grid_])


def _draw_flower(folder: Path, n_jobs: int | None) -> None:
    photos = [Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")]
    size = COLLAGE[1] * TILE, COLLAGE[0] * TILE
    flower = np.asarray(photos[1].resize(size, box=FLOWER))
    rng = np.random.default_rng(0)
    crops = np.empty((N_CROPS, TILE, TILE, 3), dtype=np.uint8)
    for k, side in enumerate(rng.integers(*CROP_SIDES, N_CROPS).tolist()):
        photo = photos[k % 2]
        x, y = (int(rng.integers(0, extent - side)) for extent in photo.size)
        box = x, y, x + side, y + side
        crops[k] = np.asarray(photo.resize((TILE, TILE), Image.Resampling.BOX, box=box))
    with progress_bar("  Drawing", show=True) as advance:
        collage = Collage(
            flower,
            COLLAGE,
            smoothness=0.1,
            random_state=0,
            n_jobs=n_jobs,
            callback=report_to(advance),
        ).fit(crops)
    between = np.full((len(flower), TILE, 3), 255, dtype=np.uint8)
    both = np.concatenate([flower, between, collage.render(crops)], axis=1)
    save_sheet(Image.fromarray(both), folder / "collage.jpg")


def _has_matplotlib() -> bool:
    return find_spec("matplotlib") is not None


def _figure(size: tuple[float, float]) -> Any:
    """Figure without a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=100, layout="constrained")


def _morph_digits(path: Path) -> None:
    bags, _ = digit_sets(N_BAGS, digits=(3, 9), n_points=120)
    aligned = MinimumVolumePCA(random_state=0).fit(bags)
    figure = _figure((8.8, 3.8))
    AlignmentDisplay.from_estimator(aligned, bags).plot_morph(12, 13, figure.add_subplot())
    figure.savefig(path)


def _straighten_digits(path: Path) -> None:
    rng = np.random.default_rng(0)
    sets, labels = digit_sets(300, digits=(3, 9))
    moved = []
    for points in sets:
        slant = np.array([[1.0, rng.normal(0, 0.4)], [0.0, 1.0]])
        moved.append(rng.uniform(0.6, 1.6) * points @ slant.T + rng.normal(0, 3, size=2))
    shown = rng.permutation(len(sets))[:8]
    given = [moved[i] for i in shown]
    rows = {"as given": given, "upright": SetNormalizer(shear=True).fit_transform(given)}
    figure = _figure((11, 3.4))
    axes = figure.subplots(2, len(given), sharex="row", sharey="row")
    for row, (name, drawn) in zip(axes, rows.items(), strict=True):
        for ax, points, digit in zip(row, drawn, labels[shown], strict=True):
            ax.scatter(*points.T, s=5, c=DIGIT_INKS[digit])
            ax.set(aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_color("0.85")
        row[0].set_ylabel(name)
    for digit, ink in DIGIT_INKS.items():
        axes[0, 0].scatter([], [], c=ink, label=f"a {digit}")
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path)


def _rotate_digits(path: Path) -> None:
    images = load_digits().images

    def turned(image: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
        large = np.pad(zoom(image, 2, order=1), 3)
        return gaussian_filter(rotate(large, degrees, reshape=False, order=1), 1.0).ravel()

    angles = np.random.default_rng(0).uniform(0, 360, N_TURNED)
    seen = list(zip(images[:N_TURNED], angles, strict=True))
    before = np.array([turned(image, degrees) for image, degrees in seen])
    after = np.array([turned(image, degrees + TURN) for image, degrees in seen])
    with warnings.catch_warnings():
        # The picture shows how far the turns go wrong.
        warnings.simplefilter("ignore", UserWarning)
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
    figure.savefig(path)


def _color_by_label(images: NDArray[np.uint8], labels: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Digits with a margin, in one color for each label."""
    ink = np.pad(images, ((0, 0), (1, 1), (1, 1)))[..., np.newaxis] / 255.0
    paper = np.array(PAPER)
    return np.round(paper + ink * (INKS[labels][:, np.newaxis, np.newaxis] - paper)).astype(
        np.uint8
    )


def neighbor_agreement(labels: NDArray[np.intp]) -> float:
    """Share of horizontal and vertical neighbors with the same label."""
    across, down = labels[:, 1:] == labels[:, :-1], labels[1:] == labels[:-1]
    return float(np.concatenate([across.ravel(), down.ravel()]).mean())
