"""The account of a trace: every row is either used or left out for a stated reason, and the sums agree."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuplan.text import aligned

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the rows of a file.

    Parameters
    ----------
    source
        Name of the file, without its folder.
    rows
        What a row is, as a plural: ``"jobs"``.
    read
        Rows in the file.
    used
        Rows that are in what was made of the file (`made`).
    excluded
        Rows that are not, by reason; every row has exactly one.
    changed
        Used rows (or values made from them) that differ from the file, by what was done to them.
    amounts
        Sums that show how much a change weighs: what, how much, unit.
    rules
        Sentences about what the file does not say and was decided here.
    made
        What was made of the file.

    Raises
    ------
    ValueError
        If rows used and left out do not add up to those read.
    """

    source: str
    rows: str
    read: int
    used: int
    excluded: tuple[tuple[str, int], ...] = ()
    changed: tuple[tuple[str, int], ...] = ()
    amounts: tuple[tuple[str, float, str], ...] = ()
    rules: tuple[str, ...] = ()
    made: str = "scenario"

    def __post_init__(self) -> None:
        left_out = sum(count for _, count in self.excluded)
        if self.used + left_out != self.read:
            raise ValueError(
                f"{self.source}: {self.used} rows used and {left_out} left out are not the {self.read} read"
            )

    def lines(self) -> Iterator[tuple[str, str, float, str]]:
        """Lines of the account: group (``read``, ``left out``, ...), what, how many or how much, unit."""
        yield "read", f"{self.rows} in {self.source}", self.read, self.rows
        for reason, count in self.excluded:
            yield "left out", reason, count, self.rows
        yield "used", f"in the {self.made}", self.used, self.rows
        for change, count in self.changed:
            yield "changed", change, count, self.rows
        for what, amount, unit in self.amounts:
            yield "amount", what, amount, unit

    def to_frame(self) -> "pd.DataFrame":
        """The account as a table: ``group, what, value, unit``, in reading order."""
        import pandas as pd

        return pd.DataFrame(list(self.lines()), columns=["group", "what", "value", "unit"])

    def __repr__(self) -> str:
        cells = [[group, what, _shown(value), unit] for group, what, value, unit in self.lines()]
        table = aligned(["", "what", "value", "unit"], cells, right=[2])
        return "\n".join([table, "", *(f"- {rule}" for rule in self.rules)]).rstrip()

    def _repr_html_(self) -> str:
        left = 'style="text-align:left"'
        body = "".join(
            f'<tr><th scope="row" {left}>{html.escape(group)}</th><td {left}>{html.escape(what)}</td>'
            f'<td style="text-align:right">{_shown(value)}</td><td {left}>{html.escape(unit)}</td></tr>'
            for group, what, value, unit in self.lines()
        )
        head = "".join(f'<th scope="col" {left}>{name}</th>' for name in ("", "what", "value", "unit"))
        rules = "".join(f"<li>{html.escape(rule)}</li>" for rule in self.rules)
        return (
            f"<table><caption>Account of {html.escape(self.source)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>" + (f"<ul>{rules}</ul>" if rules else "")
        )


def _shown(value: float) -> str:
    """Counts whole, amounts with one decimal."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
