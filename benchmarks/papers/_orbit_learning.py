"""Orbit learning: matrices that carry one vector to another, and span few directions."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, expm_frechet
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from benchmarks.papers._claims import Claim, Quantity, Setting, Unchecked, Values
from unshuffle import OrbitLearner
from unshuffle.orbits._paper import log_trace_errors, matrix_volume

Array = NDArray[np.float64]

TITLE = "Orbit learning"
SOURCE = "Jebara, Bengio: *Orbit learning using convex optimization*, Snowbird Workshop (2003)."
N_GIVEN, N_UNSEEN = 200, 100
STEP = 6  # every sixth of the 72 views is used: 30 degrees apart
ERROR_WEIGHT, EPS = 10.0, 1e-3  # the paper names no values
SCALING = np.array([np.diag([1.0, 0, -1]) / 2**0.5, np.diag([0.5, -1, 0.5]) / 1.5**0.5])
SYMMETRIC = np.array(
    [
        [[0.3, 0.5, -0.2], [0.5, -0.4, 0.3], [-0.2, 0.3, 0.1]],
        [[-0.5, 0.1, 0.4], [0.1, 0.2, 0.2], [0.4, 0.2, 0.3]],
    ]
)
SYMMETRIC /= np.linalg.norm(SYMMETRIC, axis=(1, 2), keepdims=True)


@dataclass(frozen=True)
class Problem:
    """Points of an orbit, points of its unseen part, and a vector on the orbit."""

    given: Array
    unseen: Array
    prototype: Array


def circle(seed: int) -> Problem:
    """An arc of 70 degrees."""
    rng = np.random.default_rng(seed)

    def at(degrees: Any) -> Array:
        angle = np.radians(degrees)
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    return Problem(at(rng.uniform(10, 80, N_GIVEN)), at(rng.uniform(-135, 225, N_UNSEEN)), at(45))


def sphere(seed: int, noise: float = 0.0) -> Problem:
    """A patch of 50 by 50 degrees."""
    rng = np.random.default_rng(seed)

    def at(azimuth: Any, elevation: Any) -> Array:
        a, e = np.radians(azimuth), np.radians(elevation)
        return np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=-1)

    given = at(*rng.uniform(20, 70, (2, N_GIVEN)))
    unseen = at(*rng.uniform(-20, 110, (2, N_UNSEEN)))
    return Problem(given + noise * rng.normal(size=given.shape), unseen, at(45, 45))


def pair_of(generators: Array, seed: int) -> Problem:
    """Coefficients in a quarter of a disk; unseen ones in a square around the disk."""
    rng = np.random.default_rng(seed)
    start = np.array([1, 1.2, 0.9])
    radius, angle = 0.9 * np.sqrt(rng.random(N_GIVEN)), rng.uniform(0, np.pi / 2, N_GIVEN)
    given = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    unseen = rng.uniform(-1.35, 1.35, (N_UNSEEN, 2))

    def at(coefficients: Array) -> Array:
        return expm(np.tensordot(coefficients, generators, axes=1)) @ start

    return Problem(at(given), at(unseen), start)


scaling = partial(pair_of, SCALING)


def fitted(problem: Problem, k: int, seed: int = 0, **options: Any) -> OrbitLearner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OrbitLearner(k, random_state=seed, prototype=problem.prototype, **options).fit(
            problem.given
        )


def by_paper(problem: Problem, structure: str, **options: Any) -> OrbitLearner:
    """The log-trace loss with one prototype and two generators."""
    options = {"error_weight": ERROR_WEIGHT, "eps1": EPS, "eps2": EPS} | options
    return fitted(problem, 2, loss="logtrace", structure=structure, pairs="prototype", **options)


def error(learner: OrbitLearner, X: Array) -> float:
    """Root mean squared distance of vectors from the orbit."""
    missed = X - learner.inverse_transform(learner.transform(X))
    return float(np.sqrt(np.mean(np.sum(missed**2, axis=1))))


def spread(X: Array) -> float:
    return float(np.sqrt(np.sum(np.var(X, axis=0))))


# The paper's iteration, as printed and mended.


def rises(setting: Setting) -> Values:
    """Epochs of 99 after which the cost is higher, for symmetric matrices on both wedges."""
    values: Values = {"printed": [], "factor": [], "mended": []}
    for seed in setting.seeds(3, 1, first=100):
        for make in (sphere, scaling):
            problem = make(seed)
            printed = epochs(problem, factor=1.0, exact=False)
            values["printed"].append(float(np.sum(np.diff(printed) > 1e-9 * np.abs(printed[1:]))))
            halved = epochs(problem, factor=2.0, exact=False)
            values["factor"].append(float(np.sum(np.diff(halved) > 1e-9 * np.abs(halved[1:]))))
            learner = by_paper(problem, "symmetric", solver="mm")
            values["mended"].append(float(np.sum(np.diff(learner.objective_path_) > 0)))
    return values


def epochs(problem: Problem, *, factor: float, exact: bool, n_epochs: int = 99) -> Array:
    """Cost after each epoch of the printed rule, with `factor` in its last term.

    One matrix for each vector, with centered covariance, updated one after another; the weights M
    once in an epoch. The slopes are the printed d_n, or exact ones.
    """
    x, z = problem.given, np.broadcast_to(problem.prototype, problem.given.shape)
    n, d = x.shape
    A = np.zeros((n, d, d))
    path = [cost_of(A, x, z)]
    for _ in range(n_epochs):
        a = A.reshape(n, -1)
        M = np.linalg.inv(np.cov(a.T, bias=True) + EPS * np.eye(d * d)) + EPS * np.eye(d * d)
        system = (2 / n - 2 / n**2) * M + ERROR_WEIGHT * np.eye(d * d)
        slopes = log_trace_errors(A, x, z)[1] if exact else printed_slopes(A, x, z)
        slopes, total = slopes.reshape(n, -1), a.sum(axis=0)
        inverse = np.linalg.inv(system)
        for k in range(n):
            total -= a[k]
            pulled = ERROR_WEIGHT * (a[k] - slopes[k]) + factor / n**2 * M @ total
            a[k] = inverse @ pulled
            total += a[k]
        A = a.reshape(n, d, d)
        A = (A + np.swapaxes(A, 1, 2)) / 2
        path.append(cost_of(A, x, z))
    return np.array(path)


def cost_of(A: Array, x: Array, z: Array) -> float:
    """The paper's C(a)."""
    covariance = np.cov(A.reshape(len(A), -1).T, bias=True)
    volume = np.linalg.slogdet(covariance + EPS * np.eye(len(covariance)))[1]
    errors = log_trace_errors(A, x, z)[0]
    return float(volume + EPS * np.trace(covariance) + ERROR_WEIGHT * errors.sum())


