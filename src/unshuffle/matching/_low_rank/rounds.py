"""What both paths of the low-rank search share: its progress, and rounds at full size."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.device import in_double, namespace, take, to_host
from unshuffle._run.search import Callback
from unshuffle._run.types import Floats, Permutation
from unshuffle.matching._all_pairs.tiles import Tiles
from unshuffle.matching._dense.pair import CountingSearch
from unshuffle.matching._low_rank.factors import Factors
from unshuffle.matching._low_rank.pair import (
    LARGEST_CORRELATION,
    POWER,
    FactorPair,
    Likelihood,
    Scores,
    Single,
    whitening,
)

# At most this many correlations for each item: more would fit the noise of the matching.
PER_ITEM = 1.25
# Maps that predict regions from the others: folds, refits without the regions that fit worst,
# strength.
N_FOLDS, N_REFITS, RIDGE = 8, 3, 0.003
REGION_AXES, N_LLOYD = 32, 6
# Residuals beyond this many medians are those of wrong pairs.
TYPICAL_RESIDUAL = 4.0


@dataclass(frozen=True, eq=False)
class RoundsFound:
    """A matching, and what led to it."""

    matching: Permutation  # partner of each item of the smaller collection
    rank: int  # components that its likelihood uses
    agreement: float
    rivals: list[Permutation] = field(default_factory=list)  # other ends of the search
    path: list[float] = field(default_factory=list)  # objective after each assignment
    confirmed: bool = True  # whether two starts led to it, or no other could agree better
    released: Permutation | None = None  # with -1 for released items; None if not asked for

    @property
    def kept(self) -> Permutation:
        """The matching with released pairs, if the user asked for that."""
        return self.matching if self.released is None else self.released


class LowRankSearch(CountingSearch[RoundsFound]):
    """Progress of a fit and the best matching it has seen."""

    def __init__(
        self,
        pair: FactorPair,
        callback: Callback | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(callback)
        self.pair = pair
        self.span = span
        self.path: list[float] = []

    @property
    def found(self) -> RoundsFound:
        """The best so far."""
        if self.best is None:
            raise RuntimeError("The search was stopped before its first matching.")
        return self.best

    def record(self, matching: Permutation, rank: int, stage: str, fraction: float) -> RoundsFound:
        """Keep a matching if it is the best so far, and report it."""
        agreement, objective = self.pair.judge(matching)
        found = RoundsFound(matching, rank, agreement, path=self.path)
        self.path.append(objective)
        self.offer(found, (0.0, found.agreement))
        self.count(1)
        self.report(stage, fraction)
        return found

    def report(self, stage: str, fraction: float) -> None:
        """Report progress with the best matching so far."""
        begin, end = self.span
        best = self.found
        objective = self.path[-1] if self.path else 0.0
        self.step(
            objective,
            self.pair.to_user(best.matching),
            stage=stage,
            fraction=begin + (end - begin) * fraction,
        )


class PartSearch(LowRankSearch):
    """Search of a part of the items, which reports the best matching of all."""

    def __init__(self, part: FactorPair, whole: LowRankSearch) -> None:
        super().__init__(part, None)
        self.whole = whole

    def report(self, stage: str, fraction: float) -> None:
        """Report progress with the best matching of all items."""
        self.whole.count(1)
        self.whole.report(stage, fraction)


def resolved(pair: FactorPair, most: int) -> int:
    """Number of components that the items of both sides can tell from noise."""
    return max(1, min(most, int(np.sqrt(PER_ITEM * pair.shape[0]))))


def standardize(tiles: Tiles, D: Single) -> Single:
    """Columns of mean 0 and variance 1, or 0 where they are constant."""
    D = D - D.mean(axis=0)
    spread = np.sqrt(in_double((D**2).mean(axis=0)))
    return D / tiles.put(np.where(spread > 0, spread, 1.0))


def likelihood_round(
    pair: FactorPair, tiles: Tiles, M: Floats, *, balanced: bool = False, rough: bool = False
) -> Permutation:
    """Assign all items by the likelihood that correlations imply."""
    U, V = pair.first.scores[:, : M.shape[0]], pair.second.scores[:, : M.shape[1]]
    likelihood = Likelihood.of(M, (whitening(U), whitening(V)), LARGEST_CORRELATION)
    scores = likelihood.scores(tiles, U, V)
    return pair.assign(tiles, scores.balanced(tiles, 1) if balanced else scores, rough=rough)


def cross_fitted(
    pair: FactorPair,
    tiles: Tiles,
    matching: Permutation,
    groups: NDArray[np.intp],
    trimmed: float,
    rng: np.random.RandomState,
    rank: int,
    n_refits: int = N_REFITS,
) -> Scores:
    """Scores by ridge maps from first to second, each group by maps fitted on others.

    No exchanged group can vouch for itself then. The groups that the others predict worst, a
    share `trimmed` of the items, are left out of the maps altogether.
    """
    U, V = pair.first.scores[:, :rank], pair.second.scores[:, :rank]
    rows = np.flatnonzero(matching >= 0)
    own, partners, at = take(U, rows), take(V, matching[rows]), groups[rows]
    n_groups = int(groups.max()) + 1
    sizes = np.bincount(at, minlength=n_groups)
    moments = [tiles.double(each) for each in _group_moments(own, partners, at, sizes)]
    folds = rng.randint(0, N_FOLDS, n_groups)
    ridge = tiles.double(RIDGE * rows.size * np.eye(U.shape[1]))

    def fit_maps(used: NDArray[np.bool_]) -> list[Single]:
        weights = tiles.double([used & (folds != fold) for fold in range(N_FOLDS)])
        grams, crosses = (
            (weights @ each.reshape(n_groups, -1)).reshape(N_FOLDS, *each.shape[1:])
            for each in moments
        )
        return list(tiles.put(namespace(U).linalg.solve(grams + ridge, crosses)))

    def predict(maps: list[Single], items: Single, groups: NDArray[np.intp]) -> Single:
        at = folds[groups].astype(np.int8)  # small numbers are sorted fast
        order = np.argsort(at, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        ends = np.cumsum(np.bincount(at, minlength=N_FOLDS))
        sorted_items = take(items, order)
        parts = zip([0, *ends[:-1]], ends, maps, strict=True)
        predicted = [sorted_items[begin:end] @ each for begin, end, each in parts]
        return take(namespace(items).vstack(predicted), back)

    used = np.ones(n_groups, dtype=bool)
    maps = fit_maps(used)
    residuals = partners - predict(maps, own, at)
    squared = in_double(namespace(residuals).einsum("ij,ij->i", residuals, residuals))
    # Wrong groups must not widen the noise.
    typical = np.flatnonzero(squared <= TYPICAL_RESIDUAL * np.median(squared))
    W = tiles.put(noise_whitening(take(residuals, typical)))
    if trimmed:
        for _ in range(n_refits):
            squared = in_double(((residuals @ W) ** 2).sum(axis=1))
            errors = np.bincount(at, squared, minlength=n_groups) / np.maximum(sizes, 1)
            order = np.argsort(errors, kind="stable")
            used[order] = np.cumsum(sizes[order]) <= (1.0 - trimmed) * rows.size
            maps = fit_maps(used)
            residuals = partners - predict(maps, own, at)
        W = tiles.put(noise_whitening(take(residuals, np.flatnonzero(used[at]))))
    keys = V @ W
    return Scores(predict(maps, U, groups) @ W, keys, -0.5 * (keys**2).sum(axis=1))


def _group_moments(
    own: Single, partners: Single, groups: NDArray[np.intp], sizes: NDArray[np.intp]
) -> tuple[Single, Single]:
    """Products of items with themselves and with their partners, summed over each group."""
    order = np.argsort(groups.astype(np.int16), kind="stable")
    own, partners = take(own, order), take(partners, order)
    ends = np.cumsum(sizes)
    spans = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    stack = namespace(own).stack
    grams = stack([own[span].T @ own[span] for span in spans])
    return grams, stack([own[span].T @ partners[span] for span in spans])


def noise_whitening(residuals: Single) -> Floats:
    """Matrix that makes residuals uncorrelated with variance 1, none blown up beyond 30."""
    values, vectors = np.linalg.eigh(in_double(residuals.T @ residuals))
    values = np.maximum(values, 1e-3 * values[-1]) / max(len(residuals), 1)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-12)))


def find_regions(
    factors: Factors, tiles: Tiles, n_regions: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Region of each item, by a few steps of k-means."""
    axes = tiles.put(factors.eigenvalues[:REGION_AXES] ** POWER)
    F = factors.scores[:, :REGION_AXES] * axes
    centers = take(F, rng.permutation(len(F))[:n_regions])
    for _ in range(N_LLOYD):
        nearest, _ = tiles.best_columns(F, centers, -0.5 * (centers**2).sum(axis=1), 1)
        near = to_host(nearest)[:, 0].astype(np.intp)
        centers = tiles.group_means(F, near, len(centers))
    return near
