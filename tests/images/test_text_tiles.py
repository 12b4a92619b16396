import numpy as np
import pytest

from unshuffle.images import text_tiles


def test_texts_are_drawn_apart():
    tiles = text_tiles(["Once upon a time", "In the beginning was the word", "x"], side=64)
    assert tiles.shape == (3, 64, 64, 3)
    assert tiles.dtype == np.uint8
    dark = (tiles.mean(axis=3) < 128).sum(axis=(1, 2))
    assert dark[1] > dark[0] > dark[2] > 0
    assert (tiles[:, -2:] > 200).all(), "short texts leave the end of the tile"


def test_long_texts_are_cut_and_stay_inside():
    tiles = text_tiles(["word " * 10_000, "longword" * 1000], side=80)
    assert (tiles.min(axis=3)[:, :, :2] > 200).all()
    assert (tiles.min(axis=3)[:, :2] > 200).all()
    assert (tiles < 100).any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("text", ["日本語の文章", "Привет, мир", "שלום", "🙂", "\x00\n\t"])
def test_any_script_is_drawn_without_an_error(text):
    assert text_tiles([text, "other"], side=32).shape == (2, 32, 32, 3)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="side"):
        text_tiles(["a", "b"], side=4)
    with pytest.raises((TypeError, ValueError), match="texts"):
        text_tiles([1, 2])
