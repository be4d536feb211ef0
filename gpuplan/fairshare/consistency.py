"""Rules of a fair-share scenario file that look at more than one field.

Each rule is a generator of mistakes (path, rule, found value). Rules are asked only about sections that are right by
themselves.
"""

from collections.abc import Iterator, Set
from typing import Any

from gpuplan.fairshare.file_budget import Conflict
from gpuplan.fairshare.file_models import ClusterFile, ScenarioFile, WorkloadFile
from gpuplan.fairshare.job_limits import MOST_GPU_SECONDS, MOST_GPUS
from gpuplan.fairshare.team_names import TeamNames
from gpuplan.inputs.errors import MISSING
from gpuplan.inputs.spans import span_text


def conflicts(file: ScenarioFile, wrong: Set[str], workload_is_held: bool) -> Iterator[Conflict]:
    """Every broken rule between fields, but for those of budgets and of the teams of jobs.

    Parameters
    ----------
    file
        The scenario as its file has it; sections that are wrong hold stand-ins.
    wrong
        Names of the sections that are wrong.
    workload_is_held
        Whether the workload comes from elsewhere (a scenario that is changed in other places).
    """
    if not wrong & {"cluster", "pools"}:
        found = list(_cluster(file))
        yield from found
        if not found and "drains" not in wrong:
            yield from _drains(file)
    if not wrong & {"window", "contract"} and file.contract.max_min_runtime > file.window:
        rule = f"must not exceed window, {span_text(file.window)}"
        yield ("contract", "max_min_runtime"), rule, span_text(file.contract.max_min_runtime)
    if "workload" not in wrong and not workload_is_held:
        yield from _workload(file.workload)


def _cluster(file: ScenarioFile) -> Iterator[Conflict]:
    """GPUs are told once, as nodes or as one number, and are not too many."""
    if file.cluster is None and not file.pools:
        yield ("cluster",), "must be given, or pools", MISSING
    if file.cluster is not None and file.pools:
        yield ("pools",), "must be left out where cluster is given (or cluster: null)", MISSING
    if file.cluster is not None:
        yield from _one_form(("cluster",), file.cluster)
    for place, pool in enumerate(file.pools):
        yield from _one_form(("pools", place), pool)
    total = sum(pool.build().gpus for pool in (*file.pools, *([file.cluster] if file.cluster else [])))
    if total > MOST_GPUS:
        yield ("pools" if file.pools else "cluster",), f"must have at most {MOST_GPUS:,} GPUs", total


def _one_form(path: tuple[str | int, ...], cluster: ClusterFile) -> Iterator[Conflict]:
    nodes = {"nodes": cluster.nodes, "gpus_per_node": cluster.gpus_per_node}
    if cluster.gpus is not None:
        for key, value in nodes.items():
            if value is not None:
                yield (*path, key), "must be left out where gpus (one flat pool) is given", value
    elif cluster.nodes is None and cluster.gpus_per_node is None:
        yield path, "must say nodes and gpus_per_node, or gpus for one flat pool", MISSING
    else:
        for key, value in nodes.items():
            if value is None:
                yield (*path, key), "must be given", MISSING


def _drains(file: ScenarioFile) -> Iterator[Conflict]:
    """Drains are of nodes that exist, one at a time."""
    clusters = file.pools or ([file.cluster] if file.cluster else [])
    nodes = sum(cluster.build().nodes for cluster in clusters)
    if not nodes:
        return
    last: dict[int, tuple[int, int]] = {}  # of each node: end of the latest repair, its row
    for place, drain in sorted(enumerate(file.drains), key=lambda row: (row[1].since, row[0])):
        if drain.node >= nodes:
            yield ("drains", place, "node"), f"must be the number of a node, 0 to {nodes - 1}", drain.node
            continue
        end, other = last.get(drain.node, (-1, -1))
        if drain.since < end:
            rule = f"must not lie within the drain of row {other}, which repairs node {drain.node} until"
            yield ("drains", place, "from"), f"{rule} {span_text(end)}", span_text(drain.since)
        last[drain.node] = max((end, other), (drain.since + drain.repair, place))


def _workload(workload: WorkloadFile) -> Iterator[Conflict]:
    """Jobs come from one place; the rows have ids of their own."""
    given = [key for key in ("file", "generate", "jobs") if getattr(workload, key) is not None]
    if not given:
        yield ("workload",), "must say one of file, generate or jobs", MISSING
    for key in given[1:]:
        yield ("workload", key), f"must be left out where {given[0]} is given", MISSING
    first: dict[str, int] = {}
    gpu_seconds = 0
    for place, job in enumerate(workload.jobs or ()):
        path = ("workload", "jobs", place)
        if job.job in first:
            yield (*path, "job"), f"must be unique, but row {first[job.job]} has the same id", job.job
        first.setdefault(job.job, place)
        if job.limit_s == 0 and job.run_s > 0:
            yield (*path, "limit_s"), "must be more than 0 for work that runs (null: no limit)", 0
        gpu_seconds += job.gpus * job.run_s
    if gpu_seconds > MOST_GPU_SECONDS:
        rule = f"must not add up to more than {MOST_GPU_SECONDS:,} GPU-seconds"
        yield ("workload", "jobs"), rule, gpu_seconds


def team_conflicts(workload: WorkloadFile, teams: TeamNames) -> Iterator[Conflict]:
    """Teams of the jobs that are no leaves of the tree."""
    rules: dict[str, str] = {}
    for place, job in enumerate(workload.jobs or ()):
        name = job.team
        if name is None and teams.only is not None:
            continue
        path = ("workload", "jobs", place, "team")
        if name is None:
            yield path, "must be given: the budget tree has several teams", MISSING
            continue
        rule = rules.setdefault(name, teams.rule(name))
        if rule:
            yield path, rule, name


def held_conflicts(team: Any, teams: TeamNames) -> Iterator[Conflict]:
    """Teams of jobs that were read before and are no leaves of the tree any more; each once, with its jobs counted."""
    names = team.tolist()
    for name in sorted(set(names) - set(teams.tree.teams)):
        count = names.count(name)
        rule = f"must hold the team of {count:,} job{'s' if count != 1 else ''}"
        yield ("budget",), rule, name
