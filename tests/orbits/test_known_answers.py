import numpy as np
import pytest
from scipy.linalg import expm, logm

from unshuffle import OrbitLearner
from unshuffle.base import DoubtWarning

TURN = np.array([[[0.0, -1.0], [1.0, 0.0]]]) / np.sqrt(2)
SCALING = np.array([np.diag([1.0, 0, -1]) / 2**0.5, np.diag([0.5, -1, 0.5]) / 1.5**0.5])
SHEAR = np.eye(3, k=1)[None]
SYMMETRIC = np.array(
    [
        [[0.3, 0.5, -0.2], [0.5, -0.4, 0.3], [-0.2, 0.3, 0.1]],
        [[-0.5, 0.1, 0.4], [0.1, 0.2, 0.2], [0.4, 0.2, 0.3]],
    ]
)


def beyond(learner, points):
    missed = points - learner.inverse_transform(learner.transform(points))
    return float(np.sqrt(np.mean(np.sum(missed**2, axis=1))))


@pytest.mark.parametrize("structure", ["general", "skew"])
@pytest.mark.parametrize("pairs", ["knn", "prototype", "all"])
def test_an_arc_gives_the_rotations_of_the_plane(arc, angle_between, structure, pairs):
    learner = OrbitLearner(1, structure=structure, pairs=pairs, random_state=0).fit(arc)
    assert angle_between(learner.generators_, TURN) < 1e-6
    angle = np.radians(np.linspace(-135, 225, 50))
    assert beyond(learner, np.column_stack([np.cos(angle), np.sin(angle)])) < 1e-6


def test_a_wedge_of_the_sphere_gives_rotations_of_space(wedge, so3):
    learner = OrbitLearner(2, random_state=0).fit(wedge())
    flat = learner.generators_.reshape(2, 9)
    inside = flat @ so3.reshape(3, 9).T @ so3.reshape(3, 9)
    np.testing.assert_allclose(inside, flat, atol=1e-6)
    a, e = np.radians(np.random.default_rng(1).uniform(-20, 110, (2, 40)))
    unseen = np.column_stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    assert beyond(learner, unseen) < 1e-6


