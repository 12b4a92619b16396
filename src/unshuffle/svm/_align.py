"""Sets put into the order of a template, which is the centre of the ordered sets in turn."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._assign import assign, assign_many, slot_distances
from unshuffle._bags import (
    Bags,
    canonical_order,
    check_bags_memory,
    check_gap,
    equal_sizes,
    gathered,
)
from unshuffle._grams import check_points_for_width
from unshuffle._kernel_features import PointFeatures
from unshuffle._parallel import map_parallel, spans
from unshuffle._parameters import (
    FUNCTION,
    Constraints,
    check_kernel_memory,
    count,
    number,
    option,
)
from unshuffle._progress import Search, Stopped

Array = NDArray[np.float64]
Orders = NDArray[np.intp]

# Matrices of n_sets^2 numbers that a ball, or a machine, takes at its peak.
N_MATRICES = 4
# Rounds in which the template moves so far that prices of the one before are no help.
N_COLD = 2
# Sets that one thread takes at a time.
PORTION = 16
# Largest violation of the ball's optimality conditions, as a share of the mean squared length.
PRECISION = 1e-9
MAX_STEPS_PER_ITEM = 1000

# Parameters that all estimators of this room have.
CONSTRAINTS: Constraints = {
    "kernel": [option("linear", "poly", "rbf"), FUNCTION],
    "rank": [count()],
    "template": [option("mean", "ball")],
    "slack": [number(above=0, most=1), None],
    "unequal": [option("resample", "rectangular")],
}


@dataclass(frozen=True)
class Candidates:
    """What may stand in the slots: for each set some of its points, in an order of our own."""

    features: Bags  # of the candidates of each set
    indices: Orders  # which point of its set, as the user gave it, each candidate is

    def __len__(self) -> int:
        return len(self.features)

    def of_sets(self, chosen: Orders) -> "Candidates":
        """Candidates of some of the sets."""
        sizes = self.features.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        rows = np.repeat(self.features.offsets[:-1][chosen], sizes) + within
        return Candidates(Bags(self.features.points[rows], offsets), self.indices[rows])

    def points(self, orders: Orders) -> Orders:
        """Indices into each set as the user gave it, shape (n_sets, n_slots)."""
        return self.indices[self.features.offsets[:-1, None] + orders]

    def ordered(self, orders: Orders) -> Array:
        """Features of what stands in the slots, shape (n_sets, n_slots, n_features)."""
        return np.asarray(self.features.points[self.features.offsets[:-1, None] + orders])


@dataclass(frozen=True)
class Placing:
    """How points become candidates for the slots of a template."""

    features: PointFeatures  # in which points are compared
    n_points: int  # slots of the template
    resampled: bool  # whether sets are brought to that size by copying or leaving out points
    seed: int  # which points those are

    @classmethod
    def of(cls, bags: Bags, wanted: Any, *, seed: int) -> "Placing":
        """Placing for sets like these, with the parameters of an estimator; asks for memory."""
        check_gap(bags.points, "bags")
        linear, rank = wanted.kernel == "linear", int(wanted.rank)
        if linear:
            bags.check_outliers()
        n_slots = int(wanted.n_points or bags.sizes.max())
        check_bags_memory(len(bags), n_slots, bags.width if linear else rank)
        if wanted.kernel == "rbf" and wanted.gamma is None:
            check_points_for_width(len(bags.points), "gamma")
        features = PointFeatures.of(
            bags.sorted().points,  # so that no order inside a set has a part in the features
            wanted.kernel,
            gamma=wanted.gamma,
            degree=int(wanted.degree),
            rank=rank,
        )
        return cls(features, n_slots, wanted.unequal == "resample", seed)

    def candidates(self, bags: Bags) -> Candidates:
        """Candidates of these sets: one for each slot where resampled, else all points."""
        if self.resampled:
            chosen = equal_sizes(bags, self.n_points, missing=False, seed=self.seed)
            indices, offsets = chosen.ravel(), np.arange(len(bags) + 1) * self.n_points
        else:
            indices = np.concatenate([canonical_order(points) for points in bags])
            offsets = bags.offsets
        holder = np.repeat(bags.offsets[:-1], np.diff(offsets))
        mapped = self.features.map(bags.points[holder + indices])
        return Candidates(Bags(mapped, offsets), indices)


class Ball(NamedTuple):
    """Smallest ball around vectors, of which a share may lie outside.

    Its centre is the sum of the vectors with the weights, which are not below 0 and add up to 1;
    those of vectors inside are 0. The cost is the squared radius and what the vectors outside pay.
    """

    weights: Array
    squared_radius: float
    cost: float


@dataclass(frozen=True)
class Aligned:
    """Sets in the order of a template, and the template they have together."""

    orders: Orders  # the candidate of each set in each slot, shape (n_sets, n_slots)
    ball: Ball  # around the ordered sets
    template: Array  # centre of that ball, shape (n_slots, n_features)
    path: tuple[float, ...]  # cost after each round
    converged: bool  # whether the sets settled


def align(
    candidates: Candidates,
    search: Search[Any],
    *,
    n_slots: int,
    slack: float | None,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
) -> Aligned:
    """Assign sets to a template, move it to their centre, and so on until nothing moves.

    The cost never rises: assignment brings every set closer to the centre, and the new ball is the
    best around the sets where they are now. Each round is offered to the search.
    """
    template = _first_template(candidates.features, n_slots)
    prices = np.zeros((len(candidates), n_slots))
    found: Aligned | None = None
    path: tuple[float, ...] = ()
    while True:
        if len(path) < N_COLD:
            prices[:] = 0.0
        orders = nearest_candidates(template, candidates.features, prices=prices, n_jobs=n_jobs)
        if found is not None and np.array_equal(orders, found.orders):
            return replace(found, converged=True)
        ball, template = centered_on(candidates.ordered(orders), slack)
        settled = bool(path and path[-1] - ball.cost <= tol * ball.cost)
        path = (*path, ball.cost)
        found = Aligned(orders, ball, template, path, settled)
        search.offer(found, rank=(0, len(path)))
        share = len(path) / max_iter
        search.step(-ball.cost, candidates.points(orders), stage="aligning sets", fraction=share)
        if settled or len(path) == max_iter:
            return found


def assigned_again(found: Aligned, candidates: Candidates, *, n_jobs: int | None) -> Aligned:
    """What was found, the sets assigned afresh to the template as it is now."""
    orders = nearest_candidates(found.template, candidates.features, n_jobs=n_jobs)
    return replace(found, orders=orders)


def finished(
    rounds: Search[Any],
    search: Search[Any],
    solve: Callable[[], Any],
    finish: Callable[[Any], Any],
) -> Any:
    """Finish what the rounds of a solver came to: all of them, or those before they were stopped.

    A callback only ends the rounds. Ctrl-C goes on to the caller, and the result to `search`.
    """
    try:
        found = solve()
    except Stopped:
        found = rounds.best
    except KeyboardInterrupt:
        if rounds.best is not None:
            search.offer(finish(rounds.best), rank=0)
        raise
    return finish(found)


def share_outside(template: str, slack: float | None) -> float | None:
    """Slack of the ball whose centre is the template: that of slack 1 is the mean."""
    if template == "mean":
        return 1.0
    return None if slack is None else float(slack)  # a NumPy half would lose digits


def _first_template(features: Bags, n_slots: int) -> Array:
    """The most ordinary set, whose sorted features are closest to those of all in the mean.

    Sorted one by one they do not depend on any order, so neither does the choice.
    """
    chosen = equal_sizes(features, n_slots, missing=False, seed=0)
    sets = gathered(features, chosen)
    profiles = np.sort(sets, axis=1).reshape(len(sets), -1)
    profiles -= profiles.mean(axis=0)
    return np.asarray(sets[np.einsum("nr,nr->n", profiles, profiles).argmin()])


def nearest_candidates(
    template: Array, features: Bags, *, prices: Array | None = None, n_jobs: int | None = None
) -> Orders:
    """Candidates of each set that together lie closest to the slots, shape (n_sets, n_slots).

    The template is one for all sets, or one for each. Of sets with more candidates than slots,
    some stand nowhere; of those with fewer, all stand equally often, give or take one.

    Where each set has as many candidates as slots, `prices` from a similar template save time, and
    are replaced by those of this one. None starts afresh, which gives a set the same order always,
    even where several are equally good.
    """
    n_sets, n_slots = len(features), template.shape[-2]
    square = bool((features.sizes == n_slots).all())
    if square and n_slots == 1:
        return np.zeros((n_sets, 1), dtype=np.intp)
    if square and features.width == 1:
        return _sorted_alike(template[..., 0], features.points.reshape(n_sets, n_slots))
    _check_range(template, features.points)
    prices = np.zeros((n_sets, n_slots)) if prices is None else prices
    orders = np.empty((n_sets, n_slots), dtype=np.intp)

    def place(start: int) -> None:
        sets = range(start, min(start + PORTION, n_sets))
        part = slice(sets.start, sets.stop)
        if square:
            orders[part] = assign_many(_square_costs(template, features, sets), prices[part])
            return
        for i in sets:
            target = template if template.ndim == 2 else template[i]
            orders[i] = _rectangular(slot_distances(target, features[i]))

    map_parallel(place, range(0, n_sets, PORTION), n_jobs=n_jobs)
    return orders


def _check_range(template: Array, points: Array) -> None:
    """Refuse features whose squared distances, added up over the slots, do not fit into floats."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (template, points))
    if largest > 1e150 / np.sqrt(max(template[..., 0].size, 1) * max(points.shape[1], 1)):
        raise ValueError(
            f"Features of points, or of the template moved by `lam`, are as large as "
            f"{largest:.3g}: their squared distances are too large for a float. Divide the "
            "points by a common number first, or pass a smaller `lam`."
        )


