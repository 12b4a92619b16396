"""Scores and assignments of two collections that are known by their factors."""

import numpy as np
import pytest
from scipy import sparse

from unshuffle import KernelizedSorting
from unshuffle.assignment import solve_assignment
from unshuffle.matching._all_pairs.tiles import Tiles
from unshuffle.matching._low_rank import pair as _factor_pair
from unshuffle.matching._low_rank.factors import compute_factors
from unshuffle.matching._low_rank.pair import FactorPair, Likelihood, Scores, whitening

NO_PAIRS = np.empty((0, 2), dtype=np.intp)


def factors(X, rank=112):
    return compute_factors(X, "rbf", gamma=None, weights=None, name="X", rank=rank)


def pair_of(n_first, n_second, frozen=NO_PAIRS, cost=None):
    rng = np.random.default_rng(0)
    sides = (rng.normal(size=(n, 4)) * [2, 1.5, 1, 0.5] for n in (n_first, n_second))
    return FactorPair(*(factors(X) for X in sides), np.asarray(frozen), cost)


def random_scores(n_first, n_second, seed=1):
    rng = np.random.default_rng(seed)
    queries, keys = (rng.normal(size=(n, 5)).astype(np.float32) for n in (n_first, n_second))
    return Scores(3 * queries, keys, rng.normal(size=n_second).astype(np.float32))


def all_pairs(scores):
    return scores.queries.astype(np.float64) @ scores.keys.T + scores.bias


@pytest.fixture
def by_auction(monkeypatch):
    """Assign by auction what would be few enough for the exact solver."""
    monkeypatch.setattr(Tiles, "exact", 20)


def total(benefit, matching):
    return benefit[np.arange(len(matching)), matching].sum()


@pytest.mark.parametrize("shape", [(300, 300), (300, 517)])
def test_few_items_are_assigned_exactly(shape):
    scores = random_scores(*shape)
    with Tiles(1) as tiles:
        found = pair_of(*shape).assign(tiles, scores)
    benefit = all_pairs(scores)
    best = total(benefit, solve_assignment(benefit, maximize=True).columns)
    assert total(benefit, found) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(("shape", "lost"), [((300, 300), 0.08), ((300, 517), 0.02)])
def test_an_auction_comes_near_the_best_assignment(by_auction, shape, lost):
    scores = random_scores(*shape)
    with Tiles(1) as tiles:
        found = pair_of(*shape).assign(tiles, scores)
    assert np.unique(found).size == shape[0]
    benefit = all_pairs(scores)
    best = total(benefit, solve_assignment(benefit, maximize=True).columns)
    chance = benefit.mean() * shape[0]
    assert total(benefit, found) > best - lost * (best - chance)


def test_rows_that_want_the_same_columns_share_the_rest(by_auction, monkeypatch):
    monkeypatch.setattr(_factor_pair, "MOST_ROUNDS", 2)
    scores = random_scores(300, 300)
    keys = np.zeros_like(scores.keys)
    keys[:40] = 100.0  # and all others are alike
    same = Scores(np.abs(scores.queries), keys, np.zeros(300, dtype=np.float32))
    with Tiles(1) as tiles:
        found = pair_of(300, 300).assign(tiles, same)
    assert np.array_equal(np.sort(found), np.arange(300))


