"""Rules of an allocation scenario that look at more than one field.

Each rule is a generator of mistakes (path, rule, found value); `conflicts` runs them all. What a
rule needs and the scenario does not have right yet (a wrong number of GPUs) silences that rule.
"""

from collections.abc import Iterator
from typing import Any

from gpuplan.allocation.model import AllocationScenario, BatchJob, RealtimeApp
from gpuplan.inputs.errors import MISSING

ValuePath = tuple[str | int, ...]
Conflict = tuple[ValuePath, str, Any]


def conflicts(scenario: AllocationScenario, cluster: bool = True, horizon: bool = True) -> Iterator[Conflict]:
    """Every broken rule between fields.

    Parameters
    ----------
    scenario
        A scenario whose single fields are right.
    cluster, horizon
        Whether the size of the cluster and the number of steps are known; without them the rules
        that need them are left out.

    Yields
    ------
    Conflict
        Path of the value, the rule it breaks, the value (or `MISSING`).
    """
    yield from _names(scenario)
    if horizon:
        yield from _demand_lengths(scenario)
    for index, app in enumerate(scenario.realtime):
        yield from _app_limits(app, index)
    for index, job in enumerate(scenario.batch):
        yield from _range(job, index)
    if cluster:
        yield from _unavailable(scenario)
        taken = _Taken(scenario)
        yield from _running(scenario, taken)
        yield from _held(scenario, taken)
        yield from _minimums(scenario)


def _names(scenario: AllocationScenario) -> Iterator[Conflict]:
    """Names are unique over apps and jobs together."""
    first: dict[str, str] = {}
    rows = [("realtime", index, app.name) for index, app in enumerate(scenario.realtime)]
    rows += [("batch", index, job.name) for index, job in enumerate(scenario.batch)]
    for section, index, name in rows:
        if name in first:
            yield (section, index, "name"), f"must be unique, but {first[name]} has the same name", name
        else:
            first[name] = f"{section}.{index}"


def _demand_lengths(scenario: AllocationScenario) -> Iterator[Conflict]:
    """A demand list has one number per step."""
    steps = scenario.horizon.steps
    for index, app in enumerate(scenario.realtime):
        if len(app.demand) != steps:
            rule = f"must have one number per step, {steps}, but has {len(app.demand)}"
            yield ("realtime", index, "demand"), rule, MISSING


def _app_limits(app: RealtimeApp, index: int) -> Iterator[Conflict]:
    """The limits of one app can be met together; at step 0 they must be within reach of `held`."""
    most, held = app.max_gpus, app.held
    if most is not None and app.min_gpus > most:
        yield ("realtime", index, "min_gpus"), f"must not exceed max_gpus, {most}", app.min_gpus
    if held is None:
        return
    if most is not None and app.max_swap is not None and len(held) > most + app.max_swap:
        rule = (
            f"must list at most {most + app.max_swap} GPUs, max_gpus {most} plus max_swap {app.max_swap},"
            f" but lists {len(held)}: more cannot be released before step 0"
        )
        yield ("realtime", index, "held"), rule, MISSING
    for name, cap in (("max_swap", app.max_swap), ("swap_budget", app.swap_budget)):
        if cap is not None and app.min_gpus > len(held) + cap:
            reach = f"{len(held)} held GPUs plus {name} {cap} make {len(held) + cap}"
            rule = f"must be within reach at step 0: {reach}"
            yield ("realtime", index, "min_gpus"), rule, app.min_gpus


def _range(job: BatchJob, index: int) -> Iterator[Conflict]:
    """A range of sizes is not empty, and the job lasts a second at least on the largest."""
    if job.max_gpus is None:
        return
    path = ("batch", index)
    if job.max_gpus < job.gpus:
        yield (*path, "gpus", "max"), f"must not be less than min, {job.gpus}", job.max_gpus
    elif job.hours_on(job.max_gpus) * 3600 < 1 - 1e-6:
        rule = f"must be enough for at least 1 s on the largest size, {job.max_gpus} GPUs"
        yield (*path, "gpu_hours"), rule, job.gpu_hours


