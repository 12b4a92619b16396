import csv
import json
import re
from inspect import signature

import numpy as np
import pytest
from PIL import Image
from sklearn.preprocessing import StandardScaler

import unshuffle
from unshuffle.cli._frozen import read_frozen_pairs
from unshuffle.cli._match import _count_pairs
from unshuffle.cli._options import MatchOptions, Method
from unshuffle.matching import Matches

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


NOT_A_PICTURE = "not a picture in a supported format (PNG, JPEG, GIF, BMP, TIFF, WebP)"


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_two_tables_are_matched_by_name(run, tables):
    a, b, truth = tables
    result = run("match", a, b, "-o", "pairs.csv")
    assert result.exit_code == 0, result.output
    rows = rows_of("pairs.csv")
    assert [row["name_x"] for row in rows] == [f"a{i}" for i in range(40)]
    right = sum(row["name_y"] == f"b{truth[int(row['index_x'])]}" for row in rows)
    assert right >= 36
    assert all(0 <= float(row["confidence"]) <= 1 for row in rows)
    assert result.stdout.startswith("Matched 40 of 40 items of A with 40 of B: objective ")
    share = re.search(r"mean confidence ([01]\.\d\d)\.\n", result.stdout)
    mean = np.mean([float(row["confidence"]) for row in rows])
    assert float(share[1]) == pytest.approx(mean, abs=0.006)
    assert "Pairs: pairs.csv" in result.stdout


def test_json_prints_one_object_and_nothing_else(run, tables):
    a, b, truth = tables
    result = run("match", a, b, "--json", "--candidates", 3)
    answer = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert answer["n_matched"] == 40
    assert answer["interrupted"] is False
    assert 0 <= answer["mean_confidence"] <= 1
    assert len(answer["pairs"]) == 40
    assert {len(row["candidates"]) for row in answer["pairs"]} == {3}
    found = [row["candidates"][0]["index_y"] for row in answer["pairs"]]
    assert np.mean(np.array(found) == truth) > 0.8
    assert not (a.parent / "pairs.csv").exists()


def test_questions_are_pairs_in_the_form_of_known_ones(run, tables, tmp_path):
    a, b, _ = tables
    result = run("match", a, b, "--questions", 4)
    lines = result.stdout.splitlines()
    first = lines.index("Check these pairs first, and give the right ones to --frozen:") + 1
    asked = [line.strip() for line in lines[first : first + 4]]
    answer = json.loads(run("match", a, b, "--json", "--questions", 4).stdout)
    assert asked == [f"{each['name_x']},{each['name_y']}" for each in answer["questions"]]
    known = tmp_path / "known.csv"
    known.write_text("\n".join(asked))
    again = json.loads(run("match", a, b, "--json", "--frozen", known, "--questions", 99).stdout)
    kept = {(row["name_x"], row["name_y"]) for row in again["pairs"] if row["confidence"] == 1}
    assert {tuple(each.split(",")) for each in asked} <= kept
    assert len(again["questions"]) == 36
    assert json.loads(run("match", a, b, "--json").stdout)["questions"] == []


def test_json_file_holds_the_same_pairs_as_the_csv_file(run, tables):
    a, b, _ = tables
    run("match", a, b, "-o", "pairs.csv")
    run("match", a, b, "-o", "pairs.json", "--jobs", 1)
    written = json.loads((a.parent / "pairs.json").read_text())
    assert (written["kind"], written["kernel"], written["n_matched"]) == ("table", "rbf", 40)
    pairs = written["pairs"]
    assert [(str(p["index_x"]), str(p["index_y"])) for p in pairs] == [
        (row["index_x"], row["index_y"]) for row in rows_of("pairs.csv")
    ]


def test_quiet_prints_nothing(run, tables):
    result = run("match", *tables[:2], "-q")
    assert result.exit_code == 0
    assert result.output == ""


