import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from unshuffle import MinimumVolumePCA


def bags(n_bags=4, n_points=5, width=2, seed=0):
    return list(np.random.default_rng(seed).normal(size=(n_bags, n_points, width)))


def without_numbers(given):
    given[2] = given[2].copy()
    given[2][3, 1] = np.nan
    return given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([*bags(), *bags(width=3)], "bag 4 of X have 3 columns, those of bag 0 have 2"),
        ([*bags(), np.zeros((0, 2))], "Bag 4 of X is empty. Drop it"),
        (without_numbers(bags()), r"bag 2 of X contains NaN \(in 1 of 5 points.*point 3"),
        (bags(n_bags=1), "holds 1 bag .*at least two"),
        ([], "empty: found 0 bags. Reshape your data: pass a list"),
        (None, r"NoneType and 0 dim.*pass a list"),
        (np.arange(5.0), r"ndarray and 1 dim.* shape \(5,\).*pass a list"),
        (np.zeros((2, 3, 4, 2)), r"shape \(2, 3, 4, 2\).*pass a list"),
        ([[1, 2], [3, 4, 5]], "rows of different lengths. Pass a list"),
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], "bag 0 of X have different numbers of columns"),
        ([np.ma.masked_greater(bag, 0) for bag in bags()], "bag 0 of X is masked"),
        (np.ma.masked_greater(np.array(bags()), 0), "X is masked.*Drop the rows"),
        ([1e-160 * bag for bag in bags()], "differ by at most .* too small for a float. Multiply"),
        ([np.ones((5, 2))] * 4, "All points of X are equal"),
        (np.full((6, 3), 7.0), "All points of X are equal"),
        (["some", "words"], "X holds strings"),
        ([[["a", "b"]], [["c", "d"]]], "hold text"),
    ],
)
def test_bad_bags_are_refused_in_one_clear_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        MinimumVolumePCA().fit(given)


def test_bags_without_an_order_are_refused():
    for given in ({"a": bags()[0], "b": bags()[1]}, {1, 2}):
        with pytest.raises(TypeError, match=f"{type(given).__name__}.*Pass a list"):
            MinimumVolumePCA().fit(given)


def test_frames_with_columns_in_another_order_are_refused():
    frames = [pd.DataFrame(bag, columns=["x", "y"]) for bag in bags()]
    turned = [*frames[:2], frames[2][["y", "x"]]]
    with pytest.raises(ValueError, match=r"Bag 2 .* columns \['y', 'x'\], bag 0 has \['x', 'y'\]"):
        MinimumVolumePCA().fit(turned)
    found = MinimumVolumePCA(1).fit(frames)
    with pytest.raises(ValueError, match="feature names should match"):
        found.transform([frames[2][["y", "x"]]])


def test_a_single_bag_is_not_taken_for_many_bags_of_one_point():
    found = MinimumVolumePCA(1).fit(bags())
    for one in (bags()[0], bags()[0].tolist(), pd.DataFrame(bags()[0])):
        for method in (found.transform, found.align):
            with pytest.raises(ValueError, match=r"5 bags of one point each.*pass \[points\]"):
                method(one)
    assert found.transform([bags()[0]]).shape == (1, 1)


def test_bags_may_come_from_a_generator():
    found = MinimumVolumePCA(2).fit(bag for bag in bags())
    expected = MinimumVolumePCA(2).fit(bags())
    np.testing.assert_array_equal(found.permutations_, expected.permutations_)


def test_a_kernel_by_which_all_points_are_equal_is_refused():
    for parameters in ({"kernel": "rbf", "gamma": 1e-300}, {"kernel": lambda x, y: 1.0}):
        with pytest.raises(ValueError, match=r"all points are equal.*Pass a larger gamma"):
            MinimumVolumePCA(**parameters).fit(bags())


@pytest.mark.parametrize("parameters", [{"degree": 2000}, {"gamma": 1e200}])
def test_similarities_too_large_for_a_float_are_refused(parameters):
    with pytest.raises(ValueError, match=r"too large for a float. Pass a smaller degree or gamma"):
        MinimumVolumePCA(kernel="poly", **parameters).fit(bags())


def test_too_little_regularization_is_named():
    with pytest.raises(ValueError, match=r"`regularization` is too small.*1e-6 or more"):
        MinimumVolumePCA(method="covariance", regularization=1e-300).fit(bags(n_bags=30))


