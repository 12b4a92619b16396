"""Streams of states, as the server asks for them."""

import asyncio

import pytest

pytest.importorskip("starlette", reason="the page needs unshuffle[web]")

from starlette.requests import Request

from unshuffle.web._http.refusal import Refused
from unshuffle.web._http.requests import MOST_LISTENERS, Streams

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}


class Quiet:
    """A workspace in which nothing happens."""

    def __init__(self):
        self.listeners = set()

    def listen(self, listener):
        self.listeners.add(listener)
        return lambda: self.listeners.discard(listener)

    def state(self):
        return {"version": 1}


class Page:
    """A client that listens until it leaves."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.left, self.heard = asyncio.Event(), asyncio.Event()
        self.status = 0

    async def receive(self):
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message.get("body"):
            self.heard.set()

    async def ask(self):
        try:
            response = await self.endpoint(Request(SCOPE))
        except Refused as error:
            self.status = error.status
            self.heard.set()
        else:
            await response(SCOPE, self.receive, self.send)


async def listen(endpoint, n):
    """Statuses of so many pages that begin at once, and leave when all were answered."""
    pages = [Page(endpoint) for _ in range(n)]
    asking = [asyncio.create_task(page.ask()) for page in pages]
    for page in pages:
        await asyncio.wait_for(page.heard.wait(), 60)
    for page in pages:
        page.left.set()
    await asyncio.wait_for(asyncio.gather(*asking), 60)
    return [page.status for page in pages]


def test_of_many_streams_that_begin_at_once_only_so_many_are_open():
    async def work():
        quiet = Quiet()
        endpoint = Streams().events(quiet)
        for _ in range(2):
            statuses = await listen(endpoint, 2 * MOST_LISTENERS)
            assert statuses.count(200) == statuses.count(503) == MOST_LISTENERS
            assert not quiet.listeners

    asyncio.run(work())


def test_pages_that_leave_before_the_first_state_make_room_too():
    async def work():
        quiet = Quiet()
        endpoint = Streams().events(quiet)
        for _ in range(2 * MOST_LISTENERS):
            page = Page(endpoint)
            page.left.set()
            await page.ask()
        assert await listen(endpoint, MOST_LISTENERS) == [200] * MOST_LISTENERS
        assert not quiet.listeners

    asyncio.run(work())
