import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from unshuffle.cli._app import app
from unshuffle.cli._help import program_name

COMMANDS = ["", "match", "layout", "collage", "morph", "serve", "demo", "doctor"]
EXAMPLES = "Examples:"


def commands():
    return typer.main.get_command(app)


def options():
    """Every option of every command."""
    for name, command in commands().commands.items():
        for param in command.params:
            yield name, param


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_every_word_whole_and_fits_the_terminal(run, monkeypatch, command, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    text, _, examples = result.stdout.partition(EXAMPLES)
    assert "…" not in text
    if width >= 80:
        assert max(map(len, text.splitlines())) <= min(width, 96)
    params = commands().params if not command else commands().commands[command].params
    words = set(text.split())
    for param in params:
        assert set((param.help or "").split()) <= words | {""}, param.name
        for name in getattr(param, "opts", ()):
            if name.startswith("-"):
                assert {name, f"{name},"} & words
    # Examples are copied, so that they are not wrapped.
    assert all(line.startswith("  unshuffle ") for line in examples.split("\n")[1:-1])


def test_help_says_what_each_option_takes_and_its_default(run):
    shown = " ".join(run("match", "--help").stdout.split())
    assert "--n-init N Starting points. More are slower and safer. Default: 8." in shown
    assert "--method auto|refined|low-rank|classic|unbiased|entropy" in shown
    assert "-q, --quiet Print only errors" in shown
    assert "--header, --no-header" in shown
    serve = run("serve", "--help").stdout
    assert serve.startswith("Usage: unshuffle serve [OPTIONS] [FOLDER] [OTHER]\n")


def test_every_option_that_takes_a_value_says_which_kind():
    for command, param in options():
        if not getattr(param, "is_flag", False):
            assert param.metavar, f"{command}: {param.name}"


def test_exit_statuses_are_listed(run):
    shown = run("--help").stdout
    for status in ("0", "1", "2", "3", "130"):
        assert f"\n  {status} " in shown


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a shebang")
def test_printed_commands_work_where_the_program_is_not_on_the_path(tmp_path):
    script = tmp_path / "bin" / "unshuffle"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom unshuffle.cli import main\nmain()\n")
    script.chmod(0o755)
    home = {name: value for name, value in os.environ.items() if name != "PATH"}
    for path, expected in (("/nowhere", "bin/unshuffle"), (str(script.parent), "unshuffle")):
        environment = {**home, "PATH": path}
        # As `make demo` starts it, and as a shell does that finds it.
        started = subprocess.run(
            ["bin/unshuffle", "match", "a"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        advice = started.stderr.rpartition(" Try ")[2].strip(" .\n'")
        assert advice == f"{expected} match --help"
        repeated = subprocess.run(
            advice,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"  {expected} match english/ deutsch/" in repeated.stdout


def test_a_program_started_as_a_module_says_how(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/lib/unshuffle/__main__.py", "match"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert program_name().endswith("-m unshuffle")
    assert Path(program_name().split()[0]).name == Path(sys.executable).name
    monkeypatch.setattr(shutil, "which", lambda name: sys.executable)
    assert program_name() == f"{Path(sys.executable).name} -m unshuffle"
