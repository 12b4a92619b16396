import json
import os
import signal
import struct
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from unshuffle._pictures import decoding as _decoding
from unshuffle._pictures.decoding import MAX_PIXELS
from unshuffle.cli._app import app
from unshuffle.images import read_folder

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")


def png(width, height):
    """A PNG of one color: a few kilobytes on disk whatever its size."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(2_000_000), 9)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


@pytest.fixture
def folder(tmp_path):
    """One good picture, so that the folder as a whole can be read."""
    noise = np.random.RandomState(0).randint(0, 256, (60, 60, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "good.png")
    return tmp_path


def reason(folder, name):
    collection = read_folder(folder)
    assert "good.png" in collection.names
    return dict(collection.skipped)[name]


def test_pixel_ceiling_lies_below_the_one_of_pillow():
    assert MAX_PIXELS < Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000, 2_000_000_000])
def test_decompression_bombs_are_not_decoded(folder, side):
    # Above our ceiling, where Pillow warns, where Pillow refuses, and absurd.
    (folder / "bomb.png").write_bytes(png(side, side))
    assert "pixels" in reason(folder, "bomb.png")


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tiff", "webp"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_files_are_skipped(folder, suffix, share):
    Image.open(folder / "good.png").save(folder / f"whole.{suffix}")
    data = (folder / f"whole.{suffix}").read_bytes()
    (folder / f"cut.{suffix}").write_bytes(data[: int(len(data) * share)])
    assert reason(folder, f"cut.{suffix}")


def test_files_that_are_no_pictures_are_skipped_whatever_their_name(folder):
    (folder / "text.png").write_text("not a picture at all")
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "random.gif").write_bytes(os.urandom(4000))
    (folder / "page.webp").write_text("<html><script>alert(1)</script></html>")
    (folder / "notes.txt").write_text("notes")
    skipped = dict(read_folder(folder).skipped)
    assert set(skipped) == {"text.png", "empty.jpg", "random.gif", "page.webp", "notes.txt"}
    assert skipped["empty.jpg"] == "empty file"
    assert "not a picture" in skipped["text.png"]


def test_formats_off_the_list_are_skipped(folder):
    image = Image.open(folder / "good.png")
    for name in ("a.ppm", "a.pcx", "a.ico", "a.eps"):
        image.save(folder / name)
    (folder / "a.eps").rename(folder / "postscript.png")
    assert {"a.ppm", "a.pcx", "a.ico", "postscript.png"} <= dict(
        read_folder(folder).skipped
    ).keys()


def test_a_picture_under_a_wrong_name_is_still_a_picture(folder):
    (folder / "really-a-png.jpg").write_bytes((folder / "good.png").read_bytes())
    assert read_folder(folder).names == ["good.png", "really-a-png.jpg"]


def test_flipped_bits_never_crash(folder):
    rng = np.random.RandomState(0)
    for suffix in ("png", "jpg", "gif", "bmp", "tiff", "webp"):
        Image.open(folder / "good.png").save(folder / f"whole.{suffix}")
        data = np.frombuffer((folder / f"whole.{suffix}").read_bytes(), np.uint8)
        for trial in range(25):
            damaged = data.copy()
            damaged[rng.randint(0, min(len(data), 400), 6)] = rng.randint(0, 256, 6)
            (folder / f"damaged{trial}.{suffix}").write_bytes(damaged.tobytes())
    collection = read_folder(folder, n_jobs=2)
    assert len(collection) + len(collection.skipped) == 1 + 6 * 26
    assert collection.arrays.shape[1:] == (40, 40, 3)


@needs_links
def test_links_and_pipes_do_no_harm(folder):
    (folder / "link.png").symlink_to(folder / "good.png")
    (folder / "relative.png").symlink_to("good.png")
    (folder / "broken.png").symlink_to(folder / "nowhere.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    (folder / "up").symlink_to(folder)
    os.mkfifo(folder / "pipe.png")
    collection = read_folder(folder)
    assert collection.names == ["good.png", "link.png", "relative.png"]
    skipped = dict(collection.skipped)
    assert skipped.keys() == {"broken.png", "loop.png", "pipe.png"}
    assert skipped["broken.png"] == "a broken link"
    assert skipped["pipe.png"] == "not a regular file"


@needs_links
@pytest.mark.parametrize("where", [".", "sub"])
def test_endless_devices_are_skipped_among_pictures_and_texts(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    for kind in ("texts", "pictures"):
        place = tmp_path / kind / where
        place.mkdir(parents=True)
        ending = "txt" if kind == "texts" else "png"
        for i in range(3):
            if kind == "texts":
                (place / f"{i}.txt").write_text(("red blue", "red blue green", "one two")[i])
            else:
                Image.new("RGB", (8, 8), (80 * i, 0, 0)).save(place / f"{i}.png")
        os.mkfifo(place / f"pipe.{ending}")
        for name in ("zero", "stdin", "urandom"):
            (place / f"{name}.{ending}").symlink_to(f"/dev/{name}")
        (place / f"loop.{ending}").symlink_to(f"loop.{ending}")
        result = CliRunner().invoke(app, ["match", kind, kind, "--json"])
        assert result.exit_code == 0, result.output
        answer = json.loads(result.stdout)
        assert answer["n_x"] == 3
        reasons = {Path(each["name"]).stem: each["reason"] for each in answer["skipped"]["x"]}
        out = "a link that leads out of the folder"
        assert reasons == {
            **dict.fromkeys(("zero", "stdin", "urandom"), out),
            "pipe": "not a regular file",
            "loop": "a broken link",
        }


@needs_links
@pytest.mark.parametrize("recursive", [False, True])
def test_links_that_lead_out_of_the_folder_are_not_followed(folder, tmp_path_factory, recursive):
    outside = tmp_path_factory.mktemp("outside")
    secret = outside / "other.png"
    secret.write_bytes((folder / "good.png").read_bytes())
    (folder / "file.png").symlink_to(secret)
    (folder / "dots.png").symlink_to(os.path.join("..", outside.name, "other.png"))
    (folder / "folder").symlink_to(outside)
    (folder / "gone.png").symlink_to(outside / "nothing.png")
    (folder / "first.png").symlink_to(folder / "file.png")  # a link to a link that leads out
    # Not fooled by a neighbor whose name begins like the folder's own.
    beside = folder.with_name(folder.name + "-2")
    beside.mkdir()
    (beside / "other.png").write_bytes(secret.read_bytes())
    (folder / "beside.png").symlink_to(beside / "other.png")
    collection = read_folder(folder, recursive=recursive)
    assert collection.names == ["good.png"]
    names = {"file.png", "dots.png", "folder", "gone.png", "first.png", "beside.png"}
    assert dict(collection.skipped) == dict.fromkeys(names, "a link that leads out of the folder")


@needs_links
def test_a_folder_that_is_itself_a_link_is_read(folder, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "photos"
    link.symlink_to(folder)
    (folder / "again.png").symlink_to("good.png")
    assert read_folder(link).names == ["again.png", "good.png"]


@needs_links
def test_circles_of_links_are_not_walked(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "deep.png").write_bytes((folder / "good.png").read_bytes())
    (folder / "a" / "b" / "top").symlink_to(folder)
    (folder / "a" / "self").symlink_to(folder / "a")
    collection = read_folder(folder, recursive=True)
    assert collection.names == ["a/b/deep.png", "good.png"]
    assert collection.skipped == []


@contextmanager
def as_nobody():
    """As root every file can be read: play another user for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@needs_links
