"""Runs: pack a scenario's models under a policy, and what is known about the result."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpuplan import run_log
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.packing import figures as counting
from gpuplan.packing.figures import MEANINGS, UNITS, Figures
from gpuplan.packing.ledger import Ledger, ledger
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import SECOND, PackingScenario, Pieces
from gpuplan.packing.raw import Breaches, Copies, RawPack, Stages
from gpuplan.side_by_side import SideBySide, as_text

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.packing.problem import Problem

#: Fields of a scenario that do not change what happens.
_SILENT = ("tasks", "tasks_file", "about", "notes", "policy")


class PackRun:
    """What a policy made of a scenario; arrays are read-only.

    Attributes
    ----------
    scenario : PackingScenario
    policy : str
        As it was asked for: ``"best-fit+backfill+lfu"``.
    pieces : Pieces
        What that means here, with the pieces that it does not name.
    problem : Problem
        The scenario as arrays: ``problem.tasks``.
    raw : RawPack
    end_s : float
        The run ended there, seconds after its start.
    seconds : float
        Wall-clock time of the policy (not part of the fingerprint).
    """

    def __init__(self, problem: "Problem", policy: str, pieces: Pieces, raw: RawPack, seconds: float) -> None:
        run_log.ran(problem.scenario)
        self.problem = problem
        self.scenario: PackingScenario = problem.scenario
        self.policy = policy
        self.pieces = pieces
        self.raw = _read_only(raw)
        self.end_s = raw.end_us / SECOND
        self.seconds = seconds

    # ----------------------------------------------------------------- figures

    @cached_property
    def ledger(self) -> Ledger:
        """Where the time of each task went, microseconds."""
        return ledger(self.problem, self.raw)

    @cached_property
    def memory(self) -> Memory:
        """The memory of each GPU over time, exact."""
        return Memory(self.problem, self.raw)

    @cached_property
    def figures(self) -> Figures:
        """The figures by name (units and meanings in `gpuplan.packing.figures`)."""
        return counting.figures(self.problem, self.raw, self.ledger, self.memory)

    @cached_property
    def model_names(self) -> npt.NDArray[np.object_]:
        """Names of the models by row."""
        return np.array([model.name for model in self.scenario.models], object)

    def check(self) -> list[str]:
        """Rules that the run breaks, a sentence each, found by code that shares nothing with the kernels."""
        from gpuplan.packing.check import check

        return check(self.problem, self.pieces, self.raw)

    @cached_property
    def violations(self) -> int:
        """Number of broken rules (0 for every legal run)."""
        return len(self.check())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of scenario, tasks, policy and everything that happened: equal runs, equal text."""
        digest = hashlib.sha256()
        for part in fields(PackingScenario):
            if part.name not in _SILENT:
                digest.update(f"{part.name}\t{getattr(self.scenario, part.name)!r}\n".encode())
        digest.update(f"{self.policy}\t{self.pieces!r}\t{self.raw.end_us}\n".encode())
        tasks = self.problem.tasks
        for name in type(tasks).__slots__:
            if name != "tenant":
                _add(digest, getattr(tasks, name))
        digest.update("\0".join(tasks.tenant.astype(str).tolist()).encode())
        for table in (self.raw.stages, self.raw.copies, self.raw.breaches):
            for name in type(table).__slots__:
                _add(digest, getattr(table, name))
        for array in (self.raw.state, self.raw.left_us, self.raw.failures):
            _add(digest, array)
        for j, reason in sorted(self.problem.rejected.items()):
            digest.update(f"{j}\t{reason}\n".encode())
        return digest.hexdigest()

    # ---------------------------------------------------------------- sentences

    def why(self, task: int, t: float | str) -> str:
        """What a task waits for at an instant, as a sentence (where it is, if it is on a GPU).

        Parameters
        ----------
        task
            Its number: its row in ``tasks``.
        t
            Seconds after the start, or text with a unit (``"3 min"``).

        Raises
        ------
        InputError
            If there is no such task, or the instant is not in the run.
        """
        from gpuplan.packing.explain import why

        return why(self, self.row_of(task), self.instant(t))

    def row_of(self, task: int | str) -> int:
        """Row of a task; an `InputError` where there is none."""
        n = len(self.problem.tasks)
        try:
            row = int(task)
        except (TypeError, ValueError, OverflowError):
            row = -1
        if isinstance(task, bool) or row != _plain(task) or not 0 <= row < n:
            rule = f"must be the number of a task, from 0 to {n - 1:,}" if n else "there is no task"
            raise InputError(self.scenario.name, [Mistake("task", rule, task)])
        return row

    def instant(self, t: float | str) -> int:
        """An instant of the run in whole microseconds; an `InputError` for anything else."""
        from gpuplan.inputs.fields import Hours, number

        plain = number(t)
        try:
            seconds = (Hours(0, 1e9).read(t) or 0.0) * 3600 if plain is None else plain
        except ValueError:
            rule = "must be seconds, or text with a unit such as 3 min"
            raise InputError(self.scenario.name, [Mistake("t", rule, t)]) from None
        found = round(seconds * SECOND)
        if not 0 <= found <= self.raw.end_us:
            rule = f"must be from 0 to {self.end_s} s, the end of the run"
            raise InputError(self.scenario.name, [Mistake("t", rule, t)])
        return found

    # ------------------------------------------------------------------ tables

    @property
    def stages(self) -> Stages:
        """Stages of tasks on GPUs as arrays, by start (a table: `to_frame`)."""
        return self.raw.stages

    @property
    def copies(self) -> Copies:
        """Loaded copies of models as arrays, by claim."""
        return self.raw.copies

    @property
    def breaches(self) -> Breaches:
        """Times that memory ran out, as arrays."""
        return self.raw.breaches

    @cached_property
    def tasks(self) -> "pd.DataFrame":
        """A row per task: what it asked for, what became of it, where its time went."""
        from gpuplan.packing.tables import tasks

        return tasks(self)

    @cached_property
    def tenants(self) -> "pd.DataFrame":
        """A row per tenant: its tasks by outcome, latencies and waits."""
        from gpuplan.packing.tables import tenants

        return tenants(self)

    @cached_property
    def priorities(self) -> "pd.DataFrame":
        """A row per priority, the most important first."""
        from gpuplan.packing.tables import priorities

        return priorities(self)

    @cached_property
    def models(self) -> "pd.DataFrame":
        """A row per model: its tasks by outcome, latencies and waits, loads and evictions."""
        from gpuplan.packing.tables import by_model

        return by_model(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row per stage of a task on a GPU: ``task, model, tenant, priority, gpu, stage, start_s, end_s``, ..."""
        from gpuplan.packing.tables import stages

        return stages(self)

    def report(self) -> dict[str, Any]:
        """The figures for ``--json``: with ``tenants`` and ``priorities``, ``violations`` and ``seconds``."""
        tables = {
            "tenants": _records(self.tenants, "tenant"),
            "priorities": _records(self.priorities, "priority"),
        }
        return {**self.figures, **tables, "violations": self.violations, "seconds": self.seconds}

    def __repr__(self) -> str:
        found = self.figures
        times = "none done"
        if found["latency_mean_s"] is not None:
            times = f"latency mean {shown('latency_mean_s', found['latency_mean_s'])} s"
            times += f", wait p95 {shown('wait_p95_s', found['wait_p95_s'])} s"
        return (
            f"<PackRun {self.policy} of {shorten(self.scenario.name)!r}: "
            f"{found['tasks_done']:,} of {found['tasks_arrived']:,} tasks done, {times}, "
            f"{found['out_of_memory']:,} out of memory, {found['evictions']:,} evictions, "
            f"{found['preemptions']:,} preemptions>"
        )

    def _repr_html_(self) -> str:
        return Comparison({self.policy: self})._repr_html_()


class Comparison(SideBySide[PackRun]):
    """Runs of one scenario side by side: ``runs`` by policy, ``table`` tidy, ``wide`` for reading."""

    units = UNITS
    meanings = MEANINGS

    @property
    def runs(self) -> dict[str, PackRun]:
        """The runs by policy."""
        return self.results


def shown(figure: str, value: float | int | None) -> str:
    """A figure as text: shares in per cent with one decimal, amounts with two, counts whole."""
    return as_text(value, UNITS[figure])


def pack(scenario: Any, policy: str | None = None) -> PackRun:
    """Run a scenario under a policy.

    Parameters
    ----------
    scenario
        A `PackingScenario`, or the mapping of a scenario file.
    policy
        Names of pieces (see `gpuplan.packing.policies`) joined by ``+``: a placement, and where wanted a queue order
        and an eviction; the scenario's own for what is not named. None: all of them the scenario's own.

    Raises
    ------
    InputError
        For an unknown piece, or a scenario with mistakes.
    """
    from gpuplan.packing.problem import compile_problem

    found = ready(scenario)
    name, pieces = _policy(found, policy)
    return _run(compile_problem(found), name, pieces)


def compare(scenario: Any, policies: Sequence[str] = ("round-robin", "best-fit")) -> Comparison:
    """Run a scenario under several policies, on one and the same tasks.

    Raises
    ------
    InputError
        For an unknown piece, no policy at all, or a scenario with mistakes.
    """
    from gpuplan.packing.problem import compile_problem

    names = [policies] if isinstance(policies, str) else list(dict.fromkeys(policies))
    if not names:
        raise InputError("packing", [Mistake("policies", "must name at least one policy", names)])
    found = ready(scenario)
    chosen = [_policy(found, name) for name in names]
    problem = compile_problem(found)
    return Comparison({name: _run(problem, name, pieces) for name, pieces in chosen})


def ready(source: Any) -> PackingScenario:
    """A scenario as it is, or that of a mapping; an `InputError` for anything else."""
    if isinstance(source, PackingScenario):
        return source
    if isinstance(source, Mapping):
        from gpuplan.packing.schema import from_mapping

        return from_mapping(source)
    rule = "must be a scenario or a mapping; gpuplan.load reads shipped names and files"
    raise InputError("packing", [Mistake("scenario", rule, source)])


def _policy(scenario: PackingScenario, policy: str | None) -> tuple[str, Pieces]:
    from gpuplan.packing.policies import name_of, pieces_named

    if policy is None:
        return name_of(scenario.policy), scenario.policy
    return policy, pieces_named(policy, scenario.policy)


def _run(problem: "Problem", policy: str, pieces: Pieces) -> PackRun:
    from gpuplan.packing.engine import run

    began = time.perf_counter()
    raw = run(problem, pieces)
    return PackRun(problem, policy, pieces, raw, time.perf_counter() - began)


def _plain(value: Any) -> Any:
    """A whole number written as text as that number; anything else as it is."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _records(table: "pd.DataFrame", key: str) -> dict[str, dict[str, Any]]:
    """Rows of a table by one of its columns, as plain values."""
    rows = table.astype(object).where(table.notna(), None).set_index(key).to_dict("index")
    return {str(name): {str(k): v for k, v in row.items()} for name, row in rows.items()}


def _add(digest: Any, array: npt.NDArray[Any]) -> None:
    plain = np.ascontiguousarray(array)
    digest.update(plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes())


def _read_only(raw: RawPack) -> RawPack:
    """The same run, its arrays read-only."""
    for table in (raw.stages, raw.copies, raw.breaches):
        for name in type(table).__slots__:
            getattr(table, name).setflags(write=False)
    for array in (raw.state, raw.left_us, raw.failures):
        array.setflags(write=False)
    return raw


def warm_up() -> None:
    """Compile every kernel (or read it from the cache), so that no later run waits for it."""
    from gpuplan.packing import fragmentation
    from gpuplan.packing.model import GIB, Gpus, ServedModel
    from gpuplan.packing.tasks import tasks

    fragmentation.warm_up()
    one = tasks([0], service_us=[1])
    tiny = PackingScenario("warm-up", Gpus(1, GIB), (ServedModel("model", 1, 1),), tasks=one)
    pack(tiny)
