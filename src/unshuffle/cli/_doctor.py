"""`unshuffle doctor`: what is installed, and small checks that it works.

Each check imports what it needs, so that a broken library fails one line and not the command.
"""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from unshuffle._run.environment import look_around, missing_parts, printable
from unshuffle.cli import CHECK_FAILED
from unshuffle.cli._app import one_line, print_error, print_output, progress_bar, user_warnings
from unshuffle.cli._help import program_name, with_own_pip
from unshuffle.cli._options import DoctorOptions

REPORT = f"If it still fails, report it with the output of: {program_name()} doctor --json"


class WrongAnswer(Exception):
    """A check that ran to its end and found something else than it should."""


@dataclass(frozen=True)
class Check:
    """Something to try, and what to do if it fails."""

    name: str
    run: Callable[[], str]
    advice: str


@dataclass(frozen=True)
class CheckOutcome:
    """What a check found or why it failed, and what to do then."""

    name: str
    ok: bool
    seconds: float
    found: str
    advice: str


def doctor(options: DoctorOptions) -> int:
    """Print the report and the checks, and return the exit code: 0, or 1 if a check failed."""
    talks = not (options.as_json or options.quiet)
    with progress_bar("Looking around", show=not options.quiet) as advance:
        advance(0.0, "")
        environment = look_around()
    if talks:
        for line in [*environment.lines(every=options.every), "Checks"]:
            print_output(with_own_pip(line))
    outcomes = []
    for done, check in enumerate(CHECKS):
        with progress_bar("Checking", show=not options.quiet) as advance:
            advance(done / len(CHECKS), f"{check.name} (longer the first time)")
            outcome = _try(check)
        outcomes.append(outcome)
        if talks:
            _show(outcome)
        elif options.quiet and not options.as_json and not outcome.ok:
            print_error(f"{outcome.name}: {outcome.found}. {outcome.advice}")
    n_failed = sum(not each.ok for each in outcomes)
    if options.as_json:
        checks = [asdict(each) for each in outcomes]
        report = {**environment.record(), "checks": checks, "ok": not n_failed}
        print_output(json.dumps(report, allow_nan=False))
    elif talks:
        total = sum(each.seconds for each in outcomes)
        failed = f"{n_failed} of {len(outcomes)} checks failed" if n_failed else "All is well"
        more = "" if options.every else " --all also shows libraries, folders and further extras."
        print_output(f"{failed}, after {total:.1f} s.{more}")
    return CHECK_FAILED if n_failed else 0


def _try(check: Check) -> CheckOutcome:
    began = time.perf_counter()
    try:
        with user_warnings():
            found, ok = check.run(), True
    except Exception as error:  # a broken library may raise anything
        named = isinstance(error, WrongAnswer | ImportError)
        found = one_line(error if named else f"{type(error).__name__}: {error}").rstrip(". ")
        ok = False
    seconds = round(time.perf_counter() - began, 3)
    return CheckOutcome(check.name, ok, seconds, found, "" if ok else f"{check.advice} {REPORT}")


def _show(outcome: CheckOutcome) -> None:
    mark, plain = ("✓", "ok") if outcome.ok else ("✗", "FAILED")
    mark = mark if printable(mark) == mark else plain
    print_output(
        printable(f"  {mark} {outcome.name:<20}{outcome.seconds:5.2f} s  {outcome.found}")
    )
    if not outcome.ok:
        print_output(printable(f"    {with_own_pip(outcome.advice)}"))


def _check_requirements() -> str:
    missing = missing_parts("unshuffle")
    if missing:
        raise WrongAnswer(f"missing: {', '.join(missing)}")
    return "all are installed and new enough"


def _check_match() -> str:
    from unshuffle import KernelizedSorting
    from unshuffle.datasets import make_paired_views

    X, y, truth = make_paired_views(60, noise=0.02, bend=0.2, random_state=0)
    sorting = KernelizedSorting(random_state=0).fit(X, y)
    n_right = int((sorting.permutation_ == truth).sum())
    return _judge(n_right >= 54, f"{n_right} of {len(X)} pairs right")


