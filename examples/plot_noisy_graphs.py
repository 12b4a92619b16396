"""
Can two noisy graphs be matched?
================================

A graph joins 60 places to their nearest neighbors. A second graph has the same nodes, but a tenth
of the edges were removed, as many wrong ones were added, and the names of the nodes were lost.
Nothing but the edges is known. Which node is which?
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.optimize

from unshuffle.assignment import quadratic_assignment

N_NODES, N_NEIGHBORS = 60, 5


def graphs(rng, changed):
    """Places, their graph, a noisy copy with shuffled nodes, and the node in each of its rows."""
    places = rng.random((N_NODES, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=-1)
    near = np.argsort(distances, axis=1)[:, 1 : N_NEIGHBORS + 1]
    graph = np.zeros((N_NODES, N_NODES), dtype=int)
    graph[np.arange(N_NODES)[:, None], near] = 1
    graph |= graph.T
    noisy = graph.copy()
    edges, gaps = (np.argwhere(np.triu(graph == value, 1)) for value in (1, 0))
    n_changed = round(changed * len(edges))
    for pairs, value in ((edges, 0), (gaps, 1)):
        i, j = rng.permutation(pairs)[:n_changed].T
        noisy[i, j] = noisy[j, i] = value
    order = rng.permutation(N_NODES)
    return places, graph, noisy[np.ix_(order, order)], order


def draw(ax, places, graph, wrong, title):
    """Edges as lines; nodes that are wrong in red."""
    for i, j in np.argwhere(np.triu(graph)):
        ax.plot(*places[[i, j]].T, color="0.6", linewidth=0.8, zorder=1)
    ax.scatter(*places.T, s=30, c=np.where(wrong, "#b2182b", "#0f6948"), zorder=2)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_title(title, fontsize=10)
    ax.spines[:].set_color("0.85")


places, graph, noisy, order = graphs(np.random.default_rng(0), 0.1)
found = quadratic_assignment(graph, noisy, maximize=True, random_state=0)
wrong = order[found.col_ind] != np.arange(N_NODES)
n_edges = graph.sum() // 2

# %%
# Before and after
# ----------------
#
# The nodes of the second graph have no places. Drawn where the nodes with the same numbers are in
# the first graph, its edges go anywhere. Drawn where their partners are, they show the same map
# again. Red nodes are wrong.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
draw(axes[0], places, graph, np.zeros(N_NODES, dtype=bool), f"first graph, {n_edges} edges")
draw(axes[1], places, noisy, order != np.arange(N_NODES), "second graph, by number")
reordered = noisy[np.ix_(found.col_ind, found.col_ind)]
draw(axes[2], places, reordered, wrong, f"second graph, matched: {wrong.sum()} wrong")

back = np.argsort(order)
print(f"edges that agree, of {n_edges}:")
print(f"  by number {(graph & noisy).sum() // 2}")
print(f"  matched   {int(found.fun) // 2}")
print(f"  truth     {(graph & noisy[np.ix_(back, back)]).sum() // 2}")

# %%
# As many edges agree as in truth, although some nodes are wrong. Two nodes that are joined to the
# same others can be exchanged without losing an edge, and no method can tell them apart.
#
# How much noise is too much?
# ---------------------------
#
# The search maximizes the number of edges that agree. Without noise all of them do, and the nodes
# that are wrong can be exchanged. With much noise, the search may miss the truth, or another
# matching has more edges that agree. SciPy solves the same problem from one start. Means of three
# draws.

levels = (0, 0.05, 0.1, 0.2, 0.3, 0.4)
shares = {"unshuffle": [], "SciPy, faq": []}
for changed in levels:
    ours, theirs = [], []
    for seed in range(3):
        _, graph, noisy, order = graphs(np.random.default_rng(seed), changed)
        answer = quadratic_assignment(graph, noisy, maximize=True, random_state=0)
        other = scipy.optimize.quadratic_assignment(graph, noisy, options={"maximize": True})
        ours.append(np.mean(order[answer.col_ind] == np.arange(N_NODES)))
        theirs.append(np.mean(order[other.col_ind] == np.arange(N_NODES)))
    shares["unshuffle"].append(np.mean(ours))
    shares["SciPy, faq"].append(np.mean(theirs))

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for (name, values), color in zip(shares.items(), ("#0f6948", "#9a8c78"), strict=True):
    ax.plot(100 * np.array(levels), values, "o-", color=color, label=name)
ax.set(xlabel="edges replaced, percent", ylabel="share of right nodes", ylim=(0, 1.05))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

plt.show()

# %%
# What to try next
# ----------------
#
# - Weigh the edges, for example by ``np.exp(-distances)``: weights tell nodes apart.
# - Fix nodes that you know with ``frozen=[(0, 17)]``, or search longer with ``max_time=10``.
# - Leave out some nodes of the second graph. The nodes without a partner get -1.
