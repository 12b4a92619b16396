"""Permutation-invariant SVM: digits, objects and tables whose elements have lost their order."""

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.papers._claims import Claim, Quantity, Setting, Unchecked, Values
from benchmarks.papers._set_scores import (
    as_given,
    by_kernel,
    in_order,
    of_strokes,
    searched,
    sorted_vectors,
)
from benchmarks.papers._set_tasks import Views, digit_pairs, object_views, permuted_table
from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle.kernels import BhattacharyyaKernel
from unshuffle.svm._templates import centered_ball

Array = NDArray[np.float64]

TITLE = "Permutation-invariant SVM"
SOURCE = (
    "Shivaswamy, Jebara: *Permutation invariant SVMs*, International Conference on Machine "
    "Learning (2006)."
)
TABLES = ("ionosphere", "pima", "heart")
SMALL_COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


# Figure 1


def toy(keys: tuple[str, ...], setting: Setting) -> Values:
    values: Values = {key: [] for key in keys}
    for seed in setting.seeds(20, 5):
        found = recover(seed)
        for key in values:
            values[key].append(found[key])
    draw_toy(setting, recover(0))
    return values


def recover(seed: int) -> dict[str, Any]:
    """One iteration on points whose coordinates were exchanged with probability one half."""
    rng = np.random.default_rng(seed)
    actual = rng.normal(size=(100, 2)) + np.repeat([[0.0, 2.0], [0.0, 6.0]], 50, axis=0)
    signs = np.repeat([1.0, -1.0], 50)
    turned = rng.random(100) < 0.5
    permuted = np.where(turned[:, None], actual[:, ::-1], actual)
    w, b = plane(permuted, signs)
    center = centered_ball(permuted[:, :, None], None)[1][:, 0]
    moved = permuted.copy()
    for i, x in enumerate(permuted):
        target = 100.0 * signs[i] * w + center  # lambda = 100
        if target @ x[::-1] > target @ x:
            moved[i] = x[::-1]
    first, last = plane(actual, signs), plane(moved, signs)
    angles = [angle_of(first[0], each) for each in (last[0], last[0][::-1])]
    return {
        "wrong": float(np.sum(signs * (permuted @ w + b) < 0)),
        "righted": float(np.sum(signs * (moved @ last[0] + last[1]) < 0)),
        "actual": 1 / float(np.linalg.norm(first[0])),
        "recovered": 1 / float(np.linalg.norm(last[0])),
        "angle": min(angles),
        "drawn": (actual, permuted, moved, signs, first, (w, b), last),
    }


def plane(X: Array, signs: Array) -> tuple[Array, float]:
    machine = SVC(C=10.0, kernel="linear").fit(X, signs)
    return machine.coef_[0], float(machine.intercept_[0])


def angle_of(u: Array, v: Array) -> float:
    """Between two lines, in degrees."""
    cosine = abs(u @ v) / np.linalg.norm(u) / np.linalg.norm(v)
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def draw_toy(setting: Setting, found: dict[str, Any]) -> None:
    actual, permuted, moved, signs, first, before, last = found["drawn"]
    panels = (
        ("as they are", actual, actual, first),
        ("coordinates exchanged", permuted, permuted, before),
        ("moved, old plane and circle", moved, permuted, before),
        ("moved, new plane and circle", moved, moved, last),
    )
    with setting.figure("permutation-invariant-svm-1.svg", (9.0, 2.4)) as fig:
        for ax, (title, X, enclosed, (w, b)) in zip(fig.subplots(1, 4), panels, strict=True):
            for sign, color in ((1, "#0b6e99"), (-1, "#c8553d")):
                ax.plot(*X[signs == sign].T, ".", markersize=4, color=color)
            ball, center = centered_ball(enclosed[:, :, None], None)
            angle = np.linspace(0, 2 * np.pi, 100)
            radius = np.sqrt(ball.cost)
            ax.plot(
                center[0, 0] + radius * np.cos(angle),
                center[1, 0] + radius * np.sin(angle),
                color="#999999",
                linewidth=0.8,
            )
            ax.plot(*center[:, 0], "+", color="black")
            normal = w / np.linalg.norm(w)
            foot, along = -b / np.linalg.norm(w) * normal, np.array([-normal[1], normal[0]])
            ends = np.array([foot - 30 * along, foot + 30 * along])
            ax.plot(*ends.T, color="black", linewidth=1)
            ax.set(xlim=(-6, 11), ylim=(-6, 11), aspect="equal")
            ax.set(xticks=[-5, 0, 5, 10], yticks=[-5, 0, 5, 10])
            ax.set_title(title, fontsize=8)