def printed_slopes(A: Array, x: Array, z: Array) -> Array:
    """The paper's d_n."""
    back, on = expm(-A / 2), expm(A / 2)
    forward = np.einsum("nij,nj->ni", on, z)
    backward = np.einsum("nij,nj->ni", back, x)
    total = np.sum(forward**2, axis=1) + np.sum(backward**2, axis=1)
    inner = forward[:, :, None] * forward[:, None, :] - backward[:, :, None] * backward[:, None, :]
    return np.asarray(inner / total[:, None, None])


def convergence(setting: Setting) -> Values:
    values: Values = {"steps": [], "rises": []}
    for seed in setting.seeds(5, 1, first=100):
        learner = by_paper(scaling(seed), "diagonal", solver="mm")
        values["steps"].append(float(learner.n_iter_))
        values["rises"].append(float(np.sum(np.diff(learner.objective_path_) > 0)))
    return values


# Figures (a) to (d)


def spectrum(setting: Setting) -> Values:
    values: Values = {"scaling": [], "sphere": []}
    for seed in setting.seeds(5, 2, first=100):
        for key, make, structure in (
            ("scaling", scaling, "diagonal"),
            ("sphere", sphere, "symmetric"),
        ):
            found = by_paper(make(seed), structure).spectrum_
            values[key].append(100 * float(found[:2].sum() / found.sum()))
    draw(setting)
    return values


