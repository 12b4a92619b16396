"""Set kernels asked of a GPU: the same results, in the form of the sets, or a clear error."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from unshuffle._run import device as _device
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

KERNELS = [
    ExpectedLikelihoodKernel(3, random_state=0),
    ExpectedLikelihoodKernel(3, "tied", normalize=False, random_state=0),
    ExpectedLikelihoodKernel(2, "diag", max_iter=2, random_state=0),
    ExpectedLikelihoodKernel("bic", "spherical", random_state=0),
    ExpectedLikelihoodKernel("cv", max_components=3, random_state=0),
    BhattacharyyaKernel(),
    BhattacharyyaKernel("diag"),
    MeanMapKernel(),
    MeanMapKernel("linear", outer="rbf", normalize=False),
    MeanMapKernel("poly", degree=3),
    MeanMapKernel(gamma=0.05, outer="rbf"),
    MeanMapKernel(n_features=20, random_state=0),
    SlicedWassersteinKernel(random_state=0),
]


def make_sets(n, width=3, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 30, size=n)
    return [scale * rng.normal(size=(size, width)) + rng.normal(size=width) for size in sizes]


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*args)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_gpu_gives_the_results_of_the_cores(kernel, gpu):
    sets, new = make_sets(20), make_sets(5, seed=1)
    other = clone(kernel).set_params(device=gpu)
    expected = quietly(kernel.fit_transform, sets)
    K = quietly(other.fit_transform, sets)
    assert isinstance(K, np.ndarray)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(K, K.T)
    expected = quietly(kernel.transform, new)
    np.testing.assert_allclose(quietly(other.transform, new), expected, rtol=0, atol=1e-10)
    for Y in (None, new):
        found = quietly(clone(other).gram, sets, Y)
        np.testing.assert_allclose(found, quietly(clone(kernel).gram, sets, Y), rtol=0, atol=1e-10)
    for name in ("n_iter_", "converged_"):
        assert getattr(other, name, None) == getattr(kernel, name, None)


@pytest.mark.parametrize("width", [1, 2, 10])
def test_results_agree_in_any_number_of_columns(width, gpu):
    sets = make_sets(12, width)
    for kernel in (KERNELS[0], KERNELS[7], KERNELS[10], KERNELS[-1]):
        expected = clone(kernel).fit_transform(sets)
        K = clone(kernel).set_params(device=gpu).fit_transform(sets)
        np.testing.assert_allclose(K, expected, rtol=0, atol=1e-9)


def test_new_sets_outside_the_fitted_ones_are_compared_point_by_point(gpu):
    sets = [np.tile(each, (4, 1)) for each in make_sets(30, 2)]
    far = [*make_sets(3, 2, seed=1, scale=9.0), *sets[:3]]
    for outer in ("linear", "rbf"):
        kernel = MeanMapKernel(outer=outer).fit(sets)
        assert kernel._model.features is not None
        assert kernel._describe(kernel._sets_like_fitted(far, None)).outside.any()
        other = MeanMapKernel(outer=outer, device=gpu).fit(sets)
        np.testing.assert_allclose(other.transform(far), kernel.transform(far), atol=1e-12)
        np.testing.assert_allclose(other.gram(far), kernel.gram(far), atol=1e-12)


def test_mixtures_are_those_of_the_cores(gpu):
    sets = make_sets(8)
    sets[3] = np.repeat(sets[3][:2], 5, axis=0)
    kernel = ExpectedLikelihoodKernel(3, random_state=0)
    with pytest.warns(UserWarning, match="1 of 8 sets have fewer than n_components=3 distinct"):
        kernel.fit(sets)
    other = clone(kernel).set_params(device=gpu)
    with pytest.warns(UserWarning, match="1 of 8 sets have fewer than n_components=3 distinct"):
        other.fit(sets)
    for one, two in zip(kernel.mixtures(sets[4:]), other.mixtures(sets[4:]), strict=True):
        orders = [np.argsort(each.means[:, 0]) for each in (one, two)]  # of rounding otherwise
        for expected, found in zip(one, two, strict=True):
            np.testing.assert_allclose(found[orders[1]], expected[orders[0]], atol=1e-10)


def test_mixtures_that_do_not_converge_are_reported(gpu):
    kernel = ExpectedLikelihoodKernel(3, max_iter=1, random_state=0, device=gpu)
    with pytest.warns(ConvergenceWarning, match="of 20 sets did not converge in max_iter=1"):
        kernel.fit(make_sets(20))
    assert not kernel.converged_
    assert kernel.n_iter_ == 1


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[7], KERNELS[-1]], ids=str)
def test_tensors_give_tensors_in_their_precision(kernel, gpu):
    sets = np.random.default_rng(0).normal(size=(12, 9, 3))
    expected = clone(kernel).fit_transform(sets)
    kernel = clone(kernel).set_params(device=gpu)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        whole = torch.as_tensor(sets, dtype=dtype)
        for given in (whole, list(whole)):
            K = kernel.fit_transform(given)
            assert isinstance(K, torch.Tensor)
            assert K.dtype == dtype
            assert K.device == whole.device
            np.testing.assert_allclose(K.numpy(), expected, rtol=0, atol=tolerance)
            assert torch.equal(kernel.transform(given[:4]), kernel.transform(given[:4]))
            assert kernel.transform(given[:4]).shape == (4, 12)
    half = kernel.fit_transform(whole.to(torch.bfloat16))
    assert half.dtype == torch.float32


def test_tensors_on_a_gpu_stay_there(real_gpu):
    sets = torch.randn(30, 12, 4, device=real_gpu)
    for kernel in (KERNELS[0], KERNELS[7], KERNELS[-1]):
        K = clone(kernel).fit_transform(sets)
        assert K.device == sets.device
        again = clone(kernel).fit_transform(sets)
        assert torch.equal(K, again)
        on_cores = clone(kernel).fit_transform(sets.cpu().numpy())
        np.testing.assert_allclose(K.cpu().numpy(), on_cores, rtol=0, atol=1e-4)


def test_the_order_of_points_and_sets_does_not_matter(gpu):
    sets = make_sets(10)
    rng = np.random.default_rng(1)
    order = rng.permutation(10)
    for kernel in (KERNELS[0], KERNELS[7], KERNELS[-1]):
        kernel = clone(kernel).set_params(device=gpu)
        K = kernel.fit_transform(sets)
        mixed = kernel.fit_transform([rng.permutation(sets[i]) for i in order])
        np.testing.assert_allclose(mixed, K[np.ix_(order, order)], rtol=0, atol=1e-9)


def test_sets_are_fitted_and_compared_in_either_place(gpu):
    sets, new = make_sets(10), make_sets(4, seed=1)
    kernel = SlicedWassersteinKernel(random_state=0).fit(sets)
    expected = kernel.transform(new)
    kernel.set_params(device=gpu)
    np.testing.assert_allclose(kernel.transform(new), expected, atol=1e-12)
    kernel.set_params(device=None)
    np.testing.assert_array_equal(kernel.transform(new), expected)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[7], KERNELS[-1]], ids=str)
def test_pickles_hold_no_tensors(kernel, gpu):
    sets = make_sets(10)
    kernel = clone(kernel).set_params(device=gpu).fit(sets)
    text = pickle.dumps(kernel)
    assert b"torch" not in text
    copy = pickle.loads(text)
    assert copy.device == gpu
    np.testing.assert_array_equal(copy.transform(sets[:3]), kernel.transform(sets[:3]))
    copy.set_params(device=None)
    np.testing.assert_allclose(copy.transform(sets[:3]), kernel.transform(sets[:3]), atol=1e-10)
    assert clone(kernel).device == gpu


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:x"])
def test_other_devices_are_refused(name):
    for method in ("fit", "fit_transform", "gram"):
        with pytest.raises(ValueError, match="`device` must be None"):
            getattr(MeanMapKernel(device=name), method)(make_sets(4))


def test_a_device_is_a_name():
    with pytest.raises(ValueError, match="`device` must be"):
        SlicedWassersteinKernel(device=3).fit(make_sets(4))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_never_replaced_by_the_cores():
    with pytest.raises(ValueError, match=r'device="cuda" is missing'):
        ExpectedLikelihoodKernel(device="cuda").fit_transform(make_sets(4))


def test_what_runs_on_the_cores_alone_says_so(gpu):
    sets = make_sets(6)
    fisher = FisherVectorKernel(n_components=2)
    fisher.device = gpu
    with pytest.raises(ValueError, match="FisherVectorKernel runs on the CPU"):
        fisher.fit(sets)
    with pytest.raises(ValueError, match="its kernel 'meanmapkernel' has device=\"cuda\""):
        SetKernelSum([MeanMapKernel(device=gpu)]).fit(sets)
    with pytest.raises(ValueError, match="dask_gram runs on the CPU"):
        MeanMapKernel(device=gpu).dask_gram(sets)
    with pytest.raises(ValueError, match="With a base kernel, mixtures are fitted on the CPU"):
        ExpectedLikelihoodKernel(1, base_kernel="rbf", device=gpu).fit(sets)
    with pytest.raises(ValueError, match="A callable `base_kernel` is called with NumPy arrays"):
        MeanMapKernel(lambda x, y: x @ y.T, device=gpu).fit(sets)


def test_a_matrix_that_does_not_fit_is_refused_first(gpu, monkeypatch):
    monkeypatch.setattr(_device, "free_memory", lambda device: 10**9)
    sets = torch.zeros(20_000, 1, 1)
    message = (
        r"The float32 kernel matrix of 20,000 by 20,000 sets needs 1\.6 GB on .*; 1\.0 GB is free"
    )
    with pytest.raises(MemoryError, match=message):
        MeanMapKernel(device=gpu).fit_transform(sets)


def test_bad_sets_are_named(gpu):
    sets = [torch.as_tensor(each) for each in make_sets(6)]
    kernel = MeanMapKernel(device=gpu)
    sets[4][2, 1] = torch.nan
    with pytest.raises(ValueError, match="bag 4 of X contains NaN"):
        kernel.fit(sets)
    with pytest.raises(ValueError, match="bag 2 of X have 4 columns"):
        kernel.fit([*sets[:2], torch.ones(3, 4)])
    with pytest.raises(ValueError, match="Bag 1 of X is empty"):
        kernel.fit([sets[0], torch.ones(0, 3)])
    kernel.fit(sets[:4])
    with pytest.raises(ValueError, match="X has 2 features"):
        kernel.transform([torch.ones(3, 2)])
    with pytest.raises(ValueError, match="X is 2-D"):
        kernel.transform(torch.ones(3, 3))


def test_densities_too_large_for_a_float_are_refused(gpu):
    tiny = [1e-30 * each for each in make_sets(4)]
    kernel = ExpectedLikelihoodKernel(1, normalize=False, device=gpu)
    with pytest.raises(ValueError, match=r"too large for a torch\.float32"):
        kernel.fit_transform([torch.as_tensor(each, dtype=torch.float32) for each in tiny])
    assert np.isfinite(kernel.fit_transform(tiny)).all()


def test_singular_covariances_are_refused(gpu):
    line = [np.outer(np.arange(9.0) + i, [1.0, 1.0, 1.0]) for i in range(4)]
    line = [each.astype(np.float32) for each in line]
    kernel = ExpectedLikelihoodKernel(1, regularization=1e-10, device=gpu)
    with pytest.raises(ValueError, match="singular"):
        kernel.fit_transform(line)


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_run_without_numba():
    code = """
