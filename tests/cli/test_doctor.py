import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import unshuffle
from unshuffle.cli import _doctor
from unshuffle.cli._doctor import CHECKS, WrongAnswer

NAMES = ["requirements", "match", "layout", "classify sets", "learn a rotation", "pictures"]


@pytest.fixture
def checks(monkeypatch):
    """Replace the checks by quick ones; `checks(match=function)` changes one."""

    def choose(**given):
        quick = [
            replace(each, run=given.get(each.name, lambda: "fine"))
            for each in CHECKS
            if each.name != "PyTorch"
        ]
        monkeypatch.setattr(_doctor, "CHECKS", tuple(quick))

    return choose


@pytest.mark.slow
def test_a_sound_installation_passes_every_check(run):
    result = run("doctor")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["unshuffle", unshuffle.__version__]
    shown = lines[lines.index("Checks") + 1 :]
    assert len(shown) == len(CHECKS) + 1
    for check, line in zip(CHECKS, shown, strict=False):
        assert re.match(rf"  ✓ {check.name} +\d+\.\d\d s  \S", line)
    assert "60 of 60 pairs right" in result.stdout
    assert "40 of 40 new sets right" in result.stdout
    assert re.fullmatch(r"All is well, after \d+\.\d s\. --all also shows .*", shown[-1])
    assert result.stderr == ""


def test_what_only_developers_need_is_shown_on_request(run, checks):
    checks()
    brief, every = run("doctor").stdout, run("doctor", "--all").stdout
    for name in ("plot", "images", "cores", "GPU"):
        assert f"\n  {name} " in brief
    for name in ("lint", "bench", "numba", "compiled loops"):
        assert f"\n  {name} " not in brief
        assert f"\n  {name} " in every
    assert len(brief.splitlines()) < 30
    assert "--all" not in every


def test_json_is_one_object_with_the_report_and_the_checks(run, checks):
    checks()
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["versions"]["unshuffle"] == unshuffle.__version__
    assert report["extras"]["plot"]["command"] == "pip install 'unshuffle[plot]'"
    assert set(report["folders"]) == {"compiled loops", "pictures", "page"}
    assert [each["name"] for each in report["checks"]] == NAMES
    assert all(each["ok"] and each["found"] == "fine" for each in report["checks"])


def fail(error):
    def run():
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (WrongAnswer("wrong answer: 3 of 60 pairs right"), "wrong answer: 3 of 60 pairs right"),
        (ImportError("libopenblas.so:\ncannot open."), "libopenblas.so: cannot open"),
        (RuntimeError("no luck"), "RuntimeError: no luck"),
        (SystemError(), "SystemError:"),
    ],
)
def test_a_failed_check_says_what_to_do_and_the_others_go_on(run, checks, error, why):
    checks(match=fail(error))
    result = run("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  ✗ match "))
    assert lines[at].endswith(f" s  {why}")
    assert re.search("Try: .*pip install --force-reinstall numpy scipy", lines[at + 1])
    assert lines[at + 1].endswith("report it with the output of: unshuffle doctor --json")
    assert lines[at + 2].startswith("  ✓ layout ")
    assert lines[-1].startswith("1 of 6 checks failed, after ")
    report = json.loads(run("doctor", "--json").stdout)
    assert report["ok"] is False
    assert [each["ok"] for each in report["checks"]] == [True, False, True, True, True, True]


@pytest.mark.skipif(sys.platform == "win32", reason="programs end in .exe")
def test_what_is_missing_is_installed_where_the_program_looks(run, checks, monkeypatch, tmp_path):
    checks()
    environment = tmp_path / "my venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "pip").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(environment / "python"))
    monkeypatch.setattr("unshuffle._run.environment.missing_parts", lambda *names: ["matplotlib"])
    for path, pip in (("/nowhere", f"'{environment / 'pip'}'"), (str(environment), "pip")):
        monkeypatch.setenv("PATH", path)
        extra = next(line for line in run("doctor").stdout.splitlines() if "[plot]" in line)
        assert re.fullmatch(rf" +plot +{re.escape(pip)} install 'unshuffle\[plot\]' .*", extra)
        report = json.loads(run("doctor", "--json").stdout)
        assert report["extras"]["plot"]["command"] == "pip install 'unshuffle[plot]'"