def test_arrays_and_gram_matrices_are_matched(run, arrays):
    a, b, truth = arrays
    plain = json.loads(run("match", a, b, "--json").stdout)
    assert np.mean([r["index_y"] == truth[r["index_x"]] for r in plain["pairs"]]) > 0.9
    for path in (a, b):
        values = np.load(path)
        values = values - values.mean(axis=0)
        np.save(path, values @ values.T)
    gram = json.loads(run("match", a, b, "--precomputed", "--json").stdout)
    assert gram["kind"] == "gram"
    assert np.mean([r["index_y"] == truth[r["index_x"]] for r in gram["pairs"]]) > 0.5


def test_parquet_tables_keep_their_index_as_names(run, tables):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for path in tables[:2]:
        pd.read_csv(path, index_col=0).to_parquet(path.with_suffix(".parquet"))
    a, b = (path.with_suffix(".parquet") for path in tables[:2])
    from_parquet = json.loads(run("match", a, b, "--json").stdout)
    from_csv = json.loads(run("match", *tables[:2], "--json").stdout)
    assert from_parquet["pairs"] == from_csv["pairs"]


def test_folders_of_pictures_are_matched_and_drawn(run, pictures):
    left, right, truth = pictures
    (left / "broken.png").write_text("no picture")
    result = run("match", left, right, "--sheet", "sheet.png")
    assert result.exit_code == 0, result.output
    rows = rows_of("pairs.csv")
    right_pairs = sum(row["name_y"] == f"right{truth[i]}.png" for i, row in enumerate(rows))
    assert right_pairs >= 10
    assert "Skipped 1 file in" in result.stderr
    assert "  1 file (broken.png): not a picture" in result.stderr
    assert result.stdout.startswith(
        f"A: read 30 files in 1 folder ({left}); skipped 1.\n"
        f"B: read 30 files in 1 folder ({right}); skipped 0.\n"
    )
    assert rows_of("pairs.skipped.csv") == [
        {"collection": "A", "name": "broken.png", "reason": NOT_A_PICTURE}
    ]
    with Image.open("sheet.png") as sheet:
        assert sheet.width > 300


def test_folders_of_text_are_matched(run, tmp_path):
    rng = np.random.RandomState(0)
    order = rng.permutation(20)
    topics = rng.dirichlet(np.full(30, 0.1), 20)
    for name, where in (("en", np.arange(20)), ("de", order)):
        (tmp_path / name).mkdir()
        for i, k in enumerate(where):
            words = rng.choice([f"{w}{name}word" for w in range(10, 40)], 200, p=topics[k])
            (tmp_path / name / f"{name}{i}.txt").write_text(" ".join(words))
    (tmp_path / "en" / "latin.txt").write_bytes("café".encode("latin-1") + b" 11enword 12enword")
    (tmp_path / "en" / "empty.txt").write_text("")
    (tmp_path / "en" / "binary.txt").write_bytes(b"\0\1\2")
    result = run("match", "en", "de", "--json")
    answer = json.loads(result.stdout)
    assert answer["kind"] == "text"
    assert (answer["n_x"], answer["n_y"]) == (21, 20)
    truth = np.argsort(order)
    right = sum(
        row["name_y"] == f"de{truth[int(row['name_x'][2:-4])]}.txt"
        for row in answer["pairs"]
        if row["name_x"] not in (None, "latin.txt") and row["name_y"]
    )
    assert right >= 15
    assert {each["name"] for each in answer["skipped"]["x"]} == {"empty.txt", "binary.txt"}


def test_sub_folders_are_matched_too_unless_told_otherwise(run, tmp_path, pictures):
    words = ["red blue green", "red blue", "one two three", "one two", "north south", "north east"]
    for side in ("en", "de"):
        (tmp_path / side / "deep").mkdir(parents=True)
        for i, text in enumerate(words):
            place = tmp_path / side / ("deep" if i < 2 else "")
            (place / f"{i}.txt").write_text(text)
    answer = json.loads(run("match", "en", "de", "--json").stdout)
    assert (answer["kind"], answer["n_x"]) == ("text", 6)
    assert {"deep/0.txt", "deep/1.txt"} < {row["name_x"] for row in answer["pairs"]}
    result = run("match", "en", "de", "--no-recursive")
    assert result.stdout.startswith("A: read 4 files in 1 folder (en); skipped 0.\n")
    left, right, _ = pictures
    for folder in (left, right):
        (folder / "deep").mkdir()
        for path in sorted(folder.glob("*.png"))[:10]:
            path.rename(folder / "deep" / path.name)
    result = run("match", left, right, "--sheet", "sheet.png")
    assert result.exit_code == 0, result.output
    assert f"A: read 30 files in 2 folders ({left}); skipped 0.\n" in result.stdout
    with Image.open("sheet.png") as sheet:
        assert sheet.width > 300


