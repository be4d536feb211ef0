"""Tables of a report as HTML; every text is escaped here, and names keep their direction to themselves."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.gantt import safe_text

if TYPE_CHECKING:
    import pandas as pd

#: Rows of a table that are shown at most; the caption says how many there are.
MOST_ROWS = 200


def text(value: object, limit: int = 200) -> str:
    """Escaped text on one line; a right-to-left name does not turn its neighbours round."""
    plain = safe_text(str(value), limit)
    escaped = html.escape(plain)
    return escaped if plain.isascii() else f"<bdi>{escaped}</bdi>"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain texts with a caption; the first cell of a row is its header."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in header)
    body = "\n".join(
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return scrolled(
        f"<table>\n<caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>",
        caption,
    )


def scrolled(inner: str, label: str) -> str:
    """A part that may be wider than the screen: it scrolls by itself, with the keyboard too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(safe_text(label))}">{inner}</div>'


def of_frame(caption: str, frame: pd.DataFrame) -> str:
    """A table of a data frame, its columns as they are called, at most `MOST_ROWS` rows."""
    if len(frame) > MOST_ROWS:
        caption = f"{caption} (the first {MOST_ROWS} of {len(frame):,} rows)"
    cut = frame.head(MOST_ROWS).astype(object)
    rows = [[cell(value) for value in row] for row in cut.itertuples(index=False, name=None)]
    return table(caption, [str(name).replace("_", " ") for name in frame.columns], rows)


def cell(value: Any) -> str:
    """A value as people read it: numbers with at most three decimals, a dash for what is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or str(value) == "<NA>":
        return "–"
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return str(value)
