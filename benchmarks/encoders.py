"""The encoder "content" against the same network as it is usually written in PyTorch."""

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks._measure import Method, Problem
from unshuffle.encoders import load_encoder
from unshuffle.encoders._efficientnet import read_weights

TITLE = "Encoders of pictures"
ABOUT = (
    "Random pixels at the size of the network, on all cores. The peer is the same network of "
    "unfused convolutions and normalizations, in batches of 2 (larger ones are slower). Agreement "
    "is the least cosine with the vectors of the peer."
)
SIZE = "photos"
CORES = None
# Blocks and stride of each stage; depth and side of each network.
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
NETWORKS = {"lite0": (1.0, 224), "lite1": (1.1, 240), "lite2": (1.2, 260)}
PEER_BATCH = 2


class Photos(NamedTuple):
    """Pictures, and the network that reads them."""

    pixels: np.ndarray
    network: str


def problems() -> Iterator[Problem]:
    methods = (Method("unshuffle", ours, "ours"), Method("plain PyTorch", plainly))
    for network in ("lite0", "lite2"):
        for n in (8, 32, 128):
            make = partial(photos, network, n)
            yield Problem(network, n, make, methods, judge, quick=(network, n) == ("lite0", 8))


def photos(network: str, n: int) -> Photos:
    side = load_encoder(f"content:{network}").side
    pixels = np.random.default_rng(0).integers(256, size=(n, side, side, 3), dtype=np.uint8)
    return Photos(pixels, network)


def ours(data: Photos) -> Callable[[], np.ndarray]:
    encoder = load_encoder(f"content:{data.network}")
    return lambda: encoder.encode(data.pixels)


def plainly(data: Photos) -> Callable[[], np.ndarray]:
    network = plain_network(data.network)

    def encode() -> np.ndarray:
        means = encode_plainly(network, data.pixels, PEER_BATCH)
        return torch.nn.functional.normalize(means.sqrt()).numpy()

    return encode


def judge(data: Photos, vectors: np.ndarray) -> dict[str, float]:
    """Agreement with the plain network on the first photos."""
    expected = plainly(Photos(data.pixels[:8], data.network))()
    return {"agreement": float((vectors[: len(expected)] * expected).sum(axis=1).min())}


def encode_plainly(network: Any, photos: np.ndarray, batch_size: int) -> Any:
    """Means of the last layer, with colors first in memory."""
    found = []
    with torch.inference_mode():
        for start in range(0, len(photos), batch_size):
            pixels = torch.from_numpy(photos[start : start + batch_size])
            pixels = pixels.permute(0, 3, 1, 2).contiguous().float()
            found.append(network((pixels - 127) / 128).mean(dim=(2, 3)))
    return torch.cat(found)


def plain_network(size_name: str) -> torch.nn.Module:
    """EfficientNet-Lite of unfused convolutions and batch normalizations, with its weights."""
    weights = read_weights(size_name)
    values = iter(_in_order(weights))
    depth, side = NETWORKS[size_name]
    layers: list[torch.nn.Module] = []
    side = _add(layers, next(values), stride=2, side=side)
    index = 0
    for stage, (n_blocks, stride) in enumerate(STAGES):
        for repeat in range(n_blocks if stage in (0, 6) else ceil(depth * n_blocks)):
            inner: list[torch.nn.Module] = []
            step = stride if repeat == 0 else 1
            if f"_blocks.{index}._expand_conv.weight" in weights:
                _add(inner, next(values), side=side)
            side = _add(inner, next(values), stride=step, side=side)
            _add(inner, next(values), side=side, active=False)
            layers.append(Sum(*inner) if repeat else torch.nn.Sequential(*inner))
            index += 1
    _add(layers, next(values), side=side)
    return torch.nn.Sequential(*layers).eval()


class Sum(torch.nn.Sequential):
    """Layers, plus their input."""

    def forward(self, input: Any) -> Any:  # noqa: D102
        return super().forward(input) + input


def _in_order(weights: dict[str, Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Kernel of each convolution, and the four parts of the normalization after it."""
    kernels = [name for name in weights if weights[name].ndim == 4]
    scales = [name for name in weights if name.endswith("running_mean")]
    for kernel, scale in zip(kernels, scales, strict=True):
        norm = scale.removesuffix("running_mean")
        parts = ("weight", "bias", "running_mean", "running_var")
        yield weights[kernel], [weights[norm + part] for part in parts]


def _add(
    layers: list[torch.nn.Module],
    values: tuple[Any, list[Any]],
    *,
    side: int,
    stride: int = 1,
    active: bool = True,
) -> int:
    """Append padding, convolution, normalization and ReLU6; the side of what comes out."""
    kernel, normalization = values
    n_out, n_in, width, _ = kernel.shape
    groups = n_out if n_in == 1 else 1
    n_padded = max(0, (ceil(side / stride) - 1) * stride + width - side)
    if n_padded:
        layers.append(torch.nn.ZeroPad2d(2 * (n_padded // 2, n_padded - n_padded // 2)))
    convolution = torch.nn.Conv2d(n_in * groups, n_out, width, stride, groups=groups, bias=False)
    norm = torch.nn.BatchNorm2d(n_out, eps=1e-3)
    with torch.no_grad():
        convolution.weight.copy_(kernel)
        own = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
        for mine, theirs in zip(own, normalization, strict=True):
            mine.copy_(theirs)
    layers += [convolution, norm, *([torch.nn.ReLU6()] if active else [])]
    return ceil(side / stride)