def test_files_and_folders_without_permission_are_skipped(folder):
    read_folder(folder)  # whatever is imported on the way is imported now
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "locked").mkdir()
        for name in ("good.png", "locked.png", "locked/inner.png"):
            (root / name).write_bytes((folder / "good.png").read_bytes())
        for path, mode in ((root, 0o755), (root / "locked.png", 0), (root / "locked", 0)):
            path.chmod(mode)
        with as_nobody():
            collection = read_folder(root, recursive=True)
        (root / "locked").chmod(0o700)
    assert collection.names == ["good.png"]
    assert collection.skipped == [
        ("locked", "permission denied"),
        ("locked.png", "permission denied"),
    ]


def test_without_its_reader_a_heic_picture_is_skipped_with_how_to_install_it(folder, monkeypatch):
    monkeypatch.setattr(_decoding, "_has_heic", lambda: False)
    head = b"\0\0\0\x18ftypheic" + bytes(200)
    (folder / "phone.HEIC").write_bytes(head)
    (folder / "renamed.jpg").write_bytes(head)
    (folder / "other.heif").write_text("no picture")
    skipped = dict(read_folder(folder).skipped)
    assert skipped.keys() == {"phone.HEIC", "renamed.jpg", "other.heif"}
    for why in skipped.values():
        assert why.endswith("pip install 'unshuffle[images]'")


