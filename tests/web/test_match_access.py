"""The Match view by keyboard alone, for screen readers, in the dark and on a phone."""

import signal

import pytest
from tests.web.conftest import Server
from tests.web.matches import Matched, address_of, rest, write_halves, write_texts
from tests.web.test_page_access import NAMED, accessible, all_reachable, axe_complaints

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

N = 12
HEADER = ["show-settings", "show-problems", "undo", "show-export", "show-help"]
FEATURES = ["INPUT"] * 5
SETTINGS = ["close-settings", "automatic", *FEATURES, "release-all", "back-all", "clear"]
SUMMARY = ["ask", "match-again"]
FILTERS = ["all", "check", "changed", "confirmed", "lonely"]
ORDER = ["sort", "search"]
PAIR = ["pair", "right", "open", "enlarge"]
LOOKS = [
    pytest.param(width, dark, id=f"{'wide' if width > 500 else 'phone'}-{theme}")
    for width in (1280, 390)
    for dark, theme in ((False, "light"), (True, "dark"))
]


@pytest.fixture(scope="module")
def house(browser, tmp_path_factory):
    """A match with an answer, an item set aside, and a file that could not be read."""
    home = tmp_path_factory.mktemp("house")
    write_halves(home, N)
    (home / "left" / "broken.jpg").write_text("no picture")
    server = Server(home / "left", home / "right", "--port", "0", home=home).open()
    rest(server)
    server.post("/api/match/settings", automatic=False)
    pairs = server.get("/api/match/pairs")["partner"]
    server.post("/api/match/answer", pairs=[[0, pairs[0]]])
    server.post("/api/match/aside", side=0, items=[1])
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def text_house(browser, tmp_path_factory):
    """A match of texts."""
    home = tmp_path_factory.mktemp("texts")
    write_texts(home, 8)
    server = Server(home / "left", home / "right", "--port", "0", home=home).open()
    rest(server)
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def empty_house(browser, tmp_path_factory):
    """A server without anything to match."""
    server = Server("--port", "0", home=tmp_path_factory.mktemp("empty")).open()
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def open_match(open_page, house):
    """Opens the page."""

    def open_it(server=house, **options):
        matched = Matched(open_page(address_of(server), **options), server)
        matched.settle()
        return matched

    return open_it


def focused(page):
    """What has the focus, by its id, or by what it does."""
    return page.evaluate(
        """() => {
          const { activeElement: it } = document;
          if (it.classList.contains("duo")) return "pair";
          return it.id || it.dataset.act || it.dataset.filter || it.className || it.tagName;
        }"""
    )


def tab_through(page, start="show-settings", most=60):
    """What the Tab key leads to, in order, until it leaves the page."""
    page.locator(f"#{start}").focus()
    found = []
    while page.evaluate("document.activeElement !== document.body") and len(found) < most:
        found.append(focused(page))
        page.keyboard.press("Tab")
    return found


def test_every_control_is_reached_by_tab_in_order(open_match):
    matched = open_match()
    found = tab_through(matched.page)
    assert found == [*HEADER, *SETTINGS, *SUMMARY, *FILTERS, *ORDER, *PAIR]


def test_candidates_are_reached_by_tab(open_match):
    page = open_match().page
    page.locator("article.duo [data-act=open]").first.click()
    expect(page.locator("#panel .candidate").first).to_be_focused()
    n = page.locator("#panel .candidate:enabled").count()
    found = tab_through(page, start="close")
    candidates = ["candidate"] * n
    assert found == ["close", "rule-out", *candidates, "INPUT", "left-aside", "right-aside"]


def test_the_export_menu_is_reached_by_tab(open_match):
    page = open_match().page
    page.locator("#show-export").press("Enter")
    forms = []
    for _ in range(3):
        page.keyboard.press("Tab")
        forms.append(page.evaluate("document.activeElement.dataset.format"))
    assert forms == ["csv", "json", "png"]
    page.keyboard.press("Escape")
    expect(page.locator("#show-export")).to_be_focused()


def test_the_empty_page_is_reached_by_tab(open_match, empty_house):
    page = open_match(empty_house).page
    found = tab_through(page)
    assert [each for each in found if each.startswith("choose")] == [
        *("choose-files-0", "choose-folder-0", "choose-files-1", "choose-folder-1"),
    ]


