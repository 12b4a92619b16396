import re

import pytest
from typer.testing import CliRunner

from unshuffle.cli._app import app


@pytest.fixture
def refused(tmp_path, tmp_path_factory, monkeypatch):
    """Run a command that must end with exit code 2 and one line; gives that line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

    def call(*arguments):
        before = sorted(tmp_path.rglob("*"))
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 2, (result.output, result.exception)
        # Some things are only known to be wrong once the folder is read.
        assert re.fullmatch(r"(Read \d+ files? in .*; skipped \d+\.\n)?", result.stdout)
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return result.stderr

    return call
