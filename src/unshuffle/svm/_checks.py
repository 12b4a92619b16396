"""Checks of sets and labels that are learned from."""

import warnings
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from unshuffle._arrays import as_array


def check_slack_template(slack: float | None, template: str) -> None:
    """Refuse slack where there is no ball."""
    if slack is not None and template != "ball":
        raise ValueError(
            f"slack={slack} is the share of sets outside the ball, and template={template!r} has "
            'no ball. Leave slack out, or use template="ball".'
        )


def check_bisect(bisect: bool, lam: float) -> None:
    """Refuse to look for the smallest push where there is none."""
    if bisect and lam == 0.0:
        raise ValueError(
            "bisect=True looks for the smallest push between 0 and lam, got lam=0. Pass lam above "
            "0, the most to try, such as 0.1, or leave bisect out."
        )


def check_classes(y: Any, n_sets: int, estimator: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Labels that occur, and for each set which of them it has; at least two."""
    if y is None:
        # scikit-learn's checks look for these words.
        raise ValueError(
            f"{estimator} requires y to be passed, but the target y is None. Pass the class of "
            "each set."
        )
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError("y is masked in places, so some sets have no label. Drop these sets.")
    y = as_array(y, "y", plain=False)
    if y.ndim == 0:
        raise ValueError(f"y must hold one label for each set, got {y!r:.60}.")
    if np.iscomplexobj(y):
        # scikit-learn's checks look for the first three words.
        raise ValueError("Complex data not supported: y holds complex numbers. Pass labels.")
    if y.ndim > 1 and y.shape[1:] != (1,):
        raise ValueError(f"y should be a 1d array of labels of the sets, got shape {y.shape}.")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity. Drop these sets, or label them.")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(each).__name__ for each in labels})
        raise ValueError(
            f"y holds labels that cannot be put in order, of the types {', '.join(kinds)}. Pass "
            "labels of one type, such as all strings."
        ) from error
    try:
        check_classification_targets(labels)
    except ValueError as error:
        # scikit-learn's checks look for the first three words.
        raise ValueError(
            f"Unknown label type: y holds {classes[0]!r} and other numbers that are not whole. "
            "Pass one label for each set, such as a whole number or a string."
        ) from error
    if len(labels) != n_sets:
        raise ValueError(
            f"bags holds {n_sets} sets and y has {len(labels)} labels: inconsistent numbers of "
            "samples. Pass one label for each set."
        )
    if classes.size < 2:
        raise ValueError(
            f"All {n_sets} sets are of one class, {classes.tolist()[0]!r}, so there is nothing to "
            "tell apart. Pass sets of at least two classes."
        )
    return classes, codes


def check_class_weights(
    weights: NDArray[np.float64], classes: NDArray[Any], codes: NDArray[np.intp]
) -> None:
    """Refuse weights that leave a class without a say."""
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if wrong.size:
        label, weight = classes.tolist()[codes[wrong[0]]], float(weights[wrong[0]])
        raise ValueError(
            f"class_weight gives the class {label!r} the weight {weight:g}. Pass weights above 0; "
            "leave the sets of a class out to learn without them."
        )


def raise_machine_failed(error: Exception, K: NDArray[np.float64]) -> NoReturn:
    """Say why the solver of the machine gave no numbers."""
    raise ValueError(
        f"The kernel of two sets is up to {float(np.abs(K).max()):.3g}, too large for a support "
        "vector machine. Divide the points by a common number first."
    ) from error


def warn_sets_unsettled(max_iter: int, *, stacklevel: int) -> None:
    """Say that sets were still being reordered when the rounds were over."""
    warnings.warn(
        f"The sets still moved after max_iter={max_iter} rounds. Raise max_iter, or tol, to let "
        "them settle.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_machine_unsettled(settled: bool, K: NDArray[np.float64], C: float) -> None:
    """Say that the solver of the machine was stopped."""
    if not settled:
        warnings.warn(
            f"The support vector machine did not settle: with C={C:g} and kernel values up to "
            f"{float(np.abs(K).max()):.3g} it takes too many steps. Pass a smaller C, or centre "
            "and scale the points first.",
            ConvergenceWarning,
            stacklevel=2,
        )


def check_probability(probability: bool) -> bool:
    """Say how probabilities are to be had, where they were not asked for."""
    if not probability:
        raise AttributeError(
            "predict_proba is not available when probability=False. Fit again with "
            "probability=True."
        )
    return True


def check_calibrated(calibrated: bool) -> None:
    """Refuse probabilities of a machine that was fitted, or interrupted, without them."""
    if not calibrated:
        raise ValueError(
            "predict_proba was not learnt: probability=True was set after fit, or fit was "
            "interrupted. Fit again."
        )


def check_enough_to_calibrate(n_fewest: int) -> None:
    """Refuse to hold out a part of a class that has one set."""
    if n_fewest < 2:
        raise ValueError(
            f"probability=True holds out a part of each class in turn, but the smallest class has "
            f"{n_fewest} set. Pass at least two sets of each class, or probability=False."
        )
