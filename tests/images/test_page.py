import base64
import hashlib
import html
import io
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from unshuffle.images import read_folder, write_page
from unshuffle.images._wall import wall as _wall

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">&amp;<!--\u2028@DATA@.jpg"
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
FORMS = ("wall.html", "wall")


def flat(*colors, side=16):
    return np.stack([np.full((side, side, 3), color, np.uint8) for color in colors])


class Saved(NamedTuple):
    """What a page holds, read back from a file or a folder."""

    frame: str  # the HTML without data
    meta: dict
    data: dict
    sheets: dict  # by (level, row, column)
    pictures: dict


def saved(path):
    text = (path if path.is_file() else path / "index.html").read_text("ascii")
    elements = re.findall(r'<script type="[^"]*" id="([^"]*)">(.*?)</script>\n', text)
    frame = re.sub(r'<script type="[^"]*" id="[^"]*">.*?</script>\n', "", text)
    found = Saved(frame, json.loads(dict(elements)["meta"]), {}, {}, {})
    for name, content in elements[1:]:
        kind, _, rest = name.partition("-")
        if kind == "data":
            found.data[rest] = json.loads(content)
        elif kind == "sheet":
            found.sheets[tuple(map(int, rest.split("-")))] = base64.b64decode(content)
        else:
            found.pictures[int(rest)] = base64.b64decode(content)
    for each in path.rglob("*") if path.is_dir() else ():
        if each.suffix in (".jpg", ".png") and each.parts[-3] == "sheets":
            key = (each.parent.name, *each.stem.split("-"))
            found.sheets[tuple(map(int, key))] = each.read_bytes()
        elif each.suffix in (".jpg", ".png"):
            found.pictures[1000 * int(each.parent.name) + int(each.stem)] = each.read_bytes()
        elif each.parent.name == "data":
            call = re.fullmatch(r'unshuffleData\("([\w-]+)",(.*)\);\n', each.read_text("ascii"))
            assert call[1] == each.stem
            found.data[call[1]] = json.loads(call[2])
    return found


def numbers(text):
    return np.frombuffer(base64.b64decode(text), "<i4").tolist()


def pixels_of(encoded):
    with Image.open(io.BytesIO(encoded)) as image:
        assert not image.getexif()
        assert not {"icc_profile", "comment", "exif", "xmp"} & set(image.info)
        return np.asarray(image)


@pytest.fixture(params=FORMS)
def page(request, tmp_path):
    path = tmp_path / request.param
    write_page(
        path,
        flat(RED, GREEN, BLUE),
        [[2, -1], [0, 1]],
        ["a.png", HOSTILE, "\udcff\u20ac.png"],
        title="Cats & <dogs> @META@",
        columns={"kind": ["x", "y", "x"], HOSTILE: ["", HOSTILE, "\x00"]},
        neighbors=[[1, 2], [0, -1], [0, 1]],
        links=["../a.png", "", "https://example.com/%E2%82%AC"],
        tile=16,
    )
    return path


def test_pictures_stand_in_their_cells(page):
    found = saved(page)
    assert (found.meta["rows"], found.meta["columns"], found.meta["n"]) == (2, 2, 3)
    assert numbers(found.data["cells"]) == [2, -1, 0, 1]
    assert list(found.sheets) == [(0, 0, 0)]
    wall = pixels_of(found.sheets[0, 0, 0])
    assert wall.shape == (32, 32, 3)
    for corner, color in (((8, 8), BLUE), ((24, 8), RED), ((24, 24), GREEN)):
        np.testing.assert_allclose(wall[corner], color, atol=6)


def test_pictures_do_not_bleed_into_their_neighbors(page):
    wall = pixels_of(saved(page).sheets[0, 0, 0])
    np.testing.assert_allclose(wall[16:, :16].reshape(-1, 3), [RED] * 256, atol=6)


