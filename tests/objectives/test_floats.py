import numpy as np
import pytest

from unshuffle import objectives

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.normal(size=(6, 3))
K = np.exp(-((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2))
L, P = K[::-1, ::-1].copy(), RANDOM.permutation(6)
BAGS = RANDOM.normal(size=(5, 4, 2))
A = RANDOM.normal(size=(3, 2, 2))
A, Z, C = A + A.transpose(0, 2, 1), RANDOM.normal(size=(3, 2)), RANDOM.normal(size=(3, 3))

# Every objective, as a function of a factor that its arrays are multiplied by.
CALLS = {
    "hsic_biased": lambda s: objectives.hsic_biased(s(K), s(L)),
    "hsic_zeroed": lambda s: objectives.hsic_zeroed(s(K), s(L)),
    "hsic_unbiased": lambda s: objectives.hsic_unbiased(s(K), s(L)),
    "trace_value": lambda s: objectives.trace_value(s(K), s(L), P),
    "trace_gradient": lambda s: objectives.trace_gradient(s(K), s(L), P),
    "squared_value": lambda s: objectives.squared_value(s(K), s(L), P),
    "squared_gradient": lambda s: objectives.squared_gradient(s(K), s(L), s(L), P),
    "entropy_value": lambda s: objectives.entropy_value(s(K), s(L), P, ridge=0.01),
    "entropy_weights": lambda s: objectives.entropy_weights(s(K), s(L), P, ridge=0.01),
    "entropy_gradient": lambda s: objectives.entropy_gradient(s(K), s(L), P, ridge=0.01),
    "multiway_hsic": lambda s: objectives.multiway_hsic([s(K), s(L), s(K)]),
    "multiway_weights": lambda s: objectives.multiway_weights([s(K), s(L)]),
    "multiway_gradient": lambda s: objectives.multiway_gradient([s(K), s(L)], s(K), P),
    "multiway_entropy": lambda s: objectives.multiway_entropy([s(K), s(L)], ridge=0.01),
    "entropy_swap_changes": lambda s: objectives.entropy_swap_changes(s(K), s(L), ridge=0.01),
    "trace_of_bags": lambda s: objectives.trace_of_bags(s(BAGS)),
    "expected_trace": lambda s: objectives.expected_trace(s(BAGS)),
    "covariance_spectrum": lambda s: objectives.covariance_spectrum(s(BAGS)),
    "log_volume": lambda s: objectives.log_volume(s(BAGS), ridge=0.01),
    "LeaveOneOut": lambda s: objectives.LeaveOneOut.of(s(K), ridge=0.01).factor,
    "matrix_exponentials": lambda s: objectives.matrix_exponentials(s(A)),
    "exponential_action": lambda s: objectives.exponential_action(A, s(Z)),
    "exponential_jacobian": lambda s: objectives.exponential_jacobian(s(A), s(Z), s(A)),
    "exponential_pullback": lambda s: objectives.exponential_pullback(s(A), s(Z), s(Z)),
    "combined": lambda s: objectives.combined(s(A), s(C)),
    "squared_orbit_cost": lambda s: objectives.squared_orbit_cost(A, C, s(Z), s(Z)),
    "squared_orbit_gradient": lambda s: objectives.squared_orbit_gradient(A, C, s(Z), s(Z)),
    "log_trace_errors": lambda s: objectives.log_trace_errors(s(A), Z, Z),
    "log_trace_errors, vectors": lambda s: objectives.log_trace_errors(A, s(Z), s(Z)),
    "log_trace_errors_diagonal": lambda s: objectives.log_trace_errors_diagonal(s(Z), Z, Z),
    "log_trace_errors_diagonal, vectors": lambda s: objectives.log_trace_errors_diagonal(
        Z, s(Z), s(Z)
    ),
    "matrix_volume": lambda s: objectives.matrix_volume(s(Z), eps1=0.1, eps2=0.1),
}


def test_no_objective_is_left_out():
    assert {name.split(",")[0] for name in CALLS} == set(objectives.__all__)


@pytest.mark.parametrize("factor", [0.0, 5e-324, 1e-300, 1e-100, 1e100, 1e150, 1e200, 4e307])
@pytest.mark.parametrize("name", list(CALLS))
def test_objectives_are_numbers_or_refused_with_the_name_of_an_argument(name, factor):
    # The test suite turns warnings into errors, those of NumPy about overflow too.
    try:
        found = CALLS[name](lambda values: values * factor)
    except ValueError as error:
        assert "`" in str(error)  # noqa: PT017
        assert factor <= 1e-300 or factor >= 1e100
    else:
        parts = found if isinstance(found, tuple) else (found,)
        assert not any(np.isnan(part).any() for part in parts)


@pytest.mark.parametrize("constant", [1e6, 1e12])
@pytest.mark.parametrize("name", ["hsic_biased", "hsic_zeroed", "hsic_unbiased"])
def test_a_constant_far_above_the_similarities_takes_no_digits(name, constant):
    far = CALLS[name](lambda values: values + constant)
    assert far == pytest.approx(CALLS[name](lambda values: (values + constant) - constant))


@pytest.mark.parametrize("shift", [1e6, 1e12])
@pytest.mark.parametrize(
    "name", ["trace_of_bags", "expected_trace", "covariance_spectrum", "log_volume"]
)
def test_volumes_do_not_depend_on_the_origin(name, shift):
    far = CALLS[name](lambda values: values + shift)
    held = CALLS[name](lambda values: (values + shift) - shift)
    np.testing.assert_allclose(far, held, rtol=1e-12)
