"""Matching two collections or more."""

from functools import cache
from typing import Any

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import (
    VECTOR_KERNELS,
    add,
    eight_rows,
    estimator,
    is_matching,
    method,
    saved,
    search,
)
from tests.fuzz.values import Kind, needed

from unshuffle import matching

# Too few items, or trust=False.
NOT_ESTIMATED = {
    "expected_accuracy_",
    "expected_accuracy_interval_",
    "expected_accuracy",
    "interval",
}


def _check_sorting(sorting: Any, arguments: dict[str, Any]) -> str | None:
    n_partners = len(sorting.matches_.names_y)
    if not is_matching(sorting.permutation_, n_partners):
        return f"permutation_ is not a matching: {sorting.permutation_}"
    confidence = sorting.confidence_
    if not ((confidence >= 0) & (confidence <= 1)).all():
        return f"confidence_ is outside 0 to 1: {confidence}"
    frozen = arguments.get("frozen")
    if frozen is not None and len(frozen):
        left, right = np.asarray(frozen, dtype=int).T
        if not (sorting.permutation_[left] == right).all():
            return "a frozen pair was taken apart"
    return None


estimator(
    "matching.KernelizedSorting",
    {
        "X": v.table("n", "d"),
        "y": v.table("m", "e"),
        "frozen": v.pairs("n", "m"),
        "cost": Kind(v.stack("n", "m").ordinary, v.stack("n", "m").hostile),
    },
    search(
        kernel=s.kernel("auto", *VECTOR_KERNELS, several=True),
        kernel_y=s.kernel(*VECTOR_KERNELS, None),
        gamma=s.real(0.5, None, 2),
        method=s.option("auto", "refined", "low_rank", "unbiased", "classic", "entropy"),
        n_init=s.count(1, 2, 8),
        unmatched_cost=s.real(None, 0.1, 1.0),
        kernel_weights=s.real(None),
        trust=s.flag(),
        step=s.option("set", "line_search"),
    ),
    check=_check_sorting,
    gaps=NOT_ESTIMATED,
)
add(
    "matching.KernelizedSorting[text]",
    lambda X, y, **more: matching.KernelizedSorting(kernel="text", **more).fit(X, y),
    {"X": v.texts("n"), "y": v.texts("m"), "random_state": s.seed()},
    check=_check_sorting,
    gaps=NOT_ESTIMATED,
    words={"documents"},
)
add(
    "matching.KernelizedSorting[precomputed]",
    lambda X, y, **more: matching.KernelizedSorting(kernel="precomputed", **more).fit(X, y),
    {"X": v.gram("n"), "y": v.gram("m"), "random_state": s.seed()},
    check=_check_sorting,
    gaps=NOT_ESTIMATED,
)


def _collections() -> Kind:
    one = v.table("n", "d")
    return Kind(
        lambda case, rng: [one.ordinary(case, rng) for _ in range(3)],
        lambda case, rng: (
            [one.ordinary(case, rng), one.hostile(case, rng)]
            if rng.random() < 0.6
            else one.hostile(case, rng)
        ),
        needed=True,
    )


def _check_multiway(sorting: Any, arguments: dict[str, Any]) -> str | None:
    orders = sorting.permutations_
    if not (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all():
        return f"permutations_ are not permutations: {orders}"
    return None if (orders[0] == np.arange(orders.shape[1])).all() else "the first moved"


estimator(
    "matching.MultiwaySorting",
    {"X": _collections()},
    search(
        kernel=s.kernel(*VECTOR_KERNELS),
        gamma=s.real(0.5, None),
        objective=s.option("hsic", "entropy"),
        n_init=s.count(1, 2),
        offset=s.real(None, 0, 0.5),
        compare_columns=s.flag(),
    ),
    check=_check_multiway,
    gaps=NOT_ESTIMATED,
    words={"collections", "collection"},
)


@cache
def _sorting() -> Any:
    rng = np.random.default_rng(0)
    X = v.numbers(rng, (8, 3))
    return matching.KernelizedSorting(random_state=0).fit(X, X @ v.numbers(rng, (3, 4)))


method("matching.KernelizedSorting.candidates", _sorting, {"k": needed(s.count(1, 3, 8))})
method("matching.KernelizedSorting.questions", _sorting, {"k": needed(s.count(1, 3, 8))})
method("matching.KernelizedSorting.soft_matches", _sorting, {"temperature": s.real(0.1, 0.2, 1)})
method(
    "matching.KernelizedSorting.reorder",
    _sorting,
    {"y": eight_rows(v.table("m", "e"))},
    gaps={""},
)
method("matching.KernelizedSorting.transform", _sorting, {"X": eight_rows(v.table("n", "d"))})
method(
    "matching.KernelizedSorting.match",
    _sorting,
    {"X": eight_rows(v.table("n", "d")), "y": eight_rows(v.table("m", "e"))},
    gaps=NOT_ESTIMATED,
)
add(
    "matching.Matches",
    matching.Matches,
    {
        "permutation": v.permutation("n"),
        "confidence": v.stack("n"),
        "names_x": Kind(
            lambda case, rng: [f"x{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
        "names_y": Kind(
            lambda case, rng: [f"y{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
    },
    gaps=NOT_ESTIMATED,
)


add(
    "matching.Matches.save",
    lambda path, **more: saved(_sorting().matches_, path),
    {"path": files.output(".csv", ".json", ".parquet")},
    gaps=NOT_ESTIMATED,
)
add(
    "matching.Matches.load",
    matching.Matches.load,
    {"path": files.path("notes.txt")},
    gaps=NOT_ESTIMATED,
)
