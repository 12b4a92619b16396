"""Correct toy estimators pass every check; each broken one fails the checks it should."""

import sys

import numpy as np
import pytest
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClusterMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from unshuffle._core.bags import BagEstimatorMixin, Bags
from unshuffle.testing import check_bag_estimator, parametrize_with_bag_checks
from unshuffle.testing._run import _NAMES

ORDER = {"check_order_inside_bags", "check_order_of_equal_points"}
NAMED = {
    "check_empty_bag_refused",
    "check_nan_refused",
    "check_infinity_refused",
    "check_mixed_widths_refused",
    "check_text_refused",
}


def holds(bags, dtype):
    """Whether bags are a list of arrays of this type, none of which is a frame."""
    arrays = isinstance(bags, list) and all(isinstance(bag, np.ndarray) for bag in bags)
    return arrays and bool(bags) and all(bag.dtype == np.dtype(dtype) for bag in bags)


class Means(BagEstimatorMixin, TransformerMixin, BaseEstimator):
    """Sound: the mean point of each bag."""

    def __init__(self, unit=None, n_jobs=None):
        self.unit = unit
        self.n_jobs = n_jobs

    def fit(self, bags, y=None):
        given = Bags.of(bags)
        self._record_columns(bags, given)
        self.unit_ = 1.0 if self.unit is None else self.unit
        return self

    def transform(self, bags):
        check_is_fitted(self, "unit_")
        return np.array([bag.mean(axis=0) for bag in self._bags_like_fitted(bags)]) / self.unit_


class MeansKernel(Means):
    """Sound: inner products of means, plus one."""

    def fit(self, bags, y=None):
        super().fit(bags, y)
        self.means_ = super().transform(bags)
        return self

    def transform(self, bags):
        return 1.0 + super().transform(bags) @ self.means_.T

    def gram(self, bags_a, bags_b=None):
        a = super().transform(bags_a)
        return 1.0 + a @ (a if bags_b is None else super().transform(bags_b)).T


class NearestMean(ClassifierMixin, Means):
    """Sound: the class whose mean is nearest."""

    def fit(self, bags, y):
        super().fit(bags)
        check_consistent_length(list(bags), y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError("There must be two classes or more, got 1 class.")
        rows = super().transform(bags)
        self.centers_ = np.array(
            [rows[np.asarray(y) == each].mean(axis=0) for each in self.classes_]
        )
        return self

    def decision_function(self, bags):
        rows = self.transform(bags)
        values = -np.square(rows[:, None] - self.centers_).sum(axis=2)
        return values if len(self.classes_) > 2 else values[:, 1] - values[:, 0]

    def predict_proba(self, bags):
        rows = self.transform(bags)
        shares = 1e-9 + np.exp(-np.square(rows[:, None] - self.centers_).sum(axis=2))
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, bags):
        values = self.decision_function(bags)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]


class Slope(RegressorMixin, Means):
    """Sound: a multiple of the mean coordinate."""

    def fit(self, bags, y):
        super().fit(bags)
        x = self.transform(bags).mean(axis=1)
        self.slope_ = float(x @ y / (x @ x))
        return self

    def predict(self, bags):
        rows = self.transform(bags)
        return self.slope_ * rows.mean(axis=1)


class Aligner(Means):
    """Sound: points in the order of their first coordinate, as many as the largest bag has."""

    def fit(self, bags, y=None):
        self.n_points_ = int(Bags.of(bags).sizes.max())
        return super().fit(bags)

    def align(self, bags):
        check_is_fitted(self, "unit_")
        orders = [np.argsort(bag[:, 0]) for bag in self._bags_like_fitted(bags)]
        filled = np.full((len(orders), self.n_points_), -1)
        for row, order in zip(filled, orders, strict=True):
            row[: min(len(order), len(row))] = order[: len(row)]
        return filled


class Centered(Means):
    """Sound: bags as they were, their means moved to the origin."""

    def transform(self, bags):
        check_is_fitted(self, "unit_")
        return [bag - self._origin(bag) for bag in self._bags_like_fitted(bags)]

    def _origin(self, bag):
        return bag.mean(axis=0)


