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
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._files import saving as _saving
from unshuffle._files.saving import replace_file
from unshuffle.layout import Positions
from unshuffle.matching import Matches

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


HELD = """
import os, sys, time
from pathlib import Path
from unshuffle._files import saving as _saving
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


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_stream_that_breaks_off_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def pieces():
        yield b"x" * 10**6
        raise error

    with pytest.raises(type(error)):
        replace_file(path, pieces())
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]
    replace_file(path, iter([b"one ", b"two"]))
    assert path.read_text() == "one two"


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
    replace_file(tmp_path / "b.csv", b"new")
    names = {each.name for each in tmp_path.iterdir()}
    assert names == {part.name, *others, "b.csv"}


def test_where_files_cannot_be_locked_only_old_parts_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(_saving, "fcntl", None)
    young, old = (tmp_path / f".unshuffle-{digit * 32}.part" for digit in "ab")
    for part in (young, old):
        part.write_text("half")
    os.utime(old, (0, 0))
    replace_file(tmp_path / "b.csv", b"new")
    assert {each.name for each in tmp_path.iterdir()} == {young.name, "b.csv"}


SAVED = {
    "matches": Matches(
        np.array([2, -1, 0]),
        np.array([0.5, 0.0, 1.0]),
        ["a", "", "c,d"],
        ["e", "f", "=g"],
        np.array([[2, 1], [0, 1], [0, 2]]),
    ),
    "few matches": Matches(np.array([1, 0]), np.array([0.25, 1.0]), ["a", "b"], ["c", "d"]),
    "grid": Positions(np.array([[1, -1, 0], [-1, 2, -1]]), ["a", "b", "c"]),
    "repeats": Positions(np.array([[1, 1], [0, -1]]), ["a", "b", "nowhere"]),
    "points": Positions(np.array([1, -1, 0]), ["a", "b"], np.array([[0, 1], [2.5, -1], [3, 1e9]])),
}
ODD = [
    "",
    "-1",
    "0",
    "1",
    "2",
    "0.7",
    "1.0",
    "1e400",
    "nan",
    "inf",
    "-0.5",
    "1.5",
    "99",
    "x",
    "1_0",
]
ODD += ["9" * 30, "999999", "true", "null", " 1", "\u0663", "\x00", '"', "a\nb", "item", "row"]
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    0.7,
    1.0,
    1e308,
    5,
    10**30,
    "",
    "a",
    "0",
    [],
    [1],
    {},
    {"index_y": 0},
]
VALUES += [float("nan"), float("inf"), -0.25, 1.5, 999_999, [{"index_y": 0, "name_y": "e"}]]


def fields(one):
    """What two equal results have alike."""
    arrays = ("permutation", "confidence", "candidates", "grid", "points")
    return {
        name: value.tolist() if name in arrays and value is not None else value
        for name, value in vars(one).items()
    }


def text_of(one, suffix):
    with tempfile.TemporaryDirectory() as folder:
        one.save(Path(folder) / f"saved{suffix}")
        return (Path(folder) / f"saved{suffix}").read_text("utf-8")


@st.composite
def broken_text(draw, text):
    """A file with a few characters, cells or lines changed, moved or lost."""
    for _ in range(draw(st.integers(1, 3))):
        lines = text.split("\n")
        k = draw(st.integers(0, len(lines) - 1))
        how = draw(
            st.sampled_from(["cell", "cell", "cell", "drop", "twice", "move", "cut", "add"])
        )
        if how == "cell":
            cells = lines[k].split(",")
            cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(ODD))
            lines[k] = ",".join(cells)
        elif how == "drop":
            del lines[k]
        elif how == "twice":
            lines.insert(k, lines[k])
        elif how == "move":
            lines.append(lines.pop(k))
        text = "\n".join(lines)
        place = draw(st.integers(0, len(text)))
        if how == "cut":
            text = text[:place]
        elif how == "add":
            text = text[:place] + draw(st.sampled_from(ODD)) + text[place:]
    return text


@st.composite
def broken_json(draw, text):
    """The same with fields of records; the text itself may break too."""
    content = json.loads(text)
    (key,) = content
    for _ in range(draw(st.integers(1, 3))):
        rows = content[key]
        if not rows:
            break
        k = draw(st.integers(0, len(rows) - 1))
        how = draw(st.sampled_from(["field", "field", "field", "lose", "drop", "twice", "odd"]))
        if how == "drop":
            del rows[k]
        elif how == "twice":
            rows.append(rows[k])
        elif how == "odd":
            rows[k] = draw(st.sampled_from(VALUES))
        elif isinstance(rows[k], dict) and rows[k]:
            name = draw(st.sampled_from(sorted(rows[k])))
            rows[k] = dict(rows[k])
            if how == "lose":
                del rows[k][name]
            else:
                rows[k][name] = draw(st.sampled_from(VALUES))
    text = json.dumps(content)
    return draw(broken_text(text)) if draw(st.booleans()) else text


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize("name", SAVED)
@given(data=st.data())
def test_a_broken_file_is_refused_with_its_place_or_gives_something_sound(name, suffix, data):
    whole = text_of(SAVED[name], suffix)
    text = data.draw((broken_json if suffix == ".json" else broken_text)(whole))
    kind = type(SAVED[name])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"broken{suffix}"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            loaded = kind.load(path)
        except ValueError as error:
            message = str(error)
            assert repr(str(path)) in message
            whole_file = "could not be read|found none|holds no list|puts no item"
            assert re.search(rf"line \d+|record \d+|{whole_file}", message), message
            return
        again = Path(folder) / f"again{suffix}"
        loaded.save(again)
        assert fields(kind.load(again)) == fields(loaded)
        # Made anew: every check of the constructor holds.
        kind(**vars(loaded))


RECORD = {"index_x": 0, "name_x": "a", "index_y": 0, "name_y": "b", "confidence": 1}
CELL = {"item": 0, "name": "a", "row": 0, "column": 0, "cell": 0}
FIELDS = [
    (Matches, {"confidence": float("nan")}, "confidence is nan"),
    (Matches, {"confidence": float("inf")}, "confidence is inf"),
    (Matches, {"confidence": -0.25}, "confidence is -0.25. Give a number from 0 to 1"),
    (Matches, {"confidence": 1.5}, "confidence is 1.5. Give a number from 0 to 1"),
    (Matches, {"confidence": None}, "confidence is missing"),
    (Matches, {"name_x": None}, "index_x is 0 and name_x is missing"),
    (Matches, {"name_y": 7}, "index_y is 0 and name_y is 7"),
    (Matches, {"index_x": 0.7}, "index_x is 0.7. Give a whole number"),
    (Matches, {"index_y": True}, "index_y is True"),
    (Matches, {"index_y": -1}, "index_y is -1"),
    (Matches, {"candidates": [{"index_y": 1, "name_y": "b"}]}, "candidate 1 is called 'b'"),
    (Matches, {"candidates": [{"index_y": 0.7, "name_y": "b"}]}, "index_y is 0.7. Give a whole"),
    (Matches, {"candidates": [{"index_y": 0, "name_y": None}]}, "name_y is missing"),
    (Matches, {"candidates": [0]}, "candidates must be a list of objects"),
    (Positions, {"cell": 0.7}, "cell is 0.7. Give a whole number"),
    (Positions, {"row": float("nan")}, "row is nan. Give a finite number"),
    (Positions, {"row": 0.5}, "row is 0.5 and column is 0. Write whole numbers for a grid"),
    (Positions, {"row": -1}, "row is -1 and column is 0. Count both from 0"),
    (Positions, {"row": None}, "some of row, column and cell"),
    (Positions, {"name": None}, "item is 0 and name is missing"),
    (Positions, {"item": None, "name": "a"}, "item is missing and name is 'a'"),
]


@pytest.mark.parametrize(("kind", "change", "message"), FIELDS)
def test_every_field_is_checked_and_the_record_named(tmp_path, kind, change, message):
    key, record = ("pairs", RECORD) if kind is Matches else ("positions", CELL)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({key: [record]}))
    kind.load(path)
    path.write_text(json.dumps({key: [{**record, **change}]}))
    with pytest.raises(ValueError, match=rf"saved.json', record 0.*: .*{re.escape(message)}"):
        kind.load(path)


def test_a_name_in_two_ways_is_refused_with_both_lines(tmp_path):
    path = tmp_path / "wall.csv"
    path.write_text("item,name,row,column,cell\n0,a,0,0,0\n0,b,0,1,1\n")
    with pytest.raises(ValueError, match="line 3: item is 0, as in line 2 under another name"):
        Positions.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in the file system are POSIX")
@pytest.mark.parametrize("kind", [Matches, Positions])
def test_pipes_and_missing_files_are_refused_and_not_waited_for(tmp_path, kind):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="a device or a pipe"):
        kind.load(tmp_path / "pipe.csv")
    for error in (FileNotFoundError, ValueError):
        with pytest.raises(error, match=r"There is no file .*missing\.csv .*Check the name"):
            kind.load(tmp_path / "missing.csv")
