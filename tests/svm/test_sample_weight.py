"""Weights of the sets that a classifier is trained on."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.svm import SVC

from unshuffle import PermutationInvariantSVC

# libsvm stops this close to its optimum.
CLOSE = {"atol": 5e-3}
FORMS = {
    "mean": {},
    "kernel": {"kernel": "rbf", "gamma": 0.5},
    "ball": {"template": "ball"},
    "soft ball": {"template": "ball", "slack": 0.3},
    "pushed": {"margin_weight": 0.05},
    "balanced": {"class_weight": "balanced"},
    "rectangular": {"unequal": "rectangular", "class_weight": {0: 2.0}},
}
WEIGHTS = np.array([2, 1, 1, 0, 3])


def weighted_and_repeated(sets, y, options):
    """A classifier of weighted sets, one of repeated ones, and the weights."""
    weights = np.resize(WEIGHTS, len(sets))
    copies = np.repeat(np.arange(len(sets)), weights)
    weighted, repeated = (PermutationInvariantSVC(random_state=0, **options) for _ in range(2))
    weighted.fit(sets, y, sample_weight=weights)
    repeated.fit([sets[i] for i in copies], y[copies])
    return weighted, repeated, weights


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_a_weight_is_as_good_as_copies_of_the_set(ragged, shapes, options, n_classes):
    sets, y = ragged if "unequal" in options else shapes
    weighted, repeated, weights = weighted_and_repeated(sets, y % n_classes, options)
    np.testing.assert_allclose(weighted.templates_, repeated.templates_, atol=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(sets), repeated.decision_function(sets), **CLOSE
    )
    np.testing.assert_allclose(weighted.radius_path_, repeated.radius_path_, rtol=1e-6)
    np.testing.assert_allclose(weighted.margin_path_, repeated.margin_path_, rtol=1e-2)
    copies = np.repeat(np.arange(len(sets)), weights)
    assert np.array_equal(weighted.permutations_[:, copies], repeated.permutations_)


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_a_weight_of_zero_leaves_the_set_out(ragged, options):
    sets, y = ragged
    weights = np.where(np.arange(len(sets)) % 7 == 3, 0.0, 1.5)
    kept = np.flatnonzero(weights)
    found = PermutationInvariantSVC(random_state=0, **options).fit(sets, y, weights)
    expected = PermutationInvariantSVC(random_state=0, **options)
    expected.fit([sets[i] for i in kept], y[kept], weights[kept])
    assert np.array_equal(found.decision_function(sets), expected.decision_function(sets))
    assert np.array_equal(found.support_, kept[expected.support_])
    assert np.array_equal(found.permutations_[:, kept], expected.permutations_)
    assert (found.permutations_[:, weights == 0.0] == -1).all()


@pytest.mark.parametrize("class_weight", [None, {0: 3.0}])
def test_weighted_sets_of_one_give_the_ordinary_classifier(class_weight):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 3
    X, weights = rng.normal(size=(80, 4)) + y[:, None], rng.exponential(size=80)
    found = PermutationInvariantSVC(class_weight=class_weight).fit(X, y, weights)
    expected = SVC(kernel="linear", class_weight=class_weight).fit(X, y, weights)
    np.testing.assert_allclose(
        found.decision_function(X), expected.decision_function(X), atol=1e-8
    )


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_equal_weights_multiply_the_penalty(ragged, options):
    sets, y = ragged
    found = PermutationInvariantSVC(0.5, random_state=0, **options)
    found.fit(sets, y, np.full(len(sets), 2.0))
    plain = PermutationInvariantSVC(1.0, random_state=0, **options).fit(sets, y)
    np.testing.assert_allclose(found.templates_, plain.templates_, atol=1e-9)
    np.testing.assert_allclose(
        found.decision_function(sets), plain.decision_function(sets), **CLOSE
    )


def test_the_heavier_class_wins_where_both_overlap():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    for heavier in (0, 1):
        found = PermutationInvariantSVC().fit(X, y, np.where(y == heavier, 10.0, 0.1))
        assert (found.predict(X) == heavier).all()


@pytest.mark.parametrize("routing", [False, True])
def test_probabilities_follow_the_weights(routing):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2  # nothing to learn
    with config_context(enable_metadata_routing=routing):
        weights = np.where(y == 1, 9.0, 1.0)
        found = PermutationInvariantSVC(1e-3, probability=True).fit(X, y, weights)
    assert found.predict_proba(X)[:, 1].mean() == pytest.approx(0.9, abs=0.05)


def test_weights_from_the_smallest_to_the_largest_numbers_are_taken(shapes):
    sets, y = shapes
    for weight in (1e-300, 1e300):
        weights = np.full(len(sets), weight)
        found = PermutationInvariantSVC(1.0 / weight).fit(sets, y, weights)
        plain = PermutationInvariantSVC().fit(sets, y)
        np.testing.assert_allclose(
            found.decision_function(sets), plain.decision_function(sets), **CLOSE
        )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-1.0, "gives set 0 the weight -1"),
        (np.nan, "gives set 0 the weight nan"),
        (0.0, "is zero for all sets"),
        ([1.0, 2.0], r"one number for each set, 60 in all, got shape \(2,\)"),
        (np.ones((60, 1)), r"got shape \(60, 1\)"),
        (["a"] * 60, "text"),
    ],
)
def test_bad_weights_are_refused_in_words(shapes, weights, message):
    sets, y = shapes
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        PermutationInvariantSVC().fit(sets, y, weights)
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        PermutationInvariantSVC().fit(sets, y).score(sets, y, weights)


def test_a_class_without_weight_is_left_out(shapes):
    sets, y = shapes
    found = PermutationInvariantSVC().fit(sets, y, (y != 1).astype(float))
    assert found.classes_.tolist() == [0, 2]
    with pytest.raises(ValueError, match="All 20 sets of a weight above 0 are of one class, 1"):
        PermutationInvariantSVC().fit(sets, y, (y == 1).astype(float))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", r"must be 'balanced', a dict or None"),
        ({0: 1.0, 7: 2.0}, r"names 7, which is not a class, and leaves out 1.*are 0, 1, 2"),
        ({"a": 1.0}, r"names 'a', which is not a class"),
        ({0: "heavy"}, r"the class 0 the weight 'heavy'. Pass positive numbers"),
        ({0: 10**400}, r"Pass positive numbers"),
        ({0: np.inf}, r"Pass positive numbers"),
        ({0: [1.0, 2.0]}, r"Pass positive numbers"),
    ],
)
def test_unknown_class_weights_are_refused_before_any_work(shapes, class_weight, message):
    def refuse(a, b):
        raise AssertionError("the kernel was computed")

    with pytest.raises(ValueError, match=f"`class_weight` .*{message}"):
        PermutationInvariantSVC(class_weight=class_weight, kernel=refuse).fit(*shapes)


def test_weights_of_classes_that_a_fold_lacks_are_ignored(shapes):
    sets, y = shapes
    weights = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    found = PermutationInvariantSVC(class_weight=weights).fit(sets, y)
    assert found.classes_.tolist() == [0, 1, 2]
