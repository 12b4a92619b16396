"""A wall without a server: reading, arranging, changing, undoing, keeping."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest
from PIL import Image
from tests.web.conftest import write_photos

from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall import arranger as _arranger
from unshuffle.web._wall import session as _session
from unshuffle.web._wall.arrangement import OUTSIDE
from unshuffle.web._wall.session import Session
from unshuffle.web._work.jobs import Canceled, Job
from unshuffle.web._work.state_file import StateFile


@pytest.fixture
def open_session(tmp_path, monkeypatch):
    """Opens sessions of a folder, which keep their wall in one file."""
    monkeypatch.setattr(_session, "_PAUSE", 0.02)
    opened = []

    def open_it(folder=None, *, wait=True):
        state = StateFile(tmp_path / "wall.json")
        session = Session(folder, state, tmp_path / "cache")
        opened.append(session)
        session.open()
        return settle(session) if wait else session

    yield open_it
    for session in opened:
        session.close()


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A wall for what is refused, and changes nothing."""
    folder = tmp_path_factory.mktemp("standing")
    photos = write_photos(folder / "photos", 30)
    session = Session(photos, StateFile(folder / "wall.json"), folder / "cache")
    session.open()
    yield settle(session)
    session.close()


def settle(session):
    assert session.jobs.wait(timeout=600)
    assert session.state()["notice"] is None
    return session


def close(session):
    session.close()
    session.close = lambda: None


def drop(session, *files, names=None):
    async def pieces(content):
        yield content[:100]
        yield content[100:]

    for file, name in zip(files, names or [file.name for file in files], strict=True):
        asyncio.run(session.album.add(name, pieces(file.read_bytes())))
        session.added()
    return session


def is_whole(session, slots):
    """Every picture is on the wall once."""
    grid = session.now.grid
    return sorted(grid[grid >= 0].tolist()) == sorted(slots)


def cell(session, slot):
    return session.now.cell_of(slot)


def move(session, slot, to):
    session.move(slot, to, *session.now.grid.shape)


def refusal(function, *arguments):
    with pytest.raises(Refused) as caught:
        function(*arguments)
    return str(caught.value), caught.value.field, caught.value.status


def test_a_folder_is_read_arranged_and_compared(open_session, photos):
    session = open_session(photos)
    state = session.state()
    assert (state["title"], state["folder"]) == ("photos", True)
    assert (state["pictures"]["total"], state["pictures"]["nReady"]) == (30, 30)
    assert (state["wall"]["rows"], state["wall"]["columns"]) == (5, 6)
    assert (state["wall"]["settled"], state["wall"]["nPlaced"]) == (True, 30)
    assert state["wall"]["score"] > 0.3
    assert (state["undo"], state["redo"], state["jobs"]) == (None, None, [])
    assert is_whole(session, range(30))
    assert session.now.grid.ravel().tolist() != list(range(30))
    assert session.pictures()["names"] == sorted(path.name for path in photos.iterdir())


def test_look_alikes_are_the_nearest_by_the_chosen_features(open_session, photos):
    close_one = Image.open(photos / "007.jpg").point(lambda value: min(255, value + 2))
    close_one.save(photos / "999.jpg")
    session = open_session(photos)
    for features in (["color"], ["words"], ["color", "texture"]):
        session.change_settings({"features": features})
        settle(session)
        found = session.alike(7)
        assert len(found) == 8
        assert found[0] == 30
        assert 7 not in found


