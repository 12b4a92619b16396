"""
Can three collections be matched at once?
=========================================

Three instruments measure the same 60 things. Each has its own columns, its own noise and its own
order of the rows. You could match the first with the second, the second with the third, and the
third with the first. But these three answers need not fit together: following them around, you may
end at another thing than the one you started with.

`MultiwaySorting` matches all three at once, so that there is one answer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from unshuffle import KernelizedSorting, MultiwaySorting

N_THINGS, COLUMNS = 60, (4, 6, 9)


def measure(rng, noise=0.1):
    """Three tables about the same things, and the thing in each row."""
    things = rng.exponential(size=(N_THINGS, 3)) * [2, 1.5, 1]
    tables, orders = [], []
    for n_columns in COLUMNS:
        mixing = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0][:3]
        order = rng.permutation(N_THINGS)
        table = things @ mixing + noise * rng.normal(size=(N_THINGS, n_columns))
        tables.append(table[order])
        orders.append(order)
    return tables, orders


tables, orders = measure(np.random.default_rng(0))
sorting = MultiwaySorting().fit(tables)

# %%
# One answer for all three
# ------------------------
#
# ``permutations_`` has a row for each table: item i of the first belongs to item
# ``permutations_[t][i]`` of table t. Each panel is a map of one table by its main directions, and
# partners have the same color.

hue = PCA(1).fit_transform(tables[0]).ravel().argsort().argsort()
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, table, partner, n_columns in zip(
    axes, tables, sorting.permutations_, COLUMNS, strict=True
):
    ax.scatter(*PCA(2).fit_transform(table)[partner].T, c=hue, cmap="turbo", s=26)
    ax.set(xticks=[], yticks=[], title=f"{n_columns} columns")
    ax.spines[:].set_color("0.8")

things = np.array([order[row] for order, row in zip(orders, sorting.permutations_, strict=True)])
right = (things == things[0]).all(axis=0)
print(f"{right.sum()} of {N_THINGS} things are right in all three tables")
print(f"believed without knowing the truth: {sorting.expected_accuracy_:.0%}")

# %%
# Do separate answers fit together?
# ---------------------------------
#
# With three separate matches, a thing is back at its start only if no match on the way is wrong,
# or if mistakes cancel out. Matched at once, all are back. More of them are right, too, because
# the noise of one instrument is not repeated by the other two. Means of eight draws.


def match_pairs(tables):
    steps = [(0, 1), (1, 2), (2, 0)]
    return [KernelizedSorting("rbf", trust=False).fit(tables[a], tables[b]) for a, b in steps]


noises = (0.05, 0.1, 0.15, 0.2)
closed, in_turn, at_once = (np.empty((len(noises), 8)) for _ in range(3))
for row, noise in enumerate(noises):
    for seed in range(8):
        tables, orders = measure(np.random.default_rng(seed), noise)
        first, second, third = (each.permutation_ for each in match_pairs(tables))
        closed[row, seed] = np.mean(third[second[first]] == np.arange(N_THINGS))
        route = [orders[0], orders[1][first], orders[2][second[first]]]
        in_turn[row, seed] = np.mean((route[1] == route[0]) & (route[2] == route[0]))
        joint = MultiwaySorting(trust=False).fit(tables).permutations_
        route = [order[each] for order, each in zip(orders, joint, strict=True)]
        at_once[row, seed] = np.mean((route[1] == route[0]) & (route[2] == route[0]))

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for shares, style, color, label in (
    (at_once, "o-", "#0f6948", "at once: right in all three"),
    (in_turn, "o-", "#e07a1f", "one after the other: right in all three"),
    (closed, "o:", "#8aa29e", "one after the other: back at the start"),
):
    ax.plot(noises, shares.mean(axis=1), style, color=color, label=label)
ax.set(xlabel="noise", ylabel="share of the things", ylim=(0, 1.05), xticks=noises)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")

plt.show()

# %%
# What to try next
# ----------------
#
# - Add a fourth and a fifth instrument: ``COLUMNS = (4, 6, 9, 5, 7)``. Then draw only what is
#   matched at once.
# - Mix kinds of data: ``MultiwaySorting(kernel=["rbf", "text", "precomputed"])`` takes a table, a
#   list of texts and a matrix of similarities.
# - Two of three collections may depend so little on each other that only the third joins them.
#   Then match both with the third.
