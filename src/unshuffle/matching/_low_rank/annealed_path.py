"""The annealed path of the low-rank search, for groups of items and distorted distances."""

from itertools import count
from typing import Any

import numpy as np

from unshuffle._run.cluster import runs_elsewhere
from unshuffle._run.device import in_double, namespace, take
from unshuffle._run.parallel import all_cores, map_parallel
from unshuffle._run.types import Floats, Permutation
from unshuffle.matching._all_pairs.tiles import Tiles, tiles_for
from unshuffle.matching._low_rank.pair import FactorPair, Scores, Single
from unshuffle.matching._low_rank.rounds import (
    N_REFITS,
    RIDGE,
    LowRankSearch,
    RoundsFound,
    cross_fitted,
    find_regions,
    likelihood_round,
    noise_whitening,
    resolved,
    standardize,
)

# Components used, and items of each side that are described and annealed.
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
SMALL = 1e-15
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
# the maps leave out, taken in turn. They end after this many, or so many without this gain.
N_REGIONS, TRIMMED = (24, 48, 96, 32, 64, 128, 40, 80), (0.4, 0.25, 0.1, 0.3)
MOST_CROSS_ROUNDS, PATIENCE, COUNTS = 12, 3, 5e-4
N_LAST_ROUNDS = 3
LARGE_ROUNDS = 6  # with all items, after a search of a sample


