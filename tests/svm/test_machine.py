import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import PermutationInvariantSVC
from unshuffle.svm import _machine
from unshuffle.svm._machine import slot_gram


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
