import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from unshuffle.alignment import match_shapes


def bars(rng, *segments, n=40, width=0.1):
    """Points along straight strokes, given by their ends."""
    parts = []
    for start, end in segments:
        along = rng.uniform(0, 1, (n, 1))
        parts.append(np.array(start) * (1 - along) + np.array(end) * along)
    return np.concatenate(parts) + rng.uniform(-width / 2, width / 2, (n * len(segments), 2))


@pytest.fixture
def letters():
    """An L and a T, whose strokes lie far from one another."""
    rng = np.random.RandomState(0)
    ell = bars(rng, ((0, 0), (0, 3)), ((0, 0), (2, 0)))
    tee = bars(rng, ((1, 0), (1, 3)), ((0, 3), (2, 3)))
    return ell, tee


def tearing(first, second):
    """How differently neighbors move."""
    nearest = np.argsort(cdist(first, first), axis=1)[:, 1:6]
    way = second - first
    return np.sqrt(((way[:, np.newaxis] - way[nearest]) ** 2).sum(axis=2).mean())


def test_a_bent_copy_is_matched_point_by_point():
    rng = np.random.RandomState(0)
    first = rng.uniform(-1, 1, (80, 2))
    bent = first + 0.15 * np.stack([np.sin(2 * first[:, 1]), np.cos(3 * first[:, 0])], axis=1)
    order = rng.permutation(80)
    found = match_shapes(first, bent[order])
    assert (order[found] == np.arange(80)).mean() > 0.97


def test_neighbours_stay_together_better_than_by_assignment_alone(letters):
    first, second = letters
    scaled = [(each - each.mean(axis=0)) / np.sqrt(each.var(axis=0).sum()) for each in letters]
    alone = linear_sum_assignment(cdist(*scaled, "sqeuclidean"))[1]
    together = match_shapes(first, second)
    assert tearing(first, second[together]) < 0.7 * tearing(first, second[alone])


def test_a_ring_is_still_a_ring_half_way():
    rng = np.random.RandomState(0)

    def ring(width, height):
        turn, radius = rng.uniform(0, 2 * np.pi, 120), rng.uniform(0.85, 1.0, 120)
        return radius[:, np.newaxis] * np.stack([width * np.cos(turn), height * np.sin(turn)], 1)

    first, second = ring(1.0, 1.6), ring(1.5, 0.9)
    half = (first + second[match_shapes(first, second)]) / 2
    as_given = (first + second) / 2
    assert np.linalg.norm(half, axis=1).min() > 0.7
    assert np.linalg.norm(as_given, axis=1).min() < 0.2


def test_stiffer_tears_less(letters):
    first, second = letters
    soft, firm = (
        tearing(first, second[match_shapes(first, second, stiffness=stiffness)])
        for stiffness in (1e-3, 3.0)
    )
    assert firm < soft


@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 50), shift=st.floats(-20, 20))
def test_order_place_and_size_do_not_matter(seed, scale, shift):
    rng = np.random.RandomState(seed)
    first, second = rng.randn(25, 2), rng.randn(25, 2) * [1.0, 0.4]
    before, after = rng.permutation(25), rng.permutation(25)
    plain = match_shapes(first, second)
    moved = match_shapes((scale * first + shift)[before], second[after])
    np.testing.assert_array_equal(after[moved], plain[before])


def test_inputs_are_left_as_they_were(letters):
    copies = [each.copy() for each in letters]
    match_shapes(*letters)
    for each, copy in zip(letters, copies, strict=True):
        np.testing.assert_array_equal(each, copy)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (np.ones((4, 2)), np.eye(4, 2), "All 4 points of `first` are equal"),
        (np.eye(3, 2), np.eye(4, 2), r"`first` has shape \(3, 2\) and `second` \(4, 2\)"),
        (np.eye(3, 2), np.full((3, 2), np.nan), "contains NaN"),
        (np.arange(3.0), np.eye(3), r"`first` must be 2-D, got 1 dim"),
        (1e160 * np.eye(3), np.eye(3), "first holds 1e.160, whose square is too large"),
        (np.eye(3), "letters", "`second` holds text"),
        ([[1, 2], [3]], np.eye(2), "`first` holds rows of different lengths"),
        (np.eye(3) + 1j, np.eye(3), "`first` holds complex numbers"),
    ],
)
def test_shapes_that_cannot_be_matched_are_refused(first, second, message):
    with pytest.raises(ValueError, match=message):
        match_shapes(first, second)


def test_tiny_shapes_are_matched_as_large_ones(letters):
    first, second = letters
    np.testing.assert_array_equal(match_shapes(1e-200 * first, second), match_shapes(*letters))


def test_no_stiffness_is_refused(letters):
    with pytest.raises(ValueError, match="`stiffness`"):
        match_shapes(*letters, stiffness=0)
