"""The pages of docs/papers say what was measured, and every corrected formula has its test."""

import ast
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("a source archive holds no benchmarks", allow_module_level=True)

from benchmarks.papers import __main__ as papers  # noqa: E402
from benchmarks.papers import _minimum_volume_pca, _pages  # noqa: E402
from benchmarks.papers._claims import (  # noqa: E402
    CHANGED,
    CHOSEN_LATER,
    FAILS,
    HOLDS,
    Claim,
    Quantity,
    Results,
    Setting,
)

CLAIMS = {claim.id: claim for paper in papers.PAPERS for claim in paper.claims}
RESULTS = {
    name: result
    for paper in papers.PAPERS
    for name, result in _pages.results_of(paper).claims.items()
}


def test_there_are_enough_claims_with_names_of_their_own():
    assert len(CLAIMS) >= 25
    assert sum(len(paper.claims) for paper in papers.PAPERS) == len(CLAIMS)
    assert set(CHOSEN_LATER) <= set(CLAIMS)


def test_pages_say_what_was_measured():
    pages = _pages.rendered(papers.PAPERS)
    assert {path.name for path in pages} == {path.name for path in _pages.FOLDER.glob("*.md")}
    for path, text in pages.items():
        assert path.read_text("utf-8") == text, f"run python -m benchmarks.papers --pages: {path}"


def test_a_changed_digit_of_a_page_is_noticed(monkeypatch, tmp_path):
    for path in _pages.FOLDER.glob("*.md"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    shutil.copytree(_pages.FOLDER / "results", tmp_path / "results")
    assert list(_pages.write_all(papers.PAPERS, tmp_path)) == []
    changed = tmp_path / "set-kernel.md"
    text = changed.read_text("utf-8")
    value = _pages.with_spread(RESULTS["mk-five"].values["five"])
    changed.write_text(text.replace(value, value.replace("9", "8", 1)), "utf-8")
    assert list(_pages.write_all(papers.PAPERS, tmp_path)) == [changed]
    assert changed.read_text("utf-8") == text


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: paper.name)
def test_no_figure_is_typed_into_the_text(paper):
    """What was found is quoted by its key; other numbers name a section, a protocol or a rule."""
    text = (_pages.PROSE / f"{paper.name}.md").read_text("utf-8")
    found = text.split("## What we found")[1].split("## What we ship")[0]
    typed = set(numbers(_pages.PLACE.sub("", found)))
    asked = {number for claim in paper.claims for number in numbers(described(claim))}
    assert typed <= asked
    for claim in paper.claims:
        quoted = set(numbers(re.sub(r"\{\w+\}", "", claim.because)))
        assert quoted <= set(numbers(described(claim))), claim.id


def described(claim):
    """What a claim says before anything is measured."""
    labels = [each.label for each in claim.quantities]
    return " ".join([claim.where, claim.says, claim.rule, claim.theirs, claim.ours, *labels])


def numbers(text):
    """Numbers of a text, without those in formulas such as 2 N^-2 or 1/e1."""
    text = re.sub(r"\S*[\^/]\S*|\b[a-z]\d\b|\b\d N\b", " ", text)
    return re.findall(r"(?<![\w.])\d*\.?\d+", text)


def test_rules_can_be_applied_to_what_was_measured(tmp_path, monkeypatch):
    paper = papers.PAPERS[0]
    strict = replace(CLAIMS["ks-attributes-ours"], rule="under == 10")
    monkeypatch.setattr(papers, "PAPERS", [replace(paper, claims=(strict,))])
    recorded = _pages.results_of(paper)
    values = dict(recorded.claims[strict.id].values)
    counted = values.pop("under")
    recorded.claims = {strict.id: replace(recorded.claims[strict.id], values=values)}
    path = tmp_path / "results" / f"{paper.name}.json"
    recorded.write(path)
    papers.judge_again(tmp_path)
    judged = Results.read(path).claims[strict.id]
    assert judged.values["under"] == counted
    assert judged.verdict == FAILS


def test_a_locked_first_bag_stays_apart(tmp_path):
    found = _minimum_volume_pca.lock(Setting(tmp_path, quick=True))  # generated points
    locked, among, unlocked = (sum(found[key]) / len(found[key]) for key in found)
    assert locked < 20
    assert among > 80
    assert unlocked > 80


@pytest.mark.parametrize("name", CLAIMS)
def test_each_claim_is_measured_and_judged_by_its_rule(name):
    claim, result = CLAIMS[name], RESULTS[name]
    assert set(result.values) == {each.key for each in claim.quantities}
    assert result.verdict == claim.verdict(result.values)
    if result.verdict == FAILS:
        assert claim.because
    if claim.figure:
        assert (_pages.FOLDER / "figures" / claim.figure).stat().st_size < 500_000


