"""Every legal plan of tiny scenarios, tried one by one, as the oracle for bound and policies."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenarios

from allocation.reference import (
    MORE,
    NOTHING,
    Grid,
    count_figures,
    inherited,
    length_on,
    milli_per_cell,
    positions,
    sizes,
    steps_of,
    thousandths,
    weight_micro,
)
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.cluster import Cluster

Place = tuple[int, int, int] | None  # (start, first GPU, GPUs), or not placed
Owners = tuple[int, ...]  # the app that holds each GPU in one step, -1 for nobody
Move = tuple[Owners, Owners, tuple[int, ...]]  # owners before and now, budgets spent before
Known = dict[Move, tuple[int, ...] | None]  # budgets spent after it, None where it breaks a rule


def places(scenario: AllocationScenario, job: BatchJob) -> list[Place]:
    """Everywhere the job may stand on an otherwise empty grid."""
    if job.running_on is not None:
        return [(0, job.running_on, job.gpus)]
    steps = scenario.horizon.steps
    found: list[Place] = [None]
    for gpus in sizes(job):
        last = steps - length_on(job, gpus, scenario) if scenario.rules.must_finish else steps - 1
        starts = range(steps_of(job.earliest_hour, scenario), last + 1)
        found += product(starts, positions(scenario, gpus), [gpus])
    return found


def batch_grids(scenario: AllocationScenario) -> list[tuple[Fraction, Grid]]:
    """(value, grid) of every way to place the batch jobs, the most valuable first."""
    empty = inherited(replace(scenario, batch=()))
    taken = [(gpu, step) for gpu, row in enumerate(empty) for step, cell in enumerate(row) if cell != NOTHING]
    ways = [[_laid(scenario, job, place) for place in places(scenario, job)] for job in scenario.batch]
    found = []
    for combination in product(*ways):
        cells = [*taken, *(cell for cells, _ in combination for cell in cells)]
        if len(set(cells)) == len(cells):
            grid = [list(row) for row in empty]
            for j, (block, _) in enumerate(combination):
                for gpu, step in block:
                    grid[gpu][step] = j
            value = sum(worth for _, worth in combination)
            found.append((Fraction(value * scenario.horizon.step_s, 3600 * 10**9), grid))
    return sorted(found, key=lambda pair: -pair[0])


def _laid(scenario: AllocationScenario, job: BatchJob, place: Place) -> tuple[list[tuple[int, int]], int]:
    """Cells (GPU, step) of a job at a place, and what they earn."""
    if place is None:
        return [], 0
    start, first, gpus = place
    steps = range(start, min(start + length_on(job, gpus, scenario), scenario.horizon.steps))
    weights = sum(weight_micro(scenario, step) for step in steps)
    cells = [(gpu, step) for gpu in range(first, first + gpus) for step in steps]
    return cells, milli_per_cell(job, gpus, scenario) * gpus * weights


def least_penalty(scenario: AllocationScenario, grid: Grid, known: Known) -> Fraction | None:
    """The least penalty with which the apps can live beside the batch work, None where none can.

    Walks step by step over every assignment of GPUs to apps, and how much of each budget is spent. What is paid is
    counted in whole billionths of priority x GPU-seconds.
    """
    apps, gpus = scenario.realtime, range(scenario.cluster.gpus)
    factor = round(Fraction(scenario.objective.shortfall_penalty) * 10**6)
    price = [factor * thousandths(app.priority) * scenario.horizon.step_s for app in apps]
    unknown = tuple(-2 for _ in gpus)
    states: dict[tuple[Owners, tuple[int, ...]], int] = {(unknown, (0,) * len(apps)): 0}
    for step in range(scenario.horizon.steps):
        choices = [range(-1, len(apps)) if grid[gpu][step] == NOTHING else (-1,) for gpu in gpus]
        following: dict[tuple[Owners, tuple[int, ...]], int] = {}
        for owners in product(*choices):
            cost = 0
            for r, app in enumerate(apps):
                cost += price[r] * max(0, app.demand[step] - owners.count(r))
            for (before, spent), paid in states.items():
                move = before, owners, spent
                if move not in known:
                    known[move] = _spent(scenario, *move)
                after = known[move]
                if after is not None:
                    key = (owners, after)
                    following[key] = min(paid + cost, following.get(key, paid + cost))
        states = following
    least = min(states.values(), default=None)
    return None if least is None else Fraction(least, 3600 * 10**9)


def _spent(
    scenario: AllocationScenario, before: Owners, now: Owners, spent: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Budgets spent after a step, or None where the step breaks a rule."""
    after = []
    for r, app in enumerate(scenario.realtime):
        count = now.count(r)
        if count < app.min_gpus or (app.max_gpus is not None and count > app.max_gpus):
            return None
        new = {gpu for gpu, owner in enumerate(now) if owner == r}
        old = {gpu for gpu, owner in enumerate(before) if owner == r}
        if before[0] == -2:  # before step 0
            old = new if app.held is None else set(app.held)
        acquired, released = len(new - old), len(old - new)
        if app.max_swap is not None and max(acquired, released) > app.max_swap:
            return None
        if app.swap_budget is not None and spent[r] + acquired > app.swap_budget:
            return None
        after.append(spent[r] + acquired if app.swap_budget is not None else 0)
    return tuple(after)