def draw(setting: Setting) -> None:
    """Samples, eigenvalues and two views of the orbit, for two wedges."""
    from matplotlib.ticker import MaxNLocator

    rows = (
        ("scalings, the paper's loss", scaling(100), by_paper(scaling(100), "diagonal")),
        ("sphere, the paper's loss", sphere(100), by_paper(sphere(100), "symmetric")),
        ("sphere, squared loss", sphere(100), fitted(sphere(100), 2)),
    )
    with setting.figure("orbit-learning.png", (8.6, 7.0)) as fig:
        for k, (title, problem, learner) in enumerate(rows):
            c = learner.transform(problem.given)
            low, high = c.min(axis=0), c.max(axis=0)
            grid = np.stack(np.meshgrid(*(np.linspace(-1, 2, 13),) * 2), axis=-1).reshape(-1, 2)
            orbit = learner.inverse_transform(low + (high - low) * grid)
            for column, (shown, view) in enumerate(
                ((problem.given, (25, 40)), (None, None), (orbit, (25, 40)), (orbit, (25, 110)))
            ):
                place = 4 * k + column + 1
                if shown is None:
                    ax = fig.add_subplot(3, 4, place)
                    values = learner.spectrum_[:9] / learner.spectrum_.sum()
                    ax.bar(np.arange(1, len(values) + 1), values, color="#3fa7c9")
                    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
                    ax.set_title("(b) eigenvalues", fontsize=8)
                    continue
                ax = fig.add_subplot(3, 4, place, projection="3d")
                ax.view_init(*view)
                ax.scatter(*shown.T, s=3, color="#0b6e99")
                if column:
                    ax.scatter(*problem.given.T, s=3, color="#c8553d")
                ax.tick_params(labelsize=5, pad=-3)
                for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
                    axis.set_major_locator(MaxNLocator(4))
                name = f"(a) {title}" if column == 0 else f"({'cd'[column - 2]}) orbit"
                ax.set_title(name, fontsize=8)


def extrapolation(make: Callable[[int], Problem], structure: str, setting: Setting) -> Values:
    values: Values = {"fit": [], "error": [], "spread": [], "squared": []}
    for seed in setting.seeds(10, 2, first=100):
        problem = make(seed)
        learner = by_paper(problem, structure)
        values["fit"].append(error(learner, problem.given))
        values["error"].append(error(learner, problem.unseen))
        values["spread"].append(spread(problem.unseen))
        values["squared"].append(error(fitted(problem, 2, seed), problem.unseen))
    return values


def positive(setting: Setting) -> Values:
    """Share of an orbit, three times as long as the data, whose coordinates are positive."""
    values: Values = {"scaling": [], "sphere": []}
    for seed in setting.seeds(5, 2, first=100):
        for key, make, structure in (
            ("scaling", scaling, "diagonal"),
            ("sphere", sphere, "symmetric"),
        ):
            learner = by_paper(make(seed), structure)
            moved = learner.inverse_transform(3 * learner.coefficients_)
            values[key].append(100 * float((moved > 0).all(axis=1).mean()))
    return values


def squared(setting: Setting) -> Values:
    """Errors beyond the data by least squares, as shares of the spread of the unseen points."""
    values: Values = {key: [] for key in ("circle", "sphere", "scaling", "pair", "noisy")}
    makers: dict[str, tuple[int, Callable[[int], Problem], dict[str, str]]] = {
        "circle": (1, circle, {}),
        "sphere": (2, sphere, {}),
        "scaling": (2, scaling, {}),
        "pair": (2, partial(pair_of, SYMMETRIC), {"structure": "symmetric", "pairs": "prototype"}),
        "noisy": (2, partial(sphere, noise=0.03), {}),
    }
    for seed in setting.seeds(10, 2, first=100):
        for key, (k, make, options) in makers.items():
            problem = make(seed)
            learner = fitted(problem, k, seed, **options)
            values[key].append(error(learner, problem.unseen) / spread(problem.unseen))
    return values


# What the paper says of its cost


def random_pairs(rng: np.random.Generator, n: int, d: int = 3) -> tuple[Array, Array]:
    """Nonnegative vectors."""
    return rng.random((n, d)) + 0.01, rng.random((n, d)) + 0.01


def log_trace(A: Array, x: Array, z: Array) -> float:
    """E_n for any matrix; NaN where the logarithm is not defined."""
    inside = float(x @ expm(-A) @ x + z @ expm(A) @ z)
    return float(np.log(inside)) if inside > 0 else float("nan")