import sys
sys.modules["numba"] = None
import numpy as np
import torch
from unshuffle._run import device as _device
if not torch.cuda.is_available():
    _device._gpu = lambda torch, name: torch.device("cpu")
from unshuffle.kernels import *
sets = [np.random.default_rng(i).normal(size=(9 + i % 3, 3)) for i in range(9)]
for kernel in (
    ExpectedLikelihoodKernel(3, random_state=0, device="cuda"),
    ExpectedLikelihoodKernel("cv", "diag", max_components=2, random_state=0, device="cuda"),
    BhattacharyyaKernel(device="cuda"),
    MeanMapKernel(device="cuda"),
    SlicedWassersteinKernel(device="cuda"),
):
    K = kernel.fit_transform(sets)
    assert np.allclose(kernel.transform(sets), K)
    if hasattr(kernel, "mixtures"):
        kernel.mixtures(sets)
try:
    ExpectedLikelihoodKernel(3).fit(sets)
except ImportError as error:
    print(error)
"""
    assert "needs numba: pip install numba" in run(code)


def test_triton_gives_the_results_of_pytorch():
    pytest.importorskip("triton", reason="Triton is not installed")
    code = """
import numpy as np
import torch
from unshuffle._run import device as _device
from unshuffle.kernels.sets._gpu import gaussians
from unshuffle.kernels.sets._gpu import mean_map as maps
from unshuffle._core.bags import Bags
from unshuffle._core.kernel_features import PointKernel
from unshuffle.kernels.sets._models.mixtures import Mixtures
from unshuffle.kernels.sets._gpu.tensors import Place

