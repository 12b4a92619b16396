"""What is to be learned: pairs of vectors, and the matrices that may carry one onto the other."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from unshuffle._arrays import check_finite, check_magnitude, check_plain, middle
from unshuffle._distances import squared_distances
from unshuffle._matrix_exponentials import Subspace
from unshuffle._parameters import check_memory

Array = NDArray[np.float64]

PROTOTYPE = -1  # stands for a prototype that is no row of X
_BLOCK = 1000
_MIRROR = {"general": 0.0, "diagonal": 0.0, "symmetric": 1.0, "skew": -1.0}


@dataclass(frozen=True)
class MatrixSpace:
    """Matrices of one structure, some entries of which are zero.

    Coordinates are taken in an orthonormal basis, so that lengths and angles of coordinates are
    those of the matrices as vectors of entries.

    Attributes
    ----------
    n_rows : int
        Rows, and columns, of a matrix.
    rows, columns : ndarray of shape (p,)
        Entry that each coordinate sets.
    mirror : float
        Sign with which it also sets the entry across the diagonal; 0 where it does not.
    """

    n_rows: int
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    mirror: float

    @classmethod
    def of(cls, d: int, structure: str, pattern: Any) -> "MatrixSpace":
        """Space of d by d matrices of a structure, zero where `pattern` is False."""
        allowed = np.ones((d, d), dtype=bool)
        if pattern is not None:
            allowed &= _checked_pattern(pattern, d, structure)
        if structure == "diagonal":
            allowed &= np.eye(d, dtype=bool)
        elif structure in ("symmetric", "skew"):
            allowed &= np.triu(np.ones((d, d), dtype=bool), k=int(structure == "skew"))
        if not allowed.any():
            raise ValueError(
                f"structure={structure!r} and the pattern leave no matrix of {d} columns but "
                'zero, which moves nothing. Allow more entries, or use structure="general".'
            )
        rows, columns = np.nonzero(allowed)
        return cls(d, rows, columns, _MIRROR[structure])

    @property
    def n_dimensions(self) -> int:
        """Coordinates of a matrix."""
        return self.rows.size

    @property
    def is_diagonal(self) -> bool:
        """Whether all matrices of the space are diagonal."""
        return bool(np.array_equal(self.rows, self.columns))

    @property
    def scale(self) -> Array:
        """Entry that each vector of the basis sets."""
        twice = (self.rows != self.columns) & (self.mirror != 0.0)
        return np.where(twice, np.sqrt(0.5), 1.0)

    def matrices(self, coordinates: Array) -> Array:
        """Matrices (n, d, d) of coordinates (n, p)."""
        result = np.zeros((len(coordinates), self.n_rows, self.n_rows))
        entries = coordinates * self.scale
        if self.mirror:
            result[:, self.columns, self.rows] = self.mirror * entries
        result[:, self.rows, self.columns] = entries
        return result

    def coordinates(self, matrices: Array) -> Array:
        """Coordinates (n, p) of the matrices of the space closest to those given."""
        entries = matrices[:, self.rows, self.columns]
        if self.mirror:
            across = self.mirror * matrices[:, self.columns, self.rows]
            entries = np.where(self.rows == self.columns, entries, entries + across)
        return np.asarray(entries * self.scale)

    def basis(self) -> Array:
        """The orthonormal basis, shape (p, d, d)."""
        return self.matrices(np.eye(self.n_dimensions))


@dataclass(frozen=True)
class Prototype:
    """The vector that orbits start from.

    Attributes
    ----------
    row : int
        Its row of X; `PROTOTYPE` where it is none.
    vector : ndarray of shape (n_features,)
        As the user has it.
    inner : ndarray of shape (d,)
        As matrices move it: its coordinates in the subspace, or the vector itself.
    """

    row: int
    vector: Array
    inner: Array


@dataclass(frozen=True)
class Pairs:
    """Pairs to be explained: exp(A_n) carries sources[n] onto targets[n].

    Attributes
    ----------
    indices : ndarray of shape (n, 2)
        Rows of the target and of the source among the user's vectors.
    targets, sources : ndarray of shape (n, d)
        The vectors.
    scale : float
        Length that the user's vectors had where these have 1.
    """

    indices: NDArray[np.intp]
    targets: Array
    sources: Array
    scale: float = 1.0

    @property
    def n_points(self) -> int:
        """Different vectors among the targets: fewer where points are in several pairs."""
        return np.unique(self.indices[:, 0]).size

    def scaled(self) -> "Pairs":
        """Pairs with vectors of unit length in the mean square.

        Exponentials of matrices do not see a common factor; tolerances do.
        """
        scale = float(np.abs(self.sources).max())
        unit = self.sources / scale
        scale *= float(np.sqrt(np.mean(np.sum(unit**2, axis=1))))
        return replace(
            self, targets=self.targets / scale, sources=self.sources / scale, scale=scale
        )


@dataclass(frozen=True)
class Problem:
    """All that a fit is about.

    Attributes
    ----------
    rows : ndarray of shape (n, d) or None
        Vectors as matrices move them; None where the user gave targets, not points of one orbit.
    subspace : Subspace or None
        Where matrices act; None is the space of X.
    prototype : Prototype
        Where orbits start.
    pairs : Pairs
        What is to be carried where, scaled.
    space : MatrixSpace
        Matrices to choose from.
    seed : int
        Of random starts.
    """

    rows: Array | None
    subspace: Subspace | None
    prototype: Prototype
    pairs: Pairs
    space: MatrixSpace
    seed: int


def checked_targets(y: Any, X: Array) -> Array | None:
    """Vectors to carry the rows of X onto, or None where y holds none: rows must then differ."""
    if len(X) < 2:
        raise ValueError(
            f"X has {len(X)} row(s) (n_samples = {len(X)}), which shows no motion. Pass at least "
            "two points of an orbit."
        )
    targets = None if y is None else _as_targets(y, X)
    if targets is None:
        _check_rows_differ(X)
    return targets


def chosen_subspace(X: Array, n_components: int) -> Subspace:
    """Principal directions of the rows; refused where these have fewer."""
    n, n_features = X.shape
    most = min(n - 1, n_features)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {most} directions in which {n} rows of "
            f"{n_features} columns vary. Ask for {most} or fewer."
        )
    return Subspace.of(X, n_components)


def chosen_prototype(given: Any, X: Array, inner: Array, subspace: Subspace | None) -> Prototype:
    """The row or vector that the user gave, or the medoid of the rows that are not zero.

    `inner` are the rows of X as matrices move them, in the subspace if there is one.
    """
    if given is None:
        lengths = np.abs(inner).max(axis=1)
        moving = np.flatnonzero(lengths > 1e-14 * lengths.max())
        row = int(moving[_medoid(inner[moving])]) if moving.size else 0
        return Prototype(row, X[row], inner[row])
    found = _checked_prototype(given, *X.shape)
    if isinstance(found, int):
        prototype = Prototype(found, X[found], inner[found])
    else:
        start = found if subspace is None else subspace.inside(found[None])[0]
        prototype = Prototype(PROTOTYPE, found, start)
    length, scale = float(np.abs(prototype.inner).max()), float(np.abs(inner).max())
    if not 1e-14 * scale < length < 1e14 * scale:
        raise ValueError(
            f"The prototype has entries of at most {length:.3g} and the data of {scale:.3g} (both "
            "about the mean with n_components), so that no matrix carries one onto the other. "
            "Pass a `prototype` of the size of the data, or None for the medoid."
        )
    return prototype


def chosen_pairs(which: Any, X: Array, prototype: Prototype, n_neighbors: int) -> Pairs:
    """Pairs of rows as the estimator's `pairs` has them, or of rows and the prototype."""
    n = len(X)
    if not isinstance(which, str):
        indices = _checked_pairs(which, n)
    elif which == "knn":
        indices = _neighbor_pairs(X, n_neighbors)
    elif which == "all":
        check_learning_memory(n * (n - 1) // 2, X.shape[1], X.shape[1])
        indices = np.stack(np.triu_indices(n, k=1), axis=1).astype(np.intp)
    else:
        rows = np.flatnonzero(np.arange(n) != prototype.row)
        indices = np.stack([rows, np.full(rows.size, prototype.row)], axis=1).astype(np.intp)
    from_outside = (indices[:, 1] == PROTOTYPE)[:, None]
    sources = np.where(from_outside, prototype.inner, X[indices[:, 1]])
    targets = X[indices[:, 0]]
    _check_moving(sources, targets, "X")
    return Pairs(indices, targets, sources)


def regression_pairs(X: Array, onto: Array) -> Pairs:
    """Each row with the vector it is carried onto; both indices are its own."""
    _check_moving(X, onto, "X and y")
    rows = np.arange(len(X))
    return Pairs(np.stack([rows, rows], axis=1), onto, X)


def check_n_generators(wanted: int, n_points: int, n_pairs: int, n_dimensions: int) -> None:
    """Refuse more generators than points, than pairs, or than there are independent matrices."""
    for count, what in ((n_points, "points"), (n_pairs, "pairs")):
        if wanted > count:
            raise ValueError(
                f"n_generators={wanted} is more than the {count} {what} that should show them. "
                "Pass more points, or ask for fewer generators."
            )
    if wanted > n_dimensions:
        raise ValueError(
            f"n_generators={wanted} is more than the {n_dimensions} independent matrices that the "
            "columns, structure and pattern allow. Ask for fewer generators."
        )


def check_learning_memory(n_pairs: int, n_columns: int, n_dimensions: int) -> None:
    """Refuse matrices and derivatives that would not fit into the memory that is free now."""
    maps = min(n_pairs * n_columns * n_dimensions, 30_000_000)
    check_memory(
        8 * (6 * n_pairs * n_columns**2 + 3 * maps + 3 * n_dimensions**2),
        what=f"Learning {n_columns} x {n_columns} matrices from {n_pairs:,} pairs",
        instead='Pass fewer pairs (pairs="knn" with fewer neighbours, or your own), or set '
        "n_components to work in fewer dimensions.",
    )


def _as_targets(y: Any, X: Array) -> Array | None:
    """Vectors, or None for labels, which are not used."""
    check_plain(y, "`y`")
    try:
        targets = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "`y` holds rows of different lengths. Pass one vector of the shape of those of X for "
            "each row, or leave y out."
        ) from error
    if targets.ndim == 1:
        if len(targets) != len(X):
            raise ValueError(
                f"`y` has {len(targets)} label(s) and X has {len(X)} rows. Labels are not used; "
                "pass one vector for each row of X, or leave y out."
            )
        return None
    if targets.shape != X.shape or targets.dtype.kind not in "biuf":
        raise ValueError(
            f"`y` has shape {targets.shape} and dtype {targets.dtype}, X has shape {X.shape}. "
            "Row i of y is the vector that row i of X is carried onto, so pass real numbers in "
            "the shape of X, or leave y out."
        )
    targets = targets.astype(np.float64)
    check_finite(targets, "y")
    check_magnitude(targets, "y")
    return targets


