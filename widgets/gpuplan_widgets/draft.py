"""From the state of the controls to changes of a scenario, and from a mistake to the control that it is about."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.schema import job_mapping
from gpuplan_widgets.controls import Controls, meant
from gpuplan_widgets.job_table import FIELDS


def changes_of(
    base: AllocationScenario,
    controls: Controls,
    caps: Sequence[int | None],
    curves: Sequence[Sequence[int]],
    jobs: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Values that differ from the scenario that was loaded, by dotted path.

    Parameters
    ----------
    base
        The scenario that was loaded.
    controls
        The sliders and choices.
    caps, curves
        Swap cap and demand of each app, in file order.
    jobs
        All batch jobs as a scenario file gives them; ``None`` where the table is as it was loaded.
    """
    cluster, goal = base.cluster, base.objective
    gpus = controls.gpus.value
    wanted = {
        "cluster.gpus": (cluster.gpus, gpus),
        "cluster.gpus_per_node": (cluster.gpus_per_node, meant(controls.node.value)),
        # A smaller cluster does not have the GPUs at the end of the line, unavailable ones included.
        "cluster.unavailable": (
            list(cluster.unavailable),
            [gpu for gpu in cluster.unavailable if gpu < gpus],
        ),
        "rules.within_node": (base.rules.within_node, controls.within_node.value),
        "objective.shortfall_penalty": (goal.shortfall_penalty, controls.penalty.value),
        "objective.half_life_hours": (goal.half_life_hours, meant(controls.half_life.value)),
    }
    for r, app in enumerate(base.realtime):
        wanted[f"realtime.{r}.max_swap"] = (app.max_swap, caps[r])
        wanted[f"realtime.{r}.demand"] = (list(app.demand), list(curves[r]))
    changes = {path: now for path, (was, now) in wanted.items() if was != now}
    if jobs is not None:
        changes["batch"] = list(jobs)
    return changes


def jobs_of(scenario: AllocationScenario) -> list[dict[str, Any]]:
    """The batch jobs as a scenario file gives them; optional values only where they are set."""
    usual = {"earliest_hour": 0.0, "running_on": None, "deadline_hour": None, "scaling": 1.0}
    return [
        {key: value for key, value in job_mapping(job).items() if key not in usual or value != usual[key]}
        for job in scenario.batch
    ]


def place_of(path: str) -> tuple[str, int, str]:
    """The control that a mistake's path is about: its part, and row and field in the job table.

    ``batch.3.gpus`` is ``("jobs", 3, "gpus")``; whatever is not in the table is ``("", -1, "")``. GPU-hours stand in
    the cell of hours.
    """
    parts = path.split(".")
    if len(parts) >= 2 and parts[0] == "batch" and parts[1].isdigit():
        field = "hours" if parts[2:3] == ["gpu_hours"] else parts[2] if len(parts) > 2 else ""
        return "jobs", int(parts[1]), field if field in FIELDS else ""
    return "", -1, ""
