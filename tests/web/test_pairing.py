"""A match without a server: reading, matching, answering, undoing, keeping."""

import asyncio
import csv
import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from unshuffle.datasets import photo_halves
from unshuffle.matching import Matches
from unshuffle.web._http.refusal import Refused
from unshuffle.web._match import pairing as _pairing
from unshuffle.web._match.pairing import Pairing
from unshuffle.web._match.pairs import PairStep
from unshuffle.web._work.state_file import StateFile

N = 40
ANIMALS = ["cat", "dog", "fox", "owl", "bee", "ant", "elk", "cod", "hen", "ram"]


@pytest.fixture
def halves(tmp_path):
    """Halves of photos, those on the right in another order: `order` has the left half of each."""
    left, right, truth = photo_halves(N, random_state=2)
    for name, pictures in (("left", left), ("right", right)):
        (tmp_path / name).mkdir()
        for i, picture in enumerate(pictures):
            Image.fromarray(picture).save(tmp_path / name / f"{i:02}.png")
    return tmp_path / "left", tmp_path / "right", np.argsort(truth)


def write_tables(folder, n=30, seed=0):
    """Two tables of the same things, the second in reverse order and with other columns."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 3)) * [3, 2, 1]
    Y = X[::-1] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    paths = []
    for name, values in (("a", X), ("b", Y)):
        path = folder / f"{name}.csv"
        with open(path, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["name", *(f"{name}{k}" for k in range(values.shape[1]))])
            for i, row in enumerate(values):
                rows.writerow([f"{name}-{i}", *row])
        paths.append(path)
    return paths


def write_texts(folder):
    """The same topics in two vocabularies, the second in reverse order."""
    rng = np.random.default_rng(0)
    paths = [folder / "english", folder / "other"]
    mixes = rng.dirichlet(np.full(len(ANIMALS), 0.3), size=24)
    for k, path in enumerate(paths):
        path.mkdir()
        for i, mix in enumerate(mixes if k == 0 else mixes[::-1]):
            words = [
                ANIMALS[w] + "x" * k for w in np.repeat(np.arange(10), (mix * 60).astype(int))
            ]
            (path / f"{i:02}.txt").write_text(" ".join(words) or "none")
    return paths


@pytest.fixture
def open_pairing(tmp_path, monkeypatch):
    """Opens matches that keep their answers in one file."""
    monkeypatch.setattr(_pairing, "_PAUSE", 0.02)
    monkeypatch.setattr(_pairing, "_AFTER_FILES", 0.05)
    opened = []

    def open_it(paths=None, *, wait=True):
        file = StateFile(tmp_path / "kept" / "wall.json")
        pairing = Pairing(paths, file.companion("match"), tmp_path / "cache")
        close = pairing.close

        def close_once():
            close()
            file.close()
            pairing.close = lambda: None

        pairing.close = close_once
        opened.append(pairing)
        pairing.open()
        return settle(pairing) if wait else pairing

    yield open_it
    for pairing in opened:
        pairing.close()


def settle(pairing):
    assert pairing.jobs.wait(timeout=600)
    assert pairing.state()["notice"] is None
    return pairing


def drop(pairing, side, *files):
    async def pieces(content):
        yield content[:50]
        yield content[50:]

    for file in files:
        asyncio.run(pairing.add(side, file.name, pieces(file.read_bytes())))
        pairing.added()
    return pairing


def n_right(pairing, order, but=()):
    partner = np.array(pairing.pairs()["partner"])
    right = (partner >= 0) & (order[partner] == np.arange(len(order)))
    right[list(but)] = False
    return int(right.sum())


def refusal(function, *arguments):
    with pytest.raises(Refused) as caught:
        function(*arguments)
    return str(caught.value), caught.value.status


def test_halves_are_matched_and_judged(open_pairing, halves):
    left, right, order = halves
    pairing = open_pairing([left, right])
    state = pairing.state()
    assert (state["title"], state["kind"], state["missing"]) == ("left and right", "pictures", "")
    assert [side["nReady"] for side in state["sides"]] == [N, N]
    assert all(side["fixed"] for side in state["sides"])
    matching = state["matching"]
    assert (matching["settled"], matching["nPairs"], matching["stale"]) == (True, N, 0)
    assert n_right(pairing, order) > N / 2
    assert 0.3 < matching["expected"] <= 1
    assert matching["summary"].startswith("About ")
    pairs = pairing.pairs()
    assert sorted(pairs["partner"]) == list(range(N))
    assert len(pairs["questions"]) == 10
    assert pairs["changed"] == []


def test_answers_are_kept_and_the_others_are_matched_anew(open_pairing, halves):
    left, right, order = halves
    pairing = open_pairing([left, right])
    true = np.argsort(order)
    partner = np.array(pairing.pairs()["partner"])
    wrong = np.flatnonzero(partner != true)[:2].tolist() or [0, 1]
    before = n_right(pairing, order, but=wrong)
    for x in wrong:
        pairing.answer([[x, int(true[x])]])
    settle(pairing)
    pairs = pairing.pairs()
    assert pairs["answered"] == sorted(wrong)
    assert [pairs["partner"][x] for x in wrong] == true[wrong].tolist()
    assert [pairs["confidence"][x] for x in wrong] == [1, 1]
    assert n_right(pairing, order, but=wrong) >= before
    assert not set(wrong) & set(pairs["questions"])
    assert sorted(pairs["partner"]) == list(range(N))
    assert pairing.state()["matching"]["stale"] == 0


@pytest.mark.slow
def test_what_is_ruled_out_never_comes_back(open_pairing, halves):
    left, right, order = halves
    pairing = open_pairing([left, right])
    true, ruled_out = np.argsort(order), set()
    for _ in range(3):
        partner = np.array(pairing.pairs()["partner"])
        wrong = np.flatnonzero(partner != true)[:3]
        if not wrong.size:
            break
        some = [[int(x), int(partner[x])] for x in wrong]
        pairing.rule_out(some)
        ruled_out |= set(map(tuple, some))
        settle(pairing)
        assert not ruled_out & set(enumerate(pairing.pairs()["partner"]))
        assert sorted(pairing.pairs()["partner"]) == list(range(N))
    assert pairing.state()["matching"]["nWrong"] == len(ruled_out) > 0
    assert refusal(pairing.rule_out, [list(next(iter(ruled_out)))])[1] == 409
    pairing.close()
    again = open_pairing([left, right])
    assert again.state()["matching"]["nWrong"] == len(ruled_out)
    x, y = next(iter(ruled_out))
    again.answer([[x, y]])  # people may change their minds
    assert (x, y) not in again.now.wrong


def test_an_item_whose_partners_are_all_ruled_out_has_none(open_pairing, halves, tmp_path):
    for side in (0, 1):
        folder = tmp_path / f"few{side}"
        folder.mkdir()
        for file in sorted(halves[side].iterdir())[:3]:
            shutil.copy(file, folder)
    pairing = open_pairing([tmp_path / "few0", tmp_path / "few1"])
    pairing.rule_out([[0, 0], [0, 1], [0, 2]])
    settle(pairing)
    partner = pairing.pairs()["partner"]
    assert partner[0] == -1
    assert len({each for each in partner[1:] if each >= 0}) == 2


@pytest.mark.slow
def test_pictures_are_matched_by_the_features_that_are_chosen(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    assert pairing.state()["settings"]["features"] == ["pixels", "color"]
    before = pairing.pairs()["partner"]
    pairing.change_settings({"features": ["words", "pixels"]})
    settle(pairing)
    assert pairing.state()["settings"]["features"] == ["pixels", "words"]
    assert pairing.state()["undo"] == "comparing by pixels, words"
    assert pairing.pairs()["partner"] != before
    pairing.undo()
    settle(pairing)
    assert pairing.pairs()["partner"] == before
    assert pairing.state()["settings"]["features"] == ["pixels", "color"]
    for wrong in ([], ["shape"], "color"):
        refusal(pairing.change_settings, {"features": wrong})
    pairing.redo()
    pairing.close()
    assert open_pairing(halves[:2]).state()["settings"]["features"] == ["pixels", "words"]


def test_who_loses_a_partner_gets_that_of_the_other(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    pairing.change_settings({"automatic": False})
    partner = pairing.pairs()["partner"]
    pairing.answer([[0, partner[1]]])
    pairs = pairing.pairs()
    assert pairs["partner"][:2] == [partner[1], partner[0]]
    assert (pairs["answered"], pairs["changed"], pairs["confidence"][1]) == ([0], [1], 0)
    state = pairing.state()
    assert state["jobs"] == []
    assert (state["matching"]["stale"], state["undo"]) == (1, "correcting 00.png")
    assert refusal(pairing.answer, [[1, partner[1]]])[1] == 409
    assert "confirmed already" in refusal(pairing.answer, [[0, partner[1]]])[0]
    pairing.undo()
    assert pairing.pairs()["partner"] == partner
    assert pairing.state()["redo"] == "correcting 00.png"
    pairing.redo()
    assert pairing.pairs()["answered"] == [0]
    sure = pairing.pairs()["confidence"][2]
    pairing.answer([[2, pairing.pairs()["partner"][2]]])
    assert pairing.pairs()["confidence"][2] == 1
    pairing.release([])
    assert pairing.pairs()["answered"] == []
    assert pairing.pairs()["confidence"][2] == sure
    assert "None of these" in refusal(pairing.release, [0])[0]
    pairing.match_again()
    assert settle(pairing).state()["matching"]["stale"] == 0


def test_items_set_aside_have_no_partner_until_they_are_taken_back(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    pairing.set_aside(0, [4, 5])
    pairing.set_aside(1, [pairing.pairs()["partner"][7]])
    settle(pairing)
    pairs = pairing.pairs()
    assert pairs["aside"][0] == [4, 5]
    assert [pairs["partner"][x] for x in (4, 5)] == [-1, -1]
    assert pairs["aside"][1][0] not in pairs["partner"]
    assert pairing.state()["matching"]["nAside"] == 3
    assert all(each["item"] != pairs["aside"][1][0] for each in pairing.candidates(7))
    pairing.take_back(0, [])
    pairing.take_back(1, pairs["aside"][1])
    settle(pairing)
    assert pairing.pairs()["aside"] == [[], []]
    assert -1 not in pairing.pairs()["partner"]
    assert "None of these" in refusal(pairing.take_back, 0, [1])[0]


def test_candidates_begin_with_the_partner_and_say_who_has_them(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    pairing.change_settings({"automatic": False})
    partner = pairing.pairs()["partner"]
    found = pairing.candidates(3)
    assert found[0]["item"] == partner[3]
    assert all(partner[each["taken"]] == each["item"] for each in found)
    assert len({each["item"] for each in found}) == len(found) == 12
    other = found[1]["item"]
    pairing.answer([[found[1]["taken"], other]])
    assert [each["answered"] for each in pairing.candidates(3)][:2] == [False, True]
    far = next(y for y in range(N) if all(y != each["item"] for each in found) and y != other)
    pairing.answer([[3, far]])
    assert pairing.candidates(3)[0] == {"item": far, "taken": 3, "answered": True}
    assert refusal(pairing.candidates, N)[1] == 404


def test_tables_have_names_and_cells(open_pairing, tmp_path):
    pairing = open_pairing(write_tables(tmp_path))
    assert pairing.state()["kind"] == "table"
    sides = pairing.items()["sides"]
    assert sides[0]["names"][:2] == ["a-0", "a-1"]
    assert sides[1]["words"][0].startswith("b0 ")
    assert pairing.item(1, 0)["cells"][0][0] == "b0"
    assert n_right(pairing, np.arange(30)[::-1]) == 30
    assert refusal(pairing.picture, 0, 0, False)[1] == 404
    assert refusal(pairing.item, 0, 30)[1] == 404
    assert "pictures" in refusal(pairing.export, "png")[0]


def test_texts_are_matched_by_their_words(open_pairing, tmp_path):
    paths = write_texts(tmp_path)
    (paths[0] / "x.txt").write_bytes(b"\0\1")
    pairing = open_pairing(paths)
    state = pairing.state()
    assert (state["kind"], state["sides"][0]["nFailed"]) == ("texts", 1)
    failed = pairing.items()["sides"][0]["failed"]
    assert failed == [{"name": "x.txt", "reason": "not text: it holds zero bytes"}]
    assert pairing.item(0, 0)["text"].split()[0] in ANIMALS
    assert len(pairing.pairs()["partner"]) == 25
    assert pairing.pairs()["partner"][24] == -1
    assert n_right(pairing, np.append(np.arange(24)[::-1], 99), but=[24]) > 12


def test_a_match_is_as_it_was_left(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    true = np.argsort(halves[2])
    pairing.answer([[2, int(true[2])]])
    pairing.set_aside(0, [9])
    before = settle(pairing).pairs()
    pairing.close()
    (halves[0] / "09.png").unlink()
    again = open_pairing(halves[:2])
    pairs = again.pairs()
    assert pairs["answered"] == [2]
    assert pairs["aside"] == [[], []]  # it is gone
    assert [each for k, each in enumerate(before["partner"]) if k != 9][:9] == pairs["partner"][:9]
    again.undo()
    assert again.state()["redo"] == "setting aside 09.png"


def test_files_are_dropped_on_both_sides(open_pairing, halves, tmp_path):
    pairing = open_pairing()
    assert "both sides" in pairing.state()["missing"]
    drop(pairing, 0, *sorted(halves[0].iterdir()))
    settle(pairing)
    assert pairing.state()["missing"] == "Add pictures to the right side."
    assert refusal(pairing.match_again)[1] == 409
    drop(pairing, 1, *sorted(halves[1].iterdir()))
    settle(pairing)
    assert n_right(pairing, halves[2]) > N / 2
    table = write_tables(tmp_path)[0]
    message, status = refusal(drop, pairing, 0, table)
    assert status == 409
    assert message == "Here, pictures are matched. Start over to match rows."
    pairing.close()
    again = open_pairing()
    assert [side["nReady"] for side in again.state()["sides"]] == [N, N]
    assert n_right(again, halves[2]) > N / 2
    again.clear()
    assert again.state()["kind"] is None
    assert not list((tmp_path / "kept").rglob("*.png"))
    settle(drop(drop(again, 0, table), 1, table))
    assert n_right(again, np.arange(30)) == 30


def test_another_table_replaces_the_first(open_pairing, tmp_path):
    a, b = write_tables(tmp_path)
    pairing = settle(drop(drop(open_pairing(), 0, a), 1, a))
    pairing.answer([[0, 0]])
    settle(drop(settle(pairing), 1, b))
    assert pairing.pairs()["answered"] == []
    assert n_right(pairing, np.arange(30)[::-1]) == 30
    assert len(list((tmp_path / "kept").rglob("*.csv"))) == 2


def test_a_broken_table_is_named_without_its_path(open_pairing, tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    pairing = open_pairing()
    settle(drop(pairing, 0, tmp_path / "bad.csv"))
    (failed,) = pairing.items()["sides"][0]["failed"]
    assert failed["name"] == "bad.csv"
    assert "cells" in failed["reason"]
    assert str(tmp_path) not in json.dumps(pairing.items())


def test_pairs_are_exported(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    pairing.set_aside(0, [1])
    settle(pairing)
    for form in ("csv", "json", "png"):
        pairing.export(form)
    settle(pairing)
    files = {each.name: each.path for each in pairing.exports._done}
    pairs = pairing.pairs()
    for name in ("pairs.csv", "pairs.json"):
        matches = Matches.load(files[name])
        assert matches.permutation.tolist() == pairs["partner"]
        assert matches.names_x[0] == "00.png"
    details = json.loads(files["pairs.json"].read_text())
    assert details["set_aside"] == {"x": ["01.png"], "y": []}
    with Image.open(files["pairs.png"]) as sheet:
        assert sheet.width > 200
    assert "csv, json or png" in refusal(pairing.export, "pdf")[0]


def test_a_canceled_match_leaves_the_pairs_as_they_were(open_pairing, halves, monkeypatch):
    pairing = open_pairing(halves[:2])
    before = pairing.pairs()
    monkeypatch.setattr(_pairing, "_PAUSE", 60)
    pairing.answer([[0, before["partner"][0]]])
    pairing.jobs.cancel("matching")
    settle(pairing)
    after = pairing.pairs()
    assert after["partner"] == before["partner"]
    assert after["answered"] == [0]
    assert pairing.state()["matching"]["stale"] == 1


def test_slow_matches_wait_until_they_are_asked_for(open_pairing, halves, monkeypatch):
    monkeypatch.setattr(_pairing, "_SLOW", 0.0)
    pairing = open_pairing(halves[:2])
    assert pairing.state()["settings"]["automatic"] is False
    pairing.answer([[0, pairing.pairs()["partner"][0]]])
    assert pairing.state()["jobs"] == []
    pairing.change_settings({"automatic": True})
    settle(pairing)
    assert pairing.state()["matching"]["stale"] == 0


def test_what_makes_no_sense_is_refused(open_pairing, halves):
    pairing = open_pairing(halves[:2])
    before = pairing.pairs()
    for pairs in ([], 3, [[0]], [[0, 1, 2]], [["a", 1]], [[True, 1]], [[0, N]], [[-1, 0]], None):
        assert refusal(pairing.answer, pairs)[1] in (400, 409)
    assert "one partner" in refusal(pairing.answer, [[0, 1], [0, 2]])[0]
    assert "one partner" in refusal(pairing.answer, [[0, 1], [2, 1]])[0]
    for side, items in ((2, [0]), (True, [0]), (0, []), (0, [N]), (0, "x"), (1, None)):
        assert refusal(pairing.set_aside, side, items)[1] in (400, 409)
    for given_settings in (None, {}, {"automatic": 1}):
        assert refusal(pairing.change_settings, given_settings)[1] == 400
    assert refusal(pairing.undo)[1] == 409
    assert refusal(drop, pairing, 0, halves[0] / "00.png")[1] == 409
    assert refusal(pairing.picture, 5, 0, False)[1] == 404
    assert pairing.pairs() == before


@pytest.mark.parametrize(("second", "words"), [("a.csv", "same kind"), ("x.pdf", "be matched")])
def test_collections_of_two_kinds_are_refused(open_pairing, halves, tmp_path, second, words):
    write_tables(tmp_path)
    (tmp_path / "x.pdf").write_text("x")
    with pytest.raises(ValueError, match=words):
        open_pairing([halves[0], tmp_path / second])


def test_too_few_items_are_said(open_pairing, halves):
    for path in sorted(halves[1].iterdir())[1:]:
        path.unlink()
    pairing = open_pairing(halves[:2])
    assert pairing.state()["missing"] == "Each side needs at least 2 pictures."


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("steps"),
        lambda data: data.update(position=9),
        lambda data: data.update(kind="music"),
        lambda data: data["steps"][0]["partner"].__setitem__(0, data["steps"][0]["partner"][1]),
        lambda data: data["steps"][0]["confidence"].__setitem__(0, 7),
        lambda data: data["steps"][0].update(answers=[[99, 0]]),
        lambda data: data["dropped"][0].append({"file": "../../x", "name": "x"}),
    ],
)
def test_a_damaged_file_is_put_aside(open_pairing, halves, tmp_path, damage):
    open_pairing(halves[:2]).close()
    path = tmp_path / "kept" / "wall.match.json"
    data = json.loads(path.read_text())
    damage(data)
    path.write_text(json.dumps(data))
    pairing = open_pairing(halves[:2], wait=False)
    assert pairing.jobs.wait(timeout=600)
    assert "could not be read" in pairing.state()["notice"]["message"]
    assert path.with_suffix(".damaged-1").exists()
    assert sorted(pairing.pairs()["partner"]) == list(range(N))


@given(st.data())
def test_steps_keep_partners_unique_and_answers_true(data):
    n = data.draw(st.integers(2, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    pairs = PairStep(rng.permutation(n), rng.random(n), raw=False)
    slots = st.integers(0, n - 1)
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(["answer", "aside", "back", "release", "wrong"]))
        side, item, other = data.draw(st.integers(0, 1)), data.draw(slots), data.draw(slots)
        if kind == "answer":
            taken = {y for x, y in pairs.answers.items() if x != item}
            if other in taken:
                with pytest.raises(Refused):
                    pairs.answered([(item, other)])
                continue
            pairs = pairs.answered([(item, other)])
            assert pairs.partner[item] == other
        elif kind == "aside":
            pairs = pairs.put_aside(side, frozenset([item]))
            assert item not in (pairs.partner if side else np.flatnonzero(pairs.partner >= 0))
        elif kind == "wrong":
            pairs = pairs.ruled_out([(item, other)])
            assert pairs.partner[item] != other
        elif kind == "back":
            pairs = pairs.taken_back(side, frozenset([item]))
        else:
            pairs = pairs.released([item])
            assert item not in pairs.answers
        matched = pairs.partner[pairs.partner >= 0]
        assert len(np.unique(matched)) == len(matched)
        assert all(pairs.partner[x] == y for x, y in pairs.answers.items())
        assert not set(np.flatnonzero(pairs.partner >= 0).tolist()) & pairs.aside[0]
        assert not set(matched.tolist()) & pairs.aside[1]
        copy = PairStep.from_json(json.loads(json.dumps(pairs.to_json())))
        assert copy.partner.tolist() == pairs.partner.tolist()
        assert (copy.answers, copy.aside) == (dict(pairs.answers), pairs.aside)
        assert copy.wrong == pairs.wrong
        assert all(pairs.partner[x] != y for x, y in pairs.wrong)


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_links_out_of_a_folder_are_not_followed(open_pairing, halves, tmp_path, kind):
    paths = halves[:2] if kind == "pictures" else write_texts(tmp_path)
    secret = tmp_path / ("secret.png" if kind == "pictures" else "secret.txt")
    if kind == "pictures":
        Image.new("RGB", (9, 9), "red").save(secret)
    else:
        secret.write_text("a secret")
    (paths[0] / f"link{secret.suffix}").symlink_to(secret)
    pairing = open_pairing(paths)
    (failed,) = pairing.items()["sides"][0]["failed"]
    assert failed["reason"] == "a link that leads out of the folder"
    # One that is made after the folder was listed.
    path = sorted(paths[0].iterdir())[0]
    pairing.close()
    pairing = open_pairing(paths, wait=False)
    assert pairing.jobs.wait(timeout=600)
    path.unlink()
    path.symlink_to(secret)
    if kind == "pictures":
        with pytest.raises(Refused, match="can no longer be read"):
            pairing.picture(0, 0, True)
    else:
        assert "secret" not in json.dumps(pairing.item(0, 0))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "x.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (3,)}\n",
        ),
        ("x.npy", b"\x93NUMPY\x01\x00"),
        ("x.parquet", b"PAR1" + bytes(50)),
        ("x.h5ad", b"\x89HDF\r\n\x1a\n" + bytes(50)),
        ("x.csv", b"\0" * 99),
        ("x.csv", b"a,b\nnan,1\n2,3\n"),
        ("../../x.csv", b"word\n"),
        ("x.txt", b"\xff\xfe\0"),
        ("x.png", b"GIF89a\xff\xff\xff\xff"),
    ],
    ids=[f"file {k}" for k in range(9)],
)
def test_damaged_files_are_listed_with_the_reason(open_pairing, tmp_path, name, content):
    async def pieces():
        yield content

    pairing = open_pairing()
    asyncio.run(pairing.add(0, name, pieces()))
    pairing.added()
    settle(pairing)
    (failed,) = pairing.items()["sides"][0]["failed"]
    assert ".." not in failed["name"]
    assert failed["reason"]
    assert str(tmp_path) not in failed["reason"]
    assert pairing.state()["missing"]
    assert not (tmp_path.parent / "x.csv").exists()
