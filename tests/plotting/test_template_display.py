import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from unshuffle import MinimumVolumePCA, PermutationInvariantSVC, SetAligner
from unshuffle.datasets import digit_sets
from unshuffle.plotting import TemplateDisplay


@pytest.fixture(scope="module")
def clouds():
    return digit_sets(16, n_points=25)


@pytest.fixture(scope="module")
def aligner(clouds):
    return SetAligner(random_state=0).fit(clouds.sets)


@pytest.fixture
def copies():
    """One shape, six shifted copies in orders of their own, and the truth."""
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(9, 2))
    orders = np.array([rng.permutation(9) for _ in range(6)])
    bags = np.array([(shape + 0.1 * i)[order] for i, order in enumerate(orders)])
    return shape, bags, np.argsort(orders, axis=1)


def lines(display):
    found = [each for each in display.ax_.collections if isinstance(each, LineCollection)]
    return [np.array(each.get_segments()) for each in found]


def titles(display):
    return [each.get_text() for each in display.ax_.texts]


def test_lines_lead_from_slots_to_their_points(copies):
    shape, bags, truth = copies
    display = TemplateDisplay.from_predictions(shape, bags, truth).plot()
    np.testing.assert_allclose(display.sets, shape + 0.1 * np.arange(6)[:, None, None])
    ways = [np.diff(segments, axis=1)[:, 0] for segments in lines(display)]
    assert len(ways) == 6
    for i, way in enumerate(ways):
        # Every copy is shifted as a whole, so all its lines are alike.
        np.testing.assert_allclose(way, np.broadcast_to(i * ways[1][0], way.shape), atol=1e-9)


def test_a_point_has_the_color_of_its_slot(copies):
    shape, bags, truth = copies
    display = TemplateDisplay.from_predictions(shape, bags, truth).plot()
    scatters = [c for c in display.ax_.collections if not isinstance(c, LineCollection)]
    template, *others = (c.get_facecolors() for c in scatters)
    colored = [each for each in others if len(each) == 9]
    assert len(colored) == 6
    for each in colored:
        np.testing.assert_array_equal(each, template)


@pytest.mark.parametrize(
    "estimator", [SetAligner(), MinimumVolumePCA(2), PermutationInvariantSVC(kernel="rbf")]
)
def test_new_sets_are_aligned_by_the_estimator(estimator, clouds):
    fitted = estimator.fit(clouds.sets[:10], clouds.labels[:10])
    new = clouds.sets[10:]
    display = TemplateDisplay.from_estimator(fitted, new, clouds.labels[10:])
    expected = np.take_along_axis(new, fitted.align(new)[:, :, None], axis=1)
    np.testing.assert_array_equal(display.sets, expected)
    assert titles(display.plot()) == ["template", "3", "9", "3", "9", "3", "9"]


def test_only_the_first_sets_are_drawn(aligner, clouds):
    display = TemplateDisplay.from_estimator(aligner, clouds.sets)
    assert len(lines(display.plot())) == 7
    assert len(lines(display.plot(n_sets=3))) == 3
    assert len(lines(display.plot(n_sets=50, n_columns=4))) == 16


def test_panels_do_not_overlap(aligner, clouds):
    display = TemplateDisplay.from_estimator(aligner, clouds.sets).plot(n_sets=5, n_columns=2)
    boxes = [(each.min(axis=(0, 1)), each.max(axis=(0, 1))) for each in lines(display)]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (low > other_high).any() or (high < other_low).any()


def test_empty_slots_have_no_line(copies):
    shape, bags, truth = copies
    truth = truth.copy()
    truth[0, :4] = -1
    display = TemplateDisplay.from_predictions(shape, bags, truth).plot()
    assert [len(each) for each in lines(display)] == [5, 9, 9, 9, 9, 9]


def test_single_numbers_are_profiles_from_small_to_large():
    rng = np.random.default_rng(0)
    bags = rng.normal(size=(8, 6, 1))
    display = TemplateDisplay.from_estimator(SetAligner().fit(bags), bags).plot()
    template = display.ax_.collections[0].get_offsets()
    rows = np.asarray(template)[np.argsort(display.template[:, 0])]
    assert (np.diff(rows, axis=0) > 0).all()
    for segments in lines(display):
        np.testing.assert_allclose(np.diff(segments[..., 0], axis=1), 0, atol=1e-12)


def test_points_in_space_are_seen_from_the_side():
    rng = np.random.default_rng(0)
    bags = rng.normal(size=(5, 8, 3))
    display = TemplateDisplay.from_estimator(SetAligner().fit(bags), bags)
    seen = np.asarray(display.plot().ax_.collections[0].get_offsets())
    flat = np.asarray(display.plot(columns=(0, 1)).ax_.collections[0].get_offsets())
    assert seen.shape == flat.shape == (8, 2)
    x, y = display.template[:, :2].T
    assert np.corrcoef(flat[:, 0], x)[0, 1] == pytest.approx(1)
    assert np.corrcoef(flat[:, 1], y)[0, 1] == pytest.approx(1)
    assert abs(np.corrcoef(seen[:, 0], x)[0, 1]) < 0.999


def test_bad_input_is_refused(copies, aligner, clouds):
    shape, bags, truth = copies
    with pytest.raises(TypeError, match="which has no method `align`"):
        TemplateDisplay.from_estimator(PCA(), bags)
    with pytest.raises(NotFittedError):
        TemplateDisplay.from_estimator(SetAligner(), bags)
    with pytest.raises(ValueError, match=r"need \(9, 2\). Pass `template_`"):
        TemplateDisplay.from_predictions(shape[:4], bags, truth)
    with pytest.raises(ValueError, match="`permutations` must be whole numbers"):
        TemplateDisplay.from_predictions(shape, bags, truth[:2])
    display = TemplateDisplay.from_predictions(shape, bags, truth)
    with pytest.raises(ValueError, match="2 or 3 different columns from 0 to 1, got"):
        display.plot(columns=(0, 2))
    with pytest.raises(ValueError, match="`n_sets` must be at least 1"):
        display.plot(n_sets=0)
    with pytest.raises(ValueError, match="`labels` must be 16 labels"):
        TemplateDisplay.from_estimator(aligner, clouds.sets, ["a"])
    assert not plt.get_fignums()


def test_several_templates_are_refused(clouds):
    bags = [*clouds.sets[:9]]
    machine = PermutationInvariantSVC(margin_weight=0.01, n_points=5, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        machine.fit(bags, np.arange(9) % 3)
    with pytest.raises(ValueError, match="has 3 templates, one for each class"):
        TemplateDisplay.from_estimator(machine, bags)
