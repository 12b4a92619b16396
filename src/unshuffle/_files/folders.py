"""Folders that hold a page and its files, replaced file by file.

A wall in a folder is a page, ``index.html``, and a folder of its files, whose name changes with
its content::

    wall/index.html
    wall/files-5c0d2f1b9e6a4477/manifest.txt     SHA-256 and name of the page and of each file
    wall/files-5c0d2f1b9e6a4477/viewer.js, ...

The next wall is written beside these. Replacing the page, which is one step, changes from one wall
to the other; then the files of the old one are removed. What is removed is found on disk and
compared with a manifest. No path is ever taken from a manifest.
"""

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from unshuffle._files.paths import as_path, check_output_path, natural_key
from unshuffle._files.saving import (
    is_old,
    is_part,
    locked,
    part_folder,
    remove_leftovers,
    replace_file,
)

# Stands in a page for the name of the folder of its files, which depends on the page.
FILES = "files-0000000000000000"
PAGE, MANIFEST = "index.html", "manifest.txt"
# In the first bytes of a page.
PAGE_MARK = b'<meta name="generator" content="unshuffle">'
_FILES_NAME = re.compile("files-[0-9a-f]{16}")
_LINE = re.compile("([0-9a-f]{64})  (.+)")
# Of a manifest, for a few million files, and of a page beside its files.
_MOST_BYTES, _MOST_PAGE_BYTES = 2**28, 2**26
# Files that Finder and Explorer put into folders they show. They stay where they are.
_OF_SYSTEMS = {".DS_Store", "Thumbs.db", "desktop.ini"}
_SHOWN = 10  # names in an error
_AT_ONCE = 2**20  # bytes of a file
_PATIENCE_SECONDS = 120.0


def check_page_folder(path: str | os.PathLike[str]) -> Path:
    """Path of a folder for a page that can be written: new, empty, or an unchanged wall."""
    target = as_path(path, "`path`")
    if not target.is_dir():
        return check_output_path(target, ("",))
    try:
        with _one_writer(target):
            _Survey.of(target).check(target)
    except OSError as error:
        raise ValueError(
            f"Cannot write {target}: {error.strerror or error}. Choose another folder."
        ) from error
    check_output_path(target / PAGE, (".html",))
    return target


def replace_folder(path: Path, fill: Callable[[Path], bytes]) -> None:
    """Write a wall: `fill` an empty folder with its files and return its page.

    The page calls that folder `FILES`. An earlier wall stays until the new one is complete, and
    is refused if a file in it was added or changed. Runs that write to one folder take turns; the
    last one stays.
    """
    target = Path(os.path.realpath(path))
    is_new = not target.exists()
    try:
        target.mkdir(exist_ok=True)
        remove_leftovers(target)
        with part_folder(target) as part:
            page = fill(part)
            name = _seal(part, page)
            page = page.replace(FILES.encode(), name.encode())
            with _one_writer(target) as is_alone:
                _exchange(target, part, page, name, is_alone)
    except OSError as error:
        if error.errno is None:
            raise
        # Name the folder the user asked for, not the part.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if is_new:
            with suppress(OSError):  # not empty
                target.rmdir()


def changed_files(folder: Path, names: Iterable[str]) -> list[str]:
    """Those of some files that the manifest of a folder does not list as they are now."""
    listed = _parse_manifest(_read_manifest(folder))
    found = [name for name in names if os.path.lexists(folder / name)]
    if os.path.lexists(folder / MANIFEST) and not listed:
        found.append(MANIFEST)
    return [name for name in found if not _is_listed(folder / name, listed.get(name))]


def list_files_in(folder: Path, names: Iterable[str]) -> None:
    """Write a manifest of some files of a folder, if they exist."""
    paths = {name: folder / name for name in names}
    digests = {name: _digest(path) for name, path in paths.items() if path.is_file()}
    if digests:
        replace_file(folder / MANIFEST, _manifest(digests))


def _is_listed(path: Path, digest: str | None) -> bool:
    return (
        digest is not None and not path.is_symlink() and path.is_file() and _digest(path) == digest
    )


