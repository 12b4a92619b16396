"""Checks of parameters and of available memory."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from numbers import Integral, Real
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

# Seconds for which available memory is cached: asking takes longer than small fits.
FRESH = 0.05
# Larger counts are mistakes.
LARGEST_COUNT = 10**18


def available_memory() -> int | None:
    """Bytes available without swapping, or None if unknown."""
    return _available_at(int(monotonic() / FRESH))


@lru_cache(maxsize=1)
def _available_at(moment: int) -> int | None:
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
    """Refuse work that would not fit into free memory."""
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 1e9:,.1f} GB; {free / 1e9:.1f} GB is free. {instead}"
        )


def check_kernel_memory(n_rows: int, n_columns: int, *, n_copies: float = 1.0) -> None:
    """Refuse a dense kernel matrix that, with its copies, would not fit into free memory."""
    check_memory(
        int(8 * n_rows * n_columns * n_copies),
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} items",
        instead="Use a sample of the items.",
    )


def check_count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Whole number within bounds."""
    if not _is_whole(value):
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
    least: float = -np.inf,
    above: float = -np.inf,
    most: float = np.inf,
) -> float:
    """Finite number within bounds; `above` excludes its own value."""
    _check_form(value, name, [number(least=least, above=above, most=most)])
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """Finite number above zero."""
    return check_real(value, name, above=0)


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """One of several strings."""
    # `in` fails for arrays, which compare item by item.
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        asked = did_you_mean(value, options, shown=repr)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}.{asked}")
    return str(value)


def did_you_mean(name: Any, known: Iterable[str], *, shown: Callable[[str], str] = str) -> str:
    """A question about the nearest known name, to follow a sentence; "" if none is near."""
    folded = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), folded, n=1) if isinstance(name, str) else []
    return f" Did you mean {shown(folded[near[0]])}?" if near else ""


def check_flag(value: Any, name: str) -> bool:
    """True or False, including NumPy's, or 1 or 0."""
    if not isinstance(value, bool | np.bool_ | Integral) or int(value) not in (0, 1):
        raise ValueError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def check_progress(on_progress: Any) -> None:
    """Refuse what cannot be called."""
    if on_progress is not None and not callable(on_progress):
        raise ValueError(f"`on_progress` must be a function or None, got {on_progress!r}.")


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called."""
    _check_form(callback, "callback", SHARED["callback"])


class Form(NamedTuple):
    """One form that a parameter may have: its description in errors, and a test for it."""

    words: str
    fits: Callable[[Any], bool]
    options: tuple[str, ...] = ()


Constraints = Mapping[str, Sequence[Any]]


def count(least: int = 1, most: int = LARGEST_COUNT) -> Form:
    """Whole number within bounds."""
    bounds = f"at least {least:,}" if most == LARGEST_COUNT else f"from {least:,} to {most:,}"
    return Form(
        f"a whole number {bounds}", lambda value: _is_whole(value) and least <= int(value) <= most
    )


def number(
    *,
    least: float = -np.inf,
    above: float = -np.inf,
    most: float = np.inf,
    below: float = np.inf,
) -> Form:
    """Finite number within bounds; `above` and `below` exclude their own values."""
    bounds = {"at least": least, "above": above, "at most": most, "below": below}
    words = [f"{side} {bound:g}" for side, bound in bounds.items() if np.isfinite(bound)]

    def fits(value: Any) -> bool:
        real = _as_float(value)
        return np.isfinite(real) and least <= real <= most and above < real < below

    return Form(" ".join(["a finite number", " and ".join(words)]).rstrip(), fits)


def option(*options: str) -> Form:
    """One of several strings."""
    listed = ", ".join(repr(each) for each in options)
    return Form(
        f"one of {listed}" if len(options) > 1 else listed,
        lambda value: isinstance(value, str) and value in options,
        options,
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _as_float(value: Any) -> float:
    """Real number as a float; NaN for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf


def _is_seed(value: Any) -> bool:
    return isinstance(value, np.random.RandomState) or (
        _is_whole(value) and 0 <= int(value) < 2**32
    )


def _is_array(value: Any) -> bool:
    sized = hasattr(value, "__len__") or hasattr(value, "shape") or hasattr(value, "__array__")
    return sized and not isinstance(value, str | bytes)


FLAG = Form("True or False", lambda value: isinstance(value, bool | np.bool_))
WHOLE = Form("a whole number", lambda value: _is_whole(value) and abs(int(value)) <= LARGEST_COUNT)
SEED = Form("a whole number from 0 to 4294967295, a numpy.random.RandomState", _is_seed)
ARRAY = Form("an array", _is_array)
FUNCTION = Form("a callable", callable)
DEVICE = Form(
    '"cpu", "cuda", "cuda:1", a torch.device',
    lambda value: isinstance(value, str) or type(value).__module__ == "torch",
)

# Parameters that mean the same wherever an estimator has them.
SHARED: Constraints = {
    "gamma": [number(above=0), None],
    "degree": [count()],
    "n_points": [count(), None],
    "n_init": [count(1, 10**6)],
    "max_iter": [count()],
    "tol": [number(least=0)],
    "random_state": [SEED, None],
    "n_jobs": [WHOLE, None],
    "callback": [FUNCTION, None],
    "device": [DEVICE, None],
}


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator against its own and the shared constraints.

    A constraint lists forms, types and None; a parameter without one is not checked here.
    """
    given = vars(estimator)  # get_params would read the signature on each fit
    for name, forms in {**SHARED, **estimator._constraints}.items():
        if name in given:
            _check_form(given[name], name, forms)


def _check_form(value: Any, name: str, forms: Sequence[Any]) -> None:
    """Refuse a value that fits none of the forms."""
    if not any(_fits(value, form) for form in forms):
        *others, last = [_words(form) for form in forms]
        listed = f"{', '.join(others)} or {last}" if others else last
        options = [each for form in forms if isinstance(form, Form) for each in form.options]
        asked = did_you_mean(value, options, shown=repr)
        raise ValueError(f"`{name}` must be {listed}, got {value!r:.200}.{asked}")


def _fits(value: Any, form: Any) -> bool:
    if form is None:
        return value is None
    return form.fits(value) if isinstance(form, Form) else isinstance(value, form)


def _words(form: Any) -> str:
    if isinstance(form, Form):
        return form.words
    return "None" if form is None else f"a {form.__name__}"


def check_seed(random_state: Any) -> np.random.RandomState:
    """Random number generator from a seed, a RandomState, or None for a random seed."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "`random_state` must be a whole number from 0 to 4294967295, a "
            f"numpy.random.RandomState or None, got {random_state!r}."
        ) from error
