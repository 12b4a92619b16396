"""OrbitDisplay: learned orbits, their generators and spectra."""

from dataclasses import KW_ONLY, dataclass
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import as_numbers, check_magnitude, kind_of
from unshuffle._core.matrix_exponentials import Motion, Subspace
from unshuffle._core.parameters import check_count, check_positive
from unshuffle._run.types import Floats
from unshuffle.plotting._display import Display

_GIVEN, _UNSEEN, _PROTOTYPE = "#9a8c78", "#c2571a", "#1c1c1c"
_CURVES = ("#0f6948", "#3f5fa8", "#8a4fa0", "#b0891b")
# Points along a curve and on each side of a surface, arrows on each side of a field.
_CURVE, _SURFACE, _FIELD = 200, 33, 15
_VIEW = 10.0  # margin around the data to draw in, in extents of the data


@dataclass(eq=False, repr=False)
class OrbitDisplay(Display):
    """Vectors, the orbit learned from them, and its continuation beyond them.

    `plot` draws points in two or three dimensions with the orbit of the prototype, `plot_flow`
    the effect of a generator on an image or on the plane, `plot_spectrum` the number of
    generators, and `plot_path` the objective after each step of the fit.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_features)
        Vectors that the orbit was learned from.
    generators : ndarray of shape (k, d, d)
        Matrices that move vectors, or their coordinates along `components`.
    prototype : ndarray of shape (n_features,)
        Start of the orbit.
    coefficients : ndarray of shape (n_samples, k)
        Coefficients of each vector along the generators.
    unseen : ndarray of shape (n_unseen, n_features) or None, default=None
        Other vectors to draw.
    spectrum, objective_path : ndarray or None, default=None
        Mean squares of the matrices along their directions, and cost after each step.
    mean, components : ndarray or None, default=None
        Center, shape (n_features,), and directions, shape (d, n_features), of the coordinates
        that the generators move.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

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

    points: Floats
    generators: Floats
    prototype: Floats
    coefficients: Floats
    _: KW_ONLY
    unseen: Floats | None = None
    spectrum: Floats | None = None
    objective_path: Floats | None = None
    mean: Floats | None = None
    components: Floats | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, *, unseen: ArrayLike | None = None
    ) -> Self:
        """Display of a fitted `OrbitLearner`.

        Parameters
        ----------
        estimator : OrbitLearner
            Fitted.
        X : array-like of shape (n_samples, n_features)
            The vectors it was fitted to.
        unseen : array-like of shape (n_unseen, n_features) or None, default=None
            Other vectors to draw, which should lie on the orbit.

        Returns
        -------
        display : OrbitDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "generators_")
        learned = ("spectrum", "objective_path", "mean", "components")
        known: dict[str, Any] = {name: getattr(estimator, f"{name}_", None) for name in learned}
        moves = estimator.generators_, estimator.prototype_, estimator.transform(X)
        return cls.from_predictions(X, *moves, unseen=unseen, **known)

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
    ) -> Self:
        """Display of any generators.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        generators : array-like of shape (k, d, d)
            Matrices; d is n_features, or the number of `components`.
        prototype : array-like of shape (n_features,)
            Start of the orbit.
        coefficients : array-like of shape (n_samples, k)
            Coefficients of each vector along the generators.
        unseen : array-like of shape (n_unseen, n_features) or None, default=None
            Other vectors to draw.
        spectrum, objective_path : array-like or None, default=None
            Values for `plot_spectrum` and `plot_path`.
        mean, components : array-like or None, default=None
            Center and directions of the coordinates, if the generators move coordinates.

        Returns
        -------
        display : OrbitDisplay
            Ready to `plot`.
        """
        if (mean is None) != (components is None):
            given, missing = ("mean", "components")[:: 1 if components is None else -1]
            raise ValueError(
                f"`{given}` was passed without `{missing}`. Pass both if the generators move "
                "coordinates along components, otherwise neither."
            )
        points = _check_numbers(X, "X", (None, None), "one vector in each row")
        n, d = points.shape
        words = "one direction in each row"
        directions = _optional(components, "components", (None, d), words)
        width = d if directions is None else len(directions)
        words = f"matrices that move {width} coordinates"
        moves = _check_numbers(generators, "generators", (None, width, width), words)
        words = "a row for each vector, a column for each generator"
        return cls(
            points,
            moves,
            _check_numbers(prototype, "prototype", (d,), "one vector"),
            _check_numbers(coefficients, "coefficients", (n, len(moves)), words),
            unseen=_optional(unseen, "unseen", (None, d), "one vector in each row"),
            spectrum=_optional(spectrum, "spectrum", (None,), "largest first"),
            objective_path=_optional(objective_path, "objective_path", (None,), "one per step"),
            mean=_optional(mean, "mean", (d,), "the center of the vectors"),
            components=directions,
        )

    def orbit(self, coefficients: ArrayLike, x: ArrayLike | None = None) -> Floats:
        """Vectors on the orbit.

        Parameters
        ----------
        coefficients : array-like of shape (n, k)
            Coefficients along the generators. Larger ones lead further.
        x : array-like of shape (n_features,) or None, default=None
            Start of the orbit; None is the prototype.

        Returns
        -------
        vectors : ndarray of shape (n, n_features)
            exp(sum c V) x.
        """
        shape = (None, len(self.generators))
        rows = _check_numbers(coefficients, "coefficients", shape, "a column for each generator")
        return self._motion.moved(self._start(x), rows)

    def plot(self, ax: Any = None, *, reach: float = 3.0) -> Self:
        """Draw the vectors and the orbit of the prototype, within the data and beyond.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw, 3-D for vectors of 3 numbers; None makes a figure.
        reach : float, default=3.0
            Length of the curves, as a multiple of the range of the data along each generator.
            Larger values extrapolate further.

        Returns
        -------
        display : OrbitDisplay
            Itself. Each curve follows one generator and is thick within the range of the data.
            In 3-D, the surface combines the first two generators. Curves end ten extents of the
            data away from it.
        """
        d = self.points.shape[1]
        if d not in (2, 3):
            raise ValueError(
                f"Vectors of {d} numbers cannot be drawn as points. Use plot_spectrum, or, if "
                "they are images, plot_flow with their shape."
            )
        reach = check_positive(reach, "reach")
        space = d == 3
        ax = self._take_axes(ax, (5.6, 5.6), space=space)
        drawn = [self.points] if self.unseen is None else [self.points, self.unseen]
        fixed = np.zeros(d) if self.mean is None else self.mean
        seen = np.concatenate([*drawn, [self.prototype, fixed]])
        if space and len(self.generators) > 1:
            drawn.append(_in_view(self._surface(reach), seen))
            x, y, z = drawn[-1].T.reshape(3, _SURFACE, _SURFACE)
            look: dict[str, Any] = {"edgecolor": "#0f694850", "color": _CURVES[0], "alpha": 0.16}
            ax.plot_surface(x, y, z, rcount=_SURFACE, ccount=_SURFACE, linewidth=0.3, **look)
        for j in range(len(self.generators)):
            steps, inside = _curve_steps(self.coefficients[:, j], reach)
            curve = _in_view(self._curve(self.prototype, j, steps), seen)
            known = np.where(inside[:, np.newaxis], curve, np.nan)
            color, name = _CURVES[j % len(_CURVES)], f"along generator {j}"
            ax.plot(*curve.T, color=color, linewidth=1.1, zorder=2)
            ax.plot(*known.T, color=color, linewidth=3.0, label=name, zorder=4)
            drawn.append(curve)
        self._draw_vectors(ax)
        _equal_sides(ax, np.concatenate(drawn))
        if space:
            # The prototype in front, seen from outside: matrices keep the origin fixed.
            ax.view_init(elev=28, azim=float(np.degrees(np.arctan2(*self.prototype[1::-1]))) + 20)
            # Sorting by depth would hide points behind the transparent surface they lie on.
            ax.computed_zorder = False
            ax.locator_params(nbins=5)
        look = {"loc": "upper left", "fontsize": 8} if space else {"fontsize": 9}
        ax.legend(frameon=False, handlelength=1.3, labelspacing=0.3, **look)
        return self

    def plot_spectrum(self, ax: Any = None, *, n_shown: int = 12) -> Self:
        """Draw the mean square of the matrices along each direction, and how many were kept.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_shown : int, default=12
            Number of directions to draw, at most.

        Returns
        -------
        display : OrbitDisplay
            Itself. A steep drop after the kept directions means that there are no others.
        """
        if self.spectrum is None:
            raise ValueError(
                "There is no spectrum to draw. Build the display with from_estimator, or pass "
                "`spectrum` to from_predictions."
            )
        n_shown = check_count(n_shown, "n_shown")
        ax = self._take_axes(ax, (6.0, 3.6), space=False)
        k = len(self.generators)
        values = self.spectrum[: max(n_shown, k + 1)]
        # Zeros, or rounding, must fit on a logarithmic scale.
        floor = 1e-10 * (float(values.max()) or 1.0)
        heights = np.maximum(values, floor)
        colors = [_CURVES[0] if j < k else _GIVEN for j in range(len(values))]
        positions = np.arange(1, len(values) + 1)
        ax.vlines(positions, floor, heights, colors=colors, linewidth=2)
        ax.scatter(positions, heights, c=colors, s=45, zorder=3)
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
    ) -> Self:
        """Draw the effect of a generator on an image, or on the points of the plane.

        Parameters
        ----------
        x : array-like of shape (n_features,) or None, default=None
            Image to start from; None is the prototype. Ignored for points of the plane.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        generator : int, default=0
            Index of the generator.
        shape : (height, width) or None, default=None
            Shape of the images that the vectors hold row by row. None draws points of the plane.
        steps : array-like of shape (n_views,) or None, default=None
            Coefficients at which to show the image. None takes five from the range of the data.

        Returns
        -------
        display : OrbitDisplay
            Itself. For an image: the image, its change per unit of the coefficient (red where
            it grows, blue where it falls), and the image at each step. For the plane: a field of
            arrows, and the vectors.
        """
        j = check_count(generator, "generator", least=0, most=len(self.generators) - 1)
        d = self.points.shape[1]
        if shape is not None:
            return self._plot_images(self._start(x), ax, j, shape, steps)
        if d != 2 or self.components is not None:
            raise ValueError(
                f"The flow of vectors of {d} numbers can be drawn only if they are images. Pass "
                "their shape=(height, width)."
            )
        ax = self._take_axes(ax, (4.8, 4.8), space=False)
        seen = np.concatenate([self.points, [self.prototype, np.zeros(2)]])
        half = 0.6 * float(np.ptp(seen, axis=0).max())
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2
        sides = middle[:, np.newaxis] + np.linspace(-half, half, _FIELD)
        places = np.stack(np.meshgrid(*sides), axis=2).reshape(-1, 2)
        directions = places @ self.generators[j].T
        # The mean arrow is a little longer than half the step between arrows.
        lengths = np.hypot(*directions.T)  # squares would overflow
        step = float(np.ptp(places, axis=0).max()) / (_FIELD - 1)
        scale = float(lengths.mean()) / (0.6 * step) or 1.0
        look: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": scale}
        look |= {"color": _CURVES[j % len(_CURVES)], "alpha": 0.8, "width": 0.004, "zorder": 1}
        ax.quiver(*places.T, *directions.T, **look)
        self._draw_vectors(ax)
        _equal_sides(ax, places)
        return self

    def plot_path(self, ax: Any = None) -> Self:
        """Draw what the fit minimized, after each step.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : OrbitDisplay
            Itself.
        """
        self._draw_paths(ax, ("cost", _CURVES[0], self.objective_path))
        return self

    def _plot_images(self, x: Floats, ax: Any, j: int, shape: Any, steps: Any) -> Self:
        """Draw an image, its change and its views at some steps, side by side.

        Images share one gray scale. The change has its own, white where nothing changes.
        """
        try:
            height, width = (index(length) for length in shape)
        except (TypeError, ValueError):
            height, width = 0, 0
        if min(height, width) < 1 or height * width != x.size:
            raise ValueError(
                f"`shape` must be (height, width) of images of {x.size} pixels, got {shape!r}. "
                "Vectors are read row by row."
            )
        if steps is None:
            shifts = np.linspace(*_data_range(self.coefficients[:, j]), 5)
        else:
            shifts = _check_numbers(steps, "steps", (None,), "one coefficient for each view")
        views, change = self._curve(x, j, shifts), self._motion.flow(x)[j]
        shown, most = np.vstack([x, views]), float(np.abs(change).max()) or 1.0
        gray = {"cmap": "gray_r", "vmin": shown.min(), "vmax": shown.max()}
        colored = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
        tiles = [(x, "image", gray), (change, "its change", colored)]
        tiles += [(view, f"{by + 0.0:+.2f}", gray) for view, by in zip(views, shifts, strict=True)]
        ax = self._take_axes(ax, (1.5 * len(tiles) * width / height, 1.75), space=False)
        for k, (image, name, look) in enumerate(tiles):
            left = 1.08 * k * width
            ax.imshow(image.reshape(height, width), extent=(left, left + width, height, 0), **look)
            ax.text(left + width / 2, -0.05 * height, name, ha="center", va="bottom", fontsize=9)
        ends = -0.04 * width, (1.08 * len(tiles) - 0.04) * width
        self._show(ends, (1.03 * height, -0.25 * height))
        return self

    def _draw_vectors(self, ax: Any) -> None:
        """Draw the vectors, the unseen ones and the prototype."""
        size = float(np.clip(2400 / len(self.points), 8, 30))
        ax.scatter(*self.points.T, c=_GIVEN, s=size, linewidths=0, label="given", zorder=3)
        if self.unseen is not None:
            look: dict[str, Any] = {"facecolors": "none", "edgecolors": _UNSEEN, "linewidths": 0.9}
            ax.scatter(*self.unseen.T, s=18, label="not given", zorder=3, **look)
        look = {"marker": "*", "c": _PROTOTYPE, "s": 110, "linewidths": 0}
        ax.scatter(*self.prototype[:, np.newaxis], label="prototype", zorder=5, **look)

    def _curve(self, x: Floats, j: int, steps: Floats) -> Floats:
        """Orbit of x along one generator, shape (n_steps, n_features)."""
        rows = np.zeros((len(steps), len(self.generators)))
        rows[:, j] = steps
        return self._motion.moved(x, rows)

    def _surface(self, reach: float) -> Floats:
        """Orbit of the prototype along the first two generators, row by row of a square."""
        sides = [_curve_steps(self.coefficients[:, j], reach, _SURFACE)[0] for j in (0, 1)]
        rows = np.zeros((_SURFACE**2, len(self.generators)))
        rows[:, :2] = np.stack(np.meshgrid(*sides), axis=2).reshape(-1, 2)
        return self._motion.moved(self.prototype, rows)

    @property
    def _motion(self) -> Motion:
        if self.mean is None or self.components is None:
            return Motion(self.generators, None)
        return Motion(self.generators, Subspace(self.mean, self.components))

    def _start(self, x: ArrayLike | None) -> Floats:
        if x is None:
            return self.prototype
        return _check_numbers(x, "x", (self.points.shape[1],), "one vector")


