"""A Chromium page with JupyterLab in it, and a record of everything that must not happen there."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from browser.server import TOKEN, Server

#: What a test waits at most for something that takes a moment on an idle machine.
PATIENCE_S = 30.0

#: Opening a notebook with a kernel, and a first chart.
OPENING_S = 90.0

#: Whatever leaves the machine; pages, sockets and fonts alike.
_OUTSIDE = re.compile(r"^(?!about:|data:|blob:|(?:http|ws)://127\.0\.0\.1[:/]).")

# Vega's views are not on the page; the shelf on which the widgets share Vega is, and this puts a
# labelled one there first, so that each chart's element holds its view.
_VIEWS = """
const KEY = Symbol.for("gpuplan.vega");
let arrived;
const ready = new Promise((resolve) => { arrived = resolve; });
globalThis[KEY] = { ready, resolve: ({ vegaEmbed }) => arrived({
  vegaEmbed: async (host, ...rest) => {
    const made = await vegaEmbed(host, ...rest);
    host.vegaView = made.view;
    return made;
  } }) };
"""

# An idle dot in the status bar is not enough: the kernel may still be without a connection.
_READY = """
async (path) => {
  const app = window.jupyterapp;
  if (!app) return false;
  await app.restored;
  const panel = app.shell.currentWidget;
  if (panel?.context?.path !== path) return false;
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}
"""

_RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"

_SET_SOURCES = """
(sources) => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets;
  sources.forEach((source, i) => cells[i].model.sharedModel.setSource(source));
}
"""

_CELLS = "() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells"

_FAILED = """
() => window.jupyterapp.shell.currentWidget.content.model.toJSON().cells
  .flatMap((cell) => cell.outputs ?? [])
  .filter((output) => output.output_type === "error")
  .map((output) => `${output.ename}: ${output.evalue}`)
"""


class Watched:
    """A page in a context of its own, and a record of what must not happen there.

    Attributes
    ----------
    page : Page
        Playwright's page.
    outside : list of str
        Addresses outside this machine that anything on the page asked for; none got an answer.
    errors : list of str
        Errors of the console and of scripts, and dialogs.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []
        context.add_init_script(_VIEWS)
        context.route(_OUTSIDE, lambda route: route.abort())
        context.on("request", lambda request: self._note(request.url))
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.on("websocket", lambda socket: self._note(socket.url))
        self.page.on("pageerror", lambda error: self.errors.append(f"script: {error}"))
        self.page.on("console", self._heard)
        self.page.on(
            "dialog", lambda dialog: (self.errors.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )

    def _note(self, url: str) -> None:
        if _OUTSIDE.match(url):
            self.outside.append(url)

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text} ({message.location.get('url', '')})")

    def faults(self) -> list[str]:
        """Everything recorded so far that must not happen, what is still on its way included."""
        self.page.evaluate("() => new Promise((done) => setTimeout(done))")
        return [*(f"outside: {url}" for url in self.outside), *self.errors]


class Desk(Watched):
    """A page of JupyterLab."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        super().__init__(context)
        self.server = server

    def open(self, notebook: str) -> None:
        """Open a notebook and wait for a kernel that listens."""
        self.page.goto(f"{self.server.url}/lab/tree/{notebook}?token={TOKEN}&reset")

        def ready() -> bool:
            try:
                return bool(self.page.evaluate(_READY, notebook))
            except Error:  # the page goes to its workspace's own address meanwhile
                return False

        until(ready, f"{notebook} has no kernel", OPENING_S)

    def run_all(self, *sources: str) -> None:
        """Run all cells, after giving the first ones these sources; wait until they have run.

        Outputs of an earlier run go first, so that nobody takes them for new ones.
        """
        self.clear()
        self.page.evaluate(_SET_SOURCES, list(sources))
        self.page.evaluate(_RUN_ALL)

    def clear(self) -> None:
        """Remove all outputs."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
        self.page.wait_for_function("() => !document.querySelector('.jp-OutputArea-output')")

    def code(self) -> dict[int, str]:
        """Sources of the code cells by their place in the notebook."""
        cells = self.page.evaluate(_CELLS)
        return {place: cell["source"] for place, cell in enumerate(cells) if cell["cell_type"] == "code"}

    def failed_cells(self) -> list[str]:
        """Errors of cells, as name and value."""
        failed: list[str] = self.page.evaluate(_FAILED)
        return failed

    def dark(self, on: bool) -> None:
        """Choose JupyterLab's dark or light theme."""
        name = "JupyterLab Dark" if on else "JupyterLab Light"
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name
        )
        self.page.wait_for_function(
            "(light) => document.body.dataset.jpThemeLight === light", arg="false" if on else "true"
        )


def until(holds: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """Ask until the answer is true, and return it; `what` says what did not come about."""
    end = time.monotonic() + seconds
    while True:
        answer = holds()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"{what} (waited {seconds:g} s)")
        time.sleep(0.03)


@contextmanager
def chromium_running(path: str) -> Iterator[Browser]:
    """Start Chromium without any of its own calls home."""
    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-domain-reliability",
    ]
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()


@contextmanager
def desk_of(browser: Browser, server: Server, *, width: int = 1300, height: int = 1100) -> Iterator[Desk]:
    """Open a page of JupyterLab with a clipboard and downloads."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, accept_downloads=True, service_workers="block"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    try:
        yield Desk(context, server)
    finally:
        context.close()
