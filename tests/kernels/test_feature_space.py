import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from unshuffle.kernels import BhattacharyyaKernel, ExpectedLikelihoodKernel
from unshuffle.kernels.sets._models.feature_space import span


@pytest.fixture(scope="module")
def standard():
    """Sets of three columns which, over all points, have mean 0 and variance 1."""
    rng = np.random.default_rng(0)
    bags = [
        rng.normal(size=(rng.integers(20, 50), 3)) @ rng.normal(size=(3, 3)) + rng.normal(size=3)
        for _ in range(25)
    ]
    points = np.concatenate(bags)
    return [(bag - points.mean(axis=0)) / points.std(axis=0) for bag in bags]


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    return [rng.normal(size=(n, 2)) + 0.5 * rng.normal(size=2) for n in (6, 7, 8, 9, 10)]


def by_gram_blocks(a, b, gamma, eta, *, affinity=False):
    """Logarithm of the product of two Gaussians in feature space, from Gram matrices alone."""
    points = np.concatenate([a, b])
    G = rbf_kernel(points, gamma=gamma)
    n, m = len(a), len(b)
    spread = np.zeros((n + m, n + m))
    spread[:n, :n] = (np.eye(n) - 1 / n) / np.sqrt(n)
    spread[n:, n:] = (np.eye(m) - 1 / m) / np.sqrt(m)
    gap = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    gap *= np.sqrt(0.5) if affinity else 1.0
    T = spread.T @ G @ spread
    v = spread.T @ G @ gap
    eye = np.eye(n + m)
    log = -0.5 * np.linalg.slogdet(eye + T / (2 * eta))[1]
    log -= (gap @ G @ gap - v @ np.linalg.solve(2 * eta * eye + T, v)) / (4 * eta)
    if affinity:
        for side in (slice(0, n), slice(n, n + m)):
            log += 0.25 * np.linalg.slogdet(eye[side, side] + T[side, side] / eta)[1]
    return log


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("n_components", "kind"), [(1, "full"), (3, "full"), (3, "tied")])
def test_the_linear_kernel_gives_what_input_space_gives(standard, n_components, kind, normalize):
    own = ExpectedLikelihoodKernel(
        n_components, kind, normalize, regularization=0.06, random_state=0
    )
    K = own.fit_transform(standard)
    # The variance of three standard columns is 3.
    feature = ExpectedLikelihoodKernel(
        n_components, kind, normalize, "linear", eta=0.02, random_state=0
    )
    found = feature.fit_transform(standard)
    assert feature.eta_ == pytest.approx(0.06)
    np.testing.assert_allclose(found, K, rtol=1e-9, atol=1e-10 * K.max())


def test_affinities_of_the_linear_kernel_are_those_of_input_space(standard):
    K = BhattacharyyaKernel(regularization=0.06).fit_transform(standard)
    found = BhattacharyyaKernel(base_kernel="linear", eta=0.02).fit_transform(standard)
    np.testing.assert_allclose(found, K, atol=1e-10)


def test_without_a_floor_the_linear_kernel_has_the_covariances_of_the_sets(standard):
    a, b = standard[:2]
    C = np.cov(a.T, bias=True) + np.cov(b.T, bias=True)
    gap = a.mean(axis=0) - b.mean(axis=0)
    expected = np.exp(-gap @ np.linalg.solve(C, gap) / 2) / np.sqrt(np.linalg.det(2 * np.pi * C))
    errors = []
    for eta in (1e-2, 1e-4, 1e-6):
        kernel = ExpectedLikelihoodKernel(
            1, normalize=False, base_kernel="linear", eta=eta, random_state=0
        )
        errors.append(abs(kernel.fit(standard).gram([a], [b])[0, 0] / expected - 1))
    assert errors[0] > 50 * errors[1] > 2500 * errors[2]
    assert errors[2] < 1e-4


def test_gaussians_in_the_space_of_an_rbf_kernel_need_gram_matrices_only(small):
    for affinity, kernel in (
        (
            False,
            ExpectedLikelihoodKernel(
                1, normalize=False, base_kernel="rbf", gamma=0.3, rank=20, random_state=0
            ),
        ),
        (True, BhattacharyyaKernel(base_kernel="rbf", gamma=0.3, rank=20)),
    ):
        found = np.log(kernel.fit(small).gram(small))
        for i, a in enumerate(small):
            for j, b in enumerate(small):
                expected = by_gram_blocks(a, b, 0.3, kernel.eta_, affinity=affinity)
                assert found[i, j] == pytest.approx(expected, abs=1e-8)


