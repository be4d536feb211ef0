"""Tasks from a CSV file: read strictly, every mistake with its line, column and value, an account that adds up.

Columns ``arrival_s, model, tenant, priority, service_s, predicted_s, tokens_in, tokens_out`` and ``deadline_s``, in any
order; all but ``arrival_s``, ``model`` and ``service_s`` may be absent or have empty cells (`DEFAULTS`). A task whose
service time is unknown (an empty cell) is left out and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.inputs.account import Account
from gpuplan.inputs.csv_table import Shape, raise_mistakes, read_columns
from gpuplan.inputs.fields import Text
from gpuplan.packing.consistency import model_rule
from gpuplan.packing.limits import MOST_PRIORITY, MOST_SERVICE_US, MOST_TOKENS, MOST_US
from gpuplan.packing.model import NEVER, SECOND, Bools, Int64
from gpuplan.packing.tasks import Tasks, tasks

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from gpuplan.inputs.columns import Columns

REQUIRED = ("arrival_s", "model", "service_s")

COLUMNS = (
    "arrival_s", "model", "tenant", "priority", "service_s", "predicted_s", "tokens_in", "tokens_out", "deadline_s",
)  # fmt: skip

SHAPE = Shape(COLUMNS, REQUIRED, frozenset({"model", "tenant"}))

#: The defaults, as sentences of the account.
DEFAULTS = {
    "tenant": "An empty tenant is everyone.",
    "priority": "An empty priority counts as 0.",
    "predicted_s": "An empty predicted_s is the service time itself: a perfect prediction.",
    "tokens_in": "An empty tokens_in counts as 0.",
    "tokens_out": "An empty tokens_out counts as 0.",
    "deadline_s": "An empty deadline_s: the task waits for ever.",
}

ROUNDING = "Times are rounded to whole microseconds, half of one up."

LONGEST_NAME = 200

#: Unknown models for which a near name is looked for.
_SUGGESTIONS = 40


@dataclass(frozen=True, slots=True)
class TaskTable:
    """The tasks of a file, the names that their models' rows stand for, and the account of every row of the file."""

    tasks: Tasks
    models: tuple[str, ...]
    account: Account


def read_tasks(path: str | Path, models: Sequence[str] | None = None) -> TaskTable:
    """Read a table of tasks; rows may stand in any order and are sorted by arrival.

    Parameters
    ----------
    path
        A UTF-8 file with a header row, ``.csv`` or ``.csv.gz``.
    models
        Names of the models of a scenario: every task must ask for one of them. None: models are numbered in the order
        in which the file names them.

    Raises
    ------
    InputError
        With every mistake: its line, its column, its value. A mistake of many rows is told once, with the first lines.
    """
    columns = read_columns(path, SHAPE)
    made, names, account = _tasks(columns, models, Path(path).name)
    raise_mistakes(path, columns)
    return TaskTable(made, names, account)


