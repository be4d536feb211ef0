"""YAML read strictly: every plain scalar stays the text that was written, with its line.

YAML's own rules turn ``no`` into false, ``1:30`` into 90, ``0123`` into 83 and ``3.10`` into 3.1.
Here the type of the field decides what a text means, so nothing is converted. Of a parser only
the events are used: they come one at a time, so that deep nesting is refused before anything
recurses. It is ruamel's own parser, not the one in C: that one refuses ``{limit: 1:30}``.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError

from gpuplan.inputs.errors import InputError, Mistake, dotted, shorten

#: Largest file that is read, in bytes: about 20,000 jobs. A parser in Python takes seconds for it.
LARGEST_FILE = 2_000_000

#: Deepest nesting that is read: trees of 50 budgets, each a row in a list. Parser and composer do not recurse.
DEEPEST = 120

#: Most keys and values, aliases written out: again 20,000 jobs. A "billion laughs" file has more.
MOST_VALUES = 250_000

ValuePath = tuple[str | int, ...]

_BINARY = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_TEXT_TAG = "tag:yaml.org,2002:str"


class Plain(str):
    """A scalar written without quotes: text, but ``null``, ``~`` and nothing may mean None."""

    __slots__ = ()

    @property
    def is_null(self) -> bool:
        """Whether YAML would read it as null."""
        return self in ("", "~", "null", "Null", "NULL")


class Row(dict[str, Any]):
    """A mapping of a file that knows the line of each of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


class Items(list[Any]):
    """A list of a file that knows the line of each of its items."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds: `Row`, `Items`, `Plain` and (quoted) `str`, nested.

    `mistakes` are those that did not keep the rest from being read (keys given twice).
    """

    source: str
    data: Any
    mistakes: tuple[Mistake, ...] = ()

    def line(self, path: ValuePath) -> int | None:
        """Line (1-based) of the value at `path`, of its closest parent where it is missing."""
        line, here = None, self.data
        for part in path:
            if not isinstance(here, (Row, Items)):
                break
            try:
                line, here = here.lines[part], here[part]  # type: ignore[index]  # caught below
            except (KeyError, IndexError, TypeError):
                break
        return line


def read_yaml(path: str | Path) -> Document:
    """Read one YAML file (UTF-8, one document).

    Parameters
    ----------
    path
        The file; it also stands in front of the mistakes.

    Raises
    ------
    InputError
        Where the file cannot be read as one document of plain YAML, with the reason in a sentence.
    """
    return parse_yaml(_decode(_read_bytes(path), str(path)), str(path))


def parse_yaml(text: str, source: str = "text") -> Document:
    """Read one YAML document from a text.

    Parameters
    ----------
    text
        The document.
    source
        What stands in front of the mistakes.

    Raises
    ------
    InputError
        Where the text is not one document of plain YAML.
    """
    binary = _BINARY.search(text)
    if binary:
        line = text.count("\n", 0, binary.start()) + 1
        rule = f"must be text, but holds the control character U+{ord(binary[0]):04X}"
        raise _refusal(source, rule, line)
    composer = _Composer(source)
    try:
        for event in YAML(typ="safe", pure=True, plug_ins=[]).parse(text):
            composer.take(event)
    except InputError:
        raise
    except MarkedYAMLError as error:
        raise _syntax_error(error, text, source) from None
    except Exception as error:  # a parser of other people, fed with anything: always a sentence
        raise _refusal(
            source, f"must be YAML, but could not be read as such: {shorten(str(error), 120)}"
        ) from None
    if not composer.documents or (isinstance(composer.data, Plain) and composer.data.is_null):
        raise _refusal(source, "must not be empty")
    return Document(source, composer.data, tuple(composer.mistakes))


def _read_bytes(path: str | Path) -> bytes:
    source = str(path)
    try:
        info = os.stat(path)
        if stat.S_ISDIR(info.st_mode):
            raise _refusal(source, "must be a file, but is a folder")
        if not stat.S_ISREG(info.st_mode):
            raise _refusal(source, "must be an ordinary file")
        if info.st_size <= LARGEST_FILE:
            with open(path, "rb") as file:
                return file.read(LARGEST_FILE)
    except InputError:
        raise
    except FileNotFoundError:
        raise _refusal(source, "there is no such file") from None
    except PermissionError:
        raise _refusal(source, "may not be read: permission denied") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refusal(source, f"cannot be read: {reason}") from None
    limit = f"{LARGEST_FILE / 1e6:.0f} MB"
    raise _refusal(source, f"must not be larger than {limit}, but has {info.st_size / 1e6:.1f} MB")


