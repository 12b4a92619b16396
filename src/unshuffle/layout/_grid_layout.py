"""GridLayout: the estimator that puts similar items side by side, one in each cell."""

from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from unshuffle._core.arrays import (
    check_column_names,
    check_length,
    check_not_file,
    check_resolved,
    is_text,
)
from unshuffle._core.parameters import (
    FLAG,
    FUNCTION,
    Constraints,
    check_parameters,
    number,
    option,
)
from unshuffle._run.device import find_device, is_tensor, like, to_host
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.search import Callback, Search, fit_by_search
from unshuffle._run.types import Indices
from unshuffle.layout._cpu.start import check_start, make_way
from unshuffle.layout._paper import solve_classic
from unshuffle.layout._problem import (
    Layout,
    LayoutProblem,
    append_items,
    check_items,
    count_checked,
    is_tabular,
)
from unshuffle.layout._shape import Shape, check_frozen_cells
from unshuffle.metrics import distance_preservation_quality

# Above so many items the score is estimated from 640 of them, or from fewer where each takes
# long: 64 of a million take some ten seconds.
SCORED_ITEMS = 4096
SCORED_ROWS, LEAST_SCORED_ROWS = 640, 64
SCORED_PAIRS = 10**7
EMPTY = -1


class GridLayout(BaseEstimator):
    """Lay out items so that similar ones are side by side, one item in each cell.

    The cells form a rectangle, a torus or any mask, or lie at any points of the plane.

    Parameters
    ----------
    shape : (int, int), array of bool, array of shape (n_cells, 2), or None, default=None
        Rows and columns; or a mask that is True where items may be; or the row and column of
        each cell. None is a nearly square rectangle. Surplus cells stay empty.
    wrap : bool, default=False
        Whether opposite edges meet, as on a torus.
    kernel : str, callable, list of these, or None, default=None
        Similarity of items. None compares texts (a list of str) by "text", and features by
        Euclidean distance ("linear"), but with quality="classic" by "rbf", as the paper does. Also
        "laplacian", "chi2", "geodesic", "precomputed" (X is a kernel matrix), a callable, or a
        list, which is summed (X is one collection for all of them, or a list with one for each).
    quality : {"fast", "balanced", "best", "classic"}, default="balanced"
        How much time to spend. "fast" only swaps items. "balanced" also assigns them within
        tiles and takes a few times longer; "best" takes seven times longer again. On a GPU, all
        three swap items within groups, each about four times longer than the last. "classic" is
        the paper's method with a kernel of one width; its time grows with the cube of n_items.
    gamma : float, list of these, or None, default=None
        Inverse width of "rbf", "laplacian", "chi2" and "geodesic". Larger values resolve finer
        differences. None is one over the median (squared) distance.
    random_state : int, RandomState instance or None, default=None
        Seed. Different seeds give different layouts of about the same quality.
    n_jobs : int or None, default=None
        Number of threads. More are faster above some thousand items. The result is the same.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`, whose `objective` is the
        agreement of items with their surroundings ("classic": the HSIC) and whose `permutation`
        is the cell of each item. Return True to stop and keep the layout so far.
    device : str, torch.device or None, default=None
        "cuda" lays out on a GPU, with PyTorch. None works where X is: on a GPU if X is a tensor
        there, else on the CPU. Points and "classic" need the CPU.

    Attributes
    ----------
    grid_ : ndarray of shape (rows, columns), or (n_cells,) where `shape` holds points
        Item in each cell; -1 where it is empty or outside the mask. A tensor if X is one on the
        GPU that was used; so is `positions_`.
    positions_ : ndarray of shape (n_items, 2)
        Row and column of each item.
    score_ : float
        Distance preservation quality with p = 16: near 1 if the nearest cells hold the most
        similar items. Computed on first access; above 4,096 items, from 64 to 640 of them. For
        kernels other than "linear" it uses their leading 256 components.
    n_iter_ : int
        Steps taken.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X has names.

    Notes
    -----
    The result is a local optimum; the best layout is NP-hard to find. The objective is that of
    kernelized sorting, with a linear kernel on the items and a Gaussian kernel on the cells whose
    width is annealed. Time and memory grow in proportion to the number of cells, including empty
    ones: some 300 bytes a cell besides X; on a GPU 50, and 20 more for each of the components
    that items are compared by. "classic" and kernels other than "linear" need several matrices of
    n^2 numbers, checked before they are allocated; above 6,000 items, thin factors replace the
    named kernels.

    Layouts on a GPU differ from those on the CPU, and are about as good or better.

    References
    ----------
    Quadrianto, Smola, Song, Tuytelaars, "Kernelized sorting", IEEE Transactions on Pattern
    Analysis and Machine Intelligence 32 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle import GridLayout
    >>> colors = np.random.default_rng(0).random((64, 3))
    >>> layout = GridLayout(shape=(8, 8), random_state=0).fit(colors)
    >>> layout.grid_.shape
    (8, 8)
    >>> layout.arrange(colors).shape
    (8, 8, 3)
    >>> layout.score_ > 0.8
    True
    """

    _constraints: ClassVar[Constraints] = {
        "wrap": [FLAG],
        "kernel": [str, FUNCTION, list, tuple, None],
        "quality": [option("fast", "balanced", "best", "classic")],
        "gamma": [number(above=0), list, tuple, None],
    }

    def __init__(
        self,
        shape: Any = None,
        wrap: bool = False,
        kernel: Any = None,
        quality: str = "balanced",
        gamma: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        device: Any = None,
    ) -> None:
        self.shape = shape
        self.wrap = wrap
        self.kernel = kernel
        self.quality = quality
        self.gamma = gamma
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.device = device

    def fit(
        self, X: Any, y: Any = None, *, frozen: ArrayLike | None = None, start: Any = None
    ) -> "GridLayout":
        """Find a cell for each item of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features), or list of str
            Features of the items; with kernel="precomputed" their kernel matrix. With a list of
            kernels also a list of these, one for each.
        y : None
            Not used.
        frozen : array-like of shape (n_frozen, 2) or None, default=None
            Items and their fixed cells. Cells count row by row from 0 over the whole rectangle
            or mask; points count in their order.
        start : array-like of shape (rows, columns) or (n_cells,), or None, default=None
            An existing layout that is changed as little as possible, such as `grid_` after you
            moved an item: item in each cell, -1 where it is empty. Items that it leaves out are
            put into empty cells. An item in a cell that `frozen` claims for another changes
            places with that one. None finds a new layout.

        Returns
        -------
        self : GridLayout
            Fitted, with the layout so far if the callback stopped it. Ctrl-C also leaves the
            layout so far, and then raises KeyboardInterrupt.

        Notes
        -----
        From a `start`, only the last, narrow steps of a layout are taken, and items stay where
        another cell is not clearly better. Frozen items gather similar ones from their
        surroundings, not from far away. After one of 320 photos was moved and frozen, a quarter
        of the others changed cells, by two cells on average. On a GPU more items move. "classic"
        climbs from there only, without its other starts.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_not_file(X, "X", "unshuffle layout FOLDER")
        kernel = self._kernel_for(X)
        device = self._find_device(X)
        items = self._check_items(X, device)
        n_items = count_checked(items)
        cells = Shape.for_items(self.shape, n_items, wrap=self.wrap)
        self._check_cells(cells, device)
        pairs = check_frozen_cells(frozen, n_items, cells.cells)
        if is_tabular(kernel):
            check_column_names(X, "X")
        given = None if start is None else check_start(start, n_items, cells.cells)
        if given is not None:
            given = make_way(given, pairs, n_items)
        self._lay_out(items, cells, pairs, device, X=X, start=given)
        return self

    def add(self, X: Any) -> "GridLayout":
        """Put new items into empty cells. The fitted items stay where they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features), or list of str
            The new items, numbered after the fitted ones. With kernel="precomputed", the kernel
            matrix of all items, the fitted ones first.

        Returns
        -------
        self : GridLayout
            With the new items in `grid_` and `positions_`.
        """
        check_is_fitted(self, "grid_")
        n_old = len(self.positions_)
        kernel = self._kernel_for(self._items)
        if is_tabular(kernel) and kernel != "precomputed":
            check_column_names(X, "X")
            # ensure_2d=False compares names only; `append_items` compares the number of columns.
            validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        device = self._find_device(self._items)
        items = self._append(X, device)
        n_new, n_empty = count_checked(items) - n_old, self._cells.n_open - n_old
        if n_new < 1:
            raise ValueError(
                f"X holds {'no more' if n_new == 0 else 'fewer'} items than are laid out. With "
                'kernel="precomputed", pass the kernel matrix of all items, the fitted ones first.'
            )
        if n_new > n_empty:
            raise ValueError(
                f"{n_new:,} new items do not fit into the {n_empty:,} empty cells. Fit again with "
                "a larger `shape`, or add fewer."
            )
        grid = to_host(self.grid_).ravel()
        placed = np.flatnonzero(grid != EMPTY)
        pairs = np.stack([grid[placed], placed], axis=1)
        self._lay_out(items, self._cells, pairs, device)
        return self

    def arrange(self, values: Any, *, fill: Any = None) -> Any:
        """Arrange one value for each item like the items.

        Parameters
        ----------
        values : array-like or tensor of shape (n_items, ...)
            One entry for each item: a color, a name, a picture.
        fill : scalar or None, default=None
            Value of empty cells; None is 0, or "" for text.

        Returns
        -------
        arranged : ndarray of shape (rows, columns, ...), or (n_cells, ...)
            Value of the item in each cell. A tensor on the device of `values` if that is one.
        """
        check_is_fitted(self, "grid_")
        if is_tensor(values) and (is_tensor(self.grid_) or values.device.type != "cpu"):
            return self._arrange_tensor(values, fill)
        grid = to_host(self.grid_)
        try:
            array = np.atleast_1d(values)
        except ValueError as error:
            raise ValueError(
                "`values` holds entries of different shapes. Pass entries of one shape, or an "
                "array of objects."
            ) from error
        check_length(len(array), len(self.positions_), name="values")
        dtype = array.dtype
        if fill is not None and not np.can_cast(np.min_scalar_type(fill), dtype):
            try:
                dtype = np.result_type(dtype, np.asarray(fill).dtype)
            except TypeError as error:
                raise TypeError(
                    f"`fill` is a {type(fill).__name__}, which does not fit into an array of "
                    f"dtype {array.dtype}. Pass a value of that kind, or `values` as an array of "
                    "objects."
                ) from error
        arranged = np.zeros(grid.shape + array.shape[1:], dtype=dtype)
        if fill is not None:
            if np.ndim(fill) != 0 and np.shape(fill) != array.shape[1:]:
                raise ValueError(
                    f"`fill` must be one value, or of shape {array.shape[1:]} like the entries of "
                    f"`values`, got shape {np.shape(fill)}."
                )
            arranged[...] = fill
        full = grid != EMPTY
        arranged[full] = array[grid[full]]
        return arranged

    def _arrange_tensor(self, values: Any, fill: Any) -> Any:
        """The same for a tensor on a GPU, without leaving it."""
        check_length(len(values) if values.ndim else 1, len(self.positions_), name="values")
        grid = self.grid_ if is_tensor(self.grid_) else like(self.grid_, values)
        grid = grid.to(values.device)
        arranged = values.reshape(len(self.positions_), *values.shape[1:])[grid.clamp(min=0)]
        arranged[grid == EMPTY] = 0 if fill is None else fill
        return arranged

    @cached_property
    def score_(self) -> float:
        """Distance preservation quality of the layout, p = 16."""
        check_is_fitted(self, "grid_")
        n_items = len(self.positions_)
        if n_items < 3:
            return 1.0
        n_rows = int(np.clip(SCORED_PAIRS // n_items, LEAST_SCORED_ROWS, SCORED_ROWS))
        return distance_preservation_quality(
            to_host(self._scored),
            to_host(self.grid_),
            wrap=self._cells.wrap,
            points=self._cells.points,
            n_rows=None if n_items <= SCORED_ITEMS else n_rows,
            random_state=0,
        )

    def _kernel_for(self, X: Any) -> Any:
        """Kernel that suits the kind of a collection, unless the user chose one."""
        if self.kernel is not None:
            return self.kernel
        if is_text(X):
            return "text"
        return "rbf" if self.quality == "classic" else "linear"

    def _find_device(self, X: Any) -> Any:
        """Device of the work, None for the CPU, or an error if it cannot be done there."""
        device = find_device(self.device, X)
        if device is not None and self.quality == "classic":
            raise ValueError(
                'quality="classic" runs on the CPU only. Pass device="cpu", or choose "fast", '
                '"balanced" or "best".'
            )
        return device

    def _check_items(self, X: Any, device: Any) -> Any:
        kernel = self._kernel_for(X)
        if is_tensor(X):
            if X.device == device and kernel == "linear":
                from unshuffle.layout._gpu.features import check_tensor

                return check_tensor(X)
            X = to_host(X)
        items = check_items(X, kernel)
        if kernel == "linear":
            check_resolved(items, "X")
        return items

    def _append(self, X: Any, device: Any) -> Any:
        """The fitted items followed by new ones."""
        kernel = self._kernel_for(self._items)
        if not is_tensor(self._items):
            return check_items(append_items(self._items, to_host(X), kernel), kernel)
        items = append_items(to_host(self._items), to_host(X), kernel)
        return self._check_items(like(items, self._items), device)

    def _check_cells(self, cells: Shape, device: Any) -> None:
        if device is not None and cells.points is not None:
            raise ValueError(
                "`shape` holds points of the plane; layouts on points run on the CPU only. Give "
                '(rows, columns) or a mask, or pass device="cpu".'
            )

    def _lay_out(
        self, items: Any, cells: Shape, frozen: Indices, device: Any, *, X: Any = None,
        start: Indices | None = None,
    ) -> None:  # fmt: skip
        """Solve and store; `fit` passes X to record its columns."""
        kernel, search = self._kernel_for(items), Search[Layout](self.callback)
        how = self.gamma, cells, frozen, self.random_state, self.n_jobs, start
        problem = LayoutProblem(items, kernel, *how)

        def solve() -> Layout:
            if self.quality == "classic":
                return solve_classic(problem, search)
            if device is not None:
                from unshuffle.layout._gpu.climb import solve_on_device

                return solve_on_device(problem, self.quality, search, device)
            from unshuffle.layout._cpu.anneal import solve_annealed  # numba is slow to load

            return solve_annealed(problem, self.quality, search)

        fit_by_search(self, search, solve, partial(self._store, problem, search, X))

    def _store(
        self, problem: LayoutProblem, search: Search[Layout], X: Any, found: Layout
    ) -> None:
        if X is not None and is_tabular(problem.kernel):
            validate_data(self, X, reset=True, skip_check_array=True)
        self.__dict__.pop("score_", None)
        self._items, self._cells = problem.items, problem.cells
        has_vectors = self.kernel is None and problem.kernel != "text"
        self._scored = problem.items if has_vectors else found.vectors
        shape = self._cells.cells.shape
        if is_tensor(found.grid) and is_tensor(problem.items):
            from unshuffle.layout._gpu.features import tensor_positions

            self.grid_ = found.grid.long().reshape(shape)
            self.positions_ = tensor_positions(self.grid_, count_checked(problem.items))
        else:
            found = found._replace(grid=to_host(found.grid))
            self.grid_ = found.grid.astype(np.intp).reshape(shape)
            self.positions_ = self._cells.positions(found.cells)
        self.n_iter_ = search.iteration

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.kernel == "text"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
