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

from dataclasses import dataclass, field, replace
from typing import Any

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
from unshuffle.matching._factors import Factors
from unshuffle.matching._kernel_pair import CountingSearch

# Density path: components used, rows in each soft step and in the first, most steps, least
# relative gain in information, last steps without densities, first correlation of all densities.
SHARP_RANK = 56
# At most this many correlations for each item: more would fit the noise of the matching.
PER_ITEM = 1.25
STEP_ROWS, FIRST_ROWS = 4096, 16_384
MOST_STEPS, LEAST_STEPS, LEAST_GAIN = 16, 4, 0.004
N_POLISH = 2
FIRST_CORRELATION = 0.8
SOFT_CORRELATIONS = 0.998, 0.9995  # largest with densities, and in the last steps
N_SHARP_ROUNDS = 2
# Agreement that no other matching can exceed by enough to matter.
CONVINCING = 0.9

# Annealed path: components used, and items of each side that are described and annealed.
SOFT_RANK = 112
DESCRIBED, ANNEALED = 16_384, 4096
# Descriptors: nearest neighbors, ranks among them, landmarks, ranks among these, and axes kept.
N_NEIGHBORS, NEAR_RANKS = 32, (2, 4, 8, 16, 31)
N_LANDMARKS, N_FAR_RANKS, N_AXES = 2048, 20, 16
# Ways to match by descriptors, each on samples of its own: axes, power of their whitening,
# softness.
WAYS = (
    *((16, 0.5, 0.08), (16, 1.0, 0.08), (16, 0.5, 0.15)),
    *((8, 0.5, 0.15), (16, 0.0, 0.15), (8, 1.0, 0.15)),
)
# With this many known pairs, the distances to known items are descriptors too: weight of the
# others, whitening, softness. This share of the median is added to squared distances.
FEWEST_KNOWN = 3
KNOWN_WAYS = ((0.0, 0.5, 0.08), (0.5, 0.5, 0.08), (0.0, 1.0, 0.15), (0.5, 1.0, 0.15))
KNOWN_NOISE = 0.02
# Annealing: spectral powers and temperatures, first and last, levels, steps in each level, and
# rounds of balancing in each step.
POWERS, TEMPERATURES = (0.6, 0.2), (0.3, 0.06)
N_LEVELS, STEPS_PER_LEVEL, N_BALANCING = 12, 2, 6
LAST_TEMPERATURE = 0.03  # of the first assignment
SMALL = np.float32(1e-15)
TINY = 1e-12  # variance of descriptors that are the same for all items
# Of the starts that are annealed together, this many are followed at full size. Two ends are the
# same answer if this share of the items lies in regions that go mostly to the same places, and if
# they agree this much alike.
N_FOLLOWED, SAME, ALIKE = 2, 0.98, 0.005
N_PLACES = 64
# Pairs of ends that are joined at most in each turn, if they agree this much alike.
N_JOINED, JOINABLE = 2, 0.15
# An answer that was found twice is shaken: maps leave out half of the items in this many regions.
SHAKEN, SHAKEN_REGIONS, SHAKEN_ROUNDS = 0.5, (24, 16), 6
BETTER = 0.002  # a shaken answer counts if it agrees this much better

# Rounds that predict each region from the others: numbers of regions and shares of the items that
# the maps leave out, taken in turn; folds; refits without the regions that fit worst; strength of
# the maps.
N_REGIONS, TRIMMED = (24, 48, 96, 32, 64, 128, 40, 80), (0.4, 0.25, 0.1, 0.3)
N_FOLDS, N_REFITS, RIDGE = 8, 3, 0.003
REGION_AXES, N_LLOYD = 32, 6
# They end after this many, or so many without this gain.
MOST_CROSS_ROUNDS, PATIENCE, COUNTS = 12, 3, 5e-4
N_LAST_ROUNDS = 3
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
    confirmed: bool = True  # whether two starts led to it, or no other could agree better
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
    search.record(_match_by_rank(pair), 1, "describing items", 0.02)
    sharp = _density_path(search, tiles, rng)
    if sharp.agreement >= CONVINCING:
        return sharp
    path = _AnnealedPath(search, tiles, n_jobs, rng)
    best, confirmed = path.run(n_init)
    rivals = [end.matching for end in path.ends]
    if sharp.agreement > best.agreement:
        return replace(sharp, rivals=rivals, confirmed=False)
    return replace(best, rivals=[sharp.matching, *rivals], confirmed=confirmed)


