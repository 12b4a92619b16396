"""`unshuffle match`: read two collections, match them, write what was found."""

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import unshuffle
from unshuffle._color import SHEET_SUFFIXES
from unshuffle._files import check_regular_file
from unshuffle._grams import check_frozen
from unshuffle.cli._app import BadInput, fit, note, one_line, progress_bar, say, warn
from unshuffle.cli._inputs import (
    KERNELS,
    Collection,
    find_kind,
    find_position,
    frozen_lines,
    is_integer,
    list_skipped,
    name_or_number,
    not_ours,
    read_pair,
    say_read,
)
from unshuffle.cli._options import MatchOptions
from unshuffle.cli._tables import Reading, readings
from unshuffle.cli._writing import (
    Written,
    check_outputs,
    deliver,
    places,
    save_somewhere,
    unbothered,
    write_skipped,
)
from unshuffle.images import matched_sheet, read_folder, save_sheet
from unshuffle.matching import AmbiguityWarning, Matches

PAIRS_SUFFIXES = (".csv", ".json")
SHEET_HEIGHT = 72
SHEET_PAIRS = 2000
_AMBIGUOUS = "Another matching with clearly different partners"


def match(options: MatchOptions) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    asked = readings(options, 2)
    if options.output is None and not options.as_json:
        options = replace(options, output=Path("pairs.csv"))
    _check_outputs(options)
    a, b = _read(options, asked)
    frozen = None
    if options.frozen is not None:
        frozen = read_frozen(options.frozen, a.names, b.names)
    if not options.quiet:
        _say_what_was_read(a, b, options)
    estimator = unshuffle.KernelizedSorting(
        kernel=a.kernel,
        method=options.method.value,
        n_init=options.n_init,
        max_iter=options.max_iter,
        unmatched_cost=options.unmatched_cost,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    remarks, interrupted = fit(
        estimator, a.items, b.items, frozen=frozen, words="Matching", show=not options.quiet
    )
    with unbothered():
        matches = _matches(a, b, estimator, None if interrupted else options.candidates)
        report = _describe(a, b, estimator, options, remarks)
        report["interrupted"] = interrupted
        written = _write(a, b, matches, dict(report), options)
        report |= _places(written, options)
        skipped = {"A": a.skipped, "B": b.skipped}
        report["skipped_list"] = write_skipped(written, skipped, spreadsheet=options.spreadsheet)
        rows = {"pairs": matches.rows()} if options.as_json else {}
        # Nothing else tells that half the pairs may be wrong.
        warning = _ambiguous(a, estimator.ambiguity_) if report["ambiguous"] else ""
        return deliver(options, written, report, rows, lambda: _show(report), warning=warning)


def _check_outputs(options: MatchOptions) -> None:
    # All that can be known to fail is known before the work starts.
    outputs = ((options.output, PAIRS_SUFFIXES), (options.sheet, SHEET_SUFFIXES))
    recursive = not options.no_recursive
    check_outputs(
        [(path, suffixes) for path, suffixes in outputs if path is not None],
        (options.a, options.b, options.frozen),
        recursive=recursive,
        spreadsheet=options.spreadsheet,
    )
    if options.frozen is not None:
        check_regular_file(options.frozen, "--frozen")
    if options.sheet is not None:
        for path in (options.a, options.b):
            kind = find_kind(path, precomputed=options.precomputed, recursive=recursive)
            if kind != "images":
                raise BadInput(f"--sheet shows pictures, and {path} holds none. Leave it out.")


def _read(options: MatchOptions, asked: list[Reading]) -> tuple[Collection, Collection]:
    with progress_bar("Reading", show=not options.quiet) as advance:
        a, b = read_pair(options, asked, lambda fraction: advance(fraction, ""))
    outputs = [each for each in (options.output, options.sheet) if each is not None]
    return (
        replace(a, skipped=not_ours(a.skipped, options.a, outputs)),
        replace(b, skipped=not_ours(b.skipped, options.b, outputs)),
    )


def _say_what_was_read(a: Collection, b: Collection, options: MatchOptions) -> None:
    for side in (a, b):
        if side.table is not None:
            note(side.table.note)
    if a.kind not in ("images", "text"):
        return
    sides = ((a, options.a, "A: "), (b, options.b, "B: "))
    for side, path, label in sides if not options.as_json else ():
        say_read(side.names, len(side.skipped), str(path), side=label)
    for side, path, _ in sides:
        list_skipped(side.skipped, str(path))


def _matches(a: Collection, b: Collection, estimator: Any, n_candidates: int | None) -> Matches:
    candidates = None
    if n_candidates is not None:
        candidates = estimator.candidates(min(n_candidates, len(b)))
    return Matches(estimator.permutation_, estimator.confidence_, a.names, b.names, candidates)


def _describe(
    a: Collection,
    b: Collection,
    estimator: Any,
    options: MatchOptions,
    remarks: list[warnings.WarningMessage],
) -> dict[str, Any]:
    """All but the pairs, fit for JSON; x is A and y is B, as in the library."""
    matched = estimator.permutation_ >= 0
    sure = estimator.confidence_[matched]
    return {
        "kind": a.kind,
        "kernel": a.kernel,
        "method": options.method.value,
        "n_x": len(a),
        "n_y": len(b),
        "n_matched": int(matched.sum()),
        "objective": float(estimator.objective_),
        "mean_confidence": float(sure.mean()) if sure.size else 0.0,
        "ambiguity": float(estimator.ambiguity_),
        "ambiguous": any(issubclass(each.category, AmbiguityWarning) for each in remarks),
        "converged": bool(estimator.converged_),
        "warnings": [_advice(remark, a, estimator, options) for remark in remarks],
        "skipped": {
            side: [{"name": name, "reason": why} for name, why in each.skipped]
            for side, each in (("x", a), ("y", b))
        },
        "tables": {
            side: each.table.described()
            for side, each in (("x", a), ("y", b))
            if each.table is not None
        },
    }


def _advice(
    remark: warnings.WarningMessage, a: Collection, estimator: Any, options: MatchOptions
) -> str:
    """A warning in one line, with what the command line offers against it."""
    if issubclass(remark.category, AmbiguityWarning):
        return _ambiguous(a, estimator.ambiguity_)
    if issubclass(remark.category, ConvergenceWarning):
        return (
            f"The search was cut off at --max-iter {options.max_iter} before it ended. Raise it "
            "to let the search end."
        )
    return one_line(remark.message)


def _ambiguous(a: Collection, ambiguity: float) -> str:
    """What it means that another matching is about as good, and what to do about it."""
    # Counts need not be what a table holds, so chi2 is for the user to think of.
    unused = [each for each in KERNELS[a.kind] if each not in (*a.kernels, "chi2")]
    kernels = ""
    if a.kernels and unused:
        several = " ".join(f"--kernel {each}" for each in [*a.kernels, unused[0]])
        kernels = f" compare by several kernels at once ({several}),"
    return (
        f"{_AMBIGUOUS} reaches {ambiguity:.1%} of the best objective, so the objective cannot "
        f"tell which is right. Give a few known pairs with --frozen,{kernels} or raise --n-init."
    )


def _write(
    a: Collection, b: Collection, matches: Matches, report: dict[str, Any], options: MatchOptions
) -> list[Written]:
    written = []
    if options.output is not None:
        save = partial(matches.save, details=report, spreadsheet=options.spreadsheet)
        written.append(save_somewhere(options.output, save))
    if options.sheet is not None:
        written.append(_write_sheet(a, b, matches, options, options.sheet))
    return written


def _write_sheet(
    a: Collection, b: Collection, matches: Matches, options: MatchOptions, target: Path
) -> Written:
    pictures = []
    for side, path in ((a, options.a), (b, options.b)):
        width = int(np.clip(round(SHEET_HEIGHT * side.aspect), 8, 8 * SHEET_HEIGHT))
        size, recursive = (SHEET_HEIGHT, width), not options.no_recursive
        folder = read_folder(path, size=size, recursive=recursive, n_jobs=options.jobs)
        if folder.names != side.names:
            return Written(target, None, f"{path} changed while it was matched")
        pictures.append(folder.arrays)
    sheet = matched_sheet(
        pictures[0],
        pictures[1],
        matches.permutation,
        confidence=matches.confidence,
        height=SHEET_HEIGHT,
        max_pairs=SHEET_PAIRS,
    )
    return save_somewhere(target, lambda place: save_sheet(sheet, place))


def _places(written: list[Written], options: MatchOptions) -> dict[str, Any]:
    """Where each output is, fit for JSON."""
    found = places(written)
    kept = dict(zip((each.asked for each in written), found["outputs"], strict=True))
    return {
        "output": None if options.output is None else kept[options.output],
        "sheet": None if options.sheet is None else kept[options.sheet],
        "not_in_place": found["not_in_place"],
    }


def _show(report: dict[str, Any]) -> None:
    n_x, n_y, n_matched = report["n_x"], report["n_y"], report["n_matched"]
    if report["interrupted"]:
        warn("Interrupted: this is the best match found so far, not a finished one.")
    for message in report["warnings"]:
        # Said already, whether quiet or not.
        if not message.startswith(_AMBIGUOUS):
            warn(message)
    say(
        f"{_count_pairs(n_x, n_y, n_matched)}: objective {report['objective']:.6g}, "
        f"mean confidence {report['mean_confidence']:.2f} ({_reliability(report)})."
    )
    if report["output"] is not None:
        say(f"Pairs: {report['output']}")
    if report["sheet"] is not None:
        shown = min(n_x, SHEET_PAIRS)
        more = f", the first {shown:,} pairs" if shown < n_x else ""
        say(f"Sheet: {report['sheet']} (frames from red, unsure, to green, sure{more})")
    if report["skipped_list"] is not None:
        say(f"Skipped files, all of them: {report['skipped_list']}")


def _count_pairs(n_x: int, n_y: int, n_matched: int) -> str:
    if n_matched == n_x == n_y:
        return f"Matched {n_matched:,} of {n_x:,} items of A with {n_y:,} of B"
    alone = [(n_x - n_matched, "A"), (n_y - n_matched, "B")]
    parts = [f"{count:,} of {side}" for count, side in alone if count]
    verb = "has" if [count for count, _ in alone if count] == [1] else "have"
    pairs = "pair" if n_matched == 1 else "pairs"
    return f"Matched {n_matched:,} {pairs}; {' and '.join(parts)} {verb} no partner"


def _reliability(report: dict[str, Any]) -> str:
    if report["interrupted"]:
        return "of an unfinished search"
    if report["ambiguous"]:
        return "ambiguous, see the warning"
    # Not calibrated: on photo crops of two scenes (photo_halves with light=0, eight seeds) it
    # is 0.68 to 0.72 without a warning where 26 to 31 % of the pairs are right. It ranks pairs;
    # it promises no share.
    return "how firmly the pairs hold; fewer may be right, so check some by eye"


def read_frozen(path: Path, names_a: list[str], names_b: list[str]) -> NDArray[np.intp]:
    """Pairs of positions from a CSV file: an item of A and its partner in B on each line.

    Both are named or numbered from 0, with or without a heading; or the file is one that
    `unshuffle match` wrote, cut down to the pairs to keep.
    """
    rows = frozen_lines(path, "Give one line for each pair: item of A, item of B.")
    columns = _columns(rows[0][1])
    if columns is not None or (len(rows) > 1 and _is_heading(rows[0][1], names_a, names_b)):
        rows = rows[1:]
    pairs: list[list[int]] = []
    seen: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for line, row in rows:
        cells = _cells(row, columns, (names_a, names_b))
        if cells is None:
            raise BadInput(
                f"{path}, line {line} has {len(row)} cell(s). Give an item of A and an item of B."
            )
        if columns is not None and "" in cells:
            # Our own output lists what is unmatched with an empty partner.
            continue
        where = f"{path}, line {line}"
        pair = []
        for cell, names, side, lines in zip(cells, (names_a, names_b), "AB", seen, strict=True):
            position = find_position(cell, names, side, where)
            if position in lines:
                raise BadInput(
                    f"{where}: item {cell!r} of {side} is frozen already, in line "
                    f"{lines[position]}. Each item may be frozen once; drop one of the two lines."
                )
            lines[position] = line
            pair.append(position)
        pairs.append(pair)
    return check_frozen(
        np.array(pairs, dtype=np.intp), len(names_a), len(names_b), first="A", second="B"
    )


def _is_heading(row: list[str], names_a: list[str], names_b: list[str]) -> bool:
    """Tell whether two cells are words that name no item: what the columns are called."""
    return len(row) == 2 and all(
        cell not in names and not is_integer(cell)
        for cell, names in zip(row, (names_a, names_b), strict=True)
    )


def _columns(header: list[str]) -> dict[str, int] | None:
    """Where our own columns stand, if the first row is our heading."""
    found = {name: k for k, name in enumerate(header) if name[:-1] in ("index_", "name_")}
    complete = any({f"{what}_x", f"{what}_y"} <= found.keys() for what in ("index", "name"))
    return found if complete else None


def _cells(
    row: list[str], columns: dict[str, int] | None, names: tuple[list[str], list[str]]
) -> tuple[str, str] | None:
    if columns is None:
        return (row[0], row[1]) if len(row) == 2 else None
    if len(row) <= max(columns.values()):
        return None

    def cell(side: str, known: list[str]) -> str:
        name, index = (
            row[columns[key]] if key in columns else ""
            for key in (f"name_{side}", f"index_{side}")
        )
        return name_or_number(name, index, known)

    return cell("x", names[0]), cell("y", names[1])
