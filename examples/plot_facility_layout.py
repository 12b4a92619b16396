"""
How should the machines of a workshop be placed?
================================================

A workshop has 24 machines on a floor of 4 by 6 places. Products visit several machines one after
the other, and everything is carried by hand. The way that all parts travel is the sum of flow
times distance over all pairs of machines: a quadratic assignment problem. This example places the
machines, compares the result with SciPy's, and asks how much better any plan could be.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import scipy.optimize

from unshuffle.assignment import quadratic_assignment

ROWS, COLUMNS, PRODUCTS = 4, 6, 10
random = np.random.default_rng(0)
places = np.argwhere(np.ones((ROWS, COLUMNS)))
machines = len(places)
distances = np.abs(places[:, None] - places).sum(axis=-1)  # along aisles

# Parts per day from machine to machine: each product has a route of its own.
flows = np.zeros((machines, machines), dtype=int)
for _ in range(PRODUCTS):
    route = random.permutation(machines)[: random.integers(4, 8)]
    flows[route[:-1], route[1:]] += random.integers(5, 60)


def draw(ax, place_of, title):
    """Machines at their places, and lines as wide as the flow between them."""
    spots = places[place_of][:, ::-1]
    for i, j in zip(*np.nonzero(flows), strict=True):
        ax.plot(*spots[[i, j]].T, color="tab:blue", alpha=0.5, linewidth=flows[i, j] / 12)
    ax.scatter(*spots.T, s=260, color="white", edgecolors="black", zorder=2)
    for machine, (x, y) in enumerate(spots):
        ax.annotate(str(machine), (x, y), ha="center", va="center", fontsize=8)
    ax.set(xlim=(-0.6, COLUMNS - 0.4), ylim=(ROWS - 0.4, -0.6), aspect="equal")
    ax.set_title(title, fontsize=11)
    ax.axis("off")


by_number = np.arange(machines)
found = quadratic_assignment(flows, distances, random_state=0)
theirs = scipy.optimize.quadratic_assignment(flows, distances)
plans = {
    "by number": (flows * distances).sum(),
    "SciPy": theirs.fun,
    "unshuffle": found.fun,
}

fig, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
for ax, place_of, (name, way) in zip(
    axes, (by_number, theirs.col_ind, found.col_ind), plans.items(), strict=True
):
    draw(ax, place_of, f"{name}: {way:,} steps a day")

# %%
# Could another plan be better?
# -----------------------------
#
# Beside the plan, `quadratic_assignment` gives a number of steps that no plan can beat. With more
# time it searches longer and raises this bound. Up to about 15 machines it can prove that nothing
# better exists; for 24 machines a gap is left, although the plan is probably the best one.

longer = quadratic_assignment(flows, distances, max_time=4, random_state=0)
print(f"{longer.fun:,} steps a day; no plan has fewer than {longer.lower_bound:,}")

# %%
# Fixed machines, and the cost of a place
# ---------------------------------------
#
# Machine 0 is too heavy to be moved, and machines 1 to 3 need water, which is in the first row
# only. `frozen` keeps pairs of a machine and a place; `cost` is the price of each pair by itself.
# There are also six more places now, of which the plan leaves the least useful ones empty.

more_places = np.argwhere(np.ones((ROWS + 1, COLUMNS)))
distances = np.abs(more_places[:, None] - more_places).sum(axis=-1)
water = np.zeros((machines, len(more_places)), dtype=int)
water[1:4, more_places[:, 0] > 0] = 1000
wanted = quadratic_assignment(flows, distances, cost=water, frozen=[(0, 0)], random_state=0)

places = more_places
ROWS += 1
fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
draw(ax, wanted.col_ind, f"0 in the corner, 1, 2 and 3 at the wall: {wanted.fun:,} steps a day")

plt.show()

# %%
# What to try next
# ----------------
#
# - Make some routes one-way streets: `distances` need not be symmetric.
# - Match two graphs instead: `quadratic_assignment(first, second, maximize=True)`.
# - Place 12 machines with `method="exact"`: the plan is then proved to be the best.
