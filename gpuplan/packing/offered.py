"""How much work is offered, as a share of what the GPUs can do at most, whatever the policy."""

from math import inf

from gpuplan.packing.model import PackingScenario, ServedModel


def offered_load(scenario: PackingScenario) -> float:
    """Offered work / the most that the GPUs can serve, for generated tasks; from 1 on no policy keeps up.

    ``rate x E[service] / (GPUs x speed)``, where speed is the highest total speed of tasks side by side on a GPU:
    ``n`` without contention, 1 where they share, ``n / (1 + beta (n - 1))`` with slowdown, for the `n` up to the bound
    of tasks at once. A task of a model over k GPUs is work for each of them. The same holds for each model and its own
    bound (on k GPUs each, ``floor(GPUs / k)`` copies can be at a time); the highest counts. Loading, preemption and the
    limits of memory only add to it. Models larger than a GPU do not count (their tasks are rejected), and without
    generated tasks it is 0.
    """
    asked = scenario.generate
    if asked is None or scenario.tasks is not None:
        return 0.0
    popular = sum(model.popularity for model in scenario.models)
    fit = [model for model in scenario.models if fits(scenario, model) and model.popularity > 0]
    if not fit:
        return 0.0
    bounds = [inf if model.max_tasks is None else model.max_tasks for model in fit]
    most = inf if scenario.gpus.max_tasks is None else scenario.gpus.max_tasks
    count = scenario.gpus.count
    work = asked.rate_per_s * asked.service.mean / popular
    wide = sum(model.popularity * model.gpus for model in fit)
    total = work * wide / (count * _speed(scenario, min(most, sum(bounds))))
    single = [
        work * model.popularity / (count // model.gpus * _speed(scenario, min(most, bound)))
        for model, bound in zip(fit, bounds, strict=True)
    ]
    return max(total, *single)


def fits(scenario: PackingScenario, model: ServedModel) -> bool:
    """Whether a model (its part on a GPU) fits into an empty GPU, by what the scheduler believes and as it is."""
    return max(scenario.needed(model), scenario.taken(model)) <= scenario.gpus.memory_bytes


def _speed(scenario: PackingScenario, most: float) -> float:
    """Highest total speed of up to `most` tasks on a GPU; a task alone has speed 1."""
    contention = scenario.contention
    if contention.model == "sharing":
        return 1.0
    if contention.model == "none":
        return most
    if contention.beta >= 1:
        return 1.0
    if most == inf:
        return 1 / contention.beta if contention.beta else inf
    return most / (1 + contention.beta * (most - 1))
