"""Titles of charts: wrapped to their width, and names as text inside Vega's expressions."""

import json
import textwrap
from collections.abc import Sequence

from gpuplan.gantt.layers import Spec

#: Pixels of a character of a subtitle, and of a title.
_SUBTITLE_PX, _TITLE_PX = 6.3, 7.6


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
    return textwrap.wrap(text, max(24, int(width / px_per_character))) or [""]


def panel_title(text: str, width: int) -> Spec:
    """Title no wider than its panel, which would push the next column aside."""
    return {"text": text, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width}


def literal(text: str) -> str:
    """A name as a literal of a Vega expression: quotes, backslashes and tags stay text."""
    return json.dumps(text).replace("<", "\\u003c")
