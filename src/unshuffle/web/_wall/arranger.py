"""Comparing the pictures of a page and laying them out, with reports on the way."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.utils.extmath import randomized_svd

from unshuffle._core.distances import chi2_distances
from unshuffle._run.parallel import one_blas_thread
from unshuffle._run.search import Stopped
from unshuffle.base import SearchState
from unshuffle.images import describe
from unshuffle.layout import Collage, GridLayout
from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall.arrangement import EMPTY, OUTSIDE, Arrangement, Grid
from unshuffle.web._work.album import Album, Slots
from unshuffle.web._work.jobs import Canceled, Job

# Seconds between two looks at the wall while it is arranged.
_BETWEEN_LOOKS = 0.15
# Pictures that one is compared with at once, which bounds the memory.
_AT_ONCE = 4096
# More pictures are laid out by their leading components, found once, since every move lays out
# again. The solver regards at most 48.
_MANY, _N_COMPONENTS = 1000, 64
_WARM = 15  # rows and columns of a collage that needs all of its solver


@dataclass(frozen=True)
class Compared:
    """Pictures as vectors."""

    features: tuple[str, ...]
    slots: Slots
    vectors: NDArray[Any]
    kernel: str
    leading: NDArray[Any]  # what they are laid out by

    def is_of(self, features: tuple[str, ...], slots: Slots) -> bool:
        """Whether these are the vectors of the same pictures by the same features."""
        return self.features == features and np.array_equal(self.slots, slots)

    def covers(self, features: tuple[str, ...], slots: Slots) -> bool:
        """Whether the vectors of these pictures by these features are among them."""
        return self.features == features and bool(np.isin(slots, self.slots).all())

    def take(self, slots: Slots) -> tuple[NDArray[Any], str] | None:
        """Vectors of some pictures and their kernel, if all are there."""
        if not np.isin(slots, self.slots).all():
            return None
        return self.vectors[np.searchsorted(self.slots, slots)], self.kernel


class Arranger:
    """Compares pictures once for all layouts by the same features."""

    def __init__(self, album: Album) -> None:
        self._album = album
        self.compared: Compared | None = None  # the last ones

    def compare(self, job: Job, features: tuple[str, ...], slots: Slots) -> Compared:
        """Vectors of pictures; known ones are not computed again."""
        known = self.compared
        if known is not None and known.is_of(features, slots):
            return known
        job.say("Comparing")
        self.compared = known = None  # two at once would take twice the memory
        vectors, kernel = describe(
            self._album.collection(slots),
            list(features),
            cache=self._album.cache,
            random_state=0,
            n_jobs=-1,
            on_progress=lambda done, total: job.count(done * len(slots) // total, len(slots)),
        )
        job.check()
        leading = _leading_components(vectors) if kernel == "linear" else vectors
        self.compared = Compared(features, slots, vectors, kernel, leading)
        return self.compared

    def alike(self, slot: int, among: Slots, k: int) -> list[int]:
        """The `k` pictures most like one, nearest first."""
        compared = self.compared
        number = np.flatnonzero(() if compared is None else compared.slots == slot)
        if compared is None or not number.size:
            raise Refused("The pictures are still being compared. Try again soon.", status=409)
        vectors, one = compared.vectors, compared.vectors[number]
        if compared.kernel == "chi2":
            far = chi2_distances(one, vectors)[0]
        else:
            far = np.zeros(len(vectors))
            for start in range(0, len(vectors), _AT_ONCE):
                apart = vectors[start : start + _AT_ONCE] - one
                far[start : start + _AT_ONCE] = np.einsum("ij,ij->i", apart, apart)
        others = np.flatnonzero(np.isin(compared.slots, among) & (compared.slots != slot))
        nearest = others[np.argsort(far[others], kind="stable")[:k]]
        return [int(each) for each in compared.slots[nearest]]

    def lay_out(
        self,
        job: Job,
        now: Arrangement,
        slots: Slots,
        show: Callable[[Grid], None],
    ) -> tuple[GridLayout, list[str]]:
        """Lay out pictures on the cells of an arrangement, and show the wall on the way.

        Pictures begin where they are, unless the arrangement is raw. What there is when the job
        is canceled was shown.
        """
        compared = self.compare(job, now.settings.features, slots)
        cells = now.grid != OUTSIDE
        # Numbers of the pictures in the layout; the last two are those of OUTSIDE and EMPTY.
        number = np.full(len(self._album) + 2, EMPTY, dtype=np.intp)
        number[slots] = np.arange(len(slots))
        frozen = [(number[slot], now.cell_of(slot)) for slot in sorted(now.frozen)]
        looked = 0.0

        def show_layout(grid: NDArray[np.intp]) -> None:
            found = np.append(slots, EMPTY)[grid].astype(np.int32)
            found[~cells] = OUTSIDE
            show(found)

        def follow(state: SearchState) -> bool:
            nonlocal looked
            job.fraction = state.fraction
            if monotonic() - looked > _BETWEEN_LOOKS or job.canceled:
                grid = np.full(cells.size, EMPTY, dtype=np.intp)
                grid[state.permutation] = np.arange(len(slots))
                show_layout(grid.reshape(cells.shape))
                looked = monotonic()
            return job.canceled

        job.say("Arranging")
        layout = GridLayout(
            # A rectangle is faster than a mask with all its cells.
            shape=cells.shape if cells.all() else cells,
            wrap=now.settings.shape == "torus",
            kernel=None if compared.kernel == "linear" else compared.kernel,
            quality=now.settings.quality,
            random_state=now.seed,
            n_jobs=-1,
            callback=follow,
        )
        start = None if now.raw else number[now.grid]
        pairs = np.array(frozen, dtype=np.intp) if frozen else None
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always", UserWarning)
            try:
                layout.fit(compared.leading, frozen=pairs, start=start)
            except Stopped:
                raise Canceled from None
        show_layout(layout.grid_)
        job.check()
        return layout, [str(each.message) for each in remarks if _is_for_users(each)]


def _leading_components(vectors: NDArray[Any]) -> NDArray[Any]:
    """Coordinates of many wide vectors along the directions in which they differ most."""
    if len(vectors) <= _MANY or vectors.shape[1] <= _N_COMPONENTS:
        return vectors
    centered = vectors - vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    axes = randomized_svd(centered, _N_COMPONENTS, n_iter=2, random_state=0)[2]
    return np.asarray(centered @ axes.T)


def _is_for_users(remark: warnings.WarningMessage) -> bool:
    return issubclass(remark.category, UserWarning)


def prepare() -> None:
    """Load compiled modules before there are threads.

    A thread that searches for BLAS and one that loads a module can wait for each other for ever.
    """
    import numba  # noqa: F401

    Image.init()  # decoders of all formats
    with one_blas_thread():
        pass


def warm_up() -> None:
    """Load the solvers, which takes a second or two, while the first pictures are read."""
    rng = np.random.default_rng(0)
    GridLayout(shape=(4, 4)).fit(rng.random((16, 3)))
    tiles = rng.integers(0, 256, (_WARM**2, 2, 2, 3), dtype=np.uint8)
    Collage(tiles[0], shape=(_WARM, _WARM), detail=1).fit(tiles)
