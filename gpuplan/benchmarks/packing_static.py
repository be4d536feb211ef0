"""How long placement without time takes: pods with shares of GPUs on a made-up cluster of the size of a real one."""

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.benchmarks.frame import Finding, Measure, fastest

if TYPE_CHECKING:
    from gpuplan.packing.pods import Nodes, Pods

#: Nodes, target in seconds of one draw of arrivals under ``fgd``; the growth table has none.
SIZES: tuple[tuple[int, float | None], ...] = ((1200, 0.5), (300, None), (4800, None))

#: Seeds, target in seconds of all four policies with the table.
STUDY = (5, 6.0)


def entries() -> tuple[Measure, ...]:
    """All measures of the static study."""
    found = [
        Measure(f"placement: fgd, {n:,} nodes, until the GPUs are full", partial(_of_placing, n), target)
        for n, target in SIZES
    ]
    seeds, target = STUDY
    found.append(Measure(f"placement: study, {seeds} seeds, 4 policies, 1,200 nodes", _of_study, target))
    return tuple(found)


@lru_cache(maxsize=4)
def made_up(n: int) -> "tuple[Nodes, Pods]":
    """Nodes of 2, 4 and 8 GPUs of three types, and 4,000 pods: an eighth without a GPU, a third with part of one."""
    from gpuplan.packing.pods import nodes, pods

    rng = np.random.default_rng(7)
    gpus = rng.choice([2, 4, 8], n, p=[0.4, 0.1, 0.5])
    cores = np.where(gpus == 8, 96, 64)
    types = np.where(gpus == 8, rng.choice(["A", "B"], n, p=[0.9, 0.1]), "C")
    where = nodes([f"node-{k}" for k in range(n)], 1000 * cores, 4096 * cores, gpus, types.tolist())
    count = 4000
    asked = rng.choice([0, 1, 2, 4, 8], count, p=[0.125, 0.856, 0.006, 0.004, 0.009])
    part = (asked == 1) & (rng.random(count) < 0.4)
    milli = np.where(part, rng.choice([200, 250, 460, 500, 810], count), np.where(asked > 0, 1000, 0))
    cpu = 1000 * np.maximum(1, rng.choice([2, 4, 6, 8, 12], count)) * np.maximum(asked, 1)
    names = [f"pod-{k}" for k in range(count)]
    return where, pods(names, cpu, 2 * cpu, asked, milli)


def _of_placing(n: int) -> Finding:
    """Seconds of one placement, the answer checked."""
    from gpuplan.packing.fragmentation import place

    where, asks = made_up(n)
    run = place(where, asks, "fgd", seed=1)
    assert run.check() == [], "the placement breaks rules"
    assert place(where, asks, "fgd", seed=1).node.tolist() == run.node.tolist(), "not the same again"
    seconds = fastest(lambda: place(where, asks, "fgd", seed=1), at_least=2)
    return Finding(
        seconds, f"{len(run.arrivals):,} pods, {run.allocated():.1f} % of {where.gpu_milli // 1000:,} GPUs"
    )


def _of_study() -> Finding:
    """Seconds of the study; gradient descent must give away more than a random choice."""
    from gpuplan.packing.fragmentation_study import study

    where, asks = made_up(1200)
    shares = study(where, asks, seeds=STUDY[0]).table().set_index("policy")["allocated_percent"]
    assert shares["fgd"] > shares["random"], "fgd gives away less than a random choice"
    seconds = fastest(lambda: study(where, asks, seeds=STUDY[0]).table(), budget_s=0, at_least=1)
    return Finding(seconds, ", ".join(f"{policy} {share:.1f} %" for policy, share in shares.items()))
