import numpy as np
import pytest

from unshuffle import MinimumVolumePCA, MultiwaySorting


def scatter(bags, permutations):
    ordered = np.stack([bag[p] for bag, p in zip(bags, permutations, strict=True)])
    return np.sum((ordered - ordered.mean(axis=0)) ** 2) / len(bags)


def test_a_given_order_is_where_the_descent_starts(copies):
    bags, _ = copies(noise=0.3)
    rng = np.random.default_rng(0)
    init = np.stack([rng.permutation(30) for _ in bags])
    found = MinimumVolumePCA(init=init).fit(bags)
    assert found.objective_path_[0] == pytest.approx(scatter(bags, init))
    assert found.objective_path_[-1] == pytest.approx(scatter(bags, found.permutations_))
    assert found.objective_path_[-1] < found.objective_path_[0]


def test_a_converged_order_stays(copies):
    bags, _ = copies(noise=0.2)
    first = MinimumVolumePCA().fit(bags)
    again = MinimumVolumePCA(init=first.permutations_).fit(bags)
    np.testing.assert_array_equal(again.permutations_, first.permutations_)
    assert again.n_iter_ == 1


def test_multiway_sorting_gives_a_start(copies):
    bags, orders = copies(noise=0.05)
    start = MultiwaySorting(n_init=1, random_state=0).fit(list(bags[:5])).permutations_
    found = MinimumVolumePCA(init=start).fit(bags[:5])
    assert found.objective_path_[0] == pytest.approx(scatter(bags[:5], start))
    assert found.objective_path_[-1] <= found.objective_path_[0]
    origin = np.stack([o[p] for o, p in zip(orders[:5], found.permutations_, strict=True)])
    assert np.mean(origin == origin[0]) > 0.9


@pytest.mark.parametrize(
    ("init", "words"),
    [
        (np.zeros((10, 30), dtype=int), "Row 0 of `init` is not an order of 30 points"),
        (np.zeros((10, 29), dtype=int), r"must hold integers and have shape \(10, 30\)"),
        (np.zeros((10, 30)), "dtype float64"),
    ],
)
def test_rows_that_are_not_orders_are_refused(copies, init, words):
    with pytest.raises(ValueError, match=words):
        MinimumVolumePCA(init=init).fit(copies()[0])


def test_bags_of_several_sizes_take_no_given_order(copies):
    bags = [bag[: 30 - k] for k, bag in enumerate(copies()[0])]
    with pytest.raises(ValueError, match="bags have from 21 to 30 points"):
        MinimumVolumePCA(init=np.tile(np.arange(30), (10, 1))).fit(bags)
