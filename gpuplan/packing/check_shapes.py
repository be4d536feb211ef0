"""Whether a run can be looked at: columns of one length, rows that exist. Part of `gpuplan.packing.check`."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import KINDS, sentences
from gpuplan.packing.raw import CUT, ON_GPU

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", raw: "RawPack") -> list[str]:
    """What keeps the other rules from being looked at, a sentence each."""
    return _lengths(problem, raw) or _bounds(problem, raw) or _sets(problem, raw)


def _lengths(problem: "Problem", raw: "RawPack") -> list[str]:
    found = []
    for word, table in (("stages", raw.stages), ("copies", raw.copies), ("breaches", raw.breaches)):
        columns = [name for name in type(table).__slots__ if name not in ("on", "starts")]
        if any(len(getattr(table, name)) != len(table) for name in columns):
            found.append(f"The columns of the {word} differ in length.")
    if any(len(column) != len(problem.tasks) for column in (raw.state, raw.left_us, raw.failures)):
        found.append("The columns of the tasks differ in length.")
    starts, on = raw.copies.starts, raw.copies.on
    if (
        len(starts) != len(raw.copies) + 1
        or starts[0] != 0
        or starts[-1] != len(on)
        or (np.diff(starts) < 0).any()
    ):
        found.append("It cannot be told which GPUs each copy is on.")
    return found


def _bounds(problem: "Problem", raw: "RawPack") -> list[str]:
    n, gpus, models = len(problem.tasks), problem.scenario.gpus.count, len(problem.needed)
    bounds = [
        ("A stage is of no task.", raw.stages.task, 0, n),
        ("A stage is on no GPU.", raw.stages.gpu, 0, gpus),
        ("A stage is on no copy.", raw.stages.copy, 0, len(raw.copies)),
        ("A stage is of no kind.", raw.stages.kind, 0, len(KINDS)),
        ("A stage ends in no known way.", raw.stages.outcome, 0, CUT + 1),
        ("A copy is of no model.", raw.copies.model, 0, models),
        ("A copy is on no GPU.", np.append(raw.copies.gpu, raw.copies.on), 0, gpus),
        ("A copy was claimed for no task.", raw.copies.for_task, -1, n),
        ("Memory ran out for no task.", raw.breaches.task, -1, n),
        ("Memory ran out on no GPU.", raw.breaches.gpu, 0, gpus),
        ("Memory ran out for no model.", raw.breaches.model, 0, models),
        ("A copy comes neither from disk nor from host memory.", raw.copies.from_disk, 0, 2),
        ("Something became of a task that cannot be.", raw.state, 0, ON_GPU + 1),
    ]
    return [
        said
        for said, column, least, over in bounds
        if len(column) and not (column.min() >= least and column.max() < over)
    ]


def _sets(problem: "Problem", raw: "RawPack") -> list[str]:
    """A copy is on as many different GPUs as its model wants; the lowest of them stands for it and for its tasks."""
    rows, copies = raw.stages, raw.copies
    count, wanted = np.diff(copies.starts), problem.spread[copies.model]
    found = sentences(
        np.flatnonzero(count != wanted),
        lambda c: f"Copy {c} is on {count[c]} GPUs; its model is spread over {wanted[c]}.",
    )
    if found:
        return found
    inside = np.ones(len(copies.on), bool)
    inside[copies.starts[:-1]] = False
    falls = np.flatnonzero(inside[1:] & (np.diff(copies.on) <= 0)) + 1
    of = np.unique(np.searchsorted(copies.starts, falls, "right") - 1)
    found = sentences(of, lambda c: f"The GPUs of copy {c} are not told in their order, each once.")
    lowest = copies.on[copies.starts[:-1]]
    found += sentences(
        np.flatnonzero(copies.gpu != lowest),
        lambda c: f"Copy {c} is said to be on GPU {copies.gpu[c]}; the lowest of its GPUs is {lowest[c]}.",
    )
    return found + sentences(
        np.flatnonzero(rows.gpu != copies.gpu[rows.copy]),
        lambda s: (
            f"Task {rows.task[s]} is said to be on GPU {rows.gpu[s]}, on a copy whose lowest GPU is "
            f"{copies.gpu[rows.copy[s]]}."
        ),
    )
