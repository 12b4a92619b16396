"""A real server among hostile clients, links, pictures and kills: it refuses or survives."""

import base64
import io
import json
import os
import re
import signal
import socket
import struct
import threading
import unicodedata
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from tests.web.conftest import Server

from unshuffle.web._http.app import make_app
from unshuffle.web._wall.session import Session
from unshuffle.web._work.album import is_own_name
from unshuffle.web._work.state_file import StateFile

pytestmark = pytest.mark.xdist_group(__name__)

MARKER = b"OUTSIDE-of-the-folder-7c1e"
SLOT, SHEET = "/api/picture/0", "/api/sheet/64/0"


class Nobody:
    """Stands for a view of which only the addresses matter."""

    def __getattr__(self, name):
        return lambda *_: None


# Method and address of everything that can be asked for, with the names of what varies.
PATTERNS = sorted(
    (method, route.path.replace(":path", ""))
    for route in make_app(Nobody(), Nobody(), Nobody()).routes
    for method in route.methods - {"HEAD"}
)
PARTS = {"name": "web/page/wall/index.html", "side": "64", "k": "0", "slot": "0"}
ROUTES = [(method, path.format(**PARTS)) for method, path in PATTERNS]
CHANGES = [path.removeprefix("/api/") for method, path in ROUTES if method == "POST"]


def picture(color, size=(40, 30)):
    """A small PNG of one color, with what every file outside the folder holds."""
    out, notes = io.BytesIO(), PngImagePlugin.PngInfo()
    notes.add_text("comment", MARKER.decode() if color == "magenta" else "inside")
    Image.new("RGB", size, color).save(out, "PNG", pnginfo=notes)
    return out.getvalue()


