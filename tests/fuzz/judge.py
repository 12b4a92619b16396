"""Make one call, watch it, and say what came of it.

Three outcomes are allowed: an answer that keeps its invariants, a ValueError or TypeError of our
own that names an argument, and a MemoryError with a number. Everything else is a fault.
"""

import re
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.fuzz.subject import Subject
from tests.fuzz.values import CallbackError, Case

import unshuffle
from unshuffle.matching import DoubtWarning

ALLOWED = ("answer", "refused", "out of memory")
FAULTS = (
    "crash",
    "hang",
    "changed input",
    "obscure error",
    "RuntimeWarning",
    "nonsense",
)
SOURCE = Path(unshuffle.__file__).parent
HERE = Path(__file__).parent
SECONDS = 20


@dataclass(frozen=True)
class Outcome:
    """What came of a call: one of `ALLOWED` or `FAULTS`, and the details."""

    kind: str
    details: str = ""
    seconds: float = 0.0


class TooSlow(BaseException):
    """The time limit, as raised in the main thread between two bytecodes."""


def drawn(subject: Subject, case: Case) -> dict[str, Any]:
    """The arguments of a case; those left at their default are not in it."""
    arguments = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy has a word to say about some hostile values
        for name, kind in subject.arguments.items():
            rng = case.rng(name)
            passed = kind.needed or rng.random() < 0.3
            if name in case.hostile:
                arguments[name] = kind.hostile(case, rng)
            elif passed:
                arguments[name] = kind.ordinary(case, rng)
    return arguments


def hostile_arguments(subject: Subject, seed: int) -> frozenset[str]:
    """Which arguments to spoil: none in a quarter of the calls, at most two."""
    rng = np.random.default_rng([seed, 1])
    n_hostile = min(int(rng.choice([0, 1, 1, 2])), len(subject.arguments))
    return frozenset(rng.permutation(list(subject.arguments))[:n_hostile].tolist())


def judge(subject: Subject, seed: int, hostile: frozenset[str] | None = None) -> Outcome:
    """Make the call of a seed and judge it."""
    hostile = hostile_arguments(subject, seed) if hostile is None else hostile
    case = Case(seed, hostile)
    start = time.perf_counter()
    outcome = _judge_case(subject, case)
    return Outcome(outcome.kind, outcome.details, time.perf_counter() - start)


