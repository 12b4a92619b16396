import re
import sys

import numpy as np
import pytest
from PIL import Image, ImageDraw

from unshuffle.cli._app import run as run_app


@pytest.fixture
def good(tmp_path):
    picture = Image.new("L", (40, 40), 255)
    ImageDraw.Draw(picture).ellipse((10, 10, 30, 30), fill=0)
    picture.save(tmp_path / "good.png")
    return tmp_path / "good.png"


BAD_POINTS = {
    "three columns": ("x,y,z\n1,2,3\n4,5,6\n", "has 3 column(s) of numbers. Give two, x and y."),
    "one column": ("x\n1\n2\n", "has 1 column(s)"),
    "nan": ("x,y\n1,2\nnan,4\n", "row 2, column 'x'"),
    "too large": ("x,y\n1e308,2\n-1e308,4\n", "too far apart for a float. Scale them down"),
    "all equal": ("x,y\n1,2\n1,2\n", "All points of bad.csv are equal"),
    "one point": ("x,y\n1,2\n", "All points of bad.csv are equal"),
    "words": ("x,y\n1,2\n3,red\n", "holds 'red'"),
    "empty": ("", "is empty"),
}


@pytest.mark.parametrize("case", BAD_POINTS)
def test_bad_points_are_refused_with_the_place(refused, good, tmp_path, case):
    content, message = BAD_POINTS[case]
    (tmp_path / "bad.csv").write_text(content)
    assert message in refused("morph", good, "bad.csv")
    assert message in refused("morph", "bad.csv", good, "--json")


def test_files_that_are_no_picture_are_refused(refused, good, tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    assert "text.png cannot be read as a picture" in refused("morph", good, "text.png")
    whole = good.read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    assert "cut.png cannot be read as a picture" in refused("morph", "cut.png", good)
    Image.new("L", (30, 30), 200).save(tmp_path / "plain.png")
    assert "plain.png is all of one shade" in refused("morph", good, "plain.png")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb.png")
    assert "million" in refused("morph", good, "bomb.png")


def test_arrays_that_are_none_are_refused_without_a_word_about_pickles(refused, good, tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("text.npy", "objects.npy"):
        line = refused("morph", good, name)
        assert "not a .npy file, or it holds Python objects, which are never loaded" in line
        assert "pickle" not in line


def test_wrong_paths_are_refused(refused, good, tmp_path):
    assert "There is no file missing.png" in refused("morph", good, "missing.png")
    (tmp_path / "folder").mkdir()
    assert "folder is a folder" in refused("morph", "folder", good)
    (tmp_path / "a.xyz").write_text("1,2")
    assert "a.xyz cannot be read. Give a picture" in refused("morph", good, "a.xyz")


def test_outputs_that_cannot_be_written_are_refused_before_any_work(refused, good):
    assert "ends in '.mp4'" in refused("morph", good, good, "-o", "m.mp4")
    assert "is also an input and would be lost" in refused("morph", good, good, "-o", "good.png")
    assert "there is no folder" in refused("morph", good, good, "-o", "no/m.gif")
    assert "asked for twice" in refused("morph", good, good, "-o", "m.gif", "-o", "m.gif")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--points 1", "'--points': give a number from 2 to 3000, not 1"),
        ("--points 1000000000", "'--points'"),
        ("--frames 1", "'--frames': give a number from 2 to 240, not 1"),
        ("--frames 1000", "'--frames'"),
        ("--seed -1", "'--seed'"),
    ],
)
def test_numbers_out_of_range_are_refused(monkeypatch, capsys, options, words):
    monkeypatch.setattr(sys, "argv", ["unshuffle", "morph", "a.png", "b.png", *options.split()])
    assert run_app() == 2
    done = capsys.readouterr()
    assert done.out == ""
    assert words in done.err
    assert re.fullmatch(r"Error: .+[^.]\. Try 'unshuffle morph --help'\.\n", done.err)


def test_more_points_than_can_be_paired_are_refused(refused, good, tmp_path):
    np.save(tmp_path / "many.npy", np.random.RandomState(0).rand(4000, 2))
    assert "4,000 points are more than the 3,000 that can be paired. Give --points 3000" in (
        refused("morph", good, "many.npy")
    )
