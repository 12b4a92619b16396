"""The guard alone, between a harness that plays the server and small apps."""

import asyncio
import json
import logging

import pytest

from unshuffle.web._http.app import make_app
from unshuffle.web._http.security import Guard, new_token

TOKEN = "uWb3kQ9rX0aLmZ_7-TfYcEoNsHdVgJpR2i5v8x1z4B6"
HOST = "127.0.0.1:8765"
HOSTS = {HOST, "localhost:8765", "[::1]:8765"}
JSON = ("content-type", "application/json")


class Server:
    """Plays the server: hands over a request and keeps what comes back.

    A body is a list of pieces; a piece may also be "gone" (the client left) or "silent" (the
    client stays and sends nothing).
    """

    def __init__(self, app=None, **options):
        self.seen = []  # requests that reached the app, and their bodies
        self.guard = Guard(app or self.echo, token=TOKEN, hosts=HOSTS, **options)

    async def echo(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.seen.append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"from the app"})

    def ask(self, method="GET", path="/", *, query=b"", headers=(), host=HOST, body=(b"",)):
        pieces = list(body)
        sent = []

        async def receive():
            piece = pieces.pop(0) if pieces else "silent"
            if piece == "silent":
                await asyncio.Event().wait()
            if piece == "gone":
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in ([("host", host)] if host else []) + list(headers)
            ],
        }
        asyncio.run(self.guard(scope, receive, send))
        return Answer(sent)

    def sign_in(self):
        answer = self.ask(query=f"token={TOKEN}".encode())
        return ("cookie", answer.headers["set-cookie"].partition(";")[0])


class Answer:
    def __init__(self, sent):
        self.messages = sent
        self.status = sent[0]["status"] if sent else None
        self.headers = (
            {name.decode(): value.decode() for name, value in sent[0]["headers"]} if sent else {}
        )
        self.body = b"".join(message.get("body", b"") for message in sent[1:])

    @property
    def error(self):
        error = json.loads(self.body)["error"]
        assert set(error) == {"message", "field"}
        assert error["message"].endswith(".")
        return error


@pytest.fixture
def harness():
    return Server()


@pytest.fixture
def cookie(harness):
    return harness.sign_in()


def refused(harness, answer, status):
    assert answer.status == status
    assert b"from the app" not in answer.body
    assert answer.headers["connection"] == "close"
    return not harness.seen


def test_the_token_opens_the_page_and_becomes_a_cookie(harness):
    answer = harness.ask(query=f"token={TOKEN}".encode())
    assert answer.status == 200
    assert answer.body == b"from the app"
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    name, _, secret = cookie.partition("=")
    assert name == "unshuffle-8765"
    assert len(secret) > 40
    assert TOKEN not in secret
    again = harness.ask(headers=[("cookie", cookie)])
    assert again.status == 200
    assert "set-cookie" not in again.headers


def test_tokens_and_secrets_are_new_each_time():
    assert len({new_token() for _ in range(20)}) == 20
    assert len({Server().sign_in()[1] for _ in range(20)}) == 20


def test_a_ticket_opens_the_page_once(harness):
    tickets = [harness.guard.new_ticket() for _ in range(2)]
    assert len({*tickets, TOKEN}) == 3
    for ticket in tickets:
        query = f"token={ticket}".encode()
        first = harness.ask(query=query)
        assert first.status == 200
        cookie = ("cookie", first.headers["set-cookie"].partition(";")[0])
        assert harness.ask(query=query).status == 401
        assert harness.ask(query=query, headers=[cookie]).status == 200  # a page that is reloaded
    assert harness.ask(query=f"token={TOKEN}".encode()).status == 200


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"token",
        b"token=",
        b"token=" + TOKEN.encode()[:-1],
        b"token=" + TOKEN.encode() + b"x",
        b"token=" + TOKEN.lower().swapcase().encode(),
        b"Token=" + TOKEN.encode(),
        b"token=a&token=" + TOKEN.encode(),
        b"token[]=" + TOKEN.encode(),
        b"token=\xff\xfe\x00",
        b"token=%ff%00%c3%28",
        b"token=" + b"9" * 60_000,
        b"&" * 60_000,
    ],
)
def test_without_the_right_token_the_page_stays_closed(harness, query):
    answer = harness.ask(query=query)
    assert refused(harness, answer, 401)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b"Open the address that unshuffle serve printed" in answer.body
    assert TOKEN.encode() not in answer.body
    assert "set-cookie" not in answer.headers


