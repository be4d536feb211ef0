"""Read a report back: the figures that stand in its table, its scenario, and how it was made."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.reports.page import FORMAT, FORMAT_VERSION, LIVE_FORMAT
from gpuplan.reports.runs import Choices

#: What a page of a notebook says of itself (`gpuplan.reports.notebook_page`).
NOTEBOOK_FORMAT = "gpuplan-notebook-report"

#: Bytes of a page that is read at most.
MOST_BYTES = 400_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure as it stands in a page: its exact value and what people read, both as text."""

    policy: int
    figure: str
    value: str
    text: str


@dataclass(frozen=True)
class Page:
    """What a report says.

    Attributes
    ----------
    text : str
        The whole page, with line feeds alone between lines.
    kind, fingerprint : str
        Of the scenario, as recorded.
    choices : Choices
    notes : tuple of str
        What was said when the scenario was first read.
    versions : dict
    scenario : str
        YAML.
    figures : tuple of Shown
    """

    source: str
    text: str
    kind: str
    fingerprint: str
    choices: Choices
    notes: tuple[str, ...]
    versions: dict[str, str]
    scenario: str
    figures: tuple[Shown, ...]


class _Reader(HTMLParser):
    """Collects the record, the scenario, and the cells that carry figures."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.generator = ""
        self.record: list[str] = []
        self.scenario: list[str] = []
        self.cells: list[tuple[dict[str, str], list[str]]] = []
        self._into: list[str] | None = None
        self._until = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "meta" and found.get("name") == "generator":
            self.generator = found.get("content", "")
        if self._into is not None:
            return
        if tag == "script" and found.get("id") == "report-record":
            self._into, self._until = self.record, tag
        elif tag == "pre" and found.get("id") == "scenario-yaml":
            self._into, self._until = self.scenario, tag
        elif tag == "td" and "data-figure" in found:
            self.cells.append((found, []))
            self._into, self._until = self.cells[-1][1], tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._until:
            self._into, self._until = None, ""

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)


def read_page(path: str | Path) -> Page:
    """Read a report.

    Raises
    ------
    InputError
        For a file that is no report, is damaged, or comes from a later version, with the reason in a sentence.
    """
    text = page_text(path)
    source = Path(path).name
    reader = _Reader()
    reader.feed(text)
    reader.close()
    name, _, number = reader.generator.partition(" ")
    if name == LIVE_FORMAT:
        raise _refusal(source, "is a page with live controls: there is no notebook in it to run")
    if name != FORMAT:
        rule = "is no report of gpuplan: a page that gpuplan report wrote is wanted"
        raise _refusal(source, rule if text[:5] != "%PDF-" else f"{rule}, and this is a PDF")
    if number != str(FORMAT_VERSION):
        raise _refusal(
            source, f"is a report in form {number[:20]}, and this gpuplan reads form {FORMAT_VERSION}"
        )
    if not reader.record or not reader.scenario or not reader.cells:
        raise _refusal(source, "is damaged: its record, its scenario or its figures are missing")
    record = _record("".join(reader.record), source)
    scenario = "".join(reader.scenario).removeprefix("\n")
    return Page(source, text, **record, scenario=scenario, figures=tuple(_shown(reader.cells, source)))


def generator_of(text: str) -> str:
    """What a page says has made it; empty where it says nothing."""
    found = re.search(r'<meta name="generator" content="([^"]*)">', text[:5_000])
    return found[1] if found else ""


def page_text(path: str | Path) -> str:
    """The text of a page, with line feeds alone between lines.

    Raises
    ------
    InputError
        For a file that cannot be read, or is no text.
    """
    if not isinstance(path, (str, Path)):
        raise InputError("report", [Mistake("path", "must be a path, as text", path)])
    path, source = Path(path), Path(path).name
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refusal(source, f"is larger than {MOST_BYTES // 1_000_000} MB: no report is")
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise _refusal(source, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        pdf = path.suffix.lower() == ".pdf"
        more = "; a PDF cannot be verified, the page (.html) can" if pdf else ""
        raise _refusal(source, f"is no report of gpuplan: it is not text in UTF-8{more}") from error
    except ValueError as error:  # a null byte
        raise _refusal(source, "cannot be read: no file can have this name") from error


def _refusal(source: str, rule: str) -> InputError:
    return InputError(source, [Mistake("", rule)])


@dataclass
class _Fields:
    """The fields of a record that are what they must be; what is not is named."""

    found: dict[str, Any]
    wrong: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        value = self.found.get(name)
        if not isinstance(value, str):
            self.wrong.append(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.found.get(name)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            self.wrong.append(name)
            return ()
        return tuple(value)

    def count(self, name: str) -> int | None:
        value = self.found.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            self.wrong.append(name)
            return None
        return value

    def table(self, name: str) -> dict[str, str]:
        value = self.found.get(name)
        if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
            self.wrong.append(name)
            return {}
        return dict(value)


def _record(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(source, "is damaged: its record is no JSON") from error
    fields = _Fields(found if isinstance(found, dict) else {})
    choices = Choices(fields.texts("policies"), fields.count("seed"), fields.count("iterations"))
    made = {
        "kind": fields.text("kind"),
        "fingerprint": fields.text("fingerprint"),
        "choices": choices,
        "notes": fields.texts("notes"),
        "versions": fields.table("versions"),
    }
    if fields.wrong:
        raise _refusal(source, f"is damaged: its record has no usable {', '.join(fields.wrong)}")
    return made


def _shown(cells: list[tuple[dict[str, str], list[str]]], source: str) -> list[Shown]:
    made = []
    for found, said in cells:
        policy = found.get("data-policy", "")
        if not (policy.isascii() and policy.isdecimal() and len(policy) < 6):
            raise _refusal(source, "is damaged: a figure in it belongs to no policy")
        made.append(Shown(int(policy), found["data-figure"], found.get("data-value", ""), "".join(said)))
    return made
