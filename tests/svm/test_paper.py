import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import PermutationInvariantSVC
from unshuffle._bags import Bags
from unshuffle.svm._align import nearest_candidates


def test_paths_of_two_classes(shapes):
    bags, y = shapes[0], shapes[1] % 2
    plain = PermutationInvariantSVC(tol=0).fit(bags, y)
    assert plain.radius_path_.shape == (plain.n_iter_,)
    assert (np.diff(plain.radius_path_) <= 1e-9).all()
    assert plain.margin_path_.shape == (1,)
    pushed = PermutationInvariantSVC(lam=0.3, max_iter=100).fit(bags, y)
    assert pushed.radius_path_.shape == pushed.margin_path_.shape
    assert pushed.margin_path_[-1] > pushed.margin_path_[0]


def test_paper_rule_and_mean_decision_agree(shapes):
    bags, y = shapes[0], shapes[1] % 2
    model = PermutationInvariantSVC(lam=0.2).fit(bags, y)
    view = model._model.views[0]
    sides = []
    for sign in (1.0, -1.0):
        candidates = model._model.placing.candidates(model._bags_like_fitted(bags))
        orders = model._model._permutations(view, sign, candidates, None)
        ordered = np.array([bag[order] for bag, order in zip(bags, orders, strict=True)])
        sides.append(view.machine.decision(ordered))
    up, down = sides
    by_paper = np.where(np.abs(up) >= np.abs(down), up, down) > 0
    assert (up >= down - 1e-9).all()
    np.testing.assert_array_equal(model.predict(bags) == 1, by_paper)


def test_bisection_never_costs_a_set_its_margin(shapes):
    bags, y = shapes[0], shapes[1] % 2
    careful = PermutationInvariantSVC(lam=0.3, bisect=True, max_iter=100).fit(bags, y)
    plain = PermutationInvariantSVC(lam=0.3, max_iter=100).fit(bags, y)
    assert careful.margin_path_[0] == plain.margin_path_[0]
    # pushed no further than needed, sets stay closer to their centre
    assert careful.radius_path_[-1] < plain.radius_path_[-1]


def test_a_push_beyond_all_floats_is_refused():
    # with the rbf kernel no product of points is huge, but the distances to the template are
    rng = np.random.default_rng(0)
    bags = 1e140 * rng.normal(size=(12, 6, 2))
    for kernel in ("rbf", lambda a, b: np.exp(-1e-290 * ((a[:, None] - b) ** 2).sum(-1))):
        machine = PermutationInvariantSVC(lam=1e8, kernel=kernel).fit(bags, np.arange(12) % 2)
        assert np.isfinite(machine.decision_function(bags)).all()
    candidates = Bags.of(bags)
    with pytest.raises(ValueError, match="template moved by `lam`, are as large as 1e\\+151"):
        nearest_candidates(np.full((6, 2), 1e151), candidates)
    with pytest.raises(ValueError, match="template moved by `lam`, are as large as 1e\\+151"):
        nearest_candidates(np.full((7, 2), 1e151), candidates)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_largest_push_gives_finite_decisions(shapes, kernel):
    bags, labels = shapes
    machine = PermutationInvariantSVC(lam=1e8, kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(bags, labels)
    assert np.isfinite(machine.decision_function(bags)).all()
