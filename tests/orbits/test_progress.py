import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import OrbitLearner

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.base.DoubtWarning")

BOTH = [{}, {"loss": "logtrace", "structure": "symmetric"}]


@pytest.mark.parametrize("options", BOTH)
def test_the_callback_sees_every_step(wedge, options):
    states = []
    learner = OrbitLearner(1, callback=states.append, tol=1e-3, random_state=0, **options)
    learner.fit(wedge(n=40))
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))
    assert len(states) >= learner.n_iter_
    assert np.all(np.diff([state.fraction for state in states]) >= 0)
    for state in states:
        assert state.generators.shape == (1, 3, 3)
        assert state.permutation.size == 0
        assert state.stage
    assert max(state.objective for state in states) >= -learner.objective_ - 1e-12


@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize("answer", [True, np.True_])
def test_stopping_keeps_the_best_so_far(wedge, options, answer):
    learner = OrbitLearner(1, callback=lambda state: answer, random_state=0, **options)
    learner.fit(wedge(n=40))
    assert not learner.converged_
    assert learner.transform(wedge(n=3)).shape == (3, 1)


@pytest.mark.parametrize("options", BOTH)
def test_an_interrupt_leaves_the_best_so_far(wedge, options):
    def interrupt(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    learner = OrbitLearner(1, callback=interrupt, random_state=0, **options)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(wedge(n=40))
    assert learner.generators_.shape == (1, 3, 3)


@pytest.mark.parametrize("options", BOTH)
def test_too_few_steps_warn(wedge, options):
    learner = OrbitLearner(1, max_iter=1, n_init=1, random_state=0, **options)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps. Raise max_iter"):
        learner.fit(wedge(n=40), wedge(n=40, seed=1))
    assert not learner.converged_


@pytest.mark.parametrize("options", BOTH)
def test_nothing_is_set_before_there_is_a_solution(wedge, options):
    learner = OrbitLearner(1, random_state=0, **options)
    seen = []
    learner.set_params(callback=lambda state: seen.append([*vars(learner)]))
    given = {*vars(learner)}
    learner.fit(wedge(n=40))
    assert all(set(names) == given for names in seen)


def test_a_fit_that_fails_leaves_the_earlier_one_and_one_that_ends_replaces_it(wedge):
    learner = OrbitLearner(1, n_components=2, random_state=0).fit(wedge(n=40))
    before = learner.generators_

    def fail(state):
        raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        learner.set_params(n_components=None, callback=fail).fit(wedge(n=40))
    assert learner.generators_ is before
    assert learner.mean_.shape == (3,)
    learner.set_params(callback=None).fit(wedge(n=40))
    assert learner.generators_.shape == (1, 3, 3)
    assert not hasattr(learner, "mean_")
    assert not hasattr(learner, "components_")
