"""Tables of jobs: published ones by their columns, others in any form; every row accounted for, unknown kept."""

import gzip
import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import NO_LIMIT, REPEAT, UNKNOWN, History
from gpuplan.traces.jobs_table import guess, read_jobs
from gpuplan.traces.openb import read_pods
from gpuplan.traces.pai import read_pai

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
1425513,uzqls,vcpDC,0,1,1,CANCELLED,2020-06-09 18:41:28,,,,
"""

KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,\
fail_time,stop_time,duration,queue,gpu_time
dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,\
2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0
dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,2023-05-17 11:28:54+00:00,\
2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,82,12.0,5248.0
"""

SEREN = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,\
117,32,936.0
"""

TASKS = """\
job_0,ps,1.0,Terminated,1000.0,4600.0,600.0,29.3,,
job_0,worker,2.0,Terminated,1100.0,4600.0,400.0,29.3,50.0,T4
job_1,worker,4,Running,2000.0,,400.0,29.3,200.0,V100
job_2,worker,1,Waiting,,,400.0,29.3,100,P100
job_3,worker,1,Failed,5000.0,5060.0,400.0,29.3,25,MISC
"""

JOBS = """\
job_0,i0,u0,Terminated,900.0,4600.0
job_1,i1,u1,Running,1500.0,
job_2,i2,u1,Waiting,3000.0,
"""

PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,NA
2017-10-09 06:13:03,2951.0,8,23608.0,6214e9
2017-10-09 06:13:03,2951.0,8,23608.0,6214e9
"""


