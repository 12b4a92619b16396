"""Kernels between sets of points; import them from `unshuffle.kernels`."""

from unshuffle.kernels.sets._bhattacharyya import BhattacharyyaKernel
from unshuffle.kernels.sets._expected_likelihood import ExpectedLikelihoodKernel
from unshuffle.kernels.sets._fisher_vectors import FisherVectorKernel
from unshuffle.kernels.sets._mean_map import MeanMapKernel
from unshuffle.kernels.sets._set_kernel_sum import SetKernelSum
from unshuffle.kernels.sets._sliced_wasserstein import SlicedWassersteinKernel

__all__ = [
    "BhattacharyyaKernel",
    "ExpectedLikelihoodKernel",
    "FisherVectorKernel",
    "MeanMapKernel",
    "SetKernelSum",
    "SlicedWassersteinKernel",
]
