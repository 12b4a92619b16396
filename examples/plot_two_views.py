"""
Can two views of the same things be matched without one known pair?
====================================================================

The breast cancer data in scikit-learn describe 569 tumors by ten measurements of their cell
nuclei, such as radius and texture. Each is given as the mean over all nuclei of an image (columns
0 to 9) and as the mean of the three largest values (columns 20 to 29). We split the table into
these two parts and shuffle the rows of the second.

Column names are not used, and no pair is known. Can the rows be matched again?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from unshuffle import KernelizedSorting
from unshuffle.plotting import MatchDisplay

tumors = load_breast_cancer()
table = scale(tumors.data)
order = np.random.default_rng(0).permutation(len(table))
truth = np.argsort(order)  # second[truth[i]] belongs to first[i]
first, second = table[:, :10], table[order, 20:]

# %%
# Match and plot
# --------------
#
# Every column was scaled to unit variance, so that no column dominates. No other preparation is
# needed. The display draws a map of each table from its own similarities, and a line from some of
# the rows to their partners.

sorting = KernelizedSorting(n_jobs=2).fit(first, second)
display = MatchDisplay.from_estimator(sorting, first, second)
display.plot(labels=("means", "largest values"), max_lines=150)

# %%
# How many are right?
# -------------------
#
# A random matching gets one row right on average. Wrong partners are similar to the right ones:
# nearly all are of the same kind, malignant or benign, although the fit did not use these labels.

right = sorting.permutation_ == truth
kind = tumors.target[order]
same_kind = kind[sorting.permutation_] == tumors.target
among_five = (sorting.candidates(5) == truth[:, np.newaxis]).any(axis=1)
print(f"the same tumor:               {right.mean():.0%} ({right.sum()} of {len(right)})")
print(f"among the five candidates:    {among_five.mean():.0%}")
print(f"a tumor of the same kind:     {same_kind.mean():.0%}")
print(f"ambiguity:                    {sorting.ambiguity_:.2f}, no warning up to 0.90")
low, high = sorting.expected_accuracy_interval_
print(f"believed right:               {sorting.expected_accuracy_:.0%} ({low:.0%} to {high:.0%})")

# %%
# Which pairs can be used?
# ------------------------
#
# If you do not know the true pairs, use the confidence: the probability that a pair is right, as
# estimated from the two tables alone. It ranks pairs well. Here it is somewhat too high, as the
# line of equal shares shows. Its mean is `expected_accuracy_`, and the interval says how far off
# that may be.

edges = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.01])
group = np.digitize(sorting.confidence_, edges) - 1
counts = np.bincount(group, minlength=5)
shares = np.bincount(group, weights=right, minlength=5) / np.maximum(counts, 1)
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
bars = ax.bar(range(5), shares, color="#0f6948")
ax.bar_label(
    bars, [f"{count} pairs" for count in counts], label_type="center", color="white", fontsize=9
)
ax.set_xticks(range(5), ["0 to 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "0.8 to 1"])
means = np.bincount(group, weights=sorting.confidence_, minlength=5) / np.maximum(counts, 1)
ax.plot(range(5), means, "o:", color="#e07a1f", label="mean confidence")
ax.set(xlabel="confidence", ylabel="share of right pairs", ylim=(0, 1))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)

plt.show()

# %%
# What to try next
# ----------------
#
# - Scale the logarithms of the columns instead. More pairs are right, but ambiguity rises:
#   logarithms make the data more symmetric, and their skewness distinguished large from small.
# - Use columns 10 to 19 (standard errors) for one side. They depend little on the rest. Hardly a
#   pair is right, and a warning says so.
# - Pass known pairs as ``frozen``: `plot_known_pairs.py` shows how many are needed.
