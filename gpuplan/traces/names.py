"""Names of other people's files that stay text wherever they go: a terminal, a page, a spreadsheet, YAML."""

import re
from collections.abc import Iterable

import numpy as np

from gpuplan.text import printable, spreadsheet_safe
from gpuplan.traces.history import Strings

#: Characters of a name; what is longer is cut and numbered.
LONGEST = 120

#: Names that are safe as they are, as most are.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@#+-]{0,99}", re.ASCII)

#: Stands for a name that nobody tells.
NOBODY = "unknown"


def safe_names(
    found: Iterable[str], *, slash: str = "/", empty: str = NOBODY, taken: Iterable[str] = ()
) -> dict[str, str]:
    r"""A safe name for each of some names, different names staying different; most stay as they are.

    Control characters are written as ``\x1b``, a name that a spreadsheet would compute gets a leading apostrophe, one
    of more than `LONGEST` characters is cut; where two become equal, the later one gets a number.

    Parameters
    ----------
    found
        Names in order; those that come again are one.
    slash
        What stands for ``/``, which joins the names of budgets.
    empty
        The name of the empty text.
    taken
        Names that others have.
    """
    names: dict[str, str] = {}
    gone = set(taken)
    for name in dict.fromkeys(found):
        text = name if _PLAIN.fullmatch(name) else _safe(name, slash, empty)
        unique, count = text, 2
        while unique in gone:
            unique, count = f"{text} ({count})", count + 1
        gone.add(unique)
        names[name] = unique
    return names


def _safe(name: str, slash: str, empty: str) -> str:
    text = name if name.isprintable() else printable(name)
    text = str(spreadsheet_safe(" ".join(text.split()).replace("/", slash) or empty))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def mapped(column: Strings, names: dict[str, str]) -> Strings:
    """A column with every name replaced."""
    if not len(column):
        return column
    import pandas as pd

    codes, values = pd.factorize(column)
    changed: Strings = np.array([names[value] for value in values], object)[codes]
    return changed


def counted(number: int, noun: str) -> str:
    """``1 job``, ``1,200 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
