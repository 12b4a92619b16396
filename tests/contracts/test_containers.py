"""Every public callable gives one answer whatever holds its numbers, and leaves these alone.

`EXAMPLES` lists each public name that takes numbers with a small call; `NO_NUMBERS` lists the
others. A name in neither fails `test_every_public_name_is_listed`.
"""

import importlib
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import scipy
from PIL import Image
from scipy import sparse
from sklearn import config_context
from sklearn.utils.fixes import parse_version

from unshuffle import (
    alignment,
    assignment,
    images,
    kernels,
    layout,
    matching,
    metrics,
    orbits,
    plotting,
    preprocessing,
    svm,
)

mpl.use("Agg")
ROOMS = [
    "alignment",
    "assignment",
    "datasets",
    "encoders",
    "images",
    "kernels",
    "layout",
    "matching",
    "metrics",
    "orbits",
    "plotting",
    "preprocessing",
    "svm",
    "testing",
]

NO_NUMBERS = {
    "results, records and bases": "assignment.Assignment layout.Summary kernels.Mixture "
    "kernels.SetKernel "
    "datasets.LabeledSets datasets.Paired images.Drawing images.ImageCollection "
    "encoders.Encoder matching.DoubtWarning testing.BagCheckResult",
    "sizes and seeds": "datasets.digit_sets datasets.digits_views datasets.grid_points "
    "datasets.make_paired_views datasets.mixture_sets datasets.photo_halves "
    "datasets.sample_digits layout.rectangle_for",
    "files, pictures and texts": "encoders.has_content encoders.is_encoder "
    "encoders.load_encoder images.default_cache images.morph_strip images.picture_points "
    "images.read_features images.read_folder images.read_image images.read_mask images.save_gif "
    "images.save_sheet images.text_mask images.text_tiles images.visible_files "
    "kernels.text_features kernels.text_kernel",
    "estimators": "testing.check_bag_estimator testing.parametrize_with_bag_checks",
}

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    """Numbers that single precision holds exactly."""
    return np.round(64 * RNG.normal(size=shape)) / 64


def gram(n: int) -> np.ndarray:
    points = numbers(n, 3)
    return np.round(64 * points @ points.T) / 64 + np.eye(n)


X, Y, Z = numbers(24, 3), numbers(24, 4), numbers(24, 3)
COUNTS = np.abs(numbers(24, 3))
K, L, M = gram(12), gram(12), gram(12)
COST = numbers(12, 12)
ORDER = RNG.permutation(12)
SETS = [numbers(5, 2) for _ in range(8)]
LABELS = np.arange(8) % 2
PICTURES = RNG.integers(0, 256, (9, 16, 16, 3), dtype=np.uint8)
GRID = np.arange(9).reshape(3, 3)
ARC = (
    np.round(2**12 * np.stack([np.cos(t := np.linspace(0.2, 1.4, 12)), np.sin(t)], axis=1)) / 2**12
)
MATRICES, VECTORS, OTHERS = numbers(6, 3, 3) / 4, numbers(6, 3), numbers(6, 3)
GENERATORS, COEFFICIENTS = numbers(2, 3, 3) / 4, numbers(6, 2)
SYMMETRIC = MATRICES + MATRICES.transpose(0, 2, 1)
BAGS = numbers(6, 5, 2)


@dataclass
class Example:
    """One call: `make` of the inputs, and what to look at in what it gives."""

    make: Callable[..., Any]
    inputs: tuple[Any, ...]
    look: Callable[[Any], Any] = lambda made: made
    without: tuple[str, ...] = ()


def fitted(*names: str) -> Callable[[Any], Any]:
    return lambda made: [getattr(made, name) for name in names]


def set_kernel(kernel: Any) -> Example:
    return Example(
        lambda bags: deepcopy(kernel).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.gram(SETS[:3], SETS)),
    )


def drawn(display: Any) -> Any:
    return [value for name, value in vars(display).items() if not name.endswith("_")]


