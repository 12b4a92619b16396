"""
Can digits be laid out on a grid, a torus, a word or a ring?
============================================================

A layout puts similar items side by side, without overlaps or gaps. You choose the shape: a
rectangle, a rectangle whose opposite edges meet, the cells of a mask, or any points. The fit does
not use the labels, which only color the digits.
"""

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import GridLayout
from unshuffle.datasets import sample_digits
from unshuffle.images import text_mask
from unshuffle.plotting import LayoutDisplay

ROWS, COLUMNS = 20, 28
images, labels = sample_digits(ROWS * COLUMNS, random_state=0)
pixels = images.reshape(len(images), -1) / 255.0

ink = (255 * plt.cm.tab10(labels)[:, np.newaxis, np.newaxis, :3]).astype(np.uint8)
shade = images[..., np.newaxis] / 255.0
colored = (255 + shade * (ink - 255.0)).astype(np.uint8)


def lay_out(n_items=ROWS * COLUMNS, **options):
    return GridLayout(quality="best", random_state=0, **options).fit(pixels[:n_items])


# %%
# On a rectangle
# --------------

rectangle = lay_out(shape=(ROWS, COLUMNS))
fig, ax = plt.subplots(figsize=(8, 5.8), layout="constrained")
LayoutDisplay.from_estimator(rectangle, images=colored).plot(ax)

# %%
# The layout did not use the labels, but the boundaries between digits are visible. The right panel
# shows the distance of each item from its neighbors. It is brighter where two digits meet.

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
display = LayoutDisplay.from_estimator(rectangle, labels=labels, X=pixels)
display.plot(left)
display.plot_neighbors(right)

# %%
# On a torus
# ----------
#
# Items in the corners of a rectangle have few neighbors. On a torus the last column is adjacent to
# the first, and the last row to the first row.

torus = lay_out(shape=(ROWS, COLUMNS), wrap=True)
further = np.tile(torus.grid_, (2, 2))[: ROWS + ROWS // 2, : COLUMNS + COLUMNS // 2]
fig, ax = plt.subplots(figsize=(8, 5.8), layout="constrained")
LayoutDisplay.from_predictions(further, images=colored).plot(ax)
ax.axvline(COLUMNS - 0.5, color="0.3", linewidth=1, linestyle=":")
ax.axhline(ROWS - 0.5, color="0.3", linewidth=1, linestyle=":")
ax.set_title("One and a half times around: no seam at the dotted lines", fontsize=10)

# %%
# On a word
# ---------
#
# `text_mask` writes a word on a grid, with letters large enough for the given number of items.
# Only the cells of the letters are filled. Neighbors within a letter are similar, and so are
# adjacent letters.

mask = text_mask("DIGITS", len(pixels))
word = lay_out(shape=mask)
fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
LayoutDisplay.from_estimator(word, images=colored).plot(ax)
ax.set_title(f"{len(pixels)} digits in the {mask.sum()} cells of a word", fontsize=10)

# %%
# On a ring
# ---------
#
# The shape can be any list of points, given as rows and columns. These lie on three circles with
# 100 points each and form a narrow ring.

turn = 2 * np.pi * np.arange(100) / 100
circle = np.column_stack([np.sin(turn), np.cos(turn)])
ring = np.concatenate([radius * circle for radius in (14, 15, 16)])
circled = lay_out(300, shape=ring)
fig, ax = plt.subplots(figsize=(6.5, 6.5), layout="constrained")
LayoutDisplay.from_estimator(circled, images=colored[:300]).plot(ax)

# %%
# How well are they sorted?
# -------------------------
#
# The distance preservation quality is near 1 if every digit is surrounded by the most similar
# ones. It is lower on a ring, which is almost one-dimensional and has to separate some similar
# digits.

for name, layout in (
    ("rectangle", rectangle),
    ("torus", torus),
    ("word", word),
    ("ring", circled),
):
    print(f"{name:9} {layout.score_:.3f}")

plt.show()

# %%
# What to try next
# ----------------
#
# - Write your own name, or draw a shape: `unshuffle.images.read_mask` reads the dark parts of a
#   picture as a mask.
# - Fix the position of some items with ``frozen``, as in `plot_growing_layout.py`.
# - Compare digits with ``kernel="rbf"`` or your own kernel.
