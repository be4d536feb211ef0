"""Pages opened from a file, in a browser without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

PATIENCE_MS = 60_000

#: All charts of a page are drawn.
DRAWN = "() => document.documentElement.dataset.charts === 'drawn'"

#: Width of what can be scrolled to, and of the window.
WIDTHS = "() => [document.documentElement.scrollWidth, innerWidth]"


@contextmanager
def page_of(browser: Browser, path: Path, **look: Any) -> Iterator[tuple[Page, list[str]]]:
    """A report opened from a file in a browser without a network; what must not happen is recorded."""
    context = browser.new_context(offline=True, **look)
    faults: list[str] = []
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: request.url == path.as_uri() or faults.append(request.url))
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path.as_uri())
        page.wait_for_function(DRAWN)
        yield page, faults
    finally:
        context.close()
