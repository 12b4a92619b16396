import base64
import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unshuffle
from unshuffle._pictures import decoding as _decoding
from unshuffle.encoders import Encoder
from unshuffle.images import visible_files
from unshuffle.layout import Positions, rectangle_for


def agreement(grid):
    """Share of cells side by side or one above the other that show the same color."""
    kinds = grid % 4
    across = (kinds[:, 1:] == kinds[:, :-1])[(grid[:, 1:] >= 0) & (grid[:, :-1] >= 0)]
    down = (kinds[1:] == kinds[:-1])[(grid[1:] >= 0) & (grid[:-1] >= 0)]
    return np.concatenate([across, down]).mean()


def data_of(path):
    """Names, columns, cells and larger pictures of a page of one file."""
    text = path.read_text("ascii")
    elements = dict(re.findall(r'<script type="[^"]*" id="([^"]*)">(.*?)</script>\n', text))
    meta, items = json.loads(elements["meta"]), json.loads(elements["data-items-0"])
    columns = {
        heading: [column["values"][code] for code in _numbers(column["codes"])]
        for heading, column in zip(meta["headings"], items["columns"], strict=True)
    }
    return {
        **meta,
        "names": items["names"],
        "texts": columns,
        "cells": _numbers(json.loads(elements["data-cells"])),
        "pictures": [each for each in elements if each.startswith("picture-")],
    }


def _numbers(text):
    return np.frombuffer(base64.b64decode(text), "<i4").tolist()


def test_a_folder_becomes_a_page_with_like_beside_like(run, album, tmp_path):
    result = run("layout", album)
    assert result.exit_code == 0, result.output
    first, second, _ = result.stdout.splitlines()
    assert first == f"Read 40 files in 1 folder ({album}); skipped 0."
    assert second.startswith("Laid out 40 items on 5 x 8 cells: distance preservation 0.")
    assert "Page, to open in a browser: wall.html" in result.stdout
    page = data_of(tmp_path / "wall.html")
    assert sorted(page["cells"]) == list(range(40))
    assert page["names"] == [f"{i}.png" for i in range(40)]
    assert (len(page["pictures"]), page["neighbors"]) == (40, 8)
    # A random order has a quarter.
    assert agreement(np.reshape(page["cells"], (5, 8))) > 0.6
    assert "<h1>album</h1>" in (tmp_path / "wall.html").read_text()


def test_every_output_shows_the_same_layout(run, album, tmp_path):
    names = ["wall.html", "wall.png", "wall.jpg", "wall.csv", "wall.json"]
    arguments = [word for name in names for word in ("-o", name)]
    result = run("layout", album, *arguments, "--tile", 20)
    assert result.exit_code == 0, result.output
    loaded = [Positions.load(tmp_path / name) for name in names[3:]]
    np.testing.assert_array_equal(loaded[0].grid, loaded[1].grid)
    assert data_of(tmp_path / "wall.html")["cells"] == loaded[0].grid.ravel().tolist()
    first = loaded[0].grid[0, 0]
    with Image.open(tmp_path / "wall.png") as sheet:
        shown = np.array(sheet.getpixel((12, 12)))
    with Image.open(album / f"{first}.png") as picture:
        expected = np.asarray(picture).mean(axis=(0, 1))
    np.testing.assert_allclose(shown, expected, atol=12)
    details = json.loads((tmp_path / "wall.json").read_text())
    assert (details["n_items"], details["shape"]) == (40, [5, 8])


def test_exports_carry_no_metadata_of_the_pictures(run, tmp_path):
    (tmp_path / "told").mkdir()
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    for i in range(4):
        Image.new("RGB", (90, 90), (60 * i, 0, 0)).save(tmp_path / "told" / f"{i}.jpg", exif=exif)
    run("layout", "told", *("-o", "w.html", "-o", "w.png", "-o", "w.jpg", "-o", "w.webp"))
    for name in ("w.html", "w.png", "w.jpg", "w.webp"):
        assert b"secret" not in (tmp_path / name).read_bytes()
        assert b"Exif" not in (tmp_path / name).read_bytes()