def bomb(side=50_000):
    """A PNG of few bytes that claims 2.5 billion pixels, some of which are there."""

    def chunk(kind, data):
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    rows = zlib.compress(b"\0" * (side + 1) * 200, 9)
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class Hostile(Server):
    """A server whose answers are all searched for what is outside its folder."""

    def ask(self, method, path, body=None, headers=(), **options):
        status, given, content = super().ask(method, path, body, headers, **options)
        assert status < 500 or status in (503, 507), (method, path, content)
        assert_clean(content)
        return status, given, content

    def raw(self, data, *, end=False, timeout=600):
        """What comes back for these bytes until the server closes, or "" if it just does."""
        with socket.create_connection((self.host, self.port), timeout) as connection:
            try:
                connection.sendall(data)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it did not want to hear the rest
            answer = b""
            try:
                while piece := connection.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
        assert_clean(answer)
        return answer

    def request(self, method, target, *headers):
        """Bytes of a request with the cookie, to be sent as they are."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        lines += [f"Cookie: {self.cookie}", "Connection: close", *headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def names(self):
        return self.get("/api/pictures")["names"]

    def error(self, answer, *statuses):
        status, _, content = answer
        assert status in statuses, (status, content)
        return json.loads(content)["error"]["message"]

    def listen(self):
        """A stream of states, and the connection that it comes from."""
        connection = self.connect()
        connection.request("GET", "/api/events", headers={"Cookie": self.cookie})
        return connection, connection.getresponse()

    def wait_for(self, condition):
        """Wait until a state comes true, as the page hears of it."""
        connection, answer = self.listen()
        with connection.sock or answer:
            for line in answer:
                if line.startswith(b"data: ") and condition(state := json.loads(line[6:])):
                    return state
        raise AssertionError("the stream has ended")


def assert_clean(content):
    """Neither the bytes nor the color of a file outside the folder."""
    assert MARKER not in content
    if content[:3] == b"\xff\xd8\xff" or content[:4] == b"\x89PNG":
        with Image.open(io.BytesIO(content)) as image:
            red, green, blue = np.moveaxis(np.asarray(image.convert("RGB"), dtype=int), 2, 0)
        assert not ((red > 200) & (green < 60) & (blue > 200)).any()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with all that one must not open, beside what it must not show."""
    place = tmp_path_factory.mktemp("place")
    # Not even the name of the folder is valid Unicode.
    outside, inside = place / "outside", place / os.fsdecode(b"ins\xefde")
    for folder in (outside, inside / "deep", place / "home"):
        folder.mkdir(parents=True)
    (outside / "secret.png").write_bytes(picture("magenta"))
    (outside / "secret.txt").write_bytes(MARKER)
    for i in range(9):
        (inside / f"{i}.png").write_bytes(picture((20, 150 + 10 * i, 90)))
    links = {
        "link.png": outside / "secret.png",
        "text.png": outside / "secret.txt",
        "relative.png": Path("../outside/secret.png"),
        "deep/up.png": Path("../../outside/secret.png"),
        "folder": outside,
        "parent": Path(".."),
        "loop": Path("loop"),
        "self": Path("."),
        "gone.png": Path("nowhere.png"),
        "device.png": Path("/dev/zero"),
        "process.png": Path("/proc/self/environ"),
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    (inside / "bomb.png").write_bytes(bomb())
    (inside / "not a picture.jpg").write_bytes(b"<script>alert(1)</script>")
    (inside / "cut off.png").write_bytes(picture("gray", (300, 300))[:-200])
    (inside / "a..%2f..%2fescape.png").write_bytes(picture("gray"))
    (inside / "<img src=x onerror=alert(1)>.png").write_bytes(picture("silver"))
    Path(os.fsdecode(os.fsencode(inside) + b"/caf\xe9.png")).write_bytes(picture("white"))
    os.mkfifo(inside / "pipe.png")
    return place


@pytest.fixture(scope="module")
def server(place):
    if os.name == "nt":
        pytest.skip("links and signals are those of Unix")
    server = Hostile(folder_of(place), "--port", "0", home=place / "home")
    try:
        server.open().settle()
        yield server
        assert server.process.poll() is None
        assert "Traceback" not in server.said(), server.said()
        # A bomb would have taken 7.5 GB.
        used = Path(f"/proc/{server.process.pid}/status").read_text()
        assert int(used.partition("VmHWM:")[2].split()[0]) < 2e6
    finally:
        server.stop(signal.SIGKILL)


@pytest.fixture(autouse=True)
def survives(server):
    """After each test, the server answers and shows the pictures of the folder."""
    yield
    assert server.ask("GET", "/")[0] == 200
    state = server.state()
    assert state["pictures"]["nReady"] >= 9
    assert server.ask("GET", SLOT)[0] == 200


def folder_of(place):
    return place / os.fsdecode(b"ins\xefde")


def kept_by(place):
    """The folder of dropped pictures."""
    return next((place / "home" / "data").rglob("*.pictures"))


def tree(folder):
    """All files below a folder, except those that a wall is kept in."""
    kept = folder / "home"
    return {path for path in folder.rglob("*") if kept not in path.parents}


# ---- who asks


@pytest.mark.parametrize("cookie", ["", "unshuffle-{port}=", "unshuffle-{port}={token}", "a=b"])
def test_without_the_cookie_nothing_is_told(server, cookie):
    given = cookie.format(port=server.port, token=server.token)
    for method, path in ROUTES:
        headers = {"Cookie": given}
        status, _, content = server.ask(method, path, headers=headers)
        assert status == 401, (method, path)
        assert b".png" not in content
        assert b"unshuffle serve printed" in content


def test_wrong_tokens_open_nothing(server):
    near = [server.token[:-1], server.token + "A", server.token.swapcase(), "", "%00", "a" * 9999]
    for token in near:
        for path in [f"/?token={token}", f"/api/state?token={server.token}"]:
            status, headers, _ = server.ask("GET", path, headers={"Cookie": ""})
            assert status == 401
            assert "Set-Cookie" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "0.0.0.0:{port}", "localhost", "127.0.0.1", "[::1]:{port}", ""]
)
def test_foreign_hosts_are_refused(server, host):
    for method, path in [*ROUTES, ("GET", f"/?token={server.token}")]:
        status, headers, _ = server.ask(
            method, path, headers={"Host": host.format(port=server.port)}
        )
        assert status == 403
        assert "Set-Cookie" not in headers


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
def test_foreign_origins_are_refused(server, origin):
    for method, path in ROUTES:
        headers = {"Origin": origin.format(port=server.port)}
        assert server.ask(method, path, headers=headers)[0] == 403


def test_the_command_line_of_the_browser_holds_nothing_of_use(server, tmp_path, monkeypatch):
    """Every user of the machine can read it, as long as the browser runs."""
    script, seen = tmp_path / "browser", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > "{seen}.part" && mv "{seen}.part" "{seen}"\n')
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    other = Hostile("--port", "0", home=tmp_path, browser=True)
    try:
        while not seen.exists():
            other.ask("GET", "/")
        path = "/" + seen.read_text().rpartition("/")[2]
        assert other.token not in path
        assert other.ask("GET", path)[0] == 200
        assert other.ask("GET", path)[0] == 401
        other.open()
    finally:
        other.stop(signal.SIGKILL)


