"""The command line."""

import os
import shlex
import shutil
import sys

__all__ = ["main"]

# Exit status of `doctor` if a check fails.
CHECK_FAILED = 1
# Exit status if a result is not where it was asked for.
NOT_IN_PLACE = 3
# Exit status of --strict if an answer cannot be trusted.
NOT_TRUSTED = 3
NOTHING_WRITTEN = "Interrupted before there was a result; nothing was written."


def program_name() -> str:
    """What starts this program in the terminal: unshuffle, or for example .venv/bin/unshuffle.

    Commands that are printed begin with it, so that they can be copied.
    """
    called = sys.argv[0]
    folder, name = os.path.split(called)
    if name == "__main__.py" and os.path.basename(folder) == "unshuffle":
        python = os.path.basename(sys.executable)
        return f"{_typed(python, sys.executable)} -m unshuffle"
    if folder and os.path.splitext(name)[0] == "unshuffle":
        return _typed("unshuffle", called)
    return "unshuffle"


def _typed(name: str, path: str) -> str:
    """The name of a program if the shell finds this one by it, otherwise its path."""
    found = shutil.which(name)
    if found is not None and os.path.realpath(os.path.dirname(found)) == os.path.realpath(
        os.path.dirname(path)
    ):
        return name
    return shlex.quote(path)


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here so that `import unshuffle.cli` costs nothing.
        from unshuffle.cli._app import run
    except KeyboardInterrupt:
        sys.stderr.write(f"Error: {NOTHING_WRITTEN}\n")
        raise SystemExit(130) from None
    raise SystemExit(run())
