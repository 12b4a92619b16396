import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unshuffle import PermutationInvariantSVC
from unshuffle._core.bags import Bags
from unshuffle.svm._paper import _on_side
from unshuffle.svm._templates import nearest_candidates


def test_paths_of_two_classes(shapes):
    sets, y = shapes[0], shapes[1] % 2
    plain = PermutationInvariantSVC(template="ball", tol=0).fit(sets, y)
    assert plain.radius_path_.shape == (plain.n_iter_, 1)
    assert (np.diff(plain.radius_path_, axis=0) <= 1e-9).all()
    assert plain.margin_path_.shape == (1, 1)
    pushed = PermutationInvariantSVC(margin_weight=0.3, template="ball", max_iter=100)
    pushed.fit(sets, y)
    assert pushed.radius_path_.shape == pushed.margin_path_.shape == (len(pushed.radius_path_), 1)
    assert pushed.margin_path_[-1] > pushed.margin_path_[0]


def test_paper_rule_and_mean_decision_agree(shapes):
    sets, y = shapes[0], shapes[1] % 2
    model = PermutationInvariantSVC(margin_weight=0.2, template="ball").fit(sets, y)
    one = model._model.separations[0]
    sides = []
    for sign in (1.0, -1.0):
        candidates = model._model.preparation.candidates(model._bags_like_fitted(sets))
        orders = _on_side(one, sign, candidates, None)
        ordered = np.array([points[order] for points, order in zip(sets, orders, strict=True)])
        sides.append(one.classifier.decision(ordered))
    up, down = sides
    by_paper = np.where(np.abs(up) >= np.abs(down), up, down) > 0
    assert (up >= down - 1e-9).all()
    np.testing.assert_array_equal(model.predict(sets) == 1, by_paper)


def test_bisection_never_costs_a_set_its_margin(shapes):
    sets, y = shapes[0], shapes[1] % 2
    careful, plain = (
        PermutationInvariantSVC(
            margin_weight=0.3, template="ball", bisect=bisect, max_iter=100
        ).fit(sets, y)
        for bisect in (True, False)
    )
    assert careful.margin_path_[0] == plain.margin_path_[0]
    # pushed no further than needed, sets stay closer to their center
    assert careful.radius_path_[-1] < plain.radius_path_[-1]


def test_a_push_beyond_all_floats_is_refused():
    # with the rbf kernel no product of points is huge, but the distances to the template are
    rng = np.random.default_rng(0)
    sets = 1e140 * rng.normal(size=(12, 6, 2))
    for kernel in ("rbf", lambda a, b: np.exp(-1e-290 * ((a[:, None] - b) ** 2).sum(-1))):
        classifier = PermutationInvariantSVC(margin_weight=1e8, kernel=kernel).fit(
            sets, np.arange(12) % 2
        )
        assert np.isfinite(classifier.decision_function(sets)).all()
    candidates = Bags.of(sets)
    with pytest.raises(ValueError, match="template pushed by `margin_weight`, reach 1e\\+151"):
        nearest_candidates(np.full((6, 2), 1e151), candidates)
    with pytest.raises(ValueError, match="template pushed by `margin_weight`, reach 1e\\+151"):
        nearest_candidates(np.full((7, 2), 1e151), candidates)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_largest_push_gives_finite_decisions(shapes, kernel):
    sets, labels = shapes
    classifier = PermutationInvariantSVC(margin_weight=1e8, kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(sets, labels)
    assert np.isfinite(classifier.decision_function(sets)).all()


def test_a_push_can_raise_the_radius():
    # Points of the plane whose coordinates may be exchanged, around (0, 2) and (0, 6).
    rng = np.random.default_rng(1)
    points = rng.normal(size=(60, 2)) + np.repeat([[0.0, 2.0], [0.0, 6.0]], 30, axis=0)
    sets, y = points[:, :, None], np.repeat([0, 1], 30)
    model = PermutationInvariantSVC(margin_weight=1.0, template="ball", tol=0, max_iter=10)
    with pytest.warns(ConvergenceWarning):
        model.fit(sets, y)
    assert np.diff(model.radius_path_[:, 0]).max() > 0.5
    assert np.diff(model.margin_path_[:, 0]).min() < -0.1
