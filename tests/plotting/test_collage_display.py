import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from unshuffle import Collage
from unshuffle.plotting import CollageDisplay


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    template = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    tiles = rng.integers(0, 256, (6, 4, 4, 3), dtype=np.uint8)
    return template, np.array([[5, 0, 1], [2, -1, 3]]), tiles


def test_template_and_collage_stand_side_by_side_equally_high(parts):
    template, grid, tiles = parts
    display = CollageDisplay.from_predictions(template, grid, tiles).plot()
    left, right = display.ax_.images
    np.testing.assert_array_equal(left.get_array(), template)
    np.testing.assert_array_equal(right.get_array()[:4, 4:8, :3], tiles[0])
    assert (right.get_array()[4:, 4:8, 3] == 0).all()
    (x0, x1, y0, y1), (x2, x3, *others) = left.get_extent(), right.get_extent()
    assert [y0, y1] == others
    assert x0 < x1 < x2 < x3
    # Neither is stretched.
    assert (x1 - x0) / (y1 - y0) == pytest.approx(30 / 20)
    assert (x3 - x2) / (y1 - y0) == pytest.approx(12 / 8)


def test_from_estimator_uses_its_template_and_grid(parts):
    template, _, tiles = parts
    collage = Collage(template, (2, 3), random_state=0).fit(tiles)
    display = CollageDisplay.from_estimator(collage, tiles)
    np.testing.assert_array_equal(display.template, template)
    np.testing.assert_array_equal(display.grid, collage.grid_)
    np.testing.assert_array_equal(display.picture[..., :3], collage.render(tiles))
    larger = tiles.repeat(3, axis=1).repeat(3, axis=2)
    np.testing.assert_array_equal(
        CollageDisplay.from_estimator(collage, larger).picture[..., :3], collage.render(larger)
    )
    with pytest.raises(NotFittedError, match="Collage"):
        CollageDisplay.from_estimator(Collage(template), tiles)


def test_labels_and_axes_are_used_as_given(parts):
    figure, ax = plt.subplots()
    display = CollageDisplay.from_predictions(*parts).plot(ax, labels=("before", "after"))
    assert (display.ax_, display.figure_) == (ax, figure)
    assert [text.get_text() for text in ax.texts] == ["before", "after"]


def test_gray_pictures_are_welcome(parts):
    template, grid, tiles = parts
    display = CollageDisplay.from_predictions(template[..., 0], grid, tiles[..., 0])
    assert display.template.shape == (20, 30, 3)
    np.testing.assert_array_equal(display.picture[:4, :4, 1], tiles[5, ..., 0])


def test_bad_parts_are_refused(parts):
    template, grid, tiles = parts
    with pytest.raises(ValueError, match="`template` must be one picture of dtype uint8"):
        CollageDisplay.from_predictions(template / 255, grid, tiles)
    with pytest.raises(ValueError, match=r"`template` must be one picture .* got shape \(6, 4"):
        CollageDisplay.from_predictions(tiles, grid, tiles)
    with pytest.raises(ValueError, match="`tiles` must have shape"):
        CollageDisplay.from_predictions(template, grid, template[0])
    with pytest.raises(ValueError, match="items from 0 to 4"):
        CollageDisplay.from_predictions(template, grid, tiles[:5])
