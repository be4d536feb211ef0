"""Titles of charts: wrapped to their width, and names as text inside Vega's expressions."""

import json
import re
import textwrap
from collections.abc import Sequence

from gpuplan.gantt.layers import Spec, field, mark

#: Pixels of a character of a subtitle, of a title, of a panel's title and of a note above a panel.
_SUBTITLE_PX, _TITLE_PX, _PANEL_PX, _NOTE_PX = 6.3, 7.6, 6.0, 5.9

#: Pixels of a line of notes.
_LINE_PX = 14


def head(text: str, subtitles: Sequence[str], width: int) -> Spec:
    """Title and subtitle of a chart, in as many lines as its width asks for."""
    return {
        "text": wrapped(text, width, _TITLE_PX),
        "subtitle": [line for subtitle in subtitles if subtitle for line in wrapped(subtitle, width)],
        "anchor": "start",
        "frame": "group",
        "offset": 10,
    }


def wrapped(text: str, width: int, px_per_character: float = _SUBTITLE_PX) -> list[str]:
    """A text in lines no wider than a number of pixels; at least one."""
    return textwrap.wrap(text, max(24, int(width / px_per_character)), break_on_hyphens=False) or [""]


def panel_title(text: str, width: int) -> Spec:
    """Title no wider than its panel, which would push the next column aside, in as many lines as that asks for."""
    lines = wrapped(text, width, _PANEL_PX)
    return {
        "text": lines if len(lines) > 1 else text,
        "fontSize": 11,
        "fontWeight": "normal",
        "frame": "group",
        "limit": width,
    }


def heading(data: str, width: int, names: Sequence[str], bottom: int) -> list[Spec]:
    """A title and notes above a panel, from columns of a data set, which change with the run; folded ones grow upwards.

    Parameters
    ----------
    data
        A data set of one row.
    width
        Pixels of the panel.
    names
        Columns, the title first.
    bottom
        Pixels from the upper edge of the panel to the last of them.
    """
    text = {"type": "text", "align": "left", "clip": False, "limit": width, "x": 0, "lineBreak": "\n"}
    layers = []
    for place, name in enumerate(names):
        more = " + ".join(f"length(split(datum.{each}, '\\n')) - 1" for each in names[place:])
        look = text | {
            "style": "gp-note" if place else "gp-title",
            "y": bottom - _LINE_PX * (len(names) - 1 - place) - (0 if place else 1),
            "lineHeight": _LINE_PX,
            "dy": {"expr": f"-{_LINE_PX} * ({more})"},
        }
        layers.append(mark(data, look, {"text": field(name, "nominal")}))
    return layers


def folded(text: str, width: int) -> str:
    """A note in lines no wider than so many pixels (0: as it is), broken behind commas and semicolons if possible."""
    if not width or len(text) * _NOTE_PX <= width:
        return text
    most = max(12, int(width / _NOTE_PX))
    parts = re.split(r"(?<=[,;]) ", text)
    glued = " ".join(part.replace(" ", "\u00a0") if len(part) <= most else part for part in parts)
    lines = textwrap.wrap(glued, most, break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")


def fitting(words: Sequence[str], width: int) -> str:
    """The first of some wordings, longest first, that a note of so many pixels has room for (0: any); or the last."""
    return next((text for text in words if not width or len(text) * _NOTE_PX <= width), words[-1])


def literal(text: str) -> str:
    """A name as a literal of a Vega expression: quotes, backslashes and tags stay text."""
    return json.dumps(text).replace("<", "\\u003c")