def _unavailable(scenario: AllocationScenario) -> Iterator[Conflict]:
    """Unavailable GPUs exist, are listed once, and are not all there are."""
    seen: set[int] = set()
    path = ("cluster", "unavailable")  # no place in the list: it is sorted by now
    for gpu in scenario.cluster.unavailable:
        yield from _gpu_exists(scenario, path, gpu)
        if gpu in seen:
            yield path, f"must list every GPU once, but lists {gpu} twice", MISSING
        seen.add(gpu)
    if len(seen & set(range(scenario.cluster.gpus))) == scenario.cluster.gpus:
        yield path, "must leave at least one GPU available", MISSING


class _Taken:
    """Who has which GPU before step 0."""

    def __init__(self, scenario: AllocationScenario) -> None:
        self.by: dict[int, str] = dict.fromkeys(scenario.cluster.unavailable, "is unavailable")

    def take(self, gpu: int, by: str) -> str:
        """Give a GPU away; the reason why that cannot be, or nothing."""
        reason = self.by.get(gpu, "")
        self.by.setdefault(gpu, by)
        return reason


def _running(scenario: AllocationScenario, taken: _Taken) -> Iterator[Conflict]:
    """Running jobs lie on GPUs that exist, are available and run nothing else."""
    for index, job in enumerate(scenario.batch):
        if job.running_on is None:
            continue
        if job.earliest_hour > 0:
            rule = "must be left out or 0 for a job that runs already (running_on)"
            yield ("batch", index, "earliest_hour"), rule, job.earliest_hour
        path = ("batch", index, "running_on")
        first, last = job.running_on, job.running_on + job.gpus - 1
        if last >= scenario.cluster.gpus:
            rule = f"must leave room for the block: GPUs {first} to {last}, but the last GPU is"
            yield path, f"{rule} {scenario.cluster.gpus - 1}", first
            continue
        reasons = [(gpu, taken.take(gpu, f"runs batch.{index}")) for gpu in range(first, last + 1)]
        clash = next(((gpu, reason) for gpu, reason in reasons if reason), None)
        if clash:
            yield path, f"must be a free block, but GPU {clash[0]} {clash[1]}", first


def _held(scenario: AllocationScenario, taken: _Taken) -> Iterator[Conflict]:
    """Held GPUs exist, are available, run no job and are held by one app, once."""
    for index, app in enumerate(scenario.realtime):
        for place, gpu in enumerate(app.held or ()):
            path = ("realtime", index, "held", place)
            yield from _gpu_exists(scenario, path, gpu)
            reason = taken.take(gpu, f"is held by realtime.{index}")
            if reason:
                yield path, f"must be a GPU of its own, but GPU {gpu} {reason}", gpu


def _minimums(scenario: AllocationScenario) -> Iterator[Conflict]:
    """What apps must hold at step 0 fits beside running work; later there is only more room."""
    available = scenario.cluster.n_available
    running = sum(job.gpus for job in scenario.batch if job.running_on is not None)
    room = available - running
    total = 0
    alone = False
    for index, app in enumerate(scenario.realtime):
        if app.min_gpus > available:
            yield (
                ("realtime", index, "min_gpus"),
                f"must not exceed the {available} available GPUs",
                app.min_gpus,
            )
            alone = True
        total += max(app.min_gpus, _cannot_release(app))
    if total > room and not alone and running <= available:
        least = f"at least {total} GPUs at step 0" if total else "no GPUs"
        rule = f"must be able to hold {least} together (min_gpus; held less max_swap), but only {room} of"
        rule += f" {available} available GPUs run no job"
        yield ("realtime",), rule, MISSING


def _cannot_release(app: RealtimeApp) -> int:
    """GPUs that the app still holds at step 0, because of its swap cap."""
    if app.held is None or app.max_swap is None:
        return 0
    return max(0, len(app.held) - app.max_swap)


def _gpu_exists(scenario: AllocationScenario, path: ValuePath, gpu: int) -> Iterator[Conflict]:
    if gpu >= scenario.cluster.gpus:
        yield path, f"must be the number of a GPU, 0 to {scenario.cluster.gpus - 1}", gpu
