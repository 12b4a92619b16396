"""Compilation of loops with numba, with the machine code cached on disk if possible.

Importing this module imports numba.
"""

import logging
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

try:
    import numba
    from numba.core.caching import FunctionCache
    from numba.misc.appdirs import AppDirs
except ImportError as error:
    raise ImportError(
        "Work on the CPU needs numba: pip install numba. Without it, layouts, "
        'large matchings and kernels between sets run on a GPU, with device="cuda".'
    ) from error


def compiled(
    *, error_model: Literal["python", "numpy"] = "python", fastmath: bool | set[str] = False
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call and store the machine code for later runs.

    Compiled functions release the interpreter lock. If the machine code cannot be stored or
    read, the function is compiled again in each process, with one warning.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        # Wrappers take a tenth of the time: none for callbacks from C, and none for calls from
        # Python of functions that only others here call.
        wrappers: Any = {
            "no_cfunc_wrapper": True,
            "no_cpython_wrapper": function.__name__.startswith("_"),
        }
        loop: Any = numba.njit(nogil=True, error_model=error_model, fastmath=fastmath, **wrappers)(
            function
        )
        try:
            loop._cache = _Storage(function)
        except (RuntimeError, OSError):  # no writable folder: numba stores nothing
            _warn(
                f"none of these folders can be written: {_folders(function)}",
                "Set NUMBA_CACHE_DIR to a folder that can.",
            )
        return loop

    return decorate


class _Storage(FunctionCache):
    """Machine code of one function on disk. Errors there cost time, never a result."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Called functions are compiled into it, but numba checks the date of its own file only.
        called = [getattr(value, "_cache", None) for value in function.__globals__.values()]
        self.sources: set[Any] = {self._impl.locator.get_source_stamp()}.union(
            *(storage.sources for storage in called if isinstance(storage, _Storage))
        )
        self._cache_file._source_stamp = self.sources

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored machine code, or None if there is none or it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle raises nearly anything
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store machine code; on failure warn and stop storing."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self.disable()
            self._forget()  # the index may point to outdated code
            _warn(
                f"writing to {self.cache_path} failed ({error})",
                "Free some space there or set NUMBA_CACHE_DIR to another folder.",
            )

    def _forget(self) -> None:
        """Remove the index, without which stored code is not loaded."""
        with suppress(OSError):  # unlink, since a full disk cannot rewrite it
            os.unlink(self._cache_file._index_path)


def _folders(function: Callable[..., Any]) -> str:
    """Folders in which numba tries to store the code of a function."""
    package = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")
    home = AppDirs(appname="numba", appauthor=False).user_cache_dir
    return ", ".join(filter(None, [os.environ.get("NUMBA_CACHE_DIR"), package, home]))


def storage_folders() -> list[tuple[str, list[str]]]:
    """Folders in which numba tries to store the code of this package, in order.

    Each comes with the folders in it that hold the code, one for each folder of sources.
    """
    from numba.core.caching import _CacheLocator  # private: only reports need it

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sources = [folder for folder, _, files in os.walk(package) if "__init__.py" in files]
    beside = [os.path.join(folder, "__pycache__") for folder in sources]
    # As numba names them in a folder that several packages share.
    inside = [
        _CacheLocator.get_suitable_cache_subpath(os.path.join(folder, "__init__.py"))
        for folder in sources
    ]
    home = AppDirs(appname="numba", appauthor=False).user_cache_dir
    tried = [(package, beside), (home, [os.path.join(home, name) for name in inside])]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        tried.insert(0, (chosen, [os.path.join(chosen, name) for name in inside]))
    return tried


_warned: list[str] = []


def _warn(reason: str, advice: str) -> None:
    """Warn once per process that machine code is not stored."""
    message = (
        f"Compiled code could not be stored: {reason}. Results are the same, but each new process "
        f"spends seconds compiling. {advice}"
    )
    if _warned:
        return
    _warned.append(message)
    try:
        warnings.warn(message, stacklevel=2)
    except UserWarning:  # warnings are errors, but results are not affected: log instead
        logging.getLogger("unshuffle").warning(message)
