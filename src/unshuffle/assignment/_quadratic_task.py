"""Input of `quadratic_assignment`: matrices, SciPy's options, and the problem they define."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult

from unshuffle._core.arrays import as_numbers, check_finite, check_magnitude
from unshuffle._core.grams import check_frozen, check_shape
from unshuffle._core.parameters import (
    check_count,
    check_flag,
    check_memory,
    check_option,
    check_positive,
    check_seed,
)
from unshuffle._quadratic.problem import QuadraticProblem, as_hermitian
from unshuffle._run.types import Permutation
from unshuffle.assignment._exact.bounds import BoundProblem
from unshuffle.assignment._quadratic_units import Units, check_sums
from unshuffle.assignment._search.climb import Start, relaxed
from unshuffle.assignment._solve import as_matrix

# SciPy's names of arguments, of starts, and of settings that have no effect here.
RENAMED = {"maximize": "maximize", "partial_match": "frozen", "rng": "random_state"}
STARTS = ("P0", "partial_guess")
IGNORED = ("maxiter", "tol", "shuffle_input")
# Arrays of the size of the larger matrix at the peak of the search.
N_ARRAYS = 14
EXACT = 2.0**52  # floats represent smaller whole numbers and their halves


@dataclass(frozen=True, eq=False)
class Task:
    """The user's matrices in other units, and the problem of the smaller set of items."""

    units: Units
    maximize: bool
    problem: QuadraticProblem
    swapped: bool  # whether the items of B are its rows

    @classmethod
    def of(cls, A: Any, B: Any, cost: Any, maximize: Any, frozen: Any) -> "Task":
        """Validated input and the problem it defines."""
        A, B = check_square(A, "A"), check_square(B, "B")
        maximize = check_flag(maximize, "maximize")
        sizes = A.shape[0], B.shape[0]
        if cost is not None:
            cost = check_numbers(cost, "cost")
            check_shape(cost, sizes, "cost", "items of A by items of B")
        pairs = check_frozen(frozen, *sizes, first="A", second="B")
        check_memory(
            8 * N_ARRAYS * max(sizes) ** 2,
            what=f"Quadratic assignment of {sizes[0]:,} and {sizes[1]:,} items",
            instead='KernelizedSorting matches similar items with less, method="low_rank".',
        )
        sign = 1.0 if maximize else -1.0
        squared = None
        if maximize and sizes[0] != sizes[1]:
            squared = "A" if sizes[0] > sizes[1] else "B"
        check_sums(A, B, cost, squared)
        units = Units.of(A, B, cost, squared)
        first, second = (each.astype(np.float64) for each in (units.A, units.B))
        K, L = as_hermitian(sign * first, second, squares=squared is not None)
        linear = None if units.cost is None else -sign * units.cost.astype(np.float64)
        if swapped := sizes[0] > sizes[1]:
            # Signs belong to the first matrix. The squares of the larger one are subtracted.
            K, L, pairs = sign * L, sign * K, pairs[:, ::-1]
            linear = None if linear is None else np.ascontiguousarray(linear.T)
        problem = QuadraticProblem.with_linear_diagonals(
            K, L, linear, frozen=pairs, subtract_squares=maximize
        )
        return cls(units, maximize, problem, swapped)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of items of A and of B."""
        return self.units.A.shape[0], self.units.B.shape[0]

    @cached_property
    def free(self) -> QuadraticProblem:
        """Problem of the items that are not frozen."""
        return self.problem.without_frozen()

    @cached_property
    def bounded(self) -> BoundProblem:
        """The same in the form that is bounded from below."""
        K, L = self.free.K, self.free.L
        cost = np.zeros(self.free.shape) if self.free.cost is None else self.free.cost
        square = 0.0 if self.free.squared_L is None else 0.5
        return BoundProblem(-(K.real + K.imag), L.real + L.imag, cost, square)

    @cached_property
    def step(self) -> float:
        """Number of which all sums are multiples; 0 if they are not whole or too large."""
        A, B, cost = 2.0 * self.bounded.A, 2.0 * self.bounded.B, self.bounded.C
        if A.size == 0:
            return 0.0
        largest = float(np.abs(A).max() * np.abs(B).max()) * A.size + float(np.abs(cost).max())
        whole = all(np.array_equal(each, np.rint(each)) for each in (A, B, cost))
        if self.bounded.w or not whole or largest > EXACT:
            return 0.0
        # Each product occurs twice in a symmetric problem.
        quarters = 2 if np.isrealobj(self.free.K) else 1
        steps = quarters * _common_divisor(A) * _common_divisor(B), 4 * _common_divisor(cost)
        return float(np.gcd(*steps)) / 4.0

    def columns(self, permutation: Permutation) -> Permutation:
        """Partner of each item of A, or -1, from the matching of the free items."""
        matched = self.problem.add_frozen(permutation)
        if not self.swapped:
            return matched
        columns = np.full(self.sizes[0], -1, dtype=np.intp)
        columns[matched] = np.arange(matched.size)
        return columns

    def value(self, columns: Permutation) -> float | int:
        """Objective of a matching in the user's unit; exact for whole numbers."""
        return self.units.back(self._value(columns))

    def _value(self, columns: Permutation) -> float | int:
        units, rows = self.units, np.flatnonzero(columns >= 0)
        columns = columns[rows]
        A, B = units.A[np.ix_(rows, rows)], units.B[np.ix_(columns, columns)]
        terms = [(A, B, 2)]
        if units.cost is not None:
            chosen = units.cost[rows, columns]
            terms.append((chosen, np.ones_like(chosen), 2))
        if self.maximize and self.sizes[0] != self.sizes[1]:
            larger = A if self.swapped else B
            terms.append((larger, larger, -1))
        total = sum(weight * _exact_sum(first, second) for first, second, weight in terms)
        whole = isinstance(total, int) and total % 2 == 0
        return total // 2 if whole else total / 2

    def result(self, permutation: Permutation, n_steps: int, slack: float) -> OptimizeResult:
        """What the user gets; the optimum is at most `slack` better."""
        columns = self.columns(permutation)
        value, back = self._value(columns), self.units.back
        if self.step > 0.0 and np.isfinite(slack):
            slack = round(slack / self.step) * self.step
            if isinstance(value, int) and slack == int(slack):
                slack = int(slack)
        gap = 0.0 if slack == 0 else float(slack / abs(value)) if value else np.inf
        bound = back(value + slack if self.maximize else value - slack)
        name = "upper_bound" if self.maximize else "lower_bound"
        found = {"fun": back(value), "nit": n_steps, name: bound, "gap": gap}
        return OptimizeResult(col_ind=columns, **found)


