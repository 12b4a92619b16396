import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.counts import few

from unshuffle import KernelizedSorting
from unshuffle.kernels import SpectralPower, rbf_kernel
from unshuffle.matching import DoubtWarning
from unshuffle.matching._trust import questions as _questions
from unshuffle.matching._trust.questions import choose_questions

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")

GROUPS = np.repeat(np.arange(5), [8, 9, 10, 11, 12])
NONE = np.empty(0, dtype=np.intp)


@pytest.fixture(scope="module")
def grouped():
    """Components of the squared kernel of five tight groups."""
    X = 3 * np.eye(5)[GROUPS] + np.random.default_rng(0).normal(size=(50, 5)) / 20
    spectrum = SpectralPower(rbf_kernel(X))
    return spectrum.eigenvectors_ * spectrum.eigenvalues_


def ask(vectors, k, doubts=None, known=NONE):
    doubts = np.ones(len(vectors)) if doubts is None else doubts
    free = np.setdiff1d(np.arange(len(vectors)), known)
    return choose_questions(vectors, free, doubts[free], np.asarray(known, dtype=np.intp), k)


def sort(X, y, frozen=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return KernelizedSorting(**{"trust": False, "random_state": 0} | parameters).fit(
            X, y, frozen=frozen
        )


def test_each_group_is_asked_about_before_any_is_asked_twice(grouped):
    asked = ask(grouped, 5)
    assert sorted(GROUPS[asked]) == [0, 1, 2, 3, 4]
    assert GROUPS[asked[0]] == 4  # the largest


def test_groups_with_a_known_pair_come_last(grouped):
    asked = ask(grouped, 3, known=[0, 49])
    assert sorted(GROUPS[asked]) == [1, 2, 3]


@pytest.mark.parametrize("doubtful", range(5))
def test_the_first_question_is_about_the_only_doubtful_group(grouped, doubtful):
    asked = ask(grouped, 1, doubts=np.where(doubtful == GROUPS, 1.0, 0.0))
    assert GROUPS[asked[0]] == doubtful


def test_the_most_variance_is_removed_by_the_formula_on_the_whole_matrix():
    rng = np.random.default_rng(0)
    vectors, doubts = rng.normal(size=(40, 6)), rng.random(40)
    C = vectors @ vectors.T
    noise = _questions.NOISE * np.trace(C) / 40
    expected = []
    for number in range(6):
        if number == 0:
            item = 7  # known
        else:
            gains = (doubts[:, None] * C**2).sum(axis=0) / (np.diag(C) + noise)
            gains[[7, *expected]] = -1.0
            item = int(np.argmax(gains))
            expected.append(item)
        C = C - np.outer(C[:, item], C[item]) / (C[item, item] + noise)
    assert ask(vectors, 5, doubts, known=[7]).tolist() == expected


def test_items_are_read_in_blocks(grouped, monkeypatch):
    whole = ask(grouped, 12)
    monkeypatch.setattr(_questions, "BLOCK", 7)
    assert np.array_equal(ask(grouped, 12), whole)


def test_without_any_doubt_all_items_can_be_asked_about(grouped):
    assert sorted(ask(grouped, 50, doubts=np.zeros(50))) == list(range(50))


@few
@given(n_items=st.integers(8, 16), seed=st.integers(0, 10_000), data=st.data())
def test_reordering_x_reorders_the_questions(paired_points, n_items, seed, data):
    X, y, _ = paired_points(n_items, seed)
    order = np.array(data.draw(st.permutations(range(n_items))))
    plain, reordered = sort(X, y), sort(X[order], y)
    reordered.confidence_ = plain.confidence_[order]  # random thirds depend on the order
    asked = reordered.questions(5)
    assert np.array_equal(np.column_stack([order[asked[:, 0]], asked[:, 1]]), plain.questions(5))


@few
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 0.3, 1e5]))
def test_turned_and_scaled_components_lead_to_the_same_questions(seed, scale):
    rng = np.random.default_rng(seed)
    vectors, doubts = rng.normal(size=(30, 5)), rng.random(30)
    turned = scale * vectors @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert np.array_equal(ask(turned, 8, doubts), ask(vectors, 8, doubts))


