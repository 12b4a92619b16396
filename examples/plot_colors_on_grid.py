"""
How well can random colors be sorted on a square?
=================================================

Colors have three dimensions and a square has two, so a thousand random colors cannot all be placed
next to the most similar ones. This example sorts the same colors at three quality settings,
measures the results, and then removes the edges.
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
left.set_title("unsorted")
right.set_title("sorted")

# %%
# More time, better neighbors
# ---------------------------
#
# Two numbers measure a layout. The *distance preservation quality* says how far the items around
# each item are also the most similar ones, with more weight on the nearest: higher is better, and
# 1 is perfect. The *neighbor distance* is the mean distance between adjacent colors: lower is
# better. The first fit compiles the inner loops, so each quality runs twice and the second run is
# timed.

grids = {"unsorted": unsorted}
seconds = {"unsorted": 0.0}
for quality in ("fast", "balanced", "best"):
    GridLayout(quality=quality, random_state=0).fit(colors)
    start = time.perf_counter()
    grids[quality] = GridLayout(quality=quality, random_state=0).fit(colors).grid_
    seconds[quality] = time.perf_counter() - start

for name, grid in grids.items():
    kept = distance_preservation_quality(colors, grid)
    apart = neighbor_distance(colors, grid)
    print(f"{name:9} quality {kept:.3f}  neighbors {apart:.3f} apart  {seconds[name]:.3f} s")

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, quality in zip(axes, ("fast", "balanced", "best"), strict=True):
    LayoutDisplay.from_predictions(grids[quality], values=colors).plot(ax)
    ax.set_title(quality)

# %%
# Without edges
# -------------
#
# With `wrap=True` the last column is adjacent to the first, and the last row to the first row, as
# on a torus. Copies placed side by side show no seam, so any collection can be tiled as a
# wallpaper.

torus = GridLayout(wrap=True, quality="best", random_state=0).fit(colors)
twice = np.tile(torus.grid_, (1, 2))
fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
LayoutDisplay.from_predictions(twice, values=colors).plot(ax)

plt.show()

# %%
# What to try next
# ----------------
#
# - Sort by perceived color: convert with ``rgb_to_lab`` (`unshuffle.images`) before ``fit``.
# - Raise `SIDE` to 200 and leave out "best": how does the time grow?
# - Leave cells empty: ``shape=(36, 36)`` has 272 to spare. Where do they end up?
