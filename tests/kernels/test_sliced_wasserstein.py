import numpy as np
import pytest

from unshuffle.kernels import SlicedWassersteinKernel, median_gamma
from unshuffle.kernels.sets._sliced_wasserstein import interval_means, spread_directions


def squared(K, gamma=1.0):
    return -np.log(K) / gamma


def transport(a, b):
    """Mean squared difference of two quantile functions, cut where either steps."""
    levels = np.unique(
        np.concatenate([np.arange(a.size + 1) / a.size, np.arange(b.size + 1) / b.size])
    )
    middles = (levels[1:] + levels[:-1]) / 2
    a, b = np.sort(a), np.sort(b)
    gaps = a[(middles * a.size).astype(int)] - b[(middles * b.size).astype(int)]
    return float((gaps**2 * np.diff(levels)).sum())


def test_on_a_line_points_move_in_their_order():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(64, 1)), rng.normal(size=(64, 1)) + 0.3
    K = SlicedWassersteinKernel(gamma=1.0).gram([a], [b])
    assert squared(K)[0, 0] == pytest.approx(((np.sort(a[:, 0]) - np.sort(b[:, 0])) ** 2).mean())


def test_sizes_that_divide_the_number_of_quantiles_are_exact():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(size, 3)) for size in (2, 3, 4, 6, 12)]
    kernel = SlicedWassersteinKernel(9, gamma=0.1, n_quantiles=12, random_state=0).fit(bags)
    found = squared(kernel.transform(bags), 0.1)
    for i, a in enumerate(bags):
        for j, b in enumerate(bags):
            gaps = [transport(a @ way, b @ way) for way in kernel.directions_]
            assert found[i, j] == pytest.approx(np.mean(gaps), abs=1e-10)


def test_other_sizes_come_closer_from_below_the_more_quantiles_there_are():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(53, 1)), rng.normal(size=(71, 1))
    exact = transport(a[:, 0], b[:, 0])
    found = [
        squared(SlicedWassersteinKernel(gamma=1.0, n_quantiles=q).gram([a], [b]))[0, 0]
        for q in (4, 32, 256, 4096)
    ]
    assert found == sorted(found)
    assert found[-1] < exact < 1.01 * found[-1]


def test_in_the_plane_few_directions_are_as_good_as_many():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(40, 2)) @ rng.normal(size=(2, 2)) for _ in range(6)]
    few = squared(SlicedWassersteinKernel(20, gamma=0.1).fit_transform(bags))
    many = squared(SlicedWassersteinKernel(1000, gamma=0.1).fit_transform(bags))
    np.testing.assert_allclose(few, many, atol=0.01 * many.max())


def test_moving_a_set_costs_the_square_of_the_way():
    rng = np.random.default_rng(0)
    bag = rng.normal(size=(30, 3))
    kernel = SlicedWassersteinKernel(999, gamma=1.0, random_state=0)
    K = kernel.gram([bag], [bag + np.array([0.6, 0.0, 0.0])])
    assert squared(K)[0, 0] == pytest.approx(0.36 / 3, rel=1e-10)  # a third of it per axis


def test_the_default_width_is_the_median_of_the_fitted_sets():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(10, 2)) + i for i in range(7)]
    kernel = SlicedWassersteinKernel().fit(bags)
    D = squared(SlicedWassersteinKernel(gamma=0.1).fit_transform(bags), 0.1)
    assert kernel.gamma_ == pytest.approx(median_gamma(np.maximum(D, 0)))


def test_the_default_width_does_not_depend_on_the_order_of_many_sets():
    rng = np.random.default_rng(0)
    bags = rng.normal(size=(700, 3, 2)) + rng.normal(size=(700, 1, 2))
    one = SlicedWassersteinKernel(4, n_quantiles=3).fit(bags)
    other = SlicedWassersteinKernel(4, n_quantiles=3).fit(bags[::-1])
    assert one.gamma_ == other.gamma_


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_means_over_intervals_keep_the_mean(size):
    values = np.sort(np.random.default_rng(0).normal(size=size))
    weights = interval_means(size, 12)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    assert (values @ weights).mean() == pytest.approx(values.mean())
    assert np.all(np.diff(values @ weights) >= -1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_directions_have_length_one_and_spread_evenly(width):
    ways = spread_directions(10 * width, width, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(ways, axis=1), 1.0)
    np.testing.assert_allclose(ways.T @ ways / len(ways), np.eye(width) / width, atol=1e-12)


def test_a_width_needs_two_different_sets():
    with pytest.raises(ValueError, match="`gamma` is set by the distances between sets"):
        SlicedWassersteinKernel().fit([[[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(ValueError, match="all 2 sets are the same"):
        SlicedWassersteinKernel().fit([[[0.0, 1.0]], [[0.0, 1.0]]])


def test_directions_too_many_for_memory_are_refused_before_they_are_drawn():
    bags = np.random.default_rng(0).normal(size=(3, 5, 3))
    with pytest.raises(MemoryError, match="smaller n_projections"):
        SlicedWassersteinKernel(10**12).fit(bags)


def test_weights_of_large_sets_are_few():
    assert interval_means(100_000, 64).nnz < 100_000 + 64
