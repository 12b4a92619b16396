import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from unshuffle.kernels import FisherVectorKernel, rbf_kernel


def sets(n=15, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(size=2), 1.0, size=(rng.integers(5, 40), 2)) for _ in range(n)]


def log_likelihood(points, weights, means, deviations):
    steps = (points[:, None] - means) / deviations
    logs = np.log(weights / weights.sum()) - np.log(deviations).sum(axis=1)
    return np.log(np.exp(logs - 0.5 * (steps**2).sum(axis=2)).sum(axis=1)).mean()


def slopes(points, kernel):
    """Slopes of the mean log-likelihood by small steps, scaled as in the papers."""
    start = [np.log(kernel.weights_), kernel.means_, np.log(kernel.deviations_)]
    found = []
    for which in range(3):
        slope = np.empty_like(start[which])
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                at = [each.copy() for each in start]
                at[which][place] += step
                ends.append(log_likelihood(points, np.exp(at[0]), at[1], np.exp(at[2])))
            slope[place] = (ends[0] - ends[1]) / 2e-5
        found.append(slope)
    root = np.sqrt(kernel.weights_)
    return np.concatenate(
        [
            found[0] / root,
            (found[1] * kernel.deviations_ / root[:, None]).ravel(),
            (found[2] / (np.sqrt(2) * root[:, None])).ravel(),
        ]
    )


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_vectors_are_the_slopes_of_the_likelihood(power):
    bags = sets()
    kernel = FisherVectorKernel(3, power=power, random_state=0)
    K = kernel.fit_transform(bags)
    vectors = np.array([slopes(bag, kernel) for bag in bags])
    vectors = np.sign(vectors) * np.abs(vectors) ** power
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(K, vectors @ vectors.T, atol=1e-4 if power < 1 else 1e-7)
    kernel = FisherVectorKernel(3, power=power, gamma=0.5, random_state=0)
    K = kernel.fit_transform(bags)
    np.testing.assert_allclose(K, rbf_kernel(vectors, gamma=0.5), atol=1e-4)
    np.testing.assert_array_equal(np.diag(K), 1.0)


def test_the_vocabulary_finds_the_clusters_of_all_points():
    rng = np.random.default_rng(0)
    bags = [c + 0.1 * rng.normal(size=(20, 2)) for c in ([0, 0], [5, 0], [0, 5]) for _ in range(4)]
    kernel = FisherVectorKernel(3, random_state=0).fit(bags)
    assert {tuple(mean) for mean in kernel.means_.round()} == {(0, 0), (5, 0), (0, 5)}
    np.testing.assert_allclose(kernel.weights_, 1 / 3, atol=1e-6)
    np.testing.assert_allclose(kernel.deviations_, 0.1, rtol=0.6)
    assert kernel.converged_
    labels = np.repeat([0, 1, 2], 4)
    K = kernel.transform(bags)
    assert K[labels[:, None] == labels].min() > K[labels[:, None] != labels].max()


def test_the_order_of_sets_only_reorders():
    bags = sets()
    order = np.random.default_rng(1).permutation(len(bags))
    K = FisherVectorKernel(4, random_state=0).fit_transform(bags)
    other = FisherVectorKernel(4, random_state=0).fit_transform([bags[i] for i in order])
    np.testing.assert_allclose(other, K[np.ix_(order, order)], atol=1e-14)


def test_units_of_columns_do_not_matter():
    bags = sets()
    K = FisherVectorKernel(4, random_state=0).fit_transform(bags)
    scaled = [bag * [1000.0, 0.001] + [50.0, -3.0] for bag in bags]
    other = FisherVectorKernel(4, random_state=0).fit_transform(scaled)
    np.testing.assert_allclose(other, K, atol=1e-6)


def test_a_column_that_never_changes_is_harmless():
    bags = [np.column_stack([bag, np.full(len(bag), 7.0)]) for bag in sets()]
    assert np.isfinite(FisherVectorKernel(3, random_state=0).fit_transform(bags)).all()


def test_points_far_from_every_component_have_finite_slopes():
    kernel = FisherVectorKernel(3, random_state=0).fit(sets())
    assert np.isfinite(kernel.transform([np.full((4, 2), 1e6)])).all()


def test_fewer_points_than_components_fall_back_with_a_warning():
    with pytest.warns(UserWarning, match="n_components=16, but X holds 2 distinct point"):
        kernel = FisherVectorKernel(random_state=0).fit([[[0.0, 1.0]], [[1.0, 0.0]]])
    assert kernel.weights_.shape == (2,)


def test_stopping_early_is_said():
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 rounds"):
        kernel = FisherVectorKernel(5, max_iter=1, tol=0.0, random_state=0).fit(sets())
    assert not kernel.converged_
    assert kernel.n_iter_ == 1


def test_a_vocabulary_without_tolerance_ends_where_nothing_is_gained():
    kernel = FisherVectorKernel(2, tol=0.0, max_iter=10**9, random_state=0)
    assert np.isfinite(kernel.fit_transform(sets())).all()


def test_the_vocabulary_is_that_of_scikit_learn():
    bags = sets()
    kernel = FisherVectorKernel(1, regularization=1e-9, random_state=0).fit(bags)
    points = np.concatenate(bags)
    mixture = GaussianMixture(1, covariance_type="diag", reg_covar=0.0).fit(points)
    np.testing.assert_allclose(kernel.means_, mixture.means_)
    np.testing.assert_allclose(kernel.deviations_**2, mixture.covariances_, rtol=1e-8)


@pytest.mark.parametrize("options", [{"power": 0.0}, {"power": 2.0}, {"n_components": 0}])
def test_impossible_parameters_are_refused(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be"):
        FisherVectorKernel(**options).fit(sets())


def test_a_constant_column_says_nothing():
    bags = [np.random.default_rng(i).normal(size=(7, 2)) for i in range(6)]
    wider = [np.column_stack([bag, np.full(len(bag), 0.1)]) for bag in bags]
    kernel = FisherVectorKernel(3, random_state=0).fit(wider)
    moved = [bag + np.array([0.0, 0.0, 1e-9]) for bag in wider]
    np.testing.assert_allclose(kernel.transform(moved), kernel.transform(wider), atol=1e-3)


def test_a_column_too_small_to_square_says_nothing():
    bags = [np.random.default_rng(i).normal(size=(7, 2)) for i in range(6)]
    wider = [np.column_stack([bag, 1e-200 * bag[:, 0]]) for bag in bags]
    assert np.isfinite(FisherVectorKernel(3, random_state=0).fit_transform(wider)).all()
