"""`quadratic_assignment`: the search, the proof and the result."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from unshuffle._core.parameters import check_callback, check_count, check_option, check_positive
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.search import Callback, Search, Stopped
from unshuffle._run.types import Permutation
from unshuffle.assignment._exact.bounds import gilmore_lawler, prove
from unshuffle.assignment._quadratic_task import (
    Task,
    as_random_state,
    list_given_starts,
    merge_options,
)
from unshuffle.assignment._search.climb import DeepSearch

METHODS = ("faq", "2opt", "exact")
# Without other limits: searches in a row that find nothing better, from 150 for few items (whose
# searches are short) to 48; and how many times as many in all.
FEWEST, MOST, PER_ITEM, TIMES = 48, 150, 6000, 10
NO_LIMIT = 10**18
# Costs that the proof reads, 10 ns each, without a limit of time.
PROOF_WORK = 1e7
# Share of the time that goes to the proof at most, by the number of items.
SMALL, SHARE_IF_SMALL, SHARE_IF_LARGE = 20, 0.5, 0.15
LARGEST_BOUND = 500


def quadratic_assignment(
    A: ArrayLike,
    B: ArrayLike,
    method: str | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    cost: ArrayLike | None = None,
    maximize: bool = False,
    frozen: ArrayLike | None = None,
    n_init: int | None = None,
    max_time: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> OptimizeResult:
    """Match two sets of items so that the products of their pairwise values have the least sum.

    Finds a permutation p with a small ``sum(A[i, j] * B[p[i], p[j]]) + sum(cost[i, p[i]])``, such
    as the transport between facilities (A: flows) at places (B: distances), and says how far it
    can be from the smallest. With `maximize` it matches the nodes of two graphs.
    `scipy.optimize.quadratic_assignment` can be replaced by this function without other changes.

    Parameters
    ----------
    A : array-like of shape (n_A, n_A)
        Finite numbers for each two items of the first set, symmetric or not.
    B : array-like of shape (n_B, n_B)
        Finite numbers for each two items of the second set. If it has another size, all items of
        the smaller set are matched; see Notes.
    method : {None, "exact", "faq", "2opt"}, default=None
        "exact" continues until the result is proved to be optimal, or until `max_time`; it can
        finish for about 20 items or fewer. All others run the same search; "faq" and "2opt" are
        the names of SciPy's methods.
    options : dict or None, default=None
        SciPy's options: `maximize`; `partial_match`, our `frozen`; `rng`, our `random_state`; and
        the starts `P0` ("barycenter", "randomized", or a doubly stochastic matrix) and
        `partial_guess` (pairs that the search starts from). `maxiter`, `tol` and `shuffle_input`
        have no effect. Each thing can be given in one form only.
    cost : array-like of shape (n_A, n_B) or None, default=None
        Finite cost of each pair by itself.
    maximize : bool, default=False
        Whether to maximize the sum instead, including the cost.
    frozen : array-like of shape (n_frozen, 2) or None, default=None
        Pairs (item of A, item of B) to keep, in any order.
    n_init : int or None, default=None
        Number of searches. Larger values take longer and find better results. None searches as
        long as `max_time` allows, or until 150 in a row find nothing better (fewer above 40 items,
        48 above 125), and ten times as many at most.
    max_time : float or None, default=None
        Seconds after which to return the best matching so far. Larger values find better results.
        With None, the same seed always gives the same result.
    random_state : int, RandomState or None, default=None
        Seed of the random starts. A `numpy.random.Generator` is accepted too.
    n_jobs : int or None, default=None
        Number of threads; -1 for one on every core. Does not change the result, except that more
        is done within `max_time`.
    callback : callable or None, default=None
        Called with a `SearchState` after each search; its `objective` is `fun` of the best
        matching so far. If it returns True, the search stops.

    Returns
    -------
    result : scipy.optimize.OptimizeResult
        col_ind : ndarray of shape (n_A,)
            Item of B matched to each item of A; -1 if unmatched.
        fun : float or int
            The sum at `col_ind`; exact, and an int, if all matrices hold integers.
        nit : int
            Number of swaps tried as steps of the search.
        lower_bound : float or int
            No matching has a smaller sum. Called `upper_bound` with `maximize`. Infinite above
            500 items.
        gap : float
            Distance of `fun` from this bound, relative to ``abs(fun)``. 0.0 means that the
            result is proved to be optimal.

    Notes
    -----
    Searches start from the relaxed problem (the method "faq"), sorted rows, eigenvectors and
    random orders, climb by linear assignments and swaps, and continue as a tabu search, which also
    accepts the best swap that makes things worse [1]_. Once 16 different matchings are known, new
    searches start from mixtures of two of them. The bound is that of Gilmore and Lawler; up to 64
    items it is raised by the dual ascent of Hahn and Grant [2]_, up to 36 in a branch and bound.

    If A and B have different sizes, the sum is over the matched items. A large set of places then
    offers a choice, and the best one is found, if the sum is minimized. To maximize it would mean
    to choose the largest numbers, whatever their pattern; instead, half the sum of squares of the
    larger matrix over the matched items is subtracted, as in `KernelizedSorting`. The result is
    the part of the larger matrix that is closest to the smaller one.

    Very small or large matrices are divided by powers of two first, which changes nothing but the
    unit. Entries below 1e-150 of the largest in their matrix count as 0.

    A search takes time proportional to n_A * n_B * max(n_A, n_B) up to 100 items and about 0.1 s
    for more; climbing from a start takes about their cube. Memory: about 14 arrays of the size of
    the larger matrix.

    References
    ----------
    .. [1] Taillard, E. (1991). Robust taboo search for the quadratic assignment problem. Parallel
       Computing 17.
    .. [2] Hahn, P. and Grant, T. (1998). Lower bounds for the quadratic assignment problem based
       upon a dual formulation. Operations Research 46.

    Examples
    --------
    Four facilities, the flows between them, and the distances between four places:

    >>> from unshuffle.assignment import quadratic_assignment
    >>> flows = [[0, 5, 8, 6], [5, 0, 5, 1], [8, 5, 0, 2], [6, 1, 2, 0]]
    >>> distances = [[0, 1, 8, 4], [1, 0, 5, 2], [8, 5, 0, 5], [4, 2, 5, 0]]
    >>> found = quadratic_assignment(flows, distances, random_state=0)
    >>> found.fun, found.lower_bound, found.gap
    (176, 176, 0.0)
    >>> quadratic_assignment(flows, distances, frozen=[(0, 0)], random_state=0).col_ind
    array([0, 3, 1, 2])
    """
    began = monotonic()
    method = None if method is None else check_option(str(method).lower(), "method", METHODS)
    given = {"maximize": maximize, "frozen": frozen, "random_state": random_state}
    settings = merge_options(given, options)
    rng = as_random_state(settings["random_state"])
    n_init = None if n_init is None else check_count(n_init, "n_init", most=10**6)
    max_time = None if max_time is None else check_positive(max_time, "max_time")
    check_n_jobs(n_jobs)
    check_callback(callback)
    task = Task.of(A, B, cost, settings["maximize"], settings["frozen"])
    starts = list_given_starts(task, settings, rng)
    if task.free.shape[0] == 0:
        return task.result(np.empty(0, dtype=np.intp), 0, 0.0)

    search: Search[Permutation] = Search(callback)
    patience = min(max(PER_ITEM // max(task.free.shape[1], 1), FEWEST), MOST)
    n_first = TIMES * patience if n_init is None else n_init
    bound = -np.inf

    def report(permutation: Permutation, stage: str, done: float) -> None:
        if callback is not None:
            columns = task.columns(permutation)
            done = done if max_time is None else (monotonic() - began) / max_time
            search.step(float(task.value(columns)), columns, stage=stage, fraction=done)

    def report_search(permutation: Permutation, n_searches: int) -> None:
        report(permutation, "searching", n_searches / n_first)

    def report_proof(proved: float, _: int) -> None:
        nonlocal bound
        bound = proved
        report(deep.best.permutation, "proving", 1.0)

    deadline = None if max_time is None else began + max_time
    deep = DeepSearch(task.free, starts, rng, deadline=deadline, report=report_search)
    limited = max_time is not None and n_init is None  # by nothing but time
    try:
        deep.run(n_first, n_jobs, patience=patience if n_init is None else None)
        if task.free.shape[1] <= LARGEST_BOUND:
            work, until = _proof_limits(task, method, deadline, max_time if limited else None)
            proof = prove(
                task.bounded,
                deep.best.permutation,
                step=task.step,
                max_work=work,
                deadline=until,
                check=report_proof,
            )
            deep.accept(proof.permutation)
            bound = np.inf if proof.optimal else proof.bound
        if limited and bound < -deep.best.value and method != "exact":
            deep.run(NO_LIMIT, n_jobs)
    except Stopped:
        if bound == -np.inf and task.free.shape[1] <= LARGEST_BOUND:
            bound = gilmore_lawler(task.bounded)
    slack = max(-deep.best.value - bound, 0.0)
    return task.result(deep.best.permutation, deep.n_steps, slack)


def _proof_limits(
    task: Task, method: str | None, deadline: float | None, max_time: float | None
) -> tuple[float, float | None]:
    """Work and time that a proof may take; `max_time` is None if it is not the only limit."""
    if method == "exact":
        return np.inf, deadline
    if max_time is None or deadline is None:
        return PROOF_WORK, deadline
    share = SHARE_IF_SMALL if task.free.shape[1] <= SMALL else SHARE_IF_LARGE
    return np.inf, min(deadline, monotonic() + share * max_time)
