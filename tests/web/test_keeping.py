"""How views are kept: what is on disk, in which order, and what is said when it is not."""

import asyncio
import errno
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager

import pytest
from tests.web.conftest import write_photos

from unshuffle.web._collage.studio import Studio
from unshuffle.web._http.refusal import Refused
from unshuffle.web._match.pairing import Pairing
from unshuffle.web._wall.session import Session
from unshuffle.web._work import state_file as _state_file
from unshuffle.web._work.state_file import StateFile

VIEWS = ["wall", "match", "collage"]
COMPANIONS = {"wall": "wall.json", "match": "wall.match.json", "collage": "wall.collage.json"}


@pytest.fixture
def open_views(tmp_path):
    """Opens all views of nine pictures, kept in one file; each has a small change to make."""
    photos = write_photos(tmp_path / "photos", 9)
    opened = []

    def open_them():
        file = StateFile(tmp_path / "wall.json")
        wall = Session(photos, file, tmp_path / "cache")
        match = Pairing((photos, photos), file.companion("match"), tmp_path / "cache")
        views = {"wall": wall, "match": match, "collage": Studio(wall, file.companion("collage"))}
        opened.append(views)
        for view in views.values():
            view.open()
            assert view.jobs.wait(timeout=600)
        return views

    yield open_them
    for views in opened:
        close(views)


def close(views):
    for view in reversed(views.values()):
        view.close()


def change(view, k=0):
    """Make a change that another `k` makes anew, and wait until it is answered."""
    if isinstance(view, Session):
        view.freeze([k])
    elif isinstance(view, Pairing):
        view.change_settings({"automatic": False})
        view.set_aside(0, [k])
    else:
        view.change_settings({"rows": k + 1})


def has_change(path, view, k=0):
    """Whether the file has the change."""
    data = json.loads(path.read_text())
    step = data["steps"][data["position"]]
    if view == "wall":
        return k in step["frozen"]
    return k in step["aside"][0] if view == "match" else step["settings"]["rows"] == k + 1


@contextmanager
def full_disk(monkeypatch, *, folder=None):
    """Let files of the views not be written, in this folder or anywhere."""
    real = _state_file.replace_file

    def fail(path, data):
        if path.name in COMPANIONS.values() and folder in (None, path.parent):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(_state_file, "replace_file", fail)
        yield


@pytest.mark.parametrize("name", VIEWS)
def test_a_state_that_is_not_saved_is_said_until_it_is(open_views, tmp_path, monkeypatch, name):
    view = open_views()[name]
    assert view.state()["unsaved"] is None
    with full_disk(monkeypatch):
        change(view)
        expected = f"The {name} could not be saved: No space left on device."
        assert view.state()["unsaved"] == view.unsaved == expected
        assert view.state()["notice"] is None  # which would be dismissed
    change(view, 1)
    assert view.state()["unsaved"] is None
    assert has_change(tmp_path / COMPANIONS[name], name, 1)


@pytest.mark.parametrize("name", VIEWS)
def test_it_is_saved_without_a_change_once_there_is_room(open_views, tmp_path, monkeypatch, name):
    monkeypatch.setattr("unshuffle.web._work.workspace._RETRY", 0.05)
    view = open_views()[name]
    heard = threading.Event()
    with full_disk(monkeypatch):
        change(view)
        assert view.unsaved
        view.listen(lambda: view.unsaved or heard.set())
    assert heard.wait(30)
    assert has_change(tmp_path / COMPANIONS[name], name)


@pytest.mark.parametrize("name", VIEWS)
def test_changes_without_a_place_on_the_disk_are_written_to_the_temporary_folder(
    open_views, tmp_path, monkeypatch, name
):
    views = open_views()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with full_disk(monkeypatch, folder=tmp_path):
        change(views[name])
        close(views)
    (place,) = (tmp_path / "temporary").glob(f"unshuffle-*/{COMPANIONS[name]}")
    assert has_change(place, name)
    assert f"replace it with {place}, which has all changes." in views[name].lost
    assert [view for view in VIEWS if views[view].lost] == [name]
    os.replace(place, tmp_path / COMPANIONS[name])
    after = open_views()
    assert not any(view.state()["notice"] for view in after.values())
    change(after[name], 2)
    assert has_change(tmp_path / COMPANIONS[name], name, 2)