def test_json_prints_one_object_and_writes_nothing_unasked(run, album, tmp_path):
    result = run("layout", album, "--json")
    answer = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert (answer["n_items"], answer["n_cells"], answer["interrupted"]) == (40, 40, False)
    assert 0 < answer["score"] <= 1
    assert len(answer["positions"]) == 40
    assert not list(tmp_path.glob("wall.*"))


def test_quiet_prints_nothing(run, album):
    result = run("layout", album, "-q")
    assert result.exit_code == 0
    assert result.output == ""


def test_the_layout_does_not_depend_on_how_it_is_drawn_or_computed(run, album):
    first = json.loads(run("layout", album, "--json").stdout)["positions"]
    for options in (("--tile", 90, "-o", "w.png"), ("--jobs", 1), ("--no-cache",)):
        assert json.loads(run("layout", album, "--json", *options).stdout)["positions"] == first


def test_letters_and_masks_are_filled(run, album, tmp_path):
    run("layout", album, "--text", "LO", "-o", "text.csv")
    letters = Positions.load("text.csv").grid
    np.testing.assert_array_equal(letters >= 0, unshuffle.images.text_mask("LO", 40))
    Image.fromarray(np.tri(9, dtype=np.uint8) * 255).convert("L").save("mask.png")
    result = run("layout", album, "--mask", "mask.png", "-o", "mask.csv")
    triangle = Positions.load("mask.csv").grid
    assert (triangle >= 0).sum() == 40
    assert "on the 4" in result.stdout
    assert re.search(r"cells of a shape, \d+ x \d+", result.stdout)


def test_the_other_parts_of_a_mask_are_filled_where_asked_for(run, album):
    Image.fromarray(np.pad(np.ones((3, 3), dtype=np.uint8) * 255, 2)).save("hole.png")
    result = run("layout", album, "--mask", "hole.png", "-o", "ring.csv")
    assert result.exit_code == 0, result.output
    assert (Positions.load("ring.csv").grid[2:5, 2:5] < 0).all()
    result = run("layout", album, "--mask", "hole.png", "--invert", "-o", "square.csv")
    assert result.exit_code == 0, result.output
    assert (Positions.load("square.csv").grid >= 0).sum() == 40
    assert run("layout", album, "--invert").stderr == (
        "Error: --invert needs --mask. Give a mask, or leave --invert out.\n"
    )


def test_the_classic_quality_compares_as_the_paper_does(run, album):
    answer = json.loads(run("layout", album, "--quality", "classic", "--json").stdout)
    assert answer["kernel"] == "rbf"


def test_fewer_items_than_cells_leave_cells_empty(run, album):
    result = run("layout", album, "--shape", "7x7", "-o", "wall.csv")
    assert "on 7 x 7 cells, 9 left empty" in result.stdout
    grid = Positions.load("wall.csv").grid
    assert grid.shape == (7, 7)
    assert sorted(grid[grid >= 0]) == list(range(40))


def test_a_summary_shows_some_of_each_kind(run, album, tmp_path):
    result = run("layout", album, "--summary", 4, "-o", "wall.html", "-o", "wall.csv")
    assert "Laid out 4 of 40 items on 2 x 2 cells" in result.stdout
    names = Positions.load("wall.csv").names
    assert {int(name[:-4]) % 4 for name in names} == {0, 1, 2, 3}
    page = data_of(tmp_path / "wall.html")
    assert page["names"] == names
    assert page["texts"] == {"stands for": ["10"] * 4}


@pytest.mark.parametrize("features", ["color", "texture", "words"])
def test_pictures_are_compared_by_what_is_asked_for(run, album, features):
    answer = json.loads(run("layout", album, "--features", features, "--json").stdout)
    assert answer["features"] == features
    assert answer["kernel"] == ("chi2" if features == "words" else "linear")


