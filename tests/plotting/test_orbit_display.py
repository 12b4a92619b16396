import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.linalg import expm
from sklearn.exceptions import NotFittedError

from unshuffle import OrbitLearner
from unshuffle.plotting import OrbitDisplay

SURFACE = matplotlib.collections.PolyCollection
TURN = np.array([[[0.0, -1.0], [1.0, 0.0]]]) / np.sqrt(2)


def circle(degrees):
    angle = np.radians(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def sphere(degrees):
    azimuth, elevation = np.radians(degrees).T
    flat = np.cos(elevation)
    return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])


@pytest.fixture(scope="module")
def arc():
    return circle(np.linspace(10, 80, 40))


@pytest.fixture(scope="module")
def round_trip(arc):
    return OrbitDisplay.from_estimator(
        OrbitLearner(1, random_state=0).fit(arc), arc, unseen=circle([150.0, 200.0])
    )


@pytest.fixture(scope="module")
def wedge():
    return sphere(np.random.RandomState(0).uniform(20, 70, (80, 2)))


@pytest.fixture(scope="module")
def globe(wedge):
    learner = OrbitLearner(2, structure="skew", random_state=0).fit(wedge)
    return OrbitDisplay.from_estimator(learner, wedge)


@pytest.fixture(scope="module")
def pictures():
    """Bars that move around a ring of six columns, as images of two rows."""
    views = np.array([np.tile(np.roll([4.0, 2, 0, 0, 0, 1], k), 2) for k in range(6)])
    pairs = [[(k + 1) % 6, k] for k in range(6)]
    learner = OrbitLearner(1, structure="skew", pairs=pairs, n_components=4, random_state=0)
    return learner.fit(views), views


def curves(display):
    """Thin and thick curve along each generator."""
    return [
        np.array(line.get_data_3d() if display.ax_.name == "3d" else line.get_data()).T
        for line in display.ax_.lines
    ]


def test_the_curve_goes_on_around_the_circle_where_the_data_end(round_trip):
    round_trip.plot(reach=6)
    beyond, within = curves(round_trip)
    np.testing.assert_allclose(np.linalg.norm(beyond, axis=1), 1, atol=1e-6)
    assert beyond[:, 0].min() < -0.99
    known = within[np.isfinite(within[:, 0])]
    assert known.min() > 0.1  # the given 70 degrees only
    labels = [each.get_text() for each in round_trip.ax_.get_legend().get_texts()]
    assert labels == ["along generator 0", "given", "not given", "prototype"]


def test_a_larger_reach_leads_further(round_trip):
    lengths = []
    for reach in (1, 2):
        steps = np.diff(curves(round_trip.plot(reach=reach))[0], axis=0)
        lengths.append(np.linalg.norm(steps, axis=1).sum())
    assert lengths[1] == pytest.approx(2 * lengths[0], rel=1e-3)


def test_two_generators_draw_a_surface_in_space(globe):
    globe.plot()
    assert globe.ax_.name == "3d"
    assert [each for each in globe.ax_.collections if isinstance(each, SURFACE)]
    for curve in curves(globe)[::2]:
        np.testing.assert_allclose(np.linalg.norm(curve, axis=1), 1, atol=1e-6)
    assert len(globe.ax_.lines) == 4


def test_one_generator_in_space_is_a_curve_without_a_surface(wedge, globe):
    one = OrbitDisplay.from_predictions(
        wedge, globe.generators[:1], wedge[0], globe.coefficients[:, :1]
    ).plot()
    assert len(one.ax_.lines) == 2
    assert not [each for each in one.ax_.collections if isinstance(each, SURFACE)]


def test_the_orbit_is_the_estimators(pictures):
    learner, views = pictures
    display = OrbitDisplay.from_estimator(learner, views)
    steps = np.linspace(-3, 3, 7)[:, np.newaxis]
    np.testing.assert_allclose(display.orbit(steps), learner.inverse_transform(steps), atol=1e-9)
    np.testing.assert_allclose(
        display.orbit(steps, views[2]), learner.orbit(views[2], steps), atol=1e-9
    )