def _square_costs(template: Array, features: Bags, sets: range) -> Array:
    """Costs of sets with as many candidates as slots, shape (n_sets, n_slots, n_slots)."""
    if template.ndim == 3:
        return np.stack([slot_distances(template[i], features[i]) for i in sets])
    n_slots = len(template)
    # one product for all, rather than many small ones
    costs = slot_distances(template, features.part(sets.start, sets.stop).points)
    return np.ascontiguousarray(costs.reshape(n_slots, -1, n_slots).swapaxes(0, 1))


def _sorted_alike(target: Array, values: Array) -> Orders:
    """Orders in which single numbers are sorted as those of the target are: the best matching."""
    ranks = np.argsort(np.argsort(target, axis=-1, kind="stable"), axis=-1, kind="stable")
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(order, np.broadcast_to(ranks, order.shape), axis=1)


def _rectangular(cost: Array) -> Orders:
    """Column for each row: of many columns the best, of few all, equally often or one more."""
    n_slots, size = cost.shape
    if size >= n_slots:
        return assign(-cost).columns
    n_copies, n_more = divmod(n_slots, size)
    copies = np.tile(cost, (1, n_copies + bool(n_more)))
    # One copy too many of some: dear enough that the others are all used first.
    copies[:, n_copies * size :] += n_slots * max(float(np.ptp(cost)), np.finfo(float).tiny)
    return np.asarray(assign(-copies).columns % size)


