from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def pictures() -> np.ndarray:
    """Eleven small pictures: more than a batch, and not a multiple of one."""
    return np.random.default_rng(0).integers(256, size=(11, 20, 30, 3), dtype=np.uint8)


@pytest.fixture
def library() -> Callable[[str], Any]:
    """A library by its name; skips the test where it is missing or does not suit PyTorch."""

    def find(name: str) -> Any:
        try:
            return import_module(name)
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"{name} cannot be imported: {error}")

    return find
