import os
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from unshuffle.cli._app import app

GOOD = "x,y\n1,2\n3,5\n4,1\n2,2\n"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Run a command that must end with exit code 2 and one line; gives that line."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        before = sorted(tmp_path.rglob("*"))
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 2, (result.output, result.exception)
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return result.stderr

    return call


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(GOOD)
    return path


BAD_TABLES = {
    "nan": ("x,y\n1,2\nnan,4\n5,6\n", "row 2, column 'x'"),
    "gap": ("x,y\n1,2\n3,\n5,6\n", "row 2, column 'y'"),
    "named gap": ("n,x,y\np,1,2\nq,3,NA\n", "row 2 (q), column 'y'"),
    "infinity": ("x,y\n1,2\n3,inf\n", "missing or infinite"),
    "words": ("x,y\n1,2\n3,red\n", "line 3: column 'y' holds 'red'"),
    "ragged": ("x,y\n1,2\n3\n", "line 3 has 1 cells where line 1 has 2"),
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "header": ("x,y\n", "header and no rows"),
    "one item": ("x,y\n1,2\n", "1 item"),
    "all equal": ("x,y\n1,2\n1,2\n1,2\n", "All rows"),
    "zero bytes": ("x,y\n1,2\n\0,3\n", "not a text file"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_with_the_place(refused, good, tmp_path, case):
    content, message = BAD_TABLES[case]
    bad = tmp_path / "bad.csv"
    bad.write_text(content)
    assert message in refused("match", good, bad)
    assert message in refused("match", bad, good, "--json")


def save(path, array):
    np.save(path, array, allow_pickle=True)
    return path


BAD_ARRAYS = {
    "nan": (np.array([[1.0, np.nan], [2, 3]]), "row 1, column '2'"),
    "1-D": (np.arange(5.0), "1 dimension"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), "values. Give real numbers"),
    "complex": (np.ones((3, 2), complex), "complex128 values"),
    "pickle": (np.array([[{}], [None]], dtype=object), "cannot be read"),
    "empty": (np.ones((0, 3)), "empty"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused(refused, good, tmp_path, case):
    array, message = BAD_ARRAYS[case]
    assert message in refused("match", good, save(tmp_path / "bad.npy", array))


def test_an_array_file_that_promises_too_much_takes_no_memory(refused, good, tmp_path):
    path = tmp_path / "bomb.npy"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (900000, 900000), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"0" * 99)
    assert "cannot be read" in refused("match", good, path)


BAD_GRAMS = {
    "not square": (np.ones((3, 2)), "square"),
    "not symmetric": (np.arange(9.0).reshape(3, 3), "not symmetric"),
    "nan": (np.full((3, 3), np.nan), "NaN"),
}


@pytest.mark.parametrize("case", BAD_GRAMS)
def test_bad_gram_matrices_are_refused(refused, tmp_path, case):
    array, message = BAD_GRAMS[case]
    gram = save(tmp_path / "good.npy", np.eye(3) + 0.1)
    assert message in refused("match", gram, save(tmp_path / "bad.npy", array), "--precomputed")


def test_broken_parquet_and_unknown_kinds_are_refused(refused, good, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense PAR1")
    assert "cannot be read as Parquet" in refused("match", good, tmp_path / "bad.parquet")
    (tmp_path / "bad.xlsx").write_bytes(b"PK")
    assert "of no kind that can be read" in refused("match", good, tmp_path / "bad.xlsx")
    assert "There is no file or folder" in refused("match", good, "missing.csv")


def folder_of_pictures(path, n=3):
    path.mkdir()
    for i in range(n):
        noise = np.random.RandomState(i).randint(0, 256, (9, 9, 3)).astype(np.uint8)
        Image.fromarray(noise).save(path / f"{i}.png")
    return path


def test_folders_that_cannot_be_matched_are_refused(refused, good, tmp_path):
    pictures = folder_of_pictures(tmp_path / "pictures")
    one = folder_of_pictures(tmp_path / "one", 1)
    (tmp_path / "void").mkdir()
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "a.png").write_text("text")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("some words")
    assert "no files" in refused("match", pictures, tmp_path / "void")
    assert "no picture that can be read" in refused("match", pictures, tmp_path / "fake")
    assert "1 item" in refused("match", pictures, one)
    assert "a folder of pictures and" in refused("match", pictures, good)
    assert "a folder of text files" in refused("match", pictures, tmp_path / "texts")
    assert "--kernel text" in refused("match", pictures, pictures, "--kernel", "text")
    assert "--kernel rbf" in refused(
        "match", tmp_path / "texts", tmp_path / "texts", "--kernel", "rbf"
    )


def test_outputs_that_cannot_be_written_are_refused_before_the_work(refused, good, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    missing = tmp_path / "missing" / "pairs.csv"
    assert "there is no folder" in refused("match", good, good, "-o", missing)
    assert "it is a folder" in refused("match", good, good, "-o", tmp_path / "folder.csv")
    assert "ends in .csv or .json" in refused("match", good, good, "-o", "pairs.xlsx")
    assert "there is no folder" in refused("match", good, good, "-o", good / "pairs.csv")
    assert "would be lost" in refused("match", good, good, "-o", good)
    assert good.read_text() == GOOD
    assert "--sheet shows pictures" in refused("match", good, good, "--sheet", "a.png")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which nobody may write to")
def test_read_only_places_are_refused(refused, good):
    assert "Cannot write /proc/pairs.csv" in refused("match", good, good, "-o", "/proc/pairs.csv")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write to anything"
)
def test_read_only_files_and_folders_are_refused(refused, good, tmp_path):
    (tmp_path / "pairs.csv").write_text("")
    (tmp_path / "pairs.csv").chmod(0o400)
    assert "read-only" in refused("match", good, good, "-o", "pairs.csv")
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "Cannot write" in refused("match", good, good, "-o", "locked/pairs.csv")


BAD_FROZEN = {
    "": "is empty",
    "0,1\n\n0,2\n": "frozen.csv, line 3: item '0' of A is frozen already, in line 1",
    "left,right\n0,1\n2,1\n": "frozen.csv, line 3: item '1' of B is frozen already, in line 2",
    "0,1\n0,99\n": "frozen.csv, line 2: item '0' of A is frozen already",
    "1,1\n0,99\n": "frozen.csv, line 2: B has no item 99; it has 4 items",
    "-1,0\n": "frozen.csv, line 1: A has no item -1",
    "0,nobody\n": "frozen.csv, line 1: B has no item 'nobody'",
    "0,nobody\n1,1\n": "frozen.csv, line 1: B has no item 'nobody'",
    "left,right\nall,none\n": "frozen.csv, line 2: A has no item 'all'",
    "left,right\n": "frozen.csv, line 1: A has no item 'left'",
    "0\n": "has 1 cell(s)",
    "0,1,2\n": "has 3 cell(s)",
}


@pytest.mark.parametrize("content", BAD_FROZEN)
def test_bad_frozen_pairs_are_refused(refused, good, tmp_path, content):
    (tmp_path / "frozen.csv").write_text(content)
    assert BAD_FROZEN[content] in refused("match", good, good, "--frozen", "frozen.csv")


def test_frozen_pairs_by_a_name_that_two_items_share_are_refused(refused, tmp_path):
    (tmp_path / "twins.csv").write_text("n,x,y\np,1,2\np,3,5\nq,4,1\n")
    (tmp_path / "frozen.csv").write_text("p,q\n")
    line = refused("match", "twins.csv", "twins.csv", "--frozen", "frozen.csv")
    assert "2 items of A are called 'p'" in line
    assert "There is no file" in refused("match", "twins.csv", "twins.csv", "--frozen", "none.csv")


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are any bytes")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_file_names_of_any_bytes_survive_and_never_drive_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures = folder_of_pictures(tmp_path / "pictures", 5)
    for name in (b"\xff\xfe.png", b"\x1b[31mred.png", b'comma,"quote".png'):
        data = (pictures / "0.png").read_bytes()
        data = data if name[:1] != b"\x1b" else b"damaged"
        with open(os.path.join(os.fsencode(pictures), name), "wb") as file:
            file.write(data)
    result = CliRunner().invoke(app, ["match", "pictures", "pictures"])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stderr
    assert "[31mred.png" in result.stderr
    written = (tmp_path / "pairs.csv").read_bytes()
    assert b"\xff\xfe.png" in written
    assert b'"comma,""quote"".png"' in written
