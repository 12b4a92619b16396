"""Gaussian mixtures of sets in input space: how they are fitted and multiplied."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import column_moments
from unshuffle._core.bags import Bags
from unshuffle._core.distances import mirror_upper
from unshuffle._core.parameters import check_memory
from unshuffle._run.parallel import WORK_PER_CALL, map_parallel, per_call, spans
from unshuffle._run.printing import short_repr, warn_user
from unshuffle._run.types import Floats, Indices

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
# Sets, and about as many points, that one thread fits at a time.
CHUNK, CHUNK_POINTS = 32, 4096
# Rounds after which starts are compared.
SHORT_ROUNDS = 5
# Most terms of products held at a time, so that they stay in a processor's cache.
TABLE = 2**15
# k-means runs before each start, of which the best is taken.
N_TRIALS = 2
N_FOLDS = 3


class Mixture(NamedTuple):
    """Density of one set: a weighted sum of Gaussians.

    The set kernels that fit densities return one for each set from their method `mixtures`.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        Share of each component; they sum to one.
    means : ndarray of shape (n_components, n_features)
        Mean of each component, in the units of the points.
    covariances : ndarray of shape (n_components, n_features, n_features)
        Covariance of each component, in the squares of these units.

    See Also
    --------
    SetKernel : Base class; says how to write a set kernel of your own.

    Examples
    --------
    >>> from unshuffle.kernels import BhattacharyyaKernel
    >>> sets = [[[0.0], [2.0]], [[4.0], [6.0]]]
    >>> mixture = BhattacharyyaKernel().fit(sets).mixtures(sets)[1]
    >>> mixture.means
    array([[5.]])
    """

    weights: Floats
    means: Floats
    covariances: Floats

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class FitSettings:
    """How mixtures are fitted."""

    n_components: int | str  # or "bic" or "cv", which choose it for each set
    max_components: int  # most that are tried
    covariance_type: str  # one of `COVARIANCE_TYPES`
    floor: float  # added to all variances, so that no component shrinks onto a point
    max_iter: int  # most rounds
    tol: float  # gain per point below which to stop
    draws: Floats  # numbers from 0 to 1 that select the starts, the same for every set


class Fits(NamedTuple):
    """Mixtures of several sets, their components stacked."""

    n_components: Indices  # of each set
    weights: Floats  # (n_components_in_all,)
    means: Floats  # (n_components_in_all, d)
    spreads: Floats  # (n_components_in_all, ...): lower triangles, diagonals or factors
    scores: Floats  # log-likelihoods
    rounds: Indices  # of each fit
    converged: NDArray[np.bool_]


@dataclass(frozen=True)
class Gaussians:
    """Components of the mixtures of several sets, ready to be compared."""

    logs: Floats  # added to the logarithm of every product of a component
    means: Floats  # (n_components_in_all, d)
    spreads: Floats  # covariances, or factors of them
    offsets: Indices  # where the components of each set begin

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, some: slice) -> Self:
        rows = slice(self.offsets[some.start], self.offsets[some.stop])
        offsets = self.offsets[some.start : some.stop + 1] - self.offsets[some.start]
        return type(self)(self.logs[rows], self.means[rows], self.spreads[rows], offsets)


class Mixtures(Gaussians):
    """Components whose `spreads` are rows of lower triangles, or diagonals."""

    def log_products(self, other: "Mixtures | None") -> Floats:
        """Logarithms of the integrals of products, exactly symmetric if `other` is None."""
        beside = self if other is None else other
        firsts = np.arange(len(self)) if other is None else np.zeros(len(self), dtype=np.intp)
        found = self._log_products(beside, firsts, np.full(len(self), len(beside), dtype=np.intp))
        return mirror_upper(found) if other is None else found

    def own_log_products(self) -> Floats:
        """Logarithms of the integrals of the squares."""
        own = []
        for start in range(0, len(self), CHUNK):
            part = self[start : min(start + CHUNK, len(self))]
            sets = np.arange(len(part))
            own.append(part._log_products(part, sets, sets + 1).diagonal())
        return np.concatenate(own)

    def _log_products(self, beside: "Mixtures", firsts: Indices, lasts: Indices) -> Floats:
        """Products of each set with sets `firsts` to before `lasts` of the others."""
        from unshuffle.kernels.sets._models.pair_loops import LANE_NUMBERS, log_sums, log_terms

        d = self.means.shape[1]
        table, other = self._table(1.0), beside._table(-1.0)
        lanes = np.empty((len(table) + d + 3, max(64, LANE_NUMBERS // len(table) // 32 * 32)))
        sizes = np.diff(self.offsets)
        # Writable, so that loops are compiled once: memory-mapped arrays are read-only.
        offsets, other_offsets = self.offsets.copy(), beside.offsets.copy()
        from_lane, to_lane = np.repeat(other_offsets[[firsts, lasts]], sizes, axis=1)
        found = np.zeros((len(self), len(beside)))
        pairs = len(self.logs) / len(self) * len(beside.logs)  # of components, for each set
        work = pairs * max(20.0 + len(table) * d / 3, WORK_PER_CALL / TABLE)
        for start, stop in spans(len(self), work):
            begin, end = offsets[start], offsets[stop]
            terms = np.empty((end - begin, len(beside.logs)))
            log_terms(table, other, d, begin, from_lane, to_lane, lanes, terms)
            some = slice(start, stop)
            own_offsets = offsets[start : stop + 1] - begin
            log_sums(terms, own_offsets, other_offsets, firsts[some], lasts[some], found[some])
        return found

    def _table(self, sign: float) -> Floats:
        """Columns of numbers that `log_terms` adds, with means times `sign`."""
        logs = 2.0 * self.logs[:, np.newaxis]
        return np.array(np.hstack([self.spreads, sign * self.means, logs]).T, order="C")


def fit_all(
    fit: Callable[[Bags, Indices], Fits],
    sets: Bags,
    settings: FitSettings,
    length: int,
    n_jobs: Any,
) -> Fits:
    """Fit sorted sets by a function of some of them and of their numbers of distinct points.

    Warns once about all sets with few points. A component takes `length` numbers.
    """
    distinct = count_distinct(sets)
    warn_of_few_points(distinct, settings)
    n_sets, largest = len(sets), settings.max_components
    check_memory(
        2 * 8 * n_sets * largest * length,
        what=f"Describing {n_sets:,} sets by {largest} Gaussians of {length:,} numbers each",
        instead='Pass fewer sets or components, covariance_type="diag", or a smaller rank.',
    )
    chunks = np.stack([np.arange(n_sets) // CHUNK, sets.offsets[:-1] // CHUNK_POINTS])
    edges = np.flatnonzero((chunks[:, 1:] != chunks[:, :-1]).any(axis=0)) + 1
    bounds = list(pairwise([0, *edges.tolist(), n_sets]))

    def fit_some(some: tuple[int, int]) -> Fits:
        return fit(sets.part(*some), distinct[slice(*some)])

    return join_fits(map_parallel(fit_some, bounds, n_jobs=n_jobs))


def warn_of_few_points(distinct: Indices, settings: FitSettings) -> None:
    """Warn once about all sets with fewer distinct points than components."""
    most = settings.n_components
    if isinstance(most, int) and (distinct < most).any():
        warn_user(
            f"{(distinct < most).sum()} of {distinct.size} sets have fewer than "
            f"n_components={most} distinct points (the smallest {distinct.min()}). Each of these "
            'gets one component per distinct point; pass a smaller n_components, or "bic".'
        )


def join_fits(parts: list[Fits]) -> Fits:
    """One collection of mixtures from several."""
    return Fits(*map(np.concatenate, zip(*parts, strict=True)))


def fit_sets(sets: Bags, n_components: Indices, settings: FitSettings) -> Fits:
    """Mixtures of sets with the given numbers of components."""
    n_sets, m, d, n = len(sets), int(n_components.max()), sets.width, len(sets.points)
    n_starts, n_trials = settings.draws.shape[:2]
    p = {"diag": d, "spherical": 1}.get(settings.covariance_type, d * (d + 1) // 2)
    mixture = np.zeros((n_sets, m)), np.zeros((n_sets, m, d)), np.zeros((n_sets, m, p))
    columns = Columns(with_ones(sets.points), sets.offsets.copy(), n_components)
    likeliest = np.zeros((1, m, n))
    likeliest[0, 0] = 1.0
    best = np.full(n_sets, -np.inf)
    for start, stop in spans(n_starts if m > 1 else 0, n * m * (100.0 + 10.0 * p)):
        draws = settings.draws[start:stop].reshape(-1, settings.draws.shape[2])
        labels = cluster(columns, draws.copy(), n_trials)
        held = labels[:, np.newaxis] == np.arange(m)[:, np.newaxis]
        shares = np.array(held, dtype=np.float64, order="C")  # or loops are compiled twice
        stop_at = min(settings.max_iter, SHORT_ROUNDS)
        state = run_rounds(columns, settings, mixture, shares, stop_at)
        scores = np.nan_to_num(state[:, :, 0], nan=-np.inf)
        for i, likely in enumerate(scores.argmax(axis=1)):
            if scores[i, likely] > best[i]:
                best[i], points = scores[i, likely], slice(*sets.offsets[i : i + 2])
                likeliest[0, :, points] = shares[likely, :, points]
    state = run_rounds(columns, settings, mixture, likeliest, settings.max_iter)
    scores, rounds, converged = state[:, 0].T
    weights, means, covariances = mixture
    if settings.covariance_type == "tied":
        covariances[:] = covariances[:, :1]
    elif settings.covariance_type == "spherical":
        covariances = np.repeat(covariances, d, axis=2)
    found = np.arange(m) < n_components[:, np.newaxis]
    parts = weights[found], means[found], covariances[found]
    return Fits(n_components, *parts, scores, rounds.astype(np.intp), converged > 0.0)


class Columns(NamedTuple):
    """Several sets as compiled loops take them."""

    X: Floats  # (d + 1, n_points_in_all), the last row ones
    offsets: Indices  # where the points of each set begin
    n_components: Indices  # of each set


def with_ones(points: Floats) -> Floats:
    """Columns of points above a row of ones."""
    X = np.ones((points.shape[1] + 1, len(points)))
    X[:-1] = points.T
    return X


def cluster(columns: Columns, draws: Floats, n_trials: int) -> Indices:
    """Labels of the points, (n_starts, n_points_in_all), the best of some trials for each."""
    from unshuffle.kernels.sets._models import mixture_loops as loops

    (height, n), sizes = columns.X.shape, np.diff(columns.offsets)
    labels = np.zeros((len(draws), n), dtype=np.intp)
    totals = np.zeros((len(sizes), len(draws)))
    centers, lanes = np.empty((height + 1, columns.n_components.max())), np.zeros((2, sizes.max()))
    loops.cluster(*columns, draws, centers, lanes, labels, totals)
    best = totals.reshape(len(sizes), -1, n_trials).argmin(axis=2)
    trials = labels.reshape(-1, n_trials, n)
    return np.take_along_axis(trials, np.repeat(best, sizes, axis=0).T[:, np.newaxis], axis=1)[
        :, 0
    ]


def run_rounds(
    columns: Columns, settings: FitSettings, mixture: tuple[Floats, Floats, Floats],
    shares: Floats, stop: int, *, fixed: bool = False,
) -> Floats:  # fmt: skip
    """Rounds of expectation maximization from `shares`, which change, as does `mixture`.

    Returns the log-likelihood, the rounds, at most `stop`, and whether it converged, for each
    set and each start. With `fixed`, the mixtures stay as they are.
    """
    from unshuffle.kernels.sets._models import mixture_loops as loops

    d, p = mixture[1].shape[2], mixture[2].shape[2]
    kind = settings.covariance_type
    rows = np.arange(d)
    places = {"diag": 0 * rows, "spherical": -rows}.get(kind, rows * (rows + 1) // 2)
    floors = np.zeros(p)
    floors[places + rows] = settings.floor
    sweeps = int(fixed), 2 if fixed or kind == "tied" else 1
    how, part = (places, floors, float(settings.tol)), 1.0 / d if kind == "spherical" else 1.0
    state = np.tile([-np.inf, 0.0, 0.0], (len(mixture[0]), len(shares), 1))
    work = np.empty((d, np.diff(columns.offsets).max())), np.empty((2, p)), state
    at_once = per_call(shares.size * (20.0 + 2.0 * p))
    for done in range(0, stop, at_once):
        n_rounds = min(at_once, stop - done)
        loops.run_rounds(*columns, *how, n_rounds, *sweeps, part, shares, *mixture, *work)
        if (state[:, :, 2] > 0.0).all():
            break
    return state


def choose_n_components(sets: Bags, distinct: Indices, settings: FitSettings) -> Indices:
    """Number of components for each set, at most one per distinct point."""
    if isinstance(settings.n_components, int):
        return np.minimum(distinct, settings.n_components)
    measure = bic if settings.n_components == "bic" else held_out_losses
    most = min(int(distinct.max()), settings.max_components)
    losses = np.full((most, len(sets)), np.inf)
    for m in range(1, most + 1):
        enough = np.flatnonzero(distinct >= m)
        losses[m - 1, enough] = measure(sets.chosen(enough), m, settings)
    return np.argmin(losses, axis=0) + 1


def bic(sets: Bags, m: int, settings: FitSettings) -> Floats:
    """Bayesian information criterion of mixtures of m components; lower is better."""
    penalty = n_parameters(m, sets.width, settings.covariance_type) * np.log(sets.sizes)
    fits = fit_sets(sets, np.full(len(sets), m), settings)
    return np.asarray(penalty - 2.0 * fits.scores)


def n_parameters(m: int, d: int, covariance_type: str) -> int:
    """Number of free parameters of a mixture of m components in d dimensions."""
    triangle = d * (d + 1) // 2
    sizes = {"full": m * triangle, "tied": triangle, "diag": m * d, "spherical": m}
    return m - 1 + m * d + sizes[covariance_type]


def held_out_losses(sets: Bags, m: int, settings: FitSettings) -> Floats:
    """Negative log-likelihoods of held-out points, over three folds.

    If too few distinct points are left, the loss is infinite, but 0 for one component.
    """
    fold = (np.arange(len(sets.points)) - np.repeat(sets.offsets[:-1], sets.sizes)) % N_FOLDS
    losses = np.zeros(len(sets))
    for turn in range(N_FOLDS):
        train, test = (
            Bags(sets.points[rows], offsets_of(rows)[sets.offsets])
            for rows in (fold != turn, fold == turn)
        )
        enough = count_distinct(train) >= m
        losses[~enough] += 0.0 if m == 1 else np.inf
        some = np.flatnonzero(enough & (test.sizes > 0))
        if some.size:
            numbers, test = np.full(some.size, m), test.chosen(some)
            fits = fit_sets(train.chosen(some), numbers, settings)
            mixture: Any = tuple(each.reshape(some.size, m, *each.shape[1:]) for each in fits[1:4])
            columns = Columns(with_ones(test.points), test.offsets, numbers)
            shares = np.zeros((1, m, len(test.points)))
            state = run_rounds(columns, settings, mixture, shares, 1, fixed=True)
            losses[some] -= state[:, 0, 0]
    return losses


def count_distinct(sets: Bags) -> Indices:
    """Number of distinct points of each sorted set."""
    new = np.ones(len(sets.points), dtype=np.intp)
    new[1:] = (sets.points[1:] != sets.points[:-1]).any(axis=1)
    new[sets.offsets[:-1][sets.sizes > 0]] = 1
    return np.diff(offsets_of(new)[sets.offsets])


def offsets_of(sizes: Indices) -> Indices:
    """Where pieces of given sizes begin, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(sizes)])


