import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle.datasets import digit_sets, mixture_sets
from unshuffle.kernels import ExpectedLikelihoodKernel


def density(mixture, at):
    """Density of a mixture at points, by its definition."""
    total = np.zeros(len(at))
    for weight, mean, covariance in zip(*mixture, strict=True):
        gaps = at - mean
        forms = np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(covariance), gaps)
        total += weight * np.exp(-forms / 2) / np.sqrt(np.linalg.det(2 * np.pi * covariance))
    return total


def grid(d, reach, step):
    axis = np.arange(-reach, reach, step)
    return np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d), step**d


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(("d", "step"), [(1, 0.01), (2, 0.08)])
def test_products_are_integrals(kind, d, step):
    rng = np.random.default_rng(d)
    bags = [rng.normal(size=(30, d)) @ rng.normal(size=(d, d)) for _ in range(4)]
    kernel = ExpectedLikelihoodKernel(
        3, kind, normalize=False, regularization=0.05, random_state=0
    )
    K = kernel.fit_transform(bags)
    at, volume = grid(d, 15.0, step)
    values = np.array([density(mixture, at) for mixture in kernel.mixtures(bags)])
    np.testing.assert_allclose(values.sum(axis=1) * volume, 1.0, rtol=1e-6)
    np.testing.assert_allclose(K, values @ values.T * volume, rtol=1e-6)


def test_normalizing_divides_by_the_roots_of_the_diagonal():
    bags = mixture_sets(12, n_features=2).sets
    plain = ExpectedLikelihoodKernel(2, normalize=False, random_state=0).fit_transform(bags)
    K = ExpectedLikelihoodKernel(2, random_state=0).fit_transform(bags)
    roots = np.sqrt(np.diag(plain))
    np.testing.assert_allclose(K, plain / np.outer(roots, roots), rtol=1e-12)
    np.testing.assert_array_equal(np.diag(K), 1.0)


def test_one_gaussian_has_the_closed_form():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)) + 1
    kernel = ExpectedLikelihoodKernel(1, normalize=False, random_state=0)
    found = kernel.fit([a, b]).gram([a], [b])[0, 0]
    (_, mean_a, C_a), (_, mean_b, C_b) = kernel.mixtures([a, b])
    np.testing.assert_allclose(mean_a[0], a.mean(axis=0))
    floor = 0.02 * np.diag(np.var(np.concatenate([a, b]), axis=0))
    np.testing.assert_allclose(C_b[0], np.cov(b.T, bias=True) + floor)
    C, gap = C_a[0] + C_b[0], (mean_a - mean_b)[0]
    form = gap @ np.linalg.solve(C, gap)
    assert found == pytest.approx(np.exp(-form / 2) / np.sqrt(np.linalg.det(2 * np.pi * C)))


def test_units_of_columns_change_nothing():
    bags = mixture_sets(10, n_features=3).sets
    K = ExpectedLikelihoodKernel(3, random_state=0).fit_transform(bags)
    other = [bag * [1e6, 1.0, 1e-6] + [5.0, -3.0, 1.0] for bag in bags]
    np.testing.assert_allclose(
        ExpectedLikelihoodKernel(3, random_state=0).fit_transform(other), K, atol=1e-6
    )


def test_far_sets_keep_their_similarity_to_themselves():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 1e5]
    bags += [bag + 1e-3 for bag in bags]
    K = ExpectedLikelihoodKernel(2, regularization=1e-9, random_state=0).fit_transform(bags)
    np.testing.assert_allclose(K, np.tile(np.eye(2), (2, 2)), atol=1e-3)


def test_many_columns_do_not_overflow_once_normalized():
    rng = np.random.default_rng(0)
    bags = [1e-8 * rng.normal(size=(10, 60)) for _ in range(5)]
    K = ExpectedLikelihoodKernel(2, random_state=0).fit_transform(bags)
    assert np.isfinite(K).all()
    assert (np.diag(K) == 1).all()
    with pytest.raises(ValueError, match=r"too large for a float: .* Use normalize=True"):
        ExpectedLikelihoodKernel(2, normalize=False, random_state=0).fit(bags).gram(bags)


@pytest.mark.filterwarnings("ignore:.*fewer than n_components")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_gram_matrices_are_positive_semi_definite(kind):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(rng.integers(1, 30), 4)) + rng.normal(size=4) for _ in range(150)]
    K = ExpectedLikelihoodKernel(3, kind, random_state=0).fit_transform(bags)
    np.testing.assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-12 * values[-1]