def test_items_without_partner_are_listed_on_both_sides(run, tables):
    a, b, _ = tables
    lines = b.read_text().splitlines()
    b.write_text("\n".join(lines[:31]) + "\n")
    result = run("match", a, b)
    assert result.stdout.startswith("Matched 30 pairs; 10 of A have no partner: objective ")
    rows = rows_of("pairs.csv")
    assert len(rows) == 40
    assert sum(row["name_y"] == "" for row in rows) == 10
    run("match", b, a)
    rows = rows_of("pairs.csv")
    assert len(rows) == 40
    assert [row["index_x"] for row in rows[30:]] == [""] * 10
    assert len({row["name_y"] for row in rows}) == 40


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((179, 179, 86), "Matched 86 pairs; 93 of A and 93 of B have no partner"),
        ((2, 3, 2), "Matched 2 pairs; 1 of B has no partner"),
        ((2, 2, 1), "Matched 1 pair; 1 of A and 1 of B have no partner"),
        ((2, 2, 0), "Matched 0 pairs; 2 of A and 2 of B have no partner"),
        ((2000, 2000, 2000), "Matched 2,000 of 2,000 items of A with 2,000 of B"),
    ],
)
def test_the_summary_counts_who_is_left_alone(counts, words):
    assert _count_pairs(*counts) == words


@pytest.mark.parametrize("form", ["name", "heading", "position", "own"])
def test_frozen_pairs_are_kept(run, tables, form):
    a, b, _ = tables
    fixed = [(0, 7), (5, 3)]
    lines = {
        "name": [f"a{i},b{j}" for i, j in fixed],
        "heading": ["left,right", *(f"a{i},b{j}" for i, j in fixed)],
        "position": [f"{i},{j}" for i, j in fixed],
        "own": [
            "index_x,name_x,index_y,name_y,confidence",
            *(f"{i},a{i},{j},b{j},0.5" for i, j in fixed),
            "9,a9,,,0",
        ],
    }[form]
    (a.parent / "known.csv").write_text("\n".join(lines) + "\n")
    answer = json.loads(run("match", a, b, "--frozen", "known.csv", "--json").stdout)
    partners = {row["index_x"]: row["index_y"] for row in answer["pairs"]}
    assert [partners[i] for i, _ in fixed] == [j for _, j in fixed]


def test_several_kernels_are_summed_as_the_library_sums_them(run, arrays):
    a, b, _ = arrays
    two = ["--kernel", "rbf+geodesic"]
    answer = json.loads(run("match", a, b, *two, "--json").stdout)
    X, y = (StandardScaler().fit_transform(np.load(path)) for path in (a, b))
    sorting = unshuffle.KernelizedSorting(["rbf", "geodesic"], random_state=0).fit(X, y)
    assert [row["index_y"] for row in answer["pairs"]] == sorting.permutation_.tolist()
    assert answer["objective"] == pytest.approx(sorting.objective_)


def test_several_kernels_compare_both_features_of_pictures(run, pictures):
    two = ["--kernel", "rbf", "--kernel", "laplacian"]  # as good as "rbf+laplacian"
    answer = json.loads(run("match", *pictures[:2], *two, "--json").stdout)
    assert answer["kernel"] == ["rbf", "rbf", "laplacian", "laplacian"]


def test_a_search_that_was_cut_off_names_the_option_that_lets_it_end(run, tables):
    said = run("match", *tables[:2], "--max-iter", 1, "--method", "classic").stderr
    assert "cut off at --max-iter 1 " in said
    assert "tol" not in said


