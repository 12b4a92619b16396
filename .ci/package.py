"""Build the archives of a release and check them as a stranger would; `make package` runs this.

Writes a wheel, a source archive and a bill of materials to dist/, and publishes nothing. The tools
are those of the extra `release`, in an environment of their own, .venv-release. The first check
that fails ends the run.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
TOOLS = ROOT / ".venv-release"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = f"{PROJECT['name']}-{PROJECT['version']}"

# What a wheel may hold: files of the package that end so, and its metadata.
KINDS = {".py", ".js", ".css", ".html", ".svg"}
METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
PICTURES = {
    *("halves.png", "digits.png", "collage.jpg"),
    *("digit-morph.png", "set-upright.png", "turned-digits.png"),
}
FOLDER = "unshuffle-package-"  # prefix of the temporary folder
# Signs of this machine in a bill of materials: local files, and indexes other than PyPI.
LOCAL = ("file:", "localhost", "127.0.0.1", "repository_url=", str(ROOT), FOLDER)
QUICKLY = ("--quiet", "--no-compile")  # most modules are never imported
STARTED = time.monotonic()


def say(what: str) -> None:
    """Print a step that is about to begin, and the seconds since the start."""
    sys.stdout.write(f"{time.monotonic() - STARTED:5.0f} s  {what}\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Output of a command that must succeed, in an environment without Python's variables."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=inherited | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nexit status {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def expected_files(source: Path) -> set[str]:
    """Names of all files that a wheel of the package in a folder should hold."""
    package = {
        path.relative_to(source).as_posix()
        for path in (source / "unshuffle").rglob("*")
        if path.suffix in KINDS or path.name == "py.typed"
    }
    return package | {f"{NAME}.dist-info/{name}" for name in METADATA}


def wheel_faults(names: list[str], expected: set[str]) -> list[str]:
    """What is missing from a wheel, there twice, or should not be there."""
    faults = [f"the wheel lacks {name}" for name in sorted(expected - set(names))]
    faults += [f"the wheel should not hold {name}" for name in sorted(set(names) - expected)]
    return faults + [
        f"the wheel holds {n} twice" for n in sorted(set(names)) if names.count(n) > 1
    ]


def bill_faults(text: str) -> list[str]:
    """What is wrong with a bill of materials: signs of this machine or run, or an empty list."""
    bill = json.loads(text)
    faults = [f"the bill of materials contains {sign!r}" for sign in LOCAL if sign in text]
    if "serialNumber" in bill or "timestamp" in bill["metadata"]:
        faults.append(
            "the bill of materials has a serial number or a time, which change each time"
        )
    root = bill["metadata"].get("component", {})
    if (root.get("name"), root.get("version")) != (PROJECT["name"], PROJECT["version"]):
        faults.append("the bill of materials does not name this release")
    listed = {each["name"].lower().replace("_", "-") for each in bill["components"]}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["plot"]]
    missing = {each.split(">=")[0].lower() for each in wanted} - listed
    return faults + [f"the bill of materials lacks {each}" for each in sorted(missing)]


def stop_at(faults: list[str]) -> None:
    """End the run if there are faults."""
    if faults:
        sys.exit("\n".join(faults))


def install_tools() -> Path:
    """Folder of the programs of the extra `release`, which are kept until the list changes."""
    wanted = PROJECT["optional-dependencies"]["release"]
    stamp = TOOLS / "installed.json"
    if not stamp.exists() or json.loads(stamp.read_text("utf-8")) != wanted:
        run(sys.executable, "-m", "venv", "--clear", TOOLS, cwd=ROOT)
        run(TOOLS / "bin" / "pip", "install", *QUICKLY, *wanted, cwd=ROOT)
        stamp.write_text(json.dumps(wanted), "utf-8")
    return TOOLS / "bin"


def build(python: Path, folder: Path) -> tuple[Path, Path]:
    """Wheel and source archive in dist/; the same wheel must come from both sources."""
    shutil.rmtree(DIST, ignore_errors=True)
    # The source archive first, and the wheel from it.
    run(python, "-m", "build", "--outdir", DIST, ROOT, cwd=folder)
    run(python, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT, cwd=folder)
    wheel, source = DIST / f"{NAME}-py3-none-any.whl", DIST / f"{NAME}.tar.gz"
    if wheel.read_bytes() != (folder / "direct" / wheel.name).read_bytes():
        sys.exit("The source archive and the checkout build different wheels.")
    run(python, "-m", "twine", "check", "--strict", wheel, source, cwd=folder)
    with zipfile.ZipFile(wheel) as archive:
        stop_at(wheel_faults(archive.namelist(), expected_files(ROOT / "src")))
    return wheel, source


def collect_tests(source: Path, folder: Path) -> str:
    """Last line of pytest, which finds the tests in the unpacked source archive."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    # The unpacked package comes first, before the one in the checkout. It holds no docs and no
    # benchmarks, whose tests may be missing.
    options = ("--collect-only", "--quiet")
    here = folder / NAME
    pytest = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options)
    found = run(*pytest, cwd=here, PYTHONPATH=str(here / "src"), UNSHUFFLE_REQUIRE="")
    return found.splitlines()[-1]


