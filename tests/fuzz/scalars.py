"""Single numbers, words, functions and kernels, as a user would pass them and should not."""

from typing import Any

import numpy as np
from tests.fuzz.values import CallbackError, Kind, pick

JUNK = [None, "junk", "", b"x", [], {}, (), object, True, np.nan, 1j, np.array([1, 2]), [3], "1"]


def count(*ordinary: Any, huge: tuple[Any, ...] = (10**18,)) -> Kind:
    """A whole number."""
    hostile = [*JUNK, 0, -1, -(10**18), 1.5, np.float64(2.0), np.int8(100), np.uint8(3), *huge]
    hostile += [np.inf, 2.0, np.array(3), np.int64(2), 10**400]
    return Kind(lambda case, rng: pick(rng, list(ordinary)), lambda case, rng: pick(rng, hostile))


def real(*ordinary: Any) -> Kind:
    """A number."""
    hostile = [*JUNK, 0, 0.0, -0.0, -1, -1e-300, 5e-324, 1e-300, 1e-160, 1e90, 1e155, 1e300, 1e308]
    hostile += [np.inf, -np.inf, np.float32(0.1), np.float16(0.5), 10**400, np.array(0.5), 10**18]
    return Kind(lambda case, rng: pick(rng, list(ordinary)), lambda case, rng: pick(rng, hostile))


def option(*words: Any) -> Kind:
    """One of a few words."""
    hostile = [*JUNK, str(words[0]).upper(), f"{words[0]} ", 5, [words[0]], np.str_(words[0])]
    return Kind(lambda case, rng: pick(rng, list(words)), lambda case, rng: pick(rng, hostile))


def flag() -> Kind:
    """True or False."""
    hostile = [None, "yes", 2, -1, np.nan, [], np.array([True, False]), np.bool_(True), 0, 1]
    return Kind(lambda case, rng: bool(rng.integers(2)), lambda case, rng: pick(rng, hostile))


def seed() -> Kind:
    """A `random_state`; always passed, so that a call can be repeated."""
    hostile = [-1, 2**40, 1.5, "seed", np.nan, [1, 2], object(), np.random.default_rng(0), 1j]
    return Kind(
        lambda case, rng: pick(rng, [0, 1, np.int64(7)]),
        lambda case, rng: pick(rng, hostile),
        needed=True,
    )


def jobs() -> Kind:
    """A number of threads."""
    usual = [None, 1, 2, -1]
    hostile = [0, 100_000, -100_000, 1.5, "two", np.nan, [], np.int8(2), True, 10**400]
    return Kind(lambda case, rng: pick(rng, usual), lambda case, rng: pick(rng, hostile))


def callback() -> Kind:
    """What is called at each step."""

    def quiet(*state: Any) -> None:
        return None

    def stop(*state: Any) -> bool:
        return True

    def fail(*state: Any) -> None:
        raise CallbackError("the callback failed")

    def interrupt(*state: Any) -> None:
        raise KeyboardInterrupt

    def scribble(*state: Any) -> None:
        order = getattr(state[0], "permutation", None)
        if order is not None:
            order[...] = 0

    def mumble(*state: Any) -> str:
        return "go on"

    hostile = [fail, interrupt, scribble, mumble, 5, "print", [], lambda *_: np.array([1, 2])]
    hostile += [lambda *state: np.nan]
    return Kind(
        lambda case, rng: pick(rng, [None, quiet, stop]), lambda case, rng: pick(rng, hostile)
    )


def kernel(*words: Any, several: bool = False) -> Kind:
    """A kernel: a word, a function, perhaps a list of these."""

    def product(X: Any, Y: Any = None) -> Any:
        X = np.asarray(X)
        return X @ (X if Y is None else np.asarray(Y)).T

    def fail(X: Any, Y: Any = None) -> Any:
        raise CallbackError("the kernel failed")

    broken = [
        fail,
        lambda X, Y=None: product(X, Y) * np.nan,
        lambda X, Y=None: product(X, Y)[:-1],
        lambda X, Y=None: None,
        lambda X, Y=None: "kernel",
        lambda X, Y=None: 5.0,
        lambda X, Y=None: product(X, Y).astype(str),
        lambda X, Y=None: product(X, Y) * 1e300,
        lambda X, Y=None: product(X, Y) + 1j,
        lambda X, Y=None: np.zeros_like(product(X, Y)),
        lambda X, Y=None: -product(X, Y),
        lambda X, Y=None: np.triu(product(X, Y)),
        lambda: None,
    ]
    hostile = [*broken, *JUNK, "sigmoid", ["rbf", None], ["rbf", "junk"], [["rbf"]], ("rbf", fail)]
    hostile += ["precomputed", "text"]
    ordinary = [*words, *words, product]
    if several:
        ordinary += [["linear", "rbf"], ("rbf", product)]
    return Kind(
        lambda case, rng: pick(rng, ordinary),
        lambda case, rng: pick(rng, hostile),
    )