def write(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def at(text: str) -> int:
    return round((datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds())


def check(found: History) -> None:
    """What holds of every history: it adds up, and what is unknown is never counted."""
    left_out = sum(count for _, count in found.account.excluded)
    assert found.account.used + left_out == found.account.read
    assert found.account.used == int(found.used.sum())
    for name in ("gpus", "elapsed_s", "start_s", "end_s", "submit_s"):
        assert (getattr(found, name) >= UNKNOWN).all()


# -------------------------------------------------------------------- published tables


def test_helios(tmp_path: Path) -> None:
    """The three rows of the description; 36,848 s from 18:41:01 end at 04:55:09."""
    found = read_jobs(write(tmp_path, HELIOS))
    check(found)
    assert found.job.tolist() == ["1425511", "1425512", "1425513"]
    assert found.team.tolist() == ["vcJkd", "vchbv", "vcpDC"]
    assert found.user.tolist() == ["uXBbc", "uVMrF", "uzqls"]
    assert found.elapsed_s.tolist() == [36848, 249, UNKNOWN]
    assert found.gpu_seconds == 36848 + 4 * 249
    assert found.state.tolist() == ["completed", "failed", "cancelled"]
    assert found.never_started.tolist() == [False, False, True]
    assert (found.zone, found.submit_s[0]) == (None, at("2020-06-09T18:41:01"))
    shanghai = read_jobs(write(tmp_path, HELIOS), zone="Asia/Shanghai")
    assert (shanghai.zone, shanghai.submit_s[0]) == ("Asia/Shanghai", at("2020-06-09T10:41:01"))


def test_kalos_counts_its_durations_from_the_submission(tmp_path: Path) -> None:
    """11:01:08 to 11:01:16 is 8 s, and the table says 18; 70 s, and it says 82."""
    found = read_jobs(write(tmp_path, KALOS))
    check(found)
    assert found.elapsed_s.tolist() == [8, 70]
    assert found.wait_s.tolist() == [10, 12]
    assert found.zone == "UTC"


def test_seren(tmp_path: Path) -> None:
    found = read_jobs(write(tmp_path, SEREN))
    assert (found.elapsed_s.tolist(), found.wait_s.tolist(), found.gpu_seconds) == ([117], [32], 936)
    assert found.submit_s.tolist() == [at("2023-02-28T16:18:22")]


def test_philly(tmp_path: Path) -> None:
    """Equal rows are jobs of their own (no column is an identity), and a team called NA is a team."""
    found = read_jobs(write(tmp_path, PHILLY))
    check(found)
    assert found.job.tolist() == ["line-2", "line-3", "line-4"]
    assert found.team.tolist() == ["NA", "6214e9", "6214e9"]
    assert found.gpu_seconds == 66 + 2 * 8 * 2951
    assert found.start_s.tolist() == [UNKNOWN] * 3
    assert found.unknown("user") == 3
    jobs = found.jobs()
    assert jobs.submit_s.tolist() == [0, 0, 2932]
    assert jobs.team.tolist() == ["6214e9", "6214e9", "NA"]


def test_openb(tmp_path: Path) -> None:
    """0.46 of a GPU is held as one whole; what runs at the last moment still runs, what was deleted before is over."""
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    head += "creation_time,deletion_time,scheduled_time"
    rows = [
        "p0,1,1,1,460,V100M16|T4,LS,Running,100,1000,130",
        "p1,1,1,8,1000,,BE,Running,0,500,0",
        "p2,1,1,1,1000,nan,LS,Pending,700,1000,",
        "p3,1,1,0,0,,LS,Succeeded,10,20,15",
        "p4,1,1,2,500,,LS,Failed,10,20,15",
    ]
    found = read_jobs(write(tmp_path, "\n".join([head, *rows])))
    check(found)
    assert found.gpus.tolist() == [1, 8, 1, 0, 1]
    assert found.state.tolist() == ["running", "deleted", "pending", "completed", "failed"]
    assert found.elapsed_s.tolist() == [870, 500, UNKNOWN, 5, 5]
    assert found.end_s.tolist() == [UNKNOWN, 500, 1000, 20, 20]
    assert found.gpu_type.tolist() == ["V100M16|T4", "", "", "", ""]
    assert found.as_of_s == 1000
    assert found.gpu_seconds == 870 + 8 * 500 + 5
    as_written = dict((what, amount) for what, amount, _ in found.account.amounts)
    assert as_written["held, with parts of GPUs as they are"] == pytest.approx((0.46 * 870 + 4000 + 5) / 3600)


def test_pai(tmp_path: Path) -> None:
    """Two workers with half a GPU are one; a task without plan_gpu has none; only Terminated is a success."""
    tasks = write(tmp_path, TASKS, "pai_task_table.csv")
    found = read_pai(tasks, write(tmp_path, JOBS, "pai_job_table.csv"))
    check(found)
    assert found.job.tolist()[:2] == ["job_0/ps", "job_0/worker"]
    assert found.parent.tolist() == ["job_0", "job_0", "job_1", "job_2", "job_3"]
    assert found.gpus.tolist() == [0, 1, 8, 1, 1]
    assert found.submit_s.tolist() == [900, 900, 1500, 3000, UNKNOWN]
    assert found.user.tolist() == ["u0", "u0", "u1", "u1", ""]
    assert found.state.tolist() == ["completed", "completed", "running", "pending", "failed"]
    assert found.elapsed_s.tolist() == [3600, 3500, UNKNOWN, UNKNOWN, 60]
    assert found.wait_s.tolist()[:3] == [100, 200, 500]
    rules = " ".join(found.account.rules)
    assert "Tasks whose job is not in pai_job_table.csv: 1" in rules
    alone = read_jobs(tasks)
    assert alone.gpus.tolist() == found.gpus.tolist()
    assert alone.unknown("submit_s") == 5
    with pytest.raises(InputError, match="no column for the number of GPUs"):
        read_jobs(tmp_path / "pai_job_table.csv")


# -------------------------------------------------------------------------- any table


def test_a_spreadsheet_of_another_country(tmp_path: Path) -> None:
    """Semicolons, decimal commas, days first, a line of totals, Windows-1252, hours as the unit: 1,5 h is 5400 s."""
    text = (
        "Job;Nutzer;Gruppe;Eingereicht;Startzeit;Laufzeit (h);Anzahl GPUs;Status\r\n"
        "17;Jürgen;NA;03.04.2026 08:00;03.04.2026 09:00;1,5;4;COMPLETED\r\n"
        "18;=1+1;Sprache;13.04.2026 08:00;13.04.2026 08:30;1.000,25;8;FAILED\r\n"
        "Summe;;;;;1.001,75;12;\r\n"
    )
    path = tmp_path / "jobs.csv"
    path.write_bytes(text.encode("cp1252"))
    found = read_jobs(path)
    check(found)
    assert found.elapsed_s.tolist()[:2] == [5400, 3_600_900]
    assert found.submit_s.tolist()[:2] == [at("2026-04-03T08:00"), at("2026-04-13T08:00")]
    assert found.user.tolist()[:2] == ["Jürgen", "=1+1"]
    assert found.team.tolist()[:2] == ["NA", "Sprache"]
    assert found.used.tolist() == [True, True, False]
    assert found.account.excluded == (("a summary line, not a job (line 4)", 1),)
    assert found.gpu_seconds == 4 * 5400 + 8 * 3_600_900
    rules = " ".join(found.account.rules)
    for words in ("decimal commas", "day first", "Windows-1252: line 2", "separated by semicolons"):
        assert words in rules


def test_limits(tmp_path: Path) -> None:
    rows = [
        "1,0,60,1,90",
        "2,0,60,1,-1",
        "3,0,60,1,",
        "4,0,60,1,UNLIMITED",
        "5,0,60,1,1:30:00",
        "6,0,60,1,2h",
    ]
    found = read_jobs(write(tmp_path, "\n".join(["id,submit_s,run_s,gpus,limit_min", *rows])))
    assert found.limit_s.tolist() == [5400, UNKNOWN, UNKNOWN, NO_LIMIT, 5400, 7200]
    batch = read_jobs(tmp_path / "jobs.csv", {"limit": ("limit_min", "batch")}, strict=False)
    assert batch.limit_s.tolist()[:5] == [5400, UNKNOWN, UNKNOWN, NO_LIMIT, 5400]
    assert [mistake.value for mistake in batch.mistakes] == ["2h"]


def test_run_time_wins_over_end_minus_start(tmp_path: Path) -> None:
    rows = [
        "1,2026-05-01 08:00:00,2026-05-01 09:00:00,1800,1",  # suspended for half of it
        "2,2026-05-01 08:00:00,2026-05-01 09:00:00,,1",
        "3,2026-05-01 08:00:00,,600,1",
        "4,2026-05-01 08:00:00,2026-05-01 07:00:00,,1",
    ]
    path = write(tmp_path, "\n".join(["id,start,end,run_s,gpus", *rows]))
    with pytest.raises(InputError, match=r"line 5, end: must not be before the start.*07:00:00"):
        read_jobs(path)
    found = read_jobs(path, strict=False)
    check(found)
    assert found.elapsed_s.tolist()[:3] == [1800, 3600, 600]
    assert found.end_s[2] == at("2026-05-01T08:10:00")
    changed = dict(found.account.changed)
    assert changed["run time differs from end - start: the run time counts"] == 1
    assert changed["run time reckoned from start and end"] == 1


def test_the_hour_that_comes_twice_is_settled_by_the_run_time(tmp_path: Path) -> None:
    """2025-10-26 in Berlin: 02:30 to 02:30 is an hour if the first is summer time."""
    row = "1,2025-10-26 01:00:00,2025-10-26 02:30:00,2025-10-26 02:30:00,3600,1"
    path = write(tmp_path, "id,submit,start,end,run_s,gpus\n" + row + "\n")
    found = read_jobs(path, zone="Europe/Berlin")
    assert found.end_s[0] - found.start_s[0] == 3600
    assert not found.ambiguous.any()
    assert (
        dict(found.account.changed)["a time that the clock showed twice, settled by run time and order"] == 1
    )
    with pytest.raises(InputError, match="time zone"):
        read_jobs(path, zone="Mars/Olympus")


def test_a_start_from_submission_and_wait(tmp_path: Path) -> None:
    found = read_jobs(write(tmp_path, "id,submit_s,wait_s,run_s,gpus\n1,10,30,60,2\n2,10,-1,60,2\n"))
    assert found.start_s.tolist() == [40, UNKNOWN]
    assert found.end_s.tolist() == [100, UNKNOWN]


def test_running_and_waiting_rows(tmp_path: Path) -> None:
    rows = ["1,0,10,,RUNNING,4", "2,0,,,PENDING,4", "3,0,20,500,RUNNING,1"]
    path = write(tmp_path, "\n".join(["id,submit_s,start_s,end_s,state,gpus", *rows]))
    found = read_jobs(path)
    assert found.elapsed_s.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN]
    assert found.running.tolist() == [True, False, True]  # the end of a job that runs is a forecast
    assert found.gpu_seconds == 0
    later = read_jobs(path, as_of_s=100)
    assert later.elapsed_s.tolist() == [90, UNKNOWN, 80]
    assert later.gpu_seconds == 4 * 90 + 80


def test_attempts_and_repeated_rows(tmp_path: Path) -> None:
    """Job 7 ran twice; one row of it is there twice, cell by cell."""
    rows = ["7,0,100,50,2", "8,5,5,10,1", "7,0,10,20,2", "7,0,100,50,2"]
    found = read_jobs(write(tmp_path, "\n".join(["id,submit_s,start_s,run_s,gpus", *rows])))
    check(found)
    assert found.attempt.tolist() == [2, 1, 1, 1]
    assert found.used.tolist() == [True, True, True, False]
    assert found.n_jobs == 2
    assert found.account.excluded == (("the same line as an earlier one (line 5)", 1),)


def test_times_in_milliseconds_and_a_zero_that_is_no_time(tmp_path: Path) -> None:
    rows = ["1,1507529583000,1507529593000,60,1", "2,1507529583000,0,60,1"]
    found = read_jobs(write(tmp_path, "\n".join(["id,submit_time,start_time,run_s,gpus", *rows])))
    assert (found.submit_s[0], found.start_s.tolist()) == (1507529583, [1507529593, UNKNOWN])
    assert found.zone == "UTC"
    assert dict(found.account.changed)["start_time of -1 or 0: unknown"] == 1


def test_columns_that_count_from_different_moments_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "id,submit,start_s,run_s,gpus\n1,2026-05-01 08:00,5,60,1\n")
    with pytest.raises(InputError, match="must count from the same moment"):
        read_jobs(path)


