"""What every room builds on: checked arguments, arrays, sets, grids, distances, kernels."""
