"""Units in which a quadratic assignment is solved: numbers near 1, whatever those given."""

from dataclasses import dataclass
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._quadratic.problem import LARGEST

# Matrices whose largest numbers have exponents of two in this range are solved as they are.
USUAL = 100
# Smaller numbers, relative to the largest, are far below rounding errors. They are taken for 0:
# products with subnormal numbers take many times as long.
NEGLIGIBLE = 2.0**-500
# Products that a cost outweighs by more than the square of 2^FARTHEST are raised to that share.
FARTHEST = 100


@dataclass(frozen=True, eq=False)
class Units:
    """Matrices in units that are powers of two, which round nothing."""

    A: NDArray[Any]
    B: NDArray[Any]
    cost: NDArray[Any] | None
    exponent: int  # of the unit of the objective

    @classmethod
    def of(
        cls, A: NDArray[Any], B: NDArray[Any], cost: NDArray[Any] | None, squared: str | None
    ) -> "Units":
        """Matrices in units of about their largest numbers.

        `squared` names the matrix whose squares are part of the objective: both then have one
        unit. Whole numbers stay as they are.
        """
        a, b, c = (_exponent(each) for each in (A, B, cost))
        if all(each is None or abs(each) <= USUAL for each in (a, b, c)):
            return cls(_without_negligible(A), _without_negligible(B), cost, 0)
        largest = [] if c is None else [c]
        if a is not None and b is not None:
            largest.append(a + b)
        a, b = a or 0, b or 0
        if squared is not None:
            larger = {"A": a, "B": b}[squared]
            largest.append(2 * larger)
            a = b = max((a + b) // 2, larger)
        # Beside a cost that is so much larger, products are below its rounding errors.
        exponent = max(largest, default=a + b)
        half = max((exponent - a - b + 1) // 2, 0)
        exponent = a + b + 2 * half
        a, b = a + min(half, FARTHEST), b + min(half, FARTHEST)
        scaled = None if cost is None else np.ldexp(cost.astype(np.float64), -exponent)
        return cls(_in_unit(A, a), _in_unit(B, b), scaled, exponent)

    def back(self, number: float | int) -> float | int:
        """A number of the objective in the unit of the user."""
        return ldexp(number, self.exponent) if self.exponent else number


def check_sums(
    A: NDArray[Any], B: NDArray[Any], cost: NDArray[Any] | None, squared: str | None
) -> None:
    """Refuse numbers whose sums of products, the objective, overflow."""
    sizes = {"A": _largest(A), "B": _largest(B)}
    n_pairs = float(A.shape[0] * B.shape[0])
    product = sizes["A"] * sizes["B"] if squared is None else max(sizes.values()) * sizes[squared]
    if not product * n_pairs < LARGEST:
        raise ValueError(
            f"`A` holds {sizes['A']:.3g} and `B` {sizes['B']:.3g}: sums of their products do not "
            "fit into a float. Divide each by its largest entry."
        )
    if cost is not None and not _largest(cost) * n_pairs < LARGEST:
        raise ValueError(
            f"`cost` holds {_largest(cost):.3g}, and sums of such costs do not fit into a float. "
            "Divide A and the cost by a common number."
        )


def _largest(values: NDArray[Any]) -> float:
    """Largest absolute number."""
    return max(float(values.max()), -float(values.min()))


def _exponent(values: NDArray[Any] | None) -> int | None:
    """Exponent of two of the largest number; None if there is none but 0."""
    largest = 0.0 if values is None else _largest(values)
    return int(np.frexp(largest)[1]) if largest else None


def _in_unit(values: NDArray[Any], exponent: int) -> NDArray[np.float64]:
    return _without_negligible(np.ldexp(values.astype(np.float64), -exponent))


def _without_negligible(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers with 0 for those that are far too small beside the largest."""
    if values.dtype.kind in "iu":
        return values
    small = np.abs(values) < NEGLIGIBLE * _largest(values)
    small &= values != 0.0
    return np.where(small, 0.0, values) if small.any() else values
