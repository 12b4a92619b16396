"""Examples: each asks a question and ends with what to try. `make docs` runs them all."""

import os
import subprocess
import sys

import pytest
from tests.repo.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def run(path, *, folder):
    # A process of its own: examples choose a back end and warn, and a reader starts them alike.
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    return subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        # Threads of PyTorch that wait in a loop slow down everything while other tests run.
        env={
            **os.environ,
            "MPLBACKEND": "Agg",
            "OMP_WAIT_POLICY": "passive",
            "PYTHONPATH": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_there_are_examples_to_run():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if "encoders" in path.stem], ids=lambda path: path.stem
)
def test_example_without_pytorch_says_what_to_install(path, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError", encoding="utf-8")  # found first
    done = run(path, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_asks_a_question_and_ends_with_what_to_try(path):
    text = path.read_text("utf-8")
    title = text.split("\n")[1]
    assert title.endswith("?")
    assert "# What to try next\n" in text
