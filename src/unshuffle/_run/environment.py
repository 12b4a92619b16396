"""What is installed and where it runs: the report of `show_versions` and `unshuffle doctor`.

Nothing here needs more than the standard library, so that a broken installation is described too.
"""

import os
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from unshuffle import __version__
from unshuffle._run.user_folders import thumbnails_folder, walls_folder
from unshuffle._run.versions import release

# What a driver of a GPU that PyTorch can use leaves in /dev: NVIDIA, its small boards, Windows's
# Linux, and AMD.
_DRIVERS = ("nvidia*", "nvhost*", "nvmap", "dxg", "kfd")
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
_OWN = ("unshuffle", "Python", "platform")
_FOR_DEVELOPERS = ("api", "bench", "docs", "lint", "release", "test")
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^]]*)])?\s*\(?([^;)]*)\)?\s*;?\s*(.*)")


@dataclass(frozen=True)
class Extra:
    """An extra of the package, what it lacks, and the command that installs it."""

    name: str
    missing: list[str]
    command: str

    @property
    def installed(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True)
class Gpu:
    """Names and bytes of memory of the GPUs that PyTorch finds, or why there is none."""

    devices: list[tuple[str, int]]
    reason: str


@dataclass(frozen=True)
class Folder:
    """A folder that the library writes to; `advice` says what to do if it cannot."""

    name: str
    path: Path
    n_bytes: int
    writable: bool
    advice: str


