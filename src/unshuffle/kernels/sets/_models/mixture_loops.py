"""Compiled expectation maximization; imported when needed, since numba loads slowly.

No function calls another, which would be compiled once more in each caller. Sets are columns of
X, set s from offsets[s] up to offsets[s + 1]; the last row of X is ones.
"""

import math

import numpy as np

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Indices

# Rounds of k-means before each start; it need not converge.
LLOYD_ROUNDS = 10
HALF_LOG_2_PI = 0.5 * float(np.log(2.0 * np.pi))


@compiled(error_model="numpy", fastmath={"reassoc"})
def cluster(
    X: Floats, offsets: Indices, n_components: Indices, draws: Floats, centers: Floats,
    lanes: Floats, labels: Indices, totals: Floats,
) -> None:  # fmt: skip
    """Labels by k-means++ and a few rounds of k-means; sums of squared distances in `totals`.

    `draws` (n_trials, >= m) are numbers from 0 to 1 that select the centers, `labels` is
    (n_trials, n_points_in_all), `totals` (n_sets, n_trials). Work space: `centers` (d + 2, m) and
    `lanes` (2, n) of zeros for the largest set.
    """
    d, sums, counts = len(X) - 1, centers[-2], centers[-1]
    squares, least = lanes[0], lanes[1]
    for s in range(len(n_components)):
        begin, m = offsets[s], n_components[s]
        n = offsets[s + 1] - begin
        for trial in range(len(draws)):
            before = total = np.inf
            guess = labels[trial, begin:]
            # One new center in each of the first m steps, all of them moved in the others.
            for step in range(m + LLOYD_ROUNDS - 1):
                first, stop = 0, m
                if step < m:
                    first, stop = step, step + 1
                    chosen = int(draws[trial, 0] * n)
                    if step > 0:
                        chosen, left = 0, draws[trial, step] * total
                        for t in range(n):
                            if least[t] > 0.0:
                                chosen = t
                                left -= least[t]
                                if left < 0.0:
                                    break
                    for k in range(d):
                        centers[k, step] = X[k, begin + chosen]
                else:
                    for k in range(-1, d):
                        row = X[k, begin:]
                        for c in range(m):
                            sums[c] = 0.0
                        for t in range(n):
                            sums[guess[t]] += row[t]
                        for c in range(m):
                            if k < 0:
                                counts[c] = sums[c]
                            elif counts[c] > 0.0:
                                centers[k, c] = sums[c] / counts[c]
                if first == 0:
                    for t in range(n):
                        least[t] = np.inf
                for c in range(first, stop):
                    for k in range(d):
                        row, own = X[k, begin:], centers[k, c]
                        for t in range(n):
                            gap = row[t] - own
                            squares[t] += gap * gap
                    for t in range(n):
                        if squares[t] < least[t]:
                            least[t] = squares[t]
                            guess[t] = c
                        squares[t] = 0.0
                total = 0.0
                for t in range(n):
                    total += least[t]
                if stop == m:
                    if total >= before:
                        break
                    before = total
            totals[s, trial] = total


@compiled(error_model="numpy", fastmath={"reassoc"})
def run_rounds(
    X: Floats, offsets: Indices, n_components: Indices, places: Indices, floors: Floats,
    tol: float, n_rounds: int, first_sweep: int, n_sweeps: int, part: float, shares: Floats,
    weights: Floats, means: Floats, covariances: Floats, gaps: Floats, factors: Floats,
    state: Floats,
) -> None:  # fmt: skip
    """Up to `n_rounds` rounds of expectation maximization for each set and each of its starts.

    They update `shares` (n_starts, m, n_points_in_all), of each component in each point, and
    `state` (n_sets, n_starts, 3): log-likelihood, rounds and whether it converged. Rows of
    `covariances` are lower triangles, diagonals or one variance, with entry c of row r at
    places[r] + c; `part` of each product counts, and `floors` is added.

    Sweep 0 over the components finds their moments, the last one densities: one sweep does both,
    of two that share their sums the covariance is tied, and without sweep 0 mixtures stay as they
    are. Work space: `gaps` (d, n) for the largest set, `factors` (2, p).
    """
    d = len(X) - 1
    full, tied = len(floors) > d, n_sweeps > first_sweep + 1
    triangle, column = factors[0], factors[1]
    for s in range(len(n_components)):
        begin, m = offsets[s], n_components[s]
        n = offsets[s + 1] - begin
        for start in range(len(shares)):
            reached, own_shares = state[s, start], shares[start]
            for _ in range(n_rounds):
                if reached[2] > 0.0:
                    break
                for sweep in range(first_sweep, n_sweeps):
                    for j in range(m):
                        share = shares[start, j, begin:]
                        own = covariances[s, 0 if tied else j]
                        if sweep == 0:
                            for k in range(-1, d):
                                row, total = X[k, begin:], 0.0
                                for t in range(n):
                                    total += share[t] * row[t]
                                if k < 0:
                                    # Without points, the logarithm of a weight stays finite.
                                    count = total + 1e-14 * n
                                    weights[s, j] = count / n
                                else:
                                    means[s, j, k] = total / count
                        for k in range(d):
                            row, mean, gap = X[k, begin:], means[s, j, k], gaps[k]
                            for t in range(n):
                                gap[t] = row[t] - mean
                        if sweep == 0:
                            scale = part / n if tied else part / count
                            if j == 0 or not tied:
                                for q in range(len(floors)):
                                    own[q] = floors[q]
                            for r in range(d):
                                for c in range(0 if full else r, r + 1):
                                    left, right, total = gaps[r], gaps[c], 0.0
                                    for t in range(n):
                                        total += share[t] * left[t] * right[t]
                                    own[places[r] + c] += scale * total
                        if sweep + 1 < n_sweeps:
                            continue
                        for q in range(len(floors)):
                            triangle[q] = own[q]
                        level, old = math.log(weights[s, j]) - d * HALF_LOG_2_PI, 0.0
                        # Elimination: the gaps become L^-1 (x - mean) for the covariance L D L'.
                        for k in range(d):
                            pivot, gap = triangle[places[k] + k], gaps[k]
                            level, scale = level - 0.5 * math.log(pivot), 0.5 / pivot
                            for t in range(n):
                                share[t] = old * share[t] + level - scale * gap[t] * gap[t]
                            level, old = 0.0, 1.0
                            for r in range(k + 1, d if full else 0):
                                row, rest = triangle[places[r] :], gaps[r]
                                column[r] = row[k]
                                ratio = row[k] / pivot
                                for c in range(k + 1, r + 1):
                                    row[c] -= ratio * column[c]
                                for t in range(n):
                                    rest[t] -= ratio * gap[t]
                score = 0.0
                for t in range(begin, begin + n):
                    largest = -np.inf
                    for j in range(m):
                        if own_shares[j, t] > largest:
                            largest = own_shares[j, t]
                    density = 0.0
                    for j in range(m):
                        below = own_shares[j, t] - largest
                        own_shares[j, t] = math.exp(below) if below > -45.0 else 0.0
                        density += own_shares[j, t]
                    for j in range(m):
                        own_shares[j, t] /= density
                    score += largest + math.log(density)
                # at most, not below: with tol=0 it stops when nothing is gained
                if m == 1 or score - reached[0] <= tol * n:
                    reached[2] = 1.0
                reached[0] = score
                reached[1] += 1.0
