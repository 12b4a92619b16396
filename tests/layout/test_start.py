"""Layouts that start from an existing one and change it little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import few
from tests.layout.test_invariants import draw_shape, kinds, seeds
from tests.layout.test_progress import interrupt_at

from unshuffle import GridLayout
from unshuffle._run.device import to_host
from unshuffle.images import lab_pixels
from unshuffle.layout._cpu.start import make_way
from unshuffle.metrics import distance_preservation_quality

QUALITIES = ["fast", "balanced", "best", "classic"]


def swapped(grid, item, cell):
    """The grid after two items changed places, one of them into this cell."""
    result = grid.copy().ravel()
    old = np.flatnonzero(result == item)[0]
    result[[old, cell]] = result[[cell, old]]
    return result.reshape(grid.shape)


def likeness_around(X, grid, item, cell, *, wrap=False, radius=2.0):
    """Mean rank, from 0 to 1, of the items around a cell by distance from this item."""
    rank = np.linalg.norm(X - X[item], axis=1).argsort().argsort() / len(X)
    total = 0.0
    for axis, (at, length) in enumerate(zip(divmod(cell, grid.shape[1]), grid.shape, strict=True)):
        apart = np.abs(np.arange(length) - at)
        if wrap:
            apart = np.minimum(apart, length - apart)
        total = total + (apart**2)[(slice(None), None) if axis == 0 else (None, slice(None))]
    near = (total <= radius**2) & (total > 0)
    return rank[grid[near]].mean()


def share_moved(before, after):
    held = before >= 0
    return np.mean(before[held] != after[held])


@few
@given(
    kind=kinds,
    n_items=st.integers(1, 30),
    quality=st.sampled_from(QUALITIES),
    n_missing=st.sampled_from([0, 0, 1, 5, 30]),
    n_frozen=st.sampled_from([0, 1, 4, 30]),
    seed=seeds,
)
def test_every_item_gets_one_open_cell_and_frozen_ones_theirs(
    check_layout, kind, n_items, quality, n_missing, n_frozen, seed
):
    rng = np.random.default_rng(seed)
    shape, wrap, open_cells, mask = draw_shape(kind, n_items, rng)
    blank = GridLayout(shape, wrap=wrap, quality="fast", callback=lambda _: True)
    start = np.full_like(blank.fit(np.zeros((n_items, 1))).grid_, -1)
    placed = rng.permutation(n_items)[n_missing:]
    start.ravel()[rng.permutation(open_cells)[: placed.size]] = placed
    n_frozen = min(n_frozen, n_items)
    frozen = np.column_stack(
        [rng.permutation(n_items)[:n_frozen], rng.permutation(open_cells)[:n_frozen]]
    )
    X, given_start = rng.random((n_items, 3)), start.copy()
    fits = []
    for more in (frozen, rng.permutation(frozen)):
        layout = GridLayout(shape, wrap=wrap, quality=quality, random_state=seed)
        fits.append(layout.fit(X, frozen=more, start=start))
        check_layout(layout, n_items, mask)
        assert np.array_equal(layout.grid_.ravel()[frozen[:, 1]], frozen[:, 0])
        assert layout.n_iter_ > 0
        assert np.isfinite(layout.score_)
    assert np.array_equal(fits[0].grid_, fits[1].grid_)
    assert np.array_equal(start, given_start)


def test_frozen_items_change_places_with_those_in_their_cells():
    start = np.array([0, 1, 2, 3, -1])
    assert make_way(start, np.array([[1, 1]]), 4).tolist() == [0, 1, 2, 3, -1]
    assert make_way(start, np.array([[0, 3]]), 4).tolist() == [3, 1, 2, 0, -1]
    assert make_way(start, np.array([[0, 4]]), 4).tolist() == [-1, 1, 2, 3, 0]
    cycle = np.array([[0, 1], [1, 2], [2, 0]])
    assert make_way(start, cycle, 4).tolist() == [2, 0, 1, 3, -1]
    chain = np.array([[0, 1], [1, 2]])
    assert make_way(start, chain, 4).tolist() == [2, 0, 1, 3, -1]
    # the fifth item is new, so that the one in its cell has to look for another
    assert make_way(start, np.array([[4, 2]]), 5).tolist() == [0, 1, 4, 3, -1]
    assert start.tolist() == [0, 1, 2, 3, -1]


@few
@given(n_cells=st.integers(1, 12), n_placed=st.integers(0, 12), seed=seeds)
def test_a_displaced_item_is_lost_only_to_a_new_item(n_cells, n_placed, seed):
    rng = np.random.default_rng(seed)
    start = np.full(n_cells, -1)
    placed = rng.permutation(n_cells)[:n_placed]
    start[rng.permutation(n_cells)[: placed.size]] = placed
    n_frozen = int(rng.integers(0, n_cells + 1))
    frozen = np.column_stack([rng.permutation(n_cells)[:n_frozen] for _ in range(2)])
    after = make_way(start, frozen, n_cells)
    assert np.array_equal(after[frozen[:, 1]], frozen[:, 0])
    items = after[after >= 0]
    assert len(np.unique(items)) == len(items)
    assert len(items) >= placed.size
    lost = np.setdiff1d(placed, items)
    assert lost.size <= np.setdiff1d(frozen[:, 0], placed).size


@pytest.mark.parametrize(("quality", "most"), [("fast", 0.25), ("balanced", 0.12), ("best", 0.06)])
def test_a_good_layout_hardly_changes(quality, most):
    moved, gained = [], []
    for seed in range(5):
        X = np.random.default_rng(seed).random((400, 3))
        layout = GridLayout((20, 20), quality=quality, random_state=0).fit(X)
        grid, score = layout.grid_.copy(), layout.score_
        layout.set_params(random_state=1).fit(X, start=grid)
        moved.append(share_moved(grid, layout.grid_))
        gained.append(layout.score_ - score)
    assert np.mean(moved) < most
    assert np.mean(gained) > -0.001
    assert min(gained) > -0.005


def test_a_random_start_gets_better_but_not_as_good_as_a_new_layout(colors):
    X, grid = colors(400), np.random.default_rng(0).permutation(400).reshape(20, 20)
    random = distance_preservation_quality(X, grid)
    settled = GridLayout((20, 20), random_state=0).fit(X, start=grid).score_
    assert random + 0.2 < settled < GridLayout((20, 20), random_state=0).fit(X).score_


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_similar_items_gather_around_one_that_was_moved(colors, quality, wrap):
    X = colors(400)
    options = {"shape": (20, 20), "wrap": wrap, "quality": quality}
    grid = GridLayout(**options, random_state=0).fit(X).grid_
    before, after = [], []
    for item, cell in ((0, 0), (100, 390), (200, 210), (300, 19)):
        moved = GridLayout(**options, random_state=0).fit(X, frozen=[(item, cell)], start=grid)
        before.append(likeness_around(X, swapped(grid, item, cell), item, cell, wrap=wrap))
        after.append(likeness_around(X, moved.grid_, item, cell, wrap=wrap))
    assert np.mean(after) < 0.7 * np.mean(before)


def test_each_of_several_frozen_items_gathers_similar_ones(colors):
    X = colors(400)
    grid = GridLayout((20, 20), random_state=0).fit(X).grid_
    rng = np.random.default_rng(3)
    frozen = np.column_stack([rng.permutation(400)[:8], rng.permutation(400)[:8]])
    after = GridLayout((20, 20), random_state=0).fit(X, frozen=frozen, start=grid).grid_
    start = make_way(grid.ravel(), frozen, 400).reshape(20, 20)
    ranks = [
        np.mean([likeness_around(X, each, *pair, radius=1.5) for pair in frozen])
        for each in (start, after)
    ]
    assert ranks[1] < 0.7 * ranks[0]


@pytest.mark.parametrize("n_old", [0, 1, 60, 99])
@pytest.mark.parametrize("shape", [(10, 10), (12, 10)])
def test_new_items_find_cells_and_most_others_stay(colors, check_layout, n_old, shape):
    X = colors(100)
    grid = np.full(shape, -1)
    if n_old:
        grid = GridLayout(shape, random_state=0).fit(X[:n_old]).grid_
    layout = GridLayout(shape, random_state=0).fit(X, start=grid)
    check_layout(layout, 100)
    score = GridLayout(shape, random_state=0).fit(X).score_
    assert layout.score_ > score - 0.06
    if n_old == 99:
        assert share_moved(grid, layout.grid_) < 0.4


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", ["linear", "rbf"]])
def test_any_kernel(colors, check_layout, kernel):
    X = colors(48)
    given_items = X @ X.T if kernel == "precomputed" else X
    layout = GridLayout((6, 9), kernel=kernel, random_state=0).fit(given_items)
    grid = layout.grid_.copy()
    layout.fit(given_items, frozen=[(7, 0)], start=grid)
    check_layout(layout, 48)
    assert layout.grid_[0, 0] == 7
    assert share_moved(grid, layout.grid_) < 0.9


def test_points_settle(check_layout):
    points = np.random.default_rng(0).random((300, 2))
    X = np.random.default_rng(1).random((280, 3))
    layout = GridLayout(points, random_state=0).fit(X)
    grid, score = layout.grid_.copy(), layout.score_
    layout.fit(X, frozen=[(3, 8)], start=grid)
    check_layout(layout, 280)
    assert layout.grid_[8] == 3
    assert share_moved(grid, layout.grid_) < 0.6
    assert layout.score_ > score - 0.02


@pytest.mark.parametrize("quality", ["fast", "balanced"])
@pytest.mark.parametrize("n_old", [5900, 6000])
def test_threads_change_nothing(quality, n_old):
    X = np.random.default_rng(0).random((6000, 9))
    start = np.full((200, 200), -1)
    start.ravel()[np.random.default_rng(1).permutation(40_000)[:n_old]] = np.arange(n_old)
    one, two = (
        GridLayout(start.shape, quality=quality, random_state=0, n_jobs=n_jobs)
        .fit(X, frozen=[(1, 5)], start=start)
        .grid_
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one, two)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_old", [30, 36])
def test_the_callback_sees_every_step_to_the_end(colors, quality, n_old):
    X, states = colors(36), []
    start = np.append(np.arange(n_old), np.full(42 - n_old, -1)).reshape(6, 7)
    options = {"quality": quality, "random_state": 0}
    layout = GridLayout((6, 7), callback=states.append, **options)
    layout.fit(X, frozen=[(4, 0)], start=start)
    assert [state.iteration for state in states] == list(range(1, layout.n_iter_ + 1))
    fractions = [state.fraction for state in states]
    assert 0 < fractions[0] < 0.5
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
    for state in states:
        assert len(np.unique(state.permutation)) == 36
        assert state.permutation[4] == 0
    unwatched = GridLayout((6, 7), **options).fit(X, frozen=[(4, 0)], start=start)
    assert np.array_equal(unwatched.grid_, layout.grid_)
    assert unwatched.n_iter_ == layout.n_iter_


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_where_nothing_may_move_one_step_says_so(colors, quality):
    states = []
    layout = GridLayout((2, 3), quality=quality, callback=states.append)
    frozen = np.column_stack([np.arange(6), np.arange(6)[::-1]])
    layout.fit(colors(6), frozen=frozen, start=np.arange(6).reshape(2, 3))
    assert [(state.iteration, state.fraction) for state in states] == [(1, 1.0)]
    assert layout.grid_.ravel().tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_old", [30, 36])
def test_stopping_at_once_leaves_a_whole_layout(colors, check_layout, quality, n_old):
    start = np.append(np.arange(n_old), np.full(42 - n_old, -1)).reshape(6, 7)
    layout = GridLayout((6, 7), quality=quality, callback=lambda _: True)
    layout.fit(colors(36), frozen=[(4, 0)], start=start)
    check_layout(layout, 36)
    assert layout.n_iter_ == 1
    assert layout.grid_[0, 0] == 4
    if n_old < 36:  # only the new ones have moved
        assert np.array_equal(layout.grid_.ravel()[5:n_old], np.arange(5, n_old))


@pytest.mark.parametrize(
    ("quality", "stage", "n_old"),
    [("fast", "swapping", 36), ("balanced", "assigning", 36), ("best", "exchanging", 36),
     ("classic", "climbing", 36), ("balanced", "swapping", 30)],
)  # fmt: skip
def test_an_interrupt_keeps_the_layout(colors, check_layout, quality, stage, n_old):
    start = np.append(np.arange(n_old), np.full(42 - n_old, -1)).reshape(6, 7)
    layout = GridLayout((6, 7), quality=quality, callback=interrupt_at(stage))
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(36), frozen=[(4, 0)], start=start)
    check_layout(layout, 36)
    assert layout.grid_[0, 0] == 4


def test_an_interrupt_before_the_first_step_keeps_the_start(colors, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unshuffle.layout._cpu.anneal.anneal", interrupt)
    start = np.append(np.arange(36), np.full(6, -1)).reshape(6, 7)
    layout = GridLayout((6, 7))
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(36), frozen=[(4, 0)], start=start)
    assert np.array_equal(layout.grid_, swapped(start, 4, 0))


X6 = np.random.default_rng(0).random((6, 3))
HOLE = np.ones((3, 4), dtype=bool)
HOLE[1, 2] = False
GOOD = np.append(np.arange(6), np.full(6, -1)).reshape(3, 4)
BAD = {
    "turned": (GOOD.T, {}, r"must have the shape of the layout, \(3, 4\), got \(4, 3\). Give the"),
    "flat": (GOOD.ravel(), {}, r"must have the shape of the layout, \(3, 4\), got \(12,\)"),
    "number": (3, {}, r"must have the shape of the layout, \(3, 4\), got \(\)"),
    "ragged": ([[0, 1], [2]], {}, "`start`"),
    "positions": (np.zeros((6, 2), dtype=int), {}, r"\(3, 4\), got \(6, 2\). Give the item in"),
    "floats": (GOOD + 0.0, {}, "must hold whole numbers, got dtype float64. Give the item in ea"),
    "flags": (GOOD > 0, {}, "must hold whole numbers, got dtype bool"),
    "words": (GOOD.astype(str), {}, "`start` must hold whole numbers, got dtype <U21"),
    "item too large": (
        np.where(GOOD == 5, 6, GOOD),
        {},
        r"names item 6 of X in cell 5 \(row 1, column 1\), but X has 6 items. Use items from 0 t",
    ),
    "below -1": (GOOD - 1, {}, r"names item -2 of X in cell 6 \(row 1, column 2\), but X has 6"),
    "item twice": (
        np.where(GOOD == 5, 2, GOOD),
        {},
        r"repeats item 2 of X, in cell 2 \(row 0, column 2\) and cell 5 \(row 1, column 1\). Each",
    ),
    "outside the mask": (
        np.roll(GOOD, 1),
        {"shape": HOLE},
        r"puts item 5 into cell 6 \(row 1, column 2\), which is outside the mask. Set cells to -1",
    ),
    "points": (
        [0, 1, 2, 3, 4, 4, -1, -1],
        {"shape": np.random.default_rng(0).random((8, 2))},
        "repeats item 4 of X, in cell 4 and cell 5. Each item has one cell",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_starts_that_are_no_layout_are_refused(name):
    start, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        GridLayout(**{"shape": (3, 4), **options}).fit(X6, start=start)


def test_lists_and_small_integers_are_taken(check_layout):
    fits = [
        GridLayout((3, 4), random_state=0).fit(X6, start=start)
        for start in (GOOD, GOOD.tolist(), GOOD.astype(np.int8), np.asfortranarray(GOOD))
    ]
    for layout in fits:
        check_layout(layout, 6)
        assert np.array_equal(layout.grid_, fits[0].grid_)


def test_without_a_shape_the_start_must_fit_the_rectangle_that_is_chosen():
    layout = GridLayout(random_state=0).fit(X6)
    layout.fit(X6, start=layout.grid_)
    with pytest.raises(ValueError, match=r"shape of the layout, \(2, 3\), got \(3, 4\)"):
        layout.fit(X6, start=GOOD)


@pytest.fixture(scope="module")
def photos(shared_data):
    with np.load(shared_data("flickr320.npz")) as data:
        return lab_pixels(data["images"]), (16, 20)


@pytest.fixture(scope="module")
def objects(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        return lab_pixels(data["images"]), (25, 40)


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["photos", "objects"])
@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_photos_settle_around_one_that_was_dragged(request, collection, quality):
    X, shape = request.getfixturevalue(collection)
    grid = GridLayout(shape, quality=quality, random_state=0).fit(X).grid_
    rng, found = np.random.default_rng(1), []
    for _ in range(5):
        item, cell = (int(each) for each in rng.integers(len(X), size=2))
        dragged = swapped(grid, item, cell)
        layout = GridLayout(shape, quality=quality, random_state=0)
        layout.fit(X, frozen=[(item, cell)], start=dragged)
        for each in (dragged, layout.grid_):
            found.append(distance_preservation_quality(X, each))
            found.append(likeness_around(X, each, item, cell))
        found.append(share_moved(dragged, layout.grid_))
    score, rank, settled_score, settled_rank, moved = np.mean(np.reshape(found, (5, 5)), axis=0)
    assert settled_score > score - 0.004
    assert settled_rank < 0.7 * rank
    assert moved < {"fast": 0.6, "balanced": 0.35, "best": 0.25}[quality]


@pytest.mark.parametrize("n_features", [3, 20])
@pytest.mark.parametrize("n_old", [130, 150])
def test_layouts_on_a_gpu_settle_too(gpu, check_layout, n_features, n_old):
    torch = pytest.importorskip("torch")
    mask = np.ones((13, 14), dtype=bool)
    mask[4:7, 5:8] = False
    X = np.random.default_rng(0).random((150, n_features))
    options = {"quality": "fast", "random_state": 0, "device": gpu}
    first = GridLayout(mask, **options).fit(X[:n_old])
    grid, score = first.grid_.copy(), first.score_
    states = []
    for items in (X, torch.as_tensor(X)):
        layout = GridLayout(mask, callback=states.append, **options)
        layout.fit(items, frozen=[(7, 0)], start=grid)
        after = np.array(to_host(layout.grid_))
        assert np.array_equal(np.sort(after[after >= 0]), np.arange(150))
        assert after[0, 0] == 7
        assert (after[~mask] == -1).all()
    assert states[-1].fraction == pytest.approx(1.0)
    again = GridLayout(mask, **options).fit(X, start=layout.grid_)
    check_layout(again, 150, mask)
    assert share_moved(after, again.grid_) < 0.8
    assert again.score_ > score - 0.1
