"""Pictures read by other processes: as by threads, whatever happens to the processes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unshuffle._pictures import workers as _picture_workers
from unshuffle._pictures.reading import ReadingTask
from unshuffle._pictures.workers import read_in_processes
from unshuffle.images import read_folder

unix = pytest.mark.skipif(os.name == "nt", reason="signals of this kind are those of Unix")


@pytest.fixture
def processes(monkeypatch):
    """Has even few files read by processes; ids of those that were started."""
    monkeypatch.setattr(_picture_workers, "PROCESSES_FROM", 1)
    monkeypatch.setattr(_picture_workers, "BATCH", 8)
    started = []
    real = subprocess.Popen

    def start(command, **options):
        process = real(command, **options)
        started.append(process.pid)
        return process

    monkeypatch.setattr(_picture_workers.subprocess, "Popen", start)
    return started


@pytest.fixture
def photos(tmp_path):
    """Good and bad files, more than one batch of each process."""
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    rng = np.random.RandomState(0)
    for i in range(40):
        coarse = rng.randint(0, 256, (4, 4, 3)).astype(np.uint8)
        picture = Image.fromarray(coarse).resize((90 + i, 60), Image.Resampling.BICUBIC)
        picture.save(folder / ("sub" if i % 5 == 0 else ".") / f"{i}.{('jpg', 'png')[i % 2]}")
    for i in range(6):
        (folder / f"bad{i}.jpg").write_bytes((folder / "2.jpg").read_bytes()[: 20 * i])
    return folder


def read(folder, **options):
    return read_folder(folder, **{"recursive": True, "n_jobs": 2, "previews": 70, **options})


def same(one, two):
    np.testing.assert_array_equal(one.arrays, two.arrays)
    np.testing.assert_array_equal(one.sizes, two.sizes)
    assert one.names == two.names
    assert one.skipped == two.skipped
    assert list(one.previews) == list(two.previews)
    return True


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process whose parent is gone may wait for someone to ask how it ended.
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_processes_read_as_threads_do_whatever_their_number(photos, processes, monkeypatch):
    calls = []
    many = [
        read(photos, n_jobs=n_jobs, on_progress=lambda *done: calls.append(done))
        for n_jobs in (2, 3)
    ]
    assert len(processes) == 5
    assert calls == [(i, 46) for i in range(1, 47)] * 2
    monkeypatch.setattr(_picture_workers, "PROCESSES_FROM", 10**9)
    for n_jobs in (None, 1, 2):
        alone = read(photos, n_jobs=n_jobs)
        assert all(same(each, alone) for each in many)
    assert len(processes) == 5
    assert len(alone.skipped) == 6


def test_few_files_are_read_by_threads(photos, processes, monkeypatch):
    monkeypatch.setattr(_picture_workers, "PROCESSES_FROM", 47)
    read(photos)
    monkeypatch.setattr(_picture_workers, "PROCESSES_FROM", 46)
    read(photos, n_jobs=1)
    read(photos, n_jobs=None)
    assert processes == []
    read(photos)
    assert len(processes) == 2


def test_processes_fill_the_cache_and_find_in_it(photos, processes, tmp_path):
    kept = tmp_path / "kept"
    first = read(photos, cache=kept)
    inodes = {path.name: path.stat().st_ino for path in kept.iterdir()}
    assert len(inodes) == 40
    assert same(first, read(photos, cache=kept))
    assert same(first, read(photos, cache=kept, n_jobs=1))
    assert {path.name: path.stat().st_ino for path in kept.iterdir()} == inodes


def test_a_cache_that_cannot_be_written_costs_one_warning(photos, processes, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="cannot be kept in .*file") as warned:
        collection = read(photos, cache=tmp_path / "file")
    assert len(warned) == 1
    assert same(collection, read(photos))


def test_processes_import_little_and_nothing_from_the_current_folder(
    photos, processes, tmp_path, monkeypatch
):
    for name in ("PIL", "numpy", "json", "unshuffle"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    # Runs in the processes, which end without a call of atexit.
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(
        "import os, sys\n"
        "leave = os._exit\n"
        "def note(code):\n"
        f"    with open({str(tmp_path / 'modules')!r}, 'w') as file:\n"
        "        print(*sys.modules, file=file)\n"
        "        if sys.platform == 'linux':\n"
        "            print(open('/proc/self/status').read(), file=file)\n"
        "    leave(code)\n"
        "os._exit = note\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "spy")
    assert len(read(photos)) == 40
    assert processes
    assert not (tmp_path / "run").exists()
    modules, _, status = (tmp_path / "modules").read_text().partition("\n")
    modules = set(modules.split())
    assert {"PIL", "numpy", "unshuffle"} <= modules
    assert not {"numba", "sklearn", "scipy", "joblib", "typer", "unshuffle.images"} & modules
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is None or int(peak[1]) < 80_000


def hurt_decoders(monkeypatch, folder, how):
    """Has pictures whose name holds "crash" end the process that opens them."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import os, signal\n"
        "from PIL import Image\n"
        "real = Image.open\n"
        "def open(path, *args, **options):\n"
        "    if 'crash' in os.path.basename(path):\n"
        f"        {how}\n"
        "    return real(path, *args, **options)\n"
        "Image.open = open\n"
    )
    monkeypatch.syspath_prepend(folder)


