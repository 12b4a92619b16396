"""Pictures of ten kinds, drawn from nothing: free to pass on, and the same for the same seed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

SIDE = 256  # pixels of a picture
Pixels = np.ndarray[Any, Any]
Colors = Callable[[Pixels], Pixels]

ROWS, COLUMNS = np.mgrid[0:SIDE, 0:SIDE] / SIDE


def scenes(n: int, *, seed: int = 0) -> Iterator[tuple[str, Image.Image]]:
    """Kind and picture, each kind as often as the others, in a random order."""
    kinds = [list(KINDS)[k % len(KINDS)] for k in range(n)]
    for number, which in enumerate(np.random.default_rng(seed).permutation(n)):
        rng = np.random.default_rng([seed, number])
        drawn = KINDS[kinds[which]](rng)
        yield kinds[which], Image.fromarray((drawn.clip(0, 1) * 255).astype(np.uint8))


def planet(rng: np.random.Generator) -> Pixels:
    """A lit ball, banded or mottled, before stars."""
    sky = np.repeat((rng.random((SIDE, SIDE)) > 0.998)[..., None] * rng.uniform(0.4, 1), 3, axis=2)
    sky = sky + 0.35 * noise(rng, 2)[..., None] ** 3 * tint(rng)
    x, y = COLUMNS - rng.uniform(0.4, 0.6), ROWS - rng.uniform(0.4, 0.6)
    radius = rng.uniform(0.24, 0.4)
    height = np.sqrt((radius**2 - x**2 - y**2).clip(0)) / radius
    angle = rng.uniform(0, 2 * np.pi)
    light = np.array([np.cos(angle), np.sin(angle)]) * 0.7
    shade = ((x * light[0] + y * light[1]) / radius + 0.7 * height).clip(0.03)
    bands = rng.uniform(0, 1) * 9 * (y + 0.3 * x) + 1.5 * noise(rng, 4)
    ball = palette(rng)(bands) * shade[..., None] * 1.25
    edge = ((radius - np.hypot(x, y)) * SIDE).clip(0, 1)[..., None]
    glow = np.exp(-((np.hypot(x, y) - radius).clip(0) * 18))[..., None] * tint(rng) * 0.25
    return sky + glow + (ball - sky - glow) * edge


def mountains(rng: np.random.Generator) -> Pixels:
    """Ridges, paler with distance, under a sky with a sun."""
    low, high = sky_colors(rng)
    image = high + (low - high) * (ROWS[..., None] * 1.6).clip(0, 1)
    image = image + sun(rng, 0.35)[..., None] * np.array([1.0, 0.9, 0.7])
    near = tint(rng) * rng.uniform(0.12, 0.3)
    n_ridges = int(rng.integers(3, 6))
    for k in range(n_ridges):
        share = (k + 1) / n_ridges
        line = 0.35 + 0.5 * share - 0.38 * (1.2 - share) * (ridge(rng, 6) - 0.3)
        below = ((ROWS - line[None]) * SIDE).clip(0, 1)[..., None]
        color = low * (1 - share) * 0.9 + near * share
        snow = (1 - (ROWS - line[None]) * 14).clip(0, 1)[..., None] * (0.35 * (1 - share))
        image = image * (1 - below) + (color + snow + 0.05 * noise(rng, 5)[..., None]) * below
    return image


def sea(rng: np.random.Generator) -> Pixels:
    """A sun over water that mirrors it."""
    low, high = sky_colors(rng)
    horizon = rng.uniform(0.4, 0.62)
    up = (ROWS / horizon).clip(0, 1)[..., None]
    clouds = stretched(noise(rng, 5))[..., None] ** 2 * 0.45
    sky = high + (low - high) * up + clouds * low
    x = rng.uniform(0.25, 0.75)
    y = horizon - rng.uniform(0.02, 0.22)
    distance = np.hypot(COLUMNS - x, ROWS - y)
    disc = ((0.075 - distance) * SIDE).clip(0, 1) + 0.6 * np.exp(-(distance**2) * 40)
    sky = sky + disc[..., None] * np.array([1, 0.85, 0.55])
    depth = ((ROWS - horizon) / (1 - horizon)).clip(0, 1)
    waves = np.sin(90 * np.sqrt(depth + 0.02) + 14 * stretched(noise(rng, 4)))
    glitter = np.exp(-(((COLUMNS - x) / (0.05 + 0.12 * depth)) ** 2)) * (0.5 + 0.5 * waves)
    water = (0.5 * low + 0.3 * high) * (1 - 0.65 * depth[..., None])
    water = water * (1 + 0.16 * waves[..., None]) + glitter[..., None] * np.array([0.9, 0.7, 0.4])
    return np.where(ROWS[..., None] < horizon, sky, water)


def flower(rng: np.random.Generator) -> Pixels:
    """Rings of petals before blurred green."""
    ground = np.array([0.12, 0.28, 0.12]) * (0.5 + noise(rng, 3)[..., None] * 1.4)
    x, y = COLUMNS - rng.uniform(0.44, 0.56), ROWS - rng.uniform(0.44, 0.56)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    petals, twist = int(rng.integers(5, 13)), rng.uniform(0, 2 * np.pi)
    # Petals are of any color but green.
    color, tip = tint(rng, (0.55, 1.2)), tint(rng, (0.55, 1.2))
    image = ground
    for ring in range(int(rng.integers(2, 5))):
        size = rng.uniform(0.4, 0.46) * 0.74**ring
        wave = np.abs(np.cos((angle + twist + ring * np.pi / petals / 1.3) * petals / 2))
        border = size * (0.45 + 0.55 * wave**0.6)
        inside = ((border - radius) * SIDE / 1.5).clip(0, 1)[..., None]
        share = (radius / size).clip(0, 1)[..., None]
        shade = 0.55 + 0.45 * wave[..., None] ** 0.5 * (0.5 + 0.5 * share)
        image = image * (1 - inside) + (color + (tip - color) * share**2) * shade * inside
    heart = ((0.055 - radius) * SIDE / 2).clip(0, 1)[..., None]
    dots = 0.75 + 0.25 * np.sin(COLUMNS * 190) * np.sin(ROWS * 190)
    return image * (1 - heart) + np.array([0.95, 0.75, 0.15]) * dots[..., None] * heart


def fractal(rng: np.random.Generator) -> Pixels:
    """A Julia set, colored by how soon its points leave."""
    angle = rng.uniform(0, 2 * np.pi)
    # Points near the border of the main cardioid have lively Julia sets.
    c = np.exp(1j * angle) / 2 - np.exp(2j * angle) / 4
    c = c * rng.uniform(1.02, 1.1)
    turn = np.exp(1j * rng.uniform(0, 2 * np.pi)) * rng.uniform(1.6, 2.8)
    z = (COLUMNS - 0.5 + 1j * (ROWS - 0.5)) * turn
    count = np.zeros(z.shape)
    for _ in range(60):
        inside = np.abs(z) < 8
        z = np.where(inside, z * z + c, z)
        count += inside
    smooth = count - np.log2(np.log(np.abs(z).clip(1.1))).clip(-4, 4)
    fade = (1 - (count >= 60) * 0.85)[..., None]
    return palette(rng)(np.log1p(smooth.clip(0)) * rng.uniform(0.4, 0.9)) * fade


def marble(rng: np.random.Generator) -> Pixels:
    """Veins of two noises that bend each other."""
    bent = noise(rng, 5) + rng.uniform(0.5, 2) * np.sin(7 * noise(rng, 4))
    veins = np.abs(np.sin(bent * rng.uniform(2, 5)))[..., None] ** 0.5
    return palette(rng)(bent * rng.uniform(0.15, 0.4)) * (0.35 + 0.75 * veins)


def mosaic(rng: np.random.Generator) -> Pixels:
    """Tiles around random points, with joints between."""
    points = rng.random((int(rng.integers(18, 80)), 2))
    apart = np.hypot(ROWS[..., None] - points[:, 0], COLUMNS[..., None] - points[:, 1])
    nearest = np.sort(apart, axis=2)[..., :2]
    joint = ((nearest[..., 1] - nearest[..., 0]) * 60).clip(0, 1)[..., None]
    tones = palette(rng)(0.6 * rng.random(len(points)) + points[:, 1] * 0.4)
    tiles = tones[apart.argmin(axis=2)] * (0.8 + 0.4 * noise(rng, 6)[..., None])
    return tiles * joint + (1 - joint) * 0.12


def city(rng: np.random.Generator) -> Pixels:
    """Houses with lit windows at night."""
    low, high = sky_colors(rng)
    image = high * 0.25 + (low - high * 0.25) * ROWS[..., None] ** 2 * 0.8
    image = image + sun(rng, 0.16)[..., None] * 0.8
    lamp = np.array([1.0, 0.8, 0.4]) if rng.random() < 0.7 else tint(rng)
    for depth in (0.55, 1.0):
        left = -int(rng.integers(20))
        while left < SIDE:
            width = int(rng.integers(20, 54))
            top = int(SIDE * rng.uniform(0.22, 0.7) * (0.6 + 0.45 * depth))
            a, b = max(left, 0), min(left + width, SIDE)
            wall = low * 0.25 * (1 - depth) + 0.05 + 0.04 * rng.random()
            image[top:, a:b] = wall
            for y in range(top + 6, SIDE - 6, 9):
                for x in range(left + 4, left + width - 5, 8):
                    if x >= 0 and rng.random() < 0.55:
                        image[y : y + 5, x : x + 4] = lamp * rng.uniform(0.4, 1) * depth
            left += width + int(rng.integers(5))
    return image


def ripples(rng: np.random.Generator) -> Pixels:
    """Waves from a few places, which cross."""
    total = np.zeros((SIDE, SIDE))
    for _ in range(int(rng.integers(2, 5))):
        away = np.hypot(COLUMNS - rng.uniform(-0.3, 1.3), ROWS - rng.uniform(-0.3, 1.3))
        total += np.sin(away * rng.uniform(30, 70))
    color = palette(rng)(0.25 * ROWS + 0.1 * total)
    return color * (0.85 + 0.2 * total[..., None])


def tree(rng: np.random.Generator) -> Pixels:
    """A tree in leaf on a hill."""
    low, high = sky_colors(rng)
    line = 0.8 + 0.08 * np.sin(COLUMNS[0] * rng.uniform(2, 6) + rng.uniform(0, 6))
    hill = ((ROWS - line) * SIDE).clip(0, 1)[..., None]
    grass = np.array([0.3, 0.5, 0.15]) * rng.uniform(0.6, 1.3, 3)
    image = (high + (low - high) * ROWS[..., None]) * (1 - hill)
    image = image + grass * (0.6 + 0.6 * noise(rng, 6)[..., None]) * hill
    canvas = Image.fromarray((image.clip(0, 1) * 255).astype(np.uint8))
    canvas = canvas.resize((2 * SIDE, 2 * SIDE), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(canvas)
    ends: list[tuple[float, float]] = []
    grow(draw, rng, SIDE * rng.uniform(0.85, 1.15), 1.68 * SIDE, -np.pi / 2, SIDE * 0.36, 7, ends)
    leaf = np.array([[0.85, 0.3, 0.1], [0.9, 0.7, 0.15], [0.3, 0.55, 0.15], [0.95, 0.7, 0.8]])
    color = leaf[rng.integers(4)] * rng.uniform(0.8, 1.1, 3)
    for x, y in ends:
        tone = (color * rng.uniform(0.55, 1.15)).clip(0, 1) * 255
        size = rng.uniform(4, 12)
        box = (x - size, y - size, x + size, y + size)
        draw.ellipse(box, fill=tuple(int(each) for each in tone))
    return np.asarray(canvas.resize((SIDE, SIDE), Image.Resampling.LANCZOS)) / 255


def grow(
    draw: ImageDraw.ImageDraw,
    rng: np.random.Generator,
    x: float,
    y: float,
    angle: float,
    length: float,
    left: int,
    ends: list[tuple[float, float]],
) -> None:
    """A branch and all that grows from it."""
    x2, y2 = x + np.cos(angle) * length, y + np.sin(angle) * length
    draw.line((x, y, x2, y2), fill=(58, 40, 28), width=max(2, int(length / 7)))
    if left < 4:
        ends.append((x2, y2))
    if left:
        for turn in (-1, 1):
            share = rng.uniform(0.66, 0.8)
            new = angle + turn * rng.uniform(0.2, 0.6)
            grow(draw, rng, x2, y2, new, length * share, left - 1, ends)


def noise(rng: np.random.Generator, octaves: int) -> Pixels:
    """Smooth noise from 0 to 1, each octave twice as fine and half as strong."""
    total = np.zeros((SIDE, SIDE))
    for octave in range(octaves):
        cells = Image.fromarray(rng.random((2 ** (octave + 1) + 1,) * 2).astype(np.float32))
        total += np.asarray(cells.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) / 2**octave
    return (total - total.min()) / np.ptp(total)


def ridge(rng: np.random.Generator, octaves: int) -> Pixels:
    """Height of a mountain range in each column, from 0 to 1."""
    total = np.zeros(SIDE)
    for octave in range(1, octaves):
        knots = rng.random(2**octave + 2)
        places = np.linspace(0, len(knots) - 1, SIDE)
        total += np.interp(places, range(len(knots)), knots) / 2**octave
    return (total - total.min()) / np.ptp(total)


def stretched(field: Pixels) -> Pixels:
    """A field made four times as wide."""
    part = Image.fromarray(field[:, : SIDE // 4].astype(np.float32))
    return np.asarray(part.resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def sun(rng: np.random.Generator, glow: float) -> Pixels:
    """A disc with a halo, in the upper half."""
    away = np.hypot(COLUMNS - rng.uniform(0.2, 0.8), ROWS - rng.uniform(0.1, 0.35))
    return ((rng.uniform(0.03, 0.07) - away) * SIDE).clip(0, 1) + glow * np.exp(-(away**2) * 30)


def tint(rng: np.random.Generator, hues: tuple[float, float] = (0, 1)) -> Pixels:
    """A bright color of any hue, or of a part of the circle: 0 is red, 1/3 green, 2/3 blue."""
    return 0.55 + 0.45 * np.cos(2 * np.pi * (rng.uniform(*hues) - np.array([0, 1, 2]) / 3))


def sky_colors(rng: np.random.Generator) -> tuple[Pixels, Pixels]:
    """Colors at the horizon and above, of a time of day."""
    times = (
        ([0.75, 0.85, 0.95], [0.25, 0.5, 0.85]),
        ([0.98, 0.65, 0.35], [0.35, 0.3, 0.55]),
        ([0.95, 0.5, 0.55], [0.3, 0.35, 0.65]),
        ([0.5, 0.55, 0.75], [0.08, 0.1, 0.28]),
        ([0.85, 0.85, 0.8], [0.55, 0.6, 0.65]),
        ([0.95, 0.85, 0.6], [0.4, 0.65, 0.75]),
    )
    low, high = times[rng.integers(len(times))]
    return np.array(low) * rng.uniform(0.85, 1.1, 3), np.array(high) * rng.uniform(0.8, 1.2, 3)


def palette(rng: np.random.Generator) -> Colors:
    """Colors that come back, around one hue or several."""
    start, spread = rng.random(), rng.uniform(0.02, 0.22)
    middle, range_ = rng.uniform(0.4, 0.6), rng.uniform(0.25, 0.4)
    shifts = start + spread * np.array([0, 1, 2])

    def colors(t: Pixels) -> Pixels:
        return middle + range_ * np.cos(2 * np.pi * (np.asarray(t)[..., None] + shifts))

    return colors


KINDS: dict[str, Callable[[np.random.Generator], Pixels]] = {
    "city": city,
    "flower": flower,
    "fractal": fractal,
    "marble": marble,
    "mosaic": mosaic,
    "mountains": mountains,
    "planet": planet,
    "ripples": ripples,
    "sea": sea,
    "tree": tree,
}
