import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from sklearn.model_selection import GridSearchCV

from unshuffle import OrbitLearner
from unshuffle.orbits._algebra import complete_algebra, structure_constants
from unshuffle.orbits._problem import MatrixSpace

SCALING = np.array([np.diag([1.0, 0, -1]) / 2**0.5, np.diag([0.5, -1, 0.5]) / 1.5**0.5])


def test_a_third_generator_of_a_patch_of_a_sphere_is_a_rotation(wedge, so3, angle_between):
    learner = OrbitLearner(3, random_state=0).fit(wedge())
    assert learner.n_generators_ == 3
    assert learner.n_determined_ == 2
    assert angle_between(learner.generators_, so3) < 1e-6
    assert learner.closure_ < 1e-6
    c = np.random.default_rng(0).normal(size=(50, 3))
    lengths = np.linalg.norm(learner.orbit(learner.prototype_, c), axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(learner.sample(20, 0), axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_a_third_generator_of_a_noisy_patch_warns(wedge, noise):
    with pytest.warns(UserWarning, match=r"determine 2 of the 3 .*Pass n_generators=2"):
        learner = OrbitLearner(3, random_state=0).fit(wedge(n=200, seed=3, noise=noise))
    assert learner.n_determined_ == 2


def test_a_fourth_generator_of_a_sphere_warns(wedge):
    with pytest.warns(UserWarning, match="determine 2 of the 4"):
        OrbitLearner(4, random_state=0).fit(wedge())


def test_a_second_generator_of_a_circle_warns(arc):
    with pytest.warns(UserWarning, match="determine 1 of the 2"):
        OrbitLearner(2, random_state=0).fit(arc)


@pytest.mark.parametrize("structure", ["general", "symmetric", "diagonal"])
def test_a_third_scaling_warns_because_scalings_commute(moved, structure):
    with pytest.warns(UserWarning, match="determine 2 of the 3"):
        OrbitLearner(3, structure=structure, random_state=0).fit(moved(SCALING))


@pytest.mark.slow
def test_rotations_of_several_vectors_determine_three_generators(so3):
    turns = expm(np.tensordot(np.random.default_rng(0).uniform(-1, 1, (80, 3)), so3, axes=1))
    X = np.concatenate([turns @ [1.0, 0, 0.3], turns @ [0, 1.0, -0.2]], axis=1)
    learner = OrbitLearner(3, random_state=0, n_init=1).fit(X)
    assert learner.n_determined_ == 3


def test_rotations_onto_targets_give_all_three_without_a_warning(so3, angle_between):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    turns = expm(np.tensordot(rng.uniform(-1, 1, (80, 3)), so3, axes=1))
    learner = OrbitLearner(3, random_state=0).fit(X, np.einsum("nij,nj->ni", turns, X))
    assert angle_between(learner.generators_, so3) < 1e-6


def test_a_noisy_patch_suggests_no_generator_that_fits_noise(wedge):
    learner = OrbitLearner(random_state=0).fit(wedge(n=200, noise=0.03))
    assert learner.n_generators_ == learner.n_determined_ == 2


@given(seed=st.integers(0, 1000))
def test_any_two_rotations_are_completed_to_an_algebra(seed):
    space = MatrixSpace.of(3, "general", None)
    A = np.random.default_rng(seed).normal(size=(2, 3, 3))
    flat = space.coordinates(A - A.transpose(0, 2, 1))
    pair = np.linalg.qr(flat.T)[0].T
    found = complete_algebra(space, pair, 3)
    assert found is not None
    np.testing.assert_allclose(found @ found.T, np.eye(3), atol=1e-9)
    assert structure_constants(space.matrices(found))[1] < 1e-9
    assert complete_algebra(space, pair, 4) is None


def test_commutators_of_another_structure_complete_nothing():
    space = MatrixSpace.of(2, "symmetric", None)
    pair = space.coordinates(np.array([np.diag([1.0, -1.0]), [[0, 1], [1, 0]]]) / 2**0.5)
    assert complete_algebra(space, pair, 3) is None
    # the commutator is a rotation, and the three span sl(2)
    anything = MatrixSpace.of(2, "general", None)
    assert complete_algebra(anything, anything.coordinates(space.matrices(pair)), 3) is not None


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_score_of_held_out_rows_chooses_the_number(arc, wedge, moved, noise):
    rng = np.random.default_rng(1)
    for X, number in ((arc, 1), (wedge(), 2), (moved(SCALING), 2)):
        noisy = X + noise * rng.normal(size=X.shape)
        grid = {"n_generators": [1, 2, 3][: X.shape[1]]}
        learner = OrbitLearner(random_state=0, n_init=1, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # too many generators warn
            search = GridSearchCV(learner, grid, cv=3).fit(rng.permutation(noisy))
        assert search.best_params_ == {"n_generators": number}


def test_the_score_of_held_out_targets_falls_with_a_generator_too_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
    onto = np.einsum("nij,nj->ni", expm(rng.uniform(-1, 1, (60, 1, 1)) * turn), X)
    onto += 0.01 * rng.normal(size=X.shape)
    scores = []
    for k in (1, 2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner = OrbitLearner(k, random_state=0, tol=1e-3).fit(X[:40], onto[:40])
        scores.append(learner.score(X[40:], onto[40:]))
    assert np.argmax(scores) == 0


def test_rows_near_the_orbit_score_higher_than_rows_beside_it(arc):
    learner = OrbitLearner(1, random_state=0).fit(arc)
    assert learner.score(arc) > learner.score(1.01 * arc) > learner.score(1.1 * arc)
    labels = np.arange(len(arc))
    assert learner.score(arc, labels) == learner.score(arc)


def test_rows_alone_cannot_be_scored_after_a_fit_to_targets(arc):
    learner = OrbitLearner(1, random_state=0).fit(arc[:-1], arc[1:])
    with pytest.raises(ValueError, match=r"fitted to targets.*Pass y"):
        learner.score(arc)
    with pytest.raises(ValueError, match=r"`y` has shape \(3, 2\)"):
        learner.score(arc, arc[:3])
