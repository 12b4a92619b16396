"""How far a matching can be trusted: is it found again, is it above chance, has it rivals?"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult
from scipy.stats import beta

from unshuffle._run.types import Permutation
from unshuffle.assignment import quadratic_assignment
from unshuffle.base import DoubtWarning as DoubtWarning
from unshuffle.matching._dense.pair import KernelPair
from unshuffle.matching._dense.search import Outcome, agreement
from unshuffle.matching._trust.known_pairs import LeftOut
from unshuffle.matching._trust.rivals import ALIKE, MOST_RIVALS, Alternatives

# Halves of fewer pairs are too small to be matched again.
FEWEST_PAIRS = 16
# A matching is doubted if a smaller share of its pairs is believed right.
TRUSTED = 0.5
# Beyond these, each measure alone is a reason for doubt.
LOW_PERSISTENCE, LOW_EXCESS, HIGH_AMBIGUITY, LOW_SETTLED = 0.5, 0.15, 0.9, 0.3
# Log-odds that the matching as a whole is right: weights of persistence, excess and 1 - ambiguity,
# then a constant. `python -m benchmarks.accuracy calibration` fits them.
LOG_ODDS = (3.2, 8.4, 17.1, -4.1)
# An estimate without known pairs is worth this many of them. It counts for less the more of them
# are known, and not at all from the second number on.
WORTH, MANY_KNOWN = 8.0, 30
COVERAGE = 0.9
# Single pairs are doubted if this share of the items is alike to others.
MOST_ALIKE = 0.5
# More items have no certificate. Smaller gaps, relative to the objective, are rounding errors.
LARGEST_CERTIFIED = 64
ROUNDING = 1e-9

Solve = Callable[[KernelPair], Outcome]


@dataclass(frozen=True)
class Evidence:
    """What speaks for a matching as a whole, without known pairs."""

    persistence: float  # share of the partners that halves of the collections give again
    excess: float  # agreement beyond that of halves without common items, as a share of the most
    ambiguity: float
    # Of large collections only: share of the pairs that maps give which were fitted without them
    # and then free to settle elsewhere, and why the search itself is in doubt.
    settled: float = 1.0
    unsure: str = ""

    @property
    def probability(self) -> float:
        """Probability that the matching as a whole is right, but for rivals and single pairs."""
        measures = np.array([self.persistence, self.excess, 1.0 - self.ambiguity, 1.0])
        # The lack of rivals alone says little: the search may have missed them.
        seen = max(self.persistence / LOW_PERSISTENCE, self.excess / LOW_EXCESS)
        certain = float(np.clip(seen, 0.0, 1.0)) * min(1.0, self.settled / LOW_SETTLED)
        return float(certain / (1.0 + np.exp(-(measures @ LOG_ODDS))))


@dataclass(frozen=True)
class Trust:
    """Share of the pairs believed right, and reasons to doubt them."""

    expected_accuracy: float = np.nan  # NaN if not estimated
    interval: tuple[float, float] = (np.nan, np.nan)
    doubts: list[str] = field(default_factory=list)  # empty if the matching can be trusted


def gather_evidence(
    pair: KernelPair, matching: Permutation, ambiguity: float, solve: Solve
) -> Evidence | None:
    """Match two halves of the pairs again, and each half with the partners of the other.

    The partners of the other half are items of the same kind, but none is the right partner of
    an item: what they reach is chance. None if there are too few pairs.
    """
    matched = np.flatnonzero(matching >= 0)
    if matched.size < FEWEST_PAIRS:
        return None
    known = np.isin(np.arange(matching.size), pair.frozen[:, 0])
    # A fixed seed: trust should not depend on the user's random state.
    rng = np.random.RandomState(0)
    spare = rng.permutation(np.setdiff1d(np.arange(pair.L.shape[0]), matching))
    size = matched.size // 2
    order = rng.permutation(matched)
    halves = np.sort(order[:size]), np.sort(order[size : 2 * size])
    kept, excess = [], []
    for number, rows in enumerate(halves):
        others = spare[number::2]
        columns = np.sort(np.concatenate([matching[rows], others]))
        again = solve(pair.part(rows, columns))
        same = np.searchsorted(columns, matching[rows])
        free = ~known[rows]
        kept.append(float((again.permutation == same)[free].mean()) if free.any() else 1.0)
        elsewhere = np.sort(np.concatenate([matching[halves[1 - number]], others]))
        unrelated = solve(pair.part(rows, elsewhere, related=False))
        chance = agreement(unrelated.problem, unrelated.permutation)
        excess.append((agreement(again.problem, same) - chance) / max(1.0 - chance, 1e-9))
    return Evidence(float(np.mean(kept)), float(np.mean(excess)), ambiguity)


def kept_by_rivals(alternatives: Alternatives | None, ambiguity: float) -> Any:
    """Share of the matchings that are about as good in which each item keeps its partner."""
    if alternatives is not None:
        return alternatives.kept
    # Of two matchings that are equally good, one is right at most.
    return 1.0 - 0.5 * max(0.0, ambiguity - HIGH_AMBIGUITY) / (1.0 - HIGH_AMBIGUITY)


def judge(
    shares: NDArray[np.float64],
    evidence: Evidence | None,
    left_out: LeftOut | None,
    ambiguity: float,
    n_known: int,
    alternatives: Alternatives | None = None,
) -> Trust:
    """Estimate the share right of the pairs that were not known, and list the doubts.

    `shares` holds, for each of these pairs, how sure it is if the matching as a whole is right.
    """
    if shares.size == 0:
        # All pairs are known, or none is left.
        return Trust(1.0, (1.0, 1.0)) if n_known else Trust(doubts=["no pair is left"])
    kept = kept_by_rivals(alternatives, ambiguity)
    right, whole = float(np.mean(kept)), 1.0 if evidence is None else evidence.probability
    likely = float(np.mean(shares * kept)) * whole
    unrivaled = float(shares.mean()) * whole
    if left_out is None:
        expected, low, high = _summary(*_counts(likely))
        upper = _upper_end(unrivaled, right)
    else:
        expected, low, high = _from_known(left_out, unrivaled)
        # Rivals keep the known pairs too, so that these say nothing about them.
        expected, upper = expected * right, high
    if right < 0.5 + COVERAGE / 2:
        # Right as a whole or wrong as a whole, and never in between.
        low, high = 0.0, max(high, upper)
    # In whole percents, rounded outward: the share itself is a count of pairs.
    trust = Trust(expected, (float(np.floor(100 * low) / 100), float(np.ceil(100 * high) / 100)))
    trust.doubts.extend(_list_doubts(expected, evidence, left_out, ambiguity, alternatives))
    return trust


def _from_known(left_out: LeftOut, likely: float) -> tuple[float, float, float]:
    """Share right and its interval from known pairs, beside an estimate without them."""
    n_pairs = left_out.n_pairs
    low, high = exact_interval(left_out.n_found, n_pairs)
    more = WORTH * max(0.0, 1.0 - n_pairs / MANY_KNOWN)
    n_found = left_out.n_found + 0.5 + more * likely
    expected, *joined = _summary(n_found, n_pairs + 1.0 + more - n_found)
    return expected, min(low, joined[0]), max(high, joined[1])


def _counts(expected: float) -> tuple[float, float]:
    """Numbers of right and wrong known pairs that say as much as an estimate without any."""
    return WORTH * expected + 0.1, WORTH * (1.0 - expected) + 0.1


def _summary(n_found: float, n_missed: float) -> tuple[float, float, float]:
    """Mean of a beta distribution, and its interval."""
    low, high = beta.interval(COVERAGE, n_found, n_missed)
    return n_found / (n_found + n_missed), float(low), float(high)


def _upper_end(unrivaled: float, kept: float) -> float:
    """Upper end of the interval if the matching is the right one of several by chance."""
    beyond = (1.0 - COVERAGE) / 2 / max(kept, 1e-9)
    return float(beta.ppf(1.0 - min(beyond, 1.0), *_counts(unrivaled)))


def exact_interval(n_found: int, n_pairs: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share, of which `n_found` of `n_pairs` were seen."""
    beyond = (1.0 - COVERAGE) / 2
    low = beta.ppf(beyond, n_found, n_pairs - n_found + 1) if n_found else 0.0
    high = beta.ppf(1.0 - beyond, n_found + 1, n_pairs - n_found) if n_found < n_pairs else 1.0
    return float(low), float(high)


