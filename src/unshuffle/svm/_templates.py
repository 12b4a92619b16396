"""Templates: sets are ordered to lie close to the template, which is the center of all of them."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unshuffle._assign.linear import assign, assign_many, slot_distances
from unshuffle._core.bags import (
    Bags,
    canonical_order,
    check_bags_memory,
    check_gap,
    equal_sizes,
    gathered,
)
from unshuffle._core.grams import check_points_for_width
from unshuffle._core.kernel_features import PointFeatures
from unshuffle._core.parameters import (
    FUNCTION,
    Constraints,
    check_kernel_memory,
    count,
    number,
    option,
)
from unshuffle._run.parallel import map_parallel, spans
from unshuffle._run.printing import warn_user
from unshuffle._run.search import Search
from unshuffle._run.types import Floats, Orders

# Peak number of n_sets x n_sets matrices while a ball is computed or a classifier is trained.
N_MATRICES = 4
# First rounds, in which the template moves too far for prices of the round before to help.
N_COLD = 2
# Sets that one thread assigns at a time.
PORTION = 16
# Largest violation of the ball's optimality conditions, relative to the mean squared length.
PRECISION = 1e-9
MAX_STEPS_PER_ITEM = 1000

# Parameters that both estimators have.
CONSTRAINTS: Constraints = {
    "kernel": [option("linear", "poly", "rbf"), FUNCTION],
    "n_landmarks": [count()],
    "template": [option("mean", "ball")],
    "slack": [number(above=0, most=1), None],
    "unequal": [option("resample", "rectangular")],
}


@dataclass(frozen=True)
class Candidates:
    """The points of each set that may be assigned to template points, in canonical order."""

    features: Bags  # of the candidates of each set
    indices: Orders  # index of each candidate in its set, as the user gave it

    def features_of(self, chosen: Orders) -> Bags:
        """Features of the candidates of some of the sets."""
        return self.features.chosen(chosen)

    def points(self, orders: Orders) -> Orders:
        """Indices into each set as the user gave it, shape (n_sets, n_points)."""
        return self.indices[self.features.offsets[:-1, None] + orders]

    def ordered(self, orders: Orders) -> Floats:
        """Features in these orders, shape (n_sets, n_points, n_features)."""
        return np.asarray(self.features.points[self.features.offsets[:-1, None] + orders])


@dataclass(frozen=True)
class Preparation:
    """How sets are prepared for a template and aligned with it."""

    features: PointFeatures  # in which points are compared
    n_points: int  # number of template points
    resampled: bool  # whether points are copied or left out to reach that number
    seed: int  # chooses those points
    slack: float | None  # of the ball whose center is the template; 1 is the mean
    max_iter: int
    tol: float

    @classmethod
    def of(cls, sets: Bags, estimator: Any) -> "Preparation":
        """Prepare for sets like these, with an estimator's parameters; checks memory."""
        slack = _ball_slack(estimator.template, estimator.slack)
        if slack != 1.0:
            check_kernel_memory(len(sets), len(sets), n_copies=N_MATRICES)
        seed = int(check_random_state(estimator.random_state).randint(2**31))
        check_gap(sets.points, "X")
        linear, n_landmarks = estimator.kernel == "linear", int(estimator.n_landmarks)
        if linear:
            sets.check_outliers()
        n_points = int(estimator.n_points or sets.sizes.max())
        check_bags_memory(len(sets), n_points, sets.width if linear else n_landmarks)
        if estimator.kernel == "rbf" and estimator.gamma is None:
            check_points_for_width(len(sets.points), "gamma")
        features = PointFeatures.of(
            sets.sorted().points,  # so that features do not depend on the order inside sets
            estimator.kernel,
            gamma=estimator.gamma,
            degree=int(estimator.degree),
            rank=n_landmarks,
        )
        resampled, max_iter = estimator.unequal == "resample", int(estimator.max_iter)
        return cls(features, n_points, resampled, seed, slack, max_iter, estimator.tol)

    def candidates(self, sets: Bags) -> Candidates:
        """As many candidates as template points if resampled, else all points."""
        if self.resampled:
            chosen = equal_sizes(sets, self.n_points, missing=False, seed=self.seed)
            indices, offsets = chosen.ravel(), np.arange(len(sets) + 1) * self.n_points
        else:
            indices = np.concatenate([canonical_order(points) for points in sets])
            offsets = sets.offsets
        starts = np.repeat(sets.offsets[:-1], np.diff(offsets))
        mapped = self.features.map(sets.points[starts + indices])
        return Candidates(Bags(mapped, offsets), indices)


class Ball(NamedTuple):
    """Smallest ball around vectors, of which a fraction may lie outside."""

    weights: Floats  # of the vectors in the center; nonnegative, sum to 1, zero for those inside
    squared_radius: float
    cost: float  # squared radius plus the penalty of the vectors outside


