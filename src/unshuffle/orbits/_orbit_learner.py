"""OrbitLearner: the estimator."""

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unshuffle._arrays import as_numbers, as_rows, check_column_names, check_magnitude
from unshuffle._motion import Motion
from unshuffle._parallel import check_n_jobs, one_blas_thread
from unshuffle._parameters import (
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
from unshuffle._progress import Callback, fit_by_search
from unshuffle.orbits._locate import check_coefficients, check_orbit_vector, locate
from unshuffle.orbits._low_rank import ordered, structure_constants
from unshuffle.orbits._paper import check_log_trace, learn_log_trace, refuse_constraints
from unshuffle.orbits._problem import (
    MatrixSpace,
    Problem,
    check_learning_memory,
    check_n_generators,
    checked_targets,
    chosen_pairs,
    chosen_prototype,
    chosen_subspace,
    regression_pairs,
)
from unshuffle.orbits._search import OrbitSearch, Settings, Solution, learn_squared

Array = NDArray[np.float64]

_MOST_LISTED = 50  # values of the spectrum


class OrbitLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn the transformations that generate the data, and move along them beyond the data.

    Views of a turning object, points on a sphere, growing shapes: the data are an orbit, one
    vector moved by exp(c_1 V_1 + ... + c_k V_k) for many c. The matrices V, the generators, are
    learned from pairs of vectors that should lie on one orbit. What follows the data locally by
    tangents leaves them soon; an orbit goes on around the curve.

    Parameters
    ----------
    n_generators : int or None, default=None
        Generators to learn; more fit more closely and may fit noise. None is the number that
        `spectrum_` suggests.
    loss : {"squared", "logtrace"}, default="squared"
        "squared" lowers the sum of |x - exp(sum c V) x'|^2 over all pairs. "logtrace" is the
        paper's cost, with one matrix for each pair: their volume and the error
        log(x'exp(-A)x + x''exp(A)x'). It learns symmetric or diagonal matrices only (growth and
        decay, no rotation), from pairs with a positive inner product.
    structure : {"general", "symmetric", "skew", "diagonal"}, default="general"
        Matrices to choose from. "skew" are rotations.
    pairs : {"knn", "prototype", "all"} or array-like of shape (n_pairs, 2), default="knn"
        Which vectors lie on one orbit: near neighbours, all and the prototype, every two, or
        (i, j) where X[i] comes from X[j].
    pattern : array-like of bool of shape (d, d) or None, default=None
        True where an entry of the matrices may differ from 0.
    prototype : int, array-like of shape (n_features,), or None, default=None
        Row of X, or vector, that `transform` and `inverse_transform` start from; None is the
        medoid.
    n_neighbors : int, default=8
        Neighbours with pairs="knn". More, and so farther ones, suffer less from noise.
    n_components : int or None, default=None
        Principal directions of the data to work in, for long vectors such as images: matrices
        then move these, about the mean. None works with the vectors as they are.
    n_init : int, default=5
        Starts of "squared"; more find a better optimum. None beyond the first is needed where
        that fits exactly.
    max_iter : int, default=200
        Most steps of a descent.
    tol : float, default=1e-7
        Relative fall of the cost below which to stop. Larger stops sooner.
    random_state : int, RandomState instance or None, default=None
        Of random starts, and of places where `transform` starts.
    n_jobs : int or None, default=None
        Threads over starts; more are faster, up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a state that has `iteration`, `objective` (the cost with its
        sign changed: larger is better), `generators` (so far), `stage` and `fraction`. Returning
        True stops; the best so far is kept.
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
        The matrices V, orthonormal as vectors, ordered by the mean squares of their
        coefficients. d is n_features_in_, or n_components where given: they then act on the
        coordinates along `components_`.
    coefficients_ : ndarray of shape (n_pairs, k)
        How far each pair goes along each generator.
    pairs_ : ndarray of shape (n_pairs, 2)
        X[pairs_[n, 0]] is about exp(sum_j coefficients_[n, j] generators_[j]) X[pairs_[n, 1]].
        -1 stands for a prototype that is no row of X. With `y`, the first index is one of y.
    spectrum_ : ndarray
        Mean squares of the matrices of all pairs along their principal directions, largest
        first, at most 50: of the matrices learned by "logtrace", of a relaxed fit for "squared".
        More directions than are kept, so that one sees how many there are.
    n_generators_ : int
        Generators learned.
    structure_constants_ : ndarray of shape (k, k, k)
        V_i V_j - V_j V_i = sum_c structure_constants_[i, j, c] V_c + rest. Zeros for a group
        whose transformations commute; those of rotations in space are antisymmetric in all three.
    closure_ : float
        Share of the commutators in the rest: 0 where the generators span a Lie algebra, towards
        1 where the group they generate needs more of them.
    prototype_ : ndarray of shape (n_features,)
        Vector that orbits start from.
    objective_ : float
        Cost at the end.
    objective_path_ : ndarray
        Cost at the start and after each step of the descent that was kept; never rises.
    n_iter_ : int
        Steps of that descent, at least 1.
    converged_ : bool
        Whether it ended by itself.
    mean_ : ndarray of shape (n_features,)
        With n_components, the centre about which vectors move.
    components_ : ndarray of shape (n_components, n_features)
        With n_components, the principal directions.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    Notes
    -----
    A local optimum is promised. Pairs with one prototype hardly tell generators apart: many
    others give the same orbit of that one vector. Pairs all over the data tell them apart up to
    a choice of basis.

    Where vectors are noisy, generators that fit the pairs best also fit their noise. Flows within
    a smooth surface through all points, which "squared" also tries, are then kept where they
    explain the pairs as well up to that noise; they extrapolate further.

    A step takes time in proportion to n_pairs * d^2 for large d, and n_pairs * (k d^2)^2 where
    k d^2 is below 300; the relaxed fit n_pairs * d^3 and more. Memory: some copies of
    n_pairs * d^2 numbers, checked before they are taken. 200 points in 3-D take .1 to 1 second,
    72 images in 50 dimensions 15.

    "logtrace" is convex for diagonal matrices and eps1 * eps2 >= 1/8, not in general as the paper
    has it. The second moment of the matrices is not centred, since a mean that costs nothing
    grows without bound.

    References
    ----------
    Jebara and Bengio, "Orbit learning using convex optimization", Snowbird Workshop (2003).

    Examples
    --------
    An arc of a circle tells what the whole circle is:

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
            Vectors on orbits, none of them zero.
        y : array-like of shape (n_samples, n_features) or None, default=None
            Vectors that those of X are carried onto, row by row: `pairs` is then not used.
            Labels, one for each row, are ignored.

        Returns
        -------
        self : OrbitLearner
            Fitted, with the best so far if the callback stopped it. After Ctrl-C the estimator
            is fitted so too, if a step was taken, and the interrupt goes on to the caller.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        if self.loss == "logtrace":
            check_log_trace(self.structure)
        elif self.constraints is not None:
            refuse_constraints()
        rows = _orbit_rows(X).copy()  # which are kept, and must not change with the user's
        onto = checked_targets(y, rows)
        check_column_names(X, "X")
        k = None if self.n_generators is None else int(self.n_generators)
        settings = Settings(k, int(self.n_init), int(self.max_iter), self.tol, self.n_jobs)
        with one_blas_thread():
            problem = self._problem(rows, onto)
            search = OrbitSearch(self.callback, problem.space, settings)
            solve = partial(self._solve, problem, settings, search)
            store, judge = partial(self._store, X, problem), partial(self._judge, search)
            fit_by_search(self, search, solve, store, judge)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Coefficients of each row: how far along the generators the prototype comes closest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        coefficients : ndarray of shape (n_samples, k)
            The c that minimise |x - exp(sum c V) prototype_|, the best of several starts spread
            over the orbit: local optima. With n_components, distances within the principal
            directions.
        """
        rows = self._checked(X)
        return self._located(rows if self._subspace is None else self._subspace.inside(rows))

    def inverse_transform(self, c: ArrayLike) -> Array:
        """Vectors at coefficients: the orbit of the prototype.

        Parameters
        ----------
        c : array-like of shape (k,) or (n, k)
            Such as `transform` returns.

        Returns
        -------
        vectors : ndarray of shape (n_features,) or (n, n_features)
            exp(sum c V) prototype_.
        """
        check_is_fitted(self, "generators_")
        return self.orbit(self.prototype_, c)

    def orbit(self, x: ArrayLike, c: ArrayLike) -> Array:
        """Vectors to which x is moved.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Where to start.
        c : array-like of shape (k,) or (n, k)
            How far along each generator; 0 stays, larger goes further.

        Returns
        -------
        vectors : ndarray of shape (n_features,) or (n, n_features)
            exp(sum c V) x. With n_components, what of x lies across the principal directions
            stays as it is.
        """
        check_is_fitted(self, "generators_")
        vector = check_orbit_vector(x, self.n_features_in_)
        coefficients = check_coefficients(c, self.n_generators_)
        moved = self._motion.moved(vector, np.atleast_2d(coefficients))
        return moved[0] if coefficients.ndim == 1 else moved

    def flow(self, x: ArrayLike) -> Array:
        """Direction in which each generator moves x, in the space of X.

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

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw new vectors from the orbit of the prototype.

        Parameters
        ----------
        n : int, default=1
            Number of vectors.
        random_state : int, RandomState instance or None, default=None
            Same number, same vectors.

        Returns
        -------
        vectors : ndarray of shape (n, n_features)
            At coefficients drawn from the Gaussian of those that `transform` gives the fitted
            rows (with `y`, of those of the pairs).
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
        known = self.coefficients_ if rows is None else self._located(rows)
        centred = known - known.mean(axis=0)
        # a factor of the covariance, whatever its rank
        _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
        factor = lengths[:, None] * axes / np.sqrt(len(known))
        drawn = known.mean(axis=0) + random.normal(size=(count, len(factor))) @ factor
        return self.inverse_transform(drawn)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Minus the mean squared distance of rows from the orbit of the prototype.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Vectors.
        y : None
            Not used.

        Returns
        -------
        score : float
            Larger is better; 0 where all rows lie on the orbit. More generators always come
            closer, so do not choose `n_generators` by it; compare scores of the same number.
        """
        rows = self._checked(X)
        moved = self.inverse_transform(self.transform(X))
        return 0.0 - float(np.mean(np.sum((rows - moved) ** 2, axis=1)))

    @property
    def _motion(self) -> Motion:
        return Motion(self.generators_, self._subspace)

    def _checked(self, X: ArrayLike) -> Array:
        check_is_fitted(self, "generators_")
        rows = _orbit_rows(X)
        check_column_names(X, "X")
        validate_data(self, X, reset=False, skip_check_array=True)  # compares the columns
        return rows

    def _problem(self, X: Array, onto: Array | None) -> Problem:
        """Pairs of vectors as matrices move them, and the matrices to choose from."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        subspace = None
        if self.n_components is not None:
            whole = X if onto is None else np.concatenate([X, onto])
            subspace = chosen_subspace(whole, int(self.n_components))
        inner = X if subspace is None else subspace.inside(X)
        prototype = chosen_prototype(self.prototype, X, inner, subspace)
        if onto is None:
            pairs = chosen_pairs(self.pairs, inner, prototype, int(self.n_neighbors))
        else:
            pairs = regression_pairs(inner, onto if subspace is None else subspace.inside(onto))
        n, d = pairs.targets.shape
        space = MatrixSpace.of(d, self.structure, self.pattern)
        if self.n_generators is not None:
            check_n_generators(int(self.n_generators), len(X), n, space.n_dimensions)
        check_learning_memory(n, d, space.n_dimensions)
        rows = inner if onto is None else None
        return Problem(rows, subspace, prototype, pairs.scaled(), space, seed)

    def _solve(self, problem: Problem, settings: Settings, search: OrbitSearch) -> Solution:
        if self.loss == "squared":
            return learn_squared(problem, settings, search)
        weights = (self.error_weight, self.eps1, self.eps2)
        return learn_log_trace(problem, settings, search, weights, self.constraints, self.solver)

    def _store(self, X: ArrayLike, problem: Problem, found: Solution) -> None:
        validate_data(self, X, reset=True, skip_check_array=True)  # records the columns
        self._seed, self._subspace = problem.seed, problem.subspace
        self._inner_rows = problem.rows
        for name in ("mean_", "components_"):  # an earlier fit may have set them
            self.__dict__.pop(name, None)
        if problem.subspace is not None:
            self.mean_, self.components_ = problem.subspace.mean, problem.subspace.components
        self.pairs_ = problem.pairs.indices
        self.prototype_ = problem.prototype.vector.copy()
        run = ordered(found.run)
        self.generators_ = problem.space.matrices(run.generators)
        self.coefficients_ = run.coefficients
        self.spectrum_ = found.spectrum[:_MOST_LISTED]
        self.n_generators_ = len(self.generators_)
        self.structure_constants_, self.closure_ = structure_constants(self.generators_)
        self.objective_path_ = np.minimum.accumulate(np.array(run.path)) * found.scale
        self.objective_ = float(self.objective_path_[-1])
        self.n_iter_ = max(1, len(run.path) - 1)
        self.converged_ = run.converged

    def _judge(self, search: OrbitSearch, interrupted: bool) -> None:
        if not (self.converged_ or search.stopped):
            warnings.warn(
                f"The generators still changed after max_iter={self.max_iter} steps. Raise "
                "max_iter, or tol, to let them settle.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _located(self, inner: Array) -> Array:
        start = self.prototype_
        if self._subspace is not None:
            start = self._subspace.inside(start[None])[0]
        with one_blas_thread():
            return locate(self.generators_, start, inner, seed=self._seed)

    @property
    def _n_features_out(self) -> int:
        return len(self.generators_)


def _orbit_rows(X: Any) -> Array:
    """Vectors as finite rows whose squares are finite too."""
    rows: Array = as_rows(as_numbers(X, "X"), "X")
    check_magnitude(rows, "X")
    return rows
