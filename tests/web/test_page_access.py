"""The page by keyboard alone, for screen readers, in the dark and on a phone."""

import signal

import pytest
from tests.web.conftest import Server
from tests.web.pages import Shown, write_colors

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

N = 12
HEADER = ["show-settings", "show-problems", "add", "show-export", "show-help"]
SETTINGS = [
    *("close-settings", "rectangle", "rows", "columns", "color", "texture", "words", "content"),
    *("balanced", "again", "unfreeze-all", "add-folder", "clear"),
]
STAGE = ["wall", "mode-carry", "mode-move", "out-zoom", "in-zoom", "fit"]
DETAILS = ["close", "larger", "freeze", "leave-out", *["look-alike"] * 8]
NAMED = {
    *("button", "textbox", "checkbox", "radio", "link", "application", "image", "dialog", "group"),
    *("complementary", "progressbar", "heading", "alert"),
}


@pytest.fixture(scope="module")
def house(browser, tmp_path_factory):
    """A wall of 12 pictures, one of them frozen, and a file that could not be read."""
    home = tmp_path_factory.mktemp("house")
    folder = write_colors(home / "colors", N)
    (folder / "broken.jpg").write_text("no picture")
    server = Server(folder, "--port", "0", home=home).open()
    server.settle()
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def empty_house(browser, tmp_path_factory):
    """A server without pictures."""
    server = Server("--port", "0", home=tmp_path_factory.mktemp("empty")).open()
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def open_wall(open_page, house):
    """Opens the page on a wall whose first picture is frozen."""

    def open_it(**options):
        house.settle()
        wall = house.get("/api/wall")
        if wall["out"]:
            house.post("/api/put-back", items=[])
        if wall["frozen"] != [0]:
            house.post("/api/unfreeze", items=[]) if wall["frozen"] else None
            house.post("/api/freeze", items=[0])
        house.settle()
        shown = Shown(open_page(house.address, **options), house)
        shown.settle()
        return shown

    return open_it


def focused(page):
    """What has the focus, by its id, its value, or its kind."""
    return page.evaluate(
        """() => {
          const { activeElement: it } = document;
          if (it.classList.contains("near")) return "look-alike";
          return it.id || it.value || it.textContent.trim();
        }"""
    )


def tab_through(page, most=60):
    """What the Tab key leads to, in order."""
    page.locator("#show-settings").focus()
    found = []
    while page.evaluate("document.activeElement !== document.body") and len(found) < most:
        found.append(focused(page))
        page.keyboard.press("Tab")
    return found


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def words_at(shown, cell):
    item = int(shown.server.grid().ravel()[cell])
    row, column = divmod(cell, shown.server.grid().shape[1])
    return f"{item:02}.png, row {row + 1}, column {column + 1}"


def test_every_control_is_reached_by_tab_in_order(open_wall):
    shown = open_wall()
    undo = ["undo"] if shown.server.state()["undo"] is not None else []
    found = tab_through(shown.page)
    assert found == [*HEADER[:2], *undo, *HEADER[2:], *SETTINGS, *STAGE]


def test_details_and_the_export_menu_are_reached_by_tab_too(open_wall):
    shown = open_wall()
    page = shown.page
    page.mouse.click(*shown.place(0))
    expect(page.locator("#near button")).to_have_count(8)
    assert tab_through(page)[-len(DETAILS) :] == DETAILS
    page.locator("#show-export").press("Enter")
    forms = []
    for _ in range(3):
        page.keyboard.press("Tab")
        forms.append(page.evaluate("document.activeElement.dataset.format"))
    assert forms == ["png", "page", "csv"]
    page.keyboard.press("Escape")
    expect(page.locator("#export")).to_be_hidden()
    assert focused(page) == "show-export"


def test_the_empty_page_is_reached_by_tab(open_page, empty_house):
    page = open_page(empty_house.address)
    found = tab_through(page)
    assert [each for each in found if each.startswith("choose")] == [
        "choose-pictures",
        "choose-folder",
    ]


def test_focus_is_visible(open_wall):
    shown = open_wall()
    page = shown.page
    page.locator("#show-settings").focus()
    seen = 0
    while page.evaluate("document.activeElement !== document.body"):
        outline = page.evaluate(
            """() => {
              const it = document.activeElement;
              const shown = it.type === "radio" ? it.closest("label") : it;
              return getComputedStyle(shown).outlineWidth;
            }"""
        )
        assert outline == "2px", focused(page)
        page.keyboard.press("Tab")
        seen += 1
    assert seen > 20


