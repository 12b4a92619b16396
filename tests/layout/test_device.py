import subprocess
import sys

import numpy as np
import pytest

from unshuffle import GridLayout, sort_grid
from unshuffle._run.device import to_host
from unshuffle.layout._gpu import plain as _device_plain
from unshuffle.layout._gpu.groups import coarse_sizes, draw_groups
from unshuffle.metrics import neighbor_distance

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(12, 9), (1, 40), (40, 1), (2, 2), (3, 30), (1, 1)])
@pytest.mark.parametrize("wrap", [False, True])
def test_every_item_has_one_cell(gpu, check_layout, colors, shape, wrap):
    X = colors(shape[0] * shape[1])
    layout = GridLayout(shape, wrap=wrap, quality="fast", random_state=0, device=gpu).fit(X)
    check_layout(layout, len(X))


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 20, 100])
def test_any_number_of_features(gpu, check_layout, n_features):
    X = np.random.default_rng(0).normal(size=(48, n_features))
    check_layout(GridLayout(quality="fast", random_state=0, device=gpu).fit(X), 48)


@pytest.mark.parametrize("n_features", [3, 5])
def test_frozen_items_stay_and_masks_are_respected(gpu, check_layout, n_features):
    rng = np.random.default_rng(0)
    mask = rng.random((14, 11)) < 0.8
    open_cells = np.flatnonzero(mask)
    for n_items in (open_cells.size, open_cells.size - 9):
        frozen = np.stack([np.arange(7), rng.choice(open_cells, 7, replace=False)], axis=1)
        X = rng.normal(size=(n_items, n_features))
        layout = GridLayout(mask, quality="fast", random_state=0, device=gpu)
        layout.fit(X, frozen=frozen)
        check_layout(layout, n_items, mask)
        assert np.array_equal(layout.grid_.ravel()[frozen[:, 1]], frozen[:, 0])


def test_added_items_fill_empty_cells_only(gpu, check_layout, colors):
    X = colors(90)
    for rows in (X, torch.as_tensor(X)):
        layout = GridLayout((10, 10), quality="fast", random_state=0, device=gpu).fit(rows[:70])
        before = np.array(to_host(layout.grid_))
        layout.add(rows[70:])
        after = np.array(to_host(layout.grid_))
        assert np.array_equal(after[before >= 0], before[before >= 0])
        assert np.array_equal(np.sort(after[after >= 0]), np.arange(90))


def test_the_same_seed_gives_the_same_layout(gpu, colors):
    X = colors(200)
    make = lambda seed: GridLayout(quality="fast", random_state=seed, device=gpu).fit(X).grid_  # noqa: E731
    assert np.array_equal(make(3), make(3))
    assert not np.array_equal(make(3), make(4))


@pytest.mark.parametrize("shape", [(32, 32), (48, 20)])
def test_layouts_are_as_good_as_those_of_the_cores(gpu, colors, shape):
    distances = []
    for device in (None, gpu):
        each = []
        for seed in range(3):
            X = colors(shape[0] * shape[1], seed)
            layout = GridLayout(shape, quality="fast", random_state=seed, device=device).fit(X)
            each.append(neighbor_distance(X, layout.grid_))
        distances.append(np.mean(each))
    assert distances[1] < 1.02 * distances[0]


def test_on_a_torus_opposite_edges_are_similar(gpu, colors):
    X = colors(24 * 24)
    grids = [
        GridLayout((24, 24), wrap=wrap, quality="fast", random_state=0, device=gpu).fit(X).grid_
        for wrap in (True, False)
    ]
    across = [np.linalg.norm(X[grid[0]] - X[grid[-1]], axis=1).mean() for grid in grids]
    assert across[0] < 0.5 * across[1]
    assert neighbor_distance(X, grids[0], wrap=True) < 0.2


def test_tensors_in_tensors_out(gpu, real_or_stand_in, colors):
    X = colors(120)
    tensor = torch.as_tensor(X, device=real_or_stand_in)
    copy = tensor.clone()
    layout = GridLayout((10, 12), quality="fast", random_state=0, device=gpu).fit(tensor)
    assert layout.grid_.device == layout.positions_.device == tensor.device
    rows, columns = layout.positions_.T
    assert torch.equal(layout.grid_[rows, columns].cpu(), torch.arange(120))
    arranged = layout.arrange(tensor)
    assert arranged.device == tensor.device
    assert torch.equal(arranged, tensor[layout.grid_])
    assert 0.8 < layout.score_ <= 1
    assert torch.equal(tensor, copy)
    on_host = GridLayout((10, 12), quality="fast", random_state=0, device=gpu).fit(X)
    assert isinstance(on_host.grid_, np.ndarray)
    assert np.array_equal(on_host.arrange(X), X[on_host.grid_])
    assert on_host.n_features_in_ == layout.n_features_in_ == 3