def _optional(
    values: Any, name: str, shape: tuple[int | None, ...], meaning: str
) -> Floats | None:
    return None if values is None else _check_numbers(values, name, shape, meaning)


def _in_view(places: Floats, seen: Floats) -> Floats:
    """Places, NaN where they are so far away that the data would shrink to a dot."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = _VIEW * float((high - low).max())
    outside = ((places < low - room) | (places > high + room)).any(axis=1)
    return np.where(outside[:, np.newaxis], np.nan, places)


def _equal_sides(ax: Any, drawn: Floats) -> None:
    """Set limits around the places drawn, ignoring NaN, with equal scales in all directions."""
    low, high = np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0)
    half = 0.54 * float((high - low).max()) or 1.0
    for name, center in zip("xyz", (low + high) / 2, strict=False):
        getattr(ax, f"set_{name}lim")(center - half, center + half)
    if drawn.shape[1] == 3:
        ax.set_box_aspect((1, 1, 1))
    else:
        ax.set_aspect("equal")


def _data_range(along: Floats) -> tuple[float, float]:
    """Range of the data along a generator, with the prototype at 0."""
    return min(float(along.min()), 0.0), max(float(along.max()), 0.0)


def _curve_steps(along: Floats, reach: float, n: int = _CURVE) -> tuple[Floats, NDArray[np.bool_]]:
    """Coefficients over a multiple of the range of the data, and which lie within the data."""
    low, high = _data_range(along)
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    steps = np.linspace(middle - reach * half, middle + reach * half, n)
    return steps, (steps >= low) & (steps <= high)


def _check_numbers(values: Any, name: str, shape: tuple[int | None, ...], meaning: str) -> Floats:
    """Finite numbers of a shape, in which None allows any length above zero."""
    try:
        array = as_numbers(values, f"`{name}`")
    except (TypeError, ValueError) as error:
        message = f"`{name}` must hold real numbers, {meaning}, got {kind_of(values)}."
        raise ValueError(message) from error
    fits = array.ndim == len(shape) and all(
        length == (asked or length) > 0 for length, asked in zip(array.shape, shape, strict=True)
    )
    if not fits:
        asked = ", ".join("n" if length is None else str(length) for length in shape)
        asked = f"({asked},)" if len(shape) == 1 else f"({asked})"
        raise ValueError(f"`{name}` must have shape {asked}, {meaning}, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite numbers.")
    check_magnitude(array, f"`{name}`")
    return array
