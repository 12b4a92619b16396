"""How time and memory grow with the number of items: exponents and a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.scale._records import Record

LEAST = 1.0  # megabytes; less is not measured reliably
# Ours first, in the strongest color.
COLORS = ("#0b6e99", "#c8553d", "#8a8d3f", "#7f5a83")
MARKERS = "os^D"


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the line through the points on logarithmic scales, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def draw(curves: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Time, memory and share of right pairs of each method against the number of items."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    # The same picture gives the same file.
    with mpl.rc_context({"svg.hashsalt": "unshuffle", "font.size": 9}):
        fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
        for number, (method, curve) in enumerate(curves.items()):
            sizes = [int(one.problem.split("_")[1]) for one in curve]
            style = {"color": COLORS[number % 4], "marker": MARKERS[number % 4], "markersize": 4}
            label = "unshuffle" if method == "default" else method
            seconds = [one.seconds for one in curve]
            gigabytes = [max(one.megabytes or LEAST, LEAST) / 1000 for one in curve]
            axes[0].loglog(sizes, seconds, label=label, **style)
            axes[1].loglog(sizes, gigabytes, label=label, **style)
            axes[2].semilogx(sizes, [one.right for one in curve], label=label, **style)
        for ax, title in zip(axes, ("seconds", "memory in GB", "share right"), strict=True):
            ax.set(xlabel="items", title=title)
            ax.grid(visible=True, which="major", color="#dddddd")
            ax.spines[["top", "right"]].set_visible(False)
        axes[2].set_ylim(-0.05, 1.05)
        axes[2].legend(frameon=False)
        fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(fig)