def _tasks(
    columns: "Columns", models: Sequence[str] | None, source: str
) -> tuple[Tasks, tuple[str, ...], Account]:
    """The tasks of the columns; what is wrong is told in `columns`, and then the tasks are worth nothing."""
    most_s, longest_s = MOST_US // SECOND, MOST_SERVICE_US // SECOND
    arrival = columns.times("arrival_s", most_s)
    model, names = _models(columns, models)
    tenant = columns.mapped("tenant", lambda text: _name(text) or "everyone", "everyone", object)
    priority = columns.whole("priority", -MOST_PRIORITY, MOST_PRIORITY, 0)
    service = columns.times("service_s", longest_s, optional=True)
    predicted = columns.times("predicted_s", longest_s, optional=True)
    tokens_in = columns.whole("tokens_in", 0, MOST_TOKENS, 0)
    tokens_out = columns.whole("tokens_out", 0, MOST_TOKENS, 0)
    deadline = columns.times("deadline_s", most_s, optional=True)
    columns.tell("deadline_s", "must not be before the arrival", deadline < arrival, deadline)
    if columns.broken:
        return tasks([]), (), Account(source, "tasks", 0, 0)
    known = ~np.isnan(service)
    guessed = np.where(np.isnan(predicted), service, predicted)
    made = tasks(
        _microseconds(arrival, known),
        model[known],
        tenant[known],
        priority[known],
        _microseconds(service, known),
        _microseconds(guessed, known),
        tokens_in[known],
        tokens_out[known],
        np.where(np.isnan(deadline), NEVER, _microseconds(deadline, slice(None)))[known],
    )
    counts = {
        "arrive before the row above: sorted by arrival": int((np.diff(arrival[known]) < 0).sum()),
        "take no time (service_s 0)": int((service == 0).sum()),
        "without a predicted time: the service time": int((known & np.isnan(predicted)).sum()),
    }
    unknown = int((~known).sum())
    account = Account(
        source,
        "tasks",
        len(columns),
        len(made),
        (("service_s is unknown (an empty cell)", unknown),) if unknown else (),
        tuple((what, count) for what, count in counts.items() if count),
        (
            ("asked for: sum of service times", float(service[known].sum()), "s"),
            ("from the first to the last arrival", _span_s(made), "s"),
        ),
        (*(rule for column, rule in DEFAULTS.items() if column not in columns.frame), ROUNDING),
        "tasks",
    )
    return made, names, account


def _span_s(made: Tasks) -> float:
    return float(made.arrival_us[-1] - made.arrival_us[0]) / SECOND if len(made) else 0.0


def _microseconds(seconds: "npt.NDArray[np.float64]", rows: Bools | slice) -> Int64:
    """Whole microseconds, half of one up; what is not known is 0."""
    return np.floor(np.nan_to_num(seconds[rows]) * SECOND + 0.5).astype(np.int64)


def _models(columns: "Columns", models: Sequence[str] | None) -> tuple[Int64, tuple[str, ...]]:
    """Row of the model of each task, int64[J], and the names of the models."""
    row = {name: k for k, name in reversed(list(enumerate(models or ())))}
    unknown = 0

    def read(text: str) -> int:
        nonlocal unknown
        if not text.strip():
            raise ValueError("must be given")
        if models is None:
            return row.setdefault(_name(text), len(row))
        if text not in row:
            unknown += 1
            raise ValueError(model_rule(text, models, unknown <= _SUGGESTIONS))
        return row[text]

    found: Int64 = columns.mapped("model", read, 0, np.int64)
    return found, tuple(models if models is not None else row)


def _name(text: str) -> str:
    """A text that is a name; raises ``ValueError`` with the rule that it breaks."""
    from pydantic_core import PydanticCustomError

    try:
        return Text(0, LONGEST_NAME).read(text)
    except PydanticCustomError as error:
        raise ValueError(error.message()) from None


def task_frame(made: Tasks, models: Sequence[str]) -> "pd.DataFrame":
    """The tasks as a table with the columns of a file, in order of arrival.

    Parameters
    ----------
    made
        The tasks.
    models
        Names that the rows of their models stand for.
    """
    import pandas as pd

    names = np.array([*models, ""], object)
    return pd.DataFrame(
        {
            "arrival_s": made.arrival_us / SECOND,
            "model": names[made.model],
            "tenant": made.tenant,
            "priority": made.priority,
            "service_s": made.service_us / SECOND,
            "predicted_s": made.predicted_us / SECOND,
            "tokens_in": made.tokens_in,
            "tokens_out": made.tokens_out,
            "deadline_s": np.where(made.deadline_us < NEVER, made.deadline_us / SECOND, np.nan),
        }
    )


def write_tasks(made: Tasks, models: Sequence[str], path: str | Path) -> None:
    """Write a table (UTF-8, gzip where the name ends in ``.gz``) that `read_tasks` reads back as the same tasks.

    Names are written as they are, so that they stay the same; who opens the table in a spreadsheet should import it as
    text.
    """
    task_frame(made, models).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
