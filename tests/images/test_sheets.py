import numpy as np
import pytest

from unshuffle.images import grid_sheet, matched_sheet


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
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