def test_the_token_opens_nothing_but_the_page(harness):
    for method, path in [
        ("GET", "/api/state"),
        ("POST", "/"),
        ("GET", "//"),
        ("GET", "/assets/a"),
    ]:
        answer = harness.ask(method, path, query=f"token={TOKEN}".encode(), headers=[JSON])
        assert refused(harness, answer, 401)
        assert answer.error["field"] is None


@pytest.mark.parametrize(
    "path", ["/api/state", "/api/picture/0", "/assets/web/page/main.js", "/x"]
)
def test_everything_else_needs_the_cookie(harness, cookie, path):
    name, _, secret = cookie[1].partition("=")
    wrong = [
        [],
        [("cookie", f"{name}={TOKEN}")],
        [("cookie", f"{name}={secret[:-1]}")],
        [("cookie", f"{name}={secret}x")],
        [("cookie", f"unshuffle-8766={secret}")],
        [("cookie", f"x={secret}; {name}")],
        [("cookie", f"{name}=\xff\xfe")],
        [("cookie", ";" * 60_000)],
    ]
    harness.seen.clear()
    for headers in wrong:
        answer = harness.ask(path=path, headers=headers)
        assert refused(harness, answer, 401)
        assert "terminal" in answer.error["message"]
    assert harness.ask(path=path, headers=[cookie]).status == 200


def test_cookies_that_other_ports_planted_do_no_harm(harness, cookie):
    name, _, secret = cookie[1].partition("=")
    planted = [
        [("cookie", f"{name}=planted; a=b; {name}={secret}")],
        [("cookie", f"{name}={secret};{name}=planted")],
        [("cookie", f"{name}=planted"), ("cookie", f"{name}={secret}")],
    ]
    for headers in planted:
        assert harness.ask(path="/api/state", headers=headers).status == 200


def test_a_secret_opens_only_the_server_that_gave_it(harness):
    other = Server()
    assert harness.ask(path="/api/state", headers=[other.sign_in()]).status == 401


@pytest.mark.parametrize("host", [*sorted(HOSTS), "LocalHost:8765"])
def test_the_names_of_this_machine_are_known(harness, cookie, host):
    assert harness.ask(host=host, headers=[cookie]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:8766",
        "127.0.0.1:8765.evil.example",
        "evil.example:8765",
        "evil.example",
        "localhost.evil.example:8765",
        "localhost.:8765",
        "0.0.0.0:8765",
        "127.0.0.2:8765",
        "127.1:8765",
        "2130706433:8765",
        "[::]:8765",
        "user@127.0.0.1:8765",
        "127.0.0.1:8765, evil.example",
        "127.0.0.1:8765\xff",
    ],
)
def test_foreign_hosts_are_refused_with_token_and_cookie(harness, cookie, host):
    harness.seen.clear()
    page = harness.ask(host=host, headers=[cookie], query=f"token={TOKEN}".encode())
    assert refused(harness, page, 403)
    assert "set-cookie" not in page.headers
    assert b"unshuffle serve printed" in page.body
    assert refused(harness, harness.ask(path="/api/state", host=host, headers=[cookie]), 403)


@pytest.mark.parametrize("second", [HOST, "evil.example"])
def test_two_hosts_are_refused(harness, cookie, second):
    harness.seen.clear()
    answer = harness.ask(path="/api/state", headers=[cookie, ("host", second)])
    assert refused(harness, answer, 400)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "https://127.0.0.1:8765",
        "http://127.0.0.1:8766",
        "http://127.0.0.1",
        "http://localhost:8765",
        "http://127.0.0.1:8765.evil.example",
        "http://127.0.0.1:8765/",
        "http://127.0.0.1:8765 http://evil.example",
        "\xff",
    ],
)
def test_foreign_origins_are_refused(harness, cookie, origin):
    harness.seen.clear()
    for method in ["GET", "POST", "PUT", "DELETE"]:
        headers = [cookie, JSON, ("origin", origin)]
        assert refused(harness, harness.ask(method, "/api/x", headers=headers), 403)


def test_the_origin_of_the_page_is_accepted(harness, cookie):
    for host in HOSTS:
        headers = [cookie, JSON, ("origin", f"http://{host}"), ("sec-fetch-site", "same-origin")]
        assert harness.ask("POST", "/api/undo", headers=headers, host=host).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin", "\xff"])
def test_other_sites_cannot_ask_even_if_the_browser_sends_the_cookie(harness, cookie, site):
    harness.seen.clear()
    for method, path in [("GET", "/api/picture/0"), ("GET", "/a.js"), ("PUT", "/"), ("GET", "/")]:
        answer = harness.ask(method, path, headers=[cookie, ("sec-fetch-site", site)])
        assert refused(harness, answer, 403)


