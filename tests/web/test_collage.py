"""A collage without a browser: template, settings, history, print sizes, keeping."""

import asyncio
import base64
import csv
import json
import struct
import threading
import zlib

import numpy as np
import pytest
from PIL import Image
from tests.web.conftest import write_photos

from unshuffle.web._collage import composer as _composer
from unshuffle.web._collage import sketch as _sketch
from unshuffle.web._collage import studio as _collage
from unshuffle.web._collage.prints import check_size
from unshuffle.web._collage.sketch import CollageSettings, plan
from unshuffle.web._collage.studio import Studio
from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall import session as _session
from unshuffle.web._wall.session import Session
from unshuffle.web._work.jobs import Canceled, Job
from unshuffle.web._work.state_file import StateFile

N = 30
CELLS = 200  # of a collage whose size is not chosen


@pytest.fixture
def open_studio(tmp_path, monkeypatch):
    """Opens the collage of a folder, which is kept in one file."""
    monkeypatch.setattr(_session, "_PAUSE", 0.02)
    monkeypatch.setattr(_sketch, "USUAL_CELLS", CELLS)
    opened = []

    def open_it(folder=None, *, wait=True):
        file = StateFile(tmp_path / "wall.json")
        wall = Session(folder, file, tmp_path / "cache")
        studio = Studio(wall, file.companion("collage"))
        opened.append((wall, studio))
        wall.open()
        studio.open()
        studio.wall = wall
        return settle(studio) if wait else studio

    def close(studio):
        studio.close()
        studio.wall.close()
        opened.remove((studio.wall, studio))

    open_it.close = close
    yield open_it
    for wall, studio in opened:
        studio.close()
        wall.close()


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A collage for what is refused, and changes nothing."""
    home = tmp_path_factory.mktemp("standing")
    file = StateFile(home / "wall.json")
    wall = Session(write_photos(home / "photos", N), file, home / "cache")
    studio = Studio(wall, file.companion("collage"))
    wall.open()
    studio.open()
    studio.wall = wall
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sketch, "USUAL_CELLS", CELLS)
        yield draw(settle(studio), write_ramp(home))
    studio.close()
    wall.close()


@pytest.fixture
def ramp(tmp_path):
    """A template."""
    return write_ramp(tmp_path)


def write_ramp(folder):
    """A picture that is dark above and light below, twice as wide as high."""
    shades = np.linspace(0, 255, 40).astype(np.uint8)
    Image.fromarray(np.repeat(shades[:, None], 80, axis=1)).save(folder / "ramp.png")
    return folder / "ramp.png"


def settle(studio):
    """Wait until the pictures are read and the collage is composed."""
    assert studio.wall.jobs.wait(timeout=600)
    studio._follow()  # the wall may be about to call it
    assert studio.jobs.wait(timeout=600)
    return studio


def give(studio, content, name="template.png"):
    """Send a template as the page does."""

    async def pieces():
        yield content[:100]
        yield content[100:]

    template = asyncio.run(studio.keep_template(name, pieces()))
    studio.use_template(template)
    return studio


def draw(studio, path):
    return settle(give(studio, path.read_bytes(), path.name))


def change(studio, **settings):
    studio.change_settings(settings)
    return settle(studio)


def grid_of(studio):
    cells = studio.cells()
    flat = np.frombuffer(base64.b64decode(cells["cells"]), "<i4")
    return flat.reshape(cells["rows"], cells["columns"])


def refusal(function, *arguments):
    with pytest.raises(Refused) as caught:
        function(*arguments)
    return str(caught.value), caught.value.field, caught.value.status


def kept_templates(home):
    folder = home / "wall.pictures" / "collage"
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_pictures_stand_where_they_suit_the_template(open_studio, tmp_path, ramp):
    grays = tmp_path / "grays"
    grays.mkdir()
    for k in range(64):
        Image.new("RGB", (20, 30), (4 * k,) * 3).save(grays / f"{k:02}.png")
    studio = change(draw(open_studio(grays), ramp), smoothness=0, detail=1)
    grid = grid_of(studio)
    rows = 4 * grid.mean(axis=1)
    assert (np.diff(rows) > 0).all()
    wanted = np.linspace(0, 255, len(rows) * 2 + 1)[1::2]
    np.testing.assert_allclose(rows, wanted, atol=6)
    state = studio.state()
    assert state["collage"]["words"] == "The template is easy to recognize."
    assert state["collage"]["likeness"] > 0.95
    assert state["template"]["name"] == "ramp.png"
    assert (state["template"]["height"], state["template"]["width"]) == (40, 80)


def test_the_state_says_what_is_missing(open_studio, photos, ramp):
    studio = open_studio(photos)
    state = studio.state()
    assert (state["nPictures"], state["template"], state["collage"]) == (N, None, None)
    assert state["settings"] == {
        "smoothness": 0.3,
        "rows": None,
        "repeat": None,
        "detail": 3,
        "neighbors": "kernel",
    }
    assert refusal(studio.preview)[2] == refusal(studio.cells)[2] == 404
    assert refusal(studio.template)[2] == 404
    assert refusal(studio.export, "csv")[1:] == ("export", 409)
    state = draw(studio, ramp).state()
    collage = state["collage"]
    assert collage["rows"] * collage["columns"] <= _sketch.USUAL_CELLS
    assert collage["columns"] == pytest.approx(2 * collage["rows"], abs=1)
    assert collage["mostUsed"] <= state["usual"]["repeat"]
    assert (state["settled"], state["jobs"], state["problem"]) == (True, [], None)
    json.dumps(state, allow_nan=False)


def test_the_preview_shows_the_pictures_of_the_cells(open_studio, tmp_path, ramp):
    folder = tmp_path / "flat"
    folder.mkdir()
    rng = np.random.default_rng(0)
    colors = rng.integers(0, 256, (70, 3))
    for k, color in enumerate(colors):
        Image.new("RGB", (30, 20), tuple(color.tolist())).save(folder / f"{k:02}.png")
    studio = change(draw(open_studio(folder), ramp), rows=8)
    grid = grid_of(studio)
    assert grid.shape == (8, 16)
    (tmp_path / "preview.jpg").write_bytes(studio.preview())
    with Image.open(tmp_path / "preview.jpg") as image:
        side = image.width // 16
        assert (image.width, image.height) == (16 * side, 8 * side)
        middles = np.asarray(image)[side // 2 :: side, side // 2 :: side].astype(int)
    np.testing.assert_allclose(middles, colors[grid], atol=12)


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"smoothness": 1.01}, "smoothness", "from 0 to 1"),
        ({"smoothness": float("nan")}, "smoothness", "from 0 to 1"),
        ({"smoothness": True}, "smoothness", "from 0 to 1"),
        ({"smoothness": "0.3"}, "smoothness", "from 0 to 1"),
        ({"rows": 0}, "rows", "whole number of rows"),
        ({"rows": 2.5}, "rows", "whole number of rows"),
        ({"rows": "many"}, "rows", "whole number of rows"),
        ({"rows": 500}, "rows", "at most 6,400. Enter at most 56 rows."),
        ({"repeat": 0}, "repeat", "whole number of times"),
        ({"repeat": 10**6}, "repeat", "from 1 to 1,000"),
        ({"rows": 20, "repeat": 1}, "rows", "Use each up to 27 times, or enter at most 3 rows"),
        ({"detail": 0}, "detail", "from 1 to 6"),
        ({"detail": 7}, "detail", "from 1 to 6"),
        ({"neighbors": "ring"}, "neighbors", "kernel or laplacian"),
        ({"neighbors": ["kernel"]}, "neighbors", "kernel or laplacian"),
        ({"seed": 1}, None, "no setting 'seed'"),
        ([], None, "by name"),
        (None, None, "by name"),
    ],
)
def test_settings_are_checked_and_change_nothing_if_refused(standing, given, field, words):
    before = standing.state()["settings"]
    message, where, status = refusal(standing.change_settings, given)
    assert (where, status) == (field, 400)
    assert words in message
    assert standing.state()["settings"] == before
    assert standing.state()["undo"] == "choosing ramp.png"


@pytest.mark.parametrize("n", [1, 2, 7, 300, 5000])
@pytest.mark.parametrize("aspect", [0.01, 0.6, 1.0, 30.0])
@pytest.mark.parametrize("repeat", [None, 1, 3])
def test_a_grid_that_is_left_open_is_filled_and_not_too_large(n, aspect, repeat):
    found = plan(CollageSettings(repeat=repeat), n, aspect)
    assert 1 <= found.n_cells <= _sketch.USUAL_CELLS
    assert found.n_cells <= n * found.repeat
    if repeat is not None:
        assert found.n_cells <= n * repeat
    if n * (repeat or 1000) > 100 and 0.1 < aspect < 10:
        assert found.rows / found.columns == pytest.approx(aspect, rel=0.2)


def test_every_setting_changes_the_collage(open_studio, photos, tmp_path):
    rng = np.random.default_rng(1)
    coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3), dtype=np.uint8))
    coarse.resize((120, 100), Image.Resampling.BICUBIC).save(tmp_path / "colors.png")
    studio = change(draw(open_studio(photos), tmp_path / "colors.png"), rows=10)
    seen = [grid_of(studio)]
    for settings in (
        {"smoothness": 0.9},
        {"repeat": 5},
        {"detail": 1},
        {"neighbors": "laplacian"},
        {"rows": 11},
    ):
        version = studio.state()["collageVersion"]
        seen.append(grid_of(change(studio, **settings)))
        assert studio.state()["collageVersion"] > version
        assert seen[-1].shape != seen[-2].shape or (seen[-1] != seen[-2]).any(), settings
    assert np.bincount(grid_of(studio).ravel()).max() <= 5


def test_undo_and_redo_lead_through_templates_and_settings(open_studio, photos, ramp, tmp_path):
    studio = draw(open_studio(photos), ramp)
    first = grid_of(studio)
    second = grid_of(change(studio, rows=6))
    Image.open(ramp).rotate(180).save(tmp_path / "turned.png")
    third = grid_of(draw(studio, tmp_path / "turned.png"))
    assert studio.state()["undo"] == "choosing turned.png"
    for expected in (second, first):
        studio.undo()
        np.testing.assert_array_equal(grid_of(settle(studio)), expected)
    assert studio.state()["redo"] == "changing rows"
    studio.undo()
    assert settle(studio).state()["collage"] is None
    assert "nothing to undo" in refusal(studio.undo)[0]
    for _ in range(3):
        studio.redo()
    np.testing.assert_array_equal(grid_of(settle(studio)), third)
    assert "nothing to redo" in refusal(studio.redo)[0]


def test_changes_of_a_slider_are_one_step(open_studio, photos, ramp):
    studio = draw(open_studio(photos), ramp)
    studio.change_settings({"smoothness": 0.4})
    for value in (0.5, 0.6, 0.7):
        studio.change_settings({"smoothness": value, "merge": True})
    studio.change_settings({"detail": 2, "merge": True})  # another one
    assert studio.state()["settings"]["smoothness"] == 0.7
    studio.undo()
    studio.undo()
    assert studio.state()["settings"]["smoothness"] == 0.3
    assert settle(studio).state()["undo"] == "choosing ramp.png"


def test_nothing_is_lost_when_the_server_starts_again(open_studio, photos, ramp, tmp_path):
    studio = draw(open_studio(photos), ramp)
    change(studio, rows=7)
    change(studio, smoothness=0.8)
    studio.undo()
    before, grid = settle(studio).state(), grid_of(studio)
    open_studio.close(studio)
    again = open_studio(photos)
    after = again.state()
    for name in ("template", "settings", "undo", "redo", "nPictures"):
        assert after[name] == before[name], name
    np.testing.assert_array_equal(grid_of(again), grid)
    again.redo()
    assert settle(again).state()["settings"]["smoothness"] == 0.8
    assert len(kept_templates(tmp_path)) == 1


def test_templates_without_a_use_are_deleted_at_the_next_start(
    open_studio, photos, ramp, tmp_path
):
    studio = draw(open_studio(photos), ramp)
    studio.undo()
    Image.new("RGB", (30, 30), "red").save(tmp_path / "red.png")
    draw(studio, tmp_path / "red.png")
    assert len(kept_templates(tmp_path)) == 2
    open_studio.close(studio)
    open_studio(photos)
    assert len(kept_templates(tmp_path)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["steps"][-1]["template"].update(file="../wall.json"),
        lambda data: data["steps"][-1]["template"].update(file="/etc/passwd"),
        lambda data: data["steps"][-1]["settings"].update(smoothness=7),
        lambda data: data.update(position=9),
        lambda data: data.update(steps=[]),
        lambda data: data.pop("unshuffle collage"),
    ],
)
def test_a_damaged_file_is_put_aside(open_studio, photos, ramp, tmp_path, damage):
    open_studio.close(draw(open_studio(photos), ramp))
    path = tmp_path / "wall.collage.json"
    data = json.loads(path.read_text())
    damage(data)
    path.write_text(json.dumps(data))
    studio = open_studio(photos)
    assert studio.state()["template"] is None
    assert "could not be read" in studio.state()["notice"]["message"]
    assert (tmp_path / "wall.collage.damaged-1").exists()
    assert len(kept_templates(tmp_path)) == 1  # the file that was put aside may need it


def test_a_template_that_was_deleted_is_named(open_studio, photos, ramp, tmp_path):
    open_studio.close(draw(open_studio(photos), ramp))
    (tmp_path / "wall.pictures" / "collage" / kept_templates(tmp_path)[0]).unlink()
    studio = open_studio(photos)
    problem = studio.state()["problem"]
    assert problem["field"] == "template"
    assert problem["message"].startswith("ramp.png cannot be read")
    assert str(tmp_path) not in json.dumps(studio.state())
    draw(studio, ramp)
    assert studio.state()["problem"] is None
    assert studio.state()["collage"] is not None


def png_of(width, height):
    """A small file that claims to hold so many pixels."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(bytes(10_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "nothing.png", "is empty"),
        (b"<svg onload='alert(1)'/>", "code.svg", "not a picture in a supported format"),
        (b"%PDF-1.4", "paper.png", "not a picture in a supported format"),
        (png_of(60_000, 60_000), "bomb.png", "million pixels"),
        (png_of(2**31 - 1, 2**31 - 1), "bomb.png", "million pixels"),
        (png_of(300, 300)[:200], "cut.png", "cannot be read as a picture"),
    ],
    ids=["empty", "svg", "pdf", "bomb", "huge bomb", "cut off"],
)
def test_a_hostile_template_is_refused_and_not_kept(standing, content, name, words):
    home = standing.wall.album.folder.parent
    message, _, status = refusal(give, standing, content, f"../../{name}")
    assert words in message
    assert message.startswith(name)
    assert status == 400
    assert str(home) not in message
    state = standing.state()
    assert (state["template"]["name"], state["notice"]) == ("ramp.png", None)
    assert len(kept_templates(home)) == 1
    assert not list(home.rglob(name))