def optimum(scenario: AllocationScenario) -> Fraction:
    """The best objective of any legal plan."""
    best: Fraction | None = None
    known: dict[str, Fraction | None] = {}
    moves: Known = {}
    for value, grid in batch_grids(scenario):
        if best is not None and value <= best:
            break  # a penalty only takes away
        free = str([[cell == NOTHING for cell in row] for row in grid])
        if free not in known:
            known[free] = least_penalty(scenario, grid, moves)
        penalty = known[free]
        if penalty is not None and (best is None or value - penalty > best):
            best = value - penalty
    assert best is not None, "the schema refuses scenarios without a legal plan"
    return best


def objective(scenario: AllocationScenario, policy: str) -> Fraction:
    made = plan(scenario, policy)
    counted = count_figures(scenario, policy, made.start.tolist(), made.grid.tolist())["objective"]
    assert counted is not None
    return Fraction(counted)


def test_the_oracle_itself_on_a_case_worked_by_hand() -> None:
    """Two GPUs, three hours; `a` (2 GPUs, 2 h, priority 1) earns 4, `b` (1 GPU, 3 h, 1) earns 3.

    Demand 0 0 1, cap 1, penalty 2. Only one of `a`, `b` fits; `b` leaves GPU 0 or 1 for the app,
    so 3; `a` in hours 0-1 leaves hour 2 and covers it with one swap: 4. With a job `c` of one hour
    beside it: 5. Without any swap left (budget 0) the app cannot come in hour 2, unless it holds
    its GPU from hour 0 on: `b` and `c` beside it do not fit, 4 + 1 - 2 = 3 against 3 with `b`;
    `a` then `c` and no service: 4 + 1 - 2 = 3.
    """
    a, b = BatchJob("a", "training", 2, 2.0, 1.0), BatchJob("b", "training", 1, 3.0, 1.0)
    c = BatchJob("c", "training", 1, 1.0, 1.0)
    app = RealtimeApp("app", 1.0, (0, 0, 1), max_swap=1)
    scenario = AllocationScenario(
        "s", Cluster(2), Horizon(3), Objective(2.0, None), Rules(), (app,), (a, b, c)
    )
    assert optimum(replace(scenario, batch=(a, b))) == 4
    assert optimum(scenario) == 5
    assert optimum(replace(scenario, realtime=(replace(app, swap_budget=0),))) == 3


@st.composite
def contended(draw: st.DrawFn) -> AllocationScenario:
    """Tiny scenarios in which jobs and an app want the same GPUs."""
    gpus, steps = draw(st.integers(2, 3)), draw(st.integers(3, 4))
    cap = st.sampled_from([None, 0, 1, 1, 2])
    apps = [
        RealtimeApp(
            f"app-{r}",
            draw(st.sampled_from([0.5, 1.0, 2.0])),
            tuple(draw(st.lists(st.integers(0, gpus), min_size=steps, max_size=steps))),
            max_swap=draw(cap),
            held=draw(st.sampled_from([None, None, (), (r,)])),
            swap_budget=draw(st.sampled_from([None, None, 1, 2])),
        )
        for r in range(draw(st.integers(1, 2)))
    ]
    jobs = [
        BatchJob(
            f"job-{j}",
            "training",
            draw(st.sampled_from([1, 1, 2])),
            float(draw(st.integers(1, steps))),
            draw(st.sampled_from([0.5, 1.0, 1.5, 3.0])),
            float(draw(st.sampled_from([0, 0, 1]))),
            max_gpus=draw(st.sampled_from([None, None, None, 2, 4])),
            scaling=draw(st.sampled_from([1.0, 1.0, 0.5])),
        )
        for j in range(draw(st.integers(2, 3)))
    ]
    return AllocationScenario(
        "contended",
        Cluster(gpus, draw(st.sampled_from([None, 2]))),
        Horizon(steps),
        Objective(draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 8.0])), draw(st.sampled_from([None, 2.0]))),
        Rules(draw(st.booleans()), draw(st.booleans())),
        tuple(apps),
        tuple(jobs),
    )


@pytest.mark.parametrize("family", ["any", "contended"])
@settings(max_examples=60 * MORE)
@given(data=st.data())
def test_the_bound_is_never_below_the_optimum_and_no_legal_plan_above_it(
    family: str, data: st.DataObject
) -> None:
    whole_schema = scenarios(max_gpus=3, max_steps=4, max_jobs=3, max_apps=2)
    scenario = data.draw(whole_schema if family == "any" else contended())
    best = optimum(scenario)
    assert plan(scenario, "aware").bound >= float(best) - 1e-9 * max(1.0, abs(float(best)))
    for policy in ("curve-fifo", "curve-priority", "aware"):
        assert objective(scenario, policy) <= best


@pytest.mark.parametrize("policy", POLICIES)
def test_a_lone_job_on_an_empty_cluster_is_optimal_under_every_policy(policy: str) -> None:
    """4 GPU-hours x 2 = 8, the whole of the bound."""
    scenario = AllocationScenario(
        "s",
        Cluster(3),
        Horizon(4),
        Objective(8.0, None),
        batch=(BatchJob("a", "training", 2, 2.0, 2.0),),
    )
    assert objective(scenario, policy) == optimum(scenario) == 8
