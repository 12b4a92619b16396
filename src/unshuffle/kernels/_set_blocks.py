"""Gram matrices of sets as Dask arrays, block by block."""

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags
from unshuffle._parallel import one_blas_thread
from unshuffle.kernels._checks import raise_no_dask


def dask_gram(kernel: Any, a: Bags, b: Bags | None, block_size: int) -> Any:
    """Kernel between sets as a Dask array.

    Parameters
    ----------
    kernel : SetKernel
        Knows what is common to all sets, and holds none itself.
    a : Bags
        Sets in canonical order.
    b : Bags or None
        Other sets; None compares `a` with itself, in half of the blocks.
    block_size : int
        Sets on each side of a block; larger makes fewer tasks.

    Returns
    -------
    K : dask.array.Array of shape (n_a, n_b)
        Nothing of it computed yet.
    """
    try:
        import cloudpickle
        from dask import array, delayed
    except ImportError as error:
        raise_no_dask(error)
    # All travels as plain bytes. Arrays of their own come out of a message wherever they stand in
    # it, at addresses for which BLAS takes other routes, and round differently.
    shared = delayed(cloudpickle.dumps(kernel), pure=False)
    summarize, compare = delayed(_summarize, pure=False), delayed(_compare, pure=False)

    def summaries(bags: Bags) -> list[Any]:
        parts = [
            pickle.dumps(bags.part(start, min(start + block_size, len(bags))))
            for start in range(0, len(bags), block_size)
        ]
        return [summarize(shared, delayed(each, pure=False)) for each in parts]

    def block(i: int, j: int) -> Any:
        other = None if b is None and i == j else columns[j]
        shape = heights[i], widths[j]
        return array.from_delayed(compare(shared, rows[i], other), shape=shape, dtype=np.float64)

    rows = summaries(a)
    columns = rows if b is None else summaries(b)
    heights, widths = _sizes(a, block_size), _sizes(a if b is None else b, block_size)
    blocks: list[list[Any]] = [[None] * len(widths) for _ in heights]
    for i in range(len(heights)):
        for j in range(i if b is None else 0, len(widths)):
            blocks[i][j] = block(i, j)
            if b is None and i != j:
                blocks[j][i] = blocks[i][j].T
    return array.block(blocks)


def _summarize(kernel: bytes, bags: bytes) -> bytes:
    with one_blas_thread():
        return pickle.dumps(pickle.loads(kernel)._summarize(pickle.loads(bags)))


def _compare(kernel: bytes, a: bytes, b: bytes | None) -> NDArray[np.float64]:
    other = None if b is None else pickle.loads(b)
    found: NDArray[np.float64] = pickle.loads(kernel)._gram(pickle.loads(a), other)
    return found


def _sizes(bags: Bags, block_size: int) -> list[int]:
    n_sets = len(bags)
    return [min(block_size, n_sets - start) for start in range(0, n_sets, block_size)]
