"""Walls in folders: what replaces them, what is refused, and what is left after a failure."""

import errno
import hashlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._files import saving as _saving
from unshuffle._files.folders import (
    FILES,
    MANIFEST,
    PAGE,
    PAGE_MARK,
    check_page_folder,
    replace_folder,
)

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked")


def write(target, words="new", *, meanwhile=lambda: None):
    """A wall of a few files that all hold these words."""

    def fill(part):
        (part / "sheets" / "0").mkdir(parents=True)
        for name in ("viewer.js", "viewer.css", "sheets/0/0-0.jpg", "sheets/0/0-1.jpg"):
            (part / name).write_text(words)
        meanwhile()
        return PAGE_MARK + f'<link href="{FILES}/viewer.css">{words}'.encode()

    replace_folder(Path(target), fill)


def contents(folder):
    """Files and links under a folder, by their relative names."""
    return {
        each.relative_to(folder).as_posix(): os.readlink(each)
        if each.is_symlink()
        else each.read_bytes()
        for each in Path(folder).rglob("*")
        if each.is_symlink() or each.is_file()
    }


def files_of(wall):
    """The folder of the files that a page shows."""
    page = (wall / PAGE).read_text()
    return wall / page.partition('href="')[2].partition("/")[0]


def is_whole(wall, words):
    """Whether a wall shows these words everywhere."""
    shown = [
        each for each in files_of(wall).rglob("*") if each.is_file() and each.name != MANIFEST
    ]
    page = (wall / PAGE).read_text()
    return page.endswith(words) and [each.read_text() for each in shown] == [words] * 4


@pytest.fixture
def wall(tmp_path):
    write(tmp_path / "wall", "old")
    return tmp_path / "wall"


def refused(wall):
    """Why a folder is refused; nothing in it changes, before or after the work."""
    before = contents(wall)
    with pytest.raises(ValueError, match="would be lost") as early:
        check_page_folder(wall)
    with pytest.raises(ValueError, match="would be lost") as late:
        write(wall)
    assert str(early.value).partition(":")[2] == str(late.value).partition(":")[2]
    assert contents(wall) == before
    return str(early.value)


def test_a_wall_replaces_a_wall_and_nothing_is_left_of_the_old_one(wall):
    assert is_whole(wall, "old")
    inode = wall.stat().st_ino
    for words in ("new", "new", "old"):
        assert check_page_folder(wall) == wall
        write(wall, words)
        assert is_whole(wall, words)
        assert sorted(each.name for each in wall.iterdir()) == [files_of(wall).name, PAGE]
        assert os.listdir(wall.parent) == ["wall"]
    # The folder itself stays: its permissions, and shells that are in it.
    assert wall.stat().st_ino == inode


def test_the_same_wall_has_the_same_files(tmp_path):
    write(tmp_path / "one")
    write(tmp_path / "other")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_missing_files_of_a_wall_are_no_reason_to_refuse_it(wall):
    shutil.rmtree(files_of(wall) / "sheets")
    (wall / PAGE).unlink()
    write(wall, "old")
    assert is_whole(wall, "old")
    (files_of(wall) / "viewer.js").unlink()
    write(wall)
    assert is_whole(wall, "new")
    assert len(os.listdir(wall)) == 2


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("thesis.txt", "thesis.txt"),
        ("photos/a.jpg", "photos/"),
        (".hidden", ".hidden"),
        ("INDEX.html", "INDEX.html"),
        ("{files}/my.txt", "{files}/my.txt"),
        ("{files}/sheets/0/0-2.jpg", "{files}/sheets/0/0-2.jpg"),
        ("{files}/more/a.jpg", "{files}/more/"),
        ("files-0123456789abcdef/a.jpg", "files-0123456789abcdef/"),
    ],
)
def test_added_files_are_named_and_kept(wall, place, shown):
    files = files_of(wall).name
    path = wall / place.format(files=files)
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    assert f"would be lost: {shown.format(files=files)}. " in refused(wall)
    assert "Give the name of a new folder, or move these files away." in refused(wall)
    if path.parent.parent == wall.parent:
        path.unlink()
        write(wall)
        assert is_whole(wall, "new")


