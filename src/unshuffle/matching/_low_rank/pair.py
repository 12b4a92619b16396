"""Two collections as low-rank factors: objectives, likelihood scores of pairs, and assignment.

Rows of items are NumPy arrays or tensors on a GPU, wherever the factors are; correlations between
components and matchings are small and stay in NumPy.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._run.device import in_double, namespace, take, to_host
from unshuffle._run.types import Floats, Permutation
from unshuffle.assignment import solve_assignment
from unshuffle.matching._all_pairs.tiles import Tiles
from unshuffle.matching._low_rank.factors import Factors

Single = Any  # (n, r) in single precision, an array or a tensor

# Spectral power of the objective that chooses among matchings: between 1, which ignores fine
# differences, and 0, which weighs noise like signal.
POWER = 0.25
# Candidates of each row in the auction, its smallest step in nats, and how far below its first
# choice a row may be pushed before it waits for the columns that are left.
N_CANDIDATES, STEP, GIVE_UP = 32, 0.2, 60.0
# Step of a rough assignment, and share of the rows that it may leave over.
ROUGH_STEP, SPARE = 1.0, 0.02
# Rows that are left are assigned exactly unless the columns left are many more than they.
MOST_CELLS = 9_000_000
# Rounds of candidates for rows that are left; then they are matched by rank.
MOST_ROUNDS = 6
# Correlations are cut off here, since a weight of infinity would trust a direction blindly.
LARGEST_CORRELATION = 0.9999
TAKEN = -1e30  # bias of a column that is not for sale


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all pairs in nats: queries[i] @ keys[j] + bias[j]."""

    queries: Single
    keys: Single
    bias: Single

    def balanced(self, tiles: Tiles, n_rounds: int) -> "Scores":
        """The same scores with a bias under which soft shares of all columns are alike."""
        bias = self.bias
        surplus = float(np.log(len(self.keys) / len(self.queries)))
        for _ in range(n_rounds):
            rows = -tiles.log_sums(self.queries, self.keys, bias)
            bias = -tiles.log_sums(self.keys, self.queries, rows) - surplus
        return replace(self, bias=bias)

    def of_pairs(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Single:
        """Scores of some pairs."""
        queries, keys = take(self.queries, rows), take(self.keys, columns)
        products = namespace(queries).einsum("ij,ij->i", queries, keys)
        return products + take(self.bias, columns)


@dataclass(frozen=True, eq=False)
class FactorPair:
    """Kernel principal components of two collections, the first no larger than the second."""

    first: Factors
    second: Factors
    frozen: NDArray[np.intp]  # fixed pairs, (n_frozen, 2)
    cost: Any = None  # (n, m) in nats, an array or a sparse matrix
    swapped: bool = False  # whether the user's first collection is `second`

    @property
    def shape(self) -> tuple[int, int]:
        """Sizes of both collections."""
        return len(self.first.scores), len(self.second.scores)

    @property
    def order(self) -> int:
        """Step through (first, second) that gives the user's order of collections."""
        return -1 if self.swapped else 1

    def to_user(self, permutation: Permutation) -> Permutation:
        """The matching as partners of the user's first collection."""
        if not self.swapped:
            return permutation
        inverse = np.full(self.shape[1], -1, dtype=np.intp)
        rows = np.flatnonzero(permutation >= 0)
        inverse[permutation[rows]] = rows
        return inverse

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> "FactorPair":
        """Some items of both, in any order, with the frozen pairs among them."""
        place = [np.full(size, -1, dtype=np.intp) for size in self.shape]
        place[0][rows] = np.arange(rows.size)
        place[1][columns] = np.arange(columns.size)
        frozen = np.column_stack([place[side][self.frozen[:, side]] for side in (0, 1)])
        cost = self.cost
        if cost is not None:
            cost = _columns(take(cost, rows), columns)
        return FactorPair(
            _take(self.first, rows),
            _take(self.second, columns),
            frozen[(frozen >= 0).all(axis=1)],
            cost,
            self.swapped,
        )

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Items of the first collection that are not frozen."""
        free = np.ones(self.shape[0], dtype=bool)
        free[self.frozen[:, 0]] = False
        return np.flatnonzero(free)

    def cost_of(self, rows: NDArray[np.intp]) -> Any:
        """Cost of some rows, in their order; None if there is none."""
        return None if self.cost is None else take(self.cost, rows)

    def moments(self, matching: Permutation, rank: int) -> Floats:
        """Correlations between the components of both sides over the matched pairs."""
        rows = np.flatnonzero(matching >= 0)
        U, V = self.first.scores[:, :rank], self.second.scores[:, :rank]
        if rows.size < matching.size:
            U, matching = take(U, rows), matching[rows]
        return in_double(U.T @ take(V, matching)) / rows.size

    def agreement(self, matching: Permutation, power: float = POWER) -> float:
        """Correlation of both kernels over the matched pairs, at a power of their spectra."""
        rank = min(self.first.eigenvalues.size, self.second.eigenvalues.size)
        return self.agreement_of(self.moments(matching, rank), power)

    def agreement_of(self, M: Floats, power: float = POWER) -> float:
        """Agreement at correlations M of the leading components."""
        first = self.first.eigenvalues[: M.shape[0]] ** power
        second = self.second.eigenvalues[: M.shape[1]] ** power
        trace = float(first @ (M * M) @ second)
        return trace / float(np.linalg.norm(first) * np.linalg.norm(second))

    def objective(self, matching: Permutation) -> float:
        """Sum of K[i, j] L[p(i), p(j)] over matched pairs of different items, `objective_`."""
        return self.judge(matching)[1]

    def judge(self, matching: Permutation) -> tuple[float, float]:
        """Agreement and objective of a matching."""
        rows = np.flatnonzero(matching >= 0)
        sizes = self.first.eigenvalues.size, self.second.eigenvalues.size
        M = self.moments(matching, max(sizes))
        agreement = self.agreement_of(M[: min(sizes), : min(sizes)])
        total = rows.size**2 * float(self.first.eigenvalues @ (M * M) @ self.second.eigenvalues)
        first, second = (
            take(factors.lengths, items)
            for factors, items in ((self.first, rows), (self.second, matching[rows]))
        )
        return agreement, total - float(first @ second)

    def keep_frozen(self, matching: Permutation) -> Permutation:
        """With the frozen pairs; an item that loses its partner takes the one that is freed."""
        matching = matching.copy()
        for row, column in self.frozen:
            holder = np.flatnonzero(matching == column)
            matching[holder] = matching[row]
            matching[row] = column
        return matching

    def assign(self, tiles: Tiles, scores: Scores, *, rough: bool = False) -> Permutation:
        """Matching of all items of the first collection with nearly the highest total score.

        A rough one leaves the few items that are fought for longest to whatever is left.
        """
        found = np.full(self.shape[0], -1, dtype=np.intp)
        taken = np.zeros(self.shape[1], dtype=bool)
        found[self.frozen[:, 0]] = self.frozen[:, 1]
        taken[self.frozen[:, 1]] = True
        rows = self.free
        step, spare = (ROUGH_STEP, int(SPARE * rows.size)) if rough else (STEP, 0)
        for _ in range(MOST_ROUNDS):
            n_left = self.shape[1] - int(taken.sum())
            if rows.size <= tiles.exact and rows.size * n_left <= MOST_CELLS:
                break
            if rows.size <= 2 * spare:
                break
            columns, worth = self.candidates(tiles, scores, rows, taken)
            # A row without any column for sale waits too.
            xp = namespace(worth)
            floors = xp.clip(xp.amax(worth, axis=1) - GIVE_UP, TAKEN / 2, None)
            partners, _ = tiles.auction(
                columns, worth, self.shape[1], floors=floors, step=step, spare=spare
            )
            partners = to_host(partners)
            done = (partners >= 0) & ~taken[partners]
            found[rows[done]] = partners[done]
            taken[partners[done]] = True
            rows = rows[~done]
        if rows.size:
            self._assign_rest(tiles, scores, rows, np.flatnonzero(~taken), found)
        return found

    def candidates(
        self,
        tiles: Tiles,
        scores: Scores,
        rows: NDArray[np.intp],
        taken: NDArray[np.bool_],
    ) -> tuple[Any, Single]:
        """Best columns of some rows, with their scores less the cost."""
        bias = scores.bias
        if taken.any():
            bias = bias + 0.0
            bias[np.flatnonzero(taken)] = TAKEN
        every = rows.size == self.shape[0]
        queries = scores.queries if every else take(scores.queries, rows)
        cost = self.cost if every else self.cost_of(rows)
        return tiles.best_columns(queries, scores.keys, bias, N_CANDIDATES, cost)

    def _assign_rest(
        self,
        tiles: Tiles,
        scores: Scores,
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
        found: Permutation,
    ) -> None:
        """Assign the last rows exactly, or by rank along the leading direction if many."""
        if rows.size <= tiles.exact and rows.size * columns.size <= MOST_CELLS:
            queries, keys = take(scores.queries, rows), take(scores.keys, columns)
            benefit = in_double(queries @ keys.T + take(scores.bias, columns))
            if self.cost is not None:
                cost = _columns(take(self.cost, rows), columns)
                benefit -= cost.toarray() if sparse.issparse(cost) else to_host(cost)
            partners = solve_assignment(benefit, maximize=True).columns
            found[rows] = columns[partners]
            return
        first, second = (in_double(each[:, 0]) for each in (scores.queries, scores.keys))
        ordered = columns[np.argsort(second[columns], kind="stable")]
        places = np.linspace(0, ordered.size - 1, rows.size).round().astype(np.intp)
        found[rows[np.argsort(first[rows], kind="stable")]] = ordered[places]


@dataclass(frozen=True)
class Likelihood:
    """Weights of both sides under a Gaussian model of matched pairs.

    With components of unit variance and correlations P diag(rho) Q', the log-likelihood ratio of
    a pair is sum_k w_k (u P)_k (v Q)_k - 1/2 sum_k rho_k w_k (v Q)_k^2, w = rho / (1 - rho^2), up
    to a number of each item u.
    """

    A: Floats
    B: Floats
    correlations: Floats

    @classmethod
    def of(cls, M: Floats, whiten: tuple[Floats, Floats], largest: float) -> "Likelihood":
        """Weights from correlations M of features that `whiten` makes uncorrelated."""
        P, rho, Q = np.linalg.svd(whiten[0].T @ M @ whiten[1], full_matrices=False)
        rho = np.minimum(rho, largest)
        roots = np.sqrt(rho / (1.0 - rho**2))
        A, B = whiten[0] @ (P * roots), whiten[1] @ (Q.T * roots)
        return cls(A, B, rho)

    @property
    def information(self) -> float:
        """Nats that the partner of an item tells about it."""
        return float(-0.5 * np.log1p(-(self.correlations**2)).sum())

    def scores(self, tiles: Tiles, F: Single, G: Single) -> Scores:
        """Scores of pairs of rows of F and G."""
        A, B, correlations = map(tiles.put, (self.A, self.B, self.correlations))
        keys = G @ B
        return Scores(F @ A, keys, -0.5 * ((keys * keys) @ correlations))


def whitening(F: Single) -> Floats:
    """Symmetric matrix that makes the columns of F uncorrelated with variance 1."""
    values, vectors = np.linalg.eigh(in_double(F.T @ F) / len(F))
    values = np.maximum(values, 1e-4 * values[-1])
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def _take(factors: Factors, items: NDArray[np.intp]) -> Factors:
    return replace(factors, scores=take(factors.scores, items), points=take(factors.points, items))


def _columns(cost: Any, columns: NDArray[np.intp]) -> Any:
    return cost[:, columns] if sparse.issparse(cost) else take(cost.T, columns).T
