"""Open questions about budgets, answered on a stated synthetic workload: tidy tables with a row per run.

Each function makes the jobs first and then changes one thing, so that every setting and policy meets the same jobs of
the same seeds (common random numbers). `gpuplan.fairshare.charts.study_chart` draws the tables, with intervals. The
workload is that of `gpuplan.fairshare.workloads`; the questions are those that Ai2, "Impactful scheduling for GPU
clusters" (October 2026), leaves open.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.fairshare import habits
from gpuplan.fairshare.jobs import Jobs, jobs, ordered
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.fairshare.ledger import gpu_seconds
from gpuplan.fairshare.model import DAY, HOUR, Bools, FairshareScenario
from gpuplan.fairshare.published import cluster
from gpuplan.fairshare.workloads import stream
from gpuplan.percentiles import percentiles

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.run import Run


@dataclass(frozen=True, slots=True)
class Size:
    """How large a study is: cluster, load (GPU-hours submitted / available), days, seeds of the workload."""

    gpus: int = 256
    load: float = 1.1
    days: float = 14
    seeds: tuple[int, ...] = (1, 2, 3)


#: Some seconds on a core each: a queue that is never far away, and one that never ends.
SMALL, CONTENDED = Size(), Size(gpus=128, load=2.5)

#: A job of at least this part of the cluster is one of the largest.
LARGE = 1 / 8

#: The rule's own hysteresis at the usual cap and window, kept while one of them changes.
USUAL_HYSTERESIS = 8 * HOUR / (7 * DAY)

HYSTERESES = (0.0, 0.01, 0.02, 0.048, 0.1, 0.2)

#: Interactive sessions: a day of work has so many per team; least and most hours, and the first and last hour of start.
SESSIONS_A_DAY, SESSION_HOURS, SESSION_STARTS = 3, (2.0, 6.0), (9.0, 16.0)


def hysteresis_study(
    scenario: FairshareScenario,
    size: Size = CONTENDED,
    hystereses: Sequence[float] = HYSTERESES,
    policies: Sequence[str] = ("fair-share",),
) -> "pd.DataFrame":
    """What preemption costs where a claim must be better by more or less: ``hysteresis, policy, seed``, figures.

    Without hysteresis two budgets of nearly equal claims preempt each other in turn.

    Parameters
    ----------
    scenario
        Whose budgets and contract; it must generate its workload (the shipped ``fifteen-teams``).
    size
        Cluster, load, days, seeds.
    hystereses
        How much lower a ratio must be before it may preempt; 0: any difference will do.
    policies
        Names.
    """
    settings = {value: {"contract.hysteresis": value} for value in hystereses}
    return _swept(scenario, size, "hysteresis", settings, policies)


def large_jobs_study(
    scenario: FairshareScenario,
    size: Size = SMALL,
    *,
    caps_h: Sequence[float] = (0.5, 1, 2, 4, 8),
    windows_d: Sequence[float] = (1, 3, 7),
    policies: Sequence[str] = ("fair-share", "easy"),
) -> "pd.DataFrame":
    """What lets the largest jobs wait: ``question, setting, policy, seed``, figures.

    ``question`` is ``cap`` (of the minimum run time; ``setting`` in hours), ``window`` (in days) or ``nodes`` (nodes of
    8 GPUs, or one flat pool, in words). The hysteresis stays at 8 h / 7 d meanwhile, so that only one thing changes.
    The largest are the jobs of at least an eighth of the cluster (`LARGE`): ``large_wait_p50_h``, ``large_wait_p90_h``.

    Parameters
    ----------
    scenario, size
        As in `hysteresis_study`.
    caps_h, windows_d
        Hours and days.
    policies
        For the question of nodes; cap and window are asked of ``fair-share`` alone, the others do not know them.
    """
    import pandas as pd

    fixed = {"contract.hysteresis": USUAL_HYSTERESIS}
    caps = {value: {**fixed, "contract.max_min_runtime": f"{value:g}h"} for value in caps_h}
    windows = {value: {**fixed, "window": f"{value:g}d"} for value in windows_d}
    nodes: dict[Any, Mapping[str, Any]] = {
        "nodes of 8": fixed,
        "one flat pool": {**fixed, "cluster": {"gpus": size.gpus}},
    }
    parts = [
        _swept(scenario, size, "setting", settings, names).assign(question=question)
        for question, settings, names in (
            ("cap", caps, ("fair-share",)),
            ("window", windows, ("fair-share",)),
            ("nodes", nodes, policies),
        )
    ]
    table = pd.concat([part.astype({"setting": object}) for part in parts], ignore_index=True)
    return table[["question", *table.columns.drop("question")]]


def squatting_study(
    scenario: FairshareScenario,
    size: Size = CONTENDED,
    team: str = "vision/multimodal",
    rates: Sequence[float] = (0.0, 0.5, 1.0),
    policies: Sequence[str] = ("priority-tiers", "fair-share"),
) -> "pd.DataFrame":
    """What a team gains or loses that squats while no other does: ``rate, policy, seed``, figures.

    Figures: ``team_useful_share`` (GPU-hours of the team's own work that were done / its entitlement),
    ``team_idle_share`` (held for nothing / its entitlement), ``team_debug_wait_p90_h`` and ``team_other_wait_p90_h``
    (of the jobs that are debug jobs where nobody squats, and of the rest), ``others_wait_p90_h``. Under
    ``priority-tiers`` all work of all teams is declared HIGH, as in the old world; that is the world in which it pays.

    Parameters
    ----------
    scenario, size, policies
        As in `hysteresis_study`.
    team
        Path of the leaf that squats.
    rates
        Shares of its debug jobs that hide behind a no-op job.

    Raises
    ------
    ValueError
        If no job is of that team.
    """
    rows = []
    for seed in size.seeds:
        base = _frozen(scenario, size, seed)
        made = _jobs_of(base)
        mine: Bools = made.team == team
        if not mine.any():
            raise ValueError(f"no job is of team {team!r}")
        debug = made.debug
        for rate, policy in product(rates, policies):
            marked = habits.chosen(made, rate, seed, "squatting") & mine
            asked = replace(base, jobs=habits.squatted(made, marked))
            if policy == "priority-tiers":
                asked = asked.replace({"behaviour.inflation": 1.0})
            run = _run(asked, policy)
            rows.append({"rate": rate, "policy": policy, "seed": seed} | _of_squatter(run, team, debug))
    return _frame(rows)


def session_study(
    scenario: FairshareScenario,
    size: Size = SMALL,
    minima_h: Sequence[float] = (0.25, 0.5, 1, 2, 4, 8),
    policy: str = "fair-share",
) -> "pd.DataFrame":
    """What interactive sessions lose where they are preempted: ``minimum_h, sessions, seed``, figures.

    Each team has some sessions of 1 GPU and 2 to 6 h on working days beside its other work. ``sessions`` is ``lost when
    preempted`` (they cannot resume and start over) or ``restorable`` (they go on where a checkpoint was). Figures:
    ``preempted_share`` (sessions preempted at least once), ``lost_share`` (of the GPU-time that sessions held),
    ``lost_h_each`` (hours, per session that was preempted), ``wait_p90_h``, ``others_wait_p90_h``.

    Parameters
    ----------
    scenario, size
        As in `hysteresis_study`.
    minima_h
        Minimum run times that the sessions declare, hours.
    policy
        Name.
    """
    rows = []
    for seed in size.seeds:
        base = _frozen(scenario, size, seed)
        for minimum, restorable in product(minima_h, (False, True)):
            both = with_sessions(_jobs_of(base), size.days, seed, round(minimum * HOUR), restorable)
            run = _run(replace(base, jobs=both), policy)
            what = "restorable" if restorable else "lost when preempted"
            rows.append({"minimum_h": minimum, "sessions": what, "seed": seed} | _of_sessions(run))
    return _frame(rows)


def with_sessions(made: Jobs, days: float, seed: int, minimum_s: int, restorable: bool) -> Jobs:
    """The jobs with interactive sessions of every team among them, named ``session-1`` and so on.

    Whether they can be restored and what they declare changes neither when they come nor how long they take.
    """
    day = np.array([d for d in range(math.ceil(days)) if d % 7 < 5])
    teams = sorted(set(made.team.tolist()))
    submit, run = [], []
    for team in teams:
        numbers = stream(seed, f"sessions of {team}").random((len(day) * SESSIONS_A_DAY, 2))
        hour = SESSION_STARTS[0] + (SESSION_STARTS[1] - SESSION_STARTS[0]) * numbers[:, 0]
        submit.append(np.repeat(day, SESSIONS_A_DAY) * DAY + (hour * HOUR).astype(np.int64))
        hours = SESSION_HOURS[0] + (SESSION_HOURS[1] - SESSION_HOURS[0]) * numbers[:, 1]
        run.append((hours * HOUR).astype(np.int64))
    count = len(day) * SESSIONS_A_DAY
    more = jobs(
        [f"session-{k + 1}" for k in range(count * len(teams))],
        np.concatenate(submit).tolist(),
        [1] * (count * len(teams)),
        np.concatenate(run).tolist(),
        team=[team for team in teams for _ in range(count)],
        limit_s=8 * HOUR,
        minimum_s=minimum_s,
        resumable=restorable,
    )
    names = Jobs.__slots__
    return ordered(Jobs(*(np.concatenate([getattr(made, n), getattr(more, n)]) for n in names)))


def _swept(
    scenario: FairshareScenario,
    size: Size,
    name: str,
    settings: Mapping[Any, Mapping[str, Any]],
    policies: Sequence[str],
) -> "pd.DataFrame":
    """A row per seed, setting and policy: the setting as column `name`, and the usual figures."""
    rows = []
    for seed in size.seeds:
        base = _frozen(scenario, size, seed)
        for (setting, changes), policy in product(settings.items(), policies):
            run = _run(base.replace(changes), policy)
            rows.append({name: setting, "policy": policy, "seed": seed} | _usual(run))
    return _frame(rows)


def _frozen(scenario: FairshareScenario, size: Size, seed: int) -> FairshareScenario:
    """The stated workload of a seed as jobs that stay."""
    asked = cluster(scenario, size.gpus, size.load, seed, days=size.days, repairs=False)
    return keep_jobs(asked)


def _jobs_of(scenario: FairshareScenario) -> Jobs:
    if scenario.jobs is None:
        raise ValueError("the scenario has no jobs of its own")
    return scenario.jobs


def _run(scenario: FairshareScenario, policy: str) -> "Run":
    from gpuplan.fairshare.run import simulate

    return simulate(scenario, policy)


def _usual(run: "Run") -> dict[str, float]:
    """Figures of a run that all questions look at; waits in hours."""
    found = run.figures
    kept = ("occupancy", "goodput", "lost_share", "delivered_share", "unallocated_share", "preemptions")
    large = run.problem.jobs.gpus >= LARGE * run.problem.gpus
    return (
        {name: _number(found[name]) for name in kept}
        | {"debug_wait_p90_h": _number(found["debug_wait_p90_s"]) / HOUR}
        | {"wait_p90_h": _number(found["wait_p90_s"]) / HOUR}
        | {
            f"large_wait_{name}_h": wait
            for name, wait in zip(("p50", "p90"), _waits(run, large), strict=True)
        }
    )


def _of_squatter(run: "Run", team: str, debug: Bools) -> dict[str, float]:
    """Figures of the team that squats; `debug`: the jobs that are debug jobs where nobody squats."""
    made, books = run.problem.jobs, run.ledger
    mine: Bools = made.team == team
    tree = run.problem.tree
    share = run.problem.epochs.mean_shares(run.end_s)[tree.leaves]
    entitled = float(share[tree.teams.index(team)]) * run.problem.gpus * run.end_s
    idle = np.minimum(made.idle_s, books.kept_s)
    held_idle = gpu_seconds(made.gpus[mine], idle[mine])
    useful = gpu_seconds(made.gpus[mine], books.kept_s[mine]) - held_idle
    return {
        "team_useful_share": useful / entitled,
        "team_idle_share": held_idle / entitled,
        "team_debug_wait_p90_h": _waits(run, mine & debug)[1],
        "team_other_wait_p90_h": _waits(run, mine & ~debug)[1],
        "others_wait_p90_h": _waits(run, ~mine)[1],
    }


def _of_sessions(run: "Run") -> dict[str, float]:
    """Figures of the sessions among the jobs."""
    books, made = run.ledger, run.problem.jobs
    mine = np.fromiter((str(name).startswith("session-") for name in made.name), np.bool_, len(made))
    hit = mine & (books.interruptions > 0)
    lost, kept = int(books.lost_s[mine].sum()), int(books.kept_s[mine].sum())
    return {
        "preempted_share": float(hit.sum() / max(1, (mine & books.counted).sum())),
        "lost_share": lost / max(1, lost + kept),
        "lost_h_each": float(books.lost_s[hit].mean()) / HOUR if hit.any() else 0.0,
        "wait_p90_h": _waits(run, mine)[1],
        "others_wait_p90_h": _waits(run, ~mine)[1],
    }


def _waits(run: "Run", which: Bools) -> list[float]:
    """Half and nine in ten of the waits of some jobs, hours; not a number where there are none."""
    waits = run.ledger.wait_s[which & run.ledger.counted]
    return [_number(value) / HOUR for value in percentiles(waits, (0.5, 0.9))]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _frame(rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows))
