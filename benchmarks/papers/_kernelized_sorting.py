"""Kernelized sorting: layouts, matchings and alignments by dependence alone."""

import gzip
import json
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC, SVR

from benchmarks.papers._claims import Claim, Quantity, Setting, Unchecked, Values
from benchmarks.papers._set_tasks import load_table
from unshuffle import GridLayout, KernelizedSorting, MinimumVolumePCA, MultiwaySorting
from unshuffle.images import color_histogram, lab_pixels, text_mask, visual_words
from unshuffle.kernels import center, rbf_kernel
from unshuffle.matching._several.joint import multiway_hsic
from unshuffle.metrics import distance_preservation_quality

Array = NDArray[np.float64]
Order = NDArray[np.intp]

TITLE = "Kernelized sorting"
SOURCE = (
    "Quadrianto, Smola, Song, Tuytelaars: *Kernelized sorting*, IEEE Transactions on Pattern "
    "Analysis and Machine Intelligence 32 (2010)."
)


# Figures 1, 4 and 5: layouts


def random_grid(n: int, shape: Any, seed: int) -> Order:
    """Items in random order, with empty cells at the end or where a mask has none."""
    grid = np.full(np.prod(np.shape(shape) if np.ndim(shape) == 2 else shape), -1)
    cells = np.flatnonzero(shape) if np.ndim(shape) == 2 else np.arange(grid.size)
    grid[cells[:n]] = np.random.default_rng(seed).permutation(n)
    return grid.reshape(np.shape(shape) if np.ndim(shape) == 2 else shape)


def photo_layout(setting: Setting) -> Values:
    images = setting.load("flickr320")["images"]
    X, shape = lab_pixels(images), (16, 20)
    values: Values = {"random": [], "classic": [], "balanced": []}
    for seed in setting.seeds(3, 1):
        grids = {"random": random_grid(320, shape, seed)}
        for quality in ("classic", "balanced"):
            grids[quality] = GridLayout(shape, quality=quality, random_state=seed).fit(X).grid_
        for key, grid in grids.items():
            values[key].append(distance_preservation_quality(X, grid))
        if seed == 0:
            draw_colors(setting, "kernelized-sorting-1a.png", images, grids)
    return values


def letter_layout(setting: Setting) -> Values:
    images = setting.load("flickr320")["images"]
    mask = text_mask("PAMI 2009", 280)
    n = min(int(mask.sum()), 320)
    images = images[:n]
    X = lab_pixels(images)
    values: Values = {"random": [], "classic": [], "balanced": [], "empty": []}
    for seed in setting.seeds(3, 1):
        grids = {"random": random_grid(n, mask, seed)}
        for quality in ("classic", "balanced"):
            grids[quality] = GridLayout(mask, quality=quality, random_state=seed).fit(X).grid_
        for key, grid in grids.items():
            values[key].append(distance_preservation_quality(X, grid))
        values["empty"].append(float(np.sum((grids["classic"] < 0) & mask)))
        if seed == 0:
            draw_colors(setting, "kernelized-sorting-1b.png", images, grids)
    return values


def draw_colors(
    setting: Setting, name: str, images: NDArray[np.uint8], grids: dict[str, Order]
) -> None:
    """The mean color of each photo in its cell: the photos are not published here."""
    means = images.reshape(len(images), -1, 3).mean(axis=1) / 255
    means = 0.5 + 1.6 * (means - 0.5)
    titles = {"random": "random", "classic": "the paper's objective", "balanced": "our default"}
    wide = next(iter(grids.values())).shape
    size = (9.0, 2.7) if wide[1] < 2 * wide[0] else (9.0, 5.4)
    panels = (1, 3) if wide[1] < 2 * wide[0] else (3, 1)
    with setting.figure(name, size) as fig:
        for ax, (key, grid) in zip(np.ravel(fig.subplots(*panels)), grids.items(), strict=True):
            shown = np.ones((*grid.shape, 3))
            shown[grid >= 0] = np.clip(means[grid[grid >= 0]], 0, 1)
            ax.imshow(shown, interpolation="nearest")
            ax.set_title(titles[key])
            ax.axis("off")


def neighbors_alike(grid: Order, kinds: Array) -> float:
    """Percent of touching cells whose items are of one kind."""
    alike = []
    for first, second in ((grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:])):
        both = (first >= 0) & (second >= 0)
        alike.append(kinds[first[both]] == kinds[second[both]])
    return 100 * float(np.mean(np.concatenate(alike)))


@cache
def semantic_grids(setting: Setting) -> tuple[list[dict[str, Order]], NDArray[Any]]:
    """Layouts of 570 tiny photos by visual words and by color, and their classes."""
    data = setting.load("cifar10_1000")
    found = []
    n_items, shape = setting.pick((570, (15, 38)), (300, (15, 20)))
    images, labels = data["images"][:n_items], data["labels"][:n_items]
    for seed in setting.seeds(3, 1):
        words = visual_words(images, random_state=seed)
        grids = {"random": random_grid(n_items, shape, seed)}
        for key, X, kernel in (("words", words, "chi2"), ("color", lab_pixels(images), "rbf")):
            layout = GridLayout(shape, kernel=kernel, quality="classic", random_state=seed).fit(X)
            grids[key] = layout.grid_
        layout = GridLayout(shape, kernel="chi2", random_state=seed).fit(words)
        grids["balanced"] = layout.grid_
        found.append(grids)
    return found, labels


def semantic(setting: Setting) -> Values:
    grids, labels = semantic_grids(setting)
    draw_classes(setting, grids[0], labels)
    keys = ("random", "words", "balanced")
    return {key: [neighbors_alike(each[key], labels) for each in grids] for key in keys}


