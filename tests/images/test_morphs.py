import numpy as np
import pytest
from PIL import Image, ImageDraw

from unshuffle.images import morph_frames, morph_strip, picture_points, save_gif


def draw_disc(path, ink, ground, *, box=(20, 10, 60, 50), size=(100, 60)):
    picture = Image.new("RGB", size, ground)
    ImageDraw.Draw(picture).ellipse(box, fill=ink)
    picture.save(path)
    return path


def inside(points, middle, radius):
    return np.linalg.norm(points - middle, axis=1) <= radius


@pytest.mark.parametrize(
    ("ink", "ground"), [("black", "white"), ("white", "black"), ("red", "teal")]
)
def test_points_lie_on_what_is_drawn_whatever_is_light_or_dark(tmp_path, ink, ground):
    path = draw_disc(tmp_path / "disc.png", ink, ground)
    points, colors, back = picture_points(path, 150, random_state=0)
    # The longer side is 256 units; y counts from below.
    scale = 256 / 100
    assert inside(points, np.array([40, 30]) * scale, 21 * scale).all()
    np.testing.assert_allclose(points.mean(axis=0), np.array([40, 29]) * scale, atol=4)
    assert back.tolist() == np.asarray(Image.new("RGB", (1, 1), ground))[0, 0].tolist()
    expected = np.asarray(Image.new("RGB", (1, 1), ink))[0, 0]
    assert np.abs(np.median(colors, axis=0) - expected).max() <= 2


def test_points_cover_a_shape_evenly(tmp_path):
    path = draw_disc(tmp_path / "disc.png", "black", "white")
    points = picture_points(path, 100, random_state=0).points
    distances = np.linalg.norm(points[:, np.newaxis] - points[np.newaxis], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    # Points thrown at random would lie a tenth of the usual distance apart here and there.
    assert nearest.min() > 0.4 * np.median(nearest)


def test_up_in_the_picture_is_up_in_the_points(tmp_path):
    path = draw_disc(tmp_path / "top.png", "black", "white", box=(0, 2, 20, 12), size=(100, 100))
    points = picture_points(path, 50, random_state=0).points
    assert points[:, 1].min() > 200
    assert points[:, 0].max() < 60


def test_same_random_state_same_points(tmp_path):
    path = draw_disc(tmp_path / "disc.png", "black", "white")
    first, again, other = (picture_points(path, 30, random_state=s).points for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_more_points_than_a_tiny_picture_has_pixels(tmp_path):
    Image.fromarray(np.pad(np.full((2, 2), 255, np.uint8), 3)).save(tmp_path / "tiny.png")
    points = picture_points(tmp_path / "tiny.png", 500, random_state=0).points
    assert points.shape == (500, 2)
    assert np.isfinite(points).all()


def test_pictures_without_a_drawing_are_refused(tmp_path):
    Image.new("RGB", (20, 20), "navy").save(tmp_path / "plain.png")
    with pytest.raises(ValueError, match="all of one shade"):
        picture_points(tmp_path / "plain.png")
    (tmp_path / "text.png").write_text("not a picture")
    with pytest.raises(ValueError, match=r"cannot be read as a picture: not a picture"):
        picture_points(tmp_path / "text.png")
    with pytest.raises(ValueError, match="cannot be read as a picture"):
        picture_points(tmp_path / "missing.png")


def _frames(*sizes):
    return [Image.new("RGB", (size, size)) for size in sizes]


CORNERS = np.array([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])


def test_frames_show_each_point_in_its_place_and_color():
    colors = [[255, 0, 0], [0, 0, 255]]
    first, second = morph_frames(CORNERS, colors=colors, ground=(0, 0, 0), size=100, dot=10)
    low, high = 6, 94  # a margin of six hundredths
    assert first.size == (100, 100)
    assert first.getpixel((low, high)) == (255, 0, 0)
    assert first.getpixel((high, low)) == (0, 0, 255)
    assert second.getpixel((high, high)) == (255, 0, 0)
    assert second.getpixel((50, 50)) == (0, 0, 0)


def test_ground_and_colors_may_change_on_the_way():
    frames = morph_frames(CORNERS, ground=[[0, 0, 0], [255, 255, 255]], size=50)
    assert frames[0].getpixel((25, 25)) == (0, 0, 0)
    assert frames[1].getpixel((25, 25)) == (255, 255, 255)


def test_a_strip_holds_the_frames_in_reading_order():
    frames = [Image.new("RGB", (10, 10), (k, 0, 0)) for k in range(5)]
    strip = morph_strip(frames, columns=3)
    assert strip.size == (30, 20)
    assert [strip.getpixel((10 * (k % 3), 10 * (k // 3)))[0] for k in range(5)] == list(range(5))
    assert morph_strip(frames).size == (50, 10)


def test_an_animation_goes_there_and_back(tmp_path):
    frames = [Image.new("RGB", (10, 10), (60 * k, 0, 0)) for k in range(4)]
    save_gif(frames, tmp_path / "there.gif", seconds=0.4, pause=0.5)
    shades, durations = [], []
    with Image.open(tmp_path / "there.gif") as film:
        assert film.info["loop"] == 0
        for k in range(film.n_frames):
            film.seek(k)
            shades.append(film.convert("RGB").getpixel((5, 5))[0])
            durations.append(film.info["duration"])
    assert shades == [0, 60, 120, 180, 120, 60]
    assert durations == [500, 100, 100, 500, 100, 100]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: morph_frames(CORNERS[0]), r"`points` must hold points in the plane"),
        (lambda: morph_frames(CORNERS * np.nan), "contains NaN"),
        (lambda: morph_frames(CORNERS, colors=[[1, 2, 3]] * 3), "`colors` has shape"),
        (lambda: morph_frames(CORNERS, ground=(0, 0, 300)), "`ground` must be colors"),
        (lambda: morph_frames(CORNERS, size=2), "`size`"),
        (lambda: morph_frames(CORNERS, dot=0), "`dot`"),
        (lambda: morph_strip([]), "`frames` must be a list of one or more PIL images"),
        (lambda: morph_strip(None), "got NoneType"),
        (lambda: morph_strip(["picture.png"]), "`frames` must be"),
        (lambda: morph_strip(_frames(20, 30)), "of one size"),
        (lambda: morph_strip(_frames(20), columns=0), "`columns`"),
        (lambda: save_gif(_frames(20), "film.gif", seconds=1e9), "`seconds` must be .* at most"),
        (lambda: save_gif([CORNERS], "film.gif"), "`frames` must be"),
        (lambda: morph_frames(CORNERS, colors="red"), "`colors` must be colors"),
        (lambda: morph_frames(CORNERS * 1e308), "too large for a float"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_animation_is_written_to_gif_files_only(tmp_path):
    with pytest.raises(ValueError, match=r"ends in '\.png'"):
        save_gif([Image.new("RGB", (4, 4))], tmp_path / "film.png")
    assert not list(tmp_path.iterdir())
