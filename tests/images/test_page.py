import base64
import hashlib
import html
import io
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from unshuffle.images import _page, write_page

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">&amp;<!--\u2028.jpg"


def flat(*colors, side=16):
    return np.stack([np.full((side, side, 3), color, np.uint8) for color in colors])


RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def data_of(path):
    text = path.read_text("ascii")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    )


def pixels_of(encoded):
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        assert not image.getexif()
        return np.asarray(image)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "wall.html"
    write_page(
        path,
        flat(RED, GREEN, BLUE),
        [[2, -1], [0, 1]],
        ["a.png", HOSTILE, "\udcff\u20ac.png"],
        title="Cats & <dogs>",
        captions=["one", "two", "three"],
        tile=16,
    )
    return path


def test_pictures_stand_in_their_cells(page):
    data = data_of(page)
    assert (data["rows"], data["columns"]) == (2, 2)
    assert data["cells"] == [2, -1, 0, 1]
    wall = pixels_of(data["blocks"][0]["data"])
    assert wall.shape == (32, 32, 3)
    for corner, color in (((8, 8), BLUE), ((24, 8), RED), ((24, 24), GREEN)):
        np.testing.assert_allclose(wall[corner], color, atol=6)


def test_pictures_do_not_bleed_into_their_neighbors(page):
    wall = pixels_of(data_of(page)["blocks"][0]["data"])
    np.testing.assert_allclose(wall[16:, :16].reshape(-1, 3), [RED] * 256, atol=6)


def test_names_of_any_kind_are_data_and_nothing_else(page):
    assert data_of(page)["names"] == ["a.png", HOSTILE, "\udcff\u20ac.png"]
    text = page.read_text("ascii")
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "onerror=" not in text.split('id="data">')[0]
    assert "<title>Cats &amp; &lt;dogs&gt;</title>" in text


def test_the_policy_allows_the_script_and_style_of_the_page_alone(page):
    text = page.read_text("ascii")
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]*)"', text)[1])
    assert "default-src 'none'" in policy
    assert "img-src data:;" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, kind in (("style", "style"), ("script", "script")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_page_refers_to_nothing_outside_itself(page):
    before, after = re.split(r'id="data">.*?</script>', text := page.read_text("ascii"))
    assert not re.search(
        r"https?:|src=|href=|url\(|@import|fetch\(|XMLHttp|WebSocket", before + after
    )
    assert "nothing leaves this machine" in text


def test_walls_are_cut_into_blocks_and_empty_ones_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(_page, "BLOCK_PIXELS", 32)
    grid = np.full((5, 3), -1)
    grid[0, 0], grid[4, 2] = 0, 1
    write_page(tmp_path / "wall.html", flat(RED, GREEN), grid, ["a", "b"], tile=16)
    blocks = data_of(tmp_path / "wall.html")["blocks"]
    shapes = [[each[key] for key in ("row", "column", "rows", "columns")] for each in blocks]
    assert shapes == [[0, 0, 2, 2], [4, 2, 1, 1]]


def test_large_walls_get_smaller_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(_page, "MAX_PAGE_PIXELS", 10_000)
    grid = np.zeros((5, 5), int)
    write_page(tmp_path / "wall.html", flat(RED), grid, ["a"], tile=100)
    assert data_of(tmp_path / "wall.html")["tile_height"] == 16


def test_previews_keep_their_own_size(tmp_path):
    preview = np.zeros((50, 120, 3), np.uint8)
    write_page(tmp_path / "wall.html", flat(RED), [[0]], ["a"], previews=[preview])
    encoded = data_of(tmp_path / "wall.html")["previews"]
    assert [pixels_of(each).shape for each in encoded] == [(50, 120, 3)]


def test_a_page_replaces_the_old_one_only_when_complete(page, monkeypatch):
    before = page.read_bytes()

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_page(page, flat(RED), [[0]], ["a"])
    assert os.listdir(page.parent) == ["wall.html"]
    assert page.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["a"]}, "`names` must be 2 strings.*got 1"),
        ({"title": None}, "`title` must be a string, got NoneType"),
        ({"names": "ab"}, "`names` must be a list of strings, got str"),
        ({"names": ["a", 5]}, "`names` must hold strings; number 1 is a int"),
        ({"captions": ["a"]}, "`captions` must be 2"),
        ({"grid": [[0, 2]]}, "`grid` must hold items from 0 to 1"),
        ({"tile": 0}, "`tile`"),
        ({"previews": [np.zeros((3, 3, 3), np.uint8)]}, "`previews` must be 2 pictures"),
        (
            {"previews": [np.zeros((3, 3), np.uint8)] * 2},
            r"`previews\[0\]` must be uint8 of shape",
        ),
        ({"path": "wall.png"}, r"ends in '\.png'"),
    ],
)
def test_bad_arguments_are_named(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    arguments = {"path": "wall.html", "images": flat(RED, GREEN), "grid": [[0, 1]]}
    with pytest.raises(ValueError, match=message):
        write_page(**{**arguments, "names": ["a", "b"], **change})
    assert not list(tmp_path.iterdir())


def test_a_browser_draws_the_page_and_runs_no_foreign_code(page):
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome is at hand to open the page in")
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000"),
            f"--user-data-dir={page.parent / 'browser'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"the browser does not start here: {done.stderr[-200:]}")
    assert 'data-ready="yes"' in done.stdout
    assert "<title>Cats &amp; &lt;dogs&gt;</title>" in done.stdout
    assert '<p id="count">3 pictures</p>' in done.stdout
