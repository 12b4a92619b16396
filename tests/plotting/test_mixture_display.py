import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.path import Path
from scipy.stats import chi2

from unshuffle.datasets import digit_sets
from unshuffle.kernels import BhattacharyyaKernel, ExpectedLikelihoodKernel, MeanMapKernel
from unshuffle.plotting import MixtureDisplay


@pytest.fixture(scope="module")
def clouds():
    return digit_sets(6, n_points=40)


@pytest.fixture
def normal():
    """Many points of one Gaussian in space, and its mixture of one component."""
    covariance = np.array([[4.0, 1.5, 0.0], [1.5, 1.0, 0.3], [0.0, 0.3, 2.0]])
    points = np.random.default_rng(0).multivariate_normal([5, -2, 0], covariance, size=4000)
    return points, (np.ones(1), np.array([[5.0, -2.0, 0.0]]), covariance[None])


def ellipses(display):
    return [each for each in display.ax_.collections if isinstance(each, PolyCollection)]


@pytest.mark.parametrize("columns", [(0, 1), (1, 2), (2, 0)])
def test_rings_hold_the_share_of_points_that_their_deviations_say(normal, columns):
    points, mixture = normal
    display = MixtureDisplay.from_predictions([points], [mixture]).plot(columns=columns)
    placed = np.asarray(display.ax_.collections[0].get_offsets())
    outer, inner = (each.get_paths()[0].vertices for each in ellipses(display))
    for ring, deviations in ((outer, 2), (inner, 1)):
        held = Path(ring).contains_points(placed).mean()
        assert held == pytest.approx(chi2.cdf(deviations**2, df=2), abs=0.025)


def test_columns_of_different_units_share_no_scale(normal):
    points, (weights, means, covariances) = normal
    stretch = np.array([1.0, 1000.0, 1.0])
    scaled = (weights, means * stretch, covariances * np.outer(stretch, stretch))
    plain, stretched = (
        MixtureDisplay.from_predictions([each], [mixture]).plot()
        for each, mixture in ((points, normal[1]), (points * stretch, scaled))
    )
    extent = np.ptp(ellipses(stretched)[0].get_paths()[0].vertices, axis=0)
    assert extent.min() > 0.3 * extent.max()
    placed = np.asarray(stretched.ax_.collections[0].get_offsets())
    ring = ellipses(stretched)[1].get_paths()[0].vertices
    assert Path(ring).contains_points(placed).mean() == pytest.approx(0.393, abs=0.025)
    assert len(ellipses(plain)) == 2


def test_the_mixtures_are_those_of_the_kernel(clouds):
    kernel = ExpectedLikelihoodKernel(3, random_state=0).fit(clouds.sets)
    display = MixtureDisplay.from_estimator(kernel, clouds.sets[:4], clouds.labels[:4]).plot()
    for found, expected in zip(display.mixtures, kernel.mixtures(clouds.sets[:4]), strict=True):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert [len(each.get_paths()) for each in ellipses(display)] == [3] * 8
    assert [each.get_text() for each in display.ax_.texts] == ["3", "9", "3", "9"]


def test_a_single_gaussian_is_one_pair_of_ellipses(clouds):
    kernel = BhattacharyyaKernel().fit(clouds.sets)
    display = MixtureDisplay.from_estimator(kernel, clouds.sets).plot(n_sets=2)
    assert [len(each.get_paths()) for each in ellipses(display)] == [1] * 4


def test_larger_shares_are_more_opaque():
    points = np.random.default_rng(0).normal(size=(30, 2))
    mixture = (np.array([0.1, 0.9]), np.zeros((2, 2)), np.stack([np.eye(2)] * 2))
    display = MixtureDisplay.from_predictions([points], [mixture]).plot()
    for each in ellipses(display):
        small, large = each.get_facecolors()[:, 3]
        assert small < large


def test_bad_input_is_refused(normal, clouds):
    points, mixture = normal
    with pytest.raises(TypeError, match="which has no method `mixtures`"):
        MixtureDisplay.from_estimator(MeanMapKernel().fit(clouds.sets), clouds.sets)
    with pytest.raises(ValueError, match="`mixtures` has 1 entries for 2 sets"):
        MixtureDisplay.from_predictions([points, points], [mixture])
    with pytest.raises(ValueError, match="Mixture 0 has weights, means and covariances of shapes"):
        MixtureDisplay.from_predictions([points[:, :2]], [mixture])
    with pytest.raises(ValueError, match="Mixture 0 of `mixtures` must be weights"):
        MixtureDisplay.from_predictions([points], [3])
    with pytest.raises(ValueError, match="NaN"):
        MixtureDisplay.from_predictions([points], [(mixture[0], mixture[1] * np.nan, mixture[2])])
    with pytest.raises(ValueError, match="Mixture 0 has weights from 0 to 0"):
        MixtureDisplay.from_predictions([points], [(0 * mixture[0], *mixture[1:])])
    with pytest.raises(ValueError, match="cannot be drawn in the plane"):
        MixtureDisplay.from_predictions([points[:, :1]], [mixture])
    display = MixtureDisplay.from_predictions([points], [mixture])
    with pytest.raises(ValueError, match="`columns` must be 2 different columns from 0 to 2"):
        display.plot(columns=(1, 1))
    with pytest.raises(ValueError, match="`n_columns` must be at least 1"):
        display.plot(n_columns=0)
    assert not plt.get_fignums()
