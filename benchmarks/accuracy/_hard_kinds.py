"""Is what is believed true where many matchings are about equally good?

Copies, ties, symmetric shapes, clusters, trends, missing partners and noise, beside two kinds of
ordinary data. Each draw is new: the constants of the estimate were chosen on the draws from 0, and
docs/trust.md shows those from 100.
"""

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle import KernelizedSorting

N_DRAWS, FIRST_DRAW = 5, 100
# Noise of shapes that are symmetric: without any, rounding errors would tell the partners.
SLIGHT = 1e-6
N_KNOWN, N_KNOWN_DRAWS, N_WITH_KNOWN = 10, 10, 50

Array = NDArray[np.float64]
Sides = tuple[Array, Array, NDArray[np.intp]]  # X, y, and the partner of each item of X, or -1
Draw = Callable[[np.random.Generator], Sides]


class Judged(NamedTuple):
    """What a fit believes, and what is true."""

    right: float
    believed: float
    low: float
    high: float
    doubts: list[str]

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds the share right, up to rounding."""
        return self.low - 1e-9 <= self.right <= self.high + 1e-9


def report(_: Path | None = None, first_draw: int = FIRST_DRAW) -> Iterator[str]:
    """A row for each kind: means of the draws, intervals that held the truth, and doubts."""
    yield "| kind | right | believed | inside | doubted |"
    yield "|---|---|---|---|---|"
    found = {}
    for kind in KINDS:
        found[kind] = [judge(kind, first_draw + draw) for draw in range(N_DRAWS)]
        yield f"| {kind} | {_row(found[kind])} |"
    yield f"| all | {_row([each for some in found.values() for each in some])} |"


def report_known(_: Path | None = None, first_draw: int = FIRST_DRAW) -> Iterator[str]:
    """Ten known pairs of noisy views: belief against the truth, one row for each noise."""
    yield f"| noise, {N_KNOWN} known pairs | right | believed | inside | doubted |"
    yield "|---|---|---|---|---|"
    for noise in (0.05, 0.1, 0.2):
        some = [judge_known(noise, first_draw + draw) for draw in range(N_KNOWN_DRAWS)]
        yield f"| {noise} | {_row(some)} |"


def _row(some: list[Judged]) -> str:
    right, believed = (np.mean([each[i] for each in some]) for i in range(2))
    n_inside = sum(each.is_inside for each in some)
    n_doubted = sum(bool(each.doubts) for each in some)
    n = len(some)
    return f"{right:.2f} | {believed:.2f} | {n_inside} of {n} | {n_doubted} of {n}"


def judge(kind: str, draw: int) -> Judged:
    """Match one draw of a kind with the default call."""
    X, y, truth = KINDS[kind](np.random.default_rng([draw, *kind.encode()]))
    return _judge(X, y, truth, np.empty((0, 2), dtype=np.intp))


def judge_known(noise: float, draw: int) -> Judged:
    """Match two views of common points, of which some pairs are known."""
    rng = np.random.default_rng(draw)
    Z = rng.normal(size=(N_WITH_KNOWN, 3))
    X, y = (np.tanh(Z @ rng.normal(size=(3, size))) for size in (6, 5))
    X, y = (side + noise * rng.normal(size=side.shape) for side in (X, y))
    X, y, truth = shuffled(X, y, rng)
    known = rng.permutation(N_WITH_KNOWN)[:N_KNOWN]
    return _judge(X, y, truth, np.column_stack([known, truth[known]]))


def _judge(X: Array, y: Array, truth: NDArray[np.intp], frozen: NDArray[np.intp]) -> Judged:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sorting = KernelizedSorting(random_state=0).fit(X, y, frozen=frozen)
    rows = np.setdiff1d(sorting.pairs_[:, 0], frozen[:, 0])
    right = float((sorting.permutation_[rows] == truth[rows]).mean())
    low, high = sorting.expected_accuracy_interval_
    return Judged(right, sorting.expected_accuracy_, low, high, sorting.doubts_)


def shuffled(X: Array, y: Array, rng: np.random.Generator) -> Sides:
    """The second side in another order, with the partner of each item of the first."""
    order = rng.permutation(len(y))
    return X, y[order], np.argsort(order)


def seen_twice(Z: Array, noise: float, rng: np.random.Generator) -> Sides:
    """Points, and the same points turned, both with noise."""
    turn = np.linalg.qr(rng.normal(size=(Z.shape[1], Z.shape[1])))[0]
    X, y = (side + noise * rng.normal(size=side.shape) for side in (Z, Z @ turn))
    return shuffled(X, y, rng)


def cloud(n_items: int, n_columns: int, rng: np.random.Generator) -> Array:
    """Points without any symmetry."""
    return np.asarray(rng.exponential(size=(n_items, n_columns)) * np.geomspace(2, 0.7, n_columns))


def copies(n_each: int, rng: np.random.Generator) -> Sides:
    apart = rng.choice([0.001, 0.003])
    Z = np.repeat(cloud(60 // n_each, 4, rng), n_each, axis=0)
    return seen_twice(Z + apart * rng.normal(size=Z.shape), 0.01 * rng.choice([0.5, 1, 3]), rng)


def ties(rng: np.random.Generator) -> Sides:
    return seen_twice(np.repeat(cloud(30, 4, rng), 2, axis=0), 0.0, rng)


def few_values(rng: np.random.Generator) -> Sides:
    Z = rng.integers(0, 3, size=(60, 4)) * np.array([2.0, 1.5, 1.0, 0.5])
    return shuffled(Z, Z * [1.0, 2.0, 0.5, 1.0], rng)


def symmetric_pairs(rng: np.random.Generator) -> Sides:
    """Each item has a partner that is as far from all others as itself."""
    own = np.vstack([np.eye(25), -np.eye(25)])
    return seen_twice(np.hstack([np.tile(cloud(25, 3, rng), (2, 1)), own]), SLIGHT, rng)


def grid(noise: float, rng: np.random.Generator) -> Sides:
    side = int(rng.integers(6, 10))
    return seen_twice(np.array(list(product(range(side), repeat=2)), dtype=float), noise, rng)


def torus(rng: np.random.Generator) -> Sides:
    angles = np.array(list(product(range(8), repeat=2))) * np.pi / 4
    return seen_twice(np.hstack([np.cos(angles), np.sin(angles)]), SLIGHT, rng)


def circle(noise: float, rng: np.random.Generator) -> Sides:
    angles = np.linspace(0, 2 * np.pi, int(rng.integers(30, 80)), endpoint=False)
    return seen_twice(np.column_stack([np.cos(angles), np.sin(angles)]), noise, rng)


def cube(rng: np.random.Generator) -> Sides:
    return seen_twice(np.array(list(product((-1.0, 1.0), repeat=5))), SLIGHT, rng)


def line(rng: np.random.Generator) -> Sides:
    return seen_twice(np.arange(40.0)[:, None], SLIGHT, rng)


def mirrored(rng: np.random.Generator) -> Sides:
    Z = rng.normal(size=(30, 2)) * [2, 1]
    Z[:, 0] = np.abs(Z[:, 0]) + 0.2
    return seen_twice(np.vstack([Z, Z * [-1, 1]]), rng.choice([SLIGHT, 0.02]), rng)


def independent_clusters(sizes: tuple[int, ...], rng: np.random.Generator) -> Sides:
    """Nothing in common but the number and sizes of the clusters."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X, y = (3 * rng.normal(size=(len(sizes), 5))[groups] for _ in range(2))
    X, y = (side + 0.3 * rng.normal(size=side.shape) for side in (X, y))
    return shuffled(X, y, rng)


