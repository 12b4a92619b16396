"""Every public name, and a small call of each that takes numbers.

`NAMES` is what rooms publish. Containers are checked with `EXAMPLES`, estimators of bags with
`BAG_ESTIMATORS`, the fuzzer and the reference against `NAMES`: a name that is missing from one of
them fails a test.
"""

import pkgutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import unshuffle
from unshuffle import (
    alignment,
    assignment,
    images,
    kernels,
    layout,
    matching,
    metrics,
    orbits,
    plotting,
    preprocessing,
    svm,
)

ROOMS = sorted(
    module.name
    for module in pkgutil.iter_modules(unshuffle.__path__)
    if not module.name.startswith("_") and module.name != "cli"  # a program, not a library
)
NAMES = [f"{room}.{name}" for room in ROOMS for name in import_module(f"unshuffle.{room}").__all__]
# Take no numbers: results and bases, sizes and seeds, files and texts, estimators.
NO_NUMBERS = {
    "results, records and bases": "assignment.Assignment layout.Summary kernels.Mixture "
    "kernels.SetKernel "
    "datasets.LabeledSets datasets.Paired images.Drawing images.ImageCollection "
    "encoders.Encoder matching.DoubtWarning testing.BagCheckResult "
    "base.BagEstimatorMixin base.DoubtWarning base.SearchState",
    "sizes and seeds": "datasets.digit_sets datasets.digits_views datasets.grid_points "
    "datasets.make_paired_views datasets.mixture_sets datasets.photo_halves "
    "datasets.sample_digits layout.rectangle_for",
    "files, pictures and texts": "encoders.has_content encoders.is_encoder "
    "encoders.load_encoder images.default_cache images.morph_strip images.picture_points "
    "images.read_features images.read_folder images.read_image images.read_mask images.save_gif "
    "images.save_sheet images.text_mask images.text_tiles images.visible_files "
    "images.write_page web.serve "
    "kernels.text_features kernels.text_kernel",
    "estimators": "testing.check_bag_estimator testing.parametrize_with_bag_checks",
}

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    """Numbers that single precision holds exactly."""
    return np.round(64 * RNG.normal(size=shape)) / 64


def gram(n: int) -> np.ndarray:
    points = numbers(n, 3)
    return np.round(64 * points @ points.T) / 64 + np.eye(n)


X, Y, Z = numbers(24, 3), numbers(24, 4), numbers(24, 3)
COUNTS = np.abs(numbers(24, 3))
K, L, M = gram(12), gram(12), gram(12)
COST = numbers(12, 12)
ORDER = RNG.permutation(12)
SETS = [numbers(5, 2) for _ in range(8)]
LABELS = np.arange(8) % 2
PICTURES = RNG.integers(0, 256, (9, 16, 16, 3), dtype=np.uint8)
GRID = np.arange(9).reshape(3, 3)
ARC = (
    np.round(2**12 * np.stack([np.cos(t := np.linspace(0.2, 1.4, 12)), np.sin(t)], axis=1)) / 2**12
)
MATRICES, VECTORS, OTHERS = numbers(6, 3, 3) / 4, numbers(6, 3), numbers(6, 3)
GENERATORS, COEFFICIENTS = numbers(2, 3, 3) / 4, numbers(6, 2)
SYMMETRIC = MATRICES + MATRICES.transpose(0, 2, 1)
BAGS = numbers(6, 5, 2)


@dataclass
class Example:
    """One call: `make` of the inputs, and what to look at in what it gives."""

    make: Callable[..., Any]
    inputs: tuple[Any, ...]
    look: Callable[[Any], Any] = lambda made: made
    without: tuple[str, ...] = ()


def fitted(*names: str) -> Callable[[Any], Any]:
    return lambda made: [getattr(made, name) for name in names]


def set_kernel(kernel: Any) -> Example:
    return Example(
        lambda bags: deepcopy(kernel).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.gram(SETS[:3], SETS)),
    )


def drawn(display: Any) -> Any:
    return [value for name, value in vars(display).items() if not name.endswith("_")]


