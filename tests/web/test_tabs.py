"""Several tabs that change one wall at once, compared with a model that changes it in turn."""

import itertools
import random
import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.web.schedules import Schedule

from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall import session as _session
from unshuffle.web._wall.arrangement import EMPTY, OUTSIDE, Arrangement, Settings, in_order
from unshuffle.web._wall.session import Session
from unshuffle.web._work import history as _history
from unshuffle.web._work import jobs as _jobs
from unshuffle.web._work import workspace as _workspace
from unshuffle.web._work.album import READY

N_PICTURES, N_TABS, N_CHANGES = 7, 4, 4
EVERYTHING = frozenset(range(N_PICTURES))
WATCHED = {module.__file__ for module in (_session, _workspace, _history)}
KINDS = ["freeze", "unfreeze", "leave_out", "put_back", "move", "quality", "again", "undo", "redo"]


# ---- the model


@dataclass(frozen=True)
class Step:
    """All that is known of a wall without knowing where its pictures are."""

    frozen: frozenset = frozenset()
    out: frozenset = frozenset()
    quality: str = "balanced"
    seed: int = 0


@dataclass(frozen=True)
class Model:
    """A wall that one tab at a time changes."""

    steps: tuple = (Step(),)
    position: int = 0

    def after(self, kind, given):
        """The answer to a change, and all states that may follow."""
        now = self.steps[self.position]
        placed, some = EVERYTHING - now.out, frozenset(given or ())
        if kind in ("undo", "redo"):
            to = self.position + (1 if kind == "redo" else -1)
            if not 0 <= to < len(self.steps):
                return 409, [self]
            return 200, [replace(self, position=to)]
        if kind == "quality":
            return 200, [self._pushed(replace(now, quality=given))]
        if kind == "again":
            return 200, [self._pushed(replace(now, seed=now.seed + 1))]
        if kind == "move":  # the picture that was in its place is released, if it was frozen
            rests = [now.frozen, *(now.frozen - {each} for each in now.frozen)]
            moved = {rest | some for rest in rests}
            after = [self._pushed(replace(now, frozen=each)) for each in sorted(moved, key=sorted)]
            return (200, after) if some <= placed else (409, [self])
        known = {"unfreeze": now.frozen, "put_back": now.out}.get(kind, placed)
        if not some <= known:
            return 409, [self]
        if kind in ("unfreeze", "put_back"):
            some = some or known
            if not some:
                return 400, [self]
        changes = {
            "freeze": {"frozen": now.frozen | some},
            "unfreeze": {"frozen": now.frozen - some},
            "leave_out": {"frozen": now.frozen - some, "out": now.out | some},
            "put_back": {"out": now.out - some},
        }
        return 200, [self._pushed(replace(now, **changes[kind]))]

    def _pushed(self, step):
        steps = (*self.steps[: self.position + 1], step)
        return Model(steps, len(steps) - 1)


@dataclass(eq=False)
class Change:
    """A change that a tab asks for, and how and when it is answered."""

    kind: str
    given: object
    asked: int
    status: int = 0
    answered: int = 0
    made: int = 0


class Record:
    """Everything that is shown, in order, each explained by a change of one tab."""

    def __init__(self, schedule):
        self._schedule = schedule
        self.changes = {}  # by thread, the one that it waits for
        self.shown = [(0, Model())]

    def show(self, model):
        """Explain what is shown now, by the thread that is awake."""
        before, change = self.shown[-1][1], self.changes.get(self._schedule.current())
        if change is not None and not change.made:
            status, after = before.after(change.kind, change.given)
            if status == 200 and model in after:
                change.made = self._schedule.tick()
                self.shown.append((change.made, model))
                return
        assert model == before, f"{change} makes {model} of {before}"

    def check(self, change):
        """Check an answer: the change was made, or there was a moment when it could not be."""
        if change.status == 200:
            assert change.made, f"{change} was never made"
            return
        assert not change.made, f"{change} was made and refused"
        if change.kind == "move":
            return  # the wall had another shape, or the cell was outside of it
        first = max(when for when, _ in self.shown if when < change.asked)
        models = [each for when, each in self.shown if first <= when <= change.answered]
        statuses = [each.after(change.kind, change.given)[0] for each in models]
        assert change.status in statuses, f"{change} could have been made: {models}"