class Halves(BagEstimatorMixin, ClusterMixin, BaseEstimator):
    """Sound: bags on either side of the mean of all, by their first coordinate."""

    def fit(self, bags, y=None):
        given = Bags.of(bags)
        self._record_columns(bags, given)
        firsts = np.array([np.median(bag[:, 0]) for bag in given])
        self.middle_ = firsts.mean()
        self.labels_ = (firsts > self.middle_).astype(int)
        return self

    def predict(self, bags):
        check_is_fitted(self, "middle_")
        firsts = [np.median(bag[:, 0]) for bag in self._bags_like_fitted(bags)]
        return (np.array(firsts) > self.middle_).astype(int)


class CenteredOnFirst(Centered):
    def _origin(self, bag):
        return bag[0]


class LabelsByFirst(Halves):
    def fit(self, bags, y=None):
        super().fit(bags, y)
        self.labels_ = np.array([bag[0, 0] > self.middle_ for bag in Bags.of(bags)]).astype(int)
        return self


class FirstPoint(Means):
    def transform(self, bags):
        check_is_fitted(self, "unit_")
        return np.array([bag[0] for bag in self._bags_like_fitted(bags)])


class FirstCenter(NearestMean):
    """Learns from the first point of each bag; what it says of new bags is free of order."""

    def fit(self, bags, y):
        super().fit(bags, y)
        self.centers_ = self.centers_ + 1e-3 * Bags.of(bags)[0][0]
        return self


class Scribbler(Means):
    def fit(self, bags, y=None):
        if holds(bags, float):
            bags[0][0] = 0
        return super().fit(bags, y)


class Dropper(Means):
    def transform(self, bags):
        rows = super().transform(bags)
        if isinstance(bags, list):
            bags.append(bags[0])
        return rows


class Neighbors(Means):
    def transform(self, bags):
        rows = super().transform(bags)
        return rows - rows.mean(axis=0)


class ByPlace(Means):
    """Weighs rows by where the bag stands in the list."""

    def transform(self, bags):
        rows = super().transform(bags)
        return rows * (1 + np.arange(len(rows)))[:, None]


class NanIsZero(Means):
    def fit(self, bags, y=None):
        return super().fit(self._filled(bags), y)

    def transform(self, bags):
        return super().transform(self._filled(bags))

    def _filled(self, bags):
        isnan = np.isnan
        return [np.where(isnan(bag), 0.0, bag) for bag in bags] if holds(bags, float) else bags


class InfinityIsLarge(NanIsZero):
    def _filled(self, bags):
        isinf = np.isinf
        return [np.where(isinf(bag), 1e9, bag) for bag in bags] if holds(bags, float) else bags


class SaysLittle(Means):
    def fit(self, bags, y=None):
        return self._guarded(super().fit, bags)

    def transform(self, bags):
        return self._guarded(super().transform, bags)

    def _guarded(self, call, bags):
        try:
            return call(bags)
        except NotFittedError:
            raise
        except ValueError as error:
            raise ValueError("bad input") from error


class AcceptsNothing(Means):
    def transform(self, bags):
        return np.empty((0, 3)) if len(bags) == 0 else super().transform(bags)


class Overwrites(Means):
    def fit(self, bags, y=None):
        self.unit = 1.0 if self.unit is None else self.unit
        return super().fit(bags, y)


class NeverAsks(Means):
    def transform(self, bags):
        return np.array([bag.mean(axis=0) for bag in self._bags_like_fitted(bags)])


class CountsWorkers(Means):
    def transform(self, bags):
        return super().transform(bags) * (self.n_jobs or 1)


class GlobalRandom(Means):
    def fit(self, bags, y=None):
        np.random.rand()  # noqa: NPY002
        return super().fit(bags, y)


class Remembers(Means):
    def fit(self, bags, y=None):
        self.count_ = getattr(self, "count_", 0) + 1
        return super().fit(bags, y)

    def transform(self, bags):
        return super().transform(bags) * self.count_


class LearnedParameter(Means):
    """A clone keeps what was learned."""

    def __sklearn_clone__(self):
        copy = type(self)(**self.get_params())
        vars(copy).update(vars(self))
        return copy


class Forgets(Means):
    def __getstate__(self):
        return {**super().__getstate__(), "unit_": 2.0}


class ReturnsNothing(Means):
    def fit(self, bags, y=None):
        super().fit(bags, y)
        return super()

    def fit_transform(self, bags, y=None):
        self.fit(bags, y)
        return self.transform(bags)


class OtherFitTransform(Means):
    def fit_transform(self, bags, y=None):
        return 2 * self.fit(bags).transform(bags)


class OneSizeInSilence(Means):
    words = "no"

    def fit(self, bags, y=None):
        if np.ptp(Bags.of(bags).sizes):
            raise ValueError(self.words)
        return super().fit(bags, y)


