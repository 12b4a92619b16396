import copy
import gc
import io
import os
import pickle
import sys

import numpy as np
import pytest
from PIL import Image, ImageCms

from unshuffle.images import read_folder


@pytest.fixture
def photos(tmp_path):
    """A wide photo, a tall one stored lying on its side, and a tiny one, all of noise."""
    folder = tmp_path / "photos"
    folder.mkdir()
    save(folder / "wide.jpg", (400, 800))
    exif = Image.Exif()
    exif[0x0112] = 6
    save(folder / "tall.jpg", (300, 900), exif=exif)
    save(folder / "tiny.png", (20, 64))
    return folder


def save(path, shape, **options):
    height, width = shape
    coarse = np.random.RandomState(0).randint(0, 256, (4, 4, 3)).astype(np.uint8)
    Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(path, **options)


def opened(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def test_previews_keep_proportions_and_are_never_enlarged(photos):
    collection = read_folder(photos, size=8, previews=320)
    sizes = {
        name: opened(data).size
        for name, data in zip(collection.names, collection.previews, strict=True)
    }
    assert sizes == {"wide.jpg": (320, 160), "tall.jpg": (107, 320), "tiny.png": (64, 20)}
    assert collection.sizes.tolist() == [[900, 300], [20, 64], [400, 800]]
    assert len(collection.previews) == 3
    assert collection.previews[-1] == collection.previews[2]
    with pytest.raises(IndexError):
        collection.previews[3]


def test_without_being_asked_for_there_are_none(photos, tmp_path):
    assert read_folder(photos, cache=tmp_path / "kept").previews is None


@pytest.mark.parametrize("previews", [0, -1, 2.5, "large", 10**6])
def test_impossible_sides_are_refused(photos, previews):
    with pytest.raises(ValueError, match="`previews`"):
        read_folder(photos, previews=previews)


def test_tiny_pictures_are_kept_exactly_as_png(photos):
    collection = read_folder(photos, previews=320)
    tiny = opened(collection.previews[1])
    assert tiny.format == "PNG"
    np.testing.assert_array_equal(tiny, Image.open(photos / "tiny.png"))
    assert opened(collection.previews[0]).format == "JPEG"


def test_previews_show_the_picture(photos):
    collection = read_folder(photos, previews=200)
    for name, data in zip(collection.names, collection.previews, strict=True):
        shown, picture = opened(data), Image.open(photos / name)
        if name == "tall.jpg":
            picture = picture.transpose(Image.Transpose.ROTATE_270)
        expected = picture.resize(shown.size, Image.Resampling.BICUBIC)
        difference = np.abs(np.asarray(shown, float) - np.asarray(expected, float))
        assert difference.mean() < 3


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
@pytest.mark.parametrize("side", [50, 500])
def test_previews_hold_no_metadata(tmp_path, suffix, side):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"exif": exif, "icc_profile": profile, "comment": b"my comment"}
    save(tmp_path / f"a.{suffix}", (side, side), **options)
    data = read_folder(tmp_path, previews=320).previews[0]
    for secret in (b"taken at home", b"Exif", b"ICC", b"iCC", b"my comment"):
        assert secret not in data
    assert set(opened(data).info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_transparent_parts_are_white(tmp_path):
    Image.new("RGBA", (100, 50), (0, 0, 0, 0)).save(tmp_path / "a.png")
    image = opened(read_folder(tmp_path, previews=80).previews[0])
    assert image.mode == "RGB"
    assert (np.asarray(image) == 255).all()


def test_pixels_of_lossless_pictures_do_not_depend_on_previews(tmp_path):
    save(tmp_path / "a.png", (300, 500))
    for fit in ("stretch", "crop"):
        alone = read_folder(tmp_path, fit=fit)
        both = read_folder(tmp_path, fit=fit, previews=200)
        np.testing.assert_array_equal(alone.arrays, both.arrays)


def test_previews_of_another_side_are_made_anew(photos, tmp_path):
    kept = tmp_path / "kept"
    sizes = [read_folder(photos, cache=kept, previews=side).previews[2] for side in (320, 100)]
    assert [opened(each).size for each in sizes] == [(320, 160), (100, 50)]


def test_a_cache_gives_the_same_previews_as_none(photos, tmp_path):
    fresh = read_folder(photos, previews=320)
    for _ in range(2):
        kept = read_folder(photos, previews=320, cache=tmp_path / "kept")
        assert list(kept.previews) == list(fresh.previews)
    assert len(list((tmp_path / "kept").iterdir())) == 3


def folders_of(monkeypatch, tmp_path):
    """Where temporary folders are made, and a function that lists those."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return lambda: sorted(place.iterdir())


def test_without_a_cache_previews_are_removed_with_the_collection(photos, tmp_path, monkeypatch):
    folders = folders_of(monkeypatch, tmp_path)
    collection = read_folder(photos, previews=320)
    (folder,) = folders()
    if sys.platform != "win32":
        assert folder.stat().st_mode & 0o077 == 0
    previews = collection.previews
    del collection
    gc.collect()
    assert opened(previews[1]).size == (64, 20)
    del previews
    gc.collect()
    assert folders() == []


def test_a_failed_reading_leaves_no_temporary_folder(photos, tmp_path, monkeypatch):
    folders = folders_of(monkeypatch, tmp_path)

    def fail(done, total):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        read_folder(photos, previews=320, on_progress=fail)
    gc.collect()
    assert folders() == []


@pytest.mark.parametrize("cached", [True, False])
def test_a_vanished_preview_is_made_again_and_one_error_says_if_it_cannot(
    photos, tmp_path, monkeypatch, cached
):
    folders = folders_of(monkeypatch, tmp_path)
    (photos / "bad.jpg").write_text("not a picture, so that numbers differ from places")
    kept = tmp_path / "kept" if cached else None
    collection = read_folder(photos, previews=320, cache=kept)
    before = list(collection.previews)
    place = kept if cached else folders()[0]
    for path in place.iterdir():
        path.unlink()
    assert list(collection.previews) == before
    assert len(list(place.iterdir())) == 3  # and kept again
    for path in place.iterdir():
        path.unlink()
    (photos / "tall.jpg").unlink()
    with pytest.raises(ValueError, match=r"preview of .*tall\.jpg is gone, .* any more: no such"):
        collection.previews[0]
    assert [collection.previews[i] for i in (1, 2)] == before[1:]


@pytest.mark.parametrize("cached", [True, False])
def test_collections_with_previews_can_be_printed_compared_copied_and_pickled(
    photos, tmp_path, cached
):
    kept = tmp_path / "kept" if cached else None
    collection = read_folder(photos, previews=320, cache=kept)
    before = list(collection.previews)
    assert "3 previews of at most 320 pixels" in repr(collection)
    assert collection == collection
    copies = [copy.copy(collection), copy.deepcopy(collection)]
    copies.append(pickle.loads(pickle.dumps(collection)))
    for each in copies:
        assert list(each.previews) == before
    del collection
    gc.collect()
    # The temporary folder may be gone now; the photos are still there.
    for each in copies:
        assert list(each.previews) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_copy_of_the_program_removes_nothing(photos, tmp_path, monkeypatch):
    folders = folders_of(monkeypatch, tmp_path)
    collection = read_folder(photos, previews=320)
    child = os.fork()
    if child == 0:
        del collection
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(folders()[0].iterdir())) == 3
    assert len(collection.previews) == 3
