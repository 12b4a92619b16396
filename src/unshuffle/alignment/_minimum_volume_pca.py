"""MinimumVolumePCA: the estimator."""

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import (
    MISSING,
    BagEstimatorMixin,
    Bags,
    check_bags_memory,
    check_several_bags,
    equal_sizes,
    gathered,
)
from unshuffle._parallel import check_n_jobs
from unshuffle._parameters import (
    ARRAY,
    FLAG,
    FUNCTION,
    Constraints,
    check_count,
    check_parameters,
    count,
    number,
    option,
)
from unshuffle._points import PointFeatures
from unshuffle._progress import Callback, fit_by_search
from unshuffle.alignment._components import (
    Components,
    check_fractions,
    check_n_components,
    check_scores,
)
from unshuffle.alignment._paper import check_directions
from unshuffle.alignment._search import (
    Descending,
    Descents,
    Run,
    Sized,
    check_features_vary,
    check_missing_points,
    check_no_larger,
    check_points_vary,
)
from unshuffle.alignment._sweeps import Arrangement, filled, slot_means
from unshuffle.alignment._volume import expected_trace


class MinimumVolumePCA(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Describe bags of points by few components, in the common order that it finds for them.

    Digits as clouds of ink, shapes as landmarks, cells as sets of markers: the points of such bags
    have no order, so point k of one has nothing to do with point k of another. Here the points of
    all bags are matched with each other so that the ordered bags take little room, and ordinary
    (kernel) PCA of these needs few components and can morph one bag into another.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Components kept; more follow each bag more closely. Between 0 and 1, as many as hold that
        share of the variance. None is all that have any.
    method : {"mean", "covariance", "variational"}, default="mean"
        "mean" assigns each bag to the mean of the others. "covariance" then goes on to assign
        each to what the others' mean and covariance predict of it, which lowers the volume
        further: fewer components hold the variance of the fitted bags, while new bags are
        described about as well as before. "variational" is the paper's own bound in place of
        that prediction, for comparison: it hardly moves from where the mean ended.
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Similarity of points. "poly" is (gamma x'y + 1)^degree, "rbf" exp(-gamma |x - y|^2). A
        callable takes two arrays of points and gives a matrix, or two points and gives a number;
        it must be positive definite.
    gamma : float or None, default=None
        Larger sees finer differences. None is one over the median squared distance of points for
        "rbf", one over the number of features for "poly".
    degree : int, default=2
        Of "poly"; larger bends more.
    n_landmarks : int, default=60
        Most features of a point with a kernel other than "linear"; larger comes closer to the
        kernel and takes more time and memory. Exact where there are no more points than this.
    regularization : float, default=0.1
        Added to the variance in every direction, as a share of the mean variance of bags in
        random order. Larger makes "covariance" more like "mean"; smaller trusts directions that
        few bags show.
    n_points : int or None, default=None
        Points of each bag in the common order; None is the size of the largest bag. Larger bags
        lose points at random.
    unequal : {"resample", "missing"}, default="resample"
        What to do with smaller bags: copy points at random, which suits samples of a shape, or
        leave slots empty, which suits landmarks some of which were not seen ("mean" only; an
        empty slot counts as its mean).
    swaps : bool, default=False
        Whether "covariance" also exchanges pairs of points. Lowers the volume a little more and
        takes about five times as long.
    init : array-like of shape (n_bags, n_points) or None, default=None
        Order to start from, in the form of `permutations_`, such as those of `MultiwaySorting`;
        the bags must be of one size. None assigns all bags to the first. Ends rarely depend on it.
    n_init : int, default=1
        Bags from which to start in turn, the first replaced by `init`; the best end is kept. More
        find a better one, though rarely a much better: on digits the ends differ by a tenth of a
        per cent.
    max_iter : int, default=100
        Most sweeps over all bags, in each stage.
    tol : float, default=1e-6
        Relative fall of the trace, or fall of the log-volume, below which to stop. Larger stops
        sooner.
    random_state : int, RandomState instance or None, default=None
        Which bags to start from after the first, and which points are copied or left out. With
        bags of one size and n_init=1 nothing is random.
    n_jobs : int or None, default=None
        Threads over starts; more are faster, up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called after each sweep with a state that has `iteration`, `objective` (the trace or the
        log-volume with its sign changed: larger is better), `permutation` (of all bags, in the
        shape of `permutations_`), `stage` and `fraction`. Returning True stops; the best order so
        far is kept.

    Attributes
    ----------
    permutations_ : ndarray of shape (n_bags, n_points_)
        `X[i][permutations_[i]]` is bag i in the common order, which is the order of bag 0; -1
        where a point is missing.
    components_ : ndarray of shape (n_components, n_points_ * n_kernel_features)
        Directions of most variance of the ordered bags, orthonormal. With the linear kernel,
        `components_.reshape(-1, n_points_, n_features_in_)` moves the points.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the fitted bags along each.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share in the whole.
    mean_ : ndarray of shape (n_points_, n_features_in_)
        Mean of the ordered bags.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Trace of the covariance of the bags at the start and after each sweep. Never rises for
        "mean"; the others give some of it up for volume.
    log_volume_path_ : ndarray
        Sum of log(eigenvalue + regularization) of that covariance, at the start and after each
        sweep; for "covariance" and "variational" from the end of the mean stage on, and then it
        never rises. Empty where a callback stopped these before.
    n_points_ : int
        Points of each bag in the common order.
    n_iter_ : int
        Sweeps that led to the answer.
    converged_ : bool
        Whether the bags settled.
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, where the bags came as one table with names.

    Notes
    -----
    A local optimum is promised, not the smallest volume, which is NP-hard to find. The order of
    points inside the bags given changes nothing but the indices.

    A sweep of "mean" takes one assignment per bag, so it grows in proportion to the bags and
    between the square and the cube of the number of points: .05 seconds for 100 bags of 70
    points, 3 seconds for 100 of 560. "covariance" takes two or three assignments per bag and a
    Cholesky factor of n_bags^2 numbers: .1 to .2 seconds for 100 bags, 2 for 400, and in the end
    the fourth power of the number of bags. Memory: some copies of n_bags * n_points * n_landmarks
    numbers, checked before they are taken, and n_bags^2.

    What differs from the paper: the first bag is not kept in place while others move, since it
    then never joins them; bags are left out of the mean and covariance they are compared with;
    and the covariance step is a tangent of the cost, which in the kernel form is concave, rather
    than Jensen's bound, whose weights are negative there.

    Pre-images: with a kernel other than "linear", `inverse_transform` goes back to points by a
    ridge regression on the features of all fitted points. The features of a point give it back
    within .05 per cent on clouds of ink with "rbf", exactly with "poly"; what a projection onto
    few components loses comes on top, and is more than with the linear kernel, which is made for
    these distances (of held-out digits .054 of the squared spread against .040).

    References
    ----------
    Jebara, "Kernelizing sorting, permutation and alignment for minimum volume PCA", Conference on
    Learning Theory (2004).

    Examples
    --------
    Noisy copies of one shape, each in an order of its own:

    >>> import numpy as np
    >>> from unshuffle import MinimumVolumePCA
    >>> rng = np.random.default_rng(0)
    >>> shape = rng.normal(size=(30, 2))
    >>> bags = [rng.permutation(shape + 0.05 * rng.normal(size=(30, 2))) for _ in range(10)]
    >>> aligned = MinimumVolumePCA(n_components=3).fit(bags)
    >>> aligned.permutations_.shape
    (10, 30)
    >>> aligned.transform(bags).shape
    (10, 3)
    >>> halfway = aligned.morph(0, 1, 0.5)
    >>> halfway.shape
    (30, 2)
    """

    _constraints: ClassVar[Constraints] = {
        "n_components": [count(), number(above=0, below=1), None],
        "method": [option("mean", "covariance", "variational")],
        "kernel": [option("linear", "poly", "rbf"), FUNCTION],
        "n_landmarks": [count()],
        "regularization": [number(above=0, most=1e8)],
        "unequal": [option("resample", "missing")],
        "swaps": [FLAG],
        "init": [ARRAY, None],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        method: str = "mean",
        kernel: Any = "linear",
        *,
        gamma: float | None = None,
        degree: int = 2,
        n_landmarks: int = 60,
        regularization: float = 0.1,
        n_points: int | None = None,
        unequal: str = "resample",
        swaps: bool = False,
        init: ArrayLike | None = None,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.n_landmarks = n_landmarks
        self.regularization = regularization
        self.n_points = n_points
        self.unequal = unequal
        self.swaps = swaps
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> "MinimumVolumePCA":
        """Find the common order of the bags, and the components of the ordered bags.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Bags of points in any order; the rows of a 2-D array are bags of one point.
        y : None
            Not used.

        Returns
        -------
        self : MinimumVolumePCA
            Fitted, with the best order so far if the callback stopped it. After Ctrl-C the
            estimator is fitted so too, and the interrupt goes on to the caller.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_missing_points(self.unequal, self.method, self.n_points)
        given = Bags.of(X)
        check_several_bags(len(given), "bags")
        check_points_vary(given.points, "bags")
        if self.kernel == "linear":
            given.check_none_wild()
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31))
        n_points = int(self.n_points or given.sizes.max())
        n_features = given.width if self.kernel == "linear" else int(self.n_landmarks)
        check_bags_memory(len(given), n_points, n_features)
        chosen = equal_sizes(given, n_points, missing=self.unequal == "missing", seed=seed)
        features = PointFeatures.of(
            gathered(given, chosen)[chosen != MISSING],
            self.kernel,
            gamma=self.gamma,
            degree=int(self.degree),
            rank=int(self.n_landmarks),
        )
        sized = Sized.of(given, chosen, features)
        check_features_vary(sized.mapped[sized.present], self.kernel)
        check_n_components(self.n_components, min(len(given) - 1, sized.mapped[0].size))
        if self.method == "variational":
            check_directions(sized.mapped[0].size)
        starts = sized.starts(self.init, int(self.n_init), random)
        search = Descents(self.callback, self._descending(sized), sized, len(starts))
        fit_by_search(
            self,
            search,
            lambda: search.solve(starts, self.n_jobs),
            partial(self._store, X, sized, features, seed),
        )
        if not (self.converged_ or search.stopped):
            warnings.warn(
                f"The bags still moved after max_iter={self.max_iter} sweeps. Raise max_iter, or "
                "tol, to let them settle.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates of bags along the components, each bag aligned first.

        Parameters
        ----------
        X : what `fit` takes
            New bags, or the fitted ones; wrap a single bag in a list.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_components)
            Row i belongs to bag i.
        """
        new, orders = self._aligned(X)
        return self._components.scores(self._components.ordered(new.mapped, new.present, orders))

    def align(self, X: Any) -> NDArray[np.intp]:
        """Order of new bags that agrees with the fitted ones.

        A bag is assigned to the mean bag, then up to ten times projected onto the components
        and assigned to its projection.

        Parameters
        ----------
        X : what `fit` takes
            New bags; wrap a single bag in a list.

        Returns
        -------
        permutations : ndarray of shape (n_bags, n_points_)
            `X[i][permutations[i]]` is bag i in the common order; -1 where a point is missing.
        """
        new, orders = self._aligned(X)
        return np.take_along_axis(new.chosen, orders, axis=1)[:, self._slots]

    def inverse_transform(self, Y: ArrayLike) -> NDArray[np.float64]:
        """Points at coordinates along the components.

        Parameters
        ----------
        Y : array-like of shape (n, n_components)
            Such as `transform` returns.

        Returns
        -------
        bags : ndarray of shape (n, n_points_, n_features_in_)
            In the common order. With a kernel other than "linear" these are pre-images: points
            found by a ridge regression from features, see Notes.
        """
        check_is_fitted(self, "permutations_")
        scores = check_scores(Y, len(self.components_))
        features = self._components.bags(scores)[:, self._slots]
        points = self._features.points(features.reshape(-1, features.shape[-1]))
        return points.reshape(len(scores), self.n_points_, self.n_features_in_)

    def morph(self, i: int, j: int, t: ArrayLike) -> NDArray[np.float64]:
        """Points on their way from fitted bag i to fitted bag j.

        Parameters
        ----------
        i, j : int
            Indices of bags that were fitted.
        t : float or array-like of shape (n,)
            0 is bag i, 1 is bag j, values between are between; larger than 1 goes beyond j.

        Returns
        -------
        points : ndarray of shape (n_points_, n_features_in_), or (n, n_points_, n_features_in_)
            Point k moves on a line from the k-th point of one bag, in the common order, to the
            k-th of the other. A missing point counts as the mean of its slot.
        """
        check_is_fitted(self, "permutations_")
        last = len(self._points) - 1
        start = self._points[check_count(i, "i", least=0, most=last)]
        end = self._points[check_count(j, "j", least=0, most=last)]
        moments = check_fractions(t)[..., None, None]
        return np.asarray((1.0 - moments) * start + moments * end)

    def _descending(self, sized: Sized) -> Descending:
        scale = expected_trace(sized.mapped) / (len(sized.mapped) - 1)
        return Descending(
            method=self.method,
            ridge=self.regularization * max(scale, np.finfo(float).tiny),
            swaps=self.swaps,
            max_iter=int(self.max_iter),
            tol=self.tol,
        )

    def _store(self, X: Any, sized: Sized, features: PointFeatures, seed: int, run: Run) -> None:
        self._record_columns(X, sized.bags)
        self._seed = seed
        found = np.take_along_axis(sized.chosen, run.order, axis=1)
        slots = _own_order(found[0])
        ordered = Arrangement.ordered(sized.mapped, sized.present, run.order)
        # Kept as before the slots are renamed, so that no result depends on the order inside
        # bag 0, even where points lie equally far from two slots.
        components = Components.of(filled(ordered), self.n_components)
        self.permutations_ = np.ascontiguousarray(found[:, slots])
        here = self.permutations_ != MISSING
        points = Arrangement(gathered(sized.bags, self.permutations_), self.permutations_, here)
        self.mean_ = slot_means(points)
        self._points = filled(points)
        self._features = features
        self._components = components
        self._slots = slots
        self.components_ = components.reordered(slots).directions
        self.explained_variance_ = components.variances
        self.explained_variance_ratio_ = components.ratios
        self.objective_path_ = np.array(run.traces)
        self.log_volume_path_ = np.array(run.volumes)
        self.n_points_ = found.shape[1]
        self.n_iter_ = run.n_sweeps
        self.converged_ = run.converged

    def _aligned(self, X: Any) -> tuple[Sized, NDArray[np.intp]]:
        check_is_fitted(self, "permutations_")
        given = self._bags_like_fitted(X)
        missing = self.unequal == "missing"
        if missing:
            check_no_larger(given.sizes, self.n_points_, "bags")
        chosen = equal_sizes(given, self.n_points_, missing=missing, seed=self._seed)
        new = Sized.of(given, chosen, self._features)
        return new, self._components.align(new.mapped, new.present)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _own_order(permutation: NDArray[np.intp]) -> NDArray[np.intp]:
    """Slots in the order of the points of a bag, those that are missing last."""
    last = np.iinfo(np.intp).max
    return np.argsort(np.where(permutation == MISSING, last, permutation), kind="stable")
