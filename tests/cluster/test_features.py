"""Features of pictures on two workers: the same numbers as in one process."""

import numpy as np
import pytest
from joblib import parallel_config

from unshuffle.encoders import has_content, load_encoder
from unshuffle.images import color_histogram, color_texture, describe, lab_pixels, read_folder

pytest.importorskip("distributed")
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]


def pictures(n_images, side=24):
    rng = np.random.default_rng(0)
    coarse = rng.integers(256, size=(n_images, side // 4, side // 4, 3), dtype=np.uint8)
    return np.repeat(np.repeat(coarse, 4, axis=1), 4, axis=2)


@pytest.mark.parametrize("features", ["color", "texture", "words", "color+texture"])
def test_workers_describe_pictures_by_the_same_numbers(sent, features):
    images = pictures(600 if features != "words" else 70)
    expected, kernel = describe(images, features, random_state=0)
    with parallel_config("dask"), sent:
        found = describe(images, features, random_state=0)
    assert sent.calls >= 3
    assert found[1] == kernel
    assert found[0].dtype == expected.dtype
    np.testing.assert_array_equal(found[0], expected)


def test_workers_describe_many_pictures_by_the_same_components(sent, monkeypatch):
    monkeypatch.setattr("unshuffle.images._describe.MANY", 500)
    images = pictures(600)
    expected, _ = describe(images, "color")
    with parallel_config("dask"), sent:
        found, _ = describe(images, "color")
    assert sent.calls == 3
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["content", "onnx"])
def test_workers_encode_pictures_by_the_same_numbers(sent, name, tmp_path):
    if name == "content" and not has_content():
        pytest.skip("the network is not installed")
    encoder = load_encoder(name if name == "content" else str(_network(tmp_path)))
    images, steps = pictures(70), []
    expected = encoder.encode(images)
    with parallel_config("dask"), sent:
        found = encoder.encode(images, on_progress=lambda *step: steps.append(step))
    assert sent.calls == 3
    assert steps[-1] == (70, 70)
    np.testing.assert_array_equal(found, expected)


def test_workers_encode_the_files_of_a_folder(sent, tmp_path):
    from PIL import Image

    (tmp_path / "files").mkdir()
    for number, image in enumerate(pictures(40)):
        Image.fromarray(image).save(tmp_path / "files" / f"{number}.png")
    encoder = load_encoder(str(_network(tmp_path)))
    collection = read_folder(tmp_path / "files", size=(16, 16))
    expected, _ = describe(collection, encoder)
    with parallel_config("dask"), sent:
        found, _ = describe(collection, encoder, cache=tmp_path / "cache")
        again, _ = describe(collection, encoder, cache=tmp_path / "cache")
    assert sent.calls == 2  # the second time, all are in the cache
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(again, expected)


def test_a_network_that_differs_on_a_worker_is_refused(cluster, tmp_path):
    path = _network(tmp_path)
    encoder = load_encoder(str(path))
    _network(tmp_path, scale=2.0)
    with (
        parallel_config("dask"),
        pytest.raises(ValueError, match=r"is not the same network on .* Install the same"),
    ):
        encoder.encode(pictures(8))


@pytest.mark.parametrize("function", [lab_pixels, color_histogram, color_texture])
def test_blocks_of_a_dask_array_are_described_by_the_same_numbers(cluster, function):
    from dask import array

    images = pictures(100)
    expected = function(images)
    blocks = array.from_array(images, chunks=(32, -1, -1, -1))
    found = blocks.map_blocks(
        function, drop_axis=(2, 3), chunks=(blocks.chunks[0], expected.shape[1:]), dtype=float
    )
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.compute(), expected)


def test_a_worker_killed_midway_changes_nothing(kill_one):
    images = pictures(70)
    expected, _ = describe(images, "words", random_state=0)
    with parallel_config("dask"):
        found, _ = describe(images, "words", random_state=0, on_progress=kill_one)
    np.testing.assert_array_equal(found, expected)


def _network(folder, scale=1.0):
    """A small network in an ONNX file."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weights = scale * np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["pixels", "weights"], ["maps"])],
        "network",
        [onnx.helper.make_tensor_value_info("pixels", 1, ["n", 3, 16, 16])],
        [onnx.helper.make_tensor_value_info("maps", 1, ["n", 5, 14, 14])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    opset = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = folder / "network.onnx"
    onnx.save(model, path)
    return path