def test_a_heic_reader_with_known_holes_is_not_used(folder, monkeypatch):
    heif = pytest.importorskip("pillow_heif", reason="pillow-heif is not installed")
    heif.register_heif_opener()
    Image.new("RGB", (64, 48)).save(folder / "phone.heic")
    monkeypatch.setattr(heif, "__version__", "1.8.0")
    _decoding._has_heic.cache_clear()
    try:
        skipped = dict(read_folder(folder).skipped)
    finally:
        monkeypatch.undo()
        _decoding._has_heic.cache_clear()
    assert skipped["phone.heic"].endswith("pip install 'unshuffle[images]'")


def test_with_its_reader_heic_pictures_are_read_and_damaged_ones_skipped(folder):
    heif = pytest.importorskip("pillow_heif", reason="pillow-heif is not installed")
    heif.register_heif_opener()
    Image.new("RGB", (64, 48), (200, 30, 40)).save(folder / "phone.heic", quality=95)
    data = (folder / "phone.heic").read_bytes()
    (folder / "renamed.jpg").write_bytes(data)
    (folder / "cut.heic").write_bytes(data[: len(data) // 2])
    (folder / "text.heic").write_text("no picture")
    collection = read_folder(folder)
    assert collection.names == ["good.png", "phone.heic", "renamed.jpg"]
    assert collection.sizes[1].tolist() == [48, 64]
    np.testing.assert_allclose(collection.arrays[1, 20, 20], (200, 30, 40), atol=6)
    assert {name for name, _ in collection.skipped} == {"cut.heic", "text.heic"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_stops_the_reading(folder, n_jobs):
    for i in range(300):
        (folder / f"{i}.png").write_bytes((folder / "good.png").read_bytes())
    calls = []

    def interrupt(done, total):
        calls.append(done)
        if done == 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        read_folder(folder, n_jobs=n_jobs, on_progress=interrupt)
    assert len(calls) < 200


def test_deep_sub_folders_are_read(folder):
    deep = folder / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / "x.png").write_bytes((folder / "good.png").read_bytes())
    assert read_folder(folder, recursive=True).names == ["a/b/c/d/e/f/g/h/x.png", "good.png"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are any bytes")
def test_file_names_may_be_any_bytes(folder):
    data = (folder / "good.png").read_bytes()
    for name in (b"\xff\xfe.png", b"new\nline.png", b"\x1b[31mred.png"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(data)
    assert len(read_folder(folder)) == 4


def test_a_folder_without_pictures_says_so(tmp_path):
    with pytest.raises(ValueError, match="holds no picture: it has no files"):
        read_folder(tmp_path)
    (tmp_path / "a.png").write_text("no")
    with pytest.raises(ValueError, match=r"1 file\(s\) were skipped\. 1 such as a\.png: not a"):
        read_folder(tmp_path)


def test_a_file_or_nothing_in_place_of_a_folder_says_so(folder):
    with pytest.raises(ValueError, match="not a folder"):
        read_folder(folder / "good.png")
    with pytest.raises(ValueError, match="There is no folder"):
        read_folder(folder / "missing")
