"""What known and likely pairs teach: a map between the two collections, as a linear term.

Kernel ridge regression predicts the partner of each item, as a point in the feature space of the
kernel, from the known pairs, in both directions. The distance of an item of the second collection
from the prediction is the cost of that pair.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from unshuffle._core.arrays import check_plain
from unshuffle._quadratic.mean_field import interaction_spread
from unshuffle._quadratic.problem import assign_free
from unshuffle._run.parallel import product, wait_for
from unshuffle._run.types import Floats, Pairs, Permutation
from unshuffle.kernels import center
from unshuffle.matching._dense.pair import KernelPair, match_profiles

# Fewer pairs teach no map, and cannot be left out in turn.
FEWEST = 6
N_FOLDS = 5
RIDGES = 10.0 ** np.arange(-4, 3)
# Rounds in which the pairs found teach the map too, each as if it had this much more noise.
N_ROUNDS, FOUND_NOISE = 4, 10.0
# Weights of the map that the known pairs choose from, in units of the spread of the gradient. The
# first is taken unless the rank error of another is lower by this many standard errors. The last
# is none.
WEIGHTS, CLEARLY_LOWER = (1.0, 0.3, 0.0), 2.0
# Items and known pairs on which the weight is chosen.
MOST_ITEMS, MOST_KNOWN = 200, 60
LARGEST_SCORE = 30.0
LARGE = 1000  # systems of this size take longer than a thread needs to start
# One nat of evidence for a pair, in units of the spread of the gradient, as in `soft_matches`.
NAT = 0.2
# Probabilities of hints are kept this far from 0 and 1, which would rule pairs in or out.
LEAST_DOUBT = 1e-6

Solve = Callable[[KernelPair], Permutation]


@dataclass(frozen=True)
class Hints:
    """Likely pairs, which a matching may overrule."""

    pairs: Pairs  # (n_hints, 2)
    probabilities: Floats  # (n_hints,)


@dataclass(frozen=True)
class LeftOut:
    """Known pairs that were left out of a fit, and what came back."""

    n_pairs: int
    n_found: int  # found again exactly
    rank_errors: NDArray[np.float64]  # share of the others nearer to the partner found, for each


def check_hints(hints: ArrayLike | None, n_first: int, n_second: int) -> Hints:
    """Likely pairs given by the user as rows (index in X, index in y, probability)."""
    if hints is None:
        return Hints(np.empty((0, 2), dtype=np.intp), np.empty(0))
    ask = "Give one row (index in X, index in y, probability) for each likely pair."
    check_plain(hints, "`hints`")
    try:
        rows = np.asarray(hints, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"`hints` cannot be read as numbers ({error}). {ask}") from error
    if rows.size == 0:
        return Hints(np.empty((0, 2), dtype=np.intp), np.empty(0))
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError(f"`hints` must have shape (n_hints, 3), got {rows.shape}. {ask}")
    likely = rows[:, 2]
    outside = np.flatnonzero(~((likely > 0) & (likely <= 1)))
    if outside.size:
        raise ValueError(
            f"`hints` has the probability {likely[outside[0]]:g} (row {outside[0]}). Give "
            "probabilities above 0 and at most 1, and leave out pairs that are ruled out."
        )
    if not np.isfinite(rows).all() or np.any(rows[:, :2] != np.floor(rows[:, :2])):
        raise ValueError(f"`hints` must hold whole positions in its first two columns. {ask}")
    pairs = rows[:, :2].astype(np.intp)
    for column, size, name in ((0, n_first, "X"), (1, n_second, "y")):
        wrong = np.flatnonzero((pairs[:, column] < 0) | (pairs[:, column] >= size))
        if wrong.size:
            raise ValueError(
                f"`hints` names item {pairs[wrong[0], column]} of {name} (row {wrong[0]}), which "
                f"has {size} items. Use positions from 0 to {size - 1}."
            )
    if np.unique(pairs, axis=0).shape[0] < len(pairs):
        raise ValueError("`hints` names a pair twice. Give each pair once.")
    return Hints(pairs, likely)


def add_linear_terms(pair: KernelPair, hints: Hints, solve: Solve) -> tuple[KernelPair, float]:
    """The pair with what its frozen pairs and the hints teach, and the weight of the map."""
    free = ~(
        np.isin(hints.pairs[:, 0], pair.frozen[:, 0])
        | np.isin(hints.pairs[:, 1], pair.frozen[:, 1])
    )
    hints = Hints(hints.pairs[free], hints.probabilities[free])
    weight = 0.0
    if len(pair.frozen) + hints.probabilities.sum() >= FEWEST:
        weight = WEIGHTS[0]
        if len(pair.frozen) >= FEWEST:
            weight = choose_weight(pair, solve)
    taught = with_map(pair, weight, hints)
    if not len(hints.pairs):
        return taught, weight
    likely = np.clip(hints.probabilities, LEAST_DOUBT, 1.0 - LEAST_DOUBT)
    evidence = np.log(likely / (1.0 - likely)) + np.log(max(pair.L.shape[0] - 1, 1))
    cost = np.zeros((pair.K.shape[0], pair.L.shape[0])) if taught.cost is None else taught.cost
    cost = cost.copy()
    cost[hints.pairs[:, 0], hints.pairs[:, 1]] -= NAT * gradient_spread(pair) * evidence
    return pair.with_linear_term(cost, pair.frozen), weight


def with_map(pair: KernelPair, weight: float, hints: Hints | None = None) -> KernelPair:
    """The pair with a linear term learned from its frozen pairs and from hints."""
    if weight == 0.0:
        return pair
    known, noise = pair.frozen, np.ones(len(pair.frozen))
    if hints is not None and len(hints.pairs):
        known = np.concatenate([known, hints.pairs])
        noise = np.concatenate([noise, hints.probabilities**-2.0])
    scores, matching = learn_map(pair, known, noise)
    cost = -weight * gradient_spread(pair, matching) * scores
    return pair.with_linear_term(cost if pair.cost is None else pair.cost + cost, pair.frozen)


def gradient_spread(pair: KernelPair, matching: Permutation | None = None) -> float:
    """Spread of the gradient of the quadratic objective near a good matching."""
    if matching is None:
        matching = match_profiles(pair, (pair.K, pair.L), "sqeuclidean")
    return interaction_spread(pair.full_problem.without_cost().gradient(matching))


def learn_map(
    pair: KernelPair, known: Pairs, noise: NDArray[np.float64]
) -> tuple[Floats, Permutation]:
    """Score of each pair by a map learned from known pairs, and the matching it leads to.

    The pairs found join the known ones for a few rounds. Each item is predicted without its own
    pair, so that no pair vouches for itself. Scores have a spread of 1.
    """
    spaces = [(pair.K, pair.L)] if pair.linear is None else [(pair.K, pair.L), pair.linear]
    maps = []
    for space in spaces:
        first, second = (_of_unit_diagonal(S) for S in space)
        maps.append((first, second, _choose_ridge(first, second, known, noise), 1))
        maps.append((second, first, _choose_ridge(second, first, known[:, ::-1], noise), -1))
    taught, noises = known, noise
    for _ in range(N_ROUNDS + 1):
        scores = np.zeros((len(pair.K), len(pair.L)))
        for source, target, ridge, order in maps:
            found = _scores(source, target, taught[:, ::order], ridge * noises)
            scores += (found if order == 1 else found.T) / _typical_spread(found)
        matching, _ = assign_free(pair.full_problem, scores)
        found = np.column_stack([np.arange(matching.size), matching])
        new = ~np.isin(found[:, 0], known[:, 0]) & ~np.isin(found[:, 1], known[:, 1])
        taught = np.concatenate([known, found[new]])
        noises = np.concatenate([noise, np.full(int(new.sum()), FOUND_NOISE)])
    return _of_unit_spread(scores), matching


def _of_unit_spread(scores: Floats) -> Floats:
    """Scores without row and column effects, which no assignment needs, with a spread of 1.

    Scores of outliers are cut off: they would keep soft assignments from converging.
    """
    rest = _without_effects(scores) / _typical_spread(scores)
    return np.asarray(np.clip(rest, -LARGEST_SCORE, LARGEST_SCORE))


def _typical_spread(scores: Floats) -> float:
    """Spread of scores without row and column effects, which outliers do not change."""
    spread = float(np.median(np.abs(_without_effects(scores))))
    return 1.4826 * spread or interaction_spread(scores)


def _without_effects(scores: Floats) -> Floats:
    rest = scores - np.median(scores, axis=0)
    return np.asarray(rest - np.median(rest, axis=1)[:, None])


def _of_unit_diagonal(S: Floats) -> Floats:
    centered = center(S)
    return np.asarray(centered / (np.diag(centered).mean() or 1.0))


def _choose_ridge(
    source: Floats, target: Floats, pairs: Pairs, noise: NDArray[np.float64]
) -> float:
    """Strength at which partners are predicted best, each from the other pairs."""
    among, wanted = (
        S[np.ix_(items, items)] for S, items in zip((source, target), pairs.T, strict=True)
    )

    def squared_error(ridge: float) -> float:
        weights = _left_out_weights(among, ridge * noise)
        np.fill_diagonal(weights, -1.0)
        return float(np.einsum("ij,jk,ik->", weights, wanted, weights))

    return min(RIDGES, key=squared_error)


def _left_out_weights(among: Floats, noise: NDArray[np.float64]) -> Floats:
    """Weights of the other pairs in the prediction of each, zero on the diagonal."""
    inverse = _solve(among, noise, np.eye(len(among)))
    weights: Floats = -inverse / np.diag(inverse)[:, None]
    np.fill_diagonal(weights, 0.0)
    return weights


def _solve(among: Floats, noise: NDArray[np.float64], right: Floats) -> Floats:
    """Solve the ridge equations; the noise keeps them positive definite."""
    # Kernels that a user computed may have small negative eigenvalues.
    slack = 1e-10 * float(np.trace(among)) / len(among)
    for _ in range(40):
        try:
            system = among + np.diag(noise + max(slack, 0.0))
            if len(among) < LARGE:
                return _cholesky_solve(system, right)
            return wait_for(_cholesky_solve, system, right)
        except np.linalg.LinAlgError:
            slack = max(slack, 1e-12) * 10.0
    return np.zeros_like(right)


def _cholesky_solve(system: Floats, right: Floats) -> Floats:
    return np.asarray(cho_solve(cho_factor(system, check_finite=False), right, check_finite=False))


def _scores(source: Floats, target: Floats, pairs: Pairs, noise: NDArray[np.float64]) -> Floats:
    """Minus the squared distances from predictions to targets, up to a constant of each row."""
    rows, columns = pairs.T
    among = source[np.ix_(rows, rows)]
    weights = _solve(among, noise, source[rows]).T
    weights[rows] = _left_out_weights(among, noise)
    return np.asarray(2.0 * product(weights, target[columns]) - np.diag(target)[None, :])


def choose_weight(pair: KernelPair, solve: Solve) -> float:
    """Weight of the map under which known pairs that are left out come back best."""
    part = _sample(pair, np.random.RandomState(0))
    try:
        usual, *others = [leave_out(part, solve, weight) for weight in WEIGHTS]
    except ValueError:  # all items of the sample are alike
        return 0.0
    frozen_only = others[-1]
    if frozen_only.n_found >= max(usual.n_found, frozen_only.n_pairs / 2):
        return 0.0  # the similarities alone tell single partners, which a map would blur
    chosen, most = WEIGHTS[0], 0.0
    for weight, other in zip(WEIGHTS[1:], others, strict=True):
        gains = usual.rank_errors - other.rank_errors
        limit = CLEARLY_LOWER * float(gains.std()) / np.sqrt(gains.size)
        if gains.mean() > max(limit, most):
            chosen, most = weight, float(gains.mean())
    return chosen


def leave_out(pair: KernelPair, solve: Solve, weight: float) -> LeftOut:
    """Leave out a fifth of the known pairs at a time, and match again."""
    known = pair.frozen
    # The same folds for every weight.
    folds = np.random.RandomState(0).permutation(len(known)) % N_FOLDS
    n_found, ranks = 0, []
    for fold in np.unique(folds):
        held = known[folds == fold]
        rest = pair.with_linear_term(pair.cost, known[folds != fold])
        found = solve(with_map(rest, weight))[held[:, 0]]
        n_found += int((found == held[:, 1]).sum())
        ranks.append(rank_errors(pair.L, found, held[:, 1]))
    return LeftOut(len(known), n_found, np.concatenate(ranks))


def rank_errors(L: Floats, found: Permutation, right: Permutation) -> NDArray[np.float64]:
    """Share of the items that are more similar to the partner found than the right one is."""
    diagonal = np.diag(L)
    apart = diagonal[None, :] - 2.0 * L[found]  # squared distances up to a constant of each row
    wanted = apart[np.arange(found.size), right]
    share: NDArray[np.float64] = (apart < wanted[:, None]).mean(axis=1)
    return np.where(found == right, 0.0, share)


def _sample(pair: KernelPair, rng: np.random.RandomState) -> KernelPair:
    """A part of the collections with known pairs, small enough to be matched many times."""
    known = pair.frozen
    if len(known) > MOST_KNOWN:
        known = known[np.sort(rng.permutation(len(known))[:MOST_KNOWN])]
        pair = pair.with_linear_term(pair.cost, known)
    sizes = pair.K.shape[0], pair.L.shape[0]
    if max(sizes) <= MOST_ITEMS:
        return pair
    chosen = [
        _with_others(side, size, round(MOST_ITEMS * size / max(sizes)), rng)
        for side, size in zip(known.T, sizes, strict=True)
    ]
    return pair.part(*chosen)


def _with_others(
    items: NDArray[np.intp], n_items: int, n_wanted: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    others = np.setdiff1d(np.arange(n_items), items)
    n_more = max(0, min(n_wanted - items.size, others.size))
    return np.sort(np.concatenate([items, rng.permutation(others)[:n_more]]))
