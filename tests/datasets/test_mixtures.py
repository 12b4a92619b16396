import numpy as np
import pytest

from unshuffle.datasets import mixture_sets


def test_classes_take_turns_and_sizes_keep_their_range():
    bags, labels = mixture_sets(300, n_classes=3, least_points=5, most_points=9)
    assert labels.tolist() == [0, 1, 2] * 100
    sizes = {len(bag) for bag in bags}
    assert sizes == {5, 6, 7, 8, 9}
    assert {bag.shape[1] for bag in bags} == {5}


def test_classes_differ_by_as_much_as_was_asked():
    bags, labels = mixture_sets(400, difference=0.0, least_points=400, most_points=400)
    others, _ = mixture_sets(400, difference=0.5, least_points=400, most_points=400)
    spread = []
    for sets in (bags, others):
        means = np.array([bag.mean(axis=0) for bag in sets])
        spread.append(np.std([means[labels == k].mean(axis=0) for k in range(4)], axis=0).mean())
    # The mean of five moves of 0.5; without moves, the error of 100 means of 400 points.
    assert spread[0] < 0.02
    assert 0.1 < spread[1] < 0.4


def test_the_seed_decides():
    first, again, other = (mixture_sets(4, random_state=seed).bags for seed in (1, 1, 2))
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
def test_what_cannot_be_drawn_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        mixture_sets(**parameters)
