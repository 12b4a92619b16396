import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from unshuffle.datasets import make_paired_views
from unshuffle.plotting import MatchDisplay


@pytest.fixture
def views():
    return make_paired_views(30, noise=0.0, bend=0.0, n_latent=2, random_state=0)


def lines_of(display):
    (lines,) = (
        each
        for each in display.ax_.collections
        if isinstance(each, matplotlib.collections.LineCollection)
        and each is not None
        and len(each.get_segments())
    )
    return lines


def test_one_line_is_drawn_for_each_pair(views):
    X, y, truth = views
    permutation = truth.copy()
    permutation[:4] = -1
    display = MatchDisplay.from_predictions(X, y, permutation).plot()
    assert len(lines_of(display).get_segments()) == 26
    filled, hollow, filled_y, hollow_y = (
        len(each.get_offsets())
        for each in display.ax_.collections
        if isinstance(each, matplotlib.collections.PathCollection)
    )
    assert (filled, hollow, filled_y, hollow_y) == (26, 4, 26, 4)


def test_lines_carry_the_confidence_and_axes_are_used_as_given(views):
    X, y, truth = views
    confidence = np.linspace(0, 1, 30)
    figure, ax = plt.subplots()
    display = MatchDisplay.from_predictions(X, y, truth, confidence=confidence).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    np.testing.assert_array_equal(lines_of(display).get_array(), confidence)


def test_maps_of_a_rotated_copy_are_laid_on_each_other(views):
    X, _, _ = views
    rng = np.random.RandomState(0)
    turn = np.linalg.qr(rng.randn(X.shape[1], X.shape[1]))[0]
    order = rng.permutation(30)
    display = MatchDisplay.from_predictions(X, (X @ turn)[order], np.argsort(order))
    np.testing.assert_allclose(
        display.positions_y[display.permutation], display.positions_x, atol=1e-8
    )


def test_kernels_of_a_shuffled_copy_look_the_same(views):
    X, _, _ = views
    order = np.random.RandomState(0).permutation(30)
    display = MatchDisplay.from_predictions(X, X[order], np.argsort(order)).plot_kernels()
    first, second = (image.get_array() for image in display.ax_.images)
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_display_does_not_change_what_it_was_given(views):
    X, y, truth = views
    copies = X.copy(), y.copy(), truth.copy()
    MatchDisplay.from_predictions(X, y, truth).plot().plot_kernels()
    for before, after in zip(copies, (X, y, truth), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.filterwarnings("ignore::UserWarning")  # small, so it may be ambiguous
def test_from_estimator_uses_its_kernels_and_results(views):
    from unshuffle import KernelizedSorting

    X, y, _ = views
    sorting = KernelizedSorting(kernel="linear", random_state=0).fit(X, y)
    display = MatchDisplay.from_estimator(sorting, X, y)
    np.testing.assert_allclose(display.gram_x, X @ X.T)
    np.testing.assert_array_equal(display.permutation, sorting.permutation_)
    np.testing.assert_array_equal(display.confidence, sorting.confidence_)
    kernels = {"kernel": ["linear", "rbf"], "kernel_weights": [1.0, 0.0]}
    weighted = KernelizedSorting(**kernels, random_state=0).fit(X, y)
    gram = MatchDisplay.from_estimator(weighted, X, y).gram_x
    np.testing.assert_allclose(gram / gram.max(), X @ X.T / (X @ X.T).max())


def test_an_estimator_that_was_not_fitted_is_refused(views):
    from unshuffle import KernelizedSorting

    with pytest.raises(NotFittedError, match="KernelizedSorting"):
        MatchDisplay.from_estimator(KernelizedSorting(), *views[:2])


def test_kernels_of_a_match_without_pairs_are_refused(views):
    display = MatchDisplay.from_predictions(*views[:2], np.full(30, -1))
    with pytest.raises(ValueError, match="None of the 30 items of X has a partner"):
        display.plot_kernels()
    assert not plt.get_fignums()
    display.plot()
    display.permutation[3] = 3
    with pytest.raises(ValueError, match="Only one of the 30 items of X has a partner"):
        display.plot_kernels()
    display.plot()


def test_lines_are_thinned_out_where_they_would_hide_each_other():
    X, y, truth = make_paired_views(400, random_state=0)
    display = MatchDisplay.from_predictions(X, y, truth).plot()
    assert len(lines_of(display).get_segments()) == 300
    assert len(lines_of(display.plot(max_lines=400)).get_segments()) == 400


def test_a_wrong_permutation_is_refused(views):
    X, y, _ = views
    with pytest.raises(ValueError, match="uses item 0 of y"):
        MatchDisplay.from_predictions(X, y, np.zeros(30, int))


@pytest.mark.filterwarnings("ignore::UserWarning")  # small, so it may be ambiguous
def test_from_estimator_names_collections_of_another_size(views):
    from unshuffle import KernelizedSorting

    X, y, _ = views
    sorting = KernelizedSorting(trust=False).fit(X, y)
    with pytest.raises(ValueError, match="X has 5 items, but the estimator was fitted to 30"):
        MatchDisplay.from_estimator(sorting, X[:5], y)
