"""What estimators of bags share: the columns of a point, recorded and asked for again."""

from typing import Any

from sklearn.utils.validation import _check_feature_names

from unshuffle._arrays import check_column_names
from unshuffle._bags import Bags, check_bag_width, check_not_one_bag, listed


class BagEstimatorMixin:
    """Takes bags to fit, and asks that later ones are like them.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, where the bags came as tables with names.
    """

    n_features_in_: int
    _bags_of_one: bool

    def _record_columns(self, bags: Any, given: Bags) -> None:
        """Remember the columns of the bags that are fitted."""
        self._check_names(listed(bags), reset=True)
        self._bags_of_one = bool(given.sizes.max() == 1)
        self.n_features_in_ = given.width

    def _bags_like_fitted(self, bags: Any) -> Bags:
        """Bags with the columns of the fitted ones."""
        bags = listed(bags)
        self._check_names(bags, reset=False)
        given = Bags.of(bags)
        if not self._bags_of_one:
            check_not_one_bag(bags, "bags")
        check_bag_width(given.width, self.n_features_in_, type(self).__name__)
        return given

    def _check_names(self, bags: Any, *, reset: bool) -> None:
        """Compare the names of columns with those that were fitted, or remember them."""
        named = _named(bags)
        check_column_names(named, "bags")
        _check_feature_names(self, named, reset=reset)


def _named(bags: Any) -> Any:
    """What holds the names of columns: the bags, or the first of several data frames."""
    frames = isinstance(bags, list | tuple) and bags and hasattr(bags[0], "columns")
    return bags[0] if frames else bags
