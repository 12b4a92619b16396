"""The guard of the local page: who may ask, and how much they may send.

Every program and every website that the user opens can send requests to a server on this machine.
The guard stands before the app and turns away what does not come from the page itself:

- *Another name for this machine* (DNS rebinding, 0.0.0.0): `Host` must be one of a few names.
- *Another website, or another server on this machine*: `Origin` and `Sec-Fetch-Site`, where the
  browser sends them, must be those of the page. A cookie alone would not do: browsers count all
  ports of one host as one site and send its cookies to each. Posts must be JSON, which a form
  cannot send, preflight requests are refused, and so are WebSockets.
- *Another user of this machine*: the page opens with a random token, everything else needs a
  cookie with a second secret. Programs send the token in the header `Authorization` instead, which
  no other website can do without a preflight request. The page with the token is answered as it
  is, without the usual redirect to an address without token: browsers do not send a
  `SameSite=Strict` cookie after a redirect that began with a link on another site (a terminal or a
  mail in the browser, say), and the page would stay closed. The cookie's name has the port in it,
  because servers on other ports write to the same jar; of several cookies with that name one must
  be right.
- *Large and slow bodies*: see `Guard`.

What a cookie cannot do: browsers send it to all servers on this machine that the user opens under
the same host name, so a hostile one learns it. Browsers offer no cookie that is bound to a port.
"""

import asyncio
import hmac
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

# Addresses that a person opens.
PAGES = ("/", "/match", "/collage")
_METHODS = ("DELETE", "GET", "POST", "PUT")
_SLOWEST = 2**14  # bytes per second, on average over a body

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",  # the address may hold the token
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
_CLOSED = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>This page is closed</title>
<h1>This page is closed</h1>
<p>{message}</p>
</html>
"""
_PRINTED = "Open the address that unshuffle serve printed in the terminal, with its token."

_logger = logging.getLogger("unshuffle.web")


def new_token() -> str:
    """Random token for the address of the page, 43 letters that need no escapes in it."""
    return secrets.token_urlsafe(32)


class Guard:
    """ASGI app that lets only the page itself reach another one.

    Refused requests never reach the app. They are answered in words, as JSON `{"error":
    {"message": ..., "field": ...}}` or, for the page, as a small page. Errors of the app are
    logged; the client sees that there was one.

    Parameters
    ----------
    app : callable
        The ASGI app to protect. It receives HTTP requests that passed, and lifespan events.

    token : str
        Opens a page as `GET /?token=...`, and all else as a bearer token. See `new_token`.

    hosts : collection of str
        What `Host` may be, such as "127.0.0.1:8765" and "localhost:8765"; all with one port.

    json_limit : int, default=1 MiB
        Bytes of the body of a POST. A longer one is refused, by its `Content-Length` before a
        byte is read, otherwise as soon as it is too long.

    upload_limit : int, default=64 MiB
        The same for PUT. GET and DELETE must not have a body.

    patience : float, default=30
        Seconds to wait for the next piece of a body and until the client takes a piece of the
        answer. Larger values tolerate slower clients. A body must also come at 16 KiB per second
        on average, so that a client that sends byte by byte does not stay for hours.

    Attributes
    ----------
    cookie : str
        Name of the cookie, "unshuffle-" and the port.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str,
        hosts: Collection[str],
        json_limit: int = 2**20,
        upload_limit: int = 2**26,
        patience: float = 30.0,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", token):
            raise ValueError("token must consist of letters, digits, - and _; use new_token().")
        ports = {_port(host) for host in hosts}
        if len(ports) != 1:
            raise ValueError(f"hosts must name one port; got {sorted(hosts)}.")
        self.cookie = f"unshuffle-{ports.pop()}"
        self._app = app
        self._token = token.encode()
        self._tickets: set[bytes] = set()
        self._secret = secrets.token_urlsafe(32).encode()
        self._hosts = frozenset(host.lower().encode() for host in hosts)
        self._limits = {"POST": json_limit, "PUT": upload_limit}
        self._patience = patience

    def new_ticket(self) -> str:
        """A token that opens the page once.

        It is for the browser that this program starts: other users of the machine see the
        arguments of programs, often as long as the browser runs.
        """
        ticket = new_token()
        self._tickets.add(ticket.encode())
        return ticket

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or let the app answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        exchange = _Exchange(scope, receive, send, patience=self._patience)
        try:
            _check_sender(scope, self._hosts)
            if self._check_secret(scope):
                exchange.set_cookie = b"%s=%s; Path=/; HttpOnly; SameSite=Strict" % (
                    self.cookie.encode(),
                    self._secret,
                )
            exchange.limit = self._limits.get(scope["method"], 0)
            exchange.has_body = _check_body(scope, exchange.limit)
        except _RefusedError as refused:
            exchange.refused = refused
        else:
            await self._ask(scope, exchange)
        if exchange.refused is not None and not (exchange.started or exchange.gone):
            await exchange.refuse(exchange.refused)

    async def _ask(self, scope: Message, exchange: "_Exchange") -> None:
        """Run the app; whatever it raises, the client learns only that it failed."""
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception:
            if exchange.refused is not None:
                return
            # A disconnected client is not an error; do not log it.
            level = logging.DEBUG if exchange.gone and not exchange.finished else logging.ERROR
            _logger.log(level, "%s %r failed", scope["method"], scope["path"], exc_info=True)
            exchange.refused = _RefusedError(
                500, "Something went wrong. The terminal of unshuffle serve has the details."
            )

    def _check_secret(self, scope: Message) -> bool:
        """Whether the token opened the page; raises if there is no right cookie either."""
        if _is_page(scope):
            given = [each for each in scope["query_string"].split(b"&") if each[:6] == b"token="]
            if len(given) == 1 and self._is_token(given[0][6:]):
                return True
        scheme, _, given_token = (_header(scope, b"authorization") or b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given_token.strip(), self._token):
            return False
        cookies = b";".join(value for name, value in scope["headers"] if name == b"cookie")
        for cookie in cookies.split(b";"):
            name, _, value = cookie.strip().partition(b"=")
            if name == self.cookie.encode() and hmac.compare_digest(value, self._secret):
                return False
        raise _RefusedError(401, _PRINTED)

    def _is_token(self, given: bytes) -> bool:
        if hmac.compare_digest(given, self._token):
            return True
        used = {each for each in self._tickets if hmac.compare_digest(given, each)}
        self._tickets -= used
        return bool(used)


