"""A bar that shows how many points of a sweep or a page are done: in a terminal, in a notebook, or nowhere."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

Report = Callable[[int, int], None]

#: Seconds between two states of a bar at least.
_EVERY_S = 0.1


def progress_to(wanted: "bool | Report | None") -> Report:
    """A function of points done and of all.

    Parameters
    ----------
    wanted
        True or None: a bar (None: only in a terminal or a notebook); False: nothing; a function: that.
    """
    if callable(wanted):
        return wanted
    if wanted is False:
        return _nothing
    if _in_a_notebook():
        return _InNotebook()
    return _InTerminal() if wanted or sys.stderr.isatty() else _nothing


def _nothing(done: int, points: int) -> None:
    return


def _in_a_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Rarely(ABC):
    """Passes on every tenth of a second, and the end."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, done: int, points: int) -> None:
        now = time.monotonic()
        if done >= points or now - self._last >= _EVERY_S:
            self._last = now
            self._show(done, points)

    @abstractmethod
    def _show(self, done: int, points: int) -> None:
        """Show it."""


class _InTerminal(_Rarely):
    """One line on standard error, written over again."""

    def _show(self, done: int, points: int) -> None:
        filled = 30 * done // max(points, 1)
        end = "\n" if done >= points else ""
        bar = "#" * filled + "." * (30 - filled)
        print(f"\r[{bar}] {done:,} of {points:,} points", end=end, file=sys.stderr, flush=True)


class _InNotebook(_Rarely):
    """One output that changes; its last state is the same at every run."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: Any = None

    def _show(self, done: int, points: int) -> None:
        from IPython.display import HTML, display

        words = f"{done:,} of {points:,} points"
        bar = f'<progress value="{done}" max="{max(points, 1)}" aria-label="points done"></progress> {words}'
        if self._shown is None:
            self._shown = display(HTML(bar), display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(HTML(bar))  # type: ignore[no-untyped-call]
