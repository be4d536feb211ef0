"""Why does this wait? What the folds of all explorers share: a moment, what waits then, and what both policies say."""

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import ipywidgets as W

from gpuplan.inputs.errors import InputError

R = TypeVar("R")

#: Waiting jobs or tasks that are offered; any other is found by its name.
OFFERED = 40

#: How wide the controls are.
WIDE: dict[str, Any] = {
    "style": {"description_width": "150px"},
    "layout": W.Layout(width="560px", max_width="100%"),
}


class WhyFold(ABC, Generic[R]):
    """A fold with a moment, what waits then, and the sentences about the chosen one.

    Parameters
    ----------
    runs
        By side.
    when, choice, other
        The controls: the moment, what waits then, and any other by its name.
    none
        The option of `choice` that stands for nothing.
    css
        Classes of the controls begin with it.
    """

    def __init__(
        self, runs: Mapping[str, R], when: Any, choice: Any, other: Any, none: tuple[str, Any], css: str
    ) -> None:
        self._runs = dict(runs)
        self._choice, self._none = choice, none
        self._open, self._quiet = False, False
        self.said = W.HTML("")
        self.said.add_class("gp-why-text")
        self.said.add_class(f"{css}-said")
        self.box = W.VBox([when, choice, other, self.said])
        when.observe(lambda _change: self._at_another_moment(), "value")
        for widget in (choice, other):
            widget.observe(lambda _change: self._explain(), "value")

    def show(self, runs: Mapping[str, R]) -> None:
        """Ask about other runs; the moment and the choice stay as far as they can."""
        self._runs = dict(runs)
        if self._open:
            self._settle()

    def unfold(self, on: bool) -> None:
        """Nothing is worked out while the fold is closed."""
        self._open = on
        if on:
            self._settle()

    @abstractmethod
    def _settle(self) -> None:
        """Fit the moment to the runs, then look at it."""

    @abstractmethod
    def _waiting(self) -> Sequence[tuple[str, Any]]:
        """What waits at the moment on either side, the longest wait first."""

    @abstractmethod
    def _lines(self) -> list[str]:
        """What both sides say about the chosen one; nothing where none is chosen."""

    def _at_another_moment(self) -> None:
        if self._quiet or not self._open:
            return
        try:
            options = [self._none, *self._waiting()]
        except Exception as error:  # nobody sees the traceback of a callback
            self._say([f"That could not be worked out: {type(error).__name__}: {error}"])
            return
        chosen = self._choice.value
        self._quiet = True
        try:
            if list(self._choice.options) != options:
                self._choice.options = options
            self._choice.value = chosen if chosen in [value for _, value in options] else self._none[1]
        finally:
            self._quiet = False
        self._explain()

    def _explain(self) -> None:
        if not self._quiet and self._open:
            self._say(self._lines())

    def _say(self, lines: list[str]) -> None:
        text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
        if self.said.value != text:
            self.said.value = text


def answer(ask: Callable[[], str]) -> str:
    """What a run says about a job or task, or why it says nothing."""
    try:
        return ask()
    except InputError as error:
        return "; ".join(f"{mistake.path}: {mistake.rule}" for mistake in error.mistakes) + "."
    except Exception as error:  # nobody sees the traceback of a callback
        return f"no explanation ({type(error).__name__}: {error})."