def _check_layout() -> str:
    import numpy as np

    from unshuffle import GridLayout
    from unshuffle.metrics import neighbor_distance

    colors = np.random.RandomState(0).rand(144, 3)
    grid = GridLayout((12, 12), random_state=0).fit(colors).grid_
    if not np.array_equal(np.sort(grid, axis=None), np.arange(144)):
        raise WrongAnswer("the grid does not hold every item once")
    near = neighbor_distance(colors, grid)
    by_chance = neighbor_distance(colors, np.arange(144).reshape(12, 12))
    found = f"neighbors differ by {near:.2f}, by {by_chance:.2f} in random order"
    return _judge(near < by_chance / 2, found)


def _check_sets() -> str:
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    from unshuffle.kernels import ExpectedLikelihoodKernel

    rng = np.random.RandomState(0)
    points = rng.normal(size=(120, 30, 2))
    labels = np.arange(120) % 2
    rings = points / np.linalg.norm(points, axis=2, keepdims=True)
    sets = np.where(labels[:, None, None] == 1, 1.4 * rings, points)
    kernel = ExpectedLikelihoodKernel(3, random_state=0)
    model = make_pipeline(kernel, SVC(kernel="precomputed")).fit(sets[:80], labels[:80])
    n_right = int((model.predict(sets[80:]) == labels[80:]).sum())
    return _judge(n_right >= 32, f"{n_right} of 40 new sets right")


def _check_orbit() -> str:
    import numpy as np

    from unshuffle import OrbitLearner

    turn = np.radians(15)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    before = np.random.RandomState(0).normal(size=(60, 2))
    learner = OrbitLearner(1, structure="skew", n_init=1, random_state=0)
    learner.fit(before, before @ rotation.T)
    moved = learner.orbit(np.array([1.0, 0.0]), 6 * learner.coefficients_.mean(axis=0))
    error = float(np.abs(moved - [0.0, 1.0]).max())
    return _judge(error < 0.01, f"six turns of 15 degrees miss 90 degrees by {error:.1g}")


def _check_picture() -> str:
    import numpy as np
    from PIL import Image

    from unshuffle.images import read_image, save_sheet

    pixels = np.random.RandomState(0).randint(0, 256, (48, 64, 3)).astype(np.uint8)
    with tempfile.TemporaryDirectory(prefix="unshuffle-") as folder:
        path = Path(folder) / "picture.png"
        save_sheet(Image.fromarray(pixels), path)
        again, _ = read_image(path, size=(48, 64))
    return _judge(np.array_equal(again, pixels), "a picture was written and read without a change")


def _check_torch() -> str:
    if find_spec("torch") is None:
        return "not installed, which is fine without a GPU"
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = float((torch.ones(8, 8, device=device) @ torch.ones(8, 8, device=device)).sum())
    return _judge(total == 512, f"{torch.__version__} computes on {device}")


def _judge(ok: bool, found: str) -> str:
    if not ok:
        raise WrongAnswer(f"wrong answer: {found}")
    return found


def _reinstall(*names: str) -> str:
    return f"Try: pip install --force-reinstall {' '.join(names)}."


CHECKS = (
    Check("requirements", _check_requirements, "Try: pip install --upgrade unshuffle."),
    Check("match", _check_match, _reinstall("numpy", "scipy", "scikit-learn", "numba")),
    Check("layout", _check_layout, _reinstall("numpy", "numba")),
    Check("classify sets", _check_sets, _reinstall("numba", "scikit-learn")),
    Check("learn a rotation", _check_orbit, _reinstall("numpy", "scipy")),
    Check(
        "pictures",
        _check_picture,
        "Set TMPDIR to a folder that can be written, if that is the problem. "
        + _reinstall("pillow"),
    ),
    Check("PyTorch", _check_torch, _reinstall("torch")),
)
