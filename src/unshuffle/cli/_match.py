"""`unshuffle match`: read two collections, match them, write the pairs."""

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import unshuffle
from unshuffle._core.color import SHEET_SUFFIXES
from unshuffle._files.paths import BadInput, check_regular_file
from unshuffle._files.saving import import_parquet
from unshuffle._files.tables import TableOptions
from unshuffle._run.printing import SlowFitWarning
from unshuffle.cli import NOT_TRUSTED
from unshuffle.cli._app import fit, note, one_line, progress_bar, say, warn
from unshuffle.cli._frozen import read_frozen_pairs, read_hints
from unshuffle.cli._inputs import (
    FEATURES,
    KERNELS,
    Collection,
    list_skipped,
    read_pair,
    say_read,
    skipped_records,
    table_options,
    trust_path,
    without_outputs,
)
from unshuffle.cli._options import MatchOptions
from unshuffle.cli._writing import (
    PAIRS_SUFFIXES,
    WITHOUT_REPORT,
    Written,
    check_outputs,
    default_output,
    deliver,
    describe_outputs,
    ignore_interrupts,
    save_with_fallback,
    write_skipped,
    write_trust,
)
from unshuffle.encoders import has_content
from unshuffle.images import matched_sheet, read_folder, save_sheet
from unshuffle.matching import DoubtWarning, Matches

# Methods of the paper, which cannot use hints.
PAPER_METHODS = ("classic", "unbiased", "entropy")
# Longer lists of pairs are not also printed with --json if they were written to a file.
MOST_PRINTED = 100_000
SHEET_HEIGHT = 72
SHEET_PAIRS = 2000
# Above this ambiguity the library speaks of a rival, which more starts may settle.
HIGH_AMBIGUITY = 0.9
# Only the user knows whether a table holds counts, so these are never suggested.
_FOR_COUNTS = ("chi2", "log")


def match(options: MatchOptions) -> int:
    """Match two collections and return the exit code.

    0; 130 after Ctrl-C; 3 if not written, or with --strict if not to be trusted.
    """
    tables = table_options(options, 2)
    if options.output is None and not options.as_json:
        options = replace(options, output=default_output("pairs.csv"))
    companions = _check_early(options)
    a, b = _read(options, tables, companions)
    frozen, hints = None, None
    if options.frozen is not None:
        frozen = read_frozen_pairs(options.frozen, a.names, b.names)
    if options.hints is not None:
        hints = read_hints(options.hints, a.names, b.names)
    if not options.quiet:
        _report_inputs(a, b, options)
    estimator = unshuffle.KernelizedSorting(
        kernel=a.kernel,
        method=options.method.value.replace("-", "_"),
        n_init=options.n_init,
        max_iter=options.max_iter,
        unmatched_cost=options.unmatched_cost,
        random_state=options.seed,
        n_jobs=options.jobs,
        trust=not options.no_trust,
        device=options.device,
    )
    remarks, interrupted = fit(
        estimator,
        a.items,
        b.items,
        frozen=frozen,
        hints=hints,
        words="Matching",
        show=not options.quiet,
        announce=partial(_announce, options),
    )
    with ignore_interrupts():
        candidates = None
        if options.candidates is not None and not interrupted:
            candidates = estimator.candidates(min(options.candidates, len(b)))
        matches = Matches(
            estimator.permutation_,
            estimator.confidence_,
            a.names,
            b.names,
            candidates,
            expected_accuracy=estimator.expected_accuracy_,
            interval=estimator.expected_accuracy_interval_,
            doubts=estimator.doubts_,
        )
        doubt = _explain_doubts(a, estimator, options)
        report = _describe(a, b, matches, estimator, options)
        report["warnings"] = [*_explain(remarks, options), *([doubt] if doubt else ())]
        report["interrupted"] = interrupted
        n_free = len(matches.pairs) - (0 if frozen is None else len(frozen))
        n_asked = 0 if interrupted else min(options.questions or 0, n_free)
        report["questions"] = _find_questions(matches, estimator, n_asked)
        written = _write(a, b, matches, dict(report), options)
        companion = write_trust(written[0], dict(report)) if companions else None
        found = describe_outputs(written)
        asked = (each.asked for each in written)
        places: dict[Path | None, Any] = dict(zip(asked, found.pop("outputs"), strict=True))
        report |= {
            "output": places.get(options.output),
            "sheet": places.get(options.sheet),
            "trust_report": companion,
            **found,
        }
        skipped = {"A": a.skipped, "B": b.skipped}
        report["skipped_list"] = write_skipped(written, skipped, spreadsheet=options.spreadsheet)
        rows = _printed_pairs(matches, written) if options.as_json else {}
        # Shown even with --quiet: half the pairs may be wrong.
        warning = f"{doubt} Why: {companion}" if doubt and companion is not None else doubt
        show = partial(_show, report, matches, doubt, auto=a.kernels == ["auto"])
        code = deliver(options, written, report, rows, show, warning=warning)
    return NOT_TRUSTED if options.strict and not (code or report["trusted"]) else code


