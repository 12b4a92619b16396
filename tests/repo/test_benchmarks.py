"""Benchmarks are measured, recorded, compared and shown on pages as they say."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("a source archive holds no benchmarks", allow_module_level=True)

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import _docs, _measure, _render, small  # noqa: E402
from benchmarks._records import Record, Run, Seconds, falls, ratios  # noqa: E402

MACHINE = {
    "date": "2026-01-02",
    "commit": "abc",
    "quick": True,
    "processor": "a processor",
    "cores": 2,
    "gigabytes": 8,
    "load": 0.1,
    "versions": {"Python": "3.11"},
}


def record(size=10, method="ours", kind="ours", seconds=1.0, **more):
    taken = Seconds(seconds, 0.9 * seconds, 1.2 * seconds, 3)
    return Record("made-up", "points", size, method, kind, taken, **more)


def made_up(peer_seconds=4.0):
    return Run(
        "made-up",
        "Made up",
        "About it.",
        "items",
        MACHINE,
        (
            record(megabytes=3.0, quality={"right": 0.5, "steps": 1234}),
            record(method="peer", kind="peer", seconds=peer_seconds),
            record(size=1000, seconds=100.0),
            replace(
                record(size=1000, method="peer", kind="peer"), seconds=None, failed="over 9 s"
            ),
            record(size=1000, method="printed", kind="quoted", source="a paper"),
        ),
    )


@pytest.fixture
def one_problem(monkeypatch):
    """Select one small problem; processes still see all."""
    found = small.problems

    def select(name):
        chosen = [each for each in found() if each.name == name]
        monkeypatch.setattr(small, "problems", lambda: chosen)
        return chosen[0]

    return select


def test_committed_pages_say_what_is_recorded():
    stale = [
        path.relative_to(ROOT)
        for path, text in _docs.rendered().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run: python -m benchmarks --docs"


def test_every_block_is_used_and_every_mark_is_closed():
    texts = [path.read_text(encoding="utf-8") for path in _docs.guides()]
    used = [name for text in texts for _, name, _, _ in _docs.BLOCK.findall(text)]
    assert set(used) == set(_docs.BLOCKS)
    assert sum(text.count("<!-- benchmarks:") for text in texts) == len(used)


def test_records_survive_a_file(tmp_path):
    made_up().write(tmp_path / "made-up.json")
    assert Run.read(tmp_path / "made-up.json") == made_up()


def test_ratios_compare_with_live_peers_alone():
    (ratio,) = ratios(made_up().records)
    assert (ratio.key, ratio.value) == (("points", 10, "ours", "peer"), 4.0)


@pytest.mark.parametrize(("fall", "is_named"), [(0.2, False), (0.4, True)])
def test_a_fall_by_more_than_a_third_is_named(fall, is_named):
    now = made_up(peer_seconds=4.0 * (1.0 - fall))
    assert bool(falls(made_up().records, now.records)) is is_named


@pytest.mark.parametrize(("fall", "code"), [(0.2, 0), (0.4, 1)])
def test_check_fails_if_a_ratio_fell_twice(tmp_path, monkeypatch, capsys, fall, code, one_problem):
    problem = one_problem("PermutationInvariantSVC")
    measured = [
        replace(each, problem=problem.name, size=problem.size) for each in made_up().records[:2]
    ]
    replace(made_up(), area="small", records=tuple(measured)).write(tmp_path / "small.json")
    times = []

    def measure(self, problem):
        times.append(problem.name)
        yield from (
            measured[0],
            replace(measured[1], seconds=Seconds(4.0, 3.6 * (1.0 - fall), 5.0, 3)),
        )

    monkeypatch.setattr(_measure.Bench, "measure", measure)
    assert command.main(["small", "--check", "--output", str(tmp_path)]) == code
    assert len(times) == 1 + code
    assert f"{code} of 1 ratios fell by more than a third." in capsys.readouterr().out


def test_check_forgives_a_fall_that_does_not_happen_again(tmp_path, monkeypatch, one_problem):
    problem = one_problem("PermutationInvariantSVC")
    measured = [
        replace(each, problem=problem.name, size=problem.size) for each in made_up().records[:2]
    ]
    replace(made_up(), area="small", records=tuple(measured)).write(tmp_path / "small.json")
    peers = iter((1.0, 3.6))

    def measure(self, problem):
        yield from (measured[0], replace(measured[1], seconds=Seconds(4.0, next(peers), 5.0, 3)))

    monkeypatch.setattr(_measure.Bench, "measure", measure)
    assert command.main(["small", "--check", "--output", str(tmp_path)]) == 0


def test_check_without_recorded_figures_is_an_error(tmp_path, capsys):
    assert command.main(["small", "--check", "--output", str(tmp_path)]) == 2
    assert "small is not recorded" in capsys.readouterr().err


def test_pages_show_spread_failures_ratios_and_sources(tmp_path):
    page = _render.page(made_up())
    assert "| 10 | **ours** | 1.00 (0.9 to 1.20) | 3 | 0.5 | 1,234 |  |" in page
    assert "|  | peer | 4.00 (3.60 to 4.80) |  |  |  | 4.00 |" in page
    assert "|  | peer | over 9 s |" in page
    assert "printed (a paper)" in page
    assert "a processor, 2 cores, 8 GB" in page
    _docs.write(made_up(), tmp_path)
    assert (tmp_path / "made-up.md").read_text() == page
    assert "<svg" in (tmp_path / "made-up.svg").read_text()
    assert _render.exponent([10, 100, 1000], [3e2, 3e4, 3e6]) == pytest.approx(2.0)


def test_quoted_figures_survive_a_new_run(tmp_path):
    _docs.write(made_up(), tmp_path)
    without = replace(made_up(), records=made_up().records[:4])
    _docs.write(without, tmp_path)
    assert Run.read(tmp_path / "made-up.json") == made_up()


def test_a_quick_run_measures_in_processes_and_writes(tmp_path, capsys, one_problem):
    one_problem("PermutationInvariantSVC")
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    assert command.main(["small", "--quick", "--output", str(tmp_path)]) == 0
    ours, peer = Run.read(tmp_path / "small.json").records
    assert (ours.kind, peer.kind) == ("ours", "peer")
    assert not ours.failed
    assert ours.seconds.repeats >= _measure.QUICK.least
    assert 0.0 < ours.seconds.low <= ours.seconds.median <= ours.seconds.high
    assert ours.megabytes is None or ours.megabytes >= 0.0
    assert "small 1/1: PermutationInvariantSVC" in capsys.readouterr().err
    assert before is None or os.sched_getaffinity(0) == before


def test_a_missing_peer_is_left_out_with_the_command_that_installs_it(monkeypatch, one_problem):
    problem = one_problem("GridLayout, fast, 50 features")
    monkeypatch.setattr(_measure, "find_spec", lambda name: None)
    said = []
    with _measure.Bench("small", _measure.QUICK, said.append) as bench:
        (ours,) = bench.measure(problem)
    assert ours.kind == "ours"
    assert 0.5 < ours.quality["DPQ"] < 1.0
    assert said == ["FLAS is left out. To compare with it: pip install vc-flas"]


def test_what_passes_a_limit_is_stopped_and_larger_sizes_are_not_tried(monkeypatch, one_problem):
    problem = one_problem("MeanMapKernel, 20 points of 2 features")
    monkeypatch.setattr(_measure, "PEER_LIMITS", _measure.Limits(0.0, 8000.0))
    with _measure.Bench("small", _measure.QUICK, lambda line: None) as bench:
        ours, peer = bench.measure(problem)
        assert not ours.failed
        assert peer.failed == "over 0 s"
        _, larger = bench.measure(problem)
    assert larger.failed == "not run: over 0 s at 300"


def test_a_failing_area_does_not_stop_the_others(tmp_path, monkeypatch, capsys, one_problem):
    one_problem("SetAligner")
    real = command.import_area

    def import_area(name):
        if name == "layout":
            raise RuntimeError("broken")
        return real(name)

    monkeypatch.setattr(command, "import_area", import_area)
    assert command.main(["layout", "small", "--quick", "--output", str(tmp_path)]) == 1
    assert (tmp_path / "small.json").exists()
    assert "layout failed: RuntimeError: broken" in capsys.readouterr().err


def test_unknown_areas_and_a_missing_gpu_are_errors(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["weather"])
    assert "unknown area 'weather'" in capsys.readouterr().err
    monkeypatch.setattr(command, "has_gpu", lambda: False)
    assert command.main(["--gpu"]) == 2
    assert "CUDA" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*command.AREAS, *command.GPU_AREAS])
def test_areas_have_problems_of_distinct_names_and_ours_first(name):
    try:
        area = _measure.import_area(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    problems = list(area.problems())
    keys = [(each.name, each.size) for each in problems]
    assert len(set(keys)) == len(keys)
    assert any(each.quick for each in problems)
    for problem in problems:
        names = [each.name for each in problem.methods]
        assert len(set(names)) == len(names)
        assert problem.methods[0].kind == "ours"
        assert {each.needs for each in problem.methods} <= {"", *_measure.PACKAGES}
