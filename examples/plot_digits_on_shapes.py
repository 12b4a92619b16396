"""
Can digits be laid out on a grid, a torus, a word or a ring?
============================================================

A layout puts similar things side by side, without overlaps and without gaps. The shape is up to
you: a rectangle, one whose edges touch, the cells of a mask, or any points. Labels only colour
the digits afterwards.
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
# Nobody told the layout where one digit ends and the next begins. It shows all the same: draw
# how far each digit is from those beside it, and it is brighter where kinds meet.

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
display = LayoutDisplay.from_estimator(rectangle, labels=labels, X=pixels)
display.plot(left)
display.plot_neighbors(right)

# %%
# On a torus
# ----------
#
# A rectangle has corners, and what ends up in one has few neighbours. On a torus the last column
# touches the first, and the last row the first row.

torus = lay_out(shape=(ROWS, COLUMNS), wrap=True)
further = np.tile(torus.grid_, (2, 2))[: ROWS + ROWS // 2, : COLUMNS + COLUMNS // 2]
fig, ax = plt.subplots(figsize=(8, 5.8), layout="constrained")
LayoutDisplay.from_predictions(further, images=colored).plot(ax)
ax.axvline(COLUMNS - 0.5, color="0.3", linewidth=1, linestyle=":")
ax.axhline(ROWS - 0.5, color="0.3", linewidth=1, linestyle=":")
ax.set_title("One and a half times around: nothing breaks at the dotted lines", fontsize=10)

# %%
# On a word
# ---------
#
# `text_mask` writes a word on a grid, in letters that have room for so many items. Digits stand in
# the cells of the letters only. Neighbours in one letter are alike, and so are letters side by
# side.

mask = text_mask("DIGITS", len(pixels))
word = lay_out(shape=mask)
fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
LayoutDisplay.from_estimator(word, images=colored).plot(ax)
ax.set_title(f"{len(pixels)} digits in the {mask.sum()} cells of a word", fontsize=10)

# %%
# On a ring
# ---------
#
# Any points will do, given as rows and columns. These lie on three circles, 100 on each: a ring
# hardly wider than a line.

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
# The distance preservation quality is near 1 if every digit is surrounded by those most like it.
# A ring has room for less: digits that are alike in two ways have to be torn apart.

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
# - Write your own name, or draw a shape: `unshuffle.images.read_mask` takes the dark parts of a
#   picture.
# - Say what goes where with ``frozen``; `plot_growing_layout.py` shows how.
# - Compare digits by something other than pixels: ``kernel="rbf"``, or a kernel of your own.
