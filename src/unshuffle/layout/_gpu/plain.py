"""Averages and exchanges in plain PyTorch, for devices that Triton does not compile for.

Both functions do what those of `triton_kernels` do, in the same order.
"""

from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.layout._gpu.groups import FEW, N_SAMPLED, REACH, Groups, coarse_sizes


def average(planes: Any, bandwidth: float, *, wrap: bool) -> Any:
    """Gaussian averages of planes (n_planes, rows, columns), at reduced resolution if wide."""
    size = planes.shape[1:]
    for n_bins in coarse_sizes(size[0], size[1], bandwidth):
        for axis in (1, 2):
            planes = _pool(planes, axis, n_bins[axis - 1])
    for axis in (1, 2):
        planes = _blur(planes, axis, bandwidth * planes.shape[axis] / size[axis - 1], wrap)
    if planes.shape[1:] != size:
        for axis in (2, 1):
            planes = _enlarge(planes, axis, size[axis - 1], wrap)
    return planes


def typical(values: Any, items: Any, field: Any, size: tuple[int, int], step: int) -> Any:
    """Variation of the field over `step` cells; and that times the deviation of the items."""
    import torch

    cell = np.arange(0, len(items), len(items) // N_SAMPLED | 1)[:N_SAMPLED]
    other: Any = 0
    for place, length in zip(np.divmod(cell, size[1]), size, strict=True):
        near = np.where(place + step < length, place + step, np.maximum(place - step, 0))
        other = other * length + near
    here = torch.as_tensor(cell, device=items.device)
    slope = (field[:, here] - field[:, torch.as_tensor(other, device=items.device)]) ** 2
    stray = (values[:, here] - field[:, here]) ** 2
    sums = torch.stack([slope.sum(dim=0), stray.sum(dim=0)])
    known = (items[here] >= 0) & ~sums.isnan().any(dim=0)
    slopes, strays = (torch.where(known, sums, 0.0).sum(dim=1) / known.sum().clamp(min=1)).sqrt()
    return torch.stack([slopes, slopes * strays])


def exchange(
    values: Any, items: Any, field: Any, scale: Any, groups: Groups, number: int, *,
    has_empty: bool,
) -> None:  # fmt: skip
    """Exchange items within groups of cells where that gains; `scale` is that of `typical`."""
    import torch

    row = groups.table[number].tolist()
    own, heat = groups.factors[number].tolist()
    cells, inside = _group_cells(row, groups.size, items.device)
    held = torch.where(inside, items[cells], -1)
    z, around = values[:, cells] * inside, field[:, cells]
    around[0].masked_fill_(~inside, torch.nan)
    costs = 0.5 * (around * around).sum(dim=0)
    around = around - own * z
    if len(values) == FEW:
        bits = _hashed(cells, row[-1])
        noise = torch.stack([bits >> 10 * k & 1023 for k in range(FEW)]).float() - 511.5
        around += heat * scale[0] * (12**0.5 / 1024) * noise
    benefits = torch.einsum("fgi,fgj->gij", around, z)  # of the item in cell j, if it were in i
    if len(values) > FEW:
        half = [_hashed(2 * cells + k, row[-1]) for k in range(groups.n // 4)]
        noise = torch.stack([half[k // 4] >> 8 * (k % 4) & 255 for k in range(groups.n)], dim=-1)
        benefits += heat * scale[1] * (12**0.5 / 256) * (noise.float() - 127.5)
    if has_empty:
        benefits -= costs[:, :, None] * (held >= 0)[:, None, :]
    source = torch.arange(groups.n, device=items.device).expand_as(cells)
    for partner in tournament(groups.n):
        other = torch.as_tensor(partner, device=items.device)
        stay, move = (benefits[:, range(groups.n), each] for each in (range(groups.n), partner))
        gains = move - stay
        swap = gains + gains[:, other] > 0
        benefits = torch.where(swap[:, None, :], benefits[..., other], benefits)
        source = torch.where(swap, source[:, other], source)
    values[:, cells[inside]] = torch.gather(z, 2, source.expand_as(z))[:, inside]
    items[cells[inside]] = torch.gather(held, 1, source)[inside]


def _hashed(cells: Any, seed: int) -> Any:
    """Random bits for each cell, 32 of them."""
    bits = cells * 0x9E3779B1 + seed & 0xFFFFFFFF
    bits = (bits ^ bits >> 16) * 0x85EBCA77 & 0xFFFFFFFF
    bits = (bits ^ bits >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return bits ^ bits >> 16


@cache
def tournament(n: int) -> NDArray[np.intp]:
    """Partner of each of n players in each round, shape (n - 1, n): all pairs meet once."""
    partners = np.empty((n - 1, n), dtype=np.intp)
    for r in range(n - 1):
        place = np.append(0, 1 + (np.arange(n - 1) + r) % (n - 1))
        partners[r] = np.argsort(place)[n - 1 - place]
    return partners


def _group_cells(row: list[int], size: tuple[int, int], device: Any) -> tuple[Any, Any]:
    """Cells of each group of a pass, (n_groups, n), and whether they are on the grid."""
    import torch

    n_groups, n_across, *lattice = row[:4]
    spacing, corner, roll = row[4:6], row[6:8], row[8:10]
    along = []
    for count, n, apart, before in zip(
        (n_groups // n_across, n_across), lattice, spacing, corner, strict=True
    ):
        number = torch.arange(count, device=device)
        first = (number // apart) * (n * apart) + number % apart - before
        along.append(first[:, None] + apart * torch.arange(n, device=device))
    y, x = torch.broadcast_tensors(along[0][:, None, :, None], along[1][None, :, None, :])
    rows, columns = size
    inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
    cells = (y + roll[0]) % rows * columns + (x + roll[1]) % columns
    cells = torch.where(inside, cells, 0)
    n = lattice[0] * lattice[1]
    return cells.reshape(-1, n), inside.reshape(-1, n)


def _pool(planes: Any, axis: int, n_bins: int) -> Any:
    """Mean over equal parts of an axis, which may cut cells."""
    size = planes.shape[axis]
    if n_bins == size:
        return planes
    length = np.float32(size) / np.float32(n_bins)
    begin = np.arange(n_bins, dtype=np.float32) * length
    end = begin + length
    cell = np.floor(begin).astype(np.int64) + np.arange(size // n_bins + 2)[:, None]
    share = np.minimum(end, cell + 1) - np.maximum(begin, cell)
    share = np.where((cell < size) & (share > 0), share / length, 0.0)
    return _sum_taps(planes, axis, np.minimum(cell, size - 1), share)


def _blur(planes: Any, axis: int, bandwidth: float, wrap: bool) -> Any:
    """Gaussian average along an axis, mirrored at its ends, or with `wrap` repeated."""
    size, reach = planes.shape[axis], ceil(REACH * bandwidth)
    if size == 1:
        return planes
    steps = np.arange(-reach, reach + 1)[:, None]
    weights = np.exp(-0.5 * (steps / bandwidth) ** 2)
    cell = np.arange(size) + steps
    cell = cell % size if wrap else cell % (2 * size)
    cell = np.where(cell < size, cell, 2 * size - 1 - cell)
    return _sum_taps(planes, axis, cell, np.broadcast_to(weights / weights.sum(), cell.shape))


def _enlarge(planes: Any, axis: int, size: int, wrap: bool) -> Any:
    """Interpolate along an axis."""
    n_samples = planes.shape[axis]
    place = (np.arange(size) + 0.5) * n_samples / size - 0.5
    first = np.floor(place).astype(np.int64)
    share = place - first
    cell = np.stack([first, first + 1])
    cell = cell % n_samples if wrap else np.clip(cell, 0, n_samples - 1)
    return _sum_taps(planes, axis, cell, np.stack([1.0 - share, share]))


def _sum_taps(planes: Any, axis: int, cells: NDArray[Any], weights: NDArray[Any]) -> Any:
    """Weighted sum of cells along an axis; cells and weights are (n_taps, n_out)."""
    import torch

    shape = [-1 if k == axis else 1 for k in range(3)]
    index = torch.as_tensor(cells, device=planes.device)
    share = torch.as_tensor(weights.astype(np.float32), device=planes.device)
    total: Any = 0.0
    for where, weight in zip(index, share, strict=True):
        total = total + weight.reshape(shape) * planes.index_select(axis, where)
    return total