# ---- the wall


class Disk:
    """A file in memory, where some writes fail; others go on meanwhile."""

    def __init__(self, schedule, folder):
        self.path, self.pictures = folder / "wall.json", folder
        self.problem, self.has_damaged = "", False
        self.content = None
        self.order = []
        self._schedule = schedule

    def write(self, content):
        (saved,) = content()
        self._schedule.change_places()
        if self._schedule.random.random() < 0.15:
            return "The wall could not be saved: No space left on device."
        self.order.append(saved.number)
        self.content = saved
        self._schedule.change_places()
        return ""

    def save(self, saved):
        return self.write(lambda: [saved])


class Shuffler:
    """Lays out pictures at random, and shows some walls on the way."""

    compared = SimpleNamespace(covers=lambda features, slots: True)

    def __init__(self, schedule):
        self._schedule = schedule

    def lay_out(self, job, now, slots, show):
        cells = np.flatnonzero(now.grid.ravel() != OUTSIDE)
        places = {slot: now.cell_of(slot) for slot in now.frozen}
        assert len(cells) >= len(slots)
        assert set(places) <= set(slots.tolist())
        assert min(places.values(), default=0) >= 0
        for _ in range(2):
            grid = np.where(now.grid == OUTSIDE, OUTSIDE, EMPTY).astype(np.int32).ravel()
            grid[list(places.values())] = list(places)
            free = [cell for cell in cells.tolist() if cell not in places.values()]
            others = [slot for slot in slots.tolist() if slot not in places]
            grid[self._schedule.random.sample(free, len(others))] = others
            show(grid.reshape(now.grid.shape))
            self._schedule.change_places()
            job.check()
        return SimpleNamespace(score_=0.5), []


class Recorded(Session):
    """A wall that records each history that it shows."""

    record = None

    @property
    def _history(self):
        return self._shown

    @_history.setter
    def _history(self, history):
        self._shown = history
        if self.record is not None:
            check_wall(history.now)
            self.record.show(_known(history))


@pytest.fixture
def open_tabs(tmp_path, monkeypatch):
    """Makes walls whose threads are those of a schedule."""
    numbers = itertools.count()
    saved = _session.Saved

    def keep(*arguments):
        found = saved(*arguments)
        object.__setattr__(found, "number", next(numbers))
        return found

    monkeypatch.setattr(_session, "Saved", keep)
    monkeypatch.setattr(_session, "wall_pieces", lambda saved: [saved], raising=False)
    idle = SimpleNamespace(start=lambda: None, cancel=lambda: None)

    def open_them(schedule):
        locks = SimpleNamespace(Lock=schedule.lock, RLock=schedule.lock, Timer=lambda *_: idle)
        monkeypatch.setattr(_workspace, "threading", locks)
        real = {name: getattr(threading, name) for name in ("Lock", "Event", "Condition")}
        jobs = SimpleNamespace(Thread=lambda **_: idle, **real)
        monkeypatch.setattr(_jobs, "threading", jobs)
        disk = Disk(schedule, tmp_path)
        session = Recorded(None, disk, tmp_path / "cache")
        session.arranger = Shuffler(schedule)
        session.album._append([f"{k}.jpg" for k in range(N_PICTURES)], ["x"] * N_PICTURES)
        session.album._status[:N_PICTURES] = READY
        grid = in_order(np.arange(N_PICTURES), np.ones((2, 4), dtype=bool))
        history = getattr(_history.History, "of", _history.History)
        session._history = history([Arrangement(Settings(), grid, settled=True)])
        session._is_open = True
        return session, disk

    return open_them


