"""The page of `unshuffle serve` in a browser: what people do there, and what comes of it."""

import base64
import csv
import json
import re
import signal
import zipfile

import numpy as np
import pytest
from PIL import Image
from tests.web.conftest import Server, write_photos
from tests.web.pages import COLORS, REFUSED, Shown, write_colors

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

N = len(COLORS)  # 24
OUTSIDE = -2
MARK = (0x0F, 0x69, 0x48)  # color of rings
DEFAULTS = {
    "shape": "rectangle",
    "rows": None,
    "columns": None,
    "features": ["color"],
    "quality": "fast",
}


@pytest.fixture(scope="module")
def house(browser, tmp_path_factory):
    """One server for tests that change the wall only: 24 pictures and a file that is none."""
    home = tmp_path_factory.mktemp("house")
    folder = write_colors(home / "colors")
    (folder / "broken.jpg").write_text("no picture")
    server = Server(folder, "--port", "0", home=home).open()
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def open_wall(open_page, house):
    """Opens the page on a wall on which nothing was changed."""

    def open_it(**options):
        house.settle()
        wall = house.get("/api/wall")
        if wall["out"]:
            house.post("/api/put-back", items=[])
        if wall["frozen"]:
            house.post("/api/unfreeze", items=[])
        house.post("/api/settings", **DEFAULTS)
        house.settle()
        shown = Shown(open_page(house.address, **options), house)
        shown.settle()
        return shown

    return open_it


def faked(shown, **parts):
    """Let the page hear of a state that the server does not have."""
    state = {**shown.server.state(), **parts}
    stream = f"event: state\ndata: {json.dumps(state)}\n\n"
    kind = "text/event-stream"
    shown.page.route("**/api/events", lambda route: route.fulfill(body=stream, content_type=kind))
    shown.page.route("**/api/state", lambda route: route.fulfill(json=state))
    shown.page.reload()
    shown.page.locator('html[data-ready="yes"]').wait_for(state="attached")


def test_300_pictures_are_opened_moved_undone_and_exported(open_page, serve, tmp_path):
    server = serve(write_photos(tmp_path / "photos", 300))
    shown = Shown(open_page(server.address), server)
    page = shown.page
    assert "token" not in page.url
    state = shown.settle()
    assert state["wall"]["nPlaced"] == 300
    expect(page.locator("#count")).to_have_text("300 pictures")
    expect(page.locator("html")).to_have_attribute("data-pictures", "300")

    before = server.grid()
    item, target = int(before[2, 3]), 5 * before.shape[1] + 8
    with shown.change("move"):
        shown.drag(shown.place(shown.cell_of(item)), shown.place(target))
    after = server.grid()
    assert after[5, 8] == item
    assert server.get("/api/wall")["frozen"] == [item]
    assert sorted(after.ravel()) == sorted(before.ravel())
    assert (after != before).any()

    with shown.change("arrange"):
        page.locator("#again").click()
    assert server.grid()[5, 8] == item

    with shown.change("undo"):
        page.locator("#undo").click()
    np.testing.assert_array_equal(server.grid(), after)
    expect(page.locator("#undo")).to_have_attribute("title", re.compile("Undo moving"))
    with shown.change("undo"):
        page.keyboard.press("Control+z")
    np.testing.assert_array_equal(server.grid(), before)
    with shown.change("redo"):
        page.keyboard.press("Control+Shift+z")
    np.testing.assert_array_equal(server.grid(), after)

    page.reload()
    page.locator('html[data-ready="yes"]').wait_for(state="attached")
    shown.settle()
    np.testing.assert_array_equal(server.grid(), after)
    assert server.get("/api/wall")["frozen"] == [item]
    expect(page.locator("#wall-facts")).to_contain_text("frozen1")
    check_exports(open_page, shown, tmp_path, after)


