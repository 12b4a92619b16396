"""Checks of classifiers, of Gram matrices, and of estimators inside scikit-learn's tools."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from unshuffle.testing._answers import are_bags, assert_close, require
from unshuffle.testing._cases import (
    Case,
    fitted_case,
    is_set_kernel,
    make_case,
    prepared,
)

# Two kinds of bags three deviations apart: a coin would get half of them.
_LEAST_ACCURACY = 0.8


def check_cross_validation(estimator: Any, tol: float) -> None:
    """Lists of bags go through a pipeline, cross-validation and a grid search."""
    fitted, case = fitted_case(estimator)
    model, grid = _model(estimator, fitted, case)
    scores = cross_val_score(model, case.bags, case.y, cv=3, error_score="raise")
    require(np.isfinite(scores).all(), f"cross_val_score gives {scores}: scores must be numbers.")
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(case.bags, case.y)
    n_told = len(search.predict(case.new))
    require(
        n_told == len(case.new),
        f"A grid search over it predicts {n_told} values for {len(case.new)} bags.",
    )


def check_gram_matrix(estimator: Any, tol: float) -> None:
    """Gram matrices are symmetric and positive semi-definite, and blocks of one another."""
    fitted, case = fitted_case(estimator)
    K = np.asarray(fitted.kernel(case.bags))
    assert_close(K.T, K, "kernel", "the kernel of bags with themselves must be symmetric", tol)
    values = np.linalg.eigvalsh(K)
    lowest = values[0] / (values[-1] or 1.0)
    require(
        lowest >= -1e-8,
        f"The smallest eigenvalue of a Gram matrix is {lowest:.2g} of the largest: it must be "
        "positive semi-definite, down to -1e-08.",
    )
    block = np.asarray(fitted.kernel(case.new, case.bags))
    promise = "transform must give the kernel between new bags and the fitted ones"
    assert_close(np.asarray(fitted.transform(case.new)), block, "transform", promise, tol)
    promise = "kernel(a, b) must be kernel(b, a) transposed"
    assert_close(np.asarray(fitted.kernel(case.bags, case.new)).T, block, "kernel", promise, tol)
    promise = "kernel(a) must be kernel(a, a)"
    assert_close(np.asarray(fitted.kernel(case.bags, case.bags)), K, "kernel", promise, tol)


def check_kinds_told_apart(estimator: Any, tol: float) -> None:
    """Two kinds of bags far apart are told apart, by whatever labels."""
    fitted, case = fitted_case(estimator)
    right = float(np.mean(fitted.predict(case.new) == case.new_y))
    require(
        right >= _LEAST_ACCURACY,
        f"Of new bags of two kinds, far apart, {right:.0%} are told apart: it must reach "
        f"{_LEAST_ACCURACY:.0%}.",
    )
    words = np.array(["left", "right"])
    named = prepared(estimator).fit(case.bags, words[case.y])
    require(
        list(named.classes_) == list(words),
        f"`classes_` is {named.classes_} after a fit to the labels {words}.",
    )
    wrong = int(np.sum(named.predict(case.new) != words[fitted.predict(case.new)]))
    require(wrong == 0, f"{wrong} of {len(case.new)} answers change when labels are words.")


def check_decisions(estimator: Any, tol: float) -> None:
    """Predictions follow decision values, and probabilities sum to one."""
    for n_kinds in (2, 3):
        fitted, case = _fitted_to_kinds(estimator, n_kinds)
        if hasattr(fitted, "decision_function"):
            _assert_decisions(fitted, case, n_kinds)
        if hasattr(fitted, "predict_proba"):
            shares = np.asarray(fitted.predict_proba(case.new))
            require(
                shares.shape == (len(case.new), n_kinds),
                f"predict_proba has shape {shares.shape} for {len(case.new)} bags and {n_kinds} "
                "classes.",
            )
            gap = float(np.abs(shares.sum(axis=1) - 1.0).max())
            require(gap <= 1e-6, f"Rows of predict_proba sum to 1 give or take {gap:.2g}.")
            require(shares.min() >= 0, f"predict_proba gives {shares.min():.2g}, below zero.")


def check_one_class_refused(estimator: Any, tol: float) -> None:
    """Labels that are all the same are refused in words about classes."""
    case = make_case(estimator, ragged=False)
    try:
        prepared(estimator).fit(case.bags, np.zeros(len(case.bags), dtype=int))
    except ValueError as error:
        require(
            "class" in str(error).lower(),
            f"Labels of one class are refused without a word about classes: {str(error)!r}.",
        )
        return
    raise AssertionError("fit accepts labels of one class only: it must raise ValueError.")


def check_number_of_labels(estimator: Any, tol: float) -> None:
    """A target of another length than the list of bags is refused."""
    case = make_case(estimator, ragged=False)
    try:
        prepared(estimator).fit(case.bags, case.y[:-1])
    except ValueError:
        return
    raise AssertionError(
        f"fit accepts {len(case.bags)} bags with {len(case.y) - 1} labels: it must raise "
        "ValueError."
    )


def _model(estimator: Any, fitted: Any, case: Case) -> tuple[Any, dict[str, list[Any]]]:
    """What predicts, with the estimator in it, and parameters to search over."""
    steps = [("bags", prepared(estimator))]
    if hasattr(fitted, "predict"):
        return Pipeline(steps), {"bags": [prepared(estimator)]}
    if are_bags(fitted.transform(case.bags)):
        steps.append(("means", FunctionTransformer(_means)))
    last = SVC(kernel="precomputed") if is_set_kernel(estimator) else LogisticRegression()
    return Pipeline([*steps, ("rows", last)]), {"rows__C": [0.1, 1.0]}


def _means(bags: Any) -> Any:
    return np.array([bag.mean(axis=0) for bag in bags])


def _fitted_to_kinds(estimator: Any, n_kinds: int) -> tuple[Any, Case]:
    case = make_case(estimator, ragged=False, n_kinds=n_kinds)
    return prepared(estimator).fit(case.bags, case.y), case


def _assert_decisions(fitted: Any, case: Case, n_kinds: int) -> None:
    values = np.asarray(fitted.decision_function(case.new))
    shape = (len(case.new),) if n_kinds == 2 else (len(case.new), n_kinds)
    require(
        values.shape == shape,
        f"decision_function has shape {values.shape} instead of {shape} for {n_kinds} classes.",
    )
    chosen = (values > 0).astype(int) if n_kinds == 2 else values.argmax(axis=1)
    wrong = int(np.sum(fitted.classes_[chosen] != fitted.predict(case.new)))
    require(
        wrong == 0,
        f"predict disagrees with the largest decision value of {wrong} of {len(case.new)} bags "
        f"with {n_kinds} classes.",
    )
