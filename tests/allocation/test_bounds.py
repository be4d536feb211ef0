"""Kernels read and write inside their arrays: planned once more in plain Python, where an index outside raises."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from hypothesis import Phase, given, settings
from strategies import scenarios
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.loading import load, shipped

def every_policy(scenario, moves):
    for policy in POLICIES[:-1]:  # exact runs no kernel of its own
        found = plan(scenario, policy, iterations=moves)
        assert found.check() == []
        assert found.figures

@settings(max_examples=60, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
@given(scenarios())
def any_scenario(scenario):
    every_policy(scenario, 60)

for known in (one for one in shipped() if one.kind == "allocation"):
    every_policy(load(known.name), 30)
any_scenario()
print("inside")
"""


def test_kernels_stay_inside_their_arrays(checkout: Path) -> None:
    """Out of bounds is silent in compiled code; as plain Python the same kernels raise an IndexError.

    ``NUMBA_BOUNDSCHECK`` finds the same, after more than a minute of compiling everything anew.
    """
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(checkout / "tests")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=checkout,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == "inside"
