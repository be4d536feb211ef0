"""Run a sweep: chunks of points to workers, results as they come, nothing computed twice and nothing lost."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gpuplan.bar import progress_to
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.sweeps.crew import GUARD, Answer, Crew, refuse_in_a_new_process, stopped
from gpuplan.sweeps.grid import Grid, grid_of
from gpuplan.sweeps.result import Sweep
from gpuplan.sweeps.store import Kept, Store, row_of
from gpuplan.sweeps.work import NOT_COMPUTED, Outcome, Task

#: Seconds that a chunk should take: much more than handing it over, little enough to lose.
CHUNK_S = 0.25

#: Points of a chunk at most.
LONGEST = 2_000

#: A point whose process ended so often, while nothing else ran, is given up.
STRIKES = 2

#: Pools that broke before any point was done, after which it is not the points.
BROKEN_AT_START = 4


def sweep(
    scenario: Any,
    axes: Mapping[str, Iterable[Any]],
    policies: Sequence[str] | str | None = None,
    *,
    executor: Executor | None = None,
    to: str | Path | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    **effort: Any,
) -> Sweep:
    """Every combination of values of a scenario under every policy, on all cores.

    Parameters
    ----------
    scenario
        Whatever `gpuplan.load` takes, of any kind.
    axes
        Values by dotted path, as in ``scenario.replace``, or by ``"seed"``: that of generated jobs or tasks, or of
        ``search`` (allocation). Every policy and setting meets the same jobs of a seed (common random numbers).
        ``{"objective.shortfall_penalty": [0, 5, 10], "cluster.gpus": [8, 16]}`` are six points.
    policies
        Names; by default the two that ``compare`` takes for the kind.
    executor
        Any `concurrent.futures.Executor`, such as Dask's ``client.get_executor()``; by default a process per core. In a
        script the call then stands below ``if __name__ == "__main__":``.
    to
        Folder for the results (Parquet; needs pyarrow). The same call finds there what an interrupted one has
        computed; more values or policies may be added.
    progress
        True: a bar; False: none; None: a bar in a terminal or a notebook. Or a function of points done and of all.
    **effort
        Keywords of `gpuplan.plan` (allocation). ``search`` makes a number of moves that fits the size, which repeats.

    Returns
    -------
    Sweep
        A row per point and policy; mistakes of one point stand in its column ``error``.

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown path or policy, a folder that is in use or about another scenario.
    """
    from gpuplan.loading import load

    refuse_in_a_new_process()
    if executor is not None and not callable(getattr(executor, "submit", None)):
        rule = "must be a concurrent.futures.Executor, or left out"
        raise InputError("sweep", [Mistake("executor", rule, executor)])
    grid = grid_of(load(scenario), axes, policies, effort)
    with ExitStack() as stack:
        store = None if to is None else stack.enter_context(Store(to, grid))
        known = {} if store is None else store.known()
        work = _Work(grid, known, store, progress_to(progress))
        notes = work.run(executor)
        rows = work.rows()
        if store is not None:
            store.finish(rows)
            notes += store.notes
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return Sweep(grid, rows, computed=work.computed, busy_s=work.busy_s, notes=tuple(notes))


class _Work:
    """What is to be done, what is under way, what is done."""

    def __init__(
        self,
        grid: Grid,
        known: Mapping[str, Kept],
        store: Store | None,
        report: Callable[[int, int], None],
    ) -> None:
        keys = grid.keys()
        self.grid, self.store, self.report = grid, store, report
        self.points = list(grid.points())
        self.keys = [[keys.of(point, policy) for policy in grid.policies] for point in self.points]
        self.kept: dict[str, Kept] = {key: known[key] for row in self.keys for key in row if key in known}
        self.computed = 0
        self.done = 0
        self.todo: deque[Task] = deque()
        for place, point in enumerate(self.points):
            missing = tuple(
                policy
                for policy, key in zip(grid.policies, self.keys[place], strict=True)
                if key not in self.kept
            )
            if missing:
                self.todo.append(Task(place, *grid.changes(point), missing))
        self.done = len(self.points) - len(self.todo)
        self.suspects: deque[list[Task]] = deque()
        self.strikes: dict[int, int] = {}
        self.rate = CHUNK_S  # seconds of a point, as the last chunk had it
        self.flying: dict[Answer, list[Task]] = {}
        self.alone: Answer | None = None  # the one that was asked for while nothing else ran
        self.busy_s = 0.0
        self.answered = False
        self.broken = 0

    def run(self, executor: Executor | None) -> list[str]:
        """Compute what is missing; sentences about workers that ended."""
        notes: list[str] = []
        self.report(self.done, len(self.points))
        if not self.todo:
            return notes
        crew = Crew(self.grid.scenario, executor, len(self.todo))
        try:
            while self.todo or self.suspects or self.flying:
                whole = self._send(crew)
                if self.flying:
                    ready, _ = wait(self.flying, return_when=FIRST_COMPLETED)
                    for answer in ready:
                        whole &= self._take(answer)
                if not whole:
                    self._not_at_start()
                    self._set_aside()
                    notes.append(crew.renew())
        except BaseException:
            self._collect()
            for answer in self.flying:
                answer.cancel()
            raise
        finally:
            crew.close()
        return list(dict.fromkeys(notes))

    def rows(self) -> list[dict[str, Any]]:
        """The table, in the order of points and policies."""
        return [
            row_of(self.grid, key, point, policy, *self.kept[key])
            for point, row in zip(self.points, self.keys, strict=True)
            for policy, key in zip(self.grid.policies, row, strict=True)
        ]

    def _send(self, crew: Crew) -> bool:
        """Keep every worker busy with one chunk more than it has; False where the pool is broken.

        After a worker has ended, what was under way is asked for alone, one chunk at a time: then it is known whose
        fault it is.
        """
        chunk: list[Task] = []
        try:
            if self.suspects:
                if not self.flying:
                    chunk = self.suspects.popleft()
                    self.alone = crew.submit(chunk)
                    self.flying[self.alone] = chunk
                return True
            while self.todo and len(self.flying) < 2 * crew.width:
                chunk = self._chunk(crew.width)
                self.flying[crew.submit(chunk)] = chunk
        except BrokenExecutor:  # the pool broke since the last answer: this chunk has not begun
            self.todo.extendleft(reversed(chunk))
            return False
        return True

    def _chunk(self, width: int) -> list[Task]:
        fair = -(-len(self.todo) // (2 * width))  # the last chunks are short, so that workers end together
        count = max(1, min(fair, LONGEST, int(CHUNK_S / max(self.rate, 1e-9))))
        return [self.todo.popleft() for _ in range(min(count, len(self.todo)))]

    def _take(self, answer: Answer) -> bool:
        """Take a chunk's results; False where its pool is broken."""
        alone = answer is self.alone
        tasks = self.flying.pop(answer)
        try:
            outcomes, seconds = answer.result()
        except CancelledError:
            raise stopped("its work was cancelled") from None
        except BrokenExecutor:
            self._suspect(tasks, alone, "its worker process ended (killed, or out of memory)")
            return False
        except Exception as error:  # a worker of Dask that died too often, a result that cannot be sent
            self._suspect(tasks, alone, f"{type(error).__name__}: {error}")
            return True
        self.answered = True
        self.rate = seconds / len(tasks)
        self.busy_s += seconds
        self._keep(outcomes)
        self._count(len(tasks))
        return True

    def _suspect(self, tasks: list[Task], alone: bool, why: str) -> None:
        if not alone:
            self.suspects.append(tasks)
        elif len(tasks) > 1:
            self.suspects.extend([task] for task in tasks)
        else:
            (task,) = tasks
            self.strikes[task.place] = self.strikes.get(task.place, 0) + 1
            if self.strikes[task.place] < STRIKES:
                self.suspects.appendleft(tasks)
                return
            error = f"{NOT_COMPUTED}{why}"
            self._keep([Outcome(task.place, policy, None, error) for policy in task.policies])
            self._count(1)

    def _set_aside(self) -> None:
        """What a broken pool had under way, some of it perhaps done."""
        self._collect()
        self.suspects.extend(self.flying.values())
        self.flying.clear()

    def _collect(self) -> None:
        """Keep what is done and was not yet taken."""
        for answer, tasks in list(self.flying.items()):
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                del self.flying[answer]
                self._keep(answer.result()[0])
                self.done += len(tasks)

    def _not_at_start(self) -> None:
        self.broken += 1
        if not self.answered and self.broken >= BROKEN_AT_START:
            rule = f"worker processes end before they have computed anything: {GUARD}; or memory is too small"
            raise InputError("sweep", [Mistake("executor", rule)])

    def _keep(self, outcomes: Iterable[Outcome]) -> None:
        for place, policy, figures, error in outcomes:
            key = self.keys[place][self.grid.policies.index(policy)]
            self.kept[key] = (figures, error)
            self.computed += 1
            if self.store is not None and not (error or "").startswith(NOT_COMPUTED):
                self.store.add(key, self.points[place], policy, figures, error)

    def _count(self, points: int) -> None:
        self.done += points
        if self.store is not None:
            self.store.flush_if_due()
        self.report(self.done, len(self.points))
