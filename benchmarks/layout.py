"""Layouts against FLAS with default settings: time and distance preservation quality."""

from collections.abc import Iterator

from sklearn.datasets import load_digits

from benchmarks._flas import SEEDS, Problem, beside_flas, colors, compiled_layouts, fixed
from benchmarks._measure import Row

TOPIC = f"Layout on a grid (means of {len(SEEDS)} seeds)"
FORMATS = {"of FLAS's time": ".2f", "DPQ16": ".4f", "FLAS's": ".4f", "sd": ".4f"}
QUALITIES = ("fast", "balanced", "best")


def rows(*, quick: bool) -> Iterator[Row]:
    """Every quality on colors and digits."""
    methods = compiled_layouts(QUALITIES)
    for problem in problems(quick=quick):
        for quality, found in beside_flas(problem, methods).items():
            yield Row(
                TOPIC,
                f"{problem.title}, {quality}",
                f"GridLayout, {quality}",
                found.seconds,
                "FLAS",
                found.flas_seconds,
                {
                    "of FLAS's time": found.share,
                    "DPQ16": found.quality,
                    "FLAS's": found.flas_quality,
                    "sd": found.deviation,
                },
            )


def problems(*, quick: bool) -> Iterator[Problem]:
    """Problems that need no data folder."""
    for side in (32, 64) if quick else (32, 64, 128):
        yield colors(side)
    yield fixed("digits", (42, 42), load_digits().data)