def test_arranged_tensors_are_filled(gpu, real_or_stand_in, colors):
    values = torch.arange(10.0, device=real_or_stand_in)
    layout = GridLayout((3, 4), quality="fast", random_state=0, device=gpu)
    layout.fit(torch.as_tensor(colors(10), device=real_or_stand_in))
    arranged = layout.arrange(values, fill=-5)
    assert torch.equal(arranged == -5, layout.grid_ == -1)
    assert (layout.arrange(values)[layout.grid_ == -1] == 0).all()
    with pytest.raises(ValueError, match="values"):
        layout.arrange(values[:5])


@pytest.fixture
def real_or_stand_in():
    return "cuda" if torch.cuda.is_available() else "cpu"


def test_kernels_other_than_linear_are_features(gpu, check_layout, colors):
    layout = GridLayout(kernel="rbf", quality="fast", random_state=0, device=gpu).fit(colors(49))
    check_layout(layout, 49)
    assert layout.score_ > 0.8


def test_a_callback_sees_every_width_and_may_stop(gpu, check_layout, colors):
    states = []

    def stop(state):
        states.append(state)
        return len(states) == 3

    layout = GridLayout((9, 9), random_state=0, device=gpu, callback=stop).fit(colors(80))
    check_layout(layout, 80)
    assert layout.n_iter_ == 3
    assert states[-1].permutation.shape == (80,)
    assert states[0].objective < states[-1].objective
    assert 0 < states[0].fraction < states[1].fraction < 1


def test_ctrl_c_keeps_the_layout_so_far(gpu, check_layout, colors):
    def interrupt(state):
        raise KeyboardInterrupt

    layout = GridLayout((9, 9), random_state=0, device=gpu, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(80))
    check_layout(layout, 80)


def test_what_needs_the_cores_is_refused(gpu, colors):
    with pytest.raises(ValueError, match='quality="classic" runs on the CPU only'):
        GridLayout(quality="classic", device=gpu).fit(colors(9))
    with pytest.raises(ValueError, match="layouts on points run on the CPU only"):
        GridLayout(np.random.default_rng(0).random((9, 2)), device=gpu).fit(colors(9))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full((9, 3), np.nan), "NaN"),
        (np.full((9, 3), np.inf), "infinity"),
        (np.ones(9), "2-D"),
        (np.ones((0, 3)), "empty"),
        (1e9 + np.arange(9.0)[:, None] * 1e-7, "rounding"),
    ],
)
def test_bad_items_are_refused_as_on_the_cores(gpu, bad, message):
    for X in (bad, torch.as_tensor(bad)):
        with pytest.raises(ValueError, match=message):
            GridLayout(device=gpu).fit(X)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_units_and_outliers_do_not_matter(gpu, colors, scale):
    X = colors(144)
    X[5] = 1e9
    make = lambda X: GridLayout((12, 12), quality="fast", random_state=0, device=gpu).fit(X)  # noqa: E731
    grid = make(scale * (X / 1e9)).grid_
    rest = grid.copy()
    rest[rest == 5] = -1
    assert neighbor_distance(X, rest) < 0.35


def test_a_layout_of_frozen_items_is_the_given_one(gpu, colors):
    pairs = np.stack([np.arange(12), np.random.default_rng(0).permutation(12)], axis=1)
    layout = GridLayout((3, 4), device=gpu, quality="fast").fit(colors(12), frozen=pairs)
    assert np.array_equal(layout.grid_.ravel()[pairs[:, 1]], pairs[:, 0])


def test_numbers_far_from_zero_are_compared_by_their_differences(gpu, colors):
    X = colors(144)
    layout = GridLayout((12, 12), quality="fast", random_state=0, device=gpu).fit(X + 2.0**40)
    assert neighbor_distance(X, layout.grid_) < 0.3


def test_equal_items_are_laid_out(gpu, check_layout):
    check_layout(GridLayout(device=gpu, quality="fast", random_state=0).fit(np.ones((20, 4))), 20)


