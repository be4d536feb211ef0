"""The same tasks, coming faster or slower."""

from dataclasses import replace

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.packing.limits import MOST_US
from gpuplan.packing.model import NEVER, PackingScenario
from gpuplan.packing.tasks import Tasks, tasks


def at_rate(scenario: PackingScenario, factor: float) -> PackingScenario:
    """The scenario with its tasks coming `factor` times as fast; they are the same tasks in the same order.

    A generated workload is drawn at that rate (gaps stretch, nothing else moves); of given tasks every arrival is
    divided by the factor, and a deadline keeps its distance. Where tasks come slower, a run with an end ends later by
    as much, so that none of them is left out.

    Raises
    ------
    InputError
        For a factor that is not above 0, or with which a task would come too late for any run.
    """
    if not 0 < factor < float("inf"):
        raise InputError(scenario.name, [Mistake("load", "must be a number above 0", factor)])
    if factor == 1:
        return scenario
    until = scenario.until_us
    if until is not None and factor < 1:
        until = _slower(until, factor, scenario)
    if scenario.tasks is not None:
        return replace(scenario, tasks=_given(scenario, scenario.tasks, factor), until_us=until)
    if scenario.generate is None:
        return scenario
    rate = float(f"{scenario.generate.rate_per_s * factor:.12g}")
    return replace(scenario.replace({"tasks.generate.rate_per_s": rate}), until_us=until)


def _given(scenario: PackingScenario, given: Tasks, factor: float) -> Tasks:
    if len(given):
        _slower(int(given.arrival_us.max()), factor, scenario)
    arrival = np.rint(given.arrival_us / factor).astype(np.int64)
    patient = given.deadline_us >= NEVER
    deadline = np.where(patient, NEVER, given.deadline_us - given.arrival_us + arrival)
    return tasks(
        arrival,
        given.model,
        list(given.tenant),
        given.priority,
        given.service_us,
        given.predicted_us,
        given.tokens_in,
        given.tokens_out,
        deadline,
    )


def _slower(instant_us: int, factor: float, scenario: PackingScenario) -> int:
    """An instant at the new rate; an `InputError` where that is later than any run may last."""
    found = instant_us / factor
    if found > MOST_US:
        rule = "must not let tasks come later than any run may last"
        raise InputError(scenario.name, [Mistake("load", rule, factor)])
    return round(found)
