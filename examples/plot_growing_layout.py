"""
Can a layout grow without moving what is already there?
=======================================================

People remember where things are, but a layout computed from scratch moves most pictures whenever
new ones arrive. This example lays out handwritten digits with some empty cells and two groups
fixed in the corners. Then it adds new digits to suitable free cells. No old digit moves.
"""

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import GridLayout
from unshuffle.datasets import sample_digits
from unshuffle.metrics import distance_preservation_quality
from unshuffle.plotting import LayoutDisplay

ROWS, COLUMNS, OLD, NEW = 15, 20, 200, 60
images, labels = sample_digits(OLD + NEW, random_state=0)
pixels = images.reshape(len(images), -1) / 255.0
old, new = pixels[:OLD], pixels[OLD:]

layout = GridLayout(shape=(ROWS, COLUMNS), quality="best", random_state=0).fit(old)
fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
LayoutDisplay.from_estimator(layout, labels=labels[:OLD]).plot(ax)
ax.set_title(f"{OLD} digits on {ROWS * COLUMNS} cells: gaps separate the digits", fontsize=10)

# %%
# Fix the position of some items
# ------------------------------
#
# `frozen` holds pairs of an item and a cell. Cells are counted row by row. Three zeros go to the
# top left corner and three ones to the bottom right. The other zeros and ones follow.

zeros, ones = (np.flatnonzero(labels[:OLD] == digit)[:3] for digit in (0, 1))
corner = np.array([0, 1, COLUMNS])
frozen = np.concatenate(
    [np.column_stack([zeros, corner]), np.column_stack([ones, ROWS * COLUMNS - 1 - corner])]
)
wanted = GridLayout(shape=(ROWS, COLUMNS), quality="best", random_state=0)
wanted.fit(old, frozen=frozen)
fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
LayoutDisplay.from_estimator(wanted, labels=labels[:OLD]).plot(ax)
ax.set_title("Zeros fixed at the top left, ones at the bottom right", fontsize=10)

# %%
# Add new items
# -------------
#
# `add` finds a free cell for each new item and does not move the others. A new layout of all
# digits is slightly better, but most digits have moved.

before = wanted.grid_.copy()
wanted.add(new)
afresh = GridLayout(shape=(ROWS, COLUMNS), quality="best", random_state=0)
afresh.fit(pixels, frozen=frozen)

fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for ax, name, grid in zip(
    axes, ("added", "new layout"), (wanted.grid_, afresh.grid_), strict=True
):
    kept = distance_preservation_quality(pixels, grid)
    same = (grid == before)[before >= 0].mean()
    LayoutDisplay.from_predictions(grid, labels=labels).plot(ax)
    ax.set_title(f"{name}: quality {kept:.3f}, {same:.0%} have not moved", fontsize=10)

plt.show()

# %%
# What to try next
# ----------------
#
# - Add the new digits one at a time: does the order matter?
# - Freeze half of the old digits in place and fit all of them again: is that a good compromise
#   between stability and quality?
# - Leave fewer empty cells. If there are not enough, `add` reports how many items do not fit.
