"""Kernels between sets of points; import them from `unshuffle.kernels`."""
