import numpy as np
import pytest
from sklearn.datasets import load_digits

from unshuffle.datasets import digit_sets, mixture_sets


def test_points_lie_where_the_ink_is():
    sets, labels = digit_sets(6, digits=(0, 1), n_points=4000)
    digits = load_digits()
    for kind in (0, 1):
        pictures = digits.images[digits.target == kind]
        for points, ink in zip(sets[labels == kind], pictures, strict=False):
            edges = np.arange(9) - 0.5
            counts = np.histogram2d(points[:, 1], points[:, 0], bins=[edges, edges])[0][::-1]
            np.testing.assert_allclose(counts / 4000, ink / ink.sum(), atol=0.02)


def test_kinds_take_turns_and_pictures_do_not_depend_on_the_seed():
    sets, labels = digit_sets(7, digits=(9, 3, 0), n_points=5000)
    assert labels.tolist() == [9, 3, 0, 9, 3, 0, 9]
    others, _ = digit_sets(7, digits=(9, 3, 0), n_points=5000, random_state=1)
    assert not np.array_equal(sets, others)
    # Many points of one picture fall into its pixels alike, however they are drawn.
    counts, again = (
        np.stack([np.histogram2d(*points.T, bins=np.arange(9) - 0.5)[0] for points in each])
        for each in (sets, others)
    )
    distances = np.abs(counts[:, np.newaxis] - again[np.newaxis]).sum(axis=(2, 3))
    assert distances.argmin(axis=1).tolist() == list(range(7))


def test_same_random_state_same_sets():
    first, again = (digit_sets(5, random_state=3).sets for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_points_of_one_pixel_can_be_told_apart():
    sets, _ = digit_sets(3, n_points=300)
    assert all(len(np.unique(points, axis=0)) == 300 for points in sets)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"digits": (3, 10)}, "`digits`"),
        ({"digits": (3, 3)}, "`digits`"),
        ({"digits": ()}, "`digits`"),
        ({"digits": "39"}, "`digits`"),
        ({"n": 0}, "`n`"),
        ({"n": 500}, "`n`"),
        ({"n_points": 0}, "`n_points`"),
    ],
)
def test_impossible_sets_are_refused(options, name):
    with pytest.raises(ValueError, match=name):
        digit_sets(**options)


def test_far_too_many_points_are_refused_before_the_work():
    with pytest.raises(MemoryError, match="Pass a smaller n or n_points"):
        digit_sets(1, n_points=10**13)


def test_classes_take_turns_and_sizes_keep_their_range():
    sets, labels = mixture_sets(300, n_classes=3, least_points=5, most_points=9)
    assert labels.tolist() == [0, 1, 2] * 100
    sizes = {len(points) for points in sets}
    assert sizes == {5, 6, 7, 8, 9}
    assert {points.shape[1] for points in sets} == {5}


def test_classes_differ_by_as_much_as_was_asked():
    sets, labels = mixture_sets(400, difference=0.0, least_points=400, most_points=400)
    others, _ = mixture_sets(400, difference=0.5, least_points=400, most_points=400)
    spread = []
    for each in (sets, others):
        means = np.array([points.mean(axis=0) for points in each])
        spread.append(np.std([means[labels == k].mean(axis=0) for k in range(4)], axis=0).mean())
    # The mean of five moves of 0.5; without moves, the error of 100 means of 400 points.
    assert spread[0] < 0.02
    assert 0.1 < spread[1] < 0.4


def test_the_seed_decides_mixtures():
    first, again, other = (mixture_sets(4, random_state=seed).sets for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert first[0].shape != other[0].shape or not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": 0}, "`n` must be at least 1, got 0"),
        ({"least_points": 10, "most_points": 9}, "`most_points` must be at least 10, got 9"),
        ({"difference": -1.0}, "`difference` must be a finite number at least 0"),
    ],
)
def test_impossible_mixtures_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        mixture_sets(**parameters)
