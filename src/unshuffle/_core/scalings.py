"""Scalings of tables, by name, and the same scalings of items that come later."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats

Scale = Callable[[Floats], Floats]


def standardize(X: Floats) -> Scale:
    """Columns with mean 0 and variance 1."""
    # Scaling by a power of two is exact, and keeps sums and squares from overflow.
    _, exponents = np.frexp(np.abs(X).max(axis=0))
    scaled = np.ldexp(X, -exponents)
    # Sums of many single-precision numbers need double precision.
    center = scaled.mean(axis=0, dtype=np.float64).astype(scaled.dtype)
    spread = (scaled - center).std(axis=0, dtype=np.float64).astype(scaled.dtype)
    # Rounding errors of a constant column must not be blown up.
    spread[spread <= 1e-12 * np.abs(scaled).max(axis=0)] = 1.0
    return partial(_standardize, exponents, center, spread)


def normalize_rows(X: Floats) -> Scale:
    """Rows of length 1, so that only the proportions of the columns count."""
    return unit_rows


def rank_columns(X: Floats) -> Scale:
    """Ranks among the items of each column, from 0 to 1."""
    return partial(_rank, np.sort(X.T, axis=1))


def log_counts(X: Floats) -> Scale:
    """Logarithms of counts, relative to the total of their row; other tables stay as given."""
    if X.min() < 0:
        return _keep
    return partial(_log_counts, float(np.median(X.sum(axis=1))))


def _standardize(exponents: NDArray[np.intc], center: Floats, spread: Floats, X: Floats) -> Floats:
    return np.asarray((np.ldexp(X, -exponents) - center) / spread)


def unit_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Rows of length 1; rows of zeros stay."""
    _, exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))
    scaled = np.ldexp(X, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1.0))


def _rank(columns: Floats, X: Floats) -> Floats:
    ranks = np.empty(X.shape, dtype=np.result_type(X, np.float32))
    for j, values in enumerate(columns):
        # Halfway between both, since equal values share a rank.
        below = np.searchsorted(values, X[:, j], side="left")
        ranks[:, j] = below + np.searchsorted(values, X[:, j], side="right")
    return ranks / ranks.dtype.type(2 * columns.shape[1])


def _log_counts(typical: float, X: Floats) -> Floats:
    # New items may hold what no count is.
    X = np.maximum(X, 0.0)
    totals = X.sum(axis=1, keepdims=True)
    return np.asarray(np.log1p(X * (typical / np.where(totals > 0, totals, 1.0))))


def _keep(X: Floats) -> Floats:
    return X


# Each learns from a table how to scale it, and items like its own; what it returns can be pickled.
SCALERS: dict[str, Callable[[Floats], Scale]] = {
    "as given": lambda X: _keep,
    "standardized": standardize,
    "rows normalized": normalize_rows,
    "ranks": rank_columns,
    "log counts": log_counts,
}


def _scale(scaler: Callable[[Floats], Scale], X: Floats) -> Floats:
    return scaler(X)(X)


SCALINGS: dict[str, Scale] = {name: partial(_scale, each) for name, each in SCALERS.items()}
