"""Compiled loops against slow references, and against what they promise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linear_sum_assignment
from tests.counts import many

from unshuffle._run.parallel import Workers
from unshuffle.layout._cpu import surfaces as _surfaces
from unshuffle.layout._cpu.anneal import GROUP, draw_groups
from unshuffle.layout._cpu.group_loops import assign_groups, exchange_neighbors
from unshuffle.layout._cpu.surface_loops import NOISE_OFFSETS, swap_passes
from unshuffle.layout._cpu.surfaces import LONGEST_SHIFT, OWN_SHARE, Passes, Raster, Scatter

sides = st.integers(1, 13)
seeds = st.integers(0, 10_000)
ONE = Workers(1)


def smoothed(planes, bandwidth, wrap):
    """Gaussian average cut off at three bandwidths, by SciPy."""
    mode, reach = ("wrap" if wrap else "reflect"), int(np.ceil(3 * bandwidth))
    for axis in (1, 2):
        planes = gaussian_filter1d(planes, bandwidth, axis=axis, mode=mode, radius=reach)
    return planes


@pytest.fixture
def long_sides(monkeypatch):
    """Small boards are averaged as large ones are, by compiled loops."""
    monkeypatch.setattr(_surfaces, "SMALL_SIDE", 0)


@pytest.mark.parametrize("small_side", [0, 64])
@given(rows=sides, columns=sides, bandwidth=st.floats(0.5, 3.9), wrap=st.booleans(), seed=seeds)
def test_averages_of_every_cell_equal_a_gaussian_filter(
    small_side, rows, columns, bandwidth, wrap, seed
):
    planes = np.random.default_rng(seed).normal(size=(3, rows, columns)).astype(np.float32)
    surface = Raster(rows, columns, wrap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_surfaces, "SMALL_SIDE", small_side)
        found = surface.average(planes.reshape(3, -1), bandwidth, ONE).reshape(planes.shape)
    expected = smoothed(planes.astype(float), bandwidth, wrap)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("bandwidth", [4.0, 6.5, 12.0, 24.0])
@pytest.mark.usefixtures("long_sides")
def test_averages_sampled_coarsely_stay_within_a_tenth_of_how_they_vary(wrap, bandwidth):
    planes = np.random.default_rng(0).normal(size=(2, 64, 47)).astype(np.float32)
    surface = Raster(64, 47, wrap)
    found = surface.average(planes.reshape(2, -1), bandwidth, ONE).reshape(planes.shape)
    expected = smoothed(planes.astype(float), bandwidth, wrap)
    error = np.sqrt(np.mean((found - expected) ** 2))
    assert error < 0.1 * np.std(expected)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("bandwidth", [0.8, 4.0, 30.0])
@pytest.mark.usefixtures("long_sides")
def test_averages_of_a_constant_are_that_constant(wrap, bandwidth):
    surface = Raster(33, 5, wrap)
    found = surface.average(np.full((1, 165), 2.5, dtype=np.float32), bandwidth, ONE)
    np.testing.assert_allclose(found, 2.5, rtol=1e-5)


@pytest.mark.usefixtures("long_sides")
def test_averages_do_not_depend_on_how_the_work_is_split(monkeypatch):
    planes = np.random.default_rng(0).normal(size=(2, 40 * 30)).astype(np.float32)
    surface = Raster(40, 30, wrap=False)
    whole = [surface.average(planes, bandwidth, ONE) for bandwidth in (1.0, 9.0)]
    monkeypatch.setattr(_surfaces, "PIECE", 100)
    with Workers(2) as two:
        parts = [surface.average(planes, bandwidth, two) for bandwidth in (1.0, 9.0)]
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("wrap", [False, True])
def test_averages_over_a_short_side_take_cells_together(wrap):
    planes = np.random.default_rng(0).normal(size=(2, 3, 4000)).astype(np.float32)
    surface = Raster(3, 4000, wrap)
    found = surface.average(planes.reshape(2, -1), 1500.0, ONE).reshape(planes.shape)
    index, weights = _surfaces.gaussian_taps(3, 1500.0, 1, wrap)
    assert index.shape[1] > _surfaces.MANY_TAPS  # 9,003 taps for three cells
    sums = _surfaces._sum_taps(index, weights, 3)
    np.testing.assert_allclose(sums, np.bincount(index[0], weights[0], 3)[None], rtol=1e-4)
    expected = smoothed(planes.mean(axis=1, keepdims=True).astype(float), 1500.0, wrap)
    np.testing.assert_allclose(found, np.repeat(expected, 3, axis=1), atol=2e-3)


@pytest.mark.parametrize("shape", [(1, 1_000_000), (1_000_000, 1), (3, 40_000)])
def test_long_thin_boards_are_cut_into_few_parts_that_hold_each_cell_once(shape):
    surface = Raster(*shape, wrap=False)
    n_strides = -(-max(shape) // _surfaces.TILE)
    tiles = list(surface._swap_tiles(n_strides, np.random.default_rng(0)))
    assert len(tiles) <= 3 * surface.n_cells / _surfaces.TILE + 3
    assert sum(rows * columns for _, _, rows, columns, _ in tiles) == surface.n_cells
    assert min(min(rows, columns) for _, _, rows, columns, _ in tiles) > 0


@given(n_points=st.integers(1, 40), bandwidth=st.sampled_from([0.8, 2.0, 9.0]), seed=seeds)
def test_averages_over_points_lie_within_what_is_averaged(n_points, bandwidth, seed):
    rng = np.random.default_rng(seed)
    surface = Scatter(rng.random((n_points, 2)))
    planes = np.vstack([rng.normal(size=n_points), np.full(n_points, 3.0)]).astype(np.float32)
    found = surface.average(planes, bandwidth, ONE)
    assert np.all(found[0] <= planes[0].max() + 1e-5)
    assert np.all(found[0] >= planes[0].min() - 1e-5)
    np.testing.assert_allclose(found[1], 3.0, rtol=1e-5)


@pytest.mark.usefixtures("long_sides")
def test_averages_over_points_of_a_grid_equal_those_of_the_grid_away_from_its_edges():
    rows, columns = 40, 40
    places = np.stack(np.mgrid[:rows, :columns], axis=-1).reshape(-1, 2).astype(float)
    planes = np.random.default_rng(0).normal(size=(1, rows * columns)).astype(np.float32)
    for bandwidth in (1.0, 3.0):
        grid = Raster(rows, columns, wrap=False).average(planes, bandwidth, ONE)
        points = Scatter(7.0 * places).average(planes, bandwidth, ONE)
        inside = (slice(None), slice(10, -10), slice(10, -10))
        grid, points = (each.reshape(1, rows, columns)[inside] for each in (grid, points))
        assert np.sqrt(np.mean((grid - points) ** 2)) < 0.15 * np.std(grid)


def make_board(rng, n_planes, n_cells, whole_numbers=False):
    """Flat board and field; items are numbered so that a column can be recognized."""
    draw = (lambda size: rng.integers(-4, 5, size)) if whole_numbers else rng.standard_normal
    planes = draw((n_planes, n_cells)).astype(np.float32)
    field = draw((n_planes, n_cells)).astype(np.float32)
    bits = np.vstack([planes.view(np.int32), np.arange(n_cells, dtype=np.int32)])
    return planes, field, np.ascontiguousarray(bits)


def columns_of(bits, planes):
    """Assert that every item still has the features it came with."""
    items = bits[-1]
    assert np.array_equal(np.sort(items), np.arange(len(items)))
    assert np.array_equal(bits[:-1].view(np.float32), planes[:, items])


def swap_reference(planes, field, free, draw, bandwidth, shape, own_share):
    """One pass of exchanges, pair by pair; the item of each cell afterwards."""
    rows, columns = shape
    items = np.arange(rows * columns)
    longest = max(1, int(LONGEST_SHIFT * bandwidth))
    shifts = [
        int(u * (2 * most + 1)) - most
        for u, most in zip(draw, (min(longest, rows - 1), min(longest, columns - 1)), strict=False)
    ]
    offset = int(draw[2] * 2**20)
    down, right = shifts if shifts[0] > 0 or (shifts[0] == 0 and shifts[1] > 0) else (
        -shifts[0], -shifts[1])  # fmt: skip
    if (down, right) == (0, 0):
        return items
    reach = int(np.ceil(3 * bandwidth))
    weights = np.exp(-0.5 * (np.arange(reach + 1) / bandwidth) ** 2)
    own = np.append(weights, 0.0) / (2 * weights.sum() - 1)
    near = own[min(down, reach + 1)] * own[min(abs(right), reach + 1)]
    share = own_share * OWN_SHARE * (own[0] ** 2 - near)
    for y in range(rows - down):
        for x in range(columns):
            first = (y + offset) // down % 2 == 0 if down else (x + offset) // right % 2 == 0
            if not first or not 0 <= x + right < columns:
                continue
            i, j = y * columns + x, (y + down) * columns + x + right
            change = planes[:, j] - planes[:, i]
            gain = ((field[:, i] - field[:, j] + share * change) * change).sum()
            if gain > 0 and (free is None or (free[i] and free[j])):
                items[[i, j]] = items[[j, i]]
    return items


@many
@given(
    rows=sides,
    columns=sides,
    bandwidth=st.sampled_from([0.8, 1.7, 5.0]),
    locks=st.booleans(),
    own_share=st.booleans(),
    seed=seeds,
)
def test_a_pass_of_swaps_equals_the_slow_one(rows, columns, bandwidth, locks, own_share, seed):
    rng = np.random.default_rng(seed)
    n_cells = rows * columns
    planes, field, bits = make_board(rng, 2, n_cells, whole_numbers=not own_share)
    free = np.where(rng.random(n_cells) < 0.7, -1, 0).astype(np.int32) if locks else None
    draws = rng.random((1, 3))
    swap_passes(
        bits.reshape(-1),
        bits.reshape(-1).view(np.float32),
        field.reshape(-1),
        np.empty(0, np.int32) if free is None else free,
        rows,
        columns,
        2 if own_share else 0,
        draws,
        max(1, int(LONGEST_SHIFT * bandwidth)),
        _surfaces.own_share(bandwidth),
        np.zeros(n_cells + NOISE_OFFSETS, np.float32),
        0.0,
    )
    expected = swap_reference(planes, field, free, draws[0], bandwidth, (rows, columns), own_share)
    assert np.array_equal(bits[-1], expected)
    columns_of(bits, planes)


def swap_all(surface, bits, field, free, rng, **options):
    noise = rng.logistic(size=surface.n_cells + NOISE_OFFSETS).astype(np.float32)
    options = {"bandwidth": 3.0, "heat": 0.0, "n_passes": 1, **options}
    passes = Passes(noise=noise, free=free, n_features=0, **options)
    surface.swap(bits, field, passes, rng, ONE)


@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    wrap=st.booleans(),
    locks=st.booleans(),
    bandwidth=st.sampled_from([0.8, 3.0, 14.0, 40.0]),
    n_passes=st.integers(1, 6),
    seed=seeds,
)
def test_cold_swaps_in_tiles_keep_columns_together_and_never_lower_the_objective(
    rows, columns, wrap, locks, bandwidth, n_passes, seed
):
    rng = np.random.default_rng(seed)
    surface = Raster(rows, columns, wrap)
    planes, field, bits = make_board(rng, 3, surface.n_cells)
    open_cells = rng.random(surface.n_cells) < 0.6
    free = np.where(open_cells, -1, 0).astype(np.int32) if locks else np.empty(0, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_surfaces, "TILE", 8)
        swap_all(surface, bits, field, free, rng, bandwidth=bandwidth, n_passes=n_passes)
    columns_of(bits, planes)
    after = float((bits[:-1].view(np.float32) * field).sum(dtype=float))
    assert after >= float((planes * field).sum(dtype=float)) - 1e-4
    if locks:
        assert np.array_equal(bits[-1][~open_cells], np.flatnonzero(~open_cells))


@given(rows=st.integers(1, 40), columns=st.integers(1, 40), wrap=st.booleans(),
       stride=st.integers(1, 6), seed=seeds)  # fmt: skip
def test_tiles_hold_every_cell_once(rows, columns, wrap, stride, seed):
    count = np.zeros((rows, columns), dtype=int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_surfaces, "TILE", 8)
        tiles = list(Raster(rows, columns, wrap)._swap_tiles(stride, np.random.default_rng(seed)))
    for top, left, height, width, step in tiles:
        y, x = top + step * np.arange(height), left + step * np.arange(width)
        assert wrap or (y < rows).all()
        assert wrap or (x < columns).all()
        np.add.at(count, np.ix_(y % rows, x % columns), 1)
    assert np.all(count == 1)


@given(n_points=st.integers(1, 60), bandwidth=st.sampled_from([0.8, 5.0]), seed=seeds)
def test_cold_swaps_between_points_keep_columns_together(n_points, bandwidth, seed):
    rng = np.random.default_rng(seed)
    surface = Scatter(rng.random((n_points, 2)))
    planes, field, bits = make_board(rng, 3, n_points)
    locked = rng.random(n_points) < 0.3
    free = np.where(locked, 0, -1).astype(np.int32)
    swap_all(surface, bits, field, free, rng, bandwidth=bandwidth, n_passes=4)
    columns_of(bits, planes)
    assert np.array_equal(bits[-1][locked], np.flatnonzero(locked))
    after = float((bits[:-1].view(np.float32) * field).sum(dtype=float))
    assert after >= float((planes * field).sum(dtype=float)) - 1e-4


def test_heat_makes_some_swaps_that_do_not_pay():
    rng = np.random.default_rng(0)
    surface = Raster(12, 12, wrap=False)
    planes, field, bits = make_board(rng, 2, 144)
    none = np.empty(0, np.int32)
    swap_all(surface, bits, field, none, rng, n_passes=60)
    cold = float((bits[:-1].view(np.float32) * field).sum())
    swap_all(surface, bits, field, none, rng, n_passes=60, heat=10.0)
    columns_of(bits, planes)
    assert float((bits[:-1].view(np.float32) * field).sum()) < 0.8 * cold


def total(planes, field, items, cells):
    return float((planes[:, items[cells]].astype(float) * field[:, cells]).sum())


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    raise_by=st.sampled_from([0.03, 0.3]),
    old_prices=st.booleans(),
    seed=seeds,
)
def test_auctions_come_within_a_raise_for_each_item_of_the_best_order(
    sizes, raise_by, old_prices, seed
):
    rng = np.random.default_rng(seed)
    n_cells = sum(sizes)
    planes, field, bits = make_board(rng, 3, n_cells)
    prices = rng.normal(size=n_cells + 1) if old_prices else np.zeros(n_cells + 1)
    cells = rng.permutation(n_cells)
    starts = np.cumsum([0, *sizes])
    assign_groups(
        bits.reshape(-1),
        bits.reshape(-1).view(np.float32),
        field.reshape(-1),
        n_cells,
        cells,
        starts,
        prices,
        raise_by,
        0.0,
    )
    columns_of(bits, planes)
    assert np.isfinite(prices).all()
    for start, stop in pairwise(starts):
        group = cells[start:stop]
        assert set(bits[-1][group]) == set(group)
        benefit = field[:, group].T.astype(float) @ planes[:, group]
        best = benefit[linear_sum_assignment(benefit, maximize=True)].sum()
        # from prices that mislead, bids may become so many that the raise doubles once or twice
        gap = len(group) * raise_by * (4 if old_prices else 1)
        assert total(planes, field, bits[-1], group) >= best - gap - 1e-3


@pytest.mark.parametrize("n_different", [1, 2, 7])
@pytest.mark.parametrize("raise_by", [1e-6, 0.1])
def test_auctions_of_equal_items_come_to_an_end(n_different, raise_by):
    rng = np.random.default_rng(0)
    planes, field, bits = make_board(rng, 3, 256)
    planes[:] = planes[:, rng.integers(0, n_different, 256)]
    bits[:-1] = planes.view(np.int32)
    starts = np.array([0, 256])
    cells = rng.permutation(256)
    assign_groups(
        bits.reshape(-1),
        bits.reshape(-1).view(np.float32),
        field.reshape(-1),
        256,
        cells,
        starts,
        np.zeros(257),
        raise_by,
        0.0,
    )
    columns_of(bits, planes)
    benefit = field[:, cells].T.astype(float) @ planes[:, cells]
    best = benefit[linear_sum_assignment(benefit, maximize=True)].sum()
    # raises double where equal items make them too many
    assert total(planes, field, bits[-1], cells) >= best - 0.03 * abs(best) - 256 * raise_by


@pytest.mark.parametrize("stay", [0.0, 1e3])
def test_items_stay_in_auctions_if_that_is_worth_more_than_any_other_cell(stay):
    rng = np.random.default_rng(0)
    planes, field = (rng.normal(size=(3, 40)).astype(np.float32) for _ in range(2))
    bits = np.vstack([planes.view(np.int32), np.arange(40, dtype=np.int32)])
    starts = np.array([0, 25, 40])
    prices = np.zeros(41)
    assign_groups(
        bits.reshape(-1),
        bits.reshape(-1).view(np.float32),
        field.reshape(-1),
        40,
        np.arange(40),
        starts,
        prices,
        0.01,
        stay,
    )
    assert np.array_equal(bits[-1], np.arange(40)) == (stay > 0)
    assert np.array_equal(np.sort(bits[-1]), np.arange(40))


def test_empty_cells_share_one_price_that_stays():
    rng = np.random.default_rng(0)
    planes, field, bits = make_board(rng, 2, 30)
    planes[:, 20:] = 0.0
    bits[:-1], bits[-1, 20:] = planes.view(np.int32), -1
    prices = np.zeros(21)
    starts = np.array([0, 30])
    assign_groups(
        bits.reshape(-1),
        bits.reshape(-1).view(np.float32),
        field.reshape(-1),
        30,
        np.arange(30),
        starts,
        prices,
        0.01,
        0.0,
    )
    assert np.array_equal(np.sort(bits[-1]), [-1] * 10 + list(range(20)))
    assert prices[-1] == 0.0
    assert np.any(prices[:-1] != 0.0)
    held = bits[-1] >= 0
    assert np.array_equal(bits[:-1, held].view(np.float32), planes[:, bits[-1][held]])
    benefit = field.T.astype(float) @ planes
    best = benefit[linear_sum_assignment(benefit, maximize=True)].sum()
    assert (bits[:-1].view(np.float32) * field).sum() >= best - 30 * 0.01 - 1e-3


@given(rows=st.integers(1, 40), columns=st.integers(1, 40), side=st.sampled_from([1.0, 7.5, 60.0]),
       some_fixed=st.booleans(), seed=seeds)  # fmt: skip
def test_groups_hold_every_movable_cell_once_and_never_too_many(
    rows, columns, side, some_fixed, seed
):
    rng = np.random.default_rng(seed)
    movable = np.flatnonzero(rng.random(rows * columns) < 0.5) if some_fixed else None
    cells, starts = draw_groups(Raster(rows, columns, wrap=False), side, movable, rng)
    expected = np.arange(rows * columns) if movable is None else movable
    assert np.array_equal(np.sort(cells), expected)
    assert starts[0] == 0
    assert starts[-1] == len(cells)
    assert np.all(np.diff(starts) >= 1)
    assert np.diff(starts).max(initial=0) <= GROUP


def neighbor_cost(items, features, neighbors, weights):
    """Sum of weighted distances between neighbors that both hold an item."""
    there = (neighbors >= 0) & (items[:, None] >= 0) & (items[neighbors] >= 0)
    apart = features[items[:, None]] - features[items[neighbors]]
    return float((weights * there * np.linalg.norm(apart, axis=-1)).sum())


SURFACES = {
    "rectangle": lambda rng: Raster(7, 9, wrap=False),
    "torus": lambda rng: Raster(7, 9, wrap=True),
    "one row": lambda rng: Raster(1, 20, wrap=False),
    "ring": lambda rng: Raster(1, 20, wrap=True),
    "two rows of a torus": lambda rng: Raster(2, 12, wrap=True),
    "smallest torus": lambda rng: Raster(2, 2, wrap=True),
    "points": lambda rng: Scatter(rng.random((40, 2))),
    "points that coincide": lambda rng: Scatter(rng.integers(0, 3, (30, 2)).astype(float)),
    "one point": lambda rng: Scatter(np.zeros((1, 2))),
}


@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("with_empty", [False, True])
def test_exchanges_never_bring_neighbors_apart(kind, with_empty):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        surface = SURFACES[kind](rng)
        n = surface.n_cells
        neighbors, weights = surface.neighbors()
        features = rng.normal(size=(n, 4)).astype(np.float32)
        items = rng.permutation(n).astype(np.int32)
        if with_empty:
            items[items >= 0.7 * n] = -1
        regions = np.where(rng.random(n) < 0.8, 0, -1)
        before = items.copy()
        exchange_neighbors(
            items, features, neighbors, weights, regions, np.arange(n), 10, 3, seed + 1
        )
        assert np.array_equal(np.sort(items), np.sort(before))
        assert np.array_equal(items[regions < 0], before[regions < 0])
        assert np.array_equal(items < 0, before < 0)
        cost = [neighbor_cost(each, features, neighbors, weights) for each in (before, items)]
        assert cost[1] <= cost[0] + 1e-4
        if kind in ("rectangle", "torus", "ring", "points") and not with_empty:
            assert cost[1] < 0.98 * cost[0]


@pytest.mark.parametrize("kind", SURFACES)
def test_neighbors_count_each_other_alike_and_never_themselves(kind):
    neighbors, weights = SURFACES[kind](np.random.default_rng(0)).neighbors()
    n = len(neighbors)
    W = np.zeros((n, n))
    there = neighbors >= 0
    cell = np.broadcast_to(np.arange(n)[:, None], neighbors.shape)
    np.add.at(W, (cell[there], neighbors[there]), weights[there])
    np.testing.assert_allclose(W, W.T, rtol=1e-5)
    assert np.all(np.diag(W) == 0)


def test_typical_gains_of_equal_items_are_zero():
    planes = np.ones((2, 12), dtype=np.float32)
    items = np.arange(12, dtype=np.int32)
    surface = Raster(3, 4, wrap=False)
    assert surface.typical_gain(planes, planes, 2, items, 1.0) == 0.0
    nothing = np.full(12, -1, dtype=np.int32)
    assert surface.typical_gain(planes, planes, 2, nothing, 1.0) == 0.0
