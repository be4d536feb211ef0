"""Which column of a table of jobs means what: guessed with reasons, shown, changed and confirmed.

A published table is known by its columns. In others a name that says it all (``submit_s``, ``num_gpus``) is sure; what
is only likely, or open (is ``03/04`` a day in March or April?), is asked before a row is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.text import aligned
from gpuplan.traces.job_columns import FIELDS
from gpuplan.traces.sheet import listed
from gpuplan.traces.sheet_durations import UNITS
from gpuplan.traces.sheet_numbers import Mark
from gpuplan.traces.sheet_times import Order

if TYPE_CHECKING:
    import pandas as pd

Confidence = Literal["sure", "likely", "unsure"]

#: Units of moments that are numbers, and of durations; ``batch`` is the notation of batch systems.
MOMENT_UNITS = ("", *UNITS, "sheet-days")
DURATION_UNITS = ("", *UNITS, "batch")

_UNIT_NAMES = {
    "s": "seconds",
    "ms": "milliseconds",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "sheet-days": "days of a spreadsheet",
    "batch": "the notation of batch systems",
}


@dataclass(frozen=True, slots=True)
class Guess:
    """What a column is taken for.

    Attributes
    ----------
    column
        Its name in the file.
    field
        One of `gpuplan.traces.job_columns.FIELDS`; empty: it is not used.
    unit
        Unit of its numbers; empty where cells say it themselves, or it has none.
    confidence
        ``sure``: nothing to ask. ``likely``, ``unsure``: must be confirmed.
    reason
        Why, as a sentence without its subject.
    example
        A cell of it.
    """

    column: str
    field: str
    unit: str = ""
    confidence: Confidence = "sure"
    reason: str = ""
    example: str = ""

    @property
    def meaning(self) -> str:
        """For people: ``the run time, in minutes``."""
        what = FIELDS[self.field][1] if self.field else "not used"
        return f"{what}, in {_UNIT_NAMES[self.unit]}" if self.unit and self.field else what


@dataclass(frozen=True, slots=True)
class JobMapping:
    """What the columns of a table of jobs mean.

    Attributes
    ----------
    source
        Name of the file.
    guesses
        One per column, in the order of the file.
    table
        Name of the published table; empty where it is none.
    date_order
        ``day-first``, ``month-first``, or empty: told by the dates.
    decimal
        ``.``, ``,``, or None: told by the numbers.
    questions
        What is open beside single columns, as sentences.
    confirmed
        Whether somebody has said that it is right.
    """

    source: str
    guesses: tuple[Guess, ...]
    table: str = ""
    date_order: Order = ""
    decimal: Mark | None = None
    questions: tuple[str, ...] = ()
    confirmed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the file."""
        return tuple(guess.column for guess in self.guesses)

    @property
    def missing(self) -> tuple[str, ...]:
        """What a table must have and this one has not, as sentences."""
        has = {guess.field for guess in self.guesses}
        found = f"; found: {listed(self.columns)}"
        lacking = []
        by_node = "gpus_per_node" in has and bool(has & {"nodes", "instances"})
        if not has & {"gpus", "gpu_percent"} and not by_node:
            lacking.append(f"no column for the number of GPUs{found}")
        if "elapsed" not in has and not {"start", "end"} <= has:
            lacking.append(f"no column for the run time, nor two for start and end{found}")
        if not has & {"submit", "start"}:
            lacking.append(f"no column for the submission, nor for the start{found}")
        return tuple(lacking)

    @property
    def open(self) -> tuple[str, ...]:
        """What must be confirmed or answered before the file is read, as sentences; empty: nothing."""
        if self.confirmed:
            return self.questions
        doubtful = [guess for guess in self.guesses if guess.field and guess.confidence != "sure"]
        said = [f"column {shorten(g.column)} is taken for {g.meaning}: {g.reason}" for g in doubtful]
        return (*said, *self.questions)

    @property
    def sure(self) -> bool:
        """Whether the file can be read without asking."""
        return not self.open and not self.missing

    def of(self, field: str) -> Guess | None:
        """The column that is taken for a field; None where there is none."""
        return next((guess for guess in self.guesses if guess.field == field), None)

    def confirm(self) -> "JobMapping":
        """The same mapping, said to be right. What is asked about dates needs an answer of its own."""
        return replace(self, confirmed=True)

    def changed(
        self,
        *,
        date_order: Order | None = None,
        decimal: Mark | None = None,
        **fields: str | tuple[str, str] | None,
    ) -> "JobMapping":
        """The mapping with some columns chosen: ``changed(gpus="Cards", elapsed=("Used", "min"), user=None)``.

        Parameters
        ----------
        date_order
            ``day-first`` or ``month-first``.
        decimal
            The mark before decimals.
        **fields
            Column of a field, with its unit where it has one; None: no column has it.

        Raises
        ------
        InputError
            For every field, column and unit that there is not.
        """
        mistakes = _mistaken(fields, self.columns)
        if date_order not in (None, "", "day-first", "month-first"):
            mistakes.append(Mistake("date_order", "must be day-first or month-first", date_order))
        if decimal not in (None, ".", ","):
            mistakes.append(Mistake("decimal", "must be . or ,", decimal))
        if mistakes:
            raise InputError(self.source, mistakes)
        chosen = {name: (value, None) if isinstance(value, str) else value for name, value in fields.items()}
        guesses = []
        for guess in self.guesses:
            told = next((name for name, pair in chosen.items() if pair and pair[0] == guess.column), "")
            if told:
                unit = chosen[told][1]  # type: ignore[index]  # not None, for it named a column
                unit = (guess.unit if guess.field == told else "") if unit is None else unit
                guess = replace(guess, field=told, unit=unit, confidence="sure", reason="as stated")
            elif guess.field in chosen:
                guess = replace(guess, field="", unit="", confidence="sure", reason="as stated")
            guesses.append(guess)
        answered = date_order or self.date_order
        return replace(
            self,
            guesses=tuple(guesses),
            date_order=answered,
            decimal=decimal or self.decimal,
            questions=() if answered else self.questions,
        )

    def to_frame(self) -> "pd.DataFrame":
        """The mapping as a table: ``column, example, meaning, confidence, reason``."""
        import pandas as pd

        return pd.DataFrame(self._cells(), columns=["column", "example", "meaning", "confidence", "reason"])

    def _cells(self) -> list[list[str]]:
        return [
            [shorten(g.column), shorten(g.example, 30), g.meaning, g.confidence if g.field else "", g.reason]
            for g in self.guesses
        ]

    def __repr__(self) -> str:
        head = f"{self.source}: {self.table}" if self.table else f"{self.source}: columns as guessed"
        table = aligned(["column", "example", "meaning", "confidence", "reason"], self._cells())
        asked = [f"- {sentence}" for sentence in (*self.missing, *self.questions)]
        return "\n".join([head, table, *asked])

    def _repr_html_(self) -> str:
        import html

        def row(cells: Iterable[str], tag: str) -> str:
            inside = "".join(f'<{tag} style="text-align:left">{html.escape(cell)}</{tag}>' for cell in cells)
            return f"<tr>{inside}</tr>"

        asked = "".join(f"<li>{html.escape(s)}</li>" for s in (*self.missing, *self.questions))
        return (
            f"<table><caption>Columns of {html.escape(self.source)}</caption><thead>"
            + row(("column", "example", "meaning", "confidence", "reason"), "th")
            + f"</thead><tbody>{''.join(row(cells, 'td') for cells in self._cells())}</tbody></table>"
            + (f"<ul>{asked}</ul>" if asked else "")
        )


