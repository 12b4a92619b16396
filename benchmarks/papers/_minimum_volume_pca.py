"""Minimum-volume PCA: digits as bags of points, put into a common order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from benchmarks.papers._claims import Claim, Quantity, Setting, Unchecked, Values
from unshuffle import MinimumVolumePCA
from unshuffle.alignment._paper import bound_costs
from unshuffle.alignment._volume import LeaveOneOut, log_volume

Array = NDArray[np.float64]

TITLE = "Minimum-volume PCA"
SOURCE = (
    "Jebara: *Kernelizing sorting, permutation and alignment for minimum volume PCA*, Conference "
    "on Learning Theory (2004)."
)
DIGITS = (
    "100 digits (9s and 3s), each a bag of 70 coordinates of its pixels; which digits is not said"
)
MNIST = (
    "100 digits of MNIST (50 3s, 50 9s) as bags of 70 pixels, drawn in proportion to their ink "
    "and moved by up to half a pixel"
)
N_POINTS = 70


def bags_of(setting: Setting, seed: int) -> tuple[Array, Array]:
    """Bags to fit and 60 new ones, all on one scale."""
    data, rng = setting.load("mnist3000"), np.random.default_rng(seed)
    threes, nines = (np.flatnonzero(data["labels"] == digit) for digit in (3, 9))
    parts = []
    for first, last in ((0, 50), (50, 80)):
        chosen = data["images"][[*threes[first:last], *nines[first:last]]].astype(float)
        parts.append(np.stack([drawn(image, rng) for image in chosen]))
    middle = parts[0].mean(axis=(0, 1))
    scale = (parts[0] - middle).std()
    return (parts[0] - middle) / scale, (parts[1] - middle) / scale


def drawn(image: Array, rng: np.random.Generator) -> Array:
    """Points of an image, drawn in proportion to its ink."""
    height, width = image.shape
    cell = rng.choice(image.size, N_POINTS, p=image.ravel() / image.sum())
    row, column = np.divmod(cell, width)
    return np.stack([column, height - 1 - row], axis=1) + rng.random((N_POINTS, 2)) - 0.5


def ordered(found: MinimumVolumePCA, bags: Array) -> Array:
    return np.take_along_axis(bags, found.permutations_[:, :, None], axis=1)


def eigenvalues(bags: Array) -> Array:
    """Of the covariance of the bags as vectors."""
    vectors = bags.reshape(len(bags), -1)
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    return np.asarray(values / len(bags))


def n_components(bags: Array, share: float = 0.95) -> int:
    values = eigenvalues(bags)
    return int(np.searchsorted(np.cumsum(values) / values.sum(), share)) + 1


def new_error(found: MinimumVolumePCA, bags: Array) -> float:
    """Share of the spread of new bags that the components miss."""
    aligned = np.stack([bag[p] for bag, p in zip(bags, found.align(bags), strict=True)])
    missed = aligned - found.inverse_transform(found.transform(bags))
    return float(np.sum(missed**2) / np.sum((bags - bags.mean(axis=1, keepdims=True)) ** 2))


def spectrum(setting: Setting) -> Values:
    values: Values = {"raw": [], "sorted": [], "variance": []}
    for seed in setting.seeds(5):
        bags, _ = bags_of(setting, seed)
        after = ordered(MinimumVolumePCA(method="covariance").fit(bags), bags)
        values["raw"].append(n_components(bags))
        values["sorted"].append(n_components(after))
        values["variance"].append(eigenvalues(after).sum() / eigenvalues(bags).sum())
        if seed == 0:
            draw_spectrum(setting, bags, after)
    return values


def draw_spectrum(setting: Setting, bags: Array, after: Array) -> None:
    with setting.figure("minimum-volume-pca-2.svg", (8.0, 2.9)) as fig:
        left, right = fig.subplots(1, 2, width_ratios=[1, 1.6])
        for k, bag in enumerate(bags[[0, 1, 2, 3, 50, 51, 52, 53]]):
            x, y = bag.T / 5
            left.plot(x + k % 4, y - k // 4, ".", markersize=2, color="#0b4f6c")
        left.set_aspect("equal")
        left.axis("off")
        left.set_title("(a) bags of 70 points")
        n, places = 40, np.arange(1, 41)
        right.bar(places - 0.2, eigenvalues(bags)[:n], 0.4, color="#555555", label="as given")
        right.bar(places + 0.2, eigenvalues(after)[:n], 0.4, color="#3fa7c9", label="ordered")
        right.set_yscale("log")
        right.set_title("(b) eigenvalues")
        right.set_xlabel("component")
        right.legend(frameon=False)


def likelihood(setting: Setting) -> Values:
    """Log-likelihood per bag of a Gaussian with the ridge, at its best mean and covariance."""
    values: Values = {"before": [], "after": [], "falls": []}
    for seed in setting.seeds(5):
        bags, _ = bags_of(setting, seed)
        found = MinimumVolumePCA(method="covariance").fit(bags)
        path = -np.asarray(found.log_volume_path_) / 2
        start = -log_volume(bags, ridge=ridge_of(bags)) / 2
        values["before"].append(start)
        values["after"].append(-log_volume(ordered(found, bags), ridge=ridge_of(bags)) / 2)
        values["falls"].append(float(np.sum(np.diff(path) < -1e-9)))
        if seed == 0:
            draw_likelihood(setting, start, path)
    return values


def draw_likelihood(setting: Setting, start: float, path: Array) -> None:
    with setting.figure("minimum-volume-pca-2c.svg", (7.4, 2.7)) as fig:
        left, right = fig.subplots(1, 2, width_ratios=[1, 1.8])
        left.plot([start, path[0], path[-1]], ".-", color="#0b6e99")
        left.set_xticks([0, 1, 2], ["as given", "mean", "covariance"])
        left.set(xlim=(-0.4, 2.4), xlabel="estimator", ylabel="log-likelihood of a bag")
        right.plot(path, ".-", color="#0b6e99")
        right.set_xlabel("sweeps of the covariance estimator, from the mean estimator on")
        fig.suptitle("(c) log-likelihood, up to a constant")


def ridge_of(bags: Array, share: float = 0.1) -> float:
    """A share of the mean variance of these bags along a direction."""
    return share * float(eigenvalues(bags).sum()) / (len(bags) - 1)


def model_of(bags: Array, ridge: float) -> tuple[Array, Array, Array]:
    """Mean of the bags, and eigenvalues and eigenvectors of M = (S + ridge)^-1."""
    vectors = bags.reshape(len(bags), -1)
    mean = vectors.mean(axis=0)
    values, directions = np.linalg.eigh(np.cov(vectors.T, bias=True))
    return mean, 1.0 / (np.maximum(values, 0.0) + ridge), np.ascontiguousarray(directions.T)


def assigned_to_first(bags: Array) -> Array:
    return np.stack([bag[nearest(bags[0], bag)] for bag in bags])


def nearest(targets: Array, points: Array) -> NDArray[np.intp]:
    return np.asarray(linear_sum_assignment(cdist(targets, points, "sqeuclidean"))[1])


def bound(setting: Setting) -> Values:
    """One update of each bag by the paper's bound, and by the tangent, without any check."""
    values: Values = {"moved": [], "printed": [], "hundredth": [], "tenth": [], "tangent": []}
    for seed in setting.seeds(3, 1):
        given = bags_of(setting, seed)[0]
        bags = assigned_to_first(given)
        for key, share in (("printed", 0.001), ("hundredth", 0.01), ("tenth", 0.1)):
            moved, raised = one_update(bags, ridge_of(given, share))
            values[key].append(raised)
            if key == "printed":
                values["moved"].append(moved)
        found = raised_by_tangents(bags, ridge_of(given, 0.001))
        values["tangent"].append(100 * float(np.mean(found)))
    return values


