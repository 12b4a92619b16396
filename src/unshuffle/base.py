"""Base classes and types for your own estimators and callbacks."""

from unshuffle._core.bags import BagEstimatorMixin
from unshuffle._run.search import SearchState

__all__ = ["BagEstimatorMixin", "DoubtWarning", "SearchState"]


class DoubtWarning(UserWarning):
    """The result may be wrong: `doubts_` of the estimator says why, the message what to do.

    Examples
    --------
    Points at equal distances on a line can be matched in two directions:

    >>> import warnings
    >>> from unshuffle import KernelizedSorting
    >>> line = [[float(i)] for i in range(8)]
    >>> with warnings.catch_warnings(record=True) as issued:
    ...     warnings.simplefilter("always")
    ...     sorting = KernelizedSorting().fit(line, line)
    >>> [warning.category.__name__ for warning in issued]
    ['DoubtWarning']
    """
