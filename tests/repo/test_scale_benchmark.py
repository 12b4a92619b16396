"""The benchmark of large matchings draws what it says, and counts right."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("a source archive holds no benchmarks", allow_module_level=True)

from benchmarks.scale import _problems, _records, _score  # noqa: E402
from benchmarks.scale.__main__ import costs, spread  # noqa: E402


def test_rotated_points_differ_from_their_partners_by_the_noise():
    problem = _problems.load("cloud_500_0.1_3")
    rest = problem.y[problem.partner] - problem.X @ problem.rotation
    np.testing.assert_allclose(rest.std(), 0.1, rtol=0.05)
    np.testing.assert_allclose(problem.X.std(axis=0), _problems.AXES["cloud"], rtol=0.15)
    np.testing.assert_allclose(problem.rotation @ problem.rotation.T, np.eye(6), atol=1e-6)


@pytest.mark.parametrize(("kind", "n_clusters"), [("even", 40), ("tree", 60)])
def test_networks_see_the_same_clusters(kind, n_clusters):
    problem = _problems.load(f"{kind}_3000_0.1_0")
    assert (problem.X.shape, problem.y.shape) == ((3000, 32), (3000, 48))
    np.testing.assert_array_equal(problem.labels_x, problem.labels_y[problem.partner])
    assert n_clusters - 3 <= np.unique(problem.labels_x).size <= n_clusters
    again = _problems.load(f"{kind}_3000_0.1_0")
    np.testing.assert_array_equal(problem.X, again.X)
    assert not np.array_equal(problem.X, _problems.load(f"{kind}_3000_0.1_1").X)


def test_draws_in_a_folder_take_precedence(tmp_path):
    drawn = _problems.load("cloud_30_0.1_5")._replace(X=np.zeros((30, 6)))
    arrays = {name: value for name, value in drawn._asdict().items() if value is not None}
    np.savez(tmp_path / "cloud_30_0.1_0.npz", **{k: v for k, v in arrays.items() if k != "kernel"})
    assert not _problems.load("cloud_30_0.1_0", tmp_path).X.any()
    assert _problems.load("cloud_30_0.1_1", tmp_path).X.any()


def test_scores_of_the_truth_and_of_an_exchange():
    problem = _problems.load("even_200_0.1_0")
    assert _score.scores(problem, problem.partner) == {
        "right": 1.0,
        "clusters": 1.0,
        "rank_error": 0.0,
    }
    other = np.flatnonzero(problem.labels_x != problem.labels_x[0])[0]
    exchanged = problem.partner.copy()
    exchanged[[0, other]] = exchanged[[other, 0]]
    found = _score.scores(problem, exchanged)
    assert (found["right"], found["clusters"]) == (0.99, 0.99)
    assert 0.0 < found["rank_error"] < 0.01


def test_the_oracle_is_an_upper_bound_in_little_noise_and_all_fail_in_much():
    assert _score.ceilings(_problems.load("cloud_300_0.01_0")) == (1.0, None)
    assert _score.ceilings(_problems.load("cloud_300_3.0_0"))[0] < 0.3
    right, kept = _score.ceilings(_problems.load("even_400_0.05_0"))
    assert right >= kept > 0.95


def test_the_assignment_of_the_oracle_is_the_cheapest_of_all():
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 3))
    expected = linear_sum_assignment(cdist(a, b, "sqeuclidean"))[1]
    np.testing.assert_array_equal(_score.assign(a, b), expected)


def test_each_fit_is_measured_once_in_its_own_process(tmp_path):
    file = tmp_path / "records"
    first = _records.Bench(file=file).fit("cloud_40_0.01_0", "default", n_frozen=10)
    assert first.failed == ""
    assert first.right > 0.5
    assert 0.0 <= first.believed <= 1.0
    assert first.seconds > 0.0
    assert json.loads(file.read_text())["n_frozen"] == 10
    again = _records.Bench(file=file, seconds=0.0).fit("cloud_40_0.01_0", "default", n_frozen=10)
    assert again == first


def test_fits_beyond_a_limit_are_stopped_and_failures_named():
    assert _records.Bench(seconds=0.0).fit("cloud_60_0.1_0", "default").failed == "over 0 s"
    unknown = _records.Bench().fit("hill_60_0.1_0", "default")
    assert "KeyError: 'hill'" in unknown.failed


def test_tables_name_the_worst_draw_and_what_failed(tmp_path):
    records = [
        _records.Record(f"cloud_9_0.1_{seed}", "default", right=right, seconds=2.0, megabytes=1e3)
        for seed, right in enumerate((0.9, 0.5, 1.0))
    ]
    assert spread(records, "right") == "0.9000 (worst 0.5000, draw 1)"
    assert costs(records) == ["2", "1.00"]
    failed = _records.Record("cloud_9_0.1_3", "default", failed="over 9 s")
    assert spread([failed], "right") == "over 9 s"
    assert spread([*records, failed], "right").endswith(", 1 failed")
