"""Hypothesis strategies for valid scenarios, over the whole schema."""

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from gpuplan.allocation.model import (
    BATCH_KINDS,
    AllocationScenario,
    BatchJob,
    DemandShape,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.cluster import Cluster

#: Texts that programs like to take for something else, and texts that pages like to execute.
HOSTILE_NAMES = (
    "no",
    "null",
    "~",
    "0123",
    "3.10",
    "1:30",
    "1e3",
    "=1+1",
    "../up",
    "- dash",
    "a: b",
    "# not a comment",
    "'",
    '"',
    "{x}",
    "<b>bold</b>",
    "<script>alert(1)</script>",
    "😀 run",
    "\u202eevil",
    "שלום",
    "a\u2028b",
    " lead and trail ",
    "%s",
    "\\",
    "real-time",
)

#: Every character that a name may hold: no control characters, no halves of surrogate pairs.
LETTERS = st.characters(exclude_categories=["Cs", "Cc"])

ABOUTS = ("One day.", "two\nlines\n", " odd: 'text' ", "word " * 60, "\ttab")


_NAMES = st.one_of(
    st.from_regex(r"[a-z]{2,8}-[0-9]{1,2}", fullmatch=True),
    st.sampled_from(HOSTILE_NAMES),
    st.text(LETTERS, min_size=1, max_size=12).filter(lambda name: name.strip() != ""),
)


# Strategies are made once: to make and check one takes as long as to draw from it.
@cache
def names(count: int) -> st.SearchStrategy[list[str]]:
    """Lists of `count` different job names, hostile ones among them."""
    return st.lists(_NAMES, min_size=count, max_size=count, unique=True)


@cache
def whole(low: int, high: int) -> st.SearchStrategy[int]:
    """Whole numbers, both ends included."""
    return st.integers(low, high)


@cache
def maybe(low: int, high: int) -> st.SearchStrategy[int | None]:
    """A whole number, or none."""
    return st.one_of(st.none(), st.integers(low, high))


priorities = st.one_of(
    st.integers(1, 10).map(float),
    st.integers(1, 9999).map(lambda thousandths: thousandths / 1000),
    st.just(1_000_000.0),
)

#: Hours as people write them: whole, quarters, thirds and odd ones.
hours = st.one_of(
    st.integers(1, 12).map(float),
    st.integers(1, 40).map(lambda quarters: quarters / 4),
    st.integers(1, 36).map(lambda thirds: thirds / 3),
    st.floats(0.01, 30, allow_nan=False),
)

_EARLIEST = st.one_of(st.just(0.0), st.just(0.0), hours)
_DEADLINES = st.one_of(st.none(), hours)
_KINDS = st.sampled_from(BATCH_KINDS)
_SCALINGS = st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.01]) | st.integers(1, 99).map(lambda n: n / 100)
_PRICES = st.sampled_from([None, None, 0.0, 2.5, 1.99])
_STEPS_S = st.sampled_from([3600, 3600, 1800, 600, 1200, 5400, 7200, 77])
_STARTS = st.sampled_from([None, None, "2026-03-02", "2026-03-02T08:00"])
_ABOUTS = st.one_of(st.just(""), st.sampled_from(ABOUTS), st.text(LETTERS, max_size=30))


@st.composite
def clusters(draw: st.DrawFn, max_gpus: int = 96) -> Cluster:
    """Clusters of 1 to `max_gpus` GPUs, words of 64 bits crossed, at least one GPU available."""
    edges = [size for size in (1, 2, 8, 16, 63, 64, 65, 96) if size <= max_gpus]
    gpus = draw(
        st.one_of(st.integers(1, min(16, max_gpus)), st.integers(1, max_gpus), st.sampled_from(edges))
    )
    node = draw(st.one_of(st.none(), st.sampled_from([1, 2, 3, 4, 8]), st.integers(1, gpus + 4)))
    away = draw(st.one_of(st.just(set()), st.sets(st.integers(0, gpus - 1), max_size=min(6, gpus - 1))))
    price = draw(_PRICES)
    return Cluster(gpus, node, tuple(sorted(away)), price)


@st.composite
def horizons(draw: st.DrawFn, max_steps: int = 30) -> Horizon:
    """Horizons of 1 to `max_steps` steps of whole seconds."""
    steps = draw(whole(1, max_steps))
    step_s = draw(_STEPS_S)
    return Horizon(steps, step_s, draw(_STARTS))


objectives = st.builds(
    Objective,
    st.one_of(
        st.sampled_from([0.0, 5.0, 8.0, 10.0, 1000.0]),
        st.integers(0, 20_000_000).map(lambda millionths: millionths / 1_000_000),
    ),
    st.one_of(st.none(), st.sampled_from([24.0, 6.0]), st.floats(0.5, 200, allow_nan=False)),
)


