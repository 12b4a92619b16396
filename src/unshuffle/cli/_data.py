"""The table of `--data`: columns of text for the items of a folder, found by their names."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from unshuffle._files.paths import BadInput, check_regular_file
from unshuffle._files.tables import counted, find_column, read_delimited
from unshuffle._files.typed import read_parquet_text

SUFFIXES = (".csv", ".tsv", ".parquet")
_NAME = "name"  # heading of the names themselves, on a page and in a saved selection
# Bytes of file names that are not UTF-8, as Python holds them, and the same letters in Latin-1.
_LATIN_1 = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}


@dataclass(frozen=True)
class ItemData:
    """What a table says about each item."""

    columns: dict[str, list[str]]  # heading, and one cell as written for each item, "" for none
    note: str  # one sentence for the console


def read_data(
    path: Path, names: Sequence[str], *, column: str | None = None, noun: str = "picture"
) -> ItemData:
    """Columns of a table in the order of the items, which one of the columns names.

    `names` are relative paths with ``/`` between their parts. `column` is the heading, or the
    number counted from 1, of the column that names them; None finds it. `noun` is what messages
    call an item.
    """
    header, columns = _read_columns(path, noun)
    items = _Names(names)
    chosen = (
        _choose_column(columns, items)
        if column is None
        else find_column(column, header, len(header), path)
    )
    found = [] if chosen is None else items.find(columns[chosen])
    if chosen is None or max(found) < 0:
        raise _not_named(path, header, columns, names, chosen, noun)
    first = items.find_exactly(header[chosen])
    if first >= 0 and first not in found and path.suffix.lower() != ".parquet":
        # The first line holds an item rather than headings.
        columns = [[cell, *cells] for cell, cells in zip(header, columns, strict=True)]
        header, found = [""] * len(header), [first, *found]
    kept = [k for k in range(len(header)) if k != chosen and (header[k] or any(columns[k]))]
    if not kept:
        raise BadInput(
            f"{path} has one column, which names the {noun}s. Add others, which say something "
            "about them."
        )
    first_rows = {item: row for row, item in reversed([*enumerate(found)])}
    row_of = [first_rows.get(item, -1) for item in range(len(names))]
    headings = _tidy_headings(header)
    return ItemData(
        {headings[k]: [columns[k][row] if row >= 0 else "" for row in row_of] for k in kept},
        _describe(path, header[chosen] or chosen + 1, found, len(names), noun),
    )


def folder_column(names: Sequence[str]) -> list[str] | None:
    """The sub-folder of each item, "." for the top one; None if all are in one folder."""
    folders = [name.rpartition("/")[0] or "." for name in names]
    return folders if len(set(folders)) > 1 else None


def read_headings(path: Path) -> list[str]:
    """Headings of the columns of a table, as they are called in a page."""
    return _tidy_headings(_read_columns(path, "picture")[0])


def check_data_file(path: Path) -> None:
    """Refuse what is not a table, before the items are read."""
    check_regular_file(path, "--data")
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"{path} is not a table (--data). Give a {', '.join(SUFFIXES)} file.")


def _read_columns(path: Path, noun: str) -> tuple[list[str], list[list[str]]]:
    """The first line of a table, and its columns below."""
    check_data_file(path)
    if path.suffix.lower() == ".parquet":
        return read_parquet_text(path)
    rows, _ = read_delimited(path)
    if len(rows) == 1:
        raise BadInput(
            f"{path} has one line. Give a line of headings, and one line for each {noun}."
        )
    return rows[0], [list(cells) for cells in zip(*rows[1:], strict=True)]


class _Names:
    """Items by their names: relative paths, file names, or either without its suffix.

    A name that two items share names neither of them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._exact = _Ways(names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _folded(self) -> "_Ways":
        return _Ways([_fold(name) for name in self._names])

    def count(self, cells: Sequence[str], *, folded: bool) -> int:
        """Items that some cells name, 0 if that may be chance; `folded` ignores case."""
        if folded:
            return self._folded.count([_fold(cell) for cell in cells])
        return self._exact.count(cells)

    def find(self, cells: Sequence[str]) -> list[int]:
        """The item that each cell names, -1 for none."""
        found: dict[str, int] = {}
        left = set(cells)
        for ways, as_key in ((self._exact, str), (self._folded, _fold)):
            keys = {cell: as_key(cell) for cell in left}
            for find in ways.finders:
                hits = {cell: item for cell, key in keys.items() if (item := find(key, -1)) >= 0}
                # An item that several cells could mean is not guessed.
                often, taken = Counter(hits.values()), set(found.values())
                for cell, item in hits.items():
                    if often[item] == 1 and item not in taken:
                        found[cell] = item
                        del keys[cell]
                if not keys or len(found) == len(self):
                    return [found.get(cell, -1) for cell in cells]
            left = set(keys)
        return [found.get(cell, -1) for cell in cells]

    def find_exactly(self, cell: str) -> int:
        """The item that a cell names, with its case, -1 for none."""
        return max(find(cell, -1) for find in self._exact.finders)


class _Ways:
    """Ways to name an item, the surest first."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.n_items = len(paths)
        files = [path.rpartition("/")[2] for path in paths]
        self._paths, self._files = _unique(paths), _unique(files)
        short = [list(map(_without_suffix, each)) for each in (paths, files)]
        self._short_paths, self._stems = map(_unique, short)

    @property
    def finders(self) -> tuple[Callable[[str, int], int], ...]:
        """Functions that return the item that a cell names, or a default."""
        return (
            self._paths.get,
            self._find_tail,
            self._files.get,
            self._short_paths.get,
            self._stems.get,
        )

    def count(self, cells: Sequence[str]) -> int:
        """Items that cells name in one way: enough of them if suffixes are left out."""
        sure = max(len(self._paths.keys() & cells), len(self._files.keys() & cells))
        if not sure:
            sure = len({self._find_tail(cell, -1) for cell in cells if "/" in cell} - {-1})
        short = max(len(self._short_paths.keys() & cells), len(self._stems.keys() & cells))
        # Numbers in a table may well be those of some files.
        return max(sure, short if 2 * short >= min(self.n_items, len(cells)) else 0)

    def _find_tail(self, cell: str, default: int) -> int:
        """The item whose path a longer path ends in, as one from another folder does."""
        while "/" in cell:
            cell = cell.partition("/")[2]
            if cell in self._paths:
                return self._paths[cell]
        return default


def _unique(keys: Sequence[str]) -> dict[str, int]:
    """Positions of the keys that occur once."""
    often = Counter(keys)
    return {key: k for k, key in enumerate(keys) if key and often[key] == 1}


def _without_suffix(path: str) -> str:
    start, dot, suffix = path.rpartition(".")
    return start if dot and start and "/" not in suffix and start[-1] != "/" else path


def _fold(name: str) -> str:
    """A name without its case, and with letters and separators in one form."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", name.translate(_LATIN_1))
    return (name.replace("\\", "/") if "\\" in name else name).casefold()


