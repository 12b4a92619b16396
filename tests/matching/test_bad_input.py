"""One clear error for each kind of bad input: what was wrong, what arrived, what to do."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 2))
Y = RANDOM.normal(size=(6, 3))
K, L = X @ X.T, Y @ Y.T
TEXT = ["one red apple", "two red pears", "three blue plums"]
TWO = {"kernel": ["rbf", "linear"]}
GRAM = {"kernel": "precomputed"}
PASS_TEXT = 'Pass kernel="text" to compare documents'


class Graph:
    """What a graph of networkx looks like: a collection of its nodes."""

    def __init__(self, nodes):
        self.nodes = list(nodes)

    def __len__(self):
        return len(self.nodes)

    def __iter__(self):
        return iter(self.nodes)

    def __contains__(self, node):
        return node in self.nodes

    def __getitem__(self, node):
        return {}

    def adjacency(self):
        return iter([(node, {}) for node in self.nodes])


def with_entry(array, value):
    array = array.copy()
    array[2, 1] = value
    return array


def returns_text(x, y):
    return "alike"


def takes_one(x):
    return 1.0


COLLECTIONS = {
    "nan": (with_entry(X, np.nan), Y, {}, r"X contains NaN .*row 2\). Drop these rows or fill"),
    "nan in y": (X, with_entry(Y, np.nan), {}, r"y contains NaN .*row 2\). Drop these rows"),
    "inf": (with_entry(X, np.inf), Y, {}, r"X contains infinity .*row 2\). Drop these rows"),
    "minus inf": (X, with_entry(Y, -np.inf), {}, r"y contains infinity .*Drop these rows"),
    "sparse nan": (
        sparse.csr_array(with_entry(X, np.nan)),
        Y,
        {},
        r"X contains NaN \(in 1 of 6 rows, the first is row 2\). Drop these rows",
    ),
    "missing value": (
        pd.DataFrame({"a": [1.0, None, 3.0], "b": [1, 2, 3]}),
        Y,
        {},
        r"X contains NaN .*row 1\). Drop these rows or fill in",
    ),
    "too large": (X * 1e200, Y, {}, "too large for a float. Divide the values"),
    "empty array": (np.empty((0, 2)), Y, {}, r"empty: found 0 sample\(s\)"),
    "empty list": (X, [], {}, r"y is empty: found 0 sample\(s\)"),
    "no columns": (np.empty((6, 0)), Y, {}, r"0 feature\(s\).*minimum of 1 is required"),
    "one item": (X[:1], Y, {}, r"X has 1 item.*each needs at least two items"),
    "one item in y": (X, Y[:1], {}, r"y has 1 item.*each needs at least two items"),
    "1-D": (X[:, 0], Y, {}, r"must be 2-D, got 1 dimension.*Reshape your data"),
    "1-D y": (X, Y[:, 0], {}, r"must be 2-D, got 1 dimension.*Reshape your data"),
    "number": (3.0, Y, {}, r"must be 2-D, got 0 dimension.*Reshape your data"),
    "3-D": (X[None], Y, {}, r"must be 2-D, got 3 dimensions.*one row for each item"),
    "strings": (TEXT, TEXT, {"kernel": "rbf"}, rf"X holds strings, but kernel='rbf'.*{PASS_TEXT}"),
    "strings in y": (
        X,
        TEXT,
        {"kernel": "rbf"},
        rf"y holds strings, but kernel='rbf'.*{PASS_TEXT}",
    ),
    "strings, linear": (TEXT, TEXT, {"kernel": "linear"}, rf"kernel='linear'.*{PASS_TEXT}"),
    "one string": ("apple", Y, {}, "X is one string, 'apple'. Pass a list or an array"),
    "file": ("a.csv", "b.csv", {}, "a.csv.*read it first.* or run unshuffle match A B"),
    "path in y": (X, Path("b.csv"), {}, "y is one path, 'b.csv'.*read it first"),
    "graph": (Graph(range(6)), Y, {}, r"X is a graph. Pass .*to_numpy_array\(graph\)"),
    "graph of words": (Graph("abc"), TEXT, {}, "X is a graph"),
    "graph as matrix": (K, Graph(range(6)), GRAM, "y is a graph"),
    "dictionary of texts": (dict(zip("abc", TEXT, strict=True)), TEXT, {}, "X is a dict"),
    "column of words": (
        pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": list("uvw")}),
        Y,
        {},
        r"X holds text among its features .*'u'.*encode them as numbers",
    ),
    "numbers as text": (X, Y, {"kernel": "text"}, "must be a list of str.*choose another kernel"),
    "number among texts": (
        [*TEXT, 4],
        TEXT,
        {"kernel": "text"},
        r"X must be a list of str .*item 3 is a int.*Read files into strings",
    ),
    "None among texts": (
        TEXT,
        [*TEXT, None],
        {"kernel": "text"},
        r"y must be a list of str .*item 3 is a NoneType",
    ),
    "one string as text": ("a text", TEXT, {"kernel": "text"}, "X is one string, .* Pass a list"),
    "number as text": (5, TEXT, {"kernel": "text"}, "got int. Pass a list with one string"),
    "no text": ([], TEXT, {"kernel": "text"}, "X is empty: found 0 documents. Pass at least two"),
    "one text": (TEXT[:1], TEXT, {"kernel": "text"}, "X has 1 item.*at least two items"),
    "empty texts": (["", " "], TEXT, {"kernel": "text"}, "no words of two letters.*Check that"),
    "complex": (X.astype(complex), Y, {}, "Complex data not supported"),
    "complex y": (X, Y * 1j, {}, "Complex data not supported"),
    "objects": (np.full((6, 2), object()), Y, {}, "argument must be a string or a real number"),
    "all equal": (np.ones((6, 2)), Y, {}, "All items of X are equal.*Check that the right"),
    "all equal y": (X, np.ones((6, 2)), {}, "All items of y are equal.*Check that the right"),
    "all equal, linear": (
        np.ones((6, 2)),
        Y,
        {"kernel": "linear"},
        "All items of X are equally similar.*Check that the right columns",
    ),
    "all equal, text": (TEXT[:1] * 4, TEXT, {"kernel": "text"}, "All items of X are equally"),
    "no X": (None, Y, {}, r"`X` is None. Call fit\(X, y\) with both"),
    "no y": (X, None, {}, r"requires y to be passed.*call fit\(X, y\) with both"),
    "Gram not square": (K[:5], L, GRAM, r"X must be a square kernel matrix, got shape \(5, 6\)"),
    "Gram not square y": (K, L[:, :4], GRAM, "y must be a square.*choose a kernel other than"),
    "Gram not symmetric": (np.triu(K), L, GRAM, r"X is not symmetric: .*Pass \(X \+ X.T\) / 2"),
    "Gram not symmetric y": (K, np.tril(L), GRAM, r"y is not symmetric: .*Pass \(y \+ y.T\) / 2"),
    "Gram NaN": (K, with_entry(L, np.nan), GRAM, r"y contains NaN .*the first is row 2"),
    "Gram zero": (np.zeros((6, 6)), L, GRAM, "All items of X are equally similar"),
    "Gram identity": (K, np.eye(6), GRAM, "All items of y are equally similar"),
    "Gram too large": (K * 1e200, L, GRAM, "too large for a float. Divide the values"),
    "Gram of distances": (cdist(X, X), cdist(Y, Y), GRAM, "may be distances .*Pass -distances"),
    "Gram sparse": (sparse.csr_array(K), L, GRAM, r"X is a sparse matrix.*Call toarray"),
    "negative counts": (X, Y, {"kernel": "chi2"}, 'never negative. Pass counts.*kernel="rbf"'),
    "too many collections": (
        [X, X, X],
        [Y, Y],
        TWO,
        "X is a list of 3 collections, but there are 2 kernels. Pass one collection for each",
    ),
    "too few collections": (
        [X, X],
        [Y, Y, Y],
        TWO,
        "y is a list of 3 collections, but there are 2 kernels",
    ),
    "views of two sizes": (
        [X, X[:5]],
        [Y, Y],
        TWO,
        r"X\[0\] has 6 items and X\[1\] has 5. .*pass the same number of rows",
    ),
    "one view all equal": ([X, np.ones((6, 2))], [Y, Y], TWO, r"X\[1\].*Drop this kernel"),
}


@pytest.mark.parametrize("case", COLLECTIONS)
@pytest.mark.parametrize("method", ["refined", "classic"])
def test_bad_collections_are_refused(case, method):
    first, second, params, message = COLLECTIONS[case]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        KernelizedSorting(method=method, **params).fit(first, second)


PARAMETERS = {
    "unknown kernel": ({"kernel": "cosine"}, "one of 'auto', 'linear', 'rbf', .*got 'cosine'"),
    "near a kernel": ({"kernel": "RFB"}, "got 'RFB'. Did you mean 'rbf'?"),
    "near auto": ({"kernel": "Auto"}, "got 'Auto'. Did you mean 'auto'?"),
    "near a method": ({"method": "low-rank"}, "Did you mean 'low_rank'?"),
    "unknown kernel_y": (
        {"kernel_y": "cosine"},
        "`kernel_y` must be one of 'auto', .*got 'cosine'",
    ),
    "unknown in list": ({"kernel": ["rbf", "cosine"]}, "must be one of .*got 'cosine'"),
    "kernel number": ({"kernel": 3}, "`kernel` must be .*got 3"),
    "kernel None": ({"kernel": None}, "`kernel` must be .*got None"),
    "number in list": ({"kernel": ["rbf", 3]}, "must be one of .*got 3"),
    "empty list": ({"kernel": []}, "empty list. Name at least one kernel"),
    "callable of text": ({"kernel": returns_text}, r"returns_text failed on X.*kernel\(x, y\)"),
    "callable of one": ({"kernel": takes_one}, "takes_one failed on X.*It is called as"),
    "method": ({"method": "best"}, "`method` must be .*got 'best'"),
    "step": ({"step": "long"}, "`step` must be .*got 'long'"),
    "n_init": ({"n_init": 0}, "`n_init` must be a whole number from 1 to 1,000,000, got 0"),
    "n_init float": ({"n_init": 2.5}, "`n_init` must be a whole number .*got 2.5"),
    "max_iter": ({"max_iter": 0}, "`max_iter` must be a whole number .*got 0"),
    "tol": ({"tol": -1.0}, "`tol` must be a finite number .*got -1"),
    "gamma zero": ({"gamma": 0.0}, "`gamma` must be .*got 0"),
    "gamma NaN": ({"gamma": np.nan}, "`gamma` must be .*got nan"),
    "gamma word": ({"gamma": "scale"}, "`gamma` must be .*got 'scale'"),
    "gammas for one": ({"gamma": [1.0]}, r"`gamma` must be a finite number above 0, got \[1.0\]"),
    "gammas of three": ({**TWO, "gamma": [1.0] * 3}, "3 entries for 2 kernel.*one for each"),
    "unmatched_cost": ({"unmatched_cost": 0.0}, "`unmatched_cost` must be .*got 0"),
    "random_state": ({"random_state": "seed"}, "`random_state` must be .*got 'seed'"),
    "n_jobs": ({"n_jobs": "all"}, "`n_jobs` must be .*got 'all'"),
    "callback": ({"callback": 3}, "`callback` must be a callable.*got 3"),
    "weights negative": ({**TWO, "kernel_weights": [1, -1]}, r"at least 0 .*\[1.0, -1.0\]. Leave"),
    "weights zero": ({**TWO, "kernel_weights": [0, 0]}, "not all 0, got .*Leave them out"),
    "weights NaN": ({**TWO, "kernel_weights": [1, np.nan]}, "must be finite.*Leave them out"),
    "weights of one": ({**TWO, "kernel_weights": [1]}, "for 2 kernel.*one number for each"),
    "weights for nothing": ({"kernel_weights": [1]}, "for a single kernel. Pass a list"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_bad_parameters_are_refused_by_fit_and_not_before(case):
    params, message = PARAMETERS[case]
    sorting = KernelizedSorting(**params)
    with pytest.raises((ValueError, TypeError), match=message):
        sorting.fit(X, Y)
    assert not hasattr(sorting, "permutation_")


FROZEN = {
    "repeated in X": (
        [(0, 1), (3, 2), (0, 4)],
        r"`frozen` repeats item 0 of X \(rows 0 and 2\).*drop one of the two rows",
    ),
    "repeated in y": ([(0, 1), (3, 1)], r"repeats item 1 of y \(rows 0 and 1\).*drop one"),
    "beyond X": ([(1, 1), (6, 0)], r"item 6 of X \(row 1\), which has 6 items. Use .*0 to 5"),
    "beyond y": ([(0, 5)], r"item 5 of y \(row 0\), which has 5 items. Use positions from 0 to 4"),
    "negative": ([(-1, 0)], r"names item -1 of X .*Use positions from 0 to 5"),
    "float": ([(0.5, 1.0)], "whole numbers, got dtype float64. Give positions"),
    "NaN": ([(np.nan, 1.0)], "whole numbers, got dtype float64. Give positions"),
    "inf": ([(np.inf, 1.0)], "whole numbers, got dtype float64. Give positions"),
    "names": ([("a", "b")], "whole numbers, got dtype <U1. Give positions"),
    "truth values": ([(True, False)], "whole numbers, got dtype bool. Give positions"),
    "flat": ([0, 1], r"shape \(n_frozen, 2\), got \(2,\). Give one row"),
    "three columns": ([(0, 1, 2)], r"shape \(n_frozen, 2\), got \(1, 3\). Give one row"),
    "ragged": ([(0, 1), (2,)], "rows of different lengths. Give one row"),
    "number": (3, r"shape \(n_frozen, 2\), got \(\). Give one row"),
    "mapping": ({0: 1}, r"shape \(n_frozen, 2\), got \(\). Give one row"),
}


@pytest.mark.parametrize("case", FROZEN)
def test_bad_frozen_pairs_are_refused(case):
    frozen, message = FROZEN[case]
    with pytest.raises(ValueError, match=message):
        KernelizedSorting().fit(X, Y[:5], frozen=frozen)


COSTS = {
    "wrong shape": (np.zeros((6, 4)), r"`cost` must have shape \(6, 5\).*got \(6, 4\)"),
    "transposed": (np.zeros((5, 6)), r"shape \(6, 5\).*got \(5, 6\). Pass its transpose"),
    "flat": (np.zeros(30), r"shape \(6, 5\) \(items of X by items of y\), got \(30,\)"),
    "NaN": (np.full((6, 5), np.nan), "cost contains NaN"),
    "inf": (np.full((6, 5), np.inf), "cost contains infinity"),
    "complex": (np.zeros((6, 5), dtype=complex), "Complex data not supported"),
    "words": ("dear", "could not convert string to float: 'dear'"),
}


@pytest.mark.parametrize("case", COSTS)
def test_bad_costs_are_refused(case):
    cost, message = COSTS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        KernelizedSorting().fit(X, Y[:5], cost=cost)


def test_a_missing_second_collection_is_an_error():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        KernelizedSorting().fit(X)


def test_nothing_is_lost_when_a_second_fit_is_refused():
    sorting = KernelizedSorting().fit(X, X[::-1])
    before = sorting.permutation_.copy()
    with pytest.raises(ValueError, match="contains NaN"):
        sorting.fit(with_entry(X, np.nan), Y)
    with pytest.raises(ValueError, match="`cost` must have shape"):
        sorting.fit(X[:5], Y[:5], cost=np.zeros((6, 6)))
    assert np.array_equal(sorting.permutation_, before)
    assert sorting.reorder(list("abcdef")) == [list("abcdef")[i] for i in before]


def test_too_many_items_for_memory_are_refused_before_any_is_taken(monkeypatch):
    from unshuffle._core import parameters as _parameters

    monkeypatch.setattr(_parameters, "available_memory", lambda: 10_000)
    with pytest.raises(
        MemoryError, match=r"needs .* GB; .* GB is free. .*(f|F)it a sample|Use a sample"
    ):
        KernelizedSorting().fit(np.tile(X, (20, 1)), np.tile(Y, (20, 1)))


def test_exact_duplicates_are_accepted():
    twice = np.repeat(np.array([[0.0, 1.0], [3.0, 0.5], [9.0, 9.0], [1.0, 7.0]]), 2, axis=0)
    with pytest.warns(DoubtWarning, match="could exchange partners"):
        sorting = KernelizedSorting().fit(twice, twice[::-1])
    assert np.array_equal(twice[::-1][sorting.permutation_], twice)


def test_two_equal_items_beside_one_other_do_not_give_a_width_of_zero():
    nearly_all_equal = np.zeros((8, 1))
    nearly_all_equal[0] = 1.0
    with pytest.warns(DoubtWarning, match="could exchange partners"):
        sorting = KernelizedSorting().fit(nearly_all_equal, nearly_all_equal[::-1])
    assert sorting.permutation_[0] == 7