def test_quiet_prints_only_failures(run, checks):
    checks()
    result = run("doctor", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    checks(layout=fail(WrongAnswer("wrong answer")))
    result = run("doctor", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.match("Error: layout: wrong answer. Try: .*pip install", result.stderr)
    assert result.stderr.count("\n") == 1


def test_missing_requirements_fail(run, monkeypatch):
    monkeypatch.setattr(_doctor, "missing_parts", lambda name: ["numba 0.59 or newer, not 0.58"])
    monkeypatch.setattr(_doctor, "CHECKS", CHECKS[:1])
    result = run("doctor")
    assert result.exit_code == 1
    assert "missing: numba 0.59 or newer, not 0.58" in result.stdout
    assert "pip install --upgrade unshuffle" in result.stdout


@pytest.mark.slow
def test_wrong_matches_layouts_and_pictures_fail(run, monkeypatch):
    class Idle:
        def __init__(self, *shape, random_state):
            self.shape = shape

        def fit(self, X, y=None):
            self.permutation_ = range(len(X))
            return self

        @property
        def grid_(self):
            import numpy as np

            return np.arange(144).reshape(12, 12)

    monkeypatch.setattr(unshuffle, "KernelizedSorting", Idle)
    monkeypatch.setattr(unshuffle, "GridLayout", Idle)
    monkeypatch.setattr("unshuffle.images.read_image", lambda path, size: (None, None))
    result = run("doctor", "--json")
    assert result.exit_code == 1
    failed = [each["name"] for each in json.loads(result.stdout)["checks"] if not each["ok"]]
    assert failed == ["match", "layout", "pictures"]


def test_a_folder_that_cannot_be_written_is_shown_and_is_not_a_failure(run, checks, tmp_path):
    if sys.platform != "linux":
        pytest.skip("other systems ignore XDG_CACHE_HOME")
    (tmp_path / "cache").write_text("")
    checks()
    result = run("doctor")
    assert result.exit_code == 0
    assert "cannot be written: they are read anew each time; set XDG_CACHE_HOME" in result.stdout


@pytest.mark.parametrize("error", [ImportError("libc10.so"), OSError("libcudart.so")])
def test_a_broken_pytorch_fails_its_check(run, monkeypatch, error):
    class Broken:
        def find_spec(self, name, *rest):
            if name == "torch":
                raise error

    monkeypatch.setattr(_doctor, "find_spec", lambda name: name)
    monkeypatch.setattr(_doctor, "CHECKS", CHECKS[-1:])
    monkeypatch.setattr("unshuffle._run.environment._has_driver", lambda: False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    result = run("doctor")
    assert result.exit_code == 1
    assert str(error) in result.stdout
    assert re.search(r"Try: .*pip install --force-reinstall torch\.", result.stdout)
    monkeypatch.setattr(_doctor, "find_spec", lambda name: None)
    assert run("doctor").exit_code == 0


def test_marks_become_words_where_they_cannot_be_printed():
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "from unshuffle.cli import _doctor as d\n"
            "d.CHECKS = (d.Check('a', lambda: 'fine', ''), d.Check('b', lambda: 1 / 0, 'Wait.'))\n"
            "d.doctor(d.DoctorOptions())",
        ],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    lines = done.stdout.decode("ascii").splitlines()[-4:]
    assert re.match(r"  ok a +\d\.\d\d s  fine", lines[0])
    assert re.match(r"  FAILED b +\d\.\d\d s  ZeroDivisionError: division by zero", lines[1])
    assert lines[2].startswith("    Wait. ")


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_ends_the_checks_with_one_line_and_exit_code_130(tmp_path):
    code = (
        "import sys, time\n"
        "from unshuffle.cli import _doctor as d, main\n"
        "def wait():\n"
        "    sys.stderr.write('waiting'); sys.stderr.flush(); time.sleep(60)\n"
        "d.CHECKS = (d.Check('a', wait, ''),)\n"
        "sys.argv = ['unshuffle', 'doctor', '--json']\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr.read(7) == "waiting"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=600)
    assert time.monotonic() - began < 20
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "Error: Interrupted; not all was checked.\n"
