"""`kernel="auto"`: the scaling and the kernel by which two tables agree most reliably."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.arrays import (
    as_numbers,
    check_magnitude,
    check_vectors,
    is_text,
    unwrap_anndata,
)
from unshuffle._core.grams import is_collection
from unshuffle._core.scalings import SCALINGS
from unshuffle._quadratic.problem import climb
from unshuffle._run.types import Floats
from unshuffle.kernels import center, zero_diagonal
from unshuffle.matching._dense.pair import (
    ONE_WIDTH,
    WIDTHS,
    KernelPair,
    compute_views,
    match_by_annealing,
    match_profiles,
)
from unshuffle.matching._dense.search import Outcome, agreement, disagreement
from unshuffle.matching._unseen import LinearFeatures, Ridge

Solve = Callable[[KernelPair], Outcome]

# Items of each table on which scalings are compared: all of small tables, where samples have few
# items in common, else half of them up to a limit.
SMALL, MOST_ITEMS = 500, 300
# Candidates that are matched again from halves: the best by their agreement, if it is higher than
# that of the tables as given by this much.
N_FINALISTS, HIGHER = 2, 0.07
# Pairs by which answers at full size are compared.
MOST_EXPLAINED = 500
# To be taken, they must be more reliable by this much, or agree so much more on 30 known pairs;
# on fewer, chance makes the best of several choices look better, in proportion to 1 / sqrt(n).
MARGIN, MARGIN_KNOWN = 0.05, 0.2
# Columns are in different units if the largest spread is this many times that of such a share of
# them. Of units drawn from seven powers of ten, 1 table of 140 with eight columns has fewer.
DIFFERENT_UNITS, SHARE_DIFFERENT = 100.0, 0.25
# Scalings under which the widest columns of different units decide alone: they agree with almost
# anything, and hold on to it.
KEEP_UNITS = "as given", "rows normalized"
UNITS_DIFFER = "a quarter of the columns or more spread less than a hundredth of the widest"
SOME_DIFFER = "standardized tables explain more of each other"
KERNELS = ("rbf", "geodesic", "local")
NO_PAIRS = np.empty((0, 2), dtype=np.intp)


class Choice(NamedTuple):
    """A scaling of both tables and a kernel."""

    scaling: str
    kernel: str


def kernel_for(collection: Any) -> Any:
    """Kernel that suits the kind of a collection: "text", "rbf", or a list for several tables."""
    if isinstance(collection, list | tuple) and collection and all(map(is_collection, collection)):
        return [kernel_for(part) for part in collection]
    return "text" if is_text(collection) else "rbf"


AS_GIVEN, STANDARDIZED = Choice("as given", "rbf"), Choice("standardized", "rbf")


class Tables:
    """Two dense tables that may be scaled in several ways."""

    def __init__(
        self, X: Any, y: Any, *, widths: tuple[float, ...] = WIDTHS, in_place: bool = False
    ) -> None:
        self.widths = widths
        self.X = check_vectors(X, "X", in_place=in_place)
        self.y = check_vectors(y, "y", in_place=in_place)
        for table, name in ((self.X, "X"), (self.y, "y")):
            check_magnitude(table, name)

    @property
    def first_choice(self) -> tuple[Choice, str]:
        """As given, or standardized if the columns are in different units, and why.

        A few columns of little spread are dead rather than in another unit: standardizing would
        raise their noise.
        """
        if self._share_of_narrow_columns() >= SHARE_DIFFERENT:
            return STANDARDIZED, UNITS_DIFFER
        return AS_GIVEN, ""

    @property
    def second_choice(self) -> tuple[Choice, str] | None:
        """What `first_choice` might have been too, if units are in doubt and rows differ then."""
        if self.first_choice[0] == STANDARDIZED:
            return (AS_GIVEN, "") if self._can_be_compared_as_given() else None
        return (STANDARDIZED, SOME_DIFFER) if self._share_of_narrow_columns() > 0.0 else None

    def _share_of_narrow_columns(self) -> float:
        """Share of the columns that spread far less than the widest one, in either table."""
        shares = [0.0]
        for table in (self.X, self.y):
            spreads = table.std(axis=0)
            spreads = spreads[spreads > 0]
            if spreads.size:
                shares.append(float((DIFFERENT_UNITS * spreads < spreads.max()).mean()))
        return max(shares)

    def explained(self, pairs: NDArray[np.intp]) -> float:
        """How much of the columns of either table the other one explains, by matched pairs.

        Mean share of the variance of a column that a linear map predicts for pairs left out.
        Columns count alike whatever their unit, and those of noise add nothing.
        """
        drawn = np.random.RandomState(0).permutation(len(pairs))[:MOST_EXPLAINED]
        A, B = (
            SCALINGS["standardized"](as_numbers(table[side], name))
            for table, side, name in zip((self.X, self.y), pairs[drawn].T, "Xy", strict=True)
        )
        return 0.5 * (_share_explained(A, B) + _share_explained(B, A))

    def grams(self, choice: Choice) -> tuple[Floats, Floats]:
        """Both kernel matrices."""
        scale = SCALINGS[choice.scaling]
        K, L = (
            compute_views(scale(table), choice.kernel, gamma=None, name=name, widths=self.widths)[
                0
            ]
            for table, name in ((self.X, "X"), (self.y, "y"))
        )
        return K, L

    def _can_be_compared_as_given(self) -> bool:
        """Whether the rows differ by more than rounding, judged by a sample."""
        sample = self.sample(NO_PAIRS, np.random.RandomState(0))
        return _try_pair(sample, AS_GIVEN) is not None

    def sample(self, known: NDArray[np.intp], rng: np.random.RandomState) -> "Tables":
        """All rows of small tables, else `MOST_ITEMS` of both; the known pairs first."""
        n_items = max(len(self.X), len(self.y))
        size = n_items if n_items <= SMALL else max(MOST_ITEMS, len(known))
        parts = []
        for table, items in ((self.X, known[:, 0]), (self.y, known[:, 1])):
            others = rng.permutation(np.setdiff1d(np.arange(len(table)), items))
            parts.append(table[np.concatenate([items, others])[:size]])
        return Tables(*parts, widths=ONE_WIDTH)  # wide kernels agree under any scaling

    def other_choices(self, first: Choice, left_out: Sequence[str] = ()) -> list[Choice]:
        """Candidates, except those that change nothing and the scalings that are left out."""
        found = []
        for scaling, kernel in product(SCALINGS, KERNELS):
            if scaling in left_out:
                continue
            scale = SCALINGS[scaling]
            same = scaling != "as given" and all(
                np.allclose(scale(table), table) for table in (self.X, self.y)
            )
            choice = Choice(scaling, kernel)
            if not same and choice != first:
                found.append(choice)
        return found


def _share_explained(X: Floats, Y: Floats) -> float:
    weights, variances = np.ones(len(X)), Y.var(axis=0)
    _, left_out = Ridge(LinearFeatures(X), X, weights).fit(Y)
    varies = variances > 0
    errors = ((Y - left_out) ** 2).mean(axis=0)[varies] / variances[varies]
    return float(np.maximum(1.0 - errors, 0.0).mean()) if varies.any() else 0.0


def tables_of(
    X: Any, y: Any, *, widths: tuple[float, ...] = WIDTHS, in_place: bool = False
) -> Tables | None:
    """Both collections as tables, or None if one is something else.

    `in_place` leaves arrays in their own precision, where a copy would take much memory.
    """
    X, y = unwrap_anndata(X, "X"), unwrap_anndata(y, "y")
    if any(sparse.issparse(each) or kernel_for(each) != "rbf" for each in (X, y)):
        return None
    return Tables(X, y, widths=widths, in_place=in_place)


def choose_by_known_pairs(
    tables: Tables, known: NDArray[np.intp], rng: np.random.RandomState
) -> tuple[Choice, str]:
    """Choice under which the known pairs agree most, and why."""
    first, why = tables.first_choice
    sample = tables.sample(known, rng)
    n_known = len(known)
    found = {}
    for choice in (first, *sample.other_choices(first)):
        pair = _try_pair(sample, choice)
        if pair is not None:
            first_part, second_part = (
                zero_diagonal(center(S[:n_known, :n_known])) for S in (pair.K, pair.L)
            )
            norms = float(np.linalg.norm(first_part) * np.linalg.norm(second_part))
            found[choice] = float((first_part * second_part).sum()) / (norms or 1.0)
    if first not in found:
        return first, why
    best = max(found, key=lambda choice: found[choice])
    if found[best] <= found[first] + MARGIN_KNOWN * max(1.0, np.sqrt(30 / n_known)):
        return first, why
    return best, (
        f"similarities of the {n_known} known pairs correlate by {found[best]:.2f}, "
        f"{found[first]:.2f} {first.scaling}"
    )


def choose_by_persistence(
    tables: Tables, first: Choice, solve: Solve, rng: np.random.RandomState
) -> tuple[Choice, str]:
    """Choice under which halves of a sample lead to the same partners most often, and why."""
    sample = tables.sample(NO_PAIRS, rng)
    left_out = KEEP_UNITS if STANDARDIZED in (first, tables.first_choice[0]) else ()
    reached = {}
    for choice in (first, *sample.other_choices(first, left_out)):
        # Pairs are built anew below: all of them together would take much memory.
        pair = _try_pair(sample, choice)
        if pair is not None:
            reached[choice] = _best_agreement(pair)
    if first not in reached:
        return first, ""
    ordered = sorted(reached, key=lambda choice: -reached[choice])
    finalists = [each for each in ordered if reached[each] > reached[first] + HIGHER][:N_FINALISTS]
    if not finalists:
        return first, ""
    scores = {}
    for choice in (first, *finalists):
        pair = _try_pair(sample, choice)
        scores[choice] = 0.0 if pair is None else _reliability(pair, solve)
    best = max(scores, key=lambda choice: scores[choice])
    if scores[best] <= scores[first] + MARGIN:
        return first, ""
    return best, (
        f"halves of a sample agree with each other by {scores[best]:.2f}, {scores[first]:.2f} "
        f"{first.scaling}"
    )


def _try_pair(tables: Tables, choice: Choice) -> KernelPair | None:
    """Kernels of both tables, or None if all items become equal."""
    try:
        return KernelPair.of(*tables.grams(choice), None, NO_PAIRS)
    except ValueError:
        return None


def _best_agreement(pair: KernelPair) -> float:
    """Agreement that a short search reaches."""
    starts = match_profiles(pair, (pair.K, pair.L), "sqeuclidean"), match_by_annealing(pair)
    ends = [climb(pair.full_problem, start).permutation for start in starts]
    return max(agreement(pair.full_problem, end) for end in ends)


def _reliability(pair: KernelPair, solve: Solve) -> float:
    """How close partners stay if halves are matched, times the agreement reached; at most 1."""
    found = solve(pair).permutation
    rng = np.random.RandomState(0)
    order = rng.permutation(found.size)
    close = []
    for half in (order[::2], order[1::2]):
        rows = np.sort(half)
        columns = np.sort(found[rows])
        again = columns[solve(pair.part(rows, columns)).permutation]
        close.append(1.0 - disagreement(pair.L, found[rows], again))
    return float(np.mean(close)) * agreement(pair.full_problem, found)
