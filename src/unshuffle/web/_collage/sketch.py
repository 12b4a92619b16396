"""What the user chooses for a collage: a template and settings, and the grid that follows."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import ceil, isfinite, sqrt
from typing import Any

from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.album import is_own_name, tidy_name

NEIGHBORS = ("kernel", "laplacian")
MOST_DETAIL = 6
MOST_REPEAT = 1000
MOST_CELLS = 6400
# Cells of a collage whose size is not chosen: composed in well under a second.
USUAL_CELLS = 1500
# Copies of pictures for each cell: fewer show less of the template, more take longer.
CHOICE = 3
# Pairs of a copy and a cell that are compared, 10 bytes each, and pictures that are tried.
MOST_PAIRS, MOST_TRIED = 45_000_000, 5000


@dataclass(frozen=True)
class CollageSettings:
    """Settings of a collage; None is chosen by `plan`."""

    smoothness: float = 0.3
    rows: int | None = None
    repeat: int | None = None
    detail: int = 3
    neighbors: str = "kernel"

    def changed(self, given: Any) -> "CollageSettings":
        """With some settings from a request, each checked."""
        if not isinstance(given, dict):
            raise Refused("Give settings by name.")
        checks: dict[str, Callable[[Any], Any]] = {
            "smoothness": _share,
            "rows": lambda value: _count(value, "rows", MOST_CELLS),
            "repeat": lambda value: _count(value, "repeat", MOST_REPEAT),
            "detail": _detail,
            "neighbors": _neighbors,
        }
        for name in given:
            if name not in checks:
                raise Refused(f"There is no setting {str(name)[:40]!r}.")
        return replace(self, **{name: checks[name](value) for name, value in given.items()})


def _share(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or not 0 <= value <= 1:
        raise Refused("Choose a smoothness from 0 to 1.", "smoothness")
    return float(value)


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _count(value: Any, name: str, most: int) -> Any:
    if value is not None and not _is_count(value, most):
        what = "rows" if name == "rows" else "times"
        raise Refused(
            f"Enter a whole number of {what} from 1 to {most:,}, or leave it empty.", name
        )
    return value


def _detail(value: Any) -> int:
    if not _is_count(value, MOST_DETAIL):
        raise Refused(f"Choose a detail from 1 to {MOST_DETAIL}.", "detail")
    return int(value)


def _neighbors(value: Any) -> str:
    if value not in NEIGHBORS:
        raise Refused(f"Choose {' or '.join(NEIGHBORS)}.", "neighbors")
    return str(value)


@dataclass(frozen=True)
class Template:
    """A template: the name of its copy, made from its content, and what it was called."""

    file: str
    name: str

    @property
    def key(self) -> str:
        """For addresses: other templates have other ones."""
        return self.file[:12]


@dataclass(frozen=True)
class Sketch:
    """A step of the history of a collage; never changed, so that an earlier one can come back."""

    settings: CollageSettings = CollageSettings()
    template: Template | None = None
    label: str = ""  # what the user did to get here
    settled: bool = True
    raw: bool = False

    def to_json(self) -> dict[str, Any]:
        """For the state file."""
        template = None if self.template is None else asdict(self.template)
        return {"label": self.label, "settings": asdict(self.settings), "template": template}

    @classmethod
    def from_json(cls, data: Any) -> "Sketch":
        """From the state file, checked; raises nearly anything if it is damaged."""
        template = data["template"]
        if template is not None:
            template = Template(str(template["file"]), tidy_name(str(template["name"])))
            if not is_own_name(template.file):
                raise ValueError("it names a file that is not one of its own")
        settings = CollageSettings().changed(data["settings"])
        return cls(settings, template, str(data["label"]))


@dataclass(frozen=True)
class Plan:
    """Grid of a collage, and how often a picture may be used on it."""

    rows: int
    columns: int
    repeat: int

    @property
    def n_cells(self) -> int:
        """Cells of the grid."""
        return self.rows * self.columns


def plan(settings: CollageSettings, n_pictures: int, aspect: float) -> Plan:
    """The grid for so many pictures and a template of so much height to its width."""
    if settings.rows is None:
        room = n_pictures * settings.repeat if settings.repeat else USUAL_CELLS
        rows, columns = _grid_of(min(USUAL_CELLS, room), aspect)
    else:
        rows, columns = settings.rows, max(1, round(settings.rows / aspect))
        _check_grid(rows, columns, settings, n_pictures, aspect)
    n_cells = rows * columns
    least = ceil(n_cells / n_pictures)
    wanted = settings.repeat or ceil(CHOICE * n_cells / n_pictures)
    # "Up to" holds with fewer copies too.
    most = MOST_PAIRS // (n_cells * n_pictures)
    return Plan(rows, columns, max(least, min(wanted, most)))


def _grid_of(n_cells: int, aspect: float) -> tuple[int, int]:
    """Rows and columns in these proportions, of at most so many cells."""
    rows = min(max(1, round(sqrt(n_cells * aspect))), n_cells)
    while rows > 1 and rows * max(1, round(rows / aspect)) > n_cells:
        rows -= 1
    return rows, min(max(1, round(rows / aspect)), n_cells // rows)


def _check_grid(
    rows: int, columns: int, settings: CollageSettings, n_pictures: int, aspect: float
) -> None:
    n_cells = rows * columns
    if n_cells > MOST_CELLS:
        fewer = _grid_of(MOST_CELLS, aspect)[0]
        raise Refused(
            f"{rows:,} rows and {columns:,} columns are {n_cells:,} cells; a collage has at most "
            f"{MOST_CELLS:,}. Enter at most {fewer:,} rows.",
            "rows",
        )
    if settings.repeat is not None and n_pictures * settings.repeat < n_cells:
        fewer = _grid_of(n_pictures * settings.repeat, aspect)[0]
        times = "once" if settings.repeat == 1 else f"up to {settings.repeat:,} times"
        raise Refused(
            f"{rows:,} rows and {columns:,} columns are {n_cells:,} cells; {n_pictures:,} "
            f"pictures used {times} each do not fill them. Use each up to "
            f"{ceil(n_cells / n_pictures):,} times, or enter at most {fewer:,} rows.",
            "rows",
        )
