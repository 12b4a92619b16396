"""A small wall that a test can read off the screen: every picture has a color of its own."""

import io
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from unshuffle.images import write_page

LEVELS = (30, 110, 190)
COLORS = [color for color in product(LEVELS, repeat=3) if len(set(color)) > 1]  # not gray
N = len(COLORS)  # 24
NUMBERS = range(N)
KINDS = [("cat", "dog", "bird")[i % 3] for i in NUMBERS]
NAMES = [f"{KINDS[i]}s/{i:02}.png" for i in NUMBERS]
YEARS = [str(2000 + i) for i in NUMBERS]
NOTES = ['the "best",\nof all' if i == 5 else "" for i in NUMBERS]
LINKS = [f"../originals/{NAMES[i]}" if i % 2 == 0 else "" for i in NUMBERS]
NEIGHBORS = [[(i + 3) % N, (i + 6) % N, (i + 9) % N] for i in NUMBERS]
GRID = np.insert(np.random.default_rng(1).permutation(N), 4, -1).reshape(5, 5)


def cell_of(item: int) -> tuple[int, int]:
    """Row and column of a picture."""
    row, column = np.argwhere(item == GRID)[0].tolist()
    return row, column


def write_walls(folder: Path) -> dict[str, Path]:
    """Page of the wall in both forms."""
    pictures = [np.full((180, 240 + i % 2, 3), COLORS[i], np.uint8) for i in NUMBERS]
    pages = {"file": folder / "wall.html", "folder": folder / "wall"}
    for path in pages.values():
        write_page(
            path,
            pictures,
            GRID,
            NAMES,
            title="Cats and others",
            columns={"kind": KINDS, "year": YEARS, "note": NOTES},
            neighbors=NEIGHBORS,
            links=LINKS,
        )
    pages["folder"] /= "index.html"
    return pages


class Screen:
    """What a page shows, read from its pixels."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def shot(self) -> np.ndarray:
        """Pixels of the window."""
        with Image.open(io.BytesIO(self.page.screenshot())) as image:
            return np.asarray(image.convert("RGB")).astype(np.int16)

    def places(self, items: Sequence[int] = NUMBERS) -> dict[int, tuple[float, float]]:
        """Middles of pictures on the wall, by their colors."""
        box = self.page.locator("#stage").bounding_box()
        left, top = int(box["x"]), int(box["y"])
        stage = self.shot()[top : top + int(box["height"]), left : left + int(box["width"])]
        found = {}
        for item in items:
            down, across = np.nonzero((np.abs(stage - COLORS[item]) <= 8).all(axis=2))
            assert len(down) > 100, f"picture {item} is not in sight"
            found[item] = float(np.median(across)) + left, float(np.median(down)) + top
        return found

    def place(self, item: int) -> tuple[float, float]:
        """Middle of one picture."""
        return self.places([item])[item]

    def color(self, place: tuple[float, float]) -> np.ndarray:
        """Color around a place."""
        return _color(self.shot(), place)

    def bright(self, places: dict[int, tuple[float, float]]) -> set[int]:
        """Pictures that are not dimmed."""
        self.page.wait_for_timeout(50)  # for the next frame
        shot = self.shot()
        return {
            item
            for item, place in places.items()
            if np.abs(_color(shot, place) - COLORS[item]).max() <= 8
        }

    def zoom(self) -> float:
        """Pixels between the middles of two pictures side by side, in the first row."""
        first, second = self.places(GRID[0, :2].tolist()).values()
        return second[0] - first[0]


def _color(shot: np.ndarray, place: tuple[float, float]) -> np.ndarray:
    x, y = map(round, place)
    return np.median(shot[y - 3 : y + 4, x - 3 : x + 4].reshape(-1, 3), axis=0)
