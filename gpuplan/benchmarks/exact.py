"""How long proofs take: every benchmark scenario and shipped day, then the gap over time on larger days."""

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from gpuplan.benchmarks.allocation import made_up
from gpuplan.benchmarks.frame import Finding, Measure
from gpuplan.benchmarks.published import PUBLISHED

if TYPE_CHECKING:
    from gpuplan.allocation.model import AllocationScenario
    from gpuplan.allocation.plan import Plan

#: Seconds for a proof, and at which of them the gap is told.
LIMIT_S = 30.0
MOMENTS_S = (1.0, 2.0, 5.0, 10.0, 30.0)

#: Shipped days besides the benchmark scenarios.
DAYS = ("training-rush", "two-apps", "mixed-day", "elastic-training")

#: Larger days, the first with the aim of at most 0.1 % in `LIMIT_S`.
LARGE = ("made up: 64 GPUs x 48 steps, 60 jobs", "big-day")

#: Share of the bound that is aimed at on the first of them.
LARGE_TARGET = 0.999


def entries() -> tuple[Measure, ...]:
    """All measures of proofs, the gap over time last."""
    names = [row.scenario for row in PUBLISHED] + list(DAYS)
    found = [
        Measure(f"exact: {name}, proven optimal", partial(_time_to_proof, name), LIMIT_S) for name in names
    ]
    for name in LARGE:
        for moment in MOMENTS_S:
            target = LARGE_TARGET if name == LARGE[0] and moment == LIMIT_S else None
            what = f"exact: {name}, after {moment:g} s"
            found.append(Measure(what, partial(_share_at, name, moment), target, "share"))
    return tuple(found)


def _time_to_proof(name: str) -> Finding:
    """Seconds to the proof of a scenario; not reached where the time limit came first."""
    made = _proven(name)
    assert made.proof is not None
    if made.proof.status != "optimal":
        return Finding(None, f"not within {LIMIT_S:g} s: a gap of {made.gap:.2%} is left")
    assert made.gap == 0, "an optimum has a gap"
    return Finding(made.seconds, f"objective {made.proof.bound:,.4f}")


def _share_at(name: str, moment: float) -> Finding:
    """What the best plan was, of the bound, when so much time had passed."""
    made = _proven(name)
    assert made.proof is not None
    known = [progress for progress in made.proof.history if progress.seconds <= moment]
    bounded = [progress for progress in known if progress.bound is not None]
    if not bounded:
        return Finding(None, "no bound yet")
    last = bounded[-1]
    assert last.bound is not None
    return Finding(last.objective / last.bound, f"best {last.objective:,.2f}, bound {last.bound:,.2f}")


@lru_cache(maxsize=16)
def _proven(name: str) -> "Plan":
    """The plan of ``exact``, its answer checked."""
    from gpuplan.allocation.plan import plan, warm_up

    warm_up()
    scenario = _scenario(name)
    quick = plan(scenario, "aware")
    made = plan(scenario, "exact", time_limit_s=LIMIT_S)
    assert made.check() == [], "the plan of exact breaks rules"
    assert float(made.figures["objective"] or 0) >= float(quick.figures["objective"] or 0), "aware is better"
    assert float(made.figures["objective"] or 0) <= made.bound, "the plan exceeds its bound"
    return made


def _scenario(name: str) -> "AllocationScenario":
    from gpuplan.loading import load_allocation

    return made_up(64, 48, 60) if name == LARGE[0] else load_allocation(name)
