"""Compiled expectation maximization; imported when needed, since numba loads slowly."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rounds of k-means before each start; it need not converge.
LLOYD_ROUNDS = 10
FULL, TIED, DIAGONAL, SPHERICAL = 0, 1, 2, 3
# Rounds after which starts are compared.
SHORT_ROUNDS = 5
LOG_2_PI = float(np.log(2.0 * np.pi))


@compiled(error_model="numpy")
def squares_from(X: Array, center: Array, out: Array) -> None:
    """Squared distances of the columns of X from a center."""
    out[:] = 0.0
    for k in range(X.shape[0]):
        row, own = X[k], center[k]
        for t in range(X.shape[1]):
            gap = row[t] - own
            out[t] += gap * gap


@compiled(error_model="numpy")
def spread_centers(X: Array, draws: Array, squares: Array, nearest: Array) -> Array:
    """Centers by k-means++: each point drawn by its squared distance from those before."""
    d, n = X.shape
    n_components = len(draws)
    centers = np.empty((n_components, d))
    chosen = min(int(draws[0] * n), n - 1)
    nearest[:] = np.inf
    for m in range(n_components):
        if m > 0:
            total = nearest.sum()
            left = draws[m] * total
            chosen = n - 1
            for t in range(n):
                left -= nearest[t]
                if left < 0.0 and nearest[t] > 0.0:
                    chosen = t
                    break
            if nearest[chosen] == 0.0:
                chosen = int(nearest.argmax())
        for k in range(d):
            centers[m, k] = X[k, chosen]
        squares_from(X, centers[m], squares)
        for t in range(n):
            nearest[t] = min(nearest[t], squares[t])
    return centers


@compiled(error_model="numpy")
def assign_nearest(
    X: Array, centers: Array, labels: Indices, squares: Array, least: Array
) -> float:
    """Label each point by its nearest center, the first of several; return the sum of squares."""
    least[:] = np.inf
    for m in range(len(centers)):
        squares_from(X, centers[m], squares)
        for t in range(len(labels)):
            if squares[t] < least[t]:
                least[t] = squares[t]
                labels[t] = m
    return least.sum()


@compiled(error_model="numpy")
def move_centers(X: Array, labels: Indices, centers: Array, counts: Array) -> None:
    """Move centers to the means of their points; one without points stays."""
    counts[:] = 0.0
    for t in range(len(labels)):
        counts[labels[t]] += 1.0
    for k in range(X.shape[0]):
        for m in range(len(centers)):
            if counts[m] > 0.0:
                centers[m, k] = 0.0
        for t in range(len(labels)):
            centers[labels[t], k] += X[k, t] / counts[labels[t]]


@compiled(error_model="numpy")
def cluster(X: Array, n_components: int, draws: Array, labels: Indices) -> None:
    """Labels by a few rounds of k-means, the best of the starts that `draws` selects."""
    n = X.shape[1]
    squares, least, counts = np.empty(n), np.empty(n), np.empty(n_components)
    trial = np.zeros(n, dtype=np.intp)
    best = np.inf
    for start in range(len(draws)):
        centers = spread_centers(X, draws[start, :n_components], squares, least)
        total = np.inf
        for _ in range(LLOYD_ROUNDS):
            before = total
            total = assign_nearest(X, centers, trial, squares, least)
            if total >= before:
                break
            move_centers(X, trial, centers, counts)
        if total < best:
            best = total
            for t in range(len(labels)):
                labels[t] = trial[t]


@compiled(error_model="numpy", fastmath={"reassoc"})
def weighted_sum(weights: Array, x: Array, y: Array) -> float:
    """Sum of weights x y."""
    total = 0.0
    for t in range(len(x)):
        total += weights[t] * x[t] * y[t]
    return total


@compiled(error_model="numpy", fastmath={"reassoc"})
def weighted_mean(weights: Array, x: Array, total: float) -> float:
    """Sum of weights x, divided by their total."""
    value = 0.0
    for t in range(len(x)):
        value += weights[t] * x[t]
    return value / total


@compiled(error_model="numpy")
def subtract_rows(rows: Array, factors: Array, target: Array) -> None:
    """Subtract a weighted sum of the first rows from a later one."""
    count = len(factors)
    # Four at a time: reading and writing the target takes longer than the sums.
    for c in range(0, count - 3, 4):
        f, g, h, i = factors[c], factors[c + 1], factors[c + 2], factors[c + 3]
        x, y, z, w = rows[c], rows[c + 1], rows[c + 2], rows[c + 3]
        for t in range(len(target)):
            target[t] -= (f * x[t] + g * y[t]) + (h * z[t] + i * w[t])
    for c in range(count - count % 4, count):
        f, x = factors[c], rows[c]
        for t in range(len(target)):
            target[t] -= f * x[t]


@compiled(error_model="numpy")
def maximize(
    X: Array, shares: Array, kind: int, floor: float, weights: Array, means: Array,
    covariances: Array, gaps: Array,
) -> None:  # fmt: skip
    """Weights, means and covariances from the share of each component in each point."""
    d, n = X.shape
    covariances[:] = 0.0
    for m in range(len(shares)):
        share = shares[m]
        # A component without points keeps a weight whose logarithm is finite.
        count = 1e-14 * n
        for t in range(n):
            count += share[t]
        weights[m] = count / n
        for k in range(d):
            row = X[k]
            mean = weighted_mean(share, row, count)
            means[m, k] = mean
            gap = gaps[k]
            for t in range(n):
                gap[t] = row[t] - mean
        target = covariances[0] if kind == TIED else covariances[m]
        scale = 1.0 / n if kind == TIED else 1.0 / count
        if kind <= TIED:
            place = 0
            for r in range(d):
                for c in range(r + 1):
                    target[place] += scale * weighted_sum(share, gaps[r], gaps[c])
                    place += 1
        else:
            for k in range(d):
                target[k] = scale * weighted_sum(share, gaps[k], gaps[k])
            if kind == SPHERICAL:
                mean = 0.0
                for k in range(d):
                    mean += target[k] / d
                target[:] = mean
    if kind == TIED:
        for m in range(1, len(covariances)):
            for k in range(covariances.shape[1]):
                covariances[m, k] = covariances[0, k]
    for m in range(len(shares)):
        for k in range(d):
            covariances[m, k * (k + 1) // 2 + k if kind <= TIED else k] += floor


@compiled(error_model="numpy")
def log_densities(
    X: Array, log_weight: float, mean: Array, covariance: Array, gaps: Array, out: Array
) -> None:
    """Logarithm of weight times density of one Gaussian at the columns of X."""
    d, n = X.shape
    for k in range(d):
        row, own, gap = X[k], mean[k], gaps[k]
        for t in range(n):
            gap[t] = row[t] - own
    full = len(covariance) > d
    lower = covariance.copy()
    pivots = np.empty(d)
    log_det = 0.0
    out[:] = 0.0
    for r in range(d):
        if full:
            here = r * (r + 1) // 2
            for c in range(r):
                above = c * (c + 1) // 2
                own = lower[here : here + c]
                product = weighted_sum(pivots[:c], own, lower[above : above + c])
                lower[here + c] = (lower[here + c] - product) / pivots[c]
            own = lower[here : here + r]
            pivot = lower[here + r] - weighted_sum(pivots[:r], own, own)
            subtract_rows(gaps, own, gaps[r])
        else:
            pivot = lower[r]
        pivots[r] = pivot
        log_det += np.log(pivot)
        gap = gaps[r]
        inverse = 1.0 / pivot
        for t in range(n):
            out[t] += gap[t] * gap[t] * inverse
    constant = log_weight - 0.5 * (d * LOG_2_PI + log_det)
    for t in range(n):
        out[t] = constant - 0.5 * out[t]


@compiled(error_model="numpy")
def expect(
    X: Array, weights: Array, means: Array, covariances: Array, gaps: Array, shares: Array
) -> float:
    """Fill in the share of each component in each point; return the log-likelihood."""
    n_components, n = shares.shape
    for m in range(n_components):
        log_densities(X, np.log(weights[m]), means[m], covariances[m], gaps, shares[m])
    total = 0.0
    for t in range(n):
        largest = -np.inf
        for m in range(n_components):
            largest = max(largest, shares[m, t])
        density = 0.0
        for m in range(n_components):
            gap = shares[m, t] - largest
            shares[m, t] = np.exp(gap) if gap > -45.0 else 0.0
            density += shares[m, t]
        for m in range(n_components):
            shares[m, t] /= density
        total += largest + np.log(density)
    return total


@compiled(error_model="numpy")
def run_rounds(
    X: Array, shares: Array, kind: int, floor: float, done: int, stop: int, before: float,
    tol: float, weights: Array, means: Array, covariances: Array, gaps: Array,
) -> tuple[float, int, bool]:  # fmt: skip
    """Rounds `done` to `stop` of expectation maximization, which update `shares`.

    Returns the log-likelihood (`before` at the start), the rounds done and whether it converged.
    """
    score = before
    for number in range(done, stop):
        maximize(X, shares, kind, floor, weights, means, covariances, gaps)
        score = expect(X, weights, means, covariances, gaps, shares)
        # at most, not below: with tol=0 it stops when nothing is gained
        if len(shares) == 1 or score - before <= tol * X.shape[1]:
            return score, number + 1, True
        before = score
    return score, stop, False


@compiled(error_model="numpy")
def copy_rows(source: Array, target: Array) -> None:
    """Copy a matrix by loops; a slice assignment takes seconds longer to compile."""
    for i in range(len(source)):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@compiled(error_model="numpy")
def set_shares(labels: Indices, shares: Array) -> None:
    """Assign each point to the component of its label alone."""
    for m in range(len(shares)):
        for t in range(len(labels)):
            shares[m, t] = 1.0 if labels[t] == m else 0.0


@compiled(error_model="numpy")
def fit_set(
    X: Array, draws: Array, kind: int, floor: float, max_iter: int, tol: float, weights: Array,
    means: Array, covariances: Array, labels: Indices, shares: Array, likeliest: Array,
    gaps: Array, state: Array, n_rounds: int,
) -> bool:  # fmt: skip
    """Run up to `n_rounds` rounds on the mixture of one set; return whether it is finished.

    X is (d, n); labels (n,), shares and likeliest (m, n) and gaps (d, n) are work space. At first
    `likeliest` assigns all points to the first component. `draws` (n_starts, n_trials, >= m) are
    numbers from 0 to 1 that select the starts; `floor` is added to all variances. `state` holds
    the current start (the last one continues from the likeliest), its rounds and log-likelihood,
    the largest log-likelihood so far, and whether it converged: at first 0, 0, -inf, -inf, 0.
    """
    m = len(shares)
    n_starts = len(draws) if m > 1 else 0
    few = min(max_iter, SHORT_ROUNDS)
    while n_rounds > 0:
        start, done = int(state[0]), int(state[1])
        last = start == n_starts
        if done == 0 and not last:
            cluster(X, m, draws[start], labels)
            set_shares(labels, shares)
        most = max_iter if last else few
        score, reached, converged = run_rounds(
            X, likeliest if last else shares, kind, floor, done, min(most, done + n_rounds),
            state[2], tol, weights, means, covariances, gaps,
        )  # fmt: skip
        n_rounds -= reached - done
        state[1], state[2] = reached, score
        if reached < most and not converged:
            continue
        if last:
            state[4] = converged
            return True
        if score > state[3]:
            state[3] = score
            copy_rows(shares, likeliest)
        state[0], state[1], state[2] = start + 1, 0, -np.inf
    return False
