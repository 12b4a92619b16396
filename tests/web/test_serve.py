"""`unshuffle serve` as a program: how it starts, answers and ends."""

import csv
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unshuffle.web import serve as serve_page

unix = pytest.mark.skipif(os.name == "nt", reason="signals of this kind are those of Unix")


def run(*arguments):
    command = [sys.executable, "-m", "unshuffle", "serve", "--no-browser", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def export(server, form):
    server.post("/api/export", format=form)
    found = server.settle()["downloads"][-1]
    status, headers, content = server.ask("GET", f"/api/export/{found['id']}")
    assert status == 200
    assert headers["Content-Disposition"] == f'attachment; filename="{found["name"]}"'
    assert len(content) == found["bytes"]
    return found["name"], content


@unix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_one_address_and_ends_when_told(serve, photos, how):
    server = serve(photos)
    assert server.address.startswith(f"http://127.0.0.1:{server.port}/?token=")
    assert len(server.token) >= 40
    connection = server.connect()  # a page that listens does not hold it up
    connection.request("GET", "/api/events", headers={"Cookie": server.cookie})
    answer = connection.getresponse()
    assert answer.readline() == b"event: state\n"
    assert server.stop(how) == 0
    said = Path(server.home / "server.log").read_text()
    assert "Traceback" not in said
    assert said.endswith("Stopped. Everything is saved for next time.\n")
    connection.close()


def test_exports_can_be_read_back(serve, photos):
    server = serve(photos)
    server.settle()
    grid, names = server.grid(), server.get("/api/pictures")["names"]
    name, content = export(server, "csv")
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert name == "wall.csv"
    assert len(rows) == 30
    for row in rows:
        assert names[grid[int(row["row"]), int(row["column"])]] == row["name"]
    name, content = export(server, "png")
    with Image.open(io.BytesIO(content)) as sheet:
        shown = np.asarray(sheet.convert("RGB")).astype(int)
    side = (shown.shape[0] - 2) // 5 - 2
    for (row, column), slot in np.ndenumerate(grid):
        with Image.open(photos / names[slot]) as image:
            left = image.width // 2 - 3
            middle = np.asarray(image.convert("RGB"))[21:27, left : left + 6].mean(axis=(0, 1))
        top, left = 2 + row * (side + 2) + side // 2, 2 + column * (side + 2) + side // 2
        found = shown[top - 6 : top + 6, left - 6 : left + 6].mean(axis=(0, 1))
        assert np.abs(found - middle).max() < 12
    name, content = export(server, "page")
    assert name == "wall.html"
    assert all(each.encode() in content for each in names)
    assert str(photos).encode() not in content


def test_events_follow_the_work(serve, photos):
    server = serve(photos)
    connection = server.connect()
    connection.request("GET", "/api/events", headers={"Cookie": server.cookie})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    states = []
    while not states or states[-1]["jobs"] or not states[-1]["wall"]["settled"]:
        line = answer.readline()
        assert line
        if line.startswith(b"data: "):
            states.append(json.loads(line[6:]))
    versions = [each["version"] for each in states]  # one that lasts is sent again
    assert versions == sorted(versions)
    assert states[-1]["wall"]["nPlaced"] == 30
    assert states[-1] == server.state()
    server.post("/api/freeze", items=[3])
    while not line.startswith(b"data: ") or json.loads(line[6:])["undo"] is None:
        line = answer.readline()
    assert json.loads(line[6:])["wall"]["nFrozen"] == 1
    connection.close()


def test_thumbnails_and_pictures(serve, photos):
    Image.new("RGB", (2400, 1200), (10, 200, 30)).save(photos / "0-large.png")
    server = serve(photos)
    server.settle()
    for side in (16, 64):
        status, headers, content = server.ask("GET", f"/api/sheet/{side}/0?v=31")
        assert (status, headers["Content-Type"]) == (200, "image/jpeg")
        with Image.open(io.BytesIO(content)) as sheet:
            assert sheet.size == (8 * side, 8 * side)
            assert (
                np.abs(np.array(sheet.getpixel((side // 2, side // 2))) - (10, 200, 30)).max() < 6
            )
            assert sheet.getpixel((8 * side - 2, 8 * side - 2)) == (128, 128, 128)
    for side, size in ((320, (320, 160)), (1600, (1600, 800))):
        content = server.ask("GET", f"/api/picture/0?side={side}")[2]
        with Image.open(io.BytesIO(content)) as picture:
            assert picture.size == size
    for path in ("/api/sheet/32/0", "/api/sheet/16/1", "/api/sheet/16/-1", "/api/sheet/16/x",
                 "/api/picture/31", "/api/picture/0?side=9999", "/api/export/x", "/api/nothing",
                 "/api/jobs/j1"):  # fmt: skip
        status, headers, content = server.ask("GET", path)
        assert status in (404, 405)
        assert json.loads(content)["error"]["message"].endswith(".")


def test_the_wall_survives_a_kill(serve, photos):
    server = serve(photos)
    server.settle()
    grid = server.grid()
    server.post("/api/move", item=int(grid[0, 0]), cell=14, rows=5, columns=6)
    server.settle()
    content = (photos / "001.jpg").read_bytes() + b"\0"
    assert server.ask("PUT", "/api/uploads?name=new.jpg", content)[0] == 201
    before = server.settle()
    wall = server.get("/api/wall")
    server.stop(signal.SIGKILL)
    again = serve(photos)
    after = again.settle()
    assert {**again.get("/api/wall"), "version": 0} == {**wall, "version": 0}
    assert (after["undo"], after["settings"]) == (before["undo"], before["settings"])
    assert again.get("/api/pictures")["names"][-1] == "new.jpg"


def test_wrong_arguments_are_explained(tmp_path, photos, serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = run(photos, "--port", taken.getsockname()[1], "--state", tmp_path / "a.json")
    assert found.returncode == 2
    assert "cannot be used" in found.stderr
    for arguments, words in (
        ([tmp_path / "nowhere"], "There is no folder"),
        ([photos / "000.jpg"], "is a file, not a folder"),
        ([photos, "--state", tmp_path / "wall.txt"], "must end in .json"),
        ([photos, "--port", "70000"], "65535"),
    ):
        found = run(*arguments)
        assert (found.returncode, found.stdout) == (2, "")
        assert words in found.stderr
        assert found.stderr.count("\n") == 1
    server = serve(photos, "--state", tmp_path / "b.json")
    found = run(photos, "--state", tmp_path / "b.json")
    assert found.returncode == 2
    assert "open in another unshuffle serve" in found.stderr
    assert server.state()["title"] == "photos"


def test_the_usual_port_gives_way(monkeypatch):
    from unshuffle.web import _serve

    with _serve._listen(0) as first:
        first.listen()
        monkeypatch.setattr(_serve, "USUAL_PORT", first.getsockname()[1])
        with _serve._listen(None) as second:
            assert second.getsockname()[0] == "127.0.0.1"
            assert second.getsockname()[1] != first.getsockname()[1]


def test_what_to_install_is_said(monkeypatch, photos):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "unshuffle.web._http.server", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'unshuffle\[web\]'"):
        serve_page(photos, open_browser=False)


def test_nothing_in_the_folder_is_changed(serve, photos):
    before = {path.name: path.stat().st_mtime_ns for path in photos.iterdir()}
    server = serve(photos)
    server.settle()
    server.ask("PUT", "/api/uploads?name=new.png", (photos / "001.jpg").read_bytes() + b"\0")
    export(server, "csv")
    server.stop()
    assert {path.name: path.stat().st_mtime_ns for path in photos.iterdir()} == before


def test_it_listens_on_this_machine_only(serve, photos):
    server = serve(photos)
    others = {
        each[4][0]
        for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not each[4][0].startswith("127.")
    }
    for address in others:
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            http.client.HTTPConnection(address, server.port, timeout=5).request("GET", "/")
