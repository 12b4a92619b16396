"""`unshuffle serve` in Chromium: how soon pictures are there and arranged, and how it moves."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.pages._memory import Watch, tree, whole
from benchmarks.pages._tour import PATIENCE, Step, measure, new_browser, processes_of

LARGE = (2304, 1728)  # four million pixels
DIFFERENT = 250  # large photos; the others are further names of them

# Milliseconds since the navigation until the page shows a thumbnail, and the arranged wall.
SCRIPT = """
(() => {
  const seen = { first: null, all: null, settled: null, long: [], frames: 0 };
  Object.defineProperty(window, "seen", { value: seen });
  const mark = (name) => {
    if (seen[name] !== null) return;
    seen[name] = 0;
    requestAnimationFrame(() => requestAnimationFrame((now) => { seen[name] = now; }));
  };
  new MutationObserver(() => {
    const { pictures, settled } = document.documentElement?.dataset ?? {};
    if (Number(pictures) > 0) mark("first");
    if (Number(pictures) > 0 && settled === "yes") mark("settled");
  }).observe(document, {
    subtree: true, childList: true, attributes: true,
    attributeFilter: ["data-pictures", "data-settled"],
  });
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) seen.long.push([each.startTime, each.duration]);
  }).observe({ type: "longtask", buffered: true });
  const count = () => { seen.frames += 1; requestAnimationFrame(count); };
  requestAnimationFrame(count);
})();
"""


@dataclass
class Served:
    """What was measured. Times in seconds, memory in megabytes."""

    listening: float = 0.0  # from the command until its address is printed
    first: float = 0.0  # from the opening of the page until a thumbnail is drawn
    settled: float = 0.0  # until the wall is arranged and nothing moves
    read: float = 0.0  # from the command until all pictures are read
    server: float = 0.0  # peak memory of the server, with the processes that read for it
    tab: float = 0.0  # peak memory of the tab
    steps: list[Step] = field(default_factory=list)


def make_large(folder: Path, n: int, *, data: Path) -> None:
    """Photos of four million pixels, some under several names."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.iterdir())) == n:
        return
    photos = np.load(data / "flickr320.npz")["images"]
    rng = np.random.default_rng(0)
    grain = rng.normal(0, 9, (LARGE[1], LARGE[0], 1)).astype(np.float32)
    for i in range(min(n, DIFFERENT)):
        image = Image.fromarray(photos[i]).resize(LARGE, Image.Resampling.BICUBIC)
        rough = np.asarray(image, dtype=np.float32) + np.roll(grain, i * 7919)
        Image.fromarray(rough.clip(0, 255).astype(np.uint8)).save(
            folder / f"{i:05}.jpg", quality=88
        )
    for i in range(DIFFERENT, n):
        (folder / f"{i:05}.jpg").hardlink_to(folder / f"{i % DIFFERENT:05}.jpg")


@contextmanager
def new_server(*folders: Path, home: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`unshuffle serve` with what it keeps in a folder of its own, and its address."""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
    }
    process = subprocess.Popen(
        [*(sys.executable, "-m", "unshuffle", "serve"), *folders, "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def visit_served(folder: Path, *, tour: bool = False, reload: bool = False) -> Served:
    """Serve a folder with nothing cached, open the page, and measure until it is settled.

    Parameters
    ----------
    folder : Path
        Pictures.
    tour : bool
        Whether to pan, zoom, arrange again and move a picture, with every task traced.
    reload : bool
        Whether to serve it twice and measure the second time, with all thumbnails cached.
    """
    with tempfile.TemporaryDirectory(prefix="unshuffle-served-") as home:
        if reload:
            with new_server(folder, home=Path(home)) as (_, address), new_browser() as browser:
                _open(_new_page(browser), address)
        return _visit(folder, Path(home), tour)


def _new_page(browser: Any) -> Any:
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.add_init_script(SCRIPT)
    return page


def _open(page: Any, address: str) -> None:
    page.goto(address, wait_until="commit")
    _wait(page, "settled")


def _visit(folder: Path, home: Path, tour: bool) -> Served:
    seen = Served()
    with new_browser() as browser:
        page = _new_page(browser)  # before the server: people have a browser open
        start = time.perf_counter()
        with new_server(folder, home=home) as (process, address):
            seen.listening = time.perf_counter() - start
            with Watch(lambda: tree(process.pid)) as memory:
                _open(page, address)
                seen.read = time.perf_counter() - start
                times = page.evaluate("seen")
                seen.first, seen.settled = times["first"] / 1000, times["settled"] / 1000
                renderer = max(processes_of(browser, "renderer"), key=whole)
                with Watch(lambda: [renderer]) as tab:
                    for name, walk in _walks(page) if tour else ():
                        seen.steps.append(measure(browser, page, renderer, name, walk))
                    tab.now()
                memory.now()
            seen.server, seen.tab = memory.peak, tab.peak
    return seen


def _walks(page: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """What a visitor does, as names and functions."""
    box = page.locator("#wall").bounding_box()

    def at(x: float, y: float) -> tuple[float, float]:
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def zoom() -> None:
        for place in ((0.5, 0.5), (0.4, 0.3)):
            page.mouse.move(*at(*place))
            for notch in (*[-120] * 25, *[120] * 25):
                page.mouse.wheel(0, notch)
                page.wait_for_timeout(30)

    def pan() -> None:
        page.locator("#mode-move").click()
        for notches in (0, 4, 4, 4):
            page.mouse.move(*at(0.5, 0.5))
            for _ in range(notches):
                page.mouse.wheel(0, -120)
            for dx, dy in ((-5, 0), (0, -4), (6, 3)):
                x, y = at(0.5, 0.5)
                page.mouse.move(x, y)
                page.mouse.down()
                for k in range(1, 61):
                    page.mouse.move(x + dx * k, y + dy * k)
                page.mouse.up()
        page.locator("#fit").click()
        page.locator("#mode-carry").click()

    def settle() -> None:
        page.wait_for_timeout(300)
        end = time.monotonic() + PATIENCE
        while page.locator('html[data-settled="yes"]').count() == 0:
            if time.monotonic() > end:
                raise SystemExit("The wall is not settled.")
            page.wait_for_timeout(50)

    def again() -> None:
        page.locator("#again").click()
        settle()

    def move() -> None:
        page.mouse.move(*at(0.45, 0.45))
        page.mouse.down()
        page.mouse.move(*at(0.6, 0.6), steps=20)
        page.mouse.up()
        settle()

    yield "zoom", zoom
    yield "pan", pan
    yield "arrange again", again
    yield "move a picture", move


def _wait(page: Any, name: str) -> None:
    end = time.monotonic() + 5 * PATIENCE
    while not page.evaluate(f"seen.{name}"):
        if time.monotonic() > end:
            raise SystemExit(f"The page is not {name} after {5 * PATIENCE} s.")
        page.wait_for_timeout(50)
