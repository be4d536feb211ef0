"""``gpuplan import``: what it prints and writes, and with which code it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpuplan as gp

Run = Callable[..., tuple[int, str, str]]

#: A machine of 8, from 2026-03-01 00:00 UTC on: 4 GPUs for an hour, 8 for two; the third line is a cancelled job.
LOG = """\
; UnixStartTime: 1772323200
; TimeZoneString: UTC
; MaxProcs: 8
1 0 0 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1
2 60 3600 7200 8 -1 -1 8 7200 -1 1 2 1 -1 1 -1 -1 -1
3 90 100 -1 -1 -1 -1 2 60 -1 5 2 1 -1 1 -1 -1 -1
"""

SACCT = """\
JobID|User|Account|QOS|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES
1|ann|lab|high|COMPLETED|2026-03-02T08:00:00|2026-03-02T09:00:00|2026-03-02T10:00:00|01:00:00|02:00:00|gres/gpu=4
2|bob|lab|low|COMPLETED|2026-03-02T08:10:00|2026-03-02T10:00:00|2026-03-02T12:00:00|02:00:00|UNLIMITED|gres/gpu=2
"""

JOBS = "id,submit_s,gpus,run_s\na,0,4,3600\nb,60,eight,600\nc,120,2,-5\nd,180,2,600\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.swf"
    path.write_text(LOG, encoding="utf-8")
    return path


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT, encoding="utf-8")
    return path


def test_the_account_the_choices_and_the_files_are_printed(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "my-cluster.yaml"
    status, printed, err = run("import", "swf", log, "-o", out)
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines[0] == "cluster"
    assert "read jobs in cluster.swf 3 jobs" in lines
    assert "left out never started (cancelled, without a run time) (line 6) 1 jobs" in lines
    assert "used in the scenario 2 jobs" in lines
    assert any(line.startswith("- Cluster: 8 GPUs, as the header of the file tells") for line in lines)
    assert [line.split("/")[-1] for line in lines[-3:]] == [
        "my-cluster.yaml",
        "my-cluster.jobs.csv",
        "my-cluster.as-it-was.csv",
    ]
    assert run("simulate", out, "--policies", "fifo")[0] == 0


def test_json_is_one_object_with_the_same_facts(run: Run, log: Path, tmp_path: Path) -> None:
    status, printed, err = run(
        "import", "swf", log, "-o", tmp_path / "a.yaml", "--json", "--kind", "allocation"
    )
    assert (status, err) == (0, "")
    whole: dict[str, Any] = json.loads(printed)
    assert list(whole) == [
        "scenario", "kind", "fingerprint", "choices", "account", "traffic", "rows_with_mistakes", "files",
    ]  # fmt: skip
    account = whole["account"]
    assert account["read"] == account["used"] + sum(row["count"] for row in account["excluded"]) == 3
    assert whole["files"] == ["a.yaml", "a.as-it-was.csv"]
    assert whole["kind"] == "allocation"
    assert gp.load(tmp_path / "a.yaml").fingerprint == whole["fingerprint"]
    assert whole["choices"]["Day"].startswith("2026-03-01, the day on which the most")


def test_sacct_with_ranks_zone_and_anonymous_names(run: Run, sacct: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.yaml"
    words = ("--zone", "Europe/Berlin", "--priority", "qos", "--rank", "high,low", "--anonymise")
    status, printed, err = run("import", "slurm", sacct, "-o", out, "--budget", "team/user", *words)
    assert (status, err) == (0, "")
    jobs = gp.load(out).jobs
    # high and low of two ranks: 3 and 2
    assert (jobs.priority.tolist(), jobs.gpus.tolist()) == ([3, 2], [4, 2])
    assert jobs.submit_s.tolist() == [8 * 3600, 8 * 3600 + 600]
    files = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("s.*"))
    for name in ("ann", "bob", "lab", "high"):
        assert f"{name}|" not in files
        assert f"/{name}" not in files
        assert f" {name} " not in printed
    assert "user-1" in files


def test_rows_with_mistakes_are_refused_and_left_out_when_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS, encoding="utf-8")
    out = tmp_path / "j.yaml"
    status, printed, err = run("import", "jobs", path, "-o", out)
    assert (status, printed) == (2, "")
    assert "line 3, gpus" in err
    assert "line 4, run_s" in err
    assert "--keep-going imports the file without these 2 lines" in err
    assert not out.exists()
    status, printed, err = run("import", "jobs", path, "-o", out, "--keep-going")
    assert (status, err) == (0, "")
    assert "left out: line 3, gpus" in printed
    assert gp.load(out).jobs.name.tolist() == ["a", "d"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("swf", "absent.swf"), "there is no such file"),
        (("swf", "{log}", "--day", "yesterday"), "must be a day written as YYYY-MM-DD"),
        (("swf", "{log}", "--from", "2026-03-09"), "to: must be later than the beginning"),
        (("swf", "{log}", "--zone", "UTC"), "a workload log says its own"),
        (("swf", "{log}", "{log}"), "must be one file of jobs"),
        (("swf", "{log}", "--separator", ";"), "--separator is for slurm"),
        (("swf", "{log}", "--as-of", "2026-03-02"), "is for sacct"),
        (("swf", "{log}", "--types"), "must be named in the file; none is"),
        (("swf", "{log}", "--rank", "a"), "must say of what they are"),
        (("swf", "{log}", "--weights", "a"), "must be name=number"),
        (("swf", "{log}", "--min-runtime", "soon"), "must be a time with a unit"),
        (("slurm", "{log}"), "cluster.swf"),
        (("prometheus", "{log}", "--per-gpu", "2"), "must be JSON"),
        (("jobs", "{log}", "--columns", "gpus"), "column"),
        (("jobs", "{philly}", "--accept-guess"), "--accept-guess is for tables whose columns are guessed"),
        (("swf", "{log}", "--max-swap", "3", "--unit", "x"), "--unit, --max-swap: for traffic only"),
        (("hourly", "{log}", "--keep-going"), "--keep-going is for slurm, swf and jobs"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_sentence_and_code_2(
    run: Run, log: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    out = tmp_path / "x.yaml"
    philly = tmp_path / "philly.json"
    philly.write_text('[{"jobid": "j"}]', encoding="utf-8")
    named = (word.format(log=log, philly=philly) for word in words)
    status, printed, err = run("import", *named, "-o", out)
    assert (status, printed) == (2, "")
    assert sentence in err
    assert "internal error" not in err
    assert not out.exists()


def test_columns_that_are_not_sure_are_confirmed_or_said(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "jobs.csv", tmp_path / "c.yaml"
    path.write_text("job,submit_time,num_gpus,duration\na,0,1,60\nb,5,2,90\n", encoding="utf-8")
    status, _, err = run("import", "jobs", path, "-o", out)
    assert (status, "must be confirmed: column duration" in err, "--accept-guess" in err) == (2, True, True)
    assert run("import", "jobs", path, "-o", out, "--accept-guess")[0] == 0
    assert gp.load(out).jobs.run_s.tolist() == [60, 90]
    said = ("--columns", "elapsed=duration:min,submit=submit_time:s")
    assert run("import", "jobs", path, "-o", out, *said)[0] == 0
    assert gp.load(out).jobs.run_s.tolist() == [3600, 5400]


def test_traffic_of_a_table_with_several_columns(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "rates.csv", tmp_path / "t.yaml"
    path.write_text("hour,chat,code\n2026-03-02 00:00,1,9\n2026-03-02 01:00,5,9\n", encoding="utf-8")
    words = ("import", "hourly", path, "-o", out, "--per-gpu", "2")
    assert run(*words)[0] == 2
    status, _, err = run(*words, "--columns", "time=hour,value=chat")
    assert (status, err) == (0, "")
    # 1 / 2 and 5 / 2 GPUs, rounded up; later hours are unknown and keep the last
    assert gp.load(out).realtime[0].demand == (1, *(3,) * 23)
    assert run(*words, "--columns", "hour=time")[0] == 2


def test_the_output_is_a_scenario_file(run: Run, log: Path, tmp_path: Path) -> None:
    assert run("import", "swf", log, "-o", tmp_path / "x.txt")[0] == 2
    status, _, err = run("import", "swf", log, "-o", tmp_path / "no" / "x.yaml")
    assert (status, "cannot be written" in err) == (2, True)


def test_a_key_is_long_enough_and_makes_the_same_codes(run: Run, log: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("short", encoding="utf-8")
    words = ("import", "swf", log, "-o", tmp_path / "k.yaml", "--anonymise", "--key-file", key)
    status, _, err = run(*words)
    assert (status, "at least 16 characters" in err) == (2, True)
    key.write_text("0123456789abcdef0123", encoding="utf-8")
    assert run(*words)[0] == 0
    first = (tmp_path / "k.jobs.csv").read_text(encoding="utf-8")
    assert run(*words)[0] == 0
    assert (tmp_path / "k.jobs.csv").read_text(encoding="utf-8") == first
    assert "group-1" not in first


def test_a_bar_is_drawn_on_a_terminal_only_and_taken_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuplan import cli_import

    quiet = cli_import._Bar()
    quiet(1, 2)
    quiet.clear()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = cli_import._Bar()
    bar(500_000_000, 4_000_000_000)
    bar(600_000_000, 4_000_000_000)  # within a tenth of a second: not drawn
    bar.clear()
    drawn = capsys.readouterr().err.split("\r")
    assert drawn[1] == "[##..................] 500 of 4,000 MB read"
    assert [part.strip() for part in drawn[2:]] == ["", ""]
