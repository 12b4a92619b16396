"""Compiled expectation maximization; imported when needed, since numba loads slowly.

No function calls another, which would be compiled once more in each caller. Sets are columns of
X, set s from offsets[s] up to offsets[s + 1].
"""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rounds of k-means before each start; it need not converge.
LLOYD_ROUNDS = 10
FULL, TIED, DIAGONAL, SPHERICAL = 0, 1, 2, 3
LOG_2_PI = float(np.log(2.0 * np.pi))


@compiled(error_model="numpy", fastmath={"reassoc"})
def cluster(
    X: Array, offsets: Indices, n_components: Indices, draws: Array, centers: Array, lanes: Array,
    guess: Indices, labels: Indices,
) -> None:  # fmt: skip
    """Labels by k-means++ and a few rounds of k-means, the best of some trials for each start.

    `draws` (n_starts, n_trials, >= m) are numbers from 0 to 1 that select the centers, `labels`
    (n_starts, n_points_in_all). Work space: `centers` (d + 2, m), `lanes` (2, n) of zeros and
    `guess` (n,) for the largest set.
    """
    d = len(X)
    counts, sums = centers[d], centers[d + 1]
    squares, least = lanes[0], lanes[1]
    for s in range(len(n_components)):
        begin, m = offsets[s], n_components[s]
        n = offsets[s + 1] - begin
        for start in range(len(draws)):
            best = np.inf
            for draw in range(draws.shape[1]):
                before = total = np.inf
                # One new center in each of the first m steps, all of them moved in the others.
                for step in range(m + LLOYD_ROUNDS - 1):
                    first, stop = (step, step + 1) if step < m else (0, m)
                    if step < m:
                        chosen = min(int(draws[start, draw, 0] * n), n - 1)
                        if step > 0:
                            left = draws[start, draw, step] * total
                            chosen = n - 1
                            for t in range(n):
                                left -= least[t]
                                if left < 0.0 and least[t] > 0.0:
                                    chosen = t
                                    break
                            if least[chosen] == 0.0:
                                for t in range(n):
                                    if least[t] > least[chosen]:
                                        chosen = t
                        for k in range(d):
                            centers[k, step] = X[k, begin + chosen]
                    else:
                        for c in range(m):
                            counts[c] = 0.0
                        for t in range(n):
                            counts[guess[t]] += 1.0
                        for k in range(d):
                            for c in range(m):
                                sums[c] = 0.0
                            row = X[k, begin:]
                            for t in range(n):
                                sums[guess[t]] += row[t]
                            for c in range(m):
                                if counts[c] > 0.0:
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
                if total < best:
                    best = total
                    found = labels[start, begin:]
                    for t in range(n):
                        found[t] = guess[t]


@compiled(error_model="numpy", fastmath={"reassoc"})
def run_rounds(
    X: Array, offsets: Indices, n_components: Indices, kind: int, floor: float, tol: float,
    stop: int, n_rounds: int, fixed: bool, shares: Array, weights: Array, means: Array,
    covariances: Array, gaps: Array, factors: Array, state: Array,
) -> None:  # fmt: skip
    """Up to `n_rounds` rounds of expectation maximization for each set and each of its starts.

    They update `shares` (n_starts, m, n_points_in_all), of each component in each point, and end
    with round `stop`. Rows of `covariances` are lower triangles or diagonals; those of tied
    components are in the first. `floor` is added to all variances. `state`
    (n_sets, n_starts, 3) holds the log-likelihood, the rounds done and whether it converged: at
    first -inf, 0, 0. With `fixed`, weights, means and covariances stay as they are. Work space:
    `gaps` (d, n) for the largest set and `factors` (2, as long as a covariance).
    """
    d, tied, spherical = len(X), kind == TIED, kind == SPHERICAL
    full = kind <= TIED
    lower, pivots = factors[0], factors[1]
    for s in range(len(n_components)):
        begin, m = offsets[s], n_components[s]
        n = offsets[s + 1] - begin
        for start in range(len(shares)):
            score, done = state[s, start, 0], int(state[s, start, 1])
            converged = state[s, start, 2]
            last = min(stop, done + n_rounds)
            while done < last and converged == 0.0:
                # Shares to moments for visits below m, to densities for the last m.
                for visit in range(m if fixed else 0, 2 * m if tied or fixed else m):
                    j = visit % m
                    share, own = shares[start, j, begin:], covariances[s, 0 if tied else j]
                    if visit < m:
                        # Without points, a component keeps a weight whose logarithm is finite.
                        count = 1e-14 * n
                        for t in range(n):
                            count += share[t]
                        weights[s, j] = count / n
                        for k in range(d):
                            row, mean = X[k, begin:], 0.0
                            for t in range(n):
                                mean += share[t] * row[t]
                            means[s, j, k] = mean / count
                    for k in range(d):
                        row, mean, gap = X[k, begin:], means[s, j, k], gaps[k]
                        for t in range(n):
                            gap[t] = row[t] - mean
                    if visit < m:
                        place, trace = 0, 0.0
                        for r in range(d):
                            for c in range(0 if full else r, r + 1):
                                left, right, total = gaps[r], gaps[c], 0.0
                                for t in range(n):
                                    total += share[t] * left[t] * right[t]
                                total /= n if tied else count
                                trace += total
                                if tied and j > 0:
                                    total += own[place]
                                elif r == c:
                                    total += floor
                                own[place] = total
                                place += 1
                        if spherical:
                            for k in range(d):
                                own[k] = trace / d + floor
                        if tied:
                            continue
                    level = np.log(weights[s, j]) - 0.5 * d * LOG_2_PI
                    for t in range(n):
                        share[t] = level
                    # LDL' of the covariance; the gaps become L^-1 (x - mean).
                    for r in range(d):
                        place = r * (r + 1) // 2 if full else 0
                        for c in range(0 if full else r, r + 1):
                            above, value = c * (c + 1) // 2, own[place + c]
                            for k in range(c if full else 0):
                                value -= pivots[k] * lower[place + k] * lower[above + k]
                            if c < r:
                                lower[place + c] = value / pivots[c]
                            else:
                                pivots[r] = value
                        gap = gaps[r]
                        # Two at a time: reading and writing takes longer than the sums.
                        for c in range(0, r if full else 0, 2):
                            left, right, x = gaps[c], gaps[c], lower[place + c]
                            y = 0.0
                            if c + 1 < r:
                                right, y = gaps[c + 1], lower[place + c + 1]
                            for t in range(n):
                                gap[t] -= x * left[t] + y * right[t]
                        level, scale = 0.5 * np.log(pivots[r]), 0.5 / pivots[r]
                        for t in range(n):
                            share[t] -= level + scale * gap[t] * gap[t]
                before, score = score, 0.0
                some = shares[start]
                for t in range(begin, begin + n):
                    largest = -np.inf
                    for j in range(m):
                        largest = max(largest, some[j, t])
                    density = 0.0
                    for j in range(m):
                        gap_below = some[j, t] - largest
                        some[j, t] = np.exp(gap_below) if gap_below > -45.0 else 0.0
                        density += some[j, t]
                    for j in range(m):
                        some[j, t] /= density
                    score += largest + np.log(density)
                done += 1
                # at most, not below: with tol=0 it stops when nothing is gained
                if m == 1 or score - before <= tol * n:
                    converged = 1.0
            state[s, start, 0], state[s, start, 1] = score, done
            state[s, start, 2] = converged
