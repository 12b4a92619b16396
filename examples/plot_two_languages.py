"""
Can documents in two languages be matched?
==========================================

The documents are the beginnings of the docstrings of scikit-learn's estimators. Their
translations are in a language that does not exist: every English word has one or two words in it,
made of random syllables. A translation leaves out a fifth of the words and puts the others in
another order.

No dictionary is given, and the two languages share no word. Can each translation be found?
"""

# sphinx_gallery_thumbnail_number = 2
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.utils import all_estimators

from unshuffle import KernelizedSorting
from unshuffle.plotting import MatchDisplay

N_WORDS = 150
rng = np.random.default_rng(0)
words_of = [re.findall("[a-z]{2,}", (kind.__doc__ or "").lower()) for _, kind in all_estimators()]
english = [words[:N_WORDS] for words in words_of if len(words) >= N_WORDS]
syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
dictionary = {
    word: ["".join(rng.choice(syllables, rng.integers(2, 5))) for _ in range(rng.integers(1, 3))]
    for word in sorted(set().union(*english))
}


def translate(words, kept=0.8):
    """Words of the other language for a share of the words, in a random order."""
    chosen = rng.permutation(words)[: int(kept * len(words))]
    return " ".join(rng.choice(dictionary[word]) for word in chosen)


order = rng.permutation(len(english))
originals = [" ".join(words) for words in english]
translations = [translate(english[i]) for i in order]
print(originals[0][:160], "...")
print(translations[int(np.flatnonzero(order == 0)[0])][:160], "...")

# %%
# Similar documents have similar translations
# -------------------------------------------
#
# Documents are compared within their own language, by the rare words they share. Each matrix below
# holds the similarities within one language. In the order in which the translations arrive, the
# two have nothing in common.

names = ("English", "translations as they arrive")
given = np.arange(len(order))
MatchDisplay.from_predictions(originals, translations, given, kernel="text").plot_kernels(
    labels=names
)

# %%
# Kernelized sorting looks for the order in which both show the same pattern. A list of texts needs
# no further setting.

sorting = KernelizedSorting(n_jobs=2).fit(originals, translations)
names = ("English", "translations, matched")
MatchDisplay.from_estimator(sorting, originals, translations).plot_kernels(labels=names)
right = order[sorting.permutation_] == np.arange(len(order))
print(f"{right.sum()} of {len(right)} translations found")
print(f"believed without knowing the truth: {sorting.expected_accuracy_:.0%}")

# %%
# How free may a translation be?
# ------------------------------
#
# Fewer and fewer words are kept. The share of right pairs falls late and then suddenly. The share
# that is believed right falls a little earlier, and below a half you are warned.

shares = np.array([0.8, 0.6, 0.4, 0.3, 0.2, 0.1])
found, believed = [], []
for kept in shares:
    freer = [translate(english[i], kept) for i in order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is believed is drawn below
        looser = KernelizedSorting(n_jobs=2).fit(originals, freer)
    found.append(np.mean(order[looser.permutation_] == np.arange(len(order))))
    believed.append(looser.expected_accuracy_)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(100 * shares, found, "o-", color="#0f6948", label="right")
ax.plot(100 * shares, believed, "o--", color="#e07a1f", label="believed right")
ax.axhline(0.5, color="#b2182b", linewidth=0.8)
ax.text(80, 0.48, "warning below", color="#b2182b", ha="left", va="top", fontsize=9)
ax.set(xlabel="words kept in translation, percent", ylabel="share of the pairs", ylim=(0, 1.05))
ax.invert_xaxis()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")

plt.show()

# %%
# What to try next
# ----------------
#
# - Shorten the documents: ``N_WORDS = 40``. Short texts share few words.
# - Match your own: ``unshuffle match english/ german/ -o pairs.csv`` takes two folders of texts.
# - Align three languages at once: `plot_three_collections.py` shows how.
