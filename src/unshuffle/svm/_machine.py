"""Support vector machines on ordered sets, by the exact kernel; the classes they tell apart."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from unshuffle._arrays import as_array, middle
from unshuffle._bags import Bags, gathered
from unshuffle._kernel_features import PointKernel
from unshuffle._parallel import map_parallel, wait_for
from unshuffle._parameters import check_kernel_memory
from unshuffle.svm._align import (
    Aligned,
    Array,
    Candidates,
    Orders,
    Placing,
    assigned_again,
    nearest_candidates,
)

# Rows of a Gram matrix that one thread takes at a time; its temporaries stay in the cache.
ROWS = 64
# Squared distance of the origin from all points, over their variance, that counts as far.
FAR = 100.0
# Steps of the solver, many more than it takes where kernel values are not huge; and of many sets,
# whose steps take longer, steps times sets. libsvm cannot be stopped before that.
MOST_STEPS = 10_000_000
MOST_WORK = 20_000_000_000


@dataclass(frozen=True)
class Machine:
    """A support vector machine on ordered sets."""

    svc: SVC  # fitted to the Gram matrix of all sets it learnt from
    sets: Array  # those that support it, shape (n_support, n_slots, n_features), about the centre
    center: Array  # taken from the points of the inner product where the origin is far, else zeros
    n_learnt: int
    kernel: PointKernel | None
    margins: Array  # half the gap between each two classes

    def decision(self, sets: Array, *, n_jobs: int | None = None) -> Array:
        """Decision values of ordered sets, as `SVC.decision_function` gives them."""
        return np.asarray(self.svc.decision_function(self._gram(sets, n_jobs)))

    def predict(self, sets: Array, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Labels of ordered sets, as `SVC.predict` gives them: by votes of pairs of classes."""
        return np.asarray(self.svc.predict(self._gram(sets, n_jobs)))

    def _gram(self, sets: Array, n_jobs: int | None) -> Array:
        check_kernel_memory(len(sets), self.n_learnt, n_copies=2)
        # Columns of sets that do not support the machine are never looked at.
        K = np.zeros((len(sets), self.n_learnt))
        sets = sets - self.center
        K[:, self.svc.support_] = slot_gram(self.kernel, sets, self.sets, n_jobs=n_jobs)
        return K

    @property
    def pulls(self) -> Array:
        """Weight of each set learnt from in the normal of the plane; of two classes."""
        pulls = np.zeros(self.n_learnt)
        pulls[self.svc.support_] = self.svc.dual_coef_[0]
        return pulls


@dataclass(frozen=True)
class Problem:
    """Sets to learn from, as the user gave them, and how machines are trained on them."""

    bags: Bags
    codes: NDArray[np.intp]  # class of each set as a number from 0
    placing: Placing
    candidates: Candidates
    C: float
    weights: Array | None  # multiply C, one for each set
    n_jobs: int | None


