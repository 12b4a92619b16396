"""The steps of a view, such as arrangements of a wall, of which each can come back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

MOST_STEPS = 60
# Of steps and versions; never used twice, so that late work finds its step or none.
_numbers = count(1)


class Kept(Protocol):
    """What a step holds: an immutable dataclass."""

    @property
    def label(self) -> str:
        """What led to it, for the undo button."""

    @property
    def settled(self) -> bool:
        """Whether the work on it has ended."""

    @property
    def raw(self) -> bool:
        """Whether there is nothing to show yet."""


T = TypeVar("T", bound=Kept)


@dataclass(frozen=True, eq=False)
class _Step(Generic[T]):
    """A place in the history; the same number with another content is later work on it."""

    number: int
    now: T


@dataclass(frozen=True, eq=False)
class History(Generic[T]):
    """Steps that can be undone, one of which is shown.

    A value: each change gives another history, so that a reader without a lock sees one moment.
    """

    _steps: tuple[_Step[T], ...]
    position: int
    version: int  # of what is shown

    @classmethod
    def of(cls, steps: Sequence[T], position: int = 0) -> "History[T]":
        """A history of these steps, the oldest first."""
        return cls(tuple(_Step(next(_numbers), each) for each in steps), position, next(_numbers))

    @property
    def steps(self) -> list[T]:
        """All of them, oldest first."""
        return [step.now for step in self._steps]

    @property
    def now(self) -> T:
        """The one that is shown."""
        return self._steps[self.position].now

    @property
    def number(self) -> int:
        """Of the step that is shown."""
        return self._steps[self.position].number

    @property
    def undone(self) -> str | None:
        """What an undo would undo."""
        return self.now.label if self.position else None

    @property
    def redone(self) -> str | None:
        """What a redo would do again."""
        after = self._steps[self.position + 1 :]
        return after[0].now.label if after else None

    def find(self, number: int) -> T | None:
        """What a step holds that is still there."""
        return next((step.now for step in self._steps if step.number == number), None)

    def pushed(self, new: T, *, settled: bool = False) -> "History[T]":
        """With a new step that is shown; what was undone is gone."""
        before = self._steps[self.position]
        # It stays as it is, unless there was nothing to show yet.
        left = replace(
            before, now=_with(before.now, settled=before.now.settled or not before.now.raw)
        )
        added = _Step(next(_numbers), _with(new, settled=settled))
        steps = (*self._steps[: self.position], left, added)[-MOST_STEPS:]
        return History(steps, len(steps) - 1, next(_numbers))

    def changed(self, number: int | None = None, **changes: Any) -> "History[T]":
        """With changes of a step that is still there, or of the one that is shown."""
        wanted = self.number if number is None else number
        steps = tuple(
            replace(step, now=_with(step.now, **changes)) if step.number == wanted else step
            for step in self._steps
        )
        return History(
            steps, self.position, next(_numbers) if wanted == self.number else self.version
        )

    def moved(self, by: int) -> "History[T] | None":
        """With another step shown; None if there is none."""
        if not 0 <= self.position + by < len(self._steps):
            return None
        return History(self._steps, self.position + by, next(_numbers))


def _with(step: T, **changes: Any) -> T:
    return replace(step, **changes)  # type: ignore[type-var]
