"""SetKernelSum: a weighted sum of several set kernels."""

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Bunch

from unshuffle._core.bags import Bags
from unshuffle._core.grams import check_kernel_weights
from unshuffle._core.parameters import ARRAY, Constraints, check_parameters
from unshuffle._run.device import find_device
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import Place
from unshuffle.kernels.sets._models.set_vectors import typical_sets
from unshuffle.kernels.sets._set_kernel import SetKernel


@dataclass(frozen=True)
class SumDescriptions:
    """Descriptions of the same sets by several kernels."""

    parts: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, some: slice) -> "SumDescriptions":
        return SumDescriptions(tuple(each[some] for each in self.parts))


@dataclass(frozen=True)
class SumModel:
    """Kernels with models but without fitted sets, and their scales and factors in the sum."""

    kernels: tuple[SetKernel, ...]
    scales: Floats
    factors: Floats

    def describe(self, sets: Bags, n_jobs: int | None) -> SumDescriptions:
        """Descriptions by all kernels, each with its own `n_jobs`."""
        return SumDescriptions(tuple(kernel._describe(sets) for kernel in self.kernels))

    def compare(self, a: SumDescriptions, b: SumDescriptions | None) -> Floats:
        """Weighted sum of the kernels."""
        others = [None] * len(a.parts) if b is None else b.parts
        total = np.zeros((len(a), len(a if b is None else b)))
        for kernel, factor, one, other in zip(
            self.kernels, self.factors, a.parts, others, strict=True
        ):
            total += factor * kernel._model.compare(one, other)
        return total


