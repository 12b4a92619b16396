"""
When should I not trust the answer?
===================================

Do not trust it when the data are symmetric. Here points are scattered over the wings of a
butterfly, whose left side mirrors the right. They are given twice: in a flat picture, and in
space, rotated and shuffled. Every point has a true partner and another on the opposite wing that
fits equally well.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning

NOISE = 0.01


def butterfly(rng, n=45):
    """Points in a flat picture, the same in space and shuffled, and the true pairs."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(0, 1, n))
    upper = rng.random(n) < 0.6
    center = np.where(upper, [[0.62], [0.45]], [[0.42], [-0.4]])
    size = np.where(upper, [[0.6], [0.4]], [[0.4], [0.3]])
    wing = (center + size * radius * [np.cos(angle), np.sin(angle)]).T
    points = np.concatenate([wing, wing * [-1, 1]])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    flat = points + NOISE * rng.normal(size=points.shape)
    space = points @ turn + NOISE * rng.normal(size=(2 * n, 3))
    order = rng.permutation(2 * n)
    return flat, space[order], np.argsort(order)


def fit(flat, space, frozen=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DoubtWarning)
        sorting = KernelizedSorting().fit(flat, space, frozen=frozen)
    return sorting, [str(each.message) for each in caught]


# %%
# Every pair wrong, and a warning
# -------------------------------
#
# Points are colored by their position in the picture, and each partner has the color of its point.
# The right panel draws the partners at their true positions, which only this example knows.

flat, space, truth = butterfly(np.random.default_rng(0))
sorting, messages = fit(flat, space)


def draw(axes, partner, title):
    """Draw the picture on the left and the partners at their true positions on the right."""
    hue = plt.cm.coolwarm((flat[:, 0] - flat[:, 0].min()) / np.ptp(flat[:, 0]))
    axes[0].scatter(*flat.T, c=hue, s=22, edgecolors="0.4", linewidths=0.3)
    place = flat[np.argsort(truth)[partner]]
    axes[1].scatter(*place.T, c=hue, s=22, edgecolors="0.4", linewidths=0.3)
    axes[0].set_title("the picture", fontsize=10)
    axes[1].set_title(title, fontsize=10)
    for ax in axes:
        ax.plot([0, 0], [-0.55, 0.6], color="0.6", linewidth=4, solid_capstyle="round", zorder=0)
        ax.set_aspect("equal")
        ax.set_axis_off()


right = int((sorting.permutation_ == truth).sum())
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
draw(axes, sorting.permutation_, f"no known pair: {right} of {len(truth)} right")
print(f"{right} right, believed right {sorting.expected_accuracy_:.0%}")
print(f"ambiguity {sorting.ambiguity_:.3f}")
print(messages[0])

# %%
# In a mirror image all pairs agree with each other, so no single pair looks wrong. Ambiguity
# measures whether a clearly different matching is as good. If it is near 1, the two answers are
# equally likely: at most half of the pairs can be expected to be right, and you are warned.
#
# One known pair resolves it
# --------------------------

item = int(np.argmax(np.abs(flat[:, 0])))  # a wing tip: far from its mirror image
sorting, messages = fit(flat, space, frozen=[(item, truth[item])])
right = int((sorting.permutation_ == truth).sum())
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
draw(axes, sorting.permutation_, f"one known pair: {right} of {len(truth)} right")

# %%
# How many known pairs are enough?
# --------------------------------
#
# Eight butterflies, with known pairs drawn at random. Without any, either none or nearly all pairs
# are right. One known pair is enough to choose the right answer, and with three the warning mostly
# disappears. A pair close to the body is nearly its own mirror image and helps little, so do not
# rely on a single pair.

n_known = [0, 1, 2, 3, 5]
shares, ambiguities = np.empty((8, 5)), np.empty((8, 5))
for seed in range(8):
    rng = np.random.default_rng(seed)
    flat, space, truth = butterfly(rng)
    items = rng.permutation(len(flat))
    for column, n in enumerate(n_known):
        frozen = np.column_stack([items[:n], truth[items[:n]]])
        sorting, _ = fit(flat, space, frozen)
        shares[seed, column] = np.mean(sorting.permutation_ == truth)
        ambiguities[seed, column] = sorting.ambiguity_

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, values, label in zip(
    axes, (shares, ambiguities), ("share of right pairs", "ambiguity"), strict=True
):
    jitter = np.linspace(-0.15, 0.15, 8)[:, np.newaxis]
    ax.scatter(np.arange(5) + jitter, values, s=18, color="#0f6948", alpha=0.7)
    ax.set_xticks(range(5), n_known)
    ax.set(xlabel="known pairs", ylabel=label)
    ax.spines[["top", "right"]].set_visible(False)
axes[1].axhline(0.9, color="#b2182b", linewidth=1)
axes[1].text(-0.3, 0.895, "warning above", color="#b2182b", ha="left", va="top", fontsize=8)

plt.show()

# %%
# What to try next
# ----------------
#
# - Freeze the point nearest to the body instead of a wing tip. It may still lead to the right
#   answer, but ambiguity stays near 1.
# - Mark one wing: append a column ``flat[:, 0] > 0.9`` to both sides. The right answer is then
#   found without a known pair, but a few marked points do not end the doubt.
# - Raise ``NOISE`` to 0.05: neighbors are exchanged, confidence falls, and ambiguity stays.
