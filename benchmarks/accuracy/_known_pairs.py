"""What do 30 known pairs buy? Rank errors of the others, beside simpler uses of these pairs."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn import datasets

from benchmarks.accuracy._trust import Array, Task, panel, scaled, split
from unshuffle import KernelizedSorting
from unshuffle.kernels import SpectralPower, rbf_kernel, text_features
from unshuffle.matching._trust import known_pairs as _known_pairs

N_KNOWN, N_DRAWS = 30, 5
N_COMPONENTS = 40
Permutation = NDArray[np.intp]


def report(folder: Path) -> Iterator[str]:
    """The six sets with all peers, then the panel beside ridge regression."""
    for task in six_sets(folder):
        yield _compare(task, peers=("ridge", "frozen", "canonical"))
    for task in panel(folder):
        if task.n_items > 2 * N_KNOWN:
            yield _compare(task, peers=("ridge",))


def six_sets(folder: Path) -> Iterator[Task]:
    """The sets of the first measurement, with at most 600 items."""
    yield split("wine", datasets.load_wine().data)
    yield split("breast cancer", datasets.load_breast_cancer().data)
    chosen = np.random.RandomState(0).permutation(1797)[:400]
    digits = datasets.load_digits().images[chosen]
    left, right = digits[:, :, :4].reshape(400, -1), digits[:, :, 4:].reshape(400, -1)
    yield Task("digits, left and right", scaled(left), scaled(right))
    by_name = {task.name: task for task in panel(folder)}
    yield by_name["mfeat pix-fou"]
    yield by_name["mfeat pix-zer"]
    cells = by_name["snareseq"]
    chosen = np.random.RandomState(0).permutation(cells.n_items)[:400]
    yield cells._replace(name="snareseq, 400 cells", X=cells.X[chosen], y=cells.y[chosen])


def _compare(task: Task, peers: tuple[str, ...]) -> str:
    results: dict[str, list[tuple[float, float]]] = {}
    believed = []
    for seed in range(N_DRAWS):
        rng = np.random.RandomState(seed)
        order = rng.permutation(task.n_items)[: round(task.share * task.n_items)]
        place = np.full(task.n_items, -1, dtype=np.intp)
        place[order] = np.arange(order.size)
        items = rng.permutation(task.n_items)
        known = np.sort(items[place[items] >= 0][:N_KNOWN])
        frozen = np.column_stack([known, place[known]])
        y = task.shuffled(order)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sorting = KernelizedSorting(task.kernel, random_state=0, trust=len(peers) > 1)
            sorting.fit(task.X, y, frozen=frozen)
            found = {"ours": sorting.permutation_}
            believed.append(sorting.expected_accuracy_)
            if "ridge" in peers:
                found["ridge"] = by_ridge(task, order, frozen)
            if "frozen" in peers:
                found["frozen"] = by_freezing(task, y, frozen)
            if "canonical" in peers:
                found["canonical"] = by_canonical_correlations(task.X, y, frozen)
        for name, permutation in found.items():
            results.setdefault(name, []).append(score(task, order, permutation, known))
    means = {name: np.mean(scores, axis=0) for name, scores in results.items()}
    return (
        f"{task.name}, {N_KNOWN} known: rank error (right) "
        + ", ".join(f"{name} {error:.3f} ({right:.3f})" for name, (error, right) in means.items())
        + (f"; believed right {np.mean(believed):.3f}" if len(peers) > 1 else "")
    )


def score(
    task: Task, order: Permutation, found: Permutation, known: Permutation
) -> tuple[float, float]:
    """Rank error and share right of the pairs that were not known and have a partner."""
    rest = np.setdiff1d(order, known)
    rest = rest[found[rest] >= 0]
    common = task.y if task.common is None else task.common
    partners = order[found[rest]]
    apart = cdist(common[partners], common[order])
    wanted = np.linalg.norm(common[partners] - common[rest], axis=1)
    nearer = (apart < wanted[:, None] - 1e-9).sum(axis=1) / (order.size - 1)
    return float(nearer.mean()), float((partners == rest).mean())


def by_freezing(task: Task, y: Array, frozen: Permutation) -> Permutation:
    """Known pairs are kept, and teach nothing."""
    with patch.object(_known_pairs, "FEWEST", 10**9):
        sorting = KernelizedSorting("rbf", random_state=0, trust=False)
        return np.asarray(sorting.fit(task.X, y, frozen=frozen).permutation_)


def by_ridge(task: Task, order: Permutation, frozen: Permutation) -> Permutation:
    """Ridge regression from the features of X to those of y, then one assignment."""
    X, y = (_features(side, task.kernel) for side in (task.X, task.y))
    y = y[order]
    rows, columns = frozen.T
    centers = X[rows].mean(axis=0), y[columns].mean(axis=0)
    A, B = X[rows] - centers[0], y[columns] - centers[1]
    products = A @ A.T

    def left_out_error(ridge: float) -> float:
        hat = products @ np.linalg.inv(products + ridge * np.eye(len(rows)))
        return float((((B - hat @ B) / (1.0 - np.diag(hat))[:, None]) ** 2).mean())

    ridge = min(10.0 ** np.arange(-2, 5), key=left_out_error)
    weights = A.T @ np.linalg.inv(products + ridge * np.eye(len(rows))) @ B
    predicted = (X - centers[0]) @ weights + centers[1]
    return _assign(-cdist(predicted, y, "sqeuclidean"), frozen)


def _features(side: object, kernel: object) -> Array:
    if kernel == "text":
        return np.asarray(text_features(side).toarray())
    if isinstance(kernel, list):
        return np.hstack([scaled(part) for part in side])  # type: ignore[attr-defined]
    return np.asarray(side, dtype=float)


def by_canonical_correlations(X: Array, y: Array, frozen: Permutation) -> Permutation:
    """Canonical correlations of kernel principal components, and likelihood ratios."""
    U, V = _components(X), _components(y)
    rows, columns = frozen.T
    folds = np.arange(len(rows)) % 5

    def left_out_error(ridge: float) -> float:
        error = 0.0
        for fold in range(5):
            kept, held = folds != fold, folds == fold
            fitted = _canonical(U[rows[kept]], V[columns[kept]], ridge)
            scores = _likelihood_ratios(fitted, U[rows[held]], V)
            wanted = scores[np.arange(int(held.sum())), columns[held]]
            error += float((scores > wanted[:, None]).mean(axis=1).sum())
        return error

    ridge = min(10.0 ** np.arange(-2, 3), key=left_out_error)
    scores = _likelihood_ratios(_canonical(U[rows], V[columns], ridge), U, V)
    return _assign(scores, frozen)


def _components(X: Array) -> Array:
    spectrum = SpectralPower(rbf_kernel(X))
    vectors = spectrum.eigenvectors_[:, :N_COMPONENTS] * np.sqrt(len(X))
    values = spectrum.eigenvalues_[:N_COMPONENTS]
    return np.asarray(vectors * (values / values[0]) ** 0.25)


def _canonical(A: Array, B: Array, ridge: float) -> tuple[Array, ...]:
    centers = A.mean(axis=0), B.mean(axis=0)
    A, B = A - centers[0], B - centers[1]
    roots = []
    for side in (A, B):
        values, vectors = np.linalg.eigh(side.T @ side / len(side) + ridge * np.eye(side.shape[1]))
        roots.append((vectors / np.sqrt(values)) @ vectors.T)
    left, correlations, right = np.linalg.svd(roots[0] @ (A.T @ B / len(A)) @ roots[1])
    correlations = np.clip(correlations, 0.0, 0.99)
    return *centers, roots[0] @ left, roots[1] @ right.T, correlations


def _likelihood_ratios(fitted: tuple[Array, ...], U: Array, V: Array) -> Array:
    center_u, center_v, left, right, correlations = fitted
    a, b = (U - center_u) @ left, (V - center_v) @ right
    weights = correlations / (1.0 - correlations**2)
    column = 0.5 * (b**2) @ (correlations * weights)
    row = 0.5 * (a**2) @ (correlations * weights)
    return np.asarray((a * weights) @ b.T - column[None, :] - row[:, None])


def _assign(scores: Array, frozen: Permutation) -> Permutation:
    """Best assignment that keeps the known pairs; -1 where items are left over."""
    rows = np.setdiff1d(np.arange(scores.shape[0]), frozen[:, 0])
    columns = np.setdiff1d(np.arange(scores.shape[1]), frozen[:, 1])
    found = np.full(scores.shape[0], -1, dtype=np.intp)
    found[frozen[:, 0]] = frozen[:, 1]
    chosen, partners = linear_sum_assignment(scores[np.ix_(rows, columns)], maximize=True)
    found[rows[chosen]] = columns[partners]
    return found
