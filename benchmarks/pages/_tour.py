"""A wall in Chromium: how soon it is there, how smoothly it moves, and what memory it takes."""

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.pages._memory import Watch, proportional, waited, whole

WINDOW = {"width": 1600, "height": 1000}
PATIENCE = 120  # seconds to wait for a page that does not become ready
PLACES = ((0.5, 0.5), (0.2, 0.3), (0.8, 0.25), (0.7, 0.8))  # in shares of the wall's sides
NOW = "[performance.now(), seen.frames]"
TASK = "ThreadControllerImpl::RunTask"

# Times are milliseconds since the navigation began. A frame counts once the browser has drawn it.
SCRIPT = """
(() => {
  const seen = { ready: null, loaded: null, long: [], frames: 0 };
  Object.defineProperty(window, "seen", { value: seen });
  const mark = (name) => requestAnimationFrame(() => requestAnimationFrame((now) => {
    seen[name] = now;
  }));
  const known = new Set();
  new MutationObserver(() => {
    for (const name of ["ready", "loaded"]) {
      if (document.documentElement?.dataset[name] !== "yes" || known.has(name)) continue;
      known.add(name);
      mark(name);
    }
  }).observe(document, {
    subtree: true, childList: true, attributes: true,
    attributeFilter: ["data-ready", "data-loaded"],
  });
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) seen.long.push([each.startTime, each.duration]);
  }).observe({ type: "longtask", buffered: true });
  const count = () => { seen.frames += 1; requestAnimationFrame(count); };
  requestAnimationFrame(count);
})();
"""


@dataclass(frozen=True)
class Step:
    """One part of the tour."""

    name: str
    seconds: float
    frames: int
    longest: float  # milliseconds of the main thread's longest task, by the clock
    longest_work: float  # likewise, of its processor time
    began: float  # milliseconds since the navigation
    ended: float
    megabytes: float  # peak memory of the tab
    waited: float  # seconds that the main thread waited for a core: the clock counts them

    @property
    def rate(self) -> float:
        """Frames a second."""
        return self.frames / self.seconds


@dataclass
class Visit:
    """What was measured on one page. Memory in megabytes, times in seconds."""

    ready: float = 0.0  # the first screen is drawn
    loaded: float = 0.0  # names and columns are there too
    drawn: float = 0.0  # share of the first screen's wall that is not paper
    longest_at_start: float = 0.0  # milliseconds of the longest task until loaded
    steps: list[Step] = field(default_factory=list)
    observed: float = 0.0  # milliseconds of the tour's longest task as the page sees it; 0: < 50
    at_rest: float = 0.0
    peak: float = 0.0
    peak_whole: float = 0.0
    browser: float = 0.0  # peak of all processes of the browser
    heap: float = 0.0
    count: str = ""
    found: str = ""


def visit(
    path: Path,
    *,
    word: str,
    picture: Path | None = None,
    evict: bool = True,
    tour: bool = True,
) -> Visit:
    """Open a page over file:// in a new browser and take the tour.

    Parameters
    ----------
    path : Path
        An .html file.
    word : str
        What the tour searches for.
    picture : Path or None
        File for a screenshot of the first screen.
    evict : bool
        Whether the files are read from the disk, as on the first opening, not from the memory of
        the system.
    tour : bool
        False only opens the page.
    """
    if evict:
        _evict(path)
    seen = Visit()
    with new_browser() as browser:
        page = browser.new_page(viewport=WINDOW)
        page.add_init_script(SCRIPT)
        every = partial(processes_of, browser)
        tab = partial(processes_of, browser, "renderer")
        page.goto(path.as_uri(), wait_until="commit")
        _wait(page, "ready")
        page.screenshot(path=picture)
        seen.drawn = _share_drawn(page.locator("#wall").screenshot())
        _wait(page, "loaded")
        times = page.evaluate("seen")
        seen.ready, seen.loaded = times["ready"] / 1000, times["loaded"] / 1000
        seen.longest_at_start = max((length for _, length in times["long"]), default=0.0)
        seen.count = page.locator("#count").inner_text()
        if not tour:
            return seen
        # The list of processes comes from the browser, which must not be asked by two threads.
        renderer = max(tab(), key=whole)
        all_of_them = list(every())
        with (
            Watch(lambda: [renderer], whole) as whole_memory,
            Watch(lambda: all_of_them) as browser_memory,
        ):
            page.wait_for_timeout(2000)
            seen.at_rest = proportional(renderer)
            for name, walk in _tour(page, word):
                seen.steps.append(measure(browser, page, renderer, name, walk))
                if name == "search":
                    seen.found = page.locator("#count").inner_text()
        seen.peak = max(step.megabytes for step in seen.steps)
        seen.peak_whole = whole_memory.peak
        seen.browser = browser_memory.peak
        long = page.evaluate("seen.long")
        seen.observed = max(
            (
                length
                for start, length in long
                if any(step.began <= start <= step.ended for step in seen.steps)
            ),
            default=0.0,
        )
        seen.heap = _heap(page)
    return seen


