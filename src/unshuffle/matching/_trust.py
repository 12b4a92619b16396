"""How far a matching can be trusted: is it found again, is it above chance, has it rivals?"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult
from scipy.stats import beta

from unshuffle.assignment import quadratic_assignment
from unshuffle.base import DoubtWarning as DoubtWarning
from unshuffle.matching._kernel_pair import KernelPair, Permutation
from unshuffle.matching._known_pairs import LeftOut
from unshuffle.matching._refined import Outcome, agreement

# Halves of fewer pairs are too small to be matched again.
FEWEST_PAIRS = 16
# A matching is doubted if a smaller share of its pairs is believed right.
TRUSTED = 0.5
# Beyond these, each measure alone is a reason for doubt.
LOW_PERSISTENCE, LOW_EXCESS, HIGH_AMBIGUITY, LOW_SETTLED = 0.5, 0.15, 0.9, 0.3
# Log-odds that the matching as a whole is right: weights of persistence, excess and 1 - ambiguity,
# then a constant. `python -m benchmarks.accuracy calibration` fits them.
LOG_ODDS = (3.2, 8.4, 17.1, -4.1)
# An estimate without known pairs is worth this many of them.
WORTH = 8.0
COVERAGE = 0.9
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
        """Probability that the matching as a whole is right, apart from single pairs."""
        measures = np.array([self.persistence, self.excess, 1.0 - self.ambiguity, 1.0])
        # Of two matchings that are equally good, one is right at most.
        close = max(0.0, self.ambiguity - HIGH_AMBIGUITY) / (1.0 - HIGH_AMBIGUITY)
        # The lack of rivals alone says little: the search may have missed them.
        seen = max(self.persistence / LOW_PERSISTENCE, self.excess / LOW_EXCESS)
        certain = float(np.clip(seen, 0.0, 1.0)) * (1.0 - close / 2)
        certain *= min(1.0, self.settled / LOW_SETTLED)
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
        kept.append(float((again.permutation == same).mean()))
        elsewhere = np.sort(np.concatenate([matching[halves[1 - number]], others]))
        unrelated = solve(pair.part(rows, elsewhere, related=False))
        chance = agreement(unrelated.problem, unrelated.permutation)
        excess.append((agreement(again.problem, same) - chance) / max(1.0 - chance, 1e-9))
    return Evidence(float(np.mean(kept)), float(np.mean(excess)), ambiguity)


def judge(
    resampled: NDArray[np.float64],
    evidence: Evidence | None,
    left_out: LeftOut | None,
    ambiguity: float,
    n_known: int,
) -> Trust:
    """Estimate the share right of the pairs that were not known, and list the doubts.

    `resampled` holds, for each of these pairs, how often random thirds of the others give it.
    """
    if resampled.size == 0:
        # All pairs are known, or none is left.
        return Trust(1.0, (1.0, 1.0)) if n_known else Trust(doubts=["no pair is left"])
    if left_out is not None:
        n_found, n_missed = left_out.n_found + 0.5, left_out.n_pairs - left_out.n_found + 0.5
    else:
        whole = 0.5 if ambiguity > HIGH_AMBIGUITY else 1.0
        if evidence is not None:
            whole = evidence.probability
        expected = float(resampled.mean()) * whole
        n_found, n_missed = WORTH * expected + 0.1, WORTH * (1.0 - expected) + 0.1
    expected = n_found / (n_found + n_missed)
    low, high = beta.interval(COVERAGE, n_found, n_missed)
    # In whole percents, rounded outward: the share itself is a count of pairs.
    trust = Trust(expected, (float(np.floor(100 * low) / 100), float(np.ceil(100 * high) / 100)))
    trust.doubts.extend(_list_doubts(expected, evidence, left_out, ambiguity))
    return trust


def _list_doubts(
    expected: float, evidence: Evidence | None, left_out: LeftOut | None, ambiguity: float
) -> list[str]:
    doubts = []
    if left_out is not None:
        if expected < TRUSTED:
            doubts.append(
                f"of {left_out.n_pairs} known pairs left out in turn, {left_out.n_found} "
                f"{'was' if left_out.n_found == 1 else 'were'} found again"
            )
    elif evidence is not None and expected < TRUSTED:
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
    if ambiguity > HIGH_AMBIGUITY:
        doubts.append(
            f"another matching with clearly different partners reaches {ambiguity:.1%} of the "
            "best objective"
        )
    if not doubts and expected < TRUSTED:
        doubts.append("many partners change when they are computed from other thirds of the pairs")
    return doubts


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
