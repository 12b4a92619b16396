"""Columns that several tables share: a start, and a choice between rivals of equal objective."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from unshuffle._assign.linear import nearest_order
from unshuffle._core.arrays import check_vectors
from unshuffle._core.scalings import SCALINGS
from unshuffle._run.types import Floats, Permutations
from unshuffle.matching._matches import feature_names

# Kernels of tables. Kernel matrices have no columns, and a function may read a table in its own
# way.
OF_TABLES = ("linear", "rbf", "laplacian", "chi2", "geodesic", "local")
# Mirror images are a matter of few columns; more would take memory like a kernel.
MOST_COLUMNS = 16
# An alignment is a rival if its multiway HSIC is at least this share of the best.
NEARLY = 0.95
# The columns of an alignment agree if those of each table have at least this mean correlation with
# those of the others. In a mirror image, one column counts +1 and another -1.
AGREEING = 0.8


@dataclass(frozen=True, eq=False)
class SharedColumns:
    """Tables with the same columns."""

    tables: list[Floats]  # (m, n_columns) each

    def part(self, items: Permutations) -> "SharedColumns":
        """Some items of each table, (T, n_items), in that order."""
        return SharedColumns([X[rows] for X, rows in zip(self.tables, items, strict=True)])

    @cached_property
    def _standardized(self) -> list[Floats]:
        return [SCALINGS["standardized"](X) for X in self.tables]

    def match_to(self, reference: int) -> Permutations:
        """Alignment that brings the standardized rows of each table closest to those of one."""
        target = self._standardized[reference]
        return np.array([nearest_order(target, X) for X in self._standardized])

    def agree(self, permutations: Permutations) -> bool:
        """Whether the columns of every aligned table correlate with those of the others."""
        aligned = [X[p].ravel() for X, p in zip(self._standardized, permutations, strict=True)]
        units = np.array(aligned) / np.sqrt(aligned[0].size)
        others = units.sum(axis=0) - units
        correlations = np.einsum("ti,ti->t", units, others) / (len(units) - 1)
        return bool(correlations.min() >= AGREEING)


def find_shared_columns(
    collections: Sequence[Any], kernels: Sequence[Any]
) -> SharedColumns | None:
    """Columns of the collections, or None if these are not tables with the same columns.

    Tables have the same columns if they have the same number and, where they are named, the same
    names in the same order. Columns that are constant in some table are left out.
    """
    if not all(isinstance(kernel, str) and kernel in OF_TABLES for kernel in kernels):
        return None
    described = [feature_names(each) for each in collections]
    n_columns = {each.get("n_features_in_") for each in described}
    names = {tuple(each["feature_names_in_"]) for each in described if "feature_names_in_" in each}
    if len(n_columns) > 1 or len(names) > 1:
        return None
    if not 1 <= (n_columns.pop() or 0) <= MOST_COLUMNS:
        return None
    tables = []
    for t, each in enumerate(collections):
        X = check_vectors(each, f"X[{t}]")
        tables.append(X.toarray() if sparse.issparse(X) else X)
    varies = np.all([np.ptp(X, axis=0) > 0 for X in tables], axis=0)
    return SharedColumns([X[:, varies] for X in tables]) if varies.any() else None
