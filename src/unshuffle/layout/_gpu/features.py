"""Items as tensors: checks that need no copy to the host, and the features to compare by."""

from math import frexp
from typing import Any

import numpy as np
from scipy import sparse

from unshuffle._core.arrays import check_resolved
from unshuffle._run.device import to_host
from unshuffle.layout._problem import EXACT_UP_TO, FARTHEST, check_items, leading_components

N_SAMPLED_ROWS = 4096


def check_tensor(X: Any) -> Any:
    """A copy of a tensor of items, (n_items, n_features), in floating point.

    What is wrong with others is said by the check for arrays.
    """
    import torch

    if X.ndim != 2 or 0 in X.shape or X.is_complex() or X.dtype == torch.bool or X.is_sparse:
        return torch.as_tensor(check_items(to_host(X), "linear"), device=X.device)
    exact = X.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8)
    rows = X.detach().to(torch.float32 if exact else torch.float64, copy=True)
    bounds = to_host(torch.stack([rows.amin(dim=0), rows.amax(dim=0)]))
    if not np.isfinite(bounds).all():
        check_items(to_host(rows), "linear")
    check_resolved(bounds, "X")
    return rows


def device_features(vectors: Any, n_components: int, device: Any, random: Any) -> Any:
    """Leading principal components, (n_items, n_features), with mean squared length 1."""
    import torch

    if sparse.issparse(vectors):
        vectors = leading_components(vectors, n_components, random)
    rows = torch.as_tensor(vectors, device=device)
    # Squares of the largest floats overflow. A power of two rounds nothing.
    most = 126 if rows.dtype == torch.float32 else 1000
    rows = rows * 2.0 ** min(-(frexp(_largest(rows))[1] + 1), most)
    rows -= (
        _sample(rows).median(dim=0).values
    )  # a value of each column, so that few digits are lost
    _pull_in_outliers(rows)
    rows -= rows.mean(dim=0, dtype=torch.float64).to(rows.dtype)
    largest = _largest(rows)
    if largest == 0.0:
        return torch.zeros((len(rows), 1), device=device)
    features = rows.div_(largest).float()
    if features.shape[1] > n_components:
        generator = torch.Generator(device).manual_seed(random.randint(2**31))
        features = _leading_components(features, n_components, generator)
    size = float(torch.linalg.vector_norm(features, dtype=torch.float64)) / len(features) ** 0.5
    return features / size


def _largest(rows: Any) -> float:
    return max(abs(float(each)) for each in rows.aminmax())


def _sample(rows: Any) -> Any:
    """Some rows at equal steps: enough for a median, which takes longest of all."""
    return rows[:: -(-len(rows) // N_SAMPLED_ROWS)]


def _pull_in_outliers(rows: Any) -> None:
    """Move rows closer that would hide all others in single precision, in place."""
    import torch

    lengths = torch.linalg.vector_norm(rows, ord=torch.inf, dim=1)
    typical = float(_sample(lengths).median())
    if typical == 0.0:
        positive = lengths[lengths > 0]
        typical = float(positive.median()) if len(positive) else 1.0
    far = lengths > FARTHEST * typical
    if bool(far.any()):
        apart = lengths[far].double() / lengths[~far].amax()
        rows[far] *= ((1.0 + apart.log10() / 50.0) / apart)[:, None].to(rows.dtype)


def _leading_components(features: Any, n_components: int, generator: Any) -> Any:
    """Coordinates along the leading eigenvectors of the covariance."""
    import torch

    n, d = features.shape
    basis = None
    if min(n, d) > EXACT_UP_TO:
        # Subspace iteration: products with random directions span the leading eigenvectors.
        basis = torch.randn((d, n_components + 10), generator=generator, device=features.device)
        for _ in range(4):
            basis = torch.linalg.qr(features.T @ (features @ basis))[0]
    elif d > n:
        basis = torch.linalg.qr(features.T)[0]
    inner = features if basis is None else features @ basis
    directions = torch.linalg.eigh((inner.T @ inner).double())[1]
    return inner @ directions[:, -n_components:].flip(1).float()


def tensor_positions(grid: Any, n_items: int) -> Any:
    """Row and column of each item of a grid that is a tensor, (n_items, 2)."""
    import torch

    held = (grid.reshape(-1) >= 0).nonzero()[:, 0] if n_items < grid.numel() else None
    items = grid.reshape(-1) if held is None else grid.reshape(-1)[held]
    if held is None:
        held = torch.arange(grid.numel(), device=grid.device)
    positions = torch.empty((n_items, 2), dtype=torch.int64, device=grid.device)
    positions[items] = torch.stack([held // grid.shape[1], held % grid.shape[1]], dim=1)
    return positions
