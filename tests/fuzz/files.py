"""Pictures, grids and paths, as a user would pass them and should not."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.values import Case, Kind, Rng, pick, read_only, scratch, spoiled


def images(rows: str = "n", *, size: int = 12) -> Kind:
    """Pictures, (n, height, width, 3), 0 to 255."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        return rng.integers(0, 256, (case.sizes[rows], size, size, 3), dtype=np.uint8)

    def hostile(case: Case, rng: Rng) -> Any:
        values = draw(case, rng)
        return pick(
            rng,
            [
                lambda: spoiled(values.astype(float), rng),
                lambda: spoiled(values.astype(float), rng),
                lambda: values / 255,
                lambda: values.astype(int) - 5,
                lambda: values.astype(int) * 5,
                lambda: values[..., :1],
                lambda: values[..., 0],
                lambda: values[0],
                lambda: values[:, :1, :1],
                lambda: values[:, :0],
                lambda: [values[0], values[1][:4]],
                lambda: list(values),
            ],
        )()

    def ordinary(case: Case, rng: Rng) -> np.ndarray:
        values = draw(case, rng)
        return values if case.plain or rng.random() < 0.6 else read_only(values)

    return Kind(ordinary, hostile, needed=True)


def grid(rows: str = "n") -> Kind:
    """A layout: item in each cell, -1 where empty."""

    def draw(case: Case, rng: Rng) -> np.ndarray:
        n_items = case.sizes[rows]
        height = int(rng.integers(1, n_items + 1))
        width = -(-n_items // height)
        cells = np.full(height * width, -1)
        cells[rng.permutation(cells.size)[:n_items]] = np.arange(n_items)
        return cells.reshape(height, width)

    def hostile(case: Case, rng: Rng) -> Any:
        cells = draw(case, rng)
        return pick(
            rng,
            [
                lambda: cells.ravel(),
                lambda: np.full_like(cells, -1),
                lambda: np.zeros_like(cells),
                lambda: cells + 1,
                lambda: cells - 3,
                lambda: cells.astype(float),
                lambda: cells + 0.5,
                lambda: np.empty((0, 0), dtype=int),
                lambda: np.empty((0, 3), dtype=int),
                lambda: cells.astype(str),
                lambda: cells[:, :, None],
                lambda: spoiled(cells.astype(float), rng),
                lambda: np.array([[0]]),
                lambda: cells.tolist(),
                lambda: None,
            ],
        )()

    return Kind(draw, hostile, needed=True)


def pictures() -> Path:
    """Folder with four pictures among files that only claim to be pictures."""
    from PIL import Image

    folder = scratch() / "pictures"
    if not folder.exists():
        folder.mkdir()
        rng = np.random.default_rng(0)
        for i in range(4):
            values = rng.integers(0, 256, (9 + i, 12, 3), dtype=np.uint8)
            values[3:6, 3:8] = 0
            Image.fromarray(values).save(folder / f"{i}.png")
        (folder / "empty.png").write_bytes(b"")
        (folder / "text.png").write_text("not a picture")
        whole = (folder / "0.png").read_bytes()
        (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
        (folder / "notes.txt").write_text("words")
        np.save(folder / "features.npy", rng.normal(size=(4, 3)))
        np.save(folder / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
        os.mkfifo(folder / "pipe.png")
        os.symlink("loop.png", folder / "loop.png")
        os.symlink("/dev/zero", folder / "zero.png")
    return folder


def path(*ordinary: str, folder: bool = False) -> Kind:
    """A file to read, in the folder of pictures."""

    def hostile(case: Case, rng: Rng) -> Any:
        place = pictures()
        names = ["empty.png", "text.png", "cut.png", "notes.txt", "pipe.png", "loop.png"]
        names += ["zero.png", "missing.png", "objects.npy", "features.npy", "a" * 300, "nul\0.png"]
        junk = [place, place / "0.png", "", None, 5, b"0.png", [], object(), Path(), "/dev/null"]
        return pick(rng, [*(place / name for name in names), *junk])

    def draw(case: Case, rng: Rng) -> Any:
        found = pictures() if folder else pictures() / pick(rng, list(ordinary))
        return found if rng.random() < 0.5 else str(found)

    return Kind(draw, hostile, needed=True)


def output(*suffixes: str) -> Kind:
    """A file to write."""

    def hostile(case: Case, rng: Rng) -> Any:
        place = scratch()
        names = ["no-suffix", "odd.xyz", "missing/folder/x.png", "a" * 300 + ".png", "nul\0.png"]
        return pick(rng, [*(place / name for name in names), place, "", None, 5, b"x.png", []])

    return Kind(
        lambda case, rng: scratch() / f"out{pick(rng, list(suffixes))}", hostile, needed=True
    )