def test_pictures_that_cannot_be_read_are_listed_and_leave_no_hole(open_session, photos, tmp_path):
    (photos / "notes.txt").write_text("not a picture")
    (photos / "cut.jpg").write_bytes((photos / "000.jpg").read_bytes()[:200])
    (tmp_path / "secret.jpg").write_bytes((photos / "000.jpg").read_bytes())
    (photos / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    session = open_session(photos)
    failed = {each["name"]: each["reason"] for each in session.pictures()["failed"]}
    assert set(failed) == {"notes.txt", "cut.jpg", "link.jpg"}
    assert failed["link.jpg"] == "a link that leads out of the folder"
    assert session.state()["pictures"]["nFailed"] == 3
    assert session.state()["wall"]["nPlaced"] == 30
    assert session.now.grid.size == 30


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_pictures_are_a_wall_too(open_session, tmp_path, n):
    session = open_session(write_photos(tmp_path / "few", n))
    assert is_whole(session, range(n))
    assert session.now.grid.size >= n
    if n == 0:
        assert "empty" in refusal(session.export, "csv")[0]
    if n > 1:
        move(session, 0, cell(session, 1))
        assert is_whole(settle(session), range(n))


def test_equal_pictures_can_be_arranged(open_session, tmp_path):
    folder = write_photos(tmp_path / "same", 1)
    for i in range(1, 6):
        (folder / f"{i}.jpg").write_bytes((folder / "000.jpg").read_bytes())
    assert is_whole(open_session(folder), range(6))


def test_a_moved_picture_stays_and_the_others_settle_around_it(open_session, photos):
    session = open_session(photos)
    before = session.now.grid.copy()
    corner, other = int(before[0, 0]), int(before[4, 5])
    move(session, corner, 29)
    assert (cell(session, corner), cell(session, other)) == (29, 0)  # at once
    settle(session)
    assert cell(session, corner) == 29
    assert session.now.frozen == {corner}
    assert session.state()["undo"] == f"moving {session.album.names[corner]}"
    assert is_whole(session, range(30))
    session.arrange_again()
    settle(session)
    assert cell(session, corner) == 29
    session.undo()
    session.undo()
    np.testing.assert_array_equal(session.now.grid, before)
    assert session.now.frozen == frozenset()
    assert session.state()["undo"] is None
    session.redo()
    assert cell(session, corner) == 29
    assert refusal(session.redo)[2] == 409 if session.state()["redo"] is None else True


def test_moving_to_a_frozen_picture_releases_that_one(open_session, photos):
    session = open_session(photos)
    first, second = (int(each) for each in session.now.grid.ravel()[[3, 17]])
    session.freeze([second])
    move(session, first, 17)
    settle(session)
    assert session.now.frozen == {first}
    assert cell(session, first) == 17


def test_freezing_changes_nothing_else_and_unfreezing_lets_go(open_session, photos):
    session = open_session(photos)
    before = session.now.grid.copy()
    session.freeze([1, 2, 3])
    assert session.state()["wall"]["nFrozen"] == 3
    np.testing.assert_array_equal(session.now.grid, before)
    assert session.state()["undo"] == "freezing 3 pictures"
    session.unfreeze([2])
    assert settle(session).now.frozen == {1, 3}
    session.unfreeze([])
    assert settle(session).now.frozen == frozenset()
    assert refusal(session.unfreeze, []) == ("No picture is frozen.", None, 400)


def test_frozen_pictures_keep_their_row_and_column_where_the_new_shape_has_them(
    open_session, photos
):
    session = open_session(photos)
    rows, columns = session.now.grid.shape
    corner, last = int(session.now.grid[0, 0]), int(session.now.grid[-1, -1])
    session.freeze([corner, last])
    session.change_settings({"rows": rows + 1, "columns": columns + 1})
    settle(session)
    assert session.now.frozen == {corner, last}
    assert session.now.grid[rows - 1, columns - 1] == last
    session.change_settings({"rows": 2, "columns": 20})
    session.jobs.wait(timeout=600)
    assert session.now.grid[0, 0] == corner
    assert session.now.frozen == {corner}
    assert is_whole(session, range(30))
    notice = session.state()["notice"]
    assert notice["undoes"]
    assert "1 of 2 frozen pictures had no cell in the new shape" in notice["message"]
    session.arrange_again()
    assert session.state()["notice"] is None  # undo is about something else now
    session.jobs.wait(timeout=600)


@pytest.mark.slow
def test_comparing_counts_pictures_whatever_the_features_count(open_session, photos):
    session = open_session(photos)
    counts = []

    class Watched:
        def say(self, words): ...
        def check(self): ...
        def count(self, done, total):
            counts.append((done, total))

    session.arranger.compare(Watched(), ("words",), np.arange(30))
    assert {total for _, total in counts} == {30}
    assert [done for done, _ in counts] == sorted(done for done, _ in counts)
    assert counts[-1] == (30, 30)


def test_pictures_are_left_out_and_put_back(open_session, photos):
    session = open_session(photos)
    session.freeze([4, 9])
    session.leave_out([4, 5])
    settle(session)
    assert is_whole(session, set(range(30)) - {4, 5})
    assert session.wall()["out"] == [4, 5]
    assert session.now.frozen == {9}
    place = cell(session, 9)
    assert not {4, 5} & set(session.alike(9))
    session.arrange_again()
    assert is_whole(settle(session), set(range(30)) - {4, 5})
    assert cell(session, 9) == place
    session.put_back([5])
    assert is_whole(settle(session), set(range(30)) - {4})
    session.put_back([])
    assert is_whole(settle(session), range(30))
    assert cell(session, 9) == place
    assert refusal(session.put_back, [])[0] == "No picture is left out."


def test_shapes(open_session, photos, tmp_path):
    session = open_session(photos)

    def arranged(session):
        session.jobs.wait(timeout=600)
        return session.now.grid

    session.freeze([0])
    session.change_settings({"shape": "letters", "letters": "AB"})
    session.jobs.wait(timeout=600)
    grid = session.now.grid
    assert (grid == OUTSIDE).any()
    assert is_whole(session, range(30))
    session.change_settings({"shape": "torus", "rows": 3, "columns": None})
    assert arranged(session).shape == (3, 10)
    assert session.wall()["wrap"] is True
    session.change_settings({"shape": "rectangle", "rows": None, "columns": 8})
    assert arranged(session).shape == (4, 8)
    assert is_whole(session, range(30))
    for _ in range(3):
        session.undo()
    assert session.now.frozen == {0}
    assert session.now.grid.shape == (5, 6)


def test_masks(open_session, photos, tmp_path):
    session = open_session(photos)
    disk = Image.new("L", (60, 60), 255)
    yy, xx = np.mgrid[:60, :60]
    disk.paste(0, mask=Image.fromarray(((yy - 30) ** 2 + (xx - 30) ** 2 < 800).astype("u1") * 255))
    disk.save(tmp_path / "disk.png")

    async def keep(path):
        async def pieces():
            yield path.read_bytes()

        return (await session.album.keep(path.name, pieces()))[0]

    session.use_mask("disk.png", asyncio.run(keep(tmp_path / "disk.png")))
    settle(session)
    assert (session.now.grid == OUTSIDE).any()
    assert is_whole(session, range(30))
    assert session.state()["settings"]["mask"] == "disk.png"
    assert "mask_file" not in session.state()["settings"]
    session.change_settings({"invert": True})
    assert is_whole(settle(session), range(30))
    session.undo()
    Image.new("L", (9, 9), 255).save(tmp_path / "white.png")
    message, field, _ = refusal(
        session.use_mask, "white.png", asyncio.run(keep(tmp_path / "white.png"))
    )
    assert field == "mask"
    assert message.startswith("white.png has no cell")
    assert str(tmp_path) not in message
    (tmp_path / "text.png").write_text("no picture")
    assert refusal(session.use_mask, "t", asyncio.run(keep(tmp_path / "text.png")))[1] == "mask"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"shape": "circle"}, "shape"),
        ({"shape": "letters"}, "letters"),
        ({"shape": "letters", "letters": " \n"}, "letters"),
        ({"shape": "letters", "letters": 5}, "letters"),
        ({"shape": "letters", "letters": "x" * 999}, "letters"),
        ({"shape": "mask"}, "mask"),
        ({"rows": 0}, "rows"),
        ({"rows": True}, "rows"),
        ({"rows": "5"}, "rows"),
        ({"rows": 2, "columns": 3}, "rows"),
        ({"columns": 10**9}, "columns"),
        ({"rows": 10**6, "columns": 10**6}, "rows"),
        ({"features": []}, "features"),
        ({"features": "color"}, "features"),
        ({"features": ["smell"]}, "features"),
        ({"features": [["color"]]}, "features"),
        ({"quality": "perfect"}, "quality"),
        ({"invert": 1}, "invert"),
        ({"mask_file": "../../etc/passwd"}, None),
        ({"seed": 3}, None),
        (["shape"], None),
        (None, None),
    ],
)
def test_bad_settings_are_refused_and_change_nothing(standing, given, field):
    before = standing.now
    message, about, status = refusal(standing.change_settings, given)
    assert (about, status) == (field, 400)
    assert message.endswith(".")
    assert standing.now is before


