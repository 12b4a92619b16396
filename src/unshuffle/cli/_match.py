"""`unshuffle match`: read two collections, match them, write the pairs."""

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import unshuffle
from unshuffle._color import SHEET_SUFFIXES
from unshuffle._files import check_regular_file
from unshuffle.cli._app import fit, note, one_line, progress_bar, say, warn
from unshuffle.cli._frozen import read_frozen_pairs
from unshuffle.cli._inputs import (
    KERNELS,
    Collection,
    list_skipped,
    read_pair,
    say_read,
    skipped_records,
    without_outputs,
)
from unshuffle.cli._options import MatchOptions
from unshuffle.cli._tables import TableOptions, table_options
from unshuffle.cli._writing import (
    TABLE_SUFFIXES,
    Written,
    check_outputs,
    deliver,
    describe_outputs,
    ignore_interrupts,
    save_with_fallback,
    write_skipped,
)
from unshuffle.images import matched_sheet, read_folder, save_sheet
from unshuffle.matching import DoubtWarning, Matches

SHEET_HEIGHT = 72
SHEET_PAIRS = 2000
_AMBIGUOUS = "Another matching with clearly different partners"


def match(options: MatchOptions) -> int:
    """Match two collections and return the exit code: 0, 130 after Ctrl-C, 3 if not written."""
    tables = table_options(options, 2)
    if options.output is None and not options.as_json:
        options = replace(options, output=Path("pairs.csv"))
    _check_outputs(options)
    a, b = _read(options, tables)
    frozen = None
    if options.frozen is not None:
        frozen = read_frozen_pairs(options.frozen, a.names, b.names)
    if not options.quiet:
        _report_inputs(a, b, options)
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
    with ignore_interrupts():
        candidates = None
        if options.candidates is not None and not interrupted:
            candidates = estimator.candidates(min(options.candidates, len(b)))
        matches = Matches(
            estimator.permutation_, estimator.confidence_, a.names, b.names, candidates
        )
        report = _describe(a, b, estimator, options, remarks)
        report["interrupted"] = interrupted
        written = _write(a, b, matches, dict(report), options)
        found = describe_outputs(written)
        asked = (each.asked for each in written)
        places: dict[Path | None, Any] = dict(zip(asked, found.pop("outputs"), strict=True))
        report |= {
            "output": places.get(options.output),
            "sheet": places.get(options.sheet),
            **found,
        }
        skipped = {"A": a.skipped, "B": b.skipped}
        report["skipped_list"] = write_skipped(written, skipped, spreadsheet=options.spreadsheet)
        rows = {"pairs": matches.rows()} if options.as_json else {}
        # Shown even with --quiet: half the pairs may be wrong.
        warning = _explain_ambiguity(a, estimator.ambiguity_) if report["ambiguous"] else ""
        return deliver(options, written, report, rows, lambda: _show(report), warning=warning)


def _check_outputs(options: MatchOptions) -> None:
    outputs = ((options.output, TABLE_SUFFIXES), (options.sheet, SHEET_SUFFIXES))
    check_outputs(
        [(path, suffixes) for path, suffixes in outputs if path is not None],
        (options.a, options.b, options.frozen),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    if options.frozen is not None:
        check_regular_file(options.frozen, "--frozen")


def _read(options: MatchOptions, tables: list[TableOptions]) -> tuple[Collection, Collection]:
    with progress_bar("Reading", show=not options.quiet) as advance:
        a, b = read_pair(options, tables, lambda fraction: advance(fraction, ""))
    outputs = [each for each in (options.output, options.sheet) if each is not None]
    return (
        replace(a, skipped=without_outputs(a.skipped, options.a, outputs)),
        replace(b, skipped=without_outputs(b.skipped, options.b, outputs)),
    )


def _report_inputs(a: Collection, b: Collection, options: MatchOptions) -> None:
    for side, path, label in ((a, options.a, "A: "), (b, options.b, "B: ")):
        if side.table is not None:
            note(side.table.note)
        elif side.kind != "gram" and not options.as_json:
            say_read(side.names, len(side.skipped), str(path), side=label)
        list_skipped(side.skipped, str(path))


def _describe(
    a: Collection,
    b: Collection,
    estimator: Any,
    options: MatchOptions,
    remarks: list[warnings.WarningMessage],
) -> dict[str, Any]:
    """Everything but the pairs, ready for JSON; x is A and y is B, as in the library."""
    matched = estimator.permutation_ >= 0
    confidence = estimator.confidence_[matched]
    sides = {"x": a, "y": b}
    tables = {side: each.table for side, each in sides.items() if each.table is not None}
    return {
        "kind": a.kind,
        "kernel": a.kernel,
        "method": options.method.value,
        "n_x": len(a),
        "n_y": len(b),
        "n_matched": int(matched.sum()),
        "objective": float(estimator.objective_),
        "mean_confidence": float(confidence.mean()) if confidence.size else 0.0,
        "ambiguity": float(estimator.ambiguity_),
        "ambiguous": any(issubclass(each.category, DoubtWarning) for each in remarks),
        "converged": bool(estimator.converged_),
        "warnings": [_explain(remark, a, estimator, options) for remark in remarks],
        "skipped": {side: skipped_records(each.skipped) for side, each in sides.items()},
        "tables": {side: table.describe() for side, table in tables.items()},
    }


def _explain(
    remark: warnings.WarningMessage, a: Collection, estimator: Any, options: MatchOptions
) -> str:
    """A warning in one line, in terms of the command line."""
    if issubclass(remark.category, DoubtWarning):
        return _explain_ambiguity(a, estimator.ambiguity_)
    if issubclass(remark.category, ConvergenceWarning):
        return (
            f"The search was cut off at --max-iter {options.max_iter} before it converged. Raise "
            "--max-iter."
        )
    return one_line(remark.message)


def _explain_ambiguity(a: Collection, ambiguity: float) -> str:
    # Only the user knows whether a table holds counts, so chi2 is not suggested.
    unused = [each for each in KERNELS[a.kind] if each not in (*a.kernels, "chi2")]
    kernels = ""
    if a.kernels and unused:
        several = " ".join(f"--kernel {each}" for each in [*a.kernels, unused[0]])
        kernels = f" combine several kernels ({several}),"
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
        written.append(save_with_fallback(options.output, save))
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
    return save_with_fallback(target, lambda place: save_sheet(sheet, place))


def _show(report: dict[str, Any]) -> None:
    n_x, n_y, n_matched = report["n_x"], report["n_y"], report["n_matched"]
    if report["interrupted"]:
        warn("Interrupted: this is the best match found so far, not a finished one.")
    for message in report["warnings"]:
        # `deliver` shows this one, even with --quiet.
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
        more = f", first {shown:,} pairs only" if shown < n_x else ""
        say(f"Sheet: {report['sheet']} (frames from red, unsure, to green, sure{more})")
    if report["skipped_list"] is not None:
        say(f"Skipped files: {report['skipped_list']}")


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
    # Not calibrated: on photo crops of two scenes (photo_halves with light=0, eight seeds) it is
    # 0.68 to 0.72 without a warning, but only 26 to 31 % of the pairs are right.
    return "ranks the pairs; fewer may be right, so check some by eye"
