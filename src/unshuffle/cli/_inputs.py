"""Input collections: detect their kind, read them, and report what was read and skipped."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from scipy import sparse

from unshuffle._core.arrays import check_n_items
from unshuffle._core.grams import check_gram
from unshuffle._core.parameters import did_you_mean
from unshuffle._core.scalings import SCALINGS, unit_rows
from unshuffle._files import tables as _tables
from unshuffle._files.documents import TEXT_SUFFIXES, read_documents
from unshuffle._files.paths import (
    BadInput,
    by_reason,
    check_folder,
    check_regular_file,
    list_files,
)
from unshuffle._files.tables import ANNDATA, Table, TableOptions, counted
from unshuffle._pictures.decoding import SUFFIXES, central_part
from unshuffle._run.parallel import map_parallel
from unshuffle._run.types import Progress
from unshuffle.cli._app import note, one_line, progress_bar, say, user_warnings, warn
from unshuffle.cli._options import CollageOptions, LayoutOptions, MatchOptions
from unshuffle.encoders import Encoder, is_encoder, load_encoder
from unshuffle.images import (
    ImageCollection,
    color_histogram,
    color_texture,
    default_cache,
    describe,
    lab_pixels,
    read_features,
    read_folder,
    visual_words,
)

KINDS = {
    "images": "a folder of pictures",
    "text": "a folder of text files",
    "table": "a table",
    "gram": "a Gram matrix",
}
# Kernels for each kind, the most useful first.
KERNELS = {
    "images": ("rbf", "laplacian", "geodesic", "local", "linear"),
    "text": ("text",),
    "table": ("auto", "rbf", "laplacian", "geodesic", "local", "linear", "chi2"),
    "gram": (),
}
# Features for each kind, the most useful first; of a table, with their names in the library.
FEATURES: dict[str, dict[str, str]] = {
    "images": {each: each for each in ("pixels", "color", "content", "texture", "words")},
    "text": {"tfidf": "tfidf"},
    "table": {
        "standardized": "standardized",
        "ranks": "ranks",
        "rows": "rows normalized",
        "given": "as given",
        "log": "log counts",
    },
    "gram": {},
}
LAYOUT_FEATURES = {"images": ("color", "texture", "words", "content"), "text": ("tfidf",)}
# Forms of the names of encoders for each kind.
ENCODERS = {
    "images": ("MODEL.onnx", "timm:NAME", "open_clip:NAME"),
    "text": ("sentence-transformers:NAME",),
}
# What to choose instead of an option that compares counts.
_WITHOUT_COUNTS = {"--kernel chi2": "rbf", "--features log": "ranks"}
# Side of the larger copies that pages and sheets are drawn from.
PREVIEW_SIDE = 320
MOST_CELLS = 100_000_000
_SHAPE = re.compile(r"\s*(\d{1,9})\s*[x×*,]\s*(\d{1,9})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Collection:
    """One side of a match, or the rows of a table."""

    kind: str
    names: list[str]  # "" for an item without a name
    items: Any  # for the estimator, like `kernel`
    kernel: str | list[str]
    kernels: list[str]  # as named on the command line
    features: list[str] = field(default_factory=list)  # likewise; empty if "auto" chooses them
    skipped: list[tuple[str, str]] = field(default_factory=list)
    aspect: float = 1.0  # width over height of a typical picture
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.names)


def find_kind(
    path: Path,
    *,
    precomputed: bool = False,
    recursive: bool = True,
    suffixes: Sequence[str] = _tables.SUFFIXES,
) -> str:
    """Kind of the data at `path`: "images", "text", "table" (by suffix) or "gram"."""
    if not path.exists():
        raise BadInput(f"There is no file or folder {path}. Check the name.")
    if precomputed:
        if path.suffix.lower() != ".npy" or path.is_dir():
            raise BadInput(f"{path} is not a .npy file. --precomputed needs two Gram matrices.")
        check_regular_file(path, "an array")
        return "gram"
    if not path.is_dir():
        if path.suffix.lower() not in suffixes:
            for noun, known in {"picture": SUFFIXES, "text file": TEXT_SUFFIXES}.items():
                if path.suffix.lower() in known:
                    raise BadInput(
                        f"{path} is one {noun}. Give the folder that holds the {noun}s, such as "
                        f"{path.parent}."
                    )
            raise BadInput(
                f"{path} cannot be read. Give a folder of pictures or text files, or a table "
                f"({', '.join(suffixes)})."
            )
        check_regular_file(path, "a table")
        return "table"
    check_folder(path)
    listing = list_files(path, recursive=recursive)
    endings = [Path(name).suffix.lower() for name, _ in (*listing.files, *listing.skipped)]
    n_text = sum(ending in TEXT_SUFFIXES for ending in endings)
    n_images = sum(ending in SUFFIXES for ending in endings)
    return "text" if n_text > n_images else "images"


def read_pair(
    options: MatchOptions, tables: Sequence[TableOptions], on_progress: Callable[[float], object]
) -> tuple[Collection, Collection]:
    """Read both sides of a match, which must be of the same kind."""
    recursive, paths = not options.no_recursive, (options.a, options.b)
    suffixes = (*_tables.SUFFIXES, ANNDATA)
    kinds = [
        find_kind(path, precomputed=options.precomputed, recursive=recursive, suffixes=suffixes)
        for path in paths
    ]
    kind = kinds[0]
    if kind != kinds[1]:
        raise BadInput(
            f"{options.a} is {KINDS[kind]} and {options.b} is {KINDS[kinds[1]]}. "
            "Give two collections of the same kind."
        )
    if options.sheet is not None and kind != "images":
        raise BadInput(f"--sheet shows pictures, and {options.a} holds none. Leave it out.")
    _check_suits(options.kernels, "--kernel", KERNELS[kind], kind, options.a)
    _check_suits(options.compared, "--features", FEATURES[kind], kind, options.a)
    _check_auto(options)
    features = load_encoders(options.compared, kind, options.device)
    if recursive and options.a.is_dir() and options.b.is_dir():
        _check_not_nested(options.a, options.b)
    both = []
    for side, path in enumerate(paths):

        def advance(done: int, total: int, side: int = side) -> None:
            on_progress((side + done / max(total, 1)) / 2)

        if kind == "table":
            collection = read_numbers(path, tables[side], options.kernels, options.compared)
            advance(1, 1)
        else:
            tables[side].check_unused(path, KINDS[kind])
            collection = _READERS[kind](path, options, features, advance)
        check_n_items(len(collection), str(path))
        both.append(collection)
    return both[0], both[1]


def _check_not_nested(path_a: Path, path_b: Path) -> None:
    """Refuse a folder inside the other, whose items would be on both sides."""
    for inner, outer in ((path_a, path_b), (path_b, path_a)):
        place, around = (Path(os.path.realpath(path)) for path in (inner, outer))
        if place != around and place.is_relative_to(around):
            raise BadInput(
                f"{inner} is inside {outer}, whose sub-folders are read too. Give --no-recursive, "
                "or two separate folders."
            )


def check_layout_features(options: LayoutOptions, kind: str) -> list[str | Encoder]:
    """Features of a layout of pictures or texts that suit them, with encoders loaded."""
    known = LAYOUT_FEATURES[kind]
    own = [name for name in options.compared if name.lower().endswith(".npy")]
    for name in own:
        check_regular_file(name, "--features")
    _check_suits(options.compared, "--features", known, kind, options.path, own)
    return load_encoders(options.compared or known[:1], kind, options.device)


def _check_suits(
    given: Sequence[str],
    option: str,
    known: Iterable[str],
    kind: str,
    path: Path,
    own: Sequence[str] | None = None,
) -> None:
    """Refuse kernels or features that do not suit this kind, or are given twice.

    `own` are files of the user, where there may be some.
    """
    if given and kind == "gram":
        raise BadInput(f"{option} {given[0]} and --precomputed exclude each other. Drop one.")
    for name in given:
        encoded = option == "--features" and _encodes(name, kind)
        if name not in (*known, *(own or ())) and not encoded:
            forms = [*known, *(ENCODERS.get(kind, ()) if option == "--features" else ())]
            forms += [] if own is None else ["FILE.npy"]
            others = f", or choose from: {', '.join(forms)}" if forms else ""
            every = KERNELS if option == "--kernel" else FEATURES
            if any(name in names for names in every.values()) or is_encoder(name):
                wrong = f"does not suit {path}, {KINDS[kind]}."
            else:
                wrong = f"is not known.{did_you_mean(name, forms)}"
            raise BadInput(f"{option} {name} {wrong} Leave it out{others}.")
        if given.count(name) > 1:
            raise BadInput(
                f"{option} {name} is given {given.count(name)} times. Give each of them once."
            )


def _check_auto(options: MatchOptions) -> None:
    """Refuse further choices beside --kernel auto, which chooses both."""
    if "auto" in options.kernels and (len(options.kernels) > 1 or options.compared):
        other = "a second --kernel" if len(options.kernels) > 1 else "--features"
        raise BadInput(
            f"--kernel auto chooses scaling and kernel itself, so {other} has no effect. Leave "
            "out one of the two."
        )


def _encodes(name: str, kind: str) -> bool:
    """Whether a name is that of an encoder for this kind."""
    texts = name.startswith("sentence-transformers:")
    return is_encoder(name) and kind == ("text" if texts else "images")


def load_encoders(names: Sequence[str], kind: str, device: str | None) -> list[str | Encoder]:
    """Features with encoders loaded, which may fail and should do so before files are read."""
    return [load_encoder(name, device) if _encodes(name, kind) else name for name in names]


def _parts_of_progress(step: Progress, features: Sequence[str | Encoder]) -> Iterator[Progress]:
    """Progress of each reading: all files are read once, and encoded by each encoder."""
    n_parts = 1 + sum(isinstance(each, Encoder) for each in features)

    def advance(part: int, done: int, total: int) -> None:
        step(part * total + done, n_parts * total)

    return (partial(advance, part) for part in range(n_parts))


def _read_images(
    path: Path, options: MatchOptions, features: Sequence[str | Encoder], step: Progress
) -> Collection:
    features = features or ["pixels", "color"]
    parts = _parts_of_progress(step, features)
    folder = read_folder(
        path,
        recursive=not options.no_recursive,
        n_jobs=options.jobs,
        on_progress=next(parts),
    )
    compute: dict[str, Callable[[NDArray[np.uint8]], Any]] = {
        "pixels": lab_pixels,
        "color": color_histogram,
        "texture": color_texture,
        "words": partial(visual_words, random_state=options.seed, n_jobs=options.jobs),
    }
    items: list[Any] = []
    for each in features:
        if isinstance(each, Encoder):
            cache = None if options.no_cache else default_cache()
            encoded = describe(
                folder, each, cache=cache, n_jobs=options.jobs, on_progress=next(parts)
            )
            items.append(encoded[0])
        else:
            items.append(compute[each](folder.arrays))
    named = options.kernels or ["rbf"]
    return Collection(
        kind="images",
        names=folder.names,
        items=items * len(named),
        kernel=[kernel for kernel in named for _ in features],
        kernels=named,
        features=options.compared or ["pixels", "color"],
        skipped=folder.skipped,
        aspect=float(np.median(folder.sizes[:, 1] / folder.sizes[:, 0])),
    )


def _read_texts(
    path: Path, options: MatchOptions, features: Sequence[str | Encoder], step: Progress
) -> Collection:
    parts = _parts_of_progress(step, features)
    documents, names, skipped = read_documents(
        path, recursive=not options.no_recursive, on_progress=next(parts)
    )
    items, kernel = describe_texts(documents, features, "rbf", parts)
    return Collection(
        "text", names, items, kernel, ["text"], options.compared or ["tfidf"], skipped
    )


def describe_texts(
    documents: list[str],
    features: Sequence[Any],
    kernel: str,
    progress: Iterator[Progress],
) -> tuple[Any, str | list[str]]:
    """Texts, or vectors by an encoder or of the user, or a list of these; and their kernels.

    Each encoder takes the next of `progress`.
    """
    items: list[Any] = []
    for each in features or ["tfidf"]:
        if isinstance(each, Encoder):
            items.append(unit_rows(each.encode(documents, on_progress=next(progress))))
        elif each == "tfidf":
            items.append(documents)
        else:
            items.append(read_features(each, len(documents)))
    kernels = ["text" if each is documents else kernel for each in items]
    return (items[0], kernels[0]) if len(items) == 1 else (items, kernels)


def table_options(options: MatchOptions | LayoutOptions, n_tables: int) -> list[TableOptions]:
    """Options for each table: --id is given once for all tables, or once for each."""
    asked = options.id_column
    columns = [] if asked is None else [asked] if isinstance(asked, str) else asked
    if options.no_id and columns:
        raise BadInput("--id and --no-id exclude each other. Drop one.")
    if len(columns) > n_tables:
        often = len(columns)
        raise BadInput(f"--id is given {often} times. Give it once, or twice: for A and for B.")
    names: list[str | bool | None] = [*columns] or [False if options.no_id else None]
    names = names if len(names) == n_tables else names * n_tables
    keys = _keys(options) if isinstance(options, MatchOptions) else [None]
    return [TableOptions(options.header, *each) for each in zip(names, keys, strict=True)]


def _keys(options: MatchOptions) -> list[str | None]:
    """The part to read of A and of B: --key is given once for all AnnData files, or for each."""
    asked, paths = options.key or [], (options.a, options.b)
    if len(asked) > len(paths):
        often = len(asked)
        raise BadInput(f"--key is given {often} times. Give it once, or twice: for A and for B.")
    others = [path for path in paths if path.suffix.lower() != ANNDATA]
    if len(others) > 2 - len(asked):
        raise BadInput(
            f"--key chooses a part of an AnnData file ({ANNDATA}); {others[0]} is not one. "
            f"{'Give it once' if len(asked) > len(others) else 'Leave it out'}."
        )
    both: Sequence[str | None] = asked if len(asked) == 2 else [*asked, None][:1] * 2
    return [None if path in others else key for path, key in zip(paths, both, strict=True)]


def read_numbers(
    path: Path, options: TableOptions, kernels: Sequence[str], features: Sequence[str] = ()
) -> Collection:
    """Rows of a table, scaled as the kernels and features ask."""
    table = _tables.read_table(path, options)
    if table.values.shape[0] > 1 and _are_equal(table.values):
        raise BadInput(
            f"All rows of {path} are equal, so they cannot be distinguished. Check the file."
        )
    named = list(kernels) or (["rbf"] if features else ["auto"])
    if named == ["auto"]:
        return Collection("table", table.names, table.values, "auto", named, table=table)
    least = table.values.min()
    for option in [f"--kernel {each}" for each in named] + [f"--features {k}" for k in features]:
        if least < 0 and option in ("--kernel chi2", "--features log"):
            raise BadInput(
                f"{path} holds {least:.6g}, and {option} compares counts, which are never "
                f"negative. Choose another, such as {_WITHOUT_COUNTS[option]}."
            )
    if "chi2" in named and "standardized" in features:
        raise BadInput(
            "--features standardized makes numbers negative, and --kernel chi2 compares counts, "
            "which are never negative. Drop one of the two."
        )
    entries = [
        (kernel, feature)
        for kernel in named
        for feature in features or [_usual_feature(kernel, table)]
    ]
    scaled = {feature: _scale(table, feature, path) for _, feature in entries}
    items = [scaled[feature] for _, feature in entries]
    chosen = [kernel for kernel, _ in entries]
    single = len(entries) == 1
    return Collection(
        kind="table",
        names=table.names,
        items=items[0] if single else items,
        kernel=chosen[0] if single else chosen,
        kernels=named,
        features=[feature for _, feature in entries],
        table=table,
    )


def _are_equal(values: Any) -> bool:
    """Whether all rows are equal."""
    if sparse.issparse(values):
        return (values.max(axis=0) != values.min(axis=0)).nnz == 0
    return all(bool((block == values[0]).all()) for block in _tables.blocks_of(values))


def _usual_feature(kernel: str, table: Table) -> str:
    # chi2 compares counts, which must not become negative; sparse tables stay sparse.
    return "given" if kernel == "chi2" or sparse.issparse(table.values) else "standardized"


def _scale(table: Table, feature: str, path: Path) -> Any:
    """The table as it is compared."""
    if feature == "given":
        return table.values
    if sparse.issparse(table.values):
        raise BadInput(
            f"--features {feature} needs dense numbers, and {path} is sparse. Give --features "
            "given, or another --key, such as obsm:X_pca."
        )
    # Sums over many rows need double precision.
    return SCALINGS[FEATURES["table"][feature]](np.asarray(table.values, dtype=np.float64))


def _read_gram(
    path: Path, options: MatchOptions, features: Sequence[str | Encoder], step: Progress
) -> Collection:
    gram = check_gram(_tables.read_array(path), str(path))
    step(1, 1)
    return Collection("gram", [""] * len(gram), gram, "precomputed", [])


_READERS = {"images": _read_images, "text": _read_texts, "gram": _read_gram}


@dataclass(frozen=True)
class PictureFolder:
    """A folder of pictures, read as the options of a layout or a collage say."""

    options: LayoutOptions | CollageOptions
    outputs: Sequence[Path]  # possibly in the same folder
    shows_pictures: bool  # whether any of them does

    def read_and_report(self, side: int) -> ImageCollection:
        """Read every picture at one size, and print what was read and skipped."""
        pictures = self.read(side, previews=PREVIEW_SIDE if self.shows_pictures else None)
        path = self.options.path
        skipped = without_outputs(pictures.skipped, path, self.outputs)
        if not self.options.quiet:
            if not self.options.as_json:
                say_read(pictures.names, len(skipped), str(path))
            list_skipped(skipped, str(path))
        return replace(pictures, skipped=skipped)

    def read(self, side: int, *, previews: int | None = None) -> ImageCollection:
        """Read every picture at one size, with a progress bar."""
        path, show = self.options.path, not self.options.quiet
        if self.options.no_recursive and _has_folders_only(path):
            raise BadInput(
                f"{path} holds only sub-folders. Leave out --no-recursive to read the pictures in "
                "them."
            )
        with progress_bar("Reading", show=show) as advance, user_warnings() as remarks:
            pictures = read_folder(
                path,
                size=side,
                fit="crop",
                recursive=not self.options.no_recursive,
                previews=previews,
                cache=None if self.options.no_cache else default_cache(),
                n_jobs=self.options.jobs,
                on_progress=lambda done, total: advance(done / max(total, 1), f"{done:,}"),
            )
        for remark in remarks if show else ():
            warn(remark.message)
        return pictures

    def tiles(self, pictures: ImageCollection, side: int) -> NDArray[np.uint8]:
        """The pictures at the size of their tiles, read again if that is large."""
        if pictures.previews is not None and side > PREVIEW_SIDE // 2:
            larger = self.read(side)
            number = {name: i for i, name in enumerate(larger.names)}
            if number.keys() >= set(pictures.names):
                return larger.arrays[[number[name] for name in pictures.names]]
            path = self.options.path
            warn(f"{path} changed during the layout; pictures are drawn less sharp.")
        tiles = np.empty((len(pictures), side, side, 3), dtype=np.uint8)

        def draw(i: int) -> None:
            tiles[i] = central_part(_open_largest(pictures, i), side, side)

        map_parallel(draw, range(len(pictures)), n_jobs=self.options.jobs)
        return tiles


def _open_largest(pictures: ImageCollection, i: int) -> Image.Image:
    """The preview of a picture, or its pixels where that is gone."""
    if pictures.previews is not None:
        with suppress(ValueError):
            return Image.open(BytesIO(pictures.previews[i]))
    return Image.fromarray(pictures.arrays[i])


def _has_folders_only(path: Path) -> bool:
    shown = list(path.glob("[!.]*"))
    return bool(shown) and all(each.is_dir() for each in shown)


def count_folders(names: Sequence[str]) -> int:
    """Number of folders that the files, named by relative paths, are in."""
    return len({name.rpartition("/")[0] for name in names})


def say_read(names: Sequence[str], n_skipped: int, where: str, *, side: str = "") -> None:
    """Print how many files were read, from how many folders, and how many were skipped."""
    files, folders = counted(len(names), "file"), counted(count_folders(names), "folder")
    read = "read" if side else "Read"
    say(f"{side}{read} {files} in {folders} ({where}); skipped {n_skipped:,}.")


def list_skipped(skipped: list[tuple[str, str]], where: str) -> None:
    """Print every reason why files were skipped, with the first few names for each."""
    if not skipped:
        return
    note(f"Skipped {counted(len(skipped), 'file')} in {where}:")
    for why, names in by_reason(skipped):
        more = ", ..." if len(names) > 3 else ""
        listed = one_line(", ".join(names[:3]))
        typer.echo(f"  {counted(len(names), 'file')} ({listed}{more}): {one_line(why)}", err=True)


def skipped_list_path(output: Path) -> Path:
    """Path of the list of skipped files, beside the first output."""
    return _beside(output, ".skipped.csv")


def trust_path(output: Path) -> Path:
    """Path of the report beside pairs in a file that has no place for it."""
    return _beside(output, ".trust.json")


def _beside(output: Path, ending: str) -> Path:
    """A file that is named after an output."""
    # "." and ".." are folders by another name.
    place = Path(os.path.abspath(output)) if output.name in ("", "..") else output
    return place.parent / f"{place.stem}{ending}"


def skipped_records(skipped: list[tuple[str, str]]) -> list[dict[str, str]]:
    """Skipped files, ready for JSON."""
    return [{"name": name, "reason": why} for name, why in skipped]


def without_outputs(
    skipped: list[tuple[str, str]], folder: Path, outputs: Sequence[Path]
) -> list[tuple[str, str]]:
    """Skipped files of a folder, except outputs of an earlier run."""
    own = {os.path.realpath(each) for each in outputs}
    own |= {os.path.realpath(skipped_list_path(each)) for each in outputs[:1]}
    return [entry for entry in skipped if os.path.realpath(folder / entry[0]) not in own]


def parse_shape(text: str) -> tuple[int, int]:
    """Rows and columns from a text like "16x20"."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadInput(f"--shape {text!r} is not understood. Give rows x columns, as in 16x20.")
    rows, columns = int(found[1]), int(found[2])
    if rows < 1 or columns < 1:
        raise BadInput(f"--shape {text} has no cell. Give at least one row and one column.")
    if rows * columns > MOST_CELLS:
        raise BadInput(
            f"--shape {text} has {rows * columns:,} cells, more than the {MOST_CELLS:,} allowed. "
            "Give a smaller one."
        )
    return rows, columns
