"""Hypothesis strategies for tiny crowded nodes: equal instants, zero lengths, memory that runs out and all.

Memory is some tens of bytes, a fast link moves a byte per microsecond, work takes some tens of microseconds.
"""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from gpuplan.packing.model import (
    NEVER,
    Admission,
    Contention,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.tasks import Tasks, tasks

PLACEMENTS = (
    "round-robin",
    "round-robin-skip",
    "first-fit",
    "best-fit",
    "worst-fit",
    "predicted-fit",
    "fgd",
)
ORDERS = ("fifo", "backfill", "shortest", "by-model")
EVICTIONS = ("lru", "lfu", "cost", "keep-alive")

#: Few different instants, so that arrivals, ends and expiries coincide.
TIMES = st.one_of(st.sampled_from([0, 5, 10, 20, 20, 40, 60]), st.integers(0, 100))
LENGTHS = st.one_of(st.sampled_from([0, 1, 5, 10, 20, 40, 80]), st.integers(0, 100))
WEIGHTS = st.one_of(st.sampled_from([0, 10, 20, 30, 40]), st.integers(0, 50))
FAST = [1_000_000, 1_000_000, 2_000_000, 700_000, 333_333, 10**12]
RATES = st.sampled_from(FAST * 3 + [3])
BOUND = st.sampled_from([None, 1, 2, 3])

NODES = st.builds(
    Gpus,
    count=st.integers(1, 4),
    memory_bytes=st.sampled_from([60, 80, 100, 120]),
    host_bytes_per_s=RATES,
    disk_bytes_per_s=RATES,
    release_us=st.sampled_from([0, 0, 1, 5, 10]),
    max_tasks=BOUND,
    host_cache=st.booleans(),
)

ADMISSIONS = st.builds(
    Admission,
    margin=st.sampled_from([0, 0, 0, 200_000, 333_333, 1_000_000]),
    context_bytes=st.sampled_from([0, 0, 5]),
    count_context=st.booleans(),
    on=st.sampled_from(["declared", "declared", "free"]),
)

PREEMPTIONS = st.builds(
    Preemption,
    when=st.sampled_from(["never", "always", "always", "threshold"]),
    threshold_us=st.sampled_from([0, 5, 10]),
    save_us=st.sampled_from([0, 1, 5, 10]),
    restore_us=st.sampled_from([0, 1, 5, 10]),
)

CONTENTIONS = st.builds(
    Contention,
    model=st.sampled_from(["none", "sharing", "slowdown"]),
    beta=st.sampled_from([0.0, 0.15, 1.0, 3.0]),
)

RETRIES = st.builds(Retry, most=st.integers(0, 2), after_us=st.sampled_from([0, 1, 5, 20]))

PIECES = st.builds(
    Pieces,
    placement=st.sampled_from(PLACEMENTS),
    order=st.sampled_from(ORDERS),
    eviction=st.sampled_from(EVICTIONS),
    depth=st.sampled_from([0, 1, 2, 16]),
    keep_alive_us=st.sampled_from([None, 0, 5, 10, 30]),
)

MODELS = st.builds(
    ServedModel,
    name=st.just("m"),
    declared_bytes=WEIGHTS,
    actual_bytes=WEIGHTS,
    context_bytes=st.sampled_from([None, None, 0, 3]),
    workspace_bytes=st.sampled_from([0, 0, 4]),
    kv_bytes_per_token=st.sampled_from([0, 0, 1, 2]),
    popularity=st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 3.0]),
    pinned=st.sampled_from([False, False, False, True]),
    resident=st.sampled_from([(), (), (), (0,), (1,), (2, 0), (3, 1), (1, 0, 2, 3)]),
    max_tasks=BOUND,
    gpus=st.sampled_from([1, 1, 1, 2, 2, 3, 4]),
)


@st.composite
def model_lists(
    draw: st.DrawFn, gpus: Gpus, admission: Admission, most: int, widest: int
) -> tuple[ServedModel, ...]:
    """Models, most of which declare about what they take; what is resident fits, over as many GPUs as it should."""
    found: list[ServedModel] = []
    taken = [0] * gpus.count
    for k, model in enumerate(draw(st.lists(MODELS, min_size=1, max_size=most))):
        wide = min(model.gpus, gpus.count, widest)
        if wide > 1 and draw(st.integers(0, 3)):
            # as large on each of its GPUs as others are; the odd byte is there on all of them
            model = replace(model, actual_bytes=model.actual_bytes * wide - draw(st.sampled_from([0, 0, 1])))
        model = replace(model, actual_bytes=max(0, model.actual_bytes), gpus=wide)
        if draw(st.integers(0, 3)):
            off = draw(st.sampled_from([-10, 0, 0, 0, 5]))
            model = replace(model, declared_bytes=max(0, model.actual_bytes + off))
        context = admission.context_bytes if model.context_bytes is None else model.context_bytes
        takes = -(-model.actual_bytes // wide) + context + model.workspace_bytes
        room = [g for g in model.resident if g < gpus.count and taken[g] + takes <= gpus.memory_bytes]
        resident = tuple(room[: len(room) // wide * wide])
        for g in resident:
            taken[g] += takes
        asleep = wide * min(takes, draw(st.sampled_from([0, 0, 1, takes // 2])))
        found.append(replace(model, name=f"m{k}", resident=resident, asleep_bytes=asleep))
    return tuple(found)


@st.composite
def task_tables(draw: st.DrawFn, models: int, most: int) -> Tasks:
    """Up to `most` tasks; predictions are right, near, or far off."""
    count = draw(st.integers(1, most))

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=count, max_size=count))

    arrival, service = column(TIMES), column(LENGTHS)
    off = column(st.sampled_from([0, 0, 0, -5, 3, 30]))
    patience = column(st.sampled_from([NEVER] * 8 + [0, 5, 20, 60]))
    return tasks(
        arrival,
        column(st.integers(0, models - 1)),
        draw(st.lists(st.sampled_from("ab"), min_size=count, max_size=count)),
        column(st.sampled_from([0, 0, 1, 2])),
        service,
        np.array([max(0, s + o) for s, o in zip(service, off, strict=True)], np.int64),
        column(st.sampled_from([0, 0, 5, 10, 15])),
        column(st.sampled_from([0, 0, 7, 20, 30])),
        [min(NEVER, a + p) for a, p in zip(arrival, patience, strict=True)],
    )


@st.composite
def scenarios(
    draw: st.DrawFn, most_models: int = 4, most_tasks: int = 15, widest: int = 4
) -> PackingScenario:
    """A tiny node, some of whose models are spread over GPUs; some runs stop at a horizon."""
    gpus, admission = draw(NODES), draw(ADMISSIONS)
    models = draw(model_lists(gpus, admission, most_models, widest))
    return PackingScenario(
        name="tiny",
        gpus=gpus,
        models=models,
        admission=admission,
        preemption=draw(PREEMPTIONS),
        contention=draw(CONTENTIONS),
        retry=draw(RETRIES),
        tasks=draw(task_tables(len(models), most_tasks)),
        until_us=draw(st.sampled_from([None] * 7 + [1, 60, 150])),
    )
