"""Columns of a table that people write: numbers, flags and texts checked as a whole, every broken rule with its rows.

A rule that many rows break is told for the first of them; the rest are counted, so that a million
wrong rows are a page and not a hang.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpuplan.inputs.errors import MISSING
from gpuplan.inputs.fields import Flag, Text, number
from gpuplan.inputs.spans import seconds_of

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: Rows that are named where many break one rule.
NAMED = 10

_TIME_RULE = "must be a number of seconds, or one with s, min, h, d or w (30min, 8h)"

#: An empty cell, where a column holds numbers.
EMPTY = float("nan")


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a column breaks: its first rows (from 0), how many there are, what was found."""

    column: str
    rule: str
    rows: list[int]
    count: int
    value: Any = MISSING


class Columns:
    """The columns of a table as they are read, and every rule that they break."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.broken: list[Broken] = []

    def __len__(self) -> int:
        return len(self.frame)

    def times(self, name: str, most: int, *, unknown: bool = False, optional: bool = False) -> Floats:
        """Seconds >= 0, float64[J]: numbers, or texts with a unit; `EMPTY` where a cell of an optional column is empty.

        With `unknown`, -1 is the same as an empty cell.
        """
        values = self._numbers(name, optional, seconds_of, _TIME_RULE)
        if unknown:
            values = np.where(values == -1, EMPTY, values)
        least = "must not be negative" + (" (empty or -1: unknown)" if unknown else "")
        self._refuse(name, values < 0, least, values)
        self._refuse(name, values > most, f"must be at most {most:,}", values)
        return np.where(values > most, EMPTY, values)

    def whole(self, name: str, least: int, most: int, default: int | None = None) -> Int64:
        """Whole numbers, int64[J]; without `default` every cell must hold one."""
        values = self._numbers(name, default is not None)
        if default is not None:
            values = np.where(np.isnan(values), default, values)
        wrong = np.floor(values) != values
        wrong &= ~np.isnan(values)
        self._refuse(name, wrong, "must be a whole number", values)
        self._refuse(name, ~wrong & (values < least), f"must be at least {least:,}", values)
        self._refuse(name, ~wrong & (values > most), f"must be at most {most:,}", values)
        sound = (values >= least) & (values <= most)
        return np.where(sound, values, least).astype(np.int64)

    def flags(self, name: str, default: bool) -> Bools:
        """Yes or no, bool[J]."""
        found: Bools = self.mapped(name, lambda text: _flag(text) if text else default, default, np.bool_)
        return found

    def mapped(self, name: str, read: Callable[[str], Any], default: Any, dtype: Any) -> Any:
        """What `read` makes of the text of each cell; it raises ``ValueError`` with the rule of a wrong one."""
        if name not in self.frame:
            return np.full(len(self), default, dtype)
        codes, texts = self._texts(name)
        found = np.empty(len(texts), dtype)
        wrong = []
        for place, text in enumerate(texts):
            found[place] = default
            try:
                found[place] = read(text)
            except ValueError as error:
                wrong.append((place, str(error)))
        self._tell_texts(name, codes, texts, wrong)
        return found[codes] if len(texts) else np.full(len(self), default, dtype)

    def names(self, name: str, most: int) -> npt.NDArray[np.object_]:
        """Texts that are all different, object[J]."""
        cells = self.frame[name].fillna("").to_numpy(object)
        lengths = np.fromiter(map(len, cells), np.int64, len(cells))
        self.tell_rows(name, "must be given", lengths == 0)
        self.tell_rows(name, f"must have at most {most} characters", lengths > most)
        if not "".join(cells).isprintable():
            text = Text(0, max(most, int(lengths.max())))
            wrong = [(row, _rule_of(text, cells[row])) for row in range(len(cells))]
            self._tell_texts(name, np.arange(len(cells)), cells, [(row, rule) for row, rule in wrong if rule])
        codes, uniques = pd.factorize(cells)
        if len(uniques) < len(cells):
            again = np.flatnonzero((np.bincount(codes) > 1) & (uniques != ""))
            self._tell_texts(name, codes, uniques, [(code, "must be unique") for code in again.tolist()])
        return cells

    def _numbers(
        self,
        name: str,
        optional: bool,
        read: Callable[[str], float | Fraction | None] = number,
        rule: str = "must be a number",
    ) -> Floats:
        """Finite numbers, float64[J]; `EMPTY` where a cell is empty or wrong. `read` makes a number of a text."""
        if name not in self.frame:
            return np.full(len(self), EMPTY)
        column = self.frame[name]
        if column.dtype.kind in "iuf":
            values = column.to_numpy(np.float64, na_value=EMPTY)
            infinite = np.isinf(values)
            self.tell_rows(name, "must be a number", infinite, float("inf"))
            values = np.where(infinite, EMPTY, values)
            if not optional:
                self.tell_rows(name, "must be given", np.isnan(values) & ~infinite)
            return values
        codes, texts = self._texts(name)
        found = np.full(len(texts), EMPTY)
        wrong = []
        for place, text in enumerate(texts):
            value = read(text.strip())
            if value is not None:
                found[place] = float(value)
            elif text.strip():
                wrong.append((place, rule))
            elif not optional:
                wrong.append((place, "must be given"))
        self._tell_texts(name, codes, texts, wrong)
        return found[codes] if len(texts) else np.full(len(self), EMPTY)

    def _texts(self, name: str) -> tuple[npt.NDArray[np.intp], list[str]]:
        """Code of each cell, and the different texts in order of appearance; an absent cell is an empty one."""
        cells = self.frame[name].astype(object).fillna("")
        codes, texts = pd.factorize(cells.to_numpy(object))
        return codes, [str(text) for text in texts]

    def _refuse(self, name: str, wrong: Bools, rule: str, values: Floats) -> None:
        """Tell a broken rule with each of the first values, then how many more there are."""
        rows = np.flatnonzero(wrong)
        for row in rows[:NAMED].tolist():
            value = values[row]
            shown = int(value) if value == np.floor(value) else float(value)
            self.broken.append(Broken(name, rule, [row], 1, shown))
        if len(rows) > NAMED:
            more = rows[NAMED:]
            self.broken.append(Broken(name, rule, more[:NAMED].tolist(), len(more)))

    def tell_rows(self, name: str, rule: str, wrong: npt.NDArray[Any], value: Any = MISSING) -> None:
        """Tell one rule that some rows break."""
        rows = np.flatnonzero(wrong)
        if len(rows):
            self.broken.append(Broken(name, rule, rows[:NAMED].tolist(), len(rows), value))

    def _tell_texts(self, name: str, codes: Any, texts: Any, wrong: list[tuple[int, str]]) -> None:
        """Tell what is wrong with some texts, each once with its rows; where there are many, the rest as one."""
        for place, rule in wrong[: 2 * NAMED]:
            value = texts[place] if str(texts[place]).strip() else MISSING
            self.tell_rows(name, rule, codes == place, value)
        rest = [place for place, _ in wrong[2 * NAMED :]]
        if rest:
            rule = f"{wrong[-1][1].split(';')[0]}; so must {len(rest):,} more values"
            self.tell_rows(name, rule, np.isin(codes, rest))

    def tell(self, name: str, rule: str, wrong: npt.NDArray[Any], values: Floats) -> None:
        """Tell a rule between columns that some rows break, with the value of this column."""
        self._refuse(name, wrong, rule, values)

    def in_order(self) -> Iterator[Broken]:
        """Broken rules by their first row, then in the order in which they were found."""
        yield from sorted(self.broken, key=lambda broken: broken.rows[0])


def _flag(text: str) -> bool:
    rule = _rule_of(Flag(), text.strip()) if text.strip() not in ("0", "1") else ""
    if rule:
        raise ValueError(rule)
    return text.strip() == "1" or (text.strip() != "0" and Flag().read(text.strip()))


def _rule_of(kind: Any, value: Any) -> str:
    """The rule that a value breaks for a field type, or nothing."""
    from pydantic_core import PydanticCustomError

    try:
        kind.read(value)
    except PydanticCustomError as error:
        return error.message()
    return ""
