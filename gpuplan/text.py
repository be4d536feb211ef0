"""Text for people: aligned tables for a terminal, and CSV whose names stay text in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: A spreadsheet takes a cell that starts with one of these for a formula (full-width forms included).
FORMULA_STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


def printable(text: str) -> str:
    r"""The text with everything that moves a cursor or hides (control, right-to-left marks) as ``\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table in columns of equal width, two blanks apart.

    Parameters
    ----------
    header
        Title of each column.
    rows
        Cells, as many per row as there are titles.
    right
        Numbers of the columns that are flush right, as numbers are read.
    """
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def spreadsheet_safe(cell: object) -> object:
    """A cell that no spreadsheet computes: text that would be a formula gets a leading apostrophe.

    Numbers pass unchanged, -1 included.
    """
    if isinstance(cell, str) and cell.startswith(("'", *FORMULA_STARTS)):
        return f"'{cell}"
    return cell


def to_csv(frame: pd.DataFrame) -> str:
    """A table as CSV (comma, UTF-8, one line per row), its texts safe in a spreadsheet.

    What is missing (``None``, not a number) is an empty cell.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([str(name) for name in frame.columns])
    cells = frame.astype(object).where(frame.notna(), None)
    writer.writerows(
        [spreadsheet_safe(cell) for cell in row] for row in cells.itertuples(index=False, name=None)
    )
    return out.getvalue()
