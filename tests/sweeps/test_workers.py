"""Worker processes: the same table as here, one killed midway, one that a point kills, and a real Dask cluster."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpuplan
from gpuplan.fairshare.keep_jobs import keep_jobs
from gpuplan.inputs.errors import InputError
from gpuplan.sweeps.crew import Crew, refuse_in_a_new_process
from gpuplan.sweeps.work import Task
from sweeps.executors import Here, kill_one_of

PENALTY = "objective.shortfall_penalty"
AXES = {PENALTY: [k / 8 for k in range(60)]}


def here() -> Any:
    return gpuplan.sweep("two-apps", AXES, "aware", executor=Here())


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own pool has two processes on every machine."""
    monkeypatch.setattr("gpuplan.sweeps.crew._cores", lambda: 2)


def test_a_process_killed_midway_costs_nothing_but_its_chunk(
    two_processes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crews: list[Crew] = []
    real = Crew._pool

    def noted(crew: Crew) -> ProcessPoolExecutor:
        crews.append(crew)
        return real(crew)

    monkeypatch.setattr(Crew, "_pool", noted)
    killed: list[int] = []

    def kill(done: int, points: int) -> None:
        if done >= 3 and not killed:
            killed.append(done)
            kill_one_of(crews[-1]._own)

    with pytest.warns(UserWarning, match="A worker process ended midway; the rest went on in a new pool"):
        found = gpuplan.sweep("two-apps", AXES, "aware", progress=kill, to=tmp_path)
    assert killed
    assert found.computed == 60
    pd.testing.assert_frame_equal(found.table, here().table)


def test_a_pool_that_was_given_and_broke_is_followed_by_one_of_our_own(two_processes: None) -> None:
    killed: list[int] = []

    def kill(done: int, points: int) -> None:
        if done >= 3 and not killed:
            killed.append(done)
            kill_one_of(pool)

    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.warns(UserWarning, match="in a new pool of gpuplan's own"),
    ):
        found = gpuplan.sweep("two-apps", AXES, "aware", executor=pool, progress=kill)
    assert killed
    pd.testing.assert_frame_equal(found.table, here().table)


class Fragile(Here):
    """A pool that breaks whenever it is to compute one of some points."""

    def __init__(self, deadly: set[int]) -> None:
        super().__init__()
        self.deadly = deadly
        self.breaks = 0

    def submit(self, call: Any, /, *given: Any, **named: Any) -> Future[Any]:
        if any(task.place in self.deadly for task in given[2]):
            self.breaks += 1
            answer: Future[Any] = Future()
            answer.set_exception(BrokenProcessPool("a child process terminated abruptly"))
            return answer
        return super().submit(call, *given, **named)


def test_a_point_that_kills_its_process_is_found_and_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fragile = Fragile({7, 31})
    monkeypatch.setattr(Crew, "renew", lambda crew: "renewed")
    with pytest.warns(UserWarning, match="renewed"):
        found = gpuplan.sweep("two-apps", AXES, "aware", executor=fragile, to=tmp_path)
    assert found.errors.index.tolist() == [7, 31]
    assert set(found.errors["error"]) == {"not computed: its worker process ended (killed, or out of memory)"}
    others = [place for place in range(60) if place not in (7, 31)]
    pd.testing.assert_frame_equal(found.table.iloc[others], here().table.iloc[others])
    again = gpuplan.sweep("two-apps", AXES, "aware", executor=Here(), to=tmp_path)
    assert again.computed == 2  # what ended with its process is tried again by the next call
    pd.testing.assert_frame_equal(again.table, here().table)


def test_workers_that_never_come_up_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crew, "renew", lambda crew: "renewed")
    with pytest.raises(
        InputError, match="end before they have computed anything: in a script a sweep must stand"
    ):
        gpuplan.sweep("two-apps", AXES, "aware", executor=Fragile(set(range(60))))


def test_what_is_no_executor_is_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"executor: must be a concurrent.futures.Executor, or left out \(got 3\)"
    ):
        gpuplan.sweep("two-apps", AXES, "aware", executor=3)  # type: ignore[arg-type]


def test_an_executor_that_is_closed_is_a_sentence() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(InputError, match="executor: takes no more work; what is in the folder stays"):
        gpuplan.sweep("two-apps", AXES, "aware", executor=pool)


def test_a_worker_that_fails_otherwise_is_told_in_the_row() -> None:
    class Refuses(Here):
        def submit(self, call: Any, /, *given: Any, **named: Any) -> Future[Any]:
            if any(task.place == 5 for task in given[2]):
                answer: Future[Any] = Future()
                answer.set_exception(TypeError("cannot be sent"))
                return answer
            return super().submit(call, *given, **named)

    found = gpuplan.sweep("two-apps", AXES, "aware", executor=Refuses())
    assert found.errors["error"].to_dict() == {5: "not computed: TypeError: cannot be sent"}


def test_a_large_scenario_does_not_wait_in_the_pipe_of_a_new_process() -> None:
    """One that ends before it reads its 64 KB, as in a script without a guard, would be waited for without end."""
    week = gpuplan.load("three-programmes").replace({"workload.generate.days": 5})
    crew = Crew(keep_jobs(week), None, 1)
    try:
        assert len(pickle.dumps(keep_jobs(week))) > 65_536
        assert len(pickle.dumps(crew._pool()._initargs)) < 65_536  # type: ignore[attr-defined]
        outcomes, _ = crew.submit([Task(0, {}, {}, ("fifo",))]).result()
        assert outcomes[0].figures == gpuplan.simulate(week, "fifo").figures
    finally:
        crew.close()


def test_a_script_without_a_guard_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(InputError, match='must stand below `if __name__ == "__main__":`'):
        refuse_in_a_new_process()


def test_killed_the_hard_way_and_called_again_computes_only_what_is_missing(tmp_path: Path) -> None:
    program = (
        "import sys, os, signal, gpuplan\n"
        "from sweeps.executors import Here\n"
        "import gpuplan.sweeps.store as s; s.EVERY_S = 0\n"
        "die = lambda done, points: done >= 20 and os.kill(os.getpid(), signal.SIGKILL)\n"
        f"gpuplan.sweep('two-apps', {AXES!r}, 'aware', executor=Here(), to=sys.argv[1], progress=die)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ended = subprocess.run([sys.executable, "-c", program, tmp_path], env=environment, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    found = gpuplan.sweep("two-apps", AXES, "aware", executor=Here(), to=tmp_path)
    assert 0 < found.computed <= 40
    pd.testing.assert_frame_equal(found.table, here().table)


def test_a_dask_cluster_with_a_worker_killed_midway(tmp_path: Path) -> None:
    import distributed  # extra `scale`, which is installed for tests: no reason to skip

    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2

        def kill(done: int, points: int) -> None:
            if done >= 10 and not killed:
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        executor: Executor = client.get_executor()
        found = gpuplan.sweep(
            "two-apps", AXES, "aware", executor=executor, progress=kill, to=tmp_path / "sweep"
        )
    assert killed
    assert found.computed == 60
    pd.testing.assert_frame_equal(found.table, here().table)
