"""What is asked of shapes that items are laid out on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn
from unicodedata import normalize


def check_mask_text(text: Any) -> list[str]:
    """Lines of a text that can be drawn, without spaces around them."""
    if not isinstance(text, str):
        raise ValueError(f"`text` must be a string, got {type(text).__name__}.")
    # Some keyboards and file systems give a letter and its accent apart.
    lines = [" ".join(line.split()) for line in normalize("NFC", text).splitlines()]
    lines = ["".join(letter for letter in line if letter.isprintable()) for line in lines]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"`text` has no letter to draw: {text!r}. Give at least one.")
    longest = max(lines, key=len)
    if len(longest) > 200 or len(lines) > 50:
        raise ValueError(
            f"`text` has {len(lines)} line(s) of up to {len(longest)} letters. Give at most 50 "
            "lines of 200 letters."
        )
    return lines


def check_letters(lacking: Sequence[str]) -> None:
    """Refuse letters that cannot be drawn."""
    if lacking:
        raise ValueError(
            f"`text` holds {lacking[0]!r}, which the built-in font cannot draw. Draw the text "
            "yourself, black on white, and use the picture as a mask."
        )


def check_tall_enough(n_found: int, n_cells: int, height: int) -> None:
    """Refuse letters that have fewer cells than asked for."""
    if n_found < n_cells:
        raise ValueError(
            f"Letters of height {height} have {n_found} cells, fewer than the {n_cells} asked "
            "for. Raise `height`, or leave it out."
        )


def check_mask_cells(n_cells: int, path: str | Path) -> None:
    """Refuse a picture in which no shape is drawn."""
    if n_cells == 0:
        raise ValueError(
            f"{path} has no cell: no pixel is dark, or opaque in a picture that is partly clear. "
            "Draw the shape in black on white, or on a transparent ground."
        )


def raise_no_mask(path: str | Path, why: str, cause: Exception) -> NoReturn:
    """Refuse a file that is no picture."""
    raise ValueError(
        f"{path} cannot be read as a mask: {why}. Give a picture with the shape in black on "
        "white, or on a transparent ground."
    ) from cause
