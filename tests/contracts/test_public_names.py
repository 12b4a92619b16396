"""What is public is listed, importable, documented, and shown by an example that runs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.registry import NAMES, ROOMS

import unshuffle

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"

OF_THE_PACKAGE = ["show_versions"]  # in no room


def found(name):
    room, _, member = name.rpartition(".")
    return getattr(importlib.import_module(f"unshuffle.{room}".rstrip(".")), member)


def listed():
    if not REFERENCE.exists():
        pytest.skip("a source archive has no docs")
    return set(re.findall(r"^ +unshuffle\.([.\w]+)$", REFERENCE.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_its_public_names_and_no_others(room):
    module = importlib.import_module(f"unshuffle.{room}")
    held = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert held == set(module.__all__)
    assert module.__doc__
    assert getattr(unshuffle, room) is module


def test_the_front_door_holds_what_rooms_publish():
    at_the_door = set(unshuffle.__all__) - {"__version__", *OF_THE_PACKAGE}
    assert at_the_door == {name for name in at_the_door if hasattr(unshuffle, name)}
    in_rooms = {name.partition(".")[2] for name in NAMES}
    assert at_the_door <= in_rooms


def test_the_reference_lists_every_public_name_and_no_other():
    public = {*NAMES, *unshuffle.__all__} - {"__version__"}
    at_the_door = set(unshuffle.__all__)
    unlisted = {name for name in public - listed() if name.partition(".")[2] not in at_the_door}
    assert not unlisted
    assert not listed() - public


@pytest.mark.parametrize("name", NAMES + OF_THE_PACKAGE)
def test_a_public_name_has_a_docstring_with_an_example(name):
    text = inspect.getdoc(found(name))
    assert text
    assert doctest.DocTestParser().get_examples(text), "which make test runs as a doctest"


def test_no_parameter_of_an_estimator_has_the_name_of_a_method():
    kinds = [kind for kind in map(found, NAMES) if hasattr(kind, "get_params")]
    parameters = {name for kind in kinds for name in inspect.signature(kind).parameters}
    methods = {name for kind in kinds for name, _ in inspect.getmembers(kind, inspect.isfunction)}
    assert not methods & parameters
