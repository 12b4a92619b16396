import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from unshuffle import _saving
from unshuffle._files import check_regular_file
from unshuffle._saving import replace_file
from unshuffle.images import read_features
from unshuffle.layout import Positions
from unshuffle.matching import Matches

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


def test_a_plain_file_is_accepted_through_links(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert check_regular_file(tmp_path / "a.txt", "`path`") == tmp_path / "a.txt"
    if sys.platform != "win32":
        (tmp_path / "b.txt").symlink_to("a.txt")
        assert check_regular_file(str(tmp_path / "b.txt"), "`path`") == tmp_path / "b.txt"


def test_missing_files_and_folders_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(ValueError, match=r"There is no file .*none\.txt \(--frozen\)\. Check"):
        check_regular_file(tmp_path / "none.txt", "--frozen")
    with pytest.raises(ValueError, match="There is no file"):
        check_regular_file(tmp_path / "a.txt" / "b.txt", "--frozen")
    with pytest.raises(ValueError, match=r"\(A\) is a folder\. Give a file"):
        check_regular_file(tmp_path, "A")
    with pytest.raises(ValueError, match=r"A is .* no file has a NUL character"):
        check_regular_file("a\0b", "A")


@needs_links
def test_pipes_devices_and_circles_of_links_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for name in ("pipe.csv", "zero.csv"):
        with pytest.raises(ValueError, match=rf"{name} \(A\) leads to a device or a pipe"):
            check_regular_file(tmp_path / name, "A")
    with pytest.raises(ValueError, match=r"loop\.csv \(A\) cannot be opened: Too many levels"):
        check_regular_file(tmp_path / "loop.csv", "A")


@needs_links
def test_nothing_is_loaded_from_a_device_or_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    for load in (Matches.load, Positions.load):
        for name in ("pipe.csv", "zero.json"):
            with pytest.raises(ValueError, match="leads to a device or a pipe"):
                load(tmp_path / name)
    with pytest.raises(ValueError, match="leads to a device or a pipe"):
        read_features(tmp_path / "zero.npy", 3)


HELD = """
import os, sys, time
from pathlib import Path
from unshuffle import _saving
os.replace = lambda part, target: (print(part, flush=True), time.sleep(60))
_saving.replace_file(Path(sys.argv[1]), b"half")
"""


@pytest.fixture
def held(tmp_path):
    """A run that has written its part and not moved it yet; gives the run and the part."""
    command = [sys.executable, "-c", HELD, tmp_path / "a.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        part = Path(process.stdout.readline().strip())
        yield process, part
        process.kill()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
@needs_links
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(mode)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    (tmp_path / "link.csv").symlink_to(path)
    replace_file(tmp_path / "link.csv", b"newer")
    assert (tmp_path / "link.csv").is_symlink()
    assert path.read_bytes() == b"newer"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
@needs_links
def test_a_new_file_follows_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "a.csv", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o666 & ~umask


@needs_links
def test_what_only_its_owner_may_read_is_never_open_to_others(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o600)
    seen = []
    monkeypatch.setattr(_saving.os, "fsync", lambda handle: seen.append(os.fstat(handle).st_mode))
    replace_file(path, b"new")
    assert [stat.S_IMODE(mode) for mode in seen] == [0o600]


def test_a_write_that_fails_leaves_the_old_file_and_names_it(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_saving.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*a\.csv'"):
        replace_file(path, b"new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


@needs_links
def test_parts_of_a_killed_run_are_removed_by_the_next(tmp_path, held):
    process, part = held
    process.kill()
    process.wait()
    assert part.exists()
    replace_file(tmp_path / "b.csv", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["b.csv"]


@needs_links
def test_parts_of_a_living_run_and_files_of_others_stay(tmp_path, held):
    _, part = held
    others = [".unshuffle-notes.part", f"unshuffle-{'0' * 32}.part", f".unshuffle-{'0' * 32}"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    (tmp_path / f".unshuffle-{'1' * 32}.part").mkdir()
    replace_file(tmp_path / "b.csv", b"new")
    names = {each.name for each in tmp_path.iterdir()}
    assert names == {part.name, *others, f".unshuffle-{'1' * 32}.part", "b.csv"}


def test_where_files_cannot_be_locked_only_old_parts_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(_saving, "fcntl", None)
    young, old = (tmp_path / f".unshuffle-{digit * 32}.part" for digit in "ab")
    for part in (young, old):
        part.write_text("half")
    os.utime(old, (0, 0))
    replace_file(tmp_path / "b.csv", b"new")
    assert {each.name for each in tmp_path.iterdir()} == {young.name, "b.csv"}
