import os
import pickle

import numpy as np
import pytest

from unshuffle.encoders import load_encoder
from unshuffle.encoders._encoder import scale_to

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from onnx import TensorProto as T  # noqa: E402  where it is installed
from onnx import helper, numpy_helper  # noqa: E402

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


@pytest.fixture
def save(tmp_path):
    """Writes a network of some nodes, and gives its path."""

    def write(
        nodes, shape, *, kind=T.FLOAT, out=(("y", T.FLOAT, None),), tensors=(), name="network.onnx"
    ):
        inputs = shape if isinstance(shape, dict) else {"x": shape}
        graph = helper.make_graph(
            [helper.make_node(*node[:3], **(node[3] if node[3:] else {})) for node in nodes],
            "network",
            [helper.make_tensor_value_info(each, kind, axes) for each, axes in inputs.items()],
            [helper.make_tensor_value_info(*each) for each in out],
            [
                numpy_helper.from_array(each, name) if isinstance(each, np.ndarray) else each
                for name, each in tensors
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        path = tmp_path / name
        path.write_bytes(model.SerializeToString())
        return path

    return write


def means_by_matrix(axes=(2, 3), cast=False):
    """Mean color of each picture, times a matrix."""
    first = [("Cast", ["x"], ["f"], {"to": T.FLOAT})] if cast else []
    return [
        *first,
        ("ReduceMean", ["f" if cast else "x"], ["m"], {"axes": list(axes), "keepdims": 0}),
        ("MatMul", ["m", "w"], ["y"]),
    ]


def expected(pictures, height, width, *, raw=False):
    """What the network of `means_by_matrix` should give."""
    scaled = scale_to(pictures, height, width).astype(float)
    if not raw:
        scaled = (scaled / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return scaled.mean(axis=(1, 2)) @ MATRIX


TENSORS = [("w", MATRIX)]
FIRST, LAST = (2, 3), (1, 2)


@pytest.mark.parametrize(
    ("shape", "axes", "side"),
    [
        (["n", 3, "h", "w"], FIRST, (224, 224)),
        (["n", "c", "h", "w"], FIRST, (224, 224)),
        ([None, 3, 32, 48], FIRST, (32, 48)),
        (["n", 40, 40, 3], LAST, (40, 40)),
        (["n", "h", "w", 3], LAST, (224, 224)),
        ([4, 3, 24, 24], FIRST, (24, 24)),  # 11 pictures: the last batch is padded
        ([1, 24, 24, 3], LAST, (24, 24)),
        ([16, 3, 24, 24], FIRST, (24, 24)),
    ],
)
def test_the_order_size_and_batch_of_the_input_are_respected(save, pictures, shape, axes, side):
    path = save(means_by_matrix(axes), shape, tensors=TENSORS)
    encoder = load_encoder(str(path))
    assert (encoder.name, encoder.items, encoder.side) == (str(path), "images", max(side))
    vectors = encoder.encode(pictures)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(pictures, *side), atol=1e-4)


def test_bytes_are_given_as_they_are_and_half_precision_is_normalized(save, pictures):
    raw = save(means_by_matrix(cast=True), ["n", 3, 20, 30], kind=T.UINT8, tensors=TENSORS)
    vectors = load_encoder(str(raw)).encode(pictures)
    np.testing.assert_allclose(vectors, expected(pictures, 20, 30, raw=True), rtol=1e-4)
    half = save(means_by_matrix(cast=True), ["n", 3, 20, 30], kind=T.FLOAT16, tensors=TENSORS)
    vectors = load_encoder(str(half)).encode(pictures)
    np.testing.assert_allclose(vectors, expected(pictures, 20, 30), atol=0.01)


def test_vectors_are_taken_before_maps_and_maps_before_nothing(save, pictures):
    nodes = [("Identity", ["x"], ["map"]), *means_by_matrix()]
    outputs = [("map", T.FLOAT, None), ("y", T.FLOAT, None)]
    both = load_encoder(str(save(nodes, ["n", 3, 20, 30], out=outputs, tensors=TENSORS)))
    np.testing.assert_allclose(both.encode(pictures), expected(pictures, 20, 30), atol=1e-4)
    for shape, nodes in [
        (["n", 3, 20, 30], [("Identity", ["x"], ["y"])]),  # maps, colors first
        (["n", 20, 30, 3], [("Identity", ["x"], ["y"])]),  # maps, colors last
        (["n", 20, 30, 3], [("Reshape", ["x", "s"], ["y"])]),  # 600 tokens of 3 numbers
    ]:
        tensors = [("s", np.array([0, 600, 3]))] if nodes[0][0] == "Reshape" else []
        found = load_encoder(str(save(nodes, shape, tensors=tensors))).encode(pictures)
        means = (pictures.mean(axis=(1, 2)) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        np.testing.assert_allclose(found, means, atol=1e-4)


def test_keys_follow_the_content_not_the_path(save):
    first = save(means_by_matrix(), ["n", 3, 8, 8], tensors=TENSORS)
    copy = save(means_by_matrix(), ["n", 3, 8, 8], tensors=TENSORS, name="copy.onnx")
    other = save(means_by_matrix(), ["n", 3, 8, 8], tensors=[("w", 2 * MATRIX)], name="2.onnx")
    keys = [load_encoder(str(path)).key for path in (first, copy, other)]
    assert keys[0] == keys[1] != keys[2]


def test_a_gpu_that_onnx_runtime_cannot_use_is_an_error(save, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    path = str(save(means_by_matrix(), ["n", 3, 8, 8], tensors=TENSORS))
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    found = torch.device("cuda", 0)
    monkeypatch.setattr("unshuffle.encoders._onnx.find_device", lambda device: found)
    with pytest.raises(ValueError, match="pip install onnxruntime-gpu"):
        load_encoder(path, device="cuda")


def test_a_missing_onnx_runtime_says_how_to_get_it(save, monkeypatch):
    path = str(save(means_by_matrix(), ["n", 3, 8, 8], tensors=TENSORS))
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r'pip install "unshuffle\[encoders\]"'):
        load_encoder(path)


@pytest.mark.parametrize(
    ("shape", "kind", "told"),
    [
        (["n", "words"], T.INT64, "does not take pictures"),
        (["n"], T.STRING, "does not take pictures"),
        (["n", 3, 8], T.FLOAT, "does not take pictures"),
        (["n", 3, 8, 8], T.INT64, "does not take pictures"),
        ({"x": ["n", 3, 8, 8], "mask": ["n", 3, 8, 8]}, T.FLOAT, "does not take pictures"),
        (["n", 1, 28, 28], T.FLOAT, "takes pictures of 1 channels"),
    ],
)
def test_networks_for_other_things_are_refused(save, shape, kind, told):
    path = save([("Identity", ["x"], ["y"])], shape, kind=kind, out=[("y", kind, None)])
    with pytest.raises(ValueError, match=told):
        load_encoder(str(path))


@pytest.mark.parametrize(
    "nodes",
    [
        [("ReduceMean", ["x"], ["y"], {"axes": [1, 2, 3], "keepdims": 0})],  # one number each
        [("ReduceMean", ["x"], ["y"], {"axes": [0, 2, 3], "keepdims": 0})],  # one for all
        [("Shape", ["x"], ["s"]), ("Unsqueeze", ["s", "zero"], ["y"])],  # whole numbers
    ],
)
def test_outputs_that_are_not_vectors_are_refused(save, nodes):
    kind = T.INT64 if nodes[0][0] == "Shape" else T.FLOAT
    tensors = [("zero", np.array([0]))] if kind == T.INT64 else []
    path = save(nodes, ["n", 3, 8, 8], out=[("y", kind, None)], tensors=tensors)
    with pytest.raises(ValueError, match="gives no vectors"):
        load_encoder(str(path))


def test_a_network_that_fails_on_its_own_shape_is_refused(save):
    path = save(means_by_matrix(), ["n", "c", 8, 8], tensors=[("w", np.ones((5, 4), "f4"))])
    with pytest.raises(ValueError, match=r"fails on pictures of shape|cannot be used"):
        load_encoder(str(path))


def test_an_input_larger_than_memory_is_refused(save):
    path = save(means_by_matrix(), [1, 3, 10**7, 10**7], tensors=TENSORS)
    with pytest.raises(MemoryError, match="Give a network for smaller pictures"):
        load_encoder(str(path))


def test_nan_in_the_vectors_is_refused(save, pictures):
    nodes = [("Log", ["x"], ["l"]), ("ReduceMean", ["l"], ["y"], {"axes": [2, 3], "keepdims": 0})]
    encoder = load_encoder(str(save(nodes, ["n", 3, 20, 30])))
    with pytest.raises(ValueError, match="gave NaN or infinity for item 0"):
        encoder.encode(pictures)


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_files_that_are_not_onnx_are_refused_and_nothing_runs(tmp_path, save):
    whole = save(means_by_matrix(), ["n", 3, 8, 8], tensors=TENSORS).read_bytes()
    hostile = pickle.dumps(Hostile(tmp_path / "ran"))
    nested = b""
    for _ in range(300):  # graphs in attributes of nodes of graphs
        attribute = b"\x32" + _length(nested) + nested
        node = b"\x2a" + _length(attribute) + attribute
        nested = b"\x0a" + _length(node) + node
    contents = [b"", b"\0" * 50, b"PK\x03\x04" + b"x" * 50, hostile, b"\xff" * 30, b"ORTM" * 10]
    contents += [whole[:n] for n in range(1, len(whole), 7)]
    contents += [b"\x3a" + _length(nested) + nested]
    for content in contents:
        path = tmp_path / "bad.onnx"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.onnx (is not an ONNX file|cannot be used)"):
            load_encoder(str(path))
    assert not (tmp_path / "ran").exists()


def _length(content):
    size, found = len(content), bytearray()
    while size > 127:
        found.append(size & 127 | 128)
        size >>= 7
    return bytes([*found, size])


def test_paths_that_are_not_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"There is no file .*none\.onnx"):
        load_encoder(str(tmp_path / "none.onnx"))
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        load_encoder(str(tmp_path / "folder.onnx"))


def test_custom_operations_are_refused(tmp_path):
    node = helper.make_node("Run", ["x"], ["y"], domain="custom.operations")
    graph = helper.make_graph(
        [node],
        "network",
        [helper.make_tensor_value_info("x", T.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", T.FLOAT, ["n", 4])],
    )
    sets = [helper.make_opsetid("", 13), helper.make_opsetid("custom.operations", 1)]
    path = tmp_path / "custom.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    )
    with pytest.raises(ValueError, match=r"custom\.onnx cannot be used.*all standard"):
        load_encoder(str(path))


def kept_in(location, name="w"):
    """The matrix, in a file beside the network."""
    tensor = numpy_helper.from_array(MATRIX, name)
    tensor.ClearField("raw_data")
    tensor.data_location = T.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(MATRIX.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return tensor


def test_files_beside_a_network_are_read_and_are_part_of_its_key(tmp_path, save, pictures):
    (tmp_path / "w.data").write_bytes(MATRIX.tobytes())
    path = save(means_by_matrix(), ["n", 3, 20, 30], tensors=[("w", kept_in("w.data"))])
    encoder = load_encoder(str(path))
    np.testing.assert_allclose(encoder.encode(pictures), expected(pictures, 20, 30), atol=1e-4)
    (tmp_path / "w.data").write_bytes((2 * MATRIX).tobytes())
    assert load_encoder(str(path)).key != encoder.key


@pytest.mark.parametrize("location", ["../w.data", "a/../../w.data", "/etc/passwd", "link"])
def test_files_elsewhere_are_never_read(tmp_path, save, location):
    (tmp_path / "w.data").write_bytes(MATRIX.tobytes())
    (tmp_path / "folder").mkdir()
    try:
        os.symlink(tmp_path / "w.data", tmp_path / "folder" / "link")
    except OSError:
        pytest.skip("links cannot be made here")
    path = save(
        means_by_matrix(),
        ["n", 3, 8, 8],
        tensors=[("w", kept_in(location))],
        name="folder/network.onnx",
    )
    with pytest.raises(ValueError, match="which is not in its folder"):
        load_encoder(str(path))


def test_files_elsewhere_are_found_in_constants_and_inner_graphs(save):
    constant = ("Constant", [], ["w"], {"value": kept_in("../w.data")})
    with pytest.raises(ValueError, match="which is not in its folder"):
        load_encoder(str(save([constant, *means_by_matrix()], ["n", 3, 8, 8])))
    branch = helper.make_graph(
        [helper.make_node("Identity", ["inner"], ["y"])],
        "branch",
        [],
        [helper.make_tensor_value_info("y", T.FLOAT, None)],
        [kept_in("../w.data", "inner")],
    )
    node = ("If", ["yes"], ["y"], {"then_branch": branch, "else_branch": branch})
    path = save([node], ["n", 3, 8, 8], tensors=[("yes", np.array(True))])
    with pytest.raises(ValueError, match="which is not in its folder"):
        load_encoder(str(path))


def test_a_missing_file_beside_a_network_is_named(save):
    path = save(means_by_matrix(), ["n", 3, 8, 8], tensors=[("w", kept_in("gone.data"))])
    with pytest.raises(ValueError, match=r"There is no file .*gone\.data \(part of"):
        load_encoder(str(path))
