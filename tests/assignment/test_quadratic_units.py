"""`quadratic_assignment` on numbers of any size."""

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_array_equal

from unshuffle.assignment import quadratic_assignment

# Exponents of two for A and B.
EXPONENTS = [(-1040, 0), (0, -1040), (-1040, -1040), (-600, -600), (400, -1000), (450, 450)]


def short(*shape, seed=0):
    """Fractions of few digits, which these powers of two do not round."""
    return default_rng(seed).integers(1, 2**20, size=shape) / 2.0**10


def solve(A, B, **options):
    return quadratic_assignment(A, B, n_init=4, random_state=0, **options)


def bound_of(found):
    return found.get("lower_bound", found.get("upper_bound"))


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("exponents", EXPONENTS)
def test_powers_of_two_change_nothing_but_the_unit(exponents, maximize):
    A, B = short(9, 9), short(9, 9, seed=1)
    a, b = exponents
    plain = solve(A, B, maximize=maximize)
    scaled = solve(np.ldexp(A, a), np.ldexp(B, b), maximize=maximize)
    assert_array_equal(scaled.col_ind, plain.col_ind)
    assert (scaled.nit, scaled.gap) == (plain.nit, plain.gap)
    assert scaled.fun == np.ldexp(plain.fun, a + b)
    assert bound_of(scaled) == np.ldexp(bound_of(plain), a + b)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("exponent", [-500, -300, 200])
@pytest.mark.parametrize("sizes", [(6, 8), (8, 6), (7, 7)])
def test_a_cost_and_other_sizes_keep_their_share(sizes, exponent, maximize):
    A, B = short(sizes[0], sizes[0]), short(sizes[1], sizes[1], seed=1)
    cost = np.ldexp(short(*sizes, seed=2), 20)
    options = {"maximize": maximize, "frozen": [(2, 3)]}
    plain = solve(A, B, cost=cost, **options)
    # Both alike, since squares of the larger matrix count too.
    A, B, cost = np.ldexp(A, exponent), np.ldexp(B, exponent), np.ldexp(cost, 2 * exponent)
    scaled = solve(A, B, cost=cost, **options)
    assert_array_equal(scaled.col_ind, plain.col_ind)
    assert scaled.gap == plain.gap
    assert scaled.fun == np.ldexp(plain.fun, 2 * exponent)


def test_a_cost_beside_which_all_products_vanish_decides():
    A, B = short(8, 8) * 1e-310, short(8, 8, seed=1) * 1e-310
    cost = default_rng(0).random((8, 8))
    found = solve(A, B, cost=cost)
    assert_array_equal(found.col_ind, solve(A * 0.0, B, cost=cost).col_ind)
    assert found.fun == pytest.approx(cost[np.arange(8), found.col_ind].sum())


def test_numbers_of_all_sizes_in_one_matrix_are_taken():
    random = default_rng(0)
    exponents = random.integers(-1074, 400, size=(2, 12, 12))
    A, B = np.ldexp(random.random((2, 12, 12)), exponents)
    small = np.abs(A) < A.max() * 1e-200, np.abs(B) < B.max() * 1e-200
    found, rounded = solve(A, B), solve(np.where(small[0], 0, A), np.where(small[1], 0, B))
    assert found.fun == pytest.approx(rounded.fun)


def test_whole_numbers_stay_exact_beside_subnormal_ones():
    A = np.arange(16).reshape(4, 4)
    plain, small = solve(A, A.T), solve(A, A.T * 2.0**-1060)
    assert isinstance(plain.fun, int)
    assert small.fun == plain.fun * 2.0**-1060
    assert_array_equal(small.col_ind, plain.col_ind)


def test_a_callback_sees_the_unit_of_the_user():
    A, B, told = short(6, 6), short(6, 6, seed=1), ([], [])
    for seen, exponent in zip(told, (0, -1030), strict=True):

        def keep(state, seen=seen):
            seen.append(state.objective)

        solve(np.ldexp(A, exponent), B, callback=keep)
    assert told[1] == np.ldexp(told[0], -1030).tolist() != []


@pytest.mark.parametrize("zero", ["A", "B", "both"])
def test_zeros_beside_subnormal_numbers_are_a_result(zero):
    small = short(5, 5) * 1e-310
    A, B = (small * (zero not in (name, "both")) for name in "AB")
    found = solve(A, B)
    assert (found.fun, found.gap) == (0.0, 0.0)
    assert sorted(found.col_ind) == list(range(5))


@pytest.mark.parametrize(
    ("A", "B", "options", "message"),
    [
        (1e150, 1e150, {}, r"`A` holds 1e\+150 and `B` 1e\+150: sums of their products"),
        (1.0, 1.0, {"cost": np.full((20, 20), 1e149)}, None),
        (1e-310, 1e150, {}, None),
    ],
)
def test_what_overflows_is_named_as_the_user_names_it(A, B, options, message):
    ones = np.ones((20, 20))
    if message is None:
        assert np.isfinite(solve(A * ones, B * ones, **options).fun)
        return
    with pytest.raises(ValueError, match=message):
        solve(A * ones, B * ones, **options)