def _judge_case(subject: Subject, case: Case) -> Outcome:
    arguments = drawn(subject, case)
    # A kernel that writes into its argument may spoil what it was given, but nothing else.
    watched = {name: fingerprint(value) for name, value in arguments.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with time_limit(SECONDS):
                result = subject.call(**arguments)
                found = list(arrays(result))
        except TooSlow:
            return Outcome("hang", f"stopped after {SECONDS} s\n{traceback.format_exc()}")
        except (CallbackError, KeyboardInterrupt):
            return Outcome("refused", "the caller's own error")
        except Exception as error:
            return (
                _judge_error(error, subject, arguments)
                or _judge_warnings(caught)
                or Outcome("refused", f"{type(error).__name__}: {error}")
            )
    changed = [name for name, before in watched.items() if fingerprint(arguments[name]) != before]
    if changed:
        return Outcome("changed input", f"{', '.join(changed)} changed")
    fault = _judge_warnings(caught)
    if fault is not None:
        return fault
    for name, values in found:
        if (
            values.dtype.kind in "fc"
            and not np.isfinite(values).all()
            and name not in subject.gaps
        ):
            return Outcome("nonsense", f"{name or 'the result'} is not finite: {values!r:.300}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call itself was judged by its warnings
            complaint = subject.check(result, arguments)
    except Exception as error:
        refused = Outcome("refused", f"{type(error).__name__}: {error}")
        return _judge_error(error, subject, arguments) or refused
    if complaint:
        return Outcome("nonsense", complaint)
    if not case.hostile and not case.plain and case.seed % 4 == 0:
        return _judge_twin(subject, case, found)
    return Outcome("answer")


def _judge_twin(subject: Subject, case: Case, found: list[tuple[str, np.ndarray]]) -> Outcome:
    """Compare the answer with that of the same call on plain arrays."""
    twin = drawn(subject, Case(case.seed, plain=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            again = list(arrays(subject.call(**twin)))
        except Exception as error:
            return Outcome(
                "nonsense", f"plain arrays are refused: {type(error).__name__}: {error}"
            )
    if not found or not again:  # texts and objects
        return Outcome("answer")
    if len(found) != len(again):  # a list in one, an array in the other
        found, again = (
            [("all", np.concatenate([np.ravel(each) for _, each in values]))]
            for values in (found, again)
        )
    for (name, first), (_, second) in zip(found, again, strict=True):
        if first.shape != second.shape:
            return Outcome(
                "nonsense", f"{name}: shape {first.shape}, of plain arrays {second.shape}"
            )
        if (
            first.dtype.kind in "fiub"
            and second.dtype.kind in "fiub"
            and name not in subject.loose
        ):
            largest = np.abs(second[np.isfinite(second)]).max(initial=1e-3)
            close = np.allclose(first, second, rtol=1e-6, atol=1e-6 * largest, equal_nan=True)
            if not close:
                return Outcome(
                    "nonsense", f"{name}: {first!r:.200}, of plain arrays {second!r:.200}"
                )
    return Outcome("answer")


def _judge_error(error: Exception, subject: Subject, arguments: dict[str, Any]) -> Outcome | None:
    """The fault of an error, or None where it is one of ours that names an argument."""
    report = "".join(traceback.format_exception(error, limit=-3))
    if isinstance(error, MemoryError):
        if re.search(r"\d", str(error)) and _raised_here(error):
            return Outcome("out of memory", str(error))
        return Outcome("obscure error", report)
    if isinstance(error, NotFittedError):
        return None
    if re.search(r"X has \d+ features, but \w+ is expecting \d+", str(error)):
        return None  # scikit-learn asks for these words
    if not isinstance(error, ValueError | TypeError) or not _raised_here(error):
        return Outcome("obscure error", report)
    words = set(re.findall(r"\w+", str(error)))
    values = [str(value) for value in arguments.values() if isinstance(value, str | Path)]
    if words & {*arguments, *subject.arguments, *subject.words}:
        return None
    if any(value and (value in str(error) or Path(value).name in str(error)) for value in values):
        return None
    return Outcome("obscure error", f"names no argument of {list(arguments)}\n{report}")


def _raised_here(error: BaseException) -> bool:
    """Tell whether the error was raised in a file of the library."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and SOURCE in Path(frames[-1].filename).parents


def _judge_warnings(caught: list[warnings.WarningMessage]) -> Outcome | None:
    for each in caught:
        if issubclass(each.category, ConvergenceWarning | DoubtWarning):
            continue
        if issubclass(each.category, UserWarning) and SOURCE in Path(each.filename).parents:
            continue
        if issubclass(each.category, ResourceWarning | PendingDeprecationWarning):
            continue
        if each.category is UserWarning and _ours(str(each.message)):
            continue
        if HERE in Path(each.filename).parents:  # in a kernel or callback of the caller's
            continue
        where = f"{each.filename}:{each.lineno}"
        return Outcome("RuntimeWarning", f"{each.category.__name__}: {each.message} ({where})")
    return None


def _ours(message: str) -> bool:
    """A warning of the library that points at its caller, by `stacklevel`."""
    return not any(word in message for word in ("sklearn", "numpy", "divide by zero"))


class time_limit:
    """Raises `TooSlow` in the main thread after some seconds of work, whatever else is running."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def late(number: int, frame: Any) -> None:
            raise TooSlow

        self._before = signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)


def fingerprint(value: Any) -> Any:
    """Something that differs when the numbers of a value were changed."""
    from scipy import sparse

    if isinstance(value, np.ma.MaskedArray):
        return (
            value.filled(0).tobytes() if value.dtype.kind in "fiu" else 0,
            value.mask.tobytes(),
        )
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return tuple(fingerprint(item) for item in value.flat)
        return (value.shape, value.dtype.str, value.flags.writeable, value.tobytes())
    if sparse.issparse(value):
        return fingerprint(value.tocoo().data)
    if isinstance(value, list | tuple):
        return tuple(fingerprint(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, fingerprint(item)) for key, item in value.items())
    if type(value).__name__ == "DataFrame":
        return (tuple(value.columns), value.to_numpy().astype(str).tobytes())
    if isinstance(value, float) and np.isnan(value):
        return "nan"
    if isinstance(value, str | int | float | complex | bytes | bool | type(None)):
        return value
    return id(value)


def arrays(result: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Every array and number inside a result, with the name it goes by."""
    from PIL import Image
    from sklearn.base import BaseEstimator

    if isinstance(result, np.ndarray):
        if result.dtype != object:
            yield name, result
    elif isinstance(result, bool | int | float | np.generic):
        yield name, np.asarray(result)
    elif isinstance(result, BaseEstimator):
        for key in sorted(vars(result)):
            if key.endswith("_") and not key.startswith("_"):
                yield from arrays(getattr(result, key), key)
    elif isinstance(result, Image.Image):
        yield name, np.asarray(result)
    elif isinstance(result, dict):
        for key, item in result.items():
            yield from arrays(item, f"{name}[{key!r}]")
    elif isinstance(result, list | tuple | Iterator):
        for item in result:
            yield from arrays(item, name)
    elif hasattr(result, "__dataclass_fields__"):
        for key in result.__dataclass_fields__:
            yield from arrays(getattr(result, key), key)


def described(subject: Subject, seed: int, hostile: frozenset[str] | None = None) -> str:
    """The call of a seed in words, hostile arguments marked with a star."""
    hostile = hostile_arguments(subject, seed) if hostile is None else hostile
    arguments = drawn(subject, Case(seed, hostile))
    shown = (f"{'*' if k in hostile else ''}{k}={_short(v)}" for k, v in arguments.items())
    return f"{subject.name}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        sample = "" if value.size > 8 else f" {value.ravel().tolist()}"
        return f"<{value.dtype} {value.shape}{sample}>"
    if type(value).__name__ in ("DataFrame", "DataFrameGroupBy", "csr_array", "matrix"):
        return f"<{type(value).__name__}>"
    if isinstance(value, list | tuple) and value:
        return f"[{_short(value[0])}, ... {len(value)} in all]"
    if callable(value):
        return getattr(value, "__name__", "callable")
    return re.sub(" at 0x[0-9A-Fa-f]+", "", repr(value))[:60]


def reduced(subject: Subject, seed: int) -> frozenset[str]:
    """The fewest hostile arguments that still give a fault of the same kind."""
    hostile = hostile_arguments(subject, seed)
    kind = judge(subject, seed).kind
    for name in sorted(hostile):
        fewer = hostile - {name}
        if judge(subject, seed, fewer).kind == kind:
            hostile = fewer
    return hostile
