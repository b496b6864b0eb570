"""The pictures of the workbench's pages: python docs/workbench_pictures.py writes docs/images/workbench*.png.

A headless Chromium walks through the tutorial on the built-in example, so every picture shows what a reader will see.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from browser import chromium  # type: ignore[import-not-found]
from page import Page  # type: ignore[import-not-found]
from rankrls.app import demo
from rankrls.app.server import Server
from rankrls.app.session import Session

IMAGES = Path(__file__).parent / "images"
APP = "document.querySelector('.wb').workbench"
QUIET = f"{APP}.curve.done === 1 && {APP}.state.headline.done === 1 && ({APP}.state.before || !{APP}.state.undo)"


def shot(page: Page, name: str) -> None:
    """A picture of what is there when everything has arrived."""
    page.until(QUIET)
    page.until("document.getAnimations().every((one) => one.playState !== 'running')")
    time.sleep(0.6)
    taken = base64.b64decode(page.browser.command("Page.captureScreenshot", format="png")["data"])
    with Image.open(io.BytesIO(taken)) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the bytes, and no eye sees it
    small.save(IMAGES / f"{name}.png", optimize=True)


def drag(page: Page, source: int, target: int) -> None:
    """The document in one place dragged to another; both counted from one."""
    rows = page.rows()
    grip = lambda place: page.centre(f"[data-row='{rows[place - 1]}'] .wb-grip")
    page.drag(grip(source), grip(target))
    page.until(f"{APP}.state.preferences.length === 1")


def choose(page: Page, *titles: str) -> None:
    """Click documents by the start of their titles."""
    for title in titles:
        documents = page.app("list.documents")
        row = next(one["row"] for one in documents if one["title"].startswith(title))
        page.click(f"[data-row='{row}'] .wb-cell-text")
    page.until("document.querySelectorAll('.wb-why-bars li').length > 3")


def start(browser, scheme: str, width: int, height: int) -> tuple[Page, Server]:  # type: ignore[no-untyped-def]
    """A page on the example."""
    browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.command("Emulation.setScrollbarsHidden", hidden=True)
    server = Server(Session(demo())).start()
    page = Page(browser, server.url, width)
    options = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600}
    browser.command("Emulation.setDeviceMetricsOverride", **options)
    return page, server


def tour(browser) -> None:  # type: ignore[no-untyped-def]
    """The pictures of the tutorial."""
    page, server = start(browser, "light", 1360, 850)
    shot(page, "workbench")
    drag(page, 7, 4)
    choose(page, "Desk lamp, USB, foldable", "Desk lamp, foldable")
    shot(page, "workbench-why")
    page.press("Escape")
    page.press("u")
    for action in (
        {"do": "features", "off": [demo().feature_names.index("pagerank")]},
        {"do": "snapshot", "name": "Without pagerank"},
        {"do": "set", "name": "tied_pairs", "value": True},
    ):
        server.session.do(action)
    page.until(f"{APP}.state.settings.tied_pairs")
    page.until(QUIET)
    page.click(".wb-section-tools .wb-small")
    page.until(f"{APP}.state.undo.startsWith('alpha')")
    page.press("c")
    page.until("document.querySelectorAll('dialog .wb-chips input').length === 3")
    page.ask("document.querySelector('dialog .wb-chips input:not(:checked)').click()")
    page.until("document.querySelectorAll('.wb-pair').length === 2")
    shot(page, "workbench-compare")
    server.close()


def looks(browser) -> None:  # type: ignore[no-untyped-def]
    """Dark, and on a phone."""
    page, server = start(browser, "dark", 1360, 850)
    drag(page, 7, 4)
    choose(page, "Desk lamp, USB, foldable", "Desk lamp, foldable")
    shot(page, "workbench-dark")
    server.close()
    page, server = start(browser, "light", 375, 760)
    drag(page, 7, 4)
    page.ask("document.querySelector('.wb-doc-box').scrollTo(0, 0)")
    shot(page, "workbench-phone")
    server.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        os.environ["XDG_STATE_HOME"] = folder
        tour(browser)
        looks(browser)


if __name__ == "__main__":
    main()
