"""Ordinary and hostile values for every kind of argument that a public name takes.

A `Kind` draws either. The numbers inside a table do not depend on the container that holds it:
the container comes from a generator of its own, so the same call can be made again with plain
arrays and its answer compared.
"""

import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator


@dataclass
class Case:
    """One call: its seed, which arguments are hostile, and the sizes its arguments share."""

    seed: int
    hostile: frozenset[str] = frozenset()
    plain: bool = False
    sizes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        n = int(rng.integers(4, 13))
        self.sizes = {
            "n": n,
            "m": n + int(rng.choice([0, 0, 0, 1, 3])),
            "d": int(rng.integers(1, 5)),
            "e": int(rng.integers(1, 5)),
            "b": int(rng.integers(4, 9)),
            "k": int(rng.integers(1, 3)),
            "two": 2,
            "three": 3,
        }

    def rng(self, argument: str) -> Rng:
        """Generator for one argument, whatever was drawn for the others."""
        return np.random.default_rng([self.seed, zlib.crc32(argument.encode())])


Drawer = Callable[[Case, Rng], Any]


@dataclass(frozen=True)
class Kind:
    """How to draw one argument, as a user would pass it and as a user should not."""

    ordinary: Drawer
    hostile: Drawer
    needed: bool = False  # always passed; others are left at their default in most calls


class CallbackError(Exception):
    """Raised by callbacks and kernels of the fuzzer: the caller's own error."""


class RaisingArray:
    """An object whose conversion to an array fails."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise CallbackError("this object cannot become an array")

    def __len__(self) -> int:
        return 5


def pick(rng: Rng, choices: list[Any]) -> Any:
    """One of the choices, whatever their types; callables among them are not called."""
    return choices[int(rng.integers(len(choices)))]


def needed(kind: Kind) -> Kind:
    """The same kind for an argument without a default."""
    return Kind(kind.ordinary, kind.hostile, needed=True)


def fixed(value: Any) -> Kind:
    """An argument that is always the same and never hostile."""
    return Kind(lambda case, rng: value, lambda case, rng: value, needed=True)


def contained(values: np.ndarray, case: Case, rng: Rng) -> Any:
    """The same numbers in one of the containers that users have."""
    word = pick(rng, ["plain"] * 6 + list(_CONTAINERS))
    if case.plain or values.ndim == 0:
        return np.ascontiguousarray(values)
    return _CONTAINERS[word](values) if word != "plain" else values.copy()


def read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def _strided(values: np.ndarray) -> np.ndarray:
    wide = np.zeros((values.shape[0], *values.shape[1:], 2), values.dtype)
    wide[..., 0] = values
    return wide[..., 0]


def _backwards(values: np.ndarray) -> np.ndarray:
    return values[::-1].copy()[::-1]


def _memmap(values: np.ndarray) -> np.ndarray:
    path = scratch() / f"map-{zlib.crc32(values.tobytes())}-{values.size}.bin"
    values.tofile(path)
    return np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)


def _frame(values: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(values) if values.ndim == 2 else values.copy()


def _swapped(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder())


_CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda values: values.tolist(),
    "tuple": lambda values: tuple(map(tuple, values)) if values.ndim == 2 else values.tolist(),
    "fortran": np.asfortranarray,
    "float32": lambda values: values.astype(np.float32),
    "read-only": read_only,
    "strided": _strided,
    "backwards": _backwards,
    "memmap": _memmap,
    "frame": _frame,
    "swapped bytes": _swapped,
    "object": lambda values: values.astype(object),
}


def numbers(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Normal numbers on a grid fine enough to look continuous, exact in single precision."""
    return np.round(rng.normal(size=shape) * 256) / 256