def _check_early(options: MatchOptions) -> list[Path]:
    """Check options and outputs, and return the files that come beside the outputs."""
    if options.strict and options.no_trust:
        raise BadInput(
            "--strict needs the estimate that --no-trust leaves out. Drop one of the two."
        )
    if options.hints is not None and options.method.value in PAPER_METHODS:
        raise BadInput(
            f"--hints needs --method refined; {options.method.value} cannot use them. Drop one of "
            "the two."
        )
    outputs = ((options.output, PAIRS_SUFFIXES), (options.sheet, SHEET_SUFFIXES))
    companions = []
    if options.output is not None and options.output.suffix.lower() in WITHOUT_REPORT:
        companions.append(trust_path(options.output))
    if options.output is not None and options.output.suffix.lower() == ".parquet":
        try:
            import_parquet(f"Writing {options.output}")
        except ImportError as error:
            raise BadInput(str(error)) from error
    check_outputs(
        [(path, suffixes) for path, suffixes in outputs if path is not None],
        (options.a, options.b, options.frozen, options.hints),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
        companions=companions,
    )
    for path, option in ((options.frozen, "--frozen"), (options.hints, "--hints")):
        if path is not None:
            check_regular_file(path, option)
    return companions


def _announce(options: MatchOptions, expected: str) -> None:
    """Say how long a match will take and how much memory it needs."""
    if not options.quiet:
        faster = "" if options.no_trust else " --no-trust halves the time."
        note(f"{expected[:1].upper()}{expected[1:]}.{faster}")


def _printed_pairs(matches: Matches, written: list[Written]) -> dict[str, Any]:
    """Pairs for --json; None if they are very many and in a file."""
    is_kept = any(
        each.place is not None and each.place.suffix.lower() in PAIRS_SUFFIXES for each in written
    )
    left_out = is_kept and len(matches.names_x) > MOST_PRINTED
    return {"pairs": None if left_out else matches.rows()}


def _read(
    options: MatchOptions, tables: list[TableOptions], companions: list[Path]
) -> tuple[Collection, Collection]:
    with progress_bar("Reading", show=not options.quiet) as advance:
        a, b = read_pair(options, tables, lambda fraction: advance(fraction, ""))
    asked = [each for each in (options.output, options.sheet) if each is not None]
    outputs = [*asked, *companions]
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
    a: Collection, b: Collection, matches: Matches, estimator: Any, options: MatchOptions
) -> dict[str, Any]:
    """Everything but the pairs, ready for JSON; x is A and y is B, as in the library."""
    matched = matches.permutation >= 0
    confidence = matches.confidence[matched]
    estimated = bool(np.isfinite(matches.expected_accuracy))
    sides = {"x": a, "y": b}
    tables = {side: each.table for side, each in sides.items() if each.table is not None}
    return {
        "kind": a.kind,
        "kernel": estimator.kernel_,
        "scaling": _scaling(a, estimator),
        "features": a.features if a.kind in ("images", "text") else None,
        "method": estimator.method_,
        "n_x": len(a),
        "n_y": len(b),
        "n_matched": int(matched.sum()),
        "objective": float(estimator.objective_),
        "mean_confidence": float(confidence.mean()) if confidence.size else 0.0,
        "ambiguity": float(estimator.ambiguity_),
        "expected_accuracy": float(matches.expected_accuracy) if estimated else None,
        "expected_accuracy_interval": np.asarray(matches.interval).tolist() if estimated else None,
        "doubts": list(matches.doubts),
        # Not without an estimate either.
        "trusted": estimated and not matches.doubts,
        "converged": bool(estimator.converged_),
        "skipped": {side: skipped_records(each.skipped) for side, each in sides.items()},
        "tables": {side: table.describe() for side, table in tables.items()},
    }


def _find_questions(matches: Matches, estimator: Any, n_asked: int) -> list[dict[str, Any]]:
    """The pairs to check first."""
    pairs = estimator.questions(n_asked).tolist() if n_asked > 0 else []
    return [
        {"index_x": i, "name_x": matches.names_x[i], "index_y": j, "name_y": matches.names_y[j]}
        for i, j in pairs
    ]


def _scaling(a: Collection, estimator: Any) -> str | list[str] | None:
    """How tables were scaled, as the library calls it."""
    if a.kind != "table":
        return None
    names = [FEATURES["table"][each] for each in a.features]
    if not names:
        # A sparse table has none: it is never scaled.
        return str(getattr(estimator, "scaling_", "as given"))
    return names[0] if len(names) == 1 else names


