import numpy as np

from unshuffle._bags import Bags, canonical_order
from unshuffle._sizes import equal_sizes, gathered


def points(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def test_sorted_bags_do_not_depend_on_the_order_given():
    rng = np.random.default_rng(2)
    bags = [np.repeat(points(n), 2, axis=0) for n in (1, 5, 30)]
    mixed = Bags.of([rng.permutation(each) for each in bags]).sorted()
    np.testing.assert_array_equal(mixed.points, Bags.of(bags).sorted().points)
    np.testing.assert_array_equal(mixed[1], bags[1][canonical_order(bags[1])])


def test_a_part_of_the_bags_is_these_bags():
    bags = Bags.of([points(3), points(5), points(2), points(4)])
    part = bags.part(1, 3)
    assert part.sizes.tolist() == [5, 2]
    np.testing.assert_array_equal(part[1], bags[2])


def test_the_canonical_order_does_not_depend_on_the_order_given():
    X = np.repeat(points(), 2, axis=0)
    mixed = np.random.default_rng(1).permutation(X)
    np.testing.assert_array_equal(mixed[canonical_order(mixed)], X[canonical_order(X)])


def test_every_point_is_copied_as_often_as_any_other():
    bags = Bags.of([points(7), points(23), points(10)])
    chosen = equal_sizes(bags, 23, missing=False, seed=0)
    assert np.bincount(chosen[0]).min() == 3
    assert np.bincount(chosen[0]).max() == 4
    np.testing.assert_array_equal(np.sort(chosen[1]), np.arange(23))
    assert gathered(bags, chosen).shape == (3, 23, 2)
    fewer = equal_sizes(bags, 5, missing=False, seed=0)
    assert all(np.unique(each).size == 5 for each in fewer)
    assert not np.array_equal(chosen, equal_sizes(bags, 23, missing=False, seed=1))


def test_missing_points_are_marked_and_zero():
    bags = Bags.of([points(3), points(5)])
    chosen = equal_sizes(bags, 5, missing=True, seed=0)
    assert chosen[0, 3:].tolist() == [-1, -1]
    assert not gathered(bags, chosen)[0, 3:].any()
