"""The paper's layout: HSIC at the median widths, never below what its own start reaches."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from unshuffle import GridLayout
from unshuffle.layout._paper import squared_distances
from unshuffle.layout._shape import Shape


def median_kernel(squared):
    return np.exp(-squared / np.median(squared[np.triu_indices(len(squared), 1)]))


def centered(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def hsic(K, L, cell_of_item):
    """tr(HKHL) / n^2 with the cells in the order of the items."""
    return float((centered(K) * L[np.ix_(cell_of_item, cell_of_item)]).sum()) / len(K) ** 2


def paper(K, L):
    """Items and cells sorted by their leading eigenvectors, then repeated assignment."""
    first, second = (np.linalg.eigh(centered(each))[1][:, -1] for each in (K, L))
    found = []
    for sign in (1.0, -1.0):
        cell_of_item = np.empty(len(K), dtype=int)
        cell_of_item[np.argsort(sign * first)] = np.argsort(second)
        value = hsic(K, L, cell_of_item)
        while True:
            slopes = centered(K) @ centered(L)[cell_of_item]
            proposal = linear_sum_assignment(slopes, maximize=True)[1]
            if hsic(K, L, proposal) <= value * (1 + 1e-9):
                break
            cell_of_item, value = proposal, hsic(K, L, proposal)
        found.append(value)
    return max(found)


def cells_of(layout):
    cells = np.empty(len(layout.positions_), dtype=int)
    taken = np.flatnonzero(layout.grid_.ravel() >= 0)
    cells[layout.grid_.ravel()[taken]] = taken
    return cells


def median_kernels(X, places):
    return [median_kernel(cdist(each, each, "sqeuclidean")) for each in (X, places)]


@pytest.mark.parametrize("n_features", [1, 3, 20])
def test_its_objective_is_at_least_what_the_paper_reaches(n_features):
    # At points in general position no two cells tie in the leading eigenvector.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, points = rng.random((40, n_features)), rng.random((40, 2))
        K, L = median_kernels(X, points)
        layout = GridLayout(points, quality="classic", random_state=seed).fit(X)
        assert hsic(K, L, cells_of(layout)) >= paper(K, L) * (1 - 1e-4)


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (1, 30)])
def test_its_objective_is_mostly_above_what_the_paper_reaches_on_rectangles(shape):
    # On a rectangle whole lines of cells tie, so that the paper's start is one of many.
    ratios = []
    places = np.argwhere(np.ones(shape))
    for seed in range(6):
        X = np.random.default_rng(seed).random((len(places), 3))
        K, L = median_kernels(X, places)
        layout = GridLayout(shape, quality="classic", random_state=seed).fit(X)
        ratios.append(hsic(K, L, cells_of(layout)) / paper(K, L))
    assert min(ratios) > 0.97
    assert np.mean(ratios) > 1.0


def test_the_callback_is_told_the_objective(colors):
    X, states = colors(36), []
    layout = GridLayout((6, 6), quality="classic", random_state=0, callback=states.append).fit(X)
    K, L = median_kernels(X, np.argwhere(np.ones((6, 6))))
    climbing = [state for state in states if state.stage == "climbing"]
    assert climbing[-1].objective == pytest.approx(hsic(K, L, cells_of(layout)), rel=1e-6)
    assert np.all(np.diff([state.objective for state in climbing]) >= 0)
    assert climbing[0].fraction > 0.09


def test_its_objective_is_higher_than_that_of_layouts_for_the_eye(colors):
    X = colors(64)
    K, L = median_kernels(X, np.argwhere(np.ones((8, 8))))
    classic, best = (
        hsic(K, L, cells_of(GridLayout((8, 8), quality=quality, random_state=0).fit(X)))
        for quality in ("classic", "best")
    )
    assert classic > best


def test_the_better_of_two_layouts_is_found_whatever_the_start(colors):
    X, order = colors(16), np.random.default_rng(0).permutation(16)
    K, L = median_kernels(X, np.argwhere(np.ones((4, 4))))
    other = order.copy()
    other[-2:] = order[-2:][::-1]
    best = max((order, other), key=lambda cells: hsic(K, L, cells))
    frozen = np.column_stack([np.arange(14), order[:14]])
    for seed in range(6):
        layout = GridLayout((4, 4), quality="classic", random_state=seed).fit(X, frozen=frozen)
        assert np.array_equal(cells_of(layout), best)


def test_distances_go_the_short_way_round_a_torus():
    cells = np.arange(35)
    flat, wrapped = (
        squared_distances(Shape.for_items((5, 7), 35, wrap=wrap), cells) for wrap in (False, True)
    )
    assert flat[0, 34] == 4**2 + 6**2
    assert wrapped[0, 34] == 1 + 1
    assert wrapped[0, 3] == 9
    assert wrapped[0, 4] == 9
    places = np.stack(np.divmod(cells, 7), axis=1)
    np.testing.assert_allclose(flat, cdist(places, places, "sqeuclidean"))
    np.testing.assert_array_equal(wrapped, wrapped.T)


def test_masks_are_filled_and_clusters_kept_apart(check_layout):
    rng = np.random.default_rng(0)
    mask = np.zeros((6, 14), dtype=bool)
    mask[:, :5] = mask[:, 9:] = True
    X = np.vstack([rng.normal(0, 1, (28, 2)), rng.normal(20, 1, (28, 2))])
    layout = GridLayout(mask, quality="classic", random_state=0).fit(X)
    check_layout(layout, 56, mask)
    left = layout.positions_[:, 1] < 7
    assert left[:28].all() != left[28:].all()


def test_its_default_kernel_is_the_papers_but_its_score_is_of_the_features(colors):
    X = colors(36)
    plain = GridLayout(quality="classic", random_state=0).fit(X)
    named = GridLayout(quality="classic", kernel="rbf", random_state=0).fit(X)
    assert np.array_equal(plain.grid_, named.grid_)
    gamma = 1 / np.median(pdist(X, "sqeuclidean"))
    wide = GridLayout(quality="classic", gamma=gamma, random_state=0).fit(X)
    assert wide.score_ == pytest.approx(plain.score_, abs=0.02)


def test_too_little_memory_is_said_before_it_is_taken(colors, monkeypatch):
    from unshuffle._core import parameters as _parameters

    monkeypatch.setattr(_parameters, "available_memory", lambda: 10**5)
    with pytest.raises(MemoryError, match="needs"):
        GridLayout(quality="classic").fit(colors(400))
    assert GridLayout(quality="fast").fit(colors(400)).grid_.shape == (20, 20)


def test_one_item_needs_no_matrix_of_all_cells(colors, check_layout, monkeypatch):
    from unshuffle._core import parameters as _parameters

    monkeypatch.setattr(_parameters, "available_memory", lambda: 10**7)
    check_layout(GridLayout((100, 100), quality="classic").fit(colors(1)), 1)


def test_squared_differences_of_neighbors_are_twice_the_trace():
    rng = np.random.default_rng(0)
    x, G = rng.normal(size=(6, 3)), rng.random((6, 6))
    G = G + G.T
    laplacian = np.diag(G.sum(axis=1)) - G
    differences = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    assert np.sum(G * differences) == pytest.approx(2 * np.trace(x @ x.T @ laplacian))  # eq. (19)