@pytest.mark.parametrize("shape", [(3, 12, 17), (1, 8, 8), (7, 9, 6)])
def test_sorted_grids_hold_the_vectors_of_their_indices(gpu, shape):
    grid = np.random.default_rng(0).random(shape)
    for given, device in [(grid, None), (grid, gpu), (torch.as_tensor(grid), gpu)]:
        found, indices = sort_grid(given, quality="fast", random_state=0, device=device)
        assert type(found) is type(indices) is type(given)
        assert found.dtype == given.dtype
        assert (found == given.reshape(shape[0], -1)[:, indices]).all()
        assert np.array_equal(np.sort(np.ravel(to_host(indices))), np.arange(shape[1] * shape[2]))


def test_sorted_tensors_of_the_cores_are_tensors():
    grid = torch.arange(60).reshape(1, 6, 10)
    found, indices = sort_grid(grid, quality="fast", random_state=0)
    assert found.dtype == torch.int64
    assert torch.equal(found, grid.reshape(1, -1)[:, indices])


@pytest.mark.parametrize("shape", [(4, 5), (3, 0, 5), (1, 2, 3, 4)])
def test_only_grids_of_channels_are_sorted(shape):
    with pytest.raises(ValueError, match=r"\(channels, rows, columns\)"):
        sort_grid(np.ones(shape))


@pytest.mark.parametrize("size", [(20, 13), (1, 40), (64, 48)])
@pytest.mark.parametrize("wrap", [False, True])
def test_averages_are_those_of_the_cores(size, wrap):
    from unshuffle._run.parallel import Workers
    from unshuffle.layout._cpu.surfaces import Raster

    planes = np.random.default_rng(0).normal(size=(2, *size)).astype(np.float32)
    with Workers(1) as workers:
        expected = Raster(*size, wrap).average(planes.reshape(2, -1), 1.7, workers)
    found = _device_plain.average(torch.as_tensor(planes), 1.7, wrap=wrap)
    np.testing.assert_allclose(found.reshape(2, -1), expected, atol=1e-5)


def test_wide_averages_are_close_to_exact_ones():
    planes = torch.as_tensor(np.random.default_rng(0).normal(size=(1, 100, 70))).float()
    exact = planes
    for axis in (1, 2):
        exact = _device_plain._blur(exact, axis, 9.0, False)
    assert coarse_sizes(100, 70, 9.0) == [(25, 18)]
    found = _device_plain.average(planes, 9.0, wrap=False)
    assert float((found - exact).norm() / exact.norm()) < 0.15


@pytest.mark.parametrize("size", [(20, 13), (1, 40), (33, 1), (5, 2), (100, 90)])
@pytest.mark.parametrize("n", [8, 16])
def test_groups_of_a_pass_hold_every_cell_once(size, n):
    widths = np.geomspace(0.8, 40, 30)
    groups = draw_groups(
        size, n, widths, widths, wrap=True, own=True, rng=np.random.default_rng(0), device="cpu"
    )
    for row in groups.table.tolist():
        cells, inside = _device_plain._group_cells(row, size, "cpu")
        assert cells.shape == (row[0], n)
        assert np.array_equal(np.sort(cells[inside].numpy()), np.arange(size[0] * size[1]))


def test_in_a_tournament_all_pairs_meet_once():
    for n in (2, 8, 16):
        partners = _device_plain.tournament(n)
        met = {(min(i, j), max(i, j)) for row in partners for i, j in enumerate(row)}
        assert len(met) == n * (n - 1) // 2


def test_without_numba_layouts_run_on_a_device():
    script = """
import sys
sys.modules["numba"] = None
import numpy as np
import torch
import unshuffle._run.device
if not torch.cuda.is_available():
    unshuffle._run.device._gpu = lambda torch, name: torch.device("cpu")
from unshuffle import GridLayout
X = np.random.default_rng(0).random((25, 3))
print(GridLayout(quality="fast", device="cuda").fit(X).grid_.shape)
try:
    GridLayout(quality="fast").fit(X)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("(5, 5)\nWork on the CPU needs numba"), done.stderr


def test_work_that_does_not_fit_is_refused(real_gpu):
    mask = np.ones((32_000, 32_000), dtype=bool)
    layout = GridLayout(mask, quality="best", device=real_gpu)
    items = np.random.default_rng(0).random((100, 60))
    with pytest.raises(MemoryError, match="GB on cuda"):
        layout.fit(items)  # a terabyte: more than any GPU has