EXAMPLES: dict[str, Example] = {
    "alignment.MinimumVolumePCA": Example(
        lambda bags: alignment.MinimumVolumePCA(2, random_state=0).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.permutations_, made.morph(0, 1, 0.5)),
    ),
    "alignment.match_shapes": Example(alignment.match_shapes, (X, Z)),
    "assignment.quadratic_assignment": Example(
        lambda A, B, cost, frozen: assignment.quadratic_assignment(
            A, B, cost=cost, frozen=frozen, n_init=3, random_state=0
        ),
        (COST, COST.T.copy(), COST, np.array([[0, 3]])),
        lambda made: list(made.values()),
    ),
    "assignment.soft_assignment": Example(assignment.soft_assignment, (COST,)),
    "assignment.solve_assignment": Example(
        lambda cost, frozen, prices: assignment.solve_assignment(
            cost, frozen=frozen, prices=prices
        ),
        (COST, np.array([[0, 3]]), np.zeros(12)),
    ),
    "images.color_histogram": Example(images.color_histogram, (PICTURES,)),
    "images.color_texture": Example(images.color_texture, (PICTURES,)),
    "images.describe": Example(lambda given: images.describe(given)[0], (PICTURES,)),
    "images.grid_sheet": Example(images.grid_sheet, (PICTURES, GRID)),
    "images.lab_pixels": Example(images.lab_pixels, (PICTURES,)),
    "images.matched_sheet": Example(
        images.matched_sheet, (PICTURES, PICTURES[::-1].copy(), np.arange(9)[::-1].copy())
    ),
    "images.morph_frames": Example(
        lambda path: images.morph_frames(path, size=32), (numbers(3, 6, 2),)
    ),
    "images.points_sheet": Example(
        images.points_sheet, (PICTURES, numbers(9, 2)), without=("AnnData",)
    ),
    "images.rgb_to_lab": Example(images.rgb_to_lab, (PICTURES,)),
    "images.visual_words": Example(
        lambda given: images.visual_words(given, n_words=4, random_state=0), (PICTURES,)
    ),
    "kernels.BhattacharyyaKernel": set_kernel(kernels.BhattacharyyaKernel()),
    "kernels.ExpectedLikelihoodKernel": set_kernel(
        kernels.ExpectedLikelihoodKernel(2, base_kernel=None, random_state=0)
    ),
    "kernels.FisherVectorKernel": set_kernel(
        kernels.FisherVectorKernel(n_components=2, random_state=0)
    ),
    "kernels.MaxMapKernel": set_kernel(kernels.MaxMapKernel()),
    "kernels.MeanMapKernel": set_kernel(kernels.MeanMapKernel()),
    "kernels.SetKernelSum": set_kernel(
        kernels.SetKernelSum([kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel()])
    ),
    "kernels.SlicedWassersteinKernel": set_kernel(kernels.SlicedWassersteinKernel(random_state=0)),
    "kernels.SpectralPower": Example(kernels.SpectralPower, (K,), lambda made: made(0.5)),
    "kernels.center": Example(kernels.center, (K,)),
    "kernels.chi2_kernel": Example(kernels.chi2_kernel, (COUNTS, COUNTS[:5])),
    "kernels.combined_gram": Example(
        lambda *each: kernels.combined_gram(list(each), ["rbf", "chi2"]), (X, COUNTS)
    ),
    "kernels.geodesic_distances": Example(kernels.geodesic_distances, (X,)),
    "kernels.geodesic_kernel": Example(kernels.geodesic_kernel, (X,)),
    "kernels.local_kernel": Example(kernels.local_kernel, (X,)),
    "kernels.gram_matrix": Example(
        lambda X, K: (kernels.gram_matrix(X), kernels.gram_matrix(K, "precomputed")), (X, K)
    ),
    "kernels.laplacian_kernel": Example(kernels.laplacian_kernel, (X, Z)),
    "kernels.linear_kernel": Example(kernels.linear_kernel, (X, Z)),
    "kernels.median_gamma": Example(kernels.median_gamma, (np.abs(K),)),
    "kernels.nystroem_factors": Example(
        lambda X: kernels.nystroem_factors(X, "chi2", 5, random_state=0), (COUNTS,)
    ),
    "kernels.pivoted_cholesky": Example(lambda K: kernels.pivoted_cholesky(K, 3), (K,)),
    "kernels.rbf_kernel": Example(kernels.rbf_kernel, (X, Z)),
    "kernels.spectral_power": Example(lambda K: kernels.spectral_power(K, 0.5), (K,)),
    "kernels.spectral_power_path": Example(
        lambda K: list(kernels.spectral_power_path(K, [1.0, 0.5])), (K,)
    ),
    "kernels.unit_norm": Example(kernels.unit_norm, (K,)),
    "kernels.zero_diagonal": Example(kernels.zero_diagonal, (K,)),
    "layout.Collage": Example(
        lambda template, tiles: layout.Collage(template, random_state=0).fit(tiles),
        (PICTURES[0], PICTURES),
        lambda made: (
            made.grid_,
            made.cost_,
            made.render(PICTURES),
            plotting.CollageDisplay.from_estimator(made, PICTURES).template,
        ),
    ),
    "layout.GridLayout": Example(
        lambda X, frozen: layout.GridLayout((5, 6), quality="classic", random_state=0).fit(
            X, frozen=frozen
        ),
        (X, np.array([[0, 3]])),
        lambda made: (made.grid_, deepcopy(made).add(Z[:2]).grid_, deepcopy(made).score_),
    ),
    "layout.Positions": Example(
        lambda grid, points: (
            layout.Positions(grid, list("abcdefghi")),
            layout.Positions(np.arange(9), list("abcdefghi"), points),
        ),
        (GRID, numbers(9, 2)),
        lambda made: [(each.grid, each.points) for each in made],
        without=("AnnData",),
    ),
    "layout.choose_representatives": Example(lambda X: layout.choose_representatives(X, 3), (X,)),
    "layout.look_alikes": Example(
        lambda X, K: (
            layout.look_alikes(X, 3),
            layout.look_alikes(K, 3, kernel="precomputed"),
        ),
        (X, K),
    ),
    "layout.sort_grid": Example(
        lambda grid: layout.sort_grid(grid, random_state=0), (numbers(3, 4, 6),)
    ),
    "layout.summarize": Example(lambda X: layout.summarize(X, 3, kernel="geodesic"), (X,)),
    "matching.KernelizedSorting": Example(
        lambda X, y, frozen: matching.KernelizedSorting("geodesic", "rbf").fit(
            X, y, frozen=frozen
        ),
        (X, Y, np.array([[0, 3]])),
        lambda made: (
            made.permutation_,
            made.confidence_,
            made.objective_,
            made.soft_matches(),
            made.candidates(3),
            made.questions(3),
        ),
    ),
    "matching.Matches": Example(
        lambda p, sure, best: matching.Matches(
            p, sure, [str(i) for i in range(12)], [str(i) for i in range(12)], best
        ),
        (ORDER, np.abs(COST[0]) / 16, np.argsort(COST, axis=1)[:, :3]),
        lambda made: (made.pairs, made.confidence, made.candidates),
        without=("list", "object array"),
    ),
    "matching.MultiwaySorting": Example(
        lambda *each: matching.MultiwaySorting().fit(list(each)),
        (X, Y, Z),
        fitted("permutations_", "objective_"),
    ),
    "metrics.cka": Example(metrics.cka, (X, Y)),
    "metrics.distance_preservation_quality": Example(
        metrics.distance_preservation_quality, (X[:9], GRID)
    ),
    "metrics.foscttm": Example(metrics.foscttm, (X, Z)),
    "metrics.hsic": Example(metrics.hsic, (X, Y)),
    "metrics.matching_accuracy": Example(metrics.matching_accuracy, (ORDER, np.arange(12))),
    "metrics.neighbor_distance": Example(metrics.neighbor_distance, (X[:9], GRID)),
    "orbits.OrbitLearner": Example(
        lambda X: orbits.OrbitLearner(1, random_state=0).fit(X),
        (ARC,),
        lambda made: (
            made.generators_,
            made.prototype_,
            made.transform(ARC),
            made.sample(3, random_state=0),
        ),
    ),
    "plotting.AlignmentDisplay": Example(
        lambda bags, orders, path: plotting.AlignmentDisplay.from_predictions(
            bags, orders, log_volume_path=path, objective_path=path
        ),
        (SETS, np.tile(np.arange(5), (8, 1)), COST[0]),
        drawn,
    ),
    "plotting.CollageDisplay": Example(
        plotting.CollageDisplay.from_predictions, (PICTURES[0], GRID, PICTURES), drawn
    ),
    "plotting.GramDisplay": Example(
        lambda K, labels: plotting.GramDisplay.from_predictions(K, labels, order=np.arange(12)),
        (K, np.arange(12) % 2),
        drawn,
    ),
    "plotting.LayoutDisplay": Example(
        lambda grid, values, X: plotting.LayoutDisplay.from_predictions(grid, values=values, X=X),
        (GRID, np.abs(COST[0, :9]), X[:9]),
        lambda made: (*drawn(made), made.neighbor_distances),
    ),
    "plotting.MatchDisplay": Example(
        lambda X, y, p, sure: plotting.MatchDisplay.from_predictions(X, y, p, confidence=sure),
        (X[:12], Y[:12], ORDER, np.abs(COST[0]) / 16),
        drawn,
    ),
    "plotting.MixtureDisplay": Example(
        lambda bags, weights, means, spreads: plotting.MixtureDisplay.from_predictions(
            bags, [(weights, means, spreads)] * 8
        ),
        (SETS, np.ones(1), numbers(1, 2), np.eye(2)[None]),
        drawn,
        without=("AnnData",),
    ),
    "plotting.OrbitDisplay": Example(
        plotting.OrbitDisplay.from_predictions,
        (ARC, numbers(1, 2, 2), ARC[0], numbers(12, 1)),
        drawn,
    ),
    "plotting.TemplateDisplay": Example(
        plotting.TemplateDisplay.from_predictions,
        (SETS[0], SETS, np.tile(np.arange(5), (8, 1)), LABELS),
        drawn,
        without=("AnnData",),
    ),
    "preprocessing.NeighborhoodShape": Example(
        lambda bags: preprocessing.NeighborhoodShape(3).fit(bags).transform(bags), (SETS,)
    ),
    "preprocessing.SetNormalizer": Example(
        lambda bags: preprocessing.SetNormalizer(shear=True).fit(bags).transform(bags), (SETS,)
    ),
    "svm.PermutationInvariantSVC": Example(
        lambda bags, y: svm.PermutationInvariantSVC(random_state=0).fit(bags, y),
        (SETS, LABELS),
        lambda made: (made.decision_function(SETS), made.templates_, made.permutations_),
    ),
    "svm.SetAligner": Example(
        lambda bags: svm.SetAligner(random_state=0).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.template_, made.permutations_),
    ),
}

