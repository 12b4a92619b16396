"""What tests do on the page of a wall: wait until it is at rest, find cells, drag, read colors."""

import base64
import io
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image

MARGIN, FOOT, CELL, MOST = 24, 36, 64, 4  # of the viewer, in pixels; MOST enlarges small walls
LEVELS = (30, 110, 190)
COLORS = [color for color in product(LEVELS, repeat=3) if len(set(color)) > 1]  # not gray
REFUSED = "console: Failed to load resource: the server responded with a status of 4"


def write_colors(folder: Path, n: int = len(COLORS)) -> Path:
    """A folder of pictures that can be recognized on the screen, each of one color."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        Image.new("RGB", (90, 60 + i), COLORS[i]).save(folder / f"{i:02}.png")
    return folder


class Shown:
    """A page in a browser, and the server behind it."""

    def __init__(self, page, server):
        self.page, self.server = page, server

    def settle(self):
        """Wait until the server is done and the page shows it."""
        state = self.server.settle()
        version = state["wall"]["version"]
        where = f'html[data-settled="yes"][data-wall="{version}"]'
        self.page.locator(where).wait_for(state="attached")
        return state

    @contextmanager
    def change(self, name):
        """Wait until the server has answered what is done inside, then until all is settled."""
        with self.page.expect_response(f"**/api/{name}*"):
            yield
        self.settle()

    def wall(self):
        """The wall as the server has it."""
        return self.server.get("/api/wall")

    def cell_of(self, item):
        """Cell of a picture, counted row by row."""
        return int(np.flatnonzero(self.server.grid().ravel() == item)[0])

    def place(self, cell):
        """Middle of a cell on the screen, of a wall that is fitted into the window."""
        state = self.server.state()["wall"]
        box = self.page.locator("#stage").bounding_box()
        across = (box["width"] - 2 * MARGIN) / (CELL * state["columns"])
        down = (box["height"] - 2 * MARGIN - FOOT) / (CELL * state["rows"])
        side = CELL * min(across, down, MOST)
        row, column = divmod(cell, state["columns"])
        left = box["x"] + box["width"] / 2 - side * state["columns"] / 2
        top = box["y"] + (box["height"] - FOOT) / 2 - side * state["rows"] / 2
        return left + side * (column + 0.5), top + side * (row + 0.5)

    def drag(self, start, end, *, drop=True):
        """Drag the mouse from one place to another."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        mouse.move(*end, steps=3)
        if drop:
            mouse.up()

    def colors(self, places, reach=None):
        """Colors at places on the screen; with `reach`, those of so many pixels on both sides."""
        with Image.open(io.BytesIO(self.page.screenshot())) as image:
            shot = np.asarray(image.convert("RGB")).astype(int)
        found = []
        for x, y in (map(round, place) for place in places):
            if reach is not None:
                found.append(shot[y, x - reach : x + reach + 1])
                continue
            found.append(np.median(shot[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3), axis=0))
        return np.array(found)

    def shows(self, item, cell):
        """Whether the color of a picture is in a cell."""
        return np.abs(self.colors([self.place(cell)])[0] - COLORS[item]).max() <= 10

    def said(self):
        """What a screen reader was told last."""
        return self.page.locator("#said").inner_text()


def cells_of(wall):
    """Slots on a wall that the server answered with."""
    cells = np.frombuffer(base64.b64decode(wall["cells"]), "<i4")
    return cells.reshape(wall["rows"], wall["columns"])
