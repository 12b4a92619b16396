"""Areas that run on a GPU, where numba need not be: `python -m benchmarks --gpu`."""
