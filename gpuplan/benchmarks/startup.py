"""How long a fresh process takes until gpuplan is there."""

import subprocess
import sys

from gpuplan.benchmarks.frame import Measure

#: What `import gpuplan` must leave alone.
HEAVY = ("altair", "anywidget", "ipywidgets", "numba", "numpy", "ortools", "pandas", "pydantic")

_PROGRAM = f"""
import time
started = time.perf_counter()
import gpuplan
seconds = time.perf_counter() - started
import sys
print(seconds, *(name for name in {HEAVY!r} if name in sys.modules))
"""


def import_seconds(processes: int = 7) -> float:
    """Seconds that `import gpuplan` takes, the fastest of some fresh processes."""
    return min(_import_once() for _ in range(processes))


def _import_once() -> float:
    run = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    seconds, *heavy = run.stdout.split()
    assert not heavy, f"import gpuplan also imports {', '.join(heavy)}"
    return float(seconds)


ENTRIES = (Measure("import gpuplan, fresh process", import_seconds, target=0.1),)
