"""Which other matchings are about as good as the one found: exchanged partners, and symmetries.

Halves of the pairs carry the same symmetry as the whole, so that they do not notice it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._quadratic.problem import QuadraticProblem, assign_free, climb
from unshuffle._run.types import Floats, Permutation
from unshuffle.matching._dense.pair import FEW_FROZEN, KernelPair, profile_cost, root_mean_square
from unshuffle.matching._dense.search import (
    CLEARLY_DIFFERENT,
    Outcome,
    chance_level,
    disagreement,
    typical_distance,
)
from unshuffle.matching._dense.views import agreement

# Spectral power at which exchanges are judged, and the share of the disagreement of a pair that is
# noise of its own two items. The rest is noise of the items that they are compared with.
POWER, OWN_NOISE = 0.5, 0.75
# Differences below this share of the typical one are rounding errors.
ROUNDING = 1e-12
LARGEST_ODDS = 50.0
# An item is alike to others if its partner is less likely than this to be the right one of them.
ALIKE = 0.6
# Rivals are looked for if this share of the items have an image far away, one whose sorted
# similarities differ at most this many times as much as those of partners.
HAVE_IMAGE, AS_NEAR = 0.5, 1.5
# Images that are tried in one round, the most rounds, first steps of each try, and the share of
# the objective that these must reach.
N_TRIED, MOST_ROUNDS, N_STEPS, BEGUN_WELL = 6, 4, 2, 0.75
# A rival is as good if it reaches this share of the objective, and disagrees at most this many
# times as much. Below the second share it counts for nothing.
AS_GOOD, LEAST_GOOD, MOST_DISAGREEMENT = 0.97, 0.9, 2.0
MOST_RIVALS = 64
# Partners that are this close, as a share of the distance of random ones, are the same.
SAME_PLACE = 1e-3


@dataclass(frozen=True, eq=False)
class Alternatives:
    """For each item of X, how sure its partner is among others that are as good."""

    alike: Floats  # probability that the partner is right, among those of items that are alike
    kept: Floats  # share of the matchings that are about as good in which the partner is the same
    n_rivals: int  # number of the latter, without the one found

    def of(self, items: NDArray[np.intp]) -> "Alternatives":
        """Those of some items."""
        return Alternatives(self.alike[items], self.kept[items], self.n_rivals)


def exchange_shares(pair: KernelPair, matching: Permutation) -> Floats:
    """Probability of each partner, beside those that the item could take over from others.

    0 for unmatched items. Views are taken for independent, so that their log-odds add up.
    """
    rows, shares = np.flatnonzero(matching >= 0), np.zeros(matching.size)
    if rows.size == 0:
        return shares
    unused = np.setdiff1d(np.arange(len(pair.L)), matching)
    views = [
        Disagreement.of(view.problem(POWER), matching, rows, unused)
        for view in pair.views or [pair]
    ]
    log_odds = sum(view.log_odds_of_exchange() for view in views)
    if pair.cost is not None:
        whole = Disagreement.of(pair.problem(POWER), matching, rows, unused)
        log_odds = log_odds + whole.log_odds_by_cost(pair.cost[np.ix_(rows, matching[rows])])
    odds = _odds(np.asarray(log_odds))
    odds[:, np.isin(rows, pair.frozen[:, 0])] = 0.0
    np.fill_diagonal(odds, 0.0)
    others = _odds(np.asarray(sum(view.log_odds_of_unused() for view in views)))
    shares[rows] = 1.0 / (1.0 + odds.sum(axis=1) + others.sum(axis=1))
    shares[pair.frozen[:, 0]] = 1.0
    return shares


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How much the similarities K and L of matched items disagree, as a Gaussian model.

    Items i and j with partners a and b differ by K_i - K_j on one side and L_a - L_b on the other.
    Both are a common difference and noise, whose size follows from the disagreement K_i - L_a of
    all pairs. The correlation of the two differences gives the odds of an exchange: even odds if
    they are no larger than the noise.
    """

    K: Floats  # of unit norm, like L, which is in the order of the partners
    L: Floats
    unused: Floats  # similarities of the unmatched partners to the matched ones
    unit: float  # of the objective
    errors: Floats  # squared disagreement of each pair
    n_dimensions: float  # effective number of those in which it varies

    @classmethod
    def of(
        cls,
        problem: QuadraticProblem,
        matching: Permutation,
        rows: NDArray[np.intp],
        unused: NDArray[np.intp],
    ) -> "Disagreement":
        """That of the pairs of some rows."""
        partners = matching[rows]
        K, L = problem.K[np.ix_(rows, rows)], problem.L[np.ix_(partners, partners)]
        first, second = (float(np.linalg.norm(S)) or 1.0 for S in (K, L))
        K, L, others = K / first, L / second, problem.L[np.ix_(unused, partners)] / second
        errors = ((K - L) ** 2).sum(axis=1)
        spread = float(np.linalg.norm((K - L) @ (K - L)))
        # No disagreement at all leaves nothing to exchange.
        n_dimensions = (float(errors.sum()) / spread) ** 2 if spread > 0 else 1.0
        errors = 0.5 * (errors + errors.mean())
        return cls(K, L, others, first * second, errors, n_dimensions)

    @property
    def noise(self) -> Floats:
        """Squared noise of the difference of two items."""
        return OWN_NOISE * 0.5 * (self.errors[:, None] + self.errors)

    def log_odds_of_exchange(self) -> Floats:
        """Log-odds that two items rather have each other's partners."""
        K, L = self.K, self.L
        common = _between(K @ L) - 2.0 * K * L
        size = 0.5 * (_between(K @ K) + _between(L @ L)) - K**2 - L**2
        rounding = ROUNDING * float(np.abs(size).mean()) or 1.0
        size = np.maximum(size, rounding)
        correlation = np.clip(1.0 - self.noise / size, 0.0, 1.0 - 1e-9)
        log_odds = 2.0 * self.n_dimensions * correlation * common / ((1 - correlation**2) * size)
        return np.where(size > rounding, -log_odds, 0.0)

    def log_odds_by_cost(self, cost: Floats) -> Floats:
        """What the linear cost of pairs adds to the log-odds of an exchange."""
        own = np.diag(cost)
        more = (cost + cost.T - own[:, None] - own) / self.unit
        return np.asarray(-self.n_dimensions * more / (2.0 * self.noise + ROUNDING))

    def log_odds_of_unused(self) -> Floats:
        """Log-odds that an item rather has an unmatched partner, one for each column."""
        # Similarities of an item to itself say nothing.
        lengths = (self.unused**2).sum(axis=1) - self.unused.T**2
        size, missed = (
            (S**2).sum(axis=1)[:, None] - 2.0 * (S @ self.unused.T) + lengths
            for S in (self.L, self.K)
        )
        worse = missed - ((self.K - self.L) ** 2).sum(axis=1)[:, None]
        noise = OWN_NOISE * self.errors[:, None] + ROUNDING
        correlation = np.clip(1.0 - noise / np.maximum(size, ROUNDING), 0.0, 1.0)
        return np.asarray(-self.n_dimensions * correlation * worse / (2.0 * noise))