@pytest.mark.parametrize(
    ("slot", "to", "shape", "status"),
    [
        (99, 0, (5, 6), 409),
        (-1, 0, (5, 6), 409),
        ("0", 0, (5, 6), 400),
        (True, 0, (5, 6), 400),
        (0, 30, (5, 6), 400),
        (0, -1, (5, 6), 400),
        (0, 1.5, (5, 6), 400),
        (0, None, (5, 6), 400),
        (0, 1, (6, 5), 409),
        (0, 1, (None, None), 409),
    ],
)
def test_bad_moves_are_refused(standing, slot, to, shape, status):
    before = standing.now
    assert refusal(standing.move, slot, to, *shape)[2] == status
    assert standing.now is before


def test_dropped_pictures_join_the_wall(open_session, photos, tmp_path, monkeypatch):
    session = open_session()
    monkeypatch.setattr(_session, "_PAUSE", 0.5)
    assert session.state()["title"] == "Dropped pictures"
    files = sorted(photos.iterdir())
    settle(drop(session, *files[:9]))
    assert is_whole(session, range(9))
    assert session.state()["undo"] is None
    session.freeze([3])
    place = np.argwhere(session.now.grid == 3)[0].tolist()
    settle(drop(session, *files[9:16]))
    assert is_whole(session, range(16))
    assert session.state()["undo"] == "adding pictures"
    assert np.argwhere(session.now.grid == 3)[0].tolist() == place
    drop(session, files[2])  # again
    assert len(settle(session).album) == 16
    other = tmp_path / "other.jpg"
    Image.new("RGB", (30, 30), "red").save(other)
    drop(session, other, other, names=["000.jpg", "../../x\n\x1b.jpg"])
    for i in range(3):
        Image.new("RGB", (20, 20 + i), "blue").save(tmp_path / f"blue{i}.png")
        drop(session, tmp_path / f"blue{i}.png", names=["000.jpg" if i < 2 else "a/../x\n.png"])
    settle(session)
    named = session.pictures()["names"][16:]
    assert named == ["000 (2).jpg", "000 (3).jpg", "000 (4).jpg", "a/x.png"]
    session.clear()
    assert settle(session).state()["pictures"]["total"] == 0
    assert session.state()["wall"]["rows"] == 0
    assert [path.name for path in (tmp_path / "wall.pictures").iterdir()] == [".lock"]


