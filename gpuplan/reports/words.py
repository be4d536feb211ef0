"""What a report says about itself in sentences: assumptions, what was set aside, notes of the reading, versions."""

from __future__ import annotations

import json
import platform
from collections import Counter
from importlib import util
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuplan.reports.runs import Choices
    from gpuplan.side_by_side import SideBySide

#: Packages whose versions decide what a report says.
_PACKAGES = ("gpuplan", "numpy", "numba", "pandas", "altair")

#: Jobs or tasks set aside that are named one by one at most.
_NAMED = 10


def static_folder() -> Path:
    """Where the charts' JavaScript lies: beside the explorers, which need not be imported for it.

    Raises
    ------
    FileNotFoundError
        Where the installation has no explorers.
    """
    found = util.find_spec("gpuplan_widgets")
    places = list(found.submodule_search_locations or []) if found is not None else []
    for place in places:
        folder = Path(place) / "static"
        if (folder / "vega_runtime.js").is_file():
            return folder
    raise FileNotFoundError("this installation of gpuplan has no vega_runtime.js, which draws the charts")


def versions() -> dict[str, str]:
    """Versions of what computes the figures and draws the charts."""
    vega = json.loads((static_folder() / "vega_runtime.json").read_text(encoding="utf-8"))
    drawing = {name: str(vega[name]) for name in ("vega", "vega-lite", "vega-embed")}
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}, **drawing}


def assumptions(comparison: SideBySide[Any], choices: Choices) -> list[str]:
    """What the figures rest on, a sentence each."""
    kind = comparison.scenario.kind
    made = {"allocation": _allocation, "fairshare": _fairshare, "packing": _packing}[kind](comparison)
    if choices.iterations is not None:
        made.append(
            f"search: {choices.iterations:,} moves with seed {choices.seed}; moves, not time, so that it repeats."
        )
    elif choices.seed is not None:
        made.append(f"The workload is generated with seed {choices.seed}; every policy meets the same one.")
    else:
        made.append("Nothing is drawn at random: there is no seed.")
    return made


def _allocation(comparison: Any) -> list[str]:
    return kind_assumptions(comparison.scenario)


def kind_assumptions(scenario: Any) -> list[str]:
    """What the figures of an allocation scenario rest on, under whatever policy."""
    horizon, objective, rules = scenario.horizon, scenario.objective, scenario.rules
    half_life = objective.half_life_hours
    decay = "Work is worth the same in every step."
    if half_life is not None:
        decay = f"The value of work halves every {half_life:g} hours."
    return [
        f"{scenario.cluster.gpus:,} GPUs, {horizon.steps:,} steps of {horizon.step_hours:g} hours; "
        "hours of jobs are rounded up to whole steps.",
        "Demand and run times are known beforehand: the plan of a day that comes as it was expected.",
        f"Objective: value of batch work less {objective.shortfall_penalty:g} times the priority-weighted "
        f"GPU-hours of demand that is not met. {decay}",
        "Jobs that cannot finish within the horizon are not started."
        if rules.must_finish
        else "Jobs may be cut by the end of the horizon.",
        "Policies that reserve hold the peak of each app's demand for the whole horizon.",
    ]


def _fairshare(comparison: Any) -> list[str]:
    from gpuplan.fairshare.charts import heads

    problem = next(iter(comparison.results.values())).problem
    texts = (heads.cluster_words(problem), heads.workload_words(problem), heads.budget_words(problem))
    return [f"{text}." for text in texts] + [
        "Waits that had not ended when the run did count as waited so far: they are lower bounds.",
        "Jobs run as long as the workload says; nothing but preemption, limits and drains ends them earlier.",
    ]


def _packing(comparison: Any) -> list[str]:
    from gpuplan.packing.charts import heads

    problem = next(iter(comparison.results.values())).problem
    return [f"{text}." for text in heads.about(problem)] + [
        "Tasks take the service time that the workload says, slowed by contention as stated."
    ]


def notes(comparison: SideBySide[Any]) -> list[str]:
    """What was set aside, why runs were stopped, and what was decided while the input was read."""
    scenario = comparison.scenario
    return [*_aside(comparison), *comparison.remarks, *getattr(scenario, "notes", ())]


def _aside(comparison: Any) -> list[str]:
    """Jobs or tasks that can never be served, by policy where policies differ."""
    said: dict[str, list[str]] = {}
    for name, result in comparison.results.items():
        for line in _reasons(result):
            said.setdefault(line, []).append(name)
    every = len(comparison.results)
    lines = [line if len(names) == every else f"{', '.join(names)}: {line}" for line, names in said.items()]
    more = len(lines) - _NAMED
    return lines[:_NAMED] + ([f"set aside for these and other reasons: {more:,} more"] if more > 0 else [])


def _reasons(result: Any) -> list[str]:
    if hasattr(result, "set_aside"):
        return [f"set aside: {job}: {why}" for job, why in result.set_aside.items()]
    reasons = Counter(result.problem.rejected.values())
    return [f"rejected: {n:,} task{'s' * (n != 1)}: {why}" for why, n in reasons.most_common()]