def test_focus_is_visible(open_match):
    page = open_match().page
    page.locator("#show-settings").focus()
    seen = 0
    while page.evaluate("document.activeElement !== document.body"):
        width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert width == "2px", focused(page)
        page.keyboard.press("Tab")
        seen += 1
    assert seen > 20


def test_screen_readers_hear_a_name_for_everything(open_match):
    matched = open_match()
    page = matched.page
    page.locator("article.duo [data-act=open]").first.click()
    expect(page.locator("#panel .candidate").first).to_be_focused()
    found = accessible(page)
    assert not [role for role, name in found if role in NAMED and not name.strip()]
    names = dict.fromkeys(name for role, name in found if role == "article")
    partners = matched.partners()
    assert f"Left: a00.png, right: b{partners[0]:02}.png, confirmed" in names
    assert "Left: a01.png, set aside" in names
    shares = matched.pairs()["confidence"]
    other = next(name for name in names if name.startswith("Left: a02.png"))
    assert other.endswith(f"{min(99, round(100 * shares[2]))}%")
    assert ("feed", "Pairs") in found
    assert {name for role, name in found if role == "link"} == {"Arrange", "Match", "Collage"}
    expect(page.locator("nav [aria-current=page]")).to_have_text("Match")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_nothing_serious(open_match, width, dark):
    phone = width < 500
    page = open_match(width=width, height=844, dark=dark, touch=phone).page
    assert axe_complaints(page) == []
    page.locator("#show-export").click()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    page.locator("article.duo [data-act=open]").first.click()
    expect(page.locator("#panel .candidate").first).to_be_focused()
    assert axe_complaints(page) == []
    page.locator("#close").click()
    for opener, dialog in (
        ("ask", "asking"),
        ("show-problems", "problems"),
        ("show-help", "help"),
    ):
        page.locator(f"#{opener}").click()
        expect(page.locator(f"#{dialog}")).to_be_visible()
        assert axe_complaints(page) == [], dialog
        page.keyboard.press("Escape")
    page.locator("article.duo [data-act=enlarge]").first.click()
    expect(page.locator("#large")).to_be_visible()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    page.locator("#ask").click()
    for _ in range(10):
        page.keyboard.press("s")
    expect(page.locator("#asked")).to_be_visible()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    if phone:
        page.locator("#show-settings").click()
    page.locator("#clear").click()
    assert axe_complaints(page) == []
    page.locator("#confirm-no").click()


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_nothing_serious_about_texts(open_match, text_house, width, dark):
    page = open_match(text_house, width=width, dark=dark).page
    assert axe_complaints(page) == []
    page.locator("article.duo [data-act=enlarge]").first.click()
    expect(page.locator("#large .content p").first).to_be_visible()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    page.locator("article.duo [data-act=open]").first.click()
    expect(page.locator("#panel .candidate").first).to_be_focused()
    assert axe_complaints(page) == []


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_nothing_serious_on_the_empty_page(open_match, empty_house, width, dark):
    page = open_match(empty_house, width=width, dark=dark).page
    expect(page.locator("#zone-0")).to_be_visible()
    assert axe_complaints(page) == []


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_has_room_for_everything(open_match, empty_house, text_house, width):
    for server in (None, text_house, empty_house):
        given = {} if server is None else {"server": server}
        page = open_match(width=width, height=740, touch=True, **given).page
        all_reachable(page)
        inside = "document.querySelector('#scroll').scrollWidth <= innerWidth"
        assert page.evaluate(inside)
        if server is empty_house:
            continue
        page.locator("article.duo [data-act=open]").first.tap()
        expect(page.locator("#panel .candidate").first).to_be_visible()
        assert page.evaluate("document.querySelector('#panel').scrollWidth <= innerWidth")
        page.locator("#close").tap()
        page.locator("#ask").tap()
        expect(page.locator("#yes")).to_be_visible()
        box = page.locator("#asking")
        assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")
        page.keyboard.press("Escape")
        page.locator("#show-settings").tap()
        expect(page.locator("#settings")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#settings")).to_be_hidden()
        expect(page.locator("#show-settings")).to_be_focused()
