import numpy as np
import pytest

from unshuffle.cli._console import BadInput
from unshuffle.cli._tables import read_table

NUMBERS = np.random.RandomState(0).randn(5, 3)


@pytest.fixture
def read(tmp_path):
    def call(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return read_table(path)

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


@pytest.mark.parametrize("values", [NUMBERS, np.arange(15).reshape(5, 3), np.eye(5, dtype=int)])
def test_numbered_columns_without_an_index_are_a_heading(read, values):
    pd = pytest.importorskip("pandas")
    table = read(pd.DataFrame(values).to_csv(index=False))
    np.testing.assert_array_equal(table.values, values)
    assert table.names == [""] * 5


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
