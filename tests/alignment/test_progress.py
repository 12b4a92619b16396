import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import MinimumVolumePCA


@pytest.mark.parametrize("method", ["mean", "covariance", "variational"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_callback_sees_every_sweep_to_the_end(rings, method, n_jobs):
    states = []
    options = {"n_init": 2, "n_jobs": n_jobs, "random_state": 0}
    found = MinimumVolumePCA(2, method, callback=states.append, **options).fit(rings)
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))
    assert len(states) > found.n_iter_
    fractions = np.array([state.fraction for state in states])
    assert np.all(np.diff(fractions) >= 0)
    assert fractions[0] < 0.5
    assert fractions[-1] == pytest.approx(1.0)
    for state in states:
        assert state.permutation.shape == (14, 24)
        assert np.isfinite(state.objective)
        assert state.stage
    watched = MinimumVolumePCA(2, method, **options).fit(rings)
    np.testing.assert_array_equal(found.permutations_, watched.permutations_)


def test_the_objective_that_is_reported_rises(rings):
    states = []
    found = MinimumVolumePCA(2, callback=states.append).fit(rings)
    np.testing.assert_allclose([-state.objective for state in states], found.objective_path_)


@pytest.mark.parametrize("method", ["mean", "covariance"])
@pytest.mark.parametrize("last", [1, 2, 3])
@pytest.mark.parametrize("answer", [True, np.True_])
def test_stopping_leaves_a_valid_order(rings, method, last, answer):
    found = MinimumVolumePCA(
        2, method, callback=lambda state: answer if state.iteration == last else None
    )
    found.fit(rings)
    assert found.n_iter_ == last - 1
    assert not found.converged_
    assert np.all(np.sort(found.permutations_, axis=1) == np.arange(24))
    assert found.transform(rings).shape == (14, 2)


def test_the_callback_may_spoil_what_it_is_given(rings):
    def spoil(state):
        state.permutation[:] = 0

    spoilt = MinimumVolumePCA(2, callback=spoil).fit(rings)
    np.testing.assert_array_equal(
        spoilt.permutations_, MinimumVolumePCA(2).fit(rings).permutations_
    )


def test_an_interrupt_leaves_the_order_so_far(rings):
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    found = MinimumVolumePCA(2, "covariance", callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.fit(rings)
    assert not found.converged_
    assert np.all(np.sort(found.permutations_, axis=1) == np.arange(24))
    assert found.morph(0, 1, 0.5).shape == (24, 2)


def test_an_error_of_the_callback_reaches_the_caller(rings):
    def fail(state):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        MinimumVolumePCA(2, callback=fail).fit(rings)


@pytest.mark.parametrize("method", ["mean", "covariance"])
def test_stopping_at_max_iter_is_said(method):
    bags = np.random.default_rng(0).normal(size=(20, 30, 2))
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        found = MinimumVolumePCA(2, method, max_iter=1).fit(bags)
    assert not found.converged_
    assert MinimumVolumePCA(2, method).fit(bags).converged_


def test_a_large_tol_stops_sooner():
    bags = np.random.default_rng(0).normal(size=(20, 30, 2))
    soon = MinimumVolumePCA(2, tol=0.1).fit(bags)
    assert soon.converged_
    assert soon.n_iter_ < MinimumVolumePCA(2).fit(bags).n_iter_