@pytest.mark.parametrize("name", [PAGE, "viewer.js", "sheets/0/0-0.jpg"])
@pytest.mark.parametrize("words", ["mine", "mine, longer"])
def test_changed_files_are_named_and_kept(wall, name, words):
    path = wall / name if name == PAGE else files_of(wall) / name
    stamp = path.stat()
    text = path.read_text()
    path.write_text(text.replace("old", words))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert f"{path.relative_to(wall).as_posix()} (changed since)" in refused(wall)
    path.write_text(text)
    write(wall)
    assert is_whole(wall, "new")


def test_many_names_are_counted(wall):
    for k in range(25):
        (wall / f"{k}.txt").write_text("mine")
    assert "0.txt, 1.txt, 2.txt, 3.txt, 4.txt, 5.txt, 6.txt, 7.txt, 8.txt, 9.txt and 15 more." in (
        refused(wall)
    )


def test_files_of_the_system_stay_and_do_not_matter(wall):
    first = files_of(wall)
    for place in (wall, first):
        for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
            (place / name).write_text("view")
    for words in ("new", "newer"):
        write(wall, words)
        assert is_whole(wall, words)
    assert {each.name for each in first.iterdir()} == {".DS_Store", "Thumbs.db", "desktop.ini"}
    assert (wall / ".DS_Store").read_text() == "view"


