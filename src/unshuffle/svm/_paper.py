"""What only the paper does, for lam > 0: sets also move away from the plane between classes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, gathered
from unshuffle._progress import Search
from unshuffle.svm._align import (
    Aligned,
    Array,
    Ball,
    Candidates,
    Orders,
    Placing,
    centered_on,
    nearest_candidates,
)
from unshuffle.svm._machine import Learned, Machine, Problem, train

# Halvings of the range in which the smallest sufficient weight of the margin lies.
N_HALVINGS = 6


@dataclass(frozen=True)
class Pushing:
    """How sets are moved apart, by parameters of the estimator under their names there."""

    lam: float
    bisect: bool
    slack: float | None
    max_iter: int
    tol: float


@dataclass(frozen=True)
class View:
    """Sets of two sides in slots, with the template and the plane that belong to them.

    The push is added to the template for sets of the positive class, and taken away for those of
    the negative: the normal of the plane, `lam` times as long as the template.
    """

    orders: Orders  # the candidate of each set in each slot, shape (n_sets, n_slots)
    ball: Ball  # around the ordered sets
    template: Array  # its centre, shape (n_slots, n_features)
    push: Array
    machine: Machine  # the plane
    radii: tuple[float, ...]  # of the ball, at the start and after each round
    margins: tuple[float, ...]
    converged: bool = False

    @property
    def bound(self) -> float:
        """Squared radius over squared margin, to which the bound on the error is proportional."""
        return (self.radii[-1] / self.margins[-1]) ** 2  # eq. (4)


@dataclass(frozen=True)
class Parted:
    """Sets that were aligned, and the classes parted so far, each in an order of its own."""

    aligned: Aligned
    views: tuple[View, ...] = ()


def part(problem: Problem, found: Aligned | Parted, how: Pushing, search: Search[Any]) -> Parted:
    """Move the classes that are not parted yet away from the others, one after the other."""
    parted = found if isinstance(found, Parted) else Parted(found)
    n_classes = int(problem.codes.max()) + 1
    positive = [1] if n_classes == 2 else list(range(n_classes))
    for each in positive[len(parted.views) :]:
        signs = np.where(problem.codes == each, 1.0, -1.0)
        parted = separate(problem, parted, signs, how, search)
    return parted


def separate(
    problem: Problem, parted: Parted, signs: Array, how: Pushing, search: Search[Any]
) -> Parted:
    """Assign sets to the template, pushed to the side of their class, until nothing moves.

    Neither the radius nor the margin is sure to improve in a round, contrary to the paper: moving
    one set moves the plane and the centre for all others. Each round is offered to the search.
    """
    candidates, n_views = problem.candidates, len(parted.views) + 1

    def with_view(view: View) -> Parted:
        return replace(parted, views=(*parted.views, view))

    view = _view(problem, parted.aligned.orders, signs, how)
    prices = np.zeros(view.orders.shape)
    search.offer(with_view(view), rank=(n_views, 0))
    for k in range(how.max_iter):
        if how.bisect:
            orders = _moved_enough(candidates, signs, view, problem.n_jobs)
        else:
            orders = _moved(candidates, signs, view, prices, problem.n_jobs)
        if np.array_equal(orders, view.orders):
            return with_view(replace(view, converged=True))
        before = view
        view = _view(problem, orders, signs, how, before.radii, before.margins)
        search.offer(with_view(view), rank=(n_views, k + 1))
        share = (k + 1) / how.max_iter
        search.step(
            -view.bound, candidates.points(orders), stage="parting classes", fraction=share
        )
        if abs(view.bound - before.bound) <= how.tol * before.bound:
            return with_view(replace(view, converged=True))
    return with_view(view)


def _view(
    problem: Problem,
    orders: Orders,
    signs: Array,
    how: Pushing,
    radii: tuple[float, ...] = (),
    margins: tuple[float, ...] = (),
) -> View:
    """Centre and plane of the sets in these orders, after earlier radii and margins."""
    ordered = problem.candidates.ordered(orders)
    ball, template = centered_on(ordered, how.slack)
    machine = train(problem, orders, signs)
    normal = np.tensordot(machine.pulls, ordered, axes=1)
    push = how.lam * normal * _length(template) / max(_length(normal), 1e-300)
    radii = (*radii, float(np.sqrt(max(ball.cost, 0.0))))
    margins = (*margins, float(machine.margins[0]))
    return View(orders, ball, template, push, machine, radii, margins)


def _length(slots: Array) -> float:
    """Length of what differs between slots: what all have in common moves no point."""
    return float(np.linalg.norm(slots - slots.mean(axis=0)))


def _moved(
    candidates: Candidates, signs: Array, view: View, prices: Array, n_jobs: int | None
) -> Orders:
    """Each set as close as it can be to the template on its side; prices are changed in place."""
    orders = np.empty_like(view.orders)
    for sign in (1.0, -1.0):
        side = np.flatnonzero(signs == sign)
        features, target = candidates.of_sets(side).features, view.template + sign * view.push
        own = prices[side]
        orders[side] = nearest_candidates(target, features, prices=own, n_jobs=n_jobs)
        prices[side] = own
    return orders


def _moved_enough(candidates: Candidates, signs: Array, view: View, n_jobs: int | None) -> Orders:
    """Each set as close to the template as it can be without loss of its own margin."""

    def heights(orders: Orders) -> Array:
        """How far each set lies on its own side of the plane, up to scale and shift."""
        return np.asarray(signs * np.tensordot(candidates.ordered(orders), view.push, axes=2))

    def is_enough(fractions: Array) -> NDArray[np.bool_]:
        """Whether a part of the push is enough for each set; where it is, `orders` are changed."""
        push = (signs * fractions)[:, None, None] * view.push
        tried = nearest_candidates(view.template + push, candidates.features, n_jobs=n_jobs)
        enough = np.asarray(heights(tried) >= least)
        orders[enough] = tried[enough]
        return enough

    orders, least = view.orders.copy(), heights(view.orders)
    least -= 1e-9 * np.abs(least).max(initial=1e-300)
    low = np.zeros(len(orders))
    is_enough(np.ones(len(orders)))
    high = np.where(is_enough(low), 0.0, 1.0)
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        enough = is_enough(middle)
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return orders


@dataclass(frozen=True)
class PushedModel:
    """Decides on new sets by both sides of each view: one, or one for each of several classes."""

    placing: Placing
    views: tuple[View, ...]

    def decision(self, bags: Bags, *, n_jobs: int | None) -> Array:
        """Decision values, shape (n_sets,) of two classes, else (n_sets, n_classes)."""
        candidates = self.placing.candidates(bags)
        columns = []
        for view in self.views:
            sides = [self._permutations(view, sign, candidates, n_jobs) for sign in (1.0, -1.0)]
            values = [view.machine.decision(gathered(bags, side), n_jobs=n_jobs) for side in sides]
            columns.append(np.mean(values, axis=0))
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def predict(self, bags: Bags, *, n_jobs: int | None) -> NDArray[np.intp]:
        """Class of each set, as a number from 0."""
        return _largest(self.decision(bags, n_jobs=n_jobs))

    def permutations(self, bags: Bags, *, n_jobs: int | None) -> Orders:
        """Indices into the sets, in the order of the template on the side that is predicted."""
        candidates = self.placing.candidates(bags)
        # Of two classes both are seen by one view, the first as its negative side.
        sides = [(view, 1.0) for view in self.views]
        sides = [(self.views[0], -1.0), *sides] if len(sides) == 1 else sides
        seen = np.stack([self._permutations(*side, candidates, n_jobs) for side in sides])
        return np.asarray(seen[self.predict(bags, n_jobs=n_jobs), np.arange(len(bags))])

    def _permutations(
        self, view: View, sign: float, candidates: Candidates, n_jobs: int | None
    ) -> Orders:
        target = view.template + sign * view.push
        return candidates.points(nearest_candidates(target, candidates.features, n_jobs=n_jobs))


def learn_from_parted(problem: Problem, how: Pushing, found: Aligned | Parted) -> Learned:
    """The machines of all classes; classes not parted before a stop are seen as they were aligned.

    Arrays have no axis for a single machine.
    """
    parted = part(problem, found, replace(how, max_iter=0), Search())
    views, path = parted.views, parted.aligned.path
    permutations = np.stack([problem.candidates.points(view.orders) for view in views])
    centers = [
        np.einsum("n,nrd->rd", view.ball.weights, gathered(problem.bags, order))
        for view, order in zip(views, permutations, strict=True)
    ]
    one = len(views) == 1
    return Learned(
        model=PushedModel(problem.placing, views),
        template=centers[0] if one else np.stack(centers),
        permutations=permutations[0] if one else permutations,
        support=np.unique(np.concatenate([view.machine.svc.support_ for view in views])),
        radii=_side_by_side([view.radii for view in views]),
        margins=_side_by_side([view.margins for view in views]),
        n_rounds=len(path) + max(len(view.radii) - 1 for view in views),
        converged=parted.aligned.converged and all(view.converged for view in views),
    )


def _largest(decisions: Array) -> NDArray[np.intp]:
    """Class that decision values speak for."""
    if decisions.ndim == 1:
        return (decisions > 0.0).astype(np.intp)
    return np.asarray(decisions.argmax(axis=1))


def _side_by_side(paths: list[tuple[float, ...]]) -> Array:
    """Paths as columns, NaN where one is shorter; a single one by itself."""
    if len(paths) == 1:
        return np.array(paths[0])
    table = np.full((max(map(len, paths)), len(paths)), np.nan)
    for column, path in enumerate(paths):
        table[: len(path), column] = path
    return table


def check_push(lam: float) -> None:
    """Refuse to look for the smallest push where there is none."""
    if lam == 0.0:
        raise ValueError(
            "bisect=True looks for the smallest push between 0 and lam, got lam=0. Pass lam above "
            "0, the most to try, such as 0.1, or leave bisect out."
        )
