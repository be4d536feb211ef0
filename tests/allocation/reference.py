"""A slow and obvious second implementation, written from the design texts alone.

FIFO and its corners cell by cell, every figure as an exact fraction, and a second look at
legality that visits every cell in plain Python. Shares nothing with the kernels, the policies
or the checker.
"""

import math
import os
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from gpuplan.allocation.model import AllocationScenario, BatchJob, RealtimeApp

NOTHING, UNAVAILABLE = -1, -2
RESERVING = ("fifo", "fifo-strict", "peak-priority")
BY_PRIORITY = ("peak-priority", "curve-priority")

#: Longer runs of the property tests: GPUPLAN_EXAMPLES=20 tries twenty times as many scenarios.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

Grid = list[list[int]]  # [GPU][step]


class Reference(NamedTuple):
    start: list[int]
    first_gpu: list[int]
    grid: Grid


def steps_of(hours: float, scenario: AllocationScenario) -> int:
    """Hours rounded up to whole steps; noise below a billionth is not a step."""
    exact = Fraction(hours) * 3600 / scenario.horizon.step_s
    below = math.floor(exact)
    return below if exact - below <= Fraction(1, 10**9) * max(1, exact) else below + 1


# ---------------------------------------------------------------- sizes of a job


def sizes(job: BatchJob) -> list[int]:
    """Every number of GPUs that the job may run on, ascending: powers of two of its range."""
    most = job.gpus if job.max_gpus is None else job.max_gpus
    return [2**k for k in range(15) if job.gpus <= 2**k <= most]


def length_on(job: BatchJob, gpus: int, scenario: AllocationScenario) -> int:
    """Steps on so many GPUs: the hours on the smallest size, shortened by the power law of scaling."""
    if gpus == job.gpus:
        return steps_of(job.hours, scenario)
    return steps_of(job.hours / (gpus / job.gpus) ** job.scaling, scenario)


def milli_per_cell(job: BatchJob, gpus: int, scenario: AllocationScenario) -> int:
    """Thousandths that a GPU-step earns at weight 1: a job with a range is paid for its work, not for its cells."""
    if job.max_gpus is None:
        return thousandths(job.priority)
    work = Fraction(job.gpus) * Fraction(job.hours) * 3600 / scenario.horizon.step_s
    return max(1, round(thousandths(job.priority) * work / (gpus * length_on(job, gpus, scenario))))


def sizes_in(scenario: AllocationScenario, grid: "Grid") -> list[int]:
    """GPUs that hold each job somewhere in the grid."""
    return [sum(j in row for row in grid) for j in range(len(scenario.batch))]


# ---------------------------------------------------------------- what is there before planning


def inherited(scenario: AllocationScenario) -> Grid:
    """The grid with unavailable GPUs and running work, and nothing else."""
    grid = [[NOTHING] * scenario.horizon.steps for _ in range(scenario.cluster.gpus)]
    for gpu in scenario.cluster.unavailable:
        grid[gpu] = [UNAVAILABLE] * scenario.horizon.steps
    for j, job in enumerate(scenario.batch):
        if job.running_on is not None:
            fill(grid, job.running_on, job.gpus, 0, steps_of(job.hours, scenario), j)
    return grid


def fill(grid: Grid, first: int, gpus: int, start: int, length: int, code: int) -> None:
    for gpu in range(first, first + gpus):
        for step in range(start, min(start + length, len(grid[gpu]))):
            grid[gpu][step] = code


def runs_inherited(scenario: AllocationScenario, gpu: int) -> bool:
    return any(
        job.running_on is not None and job.running_on <= gpu < job.running_on + job.gpus
        for job in scenario.batch
    )


# ---------------------------------------------------------------- real-time GPUs


def reservation(scenario: AllocationScenario, app: RealtimeApp) -> int:
    most = scenario.cluster.gpus if app.max_gpus is None else app.max_gpus
    return min(max(max(app.demand), app.min_gpus), most)


