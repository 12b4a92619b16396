"""Support vector machines on sets whose points stand in slots, by the exact kernel."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from unshuffle._middle import middle
from unshuffle._parallel import map_parallel, wait_for
from unshuffle._parameters import check_kernel_memory
from unshuffle._points import PointKernel
from unshuffle.svm._checks import raise_machine_failed, warn_machine_unsettled

Array = NDArray[np.float64]

# Rows of a Gram matrix that one thread takes at a time; its temporaries stay in the cache.
ROWS = 64
# Squared distance of the origin from all points, over their variance, that counts as far.
FAR = 100.0
# Steps of the solver, many more than it takes where kernel values are not huge; and of many sets,
# whose steps take longer, steps times sets. libsvm cannot be stopped before that.
MOST_STEPS = 10_000_000
MOST_WORK = 20_000_000_000


def slot_gram(
    kernel: PointKernel | None, a: Array, b: Array, *, n_jobs: int | None = None
) -> Array:
    """Sum over slots of the kernel between the points that stand there.

    Parameters
    ----------
    kernel : PointKernel or None
        Similarity of points; None is the inner product.
    a, b : ndarray of shape (n_a, n_slots, n_features) and (n_b, n_slots, n_features)
        Ordered sets.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.

    Returns
    -------
    K : ndarray of shape (n_a, n_b)
    """
    check_kernel_memory(len(a), len(b), n_copies=2)
    K = np.zeros((len(a), len(b)))

    def fill(start: int) -> None:
        rows = slice(start, start + ROWS)
        if kernel is None:
            K[rows] = a[rows].reshape(len(a[rows]), -1) @ b.reshape(len(b), -1).T
            return
        for slot in range(a.shape[1]):
            K[rows] += kernel(a[rows, slot], b[:, slot])

    map_parallel(fill, range(0, len(a), ROWS), n_jobs=n_jobs)
    return K


@dataclass(frozen=True)
class Machine:
    """A support vector machine on ordered sets.

    Attributes
    ----------
    svc : SVC
        Fitted to the Gram matrix of all sets it learnt from.
    sets : ndarray of shape (n_support, n_slots, n_features)
        Those of them that support it, about the centre.
    center : ndarray of shape (n_features,)
        Taken from all points of the inner product, where the origin is far off: zeros else.
    n_learnt : int
        How many there were.
    kernel : PointKernel or None
        Similarity of points.
    margins : ndarray of shape (n_pairs_of_classes,)
        Half the gap between each two classes.
    """

    svc: SVC
    sets: Array
    center: Array
    n_learnt: int
    kernel: PointKernel | None
    margins: Array

    @classmethod
    def trained(
        cls,
        sets: Array,
        y: NDArray[Any],
        kernel: PointKernel | None,
        *,
        C: float,
        weights: Array | None,
        n_jobs: int | None,
    ) -> "Machine":
        """Machine for ordered sets and their labels; `weights` multiply C, one for each set."""
        center = far_center(sets) if kernel is None else np.zeros(sets.shape[2])
        sets = sets - center
        K = slot_gram(kernel, sets, sets, n_jobs=n_jobs)
        # a seed that nothing depends on: without one it would draw from the user's own generator
        most_steps = min(MOST_STEPS, MOST_WORK // len(sets))
        svc = SVC(C=C, kernel="precomputed", max_iter=most_steps, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said in other words below
            try:
                wait_for(svc.fit, K, y, weights)
            except ValueError as error:
                raise_machine_failed(error, K)
        warn_machine_unsettled(bool(svc.fit_status_ == 0), K, C)
        return cls(svc, sets[svc.support_], center, len(sets), kernel, _margins(svc, K))

    def decision(self, sets: Array, *, n_jobs: int | None = None) -> Array:
        """Decision values of ordered sets, as `SVC.decision_function` gives them."""
        return np.asarray(self.svc.decision_function(self._gram(sets, n_jobs)))

    def predict(self, sets: Array, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Labels of ordered sets, as `SVC.predict` gives them: by votes of pairs of classes."""
        return np.asarray(self.svc.predict(self._gram(sets, n_jobs)))

    def _gram(self, sets: Array, n_jobs: int | None) -> Array:
        check_kernel_memory(len(sets), self.n_learnt, n_copies=2)
        # Columns of sets that do not support the machine are never looked at.
        K = np.zeros((len(sets), self.n_learnt))
        sets = sets - self.center
        K[:, self.svc.support_] = slot_gram(self.kernel, sets, self.sets, n_jobs=n_jobs)
        return K

    @property
    def pulls(self) -> Array:
        """Weight of each set learnt from in the normal of the plane; of two classes."""
        pulls = np.zeros(self.n_learnt)
        pulls[self.svc.support_] = self.svc.dual_coef_[0]
        return pulls


def far_center(sets: Array) -> Array:
    """Middle of all points where the origin is so far off that it takes their digits, else zeros.

    Moving all sets moves the plane of the inner product with them and changes nothing else, but
    for where the solver happens to stop.
    """
    center = middle(sets.reshape(-1, sets.shape[2]))
    spread = float(((sets - center) ** 2).sum(axis=2).mean())
    return center if center @ center > FAR * spread else np.zeros_like(center)


def _margins(svc: SVC, K: Array) -> Array:
    """Margins 1 / |w| of all pairs of classes, from the layout of libsvm's coefficients."""
    K = K[np.ix_(svc.support_, svc.support_)]
    ends = np.concatenate([[0], np.cumsum(svc.n_support_)])
    n_classes = len(svc.n_support_)
    margins = []
    for first in range(n_classes):
        for second in range(first + 1, n_classes):
            pull = np.zeros(len(K))
            of_first, of_second = (slice(*ends[each : each + 2]) for each in (first, second))
            pull[of_first] = svc.dual_coef_[second - 1, of_first]
            pull[of_second] = svc.dual_coef_[first, of_second]
            squared = max(float(pull @ K @ pull), np.finfo(float).tiny)
            margins.append(1.0 / np.sqrt(squared))
    return np.array(margins)
