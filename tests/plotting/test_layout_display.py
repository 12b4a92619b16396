import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import EllipseCollection
from sklearn.exceptions import NotFittedError

from unshuffle import GridLayout
from unshuffle.metrics import neighbor_distance
from unshuffle.plotting import LayoutDisplay

GRID = np.array([[0, 3, 2], [1, -1, 4]])
X = np.array([[0.0], [1.0], [4.0], [2.0], [9.0]])
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 5.0]])


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)


def picture_of(display):
    (image,) = display.ax_.images
    return np.asarray(image.get_array())


def discs_of(display):
    (discs,) = (each for each in display.ax_.collections if isinstance(each, EllipseCollection))
    return discs


def test_colors_stand_in_their_cells_and_empty_ones_are_clear():
    colors = np.random.default_rng(0).random((5, 3))
    drawn = picture_of(LayoutDisplay.from_predictions(GRID, values=colors).plot())
    filled = GRID >= 0
    np.testing.assert_allclose(drawn[filled][:, :3], colors[GRID[filled]])
    np.testing.assert_array_equal(drawn[..., 3], filled)


def test_bytes_are_colors_too():
    colors = np.random.default_rng(0).integers(0, 256, (5, 3), dtype=np.uint8)
    drawn = picture_of(LayoutDisplay.from_predictions(GRID, values=colors).plot())
    np.testing.assert_allclose(drawn[0, 1, :3], colors[3] / 255)


def test_numbers_are_drawn_by_the_color_map_with_a_scale():
    values = [10.0, 20.0, 30.0, 40.0, 50.0]
    display = LayoutDisplay.from_predictions(GRID, values=values).plot(cmap="gray")
    drawn = picture_of(display)
    np.testing.assert_allclose(drawn[0, 0], [0, 0, 0, 1])
    np.testing.assert_allclose(drawn[1, 2], [1, 1, 1, 1])
    assert drawn[1, 1, 3] == 0
    bar = next(ax for ax in display.figure_.axes if ax is not display.ax_)
    assert bar.get_ylim() == (10.0, 50.0)


@pytest.mark.parametrize("n_kinds", [2, 15, 30])
def test_each_kind_has_its_color_and_its_name(n_kinds):
    labels = np.array([f"kind {i % n_kinds:02}" for i in range(60)])
    display = LayoutDisplay.from_predictions(np.arange(60).reshape(6, 10), labels=labels).plot()
    drawn = picture_of(display).reshape(60, 4)
    legend = display.ax_.get_legend()
    named = dict(
        zip(
            (text.get_text() for text in legend.get_texts()),
            (patch.get_facecolor() for patch in legend.get_patches()),
            strict=True,
        )
    )
    assert len(set(named.values())) == n_kinds
    for label, color in zip(labels, drawn, strict=True):
        np.testing.assert_allclose(named[label], color)


def test_more_kinds_than_can_be_named_have_no_legend():
    display = LayoutDisplay.from_predictions(np.arange(60).reshape(6, 10), labels=range(60)).plot()
    assert display.ax_.get_legend() is None


def test_pictures_stand_in_their_cells(images):
    display = LayoutDisplay.from_predictions(GRID, images=images).plot(gap=0)
    drawn = picture_of(display)
    assert drawn.shape == (2 * 4, 3 * 6, 4)
    np.testing.assert_array_equal(drawn[:4, 6:12, :3], images[3])
    np.testing.assert_array_equal(drawn[4:, 12:, :3], images[4])
    assert (drawn[4:, 6:12, 3] == 0).all()
    assert display.ax_.get_aspect() == pytest.approx(4 / 6)


def test_a_gap_sets_pictures_apart(images):
    drawn = picture_of(LayoutDisplay.from_predictions(GRID, images=images).plot(gap=0.2))
    assert drawn.shape == (2 * 8, 3 * 10, 4)
    np.testing.assert_array_equal(drawn[2:6, 12:18, :3], images[3])
    assert (drawn[:2, :, 3] == 0).all()


