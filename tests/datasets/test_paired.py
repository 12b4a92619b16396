import numpy as np
import pytest
from sklearn.datasets import load_digits

from unshuffle.datasets import (
    digits_views,
    grid_points,
    make_paired_views,
    photo_halves,
    sample_digits,
)


def test_photo_halves_join_along_the_cut():
    X, y, truth = photo_halves(100, light=0.0)
    assert X.shape == y.shape == (100, 32, 16, 3)
    assert X.dtype == np.uint8

    def step(right):
        return np.abs(X[:, :, -1].astype(int) - right[:, :, 0]).mean()

    # Neighboring columns of a photograph differ little; those of other crops do.
    assert step(y[truth]) < 0.4 * step(y[np.roll(truth, 1)])


def test_light_changes_both_halves_alike():
    plain, relit = photo_halves(60, light=0.0), photo_halves(60, light=1.0)
    assert not np.array_equal(plain.X, relit.X)
    step = np.abs(relit.X[:, :, -1].astype(int) - relit.y[relit.truth][:, :, 0]).mean()
    assert step < 25


def test_digits_views_are_the_halves_of_real_digits():
    X, y, truth = digits_views(50)
    whole = np.hstack([X, y[truth]])
    digits = np.round(load_digits().data * (255 / 16))
    assert all((digits == each).all(axis=1).any() for each in whole)


def test_sampled_digits_carry_their_labels():
    images, labels = sample_digits(30, random_state=3)
    digits = load_digits()
    for image, label in zip(images, labels, strict=True):
        same = (np.round(digits.images * (255 / 16)) == image).all(axis=(1, 2))
        assert label in digits.target[same]


def test_grid_points_count_in_reading_order():
    np.testing.assert_array_equal(grid_points(2, 3)[[0, 2, 3]], [[0, 0], [0, 2], [1, 0]])


def test_paired_views_share_their_neighborhoods():
    X, y, truth = make_paired_views(80, noise=0.05, random_state=0)

    def distances(Z):
        return np.linalg.norm(Z[:, None] - Z[None], axis=-1)[np.triu_indices(len(Z), 1)]

    right = np.corrcoef(distances(X), distances(y[truth]))[0, 1]
    wrong = np.corrcoef(distances(X), distances(y))[0, 1]
    assert right > 0.6
    assert abs(wrong) < 0.2


@pytest.mark.parametrize(
    "make", [photo_halves, digits_views, make_paired_views], ids=lambda f: f.__name__
)
def test_same_random_state_same_data(make):
    first, again, other = (make(40, random_state=seed) for seed in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.X, other.X)
    assert sorted(first.truth) == list(range(40))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: photo_halves(10**6), "`n`"),
        (lambda: photo_halves(10, size=1), "`size`"),
        (lambda: digits_views(5000), "`n`"),
        (lambda: make_paired_views(1), "`n`"),
        (lambda: make_paired_views(5, bend=2), "`bend`"),
        (lambda: make_paired_views(5, noise=-1), "`noise`"),
        (lambda: grid_points(0, 3), "`rows`"),
    ],
)
def test_impossible_requests_are_refused(call, name):
    with pytest.raises(ValueError, match=name):
        call()
