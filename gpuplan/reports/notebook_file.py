"""Read a notebook: the sources of its cells and nothing else, so that outputs of an earlier run are never shown."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake

#: Bytes of a notebook that is read at most.
MOST_BYTES = 100_000_000

#: The tag of cells that run and are not shown, as publishing tools of Jupyter call it.
HIDDEN = "remove-cell"

#: The tag of the cell whose values ``-p`` replaces.
PARAMETERS = "parameters"

_INSTALL = "pip install 'gpuplan[export]'"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as it was written: ``code``, ``markdown`` or ``raw``.

    Attributes
    ----------
    attachments : dict
        Pictures in a text cell, by name and kind (base64).
    """

    kind: str
    source: str
    tags: tuple[str, ...] = ()
    attachments: dict[str, dict[str, str]] | None = None


@dataclass(frozen=True)
class Notebook:
    """What a notebook is made of; two files with the same cells are the same notebook.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    """

    name: str
    cells: tuple[Cell, ...]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the cells; outputs, numbers and names of cells do not count."""
        return hashlib.sha256(json.dumps(self.as_json()["cells"], sort_keys=True).encode()).hexdigest()

    def number(self, index: int) -> int:
        """The number of a code cell as people count, from 1, text cells left out."""
        return sum(cell.kind == "code" for cell in self.cells[: index + 1])

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        cells = [
            {"kind": cell.kind, "source": cell.source, "tags": list(cell.tags)}
            | ({"attachments": cell.attachments} if cell.attachments else {})
            for cell in self.cells
        ]
        return {"name": self.name, "cells": cells}


def missing(package: str) -> InputError:
    """The sentence where a package of the extra ``export`` is not installed."""
    return InputError("report", [Mistake("", f"a report of a notebook needs {package}: {_INSTALL}")])


def read_notebook(path: str | Path) -> Notebook:
    """Read the cells of a notebook, of any format that Jupyter knows.

    Raises
    ------
    InputError
        For a file that cannot be read, is no notebook, or is one of another language.
    """
    source = Path(path).name
    whole = _json(Path(path), source)
    try:
        import nbformat
    except ModuleNotFoundError as error:
        raise missing(error.name or "nbformat") from error
    if not isinstance(whole, dict) or not isinstance(whole.get("nbformat"), int):
        raise _refusal(source, "is no notebook: it has no nbformat")
    if whole["nbformat"] > 4:
        raise _refusal(
            source, "is a notebook of a later format than 4, which this version reads", whole["nbformat"]
        )
    try:
        if whole["nbformat"] < 4:
            whole = nbformat.convert(nbformat.reader.reads(json.dumps(whole)), 4)  # type: ignore[no-untyped-call]
        else:
            whole.setdefault("nbformat_minor", 0)
            _with_ids(whole)
            nbformat.validate(nbformat.from_dict(whole))  # type: ignore[no-untyped-call]
    except Exception as error:  # nbformat's own errors are many
        said = str(error).split("\n")[0]
        raise _refusal(source, f"is a damaged notebook: {said[:200]}") from error
    _of_python(whole.get("metadata", {}), source)
    cells = tuple(_cell(cell) for cell in whole["cells"])
    if not any(cell.kind == "code" and cell.source.strip() for cell in cells):
        raise _refusal(source, "has no code cell: nothing would be computed")
    return Notebook(Path(path).stem, cells)


def _json(path: Path, source: str) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refusal(source, f"is larger than {MOST_BYTES // 1_000_000} MB")
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise _refusal(source, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _refusal(source, "is no notebook: it is not JSON") from error


def _refusal(source: str, rule: str, *value: Any) -> InputError:
    return InputError(source, [Mistake("", rule, *value)])


def _with_ids(whole: dict[str, Any]) -> None:
    """Give cells a name where the format asks for one: they are told by number here."""
    cells = whole.get("cells")
    if not isinstance(cells, list) or (4, whole["nbformat_minor"]) < (4, 5):
        return
    for number, cell in enumerate(cells):
        if isinstance(cell, dict):
            cell["id"] = f"cell-{number}"


def _of_python(metadata: Any, source: str) -> None:
    kernel, language = metadata.get("kernelspec", {}), metadata.get("language_info", {})
    name = language.get("name") or kernel.get("language") or "python"
    if str(name).lower() not in ("python", "python3", "ipython"):
        raise _refusal(source, "must be a notebook of Python; this one is of another language", name)


def _cell(cell: Any) -> Cell:
    tags = cell.get("metadata", {}).get("tags", [])
    source = cell["source"]
    return Cell(
        cell["cell_type"],
        source if isinstance(source, str) else "".join(source),
        tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        json.loads(json.dumps(cell["attachments"])) if cell.get("attachments") else None,
    )


def from_json(found: Any, source: str) -> Notebook:
    """The notebook that a page carries.

    Raises
    ------
    InputError
        For anything that `Notebook.as_json` does not write.
    """
    try:
        cells = tuple(
            Cell(
                {"code": "code", "markdown": "markdown", "raw": "raw"}[cell["kind"]],
                _text(cell["source"]),
                tuple(_text(tag) for tag in cell["tags"]),
                cell.get("attachments"),
            )
            for cell in found["cells"]
        )
        return Notebook(_text(found["name"]), cells)
    except (KeyError, TypeError, ValueError) as error:
        raise _refusal(source, "is damaged: its notebook cannot be read") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is wanted")
    return value
