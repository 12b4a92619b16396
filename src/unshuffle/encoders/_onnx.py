"""Networks for pictures in ONNX files.

An ONNX file holds numbers and the names of operations. Opening one runs no code of its own; a
library of custom operations, which would, is never loaded.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.parameters import check_memory
from unshuffle._files.paths import check_regular_file
from unshuffle._run.device import find_device
from unshuffle.encoders._encoder import Encoder, digest, reason, scale_to

# Part of the key of all vectors: increase it when they change.
_VERSION = "onnx 1"
_SIDE = 224  # where the network takes any
_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
# Of the pictures in ImageNet, from 0 to 255.
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255


class OnnxEncoder(Encoder):
    """A network in an ONNX file that takes pictures."""

    def __init__(self, name: str, device: Any) -> None:
        path = check_regular_file(name, "encoder")
        content = path.read_bytes()
        beside = _external_files(path, content)
        super().__init__(
            name, key=digest(_VERSION, content, *map(_file_digest, beside)), side=None
        )
        self._session = _open(path, content, device)
        self._read_input()
        self._read_output()

    def _read_input(self) -> None:
        """Name, type and shape of the input."""
        inputs = self._session.get_inputs()
        listed = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
        shape = inputs[0].shape if len(inputs) == 1 else []
        if len(shape) != 4 or inputs[0].type not in _TYPES:
            raise ValueError(
                f"{self.name} does not take pictures: its inputs are {listed}. Give a network "
                "with one input of 4 axes, of float32, float16 or uint8."
            )
        self._input, self._type = inputs[0].name, _TYPES[inputs[0].type]
        n_batch, *sizes = (each if isinstance(each, int) and each > 0 else None for each in shape)
        self._channels_last = sizes[0] != 3 and sizes[2] == 3
        if self._channels_last:
            sizes = [sizes[2], *sizes[:2]]
        if sizes[0] not in (3, None):
            raise ValueError(
                f"{self.name} takes pictures of {sizes[0]} channels (shape {shape}). Give a "
                "network for 3 channels: red, green and blue."
            )
        self._height, self._width = (each or _SIDE for each in sizes[1:])
        self.side = max(self._height, self._width)
        self._fixed = n_batch
        if n_batch is not None:
            self.batch_size = n_batch
        check_memory(
            24 * self.batch_size * self._height * self._width,
            what=f"The input of {self.name}, of shape {shape},",
            instead="Give a network for smaller pictures.",
        )

    def _read_output(self) -> None:
        """Which output gives the vectors: found by a trial."""
        n_items = self._fixed or 2  # two, to see which axis counts items
        trial = np.full((n_items, self._height, self._width, 3), 127, dtype=np.uint8)
        found = self._run(trial)
        for n_axes in ((2,), (4, 3)):
            for place, values in enumerate(found):
                if values.ndim in n_axes and values.dtype.kind == "f" and len(values) == n_items:
                    self._output = place
                    return
        listed = ", ".join(f"{each.dtype} {each.shape}" for each in found)
        raise ValueError(
            f"{self.name} gives no vectors: its outputs for {n_items} picture(s) are {listed}. "
            "Give a network with an output of 2 axes (vectors), 3 (tokens) or 4 (maps) of floats."
        )

    def _run(self, images: NDArray[np.uint8]) -> list[NDArray[Any]]:
        pixels: NDArray[Any] = images
        if self._type != "uint8":
            pixels = ((images - _MEAN) / _DEVIATION).astype(self._type)
        if not self._channels_last:
            pixels = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
        try:
            found = self._session.run(None, {self._input: pixels})
        except Exception as error:
            # ONNX Runtime raises subclasses of Exception, one for each of its states.
            raise ValueError(
                f"{self.name} fails on pictures of shape {pixels.shape}: {reason(error)}."
            ) from error
        return [np.asarray(each) for each in found]

    def _encode_batch(self, items: NDArray[np.uint8]) -> NDArray[Any]:
        images = scale_to(items, self._height, self._width)
        if self._fixed is not None and len(images) < self._fixed:
            images = images[np.minimum(np.arange(self._fixed), len(images) - 1)]
        values = self._run(images)[self._output][: len(items)]
        if values.ndim == 4:
            return values.mean(axis=(1, 2) if self._channels_last else (2, 3), dtype=np.float32)
        return values.mean(axis=1, dtype=np.float32) if values.ndim == 3 else values


def _open(path: Path, content: bytes, device: Any) -> Any:
    """Session of ONNX Runtime."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f'{path} needs ONNX Runtime: pip install "unshuffle[encoders]".'
        ) from error
    providers: list[Any] = ["CPUExecutionProvider"]
    found = find_device(device)
    if found is not None and found.type == "cuda":
        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            raise ValueError(
                f'device="{device}" needs ONNX Runtime for GPUs: pip install onnxruntime-gpu. '
                "Leave `device` out to use the CPU."
            )
        providers.insert(0, ("CUDAExecutionProvider", {"device_id": found.index or 0}))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # it prints otherwise
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(path.parent.resolve())
    )
    try:
        # From the content that was checked, not from the file, which may change meanwhile.
        return onnxruntime.InferenceSession(content, options, providers=providers)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be used: {reason(error)}. Give a network in the ONNX format whose "
            "operations are all standard."
        ) from error


