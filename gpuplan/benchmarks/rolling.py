"""How long rolling runs take: many plans after another, each on what is known by then."""

from functools import partial

from gpuplan.benchmarks.allocation import made_up
from gpuplan.benchmarks.frame import Measure, fastest

#: Policies of the table, with the aim for the first.
POLICIES = (("aware", 2.0), ("fifo", None))

DAYS, JOBS_A_DAY = 28, 71


def entries() -> tuple[Measure, ...]:
    """All measures of rolling runs."""
    what = f"{DAYS} days, 64 GPUs, 2,000 jobs, hourly"
    return tuple(
        Measure(f"rolling run: {name}, {what}", partial(_of_run, name), target) for name, target in POLICIES
    )


def _of_run(policy: str) -> float:
    """Seconds of a run with its figures, the answer checked."""
    from gpuplan.allocation.days import Errors
    from gpuplan.allocation.plan import warm_up
    from gpuplan.allocation.rolling import roll

    warm_up()
    scenario = made_up(64, 24, JOBS_A_DAY)
    errors = Errors(0.0, 0.2, 0.0, 0.4, 0.5)
    run = roll(scenario, policy, days=DAYS, errors=errors, seed=1)
    assert len(run.days.span.batch) == DAYS * JOBS_A_DAY
    assert len(run.promises) == DAYS * 24
    assert run.check() == [], f"the run of {policy} breaks rules"
    again = roll(scenario, policy, days=DAYS, errors=errors, seed=1)
    assert again.fingerprint == run.fingerprint, "not the same run again"
    assert float(run.figures["objective"] or 0) <= run.hindsight_bound, "the run exceeds its bound"
    return fastest(lambda: roll(scenario, policy, days=DAYS, errors=errors, seed=1).figures)
