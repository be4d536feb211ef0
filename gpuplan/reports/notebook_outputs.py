"""Texts and outputs of a notebook as HTML for a report: nothing in them runs, fetches, or passes for a figure."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuplan.gantt import safe_text
from gpuplan.inputs.errors import shorten
from gpuplan.reports import tables
from gpuplan.reports.figures import block, is_record
from gpuplan.reports.notebook_file import Cell, missing
from gpuplan.reports.notebook_kernel import CHART, FIGURES, NOTE
from gpuplan.reports.page import chart_figure

#: Characters of printed text of a cell that are shown at most.
MOST_TEXT = 50_000

#: What stands for a control that works in a live notebook only.
_WIDGET = "application/vnd.jupyter.widget-view+json"

#: Elements that are left out with all that is in them.
_DROPPED = {
    "script",
    "style",
    "iframe",
    "object",
    "embed",
    "form",
    "button",
    "input",
    "textarea",
    "template",
    "svg",
    "math",
}
_ACTIVE = re.compile(r"<\s*(script|iframe|object|embed|form|svg|link)\b", re.IGNORECASE)

#: A picture without a source, as `nh3` writes it.
_LOST = re.compile(r"<img(?![^>]* src=)[^>]*>")

_STYLES = {
    "background-color", "border", "border-bottom", "border-collapse", "border-left", "border-right", "border-top",
    "color", "font-size", "font-style", "font-weight", "margin", "margin-bottom", "margin-top", "max-width", "padding",
    "padding-top", "text-align", "text-decoration", "vertical-align", "white-space", "width",
}  # fmt: skip

#: An address of an object in memory, which differs from run to run.
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")

_PICTURES = ("image/png", "image/jpeg", "image/gif")


@dataclass
class Told:
    """What a page has so far: its figures, how many charts, and what it leaves out.

    Attributes
    ----------
    remarks : list of str
        Sentences about the page as a whole.
    left_out : dict
        Numbers of the code cells (0: a text) of which a sentence holds.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    charts: int = 0
    remarks: list[str] = field(default_factory=list)
    left_out: dict[str, list[int]] = field(default_factory=dict)

    def note(self, cell: int, sentence: str) -> None:
        """Say something about a code cell (0: about a text), once."""
        cells = self.left_out.setdefault(sentence, [])
        if cell not in cells:
            cells.append(cell)

    @property
    def notes(self) -> list[str]:
        """A sentence for whatever is left out, with its places."""
        return [f"{_places(cells)}: {sentence}" for sentence, cells in self.left_out.items()]


def _places(cells: list[int]) -> str:
    numbers = [str(cell) for cell in cells if cell]
    code = f"Code cell{'s' * (len(numbers) != 1)} {', '.join(numbers)}" if numbers else ""
    return (f"{code} and a text" if code else "A text") if 0 in cells else code


def cleaned(text: str, told: Told, cell: int) -> str:
    """HTML of somebody else without scripts, styles, outside pictures, or what looks like a figure of ours."""
    try:
        import nh3
    except ModuleNotFoundError as error:
        raise missing("nh3") from error
    for found in sorted({match.lower() for match in _ACTIVE.findall(text)}):
        told.note(cell, f"<{found}> is left out: nothing of a notebook runs in a report.")
    attributes = {name: set(values) for name, values in nh3.ALLOWED_ATTRIBUTES.items()}
    attributes["*"] = {"style", "lang", "dir", "role", "title"}
    attributes["div"] = {"class", "tabindex", "aria-label"}
    attributes["details"] = {"open"}
    attributes["a"] = {"href"}
    made = nh3.clean(
        text,
        tags=nh3.ALLOWED_TAGS | {"tfoot"},
        clean_content_tags=_DROPPED,
        attributes=attributes,
        attribute_filter=_attribute,
        filter_style_properties=_STYLES,
        url_schemes={"http", "https", "mailto", "data"},
        url_relative="deny",
        link_rel="noopener noreferrer",
    )
    if _LOST.search(made):
        told.note(cell, "a picture that is neither in the notebook nor beside it is left out.")
    if "<a rel=" in made or "<a>" in made:
        told.note(cell, "a link that leads nowhere from a page alone is left as text.")
    return _LOST.sub(_in_words, made)


def _in_words(found: re.Match[str]) -> str:
    """The words of a picture that is left out."""
    said = re.search(r'\balt="([^"]*)"', found[0])
    return f"<em>[{said[1] if said and said[1] else 'picture'}]</em>"


def _attribute(tag: str, name: str, value: str) -> str | None:
    """A picture is inside the page, or none; a link leads out of it, or nowhere."""
    if name == "src":
        return value if value.startswith("data:image/") else None
    if name == "href":
        return None if value.startswith("data:") else value
    if name in ("class", "tabindex"):  # of a wide table that scrolls by itself
        return value if value == {"class": "wide", "tabindex": "0"}[name] else None
    return value


