"""The Collage view in a browser: templates, settings, exports, keys, screen readers, phones."""

import json
import re
import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image
from tests.web.conftest import Server
from tests.web.pages import (
    CELL,
    COLORS,
    FOOT,
    MARGIN,
    MOST,
    REFUSED,
    Shown,
    cells_of,
    write_colors,
)
from tests.web.test_page_access import NAMED, accessible, all_reachable, axe_complaints, focused

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

N = len(COLORS)  # 24
DEFAULTS = {"smoothness": 0.3, "repeat": None, "detail": 3, "neighbors": "kernel"}
HEADER = ["show-settings", "undo", "redo", "add", "show-export", "show-help"]
SETTINGS = [
    *("close-settings", "choose-template", "open-picker", "smoothness", "rows", "repeat"),
    *("detail", "neighbors"),
]
STAGE = ["wall", "show-collage", "show-template", "out-zoom", "in-zoom", "fit"]


class Studied(Shown):
    """A page of a collage, and the server behind it."""

    def state(self):
        return self.server.get("/api/collage/state")

    def settle(self):
        """Wait until the server is done and the page shows it."""
        end = time.monotonic() + 60
        while True:
            state = rest(self.server)
            self.page.locator('html[data-settled="yes"]').wait_for(state="attached")
            shown = self.page.locator("html").get_attribute("data-collage")
            if shown == str(state["collageVersion"]):
                return state
            assert time.monotonic() < end, (shown, state)

    @contextmanager
    def change(self, name):
        with self.page.expect_response(f"**/api/collage/{name}*"):
            yield
        self.settle()

    def grid(self):
        return cells_of(self.server.get("/api/collage/cells"))

    def place(self, cell):
        rows, columns = self.grid().shape
        box = self.page.locator("#stage").bounding_box()
        across = (box["width"] - 2 * MARGIN) / (CELL * columns)
        down = (box["height"] - 2 * MARGIN - FOOT) / (CELL * rows)
        side = CELL * min(across, down, MOST)
        row, column = divmod(cell, columns)
        left = box["x"] + box["width"] / 2 - side * columns / 2
        top = box["y"] + (box["height"] - FOOT) / 2 - side * rows / 2
        return left + side * (column + 0.5), top + side * (row + 0.5)

    def shows_collage(self):
        """Whether all cells on the screen have the colors of their pictures."""
        grid = self.grid()
        found = self.colors([self.place(cell) for cell in range(grid.size)])
        return np.abs(found - np.array(COLORS)[grid.ravel()]).max() <= 14


def at(server):
    """Address of the view."""
    return server.address.replace("/?", "/collage?")


def rest(server):
    """Wait until nothing is under way, and return the state of the collage."""
    end = time.monotonic() + 60
    while True:
        server.settle()
        state = server.get("/api/collage/state")
        if state["settled"] and not state["jobs"]:
            return state
        assert time.monotonic() < end, state


def write_template(folder):
    """Red on the left, blue on the right."""
    pixels = np.zeros((60, 90, 3), dtype=np.uint8)
    pixels[:, :45], pixels[:, 45:] = COLORS[17], COLORS[1]
    Image.fromarray(pixels).save(folder / "halves.png")
    return folder / "halves.png"


def post(server, name, **body):
    return server.post(f"/api/collage/{name}", **body)


@pytest.fixture(scope="module")
def house(browser, tmp_path_factory):
    """A server with 24 pictures and a template."""
    home = tmp_path_factory.mktemp("house")
    server = Server(write_colors(home / "colors"), "--port", "0", home=home).open()
    server.settle()
    server.template = write_template(home)
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def open_collage(open_page, house):
    """Opens the page on a collage with the usual settings and template."""

    def open_it(rows=6, **options):
        state = house.get("/api/collage/state")
        if state["template"] is None or state["template"]["name"] != "halves.png":
            status, _, _ = house.ask(
                "PUT", "/api/collage/template?name=halves.png", house.template.read_bytes(),
                {"Content-Type": "application/octet-stream"},
            )  # fmt: skip
            assert status == 200
        post(house, "settings", **DEFAULTS, rows=rows)
        rest(house)
        shown = Studied(open_page(at(house), **options), house)
        shown.settle()
        return shown

    return open_it


