from pathlib import Path

import pytest
from tests.images.walls import write_walls


@pytest.fixture(scope="session")
def walls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Page of the wall of `tests.images.walls` in both forms."""
    return write_walls(tmp_path_factory.mktemp("walls"))


@pytest.fixture(params=["file", "folder"])
def wall(request: pytest.FixtureRequest, walls: dict[str, Path]) -> Path:
    """Page of this wall, in each form."""
    return walls[request.param]
