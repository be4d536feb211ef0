"""How long weeks of a shared cluster take: reading a log, the queues' kernels, budgets with preemption, growth.

The workload log is that of the published answers: `log_text` says what is in it, and its mean waits are asserted.
"""

import hashlib
import math
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.benchmarks.frame import Finding, Measure, fastest

if TYPE_CHECKING:
    from gpuplan.fairshare.model import FairshareScenario
    from gpuplan.fairshare.problem import Problem

#: GPUs of the log's pool.
GPUS = 512

#: GPUs of a job, and their shares in per cent.
SIZES, SHARES = (1, 2, 4, 8, 16, 32, 64), (50, 15, 12, 13, 6, 3, 1)

#: Jobs of a log: days, and mean waits of FIFO and EASY in seconds (the first two are published, three programs agree).
ANSWERS = {
    10_000: (28, "13238.66", "4476.05"),
    100_000: (280, "9520.01", "3289.43"),
}

#: Policy, jobs, target of the kernel in seconds.
KERNELS = (
    ("fifo", 100_000, 0.01),
    ("easy", 100_000, 0.04),
    ("fifo", 1_300_000, 0.3),
    ("easy", 1_300_000, 2.0),
)

#: MD5 of the log of 100,000 jobs, with which other programs were measured.
MD5 = "cca95791edc46e5b2952507b278eb7b2"

#: Jobs x 10 may cost at most so many times the time.
MOST_GROWTH = 13

#: GPUs, load, target in seconds of 30 days of fifteen teams.
BUDGETS = ((512, 1.1, 0.1), (1024, 2.5, 1.5))


def entries() -> tuple[Measure, ...]:
    """All measures of the fair-share slice, the growth table last."""
    found = [
        Measure(f"fair share: kernel of {policy}, {jobs:,} jobs", partial(_of_kernel, policy, jobs), target)
        for policy, jobs, target in KERNELS
    ]
    found.append(Measure("fair share: read SWF, 1,000,000 lines", _of_reading, 2.0))
    for gpus, load, target in BUDGETS:
        name = f"fair share: budgets, 30 days, 15 teams, {gpus:,} GPUs, load {load}"
        found.append(Measure(name, partial(_of_budgets, gpus, load), target))
    found.append(Measure("fair share: figures, 30 days, 15 teams, 512 GPUs, load 1.1", _of_figures))
    found.append(Measure("fair share: charts of 100,000 jobs drawn", _of_charts, 1.0))
    for policy in ("fifo", "easy"):
        for jobs in (10_000, 100_000, 1_000_000):
            found.append(
                Measure(f"growth: kernel of {policy}, {jobs:,} jobs", partial(_of_growth, policy, jobs))
            )
    return tuple(found)


# ------------------------------------------------------------------- the log


@lru_cache(maxsize=1)
def log_text(jobs: int, days: float, gpus: int = GPUS, load: float = 0.9, seed: int = 1) -> str:
    """A workload log in the Standard Workload Format, the same text for the same numbers.

    Sizes are powers of two (`SHARES` per cent each), run times log-normal (median 30 min, sigma 1.4, between a minute
    and eight hours before they are scaled to the load), arrivals Poisson, estimates one to three times the run time.
    """
    draw = random.Random(seed)
    span = days * 86_400
    sizes = draw.choices(SIZES, SHARES, k=jobs)
    drawn = [min(28_800.0, max(60.0, draw.lognormvariate(math.log(1800), 1.4))) for _ in range(jobs)]
    scale = load * gpus * span / sum(g * x for g, x in zip(sizes, drawn, strict=True))
    runs = [max(1, int(x * scale)) for x in drawn]
    moment, arrivals = 0.0, []
    for _ in range(jobs):
        moment += draw.expovariate(jobs / span)
        arrivals.append(int(moment))
    lines = [f"; Version: 2.2\n; MaxProcs: {gpus}\n; UnixStartTime: 1700000000\n; MaxJobs: {jobs}\n"]
    for k, (start, run, size) in enumerate(zip(arrivals, runs, sizes, strict=True)):
        estimate, user = int(run * draw.uniform(1, 3)), draw.randrange(20)
        lines.append(
            f"{k + 1} {start} -1 {run} {size} -1 -1 {size} {estimate} -1 1 {user + 1} {user // 5 + 1} -1 1 -1 -1 -1\n"
        )
    return "".join(lines)


