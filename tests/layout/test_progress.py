import numpy as np
import pytest

from unshuffle import GridLayout
from unshuffle.metrics import distance_preservation_quality

QUALITIES = ["fast", "balanced", "best", "classic"]


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_features", [3, 20])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_callback_sees_every_step_to_the_end(quality, n_features, n_jobs):
    X = np.random.default_rng(0).random((40, n_features))
    states = []
    options = {"quality": quality, "n_jobs": n_jobs, "random_state": 0}
    layout = GridLayout((6, 7), callback=states.append, **options).fit(X)
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))
    assert layout.n_iter_ == len(states)
    fractions = np.array([state.fraction for state in states])
    assert np.all(np.diff(fractions) >= 0)
    assert 0 < fractions[0] < 0.5
    assert fractions[-1] == pytest.approx(1.0)
    for state in states:
        assert np.array_equal(np.unique(state.permutation), np.sort(state.permutation))
        assert state.permutation.shape == (40,)
        assert 0 <= state.permutation.min() <= state.permutation.max() < 42
        assert np.isfinite(state.objective)
        assert state.stage
    cells = layout.positions_ @ [7, 1]
    assert np.array_equal(states[-1].permutation, cells)
    watched = layout.grid_
    assert np.array_equal(GridLayout((6, 7), **options).fit(X).grid_, watched)


@pytest.mark.parametrize("quality", QUALITIES)
def test_steps_are_counted_whether_or_not_somebody_looks(colors, quality):
    plain = GridLayout(quality=quality, random_state=0).fit(colors(30))
    seen = GridLayout(quality=quality, random_state=0, callback=lambda _: None).fit(colors(30))
    assert plain.n_iter_ == seen.n_iter_ > 1


@pytest.mark.parametrize("quality", QUALITIES)
def test_one_item_is_one_step_that_is_all_of_the_work(colors, quality):
    states = []
    GridLayout(quality=quality, callback=states.append).fit(colors(1))
    assert [(state.iteration, state.fraction) for state in states] == [(1, 1.0)]


def test_agreement_grows_as_the_layout_does(colors):
    states = []
    GridLayout((12, 12), random_state=0, callback=states.append).fit(colors(144))
    objectives = [state.objective for state in states]
    assert objectives[-1] > objectives[0] + 0.3


def test_the_callback_may_spoil_what_it_is_given(colors, check_layout):
    def spoil(state):
        state.permutation[:] = 0

    spoilt = GridLayout(random_state=0, callback=spoil).fit(colors(30))
    assert np.array_equal(spoilt.grid_, GridLayout(random_state=0).fit(colors(30)).grid_)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("shape", [(6, 7), np.tri(9, dtype=bool), np.eye(45)[:, :2]])
@pytest.mark.parametrize("last", [1, 5])
@pytest.mark.parametrize("answer", [True, np.True_])
def test_stopping_leaves_a_valid_layout(colors, check_layout, quality, shape, last, answer):
    seen = []

    def stop(state):
        seen.append(state.permutation)
        return answer if state.iteration == last else None

    layout = GridLayout(shape, quality=quality, random_state=0, callback=stop)
    layout.fit(colors(36), frozen=[(4, 0)])
    assert len(seen) == layout.n_iter_ == last
    check_layout(layout, 36)
    assert np.array_equal(layout.grid_.ravel()[seen[-1]], np.arange(36))
    assert layout.grid_.ravel()[0] == 4
    assert np.isfinite(layout.score_)


@pytest.mark.parametrize("answer", [None, False, np.False_])
def test_only_true_stops(colors, answer):
    layout = GridLayout(random_state=0, callback=lambda _: answer).fit(colors(30))
    assert np.array_equal(layout.grid_, GridLayout(random_state=0).fit(colors(30)).grid_)


def test_an_interrupt_between_steps_keeps_the_layout_of_the_last_step(colors, monkeypatch):
    states = []
    layout = GridLayout((6, 7), random_state=0, callback=states.append)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unshuffle.layout._cpu.anneal._reorder", interrupt)
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(40))
    assert layout.n_iter_ == len(states) > 1
    assert np.array_equal(layout.grid_.ravel()[states[-1].permutation], np.arange(40))


def test_classic_is_scored_by_the_features_however_early_it_stops(colors):
    X = colors(36)
    layout = GridLayout(quality="classic", random_state=0, callback=lambda _: True).fit(X)
    assert layout.score_ == distance_preservation_quality(X, layout.grid_)


def interrupt_at(stage):
    def interrupt(state):
        if state.stage == stage:
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize(
    ("quality", "stage"),
    [("fast", "swapping"), ("balanced", "assigning"), ("best", "exchanging"),
     ("classic", "swapping"), ("classic", "climbing")],
)  # fmt: skip
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_the_layout_and_goes_on_to_the_caller(
    colors, check_layout, quality, stage, n_jobs
):
    layout = GridLayout(
        (6, 7), quality=quality, n_jobs=n_jobs, random_state=0, callback=interrupt_at(stage)
    )
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(36), frozen=[(4, 0)])
    check_layout(layout, 36)
    assert layout.grid_[0, 0] == 4
    assert 0 < layout.score_ < 1.1


def test_an_interrupt_of_a_second_fit_leaves_no_mixture(colors, check_layout, monkeypatch):
    layout = GridLayout(random_state=0).fit(colors(30))
    layout.callback = interrupt_at("swapping")
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(50, seed=1))
    check_layout(layout, 50)
    assert layout.arrange(colors(50)).shape[2:] == (3,)

    def interrupt(*_):
        raise KeyboardInterrupt

    # before there is anything of the new one to be seen, the old one stays whole
    monkeypatch.setattr("unshuffle.layout._cpu.anneal.unit_scale", interrupt)
    with pytest.raises(KeyboardInterrupt):
        layout.fit(colors(20, seed=2))
    check_layout(layout, 50)
    assert 0 < layout.score_ < 1.1


def test_an_interrupted_addition_keeps_the_old_items_in_place(colors, check_layout):
    layout = GridLayout((6, 6), random_state=0).fit(colors(30))
    old = layout.grid_.copy()
    layout.callback = interrupt_at("swapping")
    with pytest.raises(KeyboardInterrupt):
        layout.add(colors(4, seed=1))
    check_layout(layout, 34)
    assert np.array_equal(layout.grid_[old >= 0], old[old >= 0])


def test_an_error_in_the_callback_reaches_the_caller(colors):
    def fail(_):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        GridLayout(callback=fail).fit(colors(12))


LONG_FIT = """
import sys
import numpy as np
from unshuffle import GridLayout

def say_so(state):
    if state.iteration == int(sys.argv[1]):
        print("running", flush=True)

X = np.random.default_rng(0).random((90_000, 12))
layout = GridLayout((300, 301), quality="balanced", n_jobs=2, random_state=0, callback=say_so)
try:
    layout.fit(X)
except KeyboardInterrupt:
    items = layout.grid_[layout.grid_ >= 0]
    whole = np.array_equal(np.sort(items), np.arange(90_000))
    print("interrupted", whole, layout.n_iter_, flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.parametrize("step", [2, 32])  # swaps, assignments
def test_a_real_interrupt_in_the_middle_of_a_large_fit_leaves_a_whole_layout(press_ctrl_c, step):
    word, whole, n_steps = press_ctrl_c(LONG_FIT, str(step)).split()
    assert (word, whole) == ("interrupted", "True")
    assert int(n_steps) >= step
