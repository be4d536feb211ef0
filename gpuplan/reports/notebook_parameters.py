"""Parameters of a notebook: the plain values of the cell tagged ``parameters``, and others in their place."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.reports.notebook_file import PARAMETERS, Notebook

#: What a parameter of a kind is written as.
_FORMS = {
    bool: "must be true or false, as its default is",
    int: "must be a whole number, as its default is",
    float: "must be a number, as its default is",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of the parameters cell.

    Attributes
    ----------
    value
        Its default: a number, a text, a truth value, nothing, or a list of those.
    begin, end : int
        Where the default stands in the UTF-8 source of the cell.
    """

    name: str
    value: Any
    begin: int
    end: int


def defaults(notebook: Notebook, source: str) -> dict[str, Parameter]:
    """The parameters of a notebook by name; none where no cell is tagged.

    Raises
    ------
    InputError
        Where several cells are tagged, or the cell is no Python.
    """
    index = _index(notebook, source)
    if index is None:
        return {}
    text = notebook.cells[index].source
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"code cell {notebook.number(index)}"
        raise InputError(
            source, [Mistake(where, f"the parameters are no plain Python (line {line})")]
        ) from error
    starts = [0]
    for row in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(row) + 1)
    found: dict[str, Parameter] = {}
    for node in tree.body:
        one = _parameter(node, starts)
        if one is not None:
            found[one.name] = one  # the last assignment is the one that holds
    return found


def _index(notebook: Notebook, source: str) -> int | None:
    tagged = [
        index for index, cell in enumerate(notebook.cells) if cell.kind == "code" and PARAMETERS in cell.tags
    ]
    if len(tagged) > 1:
        numbers = ", ".join(str(notebook.number(index)) for index in tagged)
        raise InputError(
            source, [Mistake("", f"has more than one cell tagged {PARAMETERS} (code cells {numbers})")]
        )
    return tagged[0] if tagged else None


def _parameter(node: ast.stmt, starts: Sequence[int]) -> Parameter | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    else:
        return None
    if not isinstance(target, ast.Name) or value.end_lineno is None or value.end_col_offset is None:
        return None
    try:
        plain = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None  # computed: no parameter
    if not _is_plain(plain):
        return None
    begin = starts[value.lineno - 1] + value.col_offset
    return Parameter(target.id, plain, begin, starts[value.end_lineno - 1] + value.end_col_offset)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(not isinstance(entry, (list, tuple)) and _is_plain(entry) for entry in value)
    return value is None or isinstance(value, (bool, int, float, str))


def with_parameters(
    notebook: Notebook, given: Mapping[str, Any], source: str
) -> tuple[Notebook, dict[str, Any]]:
    """The notebook with other values in the place of its defaults, and all of its parameters as they hold.

    Parameters
    ----------
    notebook, source
        The notebook, and the name of its file for messages.
    given
        By name: text as typed on a command line, which is read as its default is, or a value of Python.

    Raises
    ------
    InputError
        With every unknown name and every value of another kind than its default.
    """
    known = defaults(notebook, source)
    mistakes, chosen = [], {}
    for name, value in given.items():
        if name not in known:
            mistakes.append(_unknown(notebook, name, known, source))
            continue
        try:
            chosen[name] = typed(value, known[name].value)
        except ValueError as error:
            mistakes.append(Mistake(name, str(error), value))
    if mistakes:
        raise InputError(f"parameters of {source}", mistakes)
    values = {name: chosen.get(name, one.value) for name, one in known.items()}
    if not chosen:
        return notebook, values
    index = _index(notebook, source)
    assert index is not None
    cells = list(notebook.cells)
    cells[index] = replace(cells[index], source=_spliced(cells[index].source, known, chosen))
    return replace(notebook, cells=tuple(cells)), values


def _unknown(notebook: Notebook, name: str, known: Mapping[str, Any], source: str) -> Mistake:
    if _index(notebook, source) is None:
        return Mistake(name, f"the notebook has no cell tagged {PARAMETERS}: nothing can be set from outside")
    there = ", ".join(known) or "none: its values are computed"
    return Mistake(name, f"is no parameter of the notebook; there are {there}{did_you_mean(name, known)}")


def _spliced(text: str, known: Mapping[str, Parameter], chosen: Mapping[str, Any]) -> str:
    whole = text.encode()
    for one in sorted(known.values(), key=lambda one: -one.begin):
        if one.name in chosen:
            whole = whole[: one.begin] + repr(chosen[one.name]).encode() + whole[one.end :]
    return whole.decode()


def typed(value: Any, default: Any) -> Any:
    """A value of the kind of the default.

    Raises
    ------
    ValueError
        With the rule that the value breaks.
    """
    if isinstance(default, (list, tuple)):
        entries = _entries(value)
        like = default[0] if default else ""
        return type(default)(typed(entry, like) for entry in entries)
    if default is None:
        return _anything(value)
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ValueError("must be text, as its default is")
        return value
    for kind, rule in _FORMS.items():
        if isinstance(default, kind):
            made = _read(value, kind)
            if made is None:
                raise ValueError(rule)
            return made
    raise ValueError("cannot be set")


def _read(value: Any, kind: type) -> Any:
    """A truth value or a number, also of its text; None where it is none."""
    if kind is bool:
        words = {"true": True, "yes": True, "false": False, "no": False}
        return value if isinstance(value, bool) else words.get(str(value).strip().lower())
    if isinstance(value, str):
        try:
            value = int(value) if kind is int else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if kind is float else value if isinstance(value, int) else None


def _entries(value: Any) -> list[Any]:
    """The entries of a list: JSON, or words with commas between them."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError('must be a list: a,b or ["a","b"]') from error
    if isinstance(value, str):
        return [entry.strip() for entry in value.split(",") if entry.strip()]
    if not isinstance(value, (list, tuple)):
        raise ValueError('must be a list: a,b or ["a","b"]')
    return list(value)


def _anything(value: Any) -> Any:
    """Where the default is nothing: a number where it reads as one, nothing for "none", otherwise text."""
    if not isinstance(value, str):
        if not _is_plain(value):
            raise ValueError("must be a number, text, or a list of those")
        return value
    if value.strip().lower() in ("", "none", "null"):
        return None
    for kind in (int, float):
        made = _read(value, kind)
        if made is not None:
            return made
    return value
