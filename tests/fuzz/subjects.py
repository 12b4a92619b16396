"""Every public name, and which seed calls which."""

from functools import cache

from tests.fuzz.rooms import (  # noqa: F401  each adds its names to the table
    layout,
    matching,
    mathematics,
    orbits,
    pictures,
    plotting,
    sets,
    vectors,
)
from tests.fuzz.subject import SUBJECTS, Subject

# Result types: made by the functions below, which are called.
NOT_CALLED = {
    "assignment.Assignment",
    "base.BagEstimatorMixin",
    "base.DoubtWarning",
    "base.SearchState",
    "datasets.LabeledSets",
    "datasets.Paired",
    "encoders.Encoder",
    "encoders.has_content",  # takes no arguments
    "encoders.load_encoder",  # takes seconds
    "images.Drawing",
    "images.ImageCollection",
    "images.default_cache",
    "kernels.Mixture",
    "kernels.SetKernel",
    "layout.Summary",
    "matching.DoubtWarning",
    "testing.BagCheckResult",
    "testing.parametrize_with_bag_checks",
    "web.serve",  # ends with Ctrl-C
}


@cache
def _turns() -> list[str]:
    return [name for name in sorted(SUBJECTS) for _ in range(SUBJECTS[name].turns)]


def subject_of(seed: int) -> Subject:
    """Which name a seed calls."""
    return SUBJECTS[_turns()[seed % len(_turns())]]


def seeds_of(name: str, n_calls: int) -> list[int]:
    """The first seeds that call a name."""
    turns = _turns()
    own = [place for place, each in enumerate(turns) if each == name]
    return [own[i % len(own)] + len(turns) * (i // len(own)) for i in range(n_calls)]
