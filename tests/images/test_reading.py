import numpy as np
import pytest
from PIL import Image

from unshuffle.images import read_folder, read_image


def save(path, color=(200, 30, 40), size=(12, 8), **options):
    Image.new("RGB", size, color).save(path, **options)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tiff", "webp"])
def test_every_format_on_the_list_is_read(tmp_path, suffix):
    save(tmp_path / f"a.{suffix}")
    folder = read_folder(tmp_path, size=(4, 6))
    assert folder.arrays.shape == (1, 4, 6, 3)
    assert folder.arrays.dtype == np.uint8
    np.testing.assert_allclose(folder.arrays[0, 2, 3], (200, 30, 40), atol=6)
    assert folder.sizes.tolist() == [[8, 12]]
    assert folder.skipped == []


def test_names_come_in_natural_order_without_hidden_files_and_folders(tmp_path):
    for name in ("p10.png", "p2.png", "P1.png", ".hidden.png"):
        save(tmp_path / name)
    (tmp_path / "sub").mkdir()
    save(tmp_path / "sub" / "a.png")
    assert read_folder(tmp_path).names == ["P1.png", "p2.png", "p10.png"]


def test_result_does_not_depend_on_the_number_of_threads(tmp_path):
    for i in range(12):
        save(tmp_path / f"{i}.png", color=(20 * i, 0, 255 - 20 * i))
    calls = []
    one = read_folder(tmp_path, n_jobs=1)
    two = read_folder(tmp_path, n_jobs=2, on_progress=lambda *done: calls.append(done))
    np.testing.assert_array_equal(one.arrays, two.arrays)
    assert calls == [(i, 12) for i in range(1, 13)]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(tmp_path, orientation):
    rng = np.random.RandomState(0)
    upright = Image.fromarray(rng.randint(0, 256, (6, 10, 3)).astype(np.uint8))
    # The inverse of what each orientation asks for, so that all files show the same scene.
    stored = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = upright if stored is None else upright.transpose(stored)
    turned.save(tmp_path / "a.png", exif=exif)
    pixels, original = read_image(tmp_path / "a.png", size=(6, 10))
    assert original == (6, 10)
    np.testing.assert_array_equal(pixels, np.asarray(upright))


def test_transparent_parts_are_white(tmp_path):
    Image.new("RGBA", (5, 5), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert (read_folder(tmp_path, size=3).arrays == 255).all()


def test_sixteen_bit_gray_is_scaled_not_cut_off(tmp_path):
    Image.fromarray(np.full((6, 6), 32768, np.uint16)).save(tmp_path / "a.png")
    assert set(read_folder(tmp_path, size=3).arrays.ravel()) <= {127, 128}


@pytest.mark.parametrize("size", [0, -3, (1, 2, 3), 2.5, "big", 10**6])
def test_impossible_sizes_are_refused(tmp_path, size):
    save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="size"):
        read_folder(tmp_path, size=size)


def test_sub_folders_are_read_if_asked_and_hidden_ones_never(tmp_path):
    for name in ("b10", "b2", ".hidden"):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "a.png")
    (tmp_path / "b2" / "text.png").write_text("no picture")
    save(tmp_path / "b3.png")
    assert read_folder(tmp_path).names == ["b3.png"]
    collection = read_folder(tmp_path, recursive=True)
    assert collection.names == ["b2/a.png", "b3.png", "b10/a.png"]
    assert [name for name, _ in collection.skipped] == ["b2/text.png"]


def test_good_pictures_keep_their_pixels_where_others_are_skipped(tmp_path):
    for i in range(6):
        save(tmp_path / f"{i}.png", color=(40 * i, 0, 0))
    for i in (0, 3):
        (tmp_path / f"{i}.png").write_text("no picture")
    collection = read_folder(tmp_path, size=2)
    assert collection.names == ["1.png", "2.png", "4.png", "5.png"]
    assert collection.arrays[:, 0, 0, 0].tolist() == [40, 80, 160, 200]


def three_stripes(orientation):
    """A wide picture, red, green and blue from left to right, stored turned."""
    stripes = np.zeros((30, 90, 3), np.uint8)
    for k in range(3):
        stripes[:, 30 * k : 30 * k + 30, k] = 255
    image = Image.fromarray(stripes)
    if orientation == 6:
        image = image.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = orientation
    return image, exif


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_crop_keeps_the_middle_and_its_proportions(tmp_path, orientation, suffix):
    image, exif = three_stripes(orientation)
    image.save(tmp_path / f"a.{suffix}", exif=exif)
    green, original = read_image(tmp_path / f"a.{suffix}", size=(6, 6), fit="crop")
    assert original == (30, 90)
    np.testing.assert_allclose(green[:, 1:-1], np.full((6, 4, 3), (0, 255, 0)), atol=40)
    squeezed, _ = read_image(tmp_path / f"a.{suffix}", size=(6, 6))
    np.testing.assert_allclose(squeezed[3, [0, -1]], [(255, 0, 0), (0, 0, 255)], atol=40)


def test_crop_to_the_proportions_of_the_picture_is_the_same_as_stretch(tmp_path):
    rng = np.random.RandomState(0)
    for i, shape in enumerate([(31, 47, 3), (7, 5, 3), (1, 1, 3)]):
        Image.fromarray(rng.randint(0, 256, shape).astype(np.uint8)).save(tmp_path / f"{i}.png")
        one, _ = read_image(tmp_path / f"{i}.png", size=shape[:2], fit="crop")
        two, _ = read_image(tmp_path / f"{i}.png", size=shape[:2])
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", [(1, 3000), (3000, 1), (1, 1), (7, 3)])
@pytest.mark.parametrize("size", [(40, 40), (1, 100), (33, 7)])
def test_crop_of_extreme_shapes(tmp_path, shape, size):
    Image.new("RGB", shape, "red").save(tmp_path / "a.png")
    pixels, _ = read_image(tmp_path / "a.png", size=size, fit="crop")
    assert (pixels == (255, 0, 0)).all()


def test_unknown_fit_is_refused(tmp_path):
    save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="`fit` must be one of 'stretch', 'crop'"):
        read_folder(tmp_path, fit="squeeze")


@pytest.mark.parametrize("suffix", ["png", "webp", "gif"])
def test_the_first_frame_of_every_animated_format_is_read(tmp_path, suffix):
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    frames[0].save(tmp_path / f"a.{suffix}", save_all=True, append_images=frames[1:])
    np.testing.assert_allclose(read_folder(tmp_path, size=2).arrays[0, 0, 0], (255, 0, 0), atol=3)