# Table 2


OBJECTS = {"plane": (411, 421), "jugs": (259, 262), "dolls": (139, 145)}


def objects(name: str, setting: Setting) -> Values:
    """Best mean accuracy over a grid, read off the test views, as in the paper."""
    runs = [
        object_views(setting.folder, OBJECTS[name], seed, halved=name != "plane")
        for seed in range(8)
    ]
    costs = (1.0, 10.0, 100.0)
    makers: Mapping[str, list[Callable[[], Any]]] = {
        "pi": [
            partial(PermutationInvariantSVC, C, weight, template="ball")
            for C in costs
            for weight in (0.0, 0.03, 0.1)
        ],
        "rbf": [partial(SVC, C=C, gamma=g) for C in costs for g in (0.001, 0.003, 0.01)],
        "linear": [partial(SVC, C=C, kernel="linear") for C in (0.01, *costs)],
        "sorted": [partial(ordered_svm, sorted_vectors, C) for C in costs],
        "random": [partial(ordered_svm, as_given, C) for C in costs],
        "kj": [
            partial(set_machine, gamma, eta, 10.0)
            for gamma in (30.0, 100.0)
            for eta in (0.02, 0.1)
        ],
        "centered": [partial(centered_machine, C) for C in costs],
    }
    values: Values = {}
    for key, choices in makers.items():
        images = key in ("rbf", "linear")
        scores = [[view_score(make(), run, images=images) for run in runs] for make in choices]
        values[key] = max(scores, key=lambda each: float(np.mean(each)))
    return values


def view_score(model: Any, run: Views, *, images: bool) -> float:
    X = run.images if images else run.sets
    model.fit(X[run.trained], run.labels[run.trained])
    return 100 * float(model.score(X[~run.trained], run.labels[~run.trained]))


def ordered_svm(order: Callable[[Any], Any], C: float) -> Any:
    model = in_order(order, "linear")
    return model.set_params(svc__C=C)


def set_machine(gamma: float, eta: float, C: float) -> Any:
    """The kernel of Kondor and Jebara: Gaussians in the feature space of an RBF kernel."""
    kernel = BhattacharyyaKernel(base_kernel="rbf", gamma=gamma, eta=eta)
    return make_pipeline(kernel, SVC(C=C, kernel="precomputed"))


def centered_machine(C: float) -> Any:
    from unshuffle.preprocessing import SetNormalizer

    return make_pipeline(SetNormalizer(scale=None), PermutationInvariantSVC(C, template="ball"))


# Table 3


def digits(setting: Setting) -> Values:
    """Percent right on 400 new digits, with parameters chosen on 200."""
    return dict(_digits(setting))


@cache
def _digits(setting: Setting) -> Values:
    values: Values = {
        key: []
        for key in (
            *("pi", "image_linear", "image_rbf", "sorted_linear", "sorted_rbf", "random_linear"),
            *("random_rbf", "kj", "strokes"),
        )
    }
    for seed in setting.seeds(5, 1, first=10):
        task = digit_pairs(setting.folder, seed)
        images = digit_pairs(setting.folder, seed, images=True)
        wide = {"svc__C": (0.001, 0.01, 0.1, 1.0)}
        curved = {"svc__C": (1.0, 3.0, 10.0)}
        machine = PermutationInvariantSVC(template="ball")
        values["pi"].append(searched(machine, {"C": SMALL_COSTS}, task))
        values["image_linear"].append(
            searched(SVC(kernel="linear"), {"C": (0.01, 0.1, 1.0)}, images)
        )
        grid = {"C": (1.0, 10.0), "gamma": (0.003, 0.01, 0.03)}
        values["image_rbf"].append(searched(SVC(), grid, images))
        for key, order in (("sorted", sorted_vectors), ("random", as_given)):
            values[f"{key}_linear"].append(searched(in_order(order, "linear"), wide, task))
            values[f"{key}_rbf"].append(searched(in_order(order, "rbf"), curved, task))
        in_feature_space = [
            BhattacharyyaKernel(base_kernel="rbf", gamma=100.0, eta=eta) for eta in (0.02, 0.05)
        ]
        values["kj"].append(by_kernel(in_feature_space, task))
        values["strokes"].append(by_kernel([of_strokes()], task))
    return values


