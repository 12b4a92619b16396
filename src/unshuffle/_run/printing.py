"""Short representations of results that hold arrays, of durations, and warnings."""

import sys
import warnings
from dataclasses import fields
from typing import Any

import numpy as np

# Code that runs between the line of the user and the one that warns.
_LIBRARIES = {"unshuffle", "sklearn", "joblib", "contextlib"}


class SlowFitWarning(UserWarning):
    """A fit that has begun will take long."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that led here, through pipelines and searches too."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _library(frame.f_globals) in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _library(names: dict[str, Any]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


def short_repr(result: Any) -> str:
    """`__repr__` of a dataclass or a named tuple that shows arrays and lists by size."""
    named = getattr(result, "_fields", None)
    names = [each.name for each in fields(result)] if named is None else named
    shown = ", ".join(f"{name}={_shown(getattr(result, name))}" for name in names)
    return f"{type(result).__name__}({shown})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim:
        return f"<{' x '.join(f'{size:,}' for size in value.shape)} {value.dtype}>"
    if isinstance(value, list | tuple | dict):
        return f"<{type(value).__name__} of {len(value):,}>"
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"<{type(value).__name__}>"


def duration(seconds: float) -> str:
    """Rough duration in words: "40 seconds", "3 minutes" or "2 hours"."""
    length, unit = 1.0, "second"
    if seconds >= 90:
        length, unit = (60.0, "minute") if seconds < 5400 else (3600.0, "hour")
    number = max(round(seconds / length), 1)
    return f"{number:,} {unit}{'s' * (number != 1)}"
