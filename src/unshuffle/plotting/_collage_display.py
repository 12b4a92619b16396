"""CollageDisplay: a collage drawn beside its template."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.grids import check_grid, check_images, check_picture
from unshuffle.plotting._display import Display, cell_pictures


@dataclass(eq=False, repr=False)
class CollageDisplay(Display):
    """A template and its collage, side by side.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    template : ndarray of shape (height, width, 3), uint8
        The picture that the collage imitates.
    grid : ndarray of shape (rows, columns)
        Tile in each cell; -1 is empty.
    tiles : ndarray of shape (n_tiles, h, w, 3), uint8
        The tiles of the collage.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.plotting import CollageDisplay
    >>> tiles = np.array([0, 255], dtype=np.uint8).repeat(12).reshape(2, 2, 2, 3)
    >>> template = np.array([[[9] * 3, [200] * 3]], dtype=np.uint8)
    >>> CollageDisplay.from_predictions(template, [[0, 1]], tiles).picture.shape
    (2, 4, 4)
    """

    template: NDArray[np.uint8]
    grid: NDArray[np.intp]
    tiles: NDArray[np.uint8]

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike) -> Self:
        """Display of a fitted `Collage`.

        Parameters
        ----------
        estimator : Collage
            Fitted.
        X : array of shape (n_tiles, h, w, 3) or (n_tiles, h, w), uint8
            Tiles in the order fitted, of any size.

        Returns
        -------
        display : CollageDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "grid_")
        return cls.from_predictions(estimator._template, estimator.grid_, X)

    @classmethod
    def from_predictions(cls, template: ArrayLike, grid: ArrayLike, tiles: ArrayLike) -> Self:
        """Display of any collage.

        Parameters
        ----------
        template : array of shape (height, width, 3) or (height, width), uint8
            The picture that the collage imitates.
        grid : array of int, shape (rows, columns)
            Tile in each cell; -1 is empty.
        tiles : array of shape (n_tiles, h, w, 3) or (n_tiles, h, w), uint8
            The tiles of the collage.

        Returns
        -------
        display : CollageDisplay
            Ready to `plot`.
        """
        pictures = check_images(tiles, "tiles")
        return cls(check_picture(template, "template"), check_grid(grid, len(pictures)), pictures)

    @property
    def picture(self) -> NDArray[np.uint8]:
        """The collage as one RGBA picture, transparent where a cell is empty."""
        return cell_pictures(self.tiles, self.grid)

    def plot(self, ax: Any = None, *, labels: tuple[str, str] = ("template", "collage")) -> Self:
        """Draw the template on the left and the collage on the right, at equal height.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        labels : (str, str), default=("template", "collage")
            Titles of the two pictures.

        Returns
        -------
        display : CollageDisplay
            Itself.
        """
        picture = self.picture
        # The collage may be a little wider or narrower than the template.
        widths = [each.shape[1] / each.shape[0] for each in (self.template, picture)]
        ax = self._take_axes(ax, (10.0, 0.5 + 9.6 / (sum(widths) + 0.05)))
        start = 0.0
        for image, width, label in zip((self.template, picture), widths, labels, strict=True):
            ax.imshow(image, extent=(start, start + width, 0.0, 1.0))
            ax.text(start + width / 2, 1.02, label, ha="center", va="bottom")
            start += width + 0.05
        self._show((0.0, start - 0.05), (0.0, 1.0))
        return self
