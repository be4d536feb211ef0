"""Claims about memory, examined on stated workloads: the margin that is needed, and what a smaller one wins.

What the scheduler reserves for a model is ``declared x (1 + margin) + context`` (the context only if it is counted),
what it takes is ``declared x (1 + overshoot) + context``. Out of memory is out of the second, never of the first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import (
    SECOND,
    Admission,
    Contention,
    ContentionModel,
    Draw,
    Generate,
    Gpus,
    PackingScenario,
    Retry,
    ServedModel,
)
from gpuplan.packing.studies import FIVE_SEEDS, means
from gpuplan.packing.study_runs import outcome, with_own_tasks
from gpuplan.packing.tasks import tasks

if TYPE_CHECKING:
    import pandas as pd

GB = 1_000_000_000

#: Models take so much more than they declare: the upper end of what the article reports.
OVERSHOOT = 0.15

#: The margin that the article advises.
ADVISED_MARGIN = 0.20

#: GPU and context of the staircase, GB.
CAPACITY_GB, CONTEXT_GB = 80.0, 0.5

NEEDED_MARGINS = tuple(round(0.025 * k, 3) for k in range(21))
STAIR_MARGINS = tuple(round(0.025 * k, 3) for k in range(13))
STAIR_SIZES = (12.0, 15.0, 16.6, 18.0, 25.0)
CONTENTIONS: tuple[ContentionModel, ...] = ("none", "slowdown", "sharing")


def margin_needed(declared_gb: float, uncounted_gb: float, overshoot: float = OVERSHOOT) -> float:
    """The least margin with which reservations never fall short of what a model takes.

    ``(overshoot x declared + uncounted context) / declared``; of several models the largest counts.
    """
    return (overshoot * declared_gb + uncounted_gb) / declared_gb


@dataclass(frozen=True)
class MarginStudy:
    """Out-of-memory events over size, uncounted context and margin.

    Attributes
    ----------
    table : pandas.DataFrame
        ``declared_gb, uncounted_gb, gpu`` (``80 GB``, or ``filled``: what reservations fill to the byte), ``margin``,
        ``copies`` (admitted on the GPU), ``needed`` (the formula), ``out_of_memory`` (events).
    """

    table: "pd.DataFrame"

    def least(self) -> "pd.DataFrame":
        """The least margin tried from which on nothing fails: ``declared_gb, uncounted_gb, gpu, needed, least``."""
        import pandas as pd

        rows = []
        for key, found in self.table.groupby(["declared_gb", "uncounted_gb", "gpu"], sort=False):
            fails = found.loc[found["out_of_memory"] > 0, "margin"].max()
            above = found.loc[~(found["margin"] <= fails), "margin"]
            rows.append((*key, found["needed"].iloc[0], above.min() if len(above) else math.nan))
        return pd.DataFrame(rows, columns=["declared_gb", "uncounted_gb", "gpu", "needed", "least"])

    def wrong(self) -> "pd.DataFrame":
        """Rows that contradict the formula: events at a margin that should do, or none on a full GPU below it."""
        found = self.table
        enough = found["margin"] >= found["needed"] - 1e-9
        fails = found["out_of_memory"] > 0
        return found[(enough & fails) | (~enough & ~fails & (found["gpu"] == "filled"))]


def margin_study(
    sizes_gb: Sequence[float] = (3, 5, 8, 10, 15, 20, 30),
    contexts_gb: Sequence[float] = (0, 0.25, 0.5, 1.0),
    margins: Sequence[float] = NEEDED_MARGINS,
) -> MarginStudy:
    """Fill a GPU with models of one size, one task of each at once, and count what runs out of memory.

    Parameters
    ----------
    sizes_gb
        Declared weights; the actual ones are 15 % larger.
    contexts_gb
        Context of each process, which the scheduler does not count.
    margins
    """
    import pandas as pd

    rows = []
    for size, context, margin in product(sizes_gb, contexts_gb, margins):
        need = -(-_bytes(size) * (SECOND + round(margin * SECOND)) // SECOND)
        for gpu, capacity in (("80 GB", _bytes(CAPACITY_GB)), ("filled", 4 * need)):
            scenario = full_gpu(size, context, margin, capacity)
            events = len(outcome(scenario, "first-fit").raw.breaches)
            needed = margin_needed(size, context)
            rows.append((size, context, gpu, margin, len(scenario.models), needed, events))
    names = ["declared_gb", "uncounted_gb", "gpu", "margin", "copies", "needed", "out_of_memory"]
    return MarginStudy(pd.DataFrame(rows, columns=names))


def full_gpu(size_gb: float, uncounted_gb: float, margin: float, capacity: int) -> PackingScenario:
    """One GPU and as many models as the scheduler admits there, each asked for at once, for a minute."""
    admission = Admission(round(margin * SECOND), _bytes(uncounted_gb), count_context=False)
    model = ServedModel("model", _bytes(size_gb), _bytes(size_gb * (1 + OVERSHOOT)))
    empty = PackingScenario("full", Gpus(1, capacity), (model,), admission)
    copies = capacity // empty.needed(model)
    rows = tuple(replace(model, name=f"model-{k + 1}") for k in range(copies))
    asked = tasks([0] * copies, list(range(copies)), service_us=60 * SECOND)
    return replace(empty, models=rows, tasks=asked, retry=Retry(0, SECOND))


def copies(declared_gb: float, margin: float) -> int:
    """Models that the scheduler admits on a GPU: ``floor(80 / (declared x (1 + margin) + 0.5))``."""
    need = -(-_bytes(declared_gb) * (SECOND + round(margin * SECOND)) // SECOND) + _bytes(CONTEXT_GB)
    return _bytes(CAPACITY_GB) // need


def copies_fit(declared_gb: float, count: int) -> bool:
    """Whether so many models, 15 % larger than declared, are in memory together without running out of it."""
    return count * (_bytes(declared_gb * (1 + OVERSHOOT)) + _bytes(CONTEXT_GB)) <= _bytes(CAPACITY_GB)


def staircase(sizes_gb: Sequence[float] | None = None) -> "pd.DataFrame":
    """What no margin wins over 20 %, by size: ``declared_gb, with_margin, without, gain_percent, fits``.

    ``with_margin`` and ``without`` are models per GPU at 20 % and 0 %; ``fits``: these are in memory together without
    running out of it. Sizes: 5 to 40 GB in steps of 0.01 GB.
    """
    import pandas as pd

    sizes = [k / 100 for k in range(500, 4001)] if sizes_gb is None else list(sizes_gb)
    rows = []
    for size in sizes:
        few, many = copies(size, ADVISED_MARGIN), copies(size, 0.0)
        rows.append((size, few, many, 100 * (many - few) / few if few else math.nan, copies_fit(size, many)))
    return pd.DataFrame(rows, columns=["declared_gb", "with_margin", "without", "gain_percent", "fits"])


def bands(least_percent: float = 30.0) -> "pd.DataFrame":
    """Stretches of sizes where no margin wins at least so much and nothing fails.

    Returns
    -------
    pandas.DataFrame
        ``from_gb, to_gb, with_margin, without, gain_percent``.
    """
    import pandas as pd

    found = staircase()
    good = found["fits"] & (found["gain_percent"] >= least_percent)
    number = (good != good.shift()).cumsum()
    rows = []
    for _, stretch in found[good].groupby(number[good]):
        first, last = stretch.iloc[0], stretch.iloc[-1]
        gain = (int(first["with_margin"]), int(first["without"]), float(first["gain_percent"]))
        rows.append((first["declared_gb"], last["declared_gb"], *gain))
    return pd.DataFrame(rows, columns=["from_gb", "to_gb", "with_margin", "without", "gain_percent"])


def stair_scenario(
    declared_gb: float, margin: float, contention: ContentionModel, seed: int
) -> PackingScenario:
    """One GPU with far more to do than it can: 200 tasks for 24 equally popular models, 30 s each on average."""
    actual = _bytes(declared_gb * (1 + OVERSHOOT))
    models = tuple(ServedModel(f"model-{k + 1}", _bytes(declared_gb), actual, max_tasks=1) for k in range(24))
    return PackingScenario(
        f"{declared_gb:g} GB",
        Gpus(1, _bytes(CAPACITY_GB)),
        models,
        Admission(round(margin * SECOND), _bytes(CONTEXT_GB)),
        contention=Contention(contention, 0.15),
        generate=Generate(2.0, 200, Draw(30.0), seed=seed),
    )


@dataclass(frozen=True)
class StairStudy:
    """Throughput and time on the GPU over the margin.

    Attributes
    ----------
    table : pandas.DataFrame
        ``contention, declared_gb, margin, seed``; ``copies`` (the staircase), ``throughput_per_s``, ``on_gpu_s`` (mean
        from placement to done), ``out_of_memory`` (events), ``failed`` (share of the tasks that were given up);
        ``throughput_gain``, ``on_gpu_gain`` (per cent, against the same seed at a margin of 20 %).
    """

    table: "pd.DataFrame"

    def means(self, figure: str) -> "pd.DataFrame":
        """A figure: ``contention, declared_gb, margin``, the figure, ``low, high, seeds``."""
        return means(self.table, ["contention", "declared_gb", "margin"], figure)

    def without_margin(self) -> "pd.DataFrame":
        """What a margin of 0 wins and costs: a row per contention and size, means over the seeds."""
        at = self.table[self.table["margin"] == 0]
        figures = ["throughput_gain", "on_gpu_gain", "out_of_memory", "failed"]
        return at.groupby(["contention", "declared_gb"], sort=False)[figures].mean().reset_index()


def stair_study(
    sizes_gb: Sequence[float] = STAIR_SIZES,
    margins: Sequence[float] = STAIR_MARGINS,
    contentions: Sequence[ContentionModel] = CONTENTIONS,
    seeds: Sequence[int] = FIVE_SEEDS,
) -> StairStudy:
    """Run an overloaded GPU at every margin; `margins` must hold 0.2, with which the others are compared."""
    import pandas as pd

    rows = []
    for contention, size, seed in product(contentions, sizes_gb, seeds):
        base = with_own_tasks(stair_scenario(size, ADVISED_MARGIN, contention, seed))
        for margin in margins:
            admission = replace(base.admission, margin=round(margin * SECOND))
            found = outcome(replace(base, admission=admission), "best-fit")
            done = found.books.done
            on_gpu = (
                float((found.books.latency - found.books.queue)[done].mean()) / SECOND
                if done.any()
                else np.nan
            )
            rows.append(
                (
                    *(contention, size, margin, seed, copies(size, margin), found.throughput_per_s, on_gpu),
                    *(len(found.raw.breaches), 1 - float(done.mean())),
                )
            )
    names = ["contention", "declared_gb", "margin", "seed", "copies", "throughput_per_s", "on_gpu_s"]
    table = pd.DataFrame(rows, columns=[*names, "out_of_memory", "failed"])
    keys = ["contention", "declared_gb", "seed"]
    base_of = table[table["margin"] == ADVISED_MARGIN].set_index(keys)
    index = pd.MultiIndex.from_frame(table[keys])
    for figure, gain in (("throughput_per_s", "throughput_gain"), ("on_gpu_s", "on_gpu_gain")):
        usual = base_of[figure].reindex(index).to_numpy()
        table[gain] = 100 * (table[figure].to_numpy() / usual - 1)
    return StairStudy(table)


def _bytes(gb: float) -> int:
    return round(gb * GB)