def test_a_user_may_read_by_the_address_bar_but_nothing_writes_that_way(harness, cookie):
    none = ("sec-fetch-site", "none")
    assert harness.ask(headers=[none], query=f"token={TOKEN}".encode()).status == 200
    assert harness.ask(path="/api/export/x7", headers=[cookie, none]).status == 200
    for method in ["POST", "PUT", "DELETE"]:
        assert harness.ask(method, "/api/x", headers=[cookie, JSON, none]).status == 403


def test_a_link_elsewhere_opens_the_page_with_its_token_and_nothing_more(harness, cookie):
    link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]
    document = ("sec-fetch-dest", "document")
    token = f"token={TOKEN}".encode()
    assert harness.ask(headers=[*link, document], query=token).status == 200
    assert harness.ask(headers=[*link, document]).status == 401
    assert harness.ask(headers=[*link, ("sec-fetch-dest", "iframe")], query=token).status == 403
    assert harness.ask(headers=link, query=token).status == 403
    assert harness.ask(path="/api/state", headers=[*link, document, cookie]).status == 403


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH", "TRACE", "get", "BREW", ""])
def test_other_methods_are_refused(harness, cookie, method):
    harness.seen.clear()
    answer = harness.ask(method, "/api/state", headers=[cookie, ("sec-fetch-site", "same-origin")])
    assert refused(harness, answer, 405)
    assert answer.headers["allow"] == "DELETE, GET, POST, PUT"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_addresses_begin_with_a_slash(harness, cookie):
    harness.seen.clear()
    for path in ["http://evil.example/", "*", "", "evil.example:80"]:
        assert refused(harness, harness.ask(path=path, headers=[cookie]), 400)


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/jsonx",
    ],
)
def test_posts_must_be_json_even_without_a_body(harness, cookie, kind):
    harness.seen.clear()
    headers = [cookie] + [("content-type", kind)] * (kind is not None)
    answer = harness.ask("POST", "/api/clear", headers=headers)
    assert refused(harness, answer, 415)
    assert "application/json" in answer.error["message"]


def test_posts_may_name_a_charset(harness, cookie):
    headers = [cookie, ("content-type", "Application/JSON; charset=utf-8")]
    assert harness.ask("POST", "/api/clear", headers=headers).status == 200


@pytest.mark.parametrize(
    ("method", "sent"),
    [("POST", 10), ("PUT", 100)],
)
def test_bodies_up_to_the_limit_arrive_whole(method, sent):
    harness = Server(json_limit=10, upload_limit=100)
    body = bytes(range(sent))
    headers = [harness.sign_in(), JSON, ("content-length", str(sent))]
    answer = harness.ask(method, "/api/x", headers=headers, body=[body[:4], body[4:], b""])
    assert answer.status == 200
    assert "connection" not in answer.headers
    assert harness.seen[-1] == (method, "/api/x", body)


@pytest.mark.parametrize(("method", "limit"), [("POST", 10), ("PUT", 100)])
def test_long_bodies_are_refused_by_what_they_declare_before_they_are_read(method, limit):
    harness = Server(json_limit=10, upload_limit=100)
    headers = [harness.sign_in(), JSON, ("content-length", str(limit + 1))]
    harness.seen.clear()
    answer = harness.ask(method, "/api/x", headers=headers, body=["silent"])
    assert refused(harness, answer, 413)
    assert "larger than" in answer.error["message"]
    assert answer.error["field"] == ("upload" if method == "PUT" else None)


@pytest.mark.parametrize("framing", [("transfer-encoding", "chunked"), ("content-length", "5")])
@pytest.mark.parametrize(("method", "limit"), [("POST", 10), ("PUT", 100)])
def test_long_bodies_are_refused_while_they_are_read(method, limit, framing):
    harness = Server(json_limit=10, upload_limit=100)
    headers = [harness.sign_in(), JSON, framing]
    harness.seen.clear()
    answer = harness.ask(method, "/api/x", headers=headers, body=[b"x" * limit, b"y", "silent"])
    assert refused(harness, answer, 413)
    assert "larger than" in answer.error["message"]


def test_a_refusal_wins_over_what_the_app_makes_of_it(caplog):
    async def app(scope, receive, send):
        try:
            await receive()
        except Exception:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b"from the app"})
            raise

    harness = Server(app, json_limit=10)
    headers = [("cookie", f"unshuffle-8765={harness.guard._secret.decode()}"), JSON]
    answer = harness.ask("POST", "/api/x", headers=headers, body=[b"x" * 11])
    assert refused(harness, answer, 413)
    assert not caplog.records


