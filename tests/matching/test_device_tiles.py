"""Sums, means and maxima over all pairs on a device, against those of the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from unshuffle._run.device import find_device
from unshuffle.assignment import solve_assignment
from unshuffle.matching._all_pairs.tiles import N_WIDTHS, Tiles

# Neither is a multiple of the rows or columns of a tile, nor of the bins.
N_ROWS, N_COLUMNS, N_FEATURES = 150, 211, 7
RULED_OUT = 1e4
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@pytest.fixture
def tiles(gpu, monkeypatch):
    """Device tiles, several blocks of rows each."""
    from unshuffle.matching._all_pairs import gpu_torch as _device_blocks
    from unshuffle.matching._all_pairs.gpu import DeviceTiles

    monkeypatch.setattr(_device_blocks, "BLOCK_BYTES", 40_000)
    with DeviceTiles(find_device(gpu)) as tiles:
        yield tiles


@pytest.fixture
def put(gpu):
    """Moves arrays to the device."""
    import torch

    device = find_device(gpu)
    return lambda *arrays: [torch.as_tensor(each, device=device) for each in arrays]


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


def in_kernels(tiles):
    """Whether kernels do the work, with products of half precision."""
    return tiles._loops.__name__.endswith("_triton")


def close(tiles):
    return 1e-2 if in_kernels(tiles) else 2e-4


def host(*tensors):
    return [each.cpu().numpy() for each in tensors]


def sets_of(columns):
    return [set(row.tolist()) for row in columns]


def test_densities_are_those_of_the_cores(problem, tiles, put):
    points, rate = problem[1] + np.float32(20.0), 0.03
    rows = np.array([3, 210, 0, 77, 200])
    (found,) = host(tiles.densities(put(points)[0], rows, rate))
    exact = points.astype(np.float64)
    squared = ((exact[rows, None] - exact) ** 2).sum(axis=2)
    expected = [logsumexp(-(2.0**t) * rate * squared, axis=1) for t in range(N_WIDTHS)]
    np.testing.assert_allclose(found, np.column_stack(expected), atol=close(tiles))
    with Tiles(1) as cores:
        centered = points - points.mean(axis=0)
        np.testing.assert_allclose(found, cores.densities(centered, rows, rate), atol=close(tiles))


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 3000.0])
def test_soft_means_and_log_sums_are_those_of_the_softmax(problem, tiles, put, scale):
    queries, keys, bias, values, _ = problem
    queries = queries * np.float32(scale)
    scores = queries.astype(np.float64) @ keys.T.astype(np.float64) + bias
    placed = put(queries, keys, bias, values)
    means, sums = host(*tiles.soft_means(*placed))
    np.testing.assert_array_equal(host(tiles.log_sums(*placed[:3]))[0], sums)
    # Half precision moves scores by up to 5e-4 of the lengths of their rows.
    moved = 1e-3 * np.abs(scores).max() if in_kernels(tiles) else 2e-4
    np.testing.assert_allclose(sums, logsumexp(scores, axis=1), rtol=1e-6, atol=moved)
    if moved < 0.1:
        np.testing.assert_allclose(means, softmax(scores, axis=1) @ values, atol=2 * moved)


@pytest.mark.parametrize("kind", ["dense", "scipy", "tensors"])
def test_a_cost_is_subtracted_before_the_softmax(problem, tiles, put, kind):
    queries, keys, bias, values, scores = problem
    cost = np.where(np.abs(scores) > 7, scores, 0.0).astype(np.float32)
    cost[3] = 0.0
    cost[4, :] = RULED_OUT
    cost[5, 7] = -500.0
    given = cost_of(cost, kind, put)
    means, sums = host(*tiles.soft_means(*put(queries, keys, bias, values), given))
    np.testing.assert_allclose(
        means, softmax(scores - cost, axis=1) @ values, atol=2 * close(tiles)
    )
    np.testing.assert_allclose(
        sums, logsumexp(scores - cost, axis=1), rtol=1e-6, atol=close(tiles)
    )


def cost_of(cost, kind, put):
    if kind == "dense":
        return put(cost)[0]
    matrix = sparse.csr_matrix(cost)
    if kind == "scipy":
        return matrix
    return tuple(put(matrix.indptr, matrix.indices, matrix.data))


@pytest.mark.parametrize("k", [1, 5, 32, 64])
def test_few_columns_are_ranked_exactly(problem, tiles, put, k):
    queries, keys, bias, _, scores = problem
    few = 200
    columns, found = host(*tiles.best_columns(*put(queries, keys[:few], bias[:few]), k))
    exact = scores[:, :few]
    assert columns.dtype == np.int32
    np.testing.assert_allclose(found, np.take_along_axis(exact, columns, 1), atol=1e-4)
    np.testing.assert_allclose(np.sort(found, 1), np.sort(exact, 1)[:, few - k :], atol=2e-3)
    assert all(len(row) == k for row in sets_of(columns))


def test_more_columns_than_there_are_gives_all_of_them(problem, tiles, put):
    queries, keys, bias, _, scores = problem
    columns, found = host(*tiles.best_columns(*put(queries, keys[:9], bias[:9]), 50))
    assert np.array_equal(np.sort(columns, axis=1), np.tile(np.arange(9), (N_ROWS, 1)))
    np.testing.assert_allclose(found, np.take_along_axis(scores, columns, 1), atol=1e-4)


def test_nearly_all_of_the_best_of_many_columns_are_found(problem, tiles, put):
    queries, keys, bias, _, _ = problem
    rng = np.random.default_rng(1)
    keys = np.vstack([keys, rng.normal(size=(2800, N_FEATURES)).astype(np.float32)])
    bias = np.append(bias, rng.normal(size=2800).astype(np.float32))
    scores = queries @ keys.T + bias
    columns, found = host(*tiles.best_columns(*put(queries, keys, bias), 16))
    best = np.argsort(-scores, axis=1)[:, :16]
    shared = [len(a & b) for a, b in zip(sets_of(columns), sets_of(best), strict=True)]
    assert np.mean(shared) >= 0.93 * 16
    assert all(len(row) == 16 for row in sets_of(columns))
    np.testing.assert_allclose(found, np.take_along_axis(scores, columns, 1), atol=1e-4)
    # The very best cannot hide.
    np.testing.assert_allclose(found.max(axis=1), scores.max(axis=1), atol=1e-4)
    alone, worth = host(*tiles.best_columns(*put(queries, keys, bias), 1))
    np.testing.assert_allclose(worth[:, 0], scores.max(axis=1), atol=1e-4)
    np.testing.assert_array_equal(alone[:, 0], best[:, 0])


def test_columns_far_from_the_origin_are_ranked_by_their_differences(problem, tiles, put):
    points = problem[1] + np.float32(100.0)
    squares = np.einsum("ij,ij->i", points, points)
    columns, found = host(*tiles.best_columns(*put(points, points, -0.5 * squares), 4))
    assert np.array_equal(columns[:, 0], np.arange(N_COLUMNS)) or np.allclose(
        found[:, 0], 0.5 * squares, rtol=1e-6
    )
    exact = ((points[:, None].astype(np.float64) - points) ** 2).sum(axis=2)
    near = np.sort(exact, axis=1)[:, :4].sum(axis=1)
    assert np.take_along_axis(exact, columns, 1).sum() < 1.05 * near.sum() + 1.0


def test_a_dense_cost_is_subtracted(problem, tiles, put):
    queries, keys, bias, _, scores = problem
    keys, bias, scores = keys[:128], bias[:128], scores[:, :128]
    cost = np.random.default_rng(2).normal(size=scores.shape).astype(np.float32)
    cost[:, :50] += 50
    columns, found = host(*tiles.best_columns(*put(queries, keys, bias), 12, put(cost)[0]))
    worth = scores - cost
    np.testing.assert_allclose(np.sort(found, 1), np.sort(worth, 1)[:, -12:], atol=2e-3)
    np.testing.assert_allclose(found, np.take_along_axis(worth, columns, 1), atol=1e-4)
    assert columns.min() >= 50


@pytest.mark.parametrize("kind", ["scipy", "tensors"])
def test_a_sparse_cost_rules_out_what_it_names_and_adds_what_it_favors(problem, tiles, put, kind):
    queries, keys, bias, _, scores = problem
    cost = np.zeros(scores.shape, dtype=np.float32)
    best, worst = np.argmax(scores, axis=1), np.argmin(scores, axis=1)
    rows = np.arange(0, N_ROWS, 2)  # other rows have no entry
    cost[rows, best[rows]] = RULED_OUT
    cost[rows, worst[rows]] = -100.0
    given = cost_of(cost, kind, put)
    columns, found = host(*tiles.best_columns(*put(queries, keys, bias), 12, given))
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


def test_an_empty_sparse_cost_changes_nothing(problem, tiles, put):
    queries, keys, bias, values, scores = problem
    placed, empty = put(queries, keys, bias, values), sparse.csr_matrix(scores.shape)
    expected = tiles.best_columns(*placed[:3], 12), tiles.soft_means(*placed)
    found = tiles.best_columns(*placed[:3], 12, empty), tiles.soft_means(*placed, empty)
    for some, others in zip(found, expected, strict=True):
        for a, b in zip(host(*some), host(*others), strict=True):
            np.testing.assert_array_equal(a, b)


def test_quantiles_are_distances_at_ranks(problem, tiles, put):
    queries, keys = (each + np.float32(30.0) for each in problem[:2])
    ranks = np.array([0, 1, 7, 100, 210])
    (found,) = host(tiles.quantiles(*put(queries, keys), ranks))
    (own,) = host(tiles.quantiles(*put(queries, queries), np.array([0])))
    squared = ((queries[:, None] - keys) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, ranks], atol=1e-4)
    np.testing.assert_allclose(own, 0.0, atol=1e-4)
    assert own.min() >= 0.0


def test_rows_and_columns_may_be_single(tiles, put):
    one, zero = put(np.ones((1, 1), np.float32), np.zeros(1, np.float32))
    means, sums = host(*tiles.soft_means(one, one, zero, 5 * one))
    columns, scores = host(*tiles.best_columns(one, one, zero, 3))
    assert (means.tolist(), columns.tolist(), scores.tolist()) == ([[5.0]], [[0]], [[1.0]])
    np.testing.assert_allclose(sums, 1.0, rtol=1e-6)
    assert host(tiles.densities(one, np.array([0]), 1.0))[0].tolist() == [[0.0] * N_WIDTHS]
    assert host(tiles.quantiles(one, one, np.array([0])))[0].tolist() == [[0.0]]


def test_no_rows_give_nothing(problem, tiles, put):
    queries, keys, bias, values, _ = problem
    placed = put(queries[:0], keys, bias, values)
    assert [each.shape for each in tiles.soft_means(*placed)] == [(0, N_FEATURES), (0,)]
    assert [each.shape for each in tiles.best_columns(*placed[:3], 5)] == [(0, 5), (0, 5)]
    columns, scores, floors = put(
        np.zeros((0, 4), np.int32), np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
    )
    found, prices = host(*tiles.auction(columns, scores, 6, floors=floors, step=0.1))
    assert (found.shape, prices.tolist()) == ((0,), [0.0] * 6)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_extreme_scores_stay_finite(problem, tiles, put, size):
    queries, keys, bias, values, _ = problem
    big = np.float32(size) * np.sign(bias)
    taken = np.where(np.arange(N_COLUMNS) % 2, np.float32(-1e30), bias)
    for column in (big, taken):
        placed = put(queries * 1000, keys, column, values)
        for each in host(*tiles.soft_means(*placed), *tiles.best_columns(*placed[:3], 8)):
            assert np.isfinite(each).all()
    columns, _ = host(*tiles.best_columns(*put(queries, keys, taken), 8))
    assert np.all(columns % 2 == 0)


def lists_of(scores):
    """All columns of each row, for an auction."""
    columns = np.tile(np.arange(scores.shape[1], dtype=np.int32), (len(scores), 1))
    return columns, scores.astype(np.float32)


@pytest.mark.parametrize("shape", [(60, 60), (60, 83), (1, 5), (3, 1)])
def test_an_auction_comes_within_a_step_of_the_best_for_each_row(tiles, put, shape):
    scores = np.random.default_rng(3).normal(size=shape)
    step = 0.01
    floors = np.full(shape[0], -1e3, dtype=np.float32)
    columns, worth, floors = put(*lists_of(scores), floors)
    found, prices = host(*tiles.auction(columns, worth, shape[1], floors=floors, step=step))
    rows = np.flatnonzero(found >= 0)
    assert np.unique(found[rows]).size == rows.size == min(shape)
    assert found.dtype == np.int64
    if rows.size == shape[0]:
        best = scores[rows, solve_assignment(scores, maximize=True).columns].sum()
        total = scores[rows, found].sum()
        assert best - step * shape[0] - 1e-3 <= total <= best + 1e-9
    assert prices.min() >= 0
    assert np.all(prices[np.setdiff1d(np.arange(shape[1]), found)] == 0)


def test_an_auction_of_short_lists_is_as_good_as_that_of_the_cores(tiles, put):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(120, 3))
    others = points + 0.2 * rng.normal(size=points.shape)
    scores = -20 * ((points[:, None] - others) ** 2).sum(axis=2)
    columns = np.argsort(-scores, axis=1)[:, :12].astype(np.int32)
    worth = np.take_along_axis(scores, columns, 1).astype(np.float32)
    floors = worth.max(axis=1) - np.float32(60.0)
    placed = put(columns, worth, floors)
    expected, _ = Tiles(1).auction(columns, worth, 120, floors=floors, step=0.2)
    found, _ = host(*tiles.auction(*placed[:2], 120, floors=placed[2], step=0.2))
    again, _ = host(*tiles.auction(*placed[:2], 120, floors=placed[2], step=0.2))
    np.testing.assert_array_equal(found, again)

    def total(partners):
        rows = np.flatnonzero(partners >= 0)
        assert np.unique(partners[rows]).size == rows.size
        return scores[rows, partners[rows]].sum() - 60.0 * (120 - rows.size)

    assert total(found) >= total(expected) - 120 * 0.2


@pytest.mark.parametrize("limits", [(0, 0), (0, 512), (512, 0)])
def test_rows_bid_as_well_in_launches_in_one_program_and_one_by_one(
    tiles, put, monkeypatch, limits
):
    if not in_kernels(tiles):
        return  # plain PyTorch has one way only
    for name, limit in zip(("ONE_BY_ONE", "ONE_PROGRAM"), limits, strict=True):
        monkeypatch.setattr(f"unshuffle.matching._all_pairs.gpu_bids.{name}", limit)
    scores = np.random.default_rng(7).normal(size=(30, 34))
    columns, worth, floors = put(*lists_of(scores), np.full(30, -1e3, np.float32))
    found, prices = host(*tiles.auction(columns, worth, 34, floors=floors, step=0.01))
    assert np.unique(found).size == 30
    best = scores[np.arange(30), solve_assignment(scores, maximize=True).columns].sum()
    assert scores[np.arange(30), found].sum() >= best - 30 * 0.01 - 1e-3
    assert np.all(prices[np.setdiff1d(np.arange(34), found)] == 0)


def test_an_auction_may_leave_spare_rows_over(tiles, put):
    # All rows want the same column, and one after the other gets its second choice.
    scores = np.random.default_rng(3).normal(size=(40, 40))
    scores[:, 0] += 100.0
    columns, worth, floors = put(*lists_of(scores), np.full(40, -1e3, np.float32))
    found, _ = host(*tiles.auction(columns, worth, 40, floors=floors, step=0.01, spare=10))
    rows = np.flatnonzero(found >= 0)
    assert np.unique(found[rows]).size == rows.size
    assert rows.size >= 30
    everyone, _ = host(*tiles.auction(columns, worth, 40, floors=floors, step=0.01, spare=40))
    assert (everyone == -1).all()


def test_an_auction_may_be_cut_into_short_calls(tiles, put, monkeypatch):
    scores = np.random.default_rng(4).normal(size=(24, 24))
    columns, worth, floors = put(*lists_of(scores), np.full(24, -1e3, np.float32))
    expected = host(*tiles.auction(columns, worth, 24, floors=floors, step=0.05))
    if in_kernels(tiles):
        monkeypatch.setattr("unshuffle.matching._all_pairs.gpu_bids.MOST_BIDS", 3)
        monkeypatch.setattr("unshuffle.matching._all_pairs.gpu_bids.MOST_ROUNDS", 2)
    else:
        monkeypatch.setattr(tiles._loops, "N_ROUNDS", 1)
    found = host(*tiles.auction(columns, worth, 24, floors=floors, step=0.05))
    assert sorted(found[0].tolist()) == list(range(24))
    assert scores[np.arange(24), found[0]].sum() == pytest.approx(
        scores[np.arange(24), expected[0]].sum(), abs=24 * 0.05
    )


def test_the_last_rows_give_up_if_they_could_gain_little(tiles, put, monkeypatch):
    # Four rows want three columns, and each bid raises a price by one step.
    monkeypatch.setattr(tiles._loops, "PATIENCE", 1)
    if in_kernels(tiles):
        monkeypatch.setattr("unshuffle.matching._all_pairs.gpu_bids.MOST_BIDS", 20)
        monkeypatch.setattr("unshuffle.matching._all_pairs.gpu_bids.MOST_ROUNDS", 4)
    else:
        monkeypatch.setattr(tiles._loops, "N_ROUNDS", 8)
    n_others, step = 200, 0.05
    scores = np.zeros((4 + n_others, 3), np.float32)
    columns = np.tile(np.arange(3, dtype=np.int32), (len(scores), 1))
    columns[4:] = 3 + np.arange(n_others)[:, None]  # these rows have no rivals
    scores[4:, 1:] = -1e6
    highest = []
    for floor in (-1.0, -3.0):
        placed = put(columns, scores, np.full(len(scores), floor, np.float32))
        found, prices = host(
            *tiles.auction(*placed[:2], 3 + n_others, floors=placed[2], step=step)
        )
        assert sorted(found[:4].tolist()) == [-1, 0, 1, 2]
        assert np.array_equal(found[4:], 3 + np.arange(n_others))
        highest.append(prices[:3].max())
    # A tenth of all steps is 1.02: only the first fight is not worth its end.
    assert highest[0] < 0.9
    assert highest[1] >= 3.0


def test_rows_below_their_floor_go_without(tiles, put):
    # Three rows want one of two columns; the third is worth least to the others.
    scores = np.array([[5.0, 4.0], [5.0, 3.0], [1.0, 0.5]])
    columns, worth = put(*lists_of(scores))
    (floors,) = put(np.zeros(3, dtype=np.float32))
    found, _ = tiles.auction(columns, worth, 2, floors=floors, step=0.01)
    assert found.tolist() == [1, 0, -1]
    found, _ = tiles.auction(columns, worth, 2, floors=floors + 4.5, step=0.01)
    assert sorted(found.tolist()) == [-1, -1, 0]
    found, prices = tiles.auction(columns, worth, 2, floors=floors + 10, step=0.01)
    assert (found.tolist(), prices.tolist()) == ([-1, -1, -1], [0.0, 0.0])


@pytest.mark.parametrize("size", [1e4, -1e4, 1e7, 1e12, 1e30])
def test_an_auction_of_huge_scores_ends(tiles, put, size):
    # All rows want the same few columns, and steps and floors are lost to rounding.
    columns = np.tile(np.arange(4, dtype=np.int32), (9, 1))
    scores = np.full((9, 4), size, dtype=np.float32)
    columns, scores, floors = put(columns, scores, scores[:, 0] - np.float32(20.0))
    found, _ = host(*tiles.auction(columns, scores, 9, floors=floors, step=0.2))
    assert np.sort(found[found >= 0]).tolist() == [0, 1, 2, 3]


def sinkhorn(dense, surplus):
    """Rows sum to 1 and columns to (at most) 1, after many rounds."""
    potentials = np.zeros(dense.shape[1])
    for _ in range(5000):
        shares = softmax(dense - potentials, axis=1)
        more = np.log(np.maximum(shares.sum(axis=0), 1e-300))
        potentials += np.maximum(more, -potentials) if surplus else more
    return softmax(dense - potentials, axis=1)


@pytest.mark.parametrize("surplus", [False, True])
def test_balanced_shares_are_those_of_a_dense_sinkhorn(tiles, put, surplus):
    rng = np.random.default_rng(6)
    n_rows, n_columns, k = 40, 60 if surplus else 40, 12
    columns = np.array([rng.permutation(n_columns)[:k] for _ in range(n_rows)], dtype=np.int32)
    columns[:, 0] = np.arange(n_rows)  # so that a matching exists
    for row in columns:
        row[1:] = [each for each in rng.permutation(n_columns) if each != row[0]][: k - 1]
    worth = rng.normal(size=columns.shape).astype(np.float32)
    worth[5, 3], worth[6, 4] = -1e30, -3e38
    dense = np.full((n_rows, n_columns), -np.inf)
    np.put_along_axis(dense, columns, np.where(worth > -1e29, worth, -np.inf), 1)
    placed = put(columns, worth)
    (shares,) = host(tiles.balance(*placed, surplus=surplus))
    expected = np.take_along_axis(sinkhorn(dense, surplus), columns, 1)
    np.testing.assert_allclose(shares, expected, atol=5e-3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    assert shares[5, 3] == shares[6, 4] == 0.0
    sums = np.bincount(columns.ravel(), weights=shares.ravel(), minlength=n_columns)
    assert sums.max() < 1.0 + 2e-3


def test_rows_without_worth_get_no_share(tiles, put):
    columns, worth = put(
        np.zeros((2, 3), dtype=np.int32), np.array([[-1e30] * 3, [0, -1e30, -3e38]], np.float32)
    )
    (shares,) = host(tiles.balance(columns, worth, surplus=True))
    assert shares.tolist() == [[0.0] * 3, [1.0, 0.0, 0.0]]


@pytest.mark.skipif(INTERPRETED, reason="runs the others of this file")
def test_kernels_do_the_same_in_the_interpreter():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    if torch.cuda.is_available():
        pytest.skip("a GPU runs the kernels themselves")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
