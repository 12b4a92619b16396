import csv
import json
import os
import re

import numpy as np
import pytest

import unshuffle
from unshuffle.matching import Matches
from unshuffle.matching._fit import DenseFit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ALL_FEATURES = ["--features", "pixels+color+texture+words"]


@pytest.fixture
def circles(tmp_path):
    """Two circles: turned or mirrored, one fits the other as well."""
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    np.save(tmp_path / "circle_a.npy", circle)
    np.save(tmp_path / "circle_b.npy", np.roll(circle, 5, axis=0))
    return tmp_path / "circle_a.npy", tmp_path / "circle_b.npy"


@pytest.fixture
def fitted(monkeypatch):
    """Replace the estimator by one that changes its answer; gives what `fit` received."""
    received = {}

    def replace(**answer):
        class Changed(unshuffle.KernelizedSorting):
            def fit(self, X, y, **options):
                received.update(options, X=X, y=y, estimator=self)
                super().fit(X, y, **options)
                vars(self).update(answer)
                return self

        monkeypatch.setattr(unshuffle, "KernelizedSorting", Changed)
        return received

    return replace


def answer_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_last_line_says_how_many_pairs_are_believed_right(run, tables):
    result = run("match", *tables[:2])
    last = result.stdout.splitlines()[-1]
    kept = json.loads((tables[0].parent / "pairs.trust.json").read_text())
    low, high = kept["expected_accuracy_interval"]
    assert last == (
        f"About {kept['expected_accuracy']:.0%} of the pairs are believed right ({low:.0%} to "
        f"{high:.0%})."
    )
    assert kept["trusted"] is True
    assert kept["doubts"] == []
    assert "Warning" not in result.stderr
    assert "trust.json" not in result.output


def test_a_doubtful_answer_ends_with_reasons_and_remedies(run, circles):
    result = run("match", *circles)
    assert result.exit_code == 0
    assert "are believed right" in result.stdout.splitlines()[-1]
    warning = result.stderr.splitlines()[-1]
    assert warning.startswith("Warning: These pairs cannot be trusted: ")
    assert "clearly different partners" in warning
    assert "Give known pairs with --frozen (30 help a lot), " in warning
    assert warning.endswith("or raise --n-init. Why: pairs.trust.json")
    quiet = run("match", *circles, "-q")
    assert quiet.stdout == ""
    assert quiet.stderr == f"{warning}\n"


