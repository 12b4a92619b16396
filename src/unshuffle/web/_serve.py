"""The server of the page, on this machine only."""

import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from unshuffle._core.parameters import check_count
from unshuffle._files.paths import as_path, check_folder, check_regular_file

HOST = "127.0.0.1"
USUAL_PORT = 8765


def serve(
    folder: str | Path | None = None,
    other: str | Path | None = None,
    *,
    port: int | None = None,
    state: str | Path | None = None,
    open_browser: bool = True,
    on_start: Callable[[str], object] | None = None,
) -> None:
    """Show a page to arrange pictures, match collections and make collages, until Ctrl-C.

    Only this machine reaches the page, and only with the address, which holds a random token. No
    file outside `folder` and `other` is read, and no file in them is changed.

    Parameters
    ----------
    folder : str, Path or None, default=None
        Pictures to begin with, sub-folders included. More can be dropped onto the page. With
        `other`, the first of two collections to match.
    other : str, Path or None, default=None
        The second collection to match: a folder of pictures or of text files, or a table, as the
        first one is.
    port : int or None, default=None
        Port of the server; 0 is any free one. None is 8765, or a free one if that is in use.
    state : str, Path or None, default=None
        File ending in .json that keeps the wall, with dropped pictures in a folder of that name
        and files of the other views beside it. None is a file for each `folder`, or pair of them,
        among the data of the user.
    open_browser : bool, default=True
        Open the page in the browser.
    on_start : callable or None, default=None
        Called with the address once the server listens.

    Raises
    ------
    ValueError
        If what is kept was written by a newer version of unshuffle, which is left as it is; or if
        `folder`, `other`, `port` or `state` cannot be used.
    OSError
        When the server stops and the last changes could not be saved, because the disk is full,
        say. The message says where they are instead.

    Notes
    -----
    Needs ``pip install 'unshuffle[web]'``. Memory grows with the pictures, 5 kB each for 100,000
    at most, besides their vectors.

    Examples
    --------
    >>> from unshuffle.web import serve
    >>> serve("holidays")  # doctest: +SKIP
    >>> serve("left", "right")  # doctest: +SKIP
    """
    start, server = _import_server()
    paths = _check_paths(folder, other)
    if port is not None:
        port = check_count(port, "port", least=0, most=65535)
    from unshuffle.images import default_cache
    from unshuffle.web._collage.studio import Studio
    from unshuffle.web._http.security import Guard, new_token
    from unshuffle.web._match.pairing import Pairing
    from unshuffle.web._wall.arranger import prepare, warm_up
    from unshuffle.web._wall.session import Session
    from unshuffle.web._work.album import MOST_UPLOADED
    from unshuffle.web._work.state_file import StateFile, default_state

    path = default_state(*paths) if state is None else as_path(state, "`state`")
    if path.suffix.lower() != ".json":
        raise ValueError(f"`state` must end in .json, got {path}.")
    prepare()
    with _listen(port) as listener:
        with ExitStack() as stack:  # each is closed, and so saved, whatever happens to the others
            kept, cache = StateFile(path), default_cache()
            stack.callback(kept.close)
            match, collage = (kept.companion(view) for view in ("match", "collage"))
            session = Session(paths[0] if len(paths) == 1 else None, kept, cache)
            pairing = Pairing(paths if len(paths) == 2 else None, match, cache)
            studio = Studio(session, collage)
            for view in (session, pairing, studio):
                stack.callback(view.close)
                view.open()
            token, number = new_token(), listener.getsockname()[1]
            hosts = [f"{name}:{number}" for name in (HOST, "localhost")]
            address = f"http://{hosts[0]}/{'match' if len(paths) == 2 else ''}?token="
            app = start(session, pairing, studio)
            guard = Guard(app, token=token, hosts=hosts, upload_limit=MOST_UPLOADED)
            threading.Thread(target=warm_up, daemon=True).start()

            def started() -> None:
                if on_start is not None:
                    on_start(address + token)
                if open_browser:
                    # In a thread, since a browser in the terminal ends when the user does.
                    once = address + guard.new_ticket()
                    threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()

            server(guard, app.state.streams.stop, listener, started)
        lost = [view.lost for view in (session, pairing, studio) if view.lost]
        if lost:
            raise OSError(" ".join(lost))


def _check_paths(folder: str | Path | None, other: str | Path | None) -> list[Path]:
    """The folder of a wall, or two collections to match."""
    if other is None:
        return [] if folder is None else [check_folder(folder)]
    if folder is None:
        raise ValueError("`other` is the second of two collections. Give the first as `folder`.")
    both = [as_path(folder, "`folder`"), as_path(other, "`other`")]
    return [check_regular_file(path, "a table") if path.is_file() else check_folder(path)
            for path in both]  # fmt: skip


def _import_server() -> tuple[Any, Any]:
    try:
        from unshuffle.web._http.app import make_app
        from unshuffle.web._http.server import run_server
    except ImportError as error:
        raise ImportError(
            f"The page needs {error.name}. Install it with pip install 'unshuffle[web]'."
        ) from error
    return make_app, run_server


def _listen(port: int | None) -> socket.socket:
    """A socket that listens on this machine only."""
    # The protocol is named for asyncio, which otherwise does not turn off Nagle's algorithm: each
    # answer on an open connection would wait 40 ms for the client.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # elsewhere, it would let other programs share the port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            listener.bind((HOST, USUAL_PORT if port is None else port))
        except OSError:
            if port is not None:
                raise
            listener.bind((HOST, 0))
    except OSError as error:
        listener.close()
        raise ValueError(
            f"Port {port} cannot be used: {error.strerror or error}. Give another one, or leave "
            "it out."
        ) from error
    return listener
