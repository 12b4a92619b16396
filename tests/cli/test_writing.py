import errno
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unshuffle
from unshuffle._files import saving as _saving
from unshuffle.cli import _demo

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def full(tmp_path, monkeypatch):
    """Make the disk of the working folder full, or, with "all", every disk."""
    write = _saving._write_and_move
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))

    def fill(which="here"):
        def fail(target, data):
            if which == "all" or target.parent == tmp_path:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(target, data)

        monkeypatch.setattr(_saving, "_write_and_move", fail)

    return fill


@pytest.fixture
def commands(tmp_path, tables):
    """Arguments of each command, and what it writes."""
    rng = np.random.RandomState(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(6):
        noise = rng.randint(0, 256, (20, 20, 3)).astype(np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")
    few = ("--points", 10, "--frames", 2)
    return {
        "layout.html": ("layout", folder, "-o", "out.html"),
        "layout.csv": ("layout", tables[0], "-o", "out.csv"),
        "collage.png": ("collage", folder / "0.png", folder, "-o", "out.png"),
        "match.csv": ("match", *tables[:2], "-o", "out.csv"),
        "match.png": ("match", folder, folder, "-o", "pairs.csv", "--sheet", "out.png"),
        "morph.gif": ("morph", folder / "0.png", folder / "1.png", *few, "-o", "out.gif"),
    }


ALL = ["layout.html", "layout.csv", "collage.png", "match.csv", "match.png", "morph.gif"]


@pytest.mark.parametrize("how", [None, "-q", "--json"])
@pytest.mark.parametrize("command", ALL)
def test_a_full_disk_is_an_error_that_says_where_the_result_is(
    run, commands, full, tmp_path, command, how
):
    old = tmp_path / f"out.{command.partition('.')[2]}"
    old.write_text("of last week")
    full()
    result = run(*commands[command], *([how] if how else []))
    assert result.exit_code == 3, result.output
    found = re.findall(
        r"Error: (\S+) could not be written: No space left on device\.( The old file is still "
        r"there\.)? The result was kept in (\S+)\.\n",
        result.stderr,
    )
    asked, is_old, kept = found[-1]
    assert asked == old.name
    assert is_old
    assert old.read_text() == "of last week"
    assert Path(kept).name == old.name
    assert Path(kept).stat().st_size > 20
    if how == "-q":
        assert result.stdout == ""
    if how == "--json":
        missing = json.loads(result.stdout)["not_in_place"]
        assert {"asked": asked, "kept": kept, "reason": "No space left on device"} in missing


@pytest.mark.parametrize("command", ALL)
def test_a_result_that_cannot_be_kept_anywhere_is_an_error_too(run, commands, full, command):
    full("all")
    result = run(*commands[command], "-q")
    assert result.exit_code == 3
    assert "No space left on device. The result could not be kept.\n" in result.stderr


@pytest.mark.parametrize("command", ALL)
def test_what_is_written_as_asked_is_no_error(run, commands, command):
    result = run(*commands[command], "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["not_in_place"] == []


def test_the_other_outputs_are_written_all_the_same(run, commands, tmp_path, monkeypatch):
    write = _saving._write_and_move
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))

    def fail(target, data):
        if target.suffix == ".png" and target.parent == tmp_path:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        write(target, data)

    monkeypatch.setattr(_saving, "_write_and_move", fail)
    result = run("layout", "photos", "-o", "w.csv", "-o", "w.png", "-o", "w.html")
    assert result.exit_code == 3
    assert result.stderr.count("Error: ") == 1
    assert (tmp_path / "w.csv").exists()
    assert (tmp_path / "w.html").exists()


def test_a_full_disk_weighs_more_than_an_interrupt(run, commands, full, monkeypatch):
    class Interrupted(unshuffle.GridLayout):
        def fit(self, X, y=None, **options):
            super().fit(X, y, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "GridLayout", Interrupted)
    full()
    assert run(*commands["layout.csv"]).exit_code == 3


def test_a_sheet_that_is_not_drawn_is_an_error(run, commands, tmp_path, monkeypatch):
    class Slow(unshuffle.KernelizedSorting):
        def fit(self, X, y, **options):
            (tmp_path / "photos" / "0.png").unlink()
            return super().fit(X, y, **options)

    monkeypatch.setattr(unshuffle, "KernelizedSorting", Slow)
    result = run(*commands["match.png"], "-q")
    assert result.exit_code == 3
    assert "out.png could not be written: " in result.stderr
    assert "changed while it was matched. The result could not be kept." in result.stderr
    assert (tmp_path / "pairs.csv").exists()


def test_a_demo_on_a_full_disk_is_an_error_of_its_own(run, monkeypatch):
    def fail(folder, n_jobs):
        raise OSError(errno.ENOSPC, "No space left on device", "unshuffle-demo/halves.png")

    monkeypatch.setattr(_demo, "_make_all", fail)
    result = run("demo")
    assert result.exit_code == 3
    assert result.stderr == (
        "Error: unshuffle-demo/halves.png could not be written: No space left on device.\n"
    )


def test_a_demo_replaces_only_what_a_demo_wrote(run, monkeypatch, tmp_path):
    def make(folder, n_jobs, name="pairs.csv"):
        (folder / name).write_text("of the demo")

    monkeypatch.setattr(_demo, "_make_all", make)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "notes.txt").write_text("mine")
    for _ in range(2):
        assert run("demo", "-o", "photos").exit_code == 0
    for name in ("pairs.csv", "wall.html", "manifest.txt"):
        (tmp_path / "photos" / name).write_text("mine")
        before = files_in("photos")
        named = "pairs.csv, manifest.txt" if name == "manifest.txt" else name
        result = run("demo", "-o", "photos")
        assert result.exit_code == 2
        assert result.stderr == (
            "Error: photos holds files that the demo would replace and that may be yours: "
            f"{named}. Choose another folder with -o, or move them away.\n"
        )
        assert files_in("photos") == before
        (tmp_path / "photos" / name).unlink()
        if name == "manifest.txt":
            assert "pairs.csv" in run("demo", "-o", "photos").stderr
        else:
            assert run("demo", "-o", "photos").exit_code == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left")])
