"""Steps of a match: who belongs to whom, what people have said about it, and what is kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.encoders import has_content
from unshuffle.web._http.refusal import Refused
from unshuffle.web._match.sides import PICTURE_FEATURES
from unshuffle.web._work.album import Dropped, Slots, is_own_name

Aside = tuple[frozenset[int], frozenset[int]]
NOBODY: Aside = (frozenset(), frozenset())
_DIGITS = 4
_MOST_NUMBERS = 500_000  # in the steps of a file


@dataclass(frozen=True)
class PairStep:
    """Partners of the items of the first side; items of both sides are numbered by slots."""

    partner: Slots  # -1 for none
    confidence: NDArray[np.float64]  # of the machine
    answers: Mapping[int, int] = field(default_factory=dict)  # pairs that people know
    aside: Aside = NOBODY  # items without a partner, of both sides
    wrong: frozenset[tuple[int, int]] = frozenset()  # pairs that people ruled out
    features: tuple[str, ...] = ("pixels", "color")  # that pictures are compared by
    changed: frozenset[int] = frozenset()  # by the last match, or by the last answer
    questions: tuple[int, ...] = ()  # the most helpful first
    expected: float | None = None  # share of the other pairs believed right
    interval: tuple[float, float] | None = None
    doubts: tuple[str, ...] = ()
    seconds: float | None = None  # that the last match took
    stale: int = 0  # answers since then
    settled: bool = False
    raw: bool = True  # never matched
    label: str = ""

    @classmethod
    def none(cls, n: int = 0) -> "PairStep":
        """Before the first match."""
        return cls(np.full(n, -1, dtype=np.intp), np.zeros(n))

    def grown(self, n: int) -> "PairStep":
        """With room for more items."""
        if n <= len(self.partner):
            return self
        more = PairStep.none(n - len(self.partner))
        return replace(
            self,
            partner=np.concatenate([self.partner, more.partner]),
            confidence=np.concatenate([self.confidence, more.confidence]),
        )

    @property
    def believed(self) -> NDArray[np.float64]:
        """Confidence of each pair; answers are certain."""
        found = self.confidence.copy()
        found[list(self.answers)] = 1.0
        return found

    def answered(self, pairs: Sequence[tuple[int, int]]) -> "PairStep":
        """With pairs that people know; who loses a partner gets that of the other."""
        items = {x for x, _ in pairs}
        known = {y: x for x, y in self.answers.items() if x not in items}
        if len(items) < len(pairs) or len({y for _, y in pairs}) < len(pairs):
            raise Refused("Give each item one partner.")
        if any(y in known for _, y in pairs):
            raise Refused(
                "That item belongs to a pair that you confirmed. Release that one first.",
                status=409,
            )
        partner, confidence, moved = self.partner.copy(), self.confidence.copy(), set()
        for x, y in pairs:
            if partner[x] != y:
                others = np.flatnonzero(partner == y)
                partner[others], confidence[others] = partner[x], 0.0
                moved |= set(others.tolist())
                partner[x], confidence[x] = y, 0.0
        aside = (self.aside[0] - items, self.aside[1] - {y for _, y in pairs})
        return replace(
            self,
            partner=partner,
            confidence=confidence,
            answers={**self.answers, **dict(pairs)},
            aside=aside,
            wrong=self.wrong - set(pairs),
            changed=frozenset(moved - items),
            questions=tuple(each for each in self.questions if each not in items),
            stale=self.stale + len(pairs),
        )

    def ruled_out(self, pairs: Sequence[tuple[int, int]]) -> "PairStep":
        """Without pairs that are wrong, whatever is right; both items wait for another partner."""
        lost = {x for x, y in pairs if self.partner[x] == y}
        partner, confidence = self.partner.copy(), self.confidence.copy()
        partner[list(lost)], confidence[list(lost)] = -1, 0.0
        return replace(
            self,
            partner=partner,
            confidence=confidence,
            answers={x: y for x, y in self.answers.items() if x not in lost},
            wrong=self.wrong | set(pairs),
            changed=frozenset(),
            questions=tuple(each for each in self.questions if each not in lost),
            stale=self.stale + len(pairs),
        )

    def released(self, items: Iterable[int]) -> "PairStep":
        """With answers taken back."""
        some = set(items)
        left = {x: y for x, y in self.answers.items() if x not in some}
        return replace(
            self,
            answers=left,
            changed=frozenset(),
            stale=self.stale + len(some),
        )

    def put_aside(self, side: int, items: frozenset[int]) -> "PairStep":
        """With items that have no partner."""
        losing = np.isin(np.arange(len(self.partner)) if side == 0 else self.partner, [*items])
        partner = np.where(losing, -1, self.partner)
        lost = set(np.flatnonzero(losing).tolist())
        aside = (self.aside[0] | items, self.aside[1]) if side == 0 else (
            self.aside[0], self.aside[1] | items,
        )  # fmt: skip
        return replace(
            self,
            partner=partner,
            confidence=np.where(losing, 0.0, self.confidence),
            answers={x: y for x, y in self.answers.items() if x not in lost},
            aside=aside,
            changed=frozenset(lost - items) if side else frozenset(),
            questions=tuple(each for each in self.questions if each not in lost),
            stale=self.stale + len(items),
        )

    def taken_back(self, side: int, items: frozenset[int]) -> "PairStep":
        """With items that may have a partner after all."""
        first, second = self.aside
        aside = (first - items, second) if side == 0 else (first, second - items)
        return replace(self, aside=aside, changed=frozenset(), stale=self.stale + len(items))

    def renumbered(self, slots: Sequence[NDArray[np.intp]], n: int) -> "PairStep":
        """With other numbers for the slots of both sides; items whose number is -1 are gone."""
        first, second = slots
        after = PairStep.none(n)
        partner, confidence = after.partner, after.confidence
        for x, y in enumerate(self.partner.tolist()):
            if x < len(first) and first[x] >= 0:
                partner[first[x]] = second[y] if 0 <= y < len(second) else -1
                confidence[first[x]] = self.confidence[x] if partner[first[x]] >= 0 else 0.0

        def some(of: Iterable[int], side: int) -> list[int]:
            return [
                int(slots[side][k]) for k in of if k < len(slots[side]) and slots[side][k] >= 0
            ]

        answers = [(some([x], 0), some([y], 1)) for x, y in self.answers.items()]
        return replace(
            self,
            partner=partner,
            confidence=confidence,
            answers={x[0]: y[0] for x, y in answers if x and y},
            aside=(frozenset(some(self.aside[0], 0)), frozenset(some(self.aside[1], 1))),
            wrong=frozenset(
                (x, y) for pair in self.wrong for x in some(pair[:1], 0) for y in some(pair[1:], 1)
            ),
            changed=frozenset(some(self.changed, 0)),
            questions=tuple(some(self.questions, 0)),
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, for the file that keeps the match."""
        return {
            "partner": self.partner.tolist(),
            "confidence": self.confidence.round(_DIGITS).tolist(),
            "answers": sorted(self.answers.items()),
            "aside": [sorted(each) for each in self.aside],
            "wrong": sorted(self.wrong),
            "features": list(self.features),
            "changed": sorted(self.changed),
            "questions": list(self.questions),
            "expected": self.expected,
            "interval": self.interval,
            "doubts": list(self.doubts),
            "seconds": self.seconds,
            "stale": self.stale,
            "settled": self.settled,
            "raw": self.raw,
            "label": self.label,
        }

    @classmethod
    def from_json(cls, data: Any) -> "PairStep":
        """From the file; raises nearly anything if it is damaged."""
        partner = np.array(data["partner"], dtype=np.intp).reshape(-1)
        confidence = np.array(data["confidence"], dtype=np.float64).reshape(-1)
        matched = partner[partner >= 0]
        if len(confidence) != len(partner) or len(np.unique(matched)) < len(matched):
            raise ValueError("an item has two partners")
        if not ((confidence >= 0) & (confidence <= 1)).all():
            raise ValueError("a confidence is not a share")
        answers = {int(x): int(y) for x, y in data["answers"]}
        if any(not 0 <= x < len(partner) or partner[x] != y for x, y in answers.items()):
            raise ValueError("an answer is not among the pairs")
        first, second = (frozenset(map(int, each)) for each in data["aside"])
        wrong = frozenset((int(x), int(y)) for x, y in data.get("wrong", ()))
        if any(not 0 <= x < len(partner) or y < 0 or partner[x] == y for x, y in wrong):
            raise ValueError("a pair was ruled out and is there")
        numbers = [data["expected"], data["seconds"], *(data["interval"] or ())]
        if not all(each is None or isfinite(each) for each in numbers):
            raise ValueError("a number is missing")
        return cls(
            partner,
            confidence,
            answers,
            (first, second),
            wrong,
            known_features(data.get("features", ["pixels", "color"])),
            frozenset(map(int, data["changed"])),
            tuple(map(int, data["questions"])),
            data["expected"],
            None if data["interval"] is None else (data["interval"][0], data["interval"][1]),
            tuple(map(str, data["doubts"])),
            data["seconds"],
            int(data["stale"]),
            bool(data["settled"]),
            bool(data["raw"]),
            str(data["label"]),
        )


