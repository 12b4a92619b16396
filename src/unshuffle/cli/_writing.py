"""Results that reach the disk: not cut short by Ctrl-C, and elsewhere if need be."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unshuffle._validation import check_output_path
from unshuffle.cli._console import BadInput


@contextmanager
def unbothered() -> Iterator[None]:
    """Let a second Ctrl-C not cut the writing short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def save_somewhere(path: Path, save: Callable[[Path], object]) -> Path:
    """Save under `path`, in the temporary folder if need be: results may have taken hours."""
    try:
        save(path)
    except (OSError, ValueError):
        # The disk is full, or a share went away, since it was tried before the work began.
        path = Path(tempfile.mkdtemp(prefix="unshuffle-")) / path.name
        save(path)
    return path


def check_outputs(
    outputs: Sequence[Path], suffixes: Sequence[str], inputs: Sequence[Path | None]
) -> None:
    """Refuse, before the work starts, what cannot be written or would destroy an input."""
    taken = {path.resolve() for path in inputs if path is not None}
    seen: set[Path] = set()
    for output in outputs:
        check_output_path(output, suffixes)
        place = output.resolve()
        if place in taken:
            raise BadInput(f"{output} is also an input and would be lost. Give another name.")
        if place in seen:
            raise BadInput(f"{output} is asked for twice. Give each output a name of its own.")
        seen.add(place)


def check_spreadsheet(spreadsheet: bool, outputs: Sequence[Path]) -> None:
    """Refuse to escape names for a spreadsheet where no output is one."""
    if spreadsheet and not any(path.suffix.lower() == ".csv" for path in outputs):
        raise BadInput(
            "--spreadsheet changes how names are written to .csv, and no output ends in .csv. "
            "Leave it out, or add -o with such a name."
        )


def check_not_among(outputs: Sequence[Path], folder: Path, suffixes: Sequence[str]) -> None:
    """Refuse a picture that would be written among those it is made from."""
    for output in outputs:
        if output.suffix.lower() in suffixes and folder.resolve() in output.resolve().parents:
            raise BadInput(
                f"{output} is in the folder it is made from, where it would replace a picture or "
                "pass for one. Write it to another folder."
            )