def centered_on(ordered: Array, slack: float | None) -> tuple[Ball, Array]:
    """Ball around ordered sets, and its centre."""
    flat = ordered.reshape(len(ordered), -1)
    if slack == 1.0:
        return _mean_ball(flat), ordered.mean(axis=0)
    check_kernel_memory(len(flat), len(flat), n_copies=N_MATRICES)
    ball = enclosing_ball(flat @ flat.T, slack)
    return ball, (ball.weights @ flat).reshape(ordered.shape[1:])


def _mean_ball(flat: Array) -> Ball:
    """Ball about the mean: by itself, since it needs no inner products of all pairs."""
    apart = flat - flat.mean(axis=0)
    squared = np.einsum("nr,nr->n", apart, apart)
    cost = float(squared.mean())
    return Ball(np.full(len(flat), 1.0 / len(flat)), cost, cost)


def enclosing_ball(K: Array, slack: float | None = None) -> Ball:
    """Smallest ball around vectors with the inner products K.

    `slack` is the share of them that may lie outside; with 1 the centre is the mean, None encloses
    all. Precise to 1e-9 of the mean squared length of the vectors about their mean.

    This is the dual of eq. (3) of the paper, min w'Kw - diag(K)'w with sum(w) = 1 and
    0 <= w <= bound. The paper's bound C has no solution below 1/n; 1 / (slack n) always has one.
    """
    n = len(K)
    # Centred: the ball is where the vectors are, however far that is from the origin.
    means = K.mean(axis=0)
    K = np.ascontiguousarray(K - means - means[:, None] + means.mean())
    squares = np.diag(K).copy()
    # In units of about the largest: products of two would leave the floats sooner. A power of two
    # rounds nothing.
    unit = float(np.ldexp(1.0, int(np.frexp(squares.max(initial=0.0))[1])))
    K, squares = K / unit, squares / unit
    scale = float(squares.mean())
    weights = np.full(n, 1.0 / n)
    bound = 1.0 if slack is None else min(1.0, 1.0 / (slack * n))
    if n > 1 and scale > 0.0 and bound * n > 1.0 + 1e-12:
        weights = _exchanged(K, squares, weights, bound, scale)
    products = K @ weights
    inner = float(weights @ products)
    slope = 2.0 * products - squares
    # Between the slopes of what may still gain and what may still lose lies the multiplier.
    level = 0.5 * (slope[weights > 0.0].max() + slope[weights < bound].min(initial=slope.max()))
    cost = float(squares @ weights) - inner
    return Ball(weights, unit * max(inner - float(level), 0.0), unit * cost)


def _exchanged(K: Array, squares: Array, weights: Array, bound: float, scale: float) -> Array:
    from unshuffle.svm._ball_loops import exchange_weights

    slope = 2.0 * (K @ weights) - squares
    n = len(weights)
    for start, stop in spans(MAX_STEPS_PER_ITEM * n, 4.0 * n):
        n_steps = exchange_weights(K, weights, slope, bound, PRECISION * scale, stop - start)
        if n_steps < stop - start:
            break
    return weights


def check_slack_template(slack: float | None, template: str) -> None:
    """Refuse slack where there is no ball."""
    if slack is not None and template != "ball":
        raise ValueError(
            f"slack={slack} is the share of sets outside the ball, and template={template!r} has "
            'no ball. Leave slack out, or use template="ball".'
        )


def warn_sets_unsettled(max_iter: int, *, stacklevel: int) -> None:
    """Say that sets were still being reordered when the rounds were over."""
    warnings.warn(
        f"The sets still moved after max_iter={max_iter} rounds. Raise max_iter, or tol, to let "
        "them settle.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