@contextmanager
def new_browser() -> Iterator[Any]:
    """A new browser with a profile of its own."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise SystemExit(
            "Pages are opened with Playwright. Run: pip install 'unshuffle[bench]'"
        ) from error
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        # None: the browser that `playwright install chromium` brings.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def _wait(page: Any, name: str) -> None:
    """Wait for a mark; Playwright's own way evaluates strings, which the page forbids."""
    start = time.monotonic()
    while page.evaluate(f"seen.{name}") is None:
        if time.monotonic() - start > PATIENCE:
            raise SystemExit(f"The page is not {name} after {PATIENCE} s.")
        page.wait_for_timeout(50)


def processes_of(browser: Any, kind: str = "") -> list[int]:
    """Processes of a browser, or those of one kind."""
    session = browser.new_browser_cdp_session()
    listed = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return [each["id"] for each in listed if not kind or each["type"] == kind]


def measure(browser: Any, page: Any, renderer: int, name: str, walk: Callable[[], None]) -> Step:
    """One part of the tour, with every task of the main thread traced."""
    browser.start_tracing(page=page, categories=["toplevel", "-*"])
    began, before = page.evaluate(NOW)
    waited_before = waited(renderer)
    with Watch(lambda: [renderer]) as memory:
        walk()
    ended, after = page.evaluate(NOW)
    tasks = _main_tasks(json.loads(browser.stop_tracing())["traceEvents"], renderer)
    return Step(
        name,
        (ended - began) / 1000,
        after - before,
        max((each["dur"] for each in tasks), default=0) / 1000,
        max((each.get("tdur", 0) for each in tasks), default=0) / 1000,
        began,
        ended,
        memory.peak,
        waited(renderer) - waited_before,
    )


def _main_tasks(events: list[dict[str, Any]], renderer: int) -> list[dict[str, Any]]:
    main = {
        each["tid"]
        for each in events
        if each["name"] == "thread_name"
        and each["pid"] == renderer
        and each["args"]["name"] == "CrRendererMain"
    }
    return [
        each
        for each in events
        if each["pid"] == renderer
        and each["tid"] in main
        and each["name"] == TASK
        and "dur" in each
    ]


def _tour(page: Any, word: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """What a visitor does, as names and functions."""
    box = page.locator("#wall").bounding_box()

    def at(place: tuple[float, float]) -> tuple[float, float]:
        return box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"]

    def wheel(place: tuple[float, float], notches: int) -> None:
        page.mouse.move(*at(place))
        for _ in range(abs(notches)):
            page.mouse.wheel(0, -120 if notches > 0 else 120)
            page.wait_for_timeout(30)
        page.wait_for_timeout(300)

    def in_and_out() -> None:
        for place in PLACES:
            wheel(place, 30)
            wheel(place, -30)

    def drag(notches: tuple[int, ...] = (0, 6, 8, 10)) -> None:
        for number in notches:
            wheel((0.5, 0.5), number)
            for dx, dy in ((-5, 0), (0, -4), (6, 3), (4, -5)):
                x, y = at((0.5, 0.5))
                page.mouse.move(x, y)
                page.mouse.down()
                for k in range(1, 61):
                    page.mouse.move(x + dx * k, y + dy * k)
                page.mouse.up()

    def keys() -> None:
        page.locator("#wall").focus()
        for key in (*["+"] * 12, *["ArrowRight"] * 15, *["ArrowDown"] * 15, *["-"] * 12, "0"):
            page.keyboard.press(key)
            page.wait_for_timeout(30)

    def search() -> None:
        page.locator("#search").fill("")
        page.locator("#search").press_sequentially(word, delay=60)
        page.wait_for_timeout(1000)

    def forget() -> None:
        page.locator("#search").fill("")
        page.wait_for_timeout(500)

    def look() -> None:
        page.locator("#wall").focus()
        page.keyboard.press("0")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.locator("#panel").wait_for(timeout=5000)
        for _ in range(10):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(50)

    def frames() -> None:
        fit()
        page.locator("#show-filters").click()
        page.locator("#frame-by").select_option(index=1)
        page.locator("#close-filters").click()
        drag((0, 3, 3, 3))  # the smallest cells with frames are the most

    def select() -> None:
        fit()
        page.locator("#mode-box").click()
        page.mouse.move(*at((0.01, 0.01)))
        page.mouse.down()
        page.mouse.move(*at((0.99, 0.99)), steps=30)
        page.mouse.up()
        page.locator("#mode-move").click()
        drag((0, 6))
        page.locator("#clear-selection").click()

    def fit() -> None:
        page.locator("#wall").focus()
        page.keyboard.press("0")
        page.wait_for_timeout(500)

    yield "fit", fit
    yield "wheel in and out", in_and_out
    yield "drag", drag
    yield "keys", keys
    yield "search", search
    yield "end of search", forget
    yield "larger pictures", look
    page.locator("#close").click()
    if page.locator("#frame-by option").count() > 1:
        yield "filter, frames, drag", frames
    yield "select all, drag", select


def _heap(page: Any) -> float:
    """Megabytes of live JavaScript objects."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def _share_drawn(screenshot: bytes) -> float:
    """Share of pixels that differ from the corner, which is paper."""
    pixels = np.asarray(Image.open(io.BytesIO(screenshot)).convert("RGB"), dtype=int)
    return float((np.abs(pixels - pixels[0, 0]).max(axis=2) > 8).mean())


def _evict(path: Path) -> None:
    """Make the system forget the files, so that they are read from the disk again."""
    for each in [path, *path.parent.rglob("*")] if path.name == "index.html" else [path]:
        if each.is_file():
            file = os.open(each, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
