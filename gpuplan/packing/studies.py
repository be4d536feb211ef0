"""Claims about packing, examined on stated workloads: waits, preemption, mixes of sizes. Nothing is tuned to a claim.

Each function makes the tasks of a seed first and then changes one thing (common random numbers); tables have a row per
run, intervals are 95 % over the seeds. The workloads were written down before the first run. The claims are those of an
article on a scheduler for inference of many tenants on four GPUs; `gpuplan.packing.margin_studies` has those on
memory, `gpuplan.packing.charts.claims` draws them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.intervals import interval
from gpuplan.packing.model import (
    GIB,
    SECOND,
    Contention,
    Draw,
    Generate,
    Gpus,
    PackingScenario,
    Preemption,
    ServedModel,
)
from gpuplan.packing.study_runs import Outcome, outcome, saved_percent, with_own_tasks
from gpuplan.packing.workloads import size_mix

if TYPE_CHECKING:
    import pandas as pd

#: Usable memory of each GPU of the studies, and mean service time of a task.
MEMORY_BYTES, SERVICE_S = round(79.3 * GIB), 8.0

#: The policy that packs by memory and predicted run time, and the two that it is compared with.
PACKING = "predicted-fit"
ROUND_ROBINS = ("round-robin", "round-robin-skip")

LOADS = (0.5, 0.7, 0.9, 1.1, 1.3, 1.6, 2.0)
BURSTS = (20, 50, 100, 200, 500, 1000, 2000)
TEN_SEEDS, FIVE_SEEDS = tuple(range(1, 11)), tuple(range(1, 6))

#: The saving that was published.
PUBLISHED_SAVING = 23.0

#: Victims with at least so much predicted time left may be preempted, seconds; infinity: none.
THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, math.inf)

MIX_POLICIES = (
    "round-robin-skip",
    "first-fit",
    "best-fit",
    "worst-fit",
    "predicted-fit",
    "fgd",
    "best-fit+backfill",
)

#: Tasks side by side on a GPU in the study of mixes, and how they slow each other down.
SIDE_BY_SIDE, SLOWDOWN = 4, Contention("slowdown", 0.15)


def waiting_scenario(workload: str, load: float, count: int, seed: int) -> PackingScenario:
    """Four GPUs that take one task at a time each; load = rate x mean service / 4.

    ``queueing``: one model, resident on all GPUs, so that nothing is packed and all that counts is who waits behind
    whom. ``models``: eight models of 10, 20 and 40 GiB, Zipf-popular, that fit on the node once and not on one GPU.

    Raises
    ------
    ValueError
        For another workload.
    """
    if workload == "queueing":
        models: tuple[ServedModel, ...] = (ServedModel("one", 16 * GIB, 16 * GIB, resident=(0, 1, 2, 3)),)
    elif workload == "models":
        models = size_mix([10 * GIB, 20 * GIB, 40 * GIB], [1, 1, 1], 8, overshoot=0.125)
    else:
        raise ValueError(f"no workload {workload!r}")
    asked = Generate(4 * load / SERVICE_S, count, Draw(SERVICE_S), seed=seed)
    return PackingScenario(workload, Gpus(4, MEMORY_BYTES, max_tasks=1), models, generate=asked)


@dataclass(frozen=True)
class WaitStudy:
    """Mean waits over load and length of the burst.

    Attributes
    ----------
    table : pandas.DataFrame
        ``workload, load, tasks, seed, policy, wait_s``.
    """

    table: "pd.DataFrame"

    def saved(self, against: str, policy: str = PACKING) -> "pd.DataFrame":
        """Wait saved against another policy: ``workload, load, tasks, saved_percent, low, high, seeds``."""
        return _saved(self.table, ["workload", "load", "tasks"], policy, against)

    def waits(self) -> "pd.DataFrame":
        """Mean waits in seconds: ``workload, load, tasks, policy, wait_s, low, high, seeds``."""
        return means(self.table, ["workload", "load", "tasks", "policy"], "wait_s")


def wait_study(
    workloads: Sequence[str] = ("queueing", "models"),
    loads: Sequence[float] = LOADS,
    bursts: Sequence[int] = BURSTS,
    seeds: Sequence[int] = TEN_SEEDS,
    policies: Sequence[str] = (PACKING, *ROUND_ROBINS),
) -> WaitStudy:
    """Mean waits of bursts that begin and end with an empty node, over load and number of tasks.

    Parameters
    ----------
    workloads
        Names, see `waiting_scenario`.
    loads, bursts
        Offered load, tasks per burst; a longer burst of a seed begins with the shorter one.
    seeds, policies
    """
    import pandas as pd

    rows = []
    for workload, load, count, seed in product(workloads, loads, bursts, seeds):
        scenario = waiting_scenario(workload, load, count, seed)
        for policy in policies:
            rows.append((workload, load, count, seed, policy, outcome(scenario, policy).wait_s))
    return WaitStudy(pd.DataFrame(rows, columns=["workload", "load", "tasks", "seed", "policy", "wait_s"]))


def shared_queue_saving(load: float, servers: int = 4) -> float:
    """Wait saved by one queue for all servers against dealing tasks out blindly, per cent; long runs, nothing to load.

    Shared: M/M/c, ``C(c, c load) / (c mu - lambda)`` (Erlang C). Dealt out in turn: every server sees Erlang-c gaps,
    ``sigma = (lambda / (lambda + mu (1 - sigma)))^c``, ``Wq = sigma / (mu (1 - sigma))`` (GI/M/1), with mu = 1.
    """
    rate, offered = servers * load, servers * load
    term = offered**servers / math.factorial(servers) / (1 - load)
    erlang_c = term / (sum(offered**k / math.factorial(k) for k in range(servers)) + term)
    shared = erlang_c / (servers - rate)
    sigma = load
    for _ in range(10_000):
        sigma = (rate / (rate + 1 - sigma)) ** servers
    return 100 * (1 - shared / (sigma / (1 - sigma)))


def preemption_scenario(gpus: int, cost_s: float, seed: int, count: int = 4000) -> PackingScenario:
    """GPUs at load 0.7 that take one task at a time, one model resident everywhere; one task in five is urgent."""
    models = (ServedModel("one", 16 * GIB, 16 * GIB, resident=tuple(range(gpus))),)
    asked = Generate(0.7 * gpus / SERVICE_S, count, Draw(SERVICE_S), high_priority_share=0.2, seed=seed)
    cost = round(cost_s * SECOND)
    return PackingScenario(
        f"preemption, {gpus} GPUs",
        Gpus(gpus, MEMORY_BYTES, max_tasks=1),
        models,
        preemption=Preemption("threshold", 0, cost, cost),
        generate=asked,
    )


@dataclass(frozen=True)
class ThresholdStudy:
    """What preemption does to both priorities, over the threshold.

    Attributes
    ----------
    table : pandas.DataFrame
        ``gpus, cost_s, threshold_s, seed``; ``urgent_wait_s``, ``other_latency_s``, ``sum_s`` (of these two),
        ``latency_s`` (of all tasks), ``preemptions``.
    """

    table: "pd.DataFrame"

    def means(self, figure: str) -> "pd.DataFrame":
        """A figure: ``gpus, cost_s, threshold_s``, the figure, ``low, high, seeds``."""
        return means(self.table, ["gpus", "cost_s", "threshold_s"], figure)

    def best(self, figure: str) -> "pd.DataFrame":
        """The threshold with the least mean of a figure: ``gpus, cost_s, threshold_s``, the figure."""
        found = self.means(figure)
        least = found.loc[found.groupby(["gpus", "cost_s"])[figure].idxmin()]
        return least[["gpus", "cost_s", "threshold_s", figure]].reset_index(drop=True)


def threshold_study(
    gpus: Sequence[int] = (1, 4),
    costs_s: Sequence[float] = (2.0, 5.0),
    thresholds_s: Sequence[float] = THRESHOLDS,
    seeds: Sequence[int] = FIVE_SEEDS,
    count: int = 4000,
) -> ThresholdStudy:
    """Wait of urgent tasks and latency of the others, where saving (and restoring) takes so many seconds.

    Parameters
    ----------
    gpus
        Numbers of GPUs.
    costs_s
        Seconds of a save, and as many of a restore.
    thresholds_s
        Least predicted remaining time of a victim; infinity: nobody is preempted.
    seeds
    count
        Tasks.
    """
    import pandas as pd

    rows = []
    for n, cost, seed in product(gpus, costs_s, seeds):
        base = with_own_tasks(preemption_scenario(n, cost, seed, count))
        for threshold in thresholds_s:
            found = outcome(_preempting(base, threshold), "best-fit")
            rows.append((n, cost, threshold, seed, *_by_priority(found)))
    names = [
        "gpus",
        "cost_s",
        "threshold_s",
        "seed",
        "urgent_wait_s",
        "other_latency_s",
        "sum_s",
        "latency_s",
    ]
    return ThresholdStudy(pd.DataFrame(rows, columns=[*names, "preemptions"]))


def _preempting(base: PackingScenario, threshold_s: float) -> PackingScenario:
    from dataclasses import replace

    rule = base.preemption
    if math.isinf(threshold_s):
        return replace(base, preemption=replace(rule, when="never"))
    return replace(base, preemption=replace(rule, threshold_us=round(threshold_s * SECOND)))


def _by_priority(found: Outcome) -> tuple[float, float, float, float, int]:
    from gpuplan.packing.raw import PREEMPTED

    books, urgent = found.books, found.problem.tasks.priority > 0
    wait = float(books.wait[urgent].mean()) / SECOND
    others = float(books.latency[~urgent].mean()) / SECOND
    preempted = int((found.raw.stages.outcome == PREEMPTED).sum())
    return wait, others, wait + others, float(books.latency.mean()) / SECOND, preempted


def mix_scenario(mix: str, load: float, seed: int, count: int = 3000) -> PackingScenario:
    """Twelve models of 240 GiB together, Zipf-popular: ``uniform`` (20 GiB each) or ``mixed`` (8, 8, 44 GiB in turn).

    Load: of the most work that the GPUs do side by side, ``4 x 4 / (1 + 0.15 x 3)`` seconds of service per second.

    Raises
    ------
    ValueError
        For another mix.
    """
    sizes = {"uniform": ([20 * GIB], [1]), "mixed": ([8 * GIB, 44 * GIB], [2, 1])}
    if mix not in sizes:
        raise ValueError(f"no mix {mix!r}")
    most = 4 * SIDE_BY_SIDE / (1 + SLOWDOWN.beta * (SIDE_BY_SIDE - 1))
    asked = Generate(load * most / SERVICE_S, count, Draw(SERVICE_S), seed=seed)
    models = size_mix(*sizes[mix], 12, overshoot=0.125)
    gpus = Gpus(4, MEMORY_BYTES, max_tasks=SIDE_BY_SIDE)
    return PackingScenario(mix, gpus, models, contention=SLOWDOWN, generate=asked)


@dataclass(frozen=True)
class MixStudy:
    """Uniform against mixed sizes.

    Attributes
    ----------
    table : pandas.DataFrame
        ``mix, load, seed, policy, wait_s, loads`` (transfers of weights per task).
    """

    table: "pd.DataFrame"

    def means(self, figure: str = "wait_s") -> "pd.DataFrame":
        """A figure: ``mix, load, policy``, the figure, ``low, high, seeds``."""
        return means(self.table, ["mix", "load", "policy"], figure)

    def saved(self, policy: str, against: str) -> "pd.DataFrame":
        """Wait saved against another policy: ``mix, load, saved_percent, low, high, seeds``."""
        return _saved(self.table, ["mix", "load"], policy, against)

    def order(self, mix: str, load: float) -> list[str]:
        """Policies by their mean wait, the least first."""
        found = self.means()
        mine = found[(found["mix"] == mix) & (found["load"] == load)]
        return [str(name) for name in mine.sort_values("wait_s", kind="stable")["policy"]]


def mix_study(
    loads: Sequence[float] = (0.6, 0.9),
    policies: Sequence[str] = MIX_POLICIES,
    seeds: Sequence[int] = FIVE_SEEDS,
    count: int = 3000,
) -> MixStudy:
    """Mean waits of placements on models of one size, and on small and large ones of the same sum."""
    import pandas as pd

    from gpuplan.packing.model import NEVER

    rows = []
    for mix, load, seed in product(("uniform", "mixed"), loads, seeds):
        scenario = mix_scenario(mix, load, seed, count)
        for policy in policies:
            found = outcome(scenario, policy)
            transfers = int((found.raw.copies.load_us < NEVER).sum()) / count
            rows.append((mix, load, seed, policy, found.wait_s, transfers))
    return MixStudy(pd.DataFrame(rows, columns=["mix", "load", "seed", "policy", "wait_s", "loads"]))


def _saved(table: "pd.DataFrame", keys: list[str], policy: str, against: str) -> "pd.DataFrame":
    """Saving in mean wait by setting, over paired seeds: `keys`, ``saved_percent, low, high, seeds``."""
    import pandas as pd

    wide = table.pivot_table(index=[*keys, "seed"], columns="policy", values="wait_s", sort=False)
    rows = []
    for key, rows_of in wide.groupby(level=keys, sort=False):
        found = saved_percent(rows_of[policy].to_numpy(), rows_of[against].to_numpy())
        rows.append((*key, *found, len(rows_of)))
    return pd.DataFrame(rows, columns=[*keys, "saved_percent", "low", "high", "seeds"])


def means(table: "pd.DataFrame", keys: list[str], figure: str) -> "pd.DataFrame":
    """Mean over the seeds of a figure and its 95 % interval: `keys`, the figure, ``low, high, seeds``."""
    import pandas as pd

    rows = []
    for key, rows_of in table.groupby(keys, sort=False):
        values = rows_of[figure].to_numpy(np.float64)
        rows.append((*key, *interval(values), len(values)))
    return pd.DataFrame(rows, columns=[*keys, figure, "low", "high", "seeds"])
