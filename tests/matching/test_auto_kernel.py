"""`kernel="auto"`: kernels by kind of collection, and scalings of tables."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from unshuffle import KernelizedSorting
from unshuffle._scalings import SCALINGS
from unshuffle.matching import _auto_kernel
from unshuffle.matching._auto_kernel import Choice, Tables, choose_by_known_pairs


def quiet(X, y, **options):
    given = {key: options.pop(key) for key in ("frozen",) if key in options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelizedSorting(random_state=0, **options).fit(X, y, **given)


def counts_of_two_depths(n_items=120, seed=0):
    """Compositions of the same items, counted to depths that tell nothing."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(6, 0.6), size=n_items)
    X = np.log(shares + 1e-3)
    depth = rng.lognormal(7.0, 1.2, size=(n_items, 1))
    return X, rng.poisson(shares * depth).astype(float)


def test_texts_are_compared_as_texts():
    texts = ["one red apple", "two red apples here", "a green pear", "pears and plums", "a plum"]
    sorting = quiet(texts, texts)
    assert sorting.kernel_ == "text"
    assert np.array_equal(sorting.permutation_, np.arange(5))
    assert not hasattr(sorting, "scaling_")


def test_several_tables_are_summed():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(30, 3))
    sorting = quiet([X, X**2], [X, X**2])
    assert sorting.kernel_ == ["rbf", "rbf"]
    assert np.array_equal(sorting.permutation_, np.arange(30))


def test_a_trusted_answer_keeps_the_tables_as_given():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 4)) * [3, 2, 1, 0.5]
    sorting = quiet(X, X[::-1] @ np.linalg.qr(rng.normal(size=(4, 4)))[0])
    assert (sorting.scaling_, sorting.kernel_) == ("as given", "rbf")
    same = quiet(X, X[::-1], kernel="rbf")
    assert np.array_equal(quiet(X, X[::-1]).permutation_, same.permutation_)


def test_columns_in_different_units_are_standardized():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 4))
    order = rng.permutation(60)
    sorting = quiet(X * [1e-3, 1.0, 10.0, 1e4], X[order] * [1e3, 1.0, 1.0, 1.0])
    assert sorting.scaling_ == "standardized"
    assert np.array_equal(order[sorting.permutation_], np.arange(60))


def test_known_pairs_choose_the_scaling_of_counts():
    X, y = counts_of_two_depths()
    known = np.column_stack([np.arange(20)] * 2)
    choice, reason = choose_by_known_pairs(Tables(X, y), known, np.random.RandomState(0))
    assert choice.scaling in ("rows normalized", "log counts")
    assert "20 known pairs" in reason
    assert quiet(X, y, frozen=known).scaling_ == choice.scaling


@pytest.mark.slow
def test_doubted_cells_are_scaled_by_row(shared_data):
    cells = np.load(shared_data("snareseq.npz"))
    chosen = np.random.RandomState(0).permutation(1047)[:500]
    rna, atac = (cells[name].astype(float)[chosen] for name in ("rna", "atac"))
    types = cells["cell_type"][chosen]
    order = np.random.RandomState(1).permutation(500)
    sorting = quiet(rna, atac[order])
    assert sorting.scaling_ in ("rows normalized", "log counts")
    assert (types[order[sorting.permutation_]] == types).mean() > 0.6
    as_given = quiet(rna, atac[order], kernel="rbf")
    assert (types[order[as_given.permutation_]] == types).mean() < 0.4


@pytest.mark.parametrize("n_known", [0, 8])
def test_tables_of_mostly_equal_rows_do_not_fail(n_known):
    X = np.zeros((400, 2))
    X[0], X[1], X[2] = 1.0, [0.0, 3.0], [2.0, 0.0]
    sorting = quiet(X, X[::-1], frozen=np.column_stack([np.arange(n_known)] * 2))
    assert sorting.scaling_ == "as given"
    assert sorting.scaling_reason_ == ""
    assert sorting.doubts_


def test_trust_false_and_sparse_tables_keep_the_tables_as_given(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("scalings were tried")

    monkeypatch.setattr(_auto_kernel, "_reliability", refuse)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2, 40, 3))
    assert quiet(X, y, trust=False).scaling_ == "as given"
    assert not hasattr(quiet(sparse.csr_array(X), sparse.csr_array(y)), "scaling_")


@pytest.mark.parametrize("name", SCALINGS)
def test_scalings_are_finite_and_do_not_depend_on_the_order_of_rows(name):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(20, 3)) * [1e-150, 1.0, 1e100]
    X[3] = 0.0
    order = rng.permutation(20)
    scaled = SCALINGS[name](X)
    assert np.isfinite(scaled).all()
    assert scaled[order] == pytest.approx(SCALINGS[name](X[order]))


def test_scalings_do_what_their_names_say():
    X = np.array([[1.0, 3.0], [2.0, 2.0], [9.0, 0.0]])
    assert SCALINGS["standardized"](X).mean(axis=0) == pytest.approx([0.0, 0.0])
    assert SCALINGS["standardized"](X).std(axis=0) == pytest.approx([1.0, 1.0])
    assert np.linalg.norm(SCALINGS["rows normalized"](X), axis=1) == pytest.approx(np.ones(3))
    assert SCALINGS["ranks"](X)[:, 0] == pytest.approx([1 / 6, 3 / 6, 5 / 6])
    # Rows in the same proportions are equal.
    doubled = SCALINGS["log counts"](np.array([[1.0, 3.0], [2.0, 6.0]]))
    assert doubled[0] == pytest.approx(doubled[1])
    assert SCALINGS["log counts"](-X) is not None


def test_choices_that_change_nothing_are_left_out():
    rng = np.random.default_rng(0)
    X = SCALINGS["standardized"](rng.normal(size=(20, 3)))
    tables = Tables(X, X)
    names = {choice.scaling for choice in tables.other_choices(Choice("as given", "rbf"))}
    assert names == {"as given", "rows normalized", "ranks"}
