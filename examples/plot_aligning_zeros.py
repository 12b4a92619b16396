"""
Can several shapes be aligned by their insides alone?
=====================================================

Five handwritten zeros become clouds of 80 points of ink. Nobody says which point of one zero
belongs to which of another, and where the points are is never compared across zeros: only how
near they are to each other inside each. If the partners found are meaningful, then half-way
between two zeros there is a zero again, with its hole.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unshuffle import MultiwaySorting
from unshuffle.kernels import rbf_kernel

rng = np.random.default_rng(0)
digits = load_digits()
images = digits.images[digits.target == 0][:5]


def cloud(image, n_points=80):
    """Points drawn where the ink is, each moved by up to half a pixel; y points up."""
    row, column = np.divmod(rng.choice(64, n_points, p=image.ravel() / image.sum()), 8)
    return np.column_stack([column, 7 - row]) + rng.uniform(-0.5, 0.5, (n_points, 2))


zeros = [cloud(image) for image in images]


def draw_morphs(shapes, title):
    """Four other zeros reached from the first, in straight lines from partner to partner."""
    fig, axes = plt.subplots(4, 5, figsize=(7.5, 6.4), layout="constrained")
    angle = np.arctan2(*(shapes[0] - shapes[0].mean(axis=0)).T)
    for other, row in zip(shapes[1:], axes, strict=True):
        for share, ax in zip(np.linspace(0, 1, 5), row, strict=True):
            points = (1 - share) * shapes[0] + share * other
            ax.scatter(*points.T, c=angle, cmap="hsv", s=8)
            ax.set(xlim=(-1, 8), ylim=(-1, 8), aspect="equal", xticks=[], yticks=[])
    for ax, label in zip(axes[0], ["first zero", "", "half-way", "", "other zero"], strict=True):
        ax.set_title(label, fontsize=9)
    fig.suptitle(title, fontsize=11)


draw_morphs(zeros, "As given: no point knows its partner")

# %%
# Multiway sorting
# ----------------
#
# All five are aligned at once. A colour stands for a point of the first zero, so in the last
# column it shows where the partners are. Neighbours stay neighbours everywhere. But a zero looks
# much the same in a mirror or upside down, and its inside cannot tell: partners are turned over,
# and the morphs fold up half-way.

plain = MultiwaySorting().fit(zeros)
draw_morphs(plain.reorder(zeros), "Aligned: neighbours stay together, but zeros are turned over")

# %%
# A kernel that knows up from down
# --------------------------------
#
# What the inside cannot tell, the kernel can be told. Here points are more similar to all others
# the higher they are, and a little more so towards the right. No mirror image of a zero
# looks like that.


def tilted_kernel(X, Y):
    def weight(points):
        up_and_right = (points - 3.5) / 3.5 @ [0.4, 0.2]
        return np.exp(up_and_right)

    return rbf_kernel(X, Y) * np.outer(weight(X), weight(Y))


tilted = MultiwaySorting(kernel=tilted_kernel).fit(zeros)
aligned = tilted.reorder(zeros)
draw_morphs(aligned, "Aligned with a tilted kernel: a zero half-way")

# %%
# How empty is the hole?
# ----------------------
#
# In units of each zero's own width and height: the distance from the middle to the nearest 5 % of
# the points, half-way from the first zero to the others.


def hole(shapes):
    radii = []
    for other in shapes[1:]:
        middle = (shapes[0] + other) / 2
        spread = (shapes[0].std(axis=0) + other.std(axis=0)) / 2
        distances = np.linalg.norm((middle - middle.mean(axis=0)) / spread, axis=1)
        radii.append(np.quantile(distances, 0.05))
    return float(np.mean(radii))


sizes = {
    "as given": hole(zeros),
    "aligned": hole(plain.reorder(zeros)),
    "tilted kernel": hole(aligned),
    "the zeros themselves": float(np.mean([hole([zero, zero]) for zero in zeros])),
}
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
bars = ax.barh(list(sizes), list(sizes.values()), color=["#8aa29e", "#8aa29e", "#0f6948", "#ccc"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="radius of the hole half-way", xlim=(0, 1.2))
ax.spines[["top", "right"]].set_visible(False)

plt.show()

# %%
# What to try next
# ----------------
#
# - Digits with less symmetry need a tilt less often: try ``digits.target == 7``.
# - ``MinimumVolumePCA().fit(zeros)`` compares positions across zeros. Where all collections have
#   the same coordinates, as here, that settles up and down by itself.
# - ``MultiwaySorting(offset=0)`` is the criterion of the paper, all five at once and no pairs.
