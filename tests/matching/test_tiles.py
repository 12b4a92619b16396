"""Sums, means and maxima over all pairs, against the matrices that they never keep."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from unshuffle.assignment import solve_assignment
from unshuffle.matching._all_pairs import loops as _tile_loops
from unshuffle.matching._all_pairs import tiles as _tiles
from unshuffle.matching._all_pairs.tiles import N_BINS, N_WIDTHS, Tiles

# Neither is a multiple of the rows or columns of a tile, nor of the bins.
N_ROWS, N_COLUMNS, N_FEATURES = 300, 517, 7
RULED_OUT = 1e4


@pytest.fixture(autouse=True)
def narrow_tiles(monkeypatch):
    """Several tiles in each row of tiles, the last one narrower."""
    monkeypatch.setattr(_tiles, "COLUMNS", 200)


@pytest.fixture
def problem():
    """Queries, keys, bias and values in single precision, and the scores in double."""
    rng = np.random.default_rng(0)
    queries, keys, values = (
        rng.normal(size=(n, N_FEATURES)).astype(np.float32) for n in (N_ROWS, N_COLUMNS, N_COLUMNS)
    )
    bias = rng.normal(size=N_COLUMNS).astype(np.float32)
    scores = queries.astype(np.float64) @ keys.T.astype(np.float64) + bias
    return queries, keys, bias, values, scores


def sets_of(columns):
    return [set(row.tolist()) for row in columns]


def test_two_to_the_power_of_x_has_five_digits():
    x = np.linspace(-60, 120, 10_001, dtype=np.float32)
    found = np.array([_tile_loops.exp2(each) for each in x], dtype=np.float64)
    np.testing.assert_allclose(found, 2.0 ** x.astype(np.float64), rtol=4e-6)


def test_densities_are_log_sums_of_gaussians_at_eight_widths(problem):
    points, rate = problem[1], 0.03
    rows = np.array([3, 516, 0, 77, 300])
    with Tiles(1) as tiles:
        found = tiles.densities(points, rows, rate)
    exact = points.astype(np.float64)
    squared = ((exact[rows, None] - exact) ** 2).sum(axis=2)
    expected = [logsumexp(-(2.0**t) * rate * squared, axis=1) for t in range(N_WIDTHS)]
    np.testing.assert_allclose(found, np.column_stack(expected), atol=1e-4)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_soft_means_and_log_sums_are_those_of_the_softmax(problem, scale):
    queries, keys, bias, values, _ = problem
    queries = queries * np.float32(scale)
    scores = queries.astype(np.float64) @ keys.T.astype(np.float64) + bias
    with Tiles(1) as tiles:
        means, sums = tiles.soft_means(queries, keys, bias, values)
        np.testing.assert_array_equal(tiles.log_sums(queries, keys, bias), sums)
    np.testing.assert_allclose(means, softmax(scores, axis=1) @ values, atol=2e-4)
    np.testing.assert_allclose(sums, logsumexp(scores, axis=1), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_cost_is_subtracted_before_the_softmax(problem, kind):
    queries, keys, bias, values, scores = problem
    cost = np.where(scores > 1, scores, 0.0).astype(np.float32)
    with Tiles(1) as tiles:
        means, sums = tiles.soft_means(queries, keys, bias, values, kind(cost))
    np.testing.assert_allclose(means, softmax(scores - cost, axis=1) @ values, atol=2e-4)
    np.testing.assert_allclose(sums, logsumexp(scores - cost, axis=1), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("k", [1, 5, 32, 512])
def test_few_columns_are_ranked_exactly(problem, k):
    queries, keys, bias, _, scores = problem
    few = min(N_BINS, N_COLUMNS)
    with Tiles(1) as tiles:
        columns, found = tiles.best_columns(queries, keys[:few], bias[:few], k)
    exact = scores[:, :few]
    np.testing.assert_allclose(found, np.take_along_axis(exact, columns, 1), atol=1e-4)
    np.testing.assert_allclose(np.sort(found, 1), np.sort(exact, 1)[:, few - k :], atol=1e-4)
    assert all(len(row) == k for row in sets_of(columns))


def test_more_columns_than_there_are_gives_all_of_them(problem):
    queries, keys, bias, _, scores = problem
    with Tiles(1) as tiles:
        columns, found = tiles.best_columns(queries, keys[:9], bias[:9], 50)
    assert np.array_equal(np.sort(columns, axis=1), np.tile(np.arange(9), (N_ROWS, 1)))
    np.testing.assert_allclose(found, np.take_along_axis(scores, columns, 1), atol=1e-4)


def test_nearly_all_of_the_best_of_many_columns_are_found(problem):
    queries, keys, bias, _, _ = problem
    rng = np.random.default_rng(1)
    keys = np.vstack([keys, rng.normal(size=(2500, N_FEATURES)).astype(np.float32)])
    bias = np.append(bias, rng.normal(size=2500).astype(np.float32))
    scores = queries @ keys.T + bias
    with Tiles(1) as tiles:
        columns, found = tiles.best_columns(queries, keys, bias, 16)
    best = np.argsort(-scores, axis=1)[:, :16]
    shared = [len(a & b) for a, b in zip(sets_of(columns), sets_of(best), strict=True)]
    assert np.mean(shared) > 15.5
    assert min(shared) > 12
    assert all(len(row) == 16 for row in sets_of(columns))
    np.testing.assert_allclose(found, np.take_along_axis(scores, columns, 1), atol=1e-4)
    # The very best cannot hide.
    np.testing.assert_allclose(found.max(axis=1), scores.max(axis=1), atol=1e-4)


def test_a_dense_cost_is_subtracted(problem):
    queries, keys, bias, _, scores = problem
    cost = np.random.default_rng(2).normal(size=scores.shape).astype(np.float32)
    cost[:, :100] += 50
    keys, bias, cost, scores = keys[:N_BINS], bias[:N_BINS], cost[:, :N_BINS], scores[:, :N_BINS]
    with Tiles(1) as tiles:
        columns, found = tiles.best_columns(queries, keys, bias, 12, cost)
    worth = scores - cost
    np.testing.assert_allclose(np.sort(found, 1), np.sort(worth, 1)[:, -12:], atol=1e-4)
    np.testing.assert_allclose(found, np.take_along_axis(worth, columns, 1), atol=1e-4)
    assert columns.min() >= 100


def test_a_sparse_cost_rules_out_what_it_names_and_adds_what_it_favors(problem):
    queries, keys, bias, _, scores = problem
    cost = np.zeros(scores.shape)
    best, worst = np.argmax(scores, axis=1), np.argmin(scores, axis=1)
    rows = np.arange(0, N_ROWS, 2)  # other rows have no entry
    cost[rows, best[rows]] = RULED_OUT
    cost[rows, worst[rows]] = -100.0
    with Tiles(1) as tiles:
        columns, found = tiles.best_columns(queries, keys, bias, 12, sparse.coo_array(cost))
    possible = found > -RULED_OUT / 2
    worth = scores - cost
    np.testing.assert_allclose(
        found[possible], np.take_along_axis(worth, columns, 1)[possible], atol=1e-3
    )
    first = np.take_along_axis(columns, np.argmax(found, axis=1)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(first, np.argmax(worth, axis=1))
    for row, column in zip(rows, best[rows], strict=True):
        assert not np.any(possible[row] & (columns[row] == column))
    for row, taken in enumerate(possible):
        assert len(set(columns[row, taken].tolist())) == taken.sum()  # none comes twice


def test_an_empty_sparse_cost_changes_nothing(problem):
    queries, keys, bias, _, scores = problem
    with Tiles(1) as tiles:
        expected = tiles.best_columns(queries, keys, bias, 12)
        found = tiles.best_columns(queries, keys, bias, 12, sparse.csr_matrix(scores.shape))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_quantiles_are_distances_at_ranks(problem):
    queries, keys, *_ = problem
    ranks = np.array([0, 1, 7, 100, 516])
    with Tiles(1) as tiles:
        found = tiles.quantiles(queries, keys, ranks)
        own = tiles.quantiles(queries, queries, np.array([0]))
    squared = ((queries[:, None] - keys) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, ranks], atol=1e-4)
    np.testing.assert_allclose(own, 0.0, atol=1e-5)
    assert own.min() >= 0.0


def test_threads_do_not_change_a_bit(problem):
    queries, keys, bias, values, scores = problem
    cost = sparse.csr_matrix(np.where(scores > 4, scores, 0.0))

    def everything(n_jobs):
        with Tiles(n_jobs) as tiles:
            return [
                tiles.densities(keys, np.arange(N_COLUMNS), 0.1),
                *tiles.soft_means(queries, keys, bias, values),
                *tiles.best_columns(queries, keys, bias, 9),
                *tiles.best_columns(queries, keys, bias, 9, scores.astype(np.float32)),
                *tiles.best_columns(queries, keys, bias, 9, cost),
                tiles.quantiles(queries, keys, np.array([4, 200])),
            ]

    for one, three in zip(everything(1), everything(3), strict=True):
        np.testing.assert_array_equal(one, three)


def test_rows_and_columns_may_be_single():
    one = np.ones((1, 1), dtype=np.float32)
    zero = np.zeros(1, dtype=np.float32)
    with Tiles(2) as tiles:
        means, sums = tiles.soft_means(one, one, zero, 5 * one)
        columns, scores = tiles.best_columns(one, one, zero, 3)
    assert (means.tolist(), columns.tolist(), scores.tolist()) == ([[5.0]], [[0]], [[1.0]])
    np.testing.assert_allclose(sums, 1.0, rtol=1e-6)


def lists_of(scores):
    """All columns of each row, for an auction."""
    columns = np.tile(np.arange(scores.shape[1], dtype=np.int32), (len(scores), 1))
    return columns, scores.astype(np.float32)


@pytest.mark.parametrize("shape", [(60, 60), (60, 83), (1, 5)])
def test_an_auction_comes_within_a_step_of_the_best_for_each_row(shape):
    scores = np.random.default_rng(3).normal(size=shape)
    step = 0.01
    floors = np.full(shape[0], -1e6, dtype=np.float32)
    found, prices = Tiles(1).auction(*lists_of(scores), shape[1], floors=floors, step=step)
    assert np.unique(found).size == shape[0]
    assert found.min() >= 0
    best = scores[np.arange(shape[0]), solve_assignment(scores, maximize=True).columns].sum()
    total = scores[np.arange(shape[0]), found].sum()
    assert best - step * shape[0] - 1e-3 <= total <= best + 1e-9
    assert prices.min() >= 0
    assert np.all(prices[np.setdiff1d(np.arange(shape[1]), found)] == 0)


def test_rows_below_their_floor_go_without():
    # Three rows want one of two columns; the third is worth least to the others.
    scores = np.array([[5.0, 4.0], [5.0, 3.0], [1.0, 0.5]])
    columns, worth = lists_of(scores)
    floors = np.zeros(3, dtype=np.float32)
    found, _ = Tiles(1).auction(columns, worth, 2, floors=floors, step=0.01)
    assert found.tolist() == [1, 0, -1]
    floors[:] = 4.5
    found, _ = Tiles(1).auction(columns, worth, 2, floors=floors, step=0.01)
    assert found[2] == -1
    assert sorted(found.tolist()) == [-1, -1, 0]


def test_an_auction_may_be_cut_into_short_calls(monkeypatch):
    scores = np.random.default_rng(4).normal(size=(80, 80))
    floors = np.full(80, -1e6, dtype=np.float32)
    expected = Tiles(1).auction(*lists_of(scores), 80, floors=floors, step=0.05)
    monkeypatch.setattr(_tiles, "BIDS_PER_CALL", 7)
    found = Tiles(1).auction(*lists_of(scores), 80, floors=floors, step=0.05)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [1e7, 1e12, 1e30])
def test_an_auction_of_huge_scores_ends(size):
    # All rows want the same few columns, and steps and floors are lost to rounding.
    columns = np.tile(np.arange(4, dtype=np.int32), (50, 1))
    scores = np.full((50, 4), size, dtype=np.float32)
    floors = scores[:, 0] - np.float32(60.0)
    found, _ = Tiles(1).auction(columns, scores, 50, floors=floors, step=0.2)
    assert np.sort(found[found >= 0]).tolist() == [0, 1, 2, 3]


def test_exponentials_stay_far_from_denormal_numbers():
    tile = np.random.default_rng(0).normal(scale=1e3, size=(4, 256)).astype(np.float32)
    _tile_loops.exponentiate(tile, *np.full((3, 4), -1e9, dtype=np.float32))
    assert tile.max() == 1.0
    # Times what is as small, they still are normal numbers.
    assert float(tile.min()) ** 2 > np.finfo(np.float32).tiny


def test_densities_of_what_is_far_stay_far_from_denormal_numbers():
    far = np.full(3, 1e6, dtype=np.float32)
    sums = np.zeros((3, N_WIDTHS), dtype=np.float32)
    products = np.zeros((3, 3), dtype=np.float32)
    _tile_loops.add_densities(products, far, far, np.float32(1.0), sums)
    assert sums == pytest.approx(3 * 2.0**-60, rel=1e-3)
