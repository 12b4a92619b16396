import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from unshuffle._parallel import Workers, map_parallel, one_blas_thread


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
    both = threading.Barrier(2, timeout=10)

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
    with pytest.raises(ValueError, match="n_jobs == 0"):
        Workers(0)


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
    from unshuffle import _parallel

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