@pytest.mark.parametrize("how", ["counts", "heading", "asked"])
def test_numbers_of_the_rows_are_names_and_not_features(run, tables, how):
    plain = json.loads(run("match", *tables[:2], "--json").stdout)
    for path in tables[:2]:
        numbers = {"counts": range(1000, 1040), "heading": range(0, 120, 3)}
        lines = path.read_text().splitlines()
        keys = numbers.get(how, (i * 7 % 41 for i in range(40)))
        heading = {"counts": "nr", "heading": "ID", "asked": "customer"}[how]
        cut = [line.split(",", 1)[1] for line in lines]
        rows = [f"{key},{line}" for key, line in zip(keys, cut[1:], strict=True)]
        path.write_text("\n".join([f"{heading},{cut[0]}", *rows]) + "\n")
    options = ["--id", "customer"] if how == "asked" else []
    result = run("match", *tables[:2], *options, "--json")
    answer = json.loads(result.stdout)
    for row, expected in zip(answer["pairs"], plain["pairs"], strict=True):
        assert row["index_y"] == expected["index_y"]
    assert answer["pairs"][2]["name_x"] == {"counts": "1002", "heading": "6", "asked": "14"}[how]
    heading = {"counts": "nr", "heading": "ID", "asked": "customer"}[how]
    assert answer["tables"]["y"]["names"] == heading
    assert result.stderr.count(f"column '{heading}' names the rows") == 2
    compared = json.loads(run("match", *tables[:2], "--no-id", "--json").stdout)
    assert compared["tables"]["x"] == {
        "heading": True,
        "names": None,
        "left_out": [],
        "n_columns": plain["tables"]["x"]["n_columns"] + 1,
    }


def test_each_table_may_have_names_in_a_column_of_its_own(run, tables):
    b = tables[1]
    b.write_text(b.read_text().replace("name,", "who,", 1))
    answer = json.loads(run("match", *tables[:2], "--id", "name", "--id", 1, "--json").stdout)
    assert [answer["tables"][side]["names"] for side in "xy"] == ["name", "who"]


def test_names_for_spreadsheets_are_escaped_only_where_asked(run, tables):
    a, b, _ = tables
    a.write_text(a.read_text().replace("a0,", "=1+1,", 1))
    run("match", a, b)
    assert rows_of("pairs.csv")[0]["name_x"] == "=1+1"
    assert Matches.load("pairs.csv").names_x[0] == "=1+1"
    run("match", a, b, "--spreadsheet")
    assert rows_of("pairs.csv")[0]["name_x"] == "'=1+1"
    # What was escaped is still found.
    known = run("match", a, b, "--frozen", "pairs.csv", "-o", "again.csv")
    assert known.exit_code == 0, known.output


def test_interrupt_writes_what_there_is(run, tables, monkeypatch):
    class Interrupted(unshuffle.KernelizedSorting):
        def fit(self, X, y, **options):
            super().fit(X, y, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "KernelizedSorting", Interrupted)
    result = run("match", *tables[:2])
    assert result.exit_code == 130
    assert len(rows_of("pairs.csv")) == 40
    assert "Interrupted: this is the best match found so far" in result.stderr


def test_interrupt_before_there_is_anything_writes_nothing(run, tables, monkeypatch):
    class Interrupted(unshuffle.KernelizedSorting):
        def fit(self, X, y, **options):
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "KernelizedSorting", Interrupted)
    result = run("match", *tables[:2])
    assert result.exit_code == 130
    assert not (tables[0].parent / "pairs.csv").exists()
    said = "Error: Interrupted before there was a result; nothing was written.\n"
    assert result.stderr.endswith(said)


def test_written_pairs_are_read_by_the_library(run, tables):
    a, b, _ = tables
    for path in ("pairs.csv", "pairs.json"):
        run("match", a, b, "-o", path, "--candidates", 2)
        matches = Matches.load(path)
        assert matches.names_x == [f"a{i}" for i in range(40)]
        assert matches.candidates.shape == (40, 2)
        np.testing.assert_array_equal(matches.candidates[:, 0], matches.permutation)


