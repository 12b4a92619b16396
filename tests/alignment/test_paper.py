import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import few

from unshuffle.alignment._paper import bound_costs, variational_sweep
from unshuffle.alignment._sweeps import BagOrders
from unshuffle.alignment._volume import log_volume

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_the_papers_bound_holds_for_every_order(seed):
    rng = np.random.default_rng(seed)
    x, pull = rng.normal(size=(2, 4, 2))
    directions = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    weights = rng.exponential(size=8)
    costs = bound_costs(x, pull, weights, directions)
    for order in itertools.permutations(range(4)):
        moved = x[list(order)]
        cost = 0.5 * np.sum(weights * (directions @ moved.ravel()) ** 2) - np.sum(pull * moved)
        assert costs[np.arange(4), list(order)].sum() >= cost - 1e-9


@given(seeds)
@few
def test_a_variational_sweep_never_raises_the_log_volume(seed):
    points = np.random.default_rng(seed).normal(size=(6, 7, 2))
    present = np.ones((6, 7), dtype=bool)
    bags = BagOrders.ordered(points, present, np.tile(np.arange(7), (6, 1)))
    before = log_volume(bags.points, ridge=0.1)
    variational_sweep(bags, ridge=0.1)
    assert log_volume(bags.points, ridge=0.1) <= before + 1e-9


def test_the_printed_weights_of_the_inverse_covariance_are_negative():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(4, 9))
    S = Y.T @ Y / 4
    values, vectors = np.linalg.eigh(S)
    values, vectors = values[-4:], vectors[:, -4:]  # the span of the data
    e1, e2 = 0.3, 0.2
    weights = -values / (e1 * (values + e1))
    M = np.linalg.inv(S + e1 * np.eye(9)) + e2 * np.eye(9)
    np.testing.assert_allclose(M, (vectors * weights) @ vectors.T + (1 / e1 + e2) * np.eye(9))
    assert (weights < 0).all()


def test_the_papers_bound_does_not_touch_the_cost():
    rng = np.random.default_rng(1)
    x, pull = rng.normal(size=(2, 5, 2))
    directions = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    weights = rng.exponential(size=10)
    terms = np.einsum("jik,ik->ji", directions.reshape(10, 5, 2), x)  # of each position
    linear = np.sum(pull * x)
    cost = 0.5 * np.sum(weights * terms.sum(axis=1) ** 2) - linear
    bound = 0.5 * np.sum(weights * np.abs(terms).sum(axis=1) ** 2) - linear
    assert np.trace(bound_costs(x, pull, weights, directions)) == pytest.approx(bound)
    assert bound > cost + 1.0


def test_the_papers_bound_is_flat_in_delta(monkeypatch):
    rng = np.random.default_rng(2)
    x, pull = rng.normal(size=(2, 5, 2))
    directions = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    weights = rng.exponential(size=10)
    found = []
    for delta in (0.0, 0.3, 1.0):
        monkeypatch.setattr("unshuffle.alignment._paper.MIX", delta)
        found.append(bound_costs(x, pull, weights, directions))
    np.testing.assert_allclose([np.trace(each) for each in found], np.trace(found[0]))
    assert not np.allclose(found[0], found[1])  # but it decides the next assignment
