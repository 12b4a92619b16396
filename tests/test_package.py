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
HEAVY = ["torch", "matplotlib", "numba", "typer", "PIL", "dask", "starlette", "uvicorn"]


def loaded_after(statement):
    """Which heavy libraries a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*[m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return found.stdout.split()


def test_importing_the_package_imports_nothing_optional_or_slow():
    assert loaded_after("import unshuffle") == []
    assert loaded_after("from unshuffle import KernelizedSorting") == []


def test_the_rooms_of_the_library_import_nothing_optional_or_slow():
    rooms = ["kernels", "objectives", "assignment", "matching", "metrics", "datasets"]
    assert loaded_after("\n".join(f"import unshuffle.{room}" for room in rooms)) == []


def test_importing_draws_no_random_numbers_and_prints_nothing():
    code = (
        "import numpy as np; before = np.random.get_state()[1].copy(); import unshuffle; "
        "assert (np.random.get_state()[1] == before).all()"
    )
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("room", "names"),
    [
        ("unshuffle", ["KernelizedSorting", "__version__"]),
        ("unshuffle.matching", ["AmbiguityWarning", "KernelizedSorting", "Matches"]),
        ("unshuffle.metrics", ["cka", "foscttm", "hsic", "matching_accuracy"]),
        ("unshuffle.kernels", ["center", "gram_matrix", "rbf_kernel", "zero_diagonal"]),
        ("unshuffle.assignment", ["climb", "soft_assignment", "solve_assignment", "swap_ascent"]),
        ("unshuffle.images", ["color_histogram", "lab_pixels"]),
    ],
)
def test_public_names_are_there_and_listed(room, names):
    module = __import__(room, fromlist=["__all__"])
    for name in names:
        assert name in module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_versions_agree():
    assert re.fullmatch(r"\d+\.\d+\.\d+", unshuffle.__version__)
    assert version("unshuffle") == unshuffle.__version__
    pyproject = Path(__file__).resolve().parents[1] / "pyproject.toml"
    assert tomllib.loads(pyproject.read_text())["project"]["version"] == unshuffle.__version__


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (Path(unshuffle.__file__).parent / "py.typed").is_file()


def test_names_are_loaded_when_first_asked_for():
    from unshuffle.matching import KernelizedSorting

    assert unshuffle.KernelizedSorting is KernelizedSorting
    assert unshuffle.metrics.__name__ == "unshuffle.metrics"
    assert {"KernelizedSorting", "kernels", "matching"} <= set(dir(unshuffle))
    with pytest.raises(AttributeError, match="'unshuffle' has no attribute 'KernelisedSorting'"):
        _ = unshuffle.KernelisedSorting


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
