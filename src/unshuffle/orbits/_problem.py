"""The learning problem: pairs of vectors and the space of matrices, with checks of the input."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from unshuffle._core.arrays import (
    as_numbers,
    as_rows,
    check_finite,
    check_magnitude,
    check_plain,
    middle,
)
from unshuffle._core.distances import squared_distances
from unshuffle._core.matrix_exponentials import Subspace
from unshuffle._core.parameters import check_memory
from unshuffle._run.types import Floats

PROTOTYPE = -1  # index of a prototype that is not a row of X
_BLOCK = 1000
_MOVING_MEAN = 0.001  # change of lengths about the mean from which it may not be at rest
_MIRROR = {"general": 0.0, "diagonal": 0.0, "symmetric": 1.0, "skew": -1.0}


@dataclass(frozen=True)
class MatrixSpace:
    """Square matrices of one structure, in coordinates of an orthonormal basis."""

    n_rows: int
    rows: NDArray[np.intp]  # row of the entry that each coordinate sets, shape (p,)
    columns: NDArray[np.intp]  # its column
    mirror: float  # sign of the copy across the diagonal; 0 without a copy

    @classmethod
    def of(cls, d: int, structure: str, pattern: Any) -> "MatrixSpace":
        """Space of d x d matrices of a structure, zero where `pattern` is False."""
        allowed = np.ones((d, d), dtype=bool)
        if pattern is not None:
            allowed &= _check_pattern(pattern, d, structure)
        if structure == "diagonal":
            allowed &= np.eye(d, dtype=bool)
        elif structure in ("symmetric", "skew"):
            allowed &= np.triu(np.ones((d, d), dtype=bool), k=int(structure == "skew"))
        if not allowed.any():
            raise ValueError(
                f"structure={structure!r} and `pattern` allow only the zero matrix. Allow more "
                'entries, or use structure="general".'
            )
        rows, columns = np.nonzero(allowed)
        return cls(d, rows, columns, _MIRROR[structure])

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""
        return self.rows.size

    @property
    def is_diagonal(self) -> bool:
        """Whether all matrices of the space are diagonal."""
        return bool(np.array_equal(self.rows, self.columns))

    @property
    def scale(self) -> Floats:
        """Value that each basis matrix has in its entries."""
        twice = (self.rows != self.columns) & (self.mirror != 0.0)
        return np.where(twice, np.sqrt(0.5), 1.0)

    def matrices(self, coordinates: Floats) -> Floats:
        """Matrices (n, d, d) of coordinates (n, p)."""
        result = np.zeros((len(coordinates), self.n_rows, self.n_rows))
        entries = coordinates * self.scale
        if self.mirror:
            result[:, self.columns, self.rows] = self.mirror * entries
        result[:, self.rows, self.columns] = entries
        return result

    def coordinates(self, matrices: Floats) -> Floats:
        """Coordinates (n, p) of the nearest matrices of the space."""
        entries = matrices[:, self.rows, self.columns]
        if self.mirror:
            across = self.mirror * matrices[:, self.columns, self.rows]
            entries = np.where(self.rows == self.columns, entries, entries + across)
        return np.asarray(entries * self.scale)

    def rotations(self) -> "MatrixSpace | None":
        """All skew matrices, if the space holds them."""
        n_skew = self.n_rows * (self.n_rows - 1) // 2
        general = self.n_dimensions == self.n_rows**2
        if n_skew and (general or (self.mirror < 0.0 and self.n_dimensions == n_skew)):
            return MatrixSpace.of(self.n_rows, "skew", None)
        return None

    def basis(self) -> Floats:
        """The orthonormal basis, shape (p, d, d)."""
        return self.matrices(np.eye(self.n_dimensions))


@dataclass(frozen=True)
class Prototype:
    """The vector that orbits start from."""

    row: int  # its row of X, or `PROTOTYPE`
    vector: Floats  # in the space of X, shape (n_features,)
    inner: Floats  # its coordinates in the subspace, shape (d,); else the vector itself


@dataclass(frozen=True)
class VectorPairs:
    """Pairs of vectors: exp(A_n) should map sources[n] to targets[n]."""

    indices: NDArray[np.intp]  # rows of X of target and source, shape (n, 2)
    targets: Floats  # (n, d)
    sources: Floats  # (n, d)
    scale: float = 1.0  # factor back to the user's units

    @property
    def n_points(self) -> int:
        """Number of different targets."""
        return np.unique(self.indices[:, 0]).size

    def scaled(self) -> "VectorPairs":
        """The pairs divided by the root mean square length of the sources."""
        scale = float(np.abs(self.sources).max())
        unit = self.sources / scale
        scale *= float(np.sqrt(np.mean(np.sum(unit**2, axis=1))))
        return replace(
            self, targets=self.targets / scale, sources=self.sources / scale, scale=scale
        )


@dataclass(frozen=True)
class OrbitProblem:
    """Everything that a fit needs."""

    rows: Floats | None  # X in the subspace, (n, d); None if the user passed targets
    subspace: Subspace | None  # where matrices act; None is the space of X
    prototype: Prototype
    pairs: VectorPairs  # scaled
    space: MatrixSpace
    seed: int  # of random starts
    n_points: int  # rows of X

    def inside(self, X: Floats) -> Floats:
        """Coordinates of vectors where matrices act."""
        return X if self.subspace is None else self.subspace.inside(X)

    def check_n_generators(self, wanted: int | None) -> None:
        """Limit the generators by the numbers of points, pairs and independent matrices."""
        limits = {
            "points": self.n_points,
            "pairs": len(self.pairs.targets),
            "independent matrices": self.space.n_dimensions,
        }
        for what, count in limits.items():
            if wanted is not None and wanted > count:
                raise ValueError(
                    f"n_generators={wanted} is more than the {count} {what}. Ask for fewer, pass "
                    "more points, or choose a more general structure."
                )


def build_problem(
    X: Floats,
    targets: Floats | None,
    *,
    structure: str,
    pattern: Any,
    pairs: Any,
    prototype: Any,
    n_neighbors: int,
    n_components: int | None,
    center: Any,
    seed: int,
) -> OrbitProblem:
    """The problem that the parameters of the estimator describe, if it fits into memory."""
    subspace = None
    if n_components is not None:
        whole = X if targets is None else np.concatenate([X, targets])
        resting = _select_center(center, X, targets, pairs)
        subspace = _fit_subspace(whole, int(n_components), resting)
    inner = X if subspace is None else subspace.inside(X)
    start = _select_prototype(prototype, X, inner, subspace)
    if targets is None:
        chosen = _select_pairs(pairs, inner, start, n_neighbors)
    else:
        chosen = _pair_with_targets(
            inner, targets if subspace is None else subspace.inside(targets)
        )
    n, d = chosen.targets.shape
    space = MatrixSpace.of(d, structure, pattern)
    _check_learning_memory(n, d, space.n_dimensions)
    rows = inner if targets is None else None
    return OrbitProblem(rows, subspace, start, chosen.scaled(), space, seed, len(X))


def check_loss(loss: str, structure: str, constraints: Any) -> None:
    """Check that the loss can learn this structure and take constraints."""
    if loss == "squared" and constraints is not None:
        raise ValueError(
            '`constraints` apply to the matrix of every pair, which loss="squared" does not have. '
            'Use loss="logtrace"; `structure` and `pattern` work with both.'
        )
    if loss == "logtrace" and structure not in ("symmetric", "diagonal"):
        raise ValueError(
            f'loss="logtrace" cannot learn structure={structure!r}: it has no minimum for general '
            'matrices, and rotations all cost the same. Use structure="symmetric" or "diagonal", '
            'or loss="squared", which learns all structures.'
        )


def check_vectors(X: Any) -> Floats:
    """Finite rows whose squares are finite too."""
    rows: Floats = as_rows(as_numbers(X, "X"), "X")
    check_magnitude(rows, "X")
    return rows


def check_targets(y: Any, X: Floats) -> Floats | None:
    """Targets of the rows of X; None for no `y` or labels, and X must then not be constant."""
    if len(X) < 2:
        raise ValueError(
            f"X has {len(X)} row(s) (n_samples = {len(X)}), which is too few to learn from. "
            "Pass at least two points of an orbit."
        )
    targets = None if y is None else as_targets(y, X)
    if targets is None:
        _check_rows_differ(X)
    return targets


def as_targets(y: Any, X: Floats) -> Floats | None:
    """Targets as an array; None for labels, which are ignored."""
    check_plain(y, "`y`")
    try:
        targets = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "`y` holds rows of different lengths. Pass an array of the shape of X, or leave y out."
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
            "Pass real numbers in the shape of X, the target of each row, or leave y out."
        )
    targets = targets.astype(np.float64)
    check_finite(targets, "y")
    check_magnitude(targets, "y")
    return targets


def _select_center(center: Any, X: Floats, targets: Floats | None, pairs: Any) -> Floats | None:
    """Point about which vectors move; None is the mean of the rows.

    The mean of part of an orbit is not at rest. Rotations keep the distance from the point at
    rest: if distances from the origin change much less between the vectors of a pair than those
    from the mean, "auto" takes the origin.
    """
    origin = np.zeros(X.shape[1])
    if not isinstance(center, str):
        return _check_center(center, X)
    if center != "auto":
        return origin if center == "origin" else None
    if targets is not None:
        x, z = targets, X
    elif isinstance(pairs, str):
        x, z = X, np.roll(X, 1, axis=0)
    else:
        x, z = X[_check_pairs(pairs, len(X)).T]
    mean = X.mean(axis=0) if targets is None else 0.5 * (X.mean(axis=0) + targets.mean(axis=0))
    changes = [_change_of_lengths(x - point, z - point) for point in (mean, origin)]
    return origin if changes[0] > _MOVING_MEAN and changes[1] < changes[0] / 2.0 else None


def _change_of_lengths(x: Floats, z: Floats) -> float:
    """Squared change of the lengths between vectors of pairs, as a share of the squared moves."""
    moved = float(np.sum((x - z) ** 2))
    changed = float(np.sum((np.linalg.norm(x, axis=1) - np.linalg.norm(z, axis=1)) ** 2))
    return changed / moved if moved else 0.0


def _fit_subspace(X: Floats, n_components: int, center: Floats | None) -> Subspace:
    """Principal directions of the rows, if the rows have that many."""
    n, n_features = X.shape
    most = min(n - 1, n_features)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {most} directions in which {n} rows of "
            f"{n_features} columns vary. Ask for {most} or fewer."
        )
    return Subspace.of(X, n_components, center)


def _select_prototype(
    given: Any, X: Floats, inner: Floats, subspace: Subspace | None
) -> Prototype:
    """The row or vector that the user passed, or the medoid of the nonzero rows."""
    if given is None:
        lengths = np.abs(inner).max(axis=1)
        moving = np.flatnonzero(lengths > 1e-14 * lengths.max())
        row = int(moving[_medoid(inner[moving])]) if moving.size else 0
        return Prototype(row, X[row], inner[row])
    found = _check_prototype(given, *X.shape)
    if isinstance(found, int):
        prototype = Prototype(found, X[found], inner[found])
    else:
        start = found if subspace is None else subspace.inside(found[None])[0]
        prototype = Prototype(PROTOTYPE, found, start)
    length, scale = float(np.abs(prototype.inner).max()), float(np.abs(inner).max())
    if not 1e-14 * scale < length < 1e14 * scale:
        raise ValueError(
            f"The prototype has entries of at most {length:.3g} and the data of {scale:.3g} (both "
            "about the mean with n_components), so they cannot lie on one orbit. Pass a "
            "`prototype` of the size of the data, or None for the medoid."
        )
    return prototype


def _select_pairs(which: Any, X: Floats, prototype: Prototype, n_neighbors: int) -> VectorPairs:
    """Pairs of rows, or of rows and the prototype, as the parameter `pairs` says."""
    n = len(X)
    if not isinstance(which, str):
        indices = _check_pairs(which, n)
    elif which == "knn":
        indices = _neighbor_pairs(X, n_neighbors)
    elif which == "all":
        _check_learning_memory(n * (n - 1) // 2, X.shape[1], X.shape[1])
        indices = np.stack(np.triu_indices(n, k=1), axis=1).astype(np.intp)
    else:
        rows = np.flatnonzero(np.arange(n) != prototype.row)
        indices = np.stack([rows, np.full(rows.size, prototype.row)], axis=1).astype(np.intp)
    from_outside = (indices[:, 1] == PROTOTYPE)[:, None]
    sources = np.where(from_outside, prototype.inner, X[indices[:, 1]])
    targets = X[indices[:, 0]]
    _check_moving(sources, targets, "X")
    return VectorPairs(indices, targets, sources)


def _pair_with_targets(X: Floats, onto: Floats) -> VectorPairs:
    """Each row of X with its target."""
    _check_moving(X, onto, "X and y")
    rows = np.arange(len(X))
    return VectorPairs(np.stack([rows, rows], axis=1), onto, X)


def _check_learning_memory(n_pairs: int, n_columns: int, n_dimensions: int) -> None:
    """Check that matrices and their derivatives fit into memory."""
    maps = min(n_pairs * n_columns * n_dimensions, 30_000_000)
    check_memory(
        8 * (6 * n_pairs * n_columns**2 + 3 * maps + 3 * n_dimensions**2),
        what=f"Learning {n_columns} x {n_columns} matrices from {n_pairs:,} pairs",
        instead='Pass fewer pairs (pairs="knn" with fewer neighbors, or your own), or set '
        "n_components to work in fewer dimensions.",
    )


def _check_rows_differ(X: Floats) -> None:
    """Raise ValueError if the rows are equal, or too close for their differences to be squared."""
    gap = float((X.max(axis=0) - X.min(axis=0)).max())
    if not gap > 1e-14 * float(np.abs(X).max()):
        raise ValueError(
            "All rows of X are equal, so there is no transformation to learn. Check the columns."
        )
    if gap < 1e-150:
        raise ValueError(
            f"Rows of X differ by at most {gap:.3g}, whose square is too small for a float. "
            "Multiply the values by a common number first."
        )


def _medoid(X: Floats) -> int:
    """Index of the row with the smallest sum of distances to all others."""
    sums = np.zeros(len(X))
    scaled = X / np.abs(X).max()
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, start + _BLOCK)
        sums[rows] = np.sqrt(squared_distances(scaled[rows], scaled)).sum(axis=1)
    return int(np.argmin(sums))


def _neighbor_pairs(X: Floats, n_neighbors: int) -> NDArray[np.intp]:
    """Pairs of each row and its nearest neighbors, without repeats."""
    count = min(n_neighbors, len(X) - 1)
    # Subtract the middle: squared distances lose digits far from the origin.
    near = X - middle(X)
    found = NearestNeighbors(n_neighbors=count).fit(near).kneighbors(return_distance=False)
    both = np.stack([np.repeat(np.arange(len(X)), count), found.ravel()], axis=1)
    return np.unique(np.sort(both, axis=1), axis=0).astype(np.intp)


def _check_moving(sources: Floats, targets: Floats, name: str) -> None:
    """Raise ValueError if a vector is zero, or if both vectors of every pair are equal."""
    scale = max(float(np.abs(sources).max()), float(np.abs(targets).max()))
    ends = (np.abs(sources).max(axis=1), np.abs(targets).max(axis=1))
    still = np.flatnonzero(np.minimum(*ends) <= 1e-14 * scale)
    if still.size:
        raise ValueError(
            f"Pair {still[0]} of {name} has a zero vector, or one 1e14 times shorter than the "
            f"longest ({still.size} such pair(s)). No matrix moves a zero vector: drop these "
            "rows, or shift the data away from the origin."
        )
    if not np.abs(targets - sources).max() > 1e-14 * scale:
        raise ValueError(
            f"Both vectors of every pair of {name} are equal, so there is no transformation to "
            "learn. Pass pairs of different vectors, or drop repeated rows."
        )


def _check_pairs(pairs: Any, n: int) -> NDArray[np.intp]:
    """Index pairs of different rows."""
    values = _as_array(pairs)
    if not (values.ndim == 2 and values.shape[1] == 2 and values.size and _is_integer(values)):
        raise ValueError(
            '`pairs` must be "knn", "prototype", "all", or whole numbers of shape (n_pairs, 2), '
            f"got {_describe(pairs, values)}. Row (i, j) means that X[i] comes from X[j]."
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
            f"Row {same[0]} of `pairs` pairs row {values[same[0], 0]} of X with itself. Pass "
            "pairs of different rows."
        )
    return values.astype(np.intp)


def _check_prototype(prototype: Any, n: int, n_features: int) -> int | Floats:
    """Row index or vector."""
    values = _as_array(prototype)
    if values.ndim == 0 and _is_integer(values):
        if not 0 <= int(values) < n:
            raise ValueError(
                f"`prototype` is {int(values)}, but X has rows 0 to {n - 1}. Pass the index of a "
                "row, a vector, or None for the medoid."
            )
        return int(values)
    if values.shape != (n_features,) or values.dtype.kind not in "iuf":
        raise ValueError(
            f"`prototype` must be the index of a row of X, {n_features} numbers, or None for the "
            f"medoid, got {_describe(prototype, values)}."
        )
    if not np.all(np.isfinite(values)) or not np.any(values):
        what = "only zeros" if not np.any(values) else "NaN or infinity"
        raise ValueError(f"`prototype` holds {what}. Pass a finite, nonzero vector.")
    return values.astype(np.float64)


def _check_center(center: Any, X: Floats) -> Floats:
    """Finite vector with as many numbers as the rows."""
    values = _as_array(center)
    if values.shape != X.shape[1:] or values.dtype.kind not in "biuf":
        raise ValueError(
            f'`center` must be "auto", "mean", "origin" or {X.shape[1]} numbers, got '
            f"{_describe(center, values)}."
        )
    if not np.isfinite(values).all():
        raise ValueError("`center` holds NaN or infinity. Pass a finite vector.")
    return values.astype(np.float64)


def _check_pattern(pattern: Any, d: int, structure: str) -> NDArray[np.bool_]:
    """Boolean matrix of the entries that may be nonzero."""
    values = _as_array(pattern)
    if values.shape != (d, d) or values.dtype != np.bool_:
        raise ValueError(
            f"`pattern` must be boolean of shape {(d, d)}, True where an entry may be nonzero, "
            f"got shape {values.shape} and dtype {values.dtype}."
        )
    if structure in ("symmetric", "skew") and not np.array_equal(values, values.T):
        i, j = np.argwhere(values != values.T)[0]
        raise ValueError(
            f"`pattern` treats entries ({i}, {j}) and ({j}, {i}) differently, but "
            f"structure={structure!r} links them. Pass pattern & pattern.T or pattern | pattern.T."
        )
    return values


def _as_array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(values, dtype=object)


def _is_integer(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu"


def _describe(given: Any, values: NDArray[Any]) -> str:
    if isinstance(given, str):
        return repr(given)
    return f"shape {values.shape} and dtype {values.dtype}"
