"""How long a node that serves many models takes: preemption and KV growth, growth over tasks, GPUs and models.

The workload is generated (Poisson arrivals, exponential service, Zipf-popular models, a seed); what came out is
asserted: by the rules of a run, by M/M/4 where that holds, and by running again.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from gpuplan.benchmarks.frame import Finding, Measure, fastest

if TYPE_CHECKING:
    from gpuplan.packing.figures import Figures
    from gpuplan.packing.model import PackingScenario
    from gpuplan.packing.raw import RawPack

#: Tasks, target in seconds, on 4 GPUs with 20 models.
TARGETS = ((1_000_000, 2.0), (10_000, 0.03))

#: Tasks x 10 may cost at most so many times the time.
MOST_GROWTH = 13

#: GPUs and models of the growth table.
NODES = ((4, 20), (16, 100), (64, 500))

#: Mean wait / mean service of M/M/4 at a load of 0.7, by Erlang's C: a = 2.8, C = 0.42866, / (4 - 2.8).
ERLANG_WAIT = 0.35722


def entries() -> tuple[Measure, ...]:
    """All measures of the packing slice, the growth table last."""
    found = [
        Measure(
            f"packing: {count:,} tasks, 4 GPUs, 20 models, preemption, KV growth",
            partial(_of_node, count),
            target,
        )
        for count, target in TARGETS
    ]
    found.append(Measure("packing: 1,000,000 tasks of M/M/4 at load 0.7", _of_erlang))
    found.append(Measure("packing: figures of 100,000 tasks", _of_figures))
    for count in (10_000, 100_000, 1_000_000):
        found.append(Measure(f"growth: packing, {count:,} tasks", partial(_of_growth, "busy", count)))
    for count in (10_000, 100_000, 1_000_000):
        name = f"growth: packing, {count:,} tasks and far more than it can serve"
        found.append(Measure(name, partial(_of_growth, "crowded", count)))
    for gpus, models in NODES:
        name = f"growth: packing, 100,000 tasks, {gpus} GPUs, {models} models"
        found.append(Measure(name, partial(_of_size, gpus, models)))
    return tuple(found)


# ------------------------------------------------------------------ the workloads


def node(count: int, gpus: int = 4, models: int = 20, rate_per_gpu: float = 0.35) -> "PackingScenario":
    """A node with twice as many declared bytes of models as memory at 4 GPUs, whose tasks preempt each other.

    Models declare 6 to 25 GiB and take 10 % more; a task has some thousand tokens of 128 KiB of KV each, and eight of
    them share a GPU by a slowdown of 0.15.
    """
    from gpuplan.packing.model import (
        GIB,
        Contention,
        Draw,
        Generate,
        Gpus,
        PackingScenario,
        Pieces,
        Preemption,
        ServedModel,
    )

    sizes = [6 + 7 * k % 20 for k in range(models)]
    served = tuple(
        ServedModel(
            f"m{k}",
            size * GIB,
            size * GIB * 11 // 10,
            kv_bytes_per_token=131_072,
            popularity=1 / (k + 1),
            max_tasks=8,
        )
        for k, size in enumerate(sizes)
    )
    return PackingScenario(
        f"{gpus} GPUs, {models} models",
        Gpus(gpus, 80 * GIB, max_tasks=8),
        served,
        preemption=Preemption("threshold"),
        contention=Contention("slowdown"),
        policy=Pieces(order="backfill"),
        generate=Generate(
            rate_per_gpu * gpus,
            count,
            Draw(8.0),
            prediction_cv=0.3,
            tokens_in=Draw(2000.0),
            tokens_out=Draw(500.0),
            high_priority_share=0.2,
        ),
    )


def one_model(count: int) -> "PackingScenario":
    """Four servers: a model that is on four GPUs from the start, one task each; load 0.7."""
    from gpuplan.packing.model import GIB, Draw, Generate, Gpus, PackingScenario, ServedModel

    return PackingScenario(
        "M/M/4",
        Gpus(4, 80 * GIB, max_tasks=1),
        (ServedModel("model", 20 * GIB, 20 * GIB, resident=(0, 1, 2, 3)),),
        generate=Generate(0.7 * 4 / 8, count, Draw(8.0)),
    )


# -------------------------------------------------------------------- the measures


def engine_run(scenario: "PackingScenario") -> Callable[[], "RawPack"]:
    """The engine on a scenario whose tasks are there."""
    from gpuplan.packing.engine import run
    from gpuplan.packing.problem import compile_problem

    problem = compile_problem(scenario)
    return lambda: run(problem, scenario.policy)


def _assert_served(scenario: "PackingScenario", raw: "RawPack") -> None:
    from gpuplan.packing.raw import DONE, FAILED, PREEMPTED, RUN, WENT_ON

    assert scenario.generate is not None
    done = int((raw.state == DONE).sum())
    assert done + int((raw.state == FAILED).sum()) == scenario.generate.count, "tasks are missing"
    assert done > 0.5 * scenario.generate.count, "most tasks fail"
    ends = (raw.stages.kind == RUN) & (raw.stages.outcome == WENT_ON)
    assert int(ends.sum()) == done, "not every task that is done ended once"
    assert (raw.stages.outcome == PREEMPTED).any(), "nothing is preempted"


def _of_node(count: int) -> Finding:
    """Seconds of the engine, with its tables; a run of 10,000 tasks keeps all rules and repeats."""
    from gpuplan.packing.raw import PREEMPTED
    from gpuplan.packing.run import pack

    scenario = node(count)
    run = engine_run(scenario)
    raw = run()
    _assert_served(scenario, raw)
    small = pack(node(min(count, 10_000)))
    assert small.check() == [], "the run breaks rules"
    assert small.fingerprint == pack(small.scenario).fingerprint, "not the same run again"
    seconds = fastest(run, at_least=3)
    preempted = int((raw.stages.outcome == PREEMPTED).sum())
    note = f"{preempted:,} preemptions, {len(raw.copies):,} loads, {len(raw.breaches):,} out of memory"
    return Finding(seconds, f"{note}, {_held(run) / count:,.0f} bytes per task")


def _held(run: Callable[[], object]) -> int:
    """Most bytes that the engine holds at once."""
    import tracemalloc

    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _of_erlang() -> Finding:
    """Seconds of the engine; the mean wait is that of Erlang's formula."""
    from gpuplan.packing.problem import compile_problem
    from gpuplan.packing.raw import RUN

    scenario = one_model(1_000_000)
    run = engine_run(scenario)
    raw = run()
    tasks = compile_problem(scenario).tasks
    runs = raw.stages.kind == RUN
    wait = (raw.stages.start_us[runs] - tasks.arrival_us[raw.stages.task[runs]]).mean()
    found = float(wait / tasks.service_us.mean())
    assert abs(found / ERLANG_WAIT - 1) < 0.03, f"wait / service {found:.4f}, not {ERLANG_WAIT}"
    return Finding(fastest(run, at_least=3), f"wait / service {found:.4f}, Erlang {ERLANG_WAIT}")


