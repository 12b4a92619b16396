"""Search for the best matching of a quadratic problem: tabu search from starts and mixtures."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from unshuffle._quadratic.mean_field import anneal_shares, frank_wolfe, soften
from unshuffle._quadratic.problem import RELATIVE_GAIN, QuadraticProblem, assign_free, climb
from unshuffle._run.parallel import Workers, eigh, one_blas_thread
from unshuffle._run.types import Floats, Permutation
from unshuffle.assignment._search.mixtures import mix, random_state

Start = Callable[[], Permutation]
Task = Callable[[], "Matching | None"]  # runs a search, unless the time is over
Report = Callable[[Permutation, int], None]  # the best matching, number of searches done

# Matchings from which others are mixed.
POOL = 16
# Searches whose results are compared at once, whatever the number of threads.
BATCH = 4
# Steps of one search for each item, up to a limit of steps times gains (a tenth of a second).
STEPS_PER_ITEM = 15
WORK = 3e7
# A place is taboo for this many steps, relative to the number of items.
SHORTEST, LONGEST, EXTRA = 0.9, 1.1, 4
# Share of searches that start from a matching with up to this share of items moved, not a mixture.
PERTURBED, LARGEST_MOVE = 0.3, 0.1
# After so many searches in vain, all matchings but the best are moved by this share of items.
PATIENCE, SHAKEN = 15, 0.5
# Matchings of equal value that differ in a smaller share of items are one.
SAME = 0.01
FRANK_WOLFE_STEPS = 30
# Eigenvalues at this distance have half the weight; softness of the matching by eigenvectors.
CLOSE, SOFT = 0.5, 0.5


class Expired(Exception):
    """Raised inside an ascent when the time is over."""


class DeepSearch:
    """Tabu searches on one problem without frozen pairs, and the best matchings they found.

    The first searches begin from starts, the given ones first, then from profiles, eigenvectors
    and random orders; later ones from mixtures of the best matchings. Results depend on the seed
    and on the number of searches, not on the number of threads.
    """

    def __init__(
        self,
        problem: QuadraticProblem,
        starts: list[Start],
        rng: np.random.RandomState,
        *,
        deadline: float | None = None,
        report: Report | None = None,
    ) -> None:
        self.problem = problem
        self.rng = rng
        self.deadline = deadline
        self.report = report
        self.pool: list[Matching] = []
        self._best: Matching | None = None
        self.n_searches = 0
        self.n_steps = 0
        self._n_at_best = 0
        self._in_vain = 0
        self._starts = iter(starts + list_starts(problem))
        self._shaken: list[Permutation] = []
        self._tabu = TabuSearch(problem)

    @property
    def best(self) -> "Matching":
        """The best matching so far."""
        if self._best is None:
            raise RuntimeError("No search was run.")
        return self._best

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and monotonic() > self.deadline

    def run(self, n_searches: int, n_jobs: int | None, *, patience: int | None = None) -> None:
        """Search until there were `n_searches` in all, or until the deadline.

        With `patience`, also until so many in a row find nothing better.
        """
        with Workers(n_jobs) as workers, one_blas_thread():
            while self.n_searches < n_searches and not (self._best and self.expired):
                if patience is not None and self.n_searches - self._n_at_best >= patience:
                    break
                n_tasks = min(BATCH, n_searches - self.n_searches)
                tasks = [self._next_task(number) for number in range(n_tasks)]
                found: list[Matching | None] = [None] * n_tasks
                workers.each(_store, [(found, *numbered) for numbered in enumerate(tasks)])
                for each in found:
                    if each is not None:
                        self._add(each)

    def accept(self, permutation: Permutation) -> None:
        """Take a matching into account that was found in another way."""
        value = self.problem.value(permutation)
        if value > self.best.value + _least_gain(value):
            self._best = Matching(self._with_unused(permutation), value, 0, permutation.size)

    def _next_task(self, number: int) -> Task:
        """Search to run next, from a start or from the pool."""
        seed = int(self.rng.randint(2**31))
        if len(self.pool) + number < POOL:
            if self._shaken:
                order = self._shaken.pop()
                return lambda: self._search_from(order, seed)
            start = next(self._starts, None)
            drawn = self._random_order()
            must = self._best is None and number == 0
            return lambda: self._search_from_start(start, drawn, seed, must)
        if self.rng.rand() < PERTURBED:
            member = self.pool[self.rng.randint(len(self.pool))]
            if self.rng.rand() < 0.5:
                member = max(self.pool, key=lambda each: each.value)
            order = self._move(member.order, self.rng.rand() * LARGEST_MOVE)
            return lambda: self._search_from(order, seed)
        first, second = self.rng.choice(len(self.pool), 2, replace=False)
        parents = self.pool[first].order, self.pool[second].order
        return lambda: self._search_from(mix(*parents, seed), seed)

    def _search_from_start(
        self, start: Start | None, drawn: Permutation, seed: int, must: bool
    ) -> "Matching | None":
        """Climb from a start, the order drawn if there is none, then search."""
        if self.expired and not must:
            return None
        seen = drawn[: self.problem.shape[0]]

        def keep(_: float, permutation: Permutation) -> None:
            nonlocal seen
            seen = permutation.copy()
            if self.expired:
                raise Expired

        try:
            if start is not None and not self.expired:
                seen = start()
            seen = climb(self.problem, seen, report=keep).permutation
        except Expired:
            pass
        return self._search_from(self._with_unused(seen), seed, must=True)

    def _with_unused(self, permutation: Permutation) -> Permutation:
        """Partners of all items, then those unused."""
        unused = np.setdiff1d(np.arange(self.problem.shape[1]), permutation)
        return np.concatenate([permutation, unused])

    def _search_from(
        self, order: Permutation, seed: int, *, must: bool = False
    ) -> "Matching | None":
        """Search from a matching; None if the time is over, unless there `must` be a result."""
        n_steps = 0
        if not self.expired:
            order, n_steps = self._tabu.run(order, seed)
        elif not must:
            return None
        n_items = self.problem.shape[0]
        return Matching(order, self.problem.value(order[:n_items]), n_steps, n_items)

    def _add(self, found: "Matching") -> None:
        """Keep a matching in the pool if it is new and better than the worst one there."""
        self.n_searches += 1
        self.n_steps += found.n_steps
        if self._best is None or found.value > self._best.value + _least_gain(found.value):
            self._best, self._n_at_best = found, self.n_searches
        self._in_vain += 1
        if not any(found.is_same(each) for each in self.pool):
            if len(self.pool) < POOL:
                self.pool.append(found)
                self._in_vain = 0
            else:
                worst = min(range(POOL), key=lambda place: self.pool[place].value)
                if found.value > self.pool[worst].value:
                    self.pool[worst] = found
                    self._in_vain = 0
        if self._in_vain > PATIENCE and len(self.pool) == POOL:
            self._shake()
        if self.report is not None:
            self.report(self.best.permutation, self.n_searches)

    def _shake(self) -> None:
        """Keep the best matching only; the next searches start from the others, moved far."""
        ordered = sorted(self.pool, key=lambda each: each.value)
        self._shaken = [self._move(each.order, SHAKEN) for each in ordered[:-1]]
        self.pool = ordered[-1:]
        self._in_vain = 0

    def _move(self, order: Permutation, share: float) -> Permutation:
        """Matching in which some random items exchange their partners in a cycle."""
        n_moved = min(order.size, max(3, round(share * order.size)))
        moved = self.rng.choice(order.size, n_moved, replace=False)
        order = order.copy()
        order[moved] = order[np.roll(moved, 1)]
        return order

    def _random_order(self) -> Permutation:
        return self.rng.permutation(self.problem.shape[1]).astype(np.intp)


def _store(results: list["Matching | None"], number: int, task: Task) -> None:
    results[number] = task()


@dataclass(frozen=True, eq=False)
class Matching:
    """Result of one search."""

    order: Permutation  # partners of all items, then those unused
    value: float
    n_steps: int
    n_items: int

    @property
    def permutation(self) -> Permutation:
        """Partner of each item."""
        return self.order[: self.n_items]

    def is_same(self, other: "Matching") -> bool:
        """Whether the value is the same, and nearly all partners."""
        if abs(self.value - other.value) > _least_gain(self.value):
            return False
        n_different = np.count_nonzero(self.permutation != other.permutation)
        return bool(n_different <= SAME * self.n_items)


class TabuSearch:
    """A problem in the form that the compiled tabu search takes.

    Real and imaginary parts of Hermitian matrices are layers, whose products add up. The squared
    term is a layer too: its first matrix is 1 for any two items.
    """

    def __init__(self, problem: QuadraticProblem) -> None:
        self.problem = problem
        n, m = problem.shape
        layers = [(problem.K.real, problem.L.real, False)]
        if np.iscomplexobj(problem.K):
            layers.append((problem.K.imag, problem.L.imag, True))
        if problem.squared_L is not None:
            ones = np.ones((n, n)) - np.eye(n)
            squared = problem.squared_L.copy()
            np.fill_diagonal(squared, 0.0)
            layers.append((-0.5 * ones, squared, False))
        self.K = np.zeros((len(layers), m, m))
        self.L = np.empty((len(layers), m, m))
        self.skew = np.empty(len(layers), dtype=np.bool_)
        for number, (K, L, skew) in enumerate(layers):
            self.K[number, :n, :n], self.L[number], self.skew[number] = K, L, skew
        self.n_steps = int(min(STEPS_PER_ITEM * m, WORK / (n * m)))

    def run(self, order: Permutation, seed: int) -> tuple[Permutation, int]:
        """Best matching met, and the number of steps."""
        from unshuffle.assignment._search.tabu_loops import tabu_swaps

        problem, order = self.problem, order.copy()
        n, m = problem.shape
        if m < 2 or self.n_steps < 1:
            return order, 0
        slopes = problem.gradient(order[:n])[:, order]
        if problem.squared_L is not None:
            # In layers an item does not interact with itself.
            slopes += problem.squared_L[np.ix_(order[:n], order)]
        slopes = np.ascontiguousarray(slopes)
        matched = np.ascontiguousarray(self.L[:, order[:, None], order])
        least_gain = _least_gain(problem.value(order[:n]))
        shortest, longest = int(SHORTEST * m), int(LONGEST * m) + EXTRA
        tabu_swaps(
            *(self.K, matched, self.skew, slopes, order, best := order.copy()),
            *(
                self._gains(slopes, matched),
                np.zeros((m, m), np.int32),
                np.zeros((n, m), np.int32),
            ),
            *(np.zeros((len(matched), m)), np.zeros((len(matched), m)), np.empty(m)),
            *(self.n_steps, shortest, longest - shortest + 1, least_gain, random_state(seed)),
        )
        return best, self.n_steps

    def _gains(self, slopes: Floats, matched: Floats) -> Floats:
        """Gains of all swaps of i < j from the slopes; the rest is of no use."""
        n = slopes.shape[0]
        stay = np.diag(slopes)
        gains: Floats = slopes - stay[:, None]
        gains[:, :n] += slopes[:, :n].T - stay
        for K, L in zip(self.K[~self.skew], matched[~self.skew], strict=True):
            gains[:, :n] += 4.0 * K[:n, :n] * L[:n, :n]
        return gains


def _least_gain(value: float) -> float:
    """Smaller differences of the objective are rounding errors."""
    return RELATIVE_GAIN * abs(value)


def list_starts(problem: QuadraticProblem) -> list[Start]:
    """First matchings by the cost, relaxations, eigenvectors and profiles."""
    even = np.full(problem.shape, 1.0 / problem.shape[1])
    starts: list[Start] = [
        lambda: relaxed(problem, even),
        lambda: anneal_shares(problem, even),
        lambda: by_eigenvectors(problem),
        lambda: by_profiles(problem),
    ]
    cost = problem.cost
    if cost is not None:
        starts.insert(0, lambda: assign_free(problem, -cost)[0])
    return starts


def relaxed(problem: QuadraticProblem, shares: Floats) -> Permutation:
    """Matching nearest to a maximum over soft ones, by Frank-Wolfe steps from `shares`."""
    found, _ = frank_wolfe(problem, shares, max_iter=FRANK_WOLFE_STEPS, tol=1e-4)
    return assign_free(problem, found)[0]


def by_profiles(problem: QuadraticProblem) -> Permutation:
    """Match items by their sorted similarities to all others, as Gilmore and Lawler do."""
    n, m = problem.shape
    K = np.sort(problem.K.real, axis=1)
    L = np.sort(problem.L.real, axis=1)
    if m > n:
        places = np.linspace(0.0, m - 1.0, n)
        below = np.floor(places).astype(np.intp)
        above, share = np.minimum(below + 1, m - 1), places - below
        L = L[:, below] * (1.0 - share) + L[:, above] * share
    benefit = 2.0 * K @ L.T
    if problem.squared_L is not None:
        benefit -= (L * L).sum(axis=1)
    if problem.cost is not None:
        benefit -= problem.cost
    return assign_free(problem, benefit)[0]


def by_eigenvectors(problem: QuadraticProblem) -> Permutation:
    """Anneal from similarities of all eigenvectors, weighted by how close their eigenvalues are.

    Fan, Mao, Wu and Xu (2023), Spectral graph matching and regularized quadratic relaxations. The
    arbitrary signs cancel, since each vector is multiplied by its own sum.
    """
    (values, first), (others, second) = (eigh(_standardized(S)) for S in (problem.K, problem.L))
    weights = 1.0 / ((values[:, None] - others) ** 2 + CLOSE**2)
    between = weights * np.outer(first.sum(axis=0).conj(), second.sum(axis=0))
    alike = np.ascontiguousarray((first @ between @ second.conj().T).real)
    return anneal_shares(problem, soften(problem, alike, temperature=SOFT))


def _standardized(S: Floats) -> Floats:
    """Similarities off the diagonal, centered and scaled to eigenvalues of order one."""
    n_items = S.shape[0]
    others = ~np.eye(n_items, dtype=bool)
    if n_items < 2 or not S[others].std() > 0.0:
        return np.zeros_like(S)
    centered = np.where(others, S - S[others].real.mean(), 0.0)
    return np.asarray(centered / (np.sqrt(n_items) * S[others].std()))