@dataclass(frozen=True)
class Environment:
    """Versions, extras, cores, libraries of threads, GPUs and folders."""

    versions: dict[str, str | None]
    extras: list[Extra]
    cores: int
    usable_cores: int
    thread_limits: dict[str, str]
    thread_pools: list[dict[str, Any]]
    gpu: Gpu
    folders: list[Folder]

    def record(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {
            "versions": self.versions,
            "extras": {
                each.name: {
                    "installed": each.installed,
                    "missing": each.missing,
                    "command": each.command,
                }
                for each in self.extras
            },
            "cores": self.cores,
            "usable_cores": self.usable_cores,
            "thread_limits": self.thread_limits,
            "thread_pools": self.thread_pools,
            "gpu": {
                "devices": [
                    {"name": name, "memory_bytes": n_bytes} for name, n_bytes in self.gpu.devices
                ],
                "reason": self.gpu.reason,
            },
            "folders": {
                each.name: {
                    "path": _shown_path(each.path),
                    "bytes": each.n_bytes,
                    "writable": each.writable,
                }
                for each in self.folders
            },
        }

    def lines(self, *, every: bool = True) -> list[str]:
        """All of it as a table, a line each, or only what most users need."""
        versions = [each for each in self.versions if every or each in _OWN]
        extras = [each for each in self.extras if every or each.name not in _FOR_DEVELOPERS]
        pools = self.thread_pools if every else []
        folders = [each for each in self.folders if every or not each.writable]
        rows = [("Versions", "")]
        rows += [(f"  {name}", self.versions[name] or "missing") for name in versions]
        rows.append(("Extras", "" if self.extras else "unknown: no metadata is installed"))
        rows += [(f"  {each.name}", _shown_extra(each)) for each in extras]
        rows.append(("Compute", ""))
        limits = [f"{name}={value}" for name, value in self.thread_limits.items()]
        rows.append(
            ("  cores", ", ".join([f"{self.usable_cores} of {self.cores} usable", *limits]))
        )
        rows += [(f"  {each['kind']}", _shown_pool(each)) for each in pools]
        for name, n_bytes in self.gpu.devices:
            rows.append(("  GPU", f"{name}, {n_bytes / 1e9:.0f} GB"))
        if not self.gpu.devices:
            rows.append(("  GPU", f"no GPU: {self.gpu.reason}"))
        rows += [("Folders", "")] if folders else []
        rows += [(f"  {each.name}", _shown_folder(each)) for each in folders]
        return [printable(f"{name:<17}{value}").rstrip() for name, value in rows]


def show_versions() -> None:
    """Print what a bug report should include: versions, extras, cores, GPU and folders.

    Versions are those of unshuffle, Python and all libraries it requires. Each extra is installed
    or listed with the command that installs it. Folders are those of compiled loops, of cached
    pictures and of the work kept by the page, with their sizes.

    See Also
    --------
    unshuffle.images.default_cache : The folder of cached pictures.

    Notes
    -----
    ``unshuffle doctor`` on the command line prints the same and checks that the library works.
    PyTorch is imported only if it is installed and this machine has the driver of a GPU. Nothing
    is sent anywhere. Paths have ``~`` in place of your home folder.

    Examples
    --------
    >>> import unshuffle
    >>> unshuffle.show_versions()
    Versions
      unshuffle ...
      Python ...
    Extras ...
    Compute ...
    Folders ...
    """
    # Its purpose is to print, unlike that of anything else outside the command line.
    sys.stdout.write("\n".join(look_around().lines()) + "\n")


def look_around() -> Environment:
    """Gather all of it; what cannot be found out is left empty."""
    usable, pools = _threads()
    return Environment(
        versions=_versions(),
        extras=[_extra(name) for name in sorted(_extra_names())],
        cores=os.cpu_count() or 1,
        usable_cores=usable,
        thread_limits={name: os.environ[name] for name in _LIMITS if os.environ.get(name)},
        thread_pools=pools,
        gpu=_gpu(),
        folders=_folders(),
    )


def printable(text: object) -> str:
    """Text without control characters, in letters that standard output can write."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(text))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return shown.encode(encoding, "replace").decode(encoding, "replace")


def missing_parts(distribution: str, extra: str | None = None) -> list[str]:
    """What a distribution requires, or an extra of it, that is not installed or too old."""
    found = []
    for name, extras, lowest in _requirements(distribution, extra):
        version = _version(name)
        if version is None:
            found.append(name)
        elif release(version) < release(lowest):
            found.append(f"{name} {lowest} or newer, not {version}")
        else:
            found += [part for each in extras for part in missing_parts(name, each)]
    return list(dict.fromkeys(found))


def _requirements(distribution: str, extra: str | None) -> Iterator[tuple[str, list[str], str]]:
    """Name, extras and lowest version of each requirement on this platform."""
    try:
        listed = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        listed = []
    for line in listed:
        found = _REQUIREMENT.match(line)
        if found is None or not _applies(found[4], extra):
            continue
        lowest = re.search(r">=\s*([\d.]+)", found[3])
        extras = [each.strip() for each in (found[2] or "").split(",") if each.strip()]
        yield found[1], extras, lowest[1] if lowest else "0"


def _applies(marker: str, extra: str | None) -> bool:
    """Whether a requirement with this marker belongs to an extra, or to none, on this platform.

    Markers about anything else do not apply: better to miss a part than to report a wrong one.
    """
    extras = re.findall(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]", marker)
    if (extra in extras) != (extra is not None) or (extra is None and extras):
        return False
    for sign, value in re.findall(r"\bsys_platform\s*([=!]=)\s*['\"](\w+)['\"]", marker):
        if (sys.platform == value) != (sign == "=="):
            return False
    return re.search(r"\b(python_|platform_|os_name|implementation_)", marker) is None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _versions() -> dict[str, str | None]:
    required = [name for name, _, _ in _requirements("unshuffle", None)]
    return {
        "unshuffle": __version__,
        "Python": platform.python_version(),
        "platform": platform.platform(),
        **{name: _version(name) for name in sorted(required)},
    }


def _extra_names() -> Iterable[str]:
    try:
        return metadata.metadata("unshuffle").get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []


def _extra(name: str) -> Extra:
    return Extra(name, missing_parts("unshuffle", name), f"pip install 'unshuffle[{name}]'")


def _threads() -> tuple[int, list[dict[str, Any]]]:
    """Cores this process may use, and the libraries that start threads of their own."""
    usable = os.cpu_count() or 1
    try:
        import joblib

        usable = joblib.cpu_count()
        # Libraries are found once they are loaded.
        import numpy  # noqa: F401
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_info

        found = threadpool_info()
    except Exception:  # a broken library may raise anything
        return usable, []
    pools = [
        {
            "kind": "BLAS" if each["user_api"] == "blas" else "OpenMP",
            "library": each["internal_api"],
            "version": each.get("version"),
            "threads": each["num_threads"],
        }
        for each in found
    ]
    # Wheels of NumPy and SciPy each bring a copy.
    return usable, [each for i, each in enumerate(pools) if each not in pools[:i]]


def _gpu() -> Gpu:
    version = _version("torch")
    if version is None:
        return Gpu([], "PyTorch is not installed; if there is one, pip install 'unshuffle[gpu]'")
    if "torch" not in sys.modules and not _has_driver():
        return Gpu([], "this machine has no driver for one")
    try:
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            import torch

            n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
            found = [torch.cuda.get_device_properties(each) for each in range(n_devices)]
    except Exception as error:  # a broken library may raise anything
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return Gpu([], f"PyTorch {version} does not work ({why}); reinstall it")
    # PyTorch warns of, for example, a driver that is too old.
    why = " ".join(" ".join(str(each.message).split()) for each in remarks)
    return Gpu(
        [(each.name, int(each.total_memory)) for each in found],
        "" if found else why or f"PyTorch {version} finds none",
    )


def _has_driver() -> bool:
    """Whether a GPU may be in use: importing PyTorch to find out takes seconds."""
    if sys.platform == "darwin":
        return False
    if sys.platform != "linux":
        return True
    return any(next(Path("/dev").glob(each), None) is not None for each in _DRIVERS)


def _folders() -> list[Folder]:
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    return [
        *_compiled_loops(),
        _user_folder(
            "pictures",
            thumbnails_folder,
            f"they are read anew each time; set {variable} to another folder",
        ),
        _user_folder("page", walls_folder, "give unshuffle serve --state FILE.json elsewhere"),
    ]


def _compiled_loops() -> list[Folder]:
    try:
        from unshuffle._run.compile import storage_folders

        tried = storage_folders()
    except Exception:  # numba is missing or broken; `unshuffle doctor` says so
        return []
    # The first that can be written, as numba takes it.
    base, parts = next((each for each in tried if _is_writable(Path(each[1][0]))), tried[0])
    n_bytes = sum(_n_bytes(Path(each), (".nbi", ".nbc")) for each in parts)
    advice = "each process compiles them again; set NUMBA_CACHE_DIR to another folder"
    return [Folder("compiled loops", Path(base), n_bytes, _is_writable(Path(parts[0])), advice)]


def _user_folder(name: str, find: Callable[[], Path], advice: str) -> Folder:
    try:
        path = find()
    except RuntimeError:  # a user without a home folder, as in some containers
        return Folder(name, Path("~"), 0, False, "there is no home folder; set HOME to one")
    return Folder(name, path, _n_bytes(path), _is_writable(path), advice)


def _is_writable(folder: Path) -> bool:
    """Whether files can be written to a folder, or to the one it would be made in."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    try:
        # Permissions do not tell for every file system and user.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _n_bytes(folder: Path, suffixes: tuple[str, ...] = ("",)) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            if name.endswith(suffixes):
                try:
                    total += os.lstat(os.path.join(place, name)).st_size
                except OSError:  # removed meanwhile
                    continue
    return total


def _shown_extra(extra: Extra) -> str:
    if extra.installed:
        return "installed"
    return f"{extra.command}  (missing: {', '.join(extra.missing)})"


def _shown_pool(pool: dict[str, Any]) -> str:
    version = f" {pool['version']}" if pool["version"] else ""
    threads = pool["threads"]
    return f"{pool['library']}{version}, {threads} thread{'s' * (threads != 1)}"


def _shown_folder(folder: Folder) -> str:
    shown = f"{_shown_path(folder.path)}, {_shown_size(folder.n_bytes)}"
    return shown if folder.writable else f"{shown}, cannot be written: {folder.advice}"


def _shown_path(path: Path) -> str:
    """A path without the name of the user, as far as possible: reports are made public."""
    home = os.path.expanduser("~")
    inside = home != os.sep and path.is_relative_to(home)
    return os.path.join("~", path.relative_to(home)) if inside else str(path)


def _shown_size(n_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes" if n_bytes else "empty"
