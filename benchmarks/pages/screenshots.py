"""Make the pictures of pages and walls in docs/images again.

They show drawn pictures (`_scenes`) and parts of the photos that ship with scikit-learn, which may
be passed on. Needs the extras bench and web, and Chromium.
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

from benchmarks.pages._scenes import scenes
from benchmarks.pages._served import new_server
from benchmarks.pages._tour import new_browser

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
N_WALL, N_SERVED, N_HALVES, N_CROPS, N_LARGE = 1000, 320, 180, 300, 100_000
PHONE = {"width": 390, "height": 780}
GAP, BETWEEN = 20, (150, 150, 145)
A_FLOWER, A_SEA = (0.325, 0.17), (0.6, 0.64)  # places on the wall of `page-wide`
SETTLED = 'html[data-settled="yes"]'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.screenshots", description=__doc__
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(SHOTS)}; default: all"
    )
    parser.add_argument("-o", "--output", type=Path, default=IMAGES, help="default: docs/images")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(SHOTS):
        parser.error(f"unknown name {min(unknown)!r}: choose from {', '.join(SHOTS)}")
    with tempfile.TemporaryDirectory(prefix="unshuffle-shots-") as home, ExitStack() as stack:
        studio = Studio(Path(home), stack.enter_context(new_browser()), stack)
        for name in options.names or SHOTS:
            image = SHOTS[name](studio)
            image.save(options.output / f"{name}.jpg", quality=85, optimize=True)
            print(name, *image.size)
    return 0


@dataclass
class Studio:
    """A browser, and folders and servers that several pictures share."""

    home: Path
    browser: Any
    stack: ExitStack

    def pictures(self, n: int) -> Path:
        """A folder of drawn pictures, one folder in it for each kind."""
        folder = self.home / str(n) / "pictures"
        if not folder.exists():
            for number, (kind, image) in enumerate(scenes(n)):
                (folder / kind).mkdir(parents=True, exist_ok=True)
                image.save(folder / kind / f"{number:04}.jpg", quality=90)
        return folder

    def crops(self) -> Path:
        """A folder of parts of the two photos that ship with scikit-learn."""
        folder = self.home / "photos"
        if not folder.exists():
            folder.mkdir()
            rng = np.random.default_rng(0)
            photos = load_sample_images().images
            for number in range(N_CROPS):
                # The flower has the colors that are drawn; the temple has all others.
                photo, side = photos[number % 3 > 0], int(rng.integers(40, 130))
                top, left = (rng.integers(length - side) for length in photo.shape[:2])
                part = Image.fromarray(photo[top : top + side, left : left + side])
                part = part.resize((256, 256), Image.Resampling.BICUBIC)
                part.save(folder / f"{number:03}.jpg", quality=90)
        return folder

    def halves(self) -> tuple[Path, Path]:
        """Left halves of drawn pictures, and their right halves in another order."""
        left, right = self.home / "left", self.home / "right"
        if not left.exists():
            left.mkdir()
            right.mkdir()
            order = np.random.default_rng(0).permutation(N_HALVES)
            for number, (kind, image) in enumerate(scenes(N_HALVES, seed=3)):
                middle, height = image.width // 2, image.height
                image.crop((0, 0, middle, height)).save(left / f"{kind}-{number:03}.png")
                part = image.crop((middle, 0, image.width, height))
                part.save(right / f"part{order[number]:03}.png")
        return left, right

    def wall(self) -> Path:
        """A wall of drawn pictures by content, whose regions are labeled."""
        path = self.home / "wall"
        if not path.exists():
            from unshuffle import GridLayout
            from unshuffle.images import describe, read_folder, write_page
            from unshuffle.layout import look_alikes

            photos = read_folder(self.pictures(N_WALL), recursive=True, size=128, previews=256)
            X, kernel = describe(photos, "color+content")
            grid = GridLayout(kernel=kernel, random_state=0).fit(X).grid_
            columns = {
                "kind": [name.split("/")[0] for name in photos.names],
                "brightness": [f"{each.mean():.0f}" for each in photos.arrays],
            }
            alike = look_alikes(X, 8, kernel=kernel)
            named = {"columns": columns, "labels": "kind", "neighbors": alike}
            write_page(path, photos, grid, photos.names, title="pictures", tile=128, **named)
        return path

    def opened(self, address: str, **options: Any) -> Any:
        """A page of the wall in a folder, ready."""
        page = self.browser.new_page(**options)
        page.goto(address)
        page.locator('html[data-ready="yes"][data-loaded="yes"]').wait_for(state="attached")
        return page

    @contextmanager
    def served(self, *folders: Path, view: str = "", **options: Any) -> Iterator[Any]:
        """A page of `unshuffle serve`, when all is done; what it keeps is new each time."""
        with (
            tempfile.TemporaryDirectory(dir=self.home) as kept,
            new_server(*folders, home=Path(kept)) as (_, address),
        ):
            page = self.browser.new_page(**{"reduced_motion": "reduce", **options})
            page.goto(address)
            settle(page)
            if view:
                page.goto(address.split("?")[0].rstrip("/") + view)
                settle(page)
            yield page
            page.close()


def settle(page: Any) -> None:
    page.wait_for_timeout(500)
    page.locator(SETTLED).wait_for(state="attached", timeout=300_000)
    page.wait_for_timeout(700)


def shot(page: Any) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def beside(*images: Image.Image) -> Image.Image:
    """Pictures of one height, side by side."""
    width = sum(image.width for image in images) + GAP * (len(images) - 1)
    joined = Image.new("RGB", (width, images[0].height), BETWEEN)
    x = 0
    for image in images:
        joined.paste(image, (x, 0))
        x += image.width + GAP
    return joined


def click_at(page: Any, x: float, y: float) -> None:
    """Click into the wall, at shares of its sides."""
    box = page.locator("#wall").bounding_box()
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.wait_for_timeout(700)


# ---- the page that is served


def page_wide(studio: Studio) -> Image.Image:
    with studio.served(studio.pictures(N_SERVED), viewport=size(1280, 800)) as page:
        return shot(page)


def page_dark(studio: Studio) -> Image.Image:
    dark = {"viewport": size(1280, 800), "color_scheme": "dark"}
    with studio.served(studio.pictures(N_SERVED), **dark) as page:
        click_at(page, *A_SEA)
        return shot(page)


def page_phone(studio: Studio) -> Image.Image:
    with studio.served(studio.pictures(N_SERVED), viewport=PHONE) as page:
        wall = shot(page)
        page.locator("#show-settings").click()
        page.emulate_media(color_scheme="dark")
        settings = shot(page)
        write_letters(page, "HELLO")
        page.emulate_media(color_scheme="light")
        page.locator("#close-settings").click()
        page.wait_for_timeout(500)
        letters = shot(page)
    with studio.served(viewport=PHONE) as page:
        return beside(wall, settings, letters, shot(page))


def page_views(studio: Studio) -> Image.Image:
    """Eight views, small, light and dark in turn."""

    def opened(page: Any) -> None:
        click_at(page, *A_FLOWER)
        page.locator("#larger").click()

    def carry(page: Any) -> None:
        box = page.locator("#wall").bounding_box()
        places = zip("xy", A_FLOWER, ("width", "height"), strict=True)
        x, y = (box[start] + share * box[side] for start, share, side in places)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 250, y + 150, steps=8)

    views: tuple[tuple[int, Callable[[Any], object]], ...] = (
        (0, lambda page: None),
        (N_SERVED, lambda page: None),
        (N_SERVED, carry),
        (N_SERVED, lambda page: write_letters(page, "HELLO")),
        (N_SERVED, lambda page: click_at(page, *A_FLOWER)),
        (N_SERVED, opened),
        (N_SERVED, lambda page: page.locator("#show-export").click()),
        (N_SERVED, lambda page: page.locator("#show-help").click()),
    )
    shots = []
    for number, (n, act) in enumerate(views):
        folders = (studio.pictures(n),) if n else ()
        scheme = "dark" if number % 2 else "light"
        with studio.served(*folders, viewport=size(1280, 800), color_scheme=scheme) as page:
            act(page)
            page.wait_for_timeout(700)
            shots.append(shot(page).resize((480, 300), Image.Resampling.LANCZOS))
    rows = [beside(*shots[:4]), beside(*shots[4:])]
    joined = Image.new("RGB", (rows[0].width, 2 * rows[0].height + GAP), BETWEEN)
    for k, row in enumerate(rows):
        joined.paste(row, (0, k * (row.height + GAP)))
    return joined


def write_letters(page: Any, text: str) -> None:
    page.get_by_text("Letters", exact=True).first.click()
    page.locator("#letters").fill(text)
    page.locator("#letters").press("Enter")
    settle(page)


# ---- Match


@contextmanager
def matched(studio: Studio, **options: Any) -> Iterator[Any]:
    with studio.served(*studio.halves(), **options) as page:
        yield page


def match_wide(studio: Studio) -> Image.Image:
    with matched(studio, viewport=size(1400, 900)) as page:
        return shot(page)


def match_questions(studio: Studio) -> Image.Image:
    with matched(studio, viewport=size(1400, 900)) as page:
        return asked(page)


def asked(page: Any) -> Image.Image:
    page.locator("#ask").click()
    page.wait_for_timeout(1500)
    return shot(page)


def match_dark(studio: Studio) -> Image.Image:
    with matched(studio, viewport=size(1400, 900), color_scheme="dark") as page:
        return doubted(page)


def doubted(page: Any) -> Image.Image:
    page.get_by_role("button", name="Wrong").first.click()
    page.mouse.move(0, 0)  # candidates under it would be tried
    page.wait_for_timeout(1500)
    return shot(page)


def match_phone(studio: Studio) -> Image.Image:
    with matched(studio, viewport=PHONE) as page:
        first = shot(page)
        second = doubted(page)
        page.locator("#close").click()
        return beside(first, second, asked(page))


# ---- Collage


@contextmanager
def composed(studio: Studio, **options: Any) -> Iterator[Any]:
    with studio.served(studio.crops(), view="/collage", **options) as page:
        template = studio.home / "flower.jpg"
        if not template.exists():
            Image.fromarray(load_sample_images().images[1]).save(template, quality=95)
        page.locator("#template-input").set_input_files(template)
        settle(page)
        yield page


def collage_page(studio: Studio) -> Image.Image:
    with composed(studio, viewport=size(1400, 900)) as page:
        return shot(page)


def collage_dark(studio: Studio) -> Image.Image:
    with composed(studio, viewport=size(1400, 900), color_scheme="dark") as page:
        page.locator("#show-export").click()
        return shot(page)


def collage_phone(studio: Studio) -> Image.Image:
    with composed(studio, viewport=PHONE) as page:
        first = shot(page)
        page.locator("#show-settings").click()
        page.wait_for_timeout(500)
        second = shot(page)
        page.locator("#close-settings").click()
        page.locator("#show-export").click()
        page.wait_for_timeout(300)
        return beside(first, second, shot(page))


# ---- walls that are written


def wall_page(studio: Studio) -> Image.Image:
    page = studio.opened(address(studio.wall()), viewport=size(1300, 820))
    frame_by_kind(page)
    page.locator("#wall").focus()
    for _ in range(4):
        page.keyboard.press("+")
        page.wait_for_timeout(200)
    click_at(page, 0.5, 0.5)
    page.wait_for_timeout(1000)
    return shot(page)


def frame_by_kind(page: Any) -> None:
    page.locator("#show-filters").click()
    page.locator("#frame-by").select_option(label="kind")


def wall_dark(studio: Studio) -> Image.Image:
    dark = {"viewport": size(1300, 820), "color_scheme": "dark"}
    page = studio.opened(address(studio.wall()), **dark)
    page.locator("#mode-lasso").click()
    box = page.locator("#wall").bounding_box()
    turns = np.linspace(0, 2 * np.pi, 60)
    places = zip(0.47 + 0.11 * np.cos(turns), 0.42 + 0.16 * np.sin(turns), strict=True)
    for k, (x, y) in enumerate(places):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if k == 0:
            page.mouse.down()
    page.mouse.up()
    page.mouse.move(0, 0)
    page.wait_for_timeout(700)
    return shot(page)


def wall_phone(studio: Studio) -> Image.Image:
    page = studio.opened(address(studio.wall()), viewport=PHONE)
    page.wait_for_timeout(500)
    first = shot(page)
    page.emulate_media(color_scheme="dark")
    frame_by_kind(page)
    page.wait_for_timeout(500)
    second = shot(page)
    page.locator("#close-filters").click()
    page.locator("#search").fill("flower")
    page.locator("#search").press("Enter")
    page.wait_for_timeout(500)
    page.locator("#wall").focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(1200)
    return beside(first, second, shot(page))


def wall_color(studio: Studio) -> Image.Image:
    return arranged(studio, "color")


def wall_content(studio: Studio) -> Image.Image:
    return arranged(studio, "content")


def arranged(studio: Studio, features: str) -> Image.Image:
    """The drawn pictures on a grid, without a page."""
    from unshuffle import GridLayout
    from unshuffle.images import describe, read_folder

    photos = read_folder(studio.pictures(N_WALL), recursive=True, size=56)
    X, kernel = describe(photos, features)
    layout = GridLayout((25, 40), kernel=kernel, random_state=0).fit(X)
    cells = layout.arrange(photos.arrays)
    sheet = np.vstack([np.hstack(list(row)) for row in cells])
    return Image.fromarray(sheet).resize((1160, 725), Image.Resampling.LANCZOS)


def wall_100k(studio: Studio) -> Image.Image:
    from unshuffle import GridLayout
    from unshuffle.images import describe, write_page

    sources = [np.asarray(image.resize((60, 60))) for _, image in scenes(N_WALL)]
    rng = np.random.default_rng(0)
    pictures = np.empty((N_LARGE, 48, 48, 3), np.uint8)
    for k in range(N_LARGE):
        top, left = rng.integers(0, 13, size=2)
        part = sources[k % N_WALL][top : top + 48, left : left + 48]
        part = part[:, :: 1 - 2 * int(rng.integers(2))] * rng.uniform(0.7, 1.3, 3)
        pictures[k] = part.clip(0, 255)
    X, kernel = describe(pictures, "color")
    grid = GridLayout(kernel=kernel, quality="fast", random_state=0).fit(X).grid_
    path = studio.home / "large"
    write_page(path, pictures, grid, [f"{k:06}" for k in range(N_LARGE)], title="pictures")
    page = studio.opened(address(path), viewport=size(900, 574))
    page.wait_for_timeout(1500)
    far = shot(page)
    page.locator("#wall").focus()
    for _ in range(13):
        page.keyboard.press("+")
        page.wait_for_timeout(200)
    page.wait_for_timeout(1500)
    joined = beside(far, shot(page))
    return joined.resize(
        (1500, round(joined.height * 1500 / joined.width)), Image.Resampling.LANCZOS
    )


def address(wall: Path) -> str:
    return (wall / "index.html").as_uri()


def size(width: int, height: int) -> dict[str, int]:
    return {"width": width, "height": height}


SHOTS: dict[str, Callable[[Studio], Image.Image]] = {
    "page-wide": page_wide,
    "page-dark": page_dark,
    "page-phone": page_phone,
    "page-views": page_views,
    "match-wide": match_wide,
    "match-questions": match_questions,
    "match-dark": match_dark,
    "match-phone": match_phone,
    "collage-page": collage_page,
    "collage-dark": collage_dark,
    "collage-phone": collage_phone,
    "wall-page": wall_page,
    "wall-dark": wall_dark,
    "wall-phone": wall_phone,
    "wall-color": wall_color,
    "wall-content": wall_content,
    "wall-100k": wall_100k,
}

if __name__ == "__main__":
    sys.exit(main())
