"""Reading what other programs recorded: seconds and memory of a million lines, in a fresh process each."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from gpuplan.benchmarks.frame import Finding, Measure

LINES = 1_000_000

#: Most memory that reading `LINES` lines may take, bytes.
MOST_MEMORY = 1_500_000_000

_HEADER = (
    "Cluster|JobID|JobIDRaw|User|Account|Partition|QOS|JobName|State|Submit|Eligible|Start|End|Elapsed|Timelimit|"
    "ReqTRES|AllocTRES|NNodes|ExitCode|NodeList"
)
_STATES = ("COMPLETED", "FAILED", "CANCELLED by 1234", "TIMEOUT", "OUT_OF_MEMORY")
_GPUS = (1, 2, 4, 8)
_STEPS = ("batch", "extern", "0")

#: Jobs whose times are made at once.
_CHUNK = 50_000

_PROGRAM = """
import json, resource, sys, time
from gpuplan.traces.slurm import read_sacct
path, small, scale = sys.argv[1:]

def peak():
    try:  # getrusage tells the memory of the process that started this one, where that had more
        with open("/proc/self/status", encoding="ascii") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * int(scale)

read_sacct(small, zone="Europe/Berlin")  # compiles
started = time.perf_counter()
found = read_sacct(path, zone="Europe/Berlin")
seconds = time.perf_counter() - started
print(json.dumps({
    "seconds": seconds,
    "memory": peak(),
    "jobs": found.n_jobs, "gpu_seconds": found.gpu_seconds, "read": found.account.read, "used": found.account.used,
    "states": {state: int((found.state[found.used] == state).sum()) for state in sorted(set(found.state.tolist()))},
}))
"""


def sacct_lines(file: IO[str], lines: int) -> dict[str, int]:
    """Write an export of `sacct` with so many lines behind its header, and say what is in it.

    Every fourth job has no step, the others one to three (1.5 in the mean). Job k holds one of `_GPUS` GPUs for
    ``7919 k`` mod 200,000 seconds.
    """
    file.write(_HEADER + "\n")
    told = {"jobs": 0, "gpu_seconds": 0, "read": 0}
    first = 1
    while told["read"] < lines:
        k = np.arange(first, first + _CHUNK)
        submit = np.datetime64("2026-01-05T00:00:00", "s").astype(np.int64) + 37 * k
        start = submit + k % 5000
        elapsed = 7919 * k % 200_000
        times = [
            np.datetime_as_string(values.astype("datetime64[s]"))
            for values in (submit, start, start + elapsed)
        ]
        for job, run, a, b, c in zip(k.tolist(), elapsed.tolist(), *(t.tolist() for t in times), strict=True):
            if told["read"] == lines:
                break
            gpus = _GPUS[job * 7 % 4]
            told["jobs"] += 1
            told["gpu_seconds"] += gpus * run
            told["read"] += _write_job(file, job, gpus, run, (a, b, c), lines - told["read"])
        first += _CHUNK
    return told


def _write_job(file: IO[str], job: int, gpus: int, run: int, times: tuple[str, str, str], most: int) -> int:
    """Write a job and its steps, at most so many lines; how many."""
    submit, start, end = times
    days, rest = divmod(run, 86400)
    elapsed = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    elapsed = f"{days}-{elapsed}" if days else elapsed
    held = f"cpu={8 * gpus},gres/gpu:a100={gpus},gres/gpu={gpus},mem={64 * gpus}G,node=1"
    tail = f"1|0:0|node[{job % 50}-{job % 50 + 1}]\n"
    raw = 1_000_000 + job
    file.write(
        f"alpha|{raw}|{raw}|u{job % 701:03}|acct{job % 40}|gpu|normal|train_{job % 5000}|{_STATES[job % 5]}|{submit}|"
        f"{submit}|{start}|{end}|{elapsed}|2-00:00:00|billing={8 * gpus},{held}|billing={8 * gpus},{held}|{tail}"
    )
    steps = _STEPS[: min(job % 4, most - 1)]
    for step in steps:
        file.write(
            f"alpha|{raw}.{step}|{raw}.{step}||acct{job % 40}|||{step}|COMPLETED|{start}|{start}|{start}|{end}|"
            f"{elapsed}|||{held}|{tail}"
        )
    return 1 + len(steps)


def sacct_seconds(lines: int = LINES) -> Finding:
    """Seconds to read an export of `sacct` in a fresh process; it must be right, and stay below `MOST_MEMORY`."""
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "sacct.txt", Path(folder) / "small.txt"
        with small.open("w", encoding="utf-8") as file:
            sacct_lines(file, 1000)
        with path.open("w", encoding="utf-8") as file:
            told = sacct_lines(file, lines)
        scale = "1" if sys.platform == "darwin" else "1024"
        words = [sys.executable, "-c", _PROGRAM, str(path), str(small), scale]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        size = path.stat().st_size
    found = json.loads(run.stdout)
    for name, value in told.items():
        assert found[name] == value, f"{name} must be {value:,}, and is {found[name]:,}"
    assert found["used"] == told["jobs"]
    assert sum(found["states"].values()) == told["jobs"]
    assert found["memory"] <= MOST_MEMORY, f"takes {found['memory'] / 1e6:,.0f} MB"
    return Finding(
        found["seconds"], f"{size / 1e6:,.0f} MB of text, {found['memory'] / 1e6:,.0f} MB of memory"
    )


def entries() -> tuple[Measure, ...]:
    """The measures of this part."""
    return (Measure("sacct export of 1,000,000 lines to a history", sacct_seconds, target=6.0),)
