"""Jobs: one of a kind at a time, progress, cancel, limits."""

import threading

import pytest

from unshuffle.web._work import jobs as _jobs
from unshuffle.web._work.jobs import Jobs, TooMany


@pytest.fixture
def jobs():
    made = Jobs(lambda: None, ("reading", "arranging", "exporting"))
    yield made
    made.stop()


def test_one_job_of_a_kind_runs_at_a_time_and_kinds_do_not_wait_for_each_other(jobs):
    order, go = [], threading.Event()
    first = jobs.start("reading", "Reading", lambda job: (go.wait(10), order.append("first")))
    jobs.start("reading", "Reading", lambda job: order.append("second"))
    jobs.start("arranging", "Arranging", lambda job: order.append("other"))
    assert jobs.wait("arranging", 10)
    assert order == ["other"]
    assert [job.kind for job in jobs.unfinished()] == ["reading", "reading"]
    assert jobs.find(first.id) is first
    go.set()
    assert jobs.wait(timeout=600)
    assert order == ["other", "first", "second"]
    assert jobs.find(first.id) is None


def test_too_many_are_refused_but_canceled_ones_do_not_count(jobs):
    go = threading.Event()
    for _ in range(_jobs.MOST_WAITING):
        jobs.start("exporting", "Writing", lambda job: go.wait(10))
    with pytest.raises(TooMany):
        jobs.start("exporting", "Writing", lambda job: None)
    jobs.start("reading", "Reading", lambda job: None)
    jobs.cancel("exporting")
    ran = []
    jobs.start("exporting", "Writing", lambda job: ran.append(job.id))
    go.set()
    assert jobs.wait(timeout=600)
    assert len(ran) == 1


def test_a_canceled_job_ends_at_its_next_report_and_a_waiting_one_never_begins(jobs):
    begun, reports = threading.Event(), []

    def work(job):
        for k in range(10**6):
            reports.append(k)
            job.count(k, 10**6)
            begun.set()

    running = jobs.start("reading", "Reading", work)
    waiting = jobs.start("reading", "Reading", lambda job: reports.append("never"))
    assert begun.wait(10)
    running.cancel()
    waiting.cancel()
    assert jobs.wait(timeout=600)
    assert len(reports) < 10**6
    assert "never" not in reports


def test_a_job_that_takes_too_long_is_stopped(jobs, monkeypatch):
    monkeypatch.setattr(_jobs, "LONGEST", 0.05)
    late = []

    def work(job):
        try:
            while True:
                job.advance(0.5)
        finally:
            late.append(job.late)

    jobs.start("arranging", "Arranging", work)
    assert jobs.wait(timeout=600)
    assert late == [True]


def test_progress_and_time_left(jobs, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_jobs, "monotonic", lambda: now[0])
    told = []

    def work(job):
        told.append(job.describe())
        now[0] += 10
        job.count(25, 100)
        told.append(job.describe())
        job.say("Comparing")
        told.append(job.describe())
        job.advance(7.0)
        told.append(job.describe())

    jobs.start("reading", "Reading", work)
    assert jobs.wait(timeout=600)
    first, counted, second, all_of_it = told
    assert (first["words"], first["fraction"], first["left"]) == ("Reading", 0, "")
    assert (counted["done"], counted["total"], counted["fraction"]) == (25, 100, 0.25)
    assert counted["left"] == "30 seconds left"
    assert (second["words"], second["fraction"], second["left"]) == ("Comparing", 0, "")
    assert (all_of_it["fraction"], all_of_it["left"]) == (1, "")


def test_what_a_job_raises_does_not_stop_the_next(jobs, capsys):
    done = []
    jobs.start("reading", "Reading", lambda job: 1 / 0)
    jobs.start("reading", "Reading", lambda job: done.append(1))
    assert jobs.wait(timeout=600)
    assert done == [1]
    assert "ZeroDivisionError" in capsys.readouterr().err