def test_every_cell_that_cannot_be_read(tmp_path: Path) -> None:
    rows = [
        "1,2026-05-01 08:00,60,1",
        "2,2026-02-30 08:00,60,1",
        "3,tomorrow,60,1",
        "4,2026-05-01 08:00+02:00,60,1",
        "5,2026-05-01 08:00,soon,1",
        "6,2026-05-01 08:00,1:30,1",
        "7,2026-05-01 08:00,60,-2",
        "8,2026-05-01 08:00,60,1e12",
        "9,2026-05-01 08:00,60",
        "10,,60,1",
    ]
    with pytest.raises(InputError) as found:
        read_jobs(write(tmp_path, "\n".join(["id,submit,run_s,gpus", *rows])))
    assert [
        (mistake.line, mistake.rule.split(" (")[0], mistake.value) for mistake in found.value.mistakes
    ] == [
        (3, "must be a date that exists", "2026-02-30 08:00"),
        (4, "must be a time such as 2026-05-04 13:00:00", "tomorrow"),
        (5, "must have no time zone, as most times of the file", "2026-05-01 08:00+02:00"),
        (6, "must be a number of s, or a time such as 90min or 1:30:00", "soon"),
        (7, "must be a number of s, or a time such as 90min or 1:30:00", "1:30"),
        (8, "must be 0 or more", "-2"),
        (9, "must be at most 10,000,000", "1e12"),
        (10, "must have 4 cells, as the header has; it has 3", "9 | 2026-05-01 08:00 | 60"),
        (11, "must be given", ""),
    ]
    going_on = read_jobs(tmp_path / "jobs.csv", strict=False)
    check(going_on)
    assert (going_on.account.read, going_on.account.used) == (10, 1)


