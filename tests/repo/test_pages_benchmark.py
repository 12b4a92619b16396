"""The pictures that large walls are measured with, and how processes are watched."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("a source archive holds no benchmarks", allow_module_level=True)

from benchmarks.pages import _pictures, _scenes, _tour, screenshots  # noqa: E402

from unshuffle.images import read_folder  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are measured on Linux")


@pytest.fixture
def data(shared_data):
    return next(shared_data(name).parent for name in _pictures.SOURCES)


def test_pictures_of_pages_in_the_docs_show_what_may_be_passed_on():
    names = {path.stem for path in screenshots.IMAGES.glob("*.jpg")}
    assert names == {*screenshots.SHOTS, "collage"}  # the demo draws that one


def test_drawn_pictures_are_of_ten_kinds_and_the_same_each_time():
    drawn = list(_scenes.scenes(20, seed=1))
    assert sorted(kind for kind, _ in drawn) == sorted([*_scenes.KINDS, *_scenes.KINDS])
    for (kind, image), (same, again) in zip(drawn, _scenes.scenes(20, seed=1), strict=True):
        assert (kind, image.tobytes()) == (same, again.tobytes())
        assert image.size == (_scenes.SIDE, _scenes.SIDE)
    assert len({image.tobytes() for _, image in drawn}) == 20


def test_pictures_depend_on_their_number_alone(tmp_path, data):
    assert _pictures.make(tmp_path / "few", 6, data=data)[0] == 6
    assert _pictures.make(tmp_path / "few", 9, data=data)[0] == 3
    _pictures.make(tmp_path / "more", 9, data=data)
    for name in ("000/000000.jpg", "000/000008.jpg"):
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "more" / name).read_bytes()
    assert len({path.read_bytes() for path in (tmp_path / "few").rglob("*.jpg")}) == 9


def test_every_kind_of_damage_is_skipped_and_nothing_else(tmp_path, data, monkeypatch):
    monkeypatch.setattr(_pictures, "ONE_DAMAGED_IN", 2)
    _, n_damaged = _pictures.make(tmp_path, 80, data=data)
    kinds = _pictures._sources(data)[1]
    expected = {
        made.name: made.damage
        for made in (_pictures.recipe(number, 0, kinds) for number in range(80))
        if made.damage
    }
    assert set(expected.values()) == set(_pictures.DAMAGES)
    read = read_folder(tmp_path, size=16, recursive=True, cache=None)
    assert {name for name, _ in read.skipped} == set(expected)
    assert len(expected) == n_damaged


def test_the_table_names_every_picture(tmp_path, data):
    _pictures.write_table(tmp_path / "table.csv", 200, data=data)
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"000/{number:06}.jpg" for number in range(200)]
    assert {row["tint"] for row in rows} == set(_pictures.TINTS)
    assert {row["kind"] for row in rows} >= {"photo", "object", "truck"}


def test_memory_of_children_counts():
    from benchmarks.pages._memory import Watch, proportional, tree

    script = "kept = bytearray(60_000_000); print('kept', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"kept\n"
        assert child.pid in tree(os.getpid())
        with Watch(lambda: tree(os.getpid())) as watch:
            both = watch.now()
        assert both >= 60 + proportional(os.getpid()) / 2
        assert watch.peak >= both
        child.communicate(b"\n")
    assert proportional(child.pid) == 0.0


def test_only_finished_tasks_of_the_main_thread_count():
    named = {"name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "CrRendererMain"}}
    task = {"name": _tour.TASK, "pid": 7, "tid": 1, "dur": 5}
    others = [{**task, "pid": 8}, {**task, "tid": 2}, {**task, "name": "Paint"}]
    unfinished = {key: value for key, value in task.items() if key != "dur"}
    assert _tour._main_tasks([*others, task, named, unfinished], 7) == [task]
