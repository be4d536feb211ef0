"""What the benchmarks share: a stopwatch inside the page, percentiles, the table, and how a bench runs."""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from chromium import find_chromium
from playwright.sync_api import Page

from browser.app_server import App, app_running
from browser.desk import _VIEWS as VIEWS
from browser.desk import OPENING_S, Desk, chromium_running, desk_of
from browser.screen import Screen
from browser.server import Server, serving
from gpuplan.benchmarks.frame import duration
from gpuplan.text import aligned

# Notes when a slider is moved (the event's own time) and when the frame is over that shows a new picture.
_WATCH = """
() => {
  const log = { inputs: [], paints: [] };
  for (const type of ["keydown", "mousemove"])
    document.addEventListener(type, (event) => { log.inputs.push(event.timeStamp); }, { capture: true });
  const chart = document.querySelector(".gp-chart");
  new MutationObserver(() => requestAnimationFrame(() => {
    const after = new MessageChannel();   // a task that is run once the frame is painted
    after.port1.onmessage = () => { log.paints.push(performance.now()); };
    after.port2.postMessage(0);
  })).observe(chart, { attributes: true, attributeFilter: ["data-rev"] });
  globalThis.stopwatch = log;
}
"""

# Moves a slider so many times, each time after the picture of the move before.
_MANY = """
async ([handle, keys]) => {
  const target = document.querySelector(handle);
  const log = globalThis.stopwatch;
  for (const key of keys) {
    const before = log.paints.length;
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    while (log.paints.length === before) await new Promise((next) => setTimeout(next, 2));
  }
}
"""


class Stopwatch:
    """Times of inputs and repaints of the explorer on a page, in the page's own clock."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.evaluate(_WATCH)

    @property
    def inputs(self) -> list[float]:
        """When keys were pressed or the mouse moved, in seconds."""
        return [ms / 1000 for ms in self.page.evaluate("() => stopwatch.inputs")]

    @property
    def paints(self) -> list[float]:
        """When a frame with a new picture was over, in seconds."""
        return [ms / 1000 for ms in self.page.evaluate("() => stopwatch.paints")]

    def press(self, key: str) -> float:
        """Seconds from a key to the picture that it brings."""
        before = len(self.paints)
        self.page.keyboard.press(key)
        self.page.wait_for_function("(before) => stopwatch.paints.length > before", arg=before)
        return self.paints[before] - self.inputs[-1]

    def press_many(self, handle: str, keys: Sequence[str]) -> None:
        """Press keys one after the other, each after the picture of the one before."""
        self.page.evaluate(_MANY, [handle, list(keys)])

    def settled(self, quiet_s: float = 1.0) -> float:
        """Seconds from the last input to the last picture, once no further one comes."""
        count = -1
        while count != (count := len(self.paints)):
            self.page.wait_for_timeout(quiet_s * 1000)
        return max(0.0, self.paints[-1] - self.inputs[-1])


def percentile(values: Sequence[float], q: float) -> float:
    """The sorted value at index ``min(n - 1, floor(q n))``."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


class Table:
    """Rows of measures beside their aims, in the form of `gpuplan bench`."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, str, str]] = []
        self.wrong = False

    def seconds(self, name: str, measured: float, target: float | None = None, note: str = "") -> None:
        """Add a time."""
        ratio = "" if target is None else f"{measured / target:.2f}"
        self._rows.append((name, duration(measured), duration(target), ratio, note))

    def text(self, name: str, measured: str, target: str = "", note: str = "") -> None:
        """Add whatever is no time."""
        self._rows.append((name, measured, target, "", note))

    @contextmanager
    def answers(self, name: str) -> Iterator[None]:
        """A wrong answer inside becomes a row, and the bench fails at its end."""
        try:
            yield
        except AssertionError as error:
            self.wrong = True
            self._rows.append((name, "WRONG", "", "", str(error).splitlines()[0] if str(error) else ""))

    def __str__(self) -> str:
        return aligned(("measure", "measured", "target", "ratio", ""), self._rows, right=(1, 2, 3))


def run(bench: Callable[[Table, "Bench"], None]) -> None:
    """Run a bench, print its table, and exit with 1 where an answer was wrong."""
    path = find_chromium()
    if path is None:
        sys.exit("no Chromium: install Debian's chromium or name one in $CHROMIUM")
    table = Table()
    with contextlib.ExitStack() as stack:
        bench(table, Bench(path, stack))
    print(table)
    sys.exit(1 if table.wrong else 0)


class Bench:
    """Starts servers and pages for a bench and stops them at its end."""

    def __init__(self, chromium: str, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._browser = stack.enter_context(chromium_running(chromium))

    def server(self, more: Mapping[str, str] | None = None) -> Server:
        """Start a JupyterLab of its own, on an empty folder."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuplan-bench-")))
        return self._stack.enter_context(serving(folder, more))

    def desk(self, server: Server, notebook: str) -> Desk:
        """Open a notebook on a page of its own."""
        desk = self._stack.enter_context(desk_of(self._browser, server))
        desk.open(notebook)
        return desk

    def app(self, *options: str) -> App:
        """Start the app on an empty folder."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuplan-bench-")))
        return self._stack.enter_context(app_running(folder, *options))

    def visitor(self) -> Page:
        """A page of somebody who was never here, whose charts can be read."""
        context = self._browser.new_context(viewport={"width": 1300, "height": 1100}, service_workers="block")
        self._stack.callback(context.close)
        context.add_init_script(VIEWS)
        page = context.new_page()
        page.set_default_timeout(1000 * OPENING_S)
        return page

    def explorer(self, server: Server, scenario: str) -> Screen:
        """Open an explorer of a shipped scenario in a kernel of its own."""
        cells = ("import gpuplan as gp", f"explorer = gp.explore({scenario!r})\nexplorer")
        desk = self.desk(server, server.write(f"{scenario}.ipynb", *cells))
        desk.run_all(*cells)
        return Screen(desk.page).ready()
