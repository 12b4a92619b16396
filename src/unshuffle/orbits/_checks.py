"""Checks of what orbits are learned from."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_real, check_finite, check_magnitude, check_plain, kind_of
from unshuffle._parameters import check_memory

_SIGN_NOISE = 1e-2  # of the product of two lengths: what may be noise about zero


def check_comparable(X: NDArray[np.float64], prototype_length: float) -> None:
    """Refuse rows so much longer than the prototype that nothing is seen to lead there."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest > 1e10 * prototype_length:  # squared, the way there is lost in rounding
        raise ValueError(
            f"X holds {largest:.3g}, and the prototype has length {prototype_length:.3g}: too far "
            "apart to be compared. Pass vectors in the units of those that were fitted."
        )


def check_coefficients(c: Any, k: int, name: str = "c") -> NDArray[np.float64]:
    """Finite coefficients of shape (k,) or (n, k)."""
    try:
        values = as_real(c)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold real numbers, {k} in every row, got {kind_of(c)}."
        ) from error
    if values.ndim not in (1, 2) or values.shape[-1] != k:
        raise ValueError(
            f"`{name}` must have shape ({k},) or (n, {k}), one coefficient for each of the {k} "
            f"generators, got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite coefficients.")
    return values


def check_orbit_vector(x: Any, n_features: int, name: str = "x") -> NDArray[np.float64]:
    """One finite vector of the fitted width."""
    try:
        values = as_real(x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold {n_features} real numbers, got {kind_of(x)}."
        ) from error
    if values.shape != (n_features,):
        raise ValueError(
            f"`{name}` must be one vector of {n_features} numbers, as the rows that were fitted, "
            f"got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite numbers.")
    return values


def check_orbit_rows(X: NDArray[np.float64], name: str) -> None:
    """Refuse vectors that are not finite, or too large to be squared."""
    check_finite(X, name)
    check_magnitude(X, name)


def check_several_points(n: int, name: str) -> None:
    """Refuse a single vector: it shows no motion."""
    if n < 2:
        raise ValueError(
            f"{name} has {n} row(s) (n_samples = {n}), which shows no motion. Pass at least two "
            "points of an orbit."
        )


def check_rows_differ(X: NDArray[np.float64], name: str) -> None:
    """Refuse data that are constant."""
    gap = float((X.max(axis=0) - X.min(axis=0)).max())
    if not gap > 1e-14 * float(np.abs(X).max()):
        raise ValueError(
            f"All rows of {name} are equal, so nothing shows how they move. Check that the right "
            "columns were passed."
        )
    if gap < 1e-150:
        raise ValueError(
            f"Rows of {name} differ by at most {gap:.3g}, whose square is too small for a float. "
            "Multiply the values by a common number first."
        )


def check_moving(sources: NDArray[np.float64], targets: NDArray[np.float64], name: str) -> None:
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


