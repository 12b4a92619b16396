"""Find the order your data lost: match and learn from collections with unknown correspondences."""

import sys
from typing import TYPE_CHECKING

__version__ = "0.2.0"
__all__ = [
    "Collage",
    "GridLayout",
    "KernelizedSorting",
    "MinimumVolumePCA",
    "MultiwaySorting",
    "OrbitLearner",
    "PermutationInvariantSVC",
    "SetAligner",
    "__version__",
    "show_versions",
    "sort_grid",
]

if TYPE_CHECKING:
    from unshuffle._run.environment import show_versions
    from unshuffle.alignment import MinimumVolumePCA
    from unshuffle.layout import Collage, GridLayout, sort_grid
    from unshuffle.matching import KernelizedSorting, MultiwaySorting
    from unshuffle.orbits import OrbitLearner
    from unshuffle.svm import PermutationInvariantSVC, SetAligner
else:
    # Names are imported on first use, since scikit-learn takes a second to load. Type checkers
    # do not see this branch, so that they still report misspelled names.
    _HOMES = {
        "Collage": "unshuffle.layout",
        "GridLayout": "unshuffle.layout",
        "KernelizedSorting": "unshuffle.matching",
        "MinimumVolumePCA": "unshuffle.alignment",
        "MultiwaySorting": "unshuffle.matching",
        "OrbitLearner": "unshuffle.orbits",
        "PermutationInvariantSVC": "unshuffle.svm",
        "SetAligner": "unshuffle.svm",
        "show_versions": "unshuffle._run.environment",
        "sort_grid": "unshuffle.layout",
    }
    _ROOMS = (
        *("alignment", "assignment", "base", "datasets", "encoders", "images", "kernels"),
        *("layout", "matching", "metrics", "orbits", "plotting", "preprocessing", "svm"),
        "testing",
    )

    def __getattr__(name):
        from importlib import import_module

        if name in _HOMES:
            globals()[name] = getattr(import_module(_HOMES[name]), name)
            return globals()[name]
        if name in _ROOMS:
            return import_module(f"unshuffle.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_HOMES, *_ROOMS})

    class _Explain:
        """The last to look for a module, such as one that a pickle of an earlier version names."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.startswith("unshuffle.") and "._" in name:
                raise ModuleNotFoundError(
                    f"unshuffle {__version__} has no module {name}. Pickles of earlier versions "
                    "cannot be loaded: fit again, or install the version that wrote them.",
                    name=name,
                )

    sys.meta_path.append(_Explain)
