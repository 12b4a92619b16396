"""What is called: one public name, or one method of it, and how to add one to the table."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.fuzz import scalars as s
from tests.fuzz.values import Kind

import unshuffle


def _nothing(result: Any, arguments: dict[str, Any]) -> str | None:
    return None


@dataclass(frozen=True)
class Subject:
    """One public name, or one method of it.

    Attributes
    ----------
    name : str
        Room and name, perhaps with a method.
    call : callable
        Takes the arguments as keywords.
    arguments : dict of str to Kind
        How to draw each.
    check : callable
        Given the answer and the arguments; returns what is wrong with it, or None.
    gaps : set of str
        Attributes of the answer that may hold NaN or infinity.
    loose : set of str
        Attributes that may depend on rounding.
    words : set of str
        Further words that name an argument in a message.
    turns : int
        How often it is called, as a multiple of the others.
    """

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Kind]
    check: Callable[[Any, dict[str, Any]], str | None] = _nothing
    gaps: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    turns: int = 1


SUBJECTS: dict[str, Subject] = {}
FITS = 4  # estimators have the most parameters, so their fits are called this many times as often


def add(name: str, call: Callable[..., Any], arguments: dict[str, Kind], **more: Any) -> None:
    for key in ("gaps", "loose", "words"):
        more[key] = frozenset(more.get(key, ()))
    SUBJECTS[name] = Subject(name, call, arguments, **more)


def function(room: Any, name: str, arguments: dict[str, Kind], **more: Any) -> None:
    add(
        f"{room.__name__.removeprefix('unshuffle.')}.{name}",
        getattr(room, name),
        arguments,
        **more,
    )


def estimator(name: str, data: dict[str, Kind], parameters: dict[str, Kind], **more: Any) -> None:
    """Construct and fit; `data` goes to fit, `parameters` to the constructor."""
    room, _, short = name.rpartition(".")
    kind = getattr(getattr(unshuffle, room), short)

    def call(**arguments: Any) -> Any:
        given = {key: value for key, value in arguments.items() if key in data}
        estimator = kind(**{key: arguments[key] for key in arguments if key not in data})
        before = estimator.get_params(deep=False)
        fitted = estimator.fit(**given)
        after = estimator.get_params(deep=False)
        if fitted is not estimator or any(after[key] is not before[key] for key in before):
            raise AssertionError(f"{name}.fit changed a parameter")
        return estimator

    add(name, call, {**data, **parameters}, turns=FITS, **more)


def method(name: str, fitted: Callable[[], Any], arguments: dict[str, Kind], **more: Any) -> None:
    """A method of an estimator that was fitted on ordinary data."""
    method = name.rpartition(".")[2]

    def call(**given: Any) -> Any:
        # scikit-learn wraps transform, and then takes its first argument by position only.
        first, *others = arguments
        more = {key: given[key] for key in others if key in given}
        first_value = [given[first]] if first in given else []
        return getattr(copy.deepcopy(fitted()), method)(*first_value, **more)

    add(name, call, arguments, **more)


def search(**more: Kind) -> dict[str, Kind]:
    """Parameters that every solver has."""
    return {
        "max_iter": s.count(1, 3, 20),
        "tol": s.real(0.0, 1e-6, 0.1),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "callback": s.callback(),
        **more,
    }


def is_matching(order: np.ndarray, n_partners: int) -> bool:
    taken = order[order >= 0]
    return bool(
        order.dtype.kind == "i"
        and (order >= -1).all()
        and (taken < n_partners).all()
        and np.unique(taken).size == taken.size
    )


def eight_rows(kind: Kind) -> Kind:
    """The kind at the size of the fitted examples."""

    def resized(draw: Any) -> Any:
        def drawn(case: Any, rng: Any) -> Any:
            case.sizes.update(n=8, m=8, d=3, e=4, b=6)
            return draw(case, rng)

        return drawn

    return Kind(resized(kind.ordinary), resized(kind.hostile), kind.needed)


def saved(result: Any, path: Any) -> Any:
    result.save(path)
    return type(result).load(path)


VECTOR_KERNELS = ("rbf", "linear", "laplacian", "geodesic", "local")
SETS = {"bags", "bag", "points", "sets", "set"}