def test_a_polynomial_kernel_is_the_linear_one_of_its_monomials():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(30, 2)) + rng.normal(size=2) for _ in range(8)]

    def monomials(bag):
        x, y = bag.T
        root = np.sqrt(2)
        return np.stack([x * x, y * y, root * x * y, root * x, root * y], axis=1)

    K = ExpectedLikelihoodKernel(1, base_kernel="poly", gamma=1.0, random_state=0).fit_transform(
        bags
    )
    linear = ExpectedLikelihoodKernel(1, base_kernel="linear", random_state=0)
    explicit = linear.fit_transform([monomials(bag) for bag in bags])
    np.testing.assert_allclose(K, explicit, atol=1e-8)


def test_single_points_compare_by_their_distance_in_feature_space():
    X = np.random.default_rng(0).normal(size=(12, 2))
    kernel = ExpectedLikelihoodKernel(1, base_kernel="rbf", gamma=0.5, eta=0.3, random_state=0)
    K = kernel.fit_transform(X)
    squares = 2 - 2 * rbf_kernel(X, gamma=0.5)
    np.testing.assert_allclose(K, np.exp(-squares / (4 * kernel.eta_)), rtol=1e-8)


def test_more_directions_and_landmarks_come_closer(small):
    def found(**how):
        kernel = ExpectedLikelihoodKernel(
            1, base_kernel="rbf", gamma=0.3, eta=0.01, random_state=0, **how
        )
        return kernel.fit_transform(small)

    whole = found(rank=40)
    gaps = [np.abs(found(rank=rank) - whole).max() for rank in (2, 5, 9)]
    assert gaps[0] > gaps[1] > gaps[2]
    gaps = [np.abs(found(rank=40, n_landmarks=n) - whole).max() for n in (5, 15, 30)]
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.filterwarnings("ignore:.*fewer than n_components")
@pytest.mark.parametrize("n_components", [1, 3, "cv"])
@pytest.mark.parametrize("base_kernel", ["rbf", "poly", lambda a, b: np.exp(a @ b.T / 10)])
def test_gram_matrices_are_positive_semi_definite(n_components, base_kernel):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(rng.integers(1, 25), 3)) + rng.normal(size=3) for _ in range(70)]
    kernel = ExpectedLikelihoodKernel(
        n_components,
        base_kernel=base_kernel,
        eta=0.01,
        max_components=3,
        n_landmarks=80,
        random_state=0,
    )
    K = kernel.fit_transform(bags)
    np.testing.assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-10 * values[-1]


@pytest.mark.parametrize("n_components", [1, 2])
def test_gram_matrices_of_written_digits_are_positive_semi_definite(shared_data, n_components):
    images = np.load(shared_data("mnist3000.npz"))["images"][:80]
    bags = [np.argwhere(image > 127) / 28 for image in images]
    kernel = ExpectedLikelihoodKernel(n_components, base_kernel="rbf", gamma=50.0, random_state=0)
    K = kernel.fit_transform(bags)
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-10 * values[-1]
    assert K[np.triu_indices(80, 1)].max() < 1.0


@pytest.mark.parametrize("n_components", [1, 3])
def test_order_and_threads_change_nothing(standard, n_components):
    bags = [np.random.default_rng(0).permutation(bag) for bag in standard]
    K = ExpectedLikelihoodKernel(n_components, base_kernel="rbf", random_state=0).fit_transform(
        standard
    )
    other = ExpectedLikelihoodKernel(
        n_components, base_kernel="rbf", n_jobs=2, random_state=0
    ).fit_transform(bags)
    np.testing.assert_array_equal(K, other)
    np.testing.assert_array_equal(np.diag(K), 1.0)


def test_the_floor_is_relative_to_the_spread_of_the_points(standard):
    kernel = ExpectedLikelihoodKernel(2, base_kernel="linear", eta=0.05, random_state=0)
    K = kernel.fit_transform(standard)
    np.testing.assert_allclose(kernel.fit_transform([1e4 * bag for bag in standard]), K, atol=1e-9)


