"""How a permutation-invariant machine is learnt, and what is kept of it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, gathered
from unshuffle._progress import Reporter, Stopped
from unshuffle.svm._machine import Machine
from unshuffle.svm._margins import Separating
from unshuffle.svm._placing import Placing
from unshuffle.svm._slots import Array, Candidates, Orders, nearest_candidates
from unshuffle.svm._template import Aligned, Settling, first_template, share_outside


@dataclass(frozen=True)
class Settings:
    """Parameters of the estimator that learning needs, under their names there."""

    C: float
    lam: float
    template: str
    slack: float | None
    bisect: bool
    max_iter: int
    tol: float
    n_jobs: int | None


@dataclass(frozen=True)
class View:
    """An order of sets, and the machine that looks at them in it.

    Attributes
    ----------
    template, push : ndarray of shape (n_slots, n_features)
        New sets are assigned to the template, or to the template with the push added and taken
        away; the push is zero for lam = 0.
    machine : Machine
        Of all classes, or of one against the others.
    orders : ndarray of shape (n_sets, n_slots)
        Candidates of the sets learnt from.
    weights : ndarray of shape (n_sets,)
        Share of each of them in the template.
    """

    template: Array
    push: Array
    machine: Machine
    orders: Orders
    weights: Array


@dataclass(frozen=True)
class Model:
    """What decides on new sets.

    Attributes
    ----------
    placing : Placing
        How points become candidates.
    views : list of View
        One; for lam > 0 and several classes, one for each class.
    pushed : bool
        Whether sets are assigned to both sides.
    template : ndarray
        Templates as points, and
    fitted_permutations : ndarray
        indices into the sets learnt from, the first axis left out where there is one view.
    support : ndarray of shape (n_support,)
        Sets that support any machine.
    """

    placing: Placing
    views: list[View]
    pushed: bool
    template: Array
    fitted_permutations: Orders
    support: Orders

    def decision(self, bags: Bags, *, n_jobs: int | None) -> Array:
        """Decision values, shape (n_sets,) of two classes, else (n_sets, n_classes)."""
        candidates = self.placing.candidates(bags)
        columns = []
        for view in self.views:
            sides = [
                view.machine.decision(
                    gathered(bags, self._permutations(view, sign, candidates, n_jobs)),
                    n_jobs=n_jobs,
                )
                for sign in ((1.0, -1.0) if self.pushed else (0.0,))
            ]
            columns.append(np.mean(sides, axis=0))
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def predict(self, bags: Bags, *, n_jobs: int | None) -> NDArray[np.intp]:
        """Class of each set, as a number from 0."""
        if self.pushed:
            return _largest(self.decision(bags, n_jobs=n_jobs))
        permutations = self.permutations(bags, n_jobs=n_jobs)
        machine = self.views[0].machine
        return machine.predict(gathered(bags, permutations), n_jobs=n_jobs)

    def permutations(self, bags: Bags, *, n_jobs: int | None) -> Orders:
        """Indices into the sets, in the order of the template on the side that is predicted."""
        candidates = self.placing.candidates(bags)
        if not self.pushed:
            return self._permutations(self.views[0], 0.0, candidates, n_jobs)
        decisions = self.decision(bags, n_jobs=n_jobs)
        several = decisions.ndim == 2
        # Of two classes both are seen by one view, the first as its negative side.
        sides = [(view, 1.0) for view in self.views]
        sides = sides if several else [(self.views[0], -1.0), (self.views[0], 1.0)]
        seen = np.stack([self._permutations(*side, candidates, n_jobs) for side in sides])
        return np.asarray(seen[_largest(decisions), np.arange(len(bags))])

    def _permutations(
        self, view: View, sign: float, candidates: Candidates, n_jobs: int | None
    ) -> Orders:
        target = view.template + sign * view.push
        return candidates.points(nearest_candidates(target, candidates.features, n_jobs=n_jobs))


@dataclass
class Learning:
    """Aligns sets, moves them apart if asked to, and trains machines; keeps what it has.

    Attributes
    ----------
    bags : Bags
        Sets to learn from, as the user gave them.
    codes : ndarray of shape (n_sets,)
        Class of each as a number from 0.
    placing : Placing
        How points become candidates.
    settings : Settings
        Parameters.
    weights : ndarray of shape (n_sets,) or None
        Multiply C.
    reporter : Reporter
        Told after each round.
    """

    bags: Bags
    codes: NDArray[np.intp]
    placing: Placing
    settings: Settings
    weights: Array | None
    reporter: Reporter
    separatings: list[Separating] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = self.settings
        self.slack = share_outside(settings.template, settings.slack)
        self.candidates = self.placing.candidates(self.bags)
        self.settling = Settling(
            self.candidates,
            self.slack,
            settings.max_iter,
            settings.tol,
            self.reporter,
            settings.n_jobs,
        )

    @property
    def started(self) -> bool:
        """Whether there is anything to keep."""
        return self.settling.found is not None

    def run(self) -> None:
        """Learn; returns early where the callback asks for it."""
        try:
            self.settling.run(first_template(self.candidates.features, self.placing.n_points))
            for signs in self._problems():
                self.separatings.append(self._separating(signs, self.settings.max_iter))
                self.separatings[-1].run(self._aligned().orders)
        except Stopped:
            pass

    def _problems(self) -> list[Any]:
        """Signs of the sets in each problem of two sides; none for lam = 0."""
        if self.settings.lam == 0.0:
            return []
        n_classes = int(self.codes.max()) + 1
        positive = [1] if n_classes == 2 else range(n_classes)
        return [np.where(self.codes == each, 1.0, -1.0) for each in positive]

    def _separating(self, signs: Array, max_iter: int) -> Separating:
        return Separating(
            self.candidates,
            signs,
            lambda orders: self._machine(orders, signs),
            self.settings.lam,
            self.slack,
            self.settings.bisect,
            max_iter,
            self.settings.tol,
            self.reporter,
            self.settings.n_jobs,
        )

    def _machine(self, orders: Orders, y: NDArray[Any]) -> Machine:
        return Machine.trained(
            gathered(self.bags, self.candidates.points(orders)),
            y,
            self.placing.features.kernel,
            C=self.settings.C,
            weights=self.weights,
            n_jobs=self.settings.n_jobs,
        )

    def model(self) -> Model:
        """What was learnt; classes that a callback kept from being parted are only aligned."""
        views = self._views()
        permutations = np.stack([self.candidates.points(view.orders) for view in views])
        centers = [
            np.einsum("n,nrd->rd", view.weights, gathered(self.bags, order))
            for view, order in zip(views, permutations, strict=True)
        ]
        one = len(views) == 1
        return Model(
            self.placing,
            views,
            self.settings.lam > 0.0,
            centers[0] if one else np.stack(centers),
            permutations[0] if one else permutations,
            np.unique(np.concatenate([view.machine.svc.support_ for view in views])),
        )

    def _views(self) -> list[View]:
        problems = self._problems()
        if not problems:
            found = self.settling.ordered_last()
            machine = self._machine(found.orders, self.codes)
            none = np.zeros_like(found.template)
            return [View(found.template, none, machine, found.orders, found.ball.weights)]
        return [self._parted(place, signs) for place, signs in enumerate(problems)]

    def _parted(self, place: int, signs: Array) -> View:
        if place == len(self.separatings):
            self.separatings.append(self._separating(signs, 0))
        separating = self.separatings[place]
        if separating.found is None:
            separating.max_iter = 0
            separating.run(self._aligned().orders)
        found = separating.found
        assert found is not None
        return View(found.template, found.push, found.machine, found.orders, found.ball.weights)

    def _aligned(self) -> Aligned:
        assert self.settling.found is not None
        return self.settling.found

    def radius_path(self) -> Array:
        """Radius after each round; for lam > 0 of the later rounds, a column for each view."""
        if self.separatings:
            return _side_by_side([each.radii for each in self.separatings])
        return np.sqrt(np.maximum(self.settling.path, 0.0))

    def margin_path(self, model: Model) -> Array:
        """Margin after each round of lam > 0, else that of the machine."""
        if self.separatings:
            return _side_by_side([each.margins for each in self.separatings])
        margins = model.views[0].machine.margins
        return margins if margins.size == 1 else margins[np.newaxis]

    @property
    def n_rounds(self) -> int:
        """Rounds of aligning, and the most that any class took to be parted."""
        parting = max((len(each.radii) - 1 for each in self.separatings), default=0)
        return len(self.settling.path) + parting

    @property
    def converged(self) -> bool:
        """Whether all settled."""
        return self.settling.converged and all(each.converged for each in self.separatings)


def _largest(decisions: Array) -> NDArray[np.intp]:
    """Class that decision values speak for."""
    if decisions.ndim == 1:
        return (decisions > 0.0).astype(np.intp)
    return np.asarray(decisions.argmax(axis=1))


def _side_by_side(paths: list[list[float]]) -> Array:
    """Paths as columns, NaN where one is shorter; a single one by itself."""
    if len(paths) == 1:
        return np.array(paths[0])
    table = np.full((max(map(len, paths)), len(paths)), np.nan)
    for column, path in enumerate(paths):
        table[: len(path), column] = path
    return table