def test_the_spectrum_marks_the_generators_kept(globe):
    ax = globe.plot_spectrum().ax_
    assert [each.get_text().strip() for each in ax.texts] == ["2 generators"]
    assert ax.lines[0].get_xdata() == [2.5, 2.5]
    dots = ax.collections[-1]
    np.testing.assert_allclose(dots.get_offsets()[:2, 1], globe.spectrum[:2])
    colors = dots.get_facecolors()
    assert np.array_equal(colors[0], colors[1])
    assert not np.array_equal(colors[1], colors[2])


def test_the_flow_of_an_image_is_its_change_beside_views_on_the_way(pictures):
    learner, views = pictures
    display = OrbitDisplay.from_estimator(learner, views)
    steps = [0.0, float(learner.coefficients_.mean())]
    display.plot_flow(views[1], shape=(2, 6), steps=steps)
    image, change, here, later = (np.asarray(each.get_array()) for each in display.ax_.images)
    np.testing.assert_allclose(image, views[1].reshape(2, 6))
    np.testing.assert_allclose(change, learner.flow(views[1])[0].reshape(2, 6), atol=1e-9)
    np.testing.assert_allclose(here, image, atol=1e-9)
    np.testing.assert_allclose(later, learner.orbit(views[1], steps[1:]).reshape(2, 6), atol=1e-9)
    low, high = display.ax_.images[1].get_clim()
    assert low == -high  # white means no change


def test_views_spread_over_the_coefficients_of_the_data_by_default(pictures):
    learner, views = pictures
    display = OrbitDisplay.from_estimator(learner, views).plot_flow(shape=(2, 6))
    assert len(display.ax_.images) == 7
    ends = display.coefficients.min(), display.coefficients.max()
    labels = [each.get_text() for each in display.ax_.texts]
    assert (labels[2], labels[-1]) == (f"{min(ends[0], 0):+.2f}", f"{max(ends[1], 0):+.2f}")


def test_the_flow_of_the_plane_has_the_directions_of_the_generator(arc):
    display = OrbitDisplay.from_predictions(arc, TURN, arc[0], np.zeros((40, 1))).plot_flow()
    (arrows,) = (
        each for each in display.ax_.collections if isinstance(each, matplotlib.quiver.Quiver)
    )
    places = np.asarray(arrows.get_offsets())
    ways = np.column_stack([arrows.U, arrows.V])
    np.testing.assert_allclose(ways, places @ TURN[0].T, atol=1e-12)


def test_the_path_is_the_estimators(round_trip, arc):
    learner = OrbitLearner(1, random_state=0).fit(arc)
    (line,) = round_trip.plot_path().ax_.lines
    np.testing.assert_array_equal(line.get_ydata(), learner.objective_path_)


def test_generators_from_elsewhere_can_be_drawn_on_axes_of_ones_own(arc):
    figure, ax = plt.subplots()
    along = np.sqrt(2) * np.radians(np.linspace(0, 70, 40))[:, np.newaxis]
    display = OrbitDisplay.from_predictions(arc, TURN, arc[0], along).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    np.testing.assert_allclose(display.orbit(along), arc, atol=1e-12)
    np.testing.assert_allclose(display.orbit([[1.0]])[0], expm(TURN[0]) @ arc[0])


def test_display_does_not_change_what_it_was_given(arc):
    before = arc.copy()
    OrbitDisplay.from_predictions(arc, TURN, arc[0], np.zeros((40, 1))).plot().plot_flow()
    np.testing.assert_array_equal(before, arc)