def one_update(bags: Array, ridge: float) -> tuple[float, float]:
    """Percent of the bags that the paper's bound reorders, and whose cost it raises."""
    mean, weights, directions = model_of(bags, ridge)
    pull = (directions.T @ (weights * (directions @ mean))).reshape(bags.shape[1:])
    moved, raised = [], []
    for bag in bags[1:]:
        columns = linear_sum_assignment(bound_costs(bag, pull, weights, directions))[1]
        costs = [
            0.5 * np.sum(weights * (directions @ x.ravel()) ** 2) - np.sum(pull * x)
            for x in (bag, bag[columns])
        ]
        moved.append(bool(np.any(columns != np.arange(N_POINTS))))
        raised.append(costs[1] > costs[0] + 1e-9 * abs(costs[0]))
    return 100 * float(np.mean(moved)), 100 * float(np.mean(raised))


def raised_by_tangents(bags: Array, ridge: float) -> list[bool]:
    """Whether assigning a bag to its prediction by the others raises its quadratic form."""
    raised = []
    for t in range(1, len(bags)):
        others = np.delete(bags, t, axis=0).reshape(len(bags) - 1, -1)
        model = LeaveOneOut.of(others @ others.T, ridge=ridge)
        inner = others @ bags[t].ravel()
        prediction = (model.prediction_weights(inner) @ others).reshape(bags[t].shape)
        moved = bags[t][nearest(prediction, bags[t])]
        squared = float(np.sum(bags[t] ** 2))
        forms = [model.quadratic(others @ x.ravel(), squared) for x in (bags[t], moved)]
        raised.append(forms[1] > forms[0] * (1 + 1e-9))
    return raised


