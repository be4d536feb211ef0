"""Nobody is lost and no byte is made of nothing, at every instant, on tiny crowded nodes.

The books are kept here anew from the stages and copies of a run alone. Exact: there is no tolerance.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packing.strategies import PIECES, scenarios

from gpuplan.packing.engine import run
from gpuplan.packing.model import NEVER, PackingScenario, Pieces, ServedModel
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.raw import (
    CUT,
    DONE,
    FAILED,
    LOAD,
    ON_GPU,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
    RawPack,
)

SCALE = 1 << 20

#: What may follow a stage of a kind with an outcome in a task's life; None: nothing.
FOLLOWS = {
    None: {LOAD},
    (LOAD, WENT_ON): {RUN},
    (RESTORE, WENT_ON): {RUN},
    (RUN, WENT_ON): {None},
    (RUN, PREEMPTED): {SAVE},
    (SAVE, WENT_ON): {RESTORE, None},
    **{(kind, OUT_OF_MEMORY): {LOAD, None} for kind in (LOAD, RUN, RESTORE)},
    **{(kind, CUT): {None} for kind in (LOAD, RUN, SAVE, RESTORE)},
}


@dataclass
class Stage:
    task: int
    gpu: int
    kind: int
    outcome: int
    start: int
    end: int
    frozen_from: int
    attempt: int
    copy: int
    gpus: tuple[int, ...] = ()


@dataclass
class Copy:
    model: int
    gpu: int
    claimed: int
    load: int
    ready: int
    evicted: int
    released: int
    from_disk: int
    for_task: int
    gpus: tuple[int, ...] = ()


def rows(table: object, kind: type) -> list:  # type: ignore[type-arg]
    names = [name for name in type(table).__slots__ if name not in ("on", "starts")]  # type: ignore[attr-defined]
    columns = [getattr(table, name).tolist() for name in names]
    return [kind(*row) for row in zip(*columns, strict=True)]


class Books:
    """What a run says about itself."""

    def __init__(self, scenario: PackingScenario, pieces: Pieces) -> None:
        self.scenario = scenario
        self.raw: RawPack = run(compile_problem(scenario), pieces)
        self.stages: list[Stage] = rows(self.raw.stages, Stage)
        self.copies: list[Copy] = rows(self.raw.copies, Copy)
        on, starts = self.raw.copies.on.tolist(), self.raw.copies.starts.tolist()
        for copy, (first, over) in zip(self.copies, pairwise(starts), strict=True):
            copy.gpus = tuple(on[first:over])
            assert len(copy.gpus) == scenario.models[copy.model].gpus
        for stage in self.stages:
            stage.gpus = self.copies[stage.copy].gpus
        assert scenario.tasks is not None
        self.tasks = scenario.tasks
        self.lives: list[list[Stage]] = [[] for _ in range(len(self.tasks))]
        for stage in self.stages:
            self.lives[stage.task].append(stage)
        self.state, self.left = self.raw.state.tolist(), self.raw.left_us.tolist()
        self.arrival = self.tasks.arrival_us.tolist()

    def instants(self) -> list[int]:
        """All instants at which anything begins or ends, up to the end of the run."""
        times = {t for s in self.stages for t in (s.start, s.end, s.frozen_from)}
        times |= {t for c in self.copies for t in (c.claimed, c.load, c.ready, c.evicted, c.released)}
        times |= {*self.arrival, *self.left, *self.raw.breaches.time_us.tolist()}
        return sorted(t for t in times if t <= self.raw.end_us)

    def service(self) -> Iterator[tuple[Stage, list[tuple[int, int]]]]:
        """Every stage of running, with what its task had done, in parts of a microsecond, at instants of it."""
        had: dict[tuple[int, int], int] = {}
        instants = sorted({at for t in self.instants() for at in (t - 1, t)})
        running = [s for s in self.stages if s.kind == RUN]
        for stage in running:
            done = had.get((stage.task, stage.attempt), 0)
            points = [t for t in instants if stage.start <= t <= stage.end]
            track = [(points[0], done)]
            for a, b in pairwise(points):
                now = [s for s in running if s.start <= a < s.end]
                done += (b - a) * min(self.speed(sum(gpu in s.gpus for s in now)) for gpu in stage.gpus)
                track.append((b, done))
            had[stage.task, stage.attempt] = done
            yield stage, track

    def speed(self, n: int) -> int:
        contention = self.scenario.contention
        if contention.model == "sharing":
            return max(1, SCALE // n)
        if contention.model == "slowdown":
            return max(1, int(SCALE / (1 + contention.beta * (n - 1))))
        return SCALE


#: GPUPLAN_EXAMPLES=20 tries twenty times as many nodes.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

EVERYTHING = settings(deadline=None, max_examples=60 * MORE, suppress_health_check=list(HealthCheck))


# ---------------------------------------------------------------- 1. tasks


@given(scenarios(), PIECES)
@EVERYTHING
def test_nobody_is_lost(scenario: PackingScenario, pieces: Pieces) -> None:
    """arrived = done + rejected + failed + timed out + queued + on a GPU + waiting to come back, at every instant.

    Who is where is read from the stages: on a GPU within one, queued or waiting to come back between two; so that the
    sum says that everybody leaves once, with the end of the last stage.
    """
    books = Books(scenario, pieces)
    for row, life in enumerate(books.lives):
        told = [None, *((s.kind, s.outcome) for s in life)]
        for before, after in pairwise([*told, None]):
            assert (after[0] if after else None) in FOLLOWS[before] or not life
        for one, two in pairwise(life):
            assert one.end == two.start or (one.end < two.start and two.kind in (LOAD, RESTORE))
        assert_fate(books, row, life)
    for t in books.instants():
        arrived = sum(a <= t for a in books.arrival)
        if scenario.until_us is not None and t == scenario.until_us:
            continue
        gone = Counter(books.state[row] for row in range(len(books.arrival)) if books.left[row] <= t)
        here = sum(on_gpu(life, t) for life in books.lives)
        waits = sum(between(books, row, t) for row in range(len(books.arrival)))
        assert arrived == sum(gone[k] for k in (DONE, REJECTED, FAILED, TIMED_OUT)) + here + waits


def on_gpu(life: list[Stage], t: int) -> bool:
    return any(s.start <= t < s.end for s in life)


def between(books: Books, row: int, t: int) -> bool:
    """Has arrived, is in no stage, and something is still to come: a stage, a farewell, or nothing for ever."""
    life, left = books.lives[row], books.left[row]
    if not books.arrival[row] <= t or on_gpu(life, t):
        return False
    return any(s.start > t for s in life) or (left > t)


def assert_fate(books: Books, row: int, life: list[Stage]) -> None:
    """How a task left agrees with its last stage, its failures and its deadline."""
    state, left, end = books.state[row], books.left[row], books.raw.end_us
    failed = sum(s.outcome == OUT_OF_MEMORY for s in life)
    assert failed == books.raw.failures[row] <= books.scenario.retry.most + 1
    if state == DONE:
        assert (life[-1].kind, life[-1].outcome, life[-1].end) == (RUN, WENT_ON, left)
    elif state == FAILED:
        assert (life[-1].outcome, life[-1].end) == (OUT_OF_MEMORY, left)
        assert failed == books.scenario.retry.most + 1
    elif state == REJECTED:
        assert not life
        assert left == books.arrival[row]
    elif state == TIMED_OUT:
        assert not any(s.kind == RUN for s in life)
        assert books.tasks.deadline_us[row] <= left <= end
    else:
        assert left == NEVER
        assert (state == ON_GPU) == bool(life and life[-1].outcome == CUT)
        assert state in (WAITING, ON_GPU)


@given(scenarios(), PIECES)
@EVERYTHING
def test_service_is_exact(scenario: PackingScenario, pieces: Pieces) -> None:
    """A task is done at the first microsecond at which it has had its service, in all stages of its last attempt."""
    for stage, track in Books(scenario, pieces).service():
        assert scenario.tasks is not None
        asked = int(scenario.tasks.service_us[stage.task]) * SCALE
        if stage.outcome == WENT_ON:
            assert track[-1][1] >= asked
        if stage.start < stage.end:
            assert track[-2][0] == stage.end - 1
            assert track[-2][1] < asked


# ---------------------------------------------------------------- 2. memory


@given(scenarios(), PIECES)
@EVERYTHING
def test_memory_is_within_bounds(scenario: PackingScenario, pieces: Pieces) -> None:
    """0 <= actual <= capacity at every instant at which anything happens, and right before it.

    Right before: memory grows between instants, so that this is where it is largest.
    """
    books = Books(scenario, pieces)
    kept = [*kv(books)]
    for t in books.instants():
        for gpu in range(scenario.gpus.count):
            for at in (t - 1, t):
                used = loaded(books, gpu, at) + sum(
                    amount(s, track, at) for s, track in kept if gpu in s.gpus
                )
                assert 0 <= used <= scenario.gpus.memory_bytes


@given(scenarios(), PIECES)
@EVERYTHING
def test_a_breach_is_one_event(scenario: PackingScenario, pieces: Pieces) -> None:
    """Each event is one failed load or one failed stage of a task; all other stages that fail wait for such a load."""
    books = Books(scenario, pieces)
    # a copy that nobody waits for, or that serves a task of no length, may go when it is loaded without failing
    served = {s.copy for s in books.stages if s.kind == RUN}
    awaited = {s.copy for s in books.stages if s.kind in (LOAD, RESTORE) and s.outcome == OUT_OF_MEMORY}
    failed = {k for k in awaited - served if books.copies[k].load == books.copies[k].released}
    broken = [books.copies[k] for k in sorted(failed)]
    loads: list[tuple[int, int, int]] = []
    of_tasks: Counter[tuple[int, int]] = Counter()
    b = books.raw.breaches
    for t, gpu, task, model in zip(*(x.tolist() for x in (b.time_us, b.gpu, b.task, b.model)), strict=True):
        if task < 0:
            loads.append((t, model, gpu))
        else:
            assert books.tasks.model[task] == model
            assert any(gpu in s.gpus and s.end == t for s in books.lives[task] if s.outcome == OUT_OF_MEMORY)
            of_tasks[t, task] += 1
    assert Counter((t, m) for t, m, _ in loads) == Counter((c.load, c.model) for c in broken)
    assert Counter(loads) <= Counter((c.load, c.model, gpu) for c in broken for gpu in c.gpus)
    for s in books.stages:
        if s.outcome == OUT_OF_MEMORY:
            copy = books.copies[s.copy]
            if s.kind == RUN or (s.kind == RESTORE and s.copy not in failed):
                of_tasks[s.end, s.task] -= 1
            else:
                assert s.kind in (LOAD, RESTORE)
                assert copy.load == copy.released == s.end
    assert not any(of_tasks.values())


@given(scenarios(), PIECES, st.integers(0, 20))
@EVERYTHING
def test_memory_is_back_at_its_base(scenario: PackingScenario, pieces: Pieces, keep: int) -> None:
    """Where nothing is pinned, sleeps or is kept for ever, the memory of an idle node is empty in the end."""
    bare = replace(
        scenario,
        until_us=None,
        models=tuple(replace(m, pinned=False, asleep_bytes=0) for m in scenario.models),
    )
    books = Books(bare, replace(pieces, eviction="keep-alive", keep_alive_us=keep))
    assert ON_GPU not in books.state
    assert all(loaded(books, gpu, books.raw.end_us) == 0 for gpu in range(bare.gpus.count))
    assert all(c.released < NEVER for c in books.copies)


def loaded(books: Books, gpu: int, t: int) -> int:
    """Bytes of the copies on a GPU, and of what they left behind, at an instant."""
    total = 0
    for m, model in enumerate(books.scenario.models):
        of_model = [c for c in books.copies if c.model == m and gpu in c.gpus]
        here = [c for c in of_model if c.load <= t and c.load < c.released]
        alive = sum(t < c.released for c in here)
        took = part(model, model.actual_bytes) + books.scenario.context(model) + model.workspace_bytes
        total += took * alive + (part(model, model.asleep_bytes) if here and not alive else 0)
    return total


def part(model: ServedModel, whole: int) -> int:
    """Of bytes of a model, those on each of its GPUs."""
    return (whole + model.gpus - 1) // model.gpus


def kv(books: Books) -> Iterator[tuple[Stage, list[tuple[int, int]]]]:
    """Stages that hold KV, with the bytes at instants of them: growing in those of running, else at rest."""
    done: dict[tuple[int, int], int] = {}
    for stage, track in books.service():
        service = int(books.tasks.service_us[stage.task])
        done[stage.task, stage.end] = min(track[-1][1] // SCALE, service)
        yield stage, [(t, bytes_of(books, stage.task, min(parts // SCALE, service))) for t, parts in track]
    for life in books.lives:
        had = 0
        for stage in life:
            if stage.kind == RUN:
                had = done[stage.task, stage.end]
            elif stage.kind in (SAVE, RESTORE):
                yield stage, [(max(stage.start, stage.frozen_from), bytes_of(books, stage.task, had))]


def bytes_of(books: Books, task: int, done_us: int) -> int:
    made, service = int(books.tasks.tokens_out[task]), int(books.tasks.service_us[task])
    tokens = int(books.tasks.tokens_in[task]) + (made * done_us // service if service else 0)
    model = books.scenario.models[int(books.tasks.model[task])]
    return part(model, model.kv_bytes_per_token) * tokens


def amount(stage: Stage, track: list[tuple[int, int]], t: int) -> int:
    """Bytes of KV of a stage at an instant of its track, or while they are at rest."""
    if not track[0][0] <= t < stage.end:
        return 0
    return max(held for at, held in track if at <= t)
