"""Gaussian mixtures of sets in input space: fitted, and multiplied with each other."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import column_moments
from unshuffle._bags import Bags
from unshuffle._parallel import map_parallel, per_call, spans
from unshuffle._parameters import check_memory
from unshuffle._printing import short_repr
from unshuffle.kernels.sets._set_vectors import chosen_bags

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Part = TypeVar("Part")

KINDS = ("full", "tied", "diag", "spherical")
# Sets that one thread fits at a time.
CHUNK = 32
# k-means starts tried before each climb: the tightest is taken.
N_TRIALS = 2
N_FOLDS = 3


class Mixture(NamedTuple):
    """Density of one set: a weighted sum of Gaussians.

    Attributes
    ----------
    weights : ndarray of shape (n_components,)
        Share of each component; they sum to one.
    means : ndarray of shape (n_components, n_features)
        Middle of each, in the units of the points.
    covariances : ndarray of shape (n_components, n_features, n_features)
        Spread of each, in squares of these units.
    """

    weights: Array
    means: Array
    covariances: Array

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class Climb:
    """How mixtures are fitted."""

    n_components: int | str  # or "bic" or "cv", which choose it for each set
    most: int  # components, where they are chosen
    kind: str  # one of `KINDS`
    floor: float  # added to all variances, so that no component shrinks onto a point
    max_iter: int  # rounds at most
    tol: float  # gain for each point below which to stop
    draws: Array  # numbers from 0 to 1 that choose the starts, the same for every set


class Fits(NamedTuple):
    """Mixtures of several sets, padded to one number m of components."""

    n_components: Indices  # of each set; what lies beyond means nothing
    weights: Array  # (n_sets, m)
    means: Array  # (n_sets, m, d)
    covariances: Array  # (n_sets, m, p): lower triangles row after row, or diagonals
    scores: Array  # log-likelihoods
    rounds: Indices  # of each climb
    settled: NDArray[np.bool_]  # whether each ended before `max_iter`


@dataclass(frozen=True)
class Components:
    """Components of the mixtures of several sets, ready to be compared."""

    logs: Array  # added to the logarithm of every product that a component is part of
    means: Array  # (n_components_in_all, d)
    spreads: Array  # covariances, or what stands for them
    offsets: Indices  # where the components of each set begin

    def __len__(self) -> int:
        return self.offsets.size - 1

    def part(self, start: int, stop: int) -> Self:
        """Components of the sets from `start` up to `stop`."""
        rows = slice(self.offsets[start], self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - self.offsets[start]
        return type(self)(self.logs[rows], self.means[rows], self.spreads[rows], offsets)


class Mixtures(Components):
    """Components whose `spreads` are lower triangles row after row, or diagonals."""

    def log_products(self, other: "Mixtures | None") -> Array:
        """Logarithms of the integrals of products, exactly symmetric where `other` is None."""
        from unshuffle.kernels.sets._pair_loops import log_products

        beside = self if other is None else other
        found = np.zeros((len(self), len(beside)))
        lanes = *self._lanes(), *beside._lanes(), other is None
        d, n_numbers = self.means.shape[1], self.spreads.shape[1]
        pairs = len(self.logs) / len(self) * len(beside.logs)  # of components, for each set
        for start, stop in spans(len(self), pairs * (20.0 + n_numbers * d / 3)):
            log_products(*lanes, start, stop, found)
        return found

    def _lanes(self) -> tuple[Array, Array, Array, Indices]:
        # Copies can be written to, so that loops are compiled once, for arrays of that kind: what
        # comes out of a file mapped to memory is of another.
        return (
            self.logs.copy(),
            np.array(self.means.T, order="C"),
            np.array(self.spreads.T, order="C"),
            self.offsets.copy(),
        )


def fit_in_chunks(
    fit: Callable[[int, int, Indices], Part], bags: Bags, climb: Climb, length: int, n_jobs: Any
) -> list[Part]:
    """What `fit` gives for each chunk of sets, with one warning for all sets of few points.

    `fit` takes the first set of a chunk, the one after its last, and the number of different
    points in every set. A component is described by `length` numbers.
    """
    distinct, most = n_distinct(bags), climb.n_components
    if isinstance(most, int) and (distinct < most).any():
        warnings.warn(
            f"{(distinct < most).sum()} of {distinct.size} sets have fewer than "
            f"n_components={most} different points (the smallest {distinct.min()}). Each of these "
            "is described by as many components as it has different points; pass a smaller "
            'n_components, or "bic".',
            UserWarning,
            stacklevel=2,
        )
    check_memory(
        2 * 8 * len(bags) * climb.most * length,
        what=f"Describing {len(bags):,} sets by {climb.most} Gaussians of {length:,} numbers each",
        instead='Pass fewer sets or components, covariance_type="diag", or a smaller rank.',
    )

    def chunk(start: int) -> Part:
        return fit(start, min(start + CHUNK, len(bags)), distinct)

    return map_parallel(chunk, range(0, len(bags), CHUNK), n_jobs=n_jobs)


def fit_mixtures(bags: Bags, climb: Climb, *, n_jobs: int | None) -> Fits:
    """Mixture of each set in canonical order."""

    def fit(start: int, stop: int, distinct: Indices) -> Fits:
        part = bags.part(start, stop)
        return fitted(part, chosen_numbers(part, distinct[start:stop], climb), climb)

    def pad(values: Any) -> Any:
        beyond = [(0, 0)] * values.ndim
        if values.ndim > 1:
            beyond[1] = (0, most - values.shape[1])
        return np.pad(values, beyond)

    d = bags.width
    n_numbers = d * (d + 1) // 2 if climb.kind in ("full", "tied") else d
    parts = fit_in_chunks(fit, bags, climb, n_numbers + d + 1, n_jobs)
    most = max(part.weights.shape[1] for part in parts)
    return Fits(*(np.concatenate([pad(x) for x in each]) for each in zip(*parts, strict=True)))


def fitted(bags: Bags, n_components: Indices, climb: Climb) -> Fits:
    """Mixture of each set with a given number of components."""
    from unshuffle.kernels.sets import _mixture_loops as loops  # numba is slow to load

    n, d, most = len(bags), bags.width, int(n_components.max())
    kind = KINDS.index(climb.kind)
    p = d * (d + 1) // 2 if kind <= loops.TIED else d
    found = Fits(
        n_components,
        np.zeros((n, most)),
        np.zeros((n, most, d)),
        np.zeros((n, most, p)),
        np.zeros(n),
        np.zeros(n, dtype=np.intp),
        np.zeros(n, dtype=np.bool_),
    )
    draws = climb.draws.copy()  # one that can be written to: see `Mixtures._lanes`
    how: Any = draws, kind, float(climb.floor), climb.max_iter, float(climb.tol)
    round_work = _round_work(bags, most, p)
    # k-means at each start takes about as long as ten rounds
    n_rounds = climb.max_iter + len(draws) * (10 + loops.SHORT_ROUNDS)
    if n_rounds <= per_call(round_work):
        for start, stop in spans(n, n_rounds * round_work):
            part: Any = [each[start:stop] for each in found]
            offsets = bags.offsets[start : stop + 1]
            loops.fit_sets(bags.points, offsets, part[0], *how, *part[1:])
    else:
        for s in range(n):
            _fit_in_pieces(bags[s], found, s, how, per_call(round_work))
    return found


def _round_work(bags: Bags, n_components: int, n_numbers: int) -> float:
    """Nanoseconds that a round of expectation maximisation takes for the largest set."""
    return float(bags.sizes.max()) * n_components * (20.0 + 2.0 * n_numbers)


def _fit_in_pieces(points: Array, found: Fits, s: int, how: Any, n_rounds: int) -> None:
    """Mixture of one large set, so many rounds to a compiled call."""
    from unshuffle.kernels.sets import _mixture_loops as loops

    X = np.ascontiguousarray(points.T)
    (d, n), m = X.shape, int(found.n_components[s])
    labels, gaps = np.zeros(n, dtype=np.intp), np.empty((d, n))
    shares, likeliest = np.zeros((m, n)), np.zeros((m, n))
    likeliest[0] = 1.0
    state = np.array([0.0, 0.0, -np.inf, -np.inf, 0.0])
    own = found.weights[s, :m], found.means[s, :m], found.covariances[s, :m]
    books = *how, *own, labels, shares, likeliest, gaps, state
    go_on: Any = loops.fit_set
    while not go_on(X, *books, n_rounds):
        pass
    found.scores[s], found.rounds[s], found.settled[s] = state[2], state[1], state[4]


def chosen_numbers(bags: Bags, distinct: Indices, climb: Climb) -> Indices:
    """Number of components for each set, never above that of its different points."""
    if isinstance(climb.n_components, int):
        return np.minimum(distinct, climb.n_components)
    costs = np.full((climb.most, len(bags)), np.inf)
    for m in range(1, climb.most + 1):
        enough = np.flatnonzero(distinct >= m)
        if enough.size:
            measured = bic if climb.n_components == "bic" else held_out_loss
            costs[m - 1, enough] = measured(chosen_bags(bags, enough), m, climb)
    return np.asarray(costs.argmin(axis=0) + 1, dtype=np.intp)


def bic(bags: Bags, m: int, climb: Climb) -> Array:
    """Bayesian information criterion of mixtures of m components, less is better."""
    d = bags.width
    triangle = d * (d + 1) // 2
    spread = {"full": m * triangle, "tied": triangle, "diag": m * d, "spherical": m}[climb.kind]
    n_parameters = m - 1 + m * d + spread
    scores = fitted(bags, np.full(len(bags), m, dtype=np.intp), climb).scores
    return np.asarray(n_parameters * np.log(bags.sizes) - 2.0 * scores)


def held_out_loss(bags: Bags, m: int, climb: Climb) -> Array:
    """Less the log-likelihood of points that were left out, in three turns.

    A set with too few different points to leave some out has loss 0 for one component, and
    otherwise an infinite one.
    """
    from unshuffle.kernels.sets import _mixture_loops as loops

    fold = (np.arange(len(bags.points)) - np.repeat(bags.offsets[:-1], bags.sizes)) % N_FOLDS
    loss = np.zeros(len(bags))
    for turn in range(N_FOLDS):
        kept, left = _masked(bags, fold != turn), _masked(bags, fold == turn)
        enough = np.flatnonzero(n_distinct(kept) >= m)
        if enough.size:
            kept, left = chosen_bags(kept, enough), chosen_bags(left, enough)
            found = fitted(kept, np.full(enough.size, m, dtype=np.intp), climb)
            scores = np.zeros(enough.size)
            work = _round_work(left, m, found.covariances.shape[2])
            for start, stop in spans(len(left), work):
                part: Any = [each[start:stop] for each in (*found[:4], scores)]
                loops.score_sets(left.points, left.offsets[start : stop + 1], *part)
            loss[enough] -= scores
        loss[np.setdiff1d(np.arange(len(bags)), enough)] += 0.0 if m == 1 else np.inf
    return loss


def n_distinct(bags: Bags) -> Indices:
    """Number of different points in each set, whose equal points stand beside each other."""
    new = np.ones(len(bags.points), dtype=np.intp)
    new[1:] = (bags.points[1:] != bags.points[:-1]).any(axis=1)
    new[bags.offsets[:-1][bags.sizes > 0]] = 1
    return np.asarray(np.diff(offsets_of(new)[bags.offsets]))


def _masked(bags: Bags, keep: NDArray[np.bool_]) -> Bags:
    kept = np.concatenate([[0], np.cumsum(keep)])
    return Bags(bags.points[keep], kept[bags.offsets])


def offsets_of(sizes: Indices) -> Indices:
    """Where each of several pieces of given sizes begins, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(sizes)])