class Tabs:
    """Four tabs and the work in the background, as a schedule runs them."""

    def __init__(self, schedule, session, disk):
        self.schedule, self.session, self.disk = schedule, session, disk
        self.record = session.record = Record(schedule)
        self.changes = []
        self._n_open = N_TABS
        self._queue = session.jobs._queues["arranging"]

    def run(self):
        plans = [self._plan(random.Random(self.schedule.random.random())) for _ in range(N_TABS)]
        self.schedule.run(*(lambda plan=plan: self._tab(plan) for plan in plans), self._work)

    def _plan(self, rng):
        """What a tab asks for; the picture of a change is chosen without a look at the wall."""
        found = []
        for _ in range(N_CHANGES):
            kind, given = rng.choice(KINDS), None
            if kind in ("freeze", "leave_out", "move"):
                given = [rng.randrange(N_PICTURES)]
            elif kind in ("unfreeze", "put_back"):
                given = [rng.randrange(N_PICTURES)] if rng.random() < 0.4 else []
            elif kind == "quality":
                given = rng.choice(["fast", "best"])
            found.append((kind, given, rng.randrange(8)))
        return found

    def _tab(self, plan):
        try:
            for kind, given, cell in plan:
                self._ask(kind, given, cell)
        finally:
            self._n_open -= 1

    def _ask(self, kind, given, cell):
        session = self.session
        change = Change(kind, given, self.schedule.tick())
        self.changes.append(change)
        self.record.changes[self.schedule.current()] = change
        try:
            if kind == "move":
                session.move(*given, cell, *session.now.grid.shape)
            elif kind == "quality":
                session.change_settings({"quality": given})
            elif kind == "again":
                session.arrange_again()
            else:
                getattr(session, kind)(*([] if given is None else [given]))
            change.status = 200
        except Refused as error:
            change.status = error.status
        change.answered = self.schedule.tick()
        check_wall(session.now)
        self.record.check(change)
        self._check_saved(change)

    def _work(self):
        while self._n_open or not self._queue.empty():
            if not self._queue.empty():
                self.session.jobs._run(*self._queue.get_nowait())
                check_wall(self.session.now)
            self.schedule.change_places()

    def _check_saved(self, change):
        """What was answered is on the disk, unless it is said not to be."""
        if change.status == 200 and self.session.unsaved is None:
            since = [model for when, model in self.record.shown if when >= change.made]
            assert _known(self.disk.content) in since, f"{change} is not on the disk"


def check_wall(now):
    """Each picture is on the wall once, or left out."""
    placed = now.grid[now.grid >= 0].tolist()
    assert len(set(placed)) == len(placed), "a picture is in two places"
    assert not now.out & set(placed), "a picture is left out and on the wall"
    assert now.out | set(placed) == EVERYTHING, "a picture is nowhere"
    assert now.frozen <= set(placed), "a picture is frozen and not on the wall"


def _known(history):
    """A history, or what was saved of it, as the model has it."""
    steps = [
        Step(each.frozen, each.out, each.settings.quality, each.seed) for each in history.steps
    ]
    return Model(tuple(steps), history.position)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (250, 500, 750))]
)
def test_four_tabs_at_once_are_like_four_in_turn(open_tabs, first):
    for seed in range(first, first + 250):
        schedule = Schedule(seed, WATCHED)
        session, disk = open_tabs(schedule)
        tabs = Tabs(schedule, session, disk)
        try:
            tabs.run()
            assert session._notice is None, session._notice
            assert disk.order == sorted(disk.order), "an older state replaced a newer one"
            if session.unsaved is None:
                kept, shown = _known(disk.content), _known(session._history)
                assert kept == shown, "the disk holds another wall"
            assert session.now.settled, "the wall was left unsettled"
            assert not session.jobs.unfinished()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
