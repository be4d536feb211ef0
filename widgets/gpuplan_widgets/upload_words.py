"""What an explorer writes about a file: its mistakes as a table, its account, what its columns are taken for."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import MISSING, InputError, Mistake, shorten, show

if TYPE_CHECKING:
    from gpuplan.traces.import_file import Imported

#: Mistakes that the table shows; the rest are counted.
ROWS = 50

#: Mistakes that the sentence spells out.
_SPELLED = 3


def sentence(error: Exception) -> str:
    """What is wrong with a file, in one sentence."""
    if not isinstance(error, InputError):
        return f"This file cannot be opened ({type(error).__name__}: {shorten(str(error), 200)})."
    lines = {mistake.line for mistake in error.mistakes if mistake.line is not None}
    counted = any(mistake.more for mistake in error.mistakes)  # others are not named
    source = shorten(error.source.replace("\\", "/").rpartition("/")[2] or "The file", 80)
    if len(lines) < 2 and len(error.mistakes) <= _SPELLED:
        return f"{source}: {'; '.join(map(str, error.mistakes))}."
    where = f" in {'more than ' if counted else ''}{len(lines):,} lines" if len(lines) > 1 else ""
    return f"{source}: {error.count:,} mistakes{where}."


def mistakes_html(error: Exception) -> str:
    """Mistakes as a table: line, column, rule, the text that was found."""
    if not isinstance(error, InputError) or len(error.mistakes) < 2:
        return ""  # the sentence says it all
    rows = [
        (str(mistake.line or ""), column_of(mistake), mistake.rule, _found(mistake))
        for mistake in error.mistakes[:ROWS]
    ]
    more = sum(mistake.more or 1 for mistake in error.mistakes[ROWS:])
    after = f"<p>... and {more:,} more</p>" if more > 0 else ""
    return _table("What is wrong", ("line", "column", "rule", "text"), rows) + after


def column_of(mistake: Mistake) -> str:
    """The column that a mistake names: its path without the line."""
    head, _, rest = mistake.path.partition(", ")
    if mistake.line is not None and head == f"line {mistake.line}":
        return shorten(rest)
    return shorten(mistake.path)


def _found(mistake: Mistake) -> str:
    return "" if mistake.value is MISSING else show(mistake.value)


def account_html(account: Account, said: Iterable[str] = ()) -> str:
    """The account of a file as a table, and its rules but for those that are `said` elsewhere."""
    shown = frozenset(said)
    return replace(account, rules=tuple(rule for rule in account.rules if rule not in shown))._repr_html_()


def choices_html(made: "Imported") -> str:
    """How the scenario was made, a line per topic."""
    rows = "".join(
        f"<li><b>{html.escape(topic)}</b>: {html.escape(said)}</li>" for topic, said in made.choices.items()
    )
    head = f"<p>On screen: {html.escape(shorten(made.scenario.name, 120))}. How it was made:</p>"
    return f"{head}<ul>{rows}</ul>"


#: Figures of what was done, by the kind of the scenario.
_FIGURES = {
    "fairshare": ("occupancy", "mean_wait_s", "wait_p50_s", "wait_p90_s", "delivered_worst_team"),
    "allocation": ("utilization", "jobs_finished", "jobs_unplaced", "wait_p50_hours", "wait_p90_hours"),
}

#: Stretches beyond which a record is not measured while somebody waits.
MOST_STRETCHES = 200_000


def record_html(made: "Imported", results: Mapping[str, Any]) -> str:
    """What was done beside the policies on screen, as a table; empty where no start is recorded.

    Parameters
    ----------
    made
        What became of the file.
    results
        Runs or plans of its scenario, by the heading of their column.
    """
    if made.recorded is None or not 0 < len(made.recorded) <= MOST_STRETCHES:
        return ""
    scenario: Any = made.scenario
    try:
        if scenario.kind == "fairshare":
            from gpuplan.fairshare.figures import UNITS
            from gpuplan.fairshare.run import shown
            from gpuplan.traces.as_it_was import as_it_was

            record: Any = as_it_was(scenario, made.recorded, start_s=0)
        else:
            from gpuplan.allocation.figures import UNITS
            from gpuplan.allocation.plan import shown
            from gpuplan.traces.as_it_was_day import day_as_it_was

            record = day_as_it_was(scenario, made.recorded, start_s=0)
    except InputError as error:
        return f"<p>As it was: {html.escape(str(error.mistakes[0]))}.</p>"
    columns = {"as it was": record, **results}
    rows = [
        (name, *(shown(name, one.figures[name]) for one in columns.values()), UNITS[name])
        for name in _FIGURES[scenario.kind]
    ]
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in record.notes)
    caption = "What was done, beside the policies when the file was opened"
    return _table(caption, ("figure", *columns, "unit"), rows) + f"<ul>{notes}</ul>"


def guess_html(mapping: Any) -> str:
    """What the columns of a table are taken for, and what is open."""
    frame = mapping.to_frame()
    rows = [[str(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]
    asked = "".join(f"<li>{html.escape(text)}</li>" for text in mapping.open)
    return f"<ul>{asked}</ul>" + _table("What the columns are taken for", list(frame.columns), rows)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    left = 'style="text-align:left"'
    titles = "".join(f'<th scope="col" {left}>{html.escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td {left}>{html.escape(shorten(cell, 160))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    top = f"<caption>{html.escape(caption)}</caption><thead><tr>{titles}</tr></thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"
