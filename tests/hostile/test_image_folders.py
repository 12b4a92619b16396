import os
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from unshuffle.images import MAX_PIXELS, read_folder


def png(width, height):
    """A PNG of one colour: a few kilobytes on disk whatever its size."""

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


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
def test_links_and_pipes_do_no_harm(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "other.png"
    outside.write_bytes((folder / "good.png").read_bytes())
    (folder / "link.png").symlink_to(outside)
    (folder / "broken.png").symlink_to(folder / "nowhere.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    (folder / "up").symlink_to(folder)
    os.mkfifo(folder / "pipe.png")
    collection = read_folder(folder)
    assert collection.names == ["good.png", "link.png"]
    assert {name for name, _ in collection.skipped} == {"broken.png", "loop.png", "pipe.png"}


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
    with pytest.raises(ValueError, match=r"1 file\(s\) were skipped, the first is a\.png: not a"):
        read_folder(tmp_path)


def test_a_file_or_nothing_in_place_of_a_folder_says_so(folder):
    with pytest.raises(ValueError, match="not a folder"):
        read_folder(folder / "good.png")
    with pytest.raises(ValueError, match="There is no folder"):
        read_folder(folder / "missing")
