"""The same numbers whether kernels are compiled, cached, compiled afresh, or plain Python.

The settings are those of the case `num-readonly-cache`: (1) normal, (2) a read-only package,
(3) no home either, (4) no temporary folder either, (5) inside a zip, (6) no compiler.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Eight GPUs in nodes of four, GPU 7 broken; twelve jobs of 1, 2 and 4 GPUs; an app that may swap one GPU.
PROBE = """
import json, sys
from gpuplan import jit
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.plan import plan
from gpuplan.cluster import Cluster

scenario = AllocationScenario(
    name="probe",
    cluster=Cluster(8, 4, (7,)),
    horizon=Horizon(12),
    objective=Objective(shortfall_penalty=3.0),
    realtime=(RealtimeApp("app", 5.0, (1, 1, 2, 3, 3, 2, 1, 1, 1, 1, 4, 0), max_swap=1),),
    batch=tuple(BatchJob(f"job-{i}", "training", 2 ** (i % 3), 1 + i % 4, 1 + i % 3) for i in range(12)),
)
found = {}
for policy in sys.argv[1:]:
    made = plan(scenario, policy)
    found[policy] = [made.figures, made.start.tolist(), made.first_gpu.tolist(), made.grid.tolist()]
print(json.dumps({"file": jit.__file__, "cached": jit.cached, "plans": found}))
"""

# A small kernel that calls another: compiling all of gpuplan's takes half a minute on a busy machine.
SMALL = """
from gpuplan.jit import njit

@njit
def square(n):
    return n * n

@njit
def squares(n):  # 1 + 4 + 9 + ... + n x n
    total = 0
    for i in range(1, n + 1):
        total += square(i)
    return total
"""
SMALL_PROBE = """
import json
from gpuplan import jit, small

print(json.dumps({"file": small.__file__, "cached": jit.cached, "compiled": hasattr(small.squares, "py_func"),
                  "answer": int(small.squares(10))}))
"""

ALL = ("fifo", "fifo-strict", "curve-fifo", "peak-priority", "curve-priority", "aware")


def start(program: str, *words: str, **settings: str | Path) -> subprocess.Popen[str]:
    """A process that runs a program, in an environment with these settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {name: str(value) for name, value in settings.items()}
    command = [sys.executable, "-P", "-c", program, *words]  # -P: not from the working folder
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module")
def normal() -> dict[str, Any]:
    """Setting 1: what the probe says with compiled kernels and a cache."""
    found = answer(start(PROBE, *ALL))
    assert found["cached"] is True
    return found


@pytest.fixture
def read_only(checkout: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the package in which no cache can be written, not even by root."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / "gpuplan", tmp_path / "site" / "gpuplan", ignore=ignored)
    (tmp_path / "site" / "gpuplan" / "small.py").write_text(SMALL, encoding="utf-8")
    for folder in [path for path in (tmp_path / "site").rglob("*") if path.is_dir()]:
        (folder / "__pycache__").write_text("a file where the folder of the cache would be", encoding="utf-8")
    return tmp_path / "site"


def small_answer(process: subprocess.Popen[str], place: Path, *, cached: bool) -> None:
    """Asserts that the small kernel of `place` was compiled, with a cache or without, and is right."""
    found = answer(process)
    assert Path(found["file"]).is_relative_to(place)
    assert (found["compiled"], found["cached"], found["answer"]) == (True, cached, 385)


def test_the_probe_tells_policies_apart(normal: dict[str, Any]) -> None:
    values = {policy: found[0]["objective"] for policy, found in normal["plans"].items()}
    assert len(set(values.values())) >= 4, values


def test_jit_off_gives_the_same_numbers(normal: dict[str, Any]) -> None:
    assert answer(start(PROBE, *ALL, NUMBA_DISABLE_JIT="1"))["plans"] == normal["plans"]


def test_without_numba_the_numbers_are_the_same(normal: dict[str, Any], tmp_path: Path) -> None:
    """Setting 6."""
    (tmp_path / "numba.py").write_text("raise ImportError('no numba here')", encoding="utf-8")
    found = answer(start(PROBE, *ALL, PYTHONPATH=tmp_path))
    assert found["plans"] == normal["plans"]
    assert found["cached"] is None


def test_a_read_only_package_caches_at_home_also_for_two_processes_at_once(
    read_only: Path, tmp_path: Path
) -> None:
    """Setting 2, twice at the same time on an empty cache, and once more from the cache."""
    home = {"HOME": tmp_path / "home", "XDG_CACHE_HOME": tmp_path / "home" / "cache"}
    both = [start(SMALL_PROBE, PYTHONPATH=read_only, **home) for _ in range(2)]
    for process in (*both, start(SMALL_PROBE, PYTHONPATH=read_only, **home)):
        small_answer(process, read_only, cached=True)
    assert list((tmp_path / "home").rglob("small.squares-*.nbi"))


@pytest.mark.parametrize("nowhere", [("HOME", "XDG_CACHE_HOME"), ("HOME", "XDG_CACHE_HOME", "TMPDIR")])
def test_without_any_place_for_a_cache_it_is_only_slower(read_only: Path, nowhere: tuple[str, ...]) -> None:
    """Settings 3 and 4: no home, and no temporary folder of one's own."""
    process = start(SMALL_PROBE, PYTHONPATH=read_only, **dict.fromkeys(nowhere, "/dev/null"))
    small_answer(process, read_only, cached=False)


def test_it_runs_from_a_zip(read_only: Path, tmp_path: Path) -> None:
    """Setting 5."""
    for blocker in read_only.rglob("__pycache__"):
        blocker.unlink()
    bundle = Path(shutil.make_archive(str(tmp_path / "bundle"), "zip", read_only))
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/dev/null")
    small_answer(start(SMALL_PROBE, PYTHONPATH=bundle, **nowhere), bundle, cached=False)


@pytest.mark.slow
def test_a_plan_without_any_place_for_a_cache_is_the_same(normal: dict[str, Any], read_only: Path) -> None:
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), "/dev/null")
    found = answer(start(PROBE, "fifo", PYTHONPATH=read_only, **nowhere))
    assert Path(found["file"]).is_relative_to(read_only)
    assert found["cached"] is False
    assert found["plans"]["fifo"] == normal["plans"]["fifo"]
