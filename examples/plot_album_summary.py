"""
Which photos represent an album?
================================

An album has 520 pictures: tiles of two photographs, in no order. Twelve of them should give an
idea of all. A random sample shows the most common ones several times and misses the rare ones.
`summarize` chooses pictures such that every other one has a similar one among them.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_sample_images

from unshuffle import GridLayout
from unshuffle.images import color_texture
from unshuffle.layout import choose_representatives, summarize
from unshuffle.plotting import LayoutDisplay

SIDE, K = 32, 12


def cut(photo):
    rows, columns = photo.shape[0] // SIDE, photo.shape[1] // SIDE
    tiles = photo[: rows * SIDE, : columns * SIDE].reshape(rows, SIDE, columns, SIDE, 3)
    return tiles.swapaxes(1, 2).reshape(-1, SIDE, SIDE, 3)


rng = np.random.default_rng(0)
tiles = rng.permutation(np.concatenate([cut(photo) for photo in load_sample_images().images]))
features = color_texture(tiles)  # colors, and directions of edges

summary = summarize(features, K)
drawn = rng.choice(len(tiles), K, replace=False)

# %%
# Twelve of 520
# -------------
#
# Top: the representatives, and how many pictures each stands for. Bottom: twelve pictures at
# random, with the number of pictures that are closer to each than to the other eleven.

closest = cdist(features, features[drawn])
stands_for = np.bincount(closest.argmin(axis=1), minlength=K)
fig, axes = plt.subplots(2, K, figsize=(10, 2.4), layout="constrained")
for row, items, counts in zip(
    axes, (summary.indices, drawn), (summary.counts, stands_for), strict=True
):
    for ax, item, count in zip(row, items, counts, strict=True):
        ax.imshow(tiles[item])
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{count}", fontsize=10)
axes[0, 0].set_ylabel("chosen")
axes[1, 0].set_ylabel("at random")
print(f"mean distance to the nearest chosen one:    {summary.mean_distance:.3f}")
print(f"mean distance to the nearest at random:     {closest.min(axis=1).mean():.3f}")

# %%
# What each one stands for
# ------------------------
#
# ``labels`` gives the representative of every picture. Each row has a representative on the left,
# then pictures of its group, from the nearest to the farthest.

groups = range(0, K, 2)
fig, axes = plt.subplots(len(groups), 13, figsize=(9.6, 4.6), layout="constrained")
for row, group in zip(axes, groups, strict=True):
    members = np.flatnonzero(summary.labels == group)
    chosen = summary.indices[group]
    distance = np.linalg.norm(features[members] - features[chosen], axis=1)
    members = members[np.argsort(distance)]
    members = members[np.linspace(1, len(members) - 1, 12).round().astype(int)]
    for ax, item in zip(row, (chosen, *members), strict=True):
        ax.imshow(tiles[item])
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(linewidth=3 if item == chosen else 0, color="#0f6948")

# %%
# How many are enough?
# --------------------
#
# More representatives come closer to all pictures, with less and less to gain. The band holds 20
# random samples of each size.

sizes = (1, 2, 4, 8, 12, 16, 24, 32, 48)
reached = [summarize(features, k).mean_distance for k in sizes]
distances = cdist(features, features)
samples = np.array(
    [
        [distances[:, rng.permutation(len(tiles))[:k]].min(axis=1).mean() for k in sizes]
        for _ in range(20)
    ]
)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.fill_between(sizes, samples.min(axis=0), samples.max(axis=0), color="#e6dfd3")
ax.plot(sizes, samples.mean(axis=0), color="#9a8c78", label="at random, mean and range")
ax.plot(sizes, reached, "o-", color="#0f6948", label="chosen")
ax.set(xlabel="representatives", ylabel="mean distance to the nearest", ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# A summary as a picture
# ----------------------
#
# 60 representatives, arranged by similarity. `choose_representatives` returns only their indices.

chosen = choose_representatives(features, 60)
layout = GridLayout(shape=(5, 12), quality="best", random_state=0).fit(features[chosen])
fig, ax = plt.subplots(figsize=(9, 3.9), layout="constrained")
LayoutDisplay.from_estimator(layout, images=tiles[chosen]).plot(ax)

plt.show()

# %%
# What to try next
# ----------------
#
# - Compare only colors: ``color_histogram`` of `unshuffle.images`. Which groups merge?
# - Compare by content: ``describe(tiles, "content")`` needs ``pip install "unshuffle[content]"``.
# - Summarize your own photos: ``read_folder("photos").arrays`` instead of ``tiles``.