@pytest.mark.parametrize(
    "length",
    ["-1", "+1", "1_0", "", "a", "1, 1", "0x1", "9" * 5000, "٣".encode().decode("latin-1")],
)
def test_lengths_that_are_not_clear_are_refused(harness, cookie, length):
    harness.seen.clear()
    answer = harness.ask("PUT", "/api/x", headers=[cookie, ("content-length", length)])
    assert refused(harness, answer, 400)


def test_two_lengths_are_refused(harness, cookie):
    harness.seen.clear()
    two = [("content-length", "1"), ("content-length", "1")]
    both = [("content-length", "1"), ("transfer-encoding", "chunked")]
    for headers in [two, both]:
        assert refused(harness, harness.ask("PUT", "/api/x", headers=[cookie, *headers]), 400)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_reading_and_deleting_have_no_body(harness, cookie, method):
    harness.seen.clear()
    for framing in [("content-length", "3"), ("transfer-encoding", "chunked")]:
        answer = harness.ask(method, "/api/x", headers=[cookie, framing], body=[b"abc"])
        assert refused(harness, answer, 400)
    undeclared = harness.ask(method, "/api/x", headers=[cookie], body=[b"abc"])
    assert refused(harness, undeclared, 413)
    empty = harness.ask(method, "/api/x", headers=[cookie, ("content-length", "0")])
    assert empty.status == 200


@pytest.mark.parametrize("pieces", [["silent"], [b"x", "silent"], [b"x"] * 5 + ["silent"]])
def test_bodies_that_stop_are_refused_in_time(pieces):
    harness = Server(patience=0.02)
    headers = [harness.sign_in(), ("transfer-encoding", "chunked")]
    harness.seen.clear()
    answer = harness.ask("PUT", "/api/uploads", headers=headers, body=pieces)
    assert refused(harness, answer, 408)
    assert "too slowly" in answer.error["message"]


def test_bodies_that_drip_are_refused_in_time():
    n_pieces = 0

    async def drip():
        nonlocal n_pieces
        n_pieces += 1
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    harness = Server(patience=0.1)
    name, value = harness.sign_in()
    headers = [(b"host", HOST.encode()), (name.encode(), value.encode())]
    scope = {"type": "http", "method": "PUT", "path": "/", "query_string": b"", "headers": headers}
    sent = []

    async def send(message):
        sent.append(message)

    harness.seen.clear()
    asyncio.run(harness.guard(scope, drip, send))
    assert refused(harness, Answer(sent), 408)
    assert 1 < n_pieces < 20


def test_waiting_for_the_client_to_leave_has_no_limit():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["more_body"] is False
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 0.1)
        await send({"type": "http.response.body", "body": b"waited"})

    harness = Server(app, patience=0.02)
    assert harness.ask(query=f"token={TOKEN}".encode()).body == b"waited"


def test_an_answer_that_is_not_taken_ends_in_time(caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        raise AssertionError("the client does not take this")

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    harness = Server(app, patience=0.02)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": f"token={TOKEN}".encode(),
        "headers": [(b"host", HOST.encode())],
    }
    asyncio.run(harness.guard(scope, receive, send))
    assert not caplog.records


def test_a_body_that_the_app_leaves_unread_closes_the_connection():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    harness = Server(app)
    headers = [harness.sign_in()]
    assert "connection" not in harness.ask("DELETE", "/x", headers=headers).headers
    headers.append(("transfer-encoding", "chunked"))
    assert harness.ask("PUT", "/x", headers=headers).headers["connection"] == "close"


def test_a_client_that_leaves_is_not_an_error(caplog):
    async def app(scope, receive, send):
        if (await receive())["type"] == "http.disconnect":
            raise ConnectionError

    harness = Server(app)
    headers = [("cookie", f"unshuffle-8765={harness.guard._secret.decode()}")]
    assert harness.ask("PUT", "/api/uploads", headers=headers, body=["gone"]).messages == []
    assert not caplog.records


def test_a_client_that_leaves_is_not_an_error_of_apps_that_answer_it(caplog):
    async def app(scope, receive, send):
        try:
            assert (await receive())["type"] != "http.disconnect"
        finally:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    harness = Server(app)
    headers = [("cookie", f"unshuffle-8765={harness.guard._secret.decode()}")]
    harness.ask("PUT", "/api/uploads", headers=headers, body=["gone"])
    assert not caplog.records


