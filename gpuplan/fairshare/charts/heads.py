"""What every chart says about itself: of which cluster, which workload, on which assumptions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan.fairshare.charts.clock import words
from gpuplan.gantt import safe_text

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.run import Run


def cluster_words(problem: "Problem") -> str:
    """``"three-programmes: 128 GPUs on 16 nodes of 8, 4 teams"``."""
    scenario = problem.scenario
    teams = len(problem.tree.teams)
    parts = []
    for pool in scenario.pools:
        kind = f" {safe_text(pool.gpu, 30)}" if pool.gpu else ""
        where = f" on {pool.nodes} nodes of {pool.gpus_per_node}" if pool.nodes > 1 else " in one pool"
        parts.append(f"{pool.gpus:,}{kind} GPUs{where}")
    if len(parts) > 4:
        parts = [f"{scenario.gpus:,} GPUs in {len(parts)} pools"]
    team = "1 team" if teams == 1 else f"{teams:,} teams"
    return f"{safe_text(scenario.name, 80)}: {', '.join(parts)}, {team}"


def workload_words(problem: "Problem") -> str:
    """Where the jobs come from, as a sentence."""
    scenario, n = problem.scenario, len(problem.jobs)
    made = scenario.generate
    if made is not None and scenario.jobs is None:
        return (
            f"generated workload: {n:,} jobs over {made.days:g} days, GPU-hours submitted / available "
            f"{made.oversubscription:g}, debug share {made.debug_share:.0%}, seed {made.seed}"
        )
    if scenario.jobs_file:
        return f"{n:,} jobs of {safe_text(scenario.jobs_file.replace(chr(92), '/').rpartition('/')[2], 60)}"
    return "1 job of the scenario" if n == 1 else f"{n:,} jobs of the scenario"


def aside_words(run: "Run") -> str:
    """How many jobs can never run under this policy, and why the run was stopped; empty if neither is so."""
    aside = len(run.reasons)
    words_of = ""
    if aside == 1:
        words_of = f"1 job is set aside: {safe_text(str(next(iter(run.reasons.values()))), 120)}"
    elif aside:
        words_of = f"{aside:,} jobs are set aside that can never run under {policy_name(run)}"
    stopped = f"{policy_name(run)}: {run.stopped}" if run.stopped else ""
    return ". ".join(part for part in (words_of, stopped) if part)


def budget_words(problem: "Problem") -> str:
    """The window and the contract that decide, as a sentence."""
    scenario = problem.scenario
    contract = scenario.contract
    return (
        f"window {words(scenario.window_s)}, protection at most {words(contract.max_min_runtime_s)}, "
        f"hysteresis {problem.hysteresis:.3g}"
    )


def empty_words(run: "Run") -> str:
    """Why a picture is empty: no jobs, none that can run, or none that ran; empty where jobs ran."""
    if len(run.raw.stretches):
        return ""
    n = len(run.problem.jobs)
    if n == 0:
        return "no jobs"
    if len(run.reasons) == n:
        reason = safe_text(str(next(iter(run.reasons.values()))), 120)
        return f"all {n:,} jobs are set aside: {reason}" if n > 1 else f"the job is set aside: {reason}"
    return f"none of {n:,} jobs started"


def policy_name(run: "Run") -> str:
    """Name of the policy of a run."""
    return run.policy


def listed(runs: "Sequence[Run] | Run") -> list["Run"]:
    """Runs as a list, one alone as well; a `ValueError` for none."""
    found = list(runs) if isinstance(runs, Sequence) else [runs]
    if not found:
        raise ValueError("a chart needs at least one run")
    return found


def policy_labels(runs: Sequence["Run"]) -> list[str]:
    """Names of the policies, told apart by their position where one stands twice."""
    names = [policy_name(run) for run in runs]
    if len(set(names)) == len(names):
        return names
    if len(names) == 2:
        return [f"{names[0]} (left)", f"{names[1]} (right)"]
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]


def amount(value: float | None, share: bool = True) -> str:
    """A figure as text: ``"97.4 %"`` for a share; a dash for none."""
    if value is None or value != value:
        return "–"
    return f"{100 * value:.1f} %" if share else f"{value:,.1f}"
