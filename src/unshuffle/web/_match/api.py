"""Routes of the match."""

import asyncio
from contextlib import nullcontext

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from unshuffle.web._http.openapi import (
    ADDED,
    FLAG,
    INTEGER,
    NUMBER,
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
from unshuffle.web._match.pairing import Pairing
from unshuffle.web._match.sides import PICTURE_FEATURES

_BASE = "/api/match"
_SIDE: Schema = {"enum": [0, 1]}


def pairing_operations(pairing: Pairing, streams: Streams) -> list[Operation]:
    """All that can be asked of a match."""
    files, view = _MatchFiles(pairing), View(pairing, _BASE)
    change = view.change
    return [
        *view.common(streams, pairing.exports),
        Operation(
            "GET", f"{_BASE}/items", "Names and a few words of the items of both sides",
            answering(pairing.items),
            gives=record(version=INTEGER, sides=array(record(
                names=array(TEXT),
                words=maybe(array(TEXT)),
                ready=array(FLAG),
                failed=array(record(name=TEXT, reason=TEXT)),
            ))),
        ),
        Operation(
            "GET", f"{_BASE}/pairs", "The partner of each item of the left side, -1 for none",
            answering(pairing.pairs),
            gives=record(
                version=INTEGER,
                partner=array(INTEGER),
                confidence=array(NUMBER),
                answered=array(INTEGER),
                changed=array(INTEGER),
                aside=array(array(INTEGER)),
                questions=array(INTEGER),
            ),
        ),
        Operation(
            "GET", f"{_BASE}/candidates/{{slot}}", "The best partners of an item of the left side",
            files.candidates,
            gives=record(candidates=array(
                record(item=INTEGER, taken=INTEGER, answered=FLAG)
            )),
        ),
        Operation(
            "GET", f"{_BASE}/item/{{side}}/{{slot}}", "All words of an item", files.item,
            gives=record(name=TEXT, text=maybe(TEXT), cells=maybe(array(array(TEXT)))),
        ),
        Operation(
            "GET", f"{_BASE}/picture/{{side}}/{{slot}}",
            "One picture, of at most 320 or 1600 pixels", files.picture, gives="image/*",
            query={"side": {"enum": ["320", "1600"], "default": "320"}},
        ),
        Operation(
            "PUT", f"{_BASE}/uploads", "Add a picture, a text or a table to a side", files.upload,
            query={"side": {"enum": ["0", "1"]}, "name": {**TEXT, "default": ""}}, status=201,
            gives=ADDED,
        ),
        change(
            "answer", "Keep pairs that you know: confirmed or corrected",
            lambda data: pairing.answer(*fields(data, "pairs")),
            record(pairs=array(array(INTEGER, minItems=2, maxItems=2), minItems=1)),
        ),
        change(
            "wrong", "Rule pairs out without saying what is right",
            lambda data: pairing.rule_out(*fields(data, "pairs")),
            record(pairs=array(array(INTEGER, minItems=2, maxItems=2), minItems=1)),
        ),
        change(
            "release", "Take answers back, all if none are named",
            lambda data: pairing.release(*fields(data, "items")), record(items=array(INTEGER)),
        ),
        change(
            "aside", "Say that items have no partner",
            lambda data: pairing.set_aside(*fields(data, "side", "items")),
            record(side=_SIDE, items=array(INTEGER, minItems=1)),
        ),
        change(
            "back", "Match items again that were set aside, all if none are named",
            lambda data: pairing.take_back(*fields(data, "side", "items")),
            record(side=_SIDE, items=array(INTEGER)),
        ),
        change("again", "Match again now", lambda data: pairing.match_again()),
        change(
            "settings", "Choose whether each answer starts a match, and what pictures are "
            "compared by", pairing.change_settings,
            record(
                *("automatic", "features"),
                automatic=FLAG,
                features=array({"enum": list(PICTURE_FEATURES)}, minItems=1),
            ),
        ),
        change("clear", "Forget answers and dropped files", lambda data: pairing.clear()),
        change(
            "export", "Write the pairs to a file to download",
            lambda data: pairing.export(*fields(data, "format")).id,
            record(format={"enum": ["csv", "json", "png"]}),
        ),
    ]  # fmt: skip


class _MatchFiles:
    """Requests with numbers or files in them."""

    def __init__(self, pairing: Pairing) -> None:
        self.pairing = pairing
        self._decoding = asyncio.Semaphore(MOST_DECODING)

    async def candidates(self, request: Request) -> Response:
        """The best partners of an item."""
        slot = number_in(request, "slot")
        found = await run_in_threadpool(self.pairing.candidates, slot)
        return as_json({"candidates": found})

    async def item(self, request: Request) -> Response:
        """All words of an item."""
        side, slot = number_in(request, "side"), number_in(request, "slot")
        return as_json(await run_in_threadpool(self.pairing.item, side, slot))

    async def picture(self, request: Request) -> Response:
        """One picture."""
        side, slot = number_in(request, "side"), number_in(request, "slot")
        size = request.query_params.get("side", "320")
        if size not in ("320", "1600"):
            raise Refused("Pictures come at 320 or 1600 pixels.", status=404)
        async with self._decoding if size == "1600" else nullcontext():
            content = await run_in_threadpool(self.pairing.picture, side, slot, size == "1600")
        return as_picture(content)

    async def upload(self, request: Request) -> Response:
        """Add a file to a side."""
        name, side = (request.query_params.get(each, "") for each in ("name", "side"))
        number = {"0": 0, "1": 1}.get(side)
        slot = await self.pairing.add(number, name, request.stream())
        await run_in_threadpool(self.pairing.added)
        return as_json({"slot": slot, **changed(self.pairing)}, 201)