class OneSize(OneSizeInSilence):
    words = "All bags must be of one size."


class NoTuples(Means):
    def fit(self, bags, y=None):
        if isinstance(bags, tuple):
            raise TypeError("no tuples")
        return super().fit(bags, y)


class TableIsOneBag(Means):
    """Takes the rows of a table for the points of a single bag."""

    def transform(self, bags):
        rows = super().transform(bags)
        return rows if getattr(bags, "ndim", 3) != 2 else rows.mean(axis=0, keepdims=True)


class Rounds(Means):
    """Rounds whole numbers."""

    def transform(self, bags):
        return super().transform([bag // 2 * 2 for bag in bags] if holds(bags, int) else bags)


class NoNames(Means):
    def _record_columns(self, bags, given):
        super()._record_columns(given.points, given)

    def _bags_like_fitted(self, bags):
        return super()._bags_like_fitted(list(Bags.of(bags)))


class LosesRows(NearestMean):
    """Cannot take the part of a list that a fold is."""

    def fit(self, bags, y):
        if holds(bags, float) and len(bags) < 18:
            raise RuntimeError("fewer bags than expected")
        return super().fit(bags, y)


class Indefinite(MeansKernel):
    def transform(self, bags):
        return super().transform(bags) - 5.0

    def gram(self, bags_a, bags_b=None):
        return super().gram(bags_a, bags_b) - 5.0


class OtherBlock(MeansKernel):
    def gram(self, bags_a, bags_b=None):
        return super().gram(bags_a, bags_b) * (1.0 if bags_b is None else 2.0)


class Guesses(NearestMean):
    def predict(self, bags):
        n_bags = len(super().predict(bags))
        return np.repeat(self.classes_[:1], n_bags)


class Flipped(NearestMean):
    def predict_proba(self, bags):
        return 2 * super().predict_proba(bags)


class OneClass(NearestMean):
    def fit(self, bags, y):
        if len(np.unique(y)) == 1:
            return Means.fit(self, bags)
        return super().fit(bags, y)


class ShortLabels(NearestMean):
    def fit(self, bags, y):
        return super().fit(list(bags)[: len(y)], y) if len(bags) > len(y) else super().fit(bags, y)


class AlignsAsGiven(Aligner):
    def align(self, bags):
        orders = super().align(bags)
        return np.where(orders < 0, -1, np.sort(orders, axis=1))


class AlignsBeyond(Aligner):
    def align(self, bags):
        return super().align(bags) + 1


BROKEN = [
    (FirstPoint(), ORDER),
    (FirstCenter(), ORDER),
    (CenteredOnFirst(), ORDER),
    (LabelsByFirst(), ORDER),
    (Scribbler(), {"check_arguments_unchanged"}),
    (Neighbors(), {"check_bags_independent"}),
    (ByPlace(), {"check_order_of_bags", "check_bags_independent"}),
    (NanIsZero(), {"check_nan_refused"}),
    (InfinityIsLarge(), {"check_infinity_refused"}),
    (SaysLittle(), NAMED | {"check_new_width_refused"}),
    (AcceptsNothing(), {"check_empty_list_refused"}),
    (Overwrites(), {"check_parameters_unchanged"}),
    (NeverAsks(), {"check_not_fitted"}),
    (CountsWorkers(), {"check_n_jobs"}),
    (GlobalRandom(), {"check_refit"}),
    (Remembers(), {"check_refit"}),
    (LearnedParameter(), {"check_clone"}),
    (Forgets(), {"check_pickle"}),
    (OtherFitTransform(), {"check_fit_transform"}),
    (OneSizeInSilence(), {"check_bags_of_different_sizes"}),
    (NoTuples(), {"check_input_containers"}),
    (TableIsOneBag(), {"check_bags_of_one_point"}),
    (Rounds(), {"check_float32_and_integers"}),
    (NoNames(), {"check_data_frames"}),
    (LosesRows(), {"check_cross_validation"}),
    (Indefinite(), {"check_gram_matrix"}),
    (OtherBlock(), {"check_gram_matrix"}),
    (Guesses(), {"check_classes_separated", "check_decision_values"}),
    (Flipped(), {"check_decision_values"}),
    (OneClass(), {"check_one_class_refused"}),
    (ShortLabels(), {"check_label_count_refused"}),
    (AlignsAsGiven(), {"check_alignment"}),
    (AlignsBeyond(), {"check_alignment"}),
]


def failures(estimator):
    results = check_bag_estimator(estimator, on_fail="collect")
    return {each.name: each.error for each in results if each.status == "failed"}


@pytest.mark.parametrize(
    "estimator",
    [Means(), MeansKernel(), NearestMean(), Slope(), Aligner(), OneSize(), Centered(), Halves()],
    ids=lambda each: type(each).__name__,
)
def test_sound_estimators_pass(estimator):
    results = check_bag_estimator(estimator, on_fail="collect")
    assert len(results) > 15
    assert {each.name: each.error for each in results if each.status != "passed"} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "broken"), BROKEN, ids=lambda each: type(each).__name__)
