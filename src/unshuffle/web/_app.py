"""The addresses of the page: what each request asks of the session."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from unshuffle.web._album import tidy_name
from unshuffle.web._refusal import Refused
from unshuffle.web._session import Session
from unshuffle.web._thumbnails import SIDES

# Seconds between two states that are sent to a page, and after which it hears that all is well.
BETWEEN_STATES, SIGN_OF_LIFE = 0.12, 10.0
# Pages that listen at the same time.
MOST_LISTENERS = 64
# Pictures that are decoded whole for pages at the same time; each may take 0.5 GB.
MOST_DECODING = 4
_KINDS = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
}


def make_app(session: Session) -> Starlette:
    """ASGI app of a session, to be put behind a guard."""
    pages = Pages(session)
    changes: dict[str, Callable[[Any], object]] = {
        "settings": session.change_settings,
        "arrange": lambda data: session.arrange_again(),
        "move": lambda data: session.move(*_fields(data, "item", "cell", "rows", "columns")),
        "freeze": lambda data: session.freeze(*_fields(data, "items")),
        "unfreeze": lambda data: session.unfreeze(*_fields(data, "items")),
        "leave-out": lambda data: session.leave_out(*_fields(data, "items")),
        "put-back": lambda data: session.put_back(*_fields(data, "items")),
        "undo": lambda data: session.undo(),
        "redo": lambda data: session.redo(),
        "clear": lambda data: session.clear(),
        "export": lambda data: session.export(*_fields(data, "format")).id,
    }
    routes = [Route(f"/api/{name}", pages.changing(call), methods=["POST"])
              for name, call in changes.items()]  # fmt: skip
    routes += [
        Route("/", pages.index),
        Route("/assets/{room}/page/{name}", pages.asset),
        Route("/api/state", pages.answering(session.state)),
        Route("/api/pictures", pages.answering(session.pictures)),
        Route("/api/wall", pages.answering(session.wall)),
        Route("/api/events", pages.events),
        Route("/api/sheet/{side}/{k}", pages.sheet),
        Route("/api/picture/{slot}", pages.picture),
        Route("/api/alike/{slot}", pages.alike),
        Route("/api/uploads", pages.upload, methods=["PUT"]),
        Route("/api/mask", pages.mask, methods=["PUT"]),
        Route("/api/export/{name}", pages.download),
        Route("/api/jobs/{name}", pages.cancel, methods=["DELETE"]),
    ]
    handlers = {Refused: _refuse, 404: _miss, 405: _miss, Exception: _fail}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.pages = pages
    return app


class Pages:
    """Requests of pages, which may be many."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._assets = _load_assets()
        self._stopping = asyncio.Event()
        self._n_listeners = 0
        self._decoding = asyncio.Semaphore(MOST_DECODING)

    def stop(self) -> None:
        """End the streams of events, which would go on for ever."""
        self._stopping.set()

    def answering(self, function: Callable[[], Any]) -> Callable[[Request], Any]:
        """Address that answers with what a function returns."""

        async def answer(request: Request) -> Response:
            return _json(await run_in_threadpool(function))

        return answer

    def changing(self, function: Callable[[Any], object]) -> Callable[[Request], Any]:
        """Address that hands a body in JSON to a function."""

        async def change(request: Request) -> Response:
            try:
                data = json.loads(await request.body() or b"{}")
            except (ValueError, RecursionError):
                raise Refused("The request is not valid JSON.") from None
            found = await run_in_threadpool(function, data)
            answer = {"version": self.session.version}
            return _json(answer if found is None else {**answer, "job": found})

        return change

    async def index(self, request: Request) -> Response:
        """The page."""
        return self._send_asset("web", "index.html")

    async def asset(self, request: Request) -> Response:
        """A module or style, by its exact name."""
        return self._send_asset(request.path_params["room"], request.path_params["name"])

    def _send_asset(self, room: str, name: str) -> Response:
        content = self._assets.get((room, name))
        if content is None:
            raise Refused("There is no such page.", status=404)
        return Response(content, media_type=_KINDS[name.rpartition(".")[2]])

    async def events(self, request: Request) -> Response:
        """The state after each change, as long as the page listens."""
        if self._n_listeners >= MOST_LISTENERS:
            raise Refused("Too many pages are open. Close some.", status=503)
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(self._states(), media_type="text/event-stream", headers=headers)

    async def _states(self) -> AsyncIterator[bytes]:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        # However often it changes, only the newest state is sent.
        forget = self.session.listen(lambda: _wake(loop, changed))
        self._n_listeners += 1
        try:
            while not self._stopping.is_set():
                changed.clear()
                state = await run_in_threadpool(self.session.state)
                yield f"event: state\ndata: {json.dumps(state)}\n\n".encode()
                await asyncio.sleep(BETWEEN_STATES)
                while not (changed.is_set() or self._stopping.is_set()):
                    if not await self._happened(changed):
                        yield b": still here\n\n"
        finally:
            forget()
            self._n_listeners -= 1

    async def _happened(self, changed: asyncio.Event) -> bool:
        """Wait for a change or the end; whether one came before a sign of life is due."""
        waits = [asyncio.ensure_future(each.wait()) for each in (changed, self._stopping)]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=SIGN_OF_LIFE, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for each in waits:
                each.cancel()
        return bool(done)

    async def sheet(self, request: Request) -> Response:
        """Thumbnails of some slots."""
        side, k = _number(request, "side"), _number(request, "k")
        if side not in SIDES:
            raise Refused("There is no such sheet.", status=404)
        content = await run_in_threadpool(self.session.album.sheet, side, k)
        return Response(content, media_type="image/jpeg")

    async def picture(self, request: Request) -> Response:
        """One picture, larger."""
        album, side = self.session.album, request.query_params.get("side", "320")
        read = {"320": album.preview, "1600": album.large}.get(side)
        if read is None:
            raise Refused("Pictures come at 320 or 1600 pixels.", status=404)
        slot = _number(request, "slot")
        async with self._decoding if side == "1600" else nullcontext():
            content = await run_in_threadpool(read, slot)
        kind = "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
        return Response(content, media_type=kind)

    async def alike(self, request: Request) -> Response:
        """Look-alikes of a picture."""
        found = await run_in_threadpool(self.session.alike, _number(request, "slot"))
        return _json({"alike": found})

    async def upload(self, request: Request) -> Response:
        """Add a picture."""
        name = request.query_params.get("name", "")
        slot = await self.session.album.add(name, request.stream())
        await run_in_threadpool(self.session.added)
        return _json({"slot": slot, "version": self.session.version}, 201)

    async def mask(self, request: Request) -> Response:
        """Use a picture as the shape of the wall."""
        name = tidy_name(request.query_params.get("name", ""))
        file, _ = await self.session.album.keep(name, request.stream())
        await run_in_threadpool(self.session.use_mask, name, file)
        return _json({"version": self.session.version})

    async def download(self, request: Request) -> Response:
        """A finished export."""
        found = await run_in_threadpool(self.session.exports.find, request.path_params["name"])
        return FileResponse(found.path, media_type=found.kind, filename=found.name)

    async def cancel(self, request: Request) -> Response:
        """Cancel a job."""
        self.session.cancel(request.path_params["name"])
        return _json({"version": self.session.version})


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    if not event.is_set() and not loop.is_closed():
        loop.call_soon_threadsafe(event.set)


