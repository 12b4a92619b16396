"""Walls in a browser: looking, searching, filtering, selecting, opening."""

import csv
import re

import numpy as np
import pytest
from tests.images.walls import (
    COLORS,
    GRID,
    KINDS,
    LINKS,
    NAMES,
    NEIGHBORS,
    NOTES,
    NUMBERS,
    YEARS,
    N,
    Screen,
    cell_of,
)

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def page(open_page, wall):
    return open_page(wall)


@pytest.fixture
def seen(page):
    return Screen(page)


def items_of(kind):
    return {i for i in NUMBERS if KINDS[i] == kind}


def count(page, words):
    expect(page.locator("#count")).to_have_text(words)


def drag(page, *places, modifier=None):
    if modifier:
        page.keyboard.down(modifier)
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    if modifier:
        page.keyboard.up(modifier)


def saved(page):
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "selection.csv"
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rows_of(items):
    """Rows of the table that a selection is saved as, in the order of the wall."""
    rows = []
    for item in GRID.ravel().tolist():
        if item in items:
            row, column = cell_of(item)
            rows.append(
                {
                    "name": NAMES[item],
                    "row": str(row),
                    "column": str(column),
                    "kind": KINDS[item],
                    "year": YEARS[item],
                    "note": NOTES[item],
                }
            )
    return rows


def test_the_first_screen_shows_every_picture_in_its_cell(page, seen):
    assert page.title() == "Cats and others"
    count(page, "24 pictures")
    expect(page.locator("#waiting")).to_be_hidden()
    places = seen.places()
    cell = seen.zoom()
    corner = np.array(places[GRID[0, 0]])
    for item, place in places.items():
        row, column = cell_of(item)
        np.testing.assert_allclose((np.array(place) - corner) / cell, [column, row], atol=0.02)
    paper = seen.color((corner[0] + 4 * cell, corner[1]))  # the empty cell
    np.testing.assert_array_equal(paper, seen.color((5, seen.page.viewport_size["height"] - 60)))


def test_dragging_moves_the_wall_and_opens_nothing(page, seen):
    before = seen.place(0)
    drag(page, before, (before[0] + 60, before[1] - 40))
    np.testing.assert_allclose(seen.place(0), (before[0] + 60, before[1] - 40), atol=1.5)
    expect(page.locator("#panel")).to_be_hidden()


def test_the_wheel_zooms_at_the_pointer_and_fit_shows_all_again(page, seen):
    whole, before = seen.zoom(), seen.place(0)
    page.mouse.move(*before)
    page.mouse.wheel(0, 300)
    page.mouse.move(5, 300)  # the name would hide a part
    page.wait_for_timeout(100)
    smaller = seen.zoom()
    assert smaller < 0.8 * whole
    np.testing.assert_allclose(seen.place(0), before, atol=2)
    page.locator("#in").click()
    page.wait_for_timeout(100)
    assert seen.zoom() > 1.3 * smaller
    page.locator("#fit").click()
    page.wait_for_timeout(100)
    assert seen.zoom() == pytest.approx(whole, abs=1)


def test_a_pointer_over_a_picture_shows_its_name(page, seen):
    page.mouse.move(*seen.place(7))
    expect(page.locator("#label")).to_have_text(f"{NAMES[7]}: {KINDS[7]}")
    page.mouse.move(5, 300)
    expect(page.locator("#label")).to_be_hidden()


def test_search_by_name_dims_the_others(page, seen):
    places = seen.places()
    page.locator("#search").fill("DOGS/")
    count(page, "8 of 24 pictures")
    assert seen.bright(places) == items_of("dog")
    page.locator("#search").press("Escape")
    count(page, "24 pictures")
    assert seen.bright(places) == set(NUMBERS)


def test_search_by_a_column(page, seen):
    places = seen.places()
    page.locator("#search").fill("2007")
    count(page, "1 of 24 pictures")
    page.locator("#search-in").select_option(label="kind")
    count(page, "0 of 24 pictures")
    page.locator("#search-in").select_option(label="year")
    count(page, "1 of 24 pictures")
    page.locator("#search").fill("BEST")
    count(page, "0 of 24 pictures")
    page.locator("#search-in").select_option(label="everywhere")
    count(page, "1 of 24 pictures")
    assert len(seen.bright(places)) == 1


