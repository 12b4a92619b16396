"""Compiled integrals of products of mixtures; imported when needed, since numba loads slowly."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
# Numbers of matrices factored side by side: enough for vector instructions, small enough to stay
# in the nearest cache.
LANE_NUMBERS = 2048
# One logarithm is taken for the product of this many pivots. For standardized points none of them
# is above 1e38 or below 1e-38.
PIVOTS = 8
# Terms smaller than the largest by exp(-45) = 3e-20 do not change a sum of doubles.
NEGLIGIBLE = -45.0


@compiled(error_model="numpy")
def factor_lanes(A: Array, z: Array, inverse: Array, ratio: Array, log_det: Array, n: int) -> None:
    """LDL' of n matrices side by side, and z'A^-1 z of a vector with each.

    The columns of A hold lower triangles row by row, those of z the vectors; the last row of z
    receives z'A^-1 z, `log_det` the log determinants. A and z are overwritten; `inverse` and
    `ratio` are work space.
    """
    d = z.shape[0] - 1
    form, product = z[d], ratio
    for t in range(n):
        form[t] = 0.0
        log_det[t] = 0.0
    for k in range(d):
        pivot, head = A[k * (k + 1) // 2 + k], z[k]
        for t in range(n):
            inverse[t] = 1.0 / pivot[t]
            form[t] += head[t] * head[t] * inverse[t]
        for r in range(k + 1, d):
            column, rest = A[r * (r + 1) // 2 + k], z[r]
            for t in range(n):
                ratio[t] = column[t] * inverse[t]
                rest[t] -= ratio[t] * head[t]
            for c in range(k + 1, r + 1):
                target, source = A[r * (r + 1) // 2 + c], A[c * (c + 1) // 2 + k]
                for t in range(n):
                    target[t] -= ratio[t] * source[t]
    for first in range(0, d, PIVOTS):
        for t in range(n):
            product[t] = 1.0
        for k in range(first, min(first + PIVOTS, d)):
            pivot = A[k * (k + 1) // 2 + k]
            for t in range(n):
                product[t] *= pivot[t]
        for t in range(n):
            log_det[t] += np.log(product[t])


@compiled(error_model="numpy")
def divide_lanes(A: Array, z: Array, product: Array, log_det: Array, n: int) -> None:
    """As `factor_lanes`, for diagonal matrices of shape (d, n_lanes)."""
    d = z.shape[0] - 1
    form = z[d]
    for t in range(n):
        form[t] = 0.0
        log_det[t] = 0.0
    for first in range(0, d, PIVOTS):
        for t in range(n):
            product[t] = 1.0
        for k in range(first, min(first + PIVOTS, d)):
            pivot, head = A[k], z[k]
            for t in range(n):
                form[t] += head[t] * head[t] / pivot[t]
                product[t] *= pivot[t]
        for t in range(n):
            log_det[t] += np.log(product[t])


@compiled(error_model="numpy")
def log_sum(terms: Array, n_rows: int, start: int, stop: int) -> float:
    """Logarithm of the sum of the exponentials of terms[:n_rows, start:stop]."""
    largest = -np.inf
    for i in range(n_rows):
        for t in range(start, stop):
            value = terms[i, t]
            # A singular covariance gives NaN, which must reach the caller.
            if value > largest or value != value:
                largest = value
    if largest == -np.inf:
        return largest
    total = 0.0
    for i in range(n_rows):
        for t in range(start, stop):
            gap = terms[i, t] - largest
            if gap > NEGLIGIBLE:
                total += np.exp(gap)
    return float(largest + np.log(total))


@compiled(error_model="numpy")
def log_sums(terms: Array, offsets: Indices, other_offsets: Indices, out: Array) -> None:
    """Logarithms of sums over the components of two sets, for all pairs of sets."""
    for s in range(len(offsets) - 1):
        rows = terms[offsets[s] : offsets[s + 1]]
        for o in range(len(other_offsets) - 1):
            out[s, o] = log_sum(rows, len(rows), other_offsets[o], other_offsets[o + 1])


@compiled(error_model="numpy")
def log_products(
    logs: Array, means: Array, covariances: Array, offsets: Indices, other_logs: Array,
    other_means: Array, other_covariances: Array, other_offsets: Indices, above: bool,
    start: int, stop: int, out: Array,
) -> None:  # fmt: skip
    """Logarithms of sums over components of exp(a_i + a_j) |C_i + C_j|^-1/2 exp(-q_ij / 2).

    q_ij is the squared distance of two means in the metric of C_i + C_j. With log weights for a_i
    these are the integrals of the products of two mixtures, up to a power of 2 pi. Components are
    columns, set by set: means (d, n_components), covariances as lower triangles
    (d (d + 1) / 2, n_components) or diagonals (d, n_components). Rows `start` to `stop` of `out`
    are filled; with `above`, only from the diagonal on, and mirrored.
    """
    d, n_numbers = means.shape[0], covariances.shape[0]
    n_others, n_lanes = len(other_offsets) - 1, len(other_logs)
    width = max(16, LANE_NUMBERS // n_numbers)
    A, z = np.empty((n_numbers, width)), np.empty((d + 1, width))
    inverse, ratio, log_det = np.empty(width), np.empty(width), np.empty(width)
    most = 0
    for s in range(start, stop):
        most = max(most, offsets[s + 1] - offsets[s])
    terms = np.empty((most, n_lanes))
    for s in range(start, stop):
        first_set = s if above else 0
        n_rows = offsets[s + 1] - offsets[s]
        for lane_start in range(other_offsets[first_set], n_lanes, width):
            n = min(width, n_lanes - lane_start)
            lanes = slice(lane_start, lane_start + n)
            for row in range(n_rows):
                i = offsets[s] + row
                for k in range(n_numbers):
                    own, lane = covariances[k, i], A[k]
                    other = other_covariances[k, lanes]
                    for t in range(n):
                        lane[t] = own + other[t]
                for k in range(d):
                    own, lane, other = means[k, i], z[k], other_means[k, lanes]
                    for t in range(n):
                        lane[t] = own - other[t]
                if n_numbers > d:
                    factor_lanes(A, z, inverse, ratio, log_det, n)
                else:
                    divide_lanes(A, z, ratio, log_det, n)
                own, form = logs[i], z[d]
                for t in range(n):
                    terms[row, lane_start + t] = (
                        own + other_logs[lane_start + t] - 0.5 * (log_det[t] + form[t])
                    )
        for o in range(first_set, n_others):
            out[s, o] = log_sum(terms, n_rows, other_offsets[o], other_offsets[o + 1])
            if above:
                out[o, s] = out[s, o]


@compiled(error_model="numpy")
def log_terms(
    inner: Array, logs: Array, own_inner: Array, other_logs: Array, other_inner: Array,
    other_spreads: Array, terms: Array,
) -> None:  # fmt: skip
    """Logarithms of integrals of products of Gaussians with covariances I + U'U, two by two.

    For U_1 with r rows, u_1 = (I + U_1 U_1')^-1/2 U_1 and the gap m_1 - m_2 of the means, the
    block of U_1 is eliminated first. What remains is the r by r matrix
    S = I + U_2 U_2' - (u_1 U_2')'(u_1 U_2'), to be factored. `inner` (n, r + 1, r + 1, n_others)
    holds inner products of the rows of u_1 and m_1 (last) with those of U_2 and m_2 (last),
    `own_inner` (n, r + 1) those of m_1 with u_1 and itself, `other_inner` (r + 1, n_others) those
    of m_2 with U_2 and itself, `other_spreads` the squared lengths of the orthogonal rows of U_2,
    and `logs` -log|I + U_1 U_1'| / 2.
    """
    r, n_others = other_spreads.shape
    width = max(16, LANE_NUMBERS // (r * (r + 1) // 2))
    S, z = np.empty((r * (r + 1) // 2, width)), np.empty((r + 1, width))
    inverse, ratio, log_det = np.empty(width), np.empty(width), np.empty(width)
    explained = np.empty(width)
    for i in range(len(inner)):
        for start in range(0, n_others, width):
            n = min(width, n_others - start)
            lanes = slice(start, start + n)
            crossed = inner[i, r]
            for b in range(r):
                lane, product, own = z[b], crossed[b, lanes], other_inner[b, lanes]
                for t in range(n):
                    lane[t] = product[t] - own[t]
                for c in range(b + 1):
                    S[b * (b + 1) // 2 + c, :n] = 0.0
                diagonal, spread = S[b * (b + 1) // 2 + b], other_spreads[b, lanes]
                for t in range(n):
                    diagonal[t] = 1.0 + spread[t]
            explained[:n] = 0.0
            for a in range(r):
                rows, own_gap = inner[i, a], own_inner[i, a]
                product = rows[r, lanes]
                for t in range(n):
                    ratio[t] = own_gap - product[t]
                    explained[t] += ratio[t] * ratio[t]
                for b in range(r):
                    left, lane = rows[b, lanes], z[b]
                    for t in range(n):
                        lane[t] -= left[t] * ratio[t]
                    for c in range(b + 1):
                        target, right = S[b * (b + 1) // 2 + c], rows[c, lanes]
                        for t in range(n):
                            target[t] -= left[t] * right[t]
            factor_lanes(S, z, inverse, ratio, log_det, n)
            form, product, own = z[r], crossed[r, lanes], other_inner[r, lanes]
            for t in range(n):
                distance = own_inner[i, r] + own[t] - 2.0 * product[t]
                distance -= explained[t] + form[t]
                terms[i, start + t] = (
                    logs[i] + other_logs[start + t] - 0.5 * (log_det[t] + max(distance, 0.0))
                )
