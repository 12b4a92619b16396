"""
Can a 3 turn into a 9?
======================

A digit drawn with points is a bag: the points have no order. To morph one digit into another you
must know which points correspond. `MinimumVolumePCA` finds the correspondence for all bags at
once, without labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import MinimumVolumePCA
from unshuffle.alignment import match_shapes
from unshuffle.datasets import digit_sets
from unshuffle.plotting import AlignmentDisplay

bags, labels = digit_sets(100, digits=(3, 9), n_points=120)
aligned = MinimumVolumePCA(random_state=0).fit(bags)
display = AlignmentDisplay.from_estimator(aligned, bags)

# %%
# From 3 to 9
# -----------
#
# Top: each point moves to the point with the same index, and the shape is lost halfway. Bottom:
# each point moves to its partner. Points keep their colors.

display.plot_morph(12, 13)

# %%
# Lines join points (filled) to their partners (open). Neighbors move together, so strokes stay
# intact.

fig, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (i, j) in zip(axes, [(12, 13), (12, 2), (11, 1)], strict=True):
    display.plot_correspondence(i, j, ax)
    ax.set_title(f"{labels[i]} to {labels[j]}")

# %%
# How many components?
# --------------------
#
# Ordered bags are vectors, so they have principal components. The same points in input order need
# many more components.

display.plot()

# %%
# Two shapes alone
# ----------------
#
# With only two bags, `MinimumVolumePCA` reduces to one assignment that minimizes the total squared
# distance and can tear a shape apart. From L to T, the foot of the L scatters. `match_shapes`
# keeps neighbors together.


def stroke(rng, start, end, n=90):
    along = rng.uniform(0, 1, (n, 1))
    return (1 - along) * start + along * end + rng.uniform(-0.12, 0.12, (n, 2))


def letter(rng, *strokes):
    return np.concatenate([stroke(rng, np.array(a), np.array(b)) for a, b in strokes])


rng = np.random.RandomState(0)
ell = letter(rng, ((0.0, 0.0), (0.0, 3.0)), ((0.0, 0.0), (2.0, 0.0)))
tee = letter(rng, ((1.0, 0.0), (1.0, 3.0)), ((0.0, 3.0), (2.0, 3.0)))
own = np.arange(len(ell))
shortest = MinimumVolumePCA().fit([ell, tee]).permutations_
together = [own, match_shapes(ell, tee)]

fig, axes = plt.subplots(2, 1, figsize=(9, 5.6), layout="constrained")
for ax, orders, title in zip(
    axes,
    (shortest, together),
    ("Smallest total squared distance", "Neighbors move together"),
    strict=True,
):
    AlignmentDisplay.from_predictions([ell, tee], orders).plot_morph(0, 1, ax, compare=False)
    ax.set_title(title, fontsize=10)

plt.show()

# %%
# What to try next
# ----------------
#
# - Morph your own pictures with ``unshuffle morph three.png nine.png -o morph.gif``.
# - Load other digits with ``digits=(0, 8)``, or all ten.
# - `plot_components_of_digits.py` shows what the components mean.
