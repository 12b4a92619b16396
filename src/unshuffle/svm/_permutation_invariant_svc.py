"""PermutationInvariantSVC: the estimator."""

import warnings
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.bags import BagEstimatorMixin
from unshuffle._core.parameters import (
    FLAG,
    Constraints,
    check_kernel_memory,
    check_parameters,
    number,
    option,
)
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.search import Callback, Search, fit_by_search
from unshuffle.svm._classifiers import (
    LearnedClassifier,
    MarginProblem,
    Sigmoids,
    learn_aligned,
)
from unshuffle.svm._labels import ClassifiedSets, check_sample_weight, penalty_factors
from unshuffle.svm._paper import check_push, learn_separated, separate_classes
from unshuffle.svm._templates import CONSTRAINTS, N_MATRICES, Preparation, align, warn_unconverged

# Folds in which decision values are held out for calibration.
N_FOLDS = 5


class _IfProbability:
    """A method that is only there with probability=True, and says so where it is missing.

    The error of scikit-learn's `available_if` ends with other words than those of its check.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Callable[..., Any]:
        if estimator is None:
            return self._method
        if not estimator.probability:
            raise AttributeError(
                f"{self._method.__name__} is not available with probability=False. Fit again with "
                "probability=True."
            )
        return MethodType(self._method, estimator)


class PermutationInvariantSVC(BagEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Classify sets of points with a support vector machine that finds the order of the points.

    Each set is reordered to lie as close as possible to a template, the center of all sets. A
    support vector machine is trained on the ordered sets.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for sets on the wrong side of the margin, as in scikit-learn's SVC. Larger values
        fit the training sets more closely. Larger sets need a smaller C.
    margin_weight : float, default=0.0
        How far training sets are pushed to the side of their class, relative to the template, with
        either kind of template; at most 1e8. 0 aligns to the template only. Larger values push the
        classes further apart, but use labels that new sets do not have: see Notes.
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Kernel between points. "poly" is ``(gamma x'y + 1)^degree``, "rbf" is
        ``exp(-gamma |x - y|^2)``. A callable takes two arrays of points and returns a matrix, or
        two points and returns a number; it must be positive definite.
    gamma : float or None, default=None
        Scale of the "rbf" and "poly" kernels. Larger values resolve finer differences. None is one
        over the median squared distance between points for "rbf", one over the number of features
        for "poly".
    degree : int, default=2
        Degree of the "poly" kernel. Higher degrees fit more flexible boundaries.
    n_landmarks : int, default=60
        Number of landmark points whose kernel features represent a point while sets are aligned,
        for kernels other than "linear". More landmarks are more exact and take more time. The
        classifier itself uses the exact kernel.
    template : {"mean", "ball"}, default="mean"
        Center of the ordered sets: their mean, or the center of the smallest ball around them, as
        in the paper. The mean is faster and as accurate.
    slack : float or None, default=None
        Fraction of the sets that may lie outside the ball. Larger values tolerate more outliers;
        None encloses all sets. Requires template="ball".
    bisect : bool, default=False
        Whether each set is pushed only as far as it must be to keep its own margin, and at most by
        `margin_weight`, as the paper suggests. Requires margin_weight > 0; takes about seven times
        as long.
    n_points : int or None, default=None
        Number of template points; None is the size of the largest set. More points follow the sets
        more closely and take longer.
    unequal : {"resample", "rectangular"}, default="resample"
        How to treat sets of other sizes, as in `SetAligner`.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the sets of each class, as in SVC. Sums of weights take the place of
        numbers of sets in "balanced" if `fit` is given a `sample_weight`.
    probability : bool, default=False
        Whether to enable `predict_proba`, which fits five more classifiers on parts of the sets.
    max_iter : int, default=50
        Maximum number of rounds of assigning all sets and moving the template and then, for
        margin_weight > 0, of pushing them apart. Larger values may fit the template better.
    tol : float, default=1e-3
        Relative change of the squared radius, or of (radius / margin)^2, at which to stop. Larger
        values stop sooner.
    random_state : int, RandomState instance or None, default=None
        Chooses the points to copy or leave out where sizes differ. Nothing else is random.
    n_jobs : int or None, default=None
        Number of threads over sets; more are faster. The result does not depend on it.
    callback : callable or None, default=None
        Called after each round with a `unshuffle.base.SearchState`, whose `objective` is the
        negative squared radius, or the negative (radius / margin)^2. Return True to stop and keep
        the result so far.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    templates_ : ndarray of shape (n_templates, n_points, n_features)
        Template points: the center of the ordered training sets. There is one template, or one for
        each class if margin_weight > 0 and there are three classes or more.
    permutations_ : ndarray of shape (n_templates, n_sets, n_points)
        `X[i][permutations_[k, i]]` is training set i in the order of template k; -1 if a
        `sample_weight` of 0 left the set out.
    support_ : ndarray of shape (n_support,)
        Indices of the sets that are support vectors of any of the classifiers.
    radius_path_ : ndarray of shape (n_rounds, n_templates)
        Radius of the ball, or root mean squared distance from the mean, after each round, in
        features. Never rises for margin_weight = 0. For margin_weight > 0 it covers the rounds of
        pushing, with NaN where a class converged before the others.
    margin_path_ : ndarray of shape (n_rounds, n_classifiers)
        Margins of the classifiers. For margin_weight = 0 a single row, with a column for each pair
        of classes; otherwise one row for each row of `radius_path_`, with a column for each
        template.
    gamma_ : float
        Scale of the kernel. Only with "rbf" and "poly".
    n_points_ : int
        Number of template points.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the order of the sets converged.
    n_features_in_ : int
        Number of columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, if the sets came as one table with names.

    Notes
    -----
    Sets of one point, such as the rows of a table, give the same results as scikit-learn's SVC.

    For margin_weight = 0, three classes or more are compared in pairs, as in SVC. For
    margin_weight > 0, each is compared with all others, in an order of its own; a new set is
    assigned to both sides and classified by the sum of the two decision values, which is the
    paper's rule up to ties.

    Pushing rarely pays: training sets are aligned with labels that new sets lack. On 3s and 9s as
    sets of 70 points, 95.5 percent of the new sets are right with margin_weight=0, and 82.5 with
    0.3 (MNIST, C = 0.3, linear kernel). Contrary to the paper, radius and margin need not improve
    in every round: moving one set moves the plane for all others.

    Time: one assignment per set and round, between quadratic and cubic in the template points, and
    n_sets^2 n_points kernel values for the classifier. Memory: n_sets^2, and n_sets * n_points *
    n_landmarks numbers, both checked before they are allocated.

    References
    ----------
    Shivaswamy and Jebara, "Permutation invariant SVMs", International Conference on Machine
    Learning (2006).

    Examples
    --------
    >>> from unshuffle import PermutationInvariantSVC
    >>> from unshuffle.datasets import digit_sets
    >>> sets, labels = digit_sets(160, digits=(0, 1), n_points=30)
    >>> classifier = PermutationInvariantSVC(kernel="rbf").fit(sets[:100], labels[:100])
    >>> classifier.score(sets[100:], labels[100:]) > 0.9
    True
    """

    _constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "C": [number(above=0)],
        # Beyond 1e8 squared distances lose the points in the rounding of the push.
        "margin_weight": [number(least=0, most=1e8)],
        "bisect": [FLAG],
        "class_weight": [option("balanced"), dict, None],
        "probability": [FLAG],
    }
    _sigmoids: Sigmoids | None

    def __init__(
        self,
        C: float = 1.0,
        margin_weight: float = 0.0,
        kernel: Any = "linear",
        *,
        gamma: float | None = None,
        degree: int = 2,
        n_landmarks: int = 60,
        template: str = "mean",
        slack: float | None = None,
        bisect: bool = False,
        n_points: int | None = None,
        unequal: str = "resample",
        class_weight: Any = None,
        probability: bool = False,
        max_iter: int = 50,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.C = C
        self.margin_weight = margin_weight
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.n_landmarks = n_landmarks
        self.template = template
        self.slack = slack
        self.bisect = bisect
        self.n_points = n_points
        self.unequal = unequal
        self.class_weight = class_weight
        self.probability = probability
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Align the sets and train the classifier.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order. The rows of a 2-D array are sets of one point.
        y : array-like of shape (n_sets,)
            Class of each set, with at least two classes.
        sample_weight : array-like of shape (n_sets,) or None, default=None
            Weights of the sets, at least 0. Sets of larger weights count more: 2 is as good as a
            second copy of the set, for template and classifier, and 0 leaves the set out. Only the
            default `gamma` and the parts that probability=True holds out count each set once.

        Returns
        -------
        self : PermutationInvariantSVC
            Fitted estimator. If the callback stops the fit or Ctrl-C interrupts it, it holds the
            result so far; the interrupt is raised afterwards.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        if self.bisect:
            check_push(self.margin_weight)
        training = ClassifiedSets.of(X, y, sample_weight, type(self).__name__)
        factors = penalty_factors(training, self.class_weight)
        if self.probability and np.bincount(training.codes).min() < 2:
            raise ValueError(
                "probability=True holds out part of each class in turn, but the smallest class "
                "has 1 set. Pass at least two sets of each class, or probability=False."
            )
        n_sets = len(training.sets)
        check_kernel_memory(n_sets, n_sets, n_copies=N_MATRICES)
        preparation = Preparation.of(training.sets, self)
        problem = MarginProblem(
            training,
            preparation,
            preparation.candidates(training.sets),
            self.C,
            factors,
            self.margin_weight,
            self.bisect,
            self.n_jobs,
        )
        search: Search[Any] = Search(self.callback)

        def solve() -> Any:
            found = align(problem.candidates, preparation, search, self.n_jobs, training.shares)
            return separate_classes(problem, found, search) if self.margin_weight else found

        def finish(found: Any) -> None:
            learn = learn_separated if self.margin_weight else learn_aligned
            self._store(X, problem, learn(problem, found))

        fit_by_search(self, search, solve, finish, partial(self._calibrate, problem))
        if not (self.converged_ or search.stopped):
            warn_unconverged(self.max_iter)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute decision values of sets.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.

        Returns
        -------
        decisions : ndarray of shape (n_sets,), or (n_sets, n_classes)
            With two classes, positive values mean the second. With more, one column for each
            class; the predicted class has the largest value unless votes are tied, as in SVC.
        """
        check_is_fitted(self, "classes_")
        return self._model.decision(self._bags_like_fitted(X), n_jobs=self.n_jobs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the classes of sets.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.

        Returns
        -------
        labels : ndarray of shape (n_sets,)
            Entries of `classes_`.
        """
        check_is_fitted(self, "classes_")
        sets = self._bags_like_fitted(X)
        return np.asarray(self.classes_[self._model.predict(sets, n_jobs=self.n_jobs)])

    @_IfProbability
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities of sets. Requires probability=True.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.

        Returns
        -------
        probabilities : ndarray of shape (n_sets, n_classes)
            Sigmoids of the decision values, fitted to held-out training sets. Rows sum to 1.
        """
        check_is_fitted(self, "classes_")
        if self._sigmoids is None:
            raise ValueError(
                "predict_proba was not calibrated: probability=True was set after fit, or fit was "
                "interrupted. Fit again."
            )
        decisions = self.decision_function(X)
        return self._sigmoids.probabilities(decisions.reshape(len(decisions), -1))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predicted classes.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.
        y : array-like of shape (n_sets,)
            True classes.
        sample_weight : array-like of shape (n_sets,) or None, default=None
            Weights of the sets.

        Returns
        -------
        score : float
            From 0 to 1.
        """
        predicted, truth = self.predict(X), np.asarray(y)
        if truth.shape != predicted.shape:
            raise ValueError(
                f"`y` must hold one class for each set, {len(predicted)} in all, got shape "
                f"{truth.shape}."
            )
        weights = check_sample_weight(sample_weight, len(predicted))
        return float(np.average(predicted == truth, weights=weights))

    def align(self, X: Any) -> NDArray[np.intp]:
        """Find the order in which sets are classified.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.

        Returns
        -------
        permutations : ndarray of shape (n_sets, n_points)
            `X[i][permutations[i]]` lies closest to the template or, for margin_weight > 0, to the
            template pushed to the side of the predicted class.
        """
        check_is_fitted(self, "classes_")
        return self._model.permutations(self._bags_like_fitted(X), n_jobs=self.n_jobs)

    def _store(self, X: Any, problem: MarginProblem, learned: LearnedClassifier) -> None:
        training = problem.training
        self._record_columns(X, training.sets)
        self.classes_ = training.classes
        self._model = learned.model
        self._sigmoids = None
        self.templates_ = learned.templates
        self.permutations_ = training.among_given(learned.permutations)
        self.support_ = training.numbers[learned.support]
        self.radius_path_ = learned.radii
        self.margin_path_ = learned.margins
        self.__dict__.pop("gamma_", None)  # from an earlier fit with another kernel
        kernel = problem.preparation.features.kernel
        if kernel is not None and self.kernel in ("rbf", "poly"):
            self.gamma_ = kernel.gamma
        self.n_points_ = problem.preparation.n_points
        self.n_iter_ = learned.n_rounds
        self.converged_ = learned.converged

    def _calibrate(self, problem: MarginProblem, interrupted: bool) -> None:
        """Fit sigmoids to decision values of sets that are held out in turn."""
        if interrupted or not self.probability:
            return
        training, preparation = problem.training, problem.preparation
        codes, weights = training.codes, training.weights
        fold = clone(self).set_params(probability=False, callback=None)
        fold.set_params(random_state=preparation.seed, n_points=preparation.n_points)
        # Weights reach the folds whether or not the user routes metadata.
        with warnings.catch_warnings(), config_context(enable_metadata_routing=False):
            warnings.simplefilter("ignore", ConvergenceWarning)  # raised once, for all sets
            decisions = cross_val_predict(
                fold,
                list(training.sets),
                training.classes[codes],
                cv=StratifiedKFold(min(N_FOLDS, int(np.bincount(codes).min()))),
                params=None if weights is None else {"sample_weight": weights},
                method="decision_function",
            )
        decisions = decisions.reshape(len(codes), -1)
        columns = np.arange(decisions.shape[1]) if decisions.shape[1] > 1 else np.array([1])
        self._sigmoids = Sigmoids.of(decisions, codes[:, None] == columns, weights)
