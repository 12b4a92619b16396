"""Quadratic assignment on QAPLIB and on noisy copies of graphs, beside SciPy's two methods.

Settings were chosen on the even half of the instances in alphabetical order, on one core.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from unshuffle.assignment import quadratic_assignment

PROVED = (
    *("nug12", "rou12", "scr12", "chr12a", "tai12a", "chr12b", "tai12b", "had14", "nug15"),
    *("chr15a", "chr15b", "tai15a", "tai15b", "nug16a", "had16", "chr18a", "chr18b", "nug17"),
)
GRAPHS = ((50, 0.3, 0.1), (100, 0.3, 0.1), (200, 0.2, 0.05), (200, 0.2, 0.1), (400, 0.1, 0.04))
N_GRAPHS = 5
# Instances above this size take SciPy's 2opt minutes each.
LARGEST_FOR_2OPT = 100


class Instance(NamedTuple):
    """A problem of QAPLIB, and the best value known."""

    name: str
    A: NDArray[np.int64]
    B: NDArray[np.int64]
    best: int

    @property
    def is_symmetric(self) -> bool:
        """Whether both matrices are symmetric."""
        return all(np.array_equal(S, S.T) for S in (self.A, self.B))


class Score(NamedTuple):
    """Result of one solver on one instance."""

    instance: Instance
    value: int
    seconds: float
    bound_gap: float

    @property
    def gap(self) -> float:
        """Percent above the best value known; NaN if that is 0."""
        best = self.instance.best
        return 100.0 * (self.value - best) / best if best else np.nan

    @property
    def reached(self) -> bool:
        """Whether the best value known was reached."""
        return self.value <= self.instance.best


def report(folder: Path, seconds: float = 1.0) -> Iterator[str]:
    """Both halves by each solver, and instances that missed the best value known."""
    instances = read(folder)
    ours = partial(quadratic_assignment, max_time=seconds, random_state=0)
    warm_up(instances)
    yield from summarize(f"unshuffle, {seconds:g} s", [run(each, ours) for each in instances])
    if seconds > 1.0:
        return
    default = partial(quadratic_assignment, random_state=0)
    yield from summarize("unshuffle, default", [run(each, default) for each in instances])
    for method, largest in (("faq", np.inf), ("2opt", LARGEST_FOR_2OPT)):
        scipys = partial(by_scipy, method=method)
        scores = [run(each, scipys) for each in instances if len(each.A) <= largest]
        yield from summarize(f"SciPy, {method}", scores)


def prove(folder: Path) -> Iterator[str]:
    """Time to the proof, a minute at most; then gaps that a bound leaves after one second."""
    instances = {each.name: each for each in read(folder)}
    warm_up(list(instances.values()))
    exact = partial(quadratic_assignment, method="exact", max_time=60.0, random_state=0)
    for name in PROVED:
        score = run(instances[name], exact)
        proved = "proved" if score.bound_gap == 0.0 else f"bound {score.bound_gap:.1%} below"
        yield f"{name}: {score.value}, {proved}, {score.seconds:.2f} s"
    quick = partial(quadratic_assignment, max_time=1.0, random_state=0)
    for each in instances.values():
        if len(each.A) <= 30:
            yield f"{each.name}: bound {run(each, quick).bound_gap:.1%} below after 1 s"


def graphs(_: Path) -> Iterator[str]:
    """Share of nodes that are matched right between a random graph and a noisy copy."""
    for n_items, share, noise in GRAPHS:
        found: dict[str, list[tuple[float, float]]] = {"unshuffle": [], "faq": [], "2opt": []}
        for seed in range(N_GRAPHS):
            A, B, truth = noisy_graphs(n_items, share, noise, seed)
            ours = partial(quadratic_assignment, maximize=True, random_state=0)
            solvers: dict[str, Callable[..., Any]] = {
                "unshuffle": ours,
                "faq": partial(by_scipy, method="faq", maximize=True),
            }
            if n_items <= 50:
                solvers["2opt"] = partial(by_scipy, method="2opt", maximize=True)
            for name, solve in solvers.items():
                began = time.perf_counter()
                right = float((solve(A, B).col_ind == truth).mean())
                found[name].append((right, time.perf_counter() - began))
        means = (
            f"{name} {np.mean(scores, axis=0)[0]:.2f} right in {np.mean(scores, axis=0)[1]:.2f} s"
            for name, scores in found.items()
            if scores
        )
        yield f"{n_items} nodes, {share:.0%} edges, {noise:.0%} flipped: {'; '.join(means)}"


def read(folder: Path) -> list[Instance]:
    """All instances in alphabetical order."""
    data = np.load(folder / "qaplib.npz")
    names = sorted(name[:-2] for name in data if name.endswith("_A"))
    return [
        Instance(
            name,
            data[f"{name}_A"].astype(np.int64),
            data[f"{name}_B"].astype(np.int64),
            int(data[f"{name}_best"]),
        )
        for name in names
    ]


def warm_up(instances: list[Instance]) -> None:
    """Compile, or load from the cache, for symmetric and asymmetric matrices."""
    for each in (*instances[:1], *(each for each in instances if len(each.A) == 12)):
        quadratic_assignment(each.A, each.B, max_time=0.2)


def run(instance: Instance, solve: Callable[..., Any]) -> Score:
    began = time.perf_counter()
    found = solve(instance.A, instance.B)
    seconds = time.perf_counter() - began
    columns = found.col_ind
    value = int((instance.A * instance.B[np.ix_(columns, columns)]).sum())
    return Score(instance, value, seconds, found.get("gap", np.inf))


def by_scipy(
    A: NDArray[np.int64], B: NDArray[np.int64], *, method: str, maximize: bool = False
) -> Any:
    options = {"rng": np.random.default_rng(0), "maximize": maximize}
    return scipy.optimize.quadratic_assignment(A, B, method=method, options=options)


def summarize(solver: str, scores: list[Score]) -> Iterator[str]:
    """Means over both halves and over symmetric and asymmetric instances."""
    place = {each.name: number for number, each in enumerate(s.instance for s in scores)}
    parts = {
        "even": [s for s in scores if place[s.instance.name] % 2 == 0],
        "odd": [s for s in scores if place[s.instance.name] % 2],
        "all": scores,
        "symmetric": [s for s in scores if s.instance.is_symmetric],
        "asymmetric": [s for s in scores if not s.instance.is_symmetric],
    }
    for part, chosen in parts.items():
        gaps = np.array([score.gap for score in chosen])
        n_reached = sum(score.reached for score in chosen)
        yield (
            f"{solver}, {part}: gap {np.nanmean(gaps):.3f} % (mean), {np.nanmedian(gaps):.3f} % "
            f"(median), at the best known {n_reached} of {len(chosen)}, "
            f"{np.sum([score.seconds for score in chosen]):.0f} s"
        )
    missed = [s for s in scores if not s.reached]
    if len(missed) < len(scores) / 2:
        yield f"{solver}, missed: " + ", ".join(f"{s.instance.name} {s.gap:.2f}" for s in missed)


def noisy_graphs(
    n_items: int, share: float, noise: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """A random graph, a copy in random order with some pairs flipped, and the true matching."""
    random = np.random.default_rng(seed)
    first = np.triu(random.random((n_items, n_items)) < share, 1)
    second = first ^ np.triu(random.random((n_items, n_items)) < noise, 1)
    order = random.permutation(n_items)
    A, B = ((each | each.T).astype(np.int64) for each in (first, second))
    return A, B[np.ix_(order, order)], np.argsort(order)
