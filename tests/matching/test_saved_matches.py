import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._files import saving as _saving
from unshuffle.matching import Matches

ODD = ["\r", "two\nlines", "\u2028", "a,b", '"', "\x00", "", " x "]
# Names of files are any bytes; Python hands them over with surrogates in place of broken ones.
names = st.lists(
    st.one_of(st.text(max_size=6), st.binary(max_size=4).map(os.fsdecode), st.sampled_from(ODD)),
    min_size=1,
    max_size=6,
)


@given(names, names, st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([".csv", ".json"]))
def test_any_names_and_partners_survive_saving(names_x, names_y, seed, with_candidates, suffix):
    rng = np.random.RandomState(seed)
    partners = np.r_[np.arange(len(names_y)), np.full(len(names_x), -1)]
    permutation = rng.permutation(partners)[: len(names_x)]
    confidence = np.where(permutation >= 0, 0.25, 0.0)
    candidates = rng.randint(len(names_y), size=(len(names_x), 2)) if with_candidates else None
    saved = Matches(permutation, confidence, names_x, names_y, candidates)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{'long' * 60}{suffix}"
        saved.save(path)
        assert os.listdir(folder) == [path.name]
        loaded = Matches.load(path)
    assert (loaded.names_x, loaded.names_y) == (names_x, names_y)
    np.testing.assert_array_equal(loaded.permutation, permutation)
    np.testing.assert_array_equal(loaded.confidence, confidence)
    if candidates is None:
        assert loaded.candidates is None
    else:
        np.testing.assert_array_equal(loaded.candidates, candidates)


def test_parquet_holds_the_same_table(matches, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "pairs.parquet"
    matches.save(path)
    table = parquet.read_table(path)
    assert table.to_pylist() == matches.rows()
    assert table.schema.field("index_y").type == pa.int64()
    ranked = Matches(
        matches.permutation,
        matches.confidence,
        # The second is a file name that is not valid Unicode.
        ["", os.fsdecode(b"\xff\xfe")],
        ["é", "d"],
        np.array([[1, 0], [0, 1]]),
    )
    ranked.save(path)
    loaded = Matches.load(path)
    assert (loaded.names_x, loaded.names_y) == (["", "\ufffd\ufffd"], ["é", "d"])
    np.testing.assert_array_equal(loaded.permutation, ranked.permutation)
    np.testing.assert_array_equal(loaded.candidates, ranked.candidates)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"not a file of pairs.*could not be read"):
        Matches.load(path)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_long_tables_are_written_in_pieces_that_join(tmp_path, monkeypatch, suffix):
    n = 9_001
    order = np.random.RandomState(0).permutation(n)
    names = [f"item {i}" for i in range(n - 1)] + ["\r"]
    saved = Matches(order, np.linspace(0, 1, n), names, names)
    written = []
    replace = _saving.replace_file
    monkeypatch.setattr(
        "unshuffle.matching._matches.replace_file",
        lambda path, data: replace(path, (written.append(len(each)) or each for each in data)),
    )
    saved.save(tmp_path / f"pairs{suffix}")
    assert len(written) > 3
    assert max(written) < sum(written) / 2
    loaded = Matches.load(tmp_path / f"pairs{suffix}")
    assert loaded.names_y == names
    np.testing.assert_array_equal(loaded.permutation, order)
    np.testing.assert_array_equal(loaded.confidence, saved.confidence.round(6))


@pytest.fixture
def matches():
    return Matches(np.array([1, -1]), np.array([0.5, 0.0]), ["a", "b"], ["c", "d"])


