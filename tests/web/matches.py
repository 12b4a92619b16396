"""What tests do on the page of a match: collections to match, and waiting until it is at rest."""

import csv
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from unshuffle.datasets import photo_halves


def write_halves(folder: Path, n: int) -> np.ndarray:
    """Halves of photos in two folders; right slot of each left one."""
    halves = photo_halves(n, light=1.5, random_state=2)
    for side, pictures, letter in (("left", halves.X, "a"), ("right", halves.y, "b")):
        (folder / side).mkdir(parents=True)
        for k, picture in enumerate(pictures):
            Image.fromarray(picture).save(folder / side / f"{letter}{k:02}.png")
    return halves.truth


def write_tables(folder: Path, n: int = 30) -> np.ndarray:
    """Two tables of the same people with a column of names; right row of each left one."""
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    hidden = rng.gamma(1.0, size=(n, 4))
    shown = [np.exp(hidden), hidden[order]]
    for name, letter, values in zip(("people", "blood"), "pq", shown, strict=True):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["name", "age", "pulse", "iron", "zinc"])
            table.writerows([f"{letter}{k:02}", *row] for k, row in enumerate(values.round(3)))
    return np.argsort(order)


def write_texts(folder: Path, n: int = 12) -> None:
    """Two folders of texts with the same subjects."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(30)])
    for side in ("left", "right"):
        (folder / side).mkdir(parents=True)
    for k in range(n):
        weights = rng.dirichlet(np.full(30, 0.2))
        for side, letter in (("left", "s"), ("right", "t")):
            text = " ".join(rng.choice(words, 300, p=weights))
            (folder / side / f"{letter}{k:02}.txt").write_text(text, encoding="utf-8")


class Matched:
    """The Match view in a browser, and the server behind it."""

    def __init__(self, page, server):
        self.page, self.server = page, server

    def state(self):
        return self.server.get("/api/match/state")

    def pairs(self):
        return self.server.get("/api/match/pairs")

    def partners(self):
        return np.array(self.pairs()["partner"])

    def settle(self, timeout=600):
        """Wait until the server is done and the page shows it."""
        state = rest(self.server, timeout)
        version = state["matching"]["version"]
        where = f'html[data-settled="yes"][data-pairs="{version}"]'
        self.page.locator(where).wait_for(state="attached")
        return state

    @contextmanager
    def change(self, name):
        """Wait until the server has answered what is done inside, then until all is settled."""
        with self.page.expect_response(f"**/api/match/{name}*"):
            yield
        self.settle()

    def row(self, left):
        """The line of a left item."""
        return self.page.locator(f'article.duo[data-key="{left}"]')

    def right_row(self, right):
        """The line of a right item without partner."""
        return self.page.locator(f'article.duo[data-key="{-1 - right}"]')

    def order(self):
        """Keys of the lines that are shown."""
        found = self.page.locator("article.duo").evaluate_all(
            "(rows) => rows.map((row) => Number(row.dataset.key))"
        )
        return list(found)

    def button(self, left, name):
        return self.row(left).get_by_role("button", name=name)

    def said(self):
        """What a screen reader was told last."""
        return self.page.locator("#said")

    def filter(self, name):
        return self.page.locator(f'[data-filter="{name}"]')


def rest(server, timeout=600):
    """Wait until nothing is under way."""
    end = time.monotonic() + timeout
    while (state := server.get("/api/match/state"))["jobs"]:
        assert time.monotonic() < end, state["jobs"]
        time.sleep(0.05)
    return state


def address_of(server):
    """Address of the Match view, whatever view the server opens first."""
    parts = urlsplit(server.address)
    return f"{parts.scheme}://{parts.netloc}/match?{parts.query}"
