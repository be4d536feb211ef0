"""How long other people's tables of jobs take: made-up rows in the columns of published tables."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.benchmarks.frame import Finding, Measure, fastest

if TYPE_CHECKING:
    from gpuplan.traces.history import History

#: Jobs of the published copy of the Philly trace.
PHILLY_JOBS = 71_570

_FIRST_S = round(datetime(2017, 10, 1, tzinfo=UTC).timestamp())


def entries() -> tuple[Measure, ...]:
    """All measures of reading tables of jobs."""
    n = PHILLY_JOBS
    return (
        Measure(f"job table: Philly's columns, gzip, {n:,} rows", partial(_of_reading, _philly, n), 1.0),
        Measure(f"job table: semicolons, decimal commas, {n:,} rows", partial(_of_reading, _spreadsheet, n)),
        Measure("job table: Helios' columns, 200,000 rows", partial(_of_reading, _helios, 200_000)),
        Measure("job log in JSON: 20,000 jobs, two attempts each", partial(_of_reading, _attempts, 20_000)),
        Measure(
            f"own cluster: {n:,} jobs, from Philly's table to the drawn Gantt", partial(_of_gantt, n), 3.0
        ),
    )


def _of_reading(make: Callable[[int], tuple[str, bytes, int]], n: int) -> Finding:
    """Seconds from the file to the history; GPU time and rows must be those that were written."""
    from gpuplan.traces.jobs_table import read_jobs

    name, data, gpu_seconds = make(n)
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        found: list[History] = []
        seconds = fastest(lambda: found.append(read_jobs(path)), budget_s=0, at_least=2)
    last = found[-1]
    assert last.n_jobs == n, f"{last.n_jobs:,} jobs instead of {n:,}"
    assert last.gpu_seconds == gpu_seconds, "the GPU time is not that of the rows written"
    assert last.account.used == last.account.read, "rows were left out"
    return Finding(seconds, f"{len(data) / 1e6:,.0f} MB, {gpu_seconds / 3600:,.0f} GPU-hours")


def _of_gantt(n: int) -> Finding:
    """Seconds from the file over scenario and policy to the picture; every job is in it, and the run is legal."""
    from gpuplan.fairshare.charts import gantt_chart
    from gpuplan.fairshare.run import simulate
    from gpuplan.traces.importing import import_file

    name, data, gpu_seconds = _philly(n)
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        found: list[Any] = []

        def drawn() -> None:
            run = simulate(import_file(path, nodes=256, gpus_per_node=8).scenario, "easy")
            found[:] = [run, gantt_chart(run)._repr_mimebundle_()]

        seconds = fastest(drawn, budget_s=0, at_least=2)
    run, picture = found
    assert int(run.scenario.jobs.gpu_seconds.sum()) == gpu_seconds, "work was left out"
    assert run.figures["jobs_finished"] == n, f"{run.figures['jobs_finished']:,} jobs finished"
    assert run.check() == [], "the run breaks rules"
    return Finding(
        seconds, f"{len(run.stretches):,} stretches, a picture of {len(str(picture)) / 1000:,.0f} kB"
    )


@lru_cache(maxsize=1)
def _columns(n: int) -> dict[str, Any]:
    """Submissions, run times, GPUs and teams of made-up jobs."""
    rng = np.random.default_rng(3)
    submit = np.sort(rng.integers(0, 60 * 86_400, n)) + _FIRST_S
    run = np.maximum(1, rng.lognormal(8, 2, n).astype(np.int64))
    gpus = rng.choice([1, 2, 4, 8, 16], n, p=[0.9, 0.04, 0.03, 0.02, 0.01])
    return {
        "submit": submit,
        "run": run,
        "gpus": gpus,
        "team": rng.integers(0, 14, n),
        "wait": rng.integers(0, 9999, n),
    }


def _stamps(seconds: Any) -> list[str]:
    stamps = np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s", timezone="naive")
    return [text.replace("T", " ") for text in stamps.tolist()]


def _rows(n: int, *columns: Any) -> list[tuple[Any, ...]]:
    return list(
        zip(*(column if isinstance(column, list) else column.tolist() for column in columns), strict=True)
    )


def _work(made: dict[str, Any]) -> int:
    return int((made["gpus"] * made["run"]).sum())


def _philly(n: int) -> tuple[str, bytes, int]:
    made = _columns(n)
    rows = _rows(n, _stamps(made["submit"]), made["run"], made["gpus"], made["team"])
    lines = [f"{at},{run}.0,{gpus},{gpus * run}.0,vc{team}" for at, run, gpus, team in rows]
    text = "\n".join(["timestamp,duration,num_gpus,gpu_time,cluster", *lines])
    return "philly.csv.gz", gzip.compress(text.encode(), 1), _work(made)


def _spreadsheet(n: int) -> tuple[str, bytes, int]:
    """Run times in hours of two decimals, so of multiples of 36 s, which are exact."""
    made = dict(_columns(n))
    made["run"] = made["run"] // 36 * 36
    days = [f"{at[8:10]}.{at[5:7]}.{at[:4]} {at[11:]}" for at in _stamps(made["submit"])]
    rows = _rows(n, np.arange(n), days, made["run"], made["gpus"], made["team"])
    lines = [
        f'{k};{at};{f"{run / 3600:.2f}".replace(".", ",")};{gpus};"Gruppe; {team}"'
        for k, at, run, gpus, team in rows
    ]
    text = "\r\n".join(["Job;Eingereicht;Laufzeit (h);Anzahl GPUs;Gruppe", *lines])
    return "jobs.csv", text.encode("utf-8-sig"), _work(made)


def _helios(n: int) -> tuple[str, bytes, int]:
    made = _columns(n)
    start = made["submit"] + made["wait"]
    rows = _rows(
        n,
        np.arange(n),
        made["team"],
        made["gpus"],
        _stamps(made["submit"]),
        _stamps(start),
        _stamps(start + made["run"]),
        made["run"],
        made["wait"],
    )
    lines = [
        f"{k},u{k % 997},vc{team},{gpus},4,1,COMPLETED,{submit},{begin},{end},{run},{wait}"
        for k, team, gpus, submit, begin, end, run, wait in rows
    ]
    head = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    return "cluster_log.csv", "\n".join([head, *lines]).encode(), _work(made)


def _attempts(n: int) -> tuple[str, bytes, int]:
    """Each job runs twice for its run time, a minute apart."""
    made = _columns(n)
    first = made["submit"] + made["wait"]
    times = [first, first + made["run"], first + made["run"] + 60, first + 2 * made["run"] + 60]
    rows = _rows(n, np.arange(n), made["team"], made["gpus"], _stamps(made["submit"]), *map(_stamps, times))
    jobs = [
        {
            "status": "Pass",
            "vc": f"vc{team}",
            "jobid": f"application_{k}",
            "user": f"u{k % 997}",
            "submitted_time": submit,
            "attempts": [
                {
                    "start_time": a,
                    "end_time": b,
                    "detail": [{"ip": "m1", "gpus": [f"gpu{g}" for g in range(gpus)]}],
                }
                for a, b in ((one, two), (three, four))
            ],
        }
        for k, team, gpus, submit, one, two, three, four in rows
    ]
    return "cluster_job_log", json.dumps(jobs, indent=1).encode(), 2 * _work(made)
