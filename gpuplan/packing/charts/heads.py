"""What every chart says about itself: of which node, which workload, under which model of contention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan.gantt import safe_text
from gpuplan.packing.charts.clock import words
from gpuplan.packing.model import PackingScenario
from gpuplan.packing.words import gib

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.run import PackRun


def node_words(scenario: PackingScenario) -> str:
    """``"four-gpus: 4 GPUs of 79.3 GiB, 7 models"``, and how many of them are over several GPUs."""
    n, models = scenario.gpus.count, len(scenario.models)
    wide = sum(model.gpus > 1 for model in scenario.models)
    return (
        f"{safe_text(scenario.name, 80)}: {n:,} GPU{'s' * (n > 1)} of {gib(scenario.gpus.memory_bytes)}, "
        f"{models:,} model{'s' * (models > 1)}{f' ({wide:,} over several GPUs)' if wide else ''}"
    )


def has_wide(scenario: PackingScenario) -> bool:
    """Whether a model is spread over several GPUs."""
    return any(model.gpus > 1 for model in scenario.models)


def contention_words(scenario: PackingScenario) -> str:
    """How tasks on one GPU slow each other down: said on every picture, as it turns conclusions round."""
    kind = scenario.contention.model
    if kind == "none":
        return "contention: none (tasks on one GPU do not slow each other down)"
    if kind == "sharing":
        return "contention: processor sharing (n tasks on one GPU run at 1 / n of their speed)"
    return f"contention: slowdown (n tasks on one GPU take 1 + {scenario.contention.beta:g} (n - 1) times as long)"


def short_contention(scenario: PackingScenario) -> str:
    """The same where there is little room: ``"contention: slowdown 1 + 0.15 (n - 1)"``."""
    kind = scenario.contention.model
    more = {"none": "none", "sharing": "processor sharing, 1 / n"}
    return f"contention: {more.get(kind, f'slowdown 1 + {scenario.contention.beta:g} (n - 1)')}"


def workload_words(problem: "Problem") -> str:
    """Where the tasks come from."""
    scenario, n = problem.scenario, len(problem.tasks)
    made = scenario.generate
    if made is not None and scenario.tasks is None:
        return (
            f"generated workload: {n:,} tasks, {made.rate_per_s:g} per s, service {made.service.mean:g} s on average, "
            f"seed {made.seed}"
        )
    if scenario.tasks_file:
        return f"{n:,} tasks of {safe_text(scenario.tasks_file.replace(chr(92), '/').rpartition('/')[2], 60)}"
    return "1 task of the scenario" if n == 1 else f"{n:,} tasks of the scenario"


def about(problem: "Problem") -> list[str]:
    """The subtitles of every chart: the node with its workload, and the contention."""
    scenario = problem.scenario
    margin = scenario.admission.margin / 10_000
    counted = "context counted" if scenario.admission.count_context else "context not counted"
    return [
        f"{node_words(scenario)}; {workload_words(problem)}",
        f"{contention_words(scenario)}; margin {margin:g} % on declared, {counted}",
    ]


def aside_words(run: "PackRun") -> str:
    """How many tasks were rejected, with the reason of the first; empty where none was."""
    n = run.figures["tasks_rejected"]
    if not n:
        return ""
    reason = safe_text(str(next(iter(run.problem.rejected.values()))), 140)
    return f"1 task is rejected: {reason}" if n == 1 else f"{n:,} tasks are rejected; the first: {reason}"


def empty_words(run: "PackRun") -> str:
    """Why a picture is empty: no tasks, all rejected, or none placed; empty where one was."""
    if len(run.raw.stages):
        return ""
    n = len(run.problem.tasks)
    if n == 0:
        return "no tasks"
    if len(run.problem.rejected) == n:
        return "all tasks are rejected" if n > 1 else "the task is rejected"
    return f"none of {n:,} tasks was placed" if n > 1 else "the task was not placed"


def policy_name(run: "PackRun") -> str:
    """Name of the policy of a run, as it was asked for."""
    return safe_text(run.policy, 60)


def listed(runs: "Sequence[PackRun] | PackRun") -> list["PackRun"]:
    """Runs as a list, one alone as well; a `ValueError` for none."""
    found = list(runs) if isinstance(runs, Sequence) else [runs]
    if not found:
        raise ValueError("a chart needs at least one run")
    return found


def policy_labels(runs: Sequence["PackRun"]) -> list[str]:
    """Names of the policies, told apart by their position where one stands twice."""
    names = [policy_name(run) for run in runs]
    if len(set(names)) == len(names):
        return names
    if len(names) == 2:
        return [f"{names[0]} (left)", f"{names[1]} (right)"]
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]


def seconds_words(value: float | int | None) -> str:
    """Seconds of a figure as text; a dash for none."""
    return "–" if value is None else words(value)
