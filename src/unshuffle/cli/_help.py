"""What `--help` prints: one column of names, one of text, whole words at any width."""

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from unshuffle.cli._common_options import GENERAL

# Widest line that is read with ease, and where texts begin beside short names.
_WIDEST, _INDENT = 96, 26
_ORDER = {"Arguments": 0, "Options": 1, GENERAL: 3}


def program_name() -> str:
    """What starts this program in the terminal: unshuffle, or for example .venv/bin/unshuffle.

    Commands that are printed begin with it, so that they can be copied.
    """
    called = sys.argv[0]
    folder, name = os.path.split(called)
    if name == "__main__.py" and os.path.basename(folder) == "unshuffle":
        python = os.path.basename(sys.executable)
        return f"{_typed(python, sys.executable)} -m unshuffle"
    if folder and os.path.splitext(name)[0] == "unshuffle":
        return _typed("unshuffle", called)
    return "unshuffle"


def with_own_pip(text: str) -> str:
    """Text whose commands install where this program is, also if the shell finds another pip."""
    pip = shutil.which("pip", path=os.path.dirname(sys.executable))
    if pip is None or "pip install" not in text:
        return text
    return text.replace("pip install", f"{_typed('pip', pip)} install")


def _typed(name: str, path: str) -> str:
    """The name of a program if the shell finds this one by it, otherwise its path."""
    found = shutil.which(name)
    if found is not None and os.path.realpath(os.path.dirname(found)) == os.path.realpath(
        os.path.dirname(path)
    ):
        return name
    return shlex.quote(path)


class Command(TyperCommand):
    """A command whose help lists its options in groups."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, description, arguments, options and examples."""
        lines = [f"Usage: {ctx.command_path} [OPTIONS]{_shown_arguments(self.params)}", ""]
        lines += [*_paragraphs(self.help), *_listed(self.get_params(ctx))]
        if self.epilog:
            # Examples stay whole, so that they can be copied.
            lines += ["Examples:", *(f"  {line}" for line in self.epilog.splitlines())]
        formatter.write("\n".join(lines).rstrip() + "\n")


class Group(TyperGroup):
    """The commands, with the exit statuses that they share."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, commands, options and exit statuses."""
        lines = [f"Usage: {ctx.command_path} COMMAND [OPTIONS]", "", *_paragraphs(self.help)]
        lines.append("Commands:")
        for name, command in self.commands.items():
            lines += _entry(name, (command.help or "").partition("\n\n")[0], indent=12)
        lines += ["", *_listed(self.get_params(ctx)), "Exit status:"]
        for line in (self.epilog or "").splitlines():
            status, _, meaning = line.partition(" ")
            lines += _entry(status, meaning, indent=12)
        formatter.write("\n".join(lines) + "\n")


def _shown_arguments(params: list[Any]) -> str:
    arguments = [param for param in params if param.param_type_name == "argument"]
    return "".join(
        f" {param.metavar}" if param.required else f" [{param.metavar}]" for param in arguments
    )


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in (text or "").split("\n\n"):
        yield from _wrapped(paragraph)
        yield ""


def _listed(params: list[Any]) -> Iterator[str]:
    """Arguments and options under the headings of their groups."""
    groups: dict[str, list[Any]] = {}
    for param in params:
        is_argument = param.param_type_name == "argument"
        panel = getattr(param, "rich_help_panel", None)  # not always in old Typer
        heading = "Arguments" if is_argument else panel or "Options"
        groups.setdefault(heading, []).append(param)
    # Arguments and the options of this command come first, what all commands have comes last.
    for heading in sorted(groups, key=lambda each: _ORDER.get(each, 2)):
        yield f"{heading}:"
        for param in groups[heading]:
            yield from _entry(_name(param), _text(param))
        yield ""


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar)
    # The short name first.
    names = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        return f"{names}, {', '.join(param.secondary_opts)}"
    return names if param.is_flag else f"{names} {param.metavar}"


def _text(param: Any) -> str:
    text = str(param.help or "")
    default = param.default
    told = default is None or isinstance(default, bool) or callable(default)
    if told or param.required or not param.show_default or "Default:" in text:
        return text
    return f"{text} Default: {getattr(default, 'value', default)}."


def _entry(name: str, text: str, indent: int = _INDENT) -> list[str]:
    """A name with its text beside it, or below it if the name is long."""
    lines = _wrapped(text, indent)
    if len(name) + 4 > indent:
        return [f"  {name}", *lines]
    return [f"  {name}".ljust(indent) + lines[0].lstrip(), *lines[1:]]


def _wrapped(text: str, indent: int = 0) -> list[str]:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    # Option names such as --no-trust have hyphens, and stay whole like all other words.
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, indent + 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    ) or [""]