def convexity(setting: Setting) -> Values:
    """Pairs of matrices whose midpoint has a higher error than their mean, in percent."""
    rng, n = np.random.default_rng(0), setting.pick(4000, 1000)
    counts = dict.fromkeys(("diagonal", "symmetric", "general"), 0)
    x, z = random_pairs(rng, n)
    for k in range(n):
        A, B = 2.5 * rng.normal(size=(2, 3, 3))
        for key, (first, second) in {
            "diagonal": (np.diag(np.diag(A)), np.diag(np.diag(B))),
            "symmetric": (A + A.T, B + B.T),
            "general": (A, B),
        }.items():
            ends = log_trace(first, x[k], z[k]), log_trace(second, x[k], z[k])
            middle = log_trace((first + second) / 2, x[k], z[k])
            counts[key] += not middle <= np.mean(ends) + 1e-9
    return {key: [100 * count / n] for key, count in counts.items()}


def volume_convexity(setting: Setting) -> Values:
    """The same for log|M + eps1| + eps2 tr M, with eps1 eps2 below and at 1/8."""
    rng, n = np.random.default_rng(0), setting.pick(4000, 1000)
    counts = dict.fromkeys(("small", "large"), 0)
    for _ in range(n):
        a, b = rng.normal(size=(2, 6, 3)) * rng.exponential(size=(2, 1, 1))
        for key, eps in (("small", 0.1), ("large", 8**-0.5)):
            ends = [matrix_volume(each, eps1=eps, eps2=eps)[0] for each in (a, b)]
            middle = matrix_volume((a + b) / 2, eps1=eps, eps2=eps)[0]
            counts[key] += middle > np.mean(ends) + 1e-9
    return {key: [100 * count / n] for key, count in counts.items()}


def minima(setting: Setting) -> Values:
    """Squared error where the log-trace error of symmetric matrices is least."""
    rng, n = np.random.default_rng(0), setting.pick(100, 20)
    x, z = random_pairs(rng, n)
    upper = np.triu_indices(3)
    missed, lowest = [], []
    for k in range(n):

        def cost(flat: Array, k: int = k) -> tuple[float, Array]:
            A = np.zeros((3, 3))
            A[upper] = flat
            A = (A + A.T) / 2
            value, slope = log_trace_errors(A[None], x[k : k + 1], z[k : k + 1])
            return float(value[0]), slope[0][upper]

        found = minimize(cost, np.zeros(6), jac=True, options={"gtol": 1e-12})
        A = np.zeros((3, 3))
        A[upper] = found.x
        A = (A + A.T) / 2
        missed.append(float(np.linalg.norm(x[k] - expm(A) @ z[k]) / np.linalg.norm(x[k])))
        # a general matrix, by a rotation of the plane of both, does better than the minimum
        lowest.append(lowest_by_rotation(x[k], z[k]) - float(found.fun))
    return {"symmetric": [max(missed)], "general": [float(np.mean(lowest))]}


def lowest_by_rotation(x: Array, z: Array) -> float:
    """Least log-trace error over A = t J, a quarter turn times t plus stretches along the turn."""
    u = x / np.linalg.norm(x)
    v = z - (z @ u) * u
    v /= np.linalg.norm(v)
    J = np.outer(v, u) - np.outer(u, v)
    S = np.outer(u, u) - np.outer(v, v)
    found = np.inf
    for turn in np.linspace(0, np.pi, 13):
        for stretch in np.linspace(-3, 3, 13):
            value = log_trace(turn * J + stretch * S, x, z)
            found = min(found, value) if np.isfinite(value) else found
    return float(found)


def slopes(setting: Setting) -> Values:
    """Relative error of the printed d_n, against exact gradients."""
    rng, n = np.random.default_rng(0), setting.pick(500, 100)
    x, z = random_pairs(rng, n)
    values: Values = {"symmetric": [], "general": []}
    for k in range(n):
        A = rng.normal(size=(3, 3))
        for key, matrix in (("symmetric", (A + A.T) / 2), ("general", A)):
            exact = exact_slope(matrix, x[k], z[k])
            if not np.isfinite(log_trace(matrix, x[k], z[k])):
                continue
            printed = printed_slopes(matrix[None], x[k : k + 1], z[k : k + 1])[0]
            missed = np.linalg.norm(printed - exact) / np.linalg.norm(exact)
            values[key].append(100 * float(missed))
    return {key: [float(np.median(found))] for key, found in values.items()}


def exact_slope(A: Array, x: Array, z: Array) -> Array:
    """Gradient of the log-trace error, by the derivative of the exponential at A'."""
    total = float(x @ expm(-A) @ x + z @ expm(A) @ z)
    on = expm_frechet(A.T, np.outer(z, z), compute_expm=False)
    back = expm_frechet(-A.T, np.outer(x, x), compute_expm=False)
    return np.asarray((on - back) / total)


