"""`kernel="auto"`: kernels by kind of collection, and scalings of tables."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from unshuffle import KernelizedSorting
from unshuffle._core.scalings import SCALINGS
from unshuffle.matching import _fit
from unshuffle.matching._dense import auto_kernel as _auto_kernel
from unshuffle.matching._dense.auto_kernel import Choice, Tables, choose_by_known_pairs


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


def with_dead_columns(n_items, n_dead, noise=0.3, seed=1, n_columns=90):
    """Two observations of the same items, the last columns next to nothing but noise."""
    rng = np.random.default_rng(seed)
    spreads = np.geomspace(1.0, 0.1, n_columns)
    items = rng.gamma(0.3, size=(n_items, n_columns)) * spreads
    sides = [items + noise * spreads.mean() * rng.normal(size=items.shape) for _ in range(2)]
    for side in sides:
        side[:, n_columns - n_dead :] = 1e-3 * rng.normal(size=(n_items, n_dead))
    order = rng.permutation(n_items)
    return sides[0], sides[1][order], order


def in_different_units(n_items, n_columns, noise, seed):
    """Two noisy observations of the same items in columns of very different units."""
    rng = np.random.default_rng(seed)
    items = rng.exponential(size=(n_items, n_columns))
    units = 10.0 ** rng.uniform(-3, 4, size=n_columns)
    sides = [(items + noise * rng.normal(size=items.shape)) * units for _ in range(2)]
    order = rng.permutation(n_items)
    return sides[0], sides[1][order], order


def share_right(sorting, order):
    return (order[sorting.permutation_] == np.arange(order.size)).mean()


def test_texts_are_compared_as_texts():
    texts = ["one red apple", "two red apples here", "a green pear", "pears and plums", "a plum"]
    sorting = quiet(texts, texts)
    assert sorting.kernel_ == "text"
    assert np.array_equal(sorting.permutation_, np.arange(5))
    assert (sorting.scaling_, sorting.scaling_reason_) == ("as given", "")


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert quiet(sparse.csr_array(X), sparse.csr_array(y)).scaling_ == "as given"


@pytest.mark.parametrize("options", [{"trust": False}, {}])
def test_a_few_dead_columns_do_not_standardize_the_others(options):
    X, y, order = with_dead_columns(120, n_dead=9)
    sorting = quiet(X, y, **options)
    assert (sorting.scaling_, sorting.scaling_reason_) == ("as given", "")
    assert share_right(sorting, order) == 1.0


@pytest.mark.slow
def test_a_table_of_mostly_dead_columns_is_matched_as_given_where_that_is_better():
    X, y, order = with_dead_columns(200, n_dead=60)
    standardized = (SCALINGS["standardized"](table) for table in (X, y))
    assert share_right(quiet(*standardized, kernel="rbf"), order) < 0.1
    stages = []
    sorting = quiet(X, y, callback=lambda state: stages.append(state.fraction))
    assert (sorting.scaling_, sorting.kernel_, sorting.scaling_reason_) == ("as given", "rbf", "")
    assert share_right(sorting, order) == 1.0
    assert stages == sorted(stages)
    assert stages[-1] <= 1.0


# With fewer narrow columns, only an answer that is doubted is compared.
@pytest.mark.parametrize(
    ("units", "without_trust"),
    [
        ([1e3, 200.0, 200.0, 100.0, 50.0, 20.0, 3.0, 1.0], "standardized"),
        ([100.0, 100.0, 100.0, 4.0, 4.0, 4.0, 4.0, 0.5], "as given"),
    ],
)
def test_a_wide_column_does_not_hide_the_others(units, without_trust):
    tables = in_different_units(150, 8, 0.3, 0)
    order = tables[2]
    X, y = (SCALINGS["standardized"](table) for table in tables[:2])
    by_hand = quiet(X, y, kernel="rbf")
    X, y = X * units, y * units
    sorting = quiet(X, y)
    assert sorting.scaling_ == "standardized"
    assert share_right(sorting, order) == share_right(by_hand, order) > 0.5
    assert quiet(X, y, trust=False).scaling_ == without_trust


# A wide column decides alone in a table as given, and looks stable.
@pytest.mark.slow
@pytest.mark.parametrize(("n_columns", "noise", "seed"), [(8, 0.4, 2), (12, 0.5, 6)])
def test_no_other_scaling_of_different_units_replaces_a_better_answer(n_columns, noise, seed):
    X, y, order = in_different_units(200, n_columns, noise, seed)
    sorting = quiet(X, y)
    by_hand = quiet(*(SCALINGS["standardized"](table) for table in (X, y)), kernel="rbf")
    assert sorting.scaling_ == "standardized"
    assert "widest" in sorting.scaling_reason_
    assert share_right(sorting, order) == share_right(by_hand, order) > 0.2


@pytest.mark.parametrize("method", ["refined", "low_rank"])
def test_an_answer_gives_way_to_none_that_is_believed_less(method, monkeypatch):
    X, y, _ = with_dead_columns(60, n_dead=0, noise=3.0)
    first = quiet(X, y, method=method, kernel="rbf")
    assert first.expected_accuracy_ < 0.5
    other = Choice("ranks", "rbf"), "because"
    monkeypatch.setattr(_fit, "choose_by_persistence", lambda *_: other)
    ranked = quiet(*(SCALINGS["ranks"](table) for table in (X, y)), method=method, kernel="rbf")
    taken = max((first, ranked), key=lambda each: each.expected_accuracy_)
    sorting = quiet(X, y, method=method)
    assert sorting.expected_accuracy_ == taken.expected_accuracy_
    assert np.array_equal(sorting.permutation_, taken.permutation_)
    assert sorting.scaling_ == ("ranks" if taken is ranked else "as given")


def test_a_table_that_cannot_be_compared_as_given_is_matched_standardized():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2, 30, 4))
    far = [1e9, 0.0, 0.0, 0.0]  # the first column differs by rounding errors
    X, y = X * [1e-7, 1e-9, 1e-10, 1e-10] + far, y * [1e-7, 1e-10, 1e-10, 1e-10] + far
    assert quiet(X, y).scaling_ == "standardized"


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


@pytest.mark.parametrize("method", ["refined", "classic", "low_rank"])
def test_the_scaling_is_named_whatever_the_kernel(method):
    X = np.random.default_rng(0).exponential(size=(20, 3)) * [3, 2, 1]
    texts = [f"apple{i} pear{i % 7} plum{i % 5}" for i in range(20)]
    for kernel, both in (("rbf", X), ("precomputed", X @ X.T), ("text", texts), ("auto", texts)):
        sorting = quiet(both, both, kernel=kernel, method=method, trust=False)
        assert (sorting.scaling_, sorting.scaling_reason_) == ("as given", "")
