"""
How few numbers describe a handwritten digit?
=============================================

A bag of 70 points has 140 coordinates. Shuffling the points changes the vector of coordinates but
not the digit. Once all bags are in a common order, principal components describe how the digits
vary. This example shows the components, and uses new digits to test how many are worth keeping.
"""

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import MinimumVolumePCA
from unshuffle.datasets import digit_sets
from unshuffle.plotting import AlignmentDisplay

bags, labels = digit_sets(160, digits=(0, 1))
train, new = bags[:100], bags[100:]
aligned = MinimumVolumePCA(10, random_state=0).fit(train)

# %%
# What the components mean
# ------------------------
#
# Each row varies one component, from two standard deviations below the mean to two above. The fit
# did not use the labels, yet the first component runs from 0s to 1s.

steps = np.linspace(-2, 2, 7)
fig, axes = plt.subplots(4, 7, figsize=(9, 6.4), layout="constrained", sharex=True, sharey=True)
for k, row in enumerate(axes):
    along = np.zeros((7, aligned.explained_variance_.size))
    along[:, k] = steps * np.sqrt(aligned.explained_variance_[k])
    for ax, points in zip(row, aligned.inverse_transform(along), strict=True):
        ax.scatter(*points.T, s=9, c=points[:, 1], cmap="viridis")
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    row[0].set_ylabel(f"component {k + 1}")

# %%
# All bags in two dimensions
# --------------------------
#
# `transform` orders new bags and projects them. Dots are the digits of the fit, circles new ones.
# Most 0s and 1s are apart; 1s with a foot lie below.

fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
for digit, color in ((0, "#1b7f79"), (1, "#e07a1f")):
    known = aligned.transform(train)[labels[:100] == digit]
    unseen = aligned.transform(new)[labels[100:] == digit]
    ax.scatter(*known[:, :2].T, s=16, c=color, alpha=0.45, linewidths=0)
    ax.scatter(*unseen[:, :2].T, s=34, facecolors="none", edgecolors=color, label=f"new {digit}s")
ax.set(xlabel="component 1", ylabel="component 2")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# How many components are worth keeping?
# --------------------------------------
#
# The error on new digits is the share of their variance that is lost when they are reconstructed
# from a number of components. "covariance" starts from the order found by "mean" and minimizes the
# volume of the bags. It needs fewer components for the digits it was fitted to, but describes new
# ones no better.


def new_error(model, bags):
    orders = model.align(bags)
    ordered = np.take_along_axis(bags, orders[:, :, np.newaxis], axis=1)
    rebuilt = model.inverse_transform(model.transform(bags))
    spread = bags - bags.mean(axis=1, keepdims=True)
    return ((ordered - rebuilt) ** 2).sum() / (spread**2).sum()


counts = (1, 5, 10, 20)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for method, color, style in (("mean", "#9a8c78", "o-"), ("covariance", "#0f6948", "x--")):
    models = [MinimumVolumePCA(n, method, random_state=0).fit(train) for n in counts]
    errors = [new_error(model, new) for model in models]
    left.plot(counts, errors, style, color=color, label=method)
    display = AlignmentDisplay.from_estimator(models[0], train)
    before, after = display.components_for(0.95)
    print(f"{method:10}  components for 95 %: {before} before, {after} after")
    print(f"{'':10}  error on new digits with 10: {errors[counts.index(10)]:.4f}")
    if method == "covariance":
        display.plot_path(right)
left.set(xlabel="components", ylabel="error on new digits", ylim=(0, None), xticks=counts)
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)
right.set_title("Mean first, then volume", fontsize=10)

plt.show()

# %%
# What to try next
# ----------------
#
# - Compare points with ``kernel="rbf"`` or ``"poly"``; `inverse_transform` is then approximate.
# - Draw digits with ``n_points=150`` for finer detail. The fit takes longer.
# - `plot_morphing_digits.py` turns one digit into another.
