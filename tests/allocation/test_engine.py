"""Nobody waits for the compiler with a small scenario: plain Python plans it meanwhile, to the same plan."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from gpuplan.allocation import bound as bounds
from gpuplan.allocation import engine, kernels, outline, windows
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES, base
from gpuplan.allocation.problem import compile_problem
from gpuplan.loading import load

SMALL = engine.SMALL

#: exact starts from the search, for long in plain Python, and runs no kernel of its own.
LIVE = POLICIES[:-1]


class Compiler:
    """Stands for the process that compiles."""

    started = 0

    def __init__(self, command: list[str], **_: Any) -> None:
        Compiler.started += 1
        self.command = command
        self.status: int | None = None

    def poll(self) -> int | None:
        return self.status


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine that has compiled nothing, with an empty folder for the cache and a compiler that hangs."""
    if not hasattr(kernels.allocate, "stats"):
        pytest.skip("nothing is compiled without numba")
    Compiler.started = 0
    monkeypatch.setattr(engine, "_ready", False)
    monkeypatch.setattr(engine, "_compiler", None)
    monkeypatch.setattr(engine.jit, "cache_folder", lambda kernel: tmp_path / "cache")
    monkeypatch.setattr(engine.subprocess, "Popen", Compiler)
    return tmp_path / "cache"


def test_a_small_scenario_is_planned_in_plain_python_while_a_process_compiles(cold: Path) -> None:
    first = engine.kernels_for(SMALL)
    assert first is not kernels
    assert not hasattr(first.allocate, "stats")  # plain Python, not a dispatcher
    assert engine.kernels_for(SMALL) is first
    assert Compiler.started == 1
    assert not engine.compiled()


def test_large_work_is_worth_the_compiler(cold: Path) -> None:
    assert engine.kernels_for(SMALL + 1) is kernels
    assert Compiler.started == 0


def test_compiled_kernels_are_used_as_soon_as_they_are_on_disk(cold: Path) -> None:
    assert engine.kernels_for(1) is not kernels
    assert [path.suffix for path in cold.iterdir()] == [".busy"]
    engine.note_compiled()
    assert [path.suffix for path in cold.iterdir()] == [".compiled"]
    assert engine.kernels_for(1) is kernels
    assert engine.compiled()


def test_a_compiler_that_ended_without_success_is_not_waited_for(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.kernels_for(1) is not kernels
    assert engine._compiler is not None
    monkeypatch.setattr(engine._compiler, "status", 1)
    assert engine.kernels_for(1) is kernels


def test_two_processes_do_not_compile_the_same_twice_unless_one_died(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.kernels_for(1) is not kernels
    monkeypatch.setattr(engine, "_compiler", None)  # another process finds the first one at work
    assert engine.kernels_for(1) is not kernels
    assert Compiler.started == 1
    long_ago = time.time() - engine.STALE_S - 1
    (busy,) = cold.glob("*.busy")
    os.utime(busy, (long_ago, long_ago))
    assert engine.kernels_for(1) is not kernels
    assert Compiler.started == 2


def test_where_no_process_can_be_started_this_one_compiles(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError("no processes here")

    monkeypatch.setattr(engine.subprocess, "Popen", refused)
    assert engine.kernels_for(1) is kernels


def test_without_a_cache_small_work_stays_plain(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes twenty seconds in every process there, a small plan in plain Python a fraction of one."""
    monkeypatch.setattr(engine.jit, "cache_folder", lambda kernel: None)
    assert engine.kernels_for(SMALL) is not kernels
    assert engine.kernels_for(SMALL + 1) is kernels
    assert Compiler.started == 0
    assert not engine.on_disk()
    engine.note_compiled()
    assert not cold.exists()


@pytest.mark.parametrize("name", ["mixed-day", "training-rush", "two-apps"])
def test_plain_and_compiled_kernels_give_the_same_plans_and_bounds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = load(name)
    expected = {policy: plan(scenario, policy, iterations=60) for policy in LIVE}
    bound = expected["fifo"].bound
    for module in (base, bounds, windows, outline):
        monkeypatch.setattr(module, "kernels_for", lambda work, which=kernels: engine._plain_kernels(which))
    compile_problem.cache_clear()
    bounds.upper_bound.cache_clear()
    windows.ground.cache_clear()
    for policy in LIVE:
        made = plan(scenario, policy, iterations=60)
        assert made.fingerprint == expected[policy].fingerprint
        assert made.figures == expected[policy].figures
    assert plan(scenario, "fifo").bound == bound
