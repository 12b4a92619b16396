import io
import os

import numpy as np
import pytest

from unshuffle.images import (
    color_texture,
    describe,
    lab_pixels,
    read_features,
    visual_words,
)
from unshuffle.images._describe import patch_descriptors
from unshuffle.kernels import chi2_kernel, gram_matrix

IMAGES = np.random.RandomState(0).randint(0, 256, (5, 24, 24, 3)).astype(np.uint8)


@pytest.mark.parametrize("features", ["color", "texture", "words"])
def test_every_feature_goes_with_its_kernel(features):
    vectors, kernel = describe(IMAGES, features, random_state=0)
    assert len(vectors) == 5
    assert vectors.dtype.kind == "f"
    K = gram_matrix(vectors, kernel)
    assert K.shape == (5, 5)
    assert np.isfinite(K).all()


def test_features_are_those_of_the_functions_named():
    np.testing.assert_allclose(describe(IMAGES)[0], lab_pixels(IMAGES), atol=1e-4)
    np.testing.assert_array_equal(describe(IMAGES, "texture")[0], color_texture(IMAGES))
    words, kernel = describe(IMAGES, "words", random_state=3, n_jobs=2)
    np.testing.assert_array_equal(words, visual_words(IMAGES, random_state=3))
    assert kernel == "chi2"


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match="`features` must be one of 'color', 'texture', 'words'"):
        describe(IMAGES, "shape")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_features_of_the_user_are_read_as_they_are(tmp_path, dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "own.npy", values)
    features = read_features(tmp_path / "own.npy", 4)
    assert features.dtype == np.float64
    assert not isinstance(features, np.memmap)
    np.testing.assert_array_equal(features, values)


def test_a_wrong_number_of_rows_names_both_numbers(tmp_path):
    np.save(tmp_path / "own.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"4 row\(s\), but there are 5 picture\(s\)\. Give one"):
        read_features(tmp_path / "own.npy", 5)
    with pytest.raises(ValueError, match=r"names, from a\.jpg to e\.jpg\."):
        read_features(tmp_path / "own.npy", 5, names=["a.jpg", "b", "c", "d", "e.jpg"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\)"),
        (np.zeros((4, 0)), r"shape \(4, 0\)"),
        (np.array([["a"]] * 4), "Give real numbers"),
        (np.zeros((4, 2), complex), "Give real numbers"),
        (np.array([[0.0], [1.0], [np.nan], [2.0]]), r"contains NaN .* the first is row 2"),
        (np.array([[0.0], [1.0], [np.inf], [2.0]]), "contains infinity"),
    ],
)
def test_arrays_that_are_no_features_are_refused(tmp_path, values, message):
    np.save(tmp_path / "own.npy", values)
    with pytest.raises(ValueError, match=message):
        read_features(tmp_path / "own.npy", 4)


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("exploited",)


