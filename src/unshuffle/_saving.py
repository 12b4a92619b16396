"""Files written whole or not at all, and text that may hold any file name."""

import csv
import io
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that is complete or not there: beside its place first, then moved.

    Parameters
    ----------
    path : Path
        The file. An existing one is replaced once the new one is complete; through a link,
        the file it points to.
    data : bytes
        What it will hold.
    """
    target = path.resolve()
    part = target.with_name(f".unshuffle-{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(data)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def encode_text(text: str) -> bytes:
    """UTF-8; a file name that is not valid Unicode comes out as the bytes it was made from."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """What `encode_text` was given, with or without a byte order mark ahead."""
    return data.decode("utf-8-sig", "surrogateescape")


# What makes a cell a formula in Excel, LibreOffice and Google Sheets; wide forms count too.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def csv_text(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], *, spreadsheet: bool = False
) -> str:
    """Records as CSV with a heading; None is an empty cell.

    With `spreadsheet`, text that a spreadsheet would run as a formula gets an apostrophe ahead.
    """
    if spreadsheet:
        rows = [{key: _escaped(cell) for key, cell in row.items()} for row in rows]
    # Python 3.11 leaves a lone carriage return unquoted, and then cannot read it.
    odd = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row.values())
    out = io.StringIO(newline="")
    writer = csv.DictWriter(
        out,
        columns,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL,
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _escaped(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA)
    return f"'{cell}" if formula else cell
