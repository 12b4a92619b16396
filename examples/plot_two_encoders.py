"""
Can the features of two networks be matched without one known pair?
===================================================================

Two networks describe the same 300 photos. Each turns a photo into 1,280 numbers, but the numbers
mean different things: the two were trained apart, and column 7 of one has nothing to do with
column 7 of the other. We shuffle the rows of the second table.

No pair is known, and nothing links the columns. Can the photos be found again?

The photos are windows of two large ones that ship with scikit-learn. If the environment variable
UNSHUFFLE_DATA names a folder with ``cifar10_1000.npz``, they are photos of CIFAR-10 instead.
The networks need ``pip install "unshuffle[content]"``.
"""

# sphinx_gallery_thumbnail_number = 2
import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from scipy.spatial.distance import cdist
from sklearn.datasets import load_sample_images

from unshuffle import KernelizedSorting
from unshuffle.encoders import load_encoder
from unshuffle.images import describe, matched_sheet
from unshuffle.plotting import MatchDisplay

try:
    encoders = [load_encoder("content:lite0"), load_encoder("content:lite2")]
except ImportError as error:
    print(error)
    sys.exit()


def load_photos(n, rng):
    """Photos of CIFAR-10 from the folder UNSHUFFLE_DATA, else windows of two large photos."""
    folder = os.environ.get("UNSHUFFLE_DATA")
    if folder and (Path(folder) / "cifar10_1000.npz").exists():
        return np.load(Path(folder) / "cifar10_1000.npz")["images"][:n]
    photos, windows = load_sample_images().images, []
    while len(windows) < n:
        photo, size = photos[rng.integers(2)], rng.integers(48, 200)
        top, left = (rng.integers(side - size) for side in photo.shape[:2])
        window = photo[top : top + size, left : left + size]
        if window.mean(axis=2).std() > 25:  # no plain sky
            windows.append(window[:, :: rng.choice([-1, 1])])
    return np.stack([Image.fromarray(window.copy()).resize((64, 64)) for window in windows])


rng = np.random.default_rng(0)
photos = load_photos(300, rng)
order = rng.permutation(len(photos))
truth = np.argsort(order)  # second[truth[i]] belongs to first[i]
first, second = (describe(photos, encoder)[0] for encoder in encoders)
second = second[order]

# %%
# What the two tables have in common
# ----------------------------------
#
# Photos that are alike for one network tend to be alike for the other. Each matrix below holds
# the similarities of all photos by one network, red above average and blue below. Rows on the
# left are sorted by their main direction. On the right they are shuffled, and show no pattern.

names = ("EfficientNet-Lite0", "EfficientNet-Lite2, shuffled")
MatchDisplay.from_predictions(first, second, np.arange(len(first))).plot_kernels(labels=names)

# %%
# Kernelized sorting looks for the order in which the two matrices agree best.

sorting = KernelizedSorting(random_state=0, n_jobs=2).fit(first, second)
names = ("EfficientNet-Lite0", "EfficientNet-Lite2, matched")
MatchDisplay.from_estimator(sorting, first, second).plot_kernels(labels=names)

# %%
# How many are right?
# -------------------
#
# Comparing the columns directly finds about as many photos as a guess. The matching finds nearly
# all windows, some of which overlap so far that they look the same. It also estimates its own
# share of right pairs, without knowing the truth.

nearest = cdist(first, second).argmin(axis=1)
right = sorting.permutation_ == truth
low, high = sorting.expected_accuracy_interval_
print(f"nearest row, column by column:  {(nearest == truth).sum()} of {len(truth)} right")
print(f"kernelized sorting:             {right.sum()} of {len(truth)} right")
print(
    f"estimated without the truth:    {sorting.expected_accuracy_:.0%} ({low:.0%} to {high:.0%})"
)

# %%
# The least certain pairs
# -----------------------
#
# These 40 pairs have the lowest confidence. If one is wrong, it has a thick red frame, and the
# partner is a photo of much the same thing.

doubtful = np.argsort(sorting.confidence_)[:40]
sheet = matched_sheet(
    photos[doubtful],
    photos[order],
    sorting.permutation_[doubtful],
    correct=right[doubtful],
    columns=8,
    height=64,
)
fig, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
ax.imshow(sheet)
ax.set_title(f"{right[doubtful].sum()} of the 40 least certain pairs are right", fontsize=10)
ax.set_axis_off()

plt.show()

# %%
# What to try next
# ----------------
#
# - Use your own photos: ``read_folder`` and ``describe`` of `unshuffle.images` take a folder.
# - Match only 100 photos. Nearly all pairs are still right.
# - Describe one side by color, ``describe(photos, "color")``. Color and content have little in
#   common: hardly a pair is right, and a warning says so.
# - Translate photos that were not matched: ``plot_translating_between_encoders.py``.