@needs_links
def test_links_in_a_wall_are_not_followed(wall, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    files = files_of(wall)
    shutil.rmtree(files / "sheets" / "0")
    (files / "sheets" / "0").symlink_to(tmp_path / "mine")
    assert f"{files.name}/sheets/0" in refused(wall)
    (files / "sheets" / "0").unlink()
    (wall / "there").symlink_to(tmp_path / "mine")
    assert "there" in refused(wall)
    (wall / "there").unlink()
    (files / "viewer.js").rename(tmp_path / "mine" / "viewer.js")
    (files / "viewer.js").symlink_to(tmp_path / "mine" / "viewer.js")
    assert f"{files.name}/viewer.js" in refused(wall)
    (files / "viewer.js").unlink()
    (wall / PAGE).rename(tmp_path / "mine" / PAGE)
    (wall / PAGE).symlink_to(tmp_path / "mine" / PAGE)
    assert PAGE in refused(wall)
    os.mkfifo(wall / "pipe")
    assert "pipe" in refused_without_reading(wall)
    assert len(os.listdir(tmp_path / "mine")) == 3


def refused_without_reading(wall):
    with pytest.raises(ValueError, match="would be lost") as error:
        check_page_folder(wall)
    return str(error.value)


@needs_links
def test_a_link_to_a_folder_stays_a_link(tmp_path, wall):
    (tmp_path / "link").symlink_to(wall)
    (tmp_path / "new").symlink_to(tmp_path / "not there yet")
    for name in ("link", "new"):
        check_page_folder(tmp_path / name)
        write(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert is_whole(tmp_path / name, "new")
    (wall / "thesis.txt").write_text("mine")
    assert "thesis.txt" in refused(tmp_path / "link")


def test_files_that_are_not_of_a_wall_are_refused(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    assert check_page_folder(site) == site  # empty
    (site / PAGE).write_bytes(PAGE_MARK + b"a page of one file")
    (site / "thesis.txt").write_text("mine")
    assert f"would be lost: {PAGE}, thesis.txt. Give" in refused(site)


def test_walls_without_a_manifest_are_refused_with_advice(tmp_path):
    old = tmp_path / "old"
    (old / "data").mkdir(parents=True)
    for name in ("viewer.js", "viewer.css", "data/cells.js"):
        (old / name).write_text("of an earlier version")
    (old / PAGE).write_bytes(PAGE_MARK)
    message = refused(old)
    assert f"would be lost: data/, {PAGE}, viewer.css, viewer.js. It looks like a wall" in message
    assert "If none is yours, delete the folder." in message


def sealed(wall, lines):
    """Give a wall another manifest, and its folder the name that belongs to it."""
    content = "".join(lines).encode()
    name = f"files-{hashlib.sha256(content).hexdigest()[:16]}"
    files = files_of(wall)
    page = (wall / PAGE).read_bytes().replace(files.name.encode(), name.encode())
    (files / MANIFEST).write_bytes(content)
    files.rename(wall / name)
    (wall / PAGE).write_bytes(page)
    return wall / name


@pytest.mark.parametrize(
    "lie",
    [
        "thesis.txt",
        "../thesis.txt",
        "../../outside.txt",
        "{outside}",
        "./../thesis.txt",
        "sheets/../../thesis.txt",
        "THESIS.TXT",
    ],
)
def test_manifests_cannot_claim_files_elsewhere(wall, lie):
    mine, outside = wall / "thesis.txt", wall.parent / "outside.txt"
    for each in (mine, outside):
        each.write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    line = f"{digest}  {lie.format(outside=outside)}\n"
    lines = (files_of(wall) / MANIFEST).read_text().splitlines(keepends=True)
    sealed(wall, [*lines, line])
    assert "thesis.txt" in refused(wall)
    mine.unlink()
    write(wall)
    assert is_whole(wall, "new")
    assert outside.read_text() == "mine"


def test_manifests_cannot_claim_other_content_or_another_page(wall):
    files = files_of(wall)
    lines = (files / MANIFEST).read_text().splitlines(keepends=True)
    (files / "viewer.js").write_text("mine")
    assert f"{files.name}/viewer.js (changed since)" in refused(wall)
    (files / "viewer.js").write_text("old")
    mine = f'<title>My own</title><a href="{files.name}/viewer.css">'.encode()
    blank = mine.replace(files.name.encode(), FILES.encode())
    other = f"{hashlib.sha256(blank).hexdigest()}  ../{PAGE}\n"
    files = sealed(wall, [other, *lines[1:]])
    (wall / PAGE).write_bytes(blank.replace(FILES.encode(), files.name.encode()))
    assert f"would be lost: {PAGE}" in refused(wall)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe",
        b"unshuffle wall, version 2\n",
        lambda text: text[: len(text) // 2],
        lambda text: text + text[:40],
        lambda text: text + b"0" * 64 + b"  mine.txt\n",
        lambda text: text.replace(b"viewer.js", b"viewer.jS"),
        lambda text: text.replace(b"\n", b"\r\n"),
    ],
)
def test_damaged_manifests_make_every_file_a_stranger(wall, damage):
    path = files_of(wall) / MANIFEST
    path.write_bytes(damage if isinstance(damage, bytes) else damage(path.read_bytes()))
    message = refused(wall)
    assert f"{files_of(wall).name}/, {PAGE}" in message
    assert f"{files_of(wall).name}/{MANIFEST}, by which the files of a wall are" in message
    path.unlink()
    assert "is missing or was changed" in refused(wall)


def test_manifests_that_are_too_large_are_not_read(wall):
    path = files_of(wall) / MANIFEST
    with open(path, "r+b") as file:
        file.truncate(2**40)  # sparse
    assert "is missing or was changed" in refused_without_reading(wall)


@needs_links
def test_manifests_that_are_links_or_pipes_are_not_read(wall, tmp_path):
    path = files_of(wall) / MANIFEST
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "is missing or was changed" in refused(wall)
    path.unlink()
    os.mkfifo(path)
    assert "is missing or was changed" in refused_without_reading(wall)


def test_a_file_that_is_added_or_changed_while_a_wall_is_written_stays(wall):
    def add():
        (wall / "thesis.txt").write_text("mine")

    def change():
        (files_of(wall) / "viewer.js").write_text("mine")

    for meanwhile, name in ((add, "thesis.txt"), (change, "viewer.js")):
        before = contents(wall)
        with pytest.raises(ValueError, match=rf"would be lost: .*{name}"):
            write(wall, meanwhile=meanwhile)
        changed = {each for each in contents(wall).items() if each not in before.items()}
        assert [content for _, content in changed] == [b"mine"]
        assert contents(wall).keys() >= before.keys()
        (wall / "thesis.txt").unlink(missing_ok=True)


class Killed(BaseException):
    """The process is gone: nothing is cleaned up."""


STEPS = ("mkdir", "rename", "replace", "unlink", "rmdir")


def cut_after(monkeypatch, n_steps):
    """Let this many changes of folders happen, and none after them."""
    left = [n_steps]

    def limited(change):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return change(*arguments, **options)

        return call

    for name in STEPS:
        monkeypatch.setattr(os, name, limited(getattr(os, name)))
    return left


@pytest.mark.parametrize("exists", [True, False])
def test_a_run_killed_at_any_step_leaves_the_old_wall_or_the_new(tmp_path, monkeypatch, exists):
    outcomes = set()
    for n_steps in range(100):
        wall = tmp_path / f"wall{n_steps}"
        if exists:
            write(wall, "old")
            (wall / ".DS_Store").write_text("view")
        with monkeypatch.context() as patch:
            left = cut_after(patch, n_steps)
            with suppress(Killed):
                write(wall)
        finished = left[0] >= 0
        shown = [words for words in ("old", "new") if (wall / PAGE).exists()]
        outcomes |= {words for words in shown if is_whole(wall, words)}
        if exists:
            assert is_whole(wall, "old") or is_whole(wall, "new")
        else:
            assert not (wall / PAGE).exists() or is_whole(wall, "new")
        check_page_folder(wall)
        write(wall, "newest")
        assert is_whole(wall, "newest")
        assert set(os.listdir(wall)) - {".DS_Store"} == {files_of(wall).name, PAGE}
        if finished:
            break
    assert finished
    assert n_steps > 8
    assert outcomes == ({"old", "new"} if exists else {"new"})


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    "kind", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt]
)
def test_a_failure_at_any_step_leaves_a_whole_wall_and_no_parts(
    tmp_path, monkeypatch, exists, kind
):
    changes = {name: getattr(os, name) for name in ("mkdir", "rename", "replace")}
    for n_steps in range(30):
        wall = tmp_path / "walls" / f"wall{n_steps}"
        wall.parent.mkdir(exist_ok=True)
        if exists:
            write(wall, "old")
        before = contents(wall.parent)
        left = [n_steps]

        def failing(change, left=left):
            def call(*arguments, **options):
                left[0] -= 1
                if left[0] == -1:
                    raise kind
                return change(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name, change in changes.items():
                patch.setattr(os, name, failing(change))
            if left[0] >= 0:
                try:
                    write(wall)
                except (OSError, KeyboardInterrupt):
                    assert contents(wall.parent) == before
                    assert wall.exists() == exists
        if left[0] >= 0:
            break
    assert is_whole(wall, "new")
    assert n_steps > 4


def test_an_error_names_the_folder_that_was_asked_for(wall, tmp_path):
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path / 'new'}'"):
        write(tmp_path / "new", meanwhile=full)
    assert os.listdir(tmp_path) == ["wall"]


