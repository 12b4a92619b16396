"""Checks of fitting, cloning and pickling, of use with scikit-learn, and of the outputs."""

import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from unshuffle.testing._cases import (
    Case,
    are_bags,
    assert_close,
    assert_same,
    catch_error,
    compute_outputs,
    fit_case,
    fit_copy,
    fit_outputs,
    is_set_kernel,
    list_output_methods,
    make_case,
    require,
    seeded_copy,
    to_rows,
)

# The classes are three standard deviations apart; guessing gets half of the bags right.
_LEAST_ACCURACY = 0.8


def check_arguments_unchanged(estimator: Any, tol: float) -> None:
    """The estimator changes neither bags nor targets, and accepts read-only arrays."""
    _, case = fit_case(estimator)
    kept = case.with_points(np.copy)
    fit_outputs(estimator, case)
    pairs = zip(case.bags + case.new, kept.bags + kept.new, strict=True)
    changed = sum(not np.array_equal(now, before) for now, before in pairs)
    require(changed == 0, f"The estimator changed {changed} bags: it must not change its input.")
    require(len(case.bags) == len(kept.bags), "The estimator changed the list of bags.")
    for array in (*kept.bags, *kept.new, kept.y):
        array.setflags(write=False)
    fit_outputs(estimator, kept)


def check_parameters_unchanged(estimator: Any, tol: float) -> None:
    """`fit` does not change the constructor parameters."""
    fresh = seeded_copy(estimator)
    before = fresh.get_params(deep=False)
    state = {name: _dump(value) for name, value in before.items()}
    case = make_case(estimator)
    fresh.fit(case.bags, case.y)
    after = fresh.get_params(deep=False)
    changed = [
        name
        for name, value in before.items()
        if after[name] is not value or _dump(after[name]) != state[name]
    ]
    require(not changed, f"fit changed the parameters {changed}: it must not change them.")


