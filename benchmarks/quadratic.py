"""Quadratic assignment against SciPy's two methods, on QAPLIB and on noisy copies of graphs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from benchmarks._measure import Method, Problem, data_folder
from unshuffle.assignment import quadratic_assignment

TITLE = "Quadratic assignment"
ABOUT = (
    "One core. Noisy graphs: a random graph, and a shuffled copy in which some pairs are flipped; "
    "right is the share of the nodes that are matched right. QAPLIB: five of its instances, if "
    "the data folder has them; the gap is the percentage above the best value known. "
    "`python -m benchmarks.accuracy qaplib` solves all of them. SciPy's 2opt runs up to 100 items."
)
SIZE = "items"
CORES = 1
# Nodes, share of edges, share of pairs flipped.
GRAPHS = ((25, 0.3, 0.1), (50, 0.3, 0.1), (100, 0.3, 0.1), (200, 0.2, 0.05), (400, 0.1, 0.04))
INSTANCES = ("nug12", "chr25a", "tai50a", "sko81", "tai100a")
QUICK = (25, 50)
LARGEST_FOR_2OPT = 100

Array = NDArray[np.int64]


class Pair(NamedTuple):
    """Two matrices, and the true matching or the best value known."""

    A: Array
    B: Array
    truth: NDArray[np.intp] | None = None
    best: int = 0


def problems() -> Iterator[Problem]:
    for n_items, share, noise in GRAPHS:
        make = partial(noisy_graphs, n_items, share, noise)
        methods = methods_for(n_items, maximize=True)
        yield Problem("noisy graphs", n_items, make, methods, judge, n_items in QUICK)
    folder = data_folder()
    if folder is not None:
        with np.load(folder / "qaplib.npz") as data:
            sizes = {name: len(data[f"{name}_A"]) for name in INSTANCES if f"{name}_A" in data}
        for name, n_items in sizes.items():
            methods = methods_for(n_items, maximize=False)
            make = partial(instance, name)
            yield Problem(f"QAPLIB, {name}", n_items, make, methods, judge, name == "nug12")


def methods_for(n_items: int, *, maximize: bool) -> tuple[Method, ...]:
    methods = (
        Method("quadratic_assignment", partial(ours, maximize=maximize), "ours"),
        Method("SciPy, faq", partial(by_scipy, method="faq", maximize=maximize)),
        Method("SciPy, 2opt", partial(by_scipy, method="2opt", maximize=maximize)),
    )
    return methods if n_items <= LARGEST_FOR_2OPT else methods[:2]


def noisy_graphs(n_items: int, share: float, noise: float) -> Pair:
    """A random graph, a copy in random order with some pairs flipped, and the true matching."""
    random = np.random.default_rng(0)
    first = np.triu(random.random((n_items, n_items)) < share, 1)
    second = first ^ np.triu(random.random((n_items, n_items)) < noise, 1)
    order = random.permutation(n_items)
    A, B = ((each | each.T).astype(np.int64) for each in (first, second))
    return Pair(A, B[np.ix_(order, order)], np.argsort(order))


def instance(name: str) -> Pair:
    folder = data_folder()
    assert folder is not None
    with np.load(folder / "qaplib.npz") as data:
        A, B = (data[f"{name}_{letter}"].astype(np.int64) for letter in "AB")
        return Pair(A, B, best=int(data[f"{name}_best"]))


def ours(pair: Pair, *, maximize: bool) -> Callable[[], Any]:
    small = noisy_graphs(20, 0.5, 0.1)
    for B in (small.B, np.triu(small.B)):  # compile for symmetric and asymmetric matrices
        quadratic_assignment(small.A, B, maximize=maximize, random_state=0)
    return lambda: quadratic_assignment(pair.A, pair.B, maximize=maximize, random_state=0).col_ind


def by_scipy(pair: Pair, *, method: str, maximize: bool) -> Callable[[], Any]:
    def solve() -> Any:
        options = {"rng": np.random.default_rng(0), "maximize": maximize}
        return scipy.optimize.quadratic_assignment(
            pair.A, pair.B, method=method, options=options
        ).col_ind

    return solve


def judge(pair: Pair, columns: NDArray[np.intp]) -> dict[str, float]:
    if pair.truth is not None:
        return {"right": float((columns == pair.truth).mean())}
    value = int((pair.A * pair.B[np.ix_(columns, columns)]).sum())
    return {"gap in %": 100.0 * (value - pair.best) / pair.best}
