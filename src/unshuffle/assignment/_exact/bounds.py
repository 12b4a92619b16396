"""Lower bounds and proofs of optimality for quadratic assignment.

Branch and bound with the dual ascent of Hahn and Grant: Lower bounds for the quadratic assignment
problem based upon a dual formulation, Operations Research 46 (1998) 912-922.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from unshuffle._run.parallel import per_call, product, spans, wait_for
from unshuffle._run.types import Floats, Indices
from unshuffle.assignment._exact.ascent import FORBIDDEN, ascend, child_costs, look_ahead
from unshuffle.assignment._exact.symmetries import representatives

Check = Callable[[float, int], None]
Line = list[tuple[float, int, int]]

# More columns are bounded by Gilmore and Lawler only: pair costs take 4 m^4 bytes, 64 MiB here.
LARGEST_ASCENT = 64
# Up to this many columns there is a tree; the costs of its nodes, one per level, take m^5 bytes.
LARGEST_TREE = 36
# Matchings of at most this many rows are enumerated.
FEW_ROWS = 3
MOST_ENUMERATED = 10_000_000
AT_ONCE = 1_000_000
# Rounds of ascent that may still be needed; beyond, it is faster to branch.
PATIENCE_AT_ROOT = 300.0
PATIENCE = 5.0
# Temperatures of soft rounds, as shares of the gap over m^2: they lower the bound by that share.
TEMPERATURES = (0.3, 0.1)
SOFT_ROUNDS = 20
# Share of the gap that divides the number of nodes below a child by e; others do as well.
FOLD = 0.2
# Rounding errors, as a share of the largest possible value.
ROUNDING = 1e-11
# Work of a soft round in hard ones.
SOFT_WORK = 3.0
# Nanoseconds of one entry: of an assignment, up to, and of a scalar product.
ENTRY = 45.0
PRODUCT = 1.5


@dataclass(frozen=True)
class BoundProblem:
    """Minimize sum A[i, j] B[p(i), p(j)] + w B[p(i), p(j)]^2 + sum C[i, p(i)] over injections p.

    A (n, n) and B (m, m), m >= n, need not be symmetric; the first sum is over i != j, so that
    their diagonals are ignored. C is (n, m) and w >= 0. All are float64.
    """

    A: Floats
    B: Floats
    C: Floats
    w: float = 0.0

    def __post_init__(self) -> None:
        for name in ("A", "B", "C"):  # loops are compiled for one type
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats, float]:
        """Arguments of compiled loops."""
        return self.A, self.B, self.C, float(self.w)

    def value(self, permutation: Indices) -> float:
        """Objective of a matching; smaller is better."""
        matched = self.B[np.ix_(permutation, permutation)]
        np.fill_diagonal(matched, 0.0)
        alone = self.C[np.arange(permutation.size), permutation].sum()
        return float((matched * (self.A + self.w * matched)).sum() + alone)

    @cached_property
    def rounding(self) -> float:
        """Upper bound of rounding errors in bounds."""
        n = self.A.shape[0]
        most = np.sort(np.abs(_off_diagonal(self.B)), axis=None)[::-1][: n * (n - 1)]
        products = np.sort(np.abs(_off_diagonal(self.A)), axis=None)[::-1] @ most
        linear = np.abs(self.C).max(axis=1).sum()
        return ROUNDING * float(products + self.w * most @ most + linear)

    def pair_costs(self) -> Floats:
        """Cost of each two rows i < j on each two columns, with m - n added rows that cost 0."""
        n, m = self.C.shape
        i, j = np.triu_indices(m, 1)
        costs = np.zeros((i.size, m, m))
        B, square = self.B, self.w * self.B * self.B
        for k in np.flatnonzero(j < n):
            costs[k] = self.A[i[k], j[k]] * B + self.A[j[k], i[k]] * B.T + square + square.T
        return costs


@dataclass(frozen=True)
class Proof:
    """A lower bound and the best matching known.

    Attributes
    ----------
    bound : float
        No matching has a smaller value, up to rounding errors of 1e-11 of the largest one.
    permutation : ndarray of shape (n,)
        Column of each row in the best matching found: the given one or a better one.
    value : float
        Its value.
    n_nodes : int
        Nodes of the search tree that were bounded or enumerated.
    """

    bound: float
    permutation: Indices
    value: float
    n_nodes: int

    @property
    def optimal(self) -> bool:
        """Whether no matching is better."""
        return self.bound >= self.value


def gilmore_lawler(problem: BoundProblem) -> float:
    """Lower bound by an assignment of rows with the least costs they can have.

    It takes O(n^2 m) time for w = 0 or n = m, and else O(n^2 m (m - n)), plus that of a linear
    assignment. Of asymmetric problems the better bound of rows and columns is returned.
    """
    A, B = problem.A, problem.B
    bound = _bound_by_rows(A, B, problem)
    if np.array_equal(A, A.T) and np.array_equal(B, B.T):
        return bound
    return max(bound, _bound_by_rows(A.T, B.T, problem))


def prove(
    problem: BoundProblem,
    permutation: Indices,
    *,
    step: float = 0.0,
    max_work: float = 1e9,
    deadline: float | None = None,
    check: Check | None = None,
) -> Proof:
    """Prove that a matching is optimal, or find a better one, as far as the work allows.

    Parameters
    ----------
    problem : BoundProblem
        Problem of n rows and m columns. Up to 64 columns it is bounded by dual ascent, in 4 m^4
        bytes, and up to 36 by branch and bound, in m^5 bytes; larger ones by `gilmore_lawler`.
    permutation : ndarray of shape (n,)
        Column of each row in a good matching. The better it is, the less work.
    step : float
        All values are multiples of it; 0 if they are continuous. Larger steps need less work.
    max_work : float
        Number of costs that are read, of about 10 ns each. Larger values prove more.
    deadline : float or None
        Time of `time.monotonic` to stop at; None makes results deterministic.
    check : callable or None
        Called at each node with the bound so far and the number of nodes; may raise to stop.
        What it raises is passed on.

    Returns
    -------
    Proof
        With a bound that is valid also if the search was stopped.
    """
    tree = _Tree(problem, np.array(permutation, dtype=np.intp), step, max_work, deadline, check)
    try:
        tree.grow()
    except _Stopped:
        return Proof(tree.bound, tree.permutation, tree.value, tree.n_nodes)
    return Proof(tree.value, tree.permutation, tree.value, tree.n_nodes)


class _Stopped(Exception):
    """The work or the time is spent."""


@dataclass
class _Node:
    """Subproblem of free rows and columns; rows from n on are those added by `pair_costs`."""

    rows: Indices
    columns: Indices
    placed: Indices  # column of each row of the problem; -1 if free
    pairs: Floats
    leader: Floats
    bound: float = 0.0
    symmetric: tuple[bool, bool] = (True, True)  # whether rows, and columns, may be


@dataclass
class _Tree:
    """Depth-first search. `waiting` has the least bound of the open nodes of each level."""

    problem: BoundProblem
    permutation: Indices
    step: float
    max_work: float
    deadline: float | None
    check: Check | None
    n_nodes: int = 0
    work: float = 0.0
    waiting: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.value = self.problem.value(self.permutation)
        self.rounding = max(self.problem.rounding, 1e-6 * self.step)
        self.least = gilmore_lawler(self.problem)

    @property
    def threshold(self) -> float:
        """Nodes with at least this bound have no better matching."""
        return self.value - (self.step - self.rounding if self.step > 0.0 else self.rounding)

    @property
    def bound(self) -> float:
        """Bound that is valid at any time."""
        bound = max(self.least, min(self.waiting, default=-np.inf)) - self.rounding
        if self.step > 0.0:
            bound = math.ceil(bound / self.step) * self.step
        return min(bound, self.value)

    def grow(self) -> None:
        """Search the whole tree."""
        n, m = self.problem.C.shape
        leader = np.zeros((m, m))
        leader[:n] = self.problem.C
        free, placed = np.arange(m), np.full(n, -1, dtype=np.intp)
        root = _Node(free, free, placed, np.empty((0, m, m)), leader)
        if self.least >= self.threshold:
            return
        if n > FEW_ROWS or m**n > MOST_ENUMERATED:
            if m > LARGEST_ASCENT:
                raise _Stopped
            root.pairs = self.problem.pair_costs()
        self.explore(root)

    def explore(self, node: _Node) -> None:
        """Bound a node and search its children."""
        self.waiting.append(node.bound if self.waiting else -np.inf)  # no bound yet at the root
        self.n_nodes += 1
        if self.check is not None:
            self.check(self.bound, self.n_nodes)
        if self.real_rows(node).size <= FEW_ROWS:
            self.enumerate(node)
        else:
            if len(self.waiting) > 1:
                self.ascend(node)
            else:
                self.ascend_at_root(node)
            if node.bound < self.threshold:
                self.branch(node)
        self.waiting.pop()

    def real_rows(self, node: _Node) -> Indices:
        """Free rows of the problem."""
        return node.rows[node.rows < self.problem.A.shape[0]]

    def enumerate(self, node: _Node) -> None:
        """Find the best matching of a small node."""
        self.stop_if_spent()
        rows = self.real_rows(node)
        self.work += node.columns.size**rows.size
        self.offer(complete(self.problem, node.placed, rows, node.columns))

    def ascend_at_root(self, node: _Node) -> None:
        """Raise the first bound as far as possible: all nodes inherit it."""
        size = node.columns.size
        self.ascend(node, PATIENCE_AT_ROOT, start=0)
        gap = self.threshold - node.bound
        for share in TEMPERATURES:
            if node.bound < self.threshold:
                self.ascend(node, temperature=share * gap / size**2, n_rounds=SOFT_ROUNDS)
        if node.bound < self.threshold:
            self.ascend(node, PATIENCE_AT_ROOT)

    def ascend(
        self,
        node: _Node,
        patience: float = PATIENCE,
        *,
        start: int = 1,
        n_rounds: float = math.inf,
        temperature: float = 0.0,
    ) -> None:
        """Raise the bound of a node until it is clear whether it reaches the threshold."""
        size = node.columns.size
        work = size**2 * (SOFT_WORK if temperature > 0.0 else 1.0)  # of one step
        step, end, is_over = start * size**2, (start + n_rounds) * size**2, False
        matching = np.zeros(size, dtype=np.intp)
        while step < end and not is_over:
            self.stop_if_spent()
            n_steps = int(min(per_call(ENTRY * size**2), end - step))
            limits = self.threshold, float(patience), temperature, step, n_steps
            before = step
            node.bound, step, is_over = ascend(
                node.pairs, node.leader, node.bound, *limits, matching
            )
            self.work += (step - before) * work
            if step >= size**2:
                self.waiting[-1] = max(self.waiting[-1], node.bound)
        if temperature == 0.0:
            rows, permutation = self.real_rows(node), node.placed.copy()
            permutation[rows] = node.columns[matching[: rows.size]]
            self.offer(permutation)

    def branch(self, node: _Node) -> None:
        """Search the children that place one row, or fill one column, in each possible way."""
        if node.columns.size > LARGEST_TREE:
            raise _Stopped
        lines, symmetric = self.lines(node)
        if len(self.waiting) == 1:  # a bad choice would cost most at the root
            lines.sort(key=lambda line: self.probe(node, line, symmetric))
        for k, (bound, i, a) in enumerate(lines[0]):
            self.waiting[-1] = lines[0][k + 1][0] if k + 1 < len(lines[0]) else np.inf
            if bound < self.threshold:
                child = self.child(node, i, a, symmetric)
                if child.bound < self.threshold:  # forbidden choices may have raised it
                    self.explore(child)

    def lines(self, node: _Node) -> tuple[list[Line], tuple[bool, bool]]:
        """Children of the best row and of the best column, as (bound, row, column).

        The best of the two comes first. Also returns what may be symmetric in children.
        """
        size, gap = node.columns.size, self.threshold - node.bound
        self.work += size**4
        added = look_ahead(node.pairs, node.leader, gap)
        node.leader[np.isinf(added)] = FORBIDDEN * gap
        rows, columns = self.representatives(node)
        n_real = self.real_rows(node).size
        symmetric = (not rows[:n_real].all(), not columns.all())
        n_nodes = np.exp(-added / (FOLD * gap))  # below each child, up to a factor
        by_row, by_column = n_nodes[:n_real] @ columns, rows @ n_nodes
        i, a = int(by_row.argmin()), int(by_column.argmin())
        bounds = node.bound + added
        row = sorted((float(bounds[i, b]), i, int(b)) for b in np.flatnonzero(columns))
        column = sorted((float(bounds[j, a]), int(j), a) for j in np.flatnonzero(rows))
        return [row, column] if by_row[i] <= by_column[a] else [column, row], symmetric

    def probe(self, node: _Node, line: Line, symmetric: tuple[bool, bool]) -> float:
        """Estimated number of nodes below some children, up to a factor."""
        n_nodes = 0.0
        for bound, i, a in line:
            if bound < self.threshold:
                child = self.child(node, i, a, symmetric)
                if child.bound < self.threshold:
                    self.waiting.append(child.bound)
                    self.ascend(child)
                    self.waiting.pop()
                if (gap := self.threshold - child.bound) > 0.0:
                    n_nodes += math.exp(gap / (self.threshold - node.bound) / FOLD)
        return n_nodes

    def child(self, node: _Node, i: int, a: int, symmetric: tuple[bool, bool]) -> _Node:
        """Node in which the i-th free row is on the a-th free column."""
        pairs, leader, added = child_costs(node.pairs, node.leader, i, a)
        placed = node.placed.copy()
        if node.rows[i] < placed.size:
            placed[node.rows[i]] = node.columns[a]
        rows, columns = np.delete(node.rows, i), np.delete(node.columns, a)
        return _Node(rows, columns, placed, pairs, leader, node.bound + added, symmetric)

    def representatives(self, node: _Node) -> tuple[Floats, Floats]:
        """1 for the rows and the columns to place, 0 for those that mirror one of them."""
        A, B, C, _ = self.problem.arrays
        real = self.real_rows(node)
        rows, columns = np.zeros(node.rows.size), np.ones(node.columns.size)
        rows[: real.size + 1] = 1.0  # added rows are alike
        C = C[np.ix_(real, node.columns)]
        done = np.flatnonzero(node.placed >= 0)
        if node.symmetric[0]:
            rows[: real.size] = representatives(A, C, real, done)
        if node.symmetric[1]:
            columns[:] = representatives(B, C.T, node.columns, node.placed[done])
        return rows, columns

    def offer(self, permutation: Indices) -> None:
        """Keep a matching if it is better."""
        value = self.problem.value(permutation)
        if value < self.value:
            self.value, self.permutation = value, permutation

    def stop_if_spent(self) -> None:
        """Stop the search at the limit of work or time."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late or self.work >= self.max_work:
            raise _Stopped


