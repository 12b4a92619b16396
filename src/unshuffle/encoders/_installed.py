"""Networks of timm, open_clip and sentence-transformers, where the user has installed them."""

import hashlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.device import find_device
from unshuffle.encoders._encoder import Encoder, batch_for, digest, encode_on, reason

# Part of the key of all vectors: increase it when they change.
_VERSION = "installed 1"
# Distribution of each library, and its first version that reads weights and folders of models
# without running code in them.
_LIBRARIES = {
    "timm": ("timm", "1.0.26"),
    "open_clip": ("open_clip_torch", "3.0.0"),
    "sentence-transformers": ("sentence-transformers", "6.0.0"),
}
# A setting of huggingface_hub holds for all threads while one of them loads.
_one_load = threading.Lock()


class PictureEncoder(Encoder):
    """A PyTorch network with the preparation of pictures that it was trained with."""

    def __init__(
        self,
        name: str,
        *,
        network: Any,
        encode: Callable[[Any], Any],
        prepare: Callable[[Any], Any],
        side: int,
        device: Any,
    ) -> None:
        key = digest(_VERSION, _library_version(name), repr(prepare), _state_digest(network))
        super().__init__(name, key=key, side=side)
        self._encode, self._prepare, self._device = encode, prepare, device
        self.batch_size = batch_for(device)

    def _encode_batch(self, items: NDArray[np.uint8]) -> NDArray[np.float32]:
        return encode_on(self._device, self._encode_piece, items)

    def _encode_piece(self, items: NDArray[np.uint8]) -> NDArray[np.float32]:
        import torch
        from PIL import Image

        pictures = [self._prepare(Image.fromarray(item)) for item in items]
        with torch.inference_mode():
            found: NDArray[np.float32] = (
                self._encode(torch.stack(pictures).to(self._device)).float().cpu().numpy()
            )
        return found


class TextEncoder(Encoder):
    """A network of sentence-transformers."""

    items = "texts"
    batch_size = 32

    def __init__(self, name: str, network: Any) -> None:
        # Words and their numbers are not among the weights.
        parts = [repr(network), repr(network.prompts), repr(network.default_prompt_name)]
        parts += [_tokenizer_text(module) for module in network]
        key = digest(_VERSION, _library_version(name), *parts, _state_digest(network))
        super().__init__(name, key=key, side=None)
        self._network = network

    def _encode_batch(self, items: list[str]) -> NDArray[np.float32]:
        found = self._network.encode(
            items, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(found, dtype=np.float32)


def load_installed(name: str, device: Any) -> Encoder:
    """An encoder by the name of a library and of one of its networks."""
    kind, _, network = name.partition(":")
    library = _import(kind)
    import torch

    found = find_device(device) or torch.device("cpu")
    load = {"timm": _load_timm, "open_clip": _load_open_clip}.get(kind, _load_texts)
    try:
        with _one_error():
            return load(library, name, network, found)
    except Exception as error:
        # Unknown names, no connection, damaged files, weights of other shapes, refused pickles:
        # each library raises errors of many kinds.
        raise ValueError(
            f"{kind} cannot load {network!r}: {reason(error)}. Check the name; weights that are "
            "not on this machine are downloaded, which needs a connection."
        ) from error


@contextmanager
def _one_error() -> Iterator[None]:
    """No messages besides the error, and no minutes of retries without a connection."""
    from huggingface_hub import constants

    with _one_load, _silence():
        offline = constants.HF_HUB_OFFLINE
        constants.HF_HUB_OFFLINE = offline or not _finds_host(constants.ENDPOINT)
        try:
            yield
        finally:
            constants.HF_HUB_OFFLINE = offline


@contextmanager
def _silence() -> Iterator[None]:
    """Drop what this thread logs, up to errors; other threads log as ever."""
    here = threading.get_ident()

    def passes(record: logging.LogRecord) -> bool:
        return record.thread != here or record.levelno > logging.ERROR

    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *(each for each in known if isinstance(each, logging.Logger))]
    # The root itself too: open_clip logs there, which makes a handler where there is none.
    muted: list[logging.Filterer] = [logging.root]
    muted += [handler for logger in loggers for handler in logger.handlers]
    muted += [] if logging.lastResort is None else [logging.lastResort]
    for each in muted:
        each.addFilter(passes)
    try:
        yield
    finally:
        for each in muted:
            each.removeFilter(passes)


def _finds_host(address: str) -> bool:
    """Whether the name of a host is known here, or a proxy would ask for it."""
    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(address).hostname, 443)
    except OSError:
        return False
    return True


def _import(kind: str) -> Any:
    """The library, if it is installed and new enough."""
    distribution, least = _LIBRARIES[kind]
    try:
        library = import_module(kind.replace("-", "_"))
    except (ImportError, RuntimeError) as error:
        # RuntimeError: a torchvision that was built for another PyTorch.
        raise ImportError(
            f'"{kind}:..." needs {kind}, which cannot be imported ({reason(error)}): '
            'pip install "unshuffle[encoders]".'
        ) from error
    installed = version(distribution)
    if _numbers(installed) < _numbers(least):
        raise ImportError(
            f"{kind} {installed} can run code from the files of a model. Install "
            f"{least} or newer: pip install --upgrade {distribution}."
        )
    return library


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:3] if part.isdecimal()]


def _load_timm(timm: Any, name: str, network_name: str, device: Any) -> Encoder:
    network = timm.create_model(network_name, pretrained=True, num_classes=0)
    settings = timm.data.resolve_model_data_config(network)
    network = network.eval().to(device)
    return PictureEncoder(
        name,
        network=network,
        encode=network,
        prepare=timm.data.create_transform(**settings, is_training=False),
        side=int(settings["input_size"][-1]),
        device=device,
    )


def _load_open_clip(open_clip: Any, name: str, network_name: str, device: Any) -> Encoder:
    weights = None
    if not network_name.startswith(("local-dir:", "hf-hub:")):  # which have their own weights
        network_name, _, weights = network_name.partition("/")
        known = open_clip.list_pretrained_tags_by_model(network_name)
        if not known:
            raise ValueError("it is not one of the networks with weights in open_clip")
        if weights and weights not in known:
            # A path would be taken too: open_clip reads it by other rules than ours.
            raise ValueError(f"{network_name} has the weights {', '.join(known)}")
        weights = weights or known[0]
    network, prepare = open_clip.create_model_from_pretrained(
        network_name, pretrained=weights, device=device
    )
    network.eval()
    side = network.visual.image_size
    return PictureEncoder(
        name,
        network=network,
        encode=lambda pixels: network.encode_image(pixels, normalize=True),
        prepare=prepare,
        side=int(side if isinstance(side, int) else side[0]),
        device=device,
    )


def _load_texts(library: Any, name: str, network_name: str, device: Any) -> Encoder:
    if (
        "/" in network_name
        and not Path(network_name).is_dir()
        and Path(network_name).is_absolute()
    ):
        raise ValueError("there is no such folder")
    network = library.SentenceTransformer(
        network_name, device=str(device), trust_remote_code=False
    )
    return TextEncoder(name, network.eval())


def _tokenizer_text(module: Any) -> str:
    """What a module does with words, as text."""
    tokenizer: Any = getattr(module, "tokenizer", None)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is not None:
        return str(fast.to_str())
    words = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else None
    settings = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    return repr((words, settings))


def _library_version(name: str) -> str:
    return version(_LIBRARIES[name.partition(":")[0]][0])


def _state_digest(network: Any) -> str:
    """Digest of all weights and their names."""
    import torch

    found = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # As bytes, since NumPy lacks some types of PyTorch, such as bfloat16.
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()
