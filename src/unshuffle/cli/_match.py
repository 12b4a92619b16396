"""`unshuffle match`: read two collections, match them, write what was found."""

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._color import SHEET_SUFFIXES
from unshuffle._files import check_regular_file
from unshuffle.cli._console import (
    BadInput,
    answer,
    list_skipped,
    note,
    one_line,
    progress_bar,
    reporting,
    say,
    say_read,
    warn,
)
from unshuffle.cli._frozen import read_frozen
from unshuffle.cli._inputs import KERNELS, Collection, find_kind, read_pair
from unshuffle.cli._tables import Reading
from unshuffle.cli._writing import (
    Written,
    check_outputs,
    check_spreadsheet,
    complain_of,
    exit_code,
    not_ours,
    save_somewhere,
    unbothered,
    write_skipped,
)
from unshuffle.matching import AmbiguityWarning, Matches

PAIRS_SUFFIXES = (".csv", ".json")
SHEET_HEIGHT = 72
SHEET_PAIRS = 2000
_AMBIGUOUS = "Another matching with clearly different partners"


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    path_a: Path
    path_b: Path
    output: Path | None
    kernels: list[str]
    readings: list[Reading]
    precomputed: bool
    method: str
    n_init: int
    max_iter: int
    frozen: Path | None
    unmatched_cost: float | None
    candidates: int | None
    sheet: Path | None
    spreadsheet: bool
    recursive: bool
    seed: int | None
    jobs: int | None
    as_json: bool
    quiet: bool


def match(options: Options) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    _check_outputs(options)
    loud = not options.quiet
    with progress_bar("Reading", show=loud) as advance:
        a, b = read_pair(
            options.path_a,
            options.path_b,
            precomputed=options.precomputed,
            kernels=options.kernels,
            readings=options.readings,
            n_jobs=options.jobs,
            recursive=options.recursive,
            on_progress=lambda fraction: advance(fraction, ""),
        )
    a, b = _without_own(a, options.path_a, options), _without_own(b, options.path_b, options)
    frozen = None
    if options.frozen is not None:
        frozen = read_frozen(options.frozen, a.names, b.names)
    if loud:
        for side in (a, b):
            if side.table is not None:
                note(side.table.note)
    if loud and a.kind in ("images", "text"):
        sides = ((a, options.path_a, "A: "), (b, options.path_b, "B: "))
        for side, path, label in sides if not options.as_json else ():
            say_read(side.names, len(side.skipped), str(path), side=label)
        for side, path, _ in sides:
            list_skipped(side.skipped, str(path))
    estimator, remarks, interrupted = _fit(a, b, frozen, options)
    with unbothered():
        matches = _matches(a, b, estimator, options, interrupted)
        report = _describe(a, b, estimator, options, remarks)
        report["interrupted"] = interrupted
        written = []
        if options.output is not None:
            written.append(_write_pairs(options.output, matches, dict(report), options))
        if options.sheet is not None:
            written.append(_write_sheet(a, b, estimator, options, options.sheet))
        report |= _places(written, options)
        skipped = {"A": a.skipped, "B": b.skipped}
        report["skipped_list"] = (
            write_skipped(written, skipped, spreadsheet=options.spreadsheet) or None
        )
        complain_of(written)
        if report["ambiguous"]:
            # Said whatever is left out: nothing else tells that half the pairs may be wrong.
            warn(_ambiguous(a, estimator.ambiguity_))
        if options.as_json:
            # One object and nothing else.
            answer(json.dumps({**report, "pairs": matches.rows()}, allow_nan=False))
        elif loud:
            _show(report)
    return exit_code(written, interrupted)