def test_the_whole_sphere_suggests_three_rotations(so3, angle_between):
    X = np.random.default_rng(0).normal(size=(150, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner = OrbitLearner(random_state=0).fit(X)
    assert learner.n_generators_ == 3
    assert angle_between(learner.generators_, so3) < 1e-4
    assert learner.closure_ < 1e-4
    # [V_i, V_j] = +-V_c / sqrt(2) in any orthonormal basis of the rotations
    constants = learner.structure_constants_
    np.testing.assert_allclose(np.abs(constants[0, 1, 2]), np.sqrt(0.5), atol=1e-4)
    np.testing.assert_allclose(constants, -constants.transpose(1, 0, 2), atol=1e-12)


def test_an_arc_suggests_one_generator(arc):
    learner = OrbitLearner(random_state=0).fit(arc)
    assert learner.n_generators_ == 1
    assert learner.spectrum_.size > 1
    assert np.all(np.diff(learner.spectrum_) <= 0)


@pytest.mark.parametrize("structure", ["general", "symmetric", "diagonal"])
def test_scaling_is_recovered(moved, angle_between, structure):
    learner = OrbitLearner(2, structure=structure, random_state=0).fit(moved(SCALING))
    assert angle_between(learner.generators_, SCALING) < 1e-5
    assert learner.closure_ == 0.0
    np.testing.assert_allclose(learner.structure_constants_, 0.0, atol=1e-6)


def test_a_shear_which_has_one_eigenvector_only_is_recovered(angle_between):
    rng = np.random.default_rng(0)
    start = rng.uniform(0.5, 1.5, (40, 3))
    amount = rng.uniform(-2, 2, 40)
    onto = np.einsum("nij,nj->ni", expm(amount[:, None, None] * SHEAR), start)
    learner = OrbitLearner(1, random_state=0).fit(start, onto)
    assert angle_between(learner.generators_, SHEAR) < 1e-6
    np.testing.assert_allclose(
        np.abs(learner.coefficients_[:, 0]), np.sqrt(2) * np.abs(amount), atol=1e-6
    )


def test_a_pair_of_symmetric_generators_extrapolates(moved):
    X = moved(SYMMETRIC)
    options = {"structure": "symmetric", "pairs": "prototype", "random_state": 0}
    learner = OrbitLearner(2, prototype=[1.0, 1.2, 0.9], **options).fit(X)
    coefficients = np.random.default_rng(1).uniform(-1, 1, (40, 2))
    unseen = expm(np.tensordot(coefficients, SYMMETRIC, axes=1)) @ [1.0, 1.2, 0.9]
    assert beyond(learner, unseen) < 1e-4


@pytest.mark.parametrize("solver", ["lbfgs", "mm"])
def test_the_log_trace_loss_learns_scaling(moved, angle_between, solver):
    X = moved(SCALING)
    options = {
        "pairs": "prototype",
        "solver": solver,
        "prototype": [1.0, 1.2, 0.9],
        "error_weight": 1e3,
    }
    learner = OrbitLearner(loss="logtrace", structure="diagonal", **options).fit(X)
    assert learner.n_generators_ == 2
    assert angle_between(learner.generators_, SCALING) < 1e-3
    assert beyond(learner, moved(SCALING, seed=1)) < 1e-3


def test_the_log_trace_loss_does_not_learn_rotations(arc):
    angle = np.radians(np.linspace(100, 200, 20))
    unseen = np.column_stack([np.cos(angle), np.sin(angle)])
    with pytest.warns(DoubtWarning, match="left out of a fit, is [0-9]+% off"):
        learner = OrbitLearner(1, "logtrace", "symmetric").fit(arc)
    assert beyond(learner, unseen) > 0.3


def test_rows_are_carried_onto_their_targets(so3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    coefficients = rng.uniform(-1, 1, (50, 2))
    A = np.tensordot(coefficients, so3[:2], axes=1)
    onto = np.einsum("nij,nj->ni", expm(A), X)
    learner = OrbitLearner(2, random_state=0).fit(X, onto)
    for i in (0, 7):
        np.testing.assert_allclose(
            learner.orbit(X[i], learner.coefficients_[i]), onto[i], atol=1e-6
        )
    assert np.array_equal(learner.pairs_[:, 0], learner.pairs_[:, 1])
    assert learner.sample(3, random_state=0).shape == (3, 3)


def test_labels_are_ignored(arc):
    plain = OrbitLearner(1, random_state=0).fit(arc)
    labeled = OrbitLearner(1, random_state=0).fit(arc, np.arange(len(arc)))
    np.testing.assert_array_equal(plain.generators_, labeled.generators_)


def test_pairs_of_ones_own_give_the_way_between(arc):
    order = np.argsort(arc[:, 1])
    pairs = np.stack([order[1:], order[:-1]], axis=1)
    learner = OrbitLearner(1, pairs=pairs, random_state=0).fit(arc)
    np.testing.assert_array_equal(learner.pairs_, pairs)
    steps = np.diff(np.arctan2(arc[order, 1], arc[order, 0]))
    np.testing.assert_allclose(np.abs(learner.coefficients_[:, 0]), steps * np.sqrt(2), atol=1e-7)


def test_a_pattern_keeps_its_zeros():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    V = np.zeros((4, 4))
    V[0, 1], V[1, 0] = -1, 1
    onto = np.einsum("nij,nj->ni", expm(rng.uniform(-1, 1, 40)[:, None, None] * V), X)
    pattern = np.zeros((4, 4), dtype=bool)
    pattern[:2, :2] = True
    for structure in ("general", "skew"):
        learner = OrbitLearner(1, structure=structure, pattern=pattern).fit(X, onto)
        assert not learner.generators_[0][~pattern].any()
        assert learner.objective_ < 1e-12


def test_constraints_hold_for_every_pair(moved):
    X = moved(SCALING)
    G, h = np.zeros((1, 9)), np.array([0.1])
    G[0, 0] = 1.0  # the first entry of the diagonal stays below .1
    options = {"pairs": "prototype", "prototype": [1.0, 1.2, 0.9], "structure": "diagonal"}
    free = OrbitLearner(3, "logtrace", **options).fit(X)
    bound = OrbitLearner(3, "logtrace", constraints=(G, h), **options).fit(X)
    A_free = np.tensordot(free.coefficients_, free.generators_, axes=1)
    A_bound = np.tensordot(bound.coefficients_, bound.generators_, axes=1)
    assert A_free[:, 0, 0].max() > 0.2
    assert A_bound[:, 0, 0].max() <= 0.1 + 1e-9
    assert np.all(np.diff(bound.objective_path_) <= 0)
    assert bound.objective_ > free.objective_


def test_images_move_in_a_subspace():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(40, 3)))[0].T
    angle = np.linspace(0, 4, 30)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    X = 5 * axes[2] + circle @ axes[:2]
    pairs = np.stack([np.arange(1, 30), np.arange(29)], axis=1)
    options = {"n_components": 2, "center": 5 * axes[2], "random_state": 0}
    learner = OrbitLearner(1, pairs=pairs, **options).fit(X)
    assert learner.extrapolation_error_ < 1e-9
    assert learner.generators_.shape == (1, 2, 2)
    assert learner.components_.shape == (2, 40)
    assert learner.mean_.shape == (40,)
    np.testing.assert_allclose(learner.orbit(X[0], [0.0]), X[0], atol=1e-12)
    np.testing.assert_allclose(learner.orbit(X[3], learner.coefficients_[3]), X[4], atol=0.1)
    flow = learner.flow(X[0])
    assert flow.shape == (1, 40)
    slope = (learner.orbit(X[0], [1e-5]) - learner.orbit(X[0], [-1e-5])) / 2e-5
    np.testing.assert_allclose(flow[0], slope, atol=1e-7)


def test_a_prototype_may_be_a_row_or_a_vector(arc):
    by_row = OrbitLearner(1, pairs="prototype", prototype=5).fit(arc)
    np.testing.assert_array_equal(by_row.prototype_, arc[5])
    assert np.all(by_row.pairs_[:, 1] == 5)
    assert len(by_row.pairs_) == len(arc) - 1
    by_vector = OrbitLearner(1, pairs="prototype", prototype=arc[5]).fit(arc)
    assert np.all(by_vector.pairs_[:, 1] == -1)
    medoid = OrbitLearner(1).fit(arc).prototype_
    distances = np.linalg.norm(arc[:, None] - arc[None], axis=2).sum(axis=1)
    np.testing.assert_array_equal(medoid, arc[distances.argmin()])


def test_vectors_are_found_far_beyond_the_data(moved):
    learner = OrbitLearner(1, structure="diagonal", random_state=0)
    learner.fit(moved(np.diag([1.0, 0.0])[None]))
    far = np.array([[np.exp(20.0), 1.2], [np.exp(-15.0), 1.2]])
    found = learner.inverse_transform(learner.transform(far))
    np.testing.assert_allclose(found, far, rtol=1e-6, atol=1e-8)


def spiral(t):
    return np.exp(-0.15 * t)[:, None] * np.column_stack([np.cos(t), np.sin(t)])


@pytest.mark.parametrize(("first", "last"), [(0, 8), (0, 25), (-15, 0)])
def test_a_spiral_is_followed_for_many_turns(first, last):
    learner = OrbitLearner(1, prototype=0, random_state=0).fit(spiral(np.linspace(0, 2, 80)))
    t = np.linspace(first, last, 60)
    found = learner.transform(spiral(t))
    np.testing.assert_allclose(learner.inverse_transform(found), spiral(t), rtol=1e-8, atol=1e-8)
    # a unit of t is a coefficient of the norm of the generator
    norm = np.linalg.norm([[-0.15, -1], [1, -0.15]])
    np.testing.assert_allclose(np.abs(found[:, 0]), np.abs(t) * norm, atol=1e-6)


def test_the_shorter_way_around_a_circle_is_taken(arc):
    learner = OrbitLearner(1, prototype=0, random_state=0).fit(arc)
    start = np.arctan2(arc[0, 1], arc[0, 0])
    away = np.linspace(-3.1, 3.1, 40)
    found = learner.transform(np.column_stack([np.cos(start + away), np.sin(start + away)]))
    np.testing.assert_allclose(np.abs(found[:, 0]), np.abs(away) * np.sqrt(2), atol=1e-6)


def test_a_vector_beside_the_orbit_goes_to_the_closest_point(arc):
    learner = OrbitLearner(1, random_state=0).fit(arc)
    angle = np.linspace(-3, 3, 30)
    beside = 1.7 * np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(
        learner.inverse_transform(learner.transform(beside)), beside / 1.7, atol=1e-6
    )


@pytest.mark.parametrize("structure", ["general", "skew"])
def test_the_far_side_of_a_sphere_is_found(wedge, structure):
    learner = OrbitLearner(2, structure=structure, random_state=0).fit(wedge())
    X = np.random.default_rng(0).normal(size=(60, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert beyond(learner, X) < 1e-6


def test_a_constraint_that_lies_far_away_is_met(moved):
    G, h = -np.eye(4)[:1], np.array([-5e6])
    learner = OrbitLearner(2, "logtrace", "diagonal", constraints=(G, h), random_state=0)
    learner.fit(moved(np.diag([1.0, 0.0])[None]))
    A = np.tensordot(learner.coefficients_, learner.generators_, axes=1)
    assert A[:, 0, 0].min() >= 5e6 * (1 - 1e-9)


@pytest.mark.parametrize("d", [6, 20])
def test_a_film_is_learned_about_as_well_as_by_the_logarithm_of_its_map(d):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(d, d)) / np.sqrt(d)
    step, vectors = expm(0.1 * (A - A.T)), [rng.normal(size=d)]
    for _ in range(71):
        vectors.append(step @ vectors[-1])
    X = np.array(vectors) + 1e-3 * rng.normal(size=(72, d))
    pairs = np.column_stack([np.arange(1, 72), np.arange(71)])
    learner = OrbitLearner(1, pairs=pairs, random_state=0).fit(X)
    by_logarithm = logm(np.linalg.lstsq(X[:-1], X[1:], rcond=None)[0].T).real
    missed = np.sum((X[1:] - X[:-1] @ expm(by_logarithm).T) ** 2)
    assert learner.objective_ < 2 * missed
    assert learner.converged_


def test_opposite_steps_are_not_taken_for_one_motion():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 40)
    turn = np.where(np.arange(40) % 2, 0.3, -0.3)
    X, y = (np.column_stack([np.cos(a), np.sin(a)]) for a in (angle, angle + turn))
    learner = OrbitLearner(1, random_state=0).fit(X, y)
    assert learner.objective_ < 1e-12
    np.testing.assert_allclose(np.abs(learner.coefficients_[:, 0]), 0.3 * np.sqrt(2), rtol=1e-6)
