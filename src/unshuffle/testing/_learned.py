"""Checks of what an estimator keeps and learns, and that scikit-learn's tools can use it."""

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
    answers,
    are_bags,
    as_rows,
    assert_close,
    assert_same,
    fit_to,
    fitted_case,
    is_set_kernel,
    make_case,
    prepared,
    questions,
    refusal,
    require,
    told,
)

# Two kinds of bags three deviations apart: a coin would get half of them.
_LEAST_ACCURACY = 0.8


def check_arguments_unchanged(estimator: Any, tol: float) -> None:
    """Neither a fit nor an answer changes the bags or the target; read-only ones will do."""
    _, case = fitted_case(estimator)
    kept = case.with_points(np.copy)
    told(estimator, case)
    pairs = zip(case.bags + case.new, kept.bags + kept.new, strict=True)
    changed = sum(not np.array_equal(now, before) for now, before in pairs)
    require(
        changed == 0, f"{changed} bags were changed by the estimator: it must leave them alone."
    )
    require(len(case.bags) == len(kept.bags), "The list of bags was changed by the estimator.")
    for array in (*kept.bags, *kept.new, kept.y):
        array.setflags(write=False)
    told(estimator, kept)


def check_parameters_unchanged(estimator: Any, tol: float) -> None:
    """A fit leaves the parameters of the constructor as they were."""
    fresh = prepared(estimator)
    before = fresh.get_params(deep=False)
    state = {name: _frozen(value) for name, value in before.items()}
    case = make_case(estimator)
    fresh.fit(case.bags, case.y)
    after = fresh.get_params(deep=False)
    changed = [
        name
        for name, value in before.items()
        if after[name] is not value or _frozen(after[name]) != state[name]
    ]
    require(not changed, f"fit changed the parameters {changed}: it must leave them as they were.")


def check_clone_and_parameters(estimator: Any, tol: float) -> None:
    """A clone is not fitted, has the same parameters, and learns the same."""
    fitted, case = fitted_case(estimator)
    copy = clone(fitted)
    learnt = [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
    require(not learnt, f"A clone of a fitted estimator has {learnt}: it must not be fitted.")
    copy.set_params(**fitted.get_params(deep=False))
    found = answers(copy.fit(case.bags, case.y), case)
    promise = "a clone must learn the same from the same bags"
    assert_same(found, answers(fitted, case), promise, tol)


def check_pickle(estimator: Any, tol: float) -> None:
    """A fitted estimator that is saved and loaded gives the same answers."""
    fitted, case = fitted_case(estimator)
    found = answers(pickle.loads(pickle.dumps(fitted)), case)
    assert_same(found, answers(fitted, case), "a pickled estimator must answer as before", tol)


def check_repeated_fit(estimator: Any, tol: float) -> None:
    """The same bags and random_state teach the same, also after other bags were fitted."""
    fitted, case = fitted_case(estimator)
    again = fit_to(estimator, make_case(estimator, seed=1).with_points(lambda bag: bag[:5]))
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    found = answers(again.fit(case.bags, case.y), case)
    promise = "a second fit must forget the first and give the same for the same random_state"
    assert_same(found, answers(fitted, case), promise, tol)
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    require(
        before == after,
        "NumPy's own random numbers were used although random_state was given, or where nothing "
        "is random: draw from `check_random_state(self.random_state)`.",
    )


def check_n_jobs(estimator: Any, tol: float) -> None:
    """The number of workers changes no answer."""
    _, case = fitted_case(estimator)
    one, two = (told(estimator, case, n_jobs=n) for n in (1, 2))
    assert_same(two, one, "n_jobs=2 must give the same as n_jobs=1", tol)


def check_fit_transform(estimator: Any, tol: float) -> None:
    """`fit_transform` gives what `fit` and then `transform` give."""
    fitted, case = fitted_case(estimator)
    found = as_rows(prepared(estimator).fit_transform(case.bags, case.y))
    promise = "fit_transform must give what fit and then transform give"
    assert_close(found, as_rows(fitted.transform(case.bags)), "fit_transform", promise, tol)


def check_not_fitted(estimator: Any, tol: float) -> None:
    """Before a fit, questions are answered by NotFittedError."""
    fresh, case = prepared(estimator), make_case(estimator)
    for name in questions(fresh):
        refusal(partial(getattr(fresh, name), case.new), name, "bags before fit", NotFittedError)


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
        case = make_case(estimator, n_kinds=n_kinds)
        fitted = fit_to(estimator, case)
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
    case = make_case(estimator)
    alike = replace(case, y=np.zeros(len(case.bags), dtype=int))
    message = refusal(partial(fit_to, estimator, alike), "fit", "labels of one class only")
    require(
        "class" in message.lower(),
        f"Labels of one class are refused without a word about classes: {message!r}.",
    )


def check_number_of_labels(estimator: Any, tol: float) -> None:
    """A target of another length than the list of bags is refused."""
    case = make_case(estimator)
    what = f"{len(case.bags)} bags with {len(case.y) - 1} labels"
    refusal(partial(fit_to, estimator, replace(case, y=case.y[:-1])), "fit", what)


def _frozen(value: Any) -> bytes:
    """What a parameter holds, to tell later whether that changed."""
    try:
        return pickle.dumps(value)
    except Exception:
        # Functions made on the spot, such as kernels and callbacks, have nothing inside to change.
        return b""


def _model(estimator: Any, fitted: Any, case: Case) -> tuple[Any, dict[str, list[Any]]]:
    """What predicts, with the estimator in it, and parameters to search over."""
    steps = [("bags", prepared(estimator))]
    if hasattr(fitted, "predict"):
        return Pipeline(steps), {"bags": [prepared(estimator)]}
    if are_bags(fitted.transform(case.bags)):
        means = FunctionTransformer(lambda bags: np.array([bag.mean(axis=0) for bag in bags]))
        steps.append(("means", means))
    last = SVC(kernel="precomputed") if is_set_kernel(estimator) else LogisticRegression()
    return Pipeline([*steps, ("rows", last)]), {"rows__C": [0.1, 1.0]}


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
