"""The command that reads and lays out the pictures: seconds of each stage, and peak memory."""

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages._memory import Watch, tree

# A bar begins its line with the name of the stage; the escapes around it color and move.
BAR = re.compile(rb"(?:^|[\r\n]|\x1b\[[0-9;?]*[A-Za-z])([A-Z][a-z]+(?: [a-z-]+)*) [^\n\r]*?\d %")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    seconds: float
    megabytes: float  # peak of all its processes together
    stages: dict[str, float]  # seconds of each
    said: list[str]  # lines of its standard output


def run(arguments: list[str], environment: dict[str, str] | None = None) -> Run:
    """Run `unshuffle` on a terminal of its own, so that it draws the bars that tell its stages.

    A stage lasts until the next one begins, the last one until the end.
    """
    ours, theirs = pty.openpty()
    starts = {"Starting": 0.0}
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "unshuffle", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=theirs,
            env={**os.environ, **(environment or {}), "COLUMNS": "160", "TERM": "xterm"},
        )
        os.close(theirs)
        last = b""
        try:
            with Watch(lambda: tree(process.pid)) as watch:
                while piece := _read(ours):
                    for stage in BAR.findall(piece):
                        starts.setdefault(stage.decode(), time.monotonic() - start)
                    last = (last + piece)[-4000:]
                process.wait()
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        seconds = time.monotonic() - start
        out.seek(0)
        said = out.read().splitlines()
    if process.returncode:
        words = ESCAPES.sub("", last.decode("utf-8", "replace"))
        raise SystemExit(f"`unshuffle {' '.join(arguments)}` failed:\n{words}")
    ends = [*list(starts.values())[1:], seconds]
    stages = {name: end - begin for (name, begin), end in zip(starts.items(), ends, strict=True)}
    return Run(seconds, watch.peak, stages, said)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux ends a terminal
        return b""


def folder_size(folder: Path) -> tuple[int, float]:
    """Number of files of a folder, or 1 of a file, and their megabytes."""
    files = [folder] if folder.is_file() else [x for x in folder.rglob("*") if x.is_file()]
    return len(files), sum(each.stat().st_size for each in files) / 1e6
