import json
import os
import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from unshuffle._files import typed as _typed_files
from unshuffle._files.paths import BadInput
from unshuffle._files.tables import TableOptions, read_table
from unshuffle._files.typed import read_anndata
from unshuffle.matching import Matches

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NUMBERS = np.random.RandomState(0).randn(6, 3)
COUNTS = sparse.random(6, 5, density=0.5, format="csr", random_state=0, dtype=np.float32)
NAMES = [f"cell{i}" for i in range(6)]


@pytest.fixture
def parquet(tmp_path):
    """Write columns to a file and read it as a table."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def call(columns, **reading):
        path = tmp_path / "table.parquet"
        parquet.write_table(pa.table(columns), path)
        return read_table(path, TableOptions(**reading))

    return call


def write_anndata(path, *, index=NAMES, **parts):
    """An .h5ad file as AnnData writes it; parts are X, obsm_NAME and layers_NAME."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        obs = file.create_group("obs")
        obs.attrs.update({"_index": "barcode", "encoding-type": "dataframe"})
        obs.create_dataset("barcode", data=index, dtype=h5py.string_dtype())
        for name, values in parts.items():
            place = name.replace("_", "/", 1)
            if not sparse.issparse(values):
                file[place] = values
                continue
            group = file.create_group(place)
            kind = {"encoding-type": f"{values.format}_matrix", "encoding-version": "0.1.0"}
            group.attrs.update({**kind, "shape": values.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(values, part)
    return path


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_parquet_file_cannot_run_code(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    made = tmp_path / "made"
    hidden = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Payload(made)),
    }
    schema = pa.schema([pa.field("x", pa.float64(), metadata=hidden)])
    path = tmp_path / "evil.parquet"
    parquet.write_table(pa.table({"x": NUMBERS[:, 0]}, schema=schema), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read_table(path, TableOptions())
    np.testing.assert_array_equal(table.values[:, 0], NUMBERS[:, 0])
    assert not made.exists()


def test_a_parquet_file_is_not_opened_by_a_library_that_runs_code_in_it(
    parquet, tmp_path, monkeypatch
):
    import pyarrow

    parquet({"x": NUMBERS[:, 0], "y": NUMBERS[:, 1]})
    monkeypatch.setattr(pyarrow, "__version__", "14.0.0")
    with pytest.raises(BadInput, match=r"pyarrow 14\.0\.1 or newer, not 14\.0\.0.*pip install"):
        read_table(tmp_path / "table.parquet", TableOptions())


def test_columns_in_single_precision_stay_so(parquet):
    single = NUMBERS.astype(np.float32)
    table = parquet({"x": single[:, 0], "y": single[:, 1]})
    assert table.values.dtype == np.float32
    np.testing.assert_array_equal(table.values, single[:, :2])
    mixed = parquet({"x": single[:, 0], "y": NUMBERS[:, 1]})
    assert mixed.values.dtype == np.float64
    np.testing.assert_array_equal(mixed.values[:, 1], NUMBERS[:, 1])


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (["p", "q", "r", "s", "t", "u"], list("pqrstu")),
        (np.arange(7, 13), [str(i) for i in range(7, 13)]),
        (np.array([253, 254, 255, 0, 1, 2], dtype=np.uint8), [""] * 6),
        (np.arange(6.0), [""] * 6),
        (np.arange(-1, 5), [""] * 6),
        (["1", "5", "2", "9", "4", "7"], [""] * 6),
    ],
)
def test_names_are_found_by_the_rules_for_csv(parquet, first, names):
    table = parquet({"what": first, "x": NUMBERS[:, 0]})
    assert table.names == names
    assert table.columns == (["what", "x"] if names == [""] * 6 else ["x"])


def test_a_column_headed_id_names_the_rows_wherever_it_is(parquet):
    table = parquet({"x": NUMBERS[:, 0], "id": [9, 4, 7, 1, 0, 2]})
    assert (table.names_from, table.names[:2], table.columns) == ("id", ["9", "4"], ["x"])
    song = parquet({"x": NUMBERS[:, 0], "key": [7, 7, 2, 7, 1, 2]})
    assert song.columns == ["x", "key"], "the key of a song is a measured number"
    everything = parquet({"x": NUMBERS[:, 0], "id": [9, 4, 7, 1, 0, 2]}, names=False)
    np.testing.assert_array_equal(everything.values[:, 1], [9, 4, 7, 1, 0, 2])


