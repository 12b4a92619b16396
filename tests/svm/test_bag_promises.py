from unshuffle import SetAligner
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_bag_checks(
    [
        SetAligner(),
        SetAligner("ball", slack=0.3, kernel="rbf"),
        SetAligner(kernel="poly", unequal="rectangular"),
    ]
)
def test_bag_checks(estimator, check):
    check(estimator)