@unix
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "it crashes the decoder"),
        ("os._exit(3)", "it crashes the decoder"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed, perhaps for lack of memory"),
    ],
)
def test_a_crash_costs_only_the_file_it_was_on(photos, processes, tmp_path, monkeypatch, how, why):
    expected = read(photos)
    hurt_decoders(monkeypatch, tmp_path / "site", how)
    for name in ("0crash.png", "7crash.png", "sub/crash.png", "zcrash.png"):
        shutil.copy(photos / "1.png", photos / name)
    processes.clear()
    calls = []
    found = read(photos, on_progress=lambda *done: calls.append(done))
    assert len(processes) >= 4
    assert calls == [(i, 50) for i in range(1, 51)]
    crashed = [entry for entry in found.skipped if "crash" in entry[0]]
    assert [name for name, _ in crashed] == [
        *("0crash.png", "7crash.png", "sub/crash.png", "zcrash.png")
    ]
    assert all(reason.endswith(why) for _, reason in crashed)
    found.skipped[:] = [entry for entry in found.skipped if entry not in crashed]
    assert same(found, expected)


@pytest.mark.parametrize(
    "program", ["missing/python3", pytest.param("py-empty", marks=unix), "frozen", "other"]
)
def test_threads_read_where_no_process_can_be_started(
    photos, processes, tmp_path, monkeypatch, program
):
    expected = read(photos)
    processes.clear()
    if program == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif program == "other":
        monkeypatch.setattr(sys, "executable", shutil.which("true") or "")
    else:
        path = tmp_path / program
        if program == "py-empty":
            path.write_text("#!/bin/sh\nexit 0\n")
            path.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(path))
    calls = []
    assert same(read(photos, on_progress=lambda *done: calls.append(done)), expected)
    assert calls == [(i, 46) for i in range(1, 47)]
    assert (program == "py-empty") == bool(processes)


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are any bytes")
def test_file_names_may_be_any_bytes(photos, processes):
    data = (photos / "1.png").read_bytes()
    names = [b"\xff\xfe.png", b"new\nline.png", b"\x1b[31mred.png", "ü😀.png".encode()]
    for name in names:
        with open(os.path.join(os.fsencode(photos), name), "wb") as file:
            file.write(data)
    assert {os.fsdecode(name) for name in names} <= set(read(photos).names)


def test_what_a_library_prints_is_not_taken_for_an_answer(
    photos, processes, tmp_path, monkeypatch
):
    hurt_decoders(monkeypatch, tmp_path / "site", "os.write(1, b'warning'); print('more')")
    shutil.copy(photos / "1.png", photos / "crash.png")
    assert "crash.png" in read(photos).names