@dataclass(frozen=True)
class InputSpace:
    """Space of the points, each column with mean 0 and variance 1 over all fitted points."""

    center: Floats  # mean of each column without outliers
    scale: Floats  # standard deviation; for a constant column, that of the others

    @classmethod
    def of(cls, points: Floats) -> "InputSpace":
        """Space for points like these."""
        center, scale = column_moments(points)
        varied = scale > 0.0
        usual = np.sqrt((scale[varied] ** 2).mean()) if varied.any() else 1.0
        return cls(center, np.where(varied, scale, usual))

    def standardize(self, sets: Bags) -> Bags:
        """Sets in standard units."""
        return Bags((sets.points - self.center) / self.scale, sets.offsets)

    def fit_mixtures(self, sets: Bags, settings: FitSettings, *, n_jobs: int | None) -> Fits:
        """Mixtures of sorted sets, in standard units."""
        d = sets.width
        n_numbers = d * (d + 1) // 2 if settings.covariance_type in ("full", "tied") else d

        def fit(some: Bags, distinct: Indices) -> Fits:
            return fit_sets(some, choose_n_components(some, distinct, settings), settings)

        return fit_all(fit, self.standardize(sets), settings, n_numbers + d + 1, n_jobs)

    def likelihoods(self, fits: Fits) -> Mixtures:
        """Mixtures whose products are integrals of the densities, in units of the points."""
        d = self.center.size
        constant = -0.25 * d * np.log(2.0 * np.pi) - 0.5 * np.log(self.scale).sum()
        logs = np.log(fits.weights) + constant
        return Mixtures(logs, fits.means, fits.spreads, offsets_of(fits.n_components))

    def affinities(self, fits: Fits) -> Mixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        d = self.center.size
        # Up to a factor, the root of a Gaussian of covariance C has covariance 2 C. With C and
        # means divided by the root of 2 the exponents are the same.
        logs = 0.25 * np.linalg.slogdet(unpack(fits.spreads, d))[1] + 0.25 * d * np.log(2.0)
        return Mixtures(logs, np.sqrt(0.5) * fits.means, fits.spreads, np.arange(len(logs) + 1))

    def mixtures(self, fits: Fits) -> list[Mixture]:
        """Mixture of each set, in the units of the points."""
        means = fits.means * self.scale + self.center
        covariances = unpack(fits.spreads, self.center.size) * np.outer(self.scale, self.scale)
        ends = offsets_of(fits.n_components)[1:-1]
        parts = [np.split(each, ends) for each in (fits.weights, means, covariances)]
        return [Mixture(*each) for each in zip(*parts, strict=True)]


def unpack(covariances: Floats, d: int) -> Floats:
    """Full matrices from their lower triangles or diagonals."""
    whole = np.zeros((*covariances.shape[:-1], d, d))
    if covariances.shape[-1] == d:
        whole[..., np.arange(d), np.arange(d)] = covariances
        return whole
    rows, columns = np.tril_indices(d)
    whole[..., rows, columns] = covariances
    whole[..., columns, rows] = covariances
    return whole
