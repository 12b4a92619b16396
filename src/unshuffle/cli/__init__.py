"""The command line."""

import sys

__all__ = ["main"]

# Exit status of `doctor` if a check fails.
CHECK_FAILED = 1
# Exit status if a result is not where it was asked for.
NOT_IN_PLACE = 3
# Exit status of --strict if an answer cannot be trusted.
NOT_TRUSTED = 3
NOTHING_WRITTEN = "Interrupted before there was a result; nothing was written."


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here so that `import unshuffle.cli` costs nothing.
        from unshuffle.cli._app import run
    except KeyboardInterrupt:
        sys.stderr.write(f"Error: {NOTHING_WRITTEN}\n")
        raise SystemExit(130) from None
    raise SystemExit(run())