@dataclass(frozen=True)
class Aligned:
    """Sets in the order of their common template."""

    orders: Orders  # candidate of each set for each template point, shape (n_sets, n_points)
    ball: Ball  # around the ordered sets
    template: Floats  # center of that ball, shape (n_points, n_features)
    path: tuple[float, ...]  # cost after each round
    converged: bool


def align(
    candidates: Candidates,
    preparation: Preparation,
    search: Search[Any],
    n_jobs: int | None,
    shares: Floats | None = None,
) -> Aligned:
    """Alternate between assigning sets to the template and moving it to their center.

    The cost never rises: assignment brings every set closer to the center, and the new ball is the
    best around the sets as they are now. Each round is offered to the search. `shares` are weights
    of the sets that sum to 1; None weighs them alike.
    """
    template = _first_template(candidates.features, preparation.n_points, shares)
    prices = np.zeros((len(candidates.features), preparation.n_points))
    found: Aligned | None = None
    path: tuple[float, ...] = ()
    while True:
        if len(path) < N_COLD:
            prices[:] = 0.0
        orders = nearest_candidates(template, candidates.features, prices=prices, n_jobs=n_jobs)
        if found is not None and np.array_equal(orders, found.orders):
            return replace(found, converged=True)
        ball, template = centered_ball(candidates.ordered(orders), preparation.slack, shares)
        converged = bool(path and path[-1] - ball.cost <= preparation.tol * ball.cost)
        path = (*path, ball.cost)
        found = Aligned(orders, ball, template, path, converged)
        search.offer(found, rank=(0, len(path)))
        share = len(path) / preparation.max_iter
        search.step(-ball.cost, candidates.points(orders), stage="aligning sets", fraction=share)
        if converged or len(path) == preparation.max_iter:
            return found


def _ball_slack(template: str, slack: float | None) -> float | None:
    """Slack of the ball around the template; slack 1 centers it on the mean."""
    if template == "ball":
        return None if slack is None else float(slack)  # float16 would lose digits
    if slack is not None:
        raise ValueError(
            f"slack={slack} is the fraction of sets outside the ball, but template={template!r} "
            'has no ball. Leave slack out, or use template="ball".'
        )
    return 1.0


def _first_template(features: Bags, n_points: int, shares: Floats | None) -> Floats:
    """The most typical set: its features, each sorted by itself, lie closest to their mean."""
    chosen = equal_sizes(features, n_points, missing=False, seed=0)
    sets = gathered(features, chosen)
    profiles = np.sort(sets, axis=1).reshape(len(sets), -1)
    profiles -= np.average(profiles, axis=0, weights=shares)
    return np.asarray(sets[np.einsum("nr,nr->n", profiles, profiles).argmin()])


def nearest_candidates(
    template: Floats, features: Bags, *, prices: Floats | None = None, n_jobs: int | None = None
) -> Orders:
    """Assign candidates to template points at the least distance, shape (n_sets, n_points).

    There is one template for all sets, or one for each. Of more candidates than template points
    some are left out; fewer are all used equally often, give or take one.

    With as many candidates as template points, `prices` from a similar template save time and are
    updated. None starts cold, which always breaks ties alike.
    """
    n_sets, n_points = len(features), template.shape[-2]
    square = bool((features.sizes == n_points).all())
    if square and n_points == 1:
        return np.zeros((n_sets, 1), dtype=np.intp)
    if square and features.width == 1:
        return _sorted_alike(template[..., 0], features.points.reshape(n_sets, n_points))
    _check_range(template, features.points)
    prices = np.zeros((n_sets, n_points)) if prices is None else prices
    orders = np.empty((n_sets, n_points), dtype=np.intp)

    def assign_portion(start: int) -> None:
        sets = range(start, min(start + PORTION, n_sets))
        part = slice(sets.start, sets.stop)
        if square:
            orders[part] = assign_many(_square_costs(template, features, sets), prices[part])
            return
        for i in sets:
            target = template if template.ndim == 2 else template[i]
            orders[i] = _rectangular(slot_distances(target, features[i]))

    map_parallel(assign_portion, range(0, n_sets, PORTION), n_jobs=n_jobs)
    return orders


