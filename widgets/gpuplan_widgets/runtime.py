"""The one copy of Vega in a page, shared by all live charts."""

import threading

import anywidget

from gpuplan_widgets.build_bundle import BUNDLE


class VegaRuntime(anywidget.AnyWidget):
    """A widget without a view whose module puts vega-embed on a shelf of the page.

    anywidget sends a module once per widget; as a widget of its own the bundle (0.9 MB) travels once
    and not with every chart.
    """

    # Text, not a path: a path makes anywidget watch the file for ever (anywidget issue 929).
    _esm = BUNDLE.read_text(encoding="utf-8")

    def __repr__(self) -> str:
        return "VegaRuntime()"


_lock = threading.Lock()
_shared: VegaRuntime | None = None


def runtime() -> VegaRuntime:
    """Return the kernel's runtime, made on first use and again after somebody closed it."""
    global _shared
    with _lock:
        if _shared is None or _shared.comm is None:
            _shared = VegaRuntime()
        return _shared
