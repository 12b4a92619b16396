import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import PermutationInvariantSVC, SetAligner


def failing_checks(estimator):
    """Checks that fail, which test_sample_weight.py replaces, and why."""
    reason = "libsvm stops within 1e-3 of its optimum, and scikit-learn's own SVC fails too"
    if estimator.probability:
        reason = "copies of a set may be held out apart, and a class of one set cannot be"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.filterwarnings("ignore:X is a data frame")  # of sets of one point
@parametrize_with_checks(
    [
        PermutationInvariantSVC(),
        PermutationInvariantSVC(margin_weight=0.1, kernel="rbf", template="ball", slack=0.2),
        PermutationInvariantSVC(kernel="rbf", probability=True),
    ],
    expected_failed_checks=failing_checks,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table(n=90, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 4)) + rng.normal(size=(n_classes, 4))[y], y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        ("linear", {"kernel": "linear"}),
        ("rbf", {"kernel": "rbf"}),
        ("poly", {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    ],
)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_sets_of_one_give_the_ordinary_classifier(kernel, reference, n_classes, class_weight):
    X, y = table(n_classes=n_classes)
    X, y = X[5:], y[5:]
    found = PermutationInvariantSVC(2.0, kernel=kernel, class_weight=class_weight).fit(X, y)
    if kernel != "linear":
        reference = reference | {"gamma": found.gamma_}
    expected = SVC(C=2.0, class_weight=class_weight, **reference).fit(X, y)
    new = table(n_classes=n_classes, seed=1)[0]
    np.testing.assert_allclose(
        found.decision_function(new), expected.decision_function(new), atol=1e-8
    )
    np.testing.assert_array_equal(found.predict(new), expected.predict(new))
    np.testing.assert_array_equal(found.support_, np.sort(expected.support_))


@pytest.mark.parametrize("template", ["mean", "ball"])
def test_single_numbers_give_the_classifier_on_sorted_rows(template):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.gamma(1.0 + y[:, None], size=(60, 6))
    found = PermutationInvariantSVC(template=template).fit(X[:, :, None], y)
    expected = SVC(kernel="linear").fit(np.sort(X, axis=1), y)
    new = rng.gamma(1.5, size=(20, 6))
    np.testing.assert_allclose(
        found.decision_function(new[:, :, None]),
        expected.decision_function(np.sort(new, axis=1)),
        atol=1e-9,
    )


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_kernel_form_matches_explicit_features(shapes, kernel):
    sets, y = shapes
    found = PermutationInvariantSVC(kernel=kernel, n_landmarks=1000, template="mean").fit(sets, y)
    aligner = SetAligner(kernel=kernel, n_landmarks=1000).fit(sets)
    vectors = aligner.transform(sets)
    explicit = SVC(kernel="precomputed", decision_function_shape="ovr")
    explicit.fit(vectors @ vectors.T, y)
    np.testing.assert_array_equal(found.permutations_, [aligner.permutations_])
    # the solver stops within 1e-3 of its optimum, on paths that rounding may part
    np.testing.assert_allclose(
        found.decision_function(sets), explicit.decision_function(vectors @ vectors.T), atol=1e-3
    )