@contextmanager
def _log_file(jobs: int, days: float) -> Iterator[Path]:
    text = log_text(jobs, days)
    if jobs == 100_000:
        assert hashlib.md5(text.encode()).hexdigest() == MD5, "not the log with which others were measured"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made-up-{jobs}.swf"
        path.write_text(text, encoding="ascii", newline="\n")
        yield path


@lru_cache(maxsize=1)
def _log_problem(jobs: int) -> "Problem":
    """The log of so many jobs as a problem, at the load of the published ones."""
    from gpuplan.fairshare.problem import compile_problem
    from gpuplan.loading import load_swf

    with _log_file(jobs, 0.0028 * jobs) as path:
        return compile_problem(load_swf(path, GPUS))


# --------------------------------------------------------------- the kernels


@dataclass(slots=True)
class Call:
    """The arrays of one call of a kernel; a kernel overwrites them, so every call has copies."""

    kernel: Callable[..., Any]
    arrays: tuple[Any, ...]

    def copies(self) -> tuple[Any, ...]:
        """The arguments of a fresh call."""
        return tuple(a.copy() if hasattr(a, "copy") else a for a in self.arrays)

    @property
    def bytes(self) -> int:
        """Size of all arrays."""
        return sum(getattr(a, "nbytes", 0) for a in self.arrays)


def calls_of(problem: "Problem", policy: str) -> list[Call]:
    """The calls of the kernel of one flat pool, with the arrays as they were beforehand."""
    from gpuplan.fairshare import flat_kernels
    from gpuplan.fairshare.run import policy_named

    found: list[Call] = []
    name = f"run_{policy}"
    kernel = getattr(flat_kernels, name)

    def noted(*arrays: Any) -> Any:
        found.append(Call(kernel, tuple(a.copy() if hasattr(a, "copy") else a for a in arrays)))
        return kernel(*arrays)

    setattr(flat_kernels, name, noted)
    try:
        policy_named(policy).run(problem)
    finally:
        setattr(flat_kernels, name, kernel)
    return found


def kernel_seconds(calls: list[Call], rounds: int = 5) -> float:
    """Seconds of the calls together, the fastest of some rounds (copies are made before the clock starts)."""
    import time

    best = float("inf")
    for _ in range(rounds):
        total = 0.0
        for call in calls:
            arrays = call.copies()
            before = time.perf_counter()
            call.kernel(*arrays)
            total += time.perf_counter() - before
        best = min(best, total)
    return best


def _of_kernel(policy: str, jobs: int) -> Finding:
    """Seconds of the kernel alone, warm; the answer of the whole run is asserted."""
    from gpuplan.fairshare.run import simulate

    problem = _log_problem(jobs)
    simulate(problem.scenario, policy)  # what is measured is compiled
    run = simulate(problem.scenario, policy)
    _assert_answer(policy, jobs, run.figures)
    calls = calls_of(problem, policy)
    memory = max(call.bytes for call in calls) / jobs
    return Finding(kernel_seconds(calls), f"{memory:.0f} bytes per job; with its tables {run.seconds:.2g} s")


def _assert_answer(policy: str, jobs: int, found: dict[str, float | int | None]) -> None:
    assert found["jobs_finished"] == jobs, "not all jobs finished"
    if jobs in ANSWERS:
        right = ANSWERS[jobs][1 if policy == "fifo" else 2]
        assert f"{found['mean_wait_s']:.2f}" == right, f"mean wait {found['mean_wait_s']} s, not {right} s"
    else:
        assert float(found["mean_wait_s"] or 0) > 0, "nobody waits at a load of 0.9"
        assert 0.85 < float(found["occupancy"] or 0) < 0.95, "not the load that was asked for"


