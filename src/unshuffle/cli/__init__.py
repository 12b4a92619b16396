"""The command line: parse, call, show."""

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Imported here so that `import unshuffle.cli` costs nothing.
    from unshuffle.cli._app import run

    raise SystemExit(run())