def _common_divisor(numbers: NDArray[np.float64]) -> int:
    """Greatest common divisor of whole numbers; 0 if all are zero."""
    return int(np.gcd.reduce(np.abs(numbers).astype(np.int64), axis=None))


def _exact_sum(first: NDArray[Any], second: NDArray[Any]) -> float | int:
    """Sum of products; a Python int if both hold integers."""
    if first.dtype.kind not in "iu" or second.dtype.kind not in "iu":
        return float(np.vdot(first.astype(np.float64), second.astype(np.float64)))
    largest = [max(abs(int(end(each))) for end in (np.min, np.max)) for each in (first, second)]
    wide = np.int64 if largest[0] * largest[1] * first.size < 2**62 else object
    return int((first.astype(wide) * second.astype(wide)).sum())


def check_numbers(values: Any, name: str) -> NDArray[Any]:
    """Finite matrix, of integers as they are or of float64."""
    numbers: NDArray[Any] = as_matrix(values, name)
    plain = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(plain, np.ndarray | list | tuple):
        plain = np.asarray(plain)
        if plain.dtype.kind in "biu":
            numbers = plain.astype(np.int64) if plain.dtype.kind == "b" else plain
    check_finite(numbers, name)
    check_magnitude(numbers, name)
    return numbers


def check_square(values: Any, name: str) -> NDArray[Any]:
    """Square matrix from `check_numbers`, at least 1 x 1."""
    numbers = check_numbers(values, name)
    if 0 in numbers.shape:
        raise ValueError(
            f"`{name}` is empty: it has shape {numbers.shape}. Pass at least one item."
        )
    if numbers.shape[0] != numbers.shape[1]:
        raise ValueError(
            f"`{name}` must be square, got shape {numbers.shape}. Pass one row and one column for "
            "each item."
        )
    return numbers