class AnnealedPath:
    """A pool of ends, which grows until two unrelated ones are the same answer."""

    def __init__(
        self, search: LowRankSearch, tiles: Tiles, n_jobs: int | None, rng: np.random.RandomState
    ) -> None:
        self.search, self.pair = search, search.pair
        self.tiles, self.n_jobs, self.rng = tiles, n_jobs, rng
        self.rank = resolved(self.pair, SOFT_RANK)
        self.ends: list[RoundsFound] = []
        self.joined: set[tuple[int, int]] = set()  # positions of ends that were joined
        self.n_rounds = 0

    def run(self, n_init: int) -> tuple[RoundsFound, bool]:
        """Best end, and whether it was found twice and stood when shaken."""
        tiles, rng = self.tiles, self.rng
        sides = self.pair.first, self.pair.second
        self.places = [find_regions(side, tiles, N_PLACES, rng) for side in sides]
        self.samples = [rng.permutation(size)[:DESCRIBED] for size in self.pair.shape]
        self.described = [
            _describe(tiles, take(side.points, sample), side.spread, rng)
            for side, sample in zip(sides, self.samples, strict=True)
        ]
        n_followed = 0
        while n_followed < n_init:
            annealed = self._anneal_batch()
            for M in annealed[: min(N_FOLLOWED, n_init - n_followed)]:
                matching = likelihood_round(self.pair, self.tiles, M, rough=True)
                self.ends.append(self._climb(matching, "matching groups"))
                n_followed += 1
            for _ in range(N_JOINED):
                if self._is_found_twice() or not self._join():
                    break
            if self._is_found_twice() and self._stands():
                return self._refine(self.best), True
        return self._refine(self.best), False

    def finish(self, M: Floats) -> RoundsFound:
        """End of the climb from correlations that a sample of the items led to."""
        matching = likelihood_round(self.pair, self.tiles, M, balanced=True)
        return self._refine(self._climb(matching, "matching all items", rounds=LARGE_ROUNDS))

    @property
    def best(self) -> RoundsFound:
        """The end that agrees best."""
        return max(self.ends, key=lambda end: end.agreement)

    def _record(self, matching: Permutation, stage: str) -> RoundsFound:
        # Rounds at full size take the time; how many there will be is not known.
        self.n_rounds += 1
        fraction = 0.4 + 0.55 * (1.0 - np.exp(-self.n_rounds / 30.0))
        return self.search.record(matching, self.rank, stage, fraction)

    def _anneal_batch(self) -> list[Floats]:
        """Correlations that starts on new samples lead to, the best first."""
        pair, rng = self.pair, self.rng
        tasks = []
        known = len(pair.frozen) >= FEWEST_KNOWN
        for way in KNOWN_WAYS if known else WAYS:
            chosen = [rng.permutation(sample.size)[:ANNEALED] for sample in self.samples]
            part = pair.part(
                *(sample[each] for sample, each in zip(self.samples, chosen, strict=True))
            )
            D, E = (take(side, each) for side, each in zip(self.described, chosen, strict=True))
            first, whitened, softness = way
            if known:
                D, E = self._add_known(part, first * D, first * E)
                first = N_AXES
            how = int(first), whitened, softness
            axes = _principal_axes(self.tiles, D, E)
            tasks.append((part, *axes, how, self.rank, self.tiles.device))
        if self.tiles.device is None:
            n_jobs = self.n_jobs if runs_elsewhere(self.n_jobs) else all_cores(self.n_jobs)
            ended = count(1)

            def report() -> None:
                self.search.report("annealing", 0.34 + 0.06 * next(ended) / len(tasks))

            annealed = map_parallel(_anneal, tasks, n_jobs=n_jobs, anywhere=True, done=report)
        else:
            annealed = [_anneal(task) for task in tasks]
        # Only the agreement of a matching counts: soft shares of unbalanced columns overstate it.
        annealed.sort(key=pair.agreement_of, reverse=True)
        return annealed

    def _add_known(self, part: FactorPair, D: Single, E: Single) -> tuple[Single, Single]:
        """Descriptors with the distances to known items, comparable one by one."""
        described = []
        for number, (whole, side, others) in enumerate(
            ((self.pair.first, part.first, D), (self.pair.second, part.second, E))
        ):
            known = take(whole.points, self.pair.frozen[:, number])
            xp = namespace(known)
            squared = (side.points**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)
            squared -= 2.0 * side.points @ known.T
            logs = xp.log(xp.clip(squared, 0.0, None) / side.spread + KNOWN_NOISE)
            described.append(xp.hstack([standardize(self.tiles, logs), others]))
        return described[0], described[1]

    def _climb(
        self,
        matching: Permutation,
        stage: str,
        *,
        rounds: int = MOST_CROSS_ROUNDS,
        trims: tuple[float, ...] = TRIMMED,
    ) -> RoundsFound:
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
        regions = find_regions(pair.first, tiles, n_regions, self.rng)
        scores = cross_fitted(pair, tiles, matching, regions, trim, self.rng, self.rank, n_refits)
        matching = pair.assign(tiles, scores.balanced(tiles, 1), rough=True)
        M = pair.moments(matching, self.rank)
        return likelihood_round(pair, tiles, M, rough=True)

    def _is_same(self, end: RoundsFound, other: RoundsFound) -> bool:
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

    def _common(self, first: RoundsFound, second: RoundsFound) -> Permutation:
        """Matching by the map of the items that two ends send to the same place."""
        pair, rank = self.pair, self.rank
        U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
        places = self.places[1]
        rows = np.flatnonzero(places[first.matching] == places[second.matching])
        images = (take(V, first.matching[rows]) + take(V, second.matching[rows])) / 2.0
        own = take(U, rows)
        gram = in_double(own.T @ own)
        gram += RIDGE * len(U) * np.eye(len(gram))
        predicted = U @ self.tiles.put(np.linalg.solve(gram, in_double(own.T @ images)))
        W = self.tiles.put(noise_whitening(images - take(predicted, rows)))
        keys = V @ W
        scores = Scores(predicted @ W, keys, -0.5 * (keys**2).sum(axis=1))
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

    def _refine(self, found: RoundsFound) -> RoundsFound:
        """Last likelihood rounds, with shares of the columns balanced."""
        for _ in range(N_LAST_ROUNDS):
            M = self.pair.moments(found.matching, self.rank)
            after = self._record(
                likelihood_round(self.pair, self.tiles, M, balanced=True), "refining"
            )
            if after.agreement > found.agreement * (1.0 - COUNTS):
                found = after
        return found


def _describe(tiles: Tiles, points: Single, spread: float, rng: np.random.RandomState) -> Single:
    """What the neighborhood of each item looks like, whatever the coordinates.

    Log distances to near neighbors, and at ranks among all items; their means over the neighbors,
    the means of these, and the spread. The means make groups alike, not single items.
    """
    n_items, xp = len(points), namespace(points)
    squares = (points**2).sum(axis=1)
    k = min(N_NEIGHBORS, n_items)
    neighbors, scores = tiles.best_columns(points, points, -0.5 * squares, k)
    near = np.sort(in_double(squares[:, None] - 2.0 * scores), axis=1)
    near = near[:, np.minimum(NEAR_RANKS, k - 1)]
    landmarks = take(points, rng.permutation(n_items)[:N_LANDMARKS])
    ranks = np.geomspace(max(1.0, 0.004 * len(landmarks)), len(landmarks) - 1, N_FAR_RANKS)
    # Few items have some ranks twice, so that both sides are described by as many numbers.
    far = in_double(tiles.quantiles(points, landmarks, ranks.astype(np.intp)))
    logs = np.log(np.maximum(np.hstack([near, far]) / spread, 1e-4))
    levels = [standardize(tiles, tiles.put(logs))]
    for _ in range(2):
        levels.append(_mean_over(neighbors, levels[-1]))
    levels.append(xp.sqrt(_mean_over(neighbors, levels[0], levels[1])))
    return standardize(tiles, xp.hstack(levels))


