import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from unshuffle import OrbitLearner

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.base.DoubtWarning")


def rotation(seed, d=3):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return expm(A - A.T)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rotating_the_input_rotates_the_generators(moved, angle_between, seed):
    generators = np.array([np.diag([1.0, 0, -1]), np.diag([0.5, -1, 0.5])])
    X, R = moved(generators), rotation(seed)
    plain = OrbitLearner(2, random_state=0).fit(X)
    turned = OrbitLearner(2, random_state=0).fit(X @ R.T)
    assert angle_between(turned.generators_, R @ plain.generators_ @ R.T) < 1e-6


@pytest.mark.parametrize("factor", [1e-60, 3.0, 1e60])
def test_a_common_factor_changes_nothing_but_the_cost(wedge, factor):
    X = wedge(n=60, noise=0.01)
    plain = OrbitLearner(2, random_state=0, tol=1e-3).fit(X)
    scaled = OrbitLearner(2, random_state=0, tol=1e-3).fit(factor * X)
    np.testing.assert_allclose(scaled.generators_, plain.generators_, atol=1e-5)
    np.testing.assert_allclose(scaled.objective_, plain.objective_ * factor**2, rtol=1e-4)
    np.testing.assert_allclose(scaled.transform(factor * X[:5]), plain.transform(X[:5]), atol=1e-3)


def test_the_order_of_rows_does_not_matter(arc):
    order = np.random.default_rng(0).permutation(len(arc))
    plain, mixed = (OrbitLearner(1, random_state=0).fit(each) for each in (arc, arc[order]))
    np.testing.assert_allclose(np.abs(plain.generators_), np.abs(mixed.generators_), atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "solver"), [("squared", "lbfgs"), ("logtrace", "lbfgs"), ("logtrace", "mm")]
)
def test_the_cost_never_rises_and_generators_are_orthonormal(wedge, loss, solver):
    X = wedge(n=40, noise=0.02)
    options = {"solver": solver, "n_init": 2, "n_neighbors": 4, "random_state": 0, "tol": 1e-2}
    learner = OrbitLearner(2, loss, "symmetric", **options).fit(X)
    assert np.all(np.diff(learner.objective_path_) <= 0)
    assert learner.objective_ == learner.objective_path_[-1]
    flat = learner.generators_.reshape(2, 9)
    np.testing.assert_allclose(flat @ flat.T, np.eye(2), atol=1e-10)
    squares = np.mean(learner.coefficients_**2, axis=0)
    assert squares[0] >= squares[1]
    across = learner.coefficients_.T @ learner.coefficients_
    np.testing.assert_allclose(across[0, 1], 0.0, atol=1e-8)


def test_both_solvers_of_the_log_trace_loss_agree(wedge):
    X = wedge(n=60)
    options = {"structure": "symmetric", "pairs": "prototype", "max_iter": 1000, "tol": 1e-10}
    found = [
        OrbitLearner(2, "logtrace", solver=name, **options).fit(X) for name in ("lbfgs", "mm")
    ]
    assert abs(found[0].objective_ - found[1].objective_) < 0.05


@pytest.mark.parametrize(("structure", "sign"), [("symmetric", 1), ("skew", -1), ("diagonal", 1)])
def test_generators_have_the_structure_asked_for(wedge, structure, sign):
    learner = OrbitLearner(2, structure=structure, random_state=0, tol=1e-3).fit(wedge(n=50))
    V = learner.generators_
    np.testing.assert_array_equal(V, sign * V.transpose(0, 2, 1))
    if structure == "diagonal":
        assert not (V * (1 - np.eye(3))).any()


def test_results_do_not_depend_on_threads(moved):
    X = moved(np.array([np.diag([1.0, 0, -1]), np.eye(3, k=1)]), n=40)
    options = {"n_init": 4, "random_state": 0, "tol": 1e-3, "pairs": "prototype"}
    one = OrbitLearner(2, n_jobs=1, **options).fit(X)
    two = OrbitLearner(2, n_jobs=2, **options).fit(X)
    np.testing.assert_array_equal(one.generators_, two.generators_)
    np.testing.assert_array_equal(one.coefficients_, two.coefficients_)


@given(c=st.floats(-3, 3), e=st.floats(-3, 3))
def test_moving_on_adds_up_and_back_comes_home(c, e):
    angle = np.radians(np.linspace(10, 80, 20))
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    learner = OrbitLearner(1, random_state=0).fit(X)
    once = learner.orbit(learner.orbit(X[0], [c]), [e])
    np.testing.assert_allclose(once, learner.orbit(X[0], [c + e]), atol=1e-9)
    np.testing.assert_allclose(learner.orbit(learner.orbit(X[0], [c]), [-c]), X[0], atol=1e-9)


def test_transform_and_back_returns_points_of_the_orbit(wedge):
    X = wedge(n=60)
    learner = OrbitLearner(2, random_state=0).fit(X)
    found = learner.transform(X)
    assert found.shape == (60, 2)
    np.testing.assert_allclose(learner.inverse_transform(found), X, atol=1e-6)
    np.testing.assert_array_equal(
        learner.inverse_transform(found[0]), learner.inverse_transform(found[:1])[0]
    )
    np.testing.assert_allclose(learner.transform(X[7:9]), found[7:9], atol=1e-9)


def test_samples_lie_on_the_orbit_and_repeat(wedge):
    learner = OrbitLearner(2, random_state=0).fit(wedge(n=60))
    drawn = learner.sample(50, random_state=3)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(drawn, learner.sample(50, random_state=3))
    assert not np.array_equal(drawn, learner.sample(50, random_state=4))
    # as wide as the data, not as the distances between neighbors
    assert drawn.std(axis=0).max() > 0.1


def test_inputs_and_parameters_stay_as_they_are(arc):
    kept, pairs = arc.copy(), np.array([[0, 1], [1, 2], [3, 4]])
    learner = OrbitLearner(1, pairs=pairs, prototype=arc[0])
    before = learner.get_params()
    learner.fit(arc).transform(arc)
    np.testing.assert_array_equal(arc, kept)
    assert all(learner.get_params()[name] is value for name, value in before.items())


def test_a_fit_can_be_pickled_cloned_and_searched(arc):
    learner = OrbitLearner(1, random_state=0).fit(arc)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.transform(arc[:3]), learner.transform(arc[:3]))
    assert not hasattr(clone(learner), "generators_")
    grid = {"structure": ["skew", "diagonal"]}
    search = GridSearchCV(OrbitLearner(1, random_state=0, tol=1e-2), grid, cv=2).fit(arc)
    assert search.best_params_ == {"structure": "skew"}


def test_where_points_are_noisy_smooth_flows_extrapolate(wedge):
    X = wedge(n=200, noise=0.01)
    learner = OrbitLearner(2, prototype=wedge(n=1)[0], random_state=0).fit(X)
    a, e = np.radians(np.random.default_rng(1).uniform(-20, 110, (2, 60)))
    unseen = np.column_stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    missed = unseen - learner.inverse_transform(learner.transform(unseen))
    assert np.sqrt(np.mean(np.sum(missed**2, axis=1))) < 0.04