EXAMPLES: dict[str, Example] = {
    "alignment.MinimumVolumePCA": Example(
        lambda bags: alignment.MinimumVolumePCA(2, random_state=0).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.permutations_, made.morph(0, 1, 0.5)),
    ),
    "alignment.match_shapes": Example(alignment.match_shapes, (X, Z)),
    "assignment.quadratic_assignment": Example(
        lambda A, B, cost, frozen: assignment.quadratic_assignment(
            A, B, cost=cost, frozen=frozen, n_init=3, random_state=0
        ),
        (COST, COST.T.copy(), COST, np.array([[0, 3]])),
        lambda made: list(made.values()),
    ),
    "assignment.soft_assignment": Example(assignment.soft_assignment, (COST,)),
    "assignment.solve_assignment": Example(
        lambda cost, frozen, prices: assignment.solve_assignment(
            cost, frozen=frozen, prices=prices
        ),
        (COST, np.array([[0, 3]]), np.zeros(12)),
    ),
    "images.color_histogram": Example(images.color_histogram, (PICTURES,)),
    "images.color_texture": Example(images.color_texture, (PICTURES,)),
    "images.describe": Example(lambda given: images.describe(given)[0], (PICTURES,)),
    "images.grid_sheet": Example(images.grid_sheet, (PICTURES, GRID)),
    "images.lab_pixels": Example(images.lab_pixels, (PICTURES,)),
    "images.matched_sheet": Example(
        images.matched_sheet, (PICTURES, PICTURES[::-1].copy(), np.arange(9)[::-1].copy())
    ),
    "images.morph_frames": Example(
        lambda path: images.morph_frames(path, size=32), (numbers(3, 6, 2),)
    ),
    "images.points_sheet": Example(
        images.points_sheet, (PICTURES, numbers(9, 2)), without=("AnnData",)
    ),
    "images.rgb_to_lab": Example(images.rgb_to_lab, (PICTURES,)),
    "images.visual_words": Example(
        lambda given: images.visual_words(given, n_words=4, random_state=0), (PICTURES,)
    ),
    "kernels.BhattacharyyaKernel": set_kernel(kernels.BhattacharyyaKernel()),
    "kernels.ExpectedLikelihoodKernel": set_kernel(
        kernels.ExpectedLikelihoodKernel(2, base_kernel=None, random_state=0)
    ),
    "kernels.FisherVectorKernel": set_kernel(
        kernels.FisherVectorKernel(n_components=2, random_state=0)
    ),
    "kernels.MaxMapKernel": set_kernel(kernels.MaxMapKernel()),
    "kernels.MeanMapKernel": set_kernel(kernels.MeanMapKernel()),
    "kernels.SetKernelSum": set_kernel(
        kernels.SetKernelSum([kernels.MeanMapKernel(), kernels.SlicedWassersteinKernel()])
    ),
    "kernels.SlicedWassersteinKernel": set_kernel(kernels.SlicedWassersteinKernel(random_state=0)),
    "kernels.SpectralPower": Example(kernels.SpectralPower, (K,), lambda made: made(0.5)),
    "kernels.center": Example(kernels.center, (K,)),
    "kernels.chi2_kernel": Example(kernels.chi2_kernel, (COUNTS, COUNTS[:5])),
    "kernels.combined_gram": Example(
        lambda *each: kernels.combined_gram(list(each), ["rbf", "chi2"]), (X, COUNTS)
    ),
    "kernels.geodesic_distances": Example(kernels.geodesic_distances, (X,)),
    "kernels.geodesic_kernel": Example(kernels.geodesic_kernel, (X,)),
    "kernels.local_kernel": Example(kernels.local_kernel, (X,)),
    "kernels.gram_matrix": Example(
        lambda X, K: (kernels.gram_matrix(X), kernels.gram_matrix(K, "precomputed")), (X, K)
    ),
    "kernels.laplacian_kernel": Example(kernels.laplacian_kernel, (X, Z)),
    "kernels.linear_kernel": Example(kernels.linear_kernel, (X, Z)),
    "kernels.median_gamma": Example(kernels.median_gamma, (np.abs(K),)),
    "kernels.nystroem_factors": Example(
        lambda X: kernels.nystroem_factors(X, "chi2", 5, random_state=0), (COUNTS,)
    ),
    "kernels.pivoted_cholesky": Example(lambda K: kernels.pivoted_cholesky(K, 3), (K,)),
    "kernels.rbf_kernel": Example(kernels.rbf_kernel, (X, Z)),
    "kernels.spectral_power": Example(lambda K: kernels.spectral_power(K, 0.5), (K,)),
    "kernels.spectral_power_path": Example(
        lambda K: list(kernels.spectral_power_path(K, [1.0, 0.5])), (K,)
    ),
    "kernels.unit_norm": Example(kernels.unit_norm, (K,)),
    "kernels.zero_diagonal": Example(kernels.zero_diagonal, (K,)),
    "layout.Collage": Example(
        lambda template, tiles: layout.Collage(template, random_state=0).fit(tiles),
        (PICTURES[0], PICTURES),
        lambda made: (
            made.grid_,
            made.cost_,
            made.render(PICTURES),
            plotting.CollageDisplay.from_estimator(made, PICTURES).template,
        ),
    ),
    "layout.GridLayout": Example(
        lambda X, frozen: layout.GridLayout((5, 6), quality="classic", random_state=0).fit(
            X, frozen=frozen
        ),
        (X, np.array([[0, 3]])),
        lambda made: (made.grid_, deepcopy(made).add(Z[:2]).grid_, deepcopy(made).score_),
    ),
    "layout.Positions": Example(
        lambda grid, points: (
            layout.Positions(grid, list("abcdefghi")),
            layout.Positions(np.arange(9), list("abcdefghi"), points),
        ),
        (GRID, numbers(9, 2)),
        lambda made: [(each.grid, each.points) for each in made],
        without=("AnnData",),
    ),
    "layout.choose_representatives": Example(lambda X: layout.choose_representatives(X, 3), (X,)),
    "layout.look_alikes": Example(
        lambda X, K: (
            layout.look_alikes(X, 3),
            layout.look_alikes(K, 3, kernel="precomputed"),
        ),
        (X, K),
    ),
    "layout.sort_grid": Example(
        lambda grid: layout.sort_grid(grid, random_state=0), (numbers(3, 4, 6),)
    ),
    "layout.summarize": Example(lambda X: layout.summarize(X, 3, kernel="geodesic"), (X,)),
    "matching.KernelizedSorting": Example(
        lambda X, y, frozen: matching.KernelizedSorting("geodesic", "rbf").fit(
            X, y, frozen=frozen
        ),
        (X, Y, np.array([[0, 3]])),
        lambda made: (
            made.permutation_,
            made.confidence_,
            made.objective_,
            made.soft_matches(),
            made.candidates(3),
            made.questions(3),
        ),
    ),
    "matching.Matches": Example(
        lambda p, sure, best: matching.Matches(
            p, sure, [str(i) for i in range(12)], [str(i) for i in range(12)], best
        ),
        (ORDER, np.abs(COST[0]) / 16, np.argsort(COST, axis=1)[:, :3]),
        lambda made: (made.pairs, made.confidence, made.candidates),
        without=("list", "object array"),
    ),
    "matching.MultiwaySorting": Example(
        lambda *each: matching.MultiwaySorting().fit(list(each)),
        (X, Y, Z),
        fitted("permutations_", "objective_"),
    ),
    "metrics.cka": Example(metrics.cka, (X, Y)),
    "metrics.distance_preservation_quality": Example(
        metrics.distance_preservation_quality, (X[:9], GRID)
    ),
    "metrics.foscttm": Example(metrics.foscttm, (X, Z)),
    "metrics.hsic": Example(metrics.hsic, (X, Y)),
    "metrics.matching_accuracy": Example(metrics.matching_accuracy, (ORDER, np.arange(12))),
    "metrics.neighbor_distance": Example(metrics.neighbor_distance, (X[:9], GRID)),
    "orbits.OrbitLearner": Example(
        lambda X: orbits.OrbitLearner(1, random_state=0).fit(X),
        (ARC,),
        lambda made: (
            made.generators_,
            made.prototype_,
            made.transform(ARC),
            made.sample(3, random_state=0),
        ),
    ),
    "plotting.AlignmentDisplay": Example(
        lambda bags, orders, path: plotting.AlignmentDisplay.from_predictions(
            bags, orders, log_volume_path=path, objective_path=path
        ),
        (SETS, np.tile(np.arange(5), (8, 1)), COST[0]),
        drawn,
    ),
    "plotting.CollageDisplay": Example(
        plotting.CollageDisplay.from_predictions, (PICTURES[0], GRID, PICTURES), drawn
    ),
    "plotting.GramDisplay": Example(
        lambda K, labels: plotting.GramDisplay.from_predictions(K, labels, order=np.arange(12)),
        (K, np.arange(12) % 2),
        drawn,
    ),
    "plotting.LayoutDisplay": Example(
        lambda grid, values, X: plotting.LayoutDisplay.from_predictions(grid, values=values, X=X),
        (GRID, np.abs(COST[0, :9]), X[:9]),
        lambda made: (*drawn(made), made.neighbor_distances),
    ),
    "plotting.MatchDisplay": Example(
        lambda X, y, p, sure: plotting.MatchDisplay.from_predictions(X, y, p, confidence=sure),
        (X[:12], Y[:12], ORDER, np.abs(COST[0]) / 16),
        drawn,
    ),
    "plotting.MixtureDisplay": Example(
        lambda bags, weights, means, spreads: plotting.MixtureDisplay.from_predictions(
            bags, [(weights, means, spreads)] * 8
        ),
        (SETS, np.ones(1), numbers(1, 2), np.eye(2)[None]),
        drawn,
        without=("AnnData",),
    ),
    "plotting.OrbitDisplay": Example(
        plotting.OrbitDisplay.from_predictions,
        (ARC, numbers(1, 2, 2), ARC[0], numbers(12, 1)),
        drawn,
    ),
    "plotting.TemplateDisplay": Example(
        plotting.TemplateDisplay.from_predictions,
        (SETS[0], SETS, np.tile(np.arange(5), (8, 1)), LABELS),
        drawn,
        without=("AnnData",),
    ),
    "preprocessing.NeighborhoodShape": Example(
        lambda bags: preprocessing.NeighborhoodShape(3).fit(bags).transform(bags), (SETS,)
    ),
    "preprocessing.SetNormalizer": Example(
        lambda bags: preprocessing.SetNormalizer(shear=True).fit(bags).transform(bags), (SETS,)
    ),
    "svm.PermutationInvariantSVC": Example(
        lambda bags, y: svm.PermutationInvariantSVC(random_state=0).fit(bags, y),
        (SETS, LABELS),
        lambda made: (made.decision_function(SETS), made.templates_, made.permutations_),
    ),
    "svm.SetAligner": Example(
        lambda bags: svm.SetAligner(random_state=0).fit(bags),
        (SETS,),
        lambda made: (made.transform(SETS), made.template_, made.permutations_),
    ),
}