def curvature(setting: Setting) -> Values:
    """Largest second derivative of the error along a direction of unit length."""
    rng, n = np.random.default_rng(0), setting.pick(20000, 4000)
    largest = {"diagonal": 0.0, "symmetric": 0.0}
    for _ in range(n // 200):
        x, z = random_pairs(rng, 200)
        Q = np.linalg.qr(rng.normal(size=(200, 3, 3)))[0]
        values = rng.uniform(-4, 4, size=(200, 3))
        D = rng.normal(size=(200, 3, 3))
        for key in largest:
            turn = np.broadcast_to(np.eye(3), Q.shape) if key == "diagonal" else Q
            A = (turn * values[:, None, :]) @ np.swapaxes(turn, 1, 2)
            E = D * np.eye(3) if key == "diagonal" else D + np.swapaxes(D, 1, 2)
            E = E / np.linalg.norm(E, axis=(1, 2), keepdims=True)
            ends = [log_trace_errors(A + t * E, x, z)[0] for t in (-1e-3, 0.0, 1e-3)]
            second = (ends[0] - 2 * ends[1] + ends[2]) / 1e-6
            largest[key] = max(largest[key], float(second.max()))
    return {key: [value] for key, value in largest.items()}


# Views of turning objects


def views(setting: Setting) -> Values:
    data = setting.load("coil20_obj1to12")
    values: Values = {"orbit": [], "linear": [], "nearest": []}
    for number in setting.pick(range(1, 13), (1,)):
        own = data["object_id"] == number
        images = data["images"][own][np.argsort(data["angle"][own])] / 255.0
        for key, found in zip(values, view_errors(images), strict=True):
            values[key].append(found)
    return values


def ahead(values: Values) -> Values:
    """Percent of the objects for which orbits are better than blending."""
    better = np.less(values["orbit"], values["linear"])
    return {"better": [100 * float(np.mean(better))]}


def view_errors(images: Array) -> tuple[float, float, float]:
    """Mean error of intermediate views by orbits, by lines and by the nearest given view.

    A turntable moves pixels along rows, so the pairs are rows of one view and of the next. The
    given views determine one generator, with a separate coefficient for each row. An intermediate
    view is a weighted mean of the view before, moved forward, and of the next, moved back.
    """
    given = images[::STEP]
    n, height, width = given.shape
    X = given.reshape(-1, width)
    sources = np.arange(len(X))
    targets = (sources + height) % len(X)
    seen = np.minimum(np.abs(X[sources]).max(axis=1), np.abs(X[targets]).max(axis=1)) > 0
    band = np.abs(np.subtract.outer(np.arange(width), np.arange(width))) == 1
    pairs = np.stack([targets, sources], axis=1)[seen]
    learner = OrbitLearner(
        1, structure="skew", pattern=band, pairs=pairs, n_init=1, random_state=0
    ).fit(X)
    errors: list[list[float]] = [[], [], []]
    for k in range(1, STEP):
        share = k / STEP
        between = (1 - share) * X + share * X[targets]
        nearest = X if share < 0.5 else X[targets]
        moved = between.copy()
        for (t, s), c in zip(pairs, learner.coefficients_, strict=True):
            on, back = learner.orbit(X[s], share * c), learner.orbit(X[t], (share - 1) * c)
            moved[s] = (1 - share) * on + share * back
        truth = images[k::STEP]
        for kept, guess in zip(errors, (moved, between, nearest), strict=True):
            missed = guess.reshape(n, height, width) - truth
            kept.append(float(np.sqrt(np.mean(missed**2, axis=(1, 2))).mean()))
    return tuple(float(np.mean(each)) for each in errors)  # type: ignore[return-value]


WEDGE = (
    "About 200 points of a wedge in space, one prototype, symmetric matrices or nearly so; "
    "weights are not named."
)
OURS = (
    "200 points of a wedge in space with positive coordinates, one prototype, error_weight 10, "
    "eps1 = eps2 = .001. Two wedges: 50 by 50 degrees of a sphere (symmetric matrices), and an "
    "orbit of two scalings (diagonal matrices)."
)


def claim(id: str, where: str, says: str, quantities: Any, **options: Any) -> Claim:
    options = {"theirs": WEDGE, "ours": OURS} | options
    return Claim(id, where, says, tuple(Quantity(*each) for each in quantities), **options)


CLAIMS = (
    claim(
        "ol-monotone",
        "Update rule",
        "The update rule lowers the cost in every epoch.",
        [
            ("printed", "epochs of 99 after which the cost is higher, as printed"),
            ("factor", "the same with the last term doubled"),
            ("mended", "with exact slopes too, uncentered covariance, and L doubled where needed"),
        ],
        rule="printed == 0",
        ours=OURS + " Symmetric matrices for both; slopes and M are renewed once in an epoch.",
        because="The last term must be 2 N^-2: as printed, the cost rises in {printed} of 99 "
        "epochs, with the factor in {factor}.",
        measure=rises,
    ),
    claim(
        "ol-epochs",
        "Experiment",
        "The cost decreases monotonically and converges in under 100 epochs.",
        [("steps", "steps to convergence"), ("rises", "steps that raise the cost")],
        rule="rises == 0 and steps < 100",
        ours=OURS + ' Here the scalings; `solver="mm"`.',
        changed="The rule is mended (ol-monotone), and matrices are diagonal.",
        because="After {steps} steps by the mended rule it still falls, slowly; L-BFGS is used "
        "instead.",
        measure=convergence,
    ),
    claim(
        "ol-spectrum",
        "Figures (a), (b)",
        "The covariance of the matrices has two large eigenvalues.",
        [
            ("scaling", "share of the two largest, scalings"),
            ("sphere", "share of the two largest, sphere"),
        ],
        unit="percent",
        rule="min(scaling, sphere) >= 90",
        changed="The covariance is not centered, and the wedges are ours.",
        because="The matrices of the sphere spread over more directions.",
        figure="orbit-learning.png",
        caption="Wedges, eigenvalues, and the orbit of the two leading matrices from two sides "
        "(data in red), as in Figures (a) to (d); the last row is the squared loss",
        measure=spectrum,
    ),
    claim(
        "ol-scaling",
        "Figures (c), (d)",
        "The orbit fits the data and extrapolates it: positive data, scaled.",
        [
            ("fit", "distance of the data from the orbit"),
            ("error", "distance of unseen points from the orbit"),
            ("spread", "spread of the unseen points"),
            ("squared", "distance of unseen points by the squared loss"),
        ],
        rule="error < 0.05 * spread",
        changed="The wedge is one of two scalings, and matrices are diagonal.",
        measure=partial(extrapolation, scaling, "diagonal"),
    ),
    claim(
        "ol-sphere",
        "Figures (c), (d)",
        "The orbit completes a sphere of which a small piece is given.",
        [
            ("fit", "distance of the data from the orbit"),
            ("error", "distance of unseen points from the orbit"),
            ("spread", "spread of the unseen points"),
            ("squared", "distance of unseen points by the squared loss"),
        ],
        rule="error < 0.05 * spread",
        because="Rotations are skew matrices, and the convex cost is defined for symmetric ones: "
        "the error beyond the data is {error}, their spread {spread}. The squared loss, which is "
        "not convex, reaches {squared}.",
        measure=partial(extrapolation, sphere, "symmetric"),
    ),
    claim(
        "ol-positive",
        "Figures (c), (d)",
        "The extrapolated orbit stays strictly positive.",
        [
            ("scaling", "positive part of an orbit three times as long as the data, scalings"),
            ("sphere", "the same, sphere"),
        ],
        unit="percent",
        rule="min(scaling, sphere) == 100",
        because="Exponentials of diagonal matrices are positive, so that scalings cannot change a "
        "sign ({scaling}%). Symmetric matrices can: {sphere}% of the orbit of the sphere stay "
        "positive. The paper saw it on one wedge.",
        measure=positive,
    ),
    claim(
        "ol-beyond",
        "Introduction",
        "Orbits generalize to new parts of the space and extrapolate nonlinearly.",
        [
            ("circle", "70 degrees of a circle, one generator"),
            ("sphere", "50 by 50 degrees of a sphere, two generators"),
            ("scaling", "two scalings of space"),
            ("pair", "two symmetric motions that do not commute"),
            ("noisy", "the sphere with noise .03"),
        ],
        unit="error beyond the data over its spread",
        rule="max(circle, sphere, scaling, pair) < 0.01",
        ours="`OrbitLearner()`, ten draws of 200 points, 100 unseen ones.",
        changed="The squared error is minimized, with generators shared by all pairs.",
        measure=squared,
    ),
    claim(
        "ol-convex",
        "Reconstruction error",
        "The log-trace error is convex in the matrix.",
        [
            ("diagonal", "pairs of diagonal matrices that contradict it"),
            ("symmetric", "pairs of symmetric matrices"),
            ("general", "pairs of general matrices"),
        ],
        unit="percent",
        rule="diagonal == 0 and symmetric == 0 and general == 0",
        theirs="Stated; the proof is deferred.",
        ours="Random 3 x 3 matrices and nonnegative vectors; the error at the midpoint against "
        "the mean error of the ends.",
        because="It is convex for diagonal matrices ({diagonal}%). Midpoints of symmetric "
        "matrices lie higher in {symmetric}% of the cases. For general ones ({general}%) the "
        "logarithm is not even defined everywhere.",
        measure=convexity,
    ),
    claim(
        "ol-volume",
        "Volume",
        "Regularized and with a penalty on its trace, the log-determinant is convex.",
        [
            ("small", "pairs that contradict it, eps1 eps2 = .01"),
            ("large", "pairs that contradict it, eps1 eps2 = 1/8"),
        ],
        unit="percent",
        rule="large == 0",
        theirs="Stated; details are deferred.",
        ours="Six random vectors in space; the midpoint against the mean of the ends.",
        changed="Only if eps1 eps2 >= 1/8, which the paper does not say.",
        measure=volume_convexity,
    ),
    claim(
        "ol-minimum",
        "Reconstruction error",
        "For nonnegative data, the log-trace error is least where the squared error is.",
        [
            ("symmetric", "largest relative distance of x from exp(A) x' at the minimum"),
            ("general", "how far below this minimum general matrices get, on average"),
        ],
        rule="symmetric < 1e-3",
        theirs="Stated.",
        ours="Random nonnegative vectors in space; the minimum over symmetric matrices.",
        changed="For symmetric matrices. Over general matrices there is no minimum.",
        measure=minima,
    ),
    claim(
        "ol-slope",
        "Bound",
        "d_n is the slope of the error, for symmetric matrices and nearly so for others.",
        [
            ("symmetric", "median error of d_n, symmetric matrices"),
            ("general", "median error of d_n, general matrices"),
        ],
        unit="percent",
        rule="symmetric < 0.1",
        theirs="Stated.",
        ours="Random matrices with normal entries, against the exact derivative.",
        because="d_n takes the middle of an integral for the whole: it is off by {symmetric}% "
        "for symmetric matrices and {general}% for general ones.",
        measure=slopes,
    ),
    claim(
        "ol-curvature",
        "Bound",
        "A quadratic of curvature 1 bounds the error, for symmetric matrices.",
        [
            ("diagonal", "largest curvature found, diagonal matrices"),
            ("symmetric", "largest curvature found, symmetric matrices"),
        ],
        rule="diagonal <= 1.001 and symmetric <= 1.001",
        theirs="Stated.",
        ours="Random matrices with eigenvalues between -4 and 4, random directions.",
        because="It holds for diagonal matrices ({diagonal}). For symmetric ones the curvature "
        "grows with the gaps between eigenvalues, here to {symmetric}.",
        measure=curvature,
    ),
    claim(
        "ol-views",
        "Introduction",
        "Views of an object arise from few views by operators that can be learned.",
        [
            ("orbit", "pixel error of views between, by orbits"),
            ("linear", "by blending the two neighbors"),
            ("nearest", "by the nearest view"),
            ("better", "objects for which orbits are better than blending, in percent"),
        ],
        rule="orbit < min(linear, nearest) and better > 50",
        theirs="An outlook.",
        ours="Twelve turning objects (COIL-20), 12 views of each given, 30 degrees apart, 60 "
        "predicted; one skew generator that moves pixels along rows.",
        changed="The squared error, and a sparse skew generator.",
        because="Orbits miss by {orbit}, blending by {linear}, the nearest view by {nearest}.",
        measure=views,
        derive=ahead,
    ),
)
UNCHECKED = (
    Unchecked(
        "Last paragraph",
        "Inequality constraints can be imposed by quadratic programming.",
        "No experiment; `OrbitLearner(constraints=...)` does so.",
    ),
)