def _check_rows_differ(X: Array) -> None:
    """Refuse data that are constant."""
    gap = float((X.max(axis=0) - X.min(axis=0)).max())
    if not gap > 1e-14 * float(np.abs(X).max()):
        raise ValueError(
            "All rows of X are equal, so nothing shows how they move. Check that the right "
            "columns were passed."
        )
    if gap < 1e-150:
        raise ValueError(
            f"Rows of X differ by at most {gap:.3g}, whose square is too small for a float. "
            "Multiply the values by a common number first."
        )


def _medoid(X: Array) -> int:
    """Row with the least sum of distances to all others."""
    sums = np.zeros(len(X))
    scaled = X / np.abs(X).max()
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, start + _BLOCK)
        sums[rows] = np.sqrt(squared_distances(scaled[rows], scaled)).sum(axis=1)
    return int(np.argmin(sums))


def _neighbor_pairs(X: Array, n_neighbors: int) -> NDArray[np.intp]:
    """Each row with its nearest others, every pair once."""
    count = min(n_neighbors, len(X) - 1)
    # About the middle: squares of a far-off origin would take the digits of distances.
    near = X - middle(X)
    found = NearestNeighbors(n_neighbors=count).fit(near).kneighbors(return_distance=False)
    both = np.stack([np.repeat(np.arange(len(X)), count), found.ravel()], axis=1)
    return np.unique(np.sort(both, axis=1), axis=0).astype(np.intp)