def reserve(scenario: AllocationScenario, grid: Grid) -> None:
    """Every app's peak for the whole horizon, as the scenario-file reference words it."""
    owner: dict[int, int] = {}
    wanted = [reservation(scenario, app) for app in scenario.realtime]
    for r, app in enumerate(scenario.realtime):
        for gpu in sorted(app.held or (), reverse=True)[: wanted[r]]:
            owner[gpu] = r
    for r in range(len(scenario.realtime)):
        for gpu in reversed(range(scenario.cluster.gpus)):
            if sum(1 for other in owner.values() if other == r) == wanted[r]:
                break
            free = gpu not in scenario.cluster.unavailable and not runs_inherited(scenario, gpu)
            if free and gpu not in owner:
                owner[gpu] = r
    for gpu, r in owner.items():
        fill(grid, gpu, 1, 0, scenario.horizon.steps, len(scenario.batch) + r)


def curve(scenario: AllocationScenario, app: RealtimeApp) -> list[int]:
    """The smallest holding that covers demand within the cap, where nothing is in its way.

    Clear only where the demand never exceeds what the app may hold: the caller sees to that.
    """
    steps = range(scenario.horizon.steps)
    most = scenario.cluster.gpus if app.max_gpus is None else app.max_gpus
    holding = []
    for t in steps:
        h = app.demand[t]
        if app.max_swap is not None:
            h = max(app.demand[s] - app.max_swap * abs(t - s) for s in steps)
        h = min(max(h, app.min_gpus), most)
        if app.held is not None and app.max_swap is not None:
            reach = app.max_swap * (t + 1)
            h = min(max(h, len(app.held) - reach), len(app.held) + reach)
        holding.append(h)
    return holding


def follow_curve(scenario: AllocationScenario, grid: Grid) -> None:
    """The curve of one app on the high end of an empty line."""
    (app,) = scenario.realtime
    for step, holding in enumerate(curve(scenario, app)):
        for gpu in range(scenario.cluster.gpus - holding, scenario.cluster.gpus):
            grid[gpu][step] = len(scenario.batch)


# ---------------------------------------------------------------- batch work


def positions(scenario: AllocationScenario, gpus: int) -> list[int]:
    """First GPUs on which a block may stand by the node rule, ascending."""
    node = scenario.cluster.node_size
    allowed = []
    for first in range(scenario.cluster.gpus - gpus + 1):
        within = first // node == (first + gpus - 1) // node
        whole = gpus > node and gpus % node == 0 and first % node == 0
        if not scenario.rules.within_node or within or whole:
            allowed.append(first)
    return allowed


def is_free(grid: Grid, first: int, gpus: int, start: int, end: int) -> bool:
    return all(grid[gpu][step] == NOTHING for gpu in range(first, first + gpus) for step in range(start, end))


def earliest_place(
    scenario: AllocationScenario, grid: Grid, job: BatchJob, not_before: int
) -> tuple[int, int, int] | None:
    """Earliest feasible step, there the largest size that fits, and its lowest GPU: (step, GPU, size)."""
    steps = scenario.horizon.steps
    for start in range(max(not_before, steps_of(job.earliest_hour, scenario)), steps):
        for gpus in reversed(sizes(job)):
            end = start + length_on(job, gpus, scenario)
            if scenario.rules.must_finish and end > steps:
                continue
            for first in positions(scenario, gpus):
                if is_free(grid, first, gpus, start, min(end, steps)):
                    return start, first, gpus
    return None


def can_ever_fit(scenario: AllocationScenario, job: BatchJob) -> bool:
    """Whether the job would find a place on the cluster with nothing on it."""
    empty = [[NOTHING] * scenario.horizon.steps for _ in range(scenario.cluster.gpus)]
    for gpu in scenario.cluster.unavailable:
        empty[gpu] = [UNAVAILABLE] * scenario.horizon.steps
    return earliest_place(scenario, empty, job, 0) is not None


def place_batch(scenario: AllocationScenario, grid: Grid, policy: str) -> tuple[list[int], list[int]]:
    """List scheduling into what is free in `grid`, which is filled."""
    start = [-1] * len(scenario.batch)
    first = [-1] * len(scenario.batch)
    queue = []
    for j, job in enumerate(scenario.batch):
        if job.running_on is None:
            queue.append(j)
        else:
            start[j], first[j] = 0, job.running_on
    if policy in BY_PRIORITY:
        queue.sort(key=lambda j: (-scenario.batch[j].priority, j))
    not_before = 0
    for j in queue:
        job = scenario.batch[j]
        place = earliest_place(scenario, grid, job, not_before)
        if place is not None:
            start[j], first[j], gpus = place
            fill(grid, first[j], gpus, start[j], length_on(job, gpus, scenario), j)
            not_before = place[0] if policy == "fifo-strict" else 0
        elif policy == "fifo-strict" and can_ever_fit(scenario, job):
            break
    return start, first


