"""The quadratic matching problem, and its local search by assignments and swaps."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign.linear import SMALLEST_PATHS, SMALLEST_WARM, assign
from unshuffle._core.arrays import middle
from unshuffle._run.parallel import product, spans
from unshuffle._run.types import Floats, Permutation

Report = Callable[[float, Permutation], None]

NOTHING_FROZEN = np.empty((0, 2), dtype=np.intp)
LARGEST = 1e300
# Constants this many times larger than the variation are subtracted, to keep digits.
FAR = 16.0
# Numbers of one block in the cache.
BLOCK = 2**15
# Nanoseconds to read an entry at a permuted index.
READ = 4.0
# Smaller gains, as a share of the objective, are rounding errors and would cycle.
RELATIVE_GAIN = 1e-11
# Further candidates per item wait for the next sweep, with updated gains.
CANDIDATES_PER_ITEM = 16


@dataclass(frozen=True)
class QuadraticProblem:
    """Maximize sum K[i, j] L[p(i), p(j)] - sum cost[i, p(i)] over injections p that keep `frozen`.

    K (n, n) and L (m, m) are similarities inside two collections, m >= n. They are symmetric, or
    complex and Hermitian as from `as_hermitian`; then the sum has a real part only. With n < m,
    half the sum of |L[p(i), p(j)]|^2 is subtracted, so that p does not simply pick the items of L
    with the largest similarities, unless `subtract_squares` is False.
    """

    K: Floats
    L: Floats
    cost: Floats | None = None
    frozen: NDArray[np.intp] = field(default_factory=lambda: NOTHING_FROZEN)
    subtract_squares: bool = True
    squared_L: Floats | None = field(init=False, default=None)
    _is_near: bool = field(init=False, default=False, repr=False)  # no large constants

    def __post_init__(self) -> None:
        _check_products(self.K, self.L, self.cost)
        if self.subtract_squares and self.K.shape[0] < self.L.shape[0]:
            object.__setattr__(self, "squared_L", (self.L * self.L.conj()).real)

    @classmethod
    def with_linear_diagonals(
        cls,
        K: Floats,
        L: Floats,
        cost: Floats | None = None,
        frozen: NDArray[np.intp] = NOTHING_FROZEN,
        *,
        subtract_squares: bool = True,
    ) -> "QuadraticProblem":
        """Problem whose diagonals are part of the linear cost.

        They are linear in the matching. In the quadratic term they would hold items in place.
        """
        own = np.outer(np.diag(K).real, np.diag(L).real)
        if subtract_squares and K.shape[0] < L.shape[0]:
            own -= 0.5 * np.diag(L).real ** 2
        if own.any():
            cost = -own if cost is None else cost - own
        K, L = K.copy(), L.copy()
        np.fill_diagonal(K, 0.0)
        np.fill_diagonal(L, 0.0)
        return cls(K, L, cost, frozen, subtract_squares)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of items of both collections."""
        return self.K.shape[0], self.L.shape[0]

    @cached_property
    def free_rows(self) -> NDArray[np.intp]:
        """Items of the first collection that may move."""
        return np.delete(np.arange(self.K.shape[0]), self.frozen[:, 0])

    @cached_property
    def free_columns(self) -> NDArray[np.intp]:
        """Items of the second collection that they may be matched to."""
        return np.delete(np.arange(self.L.shape[0]), self.frozen[:, 1])

    def without_cost(self) -> "QuadraticProblem":
        """Same problem without the linear cost."""
        return replace(self, cost=None)

    def without_frozen(self) -> "QuadraticProblem":
        """Problem of the free items; what they share with the frozen ones becomes a cost."""
        if self.frozen.size == 0:
            return self
        rows, columns, known = self.free_rows, self.free_columns, self.frozen
        shared = product(self.K[np.ix_(rows, known[:, 0])], self.L[np.ix_(known[:, 1], columns)])
        cost: Floats = -2.0 * shared.real
        if self.squared_L is not None:
            cost += self.squared_L[np.ix_(known[:, 1], columns)].sum(axis=0)
        if self.cost is not None:
            cost += self.cost[np.ix_(rows, columns)]
        K, L = self.K[np.ix_(rows, rows)], self.L[np.ix_(columns, columns)]
        subtract_squares = self.squared_L is not None
        return QuadraticProblem(K, L, cost, subtract_squares=subtract_squares)

    def add_frozen(self, permutation: Permutation) -> Permutation:
        """Matching of all items from one of the free items."""
        found = np.empty(self.K.shape[0], dtype=np.intp)
        found[self.frozen[:, 0]] = self.frozen[:, 1]
        found[self.free_rows] = self.free_columns[permutation]
        return found

    def about_middle(self) -> tuple["QuadraticProblem", float]:
        """Same problem without large constants, which cost digits, and their part of the value.

        A constant in the cost does not change the best matching. Neither does one in the
        similarities, if the collections are of equal size.
        """
        if self._is_near:
            return self, 0.0
        K, L, cost, added = self.K, self.L, self.cost, 0.0
        if cost is not None and (constant := _far_constant(cost)) != 0.0:
            cost = cost - constant
            added -= constant * K.shape[0]
        if K.shape == L.shape:
            both = np.ones(K.shape, dtype=bool)
            if not (np.diag(K).any() or np.diag(L).any()):
                np.fill_diagonal(both, False)  # zero diagonals stay, without a linear term
            of_K, of_L = _far_constant(K), _far_constant(L)
            K = np.where(both, K - of_K, K) if of_K else K
            L = np.where(both, L - of_L, L) if of_L else L
            added += of_L * float(K[both].sum().real) + of_K * float(L[both].sum().real)
            added += of_K * of_L * int(both.sum())
        if K is self.K and L is self.L and cost is self.cost:
            object.__setattr__(self, "_is_near", True)
            return self, 0.0
        return replace(self, K=K, L=L, cost=cost), added

    def in_single_precision(self) -> "QuadraticProblem":
        """Problem in float32 without the cost, for products that need few digits."""
        half = copy(self)  # a plain copy, without checks
        object.__setattr__(half, "cost", None)
        for name in ("K", "L", "squared_L"):
            value = getattr(self, name)
            if value is not None:
                single = np.complex64 if np.iscomplexobj(value) else np.float32
                object.__setattr__(half, name, value.astype(single))
        return half

    def value(self, permutation: Permutation) -> float:
        """Objective of a matching; larger is better."""
        if self.squared_L is None:
            value = _matched_sum(self.K, self.L, permutation)
        else:
            trace, square = matched_sums(self.K, self.L, permutation)
            value = trace - 0.5 * square
        if self.cost is not None:
            value -= float(self.cost[np.arange(permutation.size), permutation].sum())
        return value

    def gradient(self, permutation: Permutation) -> Floats:
        """Gradient of the objective in the permutation matrix, shape (n, m)."""
        gradient: Floats = 2.0 * product(self.K, self.L[permutation]).real
        if self.squared_L is not None:
            gradient -= self.squared_L[permutation].sum(axis=0)
        if self.cost is not None:
            gradient -= self.cost
        return gradient

    def update_gradient(self, slopes: Floats, before: Permutation, after: Permutation) -> None:
        """Update the gradient in place from one matching to another.

        The cost is proportional to the number of items that moved, which is small near an optimum.
        """
        moved = np.flatnonzero(before != after)
        if moved.size > self.K.shape[0] // 2:
            slopes[...] = self.gradient(after)
            return
        change = self.L[after[moved]] - self.L[before[moved]]
        slopes += product(2.0 * self.K[:, moved], change).real
        if self.squared_L is not None:
            slopes += (self.squared_L[before[moved]] - self.squared_L[after[moved]]).sum(axis=0)

    def gradient_at(self, shares: Floats) -> Floats:
        """`gradient` at a soft matching; row i of `shares` (n, m) sums to 1."""
        gradient: Floats = 2.0 * product(product(self.K, shares), self.L).real
        if self.squared_L is not None:
            gradient -= shares.sum(axis=0) @ self.squared_L
        if self.cost is not None:
            gradient -= self.cost
        return gradient

    def curvature(self, direction: Floats) -> float:
        """Second-order term of the objective along a change of `shares`, shape (n, m)."""
        curvature = float(np.vdot(product(product(self.K, direction), self.L).real, direction))
        if self.squared_L is not None:
            masses = direction.sum(axis=0)
            curvature -= 0.5 * float(masses @ self.squared_L @ masses)
        return curvature

    def keep_frozen(self, permutation: Permutation) -> Permutation:
        """Permutation with the frozen pairs, by exchanging partners."""
        permutation = permutation.copy()
        for row, column in self.frozen:
            holder = np.flatnonzero(permutation == column)
            if holder.size:
                permutation[holder[0]] = permutation[row]
            permutation[row] = column
        return permutation


