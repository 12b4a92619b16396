"""SetKernelSum: several kernels between sets in one."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import _BaseComposition

from unshuffle._bags import Bags
from unshuffle._parameters import ARRAY, Constraints, check_parameters
from unshuffle.kernels._gram import check_kernel_weights
from unshuffle.kernels.sets._set_kernel import SetKernel
from unshuffle.kernels.sets._set_vectors import typical_sets

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Several:
    """Descriptions of the same sets by several kernels."""

    parts: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def part(self, start: int, stop: int) -> "Several":
        """Descriptions of the sets from `start` up to `stop`."""
        return Several(tuple(each.part(start, stop) for each in self.parts))


@dataclass(frozen=True)
class SumModel:
    """Kernels with models but without sets, what each is divided by, and its factor in the sum."""

    kernels: tuple[SetKernel, ...]
    scales: Array
    factors: Array

    def describe(self, bags: Bags, n_jobs: int | None) -> Several:
        """Descriptions by all kernels, each with threads of its own."""
        return Several(tuple(kernel._described(bags) for kernel in self.kernels))

    def compare(self, a: Several, b: Several | None) -> Array:
        """Weighted sum of the kernels."""
        others = [None] * len(a.parts) if b is None else b.parts
        total = np.zeros((len(a), len(a if b is None else b)))
        for kernel, factor, one, other in zip(
            self.kernels, self.factors, a.parts, others, strict=True
        ):
            total += factor * kernel._model.compare(one, other)
        return total


class SetKernelSum(_BaseComposition, SetKernel):
    """Weighted sum of several kernels between sets, each brought to the same scale.

    Kernels that look at sets in different ways make different mistakes, and their sum is often
    better than each.

    Parameters
    ----------
    kernels : list of set kernels, or of (name, set kernel) pairs
        What to sum. Parameters of a kernel are set, and searched by `GridSearchCV`, as
        ``name__parameter``; without names of their own, kernels are called by their class in
        lower case, with -1, -2, ... where there are several of it.
    weights : array-like of shape (n_kernels,) or None, default=None
        Larger gives a kernel more say; 0 leaves it out. None is equal weights. Only their
        proportions matter: they are divided by their sum.
    n_jobs : int or None, default=None
        Threads that compare sets; more are faster. The result does not depend on it.

    Attributes
    ----------
    kernels_ : list of set kernels
        The fitted kernels.
    named_kernels_ : Bunch
        The same by their names.
    scales_ : ndarray of shape (n_kernels,)
        What each kernel is divided by: how much the fitted sets differ in it, as the mean squared
        distance of their images from the middle of all (the mean diagonal of the centred Gram
        matrix; of 500 sets, where there are more).
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as the kernels summed. The constant part of a kernel, which means
    nothing to a support vector machine, has no influence on its scale. Time and memory are those
    of the kernels together, and fitting compares up to 500 sets by each of them.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import MeanMapKernel, SetKernelSum, SlicedWassersteinKernel
    >>> bags, labels = digit_sets(60)
    >>> both = SetKernelSum([("mean", MeanMapKernel()), ("sliced", SlicedWassersteinKernel())])
    >>> model = Pipeline([("sets", both), ("svc", SVC(C=10, kernel="precomputed"))])
    >>> search = GridSearchCV(model, {"sets__mean__gamma": [0.1, 1.0]}, cv=3)
    >>> bool(search.fit(bags, labels).best_score_ > 0.9)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "kernels": [list, tuple],
        "weights": [ARRAY, None],
    }

    def __init__(
        self, kernels: Any, weights: ArrayLike | None = None, *, n_jobs: int | None = None
    ) -> None:
        self.kernels = kernels
        self.weights = weights
        self.n_jobs = n_jobs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the sum, and those of its kernels as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to give those of the kernels too.

        Returns
        -------
        params : dict
            Values by name.
        """
        return dict(self._get_params("_named_kernels", deep=deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the sum, kernels by their names, or parameters of these.

        Parameters
        ----------
        **params : dict
            Values by name, such as ``mean__gamma=1.0``.

        Returns
        -------
        self : SetKernelSum
            The same object.
        """
        self._set_params("_named_kernels", **params)
        return self

    def _build(self, bags: Bags) -> SumModel:
        return self._learn(bags)[0]

    def _learn(self, bags: Bags) -> tuple[SumModel, Several]:
        check_set_kernels(self.kernels, SetKernel)
        weights = check_kernel_weights(self.weights, len(self.kernels))
        names = [name for name, _ in self._named_kernels]
        kernels = tuple(clone(kernel) for _, kernel in self._named_kernels)
        for kernel in kernels:
            check_parameters(kernel)
        parts = []
        for kernel in kernels:
            kernel._model, sets = kernel._learn(bags)
            parts.append(sets)
        sample = typical_sets(bags)
        typical = parts
        if sample is not bags:
            typical = [kernel._described(sample) for kernel in kernels]
        each = zip(names, kernels, typical, strict=True)
        scales = np.array([_spread(kernel._gram(part), name) for name, kernel, part in each])
        return SumModel(kernels, scales, weights / weights.sum() / scales), Several(tuple(parts))

    def _store(self, model: SumModel, sets: Several) -> None:
        self.scales_ = model.scales
        self.kernels_ = [copy(kernel) for kernel in model.kernels]
        names = [name for name, _ in self._named_kernels]
        self.named_kernels_ = Bunch(**dict(zip(names, self.kernels_, strict=True)))
        for kernel, part in zip(self.kernels_, sets.parts, strict=True):
            kernel._fitted_sets, kernel._fitted_bags = part, self._fitted_bags
            kernel.n_features_in_, kernel._bags_of_one = self.n_features_in_, self._bags_of_one
            if hasattr(self, "feature_names_in_"):
                kernel.feature_names_in_ = self.feature_names_in_
            kernel._store(kernel._model, part)

    @property
    def _named_kernels(self) -> list[tuple[str, Any]]:
        """(name, kernel) pairs, with names made up where none are given."""
        kernels = list(self.kernels) if isinstance(self.kernels, list | tuple) else []
        if all(isinstance(each, tuple) and len(each) == 2 for each in kernels):
            return kernels
        classes = [type(each).__name__.lower() for each in kernels]
        counts, seen = Counter(classes), Counter[str]()
        names = []
        for name in classes:
            seen[name] += 1
            names.append(f"{name}-{seen[name]}" if counts[name] > 1 else name)
        return list(zip(names, kernels, strict=True))

    @_named_kernels.setter
    def _named_kernels(self, pairs: list[tuple[str, Any]]) -> None:
        # With names even where there were none: the place of a kernel of another class keeps the
        # name by which it was found.
        self.kernels = list(pairs)


