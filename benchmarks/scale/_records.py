"""Measurements of single fits: run within limits, scored, and kept in a file."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import resident
from benchmarks.scale._problems import Problem, load
from benchmarks.scale._score import ceilings, scores

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.05  # seconds between looks at the memory of a process
CEILING = "ceiling"


@dataclass(frozen=True)
class Record:
    """One fit of one method on one problem.

    Attributes
    ----------
    problem, method : str
        Their names.
    n_frozen : int
        Number of known pairs given.
    failed : str
        Why there is no result, or empty.
    seconds, megabytes : float
        Wall-clock time, and memory above that held before.
    right, clusters, rank_error : float
        Shares of right pairs and of pairs within a cluster; see `benchmarks.scale._score`.
    kept : float
        Of a ceiling: what further rounds leave of the truth.
    believed : float
        Share of right pairs that the method expects.
    warned : list of str
        Categories of the warnings issued.
    """

    problem: str
    method: str
    n_frozen: int = 0
    failed: str = ""
    seconds: float | None = None
    megabytes: float | None = None
    right: float | None = None
    clusters: float | None = None
    rank_error: float | None = None
    kept: float | None = None
    believed: float | None = None
    warned: list[str] = field(default_factory=list)


class Bench:
    """Measures on demand; what the file of records holds is not measured again.

    Parameters
    ----------
    folder, real : Path or None
        Folders of draws to prefer to new ones, and of real data.
    file : Path or None
        Records, one line of JSON each. Delete it to measure all again.
    seconds, megabytes : float
        Limits of one process; the second counts all its memory.
    jobs : int or None
        Threads of our method.
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        real: Path | None = None,
        file: Path | None = None,
        seconds: float = 3600.0,
        megabytes: float = 16_000.0,
        jobs: int | None = None,
    ) -> None:
        self.folder, self.real, self.file = folder, real, file
        self.seconds, self.megabytes = seconds, megabytes
        self.jobs = jobs
        self.problem = lru_cache(maxsize=1)(self._load)
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self.known = {_key(record): record for record in (Record(**json.loads(x)) for x in lines)}

    def fit(self, name: str, method: str, n_frozen: int = 0) -> Record:
        """Record of one fit."""
        return self._once(Record(name, method, n_frozen), self._fit)

    def ceiling(self, name: str) -> Record:
        """Record of a matching that knows more; see `benchmarks.scale._score`."""
        return self._once(Record(name, CEILING), self._ceiling)

    def _once(self, wanted: Record, measure: Callable[[Record], dict[str, Any]]) -> Record:
        if _key(wanted) not in self.known:
            record = Record(**{**asdict(wanted), **measure(wanted)})
            self.known[_key(wanted)] = record
            line = json.dumps(asdict(record))
            print(line, file=sys.stderr, flush=True)
            if self.file is not None:
                with self.file.open("a") as file:
                    file.write(line + "\n")
        return self.known[_key(wanted)]

    def _load(self, name: str) -> Problem:
        return load(name, self.folder, self.real)

    def _ceiling(self, wanted: Record) -> dict[str, Any]:
        right, kept = ceilings(self.problem(wanted.problem))
        return {"right": right, "kept": kept}

    def _fit(self, wanted: Record) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as place:
            found = Path(place) / "partner.npy"
            command = [sys.executable, "-m", "benchmarks.scale._fit"]
            command += [wanted.method, wanted.problem, str(found)]
            command += ["--frozen", str(wanted.n_frozen)]
            command += ["--folder", str(self.folder)] if self.folder else []
            command += ["--jobs", str(self.jobs)] if self.jobs else []
            said, failed = self._run(command, Path(place))
            if failed:
                return {"failed": failed}
            return {**said, **scores(self.problem(wanted.problem), np.load(found))}

    def _run(self, command: list[str], place: Path) -> tuple[dict[str, Any], str]:
        """What a process printed last, or why it was stopped."""
        environment = os.environ | ({"UNSHUFFLE_DATA": str(self.real)} if self.real else {})
        with (place / "out").open("w+") as out, (place / "errors").open("w+") as errors:
            start = time.monotonic()
            with subprocess.Popen(
                command, stdout=out, stderr=errors, text=True, cwd=ROOT, env=environment
            ) as process:
                try:
                    while process.poll() is None:
                        if time.monotonic() - start > self.seconds:
                            return {}, f"over {self.seconds:.0f} s"
                        if resident("VmRSS", process.pid) > self.megabytes:
                            return {}, f"over {self.megabytes / 1000:.0f} GB"
                        time.sleep(POLL)
                finally:
                    process.kill()
            if process.returncode:
                errors.seek(0)
                return {}, (errors.read().strip().splitlines() or [f"{process.returncode}"])[-1]
            out.seek(0)
            return json.loads(out.read().splitlines()[-1]), ""


def _key(record: Record) -> tuple[str, str, int]:
    return record.problem, record.method, record.n_frozen
