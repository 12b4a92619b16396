"""Numbers far from zero, huge and tiny ones, and one that is wild among ordinary ones."""

import numpy as np
import pytest

from unshuffle import (
    GridLayout,
    KernelizedSorting,
    MinimumVolumePCA,
    MultiwaySorting,
    OrbitLearner,
    PermutationInvariantSVC,
    SetAligner,
)
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
    geodesic_kernel,
    laplacian_kernel,
    nystroem_factors,
    rbf_kernel,
)
from unshuffle.layout import summarize
from unshuffle.metrics import (
    cka,
    distance_preservation_quality,
    foscttm,
    hsic,
    neighbor_distance,
)
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning"),
]

RANDOM = np.random.default_rng(0)
N = 25
X = RANDOM.exponential(size=(N, 3)) * [3.0, 2.0, 1.0]
ORDER = RANDOM.permutation(N)
Y = (X @ np.linalg.qr(RANDOM.normal(size=(3, 3)))[0])[ORDER]
GRID = RANDOM.permutation(N).reshape(5, 5)
CLASSES = np.arange(12) % 2
SHAPES = 2.0 * RANDOM.normal(size=(2, 8, 2))
BAGS = np.array(
    [RANDOM.permutation(SHAPES[each] + 0.3 * RANDOM.normal(size=(8, 2))) for each in CLASSES]
)


def matched(x, **options):
    return KernelizedSorting(n_init=3, random_state=0, **options).fit(x(X), x(Y)).permutation_


def aligned(x, **options):
    collections = [x(X), x(Y), x(X[ORDER])]
    return MultiwaySorting(random_state=0, n_init=1, **options).fit(collections).permutations_


def laid_out(x, **options):
    return GridLayout((5, 5), random_state=0, **options).fit(x(X)).grid_


def compared(kernel):
    def gram(x):
        both = kernel.fit_transform(x(BAGS)), kernel.transform(x(BAGS))
        np.testing.assert_allclose(*both, atol=1e-9)
        return both[0]

    return gram


