import subprocess
import sys

import numpy as np
import pytest

from unshuffle._core.parameters import check_parameters
from unshuffle._run.device import find_device, is_tensor, like, to_host

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
HAS_GPU = torch.cuda.is_available()


class Estimator:
    def __init__(self, device):
        self.device = device
        self._constraints = {}


def test_arrays_and_tensors_on_the_cores_stay_with_numpy():
    assert find_device(None, np.ones(3), torch.ones(3), ["text"]) is None
    assert find_device("cpu", torch.ones(3)) is None


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_a_missing_gpu_is_an_error_that_says_what_is_there():
    with pytest.raises(ValueError, match=r'device="cuda" is missing: PyTorch .* finds no GPU'):
        find_device("cuda")


def test_gpus_are_found_by_number(real_gpu):
    assert find_device("cuda") == torch.device("cuda", torch.cuda.current_device())
    assert find_device(None, torch.ones(3, device="cuda:0")) == torch.device("cuda:0")
    with pytest.raises(ValueError, match=r'device="cuda:99" is missing; there is "cuda:0"'):
        find_device("cuda:99")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "mps", "cuda:-1"])
def test_other_devices_are_refused(name):
    with pytest.raises(ValueError, match="`device` must be None"):
        find_device(name)


@pytest.mark.parametrize("value", [3, 1.5, ["cuda"], np.ones(2)])
def test_a_device_is_a_name(value):
    with pytest.raises(ValueError, match="`device` must be"):
        check_parameters(Estimator(value))


def test_tests_work_in_torch_on_the_cores_where_there_is_no_gpu(gpu):
    assert find_device(gpu).type == ("cuda" if HAS_GPU else "cpu")


def test_results_have_the_form_of_what_was_given():
    result = np.arange(3)
    assert like(result, [1, 2]) is result
    given = like(result, torch.ones(2))
    assert is_tensor(given)
    assert given.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(to_host(torch.ones(2, requires_grad=True)), np.ones(2))


def test_without_pytorch_a_device_is_an_error_that_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from unshuffle._run.device import find_device\n"
        "find_device('cuda')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'device="cuda" needs PyTorch: pip install "unshuffle[gpu]"' in done.stderr


def test_without_numba_the_cores_are_an_error_that_says_what_to_install():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np\n"
        "from unshuffle import GridLayout\n"
        "GridLayout().fit(np.random.rand(40, 3))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs numba: pip install numba" in done.stderr
