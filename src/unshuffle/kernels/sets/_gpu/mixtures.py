"""Gaussian mixtures of many sets at once, in PyTorch: the steps of `_mixture_loops`, in batches.

Shapes: s sets, t starts, m components, n points (padded), d columns. Always in double precision:
starts are compared by their likelihoods, and fits stop by how much these grow.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.bags import Bags
from unshuffle.kernels.sets._gpu.gaussians import log_det_and_forms
from unshuffle.kernels.sets._gpu.tensors import Batch, Place, batches, holders
from unshuffle.kernels.sets._models.mixtures import (
    N_FOLDS,
    SHORT_ROUNDS,
    Fits,
    FitSettings,
    count_distinct,
    n_parameters,
    warn_of_few_points,
)

# As in `_mixture_loops`, which needs numba.
LLOYD_ROUNDS = 10
LOG_2_PI = float(np.log(2.0 * np.pi))
# Rounds after which sets that have converged leave the batch.
ROUNDS_PER_CLEARING = 4


class State(NamedTuple):
    """Mixtures of s sets from t starts each, and how far their fits are."""

    weights: Any  # (s, t, m)
    means: Any  # (s, t, m, d)
    spreads: Any  # (s, t, m, p): lower triangles or diagonals
    shares: Any  # (s, t, m, n): of components in points
    scores: Any  # (s, t): log-likelihoods
    rounds: Any  # (s, t)
    converged: Any  # (s, t)


def fit_mixtures(sets: Bags, settings: FitSettings, place: Place) -> Fits:
    """Mixtures of sorted sets in standard units, in NumPy."""
    distinct = count_distinct(sets)
    warn_of_few_points(distinct, settings)
    if isinstance(settings.n_components, int):
        n_components = np.minimum(distinct, settings.n_components)
    elif settings.n_components == "bic":
        n_components = choose_by(bic, sets, distinct, settings, place)
    else:
        n_components = choose_by(held_out_losses, sets, distinct, settings, place)
    return fit_each(sets, n_components, settings, place)


def fit_each(
    sets: Bags, n_components: NDArray[np.intp], settings: FitSettings, place: Place
) -> Fits:
    """Mixtures with the given numbers of components."""
    n_sets, most, d = len(sets), int(n_components.max()), sets.width
    p = d * (d + 1) // 2 if settings.covariance_type in ("full", "tied") else d
    weights, means = np.zeros((n_sets, most)), np.zeros((n_sets, most, d))
    spreads, scores = np.zeros((n_sets, most, p)), np.zeros(n_sets)
    rounds, converged = np.zeros(n_sets, dtype=np.intp), np.zeros(n_sets, dtype=bool)
    for m in np.unique(n_components):
        chosen = np.flatnonzero(n_components == m)
        n_starts = max(settings.draws.shape[0] * settings.draws.shape[1], d)
        for batch in batches(pick(sets, chosen), place, float(m * n_starts), _double()):
            state = fit_batch(batch, int(m), settings)
            rows = chosen[batch.indices]
            found = [each[:, 0].cpu().numpy() for each in state if each is not state.shares]
            weights[rows, :m], means[rows, :m], spreads[rows, :m] = found[:3]
            scores[rows], rounds[rows], converged[rows] = found[3:]
    there = np.arange(most) < n_components[:, None]
    return Fits(
        n_components, weights[there], means[there], spreads[there], scores, rounds, converged
    )


def _double() -> Any:
    import torch

    return torch.float64


def pick(sets: Bags, chosen: NDArray[np.intp]) -> Bags:
    """The sets at these indices."""
    if len(chosen) == len(sets):
        return sets
    taken = np.zeros(len(sets), dtype=bool)
    taken[chosen] = True
    offsets = np.concatenate([[0], np.cumsum(sets.sizes[chosen])]).astype(np.intp)
    return Bags(sets.points[taken[holders(sets)]], offsets)


def choose_by(
    measure: Any, sets: Bags, distinct: NDArray[np.intp], settings: FitSettings, place: Place
) -> NDArray[np.intp]:
    """Number of components for each set: that of the smallest measure, the first of several."""
    most = np.minimum(distinct, settings.max_components)
    found = np.full((len(sets), int(most.max())), np.inf)
    for m in range(1, int(most.max()) + 1):
        chosen = np.flatnonzero(most >= m)
        found[chosen, m - 1] = measure(pick(sets, chosen), m, settings, place)
    return np.argmin(found, axis=1) + 1


def bic(sets: Bags, m: int, settings: FitSettings, place: Place) -> NDArray[np.float64]:
    """Bayesian information criterion of mixtures of m components; lower is better."""
    fits = fit_each(sets, np.full(len(sets), m), settings, place)
    penalties = n_parameters(m, sets.width, settings.covariance_type) * np.log(sets.sizes)
    return np.asarray(penalties - 2.0 * fits.scores)


def held_out_losses(
    sets: Bags, m: int, settings: FitSettings, place: Place
) -> NDArray[np.float64]:
    """Negative log-likelihoods of held-out points, as `_mixtures.held_out_losses`."""
    within = np.arange(len(sets.points)) - np.repeat(sets.offsets[:-1], sets.sizes)
    losses = np.zeros(len(sets))
    for turn in range(N_FOLDS):
        kept = within % N_FOLDS != turn
        n_kept = np.add.reduceat(kept.astype(np.intp), sets.offsets[:-1])
        enough = n_kept > 0
        train = _part(sets, kept, enough)
        enough[enough] = count_distinct(train) >= m
        losses[~enough] += 0.0 if m == 1 else np.inf
        tested = enough & (n_kept < sets.sizes)
        if not tested.any():
            continue
        fits = fit_each(_part(sets, kept, tested), np.full(tested.sum(), m), settings, place)
        losses[tested] -= _log_likelihoods(_part(sets, ~kept, tested), fits, m, place)
    return losses


def _part(sets: Bags, kept: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> Bags:
    """Some points of some sets."""
    holder = holders(sets)
    rows = kept & chosen[holder]
    sizes = np.bincount(holder[rows], minlength=len(sets))[chosen]
    return Bags(sets.points[rows], np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))


def _log_likelihoods(sets: Bags, fits: Fits, m: int, place: Place) -> NDArray[np.float64]:
    """Log-likelihood of each set under the mixture at the same place."""
    import torch

    found = np.empty(len(sets))
    for batch in batches(sets, place, float(m * sets.width), torch.float64):
        parts = (each.reshape(len(sets), 1, m, *each.shape[1:]) for each in fits[1:4])
        mixture = (torch.as_tensor(each[batch.indices], device=place.device) for each in parts)
        found[batch.indices] = expect(batch, *mixture)[1][:, 0].cpu().numpy()
    return found


def fit_batch(batch: Batch, m: int, settings: FitSettings) -> State:
    """Mixtures of a batch with m components, the likeliest of several starts."""
    import torch

    n_starts, n_trials = settings.draws.shape[:2]
    if m == 1:
        shares = batch.inside[:, None, None].to(batch.points.dtype)
        return run_rounds(batch, shares, settings, settings.max_iter)
    draws = torch.as_tensor(settings.draws[:, :, :m], device=batch.points.device)
    labels = cluster(batch, draws.reshape(n_starts * n_trials, m), n_trials)
    numbers = torch.arange(m, device=labels.device)
    shares = (labels[:, :, None] == numbers[:, None]) & batch.inside[:, None, None]
    tries = run_rounds(
        batch, shares.to(batch.points.dtype), settings, min(settings.max_iter, SHORT_ROUNDS)
    )
    best = _first_largest(torch.nan_to_num(tries.scores, nan=-torch.inf))
    index = best[:, None, None, None].expand(-1, 1, *tries.shares.shape[2:])
    return run_rounds(batch, tries.shares.gather(1, index), settings, settings.max_iter)


def _first_largest(values: Any) -> Any:
    """Index of the largest value in the last axis, the first of several."""
    import torch

    places = torch.arange(values.shape[-1], device=values.device)
    largest = values.amax(-1, keepdim=True)
    return torch.where(values == largest, places, values.shape[-1] - 1).amin(-1)


def squares_from(points: Any, centers: Any) -> Any:
    """Squared distances of points (s, n, d) from centers (s, ..., d), shape (s, ..., n)."""
    total: Any = 0.0
    for k in range(points.shape[2]):
        column = points[:, :, k].reshape(len(points), *(1,) * (centers.ndim - 2), -1)
        total = total + (column - centers[..., k, None]).square()
    return total


def spread_centers(batch: Batch, draws: Any) -> Any:
    """Centers by k-means++ for each row of draws (t, m), shape (s, t, m, d)."""
    import torch

    points, inside = batch.points, batch.inside[:, None]
    sizes = batch.inside.sum(1)[:, None]
    places = torch.arange(points.shape[1], device=points.device)
    chosen = torch.minimum((draws[:, 0] * sizes).long(), sizes - 1)
    nearest, centers = None, []
    for m in range(draws.shape[1]):
        if nearest is not None:
            left = draws[:, m] * nearest.sum(-1)
            hit = (left[..., None] - nearest.cumsum(-1) < 0.0) & (nearest > 0.0)
            chosen = torch.where(hit, places, points.shape[1]).amin(-1)
            chosen = torch.minimum(chosen, sizes - 1)
            lost = nearest.gather(2, chosen[..., None])[..., 0] == 0.0
            chosen = torch.where(lost, _first_largest(nearest), chosen)
        center = points.gather(1, chosen[..., None].expand(-1, -1, points.shape[2]))
        squares = torch.where(inside, squares_from(points, center), 0.0)
        nearest = squares if nearest is None else torch.minimum(nearest, squares)
        centers.append(center)
    return torch.stack(centers, dim=2)


def cluster(batch: Batch, draws: Any, n_trials: int) -> Any:
    """Labels by a few rounds of k-means, the best of each `n_trials` rows of draws."""
    import torch

    points, inside = batch.points, batch.inside[:, None]
    centers = spread_centers(batch, draws)
    s, t, m, d = centers.shape
    numbers = torch.arange(m, device=points.device)
    before = torch.full((s, t), torch.inf, dtype=points.dtype, device=points.device)
    for _ in range(LLOYD_ROUNDS):
        squares = squares_from(points, centers)
        least = squares.amin(2)
        labels = torch.where(squares == least[:, :, None], numbers[:, None], m).amin(2)
        totals = torch.where(inside, least, 0.0).sum(-1)
        # Centers that stay give the same labels and totals in all later rounds.
        moves = totals < before
        before = totals
        ones = ((labels[:, :, None] == numbers[:, None]) & inside[:, :, None]).to(points.dtype)
        counts = ones.sum(-1)
        means = (ones.reshape(s, t * m, -1) @ points).reshape(s, t, m, d)
        means = means / counts.clamp(min=1.0)[..., None]
        moved = moves[..., None, None] & (counts > 0.0)[..., None]
        centers = torch.where(moved, means, centers)
    totals = totals.reshape(s, -1, n_trials)
    best = _first_largest(-totals)
    labels = labels.reshape(s, -1, n_trials, labels.shape[-1])
    return labels.gather(2, best[..., None, None].expand(-1, -1, 1, labels.shape[-1]))[:, :, 0]


def maximize(batch: Batch, shares: Any, settings: FitSettings) -> tuple[Any, Any, Any]:
    """Weights, means and covariances from the share of each component in each point."""
    import torch

    points, kind = batch.points, settings.covariance_type
    s, t, m, n = shares.shape
    d = points.shape[2]
    sizes = batch.inside.sum(1).to(points.dtype)[:, None, None]
    # A component without points keeps a weight whose logarithm is finite.
    counts = shares.sum(-1) + 1e-14 * sizes
    means = (shares.reshape(s, t * m, n) @ points).reshape(s, t, m, d) / counts[..., None]
    gaps = points.mT[:, None, None] - means[..., None]
    if kind in ("full", "tied"):
        rows, columns = torch.tril_indices(d, d, device=points.device)
        products = ((gaps * shares[..., None, :]) @ gaps.mT)[..., rows, columns]
        on_diagonal = rows == columns
    else:
        products = (gaps.square() * shares[..., None, :]).sum(-1)
        on_diagonal = torch.ones(d, dtype=torch.bool, device=points.device)
    if kind == "tied":
        spreads = (products.sum(2, keepdim=True) / sizes[..., None]).expand_as(products)
    else:
        spreads = products / counts[..., None]
    if kind == "spherical":
        spreads = spreads.mean(-1, keepdim=True).expand_as(spreads)
    return counts / sizes, means, spreads + settings.floor * on_diagonal.to(points.dtype)


def expect(batch: Batch, weights: Any, means: Any, spreads: Any) -> tuple[Any, Any]:
    """Share of each component in each point, and the log-likelihoods."""
    import torch

    d = means.shape[-1]
    gaps = batch.points.mT[:, None, None] - means[..., None]
    log_det, forms = log_det_and_forms(spreads, gaps)
    constant = weights.log() - 0.5 * (d * LOG_2_PI + log_det)
    logs = constant[..., None] - 0.5 * forms
    largest = logs.amax(2, keepdim=True)
    logs = logs - largest
    shares = torch.where(logs > -45.0, logs.exp(), 0.0)
    density = shares.sum(2, keepdim=True)
    inside = batch.inside[:, None]
    scores = torch.where(inside, (largest + density.log())[:, :, 0], 0.0).sum(-1)
    return shares / density * inside[:, :, None], scores


def run_rounds(batch: Batch, shares: Any, settings: FitSettings, max_iter: int) -> State:
    """Rounds of expectation maximization until each mixture converges, at most `max_iter`."""
    import torch

    s, t, m, _ = shares.shape
    device, dtype = shares.device, shares.dtype
    sizes = batch.inside.sum(1)[:, None].to(dtype)
    state = State(
        *maximize(batch, shares, settings),
        shares,
        torch.full((s, t), -torch.inf, dtype=dtype, device=device),
        torch.zeros((s, t), dtype=torch.int64, device=device),
        torch.zeros((s, t), dtype=torch.bool, device=device),
    )
    done, rows = state, torch.arange(s, device=device)
    for number in range(max_iter):
        if number % ROUNDS_PER_CLEARING == 0 and number > 0:
            # Sets all of whose starts have converged leave the batch.
            moving = torch.nonzero(~state.converged.all(1))[:, 0]
            done = _update(done, rows, state)
            if len(moving) == 0:
                return done
            if len(moving) < len(rows):
                rows = rows[moving]
                state = State(*(each[moving] for each in state))
                batch = Batch(batch.indices, batch.points[moving], batch.inside[moving])
                sizes = sizes[moving]
        mixture = maximize(batch, state.shares, settings)
        new_shares, scores = expect(batch, *mixture)
        gained = scores - state.scores
        # at most, not below: with tol=0 it stops when nothing is gained
        stops = (gained <= settings.tol * sizes) | (m == 1)
        new = State(*mixture, new_shares, scores, state.rounds + 1, stops)
        state = _keep(state, new)
    return _update(done, rows, state)


def _keep(old: State, new: State) -> State:
    """New mixtures, where the old ones had not converged."""
    import torch

    stay = old.converged
    fields = []
    for before, after in zip(old, new, strict=True):
        mask = stay.reshape(*stay.shape, *(1,) * (before.ndim - 2))
        fields.append(torch.where(mask, before, after))
    return State(*fields)


def _update(whole: State, rows: Any, part: State) -> State:
    """The whole batch with some of its sets replaced."""
    return State(*(a.index_copy(0, rows, b) for a, b in zip(whole, part, strict=True)))
