"""Walls by keyboard, for screen readers, in the dark, on a phone, and with hostile content."""

import csv
import re

import numpy as np
import pytest
from tests.images.walls import GRID, NAMES, NUMBERS, Screen, cell_of

from unshuffle.images import write_page

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

CONTROLS = ["search", "search-in", "show-filters", "mode-move", "mode-box", "mode-lasso"]
CONTROLS += ["out", "in", "fit"]
NAMED = {
    *("button", "searchbox", "textbox", "combobox", "checkbox", "link", "application", "image"),
    *("img", "DisclosureTriangle", "complementary", "option", "MenuListOption"),
}
HOSTILE = [
    "<script>document.title='taken'</script>",
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "<svg onload=alert(1)>",
    "javascript:alert(1)",
    "${alert(1)}",
    "'\"><b>bold</b>",
    "&lt;b&gt;",
    "\u202egnp.exe",
    "__proto__",
    "constructor",
    "a" * 3000,
    "\x00\x07\ud800",
    "@TITLE@ @DATA@",
    '=HYPERLINK("http://nowhere.invalid")',
    "<iframe src=http://nowhere.invalid>",
]


@pytest.fixture
def wall(walls):
    """The wall of the folder; what is tested here does not depend on the form."""
    return walls["folder"]


def pressed(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def said(page, words):
    expect(page.locator("#said")).to_have_text(words)


def place_words(item):
    row, column = cell_of(item)
    return f"{NAMES[item]}, row {row + 1}, column {column + 1}"


def focused(page):
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


def tab_through(page, most=60):
    """What the Tab key leads to from the search field, in order."""
    page.locator("#search").focus()
    found = []
    while page.evaluate("document.activeElement !== document.body") and len(found) < most:
        found.append(focused(page))
        page.keyboard.press("Tab")
    return found


def test_every_control_is_reached_by_tab_in_order(open_page, wall):
    page = open_page(wall)
    assert tab_through(page) == [*CONTROLS, "wall"]


def test_filters_and_details_are_reached_by_tab_too(open_page, wall):
    page = open_page(wall, anchor="picture=cats%2F00.png")
    expect(page.locator("#near button")).to_have_count(3)
    page.locator("#show-filters").press("Enter")
    found = tab_through(page)
    in_filters = ["close-filters", "frame-by", "kind", "year", "note"]
    look_alikes = [""] * 3  # pictures
    details = ["close", "original", "address", *look_alikes]
    assert found == [*CONTROLS, *in_filters, "wall", *details]


def test_names_and_selections_are_in_front_of_a_wall_with_the_focus(open_page, wall):
    page = open_page(wall)
    page.locator("#show-filters").focus()
    for _ in range(7):
        page.keyboard.press("Tab")
    assert focused(page) == "wall"
    pressed(page, "ArrowRight", " ")
    expect(page.locator("#label")).to_contain_text(NAMES[GRID[2, 2]])
    seen = Screen(page)
    box = page.locator("#label").bounding_box()
    ink = seen.color((box["x"] + 4, box["y"] + 4))
    assert ink.max() < 60
    page.locator("#save").click(trial=True)


def test_the_keyboard_alone_walks_opens_selects_and_closes(open_page, wall):
    page = open_page(wall)
    page.locator("#wall").focus()
    pressed(page, "ArrowRight")  # the middle one comes first
    said(page, place_words(GRID[2, 2]))
    pressed(page, "ArrowRight")
    said(page, place_words(GRID[2, 3]))
    pressed(page, "ArrowUp", "ArrowUp", "ArrowRight")
    said(page, place_words(GRID[0, 3]))  # what is beyond is empty
    pressed(page, "Enter")
    expect(page.locator("#name")).to_have_text(NAMES[GRID[0, 3]])
    pressed(page, "ArrowLeft")
    expect(page.locator("#name")).to_have_text(NAMES[GRID[0, 2]])
    pressed(page, "Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert focused(page) == "wall"
    pressed(page, " ")
    expect(page.locator("#selected")).to_have_text("1 picture selected")
    pressed(page, "Shift+ArrowDown", "Shift+ArrowRight")
    expect(page.locator("#selected")).to_have_text("4 pictures selected")
    pressed(page, "Escape")
    expect(page.locator("#selection")).to_be_hidden()


def test_the_keyboard_zooms_and_fits(open_page, wall):
    page = open_page(wall)
    seen = Screen(page)
    whole = seen.zoom()
    page.locator("#wall").focus()
    pressed(page, "-", "-")
    page.wait_for_timeout(100)
    assert seen.zoom() < 0.7 * whole
    pressed(page, "+")
    page.wait_for_timeout(100)
    assert 0.7 * whole < seen.zoom() < 0.9 * whole
    pressed(page, "0")
    page.wait_for_timeout(100)
    assert seen.zoom() == pytest.approx(whole, abs=1)


def test_a_slash_leads_to_the_search_and_escape_back(open_page, wall):
    page = open_page(wall)
    pressed(page, "/")
    assert focused(page) == "search"
    page.keyboard.type("a/b")
    expect(page.locator("#search")).to_have_value("a/b")
    pressed(page, "Escape")
    expect(page.locator("#search")).to_have_value("")
    assert focused(page) == "wall"


def test_facets_work_by_keyboard(open_page, wall):
    page = open_page(wall)
    page.locator("#show-filters").press("Enter")
    page.locator("summary", has_text="kind").press("Enter")
    page.get_by_label("cat").press(" ")
    expect(page.locator("#count")).to_have_text("8 of 24 pictures")
    pressed(page, "Escape")
    expect(page.locator("#filters")).to_be_hidden()
    expect(page.locator("#show-filters")).to_have_attribute("aria-expanded", "false")


def test_focus_is_visible(open_page, wall):
    page = open_page(wall)
    for each in (*CONTROLS, "wall"):
        page.locator(f"#{each}").focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        outline = page.locator(f"#{each}").evaluate("(x) => getComputedStyle(x).outlineWidth")
        assert outline == "2px", each


def accessible(page):
    """Role and name of what a screen reader meets."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored")
    ]


def test_screen_readers_hear_a_name_for_everything(open_page, wall):
    page = open_page(wall, anchor="picture=cats%2F00.png")
    expect(page.locator("#near button")).to_have_count(3)
    page.locator("#show-filters").click()
    page.locator("summary", has_text="kind").click()
    page.locator("#frame-by").select_option(label="kind")
    page.locator("#search").fill("a")
    page.locator("#mode-box").click()
    page.locator("#wall").press(" ")
    expect(page.locator("#steps")).to_be_visible()
    expect(page.locator("#selection")).to_be_visible()
    found = accessible(page)
    assert not [role for role, name in found if role in NAMED and not name.strip()]
    expected = {
        *(("searchbox", "Search pictures"), ("combobox", "Search in"), ("button", "Filter")),
        *(("button", "Previous found"), ("button", "Next found"), ("combobox", "Frame by")),
        *(("button", "Move"), ("button", "Box"), ("button", "Lasso"), ("group", "Zoom")),
        *(("button", "Zoom in"), ("button", "Zoom out"), ("button", "Fit")),
        *(("button", "Save as CSV"), ("button", "Clear"), ("button", "Clear filters")),
        *(("button", "Close filters"), ("button", "Close details"), ("group", "Selection")),
        *(("link", "Open the original"), ("link", "Link to this place")),
        *(("complementary", "Filters"), ("complementary", "Details")),
        *(("application", "Wall of 24 pictures in 5 rows and 5 columns"), ("checkbox", "cat 8")),
        *(("button", NAMES[3]), ("button", NAMES[6]), ("heading", "Cats and others")),
    }
    assert expected <= set(found)
    assert "status" in [role for role, _ in found]


def test_pressed_and_expanded_states_are_told(open_page, wall):
    page = open_page(wall)
    for chosen in ("box", "lasso", "move"):
        page.locator(f"#mode-{chosen}").click()
        for each in ("box", "lasso", "move"):
            expect(page.locator(f"#mode-{each}")).to_have_attribute(
                "aria-pressed", "true" if each == chosen else "false"
            )
    expect(page.locator("#show-filters")).to_have_attribute("aria-expanded", "false")
    page.locator("#show-filters").click()
    expect(page.locator("#show-filters")).to_have_attribute("aria-expanded", "true")


def luminance(color):
    channels = np.array(color) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_their_background(open_page, wall, dark):
    page = open_page(wall, dark=dark, anchor="picture=cats%2F00.png")
    page.locator("#show-filters").click()
    pairs = page.evaluate(
        """() => [...document.querySelectorAll("h1,h2,h3,p,span,button,select,a,dt,dd,summary")]
          .filter((each) => each.checkVisibility() && each.id !== "said" && each.id !== "label")
          .map((each) => {
            let under = each;
            while (getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") {
              under = under.parentElement;
            }
            return [
              each.id || each.tagName,
              getComputedStyle(each).color,
              getComputedStyle(under).backgroundColor,
            ];
          })"""
    )
    assert len(pairs) > 20
    for name, *colors in pairs:
        one, other = (
            luminance([int(x) for x in re.findall(r"\d+", color)[:3]]) for color in colors
        )
        contrast = (max(one, other) + 0.05) / (min(one, other) + 0.05)
        assert contrast >= 4.5, (name, colors)


def test_the_page_turns_dark_with_the_system(open_page, wall):
    page = open_page(wall)
    seen = Screen(page)
    corner = (8, 300)
    assert seen.color(corner).min() > 230
    places = seen.places()
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(200)
    assert seen.color(corner).max() < 40
    assert seen.bright(places) == set(NUMBERS)


def all_reachable(page):
    """Whether each control is inside the window, or can be scrolled there, with nothing above."""
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    for each in page.locator("button, select, input, a, summary").all():
        if not each.is_visible():
            continue
        each.scroll_into_view_if_needed()
        hit = each.evaluate(
            """(each) => {
              const box = each.getBoundingClientRect();
              const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
              const top = document.elementFromPoint(x, y);
              const inside = box.left >= -1 && box.right <= innerWidth + 1;
              return inside && (top === each || each.contains(top) || top?.contains(each));
            }"""
        )
        assert hit, each.evaluate("(each) => each.id || each.textContent")


@pytest.mark.parametrize(("width", "height"), [(320, 568), (390, 844)])
def test_a_phone_has_room_for_everything(open_page, wall, width, height):
    page = open_page(wall, width=width, height=height, touch=True)
    all_reachable(page)
    assert page.locator("#wall").bounding_box()["height"] > 0.4 * height
    page.locator("#show-filters").tap()
    page.locator("summary", has_text="kind").tap()
    page.locator("#search").fill("a")
    expect(page.locator("#steps")).to_be_visible()
    all_reachable(page)
    page.locator("#close-filters").tap()
    page.evaluate("location.hash = '#picture=cats%2F00.png'")
    expect(page.locator("#near button")).to_have_count(3)
    page.locator("#wall").press(" ")
    expect(page.locator("#selection")).to_be_visible()
    all_reachable(page)
    assert page.locator("#wall").bounding_box()["height"] > 0.15 * height


def touch(session, kind, *places):
    points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places)]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_fingers_tap_move_and_pinch(open_page, wall):
    page = open_page(wall, width=390, height=844, touch=True)
    seen = Screen(page)
    session = page.context.new_cdp_session(page)
    before, whole = seen.place(0), seen.zoom()
    touch(session, "touchStart", before)
    for k in range(1, 6):
        touch(session, "touchMove", (before[0] + 8 * k, before[1] + 5 * k))
    touch(session, "touchEnd")
    page.wait_for_timeout(100)
    np.testing.assert_allclose(seen.place(0), (before[0] + 40, before[1] + 25), atol=3)
    middle = page.locator("#wall").bounding_box()
    x, y = middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2
    apart = [120 - 12 * k for k in range(6)]
    touch(session, "touchStart", (x - apart[0], y), (x + apart[0], y))
    for each in apart[1:]:
        touch(session, "touchMove", (x - each, y), (x + each, y))
    touch(session, "touchEnd")
    page.wait_for_timeout(100)
    assert seen.zoom() == pytest.approx(whole * apart[-1] / apart[0], rel=0.15)
    expect(page.locator("#panel")).to_be_hidden()
    page.touchscreen.tap(*seen.place(4))
    expect(page.locator("#name")).to_have_text(NAMES[4])


@pytest.fixture(params=["wall.html", "wall"])
def hostile(request, tmp_path):
    path = tmp_path / request.param
    n = len(HOSTILE)
    images = np.full((n, 40, 40, 3), 120, np.uint8)
    write_page(
        path,
        images,
        np.arange(n).reshape(4, 4),
        HOSTILE,
        title=HOSTILE[2],
        columns={HOSTILE[1]: HOSTILE, "<b>": HOSTILE[::-1], "": [""] * n},
        noun="<i>thing</i>",
        neighbors=np.roll(np.arange(n), 1)[:, None],
    )
    return path / "index.html" if path.is_dir() else path


def test_hostile_texts_are_shown_as_they_are_and_nothing_runs(open_page, hostile):
    page = open_page(hostile)
    assert page.title() == HOSTILE[2]
    assert page.locator("h1").inner_text() == HOSTILE[2]
    before = page.locator("script").count()
    page.locator("#show-filters").click()
    for summary in page.locator("summary").all():
        summary.click()
    page.locator("#frame-by").select_option(label=HOSTILE[1])
    assert page.locator("summary").first.inner_text() == HOSTILE[1]
    page.locator("#wall").focus()
    for item in (0, 1, 2, 3, 4, 6, 13, 15):
        page.evaluate(f"location.hash = '#item={item}'")
        expect(page.locator("#name")).to_have_text(HOSTILE[item])
        expect(page.locator("#near button")).to_have_count(1)
        assert page.locator("#facts dd").first.inner_text() == HOSTILE[item]
        page.locator("#search").fill(HOSTILE[item])
        expect(page.locator("#count")).to_contain_text(" of 16 ")
    assert page.title() == HOSTILE[2]
    assert page.locator("script").count() == before
    for tag in ("svg", "iframe", "b", "i", "img[src=x]", "object", "embed"):
        assert page.locator(tag).count() == 0, tag


def test_long_and_odd_names_do_not_break_the_page_on_a_phone(open_page, hostile):
    page = open_page(hostile, width=360, height=640, touch=True, anchor="item=11")
    expect(page.locator("#name")).to_have_text("a" * 3000)
    all_reachable(page)
    page.locator("#show-filters").tap()
    page.locator("summary").first.tap()
    all_reachable(page)


def test_a_saved_selection_of_hostile_texts_reads_back(open_page, hostile):
    page = open_page(hostile)
    page.locator("#wall").press("Enter")
    page.locator("#wall").press("Escape")
    for key in [*["ArrowLeft"] * 3, *["ArrowUp"] * 3]:
        page.locator("#wall").press(key)
    for key in [*["Shift+ArrowRight"] * 3, *["Shift+ArrowDown"] * 3]:
        page.locator("#wall").press(key)
    expect(page.locator("#selected")).to_have_text("16 <i>thing</i>s selected")
    with page.expect_download() as download:
        page.locator("#save").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    shown = [text.replace("\ud800", "\ufffd") for text in HOSTILE]
    assert rows[0] == ["name", "row", "column", HOSTILE[1], "<b>", ""]
    assert [row[0] for row in rows[1:]] == shown
    assert [row[4] for row in rows[1:]] == shown[::-1]


def test_the_policy_stops_what_would_get_through(browser, hostile):
    """Even a script that is put into the page does not run, and nothing remote is asked for."""
    page = browser.new_page()
    asked, refused = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: refused.append((request.url, request.failure)))
    page.goto(hostile.as_uri())
    page.locator('html[data-ready="yes"]').wait_for(state="attached")
    page.evaluate(
        """() => {
          const holder = document.createElement("div");
          holder.innerHTML = `
            <img src="https://nowhere.invalid/x.png" onerror="document.title='taken'">
            <iframe src="https://nowhere.invalid/"></iframe><style>body{display:none}</style>
            <a id="bad" href="javascript:document.title='taken'">x</a>`;
          document.body.append(holder);
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken'";
          document.body.append(script);
          document.getElementById("bad").click();
        }"""
    )
    page.wait_for_timeout(300)
    assert page.title() == HOSTILE[2]
    assert page.locator("header").is_visible()
    remote = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert dict.fromkeys(remote, "csp") == dict(refused)
    page.close()