def _between(products: Floats) -> Floats:
    """Inner products of the differences of all pairs of rows."""
    own = np.diag(products)
    return np.asarray(own[:, None] + own - products - products.T)


def _odds(log_odds: Floats) -> Floats:
    """Odds of other partners; a little above 1 at most, since the matching is the best known."""
    return np.asarray(np.exp(np.clip(log_odds, -LARGEST_ODDS, 1.0)))


def judge_rivals(
    pair: KernelPair, outcome: Outcome, *, searched: bool
) -> tuple[float, Floats, int]:
    """Ambiguity, the share of good matchings that keep each partner, and the number of rivals.

    The ambiguity is the objective of the best clearly different matching, relative to the best,
    both counted from chance; from 0 to 1. A rival must come close at the full spectrum and at the
    last stage: it may miss only fine differences, or exchange tight groups as a whole.
    """
    best, problems = outcome.ends[0], [pair.full_problem, outcome.problem]
    if outcome.problem.cost is not None:
        # A cost that both share would hide their difference.
        problems += [problem.without_cost() for problem in problems]
    rivals = [*outcome.ends, *(find_rivals(pair, best, problems) if searched else [])]
    rivals = [rival for rival in rivals if disagreement(pair.L, best, rival) > CLEARLY_DIFFERENT]
    ambiguity = max((relative_objective(problems, each, best) for each in rivals), default=0.0)
    return ambiguity, *kept_shares(pair, best, rivals, problems)