class Annotated:
    """Stands in for an AnnData object, of which only these parts are used."""

    def __init__(self, X: Any) -> None:
        self.X, self.obsm, self.shape = X, {}, X.shape
        self.obs_names = [f"cell {i}" for i in range(X.shape[0])]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> "Annotated":
        return Annotated(self.X[rows])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise ValueError(
            "setting an array element with a sequence. The requested array would "
            "exceed the maximum number of dimension of 64."
        )


class Foreign:
    """An array of another library: the array API standard, and no length."""

    def __init__(self, values: Any) -> None:
        self._values = np.array(values)
        self.shape, self.ndim, self.dtype = (
            self._values.shape,
            self._values.ndim,
            self._values.dtype,
        )
        self.device = "cpu"

    @staticmethod
    def asarray(values: Any, device: str) -> "Foreign":
        return Foreign(values)

    @staticmethod
    def take(values: "Foreign", rows: "Foreign", axis: int) -> "Foreign":
        return Foreign(np.take(np.asarray(values), np.asarray(rows), axis=axis))

    def __array_namespace__(self, api_version: Any = None) -> Any:
        return Foreign

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._values, dtype=dtype)


class PolarsFrame(Annotated):
    """Stands in for a data frame of Polars: rows are taken by brackets, not by `iloc`."""

    __module__ = "polars.dataframe.frame"

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, X.shape

    def __getitem__(self, rows: Any) -> "PolarsFrame":
        return PolarsFrame(self.X[rows])


