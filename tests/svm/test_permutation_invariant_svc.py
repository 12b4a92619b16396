import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle._bags import Bags
from unshuffle.svm import _machine
from unshuffle.svm._align import nearest_candidates
from unshuffle.svm._machine import slot_gram


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


def test_paths_of_two_classes(shapes):
    bags, y = shapes[0], shapes[1] % 2
    plain = PermutationInvariantSVC(tol=0).fit(bags, y)
    assert plain.radius_path_.shape == (plain.n_iter_,)
    assert (np.diff(plain.radius_path_) <= 1e-9).all()
    assert plain.margin_path_.shape == (1,)
    pushed = PermutationInvariantSVC(lam=0.3, max_iter=100).fit(bags, y)
    assert pushed.radius_path_.shape == pushed.margin_path_.shape
    assert pushed.margin_path_[-1] > pushed.margin_path_[0]


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


def test_paper_rule_and_mean_decision_agree(shapes):
    bags, y = shapes[0], shapes[1] % 2
    model = PermutationInvariantSVC(lam=0.2).fit(bags, y)
    view = model._model.views[0]
    sides = []
    for sign in (1.0, -1.0):
        candidates = model._model.placing.candidates(model._bags_like_fitted(bags))
        orders = model._model._permutations(view, sign, candidates, None)
        ordered = np.array([bag[order] for bag, order in zip(bags, orders, strict=True)])
        sides.append(view.machine.decision(ordered))
    up, down = sides
    by_paper = np.where(np.abs(up) >= np.abs(down), up, down) > 0
    assert (up >= down - 1e-9).all()
    np.testing.assert_array_equal(model.predict(bags) == 1, by_paper)


def test_training_sets_are_aligned_as_in_the_fit(ragged):
    bags, y = ragged
    model = PermutationInvariantSVC(random_state=0, tol=0.1).fit(bags, y)
    np.testing.assert_array_equal(model.align(bags), model.permutations_)


def test_bisection_never_costs_a_set_its_margin(shapes):
    bags, y = shapes[0], shapes[1] % 2
    careful = PermutationInvariantSVC(lam=0.3, bisect=True, max_iter=100).fit(bags, y)
    plain = PermutationInvariantSVC(lam=0.3, max_iter=100).fit(bags, y)
    assert careful.margin_path_[0] == plain.margin_path_[0]
    # pushed no further than needed, sets stay closer to their centre
    assert careful.radius_path_[-1] < plain.radius_path_[-1]


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


def test_gram_is_the_sum_over_slots():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(70, 5, 2)), rng.normal(size=(3, 5, 2))

    def kernel(x, y):
        return np.tanh(x @ y.T)

    expected = [[np.tanh((x * y).sum(axis=1)).sum() for y in b] for x in a]
    np.testing.assert_allclose(slot_gram(kernel, a, b), expected, atol=1e-12)
    np.testing.assert_allclose(
        slot_gram(None, a, b), a.reshape(70, -1) @ b.reshape(3, -1).T, atol=1e-12
    )


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


def test_a_far_origin_costs_no_digits(shapes):
    bags, labels = shapes
    near = PermutationInvariantSVC().fit(bags, labels).decision_function(bags)
    far = [bag + 2.0**24 for bag in bags]
    found = PermutationInvariantSVC().fit(far, labels).decision_function(far)
    np.testing.assert_allclose(found, near, atol=0.02)


def test_a_machine_that_cannot_settle_says_so(shapes, monkeypatch):
    bags, labels = shapes
    monkeypatch.setattr(_machine, "MOST_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="machine did not settle: with C=1"):
        PermutationInvariantSVC().fit(bags, labels)


def test_huge_values_are_refused(shapes):
    bags, labels = shapes
    with pytest.raises(ValueError, match="too large for a support vector machine"):
        PermutationInvariantSVC().fit([1e60 * bag for bag in bags], labels)


def test_a_push_beyond_all_floats_is_refused():
    # with the rbf kernel no product of points is huge, but the distances to the template are
    rng = np.random.default_rng(0)
    bags = 1e140 * rng.normal(size=(12, 6, 2))
    for kernel in ("rbf", lambda a, b: np.exp(-1e-290 * ((a[:, None] - b) ** 2).sum(-1))):
        machine = PermutationInvariantSVC(lam=1e8, kernel=kernel).fit(bags, np.arange(12) % 2)
        assert np.isfinite(machine.decision_function(bags)).all()
    candidates = Bags.of(bags)
    with pytest.raises(ValueError, match="template moved by `lam`, are as large as 1e\\+151"):
        nearest_candidates(np.full((6, 2), 1e151), candidates)
    with pytest.raises(ValueError, match="template moved by `lam`, are as large as 1e\\+151"):
        nearest_candidates(np.full((7, 2), 1e151), candidates)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_largest_push_gives_finite_decisions(shapes, kernel):
    bags, labels = shapes
    machine = PermutationInvariantSVC(lam=1e8, kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(bags, labels)
    assert np.isfinite(machine.decision_function(bags)).all()


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