def test_memory_of_far_too_many_points_is_asked_for_first():
    with pytest.raises(MemoryError, match="Pass a smaller n_points"):
        MinimumVolumePCA(n_points=10**12).fit(bags())


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": 1.5},
        {"method": "median"},
        {"kernel": "sigmoid"},
        {"gamma": 0},
        {"degree": 0},
        {"n_landmarks": 0},
        {"regularization": 0},
        {"n_points": 0},
        {"unequal": "drop"},
        {"swaps": "yes"},
        {"n_init": 0},
        {"max_iter": 0},
        {"tol": -1},
    ],
)
def test_parameters_out_of_range_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        MinimumVolumePCA(**parameters).fit(bags())


def test_more_components_than_there_are_is_refused():
    steps = []
    with pytest.raises(ValueError, match="n_components=9 is more than the 3"):
        MinimumVolumePCA(9, callback=steps.append).fit(bags())
    assert not steps, "told after the work"


def test_missing_points_need_the_mean_method():
    with pytest.raises(ValueError, match='Use method="mean"'):
        MinimumVolumePCA(method="covariance", unequal="missing").fit(bags())
    with pytest.raises(ValueError, match="Leave n_points out"):
        MinimumVolumePCA(unequal="missing", n_points=7).fit(bags())


def test_new_bags_may_not_be_larger_where_points_may_be_missing():
    found = MinimumVolumePCA(1, unequal="missing").fit(bags())
    with pytest.raises(
        ValueError, match="Bag 1 of X has 9 points, more than the 5 of the common order"
    ):
        found.transform([*bags(1), *bags(1, n_points=9)])


def test_new_bags_need_the_fitted_columns():
    found = MinimumVolumePCA(1).fit(bags())
    for method in (found.transform, found.align):
        with pytest.raises(ValueError, match=r"has 3 features.*expecting 2 features"):
            method(bags(width=3))
        with pytest.raises(ValueError, match="bag 2 of X contains NaN"):
            method(without_numbers(bags()))


def test_scores_need_one_number_for_each_component():
    found = MinimumVolumePCA(2).fit(bags())
    with pytest.raises(ValueError, match=r"Y has 3 columns.*2 components"):
        found.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="NaN"):
        found.inverse_transform([[np.nan, 0]])
    for scores in ([["a", "b"]], [[1, 2], [3]]):
        with pytest.raises(ValueError, match="Y must hold real numbers, 2 in every row"):
            found.inverse_transform(scores)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 4, 0.5), "`j` must be from 0 to 3, got 4"),
        ((-1, 0, 0.5), "`i` must be from 0 to 3, got -1"),
        ((0, 1.5, 0.5), "`j` must be a whole number"),
        ((0, 1, np.nan), "`t` must be a number from -1e6 to 1e6"),
        ((0, 1, "half"), "`t` must be a number"),
        ((0, 1, [[0.5]]), "`t` must be a number from -1e6 to 1e6 or a 1-D array"),
    ],
)
def test_a_morph_needs_two_fitted_bags_and_a_moment(arguments, words):
    found = MinimumVolumePCA(1).fit(bags())
    with pytest.raises(ValueError, match=words):
        found.morph(*arguments)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("transform", (bags(),)),
        ("align", (bags(),)),
        ("inverse_transform", ([[0.0]],)),
        ("morph", (0, 1, 0.5)),
    ],
)
def test_nothing_can_be_asked_before_a_fit(method, arguments):
    with pytest.raises(NotFittedError):
        getattr(MinimumVolumePCA(), method)(*arguments)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda X, Y: np.zeros(3), "failed|returned shape"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "NaN or infinity"),
        (lambda X, Y: X @ Y.T + 1j, "dtype complex128. Return similarities as real numbers"),
        (lambda x, y: "alike", "Return similarities as real numbers"),
        (lambda X, Y: np.zeros((len(X), len(Y))), "not positive definite"),
        (lambda x, y: -float(np.sum((x - y) ** 2)) - 1.0, "not positive definite"),
        (
            lambda X, Y: 2 * np.linalg.norm(X[:, None] - Y[None], axis=2) + 1,
            "not positive definite",
        ),
    ],
)
def test_a_function_that_is_not_a_kernel_is_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        MinimumVolumePCA(1, kernel=kernel).fit(bags())


def test_the_papers_bound_is_refused_if_it_would_take_hours():
    many = bags(n_bags=2, n_points=1001)
    with pytest.raises(ValueError, match='method="covariance"'):
        MinimumVolumePCA(method="variational").fit(many)


def test_memory_is_asked_for_first(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="smaller n_points, or fewer n_landmarks"):
        MinimumVolumePCA(1, kernel="rbf").fit(bags())
