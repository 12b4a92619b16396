"""Scalings of tables, by name."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]


def standardize(X: Array) -> Array:
    """Columns with mean 0 and variance 1."""
    # Scaling by a power of two is exact, and keeps sums and squares from overflow.
    _, exponents = np.frexp(np.abs(X).max(axis=0))
    scaled = np.ldexp(X, -exponents)
    # Sums of many single-precision numbers need double precision.
    centered = scaled - scaled.mean(axis=0, dtype=np.float64).astype(scaled.dtype)
    spread = centered.std(axis=0, dtype=np.float64).astype(scaled.dtype)
    # Rounding errors of a constant column must not be blown up.
    spread[spread <= 1e-12 * np.abs(scaled).max(axis=0)] = 1.0
    return np.asarray(centered / spread)


def normalize_rows(X: Array) -> Array:
    """Rows of length 1, so that only the proportions of the columns count."""
    _, exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))
    scaled = np.ldexp(X, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1.0))


def rank_columns(X: Array) -> Array:
    """Ranks within each column, from 0 to 1."""
    ranks = np.empty(X.shape, dtype=np.result_type(X, np.float32))
    for column, values in enumerate(X.T):
        ranks[:, column] = (rankdata(values) - 0.5) / len(X)
    return ranks


def log_counts(X: Array) -> Array:
    """Logarithms of counts, relative to the total of their row; other tables stay as given."""
    if X.min() < 0:
        return X
    totals = X.sum(axis=1, keepdims=True)
    typical = float(np.median(totals))
    return np.asarray(np.log1p(X * (typical / np.where(totals > 0, totals, 1.0))))


SCALINGS: dict[str, Callable[[Array], Array]] = {
    "as given": lambda X: X,
    "standardized": standardize,
    "rows normalized": normalize_rows,
    "ranks": rank_columns,
    "log counts": log_counts,
}