@lru_cache(maxsize=8)
def _growth_seconds(policy: str, jobs: int) -> float:
    problem = _log_problem(jobs)
    calls = calls_of(problem, policy)
    return kernel_seconds(calls)


def _of_growth(policy: str, jobs: int) -> Finding:
    """Seconds of the kernel; the note compares them with those of a tenth of the jobs."""
    seconds = _growth_seconds(policy, jobs)
    if jobs == 10_000:
        return Finding(seconds, f"jobs x 10 may cost time x {MOST_GROWTH}")
    times = seconds / _growth_seconds(policy, jobs // 10)
    inside = "inside" if times <= MOST_GROWTH else "MISSED"
    return Finding(seconds, f"x {times:.1f} for jobs x 10 ({inside}: at most x {MOST_GROWTH})")


def _of_reading() -> float:
    """Seconds of reading a log into a scenario; every line has to be used."""
    from gpuplan.traces.swf import read_swf

    jobs = 1_000_000
    with _log_file(jobs, 0.0028 * jobs) as path:
        log = read_swf(path)
        assert (log.account.read, log.account.used) == (jobs, jobs), "not every line is a job"
        assert log.submit_s[-1] <= 1.05 * 0.0028 * jobs * 86_400
        return fastest(lambda: read_swf(path), at_least=2)


# ------------------------------------------------------------------- budgets


def fifteen_teams(gpus: int, load: float) -> "FairshareScenario":
    """The shipped scenario of fifteen teams, 30 days, on servers of eight GPUs."""
    from gpuplan.loading import load_fairshare

    shipped = load_fairshare("fifteen-teams")
    return shipped.replace({"cluster.nodes": gpus // 8, "workload.generate.oversubscription": load})


def _of_budgets(gpus: int, load: float) -> Finding:
    """Seconds of the policy alone; the run is checked and repeats."""
    from gpuplan.fairshare.problem import compile_problem
    from gpuplan.fairshare.run import policy_named, simulate

    scenario = fifteen_teams(gpus, load)
    run = simulate(scenario)
    assert run.check() == [], "the run breaks rules"
    assert run.fingerprint == simulate(scenario).fingerprint, "not the same run again"
    figures = run.figures
    lost, delivered = float(figures["lost_share"] or 0), float(figures["delivered_share"] or 0)
    assert figures["preemptions"], "nothing is preempted"
    problem, policy = compile_problem(scenario), policy_named("fair-share")
    seconds = fastest(lambda: policy.run(problem), at_least=3)
    memory = _held(problem) / len(problem.jobs)
    note = f"{len(problem.jobs):,} jobs, {figures['preemptions']:,} preemptions, delivered {delivered:.1%}, "
    return Finding(seconds, f"{note}lost {lost:.1%}, {memory:,.0f} bytes per job")


def _held(problem: "Problem") -> int:
    """Most bytes that the policy holds at once."""
    import tracemalloc

    from gpuplan.fairshare.run import policy_named

    tracemalloc.start()
    try:
        policy_named("fair-share").run(problem)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _of_figures() -> float:
    """Seconds of all figures of a run that is there."""
    from gpuplan.fairshare.figures import figures
    from gpuplan.fairshare.run import simulate

    run = simulate(fifteen_teams(512, 1.1))
    assert figures(run.problem, run.raw) == run.figures, "not the same figures again"
    return fastest(lambda: figures(run.problem, run.raw), at_least=3)


def _of_charts() -> Finding:
    """Seconds of the Gantt chart and the one of allocation of a run of 100,000 jobs, as the text that a page gets."""
    import json

    from gpuplan.fairshare import charts
    from gpuplan.fairshare.run import simulate

    run = simulate(_log_problem(100_000).scenario, "easy")

    def drawn() -> list[int]:
        return [
            len(json.dumps(draw(run).to_dict())) for draw in (charts.gantt_chart, charts.allocation_chart)
        ]

    sizes = drawn()
    assert max(sizes) < 1_000_000, f"a chart has {max(sizes):,} bytes"
    seconds = fastest(drawn, at_least=3)
    return Finding(seconds, " and ".join(f"{size / 1000:,.0f} kB" for size in sizes))
