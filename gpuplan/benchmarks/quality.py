"""How good plans are: the seven benchmark scenarios beside the published figures, and growth with size.

Shares are of the proven bound where it is attained, else of the best plan known; the note says which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import fmean, median
from typing import TYPE_CHECKING

from gpuplan.allocation.model import AllocationScenario
from gpuplan.benchmarks.frame import Finding, Measure
from gpuplan.benchmarks.published import PUBLISHED, Published

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.allocation.figures import Figures

#: Seconds for a proof, seeds of a mean, seeds of a median.
PROOF_S, SEEDS, FEW_SEEDS = 30.0, 20, 5

#: Budgets tried for the time to a share, in milliseconds.
BUDGETS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

#: GPUs, steps and jobs of the growth table.
GROWTH = ((64, 24, 30), (64, 48, 200), (256, 48, 1000), (1024, 48, 5000))


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What plans of a scenario are measured by.

    Attributes
    ----------
    bound
        No plan has a larger objective (priority-weighted GPU-hours).
    best
        Objective of the best plan known: the bound itself where it is closed.
    closed
        A plan attains the bound.
    source
        Where the bound comes from, for people.
    """

    bound: float
    best: float
    closed: bool
    source: str


@lru_cache(maxsize=16)
def yardstick(scenario: AllocationScenario, time_limit_s: float = PROOF_S) -> Yardstick:
    """The proven bound and the best plan known; where OR-Tools is missing, the bound by prices.

    The best plan known is the best of ``exact`` and of ``search`` with a second each for three seeds.
    """
    from gpuplan.allocation.plan import plan
    from gpuplan.inputs.errors import InputError

    plans = [plan(scenario, "search", budget_ms=1000, seed=seed) for seed in range(3)]
    try:
        proven = plan(scenario, "exact", time_limit_s=time_limit_s)
    except InputError as error:
        source = f"bound by prices alone: {error}"
    else:
        if proven.proof is not None and proven.proof.status == "optimal":
            best = _objective(proven.figures)
            return Yardstick(best, best, True, "proven by exact")
        plans.append(proven)
        source = "not closed by exact"
    bound = min(made.bound for made in plans)
    return Yardstick(bound, max(_objective(made.figures) for made in plans), False, source)


def published_table(
    iterations: int = 2_000, seed: int = 0, time_limit_s: float = PROOF_S, proofs: bool = True
) -> "pd.DataFrame":
    """The seven scenarios beside the published figures, a row each; missing where nothing was published.

    Parameters
    ----------
    iterations, seed
        Of ``search``: the same table again, however fast the machine.
    time_limit_s
        For the proof of each scenario.
    proofs
        Without them the bound is that by prices, and nothing is solved.

    Returns
    -------
    DataFrame
        Utilizations and gains as shares of 1. Our gains are of the objective (value less penalty) over that of
        FIFO, the published one is of value; ``gain_exact`` is that of the best plan
        known, which ``exact`` finds; ``gain_bound`` is what no plan can exceed; ``gap_search`` is the gap
        of ``search`` to ``bound``; ``closed`` says whether a plan attains the bound.
    """
    import pandas as pd

    rows = [_row(row, iterations, seed, time_limit_s if proofs else None) for row in PUBLISHED]
    return pd.DataFrame(rows)


def _row(
    published: Published, iterations: int, seed: int, time_limit_s: float | None
) -> dict[str, str | int | float | bool | None]:
    from gpuplan.allocation.plan import compare
    from gpuplan.loading import load_allocation

    scenario = load_allocation(published.scenario)
    plans = compare(scenario, ("fifo", "aware", "search"), iterations=iterations, seed=seed).plans
    fifo, aware, search = (plan.figures for plan in plans.values())
    base = _objective(fifo)
    known = None if time_limit_s is None else yardstick(scenario, time_limit_s)
    bound = plans["search"].bound if known is None else known.bound
    return {
        "scenario": published.scenario,
        "gpus": scenario.cluster.gpus,
        "jobs": len(scenario.batch),
        "fifo_published": published.fifo_utilization,
        "fifo": fifo["utilization"],
        "utilization_published": published.utilization,
        "utilization_aware": aware["utilization"],
        "utilization_search": search["utilization"],
        "gain_published": published.value_gain,
        "gain_aware": _objective(aware) / base - 1,
        "gain_search": _objective(search) / base - 1,
        "gain_exact": None if known is None else known.best / base - 1,
        "gain_bound": bound / base - 1,
        "bound": bound,
        "gap_search": (bound - _objective(search)) / max(abs(bound), 1e-9),
        "closed": known is not None and known.closed,
    }