def test_a_dropped_file_that_is_no_picture_is_listed_and_not_kept(open_session, photos, tmp_path):
    session = settle(drop(open_session(photos), photos / "000.jpg"))
    notes = tmp_path / "notes.txt"
    notes.write_text("x" * 300)
    settle(drop(session, notes))
    assert [each["name"] for each in session.pictures()["failed"]] == ["notes.txt"]
    assert session.state()["wall"]["nPlaced"] == 31
    close(session)
    again = open_session(photos)
    assert again.state()["pictures"]["nFailed"] == 0
    assert again.state()["wall"]["nPlaced"] == 31


def test_the_wall_and_its_history_come_back(open_session, photos):
    session = open_session(photos)
    drop(session, photos / "003.jpg", names=["again.jpg"])
    settle(session)
    move(session, 3, 2)
    settle(session)
    session.change_settings({"quality": "fast"})
    settle(session)
    session.undo()
    before, wall = session.state(), session.wall()
    close(session)
    again = open_session(photos)
    after = again.state()
    for name in ("settings", "undo", "redo"):
        assert after[name] == before[name]
    assert {**again.wall(), "version": 0} == {**wall, "version": 0}
    assert again.alike(3)[0] == 30  # compared without arranging anew
    again.redo()
    assert again.state()["settings"]["quality"] == "fast"


