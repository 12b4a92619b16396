"""The paper's push for margin_weight > 0: classes are moved apart while sets are aligned."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.bags import Bags, gathered
from unshuffle._run.search import Search
from unshuffle._run.types import Floats, Orders
from unshuffle.svm._classifiers import LearnedClassifier, MarginProblem, OrderedSetSVC, train
from unshuffle.svm._templates import (
    Aligned,
    Ball,
    Candidates,
    Preparation,
    centered_ball,
    nearest_candidates,
)

# Bisection steps in the search for the smallest sufficient push.
N_HALVINGS = 6


@dataclass(frozen=True)
class Separation:
    """One class against the others: ordered sets, their template, and the plane between them.

    The push is the normal of the plane, `margin_weight` times as long as the template. It is added
    to the template for sets of the positive class and subtracted for the others.
    """

    orders: Orders  # candidate of each set for each template point, shape (n_sets, n_points)
    ball: Ball  # around the ordered sets
    template: Floats  # its center, shape (n_points, n_features)
    push: Floats
    classifier: OrderedSetSVC
    radii: tuple[float, ...]  # at the start and after each round
    margins: tuple[float, ...]
    converged: bool = False

    @property
    def bound(self) -> float:
        """Squared radius over squared margin, to which the error bound is proportional."""
        return (self.radii[-1] / self.margins[-1]) ** 2  # eq. (4)


@dataclass(frozen=True)
class Separated:
    """Aligned sets, and the classes separated so far, each with orders of its own."""

    aligned: Aligned
    separations: tuple[Separation, ...] = ()


def separate_classes(
    problem: MarginProblem, found: Aligned | Separated, search: Search[Any]
) -> Separated:
    """Separate each remaining class from the others, one after another."""
    separated = found if isinstance(found, Separated) else Separated(found)
    n_classes = int(problem.training.codes.max()) + 1
    positive = [1] if n_classes == 2 else list(range(n_classes))
    for each in positive[len(separated.separations) :]:
        signs = np.where(problem.training.codes == each, 1.0, -1.0)
        separated = _separate_class(problem, separated, signs, search)
    return separated


def _separate_class(
    problem: MarginProblem, separated: Separated, signs: Floats, search: Search[Any]
) -> Separated:
    """Assign sets to the template, pushed to the side of their class, until convergence.

    Contrary to the paper, radius and margin need not improve in a round: moving one set moves the
    plane and the center for all others. Each round is offered to the search.
    """
    candidates, n_classes = problem.candidates, len(separated.separations) + 1
    max_iter = problem.preparation.max_iter

    def joined(one: Separation) -> Separated:
        return replace(separated, separations=(*separated.separations, one))

    now = _separation(problem, separated.aligned.orders, signs)
    prices = np.zeros(now.orders.shape)
    search.offer(joined(now), rank=(n_classes, 0))
    for k in range(max_iter):
        if problem.bisect:
            orders = _push_enough(candidates, signs, now, problem.n_jobs)
        else:
            orders = _push(candidates, signs, now, prices, problem.n_jobs)
        if np.array_equal(orders, now.orders):
            return joined(replace(now, converged=True))
        before = now
        now = _separation(problem, orders, signs, before)
        search.offer(joined(now), rank=(n_classes, k + 1))
        order, share = candidates.points(orders), (k + 1) / max_iter
        search.step(-now.bound, order, stage="separating classes", fraction=share)
        if abs(now.bound - before.bound) <= problem.preparation.tol * before.bound:
            return joined(replace(now, converged=True))
    return joined(now)


def _separation(
    problem: MarginProblem, orders: Orders, signs: Floats, before: Separation | None = None
) -> Separation:
    """Center and plane of the sets in these orders, following the separation before."""
    ordered = problem.candidates.ordered(orders)
    ball, template = centered_ball(ordered, problem.preparation.slack, problem.training.shares)
    classifier = train(problem, orders, signs)
    normal = np.tensordot(classifier.dual_weights, ordered, axes=1)
    push = problem.margin_weight * normal * _length(template) / max(_length(normal), 1e-300)
    radii, margins = ((), ()) if before is None else (before.radii, before.margins)
    radii = (*radii, float(np.sqrt(max(ball.cost, 0.0))))
    margins = (*margins, float(classifier.margins[0]))
    return Separation(orders, ball, template, push, classifier, radii, margins)


def _length(points: Floats) -> float:
    """Length of the differences between points: a common shift changes no assignment."""
    return float(np.linalg.norm(points - points.mean(axis=0)))


def _push(
    candidates: Candidates, signs: Floats, now: Separation, prices: Floats, n_jobs: int | None
) -> Orders:
    """Assign each set to the template of its side; prices change in place."""
    orders = np.empty_like(now.orders)
    for sign in (1.0, -1.0):
        side = np.flatnonzero(signs == sign)
        features, target = candidates.features_of(side), now.template + sign * now.push
        own = prices[side]
        orders[side] = nearest_candidates(target, features, prices=own, n_jobs=n_jobs)
        prices[side] = own
    return orders


def _push_enough(
    candidates: Candidates, signs: Floats, now: Separation, n_jobs: int | None
) -> Orders:
    """Assign each set as close to the template as it can be without losing its own margin."""

    def heights(orders: Orders) -> Floats:
        """How far each set lies on its own side of the plane, up to scale and shift."""
        return np.asarray(signs * np.tensordot(candidates.ordered(orders), now.push, axes=2))

    def is_enough(fractions: Floats) -> NDArray[np.bool_]:
        """Whether a fraction of the push is enough for each set; if so, `orders` change."""
        push = (signs * fractions)[:, None, None] * now.push
        tried = nearest_candidates(now.template + push, candidates.features, n_jobs=n_jobs)
        enough = np.asarray(heights(tried) >= least)
        orders[enough] = tried[enough]
        return enough

    orders, least = now.orders.copy(), heights(now.orders)
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
class PushedClassifier:
    """Classifies new sets by both sides of each separation."""

    preparation: Preparation
    separations: tuple[Separation, ...]  # one for two classes, else one for each class

    def decision(self, sets: Bags, *, n_jobs: int | None) -> Floats:
        """Decision values, shape (n_sets,) with two classes, else (n_sets, n_classes)."""
        candidates = self.preparation.candidates(sets)
        columns = []
        for one in self.separations:
            sides = [_on_side(one, sign, candidates, n_jobs) for sign in (1.0, -1.0)]
            values = [
                one.classifier.decision(gathered(sets, side), n_jobs=n_jobs) for side in sides
            ]
            columns.append(np.mean(values, axis=0))
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def predict(self, sets: Bags, *, n_jobs: int | None) -> NDArray[np.intp]:
        """Index of the class of each set."""
        decisions = self.decision(sets, n_jobs=n_jobs)
        if decisions.ndim == 1:
            return (decisions > 0.0).astype(np.intp)
        return np.asarray(decisions.argmax(axis=1))

    def permutations(self, sets: Bags, *, n_jobs: int | None) -> Orders:
        """Indices into the sets, in the order of the template on the predicted side."""
        candidates = self.preparation.candidates(sets)
        # With two classes, the first is the negative side of the only separation.
        sides = [(one, 1.0) for one in self.separations]
        sides = [(self.separations[0], -1.0), *sides] if len(sides) == 1 else sides
        by_class = np.stack([_on_side(*side, candidates, n_jobs) for side in sides])
        return np.asarray(by_class[self.predict(sets, n_jobs=n_jobs), np.arange(len(sets))])


def _on_side(one: Separation, sign: float, candidates: Candidates, n_jobs: int | None) -> Orders:
    """Indices into the sets, in the order of the template on one side."""
    target = one.template + sign * one.push
    return candidates.points(nearest_candidates(target, candidates.features, n_jobs=n_jobs))


def learn_separated(problem: MarginProblem, found: Aligned | Separated) -> LearnedClassifier:
    """Combine the classifiers of all classes; those not reached before a stop stay as aligned."""
    no_rounds = replace(problem.preparation, max_iter=0)
    separated = separate_classes(replace(problem, preparation=no_rounds), found, Search())
    separations, path = separated.separations, separated.aligned.path
    permutations = np.stack([problem.candidates.points(one.orders) for one in separations])
    centers = [
        np.einsum("n,nrd->rd", one.ball.weights, gathered(problem.training.sets, order))
        for one, order in zip(separations, permutations, strict=True)
    ]
    return LearnedClassifier(
        model=PushedClassifier(problem.preparation, separations),
        templates=np.stack(centers),
        permutations=permutations,
        support=np.unique(np.concatenate([one.classifier.svc.support_ for one in separations])),
        radii=_as_columns([one.radii for one in separations]),
        margins=_as_columns([one.margins for one in separations]),
        n_rounds=len(path) + max(len(one.radii) - 1 for one in separations),
        converged=separated.aligned.converged and all(one.converged for one in separations),
    )


def _as_columns(paths: list[tuple[float, ...]]) -> Floats:
    """Paths as columns, padded with NaN."""
    table = np.full((max(map(len, paths)), len(paths)), np.nan)
    for column, path in enumerate(paths):
        table[: len(path), column] = path
    return table


def check_push(margin_weight: float) -> None:
    """Refuse bisection without a push."""
    if margin_weight == 0.0:
        raise ValueError(
            "bisect=True searches for the smallest push up to margin_weight, got margin_weight=0. "
            "Pass a positive margin_weight such as 0.1, or leave bisect out."
        )