def _spread(K: Array, name: str) -> float:
    """Mean squared distance of the images of sets from their middle."""
    n_sets, diagonal = len(K), float(np.trace(K)) / len(K)
    if n_sets < 2:
        raise ValueError(
            f"Kernels of a sum are scaled by how much the fitted sets differ, but bags holds "
            f"{n_sets} set (n_samples = {n_sets}). Pass at least two."
        )
    spread = diagonal - float(K.mean())
    if not spread > 1e-13 * abs(diagonal):
        raise ValueError(
            f"By the kernel {name!r} all {n_sets} sets are the same, so it cannot be scaled. Drop "
            "it from the sum, or change its parameters."
        )
    return spread


def check_set_kernels(kernels: Sequence[Any], kind: type) -> None:
    """Refuse what cannot be summed: nothing, other things than set kernels, names used twice."""
    if len(kernels) == 0:
        raise ValueError("`kernels` is empty. Pass at least one set kernel.")
    named = [isinstance(each, tuple) and len(each) == 2 for each in kernels]
    if any(named) and not all(named):
        raise ValueError(
            "`kernels` mixes set kernels and (name, kernel) pairs. Give all of them a name, or "
            "none."
        )
    for i, each in enumerate(kernels):
        kernel = each[1] if named[i] else each
        if not isinstance(kernel, kind):
            raise TypeError(
                f"Entry {i} of `kernels` is {kernel!r}, which is no kernel between sets. Pass "
                "estimators such as MeanMapKernel(), or (name, kernel) pairs of these."
            )
    names = [each[0] for each in kernels] if all(named) else []
    for name in names:
        if not isinstance(name, str) or "__" in name or name in ("kernels", "weights", "n_jobs"):
            raise ValueError(
                f"{name!r} cannot name a kernel of the sum: a name is a string without a double "
                "underscore, other than 'kernels', 'weights' and 'n_jobs'. Choose another."
            )
        if names.count(name) > 1:
            raise ValueError(
                f"`kernels` holds the name {name!r} {names.count(name)} times. Give each kernel a "
                "name of its own."
            )
