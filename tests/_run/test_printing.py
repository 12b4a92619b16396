import numpy as np
import pytest

from unshuffle import assignment, datasets, images, layout
from unshuffle._run.printing import duration
from unshuffle.base import SearchState
from unshuffle.kernels import Mixture

MANY = np.arange(5000)
TABLE = np.zeros((5000, 40))
RESULTS = {
    "Paired": (datasets._paired.Paired(TABLE, TABLE, MANY), "X=<5,000 x 40 float64>"),
    "LabeledSets": (datasets.digit_sets(3, n_points=20), "=<3 int64>"),
    "Summary": (layout.Summary(MANY, MANY, MANY, 1 / 3), "mean_distance=0.333333"),
    "ImageCollection": (
        images.ImageCollection(["a.png"] * 5000, TABLE, TABLE, []),
        "names=<list of 5,000>",
    ),
    "Assignment": (assignment.solve_assignment(np.eye(500)), "columns=<500 int64>"),
    "SearchState": (SearchState(3, 0.5, MANY), "permutation=<5,000 int64>"),
    "Mixture": (Mixture(MANY, TABLE, TABLE), "<5,000 x 40 float64>"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_with_many_entries_print_as_one_short_line(name):
    result, part = RESULTS[name]
    for text in (repr(result), str(result)):
        assert text.startswith(f"{name}(")
        assert part in text
        assert len(text) < 250
        assert "\n" not in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (89.0, "89 seconds"),
        (91.0, "2 minutes"),
        (3600.0, "60 minutes"),
        (7000.0, "2 hours"),
        (1e7, "2,778 hours"),
    ],
)
def test_durations_are_said_in_round_numbers(seconds, words):
    assert duration(seconds) == words
