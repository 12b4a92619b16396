"""SetKernel: what all kernels between sets share. Fitting, Gram matrices in tiles, Dask."""

import pickle
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import table_shape
from unshuffle._bags import (
    BagEstimatorMixin,
    Bags,
    check_gap,
    listed,
)
from unshuffle._parallel import check_n_jobs, map_parallel, one_blas_thread
from unshuffle._parameters import check_count, check_memory, check_parameters
from unshuffle._progress import refitting

Array = NDArray[np.float64]
# Sets on each side of a tile: enough work for a thread, small enough to share out evenly.
TILE = 64


class SetModel(Protocol):
    """What all sets have in common, and how each is then described and compared with others.

    Descriptions have a length, and a method `part(start, stop)` that gives those of some sets.
    """

    def describe(self, bags: Bags, n_jobs: int | None) -> Any:
        """Descriptions of sets in canonical order, each from its own points alone."""

    def compare(self, a: Any, b: Any | None) -> Array:
        """Kernel between descriptions; None compares `a` with itself, exactly symmetric."""


class SetKernel(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Similarity between sets of points, as a transformer that gives Gram matrices.

    A subclass names its model in `_build` and its fitted attributes in `_store`; all else is here.
    """

    n_jobs: int | None
    _model: Any

    @abstractmethod
    def _build(self, bags: Bags) -> SetModel:
        """Model for sets like these, in canonical order; sets no attribute."""

    def _learn(self, bags: Bags) -> tuple[Any, Any]:
        """Model for these sets, and their descriptions."""
        model = self._build(bags)
        return model, model.describe(bags, self.n_jobs)

    @abstractmethod
    def _store(self, model: Any, sets: Any) -> None:
        """Set the attributes that tell of a model and of the descriptions of the fitted sets."""

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
            given = given.sorted()
            model, sets = self._learn(given)
            self._fitted_bags, self._model, self._fitted_sets = given, model, sets
            self._store(model, sets)
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
        return self._gram(self._described(given), self._fitted_descriptions())

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
        return self.fit(bags, y)._gram(self._fitted_descriptions())

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
        ready, a, b = self._ready_for(bags_a, bags_b, whole=True)
        return ready._gram(ready._described(a), None if b is None else ready._described(b))

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
        ready, a, b = self._ready_for(bags_a, bags_b)
        light = clone(ready)  # what travels to the workers holds no fitted sets
        light._model = ready._model
        return dask_gram(light, a, b, -(-int(block_size) // TILE) * TILE)

    def _described(self, bags: Bags) -> Any:
        return self._model.describe(bags, self.n_jobs)

    def _fitted_descriptions(self) -> Any:
        """Descriptions of the fitted sets, made again where they were left out of a pickle."""
        if self._fitted_sets is None:
            self._fitted_sets = self._described(self._fitted_bags)
        return self._fitted_sets

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # Points often take far less room than what describes them, and give it to the last digit.
        if _n_bytes(state.get("_fitted_sets")) > _n_bytes(state.get("_fitted_bags")):
            state["_fitted_sets"] = None
        return state

    def _ready_for(
        self, bags_a: Any, bags_b: Any, *, whole: bool = False
    ) -> tuple[Self, Bags, Bags | None]:
        """Kernel with a model, its own or one for these sets, and the sets in canonical order.

        Where the Gram matrix is wanted `whole`, its memory is asked for before sets are described.
        """
        ready, b, together = self, None, None
        if hasattr(self, "_fitted_bags"):
            a = self._bags_like_fitted(bags_a).sorted()
            if bags_b is not None:
                b = self._bags_like_fitted(bags_b).sorted()
        else:
            ready = clone(self)
            check_parameters(ready)
            check_n_jobs(self.n_jobs)
            a = Bags.of(bags_a, name="bags_a")
            ready._record_columns(bags_a, a)
            a, together = a.sorted(), a
            if bags_b is not None:
                b = Bags.of(bags_b, name="bags_b").sorted()
                ready._check_width(b)
                if a.sizes.max() > 1:
                    self._check_not_one_bag(bags_b, "bags_b", others="those of bags_a")
                if b.sizes.max() > 1:
                    self._check_not_one_bag(bags_a, "bags_a", others="those of bags_b")
                together = Bags(
                    np.concatenate([a.points, b.points]),
                    np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]]),
                )
            check_gap(together.points, "bags")
        if whole:
            check_set_gram_memory(len(a), len(a if b is None else b))
        if together is not None:
            ready._model = ready._build(together)
        return ready, a, b

    def _gram(self, a: Any, b: Any | None = None) -> Array:
        """Kernel between descriptions in tiles, those above the diagonal only where b is None."""
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
                K[rows, columns] = self._model.compare(part, None)
                return
            K[rows, columns] = self._model.compare(part, other.part(columns.start, columns.stop))
            if b is None:
                K[columns, rows] = K[rows, columns].T

        map_parallel(compute, corners, n_jobs=self.n_jobs)
        return K

    @property
    def _n_features_out(self) -> int:
        return len(self._fitted_bags)


def _n_bytes(value: Any) -> int:
    """Bytes of all arrays in descriptions of sets."""
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


def dask_gram(kernel: SetKernel, a: Bags, b: Bags | None, block_size: int) -> Any:
    """Kernel between sets in canonical order as a Dask array, nothing of it computed yet."""
    try:
        import cloudpickle
        from dask import array, delayed
    except ImportError as error:
        raise ImportError(
            "Gram matrices in blocks on a cluster need Dask: pip install 'unshuffle[dask]'"
        ) from error
    # All travels as plain bytes. Arrays of their own come out of a message wherever they stand in
    # it, at addresses for which BLAS takes other routes, and round differently.
    shared = delayed(cloudpickle.dumps(kernel), pure=False)
    describe, compare = delayed(_describe, pure=False), delayed(_compare, pure=False)

    def described(bags: Bags) -> tuple[list[Any], list[int]]:
        starts = range(0, len(bags), block_size)
        parts = [bags.part(start, min(start + block_size, len(bags))) for start in starts]
        tasks = [describe(shared, delayed(pickle.dumps(each), pure=False)) for each in parts]
        return tasks, [len(each) for each in parts]

    def block(i: int, j: int) -> Any:
        other = None if b is None and i == j else columns[j]
        shape = heights[i], widths[j]
        return array.from_delayed(compare(shared, rows[i], other), shape=shape, dtype=np.float64)

    rows, heights = described(a)
    columns, widths = (rows, heights) if b is None else described(b)
    blocks: list[list[Any]] = [[None] * len(widths) for _ in heights]
    for i in range(len(heights)):
        for j in range(i if b is None else 0, len(widths)):
            blocks[i][j] = block(i, j)
            if b is None and i != j:
                blocks[j][i] = blocks[i][j].T
    return array.block(blocks)


def _describe(kernel: bytes, bags: bytes) -> bytes:
    with one_blas_thread():
        return pickle.dumps(pickle.loads(kernel)._described(pickle.loads(bags)))


def _compare(kernel: bytes, a: bytes, b: bytes | None) -> Array:
    other = None if b is None else pickle.loads(b)
    found: Array = pickle.loads(kernel)._gram(pickle.loads(a), other)
    return found