def as_hermitian(A: Floats, B: Floats, *, squares: bool = False) -> tuple[Floats, Floats]:
    """Two Hermitian matrices whose matched products have the same sum as those of A and B.

    The sum of A[i, j] B[p(i), p(j)] is that of the symmetric parts plus that of the skew ones.
    H = symmetric + 1j * skew holds both, and the real part of H[i, j] conj(J[p(i), p(j)]) adds
    them up. If A or B is symmetric, the skew parts do not count, and the result is real, unless
    `squares` of entries will be needed too.
    """
    symmetric = [(S + S.T) / 2 for S in (A, B)]
    n_skew = sum(not np.array_equal(S, S.T) for S in (A, B))
    if n_skew == 0 or (n_skew == 1 and not squares):
        return symmetric[0], symmetric[1]
    K, L = (part + 0.5j * (S - S.T) for part, S in zip(symmetric, (A, B), strict=True))
    return K, L


def _far_constant(S: Floats) -> float:
    """Median entry of S if it is much larger than the median deviation from it, else 0."""
    n_rows, n_columns = S.shape
    # Without the first entry, which is on the diagonal.
    sample = S.real.ravel()[1 :: max(1, n_rows * n_columns // 1009)]
    if sample.size == 0:
        return 0.0
    constant = float(middle(sample[:, None])[0])
    apart = float(middle(np.abs(sample - constant)[:, None])[0])
    return constant if abs(constant) > FAR * apart > 0.0 else 0.0


def _check_products(K: Floats, L: Floats, cost: Floats | None) -> None:
    """Refuse similarities and costs whose sums of products overflow."""
    sizes = [_largest(S) for S in (K, L)]
    n_pairs = float(K.shape[0] * L.shape[0])
    if not max(sizes[0], sizes[1]) * max(sizes[1], 1.0) * n_pairs < LARGEST:
        raise ValueError(
            f"`K` holds {sizes[0]:.3g} and `L` {sizes[1]:.3g}: sums of their products do not fit "
            "into a float. Divide each by its largest entry."
        )
    if cost is not None:
        largest = _largest(cost)
        if not largest * n_pairs < LARGEST:
            raise ValueError(
                f"`cost` holds {largest:.3g}, and sums of such costs do not fit into a float. "
                "Divide K and the cost by a common number."
            )


def _largest(S: Floats) -> float:
    """Largest absolute entry."""
    if S.size == 0:
        return 0.0
    return float(np.abs(S).max()) if np.iscomplexobj(S) else max(float(S.max()), -float(S.min()))


def matched_sums(K: Floats, L: Floats, permutation: Permutation) -> tuple[float, float]:
    """Sums of K[i, j] conj(L[p(i), p(j)]) and of |L[p(i), p(j)]|^2, without copies of K and L."""
    trace = square = 0.0
    for start, stop in _blocks(permutation.size):
        matched = L[permutation[start:stop]].take(permutation, axis=1)
        trace += _inner(K[start:stop], matched)
        square += _inner(matched, matched)
    return trace, square


def _matched_sum(K: Floats, L: Floats, permutation: Permutation) -> float:
    """The first of `matched_sums`, in less time."""
    total = 0.0
    for start, stop in _blocks(permutation.size):
        total += _inner(K[start:stop], L[permutation[start:stop]].take(permutation, axis=1))
    return total


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of n numbers that fit into the cache."""
    step = max(1, BLOCK // max(n, 1))
    return ((start, min(start + step, n)) for start in range(0, n, step))


def _inner(X: Floats, Y: Floats) -> float:
    """Real part of the inner product, without BLAS, which rounds differently on two threads."""
    if np.iscomplexobj(X):
        return _inner(X.real, Y.real) + _inner(X.imag, Y.imag)
    return float(np.einsum("ij,ij->", X, Y, dtype=np.float64))


def swap_ascent(
    problem: QuadraticProblem,
    permutation: Permutation,
    *,
    max_sweeps: int = 100,
    slopes: Floats | None = None,
) -> tuple[Permutation, int]:
    """Improve a matching by swapping partners until no swap of two improves it.

    Each sweep computes the gains of all swaps from the gradient and applies the positive ones,
    best first. One swap changes the gain of the next, so each is checked again in O(n). The
    gradient is then updated for the items that moved. If the second collection is larger, an item
    may also move to an unused partner.

    `slopes` is the gradient at `permutation`, if known, and is updated to that at the result.
    Returns the matching, never worse than the start, and the number of swaps.
    """
    from unshuffle._quadratic.loops import NO_COST, apply_replacements, apply_swaps

    permutation = np.array(permutation, dtype=np.intp)
    rows = problem.free_rows
    if rows.size < 1:
        return permutation, 0
    near, _ = problem.about_middle()
    if near is not problem:
        permutation, n_moves = swap_ascent(near, permutation, max_sweeps=max_sweeps)
        if slopes is not None:
            slopes[...] = problem.gradient(permutation)
        return permutation, n_moves
    K, L = problem.K, problem.L
    cost = NO_COST if problem.cost is None else problem.cost
    least_gain = RELATIVE_GAIN * max(abs(problem.value(permutation)), np.finfo(float).tiny)
    square = 0.0 if problem.squared_L is None else 1.0
    n_moves = 0
    if slopes is None:
        slopes = problem.gradient(permutation)
    for _ in range(max_sweeps):
        before = permutation.copy()
        first, second = _best_first(_swap_gains(problem, permutation, slopes, rows), least_gain)
        first, second, moved = rows[first], rows[second], 0
        for start, stop in spans(first.size, 3 * READ * rows.size):
            pairs = first[start:stop], second[start:stop]
            moved += apply_swaps(K, L, cost, permutation, *pairs, least_gain)[1]
        if L.shape[0] > permutation.size:
            used = np.zeros(L.shape[0], dtype=np.bool_)
            used[permutation] = True
            free = problem.free_columns
            free = free[~used[free]]
            gains = _replacement_gains(problem, permutation, slopes, rows, free)
            items, unused = _best_first(gains, least_gain)
            items, unused = rows[items], free[unused]
            for start, stop in spans(items.size, 3 * READ * rows.size):
                pairs = items[start:stop], unused[start:stop]
                moved += apply_replacements(
                    K, L, cost, permutation, *pairs, used, least_gain, square
                )[1]
        n_moves += moved
        if moved == 0:
            break
        problem.update_gradient(slopes, before, permutation)
    return permutation, n_moves


def _swap_gains(
    problem: QuadraticProblem, permutation: Permutation, slopes: Floats, rows: NDArray[np.intp]
) -> Floats:
    """Gain of swapping the partners of each two of `rows`, upper triangle.

    Slopes are exact for a small change of the shares; the last term is the curvature along
    (e_i - e_j)(e_q - e_p)', where p and q are the partners.
    """
    partners = permutation[rows]
    own_K, own_L = problem.K.diagonal().real[rows], problem.L.diagonal().real[partners]
    moves = slopes[rows].take(partners, axis=1)
    moves -= moves.diagonal()[:, None].copy()
    gains, numbers = np.empty((rows.size, rows.size)), np.arange(rows.size)
    for start, stop in _blocks(rows.size):
        some = slice(start, stop)
        apart: list[Floats] = []
        for S, items, own in ((problem.K, rows, own_K), (problem.L, partners, own_L)):
            between = S[items[some]].real.take(items, axis=1)
            between *= -2.0
            between += own
            between += own[some, None]
            apart.append(between)
        block = gains[some]
        np.multiply(apart[0], apart[1], out=block)
        block += moves[some]
        block += moves[:, some].T
        block[numbers[some, None] >= numbers] = 0.0
    return gains


def _replacement_gains(
    problem: QuadraticProblem,
    permutation: Permutation,
    slopes: Floats,
    rows: NDArray[np.intp],
    free: NDArray[np.intp],
) -> Floats:
    """Gain of moving each of `rows` to each unused partner in `free`."""
    partners = permutation[rows]
    stay = slopes[rows, partners]
    gains: Floats = slopes[np.ix_(rows, free)] - stay[:, None]
    own_K, own_L = np.diag(problem.K).real[rows], np.diag(problem.L).real
    if own_K.any():
        apart = own_L[partners][:, None] + own_L[free]
        gains += own_K[:, None] * (apart - 2.0 * problem.L[np.ix_(partners, free)].real)
    if problem.squared_L is not None:
        own = np.diag(problem.squared_L)
        apart = own[partners][:, None] + own[free]
        gains += problem.squared_L[np.ix_(partners, free)] - 0.5 * apart
    return gains


def _best_first(gains: Floats, least_gain: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Index pairs whose gain exceeds `least_gain`, largest first."""
    first, second = np.nonzero(gains > least_gain)
    size = gains[first, second]
    most = CANDIDATES_PER_ITEM * gains.shape[0]
    if size.size > most:
        kept = np.argpartition(-size, most)[:most]
        kept.sort()
        first, second, size = first[kept], second[kept], size[kept]
    order = np.argsort(-size, kind="stable")
    return first[order], second[order]


@dataclass(frozen=True)
class Climbed:
    """Result of a local search."""

    permutation: Permutation
    value: float
    converged: bool  # stopped because nothing improved the objective
    n_assignments: int


def assign_free(
    problem: QuadraticProblem, benefit: Floats, prices: NDArray[np.float64] | None = None
) -> tuple[Permutation, NDArray[np.float64] | None]:
    """Matching with the largest total benefit that keeps the frozen pairs, and its prices."""
    if problem.frozen.size == 0:
        found = assign(benefit, prices)
        return found.columns, found.prices
    rows, columns = problem.free_rows, problem.free_columns
    permutation = np.empty(benefit.shape[0], dtype=np.intp)
    permutation[problem.frozen[:, 0]] = problem.frozen[:, 1]
    if rows.size == 0:
        return permutation, None
    found = assign(np.ascontiguousarray(benefit[np.ix_(rows, columns)]), prices)
    permutation[rows] = columns[found.columns]
    return permutation, found.prices


def climb(
    problem: QuadraticProblem,
    permutation: Permutation,
    *,
    max_iter: int = 100,
    tol: float = 0.0,
    swaps: bool = True,
    report: Report | None = None,
) -> Climbed:
    """Local search from a matching by assignments on the gradient, alternated with swaps.

    `permutation` must keep the frozen pairs. Assignments stop at a relative gain below `tol`; only
    strict gains count, since ties would let the search cycle. Swaps continue when assignments no
    longer improve. `report` receives each objective and matching, and may raise to stop.
    """
    permutation = np.array(permutation, dtype=np.intp)
    # Gains are relative to the varying part, not to a constant of all matchings.
    given = problem
    problem, constant = given.about_middle()
    if report is not None:
        report = _shifted(report, constant)
    value = problem.value(permutation)
    slopes = problem.gradient(permutation)
    prices: NDArray[np.float64] | None = None
    if problem.shape[0] == problem.shape[1] and SMALLEST_PATHS <= problem.shape[0] < SMALLEST_WARM:
        # Even prices of zero make `assign` return those of the solution, for the next step.
        prices = np.zeros(problem.free_columns.size)
    n_assignments = 0
    while True:
        rose = False
        while n_assignments < max_iter:
            proposal, prices = assign_free(problem, slopes, prices)
            n_assignments += 1
            proposed = problem.value(proposal)
            if not proposed > value + max(tol, 1e-12) * abs(value):
                break
            problem.update_gradient(slopes, permutation, proposal)
            permutation, value, rose = proposal, proposed, True
            if report is not None:
                report(value, permutation)
        else:
            return Climbed(permutation, given.value(permutation), False, n_assignments)
        if not swaps or (n_assignments > 1 and not rose):
            return Climbed(permutation, given.value(permutation), True, n_assignments)
        permutation, n_moves = swap_ascent(problem, permutation, slopes=slopes)
        if n_moves == 0:
            return Climbed(permutation, given.value(permutation), True, n_assignments)
        value = problem.value(permutation)
        if report is not None:
            report(value, permutation)


def _shifted(report: Report, constant: float) -> Report:
    return lambda value, permutation: report(value + constant, permutation)