def test_a_picture_of_the_wall_can_be_drawn(open_studio, photos):
    studio = open_studio(photos)
    studio.use_item(4)
    state = settle(studio).state()
    assert state["template"]["name"] == "004.jpg"
    assert state["undo"] == "choosing 004.jpg"
    assert state["collage"]["rows"] < state["collage"]["columns"]
    for slot in (-1, N, 10**9, True, "4", None, 2.0):
        assert refusal(studio.use_item, slot)[2] in (400, 404)


def test_pictures_that_come_and_go_on_the_wall_change_the_collage(open_studio, photos, ramp):
    studio = draw(open_studio(photos), ramp)
    assert 3 in grid_of(studio)
    studio.wall.leave_out([3, 5])
    assert not np.isin([3, 5], grid_of(settle(studio))).any()
    assert studio.state()["nPictures"] == N - 2
    studio.wall.undo()
    assert 3 in grid_of(settle(studio))
    Image.new("RGB", (40, 40), "black").save(photos / "black.png")

    async def pieces():
        yield (photos / "black.png").read_bytes()

    asyncio.run(studio.wall.album.add("black.png", pieces()))
    studio.wall.added()
    assert N in grid_of(settle(studio))[0]
    studio.wall.clear()
    state = settle(studio).state()
    assert state["nPictures"] == N
    assert state["template"]["name"] == "ramp.png"


