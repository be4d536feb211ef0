"""What a worker does: the points of a chunk, each under its policies; a mistake stays with its point."""

import hashlib
import pickle
import signal
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpuplan.inputs.errors import InputError, shorten

#: Starts the error of a result that may come out otherwise another time; such a result is not kept in a folder.
NOT_COMPUTED = "not computed: "

#: Characters of an error in the table.
_LONGEST = 500


class Task(NamedTuple):
    """A point: its place in the grid, what it changes of scenario and effort, the policies that are missing."""

    place: int
    changes: dict[str, Any]
    effort: dict[str, Any]
    policies: tuple[str, ...]


class Outcome(NamedTuple):
    """A result: the point's place, the policy, its figures, or what was wrong."""

    place: int
    policy: str
    figures: dict[str, float | int | None] | None
    error: str | None


#: Scenarios of this process by fingerprint of their pickle; two at most.
_held: dict[str, Any] = {}


def parcel(scenario: Any) -> tuple[str, bytes]:
    """A scenario as bytes for other processes, and the name by which they keep it."""
    blob = pickle.dumps(scenario, protocol=pickle.HIGHEST_PROTOCOL)
    return hashlib.sha256(blob).hexdigest(), blob


def begin(token: str, blob: bytes | None) -> None:
    """Keep a scenario, if there is one yet, in a new process of a pool; Ctrl-C is for the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if blob is not None:
        _keep(token, blob)


def run_chunk(token: str, blob: bytes | None, tasks: Sequence[Task]) -> tuple[list[Outcome], float]:
    """The results of some points, and the seconds that they took.

    Parameters
    ----------
    token, blob
        The scenario (see `parcel`); no bytes where `begin` has kept it.
    tasks
        Points.
    """
    began = time.perf_counter()
    scenario = _held.get(token)
    if scenario is None:
        if blob is None:
            raise RuntimeError("the scenario of this sweep is not in this process")
        scenario = _keep(token, blob)
    found = [outcome for task in tasks for outcome in _of_point(scenario, task)]
    return found, time.perf_counter() - began


def _keep(token: str, blob: bytes) -> Any:
    if len(_held) > 1:
        _held.clear()
    _held[token] = pickle.loads(blob)
    return _held[token]


def _of_point(scenario: Any, task: Task) -> list[Outcome]:
    """All policies on one changed scenario: what is drawn from a seed is the same for each."""
    try:
        changed = scenario.replace(task.changes) if task.changes else scenario
    except Exception as error:
        return [Outcome(task.place, policy, None, _told(error)) for policy in task.policies]
    return [_of_policy(changed, task, policy) for policy in task.policies]


def _of_policy(scenario: Any, task: Task, policy: str) -> Outcome:
    try:
        return Outcome(task.place, policy, dict(_runner(scenario, policy, task.effort)), None)
    except Exception as error:  # whatever goes wrong, the other points go on
        return Outcome(task.place, policy, None, _told(error))


def _runner(scenario: Any, policy: str, effort: dict[str, Any]) -> Any:
    if scenario.kind == "fairshare":
        from gpuplan.fairshare.run import simulate

        return simulate(scenario, policy).figures
    if scenario.kind == "packing":
        from gpuplan.packing.run import pack

        return pack(scenario, policy).figures
    from gpuplan.allocation.plan import plan, repeatable

    if policy == "search" and not {"iterations", "budget_ms"} & set(effort):
        effort = {**effort, **repeatable(scenario)}  # moves, not time: the same plan on every machine
    return plan(scenario, policy, **effort).figures


def _told(error: Exception) -> str:
    """An error as one line; one that another time may not bring again says so."""
    if isinstance(error, InputError):
        return shorten("; ".join(map(str, error.mistakes)), _LONGEST)
    said = shorten(f"{type(error).__name__}: {error}".removesuffix(": "), _LONGEST)
    return f"{NOT_COMPUTED}{said}" if isinstance(error, (MemoryError, OSError)) else said