def test_an_index_of_pandas_names_the_rows(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "frame.parquet"
    for name in (None, "gene"):
        frame = pd.DataFrame(NUMBERS, index=pd.Index(NAMES, name=name), columns=list("xyz"))
        frame.to_parquet(path)
        table = read_table(path)
        assert (table.names, table.columns) == (NAMES, ["x", "y", "z"])
        np.testing.assert_array_equal(table.values, NUMBERS)


def test_other_types_become_numbers_or_are_refused(parquet):
    pa = pytest.importorskip("pyarrow")
    x = pa.array(NUMBERS[:, 0])
    flags = pa.array([True, False, None, True, False, True])
    levels = pa.array(["p", "q", "r", "s", "p", "q"]).dictionary_encode()
    table = parquet(
        {"level": levels, "x": x, "y": pa.array([1, 2, 3, 4, 5, 7]).cast(pa.decimal128(21, 2))}
    )
    assert (table.names[4], table.columns) == ("p", ["x", "y"])
    np.testing.assert_array_equal(table.values[:, 1], [1, 2, 3, 4, 5, 7])
    with pytest.raises(BadInput, match=r"has 1 missing .* row 3, column 'flag'"):
        parquet({"x": x, "flag": flags})
    with pytest.raises(BadInput, match=r"row 1: column 'day' holds '2020-01-01"):
        parquet({"x": x, "day": pa.array([18262] * 6).cast("int32").cast("date32")})
    with pytest.raises(BadInput, match=r"row 1: column 'lists' holds '\[1, 2\]'"):
        parquet({"x": x, "lists": [[1, 2]] * 6})
    with pytest.raises(BadInput, match="is empty"):
        parquet({"x": np.zeros(0)})


def test_every_part_of_an_anndata_file_can_be_read(tmp_path):
    parts = {"X": COUNTS, "obsm_X_pca": NUMBERS, "layers_raw": COUNTS.tocsc()}
    path = write_anndata(tmp_path / "a.h5ad", **parts)
    for key, expected in zip(("X", "obsm:X_pca", "layer:raw"), parts.values(), strict=True):
        values, names = read_anndata(path, key)
        assert names == NAMES
        assert values.dtype == expected.dtype
        assert sparse.issparse(values) == sparse.issparse(expected)
        if sparse.issparse(values):
            assert values.format == "csr"
            values, expected = values.toarray(), expected.toarray()
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("obsm:X_umap", r"has no obsm:X_umap\. It has X, obsm:X_pca, obsm:image, obsm:words\."),
        ("layer:raw", r"has no layer:raw"),
        ("layers:raw", r"--key layers:raw is not understood\. Give --key X, --key obsm:NAME or"),
        ("obsm:", "is not understood"),
        ("obsm:../X", "has no obsm:../X"),
        ("uns", "is not understood"),
        ("obsm:image", r"obsm:image of .* has 3 dimension\(s\), shape \(6, 2, 2\)"),
        ("obsm:words", r"obsm:words of .* holds \|S1 values"),
    ],
)
def test_parts_that_are_not_there_or_no_matrix_are_refused(tmp_path, key, message):
    words = np.full((6, 2), b"w")
    parts = {"X": COUNTS, "obsm_X_pca": NUMBERS, "obsm_image": np.zeros((6, 2, 2))}
    path = write_anndata(tmp_path / "a.h5ad", **parts, obsm_words=words)
    with pytest.raises(BadInput, match=message):
        read_anndata(path, key)


def test_damaged_anndata_files_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5ad"
    path.write_bytes(b"\x89HDF\r\n\x1a\n and no more")
    with pytest.raises(BadInput, match="cannot be read as AnnData"):
        read_anndata(path, "X")
    with h5py.File(path, "w") as file:
        file["X"] = NUMBERS
    with pytest.raises(BadInput, match="is not an AnnData file: it has no obs"):
        read_anndata(path, "X")
    with h5py.File(path, "w") as file:
        file["X"], file["obs"] = NUMBERS, np.arange(6)
    with pytest.raises(BadInput, match="cannot be read as AnnData"):
        read_anndata(path, "X")
    write_anndata(path, X=NUMBERS, index=NAMES[:4])
    with pytest.raises(BadInput, match=r"X of .* has 6 rows, and obs names 4"):
        read_anndata(path, "X")
    write_anndata(path, X=COUNTS)
    with h5py.File(path, "a") as file:
        file["X/indices"][0] = 99
    with pytest.raises(BadInput, match=r"X of .* is damaged"):
        read_anndata(path, "X")
    with h5py.File(write_anndata(path), "a") as file:
        # A few bytes that claim to be petabytes.
        file.create_dataset("X", shape=(10**8, 10**7), chunks=(1024, 1024), dtype="f8")
    with pytest.raises(MemoryError, match=r"X of .* needs 8,000,000\.0 GB"):
        read_anndata(path, "X")


