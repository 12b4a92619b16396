import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._core.color import lab_of_light, light_of_rgb, rgb_to_lab
from unshuffle.layout._collage import (
    Mosaic,
    _independent_cells,
    grid_for,
    neighbor_weights,
    template_colors,
    tile_colors,
)


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def test_a_flat_tile_has_its_own_color_in_every_part():
    color = np.array([200, 30, 90], dtype=np.uint8)
    tile = np.broadcast_to(color, (1, 7, 5, 3))
    np.testing.assert_allclose(
        3 * tile_colors(tile, 3).reshape(9, 3), np.tile(rgb_to_lab(color), (9, 1)), atol=1e-4
    )


def test_parts_average_light_and_not_numbers():
    tile = np.zeros((1, 2, 2, 3), dtype=np.uint8)
    tile[:, 0] = 255
    expected = lab_of_light(np.array([0.5, 0.5, 0.5]))
    np.testing.assert_allclose(tile_colors(tile, 1)[0], expected, atol=1e-4)
    upper, lower = np.split(2 * tile_colors(tile, 2)[0], 2)
    np.testing.assert_allclose(upper[[0, 3]], 100, atol=1e-3)
    np.testing.assert_allclose(lower, 0, atol=1e-3)


@pytest.mark.parametrize("detail", [1, 2, 3, 5])
def test_distances_are_mean_squared_differences_of_the_parts(detail):
    tiles = noise(2, 3 * detail, 2 * detail, 3)
    blocks = light_of_rgb(tiles).reshape(2, detail, 3, detail, 2, 3).mean(axis=(2, 4))
    apart = np.diff(lab_of_light(blocks), axis=0)
    first, second = tile_colors(tiles, detail).astype(float)
    assert np.square(first - second).sum() == pytest.approx(
        np.square(apart).sum(axis=-1).mean(), rel=1e-5
    )


def test_pixels_between_two_parts_count_for_both():
    row = np.array([0, 255, 0], dtype=np.uint8)
    tile = np.repeat(row[np.newaxis, np.newaxis, :, np.newaxis], 3, axis=3)
    parts = 2 * tile_colors(tile, 2)[0].reshape(2, 2, 3)
    np.testing.assert_allclose(parts, np.full_like(parts, 1) * lab_of_light(np.ones(3) / 3))


def test_many_tiles_are_described_as_each_by_itself():
    tiles = noise(130, 4, 4, 3)
    alone = np.concatenate([tile_colors(tiles[i : i + 1], 2) for i in range(130)])
    np.testing.assert_allclose(tile_colors(tiles, 2), alone, rtol=1e-6)


@pytest.mark.parametrize("detail", [1, 3])
def test_cells_of_a_template_are_described_as_tiles(detail):
    tiles = noise(3 * 4, 6, 9, 3)
    template = tiles.reshape(3, 4, 6, 9, 3).transpose(0, 2, 1, 3, 4).reshape(18, 36, 3)
    np.testing.assert_allclose(
        template_colors(template, (3, 4), detail), tile_colors(tiles, detail), rtol=1e-5
    )


def test_a_template_may_have_fewer_pixels_than_cells():
    template = np.array([[0, 255]], dtype=np.uint8)[..., np.newaxis].repeat(3, axis=2)
    light = template_colors(template, (2, 6), 1)[:, 0].reshape(2, 6)
    np.testing.assert_allclose(light, [[0, 0, 0, 100, 100, 100]] * 2, atol=1e-3)


sides = st.integers(1, 300)


@given(st.integers(1, 5000), sides, sides, st.integers(1, 40), st.integers(1, 40))
def test_grids_never_need_more_tiles_than_there_are(n_tiles, height, width, tall, wide):
    template = np.empty((height, width, 3), dtype=np.uint8)
    rows, columns = grid_for(n_tiles, template, np.empty((1, tall, wide, 3), dtype=np.uint8))
    assert rows >= 1
    assert columns >= 1
    assert rows * columns <= n_tiles
    aspect = height / width * wide / tall
    if 1 <= n_tiles * aspect <= n_tiles**2:
        assert abs(rows - np.sqrt(n_tiles * aspect)) <= 1
        assert abs(columns - np.sqrt(n_tiles / aspect)) <= 1


