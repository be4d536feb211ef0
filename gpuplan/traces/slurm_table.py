"""A `sacct` export as columns: numbers, seconds, codes of texts; and what of it cannot be read."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import MISSING, Mistake
from gpuplan.traces.slurm_layout import Layout

Int64 = npt.NDArray[np.int64]

#: Mistakes that are told one by one; the rest are counted.
NAMED = 1000


class Mistakes:
    """Fields that cannot be read: the first of them with line and text, of the rest how many."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.found: list[Mistake] = []
        self.more: dict[tuple[str, str], int] = {}

    def tell(self, name: str, rule: str, lines: Int64, texts: list[str] | str) -> None:
        """Tell a rule that a column of some lines breaks; `name` is ``""`` where the line as a whole is wrong."""
        room = max(0, NAMED - len(self.found))
        shown = self.layout.shown_as(name) if name else ""
        for k, line in enumerate(lines[:room].tolist()):
            text = texts if isinstance(texts, str) else texts[k]
            where = f"line {line}, {shown}" if shown else f"line {line}"
            self.found.append(Mistake(where, rule, text if text or name else MISSING, line))
        if len(lines) > room:
            self.more[shown, rule] = self.more.get((shown, rule), 0) + len(lines) - room

    def all(self) -> list[Mistake]:
        """Every mistake, by line, then those that are only counted."""
        told = sorted(self.found, key=lambda mistake: mistake.line or 0)
        rest = [Mistake(name, f"{rule}: {n:,} more lines", more=n) for (name, rule), n in self.more.items()]
        return [*told, *rest]


@dataclass(slots=True)
class Vocabulary:
    """The different texts of a column, numbered in order of appearance."""

    number: dict[bytes, int] = field(default_factory=dict)

    def codes(self, texts: list[bytes]) -> npt.NDArray[np.int32]:
        """The number of each text; new ones are added."""
        number = self.number
        return np.array([number.setdefault(text, len(number)) for text in texts], np.int32)

    def texts(self) -> list[str]:
        """The texts, by number."""
        return [text.decode("utf-8", "replace") for text in self.number]


@dataclass(slots=True)
class Table:
    """``R`` records as columns.

    Attributes
    ----------
    line, hash : int64[R]
        First line, and a hash of all bytes of the record.
    bad : bool[R]
        Something of it cannot be read.
    ids : dict
        For ``jobid`` and ``jobidraw``, where they are there: number, task, part (int64[R]) and kind.
    brackets : dict
        Id of the rows that are about several waiting tasks.
    seconds : dict
        Times and spans, int64[R]; `UNKNOWN` where they are not known.
    instants : dict
        For times, bool[R]: they have an offset from UTC.
    codes : dict
        int64[R], for each column of `ENCODED` that is there.
    texts : dict
        The texts that the codes number.
    bytes_read
        Bytes of lines.
    """

    line: Int64
    hash: Int64
    bad: npt.NDArray[np.bool_]
    ids: dict[str, tuple[Int64, Int64, Int64, Int64]]
    brackets: dict[int, str]
    seconds: dict[str, Int64]
    instants: dict[str, npt.NDArray[np.bool_]]
    codes: dict[str, Int64]
    texts: dict[str, list[str]]
    blank: int
    headers: list[int]
    pieces: int