def weights_of_directions(setting: Setting) -> Values:
    """Weights of M - s I on the eigenvectors of the covariance, with s = 1 / ridge."""
    bags, _ = bags_of(setting, 0)
    ridge = ridge_of(bags)
    weights = 1.0 / (eigenvalues(bags)[:-1] + ridge) - 1.0 / ridge
    return {"negative": [100 * float(np.mean(weights < 0))]}


def morphs(setting: Setting) -> Values:
    """How far clouds halfway between two digits are from the nearest digit."""
    values: Values = {"raw": [], "sorted": [], "real": []}
    for seed in setting.seeds(5):
        bags, _ = bags_of(setting, seed)
        after = ordered(MinimumVolumePCA(method="covariance").fit(bags), bags)
        rng = np.random.default_rng(seed)
        pairs = rng.permutation(len(bags))[:40].reshape(-1, 2)
        for key, given in (("raw", bags), ("sorted", after)):
            halfway = [(given[i] + given[j]) / 2 for i, j in pairs]
            values[key].append(float(np.mean([from_digits(each, bags) for each in halfway])))
        real = [from_digits(bags[i], np.delete(bags, i, axis=0)) for i, _ in pairs]
        values["real"].append(float(np.mean(real)))
        if seed == 0:
            draw_morphs(setting, bags, after)
    return values


def from_digits(cloud: Array, bags: Array) -> float:
    """Mean distance to the points of the most similar bag, matched one to one."""
    found = []
    for bag in bags:
        distances = cdist(cloud, bag)
        found.append(distances[linear_sum_assignment(distances)].mean())
    return float(min(found))


def draw_morphs(setting: Setting, bags: Array, after: Array) -> None:
    pairs = ((0, 3), (51, 54), (1, 52))
    with setting.figure("minimum-volume-pca-3.png", (8.4, 5.6)) as fig:
        axes = fig.subplots(6, 7)
        for k, (i, j) in enumerate(pairs):
            for panels, given in ((axes[2 * k], bags), (axes[2 * k + 1], after)):
                for ax, t in zip(panels[:6], np.linspace(0, 1, 6), strict=True):
                    x, y = ((1 - t) * given[i] + t * given[j]).T
                    ax.plot(x, y, ".", markersize=2.5, color="#0b4f6c")
                (x, y), (u, v) = given[i].T, (given[j] - given[i]).T
                panels[6].quiver(
                    *(x, y, u, v),
                    angles="xy",
                    scale_units="xy",
                    scale=1,
                    width=0.006,
                    color="#c8553d",
                )
        for ax in axes.flat:
            ax.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        for k in range(3):
            axes[2 * k, 0].set_ylabel("as given", fontsize=8)
            axes[2 * k + 1, 0].set_ylabel("ordered", fontsize=8)


