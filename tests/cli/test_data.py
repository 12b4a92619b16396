import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unshuffle._files.paths import BadInput
from unshuffle.cli._app import one_line
from unshuffle.cli._data import folder_column, read_data

NAMES = ["a.jpg", "b.jpg", "c.png"]


@pytest.fixture
def read(tmp_path):
    def call(text, names=NAMES, *, file="table.csv", encoding="utf-8", **how):
        path = tmp_path / file
        path.write_bytes(text.encode(encoding))
        found = read_data(path, names, **how)
        assert all(len(cells) == len(names) for cells in found.columns.values())
        return found

    return call


def test_cells_stand_in_the_order_of_the_pictures(read):
    found = read("file,label,age\nc.png,cat,1.50\na.jpg,dog,007\nz.jpg,bat,9\n")
    assert found.columns == {"label": ["dog", "", "cat"], "age": ["007", "", "1.50"]}
    assert found.note.endswith(
        "table.csv: 2 of 3 pictures have a row, found by column 'file'; 1 row has no picture."
    )


def test_a_whole_table_has_a_short_note(read):
    found = read("x,file\n1,b.jpg\n2,a.jpg\n3,c.png\n")
    assert found.columns == {"x": ["2", "1", "3"]}
    assert found.note.endswith("3 of 3 pictures have a row, found by column 'file'.")


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["cats/1.jpg", "dogs/1.jpg"], ["cats/1.jpg", "dogs/1.jpg"]),
        (["1.jpg", "2.jpg"], ["cats/1.jpg", "dogs/2.jpg"]),
        (["1", "2"], ["cats/1.jpg", "dogs/2.jpg"]),
        (["cats/1", "dogs/1"], ["cats/1.jpg", "dogs/1.jpg"]),
        (["/data/cats/1.jpg", "/data/dogs/1.jpg"], ["cats/1.jpg", "dogs/1.jpg"]),
        (["./1.jpg", "photos/2.jpg"], ["1.jpg", "2.jpg"]),
        (["https://example.org/1.jpg", "https://example.org/2.jpg"], ["1.jpg", "2.jpg"]),
        (["IMG_1.JPG", "img_2.jpg"], ["img_1.jpg", "IMG_2.jpg"]),
        (["cats\\1.jpg", "dogs\\1.jpg"], ["cats/1.jpg", "dogs/1.jpg"]),
        (["v1.2", "v1.3"], ["v1.2.jpg", "v1.3.jpg"]),
        (["caf\u00e9.jpg", "b.jpg"], ["cafe\u0301.jpg", "b.jpg"]),
        (["a b.jpg", "c,d.jpg"], ["a b.jpg", "c,d.jpg"]),
    ],
)
def test_pictures_may_be_named_in_many_ways(read, cells, names):
    text = io.StringIO()
    csv.writer(text).writerows([["which", "x"], [cells[1], "second"], [cells[0], "first"]])
    assert read(text.getvalue(), names).columns == {"x": ["first", "second"]}


def test_names_that_two_pictures_share_name_neither(read):
    names = ["cats/1.jpg", "dogs/1.jpg", "dogs/2.jpg"]
    found = read("file,x\n1.jpg,p\n2.jpg,q\n", names)
    assert found.columns == {"x": ["", "", "q"]}
    assert "1 row has no picture" in found.note
    found = read("file,x\nA.jpg,p\na.JPG,q\nb.jpg,r\n", ["a.jpg", "b.jpg"])
    assert found.columns == {"x": ["", "r"]}, "two rows could be meant, so none is guessed"


def test_rows_of_another_folder_are_not_taken(read):
    table = "file,x\ntrain/1.jpg,p\ntest/1.jpg,q\ntrain/2.jpg,r\n"
    assert read(table, ["1.jpg", "2.jpg"]).columns == {"x": ["", "r"]}


def test_exact_names_come_before_others(read):
    found = read("file,x\nA.jpg,p\na.jpg,q\na,r\n", ["a.jpg", "A.jpg"])
    assert found.columns == {"x": ["q", "p"]}
    assert "1 row has no picture" in found.note


