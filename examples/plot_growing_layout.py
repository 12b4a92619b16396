"""
Can a layout grow without moving what is already there?
=======================================================

People remember where things are. When new pictures come in, a layout made afresh moves all of
them. Here handwritten digits are laid out with some room to spare, two groups of them where the
user wants them, and then new digits are added: they go to free cells that suit them, and no old
one moves.
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
ax.set_title(
    f"{OLD} digits on {ROWS * COLUMNS} cells: the gaps run between the kinds", fontsize=10
)

# %%
# Some things where I want them
# -----------------------------
#
# `frozen` holds pairs of an item and a cell, counted row by row. Three zeros go to the top left
# corner, three ones to the bottom right; the other zeros and ones follow.

zeros, ones = (np.flatnonzero(labels[:OLD] == digit)[:3] for digit in (0, 1))
corner = np.array([0, 1, COLUMNS])
frozen = np.concatenate(
    [np.column_stack([zeros, corner]), np.column_stack([ones, ROWS * COLUMNS - 1 - corner])]
)
wanted = GridLayout(shape=(ROWS, COLUMNS), quality="best", random_state=0)
wanted.fit(old, frozen=frozen)
fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
LayoutDisplay.from_estimator(wanted, labels=labels[:OLD]).plot(ax)
ax.set_title("Zeros drawn to the top left, ones to the bottom right", fontsize=10)

# %%
# New ones come in
# ----------------
#
# `add` finds a free cell for each new item and leaves the others alone. A layout of all digits
# made afresh is a little better, but most of them stand elsewhere.

before = wanted.grid_.copy()
wanted.add(new)
afresh = GridLayout(shape=(ROWS, COLUMNS), quality="best", random_state=0)
afresh.fit(pixels, frozen=frozen)

fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for ax, name, grid in zip(
    axes, ("added", "made afresh"), (wanted.grid_, afresh.grid_), strict=True
):
    kept = distance_preservation_quality(pixels, grid)
    same = (grid == before)[before >= 0].mean()
    LayoutDisplay.from_predictions(grid, labels=labels).plot(ax)
    ax.set_title(f"{name}: quality {kept:.3f}, {same:.0%} stand where they stood", fontsize=10)

plt.show()

# %%
# What to try next
# ----------------
#
# - Add the new digits one at a time: does it matter that each sees only those before it?
# - Freeze half of the old digits where they stand, and fit all of them again: is that a fair
#   bargain between staying and being well placed?
# - Leave less room. With every cell taken, `add` says how many items are too many.
