"""Whether a grid keeps the rules: a checker that shares nothing with the code that makes grids.

It knows only the scenario and the finished arrays, and says each broken rule in a sentence.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gpuplan.allocation.model import AllocationScenario, BatchJob, RealtimeApp

Integers = NDArray[np.integer]

NOTHING = -1
UNAVAILABLE = -2


def violations(
    scenario: AllocationScenario,
    start: Integers,
    first_gpu: Integers,
    grid: Integers,
    reservation: bool,
    size: Integers | None = None,
) -> list[str]:
    """Every rule of the scenario that a finished plan breaks, a sentence each.

    Parameters
    ----------
    scenario
        What was to be planned; ``J`` batch jobs, ``R`` real-time apps, ``G`` GPUs, ``T`` steps.
    start, first_gpu
        Start step and lowest GPU of every batch job, int[J]; -1 where it is not placed.
    grid
        int[G, T]: -1 nothing, -2 unavailable, ``j`` for batch job ``j``, ``J + r`` for app ``r``.
    reservation
        Whether real-time GPUs are a reservation for the whole horizon: swap caps and budgets do
        not apply then, but the GPUs must never change, and an app may stay below its minimum
        only where no GPU was left to reserve.
    size
        GPUs of every batch job, int[J]; by default the smallest that each may have.

    Returns
    -------
    list of str
        Empty for a legal plan. One sentence per job or app and rule, with the first place where
        the rule is broken.
    """
    if size is None:
        size = np.array([job.gpus for job in scenario.batch], dtype=np.int64)
    found = _shapes(scenario, start, first_gpu, size, grid)
    if found:
        return found  # nothing below can be trusted
    found += _unavailable(scenario, grid)
    found += _batch(scenario, start, first_gpu, size, grid)
    found += _realtime(scenario, grid, reservation)
    return found


def _shapes(
    scenario: AllocationScenario, start: Integers, first: Integers, size: Integers, grid: Integers
) -> list[str]:
    found: list[str] = []
    wanted = (scenario.cluster.gpus, scenario.horizon.steps)
    if grid.shape != wanted:
        found.append(f"The grid is {grid.shape} GPUs by steps where the scenario has {wanted}.")
    for name, array in (("start", start), ("first_gpu", first), ("size", size)):
        if array.shape != (len(scenario.batch),):
            found.append(f"{name} has shape {array.shape} where there are {len(scenario.batch)} batch jobs.")
    n = len(scenario.batch) + len(scenario.realtime)
    if not found and grid.size and (grid.min() < UNAVAILABLE or grid.max() >= n):
        gpu, step = np.argwhere((grid < UNAVAILABLE) | (grid >= n))[0]
        found.append(f"GPU {gpu} at step {step} holds {grid[gpu, step]}, which names no job and no app.")
    return found


def _unavailable(scenario: AllocationScenario, grid: Integers) -> list[str]:
    found: list[str] = []
    away = np.zeros(scenario.cluster.gpus, dtype=bool)
    away[list(scenario.cluster.unavailable)] = True
    for gpu, step in _first_per_row(grid[away] != UNAVAILABLE, np.flatnonzero(away)):
        held = _who(scenario, int(grid[gpu, step]))
        found.append(f"GPU {gpu} is unavailable, but at step {step} the grid has {held} there.")
    for gpu, step in _first_per_row(grid[~away] == UNAVAILABLE, np.flatnonzero(~away)):
        found.append(f"GPU {gpu} is available, but marked unavailable at step {step}.")
    return found


def _first_per_row(broken: NDArray[np.bool_], rows: NDArray[np.intp]) -> list[tuple[int, int]]:
    """(row number, first column) of every row of `broken` that has a true cell."""
    hit = np.flatnonzero(broken.any(axis=1))
    return [(int(rows[row]), int(broken[row].argmax())) for row in hit]


def _batch(
    scenario: AllocationScenario, start: Integers, first: Integers, size: Integers, grid: Integers
) -> list[str]:
    found: list[str] = []
    n = len(scenario.batch)
    cells = np.zeros(n + len(scenario.realtime) + 2, dtype=np.int64)
    for column in np.ascontiguousarray(grid.T):
        cells += np.bincount(column.astype(np.int64) + 2, minlength=cells.size)
    for j, job in enumerate(scenario.batch):
        s, g = int(start[j]), int(first[j])
        if s == -1 and g == -1:
            found += _left_out(job, j, grid, int(cells[j + 2]))
        else:
            found += _placed(scenario, job, j, s, g, int(size[j]), grid, int(cells[j + 2]))
    return found


def _left_out(job: BatchJob, j: int, grid: Integers, cells: int) -> list[str]:
    found: list[str] = []
    if job.running_on is not None:
        found.append(f"Job {job.name!r} runs already on GPU {job.running_on} but is not in the plan.")
    if cells:
        gpu, step = np.argwhere(grid == j)[0]
        found.append(f"Job {job.name!r} is not placed, but holds GPU {gpu} at step {step}.")
    return found


def _placed(
    scenario: AllocationScenario, job: BatchJob, j: int, s: int, g: int, size: int, grid: Integers, cells: int
) -> list[str]:
    steps = scenario.horizon.steps
    who = f"Job {job.name!r}"
    if s < 0 or s >= steps or g < 0 or g + size > scenario.cluster.gpus:
        return [f"{who} stands outside of the grid: {size} GPUs from GPU {g}, from step {s}."]
    found: list[str] = []
    if size & (size - 1):
        found.append(f"{who} holds {size} GPUs from GPU {g} at step {s}, not a power of two.")
    most = job.gpus if job.max_gpus is None else job.max_gpus
    if not job.gpus <= size <= most:
        wanted = f"{job.gpus}" if most == job.gpus else f"{job.gpus} to {most}"
        found.append(f"{who} holds {size} GPUs from GPU {g} at step {s} where it may have {wanted}.")
    length = whole_steps(_hours_on(job, size), scenario.horizon.step_s)
    if job.running_on is None:
        found += _when(scenario, job, s, length)
        found += _nodes(scenario, job, s, g, size)
    elif (s, g) != (0, job.running_on):
        found.append(
            f"{who} runs already on GPU {job.running_on} at step 0, but stands on GPU {g} at step {s}."
        )
    end = min(s + length, steps)
    block = grid[g : g + size, s:end]
    if not (block == j).all():
        gpu, step = (int(at) for at in np.argwhere(block != j)[0])
        other = _who(scenario, int(block[gpu, step]))
        found.append(
            f"{who} must hold GPU {g + gpu} at step {s + step} (block {g} to {g + size - 1}, "
            f"steps {s} to {end - 1}), but the grid has {other} there."
        )
    extra = cells - int((block == j).sum())
    if extra:
        outside = grid == j
        outside[g : g + size, s:end] = False
        gpu, step = np.argwhere(outside)[0]
        found.append(f"{who} holds GPU {gpu} at step {step}, outside of its block ({extra} cells in all).")
    return found


def _when(scenario: AllocationScenario, job: BatchJob, s: int, length: int) -> list[str]:
    found: list[str] = []
    earliest = whole_steps(job.earliest_hour, scenario.horizon.step_s)
    if s < earliest:
        found.append(f"Job {job.name!r} starts at step {s}, before its earliest step {earliest}.")
    if scenario.rules.must_finish and s + length > scenario.horizon.steps:
        found.append(
            f"Job {job.name!r} starts at step {s} for {length} steps and must finish, "
            f"but the horizon ends after step {scenario.horizon.steps - 1}."
        )
    return found


def _nodes(scenario: AllocationScenario, job: BatchJob, s: int, g: int, size: int) -> list[str]:
    if not scenario.rules.within_node:
        return []
    node, last = scenario.cluster.node_size, g + size - 1
    if size <= node:
        if g // node == last // node:
            return []
        return [
            f"Job {job.name!r} straddles nodes {g // node} and {last // node} "
            f"(GPUs {g} to {last}, from step {s})."
        ]
    if g % node == 0 and size % node == 0:
        return []
    return [
        f"Job {job.name!r} is larger than a node of {node} GPUs and must take whole nodes, "
        f"but holds GPUs {g} to {last} from step {s}."
    ]


def _realtime(scenario: AllocationScenario, grid: Integers, reservation: bool) -> list[str]:
    found: list[str] = []
    if not scenario.realtime:
        return found
    held, acquired, released = _holdings(scenario, grid)
    for r, app in enumerate(scenario.realtime):
        found += _above(app, held[r])
        if reservation:
            found += _constant(app, grid, len(scenario.batch) + r)
            found += _below_reserved(scenario, app, held[r], grid)
        else:
            found += _below(app, held[r])
            found += _swaps(app, acquired[r], released[r])
    return found


def _holdings(scenario: AllocationScenario, grid: Integers) -> tuple[Integers, Integers, Integers]:
    """GPUs held, acquired and released by every app in every step, int64[R, T] each.

    Step 0 is compared with `held`; where that is unknown nothing is acquired or released there.
    """
    n_jobs, n_apps = len(scenario.batch), len(scenario.realtime)
    shape = (n_apps, scenario.horizon.steps)
    held, acquired, released = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    columns = np.ascontiguousarray(grid.T).astype(np.int64) - n_jobs
    before = np.full(scenario.cluster.gpus, -1, dtype=np.int64)
    for r, app in enumerate(scenario.realtime):
        before[list(app.held or ())] = r
    for step, now in enumerate(columns):
        changed = now != before
        held[:, step] = np.bincount(now[now >= 0], minlength=n_apps)
        acquired[:, step] = np.bincount(now[(now >= 0) & changed], minlength=n_apps)
        released[:, step] = np.bincount(before[(before >= 0) & changed], minlength=n_apps)
        before = now
    unknown = [r for r, app in enumerate(scenario.realtime) if app.held is None]
    acquired[unknown, 0] = released[unknown, 0] = 0
    return held, acquired, released


def _above(app: RealtimeApp, held: Integers) -> list[str]:
    if app.max_gpus is None:
        return []
    return _first_step(app, held > app.max_gpus, held, f"more than its maximum of {app.max_gpus}")


def _below(app: RealtimeApp, held: Integers) -> list[str]:
    return _first_step(app, held < app.min_gpus, held, f"fewer than its minimum of {app.min_gpus}")


def _first_step(app: RealtimeApp, broken: NDArray[np.bool_], held: Integers, rule: str) -> list[str]:
    if not broken.any():
        return []
    step = int(broken.argmax())
    return [f"App {app.name!r} holds {held[step]} GPUs at step {step}, {rule} ({_times(broken)})."]


def _constant(app: RealtimeApp, grid: Integers, code: int) -> list[str]:
    mine = grid == code
    moved = mine != mine[:, :1]
    if not moved.any():
        return []
    step = int(moved.any(axis=0).argmax())
    gpu = int(moved[:, step].argmax())
    change = "takes" if mine[gpu, step] else "gives up"
    return [f"App {app.name!r} {change} GPU {gpu} at step {step}, but a reservation stays all day."]


def _below_reserved(
    scenario: AllocationScenario, app: RealtimeApp, held: Integers, grid: Integers
) -> list[str]:
    short = held < app.min_gpus
    if not short.any():
        return []
    free = np.ones(scenario.cluster.gpus, dtype=bool)
    free[list(scenario.cluster.unavailable)] = False
    for job in scenario.batch:
        if job.running_on is not None:
            free[job.running_on : job.running_on + job.gpus] = False
    step = int(short.argmax())
    free &= grid[:, step] < len(scenario.batch)  # not reserved by any app
    if not free.any():
        return []
    return [
        f"App {app.name!r} reserves {held[step]} GPUs at step {step}, fewer than its minimum of "
        f"{app.min_gpus}, although GPU {int(free.argmax())} was left to reserve."
    ]


def _swaps(app: RealtimeApp, acquired: Integers, released: Integers) -> list[str]:
    found: list[str] = []
    if app.max_swap is not None:
        for verb, moved in (("acquires", acquired), ("releases", released)):
            broken = moved > app.max_swap
            if broken.any():
                step = int(broken.argmax())
                found.append(
                    f"App {app.name!r} {verb} {moved[step]} GPUs at step {step}, more than "
                    f"{app.max_swap} ({_times(broken)})."
                )
    if app.swap_budget is not None and acquired.sum() > app.swap_budget:
        step = int((np.cumsum(acquired) > app.swap_budget).argmax())
        found.append(
            f"App {app.name!r} acquires {acquired.sum()} GPUs over the horizon, more than its "
            f"budget of {app.swap_budget}, exceeded at step {step}."
        )
    return found


def _times(broken: NDArray[np.bool_]) -> str:
    n = int(broken.sum())
    return "in 1 step" if n == 1 else f"in {n} steps"


def _who(scenario: AllocationScenario, code: int) -> str:
    if code == NOTHING:
        return "nothing"
    if code == UNAVAILABLE:
        return "the mark of an unavailable GPU"
    if code < len(scenario.batch):
        return f"job {scenario.batch[code].name!r}"
    return f"app {scenario.realtime[code - len(scenario.batch)].name!r}"


def _hours_on(job: BatchJob, gpus: int) -> float:
    """Hours on so many GPUs: the work over the GPUs, or its share under the scaling exponent."""
    if job.max_gpus is None or gpus == job.gpus:
        return job.hours
    if job.scaling == 1:
        return job.hours * job.gpus / gpus
    return float(job.hours / (gpus / job.gpus) ** job.scaling)


def whole_steps(hours: float, step_s: int) -> int:
    """Whole steps that cover `hours`: rounded up, where noise below a billionth is not a step."""
    steps = Fraction(hours) * 3600 / step_s
    whole, rest = divmod(steps, 1)
    noise = max(steps, Fraction(1)) / 10**9
    return int(whole) + int(rest > noise)