def test_the_table_lists_every_item_once(matches, tmp_path):
    matches.save(tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines() == [
        "index_x,name_x,index_y,name_y,confidence",
        "0,a,1,d,0.5",
        "1,b,,,0.0",
        ",,0,c,0.0",
    ]


def test_json_carries_details_ahead_of_the_pairs(matches, tmp_path):
    matches.save(tmp_path / "pairs.json", details={"objective": 2.0})
    written = json.loads((tmp_path / "pairs.json").read_text())
    assert list(written) == ["objective", "pairs"]
    assert written["pairs"] == matches.rows()


def test_names_no_encoding_can_hold_do_not_cost_the_pairs(matches, tmp_path):
    matches.names_x[0] = "\ud800"
    matches.save(tmp_path / "pairs.csv")
    assert Matches.load(tmp_path / "pairs.csv").permutation.tolist() == [1, -1]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(matches, tmp_path, monkeypatch):
    path = tmp_path / "pairs.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        matches.save(path)
    assert os.listdir(tmp_path) == ["pairs.csv"]
    assert path.read_text() == "old"


RECORD = {"index_x": 0, "name_x": "a", "index_y": 0, "name_y": "b", "confidence": 1}
HEADING = "index_x,name_x,index_y,name_y,confidence\n"
BAD_FILES = {
    "no object.json": ("[]", "holds no list 'pairs'"),
    "no records.json": ('{"pairs": [1]}', "record 0: it is not an object"),
    "empty.json": ('{"pairs": []}', "found none"),
    "broken.json": ("{", "could not be read"),
    "odd index.json": (json.dumps({"pairs": [{**RECORD, "index_x": [0]}]}), r"index_x is \[0\]"),
    "cut.json": (json.dumps({"pairs": [{**RECORD, "index_x": 1}]}), "no record has 0"),
    "unnamed.json": ('{"pairs": [{"index_x": 0, "index_y": 0, "confidence": 1}]}', "lacks name_x"),
    "empty.csv": ("", "found none"),
    "other.csv": ("a,b\n1,2\n", "line 2 lacks index_x"),
    "words.csv": (f"{HEADING}x,,,,\n", "line 2: index_x is 'x'"),
    "short.csv": (f"{HEADING}0,a\n", "line 2: it has 2 cells"),
    "twice.csv": (f"{HEADING}0,a,0,b,1\n0,a,1,b,1\n", "line 3: index_x is 0, as in line 2"),
    "columns.csv": ("a,a\n1,2\n", "line 1: two columns are called 'a'"),
    "pairs.txt": ("", "is not a known format"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_hold_no_matches_are_refused(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        Matches.load(tmp_path / name)


BAD_MATCHES = {
    "confidence too high": (([0], [1.5], ["a"], ["b"]), "`confidence` must be from 0 to 1"),
    "confidence NaN": (([0], [np.nan], ["a"], ["b"]), "`confidence` must be from 0 to 1"),
    "confidences missing": (([0], [], ["a"], ["b"]), "`confidence` must be 1 numbers"),
    "partner too far": (([1], [1.0], ["a"], ["b"]), "`permutation` names item 1"),
    "name no string": (([0], [1.0], ["a"], [7]), "`names_y` must hold strings"),
    "candidate too far": (([0], [1.0], ["a"], ["b"], [[1]]), "`candidates` must be positions"),
    "no candidates": (([0], [1.0], ["a"], ["b"], [[]]), "`candidates` must hold whole numbers"),
}


@pytest.mark.parametrize("name", BAD_MATCHES)
def test_invalid_matches_are_refused(name):
    arguments, message = BAD_MATCHES[name]
    with pytest.raises(ValueError, match=message):
        Matches(*arguments)


def test_a_matching_of_thousands_prints_as_a_few_lines(matches):
    names = [f"photo{i}.jpg" for i in range(5000)]
    many = Matches(np.arange(5000), np.full(5000, 0.5), names, names)
    assert repr(many) == "Matches(5,000 matched of 5,000 and 5,000 items, mean confidence 0.50)"
    assert str(many).splitlines() == [
        "5,000 pairs of 5,000 and 5,000 items.",
        "How many are right was not estimated.",
    ]
    assert repr(matches) == "Matches(1 matched of 2 and 2 items, mean confidence 0.50)"


def test_names_that_spreadsheets_would_run_are_escaped_where_asked(tmp_path):
    names = ["=1+1", "+1", "-1", "@A1", " =1", "\t=1", "\uff1d1", "'=", "plain", "a=b"]
    matches = Matches(np.arange(10), np.ones(10), names, names)
    matches.save(tmp_path / "exact.csv")
    assert Matches.load(tmp_path / "exact.csv").names_x == names
    matches.save(tmp_path / "sheet.csv", spreadsheet=True)
    escaped = [f"'{name}" for name in names[:7]] + names[7:]
    assert Matches.load(tmp_path / "sheet.csv").names_y == escaped
    matches.save(tmp_path / "exact.json", spreadsheet=True)
    assert Matches.load(tmp_path / "exact.json").names_x == names