CIFAR_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
KINDS = ("machines", "animals")


def draw_classes(setting: Setting, grids: dict[str, Order], labels: NDArray[Any]) -> None:
    import matplotlib as mpl
    from matplotlib.patches import Patch

    with setting.figure("kernelized-sorting-4.png", (8.4, 4.4)) as fig:
        axes = fig.subplots(2, 2).ravel()
        titles = {
            "random": "random",
            "color": "by color",
            "words": "by visual words, the paper's objective",
            "balanced": "by visual words, our default",
        }
        colors = mpl.colormaps["tab10"]
        for ax, (key, title) in zip(axes, titles.items(), strict=True):
            ax.imshow(colors(labels[grids[key]]), interpolation="nearest")
            ax.set_title(title)
            ax.axis("off")
        patches = [Patch(color=colors(k), label=name) for k, name in enumerate(CIFAR_CLASSES)]
        fig.legend(handles=patches, loc="outside lower center", ncols=5, frameon=False)


def album(setting: Setting) -> Values:
    """Neighbors that are both animals or both machines, by color and by visual words."""
    grids, labels = semantic_grids(setting)
    animals = np.isin(labels, (2, 3, 4, 5, 6, 7)).astype(float)
    draw_album(setting, grids[0], animals)
    keys = ("random", "color", "words")
    return {key: [neighbors_alike(each[key], animals) for each in grids] for key in keys}


def draw_album(setting: Setting, grids: dict[str, Order], animals: Array) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colors = ListedColormap(["#0b6e99", "#f2b134"])
    with setting.figure("kernelized-sorting-5.png", (8.4, 2.4)) as fig:
        titles = {"color": "(a) by color", "words": "(b) by visual words"}
        for ax, (key, title) in zip(fig.subplots(1, 2), titles.items(), strict=True):
            ax.imshow(animals[grids[key]], cmap=colors, interpolation="nearest")
            ax.set_title(title)
            ax.axis("off")
        patches = [Patch(color=colors(k), label=name) for k, name in enumerate(KINDS)]
        fig.legend(handles=patches, loc="outside lower center", ncols=2, frameon=False)


# Figure 3: halves of photos


