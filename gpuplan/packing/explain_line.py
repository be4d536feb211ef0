"""What a task in the queue waits for: its place in line, and the memory that it or the first one needs."""

import numpy as np

from gpuplan.packing.instant import Instant, each_of, model_name
from gpuplan.packing.spread import gpus_of
from gpuplan.packing.words import amount, on_gpus


def line(now: Instant, j: int) -> str:
    """Its place in line, and what it, or the one before whom nobody may pass, waits for."""
    run = now.run
    count = run.scenario.gpus.count
    own = j % count if run.pieces.placement == "round-robin" else None
    waiting = now.line(own)
    where = f" for GPU {own}" if own is not None else ""
    rank = int(np.flatnonzero(waiting == j)[0])
    if rank == 0:
        alone = "" if len(waiting) == 1 else f"It is first of {len(waiting):,} in line{where}. "
        return f"{alone}It {_room(now, j, own)}."
    first = int(waiting[0])
    model = model_name(run, int(run.problem.tasks.model[first]))
    said = f"It is number {rank + 1:,} of {len(waiting):,} in line{where}"
    if run.pieces.order == "backfill" and rank <= run.pieces.depth:
        return f"{said}. It {_room(now, j, own)}."
    passes = "" if run.pieces.order == "backfill" else ", and nobody may pass it"
    return f"{said}; task {first} ({model}) is first{passes}. That one {_room(now, first, own)}."


def _room(now: Instant, j: int, own: int | None) -> str:
    """Which memory a task waits for: what it needs, and the most that could be made free, where.

    `own` is the GPU of its line, under blind round-robin: it goes there, and to those after it where it needs several.
    """
    run = now.run
    model, count = int(run.problem.tasks.model[j]), run.scenario.gpus.count
    spread = int(run.problem.spread[model])
    gpus = list(range(count)) if own is None else [(own + k) % count for k in range(spread)]
    if spread > 1:
        return _wide_room(now, model, gpus, own is not None)
    need, most = int(run.problem.needed[model]), run.scenario.gpus.max_tasks
    found: list[tuple[int, int]] = []
    full, busy_copy = 0, 0
    for g in gpus:
        if most is not None and len(now.on(g)) >= most:
            full += 1
            continue
        copy = now.copy_of(model, g)
        if copy >= 0:
            if _has_place(now, copy):
                return f"can go to GPU {g}, which has its model"
            busy_copy += 1
            continue
        found.append((_could_be_free(now, g), -g))
    if not found:
        if full:
            tasks = f"{most:,} task{'' if most == 1 else 's'}"
            return f"waits for a place: every GPU that it may use has its {tasks}"
        return "waits for a place: every copy of its model has the tasks that it takes"
    free, g = max(found)
    also = _also(full, busy_copy)
    if free >= need:
        return f"needs {amount(need)}, which can be made free on GPU {-g}{also}"
    most_free = f"the most that could be made free is {amount(free)}, on GPU {-g}"
    return f"needs {amount(need)}; {most_free if free > 0 else 'nothing can be made free now'}{also}"


def _wide_room(now: Instant, model: int, gpus: list[int], blind: bool) -> str:
    """The same for a model over several GPUs, which needs room for its part on each of as many."""
    run = now.run
    most, spread = run.scenario.gpus.max_tasks, int(run.problem.spread[model])
    found: list[tuple[int, int]] = []
    copies: list[int] = []
    full = 0
    for g in gpus:
        copy = now.copy_of(model, g)
        if copy >= 0 and copy not in copies:
            where = on_gpus(gpus_of(run.raw.copies, copy))
            if _has_place(now, copy):
                return f"can go to {where}, which have its model"
            if blind:
                return f"waits for a place on {where}, which have its model and the tasks that they take"
            copies.append(copy)
        elif copy < 0 and most is not None and len(now.on(g)) >= most:
            full += 1
        elif copy < 0:
            found.append((_could_be_free(now, g), -g))
    need, also = int(run.problem.needed[model]), _also(full, len(copies))
    needs = f"needs {each_of(need, spread)}"
    best = sorted(found, reverse=True)[:spread]
    if len(best) < spread:
        return f"{needs}; {len(best) or 'no'} GPU{'s' * (len(best) > 1)} can take it now{also}"
    free, where = best[-1][0], on_gpus(sorted(-g for _, g in best))
    if free >= need:
        return f"{needs}, which can be made free on {where}{also}"
    if free <= 0:
        return f"{needs}; so many cannot be made free at all now{also}"
    return f"{needs}; the most that could be made free on as many is {amount(free)} each, on {where}{also}"


def _has_place(now: Instant, copy: int) -> bool:
    """Whether a copy takes one more task, on each of its GPUs."""
    run = now.run
    stages = now.stage_of[now.stage_of >= 0]
    bound = run.scenario.models[int(run.raw.copies.model[copy])].max_tasks
    if bound is not None and int((run.raw.stages.copy[stages] == copy).sum()) >= bound:
        return False
    most = run.scenario.gpus.max_tasks
    return most is None or all(len(now.on(g)) < most for g in gpus_of(run.raw.copies, copy))


def _could_be_free(now: Instant, gpu: int) -> int:
    """Bytes that would be free on a GPU if every idle copy that may be evicted were, as the scheduler counts."""
    run = now.run
    copies, problem, t = run.raw.copies, run.problem, now.t
    mine = now.copies_on(gpu)
    used = np.unique(problem.tasks.model[run.raw.stages.task[now.on(gpu)]])
    pinned = np.array([model.pinned for model in run.scenario.models], bool)[copies.model[mine]]
    idle = (copies.ready_us[mine] <= t) & (now.goes[mine] > t) & ~pinned & ~np.isin(copies.model[mine], used)
    of_copy = problem.needed if run.scenario.admission.on == "declared" else problem.taken
    return run.memory.free(gpu, t) + int(of_copy[copies.model[mine[idle]]].sum())


def _also(full: int, copies: int) -> str:
    """What stands in the way besides memory."""
    some = []
    if full:
        some.append(f"{full:,} {'GPU has' if full == 1 else 'GPUs have'} no place for another task")
    if copies:
        some.append(f"{copies:,} {'copy' if copies == 1 else 'copies'} of its model took no more")
    return f"; {' and '.join(some)}" if some else ""
