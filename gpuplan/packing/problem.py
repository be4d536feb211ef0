"""A scenario as the arrays that kernels take: memory per model, tasks, and those that can never be served."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpuplan.packing.model import NEVER, Int64, PackingScenario
from gpuplan.packing.tasks import Tasks
from gpuplan.packing.words import amount, apart


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What every policy is a function of.

    Attributes
    ----------
    scenario, tasks
        `tasks` are those of the scenario's file, or generated.
    needed : int64[M]
        Bytes that the scheduler reserves for a copy of a model, on each of its GPUs.
    taken : int64[M]
        Bytes that a loaded copy takes on each of its GPUs, without the KV of its tasks.
    asleep : int64[M]
        Bytes that stay on each of its GPUs after an eviction.
    weights : int64[M]
        Bytes that a load transfers to each of its GPUs.
    spread : int64[M]
        GPUs over which a copy is spread.
    rejected : dict
        Tasks (rows) that can never be served, with the reason.
    until_us
        The run stops there; `NEVER` where it runs until nothing is left.
    """

    scenario: PackingScenario
    tasks: Tasks
    needed: Int64
    taken: Int64
    asleep: Int64
    weights: Int64
    spread: Int64
    rejected: dict[int, str]
    until_us: int


@lru_cache(maxsize=8)
def compile_problem(scenario: PackingScenario) -> Problem:
    """The arrays of a scenario; generated workloads are made here."""
    models = scenario.models
    needed = np.array([scenario.needed(model) for model in models], np.int64)
    taken = np.array([scenario.taken(model) for model in models], np.int64)
    tasks = tasks_of(scenario)
    return Problem(
        scenario,
        tasks,
        needed,
        taken,
        np.array([scenario.part(model.asleep_bytes, model) for model in models], np.int64),
        np.array([scenario.part(model.actual_bytes, model) for model in models], np.int64),
        np.array([model.gpus for model in models], np.int64),
        never_served(scenario, tasks, needed, taken),
        NEVER if scenario.until_us is None else scenario.until_us,
    )


def tasks_of(scenario: PackingScenario) -> Tasks:
    """The tasks that a scenario brings or asks to be generated."""
    if scenario.tasks is not None:
        return scenario.tasks
    if scenario.generate is None:
        raise ValueError("the scenario has neither tasks nor a workload to generate")
    from gpuplan.packing import workloads

    return workloads.generate(scenario.generate, scenario.models)


def never_served(scenario: PackingScenario, tasks: Tasks, needed: Int64, taken: Int64) -> dict[int, str]:
    """Rows of tasks that no GPU could ever serve (of models over several: no set of them), with the reason of each."""
    memory = scenario.gpus.memory_bytes
    parts = [scenario.part(model.kv_bytes_per_token, model) for model in scenario.models]
    per_token = np.array(parts, np.int64)
    tokens = tasks.tokens_in + tasks.tokens_out
    cache = per_token[tasks.model] * tokens
    too_large = needed[tasks.model] > memory
    too_long = taken[tasks.model] + cache > memory
    found = {}
    for j in np.flatnonzero(too_large | too_long).tolist():
        m = int(tasks.model[j])
        name, spread = scenario.models[m].name, scenario.models[m].gpus
        if spread > 1:
            name += f" over {spread} GPUs"  # what it takes is said for each of them
        size = needed[m] if too_large[j] else taken[m]
        if size > memory:
            said, has = apart(int(size), memory)
            how = f"needs {said} by its declaration" if too_large[j] else f"takes {said}"
            found[j] = f"{name} {how}, a GPU has {has}"
        else:
            both, has = apart(int(size + cache[j]), memory)
            context = f"{tokens[j]:,} tokens of context {amount(int(cache[j]))}"
            found[j] = f"{name} takes {amount(int(size))} and {context}, together {both}, a GPU has {has}"
    return found
