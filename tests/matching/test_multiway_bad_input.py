"""One clear error for each kind of bad input: what was wrong, what arrived, what to do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from unshuffle import MultiwaySorting

RANDOM = np.random.default_rng(0)
A, B, C = (RANDOM.normal(size=(6, width)) for width in (2, 3, 2))
TEXT = ["one red apple", "two red pears", "three blue plums"]
GRAM = {"kernel": "precomputed"}
LIST = r"fit\(\[X1, X2, \.\.\.\]\)"


def with_entry(array, value):
    array = array.copy()
    array[2, 1] = value
    return array


COLLECTIONS = {
    "sizes": ([A, B[:5], C], {}, r"have 6, 5, 6 items.*Draw samples of the smallest size"),
    "sizes of two": ([A, B[:4]], {}, "have 6, 4 items.*two at a time with KernelizedSorting"),
    "sizes of texts": ([TEXT, TEXT[:2]], {"kernel": "text"}, "have 3, 2 items"),
    "one collection": ([A], {}, rf"holds 1 collection.*at least two are needed.*{LIST}"),
    "no collection": ([], {}, rf"holds 0 collection.*{LIST}"),
    "None": (None, {}, rf"`X` is None.*{LIST}"),
    "one array": (A, {}, rf"one array of shape \(6, 2\).*{LIST}"),
    "one frame": (pd.DataFrame(A), {}, rf"one table of shape \(6, 2\).*{LIST}"),
    "one sparse": (sparse.csr_array(A), {}, rf"one table of shape \(6, 2\).*{LIST}"),
    "one list of texts": (TEXT, {"kernel": "text"}, rf"one collection of texts.*{LIST}"),
    "one text": ("apple", {"kernel": "text"}, rf"one collection of texts.*{LIST}"),
    "ragged": ([[[1, 2], [3]], A], {}, r"X\[0\] holds rows of different lengths"),
    "None among them": ([A, None], {}, rf"`X\[1\]` is None, which is not a collection.*{LIST}"),
    "array of arrays": (np.array([A, B[:5]], dtype=object), {}, "have 6, 5 items"),
    "numbers": ([1.0, 2.0, 3.0], {}, rf"list of 3 single values.*{LIST}"),
    "rows": (A.tolist(), {}, "must be 2-D, got 1 dimension"),
    "nan": ([A, with_entry(B, np.nan)], {}, r"X\[1\] contains NaN .*row 2\). Drop these rows"),
    "inf": ([with_entry(A, np.inf), B], {}, r"X\[0\] contains infinity .*Drop these rows"),
    "too large": ([A, B * 1e200], {}, "too large for a float. Divide the values"),
    "empty": ([A, np.empty((0, 2))], {}, r"empty: found 0 sample\(s\)"),
    "one item": ([A[:1], B[:1]], {}, r"X\[0\] has 1 item.*each needs at least two items"),
    "all equal": ([A, np.ones((6, 2))], {}, r"All items of X\[1\] are equal.*right columns"),
    "all equal, linear": (
        [A, B, np.ones((6, 2))],
        {"kernel": "linear"},
        r"All items of X\[2\] are equally similar",
    ),
    "strings": ([TEXT, TEXT], {}, r'X\[0\] holds strings.*Pass kernel="text"'),
    "numbers as text": ([A, B], {"kernel": "text"}, r"X\[0\] must be a list of str"),
    "Gram not square": ([A, B], GRAM, r"X\[0\] must be a square kernel matrix"),
    "Gram not symmetric": ([A @ A.T, np.triu(B @ B.T)], GRAM, r"X\[1\] is not symmetric"),
    "Gram of distances": ([cdist(A, A), cdist(B, B)], GRAM, "may be distances .*Pass -distances"),
    "negative counts": ([A, B], {"kernel": "chi2"}, "never negative"),
    "unknown kernel": ([A, B], {"kernel": "cosine"}, "`kernel` must be one of 'linear'"),
    "too few kernels": ([A, B, C], {"kernel": ["rbf", "rbf"]}, "2 entries for 3 collections"),
    "too many gammas": ([A, B], {"gamma": [1.0, 1.0, 1.0]}, "3 entries for 2 collections"),
    "gamma of zero": ([A, B], {"gamma": [1.0, 0.0]}, "`gamma` must be .* above 0, got 0.0"),
    "entropy of many": (
        [RANDOM.normal(size=(151, 2))] * 2,
        {"objective": "entropy"},
        'takes at most 150 items, got 151.*Align a sample .*objective="hsic"',
    ),
    "entropy of no kernel": (
        [A, B],
        {"objective": "entropy", "kernel": lambda X, Y: np.tanh(3 * X @ Y.T - 2)},
        'needs positive semi-definite kernels.*Choose kernel="rbf"',
    ),
}


@pytest.mark.parametrize("case", COLLECTIONS)
def test_bad_collections_are_named(case):
    X, parameters, message = COLLECTIONS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        MultiwaySorting(**parameters).fit(X)


@pytest.mark.parametrize("X", [5, {"a": A, "b": B}])
def test_anything_but_a_list_is_a_type_error(X):
    with pytest.raises(TypeError, match=f"must be a list, got {type(X).__name__}.*{LIST}"):
        MultiwaySorting().fit(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"objective": "volume"},
        {"n_init": 0},
        {"max_iter": 0},
        {"tol": -1.0},
        {"gamma": -1.0},
        {"offset": -0.5},
        {"offset": 1e300},
        {"callback": 3},
        {"kernel": 7},
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MultiwaySorting(**parameters).fit([A, B])


def test_memory_is_checked_first(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 3000)
    with pytest.raises(MemoryError, match=r"Aligning 3 collections of 6 items .*Fit samples"):
        MultiwaySorting().fit([A, B, C])


def test_an_error_in_the_callback_reaches_the_caller():
    def fail(_):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        MultiwaySorting(callback=fail).fit([A, B])


def test_reordering_asks_for_as_many_collections_and_items():
    sorting = MultiwaySorting().fit([A, B, C])
    with pytest.raises(ValueError, match=r"holds 2 collection\(s\); 3 were fitted. Pass one for"):
        sorting.reorder([A, B])
    with pytest.raises(ValueError, match=r"`X\[1\]` has 5 items; the fitted one has 6"):
        sorting.reorder([A, B[:5], C])
