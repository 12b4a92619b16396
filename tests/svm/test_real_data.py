import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from unshuffle import PermutationInvariantSVC, SetAligner


@pytest.fixture
def digits(shared_data):
    """Sets of 50 dark pixels of handwritten 3s and 9s, alternating, and the digit of each."""
    data = np.load(shared_data("mnist3000.npz"))
    rng = np.random.default_rng(0)
    threes, nines = (np.flatnonzero(data["labels"] == digit)[:120] for digit in (3, 9))
    chosen = np.stack([threes, nines], axis=1).ravel()
    sets = []
    for image in data["images"][chosen]:
        pixels = np.argwhere(image > 127)
        sets.append(pixels[rng.choice(len(pixels), 50, replace=len(pixels) < 50)] / 28)
    return sets, data["labels"][chosen]


def test_threes_and_nines_are_separated(digits):
    sets, y = digits
    model = PermutationInvariantSVC(kernel="rbf", gamma=30.0).fit(sets[:120], y[:120])
    assert model.score(sets[120:], y[120:]) >= 0.94


def test_aligned_vectors_do_as_well_with_another_classifier(digits):
    sets, y = digits
    model = make_pipeline(SetAligner(kernel="rbf", gamma=30.0), SVC()).fit(sets[:120], y[:120])
    assert model.score(sets[120:], y[120:]) >= 0.94


def test_labels_in_the_alignment_fit_the_training_sets_alone(digits):
    sets, y = digits
    fair, pushed = (
        PermutationInvariantSVC(margin_weight=margin_weight, max_iter=100).fit(sets[:120], y[:120])
        for margin_weight in (0.0, 0.3)
    )
    assert pushed.margin_path_[-1] > 2 * fair.margin_path_[-1]
    assert pushed.score(sets[120:], y[120:]) < fair.score(sets[120:], y[120:])