def test_without_pictures_there_is_no_collage(open_studio, ramp):
    studio = draw(open_studio(), ramp)
    state = studio.state()
    assert (state["nPictures"], state["collage"], state["problem"]) == (0, None, None)
    assert state["template"]["name"] == "ramp.png"


def test_pictures_that_are_cleared_at_the_wrong_moment_do_no_harm(open_studio, photos, ramp):
    studio = open_studio()

    async def pieces(path):
        yield path.read_bytes()

    for path in sorted(photos.iterdir())[:9]:
        asyncio.run(studio.wall.album.add(path.name, pieces(path)))
    studio.wall.added()
    draw(settle(studio), ramp)
    slots = studio._slots()
    studio.wall.album.clear()  # before the wall tells of it
    assert refusal(studio.export, "csv")[1:] == ("export", 409)
    with pytest.raises(Canceled):
        studio._composer.tiles(slots)
    studio.wall.clear()
    assert settle(studio).state()["collage"] is None
    assert studio.state()["notice"] is None


def test_rows_that_pictures_no_longer_fill_are_explained(open_studio, photos, ramp):
    studio = change(draw(open_studio(photos), ramp), repeat=1, rows=3)
    studio.wall.leave_out(list(range(20)))
    problem = settle(studio).state()["problem"]
    assert problem["field"] == "rows"
    assert "10 pictures used once each do not fill them" in problem["message"]
    assert change(studio, rows=None).state()["problem"] is None