def test_enter_leads_from_one_found_picture_to_the_next(page):
    order = [i for i in GRID.ravel().tolist() if i >= 0 and KINDS[i] == "bird"]
    page.locator("#search").fill("bird")
    count(page, "8 of 24 pictures")
    for item in [*order, order[0]]:
        page.locator("#search").press("Enter")
        row, column = cell_of(item)
        place = f"row {row + 1}, column {column + 1}"
        expect(page.locator("#said")).to_have_text(f"{NAMES[item]}, {place}")
    page.locator("#previous").click()
    expect(page.locator("#said")).to_contain_text(NAMES[order[-1]])
    page.locator("#next").click()
    expect(page.locator("#said")).to_contain_text(NAMES[order[0]])


def test_shift_enter_begins_with_the_last_found_picture(page):
    page.locator("#search").fill("png")
    page.locator("#search").press("Shift+Enter")
    expect(page.locator("#said")).to_contain_text(NAMES[GRID[4, 4]])


def test_nothing_found_is_said_and_changes_nothing_else(page):
    page.locator("#search").fill("unicorn")
    count(page, "0 of 24 pictures")
    expect(page.locator("#said")).to_have_text("0 of 24 pictures")
    expect(page.locator("#steps")).to_be_hidden()
    page.locator("#search").press("Enter")
    expect(page.locator("#panel")).to_be_hidden()


def facet(page, heading):
    if page.locator("#filters").is_hidden():
        page.locator("#show-filters").click()
    part = page.locator("details").filter(has=page.locator("summary", has_text=heading))
    if part.get_attribute("open") is None:
        part.locator("summary").click()
    return part


def counts(part):
    expect(part.locator(".number").first).to_have_text(re.compile(r"\d"))
    lines = part.locator("label").all()
    return {
        line.locator(".value").inner_text(): int(line.locator(".number").inner_text())
        for line in lines
    }


def test_facets_count_and_dim(page, seen):
    kinds = facet(page, "kind")
    assert counts(kinds) == {"cat": 8, "dog": 8, "bird": 8}
    page.wait_for_timeout(100)
    places = seen.places()
    kinds.get_by_label("cat").check()
    count(page, "8 of 24 pictures")
    assert seen.bright(places) == items_of("cat")
    kinds.get_by_label("dog").check()
    count(page, "16 of 24 pictures")
    assert counts(kinds) == {"cat": 8, "dog": 8, "bird": 8}  # the others could be added
    kinds.get_by_label("cat").uncheck()
    count(page, "8 of 24 pictures")
    assert seen.bright(places) == items_of("dog")
    page.locator("#clear-filters").click()
    count(page, "24 pictures")
    assert not kinds.get_by_label("dog").is_checked()
    assert seen.bright(places) == set(NUMBERS)


def test_numbers_are_put_into_ranges(page):
    years = facet(page, "year")
    assert counts(years) == {f"{first} to {first + 3}": 4 for first in range(2000, 2000 + N, 4)}
    years.get_by_label("2004 to 2007").check()
    count(page, "4 of 24 pictures")
    assert counts(facet(page, "kind")) == {"dog": 2, "bird": 1, "cat": 1}


def test_facets_of_texts_name_the_empty_ones(page):
    assert counts(facet(page, "note")) == {"(empty)": 23, " ".join(NOTES[5].split()): 1}


def test_facets_count_what_the_search_found(page):
    page.locator("#search").fill("cats/0")
    count(page, "4 of 24 pictures")
    kinds = facet(page, "kind")
    assert counts(kinds) == {"cat": 4, "dog": 0, "bird": 0}
    page.locator("#search").fill("dogs")
    count(page, "8 of 24 pictures")
    assert counts(kinds) == {"cat": 0, "dog": 8, "bird": 0}
    kinds.get_by_label("cat").check()
    count(page, "0 of 24 pictures")


