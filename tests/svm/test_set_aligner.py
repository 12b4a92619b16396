import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.counts import few

from unshuffle import SetAligner


@parametrize_with_checks(
    [
        SetAligner(),
        SetAligner("ball", slack=0.2, kernel="rbf"),
        SetAligner(kernel="poly", unequal="rectangular"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_noisy_copies_are_put_into_one_order():
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(15, 2))
    orders = [rng.permutation(15) for _ in range(8)]
    sets = [(shape + 1e-3 * rng.normal(size=(15, 2)))[order] for order in orders]
    aligned = SetAligner().fit(sets)
    points = np.take_along_axis(np.array(orders), aligned.permutations_, axis=1)
    assert (points == points[0]).all()
    np.testing.assert_allclose(aligned.template_, shape[points[0]], atol=2e-3)
    assert aligned.objective_path_[-1] < 1e-4


def test_single_numbers_are_sorted():
    X = np.random.default_rng(0).normal(size=(12, 7, 1))
    np.testing.assert_array_equal(SetAligner().fit_transform(X), np.sort(X[:, :, 0], axis=1))


def test_sets_of_one_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_array_equal(SetAligner().fit_transform(X), X)


@few
@given(
    seed=st.integers(0, 1000),
    kernel=st.sampled_from(["linear", "rbf"]),
    unequal=st.sampled_from(["resample", "rectangular"]),
)
def test_order_inside_sets_changes_no_vector(seed, kernel, unequal):
    rng = np.random.default_rng(seed)
    # whole numbers: many points are equally far from a template point
    sets = [rng.integers(0, 4, size=(rng.integers(3, 8), 2)).astype(float) for _ in range(8)]
    other = [rng.permutation(points) for points in sets]
    aligner = SetAligner(kernel=kernel, unequal=unequal, random_state=0)
    np.testing.assert_array_equal(aligner.fit_transform(sets), aligner.fit_transform(other))
    np.testing.assert_array_equal(aligner.transform(sets), aligner.transform(other))


@pytest.mark.parametrize("template", ["mean", "ball"])
@pytest.mark.parametrize("unequal", ["resample", "rectangular"])
def test_objective_never_rises(ragged, template, unequal):
    aligned = SetAligner(template, unequal=unequal, tol=0, random_state=0).fit(ragged[0])
    path = aligned.objective_path_
    assert path.size == aligned.n_iter_ > 2
    assert (np.diff(path) <= 1e-9 * path[0]).all()


def test_objective_is_the_mean_squared_distance_from_the_template(shapes):
    aligned = SetAligner(tol=0).fit(shapes[0])
    apart = aligned.transform(shapes[0]) - aligned.template_.ravel()
    assert aligned.objective_path_[-1] == pytest.approx((apart**2).sum(axis=1).mean())


def test_objective_of_the_ball_is_its_squared_radius(shapes):
    aligned = SetAligner("ball", tol=0).fit(shapes[0])
    apart = aligned.transform(shapes[0]) - aligned.template_.ravel()
    assert aligned.objective_path_[-1] == pytest.approx((apart**2).sum(axis=1).max(), rel=1e-6)


def test_ball_with_slack_one_is_the_mean(shapes):
    ball = SetAligner("ball", slack=1.0).fit(shapes[0])
    mean = SetAligner("mean").fit(shapes[0])
    np.testing.assert_array_equal(ball.permutations_, mean.permutations_)


@pytest.mark.parametrize("unequal", ["resample", "rectangular"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_fitted_sets_are_transformed_as_in_the_fit(ragged, kernel, unequal):
    sets, _ = ragged
    aligner = SetAligner(kernel=kernel, unequal=unequal, tol=0.05, random_state=0)
    vectors = aligner.fit_transform(sets)
    np.testing.assert_array_equal(aligner.transform(sets), vectors)
    np.testing.assert_array_equal(aligner.align(sets), aligner.permutations_)


def test_permutations_lead_to_the_vectors(ragged):
    sets, _ = ragged
    aligner = SetAligner(random_state=0).fit(sets)
    ordered = [
        points[order].ravel() for points, order in zip(sets, aligner.permutations_, strict=True)
    ]
    np.testing.assert_array_equal(aligner.transform(sets), ordered)


def test_vectors_of_a_kernel_have_its_inner_products(shapes):
    sets, _ = shapes
    aligner = SetAligner(kernel="rbf", gamma=0.7, n_landmarks=1000).fit(sets)
    vectors = aligner.transform(sets)
    a, b = (sets[i][aligner.permutations_[i]] for i in (0, 1))
    expected = np.exp(-0.7 * ((a - b) ** 2).sum(axis=1)).sum()
    assert vectors[0] @ vectors[1] == pytest.approx(expected, rel=1e-6)


def test_rectangular_uses_all_points_of_small_sets_alike(ragged):
    sets, _ = ragged
    aligner = SetAligner(unequal="rectangular", n_points=10).fit(sets)
    for points, order in zip(sets, aligner.permutations_, strict=True):
        counts = np.bincount(order, minlength=len(points))
        assert counts.max() - counts.min() <= 1
        assert counts.max() == (1 if len(points) >= 10 else 2)


def test_number_of_threads_changes_nothing(shapes):
    sets, _ = shapes
    one, two = (SetAligner(kernel="rbf", n_jobs=n).fit_transform(sets) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_set_is_aligned_alike_whatever_stands_beside_it(ragged):
    sets, _ = ragged
    aligner = SetAligner(random_state=0).fit(sets)
    np.testing.assert_array_equal(aligner.transform(sets[:1])[0], aligner.transform(sets)[0])


def test_pickled_aligner_gives_the_same(ragged):
    sets, _ = ragged
    aligner = SetAligner(kernel="poly", random_state=0).fit(sets)
    again = pickle.loads(pickle.dumps(aligner))
    np.testing.assert_array_equal(again.transform(sets), aligner.transform(sets))


def test_grid_search_over_ragged_sets(ragged):
    sets, y = ragged
    pipeline = Pipeline([("align", SetAligner(n_points=8, random_state=0)), ("svc", SVC())])
    search = GridSearchCV(pipeline, {"align__kernel": ["linear", "rbf"]}, cv=3).fit(sets, y)
    assert search.best_score_ > 0.8
    assert search.predict(sets[:3]).shape == (3,)


def test_regression_on_sets():
    rng = np.random.default_rng(0)
    widths = rng.uniform(1, 3, size=60)
    sets = [rng.permutation(np.linspace(-1, 1, 9)[:, None] * [w, 0.1]) for w in widths]
    model = make_pipeline(SetAligner(), Ridge(1e-3)).fit(sets[:40], widths[:40])
    assert model.score(sets[40:], widths[40:]) > 0.99


def test_names_of_the_numbers_of_a_vector(shapes):
    aligner = SetAligner().fit(shapes[0])
    assert aligner.get_feature_names_out()[[0, -1]].tolist() == ["setaligner0", "setaligner17"]


def test_callback_sees_rounds_and_stops(shapes):
    sets, _ = shapes
    seen = []

    def callback(state):
        seen.append(state)
        return state.iteration == 2

    aligner = SetAligner(tol=0, callback=callback).fit(sets)
    assert [state.iteration for state in seen] == [1, 2]
    assert aligner.n_iter_ == 2
    assert not aligner.converged_
    assert seen[-1].objective == -aligner.objective_path_[-1]
    assert seen[-1].permutation.shape == aligner.permutations_.shape


def test_interrupt_leaves_a_fitted_aligner(shapes):
    def callback(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    aligner = SetAligner(tol=0, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(shapes[0])
    assert aligner.transform(shapes[0]).shape == (60, 18)
    assert not aligner.converged_


def test_too_few_rounds_are_reported(shapes):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        aligner = SetAligner(max_iter=1).fit(shapes[0])
    assert not aligner.converged_


def test_not_fitted():
    with pytest.raises(NotFittedError):
        SetAligner().transform(np.zeros((2, 3, 2)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slack": 0.1}, "no ball"),
        ({"slack": 1.5, "template": "ball"}, "slack"),
        ({"n_points": 0}, "n_points"),
        ({"kernel": "cubic"}, "kernel"),
        ({"unequal": "missing"}, "unequal"),
    ],
)
def test_bad_parameters_are_refused(shapes, parameters, message):
    with pytest.raises(ValueError, match=message):
        SetAligner(**parameters).fit(shapes[0])


def test_bad_sets_are_refused(shapes):
    sets, _ = shapes
    with pytest.raises(ValueError, match="is empty"):
        SetAligner().fit([*sets, np.empty((0, 2))])
    with pytest.raises(ValueError, match="3 columns"):
        SetAligner().fit([*sets, np.zeros((9, 3))])
    with pytest.raises(ValueError, match="NaN"):
        SetAligner().fit([*sets, np.full((9, 2), np.nan)])
    with pytest.raises(ValueError, match="expecting 2 features"):
        SetAligner().fit(sets).transform([np.zeros((9, 3))])
    with pytest.raises(ValueError, match=r"pass \[points\]"):
        SetAligner().fit(sets).transform(sets[0])
