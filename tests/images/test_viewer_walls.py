"""Walls of other kinds in a browser: large, sparse, of colors, of one picture, with odd names."""

import re

import numpy as np
import pytest
from tests.images.walls import Screen

from unshuffle.images import write_page

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)
FORMS = ("wall.html", "wall")


def opened_at(path):
    return path / "index.html" if path.is_dir() else path


@pytest.fixture(params=FORMS)
def path(request, tmp_path):
    return tmp_path / request.param


def plain(n, side=32):
    colors = np.random.default_rng(0).integers(40, 216, size=(n, 1, 1, 3), dtype=np.uint8)
    return colors.repeat(side, 1).repeat(side, 2)


def test_only_sheets_in_sight_are_loaded(open_page, tmp_path):
    images = plain(1)
    grid = np.zeros((300, 300), int)
    write_page(tmp_path / "wall", images, grid, ["same"])
    page = open_page(tmp_path / "wall" / "index.html")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    page.locator('html[data-ready="yes"]').wait_for(state="attached")
    n_sheets = len(list((tmp_path / "wall").rglob("sheets/*/*.jpg")))
    shown = [url for url in asked if "/sheets/" in url]
    assert 1 <= len(shown) < n_sheets / 10
    for _ in range(12):
        page.keyboard.press("+")
    page.locator("#wall").focus()
    for _ in range(25):
        page.keyboard.press("+")
        page.wait_for_timeout(30)
    page.wait_for_timeout(300)
    finest = [url for url in asked if "/sheets/0/" in url]
    assert 1 <= len(finest) <= 40  # of 169
    assert len(asked) == len(set(asked))


def test_sparse_walls_become_ready_and_stay_quiet_at_every_zoom(open_page, path):
    grid = np.full((120, 120), -1)
    grid[3, 4], grid[110, 100] = 0, 1
    write_page(path, plain(2), grid, ["a", "b"])
    page = open_page(opened_at(path))
    expect(page.locator("#waiting")).to_be_hidden()
    page.mouse.move(640, 400)
    for _ in range(20):
        page.mouse.wheel(0, -240)
        page.wait_for_timeout(30)
    page.wait_for_timeout(300)
    page.locator("#search").fill("b")
    page.locator("#search").press("Enter")
    expect(page.locator("#said")).to_have_text("b, row 111, column 101")


def test_a_wall_of_nothing_says_so(open_page, path):
    write_page(path, plain(1), [[-1, -1]], ["a"])
    page = open_page(opened_at(path))
    expect(page.locator("#count")).to_have_text("0 pictures")
    for key in ("Enter", "ArrowRight", " ", "Shift+ArrowDown", "0"):
        page.locator("#wall").press(key)
    page.locator("#search").fill("a")
    page.locator("#search").press("Enter")
    expect(page.locator("#panel")).to_be_hidden()


def test_one_picture_is_a_wall(open_page, path):
    write_page(path, plain(1, side=200), [[0]], ["only"])
    page = open_page(opened_at(path))
    expect(page.locator("#count")).to_have_text("1 picture")
    page.locator("#wall").press("Enter")
    expect(page.locator("#name")).to_have_text("only")