def clusters_of_noise(rng: np.random.Generator) -> Sides:
    """Common clusters, whose members have nothing in common."""
    return seen_twice(np.repeat(3 * cloud(6, 4, rng), 12, axis=0), 0.2, rng)


def trend(rng: np.random.Generator) -> Sides:
    t = np.sort(rng.uniform(size=60))
    X, y = np.column_stack([t**2, np.sin(3 * t)]), np.column_stack([np.exp(t), np.cos(2 * t), t])
    return shuffled(*(side + 0.03 * rng.normal(size=side.shape) for side in (X, y)), rng)


def half_overlap(rng: np.random.Generator) -> Sides:
    X, y, truth = seen_twice(cloud(90, 5, rng), 0.05, rng)
    kept = np.argsort(truth)[np.sort(truth[30:])]  # the items of y that are in the second part
    place = np.full(90, -1)
    place[kept] = np.arange(60)
    return X[:60], y[truth[kept]], place[:60]


def heavy_tails(rng: np.random.Generator) -> Sides:
    return seen_twice(rng.standard_t(1.5, size=(80, 5)), 0.3, rng)


def weak_signal(rng: np.random.Generator) -> Sides:
    return seen_twice(cloud(80, 6, rng), 0.7, rng)


def noise(rng: np.random.Generator) -> Sides:
    return rng.normal(size=(80, 4)), rng.normal(size=(80, 6)), np.arange(80)


def ordinary(noise: float, rng: np.random.Generator) -> Sides:
    return seen_twice(cloud(80, 6, rng), noise, rng)


def _with(draw: Callable[..., Sides], first: Any) -> Draw:
    return lambda rng: draw(first, rng)


KINDS: dict[str, Draw] = {
    "near copies": _with(copies, 2),
    "near triplicates": _with(copies, 3),
    "exact duplicates": ties,
    "columns of three values": few_values,
    "pairs that may be exchanged": symmetric_pairs,
    "square grid": _with(grid, SLIGHT),
    "square grid with noise": _with(grid, 0.1),
    "torus": torus,
    "regular polygon": _with(circle, SLIGHT),
    "polygon with noise": _with(circle, 0.03),
    "cube of five dimensions": cube,
    "line of equal steps": line,
    "mirrored cloud": mirrored,
    "independent clusters, one size": _with(independent_clusters, (12,) * 5),
    "independent clusters, other sizes": _with(independent_clusters, (25, 18, 10, 6)),
    "clusters of unrelated members": clusters_of_noise,
    "trend": trend,
    "half overlap": half_overlap,
    "heavy tails": heavy_tails,
    "weak signal": weak_signal,
    "noise": noise,
    "ordinary": _with(ordinary, 0.0),
    "ordinary with noise": _with(ordinary, 0.15),
}
