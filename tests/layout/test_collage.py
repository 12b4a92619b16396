import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.datasets import load_sample_image
from sklearn.exceptions import NotFittedError

from unshuffle import Collage
from unshuffle.layout._collage import (
    LOOK,
    Mosaic,
    neighbor_weights,
    template_colors,
    tile_colors,
)


def cut(picture, shape):
    """The cells of a picture, row by row."""
    rows, columns = shape
    height, width = (side // n for side, n in zip(picture.shape, shape, strict=False))
    cells = picture[: rows * height, : columns * width]
    cells = cells.reshape(rows, height, columns, width, *picture.shape[2:])
    return cells.swapaxes(1, 2).reshape(rows * columns, height, width, *picture.shape[2:])


@pytest.fixture(scope="module")
def flower():
    return load_sample_image("flower.jpg")[::2, ::2]


@pytest.fixture(scope="module")
def tiles():
    """Three hundred crops of a photograph of a temple."""
    temple = load_sample_image("china.jpg")
    corners = np.random.default_rng(0).integers(0, np.array(temple.shape[:2]) - 16, (300, 2))
    return np.stack([temple[y : y + 16, x : x + 16] for y, x in corners])


def direct_costs(template, tiles, shape, detail):
    """Every tile in every cell: mean squared differences of color, in double precision."""
    wanted = template_colors(template, shape, detail).astype(float)
    colors = tile_colors(tiles, detail).astype(float)
    return np.square(wanted[:, np.newaxis] - colors).sum(axis=2)


@pytest.mark.parametrize("detail", [1, 3])
@pytest.mark.parametrize("smoothness", [0, 0.3])
def test_the_cells_of_the_template_come_back_in_place(flower, detail, smoothness):
    shape = (14, 20)
    template = flower[:210, :320]
    order = np.random.default_rng(0).permutation(280)
    tiles = cut(template, shape)[order]
    collage = Collage(template, shape, smoothness, detail=detail, random_state=0).fit(tiles)
    if smoothness == 0:
        np.testing.assert_array_equal(order[collage.grid_.ravel()], np.arange(280))
        assert collage.cost_ < 1e-6
        np.testing.assert_array_equal(collage.render(tiles), template)
    else:
        # Some cells are so alike that changing places makes the picture smoother.
        assert np.mean(order[collage.grid_.ravel()] == np.arange(280)) > 0.5


@pytest.mark.parametrize("noise", [2, 60])
@pytest.mark.parametrize("detail", [1, 3])
def test_without_smoothness_the_assignment_is_the_best(flower, noise, detail):
    shape = (18, 27)
    spread = np.random.default_rng(0).normal(0, noise, (18 * 27, 11, 11, 3))
    tiles = np.clip(cut(flower, shape) + spread, 0, 255).astype(np.uint8)
    collage = Collage(flower, shape, 0, detail=detail).fit(tiles)
    costs = direct_costs(flower, tiles, shape, detail)
    assert sorted(collage.grid_.ravel()) == list(range(18 * 27))
    assert collage.cost_ == pytest.approx(costs[linear_sum_assignment(costs)].mean(), rel=1e-6)
    assert collage.cost_ == pytest.approx(costs[np.arange(18 * 27), collage.grid_.ravel()].mean())


@pytest.mark.parametrize("detail", [1, 4])
def test_more_tiles_than_cells_give_the_best_choice(flower, tiles, detail):
    collage = Collage(flower, (8, 12), 0, detail=detail).fit(tiles)
    costs = direct_costs(flower, tiles, (8, 12), detail)
    used = collage.grid_.ravel()
    assert np.unique(used).size == 96
    assert collage.cost_ == pytest.approx(costs[linear_sum_assignment(costs)].mean(), rel=1e-6)


def test_repeats_come_closer_to_the_template_and_are_bounded(flower, tiles):
    costs = []
    for repeat in (1, 2, 5, 96):
        collage = Collage(flower, (8, 12), 0, repeat=repeat).fit(tiles)
        assert np.bincount(collage.grid_.ravel()).max() <= repeat
        costs.append(collage.cost_)
    assert np.all(np.diff(costs) < 0)
    nearest = direct_costs(flower, tiles, (8, 12), 3).min(axis=1)
    assert costs[-1] == pytest.approx(nearest.mean(), rel=1e-5)


@pytest.mark.parametrize("smoothness", [0, 0.4])
def test_few_tiles_are_repeated_as_little_as_the_cells_ask_for(flower, tiles, smoothness):
    collage = Collage(flower, (6, 9), smoothness, random_state=0).fit(tiles[:20])
    counts = np.bincount(collage.grid_.ravel(), minlength=20)
    assert counts.max() == 3
    assert counts.sum() == 54


def test_repeats_enlarge_the_grid_that_is_chosen(flower, tiles):
    assert Collage(flower, smoothness=0).fit(tiles).grid_.shape == (14, 21)
    assert Collage(flower, smoothness=0, repeat=4).fit(tiles).grid_.shape == (28, 42)


@pytest.mark.parametrize("neighbors", ["kernel", "laplacian"])
def test_smoothness_trades_the_template_for_calm(flower, tiles, neighbors):
    fitted = [
        Collage(flower, (12, 18), s, neighbors=neighbors, random_state=0).fit(tiles)
        for s in (0, 0.3, 0.6, 0.9, 1)
    ]
    assert np.all(np.diff([collage.cost_ for collage in fitted]) > 0)
    assert np.all(np.diff([collage.roughness_ for collage in fitted]) < 0)
    # Which tiles are used is decided by the template alone.
    used = {tuple(np.sort(collage.grid_.ravel())) for collage in fitted}
    assert len(used) == 1


@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.integers(1, 60),
    st.floats(0, 1),
    st.sampled_from(["kernel", "laplacian"]),
    st.integers(0, 2**31 - 1),
)
def test_the_objective_never_ends_above_its_start(shape, n_tiles, smoothness, neighbors, seed):
    rng = np.random.default_rng(seed)
    template = rng.integers(0, 256, (14, 14, 3), dtype=np.uint8)
    tiles = rng.integers(0, 256, (n_tiles, 2, 2, 3), dtype=np.uint8)
    values = []
    collage = Collage(
        template,
        shape,
        smoothness,
        neighbors=neighbors,
        random_state=seed,
        callback=lambda state: values.append(-state.objective),
    ).fit(tiles)
    assert np.all(np.diff(values) <= 0)
    assert values[-1] == pytest.approx(
        (1 - smoothness) * collage.cost_ + smoothness / 2 * collage.roughness_
    )
    counts = np.bincount(collage.grid_.ravel(), minlength=n_tiles)
    assert counts.max() <= -(-shape[0] * shape[1] // n_tiles)


@pytest.mark.parametrize("neighbors", ["kernel", "laplacian"])
@pytest.mark.parametrize("smoothness", [0.3, 0.9])
def test_no_exchange_of_two_tiles_gains_much(flower, tiles, neighbors, smoothness):
    shape = (8, 10)
    collage = Collage(flower, shape, smoothness, neighbors=neighbors, random_state=0)
    cells = collage.fit(tiles[:80]).grid_.ravel()
    wanted = template_colors(flower, shape, 3)
    near = neighbor_weights(shape, wanted)
    if neighbors == "kernel":
        near = neighbor_weights(shape)
    looks = tile_colors(tiles, LOOK)
    mosaic = Mosaic(tile_colors(tiles, 3), wanted, looks, near, smoothness)
    found, lowest = mosaic.measure(cells).value, np.inf
    for p, q in combinations(range(80), 2):
        swapped = cells.copy()
        swapped[[p, q]] = cells[[q, p]]
        lowest = min(lowest, mosaic.measure(swapped).value)
    assert lowest > 0.99 * found


@pytest.mark.parametrize("neighbors", ["kernel", "laplacian"])
def test_roughness_is_the_mean_difference_of_neighbors(flower, tiles, neighbors):
    collage = Collage(flower, (7, 9), 0.5, neighbors=neighbors, random_state=0).fit(tiles)
    near = neighbor_weights((7, 9))
    if neighbors == "laplacian":
        near = neighbor_weights((7, 9), template_colors(flower, (7, 9), 3))
    looks = tile_colors(tiles, LOOK)[collage.grid_.ravel()].astype(float)
    apart = np.square(looks[:, np.newaxis] - looks).sum(axis=2)
    # eq. (19), over the total weight
    assert collage.roughness_ == pytest.approx(
        (near.toarray() * apart).sum() / near.sum(), rel=1e-5
    )


def test_calm_areas_may_end_where_the_template_has_an_edge(tiles):
    template = np.full((60, 60), 60, dtype=np.uint8)
    template[:, 30:] = 190

    def steps(neighbors):
        found = []
        for seed in range(4):
            collage = Collage(template, (12, 12), 0.8, neighbors=neighbors, random_state=seed)
            light = tile_colors(tiles, 1)[collage.fit(tiles).grid_][..., 0]
            found.append(np.abs(np.diff(light, axis=1)).mean(axis=0))
        return np.mean(found, axis=0)

    kept, blurred = steps("laplacian"), steps("kernel")
    # The sixth of eleven steps between columns crosses the edge.
    assert kept[5] > blurred[5]
    assert np.argmax(kept) == 5
    assert np.delete(kept, 5).mean() < 1.05 * np.delete(blurred, 5).mean()


@pytest.mark.slow
def test_the_result_depends_on_the_seed_and_not_on_threads(flower, tiles):
    def grid(**options):
        # So many cells that they are assigned in several groups.
        return Collage(flower, (28, 42), 0.5, **options).fit(tiles).grid_

    np.testing.assert_array_equal(grid(random_state=3, n_jobs=1), grid(random_state=3, n_jobs=2))
    np.testing.assert_array_equal(
        grid(random_state=3), grid(random_state=np.random.RandomState(3))
    )
    assert (grid(random_state=3) != grid(random_state=4)).any()


def test_detail_follows_edges_within_a_cell():
    template = np.zeros((2, 2), dtype=np.uint8)
    template[:, 1] = 255
    tiles = np.zeros((2, 4, 4), dtype=np.uint8)
    tiles[0, :, :2] = tiles[1, :, 2:] = 255
    assert Collage(template, (1, 1), detail=2).fit(tiles).grid_ == 1
    assert Collage(template[:, ::-1], (1, 1), detail=2).fit(tiles).grid_ == 0


def test_gray_pictures_give_the_same_as_their_color_versions(flower, tiles):
    gray, colored = tiles[..., 1], np.repeat(tiles[..., 1:2], 3, axis=3)
    template = flower[..., 0]
    first = Collage(template, (5, 8), random_state=0).fit(gray)
    second = Collage(np.stack([template] * 3, axis=2), (5, 8), random_state=0).fit(colored)
    np.testing.assert_array_equal(first.grid_, second.grid_)
    assert first.cost_ == second.cost_
    assert first.render(gray).shape == (80, 128, 3)


def test_tiles_need_not_be_square(flower, tiles):
    collage = Collage(flower, smoothness=0.2, random_state=0).fit(tiles[:, :8])
    rows, columns = collage.grid_.shape
    picture = collage.render(tiles[:, :8])
    assert picture.shape == (8 * rows, 16 * columns, 3)
    # Wide tiles: more rows, so that the picture keeps the proportions of the template.
    assert rows / columns == pytest.approx(2 * 213 / 320, rel=0.1)


@pytest.mark.parametrize("neighbors", ["kernel", "laplacian"])
@pytest.mark.parametrize(
    ("shape", "n_tiles"), [((1, 1), 1), ((4, 4), 1), ((1, 9), 9), ((9, 1), 3)]
)
def test_the_smallest_collages_are_made(flower, tiles, shape, n_tiles, neighbors):
    collage = Collage(flower, shape, 0.5, neighbors=neighbors, random_state=0)
    grid = collage.fit(tiles[:n_tiles]).grid_
    assert grid.shape == shape
    assert np.unique(grid).size == n_tiles
    assert collage.roughness_ == 0 if n_tiles == 1 else collage.roughness_ > 0


def test_one_tile_makes_one_cell_by_default(flower, tiles):
    assert Collage(flower).fit(tiles[:1]).grid_.tolist() == [[0]]


def test_equal_tiles_and_a_flat_template_are_no_trouble():
    tiles = np.full((30, 3, 3), 9, dtype=np.uint8)
    collage = Collage(np.full((5, 5), 9, dtype=np.uint8), (4, 4), 0.5, random_state=0).fit(tiles)
    assert max(collage.cost_, collage.roughness_) < 1e-9
    assert np.unique(collage.grid_).size == 16


def test_a_picture_is_rendered_from_larger_tiles(flower, tiles):
    collage = Collage(flower, (6, 9), 0.3, random_state=0).fit(tiles)
    larger = tiles.repeat(2, axis=1).repeat(3, axis=2)
    picture = collage.render(larger)
    assert picture.shape == (6 * 32, 9 * 48, 3)
    for row, column in ((0, 0), (5, 8), (2, 7)):
        part = picture[32 * row : 32 * (row + 1), 48 * column : 48 * (column + 1)]
        np.testing.assert_array_equal(part, larger[collage.grid_[row, column]])


def test_rendering_asks_for_the_fitted_tiles(flower, tiles):
    collage = Collage(flower, (6, 9), 0)
    with pytest.raises(NotFittedError):
        collage.render(tiles)
    collage.fit(tiles)
    assert collage.n_tiles_ == 300
    with pytest.raises(ValueError, match="`X` has 299 items; the fitted one has 300"):
        collage.render(tiles[1:])


def test_what_is_passed_stays_as_it_was(flower, tiles):
    template, given, shape = flower.copy(), tiles.copy(), [6, 9]
    template.flags.writeable = given.flags.writeable = False
    collage = Collage(template, shape, random_state=0).fit(given)
    assert collage.template is template
    assert collage.shape is shape
    np.testing.assert_array_equal(given, tiles)
    np.testing.assert_array_equal(template, flower)


def test_it_is_cloned_and_pickled_like_any_estimator(flower, tiles):
    collage = Collage(flower, (6, 9), 0.4, repeat=2, detail=2, random_state=0)
    assert set(collage.get_params()) == {
        *("template", "shape", "smoothness", "repeat", "detail", "neighbors"),
        *("random_state", "n_jobs", "callback"),
    }
    fresh = clone(collage).set_params(neighbors="laplacian")
    assert (fresh.repeat, fresh.neighbors, collage.neighbors) == (2, "laplacian", "kernel")
    assert "smoothness=0.4" in repr(collage)
    again = pickle.loads(pickle.dumps(collage.fit(tiles)))
    np.testing.assert_array_equal(again.grid_, collage.grid_)
    np.testing.assert_array_equal(again.render(tiles), collage.render(tiles))


@pytest.mark.parametrize("smoothness", [0, 0.5])
def test_the_callback_sees_every_step(flower, tiles, smoothness):
    states = []
    collage = Collage(flower, (6, 9), smoothness, random_state=0, callback=states.append)
    collage.fit(tiles)
    assert [state.iteration for state in states] == list(range(1, collage.n_iter_ + 1))
    assert np.all(np.diff([state.fraction for state in states]) >= 0)
    assert states[-1].fraction == 1
    assert all(state.stage for state in states)
    np.testing.assert_array_equal(states[-1].permutation, collage.grid_.ravel())
    assert states[-1].permutation.base is None


@pytest.mark.parametrize("last", [1, 5])
def test_the_callback_stops_with_the_collage_so_far(flower, tiles, last):
    states = []

    def stop(state):
        states.append(state)
        return state.iteration == last

    collage = Collage(flower, (6, 9), 0.5, random_state=0, callback=stop).fit(tiles)
    assert collage.n_iter_ == len(states) == last
    np.testing.assert_array_equal(states[-1].permutation, collage.grid_.ravel())


def test_an_interrupt_keeps_the_collage_and_goes_on_to_the_caller(flower, tiles):
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    collage = Collage(flower, (6, 9), 0.5, random_state=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        collage.fit(tiles)
    assert collage.n_iter_ == 3
    assert collage.render(tiles).shape == (96, 144, 3)


def test_an_interrupt_before_the_first_collage_leaves_the_earlier_one(flower, tiles, monkeypatch):
    collage = Collage(flower, (6, 9), 0.5, random_state=0).fit(tiles)
    before = vars(collage).copy()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unshuffle.layout._collage._nearest", interrupt)
    with pytest.raises(KeyboardInterrupt):
        collage.fit(tiles[:60])
    assert vars(collage) == before


def test_an_interrupt_between_steps_keeps_the_best_collage(flower, tiles, monkeypatch):
    states = []
    collage = Collage(flower, (6, 9), 0.5, random_state=0, callback=states.append)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unshuffle.layout._collage._Tray.descend", interrupt)
    with pytest.raises(KeyboardInterrupt):
        collage.fit(tiles)
    assert collage.n_iter_ == len(states) > 2
    np.testing.assert_array_equal(collage.grid_.ravel(), states[-1].permutation)
    assert -states[-1].objective == pytest.approx(collage.cost_ / 2 + collage.roughness_ / 4)


def test_a_refused_second_fit_leaves_no_mixture(flower, tiles):
    collage = Collage(flower, (6, 9), 0, random_state=0).fit(tiles)
    before = collage.grid_
    with pytest.raises(ValueError, match="must hold whole numbers"):
        collage.fit(tiles[:60] / 255)
    assert collage.n_tiles_ == 300
    assert collage.grid_ is before


BAD_TEMPLATES = {
    "numbers from 0 to 1": lambda picture: picture / 255,
    "several pictures": lambda picture: picture[np.newaxis],
    "four channels": lambda picture: np.dstack([picture, picture[..., :1]]),
    "one row of numbers": lambda picture: picture[0, :, 0],
}


@pytest.mark.parametrize("bad", BAD_TEMPLATES.values(), ids=BAD_TEMPLATES)
def test_what_is_no_template_is_refused(flower, tiles, bad):
    with pytest.raises(ValueError, match=r"`template` must be one picture of dtype uint8 .* got"):
        Collage(bad(flower)).fit(tiles)


def test_an_empty_template_is_refused(flower, tiles):
    with pytest.raises(ValueError, match="`template` is empty"):
        Collage(flower[:0]).fit(tiles)


def test_tiles_of_other_kinds_are_refused(flower, tiles):
    with pytest.raises(ValueError, match="`X` must hold whole numbers from 0 to 255"):
        Collage(flower).fit(tiles.astype(float))
    with pytest.raises(ValueError, match=r"`X` must have shape .* got \(300, 768\)"):
        Collage(flower).fit(tiles.reshape(300, -1))
    with pytest.raises(ValueError, match="`X` is empty"):
        Collage(flower).fit(tiles[:0])
    with pytest.raises(ValueError, match="`X` is empty"):
        Collage(flower).fit([])


def test_tiles_of_several_sizes_are_told_with_two_of_them(flower, tiles):
    with pytest.raises(ValueError, match=r"one size, got 2 sizes such as \(4, 16, 3\) and \(16"):
        Collage(flower).fit([*tiles, tiles[0][:4]])


def test_a_template_with_transparency_is_refused_with_what_to_drop(flower, tiles):
    with pytest.raises(ValueError, match=r"and dtype uint8. Drop its transparency: \[..., :3\]"):
        Collage(np.dstack([flower, flower[..., :1]])).fit(tiles)


def test_too_few_tiles_are_told_with_both_numbers_and_what_to_do(flower, tiles):
    with pytest.raises(ValueError, match=r"300 tiles .* 1 time\(s\) .* 600 cells.*repeat=2"):
        Collage(flower, (20, 30), repeat=1).fit(tiles)
    with pytest.raises(ValueError, match=r"7 tiles .* 2 time\(s\) .* 15 cells.*repeat=3"):
        Collage(flower, (3, 5), repeat=2).fit(tiles[:7])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"smoothness": -0.1}, "`smoothness` must be a finite number at least 0 and at most 1"),
        ({"smoothness": 1.5}, "`smoothness` must be a finite number at least 0 and at most 1"),
        ({"smoothness": float("nan")}, "`smoothness` must be"),
        ({"repeat": 0}, "`repeat` must be"),
        ({"detail": 17}, "`detail` must be"),
        ({"neighbors": "all"}, "`neighbors` must be"),
        ({"shape": (4, 0)}, "`shape` has no cell: it is 4 x 0"),
        ({"shape": (4, 4, 4)}, r"`shape` must be \(rows, columns\)"),
        ({"shape": (2.5, 4)}, r"`shape` must be \(rows, columns\)"),
    ],
)
def test_parameters_outside_their_range_are_refused(flower, tiles, options, words):
    with pytest.raises(ValueError, match=words):
        Collage(flower, **options).fit(tiles)


def test_more_than_fits_into_memory_is_refused_first(flower, tiles, monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match="Comparing 600 tiles with 600 cells"):
        Collage(flower, (20, 30), repeat=2).fit(tiles)
