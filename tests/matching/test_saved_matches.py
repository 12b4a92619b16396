import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    "no object.json": ("[]", "could not be read"),
    "no records.json": ('{"pairs": [1]}', "could not be read"),
    "empty.json": ('{"pairs": []}', "found none"),
    "broken.json": ("{", "could not be read"),
    "odd index.json": (json.dumps({"pairs": [{**RECORD, "index_x": [0]}]}), "could not be read"),
    "cut.json": (json.dumps({"pairs": [{**RECORD, "index_x": 1}]}), "item 0 0 times in index_x"),
    "unnamed.json": ('{"pairs": [{"index_x": 0, "index_y": 0, "confidence": 1}]}', "lacks name_x"),
    "empty.csv": ("", "found none"),
    "other.csv": ("a,b\n1,2\n", "'index_x' is missing"),
    "words.csv": (f"{HEADING}x,,,,\n", "could not be read"),
    "short.csv": (f"{HEADING}0,a\n", "could not be read"),
    "twice.csv": (f"{HEADING}0,a,0,b,1\n0,a,1,b,1\n", "item 0 2 times in index_x"),
    "pairs.txt": ("", "names no known format"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_hold_no_matches_are_refused(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        Matches.load(tmp_path / name)