def test_a_demo_can_be_repeated_after_a_failure(run, monkeypatch, error):
    def fail(folder, n_jobs):
        (folder / "pairs.csv").write_text("of the demo")
        raise error

    monkeypatch.setattr(_demo, "_make_all", fail)
    first, again = run("demo"), run("demo")
    assert first.exit_code == again.exit_code != 2
    assert first.stderr == again.stderr


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_standard_output_that_takes_nothing_is_an_error(tables, options):
    with open("/dev/full", "w") as nowhere:
        done = subprocess.run(
            [sys.executable, "-m", "unshuffle", "layout", tables[0], *options],
            stdout=nowhere,
            stderr=subprocess.PIPE,
            cwd=tables[0].parent,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    line = "Error: Cannot write to standard output: No space left on device.\n"
    assert done.stderr.endswith(line)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
@pytest.mark.parametrize("command", ALL)
def test_a_replaced_output_keeps_its_permissions(run, commands, tmp_path, command):
    path = tmp_path / f"out.{command.partition('.')[2]}"
    path.write_text("old")
    path.chmod(0o600)
    assert run(*commands[command], "-q").exit_code == 0
    assert path.read_bytes() != b"old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("command", "name"),
    [("match.csv", "pairs.csv"), ("layout.csv", "wall.csv"), ("layout.html", "wall.html")],
)
def test_a_file_of_the_user_is_replaced_only_if_it_is_named(
    run, commands, tmp_path, command, name
):
    arguments, path = commands[command][:-2], tmp_path / name
    for _ in range(2):  # the second replaces the first
        assert run(*arguments).exit_code == 0
    path.write_text("mine")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {name} is there, does not look like a result of unshuffle and would be lost. "
        f"Give -o with another name, or -o {name} to replace it.\n"
    )
    assert path.read_text() == "mine"
    assert run(*arguments, "-o", "other.csv" if "csv" in name else "other.html").exit_code == 0
    assert path.read_text() == "mine"
    assert run(*arguments, "-o", name).exit_code == 0
    assert path.read_bytes() != b"mine"


WALLS = ["layout.html", "collage.png"]


