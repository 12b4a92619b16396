"""Layouts, collages and summaries."""

from functools import cache
from typing import Any

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import VECTOR_KERNELS, add, eight_rows, estimator, function, method, saved
from tests.fuzz.values import Kind, needed

from unshuffle import layout


def _check_layout(result: Any, arguments: dict[str, Any]) -> str | None:
    placed = result.grid_[result.grid_ >= 0]
    n_items = len(result.positions_)
    if not (np.sort(placed, axis=None) == np.arange(n_items)).all():
        return f"grid_ does not hold every item once: {result.grid_}"
    if not result.score_ <= 1 + 1e-9:
        return f"score_ is {result.score_}"
    return None


def _shape() -> Kind:
    def ordinary(case: Any, rng: Any) -> Any:
        n_items = case.sizes["n"]
        return v.pick(
            rng,
            [
                None,
                (2, n_items),
                np.ones((3, n_items), dtype=bool),
                v.numbers(np.random.default_rng(case.seed), (n_items + 1, 2)),
            ],
        )

    def hostile(case: Any, rng: Any) -> Any:
        odd = [
            (0, 5),
            (-1, 4),
            (10**9, 10**9),
            (1, 1),
            (2.5, 3),
            ("a", 3),
            (1, 2, 3),
            "3x4",
            5,
            [],
        ]
        odd += [np.zeros((3, 3), dtype=bool), np.full((20, 2), np.nan), (np.int8(100), np.int8(2))]
        odd += [np.zeros((20, 2)), np.ones((20, 3)), (True, 20), (np.nan, 3), {}, object()]
        return v.pick(rng, odd)

    return Kind(ordinary, hostile)


def _start() -> Kind:
    """A layout on the cells of the default shape, with some items left out."""

    def ordinary(case: Any, rng: Any) -> Any:
        n_items = case.sizes["n"]
        shape = layout.rectangle_for(n_items)
        cells = np.full(shape[0] * shape[1], -1)
        n_placed = n_items - int(rng.integers(0, 2))
        cells[rng.permutation(cells.size)[:n_placed]] = rng.permutation(n_items)[:n_placed]
        return cells.reshape(shape)

    return Kind(ordinary, files.grid("n").hostile)


def _check_look_alikes(result: Any, arguments: dict[str, Any]) -> str | None:
    n_items = len(result)
    own = np.arange(n_items)[:, None]
    rows = np.sort(np.hstack([result, own]), axis=1)
    if rows.min() < 0 or rows.max() >= n_items or (np.diff(rows, axis=1) == 0).any():
        return f"an item is its own neighbor, or repeated: {result}"
    return None


estimator(
    "layout.GridLayout",
    {"X": v.table("n", "d"), "frozen": v.pairs("n", "n"), "start": _start()},
    {
        "shape": _shape(),
        "wrap": s.flag(),
        "kernel": s.kernel(*VECTOR_KERNELS, None, several=True),
        "quality": s.option("fast", "balanced", "best", "classic"),
        "gamma": s.real(None, 0.5),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "callback": s.callback(),
        "device": s.option(None, "cpu"),
    },
    check=_check_layout,
)


@cache
def _layout() -> Any:
    X = v.numbers(np.random.default_rng(0), (8, 3))
    return layout.GridLayout((3, 5), random_state=0).fit(X)


method("layout.GridLayout.add", _layout, {"X": eight_rows(v.table("three", "d"))})
method(
    "layout.GridLayout.arrange",
    _layout,
    {"values": eight_rows(v.table("n", "d")), "fill": s.real(None, 0)},
    gaps={""},
)


def template() -> Kind:
    def draw(case: Any, rng: Any) -> Any:
        return rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)

    return Kind(draw, lambda case, rng: v.spoiled(draw(case, rng).astype(float), rng), needed=True)


estimator(
    "layout.Collage",
    {"X": files.images("n", size=4)},
    {
        "template": template(),
        "shape": Kind(lambda case, rng: v.pick(rng, [None, (2, 2), (3, 4)]), _shape().hostile),
        "smoothness": s.real(0, 0.3, 1),
        "repeat": s.count(None, 1, 5),
        "detail": s.count(1, 3),
        "neighbors": s.option("kernel", "laplacian"),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "callback": s.callback(),
    },
    words={"tiles"},
)


@cache
def _collage() -> Any:
    rng = np.random.default_rng(0)
    template = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    tiles = rng.integers(0, 256, (8, 4, 4, 3), dtype=np.uint8)
    return layout.Collage(template, (2, 2), random_state=0).fit(tiles)


method(
    "layout.Collage.render",
    _collage,
    {"X": eight_rows(files.images("n", size=6))},
    words={"tiles", "images"},
)
add(
    "layout.Positions",
    layout.Positions,
    {
        "grid": files.grid("n"),
        "names": Kind(
            lambda case, rng: [f"x{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
    },
)


@cache
def _positions() -> Any:
    return layout.Positions(_layout().grid_, [f"item {i}" for i in range(8)])


add(
    "layout.Positions.save",
    lambda path: saved(_positions(), path),
    {"path": files.output(".csv", ".json")},
)
add("layout.Positions.load", layout.Positions.load, {"path": files.path("notes.txt")})
for _name in ("choose_representatives", "summarize"):
    function(
        layout,
        _name,
        {
            "X": v.table("n", "d"),
            "k": needed(s.count(1, 2, 3)),
            "kernel": s.kernel("linear", "rbf"),
            "gamma": s.real(None, 0.5),
            "random_state": s.seed(),
        },
    )
function(
    layout,
    "look_alikes",
    {
        "X": v.table("n", "d"),
        "k": s.count(1, 2, 8),
        "kernel": s.kernel(*VECTOR_KERNELS, several=True),
        "gamma": s.real(None, 0.5),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "on_progress": s.callback(),
    },
    check=_check_look_alikes,
)


def _vectors() -> Kind:
    def draw(case: Any, rng: Any) -> Any:
        return v.numbers(rng, (2, 3, 4))

    return Kind(draw, lambda case, rng: v.spoiled(draw(case, rng), rng), needed=True)


function(
    layout,
    "sort_grid",
    {
        "grid": _vectors(),
        "quality": s.option("fast", "balanced", "best"),
        "wrap": s.flag(),
        "random_state": s.seed(),
        "device": s.option(None, "cpu"),
    },
)
function(layout, "rectangle_for", {"n_items": needed(s.count(1, 7, 100))})
