import numpy as np
import pytest

from unshuffle._files.paths import BadInput
from unshuffle._files.tables import TableOptions, read_table
from unshuffle.cli._inputs import read_numbers

NUMBERS = np.random.RandomState(0).randn(5, 3)


@pytest.fixture
def read(tmp_path):
    def call(text, **reading):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return read_table(path, TableOptions(**reading))

    return call


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("index", [None, ["wine0", "wine1", "w2", "w3", "w4"], [7, 3, 9, 1, 4]])
def test_the_index_that_pandas_writes_becomes_the_names(read, index, n_columns):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(NUMBERS[:, :n_columns], index=index)
    table = read(frame.to_csv())
    assert table.names == [str(each) for each in frame.index]
    assert table.columns == ["0", "1", "2"][:n_columns]
    np.testing.assert_array_equal(table.values, NUMBERS[:, :n_columns])


def test_numbered_columns_without_an_index_are_a_heading(read):
    pd = pytest.importorskip("pandas")
    table = read(pd.DataFrame(NUMBERS).to_csv(index=False))
    np.testing.assert_array_equal(table.values, NUMBERS)
    assert table.names == [""] * 5
    assert "heading 0, 1, 2, ... (--no-header to count it as a row)" in table.note


@pytest.mark.parametrize("values", [np.arange(15).reshape(5, 3) * 7, np.eye(5, dtype=int)])
def test_a_first_row_of_numbers_like_those_below_is_not_lost(read, values):
    pd = pytest.importorskip("pandas")
    text = pd.DataFrame(values).to_csv(index=False)
    table = read(text)
    assert len(table.values) == 6
    assert "is a row; --header to change that" in table.note
    np.testing.assert_array_equal(read(text, header=True).values, values)


def test_a_heading_is_what_the_user_says(read):
    assert read("5,6\n1,2\n3,4\n", header=True).columns == ["5", "6"]
    pd = pytest.importorskip("pandas")
    text = pd.DataFrame(NUMBERS).to_csv(index=False)
    np.testing.assert_array_equal(read(text, header=False).values[0], [0, 1, 2])
    with pytest.raises(BadInput, match="line 1: column '2' holds 'y'"):
        read("x,y\n1,2\n", header=False)


@pytest.mark.parametrize(
    "header",
    [
        "country,2001,2002,2003",
        "country,1990,2000,2010",
        "country,2003,2002,2001",
        "country,0,1,2",
        "country,1,2,3",
        "country,5,6,7",
        "country,x,y,z",
        ",x,y,z",
        "Unnamed: 0,0,1,2",
    ],
)
def test_headings_over_named_rows_are_no_items(read, header):
    table = read(f"{header}\na,1,2,3\nb,4,5,9\nc,1,0,0\n")
    assert table.names == ["a", "b", "c"]
    assert table.columns == header.split(",")[1:]
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 9], [1, 0, 0]])


def test_a_word_above_numbers_is_a_heading(read):
    table = read("size,7\n1,2\n3,4\n")
    assert table.columns == ["size", "7"]
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "text",
    [
        "3,1,2\n1,2,3\n",
        "1,2,3\n4,5,7\n",
        "0,1,2\n3,4,5\n6,7,8\n",
        "0,1\n1,0\n0,1\n",
        "0,1,2\n2,1,0\n1,0,2\n",
        "2001,2002\n1,2\n",
        "0\n1\n2\n",
        "0.0,1.0,2.0\n1.5,2.5,3.5\n",
    ],
)
def test_numbers_without_a_heading_are_read_whole(read, text):
    table = read(text)
    expected = [[float(cell) for cell in line.split(",")] for line in text.split()]
    np.testing.assert_array_equal(table.values, expected)


@pytest.mark.parametrize(
    "text",
    [
        "a,3,1\nb,1,2\n",
        "a,1\nb,2\n",
        "a,1,2\nb,4,9\n",
        "a,1.0,2.0,3.0\nb,1.5,2.5,3.5\n",
        "a,1990,1995\nb,1987,2001\n",
        "a,1,2,3\nb,3,1,2\n",
        "a,1,2\n7,3,4\nb,5,5\n",
    ],
)
def test_named_rows_without_a_heading_are_read_whole(read, text):
    table = read(text)
    assert table.names == [line.split(",")[0] for line in text.split()]
    assert len(table.values) == text.count("\n")


def test_a_gap_in_the_first_cell_of_data_is_a_gap(read):
    with pytest.raises(BadInput, match="row 1, column '1'"):
        read(",2.5,0.5\n3.5,1.5,2.5\n1,2,3\n")


@pytest.mark.parametrize(
    "text",
    [
        'x,y\n"1,000",2\n999,3\n',
        '"1,000",2\n"12,345.5",3\n',
        "x;y\n0,5;2\n1,5;3\n",
        'x,y\n2,"1,000"\n3,4\n',
        "x,y\n1 000,2\n3,4\n",
    ],
)
def test_separated_numbers_are_refused_and_not_taken_for_names(read, text):
    with pytest.raises(BadInput, match=r"line \d: .* without thousands separators"):
        read(text)


def test_separated_numbers_may_be_names_under_an_empty_heading(read):
    assert read(',x\n"1,000",2\n"2,000",3\n').names == ["1,000", "2,000"]


