"""Data sets and pictures."""

from typing import Any

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import function
from tests.fuzz.values import Kind, needed

from unshuffle import datasets, encoders, images

function(
    datasets,
    "digit_sets",
    {
        "n": s.count(2, 10),
        "digits": Kind(lambda case, rng: (3, 9), v.permutation("n").hostile),
        "n_points": s.count(5, 20),
        "random_state": s.seed(),
    },
)
function(datasets, "digits_views", {"n": s.count(2, 20), "random_state": s.seed()})
function(datasets, "sample_digits", {"n": s.count(2, 20), "random_state": s.seed()})
function(
    datasets,
    "photo_halves",
    {
        "n": s.count(2, 10),
        "size": s.count(8, 16),
        "light": s.real(0.5, 1.0),
        "random_state": s.seed(),
    },
)
function(
    datasets, "grid_points", {"rows": needed(s.count(1, 5)), "columns": needed(s.count(1, 5))}
)
function(
    datasets,
    "make_paired_views",
    {
        "n": s.count(2, 20),
        "n_latent": s.count(1, 5),
        "n_features": Kind(lambda case, rng: (3, 4), v.permutation("two").hostile),
        "noise": s.real(0, 0.1),
        "bend": s.real(0, 0.5),
        "random_state": s.seed(),
    },
)
function(
    datasets,
    "mixture_sets",
    {
        "n": s.count(4, 8),
        "n_classes": s.count(1, 2),
        "n_components": s.count(1, 2),
        "n_features": s.count(1, 2),
        "least_points": s.count(3, 5),
        "most_points": s.count(5, 9),
        "difference": s.real(0.03, 1.0),
        "random_state": s.seed(),
    },
)

function(images, "rgb_to_lab", {"rgb": files.images("n")})
function(
    images,
    "color_histogram",
    {
        "images": files.images("n"),
        "bins": Kind(
            lambda case, rng: (2, 3, 4),
            lambda case, rng: v.pick(
                rng, [(1000,) * 3, (0, 1, 2), 5, "8", (2, 2), None, (1.5,) * 3]
            ),
        ),
    },
)
function(images, "color_texture", {"images": files.images("n")})
function(
    images,
    "lab_pixels",
    {
        "images": files.images("n"),
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
        "images": files.images("n", size=32),
        "features": s.option("color", "texture", "words", "color+words"),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "on_progress": s.callback(),
    },
)
function(
    images,
    "visual_words",
    {
        "images": files.images("n", size=32),
        "n_words": s.count(2, 10),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "on_progress": s.callback(),
    },
)
_SHEET = {
    "tile": s.count(4, 32),
    "gap": s.count(0, 2),
    "background": Kind(
        lambda case, rng: (0, 10, 255),
        lambda case, rng: v.pick(
            rng, [(1, 2), "red", None, (300, 0, 0), (-1, 0, 0), (np.nan,) * 3]
        ),
    ),
}
function(images, "grid_sheet", {"images": files.images("n"), "grid": files.grid("n"), **_SHEET})
function(
    images,
    "points_sheet",
    {"images": files.images("n"), "positions": v.table("n", "two", positive=True), **_SHEET},
)
function(
    images,
    "matched_sheet",
    {
        "left": files.images("n"),
        "right": files.images("n"),
        "permutation": v.permutation("n"),
        "confidence": Kind(
            lambda case, rng: np.linspace(0, 1, case.sizes["n"]), v.stack("n").hostile
        ),
        "correct": Kind(lambda case, rng: np.arange(case.sizes["n"]) > 2, v.stack("n").hostile),
        "columns": s.count(None, 2),
        "height": s.count(8, 20),
        "max_pairs": s.count(3, 100),
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
        "size": s.count(16, 40),
        "dot": s.real(None, 2.0),
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
function(images, "morph_strip", {"frames": _FRAMES, "columns": s.count(None, 2)})
function(
    images,
    "save_gif",
    {
        "frames": _FRAMES,
        "path": files.output(".gif"),
        "seconds": s.real(0.5, 1.6),
        "pause": s.real(0, 0.6),
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
        "path": files.output(".png", ".jpg"),
    },
)
function(
    images,
    "picture_points",
    {"path": files.path("0.png", "1.png"), "n_points": s.count(5, 50), "random_state": s.seed()},
)
function(
    images,
    "read_image",
    {
        "path": files.path("0.png", "1.png"),
        "size": needed(s.count(8, 20)),
        "fit": s.option("stretch", "crop"),
    },
)
function(
    images,
    "read_mask",
    {"path": files.path("0.png", "1.png"), "n_cells": s.count(None, 10), "invert": s.flag()},
)
function(
    images,
    "read_features",
    {
        "path": files.path("features.npy"),
        "n_items": Kind(lambda c, r: 4, s.count(1).hostile, True),
    },
)
function(
    images,
    "read_folder",
    {
        "folder": files.path(folder=True),
        "size": s.count(8, 20),
        "fit": s.option("stretch", "crop"),
        "recursive": s.flag(),
        "previews": s.count(None, 8, 64),
        "n_jobs": s.jobs(),
        "on_progress": s.callback(),
    },
)
function(images, "visible_files", {"folder": files.path(folder=True)})
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
        "n_cells": s.count(None, 50, 300),
        "height": s.count(None, 12, 30),
        "margin": s.count(0, 1, 2),
    },
)
function(images, "text_tiles", {"texts": v.texts("n"), "side": s.count(16, 64)})
function(
    images,
    "write_page",
    {
        "path": files.output(".html"),
        "images": files.images("n"),
        "grid": files.grid("n"),
        "names": Kind(
            lambda case, rng: [f"<b>{i}</b>" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
        "title": s.option("wall", "<script>"),
        "tile": s.count(8, 64),
    },
)
function(
    encoders,
    "is_encoder",
    {
        "name": Kind(
            lambda case, rng: v.pick(rng, ["content", "timm:x", "a.onnx", "color"]),
            lambda case, rng: v.pick(rng, ["", ":", "\0.onnx", "\ud800", None, 5, b"content", []]),
            needed=True,
        )
    },
)
