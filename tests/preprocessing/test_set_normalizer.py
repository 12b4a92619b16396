import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.preprocessing import SetNormalizer
from unshuffle.preprocessing._set_normalizer import remove_slant


def some_sets(n=4, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(8 + k, d)) @ rng.normal(size=(d, d)) + 50 for k in range(n)]


def test_sets_are_centered_and_of_unit_spread():
    for points in SetNormalizer().fit_transform(some_sets()):
        np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
        assert np.mean(np.sum(points**2, axis=1)) == pytest.approx(1)


def test_shear_and_scaled_columns_whiten():
    for points in SetNormalizer(shear=True, scale="columns").fit_transform(some_sets(d=4)):
        np.testing.assert_allclose(points.T @ points / len(points), np.eye(4), atol=1e-10)


@given(st.integers(0, 2**32 - 1))
def test_moving_scaling_and_shearing_a_set_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(20, 2))
    slanted = 3 * (points + points[:, 1:] * [rng.normal(), 0]) + rng.normal(size=2)
    upright = SetNormalizer(shear=True).fit_transform([points, slanted])
    # Shearing changes the spread, by which both are divided: compare up to that.
    ratio = np.linalg.norm(upright[0]) / np.linalg.norm(upright[1])
    np.testing.assert_allclose(upright[0], upright[1] * ratio, atol=1e-9)


def test_the_last_column_stands_still_when_others_are_remove_slant():
    points = some_sets(1, 3)[0]
    points -= points.mean(axis=0)
    straight = remove_slant(points)
    np.testing.assert_array_equal(straight[:, 2], points[:, 2])
    np.testing.assert_allclose(np.corrcoef(straight.T), np.eye(3), atol=1e-12)


def test_points_keep_their_order_and_the_answer_does_not_depend_on_it():
    points = some_sets(1)[0]
    order = np.random.default_rng(1).permutation(len(points))
    normalizer = SetNormalizer(shear=True).fit([points])
    np.testing.assert_array_equal(
        normalizer.transform([points[order]])[0], normalizer.transform([points])[0][order]
    )


def test_columns_that_are_not_coordinates_do_not_change():
    points = np.column_stack([some_sets(1)[0], np.arange(8.0)])
    changed = SetNormalizer(columns=[0, 1]).fit_transform([points])[0]
    np.testing.assert_array_equal(changed[:, 2], points[:, 2])
    np.testing.assert_allclose(changed[:, :2].mean(axis=0), 0, atol=1e-12)


def test_sizes_and_places_may_be_kept():
    bags = some_sets()
    same = SetNormalizer(center=False, scale=None).fit_transform(bags)
    for before, after in zip(bags, same, strict=True):
        np.testing.assert_allclose(before, after)


def test_scaling_without_centering_divides_the_place_too():
    points = some_sets(1)[0]
    spread = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())
    scaled = SetNormalizer(center=False).fit_transform([points])[0]
    np.testing.assert_allclose(scaled, points / spread)


@pytest.mark.parametrize("points", [np.full((1, 2), 7.0), np.full((5, 2), 0.1)])
def test_a_set_without_spread_becomes_the_origin(points):
    with np.errstate(all="raise"):
        changed = SetNormalizer(shear=True, scale="columns").fit_transform([points, *some_sets()])[
            0
        ]
    np.testing.assert_array_equal(changed, np.zeros_like(points))


def test_the_form_is_kept():
    bags = np.stack([each[:8] for each in some_sets()])
    normalizer = SetNormalizer().fit(bags)
    assert normalizer.transform(bags).shape == bags.shape
    assert isinstance(normalizer.transform(list(bags)), list)
    assert SetNormalizer().fit_transform(bags[0]).shape == bags[0].shape


@pytest.mark.parametrize(
    ("columns", "message"),
    [([0, 2], "names column 2"), ([0, 0], "twice"), ([0.5], "whole numbers"), ([], "whole")],
)
def test_wrong_columns_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        SetNormalizer(columns=columns).fit(some_sets())


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="scale"):
        SetNormalizer(scale="rows").fit(some_sets())


def test_sets_may_come_from_a_generator():
    bags = [np.random.default_rng(i).normal(size=(4 + i, 2)) for i in range(3)]
    for one, other in zip(
        SetNormalizer().fit_transform(each for each in bags),
        SetNormalizer().fit_transform(bags),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_list_of_sets_of_one_point_stays_a_list():
    bags = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]
    changed = SetNormalizer().fit_transform(bags)
    assert [each.shape for each in changed] == [(1, 2), (1, 2)]
    assert SetNormalizer().fit_transform([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)


def test_points_too_close_for_a_float_are_refused():
    with pytest.raises(ValueError, match="too small for a float"):
        SetNormalizer().fit_transform([1e-200 * np.arange(6.0).reshape(3, 2)])
