"""The published case of budgets instead of priorities beside runs of one stated synthetic workload, with intervals.

The published figures are those of Ai2, "Impactful scheduling for GPU clusters" (October 2026). Their workload is not
public. Ours is that of `gpuplan.fairshare.workloads` on the shipped scenario ``fifteen-teams``, on clusters of
other sizes too; it was fixed before the policies were written, and nothing in it is fitted to the published figures.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpuplan.fairshare.figures import UNITS
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

SOURCE = 'Ai2, "Impactful scheduling for GPU clusters", October 2026'


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure: before (priorities) and after (budgets); None where none was published.

    `figure` is our name of it, or empty where no figure of ours measures it.
    """

    what: str
    figure: str
    before: float | None
    after: float | None
    unit: str = "share"


PUBLISHED_UNALLOCATED = 0.18

#: What was published, in the order of the post's tables.
PUBLISHED = (
    Published("occupancy", "occupancy", 0.98, 0.98),
    Published("delivered / owed over 30 days", "delivered_share", None, 0.98),
    Published("teams with 95 % or more of what they were owed, of 15", "teams_served", None, 13, "teams"),
    Published("delivered / owed of the worst team", "delivered_worst_team", None, 0.90),
    Published("unallocated share of delivered time", "unallocated_share", None, PUBLISHED_UNALLOCATED),
    Published("debug wait p90, production", "debug_wait_p90_s", 2 * 3600, 30, "seconds"),
    Published("debug wait p90, their simulator, about", "", 6 * 3600, 5 * 60, "seconds"),
    Published("wait p50, largest H100 cluster", "wait_p50_s", 5 * 60, 24, "seconds"),
    Published("wait p90, largest H100 cluster", "wait_p90_s", 2.8 * 3600, 1.8 * 3600, "seconds"),
    Published("repairs that need a person, change", "", None, -0.74),
)


@dataclass(frozen=True, slots=True)
class Aim:
    """What this simulator is meant to reach under budgets at a load: at least (`least`) or at most `value`."""

    load: float
    figure: str
    least: bool
    value: float

    def missed_by(self, found: float) -> float:
        """How far a figure is on the wrong side; 0 where the aim is met."""
        return max(0.0, self.value - found if self.least else found - self.value)


#: Aims of the project for ``fair-share`` ("minutes" at load 2.5: at most half an hour).
AIMS = (
    Aim(1.1, "delivered_share", True, 0.98),
    Aim(1.1, "delivered_worst_team", True, 0.90),
    Aim(1.1, "occupancy", True, 0.97),
    Aim(1.1, "debug_wait_p90_s", False, 60),
    Aim(1.1, "lost_share", False, 0.05),
    Aim(2.5, "debug_wait_p90_s", False, 1800),
)


@dataclass(frozen=True, slots=True)
class World:
    """A way to run the cluster: a policy and the habits that it breeds."""

    name: str
    policy: str
    habits: Mapping[str, float] = field(default_factory=dict)


#: All work declared HIGH, half of the debug jobs held by no-op jobs, a third opted out of preemption.
OLD_HABITS = MappingProxyType(
    {"behaviour.inflation": 1.0, "behaviour.squatting": 0.5, "behaviour.opt_out": 1 / 3}
)

#: The worlds compared: the old one, monopolies, backfill, budgets.
WORLDS = (
    World("tiers, inflated", "priority-tiers", OLD_HABITS),
    World("monopolies", "static-partitions"),
    World("easy", "easy"),
    World("budgets", "fair-share"),
)

#: Figures of the table, goodput beside occupancy.
FIGURES = (
    *("occupancy", "goodput", "lost_share", "delivered_share", "delivered_worst_team", "teams_served"),
    *("unallocated_share", "debug_wait_p90_s", "wait_p50_s", "wait_p90_s"),
    *("largest_wait_p50_s", "largest_wait_p90_s", "shut_downs_by_hand", "jobs_set_aside", "outstanding"),
)

#: Figures that cannot be above 1.
_PARTS = {"occupancy", "goodput", "lost_share", "delivered_share", "unallocated_share"}

#: A host needs a repair about this often, days, and for so long, hours.
DAYS_BETWEEN_REPAIRS, REPAIR_HOURS = 100, 4

GPUS_PER_NODE = 8