def known_features(names: Sequence[str]) -> tuple[str, ...]:
    """Of what pictures were compared by, all that they can be compared by here."""
    there = [each for each in PICTURE_FEATURES if each != "content" or has_content()]
    return tuple(each for each in there if each in names) or PairStep.features


@dataclass(frozen=True)
class SavedMatch:
    """All that is kept of a match: names and dropped files of both sides, and the steps."""

    kind: str | None
    names: tuple[list[str], ...]
    dropped: tuple[list[Dropped], ...]
    automatic: bool | None
    steps: list[PairStep]
    position: int

    def steps_for(self, names: Sequence[list[str]]) -> list[PairStep]:
        """The steps, of the items that are still there."""
        slots = [_find(*both) for both in zip(self.names, names, strict=True)]
        return [step.renumbered(slots, len(names[0])) for step in self.steps]

    def to_json(self) -> dict[str, Any]:
        """Everything, with as many of the last steps as make a file of some megabytes."""
        n_steps = max(1, _MOST_NUMBERS // max(len(self.names[0]), 1))
        first = max(0, min(self.position, len(self.steps) - n_steps))
        return {
            "kind": self.kind,
            "names": list(self.names),
            "dropped": [[asdict(each) for each in some] for some in self.dropped],
            "automatic": self.automatic,
            "position": self.position - first,
            "steps": [step.to_json() for step in self.steps[first:]],
        }

    @classmethod
    def from_json(cls, data: Any) -> "SavedMatch":
        """From the file; raises nearly anything if it is damaged."""
        first, second = ([str(name) for name in names] for names in data["names"])
        left, right = (
            [Dropped(str(each["file"]), str(each["name"])) for each in some]
            for some in data["dropped"]
        )
        if not all(is_own_name(each.file) for each in (*left, *right)):
            raise ValueError("it names a file that is not one of its own")
        steps, position = (
            [PairStep.from_json(each) for each in data["steps"]],
            int(data["position"]),
        )
        if not 0 <= position < len(steps):
            raise ValueError("its history is incomplete")
        if data["kind"] not in (None, "pictures", "texts", "table"):
            raise ValueError("it matches nothing that is known")
        automatic = None if data["automatic"] is None else bool(data["automatic"])
        return cls(data["kind"], (first, second), (left, right), automatic, steps, position)


def _find(before: list[str], names: list[str]) -> NDArray[np.intp]:
    """The present slot of each item of last time, by name; -1 if it is gone."""
    if before == names:
        return np.arange(len(before))
    place: dict[str, int] = {}
    for slot, name in enumerate(names):
        place[name] = -1 if name in place else slot  # ambiguous names are ignored
    return np.array([place.get(name, -1) for name in before], dtype=np.intp)