@pytest.mark.parametrize("margin_weight", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_order_inside_sets_changes_no_prediction(
    shapes, shuffled, margin_weight, n_classes, kernel
):
    sets, y = shapes
    y = y % n_classes
    models = [
        PermutationInvariantSVC(margin_weight=margin_weight, kernel=kernel).fit(each, y)
        for each in (sets, shuffled(sets))
    ]
    decisions = [model.decision_function(shuffled(sets, i)) for i, model in enumerate(models)]
    np.testing.assert_array_equal(*decisions)


@pytest.mark.parametrize("unequal", ["resample", "rectangular"])
def test_order_inside_ragged_sets_changes_no_prediction(ragged, shuffled, unequal):
    sets, y = ragged
    model = PermutationInvariantSVC(unequal=unequal, kernel="rbf", random_state=0).fit(sets, y)
    again = PermutationInvariantSVC(unequal=unequal, kernel="rbf", random_state=0)
    again.fit(shuffled(sets), y)
    np.testing.assert_array_equal(
        model.decision_function(sets), again.decision_function(shuffled(sets, 1))
    )


@pytest.mark.parametrize("margin_weight", [0.0, 0.05])
def test_three_classes_are_separated(shapes, margin_weight):
    sets, y = shapes
    labels = np.array(["a", "b", "c"])[y]
    model = PermutationInvariantSVC(margin_weight=margin_weight).fit(sets[:30], labels[:30])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.decision_function(sets[30:]).shape == (30, 3)
    assert model.score(sets[30:], labels[30:]) >= 0.9


def test_shapes_of_several_templates(shapes):
    sets, y = shapes
    model = PermutationInvariantSVC(margin_weight=0.05).fit(sets, y)
    assert model.templates_.shape == (3, 9, 2)
    assert model.permutations_.shape == (3, 60, 9)
    assert model.radius_path_.shape == model.margin_path_.shape
    assert model.radius_path_.shape[1] == 3
    assert model.align(sets).shape == (60, 9)


@pytest.mark.parametrize(("margin_weight", "n_classes"), [(0.0, 2), (0.0, 3), (0.05, 2)])
def test_shapes_of_one_template(shapes, margin_weight, n_classes):
    sets, y = shapes[0], shapes[1] % n_classes
    model = PermutationInvariantSVC(margin_weight=margin_weight).fit(sets, y)
    assert model.templates_.shape == (1, 9, 2)
    assert model.permutations_.shape == (1, 60, 9)
    assert model.radius_path_.shape[1:] == (1,)
    assert model.margin_path_.shape[1:] == (n_classes * (n_classes - 1) // 2,)
    assert margin_weight > 0 or len(model.margin_path_) == 1


def test_margin_is_that_of_the_plane(shapes):
    sets, y = shapes[0], shapes[1] % 2
    model = PermutationInvariantSVC().fit(sets, y)
    vectors = np.array(
        [points[order].ravel() for points, order in zip(sets, model.permutations_[0], strict=True)]
    )
    normal = SVC(kernel="linear").fit(vectors, y).coef_[0]
    assert model.margin_path_[0, 0] == pytest.approx(1 / np.linalg.norm(normal), rel=1e-3)


def test_training_sets_are_aligned_as_in_the_fit(ragged):
    sets, y = ragged
    model = PermutationInvariantSVC(random_state=0, tol=0.1).fit(sets, y)
    np.testing.assert_array_equal(model.align(sets), model.permutations_[0])


def test_probabilities_are_calibrated_and_deterministic(shapes):
    sets, y = shapes
    models = [PermutationInvariantSVC(probability=True).fit(sets, y) for _ in range(2)]
    shares = models[0].predict_proba(sets)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares, models[1].predict_proba(sets))
    assert (shares.argmax(axis=1) == models[0].predict(sets)).mean() > 0.95
    assert shares[np.arange(60), y].mean() > 0.7


def test_probabilities_of_noise_are_about_even():
    rng = np.random.default_rng(0)
    sets, y = rng.normal(size=(80, 5, 2)), np.arange(80) % 2
    model = PermutationInvariantSVC(probability=True).fit(sets, y)
    assert np.abs(model.predict_proba(sets) - 0.5).max() < 0.3


def test_number_of_threads_changes_nothing(shapes):
    sets, y = shapes
    one, two = (
        PermutationInvariantSVC(kernel="rbf", margin_weight=0.03, n_jobs=n).fit(sets, y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.decision_function(sets), two.decision_function(sets))


def test_grid_search_over_ragged_sets(ragged):
    sets, y = ragged
    search = GridSearchCV(
        PermutationInvariantSVC(kernel="rbf", n_points=8, random_state=0),
        {"C": [0.1, 1.0], "unequal": ["resample", "rectangular"]},
        cv=3,
    ).fit(sets, y)
    assert search.best_score_ > 0.8


def test_kernel_may_be_a_function(shapes):
    sets, y = shapes

    def kernel(x, y):
        return x @ y.T

    own = PermutationInvariantSVC(kernel=kernel, n_landmarks=2).fit(sets, y)
    linear = PermutationInvariantSVC().fit(sets, y)
    np.testing.assert_allclose(
        own.decision_function(sets), linear.decision_function(sets), atol=1e-8
    )


def test_classifier_equals_aligner_and_svc(shapes):
    sets, y = shapes
    model = PermutationInvariantSVC(template="mean").fit(sets, y)
    pipeline = make_pipeline(SetAligner("mean"), SVC(kernel="linear")).fit(sets, y)
    np.testing.assert_allclose(
        model.decision_function(sets), pipeline.decision_function(sets), atol=1e-8
    )


@pytest.mark.parametrize("margin_weight", [0.0, 0.05])
def test_pickled_classifier_gives_the_same(shapes, margin_weight):
    sets, y = shapes
    model = PermutationInvariantSVC(
        margin_weight=margin_weight, kernel="rbf", probability=True
    ).fit(sets, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(sets), model.predict_proba(sets))


@pytest.mark.parametrize("margin_weight", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_callback_stops_at_any_round(shapes, margin_weight, n_classes):
    sets, y = shapes[0], shapes[1] % n_classes
    for last in (1, 4, 9):
        seen = []

        def callback(state, seen=seen, last=last):
            seen.append(state.fraction)
            return state.iteration == last

        model = PermutationInvariantSVC(margin_weight=margin_weight, tol=0, callback=callback).fit(
            sets, y
        )
        assert seen == sorted(seen)
        assert len(seen) <= last
        assert model.predict(sets).shape == (60,)


def test_interrupt_leaves_a_fitted_classifier(shapes):
    sets, y = shapes

    def callback(state):
        if state.stage == "separating classes":
            raise KeyboardInterrupt

    model = PermutationInvariantSVC(margin_weight=0.1, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(sets, y)
    assert model.predict(sets).shape == (60,)
    assert not model.converged_


def test_interrupt_while_aligning_leaves_a_classifier_for_what_was_aligned(shapes):
    def callback(state):
        raise KeyboardInterrupt

    model = PermutationInvariantSVC(callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*shapes)
    stopped = PermutationInvariantSVC(callback=lambda state: True).fit(*shapes)
    np.testing.assert_array_equal(model.permutations_, stopped.permutations_)
    np.testing.assert_array_equal(model.predict(shapes[0]), stopped.predict(shapes[0]))


def test_interrupt_while_calibrating_costs_the_probabilities_alone(shapes, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(PermutationInvariantSVC, "_calibrate", interrupt)
    model = PermutationInvariantSVC(probability=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*shapes)
    assert model.converged_
    assert model.predict(shapes[0]).shape == (60,)
    with pytest.raises(ValueError, match="interrupted"):
        model.predict_proba(shapes[0])


def test_too_few_rounds_are_reported(shapes):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        PermutationInvariantSVC(max_iter=1).fit(*shapes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slack": 0.1, "template": "mean"}, "no ball"),
        ({"bisect": True}, "margin_weight=0"),
        ({"C": 0}, "C"),
        ({"margin_weight": -1}, "margin_weight"),
        ({"margin_weight": 1e90}, "margin_weight"),
        ({"margin_weight": 1e155}, "margin_weight"),
        ({"margin_weight": np.inf}, "margin_weight"),
        ({"kernel": "cubic"}, "kernel"),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_bad_parameters_are_refused(shapes, parameters, message):
    with pytest.raises(ValueError, match=message):
        PermutationInvariantSVC(**parameters).fit(*shapes)


def test_bad_sets_and_labels_are_refused(shapes):
    sets, y = shapes
    model = PermutationInvariantSVC()
    with pytest.raises(ValueError, match="of one class"):
        model.fit(sets, np.ones(60))
    with pytest.raises(ValueError, match="60 sets and y has 59"):
        model.fit(sets, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.fit([*sets[:-1], np.full((9, 2), np.nan)], y)
    with pytest.raises(ValueError, match="is empty"):
        model.fit([*sets[:-1], np.empty((0, 2))], y)
    with pytest.raises(ValueError, match="3 columns"):
        model.fit([*sets[:-1], np.zeros((9, 3))], y)
    with pytest.raises(NotFittedError):
        model.predict(sets)
    with pytest.raises(AttributeError) as caught:
        model.fit(sets, y).predict_proba(sets)
    assert "Fit again with probability=True" in str(caught.value)


def test_class_of_one_set_cannot_be_calibrated(shapes):
    sets, _ = shapes
    with pytest.raises(ValueError, match="smallest class has 1 set"):
        PermutationInvariantSVC(probability=True).fit(sets, np.arange(60) == 0)


def test_labels_of_two_types_are_refused(shapes):
    sets, _ = shapes
    labels = np.array([0, "one"] * len(sets), dtype=object)[: len(sets)]
    with pytest.raises(ValueError, match="of the types int, str"):
        PermutationInvariantSVC().fit(sets, labels)


def test_class_weights_must_be_above_zero(shapes):
    sets, labels = shapes
    weights = dict.fromkeys(np.unique(labels).tolist(), 1.0) | {labels[0].item(): -1.0}
    with pytest.raises(ValueError, match=r"`class_weight` gives the class .* the weight -1"):
        PermutationInvariantSVC(class_weight=weights).fit(sets, labels)


def test_probabilities_asked_for_too_late_are_refused(shapes):
    sets, labels = shapes
    classifier = PermutationInvariantSVC().fit(sets, labels).set_params(probability=True)
    with pytest.raises(ValueError, match=r"set after fit.* Fit again"):
        classifier.predict_proba(sets)


def test_a_second_fit_forgets_the_first(shapes):
    sets, labels = shapes
    classifier = PermutationInvariantSVC(kernel="rbf").fit(sets, labels)
    assert not hasattr(classifier.set_params(kernel="linear").fit(sets, labels), "gamma_")