def test_an_estimator_that_was_not_fitted_is_refused(arc):
    with pytest.raises(NotFittedError, match="OrbitLearner"):
        OrbitDisplay.from_estimator(OrbitLearner(), arc)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": [1.0, 2.0]}, r"`X` must have shape \(n, n\), one vector in each row, got"),
        ({"X": [["a", "b"]]}, "`X` must hold real numbers"),
        ({"X": [[np.nan, 1.0]]}, "`X` contains NaN or infinity"),
        ({"generators": np.eye(3)[None]}, r"`generators` must have shape \(n, 2, 2\)"),
        ({"prototype": [1.0]}, r"`prototype` must have shape \(2,\)"),
        ({"coefficients": [[1.0]]}, r"`coefficients` must have shape \(40, 1\)"),
        ({"unseen": [[1.0, 2.0, 3.0]]}, r"`unseen` must have shape \(n, 2\)"),
        ({"mean": [0.0, 0.0]}, "`mean` was passed without `components`"),
        ({"components": [[1.0, 0.0]]}, "`components` was passed without `mean`"),
    ],
)
def test_what_does_not_fit_together_is_refused(arc, changed, message):
    given = {
        "X": arc,
        "generators": TURN,
        "prototype": arc[0],
        "coefficients": np.zeros((40, 1)),
    }
    with pytest.raises(ValueError, match=message):
        OrbitDisplay.from_predictions(**{**given, **changed})


def test_what_cannot_be_drawn_is_refused(arc, globe, pictures):
    bare = OrbitDisplay.from_predictions(arc, TURN, arc[0], np.zeros((40, 1)))
    with pytest.raises(ValueError, match="There is no spectrum to draw"):
        bare.plot_spectrum()
    with pytest.raises(ValueError, match="There is no path to draw"):
        bare.plot_path()
    with pytest.raises(ValueError, match="`reach` must be a finite number above 0"):
        bare.plot(reach=0)
    with pytest.raises(ValueError, match="`generator` must be from 0 to 0, got 1"):
        bare.plot_flow(generator=1)
    with pytest.raises(ValueError, match="flow of vectors of 3 numbers"):
        globe.plot_flow()
    many = OrbitDisplay.from_estimator(*pictures)
    with pytest.raises(ValueError, match="Vectors of 12 numbers cannot be drawn as points"):
        many.plot()
    for shape in ((3, 5), 12, (2, 6, 1), "26", (2.0, 6.0)):
        with pytest.raises(ValueError, match=r"`shape` must be \(height, width\)"):
            many.plot_flow(shape=shape)
    with pytest.raises(ValueError, match="`steps` must have shape"):
        many.plot_flow(shape=(2, 6), steps=1.0)
    with pytest.raises(ValueError, match="`x` must have shape"):
        many.plot_flow([1.0], shape=(2, 6))
    assert not plt.get_fignums()


def test_orbits_that_overflow_are_refused(arc):
    growing = OrbitDisplay.from_predictions(arc, [np.eye(2)], arc[0], np.ones((40, 1)))
    with pytest.raises(ValueError, match="overflows"):
        growing.plot(reach=1e4)
    with pytest.raises(ValueError, match="overflows"):
        growing.orbit([[1e6]])


def test_orbits_that_rounding_decides_are_refused(round_trip):
    with pytest.raises(ValueError, match="rounding decides"):
        round_trip.plot(reach=1e14)


def test_what_leads_far_away_does_not_shrink_the_data_to_a_dot(arc):
    growing = OrbitDisplay.from_predictions(arc, [np.eye(2)], arc[0], np.ones((40, 1)))
    low, high = growing.plot(reach=100).ax_.get_xlim()
    assert 5 < high - low < 30


def test_axes_of_the_wrong_kind_are_refused(round_trip, globe):
    for ax in (5, plt.figure()):
        for draw in (round_trip.plot, round_trip.plot_path, round_trip.plot_spectrum, globe.plot):
            with pytest.raises(TypeError, match="`ax` must be matplotlib Axes, got"):
                draw(ax=ax)
    in_space = plt.figure().add_subplot(projection="3d")
    for draw in (round_trip.plot, round_trip.plot_path, round_trip.plot_spectrum):
        with pytest.raises(ValueError, match="needs 2-D axes, got 3-D axes"):
            draw(in_space)
    with pytest.raises(ValueError, match="need 3-D axes"):
        globe.plot(plt.subplots()[1])
