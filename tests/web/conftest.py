"""A real server in a process of its own, and a client that knows its token."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("starlette", reason="the page needs unshuffle[web]")
pytest.importorskip("uvicorn", reason="the page needs unshuffle[web]")


class Server:
    """`unshuffle serve` as a user starts it."""

    def __init__(self, *arguments, home, browser=False):
        self.home = Path(home)
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "OMP_NUM_THREADS": "1",
        }
        self.log = open(self.home / "server.log", "ab+")  # noqa: SIM115
        quiet = [] if browser else ["--no-browser"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unshuffle", "serve", *quiet, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
        )
        self.address = self.process.stdout.readline().decode().strip()
        if not self.address:
            self.process.wait()
            raise AssertionError(f"the server did not start: {self.said()}")
        parts = urlsplit(self.address)
        self.host, self.port = parts.hostname, parts.port
        self.token = parts.query.partition("=")[2]
        self.cookie = ""

    def said(self):
        self.log.seek(0)
        return self.log.read().decode()

    def connect(self, timeout=600):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=(), *, timeout=600):
        """Status, headers and content of an answer, as the page would ask."""
        connection = self.connect(timeout)
        given = {"Cookie": self.cookie} if self.cookie else {}
        if method == "POST":
            given["Content-Type"] = "application/json"
            body = json.dumps({} if body is None else body)
        try:
            connection.request(method, path, body, {**given, **dict(headers)})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def open(self):
        """Open the page as the browser does, which takes the cookie."""
        status, headers, _ = self.ask("GET", f"/?token={self.token}")
        assert status == 200
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        return self

    def get(self, path):
        status, _, content = self.ask("GET", path)
        assert status == 200, content
        return json.loads(content)

    def post(self, path, **body):
        status, _, content = self.ask("POST", path, body)
        assert status == 200, content
        return json.loads(content)

    def state(self):
        return self.get("/api/state")

    def grid(self):
        """Slots on the wall."""
        import base64

        wall = self.get("/api/wall")
        cells = np.frombuffer(base64.b64decode(wall["cells"]), "<i4")
        return cells.reshape(wall["rows"], wall["columns"])

    def settle(self, timeout=600):
        """Wait until nothing is under way."""
        end = time.monotonic() + timeout
        while (state := self.state())["jobs"]:
            assert time.monotonic() < end, state["jobs"]
            time.sleep(0.05)
        return state

    def stop(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(30)
        self.process.stdout.close()
        self.log.close()
        return code


@pytest.fixture
def serve(tmp_path):
    """Starts servers, which end with the test."""
    servers = []
    home = tmp_path / "home"
    home.mkdir()

    def start(*arguments, port=0):
        server = Server(*arguments, "--port", str(port), home=home)
        servers.append(server)
        return server.open()

    yield start
    for server in servers:
        if not server.log.closed:
            server.stop(signal.SIGKILL)


def write_photos(folder, n, *, seed=0):
    """Small pictures with smooth random colors, whose look-alikes can be told."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for i in range(n):
        coarse = rng.integers(0, 256, (3, 3, 3), dtype=np.uint8)
        size = (60 + i % 7, 48)
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(folder / f"{i:03}.jpg")
    return folder


@pytest.fixture
def photos(tmp_path):
    """A folder of 30 pictures."""
    return write_photos(tmp_path / "photos", 30)
