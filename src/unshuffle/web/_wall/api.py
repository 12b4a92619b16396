"""Routes of the wall."""

import asyncio
from contextlib import nullcontext

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from unshuffle.web._http.openapi import (
    ADDED,
    FLAG,
    INTEGER,
    TEXT,
    Operation,
    Schema,
    View,
    array,
    maybe,
    record,
)
from unshuffle.web._http.refusal import Refused
from unshuffle.web._http.requests import (
    MOST_DECODING,
    Streams,
    answering,
    as_json,
    as_picture,
    changed,
    fields,
    number_in,
)
from unshuffle.web._wall.session import Session
from unshuffle.web._work.album import tidy_name
from unshuffle.web._work.thumbnails import SIDES

_ITEMS = record(items=array(INTEGER))
_NAME: dict[str, Schema] = {"name": {**TEXT, "default": ""}}


def wall_operations(session: Session, streams: Streams) -> list[Operation]:
    """All that can be asked of a wall."""
    files, view = _WallFiles(session), View(session, "/api")
    change = view.change
    return [
        *view.common(streams, session.exports),
        Operation(
            "GET", "/api/pictures", "Names by slot, and files that could not be read",
            answering(session.pictures),
            gives=record(
                version=INTEGER,
                names=array(TEXT),
                failed=array(record(name=TEXT, reason=TEXT)),
            ),
        ),
        Operation(
            "GET", "/api/wall", "The slot in each cell, as base64 of 32-bit integers",
            answering(session.wall),
            gives=record(
                version=INTEGER,
                rows=INTEGER,
                columns=INTEGER,
                wrap=FLAG,
                cells=TEXT,
                frozen=array(INTEGER),
                out=array(INTEGER),
            ),
        ),
        Operation(
            "GET", "/api/sheet/{side}/{k}", "Thumbnails of 64 slots", files.sheet,
            gives="image/jpeg",
        ),
        Operation(
            "GET", "/api/picture/{slot}", "One picture, of at most 320 or 1600 pixels",
            files.picture, gives="image/*",
            query={"side": {"enum": ["320", "1600"], "default": "320"}},
        ),
        Operation(
            "GET", "/api/alike/{slot}", "The nearest look-alikes of a picture", files.alike,
            gives=record(alike=array(INTEGER)),
        ),
        Operation(
            "PUT", "/api/uploads", "Add a picture", files.upload, query=_NAME, status=201,
            gives=ADDED,
        ),
        Operation(
            "PUT", "/api/mask", "Use a picture as the shape of the wall", files.mask, query=_NAME
        ),
        change(
            "settings", "Change some settings and arrange anew", session.change_settings,
            record(
                *("shape", "rows", "columns", "letters", "invert", "features", "quality"),
                shape={"enum": ["rectangle", "torus", "letters", "mask"]},
                rows=maybe(INTEGER),
                columns=maybe(INTEGER),
                letters=TEXT,
                invert=FLAG,
                features=array({"enum": ["color", "texture", "words", "content"]}),
                quality={"enum": ["fast", "balanced", "best"]},
            ),
        ),
        change("arrange", "Arrange anew from another start", lambda data: session.arrange_again()),
        change(
            "move", "Put a picture into a cell, where it stays",
            lambda data: session.move(*fields(data, "item", "cell", "rows", "columns")),
            record(item=INTEGER, cell=INTEGER, rows=INTEGER, columns=INTEGER),
        ),
        change(
            "freeze", "Keep pictures where they are",
            lambda data: session.freeze(*fields(data, "items")), _ITEMS,
        ),
        change(
            "unfreeze", "Let pictures move again, all if none are named",
            lambda data: session.unfreeze(*fields(data, "items")), _ITEMS,
        ),
        change(
            "leave-out", "Take pictures off the wall",
            lambda data: session.leave_out(*fields(data, "items")), _ITEMS,
        ),
        change(
            "put-back", "Put pictures back, all if none are named",
            lambda data: session.put_back(*fields(data, "items")), _ITEMS,
        ),
        change("clear", "Remove dropped pictures and the history", lambda data: session.clear()),
        change(
            "export", "Write the wall to a file to download",
            lambda data: session.export(*fields(data, "format")).id,
            record(format={"enum": ["png", "page", "csv"]}),
        ),
    ]  # fmt: skip


class _WallFiles:
    """Requests with pictures and other files in them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._decoding = asyncio.Semaphore(MOST_DECODING)

    async def sheet(self, request: Request) -> Response:
        """Thumbnails of some slots."""
        side, k = number_in(request, "side"), number_in(request, "k")
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
        slot = number_in(request, "slot")
        async with self._decoding if side == "1600" else nullcontext():
            content = await run_in_threadpool(read, slot)
        return as_picture(content)

    async def alike(self, request: Request) -> Response:
        """Look-alikes of a picture."""
        found = await run_in_threadpool(self.session.alike, number_in(request, "slot"))
        return as_json({"alike": found})

    async def upload(self, request: Request) -> Response:
        """Add a picture."""
        name = request.query_params.get("name", "")
        slot = await self.session.album.add(name, request.stream())
        await run_in_threadpool(self.session.added)
        return as_json({"slot": slot, **changed(self.session)}, 201)

    async def mask(self, request: Request) -> Response:
        """Use a picture as the shape of the wall."""
        name = tidy_name(request.query_params.get("name", ""))
        file, _ = await self.session.album.keep(name, request.stream())
        await run_in_threadpool(self.session.use_mask, name, file)
        return as_json(changed(self.session))
