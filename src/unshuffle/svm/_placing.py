"""What all sets have in common before they are aligned: features of points, number of slots."""

from dataclasses import dataclass
from typing import Any

from unshuffle._bags import Bags, check_bags_memory, check_gap
from unshuffle._grams import check_points_for_width
from unshuffle._points import PointFeatures
from unshuffle.svm._slots import Candidates


@dataclass(frozen=True)
class Placing:
    """How points become candidates for the slots of a template.

    Attributes
    ----------
    features : PointFeatures
        Map from points to the features in which they are compared.
    n_points : int
        Slots of the template.
    resampled : bool
        Whether sets are first brought to that size by copying points or leaving some out.
    seed : int
        Which points those are.
    """

    features: PointFeatures
    n_points: int
    resampled: bool
    seed: int

    @classmethod
    def of(
        cls,
        bags: Bags,
        kernel: Any,
        *,
        gamma: float | None,
        degree: int,
        rank: int,
        n_points: int | None,
        unequal: str,
        seed: int,
    ) -> "Placing":
        """Placing for sets like these; memory is asked for first."""
        check_gap(bags.points, "bags")
        if kernel == "linear":
            bags.check_none_wild()
        n_slots = int(n_points or bags.sizes.max())
        check_bags_memory(len(bags), n_slots, bags.width if kernel == "linear" else rank)
        if kernel == "rbf" and gamma is None:
            check_points_for_width(len(bags.points), "gamma")
        points = bags.sorted().points  # so that no order inside a set has a part in the features
        features = PointFeatures.of(points, kernel, gamma=gamma, degree=degree, rank=rank)
        return cls(features, n_slots, unequal == "resample", seed)

    def candidates(self, bags: Bags) -> Candidates:
        """Candidates of these sets."""
        return Candidates.of(
            bags,
            self.features.map,
            n_points=self.n_points,
            resampled=self.resampled,
            seed=self.seed,
        )
