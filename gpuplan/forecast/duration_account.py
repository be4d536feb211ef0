"""The account of a job table: every row is either learned from or left out for a stated reason."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuplan.text import aligned

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class DurationAccount:
    """What became of the rows of a job table.

    Parameters
    ----------
    read
        Rows of the table.
    used
        Rows that are learned from.
    excluded
        Rows that are not, by reason; every row has exactly one.
    changed
        Used rows of which a value was taken otherwise than it stands, by what was done.
    rules
        Sentences about what the table does not say and was decided here.

    Raises
    ------
    ValueError
        If rows used and left out do not add up to those read.
    """

    read: int
    used: int
    excluded: tuple[tuple[str, int], ...] = ()
    changed: tuple[tuple[str, int], ...] = ()
    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        left_out = sum(count for _, count in self.excluded)
        if self.used + left_out != self.read:
            raise ValueError(f"{self.used} rows used and {left_out} left out are not the {self.read} read")

    def lines(self) -> Iterator[tuple[str, str, int]]:
        """Lines of the account: group (``read``, ``left out``, ...), what, how many jobs."""
        yield "read", "rows of the table", self.read
        for reason, count in self.excluded:
            yield "left out", reason, count
        yield "used", "jobs learned from", self.used
        for change, count in self.changed:
            yield "changed", change, count

    def to_frame(self) -> "pd.DataFrame":
        """The account as a table: ``group, what, jobs``, in reading order."""
        import pandas as pd

        return pd.DataFrame(list(self.lines()), columns=["group", "what", "jobs"])

    def __repr__(self) -> str:
        cells = [[group, what, f"{count:,}"] for group, what, count in self.lines()]
        table = aligned(["", "what", "jobs"], cells, right=[2])
        return "\n".join([table, "", *(f"- {rule}" for rule in self.rules)]).rstrip()