def _list_doubts(
    expected: float,
    evidence: Evidence | None,
    left_out: LeftOut | None,
    ambiguity: float,
    alternatives: Alternatives | None,
) -> list[str]:
    doubts = []
    if left_out is not None and expected < TRUSTED:
        doubts.append(
            f"of {left_out.n_pairs} known pairs left out in turn, {left_out.n_found} "
            f"{'was' if left_out.n_found == 1 else 'were'} found again"
        )
    if evidence is not None and expected < TRUSTED:
        if evidence.excess < LOW_EXCESS:
            doubts.append(
                "the two collections agree hardly more than halves of them without a common item"
            )
        if evidence.persistence < LOW_PERSISTENCE:
            doubts.append(
                f"only {evidence.persistence:.0%} of the partners were found again when halves "
                "were matched"
            )
        if evidence.settled < LOW_SETTLED / 2:
            doubts.append("the pairs fit maps that were free to settle elsewhere about as well")
    if evidence is not None and evidence.unsure:
        doubts.append(evidence.unsure)
    n_rivals = 1 if alternatives is None else alternatives.n_rivals
    if ambiguity > HIGH_AMBIGUITY:
        doubts.append(_describe_rivals(n_rivals, ambiguity))
    tested = left_out is not None and expected >= TRUSTED
    dependent = evidence is None or evidence.excess >= LOW_EXCESS
    if alternatives is not None and dependent and not tested:
        doubts += _describe_groups(alternatives)
    if not doubts and expected < TRUSTED:
        doubts.append("many partners change when they are computed from other thirds of the pairs")
    return doubts


