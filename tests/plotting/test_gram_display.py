import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.decomposition import PCA

from unshuffle.datasets import digit_sets
from unshuffle.kernels import MeanMapKernel
from unshuffle.plotting import GramDisplay


@pytest.fixture(scope="module")
def clouds():
    return digit_sets(30, n_points=30)


@pytest.fixture
def line():
    """Similarities of 24 items on a line, shuffled, and the place of each."""
    place = np.random.default_rng(0).permutation(24)
    return np.exp(-np.square(np.subtract.outer(place, place)) / 20), place


def drawn(display):
    return np.asarray(display.ax_.images[0].get_array())


def test_items_on_a_line_are_put_back_in_order(line):
    K, place = line
    steps = np.diff(place[GramDisplay.from_predictions(K).order])
    assert set(steps) in ({1}, {-1})


def test_relabelling_items_changes_nothing_but_the_direction(line):
    K, _ = line
    other = np.random.default_rng(1).permutation(24)
    found = other[GramDisplay.from_predictions(K[np.ix_(other, other)]).order]
    order = GramDisplay.from_predictions(K).order
    assert found.tolist() in (order.tolist(), order[::-1].tolist())


def test_the_map_shows_the_kernel_in_that_order(clouds):
    kernel = MeanMapKernel()
    display = GramDisplay.from_estimator(kernel, clouds.sets).plot()
    np.testing.assert_allclose(display.gram, kernel.gram(clouds.sets))
    np.testing.assert_array_equal(drawn(display), display.gram[display.order][:, display.order])
    assert np.array_equal(np.sort(display.order), np.arange(30))
    assert not hasattr(kernel, "n_features_in_")


def test_neighbors_are_more_alike_than_on_the_first_component(clouds):
    display = GramDisplay.from_estimator(MeanMapKernel(outer="rbf"), clouds.sets)
    K = display.gram
    first = np.argsort(PCA(1).fit_transform(K)[:, 0])
    alike = [np.diag(K[np.ix_(rows, rows)], 1).mean() for rows in (display.order, first)]
    assert alike[0] > alike[1]


def test_strips_and_legend_tell_the_kinds(clouds):
    names = np.array(["three" if label == 3 else "nine" for label in clouds.labels])
    display = GramDisplay.from_estimator(MeanMapKernel(), clouds.sets, names).plot()
    _, left, top = (np.asarray(image.get_array()) for image in display.ax_.images)
    np.testing.assert_array_equal(left[:, 0], top[0])
    same = (left[:, 0] == left[0, 0]).all(axis=1)
    np.testing.assert_array_equal(same, names[display.order] == names[display.order[0]])
    texts = [each.get_text() for each in display.ax_.get_legend().get_texts()]
    assert texts == ["nine", "three"]
    assert display.plot(legend=False).ax_.get_legend() is None


def test_an_order_of_ones_own_is_kept(line):
    K, place = line
    display = GramDisplay.from_predictions(K, order=np.argsort(place)).plot()
    values = drawn(display)
    assert (np.diff(values[0]) < 0).all()


def test_the_diagonal_does_not_drain_the_rest_of_color():
    K = np.full((20, 20), 0.1) + np.diag(np.full(20, 100.0))
    K[:10, :10] += 0.1
    low, high = GramDisplay.from_predictions(K).plot().ax_.images[0].get_clim()
    assert (low, high) == pytest.approx((0.1, 0.2))


@pytest.mark.parametrize("K", [[[2.0, 1.0], [1.0, 2.0]], np.ones((6, 6)), np.eye(4)])
def test_small_and_flat_matrices_can_be_drawn(K):
    display = GramDisplay.from_predictions(K).plot()
    display.figure_.canvas.draw()
    assert len(display.order) == len(K)


def test_axes_given_are_drawn_on(line):
    ax = plt.subplots()[1]
    display = GramDisplay.from_predictions(line[0]).plot(ax)
    assert display.ax_ is ax
    with pytest.raises(TypeError, match="`ax` must be matplotlib Axes"):
        display.plot(3)


def test_bad_input_is_refused(line, clouds):
    K, _ = line
    with pytest.raises(TypeError, match="has no method `gram`"):
        GramDisplay.from_estimator(PCA(), clouds.sets)
    with pytest.raises(ValueError, match=r"`labels` must be 24 labels"):
        GramDisplay.from_predictions(K, [1, 2])
    with pytest.raises(ValueError, match="`order` must hold each number from 0 to 23 once"):
        GramDisplay.from_predictions(K, order=np.zeros(24, int))
    with pytest.raises(ValueError, match="square kernel matrix"):
        GramDisplay.from_predictions(K[:5])