def merge_options(given: dict[str, Any], options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Arguments, together with those that `options` gives under SciPy's names."""
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        raise ValueError(f"`options` must be a dict or None, got {options!r:.200}.")
    known = (*RENAMED, *STARTS, *IGNORED)
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"`options` holds {unknown[0]!r}, which is not an option. Known options are "
            f"{', '.join(known)}; all else is an argument of its own."
        )
    settings = {**given, **{name: options[name] for name in STARTS if name in options}}
    for name, ours in RENAMED.items():
        if name in options:
            if given[ours] is not None and given[ours] is not False:
                raise ValueError(
                    f"`{ours}` is also given as options[{name!r}]. Pass one of the two."
                )
            settings[ours] = options[name]
    if "maxiter" in options:
        check_count(options["maxiter"], "maxiter")
    if "tol" in options:
        check_positive(options["tol"], "tol")
    if "shuffle_input" in options:
        check_flag(options["shuffle_input"], "shuffle_input")
    return settings


def as_random_state(random_state: Any) -> np.random.RandomState:
    """Random numbers from our kinds of seeds, or from those of `numpy.random.default_rng`."""
    kinds = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
    if isinstance(random_state, kinds):
        generator = np.random.default_rng(random_state)
        return np.random.RandomState(int(generator.integers(2**32)))
    return check_seed(random_state)


def list_given_starts(
    task: Task, settings: Mapping[str, Any], rng: np.random.RandomState
) -> list[Start]:
    """Starts of the free items from SciPy's options `partial_guess` and `P0`."""
    starts: list[Start] = []
    guess, position = settings.get("partial_guess"), settings.get("P0")
    if guess is not None:
        guessed = start_from_guess(task, guess, rng)
        starts.append(lambda: guessed)
    if position is not None and not (isinstance(position, str) and position == "barycenter"):
        shares = check_position(position, task, rng)
        starts.append(lambda: relaxed(task.free, shares))
    return starts


def start_from_guess(task: Task, guess: Any, rng: np.random.RandomState) -> Permutation:
    """Matching of the free items with the guessed pairs, as far as these are free."""
    pairs = check_frozen(guess, *task.sizes, first="A", second="B", name="partial_guess")
    rows, columns = (pairs[:, ::-1] if task.swapped else pairs).T
    free_rows, free_columns = task.problem.free_rows, task.problem.free_columns
    kept = np.isin(rows, free_rows) & np.isin(columns, free_columns)
    rows = np.searchsorted(free_rows, rows[kept])
    columns = np.searchsorted(free_columns, columns[kept])
    found = np.full(free_rows.size, -1, dtype=np.intp)
    found[rows] = columns
    others = np.setdiff1d(np.arange(free_columns.size), columns)
    found[found < 0] = rng.permutation(others)[: free_rows.size - rows.size]
    return found


def check_position(position: Any, task: Task, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Soft matching of the free items that SciPy's `P0` describes."""
    n_rows, n_columns = task.free.shape
    if isinstance(position, str):
        check_option(position, "P0", ("barycenter", "randomized"))
        shares = rng.uniform(size=(n_rows, n_columns))
        for _ in range(100):
            shares /= shares.sum(axis=0) * (n_columns / n_rows)
            shares /= shares.sum(axis=1, keepdims=True)
        return 0.5 * (shares + 1.0 / n_columns)
    shares = as_numbers(position, "P0")
    n_A, n_B = (size - len(task.problem.frozen) for size in task.sizes)
    check_shape(shares, (n_A, n_B), "P0", "free items of A by free items of B")
    check_finite(shares, "P0")
    shares = shares.T if task.swapped else shares
    sums = shares.sum(axis=0), shares.sum(axis=1)
    columns_fit = np.allclose(sums[0], 1.0) if n_rows == n_columns else (sums[0] < 1 + 1e-6).all()
    if shares.min() < 0 or not np.allclose(sums[1], 1.0) or not columns_fit:
        raise ValueError(
            "`P0` must be doubly stochastic: nonnegative, with rows and columns that sum to 1. "
            'Divide rows and columns by their sums in turn, or pass "barycenter".'
        )
    return np.ascontiguousarray(shares)
