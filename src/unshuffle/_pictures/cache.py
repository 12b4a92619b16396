"""A cache on disk of thumbnails, previews and vectors: reading a folder again is fast."""

import hashlib
import os
import re
import stat
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import PIL
from numpy.typing import NDArray

from unshuffle._pictures.decoding import Decoded
from unshuffle._run.user_folders import thumbnails_folder

# The least recently used files are removed beyond this: some 100,000 pictures with previews.
MAX_CACHE_BYTES = 4 * 2**30
MAX_VECTOR_BYTES = 2**20
MAX_PREVIEW_BYTES = 64 * 2**20
_MAGIC = {".thumb": b"unshuffle thumbnail 2\n", ".vector": b"unshuffle vector 1\n"}
# Height, width, both in the file of the picture, and bytes of the preview.
_SIZES = struct.Struct("<5I")
_DIGEST_BYTES = 16
# Bytes at each end of a file that go into its key.
_ENDS_BYTES = 16 * 1024
_STARTED_NS = time.time_ns()
# Clocks of file servers may differ from ours.
_SKEW_NS = 60 * 10**9
# A partly written thumbnail this old was left behind by a killed run.
_ABANDONED_NS = 3600 * 10**9
_ENTRY_NAME = re.compile(r"[0-9a-f]{40}\.(thumb|vector)")
_PART_PREFIX = "unshuffle-"
_PART_SUFFIX = ".thumb-part"


def default_cache() -> Path:
    """Folder where this system keeps the user's thumbnails, previews and vectors of pictures.

    Returns
    -------
    folder : Path
        ``unshuffle/thumbnails`` under ``$XDG_CACHE_HOME`` or ``~/.cache``, under
        ``~/Library/Caches`` on macOS, under ``%LOCALAPPDATA%`` on Windows. `read_folder` creates
        it, readable by this user only. Copies of deleted photos stay until the folder is deleted,
        which is safe at any time, or holds more than 4 GiB.

    Examples
    --------
    >>> from unshuffle.images import default_cache
    >>> default_cache().name
    'thumbnails'
    """
    return thumbnails_folder()


class PictureCache:
    """What is known of pictures, a file each, in a folder; `problem` is the first error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem: str | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._fail(error)

    def find(self, key: str, size: tuple[int, int]) -> Decoded | None:
        """The thumbnail of this size and the preview of a picture, or None."""
        start, n_pixels = _SIZES.size, size[0] * size[1] * 3
        data = self._find(key, ".thumb", start + n_pixels + MAX_PREVIEW_BYTES)
        if data is None or len(data) < start:
            return None
        height, width, *original, n_preview = _SIZES.unpack_from(data)
        if (height, width) != size or len(data) != start + n_pixels + n_preview:
            return None
        pixels = np.frombuffer(data, np.uint8, n_pixels, start).reshape(height, width, 3)
        preview = data[start + n_pixels :] or None
        return Decoded(pixels, (original[0], original[1]), preview)

    def store(self, key: str, picture: Decoded) -> None:
        """Keep a picture, without metadata, or set `problem` if that fails."""
        preview = picture.preview or b""
        sizes = _SIZES.pack(*picture.pixels.shape[:2], *picture.original, len(preview))
        self._store(key, ".thumb", sizes + picture.pixels.tobytes() + preview)

    def find_vector(self, key: str) -> NDArray[np.float32] | None:
        """Vector of a picture, or None."""
        data = self._find(key, ".vector", MAX_VECTOR_BYTES)
        if data is None or not data or len(data) % 4:
            return None
        return np.frombuffer(data, "<f4")

    def store_vector(self, key: str, vector: NDArray[np.float32]) -> None:
        """Keep a vector, or set `problem` if that fails."""
        self._store(key, ".vector", vector.astype("<f4").tobytes())

    def _find(self, key: str, kind: str, most: int) -> bytes | None:
        """What is stored under `key`, if it is whole and of at most so many bytes."""
        path, magic = self.folder / f"{key}{kind}", _MAGIC[kind]
        try:
            # lstat: a link or a pipe under this name is foreign.
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode):
                return None
            if found.st_size > len(magic) + most + _DIGEST_BYTES:
                return None
            data = path.read_bytes()
        except OSError:
            return None
        body = data[:-_DIGEST_BYTES]
        if not body.startswith(magic) or _digest(body) != data[-_DIGEST_BYTES:]:
            return None
        with suppress(OSError):
            os.utime(path)  # most recently used, so pruned last
        return body[len(magic) :]

    def _store(self, key: str, kind: str, data: bytes) -> None:
        if self.problem is not None:
            return
        body = _MAGIC[kind] + data
        part = None
        try:
            handle, part = tempfile.mkstemp(_PART_SUFFIX, _PART_PREFIX, self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(body + _digest(body))
            # Complete when it appears: other threads and processes may read it.
            os.replace(part, self.folder / f"{key}{kind}")
        except OSError as error:
            self._fail(error)
            if part is not None:
                with suppress(OSError):
                    os.unlink(part)

    def prune(self) -> None:
        """Remove the least recently used beyond `MAX_CACHE_BYTES`, and abandoned parts.

        Whatever was used since this program started stays: it may be read again.
        """
        entries = []
        with suppress(OSError), os.scandir(self.folder) as listed:
            for entry in listed:
                with suppress(OSError):
                    if _is_ours(entry):
                        found = entry.stat(follow_symlinks=False)
                        entries.append((found.st_mtime_ns, found.st_size, entry.path))
        kept, now = 0, time.time_ns()
        for used, n_bytes, path in sorted(entries, reverse=True):
            kept += n_bytes
            abandoned = path.endswith(_PART_SUFFIX) and now - used > _ABANDONED_NS
            if abandoned or (kept > MAX_CACHE_BYTES and used < _STARTED_NS - _SKEW_NS):
                with suppress(OSError):
                    os.unlink(path)

    def _fail(self, error: OSError) -> None:
        self.problem = self.problem or error.strerror or str(error)


def picture_key(path: Path, *what: object) -> str:
    """Name of what is kept of a file, which changes with the file."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(path)))
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        # A tool may replace a picture by one of the same size and restore its time. The bytes at
        # both ends reveal that almost always, and ctime, which cannot be set, the rest.
        digest.update(file.read(_ENDS_BYTES))
        file.seek(max(found.st_size - _ENDS_BYTES, 0))
        digest.update(file.read(_ENDS_BYTES))
    times = found.st_mtime_ns, found.st_ctime_ns
    # Versions of Pillow may decode to slightly different gray levels.
    parts = (found.st_size, *times, *what, PIL.__version__)
    digest.update(b"\0" + "\0".join(map(str, parts)).encode())
    return digest.hexdigest()[:40]


def _is_ours(entry: os.DirEntry[str]) -> bool:
    """Whether a file was written by this cache; the user may choose any folder."""
    whole = _ENTRY_NAME.fullmatch(entry.name) is not None
    part = entry.name.startswith(_PART_PREFIX) and entry.name.endswith(_PART_SUFFIX)
    return (whole or part) and entry.is_file(follow_symlinks=False)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