def train(problem: Problem, orders: Orders, y: NDArray[Any]) -> Machine:
    """Machine for the sets of a problem in these orders, with these labels."""
    kernel = problem.placing.features.kernel
    sets = gathered(problem.bags, problem.candidates.points(orders))
    center = _far_center(sets) if kernel is None else np.zeros(sets.shape[2])
    sets = sets - center
    K = slot_gram(kernel, sets, sets, n_jobs=problem.n_jobs)
    # a seed that nothing depends on: without one it would draw from the user's own generator
    most_steps = min(MOST_STEPS, MOST_WORK // len(sets))
    svc = SVC(C=problem.C, kernel="precomputed", max_iter=most_steps, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in other words below
        try:
            wait_for(svc.fit, K, y, problem.weights)
        except ValueError as error:
            raise ValueError(
                f"The kernel of two sets is up to {float(np.abs(K).max()):.3g}, too large for a "
                "support vector machine. Divide the points by a common number first."
            ) from error
    if svc.fit_status_ != 0:
        warnings.warn(
            f"The support vector machine did not settle: with C={problem.C:g} and kernel values "
            f"up to {float(np.abs(K).max()):.3g} it takes too many steps. Pass a smaller C, or "
            "centre and scale the points first.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Machine(svc, sets[svc.support_], center, len(sets), kernel, _margins(svc, K))


def slot_gram(
    kernel: PointKernel | None, a: Array, b: Array, *, n_jobs: int | None = None
) -> Array:
    """Sum over slots of the kernel between the points that stand there."""
    check_kernel_memory(len(a), len(b), n_copies=2)
    K = np.zeros((len(a), len(b)))

    def fill(start: int) -> None:
        rows = slice(start, start + ROWS)
        if kernel is None:
            K[rows] = a[rows].reshape(len(a[rows]), -1) @ b.reshape(len(b), -1).T
            return
        for slot in range(a.shape[1]):
            K[rows] += kernel(a[rows, slot], b[:, slot])

    map_parallel(fill, range(0, len(a), ROWS), n_jobs=n_jobs)
    return K


def _far_center(sets: Array) -> Array:
    """Middle of all points where the origin is so far off that it takes their digits, else zeros.

    Moving all sets moves the plane of the inner product with them and changes nothing else, but
    for where the solver happens to stop.
    """
    center = middle(sets.reshape(-1, sets.shape[2]))
    spread = float(((sets - center) ** 2).sum(axis=2).mean())
    return center if center @ center > FAR * spread else np.zeros_like(center)


def _margins(svc: SVC, K: Array) -> Array:
    """Margins 1 / |w| of all pairs of classes, from the layout of libsvm's coefficients."""
    K = K[np.ix_(svc.support_, svc.support_)]
    ends = np.concatenate([[0], np.cumsum(svc.n_support_)])
    n_classes = len(svc.n_support_)
    margins = []
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            pull = np.zeros(len(K))
            of_first, of_second = (slice(*ends[each : each + 2]) for each in (first, second))
            pull[of_first] = svc.dual_coef_[second - 1, of_first]
            pull[of_second] = svc.dual_coef_[first, of_second]
            squared = max(float(pull @ K @ pull), np.finfo(float).tiny)
            margins.append(1.0 / np.sqrt(squared))
    return np.array(margins)


@dataclass(frozen=True)
class Model:
    """Decides on new sets, each in the order closest to the template."""

    placing: Placing
    template: Array
    machine: Machine

    def permutations(self, bags: Bags, *, n_jobs: int | None) -> Orders:
        """Indices into the sets, in the order of the template."""
        candidates = self.placing.candidates(bags)
        orders = nearest_candidates(self.template, candidates.features, n_jobs=n_jobs)
        return candidates.points(orders)

    def decision(self, bags: Bags, *, n_jobs: int | None) -> Array:
        """Decision values, shape (n_sets,) of two classes, else (n_sets, n_classes)."""
        ordered = gathered(bags, self.permutations(bags, n_jobs=n_jobs))
        return self.machine.decision(ordered, n_jobs=n_jobs)

    def predict(self, bags: Bags, *, n_jobs: int | None) -> NDArray[np.intp]:
        """Class of each set, as a number from 0."""
        ordered = gathered(bags, self.permutations(bags, n_jobs=n_jobs))
        return self.machine.predict(ordered, n_jobs=n_jobs)


@dataclass(frozen=True)
class Learned:
    """What decides on new sets, and how it was come by: the attributes of the fitted estimator.

    `model` is a `Model`, or what the paper has in its place for lam > 0; `sigmoids` are there once
    decision values are calibrated.
    """

    model: Any
    template: Array
    permutations: Orders
    support: Orders
    radii: Array
    margins: Array
    n_rounds: int
    converged: bool
    sigmoids: "Sigmoids | None" = None


def learn_from(problem: Problem, found: Aligned) -> Learned:
    """The machine of all classes, on sets that were aligned."""
    found = assigned_again(found, problem.candidates, n_jobs=problem.n_jobs)
    machine = train(problem, found.orders, problem.codes)
    permutations = problem.candidates.points(found.orders)
    ordered = gathered(problem.bags, permutations)
    margins = machine.margins
    return Learned(
        model=Model(problem.placing, found.template, machine),
        template=np.einsum("n,nrd->rd", found.ball.weights, ordered),
        permutations=permutations,
        support=np.unique(machine.svc.support_),
        radii=np.sqrt(np.maximum(found.path, 0.0)),
        margins=margins if margins.size == 1 else margins[np.newaxis],
        n_rounds=len(found.path),
        converged=found.converged,
    )


@dataclass(frozen=True)
class Sigmoids:
    """Map from decision values to probabilities, one sigmoid for each column.

    That of a column is 1 / (1 + exp(-(slope * value + shift))).
    """

    slopes: Array
    shifts: Array

    @classmethod
    def of(cls, decisions: Array, positive: NDArray[np.bool_]) -> "Sigmoids":
        """Sigmoids for held-out decision values, where `positive` says which columns are true."""
        fitted = [_sigmoid(*column) for column in zip(decisions.T, positive.T, strict=True)]
        return cls(*np.array(fitted).T)

    def probabilities(self, decisions: Array) -> Array:
        """Probabilities of the classes, shape (n, n_classes); rows add up to 1."""
        shares = expit(decisions * self.slopes + self.shifts)
        if shares.shape[1] == 1:
            return np.hstack([1.0 - shares, shares])
        total = shares.sum(axis=1, keepdims=True)
        # Where no class is likely at all, none is likelier than another.
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.divide(shares, total, out=even, where=total > 0.0)


def _sigmoid(values: Array, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and shift of the sigmoid of one column, by Platt's method."""
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    # Platt's targets: a little short of certain, so that classes that part cleanly have a fit.
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    values = values / scale

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, shift = parameters
        logits = slope * values + shift
        excess = expit(logits) - target
        cost = np.logaddexp(0.0, logits) - target * logits
        return float(cost.sum()), np.array([excess @ values, excess.sum()])

    start = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return float(found[0]) / scale, float(found[1])


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


def class_weights(
    wanted: Any, classes: NDArray[Any], codes: NDArray[np.intp]
) -> NDArray[np.float64] | None:
    """Weight of each set, after that of its class; each class must have a say."""
    if wanted is None:
        return None
    weights = np.asarray(compute_sample_weight(wanted, classes[codes]))
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if wrong.size:
        label, weight = classes.tolist()[codes[wrong[0]]], float(weights[wrong[0]])
        raise ValueError(
            f"class_weight gives the class {label!r} the weight {weight:g}. Pass weights above 0; "
            "leave the sets of a class out to learn without them."
        )
    return weights
