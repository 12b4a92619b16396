"""What an assignment solver hands back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._printing import short_repr


@dataclass(frozen=True)
class Assignment:
    """A matching of rows to columns, with a bound on what it loses to the best one.

    Attributes
    ----------
    columns : ndarray of shape (n_rows,), dtype intp
        Column matched to each row; -1 where the row is unmatched.
    value : float
        Total cost of the matched pairs, in the sense the caller gave it, without
        the cost of what stays unmatched.
    prices : ndarray of shape (n_cols,) or None
        Price of each column: what the rows that did not get it would have paid for
        it. Pass it back as `prices` to solve a similar problem faster. None where
        the solver gives none.
    gap : float
        Upper bound on the loss against the best assignment, certified by the
        prices: the absolute loss divided by |objective|, or by its distance from
        that of typical pairs where that is less, since a constant added to all
        costs makes no loss smaller; at least by what the costs of a row differ by.
        The objective is `value` plus, where it was given, `unmatched_cost` for
        everything that stayed unmatched. 0.0 is optimal.
    solver : str
        "exact" or "auction".
    """

    columns: NDArray[np.intp]
    value: float
    prices: NDArray[np.float64] | None
    gap: float
    solver: str

    def __repr__(self) -> str:
        return short_repr(self)