def test_a_page_on_another_port_reaches_nothing(server, browser):
    """Its requests carry the cookie, since all ports of a host are one site."""

    class Neighbor(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><body>neighbor")

        def log_message(self, *_):
            pass

    before = server.state()
    with ThreadingHTTPServer(("127.0.0.1", 0), Neighbor) as neighbor:
        threading.Thread(target=neighbor.serve_forever, daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        page.goto(f"http://127.0.0.1:{neighbor.server_port}/")
        heard = page.evaluate(
            """async (base) => {
              const json = {"content-type": "application/json"};
              const ask = (path, options) =>
                fetch(base + path, {credentials: "include", ...options})
                  .then((answer) => answer.text(), () => "refused");
              const load = (name, path) => new Promise((resolve) => {
                const element = document.createElement(name);
                element.onload = () => resolve("loaded");
                element.onerror = () => resolve("refused");
                element.src = base + path;
                document.body.append(element);
              });
              const stream = (made) => new Promise((resolve) => {
                made.onopen = () => resolve("opened");
                made.onerror = () => { made.close(); resolve("refused"); };
              });
              return [
                await ask("/api/state", {}),
                await ask("/api/state", {mode: "no-cors"}),
                await ask("/api/clear", {method: "POST", mode: "no-cors"}),
                await ask("/api/clear", {method: "POST", headers: json, body: "{}"}),
                await ask("/api/uploads?name=a.png", {method: "PUT", body: "x"}),
                await ask("/api/jobs/j1", {method: "DELETE"}),
                await load("img", "/api/picture/0"),
                await load("img", "/api/sheet/64/0"),
                await load("script", "/api/state"),
                await stream(new EventSource(base + "/api/events", {withCredentials: true})),
                await stream(new WebSocket(base.replace("http", "ws") + "/api/events")),
              ];
            }""",
            server.address.partition("/?")[0],
        )
        context.close()
        neighbor.shutdown()
    assert set(heard) <= {"refused", ""}
    after = server.state()
    assert after["pictures"] == before["pictures"]


# ---- paths


def escapes(place):
    """Ways to say a file outside, and some that are no more than odd."""
    target = place / "outside" / "secret.txt"
    up = "../" * 12
    plain = [
        f"{up}{str(target)[1:]}",
        str(target),
        "../inside/../outside/secret.txt",
        "..\\..\\outside\\secret.txt",
        f"....//....//{up}etc/passwd",
        f"0/{up}etc/passwd",
        f"index.html/{up}etc/passwd",
        f"file://{target}",
        "~/.ssh/id_rsa",
        "0;/../../etc/passwd",
    ]
    encoded = [quote(each, safe="") for each in plain]
    twice = [quote(each, safe="") for each in encoded]
    odd = [
        *("..", ".", "%2e%2e", "%2e%2e%2f", "..%00", "%00", "0%00.png", "%c0%ae%c0%ae%c0%af"),
        *("..%c0%af..%c0%afetc%c0%afpasswd", "%uff0e%uff0e%u2215", "%", "%zz", "-1", "-0", "1e3"),
        *("0x0", "0.0", "+0", "%20 0".replace(" ", ""), "١", "NaN", "None", "[0]", "0,1", "*"),
        *("9" * 30, "9" * 5000, "18446744073709551616", "2147483648", "a" * 5000),
    ]
    return plain + encoded + twice + [each.encode("utf-8").decode("latin-1") for each in odd]


def openings():
    """Addresses with a place for anything, one for each part that varies."""
    yield from ("GET /{}", "GET /api/{}", "GET /assets/images/{}", "GET /match/{}")
    for query in ("picture/0?side={}", "match/picture/0/0?side={}", "collage/preview?version={}"):
        yield f"GET /api/{query}"
    for method, path in PATTERNS:
        for part in re.findall(r"{(\w+)}", path):
            yield f"{method} {path.format(**{**PARTS, part: '{}'})}"


@pytest.mark.parametrize("route", [*openings()])
def test_no_address_leads_out_of_the_folder(server, place, route):
    method, _, template = route.partition(" ")
    harmless = {"GET /{}": {"."}, "GET /api/sheet/{}/0": set()}
    for each in escapes(place):
        if each in harmless.get(route, set()):
            continue
        answer = server.raw(server.request(method, template.format(each)))
        assert b"root:" not in answer
        status = int(answer.split(b" ", 2)[1])
        assert status in (307, 400, 401, 404, 405, 409), (each, answer[:300])
        if status == 307:  # without a slash at the end
            assert f"\r\nlocation: http://{server.host}:{server.port}/".encode() in answer


def test_names_of_uploads_are_only_words(server, place):
    before = tree(place)
    names = [
        *("../../x.png", "/etc/cron.d/x.png", "..\\..\\x.png", "C:\\x.png", "a/../../b.png", ""),
        *("..", ".", "/", "con.png", "a\0b.png", "a\r\nSet-Cookie: x=y.png", "\x1b[31mred.png"),
        *(
            "\u202egnp.exe",
            "a\u2028b.png",
            "\ud800.png".encode("utf-8", "surrogatepass").decode("latin-1"),
            ".",
        ),
        *(
            "é" * 4000 + ".png",
            "<script>alert(1)</script>.png",
            ".htaccess",
            "a.png/",
            "%2e%2e%2f",
        ),
        *(f"{place}/outside/secret.png", "~/x.png", "$HOME/x.png", "x.png; rm -rf ~", "💥.png"),
    ]
    n_before = len(server.names())
    for i, name in enumerate(names):
        body = picture((30, 60, 200 + i))
        answer = server.ask("PUT", f"/api/uploads?name={quote(name, safe='')}", body)
        assert answer[0] == 201, (name, answer)
    assert server.ask("PUT", "/api/uploads", picture("navy"))[0] == 201  # without any
    shown = server.settle() and server.names()[n_before:]
    assert len(shown) == len(set(shown)) == len(names) + 1
    for name in shown:
        assert not {unicodedata.category(c) for c in name} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
        assert 0 < len(name) <= 220
        assert not name.startswith("/")
        assert ".." not in name.split("/")
    assert tree(place) == before
    kept = kept_by(place)
    for path in kept.iterdir():
        assert is_own_name(path.name) or path.name in (".lock", ".names", ".exports")
    server.post("/api/clear")
    server.settle()
    assert len(server.names()) == n_before
    assert {path.name for path in kept.iterdir()} <= {".lock", ".exports"}


# ---- links


def see_everything(server):
    """Ask for all that shows pictures; `Hostile.ask` searches the answers."""
    total = server.settle()["pictures"]["total"]
    for path in ["/api/pictures", "/api/wall", "/api/state", "/api/sheet/16/0", SHEET]:
        assert server.ask("GET", path)[0] == 200
    for slot in range(total):
        for side in (320, 1600):
            status = server.ask("GET", f"/api/picture/{slot}?side={side}")[0]
            assert status in (200, 404, 410)
        assert server.ask("GET", f"/api/alike/{slot}")[0] in (200, 409)
    for form in ("page", "csv", "png"):
        known = {each["id"] for each in server.state()["downloads"]}
        server.post("/api/export", format=form)
        ids = {each["id"] for each in server.settle()["downloads"]} - known
        assert len(ids) == 1, server.state()["notice"]
        status, headers, content = server.ask("GET", f"/api/export/{ids.pop()}")
        assert status == 200
        assert headers["Content-Disposition"].startswith("attachment")
        for piece in content.split(b'"'):
            if piece.startswith(b"data:image"):
                assert_clean(base64.b64decode(piece.partition(b",")[2]))


def test_links_out_of_the_folder_are_listed_and_never_opened(server):
    see_everything(server)
    failed = {each["name"]: each["reason"] for each in server.get("/api/pictures")["failed"]}
    leads_out = "a link that leads out of the folder"
    for name in ["link.png", "text.png", "relative.png", "deep/up.png", "folder", "parent"]:
        assert failed.pop(name) == leads_out
    assert failed.pop("device.png") == failed.pop("process.png") == leads_out
    assert "link" in failed.pop("gone.png")
    assert "million pixels" in failed.pop("bomb.png")
    assert failed.pop("pipe.png") == "not a regular file"
    assert "not a picture" in failed.pop("not a picture.jpg")
    assert failed.pop("cut off.png").startswith("damaged")
    assert set(failed) <= {"loop"}
    names = server.names()
    assert {"a..%2f..%2fescape.png", "<img src=x onerror=alert(1)>.png", "caf?.png"} < set(names)


def test_a_file_that_becomes_a_link_is_not_followed(server, place):
    """Neither its own file nor that of a folder above it, also when no copy of it is left."""
    slot = server.names().index("8.png")
    changed = folder_of(place) / "8.png"
    content = changed.read_bytes()
    try:
        changed.unlink()
        changed.symlink_to(place / "outside" / "secret.png")
        assert "link" in server.error(server.ask("GET", f"/api/picture/{slot}?side=1600"), 410)
        for copy in (place / "home" / "cache").rglob("*.thumb"):
            copy.unlink()
        assert server.ask("GET", f"/api/picture/{slot}?side=320")[0] == 410
        server.post("/api/settings", features=["texture"])
        server.post("/api/arrange")
        server.settle()
        for path in [SHEET, "/api/sheet/16/0"]:
            assert server.ask("GET", path)[0] == 200
    finally:
        changed.unlink()
        changed.write_bytes(content)
        server.post("/api/settings", features=["color"])
        server.settle()


# ---- sizes


def test_uploads_that_are_too_large_leave_nothing(server, place):
    limit = server.state()["limits"]["uploadBytes"]
    kept = kept_by(place)
    before = server.names(), sorted(kept.iterdir())
    target = "/api/uploads?name=large.png"
    declared = server.request("PUT", target, f"Content-Length: {limit + 1}")
    assert declared_status(server.raw(declared)) == 413  # before any of it was sent
    absurd = server.request("PUT", target, f"Content-Length: {10**17}")
    assert declared_status(server.raw(absurd)) == 413
    mask = server.request("PUT", "/api/mask?name=a.png", f"Content-Length: {limit + 1}")
    assert declared_status(server.raw(mask)) == 413
    chunked = server.request("PUT", target, "Transfer-Encoding: chunked")
    piece = b"100000\r\n" + bytes(2**20) + b"\r\n"
    endless = server.raw(chunked + piece * (limit // 2**20 + 1) + b"1\r\nx\r\n")
    assert declared_status(endless) == 413
    text = server.request(
        "POST", "/api/settings", "Content-Type: application/json", "Transfer-Encoding: chunked"
    )
    assert declared_status(server.raw(text + piece * 2 + b"0\r\n\r\n")) == 413
    assert (server.names(), sorted(kept.iterdir())) == before


def declared_status(answer):
    """Status of an answer that may have been cut off by the end of the connection."""
    return int(answer.split(b" ", 2)[1]) if answer else 413


def test_uploads_that_are_not_whole_are_not_kept(server, place):
    kept = kept_by(place)
    before = server.names(), sorted(kept.iterdir())
    target = "/api/uploads?name=part.png"
    content = picture("teal")
    cut = server.request("PUT", target, f"Content-Length: {len(content) + 10}")
    assert b"201" not in server.raw(cut + content, end=True)[:20]
    chunk = b"%x\r\n%s\r\n" % (len(content), content)
    open_end = server.request("PUT", target, "Transfer-Encoding: chunked")
    assert b"201" not in server.raw(open_end + chunk, end=True)[:20]
    wrong = server.request("PUT", target, "Transfer-Encoding: chunked")
    assert b"201" not in server.raw(wrong + b"zz\r\n" + content)[:20]
    both = server.request("PUT", target, "Transfer-Encoding: chunked", "Content-Length: 3")
    assert b"201" not in server.raw(both + chunk + b"0\r\n\r\n")[:20]
    assert "empty" in server.error(server.ask("PUT", target, b""), 400)
    assert (server.names(), sorted(kept.iterdir())) == before


def test_bombs_are_not_decoded(server, place):
    kept = kept_by(place)
    server.post("/api/clear")  # what other tests have dropped
    server.settle()
    before = {path.name for path in kept.iterdir()}
    n_failed = server.state()["pictures"]["nFailed"]
    assert server.ask("PUT", "/api/uploads?name=bomb.png", bomb())[0] == 201
    state = server.settle()
    assert state["pictures"]["nFailed"] == n_failed + 1
    slot = state["pictures"]["total"] - 1
    assert server.ask("GET", f"/api/picture/{slot}?side=1600")[0] == 404
    message = server.error(server.ask("PUT", "/api/mask?name=heart.png", bomb(49_000)), 400)
    assert "million pixels" in message
    assert str(kept) not in message
    assert server.state()["settings"]["shape"] == "rectangle"
    for content in (b"GIF89a\xff\xff\xff\xff\x00\x00\x00", b"BM" + bytes(60), b"\x00" * 100):
        assert server.ask("PUT", "/api/mask?name=heart.png", content)[0] == 400
    server.post("/api/clear")
    assert {path.name for path in kept.iterdir()} == before  # no refused mask either


# ---- clients


def test_a_hundred_clients_at_once(server):
    start = threading.Barrier(100, timeout=600)

    def visit(i):
        start.wait()
        statuses = []
        for path in ["/api/state", SHEET, f"/api/picture/{i % 9}?side=1600", "/api/wall", "/"]:
            statuses.append(server.ask("GET", path)[0])
        if i % 10 == 0:
            answer = server.ask("PUT", f"/api/uploads?name={i}.png", picture((i, 200, i)))
            statuses.append(answer[0] - 1)
            statuses.append(server.ask("POST", "/api/freeze", {"items": [i % 9]})[0])
        connection, answer = server.listen()
        statuses.append(answer.status)
        answer.readline()
        connection.sock and connection.sock.close()
        answer.close()
        return statuses

    with ThreadPoolExecutor(100) as clients:
        statuses = list(chain.from_iterable(clients.map(visit, range(100))))
    # Some listeners, and no more than that, may be too many.
    assert set(statuses) <= {200, 503}
    assert statuses.count(503) <= 36
    state = server.settle()
    assert state["pictures"]["nReady"] >= 19
    server.post("/api/clear")
    server.settle()


def test_of_many_pages_that_begin_to_listen_at_once_64_are_heard(server):
    server.settle()
    streams = [socket.create_connection((server.host, server.port), 60) for _ in range(120)]
    try:
        for each in streams:
            each.sendall(server.request("GET", "/api/events"))
        statuses = [each.makefile("rb").readline().split()[1] for each in streams]
    finally:
        for each in streams:
            each.close()
    assert (statuses.count(b"200"), statuses.count(b"503")) == (64, 56)


def test_listeners_that_left_make_room_for_others(server):
    for _ in range(3):
        pairs = [server.listen() for _ in range(40)]
        for _, answer in pairs:
            assert answer.status == 200
            assert answer.readline() == b"event: state\n"
        for connection, answer in pairs:
            answer.close()
            connection.close()
        server.wait_for(lambda state: True)


def test_clients_that_stop_reading_do_not_block_others(server):
    stalled = []
    for path in ["/api/events"] * 20 + [SLOT + "?side=1600", SHEET, "/api/pictures"] * 5:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        connection.connect((server.host, server.port))
        connection.sendall(server.request("GET", path) * 3)
        stalled.append(connection)
    try:
        for i in range(30):
            server.post("/api/freeze", items=[i % 9])
            server.ask("PUT", f"/api/uploads?name={i}.png", picture((i, 100, 100)))
        state = server.wait_for(lambda state: state["pictures"]["nReady"] >= 39)
        assert state["wall"]["nFrozen"] == 9
    finally:
        for connection in stalled:
            connection.close()
    server.post("/api/clear")
    server.settle()


def test_slow_clients_do_not_block_others(server):
    before = server.names()
    starts = [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nHost: ",
        server.request("PUT", "/api/uploads?name=slow.png", "Content-Length: 1000") + b"x",
        server.request("PUT", "/api/mask?name=slow.png", "Transfer-Encoding: chunked") + b"1\r\nx",
        server.request(
            "POST", "/api/settings", "Content-Type: application/json", "Content-Length: 9"
        )
        + b"{",
    ]
    waiting = []
    for start in starts * 20:
        connection = socket.create_connection((server.host, server.port))
        connection.sendall(start)
        waiting.append(connection)
    try:
        assert server.ask("GET", SLOT + "?side=1600")[0] == 200
        server.post("/api/arrange")
        assert not server.settle()["jobs"]
    finally:
        for connection in waiting:
            connection.close()
    assert server.names() == before


def test_connections_without_a_request_give_way(server):
    idle = []
    for i in range(300):
        idle.append(socket.create_connection((server.host, server.port), timeout=600))
        idle[-1].sendall(b"GET / HTTP/1.1\r\n"[: i % 16])
        if i % 50 == 0:
            assert server.ask("GET", "/")[0] == 200
    try:
        for connection in idle[:100]:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""  # it was closed
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\r\n" * 1000,
        b"\0" * 5000,
        b"\xff\xfe\xfd" * 1000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : {host}\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: {host}\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
        b"POST /api/clear HTTP/1.1\r\nHost: {host}\r\nContent-Length: 50\r\n\r\nGET /",
        b"BREW / HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ],
)
def test_garbage_is_refused(server, garbage):
    host = f"{server.host}:{server.port}".encode()
    answer = server.raw(garbage.replace(b"{host}", host), end=True)
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert b"Traceback" not in answer


def hostile_bodies():
    values = [
        *(None, True, -1, 0, 10**30, 1.5, 1e308, "", "x", "\ud800", "\0", "a" * 10_000, [], {}),
        *([[]], [None], [-1], [10**30], [0.5], ["0"], [True], list(range(-5, 5)), {"a": {}}),
    ]
    names = ["shape", "rows", "columns", "letters", "invert", "features", "quality", "mask_file"]
    names += ["mask", "item", "cell", "items", "format", "__class__", "\ud800"]
    bodies = [json.dumps({name: value}) for name in names for value in values]
    bodies += [json.dumps(value) for value in values]
    full = {"item": 0, "cell": 0, "rows": 3, "columns": 3}
    bodies += [json.dumps({**full, name: value}) for name in full for value in values]
    bodies += ["", "{", "NaN", "Infinity", "[" * 100_000, '{"a":' * 50_000, "9" * 100_000]
    bodies += ['{"rows": NaN}', '{"rows": 1e999}', "\ufeff{}", "\0", '{"items": [1e400]}']
    return [each.encode("utf-8", "surrogatepass") for each in bodies] + [b"\xff\xfe", b"{\x80}"]


@pytest.mark.parametrize(
    "name", [name for name in CHANGES if not name.endswith(("clear", "export"))]
)
def test_bodies_that_make_no_sense_change_nothing_for_the_worse(server, name):
    headers = {"Cookie": server.cookie, "Content-Type": "application/json"}
    with closing(server.connect()) as connection:
        for body in hostile_bodies():
            if name.endswith(("arrange", "again", "undo", "redo")) and len(body) < 1000:
                continue  # which they do not read
            connection.request("POST", f"/api/{name}", body, headers)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status in (200, 400, 404, 409, 413, 429), (body[:80], content)
            assert b"Traceback" not in content
            if answer.status != 200:
                error = json.loads(content)["error"]
                assert error["message"].strip().endswith((".", "?", "!")), error
    state = server.settle()
    json.dumps(state, allow_nan=False)
    assert server.get("/api/wall")["rows"] == state["wall"]["rows"]
    server.post("/api/settings", shape="rectangle", rows=None, columns=None, features=["color"])
    server.settle()


def test_masks_and_letters_of_any_kind_are_words_at_worst(server):
    texts = [
        "W" * 200,
        "\n" * 200,
        " ",
        "\u202e\u200b",
        "💥" * 50,
        "a\u0300" * 100,
        "\ud800",
        "\0",
    ]
    for text in texts:
        status, _, content = server.ask(
            "POST", "/api/settings", {"shape": "letters", "letters": text}
        )
        assert status in (200, 400), (text, content)
        server.settle()
    server.post("/api/settings", shape="rectangle")
    assert server.settle()["wall"]["nPlaced"] >= 9


# ---- kills


def test_a_killed_server_comes_back_with_everything(server, place, tmp_path):
    """Killed right after an upload was confirmed, then in the midst of work and of an upload."""
    home, state_file = tmp_path / "home", tmp_path / "wall.json"
    home.mkdir()
    pictures = state_file.with_suffix(".pictures")
    start = partial(Hostile, folder_of(place), "--port", "0", "--state", state_file, home=home)
    servers = [start().open()]
    try:
        first = servers[-1]
        for i in range(3):
            path = f"/api/uploads?name=dropped-{i}.png"
            assert first.ask("PUT", path, picture((i, 90, 160)))[0] == 201
        names = first.names()
        first.stop(signal.SIGKILL)

        servers.append(second := start().open())
        assert second.names() == names
        state = second.settle()
        assert state["notice"] is None
        n_placed = state["wall"]["nPlaced"]
        assert n_placed == state["pictures"]["nReady"] >= 12
        wall = {"rows": state["wall"]["rows"], "columns": state["wall"]["columns"]}
        second.post("/api/move", item=3, cell=0, **wall)
        second.post("/api/arrange")
        second.post("/api/freeze", items=[5])
        with socket.create_connection((second.host, second.port)) as upload:
            half = second.request("PUT", "/api/uploads?name=half.png", "Content-Length: 90000")
            upload.sendall(half + bytes(50_000))
            while not list(pictures.glob("*.part")):
                second.state()
            second.stop(signal.SIGKILL)
        json.loads(state_file.read_bytes())

        servers.append(third := start().open())
        assert third.names() == names
        state = third.settle()
        assert state["notice"] is None
        assert state["undo"] == "freezing 5.png"
        assert state["wall"]["nPlaced"] == n_placed
        assert third.get("/api/wall")["frozen"] == [3, 5]
        assert third.grid().ravel()[0] == 3
        for slot in range(len(names) - 3, len(names)):
            assert third.ask("GET", f"/api/picture/{slot}?side=1600")[0] == 200
        assert not list(pictures.glob("*.part"))
        assert third.stop() == 0
    finally:
        for each in servers:
            if not each.log.closed:
                each.stop(signal.SIGKILL)


@pytest.fixture
def open_session(tmp_path):
    """Opens sessions one after the other that keep their wall in one file."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(9):
        (folder / f"{i}.png").write_bytes(picture((20, 150 + 10 * i, 90)))
    return lambda: Session(folder, StateFile(tmp_path / "wall.json"), tmp_path / "cache")


def make_wall(open_session):
    session = open_session()
    session.open()
    assert session.jobs.wait(timeout=600)
    session.move(7, 0, 3, 3)
    assert session.jobs.wait(timeout=600)
    session.close()
    return session.wall()


def test_a_server_that_stops_while_it_reads_keeps_its_wall(open_session, monkeypatch):
    before = make_wall(open_session)
    session = open_session()
    read, begun = session.album.read, threading.Event()

    def read_some(slots, step):
        read(slots[:4], step)
        begun.set()
        while True:
            step()  # until it is canceled

    monkeypatch.setattr(session.album, "read", read_some)
    session.open()
    assert begun.wait(60)
    session.close()
    again = open_session()
    again.open()
    assert again.jobs.wait(timeout=600)
    after = again.wall()
    again.close()
    assert {**after, "version": 0} == {**before, "version": 0}


def test_a_server_that_does_not_start_leaves_the_wall_as_it_was(open_session, monkeypatch):
    make_wall(open_session)
    session = open_session()
    path = session._file.path
    before = path.read_bytes()
    monkeypatch.setattr("unshuffle.web._work.album.MOST_PICTURES", 3)
    with pytest.raises(ValueError, match="at most 3"):
        session.open()
    session.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b'{"name": "package"}', b"[1]", b"text", b"\0" * 50 + b"x"])
def test_a_file_of_another_program_is_not_taken_for_a_wall(tmp_path, content):
    path = tmp_path / "package.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a wall of unshuffle serve"):
        StateFile(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b'{"unshuffle wall": \xff\xfe\x00',
        lambda data: b'{"unshuffle wall": 1, "names": ' + b"[" * 100_000,
        lambda data: b'{"unshuffle wall": ' + b"9" * 10_000,
        lambda data: json.dumps(data).encode()[:-30],
        lambda data: change(data, grid="AAAA"),
        lambda data: change(data, grid="not base64!"),
        lambda data: change(data, grid=packed(np.zeros((3, 3)))),
        lambda data: change(data, grid=packed(np.full((3, 3), -9))),
        lambda data: change(data, grid=base64.b64encode(zlib.compress(bytes(10**7))).decode()),
        lambda data: change(data, shape=[10**9, 10**9]),
        lambda data: change(data, shape=[-3, -3]),
        lambda data: change(data, seed=float("inf")),
        lambda data: change(data, score=float("nan")),
        lambda data: change(data, score="x"),
        lambda data: change(data, frozen=[[0]]),
        lambda data: setting(data, mask_file="../../outside/secret.png", shape="mask"),
        lambda data: setting(data, mask_file="/etc/passwd"),
        lambda data: setting(data, shape="cube"),
        lambda data: setting(data, rows=-4),
        lambda data: setting(data, rows="4"),
        lambda data: setting(data, letters=7),
        lambda data: setting(data, letters="x" * 10**6),
        lambda data: setting(data, features=["everything"]),
        lambda data: setting(data, features=[]),
        lambda data: setting(data, quality=None),
        lambda data: setting(data, invert="no"),
        lambda data: setting(data, more=1),
        lambda data: {**data, "dropped": [{"file": "../x.png", "name": "x"}]},
        lambda data: {**data, "dropped": [{"file": "/etc/passwd", "name": "x"}]},
        lambda data: {**data, "dropped": [{"file": "a" * 40 + ".png\n", "name": "x"}]},
        lambda data: {**data, "position": 5},
        lambda data: {**data, "position": float("inf")},
        lambda data: {**data, "steps": []},
        lambda data: {**data, "names": 3},
    ],
)
def test_a_damaged_state_file_is_put_aside(tmp_path, damage):
    path = tmp_path / "wall.json"
    path.write_text(json.dumps(WALL))
    file = StateFile(path)
    try:
        found = file.load()
        assert found is not None
        assert found.steps[0].frozen == {1}
        damaged = damage(WALL)
        content = damaged if isinstance(damaged, bytes) else json.dumps(damaged).encode()
        path.write_bytes(content)
        assert file.load() is None
        assert "could not be read" in file.problem
        assert path.with_suffix(".damaged-1").read_bytes() == content
        assert not path.exists()
    finally:
        file.close()


def test_what_makes_no_sense_in_a_state_file_is_dropped(tmp_path):
    path = tmp_path / "wall.json"
    path.write_text(json.dumps(change(WALL, frozen=[1, 99], out=[0, 50], seed=-(2**70))))
    file = StateFile(path)
    step = file.load().steps[0]
    file.close()
    assert (step.frozen, step.out) == ({1}, {50})
    assert 0 <= step.seed < 2**32


def packed(grid):
    return base64.b64encode(zlib.compress(grid.astype("<i4").tobytes())).decode()


def change(data, **changes):
    return {**data, "steps": [{**data["steps"][0], **changes}]}


def setting(data, **changes):
    return change(data, settings={**data["steps"][0]["settings"], **changes})


WALL = {
    "unshuffle wall": 1,
    "position": 0,
    "dropped": [],
    "names": [f"{i}.png" for i in range(9)],
    "steps": [
        {
            "label": "",
            "settings": {
                "shape": "rectangle",
                "rows": None,
                "columns": None,
                "letters": "",
                "mask": "",
                "mask_file": "",
                "invert": False,
                "features": ["color"],
                "quality": "balanced",
            },
            "shape": [3, 3],
            "grid": packed(np.arange(9)),
            "frozen": [1],
            "out": [],
            "seed": 0,
            "score": 0.5,
            "settled": True,
            "raw": False,
        }
    ],
}
