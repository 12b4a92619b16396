"""
How few known pairs rescue a weak match?
========================================

Handwritten digits are cut in two: one table holds the even columns of pixels, the other the odd
ones, in another order. Neighboring columns look much alike, but digits of a kind do too, and
without a known pair hardly any partner is found.

How many pairs do you have to know before the others follow?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unshuffle import KernelizedSorting

N_DIGITS = 120
images = load_digits().images[:N_DIGITS]
rng = np.random.default_rng(0)
order = rng.permutation(N_DIGITS)
truth = np.argsort(order)  # odd[truth[i]] belongs to even[i]
even = images[:, :, 0::2].reshape(N_DIGITS, -1)
odd = images[order][:, :, 1::2].reshape(N_DIGITS, -1)

fig, axes = plt.subplots(3, 8, figsize=(8, 3.6), layout="constrained")
for column in range(8):
    parts = even[column].reshape(8, 4), odd[truth[column]].reshape(8, 4)
    for ax, picture in zip(axes[:, column], (images[column], *parts), strict=True):
        ax.imshow(picture, cmap="gray_r", aspect=8 / picture.shape[1] / 8 * picture.shape[1])
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ("digit", "even", "odd"), strict=True):
    ax.set_ylabel(name)

# %%
# Without a known pair
# --------------------
#
# The match is nearly all wrong, and says so: `expected_accuracy_` is low, and you are warned.


def match(items=()):
    """Fit with the true partners of some items; the share right and believed of the others."""
    frozen = np.column_stack([items, truth[list(items)]]) if len(items) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is believed is shown below
        sorting = KernelizedSorting("rbf", n_jobs=2).fit(even, odd, frozen=frozen)
    others = np.setdiff1d(np.arange(N_DIGITS), items)
    share = np.mean(sorting.permutation_[others] == truth[others])
    return sorting, share


blind, share = match()
print(f"right {share:.1%}, believed right {blind.expected_accuracy_:.1%}")

# %%
# Pairs at random, or pairs worth asking about
# --------------------------------------------
#
# Known pairs are `frozen`. Six or more also teach a map from one side to the other. If a person
# finds the partners, you can choose the items: ``questions(k)`` names those expected to help
# most, from the first match. Known pairs are not counted among the right ones.

counts = (5, 10, 20, 30)
asked = blind.questions(max(counts))[:, 0]
lists = {"at random": [rng.permutation(N_DIGITS) for _ in range(2)], "questions": [asked]}
shares, beliefs = {}, {}
for name, choices in lists.items():
    fits = [[match(items[:k]) for k in counts] for items in choices]
    shares[name] = np.mean([[right for _, right in row] for row in fits], axis=0)
    beliefs[name] = np.mean([[each.expected_accuracy_ for each, _ in row] for row in fits], axis=0)

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, color in (("at random", "#8aa29e"), ("questions", "#0f6948")):
    ax.plot((0, *counts), (share, *shares[name]), "o-", color=color, label=f"{name}: right")
    ax.plot(
        (0, *counts),
        (blind.expected_accuracy_, *beliefs[name]),
        ":",
        color=color,
        label=f"{name}: believed right",
    )
ax.set(xlabel="known pairs", ylabel="share of the others", ylim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
for name in shares:
    print(f"{name:10}", *(f"{k}: {s:.0%}" for k, s in zip(counts, shares[name], strict=True)))

plt.show()

# %%
# Five known pairs bring about one in seven of the others, thirty about 60%. On these digits,
# questions are no better than pairs at random.

# %%
# What to try next
# ----------------
#
# - Take more digits, ``N_DIGITS = 300``. Ten known pairs then say less about each of the others.
# - Pass likely pairs with a probability each as ``hints``. The matching may overrule them.
# - Answer the questions yourself: ``unshuffle serve a/ b/`` asks them on a page.
