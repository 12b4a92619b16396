"""Pairs of collections with known partners, by name.

A name such as `cloud_16384_0.1_0` says the kind, the number of items, the noise and the draw:

- `cloud`: normal points in six dimensions, and the same points rotated, with noise;
- `ball`: the same with equal axes, so that every rotation is a symmetry;
- `even`: points of 40 clusters with independent centers, seen by two random networks;
- `tree`: the same with 60 clusters on a tree of 5 x 4 x 3 branches.

A file of this name (.npz) in the folder given takes precedence over a new draw. It holds `X`, `y`,
`partner`, and `rotation` for points or `labels_x` and `labels_y` for networks. This is how the
same draws can be measured whatever library drew them.

The other names are real data, read by `benchmarks.accuracy`.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

AXES = {"cloud": (2.0, 1.6, 1.3, 1.0, 0.8, 0.6), "ball": (1.0,) * 6}
HIDDEN = {"even": (128, 256), "tree": (256, 512)}
N_LATENT, WIDTHS = 16, (32, 48)
BRANCHES = ((5, 1.2), (4, 0.8), (3, 0.5))  # number and length at each level of the tree
LANGUAGES = ("de", "es", "fr", "it", "nl", "pt")
REAL = (
    "flickr320 halves",
    *(f"europarl7 {language}-en" for language in LANGUAGES),
    "snareseq",
    "mfeat pix-kar, 2,000",
    "optdigits halves, 5,000",
)

Array = NDArray[Any]


class Problem(NamedTuple):
    """Two collections: item i of `X` belongs to item `partner[i]` of `y`."""

    X: Any
    y: Any
    partner: NDArray[np.intp]
    rotation: Array | None = None  # `y[partner]` is `X @ rotation` and noise
    labels_x: Array | None = None  # clusters
    labels_y: Array | None = None
    kernel: Any = "auto"
    common: Array | None = None  # of the items of y; where rank errors are measured; None is `y`

    @property
    def n_items(self) -> int:
        return len(self.partner)


def named(kind: str, n_items: int, noise: float, seed: int) -> str:
    return f"{kind}_{n_items}_{noise}_{seed}"


def load(name: str, folder: Path | None = None, real: Path | None = None) -> Problem:
    """The problem of this name: a file of `folder`, a new draw, or data in the folder `real`."""
    if name in REAL:
        return _real(name, real)
    if folder is not None and (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz") as file:
            return Problem(**{key: file[key] for key in file.files})
    kind, n_items, noise, seed = name.split("_")
    rng = np.random.default_rng(int(seed))
    draw = _rotated if kind in AXES else _networks
    return draw(kind, int(n_items), float(noise), rng)


def _rotated(kind: str, n_items: int, noise: float, rng: np.random.Generator) -> Problem:
    X = rng.normal(size=(n_items, 6)) * AXES[kind]
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    y = X @ rotation + noise * rng.normal(size=X.shape)
    order = rng.permutation(n_items)
    return Problem(_single(X), _single(y[order]), np.argsort(order), _single(rotation))


def _networks(kind: str, n_items: int, noise: float, rng: np.random.Generator) -> Problem:
    latent, labels = _clusters(kind, n_items, rng)
    views = []
    for n_hidden, n_features in zip(HIDDEN[kind], WIDTHS, strict=True):
        first = rng.normal(size=(N_LATENT, n_hidden)) / np.sqrt(N_LATENT)
        offset = 0.3 * rng.normal(size=n_hidden)
        second = rng.normal(size=(n_hidden, n_features)) / np.sqrt(n_hidden)
        view = np.tanh(latent @ first + offset) @ second
        view = (view - view.mean(axis=0)) / view.std()
        views.append(_single(view + noise * rng.normal(size=view.shape)))
    order = rng.permutation(n_items)
    X, y = views[0], views[1][order]
    return Problem(X, y, np.argsort(order), labels_x=labels, labels_y=labels[order])


def _clusters(kind: str, n_items: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points of elongated clusters of unequal sizes, and the cluster of each."""
    if kind == "even":
        centers, spread = rng.normal(size=(40, N_LATENT)), np.full((40, 1), 0.5)
    else:
        centers = np.zeros((1, N_LATENT))
        for n_branches, length in BRANCHES:
            shape = (len(centers), n_branches)
            lengths = length * np.exp(0.3 * rng.normal(size=(*shape, 1)))
            branches = lengths * rng.normal(size=(*shape, N_LATENT))
            centers = (centers[:, None] + branches).reshape(-1, N_LATENT)
        spread = 0.3 * np.exp(0.3 * rng.normal(size=(len(centers), 1)))
    sizes = np.exp(0.8 * rng.normal(size=len(centers)))
    labels = rng.choice(len(centers), size=n_items, p=sizes / sizes.sum())
    axes = spread * np.exp(0.4 * rng.normal(size=centers.shape))
    turns = np.linalg.qr(rng.normal(size=(len(centers), N_LATENT, N_LATENT)))[0]
    points = rng.normal(size=(n_items, N_LATENT)) * axes[labels]
    for label, turn in enumerate(turns):
        points[labels == label] = points[labels == label] @ turn
    points += centers[labels]
    return points / (points.std() if kind == "tree" else 1.0), labels


def _real(name: str, folder: Path | None) -> Problem:
    # need scikit-learn, and peers do not
    from benchmarks.accuracy import _trust
    from benchmarks.papers._set_tasks import load_table

    if folder is None or not folder.is_dir():
        raise FileNotFoundError(f"No data at {folder}. Set UNSHUFFLE_DATA to the folder.")
    if name.startswith("mfeat"):
        digits = np.load(folder / "mfeat.npz")
        task = _trust.Task(name, *(_trust.scaled(digits[view]) for view in ("pix", "kar")))
    elif name.startswith("optdigits"):
        X, _ = load_table(folder / "uci" / "optdigits.csv.gz")
        task = _trust.split(name, X, n_rows=5000)
    else:
        task = next(task for task in _trust.panel(folder) if task.name == name)
    order = np.random.RandomState(0).permutation(task.n_items)
    common = task.y if task.common is None else task.common
    return Problem(
        task.X,
        task.shuffled(order),
        np.argsort(order),
        kernel=task.kernel,
        common=common[order],
    )


def _single(values: Array) -> NDArray[np.float32]:
    return values.astype(np.float32)
