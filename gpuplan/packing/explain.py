"""What a task waits for at an instant: a sentence or two for people, from the stages and copies of a run alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.explain_line import line
from gpuplan.packing.instant import Instant, each_of, model_name
from gpuplan.packing.model import NEVER, SECOND
from gpuplan.packing.progress import whole_us
from gpuplan.packing.raw import DONE, FAILED, LOAD, OUT_OF_MEMORY, RESTORE, RUN, SAVE, WAITING, WENT_ON
from gpuplan.packing.words import on_gpus

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun


def why(run: "PackRun", j: int, t: int) -> str:
    """What task `j` waits for at microsecond `t`, after everything that happened then."""
    tasks, raw = run.problem.tasks, run.raw
    name = f"Task {j} ({model_name(run, int(tasks.model[j]))})"
    if tasks.arrival_us[j] > t or (raw.state[j] == WAITING and tasks.arrival_us[j] >= run.problem.until_us):
        return f"{name} has not arrived yet; it comes in {span(int(tasks.arrival_us[j]) - t)}."
    if j in run.problem.rejected:
        return f"{name} was rejected: {run.problem.rejected[j]}."
    now = Instant(run, t)
    if raw.left_us[j] <= t:
        return f"{name} {_left(now, j)}."
    stage = int(now.stage_of[j])
    if stage >= 0:
        return f"{name} {_on_gpu(now, j, stage)}."
    head, waits = _head(now, j)
    if not waits:
        return f"{name} {head}."
    return f"{name} {head}. {line(now, j)}"


def span(us: int) -> str:
    """A length of time for people: 4 us, 250 ms, 1.2 s, 12 min, 3.4 h."""
    if us < 1000:
        return f"{us} us"
    if us < SECOND:
        return f"{us / 1000:.3g} ms"
    if us < 120 * SECOND:
        return f"{us / SECOND:.3g} s"
    return f"{us / SECOND / 60:.0f} min" if us < 7200 * SECOND else f"{us / SECOND / 3600:.1f} h"


def ago(us: int) -> str:
    """How long ago something was: ``just now``, ``1.2 s ago``."""
    return f"{span(us)} ago" if us else "just now"


# ----------------------------------------------------------------------------- away, or on a GPU


def _left(now: Instant, j: int) -> str:
    run, t = now.run, now.t
    left = int(run.raw.left_us[j])
    books = run.ledger
    if run.raw.state[j] == DONE:
        whole, wait = int(books.latency[j]), int(books.wait[j])
        waited = f"{span(wait)} of that it waited" if wait else "it did not wait"
        return f"was done {ago(t - left)}, {span(whole)} after it came; {waited}"
    if run.raw.state[j] == FAILED:
        where = on_gpus(now.gpus_of(int(now.last_of[j])))
        times = int(run.raw.failures[j])
        every = "the first time" if times == 1 else f"all {times} times"
        return f"was given up {ago(t - left)}: memory ran out {every}, at last on {where}"
    return f"left unserved at its deadline {ago(t - left)}, after {span(int(books.latency[j]))}"


def _on_gpu(now: Instant, j: int, stage: int) -> str:
    rows, tasks, t = now.run.raw.stages, now.run.problem.tasks, now.t
    kind, start = int(rows.kind[stage]), int(rows.start_us[stage])
    gpus = now.gpus_of(stage)
    where = on_gpus(gpus)
    if kind == RUN:
        done = int(whole_us(now.run.memory.progress.at(np.array([stage]), np.array([t])))[0])
        share = done / max(int(tasks.service_us[j]), 1)
        others = int((rows.kind[now.on(*gpus)] == RUN).sum()) - 1
        beside = f", beside {others:,} other{'s' if others > 1 else ''}" if others else ""
        return f"runs on {where} for {span(t - start)} so far{beside}; {share:.0%} of its service is done"
    if kind == SAVE:
        return f"is being saved on {where}{_for_whom(now, gpus, start, j)}, {_more(now, int(rows.end_us[stage]))}"
    if kind == RESTORE and rows.frozen_from_us[stage] <= t:
        return f"is brought back on {where}, {_more(now, int(rows.end_us[stage]))}"
    return f"is on {where} and {_getting_ready(now, j, gpus)}"


def _more(now: Instant, end: int) -> str:
    return f"{span(end - now.t)} more" if end < NEVER else "until after the end of the run"


def _for_whom(now: Instant, gpus: Sequence[int], when: int, j: int) -> str:
    """For whom a task was interrupted on its GPUs at an instant: `` for task 3 (priority 1)``."""
    rows, priority = now.run.raw.stages, now.run.problem.tasks.priority
    mine = np.unique(np.concatenate([now.run.memory.stages_on(g) for g in gpus]))
    placed = (rows.start_us[mine] == when) & np.isin(rows.kind[mine], (LOAD, RESTORE))
    who = rows.task[mine[placed]]
    who = who[priority[who] > priority[j]]
    if not len(who):
        return ""
    first = int(who[np.argmax(priority[who])])
    return f" for task {first} (priority {priority[first]})"


def _getting_ready(now: Instant, j: int, gpus: Sequence[int]) -> str:
    """What a task on its GPUs waits for until it starts: saves, evictions, a transfer."""
    run, t = now.run, now.t
    rows, copies = run.raw.stages, run.raw.copies
    model = int(run.problem.tasks.model[j])
    spread = int(run.problem.spread[model])
    copy = now.copy_of(model, gpus[0])
    if copy >= 0 and copies.load_us[copy] <= t < copies.ready_us[copy]:
        source = "disk" if copies.from_disk[copy] else "host memory"
        size = each_of(int(run.problem.weights[model]), spread)
        return f"its model loads from {source} ({size}), {_more(now, int(copies.ready_us[copy]))}"
    saves = [int(s) for s in now.on(*gpus) if rows.kind[s] == SAVE]
    there = now.copies_on(*gpus)
    there = there[now.goes[there] <= t]
    waits = [f"task {rows.task[s]} to be saved ({_more(now, int(rows.end_us[s]))})" for s in saves[:2]]
    for c in there[:2].tolist():
        m = int(copies.model[c])
        size = each_of(int(run.problem.taken[m]), int(run.problem.spread[m]))
        waits.append(f"{size} of {model_name(run, m)} to be freed")
    if copy >= 0 and copies.ready_us[copy] <= t and not saves:
        waits = waits[:1]
    return f"waits for {' and '.join(waits)}" if waits else "is about to start"


# ----------------------------------------------------------------------------- in the queue


def _head(now: Instant, j: int) -> tuple[str, bool]:
    """What has happened to a task that is on no GPU, and whether it is in the queue."""
    run, t = now.run, now.t
    rows, last = run.raw.stages, int(now.last_of[j])
    if last < 0:
        return f"has waited {span(t - int(run.problem.tasks.arrival_us[j]))}", True
    end, gpus = int(rows.end_us[last]), now.gpus_of(last)
    where = on_gpus(gpus)
    if rows.outcome[last] == OUT_OF_MEMORY:
        tries = run.scenario.retry.most + 1
        said = f"ran out of memory on {where} {ago(t - end)} (attempt {rows.attempt[last] + 1} of {tries})"
        back = end + run.scenario.retry.after_us
        if back > t:
            return f"{said} and comes back to the queue in {span(back - t)}", False
        return f"{said} and waits again", True
    if rows.kind[last] == SAVE and rows.outcome[last] == WENT_ON:
        whom = _for_whom(now, gpus, int(rows.start_us[last]), j)
        return (
            f"was interrupted on {where}{whom}, has been saved for {span(t - end)} and waits to go on",
            True,
        )
    return f"has waited {span(t - end)}", True
