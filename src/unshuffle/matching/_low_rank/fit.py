"""A fit of KernelizedSorting on low-rank factors, for collections of any size."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from unshuffle._core.grams import check_frozen, check_shape
from unshuffle._core.scalings import SCALINGS
from unshuffle._run.device import (
    as_index,
    check_device_memory,
    in_double,
    namespace,
    take,
    to_host,
)
from unshuffle._run.parallel import all_cores
from unshuffle._run.types import Floats, Permutation
from unshuffle.matching._all_pairs.tiles import Tiles, tiles_for
from unshuffle.matching._dense.search import (
    CLEARLY_DIFFERENT,
    FINISHED,
    LARGEST_LIMIT,
    RELEASED,
)
from unshuffle.matching._fit import Answer, Fit, fixed_rng
from unshuffle.matching._low_rank.annealed_path import N_PLACES, SOFT_RANK, WAYS
from unshuffle.matching._low_rank.blocks import on_device
from unshuffle.matching._low_rank.density_path import SOFT_CORRELATIONS, regressed, soft_step
from unshuffle.matching._low_rank.factors import Factors, compute_factors
from unshuffle.matching._low_rank.pair import (
    POWER,
    STEP,
    TAKEN,
    FactorPair,
    Likelihood,
    Scores,
    whitening,
)
from unshuffle.matching._low_rank.rounds import (
    LowRankSearch,
    RoundsFound,
    cross_fitted,
    find_regions,
)
from unshuffle.matching._low_rank.search import CONVINCING, solve_low_rank
from unshuffle.matching._trust.evidence import FEWEST_PAIRS, MANY_KNOWN, Evidence
from unshuffle.matching._trust.known_pairs import FEWEST, LEAST_DOUBT, NAT, LeftOut, check_hints
from unshuffle.matching._trust.questions import RANK

N_LANDMARKS = 1024
# Rough time of the density path and the checks on one core, and memory.
FIXED_SECONDS, PER_PAIR = 5.0, 3e-8
FIXED_BYTES, BYTES_PER_CORE, BYTES_PER_ITEM = 1.5e8, 8e7, 4000.0
# Of a GPU: rough time, and memory there.
DEVICE_SECONDS, PER_DEVICE_PAIR, DEVICE_BYTES = 1.0, 6e-12, 4e8
HOST_BYTES_PER_ITEM = 400.0
MOST_RELEASES = 10
N_GROUPS = 64  # random groups of items that are left out in turn
SAMPLED = 1024  # pairs of each sample that is matched again
# Axes along which mirror images are looked for; how close to an image an item must be, relative
# to the squared distance to its nearest neighbor, and for which share of the items.
MIRRORS, MIRRORED, NEARLY_ALL = 6, 0.01, 0.95
N_HELD, N_DRIFT = 4, 2  # parts that are left out in turn, and soft steps without them
# Regions that are predicted from each other, and the share of items that may leave their place.
N_REGIONS, MOST_MOVED = 32, 0.1
NO_PAIRS = np.empty((0, 2), dtype=np.intp)
LARGEST_COST = 1e4  # nats; larger costs rule a pair out just as well

Solve = Callable[..., RoundsFound]


class LowRankFit(Fit):
    """A fit whose memory grows with the number of items, not with its square."""

    method = "low_rank"
    instead = "Fit a sample of the items."
    in_place = True
    times_longer = 15.0

    def expected_resources(self) -> tuple[float, int]:
        """Rough seconds and bytes that the fit takes."""
        n_items, n_cores = float(self.n_items), all_cores(self.sorting.n_jobs)
        if self.device is not None:
            n_bytes = DEVICE_BYTES + n_items * (BYTES_PER_ITEM + 4.0 * self._count_columns())
            what = f"Matching {self.n_items:,} items"
            check_device_memory(self.device, n_bytes, what=what, instead=self.instead)
            seconds = DEVICE_SECONDS + PER_DEVICE_PAIR * n_items**2
            return seconds, int(FIXED_BYTES + HOST_BYTES_PER_ITEM * n_items)
        seconds = FIXED_SECONDS + PER_PAIR * n_items**2 / n_cores
        n_bytes = FIXED_BYTES + BYTES_PER_CORE * min(n_cores, len(WAYS))
        return seconds, int(n_bytes + BYTES_PER_ITEM * n_items)

    def _count_columns(self) -> int:
        """Columns of both collections, as far as they are tables, which are copied to a GPU."""
        parts = [
            part
            for side in (self.X, self.y)
            for part in (side if isinstance(side, list | tuple) else [side])
            if isinstance(part, np.ndarray) and part.ndim == 2
        ]
        return sum(part.shape[1] for part in parts)

    def prepare(self, after: Any = None) -> LowRankSearch:
        """Compute the factors of both sides; `after` is an earlier search."""
        self.pair = self._build_pair()
        self.search = LowRankSearch(self.pair, self.sorting.callback, self.span())
        if after is not None:
            self.search.iteration = after.iteration
        return self.search

    def _build_pair(self) -> FactorPair:
        sorting = self.sorting
        factors = []
        for collection, kernel, weights, name in self.sides():
            if self.tables is not None and self.choice is not None:
                table = self.tables.X if name == "X" else self.tables.y
                collection, kernel = SCALINGS[self.choice.scaling](table), self.choice.kernel
            factors.append(
                compute_factors(
                    collection,
                    kernel,
                    gamma=sorting.gamma,
                    weights=weights,
                    name=name,
                    rank=SOFT_RANK,
                    n_landmarks=N_LANDMARKS,
                    n_jobs=all_cores(sorting.n_jobs),
                    device=self.device,
                )
            )
        sizes = [len(each.scores) for each in factors]
        frozen = check_frozen(self.frozen, *sizes)
        cost = self._linear_term(*sizes)
        swapped = sizes[0] > sizes[1]
        order = -1 if swapped else 1
        first, second = factors[::order]
        pair = FactorPair(first, second, frozen[:, ::order], None, swapped)
        if cost is None and self.hints is None:
            return pair
        nats = self._in_nats(pair, cost)
        if not sparse.issparse(nats):
            nats = on_device(nats, self.device)
        return replace(pair, cost=nats)

    def _linear_term(self, n_first: int, n_second: int) -> Any:
        cost: Any = self.cost
        if not sparse.issparse(cost):
            return self.check_linear_term(n_first, n_second)
        check_shape(cost, (n_first, n_second), "cost", "items of X by items of y")
        return sparse.csr_matrix(cost)

    def _in_nats(self, pair: FactorPair, cost: Any) -> Any:
        """The user's cost and hints as one linear term, in nats and in the order of the pair."""
        n_first, n_second = pair.shape
        spectra = pair.first.eigenvalues, pair.second.eigenvalues
        rank = min(each.size for each in spectra)
        # Spread of the gradient at a good matching, whose components agree.
        spread = 2.0 * n_first * float(np.linalg.norm(spectra[0][:rank] * spectra[1][:rank]))
        hints = check_hints(self.hints, *pair.shape[:: pair.order])
        pairs = hints.pairs[:, :: pair.order]
        free = ~(np.isin(pairs[:, 0], pair.frozen[:, 0]) | np.isin(pairs[:, 1], pair.frozen[:, 1]))
        likely = np.clip(hints.probabilities[free], LEAST_DOUBT, 1.0 - LEAST_DOUBT)
        evidence = np.log(likely / (1.0 - likely)) + np.log(max(n_second - 1, 1))
        favored = sparse.csr_matrix((-evidence, pairs[free].T), shape=pair.shape)
        if cost is None:
            return favored.astype(np.float32)
        if pair.swapped:
            cost = cost.T
        if sparse.issparse(cost):
            return sparse.csr_matrix(cost / (NAT * spread) + favored, dtype=np.float32)
        total = np.clip(cost / (NAT * spread), -LARGEST_COST, LARGEST_COST).astype(np.float32)
        total[pairs[free, 0], pairs[free, 1]] -= evidence.astype(np.float32)
        return total

    def tiles(self) -> Any:
        """The machine that works on all pairs, the CPU or a GPU."""
        return tiles_for(self.device, all_cores(self.sorting.n_jobs))

    def solve(self) -> RoundsFound:
        """Search, and release pairs of the result even if the search was stopped."""
        sorting, n_jobs = self.sorting, self.sorting.n_jobs
        rng = check_random_state(sorting.random_state)
        with self.tiles() as tiles:
            try:
                found = solve_low_rank(
                    self.search, tiles, n_init=int(sorting.n_init), n_jobs=n_jobs, rng=rng
                )
                self.search.offer(found, FINISHED)
            finally:
                best = self.search.best
                if best is not None and sorting.unmatched_cost is not None:
                    released = release(self.pair, tiles, best.matching, sorting.unmatched_cost)
                    self.search.offer(replace(best, released=released), RELEASED)
        return self.search.found

    def answer(self, found: RoundsFound) -> Answer:
        """What was found, in the user's order of collections."""
        pair = self.pair
        frozen, n_jobs = pair.frozen[:, :: pair.order], self.sorting.n_jobs
        with self.tiles() as tiles:
            self.scores = honest_scores(pair, tiles, found)
        return Answer(
            permutation=pair.to_user(found.kept),
            n_second=pair.shape[0 if pair.swapped else 1],
            frozen=frozen,
            objective=pair.objective(found.kept),
            path=found.path,
            converged=True,
            shares=FactorShares(pair, self.scores, found.matching, self.device, n_jobs),
        )

    def judge(self, interrupted: bool) -> tuple[float, Floats]:
        """Ambiguity of the matching, and the posterior share of the partner of each item of X."""
        pair, found = self.pair, self.search.found
        with self.tiles() as tiles:
            columns, soft = soften(pair, tiles, self.scores, found.matching, 1.0)
            mirrored = all(is_mirrored(side, tiles) for side in (pair.first, pair.second))
            rivalry = 1.0 if mirrored else ambiguity(pair, tiles, found)
        shares = np.ones(pair.shape[0])
        shares[pair.free] = _share_of(columns, soft, found.matching[pair.free])
        each = np.zeros(pair.shape[1 if pair.swapped else 0])
        rows = np.flatnonzero(found.kept >= 0)
        each[found.kept[rows] if pair.swapped else rows] = shares[rows]
        return rivalry, each

    def check(self, ambiguity: float) -> tuple[Evidence | None, LeftOut | None]:
        """Leave known pairs out if there are enough; unless many, match samples again."""
        pair, found = self.pair, self.search.found
        n_jobs = self.sorting.n_jobs
        with self.tiles() as tiles:
            left_out = leave_out(pair, tiles, found) if len(pair.frozen) >= FEWEST else None
            if len(pair.frozen) >= MANY_KNOWN:
                return None, left_out

            def solve(part: FactorPair, convincing: float = CONVINCING) -> RoundsFound:
                return solve_low_rank(
                    LowRankSearch(part, self.on_check),
                    tiles,
                    n_init=1,
                    n_jobs=n_jobs,
                    rng=fixed_rng(),
                    convincing=convincing,
                )

            evidence = gather_evidence(pair, found, ambiguity, self.reporting(solve))
            if evidence is None:
                return None, left_out
            settled = settled_share(pair, tiles, found)
            unsure = question(pair, tiles, found)
            return replace(evidence, settled=settled, unsure=unsure), left_out


