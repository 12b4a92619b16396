"""What is asked of motions along learned generators: what is moved, and how far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation._collections import as_numbers

_LARGEST_NORM = 1e10  # an exponential errs by about 1e-16 of it, relative to itself


def check_comparable(X: NDArray[np.float64], prototype_length: float) -> None:
    """Refuse rows so much longer than the prototype that nothing is seen to lead there."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest > 1e10 * prototype_length:  # squared, the way there is lost in rounding
        raise ValueError(
            f"X holds {largest:.3g}, and the prototype has length {prototype_length:.3g}: too far "
            "apart to be compared. Pass vectors in the units of those that were fitted."
        )


def check_coefficients(c: Any, k: int, name: str = "c") -> NDArray[np.float64]:
    """Finite coefficients of shape (k,) or (n, k)."""
    try:
        values = as_real(c)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold real numbers, {k} in every row, got {kind_of(c)}."
        ) from error
    if values.ndim not in (1, 2) or values.shape[-1] != k:
        raise ValueError(
            f"`{name}` must have shape ({k},) or (n, {k}), one coefficient for each of the {k} "
            f"generators, got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite coefficients.")
    return values


def check_moved(moved: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
    """Refuse exponentials that overflow, of matrices that `check_reach` does not refuse."""
    wrong = np.flatnonzero(~np.isfinite(moved).all(axis=1) & (norms <= _LARGEST_NORM))
    if wrong.size:
        raise ValueError(
            f"The exponential of the generators overflows for row {wrong[0]} of the coefficients "
            f"({wrong.size} such row(s)): it leads beyond the largest float. Pass smaller "
            "coefficients."
        )


def check_reach(norms: NDArray[np.float64]) -> None:
    """Refuse matrices so large that rounding decides where their exponentials lead."""
    wrong = np.flatnonzero(norms > _LARGEST_NORM)
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of the coefficients leads so far ({norms[wrong[0]]:.3g} as the norm "
            f"of a matrix, {wrong.size} row(s) beyond {_LARGEST_NORM:.0e}) that rounding decides "
            "where. Pass smaller coefficients."
        )


def check_orbit_vector(x: Any, n_features: int, name: str = "x") -> NDArray[np.float64]:
    """One finite vector of the fitted width."""
    try:
        values = as_real(x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold {n_features} real numbers, got {kind_of(x)}."
        ) from error
    if values.shape != (n_features,):
        raise ValueError(
            f"`{name}` must be one vector of {n_features} numbers, as the rows that were fitted, "
            f"got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite numbers.")
    return values


def as_real(values: Any) -> NDArray[np.float64]:
    """Array of real numbers, whose caller says what they are where they are not."""
    return as_numbers(values, "The argument")


def kind_of(values: Any) -> str:
    """What arrived, in a word or two."""
    name = type(values).__name__
    return f"{name} of {values.dtype}" if hasattr(values, "dtype") else name