def check_exports(open_page, shown, folder, grid):
    """Each file is downloaded by itself and holds the wall."""
    page, names = shown.page, [f"{i:03}.jpg" for i in range(300)]
    saved = {}
    for form in ("csv", "png", "page"):
        page.locator("#show-export").click()
        with page.expect_download() as download:
            page.locator(f"[data-format={form}]").click()
        saved[form] = folder / download.value.suggested_filename
        download.value.save_as(saved[form])
    page.locator("#show-export").click()
    expect(page.locator("#download-list a")).to_have_count(3)

    with open(saved["csv"], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = np.full(grid.shape, -1)
    for row in rows:
        found[int(row["row"]), int(row["column"])] = names.index(row["name"].rpartition("/")[2])
    np.testing.assert_array_equal(found, grid)
    with Image.open(saved["png"]) as image:
        side = image.width / grid.shape[1]
        assert side == pytest.approx(image.height / grid.shape[0], rel=0.02)
    path = saved["page"]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder / "wall")
        path = folder / "wall" / "index.html"
    exported = open_page(path)
    expect(exported.locator("#count")).to_have_text("300 pictures")


def test_pictures_are_drawn_where_the_server_has_them(open_wall):
    shown = open_wall()
    grid = shown.server.grid().ravel()
    places = [shown.place(cell) for cell in range(N)]
    np.testing.assert_allclose(shown.colors(places), np.array(COLORS)[grid], atol=10)
    for dark in ("dark", "light"):
        shown.page.emulate_media(color_scheme=dark)
        np.testing.assert_allclose(shown.colors(places), np.array(COLORS)[grid], atol=10)


def test_names_appear_below_the_mouse(open_wall):
    shown = open_wall()
    shown.page.mouse.move(*shown.place(shown.cell_of(7)))
    expect(shown.page.locator("#label")).to_have_text("07.png")
    shown.page.mouse.move(5, 5)
    expect(shown.page.locator("#label")).to_be_hidden()


def test_a_whole_wall_stays_whole_when_a_picture_at_its_edge_is_opened(open_wall):
    shown = open_wall(width=390)
    grid = shown.server.grid()
    shown.page.mouse.click(*shown.place(0))
    expect(shown.page.locator("#name")).to_have_text(f"{grid[0, 0]:02}.png")
    assert all(shown.shows(item, cell) for cell, item in enumerate(grid.ravel()))


def test_a_click_shows_details_and_rings_the_look_alikes_beside_bright_pictures(open_wall):
    shown = open_wall()
    page = shown.page
    page.mouse.click(*shown.place(shown.cell_of(4)))
    expect(page.locator("#name")).to_have_text("04.png")
    expect(page.locator("#near button")).to_have_count(8)
    expect(page.locator("#frame img")).to_have_attribute("alt", "04.png")
    place = "row {}, column {}".format(*(np.argwhere(shown.server.grid() == 4)[0] + 1))
    expect(page.locator("#facts dd")).to_have_text(place)
    alike = shown.server.get("/api/alike/4")["alike"]
    grid = shown.server.grid().ravel()
    places = np.array([shown.place(cell) for cell in range(N)])
    colors = shown.colors(places)
    np.testing.assert_allclose(colors, np.array(COLORS)[grid], atol=10)  # all are bright
    half = (places[1] - places[0])[0] / 2
    off = np.abs(shown.colors(places - (half, 0), reach=3) - MARK).max(axis=2).min(axis=1)
    ringed = off <= 20  # or the one on the left is
    assert set(grid[ringed].tolist()) >= {4, *alike}
    assert not ringed.all()
    first = page.locator("#near button").first
    expect(first).to_have_attribute("title", f"{alike[0]:02}.png")
    first.click()
    expect(page.locator("#name")).to_have_text(f"{alike[0]:02}.png")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()


def test_a_double_click_shows_a_picture_large_and_arrows_lead_to_its_neighbors(open_wall):
    shown = open_wall()
    page, grid = shown.page, shown.server.grid()
    page.mouse.dblclick(*shown.place(0))
    expect(page.locator("#large")).to_be_visible()
    expect(page.locator("#large-name")).to_have_text(f"{grid[0, 0]:02}.png")
    picture = page.locator("#large-frame img")
    for key, item in (("ArrowRight", grid[0, 1]), ("ArrowDown", grid[1, 1])):
        page.keyboard.press(key)
        expect(picture).to_have_attribute("alt", f"{item:02}.png")
    assert picture.evaluate("(image) => image.naturalWidth") == 90
    page.keyboard.press("Escape")
    expect(page.locator("#large")).to_be_hidden()
    expect(page.locator("#name")).to_have_text(f"{grid[1, 1]:02}.png")


