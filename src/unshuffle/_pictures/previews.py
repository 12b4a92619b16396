"""Larger copies of pictures, which stay on disk until they are asked for."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from unshuffle._pictures.reading import PictureReader


class TemporaryFolder:
    """A temporary folder, removed when this object is gone or the program ends."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="unshuffle-previews-")
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked copy of the program
        shutil.rmtree(path, ignore_errors=True)


class Previews(Sequence[bytes]):
    """Larger copies of the pictures of a folder, each read from disk when it is asked for.

    A copy that is gone is made again from the file of the picture.
    """

    def __init__(
        self,
        folder: Path,
        names: list[str],
        keys: list[str],
        reader: PictureReader,
        temporary: TemporaryFolder | None = None,
    ) -> None:
        self._folder = folder
        self._names = names
        self._keys = keys
        self._reader = reader
        self._temporary = temporary  # alive as long as this

    def __repr__(self) -> str:
        return f"<{len(self):,} previews of at most {self._reader.task.preview} pixels>"

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, i: SupportsIndex) -> bytes:  # type: ignore[override]  # no slices
        i = range(len(self))[index(i)]
        found = self._reader.find_preview(self._keys[i])
        if found is not None:
            return found
        path, number = self._folder / self._names[i], int(self._keys[i], 16)
        picture, reason, *_ = self._reader.read(path, number)
        if picture is None or picture.preview is None:
            raise ValueError(
                f"The preview of {path} is gone, and the picture cannot be read any more: "
                f"{reason}."
            )
        return picture.preview

    def take(self, items: Iterable[int]) -> "Previews":
        """Some of them, in this order."""
        chosen = list(items)
        names, keys = ([of[i] for i in chosen] for of in (self._names, self._keys))
        return Previews(self._folder, names, keys, self._reader, self._temporary)

    def __getstate__(self) -> dict[str, Any]:
        # The folder goes with its owner; a copy then makes its previews again.
        return {**self.__dict__, "_temporary": None}