def find_rivals(
    pair: KernelPair, best: Permutation, problems: list[QuadraticProblem]
) -> list[Permutation]:
    """Matchings that are about as good and clearly different: mirror images and rotations.

    An item is fixed to a partner far away that has the same sorted similarities, and the others
    follow. Nothing is searched where few items have such an image, and no more where a round of
    items leads to no rival.
    """
    problem = pair.full_problem
    cost = profile_cost(pair, (pair.K, pair.L), "sqeuclidean")
    own = cost[np.arange(best.size), best]
    far = np.where(_distances_from(pair.L, best, slice(None)) > CLEARLY_DIFFERENT, cost, np.inf)
    far[:, pair.frozen[:, 1]] = np.inf
    near = far.min(axis=1) <= AS_NEAR * np.maximum(own, np.median(own)) + ROUNDING
    items = np.setdiff1d(np.flatnonzero(near), pair.frozen[:, 0])
    if items.size < max(1.0, HAVE_IMAGE * problem.free_rows.size):
        return []
    first, second = (S / root_mean_square(S) for S in (problem.K, problem.L))

    def try_image(i: int) -> Permutation | None:
        j = int(far[i].argmin())
        fixed = np.vstack([pair.frozen, [[i, j]]])
        pinned = pair.with_linear_term(pair.cost, fixed).full_problem
        # Both are compared with the two that are fixed, one by one.
        anchored = cost + (first[:, i][:, None] - second[j]) ** 2 / FEW_FROZEN
        begun = climb(pinned, assign_free(pinned, -anchored)[0], max_iter=N_STEPS).permutation
        if not is_rival(begun, [problem], BEGUN_WELL):
            return None  # most end here if there is no symmetry
        return climb(problem, climb(pinned, begun).permutation).permutation

    def is_rival(found: Permutation, problems: list[QuadraticProblem], least: float) -> bool:
        return (
            relative_objective(problems, found, best) >= least
            and disagreement(pair.L, best, found) > CLEARLY_DIFFERENT
        )

    items = np.random.RandomState(0).permutation(items)[: MOST_ROUNDS * N_TRIED]
    found: list[Permutation] = []
    for start in range(0, items.size, N_TRIED):
        tried = [try_image(int(i)) for i in items[start : start + N_TRIED]]
        rivals = [each for each in tried if each is not None and is_rival(each, problems, AS_GOOD)]
        if not rivals:
            break
        found += rivals
    return found


def kept_shares(
    pair: KernelPair,
    best: Permutation,
    rivals: list[Permutation],
    problems: list[QuadraticProblem],
) -> tuple[Floats, int]:
    """Share of the matchings that are about as good in which each item keeps its partner.

    Also the number of rivals. What leads from one good matching to another may be applied again:
    a few rivals generate all symmetries. Those that come close count in part.
    """
    limit = MOST_DISAGREEMENT * (1.0 - agreement(problems[0], best)) + ROUNDING
    objectives = {rival.tobytes(): relative_objective(problems, rival, best) for rival in rivals}

    def is_as_good(rival: Permutation) -> bool:
        key = rival.tobytes()
        if key not in objectives:
            objectives[key] = relative_objective(problems, rival, best)
        return objectives[key] >= AS_GOOD and 1.0 - agreement(problems[0], rival) <= limit

    given = list({rival.tobytes(): rival for rival in rivals}.values())
    good = [rival for rival in given if is_as_good(rival)]
    found, seen = [best, *good], {each.tobytes() for each in (best, *good)}
    steps = [np.argsort(best)[rival] for rival in good] if pair.same_size else []
    for rival in found:  # grows meanwhile
        for step in steps:
            product = rival[step]
            if len(found) <= MOST_RIVALS and product.tobytes() not in seen:
                seen.add(product.tobytes())
                found += [product] if is_as_good(product) else []
    weights = [1.0] * len(found)
    for rival in given:
        close = (objectives[rival.tobytes()] - LEAST_GOOD) / (1.0 - LEAST_GOOD)
        if close > 0 and not is_as_good(rival):
            found.append(rival)
            weights.append(close)
    same = np.array([_distances_from(pair.L, best, each) <= SAME_PLACE for each in found])
    distinct = [best]
    for rival in found:
        if all((rival == other).mean() < 0.5 for other in distinct):
            distinct.append(rival)
    return np.minimum(weights @ same / np.sum(weights), 1.0), len(distinct) - 1


def _distances_from(L: Floats, partners: Permutation, others: Permutation | slice) -> Floats:
    """Squared kernel distances between partners; those of random ones are 1 on average."""
    diagonal, typical = np.diag(L), typical_distance(L)
    if isinstance(others, slice):
        apart = diagonal[partners][:, None] + diagonal - 2.0 * L[partners]
    else:
        apart = diagonal[partners] + diagonal[others] - 2.0 * L[partners, others]
    return np.asarray(apart / typical if typical > 0 else np.zeros_like(apart))


def relative_objective(
    problems: list[QuadraticProblem], rival: Permutation, best: Permutation
) -> float:
    """Least objective of a rival relative to the best in several problems, counted from chance."""
    return min(_relative_objective(problem, rival, best) for problem in problems)


def _relative_objective(problem: QuadraticProblem, rival: Permutation, best: Permutation) -> float:
    floor = chance_level(problem)
    most = problem.value(best) - floor
    if most <= 0:
        return 1.0
    return float(np.clip((problem.value(rival) - floor) / most, 0.0, 1.0))
