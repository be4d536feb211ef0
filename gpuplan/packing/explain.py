"""What a task waits for at an instant: a sentence or two for people, from the stages and copies of a run alone."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.inputs.errors import shorten
from gpuplan.packing.check_node import condemned
from gpuplan.packing.model import GIB, NEVER, SECOND, Bools, Int64
from gpuplan.packing.progress import whole_us
from gpuplan.packing.raw import CUT, DONE, FAILED, LOAD, OUT_OF_MEMORY, RESTORE, RUN, SAVE, WAITING, WENT_ON
from gpuplan.packing.words import gib

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun


def why(run: "PackRun", j: int, t: int) -> str:
    """What task `j` waits for at microsecond `t`, after everything that happened then."""
    tasks, raw = run.problem.tasks, run.raw
    name = f"Task {j} ({_model(run, int(tasks.model[j]))})"
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
    return f"{name} {head}. {_line(now, j)}"


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


def amount(size: int) -> str:
    """Bytes for people: 19.7 GiB, or as they are where that is nothing."""
    return f"{size:,} bytes" if 0 < size < GIB // 100 else gib(size)


def _model(run: "PackRun", m: int) -> str:
    return shorten(run.scenario.models[m].name)


class Instant:
    """What is where at an instant, after everything that happened at it.

    Attributes
    ----------
    stage_of : int64[J]
        The stage that each task is in; -1: on no GPU.
    last_of : int64[J]
        Its last stage that began by then; -1: none.
    queued : bool[J]
        Tasks in the queue.
    copies : int64[C']
        Copies that are claimed and not released.
    """

    def __init__(self, run: "PackRun", t: int) -> None:
        self.run, self.t = run, t
        problem, raw = run.problem, run.raw
        rows, tasks, n = raw.stages, problem.tasks, len(problem.tasks)
        begun = np.flatnonzero(rows.start_us <= t)
        on = begun[(rows.end_us[begun] > t) | ((rows.outcome[begun] == CUT) & (rows.end_us[begun] == t))]
        self.stage_of: Int64 = np.full(n, -1, np.int64)
        self.stage_of[rows.task[on]] = on
        self.last_of: Int64 = np.full(n, -1, np.int64)
        self.last_of[rows.task[begun]] = begun
        here = (tasks.arrival_us <= t) & (raw.left_us > t) & (self.stage_of < 0)
        here[list(problem.rejected)] = False
        paused = np.flatnonzero(here & (self.last_of >= 0))
        last = self.last_of[paused]
        after = run.scenario.retry.after_us
        here[paused[(rows.outcome[last] == OUT_OF_MEMORY) & (rows.end_us[last] + after > t)]] = False
        self.queued: Bools = here
        copies = raw.copies
        self.copies: Int64 = np.flatnonzero((copies.claimed_us <= t) & (copies.released_us > t))
        self.goes: Int64 = condemned(problem, raw)

    def on(self, gpu: int) -> Int64:
        """Stages on a GPU."""
        stages = self.stage_of[self.stage_of >= 0]
        here: Int64 = stages[self.run.raw.stages.gpu[stages] == gpu]
        return here

    def copy_of(self, model: int, gpu: int) -> int:
        """The copy of a model on a GPU that need not go; -1: none."""
        copies = self.run.raw.copies
        mine = self.copies[(copies.gpu[self.copies] == gpu) & (copies.model[self.copies] == model)]
        mine = mine[self.goes[mine] > self.t]
        return int(mine[-1]) if len(mine) else -1

    def line(self, gpu: int | None) -> Int64:
        """Tasks in a queue, in its order (that of arrival where a policy merges by model)."""
        tasks, pieces = self.run.problem.tasks, self.run.pieces
        rows = np.flatnonzero(self.queued)
        if gpu is not None:
            rows = rows[rows % self.run.scenario.gpus.count == gpu]
        first = tasks.predicted_us[rows] if pieces.order == "shortest" else np.zeros(len(rows), np.int64)
        by: Int64 = rows[np.lexsort((rows, first, -tasks.priority[rows]))]
        return by


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
        gpu = run.raw.stages.gpu[now.last_of[j]]
        times = int(run.raw.failures[j])
        every = "the first time" if times == 1 else f"all {times} times"
        return f"was given up {ago(t - left)}: memory ran out {every}, at last on GPU {gpu}"
    return f"left unserved at its deadline {ago(t - left)}, after {span(int(books.latency[j]))}"


def _on_gpu(now: Instant, j: int, stage: int) -> str:
    rows, tasks, t = now.run.raw.stages, now.run.problem.tasks, now.t
    kind, gpu, start = int(rows.kind[stage]), int(rows.gpu[stage]), int(rows.start_us[stage])
    if kind == RUN:
        done = int(whole_us(now.run.memory.progress.at(np.array([stage]), np.array([t])))[0])
        share = done / max(int(tasks.service_us[j]), 1)
        others = int((rows.kind[now.on(gpu)] == RUN).sum()) - 1
        beside = f", beside {others:,} other{'s' if others > 1 else ''}" if others else ""
        return f"runs on GPU {gpu} for {span(t - start)} so far{beside}; {share:.0%} of its service is done"
    if kind == SAVE:
        return f"is being saved on GPU {gpu}{_for_whom(now, gpu, start, j)}, {_more(now, int(rows.end_us[stage]))}"
    if kind == RESTORE and rows.frozen_from_us[stage] <= t:
        return f"is brought back on GPU {gpu}, {_more(now, int(rows.end_us[stage]))}"
    return f"is on GPU {gpu} and {_getting_ready(now, j, gpu)}"


def _more(now: Instant, end: int) -> str:
    return f"{span(end - now.t)} more" if end < NEVER else "until after the end of the run"


def _for_whom(now: Instant, gpu: int, when: int, j: int) -> str:
    """For whom a task was interrupted on a GPU at an instant: `` for task 3 (priority 1)``."""
    rows, priority = now.run.raw.stages, now.run.problem.tasks.priority
    placed = (rows.gpu == gpu) & (rows.start_us == when) & ((rows.kind == LOAD) | (rows.kind == RESTORE))
    who = rows.task[np.flatnonzero(placed)]
    who = who[priority[who] > priority[j]]
    if not len(who):
        return ""
    first = int(who[np.argmax(priority[who])])
    return f" for task {first} (priority {priority[first]})"


def _getting_ready(now: Instant, j: int, gpu: int) -> str:
    """What a task on a GPU waits for until it starts: saves, evictions, a transfer."""
    run, t = now.run, now.t
    rows, copies = run.raw.stages, run.raw.copies
    model = int(run.problem.tasks.model[j])
    copy = now.copy_of(model, gpu)
    if copy >= 0 and copies.load_us[copy] <= t < copies.ready_us[copy]:
        source = "disk" if copies.from_disk[copy] else "host memory"
        size = amount(int(run.problem.weights[model]))
        return f"its model loads from {source} ({size}), {_more(now, int(copies.ready_us[copy]))}"
    saves = [int(s) for s in now.on(gpu) if rows.kind[s] == SAVE]
    there = now.copies[(copies.gpu[now.copies] == gpu) & (now.goes[now.copies] <= t)]
    waits = [f"task {rows.task[s]} to be saved ({_more(now, int(rows.end_us[s]))})" for s in saves[:2]]
    for c in there[:2].tolist():
        size = amount(int(run.problem.taken[copies.model[c]]))
        waits.append(f"{size} of {_model(run, int(copies.model[c]))} to be freed")
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
    end, gpu = int(rows.end_us[last]), int(rows.gpu[last])
    if rows.outcome[last] == OUT_OF_MEMORY:
        tries = run.scenario.retry.most + 1
        said = f"ran out of memory on GPU {gpu} {ago(t - end)} (attempt {rows.attempt[last] + 1} of {tries})"
        back = end + run.scenario.retry.after_us
        if back > t:
            return f"{said} and comes back to the queue in {span(back - t)}", False
        return f"{said} and waits again", True
    if rows.kind[last] == SAVE and rows.outcome[last] == WENT_ON:
        whom = _for_whom(now, gpu, int(rows.start_us[last]), j)
        return (
            f"was interrupted on GPU {gpu}{whom}, has been saved for {span(t - end)} and waits to go on",
            True,
        )
    return f"has waited {span(t - end)}", True


def _line(now: Instant, j: int) -> str:
    """Its place in line, and what it, or the one before whom nobody may pass, waits for."""
    run = now.run
    count = run.scenario.gpus.count
    own = j % count if run.pieces.placement == "round-robin" else None
    line = now.line(own)
    where = f" for GPU {own}" if own is not None else ""
    gpus = range(count) if own is None else [own]
    rank = int(np.flatnonzero(line == j)[0])
    if rank == 0:
        alone = "" if len(line) == 1 else f"It is first of {len(line):,} in line{where}. "
        return f"{alone}It {_room(now, j, gpus)}."
    first = int(line[0])
    model = _model(run, int(run.problem.tasks.model[first]))
    said = f"It is number {rank + 1:,} of {len(line):,} in line{where}"
    if run.pieces.order == "backfill" and rank <= run.pieces.depth:
        return f"{said}. It {_room(now, j, gpus)}."
    passes = "" if run.pieces.order == "backfill" else ", and nobody may pass it"
    return f"{said}; task {first} ({model}) is first{passes}. That one {_room(now, first, gpus)}."


def _room(now: Instant, j: int, gpus: "range | list[int]") -> str:
    """Which memory a task waits for: what it needs, and the most that could be made free, where."""
    run = now.run
    model = int(run.problem.tasks.model[j])
    need = int(run.problem.needed[model])
    found: list[tuple[int, int]] = []
    full, busy_copy = 0, 0
    for g in gpus:
        most = run.scenario.gpus.max_tasks
        if most is not None and len(now.on(g)) >= most:
            full += 1
            continue
        copy = now.copy_of(model, g)
        if copy >= 0:
            bound = run.scenario.models[model].max_tasks
            rows = run.raw.stages
            used = int((run.problem.tasks.model[rows.task[now.on(g)]] == model).sum())
            if bound is None or used < bound:
                return f"can go to GPU {g}, which has its model"
            busy_copy += 1
            continue
        found.append((_could_be_free(now, g), -g))
    if not found:
        if full:
            most = run.scenario.gpus.max_tasks
            tasks = f"{most:,} task{'' if most == 1 else 's'}"
            return f"waits for a place: every GPU that it may use has its {tasks}"
        return "waits for a place: every copy of its model has the tasks that it takes"
    free, g = max(found)
    some = []
    if full:
        some.append(f"{full:,} {'GPU has' if full == 1 else 'GPUs have'} no place for another task")
    if busy_copy:
        some.append(f"{busy_copy:,} {'copy' if busy_copy == 1 else 'copies'} of its model took no more")
    also = f"; {' and '.join(some)}" if some else ""
    if free >= need:
        return f"needs {amount(need)}, which can be made free on GPU {-g}{also}"
    most_free = f"the most that could be made free is {amount(free)}, on GPU {-g}"
    return f"needs {amount(need)}; {most_free if free > 0 else 'nothing can be made free now'}{also}"


def _could_be_free(now: Instant, gpu: int) -> int:
    """Bytes that would be free on a GPU if every idle copy that may be evicted were, as the scheduler counts."""
    run = now.run
    copies, problem, t = run.raw.copies, run.problem, now.t
    mine = now.copies[copies.gpu[now.copies] == gpu]
    used = np.unique(problem.tasks.model[run.raw.stages.task[now.on(gpu)]])
    pinned = np.array([model.pinned for model in run.scenario.models], bool)[copies.model[mine]]
    idle = (copies.ready_us[mine] <= t) & (now.goes[mine] > t) & ~pinned & ~np.isin(copies.model[mine], used)
    of_copy = problem.needed if run.scenario.admission.on == "declared" else problem.taken
    return run.memory.free(gpu, t) + int(of_copy[copies.model[mine[idle]]].sum())