def _choose_column(columns: list[list[str]], items: _Names) -> int | None:
    """The column whose cells name the most items, the first of several; None if none does."""
    for folded in (False, True):
        # Columns that begin with names come first: in large tables, the others need not be read.
        begins = [items.count(cells[:20], folded=folded) > 0 for cells in columns]
        counts = dict.fromkeys(range(len(columns)), 0)
        for k in sorted(counts, key=lambda k: not begins[k]):
            counts[k] = items.count(columns[k], folded=folded)
            if counts[k] == min(len(items), len(columns[k])):
                return k  # no other can name more
        if max(counts.values()):
            return max(counts, key=counts.__getitem__)
    return None


def _not_named(
    path: Path,
    header: list[str],
    columns: list[list[str]],
    names: Sequence[str],
    chosen: int | None,
    noun: str,
) -> BadInput:
    """Error for a table without the names of the items."""
    called = f"the {noun}s, which are called {_some(names)}"
    if chosen is not None:
        heading = repr(header[chosen][:40]) if header[chosen] else str(chosen + 1)
        return BadInput(
            f"Column {heading} of {path} does not name {called}: it holds "
            f"{_some(columns[chosen])}. Choose another with --id."
        )
    return BadInput(
        f"No column of {path} names {called}: its first row holds "
        f"{_some([cells[0] for cells in columns])}. Add a column with the name of each {noun}, or "
        "choose it with --id."
    )


def _some(cells: Sequence[str]) -> str:
    shown = ", ".join(repr(cell[:40]) for cell in cells[:3])
    return f"{shown}, ..." if len(cells) > 3 else shown


def _tidy_headings(header: list[str]) -> list[str]:
    """Headings that differ from each other and from that of the names; none is empty."""
    used = {_NAME}
    headings = []
    for k, given in enumerate(header):
        plain = " ".join(given.split()) or f"column {k + 1}"
        heading, number = plain, 2
        while heading in used:
            heading, number = f"{plain} ({number})", number + 1
        used.add(heading)
        headings.append(heading)
    return headings


def _describe(path: Path, column: str | int, found: list[int], n_items: int, noun: str) -> str:
    """One sentence for the console: how rows and items were put together."""
    often = Counter(found)
    n_without = often.pop(-1, 0)
    n_repeated = sum(n > 1 for n in often.values())
    label = column if isinstance(column, int) else repr(column[:40])
    parts = [
        f"{path}: {len(often):,} of {counted(n_items, noun)} {_have(n_items)} a row, found by "
        f"column {label}"
    ]
    if n_without:
        parts.append(f"{counted(n_without, 'row')} {_have(n_without)} no {noun}")
    if n_repeated:
        parts.append(
            f"{counted(n_repeated, noun)} {_have(n_repeated)} several rows, of which the first is "
            "used"
        )
    return f"{'; '.join(parts)}."


def _have(n: int) -> str:
    return "has" if n == 1 else "have"
