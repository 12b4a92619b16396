"""OrbitLearner: the estimator."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unshuffle._core.arrays import check_column_names
from unshuffle._core.matrix_exponentials import Motion
from unshuffle._core.parameters import (
    ARRAY,
    WHOLE,
    Constraints,
    check_count,
    check_memory,
    check_parameters,
    check_seed,
    count,
    number,
    option,
)
from unshuffle._run.parallel import check_n_jobs, one_blas_thread
from unshuffle._run.search import Callback, fit_by_search
from unshuffle._run.types import Floats
from unshuffle.base import DoubtWarning
from unshuffle.orbits._algebra import describe_open, structure_constants
from unshuffle.orbits._held_out import HeldOutErrors, HeldOutFit
from unshuffle.orbits._least_squares import connect, order_generators
from unshuffle.orbits._likelihood import PairDensity, pair_with_nearest
from unshuffle.orbits._locate import check_coefficients, check_orbit_vector, locate
from unshuffle.orbits._paper import learn_log_trace
from unshuffle.orbits._problem import (
    OrbitProblem,
    as_targets,
    build_problem,
    check_loss,
    check_targets,
    check_vectors,
)
from unshuffle.orbits._search import (
    OrbitSearch,
    SearchOptions,
    Solution,
    learn_again,
    learn_squared,
)

_MOST_VALUES = 50  # of `spectrum_`
# Fits that only tell an error.
_STEPS_AGAIN = 20
_TOL_AGAIN = 1e-3


class OrbitLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn the transformations that generate the data, and extrapolate along them.

    For views of a rotating object, points on a sphere or growing shapes. The data are an orbit:
    one vector moved by exp(c_1 V_1 + ... + c_k V_k) for many c. The matrices V, the generators,
    are learned from pairs of vectors that lie on one orbit.

    Parameters
    ----------
    n_generators : int or None, default=None
        Number of generators. Larger values fit more closely and may fit noise. None uses the
        number that `spectrum_` suggests, without those that only fit noise.
    loss : {"squared", "logtrace"}, default="squared"
        "squared" minimizes the sum of ``|x - exp(sum c V) x'|^2`` over all pairs. "logtrace" is
        the paper's loss: the volume of one matrix A for each pair, plus the errors
        ``log(x'exp(-A)x + x''exp(A)x')``. It learns symmetric or diagonal matrices only (growth
        and decay, not rotation), from pairs with a positive inner product.
    structure : {"general", "symmetric", "skew", "diagonal"}, default="general"
        Structure of the generators. "skew" learns rotations.
    pairs : {"knn", "prototype", "all"} or array-like of shape (n_pairs, 2), default="knn"
        Pairs of vectors on one orbit: nearest neighbors, each row and the prototype, all pairs,
        or indices (i, j) where X[i] comes from X[j].
    pattern : array-like of bool of shape (d, d) or None, default=None
        True where an entry of the generators may be nonzero.
    prototype : int, array-like of shape (n_features,), or None, default=None
        Row of X, or vector, that `transform` and `inverse_transform` start from. None uses the
        medoid.
    n_neighbors : int, default=8
        Neighbors of each row with pairs="knn". Larger values include more distant pairs, which
        noise affects less.
    n_components : int or None, default=None
        Number of principal directions to work in, about `center`; for long vectors such as
        images. Larger values keep more detail and take longer. None uses the vectors themselves.
    center : {"auto", "mean", "origin"} or array-like of shape (n_features,), default="auto"
        With n_components, the point that is at rest: the mean of the vectors, zero, or a vector of
        your own. "auto" uses the mean, unless lengths from it change along the pairs while those
        from zero do not, as for part of a turn of an image.
    n_init : int, default=5
        Starts of loss="squared". Larger values find better optima. The first start is enough if
        it fits exactly.
    max_iter : int, default=200
        Largest number of steps of a descent. Larger values may fit more closely.
    tol : float, default=1e-7
        Stop when the cost falls by less than this fraction. Larger values stop sooner.
    random_state : int, RandomState instance or None, default=None
        Seed of random starts, and of the points of the orbit where `transform` starts.
    n_jobs : int or None, default=None
        Threads over starts, useful up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`, whose `objective` is minus the
        cost. Return True to stop and keep the best generators so far.
    constraints : (G, h) or None, default=None
        loss="logtrace" only: arrays of shape (m, d * d) and (m,). The matrix A of every pair
        satisfies G @ A.ravel() <= h. Each step is then a quadratic program, as with solver="mm".
    error_weight : float, default=10.0
        loss="logtrace" only: weight of the errors against the volume. Larger values fit more
        closely; smaller values use fewer directions.
    eps1 : float, default=1e-3
        loss="logtrace" only: added to the variance along each direction. Larger values ignore
        more of the small directions.
    eps2 : float, default=1e-3
        loss="logtrace" only: weight of the total size of the matrices. Larger values keep them
        smaller.
    solver : {"lbfgs", "mm"}, default="lbfgs"
        loss="logtrace" only: L-BFGS, or the paper's majorize-minimize steps, which reach the same
        cost more slowly.

    Attributes
    ----------
    generators_ : ndarray of shape (k, d, d)
        The matrices V, orthonormal as vectors, ordered by mean squared coefficients. d is
        `n_features_in_`, or `n_components`: they then act on the coordinates along `components_`.
    coefficients_ : ndarray of shape (n_pairs, k)
        Coefficients of each pair.
    pairs_ : ndarray of shape (n_pairs, 2)
        X[pairs_[n, 0]] is about exp(sum_j coefficients_[n, j] generators_[j]) X[pairs_[n, 1]].
        -1 stands for a prototype that is not a row of X. With `y`, the first index refers to y.
    spectrum_ : ndarray of shape (n_values,)
        Mean squares of the matrices of all pairs along their principal directions, largest
        first, at most 50. A drop shows how many generators there are. With loss="squared", the
        matrices of a relaxed fit.
    n_generators_ : int
        Number of generators.
    n_determined_ : int
        Number of generators that the pairs determine. If fewer than asked for, the others are
        commutators of these, or a warning says that they are arbitrary.
    structure_constants_ : ndarray of shape (k, k, k)
        V_i V_j - V_j V_i = sum_c structure_constants_[i, j, c] V_c + rest. All zero if the
        transformations commute.
    closure_ : float
        Share of the commutators in the rest: 0 if the generators span a Lie algebra, near 1 if
        the group they generate needs more of them.
    prototype_ : ndarray of shape (n_features,)
        Vector that orbits start from.
    objective_ : float
        Final cost.
    objective_path_ : ndarray of shape (n_steps + 1,)
        Cost at the start and after each step of the chosen descent; never rises.
    n_iter_ : int
        Steps of that descent, at least 1.
    converged_ : bool
        Whether that descent converged before `max_iter`.
    mean_ : ndarray of shape (n_features,)
        With n_components, the center about which vectors move.
    components_ : ndarray of shape (n_components, n_features)
        With n_components, the principal directions.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.
    held_out_error_ : float
        Relative error of vectors between the others, one in 24 and at most eight, that a
        second fit did not see: root mean square of ``|x - exp(sum c V) prototype_|``, with the
        closest c, over that of ``|x - mean_|`` (of ``|x|`` without n_components). With `y`, of
        targets, moved from X; if the pairs do not connect all rows, moved from the nearest row.
        Mostly too high, since the second fit has seen less. NaN with fewer than eight rows.
    extrapolation_error_ : float
        The same of the last fifth of the vectors along the orbit, which a third fit did not see:
        what to expect beyond the data, as far as a fifth of their extent. NaN if the orbit closes,
        with `y`, and if the pairs do not connect all rows.
    doubts_ : list of str
        Reasons to mistrust the generators: each of these errors that is above 0.1. If there are
        any, `DoubtWarning` is issued.

    Notes
    -----
    The result is a local optimum. Pairs all over the data determine the generators up to a choice
    of basis; pairs with one prototype hardly do. With noisy pairs, loss="squared" prefers flows
    within a smooth surface through all points if they explain the pairs about as well, since they
    extrapolate further. loss="logtrace" is convex for diagonal matrices and eps1 * eps2 >= 1/8,
    not in general as the paper states.

    The time of a step grows as n_pairs * d^2 for large d, and as n_pairs * (k d^2)^2 while
    k d^2 is below 300. Memory grows as n_pairs * d^2 and is checked first. 200 points in 3-D take
    .1 to 1 second, 72 images in 50 dimensions 15.

    References
    ----------
    Jebara and Bengio, "Orbit learning using convex optimization", Snowbird Workshop (2003).

    Examples
    --------
    Learn the whole circle from an arc:

    >>> import numpy as np
    >>> from unshuffle import OrbitLearner
    >>> angle = np.radians(np.linspace(10, 80, 60))
    >>> arc = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> learner = OrbitLearner(1, prototype=0, random_state=0).fit(arc)
    >>> np.abs(learner.generators_[0].round(3))
    array([[0.   , 0.707],
           [0.707, 0.   ]])
    >>> far = np.array([[np.cos(3.0), np.sin(3.0)]])  # beyond the arc
    >>> bool(np.allclose(learner.inverse_transform(learner.transform(far)), far))
    True
    """

    _constraints: ClassVar[Constraints] = {
        "n_generators": [count(), None],
        "loss": [option("squared", "logtrace")],
        "structure": [option("general", "symmetric", "skew", "diagonal")],
        "pairs": [option("knn", "prototype", "all"), ARRAY],
        "pattern": [ARRAY, None],
        "constraints": [tuple, list, None],
        "prototype": [WHOLE, ARRAY, None],
        "n_neighbors": [count()],
        "n_components": [count(), None],
        "center": [option("auto", "mean", "origin"), ARRAY],
        # beyond, products of the three would overflow
        "error_weight": [number(least=1e-50, most=1e50)],
        "eps1": [number(least=1e-50, most=1e50)],
        "eps2": [number(least=0, most=1e50)],
        "solver": [option("lbfgs", "mm")],
    }

    def __init__(
        self,
        n_generators: int | None = None,
        loss: str = "squared",
        structure: str = "general",
        pairs: Any = "knn",
        *,
        pattern: ArrayLike | None = None,
        prototype: Any = None,
        n_neighbors: int = 8,
        n_components: int | None = None,
        center: Any = "auto",
        n_init: int = 5,
        max_iter: int = 200,
        tol: float = 1e-7,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        constraints: Any = None,
        error_weight: float = 10.0,
        eps1: float = 1e-3,
        eps2: float = 1e-3,
        solver: str = "lbfgs",
    ) -> None:
        self.n_generators = n_generators
        self.loss = loss
        self.structure = structure
        self.pairs = pairs
        self.pattern = pattern
        self.prototype = prototype
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.center = center
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.constraints = constraints
        self.error_weight = error_weight
        self.eps1 = eps1
        self.eps2 = eps2
        self.solver = solver

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "OrbitLearner":
        """Learn the generators.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Nonzero vectors on an orbit.
        y : array-like of shape (n_samples, n_features) or None, default=None
            Targets of the rows of X; `pairs` is then not used. Labels, one for each row, are
            ignored.

        Returns
        -------
        self : OrbitLearner
            The fitted estimator. If the callback or Ctrl-C stops the search, the best so far is
            kept; KeyboardInterrupt is raised again.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_loss(self.loss, self.structure, self.constraints)
        rows = check_vectors(X).copy()  # kept, so it must not change with X
        targets = check_targets(y, rows)
        check_column_names(X, "X")
        k = None if self.n_generators is None else int(self.n_generators)
        options = SearchOptions(k, int(self.n_init), int(self.max_iter), self.tol, self.n_jobs)
        seed = int(check_random_state(self.random_state).randint(2**31))
        given: dict[str, Any] = {
            "structure": self.structure,
            "pattern": self.pattern,
            "pairs": self.pairs,
            "prototype": self.prototype,
            "n_neighbors": int(self.n_neighbors),
            "n_components": self.n_components,
            "center": self.center,
            "seed": seed,
        }
        with one_blas_thread():
            problem = build_problem(rows, targets, **given)
            problem.check_n_generators(k)
            search = OrbitSearch(self.callback, problem.space, options)
            solve = partial(self._solve, problem, options, search)
            store, judge = partial(self._store, X, problem), partial(self._judge, search)

            def hold_out(interrupted: bool) -> None:
                if not (search.stopped or interrupted):
                    found = (self.generators_, self.coefficients_)
                    again = partial(self._learn_again, options)
                    self._doubt(
                        HeldOutFit(rows, targets, problem, *found, given, again).leave_out()
                    )

            fit_by_search(self, search, solve, store, judge, hold_out)
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Coefficients that move the prototype closest to each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        coefficients : ndarray of shape (n_samples, k)
            The c that minimize ``|x - exp(sum c V) prototype_|``, the smallest if several are
            equally close. With n_components, distances are taken within the principal directions.

        Notes
        -----
        One generator is followed for a period or up to 40 turns, several for two turns or less;
        farther vectors may end in a local optimum. Time and memory grow as n_samples * d^2.
        """
        return self._locate(self._inside(self._check_rows(X)))

    def inverse_transform(self, c: ArrayLike) -> Floats:
        """Points on the orbit of the prototype.

        Parameters
        ----------
        c : array-like of shape (k,) or (n, k)
            Coefficients, as `transform` returns them.

        Returns
        -------
        vectors : ndarray of shape (n_features,) or (n, n_features)
            ``exp(sum c V) prototype_``.
        """
        check_is_fitted(self, "generators_")
        return self.orbit(self.prototype_, c)

    def orbit(self, x: ArrayLike, c: ArrayLike) -> Floats:
        """Points on the orbit of x.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Start of the orbit.
        c : array-like of shape (k,) or (n, k)
            Coefficients of the generators; zeros give x itself, larger values move it further.

        Returns
        -------
        vectors : ndarray of shape (n_features,) or (n, n_features)
            exp(sum c V) x. With n_components, the part of x outside the principal directions
            does not change.
        """
        check_is_fitted(self, "generators_")
        vector = check_orbit_vector(x, self.n_features_in_)
        coefficients = check_coefficients(c, self.n_generators_)
        moved = self._motion.moved(vector, np.atleast_2d(coefficients))
        return moved[0] if coefficients.ndim == 1 else moved

    def flow(self, x: ArrayLike) -> Floats:
        """Direction in which each generator moves x.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            A vector, such as an image.

        Returns
        -------
        directions : ndarray of shape (k, n_features)
            V_j x: the change of x per unit of coefficient j.
        """
        check_is_fitted(self, "generators_")
        return self._motion.flow(check_orbit_vector(x, self.n_features_in_))

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """Draw new vectors from the orbit of the prototype.

        Parameters
        ----------
        n : int, default=1
            Number of vectors.
        random_state : int, RandomState instance or None, default=None
            Seed of the coefficients.

        Returns
        -------
        vectors : ndarray of shape (n, n_features)
            Points at coefficients drawn from a Gaussian fitted to those of the rows of X (with
            `y`, to those of the pairs).
        """
        check_is_fitted(self, "generators_")
        count = check_count(n, "n")
        check_memory(
            8 * count * (self.n_features_in_ + 4 * len(self.generators_)),
            what=f"Drawing {count:,} vectors",
            instead="Pass a smaller `n`.",
        )
        random = check_seed(random_state)
        rows = self._inner_rows
        known = self.coefficients_ if rows is None else self._locate(rows)
        centered = known - known.mean(axis=0)
        # a factor of the covariance, whatever its rank
        _, lengths, axes = np.linalg.svd(centered, full_matrices=False)
        factor = lengths[:, None] * axes / np.sqrt(len(known))
        drawn = known.mean(axis=0) + random.normal(size=(count, len(factor))) @ factor
        return self.inverse_transform(drawn)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean log-likelihood of vectors that come from others; can choose `n_generators`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors. Without `y`, each comes from its nearest fitted rows, `n_neighbors` of them,
            or from the prototype with pairs="prototype".
        y : array-like of shape (n_samples, n_features) or None, default=None
            Targets, which come from the rows of X. Labels, one for each row, are ignored.

        Returns
        -------
        score : float
            Larger is better. Moves along the orbit and errors across it are taken as normally
            distributed, each with its variance among the fitted pairs. Compare scores only of
            vectors in the same units and, with n_components, of the same number of components.
        """
        rows = self._check_rows(X)
        targets = None if y is None else as_targets(y, rows)
        inner = self._inside(rows)
        if targets is not None:
            onto, sources = self._inside(targets), inner
        elif self._inner_rows is None:
            raise ValueError("The learner was fitted to targets. Pass y, the target of each row.")
        elif isinstance(self.pairs, str) and self.pairs == "prototype":
            start = np.broadcast_to(self._inside(self.prototype_[None]), inner.shape)
            return self._density.mean_log(self._locate(inner), inner, start)
        else:
            onto, sources = pair_with_nearest(inner, self._inner_rows, int(self.n_neighbors))
        with one_blas_thread():
            coefficients = connect(self.generators_, onto, sources)
            return self._density.mean_log(coefficients, onto, sources)

    @property
    def _motion(self) -> Motion:
        return Motion(self.generators_, self._subspace)

    def _check_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "generators_")
        rows = check_vectors(X)
        check_column_names(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)  # compares the columns
        return rows

    def _solve(
        self, problem: OrbitProblem, options: SearchOptions, search: OrbitSearch
    ) -> Solution:
        if self.loss == "squared":
            return learn_squared(problem, options, search)
        weights = (self.error_weight, self.eps1, self.eps2)
        return learn_log_trace(problem, options, search, weights, self.constraints, self.solver)

    def _learn_again(self, options: SearchOptions, part: OrbitProblem) -> Floats:
        """Matrices learned from some rows alone, with as many generators and few starts."""
        k = min(self.n_generators_, len(part.pairs.targets), part.space.n_dimensions)
        options = replace(
            options,
            n_generators=k,
            n_init=1,
            max_iter=min(options.max_iter, _STEPS_AGAIN),
            tol=max(options.tol, _TOL_AGAIN),
        )
        search = OrbitSearch(None, part.space, options)
        if self.loss == "squared":
            return learn_again(part, options, search)
        found = self._solve(part, options, search).descent
        return part.space.matrices(found.generators)

    def _store(self, X: ArrayLike, problem: OrbitProblem, found: Solution) -> None:
        validate_data(self, X, reset=True, skip_check_array=True)  # records the columns
        self._seed, self._subspace = problem.seed, problem.subspace
        self.held_out_error_ = self.extrapolation_error_ = np.nan
        self.doubts_: list[str] = []
        self._inner_rows, self._n_open = problem.rows, found.n_open
        for name in ("mean_", "components_"):  # an earlier fit may have set them
            self.__dict__.pop(name, None)
        if problem.subspace is not None:
            self.mean_, self.components_ = problem.subspace.mean, problem.subspace.components
        pairs, self.pairs_ = problem.pairs, problem.pairs.indices
        self.prototype_ = problem.prototype.vector.copy()
        run = order_generators(found.descent)
        self.generators_ = problem.space.matrices(run.generators)
        self.coefficients_ = run.coefficients
        ends = (pairs.scale * each for each in (pairs.targets, pairs.sources))
        self._density = PairDensity.fitted(self.generators_, self.coefficients_, *ends)
        self.spectrum_ = found.spectrum[:_MOST_VALUES]
        self.n_generators_ = len(self.generators_)
        self.n_determined_ = found.n_determined
        self.structure_constants_, self.closure_ = structure_constants(self.generators_)
        self.objective_path_ = np.minimum.accumulate(np.array(run.path)) * found.scale
        self.objective_ = float(self.objective_path_[-1])
        self.n_iter_ = max(1, len(run.path) - 1)
        self.converged_ = run.converged

    def _judge(self, search: OrbitSearch, interrupted: bool) -> None:
        if not (self.converged_ or search.stopped):
            warnings.warn(
                f"The generators still changed after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self._n_open:
            message = describe_open(self.n_determined_, self.n_generators_)
            warnings.warn(message, UserWarning, stacklevel=4)

    def _doubt(self, errors: HeldOutErrors) -> None:
        self.held_out_error_, self.extrapolation_error_ = errors.between, errors.beyond
        self.doubts_ = errors.list_doubts()
        if self.doubts_:
            advice = errors.advise(self.n_generators_, self.structure, self.n_components)
            reasons = "; ".join(self.doubts_)
            message = f"{reasons[0].upper()}{reasons[1:]}. {advice}"
            warnings.warn(message, DoubtWarning, stacklevel=5)

    def _inside(self, rows: Floats) -> Floats:
        """Coordinates in the subspace, if there is one."""
        return rows if self._subspace is None else self._subspace.inside(rows)

    def _locate(self, inner: Floats) -> Floats:
        start = self._inside(self.prototype_[None])[0]
        with one_blas_thread():
            slack = self._density.across
            return locate(self.generators_, start, inner, slack=slack, seed=self._seed)

    @property
    def _n_features_out(self) -> int:
        return len(self.generators_)