def halves(images: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    middle = images.shape[2] // 2
    return images[:, :, :middle], images[:, :, middle:]


def right_pairs(order: Order, sorting: KernelizedSorting) -> float:
    return float(np.sum(order[sorting.permutation_] == np.arange(order.size)))


def photos(setting: Setting) -> Values:
    left, right = halves(setting.load("flickr320")["images"])
    pixels = lab_pixels(left), lab_pixels(right)
    both = [pixels[0], color_histogram(left)], [pixels[1], color_histogram(right)]
    values: Values = {key: [] for key in ("published", "classic", "refined", "two", "chance")}
    K, L = (rbf_kernel(each) for each in pixels)
    for seed in setting.seeds(3, 1):
        order = np.random.RandomState(seed).permutation(320)
        found = as_published(K, L[np.ix_(order, order)])
        values["published"].append(float(np.sum(order[found] == np.arange(320))))
        for method in ("classic", "refined"):
            sorting = KernelizedSorting("rbf", method=method, trust=False)
            values[method].append(right_pairs(order, sorting.fit(pixels[0], pixels[1][order])))
        sorting = KernelizedSorting(["rbf", "rbf"], trust=False)
        values["two"].append(
            right_pairs(order, sorting.fit(both[0], [each[order] for each in both[1]]))
        )
        values["chance"].append(float(np.sum(order == np.arange(320))))
    draw_halves(setting)
    return values


def as_published(K: Array, L: Array) -> Order:
    """Full steps from leading eigenvectors of the centered kernels; the better of two signs."""
    K, L = center(K), center(L)
    first, second = (np.linalg.eigh(each)[1][:, -1] for each in (K, L))
    best, kept = -np.inf, np.arange(len(K))
    for sign in (1.0, -1.0):
        p = np.empty(len(K), dtype=np.intp)
        p[np.argsort(first)] = np.argsort(sign * second)
        value = -np.inf
        for _ in range(100):
            reached = float(np.sum(K * L[np.ix_(p, p)]))
            if reached <= value * (1 + 1e-5):
                break
            value, last = reached, p
            p = linear_sum_assignment(-(K @ L[p]))[1]
        if value > best:
            best, kept = value, last
    return kept


def draw_halves(setting: Setting) -> None:
    """Matched halves of crops of the two photographs of scikit-learn."""
    from unshuffle.datasets import photo_halves

    crops = photo_halves(60, random_state=0)
    X, y = ([lab_pixels(each), color_histogram(each)] for each in (crops.X, crops.y))
    found = KernelizedSorting(["rbf", "rbf"], trust=False).fit(X, y).permutation_
    with setting.figure("kernelized-sorting-3.png", (8.0, 2.9)) as fig:
        for number, ax in enumerate(fig.subplots(4, 15).ravel()):
            joined = np.concatenate([crops.X[number], crops.y[found[number]]], axis=1)
            ax.imshow(joined)
            right = found[number] == crops.truth[number]
            ax.set(xticks=[], yticks=[])
            for spine in ax.spines.values():
                spine.set_color("#2e8b57" if right else "#c8553d")
                spine.set_linewidth(2)


# Table 1: documents

PRINTED_KS = {"pt": 252, "es": 218, "fr": 246, "it": 237, "nl": 223, "de": 95}
PRINTED_LS = {"pt": 241, "es": 216, "fr": 193, "it": 236, "nl": 211, "de": 70}
PRINTED_LENGTH = {"pt": 9, "es": 12, "fr": 8, "it": 11, "nl": 7, "de": 4}
PRINTED_DICTIONARY = {"pt": 298, "es": 298, "fr": 298, "it": 300, "nl": 298, "de": 284}
LANGUAGES = ("pt", "es", "fr", "it", "nl", "de")


def tf_idf(counts: NDArray[Any]) -> Array:
    """Unit vectors of term counts times log(n / number of documents with the term)."""
    counts = counts.astype(float)
    rare = np.log(len(counts) / np.maximum((counts > 0).sum(axis=0), 1))
    weighted = counts * rare
    return np.asarray(weighted / np.linalg.norm(weighted, axis=1, keepdims=True))


@cache
def documents(setting: Setting) -> dict[str, Values]:
    """Right matches of the 300 longest sittings, by method and language."""
    data = setting.load("europarl_sittings300_bow")
    names = [str(each) for each in data["languages"]]
    lengths = data["n_words"].astype(float)
    found: dict[str, Values] = {
        key: {language: [] for language in LANGUAGES}
        for key in ("set", "line", "refined", "length")
    }
    for seed in setting.seeds(3, 1):
        order = np.random.RandomState(seed).permutation(300)
        english = tf_idf(data["counts_en"])[order]
        for language in LANGUAGES:
            X = tf_idf(data[f"counts_{language}"])
            for key, options in (
                ("set", {"method": "unbiased", "step": "set"}),
                ("line", {"method": "unbiased", "step": "line_search"}),
                ("refined", {"method": "refined"}),
            ):
                sorting = KernelizedSorting("linear", trust=False, **options).fit(X, english)
                found[key][language].append(right_pairs(order, sorting))
            own, others = lengths[:, names.index(language)], lengths[order, names.index("en")]
            matched = np.empty(300, dtype=np.intp)
            matched[np.argsort(own)] = np.argsort(others)  # sorting is the best match of lengths
            found["length"][language].append(float(np.sum(order[matched] == np.arange(300))))
    return found


def by_language(method: str, setting: Setting) -> Values:
    return documents(setting)[method]


def steps(setting: Setting) -> Values:
    found = documents(setting)
    return {key: np.mean(list(found[key].values()), axis=0).tolist() for key in ("set", "line")}


def german(setting: Setting) -> Values:
    found = documents(setting)["set"]
    others = [counts for language, counts in found.items() if language != "de"]
    return {"german": found["de"], "others": np.mean(others, axis=0).tolist()}


def texts(setting: Setting) -> Values:
    """Right matches of 300 texts in each language, by the default call."""
    values: Values = {"debates": [], "pages": [], "published": []}
    for key, name in (("debates", "europarl7"), ("pages", "lohelp9")):
        with gzip.open(setting.folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            read = json.load(file)
        languages = sorted(set(read) - {"ids", "titles", "en"})
        for language in languages[:: setting.pick(1, 4)]:
            order = np.random.RandomState(0).permutation(300)
            sorting = KernelizedSorting("text", trust=False)
            sorting.fit(read[language], [read["en"][index] for index in order])
            values[key].append(right_pairs(order, sorting))
            if key == "debates":
                sorting = KernelizedSorting("text", method="unbiased", trust=False)
                sorting.fit(read[language], [read["en"][index] for index in order])
                values["published"].append(right_pairs(order, sorting))
    return values


# Table 2: attributes

# Rows, and errors of kernelized sorting, of random order and of the lower bound, as printed.
ATTRIBUTES = {
    "australian": (690, 0.29, 0.49, 0.21),
    "breast-cancer": (683, 0.06, 0.46, 0.06),
    "dermatology": (358, 0.08, 0.43, 0.00),
    "optdigits": (765, 0.01, 0.49, 0.01),
    "wdbc": (569, 0.11, 0.47, 0.05),
    "satimage": (620, 0.20, 0.80, 0.13),
    "segment": (693, 0.58, 0.86, 0.05),
    "vehicle": (423, 0.58, 0.75, 0.24),
    "abalone": (417, 13.9, 18.7, 6.44),
    "bodyfat": (252, 4.5, 7.20, 3.80),
}
# Standard deviations printed with the lower bound.
BOUND_SPREADS = {
    "australian": 0.04,
    "breast-cancer": 0.03,
    "dermatology": 0.0,
    "optdigits": 0.0,
    "wdbc": 0.02,
    "satimage": 0.04,
    "segment": 0.02,
    "vehicle": 0.07,
    "abalone": 3.14,
    "bodyfat": 0.76,
}
SQUARED_ERROR = {"abalone": 1.0, "bodyfat": 1e4}  # unit of the error


def split_columns(X: Array) -> tuple[list[int], list[int]]:
    """Columns of the two groups A and B, section 6.2.3.

    The reference column is the one with the smaller index in the pair with the largest
    correlation. Columns whose correlation with it is at least 0.5 are "split equally" between the
    groups, the others into "two equal halves". The paper does not say how the former are split;
    here they alternate.
    """
    correlation = np.corrcoef(X.T)
    np.fill_diagonal(correlation, -np.inf)
    reference = min(np.unravel_index(int(correlation.argmax()), correlation.shape))
    others = [column for column in range(X.shape[1]) if column != reference]
    related = [column for column in others if correlation[reference, column] >= 0.5]
    unrelated = [column for column in others if correlation[reference, column] < 0.5]
    middle = len(unrelated) // 2
    first = [reference, *related[1::2], *unrelated[:middle]]
    return first, [*related[0::2], *unrelated[middle:]]


def table(setting: Setting, name: str) -> tuple[Array, Any]:
    """Columns and labels of one of the ten."""
    X, target = load_table(setting.folder / "uci" / f"{name}.csv.gz")
    if name == "optdigits":
        kept = np.isin(target.astype(float), (0, 1))
        X, target = X[kept], target[kept]
    if name == "dermatology":
        target = target.astype(float) == 1
    if name in SQUARED_ERROR:
        target = target.astype(float)
    return X, target


@cache
def attributes(setting: Setting) -> dict[str, dict[str, list[float]]]:
    """Errors by table and method."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, (n_rows, *_) in ATTRIBUTES.items():
        X, target = table(setting, name)
        found[name] = {key: [] for key in ("classic", "refined", "random", "bound")}
        for seed in setting.seeds(10, 1):
            for key, error in subsample(X, target, n_rows, name, seed).items():
                found[name][key].append(error)
    return found


def subsample(X: Array, target: Any, n_rows: int, name: str, seed: int) -> dict[str, float]:
    X, target, rng = some_rows(X, target, n_rows, seed)
    columns_a, columns_b = split_columns(X)
    order = rng.permutation(len(X))
    first, second = X[:, columns_a], X[order][:, columns_b]
    errors = {}
    for method in ("classic", "refined"):
        sorting = KernelizedSorting("rbf", method=method, trust=False).fit(first, second)
        errors[method] = error_of(target[order[sorting.permutation_]], target, name)
    if name in SQUARED_ERROR:
        errors["random"] = float(2 * SQUARED_ERROR[name] * np.var(target))
    else:
        shares = np.unique(target, return_counts=True)[1] / len(target)
        errors["random"] = float(1 - np.sum(shares**2))
    errors["bound"] = unsplit_error(X, target, name)
    return errors


def some_rows(
    X: Array, target: Any, n_rows: int, seed: int
) -> tuple[Array, Any, np.random.RandomState]:
    """80% of the rows, with standardized columns, and the generator that drew them."""
    rng = np.random.RandomState(seed)
    chosen = rng.permutation(len(X))[: min(n_rows, len(X))]
    chosen = chosen[: round(0.8 * chosen.size)]
    X, target = X[chosen], target[chosen]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), target, rng


def error_of(guess: Any, target: Any, name: str) -> float:
    if name in SQUARED_ERROR:
        return float(np.mean(SQUARED_ERROR[name] * (target - guess) ** 2))
    return float(np.mean(target != guess))


def unsplit_error(X: Array, target: Any, name: str) -> float:
    """Error of an RBF SVM on all columns, by ten-fold cross-validation."""
    if name not in SQUARED_ERROR:
        return error_of(cross_val_predict(SVC(), X, target, cv=10), target, name)
    scaled = (target - target.mean()) / target.std()
    guess = cross_val_predict(SVR(), X, scaled, cv=10)
    return error_of(target.mean() + target.std() * guess, target, name)


def bounds(setting: Setting) -> Values:
    """Errors of the tables before their columns are split."""
    values: Values = {}
    for name, (n_rows, *_) in ATTRIBUTES.items():
        X, target = table(setting, name)
        values[key_of(name)] = []
        for seed in setting.seeds(10, 1):
            rows, labels, _ = some_rows(X, target, n_rows, seed)
            values[key_of(name)].append(unsplit_error(rows, labels, name))
    return values


def by_table(method: str, setting: Setting) -> Values:
    return {key_of(name): found[method] for name, found in attributes(setting).items()}


def at_or_under(values: Values) -> Values:
    """How many tables have a mean error that is at most the printed one."""
    found = [
        np.mean(values[key_of(name)]) <= printed for name, (_, printed, *_) in ATTRIBUTES.items()
    ]
    return {"under": [float(np.sum(found))]}


def key_of(name: str) -> str:
    return name.replace("-", "_")


def between(setting: Setting) -> Values:
    """Tables whose mean error lies between the bound and random order."""
    values: Values = {"below_random": [], "halfway": []}
    for found in attributes(setting).values():
        means = {key: float(np.mean(errors)) for key, errors in found.items()}
        values["below_random"].append(float(means["classic"] < means["random"]))
        gained = (means["random"] - means["classic"]) / (means["random"] - means["bound"])
        values["halfway"].append(float(gained > 0.5))
    return {key: [float(np.sum(each))] for key, each in values.items()}


# Figure 6: five zeros


@cache
def zeros(setting: Setting) -> list[dict[str, tuple[list[Array], Order]]]:
    """Groups of five zeros as 100 points each, aligned in three ways."""
    data = setting.load("usps")
    images = data["images"][data["labels"] == 0]
    rng = np.random.RandomState(0)
    points: list[Array] = []
    for image in images[rng.permutation(len(images))]:
        ink = np.argwhere(image > 0)
        if len(ink) >= 100:
            row, column = rng.permutation(ink)[:100].T
            points.append(np.column_stack([column, 15 - row]).astype(float))
    found = []
    for k in setting.seeds(10, 2):
        group = points[5 * k : 5 * k + 5]
        hsic = MultiwaySorting(compare_columns=False, trust=False, n_init=1).fit(group)
        mean = MinimumVolumePCA(kernel="rbf").fit(np.stack(group))
        ours = MultiwaySorting(trust=False).fit(group)
        found.append(
            {
                "hsic": (group, hsic.permutations_),
                "mean": (group, mean.permutations_),
                "default": (group, ours.permutations_),
            }
        )
    return found


def agreement(group: list[Array], orders: Order) -> float:
    """Mean cosine between the arrows of neighboring points, over the pairs with the first zero."""
    first, cosines = group[0][orders[0]], []
    distances = cdist(first, first)
    near = np.argsort(distances, axis=1)[:, 1:5]
    for points, order in zip(group[1:], orders[1:], strict=True):
        arrows = points[order] - first
        arrows = arrows / np.maximum(np.linalg.norm(arrows, axis=1, keepdims=True), 1e-9)
        cosines.append(float(np.mean(np.sum(arrows[:, None] * arrows[near], axis=2))))
    return float(np.mean(cosines))


def upright(group: list[Array], orders: Order) -> list[bool]:
    """Whether the coordinates of partners correlate by more than .8, for each later zero."""
    first = group[0][orders[0]]
    found = []
    for points, order in zip(group[1:], orders[1:], strict=True):
        both = [np.corrcoef(first[:, c], points[order][:, c])[0, 1] for c in (0, 1)]
        found.append(min(both) > 0.8)
    return found


def consistency(setting: Setting) -> Values:
    values: Values = {"hsic": [], "mean": [], "default": []}
    for each in zeros(setting):
        for key, found in values.items():
            found.append(agreement(*each[key]))
    draw_zeros(setting)
    return values


def reversed_zeros(setting: Setting) -> Values:
    values: Values = {"hsic": [], "default": []}
    for each in zeros(setting):
        for key, found in values.items():
            found.append(100 * (1 - float(np.mean(upright(*each[key])))))
    return values


def draw_zeros(setting: Setting) -> None:
    """Four pairs by the two methods of the paper, and two of them by our default."""
    each = zeros(setting)[0]
    placed = [
        (key, pair, pair - 1, block)
        for block, key in enumerate(("hsic", "mean"))
        for pair in (1, 2, 3, 4)
    ]
    placed += [("default", 1, 4, 0), ("default", 2, 4, 1)]
    titles = {
        (0, 0): "(a), (c) multiway HSIC",
        (0, 1): "(b), (d) mean estimator",
        (4, 0): "our default, first pair",
        (4, 1): "our default, second pair",
    }
    with setting.figure("kernelized-sorting-6.png", (9.6, 5.0)) as fig:
        axes = fig.subplots(5, 12, width_ratios=[1, 1, 1, 1, 1, 1.4] * 2)
        for key, pair, row, block in placed:
            group, orders = each[key]
            panels = axes[row, 6 * block : 6 * block + 6]
            first, other = (group[k][orders[k]] for k in (0, pair))
            for ax, t in zip(panels, np.linspace(0, 1, 5), strict=False):
                ax.plot(*((1 - t) * first + t * other).T, ".", markersize=1.5, color="#0b4f6c")
            panels[5].quiver(
                *first.T,
                *(other - first).T,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.01,
                color="#c8553d",
            )
            if (row, block) in titles:
                panels[2].set_title(titles[row, block])
        for ax in axes.flat:
            ax.set(xlim=(-1, 16), ylim=(-1, 16), aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_color("#bbbbbb")


# Statements


def sorting(setting: Setting) -> Values:
    """Share of draws in which scalars come out in the order of the other side, or reversed."""
    right = []
    for seed in setting.seeds(20, 5):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(30, 1)), rng.normal(size=(30, 1))
        found = KernelizedSorting("linear", method="classic", trust=False).fit(x, y).permutation_
        matched = y[found, 0][np.argsort(x[:, 0])]
        up = np.all(np.diff(matched) > 0)
        right.append(100.0 * bool(up or np.all(np.diff(matched) < 0)))
    return {"sorted": right}


def cycles(setting: Setting) -> Values:
    """Runs of full steps that come back to an earlier matching that is not the last."""
    returned = []
    for seed in setting.seeds(20, 20):
        rng = np.random.default_rng(seed)
        # few distinct values, so that many matchings tie
        X, y = (rng.integers(0, 3, size=(20, 2)).astype(float) for _ in range(2))
        K, L = (center(each @ each.T) for each in (X, y))
        p, seen = rng.permutation(20), []
        for _ in range(60):
            seen.append(p.tobytes())
            p = linear_sum_assignment(-(K @ L[p]))[1]
            if p.tobytes() in seen:
                break
        returned.append(100.0 * bool(p.tobytes() in seen[:-1]))
    return {"cycling": returned}


def multiway(setting: Setting) -> Values:
    """Rank correlation of eq. (15) with the distance of the means, over random orders."""
    printed, mended = [], []
    for seed in setting.seeds(5, 2):
        rng = np.random.default_rng(seed)
        kernels = [rbf_kernel(rng.normal(size=(12, 2))) for _ in range(3)]
        found = []
        for _ in range(200):
            orders = [np.arange(12), rng.permutation(12), rng.permutation(12)]
            moved = [K[np.ix_(p, p)] for K, p in zip(kernels, orders, strict=True)]
            found.append((by_definition(moved), as_printed(moved), multiway_hsic(moved)))
        definition, literal, ours = np.array(found).T
        printed.append(float(spearmanr(definition, literal)[0]))
        mended.append(float(spearmanr(definition, ours)[0]))
    return {"printed": printed, "mended": mended}


def by_definition(kernels: list[Array]) -> float:
    """Squared distance of the mean of products from the product of means, eq. (14)."""
    m = len(kernels[0])
    joint = np.prod(kernels, axis=0)
    across = np.prod([K.mean(axis=1) for K in kernels], axis=0)
    return float(joint.sum() / m**2 + np.prod([K.mean() for K in kernels]) - 2 * across.mean())


def as_printed(kernels: list[Array]) -> float:
    """Eq. (15)."""
    sums = np.prod([K.sum(axis=1) for K in kernels], axis=0)
    whole = np.prod([K.sum() for K in kernels])
    return float(np.prod(kernels, axis=0).sum() + whole - 2 * sums.sum())


def claim(id: str, where: str, says: str, quantities: Any, **options: Any) -> Claim:
    return Claim(id, where, says, tuple(Quantity(*each) for each in quantities), **options)


def per_language(printed: dict[str, int]) -> list[Any]:
    names = ("Portuguese", "Spanish", "French", "Italian", "Dutch", "German")
    spelled = dict(zip(LANGUAGES, names, strict=True))
    return [(each, spelled[each], printed[each]) for each in LANGUAGES]


def mean_of(printed: dict[str, int], without: str = "") -> float:
    return float(np.mean([count for each, count in printed.items() if each != without]))


def per_table(column: int) -> list[Any]:
    return [(key_of(name), name, printed[column]) for name, printed in ATTRIBUTES.items()]


EUROPARL = (
    "300 longest documents of Europarl in each language; TF-IDF of stems without stop words, unit "
    "length; zeroed diagonals."
)
SITTINGS = (
    "300 longest whole sittings of the same proceedings, 1999 to 2011, same features; another "
    "selection, without Danish and Swedish."
)
TABLE_2 = (
    "Columns split in two by correlation, RBF kernels of median width, 80% of the rows ten "
    "times; error of the partner's label, squared error for abalone and bodyfat."
)
OUR_TABLE_2 = (
    "The same; related columns alternate between the sides. dermatology: class 1 against the "
    "rest; optdigits: 0 and 1; bodyfat in units of 1e-4. The starts are eigenvectors with both "
    "signs."
)
RESTARTS = "The start is the best of six: leading eigenvectors, plain and centered, both signs."
CLAIMS = (
    claim(
        "ks-layout",
        "Figure 1 (a)",
        "Photos laid out on a grid lie close to photos of similar color.",
        [
            ("random", "distance preservation, random order"),
            ("classic", "the paper's objective"),
            ("balanced", "our default"),
        ],
        unit="1 is perfect",
        rule="classic > (1 + random) / 2",
        theirs="320 photos in Lab pixels on 16 x 20 cells, RBF kernels of median width; judged by "
        "eye.",
        ours="The same photos; distance preservation quality (DPQ16) in place of the eye.",
        changed="More starts than one, and a measure in place of the eye.",
        figure="kernelized-sorting-1a.png",
        caption="Mean color of each photo, with more contrast, in its cell, as in Figure 1 (a); "
        "the photos themselves are not published here",
        measure=photo_layout,
    ),
    claim(
        "ks-letters",
        "Figure 1 (b)",
        "Photos fill the letters of a word and keep the color grading.",
        [
            ("random", "distance preservation, random order"),
            ("classic", "the paper's objective"),
            ("balanced", "our default"),
            ("empty", "cells left empty"),
        ],
        unit="1 is perfect",
        rule="classic > (1 + random) / 2 and empty == 0",
        theirs="280 photos on the letters PAMI 2009; judged by eye.",
        ours="The first photos of the 320 on the same letters, as many as they have cells.",
        changed="The letters are ours, with more starts than one, and a measure in place of the "
        "eye.",
        figure="kernelized-sorting-1b.png",
        caption="Mean color of each photo, with more contrast, on the letters, as in Figure 1 (b)",
        measure=letter_layout,
    ),
    claim(
        "ks-photos",
        "Figure 3",
        "Halves of 320 photos: 140 pairs are right.",
        [
            ("published", "right pairs, the paper's steps from its start", 140),
            ("classic", "the paper's steps from six starts", 140),
            ("refined", "our method, same kernel"),
            ("two", "our method, pixels and color histogram"),
            ("chance", "random order", 1),
        ],
        rule="classic >= classic_printed",
        theirs="40 x 40 Lab pixels cut into halves, RBF kernels of median width.",
        ours="The same photos, three shuffles; of the two signs of an eigenvector, which are "
        "arbitrary, the one that ends higher.",
        changed="Six starts: the two leading eigenvectors of the kernels as they are and the "
        "leading one of the centered kernels, each with both signs. The paper describes the last "
        "one, and from there the search fails.",
        figure="kernelized-sorting-3.png",
        caption="Matched halves of crops of two photographs that ship with scikit-learn, right in "
        "green, as in Figure 3",
        measure=photos,
    ),
    claim(
        "ks-semantic",
        "Figure 4",
        "Laid out by visual words, images of one category lie together.",
        [
            ("random", "touching cells of one class, random order"),
            ("words", "by visual words, the paper's objective"),
            ("balanced", "by visual words, our default"),
        ],
        unit="percent",
        rule="words > 1.5 * random",
        theirs="570 images of MSRC2 on 15 x 38 cells, chi-squared kernel of visual words; by eye.",
        ours="570 images of CIFAR-10 (ten classes) on 15 x 38 cells, `visual_words`.",
        changed="CIFAR-10 in place of MSRC2, and a count in place of the eye.",
        figure="kernelized-sorting-4.png",
        caption="Class of each image in its cell; Figure 4 is the layout by visual words",
        because="{words}% of the neighbors are of one class, {random}% in random order.",
        measure=semantic,
    ),
    claim(
        "ks-album",
        "Figure 5",
        "Visual words separate people from scenery more clearly than color does.",
        [
            ("random", "touching cells of one kind, random order"),
            ("color", "by color"),
            ("words", "by visual words"),
        ],
        unit="percent",
        rule="words > color + 2",
        theirs="Holiday photos of an author, by eye.",
        ours="570 images of CIFAR-10; the kinds are animals and machines.",
        changed="Animals and machines in place of people and scenery, and a count in place of the "
        "eye.",
        figure="kernelized-sorting-5.png",
        caption="Animals and machines laid out by color and by visual words, as in Figure 5",
        because="{words}% by visual words, {color}% by color.",
        measure=album,
    ),
    claim(
        "ks-documents",
        "Table 1, KS",
        "Documents are matched to their English versions by similarities within each language.",
        per_language(PRINTED_KS),
        unit="right of 300, steps from a fixed set",
        rule=" and ".join(f"{each} >= {each}_printed" for each in LANGUAGES),
        theirs=EUROPARL,
        ours=SITTINGS + " " + RESTARTS,
        because="The start decides. From one, the ascent finds nearly all ({pt} in Portuguese, "
        "{es} in Spanish, {fr} in French, {nl} in Dutch, {de} in German), from another nearly "
        "none ({it} in Italian). The objective is not to blame (ks-documents-search).",
        measure=partial(by_language, "set"),
    ),
    claim(
        "ks-documents-search",
        "Table 1",
        "Similarities within languages match more than 2/3 of what a dictionary does.",
        per_language(PRINTED_DICTIONARY),
        unit="right of 300; printed: dictionary",
        rule="min(pt, es, fr, it, nl, de) >= 200",
        theirs=EUROPARL + " The dictionary is Google Translate, word by word.",
        ours=SITTINGS,
        changed='The search is ours (`method="refined"`): other starts, swaps, a spectral path.',
        measure=partial(by_language, "refined"),
    ),
    claim(
        "ks-documents-texts",
        "Section 6.2.2",
        "Kernelized sorting recovers translations of documents without a dictionary.",
        [
            ("debates", "debates in six languages, right of 300"),
            ("pages", "help pages in eight languages, right of 300"),
            ("published", "debates, by the paper's method"),
        ],
        rule="min(debates, pages) >= 200",
        theirs=EUROPARL,
        ours="300 debates of about 10,000 characters, and 300 shorter help pages, by the default "
        'call `KernelizedSorting("text")`.',
        changed="The search is ours, and the documents are shorter.",
        measure=texts,
    ),
    claim(
        "ks-documents-steps",
        "Table 1, KS and KS - LS",
        "Steps from a fixed set work better than the exact line search.",
        [
            ("set", "right of 300, steps from a fixed set", mean_of(PRINTED_KS)),
            ("line", "right of 300, line search", mean_of(PRINTED_LS)),
        ],
        unit="mean of six languages",
        rule="set > line",
        theirs=EUROPARL,
        ours=SITTINGS,
        because="It depends on the start more than on the steps: {set} and {line} on average.",
        changed="Another selection of documents.",
        measure=steps,
    ),
    claim(
        "ks-documents-length",
        "Table 1, RE",
        "Matching documents by their length finds hardly any.",
        per_language(PRINTED_LENGTH),
        unit="right of 300",
        rule="max(pt, es, fr, it, nl, de) < 30",
        theirs=EUROPARL,
        ours=SITTINGS,
        changed="Another selection of documents.",
        because="Lengths still find few, but {pt} in Portuguese and {nl} in Dutch are more than a "
        "tenth of 300: whole sittings differ more in length than the documents of the paper seem "
        "to.",
        measure=partial(by_language, "length"),
    ),
    claim(
        "ks-documents-german",
        "Table 1",
        "German is notably harder to match than the other languages.",
        [
            ("german", "right of 300, German", PRINTED_KS["de"]),
            ("others", "right of 300, mean of the others", mean_of(PRINTED_KS, without="de")),
        ],
        rule="german < 0.75 * others",
        theirs=EUROPARL,
        ours=SITTINGS + " The paper's steps from a fixed set.",
        because="German {german}, the others {others} on average. Which language fails is a "
        "matter of the start; with our search none does.",
        changed="Another selection of documents.",
        measure=german,
    ),
    claim(
        "ks-attributes",
        "Table 2, KS",
        "The errors of ten tables whose halves of columns are matched.",
        [*per_table(1), ("under", "tables at or under the printed error, of ten")],
        unit="error of the paper's method",
        rule=" and ".join(
            f"{key_of(name)} <= 1.25 * {key_of(name)}_printed + 0.01" for name in ATTRIBUTES
        ),
        theirs=TABLE_2,
        ours=OUR_TABLE_2,
        because="Some draws end in a matching that scores higher and is wrong, which shows in the "
        "mean and in the spread: australian {australian}, satimage {satimage}. The other tables "
        "are within the tolerance; {under} of the ten are at or under the printed error.",
        measure=partial(by_table, "classic"),
        derive=at_or_under,
    ),
    claim(
        "ks-attributes-ours",
        "Table 2, KS",
        "The same errors can be reached with another search.",
        [*per_table(1), ("under", "tables at or under the printed error, of ten")],
        unit="error of our method",
        rule="under >= 8 and "
        + " and ".join(f"{key_of(name)} <= 1.2 * {key_of(name)}_printed" for name in ATTRIBUTES),
        theirs=TABLE_2,
        ours=OUR_TABLE_2,
        changed='`method="refined"`; its constants were chosen on other draws of these tables.',
        because="Of the ten tables {under} are at or under the printed error, and one or more may "
        "be above 1.2 times the printed error.",
        measure=partial(by_table, "refined"),
        derive=at_or_under,
    ),
    claim(
        "ks-attributes-random",
        "Table 2, RE",
        "Random order has these errors, which can be computed exactly.",
        per_table(2),
        unit="expected error in random order",
        rule=" and ".join(
            f"abs({key_of(name)} - {key_of(name)}_printed) <= 0.15 * {key_of(name)}_printed"
            for name in ATTRIBUTES
        ),
        theirs=TABLE_2,
        ours=OUR_TABLE_2,
        because="A table or more differs by more than 0.15 of the printed error: its rows or its "
        "classes are others.",
        measure=partial(by_table, "random"),
    ),
    claim(
        "ks-attributes-bound",
        "Table 2, LB",
        "Before the columns are split, the tables have these errors.",
        per_table(3),
        unit="error by ten-fold cross-validation",
        rule=" and ".join(
            f"abs({key_of(name)} - {key_of(name)}_printed) <= {2 * spread + 0.01:.4g}"
            for name, spread in BOUND_SPREADS.items()
        ),
        theirs="Classification or regression on the original table by ten-fold cross-validation; "
        "the method is not named.",
        ours="80% of the rows ten times; an RBF SVM with default parameters on standardized "
        "columns. dermatology: class 1 against the rest; optdigits: 0 and 1; bodyfat in units of "
        "1e-4. The rule allows two printed standard deviations and .01.",
        changed="The classifier is ours.",
        because="The other tables agree. The error of bodyfat is {bodyfat}, far below the printed "
        "one: a column holds the share of fat, which is computed from the density, the target.",
        measure=bounds,
    ),
    claim(
        "ks-attributes-restored",
        "Table 2",
        "In many cases the matching restores significant information about the labels.",
        [
            ("below_random", "tables whose error is below that of random order, of ten"),
            ("halfway", "tables more than halfway from random order to the lower bound"),
        ],
        rule="below_random == 10 and halfway >= 5",
        theirs=TABLE_2,
        ours=OUR_TABLE_2 + " The lower bound is that of an RBF SVM by ten-fold cross-validation.",
        changed="Six starts in place of one.",
        measure=between,
    ),
    claim(
        "ks-zeros",
        "Figure 6",
        "Multiway HSIC aligns zeros with locally more consistent arrows than the mean estimator.",
        [
            ("hsic", "cosine between arrows of neighbors, multiway HSIC"),
            ("mean", "mean estimator of minimum-volume PCA"),
            ("default", "our default"),
        ],
        rule="hsic > mean",
        theirs="Five zeros of USPS as 100 pixels each, RBF kernels of median width; by eye.",
        ours="Ten groups of five zeros of USPS; the mean cosine over the four nearest neighbors.",
        changed="The search is ours, and a count takes the place of the eye.",
        because="Arrows of neighbors agree by {hsic} with HSIC and {mean} with the mean "
        "estimator, whose arrows are short.",
        figure="kernelized-sorting-6.png",
        caption="The first zero and four others: interpolations, and arrows between matched "
        "pixels, as in Figure 6; the last row is our default",
        measure=consistency,
    ),
    claim(
        "ks-zeros-reversed",
        "Figure 6 (a)",
        "Since a zero is symmetric, some of the correspondences are reversed.",
        [
            ("hsic", "zeros that are not upright, multiway HSIC"),
            ("default", "our default, which lets columns decide between equals"),
        ],
        unit="percent",
        rule="hsic > 0",
        theirs="Five zeros of USPS; seen in the figure.",
        ours="Ten groups; upright: coordinates of partners correlate by more than .8.",
        changed="The search is ours, and a count takes the place of the eye.",
        measure=reversed_zeros,
    ),
    claim(
        "ks-sorting",
        "Lemma 3",
        "For numbers and linear kernels, kernelized sorting is sorting.",
        [("sorted", "draws sorted up or down, in percent")],
        rule="sorted == 100",
        theirs="Proved.",
        ours="30 random numbers on each side, 20 draws.",
        measure=sorting,
    ),
    claim(
        "ks-cycles",
        "Lemma 8",
        "With full steps the algorithm does not cycle.",
        [("cycling", "runs that come back to a matching they had left, in percent")],
        rule="cycling == 0",
        theirs="Proved from the objective, which never falls.",
        ours="20 items of few different values, so that matchings tie; steps as printed.",
        because="The objective may stay equal: {cycling}% of the runs return to a matching they "
        "had left. Each step must strictly improve the objective.",
        measure=cycles,
    ),
    claim(
        "ks-multiway",
        "Eq. (15)",
        "The empirical multiway HSIC is an estimate of eq. (14).",
        [
            ("printed", "rank correlation with the definition over random orders, as printed"),
            ("mended", "with the missing powers of m"),
        ],
        rule="printed > 0.999",
        theirs="Stated.",
        ours="Three RBF kernels of 12 random points, 200 random orders.",
        because="Powers of m are missing, so that the terms have different weights: its rank "
        "correlation with eq. (14) is {printed}, mended {mended}.",
        measure=multiway,
    ),
)
UNCHECKED = (
    Unchecked(
        "Figure 2",
        "Self-organizing map and GTM leave cells empty and others doubly filled.",
        "Both are other methods, which this library does not offer.",
    ),
    Unchecked(
        "Table 1, UB",
        "A dictionary matches 284 to 300 of 300 documents.",
        "The dictionary was an online service of its time.",
    ),
    Unchecked(
        "Table 1, Danish and Swedish",
        "230 and 150 of 300 documents.",
        "Our documents of the parliament have no Danish and Swedish; help pages in both are in "
        "ks-documents-texts.",
    ),
    Unchecked(
        "Figures 4 and 5",
        "Layouts of MSRC2 and of holiday photos.",
        "The pictures are not available to us; CIFAR-10 takes their place.",
    ),
)
