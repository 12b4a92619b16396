"""Centering and scaling of Gram matrices, and powers of their spectrum."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import as_numbers, middle, table_shape
from unshuffle._core.grams import check_centered_norm, check_gram
from unshuffle._core.parameters import check_flag, check_kernel_memory, check_positive
from unshuffle._run.parallel import eigh, product

_BLOCK = 256


def center(K: ArrayLike) -> NDArray[np.float64]:
    """Gram matrix of the items relative to their mean in feature space.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix.

    Returns
    -------
    ndarray of shape (n, n)
        H K H with H = I - 11'/n: exactly symmetric, rows and columns sum to zero.

    Notes
    -----
    O(n^2) time and memory; H is not formed. To drop the diagonal too, center first and call
    `zero_diagonal` on the result.

    Examples
    --------
    >>> center([[1.0, 0.0], [0.0, 1.0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    K = check_gram(K, "K")
    # Subtract a typical entry first, so that sums keep their digits.
    K -= _middle_entry(K)
    row_means = K.mean(axis=1)
    # r_i + r_j is the same in both orders, so the result is exactly symmetric.
    mean = row_means.mean()
    for start in range(0, K.shape[0], _BLOCK):
        rows = slice(start, start + _BLOCK)
        K[rows] -= np.add.outer(row_means[rows], row_means) - mean
    return K


def zero_diagonal(K: ArrayLike) -> NDArray[np.float64]:
    """Gram matrix without the similarity of each item to itself.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix.

    Returns
    -------
    ndarray of shape (n, n)
        A copy with zeros on the diagonal.

    Examples
    --------
    >>> zero_diagonal([[1.0, 0.5], [0.5, 1.0]])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    K = check_gram(K, "K")
    np.fill_diagonal(K, 0.0)
    return K


def _middle_entry(K: NDArray[np.float64]) -> float:
    """Typical entry off the diagonal: the median of a sample."""
    n_items = K.shape[0]
    rows = np.arange(0, n_items, max(1, n_items // 16))
    return float(middle(K[rows, (rows + 1 + n_items // 2) % n_items][:, None])[0])


def centered_norm(K: NDArray[np.float64]) -> float:
    """Frobenius norm ||H K H|| of a symmetric matrix, in O(n) memory."""
    constant = _middle_entry(K)
    n_items = K.shape[0]
    blocks = [slice(start, start + _BLOCK) for start in range(0, n_items, _BLOCK)]
    row_means = np.concatenate([(K[rows] - constant).mean(axis=1) for rows in blocks])
    # Divide by the largest entry, whose square may overflow.
    largest = max(float(K.max()) - constant, constant - float(K.min())) or 1.0
    total = 0.0
    for rows in blocks:
        block = (K[rows] - constant) - np.add.outer(row_means[rows] - row_means.mean(), row_means)
        block /= largest
        total += float(np.vdot(block, block))
    return largest * float(np.sqrt(total))


def scale_to_unit_norm(K: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """K / ||H K H||, written over a symmetric K."""
    largest = max(float(K.max()), -float(K.min()))
    K /= check_centered_norm(centered_norm(K), largest * K.shape[0], name)
    return K


def unit_norm(K: ArrayLike, *, name: str = "K") -> NDArray[np.float64]:
    """Gram matrix scaled to unit centered norm, so that kernels count equally in a sum.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix.
    name : str
        Name of the matrix in error messages.

    Returns
    -------
    ndarray of shape (n, n)
        K / ||H K H||, not centered.

    Examples
    --------
    >>> unit_norm([[2.0, 0.0], [0.0, 2.0]])
    array([[1., 0.],
           [0., 1.]])
    """
    return scale_to_unit_norm(check_gram(K, name), name)


class SpectralPower:
    """Powers of a kernel matrix, from one eigendecomposition.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix.
    centered : bool, default=True
        Whether to center it first.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_positive,)
        Positive eigenvalues of H K H (of K if not centered), largest first.
    eigenvectors_ : ndarray of shape (n, n_positive)
        Their eigenvectors, one in each column.

    Notes
    -----
    O(n^3) time once and O(n^2 n_positive) for each power. Up to six matrices of n^2 numbers, which
    are checked first. Negative eigenvalues (of kernels that are not positive definite) and those
    below rounding error are dropped: small powers would amplify rounding, as (1e-16)^(1/4) = 1e-4.

    Examples
    --------
    >>> power = SpectralPower([[2.0, 0.0], [0.0, 2.0]])
    >>> power(2).round(6)
    array([[ 2., -2.],
           [-2.,  2.]])
    """

    def __init__(self, K: ArrayLike, *, centered: bool = True) -> None:
        # The centered matrix, its eigenvectors, and three that LAPACK needs.
        check_kernel_memory(*table_shape(K), n_copies=5.5)
        centered_K = center(K) if check_flag(centered, "centered") else check_gram(K, "K")
        values, vectors = eigh(centered_K)
        values, vectors = values[::-1], vectors[:, ::-1]
        # Relative to K itself: centering a constant K leaves only rounding.
        scale = max(float(np.abs(values).max()), float(np.abs(as_numbers(K, "K")).max()))
        positive = values > values.size * np.finfo(float).eps * scale
        self.eigenvalues_: NDArray[np.float64] = values[positive]
        self.eigenvectors_: NDArray[np.float64] = vectors[:, positive]

    def __call__(self, exponent: float) -> NDArray[np.float64]:
        """V w^exponent V' of the kernel H K H = V w V' (K = V w V' if not centered)."""
        exponent = check_positive(exponent, "exponent")
        largest = float(self.eigenvalues_[0]) if self.eigenvalues_.size else 1.0
        if not -300.0 < exponent * float(np.log10(largest)) < 300.0:
            raise ValueError(
                f"The largest eigenvalue {largest:.6g} to the power `exponent`={exponent:.6g} is "
                "out of the range of floats. Pass a smaller exponent, or divide the kernel matrix "
                "by its largest eigenvalue first."
            )
        with np.errstate(under="ignore"):  # small powers may underflow to 0
            half = self.eigenvectors_ * self.eigenvalues_ ** (exponent / 2)
        return product(half, half.T)


def spectral_power(K: ArrayLike, exponent: float) -> NDArray[np.float64]:
    """Centered kernel matrix with its eigenvalues raised to a power.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix; it is centered here.
    exponent : float
        Above 0. A larger value keeps only the main differences between items; a smaller one gives
        fine differences more weight. 1 gives H K H without negative eigenvalues.

    Returns
    -------
    ndarray of shape (n, n)

    See Also
    --------
    SpectralPower : Several powers for the cost of one eigendecomposition.

    Examples
    --------
    >>> spectral_power([[2.0, 0.0], [0.0, 2.0]], 1).round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return SpectralPower(K)(exponent)


def spectral_power_path(K: ArrayLike, exponents: Iterable[float]) -> Iterator[NDArray[np.float64]]:
    """Matrices of `spectral_power` for several exponents, formed one at a time.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric kernel matrix; it is centered here.
    exponents : iterable of float
        Each above 0; smaller ones give fine differences more weight.

    Yields
    ------
    ndarray of shape (n, n)

    Examples
    --------
    >>> [float(K[0, 0].round(6)) for K in spectral_power_path([[2, 0], [0, 2]], [1, 0.5])]
    [1.0, 0.707107]
    """
    power = SpectralPower(K)
    if not isinstance(exponents, Iterable) or getattr(exponents, "shape", None) == ():
        raise TypeError(f"`exponents` must be a list of numbers, got {type(exponents).__name__}.")
    for exponent in as_numbers(list(exponents), "`exponents`"):
        yield power(float(check_positive(exponent, "exponents")))
