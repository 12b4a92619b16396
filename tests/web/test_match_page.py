"""The Match view in a browser: what people do there, and what comes of it."""

import csv
import json
import re
import signal

import numpy as np
import pytest
from PIL import Image
from tests.web.conftest import Server
from tests.web.matches import (
    Matched,
    address_of,
    rest,
    write_halves,
    write_tables,
    write_texts,
)
from tests.web.pages import REFUSED

sync = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync.expect
pytestmark = pytest.mark.xdist_group(__name__)

N = 40
NAMED = ("Pixels", "Color", "Texture")  # features


@pytest.fixture(scope="module")
def house(browser, tmp_path_factory):
    """One server for tests that only answer: 40 halves of photos and a file that is not one."""
    home = tmp_path_factory.mktemp("house")
    truth = write_halves(home, N)
    (home / "left" / "broken.jpg").write_text("no picture")
    server = Server(home / "left", home / "right", "--port", "0", home=home).open()
    server.truth = truth
    rest(server)
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def open_match(open_page, house):
    """Opens the page on a match of which nobody has said anything; answers change no others."""

    def open_it(automatic=False, **options):
        rest(house)
        if house.get("/api/match/state")["undo"] is not None:
            house.post("/api/match/clear")
            rest(house)
        house.post("/api/match/settings", automatic=automatic)
        matched = Matched(open_page(address_of(house), **options), house)
        matched.settle()
        return matched

    return open_it


@pytest.fixture
def open_new(open_page, serve):
    """Opens the page of a server of its own."""

    def open_it(*paths, **options):
        server = serve(*paths)
        matched = Matched(open_page(address_of(server), **options), server)
        matched.settle()
        return matched

    return open_it


def wrong_ones(matched):
    """Left items with a wrong partner."""
    return np.flatnonzero(matched.partners()[:N] != matched.server.truth).tolist()


def choose(matched, left, right):
    """Correct a pair as people do."""
    page = matched.page
    matched.row(left).scroll_into_view_if_needed()
    matched.button(left, "Wrong").click()
    page.locator("#panel input").fill(f"b{right:02}")
    with matched.change("answer"):
        page.locator(f'#panel [data-item="{right}"]').first.click()


def test_two_corrections_are_kept_and_help_the_others(open_match):
    matched = open_match(automatic=True)
    page, truth = matched.page, matched.server.truth
    assert "token" not in page.url
    expect(page.locator("#count")).to_have_text(f"{N} pairs")
    expect(page.locator("#summary-words")).to_contain_text("believed right")
    before = wrong_ones(matched)
    assert 2 <= len(before) < N / 2
    corrected = []
    for _ in range(2):
        left = wrong_ones(matched)[0]
        choose(matched, left, int(truth[left]))
        corrected.append(left)
        expect(matched.row(left)).to_contain_text("confirmed")
    found = matched.pairs()
    assert set(found["answered"]) == set(corrected)
    assert (matched.partners()[corrected] == truth[corrected]).all()
    assert len(wrong_ones(matched)) <= len(before) - 2
    expect(page.locator("#summary-counts")).to_contain_text("2 confirmed")
    page.reload()
    matched.settle()
    for left in corrected:
        expect(matched.row(left)).to_contain_text("confirmed")


