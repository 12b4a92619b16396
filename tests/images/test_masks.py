import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from unshuffle.images import read_mask, text_mask


def n_holes(cells):
    return ndimage.label(~np.pad(cells, 1))[1] - 1


@pytest.mark.parametrize("n_cells", [200, 280, 320, 700])
def test_letters_have_exactly_the_cells_asked_for(n_cells):
    assert text_mask("PAMI 2009", n_cells).sum() == n_cells


def test_letters_keep_their_holes():
    # One each in R, O, 0, 0 and 9, two in B.
    for n_cells in (200, 280, 320):
        assert n_holes(text_mask("ROB 2009", n_cells)) >= 7
    assert [n_holes(text_mask(letter, 60)) for letter in "B8OTL"] == [2, 2, 1, 0, 0]


def test_letters_stand_apart_and_in_order():
    mask = text_mask("ILI", 60)
    parts, count = ndimage.label(mask)
    assert count == 3
    widths = [np.ptp(np.nonzero(parts == k)[1]) for k in (1, 2, 3)]
    assert widths[1] > widths[0] == widths[2]


def test_an_accent_given_apart_belongs_to_its_letter():
    np.testing.assert_array_equal(text_mask("CAFE\u0301", 80), text_mask("CAF\u00c9", 80))


def test_few_items_still_get_legible_letters():
    mask = text_mask("A", 3, margin=0)
    assert mask.shape[0] == 5
    assert mask.sum() > 3
    assert n_holes(text_mask("OOOO OOOO", 1)) == 8


@pytest.mark.parametrize("text", ["''", "-", "|", "."])
def test_marks_too_slight_to_cover_a_cell_are_drawn_all_the_same(text):
    # A warning of NumPy would be an error here.
    assert text_mask(text, height=5).any()
    for n_cells in (1, 5, 40):
        assert text_mask(text, n_cells).sum() >= n_cells


def test_height_and_margin_are_kept():
    assert text_mask("HI", height=9, margin=0).shape[0] == 9
    padded = text_mask("HI", height=9, margin=3)
    assert padded.shape[0] == 15
    assert not padded[:3].any()
    assert not padded[:, -3:].any()


def test_lines_stand_below_one_another():
    one, two = text_mask("AA", height=8, margin=0), text_mask("AA\nA", height=8, margin=0)
    assert two.shape[0] >= 17
    np.testing.assert_array_equal(two[:8], one)


def test_accents_that_cannot_be_drawn_are_dropped():
    np.testing.assert_array_equal(text_mask("é", 50), text_mask("e", 50))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((" \n",), {}, "has no letter to draw"),
        ((5,), {}, "must be a string, got int"),
        (("日本",), {}, "holds '日', which the built-in font cannot draw"),
        (("A", 0), {}, "`n_cells` must be from 1"),
        (("A", 1000), {"height": 6}, "Letters of height 6 have .* fewer than the 1000"),
        (("A",), {"height": 4}, "`height` must be from 5"),
        (("A",), {"margin": -1}, "`margin`"),
        (("A" * 201,), {}, "at most 50 lines of 200 letters"),
    ],
)
def test_texts_that_cannot_be_drawn_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        text_mask(*arguments, **options)


@pytest.fixture
def disc(tmp_path):
    """A black disc on white, two hundred pixels wide."""
    y, x = np.mgrid[-150:150, -150:150]
    pixels = np.where(np.hypot(x, y) < 100, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "disc.png")
    return tmp_path / "disc.png"


def test_a_picture_is_scaled_to_the_cells_asked_for(disc):
    mask = read_mask(disc, 320)
    assert mask.sum() == 320
    # A disc of area 320 is 20.2 wide.
    assert mask.shape == pytest.approx((20, 20), abs=1)
    assert mask.any(axis=0).all()
    assert mask.any(axis=1).all()
    assert not mask[0, 0]
    assert mask[10, 10]


def test_enlarged_pictures_have_the_cells_too(tmp_path):
    Image.fromarray(np.zeros((2, 3), np.uint8)).save(tmp_path / "small.png")
    mask = read_mask(tmp_path / "small.png", 50)
    assert 50 <= mask.sum() <= 54
    assert mask.shape[1] > mask.shape[0]


def test_each_pixel_is_a_cell_where_that_is_about_right(tmp_path):
    drawn = np.random.RandomState(0).rand(12, 15) < 0.6
    drawn[[0, -1]] = drawn[:, [0, -1]] = True
    Image.fromarray(np.where(drawn, 0, 255).astype(np.uint8)).save(tmp_path / "mask.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png"), drawn)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png", drawn.sum() - 10), drawn)
    assert read_mask(tmp_path / "mask.png", 20).sum() == 20


def test_the_opaque_parts_of_a_clear_picture_are_the_shape(tmp_path):
    pixels = np.full((4, 6, 4), 255, np.uint8)
    pixels[:, 4:, 3] = 0
    Image.fromarray(pixels).save(tmp_path / "white.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "white.png"), np.ones((4, 4), bool))
    assert read_mask(tmp_path / "white.png", invert=True).shape == (4, 2)


def test_large_pictures_are_scaled_down_first(tmp_path):
    large = Image.new("L", (3000, 3000), 255)
    large.paste(0, (0, 0, 3000, 1000))
    large.save(tmp_path / "large.png")
    assert read_mask(tmp_path / "large.png", 300).shape == (10, 30)
    with pytest.raises(ValueError, match="3000 x 3000 pixels, too many for one cell each"):
        read_mask(tmp_path / "large.png")


def test_dots_too_fine_to_be_scaled_down_are_kept(tmp_path):
    dots = np.random.RandomState(0).rand(300, 300) < 0.02
    Image.fromarray(np.where(dots, 0, 255).astype(np.uint8)).save(tmp_path / "dots.png")
    assert read_mask(tmp_path / "dots.png", 3).sum() >= 3


def test_pictures_without_a_shape_are_refused(tmp_path):
    Image.new("RGB", (9, 9), "white").save(tmp_path / "white.png")
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ValueError, match="has no cell"):
        read_mask(tmp_path / "white.png", 5)
    with pytest.raises(ValueError, match="cannot be read as a mask: not a picture"):
        read_mask(tmp_path / "text.png")
    with pytest.raises(ValueError, match="cannot be read as a mask: no such file"):
        read_mask(tmp_path / "none.png")
