"""Checks of single arguments, and of the memory that a call would take."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from time import monotonic
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

# Seconds for which an answer of the system is good: asking takes longer than small fits do.
FRESH = 0.05
_last: tuple[float, int | None] = (-1.0, None)
# Counts beyond it are slips; products of three of them would overflow 64 bits.
LARGEST_COUNT = 10**18


def available_memory() -> int | None:
    """Bytes that can be taken without swapping, or None where the system does not say."""
    global _last
    now = monotonic()
    if now - _last[0] > FRESH:
        _last = now, _ask()
    return _last[1]


def _ask() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def check_memory(n_bytes: int, *, what: str, instead: str) -> None:
    """Refuse work that would not fit into the memory that is free now."""
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 1e9:,.1f} GB; {free / 1e9:.1f} GB is free. {instead}"
        )


def check_kernel_memory(n_rows: int, n_columns: int, *, n_copies: float = 1.0) -> None:
    """Refuse a dense kernel matrix, and its copies, that would not fit into the free memory."""
    check_memory(
        int(8 * n_rows * n_columns * n_copies),
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} items",
        instead="Use a sample of the items.",
    )


def check_count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Whole number within bounds."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"`{name}` must be a whole number, got {value!r}.")
    number = int(value)
    if most is None and number > LARGEST_COUNT:
        raise ValueError(f"`{name}` must be at most {LARGEST_COUNT:,}, got a larger number.")
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


def check_flag(value: Any, name: str) -> bool:
    """True or False, NumPy's too, or 1 or 0."""
    if not isinstance(value, bool | np.bool_ | Integral) or int(value) not in (0, 1):
        raise ValueError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator against its constraints."""
    with np.errstate(all="ignore"):  # bounds do not fit into the half precision of some numbers
        estimator._validate_params()
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Integral) and abs(int(value)) > LARGEST_COUNT:
            raise ValueError(f"`{name}` must be at most {LARGEST_COUNT:,}, got a larger number.")


def check_seed(random_state: Any) -> np.random.RandomState:
    """Random numbers from a seed, a RandomState, or None for fresh ones."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "`random_state` must be a whole number from 0 to 4294967295, a "
            f"numpy.random.RandomState or None, got {random_state!r}."
        ) from error
