import os

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from unshuffle.images import _sheets, grid_sheet, matched_sheet, points_sheet, save_sheet


def flat(*colors, height=6, width=4):
    return np.stack([np.full((height, width, 3), color, np.uint8) for color in colors])


RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def colors_of(sheet):
    return {tuple(color) for color in np.asarray(sheet).reshape(-1, 3).tolist()}


def test_partners_stand_side_by_side():
    sheet = np.asarray(
        matched_sheet(flat(RED, GREEN), flat(BLUE, (9, 9, 9)), [1, 0], columns=1, height=6)
    )
    tops = [int(np.argwhere((sheet == color).all(-1))[0][0]) for color in (RED, GREEN)]
    for top, color, partner in zip(tops, (RED, GREEN), ((9, 9, 9), BLUE), strict=True):
        row = sheet[top]
        last = int(np.flatnonzero((row == color).all(-1))[-1])
        assert tuple(row[last + 1]) == partner


def test_unmatched_items_have_an_empty_place():
    assert BLUE not in colors_of(matched_sheet(flat(RED), flat(BLUE), [-1]))
    assert BLUE in colors_of(matched_sheet(flat(RED), flat(BLUE), [0]))


def test_frames_tell_right_from_wrong_and_sure_from_unsure():
    pictures = flat(RED, GREEN)
    truth = [matched_sheet(pictures, pictures, [0, 1], correct=c) for c in ([1, 1], [1, 0])]
    assert (214, 40, 40) not in colors_of(truth[0])
    assert (214, 40, 40) in colors_of(truth[1])
    sure = matched_sheet(pictures, pictures, [0, 1], confidence=[0.0, 1.0])
    assert {(178, 24, 43), (15, 105, 72)} <= colors_of(sure)


def test_no_more_than_the_given_number_of_pairs_is_drawn():
    pictures = flat(RED, GREEN, BLUE)
    sheet = matched_sheet(pictures, pictures, [0, 1, 2], max_pairs=2)
    assert BLUE not in colors_of(sheet)


def test_grid_puts_each_picture_into_its_cell():
    sheet = np.asarray(
        grid_sheet(flat(RED, GREEN, height=5, width=5), [[1, -1], [-1, 0]], tile=5, gap=1)
    )
    assert sheet.shape == (13, 13, 3)
    assert tuple(sheet[3, 3]) == GREEN
    assert tuple(sheet[9, 9]) == RED
    assert (sheet[1:6, 7:12] == sheet[0, 0]).all()


def test_large_walls_are_drawn_with_smaller_pictures(monkeypatch):
    monkeypatch.setattr(_sheets, "MAX_SHEET_PIXELS", 2000)
    grid = np.zeros((10, 10), int)
    sheet = grid_sheet(flat(RED, height=8, width=8), grid, tile=100)
    assert 20 <= sheet.width <= 44
    monkeypatch.setattr(_sheets, "MAX_SHEET_SIDE", 25)
    assert grid_sheet(flat(RED, height=8, width=8), grid, tile=100).size == (20, 20)
    monkeypatch.setattr(_sheets, "MAX_SHEET_SIDE", 9)
    with pytest.raises(ValueError, match="10 x 10 cells is too large for a sheet"):
        grid_sheet(flat(RED), grid)


def test_a_sheet_that_does_not_fit_into_memory_is_refused():
    pictures = flat(RED, height=2, width=2)
    grid = np.broadcast_to(0, (5, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unshuffle._core.parameters.available_memory", lambda: 10**5)
        with pytest.raises(MemoryError, match="smaller `tile`"):
            grid_sheet(pictures, grid, tile=200)
        assert grid_sheet(pictures, grid, tile=10).width > 50


def test_points_are_drawn_where_they_are_in_any_unit():
    pictures = flat(RED, GREEN, BLUE, height=5, width=5)
    for unit in (0.01, 1.0, 700.0):
        points = np.array([[0, 0], [0, 2], [1, 1]]) * unit - 3
        sheet = np.asarray(points_sheet(pictures, points, tile=10, gap=0))
        middles = [
            np.argwhere((sheet == color).all(-1)).mean(axis=0) for color in (RED, GREEN, BLUE)
        ]
        steps = (np.array(middles) - middles[0]) / (np.array(middles)[2] - middles[0])[0]
        np.testing.assert_allclose(steps, [[0, 0], [0, 2], [1, 1]], atol=0.2)
        assert sheet.shape[0] < 40


def test_points_far_apart_or_all_equal_are_drawn_too():
    pictures = flat(RED, GREEN, BLUE)
    sheet = points_sheet(pictures, [[0, 0], [0, 1e-9], [0, 1e9]])
    assert {GREEN, BLUE} <= colors_of(sheet)
    assert points_sheet(pictures, np.zeros((3, 2))).width < 50


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".jpeg", ".webp"])
def test_saved_sheets_hold_pixels_and_nothing_else(tmp_path, suffix):
    picture = Image.new("RGB", (40, 30), (200, 30, 30))
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", "secret place")
    picture.save(tmp_path / "told.png", exif=exif, pnginfo=note, dpi=(72, 72))
    with Image.open(tmp_path / "told.png") as told:
        told.info["comment"] = b"secret place"
        told.info["xmp"] = b"secret place"
        save_sheet(told, tmp_path / f"sheet{suffix}")
    data = (tmp_path / f"sheet{suffix}").read_bytes()
    assert b"secret" not in data
    with Image.open(tmp_path / f"sheet{suffix}") as written:
        assert written.size == (40, 30)
        assert not written.getexif()
        assert not {"exif", "comment", "dpi", "icc_profile", "xmp", "Comment"} & set(written.info)
        np.testing.assert_allclose(
            written.convert("RGB").getpixel((20, 15)), (200, 30, 30), atol=4
        )


def test_a_sheet_replaces_the_old_one_only_when_complete(tmp_path, monkeypatch):
    path = tmp_path / "sheet.png"
    path.write_text("old")

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        save_sheet(Image.new("RGB", (4, 4)), path)
    assert os.listdir(tmp_path) == ["sheet.png"]
    assert path.read_text() == "old"


def test_sheets_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in '\.gif'"):
        save_sheet(Image.new("RGB", (4, 4)), tmp_path / "sheet.gif")
    with pytest.raises(ValueError, match="at most 16,383 along a side"):
        save_sheet(Image.new("RGB", (16_384, 1)), tmp_path / "sheet.webp")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: points_sheet(p, [[0, 0]]), "`positions` must be 2 pairs"),
        (lambda p: points_sheet(p, [[0, 0], [0, np.nan]]), "NaN or infinity"),
        (lambda p: grid_sheet(p, [[0]], tile=0), "`tile`"),
        (lambda p: matched_sheet(p, p, [0, 0]), "uses item 0 of y 2 times"),
        (lambda p: matched_sheet(p, p, [0, 5]), "names item 5"),
        (lambda p: matched_sheet(p, p, [0, 1], confidence=[0.5]), "`confidence`"),
        (lambda p: matched_sheet(p, p, [0, 1], confidence=[0.5, np.nan]), "`confidence`"),
        (lambda p: grid_sheet(p, [[0, 7]]), "from 0 to 1"),
        (lambda p: grid_sheet(p, [0, 1]), "2-D"),
        (lambda p: grid_sheet(p, [[0.5]]), "whole numbers"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(flat(RED, GREEN))
