"""Addresses of the server, each with what it takes and gives, and their OpenAPI description."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from unshuffle import __version__
from unshuffle.web._http.requests import (
    Endpoint,
    Streams,
    answering,
    canceling,
    changing,
    downloading,
)
from unshuffle.web._wall.exports import Exports
from unshuffle.web._work.workspace import Workspace

Schema = dict[str, Any]

INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NOTHING: Schema = {"type": "null"}


def array(items: Schema, **limits: Any) -> Schema:
    """A list of one kind of thing."""
    return {"type": "array", "items": items, **limits}


def record(*optional: str, **properties: Schema) -> Schema:
    """An object with these fields, all of which are there but the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def maybe(schema: Schema) -> Schema:
    """A schema that also admits null."""
    return {"anyOf": [schema, NOTHING]}


CHANGED = record("job", version=INTEGER, unsaved=maybe(TEXT), job=TEXT)
ADDED = record(slot=INTEGER, version=INTEGER, unsaved=maybe(TEXT))
_JOB = record(
    id=TEXT, kind=TEXT, words=TEXT, done=INTEGER, total=INTEGER, fraction=NUMBER, left=TEXT
)
_DOWNLOAD = record(id=TEXT, name=TEXT, bytes=INTEGER)
_STATE = record(
    version=INTEGER,
    jobs=array(_JOB),
    undo=maybe(TEXT),
    redo=maybe(TEXT),
    unsaved=maybe(TEXT),
    downloads=array(_DOWNLOAD),
)
_ERROR = record(error=record(message=TEXT, field=maybe(TEXT)))


@dataclass(frozen=True)
class Operation:
    """One address: what it does, how it is answered, and what goes in and out."""

    method: str
    path: str  # with {names} of its parts
    summary: str
    endpoint: Endpoint
    takes: Schema | None = None  # body in JSON; PUT takes the bytes of a file
    gives: Schema | str = field(default_factory=lambda: CHANGED)  # JSON, or a media type
    query: dict[str, Schema] = field(default_factory=dict)
    status: int = 200

    def describe(self) -> Schema:
        """The operation in OpenAPI."""
        names = re.findall(r"\{(\w+)\}", self.path)
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": _part(name)} for name in names
        ]
        parameters += [
            {"name": name, "in": "query", "required": "default" not in schema, "schema": schema}
            for name, schema in self.query.items()
        ]
        kind, schema = ("application/json", self.gives)
        if isinstance(self.gives, str):
            kind, schema = self.gives, {"type": "string", "format": "binary"}
        refused = {"description": "Refused, with the reason", "content": _json(_ERROR)}
        found: Schema = {
            "operationId": re.sub(r"\W+", "-", f"{self.method.lower()}{self.path}").strip("-"),
            "summary": self.summary,
            "parameters": parameters,
            "responses": {
                str(self.status): {
                    "description": "Done",
                    "content": {kind: {"schema": schema}},
                },
                "4XX": refused,
                "503": {**refused, "description": "Too many pages listen"},
                "507": {**refused, "description": "No room for more"},
            },
        }
        if self.method == "POST":
            found["requestBody"] = {"required": True, "content": _json(self.takes or record())}
        elif self.method == "PUT":
            kind = "application/octet-stream"
            content = {kind: {"schema": {"type": "string", "format": "binary"}}}
            found["requestBody"] = {"required": True, "content": content}
        return found


class View:
    """Makes the operations of a view, and those that every view has."""

    def __init__(self, workspace: Workspace, base: str) -> None:
        self._workspace, self._base = workspace, base

    def change(
        self, name: str, summary: str, call: Callable[[Any], object], takes: Schema | None = None
    ) -> Operation:
        """An operation that changes something."""
        endpoint = changing(self._workspace, call)
        return Operation("POST", f"{self._base}/{name}", summary, endpoint, takes)

    def common(self, streams: Streams, exports: Exports) -> list[Operation]:
        """State, events, undo, redo, downloads and jobs."""
        workspace, base = self._workspace, self._base
        return [
            Operation(
                "GET", f"{base}/state", "Everything small", answering(workspace.state),
                gives=_STATE,
            ),
            Operation(
                "GET", f"{base}/events", "The state after each change, as server-sent events",
                streams.events(workspace), gives="text/event-stream",
            ),
            self.change("undo", "Go one step back", lambda data: workspace.undo()),
            self.change("redo", "Take back an undo", lambda data: workspace.redo()),
            Operation(
                "GET", f"{base}/export/{{name}}", "A file that was exported",
                downloading(exports), gives="*/*",
            ),
            Operation("DELETE", f"{base}/jobs/{{name}}", "Cancel a job", canceling(workspace)),
        ]  # fmt: skip


def describe(operations: Sequence[Operation]) -> Schema:
    """All operations in OpenAPI."""
    paths: dict[str, Schema] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = each.describe()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "unshuffle serve",
            "version": __version__,
            "description": "Arrange pictures, match collections and make collages on this "
            "machine. Send the token that unshuffle serve prints as a bearer token.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _part(name: str) -> Schema:
    """Schema of a part of an address: names of jobs and files are text, all else is a number."""
    return TEXT if name == "name" else {"type": "integer", "minimum": 0, "maximum": 999_999_999}