# At least one of each; rooms check more of theirs.
BAG_ESTIMATORS = [
    alignment.MinimumVolumePCA(2),
    alignment.MinimumVolumePCA(2, "covariance", "rbf", n_init=2),
    alignment.MinimumVolumePCA(1, unequal="missing"),
    svm.SetAligner("ball", kernel="rbf", unequal="rectangular"),
    svm.PermutationInvariantSVC(margin_weight=0.1, template="mean", unequal="rectangular"),
    svm.PermutationInvariantSVC(probability=True, max_iter=2),
    kernels.MeanMapKernel(),
    kernels.MaxMapKernel(),
    kernels.MaxMapKernel("linear", outer="rbf"),
    kernels.SlicedWassersteinKernel(10),
    kernels.FisherVectorKernel(3),
    kernels.SetKernelSum([kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel(10)]),
    kernels.ExpectedLikelihoodKernel(),
    kernels.ExpectedLikelihoodKernel("bic", covariance_type="diag", normalize=False),
    kernels.ExpectedLikelihoodKernel(2, base_kernel="rbf"),
    kernels.BhattacharyyaKernel(),
    kernels.BhattacharyyaKernel(base_kernel="rbf"),
    preprocessing.SetNormalizer(shear=True),
    preprocessing.NeighborhoodShape(4),
]
