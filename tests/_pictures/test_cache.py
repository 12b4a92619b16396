import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from unshuffle._pictures import cache as _cache
from unshuffle._pictures import reading as _reading
from unshuffle._pictures.decoding import Decoded
from unshuffle.images import default_cache, read_folder


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.RandomState(0)
    for i in range(4):
        noise = rng.randint(0, 256, (30, 50, 3)).astype(np.uint8)
        Image.fromarray(noise).save(folder / f"{i}.jpg")
    return folder


@pytest.fixture
def kept(photos, tmp_path):
    """A cache that holds the photos already."""
    read_folder(photos, cache=tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture
def decoded(monkeypatch):
    """Names of the files that are decoded from here on."""
    names = []

    def read(path, **options):
        names.append(path.name)
        return real(path, **options)

    real = _reading.decode
    monkeypatch.setattr(_reading, "decode", read)
    return names


def entries(folder):
    return sorted(folder.glob("*.thumb"))


def test_the_second_reading_decodes_nothing_and_gives_the_same(photos, kept, decoded):
    again = read_folder(photos, cache=kept)
    assert decoded == []
    fresh = read_folder(photos)
    np.testing.assert_array_equal(again.arrays, fresh.arrays)
    np.testing.assert_array_equal(again.sizes, fresh.sizes)
    assert again.names == fresh.names
    assert again.arrays.flags.writeable


@pytest.mark.parametrize("options", [{"size": 41}, {"size": (40, 20)}, {"fit": "crop"}])
def test_another_size_or_fit_is_read_anew(photos, kept, decoded, options):
    found = read_folder(photos, cache=kept, **options)
    assert len(decoded) == 4
    np.testing.assert_array_equal(found.arrays, read_folder(photos, **options).arrays)


def test_a_changed_picture_is_read_anew(photos, kept, decoded):
    Image.new("RGB", (50, 30), "red").save(photos / "2.jpg")
    found = read_folder(photos, cache=kept)
    assert decoded == ["2.jpg"]
    np.testing.assert_allclose(found.arrays[2, 20, 20], (254, 0, 0), atol=2)


def test_a_touched_picture_is_read_anew(photos, kept, decoded):
    os.utime(photos / "1.jpg", ns=(10**18, 10**18))
    read_folder(photos, cache=kept)
    assert decoded == ["1.jpg"]


@pytest.mark.parametrize("same_inode", [True, False])
def test_another_picture_with_the_size_and_time_of_the_old_one_is_read_anew(
    photos, kept, decoded, same_inode
):
    old = photos / "1.jpg"
    before, n_bytes = old.stat(), old.stat().st_size
    other = (photos / "2.jpg").read_bytes()
    # What follows the end of a picture is ignored.
    data = other[:n_bytes].ljust(n_bytes, b"\0")
    if not same_inode:
        old.unlink()
    old.write_bytes(data)
    os.utime(old, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = read_folder(photos, cache=kept)
    assert decoded == ["1.jpg"]
    np.testing.assert_array_equal(found.arrays, read_folder(photos).arrays)


def test_the_ends_of_a_file_tell_it_from_another(tmp_path, monkeypatch):
    real = os.fstat

    def same_times(handle):
        fields = dict.fromkeys(("st_mtime_ns", "st_ctime_ns"), 0)
        return SimpleNamespace(st_size=real(handle).st_size, **fields)

    monkeypatch.setattr(_cache.os, "fstat", same_times)
    path, keys = tmp_path / "a.bmp", set()
    middle = bytes(100_000)
    for data in (b"a" + middle + b"a", b"b" + middle + b"a", b"a" + middle + b"b"):
        path.write_bytes(data)
        keys.add(_cache.picture_key(path, 40, 40, "crop"))
    assert len(keys) == 3


def test_parts_of_a_killed_run_are_removed_once_they_are_old(photos, kept):
    young, old = kept / "unshuffle-a.thumb-part", kept / "unshuffle-b.thumb-part"
    for part in (young, old):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    Image.new("RGB", (50, 30), "red").save(photos / "new.png")
    read_folder(photos, cache=kept)
    assert young.exists()
    assert not old.exists()


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "empty":
        data = b""
    elif how == "cut":
        data = data[:-100]
    elif how == "longer":
        data += b"more"
    elif how == "flipped pixel":
        data[len(data) // 2] ^= 1
    elif how == "flipped size":
        data[len(_cache._MAGIC)] ^= 1
    elif how == "foreign":
        data = os.urandom(len(data))
    elif how == "pickle":
        data = b"cos\nsystem\n(S'exit 1'\ntR.".ljust(len(data))
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "how", ["empty", "cut", "longer", "flipped pixel", "flipped size", "foreign", "pickle"]
)
def test_damaged_and_foreign_entries_are_not_trusted_and_are_mended(photos, kept, decoded, how):
    fresh = read_folder(photos)
    decoded.clear()
    damage(entries(kept)[0], how)
    np.testing.assert_array_equal(read_folder(photos, cache=kept).arrays, fresh.arrays)
    assert len(decoded) == 1
    read_folder(photos, cache=kept)
    assert len(decoded) == 1


def test_an_entry_of_another_picture_size_under_the_same_name_is_not_trusted(photos, kept):
    first = entries(kept)[0]
    pixels = np.zeros((20, 80, 3), np.uint8)  # as many bytes, laid out differently
    _cache.PictureCache(kept).store(first.stem, Decoded(pixels, (1, 1)))
    fresh = read_folder(photos)
    np.testing.assert_array_equal(read_folder(photos, cache=kept).arrays, fresh.arrays)


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
def test_links_pipes_and_folders_in_place_of_entries_do_no_harm(photos, kept, tmp_path):
    link, pipe, folder, _ = entries(kept)
    (tmp_path / "elsewhere").write_bytes(link.read_bytes())
    for path in (link, pipe, folder):
        path.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    folder.mkdir()
    with pytest.warns(UserWarning, match="Thumbnails cannot be kept"):
        collection = read_folder(photos, cache=kept)
    np.testing.assert_array_equal(collection.arrays, read_folder(photos).arrays)


def test_a_cache_that_cannot_be_written_costs_one_warning(photos, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="cannot be kept in .*file") as warned:
        collection = read_folder(photos, cache=tmp_path / "file", n_jobs=2)
    assert len(warned) == 1
    assert len(collection) == 4


def test_skipped_files_are_skipped_again(photos, kept):
    (photos / "text.jpg").write_text("no picture")
    for _ in range(2):
        assert [name for name, _ in read_folder(photos, cache=kept).skipped] == ["text.jpg"]
    assert len(entries(kept)) == 4


def test_the_cache_does_not_grow_without_bound(photos, kept, monkeypatch):
    n_bytes = entries(kept)[0].stat().st_size
    for age, path in enumerate(entries(kept)):
        os.utime(path, ns=(age * 10**9, age * 10**9))
    oldest, *rest = entries(kept)
    (kept / "letter.txt").write_text("not a thumbnail")
    (kept / "unshuffle-abandoned.thumb-part").write_bytes(bytes(100))
    os.utime(kept / "unshuffle-abandoned.thumb-part", ns=(0, 0))
    monkeypatch.setattr(_cache, "MAX_CACHE_BYTES", 4 * n_bytes)
    # From a folder of its own, so that the others are not looked for and keep their age.
    other = photos.parent / "other"
    other.mkdir()
    Image.new("RGB", (50, 30), "red").save(other / "new.png")
    read_folder(other, cache=kept)
    left = entries(kept)
    assert oldest not in left
    assert set(rest) < set(left)
    assert len(left) == 4
    assert (kept / "letter.txt").exists()
    assert not (kept / "unshuffle-abandoned.thumb-part").exists()


def test_what_this_session_used_is_kept_beyond_the_limit(photos, kept, monkeypatch):
    stale = [kept / f"{i:040x}.thumb" for i in range(3)]
    for path in stale:
        path.write_bytes(bytes(100))
        os.utime(path, ns=(0, 0))
    monkeypatch.setattr(_cache, "MAX_CACHE_BYTES", 0)
    Image.new("RGB", (50, 30), "red").save(photos / "new.png")
    collection = read_folder(photos, cache=kept, previews=32)
    assert len(entries(kept)) == 4 + 5
    assert not any(path.exists() for path in stale)
    assert all(collection.previews)


@pytest.mark.parametrize("how", ["empty", "cut", "longer", "flipped pixel", "foreign"])
def test_damaged_previews_are_not_trusted_and_are_mended(photos, tmp_path, decoded, how):
    kept = tmp_path / "new"
    collection = read_folder(photos, cache=kept, previews=320)
    before = list(collection.previews)
    decoded.clear()
    damage(entries(kept)[0], how)
    for _ in range(2):
        assert list(collection.previews) == before
    assert len(decoded) == 1


def test_a_picture_that_takes_too_much_memory_is_skipped_with_that_reason(photos, monkeypatch):
    def fail(path, **options):
        if path.name == "1.jpg":
            raise MemoryError
        return real(path, **options)

    real = _reading.decode
    monkeypatch.setattr(_reading, "decode", fail)
    assert read_folder(photos).skipped == [("1.jpg", "it takes more memory than there is")]


def test_no_unfinished_entry_is_left_behind(photos, kept):
    assert len(list(kept.iterdir())) == len(entries(kept)) == 4


def test_thumbnails_hold_no_metadata(photos, tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    Image.new("RGB", (50, 30), "red").save(photos / "private.jpg", exif=exif)
    assert b"taken at home" in (photos / "private.jpg").read_bytes()
    read_folder(photos, cache=tmp_path / "new")
    for path in entries(tmp_path / "new"):
        data = path.read_bytes()
        assert b"taken at home" not in data
        assert b"private" not in data
        assert b"Exif" not in data


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_the_cache_is_for_this_user_only(kept):
    assert kept.stat().st_mode & 0o077 == 0
    for path in entries(kept):
        assert path.stat().st_mode & 0o077 == 0


def test_the_pictures_themselves_are_no_place_for_thumbnails(photos):
    with pytest.raises(ValueError, match=r"`cache` is the folder of the pictures itself"):
        read_folder(photos, cache=photos)


def test_a_cache_among_the_sub_folders_is_not_read_as_pictures(photos):
    for _ in range(2):
        collection = read_folder(photos, recursive=True, cache=photos / "kept")
        assert len(collection) == 4
        assert collection.skipped == []


def test_default_cache_follows_the_system(monkeypatch, tmp_path):
    ending = Path("unshuffle", "thumbnails")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / ending
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/path")
    assert default_cache() == Path.home() / ".cache" / ending
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / ending
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_cache() == Path.home() / "Library" / "Caches" / ending
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_cache() == tmp_path / ending
