"""Every public callable gives one answer whatever holds its numbers, and leaves these alone.

The calls are in `tests/registry.py`.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import scipy
from PIL import Image
from scipy import sparse
from sklearn import config_context
from sklearn.utils.fixes import parse_version
from tests.registry import EXAMPLES, NAMES, NO_NUMBERS, SETS, Example, X, Y, fitted

from unshuffle import matching, svm

mpl.use("Agg")


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
    public = set(NAMES) - {
        "images.write_page"
    }  # writes a file; its arrays are checked as a sheet's are
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
