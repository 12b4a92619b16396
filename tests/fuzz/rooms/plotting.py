"""Displays."""

from typing import Any

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.rooms.layout import template
from tests.fuzz.rooms.sets import fitted_kernel
from tests.fuzz.subject import SETS, SUBJECTS, add
from tests.fuzz.values import Kind

from unshuffle import plotting


def _display(name: str, arguments: dict[str, Kind], **more: Any) -> None:
    """Hold what was found, then draw it."""

    def call(**given: Any) -> Any:
        import matplotlib.pyplot as plt

        methods = ("plot", *more.get("methods", ()))
        try:
            display = getattr(plotting, name).from_predictions(**given)
            for method in methods:
                getattr(display, method)()
        finally:
            plt.close("all")
        return None

    words = frozenset(more.get("words", ())) | SETS
    add(f"plotting.{name}", call, arguments, words=words)


_display(
    "AlignmentDisplay",
    {
        "bags": v.bags(equal=True),
        "permutations": Kind(
            lambda case, rng: np.tile(
                np.arange(len(v.bags(equal=True).ordinary(case, case.rng("bags"))[0])),
                (case.sizes["b"], 1),
            ),
            v.table("b", "d").hostile,
            needed=True,
        ),
    },
)
_display(
    "CollageDisplay",
    {"template": template(), "grid": files.grid("n"), "tiles": files.images("n", size=4)},
)
_display(
    "GramDisplay",
    {"K": v.gram("n"), "labels": Kind(v.labels("n").ordinary, v.labels("n").hostile)},
)
_display(
    "LayoutDisplay",
    {
        "grid": files.grid("n"),
        "wrap": s.flag(),
        "values": Kind(v.stack("n").ordinary, v.stack("n").hostile),
    },
)
_display(
    "MatchDisplay",
    {
        "X": v.table("n", "d"),
        "y": v.table("n", "e"),
        "permutation": v.permutation("n"),
        "confidence": Kind(
            lambda case, rng: np.linspace(0, 1, case.sizes["n"]), v.stack("n").hostile
        ),
        "kernel": s.kernel("rbf", "linear"),
        "gamma": s.real(None, 0.5),
    },
    methods=("plot_kernels",),
)


def _mixtures(sets: Any) -> Any:
    return fitted_kernel("ExpectedLikelihoodKernel")().mixtures(sets)


def _some_mixtures(case: Any, rng: Any) -> Any:
    # One mixture for each bag that the same case draws.
    sets = v.bags().ordinary(case, case.rng("sets"))
    return _mixtures([np.asarray(points, dtype=float) for points in sets])


_display(
    "MixtureDisplay",
    {
        "sets": v.bags(),
        "mixtures": Kind(_some_mixtures, v.texts("n").hostile, needed=True),
    },
)
_display(
    "OrbitDisplay",
    {
        "X": v.table("n", "two"),
        "generators": v.stack("k", "two", "two", scale=0.3),
        "prototype": v.stack("two"),
        "coefficients": v.table("n", "k"),
    },
)
_display(
    "TemplateDisplay",
    {
        "template": Kind(
            lambda case, rng: v.numbers(
                rng, (len(v.bags(equal=True).ordinary(case, case.rng("bags"))[0]), 2)
            ),
            v.table("n", "two").hostile,
            needed=True,
        ),
        "sets": Kind(
            lambda case, rng: v.bags(equal=True).ordinary(case, case.rng("bags")),
            v.bags(equal=True).hostile,
            needed=True,
        ),
        "permutations": SUBJECTS["plotting.AlignmentDisplay"].arguments["permutations"],
    },
)