def test_an_error_in_progress_ends_the_processes(photos, processes):
    def fail(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read(photos, on_progress=fail)
    assert processes
    assert not any(alive(pid) for pid in processes)


def test_an_error_in_this_process_is_not_lost(photos, processes):
    def take(i, reading):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read_in_processes(sorted(photos.glob("*.png")), ReadingTask((4, 4), "crop"), 2, take, int)
    assert not any(alive(pid) for pid in processes)


READ = """
import os, subprocess, sys
from unshuffle._pictures import workers as _picture_workers
from unshuffle.images import read_folder
_picture_workers.PROCESSES_FROM = 1
def report(done, total):
    if done == 100:
        print("running", *pids, flush=True)
pids, real = [], subprocess.Popen
def start(*args, **options):
    process = real(*args, **options)
    pids.append(process.pid)
    return process
_picture_workers.subprocess.Popen = start
try:
    read_folder(sys.argv[1], cache=sys.argv[2], n_jobs=2, previews=64, on_progress=report)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.fixture
def many(tmp_path):
    """Enough photos that reading them takes a few seconds."""
    folder = tmp_path / "many"
    folder.mkdir()
    noise = np.random.RandomState(0).randint(0, 256, (300, 300, 3)).astype(np.uint8)
    Image.fromarray(noise).save(folder / "0.png")
    for i in range(1, 1500):
        try:
            os.link(folder / "0.png", folder / f"{i}.png")
        except OSError:
            shutil.copy(folder / "0.png", folder / f"{i}.png")
    return folder


def start_reading(folder, kept):
    """A program that reads, as the only one of its terminal, and the ids of its processes."""
    command = [sys.executable, "-c", READ, str(folder), str(kept)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    word, *pids = program.stdout.readline().split()
    assert word == "running"
    assert len(pids) == 2
    return program, [int(pid) for pid in pids]


def wait_until_gone(pids):
    end = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


@pytest.mark.slow
@unix
def test_what_was_read_before_ctrl_c_is_not_read_again(many, tmp_path):
    kept = tmp_path / "kept"
    program, pids = start_reading(many, kept)
    with program:
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to every process
        assert program.communicate(timeout=600)[0] == "interrupted\n"
        assert program.returncode == 0
    assert wait_until_gone(pids)
    before = {path.name: path.stat().st_ino for path in kept.iterdir()}
    assert 100 <= len(before) < 1500
    assert all(name.endswith(".thumb") for name in before)  # nothing half written
    collection = read_folder(many, cache=kept, n_jobs=2, previews=64)
    assert len(collection) == 1500
    after = {path.name: path.stat().st_ino for path in kept.iterdir()}
    assert len(after) == 1500
    assert before.items() <= after.items()
    assert (collection.arrays == collection.arrays[0]).all()


@unix
def test_processes_end_when_the_program_is_killed(many, tmp_path):
    program, pids = start_reading(many, tmp_path / "kept")
    with program:
        program.kill()
    assert wait_until_gone(pids)


MEASURE = """
import resource, sys
from unshuffle.images import describe, read_folder
unit = 1 if sys.platform == "darwin" else 1024
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
for folder in sys.argv[1:3]:
    before = peak()
    photos = read_folder(folder, size=16, previews=64, cache=sys.argv[3], n_jobs=2)
    vectors, _ = describe(photos, n_jobs=2)
    print(len(photos), vectors.nbytes, peak() - before)
"""


@unix
@pytest.mark.slow
def test_memory_is_that_of_the_pixels_and_vectors(tmp_path):
    """Twenty thousand files, after some that load whatever is loaded once."""
    for name, n_files in (("few", 1100), ("many", 20_000)):
        folder = tmp_path / name
        folder.mkdir()
        noise = np.random.RandomState(0).randint(0, 256, (40, 40, 3)).astype(np.uint8)
        Image.fromarray(noise).save(folder / "0.png")
        for i in range(1, n_files):
            os.link(folder / "0.png", folder / f"{i}.png")
    places = [str(tmp_path / name) for name in ("few", "many", "kept")]
    command = [sys.executable, "-c", MEASURE, *places]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    n_photos, n_vectors, more = map(int, output.splitlines()[1].split())
    assert n_photos == 20_000
    assert n_vectors <= 20_000 * 256 * 4
    # Names, keys and paths take some 1 kB for each file, the sample of `describe` 60 MB, and
    # previews, 5 kB each, nothing.
    assert more < 20_000 * 16 * 16 * 3 + n_vectors + 20_000 * 1000 + 80e6