def resolved(pair: FactorPair, most: int) -> int:
    """Number of components that the items of both sides can tell from noise."""
    return max(1, min(most, int(np.sqrt(PER_ITEM * pair.shape[0]))))


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
    rank = resolved(pair, SHARP_RANK)
    U, V = (factors.scores[:, :rank] for factors in (pair.first, pair.second))
    chosen = _with_known(rng.permutation(n_first)[:FIRST_ROWS], pair.frozen)
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
    M = soft_step(tiles, start, F, G, C, np.arange(len(F)), known, pair.cost_of(chosen))
    information = 0.0
    for number in range(MOST_STEPS):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[0])
        search.report("comparing densities", 0.05 + 0.2 * number / MOST_STEPS)
        before, information = information, likelihood.information
        if number > LEAST_STEPS and abs(information - before) < LEAST_GAIN * information:
            break
        rows = _with_known(rng.permutation(len(F))[:STEP_ROWS], known)
        scores, cost = likelihood.scores(F[rows], G), pair.cost_of(chosen[rows])
        M = soft_step(tiles, scores, F, G, C, rows, known, cost)
    M = M[: U.shape[1], : V.shape[1]]
    whiten = whitening(U), whitening(V)
    C = np.asarray(U.T @ U, dtype=np.float64) / len(U)
    for _ in range(N_POLISH):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[1])
        rows = _with_known(rng.permutation(n_first)[:STEP_ROWS], pair.frozen)
        scores, cost = likelihood.scores(U[rows], V), pair.cost_of(rows)
        M = soft_step(tiles, scores, U, V, C, rows, pair.frozen, cost)
    for number in range(N_SHARP_ROUNDS):
        likelihood = Likelihood.of(M, whiten, LARGEST_CORRELATION)
        matching = pair.assign(tiles, likelihood.scores(U, V))
        found = search.record(matching, rank, "matching", 0.26 + 0.04 * number)
        M = pair.moments(matching, rank)
    return found