def _json(content: Any, status: int = 200) -> Response:
    """An answer in JSON, all in ASCII: names of files need not be valid Unicode."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def _number(request: Request, name: str) -> int:
    """A number in the address; Python refuses to read one of thousands of digits."""
    text = request.path_params[name]
    if not re.fullmatch("[0-9]{1,9}", text):
        raise Refused("There is no such address.", status=404)
    return int(text)


def _fields(data: Any, *names: str) -> list[Any]:
    if not isinstance(data, dict) or any(name not in data for name in names):
        raise Refused(f"The request must say {', '.join(names)}.")
    return [data[name] for name in names]


def _load_assets() -> dict[tuple[str, str], bytes]:
    """All files of both pages; nothing else is ever sent from disk by name."""
    return {
        (room, file.name): file.read_bytes()
        for room in ("web", "images")
        for file in (resources.files(f"unshuffle.{room}") / "page").iterdir()
        if file.name.rpartition(".")[2] in _KINDS
    }


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _json({"error": {"message": str(error), "field": error.field}}, error.status)


async def _fail(request: Request, error: Exception) -> Response:
    # The guard logs it.
    message = "Something went wrong. The terminal of unshuffle serve has the details."
    return _json({"error": {"message": message, "field": None}}, 500)


async def _miss(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    message = "There is no such address." if status == 404 else "That cannot be done here."
    return _json({"error": {"message": message, "field": None}}, status)