def test_plain_colors_are_shown_exactly(open_page, path):
    colors = np.random.default_rng(0).integers(256, size=(40 * 60, 3), dtype=np.uint8)
    grid = np.arange(2400).reshape(40, 60)
    names = ["#{:02x}{:02x}{:02x}".format(*color) for color in colors.tolist()]
    write_page(path, colors[:, None, None, :], grid, names, noun="color")
    page = open_page(opened_at(path))
    expect(page.locator("#count")).to_have_text("2,400 colors")
    seen = Screen(page)
    page.locator("#search").fill(names[777])
    page.locator("#search").press("Enter")
    page.locator("#search").press("Escape")
    expect(page.locator("#search")).to_have_value("")
    page.locator("#wall").press("Enter")
    expect(page.locator("#name")).to_have_text(names[777])
    page.wait_for_timeout(200)
    box = page.locator("#frame canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    np.testing.assert_array_equal(seen.color(middle), colors[777])
    exact = (np.abs(seen.shot() - colors[777]).max(axis=2) == 0).sum()
    assert exact > 1000


def test_the_closest_zoom_shows_the_larger_picture(open_page, path):
    fine = np.zeros((240, 241, 3), np.uint8)
    fine[:, ::8] = fine[:, 1::8] = fine[:, 2::8] = fine[:, 3::8] = 255  # stripes of four pixels
    images = [fine[:, k:] for k in range(12)]
    write_page(path, images, np.arange(12).reshape(3, 4), [str(k) for k in range(12)], tile=32)
    page = open_page(opened_at(path))
    page.locator("#wall").focus()
    for _ in range(30):
        page.keyboard.press("+")
        page.wait_for_timeout(20)
    page.wait_for_timeout(400)
    row = Screen(page).shot()[400, 300:1000, 0]
    assert (row > 220).mean() > 0.3  # sheets of 32 pixels would be gray
    assert (row < 35).mean() > 0.3


def test_pictures_of_any_shape_are_shown_whole_when_opened(open_page, path):
    colors = [(200, 40, 40), (40, 40, 200)]
    images = [
        np.full((60, 400, 3), colors[0], np.uint8),
        np.full((400, 30, 3), colors[1], np.uint8),
    ]
    write_page(path, images, [[0, 1]], ["wide", "tall"])
    page = open_page(opened_at(path))
    for name, color, shape in zip(("wide", "tall"), colors, ((400, 60), (30, 400)), strict=True):
        page.evaluate(f"location.hash = '#picture={name}'")
        expect(page.locator("#frame img")).to_have_attribute("alt", name)
        page.wait_for_timeout(200)
        left = round(page.locator("#panel").bounding_box()["x"])
        down, across = np.nonzero(np.abs(Screen(page).shot()[:, left:] - color).max(axis=2) < 12)
        assert np.ptp(down) <= 0.53 * 800
        assert np.ptp(across) / np.ptp(down) == pytest.approx(shape[0] / shape[1], rel=0.1)


def test_equal_names_have_addresses_of_their_own(open_page, path):
    write_page(path, plain(3), [[0, 1, 2]], ["same", "same", "\udcff"])
    page = open_page(opened_at(path))
    wall = page.locator("#wall")
    wall.press("Enter")  # the middle one
    expect(page).to_have_url(re.compile("#item=1$"))
    wall.press("ArrowRight")
    expect(page).to_have_url(re.compile("#item=2$"))
    wall.press("ArrowLeft")
    wall.press("ArrowLeft")
    expect(page).to_have_url(re.compile("#picture=same$"))
    for anchor, column in (("picture=same", 1), ("item=1", 2), ("item=2", 3)):
        page = open_page(opened_at(path), anchor=anchor)
        expect(page.locator("#facts")).to_contain_text(f"row 1, column {column}")
    for wrong in ("item=3", "item=-1", "item=1e0", "picture=", "item="):
        page = open_page(opened_at(path), anchor=wrong)
        expect(page.locator("#panel")).to_be_hidden()


@pytest.mark.parametrize("name", ["50% & more #1?.png", "Ünï/😀.png", "a'b\"c\\d", "%41", " x "])
def test_addresses_hold_any_name(open_page, path, name):
    write_page(path, plain(2), [[1, 0]], ["other", name])
    page = open_page(opened_at(path))
    page.locator("#search").fill(name)
    page.locator("#search").press("Enter")
    page.locator("#wall").press("Enter")
    expect(page.locator("#name")).to_have_text(name.strip())
    again = open_page(opened_at(path), anchor=page.url.partition("#")[2])
    expect(again.locator("#name")).to_have_text(name.strip())


def test_labels_of_pictures_add_the_first_column_unless_it_is_their_folder(open_page, path):
    columns = {"what": ["a kettle", "sea"]}
    write_page(path, plain(2), [[0, 1]], ["1.png", "sea/2.png"], columns=columns)
    page = open_page(opened_at(path))
    page.locator("#wall").press("ArrowLeft")
    page.locator("#wall").press("ArrowLeft")
    expect(page.locator("#label")).to_have_text("1.png: a kettle")
    page.locator("#wall").press("ArrowRight")
    expect(page.locator("#label")).to_have_text("sea/2.png")


def test_an_item_in_several_cells_is_one_item(open_page, path):
    write_page(path, plain(2), [[0, 1, 0], [0, 0, 0]], ["often", "once"])
    page = open_page(opened_at(path))
    expect(page.locator("#count")).to_have_text("2 pictures")
    page.locator("#search").fill("often")
    expect(page.locator("#count")).to_have_text("1 of 2 pictures")


def test_labels_stand_on_their_regions_until_pictures_are_large(open_page, path):
    rows, columns = np.indices((20, 20))
    words = np.array([["north", "<b>east</b>"], ["south", ""]])[rows // 10, columns // 10]
    images = np.full((400, 200, 200, 3), (60, 120, 200), np.uint8)
    grid = np.arange(400).reshape(20, 20)
    names = [str(k) for k in range(400)]
    where = {"where": words.ravel().tolist()}
    write_page(path, images, grid, names, columns=where, labels="where")
    page = open_page(opened_at(path), width=1000, height=1000)
    box = page.locator("#stage").bounding_box()
    left, top = round(box["x"]), round(box["y"])
    width, height = round(box["width"]), round(box["height"])

    def written():
        """Whether there is ink in each quarter of the wall."""
        stage = Screen(page).shot()[top : top + height, left : left + width]
        ink = (stage.max(axis=2) < 60)[: height // 2 * 2, : width // 2 * 2]
        quarters = ink.reshape(2, height // 2, 2, width // 2).sum(axis=(1, 3))
        return (quarters > 40).tolist()

    assert written() == [[True, True], [True, False]]
    page.mouse.move(left + 0.3 * width, top + 0.3 * height)
    for _ in range(30):
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(20)
    page.mouse.move(3, 3)
    page.wait_for_timeout(200)
    assert written() == [[False, False], [False, False]]
    assert page.locator("b").count() == 0


@pytest.mark.parametrize("width", [390, 1000])
def test_labels_stay_apart_and_on_the_wall(open_page, path, width):
    rows, columns = np.indices((24, 24))
    words = np.array(
        ["far in the north", "a place in the east", "the coast", "a town in the west"]
    )
    kinds = words[(rows // 6 + columns // 6) % 4]
    images = np.full((576, 40, 40, 3), (60, 120, 200), np.uint8)
    names = [str(k) for k in range(576)]
    where = {"where": kinds.ravel().tolist()}
    grid = np.arange(576).reshape(24, 24)
    write_page(path, images, grid, names, columns=where, labels="where")
    page = open_page(opened_at(path), width=width, height=900)
    page.evaluate(
        """() => {
          window.written = [];
          const context = document.querySelector("#wall").getContext("2d");
          const write = context.strokeText.bind(context);
          context.strokeText = (text, x, y) => {
            const half = (context.measureText(text).width + context.lineWidth) / 2;
            const high = (parseFloat(context.font.split(" ")[1]) * 1.2 + context.lineWidth) / 2;
            window.written.push([x - half, y - high, x + half, y + high]);
            write(text, x, y);
          };
        }"""
    )
    stage = page.locator("#stage").bounding_box()
    right, bottom = stage["width"], stage["height"]
    page.locator("#wall").focus()
    n_seen = 0
    for key in ("0", "+", "+", "+", "+"):
        page.evaluate("() => { window.written = []; }")
        page.keyboard.press(key)
        page.wait_for_timeout(150)
        drawn = np.array(page.evaluate("() => window.written")).reshape(-1, 4)
        boxes = np.unique(drawn, axis=0)  # of all frames
        n_seen += len(boxes)
        side = min(right, bottom) - 48 if key == "0" else np.inf  # of the fitted wall
        edges = [max(0, (length - side) / 2) for length in (right, bottom)]
        assert (boxes[:, :2] >= edges).all()
        assert (boxes[:, 2:] <= np.array([right, bottom]) - edges).all()
        for k, (left, top, end, foot) in enumerate(boxes):
            others = np.delete(boxes, k, axis=0)
            across = (others[:, 0] < end) & (left < others[:, 2])
            assert not (across & (others[:, 1] < foot) & (top < others[:, 3])).any()
    assert n_seen > 4


def test_walls_whose_files_are_gone_say_so(browser, tmp_path):
    write_page(tmp_path / "wall", plain(4), [[0, 1], [2, 3]], list("abcd"))
    for each in (tmp_path / "wall").rglob("sheets/*/*.jpg"):
        each.unlink()
    page = browser.new_page()
    page.goto((tmp_path / "wall" / "index.html").as_uri())
    expect(page.locator("#waiting")).to_have_text(
        "The pictures cannot be found. Keep this page together with its folder."
    )
    for each in list((tmp_path / "wall").rglob("data/*")):
        each.unlink()
    page.reload()
    expect(page.locator("#waiting")).to_have_text(re.compile("cannot be found"))
    page.close()


@pytest.mark.parametrize("shape", [(1, 700), (700, 1)])
def test_long_walls_open_and_zoom(open_page, path, shape):
    write_page(path, plain(700), np.arange(700).reshape(shape), [f"item {k}" for k in range(700)])
    page = open_page(opened_at(path))
    page.locator("#search").fill("item 699")
    page.locator("#search").press("Enter")
    expect(page.locator("#said")).to_have_text(f"item 699, row {shape[0]}, column {shape[1]}")
    page.locator("#search").press("Escape")
    page.wait_for_timeout(300)
    shot = Screen(page).shot()
    assert (np.abs(shot - plain(700)[699, 0, 0]).max(axis=2) < 12).sum() > 400


@pytest.mark.parametrize("name", ["50% #1?", "a b&c", "Ünï 😀", "%41"])
def test_folders_of_any_name_open(open_page, tmp_path, name):
    write_page(tmp_path / name, plain(2, side=200), [[0, 1]], ["a", "b"])
    page = open_page(tmp_path / name / "index.html", anchor="picture=b")
    picture = page.locator("#frame img")
    assert picture.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 200
    page.locator("#close").click()
    expect(page).to_have_url(re.compile(r"index\.html$"))


def test_dense_screens_get_more_pixels(browser, path):
    write_page(path, plain(6, side=120), [[0, 1, 2], [3, 4, 5]], list("abcdef"))
    page = browser.new_page(device_scale_factor=2, viewport={"width": 700, "height": 600})
    page.goto(opened_at(path).as_uri())
    page.locator('html[data-ready="yes"]').wait_for(state="attached")
    box = page.locator("#wall").bounding_box()
    size = page.locator("#wall").evaluate("(each) => [each.width, each.height]")
    assert size == [round(2 * box["width"]), round(2 * box["height"])]
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - 40)
    expect(page.locator("#name")).to_have_text("b")
    page.close()


def test_the_wall_follows_the_size_of_the_window(open_page, path):
    write_page(path, plain(6), [[0, 1, 2], [3, 4, 5]], list("abcdef"))
    page = open_page(opened_at(path), width=1280)
    page.set_viewport_size({"width": 500, "height": 600})
    page.wait_for_timeout(200)
    box = page.locator("#wall").bounding_box()
    assert box["width"] == 500
    size = page.locator("#wall").evaluate("(each) => [each.width, each.height]")
    assert size == [round(box["width"]), round(box["height"])]