def cluster(
    scenario: FairshareScenario,
    gpus: int = 512,
    load: float = 1.1,
    seed: int = 1,
    *,
    days: float = 30,
    repairs: bool = True,
) -> FairshareScenario:
    """The stated workload on a cluster of a size, at a load, from a seed.

    Parameters
    ----------
    scenario
        Whose budgets and contract; it must generate its workload (the shipped ``fifteen-teams``).
    gpus
        A multiple of 8: whole nodes.
    load
        GPU-hours submitted / GPU-hours available.
    seed
        Of the workload.
    days
        The run stops at their end.
    repairs
        Whether each host is repaired about every `DAYS_BETWEEN_REPAIRS` days, evenly over time.

    Raises
    ------
    InputError
        For an argument out of range.
    """
    nodes, rest = divmod(gpus, GPUS_PER_NODE)
    if rest or nodes < 1:
        raise InputError("published", [Mistake("gpus", f"must be a multiple of {GPUS_PER_NODE}", gpus)])
    count = round(nodes * days / DAYS_BETWEEN_REPAIRS) if repairs else 0
    drains = [
        {
            "node": k * nodes // count,
            "from": f"{(k + 0.5) * days / count:.4f}d",
            "repair": f"{REPAIR_HOURS}h",
        }
        for k in range(count)
    ]
    return scenario.replace(
        {
            "cluster": {"nodes": nodes, "gpus_per_node": GPUS_PER_NODE},
            "workload.generate.days": days,
            "workload.generate.oversubscription": load,
            "workload.generate.seed": seed,
            "drains": drains,
        }
    )


def runs(
    scenario: FairshareScenario,
    gpus: Sequence[int] = (88, 512, 1024),
    loads: Sequence[float] = (0.9, 1.1, 2.5),
    seeds: Iterable[int] = range(1, 6),
    worlds: Sequence[World] = WORLDS,
    *,
    days: float = 30,
) -> "pd.DataFrame":
    """A row per run: ``gpus, load, world, seed`` and the figures of `FIGURES`, not a number where there is none.

    Every world gets the same jobs (common random numbers), with the habits that it breeds.
    """
    import pandas as pd

    from gpuplan.fairshare.run import simulate

    rows: list[dict[str, Any]] = []
    for size, load, seed in product(gpus, loads, list(seeds)):
        asked = cluster(scenario, size, load, seed, days=days)
        for world in worlds:
            found = simulate(asked.replace(world.habits) if world.habits else asked, world.policy).figures
            rows.append(
                {"gpus": size, "load": load, "world": world.name, "seed": seed}
                | {figure: found[figure] for figure in FIGURES}
            )
    return pd.DataFrame(rows).astype(dict.fromkeys(FIGURES, float))


def summary(table: "pd.DataFrame") -> "pd.DataFrame":
    """Means over seeds: a row per ``gpus, load, world, figure``, with ``mean, low, high, seeds, before, after``.

    ``low`` and ``high``: 95 % confidence of the mean (Student's t), cut at what is possible;
    ``before`` and ``after``: what was published.

    Parameters
    ----------
    table
        Of `runs`.
    """
    import pandas as pd

    from gpuplan.fairshare.charts.studies import bounds

    published = {row.figure: row for row in PUBLISHED if row.figure}
    rows = []
    for (gpus, load, world), group in table.groupby(["gpus", "load", "world"], sort=False):
        for figure in FIGURES:
            values = group[figure].dropna().to_numpy(float)
            low, high = bounds(values, "t") if len(values) else (math.nan, math.nan)
            # the few seeds say nothing about what cannot be: below 0, or beyond the whole
            low, high = max(0.0, low), min(1.0, high) if figure in _PARTS else high
            mean = float(values.mean()) if len(values) else math.nan
            beside = published.get(figure)
            before, after = (beside.before, beside.after) if beside else (None, None)
            rows.append((gpus, load, world, figure, mean, low, high, len(values), before, after))
    columns = ["gpus", "load", "world", "figure", "mean", "low", "high", "seeds", "before", "after"]
    return pd.DataFrame(rows, columns=columns).astype({"before": float, "after": float})


