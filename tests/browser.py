"""A headless Chromium for tests of pages: Debian's browser, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page


@dataclass
class Watched:
    """A page, and what went wrong in it since it was opened.

    Attributes:
        errors: messages of level error on the console, and exceptions that nothing caught.
        requests: addresses that it asked for, other than those in files and in the page itself.
    """

    page: "Page"
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Starts collecting."""
        self.page.on("console", self._take)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._ask(request.url))

    def _take(self, message: "ConsoleMessage") -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _ask(self, url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:", "about:")):
            self.requests.append(url)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A browser for the tests of one file; they are skipped where Chromium or Playwright is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is missing: apt install chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield launched
        launched.close()


@contextmanager
def watched_page(
    browser: "Browser", colour_scheme: Literal["light", "dark"] = "light", width: int = 1280, height: int = 900
) -> Iterator[Watched]:
    """A fresh page, with no motion, that notes errors and requests; closed at the end."""
    size = {"width": width, "height": height}
    context = browser.new_context(color_scheme=colour_scheme, reduced_motion="reduce", viewport=size)
    try:
        watched = Watched(context.new_page())
        watched.listen()
        yield watched
    finally:
        context.close()


@pytest.fixture
def page(browser: "Browser") -> Iterator[Watched]:
    """A page of 1280 x 900 in light colours."""
    with watched_page(browser) as watched:
        yield watched
