"""Refusal of results that leave the floats, with the argument that did it."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

# Arguments so large may be why a decomposition failed.
LARGE = 1e100

P = ParamSpec("P")
R = TypeVar("R")


def within_floats(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function refuse what comes out infinite or NaN; `names` are the arrays it is given.

    Overflow is then told once, by a ValueError that names the arguments, and not by a warning
    from somewhere inside.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            lost: Exception | None = None
            with np.errstate(all="ignore"):
                try:
                    found = function(*args, **kwargs)
                except ValueError as error:  # of a decomposition
                    given = signature(function).bind(*args, **kwargs).arguments
                    if all(_size(given.get(name)) < LARGE for name in names):
                        raise
                    lost = error
            if lost is None and _all_finite(found):
                return found
            given = signature(function).bind(*args, **kwargs).arguments
            raise_not_float(function.__name__, {name: given.get(name) for name in names}, lost)

        return checked

    return decorate


def raise_not_float(
    what: str, arguments: Mapping[str, Any], cause: Exception | None = None
) -> NoReturn:
    """Say that a result is no float, and how large the arguments were that it came from."""
    sizes = [f"`{name}` of up to {_size(value):.3g}" for name, value in arguments.items()]
    raise ValueError(
        f"{what} does not fit into a float, given {', '.join(sizes)}. Pass finite numbers closer "
        "to 1: divide them by a common one first."
    ) from cause


def _all_finite(found: Any) -> bool:
    if isinstance(found, tuple):
        return all(map(_all_finite, found))
    return bool(np.isfinite(found).all())


def _size(value: Any) -> float:
    """Largest entry of an array, or of several, by magnitude; infinite where one is not finite."""
    parts = value if isinstance(value, list | tuple) else [value]
    sizes = [float(np.abs(np.asarray(part, dtype=np.float64)).max(initial=0.0)) for part in parts]
    return max((np.inf if np.isnan(size) else size for size in sizes), default=0.0)
