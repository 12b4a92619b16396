"""The search for large collections: likelihood weights on low-rank factors, in two ways.

At low rank all that an ascent hands from step to step is M, the correlations between the kernel
principal components of both sides over the matched pairs. Under a Gaussian model they give the
log-likelihood ratio of every pair, an inner product, so each step is an assignment that needs
neither kernel matrix. What differs is how a first M is found:

- The density path matches items by their densities at eight scales, which carry the accidents of
  the sample and tell even mirror images apart, and sharpens M by soft steps. It needs distances
  that are nearly the same on both sides.
- The annealed path matches items by what their neighborhoods look like, in many ways, and follows
  each by annealing on a sample. Rounds that predict each region from the others then repair
  groups that were exchanged. It needs groups of items, and bears distorted distances.

Both are run unless the first agrees so well that no other matching can, and the agreement of the
matchings at a small spectral power chooses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._parallel import map_parallel
from unshuffle._progress import Callback
from unshuffle._tiles import Tiles
from unshuffle.matching._factor_pair import (
    LARGEST_CORRELATION,
    POWER,
    Array,
    FactorPair,
    Likelihood,
    Permutation,
    Scores,
    Single,
    whitening,
)
from unshuffle.matching._kernel_pair import CountingSearch

# Density path: components used, rows in each soft step and in the first, most steps, least
# relative gain in information, last steps without densities, first correlation of all densities.
SHARP_RANK = 56
STEP_ROWS, FIRST_ROWS = 4096, 16_384
MOST_STEPS, LEAST_STEPS, LEAST_GAIN = 16, 4, 0.004
N_POLISH = 2
FIRST_CORRELATION = 0.8
SOFT_CORRELATIONS = 0.998, 0.9995  # largest with densities, and in the last steps
N_SHARP_ROUNDS = 2
# Agreement that no other matching can exceed by enough to matter.
CONVINCING = 0.9

# Annealed path: components used; items of each side that are described, matched by their
# descriptors, and annealed.
SOFT_RANK, ANNEALED_RANK = 112, 64
DESCRIBED, MATCHED, ANNEALED = 16_384, 4096, 1024
# Descriptors: nearest neighbors, ranks among them, landmarks, ranks among these, and axes kept.
N_NEIGHBORS, NEAR_RANKS = 32, (2, 4, 8, 16, 31)
N_LANDMARKS, N_FAR_RANKS, N_AXES = 2048, 20, 16
# Ways to match by descriptors: axes, power of their whitening, softness.
WAYS = [
    (n_axes, whitened, softness)
    for n_axes in (4, 8, 16)
    for whitened in (0.0, 0.5, 1.0)
    for softness in (0.15, 0.08)
]
# Schedules of annealing: first and last spectral power, first and last temperature.
SCHEDULES = ((0.5, 0.25, 0.25, 0.1), (0.3, 0.3, 0.2, 0.08), (0.7, 0.3, 0.3, 0.1))
REFINEMENT = (0.4, 0.2, 0.15, 0.06)
N_LEVELS, N_REFINED_LEVELS, STEPS_PER_LEVEL = 10, 6, 2
N_BALANCING = 4  # rounds of balancing in each step
LAST_POWER, LAST_TEMPERATURE = 0.2, 0.03  # of the first assignment
# Starts that are refined, and refined starts that are followed at full size; two are the same if
# their correlations are this similar.
N_REFINED, N_FOLLOWED, SAME = 6, 2, 0.97

# Rounds that predict each region from the others: regions, folds, strength of the map, rounds
# without gain before they end, relative gain that counts, and loss that is tolerated.
N_REGIONS, N_FOLDS, RIDGE = 128, 8, 0.003
MOST_CROSS_ROUNDS, PATIENCE = 20, 3
REGION_AXES = 32
COUNTS, TOLERATED = 2e-4, 5e-4
MOST_ROUNDS = 8
# Residuals beyond this many medians are those of wrong pairs.
TYPICAL_RESIDUAL = 4.0


@dataclass(frozen=True, eq=False)
class Found:
    """A matching, and what led to it."""

    matching: Permutation  # partner of each item of the smaller collection
    rank: int  # components that its likelihood uses
    agreement: float
    rivals: list[Permutation] = field(default_factory=list)  # other ends of the search
    path: list[float] = field(default_factory=list)  # objective after each assignment
    released: Permutation | None = None  # with -1 for released items; None if not asked for

    @property
    def kept(self) -> Permutation:
        """The matching with released pairs, if the user asked for that."""
        return self.matching if self.released is None else self.released


class LowRankSearch(CountingSearch[Found]):
    """Progress of a fit and the best matching it has seen."""

    def __init__(
        self,
        pair: FactorPair,
        callback: Callback | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(callback)
        self.pair = pair
        self.span = span
        self.path: list[float] = []

    @property
    def found(self) -> Found:
        """The best so far."""
        if self.best is None:
            raise RuntimeError("The search was stopped before its first matching.")
        return self.best

    def record(self, matching: Permutation, rank: int, stage: str, fraction: float) -> Found:
        """Keep a matching if it is the best so far, and report it."""
        found = Found(matching, rank, self.pair.agreement(matching), path=self.path)
        self.path.append(self.pair.objective(matching))
        self.offer(found, (0.0, found.agreement))
        self.count(1)
        self.report(stage, fraction)
        return found

    def report(self, stage: str, fraction: float) -> None:
        """Report progress with the best matching so far."""
        begin, end = self.span
        best = self.found
        objective = self.path[-1] if self.path else 0.0
        self.step(
            objective,
            self.pair.to_user(best.matching),
            stage=stage,
            fraction=begin + (end - begin) * fraction,
        )


def solve_low_rank(
    search: LowRankSearch,
    tiles: Tiles,
    *,
    n_init: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Found:
    """Follow the density path, and the annealed path unless the first is convincing."""
    pair = search.pair
    search.record(_match_by_rank(pair), SHARP_RANK, "describing items", 0.02)
    ends = [_density_path(search, tiles, rng)]
    if ends[0].agreement < CONVINCING:
        ends += _annealed_path(search, tiles, n_init=n_init, n_jobs=n_jobs, rng=rng)
    best = max(ends, key=lambda end: end.agreement)
    rivals = [end.matching for end in ends if end is not best]
    return Found(best.matching, best.rank, best.agreement, rivals, search.path)


def _match_by_rank(pair: FactorPair) -> Permutation:
    """A first matching, along the leading component, in case the search is stopped early."""
    first, second = (factors.scores[:, 0] for factors in (pair.first, pair.second))
    places = np.linspace(0, second.size - 1, first.size).round().astype(np.intp)
    matching = np.empty(first.size, dtype=np.intp)
    matching[np.argsort(first, kind="stable")] = np.argsort(second, kind="stable")[places]
    return pair.keep_frozen(matching)


# The density path


def _density_path(search: LowRankSearch, tiles: Tiles, rng: np.random.RandomState) -> Found:
    pair = search.pair
    n_first, n_second = pair.shape
    U, V = (factors.scores[:, :SHARP_RANK] for factors in (pair.first, pair.second))
    chosen = _with_frozen(pair, rng.permutation(n_first)[:FIRST_ROWS])
    described = [
        tiles.densities(factors.points, rows, 1.0 / factors.spread)
        for factors, rows in ((pair.first, chosen), (pair.second, np.arange(n_second)))
    ]
    D, E = _pool(*described)
    F, G = np.hstack([U[chosen], D]), np.hstack([V, E])
    whiten = whitening(F), whitening(G)
    C = np.asarray(F.T @ F, dtype=np.float64) / len(F)
    known = pair.frozen if chosen.size == n_first else _places(pair.frozen, chosen)
    weight = np.float32(np.sqrt(FIRST_CORRELATION / (1.0 - FIRST_CORRELATION**2)))
    start = Scores(
        D * weight, E * weight, np.float32(-0.5 * FIRST_CORRELATION) * ((E * weight) ** 2).sum(1)
    )
    M = _soft_step(tiles, start, F, G, C, np.arange(len(F)), known)
    information = 0.0
    for number in range(MOST_STEPS):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[0])
        search.report("comparing densities", 0.05 + 0.2 * number / MOST_STEPS)
        before, information = information, likelihood.information
        if number > LEAST_STEPS and abs(information - before) < LEAST_GAIN * information:
            break
        rows = _with_known(rng.permutation(len(F))[:STEP_ROWS], known)
        M = _soft_step(tiles, likelihood.scores(F[rows], G), F, G, C, rows, known)
    M = M[: U.shape[1], : V.shape[1]]
    whiten = whitening(U), whitening(V)
    C = np.asarray(U.T @ U, dtype=np.float64) / len(U)
    for _ in range(N_POLISH):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[1])
        rows = _with_known(rng.permutation(n_first)[:STEP_ROWS], pair.frozen)
        M = _soft_step(tiles, likelihood.scores(U[rows], V), U, V, C, rows, pair.frozen)
    for number in range(N_SHARP_ROUNDS):
        likelihood = Likelihood.of(M, whiten, LARGEST_CORRELATION)
        matching = pair.assign(tiles, likelihood.scores(U, V))
        found = search.record(matching, SHARP_RANK, "matching", 0.26 + 0.04 * number)
        M = pair.moments(matching, SHARP_RANK)
    return found


def _soft_step(
    tiles: Tiles,
    scores: Scores,
    F: Single,
    G: Single,
    C: Array,
    rows: NDArray[np.intp],
    known: NDArray[np.intp],
) -> Array:
    """Correlations from the expected partners of some rows.

    Expected partners are regressed on the rows: their plain products with the rows would carry
    the sampling noise of the rows themselves.
    """
    means, _ = tiles.soft_means(scores.queries, scores.keys, scores.bias, G)
    if len(known):
        place = np.full(len(F), -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        means[place[known[:, 0]]] = G[known[:, 1]]
    X = F[rows]
    weights = np.ones(rows.size, dtype=np.float32)
    if len(known):
        weights[place[known[:, 0]]] = _known_weight(len(known), rows.size)
    scaled = X * weights[:, None]
    gram = np.asarray(scaled.T @ X, dtype=np.float64)
    gram += 1e-5 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.asarray(C @ np.linalg.solve(gram, np.asarray(scaled.T @ means, dtype=np.float64)))


def _known_weight(n_known: int, n_rows: int) -> float:
    """Weight of each known pair, which together count as much as a third of the rows."""
    return max(1.0, min(n_rows / (3.0 * n_known), 100.0))


def _pool(D: Single, E: Single) -> tuple[Single, Single]:
    """Descriptors of both sides, standardized, with one rotation that makes them uncorrelated."""
    D, E = _standardized(D), _standardized(E)
    covariance = (D.T @ D / len(D) + E.T @ E / len(E)).astype(np.float64) / 2
    values, vectors = np.linalg.eigh(covariance)
    rotation = (vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1]))).astype(np.float32)
    return D @ rotation, E @ rotation


def _standardized(D: Single) -> Single:
    spread = D.std(axis=0)
    return np.asarray((D - D.mean(axis=0)) / np.where(spread > 0, spread, 1.0), dtype=np.float32)


def _with_frozen(pair: FactorPair, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    return _with_known(rows, pair.frozen)


def _with_known(rows: NDArray[np.intp], known: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows with those of the known pairs among them."""
    return rows if not len(known) else np.union1d(rows, known[:, 0])