def test_a_dropped_picture_is_there_before_the_server_answers(open_wall):
    shown = open_wall()
    held = []
    shown.page.route("**/api/move", lambda route: held.append(route))
    item, cell = int(shown.server.grid().ravel()[0]), N - 1
    there = int(shown.server.grid().ravel()[cell])
    shown.drag(shown.place(0), shown.place(cell))
    expect(shown.page.locator("#said")).to_contain_text("is frozen")
    assert shown.shows(item, cell)
    assert shown.shows(there, 0)
    rows, columns = shown.server.grid().shape
    asked = {"item": item, "cell": cell, "rows": rows, "columns": columns}
    assert json.loads(held[0].request.post_data) == asked
    with shown.change("move"):
        held[0].continue_()
    assert shown.cell_of(item) == cell


def test_what_the_server_refuses_goes_back_and_says_why(open_wall):
    shown = open_wall(forgiven=[REFUSED])
    answer = {"error": {"message": "The wall has another shape by now.", "field": None}}
    shown.page.route("**/api/move", lambda route: route.fulfill(status=409, json=answer))
    item = int(shown.server.grid().ravel()[0])
    shown.drag(shown.place(0), shown.place(9))
    alert = shown.page.get_by_role("alert").filter(has_text="another shape")
    expect(alert).to_be_visible()
    shown.settle()
    assert shown.shows(item, 0)
    alert.get_by_role("button").click()
    expect(alert).to_have_count(0)


def test_a_picture_is_put_back_by_escape_and_outside_the_wall(open_wall):
    shown = open_wall()
    before = shown.server.grid()
    version = shown.server.state()["wall"]["version"]
    shown.drag(shown.place(0), shown.place(9), drop=False)
    shown.page.keyboard.press("Escape")
    shown.page.mouse.up()
    assert "back in its place" in shown.said()
    box = shown.page.locator("#stage").bounding_box()
    shown.drag(shown.place(0), (box["x"] + 6, box["y"] + 40))
    assert "back in its place" in shown.said()
    np.testing.assert_array_equal(shown.server.grid(), before)
    assert shown.server.state()["wall"]["version"] == version


@pytest.mark.parametrize("how", ["mode", "space", "middle", "empty"])
def test_the_wall_itself_is_moved(open_wall, how):
    shown = open_wall()
    page, grid = shown.page, shown.server.grid().ravel()
    start = np.array(shown.place(0))
    way = np.array((40, 30))
    if how == "mode":
        page.locator("#mode-move").click()
    elif how == "space":
        page.locator("#wall").focus()
        page.keyboard.down(" ")
    elif how == "empty":
        box = page.locator("#stage").bounding_box()
        start = np.array((box["x"] + box["width"] / 2, box["y"] + 8))
    page.mouse.move(*start)
    page.mouse.down(button="middle" if how == "middle" else "left")
    page.mouse.move(*(start + way / 2))
    page.mouse.move(*(start + way), steps=2)
    page.mouse.up(button="middle" if how == "middle" else "left")
    page.keyboard.up(" ")
    page.mouse.move(2, 2)
    moved = np.array(shown.place(9)) + way
    np.testing.assert_allclose(shown.colors([moved])[0], COLORS[grid[9]], atol=10)
    assert shown.server.state()["wall"]["nFrozen"] == 0
    page.locator("#fit").click()
    assert shown.shows(grid[9], 9)


def test_a_finger_moves_the_wall_and_after_a_while_a_picture(open_wall):
    shown = open_wall(width=390, height=844, touch=True)
    session = shown.page.context.new_cdp_session(shown.page)

    def touch(kind, *places):
        points = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    grid = shown.server.grid().ravel()
    start, end = shown.place(0), shown.place(9)
    touch("touchStart", start)
    expect(shown.page.locator("#wall")).to_have_class(re.compile("carrying"))
    touch("touchMove", ((start[0] + end[0]) / 2, end[1]))
    touch("touchMove", end)
    with shown.change("move"):
        touch("touchEnd")
    assert shown.cell_of(grid[0]) == 9
    grid = shown.server.grid().ravel()
    touch("touchStart", start)
    for k in range(1, 5):
        touch("touchMove", (start[0] + 8 * k, start[1] + 5 * k))
    touch("touchEnd")
    x, y = shown.place(5)
    np.testing.assert_allclose(shown.colors([(x + 32, y + 20)])[0], COLORS[grid[5]], atol=10)
    np.testing.assert_array_equal(shown.server.grid().ravel(), grid)