VECTORS = {
    "rbf kernel": lambda x: rbf_kernel(x(X)),
    "laplacian kernel": lambda x: laplacian_kernel(x(X)),
    "geodesic kernel": lambda x: geodesic_kernel(x(X)),
    "low rank": lambda x: nystroem_factors(x(X), rank=9, random_state=0),
    "matched, rbf": matched,
    "matched, linear": lambda x: matched(x, kernel="linear"),
    "matched, both": lambda x: matched(x, kernel=["linear", "rbf"]),
    "matched, classic": lambda x: matched(x, kernel="linear", method="classic"),
    "matched, entropy": lambda x: matched(x, kernel="linear", method="entropy"),
    "matched, fewer": lambda x: (
        KernelizedSorting("linear", n_init=3, random_state=0).fit(x(X[:18]), x(Y)).permutation_
    ),
    "aligned, linear": lambda x: aligned(x, kernel="linear"),
    "aligned, entropy": lambda x: aligned(x, kernel="linear", objective="entropy"),
    "laid out, fast": lambda x: laid_out(x, quality="fast"),
    "laid out, balanced": laid_out,
    "laid out, classic": lambda x: laid_out(x, quality="classic"),
    "laid out, linear": lambda x: laid_out(x, quality="classic", kernel="linear"),
    "summary": lambda x: summarize(x(X), 5).labels,
    "summary, rbf": lambda x: summarize(x(X), 5, kernel="rbf").labels,
    "cka": lambda x: cka(x(X), x(Y)),
    "cka, debiased": lambda x: cka(x(X), x(Y), kernel="rbf", debiased=True),
    "foscttm": lambda x: foscttm(x(X), x(0.5 * (X + X[::-1]))),
    "layout quality": lambda x: distance_preservation_quality(x(X), GRID),
}
SETS = {
    "mean map": compared(MeanMapKernel()),
    "mean map, random": compared(MeanMapKernel(n_features=100, random_state=0)),
    "mean map, means": compared(MeanMapKernel("linear", outer="rbf", normalize=False)),
    "max map": compared(MaxMapKernel(outer="rbf")),
    "max map, columns": compared(MaxMapKernel("linear", outer="rbf")),
    "mixtures": compared(ExpectedLikelihoodKernel(2, random_state=0)),
    "mixtures, rbf": compared(ExpectedLikelihoodKernel(1, base_kernel="rbf")),
    "Gaussians": compared(BhattacharyyaKernel()),
    "Gaussians, linear": compared(BhattacharyyaKernel(base_kernel="linear")),
    "Fisher vectors": compared(FisherVectorKernel(3, random_state=0)),
    "Fisher vectors, plain": compared(FisherVectorKernel(3, power=1.0, random_state=0)),
    "sliced Wasserstein": compared(SlicedWassersteinKernel()),
    "sum": compared(SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel()])),
    "volume": lambda x: MinimumVolumePCA(2, random_state=0).fit(x(BAGS)).permutations_,
    "covariance": lambda x: (
        MinimumVolumePCA(2, "covariance", random_state=0).fit(x(BAGS)).permutations_
    ),
    "template": lambda x: SetAligner("ball", random_state=0).fit(x(BAGS)).permutations_,
    "normalized": lambda x: SetNormalizer(shear=True).fit_transform(x(BAGS)),
    "normalized columns": lambda x: SetNormalizer(scale="columns").fit_transform(x(BAGS)),
    "strokes": lambda x: NeighborhoodShape(4).fit_transform(x(BAGS))[:, :, 2:],
}
# What has a unit of its own, so that it does not stay as it is when numbers are scaled.
SHIFTED_ONLY = {
    "hsic": lambda x: hsic(x(X), x(Y), kernel="linear"),
    "hsic, zeroed": lambda x: hsic(x(X), x(Y), kernel="linear", estimator="zeroed"),
    "hsic, unbiased": lambda x: hsic(x(X), x(Y), kernel="linear", estimator="unbiased"),
    "neighbor distance": lambda x: neighbor_distance(x(X), GRID),
    "machine": lambda x: (
        PermutationInvariantSVC(random_state=0).fit(x(BAGS), CLASSES).predict(x(BAGS))
    ),
    "machine, parted": lambda x: (
        PermutationInvariantSVC(margin_weight=0.5, random_state=0)
        .fit(x(BAGS), CLASSES)
        .predict(x(BAGS))
    ),
}


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e8, 1e12])
@pytest.mark.parametrize("name", [*VECTORS, *SETS, *SHIFTED_ONLY])
def test_the_origin_does_not_matter(name, shift):
    found = {**VECTORS, **SETS, **SHIFTED_ONLY}[name]
    # What the shifted numbers still hold is the reference, not what they were before.
    expected = found(lambda values: (values + shift) - shift)
    np.testing.assert_allclose(found(lambda values: values + shift), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_differences_that_are_rounding_are_refused_or_taken_as_they_are(name):
    found = {**VECTORS, **SETS}[name]
    try:
        answer = found(lambda values: values + 1e16)
    except ValueError as error:
        assert "the difference is rounding" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(answer, found(lambda values: (values + 1e16) - 1e16))


# Powers of two, which round nothing: layouts and matchings of random numbers have near ties.
@pytest.mark.parametrize("power", [-332, -100, 100, 332])
@pytest.mark.parametrize("name", [*VECTORS, *SETS])
def test_the_unit_does_not_matter(name, power):
    scale = 2.0**power
    found = {**VECTORS, **SETS}[name]
    try:
        answer = found(lambda values: values * scale)
    except ValueError as error:
        assert "float" in str(error)  # noqa: PT017
        assert abs(power) == 332
    else:
        np.testing.assert_allclose(answer, found(lambda values: values), rtol=0, atol=1e-9)


WILD = [1e20, 1e150, -1e150]


def with_one(values, wild):
    changed = values.copy()
    changed[(3, 1) if values.ndim == 2 else (5, 2, 1)] = wild
    return changed


@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("kernel", [rbf_kernel, laplacian_kernel, geodesic_kernel])
def test_one_wild_item_leaves_similarities_of_others_alone(kernel, wild):
    others = np.delete(np.arange(N), 3)
    K = kernel(with_one(X, wild))[np.ix_(others, others)]
    np.testing.assert_allclose(K, kernel(X[others]), atol=0.1)  # the median width moves a little


def test_one_wild_item_does_not_erase_its_column():
    K = rbf_kernel([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1e20, 0.0]], gamma=1.0)
    np.testing.assert_allclose(K[0], [1.0, np.exp(-1), np.exp(-1), 0.0])
    np.testing.assert_allclose(K[1, 2], np.exp(-2))