def test_a_broken_estimator_fails_what_it_breaks_and_nothing_else(estimator, broken):
    assert failures(estimator).keys() == broken


def test_a_fit_that_returns_another_is_found():
    assert "check_fit_returns_self" in failures(ReturnsNothing())


def test_a_list_that_grows_is_found():
    assert "check_arguments_unchanged" in failures(Dropper())


def test_every_check_is_failed_by_some_broken_estimator():
    caught = set().union(*(broken for _, broken in BROKEN)) | {"check_fit_returns_self"}
    assert caught == set(_NAMES)


def test_the_first_failure_is_raised_and_says_by_how_much():
    with pytest.raises(AssertionError, match=r"differs by .* of its largest value \(1e-06 is"):
        check_bag_estimator(Neighbors())
    with pytest.raises(AssertionError) as caught:
        check_bag_estimator(Overwrites())
    assert str(caught.value) == ("fit changed the parameters ['unit']: it must not change them.")
    assert caught.value.__notes__ == ["Overwrites fails check_parameters_unchanged."]


def test_a_larger_tolerance_forgives_more():
    results = check_bag_estimator(FirstCenter(), tol=0.1, on_fail="collect")
    assert {each.status for each in results} == {"passed"}


def test_expected_failures_have_their_own_status():
    reasons = dict.fromkeys(ORDER, "it takes the first point")
    results = check_bag_estimator(FirstPoint(), expected_failed_checks=reasons)
    statuses = {each.name: each.status for each in results}
    assert {name for name, status in statuses.items() if status == "expected to fail"} == ORDER
    assert set(statuses.values()) == {"passed", "expected to fail"}


def test_expected_failures_are_marked_for_pytest():
    reasons = dict.fromkeys(ORDER, "it takes the first point")
    mark = parametrize_with_bag_checks(
        [FirstPoint()], expected_failed_checks=lambda estimator: reasons
    )
    marked = {case.id for case in mark.args[1] if case.marks}
    assert marked == {f"FirstPoint()-{name}" for name in ORDER}
    assert all(mark.kwargs["strict"] for case in mark.args[1] for mark in case.marks)


def test_only_checks_that_apply_are_run():
    names = {each.name for each in check_bag_estimator(Means())}
    assert set(_NAMES) - names == {
        "check_alignment",
        "check_gram_matrix",
        "check_classes_separated",
        "check_decision_values",
        "check_one_class_refused",
        "check_label_count_refused",
    }


def test_the_estimator_given_stays_unfitted():
    estimator = Means()
    check_bag_estimator(estimator)
    assert vars(estimator) == {"unit": None, "n_jobs": None}


def test_without_pandas_the_check_of_frames_is_skipped(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    results = check_bag_estimator(Means(), on_fail="collect")
    skipped = [each for each in results if each.status == "skipped"]
    assert [each.name for each in skipped] == ["check_data_frames"]
    assert "pandas" in str(skipped[0].error)


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match=r"is the class Means. Pass an instance"):
        check_bag_estimator(Means)
    with pytest.raises(TypeError, match="without fit and get_params"):
        parametrize_with_bag_checks([3])
    with pytest.raises(ValueError, match="'check_everything', which is not a known check"):
        check_bag_estimator(Means(), expected_failed_checks={"check_everything": "why not"})
    with pytest.raises(TypeError, match="must be a dict of names and reasons, got list"):
        check_bag_estimator(Means(), expected_failed_checks=["check_pickle"])
    with pytest.raises(ValueError, match="`on_fail` must be one of"):
        check_bag_estimator(Means(), on_fail="warn")
    with pytest.raises(ValueError, match="`tol` must be a finite number"):
        check_bag_estimator(Means(), tol=-1)
