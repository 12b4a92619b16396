import pickle
import subprocess
import sys

import pytest

import unshuffle

HEAVY = {"numpy", "scipy", "sklearn", "numba", "joblib", "PIL", "matplotlib", "torch"}


def loaded_after(code):
    code = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy():
    assert not HEAVY & loaded_after("import unshuffle")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_asking_the_command_line_what_it_is_loads_nothing_heavy(option):
    code = f"from unshuffle.cli._app import app\napp(['{option}'], standalone_mode=False)"
    assert not HEAVY & loaded_after(code)


def test_public_names_are_listed_and_found():
    for name in unshuffle.__all__:
        assert name in dir(unshuffle)
        assert getattr(unshuffle, name) is not None
    from unshuffle.matching import KernelizedSorting

    assert unshuffle.KernelizedSorting is KernelizedSorting


def test_rooms_are_found_without_an_import_of_their_own():
    code = "import unshuffle\nassert unshuffle.metrics.matching_accuracy([0], [0]) == 1.0"
    assert "sklearn" in loaded_after(code)
    assert "kernels" in dir(unshuffle)


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'unshuffle' has no attribute 'KernelisedSorting'"):
        _ = unshuffle.KernelisedSorting


def test_a_pickle_of_an_earlier_version_is_an_error_that_says_so():
    written = b"cunshuffle._bags\nBags\n."  # as 0.2.0 named it
    with pytest.raises(
        ModuleNotFoundError, match=r"has no module unshuffle\._bags\. .* fit again"
    ):
        pickle.loads(written)
    with pytest.raises(ModuleNotFoundError, match=r"'unshuffle\.nothing'"):
        pickle.loads(b"cunshuffle.nothing\nIt\n.")
