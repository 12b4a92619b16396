import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from unshuffle._core.color import draw_points
from unshuffle.alignment import MinimumVolumePCA
from unshuffle.datasets import digit_sets
from unshuffle.plotting import AlignmentDisplay


@pytest.fixture(scope="module")
def bags():
    return digit_sets(16, n_points=25).sets


@pytest.fixture(scope="module")
def aligned(bags):
    return MinimumVolumePCA(random_state=0).fit(bags)


@pytest.fixture
def copies():
    """One shape stretched by different amounts, points shuffled, and the truth."""
    rng = np.random.RandomState(0)
    shape = rng.randn(12, 2)
    stretched = np.array([shape * [1 + 0.1 * k, 1] for k in range(8)])
    orders = np.array([rng.permutation(12) for _ in range(8)])
    shuffled = np.take_along_axis(stretched, orders[:, :, np.newaxis], axis=1)
    return shuffled, np.argsort(orders, axis=1), stretched


def test_spectra_are_those_of_ordinary_pca(copies):
    shuffled, truth, stretched = copies
    display = AlignmentDisplay.from_predictions(shuffled, truth)
    np.testing.assert_allclose(display.after, stretched)
    for found, bags in zip(display.spectra, (shuffled, stretched), strict=True):
        expected = PCA().fit(bags.reshape(8, -1)).explained_variance_ * 7 / 8
        np.testing.assert_allclose(found, expected[:7], atol=1e-10)
    # One number, how far it is stretched, tells the copies apart.
    before, after = display.components_for(0.999)
    assert after == 1
    assert before > 4


def test_the_spectrum_marks_both_counts(bags, aligned):
    display = AlignmentDisplay.from_estimator(aligned, bags).plot(share=0.9)
    before, after = display.components_for(0.9)
    assert after < before
    labels = [each.get_text() for each in display.ax_.get_legend().get_texts()]
    assert labels == [f"order as given: {before} for 90%", f"common order: {after} for 90%"]
    curves = [line.get_ydata() for line in display.ax_.lines if len(line.get_ydata()) == 16]
    assert [curve[-1] for curve in curves] == pytest.approx([1.0, 1.0])
    assert (curves[1] >= curves[0] - 1e-12).all()


def test_a_morph_starts_at_one_bag_and_ends_at_the_other(copies):
    shuffled, truth, stretched = copies
    display = AlignmentDisplay.from_predictions(shuffled, truth)
    display.plot_morph(1, 6, n_frames=5, compare=False)
    frames = [np.asarray(each.get_offsets()) for each in display.ax_.collections]
    assert len(frames) == 5

    def centered(points):
        return points - points.mean(axis=0)

    for frame, t in zip(frames, np.linspace(0, 1, 5), strict=True):
        between = (1 - t) * stretched[1] + t * stretched[6]
        np.testing.assert_allclose(centered(frame), centered(between), atol=1e-9)


def test_the_order_as_given_is_drawn_above(bags, aligned):
    display = AlignmentDisplay.from_estimator(aligned, bags).plot_morph(0, 1, n_frames=3)
    heights = [np.asarray(each.get_offsets())[:, 1].mean() for each in display.ax_.collections]
    assert len(heights) == 6
    assert max(heights[3:]) < min(heights[:3])
    assert [each.get_text() for each in display.ax_.texts] == ["order as given", "common order"]


def test_arrows_lead_from_each_point_to_its_partner(copies):
    shuffled, truth, stretched = copies
    display = AlignmentDisplay.from_predictions(shuffled, truth).plot_correspondence(0, 5)
    (arrows,) = (
        each for each in display.ax_.collections if isinstance(each, matplotlib.quiver.Quiver)
    )
    np.testing.assert_allclose(arrows.get_offsets(), stretched[0])
    ways = np.stack([arrows.U, arrows.V], axis=1)
    np.testing.assert_allclose(stretched[0] + ways, stretched[5], atol=1e-12)


