"""How far to trust a matching: item by item, and as a whole."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import map_parallel, product
from unshuffle.assignment import QuadraticProblem, assign_free

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]

N_RESAMPLES = 24
RESAMPLED_SHARE = 0.35
# Two matchings differ truly where partners lie this far apart, as a share of random partners.
TRULY_DIFFERENT = 0.5
# Rivals whose objective reaches this share of the best cannot be ruled out by it.
WARN_ABOVE = 0.9


def confidence(
    problem: QuadraticProblem,
    permutation: Permutation,
    *,
    n_resamples: int = N_RESAMPLES,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """How often each item keeps its partner when it sees only a third of the other pairs.

    All items are assigned anew by their similarities to a random third of the pairs; a right
    pair is found again from almost any third, a wrong one hangs on a few others.

    Parameters
    ----------
    problem : QuadraticProblem
        The last problem that was climbed.
    permutation : ndarray of shape (n,)
        The matching; -1 where an item has no partner.
    n_resamples : int
        Thirds tried; more give finer steps.
    n_jobs : int or None
        Threads.

    Returns
    -------
    confidence : ndarray of shape (n,)
        From 0 to 1; 0 where an item has no partner.
    """
    matched = np.flatnonzero(permutation >= 0)
    # Fixed: how far to trust an answer should not depend on the user's random state.
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=n_resamples)

    def agrees(seed: int) -> NDArray[np.bool_]:
        chosen = np.random.RandomState(seed).rand(matched.size) < RESAMPLED_SHARE
        rows = matched[chosen]
        if rows.size == 0:
            return np.zeros(permutation.size, dtype=bool)
        benefit = 2.0 * product(problem.K[:, rows], problem.L[permutation[rows]])
        if problem.squared_L is not None:
            benefit -= problem.squared_L[permutation[rows]].sum(axis=0)
        if problem.cost is not None:
            benefit -= problem.cost * (rows.size / permutation.size)
        found, _ = assign_free(problem, benefit)
        return np.asarray(found == permutation)

    return np.mean(map_parallel(agrees, seeds, n_jobs=n_jobs), axis=0)


def ambiguity(
    broad: QuadraticProblem, fine: QuadraticProblem, L: Array, ends: list[Permutation]
) -> float:
    """Objective of the best matching that is truly different, as a share of the best of all.

    A rival must come close at the full spectrum and at the last stage of the path: it may share
    the broad order and miss the fine differences, or, where items form tight groups, fit within
    the groups and exchange them.

    Parameters
    ----------
    broad, fine : QuadraticProblem
        The problem at the full spectrum, and the last one that was climbed.
    L : ndarray of shape (m, m)
        Kernel of the second collection, to judge partners by.
    ends : list of ndarray of shape (n,)
        Matchings to compare; the first, the one chosen, is the reference.

    Returns
    -------
    ambiguity : float
        From 0 (no rival was found) to 1 (a rival is as good), counted from what a random
        matching reaches.
    """
    best = ends[0]
    problems = [broad, fine]
    if fine.cost is not None:
        # What both pay alike brings them no closer.
        problems += [broad.without_cost(), fine.without_cost()]
    shares = [
        min(_share(problem, end, best) for problem in problems)
        for end in ends
        if truly_different(L, best, end)
    ]
    return max(shares, default=0.0)


def _share(problem: QuadraticProblem, rival: Permutation, best: Permutation) -> float:
    """Objective of a rival as a share of the best, both counted from chance; from 0 to 1."""
    floor = chance(problem)
    most = problem.value(best) - floor
    if most <= 0:
        return 1.0
    return float(np.clip((problem.value(rival) - floor) / most, 0.0, 1.0))


def truly_different(L: Array, permutation: Permutation, other: Permutation) -> bool:
    """Whether two matchings send items to partners that are not alike."""
    return disagreement(L, permutation, other) > TRULY_DIFFERENT


def chance(problem: QuadraticProblem) -> float:
    """Objective to expect of a random matching."""
    n_items, n_partners = problem.K.shape[0], problem.L.shape[0]
    n_pairs, n_partner_pairs = n_items * (n_items - 1), n_partners * (n_partners - 1)
    expected = float(problem.K.sum()) * float(problem.L.sum()) / n_partner_pairs
    if problem.squared_L is not None:
        expected -= 0.5 * n_pairs * float(problem.squared_L.sum()) / n_partner_pairs
    if problem.cost is not None:
        expected -= n_items * float(problem.cost.mean())
    return expected


def disagreement(L: NDArray[np.float64], permutation: Permutation, other: Permutation) -> float:
    """Mean squared distance between the partners two matchings choose; random partners have 1.

    Near-duplicates are close in the kernel, so taking one for the other is no disagreement.
    """
    diagonal = np.diag(L)
    apart = diagonal[permutation] + diagonal[other] - 2.0 * L[permutation, other]
    n_items = L.shape[0]
    typical = 2.0 * (diagonal.mean() - (L.sum() - diagonal.sum()) / (n_items * (n_items - 1)))
    return float(apart.mean() / typical) if typical > 0 else 0.0
