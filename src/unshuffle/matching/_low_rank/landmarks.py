"""Features of the items of a collection, from their similarities to a sample of landmarks.

K_ll = E S E' is the kernel between l landmarks, and K_nl holds the similarities of all n items to
them. The rows of K_nl E S^(-1/2) are features whose inner products approximate the kernel
(Williams, Seeger, "Using the Nystrom method to speed up kernel machines", NIPS 13, 2001). They are
computed for a block of items at a time, so that K_nl is never held.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.arrays import (
    check_magnitude,
    check_n_items,
    is_real_array,
    middle,
)
from unshuffle._core.distances import (
    WIDTH_SAMPLE,
    as_float64,
    exponential,
    exponential_of,
    inner_products,
    median_gamma,
    mirror_upper,
    sampled_gamma,
    squared_distances,
)
from unshuffle._core.grams import KERNELS, check_gram
from unshuffle._core.kernel_features import call_kernel, check_kernel_block, kernel_name
from unshuffle._core.neighbors import neighbor_widths, paths_from
from unshuffle._core.parameters import check_option, check_positive
from unshuffle._run.device import in_double, namespace, to_host
from unshuffle._run.types import Floats
from unshuffle.kernels import center, gram_matrix, text_features
from unshuffle.matching._dense.pair import check_unequal
from unshuffle.matching._low_rank.blocks import (
    LARGEST,
    Rows,
    RowTable,
    add_parts,
    blocks,
    check_rows,
    draw,
    draw_unequal,
    eigh_on,
    on_device,
)

# Eigenvalues of the landmarks' kernel below this share of the largest are noise in single
# precision.
NEGLIGIBLE = 1e-6
# Squared distances below this share of the largest length have lost too many digits.
CANCELED = 1e-6
# Beyond this squared distance from the median, in units of the kernel's width, single precision
# loses more than five digits of the similarity of two close items.
FAR = 64.0
# Other widths than the median by up to this factor leave enough digits to single precision.
ORDINARY_WIDTH = 64.0
# Items per landmark that choose the components; all items then decide their variances. Those that
# 32,768 of 200,000 items chose held at least .9995 of the variance of the best.
PER_LANDMARK = 32
# Directions of wide tables: more than needed by this many, from so many passes over so many rows.
SPARE_DIRECTIONS, N_PASSES, MOST_ROWS = 32, 5, 2**17
# Neighbors of the graph of "geodesic"; more take longer and cut across gaps.
MOST_NEIGHBORS = 50
# Neighbor whose distance is the width of an item in "local".
LOCAL_NEIGHBOR = 10


class Effort(NamedTuple):
    """How much is computed, and by how many threads."""

    rank: int  # most components
    n_landmarks: int
    n_jobs: int | None
    device: Any = None  # that computes what it can; None is the CPU


@dataclass(frozen=True, eq=False)
class Features:
    """Features of items, computed for some of them at a time: block(rows) @ basis."""

    n_items: int
    block: Callable[[Rows], Any]  # (b, l) similarities to landmarks, or vectors, maybe sparse
    width: int  # numbers in a row of a block
    basis: Floats | None = None  # (l, q); None is the identity
    unit: float = 1.0  # factor of the inner products
    n_chosen: int | None = None  # items of the sample that chooses components; None is all
    single: bool = True  # whether single precision holds enough digits of a block
    threads: bool = True  # whether blocks may be computed in several threads
    table: RowTable | None = None  # vectors whose distances the kernel depends on, if any
    spread: float | None = None  # median squared distance of these, if known


def features_of(
    collection: Any, kernel: Any, gamma: Any, *, name: str, effort: Effort
) -> Features:
    """Features of a collection by one kernel."""
    n_landmarks = effort.n_landmarks
    if callable(kernel):
        return _called_features(collection, kernel, name, effort)
    check_option(kernel, "kernel", KERNELS)
    if gamma is not None:
        gamma = check_positive(gamma, "gamma")
    if kernel == "precomputed":
        return _precomputed_features(collection, name, effort)
    if kernel == "text":
        texts = text_features(collection, name=name)
        table = RowTable.of(texts, most_columns=n_landmarks, device=effort.device)
        return linear_features(table, name, effort)
    rows = check_rows(collection, kernel, name)
    table = RowTable.of(rows, most_columns=n_landmarks, device=effort.device)
    if kernel == "linear":
        if not sparse.issparse(rows):
            table.check_outliers(name, effort.n_jobs)
        return linear_features(table, name, effort)
    if kernel == "geodesic":
        return _geodesic_features(table, gamma, name, effort)
    if kernel == "local":
        return _local_features(table, name, effort)
    sample = rows[draw_unequal(rows, WIDTH_SAMPLE)]
    median = median_gamma_on(effort.device, sample, kernel, name=name)
    width = median if gamma is None else gamma
    ordinary = median / ORDINARY_WIDTH < width < ORDINARY_WIDTH * median
    if kernel == "rbf" and ordinary and not sparse.issparse(rows):
        spread = float(np.ldexp(1.0 / median, -2 * table.exponent))
        return replace(_rbf_features(table, width, name, effort), spread=spread)
    landmarks = as_float64(rows[draw_unequal(rows, n_landmarks)])

    def block(some: Rows) -> Floats:
        return exponential(kernel, rows[some], landmarks, width)

    K = exponential(kernel, landmarks, gamma=width)
    found = _from_landmarks(rows.shape[0], block, K, name, effort)
    return replace(found, single=False, table=table if kernel == "rbf" else None)


def median_gamma_on(device: Any, sample: Any, kernel: str = "rbf", *, name: str) -> float:
    """`sampled_gamma`, of dense rows and "rbf" computed on a device."""
    if device is None or kernel != "rbf" or sparse.issparse(sample):
        return sampled_gamma(sample, kernel, name=name)
    points = on_device(as_float64(sample) - middle(as_float64(sample)), device, np.float64)
    xp = namespace(points)
    squares = (points**2).sum(axis=1)
    apart = squares[:, None] + squares - 2.0 * points @ points.T
    rows, columns = xp.triu_indices(*apart.shape, offset=1, device=apart.device)
    above = apart[rows, columns]
    median = float(above.median())
    # What was lost to cancellation, or is zero as often as not, is left to the careful way.
    if not median > CANCELED * float(squares.max()):
        return sampled_gamma(sample, kernel, name=name)
    return 1.0 / median


def linear_features(table: RowTable, name: str, effort: Effort) -> Features:
    """The vectors themselves, or their main directions if they are wider than `n_landmarks`."""
    n_items, n_columns = table.rows.shape
    if n_columns > effort.n_landmarks:
        return _wide_features(table, name, effort)
    return Features(n_items, table.read_single, n_columns, unit=4.0**table.exponent)


def _rbf_features(table: RowTable, gamma: float, name: str, effort: Effort) -> Features:
    """Similarities exp(-gamma d^2) to landmarks, in single precision."""
    n_items = table.rows.shape[0]
    gamma = float(np.ldexp(gamma, 2 * table.exponent))
    chosen = draw_unequal(table.rows, effort.n_landmarks)
    exact = table.read(chosen)
    landmarks = np.clip(exact, -LARGEST, LARGEST).astype(np.float32)
    norms = np.einsum("ij,ij->i", landmarks, landmarks)
    # One product gives -gamma d^2, with |x|^2 and |y|^2 in its last two columns.
    columns = [2 * gamma * landmarks, -gamma * norms, np.full(len(norms), -gamma)]
    scaled = on_device(np.ascontiguousarray(np.column_stack(columns).T), effort.device)

    def block(rows: Rows) -> Any:
        near = table.read_single(rows)
        xp = namespace(near)
        norms = xp.einsum("ij,ij->i", near, near)
        K = xp.column_stack([near, xp.ones_like(norms), norms]) @ scaled
        xp.clip(K, None, 0.0, out=K)
        xp.exp(K, out=K)
        far = np.flatnonzero(to_host(gamma * norms > FAR))
        if far.size:
            similar = exponential("rbf", table.read(rows)[far], exact, gamma)
            K[far] = on_device(similar, effort.device)
        return K

    K = _rbf_on(effort.device, exact, gamma)
    return replace(_from_landmarks(n_items, block, K, name, effort), table=table)


def _rbf_on(device: Any, points: Floats, gamma: float) -> Floats:
    """Kernel matrix of some points, computed on a device in double precision."""
    if device is None:
        return exponential("rbf", points, gamma=gamma)
    points = on_device(points, device, np.float64)
    xp = namespace(points)
    squares = (points**2).sum(axis=1)
    K = xp.exp(-gamma * xp.clip(squares[:, None] + squares - 2.0 * points @ points.T, 0.0, None))
    return in_double(0.5 * (K + K.T))


def _from_landmarks(
    n_items: int,
    block: Callable[[Rows], Any],
    K: Floats,
    name: str,
    effort: Effort,
) -> Features:
    """Features from similarities to landmarks and the kernel K between the landmarks."""
    check_unequal(K, name)
    values, vectors = _eigenvectors(K, n_items, effort.device)
    # Columns of the basis sum to zero, so that a constant added to the kernel changes nothing.
    basis = vectors / np.sqrt(values)
    return Features(n_items, block, len(K), basis, n_chosen=PER_LANDMARK * effort.n_landmarks)


def _eigenvectors(K: Floats, n_items: int, device: Any) -> tuple[Floats, Floats]:
    """Eigenvalues of the centered K that are not noise, and their eigenvectors."""
    values, vectors = eigh_on(device, center(K))
    least = NEGLIGIBLE * max(float(values[-1]), 0.0)
    if n_items > len(K):
        # Of a kernel that is not positive definite, positive eigenvalues as small as the negative
        # ones do not hold for other items, and the division by their roots would blow that up.
        least = max(least, -float(values[0]))
    return values[values > least], vectors[:, values > least]


def _wide_features(table: RowTable, name: str, effort: Effort) -> Features:
    """Vectors in the main directions of a table with many columns."""
    n_items, n_columns = table.rows.shape
    landmarks = to_host(table.read_single(draw_unequal(table.rows, effort.n_landmarks)))
    K = inner_products(landmarks)
    check_unequal(K, name)
    values, vectors = _eigenvectors(K, n_items, effort.device)
    basis = np.asarray(landmarks.T @ (vectors / np.sqrt(values)))
    if n_items > effort.n_landmarks:
        # The landmarks span the main directions roughly; powers of the covariance of many more
        # rows make them precise.
        basis = basis[:, -(effort.rank + SPARE_DIRECTIONS) :]
        for _ in range(N_PASSES):
            basis = np.linalg.qr(_times_covariance(table, basis, effort))[0]
    width = basis.shape[1] if table.is_sparse else n_columns
    unit = 4.0**table.exponent
    return Features(n_items, table.read_single, width, basis, unit=unit, n_chosen=MOST_ROWS)


def _times_covariance(table: RowTable, basis: Floats, effort: Effort) -> Floats:
    """Covariance of a sample of the rows, times `basis`."""
    sample = draw(table.rows.shape[0], MOST_ROWS)
    single = on_device(basis, None if table.is_sparse else effort.device)

    def multiply(rows: slice) -> tuple[Floats, Floats]:
        some = table.read_single(sample[rows])
        return in_double(some.sum(axis=0)).ravel(), in_double(some.T @ (some @ single))

    parts = blocks(len(sample), max(basis.shape) if not table.is_sparse else basis.shape[1])
    total, products = add_parts(multiply, parts, effort.n_jobs)
    mean = total / len(sample)
    return products / len(sample) - np.outer(mean, mean @ basis)


def _precomputed_features(gram: Any, name: str, effort: Effort) -> Features:
    """Similarities from a kernel matrix, of which only the rows of landmarks are read."""
    square = is_real_array(gram) and gram.ndim == 2 and gram.shape[0] == gram.shape[1] > 0
    K = gram if square else check_gram(gram, name)
    n_items = K.shape[0]
    check_n_items(n_items, name)
    if K.flags.f_contiguous:
        K = K.T  # symmetric, and now its rows are contiguous
    chosen = draw(n_items, effort.n_landmarks)
    largest = _check_finite_rows(K, chosen, name)
    between = check_gram(K[np.ix_(chosen, chosen)], name, chosen)

    def block(rows: Rows) -> Floats:
        part = K[chosen, rows] if isinstance(rows, slice) else K[np.ix_(chosen, rows)]
        return as_float64(part.T)

    return _from_numbers(n_items, block, between, name, effort, largest)


def _check_finite_rows(K: NDArray[Any], chosen: NDArray[np.intp], name: str) -> float:
    """Largest size of the entries in some rows of a kernel matrix, which must be finite."""
    largest, bad = 0.0, np.zeros(len(K), dtype=bool)
    kinds = set()
    for item in chosen:
        row = np.abs(np.asarray(K[item], dtype=np.float64))
        size = float(row.max())
        if np.isfinite(size):
            largest = max(largest, size)
        else:
            kinds.add("NaN" if np.isnan(size) else "infinity")
            bad |= ~np.isfinite(row)
    if kinds:
        rows = np.flatnonzero(bad)
        raise ValueError(
            f"Input {name} contains {max(kinds)} (in {rows.size} of {len(K)} rows, the first is "
            f"row {rows[0]}). Drop these rows or fill in their values first."
        )
    check_magnitude(np.array([largest]), name)
    return largest


def _called_features(X: Any, kernel: Callable[..., Any], name: str, effort: Effort) -> Features:
    """Similarities by a user's function."""
    n_landmarks = effort.n_landmarks
    rows = check_rows(X, kernel, name)
    n_items = rows.shape[0]
    if n_items > n_landmarks == rows.shape[1]:
        n_landmarks -= 1  # so that x @ y, meant for two rows, fails for two tables
    landmarks = as_float64(rows[draw_unequal(rows, n_landmarks)])
    K = gram_matrix(landmarks, kernel, name=name)
    if n_items > n_landmarks:
        _check_takes_parts(kernel, as_float64(rows[:2]), landmarks, name)

    def block(some: Rows) -> Floats:
        if n_items <= n_landmarks:
            return K[some]
        part = call_kernel(kernel, as_float64(rows[some]), landmarks, name=name)
        return check_kernel_block(part, kernel)

    largest = float(np.abs(K).max())
    features = _from_numbers(n_items, block, K, name, effort, largest)
    return replace(features, threads=False)


