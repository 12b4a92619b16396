"""The command line: parse, call, show."""

import sys

__all__ = ["main"]

# Exit status where a result is not where it was asked for.
NOT_IN_PLACE = 3
NOTHING_WRITTEN = "Interrupted before there was a result; nothing was written."


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        # Imported here so that `import unshuffle.cli` costs nothing.
        from unshuffle.cli._app import run
    except KeyboardInterrupt:
        sys.stderr.write(f"Error: {NOTHING_WRITTEN}\n")
        raise SystemExit(130) from None
    raise SystemExit(run())
