"""What traces of language-model services have in common: from tokens to tasks of a packing scenario.

No trace says how long a request occupies a GPU. `ServiceRule` states it; whoever uses a trace gives its numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.packing.limits import MOST_SERVICE_US, MOST_TOKENS
from gpuplan.packing.model import SECOND, Int64, PackingScenario
from gpuplan.packing.task_table import task_frame, write_tasks
from gpuplan.packing.tasks import Tasks, tasks
from gpuplan.packing.workloads import stream, weighted_choice

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ServiceRule:
    """The service time of a request alone on a GPU: fixed + tokens in / prefill rate + tokens out / decode rate.

    Attributes
    ----------
    prefill_tokens_per_s, decode_tokens_per_s
        Above 0. They depend on model and GPU; no trace says them: state your own.
    fixed_s
        Seconds of every request.
    """

    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    fixed_s: float = 0.0

    def __post_init__(self) -> None:
        rates = {
            "prefill_tokens_per_s": self.prefill_tokens_per_s,
            "decode_tokens_per_s": self.decode_tokens_per_s,
        }
        wrong = [
            Mistake(name, "must be a number above 0", rate)
            for name, rate in rates.items()
            if not 0 < rate < np.inf
        ]
        if not 0 <= self.fixed_s < np.inf:
            wrong.append(Mistake("fixed_s", "must be a number of at least 0", self.fixed_s))
        if wrong:
            raise InputError("service rule", wrong)

    def service_us(self, tokens_in: Int64, tokens_out: Int64) -> Int64:
        """Service times in whole microseconds, int64[J]."""
        prefill, decode = tokens_in / self.prefill_tokens_per_s, tokens_out / self.decode_tokens_per_s
        times = (self.fixed_s + prefill + decode) * SECOND
        return np.rint(np.minimum(times, MOST_SERVICE_US)).astype(np.int64)

    def __str__(self) -> str:
        fixed = f"{self.fixed_s:g} s + " if self.fixed_s else ""
        return (
            f"Service time alone on a GPU: {fixed}tokens in / {self.prefill_tokens_per_s:g} per s + "
            f"tokens out / {self.decode_tokens_per_s:g} per s; the trace does not say it."
        )


@dataclass(frozen=True, slots=True)
class TaskTrace:
    """The tasks of a trace, the names that their models' rows stand for, and the account of every row of the file."""

    tasks: Tasks
    models: tuple[str, ...]
    account: Account

    def put_into(self, scenario: PackingScenario) -> PackingScenario:
        """The scenario with these tasks in place of its own.

        Raises
        ------
        InputError
            Where the scenario lacks a model that tasks ask for.
        """
        row = {model.name: k for k, model in enumerate(scenario.models)}
        asked = [self.models[k] for k in np.unique(self.tasks.model).tolist()]
        missing = [name for name in asked if name not in row]
        if missing:
            rule = "must be a model of the scenario"
            raise InputError(
                scenario.name, [Mistake("models", rule + did_you_mean(name, row), name) for name in missing]
            )
        number = np.array([row.get(name, -1) for name in self.models], np.int64)
        t = self.tasks
        made = tasks(
            t.arrival_us, number[t.model], t.tenant, t.priority, t.service_us, t.predicted_us,  # type: ignore[arg-type]
            t.tokens_in, t.tokens_out, t.deadline_us,
        )  # fmt: skip
        told = self.account
        return scenario.with_tasks(
            made, (f"{told.source}: {told.read:,} {told.rows} read, {told.used:,} used.", *told.rules)
        )

    def to_frame(self) -> "pd.DataFrame":
        """The tasks as a table with the columns of a task file."""
        return task_frame(self.tasks, self.models)

    def save(self, path: str | Path) -> None:
        """Write a task file (``.csv`` or ``.csv.gz``) for ``tasks: {file: ...}`` of a scenario."""
        write_tasks(self.tasks, self.models, path)


