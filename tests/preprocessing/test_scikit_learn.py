from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle.kernels import SlicedWassersteinKernel
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_checks([SetNormalizer(shear=True), NeighborhoodShape()])
def test_scikit_learn_accepts_them_on_sets_of_one(estimator, check):
    check(estimator)


@parametrize_with_bag_checks(
    [
        make_pipeline(SetNormalizer(center=False, shear=True), SlicedWassersteinKernel(gamma=1)),
        make_pipeline(NeighborhoodShape(3), SlicedWassersteinKernel(gamma=1)),
    ],
    expected_failed_checks=lambda pipeline: {
        "check_parameters_unchanged": "a Pipeline fits the steps it is given, not copies"
    },
)
def test_with_a_kernel_they_keep_the_promises_of_bags(estimator, check):
    check(estimator)