def test_data_are_those_of_the_items(page):
    found = saved(page)
    assert found.meta["headings"] == ["kind", HOSTILE]
    items = found.data["items-0"]
    assert items["names"] == ["a.png", HOSTILE, "\udcff\u20ac.png"]
    columns = [
        [column["values"][code] for code in numbers(column["codes"])]
        for column in items["columns"]
    ]
    assert columns == [["x", "y", "x"], ["", HOSTILE, "\x00"]]
    assert numbers(found.data["neighbors-0"]) == [1, 2, 0, -1, 0, 1]
    assert found.data["links-0"] == ["../a.png", "", "https://example.com/%E2%82%AC"]


def test_both_forms_hold_the_same(tmp_path):
    rng = np.random.default_rng(0)
    images = [rng.integers(256, size=(h, w, 3), dtype=np.uint8) for h, w in [(90, 200), (250, 80)]]
    for name in FORMS:
        write_page(tmp_path / name, images, [[0, 1, -1]], ["a", "b"], columns={"c": ["1", "2"]})
    one, other = (saved(tmp_path / name) for name in FORMS)
    assert {**one.meta, "form": "folder"} == other.meta
    assert one.data == other.data
    assert one.sheets == other.sheets
    assert one.pictures == other.pictures
    assert len(one.pictures) == 2


def test_names_of_any_kind_are_data_and_nothing_else(page):
    text = (page if page.is_file() else page / "index.html").read_text("ascii")
    frame = saved(page).frame
    assert "<title>Cats &amp; &lt;dogs&gt; @META@</title>" in frame
    assert "onerror=" not in frame
    assert "'taken'" not in frame
    assert "<img" not in text
    assert text.count("<script") == text.count("</script>")
    for script in page.rglob("data/*.js"):
        assert not re.search(r"[<>&\u2028\u2029]", script.read_text("ascii"))


def test_the_policy_allows_the_script_and_style_of_the_page_alone(page):
    frame = saved(page).frame
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]*)"', frame)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.keys() == {
        *("default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"),
    }
    for rule in ("default-src", "base-uri", "form-action"):
        assert rules[rule] == "'none'"
    if page.is_dir():
        assert {rules[f"{kind}-src"] for kind in ("script", "style", "img")} == {"'self'"}
        return
    assert rules["img-src"] == "data:"
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", frame, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_the_page_refers_to_nothing_outside_itself(page):
    parts = [saved(page).frame]
    parts += [each.read_text("utf-8") for each in page.rglob("viewer.*")]
    text = "\n".join(parts)
    for own in (r'href="files-\w{16}/viewer\.css"', r'src="files-\w{16}/viewer\.js"'):
        text = re.sub(own, "", text)
    assert not re.search(
        r"https?:|[^.]src=|[^.]href=|url\(|@import|fetch\(|XMLHttp|WebSocket|sendBeacon", text
    )
    assert "nothing leaves this machine" in text