def test_pictures_are_thinned_out_where_they_are_too_many(images, monkeypatch):
    monkeypatch.setattr("unshuffle.plotting._display._MAX_PIXELS", 6 * 24 // 4)
    drawn = picture_of(LayoutDisplay.from_predictions(GRID, images=images).plot(gap=0))
    assert drawn.shape == (2 * 2, 3 * 3, 4)
    np.testing.assert_array_equal(drawn[:2, :3, :3], images[0, ::2, ::2])


def test_points_are_drawn_where_they_are():
    grid = np.array([2, 0, -1, 1, 3])
    colors = np.random.default_rng(0).random((4, 3))
    display = LayoutDisplay.from_predictions(grid, points=CORNERS, values=colors).plot()
    discs = discs_of(display)
    np.testing.assert_allclose(discs.get_offsets(), CORNERS[:, ::-1])
    np.testing.assert_allclose(discs.get_facecolors()[grid >= 0][:, :3], colors[grid[grid >= 0]])
    # Rows count downwards, and all points are in view.
    bottom, top = display.ax_.get_ylim()
    assert top < 0 < 1 < bottom


def test_pictures_are_centered_on_their_points(images):
    grid = np.array([2, 0, -1, 1, 3])
    display = LayoutDisplay.from_predictions(grid, points=CORNERS, images=images).plot()
    drawn = display.ax_.images
    assert len(drawn) == 4
    for image, item, (row, column) in zip(drawn, grid[grid >= 0], CORNERS[grid >= 0], strict=True):
        np.testing.assert_array_equal(image.get_array(), images[item])
        left, right, bottom, top = image.get_extent()
        assert ((left + right) / 2, (bottom + top) / 2) == pytest.approx((column, row))
        assert right - left < 1


def test_neighbor_distances_are_means_over_touching_cells():
    display = LayoutDisplay.from_predictions(GRID, X=X)
    expected = [[(2 + 1) / 2, (2 + 2) / 2, (2 + 5) / 2], [1, np.nan, 5]]
    np.testing.assert_allclose(display.neighbor_distances, expected)
    around = LayoutDisplay.from_predictions(GRID, X=X, wrap=True).neighbor_distances
    assert around[0, 0] == pytest.approx((2 + 1 + 4) / 3)


def test_neighbor_distances_have_the_mean_that_the_metric_has():
    rng = np.random.default_rng(0)
    features, grid = rng.normal(size=(30, 3)), rng.permutation(30).reshape(5, 6)
    display = LayoutDisplay.from_predictions(grid, X=features, wrap=True)
    # On a torus every cell has four neighbors, so both means weigh pairs alike.
    expected = neighbor_distance(features, grid, wrap=True)
    assert display.neighbor_distances.mean() == pytest.approx(expected)


def test_neighbors_of_points_are_those_about_as_near_as_the_nearest():
    display = LayoutDisplay.from_predictions([0, 1, 2, 3, -1], points=CORNERS, X=X)
    expected = [(1 + 4) / 2, (1 + 1) / 2, (4 + 2) / 2, (1 + 2) / 2, np.nan]
    np.testing.assert_allclose(display.neighbor_distances, expected)
    alone = LayoutDisplay.from_predictions([0, -1, -1, -1, -1], points=CORNERS, X=X)
    assert np.isnan(alone.neighbor_distances).all()


def test_neighbors_are_drawn_on_grids_and_points():
    display = LayoutDisplay.from_predictions(GRID, X=X).plot_neighbors(cmap="gray")
    drawn = picture_of(display)
    assert drawn[0, 0, 0] == pytest.approx((1.5 - 1) / 4, abs=0.01)
    bar = next(ax for ax in display.figure_.axes if ax is not display.ax_)
    assert bar.get_ylabel() == "mean distance to neighbors"
    points = LayoutDisplay.from_predictions([0, 1, 2, 3, -1], points=CORNERS, X=X)
    assert len(discs_of(points.plot_neighbors()).get_offsets()) == 5


def test_without_anything_known_filled_cells_are_drawn_alike():
    drawn = picture_of(LayoutDisplay.from_predictions(GRID).plot())
    assert len(np.unique(drawn[GRID >= 0], axis=0)) == 1
    assert drawn[1, 1, 3] == 0


def test_from_estimator_uses_its_grid_points_and_edges():
    features = np.random.default_rng(0).random((9, 3))
    layout = GridLayout(shape=(3, 4), wrap=True, random_state=0).fit(features)
    display = LayoutDisplay.from_estimator(layout, values=features, X=features)
    np.testing.assert_array_equal(display.grid, layout.grid_)
    expected = LayoutDisplay.from_predictions(layout.grid_, wrap=True, X=features)
    np.testing.assert_allclose(display.neighbor_distances, expected.neighbor_distances)
    np.testing.assert_allclose(
        picture_of(display.plot())[..., :3], layout.arrange(features), atol=1e-12
    )
    points = np.random.default_rng(1).random((12, 2))
    scattered = GridLayout(shape=points, random_state=0).fit(features)
    display = LayoutDisplay.from_estimator(scattered, values=features).plot()
    np.testing.assert_allclose(discs_of(display).get_offsets(), points[:, ::-1])


def test_an_estimator_that_was_not_fitted_is_refused():
    with pytest.raises(NotFittedError, match="GridLayout"):
        LayoutDisplay.from_estimator(GridLayout())


def test_axes_are_used_as_given():
    figure, ax = plt.subplots()
    display = LayoutDisplay.from_predictions(GRID).plot(ax)
    assert (display.ax_, display.figure_) == (ax, figure)


def test_display_does_not_change_what_it_was_given(images):
    grid, values = GRID.copy(), np.arange(5.0)
    LayoutDisplay.from_predictions(grid, values=values, X=X).plot().plot_neighbors()
    np.testing.assert_array_equal(grid, GRID)
    np.testing.assert_array_equal(values, np.arange(5.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": [1.0, 2.0]}, "`grid` must hold items from 0 to 1"),
        ({"values": np.ones((5, 2))}, "`values` must be 5 numbers or 5 rows of red"),
        ({"values": ["a"] * 5}, "`values` must be 5 numbers"),
        ({"values": [np.nan] * 5}, "`values` holds NaN"),
        ({"values": np.full((5, 3), 2.0)}, "must be from 0 to 1 .* got values from 2 to 2"),
        ({"labels": np.ones((5, 2))}, "`labels` must be 5 labels"),
        ({"images": np.ones((5, 4, 4))}, "dtype uint8"),
        ({"values": range(5), "labels": range(5)}, "`values` and `labels` were given"),
        ({"values": range(5), "X": np.ones((4, 2))}, "values has 5 items and X has 4"),
        ({"points": np.ones((5, 2))}, "`grid` must be a 1-D array"),
    ],
)
def test_bad_looks_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LayoutDisplay.from_predictions(GRID, **options)


@pytest.mark.parametrize("points", [None, CORNERS[:4]])
@pytest.mark.parametrize(
    "looks",
    [
        {},
        {"X": np.ones((5, 2))},
        {"values": np.arange(5.0)},
        {"values": np.ones(5)},
        {"values": np.ones((5, 3))},
        {"values": []},
        {"values": np.empty((0, 3))},
        {"labels": list("ababa")},
        {"labels": []},
        {"images": np.zeros((5, 4, 6, 3), dtype=np.uint8)},
    ],
)
def test_a_layout_of_empty_cells_is_drawn_empty(looks, points):
    grid = np.full((2, 2) if points is None else 4, -1)
    display = LayoutDisplay.from_predictions(grid, points=points, **looks).plot()
    if points is None:
        assert np.all(picture_of(display)[..., 3] == 0)
    if "X" in looks:
        assert np.isnan(display.plot_neighbors().neighbor_distances).all()
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        (np.empty((0, 0), dtype=int), {}, r"`grid` has no cells: its shape is \(0, 0\)"),
        (np.empty((0, 3), dtype=int), {"values": [1.0]}, r"`grid` has no cells"),
        ([[0]], {"values": []}, "`grid` must hold -1 alone, got values from 0 to 0"),
        ([[0, 1]], {"values": [-1e308, 1e308]}, "`values` holds numbers beyond 1e300"),
        ([0, 1], {"points": [[0, 0], [1e300, 0]]}, "`points` holds 1e\\+300, whose square"),
        (np.empty(0, dtype=int), {"points": np.empty((0, 2))}, "`grid` has no cells"),
    ],
)
def test_what_nothing_can_be_drawn_of_is_refused(grid, options, message):
    with pytest.raises(ValueError, match=message):
        LayoutDisplay.from_predictions(grid, **options)


def test_a_single_cell_is_drawn():
    display = LayoutDisplay.from_predictions([[0]], values=[3.0], X=[[1.0]])
    display.plot().plot_neighbors().figure_.canvas.draw()
    assert display.ax_.has_data()
    display = LayoutDisplay.from_predictions([0], points=[[3.0, 3.0]], labels=["one"])
    display.plot().figure_.canvas.draw()
    assert display.ax_.has_data()


def test_bad_points_and_gaps_are_refused():
    with pytest.raises(ValueError, match="`points` must be 5 pairs"):
        LayoutDisplay.from_predictions(range(5), points=np.ones((4, 2)))
    with pytest.raises(ValueError, match="`wrap` joins opposite edges"):
        LayoutDisplay.from_predictions(range(5), points=CORNERS, wrap=True)
    with pytest.raises(ValueError, match="`gap` must be a finite number"):
        LayoutDisplay.from_predictions(GRID).plot(gap=-1)


def test_neighbors_without_features_are_refused():
    with pytest.raises(ValueError, match="but `X` is None"):
        LayoutDisplay.from_predictions(GRID).plot_neighbors()
    assert not plt.get_fignums()