def test_several_kinds_are_compared_at_once(run, album, tmp_path):
    np.save("own.npy", np.arange(40.0)[:, np.newaxis])
    for options in (
        ["--features", "texture+own.npy"],
        ["--features", "texture", "--features", "own.npy"],
    ):
        answer = json.loads(run("layout", album, *options, "--json").stdout)
        assert (answer["features"], answer["kernel"]) == ("texture+own.npy", "linear")
    result = run("layout", album, "--features", "texture+shape")
    assert result.exit_code == 2
    assert "--features shape is not known" in result.stderr
    assert "choose from: color, texture, words, content, MODEL.onnx, timm:NAME" in result.stderr


class Brightness(Encoder):
    """Vectors that order pictures, or texts, by one number."""

    def __init__(self, name, items):
        super().__init__(name, key=name, side=16 if items == "images" else None)
        self.items, self.n_encoded = items, 0

    def _encode_batch(self, items):
        self.n_encoded += len(items)
        images = self.items == "images"
        turns = [each.mean() / 255 if images else len(each) / 100 for each in items]
        return np.stack([np.cos(turns), np.sin(turns)], axis=1)


@pytest.fixture
def encoders(monkeypatch):
    """The encoders that commands load from here on."""
    loaded = []

    def load(name, device):
        texts = name.startswith("sentence-transformers:")
        loaded.append(Brightness(name, "texts" if texts else "images"))
        return loaded[-1]

    for place in ("images._describe", "cli._inputs"):
        monkeypatch.setattr(f"unshuffle.{place}.load_encoder", load)
    return loaded


def test_encoders_read_the_files_and_keep_their_vectors(run, album, encoders):
    options = ["--features", "timm:tiny", "--shape", "1x40", "-o", "wall.csv"]
    result = run("layout", album, *options)
    assert result.exit_code == 0, result.output
    light = [np.asarray(Image.open(path)).mean() for path in visible_files(album)]
    order = np.argsort(np.argsort(light))[Positions.load("wall.csv").grid.ravel()]
    assert np.abs(np.diff(order)).mean() < 4
    assert [each.n_encoded for each in encoders] == [40]
    assert run("layout", album, *options).exit_code == 0
    assert [each.n_encoded for each in encoders] == [40, 0]
    assert run("layout", album, *options, "--no-cache").exit_code == 0
    assert [each.n_encoded for each in encoders] == [40, 0, 40]


def test_content_is_mentioned_where_it_is_installed(run, album, monkeypatch):
    for installed in (True, False):
        monkeypatch.setattr("unshuffle.cli._layout.has_content", lambda here=installed: here)
        said = run("layout", album, "-o", "wall.csv").stdout
        assert ("--features content puts" in said) == installed
    monkeypatch.setattr("unshuffle.cli._layout.has_content", lambda: True)
    for options in (["-q"], ["--features", "texture"]):
        assert "features content" not in run("layout", album, "-o", "wall.csv", *options).stdout


@pytest.fixture
def poems(tmp_path):
    """Twelve texts on two subjects, one of them in a folder of its own."""
    subjects = {"sea": "waves salt harbor sail tide", "bread": "flour oven yeast crust dough"}
    (tmp_path / "poems" / "more").mkdir(parents=True)
    for name, words in subjects.items():
        listed = words.split()
        for i in range(6):
            some = " ".join([*listed[: 2 + i % 4], f"{name}{i}"])
            folder = tmp_path / "poems" / ("more" if i == 5 else "")
            (folder / f"{name}{i}.txt").write_text(f"The {name}\n\n{some}")
    return tmp_path / "poems"


