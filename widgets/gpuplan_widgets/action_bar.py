"""Buttons that copy text to the clipboard or save a table, and speak about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anywidget
import traitlets as t

from gpuplan_widgets.build_bundle import STATIC


@dataclass(frozen=True, slots=True)
class Copied:
    """Text for the clipboard, and what to say about it."""

    text: str
    say: str


@dataclass(frozen=True, slots=True)
class Saved:
    """A text file for the person to keep: its text, its name, and what to say about it."""

    text: str
    name: str
    say: str


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence and nothing else."""

    say: str


Answer = Copied | Saved | Said


@dataclass(frozen=True, slots=True)
class Action:
    """A button: its CSS class after ``gp-``, its words, a longer explanation, and what it does."""

    id: str
    label: str
    title: str
    do: Callable[[], Answer]


class ActionBar(anywidget.AnyWidget):
    """A row of buttons; Python makes the text at the click, the page copies or saves it.

    Parameters
    ----------
    actions
        The buttons, from left to right.
    """

    # Every explorer has one bar, which also makes the explorer around it work by keys and for screen readers.
    _esm = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("access.js", "action_bar.js"))
    _css = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("live_chart.css", "explorer.css"))

    buttons = t.List(t.Dict()).tag(sync=True)
    band = t.List(t.Float(), default_value=[25.0, 50.0]).tag(sync=True)

    def __init__(self, actions: list[Action]) -> None:
        self._actions = {action.id: action for action in actions}
        super().__init__(
            buttons=[{"id": action.id, "label": action.label, "title": action.title} for action in actions]
        )
        self.on_msg(self._heard)

    def __repr__(self) -> str:
        return f"ActionBar({', '.join(self._actions)})"

    def press(self, action: str) -> Answer:
        """Do what a button does; an error becomes a sentence, for nobody sees a callback's traceback."""
        try:
            answer = self._actions[action].do()
        except Exception as error:
            answer = Said(f"That did not work ({type(error).__name__}: {error}).")
        self.send(_message(answer))
        return answer

    def _heard(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        if content.get("do") in self._actions:
            self.press(content["do"])


def _message(answer: Answer) -> dict[str, Any]:
    match answer:
        case Copied(text, say):
            return {"copy": text, "say": say}
        case Saved(text, name, say):
            return {"download": {"text": text, "name": name}, "say": say}
        case Said(say):
            return {"say": say}
