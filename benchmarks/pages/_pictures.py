"""A folder of as many pictures as asked for: crops, flips and tints of a few real ones."""

import csv
import io
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SOURCES = ("flickr320.npz", "cifar10_1000.npz", "aloi1000.npz")
PER_FOLDER = 1000
SIDES = 160, 400  # pixels of the longer side
TINTS = {
    "plain": (1.0, 1.0, 1.0),
    "red": (1.25, 0.85, 0.8),
    "orange": (1.25, 1.0, 0.7),
    "yellow": (1.15, 1.15, 0.65),
    "green": (0.8, 1.2, 0.85),
    "blue": (0.75, 0.95, 1.3),
    "violet": (1.1, 0.8, 1.25),
    "dark": (0.55, 0.55, 0.6),
}
# Grain gives the files the size of photos; pictures enlarged from 40 pixels have no detail.
GRAIN = 5.0
ONE_DAMAGED_IN = 300
DAMAGES = ("empty", "text", "head only", "cut short", "noise", "too large")


@dataclass(frozen=True)
class Recipe:
    """How one picture is made; it depends on the seed and the number of the picture alone."""

    name: str
    source: int  # which of all source pictures
    kind: str
    tint: str
    box: tuple[float, float, float, float]  # part of the source, in shares of its sides
    mirrored: bool
    size: tuple[int, int]
    grain: int  # where in the noise to begin
    damage: str  # "" for none


def recipe(number: int, seed: int, kinds: list[str]) -> Recipe:
    rng = np.random.default_rng([seed, number])
    source = int(rng.integers(len(kinds)))
    share = rng.uniform(0.6, 1.0)
    left, top = rng.uniform(0, 1 - share, size=2)
    longer = int(rng.integers(SIDES[0], SIDES[1] + 1))
    shorter = max(SIDES[0] // 2, round(longer * rng.uniform(0.6, 1.0)))
    size = (longer, shorter) if rng.random() < 0.6 else (shorter, longer)
    damaged = rng.integers(ONE_DAMAGED_IN) == 0
    return Recipe(
        name=f"{number // PER_FOLDER:03}/{number:06}.jpg",
        source=source,
        kind=kinds[source],
        tint=str(rng.choice(list(TINTS))),
        box=(left, top, left + share, top + share),
        mirrored=bool(rng.random() < 0.5),
        size=size,
        grain=int(rng.integers(2**31)),
        damage=DAMAGES[rng.integers(len(DAMAGES))] if damaged else "",
    )


def make(folder: Path, n_pictures: int, *, data: Path, seed: int = 0) -> tuple[int, int]:
    """Write the pictures that are missing; how many were written, and how many are damaged."""
    starts = range(0, n_pictures, PER_FOLDER)
    work = partial(_make_some, folder, n_pictures, data, seed)
    if len(starts) == 1:
        return work(0)
    with ProcessPoolExecutor() as pool:
        counts = list(pool.map(work, starts))
    return sum(written for written, _ in counts), sum(damaged for _, damaged in counts)


def write_table(path: Path, n_pictures: int, *, data: Path, seed: int = 0) -> None:
    """Table with the kind, tint and size of each picture."""
    kinds = _sources(data)[1]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "kind", "tint", "size"])
        for number in range(n_pictures):
            made = recipe(number, seed, kinds)
            writer.writerow([made.name, made.kind, made.tint, f"{max(made.size) // 20 * 20} px"])


def _make_some(
    folder: Path, n_pictures: int, data: Path, seed: int, start: int
) -> tuple[int, int]:
    """Pictures of one sub-folder."""
    pictures, kinds = _sources(data)
    n_written = n_damaged = 0
    for number in range(start, min(start + PER_FOLDER, n_pictures)):
        made = recipe(number, seed, kinds)
        n_damaged += made.damage != ""
        path = folder / made.name
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(_damage(_encode(_draw(pictures[made.source], made)), made))
        os.replace(unfinished, path)
        n_written += 1
    return n_written, n_damaged


@cache
def _sources(data: Path) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """All source pictures, and the kind of each."""
    if missing := [name for name in SOURCES if not (data / name).exists()]:
        raise SystemExit(
            f"{missing[0]} is not in {data}. Set UNSHUFFLE_DATA to the folder that holds it."
        )
    pictures: list[np.ndarray[Any, Any]] = []
    kinds: list[str] = []
    for name, plain in zip(SOURCES, ("photo", "", "object"), strict=True):
        with np.load(data / name, allow_pickle=False) as file:
            pictures += list(file["images"])
            if "classes" in file:
                kinds += file["classes"][file["labels"]].tolist()
            else:
                kinds += [plain] * len(file["images"])
    return pictures, kinds


def _draw(source: np.ndarray[Any, Any], made: Recipe) -> Image.Image:
    height, width = source.shape[:2]
    left, top, right, bottom = made.box
    box = left * width, top * height, right * width, bottom * height
    image = Image.fromarray(source).resize(made.size, Image.Resampling.BICUBIC, box=box)
    if made.mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = np.asarray(image, dtype=np.float32) * np.float32(TINTS[made.tint])
    noise = _noise()
    row, column = divmod(made.grain % noise.shape[0] ** 2, noise.shape[0])
    rows = np.arange(row, row + made.size[1]) % len(noise)
    columns = np.arange(column, column + made.size[0]) % len(noise)
    pixels += noise[rows][:, columns, None]
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


@cache
def _noise() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(scale=GRAIN, size=(512, 512)).astype(np.float32)


def _encode(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=85)
    return out.getvalue()


def _damage(encoded: bytes, made: Recipe) -> bytes:
    """A file that is not a picture, of the kind asked for."""
    if made.damage == "too large":
        # The frame header declares the size: marker, length, precision, height, width.
        frame = encoded.index(b"\xff\xc0")
        return encoded[: frame + 5] + b"\xff\xdc\xff\xdc" + encoded[frame + 9 :]
    noise = np.random.default_rng(made.grain).bytes(2000)
    return {
        "": encoded,
        "empty": b"",
        "text": b"This is not a picture.\n",
        "head only": encoded[:20],
        "cut short": encoded[: len(encoded) // 3],
        "noise": noise,
    }[made.damage]
