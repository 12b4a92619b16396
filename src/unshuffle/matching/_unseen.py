"""The map between two tables that matched pairs teach, for items that were not matched.

The second table is described by its principal components of unit variance. Ridge regression on
the first, linear or with a Gaussian kernel, predicts each component with a strength of its own,
and the errors at pairs left out tell how well. Under a Gaussian model of these errors, the
log-likelihood ratio of a pair (it belongs together, or both are drawn at random) is an inner
product plus a number of the second item.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import validate_data

from unshuffle._core.arrays import as_rows, check_magnitude, is_text
from unshuffle._core.distances import exponential_of, sampled_gamma, squared_distances
from unshuffle._core.grams import is_collection
from unshuffle._core.parameters import check_memory
from unshuffle._core.scalings import SCALERS, Scale
from unshuffle._run.parallel import eigh, product
from unshuffle._run.types import Floats, Pairs
from unshuffle.assignment import soft_assignment, solve_assignment
from unshuffle.matching._low_rank.pair import Scores
from unshuffle.matching._matches import Matches, feature_names, item_names, without_names

FEWEST_PAIRS = 5
# Pairs that teach the map, landmarks of its kernel, and components that it predicts, at most.
MOST_PAIRS, MOST_LANDMARKS, MOST_COMPONENTS = 10_000, 512, 256
# Tables of more rows and columns than this are decomposed at random.
LARGE = 1500
# The width of the kernel in units of the median squared distance; wider than for matching, since
# a map is smooth.
WIDTH = 0.3
# Strengths of the ridge, relative to the total variance.
RIDGES = 10.0 ** np.arange(-7.0, 1.0)
# Leading components that may be compared, and how far the correlations of their errors may be
# shrunk. Both are chosen by the pairs left out of one of the folds, of which so many are scored.
RANKS = (16, 32, 64, 128, MOST_COMPONENTS)
SHRINKS = np.array([0.02, 0.1, 0.3, 0.6, 1.0])
N_FOLDS, MOST_SCORED = 4, 400
# Factors of the log-likelihood, since real errors have heavier tails than the model.
TEMPERATURES = 0.125 * 2.0 ** np.array([0, 1, 2, 3, 0.5, 1.5, 2.5, 3.5])
# Scalings that are tried beside that of the fit.
OTHER_SCALINGS = ("as given", "ranks")
# Confidences below this let the pairs be weighed again by what the map says of them.
SURE = 0.98
# Smallest error of a component, relative to its spread, that the model believes in.
LEAST_ERROR = 1e-3
LARGEST_LEVERAGE = 1.0 - 1e-6
# New items farther out than this count as if they lay here, so that squares do not overflow.
FARTHEST = 1e4
# Best partners of each item that a matching of new items lists.
N_CANDIDATES = 5


def as_table(collection: Any, kernel: Any, name: str) -> Floats:
    """Features of a collection in one table; of several tables, side by side."""
    if is_precomputed(kernel):
        raise ValueError(
            f"{name} is a kernel matrix, which places no new items. Match tables of features to "
            "use `transform` and `match`."
        )
    parts = [collection]
    if isinstance(kernel, list | tuple) and isinstance(collection, list | tuple):
        parts = list(collection) if all(map(is_collection, collection)) else parts
    if any(is_text(part) or isinstance(part, str) for part in parts):
        raise ValueError(
            f"{name} holds texts, which have no features in which new items could lie. Turn texts "
            "into vectors first, such as with TfidfVectorizer and TruncatedSVD of scikit-learn, "
            "and match these."
        )
    tables = []
    for part in parts:
        rows = as_rows(without_names(part), name)
        if sparse.issparse(rows):
            what = f"A dense table of the {rows.shape[0]:,} items of {name}"
            instead = "Reduce the columns first, such as with TruncatedSVD of scikit-learn."
            check_memory(8 * rows.shape[0] * rows.shape[1], what=what, instead=instead)
            rows = rows.toarray()
        check_magnitude(rows, name)
        tables.append(rows)
    if len({len(table) for table in tables}) > 1:
        raise ValueError(
            f"The tables of {name} have {', '.join(str(len(table)) for table in tables)} rows. "
            "Describe the same items in each."
        )
    return tables[0] if len(tables) == 1 else np.hstack(tables)


def is_precomputed(kernel: Any) -> bool:
    """Whether a kernel, or one of several, is given as a matrix."""
    kernels = kernel if isinstance(kernel, list | tuple) else [kernel]
    return any(isinstance(each, str) and each == "precomputed" for each in kernels)


class UnseenItems:
    """New items of the collections of a fit, for which a map is learned at the first call."""

    def __init__(self, X: Any, y: Any) -> None:
        self.collections = X, y
        self.features = [feature_names(without_names(each)) for each in self.collections]
        self.learned: PairMap | None = None

    def learn(self, sorting: Any) -> "PairMap":
        """Map that the matched pairs of a fitted estimator teach."""
        if self.learned is None:
            kernels, names = (sorting.kernel_, sorting.kernel_y_), ("The fitted X", "The fitted y")
            X, y = map(as_table, self.collections, kernels, names)
            confidences = sorting.confidence_[sorting.pairs_[:, 0]]
            self.learned = PairMap(X, y, sorting.pairs_, confidences, scaling=sorting.scaling_)
        return self.learned

    def transform(self, sorting: Any, X: Any) -> Floats:
        """Expected features of items of the first collection."""
        table = self._check_first(sorting, X)
        return self.learn(sorting).transform(table)

    def match(self, sorting: Any, X: Any, y: Any) -> Matches:
        """Most likely pairs of two new collections."""
        first, second = self._check_first(sorting, X), as_table(y, sorting.kernel_y_, "y")
        self._check_names(y)
        n_first, n_second = len(first), len(second)
        what = f"Matching {n_first:,} and {n_second:,} new items"
        check_memory(24 * n_first * n_second, what=what, instead="Match parts of them in turn.")
        found = self.learn(sorting).scores(first, second)
        scores = product(found.queries, found.keys.T) + found.bias
        if n_first > n_second:
            # What is common to a row decides whether it is matched.
            scores -= 0.5 * (found.queries**2).sum(axis=1)[:, None]
        permutation = solve_assignment(scores, maximize=True).columns
        with warnings.catch_warnings():
            # A few digits of the shares are enough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            shares = soft_assignment(scores, maximize=True, epsilon=1.0, tol=1e-3)
        rows = np.flatnonzero(permutation >= 0)
        sure = np.zeros(n_first)
        sure[rows] = np.clip(shares[rows, permutation[rows]], 0.0, 1.0)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :N_CANDIDATES]
        names = item_names(X, n_first), item_names(y, n_second)
        return Matches(permutation, sure, *names, candidates=best)

    def names_out(self, sorting: Any) -> NDArray[np.object_]:
        """Names of the features of the second collection."""
        named = self.features[1].get("feature_names_in_")
        if named is not None:
            return np.array(named, dtype=np.object_)
        n_columns = self.features[1].get("n_features_in_")
        if n_columns is None:
            n_columns = self.learn(sorting).n_columns[1]
        return np.array([f"y{number}" for number in range(n_columns)], dtype=np.object_)

    def _check_first(self, sorting: Any, X: Any) -> Floats:
        table = as_table(X, sorting.kernel_, "X")
        if hasattr(sorting, "n_features_in_"):
            # compares the columns
            validate_data(sorting, without_names(X), reset=False, skip_check_array=True)
        return table

    def _check_names(self, y: Any) -> None:
        fitted, given = (
            each.get("feature_names_in_")
            for each in (self.features[1], feature_names(without_names(y)))
        )
        if fitted is not None and given is not None and list(fitted) != list(given):
            raise ValueError(
                f"The columns of y are {', '.join(given)}, and those of the y that was fitted "
                f"are {', '.join(fitted)}. Pass the same columns in the same order."
            )


class PairMap:
    """Where items of the first table lie in the second, learned from matched pairs.

    Parameters
    ----------
    X : ndarray of shape (n_X, n_features)
        First table.
    y : ndarray of shape (n_y, n_features_y)
        Second table.
    pairs : ndarray of shape (n_pairs, 2)
        Matched rows of both.
    weights : ndarray of shape (n_pairs,) or None, default=None
        Probability that each pair is right. Pairs of higher weight teach more.
    scaling : str, default="as given"
        Scaling of both tables, by its name. They are taken as given or by ranks instead if
        partners of pairs left out are found more surely so.

    Notes
    -----
    Of more than 10,000 pairs, a fixed random sample teaches the map. Time and memory grow with
    the number of pairs up to there, and no further.
    """

    def __init__(
        self,
        X: Floats,
        y: Floats,
        pairs: Pairs,
        weights: Floats | None = None,
        *,
        scaling: str = "as given",
    ) -> None:
        if len(pairs) < FEWEST_PAIRS:
            raise ValueError(
                f"{len(pairs)} pairs are matched, and {FEWEST_PAIRS} are needed to learn a map "
                "between the collections. Fit larger collections, or raise unmatched_cost."
            )
        weights = np.ones(len(pairs)) if weights is None else weights
        if not weights.any():
            weights = np.ones(len(pairs))
        if len(pairs) > MOST_PAIRS:
            drawn = np.sort(np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS])
            pairs, weights = pairs[drawn], weights[drawn]
        self.n_columns = X.shape[1], y.shape[1]
        scalers = {
            name: (SCALERS[name](X), SCALERS[name](y))
            for name in dict.fromkeys((scaling, *OTHER_SCALINGS))
        }
        first, second = X[pairs[:, 0]], y[pairs[:, 1]]
        self._learn(first, second, weights, scalers)
        if weights.mean() < SURE:
            # What the map says of each pair, beside what was known of it.
            prior = logit(np.clip(weights, 1e-6, 1.0 - 1e-6))
            self._learn(first, second, expit(prior + self._matching.evidence), scalers)

    def _learn(
        self,
        first: Floats,
        second: Floats,
        weights: Floats,
        scalers: dict[str, tuple[Scale, Scale]],
    ) -> None:
        """Learn in each scaling, and keep what does best at pairs left out.

        One regression finds their partners most surely, and another, which may be the same, has
        the smallest error in the features as given.
        """
        given = Projection(second, weights)
        features = given(second)
        placings, matchings = [], []
        kinds: tuple[Callable[[Floats], Scale], ...] = (LinearFeatures, GaussianFeatures)
        for scale_x, scale_y in scalers.values():
            A, B = scale_x(first), scale_y(second)
            scaled = given if B is second else Projection(B, weights)
            targets = features if B is second else scaled(B)
            for kind in kinds:
                ridge = Ridge(kind(A), A, weights)
                coefficients, left_out = ridge.fit(features)
                apart = (features - left_out) * given.spreads
                error = float(ridge.shares @ (apart**2).sum(axis=1))
                placings.append(Placing(error, scale_x, ridge, coefficients))
                if B is not second:
                    coefficients, left_out = ridge.fit(targets)
                errors = choose_errors(targets, left_out, weights)
                evidence = errors.evidence(targets, left_out)
                placing = placings[-1]._replace(coefficients=coefficients)
                matchings.append(MatchedItems(placing, scale_y, scaled, errors, evidence))
            best = max(matchings, key=lambda each: each.errors.value)
            kinds = (type(best.placing.ridge.lift),)  # seldom another in another scaling
        self._given, self._matching = given, best
        self._placing = min(placings, key=lambda each: each.error)

    def transform(self, X_new: Floats) -> Floats:
        """Expected features, in the second table as given, of items of the first."""
        self._check_columns(X_new, 0, "X")
        return self._given.undo(self._placing.predict(X_new))

    def scores(self, X_new: Floats, y_new: Floats) -> Scores:
        """Log-likelihood ratios of all pairs, plus half the squared length of each query."""
        self._check_columns(X_new, 0, "X")
        self._check_columns(y_new, 1, "y")
        best = self._matching
        targets = best.components(best.scale_y(y_new))
        return best.errors.scores(best.placing.predict(X_new), targets)

    def _check_columns(self, table: Floats, side: int, name: str) -> None:
        if table.shape[1] != self.n_columns[side]:
            raise ValueError(
                f"{name} has {table.shape[1]} columns, and the collection that was fitted has "
                f"{self.n_columns[side]}. Describe new items by the same columns."
            )


class Placing(NamedTuple):
    """A regression from the first table to components of the second."""

    error: float  # mean squared error at pairs left out
    scale_x: Scale
    ridge: "Ridge"
    coefficients: Floats

    def predict(self, X_new: Floats) -> Floats:
        """Expected components of items of the first table."""
        return product(self.ridge.features(self.scale_x(X_new)), self.coefficients)


class MatchedItems(NamedTuple):
    """A regression to the scaled second table, with a model of its errors."""

    placing: Placing
    scale_y: Scale
    components: "Projection"
    errors: "Errors"
    evidence: Floats  # log-likelihood ratios of the pairs that taught it


class Projection:
    """Principal components of unit variance of a table, and back."""

    def __init__(self, table: Floats, weights: Floats) -> None:
        self.center = np.average(table, axis=0, weights=weights)
        # Squares of very large and very small numbers do not exist.
        self.unit = float(np.abs(table - self.center).max()) or 1.0
        shares = np.sqrt(weights / weights.sum())
        _, spreads, axes = decompose(
            (table - self.center) / self.unit * shares[:, None], MOST_COMPONENTS
        )
        self.spreads, self.axes = spreads, axes

    def __call__(self, table: Floats) -> Floats:
        """Components of the rows of a table."""
        return product((table - self.center) / self.unit, self.axes) / self.spreads

    def undo(self, components: Floats) -> Floats:
        """Rows with these components."""
        return product(components * self.spreads, self.axes.T) * self.unit + self.center


class GaussianFeatures:
    """Features whose inner products are a Gaussian kernel, exactly if there are few items."""

    def __init__(self, X: Floats) -> None:
        drawn = np.random.default_rng(0).permutation(len(X))[:MOST_LANDMARKS]
        self.landmarks = X[np.sort(drawn)]
        try:
            self.gamma = WIDTH * sampled_gamma(self.landmarks, name="X")
        except ValueError:  # all items are alike
            self.gamma = 1.0
        values, vectors = eigh(self._kernel(self.landmarks))
        kept = values > 1e-10 * values[-1]
        self.whiten = vectors[:, kept] / np.sqrt(values[kept])

    def _kernel(self, X: Floats) -> Floats:
        return exponential_of(squared_distances(X, self.landmarks), self.gamma)

    def __call__(self, X: Floats) -> Floats:
        """Features of the rows of a table."""
        return product(self._kernel(X), self.whiten)


class LinearFeatures:
    """The columns themselves."""

    def __init__(self, X: Floats) -> None:
        pass

    def __call__(self, X: Floats) -> Floats:
        """Features of the rows of a table."""
        return X


class Ridge:
    """Ridge regression on the features of weighted items, of any strength."""

    def __init__(self, lift: Scale, X: Floats, weights: Floats) -> None:
        self.lift = lift
        features = lift(X)
        self.center = np.average(features, axis=0, weights=weights)
        self.unit = float(np.abs(features - self.center).max()) or 1.0
        self.shares = weights / weights.sum()
        centered = (features - self.center) / self.unit * np.sqrt(self.shares)[:, None]
        self.left, self.values, self.axes = decompose(centered, max(MOST_LANDMARKS, LARGE))

    def features(self, X: Floats) -> Floats:
        """Principal features of items, new ones included."""
        return product((self.lift(X) - self.center) / self.unit, self.axes)

    def fit(self, targets: Floats) -> tuple[Floats, Floats]:
        """Coefficients of each target, and its predictions by all other items.

        The strength of each target is the one with the smallest error of these predictions.
        """
        roots = np.sqrt(self.shares)[:, None]
        inner = product(self.left.T, targets * roots)
        squares = self.left**2
        least = np.full(targets.shape[1], np.inf)
        left_out, strengths = np.zeros_like(targets), np.ones_like(least)
        for strength in RIDGES * (self.values**2).sum():
            kept = self.values**2 / (self.values**2 + strength)
            leverage = np.minimum(squares @ kept + self.shares, LARGEST_LEVERAGE)
            # Rows of the left vectors carry the root of the share of an item.
            fitted = product(self.left, kept[:, None] * inner) / np.maximum(roots, 1e-150)
            errors = (targets - fitted) / (1.0 - leverage)[:, None]
            mean = self.shares @ errors**2
            better = mean < least
            least[better], strengths[better] = mean[better], strength
            left_out[:, better] = (targets - errors)[:, better]
        factors = self.values[:, None] / (self.values[:, None] ** 2 + strengths)
        return factors * inner, left_out


def decompose(table: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """Left vectors, singular values and right vectors, the leading ones that are not zero."""
    n_rows, n_columns = table.shape
    if min(n_rows, n_columns) > LARGE:
        left, values, right = randomized_svd(table, most, random_state=0)
        return left, values, np.ascontiguousarray(right.T)
    tall = n_rows >= n_columns
    squares, vectors = eigh(product(table.T, table) if tall else product(table, table.T))
    # Squares of values below this are rounding errors of the largest.
    kept = np.flatnonzero(squares > 1e-13 * max(squares[-1], 1e-300))[::-1][:most]
    values, vectors = np.sqrt(squares[kept]), np.ascontiguousarray(vectors[:, kept])
    others = product(table if tall else table.T, vectors) / values
    return (others, values, vectors) if tall else (vectors, values, others)


class Errors(NamedTuple):
    """Gaussian model of the errors of predicted components."""

    value: float  # mean log-probability of the partners of pairs left out
    whiten: Floats  # (rank, rank): errors times this are independent with unit variance
    log_scale: float  # logarithm of its determinant
    temperature: float

    def scores(self, predicted: Floats, targets: Floats) -> Scores:
        """Log-likelihood ratios of all pairs, plus half the squared length of each query."""
        rank = len(self.whiten)
        predicted, targets = (
            np.clip(each[:, :rank], -FARTHEST, FARTHEST) for each in (predicted, targets)
        )
        queries, keys = predicted @ self.whiten, targets @ self.whiten
        bias = 0.5 * ((targets**2).sum(axis=1) - (keys**2).sum(axis=1))
        root = np.sqrt(self.temperature)
        single = root * queries, root * keys, self.temperature * bias
        return Scores(*(each.astype(np.float32) for each in single))

    def evidence(self, targets: Floats, predicted: Floats) -> Floats:
        """Log-likelihood ratio of each given pair."""
        rank = len(self.whiten)
        errors = (targets - predicted)[:, :rank] @ self.whiten
        ratio = 0.5 * ((targets[:, :rank] ** 2).sum(axis=1) - (errors**2).sum(axis=1))
        return np.asarray(self.temperature * (ratio + self.log_scale))


def choose_errors(targets: Floats, left_out: Floats, weights: Floats) -> Errors:
    """Model under which pairs left out find their partners most surely."""
    errors = targets - left_out
    rng = np.random.default_rng(0)
    folds = rng.permutation(len(targets)) % N_FOLDS
    columns = rng.permutation(len(targets))[:MOST_SCORED]
    best, n_components = (-np.inf, 0, 0.0, 1.0), targets.shape[1]
    for rank in sorted({min(rank, n_components) for rank in RANKS}):
        trials: list[list[Floats]] = [[] for _ in SHRINKS]
        shares = []
        for fold in range(N_FOLDS):
            held = columns[folds[columns] == fold]
            trained = folds != fold
            if not held.size or not weights[trained].any():
                continue
            spectrum = ErrorSpectrum(errors[trained, :rank], weights[trained])
            shares.append(weights[held])
            order = np.concatenate([held, np.setdiff1d(columns, held)])
            for trial, tile in zip(
                trials,
                spectrum.tiles(left_out[held, :rank], targets[order, :rank]),
                strict=True,
            ):
                trial.append(log_probabilities(tile))
        share = np.concatenate(shares)
        share = share / share.sum() if share.any() else np.full(share.size, 1.0 / share.size)
        for shrink, trial in zip(SHRINKS, trials, strict=True):
            values = np.concatenate(trial, axis=1) @ share
            at = int(values.argmax())
            if values[at] > best[0]:
                best = float(values[at]), rank, float(shrink), float(TEMPERATURES[at])
    value, rank, shrink, temperature = best
    rank = rank or 1
    spectrum = ErrorSpectrum(errors[:, :rank], weights)
    whiten = spectrum.whiten(shrink)
    return Errors(value, whiten, float(np.linalg.slogdet(whiten)[1]), temperature)


class ErrorSpectrum:
    """Correlations of errors, which may be shrunk towards none."""

    def __init__(self, errors: Floats, weights: Floats) -> None:
        shares = weights / weights.sum()
        self.spreads = np.maximum(np.sqrt(shares @ errors**2), LEAST_ERROR)
        scaled = errors / self.spreads
        self.values, self.vectors = eigh((scaled * shares[:, None]).T @ scaled)

    def _deviations(self, shrink: float) -> Floats:
        return np.sqrt(np.maximum((1.0 - shrink) * self.values + shrink, 1e-9))

    def whiten(self, shrink: float) -> Floats:
        """Matrix that makes errors independent with unit variance."""
        return self.vectors / self._deviations(shrink) / self.spreads[:, None]

    def tiles(self, predicted: Floats, targets: Floats) -> Iterator[Floats]:
        """Scores of all pairs, for each of the `SHRINKS`."""
        queries, keys = ((each / self.spreads) @ self.vectors for each in (predicted, targets))
        marginal = 0.5 * (targets**2).sum(axis=1)
        for shrink in SHRINKS:
            precise = self._deviations(shrink) ** -2.0
            bias = marginal - 0.5 * (keys**2) @ precise
            yield (queries * precise) @ keys.T + bias


def log_probabilities(scores: Floats) -> Floats:
    """Log-probability of column i for row i, at each temperature, (n_temperatures, n_rows)."""
    below = scores - scores.max(axis=1, keepdims=True)
    own = np.diagonal(below)
    found = []
    with np.errstate(under="ignore"):
        for doubled in TEMPERATURES.reshape(2, -1):
            shares = np.exp(doubled[0] * below)
            for temperature in doubled:
                found.append(temperature * own - np.log(shares.sum(axis=1)))
                shares *= shares
    return np.array(found)
