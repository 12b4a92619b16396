"""SetKernel: the base class of kernels between sets of points."""

import pickle
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import table_shape
from unshuffle._core.bags import (
    BagEstimatorMixin,
    Bags,
    check_gap,
    listed,
)
from unshuffle._core.parameters import Constraints, check_count, check_memory, check_parameters
from unshuffle._run.cluster import to_bytes
from unshuffle._run.parallel import check_n_jobs, map_parallel, one_blas_thread
from unshuffle._run.search import refitting
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import (
    Place,
    check_gram_memory,
    find_place,
    hosted,
    like_sets,
    sort_sets,
    stack_sets,
)

# Sets on each side of a tile: enough work for a thread, small enough to share out evenly.
TILE = 64


class SetKernel(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base class of kernels between sets of points.

    A set kernel is a transformer: `fit_transform` gives the Gram matrix of the fitted sets, and
    `transform` compares new sets with them, as `SVC(kernel="precomputed")` needs.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    To write a kernel of your own, subclass this class and implement `_build_model(sets)`. It
    receives the fitted sets: iterate over them for one (n_i, n_features) array per set, or use
    `sets.points` for all points. It returns a model with two methods:

    - `describe(sets, n_jobs)` returns one description per set: an array with a row for each set,
      or any object that has a length and can be sliced.
    - `compare(a, b)` returns the kernel between two such descriptions, shape (len(a), len(b)). If
      `b` is None, it compares `a` with itself.

    Optionally implement `_store(model, descriptions)` to set fitted attributes. Parameters go
    into `__init__`, as in any scikit-learn estimator. With an `n_jobs` parameter, the Gram matrix
    is computed by that many threads, in tiles of 64 by 64 sets.

    `ExpectedLikelihoodKernel`, `BhattacharyyaKernel`, `MeanMapKernel` and
    `SlicedWassersteinKernel` also work on a GPU: with device="cuda", or if the sets are tensors
    there (a list of (n_i, n_features) tensors, or one 3-D tensor). `fit_transform`, `transform`
    and `gram` then return a tensor for tensors, else an array, in single precision if all sets
    are, which is faster and takes half the memory. Fitted sets are kept in NumPy, so that
    pickles load anywhere. Memory on the GPU is checked first.

    Examples
    --------
    A kernel that compares the means of two sets:

    >>> import numpy as np
    >>> from unshuffle.kernels import SetKernel, rbf_kernel
    >>> class MeanModel:
    ...     def describe(self, sets, n_jobs):
    ...         return np.array([points.mean(axis=0) for points in sets])
    ...
    ...     def compare(self, a, b):
    ...         return rbf_kernel(a, b, gamma=1.0)
    >>> class CentroidKernel(SetKernel):
    ...     def _build_model(self, sets):
    ...         return MeanModel()
    >>> CentroidKernel().fit_transform([[[0.0], [2.0]], [[1.0], [2.0], [3.0]]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    _constraints: ClassVar[Constraints] = {}
    n_jobs: int | None = None
    device: Any = None
    _model: Any
    _described: Place | None = None  # where the descriptions of the fitted sets are
    _runs_on_device: ClassVar[bool] = False  # whether models have `describe_on` and `gram_on`

    @abstractmethod
    def _build_model(self, sets: Bags) -> Any:
        """Model for sorted sets like these; sets no attribute."""

    def _learn(self, sets: Bags, place: Place | None = None) -> tuple[Any, Any]:
        """Model for these sets, and their descriptions."""
        model = self._build_model_on(sets, place)
        if place is not None:
            return model, model.describe_on(sets, place)
        return model, model.describe(sets, self.n_jobs)

    def _build_model_on(self, sets: Bags, place: Place | None) -> Any:
        """Model for sorted sets; a subclass may build it on a device."""
        return self._build_model(sets)

    def _store(self, model: Any, descriptions: Any) -> None:
        """Set the fitted attributes; a subclass without any need not implement it."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Describe the sets that later ones are compared with.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order. The rows of a 2-D array are sets of one point.
        y : None
            Ignored.

        Returns
        -------
        self : SetKernel
            Fitted.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        place = self._find_place(X)
        given = hosted(X) if place else X
        sets = stack_sets(given) if place else Bags.of(given)
        check_gap(sets.points, "X")
        with refitting(self):
            self._record_columns(given, sets)
            self._fitted_sets = sort_sets(sets, place) if place else sets.sorted()
            self._model, self._descriptions = self._learn(self._fitted_sets, place)
            self._described = place
            self._store(self._model, self._descriptions)
        return self

    def transform(self, X: Any) -> Any:
        """Kernel between sets and the fitted ones.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`. Pass a single set as [points].

        Returns
        -------
        K : ndarray or tensor of shape (n_sets, n_fitted_sets)
            What `SVC(kernel="precomputed")` takes for prediction.
        """
        check_is_fitted(self, "_fitted_sets")
        place = self._find_place(X)
        sets = self._sets_like_fitted(X, place)
        check_set_gram_memory(len(sets), len(self._fitted_sets), place)
        K = self._gram(self._describe(sets, place), self._describe_fitted(place), place)
        return like_sets(K, X) if place else K

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to sets, and compare all pairs of them.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`.
        y : None
            Ignored.

        Returns
        -------
        K : ndarray or tensor of shape (n_sets, n_sets)
            Exactly symmetric; half of it is computed.
        """
        X = listed(X)
        n_sets, place = table_shape(X)[0], self._find_place(X)
        check_set_gram_memory(n_sets, n_sets, place)
        K = self.fit(X, y)._gram(self._describe_fitted(place), None, place)
        return like_sets(K, X) if place else K

    def gram(self, X: Any, Y: Any = None) -> Any:
        """Kernel between two collections of sets, neither of which need be the fitted one.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`.
        Y : list of array-like, 3-D array, 2-D array or None, default=None
            Other sets; None compares those of X with each other.

        Returns
        -------
        K : ndarray or tensor of shape (n_sets_X, n_sets_Y)
            Widths and directions are those of the fitted sets. If the estimator is not fitted,
            they come from X and Y together.
        """
        place = self._find_place(X, Y)
        ready, a, b = self._with_model(X, Y, place, whole=True)
        other = None if b is None else ready._describe(b, place)
        K = ready._gram(ready._describe(a, place), other, place)
        return like_sets(K, X) if place else K

    def dask_gram(self, X: Any, Y: Any = None, *, block_size: int = 500) -> Any:
        """Kernel between two collections of sets as a Dask array, computed where Dask runs.

        Use it for Gram matrices that take too long on one machine, or do not fit on it. One task
        describes each block of sets, and one compares each pair of blocks.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`.
        Y : list of array-like, 3-D array, 2-D array or None, default=None
            Other sets; None compares those of X with each other and computes half of the blocks.
        block_size : int, default=500
            Sets on each side of a block, rounded up to a multiple of 64. A larger value makes
            fewer tasks that take more memory each.

        Returns
        -------
        K : dask.array.Array of shape (n_sets_X, n_sets_Y)
            The same numbers as from `gram`.

        Notes
        -----
        It runs on the client that is active when the array is computed, else on local threads.
        The points of each block are sent with its task, so another worker can repeat it if one is
        lost. Dask may warn about a graph larger than 10 MB: those are the points.
        """
        check_count(block_size, "block_size")
        if self._find_place(X, Y) is not None:
            raise ValueError(
                "dask_gram runs on the CPU of Dask's workers. Leave `device` out, and call "
                ".cpu() on tensors."
            )
        ready, a, b = self._with_model(X, Y, None, whole=False)
        light = clone(ready)  # workers do not need the fitted sets
        light._model = ready._model
        return dask_gram(light, a, b, -(-int(block_size) // TILE) * TILE)

    def _find_place(self, *collections: Any) -> Place | None:
        """GPU to work on, or None for the CPU."""
        place = find_place(self.device, *collections)
        if place is not None and not self._runs_on_device:
            raise ValueError(
                f"{type(self).__name__} runs on the CPU, not on {place.device}. Leave `device` "
                "out, and call .cpu() on tensors."
            )
        return place

    def _sets_like_fitted(self, X: Any, place: Place | None) -> Bags:
        """Validated new sets, sorted."""
        if place is None:
            return self._bags_like_fitted(X).sorted()
        X = hosted(listed(X))
        self._check_names(X, reset=False)
        sets = stack_sets(X)
        if not self._bags_of_one:
            self._check_not_one_bag(X, "X")
        self._check_width(sets)
        return sort_sets(sets, place)

    def _describe(self, sets: Bags, place: Place | None = None) -> Any:
        if place is not None:
            return self._model.describe_on(sets, place)
        return self._model.describe(sets, self.n_jobs)

    def _describe_fitted(self, place: Place | None = None) -> Any:
        """Descriptions of the fitted sets, made again if they are elsewhere or were pickled."""
        if self._descriptions is None or self._described != place:
            self._descriptions = self._describe(self._fitted_sets, place)
            self._described = place
        return self._descriptions

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # Points often take far less room than descriptions, and reproduce them exactly.
        elsewhere = state.pop("_described", None) is not None
        if elsewhere or _n_bytes(state.get("_descriptions")) > _n_bytes(state.get("_fitted_sets")):
            state["_descriptions"] = None
        return state

    def _with_model(
        self, X: Any, Y: Any, place: Place | None, *, whole: bool
    ) -> tuple[Self, Bags, Bags | None]:
        """Kernel with a model, and X and Y as sorted sets; `whole` checks memory first."""
        if hasattr(self, "_fitted_sets"):
            a = self._sets_like_fitted(X, place)
            b = None if Y is None else self._sets_like_fitted(Y, place)
            if whole:
                check_set_gram_memory(len(a), len(a if b is None else b), place)
            return self, a, b
        ready, b = clone(self), None
        check_parameters(ready)
        check_n_jobs(self.n_jobs)
        if place is not None:
            X, Y = hosted(listed(X)), hosted(listed(Y))
        a = both = _sorted_sets(X, "X", place)
        ready._record_columns(X, a)
        if Y is not None:
            b = _sorted_sets(Y, "Y", place)
            ready._check_width(b)
            if a.sizes.max() > 1:
                self._check_not_one_bag(Y, "Y", others="those of X")
            if b.sizes.max() > 1:
                self._check_not_one_bag(X, "X", others="those of Y")
            offsets = np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]])
            both = Bags(np.concatenate([a.points, b.points]), offsets)
        check_gap(both.points, "X" if Y is None else "X and Y")
        if whole:
            check_set_gram_memory(len(a), len(a if b is None else b), place)
        ready._model = ready._build_model_on(both, place)
        return ready, a, b

    def _gram(self, a: Any, b: Any | None = None, place: Place | None = None) -> Any:
        """Kernel between descriptions in tiles; if b is None, only those above the diagonal."""
        if place is not None:
            return self._model.gram_on(a, b, place)
        other = a if b is None else b
        K = np.empty((len(a), len(other)))
        corners = [
            (i, j)
            for i in range(0, len(a), TILE)
            for j in range(i if b is None else 0, len(other), TILE)
        ]

        def compute(corner: tuple[int, int]) -> None:
            i, j = corner
            rows, columns = slice(i, min(i + TILE, len(a))), slice(j, min(j + TILE, len(other)))
            if b is None and i == j:
                K[rows, columns] = self._model.compare(a[rows], None)
                return
            K[rows, columns] = self._model.compare(a[rows], other[columns])
            if b is None:
                K[columns, rows] = K[rows, columns].T

        map_parallel(compute, corners, n_jobs=self.n_jobs)
        return K

    @property
    def _n_features_out(self) -> int:
        return len(self._fitted_sets)


def _n_bytes(value: Any) -> int:
    """Bytes of all arrays in descriptions of sets."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(_n_bytes(getattr(value, each.name)) for each in fields(value))
    return sum(map(_n_bytes, value)) if isinstance(value, tuple) else 0


def _sorted_sets(X: Any, name: str, place: Place | None) -> Bags:
    """Validated sets, sorted."""
    if place is None:
        return Bags.of(X, name=name).sorted()
    return sort_sets(stack_sets(X, name=name), place)


def check_set_gram_memory(n_rows: int, n_columns: int, place: Place | None = None) -> None:
    """Refuse a Gram matrix of sets that does not fit into free memory."""
    if place is not None:
        check_gram_memory(n_rows, n_columns, place)
        return
    check_memory(
        8 * n_rows * n_columns,
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} sets",
        instead="Pass fewer sets at a time, or use dask_gram, which computes it block by block.",
    )


def dask_gram(kernel: SetKernel, a: Bags, b: Bags | None, block_size: int) -> Any:
    """Kernel between sorted sets as a Dask array, not computed yet."""
    try:
        from dask import array, delayed
    except ImportError as error:
        raise ImportError(
            "Gram matrices in blocks on a cluster need Dask: pip install 'unshuffle[dask]'"
        ) from error
    # As plain bytes, for the reason in `send_calls`.
    shared = delayed(to_bytes(kernel), pure=False)
    describe, compare = delayed(_describe_block, pure=False), delayed(_compare_blocks, pure=False)

    def described(sets: Bags) -> tuple[list[Any], list[int]]:
        starts = range(0, len(sets), block_size)
        parts = [sets.part(start, min(start + block_size, len(sets))) for start in starts]
        tasks = [describe(shared, delayed(pickle.dumps(each), pure=False)) for each in parts]
        return tasks, [len(each) for each in parts]

    rows, heights = described(a)
    columns, widths = (rows, heights) if b is None else described(b)
    blocks: list[list[Any]] = [[None] * len(widths) for _ in heights]
    for i in range(len(heights)):
        for j in range(i if b is None else 0, len(widths)):
            other = None if b is None and i == j else columns[j]
            task = compare(shared, rows[i], other)
            shape = heights[i], widths[j]
            blocks[i][j] = array.from_delayed(task, shape=shape, dtype=np.float64)
            if b is None and i != j:
                blocks[j][i] = blocks[i][j].T
    return array.block(blocks)


def _describe_block(kernel: bytes, sets: bytes) -> bytes:
    with one_blas_thread():
        return pickle.dumps(pickle.loads(kernel)._describe(pickle.loads(sets)))


def _compare_blocks(kernel: bytes, a: bytes, b: bytes | None) -> Floats:
    other = None if b is None else pickle.loads(b)
    found: Floats = pickle.loads(kernel)._gram(pickle.loads(a), other)
    return found