def test_a_poor_collage_comes_with_advice(open_studio, tmp_path):
    folder = tmp_path / "grays"
    folder.mkdir()
    for k in range(40):
        Image.new("RGB", (20, 20), (90 + k,) * 3).save(folder / f"{k}.png")
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / "loud.png")
    studio = change(draw(open_studio(folder), tmp_path / "loud.png"), repeat=1, smoothness=0.9)
    words = studio.state()["collage"]["words"]
    assert studio.state()["collage"]["poor"]
    often = max(5, studio.state()["usual"]["repeat"])
    assert words.startswith("The template is hard to see: ")
    assert f"use each picture up to {often} times or choose less smoothness or add" in words


def test_a_change_cancels_the_composition_under_way(open_studio, photos, ramp, monkeypatch):
    studio = draw(open_studio(photos), ramp)
    began, go_on = threading.Event(), threading.Event()
    compose = _composer.Composer.compose
    seen = []

    def slow(self, job, template, settings, *rest):
        seen.append((settings.smoothness, job))
        if settings.smoothness == 0.9:
            began.set()
            assert go_on.wait(60)
        return compose(self, job, template, settings, *rest)

    monkeypatch.setattr(_composer.Composer, "compose", slow)
    version = studio.state()["collageVersion"]
    studio.change_settings({"smoothness": 0.9})
    assert began.wait(60)
    studio.change_settings({"smoothness": 0.1})
    assert seen[0][1].canceled
    go_on.set()
    state = settle(studio).state()
    assert [each for each, _ in seen] == [0.9, 0.1]
    assert (state["settings"]["smoothness"], state["problem"]) == (0.1, None)
    assert state["collageVersion"] >= version + 1
    assert state["collage"]["likeness"] is not None


