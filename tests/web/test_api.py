"""The server as its OpenAPI description has it, for programs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.web.conftest import Server, write_photos
from tests.web.test_pairing import write_tables

from unshuffle.matching import Matches

DOCS = Path(__file__).parents[2] / "docs" / "api.md"
pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with something in every view."""
    place = tmp_path_factory.mktemp("api")
    photos = write_photos(place / "photos", 12)
    (place / "home").mkdir()
    server = Server(photos, "--port", "0", home=place / "home").open()
    for side, table in enumerate(write_tables(place)):
        path = f"/api/match/uploads?side={side}&name={table.name}"
        assert server.ask("PUT", path, table.read_bytes())[0] == 201
    server.settle()
    try:
        yield server
        assert server.process.poll() is None
        assert "Traceback" not in server.said(), server.said()
    finally:
        server.stop()


def by_token(server, token, method, path, body=None):
    """Ask as a program does: with the token, and without a cookie."""
    server.cookie, cookie = "", server.cookie
    try:
        headers = {"Authorization": f"Bearer {token}"}
        return server.ask(method, path, body, headers)
    finally:
        server.cookie = cookie


def test_programs_send_the_token(server):
    status, headers, content = by_token(server, server.token, "GET", "/api/state")
    assert status == 200
    assert json.loads(content)["title"] == "photos"
    assert "Set-Cookie" not in headers
    assert by_token(server, server.token, "POST", "/api/match/again", {})[0] == 200
    for wrong in ("", "x", server.token[:-1], server.token + "x"):
        assert by_token(server, wrong, "GET", "/api/state")[0] == 401


def test_every_address_is_described(server):
    description = server.get("/api/openapi.json")
    assert description["openapi"].startswith("3.1")
    assert description["security"] == [{"token": []}]
    assert {"/api/state", "/api/match/answer", "/api/collage/state"} <= set(description["paths"])
    ids = [each["operationId"] for some in description["paths"].values() for each in some.values()]
    assert len(set(ids)) == len(ids)
    assert all(each["summary"] for some in description["paths"].values() for each in some.values())


@pytest.mark.skipif(not DOCS.exists(), reason="a source archive has no docs")
def test_the_client_in_the_docs_works(serve, tmp_path, monkeypatch, capsys):
    server = serve()
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    scope = {"address": server.address}
    exec("\n".join(blocks), scope)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("About ")
    assert said[1].startswith("Is a-")
    assert said[-1].startswith("3 answered, ")
    matches = Matches.load("pairs.csv")
    assert len(matches.pairs) == 30
    with pytest.raises(RuntimeError, match="no such item"):
        scope["client"].post("/api/match/answer", pairs=[[0, 99]])


@pytest.mark.slow
def test_generated_requests_are_answered_as_described(server, tmp_path):
    pytest.importorskip("schemathesis", reason="it generates the requests")
    description = server.get("/api/openapi.json")
    # Streams never end, and clearing all pictures would leave little to ask for.
    for path in [path for path in description["paths"] if path.endswith(("/events", "/clear"))]:
        del description["paths"][path]
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(description))
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(file)),
        *("--url", f"http://{server.host}:{server.port}"),
        *("--header", f"Authorization: Bearer {server.token}"),
        *("--checks", "not_a_server_error,status_code_conformance,content_type_conformance"),
        *("--checks", "response_schema_conformance"),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "1"),
        *("--request-timeout", "30", "--generation-database", "none", "--no-color"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"(\d{3,}) generated, \1 passed", done.stdout), done.stdout