def test_components_are_the_clusters_that_lie_apart_in_feature_space():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 20
    bags = [a, b, np.concatenate([a, b])]
    how = {"normalize": False, "base_kernel": "rbf", "gamma": 0.1}
    K = ExpectedLikelihoodKernel(1, random_state=0, **how).fit_transform(bags)
    both = ExpectedLikelihoodKernel(2, random_state=0, **how).fit_transform(bags)[2, 2]
    assert both == pytest.approx((K[0, 0] + K[1, 1] + 2 * K[0, 1]) / 4, rel=1e-6)


def test_mixtures_of_a_feature_space_cannot_be_shown(standard):
    kernel = BhattacharyyaKernel(base_kernel="rbf").fit(standard)
    with pytest.raises(ValueError, match="Fit with base_kernel=None to see mixtures"):
        kernel.mixtures(standard)


def test_the_width_of_one_point_must_be_given():
    one = [[[0.0, 1.0]]]
    with pytest.raises(ValueError, match="`gamma` is estimated from distances"):
        BhattacharyyaKernel(base_kernel="rbf").fit(one)
    assert BhattacharyyaKernel(base_kernel="rbf", gamma=1.0).fit_transform(one) == 1.0


@pytest.mark.parametrize("shape", [(5, 20), (20, 5), (7, 7)])
def test_coordinates_keep_all_distances(shape):
    rows = np.random.default_rng(0).normal(size=shape)
    rows -= rows.mean(axis=0)
    coordinates, basis = span(rows, 1e-12)
    assert coordinates.shape[1] == min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(coordinates @ basis, rows, atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
    assert (np.diff((coordinates**2).sum(axis=0)) <= 1e-12).all()


def root_of(w):
    """R with X R R' X' the covariance of the columns of X by weights w."""
    return (np.eye(len(w)) - np.outer(w, np.ones(len(w)))) * np.sqrt(w)


def test_the_printed_determinant_is_the_reciprocal():
    rng = np.random.default_rng(0)
    X, R = rng.normal(size=(7, 3)), rng.normal(size=(3, 3))
    G = X.T @ X
    values = np.linalg.eigvalsh(X @ R @ R.T @ X.T)[-3:]  # the others are zero
    assert np.prod(values) == pytest.approx(np.linalg.det(R.T @ G @ R))
    printed = np.linalg.inv(R.T @ G)  # R~ of Lemma 1
    assert np.linalg.det(printed.T @ G @ printed) == pytest.approx(1 / np.prod(values))


def test_without_a_floor_distances_depend_on_weights_alone():
    rng = np.random.default_rng(0)
    w = rng.dirichlet(np.ones(6))
    R = root_of(w)
    np.testing.assert_allclose(np.ones(6) @ R, 0.0, atol=1e-15)  # so eq. (16) is singular
    for points in rng.normal(size=(2, 6, 2)):
        G = rbf_kernel(points, gamma=1.0)
        inverse = np.linalg.pinv(R.T @ G @ R, rcond=1e-10)
        v = R.T @ G @ (np.eye(6) - w[:, None])
        np.testing.assert_allclose(np.sum((inverse @ v) ** 2, axis=0), 1 / w - 1, rtol=1e-6)


def test_the_printed_kernel_in_feature_space_exceeds_one():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2))

    def log_product(scale, first, second):  # eq. (18), one Gaussian per set
        values, vectors = np.linalg.eigh(scale * rbf_kernel(points, gamma=1.0))
        features = vectors * np.sqrt(values)
        sides = [features[first], features[second]]

        def pseudo(C):
            values, vectors = np.linalg.eigh(C)
            kept = values > 1e-9 * values.max()
            inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
            return inverse, np.log(values[kept]).sum()

        inverses = [pseudo(np.cov(each.T, bias=True)) for each in sides]
        means = [each.mean(axis=0) for each in sides]
        joint, log_joint = pseudo(inverses[0][0] + inverses[1][0])
        mean = sum(P @ m for (P, _), m in zip(inverses, means, strict=True))
        log = -log_joint + mean @ joint @ mean
        for (P, log_own), m in zip(inverses, means, strict=True):
            log -= log_own + m @ P @ m
        return log / 2

    one, other = slice(0, 6), slice(6, 12)
    found = []
    for scale in (1.0, 10.0):
        own = (log_product(scale, one, one) + log_product(scale, other, other)) / 2
        found.append(log_product(scale, one, other) - own)
    # ranks are 5, 5 and 10: the normalized similarity grows with scale^(5/2)
    assert found[1] - found[0] == pytest.approx(2.5 * np.log(10.0), abs=1e-4)
    assert found[1] > 0
