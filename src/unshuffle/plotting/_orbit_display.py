"""Learned orbits, drawn: where they lead, how many generators they need, what these do."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._motion import Motion, Subspace
from unshuffle._parameters import check_count, check_positive
from unshuffle.plotting._checks import (
    check_axes_in_space,
    check_axes_of_plane,
    check_both_or_none,
    check_image_shape,
    check_orbit_array,
    check_orbit_drawable,
    check_square_generators,
    raise_no_flow,
    raise_no_orbit_path,
    raise_no_spectrum,
)
from unshuffle.plotting._drawing import axes_or_new, own
from unshuffle.plotting._orbit_drawing import (
    CURVES,
    GIVEN,
    draw_curve,
    draw_field,
    draw_surface,
    draw_tiles,
    draw_vectors,
    equal_sides,
    in_view,
    look_at,
)
from unshuffle.plotting._orbit_paths import curve, curve_steps, data_range, surface

Array = NDArray[np.float64]

_FIELD = 15  # arrows on each side of a field


class OrbitDisplay:
    """Vectors, the orbit learned from them, and where it leads beyond them.

    `plot` draws points of the plane or of space with the orbit of the prototype, `plot_flow` what
    a generator does to an image or to the plane, `plot_spectrum` how many generators there are,
    and `plot_path` how the fit went.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_features)
        Vectors that were given.
    generators : ndarray of shape (k, d, d)
        Matrices that move them, or, with `components`, their coordinates along these.
    prototype : ndarray of shape (n_features,)
        Where the orbit starts.
    coefficients : ndarray of shape (n_samples, k)
        How far along the generators each vector is.
    unseen : ndarray of shape (n_unseen, n_features) or None, default=None
        Vectors that were not given, to be drawn too.
    spectrum, objective_path : ndarray or None, default=None
        Mean squares of the matrices along their directions; cost after each step.
    mean, components : ndarray or None, default=None
        Centre, shape (n_features,), and directions, (d, n_features), of what the generators move.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on last.
    figure_ : matplotlib Figure
        The figure it is in.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle import OrbitLearner
    >>> from unshuffle.plotting import OrbitDisplay
    >>> angle = np.radians(np.linspace(10, 80, 30))
    >>> arc = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> learner = OrbitLearner(1, random_state=0).fit(arc)
    >>> display = OrbitDisplay.from_estimator(learner, arc)
    >>> bool(np.allclose(np.linalg.norm(display.orbit([[2.0], [-3.0]]), axis=1), 1))
    True
    """

    def __init__(
        self,
        points: Array,
        generators: Array,
        prototype: Array,
        coefficients: Array,
        *,
        unseen: Array | None = None,
        spectrum: Array | None = None,
        objective_path: Array | None = None,
        mean: Array | None = None,
        components: Array | None = None,
    ) -> None:
        self.points = own(points)
        self.generators = own(generators)
        self.prototype = own(prototype)
        self.coefficients = own(coefficients)
        self.unseen = own(unseen)
        self.spectrum = own(spectrum)
        self.objective_path = own(objective_path)
        self.mean = own(mean)
        self.components = own(components)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, *, unseen: ArrayLike | None = None
    ) -> "OrbitDisplay":
        """Display of a fitted `OrbitLearner`.

        Parameters
        ----------
        estimator : OrbitLearner
            Fitted.
        X : array-like of shape (n_samples, n_features)
            What it was fitted to.
        unseen : array-like of shape (n_unseen, n_features) or None, default=None
            Other vectors, which should lie on the orbit.

        Returns
        -------
        display : OrbitDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "generators_")
        return cls.from_predictions(
            X,
            estimator.generators_,
            estimator.prototype_,
            estimator.transform(X),
            unseen=unseen,
            spectrum=estimator.spectrum_,
            objective_path=estimator.objective_path_,
            mean=getattr(estimator, "mean_", None),
            components=getattr(estimator, "components_", None),
        )

    @classmethod
    def from_predictions(
        cls,
        X: ArrayLike,
        generators: ArrayLike,
        prototype: ArrayLike,
        coefficients: ArrayLike,
        *,
        unseen: ArrayLike | None = None,
        spectrum: ArrayLike | None = None,
        objective_path: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        components: ArrayLike | None = None,
    ) -> "OrbitDisplay":
        """Display of any generators, wherever they come from.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        generators : array-like of shape (k, d, d)
            Matrices; d is n_features, or the number of `components`.
        prototype : array-like of shape (n_features,)
            Where the orbit starts.
        coefficients : array-like of shape (n_samples, k)
            How far along the generators each vector is.
        unseen : array-like of shape (n_unseen, n_features) or None, default=None
            Vectors that were not given.
        spectrum, objective_path : array-like or None, default=None
            For `plot_spectrum` and `plot_path`.
        mean, components : array-like or None, default=None
            Where generators move coordinates: their centre and directions.

        Returns
        -------
        display : OrbitDisplay
            Ready to `plot`.
        """
        check_both_or_none(mean, components)
        points = check_orbit_array(X, "X", (None, None), "one vector in each row")
        d = points.shape[1]
        centre = _optional(mean, "mean", (d,), "the centre of the vectors")
        words = "one direction in each row"
        directions = _optional(components, "components", (None, d), words)
        width = d if directions is None else len(directions)
        moves = check_square_generators(generators, width)
        shape = (len(points), len(moves))
        words = "a row for each vector, a column for each generator"
        return cls(
            points,
            moves,
            check_orbit_array(prototype, "prototype", (d,), "one vector"),
            check_orbit_array(coefficients, "coefficients", shape, words),
            unseen=_optional(unseen, "unseen", (None, d), "one vector in each row"),
            spectrum=_optional(spectrum, "spectrum", (None,), "largest first"),
            objective_path=_optional(objective_path, "objective_path", (None,), "one per step"),
            mean=centre,
            components=directions,
        )

    def orbit(self, coefficients: ArrayLike, x: ArrayLike | None = None) -> Array:
        """Vectors that the generators lead to.

        Parameters
        ----------
        coefficients : array-like of shape (n, k)
            How far along each generator.
        x : array-like of shape (n_features,) or None, default=None
            Where to start; None is the prototype.

        Returns
        -------
        vectors : ndarray of shape (n, n_features)
            exp(sum c V) x.
        """
        words = "a column for each generator"
        shape = (None, len(self.generators))
        rows = check_orbit_array(coefficients, "coefficients", shape, words)
        return self._motion.moved(self._start(x), rows)

    def plot(self, ax: Any = None, *, reach: float = 3.0) -> "OrbitDisplay":
        """Draw the vectors and the orbit of the prototype, as far as they go and beyond.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw, in space for vectors of 3 numbers; None makes a figure.
        reach : float, default=3.0
            How far to go along each generator, as a multiple of how far the vectors do. A larger
            reach extrapolates further.

        Returns
        -------
        display : OrbitDisplay
            Itself. Curves lead along one generator each, thick as far as the data go. In space
            the surface combines the first two. What leads further than ten times the extent of
            the vectors, and of what stays fixed, is left out.
        """
        check_orbit_drawable(self.points.shape[1])
        reach = check_positive(reach, "reach")
        space = self.points.shape[1] == 3
        ax = self._take_axes(ax, space)
        drawn = [self.points] if self.unseen is None else [self.points, self.unseen]
        fixed = np.zeros(self.points.shape[1]) if self.mean is None else self.mean
        seen = np.concatenate([*drawn, [self.prototype, fixed]])
        if space and len(self.generators) > 1:
            sheet = surface(self._motion, self.prototype, self.coefficients, reach)
            drawn.append(in_view(sheet.reshape(-1, 3), seen))
            draw_surface(ax, drawn[-1].reshape(sheet.shape))
        for j in range(len(self.generators)):
            steps, inside = curve_steps(self.coefficients[:, j], reach)
            drawn.append(in_view(curve(self._motion, self.prototype, j, steps), seen))
            draw_curve(ax, drawn[-1], inside, j)
        draw_vectors(ax, self.points, self.unseen, self.prototype)
        equal_sides(ax, np.concatenate(drawn))
        if space:
            look_at(ax, self.prototype)
        look: dict[str, Any] = {"loc": "upper left", "fontsize": 8} if space else {"fontsize": 9}
        ax.legend(frameon=False, handlelength=1.3, labelspacing=0.3, **look)
        return self

    def plot_spectrum(self, ax: Any = None, *, n_shown: int = 12) -> "OrbitDisplay":
        """Draw how much the matrices vary along each direction, and how many were kept.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_shown : int, default=12
            Most directions to draw.

        Returns
        -------
        display : OrbitDisplay
            Itself. A deep fall after the kept ones says that there are no more.
        """
        if self.spectrum is None:
            raise_no_spectrum()
        n_shown = check_count(n_shown, "n_shown")
        ax = self._take_axes(ax, False, (6.0, 3.6))
        k = len(self.generators)
        values = self.spectrum[: max(n_shown, k + 1)]
        # Zero but for rounding has no place on a logarithmic scale.
        floor = 1e-10 * (float(values.max()) or 1.0)
        heights = np.maximum(values, floor)
        colors = [CURVES[0] if j < k else GIVEN for j in range(len(values))]
        places = np.arange(1, len(values) + 1)
        ax.vlines(places, floor, heights, colors=colors, linewidth=2)
        ax.scatter(places, heights, c=colors, s=45, zorder=3)
        ax.axvline(k + 0.5, color="0.4", linewidth=0.9, linestyle="--")
        words = f" {k} generator{'s' if k > 1 else ''}"
        ax.text(k + 0.5, 1.0, words, transform=ax.get_xaxis_transform(), va="top", fontsize=9)
        ax.set(yscale="log", xlabel="direction", ylabel="mean square", ylim=(floor / 3, None))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def plot_flow(
        self,
        x: ArrayLike | None = None,
        ax: Any = None,
        *,
        generator: int = 0,
        shape: tuple[int, int] | None = None,
        steps: ArrayLike | None = None,
    ) -> "OrbitDisplay":
        """Draw what a generator does: to an image, or to all points of the plane.

        Parameters
        ----------
        x : array-like of shape (n_features,) or None, default=None
            Image to start from; None is the prototype. Not used for points of the plane.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        generator : int, default=0
            Which one.
        shape : (height, width) or None, default=None
            Of the images that the vectors are, row by row. None draws points of the plane.
        steps : array-like of shape (n_views,) or None, default=None
            Coefficients at which to show the image on its way; None are five, spread over those
            of the data.

        Returns
        -------
        display : OrbitDisplay
            Itself. Of an image: the image, its change per unit of the coefficient (red where
            it grows, blue where it falls), and views on the way. Of the plane: an arrow at each
            place, and the points.
        """
        j = check_count(generator, "generator", least=0, most=len(self.generators) - 1)
        d = self.points.shape[1]
        if shape is not None:
            return self._plot_images(self._start(x), ax, j, check_image_shape(shape, d), steps)
        if d != 2 or self.components is not None:
            raise_no_flow(d)
        ax = self._take_axes(ax, False, (4.8, 4.8))
        seen = np.concatenate([self.points, [self.prototype, np.zeros(2)]])
        half = 0.6 * float(np.ptp(seen, axis=0).max())
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2
        sides = middle[:, np.newaxis] + np.linspace(-half, half, _FIELD)
        places = np.stack(np.meshgrid(*sides), axis=2).reshape(-1, 2)
        draw_field(ax, places, places @ self.generators[j].T, j)
        draw_vectors(ax, self.points, self.unseen, self.prototype)
        equal_sides(ax, places)
        return self

    def plot_path(self, ax: Any = None) -> "OrbitDisplay":
        """Draw what the fit lowered, step by step.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : OrbitDisplay
            Itself.
        """
        if self.objective_path is None:
            raise_no_orbit_path()
        ax = self._take_axes(ax, False, (6.0, 3.6))
        ax.plot(self.objective_path, "o-", color=CURVES[0], markersize=3.5)
        ax.set(xlabel="step", ylabel="cost")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def _plot_images(
        self, x: Array, ax: Any, j: int, shape: tuple[int, int], steps: ArrayLike | None
    ) -> "OrbitDisplay":
        if steps is None:
            ways = np.linspace(*data_range(self.coefficients[:, j]), 5)
        else:
            words = "one coefficient for each view"
            ways = check_orbit_array(steps, "steps", (None,), words)
        tiles = [(x, "image", False), (self._motion.flow(x)[j], "its change", True)]
        views = curve(self._motion, x, j, ways)
        tiles += [
            (view, f"{way + 0.0:+.2f}", False) for view, way in zip(views, ways, strict=True)
        ]
        across = 1.5 * len(tiles) * shape[1] / shape[0]
        ax = self._take_axes(ax, False, (across, 1.75))
        draw_tiles(ax, [(image.reshape(shape), name, which) for image, name, which in tiles])
        return self

    @property
    def _motion(self) -> Motion:
        if self.mean is None or self.components is None:
            return Motion(self.generators, None)
        return Motion(self.generators, Subspace(self.mean, self.components))

    def _start(self, x: ArrayLike | None) -> Array:
        if x is None:
            return self.prototype
        return check_orbit_array(x, "x", (self.points.shape[1],), "one vector")

    def _take_axes(self, ax: Any, space: bool, size: tuple[float, float] = (5.6, 5.6)) -> Any:
        taken = axes_or_new(ax, size, space=space)
        self.ax_ = check_axes_in_space(taken) if space else check_axes_of_plane(taken)
        self.figure_ = self.ax_.figure
        return self.ax_


def _optional(values: Any, name: str, shape: tuple[int | None, ...], meaning: str) -> Array | None:
    return None if values is None else check_orbit_array(values, name, shape, meaning)
