"""BhattacharyyaKernel: sets compared by the overlap of one Gaussian each."""

from typing import Any, ClassVar

import numpy as np

from unshuffle._core.bags import Bags
from unshuffle._core.parameters import Constraints, option
from unshuffle.kernels.sets._expected_likelihood import (
    SPACE_CONSTRAINTS,
    DensityKernel,
    DensityModel,
    density_space,
)
from unshuffle.kernels.sets._models.mixtures import N_TRIALS, FitSettings


class BhattacharyyaKernel(DensityKernel):
    """Compare sets by the Bhattacharyya affinity of their Gaussians.

    Each set is described by one Gaussian: the mean and covariance of its points. The affinity of
    two Gaussians is the integral of the root of the product of their densities, 1 if they are
    equal. In the feature space of a base kernel, one Gaussian describes more than an ellipse.

    Parameters
    ----------
    covariance_type : {"full", "diag", "spherical"}, default="full"
        Shape of the Gaussians: any; axis-aligned; round.
    base_kernel : {"linear", "poly", "rbf"}, callable or None, default=None
        Kernel between points in whose feature space means and covariances are taken; None takes
        those of the points. See `ExpectedLikelihoodKernel`.
    eta, gamma, degree, rank, n_landmarks, regularization
        As in `ExpectedLikelihoodKernel`.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.
    device : "cuda", "cuda:1", torch.device or None, default=None
        GPU to work on. None stays where the sets are: on the CPU, or on the GPU that tensors
        are on. See `SetKernel`.

    Attributes
    ----------
    gamma_ : float
        Value used for `gamma`, 1 for a base kernel without one; only with a base kernel.
    eta_ : float
        Variance added in feature space; only with a base kernel.
    n_features_in_ : int
        Columns of a point.

    See Also
    --------
    ExpectedLikelihoodKernel : Several Gaussians for each set.

    Notes
    -----
    Positive semi-definite, as an inner product of roots of densities; every set has similarity 1
    with itself. The Gram matrix of n sets in d dimensions takes O(n^2 d^3) time; with a base
    kernel, O(n^2 r^2 D) for rank r and D landmarks.

    References
    ----------
    Kondor, Jebara, "A kernel between sets of vectors", International Conference on Machine
    Learning (2003). Lyu, "A kernel between unordered sets of data: the Gaussian mixture
    approach", European Conference on Machine Learning (2005).

    Examples
    --------
    >>> from unshuffle.kernels import BhattacharyyaKernel
    >>> a, b = [[0, 0], [0, 2], [2, 0], [2, 2]], [[0, 1], [0, 3], [2, 1], [2, 3]]
    >>> BhattacharyyaKernel(regularization=1e-6).gram([a, b]).round(4)
    array([[1.    , 0.8825],
           [0.8825, 1.    ]])
    """

    _constraints: ClassVar[Constraints] = {
        "covariance_type": [option("full", "diag", "spherical")],
        **SPACE_CONSTRAINTS,
    }

    def __init__(
        self,
        covariance_type: str = "full",
        base_kernel: Any = None,
        eta: float = 0.02,
        *,
        gamma: float | None = None,
        degree: int = 2,
        rank: int = 12,
        n_landmarks: int = 300,
        regularization: float = 0.02,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.covariance_type = covariance_type
        self.base_kernel = base_kernel
        self.eta = eta
        self.gamma = gamma
        self.degree = degree
        self.rank = rank
        self.n_landmarks = n_landmarks
        self.regularization = regularization
        self.n_jobs = n_jobs
        self.device = device

    def _build_model(self, sets: Bags) -> DensityModel:
        space, floor = density_space(self, sets)
        # One Gaussian is found in one round, whatever the start.
        draws = np.zeros((1, N_TRIALS, 1))
        settings = FitSettings(1, 1, self.covariance_type, floor, 1, 0.0, draws)
        return DensityModel(space, settings, root=True, normalize=True)