def test_pairs_are_confirmed_undone_and_redone_by_keyboard_alone(open_match):
    matched = open_match()
    page = matched.page
    page.locator("#search").focus()
    page.keyboard.press("Tab")
    first, second, third = matched.order()[:3]
    expect(matched.row(first)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(matched.row(second)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    with matched.change("answer"):
        page.keyboard.press("y")
    expect(matched.row(second)).to_be_focused()
    expect(matched.said()).to_contain_text("are confirmed")
    with matched.change("answer"):
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the button, which leads to the next one
    expect(matched.button(third, "Correct")).to_be_focused()
    assert matched.pairs()["answered"] == sorted([first, second])
    with matched.change("undo"):
        page.keyboard.press("Control+z")
    assert matched.pairs()["answered"] == [first]
    expect(matched.said()).to_contain_text("Undone: confirming")
    with matched.change("undo"):
        page.locator("#undo").click()
    assert matched.pairs()["answered"] == []
    expect(page.locator("#undo")).to_be_disabled()
    with matched.change("redo"):
        page.keyboard.press("Control+Shift+z")
    with matched.change("redo"):
        page.keyboard.press("Control+y")
    assert matched.pairs()["answered"] == sorted([first, second])
    expect(page.locator("#undo")).to_have_attribute("title", re.compile("Undo confirming"))
    matched.row(first).focus()
    with matched.change("release"):
        page.keyboard.press("u")
    assert matched.pairs()["answered"] == [second]


def test_arrows_and_the_end_keys_walk_through_the_list(open_match):
    matched = open_match(width=1400)
    page, order = matched.page, matched.order()
    columns = page.evaluate(
        "getComputedStyle(document.getElementById('pairs')).gridTemplateColumns.split(' ').length"
    )
    matched.row(order[0]).focus()
    page.keyboard.press("ArrowDown")
    expect(matched.row(order[columns])).to_be_focused()
    page.keyboard.press("End")
    expect(matched.row(order[-1])).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(matched.row(order[-1])).to_be_focused()
    page.keyboard.press("Home")
    expect(matched.row(order[0])).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(matched.row(order[0])).to_be_focused()


def test_items_are_set_aside_and_put_back(open_match):
    matched = open_match()
    page = matched.page
    left = matched.order()[0]
    right = int(matched.partners()[left])
    matched.row(left).focus()
    with matched.change("aside"):
        page.keyboard.press("n")
    assert matched.pairs()["aside"] == [[left], []]
    expect(matched.row(left)).to_contain_text("set aside")
    expect(matched.right_row(right)).to_contain_text("no partner found")
    expect(matched.filter("lonely")).to_contain_text("2")
    matched.filter("lonely").click()
    assert sorted(matched.order()) == sorted([left, -1 - right])
    with matched.change("aside"):
        matched.right_row(right).get_by_role("button", name="Set aside").click()
    assert matched.pairs()["aside"] == [[left], [right]]
    with matched.change("back"):
        matched.row(left).get_by_role("button", name="Put back").click()
    assert matched.pairs()["aside"] == [[], [right]]
    with matched.change("back"):
        page.locator("#back-all").click()
    assert matched.pairs()["aside"] == [[], []]
    with matched.change("again"):
        page.locator("#match-again").click()
    assert (matched.partners()[:N] >= 0).all()
    expect(page.locator("#answers")).to_be_hidden()


def test_a_right_item_is_set_aside_beside_its_candidates(open_match):
    matched = open_match()
    left = matched.order()[0]
    right = int(matched.partners()[left])
    matched.button(left, "Wrong").click()
    with matched.change("aside"):
        matched.page.get_by_role("button", name=f"b{right:02}.png has no partner").click()
    assert matched.pairs()["aside"] == [[], [right]]
    assert matched.partners()[left] == -1


def test_an_item_without_partner_gets_one_by_its_name(open_match):
    matched = open_match()
    one, other = matched.order()[:2]
    freed = int(matched.partners()[one])
    with matched.change("aside"):
        matched.row(one).focus()
        matched.page.keyboard.press("n")
    matched.right_row(freed).get_by_role("button", name="Find its partner").click()
    matched.page.locator("#panel input").fill(f"a{other:02}")
    with matched.change("answer"):
        matched.page.locator("#panel .candidate").click()
    assert matched.partners()[other] == freed


def test_candidates_are_those_of_the_server_and_confirmed_ones_are_taken(open_match):
    matched = open_match()
    page, server = matched.page, matched.server
    left = matched.order()[0]
    found = server.get(f"/api/match/candidates/{left}")["candidates"]
    assert len(found) >= 5
    other = next(each for each in found if each["taken"] not in (-1, left))
    matched.row(left).focus()
    page.keyboard.press("c")
    buttons = page.locator("#panel-candidates .candidate")
    expect(buttons).to_have_count(len(found))
    expect(buttons.first).to_be_focused()
    for k, each in enumerate(found):
        expect(buttons.nth(k)).to_contain_text(f"b{each['item']:02}.png")
    taken = page.locator(f'#panel-candidates [data-item="{other["item"]}"]')
    expect(taken).to_contain_text(f"now with a{other['taken']:02}.png")
    taken.hover()
    expect(page.locator("#panel-face .right .name")).to_have_text(f"b{other['item']:02}.png")
    server.post("/api/match/answer", pairs=[[other["taken"], other["item"]]])
    matched.settle()
    expect(taken).to_be_disabled()
    expect(taken).to_contain_text(f"confirmed with a{other['taken']:02}.png")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(matched.row(left)).to_be_focused()
    page.keyboard.press("Enter")
    expect(buttons.first).to_be_focused()
    k = next(k for k, each in enumerate(found) if each["taken"] not in (left, other["taken"]))
    with matched.change("answer"):
        page.keyboard.press(str(k + 1))
    assert matched.partners()[left] == found[k]["item"]
    # The panel goes on with the next pair, and so does the focus.
    expect(page.locator("#panel")).to_be_visible()
    expect(matched.row(left)).not_to_be_focused()
    assert page.evaluate("document.activeElement.classList.contains('duo')")


def test_what_the_server_refuses_goes_back_and_says_why(open_match):
    matched = open_match(forgiven=[REFUSED])
    page = matched.page
    answer = {"error": {"message": "That item was taken.", "field": None}}
    page.route("**/api/match/answer", lambda route: route.fulfill(status=409, json=answer))
    left = matched.order()[0]
    matched.button(left, "Correct").click()
    expect(page.get_by_role("alert").filter(has_text="That item was taken.")).to_be_visible()
    expect(matched.button(left, "Correct")).to_be_visible()
    matched.settle()
    assert matched.pairs()["answered"] == []


def test_an_answer_is_shown_before_the_server_has_it(open_match):
    matched = open_match()
    held = []
    matched.page.route("**/api/match/answer", lambda route: held.append(route))
    left = matched.order()[0]
    matched.button(left, "Correct").click()
    expect(matched.row(left)).to_contain_text("confirmed")
    expect(matched.filter("confirmed")).to_contain_text("1")
    assert matched.pairs()["answered"] == []
    with matched.change("answer"):
        held[0].continue_()
    assert matched.pairs()["answered"] == [left]


def test_questions_are_asked_one_after_the_other(open_match):
    matched = open_match(automatic=True)
    page = matched.page
    asked = matched.pairs()["questions"]
    assert len(asked) == 10
    page.locator("#ask").click()
    title, words = page.locator("#asking-title"), page.locator("#question-words")
    expect(title).to_have_text("Question 1 of 10")
    expect(words).to_contain_text(f"a{asked[0]:02}.png")
    expect(page.locator("#yes")).to_be_focused()
    expect(page.locator("#question-faces img")).to_have_count(2)
    with page.expect_response("**/api/match/answer"):
        page.keyboard.press("y")
    # The next question does not wait for the match.
    expect(title).to_have_text("Question 2 of 10")
    second = re.search(r"a(\d+)\.png", words.inner_text())[1]
    with page.expect_response("**/api/match/aside"):
        page.keyboard.press("n")
    expect(title).to_have_text("Question 3 of 10")
    page.locator("#skip").click()
    expect(title).to_have_text("Question 4 of 10")
    fourth = int(re.search(r"a(\d+)\.png", words.inner_text())[1])
    free = page.locator("#question .candidate:not(:disabled)").first
    chosen = int(free.get_attribute("data-item"))
    with page.expect_response("**/api/match/answer"):
        free.click()
    for _ in range(6):
        page.keyboard.press("s")
    expect(page.locator("#asked-words")).to_have_text("You answered 3 questions of 10.")
    expect(page.locator("#asked-done")).to_be_focused()
    matched.settle()
    expect(page.locator("#asked-effect")).to_contain_text("changed")
    page.keyboard.press("Enter")
    expect(page.locator("#asking")).to_be_hidden()
    expect(page.locator("#ask")).to_be_focused()
    found = matched.pairs()
    assert set(found["answered"]) == {asked[0], fourth}
    assert found["aside"][0] == [int(second)]
    assert matched.partners()[fourth] == chosen


def test_more_questions_come_after_a_match(open_match):
    matched = open_match()
    page = matched.page
    page.keyboard.press("q")
    for k in range(10):
        expect(page.locator("#asking-title")).to_have_text(f"Question {k + 1} of 10")
        with page.expect_response("**/api/match/answer"):
            page.keyboard.press("y")
    expect(page.locator("#asked-words")).to_have_text("You answered 10 questions of 10.")
    with matched.change("again"):
        page.locator("#asked-again").click()
    expect(page.locator("#asked-effect")).to_contain_text("believed right")
    page.locator("#ask-more").click()
    expect(page.locator("#asking-title")).to_have_text("Question 11 of 20")
    page.keyboard.press("Escape")
    assert len(matched.pairs()["answered"]) == 10


def test_the_list_is_sorted_filtered_and_searched(open_match):
    matched = open_match()
    page = matched.page
    shares = np.array(matched.pairs()["confidence"])
    order = matched.order()
    assert (np.diff(shares[order]) >= 0).all()
    page.locator("#sort").select_option("surest")
    assert (np.diff(shares[matched.order()]) <= 0).all()
    page.locator("#sort").select_option("name")
    assert matched.order() == sorted(order)
    page.locator("#search").fill("A1")
    assert matched.order() == [each for each in range(10, 20) if each in order]
    right = int(matched.partners()[25])
    page.locator("#search").fill(f"b{right:02}")
    assert matched.order() == [25]
    with matched.change("answer"):
        matched.button(25, "Correct").click()
    page.locator("#search").fill("")
    for name, n in (("all", N), ("check", N - 1), ("confirmed", 1), ("lonely", 0)):
        expect(matched.filter(name).locator(".number")).to_have_text(str(n))
        matched.filter(name).click()
        expect(matched.filter(name)).to_have_attribute("aria-pressed", "true")
        assert len(matched.order()) == n
    expect(page.locator("#nothing")).to_have_text("Every item has a partner.")


def test_changes_from_elsewhere_leave_the_focus_and_the_order_alone(open_match):
    matched = open_match()
    page, server, order = matched.page, matched.server, matched.order()
    row = matched.row(order[7])
    row.focus()
    top = row.bounding_box()["y"]
    one, other = order[1], order[2]
    server.post("/api/match/answer", pairs=[[one, int(matched.partners()[other])]])
    matched.settle()
    expect(matched.row(one)).to_contain_text("confirmed")
    expect(matched.row(other)).to_contain_text("changed")
    assert matched.order() == order
    expect(row).to_be_focused()
    assert row.bounding_box()["y"] == top
    expect(page.locator("#sort-again")).to_be_visible()
    page.locator("#sort-again").click()
    assert matched.order()[-1] == one
    expect(page.locator("#sort-again")).to_be_hidden()
    page.locator("#sort").select_option("changed")
    assert matched.order()[0] == other
    matched.filter("changed").click()
    assert matched.order() == [other]


def test_two_tabs_follow_each_other(open_match, open_page):
    one = open_match()
    other = Matched(open_page(address_of(one.server)), one.server)
    left = one.order()[0]
    with one.change("answer"):
        one.button(left, "Correct").click()
    other.settle()
    expect(other.row(left)).to_contain_text("confirmed")
    with other.change("undo"):
        other.page.locator("#undo").click()
    one.settle()
    expect(one.button(left, "Correct")).to_be_visible()


def test_matching_again_is_offered_and_says_what_changed(open_match):
    matched = open_match()
    page, truth = matched.page, matched.server.truth
    left = wrong_ones(matched)[0]
    choose(matched, left, int(truth[left]))
    again = page.locator("#match-again")
    expect(again).to_have_text("Match again with 1 new answer")
    expect(again).to_have_class("main")
    with matched.change("again"):
        again.click()
    expect(matched.said()).to_have_text(re.compile("pairs? changed$", re.IGNORECASE))
    expect(again).to_have_text("Match again")
    n = len(matched.pairs()["changed"])
    expect(matched.filter("changed").locator(".number")).to_have_text(str(n))
    page.locator("#automatic").check()
    matched.settle()
    assert matched.state()["settings"]["automatic"]


def test_both_items_are_shown_large(open_match):
    matched = open_match()
    page, order = matched.page, matched.order()
    first, second = order[:2]
    matched.row(first).focus()
    page.keyboard.press("l")
    name, pictures = page.locator("#large-name"), page.locator("#large-faces img")
    right = int(matched.partners()[first])
    expect(name).to_have_text(f"a{first:02}.png and b{right:02}.png")
    expect(pictures).to_have_count(2)
    expect(pictures.last).to_have_js_property("naturalWidth", 16)
    page.keyboard.press("ArrowRight")
    expect(name).to_contain_text(f"a{second:02}.png")
    page.keyboard.press("ArrowLeft")
    with matched.change("answer"):
        page.keyboard.press("y")
    expect(name).to_contain_text(f"a{second:02}.png")
    page.keyboard.press("Escape")
    expect(matched.row(second)).to_be_focused()
    matched.row(second).locator("img").first.click()
    expect(page.locator("#large")).to_be_visible()
    page.locator("#large-wrong").click()
    expect(page.locator("#panel-title")).to_have_text(f"Which belongs to a{second:02}.png?")


def test_a_pair_looks_confirmed_only_once_it_is(open_match):
    matched = open_match()
    left = matched.order()[0]

    def look(name):
        return matched.button(left, name).evaluate(
            """(button) => {
              const own = getComputedStyle(button);
              const sign = getComputedStyle(button, "::before").content;
              return [own.borderTopColor, own.color, own.backgroundColor, own.fontWeight, sign];
            }"""
        )

    assert look("Correct") == look("Wrong")
    with matched.change("answer"):
        matched.button(left, "Correct").click()
    expect(matched.row(left)).to_contain_text("confirmed")


def test_a_pair_is_ruled_out_without_knowing_the_right_one(open_match):
    matched = open_match(automatic=True)
    page = matched.page
    left = wrong_ones(matched)[0]
    wrong = int(matched.partners()[left])
    matched.row(left).scroll_into_view_if_needed()
    matched.button(left, "Wrong").click()
    with matched.change("wrong"):
        page.get_by_role("button", name=f"Not b{wrong:02}.png, and I do not know which").click()
    assert matched.partners()[left] not in (-1, wrong)
    expect(page.locator("#summary-counts")).to_contain_text("1 ruled out")
    second = wrong_ones(matched)[-1]
    partner = int(matched.partners()[second])
    matched.row(second).focus()
    with matched.change("wrong"):
        page.keyboard.press("x")
    partners = matched.partners()
    assert partners[left] != wrong
    assert partners[second] != partner
    with matched.change("undo"):
        page.locator("#undo").click()
    assert matched.partners()[second] == partner
    with matched.change("release"):
        page.get_by_role("button", name="Take all answers back").click()
    assert matched.state()["matching"]["nWrong"] == 0


def test_a_question_can_be_answered_by_no(open_match):
    matched = open_match()
    page = matched.page
    left = matched.pairs()["questions"][0]
    partner = int(matched.partners()[left])
    page.locator("#ask").click()
    with matched.change("wrong"):
        page.get_by_role("button", name="No X").click()
    expect(page.locator("#asking-title")).to_contain_text("Question 2 of")
    assert matched.partners()[left] == -1  # until it is matched again
    page.keyboard.press("Escape")
    with matched.change("again"):
        page.locator("#match-again").click()
    assert matched.partners()[left] not in (-1, partner)


def test_features_of_pictures_are_chosen_and_undone(open_match):
    matched = open_match(forgiven=[REFUSED])
    page = matched.page
    before = matched.partners()
    pixels, color, texture = (page.get_by_role("checkbox", name=each) for each in NAMED)
    expect(pixels).to_be_checked()
    expect(texture).not_to_be_checked()
    with matched.change("settings"):
        texture.check()
    assert matched.state()["settings"]["features"] == ["pixels", "color", "texture"]
    assert (matched.partners() != before).any()
    expect(page.locator("#undo")).to_have_attribute(
        "title", "Undo comparing by pixels, color, texture (Ctrl+Z)"
    )
    with matched.change("undo"):
        page.locator("#undo").click()
    np.testing.assert_array_equal(matched.partners(), before)
    expect(texture).not_to_be_checked()
    with matched.change("settings"):
        color.uncheck()
    pixels.uncheck()
    expect(page.locator("#error-features")).to_contain_text("at least one")


def test_files_that_could_not_be_read_are_listed(open_match):
    page = open_match().page
    page.get_by_role("button", name="1 file could not be read").click()
    expect(page.locator("#problem-list dt")).to_have_text(["broken.jpg"])
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="How to match")).to_be_visible()