def test_texts_on_one_subject_hang_together(run, poems, tmp_path):
    result = run("layout", poems, "--shape", "2x6")
    assert result.exit_code == 0, result.output
    assert "Read 12 files in 2 folders" in result.stdout
    page = data_of(tmp_path / "wall.html")
    assert sorted(page["names"])[:2] == ["bread0.txt", "bread1.txt"]
    assert set(page["texts"]["title"]) == {"The sea", "The bread"}
    assert page["noun"] == ["text", "texts"]
    run("layout", poems, "--summary", 2)
    page = data_of(tmp_path / "wall.html")
    assert page["texts"]["stands for"] == ["6", "6"]
    answer = json.loads(run("layout", poems, "--shape", "1x12", "--json").stdout)
    assert (answer["features"], answer["kernel"], answer["n_read"]) == ("tfidf", "text", 12)
    run("layout", poems, "--shape", "1x12", "-o", "wall.csv", "-o", "wall.png")
    wall = Positions.load("wall.csv")
    subjects = ["sea" in wall.names[i] for i in wall.grid.ravel()]
    assert np.count_nonzero(np.diff(subjects)) == 1
    with Image.open("wall.png") as sheet:
        assert sheet.size[1] >= 128, "letters are hard to read below"


def test_texts_are_compared_by_encoders_and_arrays(run, poems, encoders):
    own = np.arange(12.0)[:, np.newaxis]
    np.save("own.npy", own)
    name = "sentence-transformers:tiny"
    for features, kernel in (
        (name, "linear"),
        ("own.npy", "linear"),
        (f"tfidf+{name}", ["text", "linear"]),
    ):
        answer = json.loads(run("layout", poems, "--features", features, "--json").stdout)
        assert (answer["features"], answer["kernel"]) == (features, kernel)
        summary = run("layout", poems, "--features", features, "--summary", 4, "--json")
        assert json.loads(summary.stdout)["n_items"] == 4
    for features in ("color", "timm:tiny"):
        result = run("layout", poems, "--features", features)
        assert result.exit_code == 2
        assert f"--features {features} does not suit" in result.stderr
        assert "choose from: tfidf, sentence-transformers:NAME, FILE.npy." in result.stderr


def test_both_commands_take_encoders(run, poems, pictures, encoders):
    name = "sentence-transformers:tiny"
    answer = json.loads(
        run("match", poems, poems, "--features", name, "--json", "--no-trust").stdout
    )
    assert (answer["kernel"], answer["features"]) == ("rbf", [name])
    both = run("match", poems, poems, "--features", f"tfidf+{name}", "--json", "--no-trust").stdout
    assert json.loads(both)["kernel"] == ["text", "rbf"]
    options = ["--features", "pixels+timm:tiny", "--json", "--no-trust"]
    answer = json.loads(run("match", *pictures[:2], *options).stdout)
    assert (answer["kernel"], answer["features"]) == (["rbf", "rbf"], ["pixels", "timm:tiny"])
    assert encoders[-1].n_encoded == 60
    for folder, features in ((poems, "timm:tiny"), (pictures[0], name)):
        result = run("match", folder, folder, "--features", features)
        assert result.exit_code == 2
        assert f"--features {features} does not suit" in result.stderr


def test_features_of_ones_own_decide(run, album, tmp_path):
    np.save("own.npy", np.arange(40.0)[:, np.newaxis])
    run("layout", album, "--features", "own.npy", "--shape", "1x40", "-o", "wall.csv")
    order = Positions.load("wall.csv").grid.ravel()
    assert np.abs(np.diff(order)).mean() < 4


def test_frozen_items_stay_where_they_were_put(run, album):
    fixed = {"3.png": (0, 0), "17.png": (4, 7), "8.png": (2, 3)}
    lines = [f"{name},{row},{column}" for name, (row, column) in fixed.items()]
    for content in ("\n".join(lines), "name,row,column\n" + "\n".join(lines)):
        with open("cells.csv", "w") as file:
            file.write(content)
        result = run("layout", album, "--frozen", "cells.csv", "-o", "wall.csv")
        assert result.exit_code == 0, result.output
        grid = Positions.load("wall.csv").grid
        for name, place in fixed.items():
            assert grid[place] == int(name[:-4])


