"""Compiled integrals of products of mixtures; imported when needed, since numba loads slowly."""

import numpy as np

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Indices

# Numbers of matrices factored side by side: enough for vector instructions, small enough to stay
# in the nearest cache.
LANE_NUMBERS = 4096
# One logarithm is taken for the product of this many pivots. For standardized points none of them
# is above 1e38 or below 1e-38.
PIVOTS = 8
# Terms smaller than the largest by exp(-45) = 3e-20 do not change a sum of doubles.
NEGLIGIBLE = -45.0


@compiled(error_model="numpy")
def factor_lanes(
    A: Floats, z: Floats, inverse: Floats, ratio: Floats, log_det: Floats, n: int
) -> None:
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
def log_sums(
    terms: Floats, offsets: Indices, other_offsets: Indices, firsts: Indices, lasts: Indices,
    out: Floats,
) -> None:  # fmt: skip
    """Logarithms of the sums of exponentials over the components of two sets.

    The components of the set in row s begin at row offsets[s] of `terms`; the row is filled from
    set firsts[s] to before lasts[s].
    """
    for s in range(len(out)):
        for o in range(firsts[s], lasts[s]):
            largest = -np.inf
            for i in range(offsets[s], offsets[s + 1]):
                for t in range(other_offsets[o], other_offsets[o + 1]):
                    value = terms[i, t]
                    # A singular covariance gives NaN, which must reach the caller.
                    if value > largest or value != value:
                        largest = value
            total = 0.0
            for i in range(offsets[s], offsets[s + 1]):
                for t in range(other_offsets[o], other_offsets[o + 1]):
                    gap = terms[i, t] - largest
                    if gap > NEGLIGIBLE:
                        total += np.exp(gap)
            out[s, o] = largest + np.log(total)


@compiled(error_model="numpy")
def log_terms(
    table: Floats, other: Floats, d: int, start: int, firsts: Indices, lasts: Indices,
    lanes: Floats, terms: Floats,
) -> None:  # fmt: skip
    """a_i + a_j - log|C_i + C_j| / 2 - q_ij / 2, q_ij the squared distance of two means.

    The distance is in the metric of C_i + C_j. With log weights for a_i these are logarithms of
    integrals of products of Gaussians, up to a power of 2 pi. Columns of `table` and `other` hold
    the lower triangles of [[C, mean], [mean', 2 a]], row by row, the means of `other` negated;
    without the zeros in front of the diagonal if C is diagonal. LDL' of the sum of two columns
    ends with the pivot 2 a_i + 2 a_j - q_ij.

    Row i of `terms` is that of column start + i of `table`, filled from column
    firsts[start + i] to before lasts[start + i]. `lanes` is work space for many sums side by
    side: L, with inverse pivots on its diagonal, then one row of L D, the product of some pivots
    and the log determinant.
    """
    n_numbers, width = len(table), lanes.shape[1]
    full = n_numbers > 2 * d + 1
    row = lanes[n_numbers:]
    product, log_det = row[d + 1], row[d + 2]
    for i in range(start, start + len(terms)):
        for begin in range(firsts[i], lasts[i], width):
            n = lasts[i] - begin
            if n > width:
                n = width
            for t in range(n):
                product[t] = 1.0
                log_det[t] = 0.0
            for r in range(d + 1):
                place = r * (r + 1) // 2 if full else d * (r // d)
                first, pivot = 0 if full or r == d else r, row[r]
                for c in range(first, r + 1):
                    value, own, added = row[c], table[place + c, i], other[place + c, begin:]
                    for t in range(n):
                        value[t] = own + added[t]
                for c in range(first, r):
                    above = c * (c + 1) // 2 if full else 0
                    value, ratio, inverse = row[c], lanes[place + c], lanes[above + c]
                    for k in range(c if full else 0):
                        left, right = row[k], lanes[above + k]
                        for t in range(n):
                            value[t] -= left[t] * right[t]
                    for t in range(n):
                        ratio[t] = value[t] * inverse[t]
                        pivot[t] -= value[t] * ratio[t]
                if r == d:
                    break
                inverse = lanes[place + r]
                for t in range(n):
                    inverse[t] = 1.0 / pivot[t]
                    product[t] *= pivot[t]
                if r + 1 == d or (r + 1) % PIVOTS == 0:
                    for t in range(n):
                        log_det[t] += np.log(product[t])
                        product[t] = 1.0
            pivot, found = row[d], terms[i - start, begin:]
            for t in range(n):
                found[t] = 0.5 * (pivot[t] - log_det[t])


@compiled(error_model="numpy")
def low_rank_log_terms(
    inner: Floats, logs: Floats, own_inner: Floats, other_logs: Floats, other_inner: Floats,
    other_spreads: Floats, terms: Floats,
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