def test_keys_in_a_search_are_text(open_match):
    matched = open_match()
    page = matched.page
    page.locator("#search").focus()
    page.keyboard.type("yncluq?1")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#nothing")).to_have_text("Nothing has this name.")
    assert matched.pairs()["answered"] == []


def export(page, form, folder):
    page.locator("#show-export").click()
    with page.expect_download() as download:
        page.locator(f"[data-format={form}]").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_pairs_are_exported(open_match, tmp_path):
    matched = open_match()
    partners = matched.partners()
    with open(export(matched.page, "csv", tmp_path), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    text = json.dumps(rows)
    assert len(rows) == N
    for left, right in enumerate(partners[:N].tolist()):
        row = next(row for row in rows if f"a{left:02}.png" in row.values())
        assert f"b{right:02}.png" in row.values(), text
    assert "doubts" in json.loads(export(matched.page, "json", tmp_path).read_text())
    with Image.open(export(matched.page, "png", tmp_path)) as sheet:
        assert sheet.width > 100


def test_many_pairs_are_made_a_few_at_a_time(open_match):
    matched = open_match()
    page, n = matched.page, 2000
    state = matched.state()
    side = {"title": "", "fixed": True, "total": n, "nReady": n, "nFailed": 0}
    state |= {"sides": [side, side], "kind": "texts", "version": 10**6}
    state["matching"] |= {"version": 10**6, "nPairs": n}
    words = [f"words of {k}" for k in range(n)]
    names = [f"text {k}" for k in range(n)]
    items = {"names": names, "words": words, "ready": [True] * n, "failed": []}
    pairs = {
        "version": 10**6,
        "partner": list(range(n)),
        "confidence": [k / n for k in range(n)],
        "answered": [],
        "changed": [],
        "aside": [[], []],
        "questions": [],
    }
    stream = f"event: state\ndata: {json.dumps(state)}\n\n"
    kind = "text/event-stream"
    page.route("**/api/match/events", lambda route: route.fulfill(body=stream, content_type=kind))
    page.route("**/api/match/state", lambda route: route.fulfill(json=state))
    page.route("**/api/match/items", lambda route: route.fulfill(json={"sides": [items, items]}))
    page.route("**/api/match/pairs", lambda route: route.fulfill(json=pairs))
    page.reload()
    page.locator('html[data-pairs="1000000"]').wait_for(state="attached")
    expect(matched.row(0)).to_contain_text("words of 0")
    made = page.locator("article.duo").count()
    assert 60 <= made <= 180
    page.locator("#more").scroll_into_view_if_needed()
    expect(page.locator("article.duo").nth(made)).to_be_attached()
    assert page.locator("article.duo").count() < n
    page.locator("#search").fill("text 1999")
    assert matched.order() == [1999]
    expect(page.locator("#more")).to_be_hidden()


def test_doubts_are_shown_with_advice(open_match):
    matched = open_match()
    page, state = matched.page, matched.state()
    state["matching"] |= {"doubts": ["the two agree hardly at all"], "advice": "Answer some."}
    page.route("**/api/match/state", lambda route: route.fulfill(json=state))
    page.route("**/api/match/events", lambda route: route.fulfill(
        body=f"event: state\ndata: {json.dumps(state)}\n\n", content_type="text/event-stream"
    ))  # fmt: skip
    expect(page.locator("#doubts")).to_be_hidden()
    page.reload()
    expect(page.locator("#doubt-list li")).to_have_text(["The two agree hardly at all."])
    expect(page.locator("#advice")).to_have_text("Answer some.")


def test_tables_are_matched_by_name_and_shown_by_cell(open_new, tmp_path):
    truth = write_tables(tmp_path)
    matched = open_new(tmp_path / "people.csv", tmp_path / "blood.csv")
    page = matched.page
    assert matched.state()["kind"] == "table"
    left = matched.order()[0]
    expect(matched.row(left)).to_contain_text(f"p{left:02}")
    expect(matched.row(left)).to_contain_text("pulse")
    matched.row(left).focus()
    page.keyboard.press("l")
    expect(page.locator("#large-faces dt").first).to_be_visible()
    expect(page.locator("#large-faces .left dt")).to_contain_text(["age", "pulse", "iron", "zinc"])
    page.keyboard.press("Escape")
    page.locator("#show-export").click()
    expect(page.locator("[data-format=png]")).to_be_hidden()
    page.keyboard.press("Escape")
    right = int(truth[left])
    matched.button(left, re.compile("Wrong|Change")).click()
    page.locator("#panel input").fill(f"q{right:02}")
    with matched.change("answer"):
        page.locator(f'#panel [data-item="{right}"]').first.click()
    path = export(page, "csv", tmp_path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    assert any(f"p{left:02}" in row and f"q{right:02}" in row for row in rows)


def test_texts_are_shown_in_part_and_in_full(open_new, tmp_path):
    write_texts(tmp_path)
    matched = open_new(tmp_path / "left", tmp_path / "right")
    left = matched.order()[0]
    text = (tmp_path / "left" / f"s{left:02}.txt").read_text(encoding="utf-8")
    expect(matched.row(left).locator(".left .excerpt")).to_contain_text(text[:60])
    matched.page.locator("#ask").click()
    asked = matched.pairs()["questions"][0]
    whole = (tmp_path / "left" / f"s{asked:02}.txt").read_text(encoding="utf-8")
    expect(matched.page.locator("#question-faces .left .content")).to_have_text(whole)


def test_both_sides_are_uploaded_and_all_is_forgotten(open_new, tmp_path):
    write_halves(tmp_path, 8)
    matched = open_new(forgiven=[REFUSED])
    page = matched.page
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#welcome")).to_contain_text("Nothing leaves this computer")
    for side, name in enumerate(("left", "right")):
        with page.expect_file_chooser() as chooser:
            page.locator(f"#choose-files-{side}").click()
        chooser.value.set_files(sorted((tmp_path / name).iterdir()))
        expect(page.locator(f"#zone-words-{side}, #about-{side}").last).to_contain_text("8 pict")
    expect(page.locator("#welcome")).to_be_hidden()
    state = matched.settle()
    assert state["matching"]["nPairs"] == 8
    assert len(matched.order()) == 8
    # Other kinds are refused, with what to do about it.
    (tmp_path / "a.txt").write_text("a text")
    with page.expect_file_chooser() as chooser:
        page.locator("#add-files-0").click()
    chooser.value.set_files(tmp_path / "a.txt")
    expect(page.get_by_role("alert").filter(has_text="a.txt was not added")).to_be_visible()
    page.locator("#clear").click()
    with matched.change("clear"):
        page.locator("#confirm-yes").click()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator("#zone-words-0")).to_contain_text("Drop pictures")
    assert matched.state()["kind"] is None


def test_files_are_dropped_on_a_side(open_new):
    matched = open_new()
    page = matched.page
    with page.expect_response("**/api/match/uploads?side=1*"):
        page.evaluate(
            """() => {
              const files = new DataTransfer();
              files.items.add(new File(["a few words"], "one.txt", { type: "text/plain" }));
              const zone = document.getElementById("zone-1").getBoundingClientRect();
              const at = { clientX: zone.left + zone.width / 2, clientY: zone.top + 20 };
              for (const kind of ["dragover", "drop"]) {
                const event = new DragEvent(kind, { dataTransfer: files, bubbles: true, ...at });
                document.body.dispatchEvent(event);
                const hidden = document.getElementById("drop-sides").hidden;
                if (hidden !== (kind === "drop")) throw new Error(kind);
              }
            }"""
        )
    expect(page.locator("#zone-words-1")).to_have_text("1 text")
    expect(page.locator("#drop-sides")).to_be_hidden()
    expect(page.locator("#missing")).to_contain_text("left side")


def test_a_lost_server_is_shown(open_new):
    forgiven = ["console: Failed to load", "not loaded"]
    matched = open_new(forgiven=forgiven)
    matched.server.stop(signal.SIGKILL)
    expect(matched.page.locator("#lost")).to_contain_text("The server has stopped")
    expect(matched.page.locator("html")).to_have_attribute("data-settled", "no")


def test_names_are_text_whatever_they_hold(open_new, tmp_path):
    write_halves(tmp_path, 6)
    name = "<img src=x onerror=alert(1)>&amp;'\".png"
    (tmp_path / "left" / "a00.png").rename(tmp_path / "left" / name)
    matched = open_new(tmp_path / "left", tmp_path / "right")
    expect(matched.page.get_by_text(name, exact=True).first).to_be_visible()
    matched.page.locator("#ask").click()
    assert matched.page.locator("img[src=x]").count() == 0
