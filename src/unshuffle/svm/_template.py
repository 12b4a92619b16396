"""A template that sets are aligned to, and which follows them in turn."""

from dataclasses import dataclass, field

import numpy as np

from unshuffle._bags import Bags, equal_sizes, gathered
from unshuffle._parameters import check_kernel_memory
from unshuffle._progress import Reporter
from unshuffle.svm._ball import Ball, enclosing_ball
from unshuffle.svm._slots import Array, Candidates, Orders, nearest_candidates

# Matrices of n_sets^2 numbers that a ball, or a machine, takes at its peak.
N_MATRICES = 4
# Rounds in which the template moves so far that prices of the one before are no help.
N_COLD = 2


@dataclass(frozen=True)
class Aligned:
    """Sets in the order of a template, and the template they have together.

    Attributes
    ----------
    orders : ndarray of shape (n_sets, n_slots)
        The candidate of each set in each slot.
    ball : Ball
        Around the ordered sets; its weights make the template of them.
    template : ndarray of shape (n_slots, n_features)
        Centre of that ball.
    """

    orders: Orders
    ball: Ball
    template: Array


def share_outside(template: str, slack: float | None) -> float | None:
    """Slack of the ball whose centre is the template: that of slack 1 is the mean."""
    if template == "mean":
        return 1.0
    return None if slack is None else float(slack)  # a NumPy half would lose digits


def first_template(features: Bags, n_slots: int) -> Array:
    """The most ordinary set, whose sorted features are closest to those of all in the mean.

    Sorted one by one they do not depend on any order, so neither does the choice.
    """
    chosen = equal_sizes(features, n_slots, missing=False, seed=0)
    sets = gathered(features, chosen)
    profiles = np.sort(sets, axis=1).reshape(len(sets), -1)
    profiles -= profiles.mean(axis=0)
    return np.asarray(sets[np.einsum("nr,nr->n", profiles, profiles).argmin()])


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


@dataclass
class Settling:
    """Assigns sets to a template, moves it to their centre, and so on until nothing moves.

    The cost never rises: assignment brings every set closer to the centre, and the new ball is the
    best around the sets where they are now.

    Attributes
    ----------
    candidates : Candidates
        Points of the sets.
    slack : float or None
        Of the ball.
    max_iter : int
        Most rounds.
    tol : float
        Relative fall of the cost at which to stop; larger stops sooner.
    reporter : Reporter
        Told after each round.
    n_jobs : int or None
        Threads over sets; more are faster.
    found : Aligned or None
        What was reached so far.
    path : list of float
        Cost after each round.
    converged : bool
        Whether it settled.
    """

    candidates: Candidates
    slack: float | None
    max_iter: int
    tol: float
    reporter: Reporter
    n_jobs: int | None = None
    found: Aligned | None = None
    path: list[float] = field(default_factory=list)
    converged: bool = False

    def run(self, template: Array) -> None:
        """Go on from this template until the sets settle, or a callback stops it."""
        prices = np.zeros((len(self.candidates), len(template)))
        while len(self.path) < self.max_iter and not self.converged:
            orders = self._nearest(template, prices)
            if self.found is not None and np.array_equal(orders, self.found.orders):
                self.converged = True
                return
            ball, template = centered_on(self.candidates.ordered(orders), self.slack)
            if self.path and self.path[-1] - ball.cost <= self.tol * ball.cost:
                self.converged = True
            self.path.append(ball.cost)
            self.found = Aligned(orders, ball, template)
            self.reporter.step(
                -ball.cost,
                self.candidates.points(orders),
                stage="aligning sets",
                fraction=len(self.path) / self.max_iter,
            )

    def ordered_last(self) -> Aligned:
        """What was found, the sets assigned once more to the template as it is now."""
        assert self.found is not None
        orders = self._nearest(self.found.template, None)
        return Aligned(orders, self.found.ball, self.found.template)

    def _nearest(self, template: Array, prices: Array | None) -> Orders:
        if prices is not None and len(self.path) < N_COLD:
            prices[:] = 0.0
        return nearest_candidates(
            template, self.candidates.features, prices=prices, n_jobs=self.n_jobs
        )