def _describe_rivals(n_rivals: int, ambiguity: float) -> str:
    if n_rivals < 2:
        return (
            f"another matching with clearly different partners reaches {ambiguity:.1%} of the "
            "best objective"
        )
    number = f"{MOST_RIVALS} or more" if n_rivals >= MOST_RIVALS else str(n_rivals)
    return (
        f"{number} other matchings with clearly different partners come close to the best "
        f"objective, the nearest reaches {ambiguity:.1%} of it"
    )


def _describe_groups(alternatives: Alternatives) -> list[str]:
    """What to say of items that could exchange partners, if most could."""
    alike = alternatives.alike < ALIKE
    if alike.mean() < MOST_ALIKE:
        return []
    size = max(2.0, 1.0 / float(alternatives.alike[alike].mean()))
    return [
        f"{alike.mean():.0%} of the items could exchange partners with others that are alike, in "
        f"groups of about {size:.0f}: the question should be groups, not pairs"
    ]


def calibrate(resampled: NDArray[np.float64], expected: float) -> NDArray[np.float64]:
    """Confidences in the order of `resampled` whose mean is the expected accuracy."""
    if resampled.size == 0:
        return resampled
    mean = float(resampled.mean())
    if expected <= mean:
        return resampled * (expected / mean if mean > 0 else 0.0)
    return 1.0 - (1.0 - resampled) * ((1.0 - expected) / (1.0 - mean))


def certify(
    pair: KernelPair | None, permutation: Permutation, max_time: float | None
) -> OptimizeResult:
    """Bound on the objective of all matchings, relative to that of the matching found."""
    if pair is None or permutation.size > LARGEST_CERTIFIED:
        raise ValueError(
            f"A certificate needs at most {LARGEST_CERTIFIED} items in each collection and a "
            f'method that holds all similarities, such as "refined"; X has {permutation.size} '
            "items. Fit a sample of the items."
        )
    problem, matching = pair.full_problem, permutation
    if pair.swapped:
        rows = np.flatnonzero(permutation >= 0)
        matching = np.full(problem.shape[0], -1, dtype=np.intp)
        matching[permutation[rows]] = rows
    if (matching < 0).any():
        raise ValueError(
            "A certificate needs a partner for each item of the smaller collection, and some were "
            "released. Fit with unmatched_cost=None."
        )
    best = quadratic_assignment(
        problem.K,
        problem.L,
        "exact",
        {"partial_guess": np.column_stack([np.arange(matching.size), matching])},
        cost=None if problem.cost is None else -problem.cost,
        maximize=True,
        frozen=pair.frozen,
        max_time=max_time,
        random_state=0,
    )
    value = problem.value(matching)
    missing = float(best.upper_bound) - value
    if missing < ROUNDING * abs(value):
        missing = 0.0
    unit = pair.unit if pair.same_size else 1.0
    return OptimizeResult(
        fun=unit * value,
        upper_bound=unit * (value + missing),
        gap=missing / abs(value) if missing else 0.0,
        col_ind=pair.to_user(best.col_ind),
    )