def markdown(cell: Cell, folder: Path | None, told: Told) -> str:
    """A text cell; pictures beside the notebook come into the page."""
    try:
        from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
    except ModuleNotFoundError as error:
        raise missing(error.name or "nbconvert") from error
    renderer = IPythonRenderer(
        escape=False,
        attachments=cell.attachments or {},
        embed_images=folder is not None,
        path=str(folder or ""),
        exclude_anchor_links=True,
    )
    return cleaned(MarkdownWithMath(renderer=renderer).render(cell.source), told, 0)


def outputs(found: list[Any], number: int, told: Told) -> str:
    """The outputs of a code cell, one below the other."""
    parts = []
    for output in found:
        kind = output["output_type"]
        if kind == "stream" and output["name"] == "stderr":
            told.note(number, "what it wrote to the error stream (warnings, progress) is left out.")
        elif kind == "stream":
            parts.append(_plain(output["text"], number, told))
        elif kind == "error":
            parts.append(_plain(f"{output['ename']}: {output['evalue']}", number, told))
        else:
            parts.append(_shown(output["data"], number, told))
    inner = "\n".join(part for part in parts if part)
    return f'<div class="output">\n{inner}\n</div>' if inner else ""


def _shown(data: Mapping[str, Any], number: int, told: Told) -> str:
    """An output in the best of its forms."""
    for sentence in data.get(NOTE, []):
        told.note(number, str(sentence))
    if is_record(data.get(FIGURES)):
        told.records.append(data[FIGURES])
        return block(len(told.records) - 1, data[FIGURES])
    if isinstance(data.get(CHART), dict) and isinstance(data[CHART].get("wide"), dict):
        return _chart(data, number, told)
    if _WIDGET in data:
        told.note(
            number, "controls work in a live notebook; here stands what they showed, as far as it has a text."
        )
    if "text/html" in data:
        return tables.scrolled(
            _stable(cleaned(_joined(data["text/html"]), told, number)), f"Output of code cell {number}"
        )
    if "image/svg+xml" in data:
        encoded = base64.b64encode(_joined(data["image/svg+xml"]).encode()).decode("ascii")
        return _picture(f"data:image/svg+xml;base64,{encoded}", data)
    for kind in _PICTURES:
        if kind in data:
            content = re.sub(r"[^A-Za-z0-9+/=]", "", _joined(data[kind]))
            return _picture(f"data:{kind};base64,{content}", data)
    if "text/markdown" in data:
        return markdown(Cell("markdown", _joined(data["text/markdown"])), None, told)
    text = _joined(data.get("text/plain", data.get("text/latex", "")))
    if not text and data:
        kinds = ", ".join(sorted(shorten(str(kind)) for kind in data))
        told.note(number, f"an output has no form that a page can show ({kinds}).")
    return _plain(text, number, told) if text else ""


def _chart(data: Mapping[str, Any], number: int, told: Told) -> str:
    """A chart that the page draws, unless it wants data from elsewhere."""
    chart = data[CHART]
    if _fetches(chart):
        told.note(
            number, "a chart takes its data from an address, which a page does not ask: it is left out."
        )
        return _plain(_joined(data.get("text/plain", "Chart")), number, told)
    told.charts += 1
    wide = chart["wide"]
    narrow = chart.get("narrow", wide)
    said = str(wide.get("description") or f"Chart of code cell {number}")
    tabled = [cleaned(table, told, number) for table in chart.get("tables", [])]
    return chart_figure(f"{told.charts}", None, said, wide, narrow, tabled, chart.get("config"))


def _fetches(value: Any) -> bool:
    """Whether a specification names an address of data or of a picture."""
    if isinstance(value, dict):
        return any(
            (key == "url" and isinstance(entry, str) and not entry.startswith("data:")) or _fetches(entry)
            for key, entry in value.items()
            if key != "datasets"
        )
    return isinstance(value, list) and any(map(_fetches, value))


def _picture(source: str, data: Mapping[str, Any]) -> str:
    said = html.escape(safe_text(_stable(_joined(data.get("text/plain", "Picture"))), 2000))
    return f'<p class="picture"><img src="{source}" alt="{said}"></p>'


def _plain(text: str, number: int, told: Told) -> str:
    plain = _stable(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)).rstrip("\n")
    if len(plain) > MOST_TEXT:
        told.note(number, f"of {len(plain):,} characters of text the first {MOST_TEXT:,} are shown.")
        plain = plain[:MOST_TEXT] + "\n…"
    lines = "\n".join(safe_text(line, MOST_TEXT) for line in plain.split("\n"))
    return f'<pre tabindex="0">{html.escape(lines)}</pre>' if plain.strip() else ""


def _stable(text: str) -> str:
    return _ADDRESS.sub("at 0x…", text)


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