@st.composite
def scenarios(
    draw: st.DrawFn,
    max_gpus: int = 96,
    max_steps: int = 30,
    max_jobs: int = 12,
    max_apps: int = 3,
    ranges: bool = True,
) -> AllocationScenario:
    """Valid allocation scenarios over the whole schema (running work, held GPUs, minimums, budgets...)."""
    cluster = draw(clusters(max_gpus))
    horizon = draw(horizons(max_steps))
    n_jobs, n_apps = draw(whole(0, max_jobs)), draw(whole(0, max_apps))
    texts = draw(names(n_jobs + n_apps + 1))
    free = [gpu for gpu in range(cluster.gpus) if gpu not in cluster.unavailable]
    jobs = [draw(_jobs(name, cluster, free)) for name in texts[:n_jobs]]
    if ranges:
        jobs = [draw(_with_range(job)) for job in jobs]
    apps: list[RealtimeApp] = []
    spare = len(free)
    for name in texts[n_jobs : n_jobs + n_apps]:
        app, spare = draw(_apps(name, cluster, horizon, free, spare))
        apps.append(app)
    about = draw(_ABOUTS)
    return AllocationScenario(
        name=texts[-1],
        cluster=cluster,
        horizon=horizon,
        objective=draw(objectives),
        rules=Rules(draw(st.booleans()), draw(st.booleans())),
        realtime=tuple(apps),
        batch=tuple(draw(st.permutations(jobs))),
        about=about,
    )


@st.composite
def _jobs(draw: st.DrawFn, name: str, cluster: Cluster, free: list[int]) -> BatchJob:
    """A batch job; where it runs already it takes its GPUs out of `free`."""
    sizes = [1 << power for power in range(8) if 1 << power <= 2 * cluster.gpus]
    gpus = draw(st.sampled_from(sizes))
    earliest = draw(_EARLIEST)
    running_on = None
    if draw(whole(0, 3)) == 0:
        firsts = [gpu for gpu in free if all(gpu + offset in free for offset in range(gpus))]
        if firsts:
            running_on, earliest = draw(st.sampled_from(firsts)), 0.0
            for gpu in range(running_on, running_on + gpus):
                free.remove(gpu)
    return BatchJob(
        name=name,
        kind=draw(_KINDS),
        gpus=gpus,
        hours=draw(hours),
        priority=draw(priorities),
        earliest_hour=earliest,
        running_on=running_on,
        deadline_hour=draw(_DEADLINES),
    )


@st.composite
def _with_range(draw: st.DrawFn, job: BatchJob) -> BatchJob:
    """The job; sometimes, where it waits, with a range of sizes."""
    if job.running_on is not None or draw(whole(0, 2)):
        return job
    scaling = draw(_SCALINGS)
    ranged = replace(job, max_gpus=job.gpus << draw(whole(0, 3)), scaling=scaling)
    return ranged if ranged.hours_on(ranged.sizes[-1]) * 3600 >= 1 else job


@cache
def _swaps(gpus: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.none(), st.integers(0, 4), st.integers(0, gpus + 1))


@cache
def _floors(most: int) -> st.SearchStrategy[int]:
    return st.one_of(st.just(0), st.integers(0, most))


@cache
def _demands(most: int, steps: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=steps, max_size=steps)


@st.composite
def _apps(
    draw: st.DrawFn, name: str, cluster: Cluster, horizon: Horizon, free: list[int], spare: int
) -> tuple[RealtimeApp, int]:
    """An app whose minimum can be reached; what it holds leaves `free`, what it must hold leaves `spare`."""
    held = None
    if draw(st.booleans()):
        count = min(spare, len(free), 8)
        held = tuple(draw(st.lists(st.sampled_from(free), unique=True, max_size=count))) if count else ()
        for gpu in held:
            free.remove(gpu)
    n_held = 0 if held is None else len(held)
    max_swap = draw(_swaps(cluster.gpus))
    floor = 0 if held is None or max_swap is None else max(0, n_held - max_swap)
    max_gpus = draw(maybe(floor, max(floor, cluster.gpus + 2)))
    budget = draw(maybe(0, 2 * cluster.gpus))
    most = [spare, cluster.gpus if max_gpus is None else max_gpus]
    if held is not None:
        most += [n_held + cap for cap in (max_swap, budget) if cap is not None]
    min_gpus = draw(_floors(min(most)))
    shape = None
    if draw(whole(0, 2)) == 0:
        shape = draw(shapes(cluster.gpus))
        demand = shape.demand(horizon)
    else:
        demand = tuple(draw(_demands(cluster.gpus + 2, horizon.steps)))
    app = RealtimeApp(name, draw(priorities), demand, shape, max_swap, min_gpus, max_gpus, held, budget)
    return app, spare - max(floor, min_gpus)


@cache
def shapes(gpus: int) -> st.SearchStrategy[DemandShape]:
    """Demand shapes with a peak of up to `gpus` GPUs."""
    level = st.one_of(st.integers(0, gpus).map(float), st.floats(0, gpus, allow_nan=False))
    return st.builds(
        DemandShape, level, level, st.floats(0, 48, allow_nan=False), st.floats(0.5, 30, allow_nan=False)
    )
