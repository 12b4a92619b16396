"""llms.txt and llms-full.txt: the site for language models, made from its own pages.

llms.txt is a list of links, each with the first sentence of the page it leads to. llms-full.txt
holds the text of all pages, the scripts of the gallery, and the docstrings of all public names.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
SHORT = 40  # characters of a sentence that says too little alone

_BLOCK = re.compile(r"^(```+|:::+)(.*)\n((?:.*\n)*?)\1 *$\n?", re.MULTILINE)
_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`*\"])")  # of a sentence


@dataclass(frozen=True)
class Entry:
    """A page of the site: its address, title, first sentence and text."""

    address: str
    title: str
    about: str
    text: str

    def __str__(self) -> str:
        return f"- [{self.title}]({self.address})" + (f": {self.about}" if self.about else "")


def write(folder: Path) -> None:
    """Write both files into the folder of the built site."""
    index = _page(DOCS / "index.md")
    sections = contents()
    lists = [
        f"## {title}\n\n" + "\n".join(str(entry) for entry in entries)
        for title, entries in sections.items()
    ]
    head = f"# {index.title}\n\n> {_first_paragraph(index.text)}"
    (folder / "llms.txt").write_text("\n\n".join([head, *lists]) + "\n", "utf-8")
    pages = [index, *(entry for entries in sections.values() for entry in entries)]
    texts = [f"<!-- {page.address} -->\n\n{page.text}" for page in pages]
    (folder / "llms-full.txt").write_text("\n\n".join(texts) + "\n", "utf-8")


def contents() -> dict[str, list[Entry]]:
    """Pages by section: one for each entry of the front page that has pages below it."""
    start: list[Entry] = []
    sections = {"Start": start}
    optional: list[Entry] = []
    for path in _below(DOCS / "index.md"):
        name = path.relative_to(DOCS).with_suffix("").as_posix()
        if name == "gallery/index":  # made from the examples when the site is built
            sections["Examples"] = [_example(each) for each in sorted(EXAMPLES.glob("plot_*.py"))]
        elif name == "reference":
            sections["Reference"] = [_page(path), *_public_names(path)]
        elif _below(path):
            pages = dict.fromkeys([path, *_all_below(path)])
            sections[_page(path).title] = [_page(each) for each in pages]
        else:
            (optional if len(sections) > 1 else start).append(_page(path))
    return sections | {"Optional": optional}


def _below(page: Path) -> list[Path]:
    """Pages that the toctrees of a page name, in order and once each."""
    found: list[Path] = []
    blocks = _BLOCK.finditer(page.read_text("utf-8")) if page.exists() else ()
    for block in blocks:
        if block[2].strip() == "{toctree}":
            lines = (line.strip() for line in block[3].splitlines())
            for line in lines:
                if line and not line.startswith(":"):
                    found += _named(page.parent, re.sub(r"^.*<(.+)>$", r"\1", line))
    return [each for each in dict.fromkeys(found) if each != page]


def _named(folder: Path, entry: str) -> list[Path]:
    """Pages that one entry of a toctree stands for."""
    if "*" in entry:
        return sorted(folder.glob(f"{entry}.md"))
    return [(folder / f"{entry}.md").resolve()]


def _all_below(page: Path) -> Iterator[Path]:
    for each in _below(page):
        yield each
        yield from _all_below(each)


def _page(path: Path) -> Entry:
    """A page in Markdown, with what it includes and without what only Sphinx reads."""

    def readable(block: re.Match[str]) -> str:
        included = re.match(r"\{include\} (\S+)", block[2])
        if included:
            return (path.parent / included[1]).read_text("utf-8")
        return "" if block[2].startswith("{") else block[0]

    text = _BLOCK.sub(readable, path.read_text("utf-8"))
    text = re.sub(r"^<!--.*-->\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    title = text.partition("\n")[0].removeprefix("# ")
    address = path.relative_to(DOCS).with_suffix(".html").as_posix()
    return Entry(address, title, _first_sentence(_first_paragraph(text)), text)


def _example(path: Path) -> Entry:
    """A script of the gallery, whose docstring begins with its title."""
    code = path.read_text("utf-8")
    title, _, about = (ast.get_docstring(ast.parse(code)) or path.stem).split("\n", 2)
    text = f"# {title}\n\n```python\n{code.strip()}\n```"
    return Entry(f"gallery/{path.stem}.html", title, _first_sentence(about.strip()), text)


def _public_names(reference: Path) -> Iterator[Entry]:
    """Every public name that the page of the reference lists."""
    for name in re.findall(
        r"^   (unshuffle\.[\w.]+)$", reference.read_text("utf-8"), re.MULTILINE
    ):
        room, _, last = name.rpartition(".")
        doc = inspect.getdoc(getattr(import_module(room), last)) or ""
        yield Entry(f"generated/{name}.html", name, _first_sentence(doc), f"# {name}\n\n{doc}")


def _first_paragraph(text: str) -> str:
    """First paragraph of a page that is neither heading, table, list, picture nor code, or ''."""
    for paragraph in re.split(r"\n\s*\n", _BLOCK.sub("\n", text)):
        if not re.match(r"\s*([#|!*<-]|$)", paragraph):
            return " ".join(paragraph.split())
    return ""


def _first_sentence(text: str) -> str:
    """First sentence of a text, or more if it is short, on one line and without links."""
    paragraph = " ".join(re.split(r"\n\s*\n", text)[0].split())
    first, *others = _END.split(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph))
    while others and len(first) < SHORT:
        first += f" {others.pop(0)}"
    return re.sub(r":$", ".", first)