def check_regression_targets(y: Any, X: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Vectors to carry the rows of X onto, or None where y holds labels, which are not used."""
    if y is None:
        return None
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
    check_orbit_rows(targets, "y")
    return targets


def check_index_pairs(pairs: Any, n: int) -> NDArray[np.intp]:
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


def check_prototype(prototype: Any, n: int, n_features: int) -> int | NDArray[np.float64]:
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


def check_prototype_moves(prototype: NDArray[np.float64], X: NDArray[np.float64]) -> None:
    """Refuse a prototype that is zero, or far out of the range of the data."""
    length, scale = float(np.abs(prototype).max()), float(np.abs(X).max())
    if not 1e-14 * scale < length < 1e14 * scale:
        raise ValueError(
            f"The prototype has entries of at most {length:.3g} and the data of {scale:.3g} (both "
            "about the mean with n_components), so that no matrix carries one onto the other. "
            "Pass a `prototype` of the size of the data, or None for the medoid."
        )


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


def check_any_matrix(n_dimensions: int, n_columns: int, structure: str) -> None:
    """Refuse structures and patterns that leave the zero matrix only."""
    if n_dimensions == 0:
        raise ValueError(
            f"structure={structure!r} and the pattern leave no matrix of {n_columns} columns but "
            'zero, which moves nothing. Allow more entries, or use structure="general".'
        )


def check_pattern(pattern: Any, d: int, structure: str) -> NDArray[np.bool_] | None:
    """Boolean matrix that says which entries may differ from zero."""
    if pattern is None:
        return None
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


def check_log_trace(structure: str) -> None:
    """Refuse the log-trace loss for matrices by which it has no least value."""
    if structure not in ("symmetric", "diagonal"):
        raise ValueError(
            f'loss="logtrace" cannot learn matrices of structure={structure!r}: it has no least '
            "value for general matrices, and rotations all cost the same, whatever the data. Use "
            'structure="symmetric" or "diagonal", or loss="squared", which learns all of them.'
        )


def check_inner_products(sources: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
    """Refuse pairs that no exponential of a symmetric matrix carries onto each other."""
    lengths = np.linalg.norm(sources, axis=1) * np.linalg.norm(targets, axis=1)
    wrong = np.flatnonzero(~(np.sum(sources * targets, axis=1) > 1e-12 * lengths))
    if wrong.size:
        raise ValueError(
            f"The vectors of pair {wrong[0]} are at a right angle or beyond ({wrong.size} such "
            'pair(s)), and no matrix that loss="logtrace" can learn carries one onto the other: '
            "it needs a positive inner product. Pass pairs of closer vectors, such as "
            'pairs="knn", or use loss="squared".'
        )


def check_signs(sources: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
    """Refuse pairs with a coordinate of changing sign, as no diagonal exponential changes it."""
    lengths = np.linalg.norm(sources, axis=1) * np.linalg.norm(targets, axis=1)
    wrong = np.argwhere(sources * targets < -_SIGN_NOISE * lengths[:, np.newaxis])
    if len(wrong):
        n_pairs = np.unique(wrong[:, 0]).size
        raise ValueError(
            f"Coordinate {wrong[0, 1]} of pair {wrong[0, 0]} changes its sign ({n_pairs} such "
            'pair(s)), which no diagonal matrix does, and loss="logtrace" does not see. Pass '
            'pairs of closer vectors, or use structure="symmetric", or loss="squared".'
        )


def check_constraints(constraints: Any, d: int, loss: str) -> tuple[Any, Any] | None:
    """Linear inequalities G A.ravel() <= h."""
    if constraints is None:
        return None
    if loss != "logtrace":
        raise ValueError(
            '`constraints` hold for the matrix of every pair, which loss="squared" does not keep '
            'apart from its generators. Use loss="logtrace"; `structure` and `pattern` work with '
            "both."
        )
    try:
        G, h = constraints
        G, h = as_real(G), as_real(h)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`constraints` must be a pair (G, h) of arrays of real numbers, which asks for "
            f"G @ A.ravel() <= h, got {type(constraints).__name__}."
        ) from error
    if G.ndim != 2 or G.shape[1] != d * d or h.shape != (len(G),):
        raise ValueError(
            f"`constraints` must be (G, h) with G of shape (m, {d * d}) and h of shape (m,), got "
            f"{G.shape} and {h.shape}. A row of G weighs the {d * d} entries of A.ravel()."
        )
    if not (np.all(np.isfinite(G)) and np.all(np.isfinite(h))):
        raise ValueError("`constraints` hold NaN or infinity. Leave out rows without a bound.")
    check_magnitude(G, "G of `constraints`")
    check_magnitude(h, "h of `constraints`")
    return G, h


def raise_infeasible_constraints() -> NoReturn:
    """Say that no matrix meets all constraints."""
    raise ValueError(
        "No matrix of this structure and pattern meets all `constraints`. Relax h, or drop rows "
        "that contradict each other."
    )


def check_orbit_components(n_components: int | None, n: int, n_features: int) -> None:
    """Refuse more principal directions than the data have."""
    most = min(n - 1, n_features)
    if n_components is not None and n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {most} directions in which {n} rows of "
            f"{n_features} columns vary. Ask for {most} or fewer."
        )


def check_orbit_memory(n_pairs: int, n_columns: int, n_dimensions: int) -> None:
    """Refuse matrices and derivatives that would not fit into the memory that is free now."""
    maps = min(n_pairs * n_columns * n_dimensions, 30_000_000)
    check_memory(
        8 * (6 * n_pairs * n_columns**2 + 3 * maps + 3 * n_dimensions**2),
        what=f"Learning {n_columns} x {n_columns} matrices from {n_pairs:,} pairs",
        instead='Pass fewer pairs (pairs="knn" with fewer neighbours, or your own), or set '
        "n_components to work in fewer dimensions.",
    )


def _as_array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(values, dtype=object)


def _described(given: Any, values: NDArray[Any]) -> str:
    if isinstance(given, str):
        return repr(given)
    return f"shape {values.shape} and dtype {values.dtype}"
