"""Compiled expectation maximisation for many small sets; imported when needed: numba is slow."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rounds of k-means before the mixture takes over; a start need not be settled.
LLOYD_ROUNDS = 10
FULL, TIED, DIAGONAL, SPHERICAL = 0, 1, 2, 3
# Rounds after which starts are compared, enough to tell good ones from bad.
SHORT_ROUNDS = 5
MANY_ROUNDS = 2**40
LOG_2_PI = float(np.log(2.0 * np.pi))


@compiled(error_model="numpy")
def squares_from(X: Array, center: Array, out: Array) -> None:
    """Squared distances of the columns of X from a centre."""
    out[:] = 0.0
    for k in range(X.shape[0]):
        row, own = X[k], center[k]
        for t in range(X.shape[1]):
            gap = row[t] - own
            out[t] += gap * gap


@compiled(error_model="numpy")
def spread_centers(X: Array, draws: Array, squares: Array, nearest: Array) -> Array:
    """Points far from each other: each drawn by its squared distance from those before."""
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
    """Label each point by its nearest centre, the first of several; return the sum of squares."""
    for t in range(len(labels)):
        least[t] = np.inf
    for m in range(len(centers)):
        squares_from(X, centers[m], squares)
        for t in range(len(labels)):
            if squares[t] < least[t]:
                least[t] = squares[t]
                labels[t] = m
    total = 0.0
    for t in range(len(labels)):
        total += least[t]
    return total


@compiled(error_model="numpy")
def move_centers(X: Array, labels: Indices, centers: Array, counts: Array) -> None:
    """Move centres to the means of their points; one without points stays."""
    for m in range(len(centers)):
        counts[m] = 0.0
    for t in range(len(labels)):
        counts[labels[t]] += 1.0
    for k in range(X.shape[0]):
        for m in range(len(centers)):
            if counts[m] > 0.0:
                centers[m, k] = 0.0
        for t in range(len(labels)):
            centers[labels[t], k] += X[k, t] / counts[labels[t]]


@compiled(error_model="numpy")
def clustered(X: Array, n_components: int, draws: Array, labels: Indices) -> None:
    """Indices by a few rounds of k-means: the tightest of the starts that `draws` gives."""
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
            for t in range(n):
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
    """Sum of weights x, over their total."""
    value = 0.0
    for t in range(len(x)):
        value += weights[t] * x[t]
    return value / total


@compiled(error_model="numpy")
def subtract_rows(rows: Array, factors: Array, target: Array) -> None:
    """Take a weighted sum of the first rows from a later one."""
    count = len(factors)
    # Four at a time, since reading and writing the target takes longer than the sums.
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
def transposed(points: Array, start: int, stop: int) -> Array:
    """Points of one set in columns."""
    X = np.empty((points.shape[1], stop - start))
    for t in range(start, stop):
        for k in range(points.shape[1]):
            X[k, t - start] = points[t, k]
    return X


@compiled(error_model="numpy")
def maximize(
    X: Array, shares: Array, kind: int, floor: float, weights: Array, means: Array,
    covariances: Array, gaps: Array,
) -> None:  # fmt: skip
    """Weights, means and covariances from the share that each component has in each point."""
    d, n = X.shape
    for m in range(len(shares)):
        for place in range(covariances.shape[1]):
            covariances[m, place] = 0.0
    for m in range(len(shares)):
        share = shares[m]
        # A component that has lost all its points keeps a weight that its logarithm can bear.
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
                for k in range(d):
                    target[k] = mean
    for m in range(len(shares)):
        if kind == TIED:
            for place in range(covariances.shape[1]):
                covariances[m, place] = covariances[0, place]
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
    """Share of each component in each point; returns the log-likelihood of all points."""
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
def climb(
    X: Array, shares: Array, kind: int, floor: float, done: int, stop: int, before: float,
    tol: float, weights: Array, means: Array, covariances: Array, gaps: Array,
) -> tuple[float, int, bool]:  # fmt: skip
    """Rounds `done` to `stop` of expectation maximisation, in which `shares` change.

    Returns the log-likelihood, which was `before` at the start, the rounds done by now, and
    whether it settled.
    """
    score = before
    for number in range(done, stop):
        maximize(X, shares, kind, floor, weights, means, covariances, gaps)
        score = expect(X, weights, means, covariances, gaps, shares)
        # at most, not below: with tol=0 a climb ends where nothing is gained
        if len(shares) == 1 or score - before <= tol * X.shape[1]:
            return score, number + 1, True
        before = score
    return score, stop, False


@compiled(error_model="numpy")
def set_shares(labels: Indices, shares: Array) -> None:
    """Give each point to the component of its label alone."""
    for m in range(len(shares)):
        for t in range(len(labels)):
            shares[m, t] = 1.0 if labels[t] == m else 0.0


@compiled(error_model="numpy")
def fit_set(
    X: Array, draws: Array, kind: int, floor: float, max_iter: int, tol: float, weights: Array,
    means: Array, covariances: Array, labels: Indices, shares: Array, likeliest: Array,
    gaps: Array, state: Array, n_rounds: int,
) -> bool:  # fmt: skip
    """Go on for `n_rounds` with the mixture of one set; return whether it is done.

    X is (d, n); labels (n,), shares and likeliest (m, n) and gaps (d, n) are room to work in. At
    first all labels are 0, and `likeliest` gives all points to the first component. `state` holds
    the start under way (the last "start" goes on from the likeliest), its rounds so far and its
    log-likelihood, the log-likelihood of the likeliest, and whether it settled: at first
    0, 0, -inf, -inf, 0. All else is as in `fit_sets`.
    """
    m = len(shares)
    n_starts = len(draws) if m > 1 else 0
    few = min(max_iter, SHORT_ROUNDS)
    while n_rounds > 0:
        start, done = int(state[0]), int(state[1])
        last = start == n_starts
        if done == 0 and not last:
            clustered(X, m, draws[start], labels)
            set_shares(labels, shares)
        most = max_iter if last else few
        score, reached, settled = climb(
            X, likeliest if last else shares, kind, floor, done, min(most, done + n_rounds),
            state[2], tol, weights, means, covariances, gaps,
        )  # fmt: skip
        n_rounds -= reached - done
        state[1], state[2] = reached, score
        if reached < most and not settled:
            continue
        if last:
            state[4] = settled
            return True
        if score > state[3]:
            state[3] = score
            likeliest[:] = shares
        state[0], state[1], state[2] = start + 1, 0, -np.inf
    return False


@compiled(error_model="numpy")
def fit_sets(
    points: Array, offsets: Indices, n_components: Indices, draws: Array, kind: int,
    floor: float, max_iter: int, tol: float, weights: Array, means: Array, covariances: Array,
    scores: Array, rounds: Indices, settled: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Mixture of each set by expectation maximisation, the likeliest of several starts.

    `draws` (n_starts, n_trials, at least max(n_components)) are numbers from 0 to 1 that choose
    where to start, the same for every set; `floor` is added to all variances; a climb ends after
    `max_iter` rounds, or with a gain in log-likelihood for each point below `tol`. All that
    follows takes the answer: mixtures laid out as in `Fits`, log-likelihoods, rounds of the
    likeliest start, and whether it ended before `max_iter`.
    """
    for s in range(len(n_components)):
        X = transposed(points, offsets[s], offsets[s + 1])
        d, n = X.shape
        m = n_components[s]
        labels, gaps = np.zeros(n, dtype=np.intp), np.empty((d, n))
        shares, likeliest = np.zeros((m, n)), np.zeros((m, n))
        set_shares(labels, likeliest)
        state = np.array([0.0, 0.0, -np.inf, -np.inf, 0.0])
        own = weights[s, :m], means[s, :m], covariances[s, :m]
        fit_set(
            X, draws, kind, floor, max_iter, tol, own[0], own[1], own[2], labels, shares,
            likeliest, gaps, state, MANY_ROUNDS,
        )  # fmt: skip
        scores[s], rounds[s], settled[s] = state[2], state[1], state[4] > 0.0


@compiled(error_model="numpy")
def score_sets(
    points: Array, offsets: Indices, n_components: Indices, weights: Array, means: Array,
    covariances: Array, scores: Array,
) -> None:  # fmt: skip
    """Log-likelihood of each set under a mixture of its own, laid out as in `fit_sets`."""
    for s in range(len(n_components)):
        X = transposed(points, offsets[s], offsets[s + 1])
        m = n_components[s]
        shares, gaps = np.empty((m, X.shape[1])), np.empty(X.shape)
        scores[s] = expect(X, weights[s, :m], means[s, :m], covariances[s, :m], gaps, shares)
