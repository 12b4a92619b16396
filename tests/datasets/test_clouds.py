import numpy as np
import pytest
from sklearn.datasets import load_digits

from unshuffle.datasets import digit_clouds


def test_points_lie_where_the_ink_is():
    bags, labels = digit_clouds(6, digits=(0, 1), n_points=4000)
    digits = load_digits()
    for kind in (0, 1):
        pictures = digits.images[digits.target == kind]
        for bag, ink in zip(bags[labels == kind], pictures, strict=False):
            edges = np.arange(9) - 0.5
            counts = np.histogram2d(bag[:, 1], bag[:, 0], bins=[edges, edges])[0][::-1]
            np.testing.assert_allclose(counts / 4000, ink / ink.sum(), atol=0.02)


def test_kinds_take_turns_and_pictures_do_not_depend_on_the_seed():
    bags, labels = digit_clouds(7, digits=(9, 3, 0), n_points=5000)
    assert labels.tolist() == [9, 3, 0, 9, 3, 0, 9]
    others, _ = digit_clouds(7, digits=(9, 3, 0), n_points=5000, random_state=1)
    assert not np.array_equal(bags, others)
    # Many points of one picture fall into its pixels alike, however they are drawn.
    counts, again = (
        np.stack([np.histogram2d(*bag.T, bins=np.arange(9) - 0.5)[0] for bag in each])
        for each in (bags, others)
    )
    distances = np.abs(counts[:, np.newaxis] - again[np.newaxis]).sum(axis=(2, 3))
    assert distances.argmin(axis=1).tolist() == list(range(7))


def test_same_random_state_same_clouds():
    first, again = (digit_clouds(5, random_state=3).bags for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_points_of_one_pixel_can_be_told_apart():
    bags, _ = digit_clouds(3, n_points=300)
    assert all(len(np.unique(bag, axis=0)) == 300 for bag in bags)


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
def test_impossible_clouds_are_refused(options, name):
    with pytest.raises(ValueError, match=name):
        digit_clouds(**options)


def test_far_too_many_points_are_refused_before_the_work():
    with pytest.raises(MemoryError, match="Pass a smaller n or n_points"):
        digit_clouds(1, n_points=10**13)
