"""A page of the app, and a person without a mouse in front of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser

from browser.app_server import App
from browser.desk import OPENING_S, Watched
from browser.screen import Screen

#: More presses of the tab key than any page has stops.
MOST_STOPS = 400

# The element that has the focus: what it is, how a screen reader calls it, whether the focus is seen.
_FOCUS = """
() => {
  const at = document.activeElement;
  const look = getComputedStyle(at);
  const named = at.getAttribute("aria-label") || (at.labels?.[0] ?? null)?.textContent || at.textContent || at.title;
  const seen = look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 1 || parseFloat(look.strokeWidth) >= 3;
  const box = at.getBoundingClientRect();
  return {
    inside: at.closest(".gp-explorer") !== null, name: named.trim(), seen,
    stop: at.dataset.stop ??= String(globalThis.gpStops = (globalThis.gpStops ?? 0) + 1),
    what: `${at.tagName.toLowerCase()}.${at.getAttribute("class") ?? ""}`, width: box.width, height: box.height,
  };
}
"""

# What a mouse could work and keys must therefore reach: everything of the explorer that is shown and not switched off.
# A group of points is one stop.
_WORKED = """
() => [...document.querySelectorAll(`.gp-explorer :is(select, input, button, textarea, summary, .noUi-handle,
    .jupyter-widget-Collapse-header, .gp-curve-point[tabindex="0"])`)]
  .filter((part) => part.checkVisibility() && !part.disabled && part.type !== "file"
    && !part.closest(".noUi-target[disabled]") && part.getBoundingClientRect().width > 1)
  .filter((part) => part.dataset.stop === undefined)
  .map((part) => `${part.tagName.toLowerCase()}.${part.getAttribute("class")} ${part.ariaLabel ?? part.textContent}`)
"""

_TOP = "() => document.querySelector('.gp-app-bar a').focus()"

_SAID = """
() => {
  globalThis.gpSaid = [];
  const place = document.querySelector(".gp-spoken");
  new MutationObserver(() => gpSaid.push(place.textContent)).observe(place, { childList: true, characterData: true });
}
"""


class AppPage(Watched):
    """A page of the app in a browser of its own, with no cookies of others; `name` is for tests."""

    name = ""

    def open(self, address: str) -> "AppPage":
        """Go to an address; where it is an explorer's, wait for its first chart."""
        self.page.goto(address, timeout=OPENING_S * 1000)  # the first kernel waits until everything is warm
        if "/explore/" in address:
            self.page.locator(".gp-chart[data-rev] canvas").first.wait_for(timeout=OPENING_S * 1000)
        return self

    @property
    def screen(self) -> Screen:
        """What its explorer shows."""
        return Screen(self.page)

    @property
    def headline(self) -> str:
        """The change in words."""
        return self.page.locator(".gp-headline").inner_text()

    # ------------------------------------------------------------------ keys alone

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            self.page.keyboard.press(key)

    def focus(self) -> dict[str, Any]:
        """What has the focus."""
        found: dict[str, Any] = self.page.evaluate(_FOCUS)
        return found

    def top(self) -> None:
        """Begin at the first stop of the page."""
        self.page.evaluate(_TOP)

    def walk(self) -> list[dict[str, Any]]:
        """Press the tab key until the explorer is left; every stop in it, in order."""
        self.top()
        stops: list[dict[str, Any]] = []
        for _ in range(MOST_STOPS):
            self.press("Tab")
            at = self.focus()
            if at["inside"]:
                stops.append(at)
            elif stops:
                return stops
        raise AssertionError(f"the tab key does not leave the explorer; it ends at {stops[-1:]}")

    def missed(self) -> list[str]:
        """What a mouse could work and the tab key has not come to."""
        found: list[str] = self.page.evaluate(_WORKED)
        return found

    def reach(self, selector: str) -> None:
        """Press the tab key until something has the focus."""
        for _ in range(MOST_STOPS):
            if self.page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
                return
            self.press("Tab")
        raise AssertionError(f"the tab key does not come to {selector}")

    def listen(self) -> None:
        """Begin to note what is said to people who do not see the page."""
        self.page.evaluate(_SAID)

    def said(self) -> Sequence[str]:
        """What was said since."""
        found: list[str] = self.page.evaluate("() => gpSaid")
        return found


@contextmanager
def visiting(
    browser: Browser, app: App, *, width: int = 1280, height: int = 900, dark: bool = False
) -> Iterator[AppPage]:
    """A page of the app for one visitor, who has a browser of his own."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=app.url)
    try:
        yield AppPage(context)
    finally:
        context.close()
