"""Folders in which this system keeps what the library stores for the user."""

import os
import sys
from pathlib import Path


def thumbnails_folder() -> Path:
    """Folder of cached thumbnails, previews and vectors of pictures, which may be deleted."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "unshuffle" / "thumbnails"
    return _base("XDG_CACHE_HOME", ".cache") / "unshuffle" / "thumbnails"


def walls_folder() -> Path:
    """Folder of the work that the page keeps, which is not stored elsewhere."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "unshuffle" / "walls"
    return _base("XDG_DATA_HOME", ".local/share") / "unshuffle" / "walls"


def _base(variable: str, usual: str) -> Path:
    """Folder of local data on Windows; elsewhere the one that a variable of XDG names."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    base = Path(os.environ.get(variable) or home / usual)
    # The XDG specification says to ignore relative paths.
    return base if base.is_absolute() else home / usual