def _check_takes_parts(kernel: Any, some: Any, landmarks: Any, name: str) -> None:
    """Refuse a function that compares only the items of one collection with each other."""
    try:
        call_kernel(kernel, some, landmarks, name=name)
    except ValueError as error:
        raise ValueError(
            f"The kernel {kernel_name(kernel)} fails for two different parts of {name}, which a "
            f"collection of more than {len(landmarks):,} items is compared by: {error} Pass "
            'kernel="geodesic" or "local" for those kernels, a function of any two tables, or '
            'method="refined", which compares all items at once.'
        ) from error


def _from_numbers(
    n_items: int,
    block: Callable[[Rows], Floats],
    K: Floats,
    name: str,
    effort: Effort,
    largest: float,
) -> Features:
    """Features from similarities of any size."""
    typical = float(np.median(K))
    exponent = int(np.frexp(largest)[1])

    def scaled(rows: Rows) -> Floats:
        return np.ldexp(block(rows) - typical, -exponent)

    found = _from_landmarks(n_items, scaled, np.ldexp(K, -exponent), name, effort)
    return replace(found, unit=2.0**exponent, single=False)


def _geodesic_features(table: RowTable, gamma: Any, name: str, effort: Effort) -> Features:
    """Similarities by the shortest paths to landmarks in a graph of neighbors."""
    n_items = table.rows.shape[0]
    n_neighbors = min(max(5, round(n_items**0.5)), MOST_NEIGHBORS, n_items - 1)
    chosen = draw_unequal(table.rows, effort.n_landmarks)
    paths = paths_from(table.read_all(effort.n_jobs), chosen, n_neighbors)
    squares = mirror_upper(paths[:, chosen].astype(np.float64) ** 2)
    if gamma is None:
        width = median_gamma(squares, name=name)
    else:
        width = float(np.ldexp(gamma, 2 * table.exponent))

    def block(some: Rows) -> Floats:
        return exponential_of(paths[:, some].T.astype(np.float64) ** 2, width)

    K = exponential_of(squares, width)
    return replace(_from_landmarks(n_items, block, K, name, effort), single=False)


def _local_features(table: RowTable, name: str, effort: Effort) -> Features:
    """Similarities exp(-d^2 / (s t)), with s and t the distances of both items to a neighbor."""
    n_items = table.rows.shape[0]
    points = table.read_all(effort.n_jobs)
    widths = neighbor_widths(points, min(LOCAL_NEIGHBOR, n_items - 1))
    chosen = draw_unequal(points, effort.n_landmarks)
    landmarks = as_float64(points[chosen])

    def block(some: Rows) -> Floats:
        D = squared_distances(points[some], landmarks)
        D /= widths[some][:, None]
        D /= widths[chosen]
        return exponential_of(D, 1.0)

    D = squared_distances(landmarks)
    D /= np.outer(widths[chosen], widths[chosen])
    K = exponential_of(D, 1.0)
    return replace(_from_landmarks(n_items, block, K, name, effort), single=False)