def test_a_million_mistakes_are_a_page(tmp_path: Path) -> None:
    rows = "\n".join(f"{k},0,x,1" for k in range(5_000))
    with pytest.raises(InputError) as found:
        read_jobs(
            write(tmp_path, "id,submit_s,run_s,gpus\n0,0,1,1\n0,0,1,1\n" + rows), {"elapsed": ("run_s", "s")}
        )
    assert found.value.mistakes[-1].rule.endswith("so must 4,000 more rows")
    assert len(str(found.value)) < 5_000


def test_sacct_is_not_a_table_of_jobs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpuplan import slurm"):
        read_jobs(write(tmp_path, "JobID|State|AllocTRES\n1|COMPLETED|gres/gpu=1\n"))


# -------------------------------------------------------------------------- Parquet


def test_parquet_is_the_same_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    moments = pd.to_datetime(["2026-05-01 08:00", "2026-05-02 09:30"])
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "team": ["NA", None],
            "submit": moments,
            "runtime": pd.to_timedelta([60, 90], unit="s"),
            "gpus": pd.array([2, None], "Int64"),
        }
    )
    frame.to_parquet(tmp_path / "jobs.parquet")
    found = read_jobs(tmp_path / "jobs.parquet", {"elapsed": ("runtime", "s")}, strict=False)
    check(found)
    assert found.team.tolist() == ["NA", ""]
    assert (found.submit_s[0], found.elapsed_s[0], found.gpus[0]) == (at("2026-05-01T08:00"), 60, 2)
    assert [(mistake.line, mistake.rule) for mistake in found.mistakes] == [(2, "must be given")]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", b"id,gpus\n1,2\n"])
