"""
Which differences does each set kernel detect?
==============================================

Two sets may differ in position, spread or slant, only in a hole in the middle, or in a single
point. Each kernel between sets misses some of these differences. This example generates pairs of
classes that differ in one respect each, and measures how well every kernel separates them.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SlicedWassersteinKernel,
)
from unshuffle.plotting import GramDisplay, MixtureDisplay

rng = np.random.default_rng(0)
N_SETS = 120


def gaussian(n, *, position=0.0, spread=1.0, slant=0.0):
    points = spread * rng.normal(size=(n, 2))
    points[:, 0] += slant * points[:, 1]
    return points + np.array([position, 0.0])


def ring(n, *, hole):
    # Mean and covariance do not depend on the hole: only the shape differs.
    radius = np.sqrt(rng.uniform(hole**2, 1, n))
    angle = rng.uniform(0, 2 * np.pi, n)
    points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return points * 2 / np.sqrt(1 + hole**2)


def corners(n, *, n_corners):
    angle = 2 * np.pi * rng.integers(n_corners, size=n) / n_corners
    points = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + 0.45 * rng.normal(size=(n, 2))


def with_one_point(n):
    # Not an outlier: in a small region at the edge of the others, replacing one of them.
    points = gaussian(n)
    points[0] = np.array([1.6, 1.6]) + 0.05 * rng.normal(size=2)
    return points


differences = {
    "position": (lambda n: gaussian(n), lambda n: gaussian(n, position=0.35)),
    "spread": (lambda n: gaussian(n), lambda n: gaussian(n, spread=1.2)),
    "slant": (lambda n: gaussian(n, slant=-0.25), lambda n: gaussian(n, slant=0.25)),
    "hole": (lambda n: ring(n, hole=0.0), lambda n: ring(n, hole=0.45)),
    "corners": (lambda n: corners(n, n_corners=3), lambda n: corners(n, n_corners=4)),
    "one point": (lambda n: gaussian(n), with_one_point),
}
kinds = np.arange(N_SETS) % 2
data = {
    name: [classes[kind](rng.integers(50, 100)) for kind in kinds]
    for name, classes in differences.items()
}

# %%
# The sets
# --------
#
# Two sets for each difference, with 50 to 100 points each, and the mixtures of Gaussians that
# `ExpectedLikelihoodKernel` fits to them. With a hole or with corners, both classes have the same
# mean and covariance. In the last pair, they differ in one point near (1.6, 1.6).

shown = [bags[kind] for kind in (0, 1) for bags in data.values()]
names = [f"{name} {side}" for side in "AB" for name in data]
mixtures = ExpectedLikelihoodKernel(5, random_state=0).fit(shown)
MixtureDisplay.from_estimator(mixtures, shown, names).plot(n_sets=12, n_columns=6)

# %%
# Accuracy of each kernel
# -----------------------
#
# Half of the sets are for training, half for testing. A kernel that misses the difference scores
# about 50%. Every kernel has its default widths.

kernels = {
    "means alone": MeanMapKernel("linear", normalize=False),
    "Bhattacharyya": BhattacharyyaKernel(),
    "expected likelihood, 5": ExpectedLikelihoodKernel(5, random_state=0),
    "mean map": MeanMapKernel(outer="rbf"),
    "sliced Wasserstein": SlicedWassersteinKernel(),
    "Fisher vectors": FisherVectorKernel(random_state=0),
    "max map": MaxMapKernel(),
}
half = N_SETS // 2
right = np.zeros((len(kernels), len(data)))
for i, kernel in enumerate(kernels.values()):
    for j, bags in enumerate(data.values()):
        model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
        right[i, j] = model.fit(bags[:half], kinds[:half]).score(bags[half:], kinds[half:])

fig, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
ax.imshow(right, cmap="YlGnBu", vmin=0.4, vmax=1.4, aspect="auto")
for (i, j), value in np.ndenumerate(right):
    ax.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=11)
ax.set_xticks(range(len(data)), data, fontsize=11)
ax.set_yticks(range(len(kernels)), kernels, fontsize=11)
ax.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
ax.spines[:].set_visible(False)
ax.set_title("Accuracy on test sets, percent", fontsize=11, pad=12)

# %%
# Means alone detect a difference in position and nothing else. One Gaussian per set detects
# changes of the mean or covariance. It does so best because it has the fewest parameters to
# estimate. The other kernels also detect shape, each a little differently, so their sum
# (`SetKernelSum`) is often better than any of them. A single point is lost in a mean over all
# points. The max map finds it, because it describes a set by how close its points come to each of
# many landmarks. In turn, it is worse at small differences of the whole set.
#
# Where does one point change the decision?
# -----------------------------------------
#
# One point is added to a set without a telling point. The color shows how much it moves the
# decision function toward the other class, by where it is added.

bags = data["one point"]
side = np.linspace(-3, 3, 41)
added = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 1, 2)
before = bags[0]
fig, axes = plt.subplots(1, 2, figsize=(9.4, 4.4), layout="constrained", sharey=True)
for ax, name in zip(axes, ("mean map", "max map"), strict=True):
    model = make_pipeline(kernels[name], SVC(C=10, kernel="precomputed")).fit(bags, kinds)
    after = [np.concatenate([before, point]) for point in added]
    change = model.decision_function(after) - model.decision_function([before])
    largest = np.abs(change).max()
    ax.pcolormesh(side, side, change.reshape(41, 41), cmap="PuOr_r", vmin=-largest, vmax=largest)
    ax.plot(*before.T, ".", color="black", markersize=3)
    ax.plot(1.6, 1.6, "o", color="black", markersize=16, fillstyle="none")
    ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    ax.set_title(f"{name}: change by up to {largest:.1f}", fontsize=11)

# %%
# Dots are the points of the set, and the circle is the region of the telling points. The max map
# responds there and hardly anywhere else. With the mean map, one point changes less, and what
# counts is whether it lies in a wide part of the plane.
#
# The Gram matrices
# -----------------
#
# Gram matrices of the sets with corners for two kernels. Kernelized sorting places similar sets
# side by side without using the classes. The strips along the edges show the classes.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, name in zip(axes, ("Bhattacharyya", "expected likelihood, 5"), strict=True):
    GramDisplay.from_estimator(kernels[name], data["corners"], kinds + 3).plot(ax)
    ax.set_title(name, fontsize=11)

plt.show()

# %%
# What to try next
# ----------------
#
# - Add your own difference: write two functions that draw points.
# - Use smaller differences or fewer points, and choose the widths with `GridSearchCV`.
# - Move the sets to random positions and put `unshuffle.preprocessing.SetNormalizer` before the
#   kernel.
# - `plot_classify_sets.py` classifies handwritten digits.
