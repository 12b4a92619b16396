import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from unshuffle import KernelizedSorting
from unshuffle.matching._low_rank.factors import compute_factors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def on_device(gpu):
    """All work asked of a GPU runs there, or in PyTorch on the CPU."""


@pytest.fixture(scope="module")
def sides():
    """Skewed points, the same rotated in another order, and where the partners are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [3.0, 2.0, 1.5, 1.0, 0.7]
    X[:, 0] += 0.3 * X[:, 0] ** 2
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    order = rng.permutation(200)
    y = (X @ rotation + 0.02 * rng.normal(size=X.shape))[order]
    return X, y, np.argsort(order)


def sort_on(device="cuda", **parameters):
    parameters = {"random_state": 0, "trust": False, "n_init": 1, **parameters}
    return KernelizedSorting(device=device, **parameters)


def test_a_device_finds_what_the_cores_find(sides):
    X, y, partner = sides
    found = sort_on(trust=True).fit(X, y)
    assert found.method_ == "low_rank"
    assert np.mean(found.permutation_ == partner) > 0.99
    cores = sort_on("cpu", method="low_rank", trust=True).fit(X, y)
    assert np.mean(found.permutation_ == cores.permutation_) > 0.99
    assert found.expected_accuracy_ == pytest.approx(cores.expected_accuracy_, abs=0.02)
    assert found.objective_ == pytest.approx(cores.objective_, rel=1e-3)
    np.testing.assert_allclose(found.confidence_.mean(), cores.confidence_.mean(), atol=0.02)


def test_the_same_seed_gives_the_same_answer(sides):
    X, y, _ = sides
    one, two = (sort_on().fit(X, y + 0.3 * np.sin(7 * y)) for _ in range(2))
    np.testing.assert_array_equal(one.permutation_, two.permutation_)
    np.testing.assert_array_equal(one.confidence_, two.confidence_)


def test_known_pairs_are_kept_and_hints_heard(sides):
    X, y, partner = sides
    frozen = [[5, (partner[5] + 1) % 200], [9, partner[9]]]
    hints = np.column_stack([np.arange(20, 40), partner[20:40], np.full(20, 0.9)])
    found = sort_on().fit(X, y, frozen=frozen, hints=hints).permutation_
    assert found[5] == (partner[5] + 1) % 200
    assert found[9] == partner[9]
    assert sorted(found) == list(range(200))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_cost_rules_pairs_out(sides, form):
    X, y, partner = sides
    cost = np.zeros((200, 200))
    cost[np.arange(30), partner[:30]] = 1e6
    found = sort_on().fit(X, y, cost=form(cost)).permutation_
    assert not np.any(found[:30] == partner[:30])
    assert np.mean(found[30:] == partner[30:]) > 0.8


@pytest.mark.parametrize("sizes", [(150, 200), (200, 150)])
def test_sides_of_different_sizes(sides, sizes):
    X, y, partner = sides
    kept = np.sort(np.random.default_rng(1).permutation(200)[: sizes[1]])
    found = sort_on().fit(X[: sizes[0]], y[kept]).permutation_
    matched = np.flatnonzero(found >= 0)
    assert matched.size == min(sizes)
    assert np.unique(found[matched]).size == min(sizes)
    known = matched[np.isin(partner[matched], kept)]
    assert np.mean(kept[found[known]] == partner[known]) > 0.9


def test_pairs_that_disagree_are_released(sides):
    X, y, partner = sides
    changed = y.copy()
    strange = partner[:20]
    changed[strange] = np.random.default_rng(2).normal(size=(20, 5)) * 4
    found = sort_on(unmatched_cost=0.3).fit(X, changed).permutation_
    assert np.mean(found[:20] < 0) > 0.5
    assert np.mean(found[20:] == partner[20:]) > 0.9


def test_candidates_and_soft_shares(sides):
    X, y, partner = sides
    found = sort_on().fit(X, y)
    candidates = found.candidates(4)
    np.testing.assert_array_equal(candidates[:, 0], found.permutation_)
    shares = found.soft_matches()
    assert sparse.issparse(shares)
    np.testing.assert_allclose(np.asarray(shares.sum(axis=1)).ravel(), 1.0, atol=1e-3)
    assert np.mean(shares.toarray().argmax(axis=1) == partner) > 0.95


def test_tensors_in_and_tensors_out(sides, gpu):
    X, y, partner = sides
    home = "cuda" if torch.cuda.is_available() else "cpu"
    first, second = (torch.as_tensor(each, device=home) for each in (X, y))
    found = sort_on("cuda").fit(first, second)
    assert np.mean(found.permutation_ == partner) > 0.99
    moved = found.transform(first)
    assert isinstance(moved, torch.Tensor)
    assert moved.device.type == home
    np.testing.assert_allclose(moved.cpu().numpy(), found.transform(X))
    ordered = found.reorder(second)
    assert isinstance(ordered, torch.Tensor)
    np.testing.assert_array_equal(ordered.cpu().numpy(), y[found.permutation_])
    pairs = found.match(first[:5], second[partner[:5]])
    np.testing.assert_array_equal(pairs.permutation, np.arange(5))


@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "laplacian", "geodesic", "precomputed", ["rbf", "linear"]]
)
def test_factors_are_those_of_the_cores(sides, kernel):
    X = sides[0]
    given = X @ X.T if kernel == "precomputed" else X
    keywords = {"gamma": None, "weights": None, "name": "X", "rank": 6, "n_landmarks": 128}
    cores = compute_factors(given, kernel, **keywords)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = compute_factors(given, kernel, device=device, **keywords)
    np.testing.assert_allclose(found.eigenvalues, cores.eigenvalues, rtol=2e-3)
    assert found.spread == pytest.approx(cores.spread, rel=1e-3)
    scores = found.scores.cpu().numpy()
    signs = np.sign(np.einsum("ij,ij->j", scores, cores.scores))
    np.testing.assert_allclose(scores * signs, cores.scores, atol=0.02)


def test_texts_are_compared_on_the_cores_and_matched_on_the_device():
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(60)])
    first = [" ".join(rng.choice(words, 30, p=rng.dirichlet(np.ones(60) / 5))) for _ in range(60)]
    found = sort_on().fit(first, [text.replace("word", "wort") for text in first[::-1]])
    assert np.mean(found.permutation_ == np.arange(60)[::-1]) > 0.9


def test_a_fitted_estimator_is_pickled_for_machines_without_a_gpu(sides):
    X, y, _ = sides
    found = sort_on().fit(X, y)
    loaded = pickle.loads(pickle.dumps(found))
    assert loaded._shares.device is None
    assert np.mean(loaded.candidates(3) == found.candidates(3)) > 0.95
    np.testing.assert_array_equal(loaded.questions(3), found.questions(3))
    assert clone(found).device == "cuda"


def test_a_callback_stops_the_search_and_the_best_is_kept(sides):
    X, y, _ = sides
    stages = []

    def stop(state):
        stages.append(state.stage)
        return len(stages) == 2

    found = sort_on(callback=stop).fit(X, y).permutation_
    assert len(stages) == 2
    assert sorted(found) == list(range(200))


@pytest.mark.parametrize("method", ["refined", "classic", "unbiased", "entropy"])
def test_dense_methods_are_refused(sides, method):
    with pytest.raises(ValueError, match=f"method='{method}' runs on the CPU only"):
        sort_on(method=method).fit(*sides[:2])


@pytest.mark.parametrize("size", [2, 3, 7])
def test_few_items(size):
    X = np.random.default_rng(0).normal(size=(size, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sort_on(trust=True).fit(X, X[::-1].copy())
    assert sorted(found.permutation_) == list(range(size))


def test_bad_input_has_the_words_of_the_cores(sides):
    X, y, _ = sides
    X = X.copy()
    X[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17"):
        sort_on().fit(X, y)
    with pytest.raises(ValueError, match="All items of y are equal"):
        sort_on().fit(sides[0], np.ones((200, 3)))


def test_matching_runs_without_numba(sides, gpu):
    stand_in = "" if torch.cuda.is_available() else "_device._gpu = lambda torch, name: cpu\n"
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np\n"
        "import torch\n"
        "from unshuffle import KernelizedSorting\n"
        "from unshuffle._run import device as _device\n"
        "cpu = torch.device('cpu')\n"
        + stand_in
        + "X = np.random.default_rng(0).normal(size=(120, 4)) * [3, 2, 1, .5]\n"
        "found = KernelizedSorting(device='cuda', random_state=0).fit(X, X[::-1].copy())\n"
        "print(np.mean(found.permutation_ == np.arange(120)[::-1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.9
