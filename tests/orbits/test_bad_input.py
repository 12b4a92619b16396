import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from unshuffle import OrbitLearner


def points(n=12, d=3, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, (n, d))


def with_row(value):
    X = points()
    X[4] = value
    return X


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (with_row(np.nan), r"X contains NaN .in 1 of 12 rows, the first is row 4"),
        (with_row(np.inf), "X contains infinity"),
        (with_row(0.0), r"zero vector.*drop these rows"),
        (np.ones((5, 3)), "All rows of X are equal"),
        (1e-160 * points(), "differ by at most .*Multiply"),
        (1e160 * points(), "square is too large for a float"),
        (points(n=1), "1 row.*at least two"),
        (np.arange(5.0), "must be 2-D"),
        ([["a", "b"], ["c", "d"]], "could not convert string"),
    ],
)
def test_bad_vectors_raise_a_clear_error(X, words):
    with pytest.raises(ValueError, match=words):
        OrbitLearner(1).fit(X)


@pytest.mark.parametrize("pairs", ["knn", "all", "prototype"])
def test_fewer_points_than_generators_are_refused(pairs):
    with pytest.raises(ValueError, match="n_generators=5 is more than the 4 points"):
        OrbitLearner(5, pairs=pairs).fit(points(n=4))


def test_sparse_vectors_are_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        OrbitLearner(1).fit(sparse.csr_matrix(points()))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_generators": 9, "pairs": [[0, 1], [1, 2]]}, "=9 is more than the 2 pairs"),
        ({"n_generators": 10}, "=10 is more than the 9 independent matrices"),
        ({"n_generators": 4, "structure": "diagonal"}, "more than the 3 independent"),
        ({"loss": "logtrace"}, 'cannot learn .*"general".*loss="squared"|structure=.general'),
        ({"loss": "logtrace", "structure": "skew"}, "rotations all cost the same"),
        ({"pairs": "some"}, "`pairs` must be"),
        ({"pairs": [[0, 1, 2]]}, r"shape \(1, 3\)"),
        ({"pairs": [[0.5, 1.0]]}, "whole numbers"),
        ({"pairs": [[0, 12]]}, r"Row 0 of `pairs` is \[0, 12\].*rows 0 to 11"),
        ({"pairs": [[0, 1], [3, 3]]}, "Row 1 of `pairs` pairs row 3 of X with itself"),
        ({"pattern": np.ones((2, 2), dtype=bool)}, r"boolean of shape \(3, 3\)"),
        ({"pattern": np.ones((3, 3))}, "dtype float64"),
        ({"pattern": np.zeros((3, 3), dtype=bool)}, "allow only the zero matrix"),
        (
            {"structure": "skew", "pattern": np.triu(np.ones((3, 3), dtype=bool))},
            r"entries \(0, 1\) and \(1, 0\) differently",
        ),
        ({"prototype": 12}, "rows 0 to 11"),
        ({"prototype": [1.0, 2.0]}, r"3 numbers, or None for the medoid, got shape \(2,\)"),
        ({"prototype": [0.0, 0.0, 0.0]}, "only zeros"),
        ({"prototype": [np.nan, 0.0, 0.0]}, "NaN or infinity"),
        ({"prototype": [[1.0], [1.0, 2.0]]}, "must be the index of a row of X, 3 numbers"),
        ({"prototype": [1e200, 1.0, 1.0]}, r"at most 1e\+200 and the data of 1\..*medoid"),
        ({"prototype": points().mean(axis=0), "n_components": 2}, r"at most \S+ and the data"),
        ({"pattern": [[True], [True, False]]}, r"boolean of shape \(3, 3\).*got shape \(2,\)"),
        ({"pairs": [(0, 1), (1,)]}, "whole numbers of shape"),
        ({"n_components": 4}, "n_components=4 is more than the 3 directions"),
        ({"constraints": (np.eye(9), np.ones(9))}, 'Use loss="logtrace"'),
    ],
)
def test_parameters_that_cannot_work_say_why(parameters, words):
    with pytest.raises(ValueError, match=words):
        OrbitLearner(**parameters).fit(points())


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ((np.eye(3), np.ones(3)), r"G of shape \(m, 9\).*got \(3, 3\)"),
        ((np.eye(9), np.ones(3)), r"got \(9, 9\) and \(3,\)"),
        ((np.full((1, 9), np.nan), [1.0]), "NaN or infinity"),
        ((np.eye(9),), "must be a pair"),
        ((1j * np.eye(9), np.ones(9)), "real numbers"),
        ((1e200 * np.eye(9), np.ones(9)), "G of `constraints` holds 1e"),
        ((np.array([np.eye(9)[0], -np.eye(9)[0]]), [-1.0, -1.0]), "No matrix .*Relax h"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(constraints, words):
    with pytest.raises(ValueError, match=words):
        OrbitLearner(1, "logtrace", "symmetric", constraints=constraints).fit(points())


def test_vectors_at_a_right_angle_are_refused_by_the_log_trace_loss():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1]])
    with pytest.raises(ValueError, match=r'right angle or beyond .*loss="squared"'):
        OrbitLearner(1, "logtrace", "symmetric", "all").fit(X)


