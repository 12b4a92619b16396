"""
How well can random colours be sorted on a square?
==================================================

Colours have three dimensions and a square has two, so a thousand random colours cannot all stand
next to those most like them. Some layouts come closer to that than others. This example sorts the
same colours at three qualities, says how good they are, and removes the edges.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import GridLayout
from unshuffle.metrics import distance_preservation_quality, neighbor_distance
from unshuffle.plotting import LayoutDisplay

SIDE = 32
colors = np.random.default_rng(0).random((SIDE * SIDE, 3))
unsorted = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)

layout = GridLayout(quality="best", random_state=0).fit(colors)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
LayoutDisplay.from_predictions(unsorted, values=colors).plot(left)
LayoutDisplay.from_estimator(layout, values=colors).plot(right)

# %%
# More time, better neighbours
# ----------------------------
#
# Two numbers judge a layout. The *distance preservation quality* asks of every item whether those
# around it are those most like it, near ones first: 1 is perfect, higher is better. The
# *neighbour distance* is how far touching colours are apart on average: lower is better. The first
# fit ever compiles the inner loops, so each quality is run twice and timed the second time.

grids = {"as drawn": unsorted}
seconds = {"as drawn": 0.0}
for quality in ("fast", "balanced", "best"):
    GridLayout(quality=quality, random_state=0).fit(colors)
    start = time.perf_counter()
    grids[quality] = GridLayout(quality=quality, random_state=0).fit(colors).grid_
    seconds[quality] = time.perf_counter() - start

for name, grid in grids.items():
    kept = distance_preservation_quality(colors, grid)
    apart = neighbor_distance(colors, grid)
    print(f"{name:9} quality {kept:.3f}  neighbours {apart:.3f} apart  {seconds[name]:.3f} s")

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, quality in zip(axes, ("fast", "balanced", "best"), strict=True):
    LayoutDisplay.from_predictions(grids[quality], values=colors).plot(ax)
    ax.set_title(quality)

# %%
# Without edges
# -------------
#
# With `wrap=True` the last column touches the first and the last row the first row, as on a
# torus. Two copies side by side show no seam, which makes a wallpaper of any collection.

torus = GridLayout(wrap=True, quality="best", random_state=0).fit(colors)
twice = np.tile(torus.grid_, (1, 2))
fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
LayoutDisplay.from_predictions(twice, values=colors).plot(ax)

plt.show()

# %%
# What to try next
# ----------------
#
# - Sort by what eyes see: pass ``rgb_to_lab`` of the colours (`unshuffle.images`) to ``fit``.
# - Raise `SIDE` to 200, and leave "best" out: how does the time grow?
# - Leave room: ``shape=(36, 36)`` has 272 cells to spare. Where do they end up?
