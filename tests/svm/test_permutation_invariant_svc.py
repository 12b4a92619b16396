import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import PermutationInvariantSVC, SetAligner


@parametrize_with_checks(
    [
        PermutationInvariantSVC(),
        PermutationInvariantSVC(lam=0.1, kernel="rbf", slack=0.2),
        PermutationInvariantSVC(kernel="rbf", template="mean", probability=True),
    ]
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
def test_sets_of_one_give_the_ordinary_machine(kernel, reference, n_classes, class_weight):
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
def test_single_numbers_give_the_machine_on_sorted_rows(template):
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
    bags, y = shapes
    found = PermutationInvariantSVC(kernel=kernel, rank=1000, template="mean").fit(bags, y)
    aligner = SetAligner(kernel=kernel, rank=1000).fit(bags)
    vectors = aligner.transform(bags)
    explicit = SVC(kernel="precomputed", decision_function_shape="ovr")
    explicit.fit(vectors @ vectors.T, y)
    np.testing.assert_array_equal(found.permutations_, aligner.permutations_)
    # the solver stops within 1e-3 of its optimum, on paths that rounding may part
    np.testing.assert_allclose(
        found.decision_function(bags), explicit.decision_function(vectors @ vectors.T), atol=1e-3
    )


@pytest.mark.parametrize("lam", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_order_inside_sets_changes_no_prediction(shapes, shuffled, lam, n_classes, kernel):
    bags, y = shapes
    y = y % n_classes
    models = [
        PermutationInvariantSVC(lam=lam, kernel=kernel).fit(sets, y)
        for sets in (bags, shuffled(bags))
    ]
    decisions = [model.decision_function(shuffled(bags, i)) for i, model in enumerate(models)]
    np.testing.assert_array_equal(*decisions)


@pytest.mark.parametrize("unequal", ["resample", "rectangular"])
def test_order_inside_ragged_sets_changes_no_prediction(ragged, shuffled, unequal):
    bags, y = ragged
    model = PermutationInvariantSVC(unequal=unequal, kernel="rbf", random_state=0).fit(bags, y)
    again = PermutationInvariantSVC(unequal=unequal, kernel="rbf", random_state=0)
    again.fit(shuffled(bags), y)
    np.testing.assert_array_equal(
        model.decision_function(bags), again.decision_function(shuffled(bags, 1))
    )


@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_three_classes_are_told_apart(shapes, lam):
    bags, y = shapes
    labels = np.array(["a", "b", "c"])[y]
    model = PermutationInvariantSVC(lam=lam).fit(bags[:30], labels[:30])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.decision_function(bags[30:]).shape == (30, 3)
    assert model.score(bags[30:], labels[30:]) >= 0.9


def test_shapes_of_several_templates(shapes):
    bags, y = shapes
    model = PermutationInvariantSVC(lam=0.05).fit(bags, y)
    assert model.template_.shape == (3, 9, 2)
    assert model.permutations_.shape == (3, 60, 9)
    assert model.radius_path_.shape == model.margin_path_.shape
    assert model.radius_path_.shape[1] == 3
    assert model.align(bags).shape == (60, 9)
    assert PermutationInvariantSVC().fit(bags, y).margin_path_.shape == (1, 3)


def test_margin_is_that_of_the_plane(shapes):
    bags, y = shapes[0], shapes[1] % 2
    model = PermutationInvariantSVC().fit(bags, y)
    vectors = np.array(
        [bag[slots].ravel() for bag, slots in zip(bags, model.permutations_, strict=True)]
    )
    normal = SVC(kernel="linear").fit(vectors, y).coef_[0]
    assert model.margin_path_[0] == pytest.approx(1 / np.linalg.norm(normal), rel=1e-3)


def test_training_sets_are_aligned_as_in_the_fit(ragged):
    bags, y = ragged
    model = PermutationInvariantSVC(random_state=0, tol=0.1).fit(bags, y)
    np.testing.assert_array_equal(model.align(bags), model.permutations_)


def test_probabilities_are_calibrated_and_deterministic(shapes):
    bags, y = shapes
    models = [PermutationInvariantSVC(probability=True).fit(bags, y) for _ in range(2)]
    shares = models[0].predict_proba(bags)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares, models[1].predict_proba(bags))
    assert (shares.argmax(axis=1) == models[0].predict(bags)).mean() > 0.95
    assert shares[np.arange(60), y].mean() > 0.7


def test_probabilities_of_noise_are_about_even():
    rng = np.random.default_rng(0)
    bags, y = rng.normal(size=(80, 5, 2)), np.arange(80) % 2
    model = PermutationInvariantSVC(probability=True).fit(bags, y)
    assert np.abs(model.predict_proba(bags) - 0.5).max() < 0.3


def test_number_of_threads_changes_nothing(shapes):
    bags, y = shapes
    one, two = (
        PermutationInvariantSVC(kernel="rbf", lam=0.03, n_jobs=n).fit(bags, y) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.decision_function(bags), two.decision_function(bags))


def test_grid_search_over_ragged_sets(ragged):
    bags, y = ragged
    search = GridSearchCV(
        PermutationInvariantSVC(kernel="rbf", n_points=8, random_state=0),
        {"C": [0.1, 1.0], "unequal": ["resample", "rectangular"]},
        cv=3,
    ).fit(bags, y)
    assert search.best_score_ > 0.8


def test_kernel_may_be_a_function(shapes):
    bags, y = shapes

    def kernel(x, y):
        return x @ y.T

    own = PermutationInvariantSVC(kernel=kernel, rank=2).fit(bags, y)
    linear = PermutationInvariantSVC().fit(bags, y)
    np.testing.assert_allclose(
        own.decision_function(bags), linear.decision_function(bags), atol=1e-8
    )


def test_machine_equals_aligner_and_svc(shapes):
    bags, y = shapes
    model = PermutationInvariantSVC(template="mean").fit(bags, y)
    pipeline = make_pipeline(SetAligner("mean"), SVC(kernel="linear")).fit(bags, y)
    np.testing.assert_allclose(
        model.decision_function(bags), pipeline.decision_function(bags), atol=1e-8
    )


@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_pickled_machine_gives_the_same(shapes, lam):
    bags, y = shapes
    model = PermutationInvariantSVC(lam=lam, kernel="rbf", probability=True).fit(bags, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(bags), model.predict_proba(bags))


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_callback_stops_at_any_round(shapes, lam, n_classes):
    bags, y = shapes[0], shapes[1] % n_classes
    for last in (1, 4, 9):
        seen = []

        def callback(state, seen=seen, last=last):
            seen.append(state.fraction)
            return state.iteration == last

        model = PermutationInvariantSVC(lam=lam, tol=0, callback=callback).fit(bags, y)
        assert seen == sorted(seen)
        assert len(seen) <= last
        assert model.predict(bags).shape == (60,)


def test_interrupt_leaves_a_fitted_machine(shapes):
    bags, y = shapes

    def callback(state):
        if state.stage == "parting classes":
            raise KeyboardInterrupt

    model = PermutationInvariantSVC(lam=0.1, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    assert model.predict(bags).shape == (60,)
    assert not model.converged_


def test_interrupt_while_aligning_leaves_a_machine_for_what_was_aligned(shapes):
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
        ({"bisect": True}, "lam=0"),
        ({"C": 0}, "C"),
        ({"lam": -1}, "lam"),
        ({"lam": 1e90}, "lam"),
        ({"lam": 1e155}, "lam"),
        ({"lam": np.inf}, "lam"),
        ({"kernel": "cubic"}, "kernel"),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_bad_parameters_are_refused(shapes, parameters, message):
    with pytest.raises(ValueError, match=message):
        PermutationInvariantSVC(**parameters).fit(*shapes)


def test_bad_sets_and_labels_are_refused(shapes):
    bags, y = shapes
    model = PermutationInvariantSVC()
    with pytest.raises(ValueError, match="of one class"):
        model.fit(bags, np.ones(60))
    with pytest.raises(ValueError, match="60 sets and y has 59"):
        model.fit(bags, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.fit([*bags[:-1], np.full((9, 2), np.nan)], y)
    with pytest.raises(ValueError, match="is empty"):
        model.fit([*bags[:-1], np.empty((0, 2))], y)
    with pytest.raises(ValueError, match="3 columns"):
        model.fit([*bags[:-1], np.zeros((9, 3))], y)
    with pytest.raises(NotFittedError):
        model.predict(bags)
    with pytest.raises(AttributeError) as caught:
        model.fit(bags, y).predict_proba(bags)
    assert "probability=True" in str(caught.value.__cause__)


def test_class_of_one_set_cannot_be_calibrated(shapes):
    bags, _ = shapes
    with pytest.raises(ValueError, match="smallest class has 1 set"):
        PermutationInvariantSVC(probability=True).fit(bags, np.arange(60) == 0)


def test_labels_of_two_types_are_refused(shapes):
    bags, _ = shapes
    labels = np.array([0, "one"] * len(bags), dtype=object)[: len(bags)]
    with pytest.raises(ValueError, match="of the types int, str"):
        PermutationInvariantSVC().fit(bags, labels)


def test_class_weights_must_be_above_zero(shapes):
    bags, labels = shapes
    weights = dict.fromkeys(np.unique(labels).tolist(), 1.0) | {labels[0].item(): -1.0}
    with pytest.raises(ValueError, match=r"class_weight gives the class .* the weight -1"):
        PermutationInvariantSVC(class_weight=weights).fit(bags, labels)


def test_probabilities_asked_for_too_late_are_refused(shapes):
    bags, labels = shapes
    machine = PermutationInvariantSVC().fit(bags, labels).set_params(probability=True)
    with pytest.raises(ValueError, match=r"set after fit.* Fit again"):
        machine.predict_proba(bags)


def test_a_second_fit_forgets_the_first(shapes):
    bags, labels = shapes
    machine = PermutationInvariantSVC(kernel="rbf").fit(bags, labels)
    assert not hasattr(machine.set_params(kernel="linear").fit(bags, labels), "gamma_")
