"""One matching in a process of its own.

It writes the partner of each item to a file and prints the rest as one line of JSON: seconds,
megabytes above those held before, and what the library says of its answer.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import with_memory
from benchmarks.scale._problems import Problem, load

WARM_UP = 200  # items matched first, so that imports and compilation are not measured

Found = tuple[NDArray[np.intp], dict[str, Any]]  # partners, and what the library says of them


class Steps(NamedTuple):
    """A matching: what is measured, and how partners are read from its result."""

    solve: Callable[[], Any]
    read: Callable[[Any], Found]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale._fit", description=__doc__)
    parser.add_argument("method", choices=[*OURS])
    parser.add_argument("problem")
    parser.add_argument("result", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--frozen", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    real = Path(os.environ["UNSHUFFLE_DATA"]) if "UNSHUFFLE_DATA" in os.environ else None
    problem = load(options.problem, options.folder, real)
    frozen = known_pairs(problem, options.frozen)
    steps = ours(OURS[options.method], problem, frozen, options.jobs)
    start = time.perf_counter()
    result, megabytes, _ = with_memory(steps.solve)
    seconds = time.perf_counter() - start
    partner, said = steps.read(result)
    np.save(options.result, partner)
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, **said}))


def known_pairs(problem: Problem, n_pairs: int) -> NDArray[np.intp]:
    """Random right pairs (index in X, index in y)."""
    items = np.random.default_rng(0).permutation(problem.n_items)[:n_pairs]
    return np.column_stack([items, problem.partner[items]])


def ours(
    options: dict[str, str], problem: Problem, frozen: NDArray[np.intp], n_jobs: int | None
) -> Steps:
    from unshuffle import KernelizedSorting

    several = isinstance(problem.kernel, list)

    def first(collection: Any) -> Any:
        return [each[:WARM_UP] for each in collection] if several else collection[:WARM_UP]

    def fit(X: Any, y: Any, options: dict[str, str], **known: Any) -> KernelizedSorting:
        sorting = KernelizedSorting(problem.kernel, random_state=0, n_jobs=n_jobs, **options)
        return sorting.fit(X, y, **known)

    def solve() -> tuple[KernelizedSorting, list[str]]:
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            known = {"frozen": frozen} if len(frozen) else {}
            sorting = fit(problem.X, problem.y, options, **known)
        return sorting, sorted({each.category.__name__ for each in issued})

    def read(result: tuple[KernelizedSorting, list[str]]) -> Found:
        sorting, warned = result
        said = {"believed": sorting.expected_accuracy_, "warned": warned}
        return sorting.permutation_, said

    # The default call takes either method.
    searches = [options] if options else [OURS["refined"], OURS["low_rank"]]
    for each in searches if problem.n_items > WARM_UP else []:
        with warnings.catch_warnings(), suppress(ValueError):  # too few items for a method
            warnings.simplefilter("ignore")
            fit(first(problem.X), first(problem.y), each)
    return Steps(solve, read)


OURS: dict[str, dict[str, str]] = {
    "default": {},
    "refined": {"method": "refined"},
    "low_rank": {"method": "low_rank"},
}

if __name__ == "__main__":
    main()
