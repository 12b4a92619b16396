"""`unshuffle serve`: a page in the browser."""

from unshuffle.cli._app import NotWritten, note, say
from unshuffle.cli._options import ServeOptions
from unshuffle.web import serve as serve_page


def serve(options: ServeOptions) -> int:
    """Serve until Ctrl-C, which is how it ends, and return 0."""
    address = ""

    def started(given: str) -> None:
        nonlocal address
        address = given
        say(address)
        note("Open this address in a browser on this machine. Press Ctrl-C to stop.")

    try:
        serve_page(
            options.folder,
            options.other,
            port=options.port,
            state=options.state,
            open_browser=not options.no_browser,
            on_start=started,
        )
    except OSError as error:
        if not address:
            raise
        raise NotWritten(f"Stopped. {error}") from error
    note("Stopped. Everything is saved for next time.")
    return 0
