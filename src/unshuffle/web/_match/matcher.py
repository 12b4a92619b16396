"""Matching the two collections of a page, with reports on the way."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._run.search import Stopped
from unshuffle.base import SearchState
from unshuffle.matching import KernelizedSorting
from unshuffle.web._http.refusal import Refused
from unshuffle.web._match.pairs import PairStep
from unshuffle.web._match.sides import Side
from unshuffle.web._work.album import Slots
from unshuffle.web._work.jobs import Canceled, Job

N_QUESTIONS, N_CANDIDATES = 10, 12
FEWEST = 2  # items of a side
_APART = 1e6  # cost of a pair that is ruled out: far above all similarities
_MOST_DENSE = 4000  # items of matrices of costs; the search for more of them takes sparse ones


@dataclass(frozen=True)
class CandidateList:
    """The best partners of each item that was matched last."""

    slots: Slots
    items: NDArray[np.intp]  # slots of the second side, the best first


@dataclass(frozen=True)
class MatchFound:
    """What a match found."""

    changes: dict[str, Any]  # of the pairs
    candidates: CandidateList


def match(job: Job, now: PairStep, sides: Sequence[Side]) -> MatchFound:
    """Match all items that are not set aside; answers are kept and help the others."""
    slots = [
        np.setdiff1d(side.ready(), sorted(aside)).astype(np.intp)
        for side, aside in zip(sides, now.aside, strict=True)
    ]
    if min(map(len, slots)) < FEWEST:
        raise Refused(f"Too few are left to match: each side needs at least {FEWEST}.")
    job.say("Comparing")
    (X, kernel), (y, _) = (
        side.describe(some, now.features) for side, some in zip(sides, slots, strict=True)
    )
    job.check()
    job.say("Matching")
    began = time.monotonic()
    sorting = KernelizedSorting(kernel=kernel, random_state=0, n_jobs=-1, callback=_follow(job))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `doubts_` has what matters
        try:
            sorting.fit(X, y, frozen=_frozen(now, slots), cost=_cost(now, slots))
        except Stopped:
            raise Canceled from None
    return MatchFound(
        _changes(now, sorting, slots, time.monotonic() - began), _best(sorting, slots)
    )


def _changes(
    now: PairStep, sorting: KernelizedSorting, slots: Sequence[Slots], seconds: float
) -> dict[str, Any]:
    """Pairs, questions and trust, and which pairs are others than before."""
    first, second = slots
    found = PairStep.none(len(now.partner))
    permutation, judged = _without_ruled_out(now, sorting, slots)
    matched = permutation >= 0
    found.partner[first[matched]] = second[permutation[matched]]
    found.confidence[first] = np.where(judged, sorting.confidence_, 0.0)
    moved = np.flatnonzero((found.partner != now.partner) & (now.partner >= 0))
    n_free = len(sorting.pairs_) - len(now.answers)
    asked = sorting.questions(min(N_QUESTIONS, n_free))[:, :1].ravel() if n_free > 0 else first[:0]
    estimated = bool(np.isfinite(sorting.expected_accuracy_))
    low, high = map(float, sorting.expected_accuracy_interval_)
    return {
        "partner": found.partner,
        "confidence": found.confidence,
        "changed": frozenset() if now.raw else now.changed | set(moved.tolist()),
        "questions": tuple(int(each) for each in first[asked]),
        "expected": float(sorting.expected_accuracy_) if estimated else None,
        "interval": (low, high) if estimated else None,
        "doubts": tuple(sorting.doubts_),
        "seconds": seconds,
        "stale": 0,
        "settled": True,
        "raw": False,
    }


def _best(sorting: KernelizedSorting, slots: Sequence[Slots]) -> CandidateList:
    first, second = slots
    return CandidateList(first, second[sorting.candidates(min(N_CANDIDATES, len(second)))])


def _frozen(now: PairStep, slots: Sequence[Slots]) -> NDArray[np.intp] | None:
    """Answers as positions among the items that are matched."""
    known = [(x, y) for x, y in now.answers.items() if x in slots[0] and y in slots[1]]
    if not known:
        return None
    return _positions(known, slots)


def _cost(now: PairStep, slots: Sequence[Slots]) -> Any:
    """Costs that keep apart what people ruled out; None if that is nothing."""
    places = _ruled_out(now, slots)
    if not len(places):
        return None
    shape = len(slots[0]), len(slots[1])
    cost = sparse.csr_matrix((np.full(len(places), _APART), places.T), shape=shape)
    return cost.toarray() if max(shape) <= _MOST_DENSE else cost


def _ruled_out(now: PairStep, slots: Sequence[Slots]) -> NDArray[np.intp]:
    """Pairs that people ruled out, as positions among the items that are matched."""
    return _positions([(x, y) for x, y in now.wrong if x in slots[0] and y in slots[1]], slots)


def _positions(pairs: Sequence[tuple[int, int]], slots: Sequence[Slots]) -> NDArray[np.intp]:
    columns = zip(slots, np.reshape(pairs, (-1, 2)).astype(np.intp).T, strict=True)
    return np.column_stack([np.searchsorted(some, items) for some, items in columns])


def _without_ruled_out(
    now: PairStep, sorting: KernelizedSorting, slots: Sequence[Slots]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The matching without pairs that are ruled out, and which of its items were judged.

    A cost cannot forbid a pair: of partners that are all implausible, it may be chosen. Its item
    then exchanges partners with the holder of its best candidate, or has none.
    """
    permutation = sorting.permutation_.copy()
    judged = np.ones(len(permutation), dtype=bool)
    wrong = set(map(tuple, _ruled_out(now, slots).tolist()))
    known = frozenset(_positions([*now.answers.items()], slots)[:, 0].tolist())
    candidates = sorting.candidates(min(N_CANDIDATES, len(slots[1]))) if wrong else None
    for x in [x for x, y in enumerate(permutation.tolist()) if (x, y) in wrong]:
        y, judged[x] = int(permutation[x]), False
        holders = {int(each): k for k, each in enumerate(permutation)}
        permutation[x] = -1
        for other in candidates[x].tolist() if candidates is not None else ():
            holder = holders.get(other, -1)
            if (x, other) in wrong or holder in known or (holder, y) in wrong:
                continue
            permutation[x] = other
            if holder >= 0:
                permutation[holder], judged[holder] = y, False
            break
    return permutation, judged


def _follow(job: Job) -> Callable[[SearchState], bool]:
    """Callback of a search that reports to a job and ends with it."""

    def follow(state: SearchState) -> bool:
        return job.follow(state.fraction if np.isfinite(state.fraction) else job.fraction)

    return follow