@pytest.mark.parametrize("heading", ["nr,x,y", None])
@pytest.mark.parametrize("start", [0, 1, 1000, 10**12])
def test_a_first_column_that_counts_up_names_the_rows(read, heading, start):
    rows = [f"{start + i},{v[0]},{v[1]}" for i, v in enumerate(NUMBERS)]
    text = "\n".join([*([heading] if heading else []), *rows])
    table = read(text)
    assert table.names == [str(start + i) for i in range(5)]
    np.testing.assert_array_equal(table.values, NUMBERS[:, :2])
    assert f"column '{'nr' if heading else 1}' names the rows (it counts up by one" in table.note
    everything = read(text, names=False)
    np.testing.assert_array_equal(everything.values[:, 0], np.arange(5) + start)
    assert "no names; 3 columns compared" in everything.note


@pytest.mark.parametrize("first", ["1,3,5", "3,2,1", "1,2,4", "1.0,2.0,3.0", "1,1,2", "-1,0,1"])
def test_other_numbers_in_the_first_column_are_measured(read, first):
    text = "x,y\n" + "".join(f"{cell},{i * i}\n" for i, cell in enumerate(first.split(",")))
    assert read(text).columns == ["x", "y"]


@pytest.mark.parametrize("heading", ["id", "ID", "Index", "key", "name"])
def test_a_first_column_headed_as_names_holds_names(read, heading):
    table = read(f"{heading},x,y\n7,1,2\n3,4,5\n3,7,9\n")
    assert table.names == ["7", "3", "3"]
    assert f"column '{heading}' names the rows (by its heading, and repeats" in table.note


def test_names_may_stand_in_another_column_under_their_heading(read):
    table = read("x,Name,y\n1.5,p,2\n3,q,4\n5,r,7\n")
    assert (table.names, table.columns) == (["p", "q", "r"], ["x", "y"])
    song = read("tempo,key\n1.5,7\n3.2,7\n5.1,2\n")
    assert song.columns == ["tempo", "key"], "the key of a song is a measured number"


def test_a_second_column_of_names_is_left_out_and_not_compared(read):
    table = read("id,name,x\n17,p,2\n4,q,4\n9,r,7\n")
    assert (table.names_from, table.left_out, table.columns) == ("id", ("name",), ["x"])
    assert "'name' left out" in table.note
    asked = read("id,name,x\n17,p,2\n4,q,4\n9,r,7\n", names="name")
    assert (asked.names, asked.columns) == (["p", "q", "r"], ["x"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("z", "no column 'z' for --id: it has 'a', 'x', 'x'"),
        ("x", "2 columns called 'x'"),
        ("4", "no column '4'"),
        ("0", "no column '0'"),
    ],
)
def test_columns_that_are_not_there_are_refused(read, column, message):
    with pytest.raises(BadInput, match=message):
        read("a,x,x\n1,2,3\n4,5,7\n", names=column)


def test_a_table_of_names_alone_is_refused(read):
    with pytest.raises(BadInput, match="no column of numbers beside the names"):
        read("a\n1\n2\n", names="a")


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        ("10%,25.5 %,3%", "0.1 for 10%"),
        ("0x10,0xff,0x1", "16 for 0x10"),
        ("10%,3,4", "0.1 for 10%"),
    ],
)
def test_numbers_in_another_notation_are_refused_and_not_taken_for_names(read, cells, advice):
    first = cells.split(",")
    for text in (
        "x,y\n" + "".join(f"{cell},{i * i}\n" for i, cell in enumerate(first)),
        "y,x\n" + "".join(f"{i * i},{cell}\n" for i, cell in enumerate(first)),
    ):
        with pytest.raises(BadInput, match=rf"line 2: column 'x' holds '{first[0]}'. .*{advice}"):
            read(text)
    assert read(f"id,y\n{first[0]},1\n{first[1]},2\n").names == first[:2]


def test_true_and_false_are_numbers(read):
    table = read("flag,x\nTrue,2\nFALSE,3\ntrue,5\n")
    np.testing.assert_array_equal(table.values, [[1, 2], [0, 3], [1, 5]])


def test_an_underscore_makes_a_name(read):
    assert read("sample,x\n1_1,2\n1_2,3\n").names == ["1_1", "1_2"]


def test_arrays_and_parquet_files_refuse_what_they_cannot_have(tmp_path):
    np.save(tmp_path / "a.npy", NUMBERS)
    assert (
        read_table(tmp_path / "a.npy", TableOptions(header=False, names=False)).names == [""] * 5
    )
    for options in (TableOptions(header=True), TableOptions(names="1")):
        with pytest.raises(BadInput, match="without headings or names"):
            read_table(tmp_path / "a.npy", options)
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"nr": range(5), "x": NUMBERS[:, 0], "flag": [True, False] * 2 + [True]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert (table.names_from, table.columns) == ("nr", ["x", "flag"])
    assert read_table(tmp_path / "a.parquet", TableOptions(names="x")).columns == ["flag"]
    with pytest.raises(BadInput, match="Leave out --no-header"):
        read_table(tmp_path / "a.parquet", TableOptions(header=False))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e154, 1e300])
def test_columns_of_any_size_are_scaled_alike(scale, tmp_path):
    def scaled(values):
        np.save(tmp_path / "a.npy", values)
        with np.errstate(all="raise", under="ignore"):
            return read_numbers(tmp_path / "a.npy", TableOptions(), ["rbf"]).items

    values = np.array([[1.0, 3.0], [2.0, 3.0], [7.0, 3.0], [-4.0, 3.0]])
    expected = (values - values.mean(axis=0)) / np.where(values.std(axis=0), values.std(axis=0), 1)
    rtol = 1e-3 if scale < 1e-310 else 1e-12
    np.testing.assert_allclose(scaled(values * scale), expected, rtol=rtol)
    assert np.isfinite(scaled(np.array([[1.7e308], [-1.7e308], [0.0]]))).all()