def table(rows: str = "n", columns: str = "d", *, positive: bool = False) -> Kind:
    """Rows of numbers."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        values = numbers(rng, (case.sizes[rows], case.sizes[columns]))
        return np.abs(values) if positive else values

    return Kind(
        lambda case, rng: contained(draw(case, rng), case, rng),
        lambda case, rng: spoiled(draw(case, rng), rng),
        needed=True,
    )


def spoiled(values: np.ndarray, rng: Rng) -> Any:
    """A table with one thing wrong, or something else in its place."""
    return pick(rng, [*_SPOILERS, *_JUNK_TABLES])(values.copy())


def _with(value: Any, *, share: str = "one") -> Callable[[np.ndarray], np.ndarray]:
    def put(values: np.ndarray) -> np.ndarray:
        values = values.astype(float)
        if share == "one":
            if values.size:
                values.flat[values.size // 2] = value
        elif share == "row" and values.ndim:
            values[-1:] = value
        else:
            values[...] = value
        return values

    return put


def _dates(values: np.ndarray) -> np.ndarray:
    return np.full(values.shape, np.datetime64("2020-01-01")) + np.arange(values.size).reshape(
        values.shape
    )


def _text_column(values: np.ndarray) -> Any:
    import pandas as pd

    frame = pd.DataFrame(values.reshape(len(values), -1) if values.ndim else [[1.0]])
    frame["color"] = "red"
    return frame


def _nullable(values: np.ndarray) -> Any:
    import pandas as pd

    frame = pd.DataFrame(values.reshape(len(values), -1)).round().astype("Int64")
    frame.iloc[0, 0] = pd.NA
    return frame


def _sparse(values: np.ndarray) -> Any:
    from scipy import sparse

    return sparse.csr_array(values) if values.ndim == 2 else values


_SPOILERS: list[Callable[[np.ndarray], Any]] = [
    _with(np.nan),
    _with(np.inf),
    _with(-np.inf),
    _with(1e20),
    _with(1e155),
    _with(1e308),
    _with(np.nan, share="row"),
    _with(0.0, share="all"),
    _with(1.0, share="all"),
    _with(1e200, share="all"),
    _with(0.0, share="row"),
    lambda values: values + 1e6,
    lambda values: values + 1e9,
    lambda values: values + 1e17,
    lambda values: values * 1e-160,
    lambda values: values * 1e-310,
    lambda values: values * 1e100,
    lambda values: values * 1e160,
    lambda values: -np.abs(values),
    lambda values: np.repeat(values[:1], max(len(values), 1), axis=0),
    lambda values: values[:0],
    lambda values: values[:1],
    lambda values: values[:2],
    lambda values: values[..., :0],
    lambda values: values[:-1],
    lambda values: np.concatenate([values, values]),
    lambda values: values.T,
    lambda values: values[..., None],
    lambda values: values.ravel(),
    lambda values: values[0] if len(values) else values,
    lambda values: values.astype(complex),
    lambda values: values.astype(complex) + 1j,
    lambda values: values > 0,
    lambda values: values.astype(np.int8),
    lambda values: np.abs(values * 100).astype(np.uint8),
    lambda values: values.astype(np.float16),
    lambda values: values.astype(np.longdouble),
    lambda values: np.full(values.shape, 2**63, dtype=np.uint64),
    lambda values: values.astype(str),
    lambda values: values.astype(bytes),
    lambda values: np.ma.masked_less(values, 0),
    lambda values: np.asmatrix(values) if values.ndim <= 2 else values,
    lambda values: values.astype([("x", float)]),
    lambda values: [row.tolist() for row in values[:-1]] + [[0.0]],
    lambda values: [[10**400] * 2] * len(values),
    lambda values: [[None] * 2] * len(values),
    lambda values: [["a"] * 2] * len(values),
    lambda values: dict(enumerate(values)),
    lambda values: (row for row in values),
    _dates,
    lambda values: _dates(values) - np.datetime64("2019-01-01"),
    _text_column,
    _nullable,
    _sparse,
]
_JUNK_TABLES: list[Callable[[np.ndarray], Any]] = [
    lambda values: None,
    lambda values: 5,
    lambda values: np.float64(np.nan),
    lambda values: "text",
    lambda values: b"text",
    lambda values: ["some", "words", "here", "again"],
    lambda values: [],
    lambda values: [[]],
    lambda values: {},
    lambda values: {1, 2, 3},
    lambda values: object(),
    lambda values: np.array(5.0),
    lambda values: np.array([object()] * 4),
    lambda values: np.empty((0, 0)),
    lambda values: np.empty((3, 0, 2)),
    lambda values: range(4),
    lambda values: len,
    lambda values: RaisingArray(),
    lambda values: Path("/nowhere"),
    lambda values: slice(3),
]


def texts(rows: str = "n") -> Kind:
    """Documents."""
    words = [
        "the",
        "cat",
        "dog",
        "sat",
        "mat",
        "house",
        "red",
        "green",
        "tree",
        "under",
        "over",
        "runs",
        "sleeps",
    ]

    def draw(case: Case, rng: Rng) -> list[str]:
        return [" ".join(rng.choice(words, 8)) for _ in range(case.sizes[rows])]

    def hostile(case: Case, rng: Rng) -> Any:
        documents = draw(case, rng)
        return pick(
            rng,
            [
                [""] * len(documents),
                documents[:1],
                [],
                None,
                "one string",
                [*documents, 5],
                [*documents, None],
                np.arange(5.0),
                {"a": "b"},
                ["\x00", "\ud800 word", "🙂🙂 word"],
                ["same words here"] * 5,
                5,
                [b"bytes words"] * 4,
                ["a"] * 4,
                ["word " * 10_000] * 3,
            ],
        )

    return Kind(draw, hostile, needed=True)


def gram(rows: str = "n") -> Kind:
    """A positive semi-definite matrix."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        points = numbers(rng, (case.sizes[rows], 5))
        return points @ points.T

    def hostile(case: Case, rng: Rng) -> Any:
        K = draw(case, rng)
        return pick(
            rng,
            [
                lambda: spoiled(K, rng),
                lambda: spoiled(K, rng),
                lambda: np.triu(K),
                lambda: -K,
                lambda: K[:, :-1],
                lambda: np.zeros_like(K),
                lambda: np.eye(len(K)),
                lambda: np.full_like(K, 1e300),
            ],
        )()

    return Kind(lambda case, rng: contained(draw(case, rng), case, rng), hostile, needed=True)


