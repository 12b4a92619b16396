"""What every test may use, what kind of test each is, and what a skipped one means.

Marks come from what a test uses and where it lies, so that no test carries them by hand but for
`slow`. `make test` leaves out what pyproject.toml lists; `make test-all` runs the rest, and with
`UNSHUFFLE_REQUIRE=all` whatever cannot run there fails by its name.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.browser import browser, open_page

__all__ = ["browser", "open_page"]

HERE = Path(__file__).resolve().parent

# Speed is not tested by a clock: a busy machine would fail tests of something else.
settings.register_profile("dev", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("dev")  # pytest --hypothesis-profile=ci

MARKS_OF_FIXTURES = {
    "browser": "browser",
    "serve": "server",
    "server": "server",
    "gpu": "gpu",
    "real_gpu": "gpu",
    "sent_by_value": "cluster",
    "shared_data": "data",
    "peer": "repo",
}
FOLDERS = {"repo", "fuzz"}  # whose name is the mark of their tests
MARKS = {*MARKS_OF_FIXTURES.values(), *FOLDERS, "slow"}

# Reasons that say what a machine is, not what somebody forgot to install.
ALLOWED = (
    "there is no GPU",
    "there is a GPU",
    "SCIPY_ARRAY_API is not set",  # of scikit-learn's checks; tests/contracts sets it
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = {
            MARKS_OF_FIXTURES[name]
            for name in getattr(item, "fixturenames", ())
            if name in MARKS_OF_FIXTURES
        }
        if item.path.is_relative_to(HERE):
            names |= FOLDERS & {item.path.relative_to(HERE).parts[0]}
        module = getattr(item, "module", None)
        if hasattr(module, "torch") or hasattr(module, "onnx"):
            names.add("gpu")
        for name in sorted(names):
            item.add_marker(name)


def refuse_skip(report: Any, marks: set[str]) -> None:
    """Turn a skip into a failure if `UNSHUFFLE_REQUIRE` names all marks of the test, or "all"."""
    names = set(os.environ.get("UNSHUFFLE_REQUIRE", "").split(",")) - {""}
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if names and ("all" in names or marks <= names) and not reason.startswith(ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"{reason}; UNSHUFFLE_REQUIRE={os.environ['UNSHUFFLE_REQUIRE']}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    refuse_skip(report, {mark.name for mark in item.iter_markers()} & MARKS)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    refuse_skip(report, set())
    return report


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_arrives() -> None:
    """The background jobs of a shell ignore SIGINT, and whatever they start does too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def peer() -> Callable[[str], Any]:
    """A module of another library that does the same, which `make test-all` installs."""

    def load(name: str) -> Any:
        return pytest.importorskip(name, reason=f"{name} is not installed")

    return load


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a real data file, or a skipped test where there is none."""

    def find(name: str) -> Path:
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        path = Path(os.environ.get("UNSHUFFLE_DATA", beside)) / name
        if not path.exists():
            pytest.skip(f"{name} was not found; set UNSHUFFLE_DATA to the folder that holds it")
        return path

    return find


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a GPU; without one, work that is asked of it runs in PyTorch on the CPU."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        monkeypatch.setattr("unshuffle._run.device._gpu", lambda torch, name: torch.device("cpu"))
        torch.set_num_threads(1)  # tests of other processes want the other cores
    return "cuda"


@pytest.fixture
def real_gpu() -> str:
    """Name of a GPU; skips tests that make sense on one only."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return "cuda"


@pytest.fixture
def press_ctrl_c() -> Callable[..., str]:
    """Runs a script that prints "running" before long work, and interrupts it in the midst."""
    if os.name == "nt":
        pytest.skip("signals of this kind are those of Unix")

    def press(script: str, *arguments: str) -> str:
        command = [sys.executable, "-c", script, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "running\n"
                time.sleep(0.5)  # into the midst of the work
                process.send_signal(signal.SIGINT)
                rest = process.communicate(timeout=600)[0]
            finally:
                process.kill()
        assert process.returncode == 0
        return rest

    return press
