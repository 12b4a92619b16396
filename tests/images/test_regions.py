import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from unshuffle.images._wall import regions as _regions
from unshuffle.images._wall.regions import Region, find_regions
from unshuffle.layout import GridLayout


def wall(picture):
    """A grid of numbered items, and their labels, from a 2-D array of texts."""
    picture = np.asarray(picture)
    return np.arange(picture.size).reshape(picture.shape), picture.ravel().tolist()


def halves(rows, columns):
    picture = np.full((rows, columns), "left", dtype=object)
    picture[:, columns // 2 :] = "right"
    return picture


def noisy(picture, share, seed):
    """Some items with the label of another."""
    rng = np.random.RandomState(seed)
    flat = picture.ravel().copy()
    some = rng.permutation(flat.size)[: int(share * flat.size)]
    flat[some] = flat[rng.permutation(some)]
    return flat.reshape(picture.shape)


@pytest.mark.parametrize("side", [12, 30, 120])
def test_two_halves_are_two_regions_with_their_middles(side):
    found = find_regions(*wall(halves(side, 2 * side)))
    assert {region.text for region in found} == {"left", "right"}
    for region in found:
        assert region.size == pytest.approx(side, rel=0.02)
        assert region.row == pytest.approx(side / 2, abs=1 + side / 20)
        middle = side / 2 if region.text == "left" else 1.5 * side
        assert region.column == pytest.approx(middle, abs=1 + side / 20)


def test_the_largest_region_comes_first_and_only_so_many_are_kept():
    picture = np.full((30, 60), "c", dtype=object)
    picture[:, :10], picture[:, 10:30] = "a", "b"
    found = find_regions(*wall(picture))
    assert [region.text for region in found] == ["c", "b", "a"]
    assert find_regions(*wall(picture), most=2) == found[:2]
    assert find_regions(*wall(picture), most_labels=1) == found[:1]


def test_one_label_may_have_several_regions():
    picture = np.full((40, 60), "sea", dtype=object)
    picture[5:20, 5:20] = picture[20:38, 38:56] = "land"
    found = find_regions(*wall(picture))
    assert [region.text for region in found] == ["sea", "land", "land"]
    assert (found[1].row, found[1].column) == pytest.approx((29, 47), abs=1.5)
    assert (found[2].row, found[2].column) == pytest.approx((12.5, 12.5), abs=1.5)


def test_the_point_of_a_bent_region_lies_in_it():
    picture = np.full((60, 60), "inside", dtype=object)
    picture[:10] = picture[50:] = "frame"
    picture[:, :10] = picture[:, 50:] = "frame"
    for region in find_regions(*wall(picture)):
        assert picture[int(region.row), int(region.column)] == region.text


def test_a_single_label_is_one_region():
    assert find_regions(*wall(np.full((8, 10), "all"))) == [
        Region("all", pytest.approx(4.0, abs=0.6), pytest.approx(5.0, abs=1.1), 80**0.5)
    ]


@pytest.mark.parametrize("n_labels", [2, 3, 10, 200])
@pytest.mark.parametrize("side", [10, 17, 55, 200])
def test_scattered_labels_have_hardly_any_region(side, n_labels):
    n_found = 0
    for seed in range(5):
        rng = np.random.RandomState(seed)
        grid = rng.permutation(side**2).reshape(side, side)
        n_found += len(find_regions(grid, list(map(str, rng.randint(n_labels, size=side**2)))))
    assert n_found <= 2, "over five walls"


def test_walls_without_labels_or_with_a_label_for_each_item_have_none():
    grid = np.arange(600).reshape(20, 30)
    assert find_regions(grid, [""] * 600) == []
    assert find_regions(grid, [f"item {k}" for k in range(600)]) == []


@given(st.integers(0, 2**31 - 1))
def test_numbers_names_and_orientation_do_not_matter(seed):
    picture = noisy(halves(24, 30), 0.3, seed)
    picture[:8, 8:24] = "top"
    grid, labels = wall(picture)
    expected = find_regions(grid, labels)
    assert {region.text for region in expected} == {"left", "right", "top"}
    order = np.random.RandomState(seed).permutation(grid.size)
    assert find_regions(order[grid], [labels[i] for i in np.argsort(order)]) == expected
    renamed = find_regions(grid, [label.upper() for label in labels])
    assert [(r.text.lower(), r.row, r.column) for r in renamed] == [
        (r.text, r.row, r.column) for r in expected
    ]
    turned = find_regions(grid.T, labels)
    assert sorted((r.text, r.size) for r in turned) == sorted((r.text, r.size) for r in expected)


def test_noise_does_not_break_a_region_into_pieces():
    found = find_regions(*wall(noisy(halves(60, 80), 0.5, 0)))
    assert sorted(region.text for region in found) == ["left", "right"]


def test_empty_cells_and_items_without_a_label_are_ignored():
    rng = np.random.RandomState(0)
    grid, labels = wall(halves(30, 40))
    expected = {(region.text, round(region.size, -1)) for region in find_regions(grid, labels)}
    gaps = np.where(rng.rand(30, 40) < 0.5, -1, grid)
    assert {(r.text, round(r.size, -1)) for r in find_regions(gaps, labels)} == expected
    some = [label if rng.rand() < 0.5 else "" for label in labels]
    assert {(r.text, round(r.size, -1)) for r in find_regions(grid, some)} == expected
    assert find_regions(np.full((3, 4), -1), []) == []


@pytest.mark.parametrize("shape", [(1, 400), (400, 1), (2, 300), (1, 1)])
def test_walls_of_any_shape(shape):
    labels = ["first" if k < shape[0] * shape[1] / 2 else "second" for k in range(600)]
    found = find_regions(np.arange(shape[0] * shape[1]).reshape(shape), labels)
    for region in found:
        assert 0 < region.row < shape[0]
        assert 0 < region.column < shape[1]
    if shape in ((1, 400), (400, 1)):
        assert sorted(region.text for region in found) == ["first", "second"]


def test_labels_in_several_parts_of_memory_give_the_same(monkeypatch):
    rng = np.random.RandomState(0)
    places = rng.rand(30, 2) * 60
    cells = np.stack(np.mgrid[:60, :60], axis=-1).reshape(-1, 1, 2)
    nearest = ((cells - places) ** 2).sum(axis=2).argmin(axis=1)
    grid, labels = wall(np.array([f"part {k}" for k in nearest]).reshape(60, 60))
    expected = find_regions(grid, labels)
    assert len(expected) > 20
    monkeypatch.setattr(_regions, "IN_MEMORY", 1)
    assert find_regions(grid, labels) == expected


def test_digits_are_labeled_where_they_are():
    digits = load_digits()
    layout = GridLayout(quality="fast", random_state=0).fit(digits.data)
    found = find_regions(layout.grid_, [str(digit) for digit in digits.target])
    assert {region.text for region in found} == set("0123456789")
    assert len(found) < 30
    right = 0
    for region in found:
        row, column = int(region.row), int(region.column)
        around = layout.grid_[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        held = digits.target[around[around >= 0]]
        right += (held == int(region.text)).mean()
    assert right / len(found) > 0.8


@pytest.mark.parametrize(
    ("grid", "labels", "message"),
    [
        ([[0, 1, 2]], ["a", "b"], "`grid` must hold items from 0 to 1"),
        ([0, 1], ["a", "b"], "`grid` must be a 2-D array"),
        ([[0, 1]], "ab", "`labels` must be a list of strings"),
        ([[0, 1]], ["a", 3], "`labels` must hold strings; number 1 is a int"),
    ],
)
def test_bad_grids_and_labels_are_refused(grid, labels, message):
    with pytest.raises(ValueError, match=message):
        find_regions(grid, labels)
