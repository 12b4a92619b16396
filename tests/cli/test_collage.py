import json
import re

import numpy as np
import pytest
from PIL import Image

import unshuffle
from unshuffle.layout import Positions


@pytest.fixture
def grays(tmp_path):
    """A folder of sixty-four flat grays, and a template that is dark above and light below."""
    (tmp_path / "grays").mkdir()
    for i in range(64):
        Image.new("RGB", (30, 30), (4 * i,) * 3).save(tmp_path / "grays" / f"{i}.png")
    ramp = np.repeat(np.linspace(0, 255, 80)[:, np.newaxis], 80, axis=1)
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "template.png")
    return tmp_path / "template.png", tmp_path / "grays"


def test_pictures_stand_where_they_suit_the_template(run, grays):
    result = run("collage", *grays, "--shape", "8x8", "-o", "out.png", "-o", "out.csv")
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^Arranged 64 of 64 pictures on 8 x 8 cells: mean squared color difference [\d.]+ "
        r"from the template, [\d.]+ between neighbors \(CIE Lab\)\.\n",
        result.stdout,
        re.MULTILINE,
    )
    rows = Positions.load("out.csv").grid.mean(axis=1)
    assert np.all(np.diff(rows) > 0)
    with Image.open("out.png") as sheet:
        shown = np.asarray(sheet.convert("L"), dtype=float)
    assert shown.shape == (256, 256)
    assert np.corrcoef(shown.mean(axis=1), np.arange(256))[0, 1] > 0.98


def test_the_default_is_one_picture(run, grays, tmp_path):
    result = run("collage", *grays)
    assert "Sheet: collage.png" in result.stdout
    assert (tmp_path / "collage.png").exists()


def test_a_poor_collage_comes_with_advice_that_helps(run, grays):
    # A small moon in a black sky: most of sixty-four grays are too light for any place in it.
    Image.fromarray(np.pad(np.full((20, 20), 255, np.uint8), 30)).save("moon.png")
    result = run("collage", "moon.png", grays[1])
    advice = re.search(
        r"\nThe template is hard to see: (\d+)% of its variation is left\. To come closer, try "
        r"(--shape 8x8 --repeat 5 --smoothness 0), or give more pictures in its colors\.\n",
        result.stdout,
    )
    assert int(advice[1]) < 50
    result = run("collage", "moon.png", grays[1], *advice[2].split())
    assert result.exit_code == 0, result.output
    assert "hard to see" not in result.stdout
    answers = [
        json.loads(run("collage", "moon.png", grays[1], "--json", *options).stdout)
        for options in ((), advice[2].split())
    ]
    assert [answer["poor"] for answer in answers] == [True, False]
    assert answers[0]["likeness"] < 0.5 < 0.8 < answers[1]["likeness"]


def test_a_good_collage_and_a_flat_template_come_without_advice(run, grays):
    assert "hard to see" not in run("collage", *grays).stdout
    Image.new("RGB", (80, 80), (128, 128, 128)).save("flat.png")
    options = ("--shape", "2x2", "--smoothness", 0)
    answer = json.loads(run("collage", "flat.png", grays[1], *options, "--json").stdout)
    assert not answer["poor"]


def test_json_prints_one_object_and_nothing_else(run, grays, tmp_path):
    answer = json.loads(run("collage", *grays, "--json", "--shape", "6x6").stdout)
    assert answer["shape"] == [6, 6]
    assert answer["n_items"] == 64
    assert answer["n_used"] == 36
    assert answer["most_used"] == 1
    assert (answer["smoothness"], answer["detail"], answer["neighbors"]) == (0.3, 3, "kernel")
    assert not (tmp_path / "collage.png").exists()


def test_interrupt_writes_what_there_is(run, grays, monkeypatch):
    class Interrupted(unshuffle.Collage):
        def fit(self, tiles, **options):
            super().fit(tiles, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "Collage", Interrupted)
    result = run("collage", *grays, "-o", "out.png")
    assert result.exit_code == 130
    assert "Interrupted: this is the best collage found so far" in result.stderr
    with Image.open("out.png") as sheet:
        assert sheet.width > 64


def test_quiet_prints_nothing(run, grays):
    result = run("collage", *grays, "-q")
    assert result.exit_code == 0
    assert result.output == ""


def described(run, grays, *options):
    result = run("collage", *grays, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_options_reach_the_estimator(run, grays):
    plain = described(run, grays, "--shape", "6x6", "--smoothness", 0)
    calm = described(run, grays, "--shape", "6x6", "--smoothness", 0.9)
    free = described(run, grays, "--shape", "6x6", "--smoothness", 0, "--repeat", 36)
    assert calm["roughness"] < plain["roughness"]
    assert free["cost"] < plain["cost"]
    assert 1 < free["most_used"] <= 36
    coarse = described(run, grays, "--shape", "6x6", "--smoothness", 0, "--detail", 1)
    assert coarse["cost"] < plain["cost"]
    edged = described(run, grays, "--shape", "6x6", "--neighbors", "laplacian")
    assert edged["neighbors"] == "laplacian"
    assert edged["roughness"] != described(run, grays, "--shape", "6x6")["roughness"]


def test_more_cells_than_pictures_use_them_several_times(run, grays, tmp_path):
    outputs = ("-o", "out.png", "-o", "out.csv", "-o", "out.html")
    result = run("collage", *grays, "--shape", "12x12", "--tile", 8, *outputs)
    grid = Positions.load("out.csv").grid
    used = np.unique(grid).size
    line = f"\nArranged {used} of 64 pictures on 12 x 12 cells, up to 3 times each:"
    assert line in result.stdout
    assert np.bincount(grid.ravel()).max() == 3
    with Image.open("out.png") as sheet:
        assert sheet.size == (96, 96)
    assert (tmp_path / "out.html").stat().st_size > 1000


def test_too_few_repeats_are_refused_in_the_words_of_the_command_line(run, grays, tmp_path):
    result = run("collage", *grays, "--shape", "12x12", "--repeat", 2)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "Error: --shape 12x12 has 144 cells; 64 pictures used up to 2 time(s) each do not fill "
        "them. Give --repeat 3, or a smaller shape."
    )
    assert not (tmp_path / "collage.png").exists()


def test_the_collage_does_not_depend_on_how_it_is_drawn_or_computed(run, grays):
    first = described(run, grays)["positions"]
    for options in (("--tile", 90, "-o", "c.png"), ("--jobs", 1), ("--no-cache",)):
        assert described(run, grays, *options)["positions"] == first


def test_a_grid_without_room_on_a_sheet_is_refused_before_the_work(run, grays, tmp_path):
    result = run("collage", *grays, "--shape", "1x20000", "-o", "wall.csv", "-o", "wall.png")
    assert result.exit_code == 2
    assert "1 x 20,000 cells is too large for wall.png" in result.stderr
    assert not (tmp_path / "wall.csv").exists()
