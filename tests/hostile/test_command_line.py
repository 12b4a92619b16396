import os
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from unshuffle.cli._app import app

GOOD = "x,y\n1,2\n3,5\n4,1\n2,2\n"


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in the file system are POSIX")
def test_pipes_and_devices_are_refused_and_not_waited_for(refused, good, tmp_path):
    for suffix in (".csv", ".tsv", ".npy", ".parquet"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        for suffix in (".csv", ".tsv", ".npy", ".parquet"):
            odd = tmp_path / f"{name}{suffix}"
            assert "leads to a device or a pipe" in refused("match", good, odd)
            assert "leads to a device or a pipe" in refused("layout", odd)
            assert "leads to a device or a pipe" in refused("morph", good, odd)
        odd = tmp_path / f"{name}.csv"
        assert "(--frozen) leads to" in refused("match", good, good, "--frozen", odd)
        assert "(--frozen) leads to" in refused("layout", good, "--frozen", odd)
        arrays = [tmp_path / f"{name}.npy"] * 2
        assert "leads to a device or a pipe" in refused("match", *arrays, "--precomputed")


BAD_OPTIONS = {
    "--id z": "has no column 'z' for --id",
    "--id x --no-id": "exclude each other",
    "--id x --id y --id x": "--id is given 3 times",
    "--spreadsheet -o pairs.json": "no output ends in .csv",
    "--kernel rbf --kernel rbf": "--kernel rbf is given 2 times",
    "--kernel text": "--kernel text does not suit",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_options_that_do_not_suit_tables_are_refused(refused, good, options):
    assert BAD_OPTIONS[options] in refused("match", good, good, *options.split())


def test_counts_are_asked_for_where_a_kernel_needs_them(refused, good, tmp_path):
    (tmp_path / "negative.csv").write_text("x,y\n1,-2\n3,5\n4,1\n")
    line = refused("match", good, "negative.csv", "--kernel", "rbf", "--kernel", "chi2")
    assert "negative.csv holds -2, and --kernel chi2 compares counts" in line


def save(path, array):
    np.save(path, array, allow_pickle=True)
    return path


BAD_ARRAYS = {
    "nan": (np.array([[1.0, np.nan], [2, 3]]), "row 1, column '2'"),
    "1-D": (np.arange(5.0), "1 dimension"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), "values. Give real numbers"),
    "complex": (np.ones((3, 2), complex), "complex128 values"),
    "pickle": (np.array([[{}], [None]], dtype=object), "holds Python objects"),
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
    assert "cannot be read as Parquet" in refused("layout", tmp_path / "bad.parquet")
    pytest.importorskip("h5py")
    (tmp_path / "bad.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n nonsense")
    assert "cannot be read as AnnData" in refused("match", good, tmp_path / "bad.h5ad")
    (tmp_path / "bad.xlsx").write_bytes(b"PK")
    assert "bad.xlsx cannot be read. Give a folder" in refused(
        "match", good, tmp_path / "bad.xlsx"
    )
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
    assert "holds no readable picture" in refused("match", pictures, tmp_path / "fake")
    assert "1 item" in refused("match", pictures, one)
    assert "a folder of pictures and" in refused("match", pictures, good)
    assert "a folder of text files" in refused("match", pictures, tmp_path / "texts")
    assert "--kernel text" in refused("match", pictures, pictures, "--kernel", "text")
    assert "--kernel rbf" in refused(
        "match", tmp_path / "texts", tmp_path / "texts", "--kernel", "rbf"
    )
    for option in ("--no-id", "--header"):
        assert "are for tables" in refused("match", pictures, pictures, option)
        assert "are for tables" in refused("layout", pictures, option)


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


def test_known_pairs_of_an_item_that_is_gone_are_not_those_of_its_number(refused, tmp_path):
    lines = [f"{name},{x},{x * x}" for x, name in enumerate("pqrst")]
    (tmp_path / "a.csv").write_text("\n".join(["name,x,y", *lines]) + "\n")
    (tmp_path / "b.csv").write_text("\n".join(["name,x,y", *lines[1:]]) + "\n")
    own = "index_x,name_x,index_y,name_y\n1,q,0,p\n"
    (tmp_path / "frozen.csv").write_text(own)
    line = refused("match", "a.csv", "b.csv", "--frozen", "frozen.csv")
    assert "frozen.csv, line 2: no item is called 'p' now. Drop the line." in line


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


@pytest.fixture
def pictures(tmp_path):
    return folder_of_pictures(tmp_path / "pictures", 12)


BAD_SHAPES = {
    "3x3": "--shape 3x3 has 9 cells for 12 items",
    "0x5": "--shape 0x5 has no cell",
    "5x0": "--shape 5x0 has no cell",
    "axb": "--shape 'axb' is not understood. Give rows x columns, as in 16x20",
    "12": "is not understood",
    "-3x5": "is not understood",
    "3.5x4": "is not understood",
    "3x4x5": "is not understood",
    "": "is not understood",
}


@pytest.mark.parametrize("shape", BAD_SHAPES)
def test_shapes_that_cannot_be_filled_are_refused(refused, pictures, shape):
    assert BAD_SHAPES[shape] in refused("layout", pictures, f"--shape={shape}")


def test_shapes_larger_than_memory_are_refused(refused, pictures):
    line = refused("layout", pictures, "--shape", "900000000x900000000")
    assert "810,000,000,000,000,000 cells, more than the 100,000,000" in line


def test_masks_that_hold_nothing_are_refused(refused, pictures, tmp_path):
    Image.new("RGB", (9, 9), "white").save(tmp_path / "white.png")
    Image.new("RGBA", (9, 9), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    (tmp_path / "text.png").write_text("no picture")
    assert "white.png has no cell" in refused("layout", pictures, "--mask", "white.png")
    assert "clear.png has no cell" in refused("layout", pictures, "--mask", "clear.png")
    assert "cannot be read as a mask" in refused("layout", pictures, "--mask", "text.png")
    assert "no such file" in refused("layout", pictures, "--mask", "missing.png")
    assert "no letter" in refused("layout", pictures, "--text", "  ")
    assert "cannot draw" in refused("layout", pictures, "--text", "日本")
    both = refused("layout", pictures, "--text", "A", "--shape", "4x4")
    assert "exclude each other" in both


BAD_CELLS = {
    "": "cells.csv is empty",
    "0.png,0,0\n1.png,0,0\n": "line 2: the cell in row 0, column 0 is frozen already, in line 1",
    "0.png,0,0\n\n0.png,1,1\n": "line 3: item '0.png' is frozen already, in line 1",
    "0.png,3,0\n": "line 1: row 3, column 0 is outside the grid, which has 3 rows and 4 columns",
    "0.png,-1,0\n": "row -1, column 0 is outside the grid",
    "nobody.png,0,0\n": "line 1: the collection has no item 'nobody.png'",
    "99,0,0\n": "the collection has no item 99; it has 12 items",
    "0.png,0\n": "line 1 has 2 cell(s)",
    "0.png,0,zero\n": "line 1: 'zero' is not an integer",
    "name,row,column\n0.png,0,1.5\n": "line 2: '1.5' is not an integer",
    "\0": "not a text file",
}


@pytest.mark.parametrize("content", BAD_CELLS)
def test_bad_frozen_cells_are_refused(refused, pictures, tmp_path, content):
    (tmp_path / "cells.csv").write_text(content)
    line = refused("layout", pictures, "--shape", "3x4", "--frozen", "cells.csv")
    assert BAD_CELLS[content] in line


def test_frozen_cells_outside_the_mask_are_refused(refused, pictures, tmp_path):
    Image.fromarray(np.tri(5, dtype=np.uint8)[::-1] * 255).save(tmp_path / "mask.png")
    (tmp_path / "cells.csv").write_text("0.png,0,0\n")
    line = refused("layout", pictures, "--text", "O", "--frozen", "cells.csv")
    assert "row 0, column 0 is outside the mask" in line
    assert "There is no file" in refused("layout", pictures, "--frozen", "none.csv")


def test_folders_that_cannot_be_laid_out_are_refused(refused, pictures, tmp_path):
    (tmp_path / "void").mkdir()
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "a.png").write_text("text")
    (tmp_path / "junk" / "b.jpg").write_bytes(b"")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("some words")
    for command in (("layout",), ("collage", pictures / "0.png")):
        assert "no files" in refused(*command, tmp_path / "void")
        assert "2 file(s) were skipped" in refused(*command, tmp_path / "junk")
        assert "There is no" in refused(*command, tmp_path / "missing")
    assert "a folder of text files" in refused("layout", tmp_path / "texts", "--features", "color")
    assert "1 item" in refused("layout", tmp_path / "texts")
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    assert "no files" in refused("layout", tmp_path / "outer")
    line = refused("layout", tmp_path / "outer", "--no-recursive")
    assert "Leave out --no-recursive" in line
    one = folder_of_pictures(tmp_path / "one", 1)
    assert "at least two items" in refused("layout", one)


def test_tables_have_no_pictures_to_show(refused, good):
    assert "holds no pictures to show" in refused("layout", good, "-o", "wall.html")
    assert "--features compares pictures" in refused("layout", good, "--features", "color")
    assert "--summary 9 asks for more than the 4" in refused("layout", good, "--summary", 9)


@pytest.mark.parametrize("command", ["layout", "collage"])
def test_walls_that_cannot_be_written_are_refused_before_the_work(
    refused, pictures, tmp_path, command
):
    template = folder_of_pictures(tmp_path / "templates", 1) / "0.png"
    before = {path: path.read_bytes() for path in (template, pictures / "3.png")}
    arguments = (command, pictures) if command == "layout" else (command, template, pictures)
    assert "there is no folder" in refused(*arguments, "-o", "missing/wall.png")
    assert "ends in '.bmp'" in refused(*arguments, "-o", "wall.bmp")
    assert "the folder holds other files" in refused(*arguments, "-o", pictures)
    assert "asked for twice" in refused(*arguments, "-o", "a.png", "-o", "./a.png")
    inside = refused(*arguments, "-o", pictures / "3.png")
    assert "is in the input folder" in inside
    if command == "collage":
        assert "would be lost" in refused(*arguments, "-o", template)
    else:
        (tmp_path / "cells.csv").write_text("0.png,0,0\n")
        frozen = refused(*arguments, "--frozen", "cells.csv", "-o", "cells.csv")
        assert "would be lost" in frozen
        assert "would be lost" in refused(*arguments, "--mask", template, "-o", template)
    assert {path: path.read_bytes() for path in before} == before


needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", ["l1.png", "sub/l2.png", "sub/new.png", "photo.csv"])
@pytest.mark.parametrize("command", ["match", "layout", "collage"])
def test_no_picture_is_overwritten_by_an_output(refused, tmp_path, command, place):
    left, right = (folder_of_pictures(tmp_path / name) for name in ("L", "R"))
    (left / "0.png").rename(left / "l1.png")
    (left / "sub").mkdir()
    (left / "1.png").rename(left / "sub" / "l2.png")
    # The content decides: this is read as a picture, and would be replaced by a table.
    (left / "2.png").rename(left / "photo.csv")
    before = contents(tmp_path)
    arguments = {
        "match": (left, right, "-o" if place.endswith("csv") else "--sheet"),
        "layout": (left, "-o"),
        "collage": (right / "0.png", left, "-o"),
    }[command]
    line = refused(command, *arguments, left / place)
    assert f"{left / place} is in the input folder" in line
    if command == "match":
        swapped = (right, left, *arguments[2:])
        assert "is in the input folder" in refused(command, *swapped, left / place)
    assert contents(tmp_path) == before


@needs_links
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_no_input_is_overwritten_through_a_link(refused, good, tmp_path, link):
    left, right = (folder_of_pictures(tmp_path / name) for name in ("L", "R"))
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in ("a", "b"):
        (texts / f"{name}.txt").write_text(f"some words of {name}")
    (tmp_path / "cells.csv").write_text("0.png,0,0\n")
    for target, name in (
        (left / "1.png", "out.png"),
        (good, "pairs.csv"),
        (tmp_path / "cells.csv", "cells2.csv"),
        (texts / "a.txt", "text.csv"),
    ):
        link(target, tmp_path / name)
    link(texts / "a.txt", texts / "inside.csv")
    before = contents(tmp_path)
    for arguments in (
        ("match", left, right, "--sheet", "out.png"),
        ("match", right, left, "--sheet", "out.png"),
        ("layout", left, "-o", "out.png"),
        ("collage", right / "0.png", left, "-o", "out.png"),
        ("collage", left / "1.png", right, "-o", "out.png"),
        ("layout", right, "--mask", left / "1.png", "-o", "out.png"),
        ("morph", left / "1.png", right / "1.png", "-o", "out.png"),
        ("match", texts, texts, "-o", "text.csv"),
        ("match", texts, texts, "-o", texts / "inside.csv"),
    ):
        line = refused(*arguments)
        assert "is in the input folder" in line or "lost" in line
    assert "would be lost" in refused("match", good, good, "-o", "pairs.csv")
    assert "would be lost" in refused("layout", good, "-o", "pairs.csv")
    line = refused("layout", right, "--frozen", "cells.csv", "-o", "cells2.csv")
    assert "would be lost" in line
    assert contents(tmp_path) == before


def test_outputs_in_parts_of_the_folder_that_are_not_read_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures = folder_of_pictures(tmp_path / "pictures")
    for name in ("sub", ".hidden"):
        (pictures / name).mkdir()
    for name, options in (("sub", ["--no-recursive"]), (".hidden", [])):
        arguments = ["layout", str(pictures), "-o", str(pictures / name / "w.png"), *options]
        result = CliRunner().invoke(app, [*arguments, "--no-cache"])
        assert result.exit_code == 0, result.output


def test_the_list_of_skipped_files_replaces_no_input_and_no_output(refused, pictures, tmp_path):
    (tmp_path / "w.skipped.csv").write_text("0.png,0,0\n")
    line = refused("layout", pictures, "--frozen", "w.skipped.csv", "-o", "w.png")
    assert "w.skipped.csv is also an input" in line
    line = refused("layout", pictures, "-o", "w.png", "-o", "w.skipped.csv")
    assert "w.skipped.csv is reserved for the list of skipped files" in line


def test_collections_of_which_one_is_part_of_the_other_are_refused(refused, tmp_path):
    outer = folder_of_pictures(tmp_path / "outer")
    inner = folder_of_pictures(outer / "inner")
    for arguments in ((outer, inner), (inner, outer)):
        line = refused("match", *arguments)
        assert f"{inner} is inside {outer}, whose sub-folders are read too" in line
    result = CliRunner().invoke(app, ["match", str(outer), str(inner), "--no-recursive"])
    assert result.exit_code == 0, result.output
    assert "A: read 3 files in 1 folder" in result.stdout


@needs_links
def test_circles_of_links_are_refused_wherever_they_are_named(refused, good, pictures, tmp_path):
    for name in ("loop.png", "loop.csv", "loop.npy", "loop"):
        (tmp_path / name).symlink_to(name)
    for arguments in (
        ("layout", pictures, "-o", "loop.png"),
        ("layout", pictures, "-o", "loop.csv"),
        ("layout", pictures, "-o", "loop/wall.png"),
        ("layout", pictures, "--frozen", "loop.csv"),
        ("layout", pictures, "--mask", "loop.png"),
        ("layout", pictures, "--features", "loop.npy"),
        ("layout", "loop"),
        ("layout", "loop.csv"),
        ("collage", "loop.png", pictures),
        ("collage", pictures / "0.png", "loop"),
        ("match", "loop", pictures),
        ("match", pictures, "loop"),
        ("match", good, good, "-o", "loop.csv"),
        ("match", pictures, pictures, "--sheet", "loop.png"),
        ("match", good, good, "--frozen", "loop.csv"),
        ("morph", "loop.png", pictures / "0.png"),
        ("morph", pictures / "0.png", pictures / "1.png", "-o", "loop.png"),
        ("demo", "-o", "loop"),
    ):
        assert "loop" in refused(*arguments)


@needs_links
@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/stdin", "pipe"])
def test_devices_and_pipes_are_refused_and_never_waited_for(refused, pictures, tmp_path, endless):
    os.mkfifo(tmp_path / "pipe")
    # Another end of a pipe: what a program gets that is fed by another one.
    reading, writing = os.pipe()
    target = {"pipe": tmp_path / "pipe", "/dev/stdin": f"/dev/fd/{reading}"}.get(endless, endless)
    for name in ("e.png", "e.csv", "e.npy"):
        (tmp_path / name).symlink_to(target)
    regular = "not a regular file"
    assert regular in refused("layout", pictures, "--mask", "e.png")
    assert regular in refused("collage", "e.png", pictures)
    assert regular in refused("morph", "e.png", pictures / "0.png")
    device = "leads to a device or a pipe"
    for command in (("layout", pictures), ("match", pictures, pictures)):
        assert f"e.csv (--frozen) {device}" in refused(*command, "--frozen", "e.csv")
    assert f"e.npy (--features) {device}" in refused("layout", pictures, "--features", "e.npy")
    assert device in refused("layout", pictures, "-o", "e.png")
    os.close(reading)
    os.close(writing)


def test_features_that_do_not_suit_are_refused(refused, pictures, tmp_path):
    save(tmp_path / "short.npy", np.ones((5, 3)))
    save(tmp_path / "gap.npy", np.full((12, 3), np.nan))
    save(tmp_path / "pickle.npy", np.array([[{}]] * 12, dtype=object))
    (tmp_path / "text.npy").write_text("text")
    short = refused("layout", pictures, "--features", "short.npy")
    assert "5" in short
    assert "12" in short
    assert "NaN" in refused("layout", pictures, "--features", "gap.npy")
    for name in ("pickle.npy", "text.npy"):
        line = refused("layout", pictures, "--features", name)
        assert "holds Python objects, which are never loaded" in line
        assert "allow_pickle" not in line
    assert "There is no file missing.npy" in refused(
        "layout", pictures, "--features", "missing.npy"
    )
    assert "colors is not known. Did you mean color?" in refused(
        "layout", pictures, "--features", "colors"
    )


def test_what_is_nearly_right_is_answered_with_what_to_type(refused, pictures, tmp_path):
    name = next(each.name for each in sorted(pictures.iterdir()) if each.suffix == ".png")
    (tmp_path / "kinds.csv").write_text(f"picture,kind\n{name},fruit\n")
    (tmp_path / "a.csv").write_text("1,2\n3,5\n4,4\n")
    line = refused("layout", pictures, "--text", "")
    assert "--text '' has no letter to draw. Give at least one" in line
    for command in (["layout", pictures / name], ["match", pictures / name, pictures]):
        line = refused(*command)
        assert f"{name} is one picture. Give the folder that holds the pictures, such as" in line
    line = refused("layout", pictures, "--labels", "kinds", "--data", "kinds.csv")
    assert "--labels 'kinds' is not a column. Did you mean kind?" in line
    line = refused("match", "a.csv", "a.csv", "--kernel", "rfb")
    assert "--kernel rfb is not known. Did you mean rbf?" in line
    line = refused("layout", pictures, "--frozen", pictures / name)
    assert "is not a text file. --frozen reads .csv files. Give one line for each item" in line
    line = refused("collage", pictures, pictures / name)
    assert "is a folder. Give the picture to show first, then the folder" in line


def test_templates_that_are_no_pictures_are_refused(refused, pictures, tmp_path):
    (tmp_path / "text.png").write_text("text")
    (tmp_path / "empty.png").write_bytes(b"")
    assert "cannot be read as a picture: not a picture" in refused("collage", "text.png", pictures)
    assert "empty file" in refused("collage", "empty.png", pictures)
    assert "missing.png cannot be read as a picture: no such file" in refused(
        "collage", "missing.png", pictures
    )
    assert "is a folder. Give the picture to show first" in refused("collage", pictures, pictures)
    template = pictures / "0.png"
    assert "no cell" in refused("collage", template, pictures, "--shape", "0x3")


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are any bytes")
def test_pages_and_positions_hold_file_names_of_any_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pictures = folder_of_pictures(tmp_path / os.fsdecode(b"\xff<b>"), 5)
    data = (pictures / "0.png").read_bytes()
    hostile = (b"\xff\xfe.png", b"<script><img src=x onerror=alert(1)>.png")
    for name in hostile:
        with open(os.path.join(os.fsencode(pictures), name), "wb") as file:
            file.write(data)
    result = CliRunner().invoke(app, ["layout", str(pictures), "-o", "w.html", "-o", "w.csv"])
    assert result.exit_code == 0, result.output
    assert b"\xff\xfe.png" in (tmp_path / "w.csv").read_bytes()
    page = (tmp_path / "w.html").read_text("ascii")
    assert "<img" not in page
    assert "<b>" not in page
    assert "onerror=alert" in page