def grams(rows: str = "n") -> Kind:
    """Several matrices of one size."""
    one = gram(rows)
    return Kind(
        lambda case, rng: [one.ordinary(case, rng) for _ in range(3)],
        lambda case, rng: (
            pick(
                rng,
                [[], None, 5, "kernels", one.ordinary(case, rng), [one.hostile(case, rng)] * 2],
            )
            if rng.random() < 0.4
            else [one.ordinary(case, rng), one.hostile(case, rng)]
        ),
        needed=True,
    )


def stack(*axes: str, scale: float = 1.0) -> Kind:
    """Numbers of any number of axes."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        return scale * numbers(rng, tuple(case.sizes[axis] for axis in axes))

    return Kind(
        lambda case, rng: contained(draw(case, rng), case, rng),
        lambda case, rng: spoiled(draw(case, rng), rng),
        needed=True,
    )


def shares(rows: str = "n", columns: str = "m") -> Kind:
    """How each item is divided among its partners."""
    return Kind(
        lambda case, rng: rng.dirichlet(np.ones(case.sizes[columns]), case.sizes[rows]),
        stack(rows, columns).hostile,
        needed=True,
    )


def bags(*, equal: bool = False, width: str = "two") -> Kind:
    """Sets of points."""

    def draw(case: Case, rng: Rng) -> list[np.ndarray]:
        sizes = rng.integers(3, 8, case.sizes["b"])
        if equal or rng.random() < 0.5:
            sizes[:] = sizes[0]
        return [numbers(rng, (size, case.sizes[width])) for size in sizes]

    def ordinary(case: Case, rng: Rng) -> Any:
        sets = draw(case, rng)
        form = pick(rng, ["list"] * 4 + ["stack", "tuple", "object", "frames"])
        if case.plain:
            return sets
        if form == "stack" and len({len(points) for points in sets}) == 1:
            return contained(np.stack(sets), case, rng)
        if form == "tuple":
            return tuple(sets)
        if form == "object":
            held = np.empty(len(sets), dtype=object)
            held[:] = sets
            return held
        return [contained(points, case, rng) for points in sets]

    def hostile(case: Case, rng: Rng) -> Any:
        sets = draw(case, rng)
        how = rng.random()
        if how < 0.5:
            place = int(rng.integers(len(sets)))
            sets[place] = spoiled(sets[place], rng)
            return sets
        if how < 0.6:
            return spoiled(sets[0], rng)
        return pick(
            rng,
            [
                lambda: [points[:1] for points in sets],
                lambda: sets[:1],
                lambda: [sets[0]] * len(sets),
                lambda: [np.zeros_like(points) for points in sets],
                lambda: [points * 1e200 for points in sets],
                lambda: [points * 1e-200 for points in sets],
                lambda: [points + 1e12 for points in sets],
                lambda: dict(enumerate(sets)),
                lambda: iter(sets),
                lambda: _grouped(sets),
                lambda: [[points] for points in sets],
                list,
                lambda: sets[0][0],
                lambda: np.zeros((2, 3, 2, 2)),
            ],
        )()

    return Kind(ordinary, hostile, needed=True)


def _grouped(sets: list[np.ndarray]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(np.concatenate(sets), columns=[f"x{i}" for i in range(sets[0].shape[1])])
    frame["bag"] = np.repeat(np.arange(len(sets)), [len(points) for points in sets])
    return frame.groupby("bag")


def labels(rows: str = "b") -> Kind:
    """Two or three classes, each with two members or more."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        n_items = case.sizes[rows]
        return rng.permutation(np.arange(n_items) % (2 if n_items < 6 else 3))

    def ordinary(case: Case, rng: Rng) -> Any:
        codes = draw(case, rng)
        form = "array" if case.plain else pick(rng, ["array", "list", "words", "bool"])
        if form == "words":
            return np.array(["ant", "bee", "cat"])[codes]
        if form == "list":
            return codes.tolist()
        return codes > 0 if form == "bool" and codes.max() == 1 else codes

    def hostile(case: Case, rng: Rng) -> Any:
        codes = draw(case, rng)
        return pick(
            rng,
            [
                lambda: codes[:-1],
                lambda: np.zeros_like(codes),
                lambda: np.arange(codes.size),
                lambda: codes.astype(float) + 0.5,
                lambda: np.where(codes > 0, np.nan, 1.0),
                lambda: np.stack([codes, codes], axis=1),
                lambda: np.array([None] * codes.size),
                lambda: np.array([1, "a"] * codes.size, dtype=object)[: codes.size],
                lambda: None,
                lambda: "labels",
                lambda: 5,
                list,
                lambda: codes.astype(complex),
                lambda: _dates(codes),
            ],
        )()

    return Kind(ordinary, hostile, needed=True)


