"""Links of the documentation: each leads to a file and a heading, and each file is linked."""

from urllib.parse import unquote, urlsplit

import pytest
from tests.repo.docs.pages import BUILT, DOCS, PAGES, ROOT, contents, headings, links, name_of

# Other sites that pages may send a reader to.
HOSTS = {
    *("docs.dask.org", "github.com", "keepachangelog.com"),
    *("pythonot.github.io", "umap-learn.readthedocs.io"),
}
PICTURES = [
    path
    for suffix in ("png", "jpg", "jpeg", "gif", "svg")
    for path in DOCS.rglob(f"*.{suffix}")
    if BUILT.isdisjoint(path.parts) and "_static" not in path.parts
]


def targets(page):
    """Links of a page within the checkout: as written, the file, and the anchor."""
    for link in links(page):
        parts = urlsplit(unquote(link))
        if not parts.scheme:
            yield (
                link,
                (page.parent / parts.path).resolve() if parts.path else page,
                parts.fragment,
            )


def test_headings_become_anchors_as_on_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# How good is it?\n## `make docs`: a site\n## [One](a.md) & two_three\n"
        "## Same\n## Same\n(by-hand)=\n```\n# A comment\n```\n"
    )
    assert headings(page) == {
        *("how-good-is-it", "make-docs-a-site", "one--two_three"),
        *("same", "same-1", "by-hand"),
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page):
    for link, path, anchor in targets(page):
        assert path.exists(), f"{link} does not exist"
        assert path.is_relative_to(ROOT), f"{link} is outside the checkout"
        if anchor and path.suffix == ".md":
            assert anchor in headings(path), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_other_sites_are_few_and_safe(page):
    for link in links(page):
        parts = urlsplit(link)
        assert parts.scheme in ("", "https"), link
        assert not parts.scheme or parts.hostname in HOSTS, f"{link}: add its host to HOSTS"


def test_every_page_can_be_reached():
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached and page in PAGES:
            reached.add(page)
            ahead += [path for _, path, _ in targets(page)]
            ahead += [path.resolve() for path in contents(page)]
    assert not sorted(name_of(page) for page in PAGES if page not in reached)


def test_entries_of_a_contents_list_exist():
    missing = {name_of(page): [p for p in contents(page) if not p.exists()] for page in PAGES}
    # The gallery is made from the examples when the site is built.
    missing = {n: [p for p in ps if BUILT.isdisjoint(p.parts)] for n, ps in missing.items()}
    assert not {name: paths for name, paths in missing.items() if paths}


def test_every_picture_is_shown():
    shown = {path for page in PAGES for _, path, _ in targets(page)}
    assert not sorted(name_of(path) for path in PICTURES if path not in shown)


def test_hosts_that_nobody_links_to_are_removed():
    linked = {urlsplit(link).hostname for page in PAGES for link in links(page)}
    assert linked >= HOSTS