def test_changes_without_any_place_are_said_to_be_lost(open_views, monkeypatch, tmp_path):
    views = open_views()
    before = (tmp_path / "wall.json").read_bytes()
    with full_disk(monkeypatch):
        change(views["wall"])
        close(views)
    assert views["wall"].lost.endswith("holds what was saved before; later changes are lost.")
    assert (tmp_path / "wall.json").read_bytes() == before


def test_a_full_disk_takes_nothing_from_a_view_without_changes(open_views, monkeypatch):
    views = open_views()
    change(views["wall"])
    with full_disk(monkeypatch):
        close(views)
    assert [view.lost for view in views.values()] == ["", "", ""]


@pytest.mark.parametrize("name", VIEWS)
def test_nobody_waits_for_the_disk_and_the_newest_state_is_written_last(
    open_views, tmp_path, monkeypatch, name
):
    view = open_views()[name]
    writing, go, answered = threading.Event(), threading.Event(), threading.Event()
    real = _state_file.replace_file

    def write_slowly(path, data):
        data = list(data)
        writing.set()
        assert go.wait(60)
        real(path, data)

    monkeypatch.setattr(_state_file, "replace_file", write_slowly)

    def ask():
        view.state()
        answered.set()

    threads = [threading.Thread(target=change, args=(view, k)) for k in (0, 1)]
    threads[0].start()
    assert writing.wait(60)
    threads[1].start()  # comes while the first is being written
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        assert answered.wait(30)
        assert threads[0].is_alive()  # not answered before it is on disk
    finally:
        go.set()
        for each in (*threads, asking):
            each.join(60)
    assert has_change(tmp_path / COMPANIONS[name], name, 1)


@pytest.mark.parametrize("name", VIEWS)
def test_listeners_are_called_without_the_lock(open_views, name):
    view = open_views()[name]
    free = []

    def listen():
        others = threading.Thread(target=view.state, daemon=True)
        others.start()
        others.join(20)
        free.append(not others.is_alive())

    forget = view.listen(listen)
    with view._lock:
        change(view)
        assert free == []
    forget()
    view.touch()
    assert free
    assert all(free)


def test_a_listener_is_forgotten_under_the_lock(open_views):
    view = open_views()["wall"]
    forget = view.listen(lambda: None)
    with view._lock:
        thread = threading.Thread(target=forget)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join(30)
    assert not thread.is_alive()


def test_work_that_ends_late_does_not_write_to_a_closed_file(open_views, tmp_path):
    views = open_views()
    close(views)
    (tmp_path / "wall.json").unlink()  # or written by the next server
    views["wall"].save_soon()
    views["wall"]._save()
    assert not (tmp_path / "wall.json").exists()


def test_pictures_of_which_the_name_cannot_be_kept_are_refused(open_views, monkeypatch):
    wall = open_views()["wall"]

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    async def pieces():
        yield b"content"

    monkeypatch.setattr(wall.album, "_write_note", fail)
    with pytest.raises(Refused, match="could not be added: No space left on device"):
        asyncio.run(wall.album.add("a.png", pieces()))
    assert len(wall.album) == 9


@pytest.mark.parametrize("name", VIEWS)
def test_the_file_of_a_newer_version_is_refused_and_left_alone(tmp_path, name):
    path = tmp_path / COMPANIONS[name]
    content = f'{{"unshuffle {name}": 2, "all": "is different"}}'
    path.write_text(content)

    def open_it():
        file = StateFile(tmp_path / "wall.json")
        try:
            return file.companion(name)
        finally:
            file.close()

    with pytest.raises(ValueError, match=r"newer version .* \(format 2; .* left as it is"):
        open_it()
    path.write_text(" " * 200 + content)  # as another program may have written it again
    with pytest.raises(ValueError, match="newer version"):
        open_it().read(dict) if name != "wall" else StateFile(path).load()
    assert path.read_text().strip() == content
    assert not list(tmp_path.glob("*.damaged*"))


