"""
Does one telling point decide?
==============================

A shipment is a set of 60 measurements. It is faulty if some of them lie in a small region, and
that region is not known: only whole shipments have labels. A mean over all points hardly notices
one of 60. How many telling points does each kernel need, and can it say which points they are?
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from unshuffle.kernels import MaxMapKernel, MeanMapKernel

N_SETS, N_POINTS, REGION = 160, 60, np.array([1.6, 1.6])
faulty = np.arange(N_SETS) % 2 == 1
train, test = slice(0, N_SETS // 2), slice(N_SETS // 2, N_SETS)


def shipments(rng, n_telling):
    """Sets of normal points; in faulty ones, the first points are in the region."""
    sets = rng.normal(size=(N_SETS, N_POINTS, 2))
    sets[faulty, :n_telling] = REGION + 0.05 * rng.normal(size=(N_SETS // 2, n_telling, 2))
    return sets


sets = shipments(np.random.default_rng(0), 1)
fig, axes = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained", sharex=True, sharey=True)
for ax, points, bad in zip(axes, sets, faulty, strict=False):
    ax.scatter(*points.T, s=8, color="#b2182b" if bad else "#0f6948")
    ax.plot(*REGION, "o", color="black", markersize=13, fillstyle="none")
    ax.set(aspect="equal", xticks=[], yticks=[], title="faulty" if bad else "good")

# %%
# One point of 60
# ---------------
#
# `MeanMapKernel` compares means over all pairs of points. `MaxMapKernel` compares how close the
# points of each set come to many landmarks, so that one point is enough to fill an empty place.
# Both have their default settings. Means of three draws, 80 sets for training, 80 for testing.

kernels = {"mean map": MeanMapKernel(outer="rbf"), "max map": MaxMapKernel()}
colors = {"mean map": "#e07a1f", "max map": "#0f6948"}
counts = (1, 2, 3, 4, 6, 8, 12)
right = {name: np.empty((3, len(counts))) for name in kernels}
for seed in range(3):
    for column, n_telling in enumerate(counts):
        drawn = shipments(np.random.default_rng(seed), n_telling)
        for name, kernel in kernels.items():
            model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
            model.fit(drawn[train], faulty[train])
            right[name][seed, column] = model.score(drawn[test], faulty[test])

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, scores in right.items():
    ax.plot(counts, 100 * scores.mean(axis=0), "o-", color=colors[name], label=name)
    print(
        f"{name:8}", *(f"{k}: {s:.0%}" for k, s in zip(counts, scores.mean(axis=0), strict=True))
    )
ax.axhline(50, color="0.6", linewidth=0.8)
ax.set(xlabel=f"telling points of {N_POINTS}", ylabel="accuracy on test sets, percent")
ax.set(ylim=(40, 103), xticks=counts)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="center right")

# %%
# One point decides with the max map, and more of them hardly help. The mean map needs several, but
# then uses them all: it is at least as good once a tenth of the points are telling.
#
# Which point is it?
# ------------------
#
# Leave out each point of a faulty test set in turn. The one whose absence lowers the decision
# function most is the suspect. The model was trained on labels of whole sets only.

shown = [i for i in range(N_SETS // 2, N_SETS) if faulty[i]]
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (name, kernel) in zip(axes, kernels.items(), strict=True):
    model = make_pipeline(kernel, SVC(C=10, kernel="precomputed")).fit(sets[train], faulty[train])
    suspects = []
    for i in shown:
        without = np.stack([np.delete(sets[i], point, axis=0) for point in range(N_POINTS)])
        suspects.append(int(np.argmin(model.decision_function(without))))
    found = np.mean(np.array(suspects) == 0)  # the telling point comes first
    ax.scatter(*sets[shown].reshape(-1, 2).T, s=3, color="0.8", linewidths=0)
    ax.scatter(*sets[shown, suspects].T, s=26, color=colors[name])
    ax.plot(*REGION, "o", color="black", markersize=16, fillstyle="none")
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
    ax.set_title(f"{name}: {found:.0%} of the suspects are right", fontsize=11)

plt.show()

# %%
# What to try next
# ----------------
#
# - Make the region wider: replace 0.05 by 0.5. One point there is no longer unusual.
# - Give the sets different sizes: both kernels take lists of arrays.
# - `plot_set_kernels.py` compares all set kernels on six kinds of differences.