def _check_moving(sources: Array, targets: Array, name: str) -> None:
    """Refuse pairs with a zero vector, which no matrix moves, and pairs that are all at rest."""
    scale = max(float(np.abs(sources).max()), float(np.abs(targets).max()))
    ends = (np.abs(sources).max(axis=1), np.abs(targets).max(axis=1))
    still = np.flatnonzero(np.minimum(*ends) <= 1e-14 * scale)
    if still.size:
        raise ValueError(
            f"Pair {still[0]} of {name} has a zero vector, or one 1e14 times shorter than the "
            f"longest ({still.size} such pair(s)), which every matrix leaves where it is. Drop "
            "these rows, or shift the data away from the origin."
        )
    if not np.abs(targets - sources).max() > 1e-14 * scale:
        raise ValueError(
            f"Both vectors of every pair of {name} are equal, so nothing shows how they move. "
            "Pass pairs of different vectors; where rows repeat, drop the copies."
        )


def _checked_pairs(pairs: Any, n: int) -> NDArray[np.intp]:
    """Pairs of different rows."""
    values = _as_array(pairs)
    if (
        values.ndim != 2
        or values.shape[1] != 2
        or not len(values)
        or values.dtype.kind not in "iu"
    ):
        raise ValueError(
            '`pairs` must be "knn", "prototype", "all", or whole numbers of shape (n_pairs, 2), '
            f"got {_described(pairs, values)}. Row (i, j) says that X[i] comes from X[j]."
        )
    wrong = np.flatnonzero(((values < 0) | (values >= n)).any(axis=1))
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of `pairs` is {values[wrong[0]].tolist()}, but X has rows 0 to "
            f"{n - 1}. Pass indices of rows of X."
        )
    same = np.flatnonzero(values[:, 0] == values[:, 1])
    if same.size:
        raise ValueError(
            f"Row {same[0]} of `pairs` pairs row {values[same[0], 0]} of X with itself, which "
            "shows no motion. Pass pairs of different rows."
        )
    return values.astype(np.intp)