@few
@given(
    seed=st.integers(0, 10_000),
    sizes=st.sampled_from([(24, 24), (24, 30), (30, 24)]),
    method=st.sampled_from(["refined", "low_rank", "classic", "unbiased"]),
    unmatched_cost=st.sampled_from([None, 0.4]),
    n_frozen=st.sampled_from([0, 3, 7]),
)
def test_questions_are_different_pairs_that_are_not_frozen(
    seed, sizes, method, unmatched_cost, n_frozen
):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(sizes[0], 4)), rng.normal(size=(sizes[1], 3))
    frozen = np.column_stack([rng.permutation(size)[:n_frozen] for size in sizes])
    sorting = sort(X, y, frozen, method=method, unmatched_cost=unmatched_cost)
    n_free = len(sorting.pairs_) - n_frozen
    if n_free == 0:
        return
    asked = sorting.questions(n_free)
    assert asked.dtype == np.intp
    listed, pairs = set(map(tuple, asked.tolist())), set(map(tuple, sorting.pairs_.tolist()))
    assert listed == pairs - set(map(tuple, frozen.tolist()))
    assert np.array_equal(sorting.questions(1), asked[:1])


@pytest.mark.parametrize("method", ["refined", "low_rank"])
def test_answers_are_taken_as_frozen_and_not_asked_again(paired_points, method):
    X, y, truth = paired_points(40, 3, noise=0.3)
    sorting = sort(X, y, method=method)
    answers = sorting.questions(6)
    answers[:, 1] = truth[answers[:, 0]]
    again = sort(X, y, answers, method=method)
    assert np.array_equal(again.permutation_[answers[:, 0]], answers[:, 1])
    assert not np.isin(again.questions(34)[:, 0], answers[:, 0]).any()


@pytest.mark.parametrize("trust", [True, False])
def test_both_methods_ask_about_the_same_items(paired_points, trust):
    X, y, _ = paired_points(60, 4)
    dense, low = (
        sort(X, y, kernel="rbf", gamma=0.3, method=method, trust=trust).questions(8)
        for method in ("refined", "low_rank")
    )
    assert np.isin(dense[:, 0], low[:, 0]).sum() >= 6


def test_kinds_of_collections(paired_points):
    X, y, _ = paired_points(30, 5)
    table = sort(X, y, kernel="rbf", gamma=0.3).questions(4)
    K, L = (rbf_kernel(each, gamma=0.3) for each in (X, y))
    assert np.array_equal(sort(K, L, kernel="precomputed").questions(4), table)
    twice = sort([X, X], [y, y], kernel=["rbf", "rbf"], gamma=0.3)
    assert np.array_equal(twice.questions(4), table)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["sea", "law", "tax", "road", "vote"], 9)) for _ in range(20)]
    assert sort(texts, texts[::-1], kernel="text").questions(4).shape == (4, 2)


def test_questions_survive_pickling(paired_points):
    X, y, _ = paired_points(30, 6)
    for method in ("refined", "low_rank"):
        sorting = sort(X, y, method=method)
        loaded = pickle.loads(pickle.dumps(sorting))
        assert np.array_equal(loaded.questions(5), sorting.questions(5))
        assert "questions" not in vars(clone(sorting))


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "`k` must be from 1 to 23, got 0"),
        (24, "`k` must be from 1 to 23, got 24"),
        (2.5, "`k` must be a whole number, got 2.5"),
        (True, "`k` must be a whole number"),
    ],
)
def test_an_impossible_number_of_questions_is_refused(paired_points, k, message):
    X, y, _ = paired_points(25, 7)
    sorting = sort(X, y, [[0, 3], [5, 1]])
    with pytest.raises(ValueError, match=message):
        sorting.questions(k)


def test_there_is_nothing_to_ask_if_all_pairs_are_frozen(paired_points):
    X, y, truth = paired_points(8, 8)
    sorting = sort(X, y, np.column_stack([np.arange(8), truth]))
    with pytest.raises(
        ValueError, match="nothing to ask: all 8 items of X are frozen or unmatched"
    ):
        sorting.questions(1)