@dataclass(frozen=True)
class InputSpace:
    """Space of the points, each column with mean 0 and variance 1 over all fitted points."""

    center: Array  # mean of each column, wild entries left out
    scale: Array  # standard deviation; of a column that never varies, that of the others

    @classmethod
    def of(cls, points: Array) -> "InputSpace":
        """Space for points like these."""
        center, scale = column_moments(points)
        varied = scale > 0.0
        usual = np.sqrt((scale[varied] ** 2).mean()) if varied.any() else 1.0
        return cls(center, np.where(varied, scale, usual))

    def fits(self, bags: Bags, climb: Climb, *, n_jobs: int | None) -> Fits:
        """Mixtures of sets in canonical order, in standard units."""
        standard = Bags((bags.points - self.center) / self.scale, bags.offsets)
        return fit_mixtures(standard, climb, n_jobs=n_jobs)

    def likelihoods(self, fits: Fits) -> Mixtures:
        """Mixtures whose products are integrals of the densities, in units of the points."""
        used = np.arange(fits.weights.shape[1]) < fits.n_components[:, np.newaxis]
        d = self.center.size
        constant = -0.25 * d * np.log(2.0 * np.pi) - 0.5 * np.log(self.scale).sum()
        return Mixtures(
            np.log(fits.weights[used]) + constant,
            fits.means[used],
            fits.covariances[used],
            offsets_of(fits.n_components),
        )

    def affinities(self, fits: Fits) -> Mixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        covariances = fits.covariances[:, 0]
        d = self.center.size
        # The root of a Gaussian of covariance C is one of covariance 2 C but for a factor; with
        # C in place of 2 C and means closer by a root of 2 the exponents come out the same.
        return Mixtures(
            0.25 * np.linalg.slogdet(unpacked(covariances, d))[1] + 0.25 * d * np.log(2.0),
            np.sqrt(0.5) * fits.means[:, 0],
            covariances,
            np.arange(len(covariances) + 1),
        )

    def mixtures(self, fits: Fits) -> list[Mixture]:
        """The mixtures one by one, in the units of the points."""
        return [
            Mixture(
                fits.weights[s, :m],
                fits.means[s, :m] * self.scale + self.center,
                unpacked(fits.covariances[s, :m], self.center.size)
                * np.outer(self.scale, self.scale),
            )
            for s, m in enumerate(fits.n_components)
        ]


def unpacked(covariances: Array, d: int) -> Array:
    """Whole matrices from their lower triangles or diagonals."""
    whole = np.zeros((*covariances.shape[:-1], d, d))
    if covariances.shape[-1] == d:
        whole[..., np.arange(d), np.arange(d)] = covariances
        return whole
    rows, columns = np.tril_indices(d)
    whole[..., rows, columns] = covariances
    whole[..., columns, rows] = covariances
    return whole
