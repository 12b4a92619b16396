"""Data sets and pictures."""

from typing import Any

import numpy as np
from tests.fuzz import values as v
from tests.fuzz.subject import function
from tests.fuzz.values import Kind, needed

from unshuffle import datasets, images

function(
    datasets,
    "digit_clouds",
    {
        "n": v.count(2, 10),
        "digits": Kind(lambda case, rng: (3, 9), v.permutation("n").hostile),
        "n_points": v.count(5, 20),
        "random_state": v.seed(),
    },
)
function(datasets, "digits_views", {"n": v.count(2, 20), "random_state": v.seed()})
function(datasets, "sample_digits", {"n": v.count(2, 20), "random_state": v.seed()})
function(
    datasets,
    "photo_halves",
    {
        "n": v.count(2, 10),
        "size": v.count(8, 16),
        "light": v.real(0.5, 1.0),
        "random_state": v.seed(),
    },
)
function(
    datasets, "grid_points", {"rows": needed(v.count(1, 5)), "columns": needed(v.count(1, 5))}
)
function(
    datasets,
    "make_paired_views",
    {
        "n": v.count(2, 20),
        "n_latent": v.count(1, 5),
        "n_features": Kind(lambda case, rng: (3, 4), v.permutation("two").hostile),
        "noise": v.real(0, 0.1),
        "bend": v.real(0, 0.5),
        "random_state": v.seed(),
    },
)
function(
    datasets,
    "mixture_sets",
    {
        "n": v.count(4, 8),
        "n_classes": v.count(1, 2),
        "n_components": v.count(1, 2),
        "n_features": v.count(1, 2),
        "least_points": v.count(3, 5),
        "most_points": v.count(5, 9),
        "difference": v.real(0.03, 1.0),
        "random_state": v.seed(),
    },
)

function(images, "rgb_to_lab", {"rgb": v.images("n")})
function(
    images,
    "color_histogram",
    {
        "images": v.images("n"),
        "bins": Kind(
            lambda case, rng: (2, 3, 4),
            lambda case, rng: v.pick(
                rng, [(1000,) * 3, (0, 1, 2), 5, "8", (2, 2), None, (1.5,) * 3]
            ),
        ),
    },
)
function(images, "color_texture", {"images": v.images("n")})
function(
    images,
    "lab_pixels",
    {
        "images": v.images("n"),
        "dtype": Kind(
            lambda case, rng: v.pick(rng, [np.float32, float, "float64"]),
            lambda case, rng: v.pick(rng, [int, "junk", None, complex, object, 5, bool, "S3"]),
        ),
    },
)
function(
    images,
    "describe",
    {
        "images": v.images("n", size=32),
        "features": v.option("color", "texture", "words"),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
function(
    images,
    "visual_words",
    {
        "images": v.images("n", size=32),
        "n_words": v.count(2, 10),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
_SHEET = {
    "tile": v.count(4, 32),
    "gap": v.count(0, 2),
    "background": Kind(
        lambda case, rng: (0, 10, 255),
        lambda case, rng: v.pick(
            rng, [(1, 2), "red", None, (300, 0, 0), (-1, 0, 0), (np.nan,) * 3]
        ),
    ),
}
function(images, "grid_sheet", {"images": v.images("n"), "grid": v.grid("n"), **_SHEET})
function(
    images,
    "points_sheet",
    {"images": v.images("n"), "positions": v.table("n", "two", positive=True), **_SHEET},
)
function(
    images,
    "matched_sheet",
    {
        "left": v.images("n"),
        "right": v.images("n"),
        "permutation": v.permutation("n"),
        "confidence": Kind(
            lambda case, rng: np.linspace(0, 1, case.sizes["n"]), v.stack("n").hostile
        ),
        "correct": Kind(lambda case, rng: np.arange(case.sizes["n"]) > 2, v.stack("n").hostile),
        "columns": v.count(None, 2),
        "height": v.count(8, 20),
        "max_pairs": v.count(3, 100),
    },
    words={"images"},
)
_COLORS = Kind(
    lambda case, rng: (0, 10, 255),
    lambda case, rng: v.pick(
        rng, [(1, 2), "red", (300, 0, 0), None, (np.nan,) * 3, np.ones((2, 3))]
    ),
)
function(
    images,
    "morph_frames",
    {
        "points": v.stack("three", "n", "two"),
        "colors": _COLORS,
        "ground": _COLORS,
        "size": v.count(16, 40),
        "dot": v.real(None, 2.0),
    },
)


def _frames() -> list[Any]:
    from PIL import Image

    return [Image.new("RGB", (8, 8), (i * 40, 0, 0)) for i in range(3)]


_FRAMES = Kind(
    lambda case, rng: _frames(),
    lambda case, rng: v.pick(rng, [[], None, 5, "frames", [5], [None], _frames()[0]]),
    needed=True,
)
function(images, "morph_strip", {"frames": _FRAMES, "columns": v.count(None, 2)})
function(
    images,
    "save_gif",
    {
        "frames": _FRAMES,
        "path": v.output(".gif"),
        "seconds": v.real(0.5, 1.6),
        "pause": v.real(0, 0.6),
    },
)
function(
    images,
    "save_sheet",
    {
        "sheet": Kind(
            lambda case, rng: _frames()[0],
            lambda case, rng: v.pick(rng, [None, 5, np.zeros((4, 4, 3)), "sheet"]),
            needed=True,
        ),
        "path": v.output(".png", ".jpg"),
    },
)
function(
    images,
    "picture_points",
    {"path": v.path("0.png", "1.png"), "n_points": v.count(5, 50), "random_state": v.seed()},
)
function(
    images,
    "read_image",
    {
        "path": v.path("0.png", "1.png"),
        "size": needed(v.count(8, 20)),
        "fit": v.option("stretch", "crop"),
    },
)
function(
    images,
    "read_mask",
    {"path": v.path("0.png", "1.png"), "n_cells": v.count(None, 10), "invert": v.flag()},
)
function(
    images,
    "read_features",
    {"path": v.path("features.npy"), "n_items": Kind(lambda c, r: 4, v.count(1).hostile, True)},
)
function(
    images,
    "read_folder",
    {
        "folder": v.path(folder=True),
        "size": v.count(8, 20),
        "fit": v.option("stretch", "crop"),
        "recursive": v.flag(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
function(images, "visible_files", {"folder": v.path(folder=True)})
function(
    images,
    "text_mask",
    {
        "text": Kind(
            lambda case, rng: v.pick(rng, ["A", "PAMI 2009", "two\nlines"]),
            lambda case, rng: v.pick(
                rng, ["", " ", "''", "\0", "🙂", "a" * 5000, None, 5, b"A", ["A"], "\ud800", "\n"]
            ),
            needed=True,
        ),
        "n_cells": v.count(None, 50, 300),
        "height": v.count(None, 12, 30),
        "margin": v.count(0, 1, 2),
    },
)
function(
    images,
    "write_page",
    {
        "path": v.output(".html"),
        "images": v.images("n"),
        "grid": v.grid("n"),
        "names": Kind(
            lambda case, rng: [f"<b>{i}</b>" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
        "title": v.option("wall", "<script>"),
        "tile": v.count(8, 64),
    },
)
