"""Several collections of real data: the zeros of the paper, and documents in many languages."""

import gzip
import json

import numpy as np
import pytest

from unshuffle import MultiwaySorting
from unshuffle.matching import DoubtWarning


@pytest.fixture(scope="module")
def zeros(shared_data):
    """First five zeros of exactly 100 pixels of ink, as points; y points up."""
    data = np.load(shared_data("usps.npz"), allow_pickle=False)
    images = data["images"][data["labels"] == 0]
    ink = [np.argwhere(image > 0) for image in images]
    five = [points for points in ink if len(points) == 100][:5]
    return [np.column_stack([points[:, 1], 15 - points[:, 0]]).astype(float) for points in five]


def share_in_the_hole(first, other):
    """Share of the points half-way that lie deeper in the hole than any ink of either zero."""

    def radii(points, spread):
        return np.linalg.norm((points - points.mean(axis=0)) / spread, axis=1)

    rim = min(radii(first, first.std(axis=0)).min(), radii(other, other.std(axis=0)).min())
    spread = (first.std(axis=0) + other.std(axis=0)) / 2
    return float(np.mean(radii((first + other) / 2, spread) < 0.9 * rim))


@pytest.mark.parametrize("objective", ["hsic", "entropy"])
def test_zeros_keep_their_ring_half_way(zeros, objective):
    random = np.random.default_rng(0)
    shuffled = [zero[random.permutation(100)] for zero in zeros]
    # No point of one zero is the right partner of a point of another.
    sorting = MultiwaySorting(objective=objective, trust=False).fit(shuffled)
    first, *others = sorting.reorder(shuffled)
    before = [share_in_the_hole(shuffled[0], other) for other in shuffled[1:]]
    after = [share_in_the_hole(first, other) for other in others]
    assert np.mean(before) > 0.1
    assert max(after) <= 0.01
    for other in others:  # and are not turned over, as some are in the paper's Figure 6
        centered = first - first.mean(axis=0), other - other.mean(axis=0)
        assert np.corrcoef(centered[0].ravel(), centered[1].ravel())[0, 1] > 0.8


def test_documents_in_seven_languages_find_their_translations(shared_data):
    with gzip.open(shared_data("europarl7.json.gz")) as file:
        documents = json.load(file)
    random = np.random.default_rng(0)
    rows = random.permutation(300)[:60]
    orders = [random.permutation(60) for _ in range(7)]
    languages = ["en", "de", "es", "fr", "it", "nl", "pt"]
    collections = [
        [documents[language][rows[i]] for i in order]
        for language, order in zip(languages, orders, strict=True)
    ]
    sorting = MultiwaySorting("text").fit(collections)
    found = np.array([order[p] for order, p in zip(orders, sorting.permutations_, strict=True)])
    assert np.mean(found == found[0]) > 0.95
    assert sorting.expected_accuracy_ > 0.9


def test_different_documents_in_three_languages_are_doubted(shared_data):
    with gzip.open(shared_data("lohelp9.json.gz")) as file:
        documents = json.load(file)
    unrelated = [documents["en"][:40], documents["de"][40:80], documents["sv"][80:120]]
    with pytest.warns(DoubtWarning, match="of the 40 items"):
        sorting = MultiwaySorting("text").fit(unrelated)
    assert sorting.expected_accuracy_ < 0.2
