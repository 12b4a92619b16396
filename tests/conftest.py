import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Speed is not tested by a clock: a busy machine would fail tests of something else.
settings.register_profile("unshuffle", deadline=None)
settings.load_profile("unshuffle")


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a real data file, or a skipped test where the data are not at hand."""

    def find(name: str) -> Path:
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        path = Path(os.environ.get("UNSHUFFLE_DATA", beside)) / name
        if not path.exists():
            pytest.skip(f"{name} is not at hand; set UNSHUFFLE_DATA to the folder that holds it")
        return path

    return find
