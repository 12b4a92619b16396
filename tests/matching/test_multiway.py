import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

from unshuffle.matching._dense.entropy import entropy_swap_changes, entropy_value, multiway_entropy
from unshuffle.matching._several.joint import multiway_hsic, multiway_weights
from unshuffle.metrics._dependence import hsic_biased

RIDGE = 0.05


def multiway_gradient(others, K, permutation):
    """Gradient of multiway HSIC in the matrix P that orders one more kernel."""
    return 2 * multiway_weights(others) @ K[permutation] / len(K) ** 2


def features(n_items, widths, seed):
    random = np.random.default_rng(seed)
    return [random.normal(size=(n_items, width)) for width in widths]


def rbf(n_items, n_collections, seed):
    return [
        np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))
        for X in features(n_items, [2] * n_collections, seed)
    ]


def reordered(K, permutation):
    return K[np.ix_(permutation, permutation)]


@given(
    seed=st.integers(0, 999),
    n_items=st.integers(2, 9),
    widths=st.lists(st.integers(1, 3), min_size=2, max_size=4),
)
def test_hsic_is_the_norm_of_the_explicit_tensor(seed, n_items, widths):
    data = features(n_items, widths, seed)
    joint, product = np.zeros(widths), np.ones(())
    for i in range(n_items):
        item = np.ones(())
        for X in data:
            item = np.multiply.outer(item, X[i])
        joint = joint + item / n_items
    for X in data:
        product = np.multiply.outer(product, X.mean(axis=0))
    expected = float(np.sum((joint - product) ** 2))
    value = multiway_hsic([X @ X.T for X in data])
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_hsic_is_eq_15_with_its_missing_powers_of_m():
    kernels = rbf(7, 3, 0)
    m, n_collections = 7, 3
    ones = np.ones(m)
    first = ones @ np.prod(kernels, axis=0) @ ones / m**2
    second = np.prod([ones @ K @ ones / m**2 for K in kernels])
    third = np.sum(np.prod([K @ ones for K in kernels], axis=0)) / m ** (n_collections + 1)
    assert multiway_hsic(kernels) == pytest.approx(first + second - 2 * third)


def test_of_two_kernels_hsic_is_the_known_one():
    K, L = rbf(8, 2, 1)
    assert multiway_hsic([K, L]) == pytest.approx((7 / 8) ** 2 * hsic_biased(K, L))


def test_hsic_with_constant_kernels_is_zero():
    ones = np.ones((5, 5))
    assert multiway_hsic([rbf(5, 1, 2)[0], ones, ones]) == pytest.approx(0.0, abs=1e-15)


@given(seed=st.integers(0, 999), n_collections=st.integers(2, 5))
def test_hsic_depends_neither_on_the_common_order_nor_on_that_of_the_kernels(seed, n_collections):
    kernels = rbf(6, n_collections, seed)
    random = np.random.default_rng(seed)
    order = random.permutation(6)
    shuffled = [reordered(kernels[t], order) for t in random.permutation(n_collections)]
    assert multiway_hsic(shuffled) == pytest.approx(multiway_hsic(kernels))


@pytest.mark.parametrize("n_others", [1, 2, 4])
def test_weights_are_positive_semi_definite_so_that_the_objective_is_convex(n_others):
    weights = multiway_weights(rbf(10, n_others, 3))
    assert np.linalg.eigvalsh(weights).min() > -1e-12


def test_gradient_is_that_of_finite_differences():
    *others, K = rbf(5, 3, 4)
    permutation = np.array([2, 0, 4, 1, 3])
    gradient = multiway_gradient(others, K, permutation)
    weights = multiway_weights(others)

    def value(P):
        return float(np.sum(weights * (P @ K @ P.T))) / 25

    P = np.eye(5)[permutation]
    assert value(P) == pytest.approx(multiway_hsic([*others, reordered(K, permutation)]))
    for i, j in itertools.product(range(5), repeat=2):
        step = np.zeros((5, 5))
        step[i, j] = 1e-5
        slope = (value(P + step) - value(P - step)) / 2e-5
        assert gradient[i, j] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_a_tangent_bounds_the_objective_from_below():
    *others, K = rbf(6, 3, 5)
    random = np.random.default_rng(5)
    for _ in range(20):
        p, q = random.permutation(6), random.permutation(6)
        gradient = multiway_gradient(others, K, p)
        rows = np.arange(6)
        tangent = gradient[rows, q].sum() - gradient[rows, p].sum()
        gain = multiway_hsic([*others, reordered(K, q)])
        gain -= multiway_hsic([*others, reordered(K, p)])
        assert gain >= tangent - 1e-12


def test_entropy_of_two_kernels_is_the_known_one():
    K, L = rbf(6, 2, 6)
    permutation = np.array([3, 1, 5, 0, 2, 4])
    expected = entropy_value(K, L, permutation, ridge=RIDGE)
    value = multiway_entropy([K, reordered(L, permutation)], ridge=RIDGE)
    assert value == pytest.approx(expected)


def test_entropy_of_three_kernels_comes_from_the_eigenvalues_of_their_product():
    kernels = rbf(6, 3, 7)
    H = np.eye(6) - 1 / 6
    matrix = H @ (kernels[0] * kernels[1] * kernels[2]) @ H + RIDGE * np.eye(6)
    expected = np.log(np.linalg.eigvalsh(matrix)).sum()
    assert multiway_entropy(kernels, ridge=RIDGE) == pytest.approx(expected)


def test_entropy_refuses_a_product_that_is_not_a_kernel():
    with pytest.raises(LinAlgError):
        multiway_entropy([np.diag([1.0, -9.0, 1.0]), np.eye(3)], ridge=RIDGE)


@given(seed=st.integers(0, 999), linear=st.booleans())
def test_the_change_of_each_exchange_is_exact(seed, linear):
    if linear:  # whose diagonals differ
        first, second, K = (X @ X.T for X in features(7, [2, 3, 2], seed))
    else:
        first, second, K = rbf(7, 3, seed)
    before = multiway_entropy([first, second, K], ridge=RIDGE)
    changes = entropy_swap_changes(first * second, K, ridge=RIDGE)
    for change, i, j in zip(changes, *np.triu_indices(7, 1), strict=True):
        permutation = np.arange(7)
        permutation[[i, j]] = j, i
        after = multiway_entropy([first, second, reordered(K, permutation)], ridge=RIDGE)
        assert change == pytest.approx(after - before, abs=1e-7)
