"""What is left on disk: the pairs, as a table or as JSON."""

import csv
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("index_a", "name_a", "index_b", "name_b", "confidence")
SUFFIXES = (".csv", ".json")


def pair_rows(
    names_a: Sequence[str],
    names_b: Sequence[str],
    permutation: NDArray[np.intp],
    confidence: NDArray[np.float64],
    *,
    candidates: NDArray[np.intp] | None = None,
) -> list[dict[str, Any]]:
    """Every item of both sides once: the pairs in the order of A, then what is left of B.

    Parameters
    ----------
    names_a, names_b : sequence of str
        A name for each item; "" where it has none.
    permutation : ndarray of shape (n_a,)
        Item of B that belongs to each item of A; -1 is unmatched.
    confidence : ndarray of shape (n_a,)
        How sure each pair is, from 0 to 1.
    candidates : ndarray of shape (n_a, k) or None, default=None
        Best partners of each item of A, best first; -1 is none.

    Returns
    -------
    rows : list of dict
        With the keys of `COLUMNS`, and "candidates" if given; None where there is no partner.
    """
    rows = []
    for i, (name, j) in enumerate(zip(names_a, permutation.tolist(), strict=True)):
        matched = j >= 0
        row: dict[str, Any] = {
            "index_a": i,
            "name_a": name,
            "index_b": j if matched else None,
            "name_b": names_b[j] if matched else None,
            "confidence": round(float(confidence[i]), 6) if matched else 0.0,
        }
        if candidates is not None:
            row["candidates"] = [
                {"index_b": k, "name_b": names_b[k]} for k in candidates[i].tolist() if k >= 0
            ]
        rows.append(row)
    taken = set(permutation.tolist())
    for j, name in enumerate(names_b):
        if j not in taken:
            row = {"index_a": None, "name_a": None, "index_b": j, "name_b": name}
            row["confidence"] = 0.0
            if candidates is not None:
                row["candidates"] = []
            rows.append(row)
    return rows


def write_pairs(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows of `pair_rows` as CSV or JSON, by the suffix of `path`.

    The file is complete or not there: it is written beside its place and then moved. Where
    that fails (the disk is full, a share went away), the pairs go to the temporary folder
    rather than being lost.

    Returns
    -------
    written : Path
        Where the pairs are; differs from `path` only after such a failure.
    """
    try:
        _write_whole(path, rows)
    except OSError:
        handle, name = tempfile.mkstemp(prefix="unshuffle-", suffix=path.suffix)
        with os.fdopen(handle, "w", newline="", encoding="utf-8", errors="surrogateescape") as out:
            _write(out, path.suffix.lower(), rows)
        return Path(name)
    return path


def _write_whole(path: Path, rows: list[dict[str, Any]]) -> None:
    target = path.resolve()
    part = target.with_name(f".{target.name}.part{os.getpid()}")
    try:
        # surrogateescape: a file name that is not valid Unicode comes out as its own bytes.
        with part.open("w", newline="", encoding="utf-8", errors="surrogateescape") as out:
            _write(out, target.suffix.lower(), rows)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _write(out: IO[str], suffix: str, rows: list[dict[str, Any]]) -> None:
    if suffix == ".json":
        json.dump(rows, out, indent=1)
        out.write("\n")
        return
    n_candidates = max((len(row.get("candidates", ())) for row in rows), default=0)
    extra = [f"candidate_{k + 1}" for k in range(n_candidates)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, *extra])
    for row in rows:
        best = [each["name_b"] or each["index_b"] for each in row.get("candidates", ())]
        best += [""] * (n_candidates - len(best))
        writer.writerow(["" if row[key] is None else row[key] for key in COLUMNS] + best)
