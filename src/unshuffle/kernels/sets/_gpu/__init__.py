"""Kernels between sets on a GPU."""