def strided(array: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * length for length in array.shape], dtype=array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def backwards(array: np.ndarray) -> np.ndarray:
    turn = tuple(slice(None, None, -1) for _ in array.shape)
    return array[turn].copy()[turn]


def unaligned(array: np.ndarray) -> np.ndarray:
    shifted = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
    view = shifted.view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def memory_map(array: np.ndarray, path: Any) -> np.ndarray:
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def frame(array: np.ndarray) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(array, columns=[f"c{j}" for j in range(array.shape[1])])


# Each with the kinds of numbers it is for, and for how many axes (None: any).
FORMS: dict[str, tuple[Callable[..., Any], str, int | None]] = {
    "Fortran order": (np.asfortranarray, "fiu", None),
    "strided": (strided, "fiu", None),
    "backwards": (backwards, "fiu", None),
    "read-only": (read_only, "fiu", None),
    "memory map": (memory_map, "fiu", None),
    "unaligned": (unaligned, "fi", None),
    "big-endian": (lambda array: array.astype(array.dtype.newbyteorder(">")), "fi", None),
    "single": (lambda array: array.astype(f"{array.dtype.kind}4"), "fi", None),
    "long double": (lambda array: array.astype(np.longdouble), "f", None),
    "object array": (lambda array: array.astype(object), "f", 2),
    "list": (lambda array: array.tolist(), "fi", None),
    "data frame": (frame, "f", 2),
    "AnnData": (Annotated, "f", 2),
    "array API": (Foreign, "fiu", None),
}


