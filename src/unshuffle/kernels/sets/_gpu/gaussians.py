"""Products of Gaussian mixtures in PyTorch, and where Triton can, in its kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.device import has_triton
from unshuffle.kernels.sets._gpu.tensors import BATCH_NUMBERS, Place, fill_blocks
from unshuffle.kernels.sets._models.mixtures import Mixtures

# Matrices of this many columns and fewer are factored entry by entry, for all of them at once.
SMALL = 8
# Sets on the sides of a tile, and its warps: the fastest of those tried. The numbers of larger
# or more precise matrices take more registers, so that a thread has one pair of sets instead of 4.
TILE, LIGHT_TILE = (32, 16, 4), (16, 16, 8)


def log_det_and_forms(spreads: Any, gaps: Any) -> tuple[Any, Any]:
    """Logarithms of determinants (...), and z'A^-1 z of vectors z (..., n).

    `spreads` (..., p) are lower triangles row by row or diagonals of A, `gaps` (..., d, n) hold
    the vectors.
    """
    d = gaps.shape[-2]
    if spreads.shape[-1] == d:
        return spreads.log().sum(-1), (gaps.square() / spreads[..., None]).sum(-2)
    if d > SMALL:
        return _by_library(spreads, gaps)
    # LDL', a row at a time.
    log_det: Any = 0.0
    forms: Any = 0.0
    inverses: list[Any] = []
    heads: list[Any] = []
    ratios: list[list[Any]] = []
    for r in range(d):
        start = r * (r + 1) // 2
        row: list[Any] = []
        ratios.append([])
        pivot, head = spreads[..., start + r], gaps[..., r, :]
        for c in range(r):
            value = spreads[..., start + c]
            for k in range(c):
                value = value - row[k] * ratios[c][k]
            ratio = value * inverses[c]
            pivot = pivot - value * ratio
            head = head - ratio[..., None] * heads[c]
            row.append(value)
            ratios[r].append(ratio)
        inverses.append(1.0 / pivot)
        heads.append(head)
        log_det = log_det + pivot.log()
        forms = forms + head.square() * inverses[r][..., None]
    return log_det, forms


def _by_library(spreads: Any, gaps: Any) -> tuple[Any, Any]:
    """`log_det_and_forms` for larger matrices."""
    import torch

    d = gaps.shape[-2]
    rows, columns = torch.tril_indices(d, d, device=gaps.device)
    A = gaps.new_zeros((*spreads.shape[:-1], d, d))
    A[..., rows, columns] = spreads
    factor, failed = torch.linalg.cholesky_ex(A)
    log_det = 2.0 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    z = torch.linalg.solve_triangular(factor, gaps, upper=False)
    return torch.where(failed > 0, torch.nan, log_det), z.square().sum(-2)


def own_log_products(mixtures: Mixtures, place: Place) -> NDArray[np.float64]:
    """Logarithm of the integral of the square of each density, in double precision."""
    import torch

    logs, means, spreads = _padded(mixtures, 1)
    most = len(logs)
    found = np.empty(len(mixtures))
    step = max(1, BATCH_NUMBERS // (most**2 * (means.shape[1] + spreads.shape[1])))
    for start in range(0, len(mixtures), step):
        some = slice(start, min(start + step, len(mixtures)))
        a, x, A = (
            torch.as_tensor(np.moveaxis(each[..., some], -1, 0), device=place.device)
            for each in (logs, means, spreads)
        )
        terms = _log_terms(a[:, :, None], x[:, :, None], A[:, :, None], a[:, None], x[:, None],
                           A[:, None])  # fmt: skip
        found[some] = terms.flatten(1).logsumexp(1).cpu().numpy()
    return found


def _log_terms(a: Any, x: Any, A: Any, b: Any, y: Any, B: Any) -> Any:
    """Logarithms of products of Gaussians with log factors, means and covariances."""
    log_det, forms = log_det_and_forms(A + B, (x - y)[..., None])
    return a + b - 0.5 * (log_det + forms[..., 0])


def products(
    a: Mixtures, a_norms: NDArray[np.float64], b: Mixtures | None, b_norms: Any, place: Place
) -> Any:
    """Integrals of products of mixtures, divided by exponentials of both norms.

    If `b` is None, those of `a` with each other, exactly symmetric. No logarithm of a sum is
    taken: divided by the norms, no term is above 1.
    """
    import torch

    tables = [_table(a, a_norms, place)]
    if b is not None:
        tables.append(_table(b, b_norms, place))
    d, n_columns = a.means.shape[1], len(a if b is None else b)
    K = torch.empty((len(a), n_columns), dtype=place.dtype, device=place.device)
    diagonal = a.spreads.shape[1] == d
    # A covariance of one column is both; as a diagonal it is cheaper.
    if has_triton(place.device) and (diagonal or d <= SMALL):
        _fill_by_kernel(K, tables[0], tables[-1], d, diagonal, half=b is None)
    else:
        _fill_by_blocks(K, tables[0], tables[-1], d, half=b is None)
    return K


def _padded(mixtures: Mixtures, multiple: int) -> tuple[Any, Any, Any]:
    """Components as (m, n), (m, d, n) and (m, p, n) arrays; missing ones have weight zero."""
    counts = np.diff(mixtures.offsets)
    most, n = int(counts.max()), -(-len(mixtures) // multiple) * multiple
    d, p = mixtures.means.shape[1], mixtures.spreads.shape[1]
    holder = np.repeat(np.arange(len(mixtures)), counts)
    component = np.arange(len(mixtures.logs)) - np.repeat(mixtures.offsets[:-1], counts)
    logs = np.full((most, n), -np.inf)
    means, spreads = np.zeros((most, d, n)), np.zeros((most, p, n))
    on_diagonal = np.arange(d) if p == d else np.cumsum(np.arange(1, d + 1)) - 1
    spreads[:, on_diagonal] = 1.0
    logs[component, holder] = mixtures.logs
    means[component, :, holder] = mixtures.means
    spreads[component, :, holder] = mixtures.spreads
    return logs, means, spreads


def _table(mixtures: Mixtures, norms: NDArray[np.float64], place: Place) -> Any:
    """All numbers of the components, (m, 1 + d + p, n), n a multiple of the tile."""
    import torch

    logs, means, spreads = _padded(mixtures, max(*TILE, *LIGHT_TILE))
    logs[:, : len(norms)] -= norms
    table = np.concatenate([logs[:, None], means, spreads], axis=1)
    return torch.as_tensor(table, device=place.device, dtype=place.dtype).contiguous()


def _fill_by_kernel(K: Any, a: Any, b: Any, d: int, diagonal: bool, *, half: bool) -> None:
    from unshuffle.kernels.sets._gpu import pair_kernels as kernels

    run = kernels.diagonal_products if diagonal else kernels.full_products
    heavy = not diagonal and d * (d + 3) // 2 * K.element_size() > 80
    n_rows, n_columns, n_warps = LIGHT_TILE if heavy else TILE
    grid = -(-K.shape[0] // n_rows), -(-K.shape[1] // n_columns)
    run[grid](
        a, b, K, *K.shape, a.shape[2], b.shape[2], a.shape[0], b.shape[0], d, HALF=half,
        ROWS=n_rows, COLUMNS=n_columns, num_warps=n_warps,
    )  # fmt: skip


def _fill_by_blocks(K: Any, a: Any, b: Any, d: int, *, half: bool) -> None:
    """Blocks of rows and columns, in PyTorch alone."""
    # A set's numbers last: (n, m, 1 + d + p).
    a, b = (each.permute(2, 0, 1) for each in (a, b))
    numbers = a.shape[1] * b.shape[1] * a.shape[2]
    side = max(1, int((BATCH_NUMBERS / numbers) ** 0.5))

    def block(rows: slice, columns: slice) -> Any:
        pieces = a[rows][:, None, :, None], b[columns][None, :, None]
        parts = [
            part
            for each in pieces
            for part in (each[..., 0], each[..., 1 : 1 + d], each[..., 1 + d :])
        ]
        return _log_terms(*parts).exp().sum((2, 3))

    fill_blocks(K, block, side, half=half)
