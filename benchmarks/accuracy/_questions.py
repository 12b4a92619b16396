"""How far do ten answers go? Pairs that `questions` asks about, beside random known pairs.

Every item asked about is answered truly. All ways are compared on the items that none of them
froze.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.accuracy._known_pairs import N_DRAWS, Permutation, score, six_sets
from benchmarks.accuracy._trust import Array, Task
from unshuffle import KernelizedSorting

N_ASKED, N_RANDOM = 10, 30


def report(folder: Path) -> Iterator[str]:
    """One line for each set: means over the draws."""
    for task in six_sets(folder):
        draws = [_compare(task, seed) for seed in range(N_DRAWS)]
        ways = (
            f"{way} {np.mean([draw[way][1] for draw in draws]):.3f} right, rank error "
            f"{np.mean([draw[way][0] for draw in draws]):.3f}"
            for way in draws[0]
        )
        yield f"{task.name}: {'; '.join(ways)}"


def _compare(task: Task, seed: int) -> dict[str, tuple[float, float]]:
    """Rank error and share right after each way to choose the known pairs."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(task.n_items)
    place = np.argsort(order)
    y = task.shuffled(order)
    random = rng.permutation(task.n_items)[:N_RANDOM]

    def answered(items: Permutation) -> Permutation:
        return np.column_stack([items, place[items]])

    first = _fit(task, y, trust=True)
    half = first.questions(N_ASKED // 2)[:, 0]
    again = _fit(task, y, answered(half), trust=True)
    known = {
        f"{N_ASKED} random": random[:N_ASKED],
        f"{N_ASKED} questions": first.questions(N_ASKED)[:, 0],
        f"2 x {N_ASKED // 2} questions": np.append(half, again.questions(N_ASKED // 2)[:, 0]),
        f"{N_RANDOM} random": random,
    }
    asked = np.unique(np.concatenate(list(known.values())))
    found = {way: _fit(task, y, answered(items)) for way, items in known.items()}
    return {way: score(task, order, each.permutation_, asked) for way, each in found.items()}


def _fit(
    task: Task, y: Array, frozen: Permutation | None = None, *, trust: bool = False
) -> KernelizedSorting:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sorting = KernelizedSorting(task.kernel, random_state=0, trust=trust)
        return sorting.fit(task.X, y, frozen=frozen)
