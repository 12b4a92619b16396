"""The paper's loop: sets move towards their centre, and away from the plane between classes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unshuffle._progress import Reporter
from unshuffle.svm._ball import Ball
from unshuffle.svm._machine import Machine
from unshuffle.svm._slots import Array, Candidates, Orders, nearest_candidates
from unshuffle.svm._template import centered_on

# Halvings of the range in which the smallest sufficient weight of the margin lies.
N_HALVINGS = 6


@dataclass(frozen=True)
class Separated:
    """Sets of two classes in slots, with the template and the plane that belong to them.

    Attributes
    ----------
    orders : ndarray of shape (n_sets, n_slots)
        The candidate of each set in each slot.
    ball : Ball
        Around the ordered sets.
    template : ndarray of shape (n_slots, n_features)
        Its centre.
    push : ndarray of shape (n_slots, n_features)
        What is added to the template for sets of the positive class, and taken away for those of
        the negative: the normal of the plane, `lam` times as long as the template.
    machine : Machine
        The plane.
    """

    orders: Orders
    ball: Ball
    template: Array
    push: Array
    machine: Machine


@dataclass
class Separating:
    """Assigns sets to the template, pushed to the side of their class, until nothing moves.

    Neither the radius nor the margin is sure to improve in a round, unlike the paper says: moving
    one set moves the plane and the centre for all others.

    Attributes
    ----------
    candidates : Candidates
        Points of the sets.
    signs : ndarray of shape (n_sets,)
        1 for sets of the positive class, -1 for the others.
    train : callable
        Machine from the orders of all sets.
    lam : float
        Length of the push relative to the template; larger parts the classes more.
    slack : float or None
        Of the ball.
    bisect : bool
        Whether each set is pushed only as far as its own margin needs.
    max_iter : int
        Most rounds.
    tol : float
        Relative change of (radius / margin)^2 at which to stop; larger stops sooner.
    reporter : Reporter
        Told after each round.
    n_jobs : int or None
        Threads over sets; more are faster.
    found : Separated or None
        What was reached so far.
    radii, margins : list of float
        Radius of the ball and margin, at the start and after each round.
    converged : bool
        Whether it settled.
    """

    candidates: Candidates
    signs: NDArray[np.float64]
    train: Callable[[Orders], Machine]
    lam: float
    slack: float | None
    bisect: bool
    max_iter: int
    tol: float
    reporter: Reporter
    n_jobs: int | None = None
    found: Separated | None = None
    radii: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    converged: bool = False

    def run(self, orders: Orders) -> None:
        """Go on from these orders until the sets settle, or a callback stops it."""
        self.prices = np.zeros(orders.shape)
        self._see(orders)
        for round_ in range(self.max_iter):
            assert self.found is not None
            orders = self._moved(self.found)
            if np.array_equal(orders, self.found.orders):
                self.converged = True
                return
            before = self._bound()
            self._see(orders)
            self.reporter.step(
                -self._bound(),
                self.candidates.points(orders),
                stage="parting classes",
                fraction=(round_ + 1) / self.max_iter,
            )
            if abs(self._bound() - before) <= self.tol * before:
                self.converged = True
                return

    def _bound(self) -> float:
        """Squared radius over squared margin, to which the bound on the error is proportional."""
        return (self.radii[-1] / self.margins[-1]) ** 2  # eq. (4)

    def _see(self, orders: Orders) -> None:
        """Centre and plane of the sets in these orders."""
        ordered = self.candidates.ordered(orders)
        ball, template = centered_on(ordered, self.slack)
        machine = self.train(orders)
        normal = np.tensordot(machine.pulls, ordered, axes=1)
        push = self.lam * normal * _length(template) / max(_length(normal), 1e-300)
        self.found = Separated(orders, ball, template, push, machine)
        self.radii.append(float(np.sqrt(max(ball.cost, 0.0))))
        self.margins.append(float(machine.margins[0]))

    def _moved(self, now: Separated) -> Orders:
        if self.bisect:
            return self._moved_enough(now)
        orders = np.empty_like(now.orders)
        for sign in (1.0, -1.0):
            side = np.flatnonzero(self.signs == sign)
            features = self.candidates.of_sets(side).features
            target = now.template + sign * now.push
            prices = self.prices[side]
            orders[side] = nearest_candidates(target, features, prices=prices, n_jobs=self.n_jobs)
            self.prices[side] = prices
        return orders

    def _moved_enough(self, now: Separated) -> Orders:
        """Each set as close to the template as it can be without loss of its own margin."""
        least = self._heights(now, now.orders)
        least -= 1e-9 * np.abs(least).max(initial=1e-300)
        orders = now.orders.copy()
        low, high = np.zeros(len(orders)), np.ones(len(orders))
        for fractions in (high, low):
            enough = self._try(now, fractions, least, orders)
        high = np.where(enough, 0.0, 1.0)
        for _ in range(N_HALVINGS):
            middle = 0.5 * (low + high)
            enough = self._try(now, middle, least, orders)
            high, low = np.where(enough, middle, high), np.where(enough, low, middle)
        return orders

    def _try(
        self, now: Separated, fractions: Array, least: Array, orders: Orders
    ) -> NDArray[np.bool_]:
        """Whether a part of the push is enough for each set; where it is, `orders` are changed."""
        tried = self._pushed(now, fractions)
        enough = np.asarray(self._heights(now, tried) >= least)
        orders[enough] = tried[enough]
        return enough

    def _pushed(self, now: Separated, fractions: Array) -> Orders:
        push = (self.signs * fractions)[:, None, None] * now.push
        return nearest_candidates(
            now.template + push, self.candidates.features, n_jobs=self.n_jobs
        )

    def _heights(self, now: Separated, orders: Orders) -> Array:
        """How far each set lies on its own side of the plane, up to scale and shift."""
        heights = np.tensordot(self.candidates.ordered(orders), now.push, axes=2)
        return np.asarray(self.signs * heights)


def _length(slots: Array) -> float:
    """Length of what differs between slots: what all have in common moves no point."""
    return float(np.linalg.norm(slots - slots.mean(axis=0)))