@contextmanager
def _one_writer(folder: Path) -> Iterator[bool]:
    """Wait until no other run replaces this wall; False where folders cannot be locked."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with locked(folder) as found:
            if found is not False:
                yield bool(found)
                return
        if time.monotonic() > end:
            raise OSError(errno.EAGAIN, "Another run has been replacing it for two minutes")
        time.sleep(0.02)


def _exchange(target: Path, part: Path, page: bytes, name: str, is_alone: bool) -> None:
    """Put a finished wall in place and remove the files of earlier ones."""
    before = _Survey.of(target)
    before.check(target)  # again: files may have been added while the wall was written
    shown = _shown_files(target)
    files, moved = target / name, False
    try:
        if files.exists():
            # The same wall again; some of its files may be gone.
            for each in _walk(part):
                place = files / each.relative_to(part)
                place.parent.mkdir(parents=True, exist_ok=True)
                if not place.exists():
                    os.rename(each, place)
        else:
            os.rename(part, files)
            moved = True
        replace_file(target / PAGE, page)
    except BaseException:
        if moved and _shown_files(target) != name:
            with suppress(OSError):
                os.rename(files, part)
        raise
    for folder, own in before.own.items():
        # Without locks, another run may have put files there that its page will show.
        if folder != name and (is_alone or folder == shown or is_old(target / folder)):
            _remove(target / folder, own)


def _seal(part: Path, page: bytes) -> str:
    """Write the manifest and return the name for the folder, which is a digest of it."""
    digests = {each.relative_to(part).as_posix(): _digest(each) for each in _walk(part)}
    digests[f"../{PAGE}"] = hashlib.sha256(page).hexdigest()
    content = _manifest(digests)
    (part / MANIFEST).write_bytes(content)
    return _name_of(content)


def _manifest(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def _name_of(manifest: bytes) -> str:
    return f"files-{hashlib.sha256(manifest).hexdigest()[:16]}"


def _digest(path: str | Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        # Unlike hashlib.file_digest, this takes no large buffer for each of many small files.
        while block := file.read(_AT_ONCE):
            found.update(block)
    return found.hexdigest()


def _parents(names: Iterable[str]) -> set[str]:
    """All folders on the way to some files."""
    found = {name.rpartition("/")[0] for name in names}
    for name in list(found):
        found.update(parent.as_posix() for parent in Path(name).parents)
    return found


def _page_digest(page: bytes, files: str) -> str:
    """As the manifest has it, which cannot hold its own digest."""
    return hashlib.sha256(page.replace(files.encode(), FILES.encode())).hexdigest()


# Size, time and number of a file, which change when it is written to or replaced.
_Signature = tuple[int, int, int]


def _signature(path: str | Path) -> _Signature:
    found = os.lstat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


@dataclass
class _Survey:
    """What a folder holds: files of walls, by their folder, and the names of all others."""

    own: dict[str, list[tuple[str, _Signature]]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    advice: str = ""

    @classmethod
    def of(cls, folder: Path) -> "_Survey":
        """Compare every file with the manifests; links are not followed."""
        found, manifests, has_page = cls(), {}, False
        for entry in _entries(os.path.realpath(folder)):
            if entry.is_folder and _FILES_NAME.fullmatch(entry.name):
                content = _read_manifest(Path(entry.path))
                # A manifest that was changed does not belong to the name of its folder.
                is_whole = _name_of(content) == entry.name
                manifests[entry.name] = manifest = _parse_manifest(content) if is_whole else {}
                found._compare(Path(entry.path), manifest)
            elif entry.name == PAGE and entry.is_file:
                has_page = True
            else:
                found.others.append(entry.shown)
        if has_page:
            found._compare_page(folder, manifests)
        return found

    def check(self, folder: Path) -> None:
        """Refuse a folder with files that no wall wrote, or that were changed since."""
        if not self.others:
            return
        names = sorted(self.others, key=natural_key)
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        raise ValueError(
            f"Cannot write {folder}: the folder holds other files, which would be lost: "
            f"{', '.join(names[:_SHOWN])}{more}. {self.advice}Give the name of a new "
            "folder, or move these files away."
        )

    def _compare(self, files: Path, manifest: dict[str, str]) -> None:
        """Divide the files in the folder of a wall into its own and others."""
        if not manifest:
            if any(each.name not in _OF_SYSTEMS for each in _walk(files)):
                self.others.append(f"{files.name}/")
                self.advice = (
                    f"{files.name}/{MANIFEST}, by which the files of a wall are recognized, is "
                    "missing or was changed. "
                )
            else:  # emptied by a killed run
                self.own[files.name] = []
            return
        parents = _parents(manifest)
        own, pending = [], [("", str(files))]
        while pending:
            prefix, place = pending.pop()
            for entry in _entries(place):
                name = prefix + entry.name
                if entry.is_folder and name in parents:
                    pending.append((f"{name}/", entry.path))
                    continue
                before = _signature(entry.path)
                if name == MANIFEST:
                    own.append((entry.path, before))
                elif not entry.is_file or name not in manifest:
                    self.others.append(f"{files.name}/{prefix}{entry.shown}")
                elif _digest(entry.path) != manifest[name]:
                    self.others.append(f"{files.name}/{name} (changed since)")
                else:
                    own.append((entry.path, before))
        manifest_path = str(files / MANIFEST)
        # The manifest goes last, so that what a killed run leaves can be recognized.
        self.own[files.name] = sorted(own, key=lambda each: each[0] == manifest_path)

    def _compare_page(self, folder: Path, manifests: dict[str, dict[str, str]]) -> None:
        """See whether the page is that of a wall with a manifest."""
        with open(folder / PAGE, "rb") as file:
            page = file.read(_MOST_PAGE_BYTES)
        files = _files_shown_by(page)
        is_ours = PAGE_MARK in page[:4096]
        if is_ours and manifests.get(files, {}).get(f"../{PAGE}") == _page_digest(page, files):
            return
        self.others.append(f"{PAGE}{' (changed since)' if manifests.get(files) else ''}")
        if is_ours and not manifests and (folder / "viewer.js").is_file():
            self.advice = (
                "It looks like a wall of unshuffle 0.2.0, which wrote no manifest, so "
                "its files cannot be told from yours. If none is yours, delete the folder. "
            )


@dataclass(frozen=True)
class _Entry:
    """Something in a folder."""

    name: str
    path: str
    is_file: bool  # a regular one
    is_folder: bool

    @property
    def shown(self) -> str:
        """Name for an error."""
        return f"{self.name}/" if self.is_folder else self.name


def _entries(folder: str) -> list[_Entry]:
    """What a folder holds but for parts of runs and files of the system."""
    found = []
    with os.scandir(folder) as listed:
        for entry in listed:
            if is_part(entry.name):
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except FileNotFoundError:  # another run has removed it
                continue
            # Not the mode alone, which calls junctions on Windows folders.
            real = stat.S_ISDIR(mode) and os.path.realpath(entry.path) == entry.path
            one = _Entry(entry.name, entry.path, stat.S_ISREG(mode), real)
            if not (one.is_file and entry.name in _OF_SYSTEMS):
                found.append(one)
    return found


def _walk(folder: Path) -> list[Path]:
    """All files under a folder."""
    return [Path(place) / name for place, _, names in os.walk(folder) for name in names]


def _read_manifest(folder: Path) -> bytes:
    """The manifest in a folder; nothing if it is missing, no plain file or too large."""
    path = folder / MANIFEST
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES:
            return path.read_bytes()
    return b""


def _parse_manifest(content: bytes) -> dict[str, str]:
    """Digests of files by their names; none if anything else is in it."""
    try:
        lines = [_LINE.fullmatch(line) for line in content.decode().split("\n")[:-1]]
    except UnicodeDecodeError:
        return {}
    return {line[2]: line[1] for line in lines if line is not None} if all(lines) else {}


def _files_shown_by(page: bytes) -> str:
    """Name of the folder of files that a page shows; "" if there is none."""
    found = re.search(f'href="({_FILES_NAME.pattern})/'.encode(), page)
    return "" if found is None else found[1].decode()


def _shown_files(folder: Path) -> str:
    """Name of the folder of files that the page of a wall shows; "" if there is none."""
    try:
        return _files_shown_by((folder / PAGE).read_bytes())
    except FileNotFoundError:
        return ""


def _remove(files: Path, own: list[tuple[str, _Signature]]) -> None:
    """Remove files that are still as they were compared, and folders that are then empty."""
    for path, before in own:
        with suppress(OSError):
            if _signature(path) == before:
                os.unlink(path)
    for place, _, _ in os.walk(files, topdown=False):
        with suppress(OSError):
            os.rmdir(place)