def _explain(remarks: list[warnings.WarningMessage], options: MatchOptions) -> list[str]:
    """Warnings, each in one line, in terms of the command line.

    Without doubts, and without the expected time, which were or will be said.
    """
    cut_off = (
        f"The search was cut off at --max-iter {options.max_iter} before it converged. Raise "
        "--max-iter."
    )
    return [
        cut_off if issubclass(each.category, ConvergenceWarning) else one_line(each.message)
        for each in remarks
        if not issubclass(each.category, DoubtWarning | SlowFitWarning)
    ]


def _explain_doubts(a: Collection, estimator: Any, options: MatchOptions) -> str:
    """Why the pairs cannot be trusted, and which options may help; "" without doubts."""
    if not estimator.doubts_:
        return ""
    ways = ["Give known pairs with --frozen (30 help a lot)"]
    if options.frozen is not None:
        ways = ["Give more known pairs with --frozen"]
    left_out = (*a.features, *_FOR_COUNTS, *(() if has_content() else ("content",)))
    others = [each for each in FEATURES[a.kind] if each not in left_out]
    if a.table is not None and sparse.issparse(a.table.values):
        others = []  # sparse numbers are compared as given
    kernels = [each for each in KERNELS[a.kind] if each not in (*a.kernels, *_FOR_COUNTS, "auto")]
    if a.kind == "table" and not options.compared and a.kernels != ["auto"]:
        ways.append("let --kernel auto choose scaling and kernel")
    elif others:
        # What "auto" tried one by one may still help together.
        together = [*a.features, others[0]] if a.features else others[:2]
        ways.append(f"compare several features at once (--features {'+'.join(together)})")
    elif a.kernels and kernels:
        named = [each for each in a.kernels if each != "auto"] or kernels[:1]
        further = [each for each in kernels if each not in named][:1]
        several = "+".join([*named, *further])
        ways.append(f"combine several kernels (--kernel {several})")
    if estimator.ambiguity_ > HIGH_AMBIGUITY:
        ways.append("raise --n-init")
    last = f", or {ways[-1]}" if len(ways) > 1 else ""
    advice = f"{', '.join(ways[:-1] or ways)}{last}."
    return f"These pairs cannot be trusted: {'; '.join(estimator.doubts_)}. {advice}"


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


def _show(report: dict[str, Any], matches: Matches, doubt: str, *, auto: bool) -> None:
    n_x, n_y, n_matched = report["n_x"], report["n_y"], report["n_matched"]
    unfinished = " (of an unfinished search)" if report["interrupted"] else ""
    if report["interrupted"]:
        warn("Interrupted: this is the best match found so far, not a finished one.")
    for message in report["warnings"]:
        # `deliver` shows this one, even with --quiet.
        if message != doubt:
            warn(message)
    say(
        f"{_count_pairs(n_x, n_y, n_matched)}: objective {report['objective']:.6g}, "
        f"mean confidence {report['mean_confidence']:.2f}{unfinished}."
    )
    scaling, kernel = report["scaling"], report["kernel"]
    if auto and (scaling, kernel) != ("as given", "rbf"):
        say(f"Chosen by --kernel auto: scaling {scaling!r}, kernel {kernel!r}.")
    if report["output"] is not None:
        say(f"Pairs: {report['output']}")
    if report["sheet"] is not None:
        shown = min(n_x, SHEET_PAIRS)
        more = f", first {shown:,} pairs only" if shown < n_x else ""
        say(f"Sheet: {report['sheet']} (frames from red, unsure, to green, sure{more})")
    if report["skipped_list"] is not None:
        say(f"Skipped files: {report['skipped_list']}")
    if report["questions"]:
        say("Check these pairs first, and give the right ones to --frozen:")
    for each in report["questions"]:
        say(f"  {one_line(_named(each, 'x'))},{one_line(_named(each, 'y'))}")
    # The warning names the doubts.
    say(replace(matches, doubts=()).describe_trust())


def _named(pair: dict[str, Any], side: str) -> str:
    """Name of an item, or its number if it has none."""
    return str(pair[f"name_{side}"] or pair[f"index_{side}"])


def _count_pairs(n_x: int, n_y: int, n_matched: int) -> str:
    if n_matched == n_x == n_y:
        return f"Matched {n_matched:,} of {n_x:,} items of A with {n_y:,} of B"
    alone = [(n_x - n_matched, "A"), (n_y - n_matched, "B")]
    parts = [f"{count:,} of {side}" for count, side in alone if count]
    verb = "has" if [count for count, _ in alone if count] == [1] else "have"
    pairs = "pair" if n_matched == 1 else "pairs"
    return f"Matched {n_matched:,} {pairs}; {' and '.join(parts)} {verb} no partner"
