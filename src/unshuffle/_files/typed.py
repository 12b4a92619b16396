"""Files whose numbers have types: columns of Parquet files, and matrices of AnnData files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.parameters import check_memory
from unshuffle._files.paths import BadInput
from unshuffle._files.saving import import_parquet

# Cells as text, or numbers.
Column = list[str] | NDArray[Any]
# Parts of an AnnData file, by what --key calls them.
_PARTS = {"obsm": "obsm", "layer": "layers"}
_KEYS = "Give --key X, --key obsm:NAME or --key layer:NAME"


def read_parquet(path: Path) -> tuple[list[str], list[Column]]:
    """Headings and columns; an index that pandas wrote is first, without a heading."""
    pa, table, n_index = _load_parquet(path)
    header = list(table.column_names)
    header[: min(n_index, 1)] = [""] * min(n_index, 1)
    return header, [_from_arrow(pa, column) for column in table.columns]


def read_parquet_text(path: Path) -> tuple[list[str], list[list[str]]]:
    """Headings, and columns as text: numbers as short as possible, "" for none and NaN."""
    pa, table, n_index = _load_parquet(path)
    header = [
        "" if k < n_index and name.startswith("__index_level_") else name
        for k, name in enumerate(table.column_names)
    ]
    return header, [_as_text(pa, column) for column in table.columns]


def _load_parquet(path: Path) -> tuple[Any, Any, int]:
    """pyarrow, and a table whose first columns are the index that pandas wrote, so many."""
    try:
        pa, parquet = import_parquet(f"Reading {path}")
    except ImportError as error:
        raise BadInput(str(error)) from error
    try:
        # Not read_table, which also takes columns from the names of the folders.
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except Exception as error:
        # pyarrow raises various errors.
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from error
    if 0 in table.shape:
        raise BadInput(f"{path} is empty: its shape is {table.shape}. Give at least two rows.")
    listed = (table.schema.pandas_metadata or {}).get("index_columns", [])
    # An index that only counts is described in a dict, and is not a column.
    index = [place for place, name in enumerate(table.column_names) if name in listed]
    others = [place for place in range(table.num_columns) if place not in index]
    return pa, table.select([*index, *others]), len(index)


def _from_arrow(pa: Any, column: Any) -> Column:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        # An empty cell, like a gap in a CSV file.
        return ["" if cell is None else str(cell) for cell in column.to_pylist()]
    return np.asarray(column.to_numpy())


def _as_text(pa: Any, column: Any) -> list[str]:
    """Cells of a column as a reader would write them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type):
        column = pa.chunked_array([column.to_numpy().astype(str)])  # Arrow writes too many digits
    elif pa.types.is_floating(column.type):
        column = column.cast(pa.string())
    elif not pa.types.is_string(column.type):
        return ["" if cell is None else str(cell) for cell in column.to_pylist()]
    else:
        return ["" if cell is None else cell for cell in column.to_numpy().tolist()]
    cells = column.to_numpy().tolist()
    return ["" if cell is None or cell == "nan" else cell.removesuffix(".0") for cell in cells]


def read_anndata(path: Path, key: str) -> tuple[Any, list[str]]:
    """A matrix of an .h5ad file, CSR if it is sparse, and the names of its rows.

    Only this matrix is read: files hold others, which may be far larger.
    """
    try:
        import h5py
    except ImportError as error:
        raise BadInput(f"Reading {path} needs h5py: pip install 'unshuffle[anndata]'") from error
    try:
        with h5py.File(path, "r") as file:
            if "obs" not in file:
                raise BadInput(f"{path} is not an AnnData file: it has no obs. Give another one.")
            names = _row_names(file["obs"])
            values = _read_matrix(_find_part(file, path, key), f"{key} of {path}")
    except (BadInput, MemoryError):
        raise
    except Exception as error:
        # h5py raises various errors, and what it finds may not be what AnnData writes.
        raise BadInput(f"{path} cannot be read as AnnData: {error}") from error
    if values.shape[0] != len(names):
        raise BadInput(
            f"{key} of {path} has {values.shape[0]:,} rows, and obs names {len(names):,}. Write "
            "the file again with anndata."
        )
    return values, names


def _find_part(file: Any, path: Path, key: str) -> Any:
    """The part of a file that --key names."""
    kind, _, name = key.partition(":")
    if key != "X" and (kind not in _PARTS or not name):
        raise BadInput(f"--key {key} is not understood. {_KEYS}.")
    group = file if key == "X" else file.get(_PARTS[kind], {})
    # Not by a path, which could lead out of the group.
    found = next((group[each] for each in group if each == (name or "X")), None)
    if found is None or found.attrs.get("encoding-type") == "null":
        known = [f"{each}:{k}" for each, part in _PARTS.items() for k in file.get(part, {})]
        listed = ", ".join((["X"] if "X" in file and key != "X" else []) + known[:8])
        raise BadInput(
            f"{path} has no {key}. It has {listed or 'no matrix'}{', ...' * (len(known) > 8)}."
        )
    return found


def _row_names(obs: Any) -> list[str]:
    """Index of a data frame; files from before AnnData 0.7 hold it as one array of records."""
    if hasattr(obs, "dtype"):
        cells = obs[obs.dtype.names[0]]
    else:
        index = obs[obs.attrs.get("_index", "_index")]
        cells = (index["values"] if hasattr(index, "keys") else index)[()]
    return [
        each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in cells
    ]


def _read_matrix(part: Any, what: str) -> Any:
    """Dense array, or CSR matrix of a group that holds a sparse one."""
    attributes = part.attrs
    if hasattr(part, "dtype"):
        _check_numbers(part, what)
        if part.ndim != 2:
            raise BadInput(
                f"{what} has {part.ndim} dimension(s), shape {part.shape}. Choose a matrix with "
                "one row for each item."
            )
        return part[()]
    form = str(attributes.get("encoding-type", attributes.get("h5sparse_format", "")))[:3]
    if form not in ("csr", "csc"):
        raise BadInput(f"{what} is not a matrix of numbers. {_KEYS}, which is one.")
    for name in ("data", "indices", "indptr"):
        _check_numbers(part[name], what)
    shape = tuple(int(n) for n in attributes.get("shape", attributes.get("h5sparse_shape", ())))
    arrays = tuple(part[name][()] for name in ("data", "indices", "indptr"))
    try:
        matrix = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[form](arrays, shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise BadInput(f"{what} is damaged: {error}. Write the file again.") from error
    return matrix.tocsr()


def _check_numbers(dataset: Any, what: str) -> None:
    if dataset.dtype.kind not in "biuf":
        raise BadInput(f"{what} holds {dataset.dtype} values. Choose a matrix of real numbers.")
    # A small file may claim to hold any number of values.
    n_bytes = int(dataset.size) * dataset.dtype.itemsize
    check_memory(n_bytes, what=what, instead="Choose a smaller part, such as obsm:X_pca.")