def test_every_answer_has_the_headers(harness, cookie):
    async def fails(scope, receive, send):
        raise ValueError

    logging.getLogger("unshuffle.web").addHandler(logging.NullHandler())
    answers = [
        harness.ask(headers=[cookie]),
        harness.ask(query=f"token={TOKEN}".encode()),
        harness.ask(),
        harness.ask(path="/api/state"),
        harness.ask(host="evil.example"),
        harness.ask("OPTIONS", headers=[cookie]),
        harness.ask("POST", headers=[cookie]),
        Server(fails).ask(query=f"token={TOKEN}".encode()),
    ]
    assert [each.status for each in answers] == [200, 200, 401, 401, 403, 405, 415, 500]
    for answer in answers:
        policy = answer.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert {"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} < set(policy)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        names = [name for name, _ in answer.messages[0]["headers"]]
        assert len(names) == len(set(names))


def test_the_app_may_allow_caching_and_nothing_else():
    async def app(scope, receive, send):
        headers = [
            (b"Cache-Control", b"private, max-age=60"),
            (b"Content-Security-Policy", b"default-src *"),
            (b"etag", b"x"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    headers = Server(app).ask(query=f"token={TOKEN}".encode()).headers
    assert headers["Cache-Control"] == "private, max-age=60"
    assert headers["etag"] == "x"
    assert "cache-control" not in headers
    assert "Content-Security-Policy" not in headers
    assert headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/\x1b[31m\n"])
def test_errors_of_the_app_are_logged_and_not_shown(caplog, path):
    async def app(scope, receive, send):
        raise ValueError("secret detail")

    harness = Server(app)
    headers = [("cookie", f"unshuffle-8765={harness.guard._secret.decode()}")]
    answer = harness.ask(path=path, headers=headers)
    assert refused(harness, answer, 500)
    assert b"Something went wrong." in answer.body
    assert b"secret detail" not in answer.body
    assert b"Traceback" not in answer.body
    assert "secret detail" in caplog.text
    assert "\x1b" not in caplog.text  # which would reach the terminal


def test_errors_of_the_app_are_in_json_and_do_not_say_why(caplog):
    class Broken:
        def __getattr__(self, name):
            return self.fail

        def fail(self, *_):
            raise RuntimeError("a secret")

    harness = Server(make_app(Broken(), Broken(), Broken()))
    headers = [("cookie", f"unshuffle-8765={harness.guard._secret.decode()}")]
    for method, path in [("GET", "/api/state"), ("POST", "/api/undo"), ("GET", "/api/alike/0")]:
        answer = harness.ask(method, path, headers=[*headers, JSON])
        assert answer.status == 500
        assert "terminal" in answer.error["message"]
        assert b"secret" not in answer.body
    assert caplog.text.count("RuntimeError: a secret") == 3


def test_an_error_in_the_middle_of_an_answer_ends_it(caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("secret detail")

    answer = Server(app).ask(query=f"token={TOKEN}".encode())
    assert [message["type"] for message in answer.messages] == [
        "http.response.start",
        "http.response.body",
    ]
    assert answer.messages[-1]["more_body"]  # the harness sees that it is not whole
    assert "secret detail" in caplog.text


def test_an_error_after_the_answer_is_logged(caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"all"})
        await receive()
        raise ValueError("later")

    answer = Server(app).ask(query=f"token={TOKEN}".encode(), body=["gone"])
    assert answer.body == b"all"
    assert "later" in caplog.text


def test_websockets_are_refused(harness):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    name, value = harness.sign_in()
    harness.seen.clear()
    headers = [(b"host", HOST.encode()), (name.encode(), value.encode())]
    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(harness.guard(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert not harness.seen


def test_the_lifespan_reaches_the_app():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(Server(app).guard({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


@pytest.mark.parametrize("token", ["", "two words", "a&b", "é"])
def test_tokens_that_an_address_cannot_hold_are_named(token):
    with pytest.raises(ValueError, match="token must consist of"):
        Guard(None, token=token, hosts=HOSTS)


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1:1", "localhost:2"], ["[::1]", "[::1]:81"]])
def test_hosts_have_one_port(hosts):
    with pytest.raises(ValueError, match="hosts must name one port"):
        Guard(None, token=TOKEN, hosts=hosts)


def test_port_80_is_not_in_host_headers():
    assert Guard(None, token=TOKEN, hosts=["[::1]", "localhost"]).cookie == "unshuffle-80"