def test_a_wall_follows_what_happened_to_the_folder_meanwhile(open_session, photos):
    session = open_session(photos)
    session.freeze([10, 20])
    names = list(session.album.names)
    places = {names[slot]: cell(session, slot) for slot in range(30)}
    close(session)
    (photos / "010.jpg").unlink()
    (photos / "000.jpg").rename(photos / "zzz.jpg")
    again = open_session(photos)
    assert is_whole(again, range(29))
    slot = again.album.names.index("020.jpg")
    assert again.now.frozen == {slot}
    assert cell(again, slot) == places["020.jpg"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"position": 1', '"position": 7'),
        lambda text: text.replace('"file": "', '"file": "../../'),
        lambda text: text.replace('"mask_file": ""', '"mask_file": "/etc/passwd"'),
        lambda text: text.replace('"unshuffle wall": 1', '"unshuffle wall": 0'),
        lambda text: "\0" * len(text),
        lambda text: "[]",
        lambda text: text.replace('"shape": [', '"shape": [1'),
    ],
)
def test_a_damaged_file_is_put_aside(open_session, photos, tmp_path, damage):
    session = settle(drop(open_session(photos), photos / "000.jpg", names=["new.jpg"]))
    close(session)
    path = tmp_path / "wall.json"
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    again = open_session(photos, wait=False)
    assert again.jobs.wait(timeout=600)
    assert "wall.damaged-1" in again.state()["notice"]["message"]
    assert (tmp_path / "wall.damaged-1").read_text() == damage(text)
    assert is_whole(again, range(31))  # the dropped one too
    assert json.loads(path.read_text())["names"]


def test_one_server_at_a_time_uses_a_wall(open_session, photos, tmp_path):
    session = open_session(photos)
    with pytest.raises(ValueError, match="open in another unshuffle serve"):
        StateFile(tmp_path / "wall.json")
    close(session)
    StateFile(tmp_path / "wall.json").close()


def test_canceled_arranging_keeps_what_there_is(open_session, photos, monkeypatch):
    session = open_session(photos)
    seen = threading.Event()
    real = session._show

    def show(*arguments, **changes):
        after = real(*arguments, **changes)
        seen.set()
        session.jobs.cancel("arranging")
        return after

    monkeypatch.setattr(session, "_show", show)
    session.change_settings({"quality": "best", "rows": 3})
    assert seen.wait(30)
    assert session.jobs.wait(timeout=600)
    assert session.now.grid.shape == (3, 10)
    assert is_whole(session, range(30))
    assert session.state()["undo"] == "changing quality, rows"


def test_canceled_reading_keeps_what_was_read(open_session, photos, monkeypatch):
    session = open_session(photos, wait=False)
    settle(session)
    real = session.album.read

    def read(slots, step):
        def canceling():
            session.jobs.cancel("reading")
            step()

        real(slots, canceling)

    monkeypatch.setattr(session.album, "read", read)
    files = sorted(photos.iterdir())
    with session._lock:  # all of them come before the first is read
        for i in range(10):
            Image.open(files[i]).rotate(90).save(files[i].with_suffix(".png"))
            drop(session, files[i].with_suffix(".png"))
    assert session.jobs.wait(timeout=600)
    state = session.state()
    assert state["pictures"]["nReady"] + state["pictures"]["nFailed"] == 40
    assert 1 <= state["pictures"]["nFailed"] < 10
    assert state["wall"]["nPlaced"] == state["pictures"]["nReady"]
    assert "canceled" in session.pictures()["failed"][0]["reason"]


def test_a_picture_that_was_given_up_is_not_ready_late(open_session, photos, monkeypatch):
    session = open_session(photos)
    read = session.album._reader.read

    def give_up_and_read(path, number):
        session.album.give_up("canceled")  # while a thread still reads it
        return read(path, number)

    monkeypatch.setattr(session.album._reader, "read", give_up_and_read)
    settle(drop(session, photos / "003.jpg", names=["late.jpg"]))
    pictures = session.state()["pictures"]
    assert (pictures["nReady"], pictures["nFailed"]) == (30, 1)


def test_many_changes_at_once_end_in_one_wall(open_session, photos):
    session = open_session(photos)
    errors = []

    def change(k):
        try:
            for i in range(6):
                move(session, (k * 6 + i) % 30, (k * 11 + i * 5) % 30)
                if i % 3 == 2:
                    session.undo()
        except Refused as error:
            if error.status not in (409, 429):
                errors.append(error)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=change, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settle(session)
    assert errors == []
    assert is_whole(session, range(30))
    places = {slot: cell(session, slot) for slot in session.now.frozen}
    session.arrange_again()
    settle(session)
    assert {slot: cell(session, slot) for slot in places} == places


