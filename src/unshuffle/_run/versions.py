"""Versions of other libraries, compared."""

import re
from typing import Any


def is_older(module: Any, lowest: str) -> bool:
    """Whether an imported library is older than a version.

    Where a library is used because it happens to be there, no requirement has been checked.
    """
    return release(module.__version__) < release(lowest)


def release(version: str) -> tuple[int, ...]:
    """Numbers of a version, to compare: 3.10.0rc1 is (3, 10)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(each) for each in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