class FactorShares:
    """Soft shares of pairs from likelihood scores; computed when asked for."""

    def __init__(
        self,
        pair: FactorPair,
        scores: Scores,
        matching: Permutation,
        device: Any,
        n_jobs: int | None,
    ) -> None:
        self.pair, self.scores, self.matching = pair, scores, matching
        self.device, self.n_jobs = device, n_jobs

    def __getstate__(self) -> dict[str, Any]:
        """State to pickle, which is read without a GPU too."""
        scores = Scores(*(to_host(each) for each in vars(self.scores).values()))
        first, second = (
            replace(side, scores=to_host(side.scores), points=to_host(side.points))
            for side in (self.pair.first, self.pair.second)
        )
        pair = replace(self.pair, first=first, second=second, cost=to_host(self.pair.cost))
        return {**vars(self), "pair": pair, "scores": scores, "device": None}

    @property
    def components(self) -> NDArray[np.float32]:
        """Leading components of X, whose inner products are its squared kernel up to a factor."""
        own = self.pair.second if self.pair.swapped else self.pair.first
        weights = own.eigenvalues[:RANK] / own.eigenvalues[0]
        return np.asarray(to_host(own.scores[:, :RANK]) * weights.astype(np.float32))

    def tiles(self) -> Any:
        """The machine that works on all pairs."""
        return tiles_for(self.device, all_cores(self.n_jobs))

    def soft_matches(self, temperature: float) -> Any:
        """Share of each item of X in its best candidates of y, a sparse matrix."""
        pair = self.pair
        with self.tiles() as tiles:
            columns, soft = soften(pair, tiles, self.scores, self.matching, temperature / NAT)
        columns, soft = to_host(columns), to_host(soft).astype(np.float64)
        held = soft.ravel() > 0.0
        rows = np.repeat(pair.free, columns.shape[1])[held]
        i = np.concatenate([rows, pair.frozen[:, 0]])
        j = np.concatenate([columns.ravel()[held], pair.frozen[:, 1]])
        values = np.concatenate([soft.ravel()[held], np.ones(len(pair.frozen))])
        if pair.swapped:
            return sparse.csr_matrix((values, (j, i)), shape=pair.shape[::-1])
        return sparse.csr_matrix((values, (i, j)), shape=pair.shape)

    def candidates(self, k: int, permutation: Permutation) -> NDArray[np.intp]:
        """The k best partners of each item of X, the matched one first."""
        scores, pair = self.scores, self.pair
        with self.tiles() as tiles:
            if pair.swapped:
                none = tiles.put(np.zeros(pair.shape[0]))
                scores = Scores(scores.keys, scores.queries, none)
            found = tiles.best_columns(scores.queries, scores.keys, scores.bias, k + 1)
        columns, worth = map(to_host, found)
        rows = np.flatnonzero(permutation >= 0)
        matched = columns[rows] == permutation[rows, None]
        worth[rows] = np.where(matched, np.inf, worth[rows])
        missing = rows[~matched.any(axis=1)]
        last = np.argmin(worth[missing], axis=1)
        columns[missing, last] = permutation[missing]
        worth[missing, last] = np.inf
        order = np.argsort(-worth, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(columns, order, axis=1).astype(np.intp)


def honest_scores(pair: FactorPair, tiles: Tiles, found: RoundsFound) -> Scores:
    """Scores of each item by the other pairs, with the noise of pairs that were left out."""
    rng = fixed_rng()
    groups = rng.randint(0, N_GROUPS, pair.shape[0])
    return cross_fitted(pair, tiles, found.kept, groups, 0.0, rng, found.rank)


def soften(
    pair: FactorPair, tiles: Tiles, scores: Scores, matching: Permutation, temperature: float
) -> tuple[Any, Any]:
    """Best candidates of each free item, its partner among them, and their posterior shares.

    Shares of an item sum to 1; those of a candidate too if both sides have one size, and to at
    most 1 otherwise.
    """
    n_first, n_second = pair.shape
    taken = np.zeros(n_second, dtype=bool)
    taken[pair.frozen[:, 1]] = True
    rows = pair.free
    columns, worth = pair.candidates(tiles, scores, rows, taken)
    xp = namespace(columns)
    own = scores.of_pairs(rows, matching[rows])
    if pair.cost is not None:
        own = own - tiles.put(_entries(pair.cost, rows, matching[rows]))
    partners = as_index(matching[rows], columns)
    # The partner joins only where it is not among the candidates, since shares would be summed.
    own = xp.where((columns == partners[:, None]).any(axis=1), 2 * TAKEN, own)
    columns = xp.hstack([columns, partners[:, None]])
    worth = xp.hstack([worth, own[:, None]]) / temperature
    return columns, tiles.balance(columns, worth, surplus=n_second > n_first)


def _entries(cost: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
    """Entries of a matrix, sparse or not."""
    if sparse.issparse(cost):
        return np.asarray(cost[rows, columns]).ravel()
    return in_double(cost[rows, columns])


def _share_of(columns: Any, shares: Any, partners: Permutation) -> Floats:
    """Share of each row in its partner."""
    return in_double((shares * (columns == as_index(partners, columns)[:, None])).sum(axis=1))


def release(
    pair: FactorPair, tiles: Tiles, matching: Permutation, unmatched_cost: float
) -> Permutation:
    """Release pairs that disagree too much with the others.

    The disagreement of a pair (i, a) is the mean of (K[i, j] - L[a, p(j)])^2 / 2 over the pairs
    (j, p(j)), relative to that of a random pair: a quadratic form in the components of both. K
    and L are taken at a small spectral power, since near-misses agree in all but fine differences.
    """
    first, second = pair.first, pair.second
    spectra = [each.eigenvalues**POWER for each in (first, second)]
    spectra = [each / np.linalg.norm(each) for each in spectra]
    limit = min(float(unmatched_cost), LARGEST_LIMIT)
    n_kept = matching.size + 1
    for _ in range(MOST_RELEASES):
        rows = np.flatnonzero(matching >= 0)
        if rows.size >= n_kept or rows.size == 0:
            break
        n_kept = rows.size
        M = pair.moments(matching, max(each.size for each in spectra))
        H = tiles.put(spectra[0][:, None] * M * spectra[1])
        squares = [
            0.5 * ((each.scores**2) @ tiles.put(spectrum**2))
            for each, spectrum in zip((first, second), spectra, strict=True)
        ]
        # In units in which a step of the auction is small.
        unit = 1e3 / max(1.0, limit)
        scores = Scores(first.scores @ H * unit, second.scores, -squares[1] * unit)
        rows = pair.free[matching[pair.free] >= 0]
        apart = unit * take(squares[0], rows) - scores.of_pairs(rows, matching[rows])
        if bool((apart <= unit * limit).all()):
            break  # an auction of loose limits would take long and release nothing
        taken = np.zeros(pair.shape[1], dtype=bool)
        taken[pair.frozen[:, 1]] = True
        free = pair.free
        columns, worth = pair.candidates(tiles, scores, free, taken)
        floors = unit * (take(squares[0], free) - limit)
        partners, _ = tiles.auction(columns, worth, pair.shape[1], floors=floors, step=STEP)
        matching = np.full(pair.shape[0], -1, dtype=np.intp)
        matching[free] = to_host(partners)
        matching[pair.frozen[:, 0]] = pair.frozen[:, 1]
    return matching


def ambiguity(pair: FactorPair, tiles: Tiles, found: RoundsFound) -> float:
    """Agreement of the best clearly different matching, relative to the best; from 0 to 1."""
    V = pair.second.scores * tiles.put(np.sqrt(pair.second.eigenvalues))
    typical = 2.0 * float(pair.second.eigenvalues.sum())
    shares = []
    for rival in found.rivals:
        apart = take(V, found.matching) - take(V, rival)
        if float((apart**2).sum(axis=1).mean()) / typical > CLEARLY_DIFFERENT:
            ratios = (
                pair.agreement(rival, power) / pair.agreement(found.matching, power)
                for power in (1.0, POWER)
            )
            shares.append(min(ratios))
    return float(np.clip(max(shares, default=0.0), 0.0, 1.0))


def is_mirrored(factors: Factors, tiles: Tiles) -> bool:
    """Whether nearly all items have a mirror image, so that two matchings are equally good."""
    points = factors.points - factors.points.mean(axis=0)
    rows = take(points, fixed_rng().permutation(len(points))[:SAMPLED])
    bias = -0.5 * (points**2).sum(axis=1)
    _, near = tiles.best_columns(rows, points, bias, 2)
    # Scores are half the squared distance below half the squared length.
    apart = in_double((rows**2).sum(axis=1)) - 2.0 * in_double(near).min(axis=1)
    close = MIRRORED * np.median(apart)
    axes = tiles.put(np.linalg.eigh(in_double(points.T @ points))[1][:, ::-1])
    for axis in axes[:, :MIRRORS].T:
        image = rows - 2.0 * (rows @ axis)[:, None] * axis
        _, best = tiles.best_columns(image, points, bias, 1)
        missed = in_double((image**2).sum(axis=1) - 2.0 * best[:, 0])
        if np.mean(missed <= close) > NEARLY_ALL:
            return True
    return False


def gather_evidence(
    pair: FactorPair, found: RoundsFound, ambiguity: float, solve: Solve
) -> Evidence | None:
    """Match two samples of the pairs again, and each with the partners of the other.

    The partners of the other sample are items of the same kind, but none is the right partner of
    an item: what they reach is chance. Only the path that found the matching is followed for
    that. None if there are too few pairs.
    """
    matching = found.kept
    convincing = 0.0 if found.agreement >= CONVINCING else CONVINCING
    matched = np.flatnonzero(matching >= 0)
    if matched.size < FEWEST_PAIRS:
        return None
    size = min(matched.size // 2, SAMPLED)
    order = fixed_rng().permutation(matched)
    samples = order[:size], order[size : 2 * size]
    kept, excess = [], []
    for rows, others in (samples, samples[::-1]):
        part = pair.part(rows, matching[rows])
        same = np.arange(size)
        again = solve(part)
        kept.append(float((again.matching == same).mean()))
        chance = solve(pair.part(rows, matching[others]), convincing).agreement
        share = (part.agreement(same) - chance) / max(1.0 - chance, 1e-9)
        excess.append(max(share, -1.0))  # few items may agree by more than 1
    return Evidence(float(np.mean(kept)), float(np.mean(excess)), ambiguity)


def settled_share(pair: FactorPair, tiles: Tiles, found: RoundsFound) -> float:
    """Share of the pairs that come back from maps fitted without them and free to drift.

    Pairs that were chosen to fit a map also fit one that was fitted on the others, since the
    choice has made them alike. After a few soft steps without them only right pairs fit.
    """
    rng, rank = fixed_rng(), found.rank
    U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
    whiten = whitening(U), whitening(V)
    C = in_double(U.T @ U) / len(U)
    matched = rng.permutation(np.flatnonzero(found.kept >= 0))
    shares = []
    parts = np.array_split(matched, N_HELD)
    for number, held in enumerate(parts):
        others = np.concatenate(parts[:number] + parts[number + 1 :])
        M = regressed(take(U, others), take(V, found.kept[others]), C)
        for _ in range(N_DRIFT):
            rows = others[rng.permutation(others.size)[: tiles.sampled]]
            likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[1])
            scores = likelihood.scores(tiles, take(U, rows), V)
            M = soft_step(tiles, scores, U, V, C, rows, NO_PAIRS)
        rows = held[: tiles.sampled]
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[1])
        scores = likelihood.scores(tiles, take(U, rows), V)
        own = scores.of_pairs(np.arange(rows.size), found.kept[rows])
        sums = tiles.log_sums(scores.queries, scores.keys, scores.bias)
        shares.append(np.exp(in_double(own - sums)))
    return float(np.concatenate(shares).mean())


def question(pair: FactorPair, tiles: Tiles, found: RoundsFound) -> str:
    """Why the search may have missed the best matching; empty if nothing says so."""
    if found.agreement >= CONVINCING:
        return ""
    if not found.confirmed:
        return "no two starts of the search led to the same matching"
    rng = fixed_rng()
    regions = find_regions(pair.first, tiles, N_REGIONS, rng)
    scores = cross_fitted(pair, tiles, found.matching, regions, 0.0, rng, found.rank)
    places = find_regions(pair.second, tiles, N_PLACES, rng)
    moved = float((places[pair.assign(tiles, scores)] != places[found.matching]).mean())
    if moved > MOST_MOVED:
        return f"{moved:.0%} of the items would go elsewhere if regions were predicted from others"
    return ""


def leave_out(pair: FactorPair, tiles: Tiles, found: RoundsFound) -> LeftOut:
    """Assign the known pairs by what the others imply, as if they were not known."""
    others = found.kept.copy()
    others[pair.frozen[:, 0]] = -1
    free = replace(pair, frozen=NO_PAIRS)
    again = free.assign(tiles, honest_scores(pair, tiles, replace(found, released=others)))
    n_found = int((again[pair.frozen[:, 0]] == pair.frozen[:, 1]).sum())
    return LeftOut(len(pair.frozen), n_found, np.empty(0))
