"""Items that were not matched: `transform` and `match` of a fitted KernelizedSorting."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.counts import few

from unshuffle import KernelizedSorting
from unshuffle._core.scalings import SCALERS, SCALINGS
from unshuffle.matching import DoubtWarning
from unshuffle.matching._unseen import PairMap

RNG = np.random.default_rng(0)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
PAIRS = np.column_stack([np.arange(300)] * 2)


def first_items(n_items, seed):
    return np.random.default_rng(seed).exponential(size=(n_items, 3)) * [3, 2, 1]


def second_items(X, seed=0):
    noise = np.random.default_rng(seed).normal(size=(len(X), 1)) / 10
    return np.hstack([X @ TURN + 5, noise])


X, X_NEW = first_items(60, 1), first_items(30, 2)
Y, Y_NEW = second_items(X)[::-1].copy(), second_items(X_NEW, 1)
SORTING = KernelizedSorting(random_state=0).fit(X, Y)


def curved(n_items, seed, n_columns=6):
    """Two tables that see the same four numbers through different curves."""
    rng = np.random.default_rng(99)
    turns = rng.normal(size=(2, 4, n_columns))
    hidden = np.random.default_rng(seed).normal(size=(n_items, 4))
    noise = 0.05 * np.random.default_rng(seed + 1).normal(size=(2, n_items, n_columns))
    return np.tanh(hidden @ turns[0] / 2) + noise[0], np.sin(hidden @ turns[1] / 2) + noise[1]


def share_right(matches):
    return float((matches.permutation == np.arange(len(matches.permutation))).mean())


def test_new_items_are_placed_in_the_features_of_the_second_collection():
    placed = SORTING.transform(X_NEW)
    assert placed.shape == (30, 4)
    assert placed[:, :3] == pytest.approx(X_NEW @ TURN + 5, abs=0.05)
    assert (cdist(placed, Y_NEW).argmin(axis=1) == np.arange(30)).mean() > 0.9


def test_new_collections_are_matched():
    order = np.random.default_rng(3).permutation(30)
    matches = SORTING.match(X_NEW, Y_NEW[order])
    assert np.array_equal(order[matches.permutation], np.arange(30))
    assert np.array_equal(order[matches.candidates[:, 0]], np.arange(30))
    assert matches.candidates.shape == (30, 5)
    assert matches.confidence.min() > 0.9


@pytest.mark.parametrize(("n_first", "n_second"), [(1, 30), (30, 1), (12, 30), (30, 12)])
def test_new_collections_may_differ_in_size(n_first, n_second):
    matches = SORTING.match(X_NEW[:n_first], Y_NEW[:n_second])
    common = min(n_first, n_second)
    assert np.array_equal(matches.permutation[:common], np.arange(common))
    assert (matches.permutation >= 0).sum() == common
    assert matches.confidence[matches.permutation < 0].sum() == 0


@pytest.mark.slow
def test_the_scaling_of_the_fit_is_applied_to_new_items():
    units = np.array([1e4, 1.0, 1e-3])
    known = np.column_stack([np.arange(30), 59 - np.arange(30)])
    sorting = KernelizedSorting(random_state=0).fit(X * units, Y, frozen=known)
    assert sorting.scaling_ == "standardized"
    assert sorting.transform(X_NEW * units)[:, :3] == pytest.approx(X_NEW @ TURN + 5, abs=0.05)
    # alone, without other items to be scaled by
    assert sorting.transform(X_NEW[:1] * units) == pytest.approx(
        sorting.transform(X_NEW * units)[:1]
    )


@pytest.mark.parametrize("name", SCALERS)
def test_fitted_scalings_treat_new_items_like_fitted_ones(name):
    table = np.random.default_rng(4).poisson(3.0, (40, 5)).astype(float)
    scale = pickle.loads(pickle.dumps(SCALERS[name](table)))
    assert np.array_equal(scale(table), SCALINGS[name](table))
    assert np.array_equal(scale(table[3:5]), SCALINGS[name](table)[3:5])
    assert np.isfinite(scale(10.0 * table - 7.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("scaling", SCALERS)
def test_every_scaling_leads_back_to_the_features_as_given(scaling):
    first, second = curved(300, 0)
    first, second = np.exp(first), np.exp(second)
    new_first, new_second = map(np.exp, curved(100, 7))
    learned = PairMap(first, second, PAIRS, scaling=scaling)
    placed = learned.transform(new_first)
    error = ((placed - new_second) ** 2).sum() / ((new_second - second.mean(axis=0)) ** 2).sum()
    assert error < 0.35


def test_a_curved_map_is_learned_with_a_kernel():
    learned = PairMap(*curved(300, 0), PAIRS)
    new_first, new_second = curved(100, 7)
    scores = learned.scores(new_first, new_second)
    nearest = (scores.queries @ scores.keys.T + scores.bias).argmax(axis=1)
    assert (nearest == np.arange(100)).mean() > 0.75
    by_distance = cdist(learned.transform(new_first), new_second).argmin(axis=1)
    assert (by_distance == np.arange(100)).mean() < (nearest == np.arange(100)).mean()


def nearest_right(learned):
    scores = learned.scores(*curved(100, 7))
    nearest = (scores.queries @ scores.keys.T + scores.bias).argmax(axis=1)
    return float((nearest == np.arange(100)).mean())


@pytest.mark.slow
def test_wrong_pairs_are_recognized_by_the_map_that_the_others_teach():
    pairs = PAIRS.copy()
    pairs[:90, 1] = np.roll(pairs[:90, 1], 1)
    first, second = curved(300, 0)
    trusting = nearest_right(PairMap(first, second, pairs))
    doubting = nearest_right(PairMap(first, second, pairs, np.full(300, 0.7)))
    weighted = nearest_right(PairMap(first, second, pairs, (np.arange(300) >= 90) * 1.0))
    assert trusting < doubting - 0.05
    assert doubting <= weighted + 0.05
    assert weighted > 0.7


@few
@given(st.permutations(range(30)))
def test_the_order_of_new_items_does_not_matter(order):
    order = np.array(order)
    placed = SORTING.transform(X_NEW)
    assert SORTING.transform(X_NEW[order]) == pytest.approx(placed[order])
    partners = SORTING.match(X_NEW, Y_NEW[order]).permutation
    assert np.array_equal(order[partners], SORTING.match(X_NEW, Y_NEW).permutation)


def test_the_order_of_the_fitted_items_does_not_matter():
    order = np.random.default_rng(5).permutation(300)
    first, second = curved(300, 0)
    again = PairMap(first[order], second, np.column_stack([np.arange(300), order]))
    once = PairMap(first, second, PAIRS)
    new_first, _ = curved(20, 7)
    assert again.transform(new_first) == pytest.approx(once.transform(new_first), abs=0.05)


@pytest.mark.slow
def test_large_and_small_and_shifted_numbers_change_nothing():
    first, second = curved(300, 0)
    new_first, _ = curved(20, 7)
    expected = PairMap(first, second, PAIRS).transform(new_first)
    for unit, shift in ((1e120, 0.0), (1e-120, 0.0), (1.0, 1e4)):
        learned = PairMap(unit * first + shift, unit * second + shift, PAIRS)
        placed = learned.transform(unit * new_first + shift)
        assert (placed - shift) / unit == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_columns_without_variation_are_kept():
    first, second = curved(300, 0)
    constant = np.hstack([second, np.full((300, 1), 7.0)])
    learned = PairMap(np.hstack([first, np.zeros((300, 1))]), constant, PAIRS)
    assert learned.transform(np.ones((2, 7)))[:, -1] == pytest.approx([7.0, 7.0])


def test_many_pairs_teach_by_a_sample(monkeypatch):
    monkeypatch.setattr("unshuffle.matching._unseen.MOST_PAIRS", 200)
    assert nearest_right(PairMap(*curved(300, 0), PAIRS)) > 0.7


def test_the_map_is_learned_once_kept_in_pickles_and_dropped_by_another_fit(monkeypatch):
    sorting = KernelizedSorting(random_state=0, trust=False).fit(X, Y)
    placed = sorting.transform(X_NEW)
    monkeypatch.setattr(PairMap, "__init__", None)  # cannot be learned again
    again = pickle.loads(pickle.dumps(sorting))
    assert np.array_equal(again.transform(X_NEW), placed)
    assert np.array_equal(sorting.transform(X_NEW), placed)
    monkeypatch.undo()
    assert not hasattr(clone(sorting), "_unseen")
    other = sorting.fit(X, 2.0 * Y).transform(X_NEW)
    assert other == pytest.approx(2.0 * placed)


def test_fitting_and_transforming_at_once_is_the_same():
    sorting = KernelizedSorting(random_state=0, trust=False)
    placed = sorting.fit_transform(X, Y)
    assert np.array_equal(placed, sorting.fit(X, Y).transform(X))
    assert placed == pytest.approx(Y[::-1], abs=0.5)


def test_low_rank_fits_have_a_map_too():
    sorting = KernelizedSorting(method="low_rank", random_state=0).fit(X, Y)
    right = sorting.permutation_ == np.arange(60)[::-1]
    assert right.mean() > 0.9
    assert share_right(sorting.match(X_NEW, Y_NEW)) > 0.9


def test_names_of_columns_and_items():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    other = pd.DataFrame(Y, columns=list("pqrs"))
    sorting = KernelizedSorting(random_state=0, trust=False).fit(frame, other)
    assert list(sorting.get_feature_names_out()) == list("pqrs")
    assert list(SORTING.get_feature_names_out()) == ["y0", "y1", "y2", "y3"]
    new = pd.DataFrame(X_NEW, columns=["a", "b", "c"], index=[f"item {i}" for i in range(30)])
    placed = sorting.set_output(transform="pandas").transform(new)
    assert list(placed.columns) == list("pqrs")
    named = pd.DataFrame(Y_NEW, columns=list("pqrs"), index=[f"other {i}" for i in range(30)])
    assert sorting.match(new, named).named_pairs()[0] == ("item 0", "other 0")
    with pytest.raises(ValueError, match="feature names should match"):
        sorting.transform(new.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match=r"columns of y are z, q, r, s.*same order"):
        sorting.match(new, named.rename(columns={"p": "z"}))


def test_several_tables_lie_side_by_side():
    sorting = KernelizedSorting(["rbf", "rbf"], "rbf", random_state=0, trust=False)
    sorting.fit([X, X**2], Y)
    assert sorting.transform([X_NEW, X_NEW**2])[:, :3] == pytest.approx(X_NEW @ TURN + 5, abs=0.2)
    back = KernelizedSorting("rbf", ["rbf", "rbf"], random_state=0, trust=False)
    back.fit(Y, [X, X**2])
    assert back.transform(Y_NEW).shape == (30, 6)
    assert len(back.get_feature_names_out()) == 6
    with pytest.raises(ValueError, match="30, 29 rows"):
        sorting.transform([X_NEW, X_NEW[:29]])


def test_sparse_tables_and_callable_kernels():
    sorting = KernelizedSorting(lambda A, B: A @ B.T, random_state=0, trust=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting.fit(X - 2, Y - 5)
    assert sorting.transform(X_NEW - 2).shape == (30, 4)
    sorting = KernelizedSorting("rbf", random_state=0, trust=False)
    sorting.fit(sparse.csr_matrix(X), Y)
    assert sorting.transform(sparse.csr_matrix(X_NEW)) == pytest.approx(sorting.transform(X_NEW))


TEXTS = ["red apple tree", "green apple pie", "blue sea wave", "blue sky", "sea wave", "red sky"]


def test_texts_and_kernel_matrices_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        texts = KernelizedSorting(random_state=0, trust=False).fit(TEXTS, TEXTS[::-1])
        mixed = KernelizedSorting("rbf", "text", random_state=0, trust=False).fit(X[:6], TEXTS)
        matrices = KernelizedSorting("precomputed", random_state=0, trust=False)
        matrices.fit(X @ X.T, X @ X.T)
    with pytest.raises(ValueError, match=r"X holds texts, which have no features.*TfidfVector"):
        texts.transform(TEXTS)
    with pytest.raises(ValueError, match=r"The fitted y holds texts"):
        mixed.transform(X_NEW)
    with pytest.raises(ValueError, match=r"kernel matrix, which places no new items"):
        matrices.match(X @ X.T, X @ X.T)


def test_bad_input_is_named():
    broken = X_NEW.copy()
    broken[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN .*row 4"):
        SORTING.transform(broken)
    with pytest.raises(ValueError, match=r"y contains NaN .*row 4"):
        SORTING.match(X_NEW, np.hstack([broken, broken[:, :1]]))
    with pytest.raises(ValueError, match="2 features, but KernelizedSorting is expecting 3"):
        SORTING.transform(X_NEW[:, :2])
    with pytest.raises(ValueError, match=r"y has 3 columns, and .* fitted has 4"):
        SORTING.match(X_NEW, Y_NEW[:, :3])
    with pytest.raises(ValueError, match="Reshape your data"):
        SORTING.transform(X_NEW[0])
    with pytest.raises(ValueError, match="empty"):
        SORTING.match(X_NEW[:0], Y_NEW)
    for call in (KernelizedSorting().transform, KernelizedSorting().get_feature_names_out):
        with pytest.raises(NotFittedError):
            call(X_NEW)
    with pytest.raises(NotFittedError):
        KernelizedSorting().match(X_NEW, Y_NEW)


def test_items_far_from_all_others_are_matched_without_overflow():
    far = Y_NEW.copy()
    far[3] *= 1e140
    matches = SORTING.match(X_NEW, far)
    others = np.setdiff1d(np.arange(30), 3)
    assert np.array_equal(matches.candidates[others, 0], others)


def test_few_matched_pairs_teach_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting = KernelizedSorting(random_state=0, trust=False).fit(X[:4], Y[:4])
    with pytest.raises(ValueError, match=r"4 pairs are matched, and 5 are needed"):
        sorting.transform(X_NEW)


def test_tables_that_tell_nothing_give_the_mean():
    learned = PairMap(np.ones((20, 2)), Y[:20], PAIRS[:20])
    assert learned.transform(np.ones((3, 2))) == pytest.approx(
        np.tile(Y[:20].mean(axis=0), (3, 1))
    )
    learned = PairMap(X[:20], np.ones((20, 2)), PAIRS[:20])
    assert learned.transform(X_NEW) == pytest.approx(np.ones((30, 2)))
    scores = learned.scores(X_NEW, np.ones((5, 2)))
    assert np.isfinite(scores.queries @ scores.keys.T + scores.bias).all()


def test_unseen_photos_find_their_partner(shared_data):
    features = np.load(shared_data("encoder_features.npz"))
    first, second = (features[f"cifar10_1000_lite{k}"][:600].astype(float) for k in (0, 2))
    pairs = np.column_stack([np.arange(400)] * 2)
    learned = PairMap(first[:400], second[:400], pairs, scaling="rows normalized")
    scores = learned.scores(first[400:], second[400:])
    nearest = (scores.queries @ scores.keys.T + scores.bias).argmax(axis=1)
    assert (nearest == np.arange(200)).mean() >= 0.94
