"""
Can unseen photos be translated from one network to another?
============================================================

Two networks describe photos by 1,280 numbers each, and the numbers of one mean nothing to the
other. 250 photos are described by both and matched without a known pair. The matched pairs teach
a map from the first network to the second. We then take 100 photos that were not matched, and
look for each of them by its features from the other network.

The photos are windows of two large ones that ship with scikit-learn. If the environment variable
UNSHUFFLE_DATA names a folder with ``cifar10_1000.npz``, they are photos of CIFAR-10 instead.
The networks need ``pip install "unshuffle[content]"``.
"""

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
from unshuffle.images import describe

try:
    encoders = [load_encoder("content:lite0"), load_encoder("content:lite2")]
except ImportError as error:
    print(error)
    sys.exit()

N_FITTED, N_UNSEEN = 250, 100


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
photos = load_photos(N_FITTED + N_UNSEEN, rng)
first, second = (describe(photos, encoder)[0] for encoder in encoders)

# %%
# Match some photos, and teach the map
# ------------------------------------
#
# The rows of the second table are shuffled, and `fit` is given no pair. `transform` and `match`
# learn the map from the pairs that it found, each weighted by its confidence.

order = rng.permutation(N_FITTED)
sorting = KernelizedSorting(random_state=0, n_jobs=2).fit(first[:N_FITTED], second[order])
n_right = int((order[sorting.permutation_] == np.arange(N_FITTED)).sum())
print(f"{n_right} of {N_FITTED} pairs that teach the map are right")

# %%
# Two ways to find the partner of an unseen photo
# -----------------------------------------------
#
# `transform` gives the features that the second network is expected to give. The nearest real
# features are one guess at the partner. `match` compares new items of both sides itself: its
# candidates are the best partners of each photo on its own, and its permutation takes every
# partner once.

new, new_second, unseen = first[N_FITTED:], second[N_FITTED:], photos[N_FITTED:]
expected = sorting.transform(new)
nearest = cdist(expected, new_second).argmin(axis=1)
matches = sorting.match(new, new_second)
best = matches.candidates[:, 0]

truth = np.arange(N_UNSEEN)
found = {
    "nearest to transform": nearest,
    "best candidate of match": best,
    "match, every partner once": matches.permutation,
}
shares = [np.mean(partner == truth) for partner in found.values()]
fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
bars = ax.barh(list(found), shares, color=["#8aa29e", "#0f6948", "#0f6948"])
ax.bar_label(bars, [f"{share:.1%}" for share in shares], padding=3)
ax.invert_yaxis()
ax.set(
    xlabel=f"share of unseen photos whose partner of {N_UNSEEN} is found",
    xlim=(0, 1.12),
    xticks=np.linspace(0, 1, 6),
)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Why `match` is better
# ---------------------
#
# Expected features are cautious. Where the map knows little it predicts the average, so expected
# features vary less than real ones, and lie too close to photos that are typical. Typical photos
# are then chosen several times, and others never. A distance also counts all directions alike,
# whether the map predicts them well or not.
#
# `match` knows from pairs left out how well each direction is predicted. It relies on those that
# are, and ignores the others. If every photo has one partner, choosing all pairs together helps
# again: a photo that surely belongs to another is not offered twice.
#
# So use `match` to find partners, and `transform` where you need the numbers, such as to feed a
# classifier that was trained on the second network.

print(f"spread of expected features: {expected.std(axis=0).mean():.4f}")
print(f"spread of real features:     {new_second.std(axis=0).mean():.4f}")
for name, partner in found.items():
    times = np.bincount(partner, minlength=N_UNSEEN)
    print(f"{name:26} {(times > 0).sum()} different photos, one of them {times.max()} times")

# %%
# Photos that `transform` confuses
# --------------------------------
#
# The nearest photo often shows the same kind of thing. `match` (its best candidate) is right for
# most of these.

wrong = np.flatnonzero(nearest != truth)[:12]
fig, axes = plt.subplots(3, 12, figsize=(9, 2.6), layout="constrained")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for column, item in enumerate(wrong):
    for row, partner in enumerate((item, nearest[item], best[item])):
        axes[row, column].imshow(unseen[partner])
        axes[row, column].spines[:].set(
            visible=row > 0, linewidth=2.5, color="#0f6948" if partner == item else "#b2182b"
        )
for ax, name in zip(axes[:, 0], ("photo", "transform", "match"), strict=True):
    ax.set_ylabel(name, rotation=0, ha="right", va="center")

plt.show()

# %%
# What to try next
# ----------------
#
# - Match fewer photos, ``N_FITTED = 150``. The pairs are as good, but fewer of them teach the map,
#   and `transform` suffers most.
# - Translate the other way: swap ``encoders``.
# - Look for one photo among all 350: ``sorting.match(first[250:251], second).candidates[0]``.
# - Train a classifier on ``second``, and apply it to ``sorting.transform(new)``.