@pytest.mark.parametrize("exact", [True, False])
def test_frozen_pairs_are_kept_and_cost_no_one_a_column(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr(Tiles, "exact", 20)
    frozen = np.array([[5, 0], [0, 5], [299, 400], [17, 17]])
    with Tiles(1) as tiles:
        found = pair_of(300, 517, frozen).assign(tiles, random_scores(300, 517))
    assert np.array_equal(found[frozen[:, 0]], frozen[:, 1])
    assert np.unique(found).size == 300


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("exact", [True, False])
def test_a_cost_rules_pairs_out(kind, exact, monkeypatch):
    scores = random_scores(300, 300)
    with Tiles(1) as tiles:
        free = pair_of(300, 300).assign(tiles, scores)
        if not exact:
            monkeypatch.setattr(Tiles, "exact", 20)
        cost = np.zeros((300, 300), dtype=np.float32)
        cost[np.arange(300), free] = 1e4
        found = pair_of(300, 300, cost=kind(cost)).assign(tiles, scores)
    assert not np.any(found == free)
    assert np.array_equal(np.sort(found), np.arange(300))


def test_keeping_frozen_pairs_swaps_partners():
    pair = pair_of(6, 8, [[0, 3], [4, 7]])
    found = pair.keep_frozen(np.array([0, 1, 2, 3, 4, 5]))
    assert found.tolist() == [3, 1, 2, 0, 7, 5]


def test_the_objective_is_that_of_the_kernel_matrices():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2)) * [2, 1]
    y = X + 0.1 * rng.normal(size=X.shape)
    matching = np.append(np.arange(100), 100 + rng.permutation(100))
    frozen = np.column_stack([np.arange(200), matching])
    dense = KernelizedSorting("rbf", method="classic", trust=False).fit(X, y, frozen=frozen)
    assert np.array_equal(dense.permutation_, matching)
    low_rank = FactorPair(factors(X), factors(y), NO_PAIRS).objective(matching)
    assert low_rank == pytest.approx(dense.objective_, rel=1e-4)


def test_agreement_is_one_for_the_same_items_and_small_for_others():
    X = np.random.default_rng(3).normal(size=(400, 4)) * [2, 1.5, 1, 0.5]
    order = np.random.default_rng(4).permutation(400)
    pair = FactorPair(factors(X), factors(X[order]), NO_PAIRS)
    assert pair.agreement(np.argsort(order)) == pytest.approx(1.0, abs=1e-3)
    assert pair.agreement(order) < 0.3


def test_a_part_has_the_frozen_pairs_and_costs_of_its_items():
    cost = np.arange(30.0).reshape(5, 6)
    pair = pair_of(5, 6, [[0, 3], [4, 1]], cost)
    part = pair.part(np.array([4, 2]), np.array([1, 5, 0]))
    assert part.frozen.tolist() == [[0, 0]]
    assert part.cost.tolist() == [[25.0, 29.0, 24.0], [13.0, 17.0, 12.0]]
    np.testing.assert_array_equal(part.first.scores, pair.first.scores[[4, 2]])


def test_balanced_scores_ask_for_every_column_alike():
    scores = random_scores(300, 517)
    scores.bias[:20] += 10
    with Tiles(1) as tiles:
        balanced = scores.balanced(tiles, 60)
    shares = all_pairs(balanced)
    shares = np.exp(shares - shares.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.sum(axis=0), 300 / 517, rtol=0.05)


def test_scores_of_pairs_are_those_of_all_pairs():
    scores = random_scores(30, 40)
    rows, columns = np.array([3, 7, 29]), np.array([0, 39, 20])
    expected = all_pairs(scores)[rows, columns]
    np.testing.assert_allclose(scores.of_pairs(rows, columns), expected, rtol=1e-4, atol=1e-4)


def test_likelihood_scores_are_log_ratios_of_gaussians():
    rng = np.random.default_rng(5)
    rho = np.array([0.9, 0.5])
    F = rng.normal(size=(4000, 2))
    G = rho * F + np.sqrt(1 - rho**2) * rng.normal(size=F.shape)
    F, G = F.astype(np.float32), G.astype(np.float32)
    M = np.asarray(F.T @ G, dtype=np.float64) / 4000
    likelihood = Likelihood.of(M, (whitening(F), whitening(G)), 0.9999)
    np.testing.assert_allclose(np.sort(likelihood.correlations)[::-1], rho, atol=0.04)
    scores = all_pairs(likelihood.scores(Tiles(1), F[:20], G[:30]))
    u, v = F[:20, None].astype(np.float64), G[:30].astype(np.float64)
    # The density of v given u, less that of v: all that depends on v.
    ratios = -0.5 * (v - rho * u) ** 2 / (1 - rho**2) + 0.5 * v**2
    expected = ratios.sum(axis=2)
    found = scores - scores.mean(axis=1, keepdims=True)
    expected -= expected.mean(axis=1, keepdims=True)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.99
    information = -0.5 * np.log(1 - rho**2).sum()
    assert likelihood.information == pytest.approx(information, rel=0.1)
