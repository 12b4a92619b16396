import numpy as np
import pytest


@pytest.fixture(scope="session")
def check_layout():
    """Assert that each item has one cell of its own, an open one, and that all parts agree."""

    def check(layout, n_items, mask=None):
        cells = layout.grid_.ravel()
        assert np.array_equal(np.sort(cells[cells >= 0]), np.arange(n_items))
        assert np.all(cells[cells < 0] == -1)
        assert layout.positions_.shape == (n_items, 2)
        if layout.grid_.ndim == 2:
            rows, columns = layout.positions_.T
            assert np.array_equal(layout.grid_[rows, columns], np.arange(n_items))
        else:
            cell_of_item = np.argsort(cells, kind="stable")[cells.size - n_items :]
            points = np.asarray(layout.shape, dtype=float)
            assert np.array_equal(layout.positions_, points[cell_of_item])
        if mask is not None:
            assert np.all(layout.grid_[~mask] == -1)

    return check


@pytest.fixture(scope="session")
def lattice():
    """Row and column of each cell of a grid, in shuffled order, and that order."""

    def make(rows, columns, seed):
        places = np.stack(np.mgrid[:rows, :columns], axis=-1).reshape(-1, 2).astype(float)
        order = np.random.default_rng(seed).permutation(rows * columns)
        return places[order], order

    return make


@pytest.fixture(scope="session")
def colors():
    return lambda n_items, seed=0: np.random.default_rng(seed).random((n_items, 3))