def files_in(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", WALLS)
def test_a_wall_in_a_folder_deletes_nothing_but_the_wall_before(run, commands, tmp_path, command):
    arguments = commands[command][:-2]
    (tmp_path / "site" / "photos").mkdir(parents=True)
    (tmp_path / "site" / "thesis.txt").write_text("mine")
    (tmp_path / "site" / "photos" / "a.jpg").write_text("mine")
    assert run(*arguments, "-o", "site/index.html").exit_code == 0
    before = files_in("site")
    result = run(*arguments, "-o", "site")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: Cannot write site: the folder holds other files, which would be lost: "
        "index.html, photos/, thesis.txt. Give the name of a new folder, or move these files "
        "away.\n"
    )
    assert files_in("site") == before
    assert run(*arguments, "-o", "wall").exit_code == 0
    assert run(*arguments, "-o", "wall", "--seed", "1").exit_code == 0
    (tmp_path / "wall" / "notes.txt").write_text("mine")
    before = files_in("wall")
    result = run(*arguments, "-o", "wall")
    assert result.exit_code == 2
    assert "would be lost: notes.txt." in result.stderr
    assert files_in("wall") == before


@pytest.mark.parametrize("command", WALLS)
def test_a_folder_that_gets_a_file_during_the_work_keeps_it(
    run, commands, tmp_path, monkeypatch, command
):
    estimator = "GridLayout" if command == "layout.html" else "Collage"
    fit = getattr(unshuffle, estimator).fit

    def slow(self, *arguments, **options):
        (tmp_path / "wall" / "notes.txt").write_text("mine")
        return fit(self, *arguments, **options)

    arguments = commands[command][:-2]
    assert run(*arguments, "-o", "wall").exit_code == 0
    before = files_in("wall")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(getattr(unshuffle, estimator), "fit", slow)
    result = run(*arguments, "-o", "wall", "-q")
    assert result.exit_code == 3
    assert "would be lost: notes.txt." in result.stderr
    kept = re.search(r"The result was kept in (\S+)\.\n", result.stderr)[1]
    assert (Path(kept) / "index.html").exists()
    assert "The old wall is still there." in result.stderr
    assert files_in("wall") == {**before, Path("wall/notes.txt"): b"mine"}


@pytest.mark.parametrize("command", WALLS)
def test_the_working_folder_can_be_a_wall(run, commands, tmp_path, monkeypatch, command):
    (tmp_path / "here").mkdir()
    (tmp_path / "photos" / "notes.png").write_text("no picture")
    monkeypatch.chdir(tmp_path / "here")
    for output in (".", "./"):
        result = run(*commands[command][:-2], "-o", output)
        assert result.exit_code == 0, result.output
        assert "Page, to open in a browser: index.html\n" in result.stdout
    assert "index.html" in os.listdir()
    assert len(os.listdir()) == 2
    # Beside the wall, like that of any other.
    assert (tmp_path / "here.skipped.csv").exists()
    for output in ("..", "/"):
        result = run(*commands[command][:-2], "-o", output)
        assert result.exit_code == 2
        assert f"Cannot write {output}: the folder holds other files" in result.stderr


def test_the_working_folder_on_a_full_disk_is_kept_under_its_name(
    run, commands, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def fail(change=os.rename):
        def call(source, target):
            if Path(target).parent == tmp_path / "here":
                raise OSError(errno.ENOSPC, "No space left on device")
            return change(source, target)

        return call

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(os, "rename", fail())
    result = run(*commands["layout.html"][:-2], "-o", ".", "-q")
    assert result.exit_code == 3
    assert os.listdir() == []
    (kept,) = (tmp_path / "elsewhere").glob("*/here/index.html")
    assert f"The result was kept in {kept.parent}." in result.stderr


@pytest.mark.parametrize("command", ["match.png", "match.csv", "morph.gif"])
def test_a_folder_is_no_name_for_a_file(run, commands, command):
    for output in (".", "..", "/"):
        result = run(*commands[command][:3], "-o", output)
        assert result.exit_code == 2
        assert f"Cannot write {output}: it is a folder. Give a file name in it." in result.stderr


def test_exit_statuses_are_documented(run):
    assert "3 a result is not where it was asked for" in " ".join(run("--help").stdout.split())


@pytest.mark.parametrize(
    ("command", "file"), [("layout", "wall.html"), ("collage", "collage.png")]
)
def test_help_says_what_is_written_with_json(run, commands, tmp_path, command, file):
    words = " ".join(run(command, "--help").stdout.split())
    assert f"Without -o it writes {file}" in words
    assert "with --json it writes no file unless -o asks for one" in words
    arguments = commands[f"{command}{Path(file).suffix}"][:-2]
    assert run(*arguments, "--json").exit_code == 0
    assert not (tmp_path / file).exists()
    assert run(*arguments, "--json", "-o", file).exit_code == 0
    assert (tmp_path / file).exists()
    (tmp_path / file).unlink()
    assert run(*arguments).exit_code == 0
    assert (tmp_path / file).exists()