def _checked_prototype(prototype: Any, n: int, n_features: int) -> int | Array:
    """Index of a row, or a vector."""
    values = _as_array(prototype)
    if values.ndim == 0 and values.dtype.kind in "iu":
        if not 0 <= int(values) < n:
            raise ValueError(
                f"`prototype` is {int(values)}, but X has rows 0 to {n - 1}. Pass the index of a "
                "row, a vector, or None for the medoid."
            )
        return int(values)
    if values.shape != (n_features,) or values.dtype.kind not in "iuf":
        raise ValueError(
            f"`prototype` must be the index of a row of X, {n_features} numbers, or None for the "
            f"medoid, got {_described(prototype, values)}."
        )
    if not np.all(np.isfinite(values)) or not np.any(values):
        what = "only zeros" if not np.any(values) else "NaN or infinity"
        raise ValueError(
            f"`prototype` holds {what}. Pass a finite vector that is not zero: it is moved."
        )
    return values.astype(np.float64)


def _checked_pattern(pattern: Any, d: int, structure: str) -> NDArray[np.bool_]:
    """Boolean matrix that says which entries may differ from zero."""
    values = _as_array(pattern)
    if values.shape != (d, d) or values.dtype != np.bool_:
        raise ValueError(
            f"`pattern` must be boolean of shape {(d, d)}, True where an entry of a matrix may "
            f"differ from zero, got shape {values.shape} and dtype {values.dtype}."
        )
    if structure in ("symmetric", "skew") and not np.array_equal(values, values.T):
        i, j = np.argwhere(values != values.T)[0]
        raise ValueError(
            f"`pattern` treats entries ({i}, {j}) and ({j}, {i}) differently, which depend on "
            f"each other with structure={structure!r}. Pass pattern & pattern.T or "
            "pattern | pattern.T."
        )
    return values


def _as_array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(values, dtype=object)


def _described(given: Any, values: NDArray[Any]) -> str:
    if isinstance(given, str):
        return repr(given)
    return f"shape {values.shape} and dtype {values.dtype}"
