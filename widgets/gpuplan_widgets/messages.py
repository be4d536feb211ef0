"""Sentences beside controls: what is wrong, and what the person sees meanwhile."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as W

from gpuplan.inputs.errors import InputError, Mistake, shorten

#: Mistakes that a sentence spells out; the rest are counted.
_SPELLED = 3

_OLD = "The picture is old: it shows the last settings that could be planned."


def place(css: str) -> Any:
    """An empty place for a message, of CSS class ``gp-message`` and one more."""
    widget = W.HTML("")
    widget.add_class("gp-message")
    widget.add_class(css)
    return widget


def hint() -> Any:
    """An empty place for a sentence that explains, of CSS class ``gp-hint``."""
    widget = W.HTML("")
    widget.add_class("gp-hint")
    widget.add_class("gp-hint-work")
    return widget


def say_own(widget: Any, things: str, generated: bool) -> None:
    """Say why controls of a generated workload are at rest, where a file brings its own jobs or tasks."""
    words = f"The {things} are the scenario's own. Controls at rest are for generated ones and do not count."
    widget.value = "" if generated else html.escape(words)


def say(widget: Any, sentence: str) -> None:
    """Show a sentence in a message's place, or nothing; names in it stay text."""
    text = f'<span role="alert">{html.escape(sentence)}</span>' if sentence else ""
    if widget.value != text:
        widget.value = text


def said(widget: Any) -> str:
    """The sentence in a message's place, as text."""
    value: str = widget.value
    return html.unescape(value.removeprefix('<span role="alert">').removesuffix("</span>"))


def sentence(
    error: Exception, names: Mapping[str, Sequence[str]] | None = None, *, in_table: bool = False
) -> str:
    """What an error means for the person at the control.

    Parameters
    ----------
    error
        An `InputError`, or whatever else went wrong.
    names
        Names of the entries of the scenario's lists (``"batch"``, ``"realtime"``), for paths that number them.
    in_table
        Whether cells of the job table are marked as well.
    """
    if isinstance(error, InputError):
        mistakes: Sequence[Mistake] = error.mistakes
        first = "; ".join(_named(mistake, names or {}) for mistake in mistakes[:_SPELLED])
        more = f"; and {len(mistakes) - _SPELLED} more" if len(mistakes) > _SPELLED else ""
        where = " (marked in the job table)" if in_table else ""
        return f"This cannot be planned: {first}{more}{where}. {_OLD}"
    return f"Planning failed: {shorten(f'{type(error).__name__}: {error}', 300)}. {_OLD}"


def _named(mistake: Mistake, names: Mapping[str, Sequence[str]]) -> str:
    """A mistake whose place is named as people see it: ``cpt-7b: gpus must be ...`` for ``batch.3.gpus``."""
    head, _, rest = mistake.path.partition(".")
    number, _, field = rest.partition(".")
    known = names.get(head, ())
    if not number.isdigit() or int(number) >= len(known):
        return str(mistake)
    return (
        f"{shorten(known[int(number)])}: {field} {rule(mistake)}"
        if field
        else f"{shorten(known[int(number)])}: {rule(mistake)}"
    )


def rule(mistake: Mistake) -> str:
    """A mistake without its path, for the cell that it is about."""
    return str(Mistake("", mistake.rule, mistake.value))
