"""What all kernels between sets share: fitting, Gram blocks, and their computation in tiles."""

import pickle
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import table_shape
from unshuffle._bag_estimator import BagEstimatorMixin
from unshuffle._bags import Bags, check_bag_width, check_gap, check_not_one_bag, listed
from unshuffle._parallel import check_n_jobs, map_parallel, one_blas_thread
from unshuffle._parameters import check_count, check_memory, check_parameters
from unshuffle._progress import refitting

Array = NDArray[np.float64]
# Sets on each side of a tile: enough work for a thread, small enough to share out evenly.
TILE = 64


class Summaries(Protocol):
    """What a kernel keeps of each set, for many sets: mixtures, mean maps, quantiles."""

    def __len__(self) -> int: ...

    def part(self, start: int, stop: int) -> "Summaries":
        """Summaries of the sets from `start` up to `stop`."""


class SetKernel(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Similarity between sets of points, as a transformer that gives Gram matrices.

    A kernel of this kind describes each set by a summary in which order has no part, and compares
    summaries. A subclass says how: `_settle` learns from the fitted sets what all sets have in
    common (widths, directions), `_summarize` describes sets, `_block` compares them.
    """

    n_jobs: int | None

    @abstractmethod
    def _settle(self, bags: Bags) -> None:
        """Learn what is common to all sets, as attributes that end in an underscore."""

    @abstractmethod
    def _summarize(self, bags: Bags) -> Any:
        """Summaries of sets in canonical order, each from its own points alone."""

    def _learn(self, bags: Bags) -> Any:
        """Settle what is common to all sets, and summarize these."""
        self._settle(bags)
        return self._summarize(bags)

    @abstractmethod
    def _block(self, a: Any, b: Any | None) -> Array:
        """Kernel between summaries; None compares `a` with itself, exactly symmetric."""

    def fit(self, bags: Any, y: Any = None) -> Self:
        """Summarize the sets that later ones are compared with.

        Parameters
        ----------
        bags : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order; the rows of a 2-D array are sets of one point.
        y : None
            Not used.

        Returns
        -------
        self : SetKernel
            Fitted.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        given = Bags.of(bags)
        check_gap(given.points, "bags")
        with refitting(self):
            self._record_columns(bags, given)
            self._fitted_bags = given.sorted()
            self._fitted_sets = self._learn(self._fitted_bags)
        return self

    def transform(self, bags: Any) -> Array:
        """Kernel between sets and the fitted ones.

        Parameters
        ----------
        bags : what `fit` takes
            New sets, or the fitted ones; a single one as [bag].

        Returns
        -------
        K : ndarray of shape (n_sets, n_fitted_sets)
            What `SVC(kernel="precomputed")` takes for prediction.
        """
        check_is_fitted(self, "_fitted_bags")
        given = self._bags_like_fitted(bags).sorted()
        check_set_gram_memory(len(given), len(self._fitted_bags))
        return self._gram(self._summarize(given), self._summaries())

    def fit_transform(self, bags: Any, y: Any = None) -> Array:
        """Kernel between all pairs of the sets, which are fitted.

        Parameters
        ----------
        bags : what `fit` takes
            Sets of points in any order.
        y : None
            Not used.

        Returns
        -------
        K : ndarray of shape (n_sets, n_sets)
            Exactly symmetric; half of it is computed.
        """
        bags = listed(bags)
        n_sets = table_shape(bags)[0]
        check_set_gram_memory(n_sets, n_sets)
        return self.fit(bags, y)._gram(self._summaries())

    def kernel(self, bags_a: Any, bags_b: Any = None) -> Array:
        """Kernel between two collections of sets, neither of which need be the fitted one.

        Parameters
        ----------
        bags_a : what `fit` takes
            Sets of points.
        bags_b : what `fit` takes, or None, default=None
            Other sets; None compares `bags_a` with each other.

        Returns
        -------
        K : ndarray of shape (n_sets_a, n_sets_b)
            With the widths and directions of the fitted sets; of an estimator that is not fitted,
            with those that the given sets have together.
        """
        settled, a, b = self._settled_on(bags_a, bags_b, whole=True)
        return settled._gram(settled._summarize(a), None if b is None else settled._summarize(b))

    def dask_gram(self, bags_a: Any, bags_b: Any = None, *, block_size: int = 500) -> Any:
        """Kernel between two collections of sets as a Dask array, computed where Dask runs.

        For Gram matrices that one machine is too slow for, or cannot hold. Nothing but the widths
        and directions that all sets have in common is computed before the array is; then each
        block of sets is summarized by a task of its own, and each two of these are compared by
        another.

        Parameters
        ----------
        bags_a : what `fit` takes
            Sets of points.
        bags_b : what `fit` takes, or None, default=None
            Other sets; None compares `bags_a` with each other, half of the blocks being computed
            and the others mirrored.
        block_size : int, default=500
            Sets on each side of a block, rounded up to a multiple of 64. Larger makes fewer tasks,
            each of which takes more memory.

        Returns
        -------
        K : dask.array.Array of shape (n_sets_a, n_sets_b)
            The same numbers as `kernel` gives. ``K.compute()`` brings them all here; ``K.to_zarr``
            and the like store them block by block.

        Notes
        -----
        It runs on the client that is active when the array is computed, or on the threads of this
        process where there is none. The points of each block travel with its task, so what is
        lost with a worker is computed again by another. Dask itself may say that a graph of more
        than 10 MB is large: that is the points, which are sent once.
        """
        check_count(block_size, "block_size")
        settled, a, b = self._settled_on(bags_a, bags_b)
        return dask_gram(settled._without_sets(), a, b, -(-int(block_size) // TILE) * TILE)

    def _without_sets(self) -> Self:
        """The same kernel without the sets that it was fitted to, for it to travel light."""
        light = copy(self)
        light.__dict__.pop("_fitted_sets", None)
        light.__dict__.pop("_fitted_bags", None)
        return light

    def _summaries(self) -> Any:
        """Summaries of the fitted sets, made again where they were left out of a pickle."""
        if self._fitted_sets is None:
            self._fitted_sets = self._summarize(self._fitted_bags)
        return self._fitted_sets

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # Points often take far less room than what describes them, and give it to the last digit.
        if _n_bytes(state.get("_fitted_sets")) > _n_bytes(state.get("_fitted_bags")):
            state["_fitted_sets"] = None
        return state

    def _settled_on(
        self, bags_a: Any, bags_b: Any, *, whole: bool = False
    ) -> tuple[Self, Bags, Bags | None]:
        """Kernel that knows what is common to all sets, and the sets in canonical order.

        Where the Gram matrix is wanted `whole`, its memory is asked for before sets are described.
        """
        if hasattr(self, "_fitted_bags"):
            a, b = self._bags_like_fitted(bags_a).sorted(), None
            if bags_b is not None:
                b = self._bags_like_fitted(bags_b).sorted()
            if whole:
                check_set_gram_memory(len(a), len(a if b is None else b))
            return self, a, b
        settled = clone(self)
        check_parameters(settled)
        check_n_jobs(self.n_jobs)
        a = Bags.of(bags_a, name="bags_a")
        settled._record_columns(bags_a, a)
        a, b, together = a.sorted(), None, a
        if bags_b is not None:
            b = Bags.of(bags_b, name="bags_b").sorted()
            check_bag_width(b.width, a.width, type(self).__name__)
            if a.sizes.max() > 1:
                check_not_one_bag(bags_b, "bags_b", others="those of bags_a")
            if b.sizes.max() > 1:
                check_not_one_bag(bags_a, "bags_a", others="those of bags_b")
            together = Bags(
                np.concatenate([a.points, b.points]),
                np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]),
            )
        check_gap(together.points, "bags")
        if whole:
            check_set_gram_memory(len(a), len(a if b is None else b))
        settled._settle(together)
        return settled, a, b

    def _gram(self, a: Any, b: Any | None = None) -> Array:
        """Kernel between summaries in tiles, those above the diagonal only where b is None."""
        other = a if b is None else b
        check_set_gram_memory(len(a), len(other))
        K = np.empty((len(a), len(other)))
        corners = [
            (i, j)
            for i in range(0, len(a), TILE)
            for j in range(i if b is None else 0, len(other), TILE)
        ]

        def compute(corner: tuple[int, int]) -> None:
            i, j = corner
            rows, columns = slice(i, min(i + TILE, len(a))), slice(j, min(j + TILE, len(other)))
            part = a.part(rows.start, rows.stop)
            if b is None and i == j:
                K[rows, columns] = self._block(part, None)
                return
            K[rows, columns] = self._block(part, other.part(columns.start, columns.stop))
            if b is None:
                K[columns, rows] = K[rows, columns].T

        map_parallel(compute, corners, n_jobs=self.n_jobs)
        return K

    @property
    def _n_features_out(self) -> int:
        return len(self._fitted_bags)


def _n_bytes(value: Any) -> int:
    """Bytes of all arrays in summaries of sets."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(_n_bytes(getattr(value, each.name)) for each in fields(value))
    return sum(map(_n_bytes, value)) if isinstance(value, tuple) else 0


def check_set_gram_memory(n_rows: int, n_columns: int) -> None:
    """Refuse a Gram matrix of sets that would not fit into the memory that is free now."""
    check_memory(
        8 * n_rows * n_columns,
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} sets",
        instead="Pass fewer sets at a time, or use dask_gram, which gives it block by block.",
    )


def raise_no_dask(error: Exception) -> NoReturn:
    """Say how to get Dask."""
    raise ImportError(
        "Gram matrices in blocks on a cluster need Dask: pip install 'unshuffle[dask]'"
    ) from error


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
