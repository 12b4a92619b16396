"""
Can a matching lay out digits on a grid, a torus or a circle?
=============================================================

A grid is a collection of points, and points near each other are alike. So handwritten digits
can be matched to the points of a grid: similar digits come to lie side by side. Nothing but the
points change for another shape. Labels only colour the digits afterwards.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import KernelizedSorting
from unshuffle.datasets import grid_points, sample_digits
from unshuffle.images import grid_sheet
from unshuffle.matching import AmbiguityWarning

ROWS, COLUMNS = 14, 18
images, labels = sample_digits(ROWS * COLUMNS, random_state=0)
pixels = images.reshape(len(images), -1) / 255.0


def lay_out(points):
    """Index of the digit that comes to lie on each point."""
    with warnings.catch_warnings():
        # A grid looks the same from all sides: of course another answer is as good.
        warnings.simplefilter("ignore", AmbiguityWarning)
        sorting = KernelizedSorting(n_jobs=2).fit(pixels, points)
    return np.argsort(sorting.permutation_)


ink = (255 * plt.cm.tab10(labels)[:, np.newaxis, np.newaxis, :3]).astype(np.uint8)
shade = np.pad(images, ((0, 0), (1, 1), (1, 1)))[..., np.newaxis] / 255.0
colored = (255 + shade * (ink - 255.0)).astype(np.uint8)

# %%
# On a grid
# ---------

cells = grid_points(ROWS, COLUMNS)
grid = lay_out(cells).reshape(ROWS, COLUMNS)
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
ax.imshow(grid_sheet(colored, grid, tile=30, gap=0, background=(255, 255, 255)))
ax.set_axis_off()

# %%
# On a torus
# ----------
#
# A grid has corners, and what ends up in one has few neighbours. On a torus the last column
# touches the first, and the last row the first row. Each coordinate becomes a point on a circle:
# two numbers instead of one. The longer circle is given the larger radius, so that a step along
# either is equally long.

angle = 2 * np.pi * cells / (ROWS, COLUMNS)
radius = np.array([ROWS, COLUMNS]) / COLUMNS
on_torus = np.hstack([radius * np.cos(angle), radius * np.sin(angle)])
torus = lay_out(on_torus).reshape(ROWS, COLUMNS)
twice = np.tile(torus, (2, 2))[: ROWS + ROWS // 2, : COLUMNS + COLUMNS // 2]
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
ax.imshow(grid_sheet(colored, twice, tile=30, gap=0, background=(255, 255, 255)))
# A sheet with `gap=0` has tiles of 30 pixels: here the torus starts again.
ax.axvline(30 * COLUMNS, color="0.3", linewidth=1, linestyle=":")
ax.axhline(30 * ROWS, color="0.3", linewidth=1, linestyle=":")
ax.set_title("One and a half times around: nothing breaks at the dotted lines", fontsize=10)
ax.set_axis_off()

# %%
# On a circle
# -----------
#
# One dimension has room for less: digits that are alike in two ways have to be torn apart.

turn = 2 * np.pi * np.arange(len(images)) / len(images)
ring = lay_out(np.column_stack([np.cos(turn), np.sin(turn)]))
fig, ax = plt.subplots(figsize=(6, 6), layout="constrained")
for place, digit in enumerate(ring):
    x, y = (1 + 0.09 * (place % 3)) * np.array([np.cos(turn[place]), np.sin(turn[place])])
    style = {"color": plt.cm.tab10(labels[digit]), "fontsize": 9, "ha": "center", "va": "center"}
    ax.text(x, y, str(labels[digit]), **style)
ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
ax.set_axis_off()


# %%
# How well are they sorted?
# -------------------------
#
# Count neighbours that show the same digit; in random order it would be one in ten.


def agreement(places, around):
    same = []
    for axis in range(places.ndim):
        equal = labels[places] == labels[np.roll(places, 1, axis=axis)]
        same.append(np.delete(equal, [] if around else 0, axis=axis).ravel())
    return np.concatenate(same).mean()


print(f"grid   {agreement(grid, around=False):.0%}")
print(f"torus  {agreement(torus, around=True):.0%}")
print(f"circle {agreement(ring, around=True):.0%}")

plt.show()

# %%
# What to try next
# ----------------
#
# - Say what goes where: freeze some digits to cells (``frozen=[(digit, cell), ...]``). One among
#   hundreds weighs little; a handful of each kind draws its kind along.
# - Match to points on a sphere, or to the pixels of a letter: any points will do.
# - Use fewer digits than cells. All digits are placed, and the cells left over stay empty.
