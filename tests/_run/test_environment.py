import builtins
import importlib.util
import io
import os
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import unshuffle
from unshuffle._run import environment as _environment
from unshuffle._run.compile import storage_folders
from unshuffle._run.environment import Gpu, look_around, missing_parts, show_versions


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """A home of its own, without PyTorch, which takes seconds to import."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(_environment, "_has_driver", lambda: False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.fixture
def torch(monkeypatch):
    """Stands in for PyTorch, with no GPU."""
    module = ModuleType("torch")
    module.cuda = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", module)
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "9.8" if name == "torch" else real(name))
    return module


@pytest.fixture
def installed(monkeypatch):
    """Distributions that seem to be installed: (version, requirements) by name."""
    found = {}

    def look(name):
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "version", lambda name: look(name)[0])
    monkeypatch.setattr(metadata, "requires", lambda name: look(name)[1])
    return found


def line_of(name, lines):
    return next(line for line in lines if line.strip().startswith(f"{name} "))


def test_versions_are_those_installed(capsys):
    show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Versions", f"  unshuffle      {unshuffle.__version__}"]
    for name in ("numpy", "scipy", "scikit-learn", "joblib", "numba", "pillow"):
        assert line_of(name, lines).split() == [name, metadata.version(name)]
    assert [line for line in lines if line[0] != " "] == [
        *("Versions", "Extras", "Compute", "Folders"),
    ]
    assert "OMP_NUM_THREADS=3" in line_of("cores", lines)


def test_all_extras_are_read_from_the_metadata():
    found = {each.name for each in look_around().extras}
    assert found == set(metadata.metadata("unshuffle").get_all("Provides-Extra"))
    assert {"plot", "web", "gpu"} <= found


def test_no_requirement_of_ours_has_a_marker_that_is_not_read():
    for line in metadata.requires("unshuffle"):
        marker = line.partition(";")[2]
        words = {each for each in marker.replace("(", " ").split() if each[0].isalpha()}
        assert words <= {"extra", "sys_platform", "and"}


def test_looking_twice_finds_the_same_and_leaves_no_file(tmp_path):
    first = look_around()
    assert look_around() == first
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_comes_with_the_command_that_installs_it(monkeypatch):
    real = metadata.version

    def version(name):
        if name == "matplotlib":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    found = look_around()
    plot = next(each for each in found.extras if each.name == "plot")
    assert (plot.installed, plot.missing) == (False, ["matplotlib"])
    shown = line_of("plot", found.lines())
    assert shown.split(None, 1)[1] == "pip install 'unshuffle[plot]'  (missing: matplotlib)"
    assert not found.record()["extras"]["plot"]["installed"]


def test_parts_are_missing_if_absent_or_too_old_also_in_extras_of_parts(installed):
    installed["ours"] = (
        "1.0",
        [
            "old>=2.10",
            "fine>=2.0",
            "rich[deep,wide]>=1; extra == 'all'",
            "gone>=1; extra == 'all'",
            f"here; (sys_platform == '{sys.platform}') and extra == 'all'",
            "elsewhere; (sys_platform == 'amiga') and extra == 'all'",
            "unread; python_version < '3' and extra == 'all'",
            "other>=1; extra == 'other'",
        ],
    )
    installed |= {"old": ("2.9", None), "fine": ("2", None)}
    installed["rich"] = ("1.0.0rc1", ['deep<3,>=2; extra == "deep"', 'deep; extra == "wide"'])
    assert missing_parts("ours") == ["old 2.10 or newer, not 2.9"]
    assert missing_parts("ours", "all") == ["deep", "gone", "here"]
    assert missing_parts("nothing") == []


def test_without_metadata_the_report_says_so(installed, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    found = look_around()
    assert found.extras == []
    assert set(found.versions) == {"unshuffle", "Python", "platform"}
    assert "unknown: no metadata is installed" in line_of("Extras", found.lines())


def test_without_pytorch_there_is_no_gpu(installed):
    found = look_around()
    assert found.gpu.devices == []
    assert "no GPU: PyTorch is not installed" in line_of("GPU", found.lines())
    assert "pip install 'unshuffle[gpu]'" in found.gpu.reason


def test_pytorch_is_not_imported_where_there_is_no_driver():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    found = look_around()
    assert "torch" not in sys.modules
    assert line_of("GPU", found.lines()).endswith("no GPU: this machine has no driver for one")


def test_pytorch_without_a_gpu_is_no_gpu(torch):
    assert look_around().gpu == Gpu([], "PyTorch 9.8 finds none")


def test_what_pytorch_warns_of_is_the_reason(torch):
    def is_available():
        warnings.warn("the driver is\ntoo old", stacklevel=1)
        return False

    torch.cuda.is_available = is_available
    assert look_around().gpu == Gpu([], "the driver is too old")


def test_gpus_are_listed_with_their_memory(torch):
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    torch.cuda.get_device_properties = lambda each: SimpleNamespace(
        name=f"Card {each}", total_memory=80 * 10**9
    )
    found = look_around()
    assert found.gpu.devices == [("Card 0", 80 * 10**9), ("Card 1", 80 * 10**9)]
    assert [line for line in found.lines() if "GPU" in line] == [
        "  GPU            Card 0, 80 GB",
        "  GPU            Card 1, 80 GB",
    ]
    assert found.record()["gpu"]["devices"][1] == {"name": "Card 1", "memory_bytes": 80 * 10**9}


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError, AttributeError])
def test_a_broken_pytorch_is_reported(torch, monkeypatch, error):
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(_environment, "_has_driver", lambda: True)
    real = builtins.__import__

    def broken(name, *rest):
        if name == "torch":
            raise error("libcudart.so:\ncannot open")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", broken)
    shown = line_of("GPU", look_around().lines())
    why = f"({error.__name__}: libcudart.so: cannot open)"
    assert f"no GPU: PyTorch 9.8 does not work {why}; reinstall it" in shown


def test_a_broken_numpy_leaves_the_rest(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)  # its import is refused
    found = look_around()
    assert found.thread_pools == []
    assert found.versions["numpy"] == metadata.version("numpy")


def test_without_numba_the_other_folders_are_listed(monkeypatch):
    monkeypatch.setitem(sys.modules, "unshuffle._run.compile", None)
    assert [each.name for each in look_around().folders] == ["pictures", "page"]


def test_sizes_of_folders_are_those_of_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name, size in (("cache/unshuffle/thumbnails/a", 1500), ("data/unshuffle/walls/b/c", 7)):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(size))
    lines = look_around().lines()
    place = os.path.join("~", "cache", "unshuffle", "thumbnails")
    assert line_of("pictures", lines).endswith(f" {place}, 1.5 kB")
    assert line_of("page", lines).endswith(", 7 bytes")


def test_a_folder_that_cannot_be_written_comes_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "cache").write_text("a file where the folder should be")
    found = look_around()
    shown = line_of("pictures", found.lines())
    assert shown.endswith(
        ", empty, cannot be written: they are read anew each time; set XDG_CACHE_HOME to another "
        "folder"
    )
    assert not found.record()["folders"]["pictures"]["writable"]
    assert found.record()["folders"]["page"]["writable"]


def test_a_user_without_a_home_is_advised(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_environment, "walls_folder", homeless)
    assert "there is no home folder; set HOME to one" in line_of("page", look_around().lines())


def test_the_folder_of_compiled_loops_is_the_one_numba_takes(tmp_path, monkeypatch):
    code = "import unshuffle._assign.paths as m; print(m.assign_each._cache.cache_path)"
    for chosen in (str(tmp_path / "numba"), ""):
        monkeypatch.setenv("NUMBA_CACHE_DIR", chosen)
        used = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        base, parts = next(each for each in storage_folders() if used in each[1])
        shown = next(each for each in look_around().folders if each.name == "compiled loops")
        assert shown.path == Path(base)
        stored = [file for part in parts for file in Path(part).glob("*.nb[ic]")]
        assert shown.n_bytes == sum(file.stat().st_size for file in stored)


def test_compiled_loops_go_where_they_can_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(
        "unshuffle._run.compile.storage_folders",
        lambda: [(str(blocked), [str(blocked / "a")]), (str(tmp_path), [str(tmp_path / "b")])],
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "loop.nbc").write_bytes(bytes(5))
    (tmp_path / "b" / "other.pyc").write_bytes(bytes(5))
    folder = look_around().folders[0]
    assert (folder.path, folder.n_bytes, folder.writable) == (tmp_path, 5, True)


def test_the_report_can_be_written_to_any_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "\x1b[31mé"))
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    show_versions()
    stream.flush()
    shown = stream.buffer.getvalue().decode("ascii")
    assert os.path.join("~", "?[31m?") in shown


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /dev")
def test_a_driver_is_a_file_in_dev(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(_environment, "Path", lambda name: tmp_path)
    assert not _environment._has_driver()
    (tmp_path / "nvme0").touch()
    assert not _environment._has_driver()
    (tmp_path / "nvidiactl").touch()
    assert _environment._has_driver()
