"""YAML written for people: block style, short mappings in one line, names quoted where needed.

What is written reads back as the same text in `gpuplan.inputs.yaml_file` and in any other YAML
reader: a name that one of them could take for something else stands in quotes.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 100

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()+-]*[A-Za-z0-9_./()+-])?", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def write_yaml(document: Mapping[str, Any], one_line_rows: frozenset[str] = frozenset()) -> str:
    """The text of a YAML document.

    Parameters
    ----------
    document
        Text, numbers, bools, None, lists and mappings; lists of mappings only at the top.
    one_line_rows
        Keys of the lists whose rows stand in one line each.
    """
    lines: list[str] = []
    for key, value in document.items():
        if _is_rows(value):
            lines.append(f"{key}:")
            for row in value:
                lines += _row(row, key in one_line_rows)
        elif isinstance(value, Mapping):
            lines += _section(key, value)
        else:
            lines += _entry(key, value, "")
    return "\n".join(lines) + "\n"


def neat(value: float) -> int | float:
    """A whole number where it is one, so that 3.0 is written as 3."""
    return int(value) if value == int(value) else value


def hours_text(hours: float) -> int | float | str:
    """Hours as people write them: a short number, or minutes or seconds where that is exact."""
    number = neat(hours)
    if len(repr(number)) <= 6:
        return number
    for unit, seconds in (("min", 60), ("s", 1)):
        count = round(hours * 3600 / seconds)
        if count * seconds / 3600 == hours:
            return f"{count}{unit}"
    return number


def _is_rows(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _row(row: Mapping[str, Any], one_line: bool) -> list[str]:
    if one_line:
        return [f"  - {_flow(row)}"]
    lines = [line for key, value in row.items() for line in _entry(key, value, "    ")]
    return ["  - " + lines[0][4:], *lines[1:]]


def _section(key: str, value: Mapping[str, Any]) -> list[str]:
    line = f"{key}: {_flow(value)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{key}:", *(line for inner, item in value.items() for line in _entry(inner, item, "  "))]


def _entry(key: str, value: Any, indent: str) -> list[str]:
    """The lines of one key: folded where it is a long paragraph or list."""
    line = f"{indent}{key}: {_flow(value)}"
    if len(line) <= WIDTH:
        return [line]
    deeper = indent + "  "
    if isinstance(value, str) and value.isprintable() and value == " ".join(value.split(" ")).strip():
        if "  " not in value:
            return [f"{indent}{key}: >-", *_wrapped(value, deeper)]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        return [f"{indent}{key}:", *_wrapped(_flow(value), deeper)]
    return [line]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _text(text: str) -> str:
    """Text plain where nobody can mistake it, otherwise in double quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter in "\n\t":
        return "\\n" if letter == "\n" else "\\t"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
