"""Collage: tiles that imitate a template, similar ones side by side (sections 5.2 and 5.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import check_length
from unshuffle._core.color import lab_of_light, light_of_rgb
from unshuffle._core.distances import squared_distances
from unshuffle._core.grids import check_images, check_picture
from unshuffle._core.parameters import (
    ARRAY,
    Constraints,
    check_memory,
    check_parameters,
    count,
    number,
    option,
)
from unshuffle._quadratic.mean_field import interaction_spread
from unshuffle._run.parallel import Workers, check_n_jobs
from unshuffle._run.search import Callback, Search, fit_by_search
from unshuffle._run.types import Indices, Planes
from unshuffle.assignment import solve_assignment
from unshuffle.layout._shape import check_rectangle

Picture = NDArray[np.uint8]  # (height, width, 3), or tiles of one size

# Squares along a side of a tile by which tiles are compared with each other.
LOOK = 5
_CHUNK, _BLOCK = 64, 256
# Cells above which an auction is faster, for any number of tiles.
_MANY = 200
WIDTHS = np.geomspace(3.0, 1.0, 24)
# Least raises, as shares of the spread of benefits in a group.
RAISES = np.geomspace(0.1, 0.0005, WIDTHS.size)
DESCENT_RAISES = np.geomspace(0.0005, 0.00001, 20)
SIDE, DESCENT_SIDE = 24.0, 64.0
NARROW = 1.5  # bandwidth below which each neighbor has its own weight


class Tiling(NamedTuple):
    """A collage: the item in each cell, its two costs, and the objective."""

    items: Indices  # copies of tiles: item i is tile i % n_tiles
    cost: float
    roughness: float
    value: float


class Collage(BaseEstimator):
    """Compose one picture from many: each tile goes where it resembles the template.

    From a distance the tiles form the template. From nearby, similar tiles sit side by side, more
    so with a larger `smoothness`.

    Parameters
    ----------
    template : ndarray of shape (height, width, 3) or (height, width), uint8
        The picture to draw.
    shape : (int, int) or None, default=None
        Rows and columns of the collage, to which the template is stretched. None is the largest
        grid of its proportions that the tiles fill.
    smoothness : float, default=0.3
        Weight, from 0 to 1, of the similarity between neighbors against the similarity to the
        template. 0 is the best assignment to the template. Larger values give smoother areas
        that resemble the template less.
    repeat : int or None, default=None
        Maximum number of uses of a tile. Larger values follow the template more closely if
        `shape` is given, and make a larger grid otherwise. None is the least that fills `shape`.
    detail : int, default=3
        Parts along each side of a tile that are compared with the template. 1 compares mean
        colors only; larger values follow edges within a cell.
    neighbors : {"kernel", "laplacian"}, default="kernel"
        "kernel" weights the eight cells around each by a Gaussian. "laplacian" weights the four
        adjacent cells by the similarity of the template there, so that smooth areas end at its
        edges.
    random_state : int, RandomState instance or None, default=None
        Seed of the groups of tiles that are reordered together.
    n_jobs : int or None, default=None
        Number of threads. The result is the same.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`, whose `permutation` is the
        tile of each cell. Return True to stop and keep the collage so far.

    Attributes
    ----------
    grid_ : ndarray of shape (rows, columns)
        Tile in each cell.
    cost_ : float
        Mean squared difference of color (CIE Lab) between tiles and template.
    roughness_ : float
        Mean squared difference of color between neighbors.
    n_tiles_ : int
        Number of tiles that were fitted; some may be unused.
    n_iter_ : int
        Steps taken.

    Notes
    -----
    A linear assignment to the template, solved within 1e-6 of the optimum, decides which tiles
    are used. Assignments in groups then lower the whole objective, to a local optimum. Memory is
    10 bytes for each pair of a tile, counting repeats, and a cell, checked first.

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

    _constraints: ClassVar[Constraints] = {
        "template": [ARRAY],
        "shape": [ARRAY, None],
        "smoothness": [number(least=0, most=1)],
        "repeat": [count(), None],
        "detail": [count(1, 16)],
        "neighbors": [option("kernel", "laplacian")],
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
            Fitted, with the collage so far if the callback stopped it. Ctrl-C also leaves the
            collage so far, if there is one, and then raises KeyboardInterrupt.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        template = check_picture(self.template, "template")
        tiles = check_images(X, "X")
        shape = self._grid(template, tiles)
        search = Search[Tiling](self.callback)

        def store(found: Tiling) -> None:
            self._template = template.copy()
            self.grid_ = (found.items % len(tiles)).reshape(shape)
            self.cost_, self.roughness_ = found.cost, found.roughness
            self.n_iter_, self.n_tiles_ = search.iteration, len(tiles)

        fit_by_search(self, search, lambda: self._solve(template, tiles, shape, search), store)
        return self

    def _grid(self, template: Picture, tiles: Picture) -> tuple[int, int]:
        if self.shape is None:
            return grid_for(len(tiles) * int(self.repeat or 1), template, tiles)
        rows, columns = check_rectangle(self.shape)
        n_tiles, n_cells = len(tiles), rows * columns
        if self.repeat is not None and n_tiles * int(self.repeat) < n_cells:
            raise ValueError(
                f"{n_tiles:,} tiles used up to {self.repeat} time(s) each do not fill {n_cells:,} "
                f"cells. Pass repeat={-(-n_cells // n_tiles)} or more, or a smaller `shape`."
            )
        return rows, columns

    def _solve(
        self, template: Picture, tiles: Picture, shape: tuple[int, int], search: Search[Tiling]
    ) -> Tiling:
        """Assign tiles to the template, then reorder them to lower the whole objective."""
        n_tiles, n_cells = len(tiles), shape[0] * shape[1]
        times = int(self.repeat or -(-n_cells // n_tiles))
        check_memory(
            # costs of all tiles in all cells, and the workspace of the assignment
            int(2.5 * 4 * n_tiles * times * n_cells),
            what=f"Comparing {n_tiles * times:,} tiles with {n_cells:,} cells",
            instead="Give fewer tiles, or a smaller `shape`.",
        )
        wanted = template_colors(template, shape, int(self.detail))
        near = neighbor_weights(shape, wanted if self.neighbors == "laplacian" else None)
        looks = tile_colors(tiles, LOOK)
        copies = np.tile(np.arange(n_tiles), times)
        colors = tile_colors(tiles, int(self.detail))[copies]
        mosaic = Mosaic(
            colors, wanted, (looks - looks.mean(axis=0))[copies], near, self.smoothness
        )

        def offer(items: Indices, done: float) -> Tiling:
            found = mosaic.measure(items)
            search.offer(found, rank=-found.value)
            best = search.best or found
            search.step(-best.value, best.items % n_tiles, stage="arranging", fraction=done)
            return best

        best = offer(_nearest(colors, wanted), 0.1 if self.smoothness > 0 else 1.0)
        if self.smoothness == 0:
            return best
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with Workers(self.n_jobs) as workers:
            return smooth(_Tray(mosaic, best.items, shape, rng, workers), best, offer)

    def render(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Draw the collage as one picture.

        Parameters
        ----------
        X : array of shape (n_tiles, h, w, 3) or (n_tiles, h, w), uint8
            The fitted tiles in their order, in any size.

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


def _nearest(colors: Planes, wanted: Planes) -> Indices:
    """Item of each cell in the assignment closest to the template, eq. (22)."""
    cost = np.empty((len(wanted), len(colors)), dtype=np.float32)
    # Double precision up to here: a tile may be almost equal to the template.
    for start in range(0, len(wanted), _BLOCK):
        cost[start : start + _BLOCK] = squared_distances(wanted[start : start + _BLOCK], colors)
    return solve_assignment(cost, solver="auction" if len(cost) >= _MANY else "auto").columns


def tile_colors(tiles: Picture, detail: int) -> Planes:
    """Mean colors (n_tiles, detail * detail * 3) of `detail` x `detail` parts of each tile.

    Light is averaged, as by an eye far away, and then converted to Lab. Squared distances between
    rows are mean squared differences of color.
    """
    down, across = (_shares(size, detail) for size in tiles.shape[1:3])
    colors = np.empty((len(tiles), detail * detail * 3), dtype=np.float32)
    for start in range(0, len(tiles), _CHUNK):
        light = light_of_rgb(tiles[start : start + _CHUNK])
        means = np.einsum("yh,nhwc,xw->nyxc", down, light, across, optimize=True)
        colors[start : start + _CHUNK] = lab_of_light(means).reshape(len(means), -1)
    return colors / np.float32(detail)


def template_colors(template: Picture, shape: tuple[int, int], detail: int) -> Planes:
    """The same for the part of the template under each cell, cells row by row."""
    rows, columns = shape
    down = _shares(template.shape[0], rows * detail)
    across = _shares(template.shape[1], columns * detail)
    light = np.einsum("yh,hwc,xw->yxc", down, light_of_rgb(template), across, optimize=True)
    lab = lab_of_light(light).reshape(rows, detail, columns, detail, 3)
    colors = lab.transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
    return np.asarray(colors / detail, dtype=np.float32)


def _shares(size: int, n_parts: int) -> NDArray[np.float64]:
    """Share of each of `size` pixels in each of `n_parts` equal stretches; rows sum to 1."""
    bounds = np.linspace(0.0, size, n_parts + 1)
    pixel = np.arange(size)
    first, last = bounds[:-1, np.newaxis], bounds[1:, np.newaxis]
    overlap = np.maximum(np.minimum(last, pixel + 1) - np.maximum(first, pixel), 0.0)
    return overlap / overlap.sum(axis=1, keepdims=True)


def grid_for(n_tiles: int, template: NDArray[Any], tiles: NDArray[Any]) -> tuple[int, int]:
    """Largest grid that the tiles fill, each side within one cell of the right proportions."""
    aspect = (template.shape[0] / template.shape[1]) * (tiles.shape[2] / tiles.shape[1])
    rows = min(max(1, floor(sqrt(n_tiles * aspect))), n_tiles)
    columns = min(max(1, floor(sqrt(n_tiles / aspect))), n_tiles)
    grids = [(rows + down, columns + right) for down in (0, 1) for right in (0, 1)]
    fitting = [grid for grid in grids if grid[0] * grid[1] <= n_tiles]
    # Of two equally large grids, take the one that distorts the template less.
    return max(fitting, key=lambda g: (g[0] * g[1], -abs(log(g[0] / g[1] / aspect))))


@dataclass(frozen=True)
class Mosaic:
    """The objective of a collage, to be minimized: mean squared differences of color.

    Item i in cell p costs (1 - s) |a_i - b_p|^2 + s / 2 sum_q W_pq |x_i - x_q|^2, where x_q are
    the features of the item in cell q.
    """

    colors: Planes  # a (n_items, m): colors that are compared with the template
    wanted: Planes  # b (n_cells, m): colors of the template
    looks: Planes  # x (n_items, r): features by which neighbors are compared
    near: sparse.csr_array  # W: symmetric weights of neighbors, rows sum to 1 on average
    smoothness: float  # s, from 0 to 1

    def template_cost(self, items: Indices) -> float:
        """Mean squared difference from the template, of the item in each cell."""
        apart = self.colors[items] - self.wanted
        return float(np.einsum("ij,ij->", apart, apart, dtype=np.float64) / len(items))

    def roughness(self, items: Indices) -> float:
        """Mean squared difference between neighbors."""
        looks = self.looks[items].astype(np.float64)
        degrees = np.asarray(self.near.sum(axis=1)).ravel()
        squares = np.einsum("ij,ij->i", looks, looks)
        # eq. (19): sum W_pq |x_p - x_q|^2 / 2 = tr K (D - W)
        total = degrees @ squares - np.einsum("ij,ij->", looks, self.near @ looks)
        return float(2.0 * total / len(items))

    def measure(self, items: Indices) -> Tiling:
        """A collage with its costs and the objective."""
        share, cost, roughness = self.smoothness, self.template_cost(items), self.roughness(items)
        return Tiling(items, cost, roughness, (1 - share) * cost + share / 2 * roughness)


def neighbor_weights(shape: tuple[int, int], wanted: Planes | None = None) -> sparse.csr_array:
    """Gaussian weights of the eight cells around each (section 5.4).

    With `wanted`, weights of the four adjacent cells, small at edges of the template (section
    5.2).
    """
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    if wanted is None:
        steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    rows, columns = shape
    n_cells = rows * columns
    row, column = np.divmod(np.arange(n_cells), columns)
    first, second, weight = [], [], []
    for down, right in steps:
        y, x = row + down, column + right
        there = np.flatnonzero((y >= 0) & (y < rows) & (x >= 0) & (x < columns))
        first.append(there)
        second.append(y[there] * columns + x[there])
        weight.append(np.full(there.size, np.exp(-0.5 * (down**2 + right**2))))
    a, b, values = np.concatenate(first), np.concatenate(second), np.concatenate(weight)
    if wanted is not None and a.size:
        apart = np.square(wanted[a] - wanted[b]).sum(axis=1)
        scale = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
        values = np.exp(-apart / scale)
    near = sparse.csr_array((values, (a, b)), shape=(n_cells, n_cells))
    total = float(near.sum())
    return near * (n_cells / total) if total > 0 else near


def smooth(tray: "_Tray", best: Tiling, offer: Callable[[Indices, float], Tiling]) -> Tiling:
    """Reorder the items of the cells to lower the objective.

    Neighbors are averaged over wide surroundings first and narrow ones later, so that similar
    tiles meet from some distance. Descent then improves the best so far, which `offer` returns.
    """
    n_steps = WIDTHS.size + DESCENT_RAISES.size
    for step in range(n_steps):
        if step < WIDTHS.size:
            tray.anneal(WIDTHS[step], RAISES[step])
        else:
            tray.put(best.items)
            tray.descend(DESCENT_RAISES[step - WIDTHS.size])
        best = offer(tray.items, (step + 1) / n_steps)
    return best


class _Tray:
    """The cells of a collage, with the features of their items and of their surroundings."""

    def __init__(
        self, mosaic: Mosaic, items: Indices, shape: tuple[int, int], rng: Any, workers: Workers
    ) -> None:
        from unshuffle.layout._cpu.surfaces import Raster  # numba is slow to load

        self.mosaic, self.rng, self.workers = mosaic, rng, workers
        self.surface = Raster(*shape, wrap=False)
        self.shape = shape
        self.degrees = np.asarray(mosaic.near.sum(axis=1)).ravel().astype(np.float32)
        squares = np.einsum("ij,ij->i", mosaic.looks, mosaic.looks)[:, np.newaxis]
        self.features = np.hstack([mosaic.looks, squares, mosaic.colors]).astype(np.float32)
        n_planes, n_looks = self.features.shape[1], mosaic.looks.shape[1]
        self.bits = np.empty((n_planes + 1, items.size), dtype=np.int32)
        self.planes = self.bits[:-1].view(np.float32)
        self.field = np.empty((n_planes, items.size), dtype=np.float32)
        share = np.float32(mosaic.smoothness)
        self.field[n_looks] = -0.5 * share * self.degrees
        self.field[n_looks + 1 :] = (1 - share) * mosaic.wanted.T
        self.prices = np.zeros(len(self.features) + 1)
        self.put(items)

    @property
    def items(self) -> Indices:
        """Item of each cell; a copy."""
        return self.bits[-1].astype(np.intp)

    def put(self, items: Indices) -> None:
        """Put these items into the cells."""
        self.planes[:] = self.features[items].T
        self.bits[-1] = items

    def anneal(self, width: float, raise_by: float) -> None:
        """Reorder all cells at once, with their surroundings fixed."""
        looks = self.planes[: self.mosaic.looks.shape[1]]
        if width > NARROW:
            around = self.surface.average(looks, width, self.workers) * self.degrees
        else:
            around = (self.mosaic.near @ looks.T).T
        self._reorder(around, None, SIDE, raise_by)

    def descend(self, raise_by: float) -> None:
        """Reorder cells that are not neighbors of each other, which lowers the objective."""
        looks = self.planes[: self.mosaic.looks.shape[1]]
        for cells in _independent_cells(self.shape, self.rng):
            around = (self.mosaic.near @ looks.T).T
            self._reorder(around, cells, DESCENT_SIDE, raise_by)

    def _reorder(self, around: Planes, some: Indices | None, side: float, raise_by: float) -> None:
        """Assign groups of items to their cells, given the features around them."""
        from unshuffle.layout._cpu.anneal import assign_all, draw_groups

        self.field[: len(around)] = np.float32(self.mosaic.smoothness) * around
        groups = cells, starts = draw_groups(self.surface, side, some, self.rng)
        first = cells[: starts[1]]
        benefit = (self.planes[:, first].T @ self.field[:, first]).astype(np.float64)
        least = raise_by * interaction_spread(benefit)
        assign_all(self.bits, self.field, groups, self.prices, least, self.workers)


def _independent_cells(shape: tuple[int, int], rng: np.random.Generator) -> list[Indices]:
    """Split the cells into up to four parts; no two cells of a part touch, even at a corner."""
    line, place = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    if rng.random() < 0.5:
        line, place = place, line
    # Every second cell of every second line. Random shifts of the lines change which cells may
    # trade places.
    shift = rng.integers(2, size=line.max() + 1)[line]
    number = 2 * (line % 2) + (place + shift) % 2
    found = [np.flatnonzero(number == k) for k in rng.permutation(4)]
    return [cells for cells in found if cells.size]
