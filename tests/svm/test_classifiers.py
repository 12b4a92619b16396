import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import PermutationInvariantSVC
from unshuffle.svm import _classifiers
from unshuffle.svm._classifiers import ordered_gram


def test_gram_is_the_sum_over_positions():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(70, 5, 2)), rng.normal(size=(3, 5, 2))

    def kernel(x, y):
        return np.tanh(x @ y.T)

    expected = [[np.tanh((x * y).sum(axis=1)).sum() for y in b] for x in a]
    np.testing.assert_allclose(ordered_gram(kernel, a, b), expected, atol=1e-12)
    np.testing.assert_allclose(
        ordered_gram(None, a, b), a.reshape(70, -1) @ b.reshape(3, -1).T, atol=1e-12
    )


def test_a_far_origin_costs_no_digits(shapes):
    sets, labels = shapes
    near = PermutationInvariantSVC().fit(sets, labels).decision_function(sets)
    far = [points + 2.0**24 for points in sets]
    found = PermutationInvariantSVC().fit(far, labels).decision_function(far)
    np.testing.assert_allclose(found, near, atol=0.02)


def test_a_classifier_that_does_not_converge_warns(shapes, monkeypatch):
    sets, labels = shapes
    monkeypatch.setattr(_classifiers, "MOST_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="classifier did not converge with C=1"):
        PermutationInvariantSVC().fit(sets, labels)


def test_huge_values_are_refused(shapes):
    sets, labels = shapes
    with pytest.raises(ValueError, match="too large for a support vector classifier"):
        PermutationInvariantSVC().fit([1e60 * points for points in sets], labels)
