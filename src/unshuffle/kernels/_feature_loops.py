"""Compiled products of Gaussians with few directions of spread; imported when needed."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled
from unshuffle.kernels._pair_loops import LANE_NUMBERS, factor_lanes

Array = NDArray[np.float64]


@compiled(error_model="numpy")
def log_terms(
    inner: Array,
    logs: Array,
    own_inner: Array,
    other_logs: Array,
    other_inner: Array,
    other_spreads: Array,
    terms: Array,
) -> None:
    """Logarithms of integrals of products of Gaussians with covariances I + U'U, two by two.

    For U_1 in r rows, u_1 = (I + U_1 U_1')^-1/2 U_1 and the gap m_1 - m_2 of the means, the block
    of U_1 is eliminated first: what remains is a matrix of r by r,
    S = I + U_2 U_2' - (u_1 U_2')'(u_1 U_2'), to be factored.

    Parameters
    ----------
    inner : ndarray of shape (n, r + 1, r + 1, n_others)
        Inner products of the rows of u_1 and m_1 (last) with those of U_2 and m_2 (last).
    logs : ndarray of shape (n,)
        Added to each; holds -log|I + U_1 U_1'| / 2.
    own_inner : ndarray of shape (n, r + 1)
        Inner products of m_1 with the rows of u_1 and with itself (last).
    other_logs : ndarray of shape (n_others,)
    other_inner : ndarray of shape (r + 1, n_others)
        Inner products of m_2 with the rows of U_2 and with itself (last).
    other_spreads : ndarray of shape (r, n_others)
        Squared lengths of the rows of U_2, which are orthogonal.
    terms : ndarray of shape (n, n_others)
        Takes the answer.
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
