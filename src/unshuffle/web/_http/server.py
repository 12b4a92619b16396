"""Uvicorn, set up to serve one machine and to stop at once."""

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds that requests may take to end when the server stops.
GRACE = 2
# Connections that have not yet sent a request; browsers open some ahead of need.
MOST_IDLE = 200


class _Protocol(H11Protocol):
    """HTTP where idle connections give way, so that no program can use up all of them."""

    _idle: ClassVar[dict["_Protocol", None]] = {}  # oldest first

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._idle[self] = None
        if len(self._idle) > MOST_IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self._idle.pop(self, None)


class _Server(uvicorn.Server):
    """A server that tells when it listens, and the app when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        started: Callable[[], None],
        stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._tell_started, self._tell_stopping = started, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._tell_stopping()
        await super().shutdown(sockets)


def run_server(
    app: Any,
    stopping: Callable[[], None],
    listener: socket.socket,
    started: Callable[[], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",  # not each request that is not valid HTTP
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        backlog=256,
    )
    # Uvicorn repeats the signal that stopped it; by itself, SIGTERM would end the program there.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):  # the usual way to stop
            _Server(config, started, stopping).run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