class SetKernelSum(SetKernel):
    """Weighted sum of several set kernels, each brought to the same scale.

    Kernels that see different aspects of a set make different mistakes. Their sum is often better
    than any one of them.

    Parameters
    ----------
    kernels : list of set kernels, or of (name, set kernel) pairs
        What to sum. The parameters of a kernel are set, and searched by `GridSearchCV`, as
        ``name__parameter``. A kernel without a name gets that of its class in lower case, with
        -1, -2, ... if there are several of that class.
    weights : array-like of shape (n_kernels,) or None, default=None
        A larger weight gives a kernel more influence; 0 leaves it out. Only the proportions
        matter. None is equal weights.
    n_jobs : int or None, default=None
        Threads that compare sets; more are faster. The result does not depend on it.

    Attributes
    ----------
    kernels_ : list of set kernels
        The fitted kernels.
    named_kernels_ : Bunch
        The same by name.
    scales_ : ndarray of shape (n_kernels,)
        What each kernel is divided by: the mean diagonal of its centered Gram matrix, from at
        most 500 of the fitted sets.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite if the kernels are. A constant added to a kernel, which a support
    vector machine ignores, does not change its scale. Time and memory are those of the kernels
    together; fitting compares up to 500 sets by each of them.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import MeanMapKernel, SetKernelSum, SlicedWassersteinKernel
    >>> sets, labels = digit_sets(60)
    >>> both = SetKernelSum([("mean", MeanMapKernel()), ("sliced", SlicedWassersteinKernel())])
    >>> model = Pipeline([("sets", both), ("svc", SVC(C=10, kernel="precomputed"))])
    >>> search = GridSearchCV(model, {"sets__mean__gamma": [0.1, 1.0]}, cv=3)
    >>> bool(search.fit(sets, labels).best_score_ > 0.9)
    True
    """

    _constraints: ClassVar[Constraints] = {"kernels": [list, tuple], "weights": [ARRAY, None]}

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
            Whether to include the kernels by name, and their parameters.

        Returns
        -------
        params : dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        for name, kernel in self._named_kernels() if deep else []:
            params[name] = kernel
            if hasattr(kernel, "get_params"):
                params |= {f"{name}__{key}": value for key, value in kernel.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the sum, kernels by name, or parameters of the kernels.

        Parameters
        ----------
        **params : dict
            Values by name, such as ``mean__gamma=1.0``.

        Returns
        -------
        self : SetKernelSum
            The same object.
        """
        self.kernels = params.pop("kernels", self.kernels)
        pairs = self._named_kernels()
        if any(name in params for name, _ in pairs):
            # Named from now on, so that a replaced kernel keeps the name it was found by.
            self.kernels = [(name, params.pop(name, kernel)) for name, kernel in pairs]
        super().set_params(**params)
        return self

    def _build_model(self, sets: Bags) -> SumModel:
        return self._learn(sets)[0]

    def _learn(self, sets: Bags, place: Place | None = None) -> tuple[SumModel, SumDescriptions]:
        check_set_kernels(self.kernels)
        for name, kernel in self._named_kernels():
            if find_device(kernel.device) is not None:
                raise ValueError(
                    f"SetKernelSum runs on the CPU, but its kernel {name!r} has "
                    f'device="{kernel.device}". Leave `device` out, or add up the Gram matrices '
                    "of the kernels yourself."
                )
        weights = check_kernel_weights(self.weights, len(self.kernels))
        names = [name for name, _ in self._named_kernels()]
        kernels = tuple(clone(kernel) for _, kernel in self._named_kernels())
        parts = []
        for kernel in kernels:
            check_parameters(kernel)
            kernel._model, descriptions = kernel._learn(sets)
            parts.append(descriptions)
        sample = typical_sets(sets)
        typical = parts if sample is sets else [kernel._describe(sample) for kernel in kernels]
        each = zip(names, kernels, typical, strict=True)
        scales = np.array([_spread(kernel._gram(part), name) for name, kernel, part in each])
        model = SumModel(kernels, scales, weights / weights.sum() / scales)
        return model, SumDescriptions(tuple(parts))

    def _store(self, model: SumModel, descriptions: SumDescriptions) -> None:
        self.scales_ = model.scales
        self.kernels_ = [copy(kernel) for kernel in model.kernels]
        names = [name for name, _ in self._named_kernels()]
        self.named_kernels_ = Bunch(**dict(zip(names, self.kernels_, strict=True)))
        for kernel, part in zip(self.kernels_, descriptions.parts, strict=True):
            kernel._descriptions, kernel._fitted_sets = part, self._fitted_sets
            kernel.n_features_in_, kernel._bags_of_one = self.n_features_in_, self._bags_of_one
            if hasattr(self, "feature_names_in_"):
                kernel.feature_names_in_ = self.feature_names_in_
            kernel._store(kernel._model, part)

    def _named_kernels(self) -> list[tuple[str, Any]]:
        """(name, kernel) pairs; kernels without a name get that of their class."""
        kernels = list(self.kernels) if isinstance(self.kernels, list | tuple) else []
        if all(isinstance(each, tuple) and len(each) == 2 for each in kernels):
            return kernels
        classes = [type(each).__name__.lower() for each in kernels]
        names = [
            f"{name}-{classes[: i + 1].count(name)}" if classes.count(name) > 1 else name
            for i, name in enumerate(classes)
        ]
        return list(zip(names, kernels, strict=True))


def _spread(K: Floats, name: str) -> float:
    """Mean squared distance of the images of sets from their mean."""
    n_sets, diagonal = len(K), float(np.trace(K)) / len(K)
    if n_sets < 2:
        raise ValueError(
            "SetKernelSum scales its kernels by how much the fitted sets differ, but X holds "
            f"{n_sets} set (n_samples = {n_sets}). Pass at least two."
        )
    spread = diagonal - float(K.mean())
    if not spread > 1e-13 * abs(diagonal):
        raise ValueError(
            f"All {n_sets} sets are the same to the kernel {name!r}, so it cannot be scaled. Drop "
            "it from the sum, or change its parameters."
        )
    return spread


def check_set_kernels(kernels: Any) -> None:
    """Refuse an empty list, entries that are not set kernels, and unusable or repeated names."""
    if len(kernels) == 0:
        raise ValueError("`kernels` is empty. Pass at least one set kernel.")
    named = [isinstance(each, tuple) and len(each) == 2 for each in kernels]
    if any(named) and not all(named):
        raise ValueError(
            "`kernels` mixes set kernels and (name, kernel) pairs. Name all of them, or none."
        )
    for i, each in enumerate(kernels):
        kernel = each[1] if named[i] else each
        if not isinstance(kernel, SetKernel):
            raise TypeError(
                f"Entry {i} of `kernels` is {kernel!r}, which is not a set kernel. Pass "
                "estimators such as MeanMapKernel(), or (name, kernel) pairs of them."
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
                f"`kernels` holds the name {name!r} {names.count(name)} times. Give each kernel "
                "its own name."
            )
