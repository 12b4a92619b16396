import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import OrbitLearner


def between(learner, X, pairs, share):
    """Rows part of the way from each to its target: on from one, back from the other."""
    moved = (1 - share) * X + share * np.roll(X, -32, axis=0)
    for (target, source), c in zip(pairs, learner.coefficients_, strict=True):
        on = learner.orbit(X[source], share * c)
        back = learner.orbit(X[target], (share - 1) * c)
        moved[source] = (1 - share) * on + share * back
    return moved


@pytest.mark.slow
def test_views_between_views_are_closer_than_linear_ones(shared_data):
    data = np.load(shared_data("coil20_obj1to12.npz"))
    own = data["object_id"] == 8
    views = data["images"][own][np.argsort(data["angle"][own])] / 255.0
    X = views[::6].reshape(-1, 32)
    source = np.arange(len(X))
    target = (source + 32) % len(X)
    seen = np.minimum(X[source].max(axis=1), X[target].max(axis=1)) > 0
    pairs = np.stack([target, source], axis=1)[seen]
    band = np.abs(np.subtract.outer(np.arange(32), np.arange(32))) == 1
    options = {"structure": "skew", "pattern": band, "n_init": 1, "max_iter": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = OrbitLearner(1, pairs=pairs, random_state=0, **options).fit(X)
    truth = views[3::6].reshape(-1, 32)
    half = between(learner, X, pairs, 0.5)
    linear = 0.5 * (X + np.roll(X, -32, axis=0))
    assert np.sum((half - truth) ** 2) < 0.97 * np.sum((linear - truth) ** 2)
    assert not learner.generators_[0][~band].any()