def try_out(pip: Path, wheel: Path, folder: Path) -> Path:
    """Python of a fresh environment, in which the installed wheel did what it should."""
    # Without pip, so that the bill of materials lists only what the package needs.
    run(sys.executable, "-m", "venv", "--without-pip", folder / "fresh", cwd=folder)
    programs = folder / "fresh" / "bin"
    python = programs / "python"
    run(pip, "--python", python, "install", *QUICKLY, f"{wheel}[plot]", cwd=folder)
    work = folder / "work"
    work.mkdir()
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_DATA_HOME": str(folder / "data")}

    origin = run(python, "-c", "import unshuffle; print(unshuffle.__file__)", cwd=work)
    if not Path(origin.strip()).is_relative_to(folder / "fresh"):
        sys.exit(f"The fresh environment imports {origin}")
    version = run(programs / "unshuffle", "--version", cwd=work).split()
    if version != ["unshuffle", PROJECT["version"]]:
        sys.exit(f"unshuffle --version prints {' '.join(version)!r}")
    say("unshuffle doctor")
    run(programs / "unshuffle", "doctor", cwd=work, **own)
    say("unshuffle demo")
    run(programs / "unshuffle", "demo", "--output", work / "demo", cwd=work, **own)
    for name in sorted(PICTURES):
        check = f"from PIL import Image; Image.open({name!r}).load()"
        run(python, "-c", check, cwd=work / "demo")
    return python


def write_bill(tool: Path, python: Path, folder: Path) -> Path:
    """Bill of materials (CycloneDX) of an environment, valid and the same each time."""
    bill = DIST / f"{NAME}.cdx.json"
    about = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library")
    how = ("--output-reproducible", "--validate", "--output-file", bill)
    run(tool, "environment", *about, *how, python, cwd=folder)
    stop_at(bill_faults(bill.read_text("utf-8")))
    return bill


def main() -> None:
    """Build, check, install, try out, and list the dependencies."""
    say("tools")
    tools = install_tools()
    with tempfile.TemporaryDirectory(prefix=FOLDER) as name:
        folder = Path(name).resolve()
        say("wheel and source archive")
        wheel, source = build(tools / "python", folder)
        say("tests in the source archive")
        say(collect_tests(source, folder))
        say("a fresh environment with the wheel")
        python = try_out(tools / "pip", wheel, folder)
        say("bill of materials")
        bill = write_bill(tools / "cyclonedx-py", python, folder)
        say("removal of the fresh environment")
    for path in (wheel, source, bill):
        say(f"{path.relative_to(ROOT)}, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