def methods(setting: Setting) -> Values:
    values: Values = {"raw": [], "mean": [], "covariance": []}
    for seed in setting.seeds(5):
        bags, new = bags_of(setting, seed)
        for method in ("mean", "covariance"):
            values[method].append(new_error(MinimumVolumePCA(10, method).fit(bags), new))
        values["raw"].append(unordered_error(bags.reshape(len(bags), -1), new))
    return values


def unordered_error(vectors: Array, new: Array) -> float:
    """The same error for ten components of bags in the order given; new bags are assigned."""
    mean = vectors.mean(axis=0)
    directions = np.linalg.svd(vectors - mean, full_matrices=False)[2][:10]
    missed = 0.0
    for bag in new:
        points = bag[nearest(mean.reshape(bag.shape), bag)]
        for _ in range(10):
            rebuilt = mean + directions.T @ (directions @ (points.ravel() - mean))
            points = points[nearest(rebuilt.reshape(bag.shape), points)]
        rest = points.ravel() - mean
        missed += float(np.sum((rest - directions.T @ (directions @ rest)) ** 2))
    return missed / float(np.sum((new - new.mean(axis=1, keepdims=True)) ** 2))


def fewer(setting: Setting) -> Values:
    values: Values = {"mean": [], "covariance": []}
    for seed in setting.seeds(5):
        bags, _ = bags_of(setting, seed)
        for method, found in values.items():
            fitted = MinimumVolumePCA(method=method).fit(bags)
            found.append(n_components(ordered(fitted, bags)))
    return values


def base_kernels(setting: Setting) -> Values:
    """Variance of the ordered bags, by a linear and a quadratic base kernel."""
    values: Values = {"linear": [], "quadratic": []}
    for seed in setting.seeds(5):
        bags, _ = bags_of(setting, seed)
        whole = eigenvalues(bags).sum()
        for key, kernel in (("linear", "linear"), ("quadratic", "poly")):
            after = ordered(MinimumVolumePCA(kernel=kernel, degree=2).fit(bags), bags)
            values[key].append(float(eigenvalues(after).sum() / whole))
    return values


def restarts(setting: Setting) -> Values:
    """Variance that the mean estimator ends with, from random orders."""
    values: Values = {"best": [], "worst": []}
    for seed in setting.seeds(3, 1):
        bags, _ = bags_of(setting, seed)
        rng, found = np.random.default_rng(seed), []
        for _ in range(setting.pick(8, 3)):
            init = rng.permuted(np.tile(np.arange(N_POINTS), (len(bags), 1)), axis=1)
            fitted = MinimumVolumePCA(init=init, max_iter=300, tol=0).fit(bags)
            found.append(float(eigenvalues(ordered(fitted, bags)).sum()))
        values["best"].append(min(found))
        values["worst"].append(max(found))
    return values


def lock(setting: Setting) -> Values:
    """Noisy shuffled copies of one shape: share of points that meet their partner in the first."""
    values: Values = {"locked": [], "among": [], "unlocked": []}
    for seed in setting.seeds(20, 5):
        rng = np.random.default_rng(seed)
        shape = rng.normal(size=(30, 2))
        orders = np.stack([rng.permutation(30) for _ in range(10)])
        bags = np.stack([(shape + 0.08 * rng.normal(size=shape.shape))[each] for each in orders])
        for key, n_locked in (("locked", 1), ("unlocked", 0)):
            kept = mean_updates(bags, n_locked)
            named = np.take_along_axis(orders, kept, axis=1)
            values[key].append(100 * float(np.mean(named[1:] == named[0])))
            if n_locked:
                values["among"].append(100 * float(np.mean(named[2:] == named[1])))
    return values