def permutation(rows: str = "n", among: str | None = None) -> Kind:
    """An order of items."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        return rng.permutation(case.sizes[among or rows])[: case.sizes[rows]]

    def ordinary(case: Case, rng: Rng) -> Any:
        order = draw(case, rng)
        form = "intp" if case.plain else pick(rng, ["intp", "intp", "int8", "uint16", "list"])
        return order.tolist() if form == "list" else order.astype(form)

    def hostile(case: Case, rng: Rng) -> Any:
        order = draw(case, rng)
        return pick(
            rng,
            [
                lambda: order[:-1],
                lambda: np.append(order, order[0]),
                lambda: np.zeros_like(order),
                lambda: order + 1,
                lambda: order - 2,
                lambda: order + 10**12,
                lambda: order.astype(float),
                lambda: order + 0.5,
                lambda: np.full(order.size, np.nan),
                lambda: order.astype(str),
                lambda: order > 0,
                lambda: order[:, None],
                lambda: np.full_like(order, -1),
                lambda: None,
                lambda: 5,
                lambda: "order",
                list,
                lambda: order.astype(object),
                lambda: order[:0],
            ],
        )()

    return Kind(ordinary, hostile, needed=True)


def pairs(first: str = "n", second: str = "n") -> Kind:
    """Pairs of indices, as `frozen` takes them."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        n_pairs = int(rng.integers(1, 3))
        left = rng.permutation(case.sizes[first])[:n_pairs]
        right = rng.permutation(case.sizes[second])[:n_pairs]
        return np.stack([left, right], axis=1)

    def ordinary(case: Case, rng: Rng) -> Any:
        found = draw(case, rng)
        if rng.random() < 0.2:
            found = found[:0]
        form = "intp" if case.plain else pick(rng, ["intp", "list", "int8"])
        return [tuple(pair) for pair in found.tolist()] if form == "list" else found.astype(form)

    def hostile(case: Case, rng: Rng) -> Any:
        found = draw(case, rng)
        return pick(
            rng,
            [
                lambda: np.concatenate([found, found]),
                lambda: found + 10**6,
                lambda: found - 50,
                lambda: found + 0.5,
                lambda: found.astype(float),
                lambda: found[:, :1],
                lambda: found.ravel(),
                lambda: found[0],
                lambda: found.astype(str),
                lambda: "pairs",
                lambda: 5,
                lambda: [(0,)],
                lambda: [(0, 1, 2)],
                lambda: [(0, None)],
                lambda: {0: 1},
                lambda: np.full((2, 2), np.nan),
                lambda: found.astype(bool),
                lambda: np.ma.masked_all((2, 2), dtype=int),
            ],
        )()

    return Kind(ordinary, hostile)


def scratch() -> Path:
    """Folder of this process for files."""
    global _SCRATCH
    if _SCRATCH is None or not _SCRATCH.exists():
        _SCRATCH = Path(tempfile.mkdtemp(prefix="unshuffle-fuzz-"))
    return _SCRATCH


_SCRATCH: Path | None = None