def test_no_figure_is_left_over():
    drawn = {claim.figure for claim in CLAIMS.values() if claim.figure}
    assert {path.name for path in (_pages.FOLDER / "figures").iterdir()} == drawn


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: paper.name)
def test_every_corrected_formula_names_a_test_that_exists(paper):
    text = (_pages.PROSE / f"{paper.name}.md").read_text("utf-8")
    formulas = text.split("## Corrected formulas")[1].split("## The claims")[0].split("\n### ")[1:]
    assert formulas
    for formula in formulas:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", formula)
        assert named, formula
        for file, function in named:
            tree = ast.parse((ROOT / file).read_text("utf-8"))
            assert function in {
                node.name for node in tree.body if isinstance(node, ast.FunctionDef)
            }


def test_the_readme_quotes_what_was_measured():
    text = (ROOT / "README.md").read_text("utf-8")
    for row, *quoted in (
        ("320 photos cut in halves, matched by pixels", ("ks-photos", "refined", "{:.0f} right")),
        ("the same, with pixels and color histograms", ("ks-photos", "two", "{:.0f} right")),
        ("300 parliament debates", ("ks-documents-texts", "debates", "{:.0f} right for each")),
        (
            "handwritten 3s and 9s as sets of points",
            ("pi-digits", "strokes", "{:.1f}% right"),
            ("pi-digits-order", "sorted_rbf", "{:.1f}% sorted"),
        ),
        (
            "ten digits as sets of points",
            ("mk-digits-more", "strokes", "{:.1f}% right"),
            ("mk-digits-more", "images", "{:.1f}%, RBF SVM"),
        ),
    ):
        (line,) = (line for line in text.splitlines() if line.startswith(f"| {row}"))
        for name, key, form in quoted:
            assert form.format(RESULTS[name].mean(key)) in line


def test_a_page_takes_its_numbers_from_the_results(tmp_path):
    paper = papers.PAPERS[0]
    results = _pages.results_of(paper)
    claim = paper.claims[0]
    key = claim.quantities[0].key
    changed = replace(
        results.claims[claim.id], values={**results.claims[claim.id].values, key: [7.25]}
    )
    results.claims[claim.id] = changed
    results.write(tmp_path / "results" / f"{paper.name}.json")
    text = _pages.rendered([paper], tmp_path)[tmp_path / f"{paper.name}.md"]
    assert f"(`{key}`)" in text
    assert "7.25" in text


def test_verdicts_follow_the_rule():
    def measure(setting):
        return {"a": [1.0, 3.0]}

    claim = Claim(
        "c", "Table 1", "A.", (Quantity("a", "a", 1.9),), "a >= a_printed", "", "", measure
    )
    assert claim.verdict({"a": [1.0, 3.0]}) == HOLDS
    assert replace(claim, changed="data").verdict({"a": [1.0, 3.0]}) == CHANGED
    assert claim.verdict({"a": [1.0, 2.0]}) == FAILS


def test_a_quick_run_of_one_claim_from_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNSHUFFLE_DATA", str(tmp_path))  # this claim needs none
    arguments = ["ks-sorting", "--quick", "--output", str(tmp_path / "out")]
    assert papers.main(arguments) == 0
    kept = Results.read(tmp_path / "out" / "results" / "kernelized-sorting.json")
    assert list(kept.claims) == ["ks-sorting"]
    assert kept.claims["ks-sorting"].verdict == HOLDS
    assert kept.machine["quick"] is True
    assert "ks-sorting: holds" in capsys.readouterr().err


def test_a_worse_verdict_ends_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNSHUFFLE_DATA", str(tmp_path))
    paper = papers.PAPERS[0]
    claim = replace(CLAIMS["ks-sorting"], rule="sorted < 0")
    monkeypatch.setattr(papers, "PAPERS", [replace(paper, claims=(claim,))])
    assert papers.main(["ks-sorting", "--quick"]) == 1
    assert "ks-sorting: does not hold" in capsys.readouterr().out


def test_an_interrupt_keeps_finished_claims(tmp_path, monkeypatch, capsys):
    def stop(setting):
        raise KeyboardInterrupt

    monkeypatch.setenv("UNSHUFFLE_DATA", str(tmp_path))
    paper = papers.PAPERS[0]
    claims = (CLAIMS["ks-sorting"], replace(CLAIMS["ks-cycles"], measure=stop))
    monkeypatch.setattr(papers, "PAPERS", [replace(paper, claims=claims)])
    assert papers.main(["--quick", "--output", str(tmp_path / "out")]) == 130
    kept = Results.read(tmp_path / "out" / "results" / "kernelized-sorting.json")
    assert list(kept.claims) == ["ks-sorting"]
    assert "Finished claims are kept" in capsys.readouterr().err


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UNSHUFFLE_DATA", str(tmp_path / "none"))
    assert papers.main(["--quick"]) == 2
    assert "Set UNSHUFFLE_DATA" in capsys.readouterr().err


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        papers.main(["ks-nothing"])
    assert stopped.value.code == 2
    assert "unknown name 'ks-nothing'" in capsys.readouterr().err
