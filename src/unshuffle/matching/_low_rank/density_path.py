"""The density path of the low-rank search, for sides whose distances are nearly the same."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.device import in_double, namespace, take
from unshuffle._run.types import Floats
from unshuffle.matching._all_pairs.tiles import Tiles
from unshuffle.matching._low_rank.pair import (
    LARGEST_CORRELATION,
    Likelihood,
    Scores,
    Single,
    whitening,
)
from unshuffle.matching._low_rank.rounds import LowRankSearch, RoundsFound, resolved, standardize

# Components used, rows of the first step relative to those of the others, most steps, least
# relative gain in information, last steps without densities, first correlation of all densities.
SHARP_RANK = 56
FIRST = 4
MOST_STEPS, LEAST_STEPS, LEAST_GAIN = 16, 4, 0.004
N_POLISH = 2
FIRST_CORRELATION = 0.8
SOFT_CORRELATIONS = 0.998, 0.9995  # largest with densities, and in the last steps
# Last assignments, until few items move; of a matching that agrees little, the fewest.
LEAST_ROUNDS, MOST_ROUNDS, SETTLED, PROMISING = 2, 5, 0.02, 0.5
TINY = 1e-12  # variance of densities that are the same for all items


def follow_densities(
    search: LowRankSearch, tiles: Tiles, rng: np.random.RandomState
) -> RoundsFound:
    """Match by densities, sharpen the correlations by soft steps, and assign."""
    pair = search.pair
    n_first, n_second = pair.shape
    rank = resolved(pair, SHARP_RANK)
    U, V = (factors.scores[:, :rank] for factors in (pair.first, pair.second))
    chosen = _with_known(rng.permutation(n_first)[: FIRST * tiles.sampled], pair.frozen)
    described = [
        tiles.densities(factors.points, rows, 1.0 / factors.spread)
        for factors, rows in ((pair.first, chosen), (pair.second, np.arange(n_second)))
    ]
    D, E = _pool(tiles, *described)
    hstack = namespace(U).hstack
    F, G = hstack([take(U, chosen), D]), hstack([V, E])
    whiten = whitening(F), whitening(G)
    C = in_double(F.T @ F) / len(F)
    known = pair.frozen if chosen.size == n_first else _places(pair.frozen, chosen)
    weight = float(np.sqrt(FIRST_CORRELATION / (1.0 - FIRST_CORRELATION**2)))
    D, E = D * weight, E * weight
    start = Scores(D, E, -0.5 * FIRST_CORRELATION * (E**2).sum(axis=1))
    M = soft_step(tiles, start, F, G, C, np.arange(len(F)), known, pair.cost_of(chosen))
    information = 0.0
    for number in range(MOST_STEPS):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[0])
        search.report("comparing densities", 0.05 + 0.2 * number / MOST_STEPS)
        before, information = information, likelihood.information
        if number > LEAST_STEPS and abs(information - before) < LEAST_GAIN * information:
            break
        rows = _with_known(rng.permutation(len(F))[: tiles.sampled], known)
        scores, cost = likelihood.scores(tiles, take(F, rows), G), pair.cost_of(chosen[rows])
        M = soft_step(tiles, scores, F, G, C, rows, known, cost)
    M = M[: U.shape[1], : V.shape[1]]
    whiten = whitening(U), whitening(V)
    C = in_double(U.T @ U) / len(U)
    for _ in range(N_POLISH):
        likelihood = Likelihood.of(M, whiten, SOFT_CORRELATIONS[1])
        rows = _with_known(rng.permutation(n_first)[: tiles.sampled], pair.frozen)
        scores, cost = likelihood.scores(tiles, take(U, rows), V), pair.cost_of(rows)
        M = soft_step(tiles, scores, U, V, C, rows, pair.frozen, cost)
    last = None
    for number in range(MOST_ROUNDS):
        likelihood = Likelihood.of(M, whiten, LARGEST_CORRELATION)
        matching = pair.assign(tiles, likelihood.scores(tiles, U, V))
        found = search.record(matching, rank, "matching", 0.26 + 0.02 * number)
        moved = 1.0 if last is None else float(np.mean(matching != last))
        if number + 1 >= LEAST_ROUNDS and (moved < SETTLED or found.agreement < PROMISING):
            break
        M, last = pair.moments(matching, rank), matching
    return found


def soft_step(
    tiles: Tiles,
    scores: Scores,
    F: Single,
    G: Single,
    C: Floats,
    rows: NDArray[np.intp],
    known: NDArray[np.intp],
    cost: Any = None,
) -> Floats:
    """Correlations from the expected partners of some rows.

    Expected partners are regressed on the rows: their plain products with the rows would carry
    the sampling noise of the rows themselves.
    """
    means, _ = tiles.soft_means(scores.queries, scores.keys, scores.bias, G, cost)
    weights = None
    if len(known):
        place = np.full(len(F), -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        place = place[known[:, 0]]
        means[place] = take(G, known[:, 1])
        weights = np.ones(rows.size)
        weights[place] = _known_weight(len(known), rows.size)
        weights = tiles.put(weights)
    return regressed(take(F, rows), means, C, weights)


def regressed(F: Single, partners: Single, C: Floats, weights: Single = None) -> Floats:
    """Correlations from a regression of partners on items, whose second moments are C."""
    scaled = F if weights is None else F * weights[:, None]
    gram = in_double(scaled.T @ F)
    gram += 1e-5 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.asarray(C @ np.linalg.solve(gram, in_double(scaled.T @ partners)))


def _known_weight(n_known: int, n_rows: int) -> float:
    """Weight of each known pair, which together count as much as a third of the rows."""
    return max(1.0, min(n_rows / (3.0 * n_known), 100.0))


def _pool(tiles: Tiles, D: Single, E: Single) -> tuple[Single, Single]:
    """Descriptors of both sides, standardized, with one rotation that makes them uncorrelated."""
    D, E = standardize(tiles, D), standardize(tiles, E)
    values, vectors = np.linalg.eigh(in_double(D.T @ D / len(D) + E.T @ E / len(E)) / 2)
    rotation = tiles.put(vectors / np.sqrt(np.maximum(values, max(1e-6 * values[-1], TINY))))
    return D @ rotation, E @ rotation


def _with_known(rows: NDArray[np.intp], known: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows with those of the known pairs among them."""
    return rows if not len(known) else np.union1d(rows, known[:, 0])


def _places(frozen: NDArray[np.intp], chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Frozen pairs with the rows as places in `chosen`, which is sorted if there are any."""
    if not len(frozen):
        return frozen
    return np.column_stack([np.searchsorted(chosen, frozen[:, 0]), frozen[:, 1]])