def _mean_over(neighbors: Any, values: Single, center: Any = None) -> Single:
    """Mean of the values of each item's neighbors, or of their squared distance to a center."""
    total = 0.0
    for k in range(neighbors.shape[1]):
        part = values[neighbors[:, k]]
        total = total + (part if center is None else (part - center) ** 2)
    return total / neighbors.shape[1]


def _principal_axes(tiles: Tiles, D: Single, E: Single) -> tuple[Single, Single, Floats]:
    """Leading common axes of descriptors of both sides, and their variances."""
    covariance = in_double(D.T @ D / len(D) + E.T @ E / len(E)) / 2
    variances, axes = np.linalg.eigh(covariance)
    leading = tiles.put(axes[:, ::-1][:, :N_AXES])
    variances = np.maximum(variances, max(1e-6 * variances[-1], TINY))
    return D @ leading, E @ leading, variances[::-1][:N_AXES]


def _anneal(task: tuple[Any, ...]) -> Floats:
    """Correlations at the end of a soft ascent of the kernel objective, ever finer and colder.

    The items of both sides are samples, so only groups can be matched, not single items.
    """
    part, D, E, variances, (n_axes, whitened, softness), rank, device = task
    U, V = part.first.scores[:, :rank], part.second.scores[:, :rank]
    scale = variances[:n_axes] ** (-whitened / 2)
    spread = float(np.linalg.norm(variances[:n_axes] ** (1 - whitened)))
    with tiles_for(device, 1) as tiles:
        put = tiles.put
        widths = put(scale / np.sqrt(softness * spread))
        queries, keys = D[:, :n_axes] * widths, E[:, :n_axes] * widths
        M, _ = _balanced_step(queries, keys, -0.5 * (keys**2).sum(axis=1), U, V)
        bias = put(np.zeros(len(V)))
        temperatures = np.geomspace(*TEMPERATURES, N_LEVELS)
        for level, power in enumerate(np.geomspace(*POWERS, N_LEVELS)):
            if level:
                bias *= float(temperatures[level - 1] / temperatures[level])
            for _ in range(STEPS_PER_LEVEL):
                H = put(_kernel_weights(part, M, power) / temperatures[level])
                M, bias = _balanced_step(U @ H, V, bias, U, V)
        H = put(_kernel_weights(part, M, POWERS[-1]) / LAST_TEMPERATURE)
        scores = Scores(U @ H, V, bias).balanced(tiles, N_BALANCING)
        return part.moments(part.assign(tiles, scores), rank)


def _balanced_step(
    queries: Single, keys: Single, bias: Single, U: Single, V: Single
) -> tuple[Floats, Single]:
    """Correlations of soft shares whose rows and columns are balanced, and the new bias."""
    xp = namespace(U)
    shares = queries @ keys.T
    shares += bias
    shares -= xp.amax(shares, axis=1, keepdims=True)
    xp.exp(shares, out=shares)
    wanted = len(queries) / len(keys)
    factors = xp.ones_like(bias)
    for _ in range(N_BALANCING):
        rows = 1.0 / (shares @ factors)
        # What a step cannot balance without overflow is left to the next.
        factors = xp.clip(wanted / (rows @ shares + SMALL), SMALL, 1.0 / SMALL)
    rows = 1.0 / (shares @ factors)
    means = (shares @ (V * factors[:, None])) * rows[:, None]
    return in_double(U.T @ means) / len(U), bias + xp.log(factors)


def _kernel_weights(pair: FactorPair, M: Floats, power: float) -> Floats:
    """Gradient of the kernel objective at a power of the spectra, of norm 1."""
    first = pair.first.eigenvalues[: M.shape[0]] ** power
    second = pair.second.eigenvalues[: M.shape[1]] ** power
    H = first[:, None] * M * second
    return np.asarray(H / max(float(np.linalg.norm(H)), np.finfo(float).tiny))
