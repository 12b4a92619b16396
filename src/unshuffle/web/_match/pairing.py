"""A match of two collections that people correct: each answer helps the other pairs."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from unshuffle.web._http.refusal import Refused
from unshuffle.web._match.exports import PAIR_MAKERS, PairTable
from unshuffle.web._match.matcher import FEWEST, CandidateList, match
from unshuffle.web._match.pairs import PairStep, SavedMatch
from unshuffle.web._match.sides import (
    NOUNS,
    PICTURE_FEATURES,
    PictureSide,
    Side,
    kind_of,
    kind_of_name,
    make_side,
)
from unshuffle.web._wall.arrangement import check_features, describe_content
from unshuffle.web._wall.exports import Exports
from unshuffle.web._work.album import MOST_PICTURES, MOST_UPLOADED, Dropped
from unshuffle.web._work.history import History
from unshuffle.web._work.jobs import Canceled, Job
from unshuffle.web._work.state_file import Companion, Content
from unshuffle.web._work.workspace import Workspace, shown

# Seconds without an answer after which the match begins anew, and without a new file after which
# all have come.
_PAUSE, _AFTER_FILES = 0.8, 0.6
# Seconds beyond which a match begins only when people ask for it.
_SLOW = 20.0
_ADDING = "adding items"


class Pairing(Workspace):
    """Two collections, their pairs and what people say of them."""

    _file: Companion

    def __init__(self, paths: Sequence[Path] | None, kept: Companion, cache: Path) -> None:
        super().__init__(("reading", "matching", "exporting"), kept)
        self.exports = Exports(kept.files / ".exports", PAIR_MAKERS)
        self._paths = None if paths is None else tuple(paths)
        self._cache = cache
        self.kind: str | None = None
        self.sides: tuple[Side, ...] = ()
        self._automatic: bool | None = None  # None until people choose
        self._history: History[PairStep] = History.of([PairStep.none()])
        self._candidates: CandidateList | None = None
        self._saved: SavedMatch | None = None  # of last time, until it is taken up
        self._added_at = -inf
        self._is_open = False

    # ---- beginning and end

    def open(self) -> None:
        """List both collections, take up the answers of last time and begin to read."""
        if self._paths is not None:
            kinds = [kind_of(path) for path in self._paths]
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"{self._paths[0]} holds {NOUNS[kinds[0]]} and {self._paths[1]} "
                    f"{NOUNS[kinds[1]]}. Give two collections of the same kind."
                )
            self.kind = kinds[0]
        saved = self._file.read(SavedMatch.from_json)
        if self._file.problem:
            self._tell(self._file.problem, "error")
        if saved is not None and self._paths is None:
            self.kind = saved.kind
        if self.kind is not None:
            self._make_sides(self.kind, ([], []) if saved is None else saved.dropped)
        if saved is not None and saved.kind == self.kind:
            self._automatic, self._saved = saved.automatic, saved
            if self.kind != "table":  # of which the rows are not known yet
                self._take_up()
        self._is_open = True
        if self.sides:
            self._read()

    def close(self) -> None:
        """End all work and save."""
        was_open, self._is_open = self._is_open, False
        self._close(save=was_open and bool(self.sides))
        self.exports.close()

    def _make_sides(self, kind: str, dropped: Sequence[list[Dropped]]) -> None:
        paths = (None, None) if self._paths is None else self._paths
        self.kind = kind
        self.sides = tuple(
            make_side(kind, path, self._file.files / place, self._cache)
            for path, place in zip(paths, ("left", "right"), strict=True)
        )
        for side, some in zip(self.sides, dropped, strict=True):
            side.open(some)

    def _take_up(self) -> None:
        """The history of last time, of the items that are still there."""
        with self._lock:
            if self._saved is not None:
                names = [side.names for side in self.sides]
                self._history = History.of(self._saved.steps_for(names), self._saved.position)
                self._saved = None

    # ---- what the page sees

    @property
    def now(self) -> PairStep:
        """The pairs that are shown."""
        return self._history.now.grown(self._n_first())

    def _n_first(self) -> int:
        return len(self.sides[0]) if self.sides else 0

    @property
    def automatic(self) -> bool:
        """Whether to match again after each answer."""
        if self._automatic is not None:
            return self._automatic
        return (self.now.seconds or 0.0) < _SLOW

    @property
    def title(self) -> str:
        """What is matched, in a few words."""
        if self._paths is None:
            return "Match"
        return " and ".join(shown(path.resolve().name or str(path)) for path in self._paths)

    def state(self) -> dict[str, Any]:
        """Everything small; `pairs` and `items` have the rest."""
        with self._lock:
            now, history = self.now, self._history
            return {
                "version": self._version,
                "title": self.title,
                "kind": self.kind,
                "sides": [self._describe_side(k) for k in range(2)],
                "missing": self._missing(),
                "matching": {
                    "version": history.version,
                    "settled": not self.jobs.unfinished("matching"),
                    "nPairs": int((now.partner >= 0).sum()),
                    "nAnswered": len(now.answers),
                    "nChanged": len(now.changed),
                    "nAside": sum(map(len, now.aside)),
                    "nWrong": len(now.wrong),
                    "expected": now.expected,
                    "interval": now.interval,
                    "doubts": list(now.doubts),
                    "summary": _summarize(now),
                    "advice": _advise(now, self.kind),
                    "seconds": now.seconds,
                    "stale": now.stale,
                },
                "settings": {"automatic": self.automatic, "features": list(now.features)},
                "content": describe_content(),
                "limits": {"uploadBytes": MOST_UPLOADED, "items": MOST_PICTURES},
                "jobs": [job.describe() for job in self.jobs.unfinished()],
                "undo": history.undone,
                "redo": history.redone,
                "notice": self._notice_at(history.number),
                "unsaved": self.unsaved,
                "downloads": self.exports.describe(),
            }

    def _describe_side(self, k: int) -> dict[str, Any]:
        if not self.sides:
            fixed = self._paths is not None
            return {"title": "", "fixed": fixed, "total": 0, "nReady": 0, "nFailed": 0}
        side = self.sides[k]
        return {
            "title": "" if self._paths is None else shown(self._paths[k].resolve().name),
            "fixed": side.fixed,
            "total": len(side),
            "nReady": len(side.ready()),
            "nFailed": len(side.failures()),
        }

    def _missing(self) -> str:
        """Why nothing can be matched yet."""
        counts = [len(side.ready()) for side in self.sides] or [0, 0]
        if min(counts) >= FEWEST:
            return ""
        if any(side.waiting().size for side in self.sides):
            return "The items are being read."
        if max(counts) == 0:
            return "Add pictures, text files or a table to both sides."
        if min(counts) == 0:
            which = "left" if counts[0] == 0 else "right"
            return f"Add {NOUNS[self.kind or 'pictures']} to the {which} side."
        return f"Each side needs at least {FEWEST} {NOUNS[self.kind or 'pictures']}."

    def items(self) -> dict[str, Any]:
        """Names and a few words of all items, and what could not be read."""
        with self._lock:
            found = []
            for side in self.sides:
                words = side.words()
                is_ready = np.zeros(len(side), dtype=bool)
                is_ready[side.ready()] = True
                found.append(
                    {
                        "names": [shown(name) for name in side.names],
                        "words": None if words is None else [shown(each) for each in words],
                        "ready": is_ready.tolist(),
                        "failed": [
                            {"name": shown(name), "reason": shown(reason)}
                            for name, reason in side.failures()
                        ],
                    }
                )
            nothing: dict[str, Any] = {"names": [], "words": None, "ready": [], "failed": []}
            return {"version": self._version, "sides": found or [nothing, nothing]}

    def pairs(self) -> dict[str, Any]:
        """Who belongs to whom."""
        with self._lock:
            now = self.now
            return {
                "version": self._history.version,
                "partner": now.partner.tolist(),
                "confidence": now.believed.round(4).tolist(),
                "answered": sorted(now.answers),
                "changed": sorted(now.changed),
                "aside": [sorted(each) for each in now.aside],
                "questions": list(now.questions),
            }

    def candidates(self, slot: int) -> list[dict[str, Any]]:
        """The best partners of an item, the best first."""
        with self._lock:
            now, known = self.now, self._candidates
            if not self.sides or not np.isin(slot, self.sides[0].ready()):
                raise Refused("There is no such item.", status=404)
            row = np.flatnonzero(() if known is None else known.slots == slot)
            found = [] if known is None or not row.size else known.items[row[0]].tolist()
            present = int(now.partner[slot])
            if present not in found:  # it was corrected or exchanged
                found.insert(0, present)
            holders = {y: x for x, y in enumerate(now.partner.tolist())}
            confirmed = set(now.answers.values())
            return [
                {"item": item, "taken": holders.get(item, -1), "answered": item in confirmed}
                for item in found
                if item >= 0 and item not in now.aside[1]
            ]

    def item(self, side: int, slot: int) -> dict[str, Any]:
        """All words of an item."""
        if side > 1 or not self.sides:
            raise Refused("There is no such item.", status=404)
        found = self.sides[side].item(slot)
        cells = found["cells"]
        return {
            "name": shown(found["name"]),
            "text": None if found["text"] is None else shown(found["text"]),
            "cells": cells and [[shown(each) for each in pair] for pair in cells],
        }

    def picture(self, side: int, slot: int, large: bool) -> bytes:
        """A copy of a picture."""
        found = self.sides[side] if side < len(self.sides) else None
        if not isinstance(found, PictureSide) or found.kind != "pictures":
            raise Refused("There is no such picture.", status=404)
        return found.album.large(slot) if large else found.album.preview(slot)

    # ---- what the page changes

    def answer(self, pairs: Any) -> None:
        """Keep pairs that people know, and match the others anew."""
        if not isinstance(pairs, list) or not pairs:
            raise Refused("Give pairs of items.")
        known = [self._check_pair(each) for each in pairs]
        with self._lock:
            now = self.now
            same = all(now.partner[x] == y for x, y in known)
            if all(now.answers.get(x) == y for x, y in known):
                raise Refused("That is confirmed already.", status=409)
            verb = "confirming" if same else "correcting"
            self._push(now.answered(known), f"{verb} {self._named(0, [x for x, _ in known])}")

    def release(self, items: Any) -> None:
        """Take answers back; all if none are named, and then also what was ruled out."""
        with self._lock:
            now = self.now
            named = self._check_items(0, items)
            some = (named or set(now.answers)) & set(now.answers)
            wrong = frozenset() if named else now.wrong
            if not some and not wrong:
                raise Refused("None of these is confirmed.", status=409)
            what = self._named(0, some) if some else "what was ruled out"
            left = replace(now.released(some), wrong=now.wrong - wrong)
            self._push(left, f"releasing {what}")

    def rule_out(self, pairs: Any) -> None:
        """Say that pairs are wrong, without knowing what is right, and match the others anew."""
        if not isinstance(pairs, list) or not pairs:
            raise Refused("Give pairs of items.")
        known = [self._check_pair(each) for each in pairs]
        with self._lock:
            now = self.now
            if set(known) <= now.wrong:
                raise Refused("That is ruled out already.", status=409)
            label = f"ruling out a partner of {self._named(0, {x for x, _ in known})}"
            self._push(now.ruled_out(known), label)

    def set_aside(self, side: Any, items: Any) -> None:
        """Say that items have no partner."""
        side = _check_side(side)
        with self._lock:
            some = self._check_items(side, items) - self.now.aside[side]
            if not some:
                raise Refused("Give the numbers of items that are not set aside.")
            label = f"setting aside {self._named(side, some)}"
            self._push(self.now.put_aside(side, frozenset(some)), label)

    def take_back(self, side: Any, items: Any) -> None:
        """Match items again that were set aside; all if none are named."""
        side = _check_side(side)
        with self._lock:
            some = (self._check_items(side, items) or self.now.aside[side]) & self.now.aside[side]
            if not some:
                raise Refused("None of these is set aside.", status=409)
            label = f"taking back {self._named(side, some)}"
            self._push(self.now.taken_back(side, frozenset(some)), label)

    def change_settings(self, given: Any) -> None:
        """Choose whether to match again after each answer, or what pictures are compared by."""
        if not isinstance(given, dict) or not given.keys() & {"automatic", "features"}:
            raise Refused("The request must say automatic or features.", "automatic")
        if not isinstance(given.get("automatic", True), bool):
            raise Refused("The request must say automatic: true or false.", "automatic")
        if "features" in given:
            self._compare_by(check_features(given["features"], PICTURE_FEATURES))
        if "automatic" not in given:
            return
        with self._lock:
            self._automatic = given["automatic"]
        self._save()
        self.touch()
        if self._automatic and self.now.stale and not self._missing():
            self.match_again()

    def _compare_by(self, features: tuple[str, ...]) -> None:
        """Match anew by other features, which can be undone like an answer."""
        if self.kind in ("texts", "table"):
            raise Refused("Only pictures are compared by features that you choose.", "features")
        with self._lock:
            now = self.now
            if features == now.features:
                return
            if now.raw:
                self._set(self._history.number, features=features)
            else:
                changed = replace(now, features=features, changed=frozenset())
                self._push(changed, f"comparing by {', '.join(features)}")
        if not self._missing():
            self._work(pause=0.0)

    def match_again(self) -> None:
        """Match now."""
        missing = self._missing()
        if missing:
            raise Refused(missing, status=409)
        self._work(pause=0.0)

    def _go(self, by: int, problem: str) -> None:
        with self._lock:
            before, moved = self.now.partner, self._history.moved(by)
            if moved is None:
                raise Refused(problem, status=409)
            self._history = moved
            self.jobs.cancel("matching")
            now = self.now
            changed = frozenset(np.flatnonzero(now.partner != before).tolist())
            self._set(self._history.number, partner=now.partner, confidence=now.confidence,
                      changed=changed)  # fmt: skip
            settled = now.settled
        self._save()
        if not settled:
            self._work()  # it was left before it was matched

    async def add(self, side: Any, name: str, pieces: AsyncIterator[bytes]) -> int:
        """Add a dropped file to a side; the slot of its first item."""
        side = _check_side(side)
        kind = kind_of_name(name)
        with self._lock:
            if self._paths is not None:
                raise Refused("These collections were given; nothing can be added.", status=409)
            if self.kind != kind and any(len(each) or each.kept() for each in self.sides):
                raise Refused(
                    f"Here, {NOUNS[self.kind or 'pictures']} are matched. Start over to match "
                    f"{NOUNS[kind]}.",
                    "upload",
                    409,
                )
            if self.kind != kind or not self.sides:
                self._make_sides(kind, ([], []))
            chosen = self.sides[side]
        slot = await chosen.add(name, pieces)
        self._added_at = time.monotonic()
        return slot

    def added(self) -> None:
        """Read files that were dropped."""
        with self._lock:
            if self.kind == "table":  # another table has other rows
                self.jobs.cancel("matching")
                self._history, self._candidates = History.of([PairStep.none()]), None
        self.touch()
        self._read()

    def clear(self) -> None:
        """Forget all answers and dropped files."""
        self.jobs.cancel()
        self.jobs.wait(timeout=30)
        with self._lock:
            sides = self.sides
            self._history, self._saved = History.of([PairStep.none()]), None
            self._candidates, self._automatic = None, None
            if self._paths is None:
                self.kind, self.sides = None, ()
        for side in sides:
            side.clear()
        self._save()
        self.touch()
        if self.sides:
            self._read()

    def export(self, form: Any) -> Job:
        """Write the pairs to a file to download."""
        make = self.exports.maker(form)
        if form == "png" and self.kind != "pictures":
            raise Refused("Only pictures can be drawn. Choose csv or json.", "export")
        with self._lock:
            if self.now.raw:
                raise Refused("There are no pairs to export yet.", "export", 409)
            table = PairTable.of(
                self.now, self.sides, lambda side, slot: self.picture(side, slot, large=False)
            )
        return self._start("exporting", "Writing", lambda job: make(job, table))

    # ---- history

    def _push(self, pairs: PairStep, label: str) -> None:
        """Show new pairs, after which the old ones can come back, and match the others anew."""
        with self._lock:
            self.jobs.cancel("matching")
            works = self.automatic and not self._missing()
            self._history = self._history.pushed(replace(pairs, label=label), settled=not works)
        self._save()
        self.touch()
        if works:
            self._work()

    def _set(self, number: int, **changes: Any) -> None:
        with self._lock:
            self._history = self._history.changed(number, **changes)
        self.touch()

    def _kept(self) -> Content | None:
        if self._saved is not None:  # of last time, not yet taken up
            return partial(self._pieces, replace(self._saved, automatic=self._automatic))
        saved = SavedMatch(
            self.kind,
            tuple(list(side.names) for side in self.sides) or ([], []),
            tuple(side.kept() for side in self.sides) or ([], []),
            self._automatic,
            self._history.steps,
            self._history.position,
        )
        return partial(self._pieces, saved)

    def _pieces(self, saved: SavedMatch) -> Iterator[bytes]:
        return self._file.pieces(saved.to_json())

    # ---- reading

    def _read(self) -> None:
        """Read all that waits, then match."""
        with suppress(Refused):  # enough jobs are there, and read these too
            jobs = [job for job in self.jobs.unfinished("reading") if not job.canceled]
            if len(jobs) < 2:
                self._start("reading", "Reading", self._read_all, self._give_up)

    def _give_up(self) -> None:
        """Leave unread what waits, but not what is dropped later."""
        if self._is_open:
            for side in self.sides:
                side.give_up("reading was canceled before it was read")

    def _read_all(self, job: Job) -> None:
        try:
            while any(side.waiting().size for side in self.sides) or self._more_may_come():
                for side in self.sides:
                    if side.waiting().size:
                        side.read(job.count)
                job.check()
                time.sleep(_AFTER_FILES / 10)
        except Canceled:
            if not self._is_open:
                raise  # next time, the rest is read
            if job.late:
                self._give_up()
        self._take_in()

    def _more_may_come(self) -> bool:
        return time.monotonic() - self._added_at < _AFTER_FILES

    def _take_in(self) -> None:
        """Match if items came, or if it was never done."""
        self._take_up()
        with self._lock:
            if not self.sides:
                return
            now = self.now
            self._set(self._history.number, partner=now.partner, confidence=now.confidence)
            is_new = now.raw or self._unmatched(now) > 0
            works = not self._missing() and (
                is_new or not now.settled or (self.automatic and self._candidates is None)
            )
            if works and is_new and not now.raw and now.settled:
                self._history = self._history.pushed(replace(now, label=_ADDING))
        self._save()
        self.touch()
        if works:
            self._work(pause=0.0)

    def _unmatched(self, now: PairStep) -> int:
        """Number of items that could have a partner, and have none."""
        free = [
            np.setdiff1d(side.ready(), sorted(aside)).size
            for side, aside in zip(self.sides, now.aside, strict=True)
        ]
        waiting = {x for x, _ in now.wrong if now.partner[x] < 0}  # for people or the next match
        return int(min(free) - (now.partner >= 0).sum()) - len(waiting)

    # ---- matching

    def _work(self, pause: float | None = None) -> None:
        """Match the pairs that are shown, in the background."""
        waits = _PAUSE if pause is None else pause
        with self._lock:
            wanted = self._history.number
        work = partial(self._match, wanted=wanted, pause=waits)
        self._start("matching", "Matching", work, instead=True)

    def _match(self, job: Job, *, wanted: int, pause: float) -> None:
        """Match for the step that is shown when the work begins, which may be a later one."""
        end = time.monotonic() + pause
        while time.monotonic() < end:
            job.check()
            time.sleep(0.05)
        with self._lock:
            number, now, sides = self._history.number, self._history.now, self.sides
        if not sides or (now.settled and number != wanted):
            return
        found = match(job, now.grown(self._n_first()), sides)
        if job.canceled and not (now.raw and self._is_open):
            raise Canceled  # what there was is better than half an answer
        with self._lock:
            if self._history.find(number) is not None:
                self._candidates = found.candidates
                self._set(number, **found.changes)
        self._save()

    # ---- checks

    def _check_pair(self, pair: Any) -> tuple[int, int]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Refused("Give pairs of items, such as [[0, 3]].")
        x, y = (self._check_items(side, [each]) for side, each in enumerate(pair))
        return x.pop(), y.pop()

    def _check_items(self, side: int, items: Any) -> set[int]:
        if not isinstance(items, list) or not all(type(each) is int for each in items):
            raise Refused("Give the numbers of items.")
        ready = self.sides[side].ready() if self.sides else ()
        if not np.isin(items, ready).all():
            raise Refused("There is no such item.", status=409)
        return set(items)

    def _named(self, side: int, slots: Any) -> str:
        some = list(slots)
        if len(some) == 1:
            return shown(self.sides[side].names[some[0]])
        return f"{len(some):,} {NOUNS[self.kind or 'pictures']}"


def _summarize(now: PairStep) -> str:
    """How many pairs are believed right, in a sentence."""
    if now.raw:
        return ""
    if now.expected is None or now.interval is None:
        return "How many pairs are right was not checked."
    low, high = now.interval
    others = " other" if now.answers else ""
    return (
        f"About {now.expected:.0%} of the{others} pairs are believed right, "
        f"somewhere between {low:.0%} and {high:.0%}."
    )


def _advise(now: PairStep, kind: str | None) -> str:
    """What to do about doubts."""
    if not now.doubts:
        return ""
    advice = "Answer some questions: ten answers help, thirty help a lot."
    if now.answers:
        advice = "Answer more questions: each answer helps the other pairs."
    if kind == "pictures" and "texture" not in now.features:
        advice += " Or compare by texture too, in the settings."
    return advice


def _check_side(side: Any) -> int:
    if type(side) is not int or side not in (0, 1):
        raise Refused("The side must be 0, the left one, or 1, the right one.")
    return side