def test_errors_of_the_work_are_told_in_words(open_session, photos, monkeypatch, capsys):
    session = open_session(photos)

    def fail(*arguments, **options):
        raise MemoryError("Laying out takes more memory than there is.")

    monkeypatch.setattr(session.arranger, "lay_out", fail)
    session.arrange_again()
    session.jobs.wait(timeout=600)
    assert session.state()["notice"]["message"] == (
        "Arranging failed: Laying out takes more memory than there is."
    )
    assert is_whole(session, range(30))
    monkeypatch.setattr(session.arranger, "lay_out", lambda *a, **k: 1 / 0)
    session.arrange_again()
    session.jobs.wait(timeout=600)
    assert "terminal" in session.state()["notice"]["message"]
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.fixture
def half_read(tmp_path, monkeypatch):
    """Opens sessions that wait after ten pictures; the function that is returned reads on."""
    sessions = []

    def open_it(folder):
        session = Session(folder, StateFile(tmp_path / "wall.json"), tmp_path / "cache")
        half, go, read = threading.Event(), threading.Event(), session.album.read

        def read_halves(slots, step):
            read(slots[:10], step)
            half.set()
            assert go.wait(60)
            read(slots[10:], step)

        monkeypatch.setattr(session.album, "read", read_halves)
        sessions.append((session, go))
        session.open()
        assert half.wait(60)
        return session, go.set

    yield open_it
    for session, go in sessions:
        go.set()
        session.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda session: session.freeze([3]),
        lambda session: move(session, 3, 5),
        lambda session: session.leave_out([29]),
        lambda session: (move(session, 3, 5), session.undo()),
    ],
)
def test_changes_while_pictures_are_read_are_arranged_afterwards(half_read, photos, change):
    session, read_on = half_read(photos)
    change(session)
    assert session.jobs.unfinished("arranging") == []
    before, out = {slot: cell(session, slot) for slot in session.now.frozen}, session.now.out
    grid = session.now.grid.copy()
    read_on()
    assert is_whole(settle(session), set(range(30)) - out)
    assert (session.now.grid != grid).any()
    assert {slot: cell(session, slot) for slot in session.now.frozen} == before


def test_a_wall_can_be_changed_while_it_is_reopened(open_session, half_read, photos):
    session = open_session(photos)
    session.freeze([20])
    place = cell(session, 20)
    close(session)
    again, read_on = half_read(photos)
    move(again, 3, 29 - place)
    read_on()
    assert is_whole(settle(again), range(30))
    assert (cell(again, 20), cell(again, 3)) == (place, 29 - place)
    assert again.state()["undo"] == "moving 003.jpg"


def test_starting_over_while_pictures_are_read_reads_all_of_them(half_read, photos, monkeypatch):
    session, read_on = half_read(photos)
    cancel = session.jobs.cancel

    def cancel_and_read(kind=None):
        cancel(kind)
        read_on()

    monkeypatch.setattr(session.jobs, "cancel", cancel_and_read)
    session.clear()
    assert settle(session).state()["pictures"]["nFailed"] == 0
    assert is_whole(session, range(30))


def test_pictures_dropped_right_after_a_cancel_are_read(open_session, photos):
    session = open_session()
    files = sorted(photos.iterdir())
    with session.album._lock:  # the reading waits
        drop(session, files[0])
        drop(session, files[1])
        session.jobs.cancel("reading")
        drop(session, files[2])
    assert session.jobs.wait(timeout=600)
    assert session.album.waiting().size == 0
    assert session.album.is_ready(2)


def test_added_pictures_stay_away_once_that_is_undone(open_session, photos, monkeypatch):
    session = open_session()
    monkeypatch.setattr(_session, "_PAUSE", 0.5)
    files = sorted(photos.iterdir())
    settle(drop(session, *files[:9]))
    settle(drop(session, *files[9:16]))
    session.undo()
    assert is_whole(session, range(9))
    assert session.wall()["out"] == list(range(9, 16))
    to = 8 - cell(session, 3) or 1
    move(session, 3, to)
    assert is_whole(settle(session), range(9))
    assert (session.now.frozen, cell(session, 3)) == ({3}, to)
    close(session)
    again = open_session()
    assert is_whole(again, range(9))
    again.put_back([10])
    assert is_whole(settle(again), [*range(9), 10])
    assert cell(again, 3) == to