def table(
    scenario: FairshareScenario,
    gpus: Sequence[int] = (88, 512, 1024),
    loads: Sequence[float] = (0.9, 1.1, 2.5),
    seeds: Iterable[int] = range(1, 6),
    worlds: Sequence[World] = WORLDS,
    *,
    days: float = 30,
) -> "pd.DataFrame":
    """The published figures beside ours, mean and interval over seeds (see `runs` and `summary`).

    Parameters
    ----------
    scenario
        The shipped ``fifteen-teams``.
    gpus, loads, seeds, worlds
        What to run: each with each.
    days
        Of the workload and the run.
    """
    return summary(runs(scenario, gpus, loads, seeds, worlds, days=days))


def wide(table: "pd.DataFrame", gpus: int, load: float) -> "pd.DataFrame":
    """For reading: a row per figure, a column per world with mean and interval as text, then what was published."""
    import pandas as pd

    chosen = table[(table["gpus"] == gpus) & (table["load"] == load)]
    shown: dict[str, dict[str, str]] = {}
    for row in chosen.to_dict("records"):
        text, low, high = (said(row["figure"], row[key]) for key in ("mean", "low", "high"))
        alone = row["seeds"] < 2
        shown.setdefault(row["world"], {})[row["figure"]] = text if alone else f"{text} ({low} to {high})"
    first = chosen.drop_duplicates("figure").set_index("figure")
    for column in ("before", "after"):
        shown[f"published, {column}"] = {
            figure: "" if math.isnan(value) else said(figure, value)
            for figure, value in zip(first.index, first[column].tolist(), strict=True)
        }
    frame = pd.DataFrame(shown, index=list(FIGURES))
    frame.index = pd.Index([name.removesuffix("_s").replace("_", " ") for name in FIGURES], name="figure")
    return frame


def said(figure: str, value: float) -> str:
    """A figure as text: shares in per cent, times in the unit that fits, counts with a decimal where they need one."""
    if math.isnan(value):
        return "none"
    if figure.endswith("_s"):
        size = abs(value)
        if size < 120:
            return f"{value:.0f} s"
        return f"{value / 60:.1f} min" if size < 7200 else f"{value / 3600:.1f} h"
    if UNITS[figure].startswith("share"):
        return f"{100 * value:.1f} %"
    return f"{value:,.1f}".removesuffix(".0")


def notes(table: "pd.DataFrame", world: str = "budgets") -> tuple[str, ...]:
    """What stands below the table: of what it is, which aims it meets, and by how much it misses the others."""
    found = [
        f"Published: {SOURCE}; their workload is not public. Ours: a stated synthetic workload, fixed beforehand; "
        "means over seeds with 95 % confidence (Student's t).",
        "Tiers: all work declared HIGH, half of the debug jobs behind a no-op job of 8 h, a third opted out. A "
        f"repair per host every {DAYS_BETWEEN_REPAIRS} days. Largest: jobs of the largest size class that the "
        "policy can run at all; monopolies set aside what is larger than a team's own GPUs.",
    ]
    ours: list[dict[str, Any]] = table[table["world"] == world].to_dict("records")  # type: ignore[assignment]
    for aim in AIMS:
        for row in ours:
            if (row["load"], row["figure"]) == (aim.load, aim.figure) and not math.isnan(row["mean"]):
                found.append(f"{row['gpus']} GPUs, load {aim.load:g}: {_verdict(aim, row['mean'])}")
    for row in ours:
        if (row["load"], row["figure"]) == (1.1, "unallocated_share"):
            off = f"{100 * (row['mean'] - PUBLISHED_UNALLOCATED):+.1f} points from the published 18 %"
            found.append(f"{row['gpus']} GPUs, load 1.1: unallocated share {100 * row['mean']:.1f} %, {off}.")
    return tuple(found)


def _verdict(aim: Aim, found: float) -> str:
    missed = aim.missed_by(found)
    verdict = f"missed by {_gap(aim.figure, missed)}" if missed else "met"
    sense = "at least" if aim.least else "at most"
    return f"{_name(aim.figure)} {said(aim.figure, found)}, aim {sense} {said(aim.figure, aim.value)}: {verdict}."


def _name(figure: str) -> str:
    return figure.removesuffix("_s").replace("_", " ")


def _gap(figure: str, gap: float) -> str:
    return f"{100 * gap:.2f} points" if UNITS[figure].startswith("share") else said(figure, gap)
