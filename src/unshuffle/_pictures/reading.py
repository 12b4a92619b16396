"""Reading one picture: from the copy kept on disk, else from its file, which is then copied."""

import os
from pathlib import Path
from typing import NamedTuple

from unshuffle._files.paths import LEADS_OUT, file_size, is_inside
from unshuffle._pictures.cache import PictureCache, picture_key
from unshuffle._pictures.decoding import Decoded, decode, explain


class ReadingTask(NamedTuple):
    """How pictures are read, and where their copies are kept."""

    size: tuple[int, int]
    fit: str
    preview: int | None = None  # longest side of a larger copy
    copies: str | None = None  # folder of a cache
    # The folder is new and will be removed: it holds previews only, by their numbers.
    temporary: bool = False
    # Folders that links may lead to; anything else is not opened.
    roots: tuple[str, ...] = ()


class Reading(NamedTuple):
    """What came of reading one picture."""

    picture: Decoded | None = None
    reason: str = ""  # why it was not read
    key: str = ""  # of its copy
    from_copy: bool = False
    problem: str | None = None  # why no copy is kept


class PictureReader:
    """Reads pictures as a task says; may be used by several threads."""

    def __init__(self, task: ReadingTask) -> None:
        self.task = task
        self.cache = None if task.copies is None else PictureCache(Path(task.copies))
        self.roots = [os.path.realpath(root) for root in task.roots]

    def read(self, path: Path, number: int) -> Reading:
        """Read a picture, the `number`-th of all."""
        try:
            self.check_inside(path)
            return self._read(path, number)
        except Exception as error:
            # Decoders raise almost anything on damaged data.
            return Reading(None, explain(error))

    def check_inside(self, path: Path) -> None:
        """Refuse a link that leads out of the folders, also one made after they were listed."""
        place = os.path.realpath(path)
        if self.roots and not any(is_inside(place, root) for root in self.roots):
            raise ValueError(LEADS_OUT)

    def find_preview(self, key: str) -> bytes | None:
        """Larger copy of a picture that was read, unless it is gone."""
        kept = None if self.cache is None else self.cache.find(key, self._kept_size)
        return None if kept is None else kept.preview

    @property
    def _kept_size(self) -> tuple[int, int]:
        return (0, 0) if self.task.temporary else self.task.size

    def _read(self, path: Path, number: int) -> Reading:
        if self.cache is None:
            return Reading(self._decode(path))
        file_size(path)  # refuses what must not be opened, such as a pipe
        if self.task.temporary:
            picture, key = self._decode(path), f"{number:040x}"
            self.cache.store(key, picture._replace(pixels=picture.pixels[:0, :0]))
            return Reading(picture, key=key, problem=self.cache.problem)
        larger = () if self.task.preview is None else (self.task.preview,)
        # Computed before the file is read: if it changes meanwhile, the next reading notices.
        key = picture_key(path, *self.task.size, self.task.fit, *larger)
        found = self.cache.find(key, self.task.size)
        if found is not None:
            return Reading(found, key=key, from_copy=True)
        picture = self._decode(path)
        self.cache.store(key, picture)
        return Reading(picture, key=key, problem=self.cache.problem)

    def _decode(self, path: Path) -> Decoded:
        return decode(path, size=self.task.size, fit=self.task.fit, preview=self.task.preview)
