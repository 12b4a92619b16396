import io
import os

import numpy as np
import pytest

from unshuffle.images import (
    FEATURES,
    color_texture,
    describe,
    lab_pixels,
    read_features,
    visual_words,
)
from unshuffle.kernels import gram_matrix

IMAGES = np.random.RandomState(0).randint(0, 256, (5, 24, 24, 3)).astype(np.uint8)


@pytest.mark.parametrize("features", FEATURES)
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