# Table 4


def tables(setting: Setting) -> Values:
    """Best mean of ten-fold cross-validation over a grid, as in the paper."""
    return dict(_tables(setting))


@cache
def _tables(setting: Setting) -> Values:
    values: Values = {}
    for name in TABLES:
        for key in ("pi", "actual", "sorted", "random", "rbf"):
            values[f"{name}_{key}"] = []
    for name in TABLES:
        for seed in setting.seeds(5, 1):
            X, y = permuted_table(setting.folder, name, seed)
            whole, _ = permuted_table(setting.folder, name, None)
            folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(X[:, 0, 0], y))
            grid = setting.pick(SMALL_COSTS, (0.3, 3.0))
            for key, order, given, kernel in (
                ("actual", as_given, whole, "linear"),
                ("sorted", sorted_vectors, X, "linear"),
                ("random", as_given, X, "linear"),
                ("rbf", sorted_vectors, X, "rbf"),
            ):
                vectors = order(given)
                values[f"{name}_{key}"].append(best_of_folds(vectors, y, folds, kernel, grid))
            values[f"{name}_pi"].append(best_of_alignments(X, y, folds, grid))
    return values


def best_of_folds(X: Array, y: Any, folds: Any, kernel: str, costs: Any) -> float:
    means = []
    for C in costs:
        right = []
        for seen, left in folds:
            scale = X[seen].std(axis=0)
            scaled = (X - X[seen].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
            model = SVC(C=C, kernel=kernel).fit(scaled[seen], y[seen])
            right.append(model.score(scaled[left], y[left]))
        means.append(float(np.mean(right)))
    return 100 * max(means)


def best_of_alignments(X: Array, y: Any, folds: Any, costs: Any) -> float:
    """The machine with margin weight 0: sets are aligned once for all C."""
    right = {C: [] for C in costs}
    for seen, left in folds:
        aligner = SetAligner(template="ball").fit(X[seen])
        train, test = aligner.transform(X[seen]), aligner.transform(X[left])
        for C, found in right.items():
            found.append(SVC(C=C, kernel="linear").fit(train, y[seen]).score(test, y[left]))
    return 100 * max(float(np.mean(found)) for found in right.values())


# What the paper says of its iterations


def paths(setting: Setting) -> Values:
    """Percent of the rounds in which the margin falls or the radius rises."""
    values: Values = {"margin": [], "radius": [], "plain": []}
    for seed in setting.seeds(5, 2, first=10):
        task = digit_pairs(setting.folder, seed)
        pushed = PermutationInvariantSVC(0.3, 0.1, template="ball", tol=0, max_iter=20)
        plain = PermutationInvariantSVC(0.3, template="ball", tol=0)
        for machine in (pushed, plain):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                machine.fit(task.train, task.y_train)
        margins, radii = (
            np.diff(each[:, 0]) for each in (pushed.margin_path_, pushed.radius_path_)
        )
        values["margin"].append(100 * float(np.mean(margins < -1e-9)))
        values["radius"].append(100 * float(np.mean(radii > 1e-9)))
        values["plain"].append(100 * float(np.mean(np.diff(plain.radius_path_[:, 0]) > 1e-9)))
    return values


def margins(setting: Setting) -> Values:
    """Percent right by weights of the margin."""
    values: Values = {"none": [], "little": [], "more": [], "train": []}
    for seed in setting.seeds(5, 2, first=10):
        task = digit_pairs(setting.folder, seed)
        for key, weight in (("none", 0.0), ("little", 0.03), ("more", 0.3)):
            machine = PermutationInvariantSVC(0.3, weight, template="ball")
            machine.fit(task.train, task.y_train)
            values[key].append(100 * machine.score(task.test, task.y_test))
        values["train"].append(100 * machine.score(task.train, task.y_train))
    return values


def invariance(setting: Setting) -> Values:
    """Percent of predictions that stay when the points of all sets are shuffled."""
    values: Values = {"same": []}
    for seed in setting.seeds(5, 2, first=10):
        task, rng = digit_pairs(setting.folder, seed), np.random.default_rng(seed)
        shuffled = [[rng.permutation(each) for each in part] for part in (task.train, task.test)]
        first = PermutationInvariantSVC(0.3).fit(task.train, task.y_train).predict(task.test)
        second = PermutationInvariantSVC(0.3).fit(shuffled[0], task.y_train).predict(shuffled[1])
        values["same"].append(100 * float(np.mean(first == second)))
    return values


def claim(id: str, where: str, says: str, quantities: Any, **options: Any) -> Claim:
    return Claim(id, where, says, tuple(Quantity(*each) for each in quantities), **options)


TOY = (
    "50 + 50 normal points around (0, 2) and (0, 6), each with its coordinates exchanged with "
    "probability 1/2; C = 10, lambda = 100; one draw."
)
VIEWS = (
    "12 images of each of two objects of the ALOI library, moved by a few pixels, as 120 bright "
    "pixels; three of each for training; best parameters on the test images, eight runs. The text "
    "says that sorted and random order are nearly random on planes and jugs and 80% right on "
    "dolls, which its table contradicts."
)
OUR_VIEWS = (
    "The same with objects {ids} of the library, which the paper does not name, and consecutive "
    "views 5 degrees apart, which it does not say either."
)
NIST = (
    "100 3s and 9s of NIST, as 70 dark pixels; best of a grid by ten-fold cross-validation, on "
    "the folds that chose it."
)
OUR_DIGITS = (
    "100 3s and 100 9s of MNIST for training, 200 and 200 others for testing; parameters chosen "
    "by five-fold cross-validation on the training part."
)
UCI = "Best of a grid by ten-fold cross-validation, on the folds that chose it; ten runs."
OUR_UCI = (
    "The same, five permutations; features scaled to [0, 1] before they are permuted, sorted and "
    "random columns standardized; margin weight 0."
)


def object_claim(name: str, title: str, printed: tuple[float, ...], **options: Any) -> Claim:
    keys = ("pi", "rbf", "linear", "sorted", "random", "kj")
    labels = (
        "permutation-invariant SVM",
        "images, RBF kernel",
        "images, linear",
        "points sorted",
        "points in random order",
        "kernel of Kondor and Jebara",
    )
    first, second = OBJECTS[name]
    rows = [
        *zip(keys, labels, printed, strict=True),
        ("centered", "permutation-invariant, centered sets"),
    ]
    return claim(
        f"pi-{name}",
        "Table 2",
        f"{title}: the permutation-invariant SVM is the best of six, at the level printed.",
        rows,
        unit="percent right",
        rule="pi >= max(rbf, linear, sorted, random, kj) and pi >= pi_printed - 5",
        changed="The objects and the angles of their views are ours.",
        theirs=VIEWS,
        ours=OUR_VIEWS.format(ids=f"{first} and {second}"),
        measure=partial(objects, name),
        **options,
    )


CLAIMS = (
    claim(
        "pi-toy",
        "Figure 1",
        "One iteration on points with exchanged coordinates gives a larger margin than they had.",
        [
            ("wrong", "points on the wrong side, coordinates exchanged"),
            ("righted", "points on the wrong side after one iteration"),
            ("actual", "margin of the actual points"),
            ("recovered", "margin after one iteration"),
        ],
        rule="righted < wrong and recovered > actual",
        theirs=TOY,
        ours="The same, 20 draws.",
        figure="permutation-invariant-svm-1.svg",
        caption="Planes and enclosing circles with their centers, before and after one iteration, "
        "as in Figure 1",
        measure=partial(toy, ("wrong", "righted", "actual", "recovered")),
    ),
    claim(
        "pi-toy-plane",
        "Figure 1",
        "The plane is similar to that of the actual points.",
        [("angle", "angle between the planes, in degrees")],
        rule="angle < 15",
        theirs=TOY,
        ours="The same, 20 draws; planes are compared up to an exchange of all coordinates.",
        because="It turns by {angle} degrees on average. At lambda = 100 the push decides: one "
        "class is moved to the other order of its coordinates, which separates better than the "
        "truth.",
        measure=partial(toy, ("angle",)),
    ),
    object_claim(
        "plane",
        "Planes and darts",
        (97.22, 66.67, 66.67, 95.83, 88.89, 90.97),
        because="pi-SVM {pi}, sorted points {sorted}, Kondor and Jebara {kj}.",
    ),
    object_claim(
        "jugs",
        "Two similar jugs",
        (95.83, 93.75, 91.67, 81.94, 72.91, 71.52),
        because="It is the best of six here too, but right for {pi}% only. Sets that are "
        "centered first reach {centered}%: the template does not follow shifts.",
    ),
    object_claim(
        "dolls",
        "Two dolls",
        (98.61, 96.52, 95.83, 96.52, 65.28, 86.11),
        because="It is the best of six here too, but right for {pi}% only, {centered}% with "
        "centered sets. These dolls are hard for all six; the paper's may be others.",
    ),
    claim(
        "pi-digits",
        "Table 3",
        "On 3s and 9s as points, the permutation-invariant SVM is right for 97%.",
        [("pi", "permutation-invariant SVM, linear", 97.0), ("strokes", "our best set kernel")],
        unit="percent right",
        rule="abs(pi - pi_printed) <= 2",
        theirs=NIST,
        ours=OUR_DIGITS,
        changed="MNIST in place of NIST, and scored on digits that chose nothing.",
        measure=lambda setting: {key: digits(setting)[key] for key in ("pi", "strokes")},
    ),
    claim(
        "pi-digits-order",
        "Table 3",
        "It is better than points sorted by their distance from the origin, or in random order.",
        [
            ("pi", "permutation-invariant SVM, linear", 97.0),
            ("sorted_linear", "sorted, linear", 88.0),
            ("sorted_rbf", "sorted, RBF kernel", 92.0),
            ("random_linear", "random order, linear", 69.0),
            ("random_rbf", "random order, RBF kernel", 80.0),
        ],
        unit="percent right",
        rule="pi > max(sorted_linear, sorted_rbf, random_linear, random_rbf) + 1",
        theirs=NIST,
        ours=OUR_DIGITS,
        changed="MNIST in place of NIST, and scored on digits that chose nothing.",
        measure=lambda setting: {
            key: digits(setting)[key]
            for key in ("pi", "sorted_linear", "sorted_rbf", "random_linear", "random_rbf")
        },
    ),
    claim(
        "pi-digits-images",
        "Table 3",
        "It is better than an SVM of the images, and than the kernel of Kondor and Jebara.",
        [
            ("pi", "permutation-invariant SVM, linear", 97.0),
            ("image_linear", "images, linear", 91.0),
            ("image_rbf", "images, RBF kernel", 95.0),
            ("kj", "kernel of Kondor and Jebara", 94.0),
            ("strokes", "our best set kernel"),
        ],
        unit="percent right",
        rule="pi > max(image_linear, image_rbf, kj)",
        theirs=NIST,
        ours=OUR_DIGITS,
        because="The level is reproduced ({pi}%), the lead is not: images {image_linear} and "
        "{image_rbf}, Kondor and Jebara {kj}.",
        measure=lambda setting: {
            key: digits(setting)[key]
            for key in ("pi", "image_linear", "image_rbf", "kj", "strokes")
        },
    ),
    claim(
        "pi-tables-sorted",
        "Table 4",
        "On tables with permuted features it is better than sorting the features.",
        [
            ("ionosphere_pi", "ionosphere, permutation-invariant SVM", 85.14),
            ("ionosphere_sorted", "ionosphere, sorted", 76.61),
            ("pima_pi", "pima, permutation-invariant SVM", 69.87),
            ("pima_sorted", "pima, sorted", 67.19),
            ("heart_pi", "heart, permutation-invariant SVM", 85.18),
            ("heart_sorted", "heart, sorted", 74.89),
            ("ionosphere_rbf", "ionosphere, sorted, RBF kernel"),
            ("pima_rbf", "pima, sorted, RBF kernel"),
            ("heart_rbf", "heart, sorted, RBF kernel"),
        ],
        unit="percent right",
        rule="ionosphere_pi > ionosphere_sorted + 1 and pima_pi > pima_sorted + 1 "
        "and heart_pi > heart_sorted + 1",
        theirs=UCI,
        ours=OUR_UCI,
        because="For single numbers the best assignment to any template is sorting, so both "
        "machines see the same vectors: {ionosphere_pi} and {ionosphere_sorted}, {pima_pi} and "
        "{pima_sorted}, {heart_pi} and {heart_sorted}%.",
        measure=lambda setting: {
            f"{name}_{key}": tables(setting)[f"{name}_{key}"]
            for key in ("pi", "sorted", "rbf")
            for name in TABLES
        },
    ),
    claim(
        "pi-tables-random",
        "Table 4",
        "It is better than features in random order.",
        [
            ("ionosphere_pi", "ionosphere, permutation-invariant SVM", 85.14),
            ("ionosphere_random", "ionosphere, random order", 68.24),
            ("pima_pi", "pima, permutation-invariant SVM", 69.87),
            ("pima_random", "pima, random order", 65.60),
            ("heart_pi", "heart, permutation-invariant SVM", 85.18),
            ("heart_random", "heart, random order", 52.36),
        ],
        unit="percent right",
        rule="ionosphere_pi > ionosphere_random and pima_pi > pima_random "
        "and heart_pi > heart_random",
        theirs=UCI,
        ours=OUR_UCI,
        changed="Features are scaled before they are permuted.",
        because="Random order is as good on one of them: {ionosphere_pi} and {ionosphere_random}, "
        "{pima_pi} and {pima_random}, {heart_pi} and {heart_random}%.",
        measure=lambda setting: {
            f"{name}_{key}": tables(setting)[f"{name}_{key}"]
            for name in TABLES
            for key in ("pi", "random")
        },
    ),
    claim(
        "pi-tables-actual",
        "Table 4",
        "On ionosphere and heart it almost matches an SVM of the unpermuted features.",
        [
            ("ionosphere_pi", "ionosphere, permutation-invariant SVM", 85.14),
            ("ionosphere_actual", "ionosphere, unpermuted", 85.42),
            ("pima_pi", "pima, permutation-invariant SVM", 69.87),
            ("pima_actual", "pima, unpermuted", 76.75),
            ("heart_pi", "heart, permutation-invariant SVM", 85.18),
            ("heart_actual", "heart, unpermuted", 86.67),
        ],
        unit="percent right",
        rule="ionosphere_pi >= ionosphere_actual - 3 and heart_pi >= heart_actual - 3",
        theirs=UCI,
        ours=OUR_UCI,
        because="The gaps are {ionosphere_actual} - {ionosphere_pi} and {heart_actual} - "
        "{heart_pi}, more than 3 points.",
        changed="Features are scaled before they are permuted.",
        measure=lambda setting: {
            f"{name}_{key}": tables(setting)[f"{name}_{key}"]
            for name in TABLES
            for key in ("pi", "actual")
        },
    ),
    claim(
        "pi-paths",
        "Section 4",
        "In each iteration the radius can only fall and the margin only rise.",
        [
            ("margin", "rounds in which the margin falls, margin weight .1"),
            ("radius", "rounds in which the radius rises, margin weight .1"),
            ("plain", "rounds in which the radius rises, margin weight 0"),
        ],
        unit="percent",
        rule="margin == 0 and radius == 0",
        theirs="Stated for a suitable lambda.",
        ours="100 3s and 100 9s of MNIST; lambda relative to the lengths of template and normal.",
        because="Moving one set moves the plane and the center for all others: the margin falls "
        "in {margin}% of the rounds, the radius rises in {radius}%. Without a push ({plain}%) "
        "the radius never rises.",
        measure=paths,
    ),
    claim(
        "pi-margin",
        "Section 4",
        "Moving sets to the side of their class (lambda > 0) lowers the error.",
        [
            ("none", "percent right, margin weight 0"),
            ("little", "margin weight .03"),
            ("more", "margin weight .3"),
            ("train", "of the training sets, margin weight .3"),
        ],
        rule="max(little, more) > none + 0.5",
        theirs="The bound on the expected error by radius over margin; no comparison is printed.",
        ours="100 3s and 100 9s of MNIST for training, 400 others; C = .3.",
        because="New sets have no label by which to move them: {none}% are right without a push, "
        "{little} and {more}% with one, and even of the training sets only {train}%.",
        measure=margins,
    ),
    claim(
        "pi-invariance",
        "Introduction",
        "The same classifier is learned however the elements of the sets are permuted.",
        [("same", "predictions that stay when all sets are shuffled")],
        unit="percent",
        rule="same == 100",
        theirs="Required; training starts from the order given.",
        ours="3s and 9s of MNIST.",
        changed="Training starts from an order that does not depend on the one given.",
        measure=invariance,
    ),
)
UNCHECKED = (
    Unchecked(
        "Table 3",
        "The figures on NIST digits.",
        "The selection of NIST digits is not published; MNIST takes its place.",
    ),
    Unchecked(
        "Table 2",
        "The figures for the paper's own objects.",
        "Object numbers and view angles are not published; ours were chosen by eye.",
    ),
)