def test_pictures_are_frozen_released_left_out_and_put_back(open_wall):
    shown = open_wall()
    page, server = shown.page, shown.server
    page.mouse.click(*shown.place(0))
    item = int(page.locator("#name").inner_text()[:2])
    with shown.change("freeze"):
        page.get_by_role("button", name="Freeze", exact=True).click()
    assert server.get("/api/wall")["frozen"] == [item]
    with shown.change("unfreeze"):
        page.get_by_role("button", name="Unfreeze", exact=True).click()
    assert server.get("/api/wall")["frozen"] == []
    with shown.change("leave-out"):
        page.get_by_role("button", name="Leave out").click()
    expect(page.locator("#panel")).to_be_hidden()
    assert server.get("/api/wall")["out"] == [item]
    expect(page.locator("#count")).to_have_text(f"{N - 1} pictures")
    expect(page.locator("#left-out-title")).to_have_text("Left out (1)")
    with shown.change("put-back"):
        page.get_by_role("button", name=f"Put back {item:02}.png").click()
    assert server.get("/api/wall")["out"] == []
    expect(page.locator("#left-out")).to_be_hidden()
    with shown.change("undo"):
        page.locator("#undo").click()
    assert server.get("/api/wall")["out"] == [item]
    with shown.change("redo"):
        page.locator("#redo").click()
    assert server.get("/api/wall")["out"] == []


def test_settings_are_applied_at_once(open_wall):
    shown = open_wall()
    page, server = shown.page, shown.server
    page.locator("#rows").fill("4")
    with shown.change("settings"):
        page.keyboard.press("Enter")
    assert server.grid().shape == (4, 6)
    with shown.change("settings"):
        page.get_by_text("Wraparound").click()
    assert server.state()["wall"]["wrap"]
    with shown.change("settings"):
        page.get_by_label("Texture").check()
    with shown.change("settings"):
        page.get_by_text("Best", exact=True).click()
    settings = server.state()["settings"]
    assert settings["features"] == ["color", "texture"]
    assert settings["quality"] == "best"
    page.get_by_text("Letters", exact=True).first.click()
    expect(page.locator("#letters")).to_be_focused()
    page.keyboard.type("HI")
    with shown.change("settings"):
        page.keyboard.press("Tab")
    grid = server.grid()
    assert (grid == OUTSIDE).any()
    assert (grid >= 0).sum() == N
    with shown.change("undo"):
        page.locator("#undo").click()
    expect(page.locator('input[value="torus"]')).to_be_checked()


def test_rows_and_columns_wait_until_they_are_used(open_wall):
    shown = open_wall()
    page = shown.page
    before, version = shown.server.grid(), shown.server.state()["wall"]["version"]
    use = page.locator("#use-size")
    expect(use).to_be_hidden()
    page.locator("#rows").fill("2")
    page.keyboard.press("Tab")
    expect(page.locator("#columns")).to_be_focused()
    expect(page.locator("#columns")).to_have_attribute("placeholder", "auto (12)")
    expect(use).to_have_text("Use 2 rows, 12 columns")
    page.mouse.click(*shown.place(7))  # at work elsewhere
    page.keyboard.press("Escape")
    assert shown.settle()["wall"]["version"] == version
    np.testing.assert_array_equal(shown.server.grid(), before)
    page.locator("#rows").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#rows")).to_have_value("")
    expect(use).to_be_hidden()
    page.locator("#rows").fill("3")
    page.locator("#columns").fill("9")
    with shown.change("settings"):
        use.click()
    assert shown.server.grid().shape == (3, 9)
    expect(use).to_be_hidden()
    page.locator("#rows").fill("")
    page.locator("#columns").fill("")
    expect(use).to_have_text("Choose rows and columns for me")
    with shown.change("settings"):
        page.keyboard.press("Enter")
    np.testing.assert_array_equal(shown.server.grid().shape, before.shape)


