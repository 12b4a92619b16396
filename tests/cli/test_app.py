import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unshuffle
from unshuffle.base import SearchState
from unshuffle.cli import _demo
from unshuffle.cli._app import progress_bar, report_to, time_left
from unshuffle.cli._app import run as run_app
from unshuffle.cli._demo import neighbor_agreement
from unshuffle.datasets import make_paired_views


def shell(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "unshuffle", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_version_and_help_are_printed():
    assert shell("--version").stdout == f"unshuffle {unshuffle.__version__}\n"
    nothing = shell()
    assert nothing.returncode == 0
    assert "match" in nothing.stdout
    assert "demo" in nothing.stdout
    assert "unshuffle match english/ deutsch/" in shell("match", "--help").stdout
    assert "unshuffle layout photos/" in shell("layout", "--help").stdout
    assert "unshuffle collage portrait.jpg" in shell("collage", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("shuffle", "No such command 'shuffle'."),
        ("layuot", "No such command 'layuot'."),
        ("match a", "Missing argument 'B'."),
        ("match --zzz", "No such option: --zzz."),
        ("match a b --n-init 0", "'--n-init': give 1 or more, not 0."),
        ("match a b --candidates 0", "'--candidates': give 1 or more, not 0."),
        (
            "match a b --jobs 0",
            "'--jobs': give a number of cores up to 1024, or -1 for all, not 0",
        ),
        ("match a b --jobs 100000", "'--jobs': give a number of cores up to 1024, or -1 for all,"),
        ("layout a --jobs -99999", "'--jobs': give a number of cores up to 1024, or -1 for all,"),
        ("demo --jobs 0", "'--jobs': give a number of cores up to 1024, or -1 for all, not 0"),
        ("match a b --unmatched-cost -1", "'--unmatched-cost': give a number above 0, not -1."),
        ("match a b --unmatched-cost 0", "'--unmatched-cost': give a number above 0, not 0."),
        ("match a b --unmatched-cost nan", "'--unmatched-cost': give a number above 0, not nan."),
        (
            "match a b --method foo",
            "'--method': 'foo' is not one of 'auto', 'refined', 'low-rank',",
        ),
        (
            "match a b --seed x",
            "'--seed': give a whole number from 0 to 4294967295, not 'x'.",
        ),
        ("match a b --seed -1", "'--seed': give a number from 0 to 4294967295, not -1."),
        ("match a b --n-init 1,000", "'--n-init': give a whole number, 1 or more, not '1,000'."),
        ("match a b --jobs all", "or -1 for all, not 'all'."),
        (
            "match a b --unmatched-cost 0,5",
            "'--unmatched-cost': give a number above 0, with a point, not '0,5'.",
        ),
        ("collage a b --smoothness half", "give a number from 0 to 1, not 'half'."),
        ("serve --port http", "'--port': give a whole number from 0 to 65535, not 'http'."),
        ("serve --port 99999", "'--port': give a number from 0 to 65535, not 99999."),
        ("match a b --n-init", "'--n-init' requires an argument."),
        ("layout a/1.jpg a/2.jpg a/3.jpg", "Got 3 pictures (a/1.jpg, a/2.jpg, ...). Give the"),
        ("layout", "Missing argument 'FOLDER'."),
        ("layout a --summary 1", "'--summary': give 2 or more, not 1."),
        ("layout a --tile 0", "'--tile': give a number from 1 to 1024, not 0."),
        ("layout a --quality ok", "'--quality': 'ok' is not one of 'fast', 'balanced',"),
        ("collage a", "Missing argument 'FOLDER'."),
        ("collage a b --smoothness -1", "'--smoothness': give a number from 0 to 1, not -1."),
        ("collage a b --smoothness 1.5", "'--smoothness': give a number from 0 to 1, not 1.5."),
        ("collage a b --smoothness nan", "'--smoothness': give a number from 0 to 1, not nan."),
        ("collage a b --repeat 0", "'--repeat': give 1 or more, not 0."),
        ("collage a b --detail 17", "'--detail': give a number from 1 to 16, not 17."),
        (
            "collage a b --neighbors all",
            "'--neighbors': 'all' is not one of 'kernel', 'laplacian'",
        ),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_two(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["unshuffle", *arguments.split()])
    assert run_app() == 2
    done = capsys.readouterr()
    command = arguments.split()[0]
    asked = "unshuffle" if command in ("shuffle", "layuot") else f"unshuffle {command}"
    assert done.out == ""
    assert words in done.err
    assert re.fullmatch(rf"Error: .+([^.?]\.|\?) Try '{asked} --help'\.\n", done.err)


@pytest.mark.parametrize("late", [False, True])
def test_interrupt_while_loading_is_one_line_and_exit_code_130(late, tmp_path):
    stopped = "unshuffle.matching" if late else "typer"
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {stopped!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "sys.argv = ['unshuffle', 'match', 'a.csv', 'b.csv']\n"
        "from unshuffle.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "Error: Interrupted before there was a result; nothing was written.\n"


def test_importing_the_command_line_is_light():
    code = "import sys, unshuffle.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"typer", "PIL", "matplotlib", "torch"} & set(loaded)


@pytest.mark.slow
def test_piped_output_has_no_control_characters(tables):
    done = shell("match", *tables[:2], cwd=tables[0].parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Matched 40 of 40")
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", done.stdout + done.stderr)


def interrupted_run(folder, *arguments):
    """Run a command in a terminal, press Ctrl-C once it has a result; gives code and streams."""
    terminal, end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "unshuffle", *arguments],
        cwd=folder,
        stderr=end,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(end)
    os.set_blocking(terminal, False)
    seen, limit = b"", time.monotonic() + 100
    try:
        # The bar shows a step as soon as the solver has reported one: then there is a result.
        while not re.search(rb"step \d+", seen):
            assert process.poll() is None, seen
            assert time.monotonic() < limit, seen
            try:
                seen += os.read(terminal, 65536)
            except BlockingIOError:
                time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            try:
                seen += os.read(terminal, 65536)
            except (BlockingIOError, OSError):
                time.sleep(0.05)
        code = process.poll()
    finally:
        if process.poll() is None:
            process.kill()
        stdout = process.communicate()[0]
        with contextlib.suppress(OSError):
            seen += os.read(terminal, 65536)
        os.close(terminal)
    return code, stdout, seen


def test_time_left_follows_from_the_pace_so_far():
    assert time_left(20.0, 0.25) == "60 seconds left"
    assert time_left(1.0, 0.5) == "", "too early to tell"
    assert time_left(30.0, 0.0) == ""
    assert time_left(30.0, 1.0) == ""


def test_the_bar_shows_stage_percent_and_time_left(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    clock = iter(range(0, 10**6, 30))
    monkeypatch.setattr("unshuffle.cli._app.time.monotonic", lambda: float(next(clock)))
    with progress_bar("Matching", show=True) as advance:
        report_to(advance)(SearchState(3, 1.0, np.arange(2), stage="climbing", fraction=0.25))
    shown = stream.getvalue()
    assert "25 %" in shown
    assert "step 3: climbing" in shown
    assert re.search(r"\d+ (seconds|minutes) left", shown)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_note_stands_on_a_line_of_its_own_above_the_bar():
    code = (
        "from unshuffle.cli._app import note, progress_bar\n"
        "with progress_bar('Matching', show=True) as advance:\n"
        "    note('Expected: about 24 seconds, 0.3 GB.')\n"
        "    advance(0.5, 'climbing')\n"
    )
    terminal, end = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", code], stderr=end, check=True, env=environment)
    os.close(end)
    plain = re.sub(rb"\x1b\[[\d;?]*[A-Za-z]", b"", os.read(terminal, 65536)).decode()
    os.close(terminal)
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", plain)]
    assert "Expected: about 24 seconds, 0.3 GB." in lines


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_in_mid_run_writes_the_pairs_and_exits_130(tmp_path):
    X, y, _ = make_paired_views(900, noise=0.6, random_state=0)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", y)
    code, stdout, seen = interrupted_run(tmp_path, "match", "a.npy", "b.npy", "--n-init", "200")
    assert code == 130, seen[-2000:]
    assert b"Interrupted: this is the best match found so far" in seen
    assert "Matched 900 of 900" in stdout
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == 901


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_in_mid_run_writes_the_layout_and_exits_130(tmp_path):
    np.save(tmp_path / "a.npy", np.random.RandomState(0).rand(40_000, 3))
    code, stdout, seen = interrupted_run(tmp_path, "layout", "a.npy", "--quality", "best")
    assert code == 130, seen[-2000:]
    assert b"Interrupted: this is the best layout found so far" in seen
    assert "Laid out 40,000 items on 200 x 200 cells" in stdout
    assert len((tmp_path / "wall.csv").read_text().splitlines()) == 40_001


def test_agreement_of_neighbors_counts_both_directions():
    assert neighbor_agreement(np.array([[1, 1], [2, 1]])) == 0.5
    assert neighbor_agreement(np.ones((3, 4), int)) == 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_demo_writes_pictures_and_says_so(run):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = run("demo")
    assert result.exit_code == 0, result.output
    right = re.search(r"(\d+) of 240 right", result.stdout)
    assert int(right[1]) > 120
    share = re.search(r"(\d+)% of neighbors", result.stdout)
    assert int(share[1]) > 50
    for name in ("halves.png", "digits.png"):
        assert f"unshuffle-demo/{name}" in result.stdout
        with Image.open(f"unshuffle-demo/{name}") as picture:
            assert min(picture.size) > 600
    assert "unshuffle-demo/collage.jpg" in result.stdout
    with Image.open("unshuffle-demo/collage.jpg") as picture:
        both = np.asarray(picture, dtype=float).mean(axis=2)
    # Brightness of quarters of cells: petals show, not only the outline.
    template, collage = (part.reshape(60, 7, 90, 7) for part in (both[:, :630], both[:, 644:]))
    light = [part.mean(axis=(1, 3)) for part in (template, collage)]
    assert np.corrcoef(light[0].ravel(), light[1].ravel())[0, 1] > 0.9
    blossom = [part[15:40, 28:58].ravel() for part in light]
    assert np.corrcoef(*blossom)[0, 1] > 0.7
    assert re.search(r"\n  unshuffle layout FOLDER\n  unshuffle match --help\n$", result.stdout)
    for name in ("digit-morph.png", "set-upright.png", "turned-digits.png"):
        assert f"unshuffle-demo/{name}" in result.stdout
        with Image.open(f"unshuffle-demo/{name}") as picture:
            assert np.asarray(picture.convert("L")).std() > 10
    others = (".html", ".csv", ".txt")
    made = {name for name in os.listdir("unshuffle-demo") if not name.endswith(others)}
    root = Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    shown = re.findall(r"\((?:docs/)?images/([\w.-]+)\)", text)
    assert len(made) == 6
    assert made <= set(shown) or not (root / "docs").exists()  # in a source archive
    assert "unshuffle-demo/wall.html" in result.stdout
    with open("unshuffle-demo/wall.html", encoding="ascii") as page:
        assert "600 handwritten digits" in page.read()


def test_without_matplotlib_the_demo_says_what_is_missing(run, monkeypatch):
    for name, value in (("_match_halves", 179), ("_lay_out_digits", 0.81), ("_draw_flower", None)):
        monkeypatch.setattr(_demo, name, lambda folder, n_jobs, value=value: value)
    monkeypatch.setattr(_demo, "_has_matplotlib", lambda: False)
    result = run("demo")
    assert result.exit_code == 0, result.output
    missing = r"Three more pictures need matplotlib: .*pip install 'unshuffle\[plot\]'"
    assert re.search(missing, result.stdout)
    assert "turned-digits" not in result.stdout


def test_demo_refuses_a_folder_that_cannot_be_made(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "-o", "file/sub")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: Cannot make the folder file/sub: ")
    assert result.stderr.count("\n") == 1
