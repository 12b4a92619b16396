"""llms.txt and llms-full.txt: what the site offers to language models."""

import importlib.util
import re
import sys
from collections import Counter

import pytest
from tests.repo.docs.pages import DOCS, PAGES, ROOT, name_of


@pytest.fixture(scope="module")
def llms():
    # The modules of the site lie outside the package.
    spec = importlib.util.spec_from_file_location("_llms", DOCS / "_llms.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_llms"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["_llms"]


@pytest.fixture(scope="module")
def written(llms, tmp_path_factory):
    """Both files, by name."""
    folder = tmp_path_factory.mktemp("site")
    llms.write(folder)
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


def addresses(text):
    return re.findall(r"^- \[.+?\]\((.+?)\)", text, re.MULTILINE)


def test_the_list_has_a_title_a_summary_and_sections_of_links(written):
    assert set(written) == {"llms.txt", "llms-full.txt"}
    title, summary, *rest = [line for line in written["llms.txt"].splitlines() if line]
    assert title == "# unshuffle"
    assert re.fullmatch(r"> `unshuffle` is for .+\.", summary)
    sections = [line[3:] for line in rest if line.startswith("## ")]
    assert {"How to", "Guides", "Explanation", "Examples", "Reference"} < set(sections)
    assert (sections[0], sections[-1]) == ("Start", "Optional")
    links = [line for line in rest if not line.startswith("## ")]
    assert all(re.fullmatch(r"- \[[^\]]+\]\([\w./-]+\.html\)(: .+)?", link) for link in links)


def test_every_page_example_and_public_name_is_listed_once(written):
    listed = Counter(addresses(written["llms.txt"]))
    assert set(listed.values()) == {1}
    pages = {name_of(page) for page in PAGES if page.is_relative_to(DOCS)} - {"docs/index.md"}
    expected = {re.sub(r"^docs/(.*)\.md$", r"\1.html", page) for page in pages}
    expected |= {f"gallery/{path.stem}.html" for path in (ROOT / "examples").glob("plot_*.py")}
    names = re.findall(r"^   (unshuffle\.[\w.]+)$", (DOCS / "reference.md").read_text(), re.M)
    expected |= {f"generated/{name}.html" for name in names}
    assert set(listed) == expected


def test_the_full_text_holds_pages_scripts_and_docstrings(written):
    text = written["llms-full.txt"]
    marked = re.findall(r"^<!-- ([\w./-]+\.html) -->$", text, re.MULTILINE)
    assert marked == ["index.html", *addresses(written["llms.txt"])]
    assert "# Match two tables\n\nTwo tables describe" in text
    assert "# Which photos represent an album?\n\n```python\n" in text
    assert "# unshuffle.GridLayout\n\nLay out items" in text
    assert "The first public release." in text  # of the changelog, which its page includes
    for only_sphinx in ("{toctree}", "{include}", "autosummary::", "{grid", "\n<!-- benchmarks:"):
        assert only_sphinx not in text


def test_every_public_name_says_what_it_is(written):
    described = re.findall(r"^- \[unshuffle\.\S+\]\(\S+\): (.+)$", written["llms.txt"], re.M)
    assert len(described) == written["llms.txt"].count("](generated/")
    assert all(about.endswith((".", "?")) for about in described)


def test_first_sentences_are_whole_and_short_ones_are_joined(llms, tmp_path, monkeypatch):
    monkeypatch.setattr(llms, "DOCS", tmp_path)
    (tmp_path / "page.md").write_text(
        "# A page\n\n![picture](a.png)\n\n| a | table |\n|---|---|\n\n```python\nx = 1\n```\n\n"
        "One core. Sets of [points](sets.md), e.g. of 0.5 per cell,\nare compared. And more.\n",
        "utf-8",
    )
    page = llms._page(tmp_path / "page.md")
    assert page.about == "One core. Sets of points, e.g. of 0.5 per cell, are compared."
    assert str(page) == f"- [A page](page.html): {page.about}"
    (tmp_path / "table.md").write_text("# Only a table\n\n| a | b |\n|---|---|\n", "utf-8")
    assert str(llms._page(tmp_path / "table.md")) == "- [Only a table](table.html)"


def test_entries_of_a_toctree_may_have_titles_and_patterns(llms, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n", "utf-8")
    contents = "```{toctree}\n:hidden:\n\nThe last <c>\n*\n```\n"
    (tmp_path / "index.md").write_text(f"# All\n\n{contents}", "utf-8")
    assert [path.stem for path in llms._below(tmp_path / "index.md")] == ["c", "a", "b"]


def test_a_folder_that_does_not_exist_is_an_error(llms, tmp_path):
    with pytest.raises(FileNotFoundError):
        llms.write(tmp_path / "missing")
