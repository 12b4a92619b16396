import inspect

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import KernelizedSorting, MultiwaySorting
from unshuffle.matching import DoubtWarning

# Equally good mirrored, whatever part is taken.
LINE = np.linspace(-1.0, 1.0, 24)[:, None]
QUIET = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")
# Checks that cannot hold by the nature of the method, each with its reason.
ONE_COLUMN = "fits a y of one dimension, but y is a collection like X"
EXPECTED_FAILED_CHECKS = {
    "check_transformer_data_not_an_array": ONE_COLUMN,
    "check_transformer_general": ONE_COLUMN,
    "check_transformer_n_iter": ONE_COLUMN,
    "check_transformer_preserve_dtypes": ONE_COLUMN,
}


# The checks fit labels and noise, where many matchings tie.
@QUIET
@parametrize_with_checks(
    [KernelizedSorting()], expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@QUIET
@pytest.mark.slow
@parametrize_with_checks(
    [KernelizedSorting(method="classic")], expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS
)
def test_scikit_learn_checks_of_the_classic_method(estimator, check):
    check(estimator)


def test_the_tags_say_what_is_accepted():
    tags = KernelizedSorting().__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert not tags.input_tags.string
    assert not tags.input_tags.pairwise
    assert KernelizedSorting("text").__sklearn_tags__().input_tags.string
    assert KernelizedSorting("precomputed").__sklearn_tags__().input_tags.pairwise


def place(frame, n_below):
    """A line of this file, some lines below that of the frame."""
    return __file__, frame.f_lineno + n_below


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_a_doubt_points_at_the_line_of_the_user_also_through_a_pipeline(method):
    pipeline = make_pipeline(StandardScaler(), KernelizedSorting(random_state=0))
    for estimator in (KernelizedSorting(random_state=0), pipeline):
        call = getattr(estimator, method)
        expected = place(inspect.currentframe(), 2)
        with pytest.warns(DoubtWarning) as caught:
            call(LINE, LINE)
        assert [(each.filename, each.lineno) for each in caught] == [expected]


def test_a_doubt_points_at_the_line_that_starts_a_search_over_parameters():
    search = GridSearchCV(KernelizedSorting(), {"gamma": [1.0]}, cv=2, refit=False)
    expected = place(inspect.currentframe(), 2)
    with parallel_config("sequential"), pytest.warns(DoubtWarning) as caught:
        search.fit(LINE, LINE)
    assert {(each.filename, each.lineno) for each in caught} == {expected}


def test_a_doubt_points_into_the_subclass_of_the_user():
    places = []

    class Mine(KernelizedSorting):
        def fit(self, X, y):
            places.append(place(inspect.currentframe(), 1))
            return super().fit(X, y)

    with pytest.warns(DoubtWarning) as caught:
        make_pipeline(StandardScaler(), Mine()).fit(LINE, LINE)
    assert [(each.filename, each.lineno) for each in caught] == places


def test_a_doubt_of_several_collections_points_at_the_line_of_the_user_through_a_pipeline():
    pipeline = make_pipeline(MultiwaySorting(random_state=0))
    expected = place(inspect.currentframe(), 2)
    with pytest.warns(DoubtWarning) as caught:
        pipeline.fit(np.random.default_rng(0).normal(size=(3, 24, 3)))
    assert [(each.filename, each.lineno) for each in caught] == [expected]


@pytest.fixture(scope="module")
def pairs():
    """Two tables whose rows belong together."""
    X = np.random.default_rng(0).exponential(size=(60, 3)) * [3, 2, 1]
    return X, X @ [[0, 2], [2, 0], [0, 1]]


@QUIET
def test_the_score_is_the_share_of_new_pairs_that_are_found(pairs):
    X, y = pairs
    sorting = KernelizedSorting(trust=False).fit(X[:40], y[:40])
    found = sorting.match(X[40:], y[40:]).permutation
    assert sorting.score(X[40:], y[40:]) == np.mean(found == np.arange(20)) > 0.5
    # Partners in another order are not those of their rows.
    assert sorting.score(X[40:], y[40:][::-1]) < 0.2
    with pytest.raises(ValueError, match="Row i of both must describe the same item"):
        sorting.score(X[40:], y[41:])


@QUIET
def test_a_grid_search_finds_the_width_by_which_new_pairs_are_matched(pairs):
    grid = {"gamma": [0.1, 100.0]}
    search = GridSearchCV(KernelizedSorting("rbf", trust=False), grid, cv=2).fit(*pairs)
    assert search.best_params_ == {"gamma": 0.1}
    good, bad = search.cv_results_["mean_test_score"]
    assert good > 0.5
    assert bad < good - 0.2
    each = cross_val_score(KernelizedSorting("rbf", gamma=0.1, trust=False), *pairs, cv=2)
    assert each.mean() == pytest.approx(good)


@QUIET
def test_a_grid_search_without_known_pairs_chooses_by_belief(pairs):
    X, y = pairs
    rows = np.random.default_rng(1).permutation(60)
    search = GridSearchCV(
        KernelizedSorting("rbf"),
        {"gamma": [0.1, 100.0]},
        scoring=lambda sorting, X, y: sorting.expected_accuracy_,
        cv=[(rows, rows)],
    ).fit(X, y[rows])
    assert search.best_params_ == {"gamma": 0.1}
