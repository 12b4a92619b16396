"""The pages of the documentation, and what is written in them: code, commands, links, headings."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

# What building the site writes, and git ignores.
BUILT = {"_build", "gallery", "generated"}
PAGES = [
    *(
        ROOT / name
        for name in (
            *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
            *("SECURITY.md", "CODE_OF_CONDUCT.md"),
        )
    ),
    *(page for page in sorted(DOCS.rglob("*.md")) if BUILT.isdisjoint(page.parts)),
]
SHELLS = {"", "console", "sh", "bash", "shell"}
PROGRAMS = ("unshuffle", "python", "python3", "make", "pip", "curl", "dask", "git")

_FENCE = re.compile(r"^( *)(```+|~~~+)(.*)\n((?:.*\n)*?)^\1\2 *$", re.MULTILINE)
_COMMENT = re.compile(r"\s+# .*$")


def name_of(page: Path) -> str:
    """Path of a page in the checkout, as tables of tests name it."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the number of its first line on the page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text("utf-8")
    return [
        Block(
            match[3].strip(),
            re.sub(rf"^{match[1]}", "", match[4], flags=re.MULTILINE),
            text.count("\n", 0, match.start(4)) + 1,
        )
        for match in _FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """Text of a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def inline_code(page: Path) -> list[str]:
    """What stands in backticks in the text of a page, each on one line."""
    return [
        " ".join(code.split())
        for _, code in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", prose(page), re.DOTALL)
    ]


def shown_commands(page: Path) -> list[str]:
    """Commands in the blocks of a page, without comments; a backslash continues a line."""
    lines = []
    for block in blocks(page):
        if block.language in SHELLS:
            lines += block.text.replace("\\\n", " ").splitlines()
    commands = (_COMMENT.sub("", line.strip().removeprefix("$ ")) for line in lines)
    return [each for each in commands if each.split(" ")[0] in PROGRAMS]


def named_commands(page: Path) -> list[str]:
    """Commands in backticks."""
    return [each for each in inline_code(page) if re.match(rf"({'|'.join(PROGRAMS)}) ", each)]


def commands(page: Path) -> list[str]:
    """Every command of a page once: those in blocks in order, then those in the text."""
    return list(dict.fromkeys([*shown_commands(page), *named_commands(page)]))


def words(command: str) -> list[str]:
    """A command as the shell splits it."""
    return shlex.split(command)


def headings(page: Path) -> set[str]:
    """Anchors of a page: its headings as GitHub and MyST write them, and explicit targets."""
    text = prose(page)
    found: dict[str, int] = {}
    anchors = set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))
    for title in re.findall(r"^#{1,6} +(.*?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        anchors.add(slug + (f"-{found[slug]}" if slug in found else ""))
        found[slug] = found.get(slug, 0) + 1
    return anchors


def links(page: Path) -> list[str]:
    """Targets of links and pictures, in Markdown and HTML, outside code."""
    text = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "code", prose(page), flags=re.DOTALL)
    targets = re.findall(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)", text)
    targets += re.findall(r"^\[[^\]^]+\]: +(\S+)", text, re.MULTILINE)
    targets += re.findall(r"<(https?://[^>]+)>", text)
    return targets + re.findall(r"<(?:img|a)\s[^>]*?(?:src|href)=\"([^\"]+)\"", text)


def contents(page: Path) -> list[Path]:
    """Files that the toctrees and cards of a page lead to."""
    found: list[Path] = []
    for block in blocks(page):
        if block.language.startswith("{toctree}"):
            for line in block.text.splitlines():
                entry = re.sub(r"^.*<(.+)>$", r"\1", line.strip())
                if entry and not entry.startswith((":", "http", "-")):
                    pattern = entry if entry.endswith(".md") else f"{entry}.md"
                    found += page.parent.glob(pattern) if "*" in entry else [page.parent / pattern]
        for link in re.findall(r"^:link: +(\S+)", block.text, re.MULTILINE):
            target = page.parent / link
            found.append(target if target.suffix else target.with_suffix(".md"))
    return found