KILLED = """
import os, signal, sys
from pathlib import Path
from unshuffle._files.folders import FILES, PAGE_MARK, replace_folder

def fill(part):
    (part / "viewer.js").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

replace_folder(Path(sys.argv[1]), fill)
"""


@needs_locks
def test_parts_of_a_killed_process_are_removed_by_the_next(wall, tmp_path):
    for place in (wall, tmp_path / "new"):
        done = subprocess.run([sys.executable, "-c", KILLED, place], check=False)
        assert done.returncode == -signal.SIGKILL
        (part,) = place.glob(".unshuffle-*.part")
        assert (part / "viewer.js").exists()
        check_page_folder(place)
        write(place)
        assert is_whole(place, "new")
        assert len(os.listdir(place)) == 2


def write_often(wall, words):
    for _ in range(15):
        write(wall, words)


@needs_locks
@pytest.mark.parametrize("exists", [True, False])
def test_runs_that_write_one_wall_at_once_take_turns(tmp_path, exists):
    wall = tmp_path / "wall"
    if exists:
        write(wall, "old")
    context = multiprocessing.get_context("spawn")
    runs = [context.Process(target=write_often, args=(wall, f"run {k}")) for k in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0, 0, 0]
    assert any(is_whole(wall, f"run {k}") for k in range(3))
    assert len(os.listdir(wall)) == 2


