"""What does not fit is refused before anything of the size of all pairs is made."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from unshuffle import (
    GridLayout,
    KernelizedSorting,
    MinimumVolumePCA,
    MultiwaySorting,
    OrbitLearner,
    PermutationInvariantSVC,
    SetAligner,
    assignment,
    kernels,
    metrics,
)
from unshuffle._quadratic.problem import QuadraticProblem
from unshuffle.alignment import match_shapes
from unshuffle.layout import choose_representatives, summarize
from unshuffle.plotting import MatchDisplay

N = 500
ONE_MATRIX = 8 * N**2
X = np.random.default_rng(0).random((N, 2))
K = np.eye(N) + 0.5
SINGLE = K.astype(np.float32)
ORDER = np.arange(N)
TEXTS = [f"word{i} word{i % 7}" for i in range(N)]
SETS = X[:, None, :]
# Two sizes, so that a square is kept too: the problem itself is made before memory is short.
PROBLEM = QuadraticProblem(K, K)


def never(*args):
    raise AssertionError("a kernel was computed before memory was asked for")


LARGE = {
    "linear_kernel": lambda: kernels.linear_kernel(X),
    "rbf_kernel": lambda: kernels.rbf_kernel(X),
    "laplacian_kernel": lambda: kernels.laplacian_kernel(X, X),
    "chi2_kernel": lambda: kernels.chi2_kernel(X),
    "geodesic_distances": lambda: kernels.geodesic_distances(X),
    "geodesic_kernel": lambda: kernels.geodesic_kernel(X),
    "text_kernel": lambda: kernels.text_kernel(TEXTS),
    "gram_matrix, precomputed": lambda: kernels.gram_matrix(SINGLE, "precomputed"),
    "gram_matrix, callable": lambda: kernels.gram_matrix(X, never),
    "combined_gram": lambda: kernels.combined_gram(X, ["rbf", never]),
    "center": lambda: kernels.center(K),
    "zero_diagonal": lambda: kernels.zero_diagonal(K),
    "unit_norm": lambda: kernels.unit_norm(K),
    "SpectralPower": lambda: kernels.SpectralPower(K),
    "spectral_power": lambda: kernels.spectral_power(K, 0.5),
    "median_gamma": lambda: kernels.median_gamma(K),
    "pivoted_cholesky": lambda: kernels.pivoted_cholesky(X, N, kernel="rbf"),
    "nystroem_factors": lambda: kernels.nystroem_factors(X, "rbf", N),
    "MeanMapKernel": lambda: kernels.MeanMapKernel().fit_transform(SETS),
    "MaxMapKernel": lambda: kernels.MaxMapKernel(n_landmarks=2).fit_transform(SETS),
    "SlicedWassersteinKernel": lambda: kernels.SlicedWassersteinKernel(2).gram(SETS),
    "hsic": lambda: metrics.hsic(X, X, kernel=never),
    "cka": lambda: metrics.cka(X, X, kernel="precomputed", kernel_y=never),
    "solve_assignment": lambda: assignment.solve_assignment(K),
    "soft_assignment": lambda: assignment.soft_assignment(SINGLE),
    "quadratic_assignment": lambda: assignment.quadratic_assignment(K, K),
    "KernelizedSorting": lambda: KernelizedSorting(never).fit(X, X),
    "KernelizedSorting, lists": lambda: KernelizedSorting([never, "text"]).fit(
        [X, TEXTS], [X, TEXTS]
    ),
    "KernelizedSorting, precomputed": lambda: KernelizedSorting("precomputed").fit(K, K),
    "MultiwaySorting": lambda: MultiwaySorting(never).fit([X, X, X]),
    "GridLayout, callable": lambda: GridLayout(kernel=never).fit(X),
    "GridLayout, precomputed": lambda: GridLayout(kernel="precomputed").fit(K),
    "GridLayout, geodesic": lambda: GridLayout(kernel="geodesic").fit(X),
    "GridLayout, text": lambda: GridLayout(kernel="text").fit(TEXTS),
    "GridLayout, classic": lambda: GridLayout(quality="classic").fit(X),
    "GridLayout, cells": lambda: GridLayout((20, N // 20), quality="classic").fit(X[:9]),
    "summarize": lambda: summarize(X, 3, kernel=never),
    "choose_representatives": lambda: choose_representatives(K, 3, kernel="precomputed"),
    "MinimumVolumePCA": lambda: MinimumVolumePCA().fit(np.array([X, X])),
    "SetAligner": lambda: SetAligner("ball").fit(SETS),
    "PermutationInvariantSVC": lambda: PermutationInvariantSVC().fit(SETS, ORDER % 2),
    "OrbitLearner": lambda: OrbitLearner(pairs="all", prototype=0).fit(X + 1.0),
    "match_shapes": lambda: match_shapes(X, X),
    "MatchDisplay": lambda: MatchDisplay.from_predictions(X, X, ORDER, kernel=never),
}


@pytest.mark.parametrize("name", LARGE)
def test_too_much_is_refused_before_a_matrix_of_all_pairs_is_made(name, monkeypatch):
    monkeypatch.setattr(
        "unshuffle._core.parameters.available_memory", lambda: int(0.9 * ONE_MATRIX)
    )
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"[\d,]+ .*needs [\d,.]+ GB; [\d.]+ GB is free\. "):
            LARGE[name]()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.8 * ONE_MATRIX


# Fits small enough for a test, and what they hold at their peak; the largest of their kind.
FITS = {
    "refined": (KernelizedSorting(), {}),
    "two threads": (KernelizedSorting(n_jobs=2), {}),
    "with a cost": (KernelizedSorting(unmatched_cost=0.4), {"cost": np.zeros((N, N))}),
    "geodesic": (KernelizedSorting("geodesic", method="classic"), {}),
    "known pairs": (KernelizedSorting(), {"frozen": np.column_stack([np.arange(12)] * 2)}),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_match_takes_no_more_than_was_asked_for(name, monkeypatch):
    estimator, options = FITS[name]
    Y = np.random.default_rng(1).random((N, 3))
    clone(estimator).fit(X[:150], Y[:150])  # compiled loops are loaded
    asked = []
    monkeypatch.setattr(
        "unshuffle.matching._fit.check_memory",
        lambda n_bytes, **_: asked.append(n_bytes),
    )
    tracemalloc.start()
    try:
        estimator.fit(X, Y, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 * asked[0] < peak <= asked[0]  # nor is much more asked for than is taken


def test_advice_is_something_the_caller_can_do(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=f"Matching {N} items .*fit a sample of the items"):
        KernelizedSorting().fit(X, X)
    with pytest.raises(MemoryError, match="Use a sample of the items") as caught:
        kernels.rbf_kernel(X)
    assert "pivoted_cholesky" not in str(caught.value)