def test_a_missing_value_in_an_anndata_file_is_named(tmp_path):
    bad = COUNTS.copy()
    bad.data[-1] = np.nan
    row, column = bad.tocoo().row[-1], bad.tocoo().col[-1]
    path = write_anndata(tmp_path / "a.h5ad", X=bad)
    with pytest.raises(BadInput, match=rf"row {row + 1} \(cell{row}\), column '{column + 1}'"):
        read_table(path)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(BadInput, match=r"needs h5py: pip install 'unshuffle\[anndata\]'"):
        read_anndata(tmp_path / "a.h5ad", "X")

    def missing(what):
        raise ImportError(f"{what} needs pyarrow")

    monkeypatch.setattr(_typed_files, "import_parquet", missing)
    with pytest.raises(BadInput, match="needs pyarrow"):
        _typed_files.read_parquet(tmp_path / "a.parquet")


@pytest.fixture
def cells(tmp_path, arrays):
    """The arrays of the other tests as parts of AnnData files, and the truth."""
    X, y = (np.load(path) for path in arrays[:2])
    rng = np.random.RandomState(0)
    for name, values in (("a", X), ("b", y)):
        index = [f"{name}{i}" for i in range(len(values))]
        noise = sparse.random(len(values), 9, density=0.3, format="csr", random_state=rng)
        write_anndata(tmp_path / f"{name}.h5ad", index=index, X=noise, obsm_X_pca=values)
    return tmp_path / "a.h5ad", tmp_path / "b.h5ad", arrays[2]


def test_anndata_files_are_matched_by_the_part_asked_for(run, cells, arrays):
    a, b, truth = cells
    answer = json.loads(run("match", a, b, "--key", "obsm:X_pca", "--json").stdout)
    assert [row["name_x"] for row in answer["pairs"]] == [f"a{i}" for i in range(40)]
    assert np.mean([row["index_y"] for row in answer["pairs"]] == truth) > 0.8
    assert answer["tables"]["x"]["names"] == "obs"
    again = run("match", a, arrays[1], "--key", "obsm:X_pca", "--json")
    assert [row["index_y"] for row in json.loads(again.stdout)["pairs"]] == [
        row["index_y"] for row in answer["pairs"]
    ], "one --key is for the AnnData files among the two"


def test_sparse_parts_are_compared_as_they_are(run, cells):
    a, b, _ = cells
    result = run("match", a, b, "--json")
    assert json.loads(result.stdout)["scaling"] == "as given"
    assert "9 columns of X (sparse) compared" in result.stderr
    assert "--features" not in result.stderr, "no advice that would be refused"
    assert run("match", a, b, "--kernel", "linear", "-q").exit_code == 0
    refused = run("match", a, b, "--features", "ranks")
    assert refused.exit_code == 2
    assert "needs dense numbers, and" in refused.stderr
    assert "--features given, or another --key" in refused.stderr


@pytest.mark.parametrize(
    ("paths", "options", "message"),
    [
        ("ab", ["--key", "X"] * 3, "--key is given 3 times. Give it once, or twice"),
        ("cd", ["--key", "X"], "c.npy is not one. Leave it out."),
        ("ad", ["--key", "X", "--key", "X"], "d.npy is not one. Give it once."),
        ("ab", ["--id", "1"], "is an AnnData file, whose rows are named by obs"),
        ("ab", ["--key", "layer:raw"], "has no layer:raw"),
    ],
)
def test_wrong_uses_of_key_are_refused(run, cells, tmp_path, paths, options, message):
    for name, source in (("c", "a"), ("d", "b")):
        (tmp_path / f"{source}.npy").rename(tmp_path / f"{name}.npy")
    files = [tmp_path / f"{each}.{'h5ad' if each in 'ab' else 'npy'}" for each in paths]
    result = run("match", *files, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_pairs_are_written_to_parquet_with_the_report_beside_them(run, tables, monkeypatch):
    pytest.importorskip("pyarrow")
    a, b, _ = tables
    result = run("match", a, b, "-o", "pairs.parquet", "--candidates", 2)
    assert result.exit_code == 0, result.output
    run("match", a, b, "-o", "pairs.csv", "--candidates", 2)
    one, other = Matches.load("pairs.parquet"), Matches.load("pairs.csv")
    assert one.rows() == other.rows()
    report = json.loads((a.parent / "pairs.trust.json").read_text())
    assert report["n_matched"] == 40

    def missing(what):
        raise ImportError(f"{what} needs pyarrow")

    monkeypatch.setattr("unshuffle.cli._match.import_parquet", missing)
    monkeypatch.setattr("unshuffle.KernelizedSorting.fit", None)  # refused before the work
    refused = run("match", a, b, "-o", "more.parquet")
    assert refused.exit_code == 2
    assert "Writing more.parquet needs pyarrow" in refused.stderr
