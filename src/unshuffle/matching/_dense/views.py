"""The last stages of the default method: partners chosen by all views of the items together.

A view is one kernel on each side. If views are independent given the matching, the likelihoods of
a pair multiply, so that gradients are added up view by view; a sum of kernels would also compare
each kernel with the others.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from unshuffle._quadratic.mean_field import interaction_spread, mean_field, one_hot
from unshuffle._quadratic.problem import QuadraticProblem, assign_free, matched_sums
from unshuffle._run.parallel import product
from unshuffle._run.types import Floats, Permutation
from unshuffle.matching._dense.pair import KernelPair

# Spectral powers of the stages, those between the full spectrum and the first of them, and the
# temperature of the shares in all.
FINE_POWERS = (0.35, 0.25, 0.15, 0.1)
BROAD_POWERS = (0.75, 0.5)
TEMPERATURE = 0.15
# Fine differences must lead halves of the pairs to this share of the same partners, or else this
# power decides.
LEAST_CONFIRMED = 1 / 3
DOUBTFUL_POWER = 0.75
# Added to the correlations between views, which are of unit size; larger values even out weights.
RIDGE = 1.0
SMALLEST_SHARE = 1e-9
TOL = 1e-2  # change per item below which shares are the same
LARGEST_CORRELATION = 1 - 1e-9


class Views:
    """Problems of all views at one spectral power, and their weights.

    The weights are those of the linear discriminant that tells the current partners from all other
    pairs by their gradients, one from each view, so that views count for what they add to the
    others. Without a linear cost, only the ratios between slopes matter.
    """

    def __init__(self, pair: KernelPair, power: float, permutation: Permutation) -> None:
        # A few digits suffice for shares.
        self.problems = [
            each.problem(power).in_single_precision() for each in pair.views or (pair,)
        ]
        self.cost, self.fixed = pair.cost, pair.weights
        self.weights: Floats = np.ones(len(self.problems)) / len(self.problems)
        if pair.weights is not None:
            self.weights = pair.weights / pair.weights.sum()
        self.unit: float | None = None  # of the cost: the spread of the gradient of all views
        if pair.cost is not None and pair.views:
            whole = pair.problem(power).without_cost()
            self.unit = interaction_spread(whole.gradient(permutation))

    def slopes(self, shares: Floats) -> Floats:
        """Gradient at a soft matching, without the cost; also finds the weights."""
        slopes = [_slopes_at(problem, shares) for problem in self.problems]
        if len(slopes) > 1 and self.fixed is None:
            self.weights = _discriminant(slopes, shares)
        return self._combine(slopes)

    def gradient(self, permutation: Permutation, rows: Permutation) -> Floats:
        """Gradient from the matched pairs of some rows, with their share of the cost."""
        partners = permutation[rows]
        gradient = self._combine([_slopes_of(each, rows, partners) for each in self.problems])
        if self.cost is not None:
            gradient -= self.cost * (rows.size / permutation.size)
        return gradient

    def information(self, permutation: Permutation) -> float:
        """Information of both sides about each other in all views, if similarities are Gaussian.

        A matching that fits one view well has more of it than one that fits several by chance.
        """
        each = np.array([agreement(problem, permutation) for problem in self.problems])
        return float(-np.log1p(-(np.clip(each, 0.0, LARGEST_CORRELATION) ** 2)).sum())

    def _combine(self, slopes: list[Floats]) -> Floats:
        if len(slopes) == 1:
            return slopes[0]
        total = sum(
            weight * (each / interaction_spread(each))
            for weight, each in zip(self.weights, slopes, strict=True)
        )
        scale = 1.0 if self.unit is None else self.unit / interaction_spread(np.asarray(total))
        return np.asarray(scale * total)


def agreement(problem: QuadraticProblem, permutation: Permutation) -> float:
    """Correlation of the similarities of both sides over the matched pairs."""
    trace, square = matched_sums(problem.K, problem.L, permutation)
    return trace / (float(np.linalg.norm(problem.K)) * np.sqrt(square) or 1.0)


def _slopes_at(problem: QuadraticProblem, shares: Floats) -> Floats:
    """Gradient of one view at a soft matching.

    Where the second collection is larger, its squares count as much as the best scale c of its
    similarities lets them: the loss is the sum of (K - c L)^2 over the matched pairs.
    """
    slopes: Floats = 2.0 * product(product(problem.K, shares), problem.L)
    if problem.squared_L is None:
        return slopes
    masses = shares.sum(axis=0)
    squares = masses @ problem.squared_L
    return _less_squares(slopes, squares, float(np.vdot(slopes, shares)), float(squares @ masses))


def _slopes_of(problem: QuadraticProblem, rows: Permutation, partners: Permutation) -> Floats:
    """Gradient of one view from some matched pairs."""
    slopes: Floats = 2.0 * product(problem.K[:, rows], problem.L[partners]).astype(np.float64)
    if problem.squared_L is None:
        return slopes
    squares = problem.squared_L[partners].sum(axis=0)
    return _less_squares(
        slopes, squares, float(slopes[rows, partners].sum()), float(squares[partners].sum())
    )


def _less_squares(slopes: Floats, squares: Floats, trace: float, square: float) -> Floats:
    """Slopes without the squares; `trace` and `square` are their sums over the matched pairs."""
    scale = max(0.0, 0.5 * trace) / square if square > 0 else 0.0
    return np.asarray(slopes - scale * squares)


def _discriminant(slopes: list[Floats], shares: Floats) -> Floats:
    """Nonnegative weights of slopes that tell partners from other pairs; they sum to 1."""
    centered = []
    for each in slopes:
        rest = each - each.mean(axis=0) - each.mean(axis=1)[:, None] + each.mean()
        centered.append((rest / (rest.std() or 1.0)).ravel())
    table = np.array(centered)
    means = table @ shares.ravel() / len(shares)
    factor = np.linalg.cholesky(table @ table.T / table.shape[1] + RIDGE * np.eye(len(table)))
    weights: Floats = nnls(factor.T, np.linalg.solve(factor, means))[0]
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def choose_partners(
    pair: KernelPair, starts: list[Permutation], report: Callable[[Permutation], None]
) -> tuple[Permutation, Views]:
    """Partners by soft shares around one of several matchings, and the views that chose them.

    From each matching, shares follow the spectral powers down to fine differences; from the first
    also by way of the broad shares of the full spectrum. The end of most information is kept.
    Weights found from few views are noisy, so shares by equal weights around it count too, unless
    a view is poor. If fine differences lead halves of the pairs to other partners, they are noise,
    and broad shares around it decide.
    """
    first, m = starts[0], len(pair.L)
    broad, _, _ = _follow(pair, [one_hot(first, m)], (1.0, *BROAD_POWERS), first, report)
    paths = [one_hot(start, m) for start in starts] + broad
    paths, weights, views = _follow(pair, paths, FINE_POWERS, first, report)
    ends = [assign_free(pair.full_problem, shares)[0] for shares in paths]
    best = int(np.argmax([views.information(end) for end in ends]))
    found, views.weights = ends[best], weights[best]
    if pair.views and pair.weights is None:
        even = replace(pair, weights=np.ones(len(pair.views)))
        others, _, _ = _follow(even, [one_hot(found, m)], FINE_POWERS, found, report)
        evenness = len(pair.views) * float(views.weights.min())
        found = assign_free(pair.full_problem, paths[best] + evenness * others[0])[0]
    broad, _, whole = _follow(pair, [one_hot(found, m)], (DOUBTFUL_POWER,), found, report)
    if _confirmed(pair, found, broad[0], report) >= LEAST_CONFIRMED:
        return found, views
    return assign_free(pair.full_problem, broad[0])[0], whole


def _follow(
    pair: KernelPair,
    paths: list[Floats],
    powers: tuple[float, ...],
    permutation: Permutation,
    report: Callable[[Permutation], None],
) -> tuple[list[Floats], list[Floats], Views]:
    """Shares of each path after all spectral powers, weights of the views, and the last views.

    Of paths that meet, the first is kept.
    """
    for power in powers:
        report(permutation)
        views = Views(pair, power, permutation)
        met: list[Floats] = []
        weights = []
        for shares in paths:
            found = mean_field(
                pair.full_problem, shares, temperature=TEMPERATURE, slopes=views.slopes
            )
            if all(np.abs(found - other).sum() > TOL * len(found) for other in met):
                met.append(found)
                weights.append(views.weights)
        paths = met
    return paths, weights, views


def _confirmed(
    pair: KernelPair,
    matching: Permutation,
    shares: Floats,
    report: Callable[[Permutation], None],
) -> float:
    """Share of partners that halves of the pairs lead to as well, each from broad shares."""
    order = np.random.RandomState(0).permutation(matching.size)
    frozen = np.isin(np.arange(matching.size), pair.frozen[:, 0])
    same = []
    for half in (order[::2], order[1::2]):
        rows = np.sort(half)
        columns = np.sort(matching[rows])
        start = shares[np.ix_(rows, columns)] + SMALLEST_SHARE
        start /= start.sum(axis=1, keepdims=True)
        try:
            part = pair.part(rows, columns)
            own = np.searchsorted(columns, matching[rows])
            again, _, _ = _follow(part, [start], FINE_POWERS, own, lambda _: report(matching))
        except ValueError:  # all items of a half are alike
            return 0.0
        found = columns[assign_free(part.full_problem, again[0])[0]]
        same.append((found == matching[rows])[~frozen[rows]])
    together = np.concatenate(same)
    return float(together.mean()) if together.size else 1.0