def complete(problem: BoundProblem, placed: Indices, rows: Indices, columns: Indices) -> Indices:
    """Matching that places a few free rows on free columns in the best way, by trying all."""
    A, B, C, w = problem.arrays
    done = np.flatnonzero(placed >= 0)
    ahead, back = B[np.ix_(columns, placed[done])], B[np.ix_(placed[done], columns)]
    alone = C[np.ix_(rows, columns)] + w * ((ahead**2).sum(axis=1) + (back**2).sum(axis=0))
    alone += A[np.ix_(rows, done)] @ ahead.T + A[np.ix_(done, rows)].T @ back
    B = B[np.ix_(columns, columns)]
    square = w * (B**2 + B.T**2)
    least, best, m = np.inf, columns[:0], columns.size
    step = max(1, AT_ONCE // m ** (rows.size - 1))
    for start in range(0, m, step):
        costs = alone[0, start : start + step]
        for k in range(1, rows.size):
            costs = costs[..., None] + alone[k]
            for before in range(k):
                i, j = rows[before], rows[k]
                both = A[i, j] * B + A[j, i] * B.T + square
                np.fill_diagonal(both, np.inf)
                if before == 0:
                    both = both[start : start + step]
                costs += both if before == k - 1 else both[:, None]
        place = int(costs.argmin())
        if costs.flat[place] < least:
            least = float(costs.flat[place])
            best = np.array(np.unravel_index(place, costs.shape))
            best[0] += start
    permutation = placed.copy()
    permutation[rows] = columns[best]
    return permutation


def _bound_by_rows(A: Floats, B: Floats, problem: BoundProblem) -> float:
    """Gilmore-Lawler bound that counts the cost of each pair at its first row."""
    (n, m), w = problem.C.shape, problem.w
    X, Y = _off_diagonal(A), np.sort(_off_diagonal(B), axis=1)
    if w == 0.0:
        X = np.hstack([X, np.zeros((n, m - n))])  # free columns cost 0
    X = -np.sort(-X, axis=1)
    costs = problem.C + _least_products(X, Y, w)
    rows, columns = wait_for(linear_sum_assignment, costs)
    return float(costs[rows, columns].sum())


def _least_products(X: Floats, Y: Floats, w: float) -> Floats:
    """Least sum of x y + w y^2 over injections of each row of X into each row of Y.

    Rows of X descend and those of Y ascend. The sum is then least for an injection that keeps the
    order, since exchanging the partners of x > x' changes it by (x - x') (y' - y). Which y stay
    free, if any, is found by dynamic programming.
    """
    if X.shape[1] == Y.shape[1]:
        return product(X, Y.T) + w * (Y * Y).sum(axis=1)
    from unshuffle.assignment._exact.bound_loops import least_products

    work = PRODUCT * Y.shape[0] * max(X.shape[1], 1) * (Y.shape[1] - X.shape[1] + 1)
    parts = [least_products(X, Y, w, start, stop) for start, stop in spans(X.shape[0], work)]
    return np.concatenate(parts)


def _off_diagonal(M: Floats) -> Floats:
    """Rows of a square matrix without its diagonal."""
    n = M.shape[0]
    return M[~np.eye(n, dtype=bool)].reshape(n, n - 1)
