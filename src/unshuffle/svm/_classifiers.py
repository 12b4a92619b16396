"""Support vector classifiers of ordered sets, and their calibration."""

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from unshuffle._core.arrays import middle
from unshuffle._core.bags import Bags, gathered
from unshuffle._core.kernel_features import PointKernel
from unshuffle._core.parameters import check_kernel_memory
from unshuffle._run.parallel import map_parallel, wait_for
from unshuffle._run.printing import warn_user
from unshuffle._run.types import Floats, Orders
from unshuffle.svm._labels import ClassifiedSets
from unshuffle.svm._templates import Aligned, Candidates, Preparation, nearest_candidates

# Rows of a Gram matrix that one thread computes at a time; its temporaries stay in the cache.
ROWS = 64
# Squared distance between origin and center, over the variance of the points, that counts as far.
FAR = 100.0
# Limits on solver steps, and on steps times sets since steps take longer with many sets. libsvm
# needs far fewer unless kernel values are huge, and cannot be interrupted before.
MOST_STEPS = 10_000_000
MOST_WORK = 20_000_000_000


@dataclass(frozen=True)
class OrderedSetSVC:
    """A support vector classifier of ordered sets."""

    svc: SVC  # fitted to the Gram matrix of all training sets
    sets: Floats  # support vectors minus the center, shape (n_support, n_points, n_features)
    center: Floats  # subtracted from points if the kernel is linear and the origin far, else zeros
    n_train: int
    kernel: PointKernel | None
    margins: Floats  # one for each pair of classes

    def decision(self, sets: Floats, *, n_jobs: int | None = None) -> Floats:
        """Decision values of ordered sets, as `SVC.decision_function` gives them."""
        return np.asarray(self.svc.decision_function(self._gram(sets, n_jobs)))

    def predict(self, sets: Floats, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Labels of ordered sets, as `SVC.predict` gives them: by votes of all pairs."""
        return np.asarray(self.svc.predict(self._gram(sets, n_jobs)))

    def _gram(self, sets: Floats, n_jobs: int | None) -> Floats:
        check_kernel_memory(len(sets), self.n_train, n_copies=2)
        # SVC reads the columns of support vectors only.
        K = np.zeros((len(sets), self.n_train))
        sets = sets - self.center
        K[:, self.svc.support_] = ordered_gram(self.kernel, sets, self.sets, n_jobs=n_jobs)
        return K

    @property
    def dual_weights(self) -> Floats:
        """Weight of each training set in the normal of the plane between two classes."""
        weights = np.zeros(self.n_train)
        weights[self.svc.support_] = self.svc.dual_coef_[0]
        return weights


@dataclass(frozen=True)
class MarginProblem:
    """Training sets, and how classifiers are trained on them."""

    training: ClassifiedSets
    preparation: Preparation
    candidates: Candidates
    C: float
    factors: Floats | None  # of C, one for each set: the weights of its class and its own
    margin_weight: float
    bisect: bool
    n_jobs: int | None


def train(problem: MarginProblem, orders: Orders, y: NDArray[Any]) -> OrderedSetSVC:
    """Train a classifier on the sets in these orders, with these labels."""
    kernel = problem.preparation.features.kernel
    sets = gathered(problem.training.sets, problem.candidates.points(orders))
    center = _far_center(sets) if kernel is None else np.zeros(sets.shape[2])
    sets = sets - center
    K = ordered_gram(kernel, sets, sets, n_jobs=problem.n_jobs)
    # The seed changes nothing; without one, SVC would draw from NumPy's global generator.
    most_steps = min(MOST_STEPS, MOST_WORK // len(sets))
    svc = SVC(C=problem.C, kernel="precomputed", max_iter=most_steps, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported below
        try:
            wait_for(svc.fit, K, y, problem.factors)
        except ValueError as error:
            raise ValueError(
                f"Kernel values between sets reach {float(np.abs(K).max()):.3g}, too large for a "
                "support vector classifier. Divide the points by a common number first."
            ) from error
    if svc.fit_status_ != 0:
        warn_user(
            f"The support vector classifier did not converge with C={problem.C:g} and kernel "
            f"values up to {float(np.abs(K).max()):.3g}. Pass a smaller C, or center and scale "
            "the points first.",
            ConvergenceWarning,
        )
    return OrderedSetSVC(svc, sets[svc.support_], center, len(sets), kernel, _margins(svc, K))


def ordered_gram(
    kernel: PointKernel | None, a: Floats, b: Floats, *, n_jobs: int | None = None
) -> Floats:
    """Sum over positions of the kernel between the points of two ordered sets."""
    check_kernel_memory(len(a), len(b), n_copies=2)
    K = np.zeros((len(a), len(b)))

    def fill(start: int) -> None:
        rows = slice(start, start + ROWS)
        if kernel is None:
            K[rows] = a[rows].reshape(len(a[rows]), -1) @ b.reshape(len(b), -1).T
            return
        for k in range(a.shape[1]):
            K[rows] += kernel(a[rows, k], b[:, k])

    map_parallel(fill, range(0, len(a), ROWS), n_jobs=n_jobs)
    return K


def _far_center(sets: Floats) -> Floats:
    """Middle of all points if the origin is so far away that digits are lost, else zeros.

    A linear classifier moves with its sets, so centering changes only where the solver stops.
    """
    center = middle(sets.reshape(-1, sets.shape[2]))
    spread = float(((sets - center) ** 2).sum(axis=2).mean())
    return center if center @ center > FAR * spread else np.zeros_like(center)


def _margins(svc: SVC, K: Floats) -> Floats:
    """Margins 1 / |w| of all pairs of classes, from libsvm's coefficients."""
    K = K[np.ix_(svc.support_, svc.support_)]
    ends = np.concatenate([[0], np.cumsum(svc.n_support_)])
    margins = []
    for first, second in combinations(range(len(svc.n_support_)), 2):
        w = np.zeros(len(K))
        of_first, of_second = (slice(*ends[each : each + 2]) for each in (first, second))
        w[of_first] = svc.dual_coef_[second - 1, of_first]
        w[of_second] = svc.dual_coef_[first, of_second]
        margins.append(1.0 / np.sqrt(max(float(w @ K @ w), np.finfo(float).tiny)))
    return np.array(margins)


@dataclass(frozen=True)
class TemplateClassifier:
    """Classifies new sets in the order closest to the template."""

    preparation: Preparation
    template: Floats
    classifier: OrderedSetSVC

    def permutations(self, sets: Bags, *, n_jobs: int | None) -> Orders:
        """Indices into the sets, in the order of the template."""
        candidates = self.preparation.candidates(sets)
        orders = nearest_candidates(self.template, candidates.features, n_jobs=n_jobs)
        return candidates.points(orders)

    def decision(self, sets: Bags, *, n_jobs: int | None) -> Floats:
        """Decision values, shape (n_sets,) with two classes, else (n_sets, n_classes)."""
        ordered = gathered(sets, self.permutations(sets, n_jobs=n_jobs))
        return self.classifier.decision(ordered, n_jobs=n_jobs)

    def predict(self, sets: Bags, *, n_jobs: int | None) -> NDArray[np.intp]:
        """Index of the class of each set."""
        ordered = gathered(sets, self.permutations(sets, n_jobs=n_jobs))
        return self.classifier.predict(ordered, n_jobs=n_jobs)


@dataclass(frozen=True)
class LearnedClassifier:
    """Model of new sets, and the fitted attributes of the estimator."""

    model: Any  # a TemplateClassifier, or a PushedClassifier for margin_weight > 0
    templates: Floats
    permutations: Orders
    support: Orders
    radii: Floats
    margins: Floats
    n_rounds: int
    converged: bool


def learn_aligned(problem: MarginProblem, found: Aligned) -> LearnedClassifier:
    """Train one classifier of all classes on aligned sets."""
    candidates = problem.candidates
    orders = nearest_candidates(found.template, candidates.features, n_jobs=problem.n_jobs)
    classifier = train(problem, orders, problem.training.codes)
    permutations = candidates.points(orders)
    ordered = gathered(problem.training.sets, permutations)
    return LearnedClassifier(
        model=TemplateClassifier(problem.preparation, found.template, classifier),
        templates=np.einsum("n,nrd->rd", found.ball.weights, ordered)[np.newaxis],
        permutations=permutations[np.newaxis],
        support=np.unique(classifier.svc.support_),
        radii=np.sqrt(np.maximum(found.path, 0.0))[:, np.newaxis],
        margins=classifier.margins[np.newaxis],
        n_rounds=len(found.path),
        converged=found.converged,
    )


@dataclass(frozen=True)
class Sigmoids:
    """Probabilities 1 / (1 + exp(-(slope * value + shift))) of decision values, by column."""

    slopes: Floats
    shifts: Floats

    @classmethod
    def of(
        cls, decisions: Floats, positive: NDArray[np.bool_], weights: Floats | None
    ) -> "Sigmoids":
        """Fit sigmoids to held-out decision values; `positive` marks the true columns."""
        weights = np.ones(len(decisions)) if weights is None else weights
        columns = zip(decisions.T, positive.T, strict=True)
        return cls(*np.array([_sigmoid(*column, weights) for column in columns]).T)

    def probabilities(self, decisions: Floats) -> Floats:
        """Class probabilities, shape (n, n_classes); rows sum to 1."""
        shares = expit(decisions * self.slopes + self.shifts)
        if shares.shape[1] == 1:
            return np.hstack([1.0 - shares, shares])
        total = shares.sum(axis=1, keepdims=True)
        # All classes are equally likely if every sigmoid underflows.
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.divide(shares, total, out=even, where=total > 0.0)


def _sigmoid(values: Floats, positive: NDArray[np.bool_], weights: Floats) -> tuple[float, float]:
    """Slope and shift of one sigmoid, by Platt's method."""
    n_positive, n_negative = float(weights[positive].sum()), float(weights[~positive].sum())
    # Platt's targets stop short of 0 and 1, so that separable classes have a finite fit.
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    values = values / scale

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, shift = parameters
        logits = slope * values + shift
        excess = weights * (expit(logits) - target)
        cost = weights * (np.logaddexp(0.0, logits) - target * logits)
        return float(cost.sum()), np.array([excess @ values, excess.sum()])

    start = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return float(found[0]) / scale, float(found[1])