def reference_plan(scenario: AllocationScenario, policy: str) -> Reference:
    """The whole plan of a FIFO-like policy (the curve ones: one app at most, nothing in its way)."""
    grid = inherited(scenario)
    if policy in RESERVING:
        reserve(scenario, grid)
    elif scenario.realtime:
        follow_curve(scenario, grid)
    start, first = place_batch(scenario, grid, policy)
    return Reference(start, first, grid)


# ---------------------------------------------------------------- figures


def weight_micro(scenario: AllocationScenario, step: int) -> int:
    """w(step) in millionths, rounded once."""
    half_life = scenario.objective.half_life_hours
    if half_life is None:
        return 10**6
    return round(Fraction(0.5 ** (step * scenario.horizon.step_s / 3600 / half_life)) * 10**6)


def thousandths(priority: float) -> int:
    return round(Fraction(priority) * 1000)


def percentile(values: list[Fraction], q: Fraction) -> Fraction | None:
    """Sorted value at 0-based index min(n - 1, floor(q x n))."""
    if not values:
        return None
    return sorted(values)[min(len(values) - 1, math.floor(q * len(values)))]


def count_figures(
    scenario: AllocationScenario, policy: str, start: list[int], grid: Grid
) -> dict[str, Fraction | int | None]:
    """Every figure of the table, counted cell by cell; exact."""
    n_jobs, hours = len(scenario.batch), Fraction(scenario.horizon.step_s, 3600)
    gpus, steps = range(scenario.cluster.gpus), range(scenario.horizon.steps)
    available = scenario.cluster.gpus - len(scenario.cluster.unavailable)
    batch_cells, value, undecayed = 0, 0, 0
    size = sizes_in(scenario, grid)
    millis = [
        milli_per_cell(job, n, scenario) if n else 0 for job, n in zip(scenario.batch, size, strict=True)
    ]
    for gpu in gpus:
        for step in steps:
            if 0 <= grid[gpu][step] < n_jobs:
                milli = millis[grid[gpu][step]]
                batch_cells += 1
                value += milli * weight_micro(scenario, step)
                undecayed += milli
    held, served, wanted, unmet, penalty, swaps = 0, 0, 0, 0, Fraction(0), 0
    factor = Fraction(round(Fraction(scenario.objective.shortfall_penalty) * 10**6), 10**6)
    for r, app in enumerate(scenario.realtime):
        before: set[int] | None = None if app.held is None else set(app.held)
        for step in steps:
            mine = {gpu for gpu in gpus if grid[gpu][step] == n_jobs + r}
            held += len(mine)
            wanted += app.demand[step]
            served += min(len(mine), app.demand[step])
            missing = max(0, app.demand[step] - len(mine))
            unmet += missing
            penalty += missing * factor * Fraction(thousandths(app.priority), 1000) * hours
            if before is not None and policy not in RESERVING:
                swaps += len(mine - before)
            before = mine
    cells = available * len(steps)
    figures: dict[str, Fraction | int | None] = {
        "utilization": Fraction(batch_cells + served, cells),
        "held": Fraction(batch_cells + held, cells),
        "value": Fraction(value, 10**9) * hours,
        "value_undecayed": Fraction(undecayed, 1000) * hours,
        "penalty": penalty,
        "objective": Fraction(value, 10**9) * hours - penalty,
        "coverage": Fraction(served, wanted) if wanted else Fraction(1),
        "shortfall_gpu_hours": unmet * hours,
        "swaps": swaps,
    }
    figures |= _count_jobs(scenario, start, size, hours)
    if scenario.cluster.price_per_gpu_hour is not None:
        price = Fraction(scenario.cluster.price_per_gpu_hour) * hours
        figures["cost"] = price * cells
        figures["cost_useful"] = price * (batch_cells + served)
        figures["cost_idle"] = price * (cells - batch_cells - served)
    return figures