def _decode(data: bytes, source: str) -> str:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise _refusal(source, f"must be UTF-8 text, but is {encoding}: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"holds the byte 0x{data[error.start]:02x}"
        raise _refusal(source, f"must be UTF-8 text, but {found}: save it as UTF-8", line) from None


def _syntax_error(error: MarkedYAMLError, text: str, source: str) -> InputError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    row = "" if line is None else "".join(text.splitlines(keepends=True)[line - 1 : line])
    if "\t" in row[: len(row) - len(row.lstrip())]:
        return _refusal(source, "must be indented with spaces, not with a tab", line)
    problem = shorten(" ".join(str(error.problem or error.context or "unreadable").split()), 200)
    return _refusal(source, f"must be valid YAML: {problem}", line)


def _refusal(source: str, rule: str, line: int | None = None) -> InputError:
    return InputError(source, [Mistake("", rule, line=line)])


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is still open."""

    into: Row | Items
    anchor: str | None
    line: int
    size: int = 1
    key: str | None = None
    key_line: int = 0
    repeated: bool = False


@dataclass(slots=True)
class _Composer:
    """Builds the document from parser events, without recursion."""

    source: str
    data: Any = None
    documents: int = 0
    mistakes: list[Mistake] = field(default_factory=list)
    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    total: int = 0

    def take(self, event: Any) -> None:
        """Take the next event."""
        line = event.start_mark.line + 1
        match event:
            case events.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _refusal(self.source, "must hold one document, but a second one starts here", line)
            case events.ScalarEvent():
                self._refuse_tag(event, line)
                plain = not event.style and event.tag is None
                self._count(1, line)
                self._finish((Plain if plain else str)(event.value), event.anchor, line, 1)
            case events.AliasEvent():
                self._alias(event.anchor, line)
            case events.MappingStartEvent() | events.SequenceStartEvent():
                self._open(event, line)
            case events.MappingEndEvent() | events.SequenceEndEvent():
                frame = self.stack.pop()
                self._finish(frame.into, frame.anchor, frame.line, frame.size)

    def _open(self, event: Any, line: int) -> None:
        self._refuse_tag(event, line)
        if len(self.stack) >= DEEPEST:
            raise _refusal(self.source, f"must not be nested more than {DEEPEST} levels deep", line)
        if self.stack and isinstance(self.stack[-1].into, Row) and self.stack[-1].key is None:
            raise _refusal(self.source, "must have plain words as keys, not lists or mappings", line)
        into = Row() if isinstance(event, events.MappingStartEvent) else Items()
        self.stack.append(_Frame(into, event.anchor, line))

    def _alias(self, anchor: str, line: int) -> None:
        if any(frame.anchor == anchor for frame in self.stack):
            raise _refusal(
                self.source,
                f"must not hold itself, but *{shorten(anchor)} lies inside &{shorten(anchor)}",
                line,
            )
        if anchor not in self.anchors:
            raise _refusal(
                self.source, f"*{shorten(anchor)} stands for nothing: there is no &{shorten(anchor)}", line
            )
        value, size = self.anchors[anchor]
        self._count(size, line)
        self._finish(value, None, line, size)

    def _count(self, values: int, line: int) -> None:
        self.total += values
        if self.total > MOST_VALUES:
            raise _refusal(self.source, f"must not hold more than {MOST_VALUES:,} keys and values", line)

    def _finish(self, value: Any, anchor: str | None, line: int, size: int) -> None:
        """Put a complete value where it belongs."""
        if anchor is not None:
            self.anchors[anchor] = value, size
        if not self.stack:
            self.data = value
            return
        frame = self.stack[-1]
        frame.size += size
        if isinstance(frame.into, Items):
            frame.into.append(value)
            frame.into.lines.append(line)
        elif frame.key is None:
            self._take_key(frame, value, line)
        else:
            if not frame.repeated:
                frame.into[frame.key] = value
                frame.into.lines[frame.key] = frame.key_line
            frame.key = None

    def _take_key(self, frame: _Frame, value: Any, line: int) -> None:
        if not isinstance(value, str):
            raise _refusal(self.source, "must have plain words as keys, not lists or mappings", line)
        assert isinstance(frame.into, Row)
        frame.key, frame.key_line, frame.repeated = str(value), line, value in frame.into
        if frame.repeated:
            first = frame.into.lines[frame.key]
            rule = f"must be given once, but stands on lines {first} and {line}"
            if first == line:
                rule = f"must be given once, but stands twice on line {line}"
            self.mistakes.append(Mistake(dotted((*self._path(), frame.key)), rule, line=line))

    def _path(self) -> Iterator[str | int]:
        """Path of the mapping that is open now."""
        for frame in self.stack[:-1]:
            if isinstance(frame.into, Items):
                yield len(frame.into)
            elif frame.key is not None:
                yield frame.key

    def _refuse_tag(self, event: Any, line: int) -> None:
        if event.tag is not None and str(event.tag) != _TEXT_TAG:
            raise _refusal(self.source, f"must not use YAML tags, but uses {shorten(str(event.tag))}", line)