def entries() -> tuple[Measure, ...]:
    """All measures of quality, the growth table last."""
    found: list[Measure] = []
    for row in PUBLISHED:
        name = row.scenario
        found += [
            Measure(f"{name}: best plan known, of the bound", partial(_best, row), unit="share"),
            Measure(f"{name}: search 2 ms, mean", partial(_share, name, 2.0, fmean), 0.99, "share"),
            Measure(f"{name}: search 2 ms, worst seed", partial(_share, name, 2.0, min), 0.98, "share"),
            Measure(f"{name}: search 50 ms, mean", partial(_share, name, 50.0, fmean), 0.999, "share"),
            Measure(f"{name}: search, time to 99 %", partial(_time_to, name, 0.99)),
            Measure(f"{name}: search, time to 99.9 %", partial(_time_to, name, 0.999)),
        ]
    for gpus, steps, jobs in GROWTH:
        for budget in (100.0, 1000.0):
            what = f"growth: search {budget:.0f} ms, {gpus} GPUs x {steps} steps, {jobs} jobs"
            found.append(Measure(what, partial(_growth, gpus, steps, jobs, budget), unit="share"))
    return tuple(found)


def _best(row: Published) -> Finding:
    """The best plan known as a share of the bound; beside it FIFO and the gains, ours and published."""
    from gpuplan.allocation.plan import compare

    scenario, known = _ready(row.scenario)
    plans = compare(scenario, ("fifo", "aware", "search")).plans
    for name, plan in plans.items():
        assert plan.check() == [], f"the plan of {name} breaks rules"
        assert _objective(plan.figures) <= known.bound * (1 + 1e-9), f"the plan of {name} exceeds the bound"
    fifo = plans["fifo"].figures
    base = _objective(fifo)
    texts = [f"FIFO {fifo['utilization']:.1%}{_beside(row.fifo_utilization)}"]
    for name in ("aware", "search"):
        figures = plans[name].figures
        used = _beside(row.utilization if name == "aware" else None)
        gain = _beside(row.value_gain if name == "aware" else None)
        value = float(figures["value"] or 0) / float(fifo["value"] or 1) - 1
        texts.append(
            f"{name} {figures['utilization']:.1%}{used}, gain of value {value:.1%}{gain}, "
            f"of the objective {_objective(figures) / base - 1:.1%}"
        )
    texts.append(f"of the objective at most {known.bound / base - 1:.1%}")
    return Finding(known.best / known.bound, "; ".join([*texts, known.source]))


def _beside(published: float | None) -> str:
    return "" if published is None else f" (published {published:.1%})"


def _share(name: str, budget_ms: float, pick: Callable[[list[float]], float]) -> Finding:
    _, known = _ready(name)
    share = pick(list(_objectives(name, budget_ms, SEEDS))) / known.best
    if known.closed:
        return Finding(share, "of the bound")
    return Finding(share, f"of the best known; {share * known.best / known.bound:.2%} of the bound")


def _time_to(name: str, share: float) -> Finding:
    """Seconds to a share, the median over seeds of the smallest budget that reaches it."""
    _, known = _ready(name)
    reached = [float("inf")] * FEW_SEEDS
    for budget in reversed(BUDGETS_MS):
        for seed, objective in enumerate(_objectives(name, float(budget), FEW_SEEDS)):
            if objective >= share * known.best:
                reached[seed] = budget / 1000
    seconds = median(reached)
    if seconds == float("inf"):
        return Finding(None, f"not within {BUDGETS_MS[-1] / 1000:g} s")
    return Finding(seconds, "smallest of the budgets tried, median over seeds")


def _growth(gpus: int, steps: int, jobs: int, budget_ms: float) -> Finding:
    from gpuplan.allocation.plan import plan, warm_up
    from gpuplan.benchmarks.allocation import made_up

    warm_up()
    scenario = made_up(gpus, steps, jobs)
    made = plan(scenario, "search", budget_ms=budget_ms)
    assert made.check() == [], "the plan of search breaks rules"
    return Finding(
        _objective(made.figures) / made.bound, f"of the bound by prices, after {made.seconds:.2g} s"
    )


@lru_cache(maxsize=128)
def _objectives(name: str, budget_ms: float, seeds: int) -> tuple[float, ...]:
    """Objectives of ``search``, one per seed."""
    from gpuplan.allocation.plan import plan

    scenario, _ = _ready(name)
    return tuple(
        _objective(plan(scenario, "search", budget_ms=budget_ms, seed=seed).figures) for seed in range(seeds)
    )


def _ready(name: str) -> tuple[AllocationScenario, Yardstick]:
    """A scenario with its yardstick, every kernel compiled."""
    from gpuplan.allocation.plan import warm_up
    from gpuplan.loading import load_allocation

    warm_up()
    scenario = load_allocation(name)
    return scenario, yardstick(scenario)


def _objective(figures: "Figures") -> float:
    return float(figures["objective"] or 0)
