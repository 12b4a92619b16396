"""Sets on a GPU: how they arrive and leave, are sorted, and are cut into batches.

The points of all sets are kept in NumPy, where they are checked, models are built and pickles are
made. Work on a device copies them there: 40 MB for 20,000 sets of 50 points in five dimensions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.bags import Bags, is_list_of_bags
from unshuffle._run.device import check_device_memory, find_device, is_tensor, to_host

# Sets in a batch are padded to the largest of them: at most this share larger than the smallest.
PADDING = 0.25
# Most numbers of a tensor that is formed on the way: 256 MB of float64.
BATCH_NUMBERS = 2**25


class Place(NamedTuple):
    """Where sets are compared."""

    device: Any  # a torch.device
    dtype: Any  # of the Gram matrix: torch.float32 if the sets are single precision


class Batch(NamedTuple):
    """Sets of similar size, padded by zeros to the same one."""

    indices: NDArray[np.intp]  # of the sets
    points: Any  # (n_sets, n_points, d)
    inside: Any  # (n_sets, n_points): which of them are points


def find_place(device: Any, *collections: Any) -> Place | None:
    """Where to compare sets; None is on the CPU."""
    pieces = [piece for each in collections for piece in _pieces(each)]
    found = find_device(device, *pieces)
    if found is None:
        return None
    import torch

    single = bool(pieces) and all(_is_single(piece) for piece in pieces)
    return Place(found, torch.float32 if single else torch.float64)


def _pieces(sets: Any) -> list[Any]:
    if sets is None:
        return []
    return list(sets) if isinstance(sets, list | tuple) else [sets]


def _is_single(piece: Any) -> bool:
    return str(getattr(piece, "dtype", "")).rpartition(".")[2] in (
        "float32",
        "float16",
        "bfloat16",
    )


def hosted(sets: Any) -> Any:
    """Sets that are tensors as NumPy arrays, copied in one go; others unchanged."""
    if is_tensor(sets):
        return _host_numbers(sets)
    pieces = _pieces(sets)
    if not pieces or not all(is_tensor(piece) for piece in pieces):
        return [_host_numbers(piece) for piece in pieces] if any(map(is_tensor, pieces)) else sets
    if any(piece.ndim != 2 or piece.shape[1] != pieces[0].shape[1] for piece in pieces):
        return [_host_numbers(piece) for piece in pieces]  # to be refused
    import torch

    ends = np.cumsum([len(piece) for piece in pieces])[:-1]
    return np.split(_host_numbers(torch.cat(pieces)), ends)


def _host_numbers(piece: Any) -> Any:
    if not is_tensor(piece):
        return piece
    # NumPy has no bfloat16.
    return to_host(piece.double() if piece.is_floating_point() else piece)


def stack_sets(sets: Any, *, name: str = "X") -> Bags:
    """Validated sets. Those of plain numbers are checked all at once, not one by one."""
    pieces = list(sets) if _is_numeric(sets, 3) else sets
    if (
        is_list_of_bags(pieces)
        and all(_is_numeric(piece, 2) and len(piece) for piece in pieces)
        and len({piece.shape[1] for piece in pieces}) == 1
    ):
        try:
            whole = Bags.of([np.concatenate(pieces)])
        except ValueError:
            return Bags.of(sets, name=name)  # says which set is wrong
        sizes = [len(piece) for piece in pieces]
        return Bags(whole.points, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))
    return Bags.of(sets, name=name)


def _is_numeric(value: Any, n_axes: int) -> bool:
    return type(value) is np.ndarray and value.ndim == n_axes and value.dtype.kind in "biuf"


def sort_sets(sets: Bags, place: Place) -> Bags:
    """Same sets with the points of each in canonical order, sorted on the device."""
    return Bags(sort_points(sets.points, place, holders(sets)), sets.offsets)


def sort_points(points: Any, place: Place, holder: NDArray[np.intp] | None = None) -> Any:
    """Points in canonical order, those of each holder together."""
    import torch

    numbers = torch.as_tensor(points, device=place.device)
    keys = [*numbers.T.flip(0)]
    if holder is not None:
        keys.append(torch.as_tensor(holder, device=place.device))
    order = torch.arange(len(numbers), device=place.device)
    for key in keys:
        order = order[torch.sort(key[order], stable=True).indices]
    return to_host(numbers[order])


def holders(sets: Bags) -> NDArray[np.intp]:
    """Index of the set of each point."""
    return np.repeat(np.arange(len(sets)), sets.sizes)


def like_sets(K: Any, sets: Any) -> Any:
    """A matrix in the form of the sets: a tensor on their device, or an array."""
    tensors = [piece for piece in _pieces(sets) if is_tensor(piece)]
    return K.to(tensors[0].device) if tensors else to_host(K)


def batches(
    sets: Bags, place: Place, numbers_per_point: float, dtype: Any, *, padding: float = PADDING
) -> Iterator[Batch]:
    """Sets in batches of similar sizes, each with at most `BATCH_NUMBERS` numbers on the way.

    `numbers_per_point` is how many a point takes in the largest tensor that is formed. Sets are
    padded by at most the share `padding` of their size.
    """
    import torch

    points = torch.as_tensor(sets.points, device=place.device, dtype=dtype)
    sizes = sets.sizes
    by_size = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(by_size):
        smallest = sizes[by_size[start]]
        stop = int(np.searchsorted(sizes[by_size], smallest + padding * smallest, side="right"))
        largest = int(sizes[by_size[stop - 1]])
        most = max(1, int(BATCH_NUMBERS / (largest * max(1.0, numbers_per_point))))
        chosen = by_size[start : min(stop, start + most)]
        start += len(chosen)
        largest = int(sizes[chosen].max())
        check_device_memory(
            place.device,
            6.0 * 8.0 * len(chosen) * largest * numbers_per_point,
            what=f"Describing {len(chosen):,} sets of up to {largest:,} points",
            instead="Pass smaller sets, or free memory on the device.",
        )
        within = torch.arange(largest, device=place.device)
        inside = within < torch.as_tensor(sizes[chosen], device=place.device)[:, None]
        first = torch.as_tensor(sets.offsets[chosen], device=place.device)
        rows = torch.where(inside, first[:, None] + within, 0)
        yield Batch(chosen, torch.where(inside[..., None], points[rows], 0.0), inside)


def check_gram_memory(n_rows: int, n_columns: int, place: Place) -> None:
    """Refuse a Gram matrix that does not fit into the free memory of the device."""
    check_device_memory(
        place.device,
        float(place.dtype.itemsize) * n_rows * n_columns,
        what=f"The {str(place.dtype).rpartition('.')[2]} kernel matrix of {n_rows:,} by "
        f"{n_columns:,} sets",
        instead="Pass fewer sets at a time, or float32 sets, whose matrix takes half.",
    )


def fill_blocks(K: Any, block: Any, side: int, *, half: bool) -> None:
    """Fill a matrix by a function of slices of rows and columns.

    With `half`, blocks above the diagonal are computed and mirrored: exactly symmetric.
    """
    n_rows, n_columns = K.shape
    for i in range(0, n_rows, side):
        rows = slice(i, min(i + side, n_rows))
        for j in range(i if half else 0, n_columns, side):
            columns = slice(j, min(j + side, n_columns))
            found = block(rows, columns)
            if half and i == j:
                found = found.triu() + found.triu(1).T
            K[rows, columns] = found
            if half and i != j:
                K[columns, rows] = found.T


def mirror_upper(K: Any, side: int = 4096) -> None:
    """Copy the upper triangle of a square tensor onto the lower one, in place."""
    for start in range(0, len(K), side):
        stop = min(start + side, len(K))
        K[stop:, start:stop] = K[start:stop, stop:].T
        block = K[start:stop, start:stop].triu()
        K[start:stop, start:stop] = block + block.triu(1).T