def soft_step(
    tiles: Tiles,
    scores: Scores,
    F: Single,
    G: Single,
    C: Array,
    rows: NDArray[np.intp],
    known: NDArray[np.intp],
    cost: Any = None,
) -> Array:
    """Correlations from the expected partners of some rows.

    Expected partners are regressed on the rows: their plain products with the rows would carry
    the sampling noise of the rows themselves.
    """
    means, _ = tiles.soft_means(scores.queries, scores.keys, scores.bias, G, cost)
    weights = None
    if len(known):
        place = np.full(len(F), -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        place = place[known[:, 0]]
        means[place] = G[known[:, 1]]
        weights = np.ones(rows.size, dtype=np.float32)
        weights[place] = _known_weight(len(known), rows.size)
    return regressed(F[rows], means, C, weights)


def regressed(F: Single, partners: Single, C: Array, weights: Single | None = None) -> Array:
    """Correlations from a regression of partners on items, whose second moments are C."""
    scaled = F if weights is None else F * weights[:, None]
    gram = np.asarray(scaled.T @ F, dtype=np.float64)
    gram += 1e-5 * np.trace(gram) / len(gram) * np.eye(len(gram))
    cross = np.asarray(scaled.T @ partners, dtype=np.float64)
    return np.asarray(C @ np.linalg.solve(gram, cross))


def _known_weight(n_known: int, n_rows: int) -> float:
    """Weight of each known pair, which together count as much as a third of the rows."""
    return max(1.0, min(n_rows / (3.0 * n_known), 100.0))


def _pool(D: Single, E: Single) -> tuple[Single, Single]:
    """Descriptors of both sides, standardized, with one rotation that makes them uncorrelated."""
    D, E = _standardized(D), _standardized(E)
    covariance = (D.T @ D / len(D) + E.T @ E / len(E)).astype(np.float64) / 2
    values, vectors = np.linalg.eigh(covariance)
    least = max(1e-6 * values[-1], TINY)
    rotation = (vectors / np.sqrt(np.maximum(values, least))).astype(np.float32)
    return D @ rotation, E @ rotation


def _standardized(D: Single) -> Single:
    spread = D.std(axis=0)
    return np.asarray((D - D.mean(axis=0)) / np.where(spread > 0, spread, 1.0), dtype=np.float32)


def _with_known(rows: NDArray[np.intp], known: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows with those of the known pairs among them."""
    return rows if not len(known) else np.union1d(rows, known[:, 0])


def _places(frozen: NDArray[np.intp], chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Frozen pairs with the rows as places in `chosen`, which is sorted if there are any."""
    if not len(frozen):
        return frozen
    return np.column_stack([np.searchsorted(chosen, frozen[:, 0]), frozen[:, 1]])


# The annealed path


class _AnnealedPath:
    """A pool of ends, which grows until two unrelated ones are the same answer."""

    def __init__(
        self, search: LowRankSearch, tiles: Tiles, n_jobs: int | None, rng: np.random.RandomState
    ) -> None:
        self.search, self.pair = search, search.pair
        self.tiles, self.n_jobs, self.rng = tiles, n_jobs, rng
        self.rank = resolved(self.pair, SOFT_RANK)
        sides = self.pair.first, self.pair.second
        self.places = [find_regions(side, N_PLACES, rng) for side in sides]
        self.samples = [rng.permutation(size)[:DESCRIBED] for size in self.pair.shape]
        self.described = [
            _describe(tiles, side.points[sample], side.spread, rng)
            for side, sample in zip(sides, self.samples, strict=True)
        ]
        self.ends: list[Found] = []
        self.joined: set[tuple[int, int]] = set()  # positions of ends that were joined
        self.n_rounds = 0

    def run(self, n_init: int) -> tuple[Found, bool]:
        """Best end, and whether it was found twice and stood when shaken."""
        n_followed = 0
        while n_followed < n_init:
            annealed = self._anneal_batch()
            for M in annealed[: min(N_FOLLOWED, n_init - n_followed)]:
                matching = _likelihood_round(self.pair, self.tiles, M)
                self.ends.append(self._climb(matching, "matching groups"))
                n_followed += 1
            for _ in range(N_JOINED):
                if self._is_found_twice() or not self._join():
                    break
            if self._is_found_twice() and self._stands():
                return self._refine(self.best), True
        return self._refine(self.best), False

    @property
    def best(self) -> Found:
        """The end that agrees best."""
        return max(self.ends, key=lambda end: end.agreement)

    def _record(self, matching: Permutation, stage: str) -> Found:
        # Rounds at full size take the time; how many there will be is not known.
        self.n_rounds += 1
        fraction = 0.35 + 0.6 * (1.0 - np.exp(-self.n_rounds / 30.0))
        return self.search.record(matching, self.rank, stage, fraction)

    def _anneal_batch(self) -> list[Array]:
        """Correlations that starts on new samples lead to, the best first."""
        pair, rng = self.pair, self.rng
        tasks = []
        known = len(pair.frozen) >= FEWEST_KNOWN
        for way in KNOWN_WAYS if known else WAYS:
            chosen = [rng.permutation(sample.size)[:ANNEALED] for sample in self.samples]
            part = pair.part(
                *(sample[each] for sample, each in zip(self.samples, chosen, strict=True))
            )
            D, E = (side[each] for side, each in zip(self.described, chosen, strict=True))
            first, whitened, softness = way
            if known:
                weight, first = np.float32(first), N_AXES
                D, E = self._add_known(part, weight * D, weight * E)
            how = int(first), whitened, softness
            tasks.append((part, *_principal_axes(D, E), how, self.rank))
        annealed = map_parallel(_anneal, tasks, n_jobs=self.n_jobs)
        # Only the agreement of a matching counts: soft shares of unbalanced columns overstate it.
        annealed.sort(key=pair.agreement_of, reverse=True)
        return annealed

    def _add_known(self, part: FactorPair, D: Single, E: Single) -> tuple[Single, Single]:
        """Descriptors with the distances to known items, comparable one by one."""
        described = []
        for number, (whole, side, others) in enumerate(
            ((self.pair.first, part.first, D), (self.pair.second, part.second, E))
        ):
            known = whole.points[self.pair.frozen[:, number]]
            squared = (
                np.einsum("ij,ij->i", side.points, side.points)[:, None]
                + np.einsum("ij,ij->i", known, known)
                - 2.0 * side.points @ known.T
            )
            logs = np.log(np.maximum(squared, 0.0) / side.spread + KNOWN_NOISE)
            described.append(np.hstack([_standardized(logs), others]))
        return described[0], described[1]

    def _climb(
        self,
        matching: Permutation,
        stage: str,
        *,
        rounds: int = MOST_CROSS_ROUNDS,
        trims: tuple[float, ...] = TRIMMED,
    ) -> Found:
        """Rounds that predict regions from each other, while they raise the agreement."""
        found = self._record(matching, stage)
        offset, n_idle = N_FOLLOWED * len(self.ends), 0
        for number in range(offset, offset + rounds):
            n_regions, trim = N_REGIONS[number % len(N_REGIONS)], trims[number % len(trims)]
            matching = self._cross_round(matching, n_regions, trim)
            after = self._record(matching, "repairing groups")
            n_idle = 0 if after.agreement > found.agreement * (1.0 + COUNTS) else n_idle + 1
            found = max(found, after, key=lambda each: each.agreement)
            if n_idle == PATIENCE:
                break
        return found

    def _cross_round(
        self, matching: Permutation, n_regions: int, trim: float, n_refits: int = N_REFITS
    ) -> Permutation:
        """Assign all items by maps that leave them out, then by the likelihood this implies."""
        pair, tiles = self.pair, self.tiles
        regions = find_regions(pair.first, n_regions, self.rng)
        scores = cross_fitted(pair, matching, regions, trim, self.rng, self.rank, n_refits)
        matching = pair.assign(tiles, scores.balanced(tiles, 1))
        return _likelihood_round(pair, tiles, pair.moments(matching, self.rank))

    def _is_same(self, end: Found, other: Found) -> bool:
        """Whether nearly all items lie in regions that both send mostly to the same places."""
        counts = []
        for each in (end, other):
            places = self.places[0] * N_PLACES + self.places[1][each.matching]
            counts.append(np.bincount(places, minlength=N_PLACES**2).reshape(N_PLACES, N_PLACES))
        sizes = counts[0].sum(axis=1)
        shared = np.minimum(*counts).sum(axis=1) > 0.5 * sizes
        return float(sizes[shared].sum()) >= SAME * len(end.matching)

    def _is_found_twice(self) -> bool:
        best = self.best
        alike = [
            end
            for end in self.ends
            if end.agreement > best.agreement * (1.0 - ALIKE) and self._is_same(end, best)
        ]
        return len(alike) > 1

    def _join(self) -> bool:
        """Follow what two ends have in common; False if there are no two to join."""
        order = sorted(range(len(self.ends)), key=lambda number: -self.ends[number].agreement)
        for place, one in enumerate(order):
            for other in order[place + 1 :]:
                first, second = self.ends[one], self.ends[other]
                if (
                    (one, other) in self.joined
                    or second.agreement < first.agreement * (1.0 - JOINABLE)
                    or self._is_same(first, second)
                ):
                    continue
                self.joined.add((one, other))
                end = self._climb(self._common(first, second), "joining answers")
                # What only comes back to one of the two confirms nothing.
                if not (self._is_same(end, first) or self._is_same(end, second)):
                    self.ends.append(end)
                elif end.agreement > self.best.agreement:
                    self.ends[one] = end
                return True
        return False

    def _common(self, first: Found, second: Found) -> Permutation:
        """Matching by the map of the items that two ends send to the same place."""
        pair, rank = self.pair, self.rank
        U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
        places = self.places[1]
        rows = np.flatnonzero(places[first.matching] == places[second.matching])
        images: Single = (V[first.matching[rows]] + V[second.matching[rows]]) / np.float32(2)
        gram = np.asarray(U[rows].T @ U[rows], dtype=np.float64)
        gram += RIDGE * len(U) * np.eye(len(gram))
        cross = np.asarray(U[rows].T @ images, dtype=np.float64)
        predicted = U @ np.linalg.solve(gram, cross).astype(np.float32)
        W = _noise_whitening(images - predicted[rows])
        keys = V @ W
        scores = Scores(predicted @ W, keys, np.float32(-0.5) * (keys**2).sum(axis=1))
        return pair.assign(self.tiles, scores.balanced(self.tiles, 1))

    def _stands(self) -> bool:
        """Whether the best comes back after its maps had to do without half of the items."""
        while True:
            best, better = self.best, False
            for n_regions in SHAKEN_REGIONS:
                matching = self._cross_round(best.matching, n_regions, SHAKEN, N_REFITS + 1)
                end = self._climb(matching, "shaking", rounds=SHAKEN_ROUNDS, trims=(0.25, 0.4))
                if end.agreement > best.agreement * (1.0 + BETTER) and not self._is_same(
                    end, best
                ):
                    self.ends.append(end)
                    better = True
                elif end.agreement < best.agreement * (1.0 - 2 * ALIKE):
                    return False
            if not better:
                return True
            if not self._is_found_twice():
                return False

    def _refine(self, found: Found) -> Found:
        """Last likelihood rounds, with shares of the columns balanced."""
        for _ in range(N_LAST_ROUNDS):
            M = self.pair.moments(found.matching, self.rank)
            after = self._record(
                _likelihood_round(self.pair, self.tiles, M, balanced=True), "refining"
            )
            if after.agreement > found.agreement * (1.0 - COUNTS):
                found = after
        return found


def _describe(tiles: Tiles, points: Single, spread: float, rng: np.random.RandomState) -> Single:
    """What the neighborhood of each item looks like, whatever the coordinates.

    Log distances to near neighbors, and at ranks among all items; their means over the neighbors,
    the means of these, and the spread. The means make groups alike, not single items.
    """
    n_items = len(points)
    squares = np.einsum("ij,ij->i", points, points)
    k = min(N_NEIGHBORS, n_items)
    neighbors, scores = tiles.best_columns(points, points, np.float32(-0.5) * squares, k)
    near = np.sort(squares[:, None] - 2.0 * scores, axis=1)[:, np.minimum(NEAR_RANKS, k - 1)]
    landmarks = points[rng.permutation(n_items)[:N_LANDMARKS]]
    ranks = np.geomspace(max(1.0, 0.004 * len(landmarks)), len(landmarks) - 1, N_FAR_RANKS)
    # Few items have some ranks twice, so that both sides are described by as many numbers.
    far = tiles.quantiles(points, landmarks, ranks.astype(np.intp))
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
    variances = np.maximum(variances, max(1e-6 * variances[-1], TINY))
    return D @ leading, E @ leading, variances[::-1][:N_AXES]


def _anneal(task: tuple[Any, ...]) -> Array:
    """Correlations at the end of a soft ascent of the kernel objective, ever finer and colder.

    The items of both sides are samples, so only groups can be matched, not single items.
    """
    part, D, E, variances, (n_axes, whitened, softness), rank = task
    U, V = part.first.scores[:, :rank], part.second.scores[:, :rank]
    scale = variances[:n_axes] ** (-whitened / 2)
    spread = float(np.linalg.norm(variances[:n_axes] ** (1 - whitened)))
    scale = (scale / np.sqrt(softness * spread)).astype(np.float32)
    queries, keys = D[:, :n_axes] * scale, E[:, :n_axes] * scale
    bias = np.float32(-0.5) * (keys**2).sum(axis=1)
    M, _ = _balanced_step(queries, keys, bias, U, V)
    bias = np.zeros(len(V), dtype=np.float32)
    temperatures = np.geomspace(*TEMPERATURES, N_LEVELS)
    for level, power in enumerate(np.geomspace(*POWERS, N_LEVELS)):
        if level:
            bias *= np.float32(temperatures[level - 1] / temperatures[level])
        for _ in range(STEPS_PER_LEVEL):
            H = _kernel_weights(part, M, power) / temperatures[level]
            M, bias = _balanced_step(U @ H.astype(np.float32), V, bias, U, V)
    H = (_kernel_weights(part, M, POWERS[-1]) / LAST_TEMPERATURE).astype(np.float32)
    with Tiles(1) as tiles:
        scores = Scores(U @ H, V, bias).balanced(tiles, N_BALANCING)
        return part.moments(part.assign(tiles, scores), rank)


def _balanced_step(
    queries: Single, keys: Single, bias: Single, U: Single, V: Single
) -> tuple[Array, Single]:
    """Correlations of soft shares whose rows and columns are balanced, and the new bias."""
    shares = queries @ keys.T
    shares += bias
    shares -= shares.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)
    wanted = np.float32(len(queries) / len(keys))
    factors = np.ones(len(keys), dtype=np.float32)
    for _ in range(N_BALANCING):
        rows = 1.0 / (shares @ factors)
        # What a step cannot balance without overflow is left to the next.
        factors = np.clip(wanted / (rows @ shares + SMALL), SMALL, 1.0 / SMALL)
    rows = 1.0 / (shares @ factors)
    means = (shares @ (V * factors[:, None])) * rows[:, None]
    bias = (bias + np.log(factors)).astype(np.float32)
    return np.asarray(U.T @ means, dtype=np.float64) / len(U), bias


def _kernel_weights(pair: FactorPair, M: Array, power: float) -> Array:
    """Gradient of the kernel objective at a power of the spectra, of norm 1."""
    first = pair.first.eigenvalues[: M.shape[0]] ** power
    second = pair.second.eigenvalues[: M.shape[1]] ** power
    H = first[:, None] * M * second
    return np.asarray(H / max(float(np.linalg.norm(H)), np.finfo(float).tiny))


# Rounds at full size


def _likelihood_round(
    pair: FactorPair, tiles: Tiles, M: Array, *, balanced: bool = False
) -> Permutation:
    """Assign all items by the likelihood that correlations imply."""
    U, V = pair.first.scores[:, : M.shape[0]], pair.second.scores[:, : M.shape[1]]
    likelihood = Likelihood.of(M, (whitening(U), whitening(V)), LARGEST_CORRELATION)
    scores = likelihood.scores(U, V)
    return pair.assign(tiles, scores.balanced(tiles, 1) if balanced else scores)


def cross_fitted(
    pair: FactorPair,
    matching: Permutation,
    groups: NDArray[np.intp],
    trimmed: float,
    rng: np.random.RandomState,
    rank: int,
    n_refits: int = N_REFITS,
) -> Scores:
    """Scores by ridge maps from first to second, each group by maps fitted on others.

    No exchanged group can vouch for itself then. The groups that the others predict worst, a
    share `trimmed` of the items, are left out of the maps altogether.
    """
    U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
    rows = np.flatnonzero(matching >= 0)
    own, partners, at = U[rows], V[matching[rows]], groups[rows]
    n_groups = int(groups.max()) + 1
    sizes = np.bincount(at, minlength=n_groups)
    grams, crosses = _group_moments(own, partners, at, sizes)
    folds = rng.randint(0, N_FOLDS, n_groups)
    ridge = RIDGE * rows.size * np.eye(U.shape[1])

    def fit_maps(used: NDArray[np.bool_]) -> list[Single]:
        weights = [(used & (folds != fold)).astype(np.float64) for fold in range(N_FOLDS)]
        return [
            np.linalg.solve(
                np.tensordot(each, grams, axes=1) + ridge, np.tensordot(each, crosses, axes=1)
            ).astype(np.float32)
            for each in weights
        ]

    def predict(maps: list[Single], items: Single, groups: NDArray[np.intp]) -> Single:
        predicted = np.empty((len(items), V.shape[1]), dtype=np.float32)
        for fold, each in enumerate(maps):
            inside = np.flatnonzero(folds[groups] == fold)
            predicted[inside] = items[inside] @ each
        return predicted

    used = np.ones(n_groups, dtype=bool)
    maps = fit_maps(used)
    residuals = partners - predict(maps, own, at)
    squared = np.einsum("ij,ij->i", residuals, residuals)
    # Wrong groups must not widen the noise.
    W = _noise_whitening(residuals[squared <= TYPICAL_RESIDUAL * np.median(squared)])
    if trimmed:
        for _ in range(n_refits):
            squared = ((residuals @ W) ** 2).sum(axis=1)
            errors = np.bincount(at, squared, minlength=n_groups) / np.maximum(sizes, 1)
            order = np.argsort(errors, kind="stable")
            used[order] = np.cumsum(sizes[order]) <= (1.0 - trimmed) * rows.size
            maps = fit_maps(used)
            residuals = partners - predict(maps, own, at)
        W = _noise_whitening(residuals[used[at]])
    keys = V @ W
    bias = np.float32(-0.5) * (keys**2).sum(axis=1)
    return Scores(predict(maps, U, groups) @ W, keys, bias)


def _group_moments(
    own: Single, partners: Single, groups: NDArray[np.intp], sizes: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Products of items with themselves and with their partners, summed over each group."""
    order = np.argsort(groups, kind="stable")
    own, partners = own[order], partners[order]
    grams = np.zeros((sizes.size, own.shape[1], own.shape[1]))
    crosses = np.zeros((sizes.size, own.shape[1], partners.shape[1]))
    ends = np.cumsum(sizes)
    for group, (begin, end) in enumerate(zip(ends - sizes, ends, strict=True)):
        grams[group] = own[begin:end].T @ own[begin:end]
        crosses[group] = own[begin:end].T @ partners[begin:end]
    return grams, crosses


def _noise_whitening(residuals: Single) -> Single:
    """Matrix that makes residuals uncorrelated with variance 1, none blown up beyond 30."""
    values, vectors = np.linalg.eigh(np.asarray(residuals.T @ residuals, dtype=np.float64))
    values = np.maximum(values, 1e-3 * values[-1]) / max(len(residuals), 1)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-12)), dtype=np.float32)


def find_regions(factors: Factors, n_regions: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Region of each item, by a few steps of k-means."""
    axes = factors.eigenvalues[:REGION_AXES] ** POWER
    F = factors.scores[:, :REGION_AXES] * axes.astype(np.float32)
    centers = F[rng.permutation(len(F))[:n_regions]]
    for _ in range(N_LLOYD):
        near = np.argmax(F @ centers.T - 0.5 * (centers**2).sum(axis=1), axis=1)
        members = sparse.csr_matrix(
            (np.ones(len(F), dtype=np.float32), (near, np.arange(len(F)))),
            shape=(len(centers), len(F)),
        )
        sizes = np.maximum(np.bincount(near, minlength=len(centers)), 1)
        centers = (members @ F) / sizes[:, None].astype(np.float32)
    return near