@pytest.fixture
def instant(monkeypatch):
    """Replace the search by one that answers at once; gives what `fit` received."""
    received = {}

    class Instant(unshuffle.KernelizedSorting):
        def fit(self, X, y, **options):
            received.update(options, X=X, y=y)
            self.permutation_ = np.arange(len(X))[::-1]
            self.confidence_ = np.full(len(X), 0.5)
            self.expected_accuracy_, self.expected_accuracy_interval_ = 0.9, np.array([0.8, 1.0])
            self.objective_, self.ambiguity_, self.converged_ = 1.0, 0.0, True
            self.kernel_, self.scaling_, self.method_, self.doubts_ = "rbf", "ranks", "refined", []
            return self

    monkeypatch.setattr(unshuffle, "KernelizedSorting", Instant)
    return received


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_arrays_reach_the_estimator_mapped_and_in_their_own_precision(
    run, tmp_path, instant, dtype
):
    X = (np.random.RandomState(0).randn(2_000, 3) * 100).astype(dtype)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", X)
    assert run("match", "a.npy", "b.npy", "-q").exit_code == 0
    for side in "Xy":
        assert isinstance(instant[side], np.memmap)
        assert instant[side].dtype == dtype
        np.testing.assert_array_equal(instant[side], X)
    assert len(rows_of("pairs.csv")) == 2_000


def test_a_long_list_of_pairs_is_written_and_not_printed(run, tmp_path, instant, monkeypatch):
    monkeypatch.setattr("unshuffle.cli._match.MOST_PRINTED", 40)
    for name, n_rows in (("a", 41), ("few", 40)):
        np.save(tmp_path / f"{name}.npy", np.random.RandomState(0).randn(n_rows, 3))
    answer = json.loads(run("match", "a.npy", "a.npy", "--json", "-o", "pairs.csv").stdout)
    assert (answer["pairs"], answer["output"], answer["n_matched"]) == (None, "pairs.csv", 41)
    assert len(Matches.load("pairs.csv").names_x) == 41
    # Without a file they would be lost.
    assert len(json.loads(run("match", "a.npy", "a.npy", "--json").stdout)["pairs"]) == 41
    few = run("match", "few.npy", "few.npy", "--json", "-o", "pairs.csv")
    assert len(json.loads(few.stdout)["pairs"]) == 40


@pytest.mark.parametrize("place", [(0, 0), (49_999, 2), (31_234, 1)])
def test_one_missing_value_among_many_rows_is_named(run, tmp_path, place):
    X = np.random.RandomState(0).randn(50_000, 40).astype(np.float32)
    np.save(tmp_path / "a.npy", X)
    X[place] = np.nan
    np.save(tmp_path / "b.npy", X)
    result = run("match", "a.npy", "b.npy")
    assert result.exit_code == 2
    said = f"the first is in row {place[0] + 1}, column '{place[1] + 1}'."
    assert f"b.npy has 1 missing or infinite value(s); {said}" in result.stderr


def test_many_known_pairs_of_many_items_are_found_by_name(tmp_path):
    names = [f"cell{i}" for i in range(100_000)]
    lines = [f"cell{i},cell{99_999 - i}" for i in range(0, 100_000, 7)]
    (tmp_path / "known.csv").write_text("\n".join(lines))
    pairs = read_frozen_pairs(tmp_path / "known.csv", names, names)
    np.testing.assert_array_equal(pairs[:, 0], np.arange(0, 100_000, 7))
    np.testing.assert_array_equal(pairs.sum(axis=1), 99_999)


def test_the_methods_are_those_of_the_estimator():
    known = unshuffle.KernelizedSorting._constraints["method"][0].words
    assert [each.value.replace("-", "_") for each in Method] == re.findall(r"'(\w+)'", known)
    default = signature(unshuffle.KernelizedSorting).parameters["method"].default
    assert signature(MatchOptions).parameters["method"].default.value == default


@pytest.mark.parametrize("method", list(Method))
def test_every_method_matches(run, tables, method):
    answer = json.loads(run("match", *tables[:2], "--method", method.value, "--json").stdout)
    assert answer["n_matched"] == 40
    found = "refined" if method == "auto" else method.value.replace("-", "_")
    assert answer["method"] == found
