"""Estimators and kernels of sets."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import SETS, add, eight_rows, estimator, function, method, search
from tests.fuzz.values import Kind, needed

import unshuffle
from unshuffle import alignment, kernels, preprocessing

_POINT_KERNEL = {
    "kernel": s.kernel("linear", "rbf", "poly"),
    "gamma": s.real(None, 0.5),
    "degree": s.count(1, 2, 3),
    "n_landmarks": s.count(2, 60),
    "n_points": s.count(None, 3, 5),
}
estimator(
    "alignment.MinimumVolumePCA",
    {"X": v.bags()},
    search(
        n_components=s.real(None, 1, 2, 0.9),
        method=s.option("mean", "covariance", "variational"),
        regularization=s.real(0.1, 1.0),
        unequal=s.option("resample", "missing"),
        swaps=s.flag(),
        init=Kind(lambda case, rng: None, v.table("n", "d").hostile),
        n_init=s.count(1, 2),
        **_POINT_KERNEL,
    ),
    words=SETS,
)


@cache
def _volume() -> Any:
    sets = v.numbers(np.random.default_rng(0), (6, 5, 2))
    return alignment.MinimumVolumePCA(2, random_state=0).fit(sets)


method("alignment.MinimumVolumePCA.transform", _volume, {"X": v.bags()}, words=SETS)
method("alignment.MinimumVolumePCA.align", _volume, {"X": v.bags()}, words=SETS)
method("alignment.MinimumVolumePCA.inverse_transform", _volume, {"Y": v.table("n", "two")})
method(
    "alignment.MinimumVolumePCA.morph",
    _volume,
    {
        "i": needed(s.count(0, 5)),
        "j": needed(s.count(1, 2)),
        "t": Kind(lambda case, rng: [0.0, 0.5, 1.0], v.stack("n").hostile, needed=True),
    },
)
function(
    alignment,
    "match_shapes",
    {
        "first": v.table("n", "two"),
        "second": v.table("n", "two"),
        "stiffness": s.real(0.1, 1.0, 10),
    },
)

estimator(
    "svm.PermutationInvariantSVC",
    {"X": v.bags(), "y": v.labels("b")},
    search(
        C=s.real(0.1, 1.0, 10),
        margin_weight=s.real(0.0, 0.1),
        template=s.option("mean", "ball"),
        slack=s.real(None, 0.5),
        bisect=s.flag(),
        unequal=s.option("resample", "rectangular"),
        class_weight=s.option(None, "balanced"),
        probability=s.flag(),
        **_POINT_KERNEL,
    ),
    words=SETS | {"classes", "class", "labels"},
    gaps={"margin_path_", "radius_path_"},
)
estimator(
    "svm.SetAligner",
    {"X": v.bags()},
    search(
        template=s.option("mean", "ball"),
        slack=s.real(None, 0.5),
        unequal=s.option("resample", "rectangular"),
        **_POINT_KERNEL,
    ),
    words=SETS,
)


@cache
def _classifier() -> Any:
    sets = v.numbers(np.random.default_rng(0), (6, 5, 2))
    return unshuffle.PermutationInvariantSVC(probability=True, random_state=0).fit(
        sets, [0, 1, 0, 1, 0, 1]
    )


@cache
def _aligner() -> Any:
    sets = v.numbers(np.random.default_rng(0), (6, 5, 2))
    return unshuffle.SetAligner(random_state=0).fit(sets)


for _name in ("align", "decision_function", "predict", "predict_proba"):
    method(f"svm.PermutationInvariantSVC.{_name}", _classifier, {"X": v.bags()}, words=SETS)
method(
    "svm.PermutationInvariantSVC.score",
    _classifier,
    {"X": v.bags(), "y": eight_rows(v.labels("b"))},
    words=SETS | {"labels"},
)
for _name in ("align", "transform"):
    method(f"svm.SetAligner.{_name}", _aligner, {"X": v.bags()}, words=SETS)


def _check_gram(kernel: Any, arguments: dict[str, Any]) -> str | None:
    K = kernel.fit_transform(arguments["X"])
    if not np.isfinite(K).all():
        return f"the Gram matrix is not finite: {K!r:.200}"
    if not np.allclose(K, K.T, rtol=1e-6, atol=1e-9 * np.abs(K).max()):
        return "the Gram matrix is not symmetric"
    if not np.allclose(K, kernel.transform(arguments["X"]), rtol=1e-5, atol=1e-8):
        return "fit_transform and transform differ"
    return None


def _reusable(check: Any) -> Any:
    """Skips a check that draws again from an iterator that fit has used up."""

    def run(result: Any, arguments: dict[str, Any]) -> str | None:
        return None if hasattr(arguments["X"], "__next__") else check(result, arguments)

    return run


_FEATURE_SPACE = {
    "base_kernel": s.kernel(None, "rbf", "poly"),
    "eta": s.real(0.02, 0.5),
    "gamma": s.real(None, 0.5),
    "degree": s.count(1, 2, 3),
    "rank": s.count(2, 12),
    "n_landmarks": s.count(20, 300),
    "covariance_type": s.option("full", "diag", "spherical"),
    "regularization": s.real(0.02, 0.5),
    "n_jobs": s.jobs(),
}
_MIXTURE = {
    "n_init": s.count(1, 4),
    "max_iter": s.count(2, 100),
    "tol": s.real(1e-3, 0.1),
    "random_state": s.seed(),
}
_SET_KERNELS: dict[str, dict[str, Kind]] = {
    "BhattacharyyaKernel": _FEATURE_SPACE,
    "ExpectedLikelihoodKernel": {
        **_FEATURE_SPACE,
        **_MIXTURE,
        "n_components": s.count(1, 2, "bic"),
        "normalize": s.flag(),
        "max_components": s.count(1, 3),
    },
    "FisherVectorKernel": {
        "n_components": s.count(1, 2, 4),
        "gamma": s.real(None, 0.5),
        "power": s.real(0.5, 1.0),
        "regularization": s.real(1e-4, 0.1),
        "n_jobs": s.jobs(),
        **{key: _MIXTURE[key] for key in ("max_iter", "tol", "random_state")},
    },
    "MaxMapKernel": {
        "base_kernel": s.kernel("rbf", "linear", "laplacian"),
        "gamma": s.real(None, 0.5),
        "n_landmarks": s.count(None, 3, 100),
        "outer": s.option("linear", "rbf"),
        "outer_gamma": s.real(None, 0.5),
        "n_jobs": s.jobs(),
    },
    "MeanMapKernel": {
        "base_kernel": s.kernel("rbf", "linear", "poly", "laplacian"),
        "gamma": s.real(None, 0.5),
        "degree": s.count(1, 2, 3),
        "n_features": s.count(None, 10),
        "normalize": s.flag(),
        "outer": s.option("linear", "rbf"),
        "outer_gamma": s.real(None, 0.5),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
    },
    "SetKernelSum": {
        "kernels": Kind(
            lambda case, rng: [kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel(10)],
            lambda case, rng: v.pick(
                rng, [[], None, "rbf", [5], [kernels.MeanMapKernel], kernels.MeanMapKernel()]
            ),
            needed=True,
        ),
        "weights": Kind(lambda case, rng: [1, 2], v.stack("two").hostile),
        "n_jobs": s.jobs(),
    },
    "SlicedWassersteinKernel": {
        "n_projections": s.count(5, 50),
        "gamma": s.real(None, 0.5),
        "n_quantiles": s.count(4, 64),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
    },
}


def fitted_kernel(name: str) -> Callable[[], Any]:
    @cache
    def fitted() -> Any:
        sets = list(v.numbers(np.random.default_rng(0), (6, 5, 2)))
        parameters = {"n_components": 2} if "n_components" in _SET_KERNELS[name] else {}
        if name == "SetKernelSum":
            parameters = {"kernels": [kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel(9)]}
        return getattr(kernels, name)(**parameters).fit(sets)

    return fitted


for _name, _parameters in _SET_KERNELS.items():
    estimator(
        f"kernels.{_name}",
        {"X": v.bags()},
        _parameters,
        check=_reusable(_check_gram),
        words=SETS | {"kernel"},
    )
    method(f"kernels.{_name}.transform", fitted_kernel(_name), {"X": v.bags()}, words=SETS)
    method(
        f"kernels.{_name}.gram",
        fitted_kernel(_name),
        {"X": v.bags(), "Y": v.bags()},
        words=SETS,
    )


def _fit_transform(kind: Any, X: Any, **parameters: Any) -> Any:
    return kind(**parameters).fit_transform(X)


for _name, _parameters in {
    "NeighborhoodShape": {
        "n_neighbors": s.count(2, 8),
        "weight": s.real(0.0, 0.75, 1.0),
        "columns": Kind(lambda case, rng: [0, 1], v.permutation("two").hostile),
    },
    "SetNormalizer": {
        "center": s.flag(),
        "scale": s.option("set", "all", None),
        "shear": s.flag(),
        "columns": Kind(lambda case, rng: [0, 1], v.permutation("two").hostile),
    },
}.items():
    estimator(f"preprocessing.{_name}", {"X": v.bags()}, _parameters, words=SETS)
    add(
        f"preprocessing.{_name}.transform",
        partial(_fit_transform, getattr(preprocessing, _name)),
        {"X": v.bags(), **_parameters},
        words=SETS,
    )


def _check_bag_estimator(**arguments: Any) -> Any:
    try:
        unshuffle.testing.check_bag_estimator(**arguments)
    except AssertionError:  # its answer where an estimator breaks a promise, or tol is too small
        return None


add(
    "testing.check_bag_estimator",
    _check_bag_estimator,
    {
        "estimator": Kind(
            lambda case, rng: preprocessing.SetNormalizer(),
            lambda case, rng: v.pick(
                rng, [None, 5, "estimator", object(), preprocessing.SetNormalizer]
            ),
            needed=True,
        ),
        "tol": s.real(1e-6),
        "on_fail": s.option("raise", "warn", None),
    },
)
