"""What is asked of single numbers and words."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Whole number within bounds."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"`{name}` must be a whole number, got {value!r}.")
    number = int(value)
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` must be {bounds}, got {number}.")
    return number


def check_real(
    value: Any,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """Finite number within bounds; `above` leaves its own value out."""
    try:
        number = (
            float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
        )
    except OverflowError:  # a whole number of more than 308 digits
        number = np.inf
    bounds = []
    if least is not None:
        bounds.append((number >= least, f" at least {least}"))
    if above is not None:
        bounds.append((number > above, f" above {above}"))
    if most is not None:
        bounds.append((number <= most, f" at most {most}"))
    if not (np.isfinite(number) and all(kept for kept, _ in bounds)):
        asked = " and".join(words for _, words in bounds)
        raise ValueError(f"`{name}` must be a finite number{asked}, got {value!r}.")
    return number


def check_positive(value: Any, name: str) -> float:
    """Finite number above zero."""
    return check_real(value, name, above=0)


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """One of a fixed set of words."""
    # An array compares item by item, and has no answer to `in`.
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}.")
    return str(value)


def check_seed(random_state: Any) -> np.random.RandomState:
    """Random numbers from a seed, a RandomState, or None for fresh ones."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "`random_state` must be a whole number from 0 to 4294967295, a "
            f"numpy.random.RandomState or None, got {random_state!r}."
        ) from error
