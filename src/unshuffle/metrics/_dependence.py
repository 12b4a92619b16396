"""Dependence between two collections whose rows correspond: HSIC and CKA."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import check_magnitude, check_same_items
from unshuffle._core.grams import Kernel, check_centered_norm, count_items, gram_copies
from unshuffle._core.parameters import check_flag, check_memory, check_option
from unshuffle._run.types import Floats
from unshuffle.kernels import center, combined_gram


def hsic_biased(K: Floats, L: Floats) -> float:
    """Biased HSIC of two kernel matrices in a common order, (n - 1)^-2 tr(H K H L), eq. (4)."""
    n_items = K.shape[0]
    # L too: where it is far from zero, sums that cancel would leave rounding.
    return float(np.sum(_centered(K) * _centered(L))) / (n_items - 1) ** 2


def hsic_zeroed(K: Floats, L: Floats) -> float:
    """HSIC with the diagonals of both centered kernels removed.

    A text is far more similar to itself than to any other, and n large diagonal
    terms hide the n (n - 1) others (section 2.3). The paper removes the diagonal and
    then centers, which puts a diagonal back; here the kernels are centered first.
    """
    n_items = K.shape[0]
    product = _centered(K) * _centered(L)
    return float(np.sum(product) - np.trace(product)) / (n_items - 1) ** 2


def hsic_unbiased(K: Floats, L: Floats) -> float:
    """Unbiased HSIC: its mean over samples of independent data is zero.

    Song, Smola, Gretton, Bedo, Borgwardt, "Feature selection via dependence
    maximization", JMLR 13 (2012), eq. (5).
    """
    n_items = K.shape[0]
    if n_items < 4:
        raise ValueError(f"The unbiased HSIC needs at least 4 items, got {n_items}.")
    # A constant off the diagonal changes nothing but takes digits.
    K, L = K - K[0, -1], L - L[0, -1]
    np.fill_diagonal(K, 0.0)
    np.fill_diagonal(L, 0.0)
    row_k, row_l = K.sum(axis=1), L.sum(axis=1)
    return float(
        np.sum(K * L)
        + row_k.sum() * row_l.sum() / ((n_items - 1) * (n_items - 2))
        - 2 / (n_items - 2) * (row_k @ row_l)
    ) / (n_items * (n_items - 3))


def _centered(K: Floats) -> Floats:
    K = K - K[0, -1]  # a large constant would cost the means digits
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())


Kernels = Kernel | Sequence[Kernel]
Gamma = float | Sequence[float | None] | None

_ESTIMATORS: dict[str, Callable[..., float]] = {
    "biased": hsic_biased,
    "zeroed": hsic_zeroed,
    "unbiased": hsic_unbiased,
}


def hsic(
    X: Any,
    y: Any,
    *,
    kernel: Kernels = "rbf",
    kernel_y: Kernels | None = None,
    gamma: Gamma = None,
    estimator: str = "biased",
) -> float:
    """Dependence between two collections whose rows correspond.

    Parameters
    ----------
    X, y : collections of n items, as in `unshuffle.kernels.combined_gram`
        Vectors, documents or Gram matrices, according to the kernels.
    kernel : str, callable, or list of these, default="rbf"
        Kernel between items of X.
    kernel_y : str, callable, or list of these, default=None
        Kernel between items of y. None uses `kernel`.
    gamma : float or list, default=None
        Width of both kernels. A larger value makes them narrower. None takes one over the median
        distance, separately for X and y.
    estimator : {"biased", "zeroed", "unbiased"}, default="biased"
        "biased" is (n - 1)^-2 tr(H K H L), at least 0. "zeroed" drops the diagonals of both
        centered matrices, as `KernelizedSorting.objective_` does. "unbiased" is 0 on average for
        independent collections, may be negative, and needs at least 4 items.

    Returns
    -------
    float
        Larger values mean more dependence.

    Notes
    -----
    O(n^2) time. Memory for five matrices of n^2 numbers is checked first.

    References
    ----------
    Gretton et al., "Measuring statistical dependence with Hilbert-Schmidt norms", ALT (2005).
    Song et al., "Feature selection via dependence maximization", JMLR 13 (2012).

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> hsic(X, [[1.0], [3.0], [5.0], [7.0]], kernel="linear") > hsic(X, X[::-1], kernel="rbf")
    True
    """
    estimate = _ESTIMATORS[check_option(estimator, "estimator", tuple(_ESTIMATORS))]
    K, L = _gram_matrices(X, y, kernel, kernel_y, gamma)
    if estimator == "unbiased":
        check_enough_items(len(K), "The unbiased HSIC")
    return estimate(K, L)


def cka(
    X: Any,
    y: Any,
    *,
    kernel: Kernels = "linear",
    kernel_y: Kernels | None = None,
    gamma: Gamma = None,
    debiased: bool = False,
) -> float:
    """Centered kernel alignment: dependence from 0 to 1, whatever the scale of the kernels.

    Parameters
    ----------
    X, y, kernel_y, gamma
        As in `hsic`.
    kernel : str, callable, or list of these, default="linear"
        Kernel between items of X.
    debiased : bool, default=False
        Whether to use the unbiased HSIC, so that collections with more columns than rows do not
        look alike by chance. The result may be slightly negative. Needs at least 4 items.

    Returns
    -------
    float
        HSIC(X, y) / sqrt(HSIC(X, X) HSIC(y, y)): 1 if the two are the same up to rotation and
        scale (linear kernel), about 0 if they are independent.

    Notes
    -----
    O(n^2) time. Memory for five matrices of n^2 numbers is checked first.

    References
    ----------
    Kornblith et al., "Similarity of neural network representations revisited", ICML (2019).

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 1.0]]
    >>> round(cka(X, [[10 * b, -10 * a] for a, b in X]), 6)
    1.0
    """
    K, L = _gram_matrices(X, y, kernel, kernel_y, gamma)
    if check_flag(debiased, "debiased"):
        check_enough_items(len(K), "The debiased alignment")
    estimate = hsic_unbiased if debiased else hsic_biased
    # The estimates ignore the mean; subtracting it first keeps their digits.
    K, L = _center(K, "X"), _center(L, "y")
    own = [
        check_centered_norm(estimate(M, M), float(np.linalg.norm(M) / len(M)) ** 2, name)
        for M, name in ((K, "X"), (L, "y"))
    ]
    return estimate(K, L) / float(np.sqrt(own[0]) * np.sqrt(own[1]))


def _gram_matrices(
    X: Any, y: Any, kernel: Kernels, kernel_y: Kernels | None, gamma: Gamma
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    second = kernel if kernel_y is None else kernel_y
    n_items = max(count_items(X, kernel), count_items(y, second, "y"))
    check_memory(
        # both kernels and three temporaries; or one kernel while the other is computed
        int(8 * n_items**2 * max(5.0, 1.0 + gram_copies(kernel), 1.0 + gram_copies(second))),
        what=f"Measuring the dependence of {n_items:,} items",
        instead="Use a sample of the items.",
    )
    # Dependence does not change with the origin, and centering keeps digits.
    K = combined_gram(X, kernel, gamma=gamma, name="X", center=True)
    L = combined_gram(y, second, gamma=gamma, name="y", center=True)
    check_magnitude(K, "The kernel matrix of X")
    check_magnitude(L, "The kernel matrix of y")
    check_same_items(K.shape[0], L.shape[0], "X", "y")
    return K, L


def _center(K: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    centered = center(K)
    largest = max(float(K.max()), -float(K.min())) or 1.0
    # The alignment has no unit, and squares of large floats overflow.
    centered /= largest
    check_centered_norm(float(np.linalg.norm(centered)), float(np.linalg.norm(K / largest)), name)
    return centered


def check_enough_items(n_items: int, what: str) -> None:
    """Refuse a sample too small for an unbiased estimate."""
    if n_items < 4:
        raise ValueError(f"{what} needs at least 4 items, got {n_items}.")