def test_broken_parquet(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "broken.parquet"
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_jobs(path)
    with pytest.raises(InputError, match="there is no such file"):
        read_jobs(tmp_path / "absent.parquet")


# -------------------------------------------------------------------------- real files


def test_the_real_philly_file(shared: Path) -> None:
    """71,570 jobs; the GPU time is that of the file's own column."""
    path = shared / "traces" / "philly" / "philly_jobs.csv.gz"
    found = read_jobs(path, zone="America/Los_Angeles")
    check(found)
    assert (len(found), found.account.used) == (71_570, 71_570)
    with gzip.open(path, "rt") as file:
        column = pd.read_csv(file)["gpu_time"]
    assert found.gpu_seconds == int(column.sum())
    assert np.bincount(found.gpus)[[1, 2, 4, 8, 12, 16, 24, 32]].sum() == 71_570
    assert int(found.ambiguous.sum()) == 7  # submitted in the hour of 2017-11-05 that came twice


def test_the_real_openb_pods(shared: Path) -> None:
    """GPU time with parts of GPUs is what the reader of pods finds; unscheduled pods are the 713 of the description."""
    path = shared / "traces" / "openb" / "openb_pod_list_gpuspec33.csv.gz"
    found, pods = read_jobs(path), read_pods(path)
    check(found)
    assert len(found) == 6974
    amounts = dict((what, amount) for what, amount, _ in found.account.amounts)
    assert amounts["held, with parts of GPUs as they are"] * 3600 == pytest.approx(pods.gpu_seconds)
    assert int((found.start_s == UNKNOWN).sum()) == 713 == len(pods.never_scheduled)
    assert sorted(found.job[found.running].tolist()) == sorted(pods.open_at_end)
    assert found.mean_wait_s == pytest.approx(pods.mean_wait_s)


def test_other_real_tables_are_told_apart(shared: Path) -> None:
    """What is no table of jobs says what it lacks, and which columns it has."""
    traces = shared / "traces"
    for name, lacks in (
        ("helios/earth_vc_sequence_10min.csv.gz", "no column for the run time"),
        ("helios/earth_vc_quota_daily.csv", "no column for the number of GPUs"),
        ("openb/openb_node_list_all_node.csv", "no column for the run time"),
        ("acme/converted_kalos_trace.csv", "no column for the run time"),
    ):
        with pytest.raises(InputError, match=lacks):
            read_jobs(traces / name)
    deadlines = guess(traces / "philly" / "philly_103959_deadlines.csv")
    assert not deadlines.missing
    assert len(read_jobs(traces / "philly" / "philly_103959_deadlines.csv", deadlines)) == 664


# -------------------------------------------------------------------------- any input

#: Longer runs: GPUPLAN_EXAMPLES=50 reads 10^5 lines that were damaged.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))


@pytest.mark.parametrize("good", ["philly", "helios", "spreadsheet"])
def test_many_damaged_lines(tmp_path: Path, good: str) -> None:
    """2,000 lines, half of them damaged in one place: every other line is used, every line is in the account."""
    rng = np.random.default_rng(7)
    head, form = {
        "philly": ("timestamp,duration,num_gpus,cluster", "2017-10-09 07:01:{k:02},{n}.0,1,11cb48"),
        "helios": (HELIOS.split("\n")[0], "{n},u,v,1,1,1,FAILED,2020-06-09 18:41:{k:02},,,36848,0"),
        "spreadsheet": ("id;submit;run_min;gpus", "{n};13.04.2026 08:{k:02};1,5;4"),
    }[good]
    count = 2_000 * MORE
    lines = [form.format(n=n, k=n % 60) for n in range(count)]
    damaged = rng.random(count) < 0.5
    for n in np.flatnonzero(damaged).tolist():
        place = int(rng.integers(len(lines[n])))
        sign = "\u00e4x;,-.:9 =+\"'"[int(rng.integers(13))]
        lines[n] = lines[n][:place] + sign + lines[n][place + int(rng.integers(2)) :]
    found = read_jobs(write(tmp_path, "\n".join([head, *lines])), strict=False)
    check(found)
    assert found.account.read == count
    # A damaged number may make a line the same as another; either of the two is used then.
    fine = {*found.line[found.used].tolist(), *found.lines(REPEAT)}
    assert set((np.flatnonzero(~damaged) + 2).tolist()) <= fine


def test_a_date_of_another_form_is_a_mistake_and_no_question(tmp_path: Path) -> None:
    path = write(tmp_path, PHILLY + "17-10-09 07:01:55,1.0,1,1.0,NA\n")
    with pytest.raises(InputError, match=r"line 5, timestamp: must be written as most times of the file"):
        read_jobs(path)


LINES = st.text("0123456789.,;\t|\"'-:+ eNA\u00e4=\n", max_size=40)


@settings(max_examples=150)
@given(
    st.lists(LINES, max_size=10),
    st.sampled_from([PHILLY, HELIOS, KALOS, "id,submit_s,run_s,gpus\n1,0,60,1\n"]),
)
def test_fuzzed_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str], good: str) -> None:
    """Whatever stands below good rows: mistakes with lines, or rows; the good ones are always used."""
    path = write(tmp_path_factory.mktemp("fuzz"), good + "\n".join(lines))
    try:
        found = read_jobs(path, strict=False)
    except InputError:
        return
    check(found)
    assert all(mistake.line is None or mistake.line >= 2 for mistake in found.mistakes)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.sampled_from(
        [PHILLY, HELIOS, KALOS, SEREN, "id;run_min;gpus;submit\n1;1,5;2;03.04.2026\n2;2;1;13.04.2026\n"]
    ),
)
def test_fuzzed_bytes(tmp_path_factory: pytest.TempPathFactory, seed: int, good: str) -> None:
    """Bytes are changed, added and taken away: a history that adds up, or a sentence."""
    rng = np.random.default_rng(seed)
    data = bytearray((good * 3).encode())
    for _ in range(int(rng.integers(1, 8))):
        place = int(rng.integers(len(data)))
        data[place : place + int(rng.integers(3))] = rng.bytes(int(rng.integers(3)))
    path = tmp_path_factory.mktemp("bytes") / "jobs.csv"
    path.write_bytes(gzip.compress(bytes(data)) if seed % 3 == 0 else bytes(data))
    try:
        found = read_jobs(path, strict=False)
    except InputError:
        return
    check(found)
