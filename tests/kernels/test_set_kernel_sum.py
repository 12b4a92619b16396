import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from unshuffle.kernels import MeanMapKernel, SetKernelSum, SlicedWassersteinKernel, center

MEAN, SLICED = MeanMapKernel(gamma=0.1), SlicedWassersteinKernel(10, n_quantiles=16)


def test_each_kernel_is_scaled_by_how_much_sets_differ_in_it(ragged):
    bags, _ = ragged
    both = SetKernelSum([MEAN, SLICED], weights=[1, 3])
    K = both.fit_transform(bags)
    grams = [clone(kernel).fit_transform(bags) for kernel in (MEAN, SLICED)]
    scales = [np.trace(center(gram)) / len(bags) for gram in grams]
    np.testing.assert_allclose(both.scales_, scales)
    np.testing.assert_allclose(K, 0.25 * grams[0] / scales[0] + 0.75 * grams[1] / scales[1])
    assert np.trace(center(K)) / len(bags) == pytest.approx(1.0)


def test_a_kernel_alone_or_twice_is_itself_scaled(ragged):
    bags, _ = ragged
    alone = SetKernelSum([MEAN]).fit_transform(bags)
    twice = SetKernelSum([MEAN, MEAN]).fit_transform(bags)
    np.testing.assert_allclose(alone, twice, rtol=1e-13)
    left_out = SetKernelSum([MEAN, SLICED], weights=[2, 0]).fit_transform(bags)
    np.testing.assert_allclose(alone, left_out, rtol=1e-13)


def test_the_fitted_kernels_can_be_used(ragged):
    bags, _ = ragged
    both = SetKernelSum([("mean", MEAN), ("sliced", SLICED)]).fit(bags)
    assert both.named_kernels_.sliced is both.kernels_[1]
    K = sum(
        kernel.transform(bags[:5]) / scale / 2
        for kernel, scale in zip(both.kernels_, both.scales_, strict=True)
    )
    np.testing.assert_allclose(both.transform(bags[:5]), K)
    assert not hasattr(MEAN, "gamma_")


def test_scales_of_many_sets_do_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    bags = rng.normal(size=(600, 3, 2)) + rng.normal(size=(600, 1, 2))
    one, other = SetKernelSum([MEAN]).fit(bags), SetKernelSum([MEAN]).fit(bags[::-1])
    np.testing.assert_allclose(one.scales_, other.scales_, rtol=1e-13)
    whole = MEAN.gram(bags)
    assert one.scales_[0] == pytest.approx(np.trace(center(whole)) / 600, rel=0.05)


def test_names_reach_the_parameters_of_kernels():
    both = SetKernelSum([("mean", clone(MEAN)), ("sliced", clone(SLICED))])
    assert both.get_params()["mean__gamma"] == 0.1
    both.set_params(mean__gamma=0.7, sliced=MeanMapKernel(gamma=2.0), weights=[1, 2])
    assert both.kernels[0][1].gamma == 0.7
    assert both.get_params()["sliced__gamma"] == 2.0
    assert both.weights == [1, 2]


def test_kernels_without_names_are_called_by_their_class():
    three = SetKernelSum([clone(MEAN), clone(SLICED), clone(MEAN)])
    names = {name.split("__")[0] for name in three.get_params() if "__" in name}
    assert names == {"meanmapkernel-1", "slicedwassersteinkernel", "meanmapkernel-2"}
    three.set_params(**{"meanmapkernel-2__gamma": 5.0, "meanmapkernel-1": SLICED})
    assert three.get_params()["meanmapkernel-2"].gamma == 5.0
    assert three.get_params()["meanmapkernel-1"] is SLICED
    assert clone(three).get_params()["meanmapkernel-2__gamma"] == 5.0


def test_a_grid_search_tunes_kernels_and_weights(ragged):
    bags, labels = ragged
    both = SetKernelSum([("mean", MEAN), ("sliced", SLICED)])
    model = Pipeline([("sets", both), ("svc", SVC(C=10, kernel="precomputed"))])
    grid = {"sets__mean__gamma": [0.01, 1.0], "sets__weights": [[1, 0], [1, 1]]}
    search = GridSearchCV(model, grid, cv=3).fit(bags, labels)
    assert search.best_score_ >= 0.9
    assert set(search.cv_results_["param_sets__mean__gamma"]) == {0.01, 1.0}


def test_a_sum_of_sums_is_a_sum(ragged):
    bags, _ = ragged
    inner = SetKernelSum([MEAN, SLICED])
    np.testing.assert_allclose(
        SetKernelSum([inner]).fit_transform(bags), inner.fit_transform(bags)
    )


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([], ValueError, "`kernels` is empty"),
        ([MEAN, "rbf"], TypeError, "Entry 1 of `kernels` is 'rbf'"),
        ([("a", MEAN), SLICED], ValueError, "mixes set kernels and"),
        ([("a", MEAN), ("a", SLICED)], ValueError, "holds the name 'a' 2 times"),
        ([("a__b", MEAN)], ValueError, "'a__b' cannot name a kernel"),
        ([("weights", MEAN)], ValueError, "'weights' cannot name a kernel"),
        ("rbf", ValueError, "`kernels` must be"),
    ],
)
def test_kernels_that_cannot_be_summed_are_refused(kernels, error, message):
    with pytest.raises(error, match=message):
        SetKernelSum(kernels).fit(np.random.default_rng(0).normal(size=(4, 3, 2)))


def test_kernels_that_cannot_be_scaled_are_refused():
    with pytest.raises(ValueError, match="X holds 1 set"):
        SetKernelSum([MEAN]).fit([[[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(ValueError, match="All 2 sets are the same to the kernel 'mean'"):
        SetKernelSum([("mean", MEAN)]).fit([[[0.0, 1.0]], [[0.0, 1.0]]])
    with pytest.raises(ValueError, match="Kernel weights have shape"):
        SetKernelSum([MEAN], weights=[1, 2]).fit([[[0.0, 1.0]], [[0.0, 2.0]]])


def test_weights_that_are_not_numbers_are_refused():
    bags = np.random.default_rng(0).normal(size=(4, 5, 2))
    with pytest.raises(ValueError, match="Kernel weights must be numbers"):
        SetKernelSum([MeanMapKernel()], weights=["much"]).fit(bags)