@pytest.mark.parametrize("name", VIEWS)
def test_each_damaged_file_is_kept(tmp_path, name):
    wall = StateFile(tmp_path / "wall.json")
    file = wall if name == "wall" else wall.companion(name)
    older = tmp_path / COMPANIONS[name].replace(".json", ".damaged")
    older.write_text("of an earlier version")
    contents = [b"half of one", b"[]", bytes(300), b'{"unshuffle %s": 1}' % name.encode()]
    for number, content in enumerate(contents, 1):
        file.path.write_bytes(content)
        assert file.read(lambda data: data["steps"]) is None
        assert file.problem.endswith(f"is now called {older.name}-{number}.")
    kept = [older.with_name(f"{older.name}-{number}").read_bytes() for number in range(1, 5)]
    assert kept == contents
    assert older.read_text() == "of an earlier version"
    wall.close()


@pytest.mark.parametrize("content", [bytes(5000), b"", b"[]", b"{}\n", b"null", b"\0\0 \n"])
def test_a_file_that_says_nothing_is_put_aside_wherever_it_is(tmp_path, content):
    path = tmp_path / "any.json"
    path.write_bytes(content)
    file = StateFile(path)
    assert file.load() is None
    assert "any.damaged-1" in file.problem
    assert (tmp_path / "any.damaged-1").read_bytes() == content
    file.close()


@pytest.mark.parametrize("place", ["with its pictures", "among the walls"])
def test_a_file_of_our_own_is_put_aside_whatever_it_holds(tmp_path, monkeypatch, place):
    path = tmp_path / "wall.json"
    if place == "among the walls":
        monkeypatch.setattr(_state_file, "walls_folder", lambda: tmp_path)
    else:
        StateFile(path).close()
    path.write_bytes(b"\x93random bytes")
    file = StateFile(path)
    assert file.load() is None
    assert (tmp_path / "wall.damaged-1").read_bytes() == b"\x93random bytes"
    file.close()


def test_a_damaged_file_that_cannot_be_put_aside_is_not_replaced(tmp_path, monkeypatch):
    file = StateFile(tmp_path / "wall.json")
    file.path.write_text("[]")

    def fail(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(ValueError, match=r"could not be put aside: Permission denied"):
        file.load()
    assert file.path.read_text() == "[]"
    file.close()


def test_pictures_that_a_damaged_file_may_need_are_kept_until_it_is_gone(open_views, tmp_path):
    close(open_views())
    names = ["a" * 40 + ".png", "b" * 40 + ".png"]
    folders = [tmp_path / "wall.pictures", tmp_path / "wall.pictures" / "collage"]
    for folder, name in zip(folders, names, strict=True):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"a mask, or a template")
    for file in ("wall.json", "wall.collage.json"):
        (tmp_path / file).write_text("damaged")
    files = [folder / name for folder, name in zip(folders, names, strict=True)]
    for _ in range(2):
        close(open_views())
        assert [file.exists() for file in files] == [True, True]
    for path in tmp_path.glob("*.damaged-1"):
        path.unlink()
    close(open_views())
    assert [file.exists() for file in files] == [False, False]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a running process")
@pytest.mark.parametrize("ends", ["full", "free"])
def test_a_server_on_a_full_disk_says_that_changes_are_lost(serve, photos, tmp_path, ends):
    import resource

    state = tmp_path / "kept" / "wall.json"
    server = serve(photos, "--state", state)
    server.settle()
    before = state.read_bytes()
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    # Enough for the messages in its log, not for a wall with frozen pictures.
    few = len(before)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (few, limits[1]))
    why = "The wall could not be saved: File too large."
    for item in range(4):
        assert server.post("/api/freeze", items=[item])["unsaved"] == why
    assert server.state()["unsaved"] == why
    assert server.state()["wall"]["nFrozen"] == 4
    assert state.read_bytes() == before
    if ends == "free":
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
    code = server.stop(signal.SIGINT)
    last = (server.home / "server.log").read_text().splitlines()[-1]
    again = serve(photos, "--state", state)
    frozen = again.settle()["wall"]["nFrozen"]
    if ends == "free":
        assert (code, frozen) == (0, 4)
        assert last == "Stopped. Everything is saved for next time."
    else:
        assert (code, frozen) == (3, 0)
        assert last == (
            f"Error: Stopped. {why} {state} holds what was saved before; later changes are lost."
        )