@pytest.fixture
def open_empty(open_page, serve, tmp_path):
    """Opens the page without pictures, or with them but without a template."""

    def open_it(*folder, **options):
        server = serve(*folder)
        server.settle()
        shown = Studied(open_page(at(server), **options), server)
        shown.settle()
        return shown

    return open_it


def drop(page, *paths):
    """Drop files anywhere on the page."""
    page.evaluate(
        """(files) => {
          const dropped = new DataTransfer();
          for (const { name, bytes } of files) {
            dropped.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
          }
          const options = { dataTransfer: dropped, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent("dragover", options));
          document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        [{"name": path.name, "bytes": list(path.read_bytes())} for path in paths],
    )


def test_pictures_and_a_template_are_dropped_and_become_a_collage(open_empty, tmp_path):
    shown = open_empty()
    page = shown.page
    assert "token" not in page.url
    expect(page.locator("#welcome-title")).to_have_text("Drop the pictures to draw with")
    expect(page.locator("#or-arrange a")).to_have_attribute("href", "/")
    expect(page.locator("#show-export")).to_be_disabled()
    expect(page.locator("#open-picker")).to_be_disabled()
    drop(page, *sorted(write_colors(tmp_path / "colors").iterdir()))
    expect(page.locator("#welcome-title")).to_have_text("Drop the picture to draw")
    expect(page.locator("#count")).to_have_text(f"{N} pictures")
    with page.expect_response("**/api/collage/template*"):
        drop(page, write_template(tmp_path))
    expect(page.locator("#welcome")).to_be_hidden()
    shown.settle()
    assert shown.state()["template"]["name"] == "halves.png"
    assert "00.png" in shown.server.get("/api/pictures")["names"]
    expect(page.locator("#template-picture")).to_have_attribute("alt", "The template, halves.png")
    assert page.locator("#template-picture").evaluate("(image) => image.naturalWidth") == 90
    expect(page.locator("#likeness")).to_contain_text("use each picture up to")
    expect(page.locator("#facts")).to_contain_text(f"of {N} pictures")
    assert page.locator("#dropping").is_hidden()


def test_the_collage_is_drawn_where_the_server_has_it(open_collage):
    shown = open_collage()
    assert shown.grid().shape == (6, 9)
    assert shown.shows_collage()
    shown.page.emulate_media(color_scheme="dark")
    assert shown.shows_collage()


def test_the_template_is_chosen_as_a_file(open_collage, tmp_path):
    shown = open_collage()
    page = shown.page
    Image.open(shown.server.template).rotate(180).save(tmp_path / "turned.png")
    before = shown.grid()
    with page.expect_file_chooser() as chooser:
        page.locator("#choose-template").click()
    with shown.change("template"):
        chooser.value.set_files(str(tmp_path / "turned.png"))
    expect(page.locator("#template-name")).to_have_text("turned.png")
    assert (shown.grid() != before).any()
    assert shown.shows_collage()
    with shown.change("undo"):
        page.locator("#undo").click()
    expect(page.locator("#template-name")).to_have_text("halves.png")
    np.testing.assert_array_equal(shown.grid(), before)


def test_what_is_no_picture_is_refused_beside_the_template(open_page, open_collage, tmp_path):
    shown = open_collage(forgiven=[REFUSED])
    page, error = shown.page, shown.page.locator("#error-template")
    (tmp_path / "notes.txt").write_text("words")
    page.locator("#template-input").set_input_files(str(tmp_path / "notes.txt"))
    expect(error).to_have_text("notes.txt is not a picture.")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with shown.change("template"):
        drop(page, tmp_path / "broken.png")
    expect(error).to_contain_text("broken.png cannot be read as a picture")
    expect(page.locator("#said")).to_contain_text("broken.png cannot be read")
    expect(page.locator("#template-name")).to_have_text("halves.png")
    with shown.change("template"):
        drop(page, shown.server.template)
    expect(error).to_be_hidden()


def test_what_goes_wrong_is_told_while_the_settings_are_closed(open_collage, tmp_path):
    shown = open_collage(width=390, height=844, touch=True, forgiven=[REFUSED])
    page = shown.page
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with shown.change("template"):
        drop(page, tmp_path / "broken.png")
    expect(page.get_by_role("alert")).to_contain_text("broken.png cannot be read as a picture")


def test_a_picture_of_the_wall_becomes_the_template_by_keyboard(open_collage):
    shown = open_collage()
    page = shown.page
    page.locator("#open-picker").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Which picture is to be drawn?")).to_be_visible()
    buttons = page.locator("#picker-pictures button")
    expect(buttons).to_have_count(N)
    page.keyboard.press("Escape")
    expect(page.locator("#picker")).to_be_hidden()
    assert focused(page) == "open-picker"
    page.keyboard.press("Enter")
    buttons.nth(5).focus()
    with shown.change("template"):
        page.keyboard.press("Enter")
    expect(page.locator("#template-name")).to_have_text("05.png")
    assert (shown.grid() == 5).sum() == shown.state()["collage"]["mostUsed"]
    assert focused(page) == "open-picker"


def test_the_slider_changes_the_preview_by_keyboard_and_undo_takes_it_back(open_collage):
    shown = open_collage()
    page, slider = shown.page, shown.page.locator("#smoothness")
    before, version = shown.grid(), shown.state()["collageVersion"]
    slider.focus()
    with shown.change("settings"):
        page.keyboard.press("End")
    state = shown.state()
    assert state["settings"]["smoothness"] == 1
    assert state["collageVersion"] > version
    assert (shown.grid() != before).any()
    assert shown.shows_collage()
    expect(slider).to_have_attribute("aria-valuetext", "100 percent")
    expect(page.locator("#said")).to_contain_text("Collage of 6 rows and 9 columns")
    expect(page.locator("#undo")).to_have_attribute("title", "Undo changing smoothness (Ctrl+Z)")
    with shown.change("undo"):
        page.keyboard.press("Control+z")
    np.testing.assert_array_equal(shown.grid(), before)
    expect(slider).to_have_value("30")
    with shown.change("redo"):
        page.keyboard.press("Control+Shift+z")
    expect(slider).to_have_value("100")


def test_dragging_the_slider_is_one_step(open_collage):
    shown = open_collage()
    page = shown.page
    box = page.locator("#smoothness").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    with shown.change("settings"):
        page.mouse.move(box["x"] + 0.98 * box["width"], middle, steps=12)
        page.mouse.up()
    expect(page.locator("#smoothness")).to_have_value("100")
    assert shown.settle()["settings"]["smoothness"] == 1
    with shown.change("undo"):
        page.locator("#undo").click()
    assert shown.state()["settings"]["smoothness"] == 0.3


def test_rows_repeats_detail_and_edges_are_set(open_collage):
    shown = open_collage()
    page = shown.page
    with shown.change("settings"):
        page.locator("#rows").fill("4")
        page.keyboard.press("Tab")
    assert shown.grid().shape == (4, 6)
    assert shown.shows_collage()
    with shown.change("settings"):
        page.locator("#repeat").fill("1")
        page.keyboard.press("Tab")
    assert np.bincount(shown.grid().ravel()).max() == 1
    expect(page.locator("#facts")).to_contain_text("once")
    with shown.change("settings"):
        page.keyboard.press("Home")  # the focus is on the detail
    assert shown.state()["settings"]["detail"] == 1
    with shown.change("settings"):
        page.locator("#neighbors").check()
    assert shown.state()["settings"]["neighbors"] == "laplacian"
    with shown.change("settings"):
        page.locator("#rows").fill("")
        page.keyboard.press("Tab")
    assert shown.state()["settings"]["rows"] is None
    expect(page.locator("#rows")).to_have_attribute("placeholder", re.compile(r"auto \(\d+\)"))


def test_what_is_refused_is_said_beside_its_field(open_collage):
    shown = open_collage(forgiven=[REFUSED])
    page, rows, error = shown.page, shown.page.locator("#rows"), shown.page.locator("#error-rows")
    before = shown.grid()
    for typed, words in (("9999999", "whole number of rows"), ("500", "at most 6,400")):
        with shown.change("settings"):
            rows.fill(typed)
            page.keyboard.press("Enter")
        expect(error).to_contain_text(words)
        expect(rows).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#said")).to_contain_text(words)
    np.testing.assert_array_equal(shown.grid(), before)
    with shown.change("settings"):
        rows.fill("5")
        page.keyboard.press("Enter")
    expect(error).to_be_hidden()
    assert shown.grid().shape[0] == 5


def test_the_print_has_the_pixels_that_the_menu_shows(open_collage, tmp_path):
    shown = open_collage()
    page = shown.page
    page.locator("#show-export").click()
    size = page.locator("#print-size")
    expect(size).to_have_text("4,961 x 3,307 pixels, 28.0 cm high; 551 pixels a picture")
    page.locator("#unit").select_option("in")
    expect(page.locator("#width")).to_have_value("16.5")
    page.locator("#width").fill("5")
    page.locator("#dpi").fill("200")
    expect(size).to_have_text("1,000 x 667 pixels, 3.3 in high; 111 pixels a picture")
    for form, kind in (("png", "PNG"), ("jpg", "JPEG")):
        if page.locator("#export").is_hidden():
            page.locator("#show-export").click()
        with page.expect_download() as download:
            page.locator(f"[data-format={form}]").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        with Image.open(path) as image:
            assert (image.format, image.size) == (kind, (1000, 667))
            assert image.info["dpi"] == pytest.approx((200, 200), abs=0.02)
            pixels = np.asarray(image.convert("RGB")).astype(int)
        middles = pixels[55::111, 55::111][:6, :9]
        np.testing.assert_allclose(middles, np.array(COLORS)[shown.grid()], atol=14)
    page.locator("#show-export").click()
    expect(page.locator("#download-list a")).to_have_text(["collage.jpg", "collage.png"])


def test_a_print_that_is_too_large_is_explained_and_not_offered(open_collage):
    shown = open_collage(forgiven=[REFUSED])
    page = shown.page
    page.locator("#show-export").click()
    page.locator("#width").fill("400")
    expect(page.locator("#print-size")).to_have_text(re.compile("at most 200 million are written"))
    for form in ("png", "jpg"):
        expect(page.locator(f"[data-format={form}]")).to_be_disabled()
    expect(page.locator("[data-format=csv]")).to_be_enabled()
    page.locator("#width").fill("ten")
    expect(page.locator("#print-size")).to_have_text("Enter a width and a DPI.")
    page.locator("#width").fill("42")
    page.locator("#dpi").fill("20")
    with page.expect_response("**/api/collage/export"):
        page.locator("[data-format=png]").click()
    expect(page.locator("#error-dpi")).to_have_text("Enter 72 to 600 pixels per inch.")
    assert focused(page) == "dpi"


def test_the_mouse_and_the_keyboard_name_and_enlarge_pictures(open_collage):
    shown = open_collage()
    page, grid, label = shown.page, shown.grid(), shown.page.locator("#label")
    page.mouse.move(*shown.place(13))
    expect(label).to_have_text(f"{grid[1, 4]:02}.png")
    page.mouse.move(5, 5)
    expect(label).to_be_hidden()
    page.mouse.click(*shown.place(0))
    expect(page.locator("#said")).to_have_text(f"{grid[0, 0]:02}.png, row 1, column 1")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#said")).to_have_text(f"{grid[1, 1]:02}.png, row 2, column 2")
    page.keyboard.press("Enter")
    expect(page.locator("#large-name")).to_have_text(f"{grid[1, 1]:02}.png")
    page.keyboard.press("Escape")
    expect(page.locator("#large")).to_be_hidden()
    assert focused(page) == "wall"


def test_the_template_is_shown_in_place_of_the_collage(open_collage):
    shown = open_collage()
    page = shown.page
    page.keyboard.press("t")
    expect(page.locator("#show-template")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#said")).to_have_text("The template is shown")
    found = shown.colors([shown.place(0), shown.place(8)])
    np.testing.assert_allclose(found, [COLORS[17], COLORS[1]], atol=14)
    page.locator("#show-collage").click()
    assert shown.shows_collage()


def test_zoomed_in_the_pictures_are_sharp_and_fit_goes_back(open_collage):
    shown = open_collage(rows=20)
    page, grid = shown.page, shown.grid()
    place = shown.place(34)
    page.mouse.move(*place)
    with page.expect_response("**/api/picture/*"):
        for _ in range(4):
            page.mouse.wheel(0, -400)
    expect(page.locator("#label")).to_have_text(f"{grid[1, 4]:02}.png")
    assert np.abs(shown.colors([place])[0] - np.array(COLORS[grid[1, 4]])).max() <= 14
    page.locator("#fit").click()
    assert shown.shows_collage()


def test_other_tabs_follow_and_a_reload_changes_nothing(open_page, open_collage):
    shown = open_collage()
    other = Studied(open_page(at(shown.server)), shown.server)
    with shown.change("settings"):
        shown.page.locator("#rows").fill("3")
        shown.page.keyboard.press("Enter")
    other.settle()
    expect(other.page.locator("#rows")).to_have_value("3")
    other.page.reload()
    other.settle()
    assert other.shows_collage()


def test_names_are_text_whatever_they_hold(open_empty, tmp_path):
    name = "<img src=x onerror=alert(1)>&amp;.png"
    folder = write_colors(tmp_path / "colors", 6)
    (folder / "00.png").rename(folder / name)
    shown = open_empty(folder)
    page = shown.page
    template = tmp_path / "<b>bold<b>.png"
    write_template(tmp_path).rename(template)
    with shown.change("template"):
        drop(page, template)
    expect(page.locator("#template-name")).to_have_text("<b>bold<b>.png")
    page.locator("#open-picker").click()
    expect(page.get_by_role("button", name=name)).to_be_visible()
    assert page.locator("img[src=x], #settings b").count() == 0


def test_a_lost_server_is_told_and_found_again(open_page, serve, tmp_path):
    folder = write_colors(tmp_path / "colors", 8)
    server = serve(folder)
    server.settle()
    shown = Studied(open_page(at(server), forgiven=["console: Failed", "not loaded"]), server)
    with shown.change("template"):
        drop(shown.page, write_template(tmp_path))
    before = shown.grid()
    server.stop()
    banner = shown.page.locator("#lost")
    expect(banner).to_contain_text("The server has stopped")
    again = serve(folder, port=server.port)
    expect(banner).to_contain_text("was started again")
    tab = shown.page.context.new_page()
    tab.goto(at(again))
    expect(banner).to_be_hidden()
    shown.server = again
    assert shown.settle()["template"]["name"] == "halves.png"
    np.testing.assert_array_equal(shown.grid(), before)


def tab_through(page, most=60):
    page.locator("#show-settings").focus()
    found = []
    while page.evaluate("document.activeElement !== document.body") and len(found) < most:
        found.append(focused(page))
        page.keyboard.press("Tab")
    return found


def test_every_control_is_reached_by_tab_in_order(open_collage):
    shown = open_collage()
    page = shown.page
    state = shown.settle()  # other tests share the server and leave steps to undo or to redo
    off = [step for step in ("undo", "redo") if state[step] is None]
    header = [name for name in HEADER if name not in off]
    assert tab_through(page) == [*header, *SETTINGS, *STAGE]
    page.locator("#show-export").press("Enter")
    found = []
    for _ in range(6):
        page.keyboard.press("Tab")
        found.append(page.evaluate("document.activeElement.dataset.format") or focused(page))
    assert found == ["width", "unit", "dpi", "png", "jpg", "csv"]
    page.keyboard.press("Escape")
    expect(page.locator("#export")).to_be_hidden()
    assert focused(page) == "show-export"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="How to make a collage")).to_be_visible()


def test_focus_is_visible(open_collage):
    page = open_collage().page
    page.locator("#show-settings").focus()
    while page.evaluate("document.activeElement !== document.body"):
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert outline == "2px", focused(page)
        page.keyboard.press("Tab")


def test_screen_readers_hear_a_name_for_everything(open_collage):
    shown = open_collage()
    shown.page.locator("#show-export").click()
    found = accessible(shown.page)
    named = {*NAMED, "slider", "combobox"}
    assert not [role for role, name in found if role in named and not name.strip()]
    expected = {
        *(("slider", "Smoothness"), ("slider", "Detail"), ("textbox", "Rows")),
        *(("textbox", "Repeats: how often a picture may be used"), ("checkbox", "Stop at edges")),
        *(("button", "Choose a picture"), ("button", "Use a picture of the wall")),
        *(("application", "Collage of 6 rows and 9 columns"), ("group", "What is shown")),
        *(("image", "The template, halves.png"), ("textbox", "Width"), ("combobox", "Unit")),
        *(("textbox", "DPI, pixels per inch"), ("group", "Size in print")),
    }
    assert expected <= set(found)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(open_collage, width, dark):
    phone = width < 500
    shown = open_collage(width=width, height=844 if phone else 800, dark=dark, touch=phone)
    page = shown.page
    assert axe_complaints(page) == []
    page.locator("#show-export").click()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    page.locator("#show-help").click()
    assert axe_complaints(page) == []
    page.keyboard.press("Escape")
    if phone:
        page.locator("#show-settings").click()
        assert axe_complaints(page) == []
    page.locator("#open-picker").click()
    expect(page.locator("#picker-pictures button")).to_have_count(N)
    assert axe_complaints(page) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_before_there_is_a_collage(open_empty, tmp_path, dark):
    for folder in ((), (write_colors(tmp_path / "colors", 3),)):
        shown = open_empty(*folder, dark=dark)
        expect(shown.page.locator("#zone")).to_be_visible()
        assert axe_complaints(shown.page) == []


@pytest.mark.parametrize(("width", "height"), [(360, 640), (390, 844)])
def test_a_phone_has_room_for_everything(open_collage, width, height):
    shown = open_collage(width=width, height=height, touch=True)
    page = shown.page
    all_reachable(page)
    assert page.locator("#wall").bounding_box()["height"] > 0.5 * height
    page.touchscreen.tap(*shown.place(4))
    expect(page.locator("#label")).to_have_text(f"{shown.grid()[0, 4]:02}.png")
    page.locator("#show-settings").tap()
    settings = page.locator("#settings")
    assert settings.evaluate("(it) => it.scrollWidth <= it.clientWidth")
    for name in SETTINGS:
        page.locator(f"#{name}").scroll_into_view_if_needed()
        page.locator(f"#{name}").click(trial=True)
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).to_be_hidden()
    assert focused(page) == "show-settings"
    page.locator("#show-export").tap()
    expect(page.locator("#print-size")).to_be_visible()
    box = page.locator("#export").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_addresses_are_described(house):
    described = house.get("/api/openapi.json")["paths"]
    mine = {path for path in described if path.startswith("/api/collage/")}
    assert {"/api/collage/state", "/api/collage/template", "/api/collage/export/{name}"} <= mine
    assert set(described["/api/collage/template"]) == {"get", "put", "post"}
    json.dumps(described, allow_nan=False)