def test_a_message_about_a_new_shape_hides_no_picture_and_ends_with_its_step(open_wall):
    shown = open_wall()
    page, server = shown.page, shown.server
    notice = page.locator("#notices .notice")
    grid = server.grid()
    kept, released = int(grid[0, 0]), int(grid[-1, 0])

    def flatten():
        page.locator("#rows").fill("2")
        with shown.change("settings"):
            page.keyboard.press("Enter")
        expect(notice).to_contain_text("1 of 2 frozen pictures had no cell in the new shape")

    server.post("/api/freeze", items=[kept, released])
    shown.settle()
    flatten()
    assert server.get("/api/wall")["frozen"] == [kept]
    assert server.grid()[0, 0] == kept
    box, wall = notice.bounding_box(), page.locator("#wall").bounding_box()
    assert box["y"] + box["height"] <= wall["y"]
    with shown.change("undo"):
        notice.get_by_role("button", name="Undo").click()
    expect(notice).to_have_count(0)
    assert sorted(server.get("/api/wall")["frozen"]) == sorted([kept, released])
    flatten()
    server.post("/api/freeze", items=[released])  # undo would now undo this
    shown.settle()
    expect(notice).to_have_count(0)
    page.reload()
    shown.settle()
    expect(notice).to_have_count(0)


def test_the_settings_call_the_score_what_it_is_and_features_by_their_names(open_wall):
    shown = open_wall()
    facts = shown.page.locator("#wall-facts")
    assert facts.locator("dt").all_inner_texts() == ["size", "neighbors", "frozen"]
    expect(facts.locator("dd").nth(1)).to_have_text(re.compile(r"^similarity \d+ of 100$"))
    names = shown.page.locator('input[name="feature"]').evaluate_all(
        "(boxes) => boxes.map((box) => [box.value, box.getAttribute('aria-label')])"
    )
    assert all(value in label.lower() for value, label in names), names


def test_a_mask_is_the_shape_of_the_wall(open_wall, tmp_path):
    shown = open_wall()
    mask = np.full((40, 40), 255, np.uint8)
    mask[:, :20] = mask[30:] = 0
    Image.fromarray(mask).save(tmp_path / "corner.png")
    shown.page.get_by_text("Silhouette").click()
    with shown.page.expect_file_chooser() as chooser:
        shown.page.get_by_role("button", name="Choose a picture").click()
    with shown.change("mask"):
        chooser.value.set_files(tmp_path / "corner.png")
    expect(shown.page.locator("#mask-name")).to_have_text("corner.png")
    assert shown.server.grid()[0, -1] == OUTSIDE
    with shown.change("settings"):
        shown.page.get_by_label("Fill the light part").check()
    assert (shown.server.grid() != OUTSIDE).all()


def test_errors_are_beside_the_field(open_wall):
    shown = open_wall(forgiven=[REFUSED])
    page = shown.page
    rows, columns = page.locator("#rows"), page.locator("#columns")
    rows.fill("3")
    columns.fill("2")
    page.keyboard.press("Enter")
    error = page.locator("#error-rows")
    expect(error).to_contain_text("3 rows and 2 columns have 6 cells for 24 pictures")
    expect(rows).to_have_attribute("aria-invalid", "true")
    expect(rows).to_have_value("3")
    columns.fill("8")
    with shown.change("settings"):
        page.keyboard.press("Enter")
    expect(error).to_be_hidden()
    expect(rows).not_to_have_attribute("aria-invalid", "true")
    assert shown.server.grid().shape == (3, 8)
    columns.fill("many")
    page.keyboard.press("Enter")
    expect(page.locator("#error-columns")).to_contain_text("whole number")
    color = page.get_by_role("checkbox", name="Color", exact=True)
    color.uncheck()
    expect(page.locator("#error-features")).to_contain_text("at least one")
    color.check()
    expect(page.locator("#error-features")).to_be_hidden()


def test_files_that_could_not_be_read_are_listed_with_the_reason(open_wall):
    shown = open_wall()
    shown.page.get_by_role("button", name="1 file could not be read").click()
    expect(shown.page.locator("#problem-list dt")).to_have_text(["broken.jpg"])
    expect(shown.page.locator("#problem-list dd")).to_contain_text("not a picture")
    shown.page.keyboard.press("Escape")
    expect(shown.page.locator("#problems")).to_be_hidden()


