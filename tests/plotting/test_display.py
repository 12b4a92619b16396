import inspect
import subprocess
import sys

import pytest

from unshuffle import plotting

MAKE_ALL = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from unshuffle import plotting

bags = np.random.RandomState(0).randn(3, 4, 2)
orders = [[0, 1, 2, 3]] * 3
mixture = np.ones(1), np.zeros((1, 2)), np.eye(2)[np.newaxis]
tiles = np.zeros((1, 2, 2, 3), dtype=np.uint8)
turn = [[[0.0, -1.0], [1.0, 0.0]]]
given = {
    "AlignmentDisplay": (bags, orders),
    "CollageDisplay": (tiles[0], [[0]], tiles),
    "GramDisplay": (np.eye(2),),
    "LayoutDisplay": ([[0, 1]],),
    "MatchDisplay": (bags[0], bags[0], np.arange(4)),
    "MixtureDisplay": (bags, [mixture] * 3),
    "OrbitDisplay": ([[1.0, 0.0]], turn, [1.0, 0.0], [[0.0]]),
    "TemplateDisplay": (bags[0], bags, orders),
}
assert list(given) == plotting.__all__
for name, arguments in given.items():
    try:
        getattr(plotting, name).from_predictions(*arguments).plot()
    except ImportError as error:
        print(error)
"""


def test_missing_matplotlib_names_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", MAKE_ALL], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == 8 * [
        "Drawing needs matplotlib: pip install 'unshuffle[plot]'"
    ]


@pytest.mark.parametrize("name", plotting.__all__)
def test_docstrings_say_how_to_build_and_where_it_was_drawn(name):
    display = getattr(plotting, name)
    for part in ("Build it with", "\nParameters\n", "\nAttributes\n", "ax_, figure_", "Examples"):
        assert inspect.getdoc(display).count(part) == 1
    for method in (each for each in vars(display) if each.startswith(("from_", "plot"))):
        text = inspect.getdoc(getattr(display, method))
        assert text.count("\nParameters\n") == text.count(f"\nReturns\n-------\ndisplay : {name}")
        assert text.count("\nax : matplotlib Axes") == method.startswith("plot")