def test_the_column_that_names_the_most_pictures_is_taken(read):
    table = "cover,file,x\na.jpg,a.jpg,1\na.jpg,b.jpg,2\na.jpg,c.png,3\n"
    assert read(table).columns == {"cover": ["a.jpg"] * 3, "x": ["1", "2", "3"]}
    found = read(table, column="cover")
    assert found.columns == {"file": ["a.jpg", "", ""], "x": ["1", "", ""]}
    assert "1 picture has several rows, of which the first is used" in found.note
    assert read(table, column="2").columns == read(table).columns


def test_a_few_numbers_that_happen_to_be_file_names_are_not_enough(read):
    names = [f"{k}.jpg" for k in range(100)]
    ages = "age,x\n" + "".join(f"{k % 7},{k}\n" for k in range(100, 200))
    with pytest.raises(BadInput, match=r"No column of .* names the pictures"):
        read(ages, names)
    assert "7 of 100 pictures" in read(ages, names, column="age").note


@pytest.mark.parametrize("text", ["a.jpg,cat\nb.jpg,dog\n", "a,cat\nb,dog\nc,cow\n"])
def test_a_table_may_have_no_headings(read, text):
    found = read(text)
    assert found.columns["column 2"][:2] == ["cat", "dog"]
    assert "found by column 1" in found.note


def test_a_heading_that_is_also_a_picture_stays_a_heading(read):
    found = read("photo,x\nphoto,1\na,2\n", ["photo.jpg", "a.jpg"])
    assert found.columns == {"x": ["1", "2"]}


def test_a_table_of_the_right_length_without_names_is_refused(read):
    with pytest.raises(BadInput) as error:
        read("id,x\n17,red\n18,green\n19,blue\n")
    message = str(error.value)
    assert "which are called 'a.jpg', 'b.jpg', 'c.png'" in message
    assert "its first row holds '17', 'red'" in message
    assert "--id" in message


def test_a_chosen_column_without_names_is_refused(read):
    with pytest.raises(BadInput, match=r"Column 'x' of .* does not name .*: it holds 'p', 'q'"):
        read("file,x\na.jpg,p\nb.jpg,q\n", column="x")
    with pytest.raises(BadInput, match="no column 'z' for --id: it has 'file', 'x'"):
        read("file,x\na.jpg,p\nb.jpg,q\n", column="z")
    with pytest.raises(BadInput, match="2 columns called 'x'"):
        read("x,x\na.jpg,p\nb.jpg,q\n", column="x")


def test_the_first_of_several_rows_counts(read):
    found = read("file,x\na.jpg,1\nb.jpg,2\na.jpg,3\nb.jpg,2\n")
    assert found.columns == {"x": ["1", "2", ""]}
    assert "2 pictures have several rows, of which the first is used" in found.note


def test_headings_become_different_and_not_empty(read):
    table = 'file,x,x,,name,x (2),"two\nlines"\na.jpg,1,2,3,4,5,6\n'
    assert read(table).columns == {
        "x": ["1", "", ""],
        "x (2)": ["2", "", ""],
        "column 4": ["3", "", ""],
        "name (2)": ["4", "", ""],
        "x (2) (2)": ["5", "", ""],
        "two lines": ["6", "", ""],
    }
    assert read("name,x\na.jpg,1\nb.jpg,2\n").columns == {"x": ["1", "2", ""]}
    assert list(read("file,x,\na.jpg,1,\n").columns) == ["x"], "a comma at the end of each line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,x\na.jpg,1\nb.jpg\n", "line 3 has 1 cells where line 1 has 2"),
        ("file\na.jpg\nb.jpg\n", "has one column, which names the pictures"),
        ("file,x\n", "has one line"),
        ("", "is empty"),
        ("a\0b", "is not a text file"),
    ],
)
def test_tables_of_another_form_are_refused(read, text, message):
    with pytest.raises(BadInput, match=message):
        read(text)


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(BadInput, match=r"is not a table \(--data\). Give a .csv, .tsv, .parquet"):
        read_data(tmp_path / "a.npy", NAMES)
    with pytest.raises(ValueError, match=r"There is no file .*missing.csv \(--data\)"):
        read_data(tmp_path / "missing.csv", NAMES)


