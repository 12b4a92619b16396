"""Refuse phrases that do not read as plain American English; `make lint` runs this.

A phrase may break across lines. Add one here when a review finds it; codespell checks spelling.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["src", "docs", "examples", "benchmarks", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
SUFFIXES = {".py", ".md", ".html", ".js"}
BUILT = {"_build", "gallery", "generated"}  # folders that `make docs` writes

# What must not be said, and what to say instead. A space stands for any white space.
_COMPARED = "longer|more|less|larger|smaller|better|worse|faster|different"
_BRITISH = r"learnt|centring|favour\w*|behaviour\w*|licence|analyse\w*|whilst|modell(ed|ing)"
INSTEAD = {
    rf"(?<!there )\b(is|are) no (?!{_COMPARED})": "is not a, are not",
    r"leaves? nobody": "must not be 0",
    r"minds? outliers": "larger values tolerate more outliers",
    r"a wish (for|to)": "you want",
    r"one thing that moves": "snapshots of one object under a transformation",
    r"the best of an album": "a representative sample of an album",
    r"speak to other programs": "print JSON with --json",
    r"no picture is skipped": "non-image files are skipped",
    r"truly different": "clearly different",
    r"\band leave\b\.?\"": "and exit",
    r"impatience costs": "a second Ctrl-C skips",
    r"\blarger bends more": "higher degrees fit more flexible boundaries",
    r"what is asked of": "say what the module holds",
    r"in clear words": "clearly",
    r"\bfar-off\b": "distant, or large",
    r"told apart": "distinguished, or classified correctly",
    r"keeps its promises": "fulfills its contract",
    rf"\b({_BRITISH})\b": "American spelling",
    r"\bclouds? of ink\b": "set of points",
    r"by means of": "by, with",
}
_GAP = r"(?:\s|#|\"\s*f?\")+"  # between two words, across lines, comments and pieces of a string


def faults(text: str) -> list[tuple[int, str, str]]:
    """Line, words and what to say instead, for each forbidden phrase in a text."""
    found = []
    for phrase, instead in INSTEAD.items():
        pattern = phrase.replace("(?<!there )", r"(?<!there\s)").replace(" ", _GAP)
        for match in re.finditer(pattern, text, re.IGNORECASE):
            found.append((text.count("\n", 0, match.start()) + 1, match[0], instead))
    return sorted(found)


def main() -> int:
    """Print each fault as file:line and return how many there are, at most 1."""
    files = [
        path
        for page in PAGES
        for path in (
            [ROOT / page] if (ROOT / page).is_file() else sorted((ROOT / page).rglob("*"))
        )
        if path.suffix in SUFFIXES and BUILT.isdisjoint(path.relative_to(ROOT).parts)
    ]
    n_faults = 0
    for path in files:
        for line, words, instead in faults(path.read_text("utf-8")):
            n_faults += 1
            where = f"{path.relative_to(ROOT)}:{line}"
            sys.stdout.write(f"{where}: {' '.join(words.split())!r}: say {instead!r}\n")
    return min(n_faults, 1)


if __name__ == "__main__":
    sys.exit(main())
