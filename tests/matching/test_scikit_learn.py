import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import KernelizedSorting

# Checks that cannot hold by the nature of the method, each with its reason.
ONE_COLUMN = "fits a y of one dimension, but y is a collection like X"
EXPECTED_FAILED_CHECKS = {
    "check_transformer_data_not_an_array": ONE_COLUMN,
    "check_transformer_general": ONE_COLUMN,
    "check_transformer_n_iter": ONE_COLUMN,
    "check_transformer_preserve_dtypes": ONE_COLUMN,
}


# The checks fit labels and noise, where many matchings tie.
@pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")
@parametrize_with_checks(
    [KernelizedSorting(), KernelizedSorting(method="classic")],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_tags_say_what_is_accepted():
    tags = KernelizedSorting().__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert not tags.input_tags.string
    assert not tags.input_tags.pairwise
    assert KernelizedSorting("text").__sklearn_tags__().input_tags.string
    assert KernelizedSorting("precomputed").__sklearn_tags__().input_tags.pairwise