def test_frames_have_the_colors_of_the_list(page, seen):
    facet(page, "kind")
    page.locator("#frame-by").select_option(label="kind")
    page.wait_for_timeout(100)
    kinds = facet(page, "kind")
    shot, half, places = seen.shot(), round(seen.zoom() / 2), seen.places()
    colors = {}
    for line in kinds.locator("label").all():
        style = line.locator(".color").evaluate("(each) => getComputedStyle(each).backgroundColor")
        colors[line.locator(".value").inner_text()] = [int(x) for x in re.findall(r"\d+", style)]
    assert len({tuple(color) for color in colors.values()}) == 3
    for item in NUMBERS:
        x, y = map(round, places[item])
        cell = shot[y - half : y + half, x - half : x + half]
        framed = {
            kind: int((np.abs(cell - color).max(axis=2) <= 6).sum())
            for kind, color in colors.items()
        }
        assert framed[KINDS[item]] > half
        assert max(framed, key=framed.get) == KINDS[item]


def test_a_box_selects_what_is_inside_and_is_saved(page, seen):
    chosen = set(GRID[1:3, 0:3].ravel().tolist())
    half = seen.zoom() / 2
    first, last = seen.place(int(GRID[1, 0])), seen.place(int(GRID[2, 2]))
    page.locator("#mode-box").click()
    drag(page, (first[0] - half, first[1] - half), (last[0] + half, last[1] + half))
    expect(page.locator("#selected")).to_have_text("6 pictures selected")
    assert saved(page) == rows_of(chosen)
    page.locator("#clear-selection").click()
    expect(page.locator("#selection")).to_be_hidden()


def test_selections_grow_shrink_and_toggle(page, seen):
    places = seen.places()
    half = seen.zoom() / 2

    def box(first, last, modifier):
        (a, b), (c, d) = places[int(GRID[first])], places[int(GRID[last])]
        drag(page, (a - half, b - half), (c + half, d + half), modifier=modifier)

    box((0, 0), (0, 1), "Shift")
    expect(page.locator("#selected")).to_have_text("2 pictures selected")
    page.locator("#mode-box").click()
    box((1, 0), (1, 2), "Control")
    expect(page.locator("#selected")).to_have_text("5 pictures selected")
    box((0, 1), (1, 1), "Alt")
    expect(page.locator("#selected")).to_have_text("3 pictures selected")
    page.mouse.click(*places[int(GRID[3, 3])])  # in the mode of boxes, a click toggles
    expect(page.locator("#selected")).to_have_text("4 pictures selected")
    page.mouse.click(*places[int(GRID[0, 0])])
    expect(page.locator("#selected")).to_have_text("3 pictures selected")
    chosen = {int(GRID[cell]) for cell in [(1, 0), (1, 2), (3, 3)]}
    assert saved(page) == rows_of(chosen)
    expect(page.locator("#panel")).to_be_hidden()


def test_a_click_with_ctrl_selects_and_opens_nothing(page, seen):
    places = seen.places()
    for item, words in ((3, "1 picture"), (9, "2 pictures"), (3, "1 picture")):
        page.keyboard.down("Control")
        page.mouse.click(*places[item])
        page.keyboard.up("Control")
        expect(page.locator("#selected")).to_have_text(f"{words} selected")
    assert [row["name"] for row in saved(page)] == [NAMES[9]]
    expect(page.locator("#panel")).to_be_hidden()


def test_a_lasso_selects_what_it_goes_around(page, seen):
    grid, half = GRID, seen.zoom() / 2
    page.locator("#mode-lasso").click()
    a, b, c = (seen.place(int(grid[cell])) for cell in [(0, 0), (0, 3), (3, 0)])
    # A triangle whose long side runs just beyond the diagonal from (0, 3) to (3, 0).
    drag(
        page,
        (a[0] - half, a[1] - half),
        (b[0] + 1.6 * half, b[1] - half),
        (c[0] - half, c[1] + 1.6 * half),
        (a[0] - half, a[1] - half),
    )
    chosen = {int(grid[row, column]) for row in range(4) for column in range(4 - row)}
    expect(page.locator("#selected")).to_have_text("10 pictures selected")
    assert saved(page) == rows_of(chosen)


