"""Folders of pictures as the commands read them."""

import csv

import numpy as np
import pytest
from PIL import Image

from unshuffle.cli._inputs import PREVIEW_SIDE, PictureFolder
from unshuffle.cli._options import LayoutOptions


@pytest.fixture
def stripes(tmp_path, monkeypatch):
    """Pictures of black and white stripes, too fine for the size at which they are compared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "stripes").mkdir()
    for i, wide in enumerate((8, 10, 12)):
        bright = np.arange(600) // wide % 2 == 0
        pixels = np.repeat(bright[None], 400, axis=0)[..., None] * np.full(3, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "stripes" / f"{i}.png")
    return tmp_path / "stripes"


def read(path, *, shows_pictures=True):
    folder = PictureFolder(LayoutOptions(path, quiet=True), [], shows_pictures)
    return folder, folder.read_and_report(40)


def contrast(tiles):
    return tiles.astype(float).std(axis=(1, 2, 3))


def test_tiles_are_cut_from_previews_or_read_again_if_large(stripes):
    folder, pictures = read(stripes)
    for side in (7, 40, 64, 160, 161, 400):
        tiles = folder.tiles(pictures, side)
        assert tiles.shape == (3, side, side, 3)
        if side >= 160:
            assert (contrast(tiles) > 100).all()
    exact = np.stack([np.asarray(Image.open(stripes / f"{i}.png"))[:, 100:500] for i in range(3)])
    np.testing.assert_array_equal(folder.tiles(pictures, 400), exact)


def test_tiles_of_some_pictures_are_theirs(stripes):
    folder, pictures = read(stripes)
    some = pictures.take([2, 0])
    for side in (100, 200):
        whole = folder.tiles(pictures, side)
        np.testing.assert_array_equal(folder.tiles(some, side), whole[[2, 0]])


def test_pictures_that_are_gone_are_drawn_less_sharp(stripes, tmp_path, capsys):
    folder, pictures = read(stripes)
    sharp = folder.tiles(pictures, 160)
    for path in (tmp_path / "cache").rglob("*.thumb"):
        path.unlink()
    (stripes / "1.png").unlink()
    tiles = folder.tiles(pictures, 160)
    np.testing.assert_array_equal(tiles[[0, 2]], sharp[[0, 2]])
    assert 0 < contrast(tiles)[1] < contrast(sharp)[1]
    assert folder.tiles(pictures, 300).shape == (3, 300, 300, 3)
    assert "stripes changed during the layout" in capsys.readouterr().err


def test_previews_are_made_only_where_pictures_are_shown(stripes):
    assert len(read(stripes)[1].previews) == 3
    assert read(stripes, shows_pictures=False)[1].previews is None
    assert PREVIEW_SIDE == 320


def test_thousands_of_bad_files_are_all_listed_with_their_reasons(run, album, tmp_path):
    names = [f"{i}.jpg" for i in range(4000)]
    for i, name in enumerate(names):
        (album / name).write_bytes(b"" if i % 2 else b"not a picture")
    (album / "cut.png").write_bytes((album / "0.png").read_bytes()[:200])
    result = run("layout", album, "-o", "wall.csv")
    assert result.exit_code == 0, result.output
    assert f"Read 40 files in 1 folder ({album}); skipped 4,001." in result.stdout
    # A line for each reason, however many files have it.
    assert "2,000 files (1.jpg, 3.jpg, 5.jpg, ...): empty file" in result.stderr
    assert len(result.stderr.splitlines()) < 10
    with open(tmp_path / "wall.skipped.csv", newline="", encoding="utf-8") as file:
        rows = {row["name"]: row["reason"] for row in csv.DictReader(file)}
    assert rows.keys() == {*names, "cut.png"}
    assert all(rows.values())
    assert rows["3999.jpg"] == "empty file"
    assert rows["0.jpg"].startswith("not a picture in a supported format")