# Where tensors are in an ONNX file: for each message, its fields that lead to them. From the
# definition of the format, onnx.proto.
_ENTRY: dict[int, Any] = {}
_TENSOR = {13: _ENTRY}
_SPARSE = {1: _TENSOR, 2: _TENSOR}
_ATTRIBUTE: dict[int, Any] = {5: _TENSOR, 10: _TENSOR, 22: _SPARSE, 23: _SPARSE}
_NODE = {5: _ATTRIBUTE}
_GRAPH = {1: _NODE, 5: _TENSOR, 15: _SPARSE}
_ATTRIBUTE.update({6: _GRAPH, 11: _GRAPH})
_MODEL = {7: _GRAPH, 20: {1: _GRAPH, 2: _GRAPH}, 25: {7: _NODE, 11: _ATTRIBUTE}}
_DEEPEST = 100  # as in protobuf


def _external_files(path: Path, content: bytes) -> list[Path]:
    """Files beside an ONNX file that hold some of its tensors; none may be elsewhere."""
    try:
        names = sorted(set(_locations(memoryview(content), _MODEL, 0)))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{path} is not an ONNX file, or it is damaged. Export the network again."
        ) from error
    folder, files = path.parent.resolve(), []
    for name in names:
        if "\0" in name or not Path(os.path.realpath(folder / name)).is_relative_to(folder):
            raise ValueError(
                f"{path} wants to read {name!r}, which is not in its folder. Put the network and "
                "its files into one folder and export it with relative names."
            )
        files.append(check_regular_file(folder / name, f"part of {path}"))
    return files


def _locations(message: memoryview, kind: dict[int, Any], depth: int) -> Iterator[str]:
    """Names of the files that the tensors of a message are in."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    for number, part in _fields(message):
        if number not in kind:
            continue
        if kind[number] is _ENTRY:
            entry = dict(_fields(part))
            if bytes(entry.get(1, b"")) == b"location":
                yield bytes(entry.get(2, b"")).decode()
        else:
            yield from _locations(part, kind[number], depth + 1)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Numbers and contents of the fields of a message that have a length, as in protobuf."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        form = tag & 7
        if form == 0:
            _, place = _varint(message, place)
        elif form in (1, 5):
            place += 8 if form == 1 else 4
        elif form == 2:
            length, place = _varint(message, place)
            if place + length > len(message):
                raise ValueError("cut off")
            yield tag >> 3, message[place : place + length]
            place += length
        else:
            raise ValueError("not a field")
    if place > len(message):
        raise ValueError("cut off")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A whole number of seven bits a byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("number too long")


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
