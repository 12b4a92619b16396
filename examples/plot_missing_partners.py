"""
What if some items have no partner?
===================================

Two tables describe the same kind of things, but only 100 of them are in both. Each also has 30
that the other lacks. By default every item gets a partner, so at least 30 pairs must be wrong.
Worse: wrong pairs mislead the search for the others. `unmatched_cost` releases pairs that do not
fit.
"""

# sphinx_gallery_thumbnail_number = 2
import warnings

import matplotlib.pyplot as plt
import numpy as np

from unshuffle import KernelizedSorting

COMMON, ALONE = 100, 30


def two_tables(rng, noise=0.05):
    """Rows of the first table, rows of the second, and the thing in each row of the second."""
    things = rng.exponential(size=(COMMON + 2 * ALONE, 4)) * [3, 2, 1.5, 1]
    mixing = np.linalg.qr(rng.normal(size=(7, 7)))[0][:4]
    first = things + noise * rng.normal(size=things.shape)
    second = things @ mixing + noise * rng.normal(size=(len(things), 7))
    order = rng.permutation(np.arange(ALONE, len(things)))
    return first[: COMMON + ALONE], second[order], order


def match(first, second, unmatched_cost):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # right pairs are counted below
        return KernelizedSorting("rbf", unmatched_cost=unmatched_cost).fit(first, second)


first, second, order = two_tables(np.random.default_rng(0))
fits = {"all matched": match(first, second, None), "0.2": match(first, second, 0.2)}

# %%
# Right, wrong and released
# -------------------------
#
# The first two columns of the first table. Items below the number 30 have no partner. A pair is
# released if it disagrees with the others by more than a share of what random pairs do, here 0.2.
# Released items have ``permutation_`` -1.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, sorting) in zip(axes, fits.items(), strict=True):
    partner = sorting.permutation_
    right = (partner >= 0) & (order[partner] == np.arange(len(first)))
    wrong = (partner >= 0) & ~right
    for chosen, marker, color, label in (
        (right, "o", "#0f6948", "right"),
        (wrong, "X", "#b2182b", "wrong"),
        (partner < 0, "o", "none", "released"),
    ):
        edge = "0.5" if color == "none" else color
        text = f"{chosen.sum()} {label}"
        ax.scatter(
            *first[chosen, :2].T,
            s=26,
            marker=marker,
            facecolors=color,
            edgecolors=edge,
            label=text,
        )
    ax.set(xlabel="first column", title=name if name != "0.2" else "unmatched_cost=0.2")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper right")
axes[0].set_ylabel("second column")

# %%
# Which cost?
# -----------
#
# Smaller values release more pairs. Without the pairs that do not fit, more of the others are
# right. Too small a value releases right pairs as well. Means of three draws.

costs = (None, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1)
kept, n_right = np.empty((2, 3, len(costs)))
for seed in range(3):
    first, second, order = two_tables(np.random.default_rng(seed))
    for column, cost in enumerate(costs):
        i, j = match(first, second, cost).pairs_.T
        kept[seed, column], n_right[seed, column] = len(i), np.sum(order[j] == i)

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
places = np.arange(len(costs))
ax.bar(places, n_right.mean(axis=0), color="#0f6948", label="right")
ax.bar(
    places,
    (kept - n_right).mean(axis=0),
    bottom=n_right.mean(axis=0),
    color="#e9a9a0",
    label="wrong",
)
ax.axhline(COMMON, color="0.4", linewidth=1, linestyle=":", label="items in both tables")
ax.set_xticks(places, [str(cost) for cost in costs])
ax.set(xlabel="unmatched_cost", ylabel="pairs", ylim=(0, 165))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=3, loc="upper center")
for cost, n, r in zip(costs, kept.mean(axis=0), n_right.mean(axis=0), strict=True):
    print(f"unmatched_cost={cost!s:4}  {n:5.1f} pairs, {r:5.1f} right")

plt.show()

# %%
# What to try next
# ----------------
#
# - If only one side has items without a partner, leave `unmatched_cost` alone: the larger side
#   keeps the items that fit least for itself.
# - Raise the noise to 0.2: right and wrong pairs disagree about equally, and a larger cost is
#   better.
# - Keep only pairs with a high ``confidence_`` instead. Does that find the same ones?
