"""What a folder holds, listed without being led out of it."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from unshuffle._files import check_folder

LEADS_OUT = "a link that leads out of the folder"


@dataclass
class Listing:
    """The files of a folder.

    Attributes
    ----------
    files : list of (str, Path)
        Name of each file relative to the folder, with ``/`` between its parts, and where
        it is, in natural order.
    skipped : list of (str, str)
        Name of each entry that was passed over, and why.
    """

    files: list[tuple[str, Path]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def natural_key(name: str) -> tuple[list[tuple[int, int | str]], str]:
    """Sort key that counts: "2.png" comes before "10.png", and case hardly matters."""
    pieces: list[tuple[int, int | str]] = [
        (0, int(piece)) if piece.isdecimal() else (1, piece)
        for piece in re.split("([0-9]+)", name.casefold())
        if piece
    ]
    return pieces, name


def path_key(name: str) -> list[tuple[list[tuple[int, int | str]], str]]:
    """Natural sort key of a path, folder by folder."""
    return [natural_key(part) for part in name.split("/")]


def by_reason(skipped: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Reasons why files were skipped, each with their names: what can be helped comes first.

    What differs from file to file stands in brackets at the end of a reason, and is left out
    where it does differ.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, why in skipped:
        groups.setdefault(why.split(" (")[0], []).append((name, why))
    reasons = []
    for short, entries in groups.items():
        whole = {why for _, why in entries}
        names = [name for name, _ in entries]
        reasons.append((whole.pop() if len(whole) == 1 else short, names))
    return sorted(reasons, key=lambda each: ("pip install" not in each[0], -len(each[1])))


def visible_files(folder: str | Path) -> list[Path]:
    """Everything in `folder` but sub-folders and hidden files, in natural order."""
    entries = [
        path
        for path in check_folder(folder).iterdir()
        if not path.name.startswith(".") and not path.is_dir()
    ]
    return sorted(entries, key=lambda path: natural_key(path.name))


def list_files(folder: Path, *, recursive: bool = False, leave_out: Path | None = None) -> Listing:
    """The visible files of a folder; links that lead out of it are skipped with that reason.

    Parameters
    ----------
    folder : Path
        Where to look.
    recursive : bool, default=False
        Look in sub-folders too, but for hidden ones. A link to a sub-folder is not followed:
        what it leads to is listed under its own name, and so nothing comes twice and no
        circle of links is walked.
    leave_out : Path or None, default=None
        A sub-folder that is not looked into.

    Returns
    -------
    listing : Listing
        Files, and what was passed over.
    """
    root = os.path.realpath(folder)
    avoided = None if leave_out is None else os.path.realpath(leave_out)
    listing = Listing()
    pending = [("", root)]
    while pending:
        prefix, place = pending.pop()
        try:
            names = [name for name in os.listdir(place) if not name.startswith(".")]
        except OSError as error:
            listing.skipped.append((prefix.rstrip("/"), (error.strerror or "unreadable").lower()))
            continue
        for name in names:
            path = os.path.join(place, name)
            is_folder = os.path.isdir(path)
            # Not islink alone: a junction on Windows is none, and leads elsewhere all the same.
            real = os.path.realpath(path) if is_folder or os.path.islink(path) else path
            if not _is_inside(real, root):
                listing.skipped.append((prefix + name, LEADS_OUT))
            elif not is_folder:
                listing.files.append((prefix + name, Path(path)))
            elif recursive and real == path and real != avoided:
                pending.append((f"{prefix}{name}/", path))
    listing.files.sort(key=lambda file: path_key(file[0]))
    listing.skipped.sort(key=lambda entry: path_key(entry[0]))
    return listing


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
