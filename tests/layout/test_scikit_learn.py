import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import GridLayout

# Checks that cannot hold by the nature of the method, each with its reason.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}


@parametrize_with_checks(
    [GridLayout(), GridLayout(quality="fast"), GridLayout(quality="classic")],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_tags_say_what_is_accepted():
    tags = GridLayout().__sklearn_tags__()
    assert tags.input_tags.sparse
    assert not tags.target_tags.required
    assert not tags.input_tags.string
    assert not tags.input_tags.pairwise
    assert GridLayout(kernel="text").__sklearn_tags__().input_tags.string
    assert GridLayout(kernel="precomputed").__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("name", ["grid_", "positions_", "score_"])
def test_there_is_nothing_before_a_fit(name):
    assert not hasattr(GridLayout(), name)
