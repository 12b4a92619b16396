import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._assign.linear import nearest_order, nearest_orders
from unshuffle.alignment._sweeps import (
    BagOrders,
    best_swaps,
    covariance_sweep,
    filled,
    mean_sweep,
    position_means,
    swap_curvature,
    swap_slopes,
    trace,
)
from unshuffle.alignment._volume import log_volume

seeds = st.integers(0, 2**32 - 1)


def arranged(seed, n_bags=6, n_points=7, *, missing=False):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_bags, n_points, 2))
    present = np.ones((n_bags, n_points), dtype=bool)
    if missing:
        present = np.arange(n_points) < rng.integers(2, n_points + 1, size=n_bags)[:, None]
        present[0] = True
        points *= present[:, :, None]
    order = np.tile(np.arange(n_points), (n_bags, 1))
    return BagOrders(points.copy(), order, present), points


def test_the_nearest_order_is_the_best_of_all():
    rng = np.random.default_rng(0)
    target, points = rng.normal(size=(2, 5, 3))
    distances = {
        order: np.sum((points[list(order)] - target) ** 2)
        for order in itertools.permutations(range(5))
    }
    assert tuple(nearest_order(target, points)) == min(distances, key=distances.get)


def test_many_bags_are_assigned_as_each_alone():
    rng = np.random.default_rng(1)
    targets, points = rng.normal(size=(2, 4, 6, 2))
    together = nearest_orders(targets, points)
    alone = [nearest_order(*each) for each in zip(targets, points, strict=True)]
    np.testing.assert_array_equal(together, alone)
    toward_one = nearest_orders(targets[0], points)
    np.testing.assert_array_equal(toward_one[2], nearest_order(targets[0], points[2]))


@given(seeds, st.booleans())
def test_a_mean_sweep_never_raises_the_trace_and_keeps_the_points(seed, missing):
    bags, given_points = arranged(seed, missing=missing)
    values = [trace(bags)]
    for _ in range(20):
        moved = mean_sweep(bags)
        values.append(trace(bags))
        if not moved:
            break
    assert moved == 0
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] < values[0]
    kept = np.take_along_axis(given_points, bags.order[:, :, None], axis=1)
    np.testing.assert_array_equal(bags.points, kept)
    np.testing.assert_array_equal(np.sort(bags.order, axis=1)[0], np.arange(7))
    assert not np.any(bags.points[~bags.present])


def test_no_single_bag_can_lower_the_trace_after_the_mean_sweeps():
    bags, _ = arranged(2, n_bags=4, n_points=5, missing=True)
    while mean_sweep(bags):
        pass
    settled = trace(bags)
    for t, order in itertools.product(range(4), itertools.permutations(range(5))):
        other = BagOrders(bags.points.copy(), bags.order.copy(), bags.present.copy())
        other.move(t, np.array(order))
        assert trace(other) >= settled - 1e-12


@given(seeds, st.sampled_from([0.01, 0.1, 1.0]), st.booleans())
def test_a_covariance_sweep_never_raises_the_log_volume(seed, ridge, swaps):
    bags, given_points = arranged(seed)
    values = [log_volume(bags.points, ridge=ridge)]
    for _ in range(15):
        moved = covariance_sweep(bags, ridge=ridge, swaps=swaps)
        values.append(log_volume(bags.points, ridge=ridge))
        if not moved:
            break
    assert np.all(np.diff(values) <= 1e-9)
    assert values[-1] < values[0]
    kept = np.take_along_axis(given_points, bags.order[:, :, None], axis=1)
    np.testing.assert_array_equal(bags.points, kept)


def test_every_bag_that_moves_lowers_the_log_volume():
    bags, _ = arranged(4, n_bags=8, n_points=9)
    values = [log_volume(bags.points, ridge=0.1)]
    move = BagOrders.move

    class Watched(BagOrders):
        def move(self, bag, columns):
            move(self, bag, columns)
            values.append(log_volume(self.points, ridge=0.1))

    watched = Watched(bags.points, bags.order, bags.present)
    covariance_sweep(watched, ridge=0.1, swaps=True)
    assert len(values) > 8
    assert np.all(np.diff(values) < 0)


def test_a_large_ridge_makes_the_covariance_sweep_a_mean_sweep():
    bags, _ = arranged(5)
    other, _ = arranged(5)
    mean_sweep(bags)
    covariance_sweep(other, ridge=1e9)
    np.testing.assert_array_equal(bags.order, other.order)


def test_after_swaps_no_exchange_of_two_points_lowers_the_volume():
    bags, _ = arranged(6, n_bags=5, n_points=6)
    while covariance_sweep(bags, ridge=0.1, swaps=True):
        pass
    settled = log_volume(bags.points, ridge=0.1)
    for t, (i, j) in itertools.product(range(5), itertools.combinations(range(6), 2)):
        points = bags.points.copy()
        points[t, [i, j]] = points[t, [j, i]]
        assert log_volume(points, ridge=0.1) >= settled - 1e-9


def form(d, B):
    return np.sum(d**2) - np.sum(np.tensordot(B, d, axes=2) ** 2)


def test_slope_and_curvature_are_the_change_of_the_form():
    rng = np.random.default_rng(7)
    x, d = rng.normal(size=(2, 5, 2))
    B = 0.3 * rng.normal(size=(20, 5, 2))
    slope = d - np.tensordot(np.tensordot(B, d, axes=2), B, axes=1)
    changes = swap_slopes(x, slope) + swap_curvature(x, B)
    np.testing.assert_allclose(np.diag(changes), 0, atol=1e-12)
    for i, j in itertools.combinations(range(5), 2):
        moved = x.copy()
        moved[[i, j]] = x[[j, i]]
        expected = form(d + moved - x, B) - form(d, B)
        assert changes[i, j] == pytest.approx(expected) == pytest.approx(changes[j, i])


@given(seeds)
def test_swaps_end_where_no_swap_helps(seed):
    rng = np.random.default_rng(seed)
    x, mean = rng.normal(size=(2, 8, 2))
    B = 0.2 * rng.normal(size=(3, 8, 2))
    columns = best_swaps(x, mean, B)
    np.testing.assert_array_equal(np.sort(columns), np.arange(8))
    settled = form(x[columns] - mean, B)
    assert settled <= form(x - mean, B)
    if np.array_equal(best_swaps(x[columns], mean, B), np.arange(8)):
        for i, j in itertools.combinations(range(8), 2):
            swapped = columns.copy()
            swapped[[i, j]] = columns[[j, i]]
            assert form(x[swapped] - mean, B) >= settled - 1e-8


def test_a_missing_point_counts_as_the_mean_of_its_position():
    bags, _ = arranged(8, missing=True)
    means = position_means(bags)
    whole = filled(bags)
    np.testing.assert_array_equal(whole[bags.present], bags.points[bags.present])
    bag, position = np.argwhere(~bags.present)[0]
    np.testing.assert_array_equal(whole[bag, position], means[position])
    assert trace(bags) == pytest.approx(whole.var(axis=0).sum())


def test_all_bags_are_assigned_to_the_reference():
    _, points = arranged(9)
    present = np.ones(points.shape[:2], dtype=bool)
    bags = BagOrders.assigned_to(points, present, 3)
    np.testing.assert_array_equal(bags.points[3], points[3])
    for t in range(6):
        np.testing.assert_array_equal(bags.order[t], nearest_order(points[3], points[t]))