def test_json_and_the_companion_hold_the_same_report(run, circles):
    answer = answer_of(run("match", *circles, "--json", "-o", "pairs.csv"))
    assert answer["trusted"] is False
    assert "clearly different partners" in answer["doubts"][0]
    assert 0 < answer["expected_accuracy"] <= 0.5
    low, high = answer["expected_accuracy_interval"]
    assert 0 <= low < answer["expected_accuracy"] < high <= 1
    assert "ambiguous" not in answer
    assert answer["trust_report"] == "pairs.trust.json"
    with open("pairs.trust.json", encoding="utf-8") as file:
        kept = json.load(file)
    assert kept == {key: answer[key] for key in kept}
    assert set(answer) - set(kept) == {
        "pairs",
        "output",
        "sheet",
        "trust_report",
        "not_in_place",
        "skipped_list",
    }
    with open("pairs.csv", encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == ["index_x", "name_x", "index_y", "name_y", "confidence"]


def test_pairs_in_json_need_no_companion(run, circles, tmp_path):
    run("match", *circles, "-o", "pairs.json")
    with open("pairs.json", encoding="utf-8") as file:
        assert json.load(file)["trusted"] is False
    assert not (tmp_path / "pairs.trust.json").exists()
    assert Matches.load("pairs.json").permutation.size == 24


def test_strict_exits_with_three_if_the_answer_is_doubted(run, tables, circles, tmp_path):
    assert run("match", *tables[:2], "--strict", "-q").exit_code == 0
    (tmp_path / "pairs.csv").unlink()
    result = run("match", *circles, "--strict", "-q")
    assert result.exit_code == 3
    assert (tmp_path / "pairs.csv").exists()
    said = " ".join(run("--help").stdout.split())
    assert "with --strict, the answer cannot be trusted" in said


def test_without_an_estimate_nothing_is_called_trusted(run, tables):
    result = run("match", *tables[:2], "--no-trust")
    assert result.stdout.splitlines()[-1] == "How many are right was not estimated."
    answer = answer_of(run("match", *tables[:2], "--no-trust", "--json"))
    assert answer["expected_accuracy"] is None
    assert answer["expected_accuracy_interval"] is None
    assert (answer["doubts"], answer["trusted"]) == ([], False)
    result = run("match", *tables[:2], "--no-trust", "--strict")
    assert result.exit_code == 2
    assert "--strict needs the estimate that --no-trust leaves out." in result.stderr


def test_the_companion_replaces_an_older_one_but_nothing_else(run, circles, tmp_path):
    companion = tmp_path / "pairs.trust.json"
    companion.write_text('{"expected_accuracy": 1.0}')
    run("match", *circles, "-q")
    kept = companion.read_text()
    assert json.loads(kept)["n_x"] == 24
    companion.write_text("notes of a friend")
    result = run("match", *circles, "-q")
    assert result.exit_code == 0
    assert "pairs.trust.json is not a report of trust, so it was not overwritten." in result.stderr
    assert "Why:" not in result.stderr
    assert companion.read_text() == "notes of a friend"
    companion.unlink()
    companion.mkdir()
    assert "is not a report of trust" in run("match", *circles, "-q").stderr


def test_the_companion_never_replaces_an_input(run, tables, tmp_path):
    known = tmp_path / "pairs.trust.json"
    known.write_text("a0,b0\n")
    result = run("match", *tables[:2], "--frozen", known)
    assert result.exit_code == 2
    assert "pairs.trust.json is also an input and would be lost." in result.stderr
    os.link(tables[0], tmp_path / "linked.trust.json")
    result = run("match", *tables[:2], "-o", "linked.csv")
    assert result.exit_code == 2
    assert "linked.trust.json is also an input and would be lost." in result.stderr


def test_the_companion_in_a_folder_of_inputs_is_not_counted(run, pictures):
    left, right, _ = pictures
    for _ in range(2):
        result = run("match", left, right, "-o", left / "pairs.csv", "--no-trust")
        assert result.exit_code == 0, result.output
        assert f"A: read 30 files in 1 folder ({left}); skipped 0." in result.stdout
    assert (left / "pairs.trust.json").exists()


def test_auto_receives_the_values_as_they_are_and_says_what_it_chose(run, arrays, fitted):
    a, b, _ = arrays
    received = fitted(scaling_="log counts", kernel_="geodesic")
    result = run("match", a, b)
    np.testing.assert_array_equal(received["X"], np.load(a))
    assert received["estimator"].kernel == "auto"
    assert "Chosen by --kernel auto: scaling 'log counts', kernel 'geodesic'.\n" in result.stdout
    answer = answer_of(run("match", a, b, "--json", "--kernel", "auto"))
    assert (answer["scaling"], answer["kernel"]) == ("log counts", "geodesic")


def test_tables_in_different_units_are_standardized_by_default(run, arrays):
    a, b, truth = arrays
    np.save(a, np.load(a) * np.logspace(0, 3, np.load(a).shape[1]))
    answer = answer_of(run("match", a, b, "--json"))
    assert (answer["scaling"], answer["kernel"]) == ("standardized", "rbf")
    assert np.mean([row["index_y"] == truth[row["index_x"]] for row in answer["pairs"]]) > 0.8
    result = run("match", a, b)
    assert "Chosen by --kernel auto: scaling 'standardized', kernel 'rbf'." in result.stdout
    fixed = run("match", a, b, "--kernel", "local", "--no-trust")
    assert fixed.exit_code == 0, fixed.output
    assert "Chosen by" not in fixed.stdout


def test_several_scalings_of_tables_are_compared_at_once(run, arrays, fitted):
    a, b, _ = arrays
    for path in (a, b):
        np.save(path, np.exp(np.load(path)))
    received = fitted()
    every = ["given", "standardized", "rows", "ranks", "log"]
    named = [f"--features={each}" for each in every]
    answer = answer_of(run("match", a, b, *named, "--json", "--no-trust"))
    assert answer["kernel"] == ["rbf"] * 5
    assert answer["scaling"] == [
        "as given",
        "standardized",
        "rows normalized",
        "ranks",
        "log counts",
    ]
    X = np.load(a)
    given, standardized, rows, ranks, logs = received["X"]
    np.testing.assert_array_equal(given, X)
    np.testing.assert_allclose(standardized.std(axis=0), 1.0)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    np.testing.assert_array_equal(np.argsort(ranks[:, 0]), np.argsort(X[:, 0]))
    np.testing.assert_allclose(
        np.expm1(logs) / np.expm1(logs).sum(1)[:, None], X / X.sum(1)[:, None]
    )
    two = ["--features", "ranks", "--kernel", "laplacian+rbf"]
    answer = answer_of(run("match", a, b, *two, "--json", "--no-trust"))
    assert (answer["kernel"], answer["scaling"]) == (["laplacian", "rbf"], ["ranks", "ranks"])
    one = answer_of(run("match", a, b, "--features", "ranks", "--json", "--no-trust"))
    assert (one["kernel"], one["scaling"]) == ("rbf", "ranks")


@pytest.mark.slow
def test_several_features_of_pictures_are_compared_at_once(run, pictures, fitted):
    received = fitted()
    answer = answer_of(run("match", *pictures[:2], *ALL_FEATURES, "--json", "--no-trust"))
    assert answer["kernel"] == ["rbf"] * 4
    assert answer["features"] == ["pixels", "color", "texture", "words"]
    assert answer["scaling"] is None
    assert len({part.shape for part in received["X"]}) == 4
    two = ["--features", "texture", "--kernel", "rbf+local"]
    answer = answer_of(run("match", *pictures[:2], *two, "--json", "--no-trust"))
    assert (answer["kernel"], answer["features"]) == (["rbf", "local"], ["texture"])
    plain = answer_of(run("match", *pictures[:2], "--json", "--no-trust"))
    assert plain["features"] == ["pixels", "color"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "--features texture",
            "--features texture does not suit a.npy, a table. Leave it out, or",
        ),
        ("--features ranks+ranks", "--features ranks is given 2 times. Give each of"),
        ("--features ranks --features ranks", "--features ranks is given 2 times. Give each of"),
        ("--features log", "and --features log compares counts, which are never negative. Choose"),
        ("--kernel chi2", "and --kernel chi2 compares counts, which are never negative. Choose"),
        ("--kernel auto --features ranks", "--kernel auto chooses scaling and kernel itself, so"),
        ("--kernel auto+rbf", "so a second --kernel has no effect. Leave out one of the"),
        ("--kernel text", "--kernel text does not suit a.npy, a table. Leave it out, or choose"),
        (
            "--features ranks --precomputed",
            "--features ranks and --precomputed exclude each other.",
        ),
        ("--hints known.csv --method classic", "--hints needs --method refined; classic cannot"),
        ("--hints missing.csv", "missing.csv"),
    ],
)
def test_options_that_do_not_fit_are_refused(run, arrays, tmp_path, options, words):
    (tmp_path / "known.csv").write_text("0,0,0.5\n")
    result = run("match", "a.npy", "b.npy", *options.split())
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "pairs.csv").exists()