def choices(words: Iterable[str]) -> dict[str, Any]:
    """What to pass to `JobMapping.changed`, from words such as ``gpus=Cards``, ``elapsed=Used:min``, ``user=``.

    Raises
    ------
    InputError
        For every word that is none.
    """
    found: dict[str, Any] = {}
    mistakes = []
    for word in words:
        name, equals, column = word.partition("=")
        if not equals or name.strip() not in (*FIELDS, "date_order", "decimal"):
            rule = "must be a field, =, and a column (elapsed=Used:min)" + did_you_mean(name, FIELDS)
            mistakes.append(Mistake("column", rule, word))
            continue
        column, colon, unit = (
            column.rpartition(":") if column.rpartition(":")[2] in _UNIT_NAMES else (column, "", "")
        )
        found[name.strip()] = (column, unit) if colon else (column or None)
    if mistakes:
        raise InputError("columns", mistakes)
    return found


def _mistaken(fields: Mapping[str, Any], columns: tuple[str, ...]) -> list[Mistake]:
    mistakes = []
    for name, value in fields.items():
        if name not in FIELDS:
            mistakes.append(Mistake(name, "is no field of a job" + did_you_mean(name, FIELDS)))
            continue
        if value is None:
            continue
        column, unit = (value, "") if isinstance(value, str) else value
        if column not in columns:
            rule = f"must be a column of the file{did_you_mean(column, columns)}; found: {listed(columns)}"
            mistakes.append(Mistake(name, rule, column))
        kind = FIELDS[name][0]
        allowed = {"moment": MOMENT_UNITS, "duration": DURATION_UNITS}.get(kind, ("",))
        if unit not in allowed:
            units = ", ".join(filter(None, allowed)) or "none"
            mistakes.append(Mistake(name, f"must have a unit of {units}", unit))
    return mistakes
