"""Checks of what is drawn at random."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def check_digits(digits: Any) -> list[int]:
    """Different digits from 0 to 9, at least one."""
    listed = list(np.atleast_1d(digits)) if isinstance(digits, np.ndarray) else digits
    listed = list(listed) if isinstance(listed, Sequence) else [listed]
    whole = all(isinstance(each, int | np.integer) and 0 <= each <= 9 for each in listed)
    if not listed or not whole or isinstance(digits, str) or len(set(listed)) < len(listed):
        raise ValueError(
            f"`digits` must be different whole numbers from 0 to 9, got {digits!r}. Pass e.g. "
            "(3, 9)."
        )
    return [int(each) for each in listed]
