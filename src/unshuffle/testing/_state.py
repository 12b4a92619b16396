"""Checks of what an estimator keeps: parameters, arguments, random numbers, what it learnt."""

import pickle
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from unshuffle.testing._answers import (
    PER_BAG,
    answers,
    as_rows,
    assert_close,
    assert_same,
    require,
)
from unshuffle.testing._cases import WIDTH, fitted_case, make_case, prepared


def check_fit_returns_itself(estimator: Any, tol: float) -> None:
    """`fit` returns the estimator and records the width of a point."""
    fresh = prepared(estimator)
    case = make_case(estimator, ragged=False)
    require(fresh.fit(case.bags, case.y) is fresh, "fit must return the estimator itself.")
    width = getattr(fresh, "n_features_in_", None)
    require(
        width == WIDTH, f"`n_features_in_` is {width} after a fit to points of {WIDTH} columns."
    )


def check_arguments_unchanged(estimator: Any, tol: float) -> None:
    """Neither a fit nor an answer changes the bags or the target; read-only ones will do."""
    _, case = fitted_case(estimator)
    kept = case.with_points(np.copy)
    answers(prepared(estimator).fit(case.bags, case.y), case.new, case.new_y)
    pairs = zip(case.bags + case.new, kept.bags + kept.new, strict=True)
    changed = sum(not np.array_equal(now, before) for now, before in pairs)
    require(
        changed == 0, f"{changed} bags were changed by the estimator: it must leave them alone."
    )
    require(len(case.bags) == len(kept.bags), "The list of bags was changed by the estimator.")
    for array in (*kept.bags, *kept.new, kept.y):
        array.setflags(write=False)
    answers(prepared(estimator).fit(kept.bags, kept.y), kept.new, kept.new_y)


def check_parameters_unchanged(estimator: Any, tol: float) -> None:
    """A fit leaves the parameters of the constructor as they were."""
    fresh = prepared(estimator)
    before = fresh.get_params(deep=False)
    state = {name: _frozen(value) for name, value in before.items()}
    case = make_case(estimator, ragged=False)
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
    found = answers(copy.fit(case.bags, case.y), case.new, case.new_y)
    expected = answers(fitted, case.new, case.new_y)
    assert_same(found, expected, "a clone must learn the same from the same bags", tol)


def check_pickle(estimator: Any, tol: float) -> None:
    """A fitted estimator that is saved and loaded gives the same answers."""
    fitted, case = fitted_case(estimator)
    loaded = pickle.loads(pickle.dumps(fitted))
    expected = answers(fitted, case.new, case.new_y)
    found = answers(loaded, case.new, case.new_y)
    assert_same(found, expected, "a pickled estimator must answer as before", tol)


def check_repeated_fit(estimator: Any, tol: float) -> None:
    """The same bags and random_state teach the same, also after other bags were fitted."""
    expected_of, case = fitted_case(estimator)
    other = make_case(estimator, ragged=False, seed=1).with_points(lambda bag: bag[:5])
    again = prepared(estimator).fit(other.bags, other.y)
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    found = answers(again.fit(case.bags, case.y), case.new, case.new_y)
    expected = answers(expected_of, case.new, case.new_y)
    promise = "a second fit must forget the first and give the same for the same random_state"
    assert_same(found, expected, promise, tol)
    after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    require(
        before == after,
        "NumPy's own random numbers were used although random_state was given, or where nothing "
        "is random: draw from `check_random_state(self.random_state)`.",
    )


def check_n_jobs(estimator: Any, tol: float) -> None:
    """The number of workers changes no answer."""
    _, case = fitted_case(estimator)
    one, two = (
        answers(prepared(estimator, n_jobs=n).fit(case.bags, case.y), case.new, case.new_y)
        for n in (1, 2)
    )
    assert_same(two, one, "n_jobs=2 must give the same as n_jobs=1", tol)


def check_fit_transform(estimator: Any, tol: float) -> None:
    """`fit_transform` gives what `fit` and then `transform` give."""
    fitted, case = fitted_case(estimator)
    found = as_rows(prepared(estimator).fit_transform(case.bags, case.y))
    promise = "fit_transform must give what fit and then transform give"
    assert_close(found, as_rows(fitted.transform(case.bags)), "fit_transform", promise, tol)


def check_not_fitted(estimator: Any, tol: float) -> None:
    """Before a fit, questions are answered by NotFittedError."""
    case = make_case(estimator, ragged=False)
    fresh = prepared(estimator)
    for name in (*PER_BAG, "align"):
        if not hasattr(fresh, name):
            continue
        try:
            getattr(fresh, name)(case.new)
        except NotFittedError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{name} before fit raises {type(error).__name__}: it must raise NotFittedError, "
                "such as sklearn's check_is_fitted does."
            ) from error
        raise AssertionError(f"{name} gives an answer before fit: it must raise NotFittedError.")


def _frozen(value: Any) -> bytes:
    """What a parameter holds, to tell later whether that changed."""
    try:
        return pickle.dumps(value)
    except Exception:
        # Functions made on the spot, such as kernels and callbacks, have nothing inside to change.
        return b""
