"""Numbers as spreadsheets write them: ``1250.5``, ``1250,5``, ``1.010,25``, ``1,010.25``, and words for "no value".

Which of dot and comma stands before decimals is told by the cells of all columns together: a cell with both tells it
by the last one, one with a single mark that is not followed by three digits tells it too. ``1.010`` alone does not:
then the custom decides (semicolons between cells: decimal commas), and a note says so.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpuplan.traces.sheet import Bools, Int64, Strings

Floats = npt.NDArray[np.float64]
Mark = Literal[".", ","]

#: Words for "no value", in small letters.
NOTHING = frozenset(("", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "unknown", "?", "\\n"))

#: What the marks of a cell may look like: grouped digits, decimals, a power of ten.
_WRITTEN = re.compile(
    r"([+-]?)(\d+|\d{1,3}(?:([ '.,\u00a0\u202f\u2009])\d{3})(?:\3\d{3})*)?(?:([.,])(\d*))?(?:[eE]([+-]?\d{1,3}))?",
    re.A,
)

#: A single mark before exactly three digits: decimals or thousands.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}", re.A)

_LONGEST = 40

#: Different numbers with a mark by which a column tells the decimal mark.
_ENOUGH = 5_000


@dataclass(frozen=True, slots=True)
class Marks:
    """Which mark stands before decimals.

    Attributes
    ----------
    decimal
    note
        How it is known, as a sentence; empty where nothing had to be decided.
    """

    decimal: Mark = "."
    note: str = ""


def marks_of(columns: Iterable[Strings], separator: str, decimal: Mark | None = None) -> Marks:
    """The decimal mark of some columns of numbers.

    Parameters
    ----------
    columns
        Cells as text, object[R] each.
    separator
        What stands between cells.
    decimal
        The mark, where it is known.
    """
    if decimal is not None:
        return Marks(decimal)
    told: dict[str, int] = {".": 0, ",": 0}
    either = ""
    for cells in columns:
        found_here, text = 0, "\n".join(cells.tolist())
        if "." not in text and "," not in text:
            continue
        for text in dict.fromkeys(cells.tolist()):
            if ("." not in text and "," not in text) or found_here >= _ENOUGH:
                continue
            found_here += 1
            mark = _mark(text)
            if mark:
                told[mark] += 1
            elif _EITHER.fullmatch(text.strip()):
                either = either or text
    custom: Mark = "," if separator == ";" else "."
    if told["."] or told[","]:
        found: Mark = "," if told[","] > told["."] or (told[","] == told["."] and custom == ",") else "."
        return Marks(found, "Numbers have decimal commas." if found == "," else "")
    if either and (custom == "," or "," in either):
        dot = "1.010" if custom == "," else "1,010"
        return Marks(
            custom,
            f"Numbers such as {either} could be read in two ways; {dot} is taken for 1010 "
            f"({'decimal commas, as in files with semicolons' if custom == ',' else 'decimal points'}).",
        )
    return Marks(custom)


def _mark(text: str) -> str:
    """The decimal mark that a cell tells; empty where it tells none."""
    found = _WRITTEN.fullmatch(text.strip()) if len(text) < _LONGEST else None
    if found is None or (found[2] is None and not found[5]):
        return ""
    grouped, decimal = found[3], found[4]
    if decimal and not grouped:
        return "" if _EITHER.fullmatch(text.strip()) else decimal
    if decimal and grouped != decimal:
        return decimal
    if decimal or not grouped or grouped not in ".,":
        return ""
    # 1.010.000: marks that come twice are those of thousands
    return "" if text.count(grouped) == 1 else ("," if grouped == "." else ".")


def numbers_of(cells: Strings, decimal: Mark = ".") -> tuple[Floats, Bools, Bools]:
    """The numbers of a column, which cells hold none, and which hold something else.

    Returns
    -------
    values : float64[R]
        Not-a-number where there is none.
    empty : bool[R]
        Nothing, or a word for it (`NOTHING`).
    wrong : bool[R]
        Text that is no finite number.
    """
    plain = _plain(cells)
    if plain is not None:
        nothing = np.zeros(len(cells), np.bool_)
        return plain, nothing, nothing
    import pandas as pd

    codes, texts = pd.factorize(cells)
    values = np.full(len(texts), np.nan)
    empty, wrong = np.zeros(len(texts), np.bool_), np.zeros(len(texts), np.bool_)
    for place, text in enumerate(texts.tolist()):
        value = number_of(text, decimal)
        if value is not None:
            values[place] = value
        else:
            empty[place] = text.strip().lower() in NOTHING
            wrong[place] = not empty[place]
    return values[codes], empty[codes], wrong[codes]


def number_of(text: str, decimal: Mark = ".") -> float | None:
    """The finite number of a cell; None where it is none."""
    bare = text.strip()
    found = _WRITTEN.fullmatch(bare) if 0 < len(bare) < _LONGEST else None
    if found is None or (found[2] is None and not found[5]):
        return None
    sign, whole, grouped, mark, digits, power = found.groups()
    if grouped and grouped in ".," and mark is None and grouped == decimal and bare.count(grouped) == 1:
        whole, digits, grouped = whole.split(grouped)[0], whole.split(grouped)[1], None
    elif mark is not None and mark != decimal:
        if grouped or len(digits) != 3 or whole is None or len(whole) > 3 or whole.startswith("0"):
            return None
        whole, digits = whole + digits, ""
    if grouped == decimal or (grouped and power):
        return None
    if grouped:
        whole = whole.replace(grouped, "")
    value = float(f"{sign}{whole or 0}.{digits or 0}e{power or 0}")
    return value if np.isfinite(value) else None


def _plain(cells: Strings) -> Floats | None:
    """The numbers of a column whose every cell is digits with at most one dot; None where one is not.

    ``1.010`` alone could mean a thousand and ten, so a dot before exactly three digits is left to the slow way.
    """
    if not len(cells):
        return np.empty(0)
    try:
        texts = np.array(cells.tolist(), np.bytes_)
    except UnicodeEncodeError:
        return None
    width = texts.dtype.itemsize
    if width > 18:
        return None
    signs = texts.view(np.uint8).reshape(len(cells), width)
    digit = (signs >= 48) & (signs <= 57)
    if not digit[:, 0].all() or not (digit | (signs == 0) | (signs == 46)).all():
        return None
    dots = signs == 46
    if dots.any():
        lengths = (signs != 0).sum(axis=1)
        if (dots.sum(axis=1) > 1).any() or (
            dots.any(axis=1) & (lengths - dots.argmax(axis=1) - 1 == 3)
        ).any():
            return None
    return texts.astype(np.float64)


def whole_of(values: Floats) -> tuple[Int64, Bools]:
    """Numbers rounded to whole ones, half up, and which had a fraction; not-a-number becomes -1."""
    known = ~np.isnan(values)
    rounded = np.floor(np.where(known, values, -1) + 0.5)
    return np.clip(rounded, -(2**62), 2**62).astype(np.int64), known & (rounded != values)