@pytest.mark.parametrize(
    ("n_tiles", "template", "tile", "expected"),
    [
        (64, (50, 50), (8, 8), (8, 8)),
        (24, (40, 60), (8, 8), (4, 6)),
        (25, (40, 60), (8, 12), (5, 5)),
        (12, (30, 30), (10, 20), (4, 3)),
        (7, (1, 500), (8, 8), (1, 7)),
        (1, (9, 2), (8, 8), (1, 1)),
    ],
)
def test_grids_follow_the_proportions_of_template_and_tiles(n_tiles, template, tile, expected):
    assert grid_for(n_tiles, np.empty((*template, 3)), np.empty((1, *tile, 3))) == expected


def test_kernel_neighbors_are_the_eight_around_by_a_gaussian():
    near = neighbor_weights((3, 3)).toarray()
    center = near[4].reshape(3, 3)
    assert center[1, 1] == 0
    np.testing.assert_allclose(center[[0, 1, 1, 2], [1, 0, 2, 1]], center[0, 1])
    np.testing.assert_allclose(center[::2, ::2] / center[0, 1], np.exp(-0.5))
    np.testing.assert_array_equal(near, near.T)
    assert near.sum() == pytest.approx(9)
    # The upper left corner touches three cells only.
    np.testing.assert_array_equal(np.flatnonzero(near[0]), [1, 3, 4])


@pytest.mark.parametrize("edge", [40.0, 400.0])
def test_template_neighbors_hardly_count_across_an_edge(edge):
    wanted = np.random.default_rng(0).normal(0, 2, (36, 3)).astype(np.float32)
    wanted.reshape(6, 6, 3)[:, 3:] += np.float32(edge)
    near = neighbor_weights((6, 6), wanted).toarray()
    np.testing.assert_allclose(near, near.T)
    assert near.sum() == pytest.approx(36)
    across = near[np.arange(36).reshape(6, 6)[:, 2], np.arange(36).reshape(6, 6)[:, 3]]
    assert across.max() < 1e-6 * near.max()
    # Neither diagonals nor the ends of a row touch.
    assert near[0, 7] == near[5, 6] == 0
    assert ((near > 0).sum(axis=1) <= 4).all()


def test_neighbors_in_a_flat_template_count_alike():
    near = neighbor_weights((4, 5), np.zeros((20, 3), dtype=np.float32)).toarray()
    assert np.unique(near[near > 0]).size == 1
    assert (near > 0).sum() == 2 * (4 * 4 + 3 * 5)


def test_one_cell_has_no_neighbor():
    assert neighbor_weights((1, 1)).nnz == 0
    assert neighbor_weights((1, 1), np.zeros((1, 3), dtype=np.float32)).nnz == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (4, 7)])
def test_cells_that_are_reordered_together_are_not_neighbors(shape):
    near, rng = neighbor_weights(shape), np.random.default_rng(0)
    for _ in range(10):
        parts = _independent_cells(shape, rng)
        assert sorted(np.concatenate(parts)) == list(range(shape[0] * shape[1]))
        assert len(parts) <= 4
        for cells in parts:
            assert near[cells][:, cells].nnz == 0


@pytest.mark.parametrize("neighbors", ["kernel", "laplacian"])
def test_roughness_is_the_weighted_sum_over_all_pairs(neighbors):
    rng = np.random.default_rng(0)
    wanted = rng.normal(size=(12, 3)).astype(np.float32)
    near = neighbor_weights((3, 4))
    if neighbors == "laplacian":
        near = neighbor_weights((3, 4), wanted)
    colors = rng.normal(size=(15, 3)).astype(np.float32)
    looks = rng.normal(size=(15, 5)).astype(np.float32)
    mosaic = Mosaic(colors, wanted, looks, near, 0.25)
    items = rng.permutation(15)[:12]
    weights, x = near.toarray(), looks[items].astype(float)
    # eq. (19), pair by pair
    pairs = [weights[p, q] * np.sum((x[p] - x[q]) ** 2) for p in range(12) for q in range(12)]
    cost = np.mean([np.sum((colors[i] - b) ** 2) for i, b in zip(items, wanted, strict=True)])
    assert mosaic.roughness(items) == pytest.approx(sum(pairs) / 12)
    assert mosaic.template_cost(items) == pytest.approx(cost)
    assert mosaic.measure(items).value == pytest.approx(0.75 * cost + 0.125 * sum(pairs) / 12)