def _check_range(template: Floats, points: Floats) -> None:
    """Refuse features whose squared distances, summed over a set, overflow."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (template, points))
    if largest > 1e150 / np.sqrt(max(template[..., 0].size, 1) * max(points.shape[1], 1)):
        raise ValueError(
            f"Features of points, or of the template pushed by `margin_weight`, reach "
            f"{largest:.3g}, and their squared distances overflow. Divide the points by a common "
            "number first, or pass a smaller `margin_weight`."
        )


def _square_costs(template: Floats, features: Bags, sets: range) -> Floats:
    """Costs of sets with as many candidates as template points, one square matrix for each."""
    if template.ndim == 3:
        return np.stack([slot_distances(template[i], features[i]) for i in sets])
    n_points = len(template)
    # One large product is faster than many small ones.
    costs = slot_distances(template, features.part(sets.start, sets.stop).points)
    return np.ascontiguousarray(costs.reshape(n_points, -1, n_points).swapaxes(0, 1))


def _sorted_alike(target: Floats, values: Floats) -> Orders:
    """Orders that sort single numbers as the target is sorted: the best assignment."""
    ranks = np.argsort(np.argsort(target, axis=-1, kind="stable"), axis=-1, kind="stable")
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(order, np.broadcast_to(ranks, order.shape), axis=1)


def _rectangular(cost: Floats) -> Orders:
    """Column for each row: the best of many columns, or all of few, each about equally often."""
    n_points, size = cost.shape
    if size >= n_points:
        return assign(-cost).columns
    n_copies, n_more = divmod(n_points, size)
    copies = np.tile(cost, (1, n_copies + bool(n_more)))
    # The last copies cost so much that all others are used first.
    copies[:, n_copies * size :] += n_points * max(float(np.ptp(cost)), np.finfo(float).tiny)
    return np.asarray(assign(-copies).columns % size)


def centered_ball(
    ordered: Floats, slack: float | None, shares: Floats | None = None
) -> tuple[Ball, Floats]:
    """Ball around ordered sets, and its center; `shares` as in `align`."""
    flat = ordered.reshape(len(ordered), -1)
    if slack == 1.0:  # the mean, without inner products of all pairs
        center = np.average(flat, axis=0, weights=shares)
        apart = flat - center
        cost = float(np.average(np.einsum("nr,nr->n", apart, apart), weights=shares))
        weights = np.full(len(flat), 1.0 / len(flat)) if shares is None else shares
        return Ball(weights, cost, cost), center.reshape(ordered.shape[1:])
    ball = enclosing_ball(flat @ flat.T, slack, shares)
    return ball, (ball.weights @ flat).reshape(ordered.shape[1:])


def enclosing_ball(K: Floats, slack: float | None = None, shares: Floats | None = None) -> Ball:
    """Smallest ball around vectors with the inner products K.

    `slack` is the fraction of them that may lie outside; 1 centers the ball on the mean, None
    encloses all. Precise to 1e-9 of their mean squared distance from the mean.

    Solves the dual of eq. (3) of the paper, min w'Kw - diag(K)'w with sum(w) = 1 and
    0 <= w <= bound. The paper's bound C has no solution below 1/n; 1 / (slack n) always has one.
    With `shares`, positive and with the sum 1, that of each vector is its share / slack, as if
    vectors were repeated.
    """
    n = len(K)
    # Centered, so that a distant origin costs no digits.
    means = K.mean(axis=0)
    K = np.ascontiguousarray(K - means - means[:, None] + means.mean())
    squares = np.diag(K).copy()
    # Scaled to about 1, so that products do not overflow; a power of two rounds nothing.
    unit = float(np.ldexp(1.0, int(np.frexp(squares.max(initial=0.0))[1])))
    K, squares = K / unit, squares / unit
    scale = float(squares.mean())
    weights = np.full(n, 1.0 / n) if shares is None else shares.copy()
    bounds = np.ones(n) if slack is None else np.minimum(1.0, weights / slack)
    if n > 1 and scale > 0.0 and bounds.sum() > 1.0 + 1e-12:
        weights = _exchange_until_optimal(K, squares, weights, bounds, scale)
    products = K @ weights
    inner = float(weights @ products)
    slope = 2.0 * products - squares
    # The multiplier lies between the slopes of weights that may rise and that may fall.
    level = 0.5 * (slope[weights > 0.0].max() + slope[weights < bounds].min(initial=slope.max()))
    cost = float(squares @ weights) - inner
    return Ball(weights, unit * max(inner - float(level), 0.0), unit * cost)


def _exchange_until_optimal(
    K: Floats, squares: Floats, weights: Floats, bounds: Floats, scale: float
) -> Floats:
    from unshuffle.svm._ball_loops import exchange_weights

    slope = 2.0 * (K @ weights) - squares
    n = len(weights)
    for start, stop in spans(MAX_STEPS_PER_ITEM * n, 4.0 * n):
        n_steps = exchange_weights(K, weights, slope, bounds, PRECISION * scale, stop - start)
        if n_steps < stop - start:
            break
    return weights


def warn_unconverged(max_iter: int) -> None:
    """Warn that the order of the sets did not converge."""
    warn_user(
        f"The order of the sets did not converge in max_iter={max_iter} rounds. Raise max_iter or "
        "tol.",
        ConvergenceWarning,
    )