def test_two_tabs_follow_each_other(open_wall, open_page):
    one = open_wall()
    other = Shown(open_page(one.server.address), one.server)
    item = int(one.server.grid().ravel()[0])
    with one.change("move"):
        one.drag(one.place(0), one.place(9))
    other.settle()
    assert other.shows(item, 9)
    with other.change("undo"):
        other.page.locator("#undo").click()
    expect(other.page.locator("#said")).to_contain_text("Undone: moving")
    one.settle()
    assert one.shows(item, 0)
    expect(one.page.locator("#redo")).to_have_attribute("title", re.compile("Redo moving"))


def test_pictures_glide_to_their_cells(open_wall):
    shown = open_wall(motion=True)
    page = shown.page
    page.mouse.move(*shown.place(0))
    page.mouse.down()
    page.mouse.move(*shown.place(9), steps=4)
    with shown.change("move"):
        page.mouse.up()
        expect(page.locator("html")).to_have_attribute("data-settled", "no")
    page.mouse.move(2, 2)
    grid = shown.server.grid().ravel()
    places = [shown.place(cell) for cell in range(N)]
    np.testing.assert_allclose(shown.colors(places), np.array(COLORS)[grid], atol=10)


def test_work_is_shown_with_its_progress_and_can_be_canceled(open_wall):
    shown = open_wall()
    page = shown.page
    job = {"id": "j99", "kind": "reading", "words": "Reading", "done": 1200, "total": 3000}
    asked = []
    page.route(
        "**/api/jobs/*", lambda route: (asked.append(route.request), route.fulfill(json={}))
    )
    faked(shown, jobs=[{**job, "fraction": 0.4, "left": "5 s left"}])
    card = page.locator("#work .card")
    expect(card).to_contain_text("Reading 1,200 of 3,000 pictures")
    expect(card).to_contain_text("5 s left")
    assert card.get_by_role("progressbar").evaluate("(bar) => bar.value") == 0.4
    with page.expect_response("**/api/jobs/*"):
        card.get_by_role("button").click()
    assert [(each.method, each.url.rpartition("/")[2]) for each in asked] == [("DELETE", "j99")]


def test_pictures_appear_in_place_as_they_are_read(open_wall):
    shown = open_wall()
    pictures = shown.server.state()["pictures"]
    bits = base64.b64encode(bytes([255, 3, 0])).decode()
    faked(shown, pictures={**pictures, "nReady": 10, "ready": bits})
    expect(shown.page.locator("html")).to_have_attribute("data-pictures", "10")
    grid = shown.server.grid().ravel()
    colors = shown.colors([shown.place(cell) for cell in range(N)])
    shows = np.abs(colors - np.array(COLORS)[grid]).max(axis=1) <= 10
    assert sorted(grid[shows].tolist()) == list(range(10))


def test_content_that_cannot_be_compared_is_disabled_with_the_reason(open_wall):
    shown = open_wall()
    faked(shown, content={"available": False, "why": "Content needs another package."})
    expect(shown.page.get_by_label("Content")).to_be_disabled()
    expect(shown.page.get_by_text("Content needs another package.")).to_be_visible()


def test_a_notice_that_was_dismissed_stays_away(open_wall):
    shown = open_wall()
    notice = {"id": 3, "kind": "error", "message": "The disk is full."}
    faked(shown, notice=notice)
    card = shown.page.get_by_role("alert").filter(has_text="The disk is full.")
    expect(card).to_be_visible()
    card.get_by_role("button", name="Dismiss").click()
    expect(card).to_have_count(0)
    faked(shown, notice=notice)
    expect(card).to_have_count(0)


def test_changes_that_are_not_saved_are_said_until_they_are(open_wall):
    shown = open_wall()
    banner = shown.page.get_by_role("alert").filter(has_text="could not be saved")
    expect(banner).to_have_count(0)
    faked(shown, unsaved="The wall could not be saved: No space left on device.")
    expect(banner).to_contain_text(
        "No space left on device. Changes are lost when the server stops"
    )
    expect(shown.page.get_by_role("button", name="Dismiss")).to_have_count(0)
    shown.page.unroute_all()
    shown.page.reload()
    shown.settle()
    expect(banner).to_have_count(0)


