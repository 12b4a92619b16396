import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unshuffle.alignment._paper import bound_costs, variational_sweep
from unshuffle.alignment._sweeps import Arrangement
from unshuffle.alignment._volume import log_volume

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=20, deadline=None)
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
@settings(max_examples=10, deadline=None)
def test_a_variational_sweep_never_raises_the_log_volume(seed):
    points = np.random.default_rng(seed).normal(size=(6, 7, 2))
    present = np.ones((6, 7), dtype=bool)
    bags = Arrangement.ordered(points, present, np.tile(np.arange(7), (6, 1)))
    before = log_volume(bags.points, ridge=0.1)
    variational_sweep(bags, ridge=0.1)
    assert log_volume(bags.points, ridge=0.1) <= before + 1e-9
