"""What kernels between the Gaussians or mixtures of sets share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import Bags
from unshuffle._parameters import check_memory
from unshuffle.kernels._checks import (
    check_covariance_in_features,
    check_input_space,
    check_likelihood_range,
    check_log_lengths,
    check_log_products,
)
from unshuffle.kernels._feature_mixtures import FeatureMixtures
from unshuffle.kernels._feature_space import FeatureSpace
from unshuffle.kernels._input_space import InputSpace
from unshuffle.kernels._mixtures import N_TRIALS, Climb, Mixture, Mixtures
from unshuffle.kernels._set_kernel import SetKernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Densities:
    """Densities of sets, and by what their products are divided.

    Attributes
    ----------
    mixtures : Mixtures or FeatureMixtures
        The densities.
    lengths : ndarray of shape (n_sets,)
        Logarithms; zeros where nothing is divided.
    """

    mixtures: Mixtures | FeatureMixtures
    lengths: Array

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> "Densities":
        """Densities of the sets from `start` up to `stop`."""
        return Densities(self.mixtures.part(start, stop), self.lengths[start:stop])


class GaussianSetKernel(SetKernel):
    """Compares sets by Gaussians or mixtures of these, in input space or that of a kernel.

    A subclass says by `_climb` how mixtures are fitted and by `_densities` what is
    multiplied.
    """

    base_kernel: Any
    covariance_type: str
    eta: float
    gamma: float | None
    degree: int
    rank: int
    n_landmarks: int
    regularization: float

    @abstractmethod
    def _climb(self, floor: float) -> Climb:
        """How mixtures are fitted, given what is added to all variances."""

    @abstractmethod
    def _densities(self, fits: Any) -> Densities:
        """What is multiplied."""

    def mixtures(self, bags: Any) -> list[Mixture]:
        """Density that describes each set, in the space and units of the points.

        Parameters
        ----------
        bags : what `fit` takes
            Fitted sets or new ones; a single one as [bag].

        Returns
        -------
        mixtures : list of Mixture
            With `weights`, `means` and `covariances`; for kernels with base_kernel=None.
        """
        check_is_fitted(self, "_fitted_bags")
        check_input_space(self.base_kernel)
        space: Any = self._space
        given = self._bags_like_fitted(bags).sorted()
        return list(space.mixtures(space.fits(given, self._settled_climb, n_jobs=self.n_jobs)))

    def _settle(self, bags: Bags) -> None:
        check_covariance_in_features(self.base_kernel, self.covariance_type)
        self._space: InputSpace | FeatureSpace
        if self.base_kernel is None:
            self._space, floor = InputSpace.of(bags.points), self.regularization
        else:
            self._space = FeatureSpace.of(
                bags.points,
                self.base_kernel,
                gamma=self.gamma,
                degree=int(self.degree),
                eta=self.eta,
                rank=int(self.rank),
                n_landmarks=int(self.n_landmarks),
            )
            floor = self.eta_ = self._space.eta
            self.gamma_ = self._space.gamma
        self._settled_climb = self._climb(floor)

    def _summarize(self, bags: Bags) -> Densities:
        return self._densities(self._space.fits(bags, self._settled_climb, n_jobs=self.n_jobs))

    def _block(self, a: Densities, b: Densities | None) -> Array:
        own: Any = a.mixtures
        logs = own.log_products(None if b is None else b.mixtures)
        check_log_products(logs)
        # The sum of both lengths is the same in either order, so symmetry stays exact.
        logs -= np.add.outer(a.lengths, (a if b is None else b).lengths)
        if b is None and a.lengths.any():
            # Products of matrices round differently for one set and for many.
            np.fill_diagonal(logs, 0.0)
        check_likelihood_range(logs)
        return np.asarray(np.exp(logs))


def normalized(mixtures: Mixtures | FeatureMixtures) -> Densities:
    """Densities whose products are divided so that each has 1 with itself."""
    own = np.array(
        [mixtures.part(i, i + 1).log_products(None)[0, 0] for i in range(len(mixtures))]
    )
    check_log_products(own)
    check_log_lengths(own)
    return Densities(mixtures, 0.5 * own)


def starting_draws(random_state: Any, n_init: int, n_components: int) -> Array:
    """Numbers from 0 to 1 that choose where mixtures start."""
    check_memory(
        8 * n_init * N_TRIALS * n_components,
        what=f"Starting {n_init:,} times with {n_components:,} components",
        instead="Pass a smaller `n_init` or `n_components`.",
    )
    random = check_random_state(random_state)
    return np.asarray(random.random_sample((n_init, N_TRIALS, n_components)))