def test_a_composition_that_people_cancel_can_be_started_again(
    open_studio, photos, ramp, monkeypatch
):
    studio = draw(open_studio(photos), ramp)
    began, go_on = threading.Event(), threading.Event()
    compose = _composer.Composer.compose

    def slow(self, job, *rest):
        began.set()
        assert go_on.wait(60)
        return compose(self, job, *rest)

    monkeypatch.setattr(_composer.Composer, "compose", slow)
    before = grid_of(studio)
    studio.change_settings({"rows": 9})
    assert began.wait(60)
    (job,) = studio.state()["jobs"]
    assert not studio.state()["settled"]
    assert refusal(studio.export, "csv")[2] == 409
    studio.cancel(job["id"])
    go_on.set()
    state = settle(studio).state()
    assert "canceled" in state["problem"]["message"]
    np.testing.assert_array_equal(grid_of(studio), before)
    assert grid_of(change(studio, smoothness=0.2)).shape[0] == 9
    assert studio.state()["problem"] is None


def exported(studio, form, *size):
    studio.export(form, *size)
    assert settle(studio).state()["notice"] is None
    return studio.exports.find(studio.state()["downloads"][-1]["id"])


@pytest.mark.parametrize(("form", "kind"), [("png", "PNG"), ("jpg", "JPEG")])
@pytest.mark.parametrize(("width", "dpi"), [(10, 300), (7.3, 150), (20, 72)])
def test_a_print_has_the_size_that_was_asked_for(standing, form, kind, width, dpi):
    found = exported(standing, form, width, dpi)
    rows, columns = grid_of(standing).shape
    across = int(width / 2.54 * dpi + 0.5)
    with Image.open(found.path) as image:
        assert image.format == kind
        assert image.size == (across, int(across * rows / columns + 0.5))
        assert image.info["dpi"] == pytest.approx((dpi, dpi), abs=0.02)
        assert image.width / image.info["dpi"][0] * 2.54 == pytest.approx(width, abs=0.02)
        assert not image.getexif()
    assert found.name == f"collage.{form}"


