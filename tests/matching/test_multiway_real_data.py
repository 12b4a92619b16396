"""Several collections of real data: the zeros of the paper, and documents in many languages."""

import gzip
import json

import numpy as np
import pytest

from unshuffle import MultiwaySorting
from unshuffle.matching import DoubtWarning


@pytest.fixture(scope="module")
def ink(shared_data):
    """Pixels of ink of all zeros, as points; y points up."""
    data = np.load(shared_data("usps.npz"), allow_pickle=False)
    pixels = [np.argwhere(image > 0) for image in data["images"][data["labels"] == 0]]
    return [np.column_stack([each[:, 1], 15 - each[:, 0]]).astype(float) for each in pixels]


@pytest.fixture(scope="module")
def zeros(ink):
    """First five zeros of exactly 100 pixels."""
    return [points for points in ink if len(points) == 100][:5]


def are_upright(zeros):
    """Whether all zeros lie on the first, neither mirrored nor turned."""
    first, *others = ((zero - zero.mean(axis=0)).ravel() for zero in zeros)
    return all(np.corrcoef(first, other)[0, 1] > 0.8 for other in others)


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
    assert are_upright([first, *others])  # some are turned over in the paper's Figure 6


@pytest.mark.slow
def test_most_groups_of_zeros_come_out_upright(ink):
    random = np.random.RandomState(0)
    # The benchmark draws from the other end of this order, so these are other zeros.
    drawn = [ink[i] for i in random.permutation(len(ink))[::-1] if len(ink[i]) >= 100]
    groups = [[random.permutation(zero)[:100] for zero in drawn[5 * i :][:5]] for i in range(10)]
    by_default, by_distances = (
        [
            are_upright(
                MultiwaySorting(compare_columns=flag, trust=False).fit(group).reorder(group)
            )
            for group in groups
        ]
        for flag in (True, False)
    )
    assert np.mean(by_default) >= 0.9
    assert np.mean(by_distances) < 0.5


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
