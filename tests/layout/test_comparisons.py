"""What items may be compared by."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from unshuffle import GridLayout
from unshuffle.kernels import combined_gram, gram_matrix, rbf_kernel
from unshuffle.layout import _problem
from unshuffle.metrics import distance_preservation_quality

TOPICS = ["apple pear plum fruit pie", "engine steam rail train wheel", "wolf fox bear deer hare"]


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:120]


@pytest.mark.parametrize("quality", ["fast", "balanced", "best", "classic"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2", "geodesic", "linear"])
def test_named_kernels_put_like_beside_like(digits, check_layout, kernel, quality):
    layout = GridLayout(kernel=kernel, quality=quality, random_state=0).fit(digits)
    check_layout(layout, 120)
    order = np.random.default_rng(0).permutation(120)
    chance = distance_preservation_quality(digits, order.reshape(10, 12))
    assert distance_preservation_quality(digits, layout.grid_) > chance + 0.2
    assert layout.score_ > 0.5


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
def test_kernels_agree_with_their_matrices_and_their_functions(digits, kernel):
    named = GridLayout(kernel=kernel, random_state=0).fit(digits)
    K = gram_matrix(digits, kernel)
    given = GridLayout(kernel="precomputed", random_state=0).fit(K)
    called = GridLayout(kernel=lambda X, Y: gram_matrix(X, kernel), random_state=0).fit(digits)
    assert np.array_equal(given.grid_, named.grid_)
    assert np.array_equal(called.grid_, named.grid_)
    assert given.score_ == pytest.approx(named.score_)
    assert called.n_features_in_ == digits.shape[1]


def test_a_linear_kernel_matrix_stands_for_the_vectors(colors):
    X = colors(100)
    plain, given = GridLayout(random_state=0), GridLayout(kernel="precomputed", random_state=0)
    assert given.fit(X @ X.T).score_ == pytest.approx(plain.fit(X).score_, abs=0.02)
    own = distance_preservation_quality(X, given.grid_)
    assert own == pytest.approx(given.score_, abs=1e-4)


def test_the_width_is_used(digits):
    wide, narrow = (
        GridLayout(kernel="rbf", gamma=gamma, random_state=0).fit(digits).score_
        for gamma in (1e-5, 1.0)
    )
    assert wide > narrow + 0.1


def test_documents_of_a_topic_lie_together(check_layout):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(topic.split(), 8)) for topic in TOPICS for _ in range(12)]
    for given in (texts, np.array(texts), np.array(texts, dtype=object), pd.Series(texts)):
        layout = GridLayout((3, 12), kernel="text", random_state=0).fit(given)
        check_layout(layout, 36)
        topic = layout.grid_ // 12
        assert np.mean(np.diff(topic, axis=1) == 0) > 0.8
    tags = layout.__sklearn_tags__()
    assert tags.input_tags.string


@pytest.mark.parametrize("quality", ["balanced", "classic"])
def test_texts_are_compared_as_texts_unless_another_kernel_is_chosen(check_layout, quality):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(topic.split(), 8)) for topic in TOPICS for _ in range(6)]
    found, chosen = (
        GridLayout((3, 7), kernel=kernel, quality=quality, random_state=0).fit(texts)
        for kernel in (None, "text")
    )
    assert np.array_equal(found.grid_, chosen.grid_)
    assert found.score_ == chosen.score_
    added = found.add(["a steam engine"])
    check_layout(added, 19)


@pytest.mark.parametrize("quality", ["fast", "balanced", "best", "classic"])
def test_a_list_of_kernels_takes_a_list_of_descriptions(colors, check_layout, quality):
    X1, X2 = colors(30), colors(30, seed=1)
    kernels = ["rbf", "linear"]
    listed = GridLayout(kernel=kernels, quality=quality, random_state=0).fit([X1, X2])
    check_layout(listed, 30)
    K = combined_gram([X1, X2], kernels)
    given = GridLayout(kernel="precomputed", quality=quality, random_state=0).fit(K)
    assert np.array_equal(listed.grid_, given.grid_)
    assert listed.score_ == pytest.approx(given.score_)
    stacked = GridLayout(kernel=kernels, quality=quality, random_state=0).fit(np.stack([X1, X2]))
    assert np.array_equal(stacked.grid_, listed.grid_)


def test_descriptions_may_be_of_different_kinds(colors, check_layout):
    X = colors(6)
    texts = ["red apple", "green apple", "steam engine", "old engine", "red fox", "old fox"]
    views = [X, texts, sparse.csr_matrix(X), pd.DataFrame(X), rbf_kernel(X), X.tolist()]
    kernels = ["rbf", "text", "linear", "laplacian", "precomputed", lambda a, b: a @ b.T]
    layout = GridLayout(kernel=kernels, gamma=[1.0, None, None, 2.0, None, None], random_state=0)
    check_layout(layout.fit(views), 6)


@pytest.mark.parametrize("n_features", [2, 3])
def test_a_list_of_kernels_shares_one_collection(colors, check_layout, n_features):
    # with as many items or features as kernels: rows must not be taken for descriptions
    for n_items in (2, 3, 9):
        X = colors(n_items)[:, :n_features]
        layout = GridLayout(kernel=("rbf", "linear"), random_state=0).fit(X.tolist())
        check_layout(layout, n_items)
        assert np.array_equal(
            GridLayout(kernel=("rbf", "linear"), random_state=0).fit(X).grid_, layout.grid_
        )


def test_both_descriptions_count(check_layout):
    rng = np.random.default_rng(0)
    first, second = rng.random((100, 1)), rng.random((100, 1))
    layout = GridLayout((10, 10), kernel=["linear", "linear"], random_state=0)
    layout.fit([first, 1000.0 * second])
    for view in (first, second):
        arranged = layout.arrange(view[:, 0])
        steps = np.abs(np.concatenate([np.diff(arranged, axis=a).ravel() for a in (0, 1)]))
        assert steps.mean() < 0.5 * np.abs(view - view.T).mean()


@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_thin_factors_come_close_to_whole_matrices(digits, monkeypatch, kernel):
    K = gram_matrix(digits, kernel)

    def score(seed):
        layout = GridLayout(kernel=kernel, random_state=seed).fit(digits)
        judge = GridLayout(layout.grid_.shape, kernel="precomputed", callback=lambda _: True)
        frozen = np.column_stack([layout.grid_.ravel(), np.arange(120)])
        return judge.fit(K, frozen=frozen).score_

    whole = [score(seed) for seed in range(5)]
    monkeypatch.setattr(_problem, "DENSE_UP_TO", 50)
    monkeypatch.setattr(_problem, "N_LANDMARKS", 60)
    thin = [score(seed) for seed in range(5)]
    assert np.mean(thin) > np.mean(whole) - 0.02


def test_leading_components_of_many_items_and_features_keep_the_layout_good(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((100, 4)) @ rng.normal(size=(4, 80)) + 0.01 * rng.normal(size=(100, 80))
    exact = GridLayout(random_state=0).fit(X).score_
    monkeypatch.setattr(_problem, "EXACT_UP_TO", 20)
    assert GridLayout(random_state=0).fit(X).score_ == pytest.approx(exact, abs=0.03)


def test_the_score_is_that_of_the_metric(digits, colors):
    layout = GridLayout(random_state=0).fit(digits)
    assert layout.score_ == distance_preservation_quality(digits, layout.grid_)
    torus = GridLayout((10, 12), wrap=True, random_state=0).fit(digits)
    assert torus.score_ == distance_preservation_quality(digits, torus.grid_, wrap=True)
    points = np.random.default_rng(0).random((130, 2))
    placed = GridLayout(points, random_state=0).fit(digits)
    assert placed.score_ == distance_preservation_quality(digits, placed.grid_, points=points)
    many = colors(4200)
    layout = GridLayout(quality="fast", random_state=0).fit(many)
    whole = distance_preservation_quality(many, layout.grid_)
    assert layout.score_ == pytest.approx(whole, abs=0.01)
    assert layout.score_ != whole
