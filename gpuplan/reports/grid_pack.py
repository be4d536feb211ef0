"""The pictures of all points in one small JSON value: what repeats (texts, columns, whole tables) is there once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuplan.reports.grid_pictures import Sets

#: What the picture of a point is: data sets that no policy changes, and those of each policy; None: left out.
Drawn = "tuple[Sets, list[Sets]] | None"


class _Once:
    """Values in the order in which they first come; each gets a number."""

    def __init__(self) -> None:
        self.listed: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any, key: Hashable | None = None) -> int:
        """The number of a value; `key` stands for one that is not hashable."""
        key = value if key is None else key
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            self.listed.append(value)
        return self._numbers[key]


def packed(pictures: Sequence[tuple[Sets, list[Sets]] | None]) -> dict[str, Any]:
    """The pictures of points as one value.

    Returns
    -------
    dict
        ``texts``; ``columns``: lists of numbers, ``{"t": numbers of texts}``, or ``{"c": a value, "n": how often}``;
        ``tables``: lists of numbers of columns; ``names``: of each data set its columns; ``shared``, ``own``: names of
        the data sets; ``at``: of each point None, or numbers of its shared tables and of those of each policy.
    """
    texts, columns, tables = _Once(), _Once(), _Once()
    names: dict[str, list[str]] = {}
    orders: tuple[list[str], list[str]] = ([], [])

    def table(name: str, found: dict[str, list[Any]]) -> int:
        if names.setdefault(name, list(found)) != list(found):
            raise ValueError(f"data set {name} has other columns at another point")
        numbers = [_column(values, texts, columns) for values in found.values()]
        return tables.number(numbers, tuple(numbers))

    def of(sets: Sets, order: list[str]) -> list[int]:
        order[:] = order or list(sets)
        return [table(name, sets[name]) for name in order]

    at: list[Any] = []
    for picture in pictures:
        if picture is None:
            at.append(None)
            continue
        shared, own = picture
        at.append([of(shared, orders[0]), [of(sets, orders[1]) for sets in own]])
    return {
        "texts": texts.listed,
        "columns": columns.listed,
        "tables": tables.listed,
        "names": names,
        "shared": orders[0],
        "own": orders[1],
        "at": at,
    }


def _column(values: list[Any], texts: _Once, columns: _Once) -> int:
    """The number of a column in its shortest form."""
    plain = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    found: Any = plain
    if len(plain) > 1 and all(type(v) is type(plain[0]) and v == plain[0] for v in plain):
        found = {"c": plain[0], "n": len(plain)}
    elif plain and all(isinstance(v, str) for v in plain):
        found = {"t": [texts.number(v) for v in plain]}
    return columns.number(found, json.dumps(found))


def unpacked(found: dict[str, Any]) -> list[tuple[Sets, list[Sets]] | None]:
    """The pictures of a value that `packed` made.

    Raises
    ------
    ValueError, TypeError, LookupError, AttributeError
        For anything else.
    """
    texts, columns, tables, names = (found[key] for key in ("texts", "columns", "tables", "names"))

    def column(number: int) -> list[Any]:
        values = columns[number]
        if isinstance(values, list):
            return list(values)
        if "t" in values:
            return [texts[text] for text in values["t"]]
        if not 0 <= values["n"] <= MOST_ROWS:
            raise ValueError("a column is too long")
        return [values["c"]] * values["n"]

    def of(numbers: list[int], order: list[str]) -> Sets:
        return {
            name: dict(zip(names[name], map(column, tables[number]), strict=True))
            for name, number in zip(order, numbers, strict=True)
        }

    return [
        None if one is None else (of(one[0], found["shared"]), [of(each, found["own"]) for each in one[1]])
        for one in found["at"]
    ]


#: Rows of a data set at most.
MOST_ROWS = 100_000