def test_paths_end_together_and_axes_are_used_as_given(copies):
    figure, ax = plt.subplots()
    display = AlignmentDisplay.from_predictions(
        *copies[:2], objective_path=[9.0, 8, 7, 6], log_volume_path=[3.0, 2]
    ).plot_path(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    first, second = (each.lines[0] for each in figure.axes)
    assert first.get_xdata().tolist() == [2, 3]
    assert second.get_xdata().tolist() == [0, 1, 2, 3]


def test_estimators_bring_their_paths(bags, aligned):
    display = AlignmentDisplay.from_estimator(aligned, bags)
    np.testing.assert_array_equal(display.objective_path, aligned.objective_path_)
    np.testing.assert_array_equal(display.log_volume_path, aligned.log_volume_path_)
    display.plot_path()


def test_several_sorted_collections_can_be_shown(copies):
    from unshuffle import MultiwaySorting

    bags = copies[0][:3]
    sorting = MultiwaySorting(n_init=1, random_state=0).fit(list(bags))
    display = AlignmentDisplay.from_estimator(sorting, bags)
    np.testing.assert_array_equal(display.after[0], bags[0])
    np.testing.assert_array_equal(display.after[2], bags[2][sorting.permutations_[2]])
    assert display.log_volume_path is None
    display.plot_path().plot_morph()


def test_digits_keep_their_size_half_way_only_once_they_are_aligned(shared_data):
    data, rng = np.load(shared_data("mnist3000.npz")), np.random.RandomState(0)
    chosen = np.concatenate([np.flatnonzero(data["labels"] == digit)[:30] for digit in (3, 9)])
    ink = data["images"][chosen].astype(float)
    bags = np.stack([draw_points(each, 70, rng) for each in ink])
    display = AlignmentDisplay.from_estimator(MinimumVolumePCA().fit(bags), bags)

    def size(points):
        return np.sqrt(points.var(axis=1).sum(axis=1))

    def kept(ordered):
        threes, nines = ordered[:30], ordered[30:]
        return np.mean(size((threes + nines) / 2) / ((size(threes) + size(nines)) / 2))

    # Blending strangers draws them all to the middle, by 1 / sqrt(2) if they are independent.
    assert kept(display.before) < 0.78
    assert kept(display.after) > 0.9


def test_missing_points_are_taken_for_the_mean_of_their_partners():
    bags = [[[0.0, 0.0], [1.0, 0.0]], [[2.0, 2.0]], [[3.0, 0.0], [2.0, 4.0]]]
    display = AlignmentDisplay.from_predictions(bags, [[0, 1], [0, -1], [1, 0]])
    np.testing.assert_array_equal(display.after[1], [[2, 2], [2, 0]])


def test_display_does_not_change_what_it_was_given(copies):
    shuffled, truth, _ = copies
    before = shuffled.copy(), truth.copy()
    AlignmentDisplay.from_predictions(shuffled, truth).plot().plot_morph().plot_correspondence()
    np.testing.assert_array_equal(before[0], shuffled)
    np.testing.assert_array_equal(before[1], truth)


def test_equal_bags_need_no_component(copies):
    shape = copies[2][0]
    display = AlignmentDisplay.from_predictions([shape, shape], [np.arange(12)] * 2)
    assert display.components_for() == (0, 0)
    display.plot()


def test_an_estimator_that_was_not_fitted_is_refused(bags):
    with pytest.raises(NotFittedError, match="MinimumVolumePCA"):
        AlignmentDisplay.from_estimator(MinimumVolumePCA(), bags)


@pytest.mark.parametrize(
    ("permutations", "message"),
    [
        ([[0, 1], [0, 2]], "names point 2 of bag 1, which has 2 points"),
        ([[0, 1], [0, -2]], "names point -2 of bag 1"),
        ([[0, 1]], "for 2 bags, got shape"),
        (np.empty((2, 0), dtype=int), r"has shape \(2, 0\): it has no columns"),
        ([[0.0, 1.0], [1.0, 0.0]], "must be whole numbers"),
        ([[0, 1], [0]], "must be whole numbers"),
    ],
)
def test_orders_of_other_bags_are_refused(permutations, message):
    with pytest.raises(ValueError, match=message):
        AlignmentDisplay.from_predictions(np.arange(8.0).reshape(2, 2, 2), permutations)


def test_what_cannot_be_drawn_is_refused(copies):
    shuffled, truth, _ = copies
    display = AlignmentDisplay.from_predictions(shuffled, truth)
    with pytest.raises(ValueError, match="There is no path to draw"):
        display.plot_path()
    with pytest.raises(ValueError, match="`j` must be from 0 to 7"):
        display.plot_morph(0, 8)
    with pytest.raises(ValueError, match="`share`"):
        display.plot(share=0)
    flat = AlignmentDisplay.from_predictions(shuffled[:, :, :1], truth)
    with pytest.raises(ValueError, match="cannot be drawn in the plane"):
        flat.plot_morph()
    with pytest.raises(ValueError, match=r"1|single|one bag"):
        AlignmentDisplay.from_predictions(shuffled[:1], truth[:1])
    assert not plt.get_fignums()


def test_axes_that_are_none_are_refused(bags, aligned):
    display = AlignmentDisplay.from_estimator(aligned, bags)
    for ax in (5, plt.figure()):
        for draw in (display.plot, display.plot_path):
            with pytest.raises(TypeError, match="`ax` must be matplotlib Axes, got"):
                draw(ax=ax)