def test_a_wall_begun_first_and_finished_last_is_the_one_that_stays(wall):
    write(wall, "first", meanwhile=lambda: write(wall, "second"))
    assert is_whole(wall, "first")
    assert len(os.listdir(wall)) == 2


def test_without_locks_the_files_of_other_runs_stay(wall, monkeypatch):
    monkeypatch.setattr(_saving, "fcntl", None)
    write(wall.parent / "other", "other")
    other = files_of(wall.parent / "other")
    # Put there by another run, which did not replace the page yet.
    other.rename(wall / other.name)
    write(wall, "new")
    assert is_whole(wall, "new")
    assert set(os.listdir(wall)) == {PAGE, other.name, files_of(wall).name}
    os.utime(wall / other.name, (0, 0))
    write(wall, "newer")
    assert set(os.listdir(wall)) == {PAGE, files_of(wall).name}


@needs_links
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_folders_that_cannot_be_written_are_refused_before_the_work(wall):
    for mode, message in ((0o500, "Permission denied"), (0o000, "Permission denied")):
        wall.chmod(mode)
        with pytest.raises(ValueError, match=f"Cannot write .*wall.*: {message}"):
            check_page_folder(wall)
    wall.chmod(0o700)
    assert is_whole(wall, "old")


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "edit", "remove", "rename", "folder", "list", "write"]),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    max_size=6,
)


@given(CHANGES)
def test_whatever_a_user_does_to_a_wall_nothing_of_theirs_is_lost(changes):
    with tempfile.TemporaryDirectory() as place:
        wall = Path(place) / "wall"
        write(wall, "old")
        for kind, which, where in changes:
            change(wall, kind, which, where)
        theirs = {name: it for name, it in contents(wall).items() if it.startswith(b"mine")}
        before = contents(wall)
        refusal = ""
        try:
            write(wall, "newest")
        except ValueError as error:
            refusal = str(error)
        if refusal:
            assert "would be lost" in refusal
            assert contents(wall) == before
        else:
            assert is_whole(wall, "newest")
            assert len(contents(wall)) == 6
        assert theirs.items() <= contents(wall).items()


def change(wall, kind, which, where):
    """One thing that a user does to the files of a wall."""
    files = [each for each in sorted(wall.rglob("*")) if each.is_file()]
    folders = [wall, *(each for each in sorted(wall.rglob("*")) if each.is_dir())]
    file, folder = (
        (group[number % len(group)] if group else None)
        for group, number in ((files, which), (folders, where))
    )
    if kind == "add":
        (folder / f"mine{which}").write_text(f"mine {which}")
    elif kind == "edit" and file is not None:
        file.write_bytes(b"mine " + file.read_bytes())
    elif kind == "remove" and file is not None:
        file.unlink()
    elif kind == "rename" and file is not None:
        file.rename(folder / file.name)
    elif kind == "folder":
        (folder / f"folder{which}").mkdir(exist_ok=True)
    elif kind == "list" and file is not None:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        for manifest in wall.glob(f"files-*/{MANIFEST}"):
            with open(manifest, "a") as lines:
                lines.write(f"{digest}  {os.path.relpath(file, manifest.parent)}\n")
    elif kind == "write":
        with suppress(ValueError):
            write(wall, f"old {which}")
