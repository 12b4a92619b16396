import json
import os
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.layout import Positions

ODD = ["\r", "two\nlines", "a,b", '"', "\x00", "", " x ", "=1+1"]
# Names of files are any bytes; Python hands them over with surrogates in place of broken ones.
names = st.lists(
    st.one_of(st.text(max_size=6), st.binary(max_size=4).map(os.fsdecode), st.sampled_from(ODD)),
    min_size=1,
    max_size=7,
)


@given(names, st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([".csv", ".json"]))
def test_any_names_and_places_survive_saving(names, rows, seed, suffix):
    rng = np.random.RandomState(seed)
    columns = -(-len(names) // rows) + rng.randint(3)
    cells = np.full(rows * columns, -1)
    cells[: len(names)] = np.arange(len(names))
    grid = rng.permutation(cells).reshape(rows, columns)
    loaded = saved_and_loaded(Positions(grid, names), suffix)
    assert loaded.names == names
    assert loaded.points is None
    np.testing.assert_array_equal(loaded.grid, grid)


def saved_and_loaded(positions, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"wall{suffix}"
        positions.save(path)
        assert os.listdir(folder) == [path.name]
        return Positions.load(path)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_points_survive_saving_with_those_that_are_empty(suffix):
    points = np.array([[0.0, 1.0], [2.5, -1.0], [3.0, 1e-9]])
    loaded = saved_and_loaded(Positions(np.array([1, -1, 0]), ["a", "b"], points), suffix)
    np.testing.assert_array_equal(loaded.grid, [1, -1, 0])
    np.testing.assert_array_equal(loaded.points, points)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_items_that_stand_nowhere_or_twice_survive_saving(suffix):
    loaded = saved_and_loaded(Positions(np.array([[2, 2], [0, -1]]), ["a", "b", "c"]), suffix)
    np.testing.assert_array_equal(loaded.grid, [[2, 2], [0, -1]])
    assert loaded.names == ["a", "b", "c"]


@pytest.fixture
def positions():
    return Positions(np.array([[1, -1, 0], [-1, 2, -1]]), ["a", "b", "c"])


def test_the_table_lists_every_item_and_the_last_cell(positions, tmp_path):
    positions.save(tmp_path / "wall.csv")
    assert (tmp_path / "wall.csv").read_text().splitlines() == [
        "item,name,row,column,cell",
        "0,a,0,2,2",
        "1,b,0,0,0",
        "2,c,1,1,4",
        ",,1,2,5",
    ]


def test_json_carries_details_ahead_of_the_positions(positions, tmp_path):
    positions.save(tmp_path / "wall.json", details={"score": 0.9})
    written = json.loads((tmp_path / "wall.json").read_text())
    assert list(written) == ["score", "positions"]
    assert written["positions"] == positions.rows()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(positions, tmp_path, monkeypatch):
    path = tmp_path / "wall.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        positions.save(path)
    assert os.listdir(tmp_path) == ["wall.csv"]
    assert path.read_text() == "old"


HEADING = "item,name,row,column,cell\n"
BAD_FILES = {
    "no object.json": ("[]", "holds no list 'positions'"),
    "empty.json": ('{"positions": []}', "found none"),
    "broken.json": ("{", "could not be read"),
    "deep.json": ("[" * 100_000, "could not be read"),
    "number.json": (
        '{"positions": [{"item": 0, "name": 5, "row": 0, "column": 0, "cell": 0}]}',
        "record 0: item is 0 and name is 5",
    ),
    "nowhere.csv": (f"{HEADING}0,a,,,\n", "puts no item into a cell"),
    "nan.csv": (f"{HEADING}0,a,nan,0.5,0\n", "line 2: row is 'nan'"),
    "half.json": ('{"positions": [{"item": 0, "cell": 0, "row": 0, "column": 0}]}', "lacks name"),
    "other.csv": ("a,b\n1,2\n", "line 2 lacks item"),
    "words.csv": (f"{HEADING}x,a,0,0,0\n", "line 2: item is 'x'"),
    "cut.csv": (f"{HEADING}1,b,0,1,1\n", "line 2: item is 1, but no record has 0"),
    "taken.csv": (
        f"{HEADING}0,a,0,0,0\n1,b,0,0,0\n",
        "line 3: cell 0 is already taken by line 2",
    ),
    "moved.csv": (f"{HEADING}0,a,0,1,0\n1,b,0,0,1\n", "puts cell 0 at row 0, column 1"),
    "far.csv": (f"{HEADING}0,a,0.5,0.5,7\n", "line 2: cell is 7, and there are 1"),
    "wall.txt": ("", "is not a known format"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_hold_no_positions_are_refused(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        Positions.load(tmp_path / name)


def test_other_formats_and_missing_folders_are_refused(positions, tmp_path):
    with pytest.raises(ValueError, match=r"ends in '\.txt'"):
        positions.save(tmp_path / "wall.txt")
    with pytest.raises(ValueError, match="there is no folder"):
        positions.save(tmp_path / "missing" / "wall.csv")


def test_a_short_file_cannot_ask_for_all_memory(tmp_path):
    cell = 999_999 * 1_000_000 + 999_999
    (tmp_path / "wall.csv").write_text(f"{HEADING}0,a,999999,999999,{cell}\n")
    with pytest.raises(ValueError, match=r"line 2: .* 1,000,000 x 1,000,000 cells for 1 records"):
        Positions.load(tmp_path / "wall.csv")


def test_a_file_of_two_records_takes_no_gigabytes(tmp_path):
    last = 29_999 * 30_000 + 29_999
    (tmp_path / "wall.csv").write_text(f"{HEADING}0,a,0,0,0\n1,b,29999,29999,{last}\n")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"line 3: .* 30,000 x 30,000 cells for 2 records"):
            Positions.load(tmp_path / "wall.csv")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_large_grid_with_few_items_is_loaded(tmp_path):
    grid = np.full((1000, 2000), -1)
    grid[3, 5] = 0
    Positions(grid, ["a"]).save(tmp_path / "wall.csv")
    np.testing.assert_array_equal(Positions.load(tmp_path / "wall.csv").grid, grid)


def test_a_layout_of_thousands_prints_as_one_line(positions):
    assert str(positions) == "Positions(3 items on 2 x 3 cells, 3 of them empty)"
    points = Positions(np.arange(5000), ["x"] * 5000, np.random.RandomState(0).rand(5000, 2))
    assert repr(points) == "Positions(5,000 items on 5,000 points)"


GRID = np.array([[0, 1], [2, -1]])
BAD_POSITIONS = {
    "a name too few": ((GRID, ["a", "b"]), "`grid` must hold items from 0 to 1, or -1"),
    "fractions": ((GRID / 2, ["a", "b", "c"]), "`grid` must be a 2-D array of whole numbers"),
    "points left out": ((GRID.ravel(), ["a", "b", "c"]), "must be a 2-D array.* shape \\(4,\\)"),
    "points too few": ((GRID.ravel(), ["a", "b", "c"], np.eye(2)), "`points` must be 4 pairs"),
    "one string": ((GRID, "abc"), "`names` must be a list of strings, got str"),
    "no names": ((GRID, None), "`names` must be a list of strings, got NoneType"),
    "numbers": ((GRID, ["a", 1, 2]), "number 1 is a int. Convert it"),
}


@pytest.mark.parametrize("name", BAD_POSITIONS)
def test_what_is_no_layout_is_refused_when_made_not_when_saved(name):
    arguments, message = BAD_POSITIONS[name]
    with pytest.raises(ValueError, match=message):
        Positions(*arguments)


def test_lists_will_do():
    positions = Positions(GRID.tolist(), ("a", "b", "c"))
    assert [row["cell"] for row in positions.rows()] == [0, 1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in the file system are POSIX")
def test_a_link_to_what_is_no_file_is_not_written_through(positions, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "wall.csv").symlink_to(tmp_path / "pipe")
    with pytest.raises(ValueError, match="a device or a pipe"):
        positions.save(tmp_path / "wall.csv")
    assert (tmp_path / "pipe").is_fifo()
