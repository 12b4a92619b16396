"""The warning comes where opposite answers tie on real tables; silence is tested elsewhere."""

import csv
import gzip

import numpy as np
import pytest

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning


def table_cut_in_two(path, n_rows):
    """Standardized columns of a subsample, cut by the correlation rule of the paper."""
    with gzip.open(path, "rt", newline="") as file:
        X = np.array([record[:-1] for record in list(csv.reader(file))[1:]], dtype=float)
    random = np.random.RandomState(0)
    X = X[random.permutation(len(X))[:n_rows]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    correlation = np.corrcoef(X.T) - 2 * np.eye(X.shape[1])
    reference = min(np.unravel_index(int(correlation.argmax()), correlation.shape))
    related = correlation[reference] >= 0.5
    related[reference] = False
    unrelated = ~related
    unrelated[reference] = False
    first = [reference]
    for group in (np.flatnonzero(related), np.flatnonzero(unrelated)):
        first += group[: len(group) // 2].tolist()
    second = np.setdiff1d(np.arange(X.shape[1]), first)
    return X[:, first], X[random.permutation(len(X))][:, second]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_rows"), [("australian", 400), ("abalone", 334)])
def test_tables_whose_opposite_answers_tie_are_warned_about(shared_data, name, n_rows):
    X, y = table_cut_in_two(shared_data(f"uci/{name}.csv.gz"), n_rows)
    with pytest.warns(DoubtWarning, match=r"reaches \d+\.\d% of (it|the best objective)"):
        sorting = KernelizedSorting().fit(X, y)
    assert sorting.ambiguity_ > 0.9


@pytest.mark.slow
def test_views_of_digits_that_hardly_depend_are_warned_about(shared_data):
    with np.load(shared_data("mfeat.npz")) as data:
        random = np.random.RandomState(0)
        chosen = random.permutation(2000)[:400]
        X, y = data["pix"][chosen].astype(float), data["fou"][chosen].astype(float)
    with pytest.warns(DoubtWarning):
        sorting = KernelizedSorting().fit(X, y[random.permutation(400)])
    assert sorting.ambiguity_ > 0.9