def mean_updates(bags: Array, n_locked: int) -> NDArray[np.intp]:
    """Assign bags to the mean of all, in turn, from the order given; the first may be locked."""
    order = np.tile(np.arange(bags.shape[1]), (len(bags), 1))
    points = bags.copy()
    for _ in range(100):
        before = order.copy()
        for t in range(n_locked, len(bags)):
            columns = nearest(points.mean(axis=0), bags[t])
            order[t], points[t] = columns, bags[t][columns]
        if np.array_equal(order, before):
            break
    return order


def claim(id: str, where: str, says: str, quantities: Any, **options: Any) -> Claim:
    options = {"theirs": DIGITS + ".", "ours": MNIST + "."} | options
    return Claim(id, where, says, tuple(Quantity(*each) for each in quantities), **options)


OTHER_DIGITS = "The digits are those of MNIST."
CLAIMS = (
    claim(
        "mv-spectrum",
        "Figure 2 (b)",
        "Once bags are ordered, eigenvalues are lower and few dimensions hold the variation.",
        [
            ("raw", "components for 95% of the variance, as given"),
            ("sorted", "the same, ordered by the covariance estimator"),
            ("variance", "variance after ordering, as a share of that before"),
        ],
        rule="sorted < 0.7 * raw and variance < 0.3",
        changed=OTHER_DIGITS,
        figure="minimum-volume-pca-2.svg",
        caption="Some bags, and eigenvalues before and after ordering, as in Figure 2 (a) and (b)",
        measure=spectrum,
    ),
    claim(
        "mv-likelihood",
        "Figure 2 (c)",
        "The log-likelihood rises as the orders are optimized.",
        [
            ("before", "log-likelihood of a bag as given, up to a constant"),
            ("after", "after ordering"),
            ("falls", "sweeps after which it is lower than before"),
        ],
        rule="after > before and falls == 0",
        changed=OTHER_DIGITS + " Each bag is assigned to the prediction by all others, a tangent "
        "that bounds the cost, instead of the printed bound.",
        figure="minimum-volume-pca-2c.svg",
        caption="Log-likelihood as given and ordered, and after each sweep, as in Figure 2 (c)",
        measure=likelihood,
    ),
    claim(
        "mv-bound",
        "Section 4",
        "Minimizing the variational bound over an order improves the likelihood of that bag.",
        [
            ("moved", "bags that one update by the printed bound reorders"),
            ("printed", "bags whose cost it raises"),
            ("hundredth", "the same with e1 = .01 of the mean variance"),
            ("tenth", "the same with e1 = .1 of the mean variance"),
            ("tangent", "bags whose cost one update by the tangent raises"),
        ],
        unit="percent",
        rule="printed == 0",
        ours=MNIST + ", all assigned to the first; one update of each of the 99 others, accepted "
        "without a check; e1 is .001 of the mean variance, delta .5; all directions, so that all "
        "weights of the bound are positive.",
        because="The bound is valid but does not touch the cost at the current order. The update "
        "reorders {moved}% of the bags and raises the cost of {printed}%. A larger e1 hides it: "
        "{hundredth}% at .01 and {tenth}% at .1 of the mean variance. The tangent raises that "
        "of {tangent}%.",
        measure=bound,
    ),
    claim(
        "mv-sign",
        "Section 4",
        "The weights of eigenfunctions in the inverse covariance are nonnegative.",
        [("negative", "weights below zero")],
        unit="percent",
        rule="negative == 0",
        because="With M = (S + e1 I)^-1 + e2 I and s = 1/e1 + e2 they are 1/(l + e1) - 1/e1: "
        "{negative}% are negative, and Jensen's inequality points the other way.",
        measure=weights_of_directions,
    ),
    claim(
        "mv-morph",
        "Figure 3",
        "Halfway between two ordered digits is still a digit; between unordered ones, a cloud.",
        [
            ("raw", "distance of halfway clouds from the most similar digit, as given"),
            ("sorted", "the same, ordered"),
            ("real", "distance of a digit from the most similar other one"),
        ],
        rule="sorted <= real < raw",
        theirs="Pictures of three pairs; the half-way point is judged by eye.",
        ours=MNIST
        + "; 20 random pairs. Distance: mean over the points, matched one to one so that "
        "it is least.",
        changed=OTHER_DIGITS + " The eye is replaced by a distance.",
        figure="minimum-volume-pca-3.png",
        caption="Morphs between two 3s, two 9s, and a 3 and a 9, with bags as given and ordered; "
        "the last column shows which point moves where, as in Figure 3",
        measure=morphs,
    ),
    claim(
        "mv-methods",
        "Section 6",
        "Mean and covariance estimator give similar results.",
        [
            ("raw", "error on new digits with 10 components, bags as given"),
            ("mean", "mean estimator"),
            ("covariance", "covariance estimator"),
        ],
        unit="share of the spread",
        rule="abs(covariance - mean) <= 0.05 * mean",
        theirs="Said without figures.",
        ours=MNIST + "; squared residuals of 60 other digits, assigned to their reconstruction.",
        changed=OTHER_DIGITS,
        measure=methods,
    ),
    claim(
        "mv-fewer",
        "Section 4",
        "The covariance estimator needs fewer components than the mean estimator.",
        [
            ("mean", "components for 95% of the variance, mean estimator"),
            ("covariance", "covariance estimator"),
        ],
        rule="covariance < mean",
        theirs="Expected, without figures.",
        changed=OTHER_DIGITS + " New digits are not described better (mv-methods).",
        measure=fewer,
    ),
    claim(
        "mv-kernels",
        "Section 6",
        "Linear and quadratic base kernels give similar results.",
        [
            ("linear", "variance after ordering, linear base kernel"),
            ("quadratic", "quadratic base kernel"),
        ],
        unit="share of the variance before",
        rule="abs(quadratic - linear) <= 0.1 * linear",
        theirs="Said without figures.",
        ours=MNIST + "; mean estimator; the variance is that of the points for both.",
        changed=OTHER_DIGITS,
        measure=base_kernels,
    ),
    claim(
        "mv-global",
        "Section 3",
        "The maximum that the mean estimator finds may be the global one.",
        [("best", "variance after ordering, best restart"), ("worst", "worst restart")],
        rule="worst <= best * (1 + 1e-6)",
        theirs="A conjecture, by analogy with Procrustes analysis.",
        ours=MNIST + "; 8 restarts from random orders (3 in a quick run).",
        because="Restarts end in different orders, {best} to {worst}: local optima, though close.",
        measure=restarts,
    ),
    claim(
        "mv-lock",
        "Section 5",
        "Locking the order of the first bag loses nothing, since orders are relative.",
        [
            ("locked", "points that meet their partner in the first bag, which is locked"),
            ("among", "points that meet their partner in the second bag, first bag locked"),
            ("unlocked", "points that meet their partner in the first bag, none locked"),
        ],
        unit="percent",
        rule="locked >= unlocked - 5",
        theirs="Said without figures.",
        ours="Ten noisy copies (noise .08) of 30 normal points in the plane, shuffled; mean "
        "estimator from the order given.",
        because="The locked bag never joins the others: {locked}% of their points meet their "
        "partner in it, against {unlocked}% if none is locked. Among each other they agree "
        "({among}%). Lock none, and renumber at the end.",
        measure=lock,
    ),
)
UNCHECKED = (
    Unchecked(
        "Figure 1",
        "Three dot drawings of faces, whose eight dots are matched.",
        "An illustration; the drawings are not published.",
    ),
)