gaussians.TILE, gaussians.LIGHT_TILE = (8, 4, 1), (4, 8, 1)
maps.ROWS, maps.COLUMNS, maps.SETS = 4, 8, 2
rng = np.random.default_rng(0)

def check(function, *args, place):
    found = function(*args, place)
    module = gaussians if function is gaussians.products else maps
    assert module.has_triton(place.device)
    module.has_triton = lambda device: False
    expected = function(*args, place)
    module.has_triton = _device.has_triton
    tolerance = 1e-12 if place.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=0.0)
    if args[-1] is None or args[1] is None:
        assert torch.equal(found, found.T)

def mixtures(n, d, full):
    counts = rng.integers(1, 4, size=n)
    factors = rng.normal(size=(counts.sum(), d, d))
    C = factors @ factors.transpose(0, 2, 1) + 0.1 * np.eye(d)
    rows, columns = np.tril_indices(d) if full else (np.arange(d), np.arange(d))
    logs, means = rng.normal(size=counts.sum()), rng.normal(size=(counts.sum(), d))
    return Mixtures(logs, means, C[:, rows, columns], np.concatenate([[0], np.cumsum(counts)]))

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
for dtype in (torch.float32, torch.float64):
    place = Place(device, dtype)
    for d, full in ((1, True), (3, True), (6, True), (2, False)):
        a, b = mixtures(9, d, full), mixtures(5, d, full)
        check(gaussians.products, a, np.ones(9), None, None, place=place)
        check(gaussians.products, a, np.ones(9), b, np.ones(5), place=place)
    for width, kernel in ((3, "rbf"), (2, "poly"), (18, "rbf")):
        a, b = (
            Bags.of([rng.normal(size=(m, width)) for m in rng.integers(1, 14, size=n)])
            for n in (5, 3)
        )
        similarity = PointKernel(kernel, 0.3, 3)
        check(maps.point_means, a, None, similarity, np.zeros(width), place=place)
        check(maps.point_means, a, b, similarity, np.zeros(width), place=place)
print("equal")
"""
    interpret = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    assert run(code, **interpret) == "equal\n"
