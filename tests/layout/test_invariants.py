import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.counts import few

from unshuffle import GridLayout
from unshuffle.layout._cpu import anneal as _anneal
from unshuffle.layout._cpu import surfaces as _surfaces

seeds = st.integers(0, 10_000)
QUALITIES = ["fast", "balanced", "best", "classic"]
qualities = st.sampled_from(["fast", "balanced", "balanced", "classic"])
kinds = st.sampled_from(["rectangle", "torus", "mask", "torus mask", "points"])


def draw_shape(kind, n_items, rng):
    """A shape of the kind with room for the items, whether its edges meet, and its open cells."""
    if kind == "points":
        n_cells = n_items + int(rng.integers(0, 6))
        return rng.normal(size=(n_cells, 2)), False, np.arange(n_cells), None
    rows = int(rng.integers(1, 8))
    columns = -(-n_items // rows) + int(rng.integers(0, 3))
    if "mask" not in kind:
        return (rows, columns), kind == "torus", np.arange(rows * columns), None
    mask = np.zeros((rows + 2, columns + 1), dtype=bool)
    n_open = int(rng.integers(n_items, mask.size + 1))
    mask.ravel()[rng.permutation(mask.size)[:n_open]] = True
    return mask, kind == "torus mask", np.flatnonzero(mask), mask


@few
@given(kind=kinds, n_items=st.integers(1, 30), quality=qualities, seed=seeds)
def test_every_item_gets_one_open_cell(check_layout, kind, n_items, quality, seed):
    rng = np.random.default_rng(seed)
    shape, wrap, _, mask = draw_shape(kind, n_items, rng)
    X = rng.random((n_items, 3))
    layout = GridLayout(shape, wrap=wrap, quality=quality, random_state=seed).fit(X)
    check_layout(layout, n_items, mask)
    assert layout.n_iter_ > 0
    assert np.isfinite(layout.score_)
    arranged = layout.arrange(np.arange(n_items), fill=-1)
    assert np.array_equal(arranged, layout.grid_)


@few
@given(
    kind=kinds,
    n_items=st.integers(2, 24),
    n_free=st.sampled_from([0, 1, None]),
    quality=qualities,
    seed=seeds,
)
def test_frozen_items_stay_where_they_are_put(check_layout, kind, n_items, n_free, quality, seed):
    rng = np.random.default_rng(seed)
    shape, wrap, open_cells, mask = draw_shape(kind, n_items, rng)
    n_frozen = int(rng.integers(1, n_items)) if n_free is None else n_items - n_free
    frozen = np.column_stack(
        [rng.permutation(n_items)[:n_frozen], rng.permutation(open_cells)[:n_frozen]]
    )
    X = rng.random((n_items, 3))
    options = {"wrap": wrap, "quality": quality, "random_state": seed}
    layout = GridLayout(shape, **options).fit(X, frozen=frozen)
    check_layout(layout, n_items, mask)
    assert np.array_equal(layout.grid_.ravel()[frozen[:, 1]], frozen[:, 0])
    other = GridLayout(shape, **options).fit(X, frozen=rng.permutation(frozen).tolist())
    assert np.array_equal(layout.grid_, other.grid_)


@pytest.fixture
def small_pieces(monkeypatch):
    """Boards of a few cells are cut into tiles, pieces and regions as large ones are."""
    monkeypatch.setattr(_surfaces, "TILE", 12)
    monkeypatch.setattr(_surfaces, "PIECE", 64)
    monkeypatch.setattr(_anneal, "PIECE", 64)
    monkeypatch.setattr(_anneal, "REGION_SIDE", 10.0)


@pytest.mark.parametrize("kind", ["rectangle", "torus", "mask", "torus mask", "points"])
@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_threads_change_nothing(small_pieces, check_layout, kind, quality):
    rng = np.random.default_rng(5)
    X = rng.random((190, 10))
    shape, wrap, _, mask = draw_shape(kind, len(X), rng)
    if kind in ("rectangle", "torus"):
        shape = (37, 7)  # odd, with empty cells
    frozen = None if mask is not None else [(3, 8), (9, 100)]
    options = {"wrap": wrap, "quality": quality, "random_state": 7}
    one, two, again = (
        GridLayout(shape, n_jobs=n_jobs, **options).fit(X, frozen=frozen) for n_jobs in (1, 2, 2)
    )
    check_layout(one, len(X), mask)
    assert np.array_equal(one.grid_, two.grid_)
    assert np.array_equal(again.grid_, two.grid_)
    assert one.score_ == two.score_


def test_threads_change_nothing_in_the_papers_layout(small_pieces, colors):
    one, two = (
        GridLayout((10, 11), quality="classic", random_state=0, n_jobs=n_jobs).fit(colors(100))
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one.grid_, two.grid_)


@pytest.mark.parametrize(("shape", "wrap"), [((140, 150), False), ((131, 129), True)])
def test_threads_change_nothing_on_boards_of_several_tiles(colors, check_layout, shape, wrap):
    X = colors(shape[0] * shape[1] - 100)
    one, two = (
        GridLayout(shape, wrap=wrap, quality="fast", random_state=0, n_jobs=n_jobs).fit(X)
        for n_jobs in (1, 2)
    )
    check_layout(one, len(X))
    assert np.array_equal(one.grid_, two.grid_)


def test_threads_change_nothing_where_assignments_and_exchanges_run_in_regions(check_layout):
    X = np.random.default_rng(0).random((190 * 190, 9))
    one, two = (
        GridLayout((190, 190), quality="balanced", random_state=0, n_jobs=n_jobs).fit(X)
        for n_jobs in (1, 2)
    )
    check_layout(one, len(X))
    assert np.array_equal(one.grid_, two.grid_)


@few
@given(
    n_items=st.integers(2, 60),
    n_features=st.sampled_from([1, 3, 60]),
    quality=qualities,
    power=st.sampled_from([-40, -3, 1, 30]),
    seed=seeds,
)
def test_scaling_by_a_power_of_two_changes_nothing(n_items, n_features, quality, power, seed):
    X = np.random.default_rng(seed).normal(size=(n_items, n_features))
    plain = GridLayout(quality=quality, random_state=seed).fit(X)
    scaled = GridLayout(quality=quality, random_state=seed).fit(X * 2.0**power)
    assert np.array_equal(plain.grid_, scaled.grid_)
    assert scaled.score_ == pytest.approx(plain.score_)


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
@pytest.mark.parametrize("change", [lambda X: X + 100.0, lambda X: 0.3 * X, lambda X: X[:, ::-1]])
def test_shifting_scaling_and_reordering_features_change_the_score_by_chance_only(
    colors, quality, change
):
    # Rounding may decide between two exchanges, and all that follows.
    X = colors(400)
    scores = [
        np.mean([GridLayout(quality=quality, random_state=s).fit(Z).score_ for s in range(4)])
        for Z in (X, change(X))
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.01)


@pytest.mark.parametrize("quality", QUALITIES)
def test_inputs_and_parameters_are_left_alone(colors, quality):
    X, frozen = colors(20), np.array([[5, 3], [0, 1]])
    mask = np.random.default_rng(0).random((7, 7)) < 0.8
    mask[0, :4] = True
    random = np.random.RandomState(0)
    layout = GridLayout(mask, quality=quality, random_state=random)
    before = copy.deepcopy((X, frozen, mask))
    layout.fit(X, frozen=frozen)
    for array, old in zip((X, frozen, mask), before, strict=True):
        assert np.array_equal(array, old)
    assert layout.get_params() == {**GridLayout().get_params(), "shape": mask, "quality": quality,
                                   "random_state": random}  # fmt: skip
    layout.add(X[:2])
    assert np.array_equal(X, before[0])


def test_the_layout_keeps_its_own_shape(colors):
    mask = np.ones((4, 5), dtype=bool)
    points = np.random.default_rng(0).random((20, 2))
    for shape in (mask, points):
        layout = GridLayout(shape, random_state=0).fit(colors(15))
        positions = layout.positions_.copy()
        shape[:] = 0
        layout.add(colors(5, seed=1))
        assert np.array_equal(layout.positions_[:15], positions)
        assert len(layout.positions_) == 20


def test_a_second_fit_forgets_the_first(colors):
    layout = GridLayout(random_state=0).fit(colors(30))
    first = layout.score_
    layout.fit(colors(50, seed=1))
    assert layout.grid_.size >= 50
    fresh = GridLayout(random_state=0).fit(colors(50, seed=1))
    assert layout.score_ == fresh.score_ != first
    assert np.array_equal(layout.grid_, fresh.grid_)
    layout.add(colors(layout.grid_.size - 50, seed=2))
    assert layout.score_ != fresh.score_


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_same_seed_gives_the_same_layout_and_others_do_not(colors, quality):
    X = colors(60)
    fits = [GridLayout(quality=quality, random_state=seed).fit(X).grid_ for seed in (4, 4, 5)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_a_random_state_goes_on_from_fit_to_fit(colors):
    X = colors(60)
    random = np.random.RandomState(0)
    layout = GridLayout(random_state=random)
    first, second = layout.fit(X).grid_.copy(), layout.fit(X).grid_.copy()
    assert not np.array_equal(first, second)
    again = GridLayout(random_state=np.random.RandomState(0))
    assert np.array_equal(again.fit(X).grid_, first)
    assert np.array_equal(again.fit(X).grid_, second)


@pytest.mark.parametrize("shape", [(6, 6), np.ones((6, 6), dtype=bool), np.eye(40)[:, :2]])
def test_copies_and_pickles_go_on_as_the_original(colors, shape):
    X = colors(30)
    layout = GridLayout(shape, random_state=0).fit(X)
    for other in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
        assert np.array_equal(other.grid_, layout.grid_)
        assert other.score_ == layout.score_
        assert np.array_equal(other.add(X[:3]).grid_, copy.deepcopy(layout).add(X[:3]).grid_)
    blank = clone(layout)
    assert not hasattr(blank, "grid_")
    assert not hasattr(blank, "score_")
    assert np.array_equal(blank.fit(X).grid_, layout.grid_)


@few
@given(n_items=st.integers(1, 500))
def test_without_a_shape_the_rectangle_is_no_wider_than_a_screen_and_nearly_full(n_items):
    layout = GridLayout(quality="fast", callback=lambda _: True).fit(np.zeros((n_items, 1)))
    rows, columns = layout.grid_.shape
    assert n_items <= rows * columns < n_items + columns
    assert rows <= columns <= 16 / 9 * rows + 1
