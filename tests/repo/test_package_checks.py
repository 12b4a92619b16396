"""Checks that `make package` applies to the archives of a release."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "package.py"
if not SCRIPT.exists():
    pytest.skip("a source archive does not hold .ci", allow_module_level=True)


@pytest.fixture(scope="module")
def package():
    spec = importlib.util.spec_from_file_location("package", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bill(package):
    """A bill of materials without faults."""
    wanted = [*package.PROJECT["dependencies"], *package.PROJECT["optional-dependencies"]["plot"]]
    component = {key: package.PROJECT[key] for key in ("name", "version")}
    components = [{"name": each.split(">=")[0]} for each in wanted]
    return {"metadata": {"component": component}, "components": components}


def test_a_wheel_should_hold_modules_pages_and_the_mark_of_types(package):
    expected = package.expected_files(package.ROOT / "src")
    assert {
        *("unshuffle/__init__.py", "unshuffle/py.typed", "unshuffle/cli/__init__.py"),
        *(
            "unshuffle/web/page/wall/index.html",
            "unshuffle/web/page/wall/main.js",
            "unshuffle/web/page/shared/app.css",
        ),
        *("unshuffle/web/page/shared/icon.svg", f"{package.NAME}.dist-info/licenses/LICENSE"),
    } <= expected
    assert not any("__pycache__" in name or "tests" in name for name in expected)


def test_a_wheel_that_lacks_repeats_or_adds_a_file_has_faults(package):
    expected = {"unshuffle/a.py", "unshuffle/b.py"}
    assert package.wheel_faults(sorted(expected), expected) == []
    assert package.wheel_faults(["unshuffle/a.py", "unshuffle/a.py", "tests/c.py"], expected) == [
        "the wheel lacks unshuffle/b.py",
        "the wheel should not hold tests/c.py",
        "the wheel holds unshuffle/a.py twice",
    ]


def test_a_bill_of_materials_names_this_release_and_all_it_needs(package, bill):
    assert package.bill_faults(json.dumps(bill)) == []
    bill["metadata"]["component"]["version"] = "0.0.1"
    del bill["components"][0]
    assert package.bill_faults(json.dumps(bill)) == [
        "the bill of materials does not name this release",
        "the bill of materials lacks numpy",
    ]


@pytest.mark.parametrize("sign", ["file:///somewhere/a.whl", "pkg:pypi/a@1?repository_url=mirror"])
def test_a_bill_of_materials_says_nothing_about_this_machine(package, bill, sign):
    bill["components"][0]["purl"] = sign
    assert len(package.bill_faults(json.dumps(bill))) == 1


@pytest.mark.parametrize("where", ["serialNumber", "timestamp"])
def test_a_bill_of_materials_is_the_same_each_time(package, bill, where):
    (bill if where == "serialNumber" else bill["metadata"])[where] = "now"
    (fault,) = package.bill_faults(json.dumps(bill))
    assert "change each time" in fault


def test_a_command_that_fails_ends_the_run_and_shows_its_output(package, tmp_path):
    with pytest.raises(SystemExit, match=r"(?s)no such thing.*exit status 3"):
        package.run(sys.executable, "-c", "print('no such thing'); exit(3)", cwd=tmp_path)
