"""Examples and documentation: what they show can be run, and what they name exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unshuffle import KernelizedSorting
from unshuffle.matching._kernelized_sorting import LARGE

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))

if not (ROOT / "docs" / "index.md").exists():
    pytest.skip("a source archive has neither docs nor examples", allow_module_level=True)

COUNT_FIGURES = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
runpy.run_path(sys.argv[1], run_name="__main__")
for number in plt.get_fignums():
    plt.figure(number).canvas.draw()
print("figures:", len(plt.get_fignums()))
"""


def run(code, *arguments, folder):
    # A process of its own: examples choose a back end and warn, and a reader starts them alike.
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        # Threads of PyTorch that wait in a loop slow down everything while other tests run.
        env={**os.environ, "MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def code_blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_examples_to_run():
    assert len(EXAMPLES) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_finishes_with_a_figure(path, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = run(COUNT_FIGURES, path, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = re.search(r"^figures: (\d+)$", done.stdout, re.MULTILINE)
    if figures is None and "pip install" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert figures is not None
    assert int(figures[1]) >= 1


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if "encoders" in path.stem], ids=lambda path: path.stem
)
def test_example_without_pytorch_says_what_to_install(path, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (tmp_path / "torch.py").write_text("raise ImportError", encoding="utf-8")  # found first
    done = run(COUNT_FIGURES, path, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_asks_a_question_and_ends_with_what_to_try(path):
    text = path.read_text("utf-8")
    title = text.split("\n")[1]
    assert title.endswith("?")
    assert "# What to try next\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["matching.md", "trust.md", "layout.md", "alignment.md", "sets.md", "orbits.md", "cluster.md"],
)
def test_the_guide_runs_from_top_to_bottom(name, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if name == "cluster.md":
        pytest.importorskip("distributed", reason="Dask is not installed")
    blocks = code_blocks(ROOT / "docs" / name)
    assert len(blocks) > 1
    done = run("\n".join(blocks), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "the guide leaves files behind"


def test_guides_and_docstring_say_when_auto_changes_the_method():
    pages = [
        (ROOT / "docs" / name).read_text("utf-8") for name in ("matching.md", "command-line.md")
    ]
    for text in (KernelizedSorting.__doc__, *pages):
        assert f"up to {LARGE:,} items" in " ".join(text.lower().split())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
