"""Requests and answers of all views: JSON in and out, and streams of states."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall.exports import Exports
from unshuffle.web._work.workspace import Workspace

# Minimum seconds between two states, and seconds of silence before a sign of life.
BETWEEN_STATES, SIGN_OF_LIFE = 0.12, 10.0
# Pages that listen at the same time.
MOST_LISTENERS = 64
# Pictures that are decoded whole for pages of a view at the same time; each may take 0.5 GB.
MOST_DECODING = 4
Endpoint = Callable[[Request], Awaitable[Response]]


def as_json(content: Any, status: int = 200) -> Response:
    """An answer in JSON, all in ASCII: names of files need not be valid Unicode."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def answering(function: Callable[[], Any]) -> Endpoint:
    """Address that answers with what a function returns."""

    async def answer(request: Request) -> Response:
        return as_json(await run_in_threadpool(function))

    return answer


def changed(workspace: Workspace) -> dict[str, Any]:
    """The answer to a change: it was made, and whether it will be there next time."""
    return {"version": workspace.version, "unsaved": workspace.unsaved}


def changing(workspace: Workspace, function: Callable[[Any], object]) -> Endpoint:
    """Address that hands a body in JSON to a function, which may return the id of a job."""

    async def change(request: Request) -> Response:
        try:
            data = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError):
            raise Refused("The request is not valid JSON.") from None
        found = await run_in_threadpool(function, data)
        answer = changed(workspace)
        return as_json(answer if found is None else {**answer, "job": found})

    return change


def canceling(workspace: Workspace) -> Endpoint:
    """Address that cancels a job."""

    async def cancel(request: Request) -> Response:
        await run_in_threadpool(workspace.cancel, request.path_params["name"])
        return as_json(changed(workspace))

    return cancel


def downloading(exports: Exports) -> Endpoint:
    """Address of files that were exported."""

    async def download(request: Request) -> Response:
        found = await run_in_threadpool(exports.find, request.path_params["name"])
        return FileResponse(found.path, media_type=found.kind, filename=found.name)

    return download


def as_picture(content: bytes) -> Response:
    """A picture, whichever of two formats it has."""
    kind = "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
    return Response(content, media_type=kind)


def number_in(request: Request, name: str) -> int:
    """A number in the address; Python refuses to read one of thousands of digits."""
    text = request.path_params[name]
    if not re.fullmatch("[0-9]{1,9}", text):
        raise Refused("There is no such address.", status=404)
    return int(text)


def fields(data: Any, *names: str) -> list[Any]:
    """Some fields of a body."""
    if not isinstance(data, dict) or any(name not in data for name in names):
        raise Refused(f"The request must say {', '.join(names)}.")
    return [data[name] for name in names]


class Streams:
    """Streams of states to pages, which end when the server stops."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._n_listeners = 0

    def stop(self) -> None:
        """End all streams, which would go on for ever."""
        self._stopping.set()

    def events(self, workspace: Workspace) -> Endpoint:
        """Address that sends the state after each change, as long as the page listens."""

        async def answer(request: Request) -> Response:
            if self._n_listeners >= MOST_LISTENERS:
                raise Refused("Too many pages are open. Close some.", status=503)
            # Counted now: many requests may be answered before the first stream begins.
            self._n_listeners += 1
            return _Stream(self._states(workspace), self._end)

        return answer

    def _end(self) -> None:
        self._n_listeners -= 1

    async def _states(self, workspace: Workspace) -> AsyncGenerator[bytes, None]:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        # However often it changes, only the newest state is sent.
        forget = workspace.listen(lambda: _wake(loop, changed))
        try:
            while not self._stopping.is_set():
                changed.clear()
                state = await run_in_threadpool(workspace.state)
                yield f"event: state\ndata: {json.dumps(state)}\n\n".encode()
                await asyncio.sleep(BETWEEN_STATES)
                while not (changed.is_set() or self._stopping.is_set()):
                    if not await self._happened(changed):
                        yield b": still here\n\n"
        finally:
            forget()

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


class _Stream(StreamingResponse):
    """Server-sent events; `end` is called once, even if the client leaves before the first one."""

    def __init__(self, events: AsyncGenerator[bytes, None], end: Callable[[], None]) -> None:
        headers = {"x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._events, self._end = events, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()
            await self._events.aclose()


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    if not event.is_set():
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(event.set)
