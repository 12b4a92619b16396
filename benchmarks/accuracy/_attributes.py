"""Data attribute matching, Table 2 of the paper: tables split into two groups of columns.

The reference column is the one with the smaller index in the pair with the largest correlation.
Columns whose correlation with it is at least 0.5 are "split equally" between the two groups, and
the others are divided into "two equal halves". The paper does not say how the former are split.
Here they alternate between the groups, or are halved too with `in_turn=False`.
"""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle import KernelizedSorting
from unshuffle.metrics import hsic

N_SUBSAMPLES = 10
# Number of rows and error of kernelized sorting, as printed in the paper.
PRINTED = {
    "australian": (690, 0.29),
    "breast-cancer": (683, 0.06),
    "dermatology": (358, 0.08),
    "optdigits": (765, 0.01),
    "wdbc": (569, 0.11),
    "satimage": (620, 0.20),
    "segment": (693, 0.58),
    "vehicle": (423, 0.58),
    "abalone": (417, 13.9),
    "bodyfat": (252, 4.5),
}
SQUARED_ERROR = {"abalone": 1.0, "bodyfat": 1e4}  # unit of the error


def report(folder: Path, *, in_turn: bool = True) -> Iterator[str]:
    for name, (n_rows, printed) in PRINTED.items():
        X, target = _load(folder / "uci" / f"{name}.csv.gz", name)
        rows = [
            _subsample(X, target, n_rows, name, seed, in_turn=in_turn)
            for seed in range(N_SUBSAMPLES)
        ]
        classic, refined, truth, ambiguity = np.array(rows).T
        error = refined.std(ddof=1) / np.sqrt(N_SUBSAMPLES)
        yield (
            f"{name}: refined {refined.mean():.3f} (standard error {error:.3f}), "
            f"classic {classic.mean():.3f}, printed {printed}, truth / best objective "
            f"{truth.mean():.2f}, ambiguity {ambiguity.min():.3f} to {ambiguity.max():.3f}"
        )


def load_table(path: Path) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Numbers of a table whose last column is the target, and that column."""
    with gzip.open(path, "rt", newline="") as file:
        records = list(csv.reader(file))[1:]
    X = np.array([record[:-1] for record in records], dtype=float)
    return X, np.array([record[-1] for record in records])


def _load(path: Path, name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    X, target = load_table(path)
    if name == "optdigits":
        kept = np.isin(target.astype(float), (0, 1))
        X, target = X[kept], target[kept]
    if name == "dermatology":
        target = target.astype(float) == 1
    return X, target.astype(float) if name in SQUARED_ERROR else target


def split_columns(X: NDArray[np.float64], *, in_turn: bool) -> tuple[list[int], list[int]]:
    """Columns of the two groups A and B, section 6.2.3."""
    correlation = np.corrcoef(X.T)
    np.fill_diagonal(correlation, -np.inf)
    reference = min(np.unravel_index(int(correlation.argmax()), correlation.shape))
    others = [column for column in range(X.shape[1]) if column != reference]
    related = [column for column in others if correlation[reference, column] >= 0.5]
    unrelated = [column for column in others if correlation[reference, column] < 0.5]
    middle = len(unrelated) // 2
    half = len(related) // 2
    related_a = related[1::2] if in_turn else related[:half]
    related_b = related[0::2] if in_turn else related[half:]
    return [reference, *related_a, *unrelated[:middle]], [*related_b, *unrelated[middle:]]


def _subsample(
    X: NDArray[np.float64],
    target: NDArray[Any],
    n_rows: int,
    name: str,
    seed: int,
    *,
    in_turn: bool,
) -> tuple[float, float, float, float]:
    """Errors of the classic and refined methods, relative objective of the truth, ambiguity."""
    rng = np.random.RandomState(seed)
    chosen = rng.permutation(len(X))[: min(n_rows, len(X))]
    chosen = chosen[: round(0.8 * chosen.size)]
    X, target = X[chosen], target[chosen]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    columns_a, columns_b = split_columns(X, in_turn=in_turn)
    order = rng.permutation(len(X))
    first, second = X[:, columns_a], X[order][:, columns_b]
    errors = []
    for method in ("classic", "refined"):
        sorting = KernelizedSorting("rbf", method=method, trust=False).fit(first, second)
        found = target[order[sorting.permutation_]]
        unit = SQUARED_ERROR.get(name)
        wrong = target != found if unit is None else unit * (target - found) ** 2
        errors.append(float(np.mean(wrong)))
    truth = hsic(first, X[:, columns_b], estimator="zeroed") * (len(X) - 1) ** 2
    return errors[0], errors[1], truth / sorting.objective_path_.max(), sorting.ambiguity_
