"""Numbers on the command line, and what is said of those that are misspelled."""

import math
from collections.abc import Callable
from typing import Any

import typer

MOST_CORES = 1024
Read = Callable[[Any], Any]


def between(low: float, high: float | None = None, *, of: type = int) -> Read:
    """Reader of a number from `low` to `high`, a whole one unless it is `of` float."""
    kind = "a whole number" if of is int else "a number"
    if high is None:
        limits, spelled = f"{low} or more", f"{kind}, {low} or more"
    else:
        limits, spelled = f"a number from {low} to {high}", f"{kind} from {low} to {high}"
    most = math.inf if high is None else high
    return _reader(of, lambda value: low <= value <= most, limits, spelled)


def above_zero() -> Read:
    """Reader of a positive number."""
    return _reader(float, lambda value: 0 < value < math.inf, "a number above 0")


def cores() -> Read:
    """Reader of a number of cores, negative ones counted from the last."""
    return _reader(
        int,
        lambda value: value != 0 and abs(value) <= MOST_CORES,
        f"a number of cores up to {MOST_CORES}, or -1 for all",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reader(of: type, allows: Callable[[Any], bool], limits: str, spelled: str = "") -> Read:
    def read(text: Any) -> Any:
        try:
            value = of(text)
        except (ValueError, OverflowError):
            # The libraries below speak of parsing, and do not show what was typed.
            point = of is float and _is_number(str(text).replace(",", "."))
            raise typer.BadParameter(
                f"give {spelled or limits}{', with a point' * point}, not {str(text)[:40]!r}."
            ) from None
        if not allows(value):
            shown = f"{value:g}" if of is float else value
            raise typer.BadParameter(f"give {limits}, not {shown}.")
        return value

    return read
