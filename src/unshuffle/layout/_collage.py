"""Collage: the estimator."""

from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import check_length
from unshuffle._distances import squared_distances
from unshuffle._grids import check_images, check_picture
from unshuffle._parallel import Workers, check_n_jobs
from unshuffle._parameters import check_parameters
from unshuffle._progress import Callback, Reporter, Stopped
from unshuffle.assignment import solve_assignment
from unshuffle.layout._checks import check_collage_memory, check_rectangle, check_tiles
from unshuffle.layout._mosaic import LOOK, grid_for, template_colors, tile_colors

_BLOCK = 256
# Cells from which on an auction is the quicker, however many tiles there are to choose from.
_MANY = 200


class Found(NamedTuple):
    """A collage: the tile in each cell, its costs, and the steps it took."""

    grid: NDArray[np.intp]
    cost: float
    roughness: float
    n_steps: int


class Collage(BaseEstimator):
    """Draw one picture with many: each tile goes where it resembles the template.

    Seen from afar the tiles form the template; seen from near, like tiles sit together, as far
    as `smoothness` asks for it.

    Parameters
    ----------
    template : ndarray of shape (height, width, 3) or (height, width), uint8
        The picture to draw.
    shape : (int, int) or None, default=None
        Rows and columns of the collage, to which the template is stretched. None is the largest
        grid with its proportions that the tiles fill, each used once, or `repeat` times where
        that is given.
    smoothness : float, default=0.3
        From 0 to 1: how much likeness between neighbours counts against likeness to the
        template. 0 is the best assignment to the template alone; larger gives calmer areas that
        resemble the template less.
    repeat : int or None, default=None
        Most times that a tile may be used. More come closer to the template where `shape` is
        given, and make a larger grid where it is not. None is as few as the cells ask for.
    detail : int, default=3
        Parts along each side of a tile that are compared with the template. 1 compares mean
        colours only; larger follows edges within a cell.
    neighbors : {"kernel", "laplacian"}, default="kernel"
        What counts as a neighbour: "kernel" weighs the eight cells around each by a Gaussian;
        "laplacian" weighs the four that touch by how alike the template is there, so that
        calm areas end where the template has an edge.
    random_state : int, RandomState instance or None, default=None
        Draws the groups of tiles that are reordered together.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a state that has `iteration`, `objective` (the negative of
        what is minimised), `permutation` (tile of each cell), `stage` and `fraction`. Returning
        True stops; the collage so far is kept.

    Attributes
    ----------
    grid_ : ndarray of shape (rows, columns)
        Tile in each cell.
    cost_ : float
        Mean squared difference of colour (CIE Lab) between tiles and template.
    roughness_ : float
        Mean squared difference of colour between neighbours.
    n_tiles_ : int
        Tiles it was fitted with; not all need be used.
    n_iter_ : int
        Steps taken.

    Notes
    -----
    The template alone is a linear assignment, solved within 1e-6 of the best; which tiles are
    used is decided there. The mixed objective is then made smaller by assignments in groups, and
    never ends above where it started. Memory is 10 bytes for every pair of a tile, its repeats
    counted, and a cell, checked first.

    References
    ----------
    Quadrianto, Smola, Song, Tuytelaars, "Kernelized sorting", IEEE Transactions on Pattern
    Analysis and Machine Intelligence 32 (2010), sections 5.2 and 5.4.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle import Collage
    >>> template = np.tile(np.arange(0, 256, 16, dtype=np.uint8), (16, 1))
    >>> shades = np.random.default_rng(0).integers(0, 256, 64, dtype=np.uint8)
    >>> tiles = np.broadcast_to(shades[:, None, None, None], (64, 4, 4, 3))
    >>> collage = Collage(template, random_state=0).fit(tiles)
    >>> collage.grid_.shape
    (8, 8)
    >>> bool(np.all(np.diff(shades[collage.grid_].mean(axis=0)) > 0))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "template": ["array-like"],
        "shape": ["array-like", None],
        "smoothness": [Interval(Real, 0, 1, closed="both")],
        "repeat": [Interval(Integral, 1, None, closed="left"), None],
        "detail": [Interval(Integral, 1, 16, closed="both")],
        "neighbors": [StrOptions({"kernel", "laplacian"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
    }

    def __init__(
        self,
        template: Any,
        shape: Any = None,
        smoothness: float = 0.3,
        *,
        repeat: int | None = None,
        detail: int = 3,
        neighbors: str = "kernel",
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.template = template
        self.shape = shape
        self.smoothness = smoothness
        self.repeat = repeat
        self.detail = detail
        self.neighbors = neighbors
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: ArrayLike, y: Any = None) -> "Collage":
        """Find a tile for each cell.

        Parameters
        ----------
        X : array of shape (n_tiles, h, w, 3) or (n_tiles, h, w), uint8
            The tiles, all of one size.
        y : None
            Not used.

        Returns
        -------
        self : Collage
            Fitted, with the collage so far if the callback stopped it. After Ctrl-C the
            estimator is fitted so too, once there is a first collage, and the interrupt goes on.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        template = check_picture(self.template, "template")
        tiles = check_images(X, "X")
        shape = self._grid(template, tiles)
        found: list[Found] = []
        try:
            with suppress(Stopped):
                self._solve(template, tiles, shape, Reporter(self.callback), found)
        except KeyboardInterrupt:
            if found:
                self._store(found[-1], template, len(tiles))
            raise
        self._store(found[-1], template, len(tiles))
        return self

    def _store(self, found: Found, template: NDArray[np.uint8], n_tiles: int) -> None:
        self._template = template.copy()
        self.grid_ = found.grid
        self.cost_ = found.cost
        self.roughness_ = found.roughness
        self.n_iter_ = found.n_steps
        self.n_tiles_ = n_tiles

    def _grid(self, template: NDArray[np.uint8], tiles: NDArray[np.uint8]) -> tuple[int, int]:
        if self.shape is None:
            return grid_for(len(tiles) * int(self.repeat or 1), template, tiles)
        rows, columns = check_rectangle(self.shape)
        repeat = None if self.repeat is None else int(self.repeat)
        check_tiles(len(tiles), rows * columns, repeat)
        return rows, columns

    def _solve(
        self,
        template: NDArray[np.uint8],
        tiles: NDArray[np.uint8],
        shape: tuple[int, int],
        reporter: Reporter,
        best: list[Found],
    ) -> None:
        """Find ever better collages; `best` gets the latest."""
        from unshuffle.layout._smoothing import (  # numba is slow to load
            Mosaic,
            kernel_neighbors,
            smooth,
            template_neighbors,
        )

        n_cells = shape[0] * shape[1]
        times = int(self.repeat or -(-n_cells // len(tiles)))
        check_collage_memory(len(tiles) * times, n_cells)
        colors = tile_colors(tiles, int(self.detail))
        wanted = template_colors(template, shape, int(self.detail))
        near = kernel_neighbors(shape)
        if self.neighbors == "laplacian":
            near = template_neighbors(shape, wanted)
        looks = tile_colors(tiles, LOOK)
        copies = np.tile(np.arange(len(tiles)), times)
        mosaic = Mosaic(
            colors[copies], wanted, (looks - looks.mean(axis=0))[copies], near, self.smoothness
        )
        items = _nearest(mosaic.colors, wanted)

        def report(found: NDArray[np.intp], value: float, done: float) -> None:
            grid = copies[found].reshape(shape)
            cost, roughness = mosaic.template_cost(found), mosaic.roughness(found)
            best[:] = [Found(grid, cost, roughness, reporter.iteration + 1)]
            reporter.step(-value, grid.ravel(), stage="arranging", fraction=done)

        report(items, mosaic.value(items), 0.1 if self.smoothness > 0 else 1.0)
        if self.smoothness > 0:
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            with Workers(self.n_jobs) as workers:
                smooth(mosaic, items, shape, rng=rng, workers=workers, report=report)

    def render(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Put the tiles, or larger versions of them, together.

        Parameters
        ----------
        X : array of shape (n_tiles, h, w, 3) or (n_tiles, h, w), uint8
            The fitted tiles in their order, at any size.

        Returns
        -------
        picture : ndarray of shape (rows * h, columns * w, 3), uint8
            The collage.
        """
        check_is_fitted(self, "grid_")
        tiles = check_images(X, "X")
        check_length(len(tiles), self.n_tiles_, name="X")
        rows, columns = self.grid_.shape
        picture = tiles[self.grid_].transpose(0, 2, 1, 3, 4)
        return picture.reshape(rows * tiles.shape[1], columns * tiles.shape[2], 3)


def _nearest(colors: NDArray[np.float32], wanted: NDArray[np.float32]) -> NDArray[np.intp]:
    """Item of each cell: the assignment nearest to the template, eq. (22)."""
    cost = np.empty((len(wanted), len(colors)), dtype=np.float32)
    # Rounded only once the squares are complete: tiles may be almost what the template asks for.
    for start in range(0, len(wanted), _BLOCK):
        cost[start : start + _BLOCK] = squared_distances(wanted[start : start + _BLOCK], colors)
    return solve_assignment(cost, solver="auction" if len(cost) >= _MANY else "auto").columns
