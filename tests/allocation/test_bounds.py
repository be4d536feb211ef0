"""Kernels read and write inside their arrays: planned once more with numba's bounds checks on."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from hypothesis import Phase, given, settings
from strategies import scenarios
from gpuplan.allocation import engine
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.loading import load, shipped

def every_policy(scenario):
    for policy in POLICIES[:-1]:  # exact runs no kernel of its own
        assert plan(scenario, policy, iterations=300).check() == []
        plan(scenario, policy).figures

engine.compile_here()  # nothing in plain Python, no second process that compiles the same

@settings(max_examples=60, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
@given(scenarios())
def any_scenario(scenario):
    every_policy(scenario)

for known in (one for one in shipped() if one.kind == "allocation"):
    every_policy(load(known.name))
any_scenario()
print("inside")
"""


def test_kernels_stay_inside_their_arrays(checkout: Path, tmp_path: Path) -> None:
    """Out of bounds is silent in compiled code; with ``NUMBA_BOUNDSCHECK`` it is an IndexError."""
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_OPT": "0",  # the same checks, compiled in three quarters of the time
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(checkout / "tests"),
    }
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=checkout,
        timeout=900,  # compiles for a minute and a half of one core, which others may need too
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "inside"
