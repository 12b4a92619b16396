"""The arrangements of a wall, of which each can come back."""

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from unshuffle.web._arrangement import Arrangement

MOST_STEPS = 60


@dataclass
class _Step:
    """A place in the history; what is there may still be worked on."""

    number: int
    now: Arrangement


class History:
    """Steps that can be undone, one of which is shown; others must see to locks."""

    _numbers = count(1)  # never used twice, so that late work finds its step or none

    def __init__(self, arrangements: list[Arrangement], position: int = 0) -> None:
        self._steps = [_Step(next(self._numbers), each) for each in arrangements]
        self.position = position
        self.version = next(self._numbers)  # of what is shown

    @property
    def arrangements(self) -> list[Arrangement]:
        """All of them, oldest first."""
        return [step.now for step in self._steps]

    @property
    def now(self) -> Arrangement:
        """The one that is shown."""
        return self._steps[self.position].now

    @property
    def number(self) -> int:
        """Of the step that is shown."""
        return self._steps[self.position].number

    @property
    def is_new(self) -> bool:
        """Whether the pictures were never arranged."""
        return len(self._steps) == 1 and not (self.now.settled and self.now.placed.size)

    @property
    def undone(self) -> str | None:
        """What an undo would undo."""
        return self.now.label if self.position else None

    @property
    def redone(self) -> str | None:
        """What a redo would do again."""
        after = self._steps[self.position + 1 :]
        return after[0].now.label if after else None

    def find(self, number: int) -> Arrangement | None:
        """The arrangement of a step that is still there."""
        return next((step.now for step in self._steps if step.number == number), None)

    def push(self, arrangement: Arrangement) -> None:
        """Show a new one, which is not settled; what was undone is gone."""
        shown = self._steps[self.position]
        # It stays as it is, unless nothing was arranged yet.
        shown.now = replace(shown.now, settled=shown.now.settled or not shown.now.raw)
        del self._steps[self.position + 1 :]
        self._steps.append(_Step(next(self._numbers), replace(arrangement, settled=False)))
        del self._steps[: max(0, len(self._steps) - MOST_STEPS)]
        self.position = len(self._steps) - 1
        self.version = next(self._numbers)

    def set(self, number: int, **changes: Any) -> bool:
        """Change the arrangement of a step; whether it is still there."""
        for position, step in enumerate(self._steps):
            if step.number == number:
                step.now = replace(step.now, **changes)
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
