import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from tests.browser import browser, open_page

__all__ = ["browser", "open_page"]

# Speed is not tested by a clock: a busy machine would fail tests of something else.
settings.register_profile("unshuffle", deadline=None)
settings.load_profile("unshuffle")


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a real data file, or a skipped test where the data are not at hand."""

    def find(name: str) -> Path:
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        path = Path(os.environ.get("UNSHUFFLE_DATA", beside)) / name
        if not path.exists():
            pytest.skip(f"{name} is not at hand; set UNSHUFFLE_DATA to the folder that holds it")
        return path

    return find


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a GPU; without one, work that is asked of it runs in PyTorch on the cores."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        monkeypatch.setattr("unshuffle._device.STAND_IN", "cpu")
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
def sigint() -> None:
    """For tests that press Ctrl-C: skips them where the signal is ignored and never arrives."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("SIGINT is ignored, as in the background jobs of a shell")


@pytest.fixture
def press_ctrl_c(sigint: None) -> Callable[..., str]:
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
                rest = process.communicate(timeout=60)[0]
            finally:
                process.kill()
        assert process.returncode == 0
        return rest

    return press
