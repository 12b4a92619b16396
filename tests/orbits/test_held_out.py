"""Films of a picture that turns: what a fit says about frames that it has not seen."""

import re
import warnings

import numpy as np
import pytest
from scipy.linalg import expm

from unshuffle import OrbitLearner
from unshuffle.base import DoubtWarning


def picture(degrees, width, size=12):
    """Bumps on a dark disc, turned."""
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    angle = np.radians(degrees)
    u, v = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    places = [(2.5, 0, 1), (-1, 2, 0.8), (-2, -2.5, 0.6), (0.5, -3, 0.9), (3, 2.5, 0.5)]
    return sum(s * np.exp(-((u - a) ** 2 + (v - b) ** 2) / width) for a, b, s in places).ravel()


def film(degrees, width=2.0):
    return np.array([picture(each, width) for each in degrees])


def learn(degrees, *args, n_components=10, width=2.0, **options):
    pairs = [(i + 1, i) for i in range(len(degrees) - 1)]
    learner = OrbitLearner(
        *args, pairs=pairs, n_components=n_components, random_state=0, **options
    )
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        learner.fit(film(degrees, width))
    doubts = [one.message for one in issued if one.category is DoubtWarning]
    assert len(doubts) == bool(learner.doubts_)
    return learner, doubts


def error(learner, degrees, width=2.0):
    unseen = film(degrees, width)
    missed = unseen - learner.inverse_transform(learner.transform(unseen))
    return np.sqrt(np.sum(missed**2) / np.sum((unseen - learner.mean_) ** 2))


QUARTER = 4.0 * np.arange(25)


def test_part_of_a_turn_is_learned_as_one_rotation():
    learner, _ = learn(QUARTER)
    assert learner.n_generators_ == 1
    np.testing.assert_allclose(learner.generators_[0], -learner.generators_[0].T, atol=1e-9)
    assert error(learner, QUARTER[:-1] + 2) < 0.05
    assert learner.held_out_error_ < 0.1


@pytest.mark.parametrize("step", [6.0, 8.0])
def test_the_error_beyond_a_film_is_predicted_and_doubted(step):
    degrees = step * np.arange(16)
    learner, doubts = learn(degrees, n_components=10, width=1.0)
    truth = error(learner, degrees[-1] + step * np.arange(1, 4), width=1.0)
    assert truth / 3 < learner.extrapolation_error_ < 3 * truth
    assert learner.extrapolation_error_ > 0.1
    assert re.search(r"last fifth .* is \d+% off.*ass a larger part", str(doubts[0]))


def test_a_full_turn_has_nothing_beyond_and_no_doubt():
    degrees = 10.0 * np.arange(36)
    learner, doubts = learn(degrees, n_components=16)
    assert np.isnan(learner.extrapolation_error_)
    assert error(learner, degrees + 5) / 2 < learner.held_out_error_ < 0.1
    assert not doubts


def test_too_many_generators_are_doubted():
    learner, doubts = learn(8.0 * np.arange(12), 6, n_components=6, width=0.5)
    assert learner.held_out_error_ > 0.1
    assert "fewer generators than 6" in str(doubts[0])


def test_targets_left_out_are_predicted():
    rng = np.random.default_rng(0)
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
    X = rng.normal(size=(40, 3))
    learner = OrbitLearner(1, random_state=0).fit(X, X @ expm(0.3 * turn).T)
    assert learner.held_out_error_ < 1e-6
    assert np.isnan(learner.extrapolation_error_)
    with pytest.warns(DoubtWarning, match="Vectors left out of a fit between others are"):
        OrbitLearner(1, random_state=0, tol=0.1).fit(X, rng.normal(size=X.shape))


def test_an_arc_is_not_doubted_and_few_rows_tell_nothing(arc):
    learner = OrbitLearner(random_state=0).fit(arc)
    assert learner.held_out_error_ < 1e-6
    assert learner.extrapolation_error_ < 1e-6
    assert learner.doubts_ == []
    assert np.isnan(OrbitLearner(1, random_state=0).fit(arc[:6]).held_out_error_)


def test_rows_of_several_orbits_are_compared_with_near_rows():
    circle = [np.cos(angle := np.linspace(0, 1, 20)), np.sin(angle)]
    X = np.concatenate([np.column_stack(circle), 3 * np.column_stack(circle)])
    pairs = [(i + 1, i) for i in range(39) if i != 19]
    learner = OrbitLearner(1, pairs=pairs, random_state=0).fit(X)
    assert learner.held_out_error_ < 1e-6
    assert np.isnan(learner.extrapolation_error_)