class _RefusedError(Exception):
    """A request is not answered by the app."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field


class _Exchange:
    """One request and its answer, between the server and the app."""

    def __init__(self, scope: Message, receive: Receive, send: Send, *, patience: float) -> None:
        self._scope, self._receive, self._send, self._patience = scope, receive, send, patience
        self.limit = 0
        self.has_body = True
        self.set_cookie: bytes | None = None
        self.refused: _RefusedError | None = None
        self.started = False  # the answer
        self.finished = False
        self.gone = False  # the client
        self._more = True  # of the body
        self._n_received = 0
        self._waited = 0.0

    async def receive(self) -> Message:
        """Next piece of the body; raises if it is too much or takes too long."""
        if self.refused is not None:
            raise self.refused
        if not self._more:  # nothing comes any more but the end of the connection
            message = await self._receive()
        else:
            message = await self._receive_in_time()
            self._n_received += len(message.get("body", b""))
            self._more = message.get("more_body", False)
        self.gone = message["type"] == "http.disconnect"
        if self._n_received > self.limit:
            self.refused = _too_long(self._scope["method"], self.limit)
            raise self.refused
        return message

    async def _receive_in_time(self) -> Message:
        spare = self._patience + self._n_received / _SLOWEST - self._waited
        clock = asyncio.get_running_loop().time
        begin = clock()
        try:
            async with asyncio.timeout(max(min(self._patience, spare), 0.0)):
                return await self._receive()
        except TimeoutError:
            self.refused = _RefusedError(408, "The request arrived too slowly. Try it again.")
            raise self.refused from None
        finally:
            self._waited += clock() - begin

    async def send(self, message: Message) -> None:
        """Pass on a piece of the answer, the first with the headers of all answers."""
        if self.refused is not None and not self.started:
            return  # what the app says to a body that it could not read
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": self._headers(message.get("headers", []))}
        elif not message.get("more_body", False):
            self.finished = not self.gone  # some apps answer a client that left
        try:
            async with asyncio.timeout(self._patience):
                await self._send(message)
        except TimeoutError:
            self.gone = True
            raise OSError("The client does not take its answer.") from None

    def _headers(self, given: Collection[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        kept = [(name, value) for name, value in given if name.lower() not in _HEADERS]
        names = {name.lower() for name, _ in kept}
        if b"cache-control" not in names:
            kept.append((b"cache-control", b"no-store"))
        if self.set_cookie is not None:
            kept.append((b"set-cookie", self.set_cookie))
        if self.has_body and self._more and b"connection" not in names:
            kept.append((b"connection", b"close"))  # the rest of the body is not awaited
        return kept + list(_HEADERS.items())

    async def refuse(self, refused: _RefusedError) -> None:
        """Answer in place of the app."""
        error = {"message": refused.message, "field": refused.field}
        body, kind = json.dumps({"error": error}).encode(), b"application/json"
        if _is_page(self._scope):
            body, kind = _CLOSED.format(message=refused.message).encode(), b"text/html"
        headers = [
            (b"content-type", kind + b"; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        if refused.status == 405:
            headers.append((b"allow", ", ".join(_METHODS).encode()))
        self.refused, self.set_cookie = None, None
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        try:
            await self.send(start)
            await self.send({"type": "http.response.body", "body": body})
        except OSError:
            self.gone = True


def _check_sender(scope: Message, hosts: Collection[bytes]) -> None:
    """Refuse what another name of this machine, website or server led to."""
    host = _header(scope, b"host")
    if host is None or host.lower() not in hosts:
        raise _RefusedError(403, f"This is not an address of unshuffle serve. {_PRINTED}")
    origin = _header(scope, b"origin")
    if origin is not None and origin.lower() != b"http://" + host.lower():
        raise _RefusedError(403, "Another website sent this request.")
    # A link may lead to the page: that takes the user there and tells the linking page nothing.
    linked = (
        _is_page(scope)
        and _header(scope, b"sec-fetch-mode") == b"navigate"
        and _header(scope, b"sec-fetch-dest") == b"document"
    )
    allowed = [None, b"same-origin"]
    if scope["method"] == "GET":
        allowed.append(b"none")  # the address bar, a bookmark, a download that is resumed
    if not linked and _header(scope, b"sec-fetch-site") not in allowed:
        raise _RefusedError(403, "Another website sent this request.")
    if scope["method"] not in _METHODS:
        raise _RefusedError(405, f"Requests must be one of {', '.join(_METHODS)}.")
    if not scope["path"].startswith("/"):
        raise _RefusedError(400, "The address of a request must begin with /.")


def _check_body(scope: Message, limit: int) -> bool:
    """Whether a body follows; refuse one that may not come before any of it is read."""
    method, declared = scope["method"], _header(scope, b"content-length")
    chunked = _header(scope, b"transfer-encoding") is not None
    if declared is not None and (chunked or not re.fullmatch(rb"[0-9]{1,18}", declared)):
        raise _RefusedError(400, "The length of the request is not clear.")
    length = int(declared or 0)
    if method in ("GET", "DELETE") and (length or chunked):
        raise _RefusedError(400, f"A {method} request must not have a body.")
    if method == "POST":
        # Even without a body: a form and a script of another website may post, but not as JSON.
        kind = (_header(scope, b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise _RefusedError(415, "Posts must have the content type application/json.")
    if length > limit:
        raise _too_long(method, limit)
    return bool(length or chunked)


def _too_long(method: str, limit: int) -> _RefusedError:
    size = f"{limit / 2**20:.3g} MiB"
    if method == "PUT":
        return _RefusedError(
            413, f"The file is larger than {size}. Choose a smaller one.", "upload"
        )
    return _RefusedError(413, f"The request is larger than {size}.")


def _header(scope: Message, name: bytes) -> bytes | None:
    """Value of a header, None without it; two of them are refused, one may be a forgery."""
    values: list[bytes] = [value for each, value in scope["headers"] if each == name]
    if len(values) > 1:
        raise _RefusedError(400, f"The request has {len(values)} headers {name.decode()}.")
    return values[0] if values else None


def _is_page(scope: Message) -> bool:
    return bool(scope["method"] == "GET" and scope["path"] in PAGES)


def _port(host: str) -> str:
    found = re.search(r":([0-9]+)$", host)
    return found[1] if found else "80"  # which browsers leave out
