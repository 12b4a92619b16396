"""BhattacharyyaKernel: sets compared by the overlap of a Gaussian for each."""

from typing import Any, ClassVar

import numpy as np

from unshuffle._bags import Bags
from unshuffle._parameters import Constraints, option
from unshuffle.kernels.sets._expected_likelihood import (
    SPACE_CONSTRAINTS,
    DensityKernel,
    DensityModel,
    density_space,
)
from unshuffle.kernels.sets._mixtures import N_TRIALS, Climb


class BhattacharyyaKernel(DensityKernel):
    """Compare sets by the Bhattacharyya affinity of their Gaussians.

    Each set is described by one Gaussian: the mean and covariance of its points. The affinity of
    two is the integral of the root of the product of their densities, 1 where these agree. In the
    feature space of a base kernel one Gaussian describes much more than an ellipse.

    Parameters
    ----------
    covariance_type : {"full", "diag", "spherical"}, default="full"
        Shape of the Gaussians: any; along the axes; round.
    base_kernel : {"linear", "poly", "rbf"}, callable or None, default=None
        None takes mean and covariance of the points. Otherwise of their images in the feature
        space of this kernel between points ("poly" is (gamma x'y + 1)^degree, "rbf"
        exp(-gamma |x - y|^2); a callable takes two arrays of points and gives a matrix, or two
        points and gives a number, and must be positive definite).
    eta : float, default=0.02
        With a base kernel: variance added in every direction, as a share of the mean variance of
        the fitted points in feature space. Larger sees coarser differences. No value suits all
        data: let cross-validation choose, between .002 and .2 say.
    gamma : float or None, default=None
        Of the base kernel; larger sees finer differences. None is one over the median squared
        distance of points for "rbf", one over the number of features for "poly".
    degree : int, default=2
        Of base_kernel="poly"; larger bends more.
    rank : int, default=12
        With a base kernel: directions of spread kept of each Gaussian. More describe it more
        closely and take longer, by about the square.
    n_landmarks : int, default=300
        With a base kernel other than "linear": fitted points that span the coordinates of feature
        space, chosen greedily. More come closer to the kernel, a narrow one above all, and take
        longer.
    regularization : float, default=0.02
        Without a base kernel: added to the variances of all Gaussians, as a share of the variance
        of each column over all fitted points. Larger blurs sets, which helps small ones.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.

    Attributes
    ----------
    gamma_ : float
        Width or scale of the base kernel, 1 where it has none; with a base kernel only.
    eta_ : float
        Variance added in feature space; with a base kernel only.
    n_features_in_ : int
        Columns of a point.

    See Also
    --------
    ExpectedLikelihoodKernel : Several Gaussians for each set.

    Notes
    -----
    Positive semi-definite, as an inner product of roots of densities; every set has 1 with
    itself. For n sets in d dimensions the Gram matrix takes O(n^2 d^3) time; with a base kernel,
    O(n^2 r^2 D) for rank r and D landmarks, 1.6 seconds for 1000 sets of 72 points, where
    fitting takes 2.

    References
    ----------
    Kondor, Jebara, "A kernel between sets of vectors", International Conference on Machine
    Learning (2003). Lyu, "A kernel between unordered sets of data: the Gaussian mixture
    approach", European Conference on Machine Learning (2005).

    Examples
    --------
    >>> from unshuffle.kernels import BhattacharyyaKernel
    >>> a, b = [[0, 0], [0, 2], [2, 0], [2, 2]], [[0, 1], [0, 3], [2, 1], [2, 3]]
    >>> BhattacharyyaKernel(regularization=1e-6).kernel([a, b]).round(4)
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

    def _build(self, bags: Bags) -> DensityModel:
        space, floor = density_space(self, bags)
        # One Gaussian is found in one round: it needs no start.
        climb = Climb(1, 1, self.covariance_type, floor, 1, 0.0, np.zeros((1, N_TRIALS, 1)))
        return DensityModel(space, climb, root=True, normalize=True)