def test_delimiters_and_encodings(read):
    assert read("file;x\na.jpg;1,5\n").columns == {"x": ["1,5", "", ""]}
    assert read("file\tx\na.jpg\t1\n", file="t.tsv").columns == {"x": ["1", "", ""]}
    assert read("file,x\na.jpg,é\n", encoding="utf-8-sig").columns == {"x": ["é", "", ""]}
    assert read("file,x\na.jpg,é\n", encoding="latin-1").columns == {"x": ["é", "", ""]}


def test_file_names_in_another_encoding_are_found(read):
    # A file whose name is Latin-1, on a file system that is read as UTF-8.
    names = ["caf\udce9/1.jpg", "b.jpg"]
    found = read("file,x\ncafé/1.jpg,p\nb.jpg,q\n", names, encoding="latin-1")
    assert found.columns == {"x": ["p", "q"]}
    with pytest.raises(BadInput) as error:
        read("file,x\nq,p\nr,q\n", names)
    assert one_line(error.value)


def test_missing_cells_stay_as_they_were_written(read):
    found = read("file,x,y\na.jpg,NaN,\nb.jpg,  ,n/a\n")
    assert found.columns == {"x": ["NaN", "", ""], "y": ["", "n/a", ""]}


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
# More semicolons or tabs than commas would separate the cells.
HEADINGS = st.text(st.characters(codec="utf-8", exclude_characters="\0;\t"), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=3, max_size=3), HEADINGS, HEADINGS)
def test_any_text_may_be_in_a_table(read, cells, first, second):
    text = io.StringIO(newline="")
    rows = [[f"picture{k}.jpg", *pair] for k, pair in enumerate(cells)]
    csv.writer(text).writerows([["file", f"a{first}", f"b{second}"], *rows])
    found = read(text.getvalue(), [f"picture{k}.jpg" for k in range(3)], column="1")
    assert list(found.columns.values()) == [[pair[k].strip() for pair in cells] for k in range(2)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_order_of_rows_and_pictures_does_not_matter(read, rows, items):
    table = "x,file\n" + "".join(f"x{k},{k // 2}/{k}.jpg\n" for k in rows)
    found = read(table, [f"{k // 2}/{k}.jpg" for k in items])
    assert found.columns == {"x": [f"x{k}" for k in items]}


def test_parquet_holds_numbers_dates_and_gaps(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from datetime import date

    columns = {
        "file": ["b.jpg", "a.jpg", "c.png"],
        "score": pa.array([0.1, np.nan, 3.0], pa.float32()),
        "big": pa.array([1e300, 1 / 3, None]),
        "year": pa.array([1999, None, 2**60]),
        "day": pa.array([date(2009, 2, 3), None, date(2010, 1, 1)]),
        "seen": pa.array([True, False, None]),
        "kind": pa.array(["x", None, "x"]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = read_data(tmp_path / "t.parquet", NAMES).columns
    assert found == {
        "score": ["", "0.1", "3"],
        "big": ["0.3333333333333333", "1e+300", ""],
        "year": ["", "1999", str(2**60)],
        "day": ["", "2009-02-03", "2010-01-01"],
        "seen": ["False", "True", ""],
        "kind": ["", "x", "x"],
    }


@pytest.mark.parametrize("name", ["file", None])
def test_pictures_may_be_the_index_of_a_frame(tmp_path, name):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=pd.Index(NAMES[::-1], name=name))
    frame.to_parquet(tmp_path / "t.parquet")
    found = read_data(tmp_path / "t.parquet", NAMES)
    assert found.columns == {"x": ["3", "2", "1"]}
    assert f"found by column {name!r}" in found.note or name is None
    frame.to_csv(tmp_path / "t.csv")
    assert read_data(tmp_path / "t.csv", NAMES).columns == found.columns


def test_items_may_be_called_otherwise(read):
    found = read("file,x\na.txt,1\nq.txt,2\n", ["a.txt"], noun="text")
    assert found.note.endswith("1 of 1 text has a row, found by column 'file'; 1 row has no text.")


def test_folders_are_a_column_where_there_are_several():
    assert folder_column(["a.jpg", "cats/b.jpg", "cats/old/c.jpg"]) == [".", "cats", "cats/old"]
    assert folder_column(["a.jpg", "b.jpg"]) is None
    assert folder_column(["cats/a.jpg", "cats/b.jpg"]) is None
    assert folder_column([]) is None
