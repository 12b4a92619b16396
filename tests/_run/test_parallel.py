import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from unshuffle._run import parallel as _parallel
from unshuffle._run.parallel import (
    Workers,
    count_threads,
    map_parallel,
    one_blas_thread,
    per_call,
    spans,
    wait_for,
)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_results_come_in_the_order_of_the_arguments(n_jobs):
    def slow_square(number):
        time.sleep(0.002 * (3 - number))
        return number**2

    assert map_parallel(slow_square, range(4), n_jobs=n_jobs) == [0, 1, 4, 9]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_keeps_to_one_thread_while_others_run(n_jobs):
    before = blas_threads()
    assert map_parallel(lambda _: blas_threads() <= {1}, range(3), n_jobs=n_jobs) == [True] * 3
    with one_blas_thread():
        assert blas_threads() <= {1}
    assert blas_threads() == before


def test_blas_keeps_to_one_thread_until_the_last_of_several_callers_is_out():
    before, inside, out = blas_threads(), threading.Event(), threading.Event()

    def first():
        with one_blas_thread():
            inside.set()
            out.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(10)
    with one_blas_thread():
        out.set()
        thread.join()
        assert blas_threads() <= {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("n_pieces", [0, 1, 2, 50])
def test_every_piece_is_done_once_before_the_call_returns(n_jobs, n_pieces):
    done = np.zeros(n_pieces, dtype=int)

    def work(piece, step):
        time.sleep(0.0002)
        done[piece] += step

    with Workers(n_jobs) as workers:
        for round_number in range(1, 4):
            workers.each(work, [(piece, 2) for piece in range(n_pieces)])
            assert np.all(done == 2 * round_number)


def test_pieces_run_in_threads_of_their_own_and_one_in_that_of_the_caller():
    names = set()
    both = threading.Barrier(2, timeout=600)

    def meet(wait):
        if wait:
            both.wait()  # passed only if two pieces run at the same time
        names.add(threading.current_thread())

    with Workers(2) as workers:
        workers.each(meet, [(True,), (True,)])
        assert threading.current_thread() not in names
        workers.each(meet, [(False,)])
        assert threading.current_thread() in names
    assert not any(thread.is_alive() for thread in names - {threading.current_thread()})


def test_the_number_of_threads_is_that_of_joblib():
    assert Workers(3).n_threads == 3
    assert Workers().n_threads == 1
    assert Workers(-1).n_threads >= 1
    with parallel_config(n_jobs=2, backend="threading"):
        assert Workers().n_threads == 2
    with pytest.raises(ValueError, match="`n_jobs` must not be 0"):
        Workers(0)


@pytest.mark.parametrize("n_jobs", [100_000, 10**18, np.int64(100_000)])
def test_more_threads_than_cores_can_use_are_not_started(monkeypatch, n_jobs):
    monkeypatch.setattr(_parallel, "cpu_count", lambda: 2)
    assert Workers(n_jobs).n_threads == count_threads(n_jobs) == 8
    assert count_threads(n_jobs, 3) == 3
    assert count_threads(n_jobs, 0) == 1
    threads = set()

    def note(_):
        threads.add(threading.current_thread())

    map_parallel(note, range(200), n_jobs=n_jobs)
    assert len(threads) <= 8
    with parallel_config(n_jobs=100_000, backend="threading"):
        assert Workers().n_threads == 8


@pytest.mark.parametrize("n_jobs", [-100_000, -(10**18)])
def test_less_than_no_threads_are_one(n_jobs):
    assert count_threads(n_jobs) == 1
    assert map_parallel(abs, [-1, 2], n_jobs=n_jobs) == [1, 2]


@pytest.mark.parametrize("n_jobs", [True, np.True_, 2.0, np.nan, "2", [2], 1j])
def test_what_is_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ValueError, match="`n_jobs` must be a whole number or None, got "):
        map_parallel(abs, [1], n_jobs=n_jobs)
    with pytest.raises(ValueError, match="`n_jobs` must be a whole number or None, got "):
        Workers(n_jobs)


def test_spans_cover_everything_and_are_short(monkeypatch):
    for n, work in ((0, 1.0), (1, 1e30), (7, 5e7), (10**6, 1.0), (10**9, 0.0)):
        ends = list(spans(n, work))
        assert [start for start, _ in ends] == [0, *(stop for _, stop in ends)][: len(ends)]
        assert (ends[-1][1] if ends else 0) == n
        assert all(0 < stop - start <= per_call(work) for start, stop in ends)
    assert per_call(1e30) == per_call(np.inf) == 1
    assert per_call(_parallel.WORK_PER_CALL / 5) == 5


def test_what_is_waited_for_runs_elsewhere_and_gives_its_result_or_error():
    def where():
        return threading.current_thread(), np.geterr()["divide"]

    with np.errstate(divide="raise"):
        thread, divide = wait_for(where)
    assert thread is not threading.main_thread()
    assert divide == "raise"
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda x: 1 // x, 0)
    # only the main thread is ever interrupted; others need nobody to wait in their place
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(wait_for, threading.current_thread).result() in pool._threads


@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are those of Unix")
def test_an_interrupt_does_not_wait_for_what_is_waited_for():
    done, ended = threading.Event(), []

    def work():
        done.wait(60)
        ended.append(True)

    # To the process, as from a terminal; `raise_signal` would reach the timer's thread only.
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        wait_for(work)
    assert not ended
    done.set()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_piece_reaches_the_caller_and_the_workers_go_on(n_jobs):
    done = []

    def work(piece):
        if piece == 3:
            raise RuntimeError("piece 3 is broken")
        done.append(piece)

    with Workers(n_jobs) as workers:
        with pytest.raises(RuntimeError, match="piece 3 is broken"):
            workers.each(work, [(piece,) for piece in range(6)])
        done.clear()
        workers.each(work, [(0,), (1,)])
        assert sorted(done) == [0, 1]


def test_after_an_interrupt_no_thread_goes_on_writing(monkeypatch):
    from unshuffle._run import parallel as _parallel

    running, finished = threading.Semaphore(0), []
    real_wait, calls = _parallel.wait, []

    def work(piece):
        running.release()
        time.sleep(0.05)
        finished.append(piece)

    def interrupted_wait(futures):
        calls.append(futures)
        if len(calls) == 1:
            running.acquire()
            raise KeyboardInterrupt
        return real_wait(futures)

    monkeypatch.setattr(_parallel, "wait", interrupted_wait)
    with Workers(2) as workers:
        with pytest.raises(KeyboardInterrupt):
            workers.each(work, [(piece,) for piece in range(40)])
        n_finished = len(finished)
        assert 1 <= n_finished < 40  # those under way were waited for, the rest never began
        time.sleep(0.12)
        assert len(finished) == n_finished
