"""Two measurements of the same cells, and digits described in two ways."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

from unshuffle import KernelizedSorting
from unshuffle.kernels import geodesic_kernel
from unshuffle.metrics import foscttm


def report(folder: Path) -> Iterator[str]:
    data = np.load(folder / "snareseq.npz")
    rna, atac = normalize(data["rna"].astype(float)), normalize(data["atac"].astype(float))
    order = np.random.RandomState(0).permutation(len(rna))
    geodesic = partial(geodesic_kernel, metric="correlation")
    for title, kernel in (("rbf", "rbf"), ("rbf + geodesic", ["rbf", geodesic])):
        sorting = KernelizedSorting(kernel=kernel, n_jobs=2).fit(rna, atac[order])
        same = data["cell_type"][order[sorting.permutation_]] == data["cell_type"]
        yield (
            f"snareseq, {title}: FOSCTTM of pairs "
            f"{foscttm(sorting.reorder(atac[order]), atac):.4f}, "
            f"of soft matches {foscttm(sorting.soft_matches() @ atac[order], atac):.4f}, "
            f"same cell type {same.mean():.3f}, ambiguity {sorting.ambiguity_:.3f}"
        )
    digits = np.load(folder / "mfeat.npz")
    rng = np.random.RandomState(0)
    chosen, order = rng.permutation(2000)[:400], rng.permutation(400)
    for first, second in (("pix", "kar"), ("pix", "fou")):
        X, y = digits[first][chosen].astype(float), digits[second][chosen].astype(float)
        sorting = KernelizedSorting().fit(X, y[order])
        right = int((order[sorting.permutation_] == np.arange(400)).sum())
        yield (
            f"mfeat {first} to {second}: {right} of 400 right, "
            f"ambiguity {sorting.ambiguity_:.3f}, mean confidence {sorting.confidence_.mean():.2f}"
        )
