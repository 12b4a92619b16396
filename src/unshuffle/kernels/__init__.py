"""Kernels between vectors, texts and sets of points, and operations on Gram matrices."""

from unshuffle._core.distances import median_gamma
from unshuffle.kernels._centering import (
    SpectralPower,
    center,
    spectral_power,
    spectral_power_path,
    unit_norm,
    zero_diagonal,
)
from unshuffle.kernels._geodesic import geodesic_distances, geodesic_kernel, local_kernel
from unshuffle.kernels._gram import (
    chi2_kernel,
    combined_gram,
    gram_matrix,
    laplacian_kernel,
    linear_kernel,
    rbf_kernel,
)
from unshuffle.kernels._low_rank import nystroem_factors, pivoted_cholesky
from unshuffle.kernels._text import text_features, text_kernel
from unshuffle.kernels.sets._bhattacharyya import BhattacharyyaKernel
from unshuffle.kernels.sets._expected_likelihood import ExpectedLikelihoodKernel
from unshuffle.kernels.sets._fisher_vectors import FisherVectorKernel
from unshuffle.kernels.sets._max_map import MaxMapKernel
from unshuffle.kernels.sets._mean_map import MeanMapKernel
from unshuffle.kernels.sets._models.mixtures import Mixture
from unshuffle.kernels.sets._set_kernel import SetKernel
from unshuffle.kernels.sets._set_kernel_sum import SetKernelSum
from unshuffle.kernels.sets._sliced_wasserstein import SlicedWassersteinKernel

__all__ = [
    "BhattacharyyaKernel",
    "ExpectedLikelihoodKernel",
    "FisherVectorKernel",
    "MaxMapKernel",
    "MeanMapKernel",
    "Mixture",
    "SetKernel",
    "SetKernelSum",
    "SlicedWassersteinKernel",
    "SpectralPower",
    "center",
    "chi2_kernel",
    "combined_gram",
    "geodesic_distances",
    "geodesic_kernel",
    "gram_matrix",
    "laplacian_kernel",
    "linear_kernel",
    "local_kernel",
    "median_gamma",
    "nystroem_factors",
    "pivoted_cholesky",
    "rbf_kernel",
    "spectral_power",
    "spectral_power_path",
    "text_features",
    "text_kernel",
    "unit_norm",
    "zero_diagonal",
]