def _of_figures() -> float:
    """Seconds of all figures of a run that is there."""
    from gpuplan.packing.run import pack

    def figures() -> "Figures":
        return pack(scenario).figures

    scenario = node(100_000)
    assert figures() == figures(), "not the same figures again"
    engine = fastest(engine_run(scenario), at_least=3)
    return fastest(figures, at_least=3) - engine


@lru_cache(maxsize=8)
def _growth_seconds(kind: str, count: int) -> float:
    scenario = node(count, rate_per_gpu=0.35 if kind == "busy" else 2.0)
    run = engine_run(scenario)
    _assert_served(scenario, run())
    return fastest(run, at_least=3)


def _of_growth(kind: str, count: int) -> Finding:
    """Seconds of the engine; the note compares them with those of a tenth of the tasks."""
    seconds = _growth_seconds(kind, count)
    if count == 10_000:
        return Finding(seconds, f"tasks x 10 may cost time x {MOST_GROWTH}")
    times = seconds / _growth_seconds(kind, count // 10)
    inside = "inside" if times <= MOST_GROWTH else "MISSED"
    return Finding(seconds, f"x {times:.1f} for tasks x 10 ({inside}: at most x {MOST_GROWTH})")


def _of_size(gpus: int, models: int) -> Finding:
    """Seconds of the engine on a node of that size at the same load per GPU."""
    scenario = node(100_000, gpus, models)
    run = engine_run(scenario)
    raw = run()
    _assert_served(scenario, raw)
    return Finding(fastest(run, at_least=3), f"{len(raw.copies):,} loads")
