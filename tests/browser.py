"""Chromium for tests that open a page, and what no page may do in it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OWN = ("file:", "data:", "blob:")  # what a page may load
# Nothing leaves this machine, even where a test fails; the sandbox does not start as root.
FLAGS = ("--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")

Opener = Callable[..., Any]


# Not of the session: while Playwright runs, asyncio takes its loop for that of every other test.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window; skips the tests where there is none or it does not start."""
    reason = "Playwright is not installed, which drives the browser"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium or Chrome was found to open pages in")
    with playwright.sync_playwright() as driver:
        try:
            opened = driver.chromium.launch(executable_path=found, args=[*FLAGS])
        except playwright.Error as error:
            pytest.skip(f"the browser does not start here: {str(error)[-200:]}")
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Opener]:
    """Opens a page and waits until it is complete; the test fails if any page complains.

    A complaint is an error in the console or in a script, a refused resource, a dialog of the
    browser, or a request for anything that is not a file of this machine or part of the page. A
    page that is served, given by its address, may ask its own server alone; `forgiven` are
    beginnings of complaints that are expected.
    """
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_it(
        place: Path | str,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
        anchor: str = "",
        motion: bool = False,
        forgiven: Sequence[str] = (),
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            is_mobile=touch,
            reduced_motion="no-preference" if motion else "reduce",
        )
        context.set_default_timeout(300_000)  # milliseconds; other work may share the cores
        contexts.append(context)
        page = context.new_page()
        # Other ways of waiting evaluate strings, which pages forbid.
        if isinstance(place, str):
            server = urlsplit(place)
            watch(page, complaints, (*OWN, f"{server.scheme}://{server.netloc}/"), forgiven)
            page.goto(place)
            page.locator('html[data-ready="yes"]').wait_for(state="attached")
        else:
            watch(page, complaints)
            page.goto(place.resolve().as_uri() + (f"#{anchor}" if anchor else ""))
            page.locator('html[data-ready="yes"][data-loaded="yes"]').wait_for(state="attached")
        return page

    yield open_it
    heard = list(complaints)  # closing ends requests, which is none
    for context in contexts:
        context.close()
    if heard:
        pytest.fail("\n".join(heard))


def watch(
    page: Any,
    complaints: list[str],
    own: tuple[str, ...] = OWN,
    forgiven: Sequence[str] = (),
) -> None:
    """Write down all that a page must not do."""

    def complain(words: str) -> None:
        if not words.startswith(tuple(forgiven)):
            complaints.append(words)

    def hear(message: Any) -> None:
        if message.type == "error":
            complain(f"console: {message.text}")

    def see(request: Any) -> None:
        if not request.url.startswith(own):
            complain(f"request: {request.url}")

    def miss(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page no longer wants it
            complain(f"not loaded: {request.url[:200]}")

    def refuse(dialog: Any) -> None:
        complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", hear)
    page.on("pageerror", lambda error: complain(f"script: {error}"))
    page.on("request", see)
    page.on("requestfailed", miss)
    page.on("dialog", refuse)