def test_nothing_of_this_machine_is_inside(tmp_path):
    folder = tmp_path / "a-folder-nobody-may-see"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x010E] = exif[0x0131] = "Secret camera"
    for k in range(3):
        Image.new("RGB", (400, 300), (80 * k, 0, 0)).save(folder / f"{k}.jpg", exif=exif)
    pictures = read_folder(folder, size=32, previews=300, cache=None)
    for name in FORMS:
        write_page(tmp_path / name, pictures, [[0, 1, 2]], pictures.names)
        place = tmp_path / name
        files = (
            [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
        )
        content = b"".join(each.read_bytes() for each in files)
        content += b"".join(saved(place).pictures.values())
        for secret in ("nobody-may-see", str(tmp_path), os.path.expanduser("~/"), "Secret"):
            assert secret.encode() not in content


def test_items_that_are_not_on_the_grid_are_not_in_the_page(tmp_path):
    for name in FORMS:
        write_page(
            tmp_path / name,
            [np.zeros((200, 200 + k, 3), np.uint8) for k in range(4)],
            [[3, 1]],
            ["hidden", "b", "hidden", "d"],
            columns={"c": ["hidden", "x", "hidden", "y"]},
            neighbors=[[1], [2], [3], [1]],
            links=["hidden", "", "hidden", "d"],
        )
        found = saved(tmp_path / name)
        assert "hidden" not in json.dumps([found.meta, found.data])
        assert found.data["items-0"]["names"] == ["b", "d"]
        assert numbers(found.data["cells"]) == [1, 0]
        assert numbers(found.data["neighbors-0"]) == [-1, 0]
        assert sorted(found.pictures) == [0, 1]
        assert pixels_of(found.pictures[1]).shape == (200, 203, 3)


def test_large_walls_are_cut_into_sheets_down_to_one(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(60 * 50, 1, 1, 3), dtype=np.uint8).repeat(32, 1).repeat(32, 2)
    grid = np.arange(60 * 50).reshape(60, 50)
    write_page(tmp_path / "wall", images, grid, [str(k) for k in grid.ravel()])
    found = saved(tmp_path / "wall")
    widths = [level["width"] for level in found.meta["levels"]]
    assert widths == [32, 16, 8]
    shapes = {key: pixels_of(each).shape for key, each in found.sheets.items()}
    assert shapes[0, 0, 0] == (512, 512, 3)
    assert shapes[0, 3, 3] == (12 * 32, 2 * 32, 3)  # the last of 60 rows and 50 columns
    assert shapes[1, 1, 1] == (28 * 16, 18 * 16, 3)
    assert [key for key in shapes if key[0] == 2] == [(2, 0, 0)]
    assert shapes[2, 0, 0] == (480, 400, 3)
    for level, side in enumerate(widths):
        rows = int(found.meta["levels"][level]["rows"])
        for row, column in ((0, 0), (35, 40), (59, 49)):
            sheet = pixels_of(found.sheets[level, row // rows, column // rows])
            place = [int((k % rows + 0.5) * side) for k in (row, column)]
            color = images[row * 50 + column, 0, 0]
            np.testing.assert_allclose(sheet[tuple(place)], color, atol=12)


def test_parts_of_the_wall_without_pictures_have_sheets_too(tmp_path):
    grid = np.full((100, 100), -1)
    grid[0, 0], grid[99, 99] = 0, 1
    write_page(tmp_path / "wall", flat(RED, GREEN, side=32), grid, ["a", "b"])
    found = saved(tmp_path / "wall")
    for k, level in enumerate(found.meta["levels"]):
        n = -(-100 // int(level["rows"]))
        assert sum(key[0] == k for key in found.sheets) == n * n


def test_a_wall_of_empty_cells_can_be_written(tmp_path):
    for name in FORMS:
        write_page(tmp_path / name, flat(RED), [[-1, -1]], ["a"])
        found = saved(tmp_path / name)
        assert found.meta["n"] == 0
        assert numbers(found.data["cells"]) == [-1, -1]


def test_plain_colors_are_exact(tmp_path):
    colors = np.random.default_rng(0).integers(256, size=(900 * 2, 3), dtype=np.uint8)
    grid = np.arange(1800).reshape(2, 900)
    write_page(tmp_path / "wall", colors[:, None, None, :], grid, [""] * 1800, noun="color")
    found = saved(tmp_path / "wall")
    assert found.meta["noun"] == ["color", "colors"]
    assert (found.meta["suffix"], found.meta["exact"], found.meta["pictureSuffix"]) == (
        *("png", True),
        "",
    )
    halves = pixels_of(found.sheets[0, 0, 0]), pixels_of(found.sheets[0, 0, 1])
    np.testing.assert_array_equal(np.concatenate(halves, axis=1), colors.reshape(2, 900, 3))


def test_files_of_large_walls_get_smaller_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(_wall, "MAX_PAGE_PIXELS", 10_000)
    for name, height in zip(FORMS, (16, 104), strict=True):
        write_page(tmp_path / name, flat(RED), np.zeros((5, 5), int), ["a"], tile=100)
        assert saved(tmp_path / name).meta["levels"][0]["height"] == height


def test_files_leave_out_larger_pictures_that_would_be_too_many_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(_wall, "MAX_PAGE_BYTES", 1000)
    noise = np.random.default_rng(0).integers(256, size=(2, 300, 300, 3), dtype=np.uint8)
    for name, n_pictures in zip(FORMS, (0, 2), strict=True):
        write_page(tmp_path / name, noise, [[0, 1]], ["a", "b"])
        found = saved(tmp_path / name)
        assert len(found.pictures) == n_pictures
        assert bool(found.meta["pictureSuffix"]) == bool(n_pictures)


def test_pictures_of_many_sizes_fill_square_cells_and_keep_their_own_size(tmp_path):
    wide = np.zeros((100, 300, 3), np.uint8)
    wide[:, 100:200] = GREEN  # the central square
    tall = np.zeros((250, 50, 3), np.uint8)
    tall[100:150] = BLUE
    write_page(tmp_path / "wall", [wide, tall], [[0, 1]], ["wide", "tall"], tile=64)
    found = saved(tmp_path / "wall")
    sheet = pixels_of(found.sheets[0, 0, 0])
    assert sheet.shape == (64, 128, 3)
    np.testing.assert_allclose(sheet[8:-8, 8:56].reshape(-1, 3), [GREEN] * 48 * 48, atol=8)
    np.testing.assert_allclose(sheet[8:-8, 72:120].reshape(-1, 3), [BLUE] * 48 * 48, atol=8)
    shapes = [pixels_of(found.pictures[k]).shape for k in range(2)]
    assert shapes == [(100, 300, 3), (250, 50, 3)]


def test_collections_show_their_previews_as_they_are(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for k, size in enumerate([(640, 400), (300, 500)]):
        Image.new("RGB", size, (200, 60 * k, 0)).save(folder / f"{k}.jpg")
    pictures = read_folder(folder, size=32, previews=320, cache=None)
    write_page(tmp_path / "wall", pictures, [[1, 0]], pictures.names)
    found = saved(tmp_path / "wall")
    assert [found.pictures[k] for k in range(2)] == [pictures.previews[k] for k in range(2)]
    assert pixels_of(found.pictures[0]).shape == (200, 320, 3)


def test_many_items_are_kept_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(_wall, "_CHUNK", 4)
    names = [f"{k}" for k in range(10)]
    write_page(
        tmp_path / "wall",
        flat(RED).repeat(10, 0),
        np.arange(10).reshape(2, 5),
        names,
        columns={"odd": [str(k % 2) for k in range(10)]},
        neighbors=np.arange(10)[:, None],
        links=names,
    )
    found = saved(tmp_path / "wall")
    parts = [found.data[f"items-{k}"] for k in range(3)]
    assert [len(part["names"]) for part in parts] == [4, 4, 2]
    assert [name for part in parts for name in part["names"]] == names
    assert numbers(found.data["neighbors-2"]) == [8, 9]
    assert found.data["links-1"] == ["4", "5", "6", "7"]
    assert parts[2]["columns"][0]["values"] == ["0", "1"]


def test_progress_ends_at_the_total(tmp_path):
    said = []
    images = np.zeros((30, 200, 200, 3), np.uint8)
    grid = np.arange(30).reshape(5, 6)
    for name in FORMS:
        write_page(
            tmp_path / name,
            images,
            grid,
            [""] * 30,
            n_jobs=1,
            on_progress=lambda *step: said.append(step),
        )
        done, totals = zip(*said, strict=True)
        assert len(set(totals)) == 1
        assert list(done) == sorted(done)
        assert done[-1] == totals[0]
        said.clear()


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(700, 40, 40, 3), dtype=np.uint8)
    grid = rng.permutation(700).reshape(35, 20)
    names = [str(k) for k in range(700)]
    for n_jobs in (1, 3):
        write_page(tmp_path / f"wall{n_jobs}", images, grid, names, n_jobs=n_jobs)
    assert saved(tmp_path / "wall1") == saved(tmp_path / "wall3")


def test_a_page_replaces_the_old_one_only_when_complete(page, monkeypatch):
    before = saved(page)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace" if page.is_file() else "rename", fail)
    with pytest.raises(OSError, match="No space"):
        write_page(page, flat(RED), [[0]], ["a"])
    monkeypatch.undo()
    assert os.listdir(page.parent) == [page.name]
    assert saved(page) == before
    write_page(page, flat(RED), [[0]], ["new"])
    assert os.listdir(page.parent) == [page.name]
    assert saved(page).data["items-0"]["names"] == ["new"]
    assert len(saved(page).sheets) == 1


def test_a_failure_while_drawing_leaves_the_old_page(page):
    before = saved(page)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_page(page, flat(RED), [[0]], ["a"], on_progress=stop)
    assert os.listdir(page.parent) == [page.name]
    assert saved(page) == before


@pytest.mark.parametrize("exists", [True, False])
def test_walls_that_are_written_to_one_folder_at_once_are_all_written(tmp_path, exists):
    wall, n_runs = tmp_path / "wall", 3
    if exists:
        write_page(wall, flat(RED), [[0]], ["old"])

    def write(name):
        # All are drawn before the first replaces the wall.
        write_page(wall, flat(RED), [[0]], [name], on_progress=lambda *_: drawn.wait(timeout=600))

    for _ in range(5):
        drawn = threading.Barrier(n_runs)
        with ThreadPoolExecutor(n_runs) as threads:
            list(threads.map(write, "abc"))
        assert saved(wall).data["items-0"]["names"][0] in "abc"
        assert len(list(wall.rglob("viewer.js"))) == 1
    assert os.listdir(tmp_path) == ["wall"]


class OneByOne:
    """Takes reports of progress, and notes when two come at once or out of order."""

    def __init__(self):
        self.done, self.n_inside, self.at_once = [], 0, False

    def __call__(self, done, total):
        self.n_inside += 1
        self.at_once |= self.n_inside > 1
        time.sleep(0.005)
        self.n_inside -= 1
        self.done.append((done, total))


@pytest.mark.parametrize("form", FORMS)
def test_progress_of_several_threads_never_runs_backwards(tmp_path, form):
    report = OneByOne()
    write_page(
        tmp_path / form,
        np.zeros((1, 64, 64, 3), np.uint8),
        np.zeros((40, 40), int),
        ["a"],
        n_jobs=4,
        on_progress=report,
    )
    total = report.done[-1][1]
    assert total > 20
    assert report.done == [(k, total) for k in range(1, total + 1)]
    assert not report.at_once


def test_folders_with_other_files_are_not_replaced(tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    write_page(folder, flat(RED), [[0]], ["a"])  # it was empty
    write_page(folder, flat(RED), [[0]], ["a"])  # it was a wall
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("<title>My home page</title>")
    with pytest.raises(ValueError, match="holds other files"):
        write_page(other, flat(RED), [[0]], ["a"])
    assert [each.name for each in other.iterdir()] == ["index.html"]


def test_nothing_beside_a_wall_is_lost(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "thesis.txt").write_text("mine")
    write_page(site / "index.html", flat(RED), [[0]], ["a"])
    with pytest.raises(ValueError, match=r"would be lost: index\.html, thesis\.txt\. Give"):
        write_page(site, flat(RED), [[0]], ["a"])
    assert sorted(os.listdir(site)) == ["index.html", "thesis.txt"]
    wall = tmp_path / "wall"
    write_page(wall, flat(RED), [[0]], ["a"])
    script = next(wall.rglob("viewer.js"))
    (script.parent / "data" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"would be lost: files-\w{16}/data/notes\.txt\. Give"):
        write_page(wall, flat(GREEN), [[0]], ["a"])
    (script.parent / "data" / "notes.txt").rename(tmp_path / "notes.txt")
    script.write_text("// mine")
    with pytest.raises(ValueError, match=r"lost: files-\w{16}/viewer\.js \(changed since\)\. "):
        write_page(wall, flat(GREEN), [[0]], ["a"])
    assert script.read_text() == "// mine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["a"]}, "`names` must be 2 strings.*got 1"),
        ({"title": None}, "`title` must be a string, got NoneType"),
        ({"noun": 3}, "`noun` must be a string, got int"),
        ({"names": "ab"}, "`names` must be a list of strings, got str"),
        ({"names": ["a", 5]}, "`names` must hold strings; number 1 is a int"),
        ({"columns": [["a", "b"]]}, "`columns` must be a dict of heading to texts, got list"),
        ({"columns": {"c": ["a"]}}, r"`columns\['c'\]` must be 2 strings.*got 1"),
        ({"columns": {"c": ["a", 1]}}, r"`columns\['c'\]` must hold strings; number 1 is a int"),
        ({"columns": {1: ["a", "b"]}}, "heading 1, which is not a string"),
        ({"labels": "c"}, "`labels` is 'c', which is not in `columns`"),
        ({"labels": "d", "columns": {"c": ["", ""]}}, "`labels` is 'd', which is not in"),
        ({"neighbors": [[0]]}, r"`neighbors` must be whole numbers of shape \(2, k\)"),
        ({"neighbors": [[0.0], [1.0]]}, "`neighbors` must be whole numbers.*float64"),
        ({"neighbors": [[0], [2]]}, "`neighbors` must hold items from 0 to 1, or -1"),
        ({"neighbors": [[0], [-2]]}, "`neighbors` must hold items from 0 to 1, or -1"),
        ({"links": ["a"]}, "`links` must be 2 strings"),
        ({"grid": [[0, 2]]}, "`grid` must hold items from 0 to 1"),
        ({"tile": 0}, "`tile`"),
        ({"tile": 1.5}, "`tile`"),
        ({"on_progress": 1}, "`on_progress`"),
        (
            {"images": [np.zeros((3, 3, 3), np.uint8), np.zeros((3, 3), np.uint8)]},
            r"`images\[1\]` must be uint8 of shape \(height, width, 3\), got uint8 of shape",
        ),
        (
            {"images": [np.zeros((3, 3, 3), np.uint8), np.zeros((3, 0, 3), np.uint8)]},
            r"`images\[1\]` must be uint8 of shape",
        ),
        ({"images": np.zeros((2, 3, 3, 3))}, "uint8"),
        ({"path": "wall.png"}, r"ends in '\.png'"),
    ],
)
def test_bad_arguments_are_named(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    arguments = {"images": flat(RED, GREEN), "grid": [[0, 1]], "names": ["a", "b"]}
    for name in FORMS:
        with pytest.raises(ValueError, match=message):
            write_page(**{"path": name, **arguments, **change})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "link",
    [
        *("javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)"),
        *("java\nscript:alert(1)", "\x01javascript:alert(1)", "data:text/html,x", "blob:x"),
        *("vbscript:x", "about:blank", "https://[", "\\\\server\\share\\a.png", "//server/a.png"),
    ],
)
def test_links_that_would_run_something_are_refused(tmp_path, link):
    with pytest.raises(ValueError, match=r"`links\[1\]` is .*Give a path relative to the page"):
        write_page(tmp_path / "wall", flat(RED, GREEN), [[0, 1]], ["a", "b"], links=["", link])
    assert not list(tmp_path.iterdir())