def test_a_print_shows_each_picture_in_its_cells_without_seams(open_studio, tmp_path, ramp):
    folder = tmp_path / "flat"
    folder.mkdir()
    colors = np.random.default_rng(0).integers(0, 200, (20, 3))
    for k, color in enumerate(colors):
        Image.new("RGB", (400, 300), tuple(color.tolist())).save(folder / f"{k:02}.png")
    studio = change(draw(open_studio(folder), ramp), rows=5)
    grid = grid_of(studio)
    with Image.open(exported(studio, "png", 4.1, 100).path) as image:
        pixels = np.asarray(image).astype(int)
    height, width = pixels.shape[:2]
    rows = (np.arange(height) + 0.5) * 5 // height
    columns = (np.arange(width) + 0.5) * 10 // width
    wanted = colors[grid[rows.astype(int)][:, columns.astype(int)]]
    # A cell ends on the whole pixel before its edge, so that one row or column may be the next.
    assert (np.abs(pixels - wanted).max(axis=2) <= 6).mean() > 0.95
    assert (pixels.sum(axis=2) > 0).all()


def test_large_tiles_are_read_from_the_files_and_small_ones_from_copies(
    open_studio, tmp_path, ramp
):
    folder = tmp_path / "fine"
    folder.mkdir()
    stripes = np.zeros((900, 900, 3), dtype=np.uint8)
    stripes[:, ::2] = 255  # which a copy of 320 pixels cannot show
    Image.fromarray(stripes).save(folder / "0.png")
    album = open_studio(folder).wall.album
    assert np.ptp(album.square(0, 900)[450, 400:500].astype(int)) > 200
    assert np.ptp(album.square(0, 100)[50, 40:60].astype(int)) < 60
    (folder / "0.png").unlink()
    assert album.square(0, 900).shape == (900, 900, 3)  # from the copy


