"""Leaves modules that need PyTorch at once out of the doctests where it is missing."""

import re
from importlib.util import find_spec
from pathlib import Path

AT_ONCE = re.compile(r"^(?:try:\n    )?import (?:torch|triton)\b", re.MULTILINE)
SOURCE = Path(__file__).parent / "src" / "unshuffle"

collect_ignore = [
    str(path)
    for path in SOURCE.rglob("*.py")
    if find_spec("torch") is None and AT_ONCE.search(path.read_text(encoding="utf-8"))
]