def held(value: Any, form: str, path: Any) -> Any:
    """The same numbers in another container, where that can hold them."""
    if isinstance(value, list):
        return [held(each, form, path / str(i)) for i, each in enumerate(value)]
    make, kinds, n_axes = FORMS[form]
    if value.dtype.kind not in kinds or n_axes not in (None, value.ndim):
        return value.copy()
    if form != "memory map":
        return make(value)
    path.mkdir(parents=True, exist_ok=True)
    return make(value, path / "numbers.npy")


def flat(value: Any) -> list[Any]:
    """All arrays and numbers in a result, in order."""
    if isinstance(value, Annotated):
        return [np.asarray(value.X)]
    if isinstance(value, Image.Image):
        return [np.asarray(value)]
    if sparse.issparse(value):
        return [value.toarray()]
    if is_dataclass(value):
        return flat([getattr(value, each.name) for each in fields(value)])
    if isinstance(value, list | tuple):
        return [found for each in value for found in flat(each)]
    return [] if value is None else [np.asarray(value)]


def same(first: Any, second: Any) -> bool:
    one, other = flat(first), flat(second)
    return len(one) == len(other) and all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(one, other, strict=True)
    )


def run(example: Example, inputs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small examples are ambiguous, and do not settle
        return example.make(*inputs)


def looked_at(example: Example, made: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return deepcopy(example.look(made))


def test_every_public_name_is_listed():
    listed = set(EXAMPLES) | {name for names in NO_NUMBERS.values() for name in names.split()}
    public = {
        f"{room}.{name}"
        for room in ROOMS
        for name in importlib.import_module(f"unshuffle.{room}").__all__
    }
    public -= {"images.write_page"}  # writes a file; its arrays are checked as a sheet's are
    assert sorted(public - listed) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_container_gives_the_same_answer_and_is_left_alone(name, tmp_path):
    example = EXAMPLES[name]
    expected = looked_at(example, run(example, deepcopy(example.inputs)))
    wrong, changed = [], []
    for form in FORMS:
        if form in example.without:
            continue
        given = [held(each, form, tmp_path / str(i)) for i, each in enumerate(example.inputs)]
        before = deepcopy(flat(given))
        if not same(looked_at(example, run(example, given)), expected):
            wrong.append(form)
        if not same(flat(given), before):
            changed.append(form)
    assert (wrong, changed) == ([], [])


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_was_made_does_not_change_with_the_arrays_it_was_made_of(name):
    example = EXAMPLES[name]
    given = deepcopy(example.inputs)
    made = run(example, given)
    before = looked_at(example, deepcopy(made))
    for array in (each for one in given for each in (one if isinstance(one, list) else [one])):
        array[...] = 0
    assert same(looked_at(example, made), before)


@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="scikit-learn refuses dispatch",
)
@pytest.mark.parametrize(
    "name",
    [
        "assignment.solve_assignment",
        "kernels.FisherVectorKernel",
        "kernels.rbf_kernel",
        "layout.GridLayout",
        "matching.KernelizedSorting",
        "matching.MultiwaySorting",
        "svm.PermutationInvariantSVC",
    ],
)
def test_dispatch_on_the_kind_of_array_changes_no_answer(name, monkeypatch):
    example = EXAMPLES[name]
    expected = looked_at(example, run(example, deepcopy(example.inputs)))
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        for form in (np.array, Foreign):
            given = [
                [form(part) for part in each] if isinstance(each, list) else form(each)
                for each in example.inputs
            ]
            assert same(looked_at(example, run(example, given)), expected)


@pytest.mark.parametrize("form", [Foreign, Annotated, PolarsFrame])
def test_matched_items_come_back_in_the_container_they_came_in(form):
    order = np.random.default_rng(0).permutation(len(X))
    sorting = matching.KernelizedSorting(trust=False).fit(X, X[order])
    given = form(X[order])
    found = sorting.reorder(given)
    assert type(found) is form
    assert np.array_equal(*(flat(each)[0] for each in (found, form(X))))


@pytest.mark.parametrize("sides", ["X", "y", "both"])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, np.asarray])
@pytest.mark.parametrize(
    "options", [{}, {"kernel": "rbf"}, {"method": "low_rank"}], ids=["auto", "rbf", "low_rank"]
)
def test_annotated_tables_are_matched_as_what_they_hold(options, kind, sides):
    rng = np.random.default_rng(1)
    table = np.where(rng.random((30, 6)) < 0.6, rng.random((30, 6)), 0.0)
    tables = [table, table[rng.permutation(30)]]
    wrapped = [sides in (side, "both") for side in "Xy"]
    plain = [kind(each) if wrap else each for each, wrap in zip(tables, wrapped, strict=True)]
    given = [Annotated(each) if wrap else each for each, wrap in zip(plain, wrapped, strict=True)]
    found, expected = (
        matching.KernelizedSorting(trust=False, **options).fit(*each) for each in (given, plain)
    )
    assert np.array_equal(found.permutation_, expected.permutation_)
    assert np.array_equal(found.transform(given[0]), expected.transform(plain[0]))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, np.asarray])