def test_the_table_names_the_picture_of_each_cell(standing):
    path = exported(standing, "csv").path
    grid = grid_of(standing)
    with open(path, newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    found = np.full(grid.shape, -1)
    for record in records:
        found[int(record["row"]), int(record["column"])] = int(record["name"][:3])
    np.testing.assert_array_equal(found, grid)


@pytest.mark.parametrize(
    ("width", "dpi", "form", "field", "words"),
    [
        (0, 300, "png", "width", "above 0"),
        (-3, 300, "png", "width", "above 0"),
        (float("inf"), 300, "png", "width", "above 0"),
        (float("nan"), 300, "png", "width", "above 0"),
        ("42", 300, "png", "width", "above 0"),
        (True, 300, "png", "width", "above 0"),
        (None, 300, "png", "width", "above 0"),
        (42, 71, "png", "dpi", "72 to 600"),
        (42, 601, "png", "dpi", "72 to 600"),
        (42, 300.0, "png", "dpi", "72 to 600"),
        (42, None, "png", "dpi", "72 to 600"),
        (0.1, 72, "png", "width", "at least 1.2 cm"),
        (200, 600, "png", "width", "1,080 million pixels; at most 200 million"),
        (200, 600, "jpg", "width", "at most 86 cm, or fewer pixels per inch"),
    ],
)
def test_sizes_that_cannot_be_printed_are_refused(width, dpi, form, field, words):
    message, where, _ = refusal(check_size, width, dpi, (15, 31), form)
    assert where == field
    assert words in message


def test_a_jpeg_that_is_too_long_is_refused_and_a_png_is_not():
    message, field, _ = refusal(check_size, 600, 300, (1, 60), "jpg")
    assert field == "width"
    assert "Export a PNG" in message
    assert check_size(600, 300, (1, 60), "png").width == 70866


def test_the_size_in_words_is_the_largest_that_is_written():
    size = check_size(86, 600, (15, 31), "png")
    assert size.width * size.height <= 200_000_000
    assert refusal(check_size, 88, 600, (15, 31), "png")


@pytest.mark.parametrize("form", ["gif", None, ["png"], "page", 3])
def test_other_forms_are_refused(standing, form):
    message, field, _ = refusal(standing.export, form, 10, 100)
    assert (message, field) == ("Choose png, jpg or csv.", "export")


def test_an_export_can_be_canceled_while_it_is_drawn_and_written(standing, monkeypatch):
    for stage in ("count", "say"):
        n_files = len(standing.state()["downloads"])
        original = getattr(Job, stage)

        def cancel_then(self, *arguments, original=original, stage=stage):
            if stage == "count" or arguments[0] == "Writing":
                self.cancel()
            return original(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Job, stage, cancel_then)
            standing.export("png", 20, 300)
            settle(standing)
        assert len(standing.state()["downloads"]) == n_files
        assert standing.state()["notice"] is None


def test_many_pictures_are_sampled(open_studio, photos, ramp, monkeypatch):
    monkeypatch.setattr(_composer, "MOST_TRIED", 10)
    monkeypatch.setattr(_collage, "MOST_TRIED", 10)
    studio = draw(open_studio(photos), ramp)
    collage = studio.state()["collage"]
    assert (collage["nTried"], studio.state()["nPictures"]) == (10, N)
    assert len(np.unique(grid_of(studio))) <= 10
