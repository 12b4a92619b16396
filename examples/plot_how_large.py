"""
How large can the collections be?
=================================

A matrix of all similarities has n times n numbers, and a search needs several of them. For 20,000
items, one matrix takes 3.2 GB. Beyond 1,500 items, `KernelizedSorting` therefore describes both
collections by a few leading components and never holds such a matrix. This example matches up to
20,000 points, and draws how time grows.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import KernelizedSorting

rng = np.random.default_rng(0)
centers, widths = 3 * rng.normal(size=(40, 6)), rng.uniform(0.3, 1.5, (40, 6))
shares, turn = rng.dirichlet(np.full(40, 2.0)), np.linalg.qr(rng.normal(size=(6, 6)))[0]


def two_views(n):
    """Points in 40 clusters; the same points rotated, noisy and shuffled; the true partners."""
    cluster = rng.choice(40, n, p=shares)
    points = centers[cluster] + widths[cluster] * rng.normal(size=(n, 6))
    order = rng.permutation(n)
    second = points @ turn + 0.02 * rng.normal(size=points.shape)
    return points, second[order], np.argsort(order)


def timed(method, n):
    """Seconds for a fit, and the share of right pairs."""
    first, second, truth = two_views(n)
    start = time.perf_counter()
    sorting = KernelizedSorting("rbf", method=method, random_state=0).fit(first, second)
    seconds = time.perf_counter() - start
    right = np.mean(sorting.permutation_ == truth)
    print(f"{method:8} {n:6,} items: {seconds:5.1f} s, {right:.1%} right", end="")
    print(f", believed {sorting.expected_accuracy_:.1%}")
    return seconds, sorting, (first, second)


# %%
# Time
# ----
#
# "refined" holds all similarities, and "low_rank" does not. Both axes are logarithmic: a straight
# line is a power of n. The default takes "refined" up to 1,500 items and "low_rank" for more. The
# first fit of each method compiles or loads its inner loops and is not counted.

sizes = {"refined": (125, 250, 500), "low_rank": (1000, 2000, 5000, 10_000, 20_000)}
seconds = {}
for method, counts in sizes.items():
    KernelizedSorting("rbf", method=method).fit(*two_views(100)[:2])
    fits = [timed(method, n) for n in counts]
    seconds[method] = [each[0] for each in fits]
_, sorting, (first, second) = fits[-1]


def draw_growth(lines, unit):
    """Draw amounts by number of items, on logarithmic axes."""
    ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
    for (name, line), color in zip(lines.items(), ("#e07a1f", "#0f6948"), strict=True):
        ax.loglog(*line, "o-", color=color, label=name)
    ax.set(xlabel="items in each collection", ylabel=unit)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(which="major", color="0.9")
    ax.legend(frameon=False)


draw_growth({method: (sizes[method], seconds[method]) for method in sizes}, "seconds")

# %%
# Memory
# ------
#
# What each method has to hold: one matrix of all similarities in double precision, or the
# components of both collections, of which there are at most 112.

counts = np.array([125, 500, 2000, 8000, 20_000, 100_000])
matrix, components = 8 * counts**2 / 1e9, 2 * 8 * 112 * counts / 1e9
draw_growth({"one matrix": (counts, matrix), "components": (counts, components)}, "GB")

# %%
# The match of 20,000
# -------------------
#
# The first two columns. Each point has a color by its first column, and its partner has the same
# color. Partners are drawn after the rotation is undone, which the fit did not know.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
hue = first[:, 0]
for ax, points, title in zip(
    axes,
    (first, second[sorting.permutation_] @ turn.T),
    ("first collection", "partners, rotated back"),
    strict=True,
):
    ax.scatter(*points[:, :2].T, c=hue, s=1, cmap="turbo", linewidths=0)
    ax.set(xticks=[], yticks=[], title=title)
    ax.spines[:].set_color("0.85")

plt.show()

# %%
# What to try next
# ----------------
#
# - Match 100,000 points: allow some minutes on two cores, or pass ``device="cuda"``.
# - Raise the noise from 0.02 to 0.3: partners are then confused with their neighbors, and the
#   share that is believed falls.
# - Clusters of equal size and shape are harder: draw every width from 0.9 to 1.1.