def test_written_positions_can_be_frozen_again(run, album):
    run("layout", album, "--shape", "6x7", "-o", "wall.csv")
    before = Positions.load("wall.csv").grid
    options = ("--frozen", "wall.csv", "--seed", 5, "-o", "again.csv")
    run("layout", album, "--shape", "6x7", *options)
    np.testing.assert_array_equal(Positions.load("again.csv").grid, before)


def test_pictures_added_later_leave_all_others_in_place(run, album):
    later = [album / f"{i}.png" for i in (3, 20, 31)]
    aside = album.parent / "aside"
    aside.mkdir()
    for path in later:
        path.rename(aside / path.name)
    run("layout", album, "--shape", "5x8", "-o", "old.csv")
    before = Positions.load("old.csv")
    assert len(before.names) == 37
    for path in later:
        (aside / path.name).rename(path)
    # The removed one must not leave its number to another.
    (album / "0.png").unlink()
    result = run("layout", album, "--shape", "6x8", "--frozen", "old.csv", "-o", "new.csv")
    assert result.exit_code == 0, result.output
    assert "old.csv places 1 item that album does not have any more (0.png)" in " ".join(
        result.stderr.replace(str(album), "album").split()
    )
    after = Positions.load("new.csv")
    assert len(after.names) == 39
    place = {name: cell for cell, name in np.ndenumerate(named(after))}
    for cell, name in np.ndenumerate(named(before)):
        assert name in ("", "0.png") or place[name] == cell
    assert {path.name for path in later} <= place.keys()


def named(positions):
    """Name of the item in each cell."""
    return np.array([*positions.names, ""], dtype=object)[positions.grid]


def test_tables_are_laid_out_by_their_rows(run, tables):
    result = run("layout", tables[0])
    assert result.exit_code == 0, result.output
    loaded = Positions.load("wall.csv")
    assert loaded.names == [f"a{i}" for i in range(40)]
    assert sorted(loaded.grid.ravel()) == list(range(40))


def test_the_column_that_names_the_rows_is_said_and_can_be_chosen(run, tmp_path):
    rng = np.random.RandomState(0)
    rows = [f"{100 + i},s{i % 9},{rng.rand():.3f},{rng.rand():.3f}" for i in range(9)]
    (tmp_path / "songs.csv").write_text("\n".join(["nr,Name,x,y", *rows]) + "\n")
    result = run("layout", "songs.csv")
    assert "songs.csv: 9 rows; first line is the heading; column 'Name' names" in result.stderr
    assert "'nr' left out (also names); 2 columns compared: x, y." in result.stderr
    assert Positions.load("wall.csv").names[:2] == ["s0", "s1"]
    answer = json.loads(run("layout", "songs.csv", "--id", "nr", "--json").stdout)
    assert (answer["table"]["names"], answer["table"]["n_columns"]) == ("nr", 2)
    assert run("layout", "songs.csv", "-q").output == ""


