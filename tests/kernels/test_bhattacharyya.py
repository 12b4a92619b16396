import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle.kernels import BhattacharyyaKernel, ExpectedLikelihoodKernel


@pytest.fixture(scope="module")
def ellipses():
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=(rng.integers(15, 40), 2)) @ rng.normal(size=(2, 2)) + rng.normal(size=2)
        for _ in range(5)
    ]


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_affinities_are_integrals_of_roots(kind, ellipses):
    kernel = BhattacharyyaKernel(kind, regularization=0.05)
    K = kernel.fit_transform(ellipses)
    axis = np.arange(-25.0, 25.0, 0.1)
    at = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    roots = []
    for _, (mean,), (covariance,) in kernel.mixtures(ellipses):
        gaps = at - mean
        forms = np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(covariance), gaps)
        density = np.exp(-forms / 2) / np.sqrt(np.linalg.det(2 * np.pi * covariance))
        roots.append(np.sqrt(density))
    values = np.array(roots)
    np.testing.assert_allclose(K, values @ values.T * 0.1**2, rtol=1e-6)


def test_sets_agree_with_themselves(ellipses):
    np.testing.assert_array_equal(np.diag(BhattacharyyaKernel().fit_transform(ellipses)), 1.0)


def test_affinity_of_equal_spreads_depends_on_the_distance_of_means():
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(30, 3))
    move = np.array([0.3, -0.2, 0.5])
    kernel = BhattacharyyaKernel().fit([shape, shape + move])
    covariance = kernel.mixtures([shape])[0].covariances[0]
    expected = np.exp(-move @ np.linalg.solve(covariance, move) / 8)
    assert kernel.gram([shape], [shape + move])[0, 0] == pytest.approx(expected)


def test_it_lies_near_expected_likelihood_with_one_gaussian_where_spreads_are_alike(ellipses):
    shapes = [ellipses[0] + 0.1 * i for i in range(6)]
    affinity = BhattacharyyaKernel().fit_transform(shapes)
    likelihood = ExpectedLikelihoodKernel(1, random_state=0).fit_transform(shapes)
    # Equal covariances C: exponents of 1/8 and of 1/4 of the same square.
    np.testing.assert_allclose(affinity**2, likelihood, rtol=1e-10)


def test_gram_matrices_are_positive_semi_definite():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(rng.integers(1, 30), 4)) + rng.normal(size=4) for _ in range(150)]
    for kernel in (BhattacharyyaKernel(), BhattacharyyaKernel(base_kernel="rbf", eta=0.01)):
        values = np.linalg.eigvalsh(kernel.fit_transform(bags))
        assert values[0] > -1e-12 * values[-1]


@pytest.mark.parametrize(
    "parameters", [{"covariance_type": "tied"}, {"rank": 0}, {"n_landmarks": 0}, {"eta": -1.0}]
)
def test_parameters_out_of_range_are_refused(parameters, ellipses):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        BhattacharyyaKernel(**parameters).fit(ellipses)


@parametrize_with_checks(
    [BhattacharyyaKernel(), BhattacharyyaKernel(base_kernel="rbf", n_landmarks=40)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_far_origin_costs_no_digits_with_a_polynomial():
    bags = [np.random.default_rng(i).normal(size=(6, 2)) + i % 2 for i in range(12)]
    found = [
        BhattacharyyaKernel(base_kernel="poly").fit_transform([bag + far for bag in bags])
        for far in (1e5, 1e6)
    ]
    np.testing.assert_allclose(*found, atol=1e-3)
    assert min(np.linalg.eigvalsh(each)[0] for each in found) > -1e-10


def test_points_that_differ_by_rounding_alone_are_refused():
    bags = [1e8 + np.random.default_rng(i).normal(size=(6, 2)) for i in range(4)]
    with pytest.raises(ValueError, match=r"same to the kernel poly, up to rounding.* Subtract"):
        BhattacharyyaKernel(base_kernel="poly").fit(bags)


def test_new_sets_too_wide_for_a_float_are_refused():
    bags = [np.random.default_rng(i).normal(size=(6, 2)) for i in range(4)]
    kernel = BhattacharyyaKernel().fit(bags)
    with pytest.raises(ValueError, match="points of set 1 are so much farther apart"):
        kernel.transform([bags[0], 1e140 * bags[1]])