def _count_jobs(
    scenario: AllocationScenario, start: list[int], size: list[int], hours: Fraction
) -> dict[str, Fraction | int | None]:
    placed = finished = late = 0
    waits = []
    for job, s, gpus in zip(scenario.batch, start, size, strict=True):
        end = s + length_on(job, gpus or job.gpus, scenario)
        placed += s >= 0
        finished += s >= 0 and end <= scenario.horizon.steps
        if s >= 0 and job.running_on is None:
            waits.append(s * hours - Fraction(job.earliest_hour))
        if job.deadline_hour is not None:
            late += s < 0 or end * hours > Fraction(job.deadline_hour) + Fraction(1, 10**9)
    return {
        "jobs_placed": placed,
        "jobs_finished": finished,
        "jobs_unplaced": len(start) - placed,
        "jobs_set_aside": sum(
            job.running_on is None and not can_ever_fit(scenario, job) for job in scenario.batch
        ),
        "jobs_late": late,
        "wait_p50_hours": percentile(waits, Fraction(1, 2)),
        "wait_p90_hours": percentile(waits, Fraction(9, 10)),
    }


# ---------------------------------------------------------------- a second look at legality


def broken_rules(
    scenario: AllocationScenario, policy: str, start: list[int], first_gpu: list[int], grid: Grid
) -> set[str]:
    """Names of the broken rules, found by visiting every cell."""
    broken = set()
    n_jobs, steps = len(scenario.batch), range(scenario.horizon.steps)
    gpus = range(scenario.cluster.gpus)
    for gpu in gpus:
        for step in steps:
            if (grid[gpu][step] == UNAVAILABLE) != (gpu in scenario.cluster.unavailable):
                broken.add("unavailable")
    for j, job in enumerate(scenario.batch):
        cells = {(gpu, step) for gpu in gpus for step in steps if grid[gpu][step] == j}
        if (start[j] < 0) != (first_gpu[j] < 0):
            broken.add("half placed")
            continue
        if start[j] < 0:
            broken |= {"block"} if cells else set()
            broken |= {"inherited"} if job.running_on is not None else set()
            continue
        broken |= _broken_by_job(scenario, job, start[j], first_gpu[j], cells)
    for r, app in enumerate(scenario.realtime):
        holdings = [{gpu for gpu in gpus if grid[gpu][step] == n_jobs + r} for step in steps]
        broken |= _broken_by_app(scenario, app, policy, holdings, grid)
    return broken


def _broken_by_job(
    scenario: AllocationScenario, job: BatchJob, start: int, first: int, cells: set[tuple[int, int]]
) -> set[str]:
    broken = set()
    size = len({gpu for gpu, _ in cells})
    if size not in sizes(job):
        return {"size"} if job.max_gpus is not None else {"block"}
    end = start + length_on(job, size, scenario)
    wanted = {
        (gpu, step)
        for gpu in range(first, first + size)
        for step in range(start, min(end, scenario.horizon.steps))
    }
    if cells != wanted:
        broken.add("block")
    if job.running_on is not None:
        return broken if (start, first) == (0, job.running_on) else broken | {"inherited"}
    if start < steps_of(job.earliest_hour, scenario):
        broken.add("earliest")
    if scenario.rules.must_finish and end > scenario.horizon.steps:
        broken.add("must finish")
    if first not in positions(scenario, size):
        broken.add("node")
    return broken


def _broken_by_app(
    scenario: AllocationScenario, app: RealtimeApp, policy: str, holdings: list[set[int]], grid: Grid
) -> set[str]:
    broken = set()
    if app.max_gpus is not None and any(len(held) > app.max_gpus for held in holdings):
        broken.add("maximum")
    if policy in RESERVING:
        if any(held != holdings[0] for held in holdings):
            broken.add("constant")
        left = [
            gpu
            for gpu in range(scenario.cluster.gpus)
            if gpu not in scenario.cluster.unavailable
            and not runs_inherited(scenario, gpu)
            and not grid[gpu][0] >= len(scenario.batch)
        ]
        if len(holdings[0]) < app.min_gpus and left:
            broken.add("minimum")
        return broken
    if any(len(held) < app.min_gpus for held in holdings):
        broken.add("minimum")
    timeline = holdings if app.held is None else [set(app.held), *holdings]
    acquired = [len(now - before) for before, now in pairwise(timeline)]
    released = [len(before - now) for before, now in pairwise(timeline)]
    if app.max_swap is not None and any(moved > app.max_swap for moved in acquired + released):
        broken.add("swap cap")
    if app.swap_budget is not None and sum(acquired) > app.swap_budget:
        broken.add("swap budget")
    return broken
