"""The steps of a view, such as arrangements of a wall, of which each can come back."""

from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

MOST_STEPS = 60


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


@dataclass
class _Step(Generic[T]):
    """A place in the history; what is there may still be worked on."""

    number: int
    now: T


class History(Generic[T]):
    """Steps that can be undone, one of which is shown; others must see to locks."""

    _numbers = count(1)  # never used twice, so that late work finds its step or none

    def __init__(self, steps: list[T], position: int = 0) -> None:
        self._steps = [_Step(next(self._numbers), each) for each in steps]
        self.position = position
        self.version = next(self._numbers)  # of what is shown

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

    def push(self, new: T) -> None:
        """Show a new one, which is not settled; what was undone is gone."""
        shown = self._steps[self.position]
        # It stays as it is, unless there was nothing to show yet.
        shown.now = _replace(shown.now, settled=shown.now.settled or not shown.now.raw)
        del self._steps[self.position + 1 :]
        self._steps.append(_Step(next(self._numbers), _replace(new, settled=False)))
        del self._steps[: max(0, len(self._steps) - MOST_STEPS)]
        self.position = len(self._steps) - 1
        self.version = next(self._numbers)

    def set(self, number: int, **changes: Any) -> bool:
        """Change what a step holds; whether it is still there."""
        for position, step in enumerate(self._steps):
            if step.number == number:
                step.now = _replace(step.now, **changes)
                if position == self.position:
                    self.version = next(self._numbers)
                return True
        return False

    def go(self, by: int) -> bool:
        """Show another step; whether there is one."""
        if not 0 <= self.position + by < len(self._steps):
            return False
        self.position += by
        self.version = next(self._numbers)
        return True


def _replace(step: T, **changes: Any) -> T:
    return replace(step, **changes)  # type: ignore[type-var]
