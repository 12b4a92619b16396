"""Fuzz every public name: `python -m tests.fuzz --calls 20000`.

Each call follows from its seed alone, so `--seed N` makes one again and shows it in full. Calls
run in worker processes; one that dies or does not answer is replaced, and counts as a fault.
"""

import argparse
import faulthandler
import multiprocessing as mp
import os
import sys
import time
from collections import Counter
from typing import Any

FAULTS_SHOWN = 400
NO_ANSWER = "did not come back to the interpreter"


def _work(connection: Any) -> None:
    """Judge the seeds that come through the pipe, until None comes."""
    faulthandler.enable()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  what libraries print is not our output
    from tests.fuzz.judge import FAULTS, described, judge
    from tests.fuzz.subjects import subject_of

    connection.send("ready")
    while (seed := connection.recv()) is not None:
        subject = subject_of(seed)
        outcome = judge(subject, seed)
        text = described(subject, seed) if outcome.kind in FAULTS else subject.name
        connection.send((seed, outcome.kind, outcome.details, outcome.seconds, text))


class _Worker:
    """A process, its pipe, and the seed that it works on."""

    def __init__(self) -> None:
        self.connection, theirs = mp.Pipe()
        self.process = mp.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.seed: int | None = None
        self.since = time.monotonic()
        self.connection.recv()

    def start(self, seed: int) -> None:
        """Hand over a seed."""
        self.seed, self.since = seed, time.monotonic()
        self.connection.send(seed)

    def result(self, limit: float) -> Any:
        """What came of the seed, a fault where the worker died or hangs, or None: not yet."""
        try:
            if self.connection.poll(0.02):
                return self.connection.recv()
        except (EOFError, ConnectionResetError):
            return (self.seed, "crash", f"exit code {self._exit_code()}", 0.0, "")
        if time.monotonic() - self.since > limit:
            self.process.kill()
            return (self.seed, "hang", NO_ANSWER, limit, "")
        return None

    def _exit_code(self) -> int | None:
        self.process.join(5)
        return self.process.exitcode


def run(seeds: list[int], *, n_workers: int, limit: float = 60.0) -> list[Any]:
    """Outcomes of all seeds."""
    left, done = list(reversed(seeds)), []
    workers = [_Worker() for _ in range(n_workers)]
    start = time.monotonic()
    while left or any(worker.seed is not None for worker in workers):
        for place, worker in enumerate(workers):
            if worker.seed is None:
                if left:
                    worker.start(left.pop())
                continue
            result = worker.result(limit)
            if result is None:
                continue
            done.append(result)
            worker.seed = None
            if result[1] == "crash" or result[2] == NO_ANSWER:
                workers[place] = _Worker()
            if len(done) % 500 == 0:
                rate = len(done) / (time.monotonic() - start)
                print(f"  {len(done):,} of {len(seeds):,} calls, {rate:.0f} a second", flush=True)
    for worker in workers:
        worker.connection.send(None)
        worker.process.join(5)
    return done


def main() -> int:
    """Run, count by class, show the faults; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls to make")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=2, help="how many processes")
    parser.add_argument("--only", default="", help="only names that contain this")
    parser.add_argument("--seed", type=int, help="make one call again, and show all of it")
    options = parser.parse_args()

    from tests.fuzz.judge import ALLOWED, FAULTS, described, judge, reduced
    from tests.fuzz.subjects import SUBJECTS, subject_of

    if options.seed is not None:
        subject = subject_of(options.seed)
        outcome = judge(subject, options.seed)
        if outcome.kind in FAULTS:
            fewest = reduced(subject, options.seed)
            print("the same with fewer:", described(subject, options.seed, fewest))
        print(described(subject, options.seed))
        print(f"{outcome.kind} after {outcome.seconds:.2f} s\n{outcome.details}")
        return int(outcome.kind in FAULTS)

    seeds = range(options.start, options.start + options.calls)
    seeds = [seed for seed in seeds if options.only in subject_of(seed).name]
    start = time.monotonic()
    outcomes = run(seeds, n_workers=options.workers)
    counts = Counter(kind for _, kind, *_ in outcomes)
    faults = sorted(outcome for outcome in outcomes if outcome[1] in FAULTS)
    for seed, kind, details, seconds, text in faults[:FAULTS_SHOWN]:
        short = " | ".join(line.strip() for line in details.strip().splitlines()[-2:])
        print(f"\n{kind} (--seed {seed}, {seconds:.1f} s) {text or subject_of(seed).name}")
        print(f"    {short[-400:]}")
    print(
        f"\n{len(outcomes):,} calls of {len(SUBJECTS)} names in {time.monotonic() - start:.0f} s"
    )
    for kind in (*ALLOWED, *FAULTS):
        print(f"  {kind:15} {counts[kind]:>7,}")
    slowest = sorted(outcomes, key=lambda outcome: -outcome[3])[:5]
    shown = (
        f"{subject_of(seed).name} {seconds:.1f} s ({seed})" for seed, _, _, seconds, _ in slowest
    )
    print("slowest:", ", ".join(shown))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