def test_a_hidden_tab_does_not_listen(open_wall):
    shown = open_wall()
    page = shown.page
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    cell = shown.cell_of(0)
    rows, columns = shown.server.grid().shape
    shown.server.post("/api/move", item=0, cell=(cell + 1) % N, rows=rows, columns=columns)
    shown.server.settle()
    assert page.locator("html").get_attribute("data-settled") == "yes"
    expect(page.locator("#wall-facts")).to_contain_text("frozennone")
    with page.expect_request("**/api/events"):
        page.evaluate(hide, False)
    shown.settle()
    expect(page.locator("#wall-facts")).to_contain_text("frozen1")


def test_pictures_are_added_by_choosing_and_dropping(open_page, serve, tmp_path):
    server = serve()
    shown = Shown(open_page(server.address), server)
    page = shown.page
    colors = write_colors(tmp_path / "colors", 12)
    chosen = [colors / f"{i:02}.png" for i in range(10)]
    for name, content in {"broken.png": b"no picture", "notes.txt": b"words"}.items():
        (tmp_path / name).write_bytes(content)
    with open(tmp_path / "huge.png", "wb") as file:
        file.truncate(server.state()["limits"]["uploadBytes"] + 1)
    expect(page.get_by_role("heading", name="Drop pictures here")).to_be_visible()
    expect(page.locator("#modes")).to_be_hidden()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose pictures").click()
    others = [tmp_path / name for name in ("broken.png", "notes.txt", "huge.png")]
    chooser.value.set_files([*chosen, *others])
    expect(page.get_by_role("button", name="3 files could not be read")).to_be_visible()
    shown.settle()
    assert server.state()["wall"]["nPlaced"] == 10
    expect(page.locator("#welcome")).to_be_hidden()
    page.get_by_role("button", name="3 files could not be read").click()
    reasons = page.locator("#problem-list")
    for words in ("not a picture", "too large: 67 MB; the limit is 67 MB", "notes.txt"):
        expect(reasons).to_contain_text(words)
    page.keyboard.press("Escape")

    content = [list((colors / f"{i:02}.png").read_bytes()) for i in (10, 11)]
    page.evaluate(
        """(content) => {
          const dropped = new DataTransfer();
          content.forEach((bytes, k) => {
            const options = { type: "image/png" };
            dropped.items.add(new File([new Uint8Array(bytes)], `dropped ${k}.png`, options));
          });
          const options = { dataTransfer: dropped, bubbles: true, cancelable: true };
          document.body.dispatchEvent(new DragEvent("dragover", options));
          document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        content,
    )
    expect(page.locator("#count")).to_have_text("12 pictures")
    shown.settle()
    names = server.get("/api/pictures")["names"]
    assert sorted(names[-2:]) == ["dropped 0.png", "dropped 1.png"]
    assert page.locator("#dropping").is_hidden()

    page.locator("#clear").click()
    page.locator("#confirm-no").click()
    assert server.state()["pictures"]["total"] == 13
    page.locator("#clear").click()
    page.locator("#confirm-yes").click()
    expect(page.get_by_role("heading", name="Drop pictures here")).to_be_visible()
    assert server.state()["pictures"]["total"] == 0

    # The page forgets the names of before, and learns new ones.
    others = write_photos(tmp_path / "others", 2)
    page.locator("#pictures-input").set_input_files(sorted(others.iterdir()))
    expect(page.locator("#count")).to_have_text("2 pictures")
    shown.settle()
    page.mouse.click(*shown.place(0))
    names = server.get("/api/pictures")["names"]  # in the order in which they arrived
    assert sorted(names) == ["000.jpg", "001.jpg"]
    expect(page.locator("#name")).to_have_text(names[server.grid()[0, 0]])


def test_the_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(
    open_page, serve, photos
):
    gone = ["console: Failed to load resource", "not loaded: http://127.0.0.1"]
    server = serve(photos)
    shown = Shown(open_page(server.address, forgiven=gone), server)
    shown.settle()
    before = server.grid()
    server.stop(signal.SIGKILL)
    banner = shown.page.locator("#lost")
    expect(banner).to_contain_text("The server has stopped")
    again = serve(photos, port=server.port)
    expect(banner).to_contain_text("was started again")
    tab = shown.page.context.new_page()  # as people do: the cookie is then right for both
    tab.goto(again.address)
    expect(banner).to_be_hidden()
    shown.server = again
    shown.settle()
    np.testing.assert_array_equal(again.grid(), before)
    expect(shown.page.locator("#count")).to_have_text("30 pictures")