def test_counts_are_not_standardized_for_chi2(run, arrays):
    for path in arrays[:2]:
        np.save(path, np.exp(np.load(path)))
    both = ["--kernel", "chi2", "--features", "standardized"]
    result = run("match", *arrays[:2], *both)
    assert result.exit_code == 2
    assert "--features standardized makes numbers negative" in result.stderr
    answer = answer_of(run("match", *arrays[:2], "--kernel", "chi2", "--json", "--no-trust"))
    assert (answer["kernel"], answer["scaling"]) == ("chi2", "as given")


def test_features_of_pictures_do_not_suit_tables_or_texts(run, tmp_path, pictures):
    result = run("match", *pictures[:2], "--features", "ranks")
    assert result.exit_code == 2
    assert (
        "choose from: pixels, color, content, texture, words, MODEL.onnx, timm:NAME"
        in result.stderr
    )
    for side in ("en", "de"):
        (tmp_path / side).mkdir()
        for i in range(3):
            (tmp_path / side / f"{i}.txt").write_text(f"word{i} and more")
    result = run("match", "en", "de", "--features", "words")
    assert result.exit_code == 2
    assert (
        "does not suit en, a folder of text files. Leave it out, or choose from: tfidf, sentence"
        in result.stderr
    )


ADVICE = {
    "": "compare several features at once (--features standardized+ranks)",
    "--kernel rbf": "let --kernel auto choose scaling and kernel",
    "--features ranks": ("compare several features at once (--features ranks+standardized)"),
    "--features given+standardized+rows+ranks": (
        "combine several kernels (--kernel rbf+laplacian)"
    ),
}


@pytest.mark.parametrize("options", ADVICE)
def test_advice_names_options_that_are_not_used_yet_and_exist(run, arrays, fitted, options):
    fitted(doubts_=["it is an example"], ambiguity_=0.0)
    said = run("match", *arrays[:2], *options.split(), "--no-trust", "-q").stderr
    assert said == (
        "Warning: These pairs cannot be trusted: it is an example. Give known pairs with --frozen "
        f"(30 help a lot), or {ADVICE[options]}. Why: pairs.trust.json\n"
    )
    advised = re.findall(r"--\w+ [\w+]+", ADVICE[options])
    assert run("match", *arrays[:2], *" ".join(advised).split(), "--no-trust").exit_code == 0


