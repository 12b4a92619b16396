"""The device that work runs on: this machine's CPU with NumPy and numba, or a GPU with PyTorch.

PyTorch is imported only if a device is asked for or a tensor is passed.
"""

import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def find_device(device: Any, *collections: Any) -> Any:
    """Device to work on, a `torch.device`; None is NumPy on the CPU.

    If `device` is None, the work stays where the collections are. A GPU that is asked for and
    missing is an error, never replaced by the CPU.
    """
    if device is None:
        homes = {each.device for each in _tensors(collections)}
        homes = {each for each in homes if each.type != "cpu"}
        if len(homes) > 1:
            listed = " and ".join(sorted(map(str, homes)))
            raise ValueError(f"The collections are on {listed}. Move them to one device.")
        if not homes:
            return None
        device = homes.pop()
    name = str(device)
    if name == "cpu":
        return None
    kind, _, number = name.partition(":")
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ValueError(f'`device` must be None, "cpu", "cuda" or "cuda:1", got {name!r}.')
    return _gpu(_load(name), name)


def _gpu(torch: Any, name: str) -> Any:
    """The GPU of a name, such as "cuda:1"."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if n_devices == 0:
        raise ValueError(
            f'device="{name}" is missing: PyTorch {torch.__version__} finds no GPU here. Leave '
            "`device` out to use the CPU."
        )
    number = name.partition(":")[2]
    index = int(number) if number else torch.cuda.current_device()
    if index >= n_devices:
        listed = ", ".join(f'"cuda:{each}"' for each in range(n_devices))
        raise ValueError(f'device="{name}" is missing; there is {listed}.')
    return torch.device("cuda", index)


def _load(name: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f'device="{name}" needs PyTorch: pip install "unshuffle[gpu]". Leave `device` out to '
            "use the CPU."
        ) from error
    return torch


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of a library other than NumPy, by the array API standard."""
    return hasattr(value, "__array_namespace__") and not isinstance(value, np.ndarray | np.generic)


def is_tensor(value: Any) -> bool:
    """Whether a value is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensors(values: Any) -> list[Any]:
    """Tensors among some values, or in lists of them."""
    if is_tensor(values):
        return [values]
    if not isinstance(values, list | tuple) or (values and isinstance(values[0], str)):
        return []
    return [tensor for each in values for tensor in _tensors(each)]


def to_host(value: Any) -> Any:
    """A tensor, or each in a list of tensors, as a NumPy array; anything else unchanged."""
    if is_tensor(value):
        return value.detach().cpu().numpy()
    if isinstance(value, list | tuple) and any(is_tensor(each) for each in value):
        return [to_host(each) for each in value]
    return value


def in_double(value: Any) -> NDArray[np.float64]:
    """A small array or tensor as a NumPy array in double precision."""
    return np.asarray(to_host(value), dtype=np.float64)


def namespace(value: Any) -> Any:
    """NumPy or PyTorch, whichever the value belongs to; they share many names."""
    return sys.modules["torch"] if is_tensor(value) else np


def take(value: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array or tensor."""
    if is_foreign(value):
        xp = value.__array_namespace__()
        return xp.take(value, xp.asarray(rows, device=value.device), axis=0)
    if not is_tensor(value):
        return value[rows]
    return value[sys.modules["torch"].as_tensor(rows, device=value.device)]


def sort_order(values: Any) -> NDArray[np.intp]:
    """Indices that sort some values, equal ones in their order."""
    if not is_tensor(values):
        return np.argsort(values, kind="stable")
    return np.asarray(to_host(values.argsort(stable=True)))


def as_index(indices: NDArray[np.intp], beside: Any) -> Any:
    """Indices in the type, and on the device, of an array or tensor of indices."""
    if not is_tensor(beside):
        return indices.astype(beside.dtype)
    return sys.modules["torch"].as_tensor(indices, dtype=beside.dtype, device=beside.device)


def like(result: NDArray[Any], given: Any) -> Any:
    """A result in the form of what the user gave: a tensor on its device, or an array."""
    if is_foreign(given):
        return given.__array_namespace__().asarray(result, device=given.device)
    if not is_tensor(given):
        return result
    torch = sys.modules["torch"]
    return torch.as_tensor(np.ascontiguousarray(result), device=given.device)


def has_triton(device: Any) -> bool:
    """Whether Triton can compile kernels for this device, or interpret them on the CPU."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def free_memory(device: Any) -> int | None:
    """Bytes free on a device, those that PyTorch holds unused included; None if unknown."""
    if device.type != "cuda":
        return None
    torch = sys.modules["torch"]
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free + unused)


def check_device_memory(device: Any, n_bytes: float, *, what: str, instead: str) -> None:
    """Refuse work that would not fit into the free memory of a device."""
    free = free_memory(device)
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 1e9:,.1f} GB on {device}; {free / 1e9:.1f} GB is free. "
            f"{instead}"
        )
