"""A few calls of every public name; `make fuzz` makes 20,000."""

import warnings

import numpy as np
import pytest
from tests.fuzz.judge import FAULTS, described, judge
from tests.fuzz.scalars import count
from tests.fuzz.subject import SUBJECTS, Subject
from tests.fuzz.subjects import NOT_CALLED, seeds_of, subject_of
from tests.fuzz.values import Kind, needed, stack, table
from tests.registry import NAMES

from unshuffle.kernels import ExpectedLikelihoodKernel


@pytest.fixture(scope="module", autouse=True)
def compiled_loops():
    """Compile the slowest loops first: calls have a time limit."""
    rng = np.random.default_rng(0)
    ExpectedLikelihoodKernel(2).fit([rng.normal(size=(9, 2)) for _ in range(3)])


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_calls_end_in_an_answer_or_a_clear_refusal(name):
    for seed in seeds_of(name, 3):
        outcome = judge(SUBJECTS[name], seed)
        if outcome.kind in FAULTS:
            pytest.fail(f"seed {seed}: {described(SUBJECTS[name], seed)}\n{outcome}")


def test_every_public_name_is_called():
    called = {".".join(name.split("[")[0].split(".")[:2]) for name in SUBJECTS}
    assert called | NOT_CALLED == set(NAMES)
    assert not called & NOT_CALLED


def test_seeds_of_a_name_call_it():
    for name in ("layout.GridLayout", "metrics.cka"):
        assert [subject_of(seed).name for seed in seeds_of(name, 9)] == [name] * 9


def _zero(X):
    X[...] = 0


def _raise(error):
    raise error


def _warn(X):
    warnings.warn_explicit("invalid value", RuntimeWarning, np.__file__, 1)


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (_zero, "changed input"),
        (lambda X: np.asarray(X) * np.nan, "nonsense"),
        (
            lambda X: _raise(ValueError("`X` is wrong, but raised outside of the library")),
            "obscure error",
        ),
        (lambda X: _raise(KeyError("X")), "obscure error"),
        (lambda X: _raise(MemoryError()), "obscure error"),
        (_warn, "RuntimeWarning"),
        (lambda X: np.ones(3), "answer"),
    ],
)
def test_the_judge_finds_faults(call, fault):
    arrays = Kind(
        lambda case, rng: np.ones((3, 2)), lambda case, rng: np.ones((3, 2)), needed=True
    )
    assert judge(Subject("a fake", call, {"X": arrays}), 1).kind == fault


def test_a_call_follows_from_its_seed():
    subject = Subject(
        "a fake", dict, {"X": table("n", "d"), "k": needed(count(1, 2)), "c": stack("n")}
    )
    assert [described(subject, seed) for seed in range(40)] == [
        described(subject, seed) for seed in range(40)
    ]