@pytest.mark.slow
def test_advice_for_pictures_and_matrices_fits_them(run, pictures, arrays, fitted):
    fitted(doubts_=["it is an example"], ambiguity_=0.95)
    said = run("match", *pictures[:2], "--no-trust", "-q").stderr
    assert "(--features pixels+color+texture), or raise --n-init." in said
    said = run("match", *pictures[:2], *ALL_FEATURES, "--no-trust", "-q").stderr
    assert "(--kernel rbf+laplacian), or raise --n-init." in said
    for path in arrays[:2]:
        values = np.load(path)
        np.save(path, values @ values.T)
    (arrays[0].parent / "known.csv").write_text("0,0\n")
    known = ["--precomputed", "--frozen", "known.csv", "--no-trust", "-q"]
    said = run("match", *arrays[:2], *known).stderr
    assert "Give more known pairs with --frozen, or raise --n-init. Why:" in said


@pytest.mark.parametrize("form", ["name", "heading", "position", "own"])
def test_hints_are_passed_on(run, tables, fitted, form):
    received = fitted()
    hints = [(0, 7, 0.9), (5, 3, 1.0), (5, 4, 0.25)]
    lines = {
        "name": [f"a{i},b{j},{p}" for i, j, p in hints],
        "heading": ["left,right,how sure", *(f"a{i},b{j},{p}" for i, j, p in hints)],
        "position": [f"{i},{j},{p}" for i, j, p in hints],
        "own": ["name_y,name_x,Probability", *(f"b{j},a{i},{p}" for i, j, p in hints)],
    }[form]
    (tables[0].parent / "likely.csv").write_text("\n".join(lines) + "\n")
    result = run("match", *tables[:2], "--hints", "likely.csv", "--no-trust")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(received["hints"], hints)
    assert received["frozen"] is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["a0,b0,0"], "likely.csv, line 1: '0' is not a probability. Give a number above 0 and"),
        (["a0,b0,0.5", "a1,b1,1.01"], "likely.csv, line 2: '1.01' is not a probability."),
        (["a0,b0,0.5", "a1,b1,nan"], "likely.csv, line 2: 'nan' is not a probability."),
        (["a0,b0,0.5", "a1,b1,50%"], "likely.csv, line 2: '50%' is not a probability."),
        (
            ["a0,b0,0.5", "a1,b1"],
            "likely.csv, line 2 has 2 cell(s). Give one line for each likely",
        ),
        (["zz,yy,0.5", "a1,b1,0.5"], "likely.csv, line 1: A has no item 'zz'."),
        (["a0,b99,0.5"], "likely.csv, line 1: B has no item 'b99'."),
        (["a0,b1,0.5", "", "0,1,0.4"], "line 3: '0' and '1' are a pair in line 1 already. Give"),
        ([""], "likely.csv is empty. Give one line for each likely pair: item of A, item of B,"),
    ],
)
def test_bad_hints_name_their_line(run, tables, lines, words):
    (tables[0].parent / "likely.csv").write_text("\n".join(lines) + "\n")
    result = run("match", *tables[:2], "--hints", "likely.csv")
    assert result.exit_code == 2
    assert words in result.stderr


def test_hints_are_never_overwritten(run, tables):
    likely = tables[0].parent / "pairs.csv"
    likely.write_text("a0,b0,0.5\n")
    result = run("match", *tables[:2], "--hints", likely)
    assert result.exit_code == 2
    assert "pairs.csv is there" in result.stderr
    assert "would be lost." in result.stderr
    assert likely.read_text() == "a0,b0,0.5\n"


@pytest.mark.parametrize("options", [(), ("--no-trust",), ("-q",)])
def test_a_large_match_is_announced_before_it_begins(run, tables, monkeypatch, options):
    said, seen = [], []
    monkeypatch.setattr("unshuffle.cli._match.note", said.append)
    monkeypatch.setattr("unshuffle.matching._fit.LONG", 0.0)
    solve = DenseFit.solve

    def look_and_solve(self):
        seen.extend(said)
        return solve(self)

    monkeypatch.setattr(DenseFit, "solve", look_and_solve)
    monkeypatch.setattr(DenseFit, "expected_resources", lambda self: (1860.0, 1_360_000_000))
    result = run("match", *tables[:2], *options)
    assert result.exit_code == 0, result.output
    assert "roughly" not in result.output, "the warning of the library would repeat it"
    faster = " --no-trust halves the time." if not options else ""
    expected = [] if "-q" in options else [f"Expected: about 31 minutes, 1.4 GB.{faster}"]
    assert [each for each in seen if "Expected" in each] == expected


def test_a_small_match_is_not_announced(run, tables):
    assert "Expected" not in run("match", *tables[:2]).output