def together(traces: Sequence[TaskTrace]) -> TaskTrace:
    """The tasks of several traces on one clock, and their accounts added up; models of one name are one model.

    Raises
    ------
    InputError
        For no traces at all.
    """
    if not traces:
        raise InputError("traces", [Mistake("traces", "must be at least one", [])])
    row: dict[str, int] = {}
    numbers = [
        np.array([row.setdefault(name, len(row)) for name in trace.models], np.int64) for trace in traces
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(trace.tasks, name) for trace in traces])
        for name in Tasks.__slots__
        if name != "model"
    }
    model = np.concatenate([number[trace.tasks.model] for number, trace in zip(numbers, traces, strict=True)])
    told = [trace.account for trace in traces]
    kinds = dict.fromkeys(account.rows for account in told)
    account = Account(
        " + ".join(account.source for account in told),
        " and ".join(kinds),
        sum(account.read for account in told),
        sum(account.used for account in told),
        tuple((f"{account.source}: {why}", count) for account in told for why, count in account.excluded),
        tuple((f"{account.source}: {what}", count) for account in told for what, count in account.changed),
        tuple(
            (f"{account.source}: {what}", n, unit) for account in told for what, n, unit in account.amounts
        ),
        tuple(dict.fromkeys(rule for account in told for rule in account.rules)),
        "tasks",
    )
    return TaskTrace(tasks(model=model, **columns), tuple(row), account)


def whole_tokens(values: "pd.Series") -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Numbers of tokens, and which of them are known: whole, not negative, not more than a task may have."""
    import pandas as pd

    found = pd.to_numeric(values, errors="coerce").to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        known = np.isfinite(found) & (found >= 0) & (found <= MOST_TOKENS) & (found == np.floor(found))
    return np.where(known, found, 0).astype(np.int64), known


def deal(models: str | Mapping[str, float], n: int, seed: int) -> tuple[Int64, tuple[str, ...]]:
    """A model for each of `n` tasks: always the one, or at random by shares; int64[n] and the names.

    Raises
    ------
    InputError
        For shares that are negative or all 0.
    """
    if isinstance(models, str):
        return np.zeros(n, np.int64), (models,)
    shares = np.array(list(models.values()), np.float64)
    if not len(shares) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
        rule = "must be shares of at least 0, one of them above 0"
        raise InputError("models", [Mistake("models", rule, list(models.values()))])
    return weighted_choice(shares, stream(seed, "models of a trace").random(n)), tuple(models)


def trace_of(
    source: str,
    arrival_us: Int64,
    tokens: tuple[Int64, Int64],
    excluded: tuple[tuple[str, int], ...],
    models: str | Mapping[str, float],
    rule: ServiceRule,
    seed: int,
    rules: tuple[str, ...],
) -> TaskTrace:
    """The trace of a file with a row per request, of which these arrivals and tokens are used."""
    model, names = deal(models, len(arrival_us), seed)
    service = rule.service_us(*tokens)
    made = tasks(
        arrival_us, model, service_us=service, tokens_in=tokens[0], tokens_out=tokens[1], tenant="everyone"
    )
    dealt: tuple[str, ...] = ()
    if len(names) > 1:
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        dealt = (f"The trace names no model: requests are dealt over {listed} at random (seed {seed}).",)
    left_out = sum(count for _, count in excluded)
    account = Account(
        source,
        "requests",
        len(made) + left_out,
        len(made),
        tuple((why, count) for why, count in excluded if count),
        (),
        (
            ("tokens in", float(made.tokens_in.sum()), "tokens"),
            ("tokens out", float(made.tokens_out.sum()), "tokens"),
            ("sum of service times", float(service.sum()) / SECOND, "s"),
            (
                "from the first to the last arrival",
                float(np.ptp(arrival_us)) / SECOND if len(made) else 0.0,
                "s",
            ),
        ),
        (str(rule), *dealt, *rules),
        "tasks",
    )
    return TaskTrace(made, names, account)