def test_dimmed_pictures_are_not_selected(page, seen):
    places = seen.places()
    half = seen.zoom() / 2
    page.locator("#search").fill("cats")
    count(page, "8 of 24 pictures")
    first, last = places[int(GRID[0, 0])], places[int(GRID[4, 4])]
    page.locator("#mode-box").click()
    drag(page, (first[0] - half, first[1] - half), (last[0] + half, last[1] + half))
    expect(page.locator("#selected")).to_have_text("8 pictures selected")
    assert saved(page) == rows_of(items_of("cat"))


def test_a_click_opens_the_larger_picture_with_all_that_is_known(page, seen):
    page.mouse.click(*seen.place(8))
    expect(page.locator("#panel")).to_be_visible()
    expect(page.locator("#name")).to_have_text(NAMES[8])
    picture = page.locator("#frame img")
    expect(picture).to_have_attribute("alt", NAMES[8])
    assert picture.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 240
    row, column = cell_of(8)
    facts = page.locator("#facts")
    assert facts.locator("dt").all_inner_texts() == ["kind", "year", "place"]
    assert facts.locator("dd").all_inner_texts() == [
        *("bird", "2008"),
        f"row {row + 1}, column {column + 1}",
    ]
    link = page.locator("#original")
    expect(link).to_have_attribute("href", LINKS[8])
    expect(link).to_have_attribute("rel", "noopener")
    page.locator("#close").click()
    expect(page.locator("#panel")).to_be_hidden()


def test_look_alikes_stand_beside_the_picture_and_lead_on(page, seen):
    page.mouse.click(*seen.place(8))
    near = page.locator("#near button")
    expect(near).to_have_count(3)
    titles = [NAMES[i] for i in NEIGHBORS[8]]
    assert [each.get_attribute("title") for each in near.all()] == titles
    page.wait_for_timeout(200)
    shown = seen.shot()
    for button, item in zip(near.all(), NEIGHBORS[8], strict=True):
        box = button.bounding_box()
        middle = round(box["y"] + box["height"] / 2), round(box["x"] + box["width"] / 2)
        np.testing.assert_allclose(shown[middle], COLORS[item], atol=8)
    near.nth(1).click()
    expect(page.locator("#name")).to_have_text(titles[1])
    expect(page.locator("#original")).to_be_visible()
    near.nth(0).click()
    item = int(NEIGHBORS[NEIGHBORS[8][1]][0])
    expect(page.locator("#name")).to_have_text(NAMES[item])
    expect(page.locator("#original")).to_be_hidden()  # it has no link


def test_addresses_lead_to_a_picture(open_page, wall):
    page = open_page(wall, anchor="picture=dogs%2F13.png")
    expect(page.locator("#name")).to_have_text("dogs/13.png")
    page.evaluate("location.hash = '#picture=' + encodeURIComponent('cats/03.png')")
    expect(page.locator("#name")).to_have_text("cats/03.png")
    page.evaluate("location.hash = '#picture=absent'")
    page.wait_for_timeout(100)
    expect(page.locator("#name")).to_have_text("cats/03.png")
    page = open_page(wall, anchor="picture=%E0%A4%A")  # not text at all
    expect(page.locator("#panel")).to_be_hidden()


def test_the_address_follows_the_picture(page, seen, open_page, wall):
    page.mouse.click(*seen.place(int(GRID[1, 1])))
    expect(page).to_have_url(re.compile("#picture="))
    page.keyboard.press("ArrowRight")
    name = NAMES[int(GRID[1, 2])]
    expect(page.locator("#name")).to_have_text(name)
    expect(page).to_have_url(re.compile("#picture=" + re.escape(name.replace("/", "%2F")) + "$"))
    assert page.locator("#address").get_attribute("href") == page.url[page.url.index("#") :]
    page.reload()
    expect(page.locator("#name")).to_have_text(name)
    page.locator("#close").click()
    expect(page).to_have_url(re.compile("html$"))
