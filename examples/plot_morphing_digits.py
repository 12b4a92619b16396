"""
Can a 3 turn into a 9?
======================

A handwritten digit drawn with a handful of points is a bag: the points have no order. To blend two
of them you must know which point of one becomes which point of the other. `MinimumVolumePCA` finds
that for all bags at once, without being told what a 3 is.
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
# Above, each point goes to the point with the same number in the other bag, as if the order meant
# something: half way there is only a cloud. Below, points go to their partners. A point keeps its
# colour on the way.

display.plot_morph(12, 13)

# %%
# The arrows behind it: neighbours move together, so that strokes stay strokes.

fig, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (i, j) in zip(axes, [(12, 13), (12, 2), (11, 1)], strict=True):
    display.plot_correspondence(i, j, ax)
    ax.set_title(f"{labels[i]} to {labels[j]}")

# %%
# Few numbers instead of many
# ---------------------------
#
# Ordered bags are vectors, and principal components of vectors can be taken. The same points in
# the order they came in need many more components.

display.plot()

# %%
# Two shapes alone
# ----------------
#
# With two bags there is nothing to learn from how digits vary. The shortest way for all points is
# then one assignment, and it may tear a shape apart: on the way from L to T, the foot goes up in a
# spray of points. `match_shapes` asks neighbours to move together instead.


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
    ("Shortest way for all points", "Neighbours move together"),
    strict=True,
):
    AlignmentDisplay.from_predictions([ell, tee], orders).plot_morph(0, 1, ax, compare=False)
    ax.set_title(title, fontsize=10)

plt.show()

# %%
# What to try next
# ----------------
#
# - ``unshuffle morph three.png nine.png -o morph.gif`` does this for two pictures of your own.
# - Other digits: ``digit_sets(digits=(0, 8))``, or all ten.
# - `plot_components_of_digits.py` walks along the components.