def test_the_keyboard_walks_opens_enlarges_and_closes(open_wall):
    shown = open_wall()
    page = shown.page
    page.locator("#wall").focus()
    page.keyboard.press("ArrowRight")  # the middle one comes first
    columns = shown.server.grid().shape[1]
    press(page, *["ArrowUp"] * 4, *["ArrowLeft"] * 5)
    expect(page.locator("#said")).to_have_text(
        words_at(shown, 0) + (", frozen" if shown.cell_of(0) == 0 else "")
    )
    page.keyboard.press("ArrowRight")
    expect(page.locator("#said")).to_contain_text(words_at(shown, 1))
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_have_text(words_at(shown, 1)[:6])
    page.keyboard.press("ArrowDown")
    expect(page.locator("#name")).to_have_text(words_at(shown, 1 + columns)[:6])
    page.keyboard.press("Enter")
    expect(page.locator("#large-name")).to_have_text(words_at(shown, 1 + columns)[:6])
    press(page, "Escape", "Escape")
    expect(page.locator("#panel")).to_be_hidden()
    assert focused(page) == "wall"
    page.keyboard.press("l")
    expect(page.locator("#large")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#large-name")).to_have_text(words_at(shown, 1)[:6])
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Mouse and keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_a_picture_is_carried_frozen_and_left_out_by_keyboard(open_wall):
    shown = open_wall()
    page, server = shown.page, shown.server
    page.locator("#wall").focus()
    press(page, "ArrowRight", *["ArrowUp"] * 4, *["ArrowLeft"] * 5)
    grid = server.grid()
    item, columns = int(grid[0, 0]), grid.shape[1]
    name = f"{item:02}.png"
    said = page.locator("#said")
    press(page, "m")
    expect(said).to_contain_text(f"{name} is picked up")
    press(page, "ArrowDown", "ArrowRight")
    expect(said).to_have_text(f"row 2, column 2, {grid[1, 1]:02}.png")
    press(page, "Escape")
    expect(said).to_have_text(f"{name} is back in its place")
    assert focused(page) == "wall"
    press(page, "m", "ArrowDown", "ArrowRight")
    with shown.change("move"):
        press(page, "Enter")
    assert shown.cell_of(item) == 1 + columns
    assert item in server.get("/api/wall")["frozen"]
    with shown.change("unfreeze"):
        press(page, "f")
    assert item not in server.get("/api/wall")["frozen"]
    with shown.change("freeze"):
        press(page, "f")
    assert item in server.get("/api/wall")["frozen"]
    with shown.change("leave-out"):
        press(page, "Delete")
    assert server.get("/api/wall")["out"] == [item]
    assert focused(page) == "wall"
    with shown.change("undo"):
        press(page, "Control+z")
    assert server.get("/api/wall")["out"] == []
    with shown.change("redo"):
        press(page, "Control+y")
    assert server.get("/api/wall")["out"] == [item]


def test_keys_in_a_text_field_are_text(open_wall):
    shown = open_wall()
    page = shown.page
    version = shown.server.state()["version"]
    page.locator("#rows").focus()
    page.keyboard.type("fml?")
    press(page, "Delete", "Control+z")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator("#rows").fill("")
    page.locator("#columns").focus()
    assert shown.server.state()["version"] == version


def accessible(page):
    """Role and name of what a screen reader meets."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored")
    ]


def test_screen_readers_hear_a_name_for_everything(open_wall):
    shown = open_wall()
    page = shown.page
    page.mouse.click(*shown.place(1))
    expect(page.locator("#near button")).to_have_count(8)
    page.locator("#show-export").click()
    found = accessible(page)
    assert not [role for role, name in found if role in NAMED and not name.strip()]
    rows, columns = shown.server.grid().shape
    expected = {
        *(("button", "Settings"), ("button", "Add pictures"), ("button", "Export")),
        *(("button", "Help"), ("group", "History"), ("button", "Redo")),
        *(("complementary", "Settings"), ("complementary", "Details")),
        *(("group", "Shape of the wall"), ("radio", "Rectangle"), ("radio", "Letters")),
        *(("textbox", "Rows"), ("textbox", "Columns"), ("checkbox", "Color")),
        *(("checkbox", "Content"), ("button", "Arrange again"), ("button", "Unfreeze all")),
        *(("application", f"Wall of {N} pictures in {rows} rows and {columns} columns"),),
        *(("group", "What dragging does"), ("button", "Move pictures"), ("button", "Move wall")),
        *(("group", "Zoom"), ("button", "Zoom in"), ("button", "Zoom out"), ("button", "Fit")),
        *(("button", "Close details"), ("button", "View larger"), ("button", "Leave out")),
        ("button", "1 file could not be read"),
    }
    assert expected <= set(found)


def axe_complaints(page):
    """What axe-core finds to be serious or worse."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
    )
    found = axe.Axe().run(page).response["violations"]
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(open_wall, width, dark):
    phone = width < 500
    shown = open_wall(width=width, height=844 if phone else 800, dark=dark, touch=phone)
    page = shown.page
    assert axe_complaints(page) == []
    page.locator("#wall").focus()
    press(page, "ArrowRight", "Enter")
    expect(page.locator("#near button")).to_have_count(8)
    assert axe_complaints(page) == []
    page.locator("#show-export").click()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    for opener, dialog in (
        ("larger", "large"),
        ("show-problems", "problems"),
        ("show-help", "help"),
    ):
        page.locator(f"#{opener}").click()
        expect(page.locator(f"#{dialog}")).to_be_visible()
        assert axe_complaints(page) == [], dialog
        page.keyboard.press("Escape")
    if phone:
        page.locator("#show-settings").click()
    page.locator("#clear").click()
    assert axe_complaints(page) == []
    page.locator("#confirm-no").click()
    assert axe_complaints(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_axe_finds_nothing_serious_on_the_empty_page(open_page, empty_house, width, dark):
    page = open_page(empty_house.address, width=width, dark=dark)
    expect(page.locator("#zone")).to_be_visible()
    assert axe_complaints(page) == []


def all_reachable(page):
    """Each control is inside the window, or can be scrolled there, with nothing above."""
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for each in page.locator("button, input, a").all():
        if not each.is_visible() or each.is_disabled():
            continue
        hit = each.evaluate(
            """(each) => {
              each.scrollIntoView({ block: "nearest" });
              const shown = each.type === "radio" ? each.closest("label") : each;
              const box = shown.getBoundingClientRect();
              const top = document.elementFromPoint(
                box.left + box.width / 2, box.top + box.height / 2);
              const inside = box.left >= -1 && box.right <= innerWidth + 1;
              return inside && (shown === top || shown.contains(top) || top?.contains(shown));
            }"""
        )
        assert hit, each.evaluate("(each) => each.id || each.outerHTML")


@pytest.mark.parametrize(("width", "height"), [(320, 568), (390, 844)])
def test_a_phone_has_room_for_everything(open_wall, width, height):
    shown = open_wall(width=width, height=height, touch=True)
    page = shown.page
    all_reachable(page)
    assert page.locator("#wall").bounding_box()["height"] > 0.5 * height
    page.touchscreen.tap(*shown.place(5))
    expect(page.locator("#near button")).to_have_count(8)
    all_reachable(page)
    page.locator("#close").tap()
    page.locator("#show-settings").tap()
    expect(page.locator("#settings")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).to_be_hidden()
    assert focused(page) == "show-settings"


@pytest.mark.parametrize("width", [360, 390])
def test_the_header_of_a_phone_is_two_rows_in_which_the_name_can_be_read(open_wall, width):
    page = open_wall(width=width, height=844, touch=True).page
    views, heading, tools = (
        page.locator(each).bounding_box() for each in ("nav", ".heading", "header .tools")
    )
    assert heading["y"] >= views["y"] + views["height"]
    assert abs(heading["y"] - tools["y"]) <= 10  # in one row
    for each in ("#title", "#count"):
        assert page.locator(each).evaluate("(each) => each.scrollWidth <= each.clientWidth + 1")
    expect(page.get_by_role("button", name="Add pictures")).to_be_visible()


def test_names_are_text_whatever_they_hold(open_page, serve, tmp_path):
    name = "<img src=x onerror=alert(1)>&amp;'\".png"
    folder = write_colors(tmp_path / "colors", 3)
    (folder / "00.png").rename(folder / name)
    (folder / "<b>.jpg").write_text("no picture")
    server = serve(folder)
    shown = Shown(open_page(server.address), server)
    shown.settle()
    page = shown.page
    names = server.get("/api/pictures")["names"]
    page.mouse.click(*shown.place(shown.cell_of(names.index(name))))
    expect(page.locator("#name")).to_have_text(name)
    page.get_by_role("button", name="1 file could not be read").click()
    expect(page.locator("#problem-list dt")).to_have_text(["<b>.jpg"])
    for tag in ("img[src=x]", "b:not(#export b)"):
        assert page.locator(tag).count() == 0