def _check_outputs(options: Options) -> None:
    # All that can be known to fail is known before the work starts.
    outputs = ((options.output, PAIRS_SUFFIXES), (options.sheet, SHEET_SUFFIXES))
    check_outputs(
        [(path, suffixes) for path, suffixes in outputs if path is not None],
        (options.path_a, options.path_b, options.frozen),
        recursive=options.recursive,
    )
    check_spreadsheet(options.spreadsheet, [path for path, _ in outputs if path is not None])
    if options.frozen is not None:
        check_regular_file(options.frozen, "--frozen")
    if options.sheet is not None:
        for path in (options.path_a, options.path_b):
            kind = find_kind(path, precomputed=options.precomputed, recursive=options.recursive)
            if kind != "images":
                raise BadInput(f"--sheet shows pictures, and {path} holds none. Leave it out.")


def _without_own(side: Collection, path: Path, options: Options) -> Collection:
    outputs = [each for each in (options.output, options.sheet) if each is not None]
    return replace(side, skipped=not_ours(side.skipped, path, outputs))


def _places(written: list[Written], options: Options) -> dict[str, Any]:
    """Where each output is, fit for JSON."""
    places = {each.asked: None if each.place is None else str(each.place) for each in written}
    return {
        "output": None if options.output is None else places[options.output],
        "sheet": None if options.sheet is None else places[options.sheet],
        "not_in_place": [each.row() for each in written if not each.in_place],
    }


def _fit(
    a: Collection, b: Collection, frozen: NDArray[np.intp] | None, options: Options
) -> tuple[Any, list[warnings.WarningMessage], bool]:
    from unshuffle import KernelizedSorting

    with (
        progress_bar("Matching", show=not options.quiet) as advance,
        warnings.catch_warnings(record=True) as remarks,
    ):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        estimator = KernelizedSorting(
            kernel=a.kernel,
            method=options.method,
            n_init=options.n_init,
            max_iter=options.max_iter,
            unmatched_cost=options.unmatched_cost,
            random_state=options.seed,
            n_jobs=options.jobs,
            callback=reporting(advance),
        )
        try:
            estimator.fit(a.items, b.items, frozen=frozen)
        except KeyboardInterrupt:
            if not hasattr(estimator, "permutation_"):
                raise
            return estimator, remarks, True
    return estimator, remarks, False


def _matches(
    a: Collection, b: Collection, estimator: Any, options: Options, interrupted: bool
) -> Matches:
    candidates = None
    if options.candidates is not None and not interrupted:
        candidates = estimator.candidates(min(options.candidates, len(b)))
    return Matches(estimator.permutation_, estimator.confidence_, a.names, b.names, candidates)


def _describe(
    a: Collection,
    b: Collection,
    estimator: Any,
    options: Options,
    remarks: list[warnings.WarningMessage],
) -> dict[str, Any]:
    """All but the pairs, fit for JSON; x is A and y is B, as in the library."""
    matched = estimator.permutation_ >= 0
    sure = estimator.confidence_[matched]
    return {
        "kind": a.kind,
        "kernel": a.kernel,
        "method": options.method,
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
    remark: warnings.WarningMessage, a: Collection, estimator: Any, options: Options
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


def _write_pairs(
    path: Path, matches: Matches, report: dict[str, Any], options: Options
) -> Written:
    def save(place: Path) -> None:
        matches.save(place, details=report, spreadsheet=options.spreadsheet)

    return save_somewhere(path, save)


def _write_sheet(
    a: Collection, b: Collection, estimator: Any, options: Options, target: Path
) -> Written:
    from unshuffle.images import matched_sheet, read_folder, save_sheet

    pictures = []
    for side, path in ((a, options.path_a), (b, options.path_b)):
        width = int(np.clip(round(SHEET_HEIGHT * side.aspect), 8, 8 * SHEET_HEIGHT))
        folder = read_folder(
            path, size=(SHEET_HEIGHT, width), recursive=options.recursive, n_jobs=options.jobs
        )
        if folder.names != side.names:
            return Written(target, None, f"{path} changed while it was matched")
        pictures.append(folder.arrays)
    sheet = matched_sheet(
        pictures[0],
        pictures[1],
        estimator.permutation_,
        confidence=estimator.confidence_,
        height=SHEET_HEIGHT,
        max_pairs=SHEET_PAIRS,
    )
    return save_somewhere(target, lambda place: save_sheet(sheet, place))


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
