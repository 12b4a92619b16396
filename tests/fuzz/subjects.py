"""Every public name: which arguments it takes, how to call it, and what its answer must keep."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from tests.fuzz import values as v
from tests.fuzz.values import Kind, needed

import unshuffle
from unshuffle import (
    alignment,
    assignment,
    datasets,
    images,
    kernels,
    layout,
    matching,
    metrics,
    objectives,
    plotting,
    preprocessing,
)

# Result types and constants: made by the functions below, which are called.
NOT_CALLED = {
    "assignment.Assignment",
    "assignment.Climbed",
    "datasets.Clouds",
    "datasets.LabelledSets",
    "datasets.Paired",
    "images.Drawing",
    "images.FEATURES",
    "images.FORMATS",
    "images.ImageCollection",
    "images.MAX_CACHE_BYTES",
    "images.MAX_PIXELS",
    "images.SUFFIXES",
    "images.default_cache",
    "layout.Summary",
    "matching.AmbiguityWarning",
    "testing.BagCheckResult",
    "testing.parametrize_with_bag_checks",
}


def _nothing(result: Any, arguments: dict[str, Any]) -> str | None:
    return None


@dataclass(frozen=True)
class Subject:
    """One public name, or one method of it.

    Attributes
    ----------
    name : str
        Room and name, perhaps with a method.
    call : callable
        Takes the arguments as keywords.
    arguments : dict of str to Kind
        How to draw each.
    check : callable
        Given the answer and the arguments; returns what is wrong with it, or None.
    gaps : set of str
        Attributes of the answer that may hold NaN or infinity.
    loose : set of str
        Attributes that may depend on rounding.
    words : set of str
        Further words that name an argument in a message.
    turns : int
        How often it is called, as a multiple of the others.
    """

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Kind]
    check: Callable[[Any, dict[str, Any]], str | None] = _nothing
    gaps: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    turns: int = 1


SUBJECTS: dict[str, Subject] = {}
FITS = 4  # estimators have the most parameters, so their fits are called this many times as often


@cache
def _turns() -> list[str]:
    return [name for name in sorted(SUBJECTS) for _ in range(SUBJECTS[name].turns)]


def subject_of(seed: int) -> Subject:
    """Which name a seed calls."""
    return SUBJECTS[_turns()[seed % len(_turns())]]


def seeds_of(name: str, n_calls: int) -> list[int]:
    """The first seeds that call a name."""
    turns = _turns()
    own = [place for place, each in enumerate(turns) if each == name]
    return [own[i % len(own)] + len(turns) * (i // len(own)) for i in range(n_calls)]


def _add(name: str, call: Callable[..., Any], arguments: dict[str, Kind], **more: Any) -> None:
    for key in ("gaps", "loose", "words"):
        more[key] = frozenset(more.get(key, ()))
    SUBJECTS[name] = Subject(name, call, arguments, **more)


def _function(room: Any, name: str, arguments: dict[str, Kind], **more: Any) -> None:
    _add(
        f"{room.__name__.removeprefix('unshuffle.')}.{name}",
        getattr(room, name),
        arguments,
        **more,
    )


def _estimator(name: str, data: dict[str, Kind], parameters: dict[str, Kind], **more: Any) -> None:
    """Construct and fit; `data` goes to fit, `parameters` to the constructor."""
    room, _, short = name.rpartition(".")
    kind = getattr(getattr(unshuffle, room), short)

    def call(**arguments: Any) -> Any:
        given = {key: value for key, value in arguments.items() if key in data}
        estimator = kind(**{key: arguments[key] for key in arguments if key not in data})
        before = estimator.get_params(deep=False)
        fitted = estimator.fit(**given)
        after = estimator.get_params(deep=False)
        if fitted is not estimator or any(after[key] is not before[key] for key in before):
            raise AssertionError(f"{name}.fit changed a parameter")
        return estimator

    _add(name, call, {**data, **parameters}, turns=FITS, **more)


def _method(name: str, fitted: Callable[[], Any], arguments: dict[str, Kind], **more: Any) -> None:
    """A method of an estimator that was fitted on ordinary data."""
    method = name.rpartition(".")[2]

    def call(**given: Any) -> Any:
        import copy

        # scikit-learn wraps transform, and then takes its first argument by position only.
        first, *others = arguments
        more = {key: given[key] for key in others if key in given}
        first_value = [given[first]] if first in given else []
        return getattr(copy.deepcopy(fitted()), method)(*first_value, **more)

    _add(name, call, arguments, **more)


def _search(**more: Kind) -> dict[str, Kind]:
    """Parameters that every solver has."""
    return {
        "max_iter": v.count(1, 3, 20),
        "tol": v.real(0.0, 1e-6, 0.1),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "callback": v.callback(),
        **more,
    }


def _is_matching(order: np.ndarray, n_partners: int) -> bool:
    taken = order[order >= 0]
    return bool(
        order.dtype.kind == "i"
        and (order >= -1).all()
        and (taken < n_partners).all()
        and np.unique(taken).size == taken.size
    )


def _check_sorting(sorting: Any, arguments: dict[str, Any]) -> str | None:
    n_partners = len(sorting.matches_.names_y)
    if not _is_matching(sorting.permutation_, n_partners):
        return f"permutation_ is not a matching: {sorting.permutation_}"
    confidence = sorting.confidence_
    if not ((confidence >= 0) & (confidence <= 1)).all():
        return f"confidence_ is outside 0 to 1: {confidence}"
    frozen = arguments.get("frozen")
    if frozen is not None and len(frozen):
        left, right = np.asarray(frozen, dtype=int).T
        if not (sorting.permutation_[left] == right).all():
            return "a frozen pair was taken apart"
    return None


_VECTOR_KERNELS = ("rbf", "linear", "laplacian", "geodesic")
_estimator(
    "matching.KernelizedSorting",
    {
        "X": v.table("n", "d"),
        "y": v.table("m", "e"),
        "frozen": v.pairs("n", "m"),
        "cost": Kind(v.stack("n", "m").ordinary, v.stack("n", "m").hostile),
    },
    _search(
        kernel=v.kernel(*_VECTOR_KERNELS, several=True),
        kernel_y=v.kernel(*_VECTOR_KERNELS, None),
        gamma=v.real(0.5, None, 2),
        method=v.option("refined", "unbiased", "classic", "entropy"),
        n_init=v.count(1, 2, 8),
        unmatched_cost=v.real(None, 0.1, 1.0),
        kernel_weights=v.real(None),
        step=v.option("set", "line_search"),
    ),
    check=_check_sorting,
)
_add(
    "matching.KernelizedSorting[text]",
    lambda X, y, **more: matching.KernelizedSorting(kernel="text", **more).fit(X, y),
    {"X": v.texts("n"), "y": v.texts("m"), "random_state": v.seed()},
    check=_check_sorting,
    words={"documents"},
)
_add(
    "matching.KernelizedSorting[precomputed]",
    lambda X, y, **more: matching.KernelizedSorting(kernel="precomputed", **more).fit(X, y),
    {"X": v.gram("n"), "y": v.gram("m"), "random_state": v.seed()},
    check=_check_sorting,
)


def _collections() -> Kind:
    one = v.table("n", "d")
    return Kind(
        lambda case, rng: [one.ordinary(case, rng) for _ in range(3)],
        lambda case, rng: (
            [one.ordinary(case, rng), one.hostile(case, rng)]
            if rng.random() < 0.6
            else one.hostile(case, rng)
        ),
        needed=True,
    )


def _check_multiway(sorting: Any, arguments: dict[str, Any]) -> str | None:
    orders = sorting.permutations_
    if not (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all():
        return f"permutations_ are not permutations: {orders}"
    return None if (orders[0] == np.arange(orders.shape[1])).all() else "the first moved"


_estimator(
    "matching.MultiwaySorting",
    {"X": _collections()},
    _search(
        kernel=v.kernel(*_VECTOR_KERNELS),
        gamma=v.real(0.5, None),
        objective=v.option("hsic", "entropy"),
        n_init=v.count(1, 2),
        offset=v.real(None, 0, 0.5),
    ),
    check=_check_multiway,
    words={"collections", "collection"},
)


@cache
def _sorting() -> Any:
    rng = np.random.default_rng(0)
    X = v.numbers(rng, (8, 3))
    return matching.KernelizedSorting(random_state=0).fit(X, X @ v.numbers(rng, (3, 4)))


def _eight_rows(kind: Kind) -> Kind:
    """The kind at the size of the fitted examples."""

    def resized(draw: Any) -> Any:
        def drawn(case: Any, rng: Any) -> Any:
            case.sizes.update(n=8, m=8, d=3, b=6)
            return draw(case, rng)

        return drawn

    return Kind(resized(kind.ordinary), resized(kind.hostile), kind.needed)


_method("matching.KernelizedSorting.candidates", _sorting, {"k": needed(v.count(1, 3, 8))})
_method("matching.KernelizedSorting.soft_matches", _sorting, {"temperature": v.real(0.1, 0.2, 1)})
_method(
    "matching.KernelizedSorting.reorder",
    _sorting,
    {"y": _eight_rows(v.table("m", "e"))},
    gaps={""},
)
_add(
    "matching.Matches",
    matching.Matches,
    {
        "permutation": v.permutation("n"),
        "confidence": v.stack("n"),
        "names_x": Kind(
            lambda case, rng: [f"x{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
        "names_y": Kind(
            lambda case, rng: [f"y{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
    },
)


def _saved(result: Any, path: Any) -> Any:
    result.save(path)
    return type(result).load(path)


_add(
    "matching.Matches.save",
    lambda path, **more: _saved(_sorting().matches_, path),
    {"path": v.output(".csv", ".json")},
)
_add("matching.Matches.load", matching.Matches.load, {"path": v.path("notes.txt")})


def _check_layout(result: Any, arguments: dict[str, Any]) -> str | None:
    placed = result.grid_[result.grid_ >= 0]
    n_items = len(result.positions_)
    if not (np.sort(placed, axis=None) == np.arange(n_items)).all():
        return f"grid_ does not hold every item once: {result.grid_}"
    if not result.score_ <= 1 + 1e-9:
        return f"score_ is {result.score_}"
    return None


def _shape() -> Kind:
    def ordinary(case: Any, rng: Any) -> Any:
        n_items = case.sizes["n"]
        return v.pick(
            rng,
            [
                None,
                (2, n_items),
                np.ones((3, n_items), dtype=bool),
                v.numbers(np.random.default_rng(case.seed), (n_items + 1, 2)),
            ],
        )

    def hostile(case: Any, rng: Any) -> Any:
        odd = [
            (0, 5),
            (-1, 4),
            (10**9, 10**9),
            (1, 1),
            (2.5, 3),
            ("a", 3),
            (1, 2, 3),
            "3x4",
            5,
            [],
        ]
        odd += [np.zeros((3, 3), dtype=bool), np.full((20, 2), np.nan), (np.int8(100), np.int8(2))]
        odd += [np.zeros((20, 2)), np.ones((20, 3)), (True, 20), (np.nan, 3), {}, object()]
        return v.pick(rng, odd)

    return Kind(ordinary, hostile)


_estimator(
    "layout.GridLayout",
    {"X": v.table("n", "d"), "frozen": v.pairs("n", "n")},
    {
        "shape": _shape(),
        "wrap": v.flag(),
        "kernel": v.kernel(*_VECTOR_KERNELS, None, several=True),
        "quality": v.option("fast", "balanced", "best", "classic"),
        "gamma": v.real(None, 0.5),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "callback": v.callback(),
    },
    check=_check_layout,
)


@cache
def _layout() -> Any:
    X = v.numbers(np.random.default_rng(0), (8, 3))
    return layout.GridLayout((3, 5), random_state=0).fit(X)


_method("layout.GridLayout.add", _layout, {"X": _eight_rows(v.table("three", "d"))})
_method(
    "layout.GridLayout.arrange",
    _layout,
    {"values": _eight_rows(v.table("n", "d")), "fill": v.real(None, 0)},
    gaps={""},
)


def _template() -> Kind:
    def draw(case: Any, rng: Any) -> Any:
        return rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)

    return Kind(draw, lambda case, rng: v.spoiled(draw(case, rng).astype(float), rng), needed=True)


_estimator(
    "layout.Collage",
    {"X": v.images("n", size=4)},
    {
        "template": _template(),
        "shape": Kind(lambda case, rng: v.pick(rng, [None, (2, 2), (3, 4)]), _shape().hostile),
        "smoothness": v.real(0, 0.3, 1),
        "repeat": v.count(None, 1, 5),
        "detail": v.count(1, 3),
        "neighbors": v.option("kernel", "laplacian"),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "callback": v.callback(),
    },
    words={"tiles"},
)


@cache
def _collage() -> Any:
    rng = np.random.default_rng(0)
    template = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    tiles = rng.integers(0, 256, (8, 4, 4, 3), dtype=np.uint8)
    return layout.Collage(template, (2, 2), random_state=0).fit(tiles)


_method(
    "layout.Collage.render",
    _collage,
    {"X": _eight_rows(v.images("n", size=6))},
    words={"tiles", "images"},
)
_add(
    "layout.Positions",
    layout.Positions,
    {
        "grid": v.grid("n"),
        "names": Kind(
            lambda case, rng: [f"x{i}" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
    },
)


@cache
def _positions() -> Any:
    return layout.Positions(_layout().grid_, [f"item {i}" for i in range(8)])


_add(
    "layout.Positions.save",
    lambda path: _saved(_positions(), path),
    {"path": v.output(".csv", ".json")},
)
_add("layout.Positions.load", layout.Positions.load, {"path": v.path("notes.txt")})
for _name in ("choose_representatives", "summarize"):
    _function(
        layout,
        _name,
        {
            "X": v.table("n", "d"),
            "k": needed(v.count(1, 2, 3)),
            "kernel": v.kernel("linear", "rbf"),
            "gamma": v.real(None, 0.5),
            "random_state": v.seed(),
        },
    )
_function(layout, "rectangle_for", {"n_items": needed(v.count(1, 7, 100))})

_SETS = {"bags", "bag", "points", "sets", "set"}
_POINT_KERNEL = {
    "kernel": v.kernel("linear", "rbf", "poly"),
    "gamma": v.real(None, 0.5),
    "degree": v.count(1, 2, 3),
    "rank": v.count(2, 60),
    "n_points": v.count(None, 3, 5),
}
_estimator(
    "alignment.MinimumVolumePCA",
    {"bags": v.bags()},
    _search(
        n_components=v.real(None, 1, 2, 0.9),
        estimator=v.option("mean", "covariance", "variational"),
        regularization=v.real(0.1, 1.0),
        unequal=v.option("resample", "missing"),
        swaps=v.flag(),
        init=Kind(lambda case, rng: None, v.table("n", "d").hostile),
        n_init=v.count(1, 2),
        **_POINT_KERNEL,
    ),
    words=_SETS,
)


@cache
def _volume() -> Any:
    sets = v.numbers(np.random.default_rng(0), (6, 5, 2))
    return alignment.MinimumVolumePCA(2, random_state=0).fit(sets)


_method("alignment.MinimumVolumePCA.transform", _volume, {"bags": v.bags()}, words=_SETS)
_method("alignment.MinimumVolumePCA.align", _volume, {"bags": v.bags()}, words=_SETS)
_method("alignment.MinimumVolumePCA.inverse_transform", _volume, {"Y": v.table("n", "two")})
_method(
    "alignment.MinimumVolumePCA.morph",
    _volume,
    {
        "i": needed(v.count(0, 5)),
        "j": needed(v.count(1, 2)),
        "t": Kind(lambda case, rng: [0.0, 0.5, 1.0], v.stack("n").hostile, needed=True),
    },
)
_function(
    alignment,
    "match_shapes",
    {
        "first": v.table("n", "two"),
        "second": v.table("n", "two"),
        "stiffness": v.real(0.1, 1.0, 10),
    },
)

_estimator(
    "svm.PermutationInvariantSVC",
    {"bags": v.bags(), "y": v.labels("b")},
    _search(
        C=v.real(0.1, 1.0, 10),
        lam=v.real(0.0, 0.1),
        template=v.option("mean", "ball"),
        slack=v.real(None, 0.5),
        bisect=v.flag(),
        unequal=v.option("resample", "rectangular"),
        class_weight=v.option(None, "balanced"),
        probability=v.flag(),
        **_POINT_KERNEL,
    ),
    words=_SETS | {"classes", "class", "labels"},
)
_estimator(
    "svm.SetAligner",
    {"bags": v.bags()},
    _search(
        template=v.option("mean", "ball"),
        slack=v.real(None, 0.5),
        unequal=v.option("resample", "rectangular"),
        **_POINT_KERNEL,
    ),
    words=_SETS,
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
    _method(f"svm.PermutationInvariantSVC.{_name}", _classifier, {"bags": v.bags()}, words=_SETS)
_method(
    "svm.PermutationInvariantSVC.score",
    _classifier,
    {"X": v.bags(), "y": _eight_rows(v.labels("b"))},
    words=_SETS | {"labels"},
)
for _name in ("align", "transform"):
    _method(f"svm.SetAligner.{_name}", _aligner, {"bags": v.bags()}, words=_SETS)


def _check_gram(kernel: Any, arguments: dict[str, Any]) -> str | None:
    K = kernel.fit_transform(arguments["bags"])
    if not np.isfinite(K).all():
        return f"the Gram matrix is not finite: {K!r:.200}"
    if not np.allclose(K, K.T, rtol=1e-6, atol=1e-9 * np.abs(K).max()):
        return "the Gram matrix is not symmetric"
    if not np.allclose(K, kernel.transform(arguments["bags"]), rtol=1e-5, atol=1e-8):
        return "fit_transform and transform differ"
    return None


def _reusable(check: Any) -> Any:
    """Skips a check that draws again from an iterator that fit has used up."""

    def run(result: Any, arguments: dict[str, Any]) -> str | None:
        return None if hasattr(arguments["bags"], "__next__") else check(result, arguments)

    return run


_FEATURE_SPACE = {
    "base_kernel": v.kernel(None, "rbf", "poly"),
    "eta": v.real(0.02, 0.5),
    "gamma": v.real(None, 0.5),
    "degree": v.count(1, 2, 3),
    "rank": v.count(2, 12),
    "n_landmarks": v.count(20, 300),
    "covariance_type": v.option("full", "diag", "spherical"),
    "regularization": v.real(0.02, 0.5),
    "n_jobs": v.jobs(),
}
_MIXTURE = {
    "n_init": v.count(1, 4),
    "max_iter": v.count(2, 100),
    "tol": v.real(1e-3, 0.1),
    "random_state": v.seed(),
}
_SET_KERNELS: dict[str, dict[str, Kind]] = {
    "BhattacharyyaKernel": _FEATURE_SPACE,
    "ExpectedLikelihoodKernel": {
        **_FEATURE_SPACE,
        **_MIXTURE,
        "n_components": v.count(1, 2, "bic"),
        "normalize": v.flag(),
        "max_components": v.count(1, 3),
    },
    "FisherVectorKernel": {
        "n_components": v.count(1, 2, 4),
        "gamma": v.real(None, 0.5),
        "power": v.real(0.5, 1.0),
        "regularization": v.real(1e-4, 0.1),
        "n_jobs": v.jobs(),
        **{key: _MIXTURE[key] for key in ("max_iter", "tol", "random_state")},
    },
    "MeanMapKernel": {
        "base_kernel": v.kernel("rbf", "linear", "poly", "laplacian"),
        "gamma": v.real(None, 0.5),
        "degree": v.count(1, 2, 3),
        "n_features": v.count(None, 10),
        "normalize": v.flag(),
        "outer": v.option("linear", "rbf"),
        "outer_gamma": v.real(None, 0.5),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
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
        "n_jobs": v.jobs(),
    },
    "SlicedWassersteinKernel": {
        "n_projections": v.count(5, 50),
        "gamma": v.real(None, 0.5),
        "n_quantiles": v.count(4, 64),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
    },
}


def _fitted_kernel(name: str) -> Callable[[], Any]:
    @cache
    def fitted() -> Any:
        sets = list(v.numbers(np.random.default_rng(0), (6, 5, 2)))
        parameters = {"n_components": 2} if "n_components" in _SET_KERNELS[name] else {}
        if name == "SetKernelSum":
            parameters = {"kernels": [kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel(9)]}
        return getattr(kernels, name)(**parameters).fit(sets)

    return fitted


for _name, _parameters in _SET_KERNELS.items():
    _estimator(
        f"kernels.{_name}",
        {"bags": v.bags()},
        _parameters,
        check=_reusable(_check_gram),
        words=_SETS,
    )
    _method(f"kernels.{_name}.transform", _fitted_kernel(_name), {"bags": v.bags()}, words=_SETS)
    _method(
        f"kernels.{_name}.kernel",
        _fitted_kernel(_name),
        {"bags_a": v.bags(), "bags_b": v.bags()},
        words=_SETS,
    )

for _name in ("rbf_kernel", "laplacian_kernel", "chi2_kernel", "linear_kernel"):
    _arguments = {
        "X": v.table("n", "d", positive=_name == "chi2_kernel"),
        "Y": Kind(*2 * (v.table("m", "d", positive=_name == "chi2_kernel").ordinary,)),
    }
    _arguments["Y"] = Kind(_arguments["Y"].ordinary, v.table("m", "d").hostile)
    if _name != "linear_kernel":
        _arguments["gamma"] = v.real(None, 0.5)
    _function(kernels, _name, _arguments)
_function(
    kernels,
    "geodesic_kernel",
    {
        "X": v.table("n", "d"),
        "n_neighbors": v.count(None, 2, 3),
        "metric": v.option("euclidean", "cosine", "correlation"),
        "gamma": v.real(None, 0.5),
    },
)
_function(
    kernels,
    "geodesic_distances",
    {
        "X": v.table("n", "d"),
        "n_neighbors": v.count(None, 2, 3),
        "metric": v.option("euclidean", "cosine", "correlation"),
    },
)
_function(
    kernels,
    "gram_matrix",
    {
        "X": v.table("n", "d"),
        "kernel": v.kernel(*_VECTOR_KERNELS),
        "gamma": v.real(None, 0.5),
    },
)
_function(
    kernels,
    "combined_gram",
    {
        "X": v.table("n", "d"),
        "kernel": v.kernel(*_VECTOR_KERNELS, several=True),
        "gamma": v.real(None, 0.5),
        "weights": v.real(None),
    },
)
_function(
    kernels,
    "median_gamma",
    {"distances": v.table("n", "d", positive=True)},
)
_function(
    kernels,
    "nystroem_factors",
    {
        "X": v.table("n", "d"),
        "kernel": v.kernel(*_VECTOR_KERNELS),
        "rank": v.count(1, 3, 100),
        "gamma": v.real(None, 0.5),
        "random_state": v.seed(),
    },
)
_function(
    kernels,
    "pivoted_cholesky",
    {"X": v.gram("n"), "rank": needed(v.count(1, 3)), "tol": v.real(1e-10, 0.1)},
)
_function(kernels, "spectral_power", {"K": v.gram("n"), "exponent": needed(v.real(0.5, 1, 2))})
_function(
    kernels,
    "spectral_power_path",
    {
        "K": v.gram("n"),
        "exponents": Kind(lambda case, rng: [0.5, 1, 2], v.stack("n").hostile, needed=True),
    },
)
_add(
    "kernels.SpectralPower",
    lambda K, exponent, **more: kernels.SpectralPower(K, **more)(exponent),
    {"K": v.gram("n"), "exponent": needed(v.real(0.5, 1, 2)), "centered": v.flag()},
)
for _name in ("center", "unit_norm", "zero_diagonal"):
    _function(kernels, _name, {"K": v.gram("n")})
for _name in ("text_features", "text_kernel"):
    _function(
        kernels,
        _name,
        {
            "documents": v.texts("n"),
            "prefix_length": v.count(1, 6),
            "min_df": v.count(None, 1),
            "max_df": v.real(None, 0.9, 1.0),
        },
    )


def _fit_transform(kind: Any, bags: Any, **parameters: Any) -> Any:
    return kind(**parameters).fit_transform(bags)


for _name, _parameters in {
    "NeighborhoodShape": {
        "n_neighbors": v.count(2, 8),
        "weight": v.real(0.0, 0.75, 1.0),
        "columns": Kind(lambda case, rng: [0, 1], v.permutation("two").hostile),
    },
    "SetNormalizer": {
        "center": v.flag(),
        "scale": v.option("set", "all", None),
        "shear": v.flag(),
        "columns": Kind(lambda case, rng: [0, 1], v.permutation("two").hostile),
    },
}.items():
    _estimator(f"preprocessing.{_name}", {"bags": v.bags()}, _parameters, words=_SETS)
    _add(
        f"preprocessing.{_name}.transform",
        partial(_fit_transform, getattr(preprocessing, _name)),
        {"bags": v.bags(), **_parameters},
        words=_SETS,
    )

_function(
    assignment,
    "solve_assignment",
    {
        "cost": v.stack("n", "m"),
        "maximize": v.flag(),
        "solver": v.option("auto", "exact", "auction"),
        "prices": Kind(v.stack("m").ordinary, v.stack("m").hostile),
        "frozen": v.pairs("n", "m"),
        "forbidden": v.pairs("n", "m"),
    },
    check=lambda result, arguments: (
        None
        if _is_matching(result.columns, np.shape(arguments["cost"])[1])
        else f"not an assignment: {result.columns}"
    ),
)
_function(
    assignment,
    "soft_assignment",
    {
        "cost": v.stack("n", "m"),
        "epsilon": v.real(None, 0.1, 1),
        "maximize": v.flag(),
        "frozen": v.pairs("n", "m"),
        "forbidden": v.pairs("n", "m"),
        "max_iter": v.count(10, 1000),
        "tol": v.real(1e-6, 1e-3),
    },
)


def _problem(K: Any, L: Any, cost: Any = None, frozen: Any = None) -> Any:
    more = {} if frozen is None else {"frozen": frozen}
    return assignment.QuadraticProblem(K, L, cost, **more)


def _on_problem(function: Any, K: Any, L: Any, **more: Any) -> Any:
    return function(_problem(K, L), **more)


_PROBLEM = {
    "K": v.gram("n"),
    "L": v.gram("m"),
    "cost": Kind(v.stack("n", "m").ordinary, v.stack("n", "m").hostile),
    "frozen": v.pairs("n", "m"),
}
_add("assignment.QuadraticProblem", _problem, _PROBLEM)
for _name, _more in {
    "climb": {
        "permutation": v.permutation("n", "m"),
        "max_iter": v.count(1, 100),
        "tol": v.real(0.0, 1e-3),
        "swaps": v.flag(),
    },
    "swap_ascent": {"permutation": v.permutation("n", "m"), "max_sweeps": v.count(1, 100)},
    "mean_field": {
        "shares": v.stack("n", "m"),
        "temperature": v.real(0.1, 0.2),
        "max_iter": v.count(1, 12),
        "tol": v.real(0.01, 0.1),
    },
    "anneal": {"shares": v.stack("n", "m")},
    "assign_free": {"benefit": v.stack("n", "m")},
    "soften": {"benefit": v.stack("n", "m"), "temperature": needed(v.real(0.1, 0.2))},
}.items():
    _add(
        f"assignment.{_name}",
        partial(_on_problem, getattr(assignment, _name)),
        {"K": v.gram("n"), "L": v.gram("m"), **_more},
    )
_function(
    assignment,
    "matched_sums",
    {"K": v.gram("n"), "L": v.gram("m"), "permutation": v.permutation("n", "m")},
)
_function(assignment, "interaction_spread", {"benefit": v.stack("n", "m")})
_function(
    assignment,
    "one_hot",
    {
        "permutation": v.permutation("n"),
        "n_partners": Kind(lambda case, rng: case.sizes["n"], v.count(1).hostile, needed=True),
    },
)

_PAIR = {"K": v.gram("n"), "L": v.gram("n")}
_ORDERED = {**_PAIR, "permutation": v.permutation("n")}
for _name in ("hsic_biased", "hsic_unbiased", "hsic_zeroed"):
    _function(objectives, _name, _PAIR)
for _name in ("trace_value", "trace_gradient", "squared_value"):
    _function(objectives, _name, _ORDERED)
_function(objectives, "squared_gradient", {**_ORDERED, "squared_L": v.gram("n")})
for _name in ("entropy_value", "entropy_gradient", "entropy_weights"):
    _function(objectives, _name, {**_ORDERED, "ridge": needed(v.real(0.1, 1.0))})
_function(
    objectives,
    "entropy_swap_changes",
    {"others": v.gram("n"), "K": v.gram("n"), "ridge": needed(v.real(0.1, 1.0))},
)
_function(objectives, "multiway_hsic", {"kernels": v.grams("n")})
_function(objectives, "multiway_weights", {"kernels": v.grams("n")})
_function(objectives, "multiway_entropy", {"kernels": v.grams("n"), "ridge": needed(v.real(0.1))})
_function(
    objectives,
    "multiway_gradient",
    {"kernels": v.grams("n"), "K": v.gram("n"), "permutation": v.permutation("n")},
)
_MOTIONS = v.stack("n", "d", "d", scale=0.3)
_VECTORS = v.table("n", "d")
_function(objectives, "matrix_exponentials", {"A": _MOTIONS})
_function(objectives, "exponential_action", {"A": _MOTIONS, "z": _VECTORS})
_function(
    objectives,
    "exponential_jacobian",
    {"A": _MOTIONS, "z": _VECTORS, "directions": v.stack("k", "d", "d")},
)
_function(objectives, "exponential_pullback", {"A": _MOTIONS, "z": _VECTORS, "w": _VECTORS})
_function(
    objectives,
    "combined",
    {"generators": v.stack("k", "d", "d"), "coefficients": v.table("n", "k")},
)
_function(
    objectives,
    "log_trace_errors",
    {
        "A": _MOTIONS,
        "targets": v.table("n", "d", positive=True),
        "sources": v.table("n", "d", positive=True),
    },
)
_function(
    objectives,
    "log_trace_errors_diagonal",
    {
        "diagonals": v.table("n", "d"),
        "targets": v.table("n", "d", positive=True),
        "sources": v.table("n", "d", positive=True),
    },
)
_function(
    objectives,
    "matrix_volume",
    {
        "vectors": v.table("n", "d"),
        "eps1": needed(v.real(1e-3, 0.1)),
        "eps2": needed(v.real(1e-3, 0.1)),
    },
)
for _name in ("squared_orbit_cost", "squared_orbit_gradient"):
    _function(
        objectives,
        _name,
        {
            "generators": v.stack("k", "d", "d", scale=0.3),
            "coefficients": v.table("n", "k"),
            "targets": _VECTORS,
            "sources": _VECTORS,
        },
    )
for _name in ("covariance_spectrum", "expected_trace", "trace_of_bags"):
    _function(objectives, _name, {"points": v.stack("b", "n", "two")})
_function(
    objectives, "log_volume", {"points": v.stack("b", "n", "two"), "ridge": needed(v.real(0.1))}
)
_add(
    "objectives.LeaveOneOut",
    lambda gram, ridge: objectives.LeaveOneOut.of(gram, ridge),
    {"gram": v.gram("n"), "ridge": needed(v.real(0.1, 1.0))},
)

_KERNEL_PAIR = {
    "X": v.table("n", "d"),
    "y": v.table("n", "e"),
    "kernel": v.kernel(*_VECTOR_KERNELS),
    "kernel_y": v.kernel(*_VECTOR_KERNELS, None),
    "gamma": v.real(None, 0.5),
}
_function(metrics, "cka", {**_KERNEL_PAIR, "debiased": v.flag()})
_function(metrics, "hsic", {**_KERNEL_PAIR, "estimator": v.option("biased", "unbiased")})
_function(metrics, "foscttm", {"X": v.table("n", "d"), "y": v.table("n", "d")})
_function(
    metrics,
    "matching_accuracy",
    {"permutation": v.permutation("n"), "truth": v.permutation("n"), "duplicates": v.labels("n")},
)
SUBJECTS["metrics.matching_accuracy"].arguments["duplicates"] = Kind(
    v.labels("n").ordinary, v.labels("n").hostile
)
_function(
    metrics,
    "distance_preservation_quality",
    {
        "X": v.table("n", "d"),
        "grid": v.grid("n"),
        "p": v.real(1, 16),
        "wrap": v.flag(),
        "n_rows": v.count(None, 4),
        "random_state": v.seed(),
    },
)
_function(
    metrics, "neighbor_distance", {"X": v.table("n", "d"), "grid": v.grid("n"), "wrap": v.flag()}
)

_estimator(
    "orbits.OrbitLearner",
    {"X": v.table("n", "d"), "y": Kind(v.table("n", "d").ordinary, v.table("n", "d").hostile)},
    _search(
        n_generators=v.count(None, 1, 2),
        loss=v.option("squared", "logtrace"),
        structure=v.option("general", "symmetric", "skew", "diagonal"),
        pairs=Kind(
            lambda case, rng: v.pick(rng, ["knn", "prototype", "all", [(0, 1), (1, 2), (2, 3)]]),
            v.pairs("n", "n").hostile,
        ),
        pattern=Kind(lambda case, rng: None, v.table("d", "d").hostile),
        constraints=Kind(lambda case, rng: None, v.pairs("n", "n").hostile),
        prototype=Kind(lambda case, rng: v.pick(rng, [None, 0]), v.table("n", "d").hostile),
        n_neighbors=v.count(2, 8),
        n_components=v.count(None, 1, 2),
        lam=v.real(1.0, 10.0),
        eps1=v.real(1e-3, 0.1),
        eps2=v.real(1e-3, 0.1),
        solver=v.option("lbfgs", "mm"),
        n_init=v.count(1, 2),
    ),
    loose={"objective_", "objective_path_"},
)


@cache
def _learner() -> Any:
    turn = np.linspace(0, 1.5, 12)
    X = np.stack([np.cos(turn), np.sin(turn), turn * 0 + 1], axis=1)
    return unshuffle.OrbitLearner(1, random_state=0).fit(X)


_three = _eight_rows(v.table("n", "three"))
_method("orbits.OrbitLearner.transform", _learner, {"X": _three})
_method("orbits.OrbitLearner.score", _learner, {"X": _three})
_method("orbits.OrbitLearner.flow", _learner, {"x": v.stack("three")}, words={"X"})
_ONE_COEFFICIENT = Kind(
    lambda case, rng: v.numbers(rng, (case.sizes["n"], 1)), v.table("n", "k").hostile, needed=True
)
_method("orbits.OrbitLearner.inverse_transform", _learner, {"c": _ONE_COEFFICIENT})
_method("orbits.OrbitLearner.orbit", _learner, {"x": v.stack("three"), "c": _ONE_COEFFICIENT})
_method(
    "orbits.OrbitLearner.sample",
    _learner,
    {"n": v.count(1, 5), "random_state": v.seed()},
)

_function(
    datasets,
    "digit_clouds",
    {
        "n": v.count(2, 10),
        "digits": Kind(lambda case, rng: (3, 9), v.permutation("n").hostile),
        "n_points": v.count(5, 20),
        "random_state": v.seed(),
    },
)
_function(datasets, "digits_views", {"n": v.count(2, 20), "random_state": v.seed()})
_function(datasets, "sample_digits", {"n": v.count(2, 20), "random_state": v.seed()})
_function(
    datasets,
    "photo_halves",
    {
        "n": v.count(2, 10),
        "size": v.count(8, 16),
        "light": v.real(0.5, 1.0),
        "random_state": v.seed(),
    },
)
_function(
    datasets, "grid_points", {"rows": needed(v.count(1, 5)), "columns": needed(v.count(1, 5))}
)
_function(
    datasets,
    "make_paired_views",
    {
        "n": v.count(2, 20),
        "n_latent": v.count(1, 5),
        "n_features": Kind(lambda case, rng: (3, 4), v.permutation("two").hostile),
        "noise": v.real(0, 0.1),
        "bend": v.real(0, 0.5),
        "random_state": v.seed(),
    },
)
_function(
    datasets,
    "mixture_sets",
    {
        "n": v.count(4, 8),
        "n_classes": v.count(1, 2),
        "n_components": v.count(1, 2),
        "n_features": v.count(1, 2),
        "least_points": v.count(3, 5),
        "most_points": v.count(5, 9),
        "difference": v.real(0.03, 1.0),
        "random_state": v.seed(),
    },
)

_function(images, "rgb_to_lab", {"rgb": v.images("n")})
_function(
    images,
    "color_histogram",
    {
        "images": v.images("n"),
        "bins": Kind(
            lambda case, rng: (2, 3, 4),
            lambda case, rng: v.pick(
                rng, [(1000,) * 3, (0, 1, 2), 5, "8", (2, 2), None, (1.5,) * 3]
            ),
        ),
    },
)
_function(images, "color_texture", {"images": v.images("n")})
_function(
    images,
    "lab_pixels",
    {
        "images": v.images("n"),
        "dtype": Kind(
            lambda case, rng: v.pick(rng, [np.float32, float, "float64"]),
            lambda case, rng: v.pick(rng, [int, "junk", None, complex, object, 5, bool, "S3"]),
        ),
    },
)
_function(
    images,
    "describe",
    {
        "images": v.images("n", size=32),
        "features": v.option("color", "texture", "words"),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
_function(
    images,
    "visual_words",
    {
        "images": v.images("n", size=32),
        "n_words": v.count(2, 10),
        "random_state": v.seed(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
_SHEET = {
    "tile": v.count(4, 32),
    "gap": v.count(0, 2),
    "background": Kind(
        lambda case, rng: (0, 10, 255),
        lambda case, rng: v.pick(
            rng, [(1, 2), "red", None, (300, 0, 0), (-1, 0, 0), (np.nan,) * 3]
        ),
    ),
}
_function(images, "grid_sheet", {"images": v.images("n"), "grid": v.grid("n"), **_SHEET})
_function(
    images,
    "points_sheet",
    {"images": v.images("n"), "positions": v.table("n", "two", positive=True), **_SHEET},
)
_function(
    images,
    "matched_sheet",
    {
        "left": v.images("n"),
        "right": v.images("n"),
        "permutation": v.permutation("n"),
        "confidence": Kind(
            lambda case, rng: np.linspace(0, 1, case.sizes["n"]), v.stack("n").hostile
        ),
        "correct": Kind(lambda case, rng: np.arange(case.sizes["n"]) > 2, v.stack("n").hostile),
        "columns": v.count(None, 2),
        "height": v.count(8, 20),
        "max_pairs": v.count(3, 100),
    },
    words={"images"},
)
_COLORS = Kind(
    lambda case, rng: (0, 10, 255),
    lambda case, rng: v.pick(
        rng, [(1, 2), "red", (300, 0, 0), None, (np.nan,) * 3, np.ones((2, 3))]
    ),
)
_function(
    images,
    "morph_frames",
    {
        "points": v.stack("three", "n", "two"),
        "colors": _COLORS,
        "ground": _COLORS,
        "size": v.count(16, 40),
        "dot": v.real(None, 2.0),
    },
)


def _frames() -> list[Any]:
    from PIL import Image

    return [Image.new("RGB", (8, 8), (i * 40, 0, 0)) for i in range(3)]


_FRAMES = Kind(
    lambda case, rng: _frames(),
    lambda case, rng: v.pick(rng, [[], None, 5, "frames", [5], [None], _frames()[0]]),
    needed=True,
)
_function(images, "morph_strip", {"frames": _FRAMES, "columns": v.count(None, 2)})
_function(
    images,
    "save_gif",
    {
        "frames": _FRAMES,
        "path": v.output(".gif"),
        "seconds": v.real(0.5, 1.6),
        "pause": v.real(0, 0.6),
    },
)
_function(
    images,
    "save_sheet",
    {
        "sheet": Kind(
            lambda case, rng: _frames()[0],
            lambda case, rng: v.pick(rng, [None, 5, np.zeros((4, 4, 3)), "sheet"]),
            needed=True,
        ),
        "path": v.output(".png", ".jpg"),
    },
)
_function(
    images,
    "picture_points",
    {"path": v.path("0.png", "1.png"), "n_points": v.count(5, 50), "random_state": v.seed()},
)
_function(
    images,
    "read_image",
    {
        "path": v.path("0.png", "1.png"),
        "size": needed(v.count(8, 20)),
        "fit": v.option("stretch", "crop"),
    },
)
_function(
    images,
    "read_mask",
    {"path": v.path("0.png", "1.png"), "n_cells": v.count(None, 10), "invert": v.flag()},
)
_function(
    images,
    "read_features",
    {"path": v.path("features.npy"), "n_items": Kind(lambda c, r: 4, v.count(1).hostile, True)},
)
_function(
    images,
    "read_folder",
    {
        "folder": v.path(folder=True),
        "size": v.count(8, 20),
        "fit": v.option("stretch", "crop"),
        "recursive": v.flag(),
        "n_jobs": v.jobs(),
        "on_progress": v.callback(),
    },
)
_function(images, "visible_files", {"folder": v.path(folder=True)})
_function(
    images,
    "text_mask",
    {
        "text": Kind(
            lambda case, rng: v.pick(rng, ["A", "PAMI 2009", "two\nlines"]),
            lambda case, rng: v.pick(
                rng, ["", " ", "''", "\0", "🙂", "a" * 5000, None, 5, b"A", ["A"], "\ud800", "\n"]
            ),
            needed=True,
        ),
        "n_cells": v.count(None, 50, 300),
        "height": v.count(None, 12, 30),
        "margin": v.count(0, 1, 2),
    },
)
_function(
    images,
    "write_page",
    {
        "path": v.output(".html"),
        "images": v.images("n"),
        "grid": v.grid("n"),
        "names": Kind(
            lambda case, rng: [f"<b>{i}</b>" for i in range(case.sizes["n"])],
            v.texts("n").hostile,
            needed=True,
        ),
        "title": v.option("wall", "<script>"),
        "tile": v.count(8, 64),
    },
)


def _display(name: str, arguments: dict[str, Kind], **more: Any) -> None:
    """Hold what was found, then draw it."""

    def call(**given: Any) -> Any:
        import matplotlib.pyplot as plt

        methods = ("plot", *more.get("methods", ()))
        try:
            display = getattr(plotting, name).from_predictions(**given)
            for method in methods:
                getattr(display, method)()
        finally:
            plt.close("all")
        return None

    words = frozenset(more.get("words", ())) | _SETS
    _add(f"plotting.{name}", call, arguments, words=words)


_display(
    "AlignmentDisplay",
    {
        "bags": v.bags(equal=True),
        "permutations": Kind(
            lambda case, rng: np.tile(
                np.arange(len(v.bags(equal=True).ordinary(case, case.rng("bags"))[0])),
                (case.sizes["b"], 1),
            ),
            v.table("b", "d").hostile,
            needed=True,
        ),
    },
)
_display(
    "CollageDisplay",
    {"template": _template(), "grid": v.grid("n"), "tiles": v.images("n", size=4)},
)
_display(
    "GramDisplay",
    {"K": v.gram("n"), "labels": Kind(v.labels("n").ordinary, v.labels("n").hostile)},
)
_display(
    "LayoutDisplay",
    {
        "grid": v.grid("n"),
        "wrap": v.flag(),
        "values": Kind(v.stack("n").ordinary, v.stack("n").hostile),
    },
)
_display(
    "MatchDisplay",
    {
        "X": v.table("n", "d"),
        "y": v.table("n", "e"),
        "permutation": v.permutation("n"),
        "confidence": Kind(
            lambda case, rng: np.linspace(0, 1, case.sizes["n"]), v.stack("n").hostile
        ),
        "kernel": v.kernel("rbf", "linear"),
        "gamma": v.real(None, 0.5),
    },
    methods=("plot_kernels",),
)


def _mixtures(sets: Any) -> Any:
    return _fitted_kernel("ExpectedLikelihoodKernel")().mixtures(sets)


def _some_mixtures(case: Any, rng: Any) -> Any:
    # One mixture for each bag that the same case draws.
    sets = v.bags().ordinary(case, case.rng("bags"))
    return _mixtures([np.asarray(points, dtype=float) for points in sets])


_display(
    "MixtureDisplay",
    {
        "bags": v.bags(),
        "mixtures": Kind(_some_mixtures, v.texts("n").hostile, needed=True),
    },
)
_display(
    "OrbitDisplay",
    {
        "X": v.table("n", "two"),
        "generators": v.stack("k", "two", "two", scale=0.3),
        "prototype": v.stack("two"),
        "coefficients": v.table("n", "k"),
    },
)
_display(
    "TemplateDisplay",
    {
        "template": Kind(
            lambda case, rng: v.numbers(
                rng, (len(v.bags(equal=True).ordinary(case, case.rng("bags"))[0]), 2)
            ),
            v.table("n", "two").hostile,
            needed=True,
        ),
        "bags": v.bags(equal=True),
        "permutations": SUBJECTS["plotting.AlignmentDisplay"].arguments["permutations"],
    },
)


def _check_bag_estimator(**arguments: Any) -> Any:
    try:
        unshuffle.testing.check_bag_estimator(**arguments)
    except AssertionError:  # its answer where an estimator breaks a promise, or tol is too small
        return None


_add(
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
        "tol": v.real(1e-6),
        "on_fail": v.option("raise", "warn", None),
    },
)
