import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unshuffle

SOURCE = Path(unshuffle.__file__).parent

LOOP = """
from unshuffle._run.compile import compiled

@compiled()
def double(x):
    return 2 * x
"""
CALL = "import numpy as np\nfrom loop import double\nprint(double(np.ones(3)), double(3))"
COUNT_HITS = "\nprint(sum(double.stats.cache_hits.values()))"
ANSWER = "[2. 2. 2.] 6\n"
# Settings of the machine that would let code be stored or hide the warning.
UNSET = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONWARNINGS"}


@pytest.fixture
def folder(tmp_path):
    """A folder with a compiled function and a home that can be written."""
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "home").mkdir()
    return tmp_path


def run(folder, code=CALL, *options, prefix=(), **environment):
    """Run code in a new process that stores machine code in or below `folder` only."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    paths = f"{folder}{os.pathsep}{SOURCE.parent}"
    done = subprocess.run(
        [*prefix, sys.executable, "-B", *options, "-c", code],
        cwd=folder,
        env={**kept, "HOME": str(folder / "home"), "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def block(folder):
    """Put files where numba would make its folders."""
    (folder / "__pycache__").write_text("")
    (folder / "home").rmdir()
    (folder / "home").write_text("")


def without_privileges():
    """Command that takes from root the right to write into read-only folders."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if not shutil.which("setpriv") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("root writes into read-only folders, and setpriv is not available")
    return prefix


def stored(folder, ending):
    return sorted(folder.glob(f"**/*.{ending}"))


def test_machine_code_is_stored_and_used_again(folder):
    assert run(folder) == (ANSWER, "")
    assert len(stored(folder, "nbi")) == 1
    assert len(stored(folder, "nbc")) == 2
    assert run(folder, CALL + COUNT_HITS) == (ANSWER + "2\n", "")


def test_where_nothing_can_be_written_one_warning_says_what_was_tried(folder):
    (folder / "other.py").write_text(LOOP)
    block(folder)
    nowhere = folder / "loop.py" / "nowhere"
    out, err = run(folder, f"{CALL}\nimport other", NUMBA_CACHE_DIR=str(nowhere))
    assert out == ANSWER
    assert err.count("UserWarning") == 1
    for tried in [nowhere, folder / "__pycache__", folder / "home"]:
        assert str(tried) in err
    assert "Set NUMBA_CACHE_DIR to a folder" in err


def test_where_warnings_are_errors_it_is_logged_and_the_answer_comes(folder):
    block(folder)
    out, err = run(folder, CALL, "-W", "error")
    assert out == ANSWER
    assert err.startswith("Compiled code could not be stored")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="folders are made read-only by their mode")
def test_the_package_works_from_a_read_only_installation(tmp_path):
    prefix = without_privileges()
    shutil.copytree(SOURCE, tmp_path / "unshuffle", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").mkdir()
    folders = [Path(name) for name, _, _ in os.walk(tmp_path)]
    code = (
        "import numpy as np, unshuffle\n"
        "X = np.random.default_rng(0).normal(size=(30, 3))\n"
        "print(unshuffle.KernelizedSorting(random_state=0).fit(X, X[::-1]).permutation_[:3])\n"
        "print(unshuffle.__file__)"
    )
    for each in folders:
        each.chmod(0o555)
    try:
        out, err = run(tmp_path, code, prefix=prefix)
    finally:
        for each in folders:
            each.chmod(0o755)
    assert out == f"[29 28 27]\n{tmp_path / 'unshuffle' / '__init__.py'}\n"
    assert err.count("UserWarning") == 1
    assert not stored(tmp_path, "nb?")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("nbi", lambda content: b""),
        ("nbi", lambda content: content[: len(content) // 2]),
        ("nbc", lambda content: content[: len(content) // 2]),
        ("nbc", lambda content: bytes(len(content))),
    ],
)
def test_a_damaged_file_is_replaced(folder, ending, damage):
    run(folder)
    for path in stored(folder, ending):
        path.write_bytes(damage(path.read_bytes()))
    assert run(folder) == (ANSWER, "")
    assert run(folder, CALL + COUNT_HITS) == (ANSWER + "2\n", "")


def test_a_full_disk_is_named_and_the_answer_comes(folder):
    disk = folder / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=12k tmpfs "{disk}" && exec "$@"'
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    out, err = run(folder, prefix=prefix, NUMBA_CACHE_DIR=str(disk))
    assert out == ANSWER
    assert err.count("UserWarning") == 1
    assert str(disk) in err
    assert "No space left on device" in err


@pytest.mark.slow
def test_old_code_is_not_used_after_its_replacement_failed(folder):
    pytest.importorskip("resource", reason="file sizes cannot be limited here")
    run(folder)
    (folder / "loop.py").write_text(LOOP.replace("2 * x", "3 * x"))
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))\n"
    expected = "[3. 3. 3.] 9\n"
    out, err = run(folder, limit + CALL)
    assert out == expected
    assert str(folder / "__pycache__") in err
    assert "File too large" in err
    assert run(folder) == (expected, "")


@pytest.mark.slow
def test_a_change_in_a_called_function_reaches_its_callers(folder):
    caller = LOOP.replace("double(x)", "quadruple(x)").replace("2 * x", "double(double(x))")
    (folder / "caller.py").write_text(f"from loop import double\n{caller}")
    call = "from caller import quadruple\nprint(quadruple(1))"
    assert run(folder, call) == ("4\n", "")
    (folder / "loop.py").write_text(LOOP.replace("2 * x", "30 * x"))
    assert run(folder, call) == ("900\n", "")


def test_every_loop_goes_through_the_one_decorator():
    others = [path for path in SOURCE.rglob("*.py") if path.name != "compile.py"]
    numba = re.compile(r"(?<!triton\.)\bn?jit\(|@n?jit\b")  # Triton has a decorator of its own
    assert not [str(path) for path in others if numba.search(path.read_text())]


def test_without_compiling_the_function_runs_as_it_is(folder):
    assert run(folder, NUMBA_DISABLE_JIT="1") == (ANSWER, "")
