"""Documents in other languages matched to their English versions."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unshuffle import KernelizedSorting


def report(folder: Path) -> Iterator[str]:
    for name in ("europarl7", "lohelp9"):
        with gzip.open(folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            documents = json.load(file)
        for language in sorted(set(documents) - {"ids", "titles", "en"}):
            order = np.random.RandomState(0).permutation(len(documents["en"]))
            english = [documents["en"][index] for index in order]
            sorting = KernelizedSorting(kernel="text").fit(documents[language], english)
            right = int((order[sorting.permutation_] == np.arange(order.size)).sum())
            yield (
                f"{name} {language} to en: {right} of {order.size} right, "
                f"ambiguity {sorting.ambiguity_:.3f}"
            )