@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("name", [name for name in SETS if name not in ("sum", "mean map, means")])
def test_one_wild_point_leaves_other_sets_alone_or_is_named(name, wild):
    others = np.delete(np.arange(len(BAGS)), 5)
    try:
        found = SETS[name](lambda bags: with_one(bags, wild))
    except ValueError as error:
        words = ("Point 2 of bag 5", "Point 2 of set 5", "covariance")
        assert any(each in str(error) for each in words)  # noqa: PT017
        return
    assert np.isfinite(found).all()
    if name == "strokes":
        np.testing.assert_allclose(found[others], SETS[name](lambda bags: bags)[others])
        return
    # Widths move a little, and the mixture of a set may settle elsewhere.
    apart = np.abs(found[np.ix_(others, others)] - SETS[name](lambda bags: bags[others]))
    assert np.quantile(apart, 0.9) < 0.1


@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("quality", ["fast", "balanced", "classic"])
def test_one_wild_item_leaves_the_layout_of_others_sorted(quality, wild):
    points = np.random.default_rng(1).random((100, 2))

    def neighbors_apart(grid):
        places = {item: divmod(place, 10) for place, item in enumerate(grid.ravel())}
        beside = [
            np.linalg.norm(points[i] - points[j])
            for i in range(100)
            for j in range(i)
            if 3 not in (i, j)
            and abs(places[i][0] - places[j][0]) + abs(places[i][1] - places[j][1]) == 1
        ]
        return np.mean(beside)

    layout = GridLayout((10, 10), quality=quality, random_state=0)
    plain = neighbors_apart(layout.fit(points).grid_)
    assert neighbors_apart(layout.fit(with_one(points, wild)).grid_) < 1.3 * plain
    assert neighbors_apart(np.arange(100).reshape(10, 10)) > 3 * plain


@pytest.mark.parametrize("wild", WILD)
def test_a_wild_item_stands_for_itself_in_a_summary(wild):
    summary = summarize(with_one(X, wild), 6)
    others = np.delete(np.arange(N), 3)
    assert 3 in summary.indices
    assert summary.mean_distance < 1.1 * summarize(X[others], 5).mean_distance


@pytest.mark.parametrize("wild", WILD)
def test_a_wild_item_is_matched_by_rbf_and_named_by_linear(wild):
    truth = np.argsort(ORDER)
    found = KernelizedSorting(random_state=0).fit(with_one(X, wild), Y).permutation_
    assert (found == truth).sum() >= N - 1
    for fit in (
        lambda: KernelizedSorting("linear").fit(with_one(X, wild), Y),
        lambda: cka(with_one(X, wild), Y),
        lambda: hsic(with_one(X, wild), Y, kernel="linear"),
    ):
        with pytest.raises(ValueError, match=r"Row 3 of X lies 1e\+.* lost to rounding"):
            fit()
    with pytest.raises(ValueError, match=r"Row 3 of X\[1\] lies"):
        MultiwaySorting("linear").fit([Y, with_one(X, wild)])


def test_linear_kernels_of_two_clusters_far_apart_keep_what_is_inside_them():
    far = np.concatenate([X[:12], X[12:] + 1e8])
    assert rbf_kernel(far, gamma=1.0)[20, 21] == pytest.approx(
        rbf_kernel(far[12:] - 1e8, gamma=1.0)[8, 9]
    )
    inside = summarize(far, 12)
    alone = {*summarize(X[:12], 6).indices, *(12 + summarize((far - 1e8)[12:], 6).indices)}
    assert inside.mean_distance < 5
    assert len(alone & set(inside.indices)) >= 8


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9])
def test_neighbors_and_the_medoid_of_an_orbit_are_those_of_its_points(shift):
    angle = np.linspace(0.1, 1.4, 30)
    arc = np.column_stack([np.cos(angle), np.sin(angle)]) + shift
    learner = OrbitLearner(1, n_components=2, n_init=1, max_iter=20, random_state=0).fit(arc)
    assert np.abs(np.diff(learner.pairs_, axis=1)).max() <= 8
    np.testing.assert_allclose(learner.prototype_, arc[14], atol=0.1)
