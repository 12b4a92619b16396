"""Routes of the collage."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from unshuffle.web._collage.prints import DPI_LIMITS
from unshuffle.web._collage.sketch import MOST_DETAIL, NEIGHBORS
from unshuffle.web._collage.studio import Studio
from unshuffle.web._http.openapi import (
    FLAG,
    INTEGER,
    NUMBER,
    TEXT,
    Operation,
    Schema,
    View,
    maybe,
    record,
)
from unshuffle.web._http.requests import Streams, answering, as_json, as_picture, changed, fields

_BASE = "/api/collage"
_COUNT: Schema = maybe({**INTEGER, "minimum": 1})


def collage_operations(studio: Studio, streams: Streams) -> list[Operation]:
    """All that can be asked of a collage."""
    files, view = _CollageFiles(studio), View(studio, _BASE)
    change = view.change
    return [
        *view.common(streams, studio.exports),
        Operation(
            "GET", f"{_BASE}/cells", "The slot in each cell, as base64 of 32-bit integers",
            answering(studio.cells),
            gives=record(version=INTEGER, rows=INTEGER, columns=INTEGER, cells=TEXT),
        ),
        Operation(
            "GET", f"{_BASE}/preview", "The collage, of about 1600 pixels", files.preview,
            gives="image/jpeg", query={"version": {**INTEGER, "default": 0}},
        ),
        Operation(
            "GET", f"{_BASE}/template", "The template, of at most 1600 pixels", files.template,
            gives="image/*", query={"key": {**TEXT, "default": ""}},
        ),
        Operation(
            "PUT", f"{_BASE}/template", "Draw a picture", files.upload,
            query={"name": {**TEXT, "default": ""}},
        ),
        change(
            "template", "Draw a picture of the wall",
            lambda data: studio.use_item(*fields(data, "item")), record(item=INTEGER),
        ),
        change(
            "settings",
            "Change some settings and compose anew; merge makes it part of the step before",
            studio.change_settings,
            record(
                *("smoothness", "rows", "repeat", "detail", "neighbors", "merge"),
                smoothness={**NUMBER, "minimum": 0, "maximum": 1},
                rows=_COUNT,
                repeat=_COUNT,
                detail={**INTEGER, "minimum": 1, "maximum": MOST_DETAIL},
                neighbors={"enum": list(NEIGHBORS)},
                merge=FLAG,
            ),
        ),
        change(
            "export", "Write the collage to a file to download; width is in centimeters",
            lambda data: _export(studio, data),
            record(
                *("width", "dpi"),
                format={"enum": ["png", "jpg", "csv"]},
                width={**NUMBER, "exclusiveMinimum": 0},
                dpi={**INTEGER, "minimum": DPI_LIMITS[0], "maximum": DPI_LIMITS[1]},
            ),
        ),
    ]  # fmt: skip


def _export(studio: Studio, data: Any) -> str:
    (form,) = fields(data, "format")
    return studio.export(form, data.get("width"), data.get("dpi")).id


class _CollageFiles:
    """Requests with pictures and other files in them."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    async def preview(self, request: Request) -> Response:
        """The collage for the screen."""
        content = await run_in_threadpool(self.studio.preview)
        return Response(content, media_type="image/jpeg")

    async def template(self, request: Request) -> Response:
        """The template for the screen."""
        content = await run_in_threadpool(self.studio.template)
        return as_picture(content)

    async def upload(self, request: Request) -> Response:
        """Draw a picture that is sent."""
        name = request.query_params.get("name", "")
        template = await self.studio.keep_template(name, request.stream())
        await run_in_threadpool(self.studio.use_template, template)
        return as_json(changed(self.studio))
