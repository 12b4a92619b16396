import json
import re

import numpy as np
import pytest
from PIL import Image, ImageDraw


@pytest.fixture
def shapes(tmp_path):
    """A black disc on white and a white square on black."""
    disc = Image.new("RGB", (120, 100), "white")
    ImageDraw.Draw(disc).ellipse((20, 10, 100, 90), fill="black")
    square = Image.new("L", (60, 60), 0)
    ImageDraw.Draw(square).rectangle((10, 10, 50, 50), fill=255)
    disc.save(tmp_path / "disc.png")
    square.save(tmp_path / "square.png")
    return tmp_path / "disc.png", tmp_path / "square.png"


@pytest.fixture
def clouds(tmp_path):
    """An L of 30 points, and the same turned by a few degrees, in another order and unit."""
    rng = np.random.RandomState(0)
    points = np.concatenate([rng.rand(18, 2) * [0.2, 3], rng.rand(12, 2) * [2, 0.2]])
    angle = 0.1
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    order = rng.permutation(30)
    np.savetxt(tmp_path / "a.csv", points, delimiter=",", header="x,y", comments="")
    np.save(tmp_path / "b.npy", 7 + 5 * (points @ turn.T)[order])
    return tmp_path / "a.csv", tmp_path / "b.npy", order


def frames_of(path):
    with Image.open(path) as film:
        for k in range(film.n_frames):
            film.seek(k)
            yield np.asarray(film.convert("RGB"), dtype=float)


def test_pictures_become_an_animation_and_a_strip(run, shapes):
    result = run("morph", *shapes, "-o", "m.gif", "-o", "m.png", "--points", 80)
    assert result.exit_code == 0, result.output
    assert re.match(
        r"Moved 80 points from disc\.png to square\.png by \d+% of the size of the shape on "
        r"average, \d+% at most\.\nAnimation: m\.gif\nStrip: m\.png\n$",
        result.stdout,
    )
    films = list(frames_of("m.gif"))
    assert len(films) == 24 + 22
    # White ground with dark points turns into dark ground with white points.
    assert films[0].mean() > 150
    assert films[23].mean() < 105
    with Image.open("m.png") as strip:
        assert strip.size == (7 * 200, 200)


def test_the_default_is_an_animation(run, shapes, tmp_path):
    result = run("morph", *shapes, "--points", 20, "--frames", 3)
    assert "Animation: morph.gif" in result.stdout
    assert len(list(frames_of(tmp_path / "morph.gif"))) == 4


def test_point_files_are_paired_whatever_their_unit(run, clouds):
    *paths, order = clouds
    result = run("morph", *paths, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    start, end = np.array(answer["start"]), np.array(answer["end"])
    assert answer["n_points"] == 30
    assert answer["outputs"] == []
    # Drawn about the origin at size 1.
    np.testing.assert_allclose(np.ptp(start, axis=0).max(), 1.0)
    np.testing.assert_allclose(end.max(axis=0), -end.min(axis=0), atol=1e-12)
    turned = np.load(paths[1])
    low, high = turned.min(axis=0), turned.max(axis=0)
    true = ((turned - (low + high) / 2) / (high - low).max())[np.argsort(order)]
    assert (np.linalg.norm(end - true, axis=1) < 1e-9).mean() > 0.9
    assert answer["mean_distance"] == pytest.approx(np.linalg.norm(end - start, axis=1).mean())


def test_point_files_of_different_sizes_give_every_point(run, clouds, tmp_path):
    np.save("few.npy", np.load(clouds[1])[:12])
    answer = json.loads(run("morph", clouds[0], "few.npy", "--json").stdout)
    end = np.array(answer["end"])
    assert answer["n_points"] == 30
    counts = np.unique(end, axis=0, return_counts=True)[1]
    assert sorted(counts) == [2] * 6 + [3] * 6
    assert json.loads(run("morph", *clouds[:2], "--json", "--points", 7).stdout)["n_points"] == 7


def test_a_picture_turns_into_points(run, shapes, clouds):
    answer = json.loads(run("morph", shapes[0], clouds[0], "--json").stdout)
    assert answer["n_points"] == 30


def test_same_seed_same_answer(run, shapes):
    def ends(*options):
        return json.loads(run("morph", *shapes, "--json", "--points", 30, *options).stdout)["end"]

    assert ends() == ends("--seed", 0)
    assert ends() != ends("--seed", 1)


def test_quiet_prints_nothing(run, shapes, tmp_path):
    result = run("morph", *shapes, "-q", "--points", 20, "--frames", 2)
    assert result.exit_code == 0
    assert result.output == ""
    assert (tmp_path / "morph.gif").exists()


def test_interrupt_before_there_is_a_result_writes_nothing(run, shapes, tmp_path, monkeypatch):
    import unshuffle.alignment

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle.alignment, "match_shapes", interrupted)
    result = run("morph", *shapes)
    assert result.exit_code == 130
    assert result.stderr == "Error: Interrupted before there was a result; nothing was written.\n"
    assert not (tmp_path / "morph.gif").exists()


def test_animations_carry_no_metadata_of_the_pictures(run, shapes, tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    with Image.open(shapes[0]) as picture:
        picture.save(tmp_path / "told.jpg", exif=exif, comment=b"secret")
    run("morph", "told.jpg", shapes[1], "-o", "m.gif", "-o", "m.png", "--frames", 3)
    for name in ("m.gif", "m.png"):
        assert b"secret" not in (tmp_path / name).read_bytes()