def test_signs_that_change_are_refused_where_no_diagonal_matrix_changes_them():
    X = points()
    X[::2, 1] *= -0.3
    with pytest.raises(ValueError, match=r"Coordinate 1 of pair .* changes its sign"):
        OrbitLearner(1, "logtrace", "diagonal", [[0, 1]]).fit(X)


def test_zero_vectors_are_refused_with_targets_too():
    with pytest.raises(ValueError, match="Pair 0 of X and y has a zero vector"):
        OrbitLearner(1).fit(np.zeros((12, 3)), points())


def test_copies_of_rows_are_refused_where_all_neighbors_are_copies():
    with pytest.raises(
        ValueError, match=r"equal, so there is no transformation .*drop repeated rows"
    ):
        OrbitLearner(1).fit(np.repeat(points(n=3), 12, axis=0))


def test_a_prototype_that_is_a_zero_row_is_refused():
    with pytest.raises(ValueError, match="prototype has entries of at most 0"):
        OrbitLearner(1, pairs=[[0, 1]], prototype=4).fit(with_row(0.0))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (points(n=11), r"shape \(11, 3\).*X has shape \(12, 3\)"),
        (points().astype(str), "real numbers"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        (with_row(np.nan), "y contains NaN"),
        (points(), "equal, so there is no transformation to learn"),
        (np.arange(5), r"5 label\(s\) and X has 12 rows"),
    ],
)
def test_targets_need_the_shape_of_the_vectors(y, words):
    with pytest.raises(ValueError, match=words):
        OrbitLearner(1).fit(points(), y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_generators": 0},
        {"loss": "absolute"},
        {"structure": "triangular"},
        {"n_neighbors": 0},
        {"n_components": 0},
        {"error_weight": 0},
        {"error_weight": 1e300},
        {"eps1": 0},
        {"eps1": 1e-300},
        {"eps2": -1},
        {"eps2": 1e300},
        {"solver": "newton"},
        {"n_init": 0},
        {"max_iter": 0},
        {"tol": -1},
        {"constraints": "none"},
    ],
)
def test_parameters_out_of_range_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        OrbitLearner(**parameters).fit(points())


def test_an_exponential_that_overflows_is_refused(moved):
    learner = OrbitLearner(1, structure="symmetric").fit(moved(np.diag([1.0, -1.0])[None]))
    with pytest.raises(ValueError, match=r"overflows for row 1 .*smaller coefficients"):
        learner.inverse_transform([[0.1], [1e5], [1e300]])


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("orbit", ([1.0], [0.0]), r"one vector of 2 numbers.*got shape \(1,\)"),
        ("orbit", ([1.0, np.nan], [0.0]), "`x` contains NaN"),
        ("orbit", (["a", "b"], [0.0]), "2 real numbers"),
        ("orbit", ([1.0, 2.0], [0.0, 1.0]), r"shape \(1,\) or \(n, 1\).*got shape \(2,\)"),
        (
            "orbit",
            ([1.0, 2.0], np.array([1j])),
            "real numbers, 1 in every row, got ndarray of comp",
        ),
        ("orbit", (np.array([1j, 1.0]), [0.0]), "2 real numbers, got ndarray of complex128"),
        ("orbit", ([1.0, 2.0], [[0.1], [1e16]]), "Row 1 of the coefficients .*rounding decides"),
        ("transform", ([[1e149, 1.0]],), "too far apart to be compared"),
        ("inverse_transform", ([[np.inf]],), "`c` contains NaN or infinity"),
        ("inverse_transform", ([["a"]],), "real numbers, 1 in every row"),
        ("flow", ([1.0],), "one vector of 2 numbers"),
        ("sample", (0,), "`n` must be at least 1"),
        ("transform", (np.ones((2, 3)),), "expecting 2 features"),
        ("transform", ([[np.nan, 1.0]],), "contains NaN"),
    ],
)
def test_arguments_of_fitted_methods_are_checked(arc, method, arguments, words):
    learner = OrbitLearner(1).fit(arc)
    with pytest.raises(ValueError, match=words):
        getattr(learner, method)(*arguments)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("transform", (points(),)),
        ("inverse_transform", ([0.0],)),
        ("orbit", (points()[0], [0.0])),
        ("flow", (points()[0],)),
        ("sample", (1,)),
        ("score", (points(),)),
    ],
)
def test_methods_raise_before_fit(method, arguments):
    with pytest.raises(NotFittedError):
        getattr(OrbitLearner(), method)(*arguments)


def test_frames_with_other_columns_are_refused(arc):
    learner = OrbitLearner(1).fit(pd.DataFrame(arc, columns=["x", "y"]))
    assert list(learner.feature_names_in_) == ["x", "y"]
    with pytest.raises(ValueError, match="feature names should match"):
        learner.transform(pd.DataFrame(arc, columns=["y", "x"]))


def test_memory_is_checked_first(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"Learning 3 x 3 matrices .*n_components"):
        OrbitLearner(1).fit(points())