def test_pictures_that_are_lost_are_lost_in_earlier_steps(open_session, photos):
    session = open_session(photos)
    session.freeze([4])
    session.freeze([5])
    close(session)
    (photos / "004.jpg").write_bytes(b"damaged")
    again = open_session(photos)
    again.undo()
    assert is_whole(again, set(range(30)) - {4})
    again.arrange_again()
    assert is_whole(settle(again), set(range(30)) - {4})


@pytest.mark.parametrize("how", ["drop", "put back"])
def test_letters_grow_with_their_pictures(open_session, photos, monkeypatch, how):
    monkeypatch.setattr(_session, "_PAUSE", 0.5)
    session = open_session()
    files = sorted(photos.iterdir())
    settle(drop(session, *(files[:9] if how == "drop" else files)))
    if how == "put back":
        session.leave_out(list(range(9, 30)))
        settle(session)
    session.change_settings({"shape": "letters", "letters": "HI"})
    rows = settle(session).now.grid.shape[0]
    if how == "drop":
        drop(session, *files[9:])
    else:
        session.put_back([])
    assert is_whole(settle(session), range(30))
    assert session.now.grid.shape[0] > rows
    assert (session.now.grid[[0, -1]] == OUTSIDE).all()  # not in rows below the letters


def test_arranging_that_is_replaced_leaves_the_step_to_the_next(open_session, photos, monkeypatch):
    session = settle(drop(open_session(), *sorted(photos.iterdir())))
    lay_out, begun = session.arranger.lay_out, threading.Event()

    def wait_once(job, *arguments):
        if begun.is_set():
            return lay_out(job, *arguments)
        begun.set()
        while True:
            job.check()
            time.sleep(0.01)

    monkeypatch.setattr(session.arranger, "lay_out", wait_once)
    session.change_settings({"shape": "letters", "letters": "HI"})
    assert begun.wait(600)
    # As by another thread that came to the same end at the same time.
    session._start("arranging", "Arranging", session._arrange, instead=True)
    assert not settle(session).now.raw


def test_arranging_that_is_canceled_as_it_begins_leaves_the_step_to_the_next(standing):
    step, job = standing.now, Job(0, "arranging", "Arranging", lambda: None)
    standing._set(settled=False, raw=True)
    job.cancel()
    with pytest.raises(Canceled):
        standing._arrange(job)
    assert not standing.now.settled
    standing._set(settled=step.settled, raw=step.raw)


def test_look_alikes_are_known_after_an_undo(open_session, photos, monkeypatch):
    session = open_session(photos)
    expected = session.alike(3)
    begun, describe = threading.Event(), _arranger.describe

    def fail(*arguments, on_progress, **options):
        begun.set()
        for _ in iter(lambda: on_progress(0, 30), 0):
            pass

    monkeypatch.setattr(_arranger, "describe", fail)
    session.change_settings({"features": ["texture"]})
    assert begun.wait(30)
    with pytest.raises(Refused, match="still being compared"):
        session.alike(3)
    monkeypatch.setattr(_arranger, "describe", describe)
    session.undo()
    assert settle(session).alike(3) == expected
    monkeypatch.setattr(_arranger, "describe", fail)
    begun.clear()
    session.change_settings({"features": ["texture"]})
    assert begun.wait(30)
    session.jobs.cancel()
    settle(session)
    with pytest.raises(Refused, match="canceled"):
        session.alike(3)


def test_a_step_that_was_left_before_it_was_arranged_is_arranged_on_return(open_session, photos):
    session = open_session(photos)
    with session._lock:  # it is left before the work begins
        session.change_settings({"rows": 3})
        session.undo()
    assert settle(session).now.grid.shape == (5, 6)
    session.redo()
    assert settle(session).now.grid.shape == (3, 10)
    assert not session.now.raw
    assert session.state()["wall"]["score"] is not None


def test_a_file_may_come_that_is_called_like_a_dropped_picture(open_session, photos):
    session = settle(drop(open_session(photos), photos / "003.jpg", names=["zz.jpg"]))
    move(session, 30, 0)
    close(settle(session))
    Image.new("RGB", (40, 40), "red").save(photos / "zz.jpg")
    for _ in range(2):
        again = open_session(photos)
        assert again.album.names[30:] == ["zz.jpg", "zz (2).jpg"]
        assert is_whole(again, range(32))
        assert cell(again, 31) == 0
        close(again)
