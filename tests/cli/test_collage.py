import json

import numpy as np
import pytest
from PIL import Image

import unshuffle
from unshuffle.layout import Positions


@pytest.fixture
def greys(tmp_path):
    """A folder of sixty-four flat greys, and a template that is dark above and light below."""
    (tmp_path / "greys").mkdir()
    for i in range(64):
        Image.new("RGB", (30, 30), (4 * i,) * 3).save(tmp_path / "greys" / f"{i}.png")
    ramp = np.repeat(np.linspace(0, 255, 80)[:, np.newaxis], 80, axis=1)
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "template.png")
    return tmp_path / "template.png", tmp_path / "greys"


def test_pictures_stand_where_they_suit_the_template(run, greys):
    result = run("collage", *greys, "--shape", "8x8", "-o", "out.png", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Arranged 64 of 64 pictures on 8 x 8 cells")
    rows = Positions.load("out.csv").grid.mean(axis=1)
    assert np.all(np.diff(rows) > 0)
    with Image.open("out.png") as sheet:
        shown = np.asarray(sheet.convert("L"), dtype=float)
    assert shown.shape == (256, 256)
    assert np.corrcoef(shown.mean(axis=1), np.arange(256))[0, 1] > 0.98


def test_the_default_is_one_picture(run, greys, tmp_path):
    result = run("collage", *greys)
    assert "Sheet: collage.png" in result.stdout
    assert (tmp_path / "collage.png").exists()


def test_json_prints_one_object_and_nothing_else(run, greys, tmp_path):
    answer = json.loads(run("collage", *greys, "--json", "--shape", "6x6").stdout)
    assert answer["shape"] == [6, 6]
    assert answer["n_items"] == 64
    assert answer["n_used"] == 36
    assert not (tmp_path / "collage.png").exists()


def test_interrupt_writes_what_there_is(run, greys, monkeypatch):
    class Interrupted(unshuffle.Collage):
        def fit(self, tiles, **options):
            super().fit(tiles, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "Collage", Interrupted)
    result = run("collage", *greys, "-o", "out.png")
    assert result.exit_code == 130
    assert "Interrupted: this is the best collage found so far" in result.stderr
    with Image.open("out.png") as sheet:
        assert sheet.width > 64


def test_quiet_prints_nothing(run, greys):
    result = run("collage", *greys, "-q")
    assert result.exit_code == 0
    assert result.output == ""