def test_sets_with_few_points_get_fewer_components_with_one_warning():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(20, 2)), np.repeat(rng.normal(size=(3, 2)), 4, axis=0), [[0.0, 1.0]]]
    kernel = ExpectedLikelihoodKernel(5, random_state=0)
    with pytest.warns(UserWarning, match="2 of 3 sets have fewer than n_components=5") as warned:
        K = kernel.fit_transform(bags)
    assert len(warned) == 1
    assert "the smallest 1" in str(warned[0].message)
    assert np.isfinite(K).all()
    with pytest.warns(UserWarning, match="fewer than"):
        assert [len(each.weights) for each in kernel.mixtures(bags)] == [5, 3, 1]


def test_sets_of_one_point_compare_as_by_a_gaussian():
    X = np.random.default_rng(0).normal(size=(8, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    K = ExpectedLikelihoodKernel(1, regularization=0.5, random_state=0).fit_transform(X)
    squares = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(K, np.exp(-squares / (4 * 0.5)), rtol=1e-12)


def test_a_floor_that_is_lost_in_rounding_is_told():
    rng = np.random.default_rng(0)
    kernel = ExpectedLikelihoodKernel(1, regularization=1e-10, random_state=0)
    kernel.fit([rng.normal(size=(20, 8)) for _ in range(3)])
    lines = [1e9 * np.outer(rng.normal(size=30), rng.normal(size=8)) for _ in range(8)]
    with pytest.raises(ValueError, match=r"`regularization` .* is too small"):
        kernel.gram(lines)


def test_mixtures_stopped_early_say_so():
    bags = mixture_sets(5).sets
    kernel = ExpectedLikelihoodKernel(5, max_iter=2, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"of 5 sets did not converge in max_iter=2"):
        kernel.fit(bags)
    assert not kernel.converged_
    assert kernel.n_iter_ == 2
    assert ExpectedLikelihoodKernel(5, random_state=0).fit(bags).converged_


def test_a_number_repeats_the_starts_and_none_draws_anew():
    bags = mixture_sets(6).sets

    def gram(random_state):
        kernel = ExpectedLikelihoodKernel(5, n_init=1, random_state=random_state)
        K = kernel.fit_transform(bags)
        np.testing.assert_allclose(kernel.transform(bags), K, atol=1e-12)  # drawn once, in fit
        return K

    first = gram(7)
    np.testing.assert_array_equal(gram(7), first)
    np.testing.assert_array_equal(gram(np.random.RandomState(7)), first)
    assert not np.array_equal(gram(8), first)
    assert not np.array_equal(gram(None), gram(None))


def test_more_components_tell_mixtures_apart_that_one_does_not():
    bags, labels = mixture_sets(240, random_state=0)
    right = []
    for n_components in (1, 5):
        kernel = ExpectedLikelihoodKernel(n_components, random_state=0)
        K = kernel.fit_transform(bags[:160])
        machine = SVC(C=10, kernel="precomputed").fit(K, labels[:160])
        right.append(machine.score(kernel.transform(bags[160:]), labels[160:]))
    assert right[0] < 0.8
    assert right[1] > 0.9


def test_parameters_of_the_kernel_are_found_by_grid_search():
    bags, labels = digit_sets(60)
    model = Pipeline(
        [("sets", ExpectedLikelihoodKernel(random_state=0)), ("svc", SVC(kernel="precomputed"))]
    )
    grid = {"sets__n_components": [1, 3], "sets__regularization": [0.01, 0.1]}
    search = GridSearchCV(model, grid, cv=2).fit(list(bags), labels)
    assert search.best_params_["sets__n_components"] == 3
    assert search.best_score_ > 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "aic"}, "n_components"),
        ({"covariance_type": "round"}, "covariance_type"),
        ({"regularization": 0.0}, "regularization"),
        ({"eta": 0.0}, "eta"),
        ({"base_kernel": "cosine"}, "base_kernel"),
        ({"base_kernel": "rbf", "covariance_type": "diag"}, "which has no axes"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    kernel = clone(ExpectedLikelihoodKernel(random_state=0)).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        kernel.fit(mixture_sets(4).sets)


@pytest.mark.filterwarnings("ignore:.*fewer than n_components")
@parametrize_with_checks(
    [
        ExpectedLikelihoodKernel(random_state=0),
        ExpectedLikelihoodKernel("bic", "diag", False, random_state=0),
        ExpectedLikelihoodKernel(2, "tied", base_kernel="rbf", n_landmarks=40, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
