"""The addresses of all views, and the files of their pages."""

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unshuffle.web._collage.api import collage_operations
from unshuffle.web._collage.studio import Studio
from unshuffle.web._http.openapi import Operation, describe
from unshuffle.web._http.refusal import Refused
from unshuffle.web._http.requests import Endpoint, Streams, answering, as_json
from unshuffle.web._match.api import pairing_operations
from unshuffle.web._match.pairing import Pairing
from unshuffle.web._wall.api import wall_operations
from unshuffle.web._wall.session import Session

# The view at each address of `PAGES`.
_VIEWS = {"/": "wall", "/match": "match", "/collage": "collage"}
_KINDS = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
}


def make_app(session: Session, pairing: Pairing, studio: Studio) -> Starlette:
    """ASGI app of all views, to be put behind a guard."""
    streams, assets = Streams(), _Assets()
    operations = [
        *wall_operations(session, streams),
        *pairing_operations(pairing, streams),
        *collage_operations(studio, streams),
    ]
    described = Operation(
        "GET", "/api/openapi.json", "This description", answering(lambda: description),
        gives={"type": "object"},
    )  # fmt: skip
    description = describe([described, *operations])
    routes = [
        Route(each.path, each.endpoint, methods=[each.method]) for each in (described, *operations)
    ]
    routes += [Route(path, assets.page(view)) for path, view in _VIEWS.items()]
    routes.append(Route("/assets/{name:path}", assets.asset))
    handlers = {Refused: _refuse, 404: _miss, 405: _miss, Exception: _fail}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.streams = streams
    return app


class _Assets:
    """All files of the pages; nothing else is ever sent from disk by name."""

    def __init__(self) -> None:
        self._files = {
            name: file.read_bytes()
            for room in ("web", "images")
            for name, file in _files_in(resources.files(f"unshuffle.{room}") / "page", room)
            if name.rpartition(".")[2] in _KINDS
        }

    def page(self, view: str) -> Endpoint:
        """Address of a page."""

        async def answer(request: Request) -> Response:
            return self._send(f"web/page/{view}/index.html")

        return answer

    async def asset(self, request: Request) -> Response:
        """A module or style, by its exact name."""
        return self._send(request.path_params["name"])

    def _send(self, name: str) -> Response:
        content = self._files.get(name)
        if content is None:
            raise Refused("There is no such page.", status=404)
        return Response(content, media_type=_KINDS[name.rpartition(".")[2]])


def _files_in(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    """Files under a folder, each with its path, which begins with that of the folder."""
    name = f"{before}/{folder.name}"
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files_in(each, name)
        else:
            yield f"{name}/{each.name}", each


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return as_json({"error": {"message": str(error), "field": error.field}}, error.status)


async def _fail(request: Request, error: Exception) -> Response:
    # The guard logs it.
    return _error(500, "Something went wrong. The terminal of unshuffle serve has the details.")


async def _miss(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    missing = status == 404
    return _error(status, "There is no such address." if missing else "That cannot be done here.")


def _error(status: int, message: str) -> Response:
    content: dict[str, Any] = {"error": {"message": message, "field": None}}
    return as_json(content, status)
