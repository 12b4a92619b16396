"""Errors of vectors that were left out of a fit: between the others, and beyond their end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order
from sklearn.metrics import pairwise_distances_argmin

from unshuffle._core.matrix_exponentials import Motion
from unshuffle._run.types import Floats
from unshuffle.orbits._least_squares import connect
from unshuffle.orbits._locate import locate
from unshuffle.orbits._problem import PROTOTYPE, OrbitProblem, VectorPairs, build_problem

_FEWEST = 8  # rows
_END = 5  # one row of so many is left out at the end
_TURN = 24  # one of so many is left out between the others
_MOST_BETWEEN = 8  # of these, since a film hardly holds without them
_MOST = 50  # rows that are located; more tell hardly more
_CLOSED = 2.0  # gap between both ends, in median steps, up to which an orbit is closed

_LARGE = 0.1  # relative error that raises a doubt

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class HeldOutErrors:
    """Root mean squared errors of rows left out of a fit, relative to their lengths."""

    between: float = np.nan
    beyond: float = np.nan

    def list_doubts(self) -> list[str]:
        """What the errors say against the generators."""
        doubts = []
        if self.between > _LARGE:
            doubts.append(f"vectors left out of a fit between others are {self.between:.0%} off")
        if self.beyond > _LARGE:
            doubts.append(
                f"the last fifth of the data, left out of a fit, is {self.beyond:.0%} off"
            )
        return doubts

    def advise(self, n_generators: int, structure: str, n_components: int | None) -> str:
        """What may lower the errors."""
        ways = []
        if self.between > _LARGE:
            ways.append("pass more vectors, closer together")
            if n_generators > 1:
                ways.append(f"ask for fewer generators than {n_generators}")
            if structure == "general":
                ways.append('pass structure="skew" if lengths do not change')
            if n_components is not None:
                ways.append(f"change n_components={n_components}")
        if self.beyond > _LARGE:
            ways.append("pass a larger part of the motion, such as a full turn")
            ways.append("do not extrapolate")
        first, *others = ways
        return f"{first[0].upper()}{first[1:]}{''.join(f', or {way}' for way in others)}."


@dataclass(frozen=True)
class HeldOutFit:
    """A fit, and how to repeat it on some of the rows."""

    X: Floats
    targets: Floats | None
    problem: OrbitProblem
    generators: Floats
    coefficients: Floats
    options: dict[str, Any]  # of `build_problem`
    learn: Callable[[OrbitProblem], Floats]  # the matrices of a problem

    def leave_out(self) -> HeldOutErrors:
        """Errors of fits without some rows between the others, and without the end of the orbit.

        NaN where too few rows are left to tell. An orbit that closes has no end.
        """
        n, row = len(self.X), self.problem.prototype.row
        if n < _FEWEST:
            return HeldOutErrors()
        position = None
        if self.targets is None:
            position = _positions(self.problem, self.coefficients)
        connected = position is not None
        others = np.setdiff1d(np.arange(n), [row])
        count = int(np.clip(n // _TURN, 1, _MOST_BETWEEN))
        between = others[((np.arange(count) + 0.5) * len(others) / count).astype(np.intp)]
        errors = HeldOutErrors(self._error_of(between, connected))
        inner = self.problem.rows
        if position is None or inner is None or _is_closed(self.problem.pairs, inner, position):
            return errors
        beyond = np.argsort(position, kind="stable")[n - n // _END :]
        beyond = beyond[beyond != row]
        return replace(errors, beyond=self._error_of(beyond, connected))

    def _error_of(self, rows: Rows, connected: bool) -> float:
        """Root mean squared error of rows left out, relative to their lengths."""
        kept = np.setdiff1d(np.arange(len(self.X)), rows)
        try:
            part = self._without(kept)
            motion = Motion(self.learn(part), part.subspace)
            rows = rows[:: max(1, len(rows) // _MOST)]
            aims = self.X[rows] if self.targets is None else self.targets[rows]
            places = self._places(rows, kept, part, motion, connected)
        except ValueError:  # the rows that are left may not move at all
            return float("nan")
        center = 0.0 if part.subspace is None else part.subspace.mean
        return float(np.sqrt(np.sum((aims - places) ** 2) / np.sum((aims - center) ** 2)))

    def _without(self, kept: Rows) -> OrbitProblem:
        """The problem of some rows alone."""
        new = np.full(len(self.X) + 1, -1)  # the last stands for no row
        new[kept] = np.arange(len(kept))
        options = {**self.options}
        if not isinstance(options["pairs"], str):
            pairs = new[self.problem.pairs.indices]
            options["pairs"] = pairs[(pairs >= 0).all(axis=1)]
        start = self.problem.prototype
        options["prototype"] = start.vector if start.row == PROTOTYPE else int(new[start.row])
        if self.problem.subspace is not None:
            options["n_components"] = min(len(self.problem.subspace.components), len(kept) - 1)
        if self.problem.space.rotations() is not None and np.allclose(
            self.generators, -self.generators.transpose(0, 2, 1), atol=1e-12
        ):
            options["structure"] = "skew"  # no need to try others again
        return build_problem(
            self.X[kept], None if self.targets is None else self.targets[kept], **options
        )

    def _places(
        self, rows: Rows, kept: Rows, part: OrbitProblem, motion: Motion, connected: bool
    ) -> Floats:
        """Where the motion leads closest to rows: from the prototype, a source or a near row."""
        V, X = motion.generators, self.X
        aims = X[rows] if self.targets is None else self.targets[rows]
        if connected:
            inner = part.inside(aims)
            c = locate(V, part.prototype.inner, inner, slack=0.0, seed=part.seed)
            return motion.moved(part.prototype.vector, c)
        sources = X[rows]
        if self.targets is None:
            sources = X[kept[pairwise_distances_argmin(aims, X[kept])]]
        c = connect(V, part.inside(aims), part.inside(sources))
        moved = [motion.moved(x, one[None])[0] for x, one in zip(sources, c, strict=True)]
        return np.array(moved)


def _positions(problem: OrbitProblem, coefficients: Floats) -> Floats | None:
    """Coefficients of the rows along the widest direction, added up from pair to pair.

    None if the pairs do not connect all rows, which may then lie on several orbits. The prototype
    is not at the upper end.
    """
    n, start = problem.n_points, problem.prototype.row
    target, source = (np.where(ends == PROTOTYPE, n, ends) for ends in problem.pairs.indices.T)
    start = n if (source == n).any() else max(start, 0)
    steps = {(t, s): c for t, s, c in zip(target, source, coefficients, strict=True)}
    graph = coo_array((np.ones(len(target)), (target, source)), shape=(n + 1, n + 1)).tocsr()
    order, before = breadth_first_order(graph, start, directed=False)
    if len(np.setdiff1d(order, [n])) < n:
        return None
    places = np.zeros((n + 1, coefficients.shape[1]))
    for row in order[1:]:
        step = steps.get((row, before[row]))
        places[row] = places[before[row]] + (-steps[before[row], row] if step is None else step)
    centered = places[:n] - places[:n].mean(axis=0)
    position = centered @ np.linalg.svd(centered, full_matrices=False)[2][0]
    from_start = position if start == n else position - position[start]
    return np.asarray(position if from_start.max() >= -from_start.min() else -position)


def _is_closed(pairs: VectorPairs, X: Floats, position: Floats) -> bool:
    """Whether the last row is about one step away from the first, as after a full turn."""
    step = pairs.scale * float(np.median(np.linalg.norm(pairs.targets - pairs.sources, axis=1)))
    gap = float(np.linalg.norm(X[position.argmax()] - X[position.argmin()]))
    return gap <= _CLOSED * step