def _places(frozen: NDArray[np.intp], chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Frozen pairs with the rows as places in `chosen`, which is sorted if there are any."""
    if not len(frozen):
        return frozen
    return np.column_stack([np.searchsorted(chosen, frozen[:, 0]), frozen[:, 1]])


# The annealed path


def _annealed_path(
    search: LowRankSearch,
    tiles: Tiles,
    *,
    n_init: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> list[Found]:
    """Ends of the best starts at full size, the best of them repaired."""
    pair = search.pair
    M_all = _annealed_starts(search, tiles, n_jobs=n_jobs, rng=rng)
    ends = []
    for number, M in enumerate(M_all):
        matching = pair.assign(tiles, _kernel_scores(pair, M).balanced(tiles, N_BALANCING))
        for _ in range(2):
            matching = _likelihood_round(pair, tiles, matching)
        fraction = 0.6 + 0.1 * (number + 1) / len(M_all)
        ends.append(search.record(matching, SOFT_RANK, "matching groups", fraction))
    best = max(ends, key=lambda end: end.agreement)
    repaired = _cross_fitted_rounds(search, tiles, best, rng)
    return [_likelihood_rounds(search, tiles, repaired), *(end for end in ends if end is not best)]


def _annealed_starts(
    search: LowRankSearch, tiles: Tiles, *, n_jobs: int | None, rng: np.random.RandomState
) -> list[Array]:
    """Correlations of the most promising starts, annealed on a sample of both sides."""
    pair = search.pair
    samples = [rng.permutation(size)[:DESCRIBED] for size in pair.shape]
    described = [
        _describe(tiles, factors.points[sample], factors.spread, rng)
        for factors, sample in zip((pair.first, pair.second), samples, strict=True)
    ]
    D, E, variances = _principal_axes(*described)
    search.report("describing neighborhoods", 0.35)
    chosen = [rng.permutation(sample.size)[:MATCHED] for sample in samples]
    part = pair.part(samples[0][chosen[0]], samples[1][chosen[1]])
    U, V = part.first.scores[:, :SOFT_RANK], part.second.scores[:, :SOFT_RANK]
    starts = []
    for n_axes, whitened, softness in WAYS:
        scale = variances[:n_axes] ** (-whitened / 2)
        spread = float(np.linalg.norm(variances[:n_axes] ** (1 - whitened)))
        scale = (scale / np.sqrt(softness * spread)).astype(np.float32)
        queries, keys = D[chosen[0], :n_axes] * scale, E[chosen[1], :n_axes] * scale
        scores = Scores(queries, keys, np.float32(-0.5) * (keys**2).sum(axis=1))
        scores = scores.balanced(tiles, N_BALANCING)
        means, _ = tiles.soft_means(scores.queries, scores.keys, scores.bias, V)
        starts.append(np.asarray(U.T @ means, dtype=np.float64) / len(U))
    search.report("annealing", 0.4)
    small = part.part(np.arange(min(ANNEALED, len(U))), np.arange(min(ANNEALED, len(V))))
    tasks = [
        (small, M[:ANNEALED_RANK, :ANNEALED_RANK], schedule, N_LEVELS)
        for M in starts
        for schedule in SCHEDULES
    ]
    annealed = map_parallel(_anneal_alone, tasks, n_jobs=n_jobs)
    leaders = _distinct(annealed, lambda M: part.agreement_of(M, 0.5), N_REFINED)
    search.report("annealing", 0.45)
    matchings = []
    for number, M in enumerate(leaders):
        M = _anneal(
            part, _padded(M, (U.shape[1], V.shape[1])), REFINEMENT, N_REFINED_LEVELS, tiles
        )
        scores = _kernel_scores(part, M).balanced(tiles, N_BALANCING)
        matchings.append(part.assign(tiles, scores))
        search.report("annealing", 0.45 + 0.15 * (number + 1) / len(leaders))
    # Only the agreement of a matching counts: soft shares of unbalanced columns overstate it.
    ends = [part.moments(matching, SOFT_RANK) for matching in matchings]
    return _distinct(ends, part.agreement_of, N_FOLLOWED)


def _describe(tiles: Tiles, points: Single, spread: float, rng: np.random.RandomState) -> Single:
    """What the neighborhood of each item looks like, whatever the coordinates.

    Log distances to near neighbors, and at ranks among all items; their means over the neighbors,
    the means of these, and the spread. The means make groups alike, not single items.
    """
    n_items = len(points)
    squares = np.einsum("ij,ij->i", points, points)
    k = min(N_NEIGHBORS, n_items)
    neighbors, scores = tiles.best_columns(points, points, np.float32(-0.5) * squares, k)
    near = np.sort(squares[:, None] - 2.0 * scores, axis=1)[:, [r for r in NEAR_RANKS if r < k]]
    landmarks = points[rng.permutation(n_items)[:N_LANDMARKS]]
    ranks = np.geomspace(max(1.0, 0.004 * len(landmarks)), len(landmarks) - 1, N_FAR_RANKS)
    far = tiles.quantiles(points, landmarks, np.unique(ranks.astype(np.intp)))
    logs = np.log(np.maximum(np.hstack([near, far]) / spread, 1e-4)).astype(np.float32)
    levels = [_standardized(logs)]
    for _ in range(2):
        levels.append(levels[-1][neighbors].mean(axis=1))
    levels.append(levels[0][neighbors].std(axis=1))
    return _standardized(np.hstack(levels))


def _principal_axes(D: Single, E: Single) -> tuple[Single, Single, Array]:
    """Leading common axes of descriptors of both sides, and their variances."""
    covariance = (D.T @ D / len(D) + E.T @ E / len(E)).astype(np.float64) / 2
    variances, axes = np.linalg.eigh(covariance)
    leading = axes[:, ::-1][:, :N_AXES].astype(np.float32)
    return D @ leading, E @ leading, variances[::-1][:N_AXES]


def _anneal_alone(task: tuple[FactorPair, Array, tuple[float, float, float, float], int]) -> Array:
    """One of many starts, on one thread."""
    with Tiles(1) as tiles:
        return _anneal(*task, tiles)


def _anneal(
    pair: FactorPair,
    M: Array,
    schedule: tuple[float, float, float, float],
    n_levels: int,
    tiles: Tiles,
) -> Array:
    """Soft ascent of the kernel objective from correlations M, ever finer and colder."""
    rank_first, rank_second = M.shape
    U, V = pair.first.scores[:, :rank_first], pair.second.scores[:, :rank_second]
    bias = np.zeros(len(V), dtype=np.float32)
    powers = np.geomspace(schedule[0], schedule[1], n_levels)
    temperatures = np.geomspace(schedule[2], schedule[3], n_levels)
    for level, (power, temperature) in enumerate(zip(powers, temperatures, strict=True)):
        if level:
            bias *= np.float32(temperatures[level - 1] / temperature)
        for _ in range(STEPS_PER_LEVEL):
            H = _kernel_weights(pair, M, power) / temperature
            scores = Scores(U @ H.astype(np.float32), V, bias).balanced(tiles, N_BALANCING)
            means, _ = tiles.soft_means(scores.queries, scores.keys, scores.bias, V)
            M, bias = np.asarray(U.T @ means, dtype=np.float64) / len(U), scores.bias
    return M


def _kernel_weights(pair: FactorPair, M: Array, power: float) -> Array:
    """Gradient of the kernel objective at a power of the spectra, of norm 1."""
    first = pair.first.eigenvalues[: M.shape[0]] ** power
    second = pair.second.eigenvalues[: M.shape[1]] ** power
    H = first[:, None] * M * second
    return np.asarray(H / np.linalg.norm(H))


def _kernel_scores(pair: FactorPair, M: Array) -> Scores:
    """Scores of the kernel objective at the end of annealing."""
    H = (_kernel_weights(pair, M, LAST_POWER) / LAST_TEMPERATURE).astype(np.float32)
    U, V = pair.first.scores[:, : M.shape[0]], pair.second.scores[:, : M.shape[1]]
    root = np.float32(np.sqrt(np.linalg.norm(H)))
    keys = V * root
    return Scores(U @ (H / root), keys, np.float32(-0.25) * (keys**2).sum(axis=1))


def _padded(M: Array, shape: tuple[int, int]) -> Array:
    padded = np.zeros(shape)
    padded[: M.shape[0], : M.shape[1]] = M
    return padded


def _distinct(options: Sequence[Array], value: Callable[[Array], float], n: int) -> list[Array]:
    """The best `n` of correlation matrices that are not nearly the same."""
    chosen: list[Array] = []
    for M in sorted(options, key=value, reverse=True):
        alike = (
            np.vdot(M, other) / (np.linalg.norm(M) * np.linalg.norm(other)) for other in chosen
        )
        if len(chosen) < n and max(alike, default=0.0) < SAME:
            chosen.append(M)
    return chosen


# Rounds at full size


def _likelihood_round(
    pair: FactorPair, tiles: Tiles, matching: Permutation, rank: int = SOFT_RANK
) -> Permutation:
    """Assign all items again by the likelihood that a matching implies."""
    U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
    whiten = whitening(U), whitening(V)
    likelihood = Likelihood.of(pair.moments(matching, rank), whiten, LARGEST_CORRELATION)
    return pair.assign(tiles, likelihood.scores(U, V).balanced(tiles, 1))


def _likelihood_rounds(search: LowRankSearch, tiles: Tiles, found: Found) -> Found:
    """Repeat likelihood rounds while they raise the agreement, or hardly lower it."""
    for number in range(MOST_ROUNDS):
        matching = _likelihood_round(search.pair, tiles, found.matching)
        after = search.record(matching, SOFT_RANK, "refining", 0.95 + 0.005 * number)
        if after.agreement < found.agreement * (1.0 - TOLERATED):
            break
        gained = after.agreement > found.agreement * (1.0 + COUNTS / 2)
        found = after
        if not gained:
            break
    return found


def _cross_fitted_rounds(
    search: LowRankSearch, tiles: Tiles, found: Found, rng: np.random.RandomState
) -> Found:
    """Predict each region from the others, so that no exchanged group can vouch for itself."""
    highest, kept, matching, n_idle = found.agreement, found, found.matching, 0
    for number in range(MOST_CROSS_ROUNDS):
        matching = _cross_fit(search.pair, tiles, matching, rng)
        matching = _likelihood_round(search.pair, tiles, matching)
        fraction = 0.7 + 0.25 * number / MOST_CROSS_ROUNDS
        after = search.record(matching, SOFT_RANK, "repairing groups", fraction)
        n_idle = 0 if after.agreement > highest * (1.0 + COUNTS) else n_idle + 1
        if after.agreement > highest * (1.0 - TOLERATED):
            kept = after
        highest = max(highest, after.agreement)
        if n_idle == PATIENCE:
            break
    return kept


def _cross_fit(
    pair: FactorPair, tiles: Tiles, matching: Permutation, rng: np.random.RandomState
) -> Permutation:
    """Assign all items by maps that are each fitted without the regions they predict."""
    return pair.assign(tiles, cross_fitted_scores(pair, matching, rng).balanced(tiles, 1))


def cross_fitted_scores(
    pair: FactorPair, matching: Permutation, rng: np.random.RandomState
) -> Scores:
    """Scores by ridge maps from first to second, each item by the pairs of other regions."""
    U, V = pair.first.scores[:, :SOFT_RANK], pair.second.scores[:, :SOFT_RANK]
    regions = find_regions(pair, rng)
    folds = rng.randint(0, N_FOLDS, N_REGIONS)[regions]
    partners = V[matching]
    gram = np.asarray(U.T @ U, dtype=np.float64)
    cross = np.asarray(U.T @ partners, dtype=np.float64)
    ridge = RIDGE * len(U) * np.eye(len(gram))
    predicted = np.empty_like(partners)
    for fold in range(N_FOLDS):
        rows = np.flatnonzero(folds == fold)
        own, theirs = U[rows], partners[rows]
        solved = np.linalg.solve(gram - own.T @ own + ridge, cross - own.T @ theirs)
        predicted[rows] = own @ solved.astype(np.float32)
    residuals = partners - predicted
    squared = np.einsum("ij,ij->i", residuals, residuals)
    # Wrong regions must not widen the noise.
    typical = residuals[squared <= TYPICAL_RESIDUAL * np.median(squared)]
    values, vectors = np.linalg.eigh(np.asarray(typical.T @ typical, dtype=np.float64))
    values = np.maximum(values, 1e-3 * values[-1]) / len(typical)
    W = (vectors / np.sqrt(values)).astype(np.float32)
    keys = V @ W
    return Scores(predicted @ W, keys, np.float32(-0.5) * (keys**2).sum(axis=1))


def find_regions(pair: FactorPair, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Region of each item of the first collection, by a few steps of k-means."""
    factors = pair.first
    axes = factors.eigenvalues[:REGION_AXES] ** POWER
    F = factors.scores[:, :REGION_AXES] * axes.astype(np.float32)
    centers = F[rng.permutation(len(F))[:N_REGIONS]]
    for _ in range(6):
        near = np.argmax(F @ centers.T - 0.5 * (centers**2).sum(axis=1), axis=1)
        members = sparse.csr_matrix(
            (np.ones(len(F), dtype=np.float32), (near, np.arange(len(F)))),
            shape=(len(centers), len(F)),
        )
        sizes = np.maximum(np.bincount(near, minlength=len(centers)), 1)
        centers = (members @ F) / sizes[:, None].astype(np.float32)
    return near