def check_clone(estimator: Any, tol: float) -> None:
    """A clone is unfitted, has the same parameters, and gives the same outputs once fitted."""
    fitted, case = fit_case(estimator)
    copy = clone(fitted)
    learned = [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
    require(not learned, f"A clone of a fitted estimator has {learned}: it must not be fitted.")
    copy.set_params(**fitted.get_params(deep=False))
    found = compute_outputs(copy.fit(case.bags, case.y), case)
    promise = "a clone fitted to the same bags must give the same outputs"
    assert_same(found, compute_outputs(fitted, case), promise, tol)


def check_pickle(estimator: Any, tol: float) -> None:
    """A pickled and restored estimator gives the same outputs."""
    fitted, case = fit_case(estimator)
    found = compute_outputs(pickle.loads(pickle.dumps(fitted)), case)
    assert_same(found, compute_outputs(fitted, case), "pickling must not change outputs", tol)


def check_refit(estimator: Any, tol: float) -> None:
    """Refitting with the same bags and random_state gives the same outputs."""
    fitted, case = fit_case(estimator)
    again = fit_copy(estimator, make_case(estimator, seed=1).with_points(lambda bag: bag[:5]))
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    found = compute_outputs(again.fit(case.bags, case.y), case)
    promise = "a second fit must not depend on the first"
    assert_same(found, compute_outputs(fitted, case), promise, tol)
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    require(
        before == after,
        "fit with a random_state changed NumPy's global random state: draw random numbers from "
        "`check_random_state(self.random_state)`.",
    )


def check_n_jobs(estimator: Any, tol: float) -> None:
    """Outputs do not depend on `n_jobs`."""
    _, case = fit_case(estimator)
    one, two = (fit_outputs(estimator, case, n_jobs=n) for n in (1, 2))
    assert_same(two, one, "n_jobs=2 must give the same as n_jobs=1", tol)


def check_fit_transform(estimator: Any, tol: float) -> None:
    """`fit_transform` equals `fit` followed by `transform`."""
    fitted, case = fit_case(estimator)
    found = to_rows(seeded_copy(estimator).fit_transform(case.bags, case.y))
    promise = "fit_transform must equal fit followed by transform"
    assert_close(found, to_rows(fitted.transform(case.bags)), "fit_transform", promise, tol)


def check_not_fitted(estimator: Any, tol: float) -> None:
    """Methods raise NotFittedError before `fit`."""
    fresh, case = seeded_copy(estimator), make_case(estimator)
    for name in list_output_methods(fresh):
        catch_error(
            partial(getattr(fresh, name), case.new), name, "bags before fit", NotFittedError
        )


def check_cross_validation(estimator: Any, tol: float) -> None:
    """The estimator works in a pipeline, in cross-validation and in a grid search."""
    fitted, case = fit_case(estimator)
    model, grid = _model(estimator, fitted, case)
    scores = cross_val_score(model, case.bags, case.y, cv=3, error_score="raise")
    require(np.isfinite(scores).all(), f"cross_val_score returns {scores}: scores must be finite.")
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(case.bags, case.y)
    n_predicted = len(search.predict(case.new))
    require(
        n_predicted == len(case.new),
        f"GridSearchCV predicts {n_predicted} values for {len(case.new)} bags.",
    )


def check_gram_matrix(estimator: Any, tol: float) -> None:
    """Gram matrices are symmetric, positive semi-definite and consistent with each other."""
    fitted, case = fit_case(estimator)
    K = np.asarray(fitted.gram(case.bags))
    assert_close(K.T, K, "gram", "the kernel of bags with themselves must be symmetric", tol)
    values = np.linalg.eigvalsh(K)
    lowest = values[0] / (values[-1] or 1.0)
    require(
        lowest >= -1e-8,
        f"The smallest eigenvalue of a Gram matrix is {lowest:.2g} times the largest: the matrix "
        "must be positive semi-definite (down to -1e-08).",
    )
    block = np.asarray(fitted.gram(case.new, case.bags))
    promise = "transform must return the kernel between new and fitted bags"
    assert_close(np.asarray(fitted.transform(case.new)), block, "transform", promise, tol)
    promise = "gram(a, b) must be the transpose of gram(b, a)"
    assert_close(np.asarray(fitted.gram(case.bags, case.new)).T, block, "gram", promise, tol)
    promise = "gram(a) must equal gram(a, a)"
    assert_close(np.asarray(fitted.gram(case.bags, case.bags)), K, "gram", promise, tol)


def check_classes_separated(estimator: Any, tol: float) -> None:
    """Well separated classes are predicted, and labels may be strings."""
    fitted, case = fit_case(estimator)
    right = float(np.mean(fitted.predict(case.new) == case.new_y))
    require(
        right >= _LEAST_ACCURACY,
        f"{right:.0%} of new bags from two well separated classes are predicted correctly: at "
        f"least {_LEAST_ACCURACY:.0%} must be.",
    )
    words = np.array(["left", "right"])
    named = seeded_copy(estimator).fit(case.bags, words[case.y])
    require(
        list(named.classes_) == list(words),
        f"`classes_` is {named.classes_} after a fit to the labels {words}.",
    )
    wrong = int(np.sum(named.predict(case.new) != words[fitted.predict(case.new)]))
    require(wrong == 0, f"{wrong} of {len(case.new)} predictions change when labels are strings.")


def check_decision_values(estimator: Any, tol: float) -> None:
    """Predictions follow decision values, and probabilities sum to one."""
    for n_classes in (2, 3):
        case = make_case(estimator, n_classes=n_classes)
        fitted = fit_copy(estimator, case)
        if hasattr(fitted, "decision_function"):
            _assert_decision_values(fitted, case, n_classes)
        if hasattr(fitted, "predict_proba"):
            shares = np.asarray(fitted.predict_proba(case.new))
            require(
                shares.shape == (len(case.new), n_classes),
                f"predict_proba has shape {shares.shape} for {len(case.new)} bags and {n_classes} "
                "classes.",
            )
            gap = float(np.abs(shares.sum(axis=1) - 1.0).max())
            require(gap <= 1e-6, f"Rows of predict_proba miss a sum of 1 by up to {gap:.2g}.")
            require(
                shares.min() >= 0, f"predict_proba returns {shares.min():.2g}, which is negative."
            )


def check_one_class_refused(estimator: Any, tol: float) -> None:
    """Labels of a single class raise an error that mentions classes."""
    case = make_case(estimator)
    single = replace(case, y=np.zeros(len(case.bags), dtype=int))
    message = catch_error(partial(fit_copy, estimator, single), "fit", "labels of a single class")
    require(
        "class" in message.lower(),
        f"The error for labels of a single class does not mention classes: {message!r}.",
    )


def check_label_count_refused(estimator: Any, tol: float) -> None:
    """A number of labels that differs from the number of bags raises an error."""
    case = make_case(estimator)
    what = f"{len(case.bags)} bags with {len(case.y) - 1} labels"
    catch_error(partial(fit_copy, estimator, replace(case, y=case.y[:-1])), "fit", what)


def _dump(value: Any) -> bytes:
    """Contents of a parameter, to see later whether they changed."""
    try:
        return pickle.dumps(value)
    except Exception:
        # Lambdas and local functions cannot be pickled, and have no contents to change.
        return b""


def _model(estimator: Any, fitted: Any, case: Case) -> tuple[Any, dict[str, list[Any]]]:
    """A pipeline that ends in a predictor, and a parameter grid for it."""
    steps = [("bags", seeded_copy(estimator))]
    if hasattr(fitted, "predict"):
        return Pipeline(steps), {"bags": [seeded_copy(estimator)]}
    if are_bags(fitted.transform(case.bags)):
        means = FunctionTransformer(lambda bags: np.array([bag.mean(axis=0) for bag in bags]))
        steps.append(("means", means))
    last = SVC(kernel="precomputed") if is_set_kernel(estimator) else LogisticRegression()
    return Pipeline([*steps, ("rows", last)]), {"rows__C": [0.1, 1.0]}


def _assert_decision_values(fitted: Any, case: Case, n_classes: int) -> None:
    values = np.asarray(fitted.decision_function(case.new))
    shape = (len(case.new),) if n_classes == 2 else (len(case.new), n_classes)
    require(
        values.shape == shape,
        f"decision_function has shape {values.shape} instead of {shape} for {n_classes} classes.",
    )
    chosen = (values > 0).astype(int) if n_classes == 2 else values.argmax(axis=1)
    wrong = int(np.sum(fitted.classes_[chosen] != fitted.predict(case.new)))
    require(
        wrong == 0,
        f"predict disagrees with the largest decision value for {wrong} of {len(case.new)} bags "
        f"and {n_classes} classes.",
    )