@pytest.mark.parametrize("scale", ["1e160", "1e300"])
def test_tables_of_huge_numbers_are_laid_out(run, tmp_path, scale):
    rows = [f"{i % 4}{scale[1:]},{i * i % 7}{scale[1:]}" for i in range(12)]
    (tmp_path / "huge.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    answer = json.loads(run("layout", "huge.csv", "--json").stdout)
    (tmp_path / "small.csv").write_text("\n".join(["x,y", *rows]).replace(scale[1:], "") + "\n")
    small = json.loads(run("layout", "small.csv", "--json").stdout)
    assert answer["positions"] == small["positions"]


def test_positions_for_spreadsheets_are_escaped_where_asked(run, album):
    (album / "0.png").rename(album / "=1+1.png")
    (album / "=broken.png").write_bytes(b"no picture")
    run("layout", album, "-o", "wall.csv", "--spreadsheet")
    assert "'=1+1.png" in Positions.load("wall.csv").names
    assert ",'=broken.png," in Path("wall.skipped.csv").read_text()
    run("collage", album / "1.png", album, "-o", "wall.csv", "--shape", "5x5", "--spreadsheet")
    assert "'=1+1.png" in Positions.load("wall.csv").names
    run("collage", album / "1.png", album, "-o", "wall.csv", "--shape", "5x5")
    assert "=1+1.png" in Positions.load("wall.csv").names


def test_sub_folders_are_read_unless_told_otherwise(run, album):
    (album / "more" / "deep").mkdir(parents=True)
    for name, place in (("0.png", "more"), ("1.png", "more/deep"), ("2.png", "more/deep")):
        (album / name).rename(album / place / name)
    (album / "more" / "notes.txt").write_text("no picture")
    result = run("layout", album)
    assert result.stdout.startswith(f"Read 40 files in 3 folders ({album}); skipped 1.\n")
    answer = json.loads(run("layout", album, "--json").stdout)
    names = [row["name"] for row in answer["positions"]]
    assert {"more/0.png", "more/deep/1.png", "more/deep/2.png"} < set(names)
    assert (answer["n_read"], answer["n_folders"]) == (40, 3)
    result = run("layout", album, "--no-recursive")
    assert result.stdout.startswith(f"Read 37 files in 1 folder ({album}); skipped 0.\n")


def spoil(folder):
    """Files of several kinds that cannot be read; gives their names."""
    (folder / "sub").mkdir()
    for i in range(5):
        (folder / "sub" / f"photo{i}.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(200))
        (folder / f"notes{i}.txt").write_text("no picture")
        # Cut at different places, for which the decoder has different words.
        data = (folder / f"{i}.png").read_bytes()
        (folder / f"cut{i}.png").write_bytes(data[: 200 + 999 * i])
    (folder / "empty.jpg").write_bytes(b"")
    kinds = ("sub/photo{}.heic", "notes{}.txt", "cut{}.png")
    return sorted(["empty.jpg", *(kind.format(i) for kind in kinds for i in range(5))])


def test_skipped_files_are_grouped_by_reason_and_hints_come_first(run, album, monkeypatch):
    monkeypatch.setattr(_decoding, "_has_heic", lambda: False)
    spoil(album)
    lines = run("layout", album).stderr.splitlines()
    assert lines[0] == f"Skipped 16 files in {album}:"
    assert re.fullmatch(
        r"  5 files \(sub/photo0.heic, sub/photo1.heic, sub/photo2.heic, \.\.\.\): a HEIC "
        r"picture; to read it: .*pip install 'unshuffle\[images\]'",
        lines[1],
    )
    assert {re.match(r"  \d+ files? \(.*?\)", line)[0] for line in lines[2:]} == {
        "  5 files (cut0.png, cut1.png, cut2.png, ...)",
        "  5 files (notes0.txt, notes1.txt, notes2.txt, ...)",
        "  1 file (empty.jpg)",
    }


def test_all_skipped_files_are_listed_beside_the_output_and_in_json(run, album, tmp_path):
    names = spoil(album)
    result = run("layout", album, "-o", "wall.png", "-o", "wall.json")
    assert "\nSkipped files: wall.skipped.csv\n" in result.stdout
    with open("wall.skipped.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["name"] for row in rows) == names
    assert all(row["reason"] for row in rows)
    assert (tmp_path / "wall.skipped.csv").read_text().startswith("collection,name,reason\n")
    written = json.loads((tmp_path / "wall.json").read_text())
    assert sorted(each["name"] for each in written["skipped"]) == names
    answer = json.loads(run("layout", album, "--json").stdout)
    assert answer["skipped"] == written["skipped"]
    assert answer["skipped_list"] is None


def test_where_nothing_is_skipped_no_list_is_written_and_an_old_one_goes(run, album, tmp_path):
    broken, listed = album / "broken.jpg", tmp_path / "wall.skipped.csv"
    broken.write_text("no picture")
    run("layout", album, "-q")
    assert listed.exists()
    broken.unlink()
    run("layout", album, "-q")
    assert not listed.exists()
    listed.write_text("a file of the user's own\n")
    run("layout", album, "-q")
    broken.write_text("no picture")
    result = run("layout", album)
    assert "wall.skipped.csv is not a list of skipped files" in result.stderr
    assert listed.read_text() == "a file of the user's own\n"


def test_a_wall_written_into_the_folder_itself_is_not_counted_the_next_time(run, album):
    (album / "notes.txt").write_text("no picture")
    for _ in range(3):
        result = run("layout", album, "-o", album / "wall.html", "-o", album / "wall.csv")
        assert result.exit_code == 0, result.output
        assert "Skipped 1 file in" in result.stderr
    assert (album / "wall.skipped.csv").exists()


def test_interrupt_writes_what_there_is(run, album, monkeypatch, tmp_path):
    class Interrupted(unshuffle.GridLayout):
        def fit(self, X, y=None, **options):
            super().fit(X, y, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "GridLayout", Interrupted)
    result = run("layout", album, "-o", "wall.html", "-o", "wall.csv")
    assert result.exit_code == 130
    assert len(Positions.load("wall.csv").names) == 40
    assert (tmp_path / "wall.html").exists()
    assert "Interrupted: this is the best layout found so far" in result.stderr


def test_interrupt_before_there_is_anything_writes_nothing(run, album, monkeypatch, tmp_path):
    class Interrupted(unshuffle.GridLayout):
        def fit(self, X, y=None, **options):
            raise KeyboardInterrupt

    monkeypatch.setattr(unshuffle, "GridLayout", Interrupted)
    result = run("layout", album)
    assert result.exit_code == 130
    assert result.stderr == "Error: Interrupted before there was a result; nothing was written.\n"
    assert not (tmp_path / "wall.html").exists()


@pytest.mark.parametrize(
    ("n_items", "shape"),
    [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (100, (10, 10)), (320, (16, 20)), (40, (5, 8))],
)
def test_walls_are_rectangle_for(n_items, shape):
    assert rectangle_for(n_items) == shape


def test_walls_of_more_than_a_trillion_are_refused():
    rows, columns = rectangle_for(10**12 - 11)  # a prime
    assert 0 <= rows * columns - (10**12 - 11) < columns
    with pytest.raises(ValueError, match="`n_items` must be from 1 to 1000000000000, got 1000000"):
        rectangle_for(10**18)


def test_walls_of_any_number_have_room_and_few_empty_cells():
    for n_items in range(1, 400):
        rows, columns = rectangle_for(n_items)
        assert n_items <= rows * columns < n_items + columns
        assert rows <= columns <= max(2, 16 / 9 * rows + 1)


def test_a_grid_without_room_on_a_sheet_is_refused_before_the_work(run, album):
    result = run("layout", album, "--shape", "1x20000", "-o", "wall.csv", "-o", "wall.png")
    assert result.exit_code == 2
    assert "1 x 20,000 cells is too large for wall.png" in result.stderr


def test_a_summary_is_advised_only_where_it_can_be_made(run, album):
    two, one = (run("layout", album, "--shape", shape) for shape in ("1x2", "1x1"))
    assert re.search("2 cells for .* --summary 2", two.stderr)
    assert "1 cell for" in one.stderr
    assert "--summary" not in one.stderr


def test_a_name_without_an_ending_is_a_folder(run, album, tmp_path):
    result = run("layout", album, "-o", "wall/")
    assert result.exit_code == 0, result.output
    assert "Page, to open in a browser: wall/index.html" in result.stdout
    before = (tmp_path / "wall" / "index.html").read_bytes()
    assert run("layout", album, "-o", "wall", "--shape", "4x10").exit_code == 0
    assert (tmp_path / "wall" / "index.html").read_bytes() != before


def test_folders_that_hold_something_else_are_not_replaced(run, album, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for output, message in (
        ("mine", "the folder holds other files, which would be lost"),
        (album / "wall", "one is inside the other"),
        (album, "the folder holds other files"),
    ):
        result = run("layout", album, "-o", output)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert "letter.txt" in run("layout", album, "-o", "mine").stderr
    assert os.listdir(tmp_path / "mine") == ["letter.txt"]
    assert len(os.listdir(album)) == 40


def test_a_table_and_folders_tell_more_about_the_pictures(run, album, tmp_path):
    (album / "red").mkdir()
    for i in range(0, 40, 4):
        os.rename(album / f"{i}.png", album / "red" / f"{i}.png")
    lines = [f"{i}.png,{['red', 'green', 'blue', 'gray'][i % 4]},{i * 1.5}" for i in range(39)]
    (tmp_path / "table.csv").write_text("file,color,size\n" + "\n".join(lines))
    result = run("layout", album, "--data", "table.csv", "--labels", "color", "--link")
    assert result.exit_code == 0, result.output
    assert "39 of 40 pictures have a row" in result.stderr
    page = data_of(tmp_path / "wall.html")
    told = page["texts"]
    names = [name.rpartition("/") for name in page["names"]]
    assert list(told) == ["color", "size", "folder"]
    assert told["folder"] == [folder or "." for folder, _, _ in names]
    for (_, _, name), color in zip(names, told["color"], strict=True):
        assert color == ("" if name == "39.png" else lines[int(name[:-4])].split(",")[1])
    assert {each["text"] for each in page["regions"]} >= {"red", "green", "blue"}
    links = re.search(r'id="data-links-0">(.*?)</script>', (tmp_path / "wall.html").read_text())
    assert {"album/1.png", "album/red/0.png"} <= set(json.loads(links[1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "none.csv"], "There is no file none.csv (--data)"),
        (["--data", "album"], "is a folder"),
        (["--labels", "kind"], "--labels 'kind' names a column, and no table is given"),
        (["--labels", ""], "--labels is empty"),
        (["--labels", "folder"], "--labels folder has nothing to tell apart"),
        (["--labels", "kind", "-o", "wall.csv"], "--labels is for pages"),
        (["--link", "-o", "wall.png"], "--link is for pages"),
        (["--id", "file"], "--id, --no-id, --header and --key are for tables"),
    ],
)
def test_options_of_pages_that_do_not_fit_are_refused(run, album, tmp_path, options, message):
    result = run("layout", album, *options)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert not list(tmp_path.glob("wall*"))


def test_a_page_of_many_pictures_suggests_a_folder(run, album, monkeypatch):
    monkeypatch.setattr("unshuffle.cli._layout.MOST_IN_FILE", 30)
    assert "-o wall/ writes a folder instead" in run("layout", album).stderr
    assert "instead" not in run("layout", album, "-o", "wall").stderr


def test_a_table_is_laid_out_on_a_gpu(run, gpu, tmp_path):
    np.save(tmp_path / "colors.npy", np.random.default_rng(0).random((30, 3)))
    result = run("layout", "colors.npy", "--device", gpu, "--quality", "fast", "-o", "wall.csv")
    assert result.exit_code == 0, result.output
    assert sorted(Positions.load(tmp_path / "wall.csv").grid.ravel()) == list(range(30))


def test_a_missing_device_is_an_error_before_anything_is_read(run, album):
    result = run("layout", album, "--device", "tpu")
    assert result.exit_code == 2
    assert "`device` must be None" in result.stderr
    assert "Read" not in result.stdout
