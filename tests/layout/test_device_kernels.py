"""Triton kernels of layouts against plain PyTorch.

Run as a script, it prints a line for each comparison that agrees; on a machine without a GPU, set
TRITON_INTERPRET=1. The test runs it in a process of its own, since Triton decides when it is
imported whether to interpret kernels.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from unshuffle.layout._gpu import plain
from unshuffle.layout._gpu.groups import draw_groups

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.slow
def test_triton_kernels_do_what_plain_pytorch_does():
    environment = dict(os.environ)
    if DEVICE == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "averages agree",
        "exchanges with 3 features agree",
        "exchanges with 5 features agree",
    ]


def random_board(rng, n_planes, size, n_empty):
    n_cells = size[0] * size[1]
    items = rng.permutation(n_cells).astype(np.int32)
    items[items >= n_cells - n_empty] = -1
    values = rng.normal(size=(n_planes, n_cells)).astype(np.float32) * (items >= 0)
    return (torch.as_tensor(each, device=DEVICE) for each in (values.astype(np.float32), items))


def compare_averages(rng):
    from unshuffle.layout._gpu import triton_kernels as kernels

    for size in [(20, 13), (1, 40), (33, 1), (48, 64)]:
        for bandwidth in (0.8, 3.0, 9.7, 24.0):
            for wrap in (False, True):
                planes = torch.as_tensor(rng.normal(size=(2, *size)), device=DEVICE).float()
                found, expected = (
                    each.average(planes, bandwidth, wrap=wrap) for each in (kernels, plain)
                )
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    print("averages agree")


def compare_exchanges(rng, n_planes, n_group):
    from unshuffle.layout._gpu import triton_kernels as kernels

    for size in [(20, 13), (1, 40), (33, 1)]:
        for n_empty in (0, 5):
            for wrap in (False, True):
                values, items = random_board(rng, n_planes, size, n_empty)
                field = plain.average(values.reshape(-1, *size), 2.0, wrap=wrap)
                field = field.reshape(n_planes, -1)
                field[0, torch.as_tensor([3, 17], device=DEVICE)] = torch.nan
                step = int(rng.integers(1, 4))
                scale, other = (
                    each.typical(values, items, field, size, step) for each in (kernels, plain)
                )
                torch.testing.assert_close(scale, other, rtol=1e-4, atol=1e-6)
                groups = draw_groups(
                    size, n_group, np.full(2, 2.0), np.full(2, 0.1), wrap=wrap, own=n_empty == 0,
                    rng=rng, device=DEVICE,
                )  # fmt: skip
                boards = [(values.clone(), items.clone()) for _ in range(2)]
                for (z, held), each in zip(boards, (kernels, plain), strict=True):
                    for number in range(2):
                        each.exchange(z, held, field, scale, groups, number, has_empty=n_empty > 0)
                assert torch.equal(boards[0][1], boards[1][1]), (size, n_empty, wrap)
                assert torch.equal(boards[0][0], boards[1][0])
                assert not torch.equal(boards[0][1], items)
                assert torch.equal(boards[0][1][[3, 17]], items[[3, 17]])
                assert torch.equal(boards[0][1].sort()[0], items.sort()[0])
    print(f"exchanges with {n_planes} features agree")


if __name__ == "__main__":
    compare_averages(np.random.default_rng(0))
    compare_exchanges(np.random.default_rng(1), 3, 16)
    compare_exchanges(np.random.default_rng(2), 5, 8)
