import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from unshuffle.cli._app import app
from unshuffle.datasets import make_paired_views, photo_halves


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder; gives the result with exit code and both streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # What is printed must not depend on what is installed.
    monkeypatch.setattr("unshuffle.cli._layout.has_content", lambda: False)
    monkeypatch.setattr("unshuffle.cli._match.has_content", lambda: False)

    def call(*arguments):
        return CliRunner().invoke(app, [str(each) for each in arguments])

    return call


@pytest.fixture
def tables(tmp_path):
    """Two tables that are easy to match, with names for their rows, and the truth."""
    X, y, truth = make_paired_views(40, noise=0.02, bend=0.2, random_state=0)
    for name, values in (("a", X), ("b", y)):
        header = ",".join(["name", *(f"c{k}" for k in range(values.shape[1]))])
        lines = [
            ",".join([f"{name}{i}", *(repr(float(v)) for v in row)])
            for i, row in enumerate(values)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n")
    return tmp_path / "a.csv", tmp_path / "b.csv", truth


@pytest.fixture
def arrays(tmp_path):
    """The same kind of data as bare arrays."""
    X, y, truth = make_paired_views(40, noise=0.02, bend=0.2, random_state=0)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", y)
    return tmp_path / "a.npy", tmp_path / "b.npy", truth


@pytest.fixture
def pictures(tmp_path):
    """Two folders of halves of photo crops."""
    left, right, truth = photo_halves(30, random_state=0)
    for name, halves in (("left", left), ("right", right)):
        (tmp_path / name).mkdir()
        for i, half in enumerate(halves):
            Image.fromarray(half).save(tmp_path / name / f"{name}{i}.png")
    return tmp_path / "left", tmp_path / "right", truth


@pytest.fixture
def album(tmp_path):
    """A folder of forty pictures in four colors, ten shades of each, larger than thumbnails."""
    rng = np.random.RandomState(0)
    (tmp_path / "album").mkdir()
    for i in range(40):
        color = np.eye(4, 3)[i % 4] * 160 + 40 + 3 * (i // 4)
        pixels = color + rng.uniform(-25, 25, (75, 100, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "album" / f"{i}.png")
    return tmp_path / "album"
