"""Training sets of a classifier: their classes, their weights, and checks of both."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from unshuffle._core.arrays import as_array, as_numbers
from unshuffle._core.bags import MISSING, Bags
from unshuffle._core.parameters import number
from unshuffle._run.types import Floats, Orders


@dataclass(frozen=True)
class ClassifiedSets:
    """Sets with a weight above 0, as the user gave them, and their classes."""

    sets: Bags
    classes: NDArray[Any]  # distinct labels
    codes: Orders  # index of the class of each set
    weights: Floats | None  # None weighs all sets alike
    numbers: Orders  # place of each set among those given
    n_given: int

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, estimator: str) -> "ClassifiedSets":
        """Validated sets, labels of at least two classes, and weights; 0 leaves a set out."""
        sets = Bags.of(X)
        n_given = len(sets)
        classes, codes = check_classes(y, n_given, estimator)
        weights = check_sample_weight(sample_weight, n_given)
        if weights is None or weights.all():
            return cls(sets, classes, codes, weights, np.arange(n_given), n_given)
        numbers = np.flatnonzero(weights)
        present, codes = np.unique(codes[numbers], return_inverse=True)
        check_several_classes(classes[present], numbers.size, which="sets of a weight above 0")
        return cls(
            sets.chosen(numbers), classes[present], codes, weights[numbers], numbers, n_given
        )

    @property
    def shares(self) -> Floats | None:
        """Weights that sum to 1."""
        if self.weights is None:
            return None
        shares = self.weights / self.weights.max()  # the sum of large ones may overflow
        return np.asarray(shares / shares.sum())

    def among_given(self, permutations: Orders) -> Orders:
        """Permutations (n_templates, n_sets, n_points) of all sets given, -1 where left out."""
        n_templates, _, n_points = permutations.shape
        found = np.full((n_templates, self.n_given, n_points), MISSING, dtype=np.intp)
        found[:, self.numbers] = permutations
        return found


def check_classes(y: Any, n_sets: int, estimator: str) -> tuple[NDArray[Any], Orders]:
    """Distinct labels, at least two, and the index of the label of each set."""
    # scikit-learn's checks look for some of the words below.
    if y is None:
        raise ValueError(
            f"{estimator} requires y to be passed, but the target y is None. Pass the class of "
            "each set."
        )
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError("y has masked entries, so some sets have no label. Drop these sets.")
    y = as_array(y, "y", plain=False)
    if np.iscomplexobj(y):
        raise ValueError("Complex data not supported: y holds complex numbers. Pass labels.")
    if y.ndim == 0 or (y.ndim > 1 and y.shape[1:] != (1,)):
        raise ValueError(f"y should be a 1d array of labels of the sets, got shape {y.shape}.")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity. Drop these sets, or label them.")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(each).__name__ for each in labels})
        raise ValueError(
            f"y holds labels of the types {', '.join(kinds)}, which cannot be sorted. Pass labels "
            "of one type, such as strings."
        ) from error
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise ValueError(
            f"Unknown label type: y holds continuous values such as {classes[0]!r}. Pass one "
            "label for each set, such as an integer or a string."
        ) from error
    if len(labels) != n_sets:
        raise ValueError(
            f"X holds {n_sets} sets and y has {len(labels)} labels: inconsistent numbers of "
            "samples. Pass one label for each set."
        )
    check_several_classes(classes, n_sets)
    return classes, codes


def check_several_classes(classes: NDArray[Any], n_sets: int, *, which: str = "sets") -> None:
    """Refuse a single class."""
    if classes.size < 2:
        raise ValueError(
            f"All {n_sets} {which} are of one class, {classes.tolist()[0]!r}. Pass sets of at "
            "least two classes."
        )


def check_sample_weight(weights: Any, n_sets: int) -> Floats | None:
    """Weight of each set, at least 0, with some above; None if none are given."""
    if weights is None:
        return None
    found = as_numbers(weights, "sample_weight")
    if found.ndim == 0:
        found = np.full(n_sets, float(found))
    if found.shape != (n_sets,):
        raise ValueError(
            f"`sample_weight` must hold one number for each set, {n_sets} in all, got shape "
            f"{found.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if wrong.size:
        raise ValueError(
            f"`sample_weight` gives set {wrong[0]} the weight {found[wrong[0]]:g}. Weights must "
            "be finite numbers of at least 0; 0 leaves a set out."
        )
    if not found.any():
        # scikit-learn's checks look for "zero".
        raise ValueError("`sample_weight` is zero for all sets. Pass some weights above 0.")
    return found


def penalty_factors(training: ClassifiedSets, class_weight: Any) -> Floats | None:
    """Factor of C for each set: the weight of its class times its own; None if all are 1."""
    if class_weight is None:
        return training.weights
    if class_weight == "balanced":
        totals = np.bincount(training.codes, weights=training.weights)
        of_classes = totals.sum() / (len(totals) * totals)
    else:
        of_classes = _class_weights(class_weight, training.classes)
    factors = np.asarray(of_classes[training.codes])
    return factors if training.weights is None else factors * training.weights


def _class_weights(wanted: dict[Any, Any], classes: NDArray[Any]) -> Floats:
    """Weight of each class, 1 where none is given."""
    labels = classes.tolist()
    missing = [label for label in labels if label not in wanted]
    unknown = [label for label in wanted if label not in labels]
    # Other labels may belong to sets that cross-validation holds out.
    if unknown and missing:
        listed = ", ".join(map(repr, labels[:20])) + (", ..." if len(labels) > 20 else "")
        raise ValueError(
            f"`class_weight` names {unknown[0]!r}, which is not a class, and leaves out "
            f"{missing[0]!r}. The classes are {listed}."
        )
    of_classes = []
    for label in labels:
        weight = wanted.get(label, 1.0)
        if not number(above=0).fits(weight):
            raise ValueError(
                f"`class_weight` gives the class {label!r} the weight {weight!r:.100}. Pass "
                "positive numbers; to ignore a class, leave its sets out."
            )
        of_classes.append(float(weight))
    return np.array(of_classes)
