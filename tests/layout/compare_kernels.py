"""Compares the Triton kernels of layouts with plain PyTorch; run by `test_device_kernels`.

Prints one line for each comparison that agrees. On a machine without a GPU, set
TRITON_INTERPRET=1.
"""

import numpy as np
import torch

from unshuffle.layout import _device_kernels as kernels
from unshuffle.layout import _device_plain as plain
from unshuffle.layout._device_groups import draw_groups

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_board(rng, n_planes, size, n_empty):
    n_cells = size[0] * size[1]
    items = rng.permutation(n_cells).astype(np.int32)
    items[items >= n_cells - n_empty] = -1
    values = rng.normal(size=(n_planes, n_cells)).astype(np.float32) * (items >= 0)
    return (torch.as_tensor(each, device=DEVICE) for each in (values.astype(np.float32), items))


def compare_averages(rng):
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
