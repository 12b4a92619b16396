"""The search for large collections: likelihood weights on low-rank factors, in two ways.

At low rank the only state of the ascent is M, the correlations between the kernel
principal components of both sides over the matched pairs. Under a Gaussian model they give the
log-likelihood ratio of every pair, an inner product, so each step is an assignment that needs
neither kernel matrix. What differs is how a first M is found:

- The density path matches items by their densities at eight scales, whose sampling noise breaks
  even mirror symmetry, and sharpens M by soft steps. It needs distances that are nearly the same
  on both sides.
- The annealed path matches items by what their neighborhoods look like, in many ways, and follows
  each by annealing on a sample. Rounds that predict each region from the others then repair
  groups that were exchanged. It needs groups of items, and tolerates distorted distances.

Both are run unless the first agrees so well that no other matching can, and the agreement of the
matchings at a small spectral power chooses.
"""

from dataclasses import replace

import numpy as np

from unshuffle._run.device import sort_order
from unshuffle._run.types import Permutation
from unshuffle.matching._all_pairs.tiles import Tiles
from unshuffle.matching._low_rank.annealed_path import AnnealedPath
from unshuffle.matching._low_rank.density_path import follow_densities
from unshuffle.matching._low_rank.pair import FactorPair
from unshuffle.matching._low_rank.rounds import LowRankSearch, PartSearch, RoundsFound

# Agreement that no other matching can exceed by enough to matter.
CONVINCING = 0.9


def solve_low_rank(
    search: LowRankSearch,
    tiles: Tiles,
    *,
    n_init: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
    convincing: float = CONVINCING,
) -> RoundsFound:
    """Follow the density path, and the annealed path unless the first is convincing."""
    pair = search.pair
    search.record(_match_by_rank(pair), 1, "describing items", 0.02)
    sharp = follow_densities(search, tiles, rng)
    if sharp.agreement >= convincing:
        return sharp
    if max(pair.shape) > tiles.climbed:
        best, confirmed = _follow_sample(search, tiles, n_init, n_jobs, rng)
        rivals: list[Permutation] = []
    else:
        path = AnnealedPath(search, tiles, n_jobs, rng)
        best, confirmed = path.run(n_init)
        rivals = [end.matching for end in path.ends]
    if sharp.agreement > best.agreement:
        return replace(sharp, rivals=rivals, confirmed=False)
    return replace(best, rivals=[sharp.matching, *rivals], confirmed=confirmed)


def _follow_sample(
    search: LowRankSearch,
    tiles: Tiles,
    n_init: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> tuple[RoundsFound, bool]:
    """Follow the annealed path on a sample, and its end with all items.

    Few items of the sample have their partner in that of the other side. Groups do, and all that
    is handed on are correlations.
    """
    pair = search.pair
    share = tiles.climbed / max(pair.shape)
    samples = []
    for side, size in enumerate(pair.shape):
        sample = rng.permutation(size)[: max(1, round(share * size))]
        samples.append(np.union1d(sample, pair.frozen[:, side]))
    part = pair.part(*samples)
    path = AnnealedPath(PartSearch(part, search), tiles, n_jobs, rng)
    end, confirmed = path.run(n_init)
    M = part.moments(end.matching, end.rank)
    return AnnealedPath(search, tiles, n_jobs, rng).finish(M), confirmed


def _match_by_rank(pair: FactorPair) -> Permutation:
    """A first matching, along the leading component, in case the search is stopped early."""
    first, second = (sort_order(side.scores[:, 0]) for side in (pair.first, pair.second))
    places = np.linspace(0, second.size - 1, first.size).round().astype(np.intp)
    matching = np.empty(first.size, dtype=np.intp)
    matching[first] = second[places]
    return pair.keep_frozen(matching)
