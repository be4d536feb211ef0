"""From a problem and the pieces of a policy to the kernel's tables, and from its logs to a `RawPack`."""

import math

import numpy as np

from gpuplan.packing import kernels
from gpuplan.packing.model import NEVER, Int64, Pieces, ServedModel
from gpuplan.packing.policies import code_of
from gpuplan.packing.problem import Problem
from gpuplan.packing.raw import Breaches, Copies, RawPack, Stages

#: Popularity of models, in sum, as the kernel counts it.
POPULARITY = 1 << 20

_PREEMPT = {
    "never": kernels.PREEMPT_NEVER,
    "always": kernels.PREEMPT_ALWAYS,
    "threshold": kernels.PREEMPT_THRESHOLD,
}
_CONTENTION = {
    "none": kernels.NO_CONTENTION,
    "sharing": kernels.SHARING,
    "slowdown": kernels.SLOWDOWN,
}


def run(problem: Problem, pieces: Pieces) -> RawPack:
    """What a policy does with a problem (see `gpuplan.packing.kernels.run_pack`)."""
    tables = Tables(problem, pieces)
    while kernels.run_pack(*tables.still, *tables.growing) == kernels.TOO_SHORT:
        tables.grow()
    return tables.raw()


class Tables:
    """The tables of a run: those whose size is known, and those that grow."""

    def __init__(self, problem: Problem, pieces: Pieces) -> None:
        count = problem.scenario.gpus.count
        n, n_models = len(problem.tasks), len(problem.needed)
        self.settings = settings(problem, pieces)
        self.models = models(problem)
        self.gpus = np.zeros((count, kernels.GPU_COLUMNS), np.int64)
        self.gpus[:, [kernels.FIRST, kernels.LAST, kernels.ROOT]] = -1
        self.gpus[:, [kernels.ENDS, kernels.RUNS_OVER]] = NEVER
        self.gpus[:, kernels.DIRTY] = 1
        self.cells = np.zeros((count, n_models, kernels.CELL_COLUMNS), np.int64)
        self.cells[:, :, [kernels.AT, kernels.FAILS]] = -1
        n_lines = count if pieces.placement == "round-robin" else 1
        self.tasks, order, by_group, lines = in_line(problem, pieces, n_lines)
        self.fate = np.empty((kernels.FATE_ROWS, n), np.int64)
        self.fate[:] = [[kernels.WAITING], [NEVER], [0]]
        residents = [(m, on) for m, model in enumerate(problem.scenario.models) for on in sets_of(model)]
        self.work = np.empty((min(n, 1024) + 8, kernels.WORK_COLUMNS), np.int64)
        self.room = np.empty((count * n_models + 1024, kernels.COPY_COLUMNS), np.int64)
        self.copies = np.empty((kernels.COPY_ROWS, len(self.room)), np.int64)
        self.stages = np.empty((kernels.STAGE_ROWS, 2 * n + n // 8 + 1024), np.int64)
        self.breaches = np.empty((kernels.BREACH_ROWS, 1024), np.int64)
        for m, on in residents:
            self.load(m, on)
        self.still = (
            problem.scenario.contention.beta,
            self.settings,
            self.tasks,
            order,
            by_group,
            by_deadline(problem),
            self.models,
            self.gpus,
            self.cells,
            lines,
            empty_set(n),
            empty_set(n if pieces.order == "by-model" else 0),
            np.empty(count * n_models + 1, np.int64),
            self.fate,
        )

    @property
    def growing(self) -> tuple[Int64, ...]:
        """The tables that may prove too short, as the kernel takes them."""
        return self.work, self.room, self.stages, self.copies, self.breaches

    def grow(self) -> None:
        """Each table that is nearly full twice as long, and longer by what one instant may add."""
        more = 4 * int(self.settings[kernels.ATTACHED_NOW]) + len(self.gpus) + 64
        used = self.settings
        if used[kernels.N_PLACES] == len(self.work):
            self.work = np.concatenate((self.work, np.empty_like(self.work)))
        if used[kernels.N_PARTS] + more > len(self.room):
            self.room = np.concatenate(
                (self.room, np.empty((len(self.room) + more, self.room.shape[1]), np.int64))
            )
            self.copies = _longer(self.copies, len(self.room))
        if used[kernels.N_STAGES] + more > self.stages.shape[1]:
            self.stages = _longer(self.stages, 2 * self.stages.shape[1] + more)
        if used[kernels.N_BREACHES] + more > self.breaches.shape[1]:
            self.breaches = _longer(self.breaches, 2 * self.breaches.shape[1] + more)

    def load(self, m: int, on: tuple[int, ...]) -> None:
        """A copy of model ``m`` is ready on GPUs from the start."""
        used, model = self.settings, self.models[m]
        i, n = int(used[kernels.N_PARTS]), int(used[kernels.N_COPIES])
        used[kernels.N_PARTS], used[kernels.N_COPIES] = i + len(on), n + 1
        for k, g in enumerate(on, start=i):
            gpu, cell, part = self.gpus[g], self.cells[g], self.room[k]
            part[:] = 0
            part[kernels.C_GPU], part[kernels.C_HEAD], part[kernels.C_LIVE] = g, i, gpu[kernels.LIVE_COPIES]
            cell[gpu[kernels.LIVE_COPIES], kernels.LIVE] = k
            gpu[kernels.LIVE_COPIES] += 1
            cell[m, kernels.AT] = i
            cell[m, kernels.LOADED] = 1
            gpu[kernels.RESERVED] += model[kernels.NEED]
            gpu[kernels.FIXED] += model[kernels.TAKEN]
            if not model[kernels.PINNED]:
                gpu[kernels.IDLE_NEED] += model[kernels.NEED]
                gpu[kernels.IDLE_TAKEN] += model[kernels.TAKEN]
        copy = self.room[i]
        copy[kernels.C_MODEL], copy[kernels.C_STATE] = m, kernels.READY
        copy[kernels.C_WIDTH], copy[kernels.C_LOG] = len(on), n
        copy[[kernels.C_CLAIMER, kernels.C_FOR, kernels.C_FOLLOWS, kernels.C_AFTER, kernels.C_BEFORE]] = -1
        model[kernels.IN_HOST] = 1
        self.copies[:, n] = [m, on[0], 0, 0, 0, NEVER, NEVER, 0, -1]
        if not model[kernels.PINNED]:
            self.expires(i)

    def expires(self, i: int) -> None:
        """An idle copy joins the end of the list of those that may expire."""
        used = self.settings
        if used[kernels.ALIVE_US] == NEVER:
            return
        last = used[kernels.IDLE_END]
        self.room[i, kernels.C_BEFORE] = last
        if last >= 0:
            self.room[last, kernels.C_AFTER] = i
        else:
            used[kernels.IDLE] = i
        used[kernels.IDLE_END] = i

    def raw(self) -> RawPack:
        """What the kernel logged, as read-only columns."""
        used = self.settings
        stages = self.stages[:, : used[kernels.N_STAGES]]
        copies = self.copies[:, : used[kernels.N_COPIES]]
        breaches = self.breaches[:, : used[kernels.N_BREACHES]]
        for table in (stages, copies, breaches, self.fate):
            table.flags.writeable = False
        state, left, failures = self.fate
        end = int(used[kernels.T])
        parts = self.room[: used[kernels.N_PARTS]]
        on, heads = parts[:, kernels.C_GPU].copy(), parts[:, kernels.C_HEAD]
        starts = np.append(np.flatnonzero(heads == np.arange(len(parts))), len(parts))
        on.flags.writeable = starts.flags.writeable = False
        return RawPack(
            Stages(*stages),
            Copies(*[*copies, on, starts]),
            Breaches(*breaches),
            state,
            left,
            failures,
            end,
        )


def sets_of(model: ServedModel) -> list[tuple[int, ...]]:
    """GPUs of each copy of a model that is there from the start."""
    if model.gpus == 1:
        return [(g,) for g in model.resident]
    found = sorted(model.resident)
    return [tuple(found[first : first + model.gpus]) for first in range(0, len(found), model.gpus)]


def settings(problem: Problem, pieces: Pieces) -> Int64:
    """The kernel's settings and scalars, as a run begins."""
    scenario = problem.scenario
    gpus, preemption, retry = scenario.gpus, scenario.preemption, scenario.retry
    alive = pieces.keep_alive_us if pieces.eviction == "keep-alive" else None
    given = {
        kernels.HORIZON: problem.until_us,
        kernels.MEMORY: gpus.memory_bytes,
        kernels.HOST_RATE: gpus.host_bytes_per_s,
        kernels.DISK_RATE: gpus.disk_bytes_per_s,
        kernels.RELEASE_US: gpus.release_us,
        kernels.GPU_TASKS: NEVER if gpus.max_tasks is None else gpus.max_tasks,
        kernels.HOST_CACHE: gpus.host_cache,
        kernels.ON_FREE: scenario.admission.on == "free",
        kernels.PREEMPT: _PREEMPT[preemption.when],
        kernels.THRESHOLD_US: preemption.threshold_us,
        kernels.SAVE_US: preemption.save_us,
        kernels.RESTORE_US: preemption.restore_us,
        kernels.CONTENTION: _CONTENTION[scenario.contention.model],
        kernels.RETRY_MOST: retry.most,
        kernels.RETRY_US: retry.after_us,
        kernels.PLACEMENT: code_of(pieces, "placement"),
        kernels.ORDER: code_of(pieces, "order"),
        kernels.EVICTION: code_of(pieces, "eviction"),
        kernels.DEPTH: pieces.depth,
        kernels.ALIVE_US: NEVER if alive is None else alive,
        kernels.LEAST_RANK: problem.tasks.priority.min(initial=NEVER),
        kernels.WIDEST: problem.spread.max(initial=1),
        kernels.LAST_GPU: gpus.count - 1,
        kernels.FREE_PLACE: -1,
        kernels.NEXT_MOVE: NEVER,
        kernels.FRESH: 1,
    }
    found = np.zeros(kernels.SETTING_COLUMNS, np.int64)
    found[kernels.LEAVING :] = -1
    found[list(given)] = list(given.values())
    return found


def models(problem: Problem) -> Int64:
    """The kernel's table of models."""
    scenario = problem.scenario
    found = np.zeros((len(problem.needed), kernels.MODEL_COLUMNS), np.int64)
    found[:, kernels.NEED] = problem.needed
    found[:, kernels.TAKEN] = problem.taken
    found[:, kernels.ASLEEP] = problem.asleep
    found[:, kernels.WEIGHTS] = problem.weights
    found[:, kernels.SPREAD] = problem.spread
    for row, model in zip(found, scenario.models, strict=True):
        row[kernels.PER_TOKEN] = scenario.part(model.kv_bytes_per_token, model)
        row[kernels.WHOLE] = model.actual_bytes
        row[kernels.PINNED] = model.pinned
        row[kernels.MODEL_TASKS] = NEVER if model.max_tasks is None else model.max_tasks
    by = np.argsort(problem.needed, kind="stable")
    found[:, kernels.NEED_SORTED] = problem.needed[by]
    found[:, kernels.POPULAR] = np.cumsum(popularity(problem)[by][::-1])[::-1]
    return found


def popularity(problem: Problem) -> Int64:
    """Popularity of each model times a power of two, in sum at most about `POPULARITY`, rounded; int64[M].

    Sums of whole numbers are exact, and so are equal values.
    """
    weights = [model.popularity for model in problem.scenario.models]
    scale = POPULARITY * 0.5 ** math.frexp(sum(weights))[1]
    return np.array([int(weight * scale + 0.5) for weight in weights], np.int64)


def in_line(problem: Problem, pieces: Pieces, n_lines: int) -> tuple[Int64, Int64, Int64, Int64]:
    """The kernel's tables of tasks and lines, and the orders in which tasks stand in line and by model."""
    tasks, n = problem.tasks, len(problem.tasks)
    line = np.arange(n) % n_lines
    rank = ranks(tasks.priority)
    turn = ranks(-tasks.predicted_us) if pieces.order == "shortest" else np.zeros(n, np.int64)
    order = sorted_by(line, rank, turn)
    found = np.empty((kernels.TASK_COLUMNS, n), np.int64)
    found[: kernels.A_REJECTED] = (
        tasks.arrival_us,
        tasks.model,
        tasks.priority,
        tasks.service_us,
        tasks.predicted_us,
        tasks.tokens_in,
        tasks.tokens_out,
        tasks.deadline_us,
    )
    found[kernels.A_REJECTED :] = 0
    found[kernels.A_REJECTED, list(problem.rejected)] = 1
    found[kernels.A_WHERE, order] = np.arange(n)
    by_group = np.zeros(0, np.int64)
    if pieces.order == "by-model":
        by_group = sorted_by(line, rank, tasks.model)
        group = np.stack((line, rank, tasks.model))[:, by_group]
        new = np.append(True, (group[:, 1:] != group[:, :-1]).any(axis=0))[:n]
        first = np.flatnonzero(new)
        which = np.cumsum(new) - 1
        found[kernels.A_GROUPED, by_group] = np.arange(n)
        found[kernels.A_GROUP_FROM, by_group] = first[which]
        found[kernels.A_GROUP_TO, by_group] = np.append(first[1:], n)[which]
    lines = np.full((n_lines, kernels.LINE_COLUMNS), -1, np.int64)
    ends = np.cumsum(np.bincount(line, minlength=n_lines))
    lines[:, kernels.TO] = ends
    lines[:, kernels.FROM] = np.append(0, ends[:-1])
    lines[:, kernels.IN_A_ROW] = 0
    return found, order, by_group, lines


def ranks(values: Int64) -> Int64:
    """0 for the largest value, 1 for the next; int64[n]."""
    if len(values) == 0 or values.min() == values.max():
        return np.zeros(len(values), np.int64)
    distinct, which = np.unique(values, return_inverse=True)
    return len(distinct) - 1 - which.astype(np.int64)


def sorted_by(*keys: Int64) -> Int64:
    """Rows sorted by the first key, then the others, then by row; keys count from 0."""
    order = np.arange(len(keys[0]))
    for key in reversed(keys):
        if len(key) and (most := int(key.max())) > 0:
            short = key.astype(np.uint16) if most < 1 << 16 else key  # sorted by digits where it is short
            order = order[np.argsort(short[order], kind="stable")]
    return order


def by_deadline(problem: Problem) -> Int64:
    """Tasks that have a deadline, by deadline, then row."""
    rows = np.flatnonzero(problem.tasks.deadline_us < NEVER)
    return rows[np.argsort(problem.tasks.deadline_us[rows], kind="stable")]


def empty_set(n: int) -> Int64:
    """An empty set of positions below ``n`` as the kernel takes it."""
    words = n // 32 + 2
    above = words // 32 + 2
    return np.zeros(words + above + above // 32 + 2, np.int64)


def _longer(table: Int64, columns: int) -> Int64:
    found = np.empty((len(table), columns), np.int64)
    found[:, : table.shape[1]] = table
    return found