def test_pickled_objects_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("own.npy", np.array([[Exploit()]] * 4, dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read as an array of numbers"):
        read_features("own.npy", 4)
    assert not os.path.exists("exploited")


def test_files_that_are_no_arrays_are_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    whole = io.BytesIO()
    np.save(whole, np.zeros((4, 100)))
    (tmp_path / "cut.npy").write_bytes(whole.getvalue()[:-50])
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        huge, {"descr": "<f8", "fortran_order": False, "shape": (4, 10**15)}
    )
    (tmp_path / "huge.npy").write_bytes(huge.getvalue())
    with pytest.raises(ValueError, match=r"There is no file .*missing\.npy"):
        read_features(tmp_path / "missing.npy", 4)
    for name in ("text.npy", "empty.npy", "cut.npy", "huge.npy"):
        with pytest.raises(ValueError, match=f"{name} cannot be read as an array of numbers"):
            read_features(tmp_path / name, 4)
    np.savez(tmp_path / "several.npz", a=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="holds several arrays"):
        read_features(tmp_path / "several.npz", 4)


def noise(n, height=32, width=32, seed=0):
    return np.random.RandomState(seed).randint(0, 256, (n, height, width, 3)).astype(np.uint8)


def textures(n_each, seed=0):
    """Stripes from top to bottom, stripes from left to right, and checks, shifted at random."""
    rng = np.random.RandomState(seed)
    images, labels = [], []
    for label in range(3):
        for _ in range(n_each):
            rows, columns = (np.arange(32) + rng.randint(8)) // 4, (np.arange(32) + 3) // 4
            down, across = np.broadcast_to(rows[:, None], (32, 32)), np.tile(columns, (32, 1))
            pattern = (down, across, down + across)[label] % 2
            gray = 60 + 120 * pattern + rng.randint(-10, 11, (32, 32))
            images.append(np.repeat(gray[..., None], 3, axis=-1))
            labels.append(label)
    return np.array(images, np.uint8), np.array(labels)


def nearest(K):
    K = K.copy()
    np.fill_diagonal(K, -np.inf)
    return K.argmax(axis=1)


def test_textures_are_told_apart_wherever_they_begin():
    images, labels = textures(10)
    counts = visual_words(images, n_words=20, random_state=0)
    assert counts.shape == (30, 21)
    assert (labels[nearest(chi2_kernel(counts))] == labels).all()


def test_counts_are_whole_never_negative_and_as_many_for_each_picture():
    counts = visual_words(noise(5), n_words=30, random_state=0)
    assert (counts >= 0).all()
    assert (counts == np.rint(counts)).all()
    # Patches of 12 and of 20 pixels, every 2 pixels of 32.
    assert (counts.sum(axis=1) == 11**2 + 7**2).all()


def test_pictures_without_structure_have_a_word_of_their_own():
    images = noise(6)
    images[3] = 120
    counts = visual_words(images, n_words=10, random_state=0)
    assert counts[3, -1] == counts[3].sum()
    assert (np.delete(counts, 3, axis=0)[:, -1] == 0).all()


def test_pictures_of_one_color_alone_are_counted_too():
    counts = visual_words(np.full((3, 32, 32, 3), 7, np.uint8), n_words=10, random_state=0)
    assert (counts[:, :-1] == 0).all()
    assert (counts[:, -1] == 170).all()


def test_fewer_different_patches_than_words_leave_words_unused():
    images, _ = textures(1)
    same = np.repeat(images[:1], 4, axis=0)
    counts = visual_words(same, n_words=500, random_state=0)
    assert counts.shape == (4, 501)
    assert (counts == counts[0]).all()
    assert 1 < np.count_nonzero(counts[0]) <= 170


def test_result_depends_on_the_seed_and_on_nothing_else():
    images = noise(70)  # more than two chunks
    calls = []
    one = visual_words(images, n_words=25, random_state=0)
    two = visual_words(
        images, n_words=25, random_state=0, n_jobs=2, on_progress=lambda *done: calls.append(done)
    )
    np.testing.assert_array_equal(one, two)
    assert calls == [(i, 6) for i in range(1, 7)]
    assert (one != visual_words(images, n_words=25, random_state=1)).any()


def test_descriptors_have_length_one_and_ignore_brightness_and_contrast():
    images = noise(3) // 2
    one, flat = patch_descriptors(images)
    assert one.shape == (3, 170, 128)
    assert not flat.any()
    np.testing.assert_allclose(np.linalg.norm(one, axis=-1), 1, rtol=1e-5)
    gray = np.repeat(images[..., :1], 3, axis=-1)
    brighter, _ = patch_descriptors(gray // 2 + 100)
    plain, _ = patch_descriptors(gray)
    assert np.linalg.norm(brighter - plain, axis=-1).mean() < 0.2


@pytest.mark.parametrize("shape", [(8, 8), (3, 50), (60, 20), (150, 100)])
def test_pictures_of_any_size_have_patches(shape):
    counts = visual_words(noise(3, *shape), n_words=5, random_state=0)
    assert (counts.sum(axis=1) > 0).all()


@pytest.mark.parametrize("n_words", [0, -1, 2.5, 10**6])
def test_impossible_numbers_of_words_are_refused(n_words):
    with pytest.raises(ValueError, match="n_words"):
        visual_words(noise(2), n_words=n_words)


def test_neighbors_show_the_same_more_often_than_by_chance(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        images, labels = data["images"][:500], data["labels"][:500]
    counts = visual_words(images, random_state=0)
    assert np.mean(labels[nearest(chi2_kernel(counts))] == labels) > 0.22  # by chance 0.10