def test_annotated_tables_in_a_list_are_sets(kind):
    found = svm.SetAligner(random_state=0).fit([Annotated(kind(points)) for points in SETS])
    expected = svm.SetAligner(random_state=0).fit(SETS)
    assert np.array_equal(found.transform(SETS), expected.transform(SETS))


def test_a_frame_and_an_array_of_cells_are_matched_alike(shared_data):
    pandas = pytest.importorskip("pandas")
    with np.load(shared_data("snareseq.npz")) as data:
        X, y = data["rna"][:300], data["atac"][:300]
    sorting = Example(
        lambda X, y: matching.KernelizedSorting("geodesic", n_init=4).fit(X, y),
        (X, y),
        fitted("permutation_", "confidence_"),
    )
    frames = pandas.DataFrame(X), pandas.DataFrame(y)
    turned = np.asfortranarray(X, dtype=np.float64), np.asfortranarray(y, dtype=np.float64)
    expected = looked_at(sorting, run(sorting, (X, y)))
    assert same(looked_at(sorting, run(sorting, frames)), expected)
    assert same(looked_at(sorting, run(sorting, turned)), expected)


def test_named_cells_keep_their_names():
    sorting = Example(lambda X, y: matching.KernelizedSorting().fit(X, y), (Annotated(X), Y))
    matches = run(sorting, sorting.inputs).matches_
    assert matches.names_x[:2] == ["cell 0", "cell 1"]
    assert matches.names_y[:2] == ["0", "1"]
